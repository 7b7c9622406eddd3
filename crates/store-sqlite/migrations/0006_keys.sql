-- Of what a key's hash was made: 0 is whatever an older version printed, which cannot be made again; 1 is the stored form.
ALTER TABLE keys ADD COLUMN form INTEGER NOT NULL DEFAULT 0;

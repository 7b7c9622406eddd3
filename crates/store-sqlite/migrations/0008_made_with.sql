-- A token that was made with another one goes with it.
ALTER TABLE tokens ADD COLUMN parent BLOB;
CREATE INDEX tokens_made_with ON tokens (parent) WHERE parent IS NOT NULL;

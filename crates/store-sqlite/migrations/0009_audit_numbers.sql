-- Each org counts its own audit entries: those of others are no gaps in it. What is there keeps the numbers that it was sealed
-- with.
ALTER TABLE audit ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
UPDATE audit SET number = entry;

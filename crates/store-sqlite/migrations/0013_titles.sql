-- Who gave a session its title: a person, its agent, or nobody, then it is of the first words that were said in it. What was there
-- is a person's. A title that is of words goes with them.
ALTER TABLE sessions ADD COLUMN title_by TEXT;
ALTER TABLE sessions ADD COLUMN title_of INTEGER; -- the body whose words it is, unless a person gave it
UPDATE sessions SET title_by = 'person' WHERE title IS NOT NULL;
CREATE INDEX sessions_titled ON sessions (owner, title) WHERE title_by = 'person';

-- The title that the words of an edit are, until the verdict.
ALTER TABLE requests ADD COLUMN opening TEXT;

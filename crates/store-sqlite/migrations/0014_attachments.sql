-- Images and files that go along with a message: under the body of its words, in their order. `about` says what each is, its bytes are a
-- body of their own, and both are forgotten with the words.
CREATE TABLE attachments (
    words  INTEGER NOT NULL, -- the body of the words
    number INTEGER NOT NULL, -- from 1 on
    about  BLOB    NOT NULL,
    body   INTEGER NOT NULL,
    PRIMARY KEY (words, number)
) STRICT, WITHOUT ROWID;

-- 1 if an edit brings attachments, or none, in place of those that are there. Else they stay.
ALTER TABLE requests ADD COLUMN replaces INTEGER NOT NULL DEFAULT 0;

-- Search of what was said in turns that are over. `passages` says where in the log a passage is, `keywords` which keywords it has: of those
-- only an index is kept, made of words that the store has taken apart, with one keyword for its org and one for its session
-- (`_o1`, `_s1`). Both are made from the log, after the appends; `indexed` is the last fact that was looked at for it.
CREATE TABLE passages (
    passage INTEGER PRIMARY KEY,
    sid     INTEGER NOT NULL,
    turn    INTEGER NOT NULL,
    kind    TEXT    NOT NULL, -- said, text
    first   INTEGER NOT NULL,
    last    INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    body    INTEGER           -- of a message: with the words goes the passage
) STRICT;
CREATE INDEX passages_body ON passages (body) WHERE body IS NOT NULL;
CREATE VIRTUAL TABLE keywords USING fts5 (
    words, content = '', contentless_delete = 1, detail = none, tokenize = "ascii tokenchars '_'"
);
ALTER TABLE counters ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0;

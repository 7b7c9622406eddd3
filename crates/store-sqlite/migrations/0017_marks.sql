-- What a person has noted about a session for themselves: the number of the last fact that they have seen, and whether it is pinned.
-- Whoever owned a session when this came has seen what was in it: else everything that ever was would be news.
CREATE TABLE marks (
    pid    INTEGER NOT NULL,
    sid    INTEGER NOT NULL,
    seen   INTEGER NOT NULL,
    pinned INTEGER NOT NULL,
    PRIMARY KEY (pid, sid)
) STRICT, WITHOUT ROWID;
INSERT INTO marks (pid, sid, seen, pinned) SELECT owner, sid, number, 0 FROM sessions ORDER BY owner, sid;

-- The sessions whose row in lists is another one for somebody, although nothing was appended: they may see it now, or no more, or
-- do something else with it. One row for a person and a session, with the last such change's place among all changes.
CREATE TABLE row_changes (
    pid   INTEGER NOT NULL,
    sid   INTEGER NOT NULL,
    place INTEGER NOT NULL,
    PRIMARY KEY (pid, sid)
) STRICT, WITHOUT ROWID;
CREATE INDEX row_changes_place ON row_changes (pid, place);

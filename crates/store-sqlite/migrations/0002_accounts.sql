-- Sign-ins that people gave for their own turns with an agent. Sealed with a key that is not in this file: a copy of the
-- file alone opens none of them.
CREATE TABLE accounts (
    person INTEGER NOT NULL, -- pid
    agent  TEXT    NOT NULL,
    names  TEXT    NOT NULL, -- of the variables, one per line
    sealed BLOB    NOT NULL,
    since  INTEGER NOT NULL,
    PRIMARY KEY (person, agent)
) STRICT, WITHOUT ROWID;

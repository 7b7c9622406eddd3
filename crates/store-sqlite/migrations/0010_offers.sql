-- Sessions that are offered to somebody, who has not said yes or no. One that has lapsed goes when the next one is made.
CREATE TABLE offers (
    sid   INTEGER PRIMARY KEY,
    owner INTEGER NOT NULL, -- pid of who has the session
    heir  INTEGER NOT NULL, -- pid of who is to have it
    at    INTEGER NOT NULL,
    until INTEGER NOT NULL
) STRICT;
CREATE INDEX offers_of_owner ON offers (owner);
CREATE INDEX offers_of_heir  ON offers (heir);
CREATE INDEX offers_lapsing  ON offers (until);

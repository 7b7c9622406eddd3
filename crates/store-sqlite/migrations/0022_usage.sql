-- What agents said that their turns have used, added up: by owner of the session (who sees it without a grant), day, session, agent, and
-- the sender of what the turn began with. Read by its key for what somebody owns, by session for what was given to them. It follows from
-- the facts; those of before are added up by the code beside this step.
CREATE TABLE usage (
    owner  INTEGER NOT NULL, -- pid of the session's owner
    day    INTEGER NOT NULL, -- since 1970, by universal time
    sid    INTEGER NOT NULL,
    agent  TEXT    NOT NULL,
    by     INTEGER NOT NULL, -- pid; 0 if nobody knows
    input  INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    cost   INTEGER,          -- none if nobody said a price
    PRIMARY KEY (owner, day, sid, agent, by)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_of_session ON usage (sid, day);

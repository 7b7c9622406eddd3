-- Scopes that change by epochs, messages that say how they are to be delivered, answers of every form, sessions that are
-- forks or were brought here from elsewhere, and rules for what agents ask.

ALTER TABLE messages ADD COLUMN delivery TEXT NOT NULL DEFAULT 'queue';
ALTER TABLE messages ADD COLUMN unattended INTEGER NOT NULL DEFAULT 0; -- nobody is there to answer what the agent asks
ALTER TABLE messages ADD COLUMN under INTEGER; -- the epoch that its sender saw, if they said so
ALTER TABLE messages ADD COLUMN epoch INTEGER; -- of the scope it was written for; follows from the facts
-- Whatever a keeper has seen has a seat of its own, and there was one epoch only.
UPDATE messages SET epoch = 0 WHERE seat < 281474976710656;

ALTER TABLE sessions ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN in_worktree INTEGER NOT NULL DEFAULT 0; -- whether its scope is in one; the scope says which
ALTER TABLE sessions ADD COLUMN origin BLOB;          -- the session that it is a fork of
ALTER TABLE sessions ADD COLUMN origin_turn INTEGER;  -- the last turn that both have
ALTER TABLE sessions ADD COLUMN enter TEXT;           -- the worktree that it was made to go into first
ALTER TABLE sessions ADD COLUMN imported BLOB;        -- the id that it had elsewhere; it answers to it in its org
ALTER TABLE sessions ADD COLUMN imported_by INTEGER;  -- pid of who brought it here
ALTER TABLE sessions ADD COLUMN imported_from TEXT;   -- the org that it was in, as its file says
CREATE INDEX sessions_imported ON sessions (imported) WHERE imported IS NOT NULL;
CREATE INDEX sessions_in_worktree ON sessions (id) WHERE in_worktree = 1 AND ended IS NULL;

-- Where and how a session acted under each epoch; follows from the facts. Whatever has a fact has been opened.
CREATE TABLE scopes (
    sid   INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    scope TEXT    NOT NULL,
    PRIMARY KEY (sid, epoch)
) STRICT, WITHOUT ROWID;
INSERT INTO scopes (sid, epoch, scope) SELECT sid, 0, scope FROM sessions WHERE number > 0 ORDER BY sid;

-- A question stands at `open`, `answered` or `lapsed`. What was said to it, and by whom, is in its own columns; the code
-- beside this step fills them from the state and the person that were here before, and takes `by` away.
ALTER TABLE approvals ADD COLUMN answer   TEXT;
ALTER TABLE approvals ADD COLUMN answerer TEXT; -- the id of a person or a rule, or a word; none if its time was over
ALTER TABLE approvals ADD COLUMN posed    TEXT; -- which answers fit and whose; none for a permission of anybody's
ALTER TABLE approvals ADD COLUMN number   INTEGER; -- of the fact that it was asked with
ALTER TABLE approvals ADD COLUMN settled_at INTEGER;

-- What is answered to an agent's questions without asking, and whom to ask. What is none holds for all.
CREATE TABLE rules (
    rid       INTEGER PRIMARY KEY,
    id        BLOB    NOT NULL UNIQUE,
    oid       INTEGER NOT NULL,
    by        INTEGER NOT NULL, -- pid
    since     INTEGER NOT NULL,
    agent     TEXT,
    tool      TEXT,
    directory TEXT,
    sid       INTEGER,          -- it goes when this session ends
    effect    TEXT    NOT NULL, -- allow, deny, ask
    kind      INTEGER,          -- whom to ask, as with grants
    grantee   BLOB,
    until     INTEGER
) STRICT;
CREATE INDEX rules_of_org     ON rules (oid, rid);
CREATE INDEX rules_of_session ON rules (sid) WHERE sid IS NOT NULL;

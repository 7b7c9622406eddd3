-- Orgs, people with names and roles, groups, what was given to whom, credentials with rights, and an audit with a chain.
-- `oid` is an org's small integer. Whom something is given to is a kind (0 a person, 1 a group, 2 an org) and the bits of
-- the id. What names are compared by is kept beside them, in lower case (`handle_key`, `name_key`).

CREATE TABLE orgs (
    oid       INTEGER PRIMARY KEY,
    org       BLOB    NOT NULL UNIQUE,
    name      TEXT,              -- none until the machine's person is seen again, in a file from before orgs had names
    name_key  TEXT    UNIQUE,
    share_new TEXT,              -- what everybody is given on a new session
    open_max  INTEGER,
    awake_max INTEGER,
    opened    INTEGER NOT NULL,  -- sessions of this org that are open now
    made_at   INTEGER NOT NULL
) STRICT;
INSERT INTO orgs (org, opened, made_at)
    SELECT org, sum(opened), (SELECT coalesce(min(since), 0) FROM node_starts) FROM persons
    GROUP BY org ORDER BY max(machine) DESC, min(pid);

-- Whoever has no handle was only heard of: the engine itself, say. They cannot come in, and no list shows them.
ALTER TABLE persons RENAME TO persons_before;
CREATE TABLE persons (
    pid         INTEGER PRIMARY KEY,
    person      BLOB    NOT NULL,
    org         BLOB    NOT NULL,
    handle      TEXT,
    handle_key  TEXT,
    name        TEXT,
    email       TEXT,             -- in lower case
    role        TEXT,
    password    TEXT,             -- what a password is compared with
    host        INTEGER NOT NULL, -- whether this is the person whose machine it is
    standing    INTEGER NOT NULL, -- grows with each change of what they may do
    opened      INTEGER NOT NULL, -- sessions of this person that are open now
    made_at     INTEGER NOT NULL,
    disabled_at INTEGER,
    UNIQUE (person, org)
) STRICT;
INSERT INTO persons (pid, person, org, handle, handle_key, role, host, standing, opened, made_at, disabled_at)
    SELECT b.pid, b.person, b.org, b.handle, lower(b.handle), CASE WHEN b.handle IS NOT NULL THEN 'owner' END,
        b.machine, 1, b.opened, o.made_at, CASE WHEN d.person IS NOT NULL THEN o.made_at END
    FROM persons_before b JOIN orgs o ON o.org = b.org LEFT JOIN disabled d ON d.person = b.person;
DROP TABLE persons_before;
DROP TABLE disabled;
CREATE UNIQUE INDEX persons_host ON persons (host) WHERE host = 1;
-- Somebody with a name is of one org.
CREATE UNIQUE INDEX persons_named  ON persons (person) WHERE handle IS NOT NULL;
CREATE UNIQUE INDEX persons_handle ON persons (org, handle_key) WHERE handle IS NOT NULL;
CREATE INDEX persons_login         ON persons (handle_key) WHERE handle IS NOT NULL;
CREATE UNIQUE INDEX persons_email  ON persons (email, org) WHERE email IS NOT NULL;
CREATE INDEX persons_owners        ON persons (org) WHERE role = 'owner' AND disabled_at IS NULL;

CREATE TABLE groups (
    gid  INTEGER PRIMARY KEY,
    id   BLOB    NOT NULL UNIQUE,
    oid  INTEGER NOT NULL,
    name TEXT    NOT NULL,
    UNIQUE (oid, name)
) STRICT;

CREATE TABLE group_people (
    gid INTEGER NOT NULL,
    pid INTEGER NOT NULL,
    PRIMARY KEY (gid, pid)
) STRICT, WITHOUT ROWID;
CREATE INDEX group_people_of_person ON group_people (pid);

-- What others than the owner may do with a session. Changing a row here raises the session's revision.
ALTER TABLE grants RENAME TO grants_before;
DROP INDEX grants_of_session;
CREATE TABLE grants (
    kind    INTEGER NOT NULL,
    grantee BLOB    NOT NULL,
    sid     INTEGER NOT NULL,
    granted TEXT    NOT NULL,
    by      INTEGER NOT NULL, -- pid
    since   INTEGER NOT NULL,
    PRIMARY KEY (kind, grantee, sid)
) STRICT, WITHOUT ROWID;
INSERT INTO grants (kind, grantee, sid, granted, by, since)
    SELECT 0, b.person, b.sid, b.granted, s.owner, s.made_at
    FROM grants_before b JOIN sessions s ON s.sid = b.sid ORDER BY b.person, b.sid;
DROP TABLE grants_before;
CREATE INDEX grants_of_session ON grants (sid);

-- An agent that is not here is open to everybody who may make sessions. The first thing that is given on one puts it here.
CREATE TABLE closed_agents (
    oid   INTEGER NOT NULL,
    agent TEXT    NOT NULL,
    PRIMARY KEY (oid, agent)
) STRICT, WITHOUT ROWID;

CREATE TABLE agent_grants (
    oid     INTEGER NOT NULL,
    agent   TEXT    NOT NULL,
    kind    INTEGER NOT NULL,
    grantee BLOB    NOT NULL,
    granted TEXT    NOT NULL,
    by      INTEGER NOT NULL, -- pid
    since   INTEGER NOT NULL,
    PRIMARY KEY (oid, agent, kind, grantee)
) STRICT, WITHOUT ROWID;

-- Directories that may be chosen for a session, each with everything under it.
CREATE TABLE roots (
    oid       INTEGER NOT NULL,
    directory TEXT    NOT NULL,
    kind      INTEGER NOT NULL,
    grantee   BLOB    NOT NULL,
    PRIMARY KEY (oid, directory, kind, grantee)
) STRICT, WITHOUT ROWID;

-- Credentials. Nobody keeps their secrets; these are hashes.
ALTER TABLE tokens RENAME TO tokens_before;
CREATE TABLE tokens (
    token       BLOB    NOT NULL PRIMARY KEY,
    hash        BLOB    NOT NULL UNIQUE,
    previous    BLOB,             -- the hash that was replaced, which counts until `old_until`
    old_until   INTEGER,
    pid         INTEGER NOT NULL,
    purpose     TEXT    NOT NULL,
    name        TEXT,
    rights      INTEGER NOT NULL, -- one bit each
    client      TEXT,
    session     BLOB,             -- the one session and turn it is for
    turn        INTEGER,
    made_at     INTEGER NOT NULL,
    expires     INTEGER,
    idle_ms_max INTEGER,
    last_used   INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO tokens (token, hash, pid, purpose, rights, client, made_at, expires)
    SELECT randomblob(16), b.hash, p.pid,
        CASE WHEN b.purpose IN ('machine', 'browser') THEN b.purpose ELSE 'api' END, 31, b.client, b.made_at, b.expires
    FROM tokens_before b JOIN persons p ON p.person = b.person AND p.handle IS NOT NULL;
DROP TABLE tokens_before;
CREATE UNIQUE INDEX tokens_previous ON tokens (previous) WHERE previous IS NOT NULL;
CREATE INDEX tokens_of_person       ON tokens (pid, made_at);
CREATE INDEX tokens_of_session      ON tokens (session) WHERE session IS NOT NULL;
CREATE INDEX tokens_expiring        ON tokens (expires) WHERE expires IS NOT NULL;

-- What lets somebody in, once.
CREATE TABLE links (
    hash    BLOB    NOT NULL PRIMARY KEY,
    pid     INTEGER NOT NULL,
    expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX links_of_person ON links (pid);
CREATE INDEX links_expiring  ON links (expires);

-- By which names identity providers know people.
CREATE TABLE identities (
    issuer  TEXT    NOT NULL,
    subject TEXT    NOT NULL,
    pid     INTEGER NOT NULL,
    PRIMARY KEY (issuer, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX identities_of_person ON identities (pid);

-- Whose unfinished messages are looked at again when what they may do has changed.
CREATE INDEX messages_by ON messages (by, sid) WHERE pending = 1;

-- Only ever added to. It has no index but its number: what finds entries is made when they are sealed, so that whoever
-- brings a message does not wait for it.
ALTER TABLE audit RENAME TO audit_before;
CREATE TABLE audit (
    entry       INTEGER PRIMARY KEY AUTOINCREMENT,
    at          INTEGER NOT NULL,
    oid         INTEGER NOT NULL,
    by          INTEGER,          -- pid; none if nobody knows who it was
    verb        TEXT    NOT NULL,
    door        TEXT    NOT NULL,
    address     TEXT,             -- where they were
    correlation TEXT    NOT NULL,
    session     BLOB,
    subject     TEXT,             -- ids and names of what else it was about, with spaces between them
    refused     TEXT
) STRICT;
-- What the subjects were is copied by the code beside this step: they were bits.
INSERT INTO audit (entry, at, oid, by, verb, door, correlation, session, refused)
    SELECT a.entry, a.at, o.oid, a.by, a.verb, a.door, a.correlation, a.session, a.refused
    FROM audit_before a JOIN persons p ON p.pid = a.by JOIN orgs o ON o.org = p.org ORDER BY a.entry;

-- The chain: an org's entries in their order, each with its seal.
CREATE TABLE audit_chain (
    oid    INTEGER NOT NULL,
    number INTEGER NOT NULL,
    entry  INTEGER NOT NULL,
    seal   BLOB    NOT NULL,
    at     INTEGER NOT NULL, -- the latest moment in the chain up to here, so that it never goes back
    by     INTEGER,          -- as in the entry
    verb   TEXT    NOT NULL, -- as in the entry
    PRIMARY KEY (oid, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_by   ON audit_chain (by, number) WHERE by IS NOT NULL;
CREATE INDEX audit_verb ON audit_chain (oid, verb, number);

-- What sealed entries are about: the session's id, and each word of the subject.
CREATE TABLE audit_about (
    oid    INTEGER NOT NULL,
    about  TEXT    NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (oid, about, number)
) STRICT, WITHOUT ROWID;

-- Where each org's chain ends.
CREATE TABLE audit_heads (
    oid    INTEGER PRIMARY KEY,
    number INTEGER NOT NULL,
    seal   BLOB    NOT NULL,
    at     INTEGER NOT NULL
) STRICT;

-- The last entry that was sealed.
ALTER TABLE counters ADD COLUMN sealed INTEGER NOT NULL DEFAULT 0;

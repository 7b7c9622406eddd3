-- Times are milliseconds since 1970. Ids are the 16 bytes of their bits, stored once where they are made; inside, rows
-- are joined by the small integers `sid` (session), `pid` (person in an org), `mid` (message), `rid` (request).
-- Whatever grows with use is inserted in the order of its primary key.

-- Numbers that only ever grow, even when the rows that had the last ones are gone. Written once per commit.
CREATE TABLE counters (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    inbox INTEGER NOT NULL,
    body  INTEGER NOT NULL,
    place INTEGER NOT NULL
) STRICT;
INSERT INTO counters VALUES (1, 0, 0, 0);

-- One row per start of a server on this file; its number is the high half of the term.
CREATE TABLE node_starts (
    start INTEGER PRIMARY KEY,
    node  BLOB    NOT NULL,
    host  TEXT    NOT NULL,
    pid   INTEGER NOT NULL,
    since INTEGER NOT NULL,
    url   TEXT
) STRICT;

CREATE TABLE persons (
    pid      INTEGER PRIMARY KEY,
    person   BLOB    NOT NULL,
    org      BLOB    NOT NULL,
    handle   TEXT,
    client   TEXT,
    machine  INTEGER NOT NULL DEFAULT 0, -- whether this is the owner of the machine
    opened   INTEGER NOT NULL DEFAULT 0, -- sessions of this person that are open now
    UNIQUE (person, org)
) STRICT;
CREATE UNIQUE INDEX persons_machine ON persons (machine) WHERE machine = 1;

-- Who may do nothing any more.
CREATE TABLE disabled (
    person BLOB NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
    hash    BLOB    NOT NULL PRIMARY KEY,
    person  BLOB    NOT NULL,
    purpose TEXT    NOT NULL,
    client  TEXT,
    made_at INTEGER NOT NULL,
    expires INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    sid        INTEGER PRIMARY KEY,
    id         BLOB    NOT NULL UNIQUE,
    owner      INTEGER NOT NULL, -- pid; the org is the owner's
    revision   INTEGER NOT NULL, -- of who may touch it
    title      TEXT,
    scope      TEXT    NOT NULL,
    made_at    INTEGER NOT NULL,
    touched_at INTEGER NOT NULL,
    ended      TEXT,
    archived   INTEGER NOT NULL,
    awake      INTEGER NOT NULL,
    pending    INTEGER NOT NULL, -- messages that are not final
    number     INTEGER NOT NULL, -- of the last fact
    term       INTEGER NOT NULL, -- of the last append
    wake_at    INTEGER,
    place      INTEGER           -- of the last append among all appends
) STRICT;
-- Three lists that never overlap: a message to a session moves it in one of them only.
CREATE INDEX sessions_open     ON sessions (owner, touched_at, id) WHERE archived = 0 AND ended IS NULL;
CREATE INDEX sessions_ended    ON sessions (owner, touched_at, id) WHERE archived = 0 AND ended IS NOT NULL;
CREATE INDEX sessions_archived ON sessions (owner, touched_at, id) WHERE archived = 1;
CREATE INDEX sessions_awake    ON sessions (id) WHERE awake = 1;
CREATE INDEX sessions_wake     ON sessions (wake_at, id) WHERE wake_at IS NOT NULL;
CREATE INDEX sessions_place    ON sessions (owner, place) WHERE place IS NOT NULL;

-- What others than the owner may do. Changing a row here raises the session's revision.
CREATE TABLE grants (
    person  BLOB    NOT NULL,
    sid     INTEGER NOT NULL,
    granted TEXT    NOT NULL,
    PRIMARY KEY (person, sid)
) STRICT, WITHOUT ROWID;
CREATE INDEX grants_of_session ON grants (sid);

CREATE TABLE bindings (
    bid     INTEGER PRIMARY KEY,
    org     BLOB    NOT NULL,
    address TEXT    NOT NULL,
    sid     INTEGER NOT NULL,
    owner   INTEGER NOT NULL, -- pid of the session's owner
    since   INTEGER NOT NULL,
    until   INTEGER           -- when its session ended; none while it holds
) STRICT;
CREATE UNIQUE INDEX bindings_open  ON bindings (org, address) WHERE until IS NULL;
CREATE INDEX bindings_past         ON bindings (org, address, bid) WHERE until IS NOT NULL;
CREATE INDEX bindings_of_session   ON bindings (sid) WHERE until IS NULL;
CREATE INDEX bindings_of_owner     ON bindings (owner, address) WHERE until IS NULL;

-- What people and agents said. Nothing else holds their words, so forgetting is deleting here.
CREATE TABLE bodies (
    body  INTEGER PRIMARY KEY,
    words BLOB NOT NULL
) STRICT;

CREATE TABLE messages (
    mid            INTEGER PRIMARY KEY,
    id             BLOB    NOT NULL UNIQUE,
    sid            INTEGER NOT NULL,
    by             INTEGER NOT NULL, -- pid
    body           INTEGER,
    reply          TEXT,
    created        INTEGER NOT NULL,
    previous       BLOB,
    previous_why   TEXT,
    if_new_ignored INTEGER NOT NULL,
    accepted_at    INTEGER NOT NULL,
    -- All below follows from the facts.
    state          TEXT    NOT NULL,
    pending        INTEGER NOT NULL, -- 1 until the state is final
    why            TEXT,
    revision       INTEGER NOT NULL,
    seat           INTEGER NOT NULL, -- its place in the queue
    turn           INTEGER,
    first          INTEGER,
    last           INTEGER,
    changed_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX messages_turn  ON messages (sid, turn) WHERE turn IS NOT NULL;
CREATE INDEX messages_queue ON messages (sid, seat) WHERE pending = 1;

-- Wishes that are not messages, and what the keeper said to them.
CREATE TABLE requests (
    rid     INTEGER PRIMARY KEY,
    id      BLOB    NOT NULL UNIQUE,
    sid     INTEGER NOT NULL,
    message BLOB,    -- whose words an edit replaces
    body    INTEGER, -- the new words, until the verdict
    verdict TEXT
) STRICT;

-- What waits for keepers. Small: rows go as soon as they have become facts.
CREATE TABLE inbox (
    session BLOB    NOT NULL,
    number  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    kind    TEXT    NOT NULL, -- say, request, wake
    id      BLOB,             -- of the message or request
    by      BLOB,             -- the person
    wish    TEXT,
    PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE facts (
    id     INTEGER PRIMARY KEY,
    sid    INTEGER NOT NULL,
    number INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    cause  TEXT    NOT NULL,
    rule   INTEGER NOT NULL, -- 1: `fact` is a rule fact; 0: a story fact, of which `turn`, `kind` and `body` tell
    fact   TEXT,
    turn   INTEGER,
    kind   TEXT,
    body   INTEGER
) STRICT;
CREATE UNIQUE INDEX facts_number ON facts (sid, number);
CREATE INDEX facts_rule          ON facts (sid, number) WHERE rule = 1;

-- May be emptied at any time.
CREATE TABLE checkpoints (
    sid    INTEGER PRIMARY KEY,
    number INTEGER NOT NULL,
    facts  TEXT    NOT NULL
) STRICT;

CREATE TABLE approvals (
    aid      INTEGER PRIMARY KEY,
    id       BLOB    NOT NULL UNIQUE,
    sid      INTEGER NOT NULL,
    owner    INTEGER NOT NULL, -- pid of the session's owner
    turn     INTEGER NOT NULL,
    state    TEXT    NOT NULL, -- open, yes, no, lapsed
    by       BLOB,
    asked_at INTEGER NOT NULL,
    until    INTEGER NOT NULL
) STRICT;
CREATE INDEX approvals_open ON approvals (owner, asked_at, id) WHERE state = 'open';

CREATE TABLE claims (
    name TEXT    NOT NULL,
    sid  INTEGER NOT NULL,
    PRIMARY KEY (name, sid)
) STRICT, WITHOUT ROWID;
CREATE INDEX claims_of_session ON claims (sid);

-- What makes a repeated wish the same wish.
CREATE TABLE keys (
    by      INTEGER NOT NULL, -- pid
    verb    TEXT    NOT NULL,
    key     TEXT    NOT NULL,
    hash    BLOB    NOT NULL,
    made    BLOB    NOT NULL, -- the id of what came of it
    expires INTEGER,
    PRIMARY KEY (by, verb, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX keys_expiring ON keys (expires) WHERE expires IS NOT NULL;

CREATE TABLE outbox (
    oid     INTEGER PRIMARY KEY AUTOINCREMENT,
    sid     INTEGER NOT NULL,
    address TEXT    NOT NULL,
    message BLOB    NOT NULL,
    kind    TEXT    NOT NULL,
    state   TEXT    NOT NULL,
    tries   INTEGER NOT NULL,
    due_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX outbox_due   ON outbox (due_at, oid) WHERE state = 'waiting';
CREATE INDEX outbox_state ON outbox (state, oid);

-- Only ever added to. `sealed` is for the hash chain over the entries before.
CREATE TABLE audit (
    entry       INTEGER PRIMARY KEY AUTOINCREMENT,
    at          INTEGER NOT NULL,
    by          INTEGER NOT NULL, -- pid
    verb        TEXT    NOT NULL,
    door        TEXT    NOT NULL,
    correlation TEXT    NOT NULL,
    session     BLOB,
    subject     BLOB,             -- the id of the message or request
    refused     TEXT,
    sealed      BLOB
) STRICT;

-- A reply on its way out knows its scheme, so that a door takes its own; who sends it, so that a start looks after its own
-- node's; what the service calls it; and why it does not go on. `due_at` is when it is looked at again by itself: sent if it
-- waits, read back if nobody knows whether it was sent; none if it is not.
CREATE TABLE outbox_new (
    oid        INTEGER PRIMARY KEY AUTOINCREMENT,
    sid        INTEGER NOT NULL,
    address    TEXT    NOT NULL,
    scheme     TEXT    NOT NULL, -- of the address
    message    BLOB    NOT NULL,
    kind       TEXT    NOT NULL,
    state      TEXT    NOT NULL,
    tries      INTEGER NOT NULL,
    due_at     INTEGER,
    node       BLOB,             -- who is sending it
    service_id TEXT,
    reason     TEXT,
    since      INTEGER NOT NULL  -- when it came into its state
) STRICT;
INSERT INTO outbox_new (oid, sid, address, scheme, message, kind, state, tries, due_at, since)
    SELECT oid, sid, address, substr(address, 1, instr(address, ':') - 1), message, kind, state, tries,
        CASE WHEN state IN ('waiting', 'unknown') THEN due_at END, 0
    FROM outbox ORDER BY oid;
DROP TABLE outbox;
ALTER TABLE outbox_new RENAME TO outbox;
CREATE INDEX outbox_due     ON outbox (state, due_at, oid) WHERE due_at IS NOT NULL;
CREATE INDEX outbox_address ON outbox (address, oid) WHERE (state = 'sending' OR due_at IS NOT NULL);
CREATE INDEX outbox_state   ON outbox (state, oid);

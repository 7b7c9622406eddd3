-- Where notifications go: at most one place for each credential, the browser's that asked for them. It goes with the credential,
-- whichever way that goes.
CREATE TABLE pushes (
    token    BLOB    NOT NULL PRIMARY KEY,
    pid      INTEGER NOT NULL,
    endpoint TEXT    NOT NULL, -- of the push service
    p256dh   BLOB    NOT NULL, -- the browser's public key
    auth     BLOB    NOT NULL, -- what only the browser and we know
    since    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX pushes_of_person ON pushes (pid, since);
CREATE INDEX pushes_at        ON pushes (endpoint);
CREATE TRIGGER pushes_go AFTER DELETE ON tokens BEGIN
    DELETE FROM pushes WHERE token = OLD.token;
END;

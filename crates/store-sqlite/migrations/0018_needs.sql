-- Open sessions that need somebody, each kind in the order of the list, and the forks of a session. A column of these changes when a
-- question is asked or answered, a message held or let go, and when a turn ends: no append besides those touches them.
CREATE INDEX sessions_questions ON sessions (owner, touched_at, id) WHERE archived = 0 AND ended IS NULL AND questions > 0;
CREATE INDEX sessions_held      ON sessions (owner, touched_at, id) WHERE archived = 0 AND ended IS NULL AND held > 0;
CREATE INDEX sessions_failed    ON sessions (owner, touched_at, id)
    WHERE archived = 0 AND ended IS NULL AND last_outcome NOT IN ('answered', 'stopped');
CREATE INDEX sessions_origin    ON sessions (origin) WHERE origin IS NOT NULL;

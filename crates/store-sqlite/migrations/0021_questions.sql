-- Questions are listed when they are settled, too: each state in the order in which they were asked, of an owner and of a session.
-- A session that was handed over took its open ones along; the settled ones follow it now, as they always could be read by their ids.
UPDATE approvals SET owner = s.owner FROM sessions AS s WHERE s.sid = approvals.sid AND s.owner <> approvals.owner;
DROP INDEX approvals_open;
CREATE INDEX approvals_of_owner   ON approvals (owner, state, asked_at, id);
CREATE INDEX approvals_of_session ON approvals (sid, state, asked_at, id);

-- What a list shows of a session besides where it acts: open questions, held messages, and how its last turn ended. All of it follows
-- from the facts. The beginning of the last words in that turn is read from the log by the code beside this step.
ALTER TABLE sessions ADD COLUMN questions    INTEGER NOT NULL DEFAULT 0; -- approvals that are open
ALTER TABLE sessions ADD COLUMN held         INTEGER NOT NULL DEFAULT 0; -- messages that are held
ALTER TABLE sessions ADD COLUMN last_outcome TEXT;
ALTER TABLE sessions ADD COLUMN last_number  INTEGER; -- of the fact that ended it
ALTER TABLE sessions ADD COLUMN last_at      INTEGER;
ALTER TABLE sessions ADD COLUMN last_words   TEXT;
-- The beginning of the agent's last words so far, in whichever turn.
ALTER TABLE sessions ADD COLUMN words_turn   INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN words_part   INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN words        TEXT    NOT NULL DEFAULT '';

UPDATE sessions SET questions = a.count FROM (
    SELECT sid, count(*) AS count FROM approvals WHERE state = 'open' GROUP BY sid
) AS a WHERE a.sid = sessions.sid;
UPDATE sessions SET held = m.count FROM (
    SELECT sid, count(*) AS count FROM messages WHERE pending = 1 AND state = 'held' GROUP BY sid
) AS m WHERE m.sid = sessions.sid;
UPDATE sessions SET (last_outcome, last_number, last_at) = (
    SELECT CASE m.state WHEN 'failed' THEN m.why ELSE m.state END, m.last, m.changed_at FROM messages m
    WHERE m.sid = sessions.sid AND m.turn IS NOT NULL AND m.last IS NOT NULL ORDER BY m.turn DESC LIMIT 1
);

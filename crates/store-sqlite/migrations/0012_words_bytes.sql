-- The room that words take, with 512 bytes for the rows that go along with each: of a session, and of all sessions of a person.
ALTER TABLE sessions ADD COLUMN words_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE persons ADD COLUMN words_bytes INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET words_bytes = w.bytes FROM (
    SELECT sid, sum(bytes) AS bytes FROM (
        SELECT m.sid AS sid, length(b.words) + 512 AS bytes FROM messages m JOIN bodies b ON b.body = m.body
        UNION ALL
        SELECT f.sid, length(b.words) + 512 FROM facts f JOIN bodies b ON b.body = f.body
        UNION ALL
        SELECT r.sid, length(b.words) + 512 FROM requests r JOIN bodies b ON b.body = r.body
    ) GROUP BY sid
) AS w WHERE w.sid = sessions.sid;
UPDATE persons SET words_bytes = w.bytes FROM (
    SELECT owner, sum(words_bytes) AS bytes FROM sessions GROUP BY owner
) AS w WHERE w.owner = persons.pid;

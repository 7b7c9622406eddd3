-- Each person has addresses of their own: those that name them, and those of programs, editors and tool callers. The same words of two
-- people are two conversations. What is bound so belongs to whose session it is; nobody else has one of these words yet.
ALTER TABLE bindings ADD COLUMN whose INTEGER NOT NULL DEFAULT 0; -- pid; 0 is everybody's
UPDATE bindings SET whose = owner
    WHERE substr(address, 1, instr(address, ':') - 1) IN ('cli', 'web', 'api', 'acp', 'mcp');
DROP INDEX bindings_open;
DROP INDEX bindings_past;
CREATE UNIQUE INDEX bindings_open ON bindings (org, address, whose) WHERE until IS NULL;
CREATE INDEX bindings_past        ON bindings (org, address, whose, bid) WHERE until IS NOT NULL;

-- A link that was made with a token goes with it.
ALTER TABLE links ADD COLUMN parent BLOB;
CREATE INDEX links_made_with ON links (parent) WHERE parent IS NOT NULL;

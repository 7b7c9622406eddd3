//! What the writer works with: its connection, the numbers that only grow, and the small steps that many changes share.

use crate::columns::{Columns, Id, int};
use crate::trouble::Trouble;
use crate::writer::Tally;
use kernel::{EndWhy, Moment, Number, OrgId, PersonId, Principal, SessionId, Term};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::HashMap;
use std::sync::Arc;
use store::{NodeRow, Trail, record};

/// A person's small number in the file.
pub(crate) type Pid = i64;
/// A session's small number in the file.
pub(crate) type Sid = i64;

/// People whose small numbers are remembered between changes.
const PIDS_MAX: usize = 1_024;

/// What the writer reads of a session, in the order of `Kept`.
pub(crate) const KEPT: &str =
    "SELECT s.sid, s.owner, p.person, p.org, s.revision, s.ended, s.awake, s.pending, s.number, s.term, s.wake_at,
        s.touched_at
     FROM sessions s JOIN persons p ON p.pid = s.owner WHERE s.id = ?1";

pub(crate) struct Desk {
    db: Connection,
    counters: Counters,
    /// As they are in the file.
    stored: Counters,
    pids: HashMap<(OrgId, PersonId), Pid>,
    tally: Arc<Tally>,
}

/// Numbers that only ever grow, even when the rows that had the last ones are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counters {
    inbox: i64,
    body: i64,
    place: i64,
}

/// A session as the writer sees it.
pub(crate) struct Kept {
    pub(crate) sid: Sid,
    pub(crate) owner: Pid,
    pub(crate) owner_person: PersonId,
    pub(crate) org: OrgId,
    pub(crate) revision: u64,
    pub(crate) ended: Option<EndWhy>,
    pub(crate) awake: bool,
    pub(crate) pending: u32,
    pub(crate) number: Number,
    pub(crate) term: Term,
    pub(crate) wake_at: Option<u64>,
    pub(crate) touched_at: Moment,
}

impl Desk {
    pub(crate) fn new(db: Connection, tally: Arc<Tally>) -> Result<Self, Trouble> {
        let stored = db.query_row("SELECT inbox, body, place FROM counters", [], |row| {
            Ok(Counters { inbox: row.get(0)?, body: row.get(1)?, place: row.get(2)? })
        })?;
        Ok(Self { db, counters: stored, stored, pids: HashMap::new(), tally })
    }

    pub(crate) fn db(&self) -> &Connection {
        &self.db
    }

    pub(crate) fn tally(&self) -> Arc<Tally> {
        self.tally.clone()
    }

    /// Runs one of our statements; it is prepared once.
    pub(crate) fn run(&self, sql: &str, params: impl rusqlite::Params) -> Result<usize, Trouble> {
        Ok(self.db.prepare_cached(sql)?.execute(params)?)
    }

    // A group's transaction, and a change's part of it.

    pub(crate) fn begin(&self) -> Result<(), Trouble> {
        self.run("BEGIN IMMEDIATE", []).map(drop)
    }

    pub(crate) fn commit(&mut self) -> Result<(), Trouble> {
        self.run("COMMIT", [])?;
        self.stored = self.counters;
        Ok(())
    }

    /// Whatever state the transaction is in, there is none after this. Numbers that were given out are not used again.
    pub(crate) fn roll_back(&mut self) {
        self.pids.clear();
        if !self.db.is_autocommit()
            && let Err(error) = self.db.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a transaction could not be rolled back");
        }
    }

    pub(crate) fn set_apart(&self) -> Result<(), Trouble> {
        self.run("SAVEPOINT change", []).map(drop)
    }

    pub(crate) fn keep(&self) -> Result<(), Trouble> {
        self.run("RELEASE change", []).map(drop)
    }

    pub(crate) fn take_back(&mut self) -> Result<(), Trouble> {
        self.pids.clear();
        self.run("ROLLBACK TO change", [])?;
        self.keep()
    }

    pub(crate) fn write_counters(&self) -> Result<(), Trouble> {
        if self.counters != self.stored {
            let Counters { inbox, body, place } = self.counters;
            self.run("UPDATE counters SET inbox = ?1, body = ?2, place = ?3", params![inbox, body, place])?;
        }
        Ok(())
    }

    /// Commits something of its own after a commit of unknown outcome. Its frames take the place of the ones that
    /// nobody knows about, so that what a reader finds now is what a restart will find, too.
    pub(crate) fn settle(&mut self) -> Result<(), Trouble> {
        self.counters.place += 1;
        self.begin()?;
        self.write_counters()?;
        self.commit()
    }

    pub(crate) fn next_inbox(&mut self) -> i64 {
        self.counters.inbox += 1;
        self.counters.inbox
    }

    pub(crate) fn last_inbox(&self) -> i64 {
        self.counters.inbox
    }

    pub(crate) fn next_place(&mut self) -> i64 {
        self.counters.place += 1;
        self.counters.place
    }

    // Steps that many changes share.

    /// Writes down that a server started, and under which term.
    pub(crate) fn start_node(&mut self, node: &NodeRow) -> Result<Term, Trouble> {
        self.begin()?;
        self.run(
            "INSERT INTO node_starts (node, host, pid, since) VALUES (?1, ?2, ?3, ?4)",
            params![node.node.stored(), node.host, node.pid, int(node.since.0)],
        )?;
        let start = self.db.last_insert_rowid();
        // Nobody knows what became of a reply that was being sent when the last server went.
        self.run("UPDATE outbox SET state = 'unknown' WHERE state = 'sending'", [])?;
        self.commit()?;
        Ok(Term(start.unsigned_abs() << 32))
    }

    pub(crate) fn pid_of(&mut self, by: &Principal) -> Result<Pid, Trouble> {
        self.pid(by.org, by.person)
    }

    /// The person's small number, given out at the first sight of them.
    pub(crate) fn pid(&mut self, org: OrgId, person: PersonId) -> Result<Pid, Trouble> {
        if let Some(pid) = self.pids.get(&(org, person)) {
            return Ok(*pid);
        }
        let known = pid(&self.db, org, person)?;
        let pid = match known {
            Some(pid) => pid,
            None => {
                let row = params![person.stored(), org.stored()];
                self.run("INSERT INTO persons (person, org) VALUES (?1, ?2)", row)?;
                self.db.last_insert_rowid()
            }
        };
        if self.pids.len() >= PIDS_MAX {
            self.pids.clear();
        }
        self.pids.insert((org, person), pid);
        Ok(pid)
    }

    pub(crate) fn kept(&self, session: SessionId) -> Result<Option<Kept>, Trouble> {
        let mut query = self.db.prepare_cached(KEPT)?;
        let mut rows = query.query(params![session.stored()])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let row = Columns(row);
        Ok(Some(Kept {
            sid: row.int(0)?,
            owner: row.int(1)?,
            owner_person: row.id(2)?,
            org: row.id(3)?,
            revision: row.count(4)?,
            ended: row.word_maybe(5, record::end_parse)?,
            awake: row.flag(6)?,
            pending: row.small(7)?,
            number: row.number(8)?,
            term: Term(row.count(9)?),
            wake_at: row.count_maybe(10)?,
            touched_at: row.moment(11)?,
        }))
    }

    /// Keeps words, and says where.
    pub(crate) fn keep_words(&mut self, words: &[u8]) -> Result<i64, Trouble> {
        self.counters.body += 1;
        let body = self.counters.body;
        self.run("INSERT INTO bodies (body, words) VALUES (?1, ?2)", params![body, words])?;
        Ok(body)
    }

    pub(crate) fn forget_words(&self, body: Option<i64>) -> Result<(), Trouble> {
        match body {
            Some(body) => self.run("DELETE FROM bodies WHERE body = ?1", [body]).map(drop),
            None => Ok(()),
        }
    }

    pub(crate) fn audit(
        &self,
        by: Pid,
        trail: &Trail,
        session: Option<SessionId>,
        subject: Option<[u8; 16]>,
        refused: Option<&str>,
    ) -> Result<(), Trouble> {
        let session = session.map(Id::stored);
        self.run(
            "INSERT INTO audit (at, by, verb, door, correlation, session, subject, refused)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                int(trail.at.0),
                by,
                trail.verb,
                trail.door,
                trail.correlation,
                session,
                subject,
                refused
            ],
        )
        .map(drop)
    }
}

/// The person's small number, if anybody has ever heard of them.
pub(crate) fn pid(db: &Connection, org: OrgId, person: PersonId) -> Result<Option<Pid>, Trouble> {
    let mut query = db.prepare_cached("SELECT pid FROM persons WHERE person = ?1 AND org = ?2")?;
    Ok(query.query_row(params![person.stored(), org.stored()], |row| row.get(0)).optional()?)
}

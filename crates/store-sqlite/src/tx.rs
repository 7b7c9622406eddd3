//! The transaction that the writer has open: its connection, the numbers that only grow, and the small steps that many changes share.

use crate::audit;
use crate::columns::{Columns, Id, int};
use crate::error::SqliteError;
use crate::search;
use crate::way_in;
use crate::writer::Tally;
use kernel::{EndWhy, Moment, Number, OrgId, PersonId, Record, SessionId, Term, TokenId, Turn};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::HashMap;
use std::sync::Arc;
use store::plan::CredentialRow;
use store::{
    AuditRow, AuditSubject, LastWords, NewAttachment, NodeRow, TitleBy, Trail, WORDS_ROW_BYTES, record,
};

/// A person's small number in the file.
pub(crate) type Pid = i64;
/// An org's small number in the file.
pub(crate) type Oid = i64;
/// A session's small number in the file.
pub(crate) type Sid = i64;

/// People, and credentials, that are remembered between changes.
const PEOPLE_MAX: usize = 1_024;
/// Sessions of which it is remembered who may touch them.
const RECORDS_MAX: usize = 1_024;

/// The columns that the writer reads of a session, in the order of `StoredSession`.
pub(crate) const STORED_SESSION: &str =
    "SELECT s.sid, s.owner, p.org, s.revision, s.ended, s.awake, s.pending, s.number, s.term, s.wake_at,
        s.touched_at, s.words_bytes, p.words_bytes, s.words_turn, s.words_part, s.words
     FROM sessions s JOIN persons p ON p.pid = s.owner WHERE s.id = ?1";

pub(crate) struct SqliteTx {
    db: Connection,
    counters: Counters,
    /// As they are in the file.
    stored: Counters,
    /// As they are in the file: whatever changes them empties this.
    people: HashMap<(OrgId, PersonId), PersonRef>,
    /// Credentials that are for no turn, and whose they are. Emptied together with `people`.
    credentials: HashMap<TokenId, (CredentialRow, Pid)>,
    /// The records that were last read of who may touch a session. It counts while the session's revision is the same.
    records: HashMap<SessionId, (Sid, Record)>,
    /// The number of the last audit entry of an org.
    entries: HashMap<Oid, i64>,
    /// Tells whether another connection has written since.
    version: i64,
    tally: Arc<Tally>,
}

/// Numbers that only ever grow, even when the rows that had the last ones are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counters {
    inbox: i64,
    body: i64,
    place: i64,
}

/// Somebody as the writer sees them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PersonRef {
    pub(crate) pid: Pid,
    pub(crate) oid: Oid,
    /// None if they cannot come in: they are disabled, or were only heard of.
    pub(crate) standing: Option<u64>,
}

/// A session as the writer sees it.
pub(crate) struct StoredSession {
    pub(crate) sid: Sid,
    pub(crate) owner: Pid,
    pub(crate) org: OrgId,
    pub(crate) ended: Option<EndWhy>,
    pub(crate) awake: bool,
    pub(crate) pending: u32,
    pub(crate) number: Number,
    pub(crate) term: Term,
    pub(crate) wake_at: Option<u64>,
    pub(crate) touched_at: Moment,
    /// The room that its words take.
    pub(crate) words_bytes: i64,
    /// The same of all sessions of its owner.
    pub(crate) owner_words_bytes: u64,
    /// The beginning of the agent's last words so far.
    pub(crate) words: LastWords,
}

impl SqliteTx {
    pub(crate) fn new(db: Connection, tally: Arc<Tally>) -> Result<Self, SqliteError> {
        let stored = db.query_row("SELECT inbox, body, place FROM counters", [], |row| {
            Ok(Counters { inbox: row.get(0)?, body: row.get(1)?, place: row.get(2)? })
        })?;
        Ok(Self {
            db,
            counters: stored,
            stored,
            people: HashMap::new(),
            credentials: HashMap::new(),
            records: HashMap::new(),
            entries: HashMap::new(),
            version: 0,
            tally,
        })
    }

    pub(crate) fn db(&self) -> &Connection {
        &self.db
    }

    pub(crate) fn tally(&self) -> Arc<Tally> {
        self.tally.clone()
    }

    /// Runs one of our statements; it is prepared once.
    pub(crate) fn run(&self, sql: &str, params: impl rusqlite::Params) -> Result<usize, SqliteError> {
        Ok(self.db.prepare_cached(sql)?.execute(params)?)
    }

    // A group's transaction, and a change's part of it.

    pub(crate) fn begin(&mut self) -> Result<(), SqliteError> {
        self.run("BEGIN IMMEDIATE", [])?;
        let version = self.db.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        // Nobody else writes while we hold the directory; if somebody does all the same (by hand, say), we look again.
        if version != self.version {
            self.version = version;
            self.forget_all();
        }
        Ok(())
    }

    pub(crate) fn commit(&mut self) -> Result<(), SqliteError> {
        self.run("COMMIT", [])?;
        self.stored = self.counters;
        Ok(())
    }

    /// Whatever state the transaction is in, there is none after this. Numbers that were given out are not used again.
    pub(crate) fn roll_back(&mut self) {
        self.forget_all();
        if !self.db.is_autocommit()
            && let Err(error) = self.db.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a transaction could not be rolled back");
        }
    }

    pub(crate) fn set_apart(&self) -> Result<(), SqliteError> {
        self.run("SAVEPOINT change", []).map(drop)
    }

    pub(crate) fn keep(&self) -> Result<(), SqliteError> {
        self.run("RELEASE change", []).map(drop)
    }

    pub(crate) fn take_back(&mut self) -> Result<(), SqliteError> {
        self.forget_all();
        self.run("ROLLBACK TO change", [])?;
        self.keep()
    }

    pub(crate) fn write_counters(&self) -> Result<(), SqliteError> {
        if self.counters != self.stored {
            let Counters { inbox, body, place } = self.counters;
            self.run("UPDATE counters SET inbox = ?1, body = ?2, place = ?3", params![inbox, body, place])?;
        }
        Ok(())
    }

    /// Commits something of its own after a commit of unknown outcome. Its frames take the place of the ones that
    /// nobody knows about, so that what a reader finds now is what a restart will find, too.
    pub(crate) fn settle(&mut self) -> Result<(), SqliteError> {
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
    pub(crate) fn start_node(&mut self, node: &NodeRow) -> Result<Term, SqliteError> {
        self.begin()?;
        self.run(
            "INSERT INTO node_starts (node, host, pid, since) VALUES (?1, ?2, ?3, ?4)",
            params![node.node.stored(), node.host, node.pid, int(node.since.0)],
        )?;
        let start = self.db.last_insert_rowid();
        crate::outbox::orphan(self, &node.host, node.since)?;
        self.commit()?;
        Ok(Term(start.unsigned_abs() << 32))
    }

    /// PersonRef this is, if there is anybody of that name.
    pub(crate) fn who(&mut self, org: OrgId, person: PersonId) -> Result<Option<PersonRef>, SqliteError> {
        if let Some(who) = self.people.get(&(org, person)) {
            return Ok(Some(*who));
        }
        let Some(who) = who(&self.db, org, person)? else { return Ok(None) };
        if self.people.len() >= PEOPLE_MAX {
            self.people.clear();
        }
        self.people.insert((org, person), who);
        Ok(Some(who))
    }

    /// PersonRef this is. Somebody who was never heard of gets a number, and nothing else.
    pub(crate) fn who_at_first_sight(
        &mut self,
        org: OrgId,
        person: PersonId,
    ) -> Result<PersonRef, SqliteError> {
        if let Some(who) = self.who(org, person)? {
            return Ok(who);
        }
        let oid = self.oid_at_first_sight(org)?;
        self.run(
            "INSERT INTO persons (person, org, host, standing, opened, made_at) VALUES (?1, ?2, 0, 0, 0, 0)",
            params![person.stored(), org.stored()],
        )?;
        Ok(PersonRef { pid: self.db.last_insert_rowid(), oid, standing: None })
    }

    fn oid_at_first_sight(&self, org: OrgId) -> Result<Oid, SqliteError> {
        if let Some(oid) = oid(&self.db, org)? {
            return Ok(oid);
        }
        self.run("INSERT INTO orgs (org, opened, made_at) VALUES (?1, 0, 0)", [org.stored()])?;
        Ok(self.db.last_insert_rowid())
    }

    /// Forgets what is remembered of people, which may no longer be so.
    pub(crate) fn forget_people(&mut self) {
        self.people.clear();
        self.credentials.clear();
    }

    fn forget_all(&mut self) {
        self.forget_people();
        self.records.clear();
        self.entries.clear();
    }

    /// The number of the next audit entry of an org. One that is taken back is given again.
    fn next_entry(&mut self, oid: Oid) -> Result<i64, SqliteError> {
        let last = match self.entries.get(&oid) {
            Some(last) => *last,
            None => audit::last_number(&self.db, oid)?,
        };
        if self.entries.len() >= PEOPLE_MAX {
            self.entries.clear();
        }
        self.entries.insert(oid, last + 1);
        Ok(last + 1)
    }

    /// A credential, and whose it is.
    pub(crate) fn credential_row(
        &mut self,
        token: TokenId,
    ) -> Result<Option<(CredentialRow, Pid)>, SqliteError> {
        if let Some(known) = self.credentials.get(&token) {
            return Ok(Some(*known));
        }
        let Some((row, pid, is_bound)) = way_in::credential(&self.db, token)? else { return Ok(None) };
        if !is_bound {
            if self.credentials.len() >= PEOPLE_MAX {
                self.credentials.clear();
            }
            self.credentials.insert(token, (row, pid));
        }
        Ok(Some((row, pid)))
    }

    /// The record that was read of a session, if it is still so.
    pub(crate) fn known_record(&self, session: SessionId, revision: u64) -> Option<Record> {
        self.records
            .get(&session)
            .map(|(_, record)| record)
            .filter(|record| record.revision == revision)
            .cloned()
    }

    pub(crate) fn remember_record(&mut self, sid: Sid, record: &Record) {
        match self.records.get(&record.session) {
            Some((_, known)) if known.revision == record.revision => return,
            _ => {}
        }
        if self.records.len() >= RECORDS_MAX {
            self.records.clear();
        }
        self.records.insert(record.session, (sid, record.clone()));
    }

    /// A session's small number.
    pub(crate) fn sid(&self, session: SessionId) -> Result<Sid, SqliteError> {
        if let Some((sid, _)) = self.records.get(&session) {
            return Ok(*sid);
        }
        let mut query = self.db.prepare_cached("SELECT sid FROM sessions WHERE id = ?1")?;
        Ok(query.query_row([session.stored()], |row| row.get(0))?)
    }

    pub(crate) fn stored_session(&self, session: SessionId) -> Result<Option<StoredSession>, SqliteError> {
        let mut query = self.db.prepare_cached(STORED_SESSION)?;
        let mut rows = query.query(params![session.stored()])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let row = Columns(row);
        Ok(Some(StoredSession {
            sid: row.int(0)?,
            owner: row.int(1)?,
            org: row.id(2)?,
            ended: row.word_maybe(4, record::end_parse)?,
            awake: row.flag(5)?,
            pending: row.small(6)?,
            number: row.number(7)?,
            term: Term(row.count(8)?),
            wake_at: row.count_maybe(9)?,
            touched_at: row.moment(10)?,
            words_bytes: row.int(11)?,
            owner_words_bytes: row.count(12)?,
            words: LastWords { turn: Turn(row.small(13)?), part: row.small(14)?, text: row.string(15)? },
        }))
    }

    /// Keeps words, and says where.
    pub(crate) fn keep_words(&mut self, words: &[u8]) -> Result<i64, SqliteError> {
        self.counters.body += 1;
        let body = self.counters.body;
        self.run("INSERT INTO bodies (body, words) VALUES (?1, ?2)", params![body, words])?;
        Ok(body)
    }

    /// Keeps what goes along with these words, in its order.
    pub(crate) fn keep_attachments(
        &mut self,
        words: i64,
        attachments: &[NewAttachment],
    ) -> Result<(), SqliteError> {
        for (number, attached) in (1_i64..).zip(attachments) {
            let body = self.keep_words(&attached.content)?;
            self.run(
                "INSERT INTO attachments (words, number, about, body) VALUES (?1, ?2, ?3, ?4)",
                params![words, number, &attached.about[..], body],
            )?;
        }
        Ok(())
    }

    /// Gives a session a title, or takes it away. `of` is the body whose words it is.
    pub(crate) fn put_title(
        &self,
        sid: Sid,
        title: Option<&str>,
        by: Option<TitleBy>,
        of: Option<i64>,
    ) -> Result<(), SqliteError> {
        self.run(
            "UPDATE sessions SET title = ?2, title_by = ?3, title_of = ?4 WHERE sid = ?1",
            params![sid, title, by.map(record::title_by_word), of],
        )
        .map(drop)
    }

    /// Forgets words of a session and what went along with them, and says how much room that took. A title that is of these
    /// words goes with them.
    pub(crate) fn forget_words(&self, sid: Sid, body: Option<i64>) -> Result<i64, SqliteError> {
        let Some(body) = body else { return Ok(0) };
        self.run(
            "UPDATE sessions SET title = NULL, title_by = NULL, title_of = NULL WHERE sid = ?1 AND title_of = ?2",
            params![sid, body],
        )?;
        search::forget(self, body)?;
        let mut query = self.db.prepare_cached("DELETE FROM attachments WHERE words = ?1 RETURNING body")?;
        let attached = query.query_map([body], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
        attached.into_iter().chain([body]).map(|body| self.forget_body(body)).sum()
    }

    fn forget_body(&self, body: i64) -> Result<i64, SqliteError> {
        let mut query =
            self.db.prepare_cached("DELETE FROM bodies WHERE body = ?1 RETURNING length(words)")?;
        let bytes: Option<i64> = query.query_row([body], |row| row.get(0)).optional()?;
        Ok(bytes.map_or(0, |bytes| bytes + int(WORDS_ROW_BYTES)))
    }

    /// So much more room is taken by the words of this session, which are its owner's; less, if it is negative.
    pub(crate) fn count_words(&self, sid: Sid, bytes: i64) -> Result<(), SqliteError> {
        self.run("UPDATE sessions SET words_bytes = words_bytes + ?2 WHERE sid = ?1", params![sid, bytes])?;
        self.count_owners_words(sid, bytes)
    }

    /// The owner's part of it, for whoever writes the session's own row anyway.
    pub(crate) fn count_owners_words(&self, sid: Sid, bytes: i64) -> Result<(), SqliteError> {
        self.run(
            "UPDATE persons SET words_bytes = words_bytes + ?2
             WHERE pid = (SELECT owner FROM sessions WHERE sid = ?1)",
            params![sid, bytes],
        )
        .map(drop)
    }

    /// Writes down that somebody did something.
    pub(crate) fn done(
        &mut self,
        who: PersonRef,
        about: &AuditSubject,
        trail: &Trail,
    ) -> Result<(), SqliteError> {
        self.put_entry(who, about, trail, None)
    }

    /// Writes down that somebody did something, or was refused it.
    pub(crate) fn put_entry(
        &mut self,
        who: PersonRef,
        about: &AuditSubject,
        trail: &Trail,
        refused: Option<&'static str>,
    ) -> Result<(), SqliteError> {
        let address = trail.address.map(|address| address.to_string());
        let number = self.next_entry(who.oid)?;
        self.run(
            "INSERT INTO audit (at, oid, by, verb, door, address, correlation, session, subject, refused, number)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            params![
                int(trail.at.0),
                who.oid,
                who.pid,
                trail.verb,
                trail.door,
                address,
                trail.correlation,
                about.session.map(Id::stored),
                about.subject,
                refused,
                number,
            ],
        )
        .map(drop)
    }

    /// Writes an entry down as it is, but for its number.
    pub(crate) fn write_down(&mut self, row: &AuditRow) -> Result<(), SqliteError> {
        let (oid, by) = match row.by {
            Some(person) => {
                let who = self.who_at_first_sight(row.org, person)?;
                (who.oid, Some(who.pid))
            }
            None => (self.oid_at_first_sight(row.org)?, None),
        };
        let number = self.next_entry(oid)?;
        self.run(
            "INSERT INTO audit (at, oid, by, verb, door, address, correlation, session, subject, refused, number)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            params![
                int(row.at.0),
                oid,
                by,
                row.verb,
                row.door,
                row.address,
                row.correlation,
                row.session.map(Id::stored),
                row.subject,
                row.refused,
                number,
            ],
        )
        .map(drop)
    }
}

pub(crate) const WHO: &str =
    "SELECT p.pid, o.oid, CASE WHEN p.handle IS NOT NULL AND p.disabled_at IS NULL THEN p.standing END
     FROM persons p JOIN orgs o ON o.org = p.org WHERE p.person = ?1 AND p.org = ?2";

/// PersonRef this is, if anybody has ever heard of them.
pub(crate) fn who(db: &Connection, org: OrgId, person: PersonId) -> Result<Option<PersonRef>, SqliteError> {
    let mut query = db.prepare_cached(WHO)?;
    let mut rows = query.query(params![person.stored(), org.stored()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let row = Columns(row);
    Ok(Some(PersonRef { pid: row.int(0)?, oid: row.int(1)?, standing: row.count_maybe(2)? }))
}

/// The org's small number, if anybody has ever heard of it.
pub(crate) fn oid(db: &Connection, org: OrgId) -> Result<Option<Oid>, SqliteError> {
    let mut query = db.prepare_cached("SELECT oid FROM orgs WHERE org = ?1")?;
    Ok(query.query_row([org.stored()], |row| row.get(0)).optional()?)
}

//! The reads of keepers and followers: the log, the words in it, and what waits in the inbox.

use crate::columns::{Columns, Id, int, rows};
use crate::error::SqliteError;
use crate::tx::Sid;
use bytes::Bytes;
use kernel::{Fact, MessageId, Number, RequestId, SessionId, Term, Turn};
use rusqlite::{Connection, OptionalExtension, Row, Rows, params};
use store::{InboxItem, InboxRow, Loaded, StoredEntry, StoredFact, Verdict, record};

pub(crate) fn load(db: &Connection, session: SessionId) -> Result<Option<Loaded>, SqliteError> {
    let mut query = db.prepare_cached(
        "SELECT s.sid, p.org, s.scope, s.number, s.term, s.origin, s.origin_turn, s.enter, p.person
         FROM sessions s JOIN persons p ON p.pid = s.owner WHERE s.id = ?1",
    )?;
    let mut found = query.query([session.stored()])?;
    let Some(row) = found.next()? else { return Ok(None) };
    let row = Columns(row);
    let sid = row.int(0)?;
    let (from, mut facts) = newest_checkpoint(db, sid)?.unwrap_or_default();
    let before = facts.len();
    read_rule_facts(db, sid, from, &mut facts)?;
    Ok(Some(Loaded {
        org: row.id(1)?,
        owner: row.id(8)?,
        scope: record::decode_scope(row.bytes(2)?)?,
        origin: row.origin(5)?,
        enter: row.bytes_maybe(7)?.map(record::decode_worktree).transpose()?,
        at: row.number(3)?,
        term: Term(row.count(4)?),
        since_checkpoint: facts.len() - before,
        facts,
    }))
}

/// A checkpoint that this version does not understand is as good as none: the log says the same, only longer.
fn newest_checkpoint(db: &Connection, sid: Sid) -> Result<Option<(Number, Vec<Fact>)>, SqliteError> {
    let mut query = db.prepare_cached("SELECT number, facts FROM checkpoints WHERE sid = ?1")?;
    let mut found = query.query([sid])?;
    let Some(row) = found.next()? else { return Ok(None) };
    let row = Columns(row);
    let facts = record::decode_checkpoint(row.bytes(1)?);
    facts.ok().map(|facts| Ok((row.number(0)?, facts))).transpose()
}

pub(crate) const RULE_FACTS: &str =
    "SELECT fact FROM facts WHERE sid = ?1 AND number > ?2 AND rule = 1 ORDER BY number";

fn read_rule_facts(
    db: &Connection,
    sid: Sid,
    from: Number,
    facts: &mut Vec<Fact>,
) -> Result<(), SqliteError> {
    let mut query = db.prepare_cached(RULE_FACTS)?;
    let mut found = query.query(params![sid, int(from.0)])?;
    while let Some(row) = found.next()? {
        facts.push(record::decode_fact(Columns(row).bytes(0)?)?);
    }
    Ok(())
}

/// The items of an inbox; the way a message is to be delivered stands beside it.
pub(crate) const INBOX: &str = "SELECT i.number, i.at, i.kind, i.id, i.by, i.wish, m.delivery, m.under
    FROM inbox i LEFT JOIN messages m ON i.kind = 'say' AND m.id = i.id
    WHERE i.session = ?1 ORDER BY i.number LIMIT ?2";

pub(crate) fn inbox(db: &Connection, session: SessionId, limit: usize) -> Result<Vec<InboxRow>, SqliteError> {
    let mut query = db.prepare_cached(INBOX)?;
    let mut found = query.query(params![session.stored(), rows(limit)])?;
    let mut waiting = Vec::new();
    while let Some(row) = found.next()? {
        let row = Columns(row);
        let item = match row.text(2)? {
            "say" => InboxItem::Say {
                message: row.id(3)?,
                by: row.id(4)?,
                delivery: row.word(6, record::delivery_parse)?,
                under: row.epoch_maybe(7)?,
            },
            "request" => {
                let (request, resolved) = record::decode_request(session, row.bytes(5)?)?;
                InboxItem::Request { id: row.id(3)?, by: row.id(4)?, request, resolved }
            }
            "wake" => InboxItem::Wake,
            "recheck" => InboxItem::Recheck { person: row.id(4)? },
            "hand_over" => InboxItem::HandOver { to: row.id(4)? },
            other => return Err(SqliteError::Damaged(format!("an inbox holds {other:?}"))),
        };
        waiting.push(InboxRow { number: row.count(0)?, at: row.moment(1)?, item });
    }
    Ok(waiting)
}

pub(crate) fn words(db: &Connection, message: MessageId) -> Result<Option<Bytes>, SqliteError> {
    let mut query =
        db.prepare_cached("SELECT b.words FROM messages m JOIN bodies b ON b.body = m.body WHERE m.id = ?1")?;
    let words: Option<Vec<u8>> = query.query_row([message.stored()], |row| row.get(0)).optional()?;
    Ok(words.map(Bytes::from))
}

pub(crate) const ATTACHMENTS: &str = "SELECT a.about FROM messages m JOIN attachments a ON a.words = m.body
     WHERE m.id = ?1 ORDER BY a.number";

/// The words about each attachment of a message.
pub(crate) fn attachments(db: &Connection, message: MessageId) -> Result<Vec<Bytes>, SqliteError> {
    let mut query = db.prepare_cached(ATTACHMENTS)?;
    let rows = query.query_map([message.stored()], |row| row.get::<_, Vec<u8>>(0))?;
    Ok(rows.map(|about| about.map(Bytes::from)).collect::<Result<_, _>>()?)
}

pub(crate) const ATTACHMENT: &str = "SELECT b.words FROM messages m JOIN attachments a ON a.words = m.body
     JOIN bodies b ON b.body = a.body WHERE m.id = ?1 AND a.number = ?2";

/// The bytes of one attachment.
pub(crate) fn attachment(
    db: &Connection,
    message: MessageId,
    number: u32,
) -> Result<Option<Bytes>, SqliteError> {
    let mut query = db.prepare_cached(ATTACHMENT)?;
    let read = |row: &rusqlite::Row<'_>| row.get::<_, Vec<u8>>(0);
    let content = query.query_row(rusqlite::params![message.stored(), number], read).optional()?;
    Ok(content.map(Bytes::from))
}

pub(crate) fn verdict(db: &Connection, request: RequestId) -> Result<Option<Verdict>, SqliteError> {
    let mut query = db.prepare_cached("SELECT verdict FROM requests WHERE id = ?1")?;
    let mut found = query.query([request.stored()])?;
    match found.next()? {
        Some(row) => Columns(row).word_maybe(0, record::verdict_parse),
        None => Ok(None),
    }
}

/// The facts of a turn up to which its story is read where it is asked for. Most turns have far fewer; one with many tool calls, or with
/// more words than a page of the file, takes longer than a thread takes to wake.
const SHORT_STORY_FACTS_MAX: i64 = 64;

/// The columns of a fact, in the order in which `stored_fact` reads them.
const FACT: &str = "f.number, f.at, f.cause, f.rule, f.fact, f.turn, f.kind, b.words
    FROM facts f LEFT JOIN bodies b ON b.body = f.body";

pub(crate) fn facts_sql() -> String {
    format!("SELECT {FACT} WHERE f.sid = ?1 AND f.number > ?2 ORDER BY f.number LIMIT ?3")
}

pub(crate) fn facts(
    db: &Connection,
    session: SessionId,
    after: Number,
    limit: usize,
    bytes: usize,
) -> Result<Vec<StoredFact>, SqliteError> {
    let Some(sid) = sid_of(db, session)? else { return Ok(Vec::new()) };
    let mut query = db.prepare_cached(&facts_sql())?;
    up_to(query.query(params![sid, int(after.0), rows(limit)])?, bytes)
}

pub(crate) fn facts_before_sql() -> String {
    format!("SELECT {FACT} WHERE f.sid = ?1 AND f.number < ?2 ORDER BY f.number DESC LIMIT ?3")
}

pub(crate) fn facts_before(
    db: &Connection,
    session: SessionId,
    before: Number,
    limit: usize,
    bytes: usize,
) -> Result<Vec<StoredFact>, SqliteError> {
    let Some(sid) = sid_of(db, session)? else { return Ok(Vec::new()) };
    let mut query = db.prepare_cached(&facts_before_sql())?;
    let mut page = up_to(query.query(params![sid, int(before.0), rows(limit)])?, bytes)?;
    page.reverse();
    Ok(page)
}

/// The story of one turn, of these kinds.
#[derive(Clone)]
pub(crate) struct TurnStory {
    pub(crate) session: SessionId,
    pub(crate) turn: Turn,
    pub(crate) kinds: Vec<&'static str>,
    pub(crate) bytes: usize,
}

impl TurnStory {
    pub(crate) fn read(&self, db: &Connection) -> Result<Vec<Vec<StoredFact>>, SqliteError> {
        match self.place(db)? {
            Some(place) => self.read_at(db, place),
            None => Ok(self.nothing()),
        }
    }

    /// The same, unless reading it takes longer than waking a thread for it.
    pub(crate) fn read_if_short(&self, db: &Connection) -> Result<Option<Vec<Vec<StoredFact>>>, SqliteError> {
        match self.place(db)? {
            Some((_, from, to)) if to.saturating_sub(from) > SHORT_STORY_FACTS_MAX => Ok(None),
            Some(place) => self.read_at(db, place).map(Some),
            None => Ok(Some(self.nothing())),
        }
    }

    fn nothing(&self) -> Vec<Vec<StoredFact>> {
        self.kinds.iter().map(|_| Vec::new()).collect()
    }

    /// The session and the numbers between which the turn's facts lie: its first one, and the first one of the next turn, or the
    /// session's last.
    fn place(&self, db: &Connection) -> Result<Option<(Sid, i64, i64)>, SqliteError> {
        let mut query = db.prepare_cached("SELECT sid, number FROM sessions WHERE id = ?1")?;
        let found =
            query.query_row([self.session.stored()], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some((sid, last)) = found else { return Ok(None) };
        let from = first_of(db, sid, self.turn)?.unwrap_or(0);
        let to = first_of(db, sid, self.turn.next())?.unwrap_or(last);
        Ok(Some((sid, from, to)))
    }

    fn read_at(
        &self,
        db: &Connection,
        (sid, from, to): (Sid, i64, i64),
    ) -> Result<Vec<Vec<StoredFact>>, SqliteError> {
        let mut query = db.prepare_cached(&format!(
            "SELECT {FACT} WHERE f.sid = ?1 AND f.number BETWEEN ?2 AND ?3 AND f.rule = 0 AND f.turn = ?4 AND f.kind = ?5
             ORDER BY f.number"
        ))?;
        let mut of = |kind: &&str| up_to(query.query(params![sid, from, to, self.turn.0, kind])?, self.bytes);
        self.kinds.iter().map(&mut of).collect()
    }
}

pub(crate) fn stories(
    db: &Connection,
    session: SessionId,
    kind: &str,
    bytes: usize,
) -> Result<Vec<StoredFact>, SqliteError> {
    let Some(sid) = sid_of(db, session)? else { return Ok(Vec::new()) };
    let mut query = db.prepare_cached(&format!(
        "SELECT {FACT} WHERE f.sid = ?1 AND f.rule = 0 AND f.kind = ?2 ORDER BY f.number DESC"
    ))?;
    up_to(query.query(params![sid, kind])?, bytes)
}

fn first_of(db: &Connection, sid: Sid, turn: Turn) -> Result<Option<i64>, SqliteError> {
    let mut query = db.prepare_cached("SELECT min(first) FROM messages WHERE sid = ?1 AND turn = ?2")?;
    Ok(query.query_row(params![sid, turn.0], |row| row.get(0))?)
}

fn sid_of(db: &Connection, session: SessionId) -> Result<Option<Sid>, SqliteError> {
    let mut query = db.prepare_cached("SELECT sid FROM sessions WHERE id = ?1")?;
    Ok(query.query_row([session.stored()], |row| row.get(0)).optional()?)
}

/// As many as fit, but at least one: a fact that is larger than the page must not stop its reader for ever.
fn up_to(mut rows: Rows<'_>, bytes: usize) -> Result<Vec<StoredFact>, SqliteError> {
    let mut page = Vec::new();
    let mut filled = 0;
    while let Some(row) = rows.next()? {
        let columns = Columns(row);
        filled += columns.bytes_maybe(4)?.or(columns.bytes_maybe(7)?).map_or(0, <[u8]>::len);
        if filled > bytes && !page.is_empty() {
            break;
        }
        page.push(stored_fact(row)?);
    }
    Ok(page)
}

fn stored_fact(row: &Row<'_>) -> Result<StoredFact, SqliteError> {
    let row = Columns(row);
    let entry = if row.flag(3)? {
        StoredEntry::Rule(record::decode_fact(row.bytes(4)?)?)
    } else {
        StoredEntry::Story {
            turn: Turn(row.small(5)?),
            kind: row.text(6)?.to_owned(),
            body: row.bytes_maybe(7)?.map(Bytes::copy_from_slice),
        }
    };
    let cause = record::cause_parse(row.text(2)?)?;
    Ok(StoredFact { number: row.number(0)?, at: row.moment(1)?, cause, entry })
}

//! Search of what was said: the index of keywords, which follows the log at a distance, and what is found by it.
//!
//! Turns that are over are looked for among the facts, in the order in which they were written, and their words are taken apart by a
//! reader; the writer gets nothing to do but to put the result down. What was done is written with it, so that a start goes on where
//! the one before was.

use crate::columns::{Columns, Id, int, rows};
use crate::error::SqliteError;
use crate::sight;
use crate::tx::{Sid, SqliteTx, oid};
use crate::view::read_all;
use kernel::{Fact, Moment, Number, OrgId, PersonId, Record, SessionId, Turn};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::collections::HashMap;
use store::{FoundPassage, Passage, PassageKind, PassagesQuery, Seer, Telling, keywords, record};

/// Facts that are looked at for turns that are over, in one step.
const FACTS_MAX: i64 = 4_096;
/// Passages with these keywords that are looked at for a page, whoever may see them. What somebody may see and is further back than so
/// many that they may not is not found.
const CANDIDATES_MAX: usize = 50_000;

/// Passages that can be found from now on.
pub(crate) struct Unindexed {
    /// The last fact that had been looked at, and the last one that has been now.
    from: i64,
    to: i64,
    passages: Vec<(PassageRow, String)>,
    /// True if there may be more.
    pub(crate) more: bool,
}

/// A passage's row.
struct PassageRow {
    sid: Sid,
    turn: Turn,
    kind: &'static str,
    first: Number,
    last: Number,
    at: Moment,
    body: Option<i64>,
}

pub(crate) const OVER: &str = "SELECT id, sid, number, fact FROM facts
     WHERE id > ?1 AND id <= ?2 AND rule = 1 AND substr(fact, 1, 13) = '{\"turn_ended\"' ORDER BY id LIMIT ?3";

/// The next turns that are over, at most so many; none if nothing is to be written down.
pub(crate) fn unindexed(db: &Connection, turns_max: usize) -> Result<Option<Unindexed>, SqliteError> {
    let from: i64 = db.prepare_cached("SELECT indexed FROM counters")?.query_row([], |row| row.get(0))?;
    let newest: Option<i64> =
        db.prepare_cached("SELECT max(id) FROM facts")?.query_row([], |row| row.get(0))?;
    let newest = newest.unwrap_or(0);
    let mut to = newest.min(from + FACTS_MAX);
    let read = |row: &Row<'_>| {
        let columns = Columns(row);
        Ok((columns.int(0)?, columns.int(1)?, columns.number(2)?, record::decode_fact(columns.bytes(3)?)?))
    };
    let over = read_all(db, OVER, params![from, to, rows(turns_max)], read)?;
    if let Some((id, ..)) = over.last().filter(|_| over.len() == turns_max) {
        to = *id;
    }
    let mut passages = Vec::new();
    for (_, sid, number, fact) in over {
        if let Fact::TurnEnded { turn, .. } = fact {
            passages.extend(of_turn(db, sid, turn, number)?);
        }
    }
    let more = to < newest;
    // A moment in which no turn ended is no reason to write; it is looked at again.
    Ok((more || !passages.is_empty()).then_some(Unindexed { from, to, passages, more }))
}

const SAID: &str =
    "SELECT m.first, m.accepted_at, m.body, b.words FROM messages m JOIN bodies b ON b.body = m.body
     WHERE m.sid = ?1 AND m.turn = ?2 ORDER BY m.mid";
pub(crate) const TOLD: &str = "SELECT f.number, f.at, b.words FROM facts f JOIN bodies b ON b.body = f.body
     WHERE f.sid = ?1 AND f.number BETWEEN ?2 AND ?3 AND f.rule = 0 AND f.kind = 'text' AND f.turn = ?4 ORDER BY f.number";

/// The passages of a turn, with their keywords.
fn of_turn(
    db: &Connection,
    sid: Sid,
    turn: Turn,
    over: Number,
) -> Result<Vec<(PassageRow, String)>, SqliteError> {
    let org = "SELECT o.oid FROM sessions s JOIN persons p ON p.pid = s.owner JOIN orgs o ON o.org = p.org WHERE s.sid = ?1";
    let org: i64 = db.prepare_cached(org)?.query_row([sid], |row| row.get(0))?;
    let mut found = read_all(db, SAID, params![sid, turn.0], |row| {
        let columns = Columns(row);
        let first = columns.number_maybe(0)?.unwrap_or(over);
        Ok((Passage::said(first, columns.moment(1)?, columns.bytes(3)?), Some(columns.int(2)?)))
    })?;
    let first = found.iter().flat_map(|(said, _)| said).map(|said| said.first).min().unwrap_or_default();
    found.extend(told(db, sid, turn, (first, over))?.into_iter().map(|passage| (Some(passage), None)));
    let placed = |(passage, body): (Option<Passage>, Option<i64>)| {
        let Passage { kind, first, last, at, words } = passage?;
        let mut text = format!("_o{org} _s{sid}");
        keywords(&words).iter().for_each(|keyword| {
            text.push(' ');
            text.push_str(&keyword.text);
        });
        Some((PassageRow { sid, turn, kind: kind_word(kind), first, last, at, body }, text))
    };
    Ok(found.into_iter().filter_map(placed).collect())
}

fn told(
    db: &Connection,
    sid: Sid,
    turn: Turn,
    (first, last): (Number, Number),
) -> Result<Vec<Passage>, SqliteError> {
    let mut query = db.prepare_cached(TOLD)?;
    let mut rows = query.query(params![sid, int(first.0), int(last.0), turn.0])?;
    let mut telling = Telling::default();
    while let Some(row) = rows.next()? {
        let row = Columns(row);
        telling.hear(row.number(0)?, row.moment(1)?, row.bytes(2)?);
    }
    Ok(telling.passages())
}

/// Puts down what a reader has found, unless somebody else has meanwhile.
pub(crate) fn index(tx: &SqliteTx, new: &Unindexed) -> Result<(), SqliteError> {
    let at: i64 = tx.db().prepare_cached("SELECT indexed FROM counters")?.query_row([], |row| row.get(0))?;
    if at != new.from {
        return Ok(());
    }
    for (place, text) in &new.passages {
        let PassageRow { sid, turn, kind, first, last, at, body } = place;
        let row = params![sid, turn.0, kind, int(first.0), int(last.0), int(at.0), body];
        let sql = "INSERT INTO passages (sid, turn, kind, first, last, at, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        tx.run(sql, row)?;
        let passage = tx.db().last_insert_rowid();
        tx.run("INSERT INTO keywords (rowid, words) VALUES (?1, ?2)", params![passage, text])?;
    }
    tx.run("UPDATE counters SET indexed = ?1", [new.to]).map(drop)
}

pub(crate) const FORGET: &str = "DELETE FROM passages WHERE body = ?1 RETURNING passage";

/// The words with this body are no more: nobody finds them.
pub(crate) fn forget(tx: &SqliteTx, body: i64) -> Result<(), SqliteError> {
    let mut query = tx.db().prepare_cached(FORGET)?;
    let gone = query.query_map([body], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
    gone.into_iter()
        .try_for_each(|passage| tx.run("DELETE FROM keywords WHERE rowid = ?1", [passage]).map(drop))
}

const FIND: &str =
    "SELECT p.passage, s.sid, s.id, o.org, o.person, p.turn, p.kind, p.first, p.last, p.at, p.body
     FROM keywords k CROSS JOIN passages p ON p.passage = k.rowid CROSS JOIN sessions s ON s.sid = p.sid
        CROSS JOIN persons o ON o.pid = s.owner
     WHERE k.keywords MATCH ?1 AND k.rowid < ?2 ORDER BY k.rowid DESC";

/// The newest passages with these keywords in what somebody may see.
pub(crate) fn search(db: &Connection, query: &PassagesQuery) -> Result<Vec<FoundPassage>, SqliteError> {
    let Some(wanted) = wanted(db, query)? else { return Ok(Vec::new()) };
    let mut statement = db.prepare_cached(FIND)?;
    let before = query.before.map_or(i64::MAX, int);
    let mut candidates = statement.query(params![wanted, before])?;
    let (mut sight, mut found, mut looked_at) = (HashMap::new(), Vec::new(), 0);
    while found.len() < query.limit
        && looked_at < CANDIDATES_MAX
        && let Some(row) = candidates.next()?
    {
        looked_at += 1;
        let row = Columns(row);
        let (sid, session) = (row.int(1)?, row.id(2)?);
        let is_seen = match sight.get(&sid) {
            Some(known) => *known,
            None => is_seen(db, &query.by, sid, (session, row.id(3)?, row.id(4)?))?,
        };
        sight.insert(sid, is_seen);
        if is_seen && let Some(passage) = passage(db, &row)? {
            found.push(FoundPassage { place: row.count(0)?, session, turn: Turn(row.small(5)?), passage });
        }
    }
    Ok(found)
}

/// The keywords as the index is asked for them. Each is in quotes, and none has one in it.
fn wanted(db: &Connection, query: &PassagesQuery) -> Result<Option<String>, SqliteError> {
    let Some(org) = oid(db, query.by.org)? else { return Ok(None) };
    let mut text = format!("\"_o{org}\"");
    if let Some(session) = query.session {
        let mut sid = db.prepare_cached("SELECT sid FROM sessions WHERE id = ?1")?;
        let sid: Option<Sid> = sid.query_row([session.stored()], |row| row.get(0)).optional()?;
        let Some(sid) = sid else { return Ok(None) };
        text.push_str(&format!(" AND \"_s{sid}\""));
    }
    for word in query.wanted.whole() {
        text.push_str(&format!(" AND \"{word}\""));
    }
    text.push_str(&format!(" AND \"{}\"*", query.wanted.last()));
    Ok(Some(text))
}

/// The rule of reads, of the columns that it looks at.
fn is_seen(
    db: &Connection,
    by: &Seer,
    sid: Sid,
    (session, org, owner): (SessionId, OrgId, PersonId),
) -> Result<bool, SqliteError> {
    let grants = sight::given(db, by, sid)?;
    Ok(by.sees(&Record { session, org, owner, agent: String::new(), grants, revision: 0 }))
}

/// The passage of a row with its words; none if they are no more.
fn passage(db: &Connection, row: &Columns<'_>) -> Result<Option<Passage>, SqliteError> {
    let (first, last, at) = (row.number(7)?, row.number(8)?, row.moment(9)?);
    match row.word(6, kind_parse)? {
        PassageKind::Said => {
            let mut words = db.prepare_cached("SELECT words FROM bodies WHERE body = ?1")?;
            let words: Option<Vec<u8>> =
                words.query_row([row.0.get::<_, Option<i64>>(10)?], |row| row.get(0)).optional()?;
            Ok(words.and_then(|words| Passage::said(first, at, &words)))
        }
        PassageKind::Text => {
            let told = told(db, row.int(1)?, Turn(row.small(5)?), (first, last))?;
            Ok(told.into_iter().next())
        }
    }
}

fn kind_word(kind: PassageKind) -> &'static str {
    match kind {
        PassageKind::Said => "said",
        PassageKind::Text => "text",
    }
}

fn kind_parse(text: &str) -> Option<PassageKind> {
    match text {
        "said" => Some(PassageKind::Said),
        "text" => Some(PassageKind::Text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrations::migrate;
    use crate::writer::Tally;
    use std::sync::Arc;

    /// A session with one turn that is over, in which one message was said.
    fn said() -> SqliteTx {
        let mut db = Connection::open_in_memory().unwrap();
        migrate(&mut db, 0).unwrap();
        db.execute_batch(
            r#"INSERT INTO orgs (oid, org, opened, made_at) VALUES (7, x'01', 0, 0);
             INSERT INTO persons (pid, person, org, host, standing, opened, made_at) VALUES (1, x'02', x'01', 0, 1, 0, 0);
             INSERT INTO sessions (sid, id, owner, revision, scope, made_at, touched_at, archived, awake, pending, number, term)
                VALUES (5, x'03', 1, 1, '{}', 0, 0, 0, 0, 0, 3, 1);
             INSERT INTO bodies VALUES (30, CAST('[{"text":"a needle"}]' AS BLOB));
             INSERT INTO messages (id, sid, by, body, created, if_new_ignored, accepted_at, state, pending, revision, seat, turn, first,
                                   last, changed_at)
                VALUES (x'04', 5, 1, 30, 0, 0, 0, 'answered', 0, 0, 1, 1, 2, 3, 0);
             INSERT INTO facts (sid, number, at, cause, rule, fact)
                VALUES (5, 3, 0, 'keeper', 1, '{"turn_ended":{"turn":1,"outcome":{"answered":{}}}}');"#,
        )
        .unwrap();
        SqliteTx::new(db, Arc::new(Tally::default())).unwrap()
    }

    fn found(tx: &SqliteTx, matching: &str) -> Vec<i64> {
        let sql = "SELECT rowid FROM keywords WHERE keywords MATCH ?1";
        read_all(tx.db(), sql, params![matching], |row| Ok(row.get(0)?)).unwrap()
    }

    #[test]
    fn words_that_are_forgotten_leave_the_index() {
        let tx = said();
        let new = unindexed(tx.db(), 8).unwrap().unwrap();
        assert!(!new.more);
        index(&tx, &new).unwrap();
        index(&tx, &new).unwrap();
        assert_eq!(
            found(&tx, "\"_o7\" AND \"_s5\" AND \"need\"*"),
            [1],
            "once, however often it is put down"
        );
        assert!(unindexed(tx.db(), 8).unwrap().is_none());
        tx.forget_words(5, Some(30)).unwrap();
        assert_eq!(found(&tx, "\"need\"*"), [0; 0]);
        let left: i64 = tx.db().query_row("SELECT count(*) FROM passages", [], |row| row.get(0)).unwrap();
        assert_eq!(left, 0);
    }

    #[test]
    fn a_file_is_gone_through_in_steps_that_are_each_written_down() {
        let tx = said();
        let sql = "INSERT INTO facts (sid, number, at, cause, rule, fact) VALUES (5, ?1, 0, 'keeper', 1, '{\"crowded\":{}}')";
        for number in 4..FACTS_MAX + 10 {
            tx.run(sql, [number]).unwrap();
        }
        let first = unindexed(tx.db(), 8).unwrap().unwrap();
        assert!(first.more);
        assert_eq!((first.to, first.passages.len()), (FACTS_MAX, 1));
        index(&tx, &first).unwrap();
        assert!(unindexed(tx.db(), 8).unwrap().is_none(), "no turn is over in the rest");
    }
}

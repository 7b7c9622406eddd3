//! Reads of one thing for somebody: by its id, if they may see it.
//!
//! What is hidden takes the same steps as what never was, so that the time of a no tells nothing. Whether they may see it is
//! decided first, by a few columns and a fixed number of looks; only then is anything else read. Where there is no such row,
//! the newest of its table stands in for it: it is looked at and judged in the same way, and the answer is no.

use crate::columns::{Bits, Columns, Id, grantee};
use crate::error::SqliteError;
use crate::tx::{Pid, Sid, who};
use crate::view::{self, read_all};
use crate::way_in::{BOUND, BOUND_BEFORE, space};
use kernel::{
    ApprovalId, Found, Grant, Grantee, MessageId, Named, PersonId, Previous, Record, SessionId, To,
};
use rusqlite::{Connection, params};
use store::{ApprovalRow, Finding, ReceiptRow, Seer, SessionRow, Thing, Whereabouts, record};

/// The columns that decide: whether it is the row that was asked for, its session with org and owner, its sender and end.
macro_rules! judged {
    ($is_it:literal, $sender:literal, $from:literal) => {
        concat!("SELECT ", $is_it, ", s.sid, s.id, p.org, p.person, ", $sender, " FROM ", $from)
    };
}

pub(crate) const SESSION: &str = judged!(
    "s.id = ?1",
    "NULL, NULL",
    "sessions s CROSS JOIN persons p ON p.pid = s.owner
     WHERE s.sid = ifnull((SELECT sid FROM sessions WHERE id = ?1), (SELECT max(sid) FROM sessions))"
);
pub(crate) const MESSAGE: &str = judged!(
    "t.id = ?1",
    "b.person, t.why",
    "messages t CROSS JOIN sessions s ON s.sid = t.sid CROSS JOIN persons p ON p.pid = s.owner
        CROSS JOIN persons b ON b.pid = t.by
     WHERE t.mid = ifnull((SELECT mid FROM messages WHERE id = ?1), (SELECT max(mid) FROM messages))"
);
pub(crate) const APPROVAL: &str = judged!(
    "t.id = ?1",
    "NULL, NULL",
    "approvals t CROSS JOIN sessions s ON s.sid = t.sid CROSS JOIN persons p ON p.pid = s.owner
     WHERE t.aid = ifnull((SELECT aid FROM approvals WHERE id = ?1), (SELECT max(aid) FROM approvals))"
);
pub(crate) const GIVEN: &str = "SELECT granted FROM grants WHERE kind = ?1 AND grantee = ?2 AND sid = ?3";

/// The id of nothing, for what names no session: it is looked for like any other.
const NOTHING: SessionId = SessionId::from_bits(0);

/// Where something is, if it is in their org, and whether they may see it. Nothing ends this early but the lack of any row of
/// its kind, and then none is hidden.
pub(crate) fn whereabouts(
    db: &Connection,
    by: &Seer,
    thing: Thing,
) -> Result<Option<Whereabouts>, SqliteError> {
    let (sql, id): (_, Bits) = match thing {
        Thing::Session(session) => (SESSION, session.stored()),
        Thing::Message(message) => (MESSAGE, message.stored()),
        Thing::Approval(approval) => (APPROVAL, approval.stored()),
    };
    let mut query = db.prepare_cached(sql)?;
    let mut rows = query.query([id])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let row = Columns(row);
    let (is_it, sid) = (row.flag(0)?, row.int(1)?);
    let record = Record {
        session: row.id(2)?,
        org: row.id(3)?,
        owner: row.id(4)?,
        agent: String::new(),
        grants: given(db, by, sid)?,
        revision: 0,
    };
    let (sender, why) = (row.id_maybe(5)?, row.text_maybe(6)?);
    let lost = sender.is_some_and(|sender| by.lost(&record, sender, why));
    let is_seen = by.sees(&record) || lost;
    let is_there = is_it && record.org == by.org;
    Ok(is_there.then_some(Whereabouts { session: record.session, is_seen }))
}

/// The grants on a session that count for them: as many looks as they have groups, and two.
pub(crate) fn given(db: &Connection, by: &Seer, sid: Sid) -> Result<Vec<(Grantee, Grant)>, SqliteError> {
    let groups = by.groups.iter().map(|group| Grantee::Group(*group));
    let mut given = Vec::new();
    for to in [Grantee::Person(by.person), Grantee::Org].into_iter().chain(groups) {
        let (kind, grantee) = grantee(to, by.org);
        let read = |row: &rusqlite::Row<'_>| Columns(row).word(0, record::grant_parse);
        let grant = read_all(db, GIVEN, params![kind, grantee, sid], read)?.pop();
        given.extend(grant.map(|grant| (to, grant)));
    }
    Ok(given)
}

pub(crate) fn sees(db: &Connection, by: &Seer, thing: Thing) -> Result<bool, SqliteError> {
    Ok(whereabouts(db, by, thing)?.is_some_and(|found| found.is_seen))
}

pub(crate) fn session(
    db: &Connection,
    by: &Seer,
    session: SessionId,
) -> Result<Option<(Record, SessionRow)>, SqliteError> {
    if !sees(db, by, Thing::Session(session))? {
        return Ok(None);
    }
    let Some((record, row)) = view::session(db, session)? else { return Ok(None) };
    let marks = match who(db, by.org, by.person)? {
        Some(who) => view::marked(db, session, who.pid)?.map(|(_, marks)| marks),
        None => None,
    };
    let (may, marks) = (by.grant_on(&record), marks.unwrap_or_default());
    Ok(Some((record, SessionRow { may, marks, ..row })))
}

pub(crate) fn receipt(
    db: &Connection,
    by: &Seer,
    message: MessageId,
) -> Result<Option<(Record, ReceiptRow)>, SqliteError> {
    if sees(db, by, Thing::Message(message))? { view::receipt(db, message) } else { Ok(None) }
}

pub(crate) fn approval(
    db: &Connection,
    by: &Seer,
    approval: ApprovalId,
) -> Result<Option<(Record, ApprovalRow)>, SqliteError> {
    if sees(db, by, Thing::Approval(approval))? { view::approval(db, approval) } else { Ok(None) }
}

pub(crate) fn find(
    db: &Connection,
    by: &Seer,
    whose: Option<PersonId>,
    to: &To,
) -> Result<Finding, SqliteError> {
    match to {
        To::Session(session) => Ok(finding(self::session(db, by, *session)?, None)),
        To::Conversation(address) | To::NewIn(address) => {
            let params = params![by.org.stored(), address.to_string(), space(db, by.org, whose)?];
            let look = |sql| read_all(db, sql, params, |row| Columns(row).id::<SessionId>(1));
            // Both, also if the first has found something.
            let (now, before) = (look(BOUND)?.pop(), look(BOUND_BEFORE)?.pop());
            let seen = |session: Option<SessionId>| self::session(db, by, session.unwrap_or(NOTHING));
            let (seen_now, seen_before) = (seen(now)?, seen(before)?);
            let previous =
                seen_before.as_ref().map(|(_, row)| Previous { session: row.session, ended: row.ended });
            // What goes on elsewhere is not what this conversation had until it ended.
            let ended = seen_before.filter(|(_, row)| now.is_none() && row.ended.is_some());
            Ok(finding(seen_now.or(ended), previous))
        }
        To::New => Ok(finding(None, None)),
    }
}

fn finding(seen: Option<(Record, SessionRow)>, before: Option<Previous>) -> Finding {
    match seen {
        Some((record, row)) => {
            let found = row.ended.map_or(Found::Open(row.session), |why| Found::Ended(row.session, why));
            Finding { found, record: Some(record), before }
        }
        None => Finding { found: Found::Nothing, record: None, before },
    }
}

/// The session that a conversation had before, if they may see it.
pub(crate) fn previous(
    db: &Connection,
    by: &Seer,
    address: &str,
    whose: Pid,
) -> Result<Option<Previous>, SqliteError> {
    let params = params![by.org.stored(), address, whose];
    let before = read_all(db, BOUND_BEFORE, params, |row| Columns(row).id::<SessionId>(1))?.pop();
    let seen = session(db, by, before.unwrap_or(NOTHING))?;
    Ok(seen.map(|(_, row)| Previous { session: row.session, ended: row.ended }))
}

/// The sessions that answer to an id, and who brought them here under it.
pub(crate) fn named(db: &Connection, by: &Seer, id: SessionId) -> Result<Vec<Named>, SqliteError> {
    let mut answering = vec![(id, None)];
    answering.extend(view::imported_as(db, by.org, id)?);
    if answering.len() == 1 {
        answering.push((NOTHING, None));
    }
    let mut named = Vec::new();
    for (session, imported_by) in answering {
        if sees(db, by, Thing::Session(session))? {
            named.push(Named { record: view::record_of(db, session)?, imported_by });
        }
    }
    Ok(named)
}

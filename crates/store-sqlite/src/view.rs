//! The reads of lists, receipts and routing. Whoever may not see a session does not find it in any list.
//!
//! A person sees what they own, which every list reads from an index in the list's own order, and what was given to them,
//! to a group of theirs or to their org, which is joined to it. What is not on the page costs nothing in the first case.
//! A credential for one session sees that one, or nothing.

use crate::columns::{Bits, Columns, Id, grantee, int, rows};
use crate::error::SqliteError;
use crate::sight;
use crate::tx::{Pid, Sid, who};
use bytes::Bytes;
use kernel::{
    Address, ApprovalId, Claim, Epoch, Grant, Grantee, MessageId, Moment, Named, Number, OrgId, PersonId,
    Record, Scope, SessionId, Turn, grant_as,
};
use rusqlite::{Connection, Row, ToSql, params};
use std::collections::BTreeMap;
use store::{
    ApprovalRow, ApprovalState, BindingRow, Head, Import, LastTurn, Marks, Need, QueuedRow, ReceiptRow,
    ReceiptState, SEARCHED_MAX, Seer, SessionRow, SessionsQuery, Which, WorktreeRow, record,
};

/// The columns of a session's row, in the order in which `session_row` reads them.
const SESSION: &str =
    "s.id, p.org, p.person, s.title, s.scope, s.ended, s.archived, s.awake, s.pending, s.number,
    s.made_at, s.touched_at, s.epoch, s.origin, s.origin_turn, s.revision, s.sid, s.imported, s.imported_from,
    s.title_by, s.held, s.questions, s.last_outcome, s.last_number, s.last_at, s.last_words";

/// The columns of lists after those: the grant by which it is in them, and the reader's own marks.
const GRANTED: usize = 26;
const MARKS: &str = "k.seen, k.pinned";
const MARKED: usize = 27;

pub(crate) fn marks_of(row: &Columns<'_>, column: usize) -> Result<Marks, SqliteError> {
    let Some(seen) = row.number_maybe(column)? else { return Ok(Marks::default()) };
    Ok(Marks { seen, pinned: row.flag(column + 1)? })
}

pub(crate) const MARKED_BY: &str = "SELECT s.number, k.seen, k.pinned
     FROM sessions s LEFT JOIN marks k ON k.pid = ?2 AND k.sid = s.sid WHERE s.id = ?1";

/// The number of a session's last fact, and somebody's marks on it.
pub(crate) fn marked(
    db: &Connection,
    session: SessionId,
    by: Pid,
) -> Result<Option<(Number, Marks)>, SqliteError> {
    let read = |row: &Row<'_>| Ok((Columns(row).number(0)?, marks_of(&Columns(row), 1)?));
    Ok(read_all(db, MARKED_BY, params![session.stored(), by], read)?.pop())
}

fn session_row(row: &Row<'_>) -> Result<SessionRow, SqliteError> {
    let row = Columns(row);
    Ok(SessionRow {
        session: row.id(0)?,
        org: row.id(1)?,
        owner: row.id(2)?,
        title: row.text_maybe(3)?.map(str::to_owned),
        title_by: row.word_maybe(19, record::title_by_parse)?,
        scope: record::decode_scope(row.bytes(4)?)?,
        epoch: row.epoch(12)?,
        origin: row.origin(13)?,
        import: import(&row)?,
        ended: row.word_maybe(5, record::end_parse)?,
        archived: row.flag(6)?,
        awake: row.flag(7)?,
        pending: row.small(8)?,
        held: row.small(20)?,
        questions: row.small(21)?,
        last: last_turn_of(&row)?,
        at: row.number(9)?,
        made_at: row.moment(10)?,
        touched_at: row.moment(11)?,
        may: None,
        marks: Marks::default(),
    })
}

fn last_turn_of(row: &Columns<'_>) -> Result<Option<LastTurn>, SqliteError> {
    let Some(outcome) = row.word_maybe(22, record::outcome_parse)? else { return Ok(None) };
    let words = row.text_maybe(25)?.map(str::to_owned);
    Ok(Some(LastTurn { outcome, number: row.number(23)?, at: row.moment(24)?, words }))
}

fn import(row: &Columns<'_>) -> Result<Option<Import>, SqliteError> {
    let org = row.text_maybe(18)?.unwrap_or_default().to_owned();
    Ok(row.id_maybe(17)?.map(|id| Import { id, org }))
}

/// The sessions of an org that answer to an id, and who brought them here under it.
pub(crate) const NAMED: [&str; 2] = [
    "SELECT s.id, NULL FROM sessions s JOIN persons p ON p.pid = s.owner WHERE s.id = ?2 AND p.org = ?1",
    "SELECT s.id, i.person FROM sessions s JOIN persons p ON p.pid = s.owner JOIN persons i ON i.pid = s.imported_by
     WHERE s.imported = ?2 AND p.org = ?1 ORDER BY s.sid",
];

pub(crate) fn named(db: &Connection, org: OrgId, id: SessionId) -> Result<Vec<Named>, SqliteError> {
    let mut named = Vec::new();
    for sql in NAMED {
        for (session, imported_by) in named_by(db, sql, org, id)? {
            named.push(Named { record: record_of(db, session)?, imported_by });
        }
    }
    Ok(named)
}

/// The sessions of an org that came here under an id, and who brought them.
pub(crate) fn imported_as(
    db: &Connection,
    org: OrgId,
    id: SessionId,
) -> Result<Vec<(SessionId, Option<PersonId>)>, SqliteError> {
    named_by(db, NAMED[1], org, id)
}

fn named_by(
    db: &Connection,
    sql: &str,
    org: OrgId,
    id: SessionId,
) -> Result<Vec<(SessionId, Option<PersonId>)>, SqliteError> {
    read_all(db, sql, params![org.stored(), id.stored()], |row| {
        let row = Columns(row);
        Ok((row.id(0)?, row.id_maybe(1)?))
    })
}

/// True if any session was ever brought here from elsewhere.
pub(crate) fn any_imports(db: &Connection) -> rusqlite::Result<bool> {
    db.query_row("SELECT EXISTS (SELECT 1 FROM sessions WHERE imported IS NOT NULL)", [], |row| row.get(0))
}

pub(crate) fn session(
    db: &Connection,
    session: SessionId,
) -> Result<Option<(Record, SessionRow)>, SqliteError> {
    let mut query = db.prepare_cached(&format!(
        "SELECT {SESSION} FROM sessions s JOIN persons p ON p.pid = s.owner WHERE s.id = ?1"
    ))?;
    let mut found = query.query([session.stored()])?;
    let Some(row) = found.next()? else { return Ok(None) };
    let (read, revision, sid) = (session_row(row)?, Columns(row).count(15)?, row.get(16)?);
    let (org, owner, agent) = (read.org, read.owner, read.scope.agent.clone());
    Ok(Some((Record { session, org, owner, agent, grants: grants(db, sid)?, revision }, read)))
}

pub(crate) const GRANTS: &str = "SELECT kind, grantee, granted FROM grants WHERE sid = ?1";

pub(crate) fn grants(db: &Connection, sid: Sid) -> Result<Vec<(Grantee, Grant)>, SqliteError> {
    let mut grants = read_all(db, GRANTS, params![sid], |row| {
        let row = Columns(row);
        Ok((row.grantee(0)?, row.word(2, record::grant_parse)?))
    })?;
    grants.sort_unstable();
    Ok(grants)
}

pub(crate) fn record_of(db: &Connection, session: SessionId) -> Result<Record, SqliteError> {
    let found = self::session(db, session)?;
    found.map(|(record, _)| record).ok_or_else(|| SqliteError::Damaged(format!("session {session} is gone")))
}

/// For whom a list is made, as the statements want it.
pub(crate) struct Sight {
    /// None if they own nothing.
    pub(crate) owner: Option<Pid>,
    pub(crate) org: Bits,
    /// Them, their groups, and everybody in the org.
    pub(crate) given: Vec<(i64, Bits)>,
}

impl Sight {
    pub(crate) fn of(db: &Connection, by: &Seer) -> Result<Self, SqliteError> {
        let groups = by.groups.iter().map(|group| Grantee::Group(*group));
        let given = [Grantee::Person(by.person), Grantee::Org].into_iter().chain(groups);
        let owner = who(db, by.org, by.person)?.map(|who| who.pid);
        Ok(Self { owner, org: by.org.stored(), given: given.map(|to| grantee(to, by.org)).collect() })
    }

    /// The id that nobody has, for whoever owns nothing.
    pub(crate) fn not_owner(&self) -> Pid {
        self.owner.unwrap_or(-1)
    }
}

/// The one session that a credential is for, if whoever has it may see that one.
fn bound(db: &Connection, by: &Seer, session: SessionId) -> Result<Option<SessionRow>, SqliteError> {
    Ok(sight::session(db, by, session)?.map(|(_, row)| row))
}

/// The lists, none of which overlap, as conditions that are also their indexes'.
pub(crate) const OPEN: &str = "s.archived = 0 AND s.ended IS NULL";
const ENDED: &str = "s.archived = 0 AND s.ended IS NOT NULL";
const ARCHIVED: &str = "s.archived = 1";
pub(crate) const LISTS: [&str; 3] = [OPEN, ENDED, ARCHIVED];

pub(crate) fn sessions(db: &Connection, query: &SessionsQuery) -> Result<Vec<SessionRow>, SqliteError> {
    let place = |row: &SessionRow| std::cmp::Reverse((row.touched_at, row.session));
    if let Some(session) = query.by.bound {
        let later = |row: &SessionRow| {
            query.shows(row) && query.after.is_none_or(|after| place(row) > std::cmp::Reverse(after))
        };
        return Ok(bound(db, &query.by, session)?.filter(later).into_iter().take(query.limit).collect());
    }
    let sight = Sight::of(db, &query.by)?;
    let mut page = Vec::new();
    let of = query.filter.owner;
    for list in lists_of(query) {
        if of.is_none_or(|owner| owner == query.by.person) {
            page.extend(owned(db, query, &sight, list)?);
        }
        if of.is_none_or(|owner| owner != query.by.person) {
            page.extend(granted(db, query, &sight, list)?);
        }
    }
    page.sort_unstable_by_key(place);
    // Given to them and to a group of theirs, say: the strongest grant counts.
    page.dedup_by(|row, kept| {
        let is_same = row.session == kept.session;
        kept.may = if is_same { kept.may.max(row.may) } else { kept.may };
        is_same
    });
    page.truncate(query.limit);
    Ok(page)
}

/// The lists in which a query finds what it wants.
fn lists_of(query: &SessionsQuery) -> &'static [&'static str] {
    match (query.which, query.filter.archived) {
        (_, Some(true)) => &[ARCHIVED],
        (Which::Open, _) => &[OPEN],
        (Which::Ended, _) => &[ENDED],
        (Which::All, Some(false)) => &[OPEN, ENDED],
        (Which::All, None) => &LISTS,
    }
}

/// The statement that reads one list of what somebody owns, and that a test explains.
pub(crate) fn owned_sql(list: &str) -> String {
    owned_by("sessions s", list)
}

/// The same, for what an index of its own finds: where it is looked for, and the condition that the index has, too.
pub(crate) fn narrowed_sql(index: &str, list: &str, condition: &str) -> String {
    owned_by(&format!("sessions s INDEXED BY {index}"), &format!("{list} AND {condition}"))
}

fn owned_by(sessions: &str, condition: &str) -> String {
    format!(
        "SELECT {SESSION}, 'manage', {MARKS} FROM {sessions} JOIN persons p ON p.pid = s.owner
            LEFT JOIN marks k ON k.pid = ?1 AND k.sid = s.sid
         WHERE s.owner = ?1 AND {condition} AND (s.touched_at, s.id) < (?2, ?3)
         ORDER BY s.touched_at DESC, s.id DESC LIMIT ?4"
    )
}

/// The indexes of what needs somebody. They have what is open and not archived.
pub(crate) const NEEDS: [(Need, &str, &str); 3] = [
    (Need::Questions, "sessions_questions", "s.questions > 0"),
    (Need::Held, "sessions_held", "s.held > 0"),
    (Need::Failed, "sessions_failed", "s.last_outcome NOT IN ('answered', 'stopped')"),
];
/// The index of forks.
pub(crate) const FORKS: (&str, &str) = ("sessions_origin", "s.origin = ?5");

fn owned(
    db: &Connection,
    query: &SessionsQuery,
    sight: &Sight,
    list: &str,
) -> Result<Vec<SessionRow>, SqliteError> {
    let Some(owner) = sight.owner else { return Ok(Vec::new()) };
    let ((at, id), limit) = (before(query.after), rows(looked_at(query)));
    if let Some(origin) = query.filter.origin {
        let row = params![owner, at, id, limit, origin.stored()];
        return read_sessions(db, &narrowed_sql(FORKS.0, list, FORKS.1), row, query);
    }
    let index = NEEDS.into_iter().find(|(need, ..)| query.filter.needs == Some(*need) && list == OPEN);
    let sql = match index {
        Some((_, index, condition)) => narrowed_sql(index, list, condition),
        None => owned_sql(list),
    };
    read_sessions(db, &sql, params![owner, at, id, limit], query)
}

pub(crate) fn granted_sql(list: &str) -> String {
    format!(
        "SELECT {SESSION}, g.granted, {MARKS} FROM grants g CROSS JOIN sessions s ON s.sid = g.sid
            CROSS JOIN persons p ON p.pid = s.owner LEFT JOIN marks k ON k.pid = ?4 AND k.sid = s.sid
         WHERE g.kind = ?1 AND g.grantee = ?2 AND p.org = ?3 AND s.owner <> ?4 AND {list}
            AND (s.touched_at, s.id) < (?5, ?6)
         ORDER BY s.touched_at DESC, s.id DESC LIMIT ?7"
    )
}

fn granted(
    db: &Connection,
    query: &SessionsQuery,
    sight: &Sight,
    list: &str,
) -> Result<Vec<SessionRow>, SqliteError> {
    let (at, id) = before(query.after);
    let mut page = Vec::new();
    for (kind, grantee) in &sight.given {
        let row = params![kind, grantee, sight.org, sight.not_owner(), at, id, rows(looked_at(query))];
        page.extend(read_sessions(db, &granted_sql(list), row, query)?);
    }
    Ok(page)
}

/// The place before which a page begins; for the first page, one that nothing comes after.
fn before(after: Option<(Moment, SessionId)>) -> (i64, [u8; 16]) {
    after.map_or((i64::MAX, [0xff; 16]), |(at, session)| (int(at.0), session.stored()))
}

/// The most rows of a list that are looked at for a page.
fn looked_at(query: &SessionsQuery) -> usize {
    if query.filter.is_empty() { query.limit } else { SEARCHED_MAX }
}

fn read_sessions(
    db: &Connection,
    sql: &str,
    params: &[&dyn ToSql],
    query: &SessionsQuery,
) -> Result<Vec<SessionRow>, SqliteError> {
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut page = Vec::new();
    while page.len() < query.limit
        && let Some(row) = rows.next()?
    {
        let columns = Columns(row);
        let may = Some(grant_as(query.by.role, columns.word(GRANTED, record::grant_parse)?));
        let row = SessionRow { may, marks: marks_of(&columns, MARKED)?, ..session_row(row)? };
        if query.shows(&row) {
            page.push(row);
        }
    }
    Ok(page)
}

/// The columns of a receipt, in the order in which `receipt_row` reads them.
pub(crate) const RECEIPT_COLUMNS: &str =
    "m.id, s.id, p.person, m.state, m.why, m.revision, m.turn, m.first, m.last, m.reply,
    m.created, m.previous, m.previous_why, m.if_new_ignored, m.accepted_at, m.changed_at,
    m.delivery, m.epoch, m.unattended, m.door";
pub(crate) const MESSAGES: &str =
    "messages m JOIN sessions s ON s.sid = m.sid JOIN persons p ON p.pid = m.by";

fn receipt_row(row: &Row<'_>) -> Result<ReceiptRow, SqliteError> {
    let row = Columns(row);
    Ok(ReceiptRow {
        message: row.id(0)?,
        session: row.id(1)?,
        by: row.id(2)?,
        state: row.word(3, record::state_parse)?,
        why: row.word_maybe(4, record::why_parse)?,
        revision: row.small(5)?,
        delivery: row.word(16, record::delivery_parse)?,
        epoch: row.epoch_maybe(17)?,
        turn: row.small_maybe(6)?.map(Turn),
        first: row.number_maybe(7)?,
        last: row.number_maybe(8)?,
        reply: row.address_maybe(9)?,
        created: row.flag(10)?,
        previous: row.previous(11)?,
        if_new_ignored: row.flag(13)?,
        unattended: row.flag(18)?,
        door: row.text_maybe(19)?.map(str::to_owned),
        accepted_at: row.moment(14)?,
        changed_at: row.moment(15)?,
    })
}

pub(crate) fn receipt(
    db: &Connection,
    message: MessageId,
) -> Result<Option<(Record, ReceiptRow)>, SqliteError> {
    let mut query =
        db.prepare_cached(&format!("SELECT {RECEIPT_COLUMNS} FROM {MESSAGES} WHERE m.id = ?1"))?;
    let mut rows = query.query([message.stored()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let receipt = receipt_row(row)?;
    Ok(Some((record_of(db, receipt.session)?, receipt)))
}

/// Words said into a turn began later than what the turn began with.
pub(crate) fn turn_sql() -> String {
    format!(
        "SELECT {RECEIPT_COLUMNS} FROM {MESSAGES} WHERE m.sid = (SELECT sid FROM sessions WHERE id = ?1) AND m.turn = ?2
         ORDER BY m.first LIMIT 1"
    )
}

pub(crate) fn turn(
    db: &Connection,
    session: SessionId,
    turn: Turn,
) -> Result<Option<ReceiptRow>, SqliteError> {
    Ok(read_all(db, &turn_sql(), params![session.stored(), turn.0], receipt_row)?.pop())
}

pub(crate) const LAST_TURN: &str = "SELECT turn FROM messages
     WHERE sid = (SELECT sid FROM sessions WHERE id = ?1) AND turn IS NOT NULL AND last IS NOT NULL
     ORDER BY turn DESC LIMIT 1";

pub(crate) fn last_turn(db: &Connection, session: SessionId) -> Result<Option<ReceiptRow>, SqliteError> {
    let last = read_all(db, LAST_TURN, params![session.stored()], |row| Columns(row).small(0))?.pop();
    last.map_or(Ok(None), |last| turn(db, session, Turn(last)))
}

pub(crate) const SCOPE: &str =
    "SELECT c.scope FROM sessions s CROSS JOIN scopes c ON c.sid = s.sid WHERE s.id = ?1 AND c.epoch = ?2";

/// Where and how a session acted under an epoch.
pub(crate) fn scope(db: &Connection, session: SessionId, epoch: Epoch) -> Result<Option<Scope>, SqliteError> {
    let read = |row: &Row<'_>| Ok(record::decode_scope(Columns(row).bytes(0)?)?);
    Ok(read_all(db, SCOPE, params![session.stored(), epoch.0], read)?.pop())
}

/// The messages of a session that are not final, in the order of the queue.
const QUEUE: &str =
    "WHERE m.sid = (SELECT sid FROM sessions WHERE id = ?1) AND m.pending = 1 ORDER BY m.seat";

pub(crate) fn queue_sql() -> String {
    format!("SELECT {RECEIPT_COLUMNS} FROM {MESSAGES} {QUEUE}")
}

pub(crate) fn queue_shown_sql() -> String {
    format!(
        "SELECT {RECEIPT_COLUMNS}, p.handle, CASE WHEN length(b.words) <= ?2 THEN b.words END
         FROM {MESSAGES} LEFT JOIN bodies b ON b.body = m.body {QUEUE}"
    )
}

/// A receipt with the handle of its sender and its words, without what goes along.
pub(crate) fn message_shown_row(row: &Row<'_>) -> Result<QueuedRow, SqliteError> {
    let columns = Columns(row);
    Ok(QueuedRow {
        receipt: receipt_row(row)?,
        sender: columns.text_maybe(20)?.map(str::to_owned),
        words: columns.bytes_maybe(21)?.map(Bytes::copy_from_slice),
        attachments: Vec::new(),
    })
}

/// The words about the attachments of the messages that are not final.
pub(crate) const QUEUE_ATTACHMENTS: &str =
    "SELECT m.id, a.number, a.about FROM messages m CROSS JOIN attachments a ON a.words = m.body
     WHERE m.sid = (SELECT sid FROM sessions WHERE id = ?1) AND m.pending = 1";

/// The message that runs, then the queue, then what the keeper has not seen yet.
pub(crate) fn queue(db: &Connection, session: SessionId) -> Result<Vec<ReceiptRow>, SqliteError> {
    let mut queue = read_all(db, &queue_sql(), params![session.stored()], receipt_row)?;
    queue.sort_by_key(running_first);
    Ok(queue)
}

pub(crate) fn queue_shown(
    db: &Connection,
    session: SessionId,
    bytes: usize,
) -> Result<Vec<QueuedRow>, SqliteError> {
    let mut queue =
        read_all(db, &queue_shown_sql(), params![session.stored(), rows(bytes)], message_shown_row)?;
    let read = |row: &Row<'_>| {
        let columns = Columns(row);
        Ok(((columns.id::<MessageId>(0)?, columns.small(1)?), Bytes::copy_from_slice(columns.bytes(2)?)))
    };
    let in_order: BTreeMap<_, _> =
        read_all(db, QUEUE_ATTACHMENTS, params![session.stored()], read)?.into_iter().collect();
    let mut attached: BTreeMap<MessageId, Vec<Bytes>> = BTreeMap::new();
    for ((message, _), about) in in_order {
        attached.entry(message).or_default().push(about);
    }
    for queued in &mut queue {
        queued.attachments = attached.remove(&queued.receipt.message).unwrap_or_default();
    }
    queue.sort_by_key(|queued| running_first(&queued.receipt));
    Ok(queue)
}

/// The message that runs comes first; what was said into a turn comes after what it began with.
fn running_first(receipt: &ReceiptRow) -> (bool, Option<Number>) {
    match receipt.state {
        ReceiptState::Running => (false, receipt.first),
        _ => (true, None),
    }
}

pub(crate) const BINDINGS_OWNED: &str =
    "SELECT b.address, s.id, b.since, b.whose FROM bindings b JOIN sessions s ON s.sid = b.sid
     WHERE b.owner = ?1 AND b.until IS NULL AND b.address > ?2 AND b.whose IN (0, ?1) ORDER BY b.address LIMIT ?3";
pub(crate) const BINDINGS_GRANTED: &str = "SELECT b.address, s.id, b.since, b.whose
     FROM grants g CROSS JOIN bindings b ON b.sid = g.sid CROSS JOIN sessions s ON s.sid = b.sid
        CROSS JOIN persons p ON p.pid = s.owner
     WHERE g.kind = ?1 AND g.grantee = ?2 AND p.org = ?3 AND s.owner <> ?4 AND b.until IS NULL AND b.address > ?5
        AND b.whose IN (0, ?4)
     ORDER BY b.address LIMIT ?6";
pub(crate) const BINDINGS_BOUND: &str = "SELECT b.address, s.id, b.since, b.whose
     FROM sessions s CROSS JOIN bindings b ON b.sid = s.sid
     WHERE s.id = ?1 AND b.until IS NULL AND b.address > ?2 AND b.whose IN (0, ?4) ORDER BY b.address LIMIT ?3";

pub(crate) fn bindings(
    db: &Connection,
    by: &Seer,
    after: Option<&Address>,
    limit: usize,
) -> Result<Vec<BindingRow>, SqliteError> {
    // No address is empty.
    let after = after.map(Address::to_string).unwrap_or_default();
    let read = |row: &Row<'_>| {
        let columns = Columns(row);
        let (session, since) = (columns.id(1)?, columns.moment(2)?);
        Ok((BindingRow { address: columns.address(0)?, session, since, before: None }, columns.int(3)?))
    };
    let with_past = |(row, whose): (BindingRow, Pid)| {
        let before = sight::previous(db, by, &row.address.to_string(), whose)?;
        Ok(BindingRow { before, ..row })
    };
    let sight = Sight::of(db, by)?;
    if let Some(session) = by.bound {
        return match bound(db, by, session)? {
            Some(_) => {
                let row = params![session.stored(), after, rows(limit), sight.not_owner()];
                read_all(db, BINDINGS_BOUND, row, read)?.into_iter().map(with_past).collect()
            }
            None => Ok(Vec::new()),
        };
    }
    let mut page = Vec::new();
    if let Some(owner) = sight.owner {
        page.extend(read_all(db, BINDINGS_OWNED, params![owner, after, rows(limit)], read)?);
    }
    for (kind, grantee) in &sight.given {
        let row = params![kind, grantee, sight.org, sight.not_owner(), after, rows(limit)];
        page.extend(read_all(db, BINDINGS_GRANTED, row, read)?);
    }
    page.sort_by_cached_key(|(binding, _): &(BindingRow, Pid)| binding.address.to_string());
    page.dedup();
    page.truncate(limit);
    page.into_iter().map(with_past).collect()
}

pub(crate) fn read_all<T>(
    db: &Connection,
    sql: &str,
    params: &[&dyn ToSql],
    read: impl Fn(&Row<'_>) -> Result<T, SqliteError>,
) -> Result<Vec<T>, SqliteError> {
    let mut query = db.prepare_cached(sql)?;
    let mut found = query.query(params)?;
    let mut all = Vec::new();
    while let Some(row) = found.next()? {
        all.push(read(row)?);
    }
    Ok(all)
}

pub(crate) const APPROVAL: &str = "a.id, s.id, a.turn, a.state, a.answer, a.answerer, a.asked_at, a.until,
    a.posed, (SELECT b.words FROM bodies b WHERE b.body = a.body), a.settled_at";

pub(crate) fn approval_row(row: &Row<'_>) -> Result<ApprovalRow, SqliteError> {
    let row = Columns(row);
    let state = match row.text(3)? {
        "open" => ApprovalState::Open,
        "answered" => ApprovalState::Answered {
            answer: record::decode_answer(row.bytes(4)?)?,
            by: record::answerer_parse(row.text_maybe(5)?)?,
        },
        "lapsed" => ApprovalState::Lapsed,
        other => return Err(SqliteError::Damaged(format!("an approval stands at {other:?}"))),
    };
    Ok(ApprovalRow {
        approval: row.id(0)?,
        session: row.id(1)?,
        turn: Turn(row.small(2)?),
        state,
        asked_at: row.moment(6)?,
        until: row.moment(7)?,
        terms: record::decode_terms(row.bytes_maybe(8)?)?,
        words: row.bytes_maybe(9)?.map(Bytes::copy_from_slice),
        settled_at: row.moment_maybe(10)?,
    })
}

pub(crate) fn approval(
    db: &Connection,
    approval: ApprovalId,
) -> Result<Option<(Record, ApprovalRow)>, SqliteError> {
    let sql = format!("SELECT {APPROVAL} FROM approvals a JOIN sessions s ON s.sid = a.sid WHERE a.id = ?1");
    let found = read_all(db, &sql, params![approval.stored()], approval_row)?.pop();
    found.map(|row| Ok((record_of(db, row.session)?, row))).transpose()
}

pub(crate) const HEADS_OWNED: &str = "SELECT s.place, s.id, s.number FROM sessions s
     WHERE s.owner = ?1 AND s.place > ?2 ORDER BY s.place LIMIT ?3";
pub(crate) const HEADS_GRANTED: &str = "SELECT s.place, s.id, s.number
     FROM grants g CROSS JOIN sessions s ON s.sid = g.sid CROSS JOIN persons p ON p.pid = s.owner
     WHERE g.kind = ?1 AND g.grantee = ?2 AND p.org = ?3 AND s.owner <> ?4 AND s.place > ?5
     ORDER BY s.place LIMIT ?6";
pub(crate) const HEAD_BOUND: &str =
    "SELECT s.place, s.id, s.number FROM sessions s WHERE s.id = ?1 AND s.place > ?2";

pub(crate) fn heads(db: &Connection, by: &Seer, after: u64, limit: usize) -> Result<Vec<Head>, SqliteError> {
    let read = |row: &Row<'_>| {
        let columns = Columns(row);
        Ok(Head { place: columns.count(0)?, session: columns.id(1)?, number: columns.number(2)? })
    };
    if let Some(session) = by.bound {
        return match bound(db, by, session)? {
            Some(_) => read_all(db, HEAD_BOUND, params![session.stored(), int(after)], read),
            None => Ok(Vec::new()),
        };
    }
    let sight = Sight::of(db, by)?;
    let mut page = Vec::new();
    if let Some(owner) = sight.owner {
        page.extend(read_all(db, HEADS_OWNED, params![owner, int(after), rows(limit)], read)?);
    }
    for (kind, grantee) in &sight.given {
        let row = params![kind, grantee, sight.org, sight.not_owner(), int(after), rows(limit)];
        page.extend(read_all(db, HEADS_GRANTED, row, read)?);
    }
    page.sort_unstable_by_key(|head: &Head| head.place);
    page.dedup();
    page.truncate(limit);
    Ok(page)
}

pub(crate) const HOLDER: &str = "SELECT s.id, p.org FROM claims c JOIN sessions s ON s.sid = c.sid
     JOIN persons p ON p.pid = s.owner WHERE c.name = ?1 LIMIT 1";

pub(crate) fn holder(db: &Connection, claim: &Claim) -> Result<Option<(SessionId, OrgId)>, SqliteError> {
    let read = |row: &Row<'_>| Ok((Columns(row).id(0)?, Columns(row).id(1)?));
    Ok(read_all(db, HOLDER, params![claim.0], read)?.pop())
}

pub(crate) const WORKTREES: &str =
    "SELECT p.org, s.id, s.scope FROM sessions s JOIN persons p ON p.pid = s.owner
     WHERE s.in_worktree = 1 AND s.ended IS NULL ORDER BY s.id";

pub(crate) fn worktrees_in_use(db: &Connection) -> Result<Vec<WorktreeRow>, SqliteError> {
    let read = |row: &Row<'_>| {
        let columns = Columns(row);
        let scope = record::decode_scope(columns.bytes(2)?)?;
        Ok(WorktreeRow::of(columns.id(0)?, columns.id(1)?, &scope))
    };
    Ok(read_all(db, WORKTREES, params![], read)?.into_iter().flatten().collect())
}

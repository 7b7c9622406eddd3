//! Applies what `store::project` says a fact changes. Has no opinion of its own.

use crate::columns::{Columns, Id, Json, int};
use crate::error::SqliteError;
use crate::tx::{SqliteTx, StoredSession};
use crate::view::read_all;
use kernel::{Answer, Answerer, ApprovalId, EndWhy, Epoch, MessageId, Moment, Number, Scope, Turn};
use rusqlite::{OptionalExtension, Row, params};
use std::collections::BTreeMap;
use store::project::Change;
use store::{ReceiptState, record};

/// Seats from here on are given out when a message is accepted; it gets its real one, the number of the fact that first
/// speaks of it, when the keeper has seen it. So whatever the keeper has not seen sits behind what it has.
pub(crate) const UNSEEN_SEAT: i64 = 1 << 48;

/// The session's own row as it will be after the append.
pub(crate) struct Pending {
    /// Messages that are not final.
    pub(crate) count: u32,
    pub(crate) touched_at: Moment,
    pub(crate) ended: bool,
    /// The bodies with what approvals say that have not been asked yet: their words come before them.
    pub(crate) told: BTreeMap<ApprovalId, i64>,
}

impl Pending {
    pub(crate) fn new(kept: &StoredSession) -> Self {
        Self { count: kept.pending, touched_at: kept.touched_at, ended: false, told: BTreeMap::new() }
    }
}

pub(crate) fn apply(
    tx: &SqliteTx,
    kept: &StoredSession,
    pending: &mut Pending,
    number: Number,
    at: Moment,
    change: Change,
) -> Result<(), SqliteError> {
    match change {
        Change::Receipt { message, state, why } => receive(tx, pending, number, at, message, (state, why)),
        Change::Waits { message, epoch } => {
            // Every message that is queued comes by here: one statement for the row, where it is as it is nearly always.
            let row = params![message.stored(), int(at.0), epoch.0, UNSEEN_SEAT, int(number.0)];
            if tx.run(WAIT, row)? == 0 {
                receive(tx, pending, number, at, message, (ReceiptState::Waiting, None))?;
                let row = params![message.stored(), epoch.0];
                tx.run("UPDATE messages SET epoch = ?2 WHERE id = ?1", row)?;
            }
            Ok(())
        }
        Change::Revision { message, revision } => {
            let row = params![message.stored(), revision];
            tx.run("UPDATE messages SET revision = ?2 WHERE id = ?1", row).map(drop)
        }
        Change::Order(order) => arrange(tx, &order),
        Change::Began { message, turn } => {
            let row = params![message.stored(), turn.0, int(number.0)];
            tx.run("UPDATE messages SET turn = ?2, first = ?3 WHERE id = ?1", row).map(drop)
        }
        Change::Stopping { turn, why } => {
            let row = params![kept.sid, turn.0, why];
            tx.run("UPDATE messages SET why = ?3 WHERE sid = ?1 AND turn = ?2", row).map(drop)
        }
        Change::TurnOver { turn, state, why } => {
            pending.touched_at = pending.touched_at.max(at);
            for found in of_turn(tx, kept, turn)? {
                tx.run("UPDATE messages SET last = ?2 WHERE mid = ?1", params![found.mid, int(number.0)])?;
                let stays = found.why.as_deref().filter(|_| state == ReceiptState::Stopped);
                stand(tx, pending, &found, state, why.or(stays), at)?;
            }
            Ok(())
        }
        Change::Asked { approval, turn, until, terms } => {
            let posed = record::encode_terms(&terms);
            let body = pending.told.get(&approval);
            let (id, asked_at, until) = (approval.stored(), int(at.0), int(until.0));
            let (posed, number) = (posed.as_deref().map(Json), int(number.0));
            let row = params![id, kept.sid, kept.owner, turn.0, asked_at, until, posed, number, body];
            tx.run(ASK, row).map(drop)
        }
        Change::Answered { approval, answer, by } => settle(tx, approval, &answer, by, at),
        Change::Lapsed { approval } => {
            let sql = "UPDATE approvals SET state = 'lapsed', answer = NULL, answerer = NULL, settled_at = ?2
                 WHERE id = ?1";
            tx.run(sql, params![approval.stored(), int(at.0)]).map(drop)
        }
        Change::Missed { message } => put_first(tx, kept, message),
        Change::Scope { scope, epoch } => move_to(tx, kept, &scope, epoch),
        Change::Ended(why) => {
            pending.ended = true;
            end(tx, kept, why, at)
        }
    }
}

const WAIT: &str = "UPDATE messages SET state = 'waiting', why = NULL, changed_at = ?2, epoch = ?3,
        seat = CASE WHEN seat >= ?4 THEN ?5 ELSE seat END
     WHERE id = ?1 AND pending = 1";

/// The message stands so now.
fn receive(
    tx: &SqliteTx,
    pending: &mut Pending,
    number: Number,
    at: Moment,
    message: MessageId,
    (state, why): (ReceiptState, Option<&str>),
) -> Result<(), SqliteError> {
    // A fact may be about a message that this store was never given: the log keeps it, and there is no receipt.
    let Some(found) = find_message(tx, message)? else { return Ok(()) };
    if found.seat >= UNSEEN_SEAT && !state.is_final() {
        let row = params![found.mid, int(number.0)];
        tx.run("UPDATE messages SET seat = ?2 WHERE mid = ?1", row)?;
    }
    stand(tx, pending, &found, state, why, at)
}

const ASK: &str = "INSERT INTO approvals (id, sid, owner, turn, state, asked_at, until, posed, number, body)
     VALUES (?1, ?2, ?3, ?4, 'open', ?5, ?6, ?7, ?8, ?9)
     ON CONFLICT (id) DO UPDATE SET state = 'open', answer = NULL, answerer = NULL, settled_at = NULL,
        turn = excluded.turn, asked_at = excluded.asked_at, until = excluded.until, owner = excluded.owner,
        posed = excluded.posed, number = excluded.number, body = excluded.body";

/// A message as far as a change needs to know it.
struct MessageState {
    mid: i64,
    was_pending: bool,
    seat: i64,
    why: Option<String>,
}

impl MessageState {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { mid: row.get(0)?, was_pending: row.get(1)?, seat: row.get(2)?, why: row.get(3)? })
    }
}

fn find_message(tx: &SqliteTx, message: MessageId) -> Result<Option<MessageState>, SqliteError> {
    let mut query = tx.db().prepare_cached("SELECT mid, pending, seat, why FROM messages WHERE id = ?1")?;
    Ok(query.query_row([message.stored()], MessageState::read).optional()?)
}

fn of_turn(tx: &SqliteTx, kept: &StoredSession, turn: Turn) -> Result<Vec<MessageState>, SqliteError> {
    let mut query = tx
        .db()
        .prepare_cached("SELECT mid, pending, seat, why FROM messages WHERE sid = ?1 AND turn = ?2")?;
    let rows = query.query_map(params![kept.sid, turn.0], MessageState::read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn stand(
    tx: &SqliteTx,
    pending: &mut Pending,
    found: &MessageState,
    state: ReceiptState,
    why: Option<&str>,
    at: Moment,
) -> Result<(), SqliteError> {
    let is_pending = !state.is_final();
    let row = params![found.mid, record::state_word(state), why, int(at.0)];
    match (found.was_pending, is_pending) {
        (true, true) | (false, false) => {
            tx.run("UPDATE messages SET state = ?2, why = ?3, changed_at = ?4 WHERE mid = ?1", row)?;
        }
        (true, false) => {
            pending.count = pending.count.saturating_sub(1);
            tx.run(
                "UPDATE messages SET state = ?2, why = ?3, changed_at = ?4, pending = 0 WHERE mid = ?1",
                row,
            )?;
        }
        (false, true) => {
            pending.count += 1;
            tx.run(
                "UPDATE messages SET state = ?2, why = ?3, changed_at = ?4, pending = 1 WHERE mid = ?1",
                row,
            )?;
        }
    }
    Ok(())
}

/// The named messages share out the seats they have among themselves; whoever sits behind them stays behind them.
fn arrange(tx: &SqliteTx, order: &[MessageId]) -> Result<(), SqliteError> {
    let mut named = Vec::with_capacity(order.len());
    for message in order {
        named.extend(find_message(tx, *message)?);
    }
    let mut seats: Vec<_> = named.iter().map(|found| found.seat).collect();
    seats.sort_unstable();
    for (found, seat) in named.iter().zip(seats) {
        tx.run("UPDATE messages SET seat = ?2 WHERE mid = ?1", params![found.mid, seat])?;
    }
    Ok(())
}

/// It has no turn any more, and its seat is before every other one's that waits.
fn put_first(tx: &SqliteTx, kept: &StoredSession, message: MessageId) -> Result<(), SqliteError> {
    let mut query = tx.db().prepare_cached(FIRST_SEAT)?;
    let first: i64 = query.query_row([kept.sid], |row| row.get(0))?;
    let row = params![message.stored(), first - 1];
    tx.run("UPDATE messages SET turn = NULL, first = NULL, seat = ?2 WHERE id = ?1", row).map(drop)
}

pub(crate) const FIRST_SEAT: &str =
    "SELECT coalesce(min(seat), 0) FROM messages WHERE sid = ?1 AND pending = 1";

/// PersonRef may use another agent is another question, so whatever was seen of the session's record counts no more.
fn move_to(tx: &SqliteTx, kept: &StoredSession, scope: &Scope, epoch: Epoch) -> Result<(), SqliteError> {
    let sql = "SELECT scope FROM sessions WHERE sid = ?1";
    let agent = |row: &Row<'_>| Ok(record::decode_scope(Columns(row).bytes(0)?)?.agent);
    let before = read_all(tx.db(), sql, params![kept.sid], agent)?;
    let text = record::encode_scope(scope);
    let (in_worktree, grows) = (scope.worktree.is_some(), !before.contains(&scope.agent));
    tx.run(
        "UPDATE sessions SET scope = ?2, epoch = ?3, in_worktree = ?4, revision = revision + ?5 WHERE sid = ?1",
        params![kept.sid, Json(&text), epoch.0, in_worktree, grows],
    )?;
    let row = params![kept.sid, epoch.0, Json(&text)];
    tx.run("INSERT OR REPLACE INTO scopes (sid, epoch, scope) VALUES (?1, ?2, ?3)", row).map(drop)
}

fn settle(
    tx: &SqliteTx,
    approval: ApprovalId,
    answer: &Answer,
    by: Answerer,
    at: Moment,
) -> Result<(), SqliteError> {
    let text = record::encode_answer(answer);
    tx.run(
        "UPDATE approvals SET state = 'answered', answer = ?2, answerer = ?3, settled_at = ?4 WHERE id = ?1",
        params![approval.stored(), Json(&text), record::answerer_text(by), int(at.0)],
    )
    .map(drop)
}

fn end(tx: &SqliteTx, kept: &StoredSession, why: EndWhy, at: Moment) -> Result<(), SqliteError> {
    let row = params![kept.sid, record::end_word(why)];
    // An end that is told twice is one end.
    if tx.run("UPDATE sessions SET ended = ?2 WHERE sid = ?1 AND ended IS NULL", row)? > 0 {
        tx.run("UPDATE persons SET opened = opened - 1 WHERE pid = ?1", [kept.owner])?;
        tx.run("UPDATE orgs SET opened = opened - 1 WHERE org = ?1", [kept.org.stored()])?;
    }
    tx.run("DELETE FROM rules WHERE sid = ?1", [kept.sid])?;
    let row = params![kept.sid, int(at.0)];
    tx.run("UPDATE bindings SET until = ?2 WHERE sid = ?1 AND until IS NULL", row).map(drop)
}

//! Applies what `store::project` says a fact changes. Has no opinion of its own.

use crate::columns::{Columns, Id, Json, int};
use crate::error::SqliteError;
use crate::tx::{SqliteTx, StoredSession};
use crate::view::read_all;
use kernel::{ApprovalId, EndWhy, Epoch, MessageId, Moment, Number, Scope, Turn};
use rusqlite::{OptionalExtension, Row, params};
use std::collections::BTreeMap;
use store::project::Change;
use store::{LastTurn, LastWords, ReceiptState, record};

/// Seats from here on are given out when a message is accepted; it gets its real one, the number of the fact that first
/// speaks of it, when the keeper has seen it. So whatever the keeper has not seen sits behind what it has.
pub(crate) const UNSEEN_SEAT: i64 = 1 << 48;

/// The session's own row as it will be after the append.
pub(crate) struct Pending {
    /// Messages that are not final.
    pub(crate) count: u32,
    /// By how many more of them are held, or fewer.
    pub(crate) held: i64,
    /// By how many more questions are open, or fewer.
    pub(crate) questions: i64,
    pub(crate) touched_at: Moment,
    pub(crate) ended: bool,
    /// The beginning of the agent's last words so far, and whether that is news.
    pub(crate) words: LastWords,
    pub(crate) has_words: bool,
    /// The last turn that is over, if one of these facts says so.
    pub(crate) last: Option<LastTurn>,
    /// The bodies with what approvals say that have not been asked yet: their words come before them.
    pub(crate) told: BTreeMap<ApprovalId, i64>,
}

impl Pending {
    pub(crate) fn new(kept: &StoredSession) -> Self {
        Self {
            count: kept.pending,
            held: 0,
            questions: 0,
            touched_at: kept.touched_at,
            ended: false,
            words: kept.words.clone(),
            has_words: false,
            last: None,
            told: BTreeMap::new(),
        }
    }

    /// Takes note of a story fact, whose words have this body.
    pub(crate) fn hear(&mut self, turn: Turn, kind: &str, words: &[u8], body: i64) {
        self.told.extend(record::approval_told(kind, words).map(|approval| (approval, body)));
        self.has_words |= self.words.hear(turn, kind, words);
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
            // Every message that is queued comes by here: one statement for the row, where it is as it is nearly always. One that was
            // held is counted no more.
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
        Change::TurnOver { turn, outcome, state, why } => {
            pending.touched_at = pending.touched_at.max(at);
            pending.last = Some(LastTurn { outcome, number, at, words: pending.words.of(turn) });
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
            pending.questions += i64::from(!is_open(tx, approval)?);
            tx.run(ASK, row).map(drop)
        }
        Change::Answered { approval, answer, by } => {
            let (answer, by) = (record::encode_answer(&answer), record::answerer_text(by));
            settle(tx, pending, approval, ("answered", Some(Json(&answer)), by), at)
        }
        Change::Lapsed { approval } => settle(tx, pending, approval, ("lapsed", None, None), at),
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
     WHERE id = ?1 AND pending = 1 AND state <> 'held'";

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
    was_held: bool,
    seat: i64,
    why: Option<String>,
}

impl MessageState {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let (mid, was_pending, seat, why) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        Ok(Self { mid, was_pending, was_held: row.get(4)?, seat, why })
    }
}

const MESSAGE: &str = "SELECT mid, pending, seat, why, state = 'held' FROM messages";

fn find_message(tx: &SqliteTx, message: MessageId) -> Result<Option<MessageState>, SqliteError> {
    let mut query = tx.db().prepare_cached(&format!("{MESSAGE} WHERE id = ?1"))?;
    Ok(query.query_row([message.stored()], MessageState::read).optional()?)
}

fn of_turn(tx: &SqliteTx, kept: &StoredSession, turn: Turn) -> Result<Vec<MessageState>, SqliteError> {
    let mut query = tx.db().prepare_cached(&format!("{MESSAGE} WHERE sid = ?1 AND turn = ?2"))?;
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
    pending.held += i64::from(state == ReceiptState::Held) - i64::from(found.was_held);
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

fn is_open(tx: &SqliteTx, approval: ApprovalId) -> Result<bool, SqliteError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM approvals WHERE id = ?1 AND state = 'open')";
    Ok(tx.db().prepare_cached(sql)?.query_row([approval.stored()], |row| row.get(0))?)
}

fn settle(
    tx: &SqliteTx,
    pending: &mut Pending,
    approval: ApprovalId,
    (state, answer, by): (&str, Option<Json<'_>>, Option<String>),
    at: Moment,
) -> Result<(), SqliteError> {
    pending.questions -= i64::from(is_open(tx, approval)?);
    tx.run(
        "UPDATE approvals SET state = ?2, answer = ?3, answerer = ?4, settled_at = ?5 WHERE id = ?1",
        params![approval.stored(), state, answer, by, int(at.0)],
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

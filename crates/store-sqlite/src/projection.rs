//! Applies what `store::project` says a fact changes. Has no opinion of its own.

use crate::columns::{Id, int};
use crate::desk::{Desk, Kept};
use crate::trouble::Trouble;
use kernel::{MessageId, Moment, Number, PersonId, Turn};
use rusqlite::{OptionalExtension, Row, params};
use store::project::{Change, REVOKED};
use store::{ReceiptState, record};

/// Seats from here on are given out when a message is accepted; it gets its real one, the number of the fact that first
/// speaks of it, when the keeper has seen it. So whatever the keeper has not seen sits behind what it has.
pub(crate) const UNSEEN_SEAT: i64 = 1 << 48;

/// What the session's own row will say after the append.
pub(crate) struct Pending {
    /// Messages that are not final.
    pub(crate) count: u32,
    pub(crate) touched_at: Moment,
    pub(crate) ended: bool,
}

impl Pending {
    pub(crate) fn new(kept: &Kept) -> Self {
        Self { count: kept.pending, touched_at: kept.touched_at, ended: false }
    }
}

pub(crate) fn apply(
    desk: &Desk,
    kept: &Kept,
    pending: &mut Pending,
    number: Number,
    at: Moment,
    change: Change,
) -> Result<(), Trouble> {
    match change {
        Change::Receipt { message, state, why } => {
            // A fact may be about a message that this store was never given: the log keeps it, and there is no receipt.
            let Some(found) = find_message(desk, message)? else { return Ok(()) };
            if found.seat >= UNSEEN_SEAT && !state.is_final() {
                let row = params![found.mid, int(number.0)];
                desk.run("UPDATE messages SET seat = ?2 WHERE mid = ?1", row)?;
            }
            stand(desk, pending, &found, state, why, at)
        }
        Change::Revision { message, revision } => {
            let row = params![message.stored(), revision];
            desk.run("UPDATE messages SET revision = ?2 WHERE id = ?1", row).map(drop)
        }
        Change::Order(order) => arrange(desk, &order),
        Change::Began { message, turn } => {
            let row = params![message.stored(), turn.0, int(number.0)];
            desk.run("UPDATE messages SET turn = ?2, first = ?3 WHERE id = ?1", row).map(drop)
        }
        Change::Revoked { turn } => {
            let row = params![kept.sid, turn.0, REVOKED];
            desk.run("UPDATE messages SET why = ?3 WHERE sid = ?1 AND turn = ?2", row).map(drop)
        }
        Change::TurnOver { turn, state, why } => {
            pending.touched_at = pending.touched_at.max(at);
            for found in of_turn(desk, kept, turn)? {
                desk.run("UPDATE messages SET last = ?2 WHERE mid = ?1", params![found.mid, int(number.0)])?;
                let stays = found.why.as_deref().filter(|_| state == ReceiptState::Stopped);
                stand(desk, pending, &found, state, why.or(stays), at)?;
            }
            Ok(())
        }
        Change::Asked { approval, turn, until } => desk
            .run(
                "INSERT INTO approvals (id, sid, owner, turn, state, asked_at, until)
                 VALUES (?1, ?2, ?3, ?4, 'open', ?5, ?6)
                 ON CONFLICT (id) DO UPDATE SET state = 'open', by = NULL, turn = excluded.turn,
                    asked_at = excluded.asked_at, until = excluded.until, owner = excluded.owner",
                params![approval.stored(), kept.sid, kept.owner, turn.0, int(at.0), int(until.0)],
            )
            .map(drop),
        Change::Answered { approval, yes, by } => {
            answer(desk, approval.stored(), if yes { "yes" } else { "no" }, by)
        }
        Change::Lapsed { approval } => answer(desk, approval.stored(), "lapsed", None),
        Change::Ended(why) => {
            pending.ended = true;
            let row = params![kept.sid, record::end_word(why)];
            // An end that is told twice is one end.
            if desk.run("UPDATE sessions SET ended = ?2 WHERE sid = ?1 AND ended IS NULL", row)? > 0 {
                desk.run("UPDATE persons SET opened = opened - 1 WHERE pid = ?1", [kept.owner])?;
                desk.run("UPDATE orgs SET opened = opened - 1 WHERE org = ?1", [kept.org.stored()])?;
            }
            let row = params![kept.sid, int(at.0)];
            desk.run("UPDATE bindings SET until = ?2 WHERE sid = ?1 AND until IS NULL", row).map(drop)
        }
    }
}

/// A message as far as a change needs to know it.
struct Found {
    mid: i64,
    was_pending: bool,
    seat: i64,
    why: Option<String>,
}

impl Found {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { mid: row.get(0)?, was_pending: row.get(1)?, seat: row.get(2)?, why: row.get(3)? })
    }
}

fn find_message(desk: &Desk, message: MessageId) -> Result<Option<Found>, Trouble> {
    let mut query = desk.db().prepare_cached("SELECT mid, pending, seat, why FROM messages WHERE id = ?1")?;
    Ok(query.query_row([message.stored()], Found::read).optional()?)
}

fn of_turn(desk: &Desk, kept: &Kept, turn: Turn) -> Result<Vec<Found>, Trouble> {
    let mut query = desk
        .db()
        .prepare_cached("SELECT mid, pending, seat, why FROM messages WHERE sid = ?1 AND turn = ?2")?;
    let rows = query.query_map(params![kept.sid, turn.0], Found::read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn stand(
    desk: &Desk,
    pending: &mut Pending,
    found: &Found,
    state: ReceiptState,
    why: Option<&str>,
    at: Moment,
) -> Result<(), Trouble> {
    let is_pending = !state.is_final();
    let row = params![found.mid, record::state_word(state), why, int(at.0)];
    match (found.was_pending, is_pending) {
        (true, true) | (false, false) => {
            desk.run("UPDATE messages SET state = ?2, why = ?3, changed_at = ?4 WHERE mid = ?1", row)?;
        }
        (true, false) => {
            pending.count = pending.count.saturating_sub(1);
            desk.run(
                "UPDATE messages SET state = ?2, why = ?3, changed_at = ?4, pending = 0 WHERE mid = ?1",
                row,
            )?;
        }
        (false, true) => {
            pending.count += 1;
            desk.run(
                "UPDATE messages SET state = ?2, why = ?3, changed_at = ?4, pending = 1 WHERE mid = ?1",
                row,
            )?;
        }
    }
    Ok(())
}

/// The named messages share out the seats they have among themselves; whoever sits behind them stays behind them.
fn arrange(desk: &Desk, order: &[MessageId]) -> Result<(), Trouble> {
    let mut named = Vec::with_capacity(order.len());
    for message in order {
        named.extend(find_message(desk, *message)?);
    }
    let mut seats: Vec<_> = named.iter().map(|found| found.seat).collect();
    seats.sort_unstable();
    for (found, seat) in named.iter().zip(seats) {
        desk.run("UPDATE messages SET seat = ?2 WHERE mid = ?1", params![found.mid, seat])?;
    }
    Ok(())
}

fn answer(desk: &Desk, approval: [u8; 16], state: &str, by: Option<PersonId>) -> Result<(), Trouble> {
    let row = params![approval, state, by.map(Id::stored)];
    desk.run("UPDATE approvals SET state = ?2, by = ?3 WHERE id = ?1", row).map(drop)
}

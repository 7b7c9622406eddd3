//! Replies on their way out: waiting → sending → sent, unknown or parked.

use crate::columns::{Columns, int, rows};
use crate::error::SqliteError;
use crate::tx::SqliteTx;
use kernel::Moment;
use rusqlite::{Connection, Row, params};
use store::{Became, Outgoing, OutgoingState, record};

const OUTGOING: &str = "o.oid, s.id, o.address, o.message, o.kind, o.state, o.tries
    FROM outbox o JOIN sessions s ON s.sid = o.sid";

pub(crate) fn take(tx: &mut SqliteTx, now: Moment, limit: usize) -> Result<Vec<Outgoing>, SqliteError> {
    let sql = format!(
        "SELECT {OUTGOING} WHERE o.state = 'waiting' AND o.due_at <= ?1 ORDER BY o.due_at, o.oid LIMIT ?2"
    );
    let mut taken = read(tx.db(), &sql, params![int(now.0), rows(limit)])?;
    for outgoing in &mut taken {
        (outgoing.state, outgoing.tries) = (OutgoingState::Sending, outgoing.tries + 1);
        let row = params![int(outgoing.outgoing), outgoing.tries];
        tx.run("UPDATE outbox SET state = 'sending', tries = ?2 WHERE oid = ?1", row)?;
    }
    Ok(taken)
}

pub(crate) fn settle(tx: &mut SqliteTx, outgoing: u64, became: Became) -> Result<bool, SqliteError> {
    let (state, due_at) = match became {
        Became::Sent => (OutgoingState::Sent, None),
        Became::Unknown => (OutgoingState::Unknown, None),
        Became::Parked => (OutgoingState::Parked, None),
        Became::Again(due) => (OutgoingState::Waiting, Some(int(due.0))),
    };
    let changed = tx.run(
        "UPDATE outbox SET state = ?2, due_at = coalesce(?3, due_at) WHERE oid = ?1 AND state = 'sending'",
        params![int(outgoing), record::outgoing_state_word(state), due_at],
    )?;
    Ok(changed > 0)
}

pub(crate) fn list(
    db: &Connection,
    state: OutgoingState,
    limit: usize,
) -> Result<Vec<Outgoing>, SqliteError> {
    let sql = format!("SELECT {OUTGOING} WHERE o.state = ?1 ORDER BY o.oid LIMIT ?2");
    read(db, &sql, params![record::outgoing_state_word(state), rows(limit)])
}

fn read(db: &Connection, sql: &str, params: &[&dyn rusqlite::ToSql]) -> Result<Vec<Outgoing>, SqliteError> {
    let mut query = db.prepare_cached(sql)?;
    let mut found = query.query(params)?;
    let mut all = Vec::new();
    while let Some(row) = found.next()? {
        all.push(outgoing(row)?);
    }
    Ok(all)
}

fn outgoing(row: &Row<'_>) -> Result<Outgoing, SqliteError> {
    let row = Columns(row);
    Ok(Outgoing {
        outgoing: row.count(0)?,
        session: row.id(1)?,
        to: row.address(2)?,
        message: row.id(3)?,
        kind: record::outgoing_kind_parse(row.text(4)?)?,
        state: row.word(5, record::outgoing_state_parse)?,
        tries: row.small(6)?,
    })
}

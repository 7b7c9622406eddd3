//! Replies on their way out: waiting → sending → sent, unknown or parked. What may become of one is `store::Outgoing`'s to say.

use crate::columns::{Columns, Id, int, rows};
use crate::error::SqliteError;
use crate::tx::SqliteTx;
use kernel::{Moment, NodeId, OrgId};
use rusqlite::{Connection, Row, params};
use store::{Became, Outgoing, OutgoingState, TakeOutgoing, TakenOutgoing, record};

const OUTGOING: &str = "o.oid, p.org, s.id, o.address, o.message, o.kind, o.state, o.tries, o.due_at, o.node,
    o.service_id, o.reason, o.since
    FROM outbox o JOIN sessions s ON s.sid = o.sid JOIN persons p ON p.pid = s.owner";

/// In order per address: nothing overtakes what is being sent, or is still to be sent or read back.
const IS_FIRST: &str = "NOT EXISTS (SELECT 1 FROM outbox b WHERE b.address = o.address AND b.oid < o.oid
    AND (b.state = 'sending' OR b.due_at IS NOT NULL))";

pub(crate) fn take(
    tx: &mut SqliteTx,
    node: NodeId,
    take: &TakeOutgoing,
) -> Result<TakenOutgoing, SqliteError> {
    let lost = format!("SELECT {OUTGOING} WHERE o.state = 'sending' AND o.node = ?1");
    let lost = read(tx.db(), &lost, params![node.stored()])?;
    for outgoing in lost.iter().filter(|row| row.is_lost(node, take)) {
        outgoing.orphaned(take.now).map_or(Ok(()), |orphaned| write(tx, &orphaned))?;
    }
    let (schemes, due) = (list_of(&take.schemes), int(take.now.0));
    let sql = format!(
        "SELECT {OUTGOING} WHERE o.state = ?1 AND o.due_at <= ?2
         AND instr(?3, ',' || o.scheme || ',') > 0 AND {IS_FIRST} ORDER BY o.due_at, o.oid LIMIT ?4"
    );
    let waiting = read(tx.db(), &sql, params!["waiting", due, schemes, rows(take.limit)])?;
    let send: Vec<Outgoing> = waiting.iter().map(|row| row.taken(node, take.now)).collect();
    let unknown = read(tx.db(), &sql, params!["unknown", due, schemes, rows(take.limit)])?;
    let read_back: Vec<Outgoing> = unknown.iter().map(|row| row.asked_for(take.read_back_again)).collect();
    for outgoing in send.iter().chain(&read_back) {
        write(tx, outgoing)?;
    }
    let next = next_due(tx.db(), &schemes)?;
    Ok(TakenOutgoing { send, read_back, next })
}

fn next_due(db: &Connection, schemes: &str) -> Result<Option<Moment>, SqliteError> {
    let sql = format!(
        "SELECT min(o.due_at) FROM outbox o WHERE o.due_at IS NOT NULL
         AND instr(?1, ',' || o.scheme || ',') > 0 AND {IS_FIRST}"
    );
    let mut query = db.prepare_cached(&sql)?;
    let mut found = query.query(params![schemes])?;
    match found.next()? {
        Some(row) => Columns(row).moment_maybe(0),
        None => Ok(None),
    }
}

pub(crate) fn settle(
    tx: &mut SqliteTx,
    outgoing: u64,
    tries: u32,
    became: Became,
    now: Moment,
) -> Result<bool, SqliteError> {
    let next = one(tx.db(), outgoing)?.and_then(|row| row.after(tries, became, now));
    match next {
        Some(next) => write(tx, &next).map(|()| true),
        None => Ok(false),
    }
}

/// Rows that a node of this machine was sending when it went: whoever holds the file is the only one on it.
pub(crate) fn orphan(tx: &mut SqliteTx, host: &str, now: Moment) -> Result<(), SqliteError> {
    let sql = format!(
        "SELECT {OUTGOING} WHERE o.state = 'sending'
         AND (o.node IS NULL OR o.node IN (SELECT node FROM node_starts WHERE host = ?1))"
    );
    for outgoing in read(tx.db(), &sql, params![host])?.iter().filter_map(|row| row.orphaned(now)) {
        write(tx, &outgoing)?;
    }
    Ok(())
}

/// One that is not sent any more.
pub(crate) fn remove(tx: &SqliteTx, outgoing: u64) -> Result<(), SqliteError> {
    tx.run("DELETE FROM outbox WHERE oid = ?1", [int(outgoing)]).map(drop)
}

/// Forgets what was sent long ago, the oldest first.
pub(crate) fn clear(tx: &mut SqliteTx, before: Moment, limit: usize) -> Result<usize, SqliteError> {
    tx.run(
        "DELETE FROM outbox WHERE oid IN
             (SELECT oid FROM outbox WHERE state = 'sent' AND since < ?1 ORDER BY oid LIMIT ?2)",
        params![int(before.0), rows(limit)],
    )
}

pub(crate) fn list(
    db: &Connection,
    org: OrgId,
    state: Option<OutgoingState>,
    after: u64,
    limit: usize,
) -> Result<Vec<Outgoing>, SqliteError> {
    let sql = format!(
        "SELECT {OUTGOING} WHERE p.org = ?1 AND (?2 IS NULL OR o.state = ?2) AND o.oid > ?3 ORDER BY o.oid LIMIT ?4"
    );
    let word = state.map(record::outgoing_state_word);
    read(db, &sql, params![org.stored(), word, int(after), rows(limit)])
}

pub(crate) fn one(db: &Connection, outgoing: u64) -> Result<Option<Outgoing>, SqliteError> {
    Ok(read(db, &format!("SELECT {OUTGOING} WHERE o.oid = ?1"), params![int(outgoing)])?.pop())
}

/// Brings a row up to date with how the reply stands.
pub(crate) fn write(tx: &SqliteTx, outgoing: &Outgoing) -> Result<(), SqliteError> {
    tx.run(
        "UPDATE outbox SET state = ?2, tries = ?3, due_at = ?4, node = ?5, service_id = ?6, reason = ?7, since = ?8
         WHERE oid = ?1",
        params![
            int(outgoing.outgoing),
            record::outgoing_state_word(outgoing.state),
            outgoing.tries,
            outgoing.due.map(|due| int(due.0)),
            outgoing.node.map(Id::stored),
            outgoing.service_id,
            outgoing.reason,
            int(outgoing.since.0),
        ],
    )
    .map(drop)
}

/// Words with commas around each, to look one up in.
fn list_of(schemes: &[String]) -> String {
    format!(",{},", schemes.join(","))
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
        org: row.id(1)?,
        session: row.id(2)?,
        to: row.address(3)?,
        message: row.id(4)?,
        kind: record::outgoing_kind_parse(row.text(5)?)?,
        state: row.word(6, record::outgoing_state_parse)?,
        tries: row.small(7)?,
        due: row.moment_maybe(8)?,
        node: row.id_maybe(9)?,
        service_id: row.string_maybe(10)?,
        reason: row.string_maybe(11)?,
        since: row.moment(12)?,
    })
}

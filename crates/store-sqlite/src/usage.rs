//! The usage of turns: added up as it is told, and read by day for whoever asks.
//!
//! An append that tells of no usage runs no statement of these.

use crate::columns::{Columns, Id, int};
use crate::error::SqliteError;
use crate::sight;
use crate::tx::{Pid, Sid, SqliteTx, StoredSession};
use crate::view::{Sight, read_all};
use kernel::{Moment, Turn};
use rusqlite::{Connection, Row, params};
use std::collections::BTreeMap;
use store::{Day, Thing, USAGE_MAX, UsageQuery, UsageRow, UsageSum, record};

/// The agent of a session, and the sender of what a turn of it began with: what was steered into it began later, and with one `min`,
/// SQLite reads the other columns from the row that has it.
pub(crate) const PLACE: &str = "SELECT s.scope, ifnull(m.by, 0), min(m.first) FROM sessions s
        LEFT JOIN messages m ON m.sid = s.sid AND m.turn = ?2 WHERE s.sid = ?1";
/// No sum grows over `USAGE_MAX`, as anywhere else.
pub(crate) const ADD: &str = "INSERT INTO usage (owner, day, sid, agent, by, input, output, cached, cost)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
     ON CONFLICT (owner, day, sid, agent, by) DO UPDATE SET
        input = min(input + excluded.input, 9007199254740991), output = min(output + excluded.output, 9007199254740991),
        cached = min(cached + excluded.cached, 9007199254740991),
        cost = CASE WHEN excluded.cost IS NULL THEN cost ELSE min(ifnull(cost, 0) + excluded.cost, 9007199254740991) END";
const _: () = assert!(USAGE_MAX == 9_007_199_254_740_991);

/// Adds what a story fact of this session tells, if it tells of usage.
pub(crate) fn hear(
    tx: &SqliteTx,
    kept: &StoredSession,
    at: Moment,
    turn: Turn,
    kind: &str,
    words: &[u8],
) -> Result<(), SqliteError> {
    let Some(sum) = UsageSum::told(kind, words) else { return Ok(()) };
    let read = |row: &Row<'_>| {
        let row = Columns(row);
        Ok((record::decode_scope(row.bytes(0)?)?.agent, row.int(1)?))
    };
    let Some((agent, by)) = read_all(tx.db(), PLACE, params![kept.sid, turn.0], read)?.pop() else {
        return Ok(());
    };
    let (input, output, cached) = (int(sum.input_tokens), int(sum.output_tokens), int(sum.cached_tokens));
    let (day, cost) = (Day::of(at).0, sum.cost_micros.map(int));
    tx.run(ADD, params![kept.owner, day, kept.sid, agent, by, input, output, cached, cost]).map(drop)
}

const COLUMNS: &str = "u.sid, u.day, u.agent, u.by, u.input, u.output, u.cached, u.cost, w.person, w.handle";

pub(crate) fn owned_sql() -> String {
    format!(
        "SELECT {COLUMNS} FROM usage u LEFT JOIN persons w ON w.pid = u.by
         WHERE u.owner = ?1 AND u.day BETWEEN ?2 AND ?3"
    )
}

pub(crate) fn granted_sql() -> String {
    format!(
        "SELECT {COLUMNS} FROM grants g CROSS JOIN sessions s ON s.sid = g.sid CROSS JOIN persons p ON p.pid = s.owner
            CROSS JOIN usage u ON u.sid = s.sid LEFT JOIN persons w ON w.pid = u.by
         WHERE g.kind = ?1 AND g.grantee = ?2 AND p.org = ?3 AND s.owner <> ?4 AND u.day BETWEEN ?5 AND ?6"
    )
}

pub(crate) fn of_session_sql() -> String {
    format!(
        "SELECT {COLUMNS} FROM sessions s CROSS JOIN usage u ON u.sid = s.sid LEFT JOIN persons w ON w.pid = u.by
         WHERE s.id = ?1 AND u.day BETWEEN ?2 AND ?3"
    )
}

pub(crate) fn usage(db: &Connection, query: &UsageQuery) -> Result<Vec<UsageRow>, SqliteError> {
    let (from, to) = (query.from.0, query.to.0);
    // What was given in several ways is one amount.
    let mut amounts = BTreeMap::new();
    if let Some(session) = query.by.bound {
        if sight::sees(db, &query.by, Thing::Session(session))? {
            let row = params![session.stored(), from, to];
            amounts.extend(read_all(db, &of_session_sql(), row, amount)?);
        }
        return Ok(UsageRow::added_up(amounts.into_values()));
    }
    let sight = Sight::of(db, &query.by)?;
    if let Some(owner) = sight.owner {
        amounts.extend(read_all(db, &owned_sql(), params![owner, from, to], amount)?);
    }
    for (kind, grantee) in &sight.given {
        let row = params![kind, grantee, sight.org, sight.not_owner(), from, to];
        amounts.extend(read_all(db, &granted_sql(), row, amount)?);
    }
    Ok(UsageRow::added_up(amounts.into_values()))
}

/// The session, day, agent and person of an amount.
type AmountKey = (Sid, Day, String, Pid);

fn amount(row: &Row<'_>) -> Result<(AmountKey, UsageRow), SqliteError> {
    let row = Columns(row);
    let (day, agent) = (Day(row.small(1)?), row.text(2)?.to_owned());
    let sum = UsageSum {
        input_tokens: row.count(4)?,
        output_tokens: row.count(5)?,
        cached_tokens: row.count(6)?,
        cost_micros: row.count_maybe(7)?,
    };
    let (by, handle) = (row.id_maybe(8)?, row.text_maybe(9)?.map(str::to_owned));
    Ok(((row.int(0)?, day, agent.clone(), row.int(3)?), UsageRow { day, agent, by, handle, sum }))
}

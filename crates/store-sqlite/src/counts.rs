//! Counts of sessions: how many there are for somebody, and how many of them need somebody.
//!
//! The same rows as in lists, of which a few columns are read and judged by the store's own rule.

use crate::columns::{Columns, rows};
use crate::error::SqliteError;
use crate::sight;
use crate::tx::Sid;
use crate::view::{OPEN, Sight, marks_of, read_all};
use kernel::Number;
use rusqlite::{Connection, Row, params};
use std::collections::BTreeMap;
use store::{Attention, SEARCHED_MAX, Seer, SessionCounts, record};

const COLUMNS: &str = "s.sid, s.awake, s.questions, s.held, s.last_outcome, s.last_number, k.seen, k.pinned";

/// The newest of what somebody owns.
pub(crate) fn owned_sql() -> String {
    format!(
        "SELECT {COLUMNS} FROM sessions s LEFT JOIN marks k ON k.pid = ?1 AND k.sid = s.sid
         WHERE s.owner = ?1 AND {OPEN} ORDER BY s.touched_at DESC, s.id DESC LIMIT ?2"
    )
}

pub(crate) fn granted_sql() -> String {
    format!(
        "SELECT {COLUMNS} FROM grants g CROSS JOIN sessions s ON s.sid = g.sid CROSS JOIN persons p ON p.pid = s.owner
            LEFT JOIN marks k ON k.pid = ?4 AND k.sid = s.sid
         WHERE g.kind = ?1 AND g.grantee = ?2 AND p.org = ?3 AND s.owner <> ?4 AND {OPEN}
         ORDER BY s.touched_at DESC, s.id DESC LIMIT ?5"
    )
}

pub(crate) fn session_counts(db: &Connection, by: &Seer) -> Result<SessionCounts, SqliteError> {
    let mut counts = SessionCounts::default();
    if let Some(session) = by.bound {
        let row = sight::session(db, by, session)?.map(|(_, row)| row);
        let row = row.filter(|row| row.ended.is_none() && !row.archived);
        row.iter().for_each(|row| counts.count(&row.attention()));
        return Ok(counts);
    }
    let sight = Sight::of(db, by)?;
    // What was given in several ways is one session.
    let mut seen: BTreeMap<Sid, Attention> = BTreeMap::new();
    if let Some(owner) = sight.owner {
        seen.extend(read_all(db, &owned_sql(), params![owner, rows(SEARCHED_MAX)], attention)?);
    }
    for (kind, grantee) in &sight.given {
        let row = params![kind, grantee, sight.org, sight.not_owner(), rows(SEARCHED_MAX)];
        seen.extend(read_all(db, &granted_sql(), row, attention)?);
    }
    seen.values().for_each(|seen| counts.count(seen));
    Ok(counts)
}

fn attention(row: &Row<'_>) -> Result<(Sid, Attention), SqliteError> {
    let row = Columns(row);
    let outcome = row.word_maybe(4, record::outcome_parse)?;
    let last = outcome.zip(row.count_maybe(5)?.map(Number));
    let (awake, questions, held, marks) = (row.flag(1)?, row.small(2)?, row.small(3)?, marks_of(&row, 6)?);
    Ok((row.int(0)?, Attention { awake, questions, held, last, marks }))
}

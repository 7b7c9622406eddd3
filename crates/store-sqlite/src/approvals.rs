//! Lists of questions: the open ones and the settled ones, of everything that somebody may see or of one session.
//!
//! Each state is a list of its own, read from an index in the order of the page; what was given to somebody is joined to it.

use crate::columns::{Id, int, rows};
use crate::error::SqliteError;
use crate::sight;
use crate::view::{APPROVAL, Sight, approval_row, read_all};
use kernel::{ApprovalId, SessionId};
use rusqlite::{Connection, params};
use store::{ApprovalRow, ApprovalsQuery, Thing, WhichApprovals};

/// The states, as conditions that the indexes begin with.
const OPEN: &str = "a.state = 'open'";
const SETTLED: [&str; 2] = ["a.state = 'answered'", "a.state = 'lapsed'"];
const ALL: [&str; 3] = [OPEN, SETTLED[0], SETTLED[1]];

/// The end of a statement that reads a page: after which row, in which order, how many.
const OLDEST_FIRST: &str = "AND (a.asked_at, a.id) > (?1, ?2) ORDER BY a.asked_at, a.id LIMIT ?3";
const NEWEST_FIRST: &str = "AND (a.asked_at, a.id) < (?1, ?2) ORDER BY a.asked_at DESC, a.id DESC LIMIT ?3";

pub(crate) fn owned_sql(state: &str, order: &str) -> String {
    format!(
        "SELECT {APPROVAL} FROM approvals a JOIN sessions s ON s.sid = a.sid WHERE a.owner = ?4 AND {state} {order}"
    )
}

pub(crate) fn of_session_sql(state: &str, order: &str) -> String {
    format!(
        "SELECT {APPROVAL} FROM sessions s CROSS JOIN approvals a ON a.sid = s.sid WHERE s.id = ?4 AND {state} {order}"
    )
}

pub(crate) fn granted_sql(state: &str, order: &str) -> String {
    format!(
        "SELECT {APPROVAL} FROM grants g CROSS JOIN sessions s ON s.sid = g.sid CROSS JOIN persons p ON p.pid = s.owner
            CROSS JOIN approvals a ON a.sid = s.sid AND {state}
         WHERE g.kind = ?4 AND g.grantee = ?5 AND p.org = ?6 AND s.owner <> ?7 {order}"
    )
}

pub(crate) fn approvals(db: &Connection, query: &ApprovalsQuery) -> Result<Vec<ApprovalRow>, SqliteError> {
    let only = match (query.by.bound, query.session) {
        (Some(bound), Some(session)) if bound != session => return Ok(Vec::new()),
        (bound, session) => bound.or(session),
    };
    let found = match only {
        Some(session) => of_session(db, query, session)?,
        None => in_sight(db, query)?,
    };
    Ok(query.page(found))
}

fn of_session(
    db: &Connection,
    query: &ApprovalsQuery,
    session: SessionId,
) -> Result<Vec<ApprovalRow>, SqliteError> {
    let mut found = Vec::new();
    if !sight::sees(db, &query.by, Thing::Session(session))? {
        return Ok(found);
    }
    let ((at, id), order) = (begins(query), order(query));
    for state in states(query.which) {
        let row = params![at, id, rows(query.limit), session.stored()];
        found.extend(read_all(db, &of_session_sql(state, order), row, approval_row)?);
    }
    Ok(found)
}

fn in_sight(db: &Connection, query: &ApprovalsQuery) -> Result<Vec<ApprovalRow>, SqliteError> {
    let (sight, (at, id), order) = (Sight::of(db, &query.by)?, begins(query), order(query));
    let mut found = Vec::new();
    for state in states(query.which) {
        if let Some(owner) = sight.owner {
            let row = params![at, id, rows(query.limit), owner];
            found.extend(read_all(db, &owned_sql(state, order), row, approval_row)?);
        }
        for (kind, grantee) in &sight.given {
            let row = params![at, id, rows(query.limit), kind, grantee, sight.org, sight.not_owner()];
            found.extend(read_all(db, &granted_sql(state, order), row, approval_row)?);
        }
    }
    Ok(found)
}

fn states(which: WhichApprovals) -> &'static [&'static str] {
    match which {
        WhichApprovals::Open => &[OPEN],
        WhichApprovals::Settled => &SETTLED,
        WhichApprovals::All => &ALL,
    }
}

fn order(query: &ApprovalsQuery) -> &'static str {
    if query.is_oldest_first() { OLDEST_FIRST } else { NEWEST_FIRST }
}

/// The row after which the page begins; one before all of them if it is the first.
fn begins(query: &ApprovalsQuery) -> (i64, [u8; 16]) {
    let first = if query.is_oldest_first() { -1 } else { i64::MAX };
    let (at, id) = query.after.map_or((first, ApprovalId::from_bits(0)), |(at, id)| (int(at.0), id));
    (at, id.stored())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrations::migrate;

    /// The steps of a page: nothing is put in order, so that what is not on the page costs nothing.
    #[test]
    fn a_page_of_questions_is_read_in_its_order_whatever_their_state() {
        let mut db = Connection::open_in_memory().unwrap();
        migrate(&mut db, 0).unwrap();
        for state in ALL {
            for order in [OLDEST_FIRST, NEWEST_FIRST] {
                for (sql, index) in [
                    (owned_sql(state, order), "approvals_of_owner (owner=? AND state=? AND (asked_at,id)"),
                    (
                        of_session_sql(state, order),
                        "approvals_of_session (sid=? AND state=? AND (asked_at,id)",
                    ),
                ] {
                    let mut query = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
                    let count = query.parameter_count();
                    let steps = query.query_map(rusqlite::params_from_iter(vec![1; count]), |row| row.get(3));
                    let steps: Vec<String> = steps.unwrap().collect::<Result<_, _>>().unwrap();
                    assert!(steps.iter().any(|step| step.contains(index)), "{sql}: {steps:?}");
                    assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{sql}: {steps:?}");
                }
            }
        }
    }
}

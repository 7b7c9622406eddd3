//! The sessions whose row in lists has changed for somebody, with or without a fact, in the order of their last changes.

use crate::columns::{Columns, Id, grantee, int, rows};
use crate::error::SqliteError;
use crate::sight::sees;
use crate::tx::{SqliteTx, who};
use crate::view::{self, read_all};
use kernel::{Grantee, OrgId, PersonId, SessionId};
use rusqlite::{Connection, params};
use store::{ChangedRow, RowChange, Seer, Thing};

pub(crate) const OF_PERSON: &str = "SELECT r.place, s.id
     FROM row_changes r CROSS JOIN sessions s ON s.sid = r.sid
     WHERE r.pid = ?1 AND r.place > ?2 ORDER BY r.place LIMIT ?3";
pub(crate) const GIVEN_TO: &str = "SELECT s.id FROM grants g CROSS JOIN sessions s ON s.sid = g.sid
     WHERE g.kind = ?1 AND g.grantee = ?2";

/// A page of them after a place.
pub(crate) fn after(
    db: &Connection,
    by: &Seer,
    after: u64,
    limit: usize,
) -> Result<Vec<RowChange>, SqliteError> {
    let heads = view::heads(db, by, after, limit)?;
    let mut changes: Vec<RowChange> = heads.into_iter().map(Into::into).collect();
    let person = who(db, by.org, by.person)?;
    // A credential that is for one session only ends with the right to it.
    if let Some(person) = person.filter(|_| by.bound.is_none()) {
        let read = |row: &rusqlite::Row<'_>| Ok((Columns(row).count(0)?, Columns(row).id(1)?));
        let own: Vec<(u64, SessionId)> =
            read_all(db, OF_PERSON, params![person.pid, int(after), rows(limit)], read)?;
        for (place, session) in own {
            let is_seen = sees(db, by, Thing::Session(session))?;
            let row = if is_seen { ChangedRow::Other } else { ChangedRow::Gone };
            changes.push(RowChange { place, session, row });
        }
    }
    changes.sort_unstable_by_key(|change| change.place);
    changes.truncate(limit);
    Ok(changes)
}

/// The place of the last change of all.
pub(crate) fn last_place(db: &Connection) -> Result<u64, SqliteError> {
    let mut last = read_all(db, "SELECT place FROM counters", params![], |row| Columns(row).count(0))?;
    Ok(last.pop().unwrap_or(0))
}

/// The sessions on which this one was given something.
pub(crate) fn sessions_given(
    db: &Connection,
    org: OrgId,
    to: Grantee,
) -> Result<Vec<SessionId>, SqliteError> {
    let (kind, grantee) = grantee(to, org);
    read_all(db, GIVEN_TO, params![kind, grantee], |row| Columns(row).id(0))
}

/// Writes down that the row of this session is another one for this person from now on.
pub(crate) fn put(tx: &mut SqliteTx, person: PersonId, session: SessionId) -> Result<(), SqliteError> {
    let place = tx.next_place();
    tx.run(
        "INSERT OR REPLACE INTO row_changes (pid, sid, place)
         SELECT p.pid, s.sid, ?3 FROM persons p CROSS JOIN sessions s WHERE p.person = ?1 AND s.id = ?2",
        params![person.stored(), session.stored(), place],
    )?;
    Ok(())
}

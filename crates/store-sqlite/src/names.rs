//! Sessions by the names that people type: how an id begins or ends, or a title that a person gave.
//!
//! Ids are compared among those that the caller may see, and no others: what is hidden costs nothing and changes nothing. The ids of
//! what somebody owns are read from an index alone; rows are read of what fits.

use crate::change::owned_ids_sql;
use crate::columns::Columns;
use crate::error::SqliteError;
use crate::sight;
use crate::view::{LISTS, Sight, read_all};
use kernel::SessionId;
use rusqlite::{Connection, Row, params};
use std::cmp::Reverse;
use store::{Seer, SessionRow, TypedName};

pub(crate) const TITLED_OWNED: &str =
    "SELECT s.id FROM sessions s WHERE s.owner = ?1 AND s.title = ?2 AND s.title_by = 'person' LIMIT ?3";

/// The ids of what was given to somebody, each with the title that a person gave it.
pub(crate) const GRANTED: &str = "SELECT s.id, CASE WHEN s.title_by = 'person' THEN s.title END
     FROM grants g CROSS JOIN sessions s ON s.sid = g.sid CROSS JOIN persons p ON p.pid = s.owner
     WHERE g.kind = ?1 AND g.grantee = ?2 AND p.org = ?3 AND s.owner <> ?4";

pub(crate) fn sessions_named(
    db: &Connection,
    by: &Seer,
    name: &TypedName,
    limit: usize,
) -> Result<Vec<SessionRow>, SqliteError> {
    let mut found = match by.bound {
        Some(session) => vec![session],
        None => visible(db, &Sight::of(db, by)?, name, limit)?,
    };
    found.sort_unstable();
    found.dedup();
    let mut rows = Vec::new();
    for session in found {
        let row = sight::session(db, by, session)?.map(|(_, row)| row);
        rows.extend(row.filter(|row| name.names(row)));
    }
    rows.sort_unstable_by_key(|row| Reverse((row.touched_at, row.session)));
    rows.truncate(limit);
    Ok(rows)
}

fn visible(
    db: &Connection,
    sight: &Sight,
    name: &TypedName,
    limit: usize,
) -> Result<Vec<SessionId>, SqliteError> {
    let mut found = Vec::new();
    let id = |row: &Row<'_>| Columns(row).id::<SessionId>(0);
    if let Some(owner) = sight.owner {
        for list in LISTS {
            let ids = read_all(db, &owned_ids_sql(list), params![owner], id)?;
            found.extend(ids.into_iter().filter(|id| name.is_of(id)).take(limit));
        }
        found.extend(read_all(db, TITLED_OWNED, params![owner, name.title(), limit as i64], id)?);
    }
    let read = |row: &Row<'_>| Ok((id(row)?, Columns(row).text_maybe(1)? == Some(name.title())));
    for (kind, grantee) in &sight.given {
        let row = params![kind, grantee, sight.org, sight.not_owner()];
        let given = read_all(db, GRANTED, row, read)?;
        let fits = given.into_iter().filter(|(id, is_titled)| *is_titled || name.is_of(id));
        found.extend(fits.map(|(id, _)| id).take(limit));
    }
    Ok(found)
}

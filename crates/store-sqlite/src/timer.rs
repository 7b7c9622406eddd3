//! Work that is due by itself, and work that was left unfinished.

use crate::columns::{Columns, Id, int, rows};
use crate::error::SqliteError;
use crate::tx::SqliteTx;
use crate::way_in::put_into_inbox;
use kernel::{Moment, SessionId};
use rusqlite::{Connection, params};
use store::InboxItem;

pub(crate) fn next_wake(db: &Connection) -> Result<Option<Moment>, SqliteError> {
    let mut query = db.prepare_cached("SELECT min(wake_at) FROM sessions WHERE wake_at IS NOT NULL")?;
    let mut found = query.query([])?;
    match found.next()? {
        Some(row) => Ok(Columns(row).count_maybe(0)?.map(Moment)),
        None => Ok(None),
    }
}

/// The inbox has it then; the keeper's next append says when again.
pub(crate) fn wake(tx: &mut SqliteTx, now: Moment, limit: usize) -> Result<Vec<SessionId>, SqliteError> {
    let due = {
        let mut query = tx.db().prepare_cached(
            "SELECT id FROM sessions WHERE wake_at IS NOT NULL AND wake_at <= ?1 ORDER BY wake_at, id LIMIT ?2",
        )?;
        let ids = query.query_map(params![int(now.0), rows(limit)], |row| row.get(0).map(SessionId::read))?;
        ids.collect::<Result<Vec<_>, _>>()?
    };
    for session in &due {
        tx.run("UPDATE sessions SET wake_at = NULL WHERE id = ?1", [session.stored()])?;
        put_into_inbox(tx, *session, now, &InboxItem::Wake)?;
    }
    Ok(due)
}

pub(crate) const AWAKE: &str = "SELECT id FROM sessions WHERE awake = 1 AND id > ?1 ORDER BY id LIMIT ?2";
pub(crate) const WAITING: &str =
    "SELECT DISTINCT session FROM inbox WHERE session > ?1 ORDER BY session LIMIT ?2";

/// Two short lists in the same order: sessions with a turn under way, and sessions with something in the inbox.
pub(crate) fn unfinished(
    db: &Connection,
    after: Option<SessionId>,
    limit: usize,
) -> Result<Vec<SessionId>, SqliteError> {
    // An empty blob comes before every id.
    let after = after.map(|session| session.stored().to_vec()).unwrap_or_default();
    let mut page = Vec::new();
    for sql in [AWAKE, WAITING] {
        let mut query = db.prepare_cached(sql)?;
        let ids = query.query_map(params![after, rows(limit)], |row| row.get(0).map(SessionId::read))?;
        page.extend(ids.collect::<Result<Vec<_>, _>>()?);
    }
    page.sort_unstable();
    page.dedup();
    page.truncate(limit);
    Ok(page)
}

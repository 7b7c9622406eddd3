//! The past of a session: its turns, and the words of messages that its facts name.

use crate::columns::{Columns, Id, rows};
use crate::error::SqliteError;
use crate::log;
use crate::view::{MESSAGES, RECEIPT_COLUMNS, message_shown_row, read_all};
use kernel::{MessageId, SessionId, Turn};
use rusqlite::{Connection, Row, params};
use store::{QueuedRow, TurnRow};

/// Of the messages of a turn, what was steered into it began later: with one `min`, SQLite reads the others of a group's columns
/// from the row that has it.
pub(crate) fn turns_sql() -> String {
    format!(
        "SELECT {RECEIPT_COLUMNS}, p.handle, CASE WHEN length(b.words) <= ?4 THEN b.words END,
            (SELECT at FROM facts f WHERE f.sid = m.sid AND f.number = m.first), min(m.first)
         FROM {MESSAGES} LEFT JOIN bodies b ON b.body = m.body
         WHERE m.sid = (SELECT sid FROM sessions WHERE id = ?1) AND m.turn IS NOT NULL AND m.turn < ?2
         GROUP BY m.turn ORDER BY m.turn DESC LIMIT ?3"
    )
}

/// A page of turns, the newest first.
pub(crate) fn turns(
    db: &Connection,
    session: SessionId,
    before: Option<Turn>,
    limit: usize,
    bytes: usize,
) -> Result<Vec<TurnRow>, SqliteError> {
    let read =
        |row: &Row<'_>| Ok(TurnRow { message: message_shown_row(row)?, began_at: Columns(row).moment(22)? });
    let before = before.map_or(i64::MAX, |before| i64::from(before.0));
    read_all(db, &turns_sql(), params![session.stored(), before, rows(limit), rows(bytes)], read)
}

pub(crate) fn message_shown_sql() -> String {
    format!(
        "SELECT {RECEIPT_COLUMNS}, p.handle, CASE WHEN length(b.words) <= ?3 THEN b.words END
         FROM {MESSAGES} LEFT JOIN bodies b ON b.body = m.body WHERE m.id = ?1 AND s.id = ?2"
    )
}

/// These messages of a session, with what goes along.
pub(crate) fn messages_shown(
    db: &Connection,
    session: SessionId,
    messages: &[MessageId],
    bytes: usize,
) -> Result<Vec<QueuedRow>, SqliteError> {
    let mut shown = Vec::with_capacity(messages.len());
    for message in messages {
        let row = params![message.stored(), session.stored(), rows(bytes)];
        let Some(found) = read_all(db, &message_shown_sql(), row, message_shown_row)?.pop() else { continue };
        shown.push(QueuedRow { attachments: log::attachments(db, *message)?, ..found });
    }
    Ok(shown)
}

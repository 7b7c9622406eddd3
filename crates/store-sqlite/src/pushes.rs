//! Where people are told: one row for each credential that asked for it, which goes with the credential (`0020_pushes.sql`).

use crate::columns::{Columns, Id, int};
use crate::error::SqliteError;
use crate::people;
use crate::tx::SqliteTx;
use crate::view;
use kernel::{OrgId, PersonId, Principal, TokenId};
use rusqlite::{Connection, Row, params};
use store::{AuditSubject, NewPush, PUSHES_MAX, PushPlace, PushRow, Trail};

/// The columns of a row, in the order in which `read` reads them.
const PUSH: &str = "SELECT u.token, p.person, u.endpoint, u.p256dh, u.auth, u.since
    FROM pushes u CROSS JOIN persons p ON p.pid = u.pid";

/// All of an org's people are read together: they are few, and read when there is something to tell.
pub(crate) fn of_org_sql() -> String {
    format!("{PUSH} WHERE p.org = ?1 ORDER BY u.since, u.token")
}

pub(crate) fn of_person_sql() -> String {
    format!("{PUSH} WHERE u.pid = ?1 ORDER BY u.since, u.token")
}

pub(crate) fn of_token_sql() -> String {
    format!("{PUSH} WHERE u.token = ?1")
}

pub(crate) const TAKEN_OVER: &str = "DELETE FROM pushes WHERE endpoint = ?1 AND auth = ?2";
/// Newest first, so that what is beyond the bound is the oldest.
pub(crate) const TOO_MANY: &str = "DELETE FROM pushes WHERE token IN
    (SELECT token FROM pushes WHERE pid = ?1 ORDER BY since DESC, token DESC LIMIT -1 OFFSET ?2)";

fn read(row: &Row<'_>) -> Result<PushRow, SqliteError> {
    let columns = Columns(row);
    let place = PushPlace { endpoint: columns.text(2)?.to_owned(), p256dh: row.get(3)?, auth: row.get(4)? };
    Ok(PushRow { token: columns.id(0)?, person: columns.id(1)?, place, since: columns.moment(5)? })
}

pub(crate) fn list(
    db: &Connection,
    org: OrgId,
    person: Option<PersonId>,
) -> Result<Vec<PushRow>, SqliteError> {
    let Some(person) = person else { return view::read_all(db, &of_org_sql(), params![org.stored()], read) };
    let Some(somebody) = people::of(db, org, person)? else { return Ok(Vec::new()) };
    view::read_all(db, &of_person_sql(), params![somebody.pid], read)
}

pub(crate) fn of(db: &Connection, token: TokenId) -> Result<Option<PushRow>, SqliteError> {
    Ok(view::read_all(db, &of_token_sql(), params![token.stored()], read)?.pop())
}

pub(crate) fn set(tx: &mut SqliteTx, by: &Principal, push: &NewPush) -> Result<bool, SqliteError> {
    let Some(token) = by.credential else { return Ok(false) };
    let NewPush { place: PushPlace { endpoint, p256dh, auth }, trail } = push;
    let who = tx.who_at_first_sight(by.org, by.person)?;
    if !tx.db().prepare_cached("SELECT 1 FROM tokens WHERE token = ?1")?.exists(params![token.stored()])? {
        return Ok(false);
    }
    tx.run(TAKEN_OVER, params![endpoint, auth])?;
    tx.run(
        "INSERT OR REPLACE INTO pushes (token, pid, endpoint, p256dh, auth, since) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![token.stored(), who.pid, endpoint, p256dh, auth, int(trail.at.0)],
    )?;
    tx.run(TOO_MANY, params![who.pid, PUSHES_MAX as i64])?;
    tx.done(who, &AuditSubject::named(token), trail)?;
    Ok(true)
}

pub(crate) fn remove(
    tx: &mut SqliteTx,
    by: &Principal,
    token: TokenId,
    trail: &Trail,
) -> Result<bool, SqliteError> {
    let who = tx.who_at_first_sight(by.org, by.person)?;
    let gone =
        tx.run("DELETE FROM pushes WHERE token = ?1 AND pid = ?2", params![token.stored(), who.pid])?;
    tx.done(who, &AuditSubject::named(token), trail)?;
    Ok(gone > 0)
}

pub(crate) fn forget(tx: &mut SqliteTx, token: TokenId, endpoint: &str) -> Result<(), SqliteError> {
    let sql = "DELETE FROM pushes WHERE token = ?1 AND endpoint = ?2";
    tx.run(sql, params![token.stored(), endpoint]).map(drop)
}

//! Proofs that let people in: credentials, links, and names at identity providers.

use crate::columns::{Columns, Id, int};
use crate::error::SqliteError;
use crate::people::{self, BY_PID, Somebody};
use crate::tx::{Pid, SqliteTx};
use crate::view;
use kernel::people::{CredentialState, LinkState, lets_in, link_lets_in};
use kernel::{Moment, OrgId, PersonId, Principal, Rights, SessionId, TokenId, Turn};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use store::{LoginRow, NewLink, TokenRow, TokenView, record};

/// The columns of a credential, in the order in which `StoredToken` reads them.
const TOKEN: &str =
    "t.token, t.hash, p.person, t.purpose, t.name, t.rights, t.client, t.session, t.turn, t.made_at,
    t.expires, t.idle_ms_max, t.last_used, t.pid, t.old_until, t.parent FROM tokens t JOIN persons p ON p.pid = t.pid";

/// A credential, when it was last used, and whose it is.
struct StoredToken {
    row: TokenRow,
    last_used: Option<Moment>,
    pid: Pid,
    /// Until when the secret before this one counts.
    old_until: Option<Moment>,
}

impl StoredToken {
    fn read(row: &Row<'_>) -> Result<Self, SqliteError> {
        let row = Columns(row);
        let rights = u8::try_from(row.int(5)?).ok().and_then(Rights::from_bits);
        let rights =
            rights.ok_or_else(|| SqliteError::Damaged("a credential has rights nobody knows".into()))?;
        let bound = row.id_maybe::<SessionId>(7)?.zip(row.small_maybe(8)?.map(Turn));
        let token = TokenRow {
            token: row.id(0)?,
            hash: row.hash(1)?,
            person: row.id(2)?,
            purpose: row.word(3, record::purpose_parse)?,
            name: row.string_maybe(4)?,
            rights,
            client: row.string_maybe(6)?,
            bound,
            made_at: row.moment(9)?,
            expires: row.moment_maybe(10)?,
            idle_ms_max: row.count_maybe(11)?,
            parent: row.id_maybe(15)?,
        };
        let (last_used, pid, old_until) = (row.moment_maybe(12)?, row.int(13)?, row.moment_maybe(14)?);
        Ok(Self { row: token, last_used, pid, old_until })
    }
}

pub(crate) fn token_sql(condition: &str) -> String {
    format!("SELECT {TOKEN} WHERE {condition}")
}

pub(crate) const BY_HASH: &str = "t.hash = ?1";
pub(crate) const BY_OLD_HASH: &str = "t.previous IS NOT NULL AND t.previous = ?1";
pub(crate) const BY_ID: &str = "t.token = ?1";
pub(crate) const OF_PERSON: &str = "t.pid = ?1 ORDER BY t.made_at DESC";

fn find(db: &Connection, condition: &str, params: &[&dyn ToSql]) -> Result<Option<StoredToken>, SqliteError> {
    Ok(view::read_all(db, &token_sql(condition), params, StoredToken::read)?.pop())
}

pub(crate) fn token(db: &Connection, hash: [u8; 32], now: Moment) -> Result<Option<Principal>, SqliteError> {
    if let Some(token) = find(db, BY_HASH, params![hash])? {
        return principal_by(db, &token, None, now);
    }
    let Some(token) = find(db, BY_OLD_HASH, params![hash])? else { return Ok(None) };
    principal_by(db, &token, Some(token.old_until.unwrap_or(Moment(0))), now)
}

pub(crate) fn principal(
    db: &Connection,
    credential: TokenId,
    now: Moment,
) -> Result<Option<Principal>, SqliteError> {
    let found = find(db, BY_ID, params![credential.stored()])?;
    found.map_or(Ok(None), |token| principal_by(db, &token, None, now))
}

/// Somebody, as who they are with this credential.
pub(crate) fn with_credential(
    db: &Connection,
    credential: TokenId,
    person: Principal,
) -> Result<Option<Principal>, SqliteError> {
    let token = find(db, BY_ID, params![credential.stored()])?;
    Ok(token.map(|token| token.row.of(person)))
}

/// A credential, with what decides whether it lets its person in.
pub(crate) fn credential(
    db: &Connection,
    token: TokenId,
) -> Result<Option<(TokenRow, CredentialState)>, SqliteError> {
    let Some(token) = find(db, BY_ID, params![token.stored()])? else { return Ok(None) };
    let (state, _) = state_of(db, &token, None)?;
    Ok(Some((token.row, state)))
}

fn state_of(
    db: &Connection,
    token: &StoredToken,
    old_until: Option<Moment>,
) -> Result<(CredentialState, Option<Somebody>), SqliteError> {
    let is_under_way = match token.row.bound {
        Some((session, turn)) => is_under_way(db, session, turn)?,
        None => true,
    };
    let person = whose(db, token.pid)?;
    let is_disabled = person.as_ref().is_none_or(Somebody::is_disabled);
    Ok((CredentialState { last_used: token.last_used, old_until, is_under_way, is_disabled }, person))
}

fn principal_by(
    db: &Connection,
    token: &StoredToken,
    old_until: Option<Moment>,
    now: Moment,
) -> Result<Option<Principal>, SqliteError> {
    let (state, person) = state_of(db, token, old_until)?;
    let person = person.filter(|_| lets_in(&token.row, state, now));
    person.map(|person| Ok(token.row.of(people::principal(db, &person)?))).transpose()
}

pub(crate) const UNDER_WAY: &str = "SELECT 1 FROM sessions s CROSS JOIN messages m ON m.sid = s.sid
    WHERE s.id = ?1 AND m.turn IS NOT NULL AND m.turn = ?2 AND m.state = 'running'";

pub(crate) fn is_under_way(db: &Connection, session: SessionId, turn: Turn) -> Result<bool, SqliteError> {
    Ok(db.prepare_cached(UNDER_WAY)?.exists(params![session.stored(), turn.0])?)
}

fn whose(db: &Connection, pid: Pid) -> Result<Option<Somebody>, SqliteError> {
    Ok(people::somebody(db, BY_PID, params![pid])?.pop())
}

pub(crate) fn tokens(db: &Connection, org: OrgId, person: PersonId) -> Result<Vec<TokenView>, SqliteError> {
    let Some(somebody) = people::of(db, org, person)? else { return Ok(Vec::new()) };
    let tokens = view::read_all(db, &token_sql(OF_PERSON), params![somebody.pid], StoredToken::read)?;
    // A person has few: which of them are shown is the kernel's to say, not the query's.
    let shown = tokens.iter().filter(|token| token.row.purpose.is_listed());
    let mut views: Vec<_> = shown.map(|token| TokenView::of(&token.row, token.last_used)).collect();
    views.sort_by_key(|view| std::cmp::Reverse((view.made_at, view.token)));
    Ok(views)
}

pub(crate) const MADE_WITH: &str =
    "SELECT token FROM tokens WHERE parent IS NOT NULL AND parent = ?1 ORDER BY token";
pub(crate) const CLEAR_TOKENS: &str = "DELETE FROM tokens WHERE expires <= ?1";
pub(crate) const CLEAR_LINKS: &str = "DELETE FROM links WHERE expires <= ?1";
pub(crate) const DROP_PURPOSE: &str = "DELETE FROM tokens WHERE pid = ?1 AND purpose = ?2";
pub(crate) const DROP_TURNS: &str =
    "DELETE FROM tokens WHERE session IS NOT NULL AND session = ?1 AND purpose = 'turn'";

pub(crate) fn put_token(tx: &SqliteTx, pid: Pid, token: &TokenRow) -> Result<(), SqliteError> {
    tx.run(
        "INSERT INTO tokens (token, hash, pid, purpose, name, rights, client, session, turn, made_at, expires,
                             idle_ms_max, parent)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        params![
            token.token.stored(),
            token.hash,
            pid,
            record::purpose_word(token.purpose),
            token.name,
            token.rights.bits(),
            token.client,
            token.bound.map(|(session, _)| session.stored()),
            token.bound.map(|(_, turn)| turn.0),
            int(token.made_at.0),
            token.expires.map(|until| int(until.0)),
            token.idle_ms_max.map(int),
            token.parent.map(Id::stored),
        ],
    )
    .map(drop)
}

pub(crate) fn touch_tokens(tx: &mut SqliteTx, used: &[(TokenId, Moment)]) -> Result<(), SqliteError> {
    for (token, at) in used {
        tx.run(
            "UPDATE tokens SET last_used = max(coalesce(last_used, 0), ?2) WHERE token = ?1",
            params![token.stored(), int(at.0)],
        )?;
    }
    Ok(())
}

pub(crate) fn put_link(
    tx: &SqliteTx,
    person: PersonId,
    link: &NewLink,
    parent: Option<TokenId>,
) -> Result<(), SqliteError> {
    tx.run(
        "INSERT OR REPLACE INTO links (hash, pid, expires, parent)
         SELECT ?2, pid, ?3, ?4 FROM persons WHERE person = ?1 AND handle IS NOT NULL",
        params![person.stored(), link.hash, int(link.expires.0), parent.map(Id::stored)],
    )
    .map(drop)
}

pub(crate) const LINK: &str = "SELECT pid, expires, parent FROM links WHERE hash = ?1";
pub(crate) const DROP_LINKS_MADE_WITH: &str = "DELETE FROM links WHERE parent IS NOT NULL AND parent = ?1";
pub(crate) const IDS_OF_PERSON: &str = "SELECT token FROM tokens WHERE pid = ?1";

/// A link, and whoever it would let in.
pub(crate) fn link_state(
    db: &Connection,
    hash: [u8; 32],
) -> Result<Option<(LinkState, LoginRow)>, SqliteError> {
    let read = |row: &Row<'_>| {
        let columns = Columns(row);
        Ok((row.get::<_, Pid>(0)?, columns.moment(1)?, columns.id_maybe(2)?))
    };
    let found = view::read_all(db, LINK, params![hash], read)?.pop();
    let Some((pid, expires, parent)) = found else { return Ok(None) };
    let Some(somebody) = whose(db, pid)? else { return Ok(None) };
    let (person, is_disabled) = (somebody.row.person, somebody.is_disabled());
    Ok(Some((LinkState { person, expires, is_disabled, parent }, somebody.login())))
}

pub(crate) fn link(db: &Connection, hash: [u8; 32], now: Moment) -> Result<Option<LoginRow>, SqliteError> {
    let found = link_state(db, hash)?;
    Ok(found.filter(|(link, _)| link_lets_in(*link, now)).map(|(_, login)| login))
}

pub(crate) const IDENTITY: &str = "SELECT pid FROM identities WHERE issuer = ?1 AND subject = ?2";

pub(crate) fn identity(
    db: &Connection,
    issuer: &str,
    subject: &str,
) -> Result<Option<LoginRow>, SqliteError> {
    Ok(pid_of_identity(db, issuer, subject)?.map_or(Ok(None), |pid| whose(db, pid))?.map(Somebody::login))
}

pub(crate) fn pid_of_identity(
    db: &Connection,
    issuer: &str,
    subject: &str,
) -> Result<Option<Pid>, SqliteError> {
    let mut query = db.prepare_cached(IDENTITY)?;
    Ok(query.query_row(params![issuer, subject], |row| row.get(0)).optional()?)
}

//! What lets people in: credentials, links, and names at identity providers.

use crate::columns::{Columns, Id, int};
use crate::error::SqliteError;
use crate::people::{self, BY_PID, Somebody};
use crate::tx::{Pid, SqliteTx};
use crate::view;
use kernel::{Moment, OrgId, PersonId, Principal, Rights, SessionId, TokenId, Turn};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use store::{About, LinkToken, LoginRow, NewLink, Purpose, SignedIn, TokenRow, TokenView, Trail, record};

/// The columns of a credential, in the order in which `Token` reads them.
const TOKEN: &str =
    "t.token, t.hash, p.person, t.purpose, t.name, t.rights, t.client, t.session, t.turn, t.made_at,
    t.expires, t.idle_ms_max, t.last_used, t.pid FROM tokens t JOIN persons p ON p.pid = t.pid";

/// A credential, when it was last used, and whose it is.
struct Token {
    row: TokenRow,
    last_used: Option<Moment>,
    pid: Pid,
}

impl Token {
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
        };
        Ok(Self { row: token, last_used: row.moment_maybe(12)?, pid: row.int(13)? })
    }
}

pub(crate) fn token_sql(condition: &str) -> String {
    format!("SELECT {TOKEN} WHERE {condition}")
}

pub(crate) const BY_HASH: &str = "t.hash = ?1";
pub(crate) const BY_OLD_HASH: &str = "t.previous IS NOT NULL AND t.previous = ?1 AND t.old_until > ?2";
pub(crate) const BY_ID: &str = "t.token = ?1";
pub(crate) const OF_PERSON: &str =
    "t.pid = ?1 AND t.purpose NOT IN ('machine', 'turn') ORDER BY t.made_at DESC";

fn find(db: &Connection, condition: &str, params: &[&dyn ToSql]) -> Result<Option<Token>, SqliteError> {
    Ok(view::read_all(db, &token_sql(condition), params, Token::read)?.pop())
}

pub(crate) fn token(db: &Connection, hash: [u8; 32], now: Moment) -> Result<Option<Principal>, SqliteError> {
    let found = match find(db, BY_HASH, params![hash])? {
        Some(token) => Some(token),
        None => find(db, BY_OLD_HASH, params![hash, int(now.0)])?,
    };
    found.map_or(Ok(None), |token| lets_in(db, &token, now))
}

pub(crate) fn principal(
    db: &Connection,
    credential: TokenId,
    now: Moment,
) -> Result<Option<Principal>, SqliteError> {
    find(db, BY_ID, params![credential.stored()])?.map_or(Ok(None), |token| lets_in(db, &token, now))
}

fn lets_in(db: &Connection, token: &Token, now: Moment) -> Result<Option<Principal>, SqliteError> {
    if !token.row.is_fresh(token.last_used, now) {
        return Ok(None);
    }
    if let Some((session, turn)) = token.row.bound
        && !is_under_way(db, session, turn)?
    {
        return Ok(None);
    }
    let person = whose(db, token.pid)?.filter(|somebody| !somebody.is_disabled());
    person.map(|person| Ok(token.row.of(people::principal(db, &person)?))).transpose()
}

pub(crate) const UNDER_WAY: &str = "SELECT 1 FROM sessions s CROSS JOIN messages m ON m.sid = s.sid
    WHERE s.id = ?1 AND m.turn IS NOT NULL AND m.turn = ?2 AND m.state = 'running'";

fn is_under_way(db: &Connection, session: SessionId, turn: Turn) -> Result<bool, SqliteError> {
    Ok(db.prepare_cached(UNDER_WAY)?.exists(params![session.stored(), turn.0])?)
}

fn whose(db: &Connection, pid: Pid) -> Result<Option<Somebody>, SqliteError> {
    Ok(people::somebody(db, BY_PID, params![pid])?.pop())
}

pub(crate) fn tokens(db: &Connection, org: OrgId, person: PersonId) -> Result<Vec<TokenView>, SqliteError> {
    let Some(somebody) = people::of(db, org, person)? else { return Ok(Vec::new()) };
    let tokens = view::read_all(db, &token_sql(OF_PERSON), params![somebody.pid], Token::read)?;
    let mut views: Vec<_> = tokens.into_iter().map(|token| token.row.view(token.last_used)).collect();
    views.sort_by_key(|view| std::cmp::Reverse((view.made_at, view.token)));
    Ok(views)
}

pub(crate) const CLEAR_TOKENS: &str = "DELETE FROM tokens WHERE expires <= ?1";
pub(crate) const CLEAR_LINKS: &str = "DELETE FROM links WHERE expires <= ?1";
pub(crate) const REPLACE_MACHINES: &str = "DELETE FROM tokens WHERE pid = ?1 AND purpose = 'machine'";
pub(crate) const REPLACE_TURNS: &str =
    "DELETE FROM tokens WHERE session IS NOT NULL AND session = ?1 AND purpose = 'turn'";

/// A credential of somebody who is not there is nobody's, and is not kept.
pub(crate) fn add_token(tx: &mut SqliteTx, token: &TokenRow) -> Result<(), SqliteError> {
    let Some(person) = people::by_id(tx.db(), token.person)? else { return Ok(()) };
    match token.purpose {
        Purpose::Machine => {
            tx.run(REPLACE_MACHINES, [person.pid])?;
            tx.run(CLEAR_TOKENS, [int(token.made_at.0)])?;
            tx.run(CLEAR_LINKS, [int(token.made_at.0)])?;
        }
        Purpose::Turn => {
            let session = token.bound.map(|(session, _)| session.stored());
            tx.run(REPLACE_TURNS, [session])?;
        }
        Purpose::Browser | Purpose::Cli | Purpose::Api => {}
    }
    tx.run("DELETE FROM tokens WHERE token = ?1", [token.token.stored()])?;
    put_token(tx, person.pid, token)
}

pub(crate) fn put_token(tx: &SqliteTx, pid: Pid, token: &TokenRow) -> Result<(), SqliteError> {
    tx.run(
        "INSERT INTO tokens (token, hash, pid, purpose, name, rights, client, session, turn, made_at, expires,
                             idle_ms_max)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
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

pub(crate) fn rotate_token(
    tx: &mut SqliteTx,
    token: TokenId,
    hash: [u8; 32],
    now: Moment,
    old_until: Moment,
) -> Result<bool, SqliteError> {
    let found = find(tx.db(), BY_ID, params![token.stored()])?;
    if !found.is_some_and(|token| token.row.is_fresh(token.last_used, now)) {
        return Ok(false);
    }
    let changed = tx.run(
        "UPDATE tokens SET previous = hash, old_until = ?3, hash = ?2, last_used = max(coalesce(last_used, 0), ?4)
         WHERE token = ?1",
        params![token.stored(), hash, int(old_until.0), int(now.0)],
    )?;
    Ok(changed > 0)
}

pub(crate) fn sign_in(tx: &mut SqliteTx, sign_in: &SignedIn) -> Result<bool, SqliteError> {
    let SignedIn { standing, token, org, trail } = sign_in;
    let known = tx.who(*org, token.person)?.filter(|who| who.standing == Some(*standing));
    let Some(who) = known else { return Ok(false) };
    put_token(tx, who.pid, token)?;
    tx.done(who, &About::default().and(Some(token.token)), trail)?;
    Ok(true)
}

pub(crate) fn put_link(tx: &SqliteTx, person: PersonId, link: &NewLink) -> Result<(), SqliteError> {
    tx.run(
        "INSERT OR REPLACE INTO links (hash, pid, expires)
         SELECT ?2, pid, ?3 FROM persons WHERE person = ?1 AND handle IS NOT NULL",
        params![person.stored(), link.hash, int(link.expires.0)],
    )
    .map(drop)
}

pub(crate) const LINK: &str = "SELECT pid FROM links WHERE hash = ?1 AND expires > ?2";

pub(crate) fn link(db: &Connection, hash: [u8; 32], now: Moment) -> Result<Option<LoginRow>, SqliteError> {
    let mut query = db.prepare_cached(LINK)?;
    let pid: Option<Pid> = query.query_row(params![hash, int(now.0)], |row| row.get(0)).optional()?;
    let Some(pid) = pid else { return Ok(None) };
    Ok(whose(db, pid)?.filter(|somebody| !somebody.is_disabled()).map(Somebody::login))
}

pub(crate) fn spend_link(
    tx: &mut SqliteTx,
    hash: [u8; 32],
    token: Option<LinkToken>,
    trail: &Trail,
) -> Result<Option<LoginRow>, SqliteError> {
    let Some(login) = link(tx.db(), hash, trail.at)? else { return Ok(None) };
    let Some(who) = tx.who(login.org, login.person)? else { return Ok(None) };
    tx.run("DELETE FROM links WHERE hash = ?1", [hash])?;
    let token = token.map(|token| token.row(login.person, trail.at));
    if let Some(token) = &token {
        put_token(tx, who.pid, token)?;
    }
    tx.done(who, &About::default().and(token.map(|token| token.token)), trail)?;
    Ok(Some(login))
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

//! The machine's person, credentials, people's own sign-ins for agents, and nodes.

use crate::columns::{Columns, Id, int};
use crate::desk::Desk;
use crate::trouble::Trouble;
use bytes::Bytes;
use kernel::{Moment, OrgId, PersonId, Principal, Term};
use rusqlite::{Connection, Row, params};
use store::{AccountRow, NewAccount, TokenRow, Trail};

const PRINCIPAL: &str = "org, person, coalesce(handle, ''), client FROM persons";

pub(crate) fn owner(desk: &mut Desk, fresh: &Principal) -> Result<Principal, Trouble> {
    let known = {
        let mut query = desk.db().prepare_cached(&format!("SELECT {PRINCIPAL} WHERE machine = 1"))?;
        let mut found = query.query([])?;
        found.next()?.map(principal).transpose()?
    };
    match known {
        Some(owner) => Ok(owner),
        None => {
            let pid = desk.pid_of(fresh)?;
            desk.run(
                "UPDATE persons SET machine = 1, handle = ?2, client = ?3 WHERE pid = ?1",
                params![pid, fresh.handle, fresh.client],
            )?;
            Ok(fresh.clone())
        }
    }
}

fn principal(row: &Row<'_>) -> Result<Principal, Trouble> {
    let row = Columns(row);
    Ok(Principal {
        org: row.id(0)?,
        person: row.id(1)?,
        handle: row.text(2)?.to_owned(),
        client: row.text_maybe(3)?.map(str::to_owned),
    })
}

pub(crate) fn add_token(desk: &mut Desk, token: &TokenRow) -> Result<(), Trouble> {
    if token.purpose == TokenRow::MACHINE {
        desk.run(
            "DELETE FROM tokens WHERE (purpose = ?1 AND person = ?2) OR expires <= ?3",
            params![TokenRow::MACHINE, token.person.stored(), int(token.made_at.0)],
        )?;
    }
    desk.run(
        "INSERT OR REPLACE INTO tokens (hash, person, purpose, client, made_at, expires)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            token.hash,
            token.person.stored(),
            token.purpose,
            token.client,
            int(token.made_at.0),
            token.expires.map(|until| int(until.0)),
        ],
    )
    .map(drop)
}

/// For now a credential is the machine's person's, or nobody's.
pub(crate) fn token(db: &Connection, hash: [u8; 32], now: Moment) -> Result<Option<Principal>, Trouble> {
    let mut query = db.prepare_cached(
        "SELECT p.org, p.person, p.handle, t.client FROM tokens t JOIN persons p ON p.person = t.person
         WHERE t.hash = ?1 AND p.machine = 1 AND (t.expires IS NULL OR t.expires > ?2)
            AND NOT EXISTS (SELECT 1 FROM disabled d WHERE d.person = t.person)",
    )?;
    let mut found = query.query(params![hash, int(now.0)])?;
    found.next()?.map(principal).transpose()
}

pub(crate) fn account(
    db: &Connection,
    org: OrgId,
    person: PersonId,
    agent: &str,
) -> Result<Option<AccountRow>, Trouble> {
    let mut query = db.prepare_cached(
        "SELECT a.names, a.sealed, a.since FROM accounts a JOIN persons p ON p.pid = a.person
         WHERE p.person = ?1 AND p.org = ?2 AND a.agent = ?3",
    )?;
    let mut found = query.query(params![person.stored(), org.stored(), agent])?;
    let Some(row) = found.next()? else { return Ok(None) };
    let names = Columns(row).text(0)?.lines().map(str::to_owned).collect();
    let sealed = Bytes::from(row.get::<_, Vec<u8>>(1)?);
    Ok(Some(AccountRow { names, sealed, since: Moment(Columns(row).count(2)?) }))
}

pub(crate) fn set_account(desk: &mut Desk, by: &Principal, account: &NewAccount) -> Result<(), Trouble> {
    let pid = desk.pid_of(by)?;
    let NewAccount { agent, names, sealed, trail } = account;
    desk.run(
        "INSERT OR REPLACE INTO accounts (person, agent, names, sealed, since) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![pid, agent, names.join("\n"), &sealed[..], int(trail.at.0)],
    )?;
    desk.audit(pid, trail, None, None, None)
}

pub(crate) fn remove_account(
    desk: &mut Desk,
    by: &Principal,
    agent: &str,
    trail: &Trail,
) -> Result<bool, Trouble> {
    let pid = desk.pid_of(by)?;
    let gone = desk.run("DELETE FROM accounts WHERE person = ?1 AND agent = ?2", params![pid, agent])?;
    desk.audit(pid, trail, None, None, None)?;
    Ok(gone > 0)
}

pub(crate) fn announce(desk: &mut Desk, term: Term, url: &str) -> Result<(), Trouble> {
    desk.run("UPDATE node_starts SET url = ?2 WHERE start = ?1", params![int(term.0 >> 32), url]).map(drop)
}

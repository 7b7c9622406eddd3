//! PersonRef there is: orgs, people, groups, directories, and what somebody may do now. Always `kernel`'s rule on the rows as
//! they are in one moment. People's own sign-ins for agents and nodes are here, too.

use crate::columns::{Columns, Id, grantee, int, rows};
use crate::error::SqliteError;
use crate::tx::{Oid, SqliteTx, oid};
use crate::view;
use bytes::Bytes;
use kernel::people::PersonState;
use kernel::{Act, Grant, Grantee, GroupId, Moment, OrgId, PersonId, Principal, SessionId, Term, authorize};
use rusqlite::{Connection, Row, ToSql, params};
use store::{
    AccountRow, AuditSubject, DiskTotals, DiskUse, FIRST_STANDING, GrantRow, GroupRow, LoginRow, NewAccount,
    NewPerson, OrgRow, OrgSettings, PersonRow, Resource, RootRow, Stands, Trail, record,
};

/// The columns of somebody, in the order in which `Somebody` reads them.
const PERSON: &str =
    "p.person, p.org, p.handle, p.name, p.email, p.role, p.host, p.password, p.disabled_at, p.made_at,
    p.standing, p.pid FROM persons p";

/// Somebody, with what nobody is shown of them.
pub(crate) struct Somebody {
    pub(crate) row: PersonRow,
    password: Option<String>,
    pub(crate) standing: u64,
    pub(crate) pid: i64,
}

impl Somebody {
    fn read(row: &Row<'_>) -> Result<Self, SqliteError> {
        let row = Columns(row);
        let password = row.string_maybe(7)?;
        let person = PersonRow {
            person: row.id(0)?,
            org: row.id(1)?,
            handle: row.string(2)?,
            name: row.string_maybe(3)?,
            email: row.string_maybe(4)?,
            role: row.word(5, record::role_parse)?,
            is_host: row.flag(6)?,
            has_password: password.is_some(),
            disabled_at: row.moment_maybe(8)?,
            made_at: row.moment(9)?,
        };
        Ok(Self { row: person, password, standing: row.count(10)?, pid: row.int(11)? })
    }

    /// As far as the rules look at them.
    pub(crate) fn state(&self) -> PersonState {
        let PersonRow { person, role, disabled_at, .. } = self.row;
        PersonState { person, role, disabled_at, standing: self.standing }
    }

    pub(crate) fn is_disabled(&self) -> bool {
        self.row.disabled_at.is_some()
    }

    pub(crate) fn login(self) -> LoginRow {
        let is_disabled = self.is_disabled();
        let PersonRow { org, person, handle, .. } = self.row;
        LoginRow { org, person, handle, password: self.password, standing: self.standing, is_disabled }
    }
}

/// Reads people by a condition on `p`.
pub(crate) fn somebody(
    db: &Connection,
    condition: &str,
    params: &[&dyn ToSql],
) -> Result<Vec<Somebody>, SqliteError> {
    view::read_all(db, &somebody_sql(condition), params, Somebody::read)
}

pub(crate) fn somebody_sql(condition: &str) -> String {
    format!("SELECT {PERSON} WHERE p.handle IS NOT NULL AND {condition}")
}

pub(crate) const BY_ID: &str = "p.person = ?1";
pub(crate) const BY_PID: &str = "p.pid = ?1";
pub(crate) const BY_HANDLE: &str = "p.handle_key = ?1";
pub(crate) const BY_EMAIL: &str = "p.email IS NOT NULL AND p.email = ?1";
pub(crate) const BY_ORG_AND_HANDLE: &str =
    "p.org = (SELECT org FROM orgs WHERE name_key = ?2) AND p.handle_key = ?1";
pub(crate) const HOST: &str = "p.host = 1";
pub(crate) const OF_ORG_BY_HANDLE: &str = "p.org = ?2 AND p.handle_key = ?1";
pub(crate) const OF_ORG_BY_EMAIL: &str = "p.email IS NOT NULL AND p.email = ?1 AND p.org = ?2";
pub(crate) const PAGE: &str = "p.org = ?1 AND p.handle_key > ?2 ORDER BY p.handle_key LIMIT ?3";

pub(crate) fn by_id(db: &Connection, person: PersonId) -> Result<Option<Somebody>, SqliteError> {
    Ok(somebody(db, BY_ID, params![person.stored()])?.pop())
}

/// One of an org's people.
pub(crate) fn of(db: &Connection, org: OrgId, person: PersonId) -> Result<Option<Somebody>, SqliteError> {
    Ok(by_id(db, person)?.filter(|somebody| somebody.row.org == org))
}

pub(crate) fn person(
    db: &Connection,
    org: OrgId,
    person: PersonId,
) -> Result<Option<PersonRow>, SqliteError> {
    Ok(of(db, org, person)?.map(|somebody| somebody.row))
}

/// The room that the words in somebody's sessions take.
pub(crate) fn disk_use(db: &Connection, org: OrgId, person: PersonId) -> Result<DiskUse, SqliteError> {
    let mut query = db.prepare_cached("SELECT words_bytes FROM persons WHERE person = ?1 AND org = ?2")?;
    let mut rows = query.query(params![person.stored(), org.stored()])?;
    let Some(row) = rows.next()? else { return Ok(DiskUse::default()) };
    Ok(DiskUse { words_bytes: Columns(row).count(0)? })
}

/// The same of everybody.
pub(crate) fn disk_totals(db: &Connection) -> Result<DiskTotals, SqliteError> {
    let sql = "SELECT coalesce(sum(words_bytes), 0), coalesce(max(words_bytes), 0) FROM persons";
    let mut query = db.prepare_cached(sql)?;
    let mut rows = query.query([])?;
    let row = rows.next()?.ok_or_else(|| SqliteError::Damaged("a sum has no row".to_owned()))?;
    let row = Columns(row);
    Ok(DiskTotals { words_bytes: row.count(0)?, words_bytes_top: row.count(1)? })
}

pub(crate) fn person_named(
    db: &Connection,
    org: OrgId,
    name: &str,
) -> Result<Option<PersonRow>, SqliteError> {
    let key = key_of(name);
    let by_handle = somebody(db, OF_ORG_BY_HANDLE, params![key, org.stored()])?.pop();
    let found = match by_handle {
        Some(found) => Some(found),
        None => somebody(db, OF_ORG_BY_EMAIL, params![key, org.stored()])?.pop(),
    };
    Ok(found.map(|somebody| somebody.row))
}

pub(crate) fn people(
    db: &Connection,
    org: OrgId,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<PersonRow>, SqliteError> {
    // No handle is empty.
    let after = after.map(key_of).unwrap_or_default();
    let page = somebody(db, PAGE, params![org.stored(), after, rows(limit)])?;
    Ok(page.into_iter().map(|somebody| somebody.row).collect())
}

pub(crate) use kernel::people::name_key as key_of;

/// Everybody who could be meant; more than one is nobody.
pub(crate) fn login(db: &Connection, typed: &str) -> Result<Option<LoginRow>, SqliteError> {
    let key = key_of(typed);
    let mut meant = somebody(db, BY_HANDLE, params![key])?;
    meant.extend(somebody(db, BY_EMAIL, params![key])?);
    if let Some((org, name)) = key.split_once('/') {
        meant.extend(somebody(db, BY_ORG_AND_HANDLE, params![name, org])?);
    }
    meant.sort_by_key(|somebody| somebody.pid);
    meant.dedup_by_key(|somebody| somebody.pid);
    Ok(if meant.len() == 1 { meant.pop().map(Somebody::login) } else { None })
}

/// The principal of somebody now, as if they had no credential.
pub(crate) fn principal(db: &Connection, somebody: &Somebody) -> Result<Principal, SqliteError> {
    let org = somebody.row.org;
    let Some(oid) = oid(db, org)? else {
        return Err(SqliteError::Damaged(format!("{} is of {org}, which is gone", somebody.row.person)));
    };
    let stands = Stands {
        row: &somebody.row,
        standing: somebody.standing,
        groups: groups_of(db, somebody.pid)?,
        agents: view::read_all(db, AGENTS, params![oid], |row| {
            let row = Columns(row);
            let given = match row.string_maybe(3)? {
                Some(_) => Some((row.grantee(1)?, row.word(3, record::grant_parse)?)),
                None => None,
            };
            Ok((row.string(0)?, given))
        })?,
        roots: roots_of(db, oid)?,
    };
    Ok(stands.principal())
}

pub(crate) const GROUPS_OF: &str =
    "SELECT g.id FROM group_people m CROSS JOIN groups g ON g.gid = m.gid WHERE m.pid = ?1";
pub(crate) const AGENTS: &str = "SELECT c.agent, g.kind, g.grantee, g.granted
    FROM closed_agents c LEFT JOIN agent_grants g ON g.oid = c.oid AND g.agent = c.agent WHERE c.oid = ?1";

fn groups_of(db: &Connection, pid: i64) -> Result<Vec<GroupId>, SqliteError> {
    view::read_all(db, GROUPS_OF, params![pid], |row| Columns(row).id(0))
}

/// The rule itself, on what is stored.
pub(crate) fn may(
    db: &Connection,
    session: SessionId,
    person: PersonId,
    act: Act,
) -> Result<bool, SqliteError> {
    let Some(somebody) = by_id(db, person)?.filter(|somebody| !somebody.is_disabled()) else {
        return Ok(false);
    };
    let Some((record, _)) = view::session(db, session)? else { return Ok(false) };
    Ok(authorize(&principal(db, &somebody)?, act, &record, ()).is_ok())
}

/// A minted id that is there already is a mistake of the caller's.
pub(crate) fn put_org(tx: &SqliteTx, org: OrgId, name: &str, at: Moment) -> Result<(), SqliteError> {
    // It may have been heard of before.
    let made = tx.run(
        "INSERT INTO orgs (org, name, name_key, opened, made_at) VALUES (?1, ?2, ?3, 0, ?4)
         ON CONFLICT (org) DO UPDATE SET name = excluded.name, name_key = excluded.name_key,
            made_at = excluded.made_at WHERE name IS NULL",
        params![org.stored(), name, key_of(name), int(at.0)],
    )?;
    only(made)
}

pub(crate) fn put_root(tx: &SqliteTx, org: OrgId, to: Grantee, directory: &str) -> Result<(), SqliteError> {
    let (kind, grantee) = grantee(to, org);
    tx.run(
        "INSERT OR IGNORE INTO roots (oid, directory, kind, grantee)
         SELECT oid, ?2, ?3, ?4 FROM orgs WHERE org = ?1",
        params![org.stored(), directory, kind, grantee],
    )
    .map(drop)
}

pub(crate) fn put_person(
    tx: &mut SqliteTx,
    org: OrgId,
    new: &NewPerson,
    is_host: bool,
    at: Moment,
) -> Result<(), SqliteError> {
    let NewPerson { person, handle, name, email, role } = new;
    tx.forget_people();
    // They may have been heard of before.
    let made = tx.run(
        "INSERT INTO persons (person, org, handle, handle_key, name, email, role, host, standing, opened, made_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, ?10)
         ON CONFLICT (person, org) DO UPDATE SET handle = excluded.handle, handle_key = excluded.handle_key,
            name = excluded.name, email = excluded.email, role = excluded.role, host = excluded.host,
            standing = excluded.standing, made_at = excluded.made_at WHERE handle IS NULL",
        params![
            person.stored(),
            org.stored(),
            handle,
            key_of(handle),
            name,
            email,
            record::role_word(*role),
            is_host,
            int(FIRST_STANDING),
            int(at.0),
        ],
    )?;
    only(made)
}

/// A minted id that is there already is a mistake of the caller's.
fn only(made: usize) -> Result<(), SqliteError> {
    if made == 1 { Ok(()) } else { Err(rusqlite::Error::StatementChangedRows(made).into()) }
}

/// An org, with how many of its people can come in.
const ORG: &str = "o.org, o.name, o.share_new, o.open_max, o.awake_max, o.made_at,
    (SELECT count(*) FROM persons p WHERE p.org = o.org AND p.handle IS NOT NULL AND p.disabled_at IS NULL)
    FROM orgs o WHERE o.name IS NOT NULL";

pub(crate) fn org_sql() -> String {
    format!("SELECT {ORG} AND o.org = ?1")
}

pub(crate) fn orgs_sql() -> String {
    format!("SELECT {ORG} ORDER BY o.org")
}

pub(crate) fn orgs(db: &Connection) -> Result<Vec<OrgRow>, SqliteError> {
    view::read_all(db, &orgs_sql(), &[], org_row)
}

pub(crate) fn org(db: &Connection, org: OrgId) -> Result<Option<OrgRow>, SqliteError> {
    Ok(view::read_all(db, &org_sql(), params![org.stored()], org_row)?.pop())
}

fn org_row(row: &Row<'_>) -> Result<OrgRow, SqliteError> {
    let row = Columns(row);
    let settings = OrgSettings {
        share_new: row.word_maybe(2, record::grant_parse)?,
        open_max: row.small_maybe(3)?,
        awake_max: row.small_maybe(4)?,
    };
    Ok(OrgRow {
        org: row.id(0)?,
        name: row.string(1)?,
        settings,
        made_at: row.moment(5)?,
        people: row.small(6)?,
    })
}

pub(crate) const GROUPS: &str = "SELECT id, name, gid FROM groups WHERE oid = ?1 ORDER BY name";
pub(crate) const GROUP_PEOPLE: &str =
    "SELECT p.person FROM group_people m CROSS JOIN persons p ON p.pid = m.pid WHERE m.gid = ?1";

pub(crate) fn groups(db: &Connection, org: OrgId) -> Result<Vec<GroupRow>, SqliteError> {
    let Some(oid) = oid(db, org)? else { return Ok(Vec::new()) };
    view::read_all(db, GROUPS, params![oid], |row| {
        let row = Columns(row);
        let mut people = view::read_all(db, GROUP_PEOPLE, params![row.int(2)?], |row| Columns(row).id(0))?;
        people.sort_unstable();
        Ok(GroupRow { group: row.id(0)?, name: row.string(1)?, people })
    })
}

pub(crate) const ROOTS: &str =
    "SELECT directory, kind, grantee FROM roots WHERE oid = ?1 ORDER BY directory, kind, grantee";

pub(crate) fn roots(db: &Connection, org: OrgId) -> Result<Vec<RootRow>, SqliteError> {
    match oid(db, org)? {
        Some(oid) => roots_of(db, oid),
        None => Ok(Vec::new()),
    }
}

fn roots_of(db: &Connection, oid: Oid) -> Result<Vec<RootRow>, SqliteError> {
    view::read_all(db, ROOTS, params![oid], |row| {
        let row = Columns(row);
        Ok(RootRow { directory: row.string(0)?, to: row.grantee(1)? })
    })
}

pub(crate) const SESSION_GRANTS: &str = "SELECT g.kind, g.grantee, g.granted, b.person, g.since
    FROM sessions s CROSS JOIN grants g ON g.sid = s.sid JOIN persons b ON b.pid = g.by JOIN persons p ON p.pid = s.owner
    WHERE s.id = ?1 AND p.org = ?2";
pub(crate) const AGENT_GRANTS: &str = "SELECT g.kind, g.grantee, g.granted, b.person, g.since
    FROM orgs o CROSS JOIN agent_grants g ON g.oid = o.oid JOIN persons b ON b.pid = g.by
    WHERE g.agent = ?1 AND o.org = ?2";

pub(crate) fn grants(db: &Connection, org: OrgId, on: &Resource) -> Result<Vec<GrantRow>, SqliteError> {
    let read = |row: &Row<'_>| {
        let row = Columns(row);
        let grant: Grant = row.word(2, record::grant_parse)?;
        Ok(GrantRow { to: row.grantee(0)?, grant, by: row.id(3)?, since: row.moment(4)? })
    };
    let mut given = match on {
        Resource::Session(session) => {
            view::read_all(db, SESSION_GRANTS, params![session.stored(), org.stored()], read)?
        }
        Resource::Agent(agent) => view::read_all(db, AGENT_GRANTS, params![agent, org.stored()], read)?,
    };
    given.sort_by_key(|row| row.to);
    Ok(given)
}

pub(crate) fn account(
    db: &Connection,
    org: OrgId,
    person: PersonId,
    agent: &str,
) -> Result<Option<AccountRow>, SqliteError> {
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

pub(crate) fn set_account(
    tx: &mut SqliteTx,
    by: &Principal,
    account: &NewAccount,
) -> Result<(), SqliteError> {
    let who = tx.who_at_first_sight(by.org, by.person)?;
    let NewAccount { agent, names, sealed, trail } = account;
    tx.run(
        "INSERT OR REPLACE INTO accounts (person, agent, names, sealed, since) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![who.pid, agent, names.join("\n"), &sealed[..], int(trail.at.0)],
    )?;
    tx.done(who, &AuditSubject::named(agent), trail)
}

pub(crate) fn remove_account(
    tx: &mut SqliteTx,
    by: &Principal,
    agent: &str,
    trail: &Trail,
) -> Result<bool, SqliteError> {
    let who = tx.who_at_first_sight(by.org, by.person)?;
    let gone = tx.run("DELETE FROM accounts WHERE person = ?1 AND agent = ?2", params![who.pid, agent])?;
    tx.done(who, &AuditSubject::named(agent), trail)?;
    Ok(gone > 0)
}

pub(crate) fn announce(tx: &mut SqliteTx, term: Term, url: &str) -> Result<(), SqliteError> {
    tx.run("UPDATE node_starts SET url = ?2 WHERE start = ?1", params![int(term.0 >> 32), url]).map(drop)
}

//! How it changes who may do what: the key, then whether what was seen is still so, then everything that may refuse, then
//! the change, whom it touches, and its audit entry. One transaction, so none of these is ever there without the others.

use crate::columns::{Columns, Id, grantee, int};
use crate::error::SqliteError;
use crate::intake::{Item, Known, known, put_into_inbox, remember};
use crate::people::{self, Somebody, key_of, put_person, put_root};
use crate::rules;
use crate::tokens::{pid_of_identity, put_link, put_token};
use crate::tx::{Oid, PersonRef, Pid, Sid, SqliteTx, StoredSession, oid};
use crate::view;
use kernel::{
    Authorized, Grant, Grantee, GroupId, Moment, OrgId, PersonId, Principal, Role, SessionId, TokenId,
    Witness,
};
use rusqlite::{Connection, OptionalExtension, ToSql, params};
use store::{Change, Changing, NewChange, OrgSettings, Resource, RootRow, RuleEffect, RuleRow, record};

/// Somebody whom a change touches.
type Touchable = (Pid, PersonId);

/// Whom a change touches.
enum Touched {
    Nobody,
    /// Their standings grow, and what they have said anywhere is looked at again.
    People(Vec<Touchable>),
    /// What they have said in these sessions is looked at again.
    Within(Vec<Sid>, Vec<Touchable>),
}

pub(crate) fn change(tx: &mut SqliteTx, wish: &Authorized<NewChange>) -> Result<Changing, SqliteError> {
    let (by, NewChange { change, key, trail }) = (wish.by(), wish.wish());
    let who = match by.person {
        PersonId::ENGINE => Some(tx.who_at_first_sight(by.org, by.person)?),
        person => tx.who(by.org, person)?,
    };
    let Some(who) = who else { return Ok(Changing::Moved) };
    match known(tx, who.pid, key.as_ref(), trail.at)? {
        Known::Never => {}
        Known::Before(_) => return Ok(Changing::Before),
        Known::Conflict => return Ok(Changing::Conflict),
    }
    if !is_still_so(tx, by, who, change, wish.witness())? {
        return Ok(Changing::Moved);
    }
    if let Some(refused) = refuses(tx.db(), by, who.oid, change)? {
        return Ok(refused);
    }
    let touched = put(tx, by, who, change, trail.at)?;
    touch(tx, touched, trail.at)?;
    remember(tx, who.pid, key.as_ref(), [0; 16], trail.at)?;
    tx.done(who, &change.about(), trail)?;
    Ok(Changing::Done)
}

/// Is what was seen when it was authorized still so, and was it about this?
fn is_still_so(
    tx: &SqliteTx,
    by: &Principal,
    who: PersonRef,
    change: &Change,
    witness: Witness,
) -> Result<bool, SqliteError> {
    let with = |session| -> Result<bool, SqliteError> {
        Ok(tx.stored_session(session)?.is_some_and(|kept| kept.bears(by.org, session, witness)))
    };
    let with_org = witness.session.is_none();
    let bears = match (session_of(change), ruled_session(tx.db(), who.oid, change)?) {
        (Some(session), _) => with(session)?,
        (None, Some(session)) => with_org || with(session)?,
        (None, None) => with_org,
    };
    // Homing itself is always as it was.
    Ok(bears && (by.person == PersonId::ENGINE || who.stands(witness)))
}

/// The session whose record a change is authorized by.
fn session_of(change: &Change) -> Option<SessionId> {
    match change {
        Change::Give { on: Resource::Session(session), .. }
        | Change::TakeBack { on: Resource::Session(session), .. }
        | Change::HandOver { session, .. } => Some(*session),
        _ => None,
    }
}

/// The session that a rule is for.
fn ruled_session(db: &Connection, oid: Oid, change: &Change) -> Result<Option<SessionId>, SqliteError> {
    match change {
        Change::AddRule(rule) => Ok(rule.session),
        Change::RemoveRule(rule) => Ok(rules::find(db, oid, *rule)?.flatten()),
        _ => Ok(None),
    }
}

// What may refuse.

fn refuses(
    db: &Connection,
    by: &Principal,
    oid: Oid,
    change: &Change,
) -> Result<Option<Changing>, SqliteError> {
    let org = by.org;
    let found = |found: bool| if found { None } else { Some(Changing::NotFound) };
    let person = |id: PersonId| people::of(db, org, id).map(|found| found.is_some());
    let group = |id: GroupId| Ok::<_, SqliteError>(gid(db, oid, id)?.is_some());
    let to = |to: Grantee| match to {
        Grantee::Person(id) => person(id),
        Grantee::Group(id) => group(id),
        Grantee::Org => Ok(true),
    };
    Ok(match change {
        Change::MakeOrg { org, .. } => {
            let sql = "SELECT 1 FROM orgs WHERE name_key = ?1";
            taken("name", exists(db, sql, params![key_of(&org.name)])?)
        }
        Change::Settings(_) => None,
        Change::AddPerson { person, .. } => {
            let sql = "SELECT 1 FROM persons WHERE org = ?1 AND handle_key = ?2 AND handle IS NOT NULL";
            match exists(db, sql, params![org.stored(), key_of(&person.handle)])? {
                true => taken("handle", true),
                false => email_taken(db, org, None, person.email.as_deref())?,
            }
        }
        Change::ChangePerson { person, was, email, role, .. } => match judged(db, org, *person, *was)? {
            Err(refused) => Some(refused),
            Ok(row) => {
                let demoted = role.is_some_and(|role| role < Role::Owner);
                match demoted && is_last_owner(db, &row)? {
                    true => Some(Changing::LastOwner),
                    false => email_taken(db, org, Some(row.pid), email.as_deref())?,
                }
            }
        },
        Change::Disable { person, was } => match judged(db, org, *person, *was)? {
            Err(refused) => Some(refused),
            Ok(row) => is_last_owner(db, &row)?.then_some(Changing::LastOwner),
        },
        Change::SetPassword { person, was, .. }
        | Change::Enable { person, was }
        | Change::MakeLink { person, was, .. } => judged(db, org, *person, *was)?.err(),
        Change::SetIdentity { person, was, issuer, subject } => match judged(db, org, *person, *was)? {
            Err(refused) => Some(refused),
            Ok(row) => {
                let whose = pid_of_identity(db, issuer, subject)?;
                // Only somebody who looks after them may put another name in the place of theirs.
                let sql = "SELECT 1 FROM identities WHERE pid = ?1 AND issuer = ?2 AND subject <> ?3";
                let is_kept = [*person, PersonId::ENGINE].contains(&by.person)
                    && exists(db, sql, params![row.pid, issuer, subject])?;
                taken("identity", is_kept || whose.is_some_and(|whose| whose != row.pid))
            }
        },
        Change::MakeGroup { name, .. } => {
            let sql = "SELECT 1 FROM groups WHERE oid = ?1 AND name = ?2";
            taken("name", exists(db, sql, params![oid, name])?)
        }
        Change::RemoveGroup { group: id } => found(group(*id)?),
        Change::Join { group: id, person: who } | Change::Leave { group: id, person: who } => {
            found(group(*id)? && person(*who)?)
        }
        Change::Give { to: whom, .. } => found(to(*whom)?),
        // What is given to a group that is gone can still be taken back.
        Change::TakeBack { .. } => None,
        Change::HandOver { to, .. } => cannot_own(db, org, *to)?,
        Change::HandOverAll { from, was, to } => match judged(db, org, *from, *was)? {
            Err(refused) => Some(refused),
            Ok(_) => cannot_own(db, org, *to)?,
        },
        Change::AddRoot(root) | Change::RemoveRoot(root) => found(to(root.to)?),
        Change::MakeToken(row) => found(person(row.person)?),
        Change::RevokeToken { person: whose, token } => {
            let sql =
                "SELECT 1 FROM tokens t JOIN persons p ON p.pid = t.pid WHERE t.token = ?1 AND p.person = ?2";
            found(person(*whose)? && exists(db, sql, params![token.stored(), whose.stored()])?)
        }
        Change::AddRule(rule) => {
            let asks = match rule.effect {
                RuleEffect::Ask(whom) => to(whom)?,
                RuleEffect::Allow | RuleEffect::Deny => true,
            };
            let open = match rule.session {
                Some(session) => exists(db, OPEN_IN_ORG, params![session.stored(), org.stored()])?,
                None => true,
            };
            found(person(rule.by)? && asks && open)
        }
        Change::RemoveRule(rule) => found(rules::find(db, oid, *rule)?.is_some()),
    })
}

const OPEN_IN_ORG: &str = "SELECT 1 FROM sessions s JOIN persons p ON p.pid = s.owner
    WHERE s.id = ?1 AND p.org = ?2 AND s.ended IS NULL";

fn exists(db: &Connection, sql: &str, params: &[&dyn ToSql]) -> Result<bool, SqliteError> {
    Ok(db.prepare_cached(sql)?.exists(params)?)
}

fn taken(what: &'static str, is: bool) -> Option<Changing> {
    is.then_some(Changing::Taken(what))
}

/// One of the org's people, if they are still what they were when it was judged.
fn judged(
    db: &Connection,
    org: OrgId,
    person: PersonId,
    was: Role,
) -> Result<Result<Somebody, Changing>, SqliteError> {
    Ok(match people::of(db, org, person)? {
        None => Err(Changing::NotFound),
        Some(somebody) if somebody.row.role != was => Err(Changing::Moved),
        Some(somebody) => Ok(somebody),
    })
}

/// PersonRef is disabled or only looks could do nothing with a session, and nobody else could for them.
fn cannot_own(db: &Connection, org: OrgId, heir: PersonId) -> Result<Option<Changing>, SqliteError> {
    Ok(match people::of(db, org, heir)? {
        None => Some(Changing::NotFound),
        Some(heir) => (heir.is_disabled() || heir.row.role == Role::Viewer).then_some(Changing::CannotOwn),
    })
}

pub(crate) const OTHER_OWNERS: &str =
    "SELECT 1 FROM persons WHERE org = ?1 AND role = 'owner' AND disabled_at IS NULL AND pid <> ?2";

fn is_last_owner(db: &Connection, somebody: &Somebody) -> Result<bool, SqliteError> {
    if somebody.row.role != Role::Owner || somebody.is_disabled() {
        return Ok(false);
    }
    Ok(!exists(db, OTHER_OWNERS, params![somebody.row.org.stored(), somebody.pid])?)
}

fn email_taken(
    db: &Connection,
    org: OrgId,
    whose: Option<Pid>,
    email: Option<&str>,
) -> Result<Option<Changing>, SqliteError> {
    let Some(email) = email else { return Ok(None) };
    let sql = "SELECT 1 FROM persons WHERE email IS NOT NULL AND email = ?1 AND org = ?2 AND pid IS NOT ?3";
    Ok(taken("email", exists(db, sql, params![key_of(email), org.stored(), whose])?))
}

fn gid(db: &Connection, oid: Oid, group: GroupId) -> Result<Option<i64>, SqliteError> {
    let mut query = db.prepare_cached("SELECT gid FROM groups WHERE id = ?1 AND oid = ?2")?;
    Ok(query.query_row(params![group.stored(), oid], |row| row.get(0)).optional()?)
}

// The changes themselves. Everything that may refuse has been asked.

fn put(
    tx: &mut SqliteTx,
    by: &Principal,
    who: PersonRef,
    change: &Change,
    at: Moment,
) -> Result<Touched, SqliteError> {
    let org = by.org;
    match change {
        Change::MakeOrg { org, link } => {
            people::make_org(tx, org, false, at)?;
            put_link(tx, org.owner.person, link)?;
            Ok(Touched::Nobody)
        }
        Change::Settings(settings) => set_settings(tx, who.oid, settings),
        Change::AddPerson { person, link } => {
            put_person(tx, org, person, false, at)?;
            put_link(tx, person.person, link)?;
            Ok(Touched::Nobody)
        }
        Change::ChangePerson { person, was, name, email, role } => {
            let role = role.filter(|role| role != was);
            change_person(tx, org, *person, name.as_deref(), email.as_deref(), role)
        }
        Change::SetPassword { person, password, keep, .. } => {
            set_password(tx, org, *person, password.as_deref(), *keep)
        }
        Change::Disable { person, .. } => disable(tx, org, *person, at),
        Change::Enable { person, .. } => enable(tx, org, *person),
        Change::SetIdentity { person, issuer, subject, .. } => {
            set_identity(tx, org, *person, issuer, subject)
        }
        Change::MakeLink { person, link, .. } => {
            put_link(tx, *person, link)?;
            Ok(Touched::Nobody)
        }
        Change::MakeGroup { group, name } => {
            let row = params![group.stored(), who.oid, name];
            tx.run("INSERT INTO groups (id, oid, name) VALUES (?1, ?2, ?3)", row)?;
            Ok(Touched::Nobody)
        }
        Change::RemoveGroup { group } => remove_group(tx, org, who.oid, *group),
        Change::Join { group, person } => {
            let sql = "INSERT OR IGNORE INTO group_people (gid, pid) VALUES (?1, ?2)";
            set_membership(tx, org, who.oid, *group, *person, sql)
        }
        Change::Leave { group, person } => {
            let sql = "DELETE FROM group_people WHERE gid = ?1 AND pid = ?2";
            set_membership(tx, org, who.oid, *group, *person, sql)
        }
        Change::Give { on, to, grant } => give(tx, org, who, on, *to, Some(*grant), at),
        Change::TakeBack { on, to } => give(tx, org, who, on, *to, None, at),
        Change::HandOver { session, to } => {
            let kept = tx.stored_session(*session)?.into_iter().collect();
            hand_over(tx, org, kept, *to)
        }
        Change::HandOverAll { from, to, .. } => {
            let kept = all_of(tx, pid(tx, org, *from)?)?;
            hand_over(tx, org, kept, *to)
        }
        Change::AddRoot(RootRow { directory, to }) => {
            put_root(tx, org, *to, directory)?;
            everybody(tx, org, *to).map(Touched::People)
        }
        Change::RemoveRoot(root) => remove_root(tx, org, who.oid, root),
        Change::MakeToken(token) => {
            put_token(tx, pid(tx, org, token.person)?, token)?;
            Ok(Touched::Nobody)
        }
        Change::RevokeToken { person, token } => {
            tx.run("DELETE FROM tokens WHERE token = ?1", [token.stored()])?;
            one(tx, org, *person)
        }
        Change::AddRule(rule) => {
            add_rule(tx, org, rule, at)?;
            Ok(Touched::Nobody)
        }
        Change::RemoveRule(rule) => {
            rules::remove(tx, *rule)?;
            Ok(Touched::Nobody)
        }
    }
}

pub(crate) fn add_rule(tx: &SqliteTx, org: OrgId, rule: &RuleRow, at: Moment) -> Result<(), SqliteError> {
    let oid = oid(tx.db(), org)?.ok_or_else(|| SqliteError::Damaged(format!("{org} is gone")))?;
    let kept = rule.session.map(|session| tx.stored_session(session)).transpose()?.flatten();
    rules::add(tx, org, oid, pid(tx, org, rule.by)?, kept.map(|kept| kept.sid), rule, at)
}

fn pid(tx: &SqliteTx, org: OrgId, person: PersonId) -> Result<Pid, SqliteError> {
    let found = people::of(tx.db(), org, person)?;
    found.map(|somebody| somebody.pid).ok_or_else(|| SqliteError::Damaged(format!("{person} is gone")))
}

fn one(tx: &SqliteTx, org: OrgId, person: PersonId) -> Result<Touched, SqliteError> {
    Ok(Touched::People(vec![(pid(tx, org, person)?, person)]))
}

fn set_settings(tx: &SqliteTx, oid: Oid, settings: &OrgSettings) -> Result<Touched, SqliteError> {
    tx.run(
        "UPDATE orgs SET share_new = ?2, open_max = ?3, awake_max = ?4 WHERE oid = ?1",
        params![oid, settings.share_new.map(record::grant_word), settings.open_max, settings.awake_max],
    )?;
    Ok(Touched::Nobody)
}

/// What is none stays as it is.
fn change_person(
    tx: &SqliteTx,
    org: OrgId,
    person: PersonId,
    name: Option<&str>,
    email: Option<&str>,
    role: Option<Role>,
) -> Result<Touched, SqliteError> {
    let whose = pid(tx, org, person)?;
    tx.run(
        "UPDATE persons SET name = coalesce(?2, name), email = coalesce(?3, email), role = coalesce(?4, role)
         WHERE pid = ?1",
        params![whose, name, email.map(key_of), role.map(record::role_word)],
    )?;
    Ok(if role.is_some() { Touched::People(vec![(whose, person)]) } else { Touched::Nobody })
}

fn set_password(
    tx: &SqliteTx,
    org: OrgId,
    person: PersonId,
    password: Option<&str>,
    keep: Option<TokenId>,
) -> Result<Touched, SqliteError> {
    let whose = pid(tx, org, person)?;
    tx.run("UPDATE persons SET password = ?2 WHERE pid = ?1", params![whose, password])?;
    tx.run(
        "DELETE FROM tokens WHERE pid = ?1 AND purpose IN ('browser', 'cli') AND token IS NOT ?2",
        params![whose, keep.map(Id::stored)],
    )?;
    Ok(Touched::People(vec![(whose, person)]))
}

fn set_identity(
    tx: &SqliteTx,
    org: OrgId,
    person: PersonId,
    issuer: &str,
    subject: &str,
) -> Result<Touched, SqliteError> {
    let whose = pid(tx, org, person)?;
    // Somebody has one name at each provider.
    tx.run("DELETE FROM identities WHERE pid = ?1 AND issuer = ?2", params![whose, issuer])?;
    let row = params![issuer, subject, whose];
    tx.run("INSERT INTO identities (issuer, subject, pid) VALUES (?1, ?2, ?3)", row)?;
    Ok(Touched::People(vec![(whose, person)]))
}

fn enable(tx: &SqliteTx, org: OrgId, person: PersonId) -> Result<Touched, SqliteError> {
    let whose = pid(tx, org, person)?;
    tx.run("UPDATE persons SET disabled_at = NULL WHERE pid = ?1", [whose])?;
    Ok(Touched::People(vec![(whose, person)]))
}

fn disable(tx: &SqliteTx, org: OrgId, person: PersonId, at: Moment) -> Result<Touched, SqliteError> {
    let whose = pid(tx, org, person)?;
    let row = params![whose, int(at.0)];
    tx.run("UPDATE persons SET disabled_at = coalesce(disabled_at, ?2) WHERE pid = ?1", row)?;
    tx.run("DELETE FROM tokens WHERE pid = ?1", [whose])?;
    tx.run("DELETE FROM links WHERE pid = ?1", [whose])?;
    Ok(Touched::People(vec![(whose, person)]))
}

fn set_membership(
    tx: &SqliteTx,
    org: OrgId,
    oid: Oid,
    group: GroupId,
    person: PersonId,
    sql: &str,
) -> Result<Touched, SqliteError> {
    let whose = pid(tx, org, person)?;
    tx.run(sql, params![gid(tx.db(), oid, group)?, whose])?;
    Ok(Touched::People(vec![(whose, person)]))
}

fn remove_root(tx: &SqliteTx, org: OrgId, oid: Oid, root: &RootRow) -> Result<Touched, SqliteError> {
    let (kind, grantee) = grantee(root.to, org);
    tx.run(
        "DELETE FROM roots WHERE oid = ?1 AND directory = ?2 AND kind = ?3 AND grantee = ?4",
        params![oid, root.directory, kind, grantee],
    )?;
    everybody(tx, org, root.to).map(Touched::People)
}

fn remove_group(tx: &SqliteTx, org: OrgId, oid: Oid, group: GroupId) -> Result<Touched, SqliteError> {
    let touched = everybody(tx, org, Grantee::Group(group))?;
    let (kind, bits) = grantee(Grantee::Group(group), org);
    tx.run(
        "UPDATE sessions SET revision = revision + 1
         WHERE sid IN (SELECT sid FROM grants WHERE kind = ?1 AND grantee = ?2)",
        params![kind, bits],
    )?;
    tx.run("DELETE FROM grants WHERE kind = ?1 AND grantee = ?2", params![kind, bits])?;
    let row = params![oid, kind, bits];
    tx.run("DELETE FROM roots WHERE oid = ?1 AND kind = ?2 AND grantee = ?3", row)?;
    tx.run("DELETE FROM agent_grants WHERE oid = ?1 AND kind = ?2 AND grantee = ?3", row)?;
    let number = gid(tx.db(), oid, group)?;
    tx.run("DELETE FROM group_people WHERE gid = ?1", [number])?;
    tx.run("DELETE FROM groups WHERE gid = ?1", [number])?;
    Ok(Touched::People(touched))
}

/// In place of whatever was given to them before; or nothing in its place.
fn give(
    tx: &SqliteTx,
    org: OrgId,
    who: PersonRef,
    on: &Resource,
    to: Grantee,
    grant: Option<Grant>,
    at: Moment,
) -> Result<Touched, SqliteError> {
    match on {
        Resource::Session(session) => {
            let Some(kept) = tx.stored_session(*session)? else { return Ok(Touched::Nobody) };
            give_on_session(tx, org, who, kept.sid, to, grant, at)?;
            Ok(Touched::Within(vec![kept.sid], everybody(tx, org, to)?))
        }
        Resource::Agent(agent) => {
            give_on_agent(tx, org, who, agent, to, grant, at)?;
            // What is given to one closes it to all others.
            everybody(tx, org, Grantee::Org).map(Touched::People)
        }
    }
}

fn give_on_session(
    tx: &SqliteTx,
    org: OrgId,
    who: PersonRef,
    sid: Sid,
    to: Grantee,
    grant: Option<Grant>,
    at: Moment,
) -> Result<(), SqliteError> {
    let (kind, grantee) = grantee(to, org);
    match grant.map(record::grant_word) {
        Some(grant) => tx.run(
            "INSERT OR REPLACE INTO grants (kind, grantee, sid, granted, by, since)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![kind, grantee, sid, grant, who.pid, int(at.0)],
        ),
        None => tx.run(
            "DELETE FROM grants WHERE kind = ?1 AND grantee = ?2 AND sid = ?3",
            params![kind, grantee, sid],
        ),
    }?;
    tx.run("UPDATE sessions SET revision = revision + 1 WHERE sid = ?1", [sid]).map(drop)
}

fn give_on_agent(
    tx: &SqliteTx,
    org: OrgId,
    who: PersonRef,
    agent: &str,
    to: Grantee,
    grant: Option<Grant>,
    at: Moment,
) -> Result<(), SqliteError> {
    let (kind, grantee) = grantee(to, org);
    match grant.map(record::grant_word) {
        Some(grant) => {
            let row = params![who.oid, agent];
            tx.run("INSERT OR IGNORE INTO closed_agents (oid, agent) VALUES (?1, ?2)", row)?;
            tx.run(
                "INSERT OR REPLACE INTO agent_grants (oid, agent, kind, grantee, granted, by, since)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![who.oid, agent, kind, grantee, grant, who.pid, int(at.0)],
            )
        }
        // Where nothing is left it stays closed.
        None => tx.run(
            "DELETE FROM agent_grants WHERE oid = ?1 AND agent = ?2 AND kind = ?3 AND grantee = ?4",
            params![who.oid, agent, kind, grantee],
        ),
    }
    .map(drop)
}

/// Every session of somebody, list by list: each is read by its index.
fn all_of(tx: &SqliteTx, owner: Pid) -> Result<Vec<StoredSession>, SqliteError> {
    let mut all = Vec::new();
    for list in view::LISTS {
        let sql = owned_ids_sql(list);
        for session in view::read_all(tx.db(), &sql, params![owner], |row| Columns(row).id(0))? {
            all.extend(tx.stored_session(session)?);
        }
    }
    Ok(all)
}

pub(crate) fn owned_ids_sql(list: &str) -> String {
    format!("SELECT s.id FROM sessions s WHERE s.owner = ?1 AND {list}")
}

fn hand_over(
    tx: &SqliteTx,
    org: OrgId,
    sessions: Vec<StoredSession>,
    to: PersonId,
) -> Result<Touched, SqliteError> {
    let heir = pid(tx, org, to)?;
    let mut touched = vec![(heir, to)];
    for kept in &sessions {
        touched.push((kept.owner, kept.owner_person));
        let row = params![kept.sid, heir];
        tx.run("UPDATE sessions SET owner = ?2, revision = revision + 1 WHERE sid = ?1", row)?;
        tx.run("UPDATE bindings SET owner = ?2 WHERE sid = ?1 AND until IS NULL", row)?;
        tx.run(
            "UPDATE approvals SET owner = ?2 WHERE owner = ?3 AND sid = ?1 AND state = 'open'",
            params![kept.sid, heir, kept.owner],
        )?;
        if kept.ended.is_none() {
            tx.run("UPDATE persons SET opened = opened - 1 WHERE pid = ?1", [kept.owner])?;
            tx.run("UPDATE persons SET opened = opened + 1 WHERE pid = ?1", [heir])?;
        }
    }
    Ok(Touched::Within(sessions.iter().map(|kept| kept.sid).collect(), touched))
}

// Whom it touches.

pub(crate) const MEMBERS: &str = "SELECT p.pid, p.person
    FROM groups g CROSS JOIN group_people m ON m.gid = g.gid CROSS JOIN persons p ON p.pid = m.pid
    WHERE g.id = ?1 AND g.oid = ?2";
pub(crate) const OF_ORG: &str = "SELECT pid, person FROM persons WHERE org = ?1 AND handle IS NOT NULL";

/// Everybody of the org to whom something is given that is given so.
fn everybody(tx: &SqliteTx, org: OrgId, to: Grantee) -> Result<Vec<Touchable>, SqliteError> {
    let db = tx.db();
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, Columns(row).id(1)?));
    match to {
        Grantee::Person(person) => {
            Ok(people::of(db, org, person)?.map(|somebody| (somebody.pid, person)).into_iter().collect())
        }
        Grantee::Group(group) => view::read_all(db, MEMBERS, params![group.stored(), oid(db, org)?], read),
        Grantee::Org => view::read_all(db, OF_ORG, params![org.stored()], read),
    }
}

/// Standings grow, and whatever those people have said that is not finished is looked at again.
fn touch(tx: &mut SqliteTx, touched: Touched, at: Moment) -> Result<(), SqliteError> {
    let (mut people, within) = match touched {
        Touched::Nobody => return Ok(()),
        Touched::People(people) => (people, None),
        Touched::Within(mut sessions, people) => {
            sessions.sort_unstable();
            (people, Some(sessions))
        }
    };
    people.sort_unstable_by_key(|(_, person)| *person);
    people.dedup();
    for (pid, person) in people {
        if within.is_none() {
            tx.run("UPDATE persons SET standing = standing + 1 WHERE pid = ?1", [pid])?;
        }
        for (sid, session) in unfinished_of(tx.db(), pid)? {
            if within.as_ref().is_none_or(|within| within.binary_search(&sid).is_ok()) {
                put_into_inbox(tx, session, at, Item::Recheck(person))?;
            }
        }
    }
    tx.forget_people();
    Ok(())
}

pub(crate) const UNFINISHED_OF: &str =
    "SELECT m.sid, s.id FROM messages m CROSS JOIN sessions s ON s.sid = m.sid
     WHERE m.by = ?1 AND m.pending = 1 GROUP BY m.sid ORDER BY m.sid";

fn unfinished_of(db: &Connection, pid: Pid) -> Result<Vec<(Sid, SessionId)>, SqliteError> {
    view::read_all(db, UNFINISHED_OF, params![pid], |row| Ok((row.get(0)?, Columns(row).id(1)?)))
}

//! How it changes who may do what: the key, then whether what was seen is still so, then everything that may refuse, then
//! the change, whom it touches, and its audit entry. One transaction, so none of these is ever there without the others.

use crate::columns::{Columns, Id, grantee, int};
use crate::desk::{Desk, Kept, Oid, Pid, Sid, Who, oid};
use crate::intake::{Item, Known, known, put_into_inbox, remember};
use crate::people::{self, Somebody, key_of, put_person, put_root};
use crate::rules;
use crate::tokens::{pid_of_identity, put_link, put_token};
use crate::trouble::Trouble;
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

pub(crate) fn change(desk: &mut Desk, wish: &Authorized<NewChange>) -> Result<Changing, Trouble> {
    let (by, NewChange { change, key, trail }) = (wish.by(), wish.wish());
    let who = match by.person {
        PersonId::ENGINE => Some(desk.who_at_first_sight(by.org, by.person)?),
        person => desk.who(by.org, person)?,
    };
    let Some(who) = who else { return Ok(Changing::Moved) };
    match known(desk, who.pid, key.as_ref(), trail.at)? {
        Known::Never => {}
        Known::Before(_) => return Ok(Changing::Before),
        Known::Conflict => return Ok(Changing::Conflict),
    }
    if !is_still_so(desk, by, who, change, wish.witness())? {
        return Ok(Changing::Moved);
    }
    if let Some(refused) = refuses(desk.db(), by, who.oid, change)? {
        return Ok(refused);
    }
    let touched = put(desk, by, who, change, trail.at)?;
    touch(desk, touched, trail.at)?;
    remember(desk, who.pid, key.as_ref(), [0; 16], trail.at)?;
    desk.done(who, &change.about(), trail)?;
    Ok(Changing::Done)
}

/// Is what was seen when it was authorized still so, and was it about this?
fn is_still_so(
    desk: &Desk,
    by: &Principal,
    who: Who,
    change: &Change,
    witness: Witness,
) -> Result<bool, Trouble> {
    let with = |session| -> Result<bool, Trouble> {
        Ok(desk.kept(session)?.is_some_and(|kept| kept.bears(by.org, session, witness)))
    };
    let with_org = witness.session.is_none();
    let bears = match (session_of(change), ruled_session(desk.db(), who.oid, change)?) {
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
fn ruled_session(db: &Connection, oid: Oid, change: &Change) -> Result<Option<SessionId>, Trouble> {
    match change {
        Change::AddRule(rule) => Ok(rule.session),
        Change::RemoveRule(rule) => Ok(rules::find(db, oid, *rule)?.flatten()),
        _ => Ok(None),
    }
}

// What may refuse.

fn refuses(db: &Connection, by: &Principal, oid: Oid, change: &Change) -> Result<Option<Changing>, Trouble> {
    let org = by.org;
    let found = |found: bool| if found { None } else { Some(Changing::NotFound) };
    let person = |id: PersonId| people::of(db, org, id).map(|found| found.is_some());
    let group = |id: GroupId| Ok::<_, Trouble>(gid(db, oid, id)?.is_some());
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

fn exists(db: &Connection, sql: &str, params: &[&dyn ToSql]) -> Result<bool, Trouble> {
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
) -> Result<Result<Somebody, Changing>, Trouble> {
    Ok(match people::of(db, org, person)? {
        None => Err(Changing::NotFound),
        Some(somebody) if somebody.row.role != was => Err(Changing::Moved),
        Some(somebody) => Ok(somebody),
    })
}

/// Who is disabled or only looks could do nothing with a session, and nobody else could for them.
fn cannot_own(db: &Connection, org: OrgId, heir: PersonId) -> Result<Option<Changing>, Trouble> {
    Ok(match people::of(db, org, heir)? {
        None => Some(Changing::NotFound),
        Some(heir) => (heir.is_disabled() || heir.row.role == Role::Viewer).then_some(Changing::CannotOwn),
    })
}

pub(crate) const OTHER_OWNERS: &str =
    "SELECT 1 FROM persons WHERE org = ?1 AND role = 'owner' AND disabled_at IS NULL AND pid <> ?2";

fn is_last_owner(db: &Connection, somebody: &Somebody) -> Result<bool, Trouble> {
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
) -> Result<Option<Changing>, Trouble> {
    let Some(email) = email else { return Ok(None) };
    let sql = "SELECT 1 FROM persons WHERE email IS NOT NULL AND email = ?1 AND org = ?2 AND pid IS NOT ?3";
    Ok(taken("email", exists(db, sql, params![key_of(email), org.stored(), whose])?))
}

fn gid(db: &Connection, oid: Oid, group: GroupId) -> Result<Option<i64>, Trouble> {
    let mut query = db.prepare_cached("SELECT gid FROM groups WHERE id = ?1 AND oid = ?2")?;
    Ok(query.query_row(params![group.stored(), oid], |row| row.get(0)).optional()?)
}

// The changes themselves. Everything that may refuse has been asked.

fn put(desk: &mut Desk, by: &Principal, who: Who, change: &Change, at: Moment) -> Result<Touched, Trouble> {
    let org = by.org;
    match change {
        Change::MakeOrg { org, link } => {
            people::make_org(desk, org, false, at)?;
            put_link(desk, org.owner.person, link)?;
            Ok(Touched::Nobody)
        }
        Change::Settings(settings) => set_settings(desk, who.oid, settings),
        Change::AddPerson { person, link } => {
            put_person(desk, org, person, false, at)?;
            put_link(desk, person.person, link)?;
            Ok(Touched::Nobody)
        }
        Change::ChangePerson { person, was, name, email, role } => {
            let role = role.filter(|role| role != was);
            change_person(desk, org, *person, name.as_deref(), email.as_deref(), role)
        }
        Change::SetPassword { person, password, keep, .. } => {
            set_password(desk, org, *person, password.as_deref(), *keep)
        }
        Change::Disable { person, .. } => disable(desk, org, *person, at),
        Change::Enable { person, .. } => enable(desk, org, *person),
        Change::SetIdentity { person, issuer, subject, .. } => {
            set_identity(desk, org, *person, issuer, subject)
        }
        Change::MakeLink { person, link, .. } => {
            put_link(desk, *person, link)?;
            Ok(Touched::Nobody)
        }
        Change::MakeGroup { group, name } => {
            let row = params![group.stored(), who.oid, name];
            desk.run("INSERT INTO groups (id, oid, name) VALUES (?1, ?2, ?3)", row)?;
            Ok(Touched::Nobody)
        }
        Change::RemoveGroup { group } => remove_group(desk, org, who.oid, *group),
        Change::Join { group, person } => {
            let sql = "INSERT OR IGNORE INTO group_people (gid, pid) VALUES (?1, ?2)";
            set_membership(desk, org, who.oid, *group, *person, sql)
        }
        Change::Leave { group, person } => {
            let sql = "DELETE FROM group_people WHERE gid = ?1 AND pid = ?2";
            set_membership(desk, org, who.oid, *group, *person, sql)
        }
        Change::Give { on, to, grant } => give(desk, org, who, on, *to, Some(*grant), at),
        Change::TakeBack { on, to } => give(desk, org, who, on, *to, None, at),
        Change::HandOver { session, to } => {
            let kept = desk.kept(*session)?.into_iter().collect();
            hand_over(desk, org, kept, *to)
        }
        Change::HandOverAll { from, to, .. } => {
            let kept = all_of(desk, pid(desk, org, *from)?)?;
            hand_over(desk, org, kept, *to)
        }
        Change::AddRoot(RootRow { directory, to }) => {
            put_root(desk, org, *to, directory)?;
            everybody(desk, org, *to).map(Touched::People)
        }
        Change::RemoveRoot(root) => remove_root(desk, org, who.oid, root),
        Change::MakeToken(token) => {
            put_token(desk, pid(desk, org, token.person)?, token)?;
            Ok(Touched::Nobody)
        }
        Change::RevokeToken { person, token } => {
            desk.run("DELETE FROM tokens WHERE token = ?1", [token.stored()])?;
            one(desk, org, *person)
        }
        Change::AddRule(rule) => {
            add_rule(desk, org, rule, at)?;
            Ok(Touched::Nobody)
        }
        Change::RemoveRule(rule) => {
            rules::remove(desk, *rule)?;
            Ok(Touched::Nobody)
        }
    }
}

pub(crate) fn add_rule(desk: &Desk, org: OrgId, rule: &RuleRow, at: Moment) -> Result<(), Trouble> {
    let oid = oid(desk.db(), org)?.ok_or_else(|| Trouble::Damaged(format!("{org} is gone")))?;
    let kept = rule.session.map(|session| desk.kept(session)).transpose()?.flatten();
    rules::add(desk, org, oid, pid(desk, org, rule.by)?, kept.map(|kept| kept.sid), rule, at)
}

fn pid(desk: &Desk, org: OrgId, person: PersonId) -> Result<Pid, Trouble> {
    let found = people::of(desk.db(), org, person)?;
    found.map(|somebody| somebody.pid).ok_or_else(|| Trouble::Damaged(format!("{person} is gone")))
}

fn one(desk: &Desk, org: OrgId, person: PersonId) -> Result<Touched, Trouble> {
    Ok(Touched::People(vec![(pid(desk, org, person)?, person)]))
}

fn set_settings(desk: &Desk, oid: Oid, settings: &OrgSettings) -> Result<Touched, Trouble> {
    desk.run(
        "UPDATE orgs SET share_new = ?2, open_max = ?3, awake_max = ?4 WHERE oid = ?1",
        params![oid, settings.share_new.map(record::grant_word), settings.open_max, settings.awake_max],
    )?;
    Ok(Touched::Nobody)
}

/// What is none stays as it is.
fn change_person(
    desk: &Desk,
    org: OrgId,
    person: PersonId,
    name: Option<&str>,
    email: Option<&str>,
    role: Option<Role>,
) -> Result<Touched, Trouble> {
    let whose = pid(desk, org, person)?;
    desk.run(
        "UPDATE persons SET name = coalesce(?2, name), email = coalesce(?3, email), role = coalesce(?4, role)
         WHERE pid = ?1",
        params![whose, name, email.map(key_of), role.map(record::role_word)],
    )?;
    Ok(if role.is_some() { Touched::People(vec![(whose, person)]) } else { Touched::Nobody })
}

fn set_password(
    desk: &Desk,
    org: OrgId,
    person: PersonId,
    password: Option<&str>,
    keep: Option<TokenId>,
) -> Result<Touched, Trouble> {
    let whose = pid(desk, org, person)?;
    desk.run("UPDATE persons SET password = ?2 WHERE pid = ?1", params![whose, password])?;
    desk.run(
        "DELETE FROM tokens WHERE pid = ?1 AND purpose IN ('browser', 'cli') AND token IS NOT ?2",
        params![whose, keep.map(Id::stored)],
    )?;
    Ok(Touched::People(vec![(whose, person)]))
}

fn set_identity(
    desk: &Desk,
    org: OrgId,
    person: PersonId,
    issuer: &str,
    subject: &str,
) -> Result<Touched, Trouble> {
    let whose = pid(desk, org, person)?;
    // Somebody has one name at each provider.
    desk.run("DELETE FROM identities WHERE pid = ?1 AND issuer = ?2", params![whose, issuer])?;
    let row = params![issuer, subject, whose];
    desk.run("INSERT INTO identities (issuer, subject, pid) VALUES (?1, ?2, ?3)", row)?;
    Ok(Touched::People(vec![(whose, person)]))
}

fn enable(desk: &Desk, org: OrgId, person: PersonId) -> Result<Touched, Trouble> {
    let whose = pid(desk, org, person)?;
    desk.run("UPDATE persons SET disabled_at = NULL WHERE pid = ?1", [whose])?;
    Ok(Touched::People(vec![(whose, person)]))
}

fn disable(desk: &Desk, org: OrgId, person: PersonId, at: Moment) -> Result<Touched, Trouble> {
    let whose = pid(desk, org, person)?;
    let row = params![whose, int(at.0)];
    desk.run("UPDATE persons SET disabled_at = coalesce(disabled_at, ?2) WHERE pid = ?1", row)?;
    desk.run("DELETE FROM tokens WHERE pid = ?1", [whose])?;
    desk.run("DELETE FROM links WHERE pid = ?1", [whose])?;
    Ok(Touched::People(vec![(whose, person)]))
}

fn set_membership(
    desk: &Desk,
    org: OrgId,
    oid: Oid,
    group: GroupId,
    person: PersonId,
    sql: &str,
) -> Result<Touched, Trouble> {
    let whose = pid(desk, org, person)?;
    desk.run(sql, params![gid(desk.db(), oid, group)?, whose])?;
    Ok(Touched::People(vec![(whose, person)]))
}

fn remove_root(desk: &Desk, org: OrgId, oid: Oid, root: &RootRow) -> Result<Touched, Trouble> {
    let (kind, grantee) = grantee(root.to, org);
    desk.run(
        "DELETE FROM roots WHERE oid = ?1 AND directory = ?2 AND kind = ?3 AND grantee = ?4",
        params![oid, root.directory, kind, grantee],
    )?;
    everybody(desk, org, root.to).map(Touched::People)
}

fn remove_group(desk: &Desk, org: OrgId, oid: Oid, group: GroupId) -> Result<Touched, Trouble> {
    let touched = everybody(desk, org, Grantee::Group(group))?;
    let (kind, bits) = grantee(Grantee::Group(group), org);
    desk.run(
        "UPDATE sessions SET revision = revision + 1
         WHERE sid IN (SELECT sid FROM grants WHERE kind = ?1 AND grantee = ?2)",
        params![kind, bits],
    )?;
    desk.run("DELETE FROM grants WHERE kind = ?1 AND grantee = ?2", params![kind, bits])?;
    let row = params![oid, kind, bits];
    desk.run("DELETE FROM roots WHERE oid = ?1 AND kind = ?2 AND grantee = ?3", row)?;
    desk.run("DELETE FROM agent_grants WHERE oid = ?1 AND kind = ?2 AND grantee = ?3", row)?;
    let number = gid(desk.db(), oid, group)?;
    desk.run("DELETE FROM group_people WHERE gid = ?1", [number])?;
    desk.run("DELETE FROM groups WHERE gid = ?1", [number])?;
    Ok(Touched::People(touched))
}

/// In place of whatever was given to them before; or nothing in its place.
fn give(
    desk: &Desk,
    org: OrgId,
    who: Who,
    on: &Resource,
    to: Grantee,
    grant: Option<Grant>,
    at: Moment,
) -> Result<Touched, Trouble> {
    match on {
        Resource::Session(session) => {
            let Some(kept) = desk.kept(*session)? else { return Ok(Touched::Nobody) };
            give_on_session(desk, org, who, kept.sid, to, grant, at)?;
            Ok(Touched::Within(vec![kept.sid], everybody(desk, org, to)?))
        }
        Resource::Agent(agent) => {
            give_on_agent(desk, org, who, agent, to, grant, at)?;
            // What is given to one closes it to all others.
            everybody(desk, org, Grantee::Org).map(Touched::People)
        }
    }
}

fn give_on_session(
    desk: &Desk,
    org: OrgId,
    who: Who,
    sid: Sid,
    to: Grantee,
    grant: Option<Grant>,
    at: Moment,
) -> Result<(), Trouble> {
    let (kind, grantee) = grantee(to, org);
    match grant.map(record::grant_word) {
        Some(grant) => desk.run(
            "INSERT OR REPLACE INTO grants (kind, grantee, sid, granted, by, since)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![kind, grantee, sid, grant, who.pid, int(at.0)],
        ),
        None => desk.run(
            "DELETE FROM grants WHERE kind = ?1 AND grantee = ?2 AND sid = ?3",
            params![kind, grantee, sid],
        ),
    }?;
    desk.run("UPDATE sessions SET revision = revision + 1 WHERE sid = ?1", [sid]).map(drop)
}

fn give_on_agent(
    desk: &Desk,
    org: OrgId,
    who: Who,
    agent: &str,
    to: Grantee,
    grant: Option<Grant>,
    at: Moment,
) -> Result<(), Trouble> {
    let (kind, grantee) = grantee(to, org);
    match grant.map(record::grant_word) {
        Some(grant) => {
            let row = params![who.oid, agent];
            desk.run("INSERT OR IGNORE INTO closed_agents (oid, agent) VALUES (?1, ?2)", row)?;
            desk.run(
                "INSERT OR REPLACE INTO agent_grants (oid, agent, kind, grantee, granted, by, since)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![who.oid, agent, kind, grantee, grant, who.pid, int(at.0)],
            )
        }
        // Where nothing is left it stays closed.
        None => desk.run(
            "DELETE FROM agent_grants WHERE oid = ?1 AND agent = ?2 AND kind = ?3 AND grantee = ?4",
            params![who.oid, agent, kind, grantee],
        ),
    }
    .map(drop)
}

/// Every session of somebody, list by list: each is read by its index.
fn all_of(desk: &Desk, owner: Pid) -> Result<Vec<Kept>, Trouble> {
    let mut all = Vec::new();
    for list in view::LISTS {
        let sql = owned_ids_sql(list);
        for session in view::read_all(desk.db(), &sql, params![owner], |row| Columns(row).id(0))? {
            all.extend(desk.kept(session)?);
        }
    }
    Ok(all)
}

pub(crate) fn owned_ids_sql(list: &str) -> String {
    format!("SELECT s.id FROM sessions s WHERE s.owner = ?1 AND {list}")
}

fn hand_over(desk: &Desk, org: OrgId, sessions: Vec<Kept>, to: PersonId) -> Result<Touched, Trouble> {
    let heir = pid(desk, org, to)?;
    let mut touched = vec![(heir, to)];
    for kept in &sessions {
        touched.push((kept.owner, kept.owner_person));
        let row = params![kept.sid, heir];
        desk.run("UPDATE sessions SET owner = ?2, revision = revision + 1 WHERE sid = ?1", row)?;
        desk.run("UPDATE bindings SET owner = ?2 WHERE sid = ?1 AND until IS NULL", row)?;
        desk.run(
            "UPDATE approvals SET owner = ?2 WHERE owner = ?3 AND sid = ?1 AND state = 'open'",
            params![kept.sid, heir, kept.owner],
        )?;
        if kept.ended.is_none() {
            desk.run("UPDATE persons SET opened = opened - 1 WHERE pid = ?1", [kept.owner])?;
            desk.run("UPDATE persons SET opened = opened + 1 WHERE pid = ?1", [heir])?;
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
fn everybody(desk: &Desk, org: OrgId, to: Grantee) -> Result<Vec<Touchable>, Trouble> {
    let db = desk.db();
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
fn touch(desk: &mut Desk, touched: Touched, at: Moment) -> Result<(), Trouble> {
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
            desk.run("UPDATE persons SET standing = standing + 1 WHERE pid = ?1", [pid])?;
        }
        for (sid, session) in unfinished_of(desk.db(), pid)? {
            if within.as_ref().is_none_or(|within| within.binary_search(&sid).is_ok()) {
                put_into_inbox(desk, session, at, Item::Recheck(person))?;
            }
        }
    }
    desk.forget_people();
    Ok(())
}

pub(crate) const UNFINISHED_OF: &str =
    "SELECT m.sid, s.id FROM messages m CROSS JOIN sessions s ON s.sid = m.sid
     WHERE m.by = ?1 AND m.pending = 1 GROUP BY m.sid ORDER BY m.sid";

fn unfinished_of(db: &Connection, pid: Pid) -> Result<Vec<(Sid, SessionId)>, Trouble> {
    view::read_all(db, UNFINISHED_OF, params![pid], |row| Ok((row.get(0)?, Columns(row).id(1)?)))
}

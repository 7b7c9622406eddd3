//! People and their rights, as a store keeps them: orgs, people, groups, grants, directories, credentials, links.
//! Every way in which that can change is `kernel::people`'s; here is what the audit says of it.

use crate::record::{grant_word, right_word, role_word};
use crate::{AuditSubject, Key, Trail};
use bytes::Bytes;
pub use kernel::people::{
    HeirLimits, NewLink, NewOrg, NewPerson, NewToken, OfferRow, OrgSettings, PeopleChange, PeopleRefusal,
    Purpose, Resource, RootRow, RuleEffect, RuleRow, TokenRow,
};
use kernel::{Grant, Grantee, GroupId, Moment, OrgId, PersonId, Principal, Right, Role, SessionId, TokenId};
use std::fmt;

/// The standing of somebody who is new.
pub const FIRST_STANDING: u64 = 1;

/// An org.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrgRow {
    pub org: OrgId,
    pub name: String,
    pub settings: OrgSettings,
    pub made_at: Moment,
    /// The number of its people who are not disabled.
    pub people: u32,
}

/// Somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonRow {
    pub person: PersonId,
    pub org: OrgId,
    pub handle: String,
    pub name: Option<String>,
    pub email: Option<String>,
    pub role: Role,
    pub is_host: bool,
    pub has_password: bool,
    pub disabled_at: Option<Moment>,
    pub made_at: Moment,
}

/// Somebody who may be about to sign in.
#[derive(Clone, PartialEq, Eq)]
pub struct LoginRow {
    pub org: OrgId,
    pub person: PersonId,
    pub handle: String,
    /// The hash that their password is compared with; none if they have none.
    pub password: Option<String>,
    pub standing: u64,
    pub is_disabled: bool,
}

/// Without the password.
impl fmt::Debug for LoginRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { org, person, handle, password: _, standing, is_disabled } = self;
        write!(f, "LoginRow({org}/{person} {handle:?}, standing {standing}, disabled {is_disabled})")
    }
}

/// Somebody who has proved who they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedIn {
    /// As it was seen before the proof.
    pub standing: u64,
    pub token: TokenRow,
    pub org: OrgId,
    pub trail: Trail,
}

/// People who are given things together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRow {
    pub group: GroupId,
    pub name: String,
    pub people: Vec<PersonId>,
}

/// The grant of somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantRow {
    pub to: Grantee,
    pub grant: Grant,
    pub by: PersonId,
    pub since: Moment,
}

/// A credential, as far as it can be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenView {
    pub token: TokenId,
    pub person: PersonId,
    pub purpose: Purpose,
    pub name: Option<String>,
    pub rights: Vec<Right>,
    pub made_at: Moment,
    pub expires: Option<Moment>,
    pub last_used: Option<Moment>,
    /// The token that it was made with, and goes with.
    pub parent: Option<TokenId>,
}

/// A change of who may do what, with what makes a repetition harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewChange {
    pub change: PeopleChange,
    pub key: Option<Key>,
    pub trail: Trail,
}

/// The subject of a change, as the audit has it: ids and names, then how much was given: a grant, a role, rights. No
/// secrets.
pub fn about_change(change: &PeopleChange) -> AuditSubject {
    let (session, subject) = match change {
        PeopleChange::MakeOrg { org, .. } => (None, Some(org.org.to_string())),
        PeopleChange::Settings(settings) => (None, settings_text(settings)),
        PeopleChange::AddPerson { person, .. } => {
            (None, Some(format!("{} {}", person.person, role_word(person.role))))
        }
        PeopleChange::ChangePerson { person, role: Some(role), .. } => {
            (None, Some(format!("{person} {}", role_word(*role))))
        }
        PeopleChange::ChangePerson { person, role: None, .. }
        | PeopleChange::SetPassword { person, .. }
        | PeopleChange::Disable { person, .. }
        | PeopleChange::Enable { person, .. }
        | PeopleChange::SetIdentity { person, .. }
        | PeopleChange::MakeLink { person, .. } => (None, Some(person.to_string())),
        PeopleChange::MakeGroup { group, .. } | PeopleChange::RemoveGroup { group } => {
            (None, Some(group.to_string()))
        }
        PeopleChange::Join { group, person } | PeopleChange::Leave { group, person } => {
            (None, Some(format!("{group} {person}")))
        }
        PeopleChange::Give { on, to, grant } => {
            resource_about(on, &format!("{} {}", grantee_text(*to), grant_word(*grant)))
        }
        PeopleChange::TakeBack { on, to } => resource_about(on, &grantee_text(*to)),
        PeopleChange::HandOver { session, to } => (Some(*session), Some(to.to_string())),
        PeopleChange::AcceptOffer { session, .. }
        | PeopleChange::DeclineOffer { session }
        | PeopleChange::TakeOfferBack { session } => (Some(*session), None),
        PeopleChange::HandOverAll { from, to, .. } => (None, Some(format!("{from} {to}"))),
        PeopleChange::AddRoot(root) | PeopleChange::RemoveRoot(root) => {
            (None, Some(format!("{} {}", root.directory, grantee_text(root.to))))
        }
        PeopleChange::MakeToken(token) => {
            let rights = token.rights.iter().map(|right| format!(" {}", right_word(right)));
            (None, Some(format!("{}{}", token.token, rights.collect::<String>())))
        }
        PeopleChange::RevokeToken { token, .. } => (None, Some(token.to_string())),
        PeopleChange::AddRule(rule) => (rule.session, Some(rule.rule.to_string())),
        PeopleChange::RemoveRule(rule) => (None, Some(rule.to_string())),
    };
    AuditSubject { session, subject }
}

/// The subject of a credential that a change takes along, as the audit has it: its id, then what the change is about.
pub fn about_taken_along(token: TokenId, change: &PeopleChange) -> AuditSubject {
    let AuditSubject { session, subject } = about_change(change);
    let words: Vec<String> = [Some(token.to_string()), subject].into_iter().flatten().collect();
    AuditSubject { session, subject: Some(words.join(" ")) }
}

fn resource_about(on: &Resource, what: &str) -> (Option<SessionId>, Option<String>) {
    match on {
        Resource::Session(session) => (Some(*session), Some(what.to_owned())),
        Resource::Agent(agent) => (None, Some(format!("{agent} {what}"))),
    }
}

/// The decisions of an org; what it leaves as the machine has it is left out.
fn settings_text(settings: &OrgSettings) -> Option<String> {
    let OrgSettings { share_new, open_max, awake_max } = *settings;
    let shared = share_new.map(|grant| format!("share_new={}", grant_word(grant)));
    let open = open_max.map(|most| format!("open_max={most}"));
    let awake = awake_max.map(|most| format!("awake_max={most}"));
    let all: Vec<_> = [shared, open, awake].into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join(" "))
}

/// The id of whom something is given to, or `org`.
pub fn grantee_text(to: Grantee) -> String {
    match to {
        Grantee::Person(person) => person.to_string(),
        Grantee::Group(group) => group.to_string(),
        Grantee::Org => "org".into(),
    }
}

/// The other way round.
pub fn grantee_parse(text: &str) -> Option<Grantee> {
    match text {
        "org" => Some(Grantee::Org),
        id => (id.parse().map(Grantee::Person)).or_else(|_| id.parse().map(Grantee::Group)).ok(),
    }
}

/// The rights of somebody, put together from what is stored about them: the one way in which stores make principals.
#[derive(Debug, Clone)]
pub struct Stands<'a> {
    pub row: &'a PersonRow,
    pub standing: u64,
    /// The groups that they are in.
    pub groups: Vec<GroupId>,
    /// The agents of their org that are not open to everybody, and all that was given on them. One on which nothing is left is
    /// here, too.
    pub agents: Vec<(String, Option<(Grantee, Grant)>)>,
    /// Every directory of their org.
    pub roots: Vec<RootRow>,
}

impl Stands<'_> {
    /// The person, as they are without a credential: a part of Homing that acts for them.
    pub fn principal(&self) -> Principal {
        let is = |to: &Grantee| match to {
            Grantee::Person(person) => *person == self.row.person,
            Grantee::Group(group) => self.groups.contains(group),
            Grantee::Org => true,
        };
        let mut agents: Vec<(String, Option<Grant>)> = Vec::new();
        for (name, given) in &self.agents {
            let given = given.as_ref().filter(|(to, _)| is(to)).map(|(_, grant)| *grant);
            match agents.iter_mut().find(|(known, _)| known == name) {
                Some((_, strongest)) => *strongest = (*strongest).max(given),
                None => agents.push((name.clone(), given)),
            }
        }
        agents.sort();
        let mut roots: Vec<_> = self.roots.iter().filter(|root| is(&root.to)).collect();
        roots.sort_by(|a, b| a.directory.cmp(&b.directory));
        let mut roots: Vec<_> = roots.into_iter().map(|root| root.directory.clone()).collect();
        roots.dedup();
        let mut groups = self.groups.clone();
        groups.sort_unstable();
        Principal {
            role: self.row.role,
            is_host: self.row.is_host,
            groups,
            agents,
            roots,
            standing: self.standing,
            ..Principal::member(self.row.org, self.row.person, self.row.handle.clone())
        }
    }
}

impl TokenView {
    /// This credential, as far as it can be seen.
    pub fn of(row: &TokenRow, last_used: Option<Moment>) -> Self {
        Self {
            token: row.token,
            person: row.person,
            purpose: row.purpose,
            name: row.name.clone(),
            rights: row.rights.iter().collect(),
            made_at: row.made_at,
            expires: row.expires,
            last_used,
            parent: row.parent,
        }
    }
}

/// Somebody's own sign-in for an agent.
#[derive(Clone, PartialEq, Eq)]
pub struct NewAccount {
    /// The agent.
    pub agent: String,
    /// The variables that are in it; shown to whoever gave them.
    pub names: Vec<String>,
    /// Their content, sealed. Never opened here.
    pub sealed: Bytes,
    /// The trail for the audit entry.
    pub trail: Trail,
}

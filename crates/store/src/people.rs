//! Who there is and what they may do, as a store keeps it: orgs, people, groups, grants, directories, credentials, links;
//! and every way in which that can change.

use crate::record::{grant_word, right_word, role_word};
use crate::{About, Key, Trail};
use bytes::Bytes;
use kernel::{
    Grant, Grantee, GroupId, Moment, OrgId, PersonId, Principal, Right, Rights, Role, RuleId, SessionId,
    TokenId, Turn,
};
use std::fmt;

/// The standing of somebody who is new.
pub const FIRST_STANDING: u64 = 1;

/// An org to be made, and the person who owns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOrg {
    pub org: OrgId,
    /// How it is called in `ORG/NAME`. One of its kind on a machine.
    pub name: String,
    pub owner: NewPerson,
    /// The directories that the owner may choose from the beginning.
    pub roots: Vec<String>,
}

/// An org.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrgRow {
    pub org: OrgId,
    pub name: String,
    pub settings: OrgSettings,
    pub made_at: Moment,
    /// How many people of it are not disabled.
    pub people: u32,
}

/// What an org decides for itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OrgSettings {
    /// What everybody in the org is given on a session that is made from now on; none keeps it to its maker.
    pub share_new: Option<Grant>,
    /// How many sessions the org may have open, if less than the machine allows.
    pub open_max: Option<u32>,
    /// In how many of them a turn may be under way, if less than the machine allows.
    pub awake_max: Option<u32>,
}

/// Somebody to be let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPerson {
    pub person: PersonId,
    /// How they are called in addresses. One of its kind in an org.
    pub handle: String,
    pub name: Option<String>,
    /// In lower case. One of its kind in an org.
    pub email: Option<String>,
    pub role: Role,
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
    /// What their password is compared with; none if they have none.
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

/// The credential that comes of a link: its person is the link's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkToken {
    pub token: TokenId,
    pub hash: [u8; 32],
    pub purpose: Purpose,
    pub name: Option<String>,
    pub expires: Option<Moment>,
    pub idle_ms_max: Option<u64>,
}

/// People who are given things together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRow {
    pub group: GroupId,
    pub name: String,
    pub people: Vec<PersonId>,
}

/// What something can be given on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    Session(SessionId),
    /// By its name in the configuration.
    Agent(String),
}

/// What somebody was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantRow {
    pub to: Grantee,
    pub grant: Grant,
    pub by: PersonId,
    pub since: Moment,
}

/// A directory that may be chosen, and everything under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootRow {
    /// Canonical.
    pub directory: String,
    pub to: Grantee,
}

/// What becomes of an agent's question without asking, or who is asked. What is none holds for all; which of several that
/// fit counts is the kernel's to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleRow {
    pub rule: RuleId,
    /// Who made it.
    pub by: PersonId,
    pub since: Moment,
    /// By its name in the configuration.
    pub agent: Option<String>,
    pub tool: Option<String>,
    /// Canonical; and everything under it.
    pub directory: Option<String>,
    /// It goes when this session ends.
    pub session: Option<SessionId>,
    pub effect: RuleEffect,
    /// It counts no more from then on.
    pub until: Option<Moment>,
}

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleEffect {
    Allow,
    Deny,
    /// Only these may answer.
    Ask(Grantee),
}

impl RuleRow {
    /// The rule as the kernel reads it; none once its time is over.
    pub fn in_force(&self, now: Moment) -> Option<kernel::Rule> {
        let effect = match self.effect {
            RuleEffect::Allow => kernel::Effect::Allow,
            RuleEffect::Deny => kernel::Effect::Deny,
            RuleEffect::Ask(who) => kernel::Effect::Ask { who },
        };
        let Self { rule, agent, tool, directory, session, .. } = self.clone();
        let over = self.until.is_some_and(|until| until <= now);
        (!over).then_some(kernel::Rule { rule, agent, tool, directory, session, effect })
    }
}

/// What a credential is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// The file in the data directory. A person has one of these at a time.
    Machine,
    /// A browser's cookie.
    Browser,
    /// What `homing login` keeps.
    Cli,
    /// A token that somebody made for a program of theirs.
    Api,
    /// What an agent may use to call back, while its turn lasts.
    Turn,
}

/// A credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRow {
    pub token: TokenId,
    /// Of the secret, which nobody keeps.
    pub hash: [u8; 32],
    pub person: PersonId,
    pub purpose: Purpose,
    /// What people call it.
    pub name: Option<String>,
    pub rights: Rights,
    /// The only client name it may use in addresses.
    pub client: Option<String>,
    /// The one session and turn it is for. It is good while that turn is under way.
    pub bound: Option<(SessionId, Turn)>,
    pub made_at: Moment,
    pub expires: Option<Moment>,
    /// It is good no more when it was not used for so long.
    pub idle_ms_max: Option<u64>,
}

impl TokenRow {
    /// A credential that is good for everything its person may do, for ever.
    pub fn full(token: TokenId, hash: [u8; 32], person: PersonId, purpose: Purpose, made_at: Moment) -> Self {
        let (name, client, bound, expires, idle_ms_max) = (None, None, None, None, None);
        Self {
            token,
            hash,
            person,
            purpose,
            name,
            rights: Rights::ALL,
            client,
            bound,
            made_at,
            expires,
            idle_ms_max,
        }
    }
}

/// What can be seen of a credential.
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
}

/// A change of who may do what, with what makes a repetition harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewChange {
    pub change: Change,
    pub key: Option<Key>,
    pub trail: Trail,
}

/// Every way in which it can change who may do what. All ids are minted by us; all people, groups and sessions must be of
/// the wisher's org.
///
/// Whom a change touches, so that their standings grow and their unfinished messages are looked at again:
/// `ChangePerson` (if it changes the role), `SetPassword`, `Disable`, `Enable`, `SetIdentity`, `Join`, `Leave` and
/// `RevokeToken` the person; `RemoveGroup` whoever is in it; `AddRoot` and `RemoveRoot` whoever they are for; `Give` and
/// `TakeBack` on an agent everybody in the org. `Give` and `TakeBack` on a session, `HandOver` and `HandOverAll` are seen
/// in the sessions' revisions, so no standing grows; looked at again are the ones it was given to or taken from, in those
/// sessions. The others touch nobody.
///
/// What is about one session is authorized by its record. A rule for one session is authorized by that or by the org's
/// own rules: whoever answers for a session and whoever looks after the org may both make one and take it away.
#[derive(Clone, PartialEq, Eq)]
pub enum Change {
    /// Another org, with its owner and the link by which they come in.
    MakeOrg {
        org: NewOrg,
        link: NewLink,
    },
    Settings(OrgSettings),
    /// Somebody new, and the link by which they come in.
    AddPerson {
        person: NewPerson,
        link: NewLink,
    },
    /// What is none stays as it is. `role` was judged by what they are; if they are no longer, look again.
    ChangePerson {
        person: PersonId,
        was: Role,
        name: Option<String>,
        email: Option<String>,
        role: Option<Role>,
    },
    /// Another password, or none. Every other browser and CLI of theirs is signed out.
    SetPassword {
        person: PersonId,
        was: Role,
        password: Option<String>,
        keep: Option<TokenId>,
    },
    /// They may do nothing from now on: their credentials and links are gone, what waits of them is refused, what runs is
    /// stopped.
    Disable {
        person: PersonId,
        was: Role,
    },
    Enable {
        person: PersonId,
        was: Role,
    },
    /// Ties a name at an identity provider to them. If they have another one there it is *taken*, unless somebody else who
    /// looks after them puts this one in its place.
    SetIdentity {
        person: PersonId,
        was: Role,
        issuer: String,
        subject: String,
    },
    /// A link by which they sign in, once.
    MakeLink {
        person: PersonId,
        was: Role,
        link: NewLink,
    },
    MakeGroup {
        group: GroupId,
        name: String,
    },
    /// What it was given on sessions and agents goes with it, and so do its directories.
    RemoveGroup {
        group: GroupId,
    },
    Join {
        group: GroupId,
        person: PersonId,
    },
    Leave {
        group: GroupId,
        person: PersonId,
    },
    /// In place of whatever they were given on it before. The first thing that is given on an agent closes it to all others;
    /// from then on it is open to whom it is given, and only giving it to the org opens it to everybody.
    Give {
        on: Resource,
        to: Grantee,
        grant: Grant,
    },
    TakeBack {
        on: Resource,
        to: Grantee,
    },
    /// Another owner, who can come in and is no viewer; whoever had it keeps what they were given, which is nothing if nobody gave them anything.
    HandOver {
        session: SessionId,
        to: PersonId,
    },
    /// Every session of somebody who is leaving. Their role as in `ChangePerson`.
    HandOverAll {
        from: PersonId,
        was: Role,
        to: PersonId,
    },
    AddRoot(RootRow),
    RemoveRoot(RootRow),
    MakeToken(TokenRow),
    RevokeToken {
        person: PersonId,
        token: TokenId,
    },
    /// A rule for what agents ask. A session that it is for must be open. Those of the org whose time is over go with it.
    AddRule(RuleRow),
    /// A rule that asks a group stays when the group goes: until somebody removes it, nobody can say yes.
    RemoveRule(RuleId),
}

/// Without what may be in it.
impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Change of {:?}", self.about())
    }
}

impl Change {
    /// What it is about, as the audit has it: ids and names, then how much was given: a grant, a role, rights. No secrets.
    pub fn about(&self) -> About {
        let (session, subject) = match self {
            Self::MakeOrg { org, .. } => (None, Some(org.org.to_string())),
            Self::Settings(settings) => (None, settings_text(settings)),
            Self::AddPerson { person, .. } => {
                (None, Some(format!("{} {}", person.person, role_word(person.role))))
            }
            Self::ChangePerson { person, role: Some(role), .. } => {
                (None, Some(format!("{person} {}", role_word(*role))))
            }
            Self::ChangePerson { person, role: None, .. }
            | Self::SetPassword { person, .. }
            | Self::Disable { person, .. }
            | Self::Enable { person, .. }
            | Self::SetIdentity { person, .. }
            | Self::MakeLink { person, .. } => (None, Some(person.to_string())),
            Self::MakeGroup { group, .. } | Self::RemoveGroup { group } => (None, Some(group.to_string())),
            Self::Join { group, person } | Self::Leave { group, person } => {
                (None, Some(format!("{group} {person}")))
            }
            Self::Give { on, to, grant } => {
                on.about(&format!("{} {}", grantee_text(*to), grant_word(*grant)))
            }
            Self::TakeBack { on, to } => on.about(&grantee_text(*to)),
            Self::HandOver { session, to } => (Some(*session), Some(to.to_string())),
            Self::HandOverAll { from, to, .. } => (None, Some(format!("{from} {to}"))),
            Self::AddRoot(root) | Self::RemoveRoot(root) => {
                (None, Some(format!("{} {}", root.directory, grantee_text(root.to))))
            }
            Self::MakeToken(token) => {
                let rights = token.rights.iter().map(|right| format!(" {}", right_word(right)));
                (None, Some(format!("{}{}", token.token, rights.collect::<String>())))
            }
            Self::RevokeToken { token, .. } => (None, Some(token.to_string())),
            Self::AddRule(rule) => (rule.session, Some(rule.rule.to_string())),
            Self::RemoveRule(rule) => (None, Some(rule.to_string())),
        };
        About { session, subject }
    }
}

impl Resource {
    fn about(&self, what: &str) -> (Option<SessionId>, Option<String>) {
        match self {
            Self::Session(session) => (Some(*session), Some(what.to_owned())),
            Self::Agent(agent) => (None, Some(format!("{agent} {what}"))),
        }
    }
}

/// What an org has decided; what it leaves as the machine has it is left out.
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

/// A link that lets somebody in, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLink {
    pub hash: [u8; 32],
    pub expires: Moment,
}

/// What came of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changing {
    /// It is so. What was so before is fine, too.
    Done,
    /// It was done before, under the same key.
    Before,
    /// The key was used for something else.
    Conflict,
    /// What was seen when it was authorized has changed: look again.
    Moved,
    /// There is nobody and nothing of this id in the org.
    NotFound,
    /// Somebody or something in the org is called so already.
    Taken(&'static str),
    /// An org has an owner who can come in.
    LastOwner,
    /// Whoever is to own a session is disabled, or a viewer.
    CannotOwn,
}

/// What somebody may do, put together from what is stored about them: the one way in which stores make principals.
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

impl TokenRow {
    /// The person with this credential.
    pub fn of(&self, person: Principal) -> Principal {
        Principal {
            client: self.client.clone(),
            rights: self.rights,
            bound: self.bound,
            credential: Some(self.token),
            ..person
        }
    }

    /// Whether it is good at this moment, as far as the clock is concerned.
    pub fn is_fresh(&self, last_used: Option<Moment>, now: Moment) -> bool {
        let used = last_used.map_or(self.made_at, |used| used.max(self.made_at));
        let idle = self.idle_ms_max.is_some_and(|most| now.0 >= used.0.saturating_add(most));
        !idle && self.expires.is_none_or(|until| now < until)
    }

    /// What can be seen of it.
    pub fn view(&self, last_used: Option<Moment>) -> TokenView {
        TokenView {
            token: self.token,
            person: self.person,
            purpose: self.purpose,
            name: self.name.clone(),
            rights: self.rights.iter().collect(),
            made_at: self.made_at,
            expires: self.expires,
            last_used,
        }
    }
}

impl LinkToken {
    /// The credential, once it is known whose link it was.
    pub fn row(self, person: PersonId, made_at: Moment) -> TokenRow {
        let Self { token, hash, purpose, name, expires, idle_ms_max } = self;
        let full = TokenRow::full(token, hash, person, purpose, made_at);
        TokenRow { name, expires, idle_ms_max, ..full }
    }
}

/// Somebody's own sign-in for an agent.
#[derive(Clone, PartialEq, Eq)]
pub struct NewAccount {
    /// The agent.
    pub agent: String,
    /// The variables that are in it; shown to whoever gave them.
    pub names: Vec<String>,
    /// What they hold, sealed. Never opened here.
    pub sealed: Bytes,
    /// What the audit entry says.
    pub trail: Trail,
}

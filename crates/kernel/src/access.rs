//! The rule of who may do what, and the only way to prove that it was asked.
//!
//! A principal is a person and the credential they came with. `authorize` compares it with a session's stored record,
//! `authorize_new` with what a new session would be, `authorize_org` with the org's own rules; each makes an
//! `Authorized<T>`, and nothing else can. It is asked in the transaction of the write, of the rows as they are there, and a plan
//! that changes something takes one: no right can be taken away in between.

use crate::{Address, GroundPath, GroupId, OrgId, PersonId, Scheme, SessionId, TokenId, Turn};
use alloc::string::String;
use alloc::vec::Vec;

/// The things a person may do with a session or an agent. Each includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grant {
    /// Read it.
    View,
    /// Say something to it: a shell as the agent's user.
    Prompt,
    /// End it, reorder it, share it, hand it on.
    Manage,
}

/// The role of a person in their org. Each may do what the ones before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Reads what was shared with them, and nothing more, whatever they were granted.
    Viewer,
    /// Makes sessions, and shares them.
    Member,
    /// Looks after people, groups, agents, directories and the audit. Reads nobody's sessions by that.
    Admin,
    /// An admin whom admins cannot touch. There is always one who is not disabled.
    Owner,
}

/// One thing that a credential may be good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Right {
    /// Read.
    Read,
    /// Make sessions, say things, take them back, stop them.
    Prompt,
    /// Answer agents' questions.
    Approve,
    /// Change sessions: end, order, title, share, hand over; tend others' messages.
    Manage,
    /// Change the org, its people and their credentials.
    Admin,
}

impl Right {
    /// Every right.
    pub const ALL: [Self; 5] = [Self::Read, Self::Prompt, Self::Approve, Self::Manage, Self::Admin];

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The rights of a credential: never more than the person behind it may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rights(u8);

impl Rights {
    /// Good for nothing.
    pub const NONE: Self = Self(0);
    /// Good for all that the person may do.
    pub const ALL: Self = Self(0b1_1111);

    /// With this one, too.
    #[must_use]
    pub const fn with(self, right: Right) -> Self {
        Self(self.0 | right.bit())
    }

    /// True if this one is among them.
    pub const fn has(self, right: Right) -> bool {
        self.0 & right.bit() != 0
    }

    /// Each of them, the weakest first.
    pub fn iter(self) -> impl Iterator<Item = Right> {
        Right::ALL.into_iter().filter(move |right| self.has(*right))
    }

    /// As a small number, for stores.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// From a small number; none if it has bits that mean nothing.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        if bits & !Self::ALL.0 == 0 { Some(Self(bits)) } else { None }
    }
}

impl FromIterator<Right> for Rights {
    fn from_iter<I: IntoIterator<Item = Right>>(rights: I) -> Self {
        rights.into_iter().fold(Self::NONE, Self::with)
    }
}

/// To whom something is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grantee {
    /// One person.
    Person(PersonId),
    /// Everybody who is in the group.
    Group(GroupId),
    /// Everybody in the org.
    Org,
}

/// The principal who asks. Made from a credential by a door, never from a request's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The org the credential belongs to.
    pub org: OrgId,
    /// The person, or the part of Homing, that it stands for.
    pub person: PersonId,
    /// The name that addresses use for this person (`web:USER/…`).
    pub handle: String,
    /// The only client name the credential may use in addresses; `None` lets it choose.
    pub client: Option<String>,
    /// The person's role in the org.
    pub role: Role,
    /// True if this is the person whose machine it is: they may make orgs.
    pub is_host: bool,
    /// The rights of the credential.
    pub rights: Rights,
    /// The one session and turn that the credential is for, if it is for one only.
    pub bound: Option<(SessionId, Turn)>,
    /// The groups that the person is in.
    pub groups: Vec<GroupId>,
    /// The agents that are not open to everybody, each with what this person may do with it, if anything.
    pub agents: Vec<(String, Option<Grant>)>,
    /// The directories under which the person may let a session work, canonical.
    pub roots: Vec<String>,
    /// The credential; none for a part of Homing.
    pub credential: Option<TokenId>,
    /// Grows with each change of anything above: role, groups, agents, roots, credentials, being disabled.
    pub standing: u64,
}

impl Principal {
    /// A member of an org with a credential that is good for everything, who was given nothing by anybody.
    pub fn member(org: OrgId, person: PersonId, handle: impl Into<String>) -> Self {
        Self {
            org,
            person,
            handle: handle.into(),
            client: None,
            role: Role::Member,
            is_host: false,
            rights: Rights::ALL,
            bound: None,
            groups: Vec::new(),
            agents: Vec::new(),
            roots: Vec::new(),
            credential: None,
            standing: 0,
        }
    }

    /// Homing itself, as somebody who looks after an org: its people, its owners too, and what its sessions have left. The
    /// audit says so.
    pub fn house(org: OrgId) -> Self {
        Self { role: Role::Owner, ..Self::member(org, PersonId::ENGINE, "homing") }
    }

    /// True if this is Homing itself. Nobody comes in so: it has no credential.
    pub fn is_house(&self) -> bool {
        self.person == PersonId::ENGINE && self.credential.is_none()
    }

    pub(crate) fn is(&self, grantee: Grantee) -> bool {
        match grantee {
            Grantee::Person(person) => person == self.person,
            Grantee::Group(group) => self.groups.contains(&group),
            Grantee::Org => true,
        }
    }
}

/// The record of a session, by which it is judged who may touch it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The session.
    pub session: SessionId,
    /// The org it belongs to.
    pub org: OrgId,
    /// The person who made it, or was handed it.
    pub owner: PersonId,
    /// The agent it talks to.
    pub agent: String,
    /// The grants of others.
    pub grants: Vec<(Grantee, Grant)>,
    /// Grows with each change of the above.
    pub revision: u64,
}

/// An act on a session, as far as rights are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Read anything of the session.
    Read,
    /// Say something to it, stop a turn.
    Say,
    /// Answer a question of the agent.
    Answer,
    /// Change the words of a waiting message: only its sender may.
    Reword { sender: PersonId },
    /// Withdraw, hold or release a waiting message: its sender, or whoever manages the session.
    Tend { sender: PersonId },
    /// Change the session itself: order, title, end, who else may touch it.
    Manage,
}

/// An act on the org, as far as rights are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrgAct {
    /// See who is in the org, and which groups there are.
    SeePeople,
    /// Change their own name, password or credentials, or see these credentials.
    Myself,
    /// Make one of their own credentials good for nothing. Whoever holds it may, whatever else it is good for.
    GiveUp { credential: TokenId },
    /// Change somebody's name, role, groups, credentials or password, or whether they may come in. `role` is what they
    /// are, `becomes` what they are to be.
    Person { role: Role, becomes: Option<Role> },
    /// Change groups, directory roots, who may use which agent, and the org's settings.
    Rules,
    /// Give a credential these rights.
    Mint { rights: Rights },
    /// Read the audit.
    Audit,
    /// Make another org on this machine.
    MakeOrg,
}

/// Why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// For this principal it does not exist; answer as if it did not.
    Unseen,
    /// It may be seen, but not this.
    Needs(Grant),
    /// The credential is not good for this. Asked before anything is looked up, so it tells nothing of what there is.
    NeedsRight(Right),
    /// Only somebody who is at least this in the org may.
    NeedsRole(Role),
    /// Only whoever said it may change its words.
    NotYourWords,
    /// The address names another person or client, or its scheme is another door's.
    AddressNotYours,
    /// The directory is under none that the person may choose.
    DirectoryNotYours,
    /// The session's agent is not one that the person may use.
    AgentNotYours,
    /// The credential is for one turn only, and this is something else.
    BoundElsewhere,
}

impl Denied {
    /// The stable code of this refusal, for audit entries and the wire.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Unseen => "not_found",
            Self::Needs(_) => "not_allowed",
            Self::NeedsRight(_) => "right_missing",
            Self::NeedsRole(_) => "role_too_low",
            Self::NotYourWords => "not_your_words",
            Self::AddressNotYours => "address_not_yours",
            Self::DirectoryNotYours => "directory_not_yours",
            Self::AgentNotYours => "agent_not_yours",
            Self::BoundElsewhere => "bound_elsewhere",
        }
    }
}

/// A wish that was found to be allowed. Only this module can make one:
///
/// ```compile_fail,E0451
/// use homing_kernel::{Authorized, Principal};
///
/// fn forge(by: Principal) -> Authorized<&'static str> {
///     Authorized { wish: "end it", by }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorized<T> {
    wish: T,
    by: Principal,
}

impl<T> Authorized<T> {
    /// The wish.
    pub fn wish(&self) -> &T {
        &self.wish
    }
    /// The principal who wishes.
    pub fn by(&self) -> &Principal {
        &self.by
    }
}

/// May `by` do `act` with the session of `record`?
pub fn authorize<T>(by: &Principal, act: Act, record: &Record, wish: T) -> Result<Authorized<T>, Denied> {
    authorize_right(by, act)?;
    let grant = grant_of(by, record).ok_or(Denied::Unseen)?;
    match act {
        Act::Read => {}
        Act::Say => {
            needs(grant, Grant::Prompt)?;
            uses_agent(by, &record.agent)?;
        }
        Act::Answer => needs(grant, Grant::Prompt)?,
        Act::Reword { sender } => {
            needs(grant, Grant::Prompt)?;
            if sender != by.person {
                return Err(Denied::NotYourWords);
            }
        }
        Act::Tend { sender } if sender == by.person => needs(grant, Grant::Prompt)?,
        Act::Tend { .. } | Act::Manage => needs(grant, Grant::Manage)?,
    }
    Ok(allowed(by, wish))
}

/// Is the credential good for this at all? Asked before a record is looked up.
pub fn authorize_right(by: &Principal, act: Act) -> Result<(), Denied> {
    needs_right(
        by,
        match act {
            Act::Read => Right::Read,
            Act::Say | Act::Reword { .. } => Right::Prompt,
            Act::Answer => Right::Approve,
            Act::Tend { sender } if sender == by.person => Right::Prompt,
            Act::Tend { .. } | Act::Manage => Right::Manage,
        },
    )
}

/// An address, with the schemes of the door that it came through.
#[derive(Debug, Clone, Copy)]
pub struct DoorAddress<'a> {
    /// The address.
    pub address: &'a Address,
    /// The schemes that this door owns. It says so itself; a request never does.
    pub schemes: &'a [Scheme],
}

/// A session that is to be made, as far as rights are concerned.
#[derive(Debug, Clone, Copy)]
pub struct Fresh<'a> {
    /// The conversation it is to be bound to.
    pub address: Option<DoorAddress<'a>>,
    /// The agent it is to talk to.
    pub agent: &'a str,
    /// The directory that was chosen for it, canonical; none if it gets one of its own.
    pub directory: Option<&'a GroundPath>,
}

/// May `by` make this session?
pub fn authorize_new<T>(by: &Principal, fresh: Fresh<'_>, wish: T) -> Result<Authorized<T>, Denied> {
    needs_right(by, Right::Prompt)?;
    needs_role(by, Role::Member)?;
    if by.bound.is_some() {
        return Err(Denied::BoundElsewhere);
    }
    if let Some(address) = fresh.address {
        authorize_address(by, address)?;
    }
    uses_agent(by, fresh.agent)?;
    if fresh.directory.is_some_and(|directory| !by.roots.iter().any(|root| directory.is_under(root))) {
        return Err(Denied::DirectoryNotYours);
    }
    Ok(allowed(by, wish))
}

/// Is this address theirs to use, bound or not? Its scheme has to be one of the door's that they came through.
pub fn authorize_address(by: &Principal, brought: DoorAddress<'_>) -> Result<(), Denied> {
    let DoorAddress { address, schemes } = brought;
    let scheme = schemes.iter().find(|scheme| scheme.owns(address)).ok_or(Denied::AddressNotYours)?;
    let person_fits = scheme.person_of(address).is_none_or(|person| person == by.handle);
    let client_fits = match (scheme.client_of(address), &by.client) {
        (Some(named), Some(client)) => named == client,
        _ => true,
    };
    if person_fits && client_fits { Ok(()) } else { Err(Denied::AddressNotYours) }
}

/// The person whose own address this is when `by` uses it; none if it is one conversation for everybody in the org. It is looked
/// up and bound among theirs only, so that nobody meets what is somebody else's.
pub fn address_space(by: &Principal, brought: DoorAddress<'_>) -> Option<PersonId> {
    let DoorAddress { address, schemes } = brought;
    let scheme = schemes.iter().find(|scheme| scheme.owns(address));
    scheme.filter(|scheme| scheme.is_personal()).map(|_| by.person)
}

/// May `by` do this with their org?
pub fn authorize_org<T>(by: &Principal, act: OrgAct, wish: T) -> Result<Authorized<T>, Denied> {
    if matches!(act, OrgAct::GiveUp { credential } if by.credential == Some(credential)) {
        return Ok(allowed(by, wish));
    }
    if by.bound.is_some() {
        return Err(Denied::BoundElsewhere);
    }
    match act {
        OrgAct::SeePeople => needs_right(by, Right::Read)?,
        OrgAct::Myself | OrgAct::GiveUp { .. } => needs_right(by, Right::Admin)?,
        OrgAct::Person { role, becomes } => {
            needs_right(by, Right::Admin)?;
            needs_role(by, Role::Admin)?;
            // Nobody touches somebody above them, and nobody makes anybody more than they are.
            needs_role(by, role.max(becomes.unwrap_or(role)))?;
        }
        OrgAct::Rules | OrgAct::Audit => {
            needs_right(by, Right::Admin)?;
            needs_role(by, Role::Admin)?;
        }
        OrgAct::Mint { rights } => {
            needs_right(by, Right::Admin)?;
            if let Some(more) = rights.iter().find(|right| !by.rights.has(*right)) {
                return Err(Denied::NeedsRight(more));
            }
        }
        OrgAct::MakeOrg => {
            needs_right(by, Right::Admin)?;
            if !by.is_host {
                return Err(Denied::NeedsRole(Role::Owner));
            }
        }
    }
    Ok(allowed(by, wish))
}

/// The strongest thing `by` may do with the session; none means that it does not exist for them. Homing itself manages every
/// session of the org that it acts for.
pub fn grant_of(by: &Principal, record: &Record) -> Option<Grant> {
    if by.org != record.org || by.bound.is_some_and(|(session, _)| session != record.session) {
        return None;
    }
    let given = if by.person == record.owner || by.is_house() {
        Some(Grant::Manage)
    } else {
        record.grants.iter().filter(|(grantee, _)| by.is(*grantee)).map(|(_, grant)| *grant).max()
    };
    given.map(|grant| grant_as(by.role, grant))
}

/// The part of a grant that counts for somebody of this role: whoever is a viewer only looks, whatever they were given.
pub fn grant_as(role: Role, given: Grant) -> Grant {
    if role == Role::Viewer { Grant::View } else { given }
}

/// The strongest thing `by` may do with an agent; none means that it does not exist for them. An agent of which nothing
/// was ever given to anybody is open to everybody who may make sessions.
pub fn agent_grant_of(by: &Principal, agent: &str) -> Option<Grant> {
    let restricted = by.agents.iter().find(|(name, _)| name == agent);
    let given = match (by.role, restricted) {
        (Role::Admin | Role::Owner, _) => Some(Grant::Manage),
        (_, Some((_, given))) => *given,
        (_, None) => Some(Grant::Prompt),
    };
    given.map(|grant| grant_as(by.role, grant))
}

/// True if a directory is this root, or lies under it. Both are canonical; what is not is under nothing.
pub fn is_under(directory: &str, root: &str) -> bool {
    let canonical = |path: &str| path.starts_with('/') && !path.split('/').any(|part| part == "..");
    let trunk = root.strip_suffix('/').unwrap_or(root);
    let rest = directory.strip_prefix(trunk);
    canonical(directory)
        && canonical(root)
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The one constructor.
fn allowed<T>(by: &Principal, wish: T) -> Authorized<T> {
    Authorized { wish, by: by.clone() }
}

fn uses_agent(by: &Principal, agent: &str) -> Result<(), Denied> {
    match agent_grant_of(by, agent) {
        Some(Grant::Prompt | Grant::Manage) => Ok(()),
        Some(Grant::View) | None => Err(Denied::AgentNotYours),
    }
}

fn needs(has: Grant, needed: Grant) -> Result<(), Denied> {
    if has >= needed { Ok(()) } else { Err(Denied::Needs(needed)) }
}

fn needs_right(by: &Principal, right: Right) -> Result<(), Denied> {
    if by.rights.has(right) { Ok(()) } else { Err(Denied::NeedsRight(right)) }
}

fn needs_role(by: &Principal, role: Role) -> Result<(), Denied> {
    if by.role >= role { Ok(()) } else { Err(Denied::NeedsRole(role)) }
}

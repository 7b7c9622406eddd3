//! The two sides of a plan: the rows that a change is judged by, and what is written if it may be.

use super::{
    NewLink, NewPerson, OfferRow, OrgSettings, PeopleChange, Purpose, Resource, RootRow, RuleEffect, RuleRow,
    TokenRow, name_key,
};
use crate::{
    EndWhy, Grant, Grantee, GroundPath, GroupId, Moment, OrgId, PersonId, Record, Role, RuleId, SessionId,
    TokenId,
};
use alloc::string::String;
use alloc::vec::Vec;

/// The rows that a change is judged by, by name. All of them are of the caller's org, or they are not there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeReads<'a> {
    /// Whom it is about.
    pub person: Option<PersonId>,
    /// The person who is to own sessions.
    pub heir: Option<PersonId>,
    /// To whom something is given, or who is asked.
    pub grantee: Option<Grantee>,
    pub group: Option<GroupId>,
    pub session: Option<SessionId>,
    /// The session whose offer is needed.
    pub offer: Option<SessionId>,
    /// The person whose sessions are needed, with what is offered of them.
    pub owner: Option<PersonId>,
    /// True if it is needed how much the caller has already.
    pub heir_room: bool,
    /// With the session that it is for.
    pub rule: Option<RuleId>,
    /// True if the number of the org's rules whose time is not over is needed.
    pub rules: bool,
    /// With whoever holds it, and every token that was made with it.
    pub token: Option<TokenId>,
    /// The person whose every credential is needed, and every one that was made with those.
    pub tokens_of: Option<PersonId>,
    /// True if the credential that the caller came with is needed.
    pub own_credential: bool,
    /// True if the number of owners who can come in is needed.
    pub owners: bool,
    /// An org of this name, on the whole machine; as `name_key` makes it.
    pub org_name: Option<String>,
    pub group_name: Option<&'a str>,
    /// People of these handles; as `name_key` makes them.
    pub handles: Vec<String>,
    /// The holder of this e-mail address; as `name_key` makes it.
    pub email: Option<String>,
    /// The holder of this name at this identity provider (of any org), and the name that `person` has there.
    pub identity: Option<(&'a str, &'a str)>,
}

/// The rows that were read, as far as the rules look at them. What was not asked for is left as it is by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeRows {
    pub person: Option<PersonState>,
    pub heir: Option<PersonState>,
    /// True if the grantee is there. The org always is.
    pub grantee: bool,
    pub group: bool,
    /// The one that was asked for, or the one that the rule is for.
    pub session: Option<SessionState>,
    /// The last one that was made and is not gone; it may stand no more.
    pub offer: Option<OfferRow>,
    /// The sessions and words that the caller has already.
    pub heir_room: HeirRoom,
    /// Every session of `owner`, open or ended, with its offer.
    pub owned: Vec<(SessionState, Option<OfferRow>)>,
    pub rule: Option<RuleState>,
    pub rules: u32,
    pub token: Option<TokenHolder>,
    /// Every credential of `tokens_of`.
    pub tokens: Vec<TokenId>,
    /// The credentials that were made with `token` or `tokens`, and with those, and so on.
    pub made_with: Vec<TokenId>,
    /// The caller's own; none if they are a part of Homing.
    pub own_credential: Option<OwnCredential>,
    pub owners: u32,
    pub org_name: bool,
    pub group_name: bool,
    /// For each handle whether somebody has it.
    pub handles: Vec<bool>,
    pub email: Option<PersonId>,
    pub identity: Option<PersonId>,
    /// The name that `person` has at the identity provider.
    pub subject: Option<String>,
}

/// Somebody, as far as the rules look at them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PersonState {
    pub person: PersonId,
    pub role: Role,
    pub disabled_at: Option<Moment>,
    pub standing: u64,
}

impl PersonState {
    /// True if they may come in at all.
    pub const fn is_disabled(&self) -> bool {
        self.disabled_at.is_some()
    }
}

/// A session, as far as the rules look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionState {
    pub record: Record,
    pub ended: Option<EndWhy>,
    /// Where it acts, outside of any worktree that it is in.
    pub directory: GroundPath,
    /// The room that its words take.
    pub words_bytes: u64,
}

/// The sessions and words that somebody has, of which there are bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeirRoom {
    /// Open sessions.
    pub open: u32,
    /// The room that the words in their sessions take.
    pub words_bytes: u64,
}

/// A rule for what agents ask, as far as it matters who may remove it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleState {
    pub session: Option<SessionId>,
}

/// Whoever holds a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenHolder {
    pub person: PersonState,
    pub purpose: Purpose,
}

/// The credential that a caller came with, as far as it matters to what they make with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnCredential {
    pub token: TokenId,
    pub purpose: Purpose,
    pub expires: Option<Moment>,
    /// The token that it goes with.
    pub parent: Option<TokenId>,
}

/// The rows that a change is judged by.
pub fn reads_of(change: &PeopleChange) -> ChangeReads<'_> {
    let none = ChangeReads::default();
    let person = |person: &PersonId| ChangeReads { person: Some(*person), ..ChangeReads::default() };
    match change {
        PeopleChange::MakeOrg { org, .. } => {
            ChangeReads { org_name: Some(name_key(&org.name)), own_credential: true, ..none }
        }
        PeopleChange::Settings(_) => none,
        PeopleChange::MakeToken(_) => ChangeReads { own_credential: true, ..none },
        PeopleChange::AddPerson { person, or_handles, .. } => ChangeReads {
            handles: [&person.handle].into_iter().chain(or_handles).map(|handle| name_key(handle)).collect(),
            email: person.email.as_deref().map(name_key),
            own_credential: true,
            ..none
        },
        PeopleChange::ChangePerson { person: whose, email, .. } => {
            let own_credential = email.is_some();
            ChangeReads {
                owners: true,
                email: email.as_deref().map(name_key),
                own_credential,
                ..person(whose)
            }
        }
        PeopleChange::Disable { person: whose } => {
            ChangeReads { owners: true, tokens_of: Some(*whose), ..person(whose) }
        }
        PeopleChange::MakeLink { person: whose, .. } | PeopleChange::SetPassword { person: whose, .. } => {
            ChangeReads { own_credential: true, ..person(whose) }
        }
        PeopleChange::Enable { person: whose, .. } => person(whose),
        PeopleChange::SetIdentity { person: whose, issuer, subject } => {
            ChangeReads { identity: Some((issuer, subject)), own_credential: true, ..person(whose) }
        }
        PeopleChange::MakeGroup { name, .. } => ChangeReads { group_name: Some(name), ..none },
        PeopleChange::RemoveGroup { group } => ChangeReads { group: Some(*group), ..none },
        PeopleChange::Join { group, person: whose } | PeopleChange::Leave { group, person: whose } => {
            ChangeReads { group: Some(*group), ..person(whose) }
        }
        PeopleChange::Give { on, to, .. } | PeopleChange::TakeBack { on, to } => {
            let session = match on {
                Resource::Session(session) => Some(*session),
                Resource::Agent(_) => None,
            };
            ChangeReads { session, grantee: Some(*to), ..none }
        }
        PeopleChange::HandOver { session, to } => {
            ChangeReads { session: Some(*session), offer: Some(*session), heir: Some(*to), ..none }
        }
        PeopleChange::HandOverAll { from, to } => {
            ChangeReads { heir: Some(*to), owner: Some(*from), ..person(from) }
        }
        PeopleChange::AcceptOffer { session, .. } => {
            ChangeReads { session: Some(*session), offer: Some(*session), heir_room: true, ..none }
        }
        PeopleChange::DeclineOffer { session } | PeopleChange::TakeOfferBack { session } => {
            ChangeReads { session: Some(*session), offer: Some(*session), ..none }
        }
        PeopleChange::AddRoot(root) | PeopleChange::RemoveRoot(root) => {
            ChangeReads { grantee: Some(root.to), ..none }
        }
        PeopleChange::RevokeToken { token } => ChangeReads { token: Some(*token), ..none },
        PeopleChange::AddRule(rule) => {
            let grantee = match rule.effect {
                RuleEffect::Ask(whom) => Some(whom),
                RuleEffect::Allow | RuleEffect::Deny => None,
            };
            ChangeReads { session: rule.session, grantee, rules: true, ..none }
        }
        PeopleChange::RemoveRule(rule) => ChangeReads { rule: Some(*rule), ..none },
    }
}

/// A change that may be made, as what is to be done: first those whom it touches, then the writes in their order. Only this
/// room can make one:
///
/// ```compile_fail,E0451
/// use homing_kernel::people::PeoplePlan;
///
/// fn forge() -> PeoplePlan {
///     PeoplePlan { touched: None, writes: vec![], taken_along: vec![] }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeoplePlan {
    touched: Option<Touched>,
    writes: Vec<PeopleWrite>,
    taken_along: Vec<TokenId>,
}

impl PeoplePlan {
    pub(super) fn new(touched: Option<Touched>, writes: Vec<PeopleWrite>) -> Self {
        Self { touched, writes, taken_along: Vec::new() }
    }

    pub(super) fn taking_along(self, taken_along: Vec<TokenId>) -> Self {
        Self { taken_along, ..self }
    }

    /// Whom it touches: looked up before anything is written, for it may be that they are removed from what names them.
    pub fn touched(&self) -> Option<&Touched> {
        self.touched.as_ref()
    }

    /// The writes, in this order.
    pub fn writes(&self) -> &[PeopleWrite] {
        &self.writes
    }

    /// The credentials that go with the one that is revoked: each has an audit entry of its own.
    pub fn taken_along(&self) -> &[TokenId] {
        &self.taken_along
    }

    /// The same, to be applied.
    pub fn into_writes(self) -> Vec<PeopleWrite> {
        self.writes
    }
}

/// People whose unfinished messages are looked at again: each of them gets a recheck in the inbox of each session where they
/// have one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// Whoever is meant, each of them once.
    pub people: Vec<Grantee>,
    /// Only in this session. None is everywhere, and then their standings grow: what they may do was changed, and not what
    /// may be done with a session, which its revision says.
    pub within: Option<SessionId>,
}

/// Credentials that a plan removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokensToDrop {
    One(TokenId),
    /// Every one of a person.
    Of(PersonId),
    /// Those with which somebody has signed in (`Purpose::is_sign_in`), but for one.
    SignInsOf {
        person: PersonId,
        keep: Option<TokenId>,
    },
    /// Those of this purpose of a person.
    Purpose {
        person: PersonId,
        purpose: Purpose,
    },
    /// Those of turns of this session.
    TurnsOf(SessionId),
    /// Those that have expired at this moment.
    Expired(Moment),
}

/// Links that a plan removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinksToDrop {
    One([u8; 32]),
    Of(PersonId),
    /// Those that were made with this token.
    MadeWith(TokenId),
    /// Those that have expired at this moment.
    Expired(Moment),
}

/// Offers that a plan removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffersToDrop {
    /// That of a session.
    One(SessionId),
    /// Every one that is to or from this person.
    Of(PersonId),
    /// Those that have lapsed at this moment.
    Lapsed(Moment),
}

/// One thing that is written. What is there already is fine, and what is not there need not be removed.
#[derive(Clone, PartialEq, Eq)]
pub enum PeopleWrite {
    Org {
        org: OrgId,
        name: String,
        at: Moment,
    },
    /// Of an org that has none.
    OrgName {
        org: OrgId,
        name: String,
    },
    Settings {
        org: OrgId,
        settings: OrgSettings,
    },
    /// With the standing of somebody new.
    Person {
        org: OrgId,
        person: NewPerson,
        is_host: bool,
        at: Moment,
    },
    /// A field that is none stays as it is.
    PersonFields {
        person: PersonId,
        name: Option<String>,
        email: Option<String>,
        role: Option<Role>,
    },
    Password {
        person: PersonId,
        password: Option<String>,
    },
    DisabledAt {
        person: PersonId,
        at: Option<Moment>,
    },
    Identity {
        person: PersonId,
        issuer: String,
        subject: String,
    },
    /// Whatever they are called at this identity provider.
    DropIdentity {
        person: PersonId,
        issuer: String,
    },
    Link {
        person: PersonId,
        link: NewLink,
        /// The token that it was made with, and goes with.
        parent: Option<TokenId>,
    },
    DropLinks(LinksToDrop),
    Token(TokenRow),
    /// Another secret for a credential; the one that it has counts for a while.
    Secret {
        token: TokenId,
        hash: [u8; 32],
        old_until: Moment,
        used: Moment,
    },
    DropTokens(TokensToDrop),
    Group {
        org: OrgId,
        group: GroupId,
        name: String,
    },
    /// With who is in it.
    DropGroup {
        org: OrgId,
        group: GroupId,
    },
    Member {
        group: GroupId,
        person: PersonId,
    },
    DropMember {
        group: GroupId,
        person: PersonId,
    },
    /// In place of what they were given. The session's revision grows, as with all that follows of grants and owners.
    SessionGrant {
        session: SessionId,
        to: Grantee,
        grant: Grant,
        by: PersonId,
        at: Moment,
    },
    DropSessionGrant {
        session: SessionId,
        to: Grantee,
    },
    /// From now on only whoever was given something on it may use it.
    CloseAgent {
        org: OrgId,
        agent: String,
    },
    /// In place of what they were given.
    AgentGrant {
        org: OrgId,
        agent: String,
        to: Grantee,
        grant: Grant,
        by: PersonId,
        at: Moment,
    },
    DropAgentGrant {
        org: OrgId,
        agent: String,
        to: Grantee,
    },
    /// On every session and agent.
    DropGrantsTo {
        org: OrgId,
        to: Grantee,
    },
    /// Everything that was given on it.
    DropGrantsOn(SessionId),
    /// With its bindings that are everybody's, its open questions, and the place that an open one takes. Bindings of addresses
    /// that are somebody's own go: it is no past of theirs.
    Owner {
        session: SessionId,
        to: PersonId,
    },
    /// Tells the keeper of an open session that it is this person's from here on.
    TellOwner {
        session: SessionId,
        to: PersonId,
        at: Moment,
    },
    /// In place of the one before.
    Offer(OfferRow),
    DropOffers(OffersToDrop),
    Root {
        org: OrgId,
        root: RootRow,
    },
    DropRoot {
        org: OrgId,
        root: RootRow,
    },
    DropRootsOf {
        org: OrgId,
        to: Grantee,
    },
    Rule {
        org: OrgId,
        rule: RuleRow,
    },
    DropRule(RuleId),
    /// Those of an org whose time is over at this moment.
    DropRulesOver {
        org: OrgId,
        at: Moment,
    },
}

/// Its kind only: passwords and hashes may be in it.
impl core::fmt::Debug for PeopleWrite {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let kind = match self {
            Self::Org { .. } => "Org",
            Self::OrgName { .. } => "OrgName",
            Self::Settings { .. } => "Settings",
            Self::Person { .. } => "Person",
            Self::PersonFields { .. } => "PersonFields",
            Self::Password { .. } => "Password",
            Self::DisabledAt { .. } => "DisabledAt",
            Self::Identity { .. } => "Identity",
            Self::DropIdentity { .. } => "DropIdentity",
            Self::Link { .. } => "Link",
            Self::DropLinks(_) => "DropLinks",
            Self::Token(_) => "Token",
            Self::Secret { .. } => "Secret",
            Self::DropTokens(_) => "DropTokens",
            Self::Group { .. } => "Group",
            Self::DropGroup { .. } => "DropGroup",
            Self::Member { .. } => "Member",
            Self::DropMember { .. } => "DropMember",
            Self::SessionGrant { .. } => "SessionGrant",
            Self::DropSessionGrant { .. } => "DropSessionGrant",
            Self::CloseAgent { .. } => "CloseAgent",
            Self::AgentGrant { .. } => "AgentGrant",
            Self::DropAgentGrant { .. } => "DropAgentGrant",
            Self::DropGrantsTo { .. } => "DropGrantsTo",
            Self::DropGrantsOn(_) => "DropGrantsOn",
            Self::Owner { .. } => "Owner",
            Self::TellOwner { .. } => "TellOwner",
            Self::Offer(_) => "Offer",
            Self::DropOffers(_) => "DropOffers",
            Self::Root { .. } => "Root",
            Self::DropRoot { .. } => "DropRoot",
            Self::DropRootsOf { .. } => "DropRootsOf",
            Self::Rule { .. } => "Rule",
            Self::DropRule(_) => "DropRule",
            Self::DropRulesOver { .. } => "DropRulesOver",
        };
        f.write_str(kind)
    }
}

//! The changes that can be asked for: every change of who may do what, as plain data.

use crate::{
    EndWhy, Grant, Grantee, GroundPath, GroupId, Moment, OrgId, PersonId, Principal, Rights, Role, RuleId,
    SessionId, TokenId, Turn,
};
use alloc::string::String;
use alloc::vec::Vec;

/// The form by which names of people and orgs are compared: capital letters make no other name.
pub fn name_key(name: &str) -> String {
    name.to_lowercase()
}

/// An org to be made, and the person who owns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOrg {
    pub org: OrgId,
    /// Its name in `ORG/NAME`. One of its kind on a machine.
    pub name: String,
    pub owner: NewPerson,
    /// The directories that the owner may choose from the beginning.
    pub roots: Vec<String>,
}

/// The settings of an org.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OrgSettings {
    /// The grant of everybody in the org on a session that is made from now on; none keeps it to its maker.
    pub share_new: Option<Grant>,
    /// The most sessions the org may have open, if less than the machine allows.
    pub open_max: Option<u32>,
    /// In how many of them a turn may be under way, if less than the machine allows.
    pub awake_max: Option<u32>,
}

/// Somebody to be let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPerson {
    pub person: PersonId,
    /// Their name in addresses. One of its kind in an org.
    pub handle: String,
    pub name: Option<String>,
    /// One of its kind in an org.
    pub email: Option<String>,
    pub role: Role,
}

/// A link that lets somebody in, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLink {
    /// Of what stands in it, which nobody keeps.
    pub hash: [u8; 32],
    pub expires: Moment,
}

/// A credential to be made for whoever asks for it, or for whoever comes in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    pub token: TokenId,
    /// Of the secret, which nobody keeps.
    pub hash: [u8; 32],
    pub purpose: Purpose,
    pub name: Option<String>,
    pub rights: Rights,
    pub client: Option<String>,
    pub expires: Option<Moment>,
    pub idle_ms_max: Option<u64>,
}

impl NewToken {
    /// The credential, once it is known whose it is.
    pub fn row(self, person: PersonId, made_at: Moment) -> TokenRow {
        let Self { token, hash, purpose, name, rights, client, expires, idle_ms_max } = self;
        TokenRow {
            name,
            rights,
            client,
            expires,
            idle_ms_max,
            ..TokenRow::full(token, hash, person, purpose, made_at)
        }
    }
}

/// The purpose of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// The file in the data directory. A person has one of these at a time.
    Machine,
    /// A browser's cookie.
    Browser,
    /// The one that `homing login` keeps.
    Cli,
    /// A token that somebody made for a program of theirs.
    Api,
    /// The one an agent may use to call back, while its turn lasts.
    Turn,
}

impl Purpose {
    /// True if people see such credentials, and may revoke them. The machine's goes with its file, a turn's with its
    /// turn.
    pub const fn is_listed(self) -> bool {
        matches!(self, Self::Browser | Self::Cli | Self::Api)
    }

    /// True if somebody has signed in with it: those are signed out by another password.
    pub const fn is_sign_in(self) -> bool {
        matches!(self, Self::Browser | Self::Cli)
    }
}

/// A credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRow {
    pub token: TokenId,
    /// Of the secret, which nobody keeps.
    pub hash: [u8; 32],
    pub person: PersonId,
    pub purpose: Purpose,
    /// Its title, for people.
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
    /// The token that it was made with, if a program made it: it goes with that one.
    pub parent: Option<TokenId>,
}

impl TokenRow {
    /// A credential that is good for everything its person may do, for ever.
    pub fn full(token: TokenId, hash: [u8; 32], person: PersonId, purpose: Purpose, made_at: Moment) -> Self {
        Self {
            token,
            hash,
            person,
            purpose,
            name: None,
            rights: Rights::ALL,
            client: None,
            bound: None,
            made_at,
            expires: None,
            idle_ms_max: None,
            parent: None,
        }
    }

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

    /// True if it is good at this moment, as far as the clock is concerned.
    pub fn is_fresh(&self, last_used: Option<Moment>, now: Moment) -> bool {
        is_fresh(self.made_at, self.expires, self.idle_ms_max, last_used, now)
    }
}

/// True if a credential with these dates is good at this moment. It counts as used when it was made.
pub fn is_fresh(
    made_at: Moment,
    expires: Option<Moment>,
    idle_ms_max: Option<u64>,
    last_used: Option<Moment>,
    now: Moment,
) -> bool {
    let used = last_used.map_or(made_at, |used| used.max(made_at));
    let idle = idle_ms_max.is_some_and(|most| now.0 >= used.0.saturating_add(most));
    !idle && expires.is_none_or(|until| now < until)
}

/// Something on which grants can be given.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    Session(SessionId),
    /// By its name in the configuration.
    Agent(String),
}

/// A directory that may be chosen, and everything under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootRow {
    /// Canonical.
    pub directory: String,
    pub to: Grantee,
}

/// A rule for what agents ask, with who made it and how long it counts. What is none holds for all; which of several that
/// fit counts is `judge`'s to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleRow {
    pub rule: RuleId,
    /// The person who made it.
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

/// The effect of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleEffect {
    Allow,
    Deny,
    /// Only these may answer.
    Ask(Grantee),
}

impl RuleRow {
    /// True if its time is over.
    pub fn is_over(&self, now: Moment) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    /// The rule as `judge` reads it; none once its time is over.
    pub fn in_force(&self, now: Moment) -> Option<crate::Rule> {
        let effect = match self.effect {
            RuleEffect::Allow => crate::Effect::Allow,
            RuleEffect::Deny => crate::Effect::Deny,
            RuleEffect::Ask(who) => crate::Effect::Ask { who },
        };
        let over = self.is_over(now);
        let Self { rule, agent, tool, directory, session, .. } = self.clone();
        (!over).then_some(crate::Rule { rule, agent, tool, directory, session, effect })
    }
}

/// An offer to be the next owner of a session. A session has one at most; until it is accepted nothing changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfferRow {
    pub session: SessionId,
    /// The owner. If the session gets another one, the offer goes.
    pub from: PersonId,
    pub to: PersonId,
    pub at: Moment,
    /// It has lapsed then.
    pub until: Moment,
}

impl OfferRow {
    /// True if it can be accepted at this moment. It is over with its session, too; who is disabled or hands over takes it
    /// along.
    pub fn stands(&self, ended: Option<EndWhy>, now: Moment) -> bool {
        now < self.until && ended.is_none()
    }
}

/// Every way in which it can change who may do what. All ids are minted by us; all people, groups and sessions must be of
/// the caller's org.
#[derive(Clone, PartialEq, Eq)]
pub enum PeopleChange {
    /// Another org, with its owner and the link by which they come in.
    MakeOrg {
        org: NewOrg,
        link: NewLink,
        /// It was proved that agents do not reach what is not theirs, or everybody is trusted.
        walled: bool,
    },
    Settings(OrgSettings),
    /// Somebody new, and the link by which they come in.
    AddPerson {
        person: NewPerson,
        /// Handles to take if theirs is taken, in this order.
        or_handles: Vec<String>,
        link: NewLink,
        /// As in `MakeOrg`.
        walled: bool,
    },
    /// A field that is none stays as it is.
    ChangePerson {
        person: PersonId,
        name: Option<String>,
        email: Option<String>,
        role: Option<Role>,
    },
    /// Another password, or none. Every other browser and CLI of theirs is signed out.
    SetPassword {
        person: PersonId,
        /// Hashed.
        password: Option<String>,
        keep: Option<TokenId>,
        /// Their standing when they proved that they know the old one.
        proved: Option<u64>,
    },
    /// They may do nothing from now on: their credentials and links are gone, what waits of them is refused, what runs is
    /// stopped.
    Disable {
        person: PersonId,
    },
    Enable {
        person: PersonId,
        /// As in `MakeOrg`.
        walled: bool,
    },
    /// Ties a name at an identity provider to them. If they have another one there it is *taken*, unless somebody else who
    /// looks after them puts this one in its place.
    SetIdentity {
        person: PersonId,
        issuer: String,
        subject: String,
    },
    /// A link by which they sign in, once.
    MakeLink {
        person: PersonId,
        link: NewLink,
    },
    MakeGroup {
        group: GroupId,
        name: String,
    },
    /// Its grants on sessions and agents go with it, and so do its directories.
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
    /// Offers a session to somebody, who can come in and is no viewer. It is theirs when they say yes.
    HandOver {
        session: SessionId,
        to: PersonId,
    },
    /// The same of every open session of somebody which is not offered yet. The sessions of somebody who is disabled, ended ones
    /// too, are the other's at once: nobody is left who could take an offer back.
    HandOverAll {
        from: PersonId,
        to: PersonId,
    },
    /// The caller's yes to an offer: the session is theirs and nobody else's, and what waits in it ends. It takes what it would
    /// take to make such a session: its agent, its directory, and room for one more.
    AcceptOffer {
        session: SessionId,
        within: HeirLimits,
    },
    /// The caller's no.
    DeclineOffer {
        session: SessionId,
    },
    /// By whoever manages the session.
    TakeOfferBack {
        session: SessionId,
    },
    AddRoot(RootRow),
    RemoveRoot(RootRow),
    /// A credential of the caller's own. Made with a token, it ends with that one at the latest.
    MakeToken(NewToken),
    /// Whose it is, the stored row says. What was made with it goes, too.
    RevokeToken {
        token: TokenId,
    },
    /// A rule for what agents ask. A session that it is for must be open. Those of the org whose time is over go with it.
    AddRule(RuleRow),
    /// A rule that asks a group stays when the group goes: until somebody removes it, nobody can say yes.
    RemoveRule(RuleId),
}

impl PeopleChange {
    /// The name of such a change, in the audit and for keys.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::MakeOrg { .. } => "make_org",
            Self::Settings(_) => "settings",
            Self::AddPerson { .. } => "add_person",
            Self::ChangePerson { .. } => "change_person",
            Self::SetPassword { .. } => "set_password",
            Self::Disable { .. } => "disable",
            Self::Enable { .. } => "enable",
            Self::SetIdentity { .. } => "set_identity",
            Self::MakeLink { .. } => "make_link",
            Self::MakeGroup { .. } => "make_group",
            Self::RemoveGroup { .. } => "remove_group",
            Self::Join { .. } => "join",
            Self::Leave { .. } => "leave",
            Self::Give { .. } => "give",
            Self::TakeBack { .. } => "take_back",
            Self::HandOver { .. } => "hand_over",
            Self::HandOverAll { .. } => "hand_over_all",
            Self::AcceptOffer { .. } => "accept_offer",
            Self::DeclineOffer { .. } => "decline_offer",
            Self::TakeOfferBack { .. } => "take_offer_back",
            Self::AddRoot(_) => "add_root",
            Self::RemoveRoot(_) => "remove_root",
            Self::MakeToken(_) => "make_token",
            Self::RevokeToken { .. } => "revoke_token",
            Self::AddRule(_) => "add_rule",
            Self::RemoveRule(_) => "remove_rule",
        }
    }
}

/// The bounds on what somebody may take over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeirLimits {
    /// The directory that the session has if nobody chose one for it. It goes along.
    pub own_directory: GroundPath,
    /// The most sessions that one person may have open.
    pub open_max: u32,
    /// The most room that the words in one person's sessions may take.
    pub words_bytes_max: u64,
}

/// Its name only: passwords, links and secrets may be in it.
impl core::fmt::Debug for PeopleChange {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "PeopleChange({})", self.verb())
    }
}

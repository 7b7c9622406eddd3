//! Who there is and what they may do, as a store keeps it: orgs, people, groups, grants, directories, credentials, links;
//! and every way in which that can change.

use crate::{Key, Trail};
use kernel::{
    Grant, Grantee, GroupId, Moment, OrgId, PersonId, Right, Rights, Role, SessionId, TokenId, Turn,
};

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
#[derive(Clone, PartialEq, Eq)]
pub enum Change {
    /// Another org, with its owner and the link by which they come in.
    MakeOrg { org: NewOrg, link: NewLink },
    Settings(OrgSettings),
    /// Somebody new, and the link by which they come in.
    AddPerson { person: NewPerson, link: NewLink },
    /// What is none stays as it is. `role` was judged by what they are; if they are no longer, look again.
    ChangePerson { person: PersonId, was: Role, name: Option<String>, email: Option<String>, role: Option<Role> },
    /// Another password, or none. Every other browser and CLI of theirs is signed out.
    SetPassword { person: PersonId, was: Role, password: Option<String>, keep: Option<TokenId> },
    /// They may do nothing from now on: their credentials and links are gone, what waits of them is refused, what runs is
    /// stopped.
    Disable { person: PersonId, was: Role },
    Enable { person: PersonId, was: Role },
    /// Ties a name at an identity provider to them.
    SetIdentity { person: PersonId, was: Role, issuer: String, subject: String },
    /// A link by which they sign in, once.
    MakeLink { person: PersonId, was: Role, link: NewLink },
    MakeGroup { group: GroupId, name: String },
    RemoveGroup { group: GroupId },
    Join { group: GroupId, person: PersonId },
    Leave { group: GroupId, person: PersonId },
    /// In place of whatever they were given on it before.
    Give { on: Resource, to: Grantee, grant: Grant },
    TakeBack { on: Resource, to: Grantee },
    /// Another owner; whoever had it keeps what they were given, which is nothing if nobody gave them anything.
    HandOver { session: SessionId, to: PersonId },
    /// Every session of somebody who is leaving. Their role as in `ChangePerson`.
    HandOverAll { from: PersonId, was: Role, to: PersonId },
    AddRoot(RootRow),
    RemoveRoot(RootRow),
    MakeToken(TokenRow),
    RevokeToken { person: PersonId, token: TokenId },
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
}

/// Which audit entries are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditQuery {
    pub org: OrgId,
    pub since: Option<Moment>,
    pub until: Option<Moment>,
    pub who: Option<PersonId>,
    /// A verb.
    pub what: Option<String>,
    /// Anything it may have been about: an id or a name.
    pub subject: Option<String>,
    /// Continue before this entry of the page before.
    pub before: Option<u64>,
    pub limit: usize,
}

/// Something that somebody did, or was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow {
    /// Grows with each entry of any org.
    pub entry: u64,
    /// Its number in the org's chain, and its seal; none until it is sealed.
    pub sealed: Option<(u64, [u8; 32])>,
    pub at: Moment,
    pub org: OrgId,
    pub by: Option<PersonId>,
    pub verb: String,
    pub door: String,
    pub address: Option<String>,
    pub correlation: String,
    pub session: Option<SessionId>,
    /// The id or name of what it was about, if that is not the session.
    pub subject: Option<String>,
    /// A stable code; none if it was done.
    pub refused: Option<String>,
}

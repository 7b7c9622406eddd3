//! What doors bring in and take back: `Inbound` on the way in (and the kernel's `Request`), `Receipt` and `Refused` on the way out.
//!
//! A door makes a `Principal` from a credential, never from a body, and everything else from what it heard. It learns
//! nothing here about stores, agents or other doors.

use crate::approvals::{Settled, takes_words};
use bytes::Bytes;
use kernel::{
    Address, ApprovalForm, Delivery, Denied, DoorAddress, EndWhy, Epoch, Grant, NewWorktree, Principal,
    Refusal, Right, Role, RuleId, Scheme, SessionId, To, Turn,
};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use std::net::IpAddr;
use store::{Accepted, Rejection, StoreError};

/// A part's text may be this long; longer words belong into a file.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// Parts in one message.
pub const PARTS_MAX: usize = 32;
/// A caller's key may be this long.
pub const KEY_BYTES_MAX: usize = 255;
/// A title may be this long: 200 characters, whatever they are.
pub const TITLE_BYTES_MAX: usize = 800;

/// The name of a model or a mode may be this long.
pub const MODEL_BYTES_MAX: usize = 256;

/// Files that are named in a sentence.
const TOUCHED_SHOWN: usize = 10;

/// A message on its way in.
#[derive(Debug, Clone)]
pub struct Inbound {
    /// Who says it.
    pub by: Principal,
    /// To which session. There is no default.
    pub to: To,
    /// How the session is made if one is made; ignored for an existing one, and the receipt says so.
    pub if_new: IfNew,
    /// What is said.
    pub parts: Vec<Part>,
    /// How it is to reach a session whose turn is under way.
    pub delivery: Delivery,
    /// The epoch of the scope that the sender saw, if they said so.
    pub under: Option<Epoch>,
    /// Nobody sits in front of it: what the agent asks is answered as the policy for that says.
    pub unattended: bool,
    /// Where replies go, if not by reading the log.
    pub reply: Option<Address>,
    /// How this came in.
    pub trace: Trace,
}

/// How a wish came in.
#[derive(Debug, Clone)]
pub struct Trace {
    /// The way in: `http`, `cli`, `slack` …
    pub door: &'static str,
    /// One id from request to fact to log line.
    pub correlation: String,
    /// Where the caller is, as far as the door knows.
    pub address: Option<IpAddr>,
    /// What makes a repeated wish the same wish.
    pub key: Option<CallerKey>,
    /// The address schemes of the door: no other address can be used or bound through it.
    pub schemes: &'static [Scheme],
}

impl Trace {
    /// An address that came in with this.
    pub(crate) fn address<'a>(&self, address: &'a Address) -> DoorAddress<'a> {
        DoorAddress { address, schemes: self.schemes }
    }
}

/// What makes a repeated wish the same wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallerKey {
    /// An `Idempotency-Key`; remembered for 30 days.
    Idempotency(String),
    /// A door's delivery id; remembered as long as the message.
    Delivery(String),
}

/// How a session is made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct IfNew {
    /// The agent's name; the default agent if none is named.
    pub agent: Option<String>,
    /// The directory it works in; one of its own if none is named.
    pub directory: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The agent's mode.
    pub mode: Option<String>,
    /// What people call it.
    pub title: Option<String>,
    /// The worktree that it goes into before anything else.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "worktree_fields")]
    pub worktree: Option<NewWorktree>,
}

impl IfNew {
    /// Whether anything was asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A worktree as idempotency keys know it: with no name if it was given none.
fn worktree_fields<S: Serializer>(worktree: &Option<NewWorktree>, to: S) -> Result<S::Ok, S::Error> {
    let Some(worktree) = worktree else { return to.serialize_none() };
    let mut fields = to.serialize_struct("worktree", 3)?;
    fields.serialize_field("name", &(!worktree.has_own_name()).then_some(&worktree.name))?;
    fields.serialize_field("base", &worktree.base)?;
    fields.serialize_field("branch", &worktree.branch)?;
    fields.end()
}

/// One part of a message. Stored as this JSON, so variants are only ever added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Words.
    Text { text: String },
}

/// The words of a message in their stored form.
pub(crate) fn encode_parts(parts: &[Part]) -> Bytes {
    Bytes::from(serde_json::to_vec(parts).expect("parts are plain data"))
}

/// The words of a message as the agent and people read them.
pub(crate) fn plain_text(stored: &[u8]) -> Option<String> {
    let parts: Vec<Part> = serde_json::from_slice(stored).ok()?;
    let texts: Vec<String> = parts.into_iter().map(|Part::Text { text }| text).collect();
    Some(texts.join("\n"))
}

/// What a sender gets back at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// As it was accepted, the first time.
    pub accepted: Accepted,
    /// Whether this is the answer to a repetition.
    pub repeated: bool,
}

/// What became of a wish within the time that a caller waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granted {
    /// The keeper said yes.
    Done,
    /// The keeper has not said anything yet; it will.
    Pending,
}

/// Why something is refused, by what the caller can do about it. Nothing was changed (but for `Unclear`).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no such thing, or not for this caller.
    #[error("there is no such {what}")]
    NotFound { what: &'static str },
    /// The credential is good for nothing any more.
    #[error("this credential is not good any more: sign in again")]
    Unauthenticated,
    /// The credential is not good for this.
    #[error("this credential has no right to {}: use one that has", right_word(*.0))]
    NeedsRight(Right),
    /// Only somebody with a higher role may.
    #[error("only {} may do this", role_word(*.0))]
    NeedsRole(Role),
    /// The agent may not be used by them.
    #[error("you may not use this agent: an admin can let you (`homing grant give`)")]
    AgentNotYours,
    /// The directory is under none that they may choose.
    #[error("this directory is under none that you may choose: an admin can let you (`homing roots add`)")]
    DirectoryNotYours,
    /// The credential is for one turn of one session only.
    #[error("this credential is for one turn of one session, and for nothing else")]
    BoundElsewhere,
    /// Nobody is let in by this name and password, or by this link. Says nothing of which of them was wrong.
    #[error("this does not let anybody in: look at the name and the password, or ask for another link")]
    WrongSignIn,
    /// Something is called so already.
    #[error("this {what} is taken already: choose another")]
    Taken { what: &'static str },
    /// An org has an owner who can come in.
    #[error("an org needs an owner who can come in: make somebody else one first")]
    LastOwner,
    /// Who is to own a session is disabled, or a viewer.
    #[error("this person cannot own a session: they are disabled, or a viewer")]
    CannotOwn,
    /// The org has too many open sessions.
    #[error("your org already has {limit} open sessions: end some, or let the machine's owner allow more")]
    OrgTooManyOpen { limit: u32 },
    /// Agents could read what is not theirs, so nobody else is let in.
    #[error("agents are not walled off from this server's data, so nobody else can be let in: {}", findings.join("; "))]
    WallNotProved { findings: Vec<String> },
    /// It was done before under this key, and its secret is shown once.
    #[error("this was done before, and its secret is shown only once: make another")]
    ShownOnce,
    /// The session that was named has ended.
    #[error("session {session} has ended")]
    SessionEnded { session: SessionId, why: EndWhy },
    /// The address names another person or client, or its scheme is another door's.
    #[error("this address belongs to somebody else, or to another way in")]
    AddressNotYours,
    /// It may be seen, but not this.
    #[error("this needs the grant `{}` on the session, which you do not have", grant_word(*.0))]
    Needs(Grant),
    /// Only whoever said it may change its words.
    #[error("only its sender may change the words of a message")]
    NotYourWords,
    /// The key was used for another wish.
    #[error("this idempotency key was used for another request")]
    KeyReused,
    /// The conversation is here already.
    #[error("this conversation is here already, as session {session}")]
    AlreadyImported { session: SessionId },
    /// Not an export, or not one that can be read here.
    #[error("line {line}: {reason}")]
    BadExport { line: usize, reason: String },
    /// Too many messages of this session are unfinished.
    #[error("this session already has {limit} unfinished messages")]
    QueueFull { limit: u32 },
    /// Too many open sessions.
    #[error("you already have {limit} open sessions")]
    TooManyOpen { limit: u32 },
    /// No agent of this name.
    #[error("there is no agent called {name:?}")]
    UnknownAgent { name: String, known: Vec<String> },
    /// No session can be made in this directory.
    #[error("this directory cannot be used: {reason}")]
    BadDirectory { reason: String },
    /// Something about the wish itself is wrong.
    #[error("{field}: {reason}")]
    Invalid { field: &'static str, reason: String },
    /// What it is about has gone on.
    #[error("too late: it has gone on in the meantime")]
    TooLate,
    /// Others may answer this question.
    #[error("only {who} may answer this, as rule {rule} says; whoever manages the session can say no")]
    NotYoursToAnswer { who: String, rule: RuleId },
    /// It is no answer to what was asked.
    #[error("this is no answer to what was asked, which takes {}", takes_words(*takes))]
    UnfitAnswer { takes: ApprovalForm },
    /// Somebody was faster.
    #[error("too late: it was answered before, by {}", .0.whom())]
    AnsweredBefore(Box<Settled>),
    /// Nobody can answer it any more.
    #[error("turn {turn} of {session} {}", lapsed_words(*interrupted))]
    Lapsed { session: SessionId, turn: Turn, interrupted: bool },
    /// The org has too many rules.
    #[error("your org already has {limit} rules for what agents ask: remove some")]
    TooManyRules { limit: usize },
    /// A turn is under way, or something else that must be over first.
    #[error("a turn or a change of scope is under way: wait for its end, or stop it")]
    Busy,
    /// Another change of scope waits.
    #[error("another change of scope waits already: let it happen, or give it up")]
    ScopeChanging,
    /// The session is in a worktree.
    #[error("the session is in a worktree: leave it first")]
    InWorktree,
    /// The session is in no worktree.
    #[error("the session is in no worktree")]
    NotInWorktree,
    /// What was asked for belongs to another scope than that of now.
    #[error("this belongs to another scope than the one the session is in now")]
    OtherScope,
    /// Something has touched the files of a turn since, so it is not undone. Nothing was changed.
    #[error("turn {turn} is not undone, because these were changed since: {}", touched_words(files, *more))]
    TouchedSince { turn: Turn, files: Vec<String>, more: usize },
    /// What was looked up belongs to a scope that is no more.
    #[error("the scope has changed while this was looked up: ask again")]
    Stale,
    /// A worktree stays as it is, because something is in the way.
    #[error("{why}")]
    WorktreeTrouble { why: String },
    /// Somebody changed it in between.
    #[error("it was changed in the meantime: look again")]
    Changed,
    /// The disk is full. Later.
    #[error("the disk is full: nothing new can be accepted until there is room")]
    DiskFull,
    /// Not now. Later.
    #[error("not available just now: {0}")]
    Unavailable(String),
    /// It may or may not have been accepted: ask again with the same key.
    #[error("it is not known whether this was accepted: ask again with the same idempotency key")]
    Unclear,
}

fn lapsed_words(interrupted: bool) -> &'static str {
    match interrupted {
        true => "was interrupted before anybody answered; nothing was done",
        false => "is over, or the agent took the question back; nobody can answer it any more",
    }
}

fn touched_words(files: &[String], more: usize) -> String {
    let shown = files.len().min(TOUCHED_SHOWN);
    match files.len() - shown + more {
        0 => files.join(", "),
        more => format!("{} and {more} more", files[..shown].join(", ")),
    }
}

fn grant_word(grant: Grant) -> &'static str {
    match grant {
        Grant::View => "view",
        Grant::Prompt => "prompt",
        Grant::Manage => "manage",
    }
}

/// How a right is called.
pub fn right_word(right: Right) -> &'static str {
    match right {
        Right::Read => "read",
        Right::Prompt => "prompt",
        Right::Approve => "approve",
        Right::Manage => "manage",
        Right::Admin => "admin",
    }
}

fn role_word(role: Role) -> &'static str {
    match role {
        Role::Viewer => "somebody of this org",
        Role::Member => "a member",
        Role::Admin => "an admin",
        Role::Owner => "an owner",
    }
}

impl Refused {
    /// The stable code of this refusal, for audit entries and the wire.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not_found",
            Self::Unauthenticated => "unauthenticated",
            Self::NeedsRight(_) => "right_missing",
            Self::NeedsRole(_) => "role_too_low",
            Self::AgentNotYours => "agent_not_yours",
            Self::DirectoryNotYours => "directory_not_yours",
            Self::BoundElsewhere => "bound_elsewhere",
            Self::WrongSignIn => "wrong_sign_in",
            Self::Taken { .. } => "taken",
            Self::LastOwner => "last_owner",
            Self::CannotOwn => "cannot_own",
            Self::OrgTooManyOpen { .. } => "too_many_org_sessions",
            Self::WallNotProved { .. } => "wall_not_proved",
            Self::ShownOnce => "idempotency_conflict",
            Self::SessionEnded { .. } => "session_ended",
            Self::AddressNotYours => "address_not_yours",
            Self::Needs(_) => "not_allowed",
            Self::NotYourWords => "not_your_words",
            Self::KeyReused => "idempotency_conflict",
            Self::AlreadyImported { .. } => "already_imported",
            Self::BadExport { .. } => "bad_export",
            Self::QueueFull { .. } => "queue_full",
            Self::TooManyOpen { .. } => "too_many_open_sessions",
            Self::UnknownAgent { .. } => "unknown_agent",
            Self::BadDirectory { .. } => "bad_directory",
            Self::Invalid { .. } => "invalid",
            Self::TooLate => "too_late",
            Self::Changed => "changed",
            Self::NotYoursToAnswer { .. } => "not_yours_to_answer",
            Self::UnfitAnswer { .. } => "unfit_answer",
            Self::AnsweredBefore(_) => "too_late",
            Self::Lapsed { .. } => "lapsed",
            Self::TooManyRules { .. } => "too_many_rules",
            Self::Busy => "busy",
            Self::ScopeChanging => "scope_changing",
            Self::InWorktree => "in_worktree",
            Self::NotInWorktree => "not_in_worktree",
            Self::OtherScope => "other_scope",
            Self::TouchedSince { .. } => "touched_since",
            Self::Stale => "stale",
            Self::WorktreeTrouble { .. } => "worktree_trouble",
            Self::DiskFull => "disk_full",
            Self::Unavailable(_) => "unavailable",
            Self::Unclear => "unclear",
        }
    }

    pub(crate) fn denied(denied: Denied, what: &'static str) -> Self {
        match denied {
            Denied::Unseen => Self::NotFound { what },
            Denied::Needs(grant) => Self::Needs(grant),
            Denied::NeedsRight(right) => Self::NeedsRight(right),
            Denied::NeedsRole(role) => Self::NeedsRole(role),
            Denied::DirectoryNotYours => Self::DirectoryNotYours,
            Denied::AgentNotYours => Self::AgentNotYours,
            Denied::BoundElsewhere => Self::BoundElsewhere,
            Denied::NotYourWords => Self::NotYourWords,
            Denied::AddressNotYours => Self::AddressNotYours,
        }
    }

    /// Why the store has refused a change of the way in.
    pub(crate) fn rejected(why: Rejection) -> Self {
        match why {
            Rejection::Unauthenticated => Self::Unauthenticated,
            Rejection::NotFound { what } => Self::NotFound { what },
            Rejection::Denied(denied) => Self::denied(denied, "session"),
            Rejection::Ended { session, why } => Self::SessionEnded { session, why },
            Rejection::OtherScope => Self::OtherScope,
            Rejection::QueueFull { limit } => Self::QueueFull { limit },
            Rejection::TooManyOpen { limit } => Self::TooManyOpen { limit },
            Rejection::OrgTooManyOpen { limit } => Self::OrgTooManyOpen { limit },
            Rejection::AlreadyHere { session } => Self::AlreadyImported { session },
            Rejection::Changed => Self::Changed,
            Rejection::TooLate => Self::TooLate,
            Rejection::WouldBeNew { .. } => {
                Self::Unavailable("the conversation keeps changing; try again".to_owned())
            }
            Rejection::Gone => {
                Self::Unavailable("what was done under this key is not there any more".to_owned())
            }
        }
    }

    pub(crate) fn refusal(refusal: Refusal) -> Self {
        match refusal {
            Refusal::TooLate | Refusal::Ended => Self::TooLate,
            Refusal::Changed => Self::Changed,
            Refusal::Busy => Self::Busy,
            Refusal::Changing => Self::ScopeChanging,
            Refusal::InWorktree => Self::InWorktree,
            Refusal::NotInWorktree => Self::NotInWorktree,
            Refusal::NoSuchTurn => Self::NotFound { what: "turn" },
            Refusal::OtherScope => Self::OtherScope,
            // What a question takes was compared before; an older one may not have said it.
            Refusal::Unfit => Self::UnfitAnswer { takes: ApprovalForm::default() },
            Refusal::NotAllowed => Self::Needs(Grant::Manage),
            Refusal::AlreadyOpen | Refusal::NotOpen => {
                Self::Unavailable("the session is not ready yet".to_owned())
            }
        }
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full => Self::DiskFull,
            StoreError::Unavailable(cause) => Self::Unavailable(cause),
            StoreError::Unknown(_) => Self::Unclear,
            StoreError::Damaged(cause) => Self::Unavailable(cause),
        }
    }
}

//! Why something is refused, by what the caller can do about it: an error for each handle, and the parts that they share.
//!
//! Nothing was changed (but for `UnavailableError::Unclear`). What can be refused for the same reason in two handles is a part
//! of its own here and in neither of them, so a reason has one sentence and one code. Codes are stable: audit entries have
//! them, and the wire.

use crate::MergeObstacle;
use crate::approvals::{Settled, takes_words};
use kernel::{
    ApprovalForm, Denied, EndWhy, Grant, Grantee, Refusal, Right, Role, RuleId, SessionId, Turn,
    people::RULES_MAX,
};
use std::fmt::Display;
use store::{PeopleRefusal, Rejection, StoreError};

/// Files that are named in a sentence.
const TOUCHED_SHOWN: usize = 10;

/// Why a message, a request or a new session is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WayInError {
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error(transparent)]
    Unavailable(#[from] UnavailableError),
    #[error(transparent)]
    Invalid(#[from] InvalidError),
    #[error(transparent)]
    Conflict(#[from] ConflictError),
    #[error(transparent)]
    Scope(#[from] ScopeError),
    #[error(transparent)]
    BadDirectory(#[from] BadDirectory),
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
    /// The org has too many open sessions.
    #[error("your org already has {limit} open sessions: end some, or let the machine's owner allow more")]
    OrgTooManyOpen { limit: u32 },
    /// The words in somebody's sessions take too much room.
    #[error("{}", too_many_words(*used, *limit))]
    TooManyWords { used: u64, limit: u64 },
    /// Others may answer this question.
    #[error("only {who} may answer this, as rule {rule} says; whoever manages the session can say no")]
    NotYoursToAnswer { who: String, rule: RuleId },
    /// It is no answer to what was asked.
    #[error("this does not answer the question, which takes {}", takes_words(*takes))]
    UnfitAnswer { takes: ApprovalForm },
    /// Somebody was faster.
    #[error("too late: it was answered before, by {}", .0.whom())]
    AnsweredBefore(Box<Settled>),
    /// Nobody can answer it any more.
    #[error("turn {turn} of {session} {}", lapsed_words(*interrupted))]
    Lapsed { session: SessionId, turn: Turn, interrupted: bool },
    /// The session is in no worktree.
    #[error("the session is in no worktree")]
    NotInWorktree,
    /// The wish belongs to another scope than that of now.
    #[error("this belongs to another directory, worktree or agent than the session has now")]
    OtherScope,
    /// The session that is there has another agent or model than the sender says. Nothing was said to it.
    #[error("{session} has {}: nothing was said to it", agent_words(agent, model.as_deref()))]
    OtherAgent { session: SessionId, agent: String, model: Option<String> },
    /// The session's agent does not take something that goes along. Nothing was said to it.
    #[error("{agent} does not take the {attachment}: nothing was said to it")]
    NotTaken { agent: String, attachment: String },
    /// Something has touched the files of a turn since, so it is not undone. Nothing was changed.
    #[error("turn {turn} is not undone, because these were changed since: {}", touched_words(files, *more))]
    TouchedSince { turn: Turn, files: Vec<String>, more: usize },
    /// It is not certain that the agent has changed these files, and nobody has said that they are meant. Nothing was changed.
    #[error("turn {turn} is not undone, because {}: {}", unsure_words(*has_report), touched_words(files, *more))]
    UnsureChanges { turn: Turn, files: Vec<String>, more: usize, has_report: bool },
}

/// Why something is not shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error(transparent)]
    Unavailable(#[from] UnavailableError),
    #[error(transparent)]
    Invalid(#[from] InvalidError),
    #[error(transparent)]
    BadDirectory(#[from] BadDirectory),
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// The lookup belongs to a scope that is no more.
    #[error("the scope has changed while this was looked up: ask again")]
    Stale,
    /// The subject belongs to another scope than that of now.
    #[error("this belongs to another directory, worktree or agent than the session has now")]
    OtherScope,
}

/// Why somebody is not let in, or who may do what stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeopleError {
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error(transparent)]
    Unavailable(#[from] UnavailableError),
    #[error(transparent)]
    Invalid(#[from] InvalidError),
    #[error(transparent)]
    Conflict(#[from] ConflictError),
    #[error(transparent)]
    Taken(#[from] Taken),
    #[error(transparent)]
    BadDirectory(#[from] BadDirectory),
    /// Nobody is let in by this name and password, or by this link. Says nothing of which of them was wrong.
    #[error("this does not let anybody in: look at the name and the password, or ask for another link")]
    WrongSignIn,
    /// An org has an owner who can come in.
    #[error("an org needs an owner who can come in: make somebody else one first")]
    LastOwner,
    /// The person who is to own a session is disabled, or a viewer.
    #[error("this person cannot own a session: they are disabled, or a viewer")]
    CannotOwn,
    /// The person who is to own a session owns it.
    #[error("this person owns it already")]
    OwnsAlready,
    /// The session is offered to somebody, who has not answered yet.
    #[error("this session is offered to somebody who has not answered yet: take that offer back first")]
    OfferedAlready,
    /// Agents could read what is not theirs, so nobody else is let in.
    #[error("nobody else can be let in, because agents could read this server's data: {}", findings.join("; "))]
    WallNotProved { findings: Vec<String> },
    /// A token makes no way in that would outlast it.
    #[error(
        "a token cannot make a way in that would outlast it: sign in, with `homing login` or in a browser, and do it there"
    )]
    NeedsSignIn,
    /// The caller has too many open sessions for one more.
    #[error("you already have {limit} open sessions: end some that you do not need")]
    TooManyOpen { limit: u32 },
    /// The words in the caller's sessions take too much room for those of one more.
    #[error("{}", too_many_words(*used, *limit))]
    TooManyWords { used: u64, limit: u64 },
    /// It was done before under this key, and its secret is shown once.
    #[error("this was done before, and its secret is shown only once: make another")]
    ShownOnce,
}

/// Why a worktree stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorktreeError {
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error(transparent)]
    Unavailable(#[from] UnavailableError),
    #[error(transparent)]
    Conflict(#[from] ConflictError),
    #[error(transparent)]
    Scope(#[from] ScopeError),
    #[error(transparent)]
    Taken(#[from] Taken),
    /// The work of a worktree cannot be brought back because of these files. Nothing was changed.
    #[error("{}: {}", obstacle_words(*kind), touched_words(files, *more))]
    Merge { kind: MergeObstacle, files: Vec<String>, more: usize },
}

/// Refusals of whoever may not: there is no such thing for them, or somebody else could, or another credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
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
    /// It may be seen, but not this.
    #[error("you were not given `{}` on this session", grant_word(*.0))]
    Needs(Grant),
    /// The agent may not be used by them.
    #[error("you may not use this agent; an admin can let you")]
    AgentNotYours,
    /// The directory is under none that they may choose.
    #[error("you may not choose this directory; an admin can let you")]
    DirectoryNotYours,
    /// The credential is for one turn of one session only.
    #[error("this credential is for one turn of one session, and for nothing else")]
    BoundElsewhere,
    /// The address names another person or client, or its scheme is another door's.
    #[error("this address belongs to somebody else, or to another way in")]
    AddressNotYours,
    /// Only whoever said it may change its words.
    #[error("only its sender may change the words of a message")]
    NotYourWords,
}

/// Not now, for reasons of this machine's. Later.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnavailableError {
    /// The disk is full.
    #[error("the disk is full: nothing new can be accepted until there is room")]
    DiskFull,
    /// Something does not answer.
    #[error("not available just now: {0}")]
    Unavailable(String),
    /// It may or may not have been accepted: ask again with the same key.
    #[error(
        "it is not known whether this was accepted: ask again with the same Idempotency-Key, and it is accepted once in any case"
    )]
    Unclear,
}

/// A change that does not fit what is there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConflictError {
    /// The key was used for another wish.
    #[error("this Idempotency-Key was used for another request")]
    KeyReused,
    /// Its subject has gone on.
    #[error("too late: it has gone on in the meantime")]
    TooLate,
    /// Somebody changed it in between.
    #[error("it was changed in the meantime: look again")]
    Changed,
    /// No agent is there that would hear it now.
    #[error("nobody listens just now: no agent works on a turn, or it takes no words while it works")]
    NotListening,
    /// The session that was named has ended.
    #[error("session {session} has ended")]
    SessionEnded { session: SessionId, why: EndWhy },
    /// No agent of this name.
    #[error("there is no agent called {name:?}")]
    UnknownAgent { name: String, known: Vec<String> },
    /// The agent offers no model of this name.
    #[error("{agent} offers no model called {name:?}")]
    UnknownModel { name: String, agent: String, offered: Vec<String> },
    /// The session before had an agent that is not there any more, and no other one was named.
    #[error(
        "{session}, which this conversation had before, was with the agent `{name}`, which is not there any more: name the agent to go on with"
    )]
    AgentLeft { name: String, known: Vec<String>, session: SessionId },
    /// The tree after that turn is not remembered, so nothing can be made of it.
    #[error("nobody remembers how the files were after turn {turn}, so a fork would work in the same ones")]
    TreeForgotten { turn: Turn },
    /// The org has too many rules.
    #[error("your org already has {limit} rules for what agents ask: remove some")]
    TooManyRules { limit: usize },
}

/// Where the session acts cannot be changed just now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// A turn is under way, or something else that must be over first.
    #[error("a turn or a change of scope is under way: wait for its end, or stop it")]
    Busy,
    /// Another change of scope waits.
    #[error("another change of scope waits already: let it happen, or give it up")]
    ScopeChanging,
    /// The session is in a worktree.
    #[error("the session is in a worktree: leave it first")]
    InWorktree,
    /// The worktrees of the session's owner take so much room that there are no more.
    #[error("{}", too_many_tree_bytes(*used, *limit))]
    TooManyTreeBytes { used: u64, limit: u64 },
    /// The snapshots of the session's owner take so much room that nothing more is kept.
    #[error("{}", too_many_snapshot_bytes(*used, *limit))]
    TooManySnapshotBytes { used: u64, limit: u64 },
    /// A worktree stays as it is, because something is in the way.
    #[error("{why}")]
    WorktreeTrouble { why: String },
}

/// Something about the wish itself is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct InvalidError {
    pub field: &'static str,
    pub reason: String,
}

/// No session can be made in this directory, or goes on there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this directory cannot be used: {reason}")]
pub struct BadDirectory {
    pub reason: String,
}

/// Something is called so already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this {what} is taken already: choose another")]
pub struct Taken {
    pub what: &'static str,
}

/// An error of a handle, as the audit knows it.
pub(crate) trait HandleError: Display {
    /// Its stable code.
    fn code(&self) -> &'static str;
    /// True if it says nothing of what was asked for, only that nobody could look: then there is nothing to note.
    fn is_unavailable(&self) -> bool;
}

macro_rules! handle_errors {
    ($($error:ident),*) => {$(
        impl HandleError for $error {
            fn code(&self) -> &'static str {
                $error::code(self)
            }

            fn is_unavailable(&self) -> bool {
                matches!(self, Self::Unavailable(_))
            }
        }

        impl From<StoreError> for $error {
            fn from(error: StoreError) -> Self {
                Self::Unavailable(error.into())
            }
        }
    )*};
}

handle_errors!(WayInError, ViewError, PeopleError, WorktreeError);

impl WayInError {
    /// The stable code of this refusal, for audit entries and the wire.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Access(error) => error.code(),
            Self::Unavailable(error) => error.code(),
            Self::Invalid(error) => error.code(),
            Self::Conflict(error) => error.code(),
            Self::Scope(error) => error.code(),
            Self::BadDirectory(error) => error.code(),
            Self::AlreadyImported { .. } => "already_imported",
            Self::BadExport { .. } => "bad_export",
            Self::QueueFull { .. } => "queue_full",
            Self::TooManyOpen { .. } => "too_many_open_sessions",
            Self::OrgTooManyOpen { .. } => "too_many_org_sessions",
            Self::TooManyWords { .. } => "too_much_on_disk",
            Self::AnsweredBefore(_) => "too_late",
            Self::NotYoursToAnswer { .. } => "not_yours_to_answer",
            Self::UnfitAnswer { .. } => "unfit_answer",
            Self::Lapsed { .. } => "lapsed",
            Self::NotInWorktree => "not_in_worktree",
            Self::OtherScope => "other_scope",
            Self::OtherAgent { .. } => "other_agent",
            Self::NotTaken { .. } => "attachment_not_taken",
            Self::TouchedSince { .. } => "touched_since",
            Self::UnsureChanges { .. } => "unsure_changes",
        }
    }

    /// Why the store has refused a change.
    pub(crate) fn rejected(why: Rejection) -> Self {
        let later = |why: &str| UnavailableError::Unavailable(why.to_owned()).into();
        match why {
            Rejection::Unauthenticated => AccessError::Unauthenticated.into(),
            Rejection::NotFound { what } => AccessError::NotFound { what }.into(),
            Rejection::Denied(denied) => AccessError::denied(denied, "session").into(),
            Rejection::NotYoursToAnswer { rule, whom } => {
                let who = match whom {
                    Grantee::Person(person) => person.to_string(),
                    Grantee::Group(group) => group.to_string(),
                    Grantee::Org => "the org".to_owned(),
                };
                Self::NotYoursToAnswer { who, rule }
            }
            Rejection::Ended { session, why } => ConflictError::SessionEnded { session, why }.into(),
            Rejection::OtherScope => Self::OtherScope,
            Rejection::OtherAgent { session, agent, model } => Self::OtherAgent { session, agent, model },
            Rejection::NotTaken(unfit) => Self::NotTaken { agent: unfit.agent, attachment: unfit.attachment },
            Rejection::QueueFull { limit } => Self::QueueFull { limit },
            Rejection::TooManyOpen { limit } => Self::TooManyOpen { limit },
            Rejection::OrgTooManyOpen { limit } => Self::OrgTooManyOpen { limit },
            Rejection::TooManyWords { used, limit } => Self::TooManyWords { used, limit },
            Rejection::AlreadyHere { session } => Self::AlreadyImported { session },
            Rejection::Changed => ConflictError::Changed.into(),
            Rejection::TooLate => ConflictError::TooLate.into(),
            Rejection::WouldBeNew { .. } => later("the conversation keeps changing; try again"),
            Rejection::Gone => later("what was done under this key is not there any more"),
        }
    }

    /// Why a keeper has refused a request.
    pub(crate) fn refusal(refusal: Refusal) -> Self {
        match refusal {
            Refusal::TooLate | Refusal::Ended => ConflictError::TooLate.into(),
            Refusal::Changed => ConflictError::Changed.into(),
            Refusal::Busy => ScopeError::Busy.into(),
            Refusal::Changing => ScopeError::ScopeChanging.into(),
            Refusal::InWorktree => ScopeError::InWorktree.into(),
            Refusal::NotInWorktree => Self::NotInWorktree,
            Refusal::NoSuchTurn => AccessError::NotFound { what: "turn" }.into(),
            Refusal::OtherScope => Self::OtherScope,
            Refusal::NotListening => ConflictError::NotListening.into(),
            // What a question takes was compared before; an older one may not have said it.
            Refusal::Unfit => Self::UnfitAnswer { takes: ApprovalForm::default() },
            Refusal::NotAllowed => AccessError::Needs(Grant::Manage).into(),
            Refusal::AlreadyOpen | Refusal::NotOpen => {
                UnavailableError::Unavailable("the session is not ready yet".to_owned()).into()
            }
        }
    }
}

impl ViewError {
    /// The stable code of this refusal, for audit entries and the wire.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Access(error) => error.code(),
            Self::Unavailable(error) => error.code(),
            Self::Invalid(error) => error.code(),
            Self::BadDirectory(error) => error.code(),
            Self::Scope(error) => error.code(),
            Self::Stale => "stale",
            Self::OtherScope => "other_scope",
        }
    }
}

impl PeopleError {
    /// The stable code of this refusal, for audit entries and the wire.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Access(error) => error.code(),
            Self::Unavailable(error) => error.code(),
            Self::Invalid(error) => error.code(),
            Self::Conflict(error) => error.code(),
            Self::Taken(error) => error.code(),
            Self::BadDirectory(error) => error.code(),
            Self::WrongSignIn => "wrong_sign_in",
            Self::LastOwner => "last_owner",
            Self::CannotOwn => "cannot_own",
            Self::OwnsAlready => "owns_already",
            Self::OfferedAlready => "offered_already",
            Self::NeedsSignIn => "needs_sign_in",
            Self::TooManyOpen { .. } => "too_many_open_sessions",
            Self::TooManyWords { .. } => "too_much_on_disk",
            Self::WallNotProved { .. } => "wall_not_proved",
            Self::ShownOnce => "idempotency_conflict",
        }
    }
}

impl WorktreeError {
    /// The stable code of this refusal, for audit entries and the wire.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Access(error) => error.code(),
            Self::Unavailable(error) => error.code(),
            Self::Conflict(error) => error.code(),
            Self::Scope(error) => error.code(),
            Self::Taken(error) => error.code(),
            Self::Merge { kind: MergeObstacle::Conflicts, .. } => "merge_conflicts",
            Self::Merge { kind: MergeObstacle::Changed, .. } => "target_changed",
            Self::Merge { kind: MergeObstacle::Uncommitted, .. } => "uncommitted",
        }
    }
}

/// The sentence about words that take too much room: which bound it is, and what can be done.
pub(crate) fn too_many_words(used: u64, limit: u64) -> String {
    format!(
        "what is said and printed in the sessions of this session's owner takes {} on the disk, and \
         limits.words_bytes_per_person_max allows {}: whoever runs the server can allow more",
        amount(used),
        amount(limit)
    )
}

fn too_many_tree_bytes(used: u64, limit: u64) -> String {
    format!(
        "the worktrees of this session's owner take {} on the disk, and limits.worktree_bytes_per_person_max allows {}: \
         `homing worktree ls` shows them, `homing worktree rm` removes one and keeps what is in it",
        amount(used),
        amount(limit)
    )
}

pub(crate) fn too_many_snapshot_bytes(used: u64, limit: u64) -> String {
    format!(
        "the snapshots of this session's owner take {} on the disk, and limits.snapshot_bytes_per_person_max allows {}: the \
         oldest turns are let go of by themselves, removed worktrees and the last hour are not",
        amount(used),
        amount(limit)
    )
}

/// A number of bytes for people, in the units of the configuration.
pub(crate) fn amount(bytes: u64) -> String {
    match bytes {
        0x4000_0000.. => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
        0x10_0000.. => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
        _ => format!("{bytes} bytes"),
    }
}

/// A chore is asked for through the way in.
impl From<WayInError> for WorktreeError {
    fn from(refused: WayInError) -> Self {
        match refused {
            WayInError::Access(part) => part.into(),
            WayInError::Unavailable(part) => part.into(),
            WayInError::Conflict(part) => part.into(),
            WayInError::Scope(part) => part.into(),
            // These are answers to messages, to other requests and to whoever makes sessions.
            WayInError::Invalid(_)
            | WayInError::BadDirectory(_)
            | WayInError::AlreadyImported { .. }
            | WayInError::BadExport { .. }
            | WayInError::QueueFull { .. }
            | WayInError::TooManyOpen { .. }
            | WayInError::OrgTooManyOpen { .. }
            | WayInError::TooManyWords { .. }
            | WayInError::NotYoursToAnswer { .. }
            | WayInError::UnfitAnswer { .. }
            | WayInError::AnsweredBefore(_)
            | WayInError::Lapsed { .. }
            | WayInError::NotInWorktree
            | WayInError::OtherScope
            | WayInError::OtherAgent { .. }
            | WayInError::NotTaken { .. }
            | WayInError::TouchedSince { .. }
            | WayInError::UnsureChanges { .. } => UnavailableError::Unavailable(refused.to_string()).into(),
        }
    }
}

impl AccessError {
    /// The stable code of this refusal, for audit entries and the wire.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not_found",
            Self::Unauthenticated => "unauthenticated",
            Self::NeedsRight(_) => "right_missing",
            Self::NeedsRole(_) => "role_too_low",
            Self::Needs(_) => "not_allowed",
            Self::AgentNotYours => "agent_not_yours",
            Self::DirectoryNotYours => "directory_not_yours",
            Self::BoundElsewhere => "bound_elsewhere",
            Self::AddressNotYours => "address_not_yours",
            Self::NotYourWords => "not_your_words",
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
}

impl UnavailableError {
    /// The stable code of this refusal, for audit entries and the wire.
    pub fn code(&self) -> &'static str {
        match self {
            Self::DiskFull => "disk_full",
            Self::Unavailable(_) => "unavailable",
            Self::Unclear => "unclear",
        }
    }
}

impl ConflictError {
    /// The stable code of this refusal, for audit entries and the wire.
    pub fn code(&self) -> &'static str {
        match self {
            Self::KeyReused => "idempotency_conflict",
            Self::TooLate => "too_late",
            Self::Changed => "changed",
            Self::NotListening => "not_listening",
            Self::SessionEnded { .. } => "session_ended",
            Self::UnknownAgent { .. } | Self::AgentLeft { .. } => "unknown_agent",
            Self::UnknownModel { .. } => "unknown_model",
            Self::TreeForgotten { .. } => "tree_forgotten",
            Self::TooManyRules { .. } => "too_many_rules",
        }
    }
}

impl ScopeError {
    /// The stable code of this refusal, for audit entries and the wire.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::ScopeChanging => "scope_changing",
            Self::InWorktree => "in_worktree",
            Self::TooManyTreeBytes { .. } | Self::TooManySnapshotBytes { .. } => "too_much_on_disk",
            Self::WorktreeTrouble { .. } => "worktree_trouble",
        }
    }
}

impl InvalidError {
    /// The stable code of this refusal, for audit entries and the wire.
    pub fn code(&self) -> &'static str {
        "invalid"
    }
}

impl BadDirectory {
    /// The stable code of this refusal, for audit entries and the wire.
    pub fn code(&self) -> &'static str {
        "bad_directory"
    }
}

impl Taken {
    /// The stable code of this refusal, for audit entries and the wire.
    pub fn code(&self) -> &'static str {
        "taken"
    }
}

impl From<StoreError> for UnavailableError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full => Self::DiskFull,
            StoreError::Unavailable(cause) => Self::Unavailable(cause),
            StoreError::Unknown(_) => Self::Unclear,
            StoreError::Damaged(cause) => Self::Unavailable(cause),
        }
    }
}

impl From<PeopleRefusal> for PeopleError {
    fn from(why: PeopleRefusal) -> Self {
        let invalid = |field, reason: &str| InvalidError { field, reason: reason.to_owned() }.into();
        match why {
            PeopleRefusal::Unauthenticated => AccessError::Unauthenticated.into(),
            PeopleRefusal::Denied(denied) => AccessError::denied(denied, "org").into(),
            PeopleRefusal::NotFound(what) => AccessError::NotFound { what }.into(),
            PeopleRefusal::Taken(what) => Taken { what }.into(),
            PeopleRefusal::LastOwner => Self::LastOwner,
            PeopleRefusal::CannotOwn => Self::CannotOwn,
            PeopleRefusal::OwnsAlready => Self::OwnsAlready,
            PeopleRefusal::OfferedAlready => Self::OfferedAlready,
            PeopleRefusal::TooManyOpen { limit } => Self::TooManyOpen { limit },
            PeopleRefusal::TooManyWords { used, limit } => Self::TooManyWords { used, limit },
            PeopleRefusal::NeedsSignIn => Self::NeedsSignIn,
            // Whoever proved that it is not knows what was found.
            PeopleRefusal::NotWalled => Self::WallNotProved { findings: Vec::new() },
            PeopleRefusal::OneClient => {
                invalid("client", "this credential is for one client name: use one that is for all")
            }
            PeopleRefusal::OtherClient => {
                invalid("client", "must be the one of the credential that makes it")
            }
            PeopleRefusal::NotTheirPassword => {
                invalid("password", "only they can set it: remove it, and make them a link")
            }
            PeopleRefusal::Changed => ConflictError::Changed.into(),
            PeopleRefusal::Ended(session, why) => ConflictError::SessionEnded { session, why }.into(),
            PeopleRefusal::Over => invalid("until", "lies in the past"),
            PeopleRefusal::TooManyRules => ConflictError::TooManyRules { limit: RULES_MAX as usize }.into(),
        }
    }
}

fn lapsed_words(interrupted: bool) -> &'static str {
    match interrupted {
        true => "was interrupted before anybody answered; nothing was done",
        false => "is over, or the agent took the question back; nobody can answer it any more",
    }
}

fn agent_words(agent: &str, model: Option<&str>) -> String {
    match model {
        Some(model) => format!("the agent `{agent}` with the model `{model}`"),
        None => format!("the agent `{agent}` with the model that the agent chooses"),
    }
}

fn unsure_words(has_report: bool) -> &'static str {
    match has_report {
        true => "these changed during it and the agent has not said that it was the agent",
        false => "the agent does not say which files it changes, and these changed during it",
    }
}

fn obstacle_words(kind: MergeObstacle) -> &'static str {
    match kind {
        MergeObstacle::Conflicts => "nothing was brought back, because these were changed on both sides",
        MergeObstacle::Changed => {
            "nothing was brought back, because these are changed there and not committed, or stand in the way"
        }
        MergeObstacle::Uncommitted => "nothing was merged, because these are not committed in the worktree",
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

/// The name of a right.
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

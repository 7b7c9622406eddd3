//! What doors bring to the store, and what came of it.

use crate::log::NewFact;
use crate::rows::Import;
use bytes::Bytes;
use kernel::{
    Address, Delivery, EndWhy, Epoch, MessageId, Moment, NewWorktree, Origin, Record, Refusal, Remember,
    Request, RequestId, RuleId, Scope, SessionId,
};
use std::net::IpAddr;

/// What was found for a `To`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// As `kernel::route` wants it.
    pub found: kernel::Found,
    /// Who may touch the session that was found.
    pub record: Option<Record>,
}

/// A message to be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// Minted by us.
    pub message: MessageId,
    /// Where it goes.
    pub into: Into,
    /// Its parts, encoded once; opaque here.
    pub words: Bytes,
    /// How it is to reach a session whose turn is under way.
    pub delivery: Delivery,
    /// The epoch of the scope that its sender saw, if they said so.
    pub under: Option<Epoch>,
    /// Nobody sits in front of it, so that nobody is there to answer what the agent asks.
    pub unattended: bool,
    /// Where replies go; fixed from here on.
    pub reply: Option<Address>,
    /// The sender named an agent or a directory, and a session was there already.
    pub if_new_ignored: bool,
    /// The same key gets the same receipt.
    pub key: Option<Key>,
    /// What the audit entry says.
    pub trail: Trail,
    /// How many messages of one session may be unfinished.
    pub pending_max: u32,
}

/// Where a message goes. Decided by `kernel::route`; compared again in the transaction.
// It is made once per message and never kept in numbers, so its size costs nothing.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Into {
    /// Into this session, if it is still open (and still bound to this conversation, if one was named).
    Existing { session: SessionId, through: Option<Address> },
    /// Into a session made for it, if the conversation is still unbound.
    Create(NewSession),
}

/// A session to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// Minted by us, before anything else exists.
    pub session: SessionId,
    /// Where and how it acts.
    pub scope: Scope,
    /// Of which session it is a fork.
    pub origin: Option<Origin>,
    /// The worktree that it goes into before anything else.
    pub enter: Option<NewWorktree>,
    /// What people call it.
    pub title: Option<String>,
    /// The conversation it belongs to.
    pub bind: Option<Address>,
    /// The session this conversation had before, and why it ended.
    pub previous: Option<(SessionId, EndWhy)>,
    /// How many sessions one person may have open.
    pub open_max: u32,
    /// How many sessions the whole org may have open.
    pub org_open_max: u32,
}

/// A session to be made without a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    /// The session.
    pub session: NewSession,
    /// What it brings along from elsewhere.
    pub past: Option<Past>,
    /// The same key gets the same session.
    pub key: Option<Key>,
    /// What the audit entry says.
    pub trail: Trail,
}

/// A conversation that was had elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Past {
    /// What the session was called there. It answers to this in its org, too.
    pub import: Import,
    /// What was said, in this order; all of it has ended when `facts` are told.
    pub messages: Vec<PastMessage>,
    /// The log, from the fact that opens the session on. Nothing waits or runs after it.
    pub facts: Vec<NewFact>,
}

impl Past {
    /// How many bytes of words there are to be written.
    pub fn bytes(&self) -> usize {
        let said = self.messages.iter().map(|said| said.words.len());
        said.chain(self.facts.iter().map(NewFact::bytes)).sum()
    }
}

/// A message of a conversation that was had elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastMessage {
    /// Minted by us.
    pub message: MessageId,
    /// Its parts, encoded once; opaque here.
    pub words: Bytes,
    /// How it reached the turn.
    pub delivery: Delivery,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Creation {
    /// It is there.
    Done(SessionId),
    /// This person has brought it here before, and still owns it.
    Already(SessionId),
    /// It was made before, under the same key.
    Before(SessionId),
    /// The key was used for something else.
    Conflict,
    /// The conversation it was to be bound to has been bound in between: resolve again.
    Moved,
    /// This person has too many open sessions.
    TooManyOpen,
    /// The org has too many open sessions.
    OrgTooManyOpen,
}

/// What makes a repeated wish the same wish. The scope is org, person and verb.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The verb, so that one key may be used for different things.
    pub verb: &'static str,
    /// The caller's key, or a door's delivery id.
    pub key: String,
    /// Of the parsed body; another one under the same key is a conflict.
    pub hash: [u8; 32],
    /// Until when it is remembered; none keeps it as long as the message.
    pub expires: Option<Moment>,
}

/// What an audit entry says besides who.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trail {
    /// What was wished.
    pub verb: &'static str,
    /// The way in.
    pub door: &'static str,
    /// One id from request to fact to log line.
    pub correlation: String,
    /// Where the caller is, as far as the door knows.
    pub address: Option<IpAddr>,
    /// When.
    pub at: Moment,
}

/// What came of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acceptance {
    /// It is safe now.
    Done(Accepted),
    /// It was accepted before, under the same key: the same receipt.
    Before(Accepted),
    /// The key was used for something else.
    Conflict,
    /// What was seen when it was routed or authorized has changed: resolve again.
    Moved,
    /// Too many messages of this session are unfinished.
    QueueFull,
    /// This person has too many open sessions.
    TooManyOpen,
    /// The org has too many open sessions.
    OrgTooManyOpen,
}

/// A receipt as it was when the message was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The message.
    pub message: MessageId,
    /// Its session.
    pub session: SessionId,
    /// Whether the session was made for it.
    pub created: bool,
    /// The session the conversation had before.
    pub previous: Option<(SessionId, EndWhy)>,
    /// The sender named an agent or a directory, and a session was there already.
    pub if_new_ignored: bool,
    /// When.
    pub at: Moment,
}

/// A request on its way into a session's inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRequest {
    /// Minted by us.
    pub id: RequestId,
    /// The session, from the stored record.
    pub session: SessionId,
    /// What is asked.
    pub request: Request,
    /// What was looked up for it.
    pub resolved: Resolved,
    /// The words of an edit; opaque here.
    pub words: Option<Bytes>,
    /// The same key gets the same answer.
    pub key: Option<Key>,
    /// What the audit entry says.
    pub trail: Trail,
}

/// What was looked up for a request on its way in, because the session's own state does not have it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resolved {
    /// The scope that a message to be released `there` was written for.
    pub written_for: Option<Scope>,
    /// The rule that an answer to be remembered becomes.
    pub rule: Option<RememberedRule>,
}

/// An answer that is to hold for such questions from now on: a yes allows, a no denies. It becomes a rule together with the
/// answer, or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RememberedRule {
    /// The rule's id, minted by us.
    pub rule: RuleId,
    /// Only questions of this agent.
    pub agent: Option<String>,
    /// Only questions about this tool.
    pub tool: String,
    /// Only questions of sessions that act in this directory or below it.
    pub directory: Option<String>,
    /// Only questions of this session.
    pub session: Option<SessionId>,
}

impl RememberedRule {
    /// For how long the answer holds that it was made of.
    pub fn remember(&self) -> Remember {
        match self.session {
            Some(_) => Remember::Session,
            None => Remember::Always,
        }
    }
}

/// What came of a wish, at the door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asking {
    /// It is in the inbox.
    Done(RequestId),
    /// It was asked before, under the same key.
    Before(RequestId),
    /// The key was used for something else.
    Conflict,
    /// What was seen when it was authorized has changed: look again.
    Moved,
    /// The session has ended: nothing can be wished of it any more.
    Ended(EndWhy),
}

/// What the keeper said to a wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Granted.
    Done,
    /// Not granted.
    Refused(Refusal),
}

/// Lets a conversation belong to another open session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebind {
    /// The conversation.
    pub address: Address,
    /// The session it belongs to now, as the caller saw it; none if it is unbound.
    pub from: Option<SessionId>,
    /// The session it shall belong to (whose record was authorized).
    pub to: SessionId,
    /// What makes a repetition harmless.
    pub key: Option<Key>,
    /// What the audit entry says.
    pub trail: Trail,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rebinding {
    /// It is so.
    Done,
    /// The key has been used for this; it was so then, and nothing is changed now.
    Before,
    /// The key has been used for something else.
    Conflict,
    /// Somebody was faster, or the right is gone: look again.
    Moved,
    /// The session has ended.
    Ended(EndWhy),
}

/// Something that is done to what a session has outside of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permit {
    /// The session.
    pub session: SessionId,
    /// What it is done to, in one word.
    pub subject: String,
    /// What the audit entry says.
    pub trail: Trail,
}

/// Whether it may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permitting {
    /// It may, and that is written down.
    Done,
    /// The right is gone, or changed: look again.
    Moved,
}

/// Changes what a session is called, or whether lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retitle {
    /// The session.
    pub session: SessionId,
    /// Another title, if any.
    pub title: Option<String>,
    /// Archived or not, if anything.
    pub archived: Option<bool>,
    /// What the audit entry says.
    pub trail: Trail,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retitling {
    /// It is so.
    Done,
    /// The right is gone, or changed: look again.
    Moved,
}

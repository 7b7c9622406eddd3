//! Everything that doors bring to the store, and what came of it.

use crate::attachment::{NewAttachment, UnfitAgent, attached_bytes};
use crate::disk::words_bytes;
use crate::log::NewFact;
use crate::rows::Import;
use bytes::Bytes;
use kernel::{
    Address, Delivery, Denied, EndWhy, Epoch, Grantee, GroundPath, MessageId, Moment, NewWorktree, Origin,
    Previous, Principal, Refusal, Remember, Request, RequestId, RuleId, Scheme, Scope, SessionId, To,
};
use std::net::IpAddr;

/// A message to be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// Minted by us.
    pub message: MessageId,
    /// Where its sender wants it.
    pub to: To,
    /// The session that is made for it if there is none; none as long as nobody has looked at its directory and agent.
    pub fresh: Option<Box<NewSession>>,
    /// The session whose agent, model and mode `fresh` has because nobody said otherwise: what the conversation had until it ended.
    pub like: Option<SessionId>,
    /// The agent and model that its sender takes a session that is there to have.
    pub expected: Option<Expected>,
    /// Its sender named an agent or a directory for a new session.
    pub asks_for_new: bool,
    /// Its words, encoded once; opaque here.
    pub words: Bytes,
    /// The images and files that go along, in their order.
    pub attachments: Vec<NewAttachment>,
    /// The agents that do not take them all.
    pub unfit: Vec<UnfitAgent>,
    /// The title that they are for a session that has none.
    pub opening: Option<String>,
    /// The way it is to reach a session whose turn is under way.
    pub delivery: Delivery,
    /// The epoch of the scope that its sender saw, if they said so.
    pub under: Option<Epoch>,
    /// Nobody sits in front of it, so that nobody is there to answer what the agent asks.
    pub unattended: bool,
    /// Where replies go; fixed from here on.
    pub reply: Option<Address>,
    /// The same key gets the same receipt.
    pub key: Option<Key>,
    /// The trail for the audit entry.
    pub trail: Trail,
    /// The most messages of one session that may be unfinished.
    pub pending_max: u32,
    /// The most room that the words in one person's sessions may take.
    pub words_bytes_max: u64,
    /// The address schemes of the door that it came through: it uses, binds and answers to no other.
    pub schemes: &'static [Scheme],
}

/// The agent and model that a sender takes a session to have. None is whatever it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected {
    /// The agent.
    pub agent: Option<String>,
    /// The model.
    pub model: Option<String>,
}

impl Expected {
    /// True if a session that acts like this is what they take it to be.
    pub fn fits(&self, scope: &Scope) -> bool {
        let agent_fits = self.agent.as_ref().is_none_or(|agent| *agent == scope.agent);
        agent_fits && (self.model.is_none() || self.model == scope.model)
    }
}

/// The session that a conversation had until it ended, and how it acted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Predecessor {
    /// The session.
    pub session: SessionId,
    /// Its last scope.
    pub scope: Scope,
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
    /// Its title, for people.
    pub title: Option<String>,
    /// The conversation it belongs to. That of a message comes from where the message is sent.
    pub bind: Option<Address>,
    /// The choices for it, which have to be theirs to choose.
    pub chosen: Chosen,
    /// The most sessions that one person may have open.
    pub open_max: u32,
    /// The most sessions that the whole org may have open; it may want fewer.
    pub org_open_max: u32,
}

/// The choices for a new session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The agent that it will talk to.
    pub agent: String,
    /// The directory, canonical; none if it gets one of its own.
    pub directory: Option<GroundPath>,
}

/// A session to be made without a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    /// The session.
    pub session: NewSession,
    /// The past that it brings along from elsewhere.
    pub past: Option<Past>,
    /// The most room that the words in one person's sessions may take.
    pub words_bytes_max: u64,
    /// Its source, for the audit of a refusal: the session that is forked, or the name it had elsewhere.
    pub subject: Option<String>,
    /// The same key gets the same session.
    pub key: Option<Key>,
    /// The trail for the audit entry.
    pub trail: Trail,
    /// The address schemes of the door that it came through: it is bound to no other.
    pub schemes: &'static [Scheme],
}

/// A conversation that was had elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Past {
    /// The session's name there. It answers to this in its org, too.
    pub import: Import,
    /// The messages, in this order; all of it has ended when `facts` are told.
    pub messages: Vec<PastMessage>,
    /// The log, from the fact that opens the session on. Nothing waits or runs after it.
    pub facts: Vec<NewFact>,
}

impl Past {
    /// The number of bytes of words there are to be written.
    pub fn bytes(&self) -> usize {
        let attached = |said: &PastMessage| said.attachments.iter().map(|it| it.content.len()).sum::<usize>();
        let said = self.messages.iter().map(|said| said.words.len() + attached(said));
        said.chain(self.facts.iter().map(NewFact::bytes)).sum()
    }

    /// The room that its words take.
    pub fn words_bytes(&self) -> u64 {
        let told = self.facts.iter().map(NewFact::words_bytes);
        let said =
            self.messages.iter().map(|said| words_bytes(&said.words) + attached_bytes(&said.attachments));
        said.chain(told).sum()
    }
}

/// A message of a conversation that was had elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastMessage {
    /// Minted by us.
    pub message: MessageId,
    /// Its parts, encoded once; opaque here.
    pub words: Bytes,
    /// The images and files that went along.
    pub attachments: Vec<NewAttachment>,
    /// The way it reached the turn.
    pub delivery: Delivery,
}

/// The key that makes a repeated wish the same wish. The scope is org, person and verb.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The verb, so that one key may be used for different things.
    pub verb: &'static str,
    /// The caller's key, or a door's delivery id.
    pub key: String,
    /// Of the stored form of what is asked for; another one under the same key is a conflict.
    pub hash: [u8; 32],
    /// Until when it is remembered; none keeps it as long as the message.
    pub expires: Option<Moment>,
}

/// Of what a stored hash was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashForm {
    /// Of whatever the version that wrote it printed. It cannot be made again.
    Debug,
    /// Of the stored form.
    Stored,
}

/// The content of an audit entry besides who.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trail {
    /// The verb of the wish.
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

/// A receipt as it was when the message was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The message.
    pub message: MessageId,
    /// Its session.
    pub session: SessionId,
    /// True if the session was made for it.
    pub created: bool,
    /// The session the conversation had before.
    pub previous: Option<Previous>,
    /// The sender named an agent or a directory, and a session was there already.
    pub if_new_ignored: bool,
    /// When.
    pub at: Moment,
}

/// A request on its way into a session's inbox. Its session comes from the stored record of what it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRequest {
    /// Minted by us.
    pub id: RequestId,
    /// The request itself.
    pub request: Request,
    /// The things that were looked up for it.
    pub resolved: Resolved,
    /// The words of an edit; opaque here.
    pub words: Option<Bytes>,
    /// The attachments of an edit, in place of those that are there; none if those stay.
    pub attachments: Option<Vec<NewAttachment>>,
    /// The agents that do not take them all.
    pub unfit: Vec<UnfitAgent>,
    /// The title that they are for a session whose title is of the words they replace.
    pub opening: Option<String>,
    /// The most room that the words in one person's sessions may take.
    pub words_bytes_max: u64,
    /// The same key gets the same answer.
    pub key: Option<Key>,
    /// The trail for the audit entry.
    pub trail: Trail,
}

/// The things that were looked up for a request on its way in, because the session's own state does not have it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resolved {
    /// The scope that a message to be released `there` was written for.
    pub written_for: Option<Scope>,
    /// The rule that an answer to be remembered becomes.
    pub rule: Option<RememberedRule>,
}

/// The outcome of a request, at the door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// It is in the inbox of this session, and its keeper will say yes or no.
    Waits { request: RequestId, session: SessionId },
    /// There is nothing left to ask for: the session is over.
    Over,
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

/// The keeper's verdict on a wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Granted; of a chore, that it is done.
    Done,
    /// A chore is done, and this is the answer to whoever asked for it, however late they ask: written and read by whoever does chores.
    Told { what: String },
    /// Not granted.
    Refused(Refusal),
    /// A chore was begun and did not get to its end, for this reason, in words for people.
    Failed { why: String },
}

/// Lets a conversation belong to another open session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebind {
    /// The conversation.
    pub address: Address,
    /// The session it shall belong to.
    pub to: SessionId,
    /// The key that makes a repetition harmless.
    pub key: Option<Key>,
    /// The trail for the audit entry.
    pub trail: Trail,
    /// The address schemes of the door that it came through: no other can be moved.
    pub schemes: &'static [Scheme],
}

/// Changes what a session is called, or whether lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retitle {
    /// The session.
    pub session: SessionId,
    /// Another title, if any; an empty one takes it away.
    pub title: Option<String>,
    /// Archived or not, if anything.
    pub archived: Option<bool>,
    /// The trail for the audit entry.
    pub trail: Trail,
}

/// Why a change of the way in is refused. Nothing was changed but the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejection {
    /// The credential is good for nothing any more, or its person cannot come in.
    Unauthenticated,
    /// There is no such thing, or not for whoever asks.
    NotFound { what: &'static str },
    /// They may not.
    Denied(Denied),
    /// A rule leaves the question to others.
    NotYoursToAnswer { rule: RuleId, whom: Grantee },
    /// The session has ended.
    Ended { session: SessionId, why: EndWhy },
    /// The wish belongs to a scope that has not been.
    OtherScope,
    /// The session that is there has another agent or model than its sender takes it to have.
    OtherAgent { session: SessionId, agent: String, model: Option<String> },
    /// The session's agent does not take something that goes along.
    NotTaken(UnfitAgent),
    /// Too many messages of the session are unfinished.
    QueueFull { limit: u32 },
    /// The person has too many open sessions.
    TooManyOpen { limit: u32 },
    /// The org has too many open sessions.
    OrgTooManyOpen { limit: u32 },
    /// The words in the sessions of whose session it is take too much room.
    TooManyWords { used: u64, limit: u64 },
    /// The conversation that it came with is here already.
    AlreadyHere { session: SessionId },
    /// Somebody was faster.
    Changed,
    /// It has gone on in the meantime.
    TooLate,
    /// Its session would be a new one: look at directory and agent, and come again with it. `by` is there if the
    /// principal has changed since the caller looked. Unless its sender says otherwise, it acts as the `like` one did.
    WouldBeNew { by: Option<Box<Principal>>, like: Option<Box<Predecessor>> },
    /// The thing that was done under the key is not there any more.
    Gone,
}

impl Rejection {
    /// The code in the audit of a key that stands for something else.
    pub const CONFLICT: &'static str = "idempotency_conflict";

    /// The kernel's word on it. Whatever may not be seen is not there.
    pub fn denied(denied: Denied, what: &'static str) -> Self {
        match denied {
            Denied::Unseen => Self::NotFound { what },
            other => Self::Denied(other),
        }
    }

    /// True if it says what somebody may not see or do, and nothing of what there is.
    pub(crate) fn is_of_rights(&self) -> bool {
        matches!(self, Self::Unauthenticated | Self::NotFound { .. } | Self::Denied(_))
    }

    /// The stable code of this refusal in the audit; none if it is none.
    pub fn code(&self) -> Option<&'static str> {
        Some(match self {
            Self::Unauthenticated => "unauthenticated",
            Self::NotFound { .. } => "not_found",
            Self::Denied(denied) => denied_code(*denied),
            Self::NotYoursToAnswer { .. } => "not_yours_to_answer",
            Self::Ended { .. } => "session_ended",
            Self::OtherScope => "other_scope",
            Self::OtherAgent { .. } => "other_agent",
            Self::NotTaken(_) => "attachment_not_taken",
            Self::QueueFull { .. } => "queue_full",
            Self::TooManyOpen { .. } => "too_many_open_sessions",
            Self::OrgTooManyOpen { .. } => "too_many_org_sessions",
            Self::TooManyWords { .. } => "too_much_on_disk",
            Self::AlreadyHere { .. } => "already_imported",
            Self::Changed => "changed",
            Self::TooLate => "too_late",
            Self::WouldBeNew { .. } | Self::Gone => return None,
        })
    }
}

/// The stable code of what may not be.
pub fn denied_code(denied: Denied) -> &'static str {
    match denied {
        Denied::Unseen => "not_found",
        Denied::Needs(_) => "not_allowed",
        Denied::NeedsRight(_) => "right_missing",
        Denied::NeedsRole(_) => "role_too_low",
        Denied::NotYourWords => "not_your_words",
        Denied::AddressNotYours => "address_not_yours",
        Denied::DirectoryNotYours => "directory_not_yours",
        Denied::AgentNotYours => "agent_not_yours",
        Denied::BoundElsewhere => "bound_elsewhere",
    }
}

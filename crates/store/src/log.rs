//! The rows that a keeper reads and writes: a session's log, its inbox, and one append.

use crate::disk::words_bytes;
use crate::outbox::NewOutgoing;
use crate::people::RuleRow;
use crate::way_in::{Resolved, Verdict};
use bytes::Bytes;
use kernel::people::TokenRow;
use kernel::{
    Claim, Delivery, Epoch, Fact, MessageId, Moment, NewWorktree, Number, OrgId, Origin, PersonId, Request,
    RequestId, Scope, SessionId, Term, Turn,
};

/// All that a keeper needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The org.
    pub org: OrgId,
    /// The owner.
    pub owner: PersonId,
    /// Where and how the session was made to act, for its first fact.
    pub scope: Scope,
    /// Of which session it is a fork, for its first fact.
    pub origin: Option<Origin>,
    /// The worktree that it goes into before anything else, for its first fact.
    pub enter: Option<NewWorktree>,
    /// The number of the last fact.
    pub at: Number,
    /// The term of the last append.
    pub term: Term,
    /// A checkpoint's facts, then every rule fact after it.
    pub facts: Vec<Fact>,
    /// The number of them that came after the checkpoint.
    pub since_checkpoint: usize,
}

/// Something that waits for the keeper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxRow {
    /// Grows in order of acceptance.
    pub number: u64,
    /// When it was accepted.
    pub at: Moment,
    /// The item itself.
    pub item: InboxItem,
}

/// An item that waits for the keeper.
// A page of them is short-lived; one more allocation per request would cost more than the room.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboxItem {
    /// A message.
    Say { message: MessageId, by: PersonId, delivery: Delivery, under: Option<Epoch> },
    /// A request. An edit comes without its words: the store keeps them under the request's id until the keeper has said
    /// yes or no.
    Request { id: RequestId, by: PersonId, request: Request, resolved: Resolved },
    /// Some deadline has come.
    Wake,
    /// The rights of this person have changed: look whether they may still say what they have said here.
    Recheck { person: PersonId },
    /// The session is this person's from here on: what was said to it before ends.
    HandOver { to: PersonId },
}

/// Everything that a keeper writes in one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    /// The session.
    pub session: SessionId,
    /// The keeper's term: an older one than the last append's is fenced.
    pub term: Term,
    /// The last number that the keeper knows.
    pub after: Number,
    /// The facts, in order.
    pub facts: Vec<NewFact>,
    /// The inbox rows that this answers; they go in the same transaction.
    pub drained: Vec<u64>,
    /// The inbox rows that were seen and stay: chores, which go with their verdict. The session can end over them.
    pub staying: Vec<u64>,
    /// The keeper's verdicts on wishes. A refused edit's words go; a granted one's become the message's.
    pub verdicts: Vec<(RequestId, Verdict)>,
    /// The claims that the session holds after this, each with how many may hold it.
    pub claims: Vec<(Claim, u32)>,
    /// The message that this starts and its sender, whose right is checked once more.
    pub starts: Option<(MessageId, PersonId)>,
    /// Replies for doors that do not read the log.
    pub replies: Vec<NewOutgoing>,
    /// The earliest moment at which something is due by itself.
    pub wake_at: Option<Moment>,
    /// True if a turn runs or waits after this, so that the next start must look after it.
    pub awake: bool,
    /// Rules that came with an answer.
    pub rules: Vec<RuleRow>,
    /// The acts of the engine itself, for the audit: the verb, and what it was done to.
    pub own_acts: Vec<(&'static str, Option<MessageId>)>,
    /// The room that the words of the session's owner may take with these; none for what is written in any case.
    pub words_bytes_max: Option<u64>,
    /// The credential of the attempt that this starts.
    pub token: Option<TokenRow>,
}

/// A fact to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFact {
    /// When it happened.
    pub at: Moment,
    /// Its cause.
    pub cause: Cause,
    /// The entry itself.
    pub entry: Entry,
}

impl NewFact {
    /// The number of bytes of words in it.
    pub fn bytes(&self) -> usize {
        match &self.entry {
            Entry::Rule(_) => 0,
            Entry::Story { body, .. } => body.len(),
        }
    }

    /// The room that its words take.
    pub fn words_bytes(&self) -> u64 {
        match &self.entry {
            Entry::Rule(_) => 0,
            Entry::Story { body, .. } => words_bytes(body),
        }
    }
}

/// The cause of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A message.
    Message(MessageId),
    /// A wish.
    Request(RequestId),
    /// A runner's report.
    Runner,
    /// A deadline.
    Timer,
    /// The keeper's own beginning.
    Keeper,
}

/// The two sorts of facts.
// A page of them is short-lived; one more allocation per fact would cost more than the room.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Read by the kernel.
    Rule(Fact),
    /// Shown to people. `body` is a JSON object, encoded once, stored and sent as the same bytes.
    Story { turn: Turn, kind: String, body: Bytes },
}

/// The outcome of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appending {
    /// It is so; this is the last number now.
    Done(Number),
    /// A newer keeper has the session. Stop.
    Fenced,
    /// The log has grown under us. Read it again.
    Moved { actual: Number },
    /// It would end the session while the inbox holds rows that were not seen. Drain, then decide again.
    Undrained,
    /// So many hold this claim already. Wait.
    Claimed(Claim),
    /// The sender of the message that would have started may no longer say it.
    Revoked(MessageId),
    /// The words of the session's owner take so much already that there is no room for these.
    TooManyWords { used: u64 },
}

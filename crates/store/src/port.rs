//! The port: every question and every change that the engine has for a database.
//!
//! A method is one transaction. What may happen is an answer (`Acceptance`, `Appending` …), what went wrong is a
//! `StoreError`, by remedy. Nothing here names a database, and no method is optional.

use crate::audit::{AuditQuery, AuditRow};
use crate::chain::{ChainHead, ChainKey};
use crate::people::*;
use crate::rows::*;
use bytes::Bytes;
use kernel::{
    Address, Answer, ApprovalId, Authorized, Change, Claim, Delivery, EndWhy, Epoch, Fact, MessageId, Moment,
    Named, NewWorktree, Number, OrgId, Origin, PersonId, Principal, Record, Refusal, RequestId, RuleId,
    Scope, SessionId, Term, To, TokenId, Turn,
};
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;

/// An answer that takes a while.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// What went wrong, by what can be done about it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Nothing was changed. The disk is full; reading goes on, and so does writing once there is room.
    #[error("the disk is full")]
    Full,
    /// Nothing was changed. Try later.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// It may or may not have been changed: look by id before anything else is done.
    #[error("the store did not say whether it happened: {0}")]
    Unknown(String),
    /// What is stored cannot be understood. Stop, and change nothing.
    #[error("stored data cannot be read: {0}")]
    Damaged(String),
}

/// Terms that one start of a node may use.
pub const TERMS_PER_START: u64 = 1 << 32;

/// What the engine needs from a database.
pub trait Store: Send + Sync + 'static {
    // ── intake ─────────────────────────────────────────────────────────────────────────────────────────────────────

    /// What is there for this `To`, in this org; with the session's access record if there is a session.
    fn find(&self, org: OrgId, to: To) -> Reply<'_, Finding>;

    /// Every session of this org that answers to an id: the one whose own it is, and those that came here under it. A store
    /// into which none ever came need not look.
    fn named(&self, org: OrgId, id: SessionId) -> Reply<'_, Vec<Named>>;

    /// Promises a message. When this answers `Done`, a power cut cannot lose it.
    ///
    /// One transaction: the key is looked up (before anything else), the witness is compared, the limits are counted,
    /// then session row and binding if new, message row and its words, inbox row, audit entry.
    fn accept(&self, wish: Authorized<NewMessage>) -> Reply<'_, Acceptance>;

    /// Makes a session that nobody has said anything to yet. One transaction, like `accept`; a `Wake` in its inbox lets
    /// the keeper open it. One that was imported has its past from the beginning: the facts that open it are in it.
    fn create(&self, wish: Authorized<Create>) -> Reply<'_, Creation>;

    /// Promises that the keeper will see a wish that is not a message. One transaction, like `accept`.
    fn ask(&self, wish: Authorized<NewRequest>) -> Reply<'_, Asking>;

    /// What the keeper said to a wish; none while it has not.
    fn verdict(&self, request: RequestId) -> Reply<'_, Option<Verdict>>;

    /// Lets another open session be the one that a conversation is bound to. One transaction with its audit entry.
    fn rebind(&self, wish: Authorized<Rebind>) -> Reply<'_, Rebinding>;

    /// Changes what a session is called or whether lists show it. One transaction with its audit entry.
    fn retitle(&self, wish: Authorized<Retitle>) -> Reply<'_, Retitling>;

    /// Writes down that somebody was allowed to do something to a session that is not done in the store. Compares the
    /// witness, so that whoever does it then was still allowed to. One transaction with its audit entry.
    fn permit(&self, wish: Authorized<Permit>) -> Reply<'_, Permitting>;

    /// Writes down that something was refused.
    fn audit(&self, entry: AuditEntry) -> Reply<'_, ()>;

    // ── keeper ─────────────────────────────────────────────────────────────────────────────────────────────────────

    /// All that a keeper needs to know to keep a session: rule facts only, from a checkpoint if there is a good one.
    fn load(&self, session: SessionId) -> Reply<'_, Option<Loaded>>;

    /// What waits for the keeper, in order of acceptance.
    fn inbox(&self, session: SessionId, limit: usize) -> Reply<'_, Vec<InboxRow>>;

    /// Writes what happened. One transaction, or nothing: facts in, inbox rows out, verdicts, claims, replies into the
    /// outbox, projections.
    fn append(&self, append: Append) -> Reply<'_, Appending>;

    /// Keeps a short form of the session's rule facts up to a number. May be thrown away at any time.
    fn checkpoint(&self, session: SessionId, at: Number, facts: Vec<Fact>) -> Reply<'_, ()>;

    /// The words of a message, as they are now.
    fn words(&self, message: MessageId) -> Reply<'_, Option<Bytes>>;

    // ── timer and start ────────────────────────────────────────────────────────────────────────────────────────────

    /// The earliest moment at which some session is due.
    fn next_wake(&self) -> Reply<'_, Option<Moment>>;

    /// Puts a `Wake` into the inbox of up to `limit` sessions that are due, and says which. One transaction.
    fn wake(&self, now: Moment, limit: usize) -> Reply<'_, Vec<SessionId>>;

    /// Sessions with a turn under way or something in the inbox, in order of their ids, after this one.
    fn unfinished(&self, after: Option<SessionId>, limit: usize) -> Reply<'_, Vec<SessionId>>;

    // ── outbox ─────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Takes replies that are due; each is durably *sending* before this answers.
    fn outbox_take(&self, now: Moment, limit: usize) -> Reply<'_, Vec<Outgoing>>;

    /// What became of a reply that was being sent. Only a reply that is *sending* can be settled.
    fn outbox_settle(&self, outgoing: u64, became: Became) -> Reply<'_, bool>;

    /// Replies in this state, oldest first: to read back what is unknown, to show what is parked.
    fn outbox_list(&self, state: OutgoingState, limit: usize) -> Reply<'_, Vec<Outgoing>>;

    // ── reading, for `engine::view` ────────────────────────────────────────────────────────────────────────────────

    /// The access record and the list row of a session.
    fn session(&self, session: SessionId) -> Reply<'_, Option<(Record, SessionRow)>>;

    /// A page of the sessions that this person may see, the ones with the newest activity first.
    fn sessions(&self, query: SessionsQuery) -> Reply<'_, Vec<SessionRow>>;

    /// A page of a session's facts after a number: at most `limit`, and at most about `bytes` but at least one.
    fn facts(
        &self,
        session: SessionId,
        after: Number,
        limit: usize,
        bytes: usize,
    ) -> Reply<'_, Vec<StoredFact>>;

    /// The story facts of one turn of one kind (its words, say), in order.
    fn story(&self, session: SessionId, turn: Turn, kind: String, bytes: usize)
    -> Reply<'_, Vec<StoredFact>>;

    /// The receipt of a message, with the access record of its session.
    fn receipt(&self, message: MessageId) -> Reply<'_, Option<(Record, ReceiptRow)>>;

    /// The receipts of a session's messages that are not final, in the order in which they will run.
    fn queue(&self, session: SessionId) -> Reply<'_, Vec<ReceiptRow>>;

    /// The receipt of the message that a turn began with.
    fn turn(&self, session: SessionId, turn: Turn) -> Reply<'_, Option<ReceiptRow>>;

    /// The same of the last turn that is over.
    fn last_turn(&self, session: SessionId) -> Reply<'_, Option<ReceiptRow>>;

    /// Where and how a session acted under an epoch; none if it has not come so far.
    fn scope(&self, session: SessionId, epoch: Epoch) -> Reply<'_, Option<Scope>>;

    /// A page of open bindings that this person may see, in order of their addresses, after this one.
    fn bindings(&self, by: Seer, after: Option<Address>, limit: usize) -> Reply<'_, Vec<BindingRow>>;

    /// A question, with the access record of its session.
    fn approval(&self, approval: ApprovalId) -> Reply<'_, Option<(Record, ApprovalRow)>>;

    /// Open questions that this person may see, oldest first.
    fn approvals(&self, by: Seer, limit: usize) -> Reply<'_, Vec<ApprovalRow>>;

    /// A session that holds this claim now, and its org: of a claim with one place, the one that does.
    fn holder(&self, claim: Claim) -> Reply<'_, Option<(SessionId, OrgId)>>;

    /// Every open session whose scope is in a worktree, of every org, in order of their ids.
    fn worktrees_in_use(&self) -> Reply<'_, Vec<WorktreeRow>>;

    /// A page of the sessions that this person may see and that have changed, in the order of their last changes.
    fn heads(&self, by: Seer, after: u64, limit: usize) -> Reply<'_, Vec<Head>>;

    // ── people ─────────────────────────────────────────────────────────────────────────────────────────────────────

    /// The machine's person, who owns the first org: the one that is stored, or this one if there is none yet. There is no
    /// password until they set one.
    fn host(&self, fresh: NewOrg) -> Reply<'_, Principal>;

    /// Whose credential this is, and what they may do now; none if it is unknown, has expired, was not used for too long,
    /// belongs to a turn that is over, or its person is disabled. A browser's secret that was just replaced still counts.
    fn token(&self, hash: [u8; 32], now: Moment) -> Reply<'_, Option<Principal>>;

    /// The same, for a credential that was seen before.
    fn principal(&self, credential: TokenId, now: Moment) -> Reply<'_, Option<Principal>>;

    /// Whether this person may say something to this session now, by the same rule as everywhere.
    fn may_say(&self, session: SessionId, person: PersonId) -> Reply<'_, bool>;

    /// Makes a credential without anybody's wish: the machine's own, a turn's.
    ///
    /// A machine's credential takes the place of every other one of its person, so that replacing the file in the data
    /// directory revokes what was in it. Whatever had expired when it was made is cleared away with them. A turn's takes
    /// the place of every other one of its session.
    fn add_token(&self, token: TokenRow) -> Reply<'_, ()>;

    /// Writes down when credentials were last used. May be late, and may be lost.
    fn touch_tokens(&self, used: Vec<(TokenId, Moment)>) -> Reply<'_, ()>;

    /// Puts a new secret in the place of a browser's old one, which counts until `old_until`. Answers whether it was there.
    fn rotate_token(&self, token: TokenId, hash: [u8; 32], now: Moment, old_until: Moment)
    -> Reply<'_, bool>;

    /// Who could be meant by what somebody typed to sign in: an e-mail address, `NAME`, or `ORG/NAME`. None unless it is
    /// exactly one person.
    fn login(&self, typed: String) -> Reply<'_, Option<LoginRow>>;

    /// Lets somebody in who has proved who they are. One transaction with its audit entry. Answers `false`, and changes
    /// nothing, if their standing is no longer the one that was seen.
    fn sign_in(&self, sign_in: SignedIn) -> Reply<'_, bool>;

    /// Whose link this is, without spending it; none if there is no such link any more.
    fn link(&self, hash: [u8; 32], now: Moment) -> Reply<'_, Option<LoginRow>>;

    /// Spends a link, and lets in whose it is if there is a credential for them. One transaction with its audit entry: it
    /// works once. None if there is no such link any more, it has expired, or its person is disabled.
    fn spend_link(
        &self,
        hash: [u8; 32],
        token: Option<LinkToken>,
        trail: Trail,
    ) -> Reply<'_, Option<LoginRow>>;

    /// The person whom an identity provider knows by this name; none if there is nobody yet.
    fn identity(&self, issuer: String, subject: String) -> Reply<'_, Option<LoginRow>>;

    /// Changes who may do what. One transaction: the witness is compared (Homing itself always stands), then the change, its audit entry, the standing
    /// of everybody whom it touches, and a `Recheck` in the inbox of every session where one of them has something
    /// unfinished.
    fn change(&self, wish: Authorized<NewChange>) -> Reply<'_, Changing>;

    /// The orgs of this machine.
    fn orgs(&self) -> Reply<'_, Vec<OrgRow>>;

    /// One org.
    fn org(&self, org: OrgId) -> Reply<'_, Option<OrgRow>>;

    /// A page of an org's people, in order of their handles, after this one.
    fn people(&self, org: OrgId, after: Option<String>, limit: usize) -> Reply<'_, Vec<PersonRow>>;

    /// One of an org's people.
    fn person(&self, org: OrgId, person: PersonId) -> Reply<'_, Option<PersonRow>>;

    /// One of an org's people, by their handle or e-mail address.
    fn person_named(&self, org: OrgId, name: String) -> Reply<'_, Option<PersonRow>>;

    /// An org's groups, with who is in them.
    fn groups(&self, org: OrgId) -> Reply<'_, Vec<GroupRow>>;

    /// What was given on something of this org.
    fn grants(&self, org: OrgId, on: Resource) -> Reply<'_, Vec<GrantRow>>;

    /// The directories of this org that may be chosen, and by whom.
    fn roots(&self, org: OrgId) -> Reply<'_, Vec<RootRow>>;

    /// The org's rules for what agents ask, in the order in which they were made; also those whose time is over.
    fn rules(&self, org: OrgId) -> Reply<'_, Vec<RuleRow>>;

    /// The credentials of a person, the newest first; without the machine's and those of turns.
    fn tokens(&self, org: OrgId, person: PersonId) -> Reply<'_, Vec<TokenView>>;

    // ── audit ──────────────────────────────────────────────────────────────────────────────────────────────────────

    /// A page of an org's audit, newest first.
    fn audit_page(&self, query: AuditQuery) -> Reply<'_, Vec<AuditRow>>;

    /// Chains entries that are not sealed yet, in the order in which they were written, each org's for itself. Answers how
    /// many there were. One transaction.
    fn seal_audit(&self, key: ChainKey, limit: usize) -> Reply<'_, usize>;

    /// A page of an org's sealed entries in the order of the chain, after a number, for whoever verifies it.
    fn sealed(&self, org: OrgId, after: u64, limit: usize) -> Reply<'_, Vec<AuditRow>>;

    /// Where the org's chain ends.
    fn chain_head(&self, org: OrgId) -> Reply<'_, ChainHead>;

    // ── sign-ins for agents, and nodes ─────────────────────────────────────────────────────────────────────────────

    /// The sign-in that a person has given for their own turns with an agent, sealed; none if they have not.
    fn account(&self, org: OrgId, person: PersonId, agent: String) -> Reply<'_, Option<AccountRow>>;

    /// Keeps somebody's own sign-in, in place of whatever they gave before. One transaction with its audit entry.
    fn set_account(&self, by: Principal, account: NewAccount) -> Reply<'_, ()>;

    /// Forgets it, and says whether there was one. One transaction with its audit entry.
    fn remove_account(&self, by: Principal, agent: String, trail: Trail) -> Reply<'_, bool>;

    /// The node that holds this store, and the term under which it does: `TERMS_PER_START` more with each start, so that
    /// every keeper of one start can have a term of its own below the next start's.
    fn node(&self) -> NodeRow;

    /// Every node there is.
    fn nodes(&self) -> Reply<'_, Vec<NodeRow>>;

    /// Where this node can be reached.
    fn announce(&self, url: String) -> Reply<'_, ()>;

    /// Figures about the store's own work, for metrics.
    fn gauges(&self) -> Gauges;
}

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

/// A wish that is not a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRequest {
    /// Minted by us.
    pub request: RequestId,
    /// The session, from the stored record.
    pub session: SessionId,
    /// What is wished.
    pub wish: Wish,
    /// The same key gets the same answer.
    pub key: Option<Key>,
    /// What the audit entry says.
    pub trail: Trail,
}

/// What can be wished of a session besides taking a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// Other words for a waiting message.
    Edit { message: MessageId, revision: u32, words: Bytes },
    /// Take a waiting message back.
    Withdraw { message: MessageId },
    /// Keep it from being started.
    Hold { message: MessageId },
    /// Let it be started again: in the scope of now, or back in the one that it was written for.
    Release { message: MessageId, back_in: Option<Scope> },
    /// Another order of the waiting ones.
    Reorder { order: Vec<MessageId> },
    /// Stop its turn, or take it back.
    Stop { message: MessageId },
    /// Answer a question.
    Answer { approval: ApprovalId, answer: Answer, rule: Option<RememberedRule> },
    /// Act somewhere or somehow else, from the end of the turn on or (`now`) not at all.
    Change { change: Change, now: bool },
    /// Give up a change of scope that has not begun.
    KeepScope,
    /// Put back what a turn has changed, which ran under this epoch.
    Undo { turn: Turn, of: Epoch },
    /// End the session.
    End,
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

impl Wish {
    /// The message or the question that it is about, as the audit has it.
    pub fn subject(&self) -> Option<String> {
        match self {
            Self::Edit { message, .. }
            | Self::Withdraw { message }
            | Self::Hold { message }
            | Self::Release { message, .. }
            | Self::Stop { message } => Some(message.to_string()),
            Self::Answer { approval, .. } => Some(approval.to_string()),
            Self::Reorder { .. } | Self::Change { .. } | Self::KeepScope | Self::Undo { .. } | Self::End => {
                None
            }
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

/// All that a keeper needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The org.
    pub org: OrgId,
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
    /// How many of them came after the checkpoint.
    pub since_checkpoint: usize,
}

/// Something that waits for the keeper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxRow {
    /// Grows in order of acceptance.
    pub number: u64,
    /// When it was accepted.
    pub at: Moment,
    /// What it is.
    pub item: InboxItem,
}

/// What waits for the keeper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboxItem {
    /// A message.
    Say { message: MessageId, by: PersonId, delivery: Delivery, under: Option<Epoch> },
    /// A wish. An edit comes with empty words: the store keeps them under the request's id until the keeper has said
    /// yes or no.
    Request { request: RequestId, by: PersonId, wish: Wish },
    /// Some deadline has come.
    Wake,
    /// What this person may do has changed: look whether they may still say what they have said here.
    Recheck { person: PersonId },
}

/// What a keeper writes in one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    /// The session.
    pub session: SessionId,
    /// The keeper's term: an older one than the last append's is fenced.
    pub term: Term,
    /// The last number that the keeper knows.
    pub after: Number,
    /// What happened, in order.
    pub facts: Vec<NewFact>,
    /// The inbox rows that this answers; they go in the same transaction.
    pub drained: Vec<u64>,
    /// What the keeper says to wishes. A refused edit's words go; a granted one's become the message's.
    pub verdicts: Vec<(RequestId, Verdict)>,
    /// The claims that the session holds after this, each with how many may hold it.
    pub claims: Vec<(Claim, u32)>,
    /// The message that this starts and its sender, whose right is checked once more.
    pub starts: Option<(MessageId, PersonId)>,
    /// Replies for doors that do not read the log.
    pub replies: Vec<NewOutgoing>,
    /// The earliest moment at which something is due by itself.
    pub wake_at: Option<Moment>,
    /// Whether a turn runs or waits after this, so that the next start must look after it.
    pub awake: bool,
    /// Rules that came with an answer.
    pub rules: Vec<RuleRow>,
    /// What the engine did by itself, for the audit: the verb, and what it was done to.
    pub own_acts: Vec<(&'static str, Option<MessageId>)>,
}

/// A fact to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFact {
    /// When it happened.
    pub at: Moment,
    /// What it followed from.
    pub cause: Cause,
    /// What happened.
    pub entry: Entry,
}

impl NewFact {
    /// How many bytes of words it has.
    pub fn bytes(&self) -> usize {
        match &self.entry {
            Entry::Rule(_) => 0,
            Entry::Story { body, .. } => body.len(),
        }
    }
}

/// What a fact followed from.
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

/// What came of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appending {
    /// It is so; this is the last number now.
    Done(Number),
    /// A newer keeper has the session. Stop.
    Fenced,
    /// The log has grown under us. Read it again.
    Moved { actual: Number },
    /// It would end the session while the inbox holds rows that were not drained. Drain, then decide again.
    Undrained,
    /// So many hold this claim already. Wait.
    Claimed(Claim),
    /// The sender of the message that would have started may no longer say it.
    Revoked(MessageId),
}

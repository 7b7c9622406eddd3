//! The ports: every question and every change that the engine has for a database, by who asks.
//!
//! A method is one transaction. What may happen is an answer (`Outcome`, `Appending` …), what went wrong is a
//! `StoreError`, by remedy. Nothing here names a database, and no method is optional. `Store` is all ports together;
//! whoever stands between the engine and a store (faults, weather) is a `Wrap`, and sees every call in one place
//! (`wrap.rs`).

use crate::attention::SessionCounts;
use crate::audit::{AuditKeys, AuditQuery, AuditRow};
use crate::chain::{ChainHead, ChainKey};
use crate::disk::{DiskTotals, DiskUse};
use crate::log::*;
use crate::marks::*;
use crate::outbox::*;
use crate::outcome::WriteOutcome;
use crate::passages::{FoundPassage, PassagesQuery};
use crate::people::*;
use crate::plan::KeyAnswer;
use crate::pushes::*;
use crate::rows::*;
use crate::search::*;
use crate::usage::*;
use crate::way_in::*;
use crate::wrap::{Call, Sort, Wrapped, ports};
use bytes::Bytes;
use kernel::{
    Address, ApprovalId, Claim, Epoch, Fact, MessageId, Moment, Named, Number, OrgId, PersonId, Principal,
    Record, RequestId, Scope, SessionId, To, TokenId, Turn,
};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// An answer that takes a while.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// The failures of a store, by what can be done about them.
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
    /// The stored bytes cannot be understood. Stop, and change nothing.
    #[error("stored data cannot be read: {0}")]
    Damaged(String),
}

/// Terms that one start of a node may use.
pub const TERMS_PER_START: u64 = 1 << 32;

ports! {
    /// The way in: what doors and verbs bring, each one transaction.
    pub trait WayIn {
        /// Every session that answers to an id and that this person may see: the one whose own it is, and those that came here
        /// under it. A store into which none ever came need not look.
        Read fn named(by: Seer, id: SessionId) -> Vec<Named>;

        /// Promises a message. When this answers `Done`, a power cut cannot lose it.
        ///
        /// One transaction (`plan::say`): who asks, the key, the session, the right, the limits; then session row and binding
        /// if new, message row and its words, inbox row, audit entry. A message whose session would be a new one is refused
        /// as that until it brings one.
        Door fn accept(by: Arc<Principal>, new: NewMessage) -> WriteOutcome<Accepted, Rejection>;

        /// Makes a session that nobody has said anything to yet. One transaction, like `accept`; a `Wake` in its inbox lets
        /// the keeper open it. One that was imported has its past from the beginning: the facts that open it are in it.
        Door fn create(by: Arc<Principal>, new: Create) -> WriteOutcome<SessionId, Rejection>;

        /// Promises that the keeper will see a wish that is not a message. One transaction, like `accept`.
        Door fn ask(by: Arc<Principal>, new: NewRequest) -> WriteOutcome<Asked, Rejection>;

        /// The answer for this key, for whoever cannot even ask any more for what they asked for then.
        Read fn answer_for(org: OrgId, person: PersonId, key: Key, now: Moment) -> KeyAnswer;

        /// The keeper's verdict on a wish; none while it has not.
        Read fn verdict(request: RequestId) -> Option<Verdict>;

        /// Lets another open session be the one that a conversation is bound to. One transaction with its audit entry.
        Write fn rebind(by: Arc<Principal>, new: Rebind) -> WriteOutcome<(), Rejection>;

        /// Changes what a session is called or whether lists show it. One transaction with its audit entry.
        Write fn retitle(by: Arc<Principal>, new: Retitle) -> WriteOutcome<(), Rejection>;

        /// Changes somebody's own marks on a session, and says how they are then. One transaction.
        Write fn mark(by: Arc<Principal>, new: Mark) -> WriteOutcome<Marks, Rejection>;
    }

    /// The log of a session, as its keeper reads and writes it.
    pub trait Log {
        /// All that a keeper needs to know to keep a session: rule facts only, from a checkpoint if there is a good one.
        Read fn load(session: SessionId) -> Option<Loaded>;

        /// The items that wait for the keeper, in order of acceptance.
        Read fn inbox(session: SessionId, limit: usize) -> Vec<InboxRow>;

        /// Writes what happened. One transaction, or nothing: facts in, inbox rows out, verdicts, claims, replies into the
        /// outbox, projections.
        Write fn append(append: Append) -> Appending;

        /// Keeps a short form of the session's rule facts up to a number. May be thrown away at any time.
        Write fn checkpoint(session: SessionId, at: Number, facts: Vec<Fact>) -> ();

        /// The words of a message, as they are now.
        Read fn words(message: MessageId) -> Option<Bytes>;

        /// The attachments of a message as they are now, in their order: what is said about each, and none of their bytes.
        Read fn attachments(message: MessageId) -> Vec<Bytes>;

        /// The bytes of an attachment of a message, by its number from 1 on.
        Read fn attachment(message: MessageId, number: u32) -> Option<Bytes>;

        /// True if this person may say something to this session now, by the same rule as everywhere.
        Read fn may_say(session: SessionId, person: PersonId) -> bool;

        /// True if this person may rule this session now, in the same way: asked when a chore of theirs begins, which
        /// may have waited.
        Read fn may_rule(session: SessionId, person: PersonId) -> bool;
    }

    /// The views that people read: lists are filtered by the rule of `kernel::grant_of`, in the backend's own query
    /// language. What is asked for by an id takes as long if it is hidden from whoever asks as if it had never been: a method
    /// that takes a `Seer` reads nothing more of it, and the steps to that answer are the same.
    pub trait Views {
        /// The session that this `To` finds now, if this person may see it, for whoever asks where something would go; with its
        /// access record. A conversation is looked up among the addresses of `whose`, or among those that are everybody's.
        Read fn find(by: Seer, whose: Option<PersonId>, to: To) -> Finding;

        /// Where something is, if it is in the org of this person, and whether they may see it.
        Read fn whereabouts(by: Seer, thing: Thing) -> Option<Whereabouts>;

        /// The access record and the list row of a session, whoever may see it.
        Read fn session(session: SessionId) -> Option<(Record, SessionRow)>;

        /// The same if this person may see it.
        Read fn session_seen(by: Seer, session: SessionId) -> Option<(Record, SessionRow)>;

        /// The same with the rule facts of its log, read at one moment.
        Read fn session_with_log(by: Seer, session: SessionId) -> Option<(Record, SessionRow, Loaded)>;

        /// A page of the sessions that this person may see, the ones with the newest activity first.
        Read fn sessions(query: SessionsQuery) -> Vec<SessionRow>;

        /// The number of open sessions that this person may see, and of those that need them, among the newest.
        Read fn session_counts(by: Seer) -> SessionCounts;

        /// The sessions that go by this name among those that this person may see, also ended ones, the ones with the newest
        /// activity first.
        Read fn sessions_named(by: Seer, name: TypedName, limit: usize) -> Vec<SessionRow>;

        /// A page of a session's facts after a number: at most `limit`, and at most about `bytes` but at least one.
        Read fn facts(session: SessionId, after: Number, limit: usize, bytes: usize) -> Vec<StoredFact>;

        /// The same before a number: the newest of them, in ascending order, too.
        Read fn facts_before(session: SessionId, before: Number, limit: usize, bytes: usize) -> Vec<StoredFact>;

        /// A page of a session's turns, the newest first, before this one; words of more than `bytes` are left out.
        Read fn turns(session: SessionId, before: Option<Turn>, limit: usize, bytes: usize) -> Vec<TurnRow>;

        /// The words of these messages of a session. Words of more than `bytes` are left out, and so is what is another session's.
        Read fn messages_shown(session: SessionId, messages: Vec<MessageId>, bytes: usize) -> Vec<QueuedRow>;

        /// The story facts of one turn of some kinds (its words, say) at one moment: of each kind in order, at most about `bytes` but at
        /// least one.
        Read fn story(session: SessionId, turn: Turn, kinds: Vec<&'static str>, bytes: usize) -> Vec<Vec<StoredFact>>;

        /// The story facts of one kind in all turns of a session, the newest first: at most about `bytes` of them, but at least one.
        Read fn stories(session: SessionId, kind: String, bytes: usize) -> Vec<StoredFact>;

        /// The receipt of a message, with the access record of its session, whoever may see it.
        Read fn receipt(message: MessageId) -> Option<(Record, ReceiptRow)>;

        /// The same if this person may see it, or was told with it that the session is somebody else's now.
        Read fn receipt_seen(by: Seer, message: MessageId) -> Option<(Record, ReceiptRow)>;

        /// The receipts of a session's messages that are not final, in the order in which they will run.
        Read fn queue(session: SessionId) -> Vec<ReceiptRow>;

        /// The same with what a list of them shows. Words of more than `bytes` are left out: they are asked for one by one.
        Read fn queue_shown(session: SessionId, bytes: usize) -> Vec<QueuedRow>;

        /// The receipt of the message that a turn began with.
        Read fn turn(session: SessionId, turn: Turn) -> Option<ReceiptRow>;

        /// The same of the last turn that is over.
        Read fn last_turn(session: SessionId) -> Option<ReceiptRow>;

        /// Where and how a session acted under an epoch; none if it has not come so far.
        Read fn scope(session: SessionId, epoch: Epoch) -> Option<Scope>;

        /// A page of open bindings that this person may see, in order of their addresses, after this one.
        Read fn bindings(by: Seer, after: Option<Address>, limit: usize) -> Vec<BindingRow>;

        /// A question, with the access record of its session, whoever may see it.
        Read fn approval(approval: ApprovalId) -> Option<(Record, ApprovalRow)>;

        /// The same if this person may see it.
        Read fn approval_seen(by: Seer, approval: ApprovalId) -> Option<(Record, ApprovalRow)>;

        /// A page of the questions that this person may see.
        Read fn approvals(query: ApprovalsQuery) -> Vec<ApprovalRow>;

        /// The usage of some days in everything that this person may see: by day, agent and person, in this order.
        Read fn usage(query: UsageQuery) -> Vec<UsageRow>;

        /// A session that holds this claim now, and its org: of a claim with one place, the one that does.
        Read fn holder(claim: Claim) -> Option<(SessionId, OrgId)>;

        /// Every open session whose scope is in a worktree, of every org, in order of their ids.
        Read fn worktrees_in_use() -> Vec<WorktreeRow>;

        /// A page of the sessions that this person may see and that have changed, in the order of their last changes.
        Read fn heads(by: Seer, after: u64, limit: usize) -> Vec<Head>;

        /// The same with the sessions whose row is another one for this person although nothing was appended: because of a
        /// grant, a group, or another owner. One that they could see then and may not now is among them.
        Read fn row_changes(by: Seer, after: u64, limit: usize) -> Vec<RowChange>;

        /// The place of the last change of all.
        Read fn last_place() -> u64;
    }

    /// Search of what was said. It follows the log at a distance: nobody who appends waits for it.
    pub trait Search {
        /// Makes what was said in the next turns that are over findable, at most so many of them, and says whether there may be
        /// more. One transaction; what was done is not done again after a restart.
        Write fn index_passages(turns_max: usize) -> bool;

        /// The passages with these keywords in what this person may see, the newest first.
        Read fn search(query: PassagesQuery) -> Vec<FoundPassage>;
    }

    /// Coming in: credentials, passwords, links and names elsewhere.
    pub trait Credentials {
        /// The machine's person, who owns the first org: the one that is stored, or this one if there is none yet. There is no
        /// password until they set one.
        Write fn host(fresh: NewOrg) -> Principal;

        /// Whose credential this is, and what they may do now; none if it is unknown, has expired, was not used for too long,
        /// belongs to a turn that is over, or its person is disabled. A browser's secret that was just replaced still counts.
        Read fn token(hash: [u8; 32], now: Moment) -> Option<Principal>;

        /// The same, for a credential that was seen before.
        Read fn principal(credential: TokenId, now: Moment) -> Option<Principal>;

        /// Makes a credential without anybody's wish: the machine's own, a turn's.
        ///
        /// A machine's credential takes the place of every other one of its person, so that replacing the file in the data
        /// directory revokes what was in it. Whatever had expired when it was made is cleared away with them. A turn's takes
        /// the place of every other one of its session.
        Write fn add_token(token: TokenRow) -> ();

        /// Writes down when credentials were last used. May be late, and may be lost.
        Write fn touch_tokens(used: Vec<(TokenId, Moment)>) -> ();

        /// Puts a new secret in the place of a browser's old one, which counts until `old_until`. Answers whether it was there.
        Write fn rotate_token(token: TokenId, hash: [u8; 32], now: Moment, old_until: Moment) -> bool;

        /// The person who is meant by what somebody typed to sign in: an e-mail address, `NAME`, or `ORG/NAME`. None
        /// unless it is exactly one person.
        Read fn login(typed: String) -> Option<LoginRow>;

        /// Lets somebody in who has proved who they are. One transaction with its audit entry. Answers `false`, and changes
        /// nothing, if their standing is no longer the one that was seen.
        Write fn sign_in(sign_in: SignedIn) -> bool;

        /// Whose link this is, without spending it; none if there is no such link any more.
        Read fn link(hash: [u8; 32], now: Moment) -> Option<LoginRow>;

        /// Spends a link, and lets in whose it is if there is a credential for them. One transaction with its audit entry: it
        /// works once. None if there is no such link any more, it has expired, or its person is disabled.
        Write fn spend_link(hash: [u8; 32], token: Option<NewToken>, trail: Trail) -> Option<LoginRow>;

        /// The person whom an identity provider knows by this name; none if there is nobody yet.
        Read fn identity(issuer: String, subject: String) -> Option<LoginRow>;

        /// The sign-in that a person has given for their own turns with an agent, sealed; none if they have not.
        Read fn account(org: OrgId, person: PersonId, agent: String) -> Option<AccountRow>;

        /// Keeps somebody's own sign-in, in place of whatever they gave before. One transaction with its audit entry.
        Write fn set_account(by: Principal, account: NewAccount) -> ();

        /// Forgets it, and says whether there was one. One transaction with its audit entry.
        Write fn remove_account(by: Principal, agent: String, trail: Trail) -> bool;

        /// Tells whoever came with this credential there from now on, in place of where they were told before with it, and of whoever
        /// was told in that browser. Of more than `PUSHES_MAX` of a person the oldest go. One transaction with its audit entry. Answers
        /// `false`, and changes nothing, if they have no credential that is kept.
        Write fn set_push(by: Principal, push: NewPush) -> bool;

        /// Tells this person nothing there any more, and says whether they were told. One transaction with its audit entry.
        Write fn remove_push(by: Principal, token: TokenId, trail: Trail) -> bool;

        /// Forgets a place that is not there any more, unless another one has taken its place since.
        Write fn forget_push(token: TokenId, endpoint: String) -> ();

        /// The places where this person is told, the oldest first; of an org's people, if nobody is named.
        Read fn pushes(org: OrgId, person: Option<PersonId>) -> Vec<PushRow>;

        /// The place that belongs to this credential.
        Read fn push(token: TokenId) -> Option<PushRow>;
    }

    /// The people of an org, and who may do what.
    pub trait People {
        /// Changes who may do what. One transaction (`change::change`): whoever asks as they are now, the key, the rows that the
        /// change is judged by; then the change, its audit entry, the standing of everybody whom it touches, and a `Recheck` in
        /// the inbox of every session where one of them has something unfinished. A refusal is in the audit, too.
        Door fn change(by: Principal, new: NewChange) -> WriteOutcome<(), PeopleRefusal>;

        /// The orgs of this machine.
        Read fn orgs() -> Vec<OrgRow>;

        /// One org.
        Read fn org(org: OrgId) -> Option<OrgRow>;

        /// A page of an org's people, in order of their handles, after this one.
        Read fn people(org: OrgId, after: Option<String>, limit: usize) -> Vec<PersonRow>;

        /// One of an org's people.
        Read fn person(org: OrgId, person: PersonId) -> Option<PersonRow>;

        /// One of an org's people, by their handle or e-mail address.
        Read fn person_named(org: OrgId, name: String) -> Option<PersonRow>;

        /// An org's groups, with who is in them.
        Read fn groups(org: OrgId) -> Vec<GroupRow>;

        /// The grants on something of this org.
        Read fn grants(org: OrgId, on: Resource) -> Vec<GrantRow>;

        /// The directories of this org that may be chosen, and by whom.
        Read fn roots(org: OrgId) -> Vec<RootRow>;

        /// The org's rules for what agents ask, in the order in which they were made; also those whose time is over.
        Read fn rules(org: OrgId) -> Vec<RuleRow>;

        /// The room that the words in somebody's sessions take.
        Read fn disk_use(org: OrgId, person: PersonId) -> DiskUse;

        /// The same of everybody on this machine.
        Read fn disk_totals() -> DiskTotals;

        /// The offers of sessions to or from somebody, in the order in which they were made; also those that have lapsed.
        Read fn offers(org: OrgId, person: PersonId) -> Vec<OfferRow>;

        /// The credentials of a person, the newest first; without the machine's and those of turns.
        Read fn tokens(org: OrgId, person: PersonId) -> Vec<TokenView>;
    }

    /// The audit: refusals that had no transaction of their own, pages, and the chain of seals.
    pub trait AuditLog {
        /// Writes down that something was refused.
        Write fn audit(entry: AuditEntry) -> ();

        /// A page of an org's audit, newest first.
        Read fn audit_page(query: AuditQuery) -> Vec<AuditRow>;

        /// Chains entries that are not sealed yet, in the order in which they were written, each org's for itself. Answers how
        /// many there were. One transaction.
        Write fn seal_audit(key: ChainKey, limit: usize) -> usize;

        /// A page of an org's sealed entries in the order of the chain, after a number, for whoever verifies it.
        Read fn sealed(org: OrgId, after: u64, limit: usize) -> Vec<AuditRow>;

        /// The columns by which these entries are found, of the same page: what is missing of them here hides an entry from whoever
        /// asks for a part.
        Read fn sealed_keys(org: OrgId, after: u64, limit: usize) -> Vec<AuditKeys>;

        /// Where the org's chain ends.
        Read fn chain_head(org: OrgId) -> ChainHead;
    }

    /// Replies that still have to leave through a door.
    pub trait Outbox {
        /// Takes replies that are due for addresses of these schemes, the first to each address; what is to be sent is durably
        /// *sending* before this answers. A start that was replaced gets nothing.
        Write fn outbox_take(take: TakeOutgoing) -> TakenOutgoing;

        /// Settles the try with this number, which was to send a reply or to read it back. Answers whether it could
        /// (`Outgoing::after`).
        Write fn outbox_settle(outgoing: u64, tries: u32, became: Became, now: Moment) -> bool;

        /// A page of an org's replies in this state, or in any, oldest first, after this one.
        Read fn outbox_list(org: OrgId, state: Option<OutgoingState>, after: u64, limit: usize) -> Vec<Outgoing>;

        /// Settles a reply by hand. One transaction with its audit entry.
        Write fn outbox_by_hand(by: Arc<Principal>, new: SettleByHand) -> WriteOutcome<(), Rejection>;

        /// Forgets up to `limit` replies that were sent before this moment, and says how many.
        Write fn outbox_clear(before: Moment, limit: usize) -> usize;
    }

    /// When sessions are due, and what a start has to look after.
    pub trait Timers {
        /// The earliest moment at which some session is due.
        Read fn next_wake() -> Option<Moment>;

        /// Puts a `Wake` into the inbox of up to `limit` sessions that are due, and says which. One transaction.
        Door fn wake(now: Moment, limit: usize) -> Vec<SessionId>;

        /// Sessions with a turn under way or something in the inbox, in order of their ids, after this one.
        Read fn unfinished(after: Option<SessionId>, limit: usize) -> Vec<SessionId>;
    }

    /// The node that holds the store.
    pub trait Nodes {
        /// Every node there is.
        Read fn nodes() -> Vec<NodeRow>;

        /// Where this node can be reached.
        Write fn announce(url: String) -> ();
    }
}

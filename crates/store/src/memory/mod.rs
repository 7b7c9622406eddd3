//! A store that forgets when its last handle is dropped: for the simulation and for tests.
//!
//! Everything is in ordered maps behind one lock, so the same calls give the same answers in the same order. A handle is
//! one start of a node: `reopen` makes another one, under a higher term, on the same contents, as if the process had
//! been killed in between. `contents` says what is kept, `way_in`, `append`, `read`, `search`, `people` with `change`, and `audit` are
//! the port's methods, each one step under the lock: first everything that may refuse, then everything that changes.

mod append;
mod audit;
mod change;
mod contents;
mod outbox;
mod people;
mod read;
mod search;
mod way_in;

pub use contents::Snapshot;

use crate::plan::drive;
use crate::*;
use bytes::Bytes;
use contents::Contents;
use kernel::{
    Act, Address, ApprovalId, Claim, Fact, Grant, Grantee, MessageId, Moment, Named, NodeId, Number, OrgId,
    PersonId, Principal, Record, RequestId, SessionId, Term, To, TokenId, Turn,
};
use std::sync::{Arc, Mutex, MutexGuard};

/// One start of a node on contents that live in memory. Clones are the same start.
#[derive(Clone)]
pub struct MemoryStore {
    node: NodeRow,
    contents: Arc<Mutex<Contents>>,
}

impl MemoryStore {
    /// An empty store, under the first term.
    pub fn new(node: NodeId) -> Self {
        let node = NodeRow {
            node,
            term: Term(crate::TERMS_PER_START),
            host: "memory".into(),
            pid: 0,
            since: Moment(0),
            url: None,
        };
        Self { node: node.clone(), contents: Arc::new(Mutex::new(Contents::new(node))) }
    }

    /// Another start on the same contents, under a higher term. The old handle goes on working: whoever still holds it
    /// is a keeper that does not know yet that it was replaced.
    pub fn reopen(&self) -> Self {
        let node = self.lock().reopen();
        Self { node, contents: Arc::clone(&self.contents) }
    }

    /// Everything a checker may want to look at, as it is now.
    pub fn snapshot(&self) -> Snapshot {
        self.lock().snapshot()
    }

    /// Gives somebody a grant on a session, or takes it away, as if its owner had.
    pub fn grant(&self, session: SessionId, person: PersonId, grant: Option<Grant>) {
        self.lock().force_grant(session, person, grant);
    }

    /// Puts a reply into the outbox, as if a keeper had, and says which.
    pub fn post(&self, org: OrgId, session: SessionId, reply: NewOutgoing, now: Moment) -> u64 {
        self.lock().post(org, session, reply, now)
    }

    /// From here on this person may do nothing, as if an owner had said so.
    pub fn disable(&self, person: PersonId) {
        self.lock().force_disable(person);
    }

    /// Lets somebody in, as if an owner had, and says what they may do.
    pub fn let_in(&self, org: OrgId, person: NewPerson) -> Principal {
        self.lock().force_in(org, person)
    }

    /// Lets somebody choose directories under this one, as if an admin had.
    pub fn root(&self, org: OrgId, directory: &str, to: Grantee) {
        self.lock().force_root(org, directory, to);
    }

    /// Changes an audit entry behind everybody's back.
    pub fn tamper(&self, org: OrgId, entry: u64) {
        self.lock().tamper(org, entry);
    }

    /// Takes every checkpoint away.
    pub fn drop_checkpoints(&self) {
        self.lock().drop_checkpoints();
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().expect("no method panics while it holds the lock")
    }

    /// One step under the lock, when the answer is first asked for; a call that nobody awaits has not happened.
    fn step<'a, T, F>(&'a self, step: F) -> Reply<'a, T>
    where
        F: FnOnce(&mut Contents) -> T + Send + 'a,
        T: Send + 'a,
    {
        Box::pin(async move { Ok(step(&mut self.lock())) })
    }

    /// The same for a step that can go wrong.
    fn try_step<'a, T, F>(&'a self, step: F) -> Reply<'a, T>
    where
        F: FnOnce(&mut Contents) -> Result<T, StoreError> + Send + 'a,
        T: Send + 'a,
    {
        Box::pin(async move { step(&mut self.lock()) })
    }
}

impl WayIn for MemoryStore {
    fn named(&self, by: Seer, id: SessionId) -> Reply<'_, Vec<Named>> {
        self.step(move |contents| {
            let named = contents.named(by.org, id).into_iter();
            named.filter(|named| by.sees(&named.record)).collect()
        })
    }
    fn accept(&self, by: Arc<Principal>, new: NewMessage) -> Reply<'_, WriteOutcome<Accepted, Rejection>> {
        self.try_step(move |contents| drive::say(contents, &by, new))
    }
    fn create(&self, by: Arc<Principal>, new: Create) -> Reply<'_, WriteOutcome<SessionId, Rejection>> {
        self.try_step(move |contents| drive::make(contents, &by, new))
    }
    fn ask(&self, by: Arc<Principal>, new: NewRequest) -> Reply<'_, WriteOutcome<Asked, Rejection>> {
        self.try_step(move |contents| drive::ask(contents, &by, new))
    }
    fn answer_for(&self, org: OrgId, person: PersonId, key: Key, now: Moment) -> Reply<'_, KeyAnswer> {
        self.step(move |contents| {
            let row = contents.key_row(org, person, &key);
            plan::key_answer(Some(&key), row.as_ref(), now)
        })
    }
    fn verdict(&self, request: RequestId) -> Reply<'_, Option<Verdict>> {
        self.step(move |contents| contents.verdicts.get(&request).cloned())
    }
    fn rebind(&self, by: Arc<Principal>, new: Rebind) -> Reply<'_, WriteOutcome<(), Rejection>> {
        self.try_step(move |contents| drive::rebind(contents, &by, new))
    }
    fn retitle(&self, by: Arc<Principal>, new: Retitle) -> Reply<'_, WriteOutcome<(), Rejection>> {
        self.try_step(move |contents| drive::retitle(contents, &by, new))
    }
    fn mark(&self, by: Arc<Principal>, new: Mark) -> Reply<'_, WriteOutcome<Marks, Rejection>> {
        self.try_step(move |contents| drive::mark(contents, &by, new))
    }
}

impl Log for MemoryStore {
    fn load(&self, session: SessionId) -> Reply<'_, Option<Loaded>> {
        self.step(move |contents| contents.load(session))
    }
    fn inbox(&self, session: SessionId, limit: usize) -> Reply<'_, Vec<InboxRow>> {
        self.step(move |contents| contents.inbox(session, limit))
    }
    fn append(&self, append: Append) -> Reply<'_, Appending> {
        self.try_step(move |contents| contents.append(append))
    }
    fn checkpoint(&self, session: SessionId, at: Number, facts: Vec<Fact>) -> Reply<'_, ()> {
        self.step(move |contents| contents.checkpoint(session, at, facts))
    }
    fn words(&self, message: MessageId) -> Reply<'_, Option<Bytes>> {
        self.step(move |contents| contents.messages.get(&message).map(|said| said.words.clone()))
    }
    fn attachments(&self, message: MessageId) -> Reply<'_, Vec<Bytes>> {
        self.step(move |contents| contents.attachments(message))
    }
    fn attachment(&self, message: MessageId, number: u32) -> Reply<'_, Option<Bytes>> {
        self.step(move |contents| {
            let at = (number as usize).checked_sub(1)?;
            contents.messages.get(&message)?.attachments.get(at).map(|attached| attached.content.clone())
        })
    }
    fn may_say(&self, session: SessionId, person: PersonId) -> Reply<'_, bool> {
        self.step(move |contents| contents.may_do(session, person, Act::Say))
    }
    fn may_rule(&self, session: SessionId, person: PersonId) -> Reply<'_, bool> {
        self.step(move |contents| contents.may_do(session, person, Act::Manage))
    }
}

impl Views for MemoryStore {
    fn find(&self, by: Seer, whose: Option<PersonId>, to: To) -> Reply<'_, Finding> {
        self.step(move |contents| contents.find(&by, whose, &to))
    }
    fn whereabouts(&self, by: Seer, thing: Thing) -> Reply<'_, Option<Whereabouts>> {
        self.step(move |contents| contents.whereabouts(&by, thing))
    }
    fn session(&self, session: SessionId) -> Reply<'_, Option<(Record, SessionRow)>> {
        self.step(move |contents| contents.session(session))
    }
    fn session_seen(&self, by: Seer, session: SessionId) -> Reply<'_, Option<(Record, SessionRow)>> {
        self.step(move |contents| contents.session_seen(&by, session))
    }
    fn session_with_log(
        &self,
        by: Seer,
        session: SessionId,
    ) -> Reply<'_, Option<(Record, SessionRow, Loaded)>> {
        self.step(move |contents| {
            let (record, row) = contents.session_seen(&by, session)?;
            Some((record, row, contents.load(session)?))
        })
    }
    fn sessions(&self, query: SessionsQuery) -> Reply<'_, Vec<SessionRow>> {
        self.step(move |contents| contents.sessions(&query))
    }
    fn session_counts(&self, by: Seer) -> Reply<'_, SessionCounts> {
        self.step(move |contents| contents.session_counts(&by))
    }
    fn sessions_named(&self, by: Seer, name: TypedName, limit: usize) -> Reply<'_, Vec<SessionRow>> {
        self.step(move |contents| contents.sessions_named(&by, &name, limit))
    }
    fn facts(
        &self,
        session: SessionId,
        after: Number,
        limit: usize,
        bytes: usize,
    ) -> Reply<'_, Vec<StoredFact>> {
        self.step(move |contents| contents.facts(session, after, limit, bytes))
    }
    fn story(
        &self,
        session: SessionId,
        turn: Turn,
        kinds: Vec<&'static str>,
        bytes: usize,
    ) -> Reply<'_, Vec<Vec<StoredFact>>> {
        self.step(move |contents| {
            kinds.iter().map(|kind| contents.story(session, turn, kind, bytes)).collect()
        })
    }
    fn stories(&self, session: SessionId, kind: String, bytes: usize) -> Reply<'_, Vec<StoredFact>> {
        self.step(move |contents| contents.stories(session, &kind, bytes))
    }
    fn receipt(&self, message: MessageId) -> Reply<'_, Option<(Record, ReceiptRow)>> {
        self.step(move |contents| contents.receipt_and_record(message))
    }
    fn receipt_seen(&self, by: Seer, message: MessageId) -> Reply<'_, Option<(Record, ReceiptRow)>> {
        self.step(move |contents| contents.receipt_seen(&by, message))
    }
    fn queue(&self, session: SessionId) -> Reply<'_, Vec<ReceiptRow>> {
        self.step(move |contents| contents.queue(session))
    }
    fn turn(&self, session: SessionId, turn: Turn) -> Reply<'_, Option<ReceiptRow>> {
        self.step(move |contents| contents.turn(session, turn))
    }
    fn last_turn(&self, session: SessionId) -> Reply<'_, Option<ReceiptRow>> {
        self.step(move |contents| contents.last_turn(session))
    }
    fn scope(&self, session: SessionId, epoch: kernel::Epoch) -> Reply<'_, Option<kernel::Scope>> {
        self.step(move |contents| contents.scope(session, epoch))
    }
    fn facts_before(
        &self,
        session: SessionId,
        before: Number,
        limit: usize,
        bytes: usize,
    ) -> Reply<'_, Vec<StoredFact>> {
        self.step(move |contents| contents.facts_before(session, before, limit, bytes))
    }
    fn turns(
        &self,
        session: SessionId,
        before: Option<Turn>,
        limit: usize,
        bytes: usize,
    ) -> Reply<'_, Vec<TurnRow>> {
        self.step(move |contents| contents.turns(session, before, limit, bytes))
    }
    fn messages_shown(
        &self,
        session: SessionId,
        messages: Vec<MessageId>,
        bytes: usize,
    ) -> Reply<'_, Vec<QueuedRow>> {
        self.step(move |contents| contents.messages_shown(session, &messages, bytes))
    }
    fn queue_shown(&self, session: SessionId, bytes: usize) -> Reply<'_, Vec<QueuedRow>> {
        self.step(move |contents| contents.queue_shown(session, bytes))
    }
    fn bindings(&self, by: Seer, after: Option<Address>, limit: usize) -> Reply<'_, Vec<BindingRow>> {
        self.step(move |contents| contents.bindings(&by, after.as_ref(), limit))
    }
    fn approval(&self, approval: ApprovalId) -> Reply<'_, Option<(Record, ApprovalRow)>> {
        self.step(move |contents| contents.approval(approval))
    }
    fn approval_seen(&self, by: Seer, approval: ApprovalId) -> Reply<'_, Option<(Record, ApprovalRow)>> {
        self.step(move |contents| contents.approval_seen(&by, approval))
    }
    fn approvals(&self, query: ApprovalsQuery) -> Reply<'_, Vec<ApprovalRow>> {
        self.step(move |contents| contents.approvals(&query))
    }
    fn usage(&self, query: UsageQuery) -> Reply<'_, Vec<UsageRow>> {
        self.step(move |contents| contents.usage(&query))
    }
    fn holder(&self, claim: Claim) -> Reply<'_, Option<(SessionId, OrgId)>> {
        self.step(move |contents| contents.holder(&claim))
    }
    fn worktrees_in_use(&self) -> Reply<'_, Vec<WorktreeRow>> {
        self.step(|contents| contents.worktrees_in_use())
    }
    fn heads(&self, by: Seer, after: u64, limit: usize) -> Reply<'_, Vec<Head>> {
        self.step(move |contents| contents.heads(&by, after, limit))
    }
    fn row_changes(&self, by: Seer, after: u64, limit: usize) -> Reply<'_, Vec<RowChange>> {
        self.step(move |contents| contents.row_changes(&by, after, limit))
    }
    fn last_place(&self) -> Reply<'_, u64> {
        self.step(|contents| contents.last_place())
    }
}

impl Search for MemoryStore {
    fn index_passages(&self, turns_max: usize) -> Reply<'_, bool> {
        self.step(move |contents| contents.index_passages(turns_max))
    }
    fn search(&self, query: PassagesQuery) -> Reply<'_, Vec<FoundPassage>> {
        self.step(move |contents| contents.search(&query))
    }
}

impl Credentials for MemoryStore {
    fn host(&self, fresh: NewOrg) -> Reply<'_, Principal> {
        self.try_step(move |contents| {
            let host = crate::change::host(contents, fresh, Moment(0))?;
            contents.committed();
            Ok(host.expect("the host was put there before"))
        })
    }
    fn token(&self, hash: [u8; 32], now: Moment) -> Reply<'_, Option<Principal>> {
        self.step(move |contents| contents.token(hash, now))
    }
    fn principal(&self, credential: TokenId, now: Moment) -> Reply<'_, Option<Principal>> {
        self.step(move |contents| contents.principal(credential, now))
    }
    fn add_token(&self, token: TokenRow) -> Reply<'_, ()> {
        self.try_step(move |contents| {
            contents.committed();
            crate::change::add_token(contents, token)
        })
    }
    fn touch_tokens(&self, used: Vec<(TokenId, Moment)>) -> Reply<'_, ()> {
        self.step(move |contents| contents.touch_tokens(used))
    }
    fn rotate_token(
        &self,
        token: TokenId,
        hash: [u8; 32],
        now: Moment,
        old_until: Moment,
    ) -> Reply<'_, bool> {
        self.try_step(move |contents| {
            contents.committed();
            crate::change::rotate_token(contents, token, hash, now, old_until)
        })
    }
    fn login(&self, typed: String) -> Reply<'_, Option<LoginRow>> {
        self.step(move |contents| contents.people.login(&typed))
    }
    fn sign_in(&self, sign_in: SignedIn) -> Reply<'_, bool> {
        self.try_step(move |contents| crate::change::sign_in(contents, sign_in))
    }
    fn link(&self, hash: [u8; 32], now: Moment) -> Reply<'_, Option<LoginRow>> {
        self.step(move |contents| contents.people.link(hash, now))
    }
    fn spend_link(
        &self,
        hash: [u8; 32],
        token: Option<NewToken>,
        trail: Trail,
    ) -> Reply<'_, Option<LoginRow>> {
        self.try_step(move |contents| crate::change::spend_link(contents, hash, token, &trail))
    }
    fn identity(&self, issuer: String, subject: String) -> Reply<'_, Option<LoginRow>> {
        self.step(move |contents| contents.people.identity(issuer, subject))
    }
    fn account(&self, org: OrgId, person: PersonId, agent: String) -> Reply<'_, Option<AccountRow>> {
        self.step(move |contents| contents.accounts.get(&(org, person, agent)).cloned())
    }
    fn set_account(&self, by: Principal, account: NewAccount) -> Reply<'_, ()> {
        self.step(move |contents| contents.set_account(&by, account))
    }
    fn remove_account(&self, by: Principal, agent: String, trail: Trail) -> Reply<'_, bool> {
        self.step(move |contents| contents.remove_account(&by, agent, &trail))
    }
    fn set_push(&self, by: Principal, push: NewPush) -> Reply<'_, bool> {
        self.step(move |contents| contents.set_push(&by, push))
    }
    fn remove_push(&self, by: Principal, token: TokenId, trail: Trail) -> Reply<'_, bool> {
        self.step(move |contents| contents.remove_push(&by, token, &trail))
    }
    fn forget_push(&self, token: TokenId, endpoint: String) -> Reply<'_, ()> {
        self.step(move |contents| contents.forget_push(token, &endpoint))
    }
    fn pushes(&self, org: OrgId, person: Option<PersonId>) -> Reply<'_, Vec<PushRow>> {
        self.step(move |contents| contents.people.pushes(org, person))
    }
    fn push(&self, token: TokenId) -> Reply<'_, Option<PushRow>> {
        self.step(move |contents| contents.people.push(token))
    }
}

impl People for MemoryStore {
    fn change(&self, by: Principal, new: NewChange) -> Reply<'_, WriteOutcome<(), PeopleRefusal>> {
        self.try_step(move |contents| crate::change::change(contents, &by, new))
    }
    fn orgs(&self) -> Reply<'_, Vec<OrgRow>> {
        self.step(|contents| contents.people.orgs())
    }
    fn org(&self, org: OrgId) -> Reply<'_, Option<OrgRow>> {
        self.step(move |contents| contents.people.org(org))
    }
    fn people(&self, org: OrgId, after: Option<String>, limit: usize) -> Reply<'_, Vec<PersonRow>> {
        self.step(move |contents| contents.people.page(org, after.as_deref(), limit))
    }
    fn person(&self, org: OrgId, person: PersonId) -> Reply<'_, Option<PersonRow>> {
        self.step(move |contents| contents.people.of(org, person).map(|kept| kept.row.clone()))
    }
    fn person_named(&self, org: OrgId, name: String) -> Reply<'_, Option<PersonRow>> {
        self.step(move |contents| contents.people.named(org, &name))
    }
    fn groups(&self, org: OrgId) -> Reply<'_, Vec<GroupRow>> {
        self.step(move |contents| contents.people.groups_of(org))
    }
    fn grants(&self, org: OrgId, on: Resource) -> Reply<'_, Vec<GrantRow>> {
        self.step(move |contents| contents.grants(org, on))
    }
    fn roots(&self, org: OrgId) -> Reply<'_, Vec<RootRow>> {
        self.step(move |contents| contents.people.roots_of(org))
    }
    fn rules(&self, org: OrgId) -> Reply<'_, Vec<RuleRow>> {
        self.step(move |contents| contents.people.rules_of(org))
    }
    fn disk_use(&self, org: OrgId, person: PersonId) -> Reply<'_, DiskUse> {
        self.step(move |contents| contents.disk_use(org, person))
    }
    fn disk_totals(&self) -> Reply<'_, DiskTotals> {
        self.step(|contents| contents.disk_totals())
    }
    fn offers(&self, org: OrgId, person: PersonId) -> Reply<'_, Vec<OfferRow>> {
        self.step(move |contents| contents.people.offers_of(org, person))
    }
    fn tokens(&self, org: OrgId, person: PersonId) -> Reply<'_, Vec<TokenView>> {
        self.step(move |contents| contents.people.tokens_of(org, person))
    }
}

impl AuditLog for MemoryStore {
    fn audit(&self, entry: AuditEntry) -> Reply<'_, ()> {
        self.step(move |contents| contents.refused(&entry))
    }
    fn audit_page(&self, query: AuditQuery) -> Reply<'_, Vec<AuditRow>> {
        self.step(move |contents| contents.audit_page(&query))
    }
    fn seal_audit(&self, key: ChainKey, limit: usize) -> Reply<'_, usize> {
        self.step(move |contents| contents.seal_audit(&key, limit))
    }
    fn sealed(&self, org: OrgId, after: u64, limit: usize) -> Reply<'_, Vec<AuditRow>> {
        self.step(move |contents| contents.sealed(org, after, limit))
    }

    fn sealed_keys(&self, org: OrgId, after: u64, limit: usize) -> Reply<'_, Vec<AuditKeys>> {
        self.step(move |contents| contents.sealed_keys(org, after, limit))
    }
    fn chain_head(&self, org: OrgId) -> Reply<'_, ChainHead> {
        self.step(move |contents| contents.chains.get(&org).copied().unwrap_or_default())
    }
}

impl Outbox for MemoryStore {
    fn outbox_take(&self, take: TakeOutgoing) -> Reply<'_, TakenOutgoing> {
        self.step(move |contents| contents.outbox_take(&self.node, &take))
    }
    fn outbox_settle(&self, outgoing: u64, tries: u32, became: Became, now: Moment) -> Reply<'_, bool> {
        self.step(move |contents| contents.outbox_settle(outgoing, tries, became, now))
    }
    fn outbox_list(
        &self,
        org: OrgId,
        state: Option<OutgoingState>,
        after: u64,
        limit: usize,
    ) -> Reply<'_, Vec<Outgoing>> {
        self.step(move |contents| contents.outbox_list(org, state, after, limit))
    }
    fn outbox_by_hand(
        &self,
        by: Arc<Principal>,
        new: SettleByHand,
    ) -> Reply<'_, WriteOutcome<(), Rejection>> {
        self.try_step(move |contents| drive::settle(contents, &by, new))
    }
    fn outbox_clear(&self, before: Moment, limit: usize) -> Reply<'_, usize> {
        self.step(move |contents| contents.outbox_clear(before, limit))
    }
}

impl Timers for MemoryStore {
    fn next_wake(&self) -> Reply<'_, Option<Moment>> {
        self.step(move |contents| contents.wakes().next().map(|(at, _)| at))
    }
    fn wake(&self, now: Moment, limit: usize) -> Reply<'_, Vec<SessionId>> {
        self.step(move |contents| contents.wake(now, limit))
    }
    fn unfinished(&self, after: Option<SessionId>, limit: usize) -> Reply<'_, Vec<SessionId>> {
        self.step(move |contents| contents.unfinished(after, limit))
    }
}

impl Nodes for MemoryStore {
    fn nodes(&self) -> Reply<'_, Vec<NodeRow>> {
        self.step(|contents| vec![contents.node.clone()])
    }
    fn announce(&self, url: String) -> Reply<'_, ()> {
        self.step(move |contents| contents.node.url = Some(url))
    }
}

impl Store for MemoryStore {
    fn node(&self) -> NodeRow {
        self.node.clone()
    }
    fn gauges(&self) -> Gauges {
        self.lock().gauges
    }
}

//! The store of a test as it is on a disk: writing takes its time, and an answer may get lost.

use kernel::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::*;

/// What is the matter with the disk. Nothing, at first.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// How long an append takes.
    pub(crate) append_ms: AtomicU64,
    /// The answer to the next append that ends a turn gets lost; the append does not.
    pub(crate) loses_end: Mutex<bool>,
    /// What becomes of the next session that is made.
    pub(crate) loses_create: Mutex<Option<Lost>>,
    /// How long it takes until we hear that a claim was refused.
    pub(crate) refusal_ms: AtomicU64,
}

/// What gets lost of a write.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lost {
    /// All of it: the disk was never reached.
    Write,
    /// The answer; it was written.
    Answer,
}

pub(crate) struct Disk {
    pub(crate) inner: MemoryStore,
    pub(crate) faults: std::sync::Arc<Faults>,
}

impl Disk {
    async fn make(&self, wish: Authorized<Create>) -> Result<Creation, StoreError> {
        let lost = self.faults.loses_create.lock().unwrap().take();
        match lost {
            Some(Lost::Write) => return Err(StoreError::Unknown("it never got there".to_owned())),
            Some(Lost::Answer) => {
                self.inner.create(wish).await?;
                return Err(StoreError::Unknown("the answer got lost".to_owned()));
            }
            None => {}
        }
        self.inner.create(wish).await
    }

    async fn write(&self, append: Append) -> Result<Appending, StoreError> {
        let ms = self.faults.append_ms.load(Ordering::Relaxed);
        if ms > 0 {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        let ends = append.facts.iter().any(|new| matches!(new.entry, Entry::Rule(Fact::TurnEnded { .. })));
        let written = self.inner.append(append).await?;
        if ends && std::mem::take(&mut *self.faults.loses_end.lock().unwrap()) {
            return Err(StoreError::Unknown("the answer got lost".to_owned()));
        }
        let ms = self.faults.refusal_ms.load(Ordering::Relaxed);
        if ms > 0 && matches!(written, Appending::Claimed(_)) {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        Ok(written)
    }
}

macro_rules! pass {
    ($($name:ident($($arg:ident: $of:ty),*) -> $out:ty;)*) => {$(
        fn $name(&self, $($arg: $of),*) -> Reply<'_, $out> {
            self.inner.$name($($arg),*)
        }
    )*};
}

impl Store for Disk {
    fn append(&self, append: Append) -> Reply<'_, Appending> {
        Box::pin(self.write(append))
    }
    fn create(&self, wish: Authorized<Create>) -> Reply<'_, Creation> {
        Box::pin(self.make(wish))
    }
    fn node(&self) -> NodeRow {
        self.inner.node()
    }
    fn gauges(&self) -> Gauges {
        self.inner.gauges()
    }

    pass! {
        find(org: OrgId, to: To) -> Finding;
        named(org: OrgId, id: SessionId) -> Vec<kernel::Named>;
        accept(wish: Authorized<NewMessage>) -> Acceptance;
        ask(wish: Authorized<NewRequest>) -> Asking;
        verdict(request: RequestId) -> Option<Verdict>;
        rebind(wish: Authorized<Rebind>) -> Rebinding;
        permit(wish: Authorized<Permit>) -> Permitting;
        retitle(wish: Authorized<Retitle>) -> Retitling;
        audit(entry: AuditEntry) -> ();
        load(session: SessionId) -> Option<Loaded>;
        inbox(session: SessionId, limit: usize) -> Vec<InboxRow>;
        checkpoint(session: SessionId, at: Number, facts: Vec<Fact>) -> ();
        words(message: MessageId) -> Option<bytes::Bytes>;
        next_wake() -> Option<Moment>;
        wake(now: Moment, limit: usize) -> Vec<SessionId>;
        unfinished(after: Option<SessionId>, limit: usize) -> Vec<SessionId>;
        outbox_take(now: Moment, limit: usize) -> Vec<Outgoing>;
        outbox_settle(outgoing: u64, became: Became) -> bool;
        outbox_list(state: OutgoingState, limit: usize) -> Vec<Outgoing>;
        session(session: SessionId) -> Option<(Record, SessionRow)>;
        sessions(query: SessionsQuery) -> Vec<SessionRow>;
        facts(session: SessionId, after: Number, limit: usize, bytes: usize) -> Vec<StoredFact>;
        story(session: SessionId, turn: Turn, kind: String, bytes: usize) -> Vec<StoredFact>;
        receipt(message: MessageId) -> Option<(Record, ReceiptRow)>;
        queue(session: SessionId) -> Vec<ReceiptRow>;
        turn(session: SessionId, turn: Turn) -> Option<ReceiptRow>;
        last_turn(session: SessionId) -> Option<ReceiptRow>;
        scope(session: SessionId, epoch: Epoch) -> Option<Scope>;
        bindings(by: Seer, after: Option<Address>, limit: usize) -> Vec<BindingRow>;
        approval(approval: ApprovalId) -> Option<(Record, ApprovalRow)>;
        approvals(by: Seer, limit: usize) -> Vec<ApprovalRow>;
        holder(claim: Claim) -> Option<(SessionId, OrgId)>;
        worktrees_in_use() -> Vec<WorktreeRow>;
        rules(org: OrgId) -> Vec<RuleRow>;
        heads(by: Seer, after: u64, limit: usize) -> Vec<Head>;
        host(fresh: NewOrg) -> Principal;
        token(hash: [u8; 32], now: Moment) -> Option<Principal>;
        principal(credential: TokenId, now: Moment) -> Option<Principal>;
        may_say(session: SessionId, person: PersonId) -> bool;
        add_token(token: TokenRow) -> ();
        touch_tokens(used: Vec<(TokenId, Moment)>) -> ();
        rotate_token(token: TokenId, hash: [u8; 32], now: Moment, old_until: Moment) -> bool;
        login(typed: String) -> Option<LoginRow>;
        sign_in(sign_in: SignedIn) -> bool;
        link(hash: [u8; 32], now: Moment) -> Option<LoginRow>;
        spend_link(hash: [u8; 32], token: Option<LinkToken>, trail: Trail) -> Option<LoginRow>;
        identity(issuer: String, subject: String) -> Option<LoginRow>;
        change(wish: Authorized<NewChange>) -> Changing;
        orgs() -> Vec<OrgRow>;
        org(org: OrgId) -> Option<OrgRow>;
        people(org: OrgId, after: Option<String>, limit: usize) -> Vec<PersonRow>;
        person(org: OrgId, person: PersonId) -> Option<PersonRow>;
        person_named(org: OrgId, name: String) -> Option<PersonRow>;
        groups(org: OrgId) -> Vec<GroupRow>;
        grants(org: OrgId, on: Resource) -> Vec<GrantRow>;
        roots(org: OrgId) -> Vec<RootRow>;
        tokens(org: OrgId, person: PersonId) -> Vec<TokenView>;
        audit_page(query: AuditQuery) -> Vec<AuditRow>;
        seal_audit(key: ChainKey, limit: usize) -> usize;
        sealed(org: OrgId, after: u64, limit: usize) -> Vec<AuditRow>;
        chain_head(org: OrgId) -> ChainHead;
        account(org: OrgId, person: PersonId, agent: String) -> Option<AccountRow>;
        set_account(by: Principal, account: NewAccount) -> ();
        remove_account(by: Principal, agent: String, trail: Trail) -> bool;
        nodes() -> Vec<NodeRow>;
        announce(url: String) -> ();
    }
}

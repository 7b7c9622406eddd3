//! The store itself: the port's methods, each handed to the writer or to a reader.

use crate::error::SqliteError;
use crate::lock::Lock;
use crate::open::{self, OpenError, Opened, Options};
use crate::reader::Reader;
use crate::writer::Writer;
use crate::{
    append, approvals, audit, counts, log, names, offers, outbox, past, people, pushes, row_changes, rules,
    search, sight, timer, tokens, tx::SqliteTx, usage, view, way_in,
};
use bytes::Bytes;
use kernel::{
    Act, Address, ApprovalId, Claim, Epoch, Fact, MessageId, Moment, Named, Number, OrgId, PersonId,
    Principal, Record, RequestId, Scope, SessionId, To, TokenId, Turn,
};
use rusqlite::Connection;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use store::plan::drive;
use store::*;

/// One directory with one SQLite file, held by this process.
pub struct SqliteStore {
    // In this order they go: nobody reads or writes any more when the directory is let go.
    reader: Reader,
    writer: Writer,
    node: Mutex<NodeRow>,
    /// True if any session has come here under another id. Where none has, nobody asks for one.
    has_imports: AtomicBool,
    lock: Lock,
}

impl SqliteStore {
    /// Takes the directory and opens what is in it, or says why not. A directory that is empty, or not there, becomes a
    /// new store; one that cannot be used is left as it is.
    pub fn open(dir: &Path, options: &Options) -> Result<Self, OpenError> {
        let Opened { lock, files, tx, node } = open::open(dir, options)?;
        let has_imports = AtomicBool::new(
            view::any_imports(tx.db()).map_err(|error| OpenError::Damaged(error.to_string()))?,
        );
        let reader = Reader::start(&files)?;
        let writer = Writer::start(files, tx)?;
        Ok(Self { reader, writer, node: Mutex::new(node), has_imports, lock })
    }

    fn write<'a, T, F>(&'a self, bytes: usize, work: F) -> Reply<'a, T>
    where
        T: Send + 'static,
        F: FnMut(&mut SqliteTx) -> Result<T, SqliteError> + Send + 'static,
    {
        Box::pin(self.writer.change(bytes, work))
    }

    /// The same for what changes people or credentials: what the writer remembers of them is read again.
    fn write_people<'a, T, F>(&'a self, bytes: usize, mut work: F) -> Reply<'a, T>
    where
        T: Send + 'static,
        F: FnMut(&mut SqliteTx) -> Result<T, SqliteError> + Send + 'static,
    {
        self.write(bytes, move |tx| {
            tx.forget_people();
            let done = work(tx);
            tx.forget_people();
            done
        })
    }

    fn ask_reader<'a, T, F>(&'a self, work: F) -> Reply<'a, T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, SqliteError> + Send + 'static,
    {
        Box::pin(self.reader.ask(work))
    }

    /// The same for one thing that is found by a key: few pages, so whoever asks may read them where they are.
    fn ask_here<'a, T, F>(&'a self, work: F) -> Reply<'a, T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, SqliteError> + Send + 'static,
    {
        Box::pin(self.reader.ask_here(work))
    }

    async fn announced(&self, url: String) -> Result<(), StoreError> {
        let node = {
            let mut node = self.node.lock().unwrap_or_else(PoisonError::into_inner);
            node.url = Some(url.clone());
            node.clone()
        };
        let signed = self.lock.sign(&open::holder(&node));
        signed.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        self.writer.change(0, move |tx| people::announce(tx, node.term, &url)).await
    }
}

impl WayIn for SqliteStore {
    fn named(&self, by: Seer, id: SessionId) -> Reply<'_, Vec<Named>> {
        if !self.has_imports.load(Ordering::Acquire) {
            return Box::pin(std::future::ready(Ok(Vec::new())));
        }
        self.ask_reader(move |db| sight::named(db, &by, id))
    }
    fn accept(&self, by: Arc<Principal>, new: NewMessage) -> Reply<'_, WriteOutcome<Accepted, Rejection>> {
        let bytes = new.words.len() + attached_bytes(&new.attachments) as usize;
        self.write(bytes, move |tx| drive::say(tx, &by, new.clone()))
    }
    fn create(&self, by: Arc<Principal>, new: Create) -> Reply<'_, WriteOutcome<SessionId, Rejection>> {
        let bytes = new.past.as_ref().map_or(0, Past::bytes);
        if new.past.is_some() {
            self.has_imports.store(true, Ordering::Release); // Before it is there, so that nobody misses it.
        }
        self.write(bytes, move |tx| drive::make(tx, &by, new.clone()))
    }
    fn ask(&self, by: Arc<Principal>, new: NewRequest) -> Reply<'_, WriteOutcome<Asked, Rejection>> {
        let attached = new.attachments.as_deref().map_or(0, attached_bytes);
        let bytes = new.words.as_ref().map_or(0, Bytes::len) + attached as usize;
        self.write(bytes, move |tx| drive::ask(tx, &by, new.clone()))
    }
    fn answer_for(&self, org: OrgId, person: PersonId, key: Key, now: Moment) -> Reply<'_, KeyAnswer> {
        self.ask_here(move |db| way_in::answer_for(db, org, person, &key, now))
    }
    fn verdict(&self, request: RequestId) -> Reply<'_, Option<Verdict>> {
        self.ask_here(move |db| log::verdict(db, request))
    }
    fn rebind(&self, by: Arc<Principal>, new: Rebind) -> Reply<'_, WriteOutcome<(), Rejection>> {
        self.write(0, move |tx| drive::rebind(tx, &by, new.clone()))
    }
    fn retitle(&self, by: Arc<Principal>, new: Retitle) -> Reply<'_, WriteOutcome<(), Rejection>> {
        self.write(0, move |tx| drive::retitle(tx, &by, new.clone()))
    }
    fn mark(&self, by: Arc<Principal>, new: Mark) -> Reply<'_, WriteOutcome<Marks, Rejection>> {
        self.write(0, move |tx| drive::mark(tx, &by, new.clone()))
    }
}

impl Log for SqliteStore {
    fn load(&self, session: SessionId) -> Reply<'_, Option<Loaded>> {
        self.ask_here(move |db| log::load(db, session))
    }
    fn inbox(&self, session: SessionId, limit: usize) -> Reply<'_, Vec<InboxRow>> {
        self.ask_here(move |db| log::inbox(db, session, limit))
    }
    fn append(&self, append: Append) -> Reply<'_, Appending> {
        let bytes = append.facts.iter().map(NewFact::bytes).sum();
        self.write(bytes, move |tx| append::append(tx, &append))
    }
    fn checkpoint(&self, session: SessionId, at: Number, facts: Vec<Fact>) -> Reply<'_, ()> {
        self.write(0, move |tx| append::checkpoint(tx, session, at, &facts))
    }
    fn words(&self, message: MessageId) -> Reply<'_, Option<Bytes>> {
        self.ask_here(move |db| log::words(db, message))
    }
    fn attachments(&self, message: MessageId) -> Reply<'_, Vec<Bytes>> {
        self.ask_here(move |db| log::attachments(db, message))
    }
    fn attachment(&self, message: MessageId, number: u32) -> Reply<'_, Option<Bytes>> {
        self.ask_reader(move |db| log::attachment(db, message, number))
    }
    fn may_say(&self, session: SessionId, person: PersonId) -> Reply<'_, bool> {
        self.ask_here(move |db| people::may(db, session, person, Act::Say))
    }
    fn may_rule(&self, session: SessionId, person: PersonId) -> Reply<'_, bool> {
        self.ask_here(move |db| people::may(db, session, person, Act::Manage))
    }
}

impl Views for SqliteStore {
    fn find(&self, by: Seer, whose: Option<PersonId>, to: To) -> Reply<'_, Finding> {
        self.ask_here(move |db| sight::find(db, &by, whose, &to))
    }
    fn whereabouts(&self, by: Seer, thing: Thing) -> Reply<'_, Option<Whereabouts>> {
        self.ask_here(move |db| sight::whereabouts(db, &by, thing))
    }
    fn session(&self, session: SessionId) -> Reply<'_, Option<(Record, SessionRow)>> {
        self.ask_here(move |db| view::session(db, session))
    }
    fn session_seen(&self, by: Seer, session: SessionId) -> Reply<'_, Option<(Record, SessionRow)>> {
        self.ask_here(move |db| sight::session(db, &by, session))
    }
    fn session_with_log(
        &self,
        by: Seer,
        session: SessionId,
    ) -> Reply<'_, Option<(Record, SessionRow, Loaded)>> {
        self.ask_reader(move |db| {
            let Some((record, row)) = sight::session(db, &by, session)? else { return Ok(None) };
            Ok(log::load(db, session)?.map(|loaded| (record, row, loaded)))
        })
    }
    fn sessions(&self, query: SessionsQuery) -> Reply<'_, Vec<SessionRow>> {
        self.ask_reader(move |db| view::sessions(db, &query))
    }
    fn session_counts(&self, by: Seer) -> Reply<'_, SessionCounts> {
        self.ask_reader(move |db| counts::session_counts(db, &by))
    }
    fn sessions_named(&self, by: Seer, name: TypedName, limit: usize) -> Reply<'_, Vec<SessionRow>> {
        self.ask_reader(move |db| names::sessions_named(db, &by, &name, limit))
    }
    fn facts(
        &self,
        session: SessionId,
        after: Number,
        limit: usize,
        bytes: usize,
    ) -> Reply<'_, Vec<StoredFact>> {
        self.ask_reader(move |db| log::facts(db, session, after, limit, bytes))
    }
    fn story(
        &self,
        session: SessionId,
        turn: Turn,
        kinds: Vec<&'static str>,
        bytes: usize,
    ) -> Reply<'_, Vec<Vec<StoredFact>>> {
        let story = log::TurnStory { session, turn, kinds, bytes };
        Box::pin(async move {
            let short = story.clone();
            match self.reader.ask_here(move |db| short.read_if_short(db)).await? {
                Some(told) => Ok(told),
                None => self.reader.ask(move |db| story.read(db)).await,
            }
        })
    }
    fn stories(&self, session: SessionId, kind: String, bytes: usize) -> Reply<'_, Vec<StoredFact>> {
        self.ask_reader(move |db| log::stories(db, session, &kind, bytes))
    }
    fn receipt(&self, message: MessageId) -> Reply<'_, Option<(Record, ReceiptRow)>> {
        self.ask_here(move |db| view::receipt(db, message))
    }
    fn receipt_seen(&self, by: Seer, message: MessageId) -> Reply<'_, Option<(Record, ReceiptRow)>> {
        self.ask_here(move |db| sight::receipt(db, &by, message))
    }
    fn queue(&self, session: SessionId) -> Reply<'_, Vec<ReceiptRow>> {
        self.ask_reader(move |db| view::queue(db, session))
    }
    fn turn(&self, session: SessionId, turn: Turn) -> Reply<'_, Option<ReceiptRow>> {
        self.ask_here(move |db| view::turn(db, session, turn))
    }
    fn last_turn(&self, session: SessionId) -> Reply<'_, Option<ReceiptRow>> {
        self.ask_here(move |db| view::last_turn(db, session))
    }
    fn scope(&self, session: SessionId, epoch: Epoch) -> Reply<'_, Option<Scope>> {
        self.ask_here(move |db| view::scope(db, session, epoch))
    }
    fn facts_before(
        &self,
        session: SessionId,
        before: Number,
        limit: usize,
        bytes: usize,
    ) -> Reply<'_, Vec<StoredFact>> {
        self.ask_reader(move |db| log::facts_before(db, session, before, limit, bytes))
    }
    fn turns(
        &self,
        session: SessionId,
        before: Option<Turn>,
        limit: usize,
        bytes: usize,
    ) -> Reply<'_, Vec<TurnRow>> {
        self.ask_reader(move |db| past::turns(db, session, before, limit, bytes))
    }
    fn messages_shown(
        &self,
        session: SessionId,
        messages: Vec<MessageId>,
        bytes: usize,
    ) -> Reply<'_, Vec<QueuedRow>> {
        self.ask_reader(move |db| past::messages_shown(db, session, &messages, bytes))
    }
    fn queue_shown(&self, session: SessionId, bytes: usize) -> Reply<'_, Vec<QueuedRow>> {
        self.ask_reader(move |db| view::queue_shown(db, session, bytes))
    }
    fn bindings(&self, by: Seer, after: Option<Address>, limit: usize) -> Reply<'_, Vec<BindingRow>> {
        self.ask_reader(move |db| view::bindings(db, &by, after.as_ref(), limit))
    }
    fn approval(&self, approval: ApprovalId) -> Reply<'_, Option<(Record, ApprovalRow)>> {
        self.ask_here(move |db| view::approval(db, approval))
    }
    fn approval_seen(&self, by: Seer, approval: ApprovalId) -> Reply<'_, Option<(Record, ApprovalRow)>> {
        self.ask_here(move |db| sight::approval(db, &by, approval))
    }
    fn approvals(&self, query: ApprovalsQuery) -> Reply<'_, Vec<ApprovalRow>> {
        self.ask_reader(move |db| approvals::approvals(db, &query))
    }
    fn usage(&self, query: UsageQuery) -> Reply<'_, Vec<UsageRow>> {
        self.ask_reader(move |db| usage::usage(db, &query))
    }
    fn holder(&self, claim: Claim) -> Reply<'_, Option<(SessionId, OrgId)>> {
        self.ask_here(move |db| view::holder(db, &claim))
    }
    fn worktrees_in_use(&self) -> Reply<'_, Vec<WorktreeRow>> {
        self.ask_reader(view::worktrees_in_use)
    }
    fn heads(&self, by: Seer, after: u64, limit: usize) -> Reply<'_, Vec<Head>> {
        self.ask_reader(move |db| view::heads(db, &by, after, limit))
    }
    fn row_changes(&self, by: Seer, after: u64, limit: usize) -> Reply<'_, Vec<RowChange>> {
        self.ask_reader(move |db| row_changes::after(db, &by, after, limit))
    }
    fn last_place(&self) -> Reply<'_, u64> {
        self.ask_reader(row_changes::last_place)
    }
}

impl Search for SqliteStore {
    fn index_passages(&self, turns_max: usize) -> Reply<'_, bool> {
        Box::pin(async move {
            let found = self.reader.ask(move |db| search::unindexed(db, turns_max)).await?;
            let Some(new) = found else { return Ok(false) };
            let more = new.more;
            self.writer.change(0, move |tx| search::index(tx, &new)).await?;
            Ok(more)
        })
    }
    fn search(&self, query: PassagesQuery) -> Reply<'_, Vec<FoundPassage>> {
        self.ask_reader(move |db| search::search(db, &query))
    }
}

impl Credentials for SqliteStore {
    fn host(&self, fresh: NewOrg) -> Reply<'_, Principal> {
        let now = self.node().since;
        self.write_people(0, move |tx| {
            let host = store::change::host(tx, fresh.clone(), now)?;
            host.ok_or_else(|| SqliteError::Damaged("the machine's person is gone".into()))
        })
    }
    fn token(&self, hash: [u8; 32], now: Moment) -> Reply<'_, Option<Principal>> {
        self.ask_here(move |db| tokens::token(db, hash, now))
    }
    fn principal(&self, credential: TokenId, now: Moment) -> Reply<'_, Option<Principal>> {
        self.ask_here(move |db| tokens::principal(db, credential, now))
    }
    fn add_token(&self, token: TokenRow) -> Reply<'_, ()> {
        self.write_people(0, move |tx| store::change::add_token(tx, token.clone()))
    }
    fn touch_tokens(&self, used: Vec<(TokenId, Moment)>) -> Reply<'_, ()> {
        self.write_people(0, move |tx| tokens::touch_tokens(tx, &used))
    }
    fn rotate_token(
        &self,
        token: TokenId,
        hash: [u8; 32],
        now: Moment,
        old_until: Moment,
    ) -> Reply<'_, bool> {
        self.write_people(0, move |tx| store::change::rotate_token(tx, token, hash, now, old_until))
    }
    fn login(&self, typed: String) -> Reply<'_, Option<LoginRow>> {
        self.ask_reader(move |db| people::login(db, &typed))
    }
    fn sign_in(&self, sign_in: SignedIn) -> Reply<'_, bool> {
        self.write_people(0, move |tx| store::change::sign_in(tx, sign_in.clone()))
    }
    fn link(&self, hash: [u8; 32], now: Moment) -> Reply<'_, Option<LoginRow>> {
        self.ask_reader(move |db| tokens::link(db, hash, now))
    }
    fn spend_link(
        &self,
        hash: [u8; 32],
        token: Option<NewToken>,
        trail: Trail,
    ) -> Reply<'_, Option<LoginRow>> {
        self.write_people(0, move |tx| store::change::spend_link(tx, hash, token.clone(), &trail))
    }
    fn identity(&self, issuer: String, subject: String) -> Reply<'_, Option<LoginRow>> {
        self.ask_reader(move |db| tokens::identity(db, &issuer, &subject))
    }
    fn account(&self, org: OrgId, person: PersonId, agent: String) -> Reply<'_, Option<AccountRow>> {
        self.ask_here(move |db| people::account(db, org, person, &agent))
    }
    fn set_account(&self, by: Principal, account: NewAccount) -> Reply<'_, ()> {
        self.write(account.sealed.len(), move |tx| people::set_account(tx, &by, &account))
    }
    fn remove_account(&self, by: Principal, agent: String, trail: Trail) -> Reply<'_, bool> {
        self.write(0, move |tx| people::remove_account(tx, &by, &agent, &trail))
    }
    fn set_push(&self, by: Principal, push: NewPush) -> Reply<'_, bool> {
        self.write(0, move |tx| pushes::set(tx, &by, &push))
    }
    fn remove_push(&self, by: Principal, token: TokenId, trail: Trail) -> Reply<'_, bool> {
        self.write(0, move |tx| pushes::remove(tx, &by, token, &trail))
    }
    fn forget_push(&self, token: TokenId, endpoint: String) -> Reply<'_, ()> {
        self.write(0, move |tx| pushes::forget(tx, token, &endpoint))
    }
    fn pushes(&self, org: OrgId, person: Option<PersonId>) -> Reply<'_, Vec<PushRow>> {
        self.ask_reader(move |db| pushes::list(db, org, person))
    }
    fn push(&self, token: TokenId) -> Reply<'_, Option<PushRow>> {
        self.ask_reader(move |db| pushes::of(db, token))
    }
}

impl People for SqliteStore {
    fn change(&self, by: Principal, new: NewChange) -> Reply<'_, WriteOutcome<(), PeopleRefusal>> {
        self.write_people(0, move |tx| store::change::change(tx, &by, new.clone()))
    }
    fn orgs(&self) -> Reply<'_, Vec<OrgRow>> {
        self.ask_reader(people::orgs)
    }
    fn org(&self, org: OrgId) -> Reply<'_, Option<OrgRow>> {
        self.ask_reader(move |db| people::org(db, org))
    }
    fn people(&self, org: OrgId, after: Option<String>, limit: usize) -> Reply<'_, Vec<PersonRow>> {
        self.ask_reader(move |db| people::people(db, org, after.as_deref(), limit))
    }
    fn person(&self, org: OrgId, person: PersonId) -> Reply<'_, Option<PersonRow>> {
        self.ask_reader(move |db| people::person(db, org, person))
    }
    fn person_named(&self, org: OrgId, name: String) -> Reply<'_, Option<PersonRow>> {
        self.ask_reader(move |db| people::person_named(db, org, &name))
    }
    fn groups(&self, org: OrgId) -> Reply<'_, Vec<GroupRow>> {
        self.ask_reader(move |db| people::groups(db, org))
    }
    fn grants(&self, org: OrgId, on: Resource) -> Reply<'_, Vec<GrantRow>> {
        self.ask_reader(move |db| people::grants(db, org, &on))
    }
    fn roots(&self, org: OrgId) -> Reply<'_, Vec<RootRow>> {
        self.ask_reader(move |db| people::roots(db, org))
    }
    fn rules(&self, org: OrgId) -> Reply<'_, Vec<RuleRow>> {
        self.ask_reader(move |db| rules::rules(db, org))
    }
    fn disk_use(&self, org: OrgId, person: PersonId) -> Reply<'_, DiskUse> {
        self.ask_reader(move |db| people::disk_use(db, org, person))
    }
    fn disk_totals(&self) -> Reply<'_, DiskTotals> {
        self.ask_reader(people::disk_totals)
    }
    fn offers(&self, org: OrgId, person: PersonId) -> Reply<'_, Vec<OfferRow>> {
        self.ask_reader(move |db| offers::of_person(db, org, person))
    }
    fn tokens(&self, org: OrgId, person: PersonId) -> Reply<'_, Vec<TokenView>> {
        self.ask_reader(move |db| tokens::tokens(db, org, person))
    }
}

impl AuditLog for SqliteStore {
    fn audit(&self, entry: AuditEntry) -> Reply<'_, ()> {
        self.write(0, move |tx| way_in::audit(tx, &entry))
    }
    fn audit_page(&self, query: AuditQuery) -> Reply<'_, Vec<AuditRow>> {
        self.ask_reader(move |db| audit::page(db, &query))
    }
    fn seal_audit(&self, key: ChainKey, limit: usize) -> Reply<'_, usize> {
        self.write(0, move |tx| audit::seal(tx, &key, limit))
    }
    fn sealed(&self, org: OrgId, after: u64, limit: usize) -> Reply<'_, Vec<AuditRow>> {
        self.ask_reader(move |db| audit::sealed(db, org, after, limit))
    }

    fn sealed_keys(&self, org: OrgId, after: u64, limit: usize) -> Reply<'_, Vec<AuditKeys>> {
        self.ask_reader(move |db| audit::sealed_keys(db, org, after, limit))
    }
    fn chain_head(&self, org: OrgId) -> Reply<'_, ChainHead> {
        self.ask_reader(move |db| audit::chain_head(db, org))
    }
}

impl Outbox for SqliteStore {
    fn outbox_take(&self, take: TakeOutgoing) -> Reply<'_, TakenOutgoing> {
        let node = self.node().node;
        self.write(0, move |tx| outbox::take(tx, node, &take))
    }
    fn outbox_settle(&self, outgoing: u64, tries: u32, became: Became, now: Moment) -> Reply<'_, bool> {
        self.write(0, move |tx| outbox::settle(tx, outgoing, tries, became.clone(), now))
    }
    fn outbox_list(
        &self,
        org: OrgId,
        state: Option<OutgoingState>,
        after: u64,
        limit: usize,
    ) -> Reply<'_, Vec<Outgoing>> {
        self.ask_reader(move |db| outbox::list(db, org, state, after, limit))
    }
    fn outbox_by_hand(
        &self,
        by: Arc<Principal>,
        new: SettleByHand,
    ) -> Reply<'_, WriteOutcome<(), Rejection>> {
        self.write(0, move |tx| drive::settle(tx, &by, new.clone()))
    }
    fn outbox_clear(&self, before: Moment, limit: usize) -> Reply<'_, usize> {
        self.write(0, move |tx| outbox::clear(tx, before, limit))
    }
}

impl Timers for SqliteStore {
    fn next_wake(&self) -> Reply<'_, Option<Moment>> {
        self.ask_here(timer::next_wake)
    }
    fn wake(&self, now: Moment, limit: usize) -> Reply<'_, Vec<SessionId>> {
        self.write(0, move |tx| timer::wake(tx, now, limit))
    }
    fn unfinished(&self, after: Option<SessionId>, limit: usize) -> Reply<'_, Vec<SessionId>> {
        self.ask_reader(move |db| timer::unfinished(db, after, limit))
    }
}

impl Nodes for SqliteStore {
    fn nodes(&self) -> Reply<'_, Vec<NodeRow>> {
        // One file, one holder.
        let node = self.node();
        Box::pin(async move { Ok(vec![node]) })
    }
    fn announce(&self, url: String) -> Reply<'_, ()> {
        Box::pin(self.announced(url))
    }
}

impl Store for SqliteStore {
    fn node(&self) -> NodeRow {
        self.node.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    fn gauges(&self) -> Gauges {
        let tally = self.writer.tally();
        Gauges {
            commits: tally.commits.load(Ordering::Relaxed),
            changes: tally.changes.load(Ordering::Relaxed),
            fenced: tally.fenced.load(Ordering::Relaxed),
            moved: tally.moved.load(Ordering::Relaxed),
        }
    }
}

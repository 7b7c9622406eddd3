//! The store itself: the port's methods, each handed to the writer or to a reader.

use crate::lock::Lock;
use crate::open::{self, OpenError, Opened, Options};
use crate::reader::Reader;
use crate::trouble::Trouble;
use crate::writer::Writer;
use crate::{append, desk::Desk, intake, log, outbox, people, timer, view};
use bytes::Bytes;
use kernel::{
    Address, ApprovalId, Authorized, Fact, MessageId, Moment, Number, OrgId, PersonId, Principal, Record,
    RequestId, SessionId, To, Turn,
};
use rusqlite::Connection;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use store::*;

/// One directory with one SQLite file, held by this process.
pub struct SqliteStore {
    // In this order they go: nobody reads or writes any more when the directory is let go.
    reader: Reader,
    writer: Writer,
    node: Mutex<NodeRow>,
    lock: Lock,
}

impl SqliteStore {
    /// Takes the directory and opens what is in it, or says why not. A directory that is empty, or not there, becomes a
    /// new store; one that cannot be used is left as it is.
    pub fn open(dir: &Path, options: &Options) -> Result<Self, OpenError> {
        let Opened { lock, files, desk, node } = open::open(dir, options)?;
        let reader = Reader::start(&files)?;
        let writer = Writer::start(files, desk)?;
        Ok(Self { reader, writer, node: Mutex::new(node), lock })
    }

    fn change<'a, T, F>(&'a self, bytes: usize, work: F) -> Reply<'a, T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Desk) -> Result<T, Trouble> + Send + 'static,
    {
        Box::pin(self.writer.change(bytes, work))
    }

    fn ask_reader<'a, T, F>(&'a self, work: F) -> Reply<'a, T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Trouble> + Send + 'static,
    {
        Box::pin(self.reader.ask(work))
    }

    async fn announced(&self, url: String) -> Result<(), StoreError> {
        let node = {
            let mut node = self.node.lock().unwrap_or_else(PoisonError::into_inner);
            node.url = Some(url.clone());
            node.clone()
        };
        let signed = self.lock.sign(&open::holder(&node));
        signed.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        self.writer.change(0, move |desk| people::announce(desk, node.term, &url)).await
    }
}

impl Store for SqliteStore {
    fn find(&self, org: OrgId, to: To) -> Reply<'_, Finding> {
        self.ask_reader(move |db| view::find(db, org, &to))
    }
    fn accept(&self, wish: Authorized<NewMessage>) -> Reply<'_, Acceptance> {
        self.change(wish.wish().words.len(), move |desk| intake::accept(desk, &wish))
    }
    fn create(&self, wish: Authorized<Create>) -> Reply<'_, Creation> {
        self.change(0, move |desk| intake::create(desk, &wish))
    }
    fn ask(&self, wish: Authorized<NewRequest>) -> Reply<'_, Asking> {
        let bytes = match &wish.wish().wish {
            Wish::Edit { words, .. } => words.len(),
            _ => 0,
        };
        self.change(bytes, move |desk| intake::ask(desk, &wish))
    }
    fn verdict(&self, request: RequestId) -> Reply<'_, Option<Verdict>> {
        self.ask_reader(move |db| log::verdict(db, request))
    }
    fn rebind(&self, wish: Authorized<Rebind>) -> Reply<'_, Rebinding> {
        self.change(0, move |desk| intake::rebind(desk, &wish))
    }
    fn retitle(&self, wish: Authorized<Retitle>) -> Reply<'_, Retitling> {
        self.change(0, move |desk| intake::retitle(desk, &wish))
    }
    fn audit(&self, entry: AuditEntry) -> Reply<'_, ()> {
        self.change(0, move |desk| intake::audit(desk, &entry))
    }

    fn load(&self, session: SessionId) -> Reply<'_, Option<Loaded>> {
        self.ask_reader(move |db| log::load(db, session))
    }
    fn inbox(&self, session: SessionId, limit: usize) -> Reply<'_, Vec<InboxRow>> {
        self.ask_reader(move |db| log::inbox(db, session, limit))
    }
    fn append(&self, append: Append) -> Reply<'_, Appending> {
        let words = |new: &NewFact| match &new.entry {
            Entry::Rule(_) => 0,
            Entry::Story { body, .. } => body.len(),
        };
        let bytes = append.facts.iter().map(words).sum();
        self.change(bytes, move |desk| append::append(desk, &append))
    }
    fn checkpoint(&self, session: SessionId, at: Number, facts: Vec<Fact>) -> Reply<'_, ()> {
        self.change(0, move |desk| append::checkpoint(desk, session, at, &facts))
    }
    fn words(&self, message: MessageId) -> Reply<'_, Option<Bytes>> {
        self.ask_reader(move |db| log::words(db, message))
    }

    fn next_wake(&self) -> Reply<'_, Option<Moment>> {
        self.ask_reader(timer::next_wake)
    }
    fn wake(&self, now: Moment, limit: usize) -> Reply<'_, Vec<SessionId>> {
        self.change(0, move |desk| timer::wake(desk, now, limit))
    }
    fn unfinished(&self, after: Option<SessionId>, limit: usize) -> Reply<'_, Vec<SessionId>> {
        self.ask_reader(move |db| timer::unfinished(db, after, limit))
    }

    fn outbox_take(&self, now: Moment, limit: usize) -> Reply<'_, Vec<Outgoing>> {
        self.change(0, move |desk| outbox::take(desk, now, limit))
    }
    fn outbox_settle(&self, outgoing: u64, became: Became) -> Reply<'_, bool> {
        self.change(0, move |desk| outbox::settle(desk, outgoing, became))
    }
    fn outbox_list(&self, state: OutgoingState, limit: usize) -> Reply<'_, Vec<Outgoing>> {
        self.ask_reader(move |db| outbox::list(db, state, limit))
    }

    fn session(&self, session: SessionId) -> Reply<'_, Option<(Record, SessionRow)>> {
        self.ask_reader(move |db| view::session(db, session))
    }
    fn sessions(&self, query: SessionsQuery) -> Reply<'_, Vec<SessionRow>> {
        self.ask_reader(move |db| view::sessions(db, &query))
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
        kind: String,
        bytes: usize,
    ) -> Reply<'_, Vec<StoredFact>> {
        self.ask_reader(move |db| log::story(db, session, turn, &kind, bytes))
    }
    fn receipt(&self, message: MessageId) -> Reply<'_, Option<(Record, ReceiptRow)>> {
        self.ask_reader(move |db| view::receipt(db, message))
    }
    fn queue(&self, session: SessionId) -> Reply<'_, Vec<ReceiptRow>> {
        self.ask_reader(move |db| view::queue(db, session))
    }
    fn bindings(
        &self,
        org: OrgId,
        person: PersonId,
        after: Option<Address>,
        limit: usize,
    ) -> Reply<'_, Vec<BindingRow>> {
        self.ask_reader(move |db| view::bindings(db, org, person, after.as_ref(), limit))
    }
    fn approval(&self, approval: ApprovalId) -> Reply<'_, Option<(Record, ApprovalRow)>> {
        self.ask_reader(move |db| view::approval(db, approval))
    }
    fn approvals(&self, org: OrgId, person: PersonId, limit: usize) -> Reply<'_, Vec<ApprovalRow>> {
        self.ask_reader(move |db| view::approvals(db, org, person, limit))
    }
    fn heads(&self, org: OrgId, person: PersonId, after: u64, limit: usize) -> Reply<'_, Vec<Head>> {
        self.ask_reader(move |db| view::heads(db, org, person, after, limit))
    }

    fn owner(&self, fresh: Principal) -> Reply<'_, Principal> {
        self.change(0, move |desk| people::owner(desk, &fresh))
    }
    fn add_token(&self, token: TokenRow) -> Reply<'_, ()> {
        self.change(0, move |desk| people::add_token(desk, &token))
    }
    fn token(&self, hash: [u8; 32], now: Moment) -> Reply<'_, Option<Principal>> {
        self.ask_reader(move |db| people::token(db, hash, now))
    }
    fn account(&self, org: OrgId, person: PersonId, agent: String) -> Reply<'_, Option<AccountRow>> {
        self.ask_reader(move |db| people::account(db, org, person, &agent))
    }
    fn set_account(&self, by: Principal, account: NewAccount) -> Reply<'_, ()> {
        self.change(account.sealed.len(), move |desk| people::set_account(desk, &by, &account))
    }
    fn remove_account(&self, by: Principal, agent: String, trail: Trail) -> Reply<'_, bool> {
        self.change(0, move |desk| people::remove_account(desk, &by, &agent, &trail))
    }
    fn node(&self) -> NodeRow {
        self.node.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    fn nodes(&self) -> Reply<'_, Vec<NodeRow>> {
        // One file, one holder.
        let node = self.node();
        Box::pin(async move { Ok(vec![node]) })
    }
    fn announce(&self, url: String) -> Reply<'_, ()> {
        Box::pin(self.announced(url))
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

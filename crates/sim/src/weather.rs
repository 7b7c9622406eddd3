//! The store as a daemon meets it in bad weather.
//!
//! `Sky` is one for the whole story: the odds, the stream of chance, and whether it has cleared. `Weather` is one
//! daemon's way to the store: calls get lost, answers get lost, both are late, the disk is full, the daemon dies at a
//! chosen append, or is cut off while another one takes over. Some planted bugs are lies told here. What gets through
//! is judged by the `Ledger` in the moment in which it is written.

mod lies;

use crate::bug::Bug;
use crate::dice::Dice;
use crate::forecast::Odds;
use crate::ledger::Ledger;
use crate::notes::{Notes, short};
use kernel::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::*;
use tokio::time::Instant;

/// The weather above all daemons of a story.
#[derive(Debug)]
pub(crate) struct Sky {
    odds: Odds,
    dice: Mutex<Dice>,
    /// For rings: the other calls meet the same as before any of these was lost.
    ring_dice: Mutex<Dice>,
    /// The same for calls about the outbox, which every daemon makes by itself.
    outbox_dice: Mutex<Dice>,
    clear: AtomicBool,
    full_until: Mutex<Option<Instant>>,
    /// True if a replaced daemon may still take messages in.
    pub(crate) doors_stay_open: bool,
    pub(crate) bug: Option<Bug>,
    pub(crate) notes: Arc<Notes>,
    pub(crate) ledger: Ledger,
}

impl Sky {
    pub(crate) fn new(
        odds: Odds,
        dice: Dice,
        doors_stay_open: bool,
        bug: Option<Bug>,
        ledger: Ledger,
    ) -> Self {
        let notes = ledger.notes.clone();
        let ring_dice = Mutex::new(Dice::new(dice.clone().roll() ^ 0x0b11));
        let outbox_dice = Mutex::new(Dice::new(dice.clone().roll() ^ 0x0b0c));
        let (dice, clear) = (Mutex::new(dice), AtomicBool::new(false));
        Self {
            odds,
            dice,
            ring_dice,
            outbox_dice,
            clear,
            full_until: Mutex::default(),
            doors_stay_open,
            bug,
            notes,
            ledger,
        }
    }

    /// From here on nothing gets lost, late or full.
    pub(crate) fn clear_up(&self) {
        self.clear.store(true, Ordering::Relaxed);
    }

    pub(crate) fn fill_disk(&self, ms: u64) {
        *lock(&self.full_until) = Some(Instant::now() + Duration::from_millis(ms));
    }

    /// True if it happens now; never under a clear sky.
    pub(crate) fn strikes(&self, odds: impl Fn(&Odds) -> u64) -> bool {
        self.strikes_by(&self.dice, odds)
    }

    fn strikes_by(&self, dice: &Mutex<Dice>, odds: impl Fn(&Odds) -> u64) -> bool {
        !self.is_clear() && lock(dice).chance(odds(&self.odds))
    }

    fn dice_of(&self, call: &str) -> &Mutex<Dice> {
        if call.starts_with("outbox_") { &self.outbox_dice } else { &self.dice }
    }

    /// True if a ring for this session's keeper gets lost.
    pub(crate) fn loses_ring(&self, session: SessionId) -> bool {
        let by_weather = !self.is_clear() && lock(&self.ring_dice).chance(self.odds.lost_ring);
        let is_lost = by_weather || self.lies(Bug::RingLost, 300);
        if is_lost {
            *self.notes.seen().lost_rings.entry(session).or_default() += 1;
            self.notes.tell(|| format!("      a ring for {} got lost", short(session)));
        }
        is_lost
    }

    /// True if a planted bug shows now, under any sky.
    pub(crate) fn lies(&self, bug: Bug, per_mille: u64) -> bool {
        self.bug == Some(bug) && lock(&self.dice).chance(per_mille)
    }

    pub(crate) fn is_clear(&self) -> bool {
        self.clear.load(Ordering::Relaxed)
    }

    fn is_full(&self) -> bool {
        let until = *lock(&self.full_until);
        !self.is_clear() && until.is_some_and(|until| Instant::now() < until)
    }

    pub(crate) async fn dawdle(&self) {
        self.dawdle_by(&self.dice).await;
    }

    async fn dawdle_by(&self, dice: &Mutex<Dice>) {
        let ms = lock(dice).between(1, self.odds.delay_ms_max);
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    async fn wind(&self, dice: &Mutex<Dice>) {
        if self.strikes_by(dice, |odds| odds.delay) {
            self.dawdle_by(dice).await;
        } else if lock(dice).chance(300) {
            tokio::task::yield_now().await;
        }
    }
}

/// One daemon's way to the store.
pub(crate) struct Weather {
    inner: MemoryStore,
    sky: Arc<Sky>,
    /// Why the daemon can do nothing any more.
    dead: AtomicBool,
    cut_off_until: Mutex<Option<Instant>>,
    replaced: AtomicBool,
    /// Tells everybody that the daemon has died, in the order in which they began to listen.
    died: tokio::sync::Notify,
    /// Receipts as they were first read, for a planted bug.
    old: Mutex<std::collections::BTreeMap<MessageId, (Record, ReceiptRow)>>,
}

impl Weather {
    pub(crate) fn new(inner: MemoryStore, sky: Arc<Sky>) -> Self {
        Self {
            inner,
            sky,
            dead: AtomicBool::new(false),
            cut_off_until: Mutex::default(),
            replaced: AtomicBool::new(false),
            died: tokio::sync::Notify::new(),
            old: Mutex::default(),
        }
    }

    /// Nothing gets through to the store any more, in either direction.
    pub(crate) fn kill(&self) {
        self.dead.store(true, Ordering::Relaxed);
        self.died.notify_waiters();
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    pub(crate) async fn death(&self) {
        let mut died = std::pin::pin!(self.died.notified());
        died.as_mut().enable();
        if !self.is_dead() {
            died.await;
        }
    }

    /// Another daemon takes over; this one learns it only when it is heard again.
    pub(crate) fn cut_off(&self, ms: u64) {
        *lock(&self.cut_off_until) = Some(Instant::now() + Duration::from_millis(ms));
        self.replaced.store(true, Ordering::Relaxed);
    }

    async fn connection(&self) {
        loop {
            if self.is_dead() {
                return std::future::pending().await;
            }
            let until = *lock(&self.cut_off_until);
            match until {
                Some(until) if Instant::now() < until => tokio::time::sleep_until(until).await,
                Some(_) | None => return,
            }
        }
    }

    async fn out(&self, Call { sort, name }: Call) -> Result<(), StoreError> {
        let dice = self.sky.dice_of(name);
        self.sky.wind(dice).await;
        self.connection().await;
        if sort != Sort::Read && self.sky.is_full() {
            return Err(StoreError::Full);
        }
        if self.sky.strikes_by(dice, |odds| odds.lost_request) {
            self.sky.notes.tell(|| format!("      {name} got lost on its way out"));
            return Err(StoreError::Unavailable("the request got lost".to_owned()));
        }
        if sort == Sort::Door && self.replaced.load(Ordering::Relaxed) && !self.sky.doors_stay_open {
            return Err(StoreError::Unavailable("another node has the store".to_owned()));
        }
        Ok(())
    }

    async fn back(&self, Call { sort, name }: Call) -> Result<(), StoreError> {
        let dice = self.sky.dice_of(name);
        self.sky.wind(dice).await;
        self.connection().await;
        if !self.sky.strikes_by(dice, |odds| odds.lost_reply) {
            return Ok(());
        }
        self.sky.notes.tell(|| format!("      the answer to {name} got lost"));
        let why = "the reply got lost".to_owned();
        Err(if sort == Sort::Read { StoreError::Unavailable(why) } else { StoreError::Unknown(why) })
    }

    async fn die(&self, when: &str) {
        self.sky.notes.tell(|| format!("      the daemon dies {when} an append"));
        self.kill();
        std::future::pending().await
    }

    async fn take_message(
        &self,
        by: Arc<Principal>,
        new: NewMessage,
    ) -> Result<store::WriteOutcome<Accepted, Rejection>, StoreError> {
        let outcome = match self.lie_about_message(by, new).await? {
            Ok((by, new)) => self.inner.accept(by, new).await?,
            Err(outcome) => outcome,
        };
        if let store::WriteOutcome::Done(accepted) = &outcome {
            self.sky.notes.seen().accepted.push((accepted.session, accepted.message));
        }
        Ok(outcome)
    }

    async fn take_session(
        &self,
        by: Arc<Principal>,
        mut new: Create,
    ) -> Result<store::WriteOutcome<SessionId, Rejection>, StoreError> {
        self.lie_about_past(&mut new);
        self.lie_about_schemes(&mut new.schemes);
        let facts = new.past.as_ref().map_or(0, |past| past.facts.len());
        let outcome = self.inner.create(by, new).await?;
        if let store::WriteOutcome::Done(session) = &outcome {
            self.sky.ledger.brought(*session, facts);
        }
        Ok(outcome)
    }

    async fn take_request(
        &self,
        by: Arc<Principal>,
        mut new: NewRequest,
    ) -> Result<store::WriteOutcome<Asked, Rejection>, StoreError> {
        let by = self.lie_about_request(by, &mut new);
        let asking = self.inner.ask(by.clone(), new.clone()).await?;
        if let store::WriteOutcome::Done(Asked::Waits { session, .. }) = asking {
            let record = self.inner.session(session).await?.map(|(record, _)| record);
            self.sky.notes.seen().rulebook.promise(&by, &new, record.as_ref());
            self.sky.notes.seen().requests.insert(new.id, new.request);
        }
        Ok(asking)
    }

    async fn take_change(
        &self,
        by: Principal,
        new: NewChange,
    ) -> Result<store::WriteOutcome<(), PeopleRefusal>, StoreError> {
        let outcome = self.inner.change(by.clone(), new.clone()).await?;
        if outcome == store::WriteOutcome::Done(()) {
            self.sky.ledger.changed(&new.change);
            let record = match &new.change {
                PeopleChange::AddRule(RuleRow { session: Some(session), .. })
                | PeopleChange::Give { on: store::Resource::Session(session), .. }
                | PeopleChange::TakeBack { on: store::Resource::Session(session), .. } => {
                    self.inner.session(*session).await?
                }
                _ => None,
            };
            let record = record.map(|(record, _)| record);
            self.sky.notes.seen().rulebook.change(&by, &new, record.as_ref());
        }
        Ok(outcome)
    }

    async fn take_facts(&self, append: Append) -> Result<Appending, StoreError> {
        let append = match self.lie_about_facts(append).await? {
            Ok(append) => append,
            Err(appending) => return Ok(appending),
        };
        if self.sky.strikes(|odds| odds.die_before) {
            self.die("before").await;
        }
        let appending = self.inner.append(append.clone()).await?;
        match &appending {
            Appending::Done(at) => self.sky.ledger.written(&append, *at),
            refused => self.sky.notes.tell(|| {
                format!("      {} term {}: {refused:?}", short(append.session), append.term.0 & 0xffff_ffff)
            }),
        }
        if self.sky.strikes(|odds| odds.die_after) {
            self.die("after").await;
        }
        Ok(appending)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Wrap for Weather {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.inner
    }

    fn pass<'a, T: Send + 'a>(
        &'a self,
        call: Call,
        go: impl FnOnce() -> Reply<'a, T> + Send + 'a,
    ) -> Reply<'a, T> {
        Box::pin(async move {
            self.out(call).await?;
            let answer = go().await;
            self.back(call).await?;
            answer
        })
    }

    fn accept(
        &self,
        by: Arc<Principal>,
        new: NewMessage,
    ) -> Reply<'_, store::WriteOutcome<Accepted, Rejection>> {
        Box::pin(self.take_message(by, new))
    }
    fn create(
        &self,
        by: Arc<Principal>,
        new: Create,
    ) -> Reply<'_, store::WriteOutcome<SessionId, Rejection>> {
        Box::pin(self.take_session(by, new))
    }
    fn named(&self, by: Seer, id: SessionId) -> Reply<'_, Vec<kernel::Named>> {
        Box::pin(self.named_or_others(by, id))
    }
    fn ask(&self, by: Arc<Principal>, new: NewRequest) -> Reply<'_, store::WriteOutcome<Asked, Rejection>> {
        Box::pin(self.take_request(by, new))
    }
    fn change(&self, by: Principal, new: NewChange) -> Reply<'_, store::WriteOutcome<(), PeopleRefusal>> {
        Box::pin(self.take_change(by, new))
    }
    fn rebind(&self, by: Arc<Principal>, mut new: Rebind) -> Reply<'_, store::WriteOutcome<(), Rejection>> {
        self.lie_about_schemes(&mut new.schemes);
        self.inner.rebind(by, new)
    }
    fn outbox_take(&self, take: TakeOutgoing) -> Reply<'_, TakenOutgoing> {
        Box::pin(self.take_replies(take))
    }
    fn append(&self, append: Append) -> Reply<'_, Appending> {
        Box::pin(self.take_facts(append))
    }
    fn facts(
        &self,
        session: SessionId,
        after: Number,
        limit: usize,
        bytes: usize,
    ) -> Reply<'_, Vec<StoredFact>> {
        Box::pin(self.page(session, after, limit, bytes))
    }
    fn receipt(&self, message: MessageId) -> Reply<'_, Option<(Record, ReceiptRow)>> {
        Box::pin(async move { self.old_receipt(self.inner.receipt(message).await?) })
    }
    fn receipt_seen(&self, by: Seer, message: MessageId) -> Reply<'_, Option<(Record, ReceiptRow)>> {
        Box::pin(async move { self.old_receipt(self.inner.receipt_seen(by, message).await?) })
    }
    fn inbox(&self, session: SessionId, limit: usize) -> Reply<'_, Vec<InboxRow>> {
        Box::pin(self.inbox_or_later(session, limit))
    }
    fn unfinished(&self, after: Option<SessionId>, limit: usize) -> Reply<'_, Vec<SessionId>> {
        Box::pin(self.unfinished_or_none(after, limit))
    }
    fn rules(&self, org: OrgId) -> Reply<'_, Vec<RuleRow>> {
        Box::pin(self.rules_or_others(org))
    }
}

//! One keeper per session on this node, and how to call it.
//!
//! A call is never lost: a keeper that wants to rest gives its place up under the same lock under which callers look
//! for it, and only if nobody has called since it last looked at the inbox.

use crate::errand::{Chore, Chored};
use crate::lease::Lease;
use crate::{Engine, Refused};
use kernel::{Authorized, Claim, Errand, Return, SessionId};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::{Permit, StoreError};
use tokio::sync::{Notify, oneshot};

/// Unfinished sessions looked up at once when the node starts.
const UNFINISHED_PAGE: usize = 256;

#[derive(Debug)]
pub(crate) struct Keepers {
    lease: Lease,
    /// Whether the node goes down.
    is_closing: AtomicBool,
    /// Tells keepers so, in the order in which they began to listen: a story that is told again is the same one.
    closing: Notify,
    house: Mutex<House>,
    emptier: Notify,
}

#[derive(Debug, Default)]
struct House {
    kept: BTreeMap<SessionId, Arc<Bell>>,
    /// Sessions that wait for a claim, so that one that is freed is used at once.
    crowded: BTreeMap<Claim, VecDeque<SessionId>>,
    /// Sessions to which one was offered just now, and which one.
    offered: BTreeMap<SessionId, Claim>,
    /// What was looked up outside for a session, for its keeper to say whether it counts.
    brought: BTreeMap<SessionId, Vec<Brought>>,
    /// What is to be done with the worktrees of a session while it holds still.
    chores: BTreeMap<SessionId, Vec<Wanted>>,
}

/// Something that was looked up outside. It is no wish, and need not survive a crash: whoever brings it asks again.
#[derive(Debug)]
pub(crate) struct Brought {
    pub(crate) errand: Errand,
    pub(crate) came: Return,
    counts: oneshot::Sender<bool>,
}

impl Brought {
    pub(super) fn tell(self, counts: bool) {
        let _ = self.counts.send(counts); // Whoever has given up does not want to know.
    }
}

/// A chore for a keeper. It is no wish, and need not survive a crash: whoever wants it asks again.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) chore: Chore,
    /// Who may have it done; nobody if it is our own doing.
    pub(crate) permit: Option<Authorized<Permit>>,
    pub(crate) tell: oneshot::Sender<Result<Chored, Refused>>,
}

/// How a keeper is called.
#[derive(Debug, Default)]
struct Bell {
    rung: AtomicBool,
    sound: Notify,
    /// Something is in the inbox that can wait a little.
    whispered: AtomicBool,
    whisper: Notify,
}

impl Bell {
    fn ring(&self) {
        self.rung.store(true, Ordering::Release);
        self.sound.notify_one();
    }

    fn whisper(&self) {
        self.whispered.store(true, Ordering::Release);
        self.whisper.notify_one();
    }
}

impl Keepers {
    pub(crate) fn new(lease: Lease) -> Self {
        let (is_closing, closing, emptier) = (AtomicBool::new(false), Notify::new(), Notify::new());
        Self { lease, is_closing, closing, house: Mutex::default(), emptier }
    }

    fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    pub(crate) fn lease(&self) -> &Lease {
        &self.lease
    }

    pub(crate) fn count(&self) -> usize {
        self.house().kept.len()
    }

    /// This session was refused the claim, and wants to be told when it is free. Answers what it was offered instead, which
    /// it cannot use alone.
    fn crowded(&self, claim: Claim, session: SessionId) -> Option<Claim> {
        let mut house = self.house();
        let offered = house.offered.remove(&session).filter(|offered| *offered != claim);
        let crowded = house.crowded.entry(claim).or_default();
        if !crowded.contains(&session) {
            crowded.push_back(session);
        }
        offered
    }

    /// This session has what it waited for.
    pub(crate) fn served(&self, session: SessionId) {
        let mut house = self.house();
        house.offered.remove(&session);
        house.crowded.retain(|_, waiting| {
            waiting.retain(|other| *other != session);
            !waiting.is_empty()
        });
    }

    /// What was offered to this session, which does not want it any more.
    fn declined(&self, session: SessionId) -> Option<Claim> {
        self.house().offered.remove(&session)
    }

    /// What was brought for this session.
    pub(super) fn brought(&self, session: SessionId) -> Vec<Brought> {
        self.house().brought.remove(&session).unwrap_or_default()
    }

    /// What is to be done for this session while it holds still.
    pub(super) fn chores(&self, session: SessionId) -> Vec<Wanted> {
        self.house().chores.remove(&session).unwrap_or_default()
    }

    /// Ends every keeper, and waits until the last has gone. Whatever does not end in time is left to the next start,
    /// which buries it.
    pub(crate) async fn close(&self, wait: Duration) {
        self.is_closing.store(true, Ordering::Release);
        self.closing.notify_waiters();
        if tokio::time::timeout(wait, self.empty()).await.is_err() {
            tracing::warn!(
                kept = self.count(),
                "some turns did not end in time; the next start settles them"
            );
        }
    }

    async fn empty(&self) {
        loop {
            let emptier = self.emptier.notified();
            if self.count() == 0 {
                return;
            }
            emptier.await;
        }
    }

    fn house(&self) -> MutexGuard<'_, House> {
        // Nobody panics while holding it; it holds only who is here.
        self.house.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Sees to it that somebody looks at this session's inbox from now on.
    pub(crate) fn keep(&self, session: SessionId) {
        self.call(session, Bell::ring, None);
    }

    /// The same for what can wait while a turn is under way: several messages then become facts in one append.
    pub(crate) fn keep_soon(&self, session: SessionId) {
        self.call(session, Bell::whisper, None);
    }

    /// Brings the session's keeper what was looked up outside, and lets hear whether it counts. An error means that no
    /// keeper has said so.
    pub(crate) fn bring(&self, session: SessionId, errand: Errand, came: Return) -> oneshot::Receiver<bool> {
        let (counts, told) = oneshot::channel();
        self.call(session, Bell::ring, Some(Brought { errand, came, counts }));
        told
    }

    /// Lets the session's keeper do something with its worktrees, when nothing else of the session goes on. An error means
    /// that no keeper has done it.
    pub(crate) fn hold_still(
        &self,
        session: SessionId,
        chore: Chore,
        permit: Option<Authorized<Permit>>,
    ) -> oneshot::Receiver<Result<Chored, Refused>> {
        let (tell, told) = oneshot::channel();
        let mut house = self.keepers().house();
        if !self.keepers().is_closing() {
            house.chores.entry(session).or_default().push(Wanted { chore, permit, tell });
        }
        drop(house);
        self.keep(session);
        told
    }

    fn call(&self, session: SessionId, how: fn(&Bell), brings: Option<Brought>) {
        let mut house = self.keepers().house();
        let is_open = !self.keepers().is_closing();
        if let Some(brought) = brings.filter(|_| is_open) {
            house.brought.entry(session).or_default().push(brought);
        }
        if let Some(bell) = house.kept.get(&session) {
            how(bell);
            return;
        }
        if !is_open {
            return; // The inbox is durable: the next start looks.
        }
        let bell = Arc::new(Bell::default());
        house.kept.insert(session, bell.clone());
        drop(house);
        let place = Place { engine: self.clone(), session, bell };
        self.spawn(super::keep(self.clone(), place));
    }

    pub(crate) async fn keep_unfinished(&self) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = self.store().unfinished(after, UNFINISHED_PAGE).await?;
            page.iter().for_each(|session| self.keep(*session));
            match page.last() {
                Some(last) if page.len() == UNFINISHED_PAGE => after = Some(*last),
                Some(_) | None => return Ok(()),
            }
        }
    }

    /// The claim is free: whoever has waited longest for it asks again. If it does not want it any more, it passes it on.
    pub(crate) fn wake_crowded(&self, claim: &Claim) {
        let mut house = self.keepers().house();
        let next = house.crowded.get_mut(claim).and_then(VecDeque::pop_front);
        if let Some(session) = next {
            house.offered.insert(session, claim.clone());
            drop(house);
            self.keep(session);
        }
    }

    /// This session waits for the claim. One that it was offered and cannot use without this one goes to the next.
    pub(crate) fn wait_for(&self, claim: Claim, session: SessionId) {
        if let Some(unused) = self.keepers().crowded(claim, session) {
            self.wake_crowded(&unused);
        }
    }

    /// A session goes to rest without having used what it was offered.
    pub(crate) fn pass_on(&self, session: SessionId) {
        if let Some(claim) = self.keepers().declined(session) {
            self.wake_crowded(&claim);
        }
    }
}

/// A keeper's place. Dropped without `rest`, it is given up, so that the next caller finds an empty one.
pub(crate) struct Place {
    engine: Engine,
    session: SessionId,
    bell: Arc<Bell>,
}

impl Place {
    pub(super) fn session(&self) -> SessionId {
        self.session
    }

    /// Somebody has called.
    pub(super) async fn called(&self) {
        // A sound may be left over from a call that was noticed without it.
        while !self.was_called() {
            self.bell.sound.notified().await;
        }
    }

    /// Whether somebody has called since this was last asked.
    pub(super) fn was_called(&self) -> bool {
        self.bell.rung.swap(false, Ordering::AcqRel)
    }

    /// The node goes down.
    pub(super) async fn closing(&self) {
        let mut closing = std::pin::pin!(self.engine.keepers().closing.notified());
        // Whoever is called between the look and the wait is called all the same.
        closing.as_mut().enable();
        if !self.is_closing() {
            closing.await;
        }
    }

    /// Whether the node goes down.
    pub(super) fn is_closing(&self) -> bool {
        self.engine.keepers().is_closing()
    }

    /// Somebody has something to say that can wait a little.
    pub(super) async fn whispered(&self) {
        while !self.is_whispered() {
            self.bell.whisper.notified().await;
        }
    }

    pub(super) fn is_whispered(&self) -> bool {
        self.bell.whispered.load(Ordering::Acquire)
    }

    /// Called before the inbox is read: whatever is put into it from now on is said again.
    pub(super) fn hush(&self) {
        self.bell.whispered.store(false, Ordering::Release);
    }

    /// Gives the place up, unless somebody has called in the meantime.
    pub(super) fn rest(&self) -> bool {
        let mut house = self.engine.keepers().house();
        if self.was_called() || self.is_whispered() {
            return false;
        }
        self.remove(&mut house);
        true
    }

    pub(super) fn leave(&self) {
        self.remove(&mut self.engine.keepers().house());
    }

    fn remove(&self, house: &mut House) {
        if house.kept.get(&self.session).is_some_and(|bell| Arc::ptr_eq(bell, &self.bell)) {
            house.kept.remove(&self.session);
            house.brought.remove(&self.session);
            house.chores.remove(&self.session);
            self.engine.keepers().emptier.notify_one();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
    }
}

//! One keeper per session on this node, and how it is rung.
//!
//! A ring that has reached this node is never lost: a keeper that wants to rest gives its keepership up under the same lock
//! under which it is rung, and only if nobody has rung since it last looked at the inbox.

use crate::Engine;
use crate::cluster::Ring;
use kernel::{Errand, Return, SessionId};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::StoreError;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// Unfinished sessions looked up at once.
const UNFINISHED_PAGE: usize = 256;
/// The longest that messages that only queue may stay in the inbox of a session whose turn is under way. They are as
/// safe there; whatever cannot wait (a stop, an edit) takes them along at once.
const ROUND_MAX: Duration = Duration::from_millis(200);
/// The same while few sessions have such messages: whoever follows hears of them before a person would notice.
const ROUND_QUIET: Duration = Duration::from_millis(25);
/// Notices of one session that wait to be written. Each is of a process that has ended, and there is one for each session.
const NOTICES_MAX: usize = 16;
/// Sessions in a round from which on the next one is a long one.
const ROUND_BUSY: usize = 8;

/// The keepers of this node.
#[derive(Debug, Default)]
pub(crate) struct Keepers {
    /// Tells keepers that the node goes down, in the order in which they began to listen: a story that is told again is the same
    /// one.
    closing: Notify,
    kept: Mutex<Kept>,
    emptier: Notify,
}

#[derive(Debug, Default)]
struct Kept {
    bells: BTreeMap<SessionId, Arc<Bell>>,
    /// Results of looks for a session: its keeper says whether they count.
    confirmations: BTreeMap<SessionId, Vec<Confirmation>>,
    /// Notices for a session that its keeper has not written yet. They need not survive a crash: the driver has its own note.
    notices: BTreeMap<SessionId, Vec<String>>,
    round: Option<CollectionRound>,
}

/// A round in which messages that only queue are collected.
#[derive(Debug, Clone, Copy)]
struct CollectionRound {
    ends: Instant,
    /// The sessions that are in it.
    sessions: usize,
}

impl CollectionRound {
    /// The one that begins now. Only where one with many sessions has just ended is it worth while to let people wait.
    fn after(last: Option<Self>, now: Instant) -> Self {
        let is_busy = last.is_some_and(|last| last.sessions >= ROUND_BUSY && last.ends + ROUND_MAX > now);
        Self { ends: now + if is_busy { ROUND_MAX } else { ROUND_QUIET }, sessions: 0 }
    }
}

/// Something that was looked up outside, for the keeper to say whether it counts. It is no wish, and need not survive a
/// crash: whoever looked asks again.
#[derive(Debug)]
pub(crate) struct Confirmation {
    pub(crate) errand: Errand,
    pub(crate) came: Return,
    counts: oneshot::Sender<bool>,
}

impl Confirmation {
    pub(super) fn answer(self, counts: bool) {
        let _ = self.counts.send(counts); // Whoever has given up does not want to know.
    }
}

/// The bell by which a keeper is rung.
#[derive(Debug, Default)]
struct Bell {
    rung: AtomicBool,
    sound: Notify,
    /// Something is in the inbox that can wait a little.
    rung_soon: AtomicBool,
    sound_soon: Notify,
}

impl Bell {
    fn ring(&self, ring: Ring) {
        match ring {
            Ring::Now => {
                self.rung.store(true, Ordering::Release);
                self.sound.notify_one();
            }
            Ring::Soon => {
                self.rung_soon.store(true, Ordering::Release);
                self.sound_soon.notify_one();
            }
        }
    }
}

impl Keepers {
    pub(crate) fn count(&self) -> usize {
        self.kept().bells.len()
    }

    /// The lookups for this session.
    pub(super) fn confirmations(&self, session: SessionId) -> Vec<Confirmation> {
        self.kept().confirmations.remove(&session).unwrap_or_default()
    }

    /// Keeps a notice until the session's keeper has written it.
    pub(crate) fn add_notice(&self, session: SessionId, text: String) {
        let mut kept = self.kept();
        let notices = kept.notices.entry(session).or_default();
        if notices.len() < NOTICES_MAX {
            notices.push(text);
        }
    }

    /// The notices that wait for this session's keeper.
    pub(super) fn notices(&self, session: SessionId) -> Vec<String> {
        self.kept().notices.get(&session).cloned().unwrap_or_default()
    }

    /// The first so many of them are written.
    pub(super) fn notices_are_written(&self, session: SessionId, count: usize) {
        let mut kept = self.kept();
        let left = kept.notices.get_mut(&session).map(|notices| {
            notices.drain(..count.min(notices.len()));
            notices.len()
        });
        if left == Some(0) {
            kept.notices.remove(&session);
        }
    }

    /// The moment at which messages that only queue are taken from the inbox. All sessions have it together, so that what they
    /// append shares a commit instead of each taking a message's turn at the disk.
    pub(super) fn round_end(&self, now: Instant) -> Instant {
        let mut kept = self.kept();
        let under_way = kept.round.filter(|round| round.ends > now);
        let mut round = under_way.unwrap_or_else(|| CollectionRound::after(kept.round, now));
        round.sessions += 1;
        kept.round.insert(round).ends
    }

    /// The node goes down (`EnginePorts::close`): ends every keeper, and waits until the last has gone. What does not end in time
    /// is left to the next start.
    pub(crate) async fn close(&self, wait: Duration) {
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

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nobody panics while holding it; it holds only who is here.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Lets the session's keeper on this node look at the inbox; begins to keep it if nobody does.
    pub(crate) fn rung(&self, session: SessionId, ring: Ring) {
        self.ring_keeper(session, ring, None);
    }

    /// Lets the session's keeper say whether what was looked up outside counts. An error means that no keeper has said so.
    pub(crate) fn confirm(
        &self,
        session: SessionId,
        errand: Errand,
        came: Return,
    ) -> oneshot::Receiver<bool> {
        let (counts, told) = oneshot::channel();
        self.ring_keeper(session, Ring::Now, Some(Confirmation { errand, came, counts }));
        told
    }

    fn ring_keeper(&self, session: SessionId, ring: Ring, brings: Option<Confirmation>) {
        let mut kept = self.keepers().kept();
        let is_open = !self.ports().is_closing();
        if let Some(confirmation) = brings.filter(|_| is_open) {
            kept.confirmations.entry(session).or_default().push(confirmation);
        }
        if let Some(bell) = kept.bells.get(&session) {
            bell.ring(ring);
            return;
        }
        if !is_open {
            return; // The inbox is durable: the next start looks.
        }
        let bell = Arc::new(Bell::default());
        kept.bells.insert(session, bell.clone());
        drop(kept);
        let is_expected = ring == Ring::Soon;
        if is_expected {
            self.expect(session);
        }
        let keepership =
            Keepership { engine: self.clone(), session, bell, is_expected: AtomicBool::new(is_expected) };
        self.spawn(super::keep(self.clone(), keepership));
    }

    /// A message has come for a session that rests: whoever keeps a process for it shows that it is there while the session is read. Which
    /// agent it has is not known before that; the others keep nothing for it, or what is about to go.
    fn expect(&self, session: SessionId) {
        self.agents_by_name().values().for_each(|agent| agent.expect(session));
    }

    /// Rings for every session that has something in its inbox, or something under way.
    pub(crate) async fn ring_unfinished(&self) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = self.unfinished_after(&mut after).await?;
            page.iter().for_each(|session| self.keep(*session));
            if page.len() < UNFINISHED_PAGE {
                return Ok(());
            }
        }
    }

    /// Rings for every session that has something in its inbox, or something under way that nobody here keeps: whoever put it
    /// there has rung, and so has the start that found it, and that may have got lost.
    pub(crate) async fn ring_waiting(&self) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = self.unfinished_after(&mut after).await?;
            for session in &page {
                let is_kept = self.keepers().kept().bells.contains_key(session);
                if !is_kept || !self.store().inbox(*session, 1).await?.is_empty() {
                    self.keep(*session);
                }
            }
            if page.len() < UNFINISHED_PAGE {
                return Ok(());
            }
        }
    }

    async fn unfinished_after(&self, after: &mut Option<SessionId>) -> Result<Vec<SessionId>, StoreError> {
        let page = self.store().unfinished(*after, UNFINISHED_PAGE).await?;
        *after = page.last().copied().or(*after);
        Ok(page)
    }
}

/// Being the one keeper of a session on this node. Dropped without `rest`, it is given up, so that the next ring finds
/// nobody.
pub(crate) struct Keepership {
    engine: Engine,
    session: SessionId,
    bell: Arc<Bell>,
    /// The first attempt was announced when the message came.
    is_expected: AtomicBool,
}

impl Keepership {
    /// True if the next attempt was announced already. The ones after it were not.
    pub(super) fn was_expected(&self) -> bool {
        self.is_expected.swap(false, Ordering::AcqRel)
    }

    pub(super) fn session(&self) -> SessionId {
        self.session
    }

    /// Somebody rings.
    pub(super) async fn rung(&self) {
        // A sound may be left over from a ring that was noticed without it.
        while !self.was_rung() {
            self.bell.sound.notified().await;
        }
    }

    /// True if somebody has rung since this was last asked.
    pub(super) fn was_rung(&self) -> bool {
        self.bell.rung.swap(false, Ordering::AcqRel)
    }

    /// The node goes down.
    pub(super) async fn closing(&self) {
        let mut closing = std::pin::pin!(self.engine.keepers().closing.notified());
        // Whoever is told between the look and the wait is told all the same.
        closing.as_mut().enable();
        if !self.is_closing() {
            closing.await;
        }
    }

    /// True if the node goes down.
    pub(super) fn is_closing(&self) -> bool {
        self.engine.ports().is_closing()
    }

    /// Somebody rings who can wait a little.
    pub(super) async fn rung_soon(&self) {
        while !self.is_rung_soon() {
            self.bell.sound_soon.notified().await;
        }
    }

    pub(super) fn is_rung_soon(&self) -> bool {
        self.bell.rung_soon.load(Ordering::Acquire)
    }

    /// Called before the inbox is read: whatever is put into it from now on rings again.
    pub(super) fn inbox_is_read(&self) {
        self.bell.rung_soon.store(false, Ordering::Release);
    }

    /// Gives the keepership up, unless somebody has rung in the meantime.
    pub(super) fn rest(&self) -> bool {
        let mut kept = self.engine.keepers().kept();
        if self.was_rung() || self.is_rung_soon() {
            return false;
        }
        self.remove(&mut kept);
        true
    }

    pub(super) fn leave(&self) {
        self.remove(&mut self.engine.keepers().kept());
    }

    fn remove(&self, kept: &mut Kept) {
        if kept.bells.get(&self.session).is_some_and(|bell| Arc::ptr_eq(bell, &self.bell)) {
            kept.bells.remove(&self.session);
            kept.confirmations.remove(&self.session);
            self.engine.keepers().emptier.notify_one();
        }
    }
}

impl Drop for Keepership {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn rounds_are_long_only_while_many_sessions_are_in_them() {
        let (keepers, start) = (Keepers::default(), Instant::now());
        let after = |ms| start + Duration::from_millis(ms);
        assert_eq!(keepers.round_end(start), start + ROUND_QUIET);
        assert_eq!(keepers.round_end(after(10)), start + ROUND_QUIET, "the round is everybody's");
        assert_eq!(keepers.round_end(after(30)), after(30) + ROUND_QUIET, "there were few");
        for _ in 1..ROUND_BUSY {
            keepers.round_end(after(40));
        }
        assert_eq!(keepers.round_end(after(60)), after(60) + ROUND_MAX, "there were many");
        let later = after(60) + ROUND_MAX * 3;
        assert_eq!(keepers.round_end(later), later + ROUND_QUIET, "it has been quiet since");
    }
}

//! Facts out to whoever watches, as they happen.
//!
//! One ring per watched session. The log is the truth: a reader who lags behind the ring is cut off and comes back with
//! the last number it has; nothing is buffered for it. A fact is shared, and whoever puts it on a wire may keep the
//! encoded form in `Shared::frame`, so that it is encoded once for all readers.

use bytes::Bytes;
use kernel::{MessageId, Number, RequestId, SessionId, Turn};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use store::{StoredFact, Verdict};
use tokio::sync::{broadcast, oneshot, watch};

/// Facts and live words that a watcher may lag behind before it is cut off.
const LAG_MAX: usize = 256;

/// Watchers and waiters among whom it is worth to look for those who gave up.
const SWEEP_MIN: usize = 64;

/// A fact on its way to watchers.
#[derive(Debug)]
pub struct Shared {
    /// The fact.
    pub fact: StoredFact,
    /// Its form on a wire, made by the first who needs it.
    pub frame: OnceLock<Bytes>,
}

impl Shared {
    pub(crate) fn new(fact: StoredFact) -> Arc<Self> {
        Arc::new(Self { fact, frame: OnceLock::new() })
    }
}

/// Words that are not in the log yet, with the place at which they will be.
#[derive(Debug)]
pub struct Live {
    /// The turn that says them.
    pub turn: Turn,
    /// `text` or `reasoning`.
    pub kind: &'static str,
    /// Which run of words within the turn.
    pub part: u32,
    /// Bytes of this part before these words.
    pub offset: u64,
    /// The words.
    pub text: String,
    /// Its form on a wire, made by the first who needs it.
    pub frame: OnceLock<Bytes>,
}

/// What a watcher is told.
#[derive(Debug, Clone)]
pub enum Told {
    /// A fact of the log.
    Fact(Arc<Shared>),
    /// Words ahead of the log. They come again, as a fact, with the same part and offset.
    Live(Arc<Live>),
}

/// Where keepers say what happened, and watchers and waiters hear it.
#[derive(Debug, Default)]
pub(crate) struct Fanout {
    rings: Mutex<Rings>,
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Rings {
    sessions: BTreeMap<SessionId, broadcast::Sender<Told>>,
    finals: BTreeMap<MessageId, Vec<oneshot::Sender<()>>>,
    verdicts: BTreeMap<RequestId, Vec<oneshot::Sender<Verdict>>>,
    /// How many there may be before it is looked who of them has given up.
    swept_at: usize,
    closed: bool,
}

impl Rings {
    /// Forgets those who gave up, each time that there are twice as many as were left the last time.
    fn sweep(&mut self) {
        let count = |rings: &Self| rings.sessions.len() + rings.finals.len() + rings.verdicts.len();
        if count(self) < self.swept_at.max(SWEEP_MIN) {
            return;
        }
        self.finals.retain(|_, waiting| waiting.iter().any(|one| !one.is_closed()));
        self.verdicts.retain(|_, waiting| waiting.iter().any(|one| !one.is_closed()));
        self.sessions.retain(|_, ring| ring.receiver_count() > 0);
        self.swept_at = 2 * count(self);
    }
}

impl Fanout {
    /// Everything that happens in this session from now on.
    pub(crate) fn watch(&self, session: SessionId) -> Option<broadcast::Receiver<Told>> {
        let mut rings = self.rings();
        if rings.closed {
            return None;
        }
        rings.sweep();
        Some(rings.sessions.entry(session).or_insert_with(|| broadcast::Sender::new(LAG_MAX)).subscribe())
    }

    /// A number that grows whenever any session has changed.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub(crate) fn tell_facts(&self, session: SessionId, facts: Vec<StoredFact>) {
        if let Some(ring) = self.ring(session) {
            for fact in facts {
                // No receiver is no error: it left between the look and the word.
                let _ = ring.send(Told::Fact(Shared::new(fact)));
            }
        }
        self.changed.send_modify(|count| *count += 1);
    }

    /// Facts may have been written that nobody was told: whoever watches comes back and reads the log.
    pub(crate) fn cut(&self, session: SessionId) {
        self.rings().sessions.remove(&session);
        self.changed.send_modify(|count| *count += 1);
    }

    pub(crate) fn tell_live(&self, session: SessionId, live: Live) {
        if let Some(ring) = self.ring(session) {
            let _ = ring.send(Told::Live(Arc::new(live)));
        }
    }

    /// Called by the one who waits, before it looks whether the message is final already.
    pub(crate) fn await_final(&self, message: MessageId) -> Option<oneshot::Receiver<()>> {
        let (tell, told) = oneshot::channel();
        let mut rings = self.rings();
        if rings.closed {
            return None;
        }
        rings.sweep();
        let waiting = rings.finals.entry(message).or_default();
        waiting.retain(|other| !other.is_closed());
        waiting.push(tell);
        Some(told)
    }

    pub(crate) fn tell_final(&self, messages: &BTreeSet<MessageId>) {
        let mut rings = self.rings();
        for message in messages {
            for waiting in rings.finals.remove(message).into_iter().flatten() {
                let _ = waiting.send(());
            }
        }
    }

    /// Called by the one who waits, before it looks whether there is a verdict already.
    pub(crate) fn await_verdict(&self, request: RequestId) -> oneshot::Receiver<Verdict> {
        let (tell, told) = oneshot::channel();
        let mut rings = self.rings();
        rings.sweep();
        rings.verdicts.entry(request).or_default().push(tell);
        told
    }

    pub(crate) fn tell_verdicts(&self, verdicts: &[(RequestId, Verdict)]) {
        let mut rings = self.rings();
        for (request, verdict) in verdicts {
            for waiting in rings.verdicts.remove(request).into_iter().flatten() {
                let _ = waiting.send(verdict.clone());
            }
        }
    }

    /// Ends every watch: the node goes down, and watchers find another or come back later.
    pub(crate) fn close(&self) {
        let mut rings = self.rings();
        rings.closed = true;
        rings.sessions.clear();
        rings.finals.clear();
        rings.verdicts.clear();
    }

    fn ring(&self, session: SessionId) -> Option<broadcast::Sender<Told>> {
        let mut rings = self.rings();
        let ring = rings.sessions.get(&session)?;
        if ring.receiver_count() == 0 {
            rings.sessions.remove(&session);
            return None;
        }
        Some(ring.clone())
    }

    fn rings(&self) -> MutexGuard<'_, Rings> {
        // Nobody panics while holding it; if somebody did, what it guards is still only a list of listeners.
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place in a session's log up to which a watcher has heard everything.
pub(crate) fn newer_than(told: &Told, at: Number) -> bool {
    match told {
        Told::Fact(shared) => shared.fact.number > at,
        Told::Live(_) => true,
    }
}

//! Facts out to whoever watches, as they happen.
//!
//! One ring per watched session. The log is the truth: a reader who lags behind the ring is cut off and comes back with
//! the last number it has; nothing is buffered for it. A fact is shared, and whoever puts it on a wire may keep the
//! encoded form in `SharedFact::frame`, so that it is encoded once for all readers.

use crate::progress::{ProgressUpdate, SessionProgress};
use bytes::Bytes;
use kernel::{Fact, MessageId, Number, RequestId, SessionId, Turn};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use store::{StoredEntry, StoredFact, Verdict};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

/// Facts and live words that a watcher may lag behind before it is cut off.
const LAG_MAX: usize = 256;

/// News that whoever tells it elsewhere may lag behind before it loses some.
const NEWS_MAX: usize = 1_024;

/// Watchers and waiters among whom it is worth to look for those who gave up.
const SWEEP_MIN: usize = 64;

/// A fact on its way to watchers.
#[derive(Debug)]
pub struct SharedFact {
    /// The fact.
    pub fact: StoredFact,
    /// Its form on a wire, made by the first who needs it.
    pub frame: OnceLock<Bytes>,
}

impl SharedFact {
    pub(crate) fn new(fact: StoredFact) -> Arc<Self> {
        Arc::new(Self { fact, frame: OnceLock::new() })
    }
}

/// Words that are not in the log yet, with the place at which they will be.
#[derive(Debug)]
pub struct LiveWords {
    /// The turn that says them.
    pub turn: Turn,
    /// `text` or `reasoning`.
    pub kind: &'static str,
    /// The run of words within the turn.
    pub part: u32,
    /// Bytes of this part before these words.
    pub offset: u64,
    /// The words.
    pub text: String,
    /// Its form on a wire, made by the first who needs it.
    pub frame: OnceLock<Bytes>,
}

/// The events that a watcher is told.
#[derive(Debug, Clone)]
pub enum SessionUpdate {
    /// A fact of the log.
    Fact(Arc<SharedFact>),
    /// Words ahead of the log. They come again, as a fact, with the same part and offset.
    Live(Arc<LiveWords>),
    /// The progress of what is done outside between turns.
    Progress(Arc<ProgressUpdate>),
}

/// Where keepers say what happened, and watchers and waiters hear it.
#[derive(Debug, Default)]
pub(crate) struct Fanout {
    subscribers: Mutex<Subscribers>,
    changed: watch::Sender<u64>,
    news: OnceLock<mpsc::Sender<(SessionId, Fact)>>,
}

#[derive(Debug, Default)]
struct Subscribers {
    sessions: BTreeMap<SessionId, broadcast::Sender<SessionUpdate>>,
    finals: BTreeMap<MessageId, Vec<oneshot::Sender<()>>>,
    verdicts: BTreeMap<RequestId, Vec<oneshot::Sender<Verdict>>>,
    /// The last word about what is done outside: one for each session that has something under way.
    progress: BTreeMap<SessionId, SessionProgress>,
    /// The number there may be before it is looked who of them has given up.
    swept_at: usize,
    closed: bool,
}

impl Subscribers {
    /// Forgets those who gave up, each time that there are twice as many as were left the last time.
    fn sweep(&mut self) {
        let count = |subscribers: &Self| {
            subscribers.sessions.len() + subscribers.finals.len() + subscribers.verdicts.len()
        };
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
    pub(crate) fn watch(&self, session: SessionId) -> Option<broadcast::Receiver<SessionUpdate>> {
        let mut subscribers = self.subscribers();
        if subscribers.closed {
            return None;
        }
        subscribers.sweep();
        Some(
            subscribers
                .sessions
                .entry(session)
                .or_insert_with(|| broadcast::Sender::new(LAG_MAX))
                .subscribe(),
        )
    }

    /// A number that grows whenever any session has changed.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The news that people may be told elsewhere, for one listener.
    pub(crate) fn news(&self) -> Option<mpsc::Receiver<(SessionId, Fact)>> {
        let (tell, told) = mpsc::channel(NEWS_MAX);
        self.news.set(tell).ok().map(|()| told)
    }

    fn tell_news(&self, session: SessionId, facts: &[StoredFact]) {
        let Some(listener) = self.news.get() else { return };
        let rules = facts.iter().filter_map(|fact| match &fact.entry {
            StoredEntry::Rule(fact) if is_news(fact) => Some(fact),
            StoredEntry::Rule(_) | StoredEntry::Story { .. } => None,
        });
        for fact in rules {
            // Nobody who appends waits for somebody who tells.
            if let Err(mpsc::error::TrySendError::Full(_)) = listener.try_send((session, fact.clone())) {
                tracing::warn!(%session, "there is more news than can be told");
            }
        }
    }

    pub(crate) fn tell_facts(&self, session: SessionId, facts: Vec<StoredFact>) {
        self.tell_news(session, &facts);
        if let Some(ring) = self.sender_of(session) {
            for fact in facts {
                // No receiver is no error: it left between the look and the word.
                let _ = ring.send(SessionUpdate::Fact(SharedFact::new(fact)));
            }
        }
        self.changed.send_modify(|count| *count += 1);
    }

    /// Some session's row in lists is another one.
    pub(crate) fn tell_row(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// Facts may have been written that nobody was told: whoever watches comes back and reads the log.
    pub(crate) fn cut(&self, session: SessionId) {
        self.subscribers().sessions.remove(&session);
        self.changed.send_modify(|count| *count += 1);
    }

    pub(crate) fn tell_live(&self, session: SessionId, live: LiveWords) {
        if let Some(ring) = self.sender_of(session) {
            let _ = ring.send(SessionUpdate::Live(Arc::new(live)));
        }
    }

    pub(crate) fn tell_progress(&self, session: SessionId, progress: Option<SessionProgress>) {
        {
            let known = &mut self.subscribers().progress;
            match progress.clone() {
                Some(progress) => drop(known.insert(session, progress)),
                None => drop(known.remove(&session)),
            }
        }
        if let Some(ring) = self.sender_of(session) {
            let update = ProgressUpdate { progress, frame: OnceLock::new() };
            let _ = ring.send(SessionUpdate::Progress(Arc::new(update)));
        }
    }

    pub(crate) fn progress(&self, session: SessionId) -> Option<SessionProgress> {
        self.subscribers().progress.get(&session).cloned()
    }

    /// Called by the one who waits, before it looks whether the message is final already.
    pub(crate) fn await_final(&self, message: MessageId) -> Option<oneshot::Receiver<()>> {
        let (tell, told) = oneshot::channel();
        let mut subscribers = self.subscribers();
        if subscribers.closed {
            return None;
        }
        subscribers.sweep();
        let waiting = subscribers.finals.entry(message).or_default();
        waiting.retain(|other| !other.is_closed());
        waiting.push(tell);
        Some(told)
    }

    pub(crate) fn tell_final(&self, messages: &BTreeSet<MessageId>) {
        let mut subscribers = self.subscribers();
        for message in messages {
            for waiting in subscribers.finals.remove(message).into_iter().flatten() {
                let _ = waiting.send(());
            }
        }
    }

    /// Called by the one who waits, before it looks whether there is a verdict already.
    pub(crate) fn await_verdict(&self, request: RequestId) -> oneshot::Receiver<Verdict> {
        let (tell, told) = oneshot::channel();
        let mut subscribers = self.subscribers();
        subscribers.sweep();
        subscribers.verdicts.entry(request).or_default().push(tell);
        told
    }

    pub(crate) fn tell_verdicts(&self, verdicts: &[(RequestId, Verdict)]) {
        let mut subscribers = self.subscribers();
        for (request, verdict) in verdicts {
            for waiting in subscribers.verdicts.remove(request).into_iter().flatten() {
                let _ = waiting.send(verdict.clone());
            }
        }
    }

    /// Ends every watch: the node goes down, and watchers find another or come back later.
    pub(crate) fn close(&self) {
        let mut subscribers = self.subscribers();
        subscribers.closed = true;
        subscribers.sessions.clear();
        subscribers.finals.clear();
        subscribers.verdicts.clear();
    }

    fn sender_of(&self, session: SessionId) -> Option<broadcast::Sender<SessionUpdate>> {
        let mut subscribers = self.subscribers();
        let ring = subscribers.sessions.get(&session)?;
        if ring.receiver_count() == 0 {
            subscribers.sessions.remove(&session);
            return None;
        }
        Some(ring.clone())
    }

    fn subscribers(&self) -> MutexGuard<'_, Subscribers> {
        // Nobody panics while holding it; if somebody did, what it guards is still only a list of listeners.
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place in a session's log up to which a watcher has heard everything.
pub(crate) fn newer_than(told: &SessionUpdate, at: Number) -> bool {
    match told {
        SessionUpdate::Fact(shared) => shared.fact.number > at,
        SessionUpdate::Live(_) | SessionUpdate::Progress(_) => true,
    }
}

/// True of what people may be told of while they look elsewhere.
fn is_news(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::Asked { .. }
            | Fact::Answered { .. }
            | Fact::Lapsed { .. }
            | Fact::StopAsked { .. }
            | Fact::TurnEnded { .. }
    )
}

//! One session's facts, one after the other, without end: from the log, then as they happen.
//!
//! Whoever watches is asked again whether they may: at every change of rights on this node, and at least every
//! `LOOK_EVERY`, once for all who watch the same session with the same credential. A right that is gone ends the stream.

use crate::fanout::{SessionUpdate, SharedFact, newer_than};
use crate::people::LOOK_EVERY;
use crate::shared_looks::{Looker, SharedAnswers, SharedLooks, Tell};
use crate::{InvalidError, Neighbour, ReadyView, UnavailableError, ViewError, Views};
use kernel::{Number, Principal, SessionId};
use std::sync::Arc;
use std::time::Duration;
use store::StoredEntry;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

/// Facts read at once while a watcher catches up, so that many slow watchers cost little memory.
const CATCH_UP_FACTS: usize = 64;
/// And how many bytes of them.
const CATCH_UP_BYTES: usize = 8 * 1024;

/// The readiness of sessions, for many who watch the same one.
pub(crate) type SharedReadiness = SharedAnswers<(Looker, SessionId), Option<ReadyView>>;

/// The looks at who may still watch which session. Each tells the principal as they are now, and ends when they may not.
pub(crate) type WatchedRights = SharedLooks<(Looker, SessionId), Arc<Principal>>;

impl Views {
    /// Every fact after a number, those to come included, and live words.
    pub async fn follow(
        &self,
        by: &Principal,
        session: SessionId,
        after: Number,
    ) -> Result<Follow, ViewError> {
        let rights = self.ports.rights_now();
        let (_, row) = self.seen(by, session).await?;
        if after > row.at {
            // A number of another log, or of one that was given up by a restore: silence would look like an answer.
            let reason = format!("the log ends at {}: begin again from there, or from 0", row.at);
            return Err(InvalidError { field: "after", reason }.into());
        }
        // Watch first, then read: what happens in between is heard twice, and told once.
        let ring = self
            .ports
            .cluster
            .follow(session)
            .ok_or(UnavailableError::Unavailable("shutting down".into()))?;
        let by = Arc::new(by.clone());
        let watched =
            self.watched_rights.join(&self.ports.tasks, (Looker::of(&by), session), by.clone(), |tell| {
                self.clone().look_at_rights(session, rights, tell)
            });
        Ok(Follow {
            views: self.clone(),
            by,
            session,
            at: after,
            ring,
            page: Vec::new().into_iter(),
            reading: Reading::Log,
            heard: None,
            rights,
            watched,
        })
    }

    /// Looks again and again whether they may still read this, until they may not. If it cannot be asked, nobody knows: then
    /// it is over, too, and readers come back.
    async fn look_at_rights(self, session: SessionId, mut rights: u64, tell: Tell<Arc<Principal>>) {
        loop {
            tokio::select! {
                biased;
                () = self.ports.cluster.rights_after(rights) => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            rights = self.ports.rights_now();
            let by = tell.borrow().clone();
            let Some(now) = self.still_reads(&by, session).await else { return };
            tell.send_if_modified(|known| {
                let is_new = **known != now;
                if is_new {
                    *known = Arc::new(now);
                }
                is_new
            });
        }
    }

    /// The principal as they are now, if they may still read this.
    async fn still_reads(&self, by: &Principal, session: SessionId) -> Option<Principal> {
        let by = self.rights_cache.refreshed(by).await.ok()??;
        self.rights_cache.may_still_read(&by, session).await.ok()?;
        Some(by)
    }
}

/// A session's facts, one after the other, without end.
#[derive(Debug)]
pub struct Follow {
    views: Views,
    by: Arc<Principal>,
    session: SessionId,
    at: Number,
    ring: broadcast::Receiver<SessionUpdate>,
    page: std::vec::IntoIter<Arc<SharedFact>>,
    reading: Reading,
    /// Heard from the ring, and not told yet.
    heard: Option<SessionUpdate>,
    /// The number of changes of rights that have been heeded.
    rights: u64,
    /// The look that is shared with all who watch this so.
    watched: watch::Receiver<Arc<Principal>>,
}

/// Where a watcher reads from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// From the log; the ring runs on meanwhile.
    Log,
    /// From the ring, of which nothing has been heard yet: it may have run away while we read the log.
    RingFirst,
    /// From the ring.
    Ring,
}

/// The next event for a watcher.
enum Next {
    Update(SessionUpdate),
    /// It has lagged behind the ring.
    Lagged,
    /// The ring is gone.
    Over,
    /// Whoever watches is another than before: what they may do has changed.
    Changed,
}

impl Follow {
    /// The next thing to tell. `None` is the end: the reader lagged behind, lost its right, or the node goes down; it
    /// may come back with the last number it has. Cancel-safe.
    pub async fn next(&mut self) -> Option<SessionUpdate> {
        loop {
            // An agent that never stops talking does not keep us from looking.
            self.heed().await?;
            if let Some(shared) = self.page.next() {
                self.at = shared.fact.number;
                return Some(SessionUpdate::Fact(shared));
            }
            if self.reading == Reading::Log {
                self.read_log().await?;
                continue;
            }
            let next = match self.heard.take() {
                Some(told) => Next::Update(told),
                None => self.hear().await,
            };
            let told = match next {
                Next::Update(told) if self.is_heeded() => told,
                // Rights have changed while it was waited for: they are heeded first.
                Next::Update(told) => {
                    self.heard = Some(told);
                    continue;
                }
                Next::Changed => continue,
                Next::Lagged if self.reading == Reading::RingFirst => {
                    self.reading = Reading::Log;
                    continue;
                }
                Next::Lagged | Next::Over => return None,
            };
            self.reading = Reading::Ring;
            if !newer_than(&told, self.at) {
                continue;
            }
            if let SessionUpdate::Fact(shared) = &told {
                if shared.fact.number != self.at.next() {
                    // Something between was told before we watched.
                    self.reading = Reading::Log;
                    continue;
                }
                self.at = shared.fact.number;
            }
            return Some(told);
        }
    }

    async fn hear(&mut self) -> Next {
        tokio::select! {
            biased;
            heard = self.ring.recv() => match heard {
                Ok(told) => Next::Update(told),
                Err(broadcast::error::RecvError::Lagged(_)) => Next::Lagged,
                Err(broadcast::error::RecvError::Closed) => Next::Over,
            },
            heard = self.watched.changed() => match heard {
                Ok(()) => Next::Changed,
                Err(_) => Next::Over,
            },
        }
    }

    /// Heeds what the shared look says; and looks by itself if rights have changed and that one may not have heard of it yet:
    /// nothing is told after it.
    async fn heed(&mut self) -> Option<()> {
        if self.watched.has_changed().ok()? {
            self.by = self.watched.borrow_and_update().clone();
        }
        let rights = self.views.ports.rights_now();
        if rights != self.rights {
            self.by = Arc::new(self.views.still_reads(&self.by, self.session).await?);
            self.rights = rights;
        }
        Some(())
    }

    fn is_heeded(&self) -> bool {
        self.views.ports.rights_now() == self.rights
    }

    async fn read_log(&mut self) -> Option<()> {
        let page =
            self.views.facts(&self.by, self.session, self.at, CATCH_UP_FACTS, CATCH_UP_BYTES).await.ok()?;
        if page.is_empty() {
            self.reading = Reading::RingFirst;
        }
        self.page = page.into_iter();
        Some(())
    }

    /// The same, and how ready the session is: at first, and whenever that changes.
    pub fn with_readiness(self) -> ReadyFollow {
        ReadyFollow { follow: self, told: None, look_at: Instant::now() }
    }

    /// The number up to which everything was told.
    pub fn at(&self) -> Number {
        self.at
    }

    /// True if everything that was there has been told, so that the next fact is a new one.
    pub fn is_caught_up(&self) -> bool {
        self.reading != Reading::Log && self.page.len() == 0
    }
}

/// The time for which facts are waited for that follow each other, before it is looked how ready the session is after
/// them.
const READY_SOON: Duration = Duration::from_millis(50);
/// The time between two looks although nothing was heard: a directory may go, or an agent come.
const READY_EVERY: Duration = Duration::from_secs(15);

/// The events for somebody who also wants to know how ready the session is.
#[derive(Debug)]
pub enum FollowUpdate {
    /// A fact, or live words.
    Session(SessionUpdate),
    /// Its readiness now.
    Ready(ReadyView),
}

/// The part that makes one answer differ from the next: the words of each part and who is in the way, without any
/// times.
#[derive(Debug, PartialEq, Eq)]
struct ReadinessDigest {
    words: Vec<(&'static str, &'static str)>,
    neighbour: Option<Neighbour>,
}

/// A session's facts, and how ready it is.
#[derive(Debug)]
pub struct ReadyFollow {
    follow: Follow,
    told: Option<ReadinessDigest>,
    look_at: Instant,
}

impl ReadyFollow {
    /// The next thing to tell; `None` is the end, as of the facts. Cancel-safe.
    pub async fn next(&mut self) -> Option<FollowUpdate> {
        loop {
            // Before anything is heard: an agent that never stops talking does not keep us from looking, either.
            if Instant::now() >= self.look_at {
                self.follow.heed().await?;
                if let Some(ready) = self.changed().await {
                    return Some(FollowUpdate::Ready(ready));
                }
            }
            tokio::select! {
                biased;
                told = self.follow.next() => {
                    let told = told?;
                    if let SessionUpdate::Fact(shared) = &told
                        && let StoredEntry::Rule(_) = shared.fact.entry
                    {
                        self.look_at = self.look_at.min(Instant::now() + READY_SOON);
                    }
                    return Some(FollowUpdate::Session(told));
                }
                () = tokio::time::sleep_until(self.look_at) => {}
            }
        }
    }

    /// Its readiness, if that is not what was told last. If it cannot be seen, it is looked again later.
    async fn changed(&mut self) -> Option<ReadyView> {
        let Follow { views, by, session, .. } = &self.follow;
        let look = async { views.readiness(by, *session).await.ok() };
        let seen = views.shared_readiness.ask((Looker::of(by), *session), look).await;
        let now = views.ports.now();
        self.look_at = Instant::now() + READY_EVERY;
        let view = seen?;
        // What is waited for until a moment is something else after it.
        let deadlines = view.parts.iter().filter_map(|part| part.until).filter(|until| *until > now);
        if let Some(next) = deadlines.min() {
            let wait = Duration::from_millis(next.0 - now.0) + READY_SOON;
            self.look_at = self.look_at.min(Instant::now() + wait);
        }
        let words = view.parts.iter().map(|part| (part.state.word(), part.why.map_or("", |why| why.word())));
        let words = [(view.state, "")].into_iter().chain(words).collect();
        let glance = Some(ReadinessDigest { words, neighbour: view.neighbour });
        let is_new = self.told != glance;
        self.told = glance;
        is_new.then_some(view)
    }
}

//! Reads that were refused, written into the audit a moment after they were answered.
//!
//! Whoever is refused waits for nothing: what they asked for goes into a short queue, in the same time whether it exists or
//! not. Only then is it looked up, and written down if it is there. What was never minted is no news, and what belongs to
//! another org is told to neither: orgs see nothing of each other, not even that somebody has tried.

use crate::{Trace, Views};
use kernel::{Moment, PersonId, Principal};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use store::{AuditEntry, Seer, StoreError, Thing, Trail};
use tokio::sync::Notify;

/// Reads that may wait to be looked up. Beyond them they are counted and forgotten, so that nobody fills our memory.
const WAITING_MAX: usize = 1_024;
/// There is one entry for a person and a thing in this time.
const ONCE_IN_MS: u64 = 60_000;
/// Entries that are remembered for that. Beyond them, too, reads are counted and forgotten.
const NOTED_MAX: usize = 4_096;

/// The code of what is not there, or not for whoever asks.
const NOT_FOUND: &str = "not_found";

#[derive(Debug)]
struct RefusedRead {
    by: Principal,
    thing: Thing,
    refused: &'static str,
    trail: Trail,
}

/// The reads that wait to be looked up, and those that were written down lately.
#[derive(Debug, Default)]
pub(crate) struct RefusedReads {
    waiting: Mutex<VecDeque<RefusedRead>>,
    come: Notify,
    noted: Mutex<BTreeMap<(PersonId, Thing), Moment>>,
    dropped: AtomicU64,
}

impl RefusedReads {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<RefusedRead>> {
        // Nobody panics while holding it.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn drop_one(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// True if this is to be written down now.
    fn is_first(&self, person: PersonId, thing: Thing, now: Moment) -> bool {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.get(&(person, thing)).is_some_and(|at| now < at.after_ms(ONCE_IN_MS)) {
            return false;
        }
        if noted.len() >= NOTED_MAX {
            noted.retain(|_, at| now < at.after_ms(ONCE_IN_MS));
        }
        let has_room = noted.len() < NOTED_MAX;
        if has_room {
            noted.insert((person, thing), now);
        } else {
            self.drop_one();
        }
        has_room
    }
}

pub(crate) fn start(views: &Views) {
    let noting = views.clone();
    views.ports.tasks.spawn(async move {
        loop {
            noting.note_refused_reads().await;
            noting.refused_reads.come.notified().await;
        }
    });
}

impl Views {
    /// A read of this was refused, with this code.
    pub fn read_refused(&self, by: &Principal, thing: Thing, refused: &'static str, trace: &Trace) {
        let reads = &self.refused_reads;
        let mut waiting = reads.waiting();
        if waiting.len() >= WAITING_MAX {
            reads.drop_one();
            return;
        }
        waiting.push_back(RefusedRead {
            by: by.clone(),
            thing,
            refused,
            trail: self.ports.trail("read", trace),
        });
        drop(waiting);
        reads.come.notify_one();
    }

    /// The number of refused reads that were not looked up, because there were too many or the store was in trouble.
    pub fn refused_reads_dropped(&self) -> u64 {
        self.refused_reads.dropped.load(Ordering::Relaxed)
    }

    /// Looks up whatever waits.
    pub(crate) async fn note_refused_reads(&self) {
        loop {
            let Some(read) = self.refused_reads.waiting().pop_front() else { return };
            if let Err(error) = self.note_refused_read(read).await {
                self.refused_reads.drop_one();
                tracing::warn!(%error, "a refused read is missing in the audit");
            }
        }
    }

    async fn note_refused_read(&self, read: RefusedRead) -> Result<(), StoreError> {
        let RefusedRead { by, thing, refused, trail } = read;
        let found = self.ports.store.whereabouts(Seer::of(&by), thing).await?;
        // What is not in a thing that they may read was not refused: it is not there.
        let found = found.filter(|found| refused != NOT_FOUND || !found.is_seen);
        let Some(found) = found.filter(|_| self.refused_reads.is_first(by.person, thing, trail.at)) else {
            return Ok(());
        };
        let session = found.session;
        let subject = Some(match thing {
            Thing::Session(_) => session.to_string(),
            Thing::Message(message) => format!("{session} {message}"),
            Thing::Approval(approval) => format!("{session} {approval}"),
        });
        self.ports.store.audit(AuditEntry { by: Some((by.org, by.person)), subject, trail, refused }).await?;
        self.ports.audited();
        Ok(())
    }
}

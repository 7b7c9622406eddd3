//! The store of a test as it is on a disk: writing takes its time, and an answer may get lost.

use kernel::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::*;

/// The faults of the disk. Nothing, at first.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// The time an append takes.
    pub(crate) append_ms: AtomicU64,
    /// The answer to the next append that ends a turn gets lost; the append does not.
    pub(crate) loses_end: Mutex<bool>,
    /// The fate of the next append that tells of a worktree.
    pub(crate) loses_removal: Mutex<Option<Lost>>,
    /// The fate of the next session that is made.
    pub(crate) loses_create: Mutex<Option<Lost>>,
    /// The answer to the next take of replies gets lost; what it took is being sent by nobody.
    pub(crate) loses_take: Mutex<bool>,
    /// The time until we hear that a claim was refused.
    pub(crate) refusal_ms: AtomicU64,
    /// The appends so far.
    pub(crate) appends: AtomicU64,
}

/// The part of a write that gets lost.
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
    async fn make(
        &self,
        by: std::sync::Arc<Principal>,
        new: Create,
    ) -> Result<store::WriteOutcome<SessionId, Rejection>, StoreError> {
        let lost = self.faults.loses_create.lock().unwrap().take();
        match lost {
            Some(Lost::Write) => return Err(StoreError::Unknown("it never got there".to_owned())),
            Some(Lost::Answer) => {
                self.inner.create(by, new).await?;
                return Err(StoreError::Unknown("the answer got lost".to_owned()));
            }
            None => {}
        }
        self.inner.create(by, new).await
    }

    async fn write(&self, append: Append) -> Result<Appending, StoreError> {
        let ms = self.faults.append_ms.load(Ordering::Relaxed);
        if ms > 0 {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        self.faults.appends.fetch_add(1, Ordering::Relaxed);
        let ends = append.facts.iter().any(|new| matches!(new.entry, Entry::Rule(Fact::TurnEnded { .. })));
        let tells = append
            .facts
            .iter()
            .any(|new| matches!(&new.entry, Entry::Story { kind, .. } if kind == "worktree"));
        let lost = if tells { self.faults.loses_removal.lock().unwrap().take() } else { None };
        if let Some(Lost::Write) = lost {
            return Err(StoreError::Unknown("it never got there".to_owned()));
        }
        let written = self.inner.append(append).await?;
        if let Some(Lost::Answer) = lost {
            return Err(StoreError::Unknown("the answer got lost".to_owned()));
        }
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

impl Disk {
    async fn take(&self, take: TakeOutgoing) -> Result<TakenOutgoing, StoreError> {
        let taken = self.inner.outbox_take(take).await?;
        if !taken.send.is_empty() && std::mem::take(&mut *self.faults.loses_take.lock().unwrap()) {
            return Err(StoreError::Unknown("the answer got lost".to_owned()));
        }
        Ok(taken)
    }
}

impl Wrap for Disk {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.inner
    }
    fn append(&self, append: Append) -> Reply<'_, Appending> {
        Box::pin(self.write(append))
    }
    fn outbox_take(&self, take: TakeOutgoing) -> Reply<'_, TakenOutgoing> {
        Box::pin(self.take(take))
    }
    fn create(
        &self,
        by: std::sync::Arc<Principal>,
        new: Create,
    ) -> Reply<'_, store::WriteOutcome<SessionId, Rejection>> {
        Box::pin(self.make(by, new))
    }
}

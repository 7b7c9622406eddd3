//! The sessions that change, one after the other, without end: as heads only.
//!
//! A change anywhere concerns few. So it is looked once for all the streams of a credential whether they can see anything of it,
//! and only then are they woken, with what there is to tell.

use crate::people::LOOK_EVERY;
use crate::shared_looks::{Looker, SharedLooks, Tell};
use crate::{ViewError, Views};
use kernel::Principal;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use store::Head;
use tokio::sync::watch;

/// Heads read at once for a stream.
const STREAM_HEADS: usize = 100;
/// Changes within this time are read together, so that a busy server is not asked once per fact and reader.
const GATHER: Duration = Duration::from_millis(50);

/// The looks at what has changed for whom. Each ends when their credential is good for nothing any more.
pub(crate) type WatchedHeads = SharedLooks<Looker, Arc<HeadsWindow>>;

/// The newest heads, of which many streams take what is new to each.
#[derive(Debug)]
pub(crate) struct HeadsWindow {
    /// The place after which these begin; what was before it is not in it.
    after: u64,
    heads: Vec<Head>,
}

/// The sessions that change, one after the other, without end.
#[derive(Debug)]
pub struct FollowHeads {
    views: Views,
    by: Arc<Principal>,
    /// The place up to which everything was told.
    at: u64,
    page: VecDeque<Head>,
    /// True while the store has to be read: what was before does not come by the window.
    is_behind: bool,
    /// The look that is shared; none until everything was read that was there before.
    told: Option<watch::Receiver<Arc<HeadsWindow>>>,
}

impl Views {
    /// The newest numbers of sessions that changed after a place among all changes, and of those that will.
    pub async fn follow_heads(&self, by: &Principal, after: u64) -> Result<FollowHeads, ViewError> {
        // Whoever may not read at all is told so, and not by a stream that ends at once.
        let page = self.heads(by, after, STREAM_HEADS).await?.into();
        let by = Arc::new(by.clone());
        Ok(FollowHeads { views: self.clone(), by, at: after, page, is_behind: true, told: None })
    }

    /// Listens to what changes for them. Who is the first begins the look, where they are.
    fn watch_heads(&self, by: &Arc<Principal>, after: u64) -> watch::Receiver<Arc<HeadsWindow>> {
        let changes = self.ports.cluster.changes();
        let first = Arc::new(HeadsWindow { after, heads: Vec::new() });
        self.watched_heads.join(&self.ports.tasks, Looker::of(by), first, |tell| {
            self.clone().look_at_heads(by.clone(), after, changes, tell)
        })
    }

    /// Reads whatever changes for them after a place, and tells it.
    async fn look_at_heads(
        self,
        by: Arc<Principal>,
        mut after: u64,
        mut changes: watch::Receiver<u64>,
        tell: Tell<Arc<HeadsWindow>>,
    ) {
        loop {
            // Seen before it is read: a change in between wakes us again.
            changes.mark_unchanged();
            let Ok(heads) = self.heads(&by, after, STREAM_HEADS).await else { return };
            let full = heads.last().map(|head| head.place).filter(|_| heads.len() >= STREAM_HEADS);
            tell.send_if_modified(|known| {
                let is_new = known.heads != heads;
                if is_new {
                    *known = Arc::new(HeadsWindow { after, heads });
                }
                is_new
            });
            if let Some(last) = full {
                after = last;
                continue;
            }
            if self.change_for(&by, &mut changes).await.is_none() {
                return;
            }
            tokio::time::sleep(GATHER).await;
        }
    }

    /// Answers when something has changed; none when their credential is good for nothing any more.
    async fn change_for(&self, by: &Principal, changes: &mut watch::Receiver<u64>) -> Option<()> {
        loop {
            let rights = self.ports.rights_now();
            tokio::select! {
                biased;
                changed = changes.changed() => return changed.ok(),
                () = self.ports.cluster.rights_after(rights) => {}
                // Another node may have taken it away.
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            self.rights_cache.refreshed(by).await.ok()??;
        }
    }
}

impl FollowHeads {
    /// The next one to tell. `None` is the end: they may not know any more, or the node goes down. Cancel-safe.
    pub async fn next(&mut self) -> Option<Head> {
        loop {
            if let Some(head) = self.page.pop_front() {
                self.at = head.place;
                return Some(head);
            }
            if self.is_behind {
                self.read().await?;
                continue;
            }
            let told = self.told.as_mut()?;
            told.changed().await.ok()?;
            let window = told.borrow_and_update().clone();
            if window.after > self.at {
                self.is_behind = true;
                continue;
            }
            self.page = window.heads.iter().filter(|head| head.place > self.at).copied().collect();
        }
    }

    /// Reads on from the store. Once there is nothing more it listens, and reads once more: what happens in between is heard.
    async fn read(&mut self) -> Option<()> {
        self.page = self.views.heads(&self.by, self.at, STREAM_HEADS).await.ok()?.into();
        if self.page.is_empty() {
            self.is_behind = self.told.is_none();
            self.told.get_or_insert_with(|| self.views.watch_heads(&self.by, self.at));
        }
        Some(())
    }
}

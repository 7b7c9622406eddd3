//! The sessions whose row in lists changes, one after the other, without end: by their ids only.
//!
//! A change anywhere concerns few. So it is looked once for all the streams of a credential whether they can see anything of it,
//! and only then are they woken, with what there is to tell.

use crate::people::LOOK_EVERY;
use crate::shared_looks::{Looker, SharedLooks, Tell};
use crate::view::may_read;
use crate::{ViewError, Views};
use kernel::Principal;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use store::{RowChange, Seer};
use tokio::sync::watch;

/// Changes read at once for a stream.
const STREAM_ROWS: usize = 100;
/// Changes within this time are read together, so that a busy server is not asked once per fact and reader.
const GATHER: Duration = Duration::from_millis(50);

/// The looks at what has changed for whom. Each ends when their credential is good for nothing any more.
pub(crate) type WatchedRows = SharedLooks<Looker, Arc<RowsWindow>>;

/// The newest changes, of which many streams take what is new to each.
#[derive(Debug)]
pub(crate) struct RowsWindow {
    /// The place after which these begin; what was before it is not in it.
    after: u64,
    rows: Vec<RowChange>,
}

/// The sessions whose row changes, one after the other, without end.
#[derive(Debug)]
pub(crate) struct FollowRows {
    views: Views,
    by: Arc<Principal>,
    /// The place up to which everything was told.
    at: u64,
    page: VecDeque<RowChange>,
    /// True while the store has to be read: what was before does not come by the window.
    is_behind: bool,
    /// The look that is shared; none until everything was read that was there before.
    told: Option<watch::Receiver<Arc<RowsWindow>>>,
}

impl Views {
    /// The sessions whose row changed after a place among all changes, and those whose will.
    pub(crate) async fn follow_rows(&self, by: &Principal, after: u64) -> Result<FollowRows, ViewError> {
        // Whoever may not read at all is told so, and not by a stream that ends at once.
        let page = self.row_changes(by, after).await?.into();
        let by = Arc::new(by.clone());
        Ok(FollowRows { views: self.clone(), by, at: after, page, is_behind: true, told: None })
    }

    /// A page of what has changed for them. Whoever asks again and again is asked each time what they may see now.
    async fn row_changes(&self, by: &Principal, after: u64) -> Result<Vec<RowChange>, ViewError> {
        let by = self.refreshed(by).await?;
        may_read(&by, "session")?;
        Ok(self.ports.store.row_changes(Seer::of(&by), after, STREAM_ROWS).await?)
    }

    /// Listens to what changes for them. Who is the first begins the look, where they are.
    fn watch_rows(&self, by: &Arc<Principal>, after: u64) -> watch::Receiver<Arc<RowsWindow>> {
        let changes = self.ports.cluster.changes();
        let rights = self.ports.rights_now();
        let first = Arc::new(RowsWindow { after, rows: Vec::new() });
        self.watched_rows.join(&self.ports.tasks, Looker::of(by), first, |tell| {
            self.clone().look_at_rows(by.clone(), after, changes, rights, tell)
        })
    }

    /// Reads whatever changes for them after a place, and tells it.
    async fn look_at_rows(
        self,
        by: Arc<Principal>,
        mut after: u64,
        mut changes: watch::Receiver<u64>,
        mut rights: u64,
        tell: Tell<Arc<RowsWindow>>,
    ) {
        loop {
            // Seen before it is read: a change in between wakes us again.
            changes.mark_unchanged();
            let Ok(rows) = self.row_changes(&by, after).await else { return };
            let full = rows.last().map(|row| row.place).filter(|_| rows.len() >= STREAM_ROWS);
            tell.send_if_modified(|known| {
                let is_new = known.rows != rows;
                if is_new {
                    *known = Arc::new(RowsWindow { after, rows });
                }
                is_new
            });
            if let Some(last) = full {
                after = last;
                continue;
            }
            if self.change_for(&by, &mut changes, &mut rights).await.is_none() {
                return;
            }
            tokio::time::sleep(GATHER).await;
        }
    }

    /// Answers when something has changed; none when their credential is good for nothing any more. What somebody may see changes
    /// with their rights.
    async fn change_for(
        &self,
        by: &Principal,
        changes: &mut watch::Receiver<u64>,
        rights: &mut u64,
    ) -> Option<()> {
        loop {
            let is_change = tokio::select! {
                biased;
                changed = changes.changed() => return changed.ok(),
                () = self.ports.cluster.rights_after(*rights) => true,
                // Another node may have taken it away.
                () = tokio::time::sleep(LOOK_EVERY) => false,
            };
            *rights = self.ports.rights_now();
            self.rights_cache.refreshed(by).await.ok()??;
            if is_change {
                return Some(());
            }
        }
    }
}

impl FollowRows {
    /// The next one to tell. `None` is the end: they may not know any more, or the node goes down. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<RowChange> {
        loop {
            if let Some(row) = self.page.pop_front() {
                self.at = row.place;
                return Some(row);
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
            self.page = window.rows.iter().filter(|row| row.place > self.at).copied().collect();
        }
    }

    /// True if something was read that is still to be told.
    pub(crate) fn has_more(&self) -> bool {
        !self.page.is_empty()
    }

    /// Reads on from the store. Once there is nothing more it listens, and reads once more: what happens in between is heard.
    async fn read(&mut self) -> Option<()> {
        self.page = self.views.row_changes(&self.by, self.at).await.ok()?.into();
        if self.page.is_empty() {
            self.is_behind = self.told.is_none();
            self.told.get_or_insert_with(|| self.views.watch_rows(&self.by, self.at));
        }
        Some(())
    }
}

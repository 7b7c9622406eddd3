//! Removing worktrees that nobody uses, by age and by what they take, and snapshots that are too old.
//!
//! A worktree goes only by `remove`, so it can be had again.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use kernel::SessionId;

use super::error::GitError;
use super::list::WorktreeStatus;
use super::names::{SnapshotMoment, SnapshotName, WorktreeName};
use super::room::{GoneReason, is_of_removed};
use super::store::{HiddenReference, SnapshotStore};
use super::{Git, now_ms};

/// Snapshots that are younger stay, whatever room they take.
const LAST_DAY: Duration = Duration::from_secs(24 * 3_600);

/// The worktrees that may go.
#[derive(Debug, Clone)]
pub struct CollectPolicy {
    /// Worktrees that were not used for so long.
    pub age: Duration,
    /// Bytes that all worktrees may take together; those that were not used for longest go first.
    pub bytes_max: u64,
    /// Snapshots of turns that are older.
    pub snapshot_age: Duration,
    /// Worktrees that must stay, whatever their age.
    pub in_use: BTreeSet<WorktreeName>,
    /// Under which session the snapshots of removed worktrees are kept.
    pub session: SessionId,
}

/// The fate of one.
#[derive(Debug)]
pub enum Collected {
    Worktree {
        name: WorktreeName,
        snapshot: super::Snapshot,
        bytes: u64,
    },
    /// It should have gone and could not; it is still there.
    Kept {
        name: WorktreeName,
        why: GitError,
    },
    Snapshot {
        repository: PathBuf,
        reference: String,
    },
}

impl Git {
    /// Removes what the policy says.
    pub async fn collect(&self, policy: &CollectPolicy) -> Result<Vec<Collected>, GitError> {
        let mut collected = Vec::new();
        let mut seen = self.list(None).await?;
        let mut bytes: u64 = seen.iter().map(|each| each.size_bytes).sum();
        seen.sort_by_key(|each| each.used_at_ms);
        let now = now_ms();
        for each in seen.into_iter().filter(|each| !policy.in_use.contains(&each.name)) {
            let age_ms = u128::from(now.saturating_sub(each.used_at_ms));
            if age_ms < policy.age.as_millis() && bytes <= policy.bytes_max {
                continue;
            }
            let size_bytes = each.size_bytes;
            let outcome = self.collect_one(each, policy.session, now).await;
            if matches!(outcome, Collected::Worktree { .. }) {
                bytes = bytes.saturating_sub(size_bytes);
            }
            collected.push(outcome);
        }
        collected.extend(self.sweep(policy.snapshot_age).await?);
        Ok(collected)
    }

    /// Deletes what a kill has left to be deleted, and the snapshots of turns that are older. Those of removed worktrees
    /// stay: what was never committed is nowhere else.
    pub async fn sweep(&self, age: Duration) -> Result<Vec<Collected>, GitError> {
        self.empty_trash().await?;
        for place in ["worktrees", "removed"] {
            self.clear_unfinished(&self.places.own.join(place))?;
        }
        let mut expired = Vec::new();
        for store in self.stores() {
            expired.extend(self.expire(&store, age).await?);
        }
        Ok(expired)
    }

    async fn collect_one(&self, seen: WorktreeStatus, session: SessionId, now: u64) -> Collected {
        // The time in place of a turn: each removal has a snapshot of its own.
        let name = SnapshotName { session, turn: now, moment: SnapshotMoment::Removed };
        match self.remove(&seen.name, &name).await {
            Ok(removed) => {
                Collected::Worktree { name: seen.name, snapshot: removed.snapshot, bytes: seen.size_bytes }
            }
            Err(why) => Collected::Kept { name: seen.name, why },
        }
    }

    /// Where a repository's snapshots take more room than they may, the older half of them goes. Those of the last day stay.
    async fn crowded_out(&self, store: &SnapshotStore) -> Result<Option<SystemTime>, GitError> {
        if self.note_size(store).await? <= self.bounds.store_bytes_max {
            return Ok(None);
        }
        let mut written: Vec<SystemTime> =
            store.all().iter().filter_map(|reference| store.written(reference)).collect();
        written.sort();
        let yesterday = SystemTime::now().checked_sub(LAST_DAY).unwrap_or(SystemTime::UNIX_EPOCH);
        Ok(written.get(written.len() / 2).map(|middle| yesterday.min(*middle)))
    }

    /// Deletes hidden refs that are too old, and gives back the room of what they alone held. Where they go before their time,
    /// the sessions are told.
    async fn expire(&self, store: &SnapshotStore, age: Duration) -> Result<Vec<Collected>, GitError> {
        let before = SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
        let crowded = self.crowded_out(store).await?.unwrap_or(before);
        let mut expired = Vec::new();
        {
            let _hidden = self.hold_hidden(store).await?;
            let written = |each: &HiddenReference| store.written(each);
            let is_due = |each: &HiddenReference, until: SystemTime| {
                written(each).is_some_and(|written| written <= until) && !is_of_removed(&each.name)
            };
            let (old, others): (Vec<_>, Vec<_>) =
                store.all().into_iter().partition(|each| is_due(each, before));
            let early: Vec<_> = others.into_iter().filter(|each| is_due(each, crowded)).collect();
            store.note_gone(&early, GoneReason::Repository)?;
            for reference in old.into_iter().chain(early) {
                store.unpoint(&reference)?;
                let (repository, reference) = (store.common.clone(), reference.name);
                expired.push(Collected::Snapshot { repository, reference });
            }
        }
        if !expired.is_empty() {
            self.compact(store).await?;
            self.note_size(store).await?;
        }
        Ok(expired)
    }
}

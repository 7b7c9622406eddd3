//! Removing worktrees that nobody uses, by age and by what they take, and snapshots that are too old.
//!
//! A worktree goes only by `remove`, so it can be had again.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use kernel::SessionId;

use super::error::GitError;
use super::leftovers::remove_lock_of;
use super::list::WorktreeStatus;
use super::names::{HIDDEN, SnapshotMoment, SnapshotName, WorktreeName};
use super::repository::{Repository, bytes_path};
use super::{Git, now_ms};

/// The beginning of the last part of the refs of removed worktrees.
const REMOVED: &str = SnapshotMoment::Removed.word();

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
        for common in self.repositories() {
            // A repository that is gone has no snapshots any more.
            if let Ok(repository) = Repository::at_common(&common) {
                expired.extend(self.expire(&repository, age).await?);
            }
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

    /// Deletes hidden refs that are too old. What they alone held is git's to prune.
    async fn expire(&self, repository: &Repository, age: Duration) -> Result<Vec<Collected>, GitError> {
        let _repository = self.hold(&repository.common, &repository.common).await?;
        let _hidden = self.hold_hidden(repository).await?;
        let shadow = self.shadow(repository)?;
        let list = self.plain(&shadow, "for-each-ref");
        let out =
            list.words(["--format=%(committerdate:unix) %(objectname) %(refname)", HIDDEN]).text().await?;
        let before = (now_ms() / 1_000).saturating_sub(age.as_secs());
        let mut expired = Vec::new();
        let mut wishes = String::new();
        for line in out.lines() {
            let words: Vec<&str> = line.splitn(3, ' ').collect();
            let [time, id, reference] = words[..] else { continue };
            let is_removed = reference.rsplit('/').next().is_some_and(|last| last.starts_with(REMOVED));
            if !is_removed && time.parse::<u64>().is_ok_and(|time| time <= before) {
                wishes.push_str(&format!("delete {reference} {id}\n"));
                remove_lock_of(&repository.common, reference);
                expired.push(Collected::Snapshot {
                    repository: repository.common.clone(),
                    reference: reference.to_owned(),
                });
            }
        }
        if !wishes.is_empty() {
            let said = self.delete_references(repository, wishes).await?;
            if said.code != Some(0) {
                return Err(GitError::Git { command: "git update-ref".into(), said: said.complaint });
            }
        }
        Ok(expired)
    }

    /// Every repository in which we have taken a snapshot or made a worktree.
    fn repositories(&self) -> BTreeSet<PathBuf> {
        let shadows = fs::read_dir(self.places.own.join("shadows")).into_iter().flatten().flatten();
        let about = shadows.filter_map(|entry| fs::read(entry.path().join("of")).ok());
        about.filter_map(|about| Some(bytes_path(about.split(|byte| *byte == 0).nth(1)?))).collect()
    }
}

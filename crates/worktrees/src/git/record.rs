//! The record of each worktree of ours: a small file, written before anything else is done and removed last.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use kernel::SessionId;

use super::again::MadeFrom;
use super::error::GitError;
use super::names::WorktreeName;
use super::repository::read_own;
use super::shadow::write_whole;
use super::snapshot::Snapshot;
use super::{Git, now_ms};

/// A worktree of ours. The file is there as long as anything of the worktree is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WorktreeRecord {
    /// The repository's common directory.
    pub(super) common: PathBuf,
    /// The root of the working tree it was made from.
    pub(super) home: PathBuf,
    /// The full name of its branch, or none if it has no branch of its own.
    pub(super) branch: Option<String>,
    /// True if the branch was made with it, so that it may go with it if nothing was added.
    pub(super) made_branch: bool,
    pub(super) base: Option<String>,
    pub(super) base_commit: String,
    /// The name of its directory in the repository's `worktrees`.
    pub(super) id: String,
    pub(super) made_at_ms: u64,
    /// The commit of the snapshot that it is made from, instead of from its base.
    #[serde(default)]
    pub(super) restoring: Option<String>,
    /// The source of its files while it is made whole again, after somebody has deleted it by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) again: Option<MadeFrom>,
    /// The id of the session that it was made for.
    #[serde(default)]
    pub(super) session: Option<String>,
    pub(super) state: RecordState,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RecordState {
    /// Not everything is there yet.
    Making,
    Made,
    /// Everything it held is in this snapshot; its directory may be gone.
    Removing {
        reference: String,
        commit: String,
        tree: String,
    },
}

impl WorktreeRecord {
    /// Where the repository keeps what belongs to this worktree alone.
    pub(super) fn admin(&self) -> PathBuf {
        self.common.join("worktrees").join(&self.id)
    }
}

/// The repository of a worktree of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordedRepository {
    pub(crate) common: PathBuf,
    /// The root of the working tree that the worktree was made from.
    pub(crate) home: PathBuf,
}

/// The repository of the worktree of that name, as a record in this place has it.
pub(crate) fn recorded_repository(own: &Path, name: &WorktreeName) -> Option<RecordedRepository> {
    let text = read_own(&path_in(own, name)).ok()?;
    let WorktreeRecord { common, home, .. } = serde_json::from_slice(&text).ok()?;
    Some(RecordedRepository { common, home })
}

/// Those of all worktrees whose records are in this place.
pub(crate) fn recorded_repositories(own: &Path) -> Vec<RecordedRepository> {
    let entries = fs::read_dir(own.join("worktrees")).into_iter().flatten().flatten();
    let name = |entry: fs::DirEntry| entry.file_name().to_str()?.strip_suffix(".json")?.parse().ok();
    entries.filter_map(name).filter_map(|name| recorded_repository(own, &name)).collect()
}

fn path_in(own: &Path, name: &WorktreeName) -> PathBuf {
    own.join("worktrees").join(format!("{name}.json"))
}

impl Git {
    /// The root of a worktree of ours.
    pub(super) fn worktree(&self, name: &WorktreeName) -> PathBuf {
        self.places.worktrees.join(name.as_str())
    }

    /// The root that a worktree of that name has, or would have.
    pub fn root_called(&self, name: &WorktreeName) -> PathBuf {
        self.worktree(name)
    }

    /// The root of the working tree that a worktree of ours was made from.
    pub fn home_of(&self, name: &WorktreeName) -> Result<Option<PathBuf>, GitError> {
        Ok(self.record(name)?.map(|record| record.home))
    }

    fn record_path(&self, name: &WorktreeName) -> PathBuf {
        path_in(&self.places.own, name)
    }

    /// The stamps of everything in it when its removal began; there until nobody can have written to it unseen.
    pub(super) fn stamps_path(&self, name: &WorktreeName) -> PathBuf {
        self.places.own.join("worktrees").join(format!("{name}.stamps"))
    }

    pub(super) fn record(&self, name: &WorktreeName) -> Result<Option<WorktreeRecord>, GitError> {
        let path = self.record_path(name);
        match read_own(&path) {
            Ok(text) => {
                let record = serde_json::from_slice(&text).map_err(|why| odd(&path, &why))?;
                Ok(Some(record))
            }
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(why) => Err(GitError::disk(&path)(why)),
        }
    }

    pub(super) fn write_record(&self, name: &WorktreeName, record: &WorktreeRecord) -> Result<(), GitError> {
        let path = self.record_path(name);
        let text = serde_json::to_vec(record).map_err(|why| odd(&path, &why))?;
        write_whole(&path, &text)
    }

    pub(super) fn forget_record(&self, name: &WorktreeName) -> Result<(), GitError> {
        let path = self.record_path(name);
        match fs::remove_file(&path) {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => Err(GitError::disk(&path)(why)),
            _ => Ok(()),
        }
    }

    /// All worktrees of ours, by name.
    pub(super) fn records(&self) -> Result<Vec<(WorktreeName, WorktreeRecord)>, GitError> {
        let path = self.places.own.join("worktrees");
        let mut names: Vec<WorktreeName> = fs::read_dir(&path)
            .map_err(GitError::disk(&path))?
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".json")?.parse().ok())
            .collect();
        names.sort();
        let mut found = Vec::new();
        for name in names {
            // Removed in between is as good as not there.
            found.extend(self.record(&name)?.map(|record| (name, record)));
        }
        Ok(found)
    }
}

/// A worktree that was removed, and how to have it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedWorktree {
    pub name: WorktreeName,
    /// The root of the working tree it was made from.
    pub repository: PathBuf,
    /// Without `refs/heads/`; none if it was on no branch of its own.
    pub branch: Option<String>,
    pub snapshot: Snapshot,
    pub removed_at_ms: u64,
    /// The id of the session that it was made for.
    pub(super) session: Option<String>,
}

impl RemovedWorktree {
    /// The session that it was made for.
    pub fn session(&self) -> Option<SessionId> {
        self.session.as_deref()?.parse().ok()
    }
}

impl Git {
    /// One removal of one worktree has one file, however often it is gone on with.
    fn removed_path(&self, name: &WorktreeName, commit: &str) -> PathBuf {
        self.places.own.join("removed").join(format!("{name}.{commit}.json"))
    }

    pub(super) fn note_removed(&self, removed: &RemovedWorktree) -> Result<(), GitError> {
        let path = self.removed_path(&removed.name, &removed.snapshot.commit);
        let text = serde_json::to_vec(removed).map_err(|why| odd(&path, &why))?;
        super::make_private(&self.places.own.join("removed"))?;
        write_whole(&path, &text)
    }

    pub(super) fn forget_removed(&self, name: &WorktreeName, commit: &str) -> Result<(), GitError> {
        let path = self.removed_path(name, commit);
        match fs::remove_file(&path) {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => Err(GitError::disk(&path)(why)),
            _ => Ok(()),
        }
    }

    /// Worktrees that were removed and not restored since, the newest first; also those whose removal is not over yet.
    pub fn removed(&self) -> Result<Vec<RemovedWorktree>, GitError> {
        let mut found: Vec<RemovedWorktree> = Vec::new();
        for entry in fs::read_dir(self.places.own.join("removed")).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|end| end != "json") {
                continue; // It is being written, or somebody was killed while it was.
            }
            match read_own(&path) {
                Ok(text) => found.push(serde_json::from_slice(&text).map_err(|why| odd(&path, &why))?),
                Err(why) if why.kind() == std::io::ErrorKind::NotFound => {}
                Err(why) => return Err(GitError::disk(&path)(why)),
            }
        }
        let noted: Vec<String> = found.iter().map(|removed| removed.snapshot.commit.clone()).collect();
        let cut_short = self.records()?.into_iter().filter_map(|(name, record)| being_removed(name, record));
        found.extend(cut_short.filter(|removed| !noted.contains(&removed.snapshot.commit)));
        // Whoever gave it back may have been killed before this was forgotten.
        let mut gone = Vec::new();
        for removed in found {
            let record = self.record(&removed.name)?.filter(|record| record.state == RecordState::Made);
            let is_back =
                |record: WorktreeRecord| record.restoring.as_ref() == Some(&removed.snapshot.commit);
            if !record.is_some_and(is_back) {
                gone.push(removed);
            }
        }
        gone.sort_by_key(|removed: &RemovedWorktree| std::cmp::Reverse(removed.removed_at_ms));
        Ok(gone)
    }
}

/// One whose removal was cut short when everything in it was safe already.
fn being_removed(name: WorktreeName, record: WorktreeRecord) -> Option<RemovedWorktree> {
    let RecordState::Removing { reference, commit, tree } = record.state else { return None };
    Some(RemovedWorktree {
        name,
        repository: record.home,
        branch: record.branch.as_deref().and_then(super::list::short),
        snapshot: Snapshot { repository: record.common, reference, commit, tree },
        removed_at_ms: now_ms(),
        session: record.session,
    })
}

fn odd(path: &Path, why: &serde_json::Error) -> GitError {
    GitError::Disk { path: path.to_path_buf(), why: std::io::Error::other(why.to_string()) }
}

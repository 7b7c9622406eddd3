//! Leftovers of a git that was killed, and when we may take it away.
//!
//! Git never removes a lock that it did not make itself, so one that was left stops every later run. Whoever holds a working
//! tree or a repository knows that no git lives there which nobody waits for (`running`); whose a lock is depends on where it
//! lies. In our own git directories only we run git, one at a time: whoever holds the working tree takes away what is left
//! there. Everything in the repository may be the lock of somebody's living git: it goes only if a run of ours was cut short just then, and if it has been lying there for longer
//! than git holds one.
//!
//! Files that git does not stumble over (`tmp_obj_*`, `tmp_pack_*`) is left to `git gc`, which knows their age.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::Git;
use super::directory_handle::{DirectoryHandle, EntryKind};
use super::error::GitError;
use super::record::{RecordState, WorktreeRecord};
use super::repository::Repository;
use super::run::GitOutput;
use super::shadow::{HeldLock, ShadowRepository, UNFINISHED};
use super::store::SnapshotStore;

/// Git holds `packed-refs.lock` for as long as it takes to write one file.
const PACKED_REFS_HELD_MAX: Duration = Duration::from_secs(60);
/// The times of files run behind the clock by a tick of the kernel; some file systems count whole seconds.
const FILE_TIME_SLACK: Duration = Duration::from_secs(2);
/// Written before we delete refs, and removed after: if it is found, that was cut short.
const DELETING: &str = "deleting";

impl Git {
    /// The git directories for a working tree that the caller holds, without what a killed git has left in them.
    pub(super) fn shadow_held(&self, of: &Repository) -> Result<ShadowRepository, GitError> {
        let shadow = self.shadow(of)?;
        for directory in [&shadow.dir, &shadow.plain, &shadow.raw] {
            let entries = fs::read_dir(directory).map_err(GitError::disk(directory))?;
            for entry in entries.flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let is_left = name.ends_with(".lock")
                    || name.starts_with("fast_import_crash_")
                    || is_index_of_a_look(&name) && self.is_of_a_run_long_ended(&entry.path());
                if is_left {
                    fs::remove_file(entry.path()).map_err(GitError::disk(&entry.path()))?;
                }
            }
            self.clear_unfinished(directory)?;
        }
        Ok(shadow)
    }

    /// Takes away files that somebody was writing when they were killed.
    pub(super) fn clear_unfinished(&self, directory: &Path) -> Result<(), GitError> {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_unfinished = path.extension().is_some_and(|end| end == UNFINISHED);
            if is_unfinished && self.is_of_a_run_long_ended(&path) {
                remove_if_there(&path)?;
            }
        }
        Ok(())
    }

    /// Somebody who looks at a worktree does not hold it, but no run of git takes longer than this.
    fn is_of_a_run_long_ended(&self, path: &Path) -> bool {
        let age = changed_at(path).and_then(|at| at.elapsed().ok());
        age.is_some_and(|age| age > 2 * self.bounds.time_max)
    }

    /// Holds the root of a worktree that is not made, or not any more: it is about to be filled. The repository is held.
    pub(super) async fn hold_unmade(
        &self,
        name: &super::WorktreeName,
        record: Option<&WorktreeRecord>,
        common: &Path,
    ) -> Result<Option<HeldLock>, GitError> {
        match record {
            Some(WorktreeRecord { state: RecordState::Made, .. }) => Ok(None),
            _ => self.hold(&self.worktree(name), common).await.map(Some),
        }
    }

    /// Holds the hidden refs of a store. It is taken last, and held for a look and one write.
    pub(super) async fn hold_hidden(&self, store: &SnapshotStore) -> Result<HeldLock, GitError> {
        self.hold(&store.dir.join("refs"), &store.dir).await
    }

    /// Makes a branch. A lock that an earlier try of ours has left does not stop it.
    pub(super) async fn make_reference(
        &self,
        shadow: &ShadowRepository,
        record: &WorktreeRecord,
        branch: &str,
    ) -> Result<(), GitError> {
        // Only we make branches of this name, one at a time: a lock is of somebody who was killed.
        if branch.starts_with("refs/heads/homing/") {
            remove_lock_of(&record.common, branch);
        }
        let nothing = "0".repeat(record.base_commit.len());
        let update = || self.plain(shadow, "update-ref").words([branch, &record.base_commit, &nothing]);
        let began = SystemTime::now();
        match update().out().await {
            // Git has waited for whoever has the lock.
            Err(GitError::Git { .. }) if is_lock_of_ours(record, branch, began) => {
                remove_lock_of(&record.common, branch);
                update().out().await.map(drop)
            }
            done => done.map(drop),
        }
    }

    /// Deletes refs, as `update-ref --stdin` is told to. The repository is held by the caller.
    pub(super) async fn delete_references(
        &self,
        repository: &Repository,
        wishes: String,
    ) -> Result<GitOutput, GitError> {
        let shadow = self.shadow(repository)?;
        let note = shadow.dir.join(DELETING);
        if let Some(cut_short) = changed_at(&note) {
            self.unlock_packed_refs(&repository.common, cut_short);
        }
        // As long as there is a lock, the older note says whether it is ours.
        let is_new = !note.exists() || !repository.common.join("packed-refs.lock").exists();
        if is_new {
            fs::write(&note, b"").map_err(GitError::disk(&note))?;
        }
        let call = self.plain(&shadow, "update-ref").words(["--stdin"]);
        let said = call.say(wishes.into_bytes()).said().await?;
        // A git that comes to an end takes its locks with it.
        if said.code == Some(0) || is_new && !said.was_killed() {
            fs::remove_file(&note).map_err(GitError::disk(&note))?;
        }
        Ok(said)
    }

    /// Takes away the lock of a deletion of ours that was cut short, and what was to be the new file.
    fn unlock_packed_refs(&self, common: &Path, cut_short: SystemTime) {
        let is_left = |path: &Path| {
            let Some(at) = changed_at(path) else { return false };
            let is_of_that_run =
                at.duration_since(cut_short).is_ok_and(|after| after <= self.bounds.time_max);
            is_of_that_run && at.elapsed().is_ok_and(|age| age > PACKED_REFS_HELD_MAX)
        };
        let (lock, new) = (common.join("packed-refs.lock"), common.join("packed-refs.new"));
        let is_locked = lock.exists();
        if is_left(&new) && (!is_locked || is_left(&lock)) {
            let _ = fs::remove_file(&new);
        }
        if is_left(&lock) {
            let _ = fs::remove_file(&lock);
        }
    }
}

/// Takes away the lock of one ref, without following a link to it. If that fails, git says why it cannot go on.
pub(super) fn remove_lock_of(common: &Path, reference: &str) {
    let lock = format!("{reference}.lock");
    if let Ok(inside) = DirectoryHandle::open(common)
        && let Ok((parent, name)) = inside.parent(Path::new(&lock))
        && parent.stands(name).is_ok_and(|stands| stands == EntryKind::File)
    {
        let _ = parent.remove_file(name);
    }
}

/// True if the lock of a branch with a name of the person's is from our own earlier try to make it: it is younger than the
/// record which says that we make it, older than this try, and says nothing or what we wanted to say.
fn is_lock_of_ours(record: &WorktreeRecord, branch: &str, began: SystemTime) -> bool {
    let path = record.common.join(format!("{branch}.lock"));
    let planned = SystemTime::UNIX_EPOCH + Duration::from_millis(record.made_at_ms);
    let Some(at) = changed_at(&path) else { return false };
    let Ok(said) = fs::read(&path) else { return false };
    at + FILE_TIME_SLACK >= planned
        && at < began
        && (said.is_empty() || said.trim_ascii_end() == record.base_commit.as_bytes())
}

/// True if the lock of a branch is from our own earlier try to move it: it is younger than the note which says that we do, and says
/// nothing or what we wanted to say.
pub(super) fn is_branch_lock_since(common: &Path, branch: &str, planned: SystemTime, commit: &str) -> bool {
    let path = common.join(format!("{branch}.lock"));
    let Some(at) = changed_at(&path) else { return false };
    let Ok(said) = fs::read(&path) else { return false };
    at + FILE_TIME_SLACK >= planned && (said.is_empty() || said.trim_ascii_end() == commit.as_bytes())
}

/// `index.` and a UUID: the copy of an index, for one look at a worktree.
fn is_index_of_a_look(name: &str) -> bool {
    name.strip_prefix("index.").is_some_and(|rest| uuid::Uuid::try_parse(rest).is_ok())
}

fn remove_if_there(path: &Path) -> Result<(), GitError> {
    match fs::remove_file(path) {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => Err(GitError::disk(path)(why)),
        _ => Ok(()),
    }
}

fn changed_at(path: &Path) -> Option<SystemTime> {
    fs::symlink_metadata(path).ok()?.modified().ok()
}

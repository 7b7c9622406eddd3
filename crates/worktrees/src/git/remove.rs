//! Removing a worktree, so that every byte of it can be had again.
//!
//! First a snapshot with everything (`snapshot`, `unversioned`), then it is on the disk, then the record says *removing*, and only
//! then something goes: the directory in one move, git's own files for it, a branch on which nothing was done. Whether
//! somebody has written to it since before the snapshot is looked at twice (`stamps`): before the move and after it. A kill
//! in between leaves a record that says how to go on.

use std::fs;
use std::path::{Path, PathBuf};

use engine::WorkPhase;

use super::Git;
use super::enter::checked_out_at;
use super::error::GitError;
use super::leftovers::remove_lock_of;
use super::names::{SnapshotName, WorktreeName};
use super::record::{RecordState, RemovedWorktree, WorktreeRecord};
use super::repository::{Repository, bytes_path, read_line};
use super::shadow::remove_tree;
use super::snapshot::{Snapshot, SnapshotExtras};
use super::stamps::FileStamps;
use super::stuck::while_it_works;
use super::{blocking, make_private, now_ms};

/// Where directories wait to be deleted, and where no worktree can be: its name begins with a dot.
const TRASH: &str = ".trash";

/// A worktree that is gone, and how to have it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    pub name: WorktreeName,
    pub snapshot: Snapshot,
}

impl Git {
    /// Removes a worktree of ours after everything in it is safe. Asked again it goes on where it was cut short.
    ///
    /// Refused if ignored files and nested repositories take more than `kept_bytes_max`, or if something cannot be read.
    /// The branch stays, unless it was made with the worktree and nothing was done on it.
    pub async fn remove(&self, name: &WorktreeName, snapshot: &SnapshotName) -> Result<Removal, GitError> {
        let record = self.record(name)?.ok_or_else(|| GitError::NoSuchWorktree(name.clone()))?;
        let root = self.worktree(name);
        self.check_place(name, &record)?;
        let _repository = self.hold(&record.common, &record.common).await?;
        let _worktree = self.hold(&root, &record.common).await?;
        let mut record = self.record(name)?.ok_or_else(|| GitError::NoSuchWorktree(name.clone()))?;
        self.check_place(name, &record)?;
        // Deleted by hand, it is made again first, so that it is kept whole.
        record = self.plan_if_damaged(name, record).await?;
        if record.state == RecordState::Making {
            let from = Repository::at_common(&record.common)?;
            self.make(name, record, &from).await?;
            record = self.record(name)?.ok_or_else(|| GitError::NoSuchWorktree(name.clone()))?;
        }
        if !matches!(record.state, RecordState::Removing { .. }) {
            self.check_links(name, &record)?;
            let (taken, stamps) = self.save_all(&root, snapshot).await?;
            stamps.write(&self.stamps_path(name))?;
            self.step()?;
            let Snapshot { reference, commit, tree, .. } = taken;
            record.state = RecordState::Removing { reference, commit, tree };
            self.write_record(name, &record)?;
            self.step()?;
        }
        let snapshot = self.finish_removal(name).await?;
        Ok(Removal { name: name.clone(), snapshot })
    }

    /// Nothing is made in a repository that is gone, and nothing is touched where the worktree is not.
    pub(super) fn check_place(&self, name: &WorktreeName, record: &WorktreeRecord) -> Result<(), GitError> {
        let (root, repository) = (self.worktree(name), record.common.clone());
        if !repository.join("objects").is_dir() {
            return Err(GitError::RepositoryGone { repository, root });
        }
        if let Ok(at) = fs::read_link(&root) {
            return Err(GitError::Moved { at: root.with_file_name(at), root });
        }
        match read_line(&record.admin().join("gitdir")).map(|line| bytes_path(&line)) {
            Ok(dot_git) if dot_git != root.join(".git") && dot_git.exists() => {
                Err(GitError::Moved { at: dot_git.with_file_name(""), root })
            }
            _ => Ok(()),
        }
    }

    /// Whoever worked in it may have changed what ties it to its repository; everything must end up in the right one.
    fn check_links(&self, name: &WorktreeName, record: &WorktreeRecord) -> Result<(), GitError> {
        let (root, admin) = (self.worktree(name), record.admin());
        let found = Repository::around(&root).ok().flatten();
        if found
            .is_some_and(|found| found.top == root && found.git_dir == admin && found.common == record.common)
        {
            return Ok(());
        }
        let dot_git = root.join(".git");
        match fs::symlink_metadata(&dot_git) {
            Ok(about) if !about.is_file() => return Err(GitError::InTheWay(dot_git)),
            // It is tied to something else, or not at all.
            _ => {}
        }
        if !admin.join("HEAD").exists() {
            self.write_head(record)?;
        }
        self.tie(name, record)
    }

    /// A snapshot with everything, on the disk, and how everything looked since before it was taken.
    async fn save_all(&self, root: &Path, name: &SnapshotName) -> Result<(Snapshot, FileStamps), GitError> {
        let repository = Repository::must_be_around(root)?;
        let shadow = self.shadow_held(&repository)?;
        let stamps = stamps_of(root, &repository.git_dir).await?;
        let trees = self.trees(&repository, &shadow, true).await?;
        let kept = Some(self.keep(&repository, &shadow).await?);
        self.step()?;
        let commits = self.commits_of(&repository, &shadow).await?;
        let beside = SnapshotExtras { kept, commits, is_durable: true, note: None };
        let head = trees.head.clone();
        let snapshot = self.seal(&repository, &shadow, name, trees, beside).await?;
        self.make_whole(&shadow, &snapshot, head.as_deref()).await?;
        self.step()?;
        check_unchanged(&stamps, root, &repository.git_dir).await?;
        Ok((snapshot, stamps))
    }

    /// Goes on with a removal whose snapshot is safe. The repository is held by the caller.
    pub(super) async fn finish_removal(&self, name: &WorktreeName) -> Result<Snapshot, GitError> {
        let mut record = self.record(name)?.ok_or_else(|| GitError::NoSuchWorktree(name.clone()))?;
        let RecordState::Removing { reference, commit, tree } = record.state.clone() else {
            return Err(GitError::NoSuchWorktree(name.clone()));
        };
        let (root, admin) = (self.worktree(name), record.admin());
        self.phase(WorkPhase::Removing);
        let trash = self.move_away(name).await?;
        match self.check_moved(name, &trash, &admin).await {
            Err(why @ GitError::WrittenMeanwhile(_)) => {
                fs::rename(&trash, &root).map_err(GitError::disk(&root))?;
                record.state = RecordState::Made;
                self.write_record(name, &record)?;
                return Err(why);
            }
            checked => checked?,
        }
        // The name may be somebody else's by now.
        if is_admin_of(&admin, &root) {
            remove_tree(&admin)?;
        }
        self.step()?;
        self.remove_branch(&record).await?;
        self.step()?;
        remove_tree(&self.shadow_dir(&root))?;
        self.remove_later(trash).await?;
        self.step()?;
        let branch = record.branch.as_deref().and_then(super::list::short);
        let snapshot = Snapshot { repository: record.common, reference, commit, tree };
        self.note_removed(&RemovedWorktree {
            name: name.clone(),
            repository: record.home,
            branch,
            snapshot: snapshot.clone(),
            removed_at_ms: now_ms(),
            session: record.session,
        })?;
        self.step()?;
        self.forget_record(name)?;
        Ok(snapshot)
    }

    /// Moves the directory to where it waits to be deleted, and says where that is.
    async fn move_away(&self, name: &WorktreeName) -> Result<PathBuf, GitError> {
        let root = self.worktree(name);
        let trash = self.places.worktrees.join(TRASH).join(name.as_str());
        if fs::symlink_metadata(&root).is_ok() {
            // It is away already, or nobody knows how it looked: then this is something else, which is in no snapshot.
            if fs::symlink_metadata(&trash).is_ok() || !self.stamps_path(name).exists() {
                return Err(GitError::InTheWay(root));
            }
            make_private(&self.places.worktrees.join(TRASH))?;
            fs::rename(&root, &trash).map_err(GitError::disk(&root))?;
            self.step()?;
        }
        Ok(trash)
    }

    /// Makes sure that nobody has written to it between the first look and the move. Once that is known, the list of stamps goes:
    /// from then on everything may be deleted, and a kill in the midst of it does not look like somebody's doing.
    async fn check_moved(&self, name: &WorktreeName, moved: &Path, admin: &Path) -> Result<(), GitError> {
        let path = self.stamps_path(name);
        let Some(stamps) = FileStamps::read(&path)? else { return Ok(()) };
        if fs::symlink_metadata(moved).is_ok() {
            check_unchanged(&stamps, moved, admin).await?;
        }
        remove_durably(&path)
    }

    async fn remove_branch(&self, record: &WorktreeRecord) -> Result<(), GitError> {
        let Some(branch) = record.branch.as_ref().filter(|_| record.made_branch) else { return Ok(()) };
        let repository = Repository::at_common(&record.common)?;
        if checked_out_at(&repository, branch).is_some() {
            return Ok(());
        }
        let shadow = self.shadow(&repository)?;
        if self.find_one(&shadow, branch).await?.as_ref() == Some(&record.base_commit) {
            // As when it is made. Its worktree is gone: nobody works on it.
            if branch.starts_with("refs/heads/homing/") {
                remove_lock_of(&record.common, branch);
            }
            let wish = format!("delete {branch} {}\n", record.base_commit);
            let said = self.delete_references(&repository, wish).await?;
            // Somebody who was quicker has moved it; then it stays. A git that was killed is asked again.
            if said.was_killed() {
                return Err(GitError::Git { command: "git update-ref".into(), said: said.complaint });
            }
        }
        Ok(())
    }

    /// Removes a directory off the threads that must not wait.
    async fn remove_later(&self, path: PathBuf) -> Result<(), GitError> {
        while_it_works(blocking(move || remove_tree(&path)), &self.runner.progress).await
    }

    /// Takes away a worktree that is not made yet, because it cannot be. One that is there stays.
    pub async fn discard_unmade(&self, name: &WorktreeName) -> Result<(), GitError> {
        let Some(record) = self.record(name)? else { return Ok(()) };
        let (root, admin) = (self.worktree(name), record.admin());
        let _repository = self.hold(&record.common, &record.common).await?;
        let _root = self.hold(&root, &record.common).await?;
        let Some(record) = self.record(name)? else { return Ok(()) };
        if record.state != RecordState::Making || record.again.is_some() {
            return Ok(());
        }
        let trash = self.places.worktrees.join(TRASH).join(name.as_str());
        if fs::symlink_metadata(&root).is_ok() {
            make_private(&self.places.worktrees.join(TRASH))?;
            fs::rename(&root, &trash).map_err(GitError::disk(&root))?;
        }
        self.step()?;
        if is_admin_of(&admin, &root) {
            remove_tree(&admin)?;
        }
        self.step()?;
        self.remove_branch(&record).await?;
        remove_tree(&self.shadow_dir(&root))?;
        self.remove_later(trash).await?;
        self.step()?;
        self.forget_record(name)
    }

    /// Deletes what a kill has left to be deleted among these worktrees.
    pub async fn clear_away(&self) -> Result<(), GitError> {
        self.empty_trash().await
    }

    /// Deletes what a kill has left to be deleted. Worktrees that are being removed are not among it.
    pub(super) async fn empty_trash(&self) -> Result<(), GitError> {
        let trash = self.places.worktrees.join(TRASH);
        for entry in fs::read_dir(&trash).into_iter().flatten().flatten() {
            let name = entry.file_name().to_str().and_then(|name| name.parse().ok());
            let is_under_way = match name {
                Some(name) => self.record(&name)?.is_some(),
                None => false,
            };
            if !is_under_way {
                self.remove_later(entry.path()).await?;
            }
        }
        Ok(())
    }
}

async fn stamps_of(root: &Path, admin: &Path) -> Result<FileStamps, GitError> {
    let (root, admin) = (root.to_path_buf(), admin.to_path_buf());
    blocking(move || Ok(FileStamps::take(&root, &admin))).await
}

async fn check_unchanged(stamps: &FileStamps, root: &Path, admin: &Path) -> Result<(), GitError> {
    let differing = stamps.differing(&stamps_of(root, admin).await?);
    if differing.is_empty() { Ok(()) } else { Err(GitError::WrittenMeanwhile(differing)) }
}

/// Removes a file so that it does not come back after a power cut.
fn remove_durably(path: &Path) -> Result<(), GitError> {
    fs::remove_file(path).map_err(GitError::disk(path))?;
    let parent = path.parent().unwrap_or(path);
    fs::File::open(parent).and_then(|parent| parent.sync_all()).map_err(GitError::disk(parent))
}

fn is_admin_of(admin: &Path, root: &Path) -> bool {
    read_line(&admin.join("gitdir")).is_ok_and(|line| bytes_path(&line) == root.join(".git"))
        // A kill in the midst of deleting it may have taken this file first.
        || fs::symlink_metadata(admin).is_ok() && !admin.join("gitdir").exists()
}

//! A worktree that somebody has deleted by hand, or cut off from its repository, made whole again.
//!
//! Mostly git's own files for it are still there: the branch it was on, and what was staged. Each of its files becomes what it
//! was when it was last seen: as it is staged or committed, if that has changed since the last snapshot, otherwise as it is in the
//! snapshot. What was written after that, and what git ignores, is lost, and whoever enters it is told so. A directory that still
//! has its files is only tied to its repository again.
//!
//! The record says *making* first, and from what; each step looks whether it is done already.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Git;
use super::enter::checked_out_at;
use super::error::GitError;
use super::file_modes::{FileModes, set_modes};
use super::names::{WorktreeName, is_object_id};
use super::note::{NotedPath, SnapshotNote};
use super::record::{RecordState, WorktreeRecord};
use super::repository::{Repository, read_line};
use super::shadow::{HeldLock, ShadowRepository, copy_whole_index};
use super::snapshot::LastSnapshot;
use super::snapshot_header::{SnapshotHeader, Staged};
use super::undo::PathChanges;

/// The index with which files are checked out again.
const INDEX: &str = "index.again";

/// The source of the files of a worktree that is made whole again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum MadeFrom {
    /// The commit of its last snapshot, and whatever was staged or committed since.
    Snapshot(String),
    /// The files that were staged or committed: there is no snapshot.
    Branch,
    /// The files that are there. The last snapshot, if there is one, says what was staged.
    Files(Option<String>),
}

impl MadeFrom {
    /// For whoever enters it.
    pub(super) fn words(&self) -> String {
        let words = match self {
            Self::Snapshot(_) => {
                "its directory had been deleted by hand: it was made again as it was when it was last recorded; what was written \
                 after that and neither staged nor committed is lost, and so are files that git ignores"
            }
            Self::Branch => {
                "its directory had been deleted by hand: it was made again from what was committed and staged; whatever else \
                 was in it is lost"
            }
            Self::Files(_) => {
                "it had been cut off from its repository by hand: it is tied to it again, with the files that are in it"
            }
        };
        words.to_owned()
    }
}

/// The damage that somebody has done to a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Damage {
    None,
    /// Its directory is gone, or empty.
    Deleted,
    /// There are files, but nothing that ties them to the repository.
    CutOff,
}

impl Git {
    /// The damage to a worktree that was whole once.
    pub(super) fn damage(&self, name: &WorktreeName, record: &WorktreeRecord) -> Damage {
        let root = self.worktree(name);
        if record.state != RecordState::Made {
            return Damage::None;
        }
        match fs::symlink_metadata(&root) {
            Err(_) => Damage::Deleted,
            // Something else in its place is in the way, and said to be where it is met.
            Ok(about) if !about.is_dir() => Damage::None,
            Ok(_) if fs::read_dir(&root).is_ok_and(|mut entries| entries.next().is_none()) => Damage::Deleted,
            Ok(_) => {
                let found = Repository::around(&root).ok().flatten();
                let is_tied = found.is_some_and(|found| found.top == root && found.head().is_ok());
                let stands = fs::symlink_metadata(root.join(".git"));
                let is_in_the_way = stands.is_ok_and(|about| !about.is_file());
                if is_tied || is_in_the_way { Damage::None } else { Damage::CutOff }
            }
        }
    }

    /// Holds the root of a worktree that has to be made whole again. The repository is held by the caller.
    pub(super) async fn hold_damaged(
        &self,
        name: &WorktreeName,
        record: &WorktreeRecord,
    ) -> Result<Option<HeldLock>, GitError> {
        match self.damage(name, record) {
            Damage::None => Ok(None),
            Damage::Deleted | Damage::CutOff => {
                self.hold(&self.worktree(name), &record.common).await.map(Some)
            }
        }
    }

    /// If there is damage, the record from then on says *making*, and from what. The repository and the root are held by the
    /// caller.
    pub(super) async fn plan_if_damaged(
        &self,
        name: &WorktreeName,
        record: WorktreeRecord,
    ) -> Result<WorktreeRecord, GitError> {
        let source = match self.damage(name, &record) {
            Damage::None => return Ok(record),
            Damage::CutOff => MadeFrom::Files(self.last_of(&self.worktree(name), &record).await?),
            Damage::Deleted => match self.last_of(&self.worktree(name), &record).await? {
                Some(commit) => MadeFrom::Snapshot(commit),
                None => MadeFrom::Branch,
            },
        };
        self.check_place(name, &record)?;
        let record = WorktreeRecord { state: RecordState::Making, again: Some(source), ..record };
        self.write_record(name, &record)?;
        self.step()?;
        Ok(record)
    }

    /// The commit of its last snapshot, if that is still kept.
    async fn last_of(&self, root: &Path, record: &WorktreeRecord) -> Result<Option<String>, GitError> {
        let Some(last) = LastSnapshot::read(&self.shadow_dir(root)) else { return Ok(None) };
        let repository = Repository::at_common(&record.common)?;
        match self.snapshot_at(&repository, &last.reference).await {
            Ok(snapshot) if snapshot.commit == last.commit => Ok(Some(snapshot.commit)),
            Ok(_) | Err(GitError::NoSuchSnapshot(_)) => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// Does what is not done yet. The repository and the root are held by the caller.
    pub(super) async fn make_again(
        &self,
        name: &WorktreeName,
        record: &WorktreeRecord,
        source: &MadeFrom,
        from: &Repository,
    ) -> Result<(), GitError> {
        let told = match source {
            MadeFrom::Snapshot(commit) | MadeFrom::Files(Some(commit)) => {
                self.bring_for(from, commit).await?;
                self.step()?;
                self.told(&self.shadow(from)?, commit).await?
            }
            MadeFrom::Branch | MadeFrom::Files(None) => SnapshotHeader::default(),
        };
        self.head_again(record, from, &told).await?;
        self.step()?;
        self.tie(name, record)?;
        self.step()?;
        let made = Repository::must_be_around(&self.worktree(name))?;
        // Whoever wrote this lock was killed, or deleted what it was for.
        let _ = fs::remove_file(made.git_dir.join("index.lock"));
        self.index_again(&made, &told).await?;
        self.step()?;
        match source {
            MadeFrom::Snapshot(commit) => self.files_again(&made, record, Some(commit), &told).await,
            MadeFrom::Branch => self.files_again(&made, record, None, &told).await,
            MadeFrom::Files(_) => Ok(()),
        }
    }

    /// HEAD as it was; a branch that somebody has deleted is made again where it was last seen.
    async fn head_again(
        &self,
        record: &WorktreeRecord,
        from: &Repository,
        told: &SnapshotHeader,
    ) -> Result<(), GitError> {
        let shadow = self.shadow(from)?;
        let head = read_line(&record.admin().join("HEAD")).ok().and_then(|head| String::from_utf8(head).ok());
        let head = head.filter(|head| head.starts_with("ref: refs/heads/") || is_object_id(head));
        let head = head.filter(|head| !head.contains(char::is_control));
        let branch = match &head {
            Some(head) => head.strip_prefix("ref: ").map(str::to_owned),
            None => record.branch.clone(),
        };
        let last = told.head.clone().unwrap_or_else(|| record.base_commit.clone());
        let mut at = match &branch {
            Some(branch) => self.find_one(&shadow, branch).await?,
            None => None,
        };
        if let (Some(branch), None, false) = (&branch, &at, last.is_empty()) {
            let record = WorktreeRecord { base_commit: last.clone(), ..record.clone() };
            self.make_reference(&shadow, &record, branch).await?;
            at = Some(last.clone());
            self.step()?;
        }
        if head.is_some() {
            return Ok(());
        }
        // Somebody who has taken the branch elsewhere meanwhile keeps it.
        let branch = branch.filter(|branch| checked_out_at(from, branch).is_none());
        let base_commit = at.unwrap_or(last);
        self.write_head(&WorktreeRecord { branch, base_commit, ..record.clone() })
    }

    /// Git's own index stays where there is one. Otherwise what was staged is staged again, unless something was committed since.
    async fn index_again(&self, made: &Repository, told: &SnapshotHeader) -> Result<(), GitError> {
        let index = made.git_dir.join("index");
        if index.is_file() {
            return Ok(());
        }
        let shadow = self.shadow_held(made)?;
        let head = self.find_one(&shadow, "HEAD").await?;
        match (&told.staged, head) {
            (Some(staged), head) if head == told.head => {
                self.stage_again(made, &shadow, staged).await?;
                self.bring(made, &shadow, &[staged.tree().to_owned()]).await
            }
            (_, Some(head)) => {
                self.plain(&shadow, "read-tree").words([&head]).index(&index).out().await.map(drop)
            }
            (_, None) => Ok(()),
        }
    }

    /// Fills the directory: what is staged as git would check it out, and over it what was only in the snapshot, byte for byte.
    async fn files_again(
        &self,
        made: &Repository,
        record: &WorktreeRecord,
        snapshot: Option<&str>,
        told: &SnapshotHeader,
    ) -> Result<(), GitError> {
        let shadow = self.shadow_held(made)?;
        let (saved, ours) = (shadow.plain.join(INDEX), shadow.raw.join(INDEX));
        for index in [&saved, &ours] {
            let _ = fs::remove_file(index);
        }
        if made.git_dir.join("index").is_file() {
            copy_whole_index(made, &shadow, &saved)?;
        }
        let unsaved = match snapshot {
            Some(commit) => self.unsaved(&shadow, &saved, commit, told).await?,
            None => PathChanges::new(),
        };
        if saved.exists() {
            let paths: Vec<u8> = unsaved.keys().flat_map(|path| [path, [0].as_slice()].concat()).collect();
            let leave_out = self.plain(&shadow, "update-index").words(["--force-remove", "-z", "--stdin"]);
            leave_out.work_tree(&made.top).index(&saved).say(paths).out().await?;
            let settings = self.carried(made, &shadow).await?;
            let check_out = self.plain(&shadow, "checkout-index").words(["--all", "--force", "--quiet"]);
            check_out.settings(&settings).work_tree(&made.top).index(&saved).out().await?;
            self.step()?;
        }
        let mut entries = Vec::new();
        for (path, step) in unsaved.iter().filter(|(_, step)| step.after.is_there()) {
            entries.extend_from_slice(format!("{} {}\t", step.after.mode, step.after.id).as_bytes());
            entries.extend_from_slice(path);
            entries.push(0);
        }
        if !entries.is_empty() {
            let add = self.raw(&shadow, "update-index").words(["-z", "--index-info"]);
            add.index(&ours).say(entries).out().await?;
            let check_out = self.raw(&shadow, "checkout-index").words(["--all", "--force", "--quiet"]);
            check_out.work_tree(&made.top).index(&ours).out().await?;
            self.step()?;
        }
        let modes = SnapshotNote::read(told.note.as_deref()).modes.unwrap_or_default();
        set_modes(&made.top, &own_modes(&modes))?;
        self.include(&record.home, made).await
    }

    /// The files that were otherwise in the snapshot than they were staged then, and that nobody has staged or committed since.
    async fn unsaved(
        &self,
        shadow: &ShadowRepository,
        saved: &Path,
        commit: &str,
        told: &SnapshotHeader,
    ) -> Result<PathChanges, GitError> {
        let then = match (&told.staged, &told.head) {
            (Some(Staged::Tree(tree)), _) => tree.clone(),
            (_, Some(head)) => head.clone(),
            // Nothing: the tree of an index that is not there.
            (_, None) => {
                let nothing = shadow.raw.join(INDEX);
                self.raw(shadow, "write-tree").index(&nothing).text().await?
            }
        };
        let mut unsaved = self.steps(shadow, &then, &format!("{commit}^{{tree}}")).await?;
        // In the midst of a merge there is no such tree.
        let now = self.raw(shadow, "write-tree").index(saved).said().await?;
        let tree = String::from_utf8_lossy(&now.out).trim_end().to_owned();
        if now.code == Some(0) && is_object_id(&tree) {
            let since = self.steps(shadow, &then, &tree).await?;
            unsaved.retain(|path, _| !since.contains_key(path));
        }
        Ok(unsaved)
    }
}

fn own_modes(modes: &FileModes) -> std::collections::BTreeMap<NotedPath, u32> {
    modes.specials().map(|(path, mode)| (NotedPath(path.to_vec()), mode)).collect()
}

//! Giving back a worktree that was removed: every byte, mode and link, and what was staged.

use std::fs;
use std::path::{Path, PathBuf};

use engine::WorkPhase;
use kernel::SessionId;

use super::again::MadeFrom;
use super::enter::{EnteredWorktree, checked_out_at, free_id};
use super::error::GitError;
use super::names::{BranchName, SnapshotName, WorktreeName};
use super::record::{RecordState, WorktreeRecord};
use super::repository::Repository;
use super::shadow::ShadowRepository;
use super::snapshot::{Snapshot, split_at_byte};
use super::snapshot_header::Staged;
use super::{Git, now_ms};

impl Git {
    /// Makes a worktree as it was in a snapshot. Asked again with the same words it goes on where it was cut short.
    ///
    /// On its branch again, if that is where it was left and nobody has it; otherwise on no branch. `repository` is any
    /// directory within the repository, to which one goes back.
    pub async fn restore(
        &self,
        repository: &Path,
        snapshot: &Snapshot,
        name: &WorktreeName,
    ) -> Result<EnteredWorktree, GitError> {
        let session = SnapshotName::session_in(&snapshot.reference);
        let made = self.make_from(repository, snapshot, name, session, None).await?;
        // It is not removed any more. The snapshot stays.
        self.forget_removed(name, &snapshot.commit)?;
        Ok(made)
    }

    /// The snapshot of which that worktree was given back, if it is this one, and a directory to go back to. Whoever gave it back may have
    /// been killed before they could say so.
    pub async fn given_back(
        &self,
        name: &WorktreeName,
        reference: &str,
    ) -> Result<Option<(PathBuf, Snapshot)>, GitError> {
        let Some(record) = self.record(name)? else { return Ok(None) };
        let snapshot = match self.snapshot_at(&Repository::at_common(&record.common)?, reference).await {
            Err(GitError::NoSuchSnapshot(_)) => return Ok(None),
            found => found?,
        };
        let is_of_it =
            record.state == RecordState::Made && record.restoring.as_ref() == Some(&snapshot.commit);
        Ok(is_of_it.then_some((record.home, snapshot)))
    }

    /// `restore` for another session, on a new branch, `homing/NAME`: to go on from a snapshot beside whoever went on from there already.
    pub async fn fork(
        &self,
        repository: &Path,
        snapshot: &Snapshot,
        name: &WorktreeName,
        session: Option<SessionId>,
    ) -> Result<EnteredWorktree, GitError> {
        self.make_from(repository, snapshot, name, session, Some(BranchName::of(name))).await
    }

    async fn make_from(
        &self,
        repository: &Path,
        snapshot: &Snapshot,
        name: &WorktreeName,
        session: Option<SessionId>,
        branch: Option<BranchName>,
    ) -> Result<EnteredWorktree, GitError> {
        let from = Repository::must_be_around(repository)?;
        let home = repository.to_path_buf();
        let _held = self.hold(&from.common, &from.common).await?;
        let found = self.snapshot_at(&from, &snapshot.reference).await?;
        if found.commit != snapshot.commit {
            return Err(GitError::NoSuchSnapshot(snapshot.reference.clone()));
        }
        let _root = self.hold_unmade(name, self.record(name)?.as_ref(), &from.common).await?;
        if matches!(self.record(name)?, Some(WorktreeRecord { state: RecordState::Removing { .. }, .. })) {
            self.finish_removal(name).await?;
        }
        let record = match self.record(name)? {
            Some(record) if record.restoring.as_ref() == Some(&found.commit) => record,
            Some(record) => {
                return Err(GitError::NameTaken { name: name.clone(), repository: record.home });
            }
            None => self.plan_again(name, &from, &found, session, branch).await?,
        };
        let _damaged = self.hold_damaged(name, &record).await?;
        let record = self.plan_if_damaged(name, record).await?;
        let again: Vec<String> = record.again.iter().map(MadeFrom::words).collect();
        self.make(name, record, &from).await?;
        let entered = self.entered(name, &from, home)?;
        let pointers = self.pointer_words(&entered.root).await;
        Ok(EnteredWorktree { notices: again.into_iter().chain(pointers).collect(), ..entered })
    }

    async fn plan_again(
        &self,
        name: &WorktreeName,
        from: &Repository,
        found: &Snapshot,
        session: Option<SessionId>,
        new_branch: Option<BranchName>,
    ) -> Result<WorktreeRecord, GitError> {
        let root = self.worktree(name);
        if fs::symlink_metadata(&root).is_ok() {
            return Err(GitError::InTheWay(root));
        }
        let shadow = self.shadow(from)?;
        let told = self.told(&shadow, &found.commit).await?;
        let branch = match (new_branch, told.branch.filter(|branch| branch.starts_with("refs/heads/"))) {
            (Some(branch), _) => {
                if self.find_one(&shadow, &branch.reference()).await?.is_some() {
                    return Err(GitError::BranchTaken(branch.to_string()));
                }
                Some(branch.reference())
            }
            (None, Some(branch)) => {
                let at = self.find_one(&shadow, &branch).await?;
                let is_as_it_was = at.is_none() || at == told.head;
                (is_as_it_was && checked_out_at(from, &branch).is_none()).then_some(branch)
            }
            (None, None) => None,
        };
        // HEAD must say something: without a commit it is a branch that is still to come.
        let branch = branch.or_else(|| told.head.is_none().then(|| BranchName::of(name).reference()));
        let record = WorktreeRecord {
            common: from.common.clone(),
            home: from.top.clone(),
            branch,
            // What is on it may be there for good: it never goes by itself any more.
            made_branch: false,
            base: None,
            base_commit: told.head.unwrap_or_default(),
            id: free_id(from, name)?,
            made_at_ms: now_ms(),
            restoring: Some(found.commit.clone()),
            again: None,
            session: session.map(|session| session.to_string()),
            state: RecordState::Making,
        };
        self.write_record(name, &record)?;
        self.step()?;
        Ok(record)
    }

    /// The files, what was staged, and what was kept.
    pub(super) async fn fill_again(&self, made: &Repository, commit: &str) -> Result<(), GitError> {
        let shadow = self.shadow_held(made)?;
        let told = self.told(&shadow, commit).await?;
        let index = shadow.raw.join("index");
        let _ = fs::remove_file(&index);
        self.phase(WorkPhase::CheckingOut);
        let call =
            self.raw(&shadow, "read-tree").words(["-v", "--reset", "-u"]).word(format!("{commit}^{{tree}}"));
        call.work_tree(&made.top).index(&index).out().await?;
        self.step()?;
        if let Some(kept) = &told.kept {
            self.give_back(made, &shadow, kept).await?;
            self.step()?;
        }
        let Some(staged) = told.staged else { return Ok(()) };
        self.stage_again(made, &shadow, &staged).await?;
        // From now on the new index holds it; what somebody's git has pruned just before is brought once more.
        self.bring(made, &shadow, &[staged.tree().to_owned()]).await
    }

    pub(super) async fn stage_again(
        &self,
        made: &Repository,
        shadow: &ShadowRepository,
        staged: &Staged,
    ) -> Result<(), GitError> {
        let index = made.git_dir.join("index");
        match staged {
            Staged::Tree(tree) => {
                self.plain(shadow, "read-tree").words(["--reset", tree]).index(&index).out().await?;
            }
            Staged::Stages(tree) => {
                let out = self.plain(shadow, "ls-tree").words(["-r", "-z", tree]).out().await?;
                let lines: Vec<u8> = out.split(|byte| *byte == 0).filter_map(staged_line).flatten().collect();
                let _ = fs::remove_file(&index);
                let call = self.plain(shadow, "update-index").words(["-z", "--index-info"]);
                call.index(&index).say(lines).out().await?;
            }
        }
        // So that the next `git status` need not read every file. That some differ is no failure.
        let settings = self.carried(made, shadow).await?;
        let refresh = self.plain(shadow, "update-index").words(["-q", "--refresh"]).settings(&settings);
        refresh.work_tree(&made.top).index(&index).said().await.map(drop)
    }
}

/// From `MODE TYPE ID\tSTAGE/PATH` to `MODE ID STAGE\tPATH`.
fn staged_line(line: &[u8]) -> Option<Vec<u8>> {
    let (about, path) = split_at_byte(line, b'\t');
    let mut words = about.split(|byte| *byte == b' ');
    let (mode, id) = (words.next()?, words.nth(1)?);
    let (stage, path) = split_at_byte(path, b'/');
    (!path.is_empty()).then(|| [mode, b" ", id, b" ", stage, b"\t", path, b"\0"].concat())
}

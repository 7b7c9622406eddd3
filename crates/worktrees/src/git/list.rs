//! The list of our worktrees, and what is in them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use kernel::SessionId;

use super::again::Damage;
use super::error::GitError;
use super::names::WorktreeName;
use super::record::{RecordState, WorktreeRecord};
use super::repository::Repository;
use super::shadow::{ShadowRepository, copy_whole_index};
use super::{Git, blocking};

/// A worktree of ours, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeStatus {
    pub name: WorktreeName,
    /// The session that it was made for.
    pub session: Option<SessionId>,
    pub directory: PathBuf,
    /// The root of the working tree it was made from.
    pub repository: PathBuf,
    /// Without `refs/heads/`; none if HEAD is on no branch.
    pub branch: Option<String>,
    pub head: Option<String>,
    /// Commits since its base, and commits that its repository's HEAD has got beyond it.
    pub ahead: u64,
    pub behind: u64,
    /// Files that git tracks and that differ from HEAD.
    pub dirty: u64,
    pub untracked: u64,
    pub size_bytes: u64,
    pub made_at_ms: u64,
    /// The last time that something was staged, committed or removed in it, or it was made.
    pub used_at_ms: u64,
    /// Its directory is not there, or not whole.
    pub is_missing: bool,
    /// Somebody has deleted it by hand, or cut it off from its repository: it can be made whole again.
    pub is_deleted: bool,
    /// Why nothing can be said about what is in it; it counts as missing then.
    pub trouble: Option<String>,
}

impl WorktreeStatus {
    /// As our record has it.
    fn of(name: WorktreeName, record: &WorktreeRecord, directory: PathBuf) -> Self {
        Self {
            name,
            session: session_of(record),
            directory,
            repository: record.home.clone(),
            branch: record.branch.as_deref().and_then(short),
            head: None,
            ahead: 0,
            behind: 0,
            dirty: 0,
            untracked: 0,
            size_bytes: 0,
            made_at_ms: record.made_at_ms,
            used_at_ms: record.made_at_ms,
            is_missing: true,
            is_deleted: false,
            trouble: None,
        }
    }
}

impl Git {
    /// All worktrees of ours, or those of the repository around a directory.
    pub async fn list(&self, repository: Option<&Path>) -> Result<Vec<WorktreeStatus>, GitError> {
        let common = match repository {
            Some(directory) => Some(self.must_be_around(directory)?.common),
            None => None,
        };
        let mut seen = Vec::new();
        for (name, record) in self.records()? {
            if common.as_ref().is_none_or(|common| record.common == *common) {
                seen.push(self.look_into(name, &record, None, FilesLook::Compared).await?);
            }
        }
        Ok(seen)
    }

    /// The names of our worktrees, and the sessions that they were made for. Looks into none.
    pub fn names(&self) -> Result<Vec<(WorktreeName, Option<SessionId>)>, GitError> {
        Ok(self.records()?.into_iter().map(|(name, record)| (name, session_of(&record))).collect())
    }

    /// All worktrees of ours as our records have them, with nothing looked at: as each was when it was made.
    pub fn recorded(&self) -> Result<Vec<WorktreeStatus>, GitError> {
        let made = |(name, record): (WorktreeName, WorktreeRecord)| {
            let directory = self.worktree(&name);
            let is_missing = record.state != RecordState::Made;
            WorktreeStatus { is_missing, ..WorktreeStatus::of(name, &record, directory) }
        };
        Ok(self.records()?.into_iter().map(made).collect())
    }

    /// The name of the worktree of ours that a directory is in, by its path.
    pub fn worktree_at(&self, directory: &Path) -> Option<WorktreeName> {
        let within = directory.strip_prefix(&self.places.worktrees).ok()?;
        within.components().next()?.as_os_str().to_str()?.parse().ok()
    }

    /// One worktree of ours; none if there is none of that name. Its size is looked for unless it is known.
    pub async fn look(
        &self,
        name: &WorktreeName,
        size: Option<u64>,
    ) -> Result<Option<WorktreeStatus>, GitError> {
        match self.record(name)? {
            Some(record) => self.look_into(name.clone(), &record, size, FilesLook::Compared).await.map(Some),
            None => Ok(None),
        }
    }

    /// The same of one that was made this moment: its files are those of its branch, and are not read for it.
    pub async fn look_at_new(&self, name: &WorktreeName) -> Result<Option<WorktreeStatus>, GitError> {
        match self.record(name)? {
            Some(record) => self.look_into(name.clone(), &record, None, FilesLook::New).await.map(Some),
            None => Ok(None),
        }
    }

    async fn look_into(
        &self,
        name: WorktreeName,
        record: &WorktreeRecord,
        size: Option<u64>,
        files: FilesLook,
    ) -> Result<WorktreeStatus, GitError> {
        let root = self.worktree(&name);
        let directory = root.clone();
        let is_deleted = self.damage(&name, record) != Damage::None;
        let size_bytes = match size {
            Some(size) => size,
            None => blocking(move || Ok(size_of(&root))).await?,
        };
        let mut seen =
            WorktreeStatus { size_bytes, is_deleted, ..WorktreeStatus::of(name, record, directory) };
        // Whatever somebody did to this one, the others are listed.
        if let Err(why) = self.look_closer(&mut seen, record, files).await {
            (seen.is_missing, seen.trouble) = (true, Some(why.to_string()));
        }
        Ok(seen)
    }

    /// The words of git about it.
    async fn look_closer(
        &self,
        seen: &mut WorktreeStatus,
        record: &WorktreeRecord,
        files: FilesLook,
    ) -> Result<(), GitError> {
        if !seen.directory.exists() {
            return Ok(());
        }
        let found = Repository::around(&seen.directory)?;
        let Some(found) = found.filter(|found| found.top == seen.directory) else { return Ok(()) };
        if found.common != record.common {
            return Err(GitError::InTheWay(seen.directory.join(".git")));
        }
        // One that is not whole yet, or any more, is told as missing; entering or removing it goes on.
        seen.is_missing = record.state != RecordState::Made;
        seen.branch = found.branch().as_deref().and_then(short);
        seen.used_at_ms = seen.used_at_ms.max(touched_ms(&found));
        let shadow = self.shadow(&found)?;
        seen.head = self.find_one(&shadow, "HEAD").await?;
        (seen.ahead, seen.behind) = self.distance(&shadow, record, seen.head.as_deref()).await?;
        if files == FilesLook::Compared {
            (seen.dirty, seen.untracked) = self.differing(&found, &shadow).await?;
        }
        Ok(())
    }

    async fn distance(
        &self,
        shadow: &ShadowRepository,
        record: &WorktreeRecord,
        head: Option<&str>,
    ) -> Result<(u64, u64), GitError> {
        let Some(head) = head else { return Ok((0, 0)) };
        let home = Repository::around(&record.home).ok().flatten();
        let there = match home.filter(|home| home.common == record.common) {
            Some(home) => self.find_one(&self.shadow(&home)?, "HEAD").await?,
            None => None,
        };
        let there = there.unwrap_or_else(|| record.base_commit.clone());
        let count = self.plain(shadow, "rev-list").words(["--left-right", "--count"]);
        let text = count.word(format!("{head}...{there}")).words(["--"]).text().await?;
        let mut numbers = text.split('\t').map(|number| number.parse().unwrap_or(0));
        Ok((numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)))
    }

    /// Files that differ from HEAD, and files that git does not know.
    async fn differing(&self, of: &Repository, shadow: &ShadowRepository) -> Result<(u64, u64), GitError> {
        let lines = self.status(of, shadow).await?;
        let untracked = lines.iter().filter(|(mark, _)| mark == b"??").count();
        Ok(((lines.len() - untracked) as u64, untracked as u64))
    }

    /// The files that differ from HEAD, and those that git does not know, each with its two letters.
    pub(super) async fn status(
        &self,
        of: &Repository,
        shadow: &ShadowRepository,
    ) -> Result<Vec<([u8; 2], Vec<u8>)>, GitError> {
        let mine = format!("index.{}", uuid::Uuid::now_v7().simple());
        let (real, copy) = (of.git_dir.join("index"), shadow.plain.join(mine));
        let _copy = TemporaryFile(copy.clone());
        if real.is_file() {
            copy_whole_index(of, shadow, &copy)?;
        }
        let settings = self.carried(of, shadow).await?;
        let status = self.plain(shadow, "status").words(["--porcelain=v1", "-z", "--no-renames", "-uall"]);
        // Looking into a submodule would start git there, with that repository's own configuration.
        let status =
            status.words(["--ignore-submodules=all"]).settings(&settings).work_tree(&of.top).index(&copy);
        let out = status.excludes(self.global_ignore()?).out().await?;
        let line = |line: &[u8]| Some(([*line.first()?, *line.get(1)?], line.get(3..)?.to_vec()));
        Ok(out.split(|byte| *byte == 0).filter_map(line).collect())
    }
}

/// The files of a worktree, as a look takes them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FilesLook {
    /// Each is compared with its branch's. A large one that is as young as the index is read for it.
    Compared,
    /// They were written a moment ago.
    New,
}

/// A file that goes with the look it was made for, however that ends.
struct TemporaryFile(PathBuf);

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn session_of(record: &WorktreeRecord) -> Option<SessionId> {
    record.session.as_deref()?.parse().ok()
}

pub(super) fn short(branch: &str) -> Option<String> {
    branch.strip_prefix("refs/heads/").map(str::to_owned)
}

/// When the worktree's index, HEAD or root directory changed last.
fn touched_ms(of: &Repository) -> u64 {
    let paths =
        [of.git_dir.join("index"), of.git_dir.join("HEAD"), of.git_dir.join("logs/HEAD"), of.top.clone()];
    let times = paths.iter().filter_map(|path| fs::symlink_metadata(path).ok());
    times
        .map(|about| u64::try_from(about.mtime() * 1_000 + about.mtime_nsec() / 1_000_000).unwrap_or(0))
        .max()
        .unwrap_or(0)
}

/// The size of a directory on the disk. Links are not followed; what cannot be read counts nothing.
pub(crate) fn size_of(root: &Path) -> u64 {
    let mut bytes = 0;
    let mut left = vec![root.to_path_buf()];
    while let Some(path) = left.pop() {
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else { continue };
            bytes += about.blocks() * 512;
            if about.is_dir() {
                left.push(entry.path());
            }
        }
    }
    bytes
}

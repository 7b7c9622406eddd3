//! The engine's working trees, by the drivers' git.
//!
//! A worktree belongs to the session that made it: two sessions that call theirs the same have two.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use drivers::git::{
    Bounds, BranchName, Collected, Enter, Entered, FileChange, FileKind, Git, GitTrouble, Moment, Places,
    Policy, SnapshotName, WorktreeName,
};
use engine::{EnteredTree, NewTree, Side, TreeChange, TreeChanges, TreeReply, TreeSeen, Trees, UndoneTurn};
use kernel::{SessionId, Turn};

/// What of a session's id makes the name of its worktrees its own. The beginning is the time, which others share.
const TAIL: usize = 12;

/// Git, for the engine.
#[derive(Debug)]
pub(crate) struct GitTrees {
    pub(crate) git: Git,
    /// A worktree that was not used for so long is taken away.
    pub(crate) age: Duration,
    /// What all worktrees may take together.
    pub(crate) bytes_max: u64,
}

impl GitTrees {
    /// Git as this machine has it, with its files below the data directory; none if it has none.
    pub(crate) fn open(data: &Path) -> Result<Self, GitTrouble> {
        let places = Places { worktrees: data.join("worktrees"), own: data.join("git") };
        let git = Git::new(Path::new("git"), places, Bounds::default())?;
        Ok(Self { git, age: AGE, bytes_max: BYTES_MAX })
    }
}

/// A worktree that nobody has used for so long goes.
const AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// What all worktrees may take together.
const BYTES_MAX: u64 = 20 * 1024 * 1024 * 1024;

/// What the snapshots of worktrees are kept under that no session asks to be removed.
const NOBODY: SessionId = SessionId::from_bits(0);

/// Why there is nothing to put back.
const UNTRACKED: &str = "its directory is not under version control";

fn name_of(session: SessionId, name: &str) -> Result<WorktreeName, String> {
    let id = session.to_string();
    let tail = &id[id.len() - TAIL..];
    format!("{name}-{tail}").parse().map_err(|why: GitTrouble| why.to_string())
}

fn side_of(session: SessionId, turn: Turn, side: Side) -> SnapshotName {
    let moment = match side {
        Side::Before => Moment::Before,
        Side::After => Moment::After,
    };
    SnapshotName { session, turn: u64::from(turn.0), moment }
}

fn entered_form(name: &str, entered: Entered) -> Result<EnteredTree, String> {
    let directory = entered.directory.into_os_string().into_string();
    let directory = directory.map_err(|_| "the worktree's path is not text".to_owned())?;
    let branch = entered.branch.unwrap_or_else(|| "(none)".to_owned());
    Ok(EnteredTree { name: name.to_owned(), directory, branch })
}

impl GitTrees {
    async fn enter(&self, session: SessionId, new: NewTree) -> Result<EnteredTree, String> {
        let branch = new.branch.as_deref().map(str::parse::<BranchName>).transpose();
        let branch = branch.map_err(|why| why.to_string())?;
        let name = name_of(session, &new.name)?;
        let enter = |is_new| Enter {
            repository: Path::new(&new.directory),
            name: name.clone(),
            base: new.base.clone(),
            branch: branch.clone(),
            is_new,
        };
        // Who says from where means a new one; who only says its name means the one that is there, if it is.
        let there = match (&new.base, &new.branch) {
            (None, None) => self.git.enter(enter(false)).await,
            (Some(_), _) | (_, Some(_)) => Err(GitTrouble::NoSuchWorktree(name.clone())),
        };
        let entered = match there {
            Err(GitTrouble::NoSuchWorktree(_)) => self.git.enter(enter(true)).await,
            there => there,
        };
        let entered = entered.map_err(|why| why.to_string())?;
        entered_form(&new.name, entered)
    }

    async fn fork(
        &self,
        session: SessionId,
        new: NewTree,
        origin: SessionId,
        turn: Turn,
    ) -> Result<EnteredTree, String> {
        let directory = Path::new(&new.directory);
        let after = self.git.find(directory, &side_of(origin, turn, Side::After)).await;
        let after = after.map_err(|why| why.to_string())?;
        let after =
            after.ok_or_else(|| format!("nobody remembers the tree after turn {turn} of {origin}"))?;
        let name = name_of(session, &new.name)?;
        let entered = self.git.restore(directory, &after, &name).await.map_err(|why| why.to_string())?;
        entered_form(&new.name, entered)
    }

    async fn changes(
        &self,
        directory: String,
        session: SessionId,
        turn: Turn,
    ) -> Result<Option<TreeChanges>, String> {
        let directory = Path::new(&directory);
        if self.git.root_of(directory).map_err(|why| why.to_string())?.is_none() {
            return Ok(None);
        }
        let find = async |side| self.git.find(directory, &side_of(session, turn, side)).await;
        let (before, after) = (find(Side::Before).await, find(Side::After).await);
        let (before, after) = (before.map_err(|why| why.to_string())?, after.map_err(|why| why.to_string())?);
        let (Some(before), Some(after)) = (before, after) else { return Ok(None) };
        let changes = self.git.diff(&before, &after).await.map_err(|why| why.to_string())?;
        let is_cut = changes.is_patch_cut || changes.more_files > 0;
        let files = changes.files.into_iter().map(change_form).collect();
        Ok(Some(TreeChanges { files, patch: changes.patch, is_cut }))
    }

    async fn undo(&self, directory: String, session: SessionId, turn: Turn) -> Result<UndoneTurn, String> {
        let directory = Path::new(&directory);
        let find = async |side| self.git.find(directory, &side_of(session, turn, side)).await;
        let (before, after) = (find(Side::Before).await, find(Side::After).await);
        let (before, after) = (before.map_err(|why| why.to_string())?, after.map_err(|why| why.to_string())?);
        let (Some(before), Some(after)) = (before, after) else {
            let is_tracked = self.git.root_of(directory).is_ok_and(|root| root.is_some());
            let why = if is_tracked { "nobody remembers how the tree was before it" } else { UNTRACKED };
            return Err(why.to_owned());
        };
        let safety = SnapshotName { session, turn: u64::from(turn.0), moment: Moment::Safety };
        let undone = self.git.undo(directory, &before, &after, &safety, || true).await;
        let undone = undone.map_err(|why| why.to_string())?;
        let shown = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
        Ok(UndoneTurn { files: undone.files.into_iter().map(shown).collect() })
    }

    async fn list(&self) -> Result<Vec<TreeSeen>, String> {
        let seen = self.git.list(None).await.map_err(|why| why.to_string())?;
        Ok(seen.into_iter().map(seen_form).collect())
    }

    async fn remove(&self, name: String) -> Result<String, String> {
        let name: WorktreeName = name.parse().map_err(|why: GitTrouble| why.to_string())?;
        let snapshot = SnapshotName { session: NOBODY, turn: 0, moment: Moment::Removed };
        let removed = self.git.remove(&name, &snapshot).await.map_err(|why| why.to_string())?;
        Ok(removed.snapshot.reference)
    }

    async fn collect(&self, in_use: Vec<String>) -> Result<Vec<String>, String> {
        let in_use: BTreeSet<WorktreeName> = in_use.iter().filter_map(|name| name.parse().ok()).collect();
        let policy = Policy {
            age: self.age,
            bytes_max: self.bytes_max,
            snapshot_age: self.age * 4,
            in_use,
            session: NOBODY,
        };
        let collected = self.git.collect(&policy).await.map_err(|why| why.to_string())?;
        Ok(collected.into_iter().filter_map(told).collect())
    }
}

fn told(collected: Collected) -> Option<String> {
    match collected {
        Collected::Worktree { name, snapshot, .. } => Some(format!(
            "worktree {} was taken away; it can be had back as {}",
            name.as_str(),
            snapshot.reference
        )),
        Collected::Kept { name, why } => {
            Some(format!("worktree {} could not be taken away: {why}", name.as_str()))
        }
        Collected::Snapshot { .. } => None,
    }
}

fn change_form(change: FileChange) -> TreeChange {
    let kind = match change.kind {
        FileKind::Added => "added",
        FileKind::Edited => "edited",
        FileKind::Removed => "removed",
        FileKind::Renamed { .. } => "renamed",
    };
    let lines = |lines| (!change.binary).then_some(lines);
    let path = change.path.to_string_lossy().into_owned();
    TreeChange { path, kind, plus: lines(change.plus), minus: lines(change.minus) }
}

fn seen_form(seen: drivers::git::WorktreeSeen) -> TreeSeen {
    let shown = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
    TreeSeen {
        name: seen.name.as_str().to_owned(),
        directory: shown(seen.directory),
        repository: shown(seen.repository),
        branch: seen.branch.unwrap_or_else(|| "(none)".to_owned()),
        ahead: seen.ahead,
        behind: seen.behind,
        dirty: seen.dirty + seen.untracked,
        bytes: seen.size_bytes,
        made_at: kernel::Moment(seen.made_at_ms),
    }
}

impl Trees for GitTrees {
    fn enter(&self, session: SessionId, new: NewTree) -> TreeReply<'_, Result<EnteredTree, String>> {
        Box::pin(Self::enter(self, session, new))
    }

    fn remember(
        &self,
        directory: &str,
        session: SessionId,
        turn: Turn,
        side: Side,
    ) -> TreeReply<'_, Result<bool, String>> {
        let (directory, name) = (directory.to_owned(), side_of(session, turn, side));
        Box::pin(async move {
            let taken = self.git.snapshot(Path::new(&directory), &name).await;
            taken.map(|snapshot| snapshot.is_some()).map_err(|why| why.to_string())
        })
    }

    fn changes(
        &self,
        directory: &str,
        session: SessionId,
        turn: Turn,
    ) -> TreeReply<'_, Result<Option<TreeChanges>, String>> {
        Box::pin(Self::changes(self, directory.to_owned(), session, turn))
    }

    fn undo(
        &self,
        directory: &str,
        session: SessionId,
        turn: Turn,
    ) -> TreeReply<'_, Result<UndoneTurn, String>> {
        Box::pin(Self::undo(self, directory.to_owned(), session, turn))
    }

    fn fork(
        &self,
        session: SessionId,
        new: NewTree,
        origin: SessionId,
        turn: Turn,
    ) -> TreeReply<'_, Result<EnteredTree, String>> {
        Box::pin(Self::fork(self, session, new, origin, turn))
    }

    fn list(&self) -> TreeReply<'_, Result<Vec<TreeSeen>, String>> {
        Box::pin(Self::list(self))
    }

    fn remove(&self, name: &str) -> TreeReply<'_, Result<String, String>> {
        Box::pin(Self::remove(self, name.to_owned()))
    }

    fn restore(&self, removed: &str) -> TreeReply<'_, Result<EnteredTree, String>> {
        let removed = removed.to_owned();
        Box::pin(async move { Err(format!("{removed} cannot be restored yet")) })
    }

    fn collect(&self, in_use: Vec<String>) -> TreeReply<'_, Result<Vec<String>, String>> {
        Box::pin(Self::collect(self, in_use))
    }
}

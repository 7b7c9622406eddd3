//! The worktrees, snapshots and files of sessions, by git: what a ground worker does when it is asked.
//!
//! A worktree belongs to the session that made it: two sessions that call theirs the same have two. Nothing is done in a
//! directory that is not what it is called (`session_directory`); what was seen in one that was swapped meanwhile is not told.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::git::{
    BranchName, ChangeKind, ChangesSinceBase, EnterRequest, EnteredWorktree, FileChange, FileList, FilePatch,
    Git, GitDirectories, GitError, GitLimits, LeftInRepository, MergeError, Merged, PersonHome,
    ProgressSender, RemovedWorktree, RepositoryMove, Snapshot, SnapshotMoment, SnapshotName, StoreShare,
    UndoError, UndoKind, UndoLook, Undone, WorktreeName, directories_in, now_ms, plain_files,
};
use engine::{
    EnteredTree, MergeObstacle, MergedTree, PatchPlace, RemovedTree, TreeChange, TreeChanges, TreeFiles,
    TreeMove, TreePatch, TreeSeen, TreeSinceBase, TreesError, UndoPreview, UndoStep, UndoneTurn,
};
use kernel::{GroundPath, MergeHow, NewWorktree, SessionId, Turn, UndoFiles};

use crate::seen_notes::SeenNotes;
use crate::session_directory::{HeldDirectory, SessionDirectories};

mod recorded;

pub(crate) use recorded::{own_places, snapshot_stores, worktree_names, worktrees_removed, worktrees_seen};

/// Git, for the engine.
#[derive(Debug, Clone)]
pub(crate) struct GitTrees {
    git: Git,
    directories: SessionDirectories,
    notes: SeenNotes,
}

impl GitTrees {
    /// Git as this machine has it, with its own files in a part of the data directory.
    pub(crate) fn open_at(data: &Path, own: &Path) -> Result<Self, TreesError> {
        Self::open(data, own, GitLimits::default())
    }

    /// The same, with the worktrees of one session, within these limits.
    pub(crate) fn open_among(
        data: &Path,
        own: &Path,
        worktrees: &Path,
        limits: GitLimits,
    ) -> Result<Self, TreesError> {
        Self::open_in(data, own, worktrees.to_path_buf(), limits)
    }

    /// With regard to the ignore file of somebody whose home that is.
    pub(crate) fn for_person(self, person: Option<PersonHome>) -> Self {
        Self { git: self.git.for_person(person), ..self }
    }

    /// The same for work that somebody has asked for, which says how far it is.
    pub(crate) fn for_work(&self, progress: ProgressSender) -> Self {
        Self { git: self.git.for_work(progress), ..self.clone() }
    }

    /// The same, with more patience for whoever is at it.
    pub(crate) fn open_waiting(data: &Path, own: &Path, wait_max: Duration) -> Result<Self, TreesError> {
        Self::open(data, own, GitLimits { wait_max, ..GitLimits::default() })
    }

    fn open(data: &Path, own: &Path, limits: GitLimits) -> Result<Self, TreesError> {
        Self::open_in(data, own, data.join("worktrees"), limits)
    }

    fn open_in(data: &Path, own: &Path, worktrees: PathBuf, limits: GitLimits) -> Result<Self, TreesError> {
        let directories = SessionDirectories::of(data);
        let places = GitDirectories { worktrees, work: directories.work_true(), own: own.to_path_buf() };
        let git = Git::new(Path::new("git"), places, limits).map_err(tree_error)?;
        Ok(Self { git, directories, notes: SeenNotes::at(own) })
    }
}

/// Said where nothing has changed that anybody looked at.
const IGNORED: &str = "what git ignores was not looked at";

/// The name of a branch where there is none.
const NO_BRANCH: &str = "(none)";

/// Why nothing was put back into a directory that was something else for a moment.
const SWAPPED: &str = "its directory led elsewhere for a moment; ask again if it is still wanted";

/// The size of a worktree is not looked for again before it is so old: everything in it has to be walked over.
const SIZE_AGE_MS: u64 = 10 * 60 * 1_000;

/// Why there is nothing to put back.
pub(crate) const UNTRACKED: &str = "its directory is not under version control";

fn refused(words: impl Into<String>) -> TreesError {
    TreesError::Refused(words.into())
}

/// An error of git's for the engine, by what can be done about it.
fn tree_error(why: GitError) -> TreesError {
    let words = why.to_string();
    match why {
        GitError::NoGit { .. } => TreesError::NoGit(words),
        GitError::Busy(_) | GitError::WrittenMeanwhile(_) | GitError::Stopped(_) => TreesError::Busy(words),
        GitError::Slow { .. } | GitError::TooMuch { .. } | GitError::Git { .. } | GitError::Disk { .. } => {
            TreesError::Failed(words)
        }
        GitError::NoRepository(_)
        | GitError::Strange { .. }
        | GitError::BadName { .. }
        | GitError::NoSuchRevision(_)
        | GitError::NameTaken { .. }
        | GitError::BranchTaken(_)
        | GitError::BranchInUse { .. }
        | GitError::NoSuchWorktree(_)
        | GitError::InTheWay(_)
        | GitError::LeadsOut { .. }
        | GitError::LeadsElsewhere(_)
        | GitError::TooLarge { .. }
        | GitError::Unreadable(_)
        | GitError::NoSuchSnapshot(_)
        | GitError::BrokenIndex { .. }
        | GitError::Moved { .. }
        | GitError::RepositoryGone { .. }
        | GitError::Stuck { .. } => TreesError::Refused(words),
    }
}

fn undo_error(why: UndoError) -> TreesError {
    match why {
        UndoError::Trouble(why) => tree_error(why),
        UndoError::Touched { .. }
        | UndoError::Unsure { .. }
        | UndoError::NotOfTurn { .. }
        | UndoError::NotUndone
        | UndoError::MovedOn => refused(why.to_string()),
    }
}

fn merge_error(why: MergeError) -> TreesError {
    match why {
        MergeError::Trouble(why) => tree_error(why),
        MergeError::Conflicts { .. }
        | MergeError::Changed { .. }
        | MergeError::Uncommitted { .. }
        | MergeError::UnderWay { .. }
        | MergeError::NoBranch(_)
        | MergeError::MovedOn { .. } => refused(why.to_string()),
    }
}

fn merged_form(merged: Merged) -> MergedTree {
    MergedTree {
        into: ground(merged.into),
        branch: merged.branch,
        files: merged.files.into_iter().map(shown).collect(),
        is_cut: false,
        before: merged.moved.map(|(before, _)| before),
        safety: merged.safety,
        left_out: merged.left_out,
        obstacle: None,
    }
}

fn name_of(session: SessionId, name: &str) -> Result<WorktreeName, TreesError> {
    WorktreeName::of(session, name).map_err(tree_error)
}

fn shown(path: PathBuf) -> String {
    path.to_string_lossy().into_owned()
}

fn ground(path: PathBuf) -> GroundPath {
    shown(path).into()
}

fn side_of(session: SessionId, turn: Turn, moment: SnapshotMoment) -> SnapshotName {
    SnapshotName { session, turn: u64::from(turn.0), moment }
}

fn safety_of(session: SessionId, turn: Turn) -> SnapshotName {
    SnapshotName { session, turn: u64::from(turn.0), moment: SnapshotMoment::Safety }
}

fn undone_form(
    held: &HeldDirectory<'_>,
    undone: Result<Undone, UndoError>,
) -> Result<UndoneTurn, TreesError> {
    let undone = match undone {
        Err(UndoError::MovedOn) => {
            held.recheck(())?;
            return Err(refused(SWAPPED));
        }
        undone => undone.map_err(undo_error)?,
    };
    let files = undone.files.into_iter().map(shown).collect();
    Ok(UndoneTurn { files, moves: undone.moves.into_iter().map(move_form).collect() })
}

fn move_form(moved: RepositoryMove) -> TreeMove {
    TreeMove { words: moved.words, command: moved.command }
}

fn entered_form(name: &str, entered: EnteredWorktree) -> Result<EnteredTree, TreesError> {
    let directory = entered.directory.into_os_string().into_string();
    let directory = directory.map_err(|_| refused("the worktree's path is not text"))?;
    let branch = entered.branch.unwrap_or_else(|| NO_BRANCH.to_owned());
    Ok(EnteredTree { name: name.to_owned(), directory: directory.into(), branch, notices: entered.notices })
}

impl GitTrees {
    pub(crate) async fn enter(
        &self,
        session: SessionId,
        directory: GroundPath,
        new: NewWorktree,
    ) -> Result<EnteredTree, TreesError> {
        let branch = new.branch.as_deref().map(str::parse::<BranchName>).transpose();
        let branch = branch.map_err(tree_error)?;
        let name = name_of(session, &new.name)?;
        let held = self.directories.hold(&directory)?;
        let enter = |is_new| EnterRequest {
            repository: held.path_behind_wall(),
            name: name.clone(),
            base: new.base.clone(),
            branch: branch.clone(),
            is_new,
            session: Some(session),
        };
        // Who says from where means a new one; who only says its name means the one that is there, if it is.
        let there = match (&new.base, &new.branch) {
            (None, None) => self.git.enter(enter(false)).await,
            (Some(_), _) | (_, Some(_)) => Err(GitError::NoSuchWorktree(name.clone())),
        };
        let (entered, is_new) = match there {
            Err(GitError::NoSuchWorktree(_)) => (self.git.enter(enter(true)).await, true),
            there => (there, false),
        };
        let entered = entered.map_err(|why| self.why_not(session, &new.name, why))?;
        if is_new && let Ok(Some(seen)) = self.git.look_at_new(&name).await {
            self.notes.write(&name, &seen_form(session, new.name.clone(), seen));
        }
        entered_form(&new.name, entered)
    }

    /// The root of a session's worktree of that name.
    pub(crate) fn root_of(&self, session: SessionId, name: &str) -> Option<PathBuf> {
        Some(self.git.root_called(&WorktreeName::of(session, name).ok()?))
    }

    /// Takes away a worktree that could not be made.
    pub(crate) async fn discard(&self, session: SessionId, name: &str) {
        if let Ok(name) = WorktreeName::of(session, name) {
            // What stays is gone on with by whoever enters or removes it.
            let _ = self.git.discard_unmade(&name).await;
        }
    }

    /// The branch of a removed worktree stays where something was committed on it: whoever wants the same name again most
    /// likely wants the same worktree again.
    fn why_not(&self, session: SessionId, name: &str, why: GitError) -> TreesError {
        let removed = self.git.removed().unwrap_or_default().into_iter();
        let mut removed = removed.filter_map(removed_form);
        match removed.find(|removed| removed.session == session && removed.name == name) {
            Some(_) if matches!(why, GitError::BranchTaken(_)) => {
                let back =
                    format!("or have the worktree back that was removed: `homing worktree restore {name}`");
                TreesError::Refused(format!("{why}; {back}"))
            }
            _ => tree_error(why),
        }
    }

    pub(crate) async fn fork(
        &self,
        session: SessionId,
        directory: GroundPath,
        new: NewWorktree,
        origin: SessionId,
        turn: Turn,
    ) -> Result<EnteredTree, TreesError> {
        let held = self.directories.hold(&directory)?;
        let directory = held.path_behind_wall();
        self.git.take_over(directory, origin).await.map_err(tree_error)?;
        let after = self.git.find(directory, &side_of(origin, turn, SnapshotMoment::After)).await;
        let after = after.map_err(tree_error)?;
        let after = after
            .ok_or_else(|| refused(format!("nobody remembers the tree after turn {turn} of {origin}")))?;
        let name = name_of(session, &new.name)?;
        let entered = self.git.fork(directory, &after, &name, Some(session)).await;
        let entered = entered.map_err(tree_error)?;
        self.note_made(session, &name).await;
        entered_form(&new.name, entered)
    }

    /// Once a turn is over, nothing is before it any more: whoever looks then is late, on a node that was replaced, and must not
    /// make what the turn did look as if it had been there.
    pub(crate) async fn remember_before(
        &self,
        session: SessionId,
        directory: GroundPath,
        turn: Turn,
    ) -> Result<bool, TreesError> {
        let held = self.directories.hold(&directory)?;
        let after = side_of(session, turn, SnapshotMoment::After);
        if self.git.find(held.path_behind_wall(), &after).await.map_err(tree_error)?.is_some() {
            return Ok(true);
        }
        let name = side_of(session, turn, SnapshotMoment::Before);
        let taken = self.git.snapshot_of_turn(held.path_behind_wall(), &name, None).await;
        Ok(held.recheck(taken.map_err(tree_error)?.is_some())?)
    }

    pub(crate) async fn remember_after(
        &self,
        session: SessionId,
        directory: GroundPath,
        turn: Turn,
        edits: Option<Vec<String>>,
    ) -> Result<bool, TreesError> {
        let held = self.directories.hold(&directory)?;
        let name = side_of(session, turn, SnapshotMoment::After);
        let taken = self.git.snapshot_of_turn(held.path_behind_wall(), &name, edits.as_deref()).await;
        Ok(held.recheck(taken.map_err(tree_error)?.is_some())?)
    }

    pub(crate) async fn back_up(&self, to: &Path) -> Result<usize, TreesError> {
        self.git.back_up(to).await.map_err(tree_error)
    }

    /// Puts a copy of snapshots into a part of the data directory, which belongs to whom the copy belongs.
    pub(crate) fn put_back(data: &Path, own: &Path, from: &Path) -> Result<usize, TreesError> {
        make_like(own, from).map_err(|why| TreesError::Failed(format!("{}: {why}", own.display())))?;
        Self::open_at(data, own)?.git.restore_backup(from).map_err(tree_error)
    }

    pub(crate) fn left_behind(&self) -> Vec<LeftInRepository> {
        self.git.left_in_repositories()
    }

    pub(crate) fn crowded(&self) -> Vec<PathBuf> {
        self.git.crowded_stores()
    }

    pub(crate) fn bounded_sessions(&self) -> Vec<SessionId> {
        self.git.bounded_sessions()
    }

    /// Makes the snapshots of the repository around a directory independent of it.
    pub(crate) async fn copy(&self, session: SessionId, directory: GroundPath) -> Result<(), TreesError> {
        let held = self.directories.hold(&directory)?;
        self.git.clear_away().await.map_err(tree_error)?;
        self.git.take_over(held.path_behind_wall(), session).await.map_err(tree_error)?;
        self.git.clone().in_background().copy(held.path_behind_wall()).await.map_err(tree_error)
    }

    /// Takes over what older versions have left in the repository around a directory.
    pub(crate) async fn take_over(
        &self,
        session: SessionId,
        directory: GroundPath,
    ) -> Result<(), TreesError> {
        let held = self.directories.hold(&directory)?;
        self.git.take_over(held.path_behind_wall(), session).await.map_err(tree_error)
    }

    /// Looks at every file once the answer is out: what is seen is for the turns to come.
    pub(crate) async fn survey(&self, directory: &GroundPath) {
        if let Ok(held) = self.directories.hold(directory) {
            // Whoever comes next looks again.
            let _ = self.git.survey(held.path_behind_wall()).await;
        }
    }

    pub(crate) async fn changes(
        &self,
        session: SessionId,
        directory: GroundPath,
        first: Turn,
        last: Turn,
    ) -> Result<Option<TreeChanges>, TreesError> {
        let held = self.directories.hold(&directory)?;
        let directory = held.path_behind_wall();
        let sides = self.recent_sides(directory, session, first, last).await?;
        let Some((before, after)) = sides else { return Ok(None) };
        let changes = self.git.diff(&before, &after).await.map_err(tree_error)?;
        let mut unseen = self.git.unseen(&before, &after).await.map_err(tree_error)?;
        if changes.files.is_empty() {
            unseen.push(IGNORED.to_owned());
        }
        let is_cut = changes.is_patch_cut || changes.more_files > 0;
        let files = changes.files.into_iter().map(change_form).collect();
        let moves = self.git.moves(directory, &before, &after).await.map_err(tree_error)?;
        let moves = moves.into_iter().map(move_form).collect();
        Ok(held.recheck(Some(TreeChanges { files, patch: changes.patch, is_cut, unseen, moves }))?)
    }

    /// A piece of the patch of one file between the same.
    pub(crate) async fn file_changes(
        &self,
        session: SessionId,
        directory: GroundPath,
        (first, last): (Turn, Turn),
        place: &PatchPlace,
    ) -> Result<Option<TreePatch>, TreesError> {
        let held = self.directories.hold(&directory)?;
        let sides = self.recent_sides(held.path_behind_wall(), session, first, last).await?;
        let Some((before, after)) = sides else { return Ok(None) };
        let patch = self.git.diff_file(&before, &after, place).await.map_err(tree_error)?;
        Ok(held.recheck(Some(patch_form(patch)))?)
    }

    /// Everything that was done in a worktree since it was made.
    pub(crate) async fn changes_since_base(
        &self,
        session: SessionId,
        name: String,
    ) -> Result<TreeSinceBase, TreesError> {
        let seen = self.git.diff_since_base(&name_of(session, &name)?).await.map_err(tree_error)?;
        let ChangesSinceBase { base, changes, unseen } = seen;
        let is_cut = changes.is_patch_cut || changes.more_files > 0;
        let files = changes.files.into_iter().map(change_form).collect();
        let changes = TreeChanges { files, patch: changes.patch, is_cut, unseen, moves: Vec::new() };
        Ok(TreeSinceBase { base, changes })
    }

    /// A piece of the patch of one file of that.
    pub(crate) async fn file_since_base(
        &self,
        session: SessionId,
        name: String,
        place: &PatchPlace,
    ) -> Result<TreePatch, TreesError> {
        let full = name_of(session, &name)?;
        let patch = self.git.diff_file_since_base(&full, place).await.map_err(tree_error)?;
        Ok(patch_form(patch))
    }

    /// The trees before one turn and after another, as they were last remembered; none outside of version control, or if one of them
    /// was not.
    async fn recent_sides(
        &self,
        directory: &Path,
        session: SessionId,
        first: Turn,
        last: Turn,
    ) -> Result<Option<(Snapshot, Snapshot)>, TreesError> {
        if self.git.root_of(directory).map_err(tree_error)?.is_none() {
            return Ok(None);
        }
        self.git.take_over(directory, session).await.map_err(tree_error)?;
        let find = async |turn, side| self.git.find_recent(directory, &side_of(session, turn, side)).await;
        let sides = tokio::try_join!(find(first, SnapshotMoment::Before), find(last, SnapshotMoment::After));
        let (before, after) = sides.map_err(tree_error)?;
        Ok(before.zip(after))
    }

    /// The tree before a turn and after it, as far as somebody remembers; what older versions have left is taken over first.
    async fn both_sides(
        &self,
        directory: &Path,
        session: SessionId,
        turn: Turn,
    ) -> Result<(Option<Snapshot>, Option<Snapshot>), TreesError> {
        self.git.take_over(directory, session).await.map_err(tree_error)?;
        let find = async |side| self.git.find(directory, &side_of(session, turn, side)).await;
        let (before, after) = (find(SnapshotMoment::Before).await, find(SnapshotMoment::After).await);
        Ok((before.map_err(tree_error)?, after.map_err(tree_error)?))
    }

    /// The tree before a turn and after it.
    async fn sides(
        &self,
        directory: &Path,
        session: SessionId,
        turn: Turn,
    ) -> Result<(Snapshot, Snapshot), TreesError> {
        let (before, after) = self.both_sides(directory, session, turn).await?;
        before.zip(after).ok_or_else(|| {
            if !self.git.root_of(directory).is_ok_and(|root| root.is_some()) {
                return refused(UNTRACKED);
            }
            let forgotten = || "nobody remembers how the tree was before it".to_owned();
            refused(self.git.why_gone(directory, session, u64::from(turn.0)).unwrap_or_else(forgotten))
        })
    }

    pub(crate) async fn preview_undo(
        &self,
        session: SessionId,
        directory: GroundPath,
        turn: Turn,
    ) -> Result<UndoPreview, TreesError> {
        let held = self.directories.hold(&directory)?;
        let directory = held.path_behind_wall();
        let (before, after) = self.sides(directory, session, turn).await?;
        let seen = self.git.preview_undo(directory, &before, &after).await.map_err(tree_error)?;
        Ok(held.recheck(preview_form(seen))?)
    }

    pub(crate) async fn undo(
        &self,
        session: SessionId,
        directory: GroundPath,
        turn: Turn,
        files: &UndoFiles,
    ) -> Result<UndoneTurn, TreesError> {
        let held = self.directories.hold(&directory)?;
        let directory = held.path_behind_wall();
        let (before, after) = self.sides(directory, session, turn).await?;
        let safety = safety_of(session, turn);
        let guard = || held.recheck(()).is_ok();
        undone_form(&held, self.git.undo(directory, &before, &after, &safety, files, guard).await)
    }

    pub(crate) async fn redo(
        &self,
        session: SessionId,
        directory: GroundPath,
        turn: Turn,
    ) -> Result<UndoneTurn, TreesError> {
        let held = self.directories.hold(&directory)?;
        let directory = held.path_behind_wall();
        if self.git.root_of(directory).map_err(tree_error)?.is_none() {
            return Err(refused(UNTRACKED));
        }
        let guard = || held.recheck(()).is_ok();
        undone_form(&held, self.git.redo(directory, session, &safety_of(session, turn), guard).await)
    }

    pub(crate) async fn look(
        &self,
        session: SessionId,
        name: String,
    ) -> Result<Option<TreeSeen>, TreesError> {
        // What cannot be a name is nobody's.
        let Ok(full) = WorktreeName::of(session, &name) else { return Ok(None) };
        self.look_at(session, &full, None).await
    }

    /// Looks at a worktree, and notes what is seen. Its size is looked for unless it is known.
    async fn look_at(
        &self,
        session: SessionId,
        full: &WorktreeName,
        size: Option<u64>,
    ) -> Result<Option<TreeSeen>, TreesError> {
        let Some(name) = full.own(session).map(str::to_owned) else { return Ok(None) };
        let seen = self.git.look(full, size).await.map_err(tree_error)?;
        let seen = seen.filter(|seen| seen.session == Some(session));
        let seen = seen.map(|seen| seen_form(session, name, seen));
        seen.iter().for_each(|seen| self.notes.write(full, seen));
        Ok(seen)
    }

    /// Notes what a worktree looks like that was filled with somebody's work, so that no list has to wait for that. If it cannot be
    /// seen, whoever lists it looks.
    async fn note_made(&self, session: SessionId, full: &WorktreeName) {
        let _ = self.look_at(session, full, None).await;
    }

    /// A turn in this directory is over: if it is a worktree of ours, what it looks like now is noted for lists. Nobody waits for it.
    pub(crate) async fn note_worktree(&self, session: SessionId, directory: &GroundPath) {
        let Some(full) = self.git.worktree_at(Path::new(directory.for_launch())) else { return };
        let before = self.notes.read(session, &full);
        let is_young = |seen: &TreeSeen| now_ms().saturating_sub(seen.seen_at.0) < SIZE_AGE_MS;
        let size = before.filter(is_young).map(|seen| seen.bytes);
        let _ = self.look_at(session, &full, size).await;
    }

    pub(crate) async fn remove(&self, session: SessionId, name: String) -> Result<RemovedTree, TreesError> {
        let full = name_of(session, &name)?;
        let snapshot = SnapshotName { session, turn: 0, moment: SnapshotMoment::Removed };
        match self.git.home_of(&full).map_err(tree_error)? {
            // Otherwise its snapshot could get a name that an older one has already. If it cannot be done now, it is done later.
            Some(home) => drop(self.git.take_over(&home, session).await),
            None => {
                // Whoever removed it may have been killed before they could say so.
                let removed = self.git.removed().map_err(tree_error)?;
                if let Some(gone) = removed.into_iter().find(|removed| removed.name == full) {
                    self.notes.forget(&full);
                    return removed_form(gone).ok_or_else(|| refused("it is gone already".to_owned()));
                }
            }
        }
        let gone = self.git.remove(&full, &snapshot).await.map_err(tree_error)?;
        self.notes.forget(&full);
        let removed = self.git.removed().map_err(tree_error)?;
        let removed = removed.into_iter().find(|removed| removed.snapshot == gone.snapshot);
        let removed = removed.and_then(removed_form);
        removed.ok_or_else(|| refused(format!("it is gone, and kept as {}", gone.snapshot.reference)))
    }

    pub(crate) async fn restore(&self, wanted: RemovedTree) -> Result<EnteredTree, TreesError> {
        let full = name_of(wanted.session, &wanted.name)?;
        let removed = self.git.removed().map_err(tree_error)?;
        let mut removed = removed.into_iter();
        let found =
            removed.find(|removed| removed.name == full && removed.snapshot.reference == wanted.reference);
        let (repository, snapshot) = match found {
            Some(found) => (found.repository, found.snapshot),
            // One that is back is not among the removed any more.
            None => self
                .git
                .given_back(&full, &wanted.reference)
                .await
                .map_err(tree_error)?
                .ok_or_else(|| refused(format!("nothing is kept as {}", wanted.reference)))?,
        };
        self.git.take_over(&repository, wanted.session).await.map_err(tree_error)?;
        let entered = self.git.restore(&repository, &snapshot, &full).await;
        let entered = entered.map_err(tree_error)?;
        self.note_made(wanted.session, &full).await;
        entered_form(&wanted.name, entered)
    }

    /// A dry run names the files that are in the way.
    pub(crate) async fn merge(
        &self,
        session: SessionId,
        name: String,
        how: MergeHow,
        dry_run: bool,
    ) -> Result<MergedTree, TreesError> {
        let full = name_of(session, &name)?;
        if !dry_run {
            let safety = SnapshotName { session, turn: 0, moment: SnapshotMoment::Safety };
            return self.git.merge(&full, how, &safety).await.map(merged_form).map_err(merge_error);
        }
        let seen = self.git.preview_merge(&full, how).await;
        let obstacle = |kind, files: Vec<PathBuf>| {
            let obstacle = Some((kind, files.into_iter().map(shown).collect()));
            Ok(MergedTree { obstacle, ..MergedTree::default() })
        };
        match seen {
            Ok(seen) => Ok(merged_form(seen)),
            Err(MergeError::Conflicts { files }) => obstacle(MergeObstacle::Conflicts, files),
            Err(MergeError::Changed { files, .. }) => obstacle(MergeObstacle::Changed, files),
            Err(MergeError::Uncommitted { files }) => obstacle(MergeObstacle::Uncommitted, files),
            Err(why) => Err(merge_error(why)),
        }
    }

    /// Forgets what was kept of removed worktrees for longer than that.
    pub(crate) async fn sweep(&self, age: Duration) -> Result<usize, TreesError> {
        self.git.sweep(age).await.map(|gone| gone.len()).map_err(tree_error)
    }

    /// Words about snapshots of this session that went before their time, if nobody was told yet.
    pub(crate) fn tell_gone(&self, session: SessionId, directory: &GroundPath) -> Option<String> {
        let held = self.directories.hold(directory).ok()?;
        self.git.tell_gone(held.path_behind_wall(), session).ok()?
    }

    /// The room that the snapshots of these sessions take in a store.
    pub(crate) async fn share(&self, store: &str, sessions: &[SessionId]) -> Result<StoreShare, TreesError> {
        self.git.share(store, sessions).await.map_err(tree_error)
    }

    /// Gives back the room of what has gone.
    pub(crate) async fn compact(&self, store: &str) -> Result<StoreShare, TreesError> {
        self.git.compact_called(store).await.map_err(tree_error)
    }

    /// Lets the oldest of them go.
    pub(crate) async fn let_go(&self, store: &str, sessions: &[SessionId]) -> Result<StoreShare, TreesError> {
        self.git.let_go(store, sessions).await.map_err(tree_error)
    }

    pub(crate) async fn files(
        &self,
        directory: GroundPath,
        count_max: usize,
    ) -> Result<TreeFiles, TreesError> {
        let held = self.directories.hold(&directory)?;
        // A session's own directory is made when it is first needed.
        if !held.path_behind_wall().is_dir() {
            return Ok(TreeFiles::default());
        }
        let files = match self.git.files(held.path_behind_wall(), count_max).await.map_err(tree_error)? {
            Some(files) => files,
            None => plain_files(held.path_behind_wall(), count_max).await.map_err(tree_error)?,
        };
        Ok(held.recheck(files_form(files))?)
    }

    /// The directories in a directory.
    pub(crate) async fn directories(
        &self,
        directory: GroundPath,
        count_max: usize,
    ) -> Result<TreeFiles, TreesError> {
        let held = self.directories.hold(&directory)?;
        let found = directories_in(held.path_behind_wall(), count_max).await.map_err(tree_error)?;
        Ok(held.recheck(files_form(found))?)
    }
}

fn removed_form(removed: RemovedWorktree) -> Option<RemovedTree> {
    let session = removed.session()?;
    Some(RemovedTree {
        session,
        name: removed.name.own(session)?.to_owned(),
        repository: ground(removed.repository),
        branch: removed.branch.unwrap_or_else(|| NO_BRANCH.to_owned()),
        reference: removed.snapshot.reference,
        removed_at: kernel::Moment(removed.removed_at_ms),
    })
}

/// Files of a directory, for the engine.
fn files_form(files: FileList) -> TreeFiles {
    TreeFiles { paths: files.paths.into_iter().map(shown).collect(), is_cut: files.is_cut }
}

fn change_form(change: FileChange) -> TreeChange {
    let kind = match change.kind {
        ChangeKind::Added => "added",
        ChangeKind::Edited => "edited",
        ChangeKind::Removed => "removed",
        ChangeKind::Renamed { .. } => "renamed",
    };
    let lines = |lines| (!change.binary).then_some(lines);
    let path = change.path.to_string_lossy().into_owned();
    TreeChange { path, kind, plus: lines(change.plus), minus: lines(change.minus) }
}

fn patch_form(patch: Option<FilePatch>) -> TreePatch {
    let Some(FilePatch { file, patch, next }) = patch else { return TreePatch::default() };
    TreePatch { file: Some(change_form(file)), patch, next }
}

fn preview_form(seen: UndoLook) -> UndoPreview {
    let step = |(path, kind): (PathBuf, UndoKind)| {
        let kind = match kind {
            UndoKind::Restored => "restored",
            UndoKind::Removed => "removed",
            UndoKind::BroughtBack => "brought_back",
            UndoKind::Mode => "mode",
            UndoKind::AsBefore => "as_before",
        };
        UndoStep { path: shown(path), kind }
    };
    UndoPreview {
        files: seen.files.into_iter().map(step).collect(),
        touched: seen.touched_since.into_iter().map(shown).collect(),
        unsure: seen.unsure.into_iter().map(shown).collect(),
        has_report: seen.has_report,
        moves: seen.moves.into_iter().map(move_form).collect(),
        ..UndoPreview::default()
    }
}

fn seen_form(session: SessionId, name: String, seen: crate::git::WorktreeStatus) -> TreeSeen {
    TreeSeen {
        session,
        name,
        directory: ground(seen.directory),
        repository: ground(seen.repository),
        branch: seen.branch.unwrap_or_else(|| NO_BRANCH.to_owned()),
        ahead: seen.ahead,
        behind: seen.behind,
        dirty: seen.dirty + seen.untracked,
        bytes: seen.size_bytes,
        made_at: kernel::Moment(seen.made_at_ms),
        used_at: kernel::Moment(seen.used_at_ms),
        seen_at: kernel::Moment(now_ms()),
        is_missing: seen.is_missing,
        is_deleted: seen.is_deleted,
    }
}

/// A directory for nobody but whom the other one belongs to.
fn make_like(directory: &Path, other: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    let about = std::fs::symlink_metadata(other)?;
    if directory.symlink_metadata().is_err() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let _ = std::os::unix::fs::lchown(directory, Some(about.uid()), Some(about.gid()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_look_before_a_turn_that_is_over_changes_nothing() {
        let (data, tree) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let made = std::process::Command::new("git").args(["init", "--quiet"]).arg(tree.path()).status();
        assert!(made.unwrap().success());
        let trees = GitTrees::open_at(data.path(), &data.path().join("git")).unwrap();
        let (session, directory) = (SessionId::from_bits(1), ground(tree.path().to_owned()));
        let before = async || trees.remember_before(session, directory.clone(), Turn(1)).await;
        assert_eq!(before().await, Ok(true));
        std::fs::write(tree.path().join("made.txt"), "by the turn").unwrap();
        let after = trees.remember_after(session, directory.clone(), Turn(1), None).await;
        assert_eq!(after, Ok(true));
        assert_eq!(before().await, Ok(true), "late, and no trouble");
        let changes = trees.changes(session, directory.clone(), Turn(1), Turn(1)).await.unwrap().unwrap();
        assert_eq!(changes.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["made.txt"]);
    }

    /// A worker that is killed when all is done has told nobody, and the next one is asked the same.
    #[tokio::test]
    async fn what_is_done_already_is_the_answer_to_whoever_asks_again() {
        let (data, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let make =
            "git init -q && echo one > a && git add a && git -c user.name=a -c user.email=a@b commit -qm one";
        let made = std::process::Command::new("sh").args(["-c", make]).current_dir(home.path()).status();
        assert!(made.unwrap().success());
        let trees = GitTrees::open_at(data.path(), &data.path().join("git")).unwrap();
        let session = SessionId::from_bits(1);
        let new = NewWorktree { name: "blue".to_owned(), base: None, branch: None };
        let home = home.path().canonicalize().unwrap();
        let entered = trees.enter(session, ground(home), new).await.unwrap();
        let file = Path::new(entered.directory.for_launch()).join("a");
        for words in ["two", "three"] {
            std::fs::write(&file, words).unwrap();
            let removed = trees.remove(session, "blue".to_owned()).await.unwrap();
            assert_eq!(trees.remove(session, "blue".to_owned()).await, Ok(removed.clone()), "the newest");
            let back = trees.restore(removed.clone()).await.unwrap();
            assert_eq!(trees.restore(removed.clone()).await, Ok(back));
            assert_eq!(std::fs::read_to_string(&file).unwrap(), words);
            let other = RemovedTree { reference: format!("{}9", removed.reference), ..removed };
            assert!(trees.restore(other).await.is_err(), "nothing is kept so");
        }
    }

    /// A list would have to read its largest file otherwise, which takes longer than a request may.
    #[tokio::test]
    async fn a_new_worktree_is_noted_without_a_look_at_its_files() {
        let (data, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let make =
            "git init -q && echo one > a && git add a && git -c user.name=a -c user.email=a@b commit -qm one";
        let made = std::process::Command::new("sh").args(["-c", make]).current_dir(home.path()).status();
        assert!(made.unwrap().success());
        let trees = GitTrees::open_at(data.path(), &data.path().join("git")).unwrap();
        let session = SessionId::from_bits(1);
        let new = NewWorktree { name: "blue".to_owned(), base: None, branch: None };
        let home = home.path().canonicalize().unwrap();
        trees.enter(session, ground(home), new).await.unwrap();
        let seen = worktrees_seen(data.path()).unwrap();
        let blue = &seen[&(session, "blue".to_owned())];
        assert_eq!((blue.branch.as_str(), blue.ahead, blue.dirty), ("homing/blue-000000000001", 0, 0));
        assert!(blue.bytes > 0 && !blue.is_missing, "{blue:?}");
        // One that an older version has made.
        std::fs::remove_dir_all(data.path().join("git/seen")).unwrap();
        let seen = worktrees_seen(data.path()).unwrap();
        let as_made = &seen[&(session, "blue".to_owned())];
        assert_eq!((as_made.seen_at, as_made.dirty), (blue.made_at, 0));
        assert!(as_made.directory == blue.directory && !as_made.is_missing, "{as_made:?}");
    }
}

//! The words between the server and a ground worker: a line of JSON each, of a bounded length.
//!
//! Nothing that a repository says is among them but names of files and the patch that was asked for. Errors are kinds with
//! words of ours; git's own complaints stay in the worker.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use engine::{
    EnteredTree, MergeObstacle, MergedTree, NoGround, PatchPlace, RemovedTree, TreeChange, TreeChanges,
    TreeFiles, TreeMove, TreePatch, TreeSeen, TreesError, UndoPreview, UndoStep, UndoneTurn, WorkPhase,
    WorkProgress,
};
use kernel::{GroundPath, Moment, NewWorktree, SessionId, UndoFiles};
use serde::{Deserialize, Serialize};

use super::written::WrittenBounds;
use crate::git::StoreShare;
use crate::repositories::WorktreeRecords;

/// The longest answer. A patch has a bound of its own, far below.
pub(super) const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The longest request: a handful of names and paths.
pub(super) const REQUEST_BYTES_MAX: usize = 256 * 1024;
/// The bytes of names in one list. What is beyond them is cut, and said to be.
const NAMES_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The longest words of an error.
const WORDS_BYTES_MAX: usize = 2 * 1024;

/// The time between two words about the progress of one call.
pub(super) const PROGRESS_EVERY: Duration = Duration::from_millis(500);

/// The first line: where the worker's own files are, and how large they may grow.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WorkerPlaces {
    /// The data directory.
    pub(super) data: PathBuf,
    /// The part of it that git's own files are in.
    pub(super) own: PathBuf,
    /// The worktrees of its session.
    pub(super) worktrees: PathBuf,
    /// The disk that the snapshots of one repository may take.
    pub(super) store_bytes_max: u64,
}

/// A line for the worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WorkerRequest {
    /// This is to be done for that session.
    Call { number: u64, session: String, call: GroundCall, bounds: WrittenBounds },
    /// Nobody waits for that any more.
    GiveUp { number: u64 },
}

/// A path on the ground, as the worker is told of it: it stands there.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub(super) struct PathForm(pub(super) GroundPath);

impl From<String> for PathForm {
    fn from(path: String) -> Self {
        Self(path.into())
    }
}

impl From<PathForm> for String {
    fn from(form: PathForm) -> Self {
        form.0.for_launch().to_owned()
    }
}

/// The things that are done on a session's ground.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum GroundCall {
    Enter { directory: PathForm, new: WorktreeForm },
    Fork { directory: PathForm, new: WorktreeForm, origin: String, turn: u32 },
    RememberBefore { directory: PathForm, turn: u32 },
    RememberAfter { directory: PathForm, turn: u32, edits: Option<Vec<String>> },
    Copy { directory: PathForm },
    TakeOver { directory: PathForm },
    Changes { directory: PathForm, first: u32, last: u32 },
    FileChanges { directory: PathForm, first: u32, last: u32, place: PlaceForm },
    SinceBase { name: String },
    FileSinceBase { name: String, place: PlaceForm },
    PreviewUndo { directory: PathForm, turn: u32 },
    Undo { directory: PathForm, turn: u32, files: FilesForm },
    Redo { directory: PathForm, turn: u32 },
    Look { name: String },
    Remove { name: String },
    Restore { removed: RemovedForm },
    Merge { name: String, is_apply: bool, dry_run: bool },
    Files { directory: PathForm, count_max: usize },
    Directories { directory: PathForm, count_max: usize },
    Sweep { age_ms: u64 },
    Share { store: String, sessions: Vec<String>, step: ShareStep },
}

/// The things that are done with some sessions' part of a store.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ShareStep {
    Look,
    LetGo,
    Compact,
}

impl GroundCall {
    /// The directories beside our own that it is about.
    pub(super) fn grounds(
        &self,
        session: SessionId,
        records: &WorktreeRecords,
        homes: &[PathBuf],
    ) -> BTreeSet<PathBuf> {
        match (self, self.directory()) {
            (_, Some(directory)) => records.around(directory, homes),
            (
                Self::Look { name }
                | Self::Remove { name }
                | Self::Merge { name, .. }
                | Self::SinceBase { name }
                | Self::FileSinceBase { name, .. },
                None,
            ) => records.of_worktree(session, name),
            (Self::Restore { removed }, None) => records.around(&removed.repository.0, homes),
            (_, None) => records.all(),
        }
    }

    /// The worktrees of other sessions that it is about: the one that is forked, and the one that a worktree was made from.
    pub(super) fn besides(&self, session: SessionId, records: &WorktreeRecords) -> BTreeSet<PathBuf> {
        let named = match self {
            Self::Fork { directory, .. } => Some(directory.0.clone()),
            Self::Restore { removed } => Some(removed.repository.0.clone()),
            Self::Look { name }
            | Self::Remove { name }
            | Self::Merge { name, .. }
            | Self::SinceBase { name }
            | Self::FileSinceBase { name, .. } => records.home_of(session, name),
            _ => None,
        };
        named.and_then(|directory| records.foreign_root(session, &directory)).into_iter().collect()
    }

    /// The session's directory, if it is about that.
    pub(super) fn directory(&self) -> Option<&GroundPath> {
        match self {
            Self::Enter { directory, .. }
            | Self::Fork { directory, .. }
            | Self::RememberBefore { directory, .. }
            | Self::RememberAfter { directory, .. }
            | Self::Copy { directory }
            | Self::TakeOver { directory }
            | Self::Changes { directory, .. }
            | Self::FileChanges { directory, .. }
            | Self::PreviewUndo { directory, .. }
            | Self::Undo { directory, .. }
            | Self::Redo { directory, .. }
            | Self::Files { directory, .. }
            | Self::Directories { directory, .. } => Some(&directory.0),
            Self::Look { .. }
            | Self::SinceBase { .. }
            | Self::FileSinceBase { .. }
            | Self::Remove { .. }
            | Self::Restore { .. }
            | Self::Merge { .. }
            | Self::Sweep { .. }
            | Self::Share { .. } => None,
        }
    }

    /// The name of the worktree that it makes.
    pub(super) fn makes(&self) -> Option<String> {
        match self {
            Self::Enter { new, .. } | Self::Fork { new, .. } => Some(new.name.clone()),
            Self::Restore { removed } => Some(removed.name.clone()),
            _ => None,
        }
    }

    /// True if it changes something that somebody has asked for, and so says how far it is, and may take long while it goes on.
    pub(super) fn is_work(&self) -> bool {
        match self {
            Self::Enter { .. }
            | Self::Fork { .. }
            | Self::Undo { .. }
            | Self::Redo { .. }
            | Self::Remove { .. }
            | Self::Restore { .. }
            | Self::Merge { dry_run: false, .. } => true,
            Self::RememberBefore { .. }
            | Self::RememberAfter { .. }
            | Self::Copy { .. }
            | Self::TakeOver { .. }
            | Self::Changes { .. }
            | Self::FileChanges { .. }
            | Self::SinceBase { .. }
            | Self::FileSinceBase { .. }
            | Self::PreviewUndo { .. }
            | Self::Look { .. }
            | Self::Merge { dry_run: true, .. }
            | Self::Files { .. }
            | Self::Directories { .. }
            | Self::Sweep { .. }
            | Self::Share { .. } => false,
        }
    }

    /// The directory in which a turn has ended a little ago, and nobody waits.
    pub(super) fn worked_in(&self) -> Option<GroundPath> {
        match self {
            Self::Copy { directory } => Some(directory.0.clone()),
            _ => None,
        }
    }
}

/// A line from the worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WorkerReply {
    /// The end of a call.
    Answer { number: u64, answer: Result<GroundAnswer, GroundRefusal> },
    /// So far it is: a word and numbers, at most one for each `PROGRESS_EVERY`.
    Progress { number: u64, progress: ProgressForm },
}

/// The progress of a call.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct ProgressForm {
    phase: PhaseWord,
    files: Option<(u64, Option<u64>)>,
    bytes: u64,
}

/// The phases that a worker knows; scripts are not its own.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PhaseWord {
    Waiting,
    Looking,
    Snapshot,
    Copying,
    CheckingOut,
    Removing,
}

/// The answer to a call, by its kind.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum GroundAnswer {
    Entered {
        name: String,
        directory: PathForm,
        branch: String,
        notices: Vec<String>,
    },
    RememberedBefore {
        is_tracked: bool,
    },
    RememberedAfter {
        is_tracked: bool,
        changes: Option<ChangesForm>,
        /// Words for the session about snapshots that went before their time.
        #[serde(default)]
        gone: Option<String>,
    },
    Copied,
    Changes {
        changes: Option<ChangesForm>,
    },
    FilePatch {
        patch: Option<PatchForm>,
    },
    SinceBase {
        base: String,
        changes: ChangesForm,
    },
    UndoPreview {
        preview: PreviewForm,
    },
    Undone {
        files: Vec<String>,
        moves: Vec<MoveForm>,
    },
    Seen {
        seen: Option<SeenForm>,
    },
    Removed {
        removed: RemovedForm,
    },
    Merged {
        merged: MergedForm,
    },
    Files {
        paths: Vec<String>,
        is_cut: bool,
    },
    Swept {
        count: usize,
    },
    Share {
        bytes: u64,
        oldest_ms: Option<u64>,
    },
    /// Nobody waits for it.
    GivenUp,
}

/// Why nothing was done, as the engine tells them apart.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct GroundRefusal {
    kind: RefusalKind,
    words: String,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RefusalKind {
    NoGit,
    Gone,
    Elsewhere,
    Refused,
    Busy,
    Failed,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct WorktreeForm {
    name: String,
    base: Option<String>,
    branch: Option<String>,
}

/// The files that an undo is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FilesForm {
    Certain,
    All,
    Only(Vec<String>),
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MoveForm {
    words: String,
    command: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ChangesForm {
    files: Vec<ChangeForm>,
    patch: String,
    is_cut: bool,
    unseen: Vec<String>,
    moves: Vec<MoveForm>,
}

/// Where a piece of a file's patch begins.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PlaceForm {
    path: String,
    byte: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PatchForm {
    file: Option<ChangeForm>,
    patch: String,
    next: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PreviewForm {
    files: Vec<StepForm>,
    touched: Vec<String>,
    unsure: Vec<String>,
    has_report: bool,
    moves: Vec<MoveForm>,
    is_cut: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct StepForm {
    path: String,
    kind: StepWord,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StepWord {
    Restored,
    Removed,
    BroughtBack,
    Mode,
    AsBefore,
}

#[derive(Debug, Serialize, Deserialize)]
struct ChangeForm {
    path: String,
    kind: ChangeWord,
    plus: Option<u64>,
    minus: Option<u64>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ChangeWord {
    Added,
    Edited,
    Removed,
    Renamed,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RemovedForm {
    session: String,
    name: String,
    repository: PathForm,
    branch: String,
    reference: String,
    removed_at: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MergedForm {
    into: PathForm,
    branch: Option<String>,
    files: Vec<String>,
    is_cut: bool,
    before: Option<String>,
    safety: Option<String>,
    left_out: Vec<String>,
    obstacle: Option<(ObstacleWord, Vec<String>)>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ObstacleWord {
    Conflicts,
    Changed,
    Uncommitted,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SeenForm {
    name: String,
    directory: PathForm,
    repository: PathForm,
    branch: String,
    ahead: u64,
    behind: u64,
    dirty: u64,
    bytes: u64,
    made_at: u64,
    used_at: u64,
    seen_at: u64,
    is_missing: bool,
    #[serde(default)]
    is_deleted: bool,
}

impl From<TreesError> for GroundRefusal {
    fn from(why: TreesError) -> Self {
        let kind = match &why {
            TreesError::NoGit(_) => RefusalKind::NoGit,
            TreesError::Moved(NoGround::Gone(_)) => RefusalKind::Gone,
            TreesError::Moved(NoGround::Elsewhere(_)) => RefusalKind::Elsewhere,
            TreesError::Refused(_) => RefusalKind::Refused,
            TreesError::Busy(_) => RefusalKind::Busy,
            TreesError::Failed(_) => RefusalKind::Failed,
        };
        Self { kind, words: why.to_string() }
    }
}

impl From<GroundRefusal> for TreesError {
    fn from(refusal: GroundRefusal) -> Self {
        let words = one_line(&refusal.words);
        match refusal.kind {
            RefusalKind::NoGit => Self::NoGit(words),
            RefusalKind::Gone => Self::Moved(NoGround::Gone(words)),
            RefusalKind::Elsewhere => Self::Moved(NoGround::Elsewhere(words)),
            RefusalKind::Refused => Self::Refused(words),
            RefusalKind::Busy => Self::Busy(words),
            RefusalKind::Failed => Self::Failed(words),
        }
    }
}

impl From<WorkProgress> for ProgressForm {
    fn from(progress: WorkProgress) -> Self {
        let phase = match progress.phase {
            WorkPhase::Waiting => PhaseWord::Waiting,
            WorkPhase::Snapshot => PhaseWord::Snapshot,
            WorkPhase::Copying => PhaseWord::Copying,
            WorkPhase::CheckingOut => PhaseWord::CheckingOut,
            WorkPhase::Removing => PhaseWord::Removing,
            WorkPhase::Begun | WorkPhase::Looking | WorkPhase::Setup | WorkPhase::Teardown => {
                PhaseWord::Looking
            }
        };
        Self { phase, files: progress.files, bytes: progress.bytes }
    }
}

impl From<ProgressForm> for WorkProgress {
    fn from(form: ProgressForm) -> Self {
        let phase = match form.phase {
            PhaseWord::Waiting => WorkPhase::Waiting,
            PhaseWord::Looking => WorkPhase::Looking,
            PhaseWord::Snapshot => WorkPhase::Snapshot,
            PhaseWord::Copying => WorkPhase::Copying,
            PhaseWord::CheckingOut => WorkPhase::CheckingOut,
            PhaseWord::Removing => WorkPhase::Removing,
        };
        Self { phase, files: form.files, bytes: form.bytes }
    }
}

/// Names of files stand in errors: nothing in them may move a terminal's cursor, or fill a screen.
pub(super) fn one_line(words: &str) -> String {
    let end = words.floor_char_boundary(WORDS_BYTES_MAX);
    words[..end].chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

/// True of each name of a list as long as there is room for it.
fn names_that_fit() -> impl FnMut(&str) -> bool {
    let mut room = NAMES_BYTES_MAX;
    move |name| {
        let fits = name.len() <= room;
        room = room.saturating_sub(name.len());
        fits
    }
}

impl From<NewWorktree> for WorktreeForm {
    fn from(new: NewWorktree) -> Self {
        let NewWorktree { name, base, branch } = new;
        Self { name, base, branch }
    }
}

impl From<WorktreeForm> for NewWorktree {
    fn from(form: WorktreeForm) -> Self {
        let WorktreeForm { name, base, branch } = form;
        Self { name, base, branch }
    }
}

impl From<TreeChange> for ChangeForm {
    fn from(change: TreeChange) -> Self {
        let kind = match change.kind {
            "added" => ChangeWord::Added,
            "removed" => ChangeWord::Removed,
            "renamed" => ChangeWord::Renamed,
            _ => ChangeWord::Edited,
        };
        Self { kind, path: change.path, plus: change.plus, minus: change.minus }
    }
}

impl From<ChangeForm> for TreeChange {
    fn from(form: ChangeForm) -> Self {
        let kind = match form.kind {
            ChangeWord::Added => "added",
            ChangeWord::Edited => "edited",
            ChangeWord::Removed => "removed",
            ChangeWord::Renamed => "renamed",
        };
        Self { kind, path: form.path, plus: form.plus, minus: form.minus }
    }
}

impl From<PatchPlace> for PlaceForm {
    fn from(place: PatchPlace) -> Self {
        Self { path: place.path, byte: place.byte }
    }
}

impl From<PlaceForm> for PatchPlace {
    fn from(form: PlaceForm) -> Self {
        Self { path: form.path, byte: form.byte }
    }
}

impl From<TreePatch> for PatchForm {
    fn from(patch: TreePatch) -> Self {
        Self { file: patch.file.map(ChangeForm::from), patch: patch.patch, next: patch.next }
    }
}

impl From<PatchForm> for TreePatch {
    fn from(form: PatchForm) -> Self {
        Self { file: form.file.map(TreeChange::from), patch: form.patch, next: form.next }
    }
}

impl From<TreeChanges> for ChangesForm {
    fn from(changes: TreeChanges) -> Self {
        let all = changes.files.len();
        let mut fits = names_that_fit();
        let files: Vec<_> =
            changes.files.into_iter().map(ChangeForm::from).take_while(|change| fits(&change.path)).collect();
        let is_cut = changes.is_cut || files.len() < all;
        let moves = changes.moves.into_iter().map(MoveForm::from).collect();
        Self { is_cut, files, patch: changes.patch, unseen: changes.unseen, moves }
    }
}

impl From<ChangesForm> for TreeChanges {
    fn from(form: ChangesForm) -> Self {
        let moves = form.moves.into_iter().map(TreeMove::from).collect();
        let files = form.files.into_iter().map(TreeChange::from).collect();
        let unseen = form.unseen.iter().map(|words| one_line(words)).collect();
        Self { files, patch: form.patch, is_cut: form.is_cut, unseen, moves }
    }
}

impl From<UndoPreview> for PreviewForm {
    fn from(preview: UndoPreview) -> Self {
        let word = |kind| match kind {
            "removed" => StepWord::Removed,
            "brought_back" => StepWord::BroughtBack,
            "mode" => StepWord::Mode,
            "as_before" => StepWord::AsBefore,
            _ => StepWord::Restored,
        };
        let UndoPreview { files, touched, unsure, has_report, moves, is_cut, why_not: _ } = preview;
        let (all, mut fits) = (files.len() + touched.len() + unsure.len(), names_that_fit());
        let touched: Vec<_> = touched.into_iter().take_while(|path| fits(path)).collect();
        let unsure: Vec<_> = unsure.into_iter().take_while(|path| fits(path)).collect();
        let form = |step: UndoStep| StepForm { kind: word(step.kind), path: step.path };
        let files: Vec<_> = files.into_iter().map(form).take_while(|step| fits(&step.path)).collect();
        let is_cut = is_cut || files.len() + touched.len() + unsure.len() < all;
        let moves = moves.into_iter().map(MoveForm::from).collect();
        Self { files, touched, unsure, has_report, moves, is_cut }
    }
}

impl From<PreviewForm> for UndoPreview {
    fn from(form: PreviewForm) -> Self {
        let word = |kind| match kind {
            StepWord::Restored => "restored",
            StepWord::Removed => "removed",
            StepWord::BroughtBack => "brought_back",
            StepWord::Mode => "mode",
            StepWord::AsBefore => "as_before",
        };
        let step = |form: StepForm| UndoStep { kind: word(form.kind), path: form.path };
        let PreviewForm { files, touched, unsure, has_report, moves, is_cut } = form;
        let moves = moves.into_iter().map(TreeMove::from).collect();
        let files = files.into_iter().map(step).collect();
        Self { files, touched, unsure, has_report, moves, is_cut, why_not: None }
    }
}

/// Names of branches stand in these.
impl From<TreeMove> for MoveForm {
    fn from(moved: TreeMove) -> Self {
        Self { words: one_line(&moved.words), command: one_line(&moved.command) }
    }
}

impl From<MoveForm> for TreeMove {
    fn from(form: MoveForm) -> Self {
        Self { words: one_line(&form.words), command: one_line(&form.command) }
    }
}

impl From<UndoFiles> for FilesForm {
    fn from(files: UndoFiles) -> Self {
        match files {
            UndoFiles::Certain => Self::Certain,
            UndoFiles::All => Self::All,
            UndoFiles::Only(names) => Self::Only(names),
        }
    }
}

impl From<FilesForm> for UndoFiles {
    fn from(form: FilesForm) -> Self {
        match form {
            FilesForm::Certain => Self::Certain,
            FilesForm::All => Self::All,
            FilesForm::Only(names) => Self::Only(names),
        }
    }
}

impl From<MergedTree> for MergedForm {
    fn from(merged: MergedTree) -> Self {
        let word = |obstacle| match obstacle {
            MergeObstacle::Conflicts => ObstacleWord::Conflicts,
            MergeObstacle::Changed => ObstacleWord::Changed,
            MergeObstacle::Uncommitted => ObstacleWord::Uncommitted,
        };
        let MergedTree { into, branch, files, is_cut, before, safety, left_out, obstacle } = merged;
        let (all, mut fits) = (files.len(), names_that_fit());
        let obstacle = obstacle
            .map(|(kind, files)| (word(kind), files.into_iter().take_while(|path| fits(path)).collect()));
        let files: Vec<_> = files.into_iter().take_while(|path| fits(path)).collect();
        let is_cut = is_cut || files.len() < all;
        let into = PathForm(into);
        Self { into, branch, files, is_cut, before, safety, left_out, obstacle }
    }
}

impl From<MergedForm> for MergedTree {
    fn from(form: MergedForm) -> Self {
        let kind = |word| match word {
            ObstacleWord::Conflicts => MergeObstacle::Conflicts,
            ObstacleWord::Changed => MergeObstacle::Changed,
            ObstacleWord::Uncommitted => MergeObstacle::Uncommitted,
        };
        let MergedForm { into, branch, files, is_cut, before, safety, left_out, obstacle } = form;
        let left_out = left_out.iter().map(|words| one_line(words)).collect();
        let obstacle = obstacle.map(|(word, files)| (kind(word), files));
        let into = into.0;
        Self { into, branch, files, is_cut, before, safety, left_out, obstacle }
    }
}

impl From<RemovedTree> for RemovedForm {
    fn from(removed: RemovedTree) -> Self {
        let RemovedTree { session, name, repository, branch, reference, removed_at } = removed;
        let (session, removed_at) = (session.to_string(), removed_at.0);
        Self { session, name, repository: PathForm(repository), branch, reference, removed_at }
    }
}

impl RemovedForm {
    /// Of a session that the id names; none if it names none.
    pub(super) fn tree(self) -> Option<RemovedTree> {
        let Self { session, name, repository, branch, reference, removed_at } = self;
        let (session, removed_at) = (session.parse().ok()?, Moment(removed_at));
        Some(RemovedTree { session, name, repository: repository.0, branch, reference, removed_at })
    }
}

impl From<TreeSeen> for SeenForm {
    fn from(seen: TreeSeen) -> Self {
        let TreeSeen { session: _, name, directory, repository, branch, .. } = seen;
        let TreeSeen { ahead, behind, dirty, bytes, is_missing, is_deleted, .. } = seen;
        let (made_at, used_at, seen_at) = (seen.made_at.0, seen.used_at.0, seen.seen_at.0);
        Self {
            name,
            directory: PathForm(directory),
            repository: PathForm(repository),
            branch,
            ahead,
            behind,
            dirty,
            bytes,
            made_at,
            used_at,
            seen_at,
            is_missing,
            is_deleted,
        }
    }
}

impl SeenForm {
    /// As a worktree of that session.
    pub(crate) fn tree(self, session: SessionId) -> TreeSeen {
        let Self { name, directory, repository, branch, ahead, behind, dirty, bytes, .. } = self;
        let (is_missing, is_deleted) = (self.is_missing, self.is_deleted);
        let (made_at, used_at) = (Moment(self.made_at), Moment(self.used_at));
        let seen_at = Moment(self.seen_at);
        TreeSeen {
            session,
            name,
            directory: directory.0,
            repository: repository.0,
            branch,
            ahead,
            behind,
            dirty,
            bytes,
            made_at,
            used_at,
            seen_at,
            is_missing,
            is_deleted,
        }
    }
}

impl From<EnteredTree> for GroundAnswer {
    fn from(entered: EnteredTree) -> Self {
        let EnteredTree { name, directory, branch, notices } = entered;
        Self::Entered { name, directory: PathForm(directory), branch, notices }
    }
}

impl From<UndoneTurn> for GroundAnswer {
    fn from(undone: UndoneTurn) -> Self {
        let mut fits = names_that_fit();
        let files = undone.files.into_iter().take_while(|path| fits(path)).collect();
        Self::Undone { files, moves: undone.moves.into_iter().map(MoveForm::from).collect() }
    }
}

impl From<TreeFiles> for GroundAnswer {
    fn from(files: TreeFiles) -> Self {
        let (all, mut fits) = (files.paths.len(), names_that_fit());
        let paths: Vec<_> = files.paths.into_iter().take_while(|path| fits(path)).collect();
        Self::Files { is_cut: files.is_cut || paths.len() < all, paths }
    }
}

impl From<StoreShare> for GroundAnswer {
    fn from(share: StoreShare) -> Self {
        let since = share.oldest.and_then(|oldest| oldest.duration_since(UNIX_EPOCH).ok());
        let oldest_ms = since.map(|since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
        Self::Share { bytes: share.bytes, oldest_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_an_error_stay_on_one_line_and_short() {
        let said = format!("a\u{1b}[2J\nb{}", "é".repeat(WORDS_BYTES_MAX));
        let refusal = GroundRefusal { kind: RefusalKind::Refused, words: said };
        let TreesError::Refused(words) = TreesError::from(refusal) else { panic!("another kind") };
        assert!(words.starts_with("a\u{fffd}[2J\u{fffd}b") && words.len() <= WORDS_BYTES_MAX + 8);
    }

    #[test]
    fn a_list_beyond_its_bound_says_that_it_is_cut() {
        let paths = vec!["x".repeat(4096); 2_000];
        let answer = GroundAnswer::from(TreeFiles { paths, is_cut: false });
        let GroundAnswer::Files { paths, is_cut } = answer else { panic!("another kind") };
        assert_eq!((paths.len(), is_cut), (NAMES_BYTES_MAX / 4096, true));
    }
}

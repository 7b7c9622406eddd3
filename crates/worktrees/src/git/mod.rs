//! Worktrees and snapshots, by the real git, in repositories that nobody has to trust.
//!
//! Read in this order: `run` (the one place where git is started), `repository` (which repository a directory is in), `shadow`
//! (the git directory of ours in which git runs instead of the repository's), `store` (the bare repository of ours that
//! snapshots are in) with `objects` (commits, written by ourselves), then what is done with it: `enter` with `again` and `lfs`, `include`, `snapshot` with `own_look`, `global_ignore`, `unseen`, `note` and `file_modes`, `copy`, `take_over` (of what older versions left in the repository), `diff` with `repo_moves`, `undo`, `redo`, `remove` with
//! `unversioned` and `stamps`, `restore` with `bring`, `merge` with `merge_files`, `list`, `files`, `collect`, `room`, `backup`. `running` knows which runs of git live, `stuck`
//! which wait in vain, `progress` says how far they are, and `leftovers` takes away what a killed one has left. `names` are names that are safe, `directory_handle` reaches files without following links, `record` remembers
//! which worktrees are ours, `error` says what went wrong and what to do about it.
//!
//! Nothing that a repository says is ever executed here: no hook, no filter, no alias. Its configuration is not read by
//! git at all. What has to run (setup scripts) runs behind the wall with the agent, and not from here.

mod again;
mod backup;
mod bring;
mod collect;
mod copy;
mod diff;
mod directory_handle;
mod enter;
mod error;
mod file_modes;
mod files;
mod global_ignore;
mod in_the_way;
mod include;
mod leftovers;
mod lfs;
mod list;
mod merge;
mod merge_files;
mod names;
mod note;
mod objects;
mod own_look;
mod progress;
mod record;
mod redo;
mod remove;
mod repo_moves;
mod repository;
mod restore;
mod room;
mod run;
mod running;
mod shadow;
mod snapshot;
mod snapshot_header;
mod sorted_paths;
mod stamps;
mod store;
mod stuck;
mod take_over;
mod undo;
mod unseen;
mod unversioned;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub use collect::{CollectPolicy, Collected};
pub use diff::{ChangeKind, Changes, ChangesSinceBase, FileChange, FilePatch};
pub use enter::{EnterRequest, EnteredWorktree};
pub use error::{GitError, MergeError, UndoError};
pub use files::{FileList, directories_in, plain_files};
pub use global_ignore::PersonHome;
pub use list::WorktreeStatus;
pub(crate) use list::size_of;
pub use merge::Merged;
pub use names::{BranchName, SnapshotMoment, SnapshotName, WorktreeName};
pub(crate) use progress::ProgressSender;
pub use record::RemovedWorktree;
pub(crate) use record::{RecordedRepository, recorded_repositories, recorded_repository};
pub use remove::Removal;
pub use repo_moves::RepositoryMove;
pub(crate) use repository::read_own;
pub use room::{GoneReason, StoreRoom, StoreShare};
pub(crate) use shadow::write_note;
pub use snapshot::Snapshot;
pub(crate) use store::stores_in;
pub use take_over::LeftInRepository;
pub(crate) use take_over::was_taken_over;
pub use undo::{UndoKind, UndoLook, Undone};
pub use unseen::{UnseenPart, UnseenReason};

use objects::RecentCommits;
use repository::Repository;
use run::{GitRunner, program_at};
use running::RunningGits;

/// Where our files are. All are ours alone, and no agent sees of them but its own worktree and its own directory.
#[derive(Debug, Clone)]
pub struct GitDirectories {
    /// Worktrees live here, each in a directory of its name.
    pub worktrees: PathBuf,
    /// The directory of sessions' own directories, by its true name. A repository around it is none of theirs.
    pub work: PathBuf,
    /// Our records of worktrees and repositories, and the git directories in which git runs.
    pub own: PathBuf,
}

/// Limits on time and size.
#[derive(Debug, Clone)]
pub struct GitLimits {
    /// One run of git that only looks.
    pub time_max: Duration,
    /// One run of git of work that somebody has asked for, as long as it goes on: see `stuck_max`.
    pub work_time_max: Duration,
    /// A run of git that sleeps, and neither reads nor writes.
    pub stuck_max: Duration,
    /// Waiting for somebody else's operation on the same worktree or repository.
    pub wait_max: Duration,
    /// The same for work that somebody has asked for: theirs may take long, too.
    pub work_wait_max: Duration,
    /// Bytes that one run of git may print.
    pub output_bytes_max: usize,
    /// The part of a patch that is kept.
    pub patch_bytes_max: usize,
    /// The piece of one file's patch that is told at once.
    pub file_patch_bytes_max: usize,
    /// Bytes that `.worktreeinclude` may copy.
    pub include_bytes_max: u64,
    /// Ignored files and nested repositories that are kept when a worktree is removed. With more, it is not removed.
    pub kept_bytes_max: u64,
    /// Files that git does not track are in snapshots up to this size. Larger ones are named.
    pub untracked_bytes_max: u64,
    /// The disk that the snapshots of one repository may take, with what they reach in it.
    pub store_bytes_max: u64,
}

impl Default for GitLimits {
    fn default() -> Self {
        Self {
            time_max: Duration::from_secs(300),
            work_time_max: Duration::from_secs(2 * 60 * 60),
            stuck_max: Duration::from_secs(10),
            wait_max: Duration::from_secs(60),
            work_wait_max: Duration::from_secs(30 * 60),
            output_bytes_max: 256 * 1024 * 1024,
            patch_bytes_max: 1024 * 1024,
            file_patch_bytes_max: 256 * 1024,
            include_bytes_max: 1024 * 1024 * 1024,
            kept_bytes_max: 1024 * 1024 * 1024,
            untracked_bytes_max: 256 * 1024 * 1024,
            store_bytes_max: 4 * 1024 * 1024 * 1024,
        }
    }
}

/// Git, as we run it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Git {
    runner: GitRunner,
    places: GitDirectories,
    bounds: GitLimits,
    /// Whose own ignore file counts.
    person: Option<PersonHome>,
    recent: RecentCommits,
    /// For tests: at which step to stop, as if killed there. Zero: never.
    stop_at: Arc<AtomicUsize>,
}

impl Git {
    /// Makes the places if they are missing. `program` is git, by path or by a name in `PATH`.
    pub fn new(program: &Path, places: GitDirectories, bounds: GitLimits) -> Result<Self, GitError> {
        make_private(&places.worktrees)?;
        for place in ["home", "locks", "worktrees", "runs"] {
            make_private(&places.own.join(place))?;
        }
        let canonical = |path: &Path| path.canonicalize().map_err(GitError::disk(path));
        let places = GitDirectories {
            worktrees: canonical(&places.worktrees)?,
            work: places.work,
            own: canonical(&places.own)?,
        };
        let runner = GitRunner {
            program: program_at(program),
            home: places.own.join("home"),
            time_max: bounds.time_max,
            stuck_max: bounds.stuck_max,
            output_bytes_max: bounds.output_bytes_max,
            progress: ProgressSender::default(),
            runs: RunningGits::at(places.own.join("runs")),
            is_background: false,
        };
        let (recent, stop_at) = (RecentCommits::default(), Arc::new(AtomicUsize::new(0)));
        Ok(Self { runner, places, bounds, person: None, recent, stop_at })
    }

    /// The same, for what nobody waits for: its runs of git give way to everybody else's work.
    pub(crate) fn in_background(mut self) -> Self {
        self.runner.is_background = true;
        self
    }

    /// The same for work that somebody waits for and that says how far it is: what goes on may take long.
    pub(crate) fn for_work(&self, progress: ProgressSender) -> Self {
        let mut git = self.clone();
        git.bounds.wait_max = self.bounds.work_wait_max;
        git.runner.time_max = self.bounds.work_time_max;
        git.runner.progress = progress;
        git
    }

    /// Says that a phase begins.
    fn phase(&self, phase: engine::WorkPhase) {
        self.runner.progress.phase(phase);
    }

    /// The root of the repository's working tree around a directory, if there is one.
    pub fn root_of(&self, directory: &Path) -> Result<Option<PathBuf>, GitError> {
        Ok(self.around(directory)?.map(|repository| repository.top))
    }

    /// The repository that a session in this directory works in, if it is in one.
    fn around(&self, directory: &Path) -> Result<Option<Repository>, GitError> {
        Repository::around_below(directory, Some(&self.places.work))
    }

    fn must_be_around(&self, directory: &Path) -> Result<Repository, GitError> {
        self.around(directory)?.ok_or_else(|| GitError::NoRepository(directory.to_path_buf()))
    }

    /// For tests: the next operations end with [`GitError::Stopped`] at this step, counted from one, leaving everything
    /// as a kill would. Zero takes it back.
    #[doc(hidden)]
    pub fn stop_at_step(&self, step: usize) {
        self.stop_at.store(step, Ordering::SeqCst);
    }

    /// A point between two changes at which a kill must do no harm.
    fn step(&self) -> Result<(), GitError> {
        let left = self.stop_at.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| match left {
            0 => None,
            left => Some(left - 1),
        });
        if left == Ok(1) { Err(GitError::Stopped(1)) } else { Ok(()) }
    }
}

/// A directory for nobody but us.
pub(crate) fn make_private(path: &Path) -> Result<(), GitError> {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(path).map_err(GitError::disk(path))
}

/// Work on files, off the threads that must not wait.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, GitError> + Send + 'static,
) -> Result<T, GitError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(why) if why.is_panic() => std::panic::resume_unwind(why.into_panic()),
        Err(_) => Err(GitError::Stopped(0)),
    }
}

pub(crate) fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

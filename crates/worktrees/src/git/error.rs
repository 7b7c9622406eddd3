//! Errors around git, told apart by what its reader can do.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use super::names::WorktreeName;

/// The number of paths that are named before the rest is only counted.
const PATHS_SHOWN: usize = 10;

/// Why something around git did not happen. Each says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("{0} is not in a git repository; run `git init` there, or work in it without a worktree")]
    NoRepository(PathBuf),
    #[error("the repository at {path} is one we do not touch: {why}")]
    Strange { path: PathBuf, why: String },
    #[error("{what} {name:?} cannot be used: {why}")]
    BadName { what: &'static str, name: String, why: &'static str },
    #[error("{}", no_such_revision(.0))]
    NoSuchRevision(String),
    #[error(
        "there is a worktree called {name} already, for {repository}; choose another name, or enter that one"
    )]
    NameTaken { name: WorktreeName, repository: PathBuf },
    #[error("there is a branch {0} already; choose another name, or say that this branch is to be used")]
    BranchTaken(String),
    #[error("branch {branch} is checked out in {at}; choose another branch, or work there")]
    BranchInUse { branch: String, at: PathBuf },
    #[error("there is no worktree called {0}; `list` shows those that there are")]
    NoSuchWorktree(WorktreeName),
    #[error("{0} is in the way; move it elsewhere and try again")]
    InTheWay(PathBuf),
    #[error("{path} leads out of {root} through a link; remove the link")]
    LeadsOut { path: PathBuf, root: PathBuf },
    #[error("{0} leads elsewhere by now; put back what was there, or call the place by its true name")]
    LeadsElsewhere(PathBuf),
    #[error("{what} would take {bytes} bytes and only {bytes_max} are kept; move these elsewhere or delete them: {}", shown(.largest))]
    TooLarge { what: &'static str, bytes: u64, bytes_max: u64, largest: Vec<PathBuf> },
    #[error("these cannot be read, so they could not be given back: {}; make them readable, or delete them", shown(.0))]
    Unreadable(Vec<PathBuf>),
    #[error("there is no snapshot {0}; it may have expired")]
    NoSuchSnapshot(String),
    #[error("another operation on {0} is still under way; try again when it has ended")]
    Busy(PathBuf),
    #[error("git cannot read what is staged, {path}; move this file away and try again")]
    BrokenIndex { path: PathBuf },
    #[error("the worktree is not at {root} any more, but at {at}; move it back there, or remove it by hand")]
    Moved { root: PathBuf, at: PathBuf },
    #[error(
        "the repository {repository} is not there any more; the files stay in {root}: bring the repository back and try again, or move them elsewhere"
    )]
    RepositoryGone { repository: PathBuf, root: PathBuf },
    #[error("nothing was removed: somebody wrote to it meanwhile: {}; try again", shown(.0))]
    WrittenMeanwhile(Vec<PathBuf>),
    #[error(
        "git has not finished `{command}` within {seconds} s; look whether the disk is slow, or the repository is very large"
    )]
    Slow { command: String, seconds: u64 },
    #[error(
        "`{command}` has waited {seconds} s for something that does not come; look whether a pipe stands where a file should be, such as .gitignore"
    )]
    Stuck { command: String, seconds: u64 },
    #[error("`{command}` printed more than {bytes_max} bytes")]
    TooMuch { command: String, bytes_max: usize },
    #[error("git cannot be run ({program}): {why}; install git 2.39 or newer")]
    NoGit { program: PathBuf, why: io::Error },
    /// Git's own words may be out of a file that is nobody's to read: they are looked at, and not told.
    #[error("git said no to `{command}`; run `git fsck` in the repository, or try the same by hand there")]
    Git { command: String, said: String },
    #[error("{path}: {why}")]
    Disk { path: PathBuf, why: io::Error },
    #[error("stopped at step {0}, as asked")]
    Stopped(usize),
}

/// Why an undo was not done.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    #[error("changed since then by somebody else: {}; undo the later turns first, or restore these by hand", shown(.touched_since))]
    Touched { touched_since: Vec<PathBuf> },
    #[error("{}: {}; say that they are meant with `--all`, or which with `--only`", unsure_words(*.has_report), shown(.unsure))]
    Unsure { unsure: Vec<PathBuf>, has_report: bool },
    #[error("the turn has not changed {}; `homing diff TURN --stat` lists what it has", shown(.files))]
    NotOfTurn { files: Vec<PathBuf> },
    #[error("nothing of it was undone here, or its undo is too long ago")]
    NotUndone,
    #[error("the session has moved on since this was asked; ask again if it is still wanted")]
    MovedOn,
    #[error(transparent)]
    Trouble(#[from] GitError),
}

/// Why the work of a worktree was not brought back. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    #[error("these were changed on both sides: {}; merge the branch there into the worktree first, and settle them in it", shown(.files))]
    Conflicts { files: Vec<PathBuf> },
    #[error("these are changed in {} and not committed, or stand where a file has to be: {}; commit them or move them away first", at.display(), shown(.files))]
    Changed { at: PathBuf, files: Vec<PathBuf> },
    #[error("these are not committed in the worktree: {}; commit them there, or bring everything back with `homing worktree apply`", shown(.files))]
    Uncommitted { files: Vec<PathBuf> },
    #[error("{what} is under way in {}; end it there first, or give it up", at.display())]
    UnderWay { what: &'static str, at: PathBuf },
    #[error(
        "{0} is on no branch; switch to one there first, or bring the files alone with `homing worktree apply`"
    )]
    NoBranch(PathBuf),
    #[error("{branch} was moved just now, and everything is as it was; ask again")]
    MovedOn { branch: String },
    #[error(transparent)]
    Trouble(#[from] GitError),
}

impl MergeError {
    /// Files of a merge are written as those of an undo are.
    pub(super) fn of_undo(at: &Path, why: UndoError) -> Self {
        match why {
            UndoError::Touched { touched_since: files } | UndoError::Unsure { unsure: files, .. } => {
                Self::Changed { at: at.to_path_buf(), files }
            }
            UndoError::NotOfTurn { files } => Self::Changed { at: at.to_path_buf(), files },
            UndoError::NotUndone | UndoError::MovedOn => {
                Self::Changed { at: at.to_path_buf(), files: Vec::new() }
            }
            UndoError::Trouble(why) => Self::Trouble(why),
        }
    }
}

impl GitError {
    pub(super) fn disk(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |why| Self::Disk { path: path.to_path_buf(), why }
    }

    pub(super) fn strange(path: &Path, why: impl Into<String>) -> Self {
        Self::Strange { path: path.to_path_buf(), why: why.into() }
    }
}

fn unsure_words(has_report: bool) -> &'static str {
    match has_report {
        true => "changed during the turn, and the agent has not said that it was the agent",
        false => "the agent does not say which files it changes, and these changed during the turn",
    }
}

/// A repository in which nothing was ever committed has not even a `HEAD`.
fn no_such_revision(name: &str) -> String {
    match name {
        "HEAD" => {
            "this repository has no commit yet, and a worktree begins with one; make it with `git commit`"
                .to_owned()
        }
        name => format!(
            "{name:?} names no commit of this repository; give a branch, a tag or a commit that it has"
        ),
    }
}

fn shown(paths: &[PathBuf]) -> String {
    let mut text = String::new();
    for (at, path) in paths.iter().take(PATHS_SHOWN).enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}{}", path.display());
    }
    if paths.len() > PATHS_SHOWN {
        let _ = write!(text, " and {} more", paths.len() - PATHS_SHOWN);
    }
    text
}

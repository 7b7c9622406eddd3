//! Taking back what a turn did to files, and nothing else.
//!
//! The files that a turn changed are those at which its two snapshots differ. Each must still be as the turn left it, or
//! be as it was before already. Git then moves our index and the files from one tree to another in a single run: it
//! refuses by itself where a file changes under its hands, and it never writes through a link. HEAD, branches and what
//! is staged stay as they are.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Git;
use super::diff::{PathChange, check_trees};
use super::directory_handle::DirectoryHandle;
use super::error::{GitError, UndoError};
use super::names::SnapshotName;
use super::repository::{Repository, open_plain};
use super::shadow::{ShadowRepository, copy_index, write_whole};
use super::snapshot::{Snapshot, SnapshotExtras, path_of};

/// A file cut short by a kill is looked at up to this size.
const CUT_SHORT_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Where an undo notes that it has begun to change files.
const BEGUN: &str = "undo.json";

/// An undo that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undone {
    /// The files that are as before now, from the root of the working tree.
    pub files: Vec<PathBuf>,
    /// Everything as it was just before the undo.
    pub safety: Snapshot,
}

/// An undo that has begun to change files. If it is found at the next one, that one was cut short.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct UndoJournal {
    before: String,
    after: String,
}

impl UndoJournal {
    fn of(before: &Snapshot, after: &Snapshot) -> Self {
        Self { before: before.tree.clone(), after: after.tree.clone() }
    }
}

type PathChanges = BTreeMap<Vec<u8>, PathChange>;

impl Git {
    /// Makes the files that differ between `before` and `after` what they were before.
    ///
    /// `guard` is asked last, when everything is ready: whether this is still wanted. `safety` names the snapshot that is
    /// taken first.
    pub async fn undo(
        &self,
        directory: &Path,
        before: &Snapshot,
        after: &Snapshot,
        safety: &SnapshotName,
        guard: impl Fn() -> bool + Send,
    ) -> Result<Undone, UndoError> {
        let repository = repository_of(directory, before, after)?;
        let _held = self.hold(&repository.top, &repository.common).await?;
        let shadow = self.shadow_held(&repository)?;
        let wanted = UndoJournal::of(before, after);
        let safety = self.take_whole(&repository, &shadow, safety).await?;
        let (turn, touched_since) = self.touched_in(&repository, &shadow, &wanted, &safety.tree).await?;
        if !touched_since.is_empty() {
            return Err(UndoError::Touched { touched_since });
        }
        let target = self.with_before(&shadow, &turn).await?;
        if !guard() {
            return Err(UndoError::MovedOn);
        }
        let begun_path = shadow.dir.join(BEGUN);
        write_whole(&begun_path, &serde_json::to_vec(&wanted).unwrap_or_default())?;
        self.step()?;
        let move_files = self.raw(&shadow, "read-tree").words(["-m", "-u", &safety.tree, &target]);
        move_files.work_tree(&repository.top).index(&shadow.raw.join("index")).out().await?;
        self.step()?;
        fs::remove_file(&begun_path).map_err(GitError::disk(&begun_path))?;
        Ok(Undone { files: turn.keys().map(|path| path_of(path)).collect(), safety })
    }

    /// A snapshot from which everything can be had back, whatever happens next.
    async fn take_whole(
        &self,
        repository: &Repository,
        shadow: &ShadowRepository,
        name: &SnapshotName,
    ) -> Result<Snapshot, GitError> {
        let trees = self.trees(repository, shadow, true).await?;
        let head = trees.head.clone();
        let beside = SnapshotExtras { is_durable: true, ..SnapshotExtras::default() };
        let taken = self.seal(repository, shadow, name, trees, beside).await?;
        self.make_whole(shadow, &taken, head.as_deref()).await?;
        Ok(taken)
    }

    /// The files for which an undo would be refused now. Nothing is changed, and no snapshot is made.
    pub async fn touched(
        &self,
        directory: &Path,
        before: &Snapshot,
        after: &Snapshot,
    ) -> Result<Vec<PathBuf>, GitError> {
        let repository = repository_of(directory, before, after)?;
        let _held = self.hold(&repository.top, &repository.common).await?;
        let shadow = self.shadow_held(&repository)?;
        let now = self.trees(&repository, &shadow, false).await?;
        let (_, touched) =
            self.touched_in(&repository, &shadow, &UndoJournal::of(before, after), &now.tree).await?;
        Ok(touched)
    }

    /// The changes of the turn, and which files of it are neither as it left them nor as they were before it in the tree of now.
    async fn touched_in(
        &self,
        repository: &Repository,
        shadow: &ShadowRepository,
        wanted: &UndoJournal,
        now: &str,
    ) -> Result<(PathChanges, Vec<PathBuf>), GitError> {
        let turn = self.steps(shadow, &wanted.before, &wanted.after).await?;
        let since = self.steps(shadow, &wanted.after, now).await?;
        let begun = fs::read(shadow.dir.join(BEGUN)).ok();
        let begun = begun.and_then(|text| serde_json::from_slice::<UndoJournal>(&text).ok());
        let was_cut_short = begun.as_ref() == Some(wanted);
        let mut touched_since = Vec::new();
        for path in touched(&turn, &since) {
            if !was_cut_short || !self.is_cut_short(repository, shadow, &path, &turn).await? {
                touched_since.push(path_of(&path));
            }
        }
        Ok((turn, touched_since))
    }

    /// The tree of the last snapshot, with the files that the turn changed as they were before it.
    async fn with_before(&self, shadow: &ShadowRepository, turn: &PathChanges) -> Result<String, GitError> {
        let (index, target) = (shadow.raw.join("index"), shadow.raw.join("index.undo"));
        copy_index(&index, &target)?;
        let mut lines = Vec::new();
        // What goes comes first: a file may stand where a directory has to be.
        let gone_first = turn.iter().filter(|(_, step)| !step.before.is_there());
        for (path, step) in gone_first.chain(turn.iter().filter(|(_, step)| step.before.is_there())) {
            let mode = if step.before.is_there() { step.before.mode.as_str() } else { "0" };
            lines.extend_from_slice(format!("{mode} {}\t", step.before.id).as_bytes());
            lines.extend_from_slice(path);
            lines.push(0);
        }
        let update = self.raw(shadow, "update-index").words(["--replace", "-z", "--index-info"]);
        update.index(&target).say(lines).out().await?;
        self.raw(shadow, "write-tree").index(&target).text().await
    }

    /// True if a file is one that an undo of ours was writing when it was killed: gone, or the beginning of what it
    /// should become.
    async fn is_cut_short(
        &self,
        repository: &Repository,
        shadow: &ShadowRepository,
        path: &[u8],
        turn: &PathChanges,
    ) -> Result<bool, GitError> {
        let Some(step) = turn.get(path).filter(|step| step.before.is_there()) else { return Ok(false) };
        let at = repository.top.join(path_of(path));
        let inside = DirectoryHandle::open(&repository.top).map_err(GitError::disk(&repository.top))?;
        let relative = path_of(path);
        if inside.parent(&relative).is_err() || fs::symlink_metadata(&at).is_err() {
            return Ok(true);
        }
        let Ok(mut file) = open_plain(&at) else { return Ok(false) };
        if file.metadata().map_or(u64::MAX, |about| about.len()) > CUT_SHORT_BYTES_MAX {
            return Ok(false);
        }
        let mut beginning = Vec::new();
        std::io::Read::read_to_end(&mut file, &mut beginning).map_err(GitError::disk(&at))?;
        let blob = self.raw(shadow, "cat-file").words(["blob", &step.before.id]).out().await?;
        Ok(blob.starts_with(&beginning))
    }
}

/// The repository around a directory, if both snapshots are of it.
fn repository_of(directory: &Path, before: &Snapshot, after: &Snapshot) -> Result<Repository, GitError> {
    check_trees(before, after)?;
    let repository = Repository::must_be_around(directory)?;
    match repository.common == before.repository {
        true => Ok(repository),
        false => Err(GitError::NoSuchSnapshot(before.reference.clone())),
    }
}

/// The files of a turn that are neither as it left them nor as they were before it.
fn touched(turn: &PathChanges, since: &PathChanges) -> Vec<Vec<u8>> {
    let is_touched = |path: &[u8], step: &PathChange| match since.get(path) {
        Some(later) => later.after != step.before && later.after.is_there() | step.before.is_there(),
        // A file where a directory has to be, or the other way round.
        None if step.before.is_there() => stands_in_the_way(path, since),
        None => false,
    };
    turn.iter().filter(|(path, step)| is_touched(path, step)).map(|(path, _)| path.clone()).collect()
}

fn stands_in_the_way(path: &[u8], since: &PathChanges) -> bool {
    let is_there = |path: &[u8]| since.get(path).is_some_and(|step| step.after.is_there());
    let above =
        path.iter().enumerate().filter(|(_, byte)| **byte == b'/').any(|(at, _)| is_there(&path[..at]));
    let below = [path, b"/"].concat();
    above
        || since
            .range(below.clone()..)
            .take_while(|(each, _)| each.starts_with(&below))
            .any(|(_, step)| step.after.is_there())
}

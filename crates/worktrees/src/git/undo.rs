//! Taking back what a turn did to files, and nothing else.
//!
//! The files that a turn changed are those at which its two snapshots differ. Each must still be as the turn left it, or
//! be as it was before already; and if nobody says that all of them are meant, the agent must have said that it changed it.
//! Git then moves our index and the files from one tree to another in a single run: it
//! refuses by itself where a file changes under its hands, and it never writes through a link. HEAD, branches and what
//! is staged stay as they are. `put_back` does it; `redo` does the same in the other direction.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use engine::WorkPhase;
use kernel::UndoFiles;
use serde::{Deserialize, Serialize};

use super::diff::{PathChange, TreeEntry, check_trees};
use super::directory_handle::{DirectoryHandle, EntryKind};
use super::error::{GitError, UndoError};
use super::file_modes::{FileModes, look_at, set_modes};
use super::in_the_way::hidden_in_the_way;
use super::names::SnapshotName;
use super::note::{NotedPath, SnapshotNote};
use super::redo::UndoneNote;
use super::repo_moves::RepositoryMove;
use super::repository::{Repository, open_plain};
use super::shadow::{ShadowRepository, copy_index, write_whole};
use super::snapshot::{Snapshot, SnapshotExtras, path_of};
use super::{Git, blocking};

/// A file cut short by a kill is looked at up to this size.
const CUT_SHORT_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Where an undo notes that it has begun to change files.
const BEGUN: &str = "undo.json";

/// The modes that a tree has for plain files.
const PLAIN: &str = "100644";
const EXECUTABLE: &str = "100755";

/// An undo that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undone {
    /// The files that are as before now, from the root of the working tree.
    pub files: Vec<PathBuf>,
    /// Everything as it was just before the undo.
    pub safety: Snapshot,
    /// The turn's moves of the repository itself, which no undo takes back.
    pub moves: Vec<RepositoryMove>,
}

/// The work of an undo that was only asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoLook {
    /// Each file of the turn, and its fate.
    pub files: Vec<(PathBuf, UndoKind)>,
    /// The files for which it would be refused.
    pub touched_since: Vec<PathBuf>,
    /// The files of which the agent has not said that it changed them.
    pub unsure: Vec<PathBuf>,
    /// True if the agent has said of any file that it changed it.
    pub has_report: bool,
    /// The turn's moves of the repository itself, which no undo takes back.
    pub moves: Vec<RepositoryMove>,
}

/// The fate of a file in an undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoKind {
    /// It gets the content that it had.
    Restored,
    /// It goes: it was not there.
    Removed,
    /// It is there again.
    BroughtBack,
    /// It gets the mode that it had; its content stays.
    Mode,
    /// It is as before already.
    AsBefore,
}

impl UndoKind {
    fn of(now: &TreeEntry, before: &TreeEntry) -> Self {
        match (now.is_there(), before.is_there()) {
            (false, false) => Self::AsBefore,
            (true, false) => Self::Removed,
            (false, true) => Self::BroughtBack,
            (true, true) if now == before => Self::AsBefore,
            (true, true) if now.id == before.id => Self::Mode,
            (true, true) => Self::Restored,
        }
    }
}

/// Two trees between which files are put back, with what they cannot hold.
#[derive(Debug, Clone)]
pub(super) struct Reversal {
    /// The tree that the files are to be again.
    pub(super) before: String,
    /// The tree that they must be now.
    pub(super) after: String,
    /// The modes that they had and have, as far as they were noted.
    pub(super) modes_before: Option<FileModes>,
    pub(super) modes_after: Option<FileModes>,
    /// Only these files; all at which the trees differ if none are named.
    pub(super) only: Option<BTreeSet<NotedPath>>,
}

/// An undo that has begun to change files. If it is found at the next one, that one was cut short.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct UndoJournal {
    before: String,
    after: String,
    /// The modes that files get when they are what they were.
    #[serde(default)]
    modes: BTreeMap<NotedPath, u32>,
    /// Everything as it was before the first of its files was changed.
    #[serde(default)]
    safety: Option<Snapshot>,
}

impl UndoJournal {
    fn read(shadow: &ShadowRepository, of: &Reversal) -> Option<Self> {
        let text = fs::read(shadow.dir.join(BEGUN)).ok()?;
        let begun: Self = serde_json::from_slice(&text).ok()?;
        (begun.before == of.before && begun.after == of.after).then_some(begun)
    }

    /// True if files were being moved between these two trees, one way or the other.
    fn is_any(shadow: &ShadowRepository, of: &Reversal) -> bool {
        let back = Reversal { before: of.after.clone(), after: of.before.clone(), ..of.clone() };
        Self::read(shadow, of).or_else(|| Self::read(shadow, &back)).is_some()
    }
}

pub(super) type PathChanges = BTreeMap<Vec<u8>, PathChange>;

/// A reversal that nothing stands in the way of.
struct FreeWay {
    turn: PathChanges,
    modes: BTreeMap<NotedPath, u32>,
    /// True if the mode of a file changes whose content does not.
    has_mode_changes: bool,
    begun: Option<UndoJournal>,
    /// True if somebody was killed on this way, or on the way back.
    was_cut_short: bool,
}

/// Files that were put back.
pub(super) struct PutBack {
    pub(super) files: Vec<PathBuf>,
    pub(super) safety: Snapshot,
    /// The modes that they have now.
    pub(super) modes: BTreeMap<NotedPath, u32>,
    /// True if any file was otherwise before, now or when it was cut short.
    pub(super) has_changed: bool,
}

impl Git {
    /// Makes the files that differ between `before` and `after` what they were before: those of which the agent has said
    /// that it changed them, all, or the ones that are named.
    ///
    /// `guard` is asked last, when everything is ready: whether this is still wanted. `safety` names the snapshot that is
    /// taken first.
    pub async fn undo(
        &self,
        directory: &Path,
        before: &Snapshot,
        after: &Snapshot,
        safety: &SnapshotName,
        files: &UndoFiles,
        guard: impl Fn() -> bool + Send,
    ) -> Result<Undone, UndoError> {
        let repository = repository_of(directory, before, after)?;
        let _held = self.hold(&repository.top, &repository.common).await?;
        let shadow = self.shadow_held(&repository)?;
        let (told, note) = self.both_notes(&shadow, before, after).await?;
        let mut wanted = Reversal::of(before, after, &note);
        wanted.only = match files {
            UndoFiles::Certain | UndoFiles::All => None,
            UndoFiles::Only(names) => Some(self.named_files(&shadow, &wanted, names).await?),
        };
        let edits = match files {
            UndoFiles::Certain => Some(note[1].edits.clone()),
            UndoFiles::All | UndoFiles::Only(_) => None,
        };
        let done = self.put_back(&repository, &shadow, &wanted, safety, edits, guard).await?;
        if done.has_changed {
            self.note_undone(&shadow, UndoneNote::of(safety, &wanted, &done))?;
        }
        self.end_journal(&shadow)?;
        let moves = self.repository_moves(&shadow, &told, &note).await?;
        Ok(Undone { files: done.files, safety: done.safety, moves })
    }

    /// The work of an undo, file by file, and the files for which it would be refused now. Nothing is changed, and no
    /// snapshot is made.
    pub async fn preview_undo(
        &self,
        directory: &Path,
        before: &Snapshot,
        after: &Snapshot,
    ) -> Result<UndoLook, GitError> {
        let repository = repository_of(directory, before, after)?;
        let _held = self.hold(&repository.top, &repository.common).await?;
        let shadow = self.shadow_held(&repository)?;
        let now = self.trees(&repository, &shadow, false).await?;
        let (told, note) = self.both_notes(&shadow, before, after).await?;
        let wanted = Reversal::of(before, after, &note);
        let (turn, since) = self.sides_of(&shadow, &wanted, &now.tree).await?;
        let touched_since = self.touched_in(&repository, &shadow, &wanted, &turn, &since).await?;
        let mut unsure = unsure(&turn, &since, note[1].edits.as_deref());
        let mut files: Vec<_> = turn
            .iter()
            .map(|(path, step)| (path_of(path), UndoKind::of(now_at(path, step, &since), &step.before)))
            .collect();
        let modes = mode_changes(&repository.top, &wanted, &turn)?;
        unsure.extend(unsure_modes(&modes, note[1].edits.as_deref()));
        files.extend(modes.into_keys().map(|NotedPath(path)| (path_of(&path), UndoKind::Mode)));
        files.sort_by(|one, other| one.0.cmp(&other.0));
        let moves = self.repository_moves(&shadow, &told, &note).await?;
        let has_report = note[1].edits.as_ref().is_some_and(|edits| !edits.is_empty());
        Ok(UndoLook { files, touched_since, unsure, has_report, moves })
    }

    /// The files of a turn that somebody has named. Each must be one.
    async fn named_files(
        &self,
        shadow: &ShadowRepository,
        wanted: &Reversal,
        names: &[String],
    ) -> Result<BTreeSet<NotedPath>, UndoError> {
        let turn = self.steps(shadow, &wanted.before, &wanted.after).await?;
        let shown: BTreeMap<String, &Vec<u8>> =
            turn.keys().map(|path| (path_of(path).to_string_lossy().into_owned(), path)).collect();
        let (mut found, mut unknown) = (BTreeSet::new(), Vec::new());
        for name in names {
            match shown.get(name) {
                Some(path) => drop(found.insert(NotedPath(path.to_vec()))),
                None => unknown.push(PathBuf::from(name)),
            }
        }
        if unknown.is_empty() { Ok(found) } else { Err(UndoError::NotOfTurn { files: unknown }) }
    }

    /// Puts files back. If `edits` are given, only those may be among them. The working tree is held by the caller, who ends
    /// the journal once everything is written down.
    pub(super) async fn put_back(
        &self,
        repository: &Repository,
        shadow: &ShadowRepository,
        wanted: &Reversal,
        safety: &SnapshotName,
        edits: Option<Option<Vec<NotedPath>>>,
        guard: impl Fn() -> bool + Send,
    ) -> Result<PutBack, UndoError> {
        let trees = self.trees(repository, shadow, true).await?;
        let way = self.free_way(repository, shadow, wanted, &trees.tree, edits).await?;
        let all = way.turn.keys().cloned().chain(way.modes.keys().map(|path| path.0.clone()));
        let note =
            SnapshotNote { modes: Some(FileModes::of(&repository.top, all)?), ..SnapshotNote::default() };
        let beside = SnapshotExtras { is_durable: true, note: note.line(), ..SnapshotExtras::default() };
        let head = trees.head.clone();
        let mut taken = self.seal(repository, shadow, safety, trees, beside).await?;
        // Everything can be had back from it, whatever happens next.
        self.make_whole(shadow, &taken, head.as_deref()).await?;
        let target = self.with_entries(shadow, &shadow.raw.join("index"), &way.turn).await?;
        if !guard() {
            return Err(UndoError::MovedOn);
        }
        let mut has_changed = taken.tree != target || way.has_mode_changes;
        let now = taken.tree.clone();
        if let Some(first) = way.begun.and_then(|begun| begun.safety) {
            (taken, has_changed) = (first, true);
        }
        let journal = UndoJournal {
            before: wanted.before.clone(),
            after: wanted.after.clone(),
            modes: way.modes,
            safety: Some(taken.clone()),
        };
        write_whole(&shadow.dir.join(BEGUN), &serde_json::to_vec(&journal).unwrap_or_default())?;
        self.step()?;
        // What is closed to others is so from its first byte on.
        let is_private = journal.modes.values().any(|mode| mode & 0o044 != 0o044);
        if is_private {
            let (root, files) = (repository.top.clone(), journal.modes.clone());
            blocking(move || make_directories(&root, &files)).await?;
        }
        self.phase(WorkPhase::CheckingOut);
        let move_files = self.raw(shadow, "read-tree").words(["-v", "-m", "-u", &now, &target]);
        let move_files = move_files.private(is_private);
        move_files.work_tree(&repository.top).index(&shadow.raw.join("index")).out().await?;
        self.step()?;
        if way.was_cut_short {
            let (root, files) = (repository.top.clone(), way.turn.keys().map(|path| path_of(path)).collect());
            blocking(move || remove_emptied_directories(&root, files)).await?;
        }
        let (root, modes) = (repository.top.clone(), journal.modes.clone());
        blocking(move || set_modes(&root, &modes)).await?;
        self.step()?;
        let mut files: BTreeSet<PathBuf> = way.turn.keys().map(|path| path_of(path)).collect();
        let by_mode = journal.modes.keys().filter(|path| !way.turn.contains_key(&path.0));
        files.extend(by_mode.map(|path| path_of(&path.0)));
        Ok(PutBack { files: files.into_iter().collect(), safety: taken, modes: journal.modes, has_changed })
    }

    /// The files to be put back and their modes, if nothing is in the way.
    async fn free_way(
        &self,
        repository: &Repository,
        shadow: &ShadowRepository,
        wanted: &Reversal,
        now: &str,
        edits: Option<Option<Vec<NotedPath>>>,
    ) -> Result<FreeWay, UndoError> {
        let (turn, since) = self.sides_of(shadow, wanted, now).await?;
        let touched_since = self.touched_in(repository, shadow, wanted, &turn, &since).await?;
        if !touched_since.is_empty() {
            return Err(UndoError::Touched { touched_since });
        }
        let by_mode = mode_changes(&repository.top, wanted, &turn)?;
        if let Some(edits) = edits {
            let mut unsure = unsure(&turn, &since, edits.as_deref());
            unsure.extend(unsure_modes(&by_mode, edits.as_deref()));
            if !unsure.is_empty() {
                let has_report = edits.is_some_and(|edits| !edits.is_empty());
                return Err(UndoError::Unsure { unsure, has_report });
            }
        }
        let (begun, was_cut_short) = (UndoJournal::read(shadow, wanted), UndoJournal::is_any(shadow, wanted));
        let has_mode_changes = !by_mode.is_empty();
        let mut modes = match &begun {
            Some(begun) => begun.modes.clone(),
            None => wanted_modes(&repository.top, wanted, &turn)?,
        };
        modes.extend(by_mode);
        Ok(FreeWay { turn, modes, has_mode_changes, begun, was_cut_short })
    }

    pub(super) fn end_journal(&self, shadow: &ShadowRepository) -> Result<(), GitError> {
        let path = shadow.dir.join(BEGUN);
        fs::remove_file(&path).map_err(GitError::disk(&path))
    }

    /// The changes that are to be taken back, and those since.
    async fn sides_of(
        &self,
        shadow: &ShadowRepository,
        wanted: &Reversal,
        now: &str,
    ) -> Result<(PathChanges, PathChanges), GitError> {
        let mut turn = self.steps(shadow, &wanted.before, &wanted.after).await?;
        let mut since = self.steps(shadow, &wanted.after, now).await?;
        if let Some(only) = &wanted.only {
            let (chosen, left) =
                turn.into_iter().partition(|(path, _)| only.contains(&NotedPath(path.clone())));
            turn = chosen;
            // The files that stay may stand where another one has to be.
            let left: PathChanges = left;
            for (path, step) in left {
                since.entry(path).or_insert(step);
            }
        }
        Ok((turn, since))
    }

    /// The files that are neither as the turn left them nor as they were before it in the tree of now, and those in whose place something
    /// stands that no tree has.
    async fn touched_in(
        &self,
        repository: &Repository,
        shadow: &ShadowRepository,
        wanted: &Reversal,
        turn: &PathChanges,
        since: &PathChanges,
    ) -> Result<Vec<PathBuf>, GitError> {
        let was_cut_short = UndoJournal::read(shadow, wanted).is_some();
        let mut touched_since = Vec::new();
        let coming = turn.iter().filter(|(path, step)| {
            step.before.is_there() && !step.before.is_submodule() && !now_at(path, step, since).is_there()
        });
        let is_seen = |path: &[u8]| {
            let step = since.get(path).or_else(|| turn.get(path));
            step.is_some_and(|step| step.after.is_there())
        };
        let coming = coming.map(|(path, step)| (path, &step.before));
        let hidden = hidden_in_the_way(repository, coming, is_seen).await?;
        let all: BTreeSet<Vec<u8>> = touched(turn, since).into_iter().chain(hidden).collect();
        for path in all {
            if !was_cut_short || !self.is_cut_short(repository, shadow, &path, turn).await? {
                touched_since.push(path_of(&path));
            }
        }
        Ok(touched_since)
    }

    /// The tree of an index, with these files as they were before.
    pub(super) async fn with_entries(
        &self,
        shadow: &ShadowRepository,
        index: &Path,
        turn: &PathChanges,
    ) -> Result<String, GitError> {
        let target = shadow.raw.join("index.undo");
        copy_index(index, &target)?;
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
        match inside.parent(&relative).and_then(|(parent, name)| parent.stands(name)) {
            Ok(EntryKind::Nothing) => return Ok(true),
            Err(why) if why.kind() == ErrorKind::NotFound => return Ok(true),
            // Something of somebody's stands where its directory was.
            Err(_) => return Ok(false),
            Ok(_) => {}
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

impl Reversal {
    fn of(before: &Snapshot, after: &Snapshot, [first, last]: &[SnapshotNote; 2]) -> Self {
        Self {
            before: before.tree.clone(),
            after: after.tree.clone(),
            modes_before: first.modes.clone(),
            modes_after: last.modes.clone(),
            only: None,
        }
    }
}

/// Makes the directories in which these files are to be, as anybody else would: what is closed are the files. Where something
/// else stands in the way, git clears it.
fn make_directories(root: &Path, files: &BTreeMap<NotedPath, u32>) -> Result<(), GitError> {
    let inside = DirectoryHandle::open(root).map_err(GitError::disk(root))?;
    for path in files.keys() {
        let _ = inside.make_parent(&path_of(&path.0));
    }
    Ok(())
}

/// Takes away the directories of these files that nothing is in. Git takes a directory away after the last of its files, and makes one
/// before the first: if it is killed in between, the next run sees neither, because git knows no empty directories.
fn remove_emptied_directories(root: &Path, files: Vec<PathBuf>) -> Result<(), GitError> {
    let inside = DirectoryHandle::open(root).map_err(GitError::disk(root))?;
    let above = files.iter().flat_map(|file| file.ancestors().skip(1));
    let directories: BTreeSet<&Path> = above.filter(|path| !path.as_os_str().is_empty()).collect();
    // What is in another one comes after it.
    for path in directories.into_iter().rev() {
        // One that is not there, is no directory or has something in it is as it should be.
        let _ = inside.parent(path).and_then(|(parent, name)| parent.remove_directory(name));
    }
    Ok(())
}

/// The modes that the files of a turn get with their content.
fn wanted_modes(
    root: &Path,
    wanted: &Reversal,
    turn: &PathChanges,
) -> Result<BTreeMap<NotedPath, u32>, GitError> {
    let modes = wanted.modes_before.clone().unwrap_or_default();
    let now: BTreeMap<Vec<u8>, u32> =
        look_at(root, turn.keys().cloned().collect())?.modes.into_iter().collect();
    let plain = turn.iter().filter(|(_, step)| [PLAIN, EXECUTABLE].contains(&step.before.mode.as_str()));
    let found = plain.filter_map(|(path, step)| {
        let mode = modes.wanted(path, step.before.mode == EXECUTABLE, now.get(path).copied())?;
        Some((NotedPath(path.clone()), mode))
    });
    Ok(found.collect())
}

/// The files whose mode alone the turn has changed, as far as they had one of their own or got one; those that have another one by now
/// are somebody else's doing.
fn mode_changes(
    root: &Path,
    wanted: &Reversal,
    turn: &PathChanges,
) -> Result<BTreeMap<NotedPath, u32>, GitError> {
    let (Some(before), Some(after), None) = (&wanted.modes_before, &wanted.modes_after, &wanted.only) else {
        return Ok(BTreeMap::new());
    };
    // One that had the mode of nearly all is known only if all were looked at before the turn.
    let usual = after.specials().filter(|_| before.is_sure());
    let others: BTreeSet<Vec<u8>> = before.specials().chain(usual).map(|(path, _)| path.to_vec()).collect();
    let others = others.into_iter().filter(|path| !turn.contains_key(path)).collect();
    let changed = look_at(root, others)?.modes.into_iter().filter_map(|(path, now)| {
        let was = before.known(&path, now)?;
        (now != was && after.is_known_as(&path, now)).then_some((NotedPath(path), was))
    });
    Ok(changed.collect())
}

/// The files of a turn of which the agent has not said that it changed them, without those that are as before already.
fn unsure(turn: &PathChanges, since: &PathChanges, edits: Option<&[NotedPath]>) -> Vec<PathBuf> {
    let edits: BTreeSet<&[u8]> = edits.unwrap_or_default().iter().map(|path| path.0.as_slice()).collect();
    let is_unsure = |path: &[u8], step: &PathChange| {
        !edits.contains(path) && UndoKind::of(now_at(path, step, since), &step.before) != UndoKind::AsBefore
    };
    turn.iter().filter(|(path, step)| is_unsure(path, step)).map(|(path, _)| path_of(path)).collect()
}

/// The same of files whose mode alone has changed.
fn unsure_modes(modes: &BTreeMap<NotedPath, u32>, edits: Option<&[NotedPath]>) -> Vec<PathBuf> {
    let is_unsure = |path: &&NotedPath| !edits.unwrap_or_default().contains(path);
    modes.keys().filter(is_unsure).map(|path| path_of(&path.0)).collect()
}

/// The entry of a file now.
fn now_at<'a>(path: &[u8], step: &'a PathChange, since: &'a PathChanges) -> &'a TreeEntry {
    since.get(path).map_or(&step.after, |since| &since.after)
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

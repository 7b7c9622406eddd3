//! The files, the index and the branch of a merge: written so that whoever is killed leaves a journal from which the next one goes on.
//!
//! In this order: the new index beside git's own, git's lock of it (a second name of that file, so that a lock of ours is known),
//! the journal, the files (as an undo writes them, with a safety snapshot first), the branch, git's own list of its moves, the index.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use kernel::MergeHow;
use serde::{Deserialize, Serialize};

use super::diff::{PathChange, TreeEntry};
use super::error::{GitError, MergeError, UndoError};
use super::in_the_way::hidden_in_the_way;
use super::leftovers::{is_branch_lock_since, remove_lock_of};
use super::merge::{MergePlan, MergeSides, Merged};
use super::names::{SnapshotName, WorktreeName, is_object_id};
use super::note::NotedPath;
use super::repository::{Repository, open_plain, read_own};
use super::shadow::{ShadowRepository, copy_whole_index, remove_tree, write_whole};
use super::snapshot::{path_of, split_at_byte};
use super::undo::{PathChanges, Reversal};
use super::{Git, make_private, now_ms};

/// The note of a merge that has begun to change something.
const BEGUN: &str = "merge.json";
/// The new index beside git's own, and git's own lock of it.
const NEW_INDEX: &str = "index.homing";
const LOCK: &str = "index.lock";
/// The part of git's list of moves that is looked at for the last one.
const LOG_END_BYTES: u64 = 4 * 1024;

/// A merge that has begun to change something.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct MergeJournal {
    name: WorktreeName,
    is_apply: bool,
    head: String,
    branch: Option<String>,
    commit: Option<String>,
    /// The trees of files before and after it.
    now: String,
    target: String,
    began_ms: u64,
}

/// The direction in which the files of a merge are written.
enum MergeWay {
    Forth,
    /// To the files before it: all of them, or these.
    Back(Option<BTreeSet<NotedPath>>),
}

impl MergeJournal {
    /// Notes come back from storage: what is handed to git is checked again.
    pub(super) fn read(shadow: &ShadowRepository) -> Option<Self> {
        let begun: Self = serde_json::from_slice(&read_own(&shadow.dir.join(BEGUN)).ok()?).ok()?;
        let ids = [Some(&begun.head), begun.commit.as_ref(), Some(&begun.now), Some(&begun.target)];
        let is_good = ids.into_iter().flatten().all(|id| is_object_id(id));
        is_good.then_some(begun)
    }

    pub(super) fn is_of(&self, name: &WorktreeName, how: MergeHow) -> bool {
        self.name == *name && self.is_apply == (how == MergeHow::Apply)
    }

    fn end(shadow: &ShadowRepository) -> Result<(), GitError> {
        let path = shadow.dir.join(BEGUN);
        fs::remove_file(&path).map_err(GitError::disk(&path))
    }
}

impl Git {
    /// The tree of the files of now, with those of a merge as git would check them out, byte for byte.
    pub(super) async fn tree_of_files(
        &self,
        home: &Repository,
        shadow: &ShadowRepository,
        tree: &str,
        changes: &PathChanges,
    ) -> Result<String, GitError> {
        let is_file = |step: &PathChange| step.after.is_there() && !step.after.is_submodule();
        let files = changes.iter().filter(|(_, step)| is_file(step));
        let paths: Vec<u8> = files.flat_map(|(path, _)| [path, [0].as_slice()].concat()).collect();
        let (out, index) = (shadow.dir.join("merged"), shadow.plain.join("index.merged"));
        let ours = shadow.raw.join("index.merged");
        remove_tree(&out)?;
        make_private(&out)?;
        for left in [&index, &ours] {
            let _ = fs::remove_file(left);
        }
        self.stored(shadow, "read-tree").word(tree).index(&index).out().await?;
        let settings = self.carried(home, shadow).await?;
        let check_out = self.stored(shadow, "checkout-index").words(["--force", "--quiet", "-z", "--stdin"]);
        check_out.settings(&settings).work_tree(&out).index(&index).say(paths.clone()).out().await?;
        let add = self.raw(shadow, "update-index").words(["--add", "-z", "--stdin"]);
        add.work_tree(&out).index(&ours).say(paths).durable(true).out().await?;
        let listed = self.raw(shadow, "ls-files").words(["-z", "-s"]).index(&ours).out().await?;
        remove_tree(&out)?;
        // As an undo has it: what a file is to be is what it was *before*.
        let becomes = |entry: &TreeEntry| PathChange { before: entry.clone(), after: entry.clone() };
        let gone = changes.iter().filter(|(_, step)| !step.after.is_there() && !step.before.is_submodule());
        let mut target: PathChanges = gone.map(|(path, step)| (path.clone(), becomes(&step.after))).collect();
        for line in listed.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            let (about, path) = split_at_byte(line, b'\t');
            let about = String::from_utf8_lossy(about);
            let mut words = about.split(' ').map(str::to_owned);
            if let (Some(mode), Some(id)) = (words.next(), words.next()) {
                target.insert(path.to_vec(), becomes(&TreeEntry { mode, id }));
            }
        }
        self.with_entries(shadow, &shadow.raw.join("index"), &target).await
    }

    /// Refuses if somebody has changed a file there that would be written, or if one stands in its place that git does not see.
    pub(super) async fn must_be_free(
        &self,
        home: &Repository,
        shadow: &ShadowRepository,
        changes: &PathChanges,
        steps: &PathChanges,
    ) -> Result<(), MergeError> {
        let changed = self.status(home, shadow).await?;
        let is_in_the_way = |path: &[u8]| {
            let is_above = |one: &[u8], other: &[u8]| {
                one.len() < other.len() && other.starts_with(one) && other[one.len()] == b'/'
            };
            changed.iter().any(|(_, other)| other == path || is_above(path, other) || is_above(other, path))
        };
        let hidden = self.hidden_paths(home, shadow).await?;
        let is_new = |step: &PathChange| !step.before.is_there() && !step.after.is_submodule();
        let coming = steps.iter().filter(|(_, step)| is_new(step)).map(|(path, step)| (path, &step.after));
        let is_seen = |path: &[u8]| steps.get(path).is_some_and(|step| step.before.is_there());
        let unseen = hidden_in_the_way(home, coming, is_seen).await?;
        let files: Vec<PathBuf> = steps
            .keys()
            .filter(|path| is_in_the_way(path) || unseen.contains(*path))
            .chain(changes.keys().filter(|path| hidden.contains(*path)))
            .map(|path| path_of(path))
            .collect();
        if files.is_empty() { Ok(()) } else { Err(MergeError::Changed { at: home.top.clone(), files }) }
    }

    /// The paths of an index that git does not look at (a sparse checkout, say), or that are in the midst of a merge.
    async fn hidden_paths(
        &self,
        home: &Repository,
        shadow: &ShadowRepository,
    ) -> Result<BTreeSet<Vec<u8>>, GitError> {
        let copy = shadow.plain.join("index.hidden");
        let _ = fs::remove_file(&copy);
        if !home.git_dir.join("index").is_file() {
            return Ok(BTreeSet::new());
        }
        copy_whole_index(home, shadow, &copy)?;
        let entries = self.entries(shadow, &copy).await?;
        Ok(entries.into_iter().filter(|entry| entry.mark != b'H').map(|entry| entry.path).collect())
    }

    /// Makes everything ready, takes git's lock of the index, and writes the journal.
    pub(super) async fn begin_merging(
        &self,
        sides: &MergeSides,
        how: MergeHow,
        plan: &MergePlan,
    ) -> Result<MergeJournal, MergeError> {
        let MergeSides { home, shadow, .. } = sides;
        if let Some(commit) = &plan.commit {
            self.bring(home, shadow, std::slice::from_ref(commit)).await?;
            self.step()?;
            let index = self.index_after(home, shadow, plan).await?;
            lock_index(home, &index)?;
            self.step()?;
        }
        let journal = MergeJournal {
            name: sides.name.clone(),
            is_apply: how == MergeHow::Apply,
            head: plan.head.clone(),
            branch: plan.branch.clone(),
            commit: plan.commit.clone(),
            now: plan.now.clone(),
            target: plan.target.clone(),
            began_ms: now_ms(),
        };
        let text = serde_json::to_vec(&journal).unwrap_or_default();
        if let Err(why) = write_whole(&shadow.dir.join(BEGUN), &text) {
            unlock_index(home)?;
            return Err(why.into());
        }
        self.step()?;
        Ok(journal)
    }

    /// The person's index with the files of the merge as they are in its commit.
    async fn index_after(
        &self,
        home: &Repository,
        shadow: &ShadowRepository,
        plan: &MergePlan,
    ) -> Result<Vec<u8>, GitError> {
        let index = shadow.plain.join("index.after");
        let _ = fs::remove_file(&index);
        if home.git_dir.join("index").is_file() {
            copy_whole_index(home, shadow, &index)?;
        }
        let mut lines = Vec::new();
        // What goes comes first: a file may stand where a directory has to be.
        let gone_first = plan.changes.iter().filter(|(_, step)| !step.after.is_there());
        for (path, step) in gone_first.chain(plan.changes.iter().filter(|(_, step)| step.after.is_there())) {
            let mode = if step.after.is_there() { step.after.mode.as_str() } else { "0" };
            lines.extend_from_slice(format!("{mode} {}\t", step.after.id).as_bytes());
            lines.extend_from_slice(path);
            lines.push(0);
        }
        // A part in another file would be in our directory, not in theirs.
        let update =
            self.plain(shadow, "update-index").words(["--no-split-index", "--replace", "-z", "--index-info"]);
        update.index(&index).say(lines).out().await?;
        fs::read(&index).map_err(GitError::disk(&index))
    }

    /// Does what is not done yet. Both working trees are held by the caller. What cannot be done leaves everything as it was.
    pub(super) async fn go_on_merging(
        &self,
        sides: &MergeSides,
        begun: MergeJournal,
        safety: &SnapshotName,
    ) -> Result<Merged, MergeError> {
        match self.finish_merging(sides, &begun, safety).await {
            // As if killed: the next one goes on.
            Err(why @ MergeError::Trouble(GitError::Stopped(_))) => Err(why),
            // A git was cut short, and maybe in the midst of a file: only forward is it known what that is. If that fails as well,
            // the journal stays, and whoever asks next goes on.
            Err(MergeError::Trouble(why)) if !matches!(why, GitError::Busy(_)) => {
                self.shadow_held(&sides.home)?;
                self.finish_merging(sides, &begun, safety).await.map_err(|_| why.into())
            }
            Err(why) => {
                self.give_up_merging(sides, &begun, safety).await?;
                Err(why)
            }
            Ok(done) => Ok(done),
        }
    }

    async fn finish_merging(
        &self,
        sides: &MergeSides,
        begun: &MergeJournal,
        safety: &SnapshotName,
    ) -> Result<Merged, MergeError> {
        let MergeSides { home, shadow, .. } = sides;
        let steps = self.steps(shadow, &begun.now, &begun.target).await?;
        let mut kept = None;
        // Once the branch is where it should be, the files were written, and are whoever's they are by now.
        if !self.is_moved(shadow, begun).await? {
            let written = self.write_merged(sides, begun, safety, MergeWay::Forth).await;
            kept = Some(written.map_err(|why| MergeError::of_undo(&home.top, why))?);
            self.move_branch(home, shadow, begun).await?;
            self.step()?;
        }
        if let (Some(commit), Some(branch)) = (&begun.commit, &begun.branch) {
            note_move(home, begun, branch, commit, self.identity(home).as_ref())?;
            self.step()?;
            finish_index(home)?;
            self.step()?;
        }
        MergeJournal::end(shadow)?;
        self.step()?;
        let branch = begun.branch.as_deref().and_then(super::list::short);
        let moved = begun.commit.clone().map(|commit| (begun.head.clone(), commit));
        let files = steps.keys().map(|path| path_of(path)).collect();
        Ok(Merged { into: home.top.clone(), branch, files, moved, safety: kept, left_out: Vec::new() })
    }

    /// Makes everything what it was. If that cannot be done, or the branch has moved already, the journal stays, and whoever asks next
    /// goes on.
    async fn give_up_merging(
        &self,
        sides: &MergeSides,
        begun: &MergeJournal,
        safety: &SnapshotName,
    ) -> Result<(), GitError> {
        if self.is_moved(&sides.shadow, begun).await? {
            return Ok(());
        }
        let mut back = self.write_merged(sides, begun, safety, MergeWay::Back(None)).await;
        if let Err(UndoError::Touched { touched_since }) = &back {
            // Somebody has changed one of its files just now, or since it was cut short: theirs stays, and all others go back.
            let theirs: BTreeSet<&PathBuf> = touched_since.iter().collect();
            let steps = self.steps(&sides.shadow, &begun.now, &begun.target).await?;
            let others = steps.into_keys().filter(|path| !theirs.contains(&path_of(path))).map(NotedPath);
            back = self.write_merged(sides, begun, safety, MergeWay::Back(Some(others.collect()))).await;
        }
        match back {
            Ok(_) | Err(UndoError::Touched { .. }) => {
                unlock_index(&sides.home)?;
                MergeJournal::end(&sides.shadow)
            }
            Err(UndoError::Trouble(why)) => Err(why),
            Err(_) => Ok(()),
        }
    }

    /// True if the branch is where the merge moves it to.
    async fn is_moved(&self, shadow: &ShadowRepository, begun: &MergeJournal) -> Result<bool, GitError> {
        match (&begun.commit, &begun.branch) {
            (Some(commit), Some(branch)) => Ok(self.find_one(shadow, branch).await?.as_ref() == Some(commit)),
            _ => Ok(false),
        }
    }

    /// Writes the files of a merge, or those before it. Answers the ref of the safety snapshot.
    async fn write_merged(
        &self,
        sides: &MergeSides,
        begun: &MergeJournal,
        safety: &SnapshotName,
        way: MergeWay,
    ) -> Result<String, UndoError> {
        let MergeSides { home, shadow, .. } = sides;
        let (after, before, only) = match way {
            MergeWay::Forth => (begun.now.clone(), begun.target.clone(), None),
            MergeWay::Back(only) => (begun.target.clone(), begun.now.clone(), only),
        };
        let (modes_before, modes_after) = (None, None);
        let wanted = Reversal { before, after, modes_before, modes_after, only };
        // Nobody may have put a link in its place.
        let is_there = || home.top.canonicalize().is_ok_and(|there| there == home.top);
        let done = self.put_back(home, shadow, &wanted, safety, None, is_there).await?;
        self.end_journal(shadow)?;
        self.step()?;
        Ok(done.safety.reference)
    }

    /// Moves the branch from where it was to the merge, if there is one.
    async fn move_branch(
        &self,
        home: &Repository,
        shadow: &ShadowRepository,
        begun: &MergeJournal,
    ) -> Result<(), MergeError> {
        let (Some(commit), Some(branch)) = (&begun.commit, &begun.branch) else { return Ok(()) };
        let moved_on = || MergeError::MovedOn { branch: branch.clone() };
        let at = self.find_one(shadow, branch).await?;
        if home.branch().as_ref() != Some(branch) || at.as_ref() != Some(&begun.head) {
            return Err(moved_on());
        }
        let planned = SystemTime::UNIX_EPOCH + Duration::from_millis(begun.began_ms);
        let unlock = || {
            if is_branch_lock_since(&home.common, branch, planned, commit) {
                remove_lock_of(&home.common, branch);
            }
        };
        unlock();
        let update = self.plain(shadow, "update-ref").words([branch, commit, &begun.head]).durable(true);
        let said = update.said().await?;
        if said.was_killed() {
            unlock();
            return Err(GitError::Git { command: "git update-ref".into(), said: said.complaint }.into());
        }
        if said.code == Some(0) {
            return Ok(());
        }
        match self.find_one(shadow, branch).await? {
            // Somebody holds its lock: nothing is known of what they want.
            Some(at) if at == begun.head => Err(GitError::Busy(home.top.clone()).into()),
            _ => Err(moved_on()),
        }
    }
}

/// Takes git's own lock of the index, with the new index in it.
fn lock_index(home: &Repository, index: &[u8]) -> Result<(), GitError> {
    unlock_index(home)?;
    let (new, lock) = (home.git_dir.join(NEW_INDEX), home.git_dir.join(LOCK));
    let mode = fs::metadata(home.git_dir.join("index")).map_or(0o644, |about| about.mode() & 0o777);
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
        file.write_all(index)?;
        file.sync_all()
    };
    write().map_err(GitError::disk(&new))?;
    match fs::hard_link(&new, &lock) {
        Ok(()) => Ok(()),
        Err(why) => {
            let _ = fs::remove_file(&new);
            match why.kind() {
                // Their own git is at it.
                io::ErrorKind::AlreadyExists => Err(GitError::Busy(home.top.clone())),
                _ => Err(GitError::disk(&lock)(why)),
            }
        }
    }
}

/// True if the lock is a second name of our own new index.
fn is_lock_ours(home: &Repository) -> bool {
    let number = |name: &str| fs::symlink_metadata(home.git_dir.join(name)).ok().map(|about| about.ino());
    number(LOCK).is_some() && number(LOCK) == number(NEW_INDEX)
}

/// Lets go of the lock, if it is ours.
pub(super) fn unlock_index(home: &Repository) -> Result<(), GitError> {
    if is_lock_ours(home) {
        let lock = home.git_dir.join(LOCK);
        fs::remove_file(&lock).map_err(GitError::disk(&lock))?;
    }
    let _ = fs::remove_file(home.git_dir.join(NEW_INDEX));
    Ok(())
}

/// The new index takes the place of git's own. Asked again it is there already.
fn finish_index(home: &Repository) -> Result<(), GitError> {
    if is_lock_ours(home) {
        // Of two names of one file neither would go by a move: git's own goes first, the other one is that of the new index.
        let (new, lock, index) =
            (home.git_dir.join(NEW_INDEX), home.git_dir.join(LOCK), home.git_dir.join("index"));
        fs::rename(&lock, &index).map_err(GitError::disk(&index))?;
        fs::remove_file(&new).map_err(GitError::disk(&new))?;
        return File::open(&home.git_dir)
            .and_then(|git_dir| git_dir.sync_all())
            .map_err(GitError::disk(&index));
    }
    let _ = fs::remove_file(home.git_dir.join(NEW_INDEX));
    Ok(())
}

/// Writes the move into git's own lists, as a merge does, and where the branch was into `ORIG_HEAD`. Once.
fn note_move(
    home: &Repository,
    begun: &MergeJournal,
    branch: &str,
    commit: &str,
    identity: Option<&(String, String)>,
) -> Result<(), GitError> {
    let (name, email) = match identity {
        Some((name, email)) => (name.as_str(), email.as_str()),
        None => ("Homing", "homing@localhost"),
    };
    let seconds = begun.began_ms / 1_000;
    let line = format!(
        "{} {commit} {name} <{email}> {seconds} +0000\tmerge {}: by Homing\n",
        begun.head, begun.name
    );
    for path in [home.git_dir.join("logs/HEAD"), home.common.join("logs").join(branch)] {
        append_once(&path, &line).map_err(GitError::disk(&path))?;
    }
    write_whole(&home.git_dir.join("ORIG_HEAD"), format!("{}\n", begun.head).as_bytes())
}

/// A list that is not there is not kept.
fn append_once(path: &Path, line: &str) -> io::Result<()> {
    let Ok(mut file) = open_plain(path) else { return Ok(()) };
    let size = file.metadata()?.len();
    io::Seek::seek(&mut file, io::SeekFrom::Start(size.saturating_sub(LOG_END_BYTES)))?;
    let mut end = Vec::new();
    file.take(LOG_END_BYTES).read_to_end(&mut end)?;
    if end.ends_with(line.as_bytes()) {
        return Ok(());
    }
    // Somebody was killed in the midst of the line: it begins anew.
    let begins = if end.is_empty() || end.ends_with(b"\n") { "" } else { "\n" };
    OpenOptions::new().append(true).open(path)?.write_all(format!("{begins}{line}").as_bytes())
}

//! The difference between two snapshots, or between a worktree as it is now and what it was made from. Only trees are compared, so
//! the cost is that of what changed. Of all files together the patch is cut; that of one file is told whole, piece by piece.

use std::collections::BTreeMap;
use std::path::PathBuf;

use engine::PatchPlace;

use super::Git;
use super::again::Damage;
use super::error::GitError;
use super::names::{WorktreeName, is_object_id};
use super::record::RecordState;
use super::repository::Repository;
use super::run::GitCall;
use super::shadow::ShadowRepository;
use super::snapshot::{Snapshot, path_of};

/// Files that are told one by one; of the others only how many.
const FILES_MAX: usize = 10_000;
/// Renames are looked for among so many; each pair of files is compared.
const RENAMES: &str = "-l500";

/// The changes of a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    pub files: Vec<FileChange>,
    /// Changed files beyond those.
    pub more_files: usize,
    /// For people: what is not UTF-8 is shown as such.
    pub patch: String,
    pub is_patch_cut: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// From the root of the working tree. Need not be UTF-8.
    pub path: PathBuf,
    pub kind: ChangeKind,
    /// Lines; zero for what is not text.
    pub plus: u64,
    pub minus: u64,
    pub binary: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Edited,
    Removed,
    Renamed { from: PathBuf },
}

/// A piece of the patch of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    pub file: FileChange,
    /// For people: what is not UTF-8 is shown as such.
    pub patch: String,
    /// The byte of the patch at which the next piece begins, if there is one.
    pub next: Option<u64>,
}

/// Everything that was done in a worktree, committed or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangesSinceBase {
    /// The commit that it was made from.
    pub base: String,
    pub changes: Changes,
    /// Sentences about what was not looked at.
    pub unseen: Vec<String>,
}

/// Two trees that are compared.
struct TreePair {
    shadow: ShadowRepository,
    before: String,
    after: String,
}

/// One path in a comparison of two trees, without renames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathChange {
    pub(super) before: TreeEntry,
    pub(super) after: TreeEntry,
}

/// The entry of a tree at a path: mode and id. Mode `000000` is nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TreeEntry {
    pub(super) mode: String,
    pub(super) id: String,
}

impl TreeEntry {
    pub(super) fn is_there(&self) -> bool {
        self.mode != "000000"
    }

    pub(super) fn is_submodule(&self) -> bool {
        self.mode == "160000"
    }
}

impl Git {
    /// The changes from one snapshot to another of the same repository.
    pub async fn diff(&self, from: &Snapshot, to: &Snapshot) -> Result<Changes, GitError> {
        self.compared(&self.pair_of(from, to)?).await
    }

    /// A piece of the patch of one file between two snapshots; none if that file has not changed.
    pub async fn diff_file(
        &self,
        from: &Snapshot,
        to: &Snapshot,
        place: &PatchPlace,
    ) -> Result<Option<FilePatch>, GitError> {
        self.compared_file(&self.pair_of(from, to)?, place).await
    }

    /// Everything that was done in a worktree of ours since it was made.
    pub async fn diff_since_base(&self, name: &WorktreeName) -> Result<ChangesSinceBase, GitError> {
        let (pair, unseen) = self.pair_since_base(name).await?;
        let changes = self.compared(&pair).await?;
        Ok(ChangesSinceBase { base: pair.before, changes, unseen })
    }

    /// A piece of that of one file; none if that file has not changed.
    pub async fn diff_file_since_base(
        &self,
        name: &WorktreeName,
        place: &PatchPlace,
    ) -> Result<Option<FilePatch>, GitError> {
        let (pair, _) = self.pair_since_base(name).await?;
        self.compared_file(&pair, place).await
    }

    fn pair_of(&self, from: &Snapshot, to: &Snapshot) -> Result<TreePair, GitError> {
        check_trees(from, to)?;
        let shadow = self.shadow(&Repository::at_common(&from.repository)?)?;
        Ok(TreePair { shadow, before: from.tree.clone(), after: to.tree.clone() })
    }

    /// The commit that a worktree was made from, and its files as they are now; and sentences about what was not looked at.
    async fn pair_since_base(&self, name: &WorktreeName) -> Result<(TreePair, Vec<String>), GitError> {
        let none = || GitError::NoSuchWorktree(name.clone());
        let record = self.record(name)?.ok_or_else(none)?;
        self.check_place(name, &record)?;
        let root = self.worktree(name);
        let _held = self.hold(&root, &record.common).await?;
        let record = self.record(name)?.ok_or_else(none)?;
        if record.state != RecordState::Made || self.damage(name, &record) != Damage::None {
            return Err(none());
        }
        let made = Repository::must_be_around(&root)?;
        let is_its_own = made.top == root && made.common == record.common && made.git_dir == record.admin();
        if !is_its_own || !is_object_id(&record.base_commit) {
            return Err(GitError::InTheWay(root.join(".git")));
        }
        let shadow = self.shadow_held(&made)?;
        let seen = self.trees(&made, &shadow, false).await?;
        let large = self.bounds.untracked_bytes_max;
        let unseen = seen.unseen.iter().map(|part| part.words(large)).collect();
        Ok((TreePair { shadow, before: record.base_commit, after: seen.tree }, unseen))
    }

    fn comparison(&self, pair: &TreePair) -> GitCall {
        let call = self.raw(&pair.shadow, "diff-tree");
        let call = call.words(["-r", "-M", RENAMES, "--no-ext-diff", "--no-textconv"]);
        call.words(["--no-color", "--full-index", "--ignore-submodules=none", "--submodule=short"])
    }

    fn numbers(&self, pair: &TreePair) -> GitCall {
        self.comparison(pair).words(["-z", "--raw", "--numstat", &pair.before, &pair.after, "--"])
    }

    fn patch(&self, pair: &TreePair) -> GitCall {
        let call = self.comparison(pair).words(["--patch", "--src-prefix=a/", "--dst-prefix=b/"]);
        call.words([&pair.before, &pair.after, "--"])
    }

    async fn compared(&self, pair: &TreePair) -> Result<Changes, GitError> {
        if pair.before == pair.after {
            return Ok(Changes::default());
        }
        let patch = self.patch(pair).cut_at(self.bounds.patch_bytes_max);
        let (numbers, patch) = tokio::try_join!(self.numbers(pair).out(), patch.said())?;
        let mut files = read(&numbers);
        let more_files = files.len().saturating_sub(FILES_MAX);
        files.truncate(FILES_MAX);
        Ok(Changes {
            files,
            more_files,
            patch: whole_lines(patch.out, patch.is_cut),
            is_patch_cut: patch.is_cut,
        })
    }

    /// A name that is no text stands for what it looks like.
    async fn compared_file(
        &self,
        pair: &TreePair,
        place: &PatchPlace,
    ) -> Result<Option<FilePatch>, GitError> {
        let files = read(&self.numbers(pair).out().await?);
        let Some(file) = files.into_iter().find(|file| file.path.to_string_lossy() == place.path) else {
            return Ok(None);
        };
        let mut call = self.patch(pair).word(&file.path);
        if let ChangeKind::Renamed { from } = &file.kind {
            call = call.word(from);
        }
        let said = call.skip(place.byte).cut_at(self.bounds.file_patch_bytes_max).said().await?;
        if said.code != Some(0) && !said.is_cut {
            return Err(GitError::Git { command: "git diff-tree".to_owned(), said: said.complaint });
        }
        let (patch, bytes) = piece(said.out, said.is_cut);
        let next = said.is_cut.then_some(place.byte + bytes);
        Ok(Some(FilePatch { file, patch, next }))
    }

    /// Each path at which two trees differ.
    pub(super) async fn steps(
        &self,
        shadow: &ShadowRepository,
        before: &str,
        after: &str,
    ) -> Result<BTreeMap<Vec<u8>, PathChange>, GitError> {
        let call = self.raw(shadow, "diff-tree").words(["-r", "-z", "--raw", "--no-renames", "--no-abbrev"]);
        let out = call.words(["--ignore-submodules=none", before, after, "--"]).out().await?;
        let mut steps = BTreeMap::new();
        let mut parts = out.split(|byte| *byte == 0);
        while let (Some(about), Some(path)) = (parts.next(), parts.next()) {
            let about = String::from_utf8_lossy(about);
            let words: Vec<&str> = about.trim_start_matches(':').split(' ').collect();
            if let [mode_before, mode_after, id_before, id_after, _] = words[..] {
                let entry = |mode: &str, id: &str| TreeEntry { mode: mode.to_owned(), id: id.to_owned() };
                let step =
                    PathChange { before: entry(mode_before, id_before), after: entry(mode_after, id_after) };
                steps.insert(path.to_vec(), step);
            }
        }
        Ok(steps)
    }
}

/// Snapshots come back from storage: what is handed to git is checked again.
pub(super) fn check_trees(from: &Snapshot, to: &Snapshot) -> Result<(), GitError> {
    for snapshot in [from, to] {
        if !is_object_id(&snapshot.tree) || snapshot.repository != from.repository {
            return Err(GitError::NoSuchSnapshot(snapshot.reference.clone()));
        }
    }
    Ok(())
}

/// Reads `--raw --numstat -z`: first a record for each file with its kind, then one with its lines.
fn read(out: &[u8]) -> Vec<FileChange> {
    let mut files = Vec::new();
    let mut lines = BTreeMap::new();
    let mut parts = out.split(|byte| *byte == 0);
    while let Some(part) = parts.next() {
        if part.first() == Some(&b':') {
            let Some(path) = parts.next() else { break };
            let letter = part.rsplit(|byte| *byte == b' ').next().and_then(|word| word.first());
            let (path, kind) = match letter {
                Some(b'A') => (path, ChangeKind::Added),
                Some(b'D') => (path, ChangeKind::Removed),
                Some(b'R' | b'C') => {
                    let Some(to) = parts.next() else { break };
                    (to, ChangeKind::Renamed { from: path_of(path) })
                }
                _ => (path, ChangeKind::Edited),
            };
            files.push(FileChange { path: path_of(path), kind, plus: 0, minus: 0, binary: false });
            continue;
        }
        let mut words = part.splitn(3, |byte| *byte == b'\t');
        let (Some(plus), Some(minus), Some(path)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        // A renamed file has two paths, after an empty one.
        let path = if path.is_empty() { parts.nth(1).unwrap_or_default() } else { path };
        lines.insert(path_of(path), (number(plus), number(minus)));
    }
    for file in &mut files {
        match lines.get(&file.path) {
            Some((Some(plus), Some(minus))) => (file.plus, file.minus) = (*plus, *minus),
            Some(_) => file.binary = true,
            None => {}
        }
    }
    files
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A piece ends with its last whole line; one that is longer than a piece is cut between two letters. Answers how much of it that is.
fn piece(mut patch: Vec<u8>, is_cut: bool) -> (String, u64) {
    if is_cut {
        let line = patch.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
        // A letter has four bytes at most, and those after its first are told by their first two bits.
        let letter = (patch.len().saturating_sub(4)..patch.len()).rev().find(|at| patch[*at] & 0xc0 != 0x80);
        patch.truncate(line.or(letter.filter(|at| *at > 0)).unwrap_or(patch.len()));
    }
    (String::from_utf8_lossy(&patch).into_owned(), patch.len() as u64)
}

/// A cut patch ends with its last whole line.
fn whole_lines(mut patch: Vec<u8>, is_cut: bool) -> String {
    if is_cut {
        let end = patch.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        patch.truncate(end);
    }
    String::from_utf8_lossy(&patch).into_owned()
}

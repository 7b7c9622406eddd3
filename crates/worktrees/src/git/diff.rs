//! The difference between two snapshots. Only trees are compared, so the cost is that of what changed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::Git;
use super::error::GitError;
use super::names::is_object_id;
use super::repository::Repository;
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
        check_trees(from, to)?;
        if from.tree == to.tree {
            return Ok(Changes::default());
        }
        let shadow = self.shadow(&Repository::at_common(&from.repository)?)?;
        let compare = || {
            let call =
                self.raw(&shadow, "diff-tree").words(["-r", "-M", RENAMES, "--no-ext-diff", "--no-textconv"]);
            call.words(["--no-color", "--full-index", "--ignore-submodules=none", "--submodule=short"])
        };
        let numbers = compare().words(["-z", "--raw", "--numstat", &from.tree, &to.tree, "--"]);
        let prefixes = ["--patch", "--src-prefix=a/", "--dst-prefix=b/"];
        let patch =
            compare().words(prefixes).words([&from.tree, &to.tree, "--"]).cut_at(self.bounds.patch_bytes_max);
        let (numbers, patch) = tokio::try_join!(numbers.out(), patch.said())?;
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

/// A cut patch ends with its last whole line.
fn whole_lines(mut patch: Vec<u8>, is_cut: bool) -> String {
    if is_cut {
        let end = patch.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        patch.truncate(end);
    }
    String::from_utf8_lossy(&patch).into_owned()
}

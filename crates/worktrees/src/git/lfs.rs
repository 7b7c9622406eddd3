//! Files that git LFS keeps elsewhere. No filter is ever run here, so in a worktree of ours they are pointers: that is said, with
//! their names and what to do about it.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::directory_handle::DirectoryHandle;
use super::error::GitError;
use super::repository::{Repository, bytes_path};
use super::{Git, blocking};

/// The beginning of a pointer, and its longest form.
const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1\n";
const POINTER_BYTES_MAX: u64 = 1_024;
/// The words by which attributes name the filter, and the part of a file of attributes that is looked at.
const FILTER: &str = "filter=lfs";
const ATTRIBUTES: &[u8] = b".gitattributes";
const ATTRIBUTES_BYTES_MAX: u64 = 1024 * 1024;
/// Pointers that are named; the others are counted.
const NAMED_MAX: usize = 5;

impl Git {
    /// The words about pointers among the files of a worktree; none if its attributes name no LFS, if there are none, or if
    /// nobody can tell: the worktree is there all the same.
    pub(super) async fn pointer_words(&self, root: &Path) -> Option<String> {
        let made = Repository::must_be_around(root).ok()?;
        let (shadow, index) = (self.shadow(&made).ok()?, made.git_dir.join("index"));
        let out = self.plain(&shadow, "ls-files").words(["-z"]).index(&index).out().await.ok()?;
        let pointers = blocking(move || pointers(&made.top, &out)).await.ok()?;
        if pointers.is_empty() {
            return None;
        }
        let named: Vec<_> = pointers.iter().take(NAMED_MAX).map(|path| path.display().to_string()).collect();
        let more = match pointers.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!(
            "Git LFS keeps these elsewhere, and here they are only pointers: {}{more}; `git lfs pull` in the worktree fetches them",
            named.join(", ")
        ))
    }
}

fn pointers(top: &Path, out: &[u8]) -> Result<Vec<PathBuf>, GitError> {
    let inside = DirectoryHandle::open(top).map_err(GitError::disk(top))?;
    let paths = || out.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    let names_it = |path: &[u8]| {
        let is_attributes = path.rsplit(|byte| *byte == b'/').next() == Some(ATTRIBUTES);
        let text = || beginning(&inside, &bytes_path(path), ATTRIBUTES_BYTES_MAX, u64::MAX);
        is_attributes && text().is_some_and(|text| String::from_utf8_lossy(&text).contains(FILTER))
    };
    if !paths().any(names_it) {
        return Ok(Vec::new());
    }
    let is_pointer = |path: &PathBuf| {
        let start = beginning(&inside, path, POINTER.len() as u64, POINTER_BYTES_MAX);
        start.is_some_and(|start| start == POINTER)
    };
    Ok(paths().map(bytes_path).filter(is_pointer).collect())
}

/// The first bytes of a file that is not longer than `bytes_max`.
fn beginning(inside: &DirectoryHandle, path: &Path, bytes: u64, bytes_max: u64) -> Option<Vec<u8>> {
    let (parent, name) = inside.parent(path).ok()?;
    let file = parent.read(name).ok()?;
    if file.metadata().ok()?.len() > bytes_max {
        return None;
    }
    let mut text = Vec::new();
    file.take(bytes).read_to_end(&mut text).ok()?;
    Some(text)
}

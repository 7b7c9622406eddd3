//! `.worktreeinclude`: files that git does not track and a new worktree needs all the same, such as `.env`.
//!
//! Its lines are patterns as in `.gitignore`, and git matches them: so they cannot name anything outside, whatever they
//! say. Links are copied as links. What stands in the worktree already is left alone.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use engine::WorkPhase;

use super::directory_handle::{DirectoryHandle, EntryKind};
use super::error::GitError;
use super::repository::{Repository, open_plain};
use super::shadow::{copy_whole_index, key};
use super::snapshot::path_of;
use super::stuck::while_it_works;
use super::{Git, blocking};

const INCLUDE: &str = ".worktreeinclude";
/// A longer list was not written by people.
const INCLUDE_BYTES_MAX: u64 = 64 * 1024;

impl Git {
    /// Copies what `.worktreeinclude` in the root of `home` names.
    pub(super) async fn include(&self, home: &Path, to: &Repository) -> Result<(), GitError> {
        let list = home.join(INCLUDE);
        if !fs::symlink_metadata(&list).is_ok_and(|about| about.is_file()) {
            return Ok(());
        }
        let Some(from) = Repository::around(home)?.filter(|from| from.top == *home) else { return Ok(()) };
        let shadow = self.shadow(&from)?;
        let patterns = shadow.plain.join("include");
        let mut bytes = Vec::new();
        let mut file = io::Read::take(open_plain(&list).map_err(GitError::disk(&list))?, INCLUDE_BYTES_MAX);
        io::Read::read_to_end(&mut file, &mut bytes).map_err(GitError::disk(&list))?;
        fs::write(&patterns, bytes).map_err(GitError::disk(&patterns))?;
        let (index, real) = (shadow.plain.join("index.include"), from.git_dir.join("index"));
        let _ = fs::remove_file(&index);
        if real.is_file() {
            copy_whole_index(&from, &shadow, &index)?;
        }
        let mut exclude_from = OsString::from("--exclude-from=");
        exclude_from.push(&patterns);
        let list = self.plain(&shadow, "ls-files").words(["-z", "-o", "-i"]).word(exclude_from);
        let out = list.work_tree(&from.top).index(&index).out().await?;
        let paths = out.split(|byte| *byte == 0).filter(|path| !path.is_empty() && !path.ends_with(b"/"));
        let paths: Vec<PathBuf> = paths.map(path_of).collect();
        self.phase(WorkPhase::Copying);
        let (from, to, bytes_max) = (from.top, to.top.clone(), self.bounds.include_bytes_max);
        let copy = blocking(move || copy_all(&from, &to, paths, bytes_max));
        while_it_works(copy, &self.runner.progress).await
    }
}

fn copy_all(from: &Path, to: &Path, paths: Vec<PathBuf>, bytes_max: u64) -> Result<(), GitError> {
    let mut sizes: Vec<(u64, PathBuf)> = paths
        .into_iter()
        .filter_map(|path| Some((fs::symlink_metadata(from.join(&path)).ok()?.size(), path)))
        .collect();
    let bytes = sizes.iter().map(|(size, _)| size).sum();
    if bytes > bytes_max {
        sizes.sort_by(|one, other| other.cmp(one));
        let largest = sizes.into_iter().take(20).map(|(_, path)| path).collect();
        return Err(GitError::TooLarge { what: "what .worktreeinclude names", bytes, bytes_max, largest });
    }
    let source = DirectoryHandle::open(from).map_err(GitError::disk(from))?;
    let target = DirectoryHandle::open(to).map_err(GitError::disk(to))?;
    for (_, path) in sizes {
        copy_one(&source, &target, &path).map_err(GitError::disk(&to.join(&path)))?;
    }
    Ok(())
}

/// Whole or not at all: a copy gets its name when it is done.
fn copy_one(source: &DirectoryHandle, target: &DirectoryHandle, path: &Path) -> io::Result<()> {
    let (from, name) = source.parent(path)?;
    let to = match target.make_parent(path) {
        Ok((to, _)) => to,
        // The base has a link or a file where a directory would be: that is left alone, too.
        Err(why) if why.kind() == io::ErrorKind::NotADirectory => return Ok(()),
        Err(why) => return Err(why),
    };
    if to.stands(name)? != EntryKind::Nothing {
        return Ok(());
    }
    match from.stands(name)? {
        EntryKind::Link => to.link(name, &from.read_link(name)?),
        EntryKind::File => {
            let mut file = from.read(name)?;
            let mode = file.metadata()?.permissions().mode() & 0o7777;
            let unfinished = OsString::from(format!(".homing-copy-{}", key(path)));
            // Left by somebody who was killed.
            to.remove_file(&unfinished)?;
            let mut copy = to.make(&unfinished, 0o600)?;
            // Copies share their blocks where the file system can do that.
            let copied = io::copy(&mut file, &mut copy)
                .and_then(|_| copy.set_permissions(fs::Permissions::from_mode(mode)))
                .and_then(|()| to.rename(&unfinished, name));
            if copied.is_err() {
                to.remove_file(&unfinished)?;
            }
            copied
        }
        // Gone meanwhile, or nothing that can be copied.
        _ => Ok(()),
    }
}

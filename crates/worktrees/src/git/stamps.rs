//! Stamps: the look of everything in a worktree from outside, to see whether somebody writes to it while it is removed.
//!
//! Git is not asked: it does not look at what it ignores, nor into the repositories within. Every entry has a stamp (kind,
//! mode, size, times, number), below the worktree's root and below git's own directory for it. The list is a file, so that
//! a removal which was cut short goes on with it.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::GitError;
use super::repository::bytes_path;
use super::shadow::write_whole;
use super::snapshot::split_at_byte;

/// The beginning of a path below git's own directory for the worktree, and one below its root.
const ADMIN: &[u8] = b"a/";
const WORKTREE: &[u8] = b"w/";

/// Every path with its stamp.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FileStamps(BTreeMap<Vec<u8>, String>);

impl FileStamps {
    /// As everything is now. What cannot be looked at has none: it was never there, or is just going.
    pub(super) fn take(root: &Path, admin: &Path) -> Self {
        let mut stamps = Self::default();
        stamps.walk(root, WORKTREE);
        stamps.walk(admin, ADMIN);
        stamps
    }

    fn walk(&mut self, root: &Path, below: &[u8]) {
        let mut left = vec![PathBuf::new()];
        while let Some(at) = left.pop() {
            for entry in fs::read_dir(root.join(&at)).into_iter().flatten().flatten() {
                let Ok(about) = entry.metadata() else { continue };
                let path = at.join(entry.file_name());
                self.0.insert([below, path.as_os_str().as_bytes()].concat(), stamp(&about));
                if about.is_dir() {
                    left.push(path);
                }
            }
        }
    }

    /// The paths that are new, gone or not as they were. Those of git's own are named by their place in it.
    pub(super) fn differing(&self, now: &Self) -> Vec<PathBuf> {
        let gone = self.0.keys().filter(|path| !now.0.contains_key(*path));
        let other = now.0.iter().filter(|(path, stamp)| self.0.get(*path) != Some(stamp));
        let mut paths: Vec<PathBuf> =
            gone.chain(other.map(|(path, _)| path)).map(|path| named(path)).collect();
        paths.sort();
        paths
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), GitError> {
        let line = |(path, stamp): (&Vec<u8>, &String)| [stamp.as_bytes(), b"\t", path, b"\0"].concat();
        write_whole(path, &self.0.iter().flat_map(line).collect::<Vec<u8>>())
    }

    /// None: there is no such list.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, GitError> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(why) => return Err(GitError::disk(path)(why)),
        };
        let lines = bytes.split(|byte| *byte == 0).filter(|line| !line.is_empty());
        let pairs = lines.map(|line| split_at_byte(line, b'\t'));
        Ok(Some(Self(
            pairs.map(|(stamp, path)| (path.to_vec(), String::from_utf8_lossy(stamp).into_owned())).collect(),
        )))
    }
}

/// The times of a directory say nothing that its entries do not say, and moving it changes them.
fn stamp(about: &Metadata) -> String {
    if about.is_dir() {
        return format!("{:o}", about.mode());
    }
    let changed = [about.mtime(), about.mtime_nsec(), about.ctime(), about.ctime_nsec()];
    format!("{:o} {} {} {changed:?}", about.mode(), about.size(), about.ino())
}

fn named(path: &[u8]) -> PathBuf {
    match path.strip_prefix(WORKTREE) {
        Some(path) => bytes_path(path),
        None => Path::new(".git").join(bytes_path(path.strip_prefix(ADMIN).unwrap_or(path))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_gone_or_written_to_differs_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let (root, admin) = (place.path().join("root"), place.path().join("admin"));
        fs::create_dir_all(root.join("deep/empty")).unwrap();
        fs::create_dir(&admin).unwrap();
        for name in ["root/deep/odd\t\n", "root/gone", "root/same", "admin/HEAD"] {
            fs::write(place.path().join(name), name).unwrap();
        }
        let list = place.path().join("list");
        assert_eq!(FileStamps::read(&list).unwrap(), None);
        FileStamps::take(&root, &admin).write(&list).unwrap();
        let before = FileStamps::read(&list).unwrap().unwrap();
        assert_eq!(before, FileStamps::take(&root, &admin));
        fs::rename(&root, place.path().join("moved")).unwrap();
        let root = place.path().join("moved");
        assert!(before.differing(&FileStamps::take(&root, &admin)).is_empty(), "moving it changes nothing");

        fs::write(root.join("deep/odd\t\n"), "longer than before").unwrap();
        fs::remove_file(root.join("gone")).unwrap();
        fs::create_dir(root.join("new")).unwrap();
        fs::write(admin.join("HEAD"), "elsewhere, and longer").unwrap();
        let differing = before.differing(&FileStamps::take(&root, &admin));
        assert_eq!(differing, [".git/HEAD", "deep/odd\t\n", "gone", "new"].map(PathBuf::from));
    }
}

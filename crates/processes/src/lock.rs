//! The lock of one attempt: a file named after its tree, held by its supervisor or by whoever ends what is left.
//!
//! The file is removed by its last holder, while it still holds it. So after taking the lock one looks whether the name
//! still leads to the file one has locked; if not, somebody else was quicker and one begins again.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use kernel::TreeName;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// The times the name may lead elsewhere before we give up; each time somebody else made progress.
const RACES_MAX: u32 = 100;
/// The longest record in a lock file; more than that was not written by us.
const HOLDER_BYTES_MAX: u64 = 64 * 1024;
/// The most processes of a tree that are written down. A tree with more is found by its other marks.
const SEEN_MAX: usize = 1_000;

/// The holder of a lock, as it wrote itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LockHolder {
    pub(crate) pid: i32,
    /// The kernel's start time of that process: together they name one process, whatever became of the number.
    pub(crate) started: u64,
    /// The control group of its tree, if it made one.
    pub(crate) group: Option<PathBuf>,
    /// The processes of its tree, as it last saw them: number and start time. For whoever comes after its sudden death.
    #[serde(default)]
    pub(crate) seen: Vec<(i32, u64)>,
}

/// A lock we hold. Dropping it frees it and leaves the file.
#[derive(Debug)]
pub(crate) struct TreeLock {
    file: File,
    path: PathBuf,
}

impl TreeLock {
    /// Where the lock of a tree is.
    pub(crate) fn path(locks: &Path, tree: &TreeName) -> PathBuf {
        locks.join(format!("{tree}.lock"))
    }

    /// Takes it if nobody holds it.
    pub(crate) fn try_take(path: &Path) -> io::Result<Option<Self>> {
        for _ in 0..RACES_MAX {
            // Files opened by std are closed in children, so no agent can hold it in our place.
            let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(why) => return Err(why.into()),
            }
            if leads_to(path, &file)? {
                return Ok(Some(Self { file, path: path.to_path_buf() }));
            }
        }
        Err(io::Error::other("the lock file is replaced again and again"))
    }

    /// The process that wrote itself into it last, whether or not it still holds it.
    pub(crate) fn holder(&mut self) -> Option<LockHolder> {
        self.file.rewind().ok()?;
        read_holder(&self.file)
    }

    /// The holder, asked from outside.
    pub(crate) fn holder_at(path: &Path) -> Option<LockHolder> {
        read_holder(&File::open(path).ok()?)
    }

    /// Writes itself into it. One write, then what is left of a longer record goes: whenever we are killed, the file begins
    /// with a whole record.
    pub(crate) fn sign(&mut self, holder: &mut LockHolder) -> io::Result<()> {
        holder.seen.truncate(SEEN_MAX);
        let text = serde_json::to_vec(holder)?;
        self.file.rewind()?;
        self.file.write_all(&text)?;
        self.file.set_len(text.len() as u64)
    }

    /// Removes the file, then frees the lock, in this order: nobody can hold a lock that has no name.
    pub(crate) fn remove(self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }
}

fn leads_to(path: &Path, file: &File) -> io::Result<bool> {
    let held = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (held.dev(), held.ino())),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(why) => Err(why),
    }
}

fn read_holder(file: &File) -> Option<LockHolder> {
    let mut text = Vec::new();
    file.take(HOLDER_BYTES_MAX).read_to_end(&mut text).ok()?;
    // What comes after the first record belongs to an older one that was longer.
    serde_json::Deserializer::from_slice(&text).into_iter().next()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holder_at_a_time_and_no_file_left() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("a.lock");
        let mut lock = TreeLock::try_take(&path).unwrap().unwrap();
        assert!(TreeLock::try_take(&path).unwrap().is_none());
        let mut holder = LockHolder { pid: 7, started: 9, group: Some("/x".into()), seen: vec![(1, 2)] };
        lock.sign(&mut LockHolder { group: None, seen: vec![(1, 2); 500], ..holder.clone() }).unwrap();
        lock.sign(&mut holder).unwrap();
        assert_eq!(TreeLock::holder_at(&path), Some(holder.clone()));
        drop(lock);
        let mut again = TreeLock::try_take(&path).unwrap().unwrap();
        assert_eq!(again.holder(), Some(holder));
        again.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_record_is_whole_whenever_its_writer_is_killed() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("a.lock");
        let mut holder = LockHolder { pid: 7, started: 9, group: None, seen: vec![(1, 2)] };
        TreeLock::try_take(&path).unwrap().unwrap().sign(&mut holder).unwrap();
        let mut text = std::fs::read(&path).unwrap();
        text.extend_from_slice(b"of a longer record\"}");
        std::fs::write(&path, text).unwrap();
        assert_eq!(TreeLock::holder_at(&path), Some(holder));
    }

    #[test]
    fn a_record_stays_readable_however_large_its_tree() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("a.lock");
        let seen = vec![(i32::MAX, u64::MAX); 10 * SEEN_MAX];
        let mut holder = LockHolder { pid: 7, started: 9, group: None, seen };
        TreeLock::try_take(&path).unwrap().unwrap().sign(&mut holder).unwrap();
        assert_eq!(TreeLock::holder_at(&path).unwrap().seen.len(), SEEN_MAX);
    }
}

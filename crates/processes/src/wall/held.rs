//! Things that are hidden from agents, held by descriptor from the server's start on.
//!
//! A name can be led elsewhere by whoever may rename a directory above it; a descriptor cannot. The server opens what is
//! hidden once (`HiddenPath`), the supervisor is sent exactly these descriptors (`adopt`), and the agent's process finds
//! by them what it has to cover, whatever it is called by then (`find`). Nothing here is ever read or written.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// A directory, file or socket that agents must not see.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HiddenPath {
    /// The name that somebody gave it.
    pub(crate) path: PathBuf,
    /// The thing that was there when the server started, if there was one.
    pub(crate) held: Option<HeldFile>,
}

impl HiddenPath {
    /// Holds what has this name now. If there is nothing, the name is looked up again at each start of an agent.
    pub fn of(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let held = HeldFile::open(&path).ok();
        Self { path, held }
    }

    /// Holds the directory that has this name, and makes an empty one if there is nothing, so that what is put there later is
    /// hidden from those who run by then. Where we may not make it the name is looked up again at each start.
    pub fn directory(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        if path.symlink_metadata().is_err() {
            let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
        }
        Self::of(path)
    }

    /// The one true name it has, or had when it was first seen.
    pub(crate) fn name(&self) -> PathBuf {
        match &self.held {
            Some(held) => held.name.clone(),
            None => super::true_name(&self.path),
        }
    }
}

/// A file or directory that is held open, without the right to read it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HeldFile {
    /// Its one true name when it was opened.
    pub(crate) name: PathBuf,
    descriptor: RawFd,
    device: u64,
    inode: u64,
    /// Keeps the descriptor open. Only its number travels.
    #[serde(skip)]
    open: Option<Arc<OwnedFd>>,
}

impl HeldFile {
    /// Opens what is there, links followed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::holding(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
    }

    fn holding(open: OwnedFd) -> io::Result<Self> {
        let found = rustix::fs::fstat(&open)?;
        let descriptor = open.as_raw_fd();
        let name = std::fs::read_link(through(descriptor))?;
        let (device, inode) = (found.st_dev, found.st_ino);
        Ok(Self { name, descriptor, device, inode, open: Some(Arc::new(open)) })
    }

    /// Opens what is there, if no link leads to it.
    pub(crate) fn open_strictly(path: &Path) -> io::Result<Self> {
        Self::holding(open_strictly(path)?)
    }

    /// A path that leads to it in this process, whatever was renamed.
    pub(crate) fn through(&self) -> PathBuf {
        through(self.descriptor)
    }

    /// Its one true name now.
    pub(crate) fn name_now(&self) -> io::Result<PathBuf> {
        std::fs::read_link(self.through())
    }

    /// True if it has no name any more, anywhere.
    pub(crate) fn is_gone(&self) -> bool {
        self.open.as_ref().is_some_and(|open| rustix::fs::fstat(open).is_ok_and(|found| found.st_nlink == 0))
    }

    /// True if both are the same thing, and were opened by the same name.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.name, self.device, self.inode) == (&other.name, other.device, other.inode)
    }

    /// True if that is the same file or directory.
    pub(crate) fn is(&self, other: &OwnedFd) -> bool {
        let found = rustix::fs::fstat(other);
        found.is_ok_and(|found| (found.st_dev, found.st_ino) == (self.device, self.inode))
    }

    /// The same thing as this process sees it now, in a mount namespace that the descriptor is not from, and its name.
    /// Nothing if its name led elsewhere at that moment. An error if the kernel cannot open without following links.
    pub(crate) fn find(&self) -> io::Result<Option<(PathBuf, OwnedFd)>> {
        let name = self.name_now()?;
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        match rustix::fs::openat2(CWD, &name, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Ok(found) => Ok(self.is(&found).then_some((name, found))),
            Err(why @ (Errno::NOSYS | Errno::PERM)) => Err(why.into()),
            Err(_) => Ok(None),
        }
    }
}

/// Opens what has this name, without the right to read it, if no link leads there: not the link itself either.
pub(super) fn open_strictly(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // Some containers let nobody use the newer call. What we hold then has that name, or is not meant.
        Err(Errno::NOSYS | Errno::PERM) => {
            let open = rustix::fs::open(path, flags, Mode::empty())?;
            let name = std::fs::read_link(through(open.as_raw_fd()))?;
            if name == path { Ok(open) } else { Err(Errno::LOOP.into()) }
        }
        open => Ok(open?),
    }
}

fn through(descriptor: RawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{descriptor}"))
}

/// Everything that is held open, by its number in this process, each once. The other side finds it by that number (`adopt`).
pub(crate) fn open_files<'a>(held: impl Iterator<Item = &'a HeldFile>) -> BTreeMap<RawFd, Arc<OwnedFd>> {
    held.filter_map(|held| Some((held.descriptor, held.open.clone()?))).collect()
}

/// The numbers of what is held, each once, in the order in which it is sent.
pub(crate) fn numbers<'a>(held: impl Iterator<Item = &'a HeldFile>) -> BTreeSet<RawFd> {
    held.map(|held| held.descriptor).collect()
}

/// Takes over what was sent along, by the numbers that it had where it was sent from.
pub(crate) fn adopt<'a>(
    held: impl Iterator<Item = &'a mut HeldFile>,
    sent: &BTreeMap<RawFd, Arc<OwnedFd>>,
) -> io::Result<()> {
    for held in held {
        let open = sent.get(&held.descriptor).filter(|open| held.is(open));
        let Some(open) = open.cloned() else {
            let why = format!("{} did not come along with the start", held.name.display());
            return Err(io::Error::other(why));
        };
        (held.descriptor, held.open) = (open.as_raw_fd(), Some(open));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_found_under_its_new_name_and_not_under_the_old() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let (above, moved) = (place.join("above"), place.join("moved"));
        std::fs::create_dir_all(above.join("secret")).unwrap();
        let hidden = HiddenPath::of(above.join("secret"));
        let held = hidden.held.unwrap();
        assert_eq!(held.find().unwrap().unwrap().0, above.join("secret"));
        std::fs::rename(&above, &moved).unwrap();
        std::fs::create_dir_all(above.join("secret")).unwrap();
        assert_eq!(held.find().unwrap().unwrap().0, moved.join("secret"));
        assert!(!held.is_gone());
        std::fs::remove_dir(moved.join("secret")).unwrap();
        assert!(held.is_gone() && held.find().unwrap().is_none());
    }

    #[test]
    fn a_directory_that_is_missing_is_made_for_its_owner_alone_and_held() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().canonicalize().unwrap().join("above/keys");
        let hidden = HiddenPath::directory(&path);
        assert_eq!(hidden.held.unwrap().name, path);
        let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o700);
        // What is there stays as it is, whatever it is.
        let file = place.path().join("file");
        std::fs::write(&file, "words").unwrap();
        assert!(HiddenPath::directory(&file).held.is_some() && file.is_file());
        assert!(HiddenPath::directory("/proc/nowhere").held.is_none(), "nobody can make that");
    }

    #[test]
    fn what_is_missing_is_held_by_nobody() {
        assert!(HiddenPath::of("/nowhere/at/all").held.is_none());
    }
}

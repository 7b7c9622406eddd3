//! Files below a directory, reached name by name, so that no link on the way leads anywhere else.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// A directory that was reached without following a link.
#[derive(Debug)]
pub(super) struct DirectoryHandle(OwnedFd);

/// The kind of entry at a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    Nothing,
    File,
    Link,
    Directory,
    Other,
}

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl DirectoryHandle {
    /// The directory itself is trusted: it is ours, or the person chose it.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        Ok(Self(rustix::fs::openat(CWD, root, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// The directory in which the last name of `path` stands, and that name.
    pub(super) fn parent<'a>(&self, path: &'a Path) -> io::Result<(Self, &'a OsStr)> {
        let (before, name) = split(path)?;
        Ok((self.walk(before, None)?, name))
    }

    /// The same, making the directories that are missing.
    pub(super) fn make_parent<'a>(&self, path: &'a Path) -> io::Result<(Self, &'a OsStr)> {
        let (before, name) = split(path)?;
        Ok((self.walk(before, Some(Mode::from_raw_mode(0o777)))?, name))
    }

    /// Makes a directory and those above it; one that is there is fine.
    pub(super) fn make_directory(&self, path: &Path) -> io::Result<Self> {
        self.walk(path, Some(Mode::from_raw_mode(0o777)))
    }

    fn walk(&self, path: &Path, make: Option<Mode>) -> io::Result<Self> {
        let mut at = Self(self.0.try_clone()?);
        for part in path.components() {
            let Component::Normal(name) = part else { return Err(leads_out()) };
            if let Some(mode) = make {
                match rustix::fs::mkdirat(&at.0, name, mode) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(why) => return Err(why.into()),
                }
            }
            at = Self(rustix::fs::openat(&at.0, name, DIRECTORY, Mode::empty())?);
        }
        Ok(at)
    }

    /// The directory of that name in this one.
    pub(super) fn below(&self, name: &OsStr) -> Result<Self, Errno> {
        rustix::fs::openat(&self.0, name, DIRECTORY, Mode::empty()).map(Self)
    }

    /// The look of what has that name, from outside.
    pub(super) fn stat(&self, name: &OsStr) -> Result<Stat, Errno> {
        rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// The names in it, with their kinds.
    pub(super) fn names(&self) -> Result<Dir, Errno> {
        Dir::read_from(&self.0)
    }

    pub(super) fn stands(&self, name: &OsStr) -> io::Result<EntryKind> {
        let stat = match self.stat(name) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(EntryKind::Nothing),
            Err(why) => return Err(why.into()),
        };
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => EntryKind::File,
            FileType::Symlink => EntryKind::Link,
            FileType::Directory => EntryKind::Directory,
            _ => EntryKind::Other,
        })
    }

    /// The mode of a plain file; none if it is something else, or nothing.
    pub(super) fn mode(&self, name: &OsStr) -> io::Result<Option<u32>> {
        Ok(self.mode_and_change(name)?.map(|(mode, _)| mode))
    }

    /// The mode of a plain file, and the second in which anything about it was last changed.
    pub(super) fn mode_and_change(&self, name: &OsStr) -> io::Result<Option<(u32, i64)>> {
        match self.stat(name) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                Ok(Some((stat.st_mode & 0o7777, stat.st_ctime)))
            }
            Ok(_) | Err(Errno::NOENT) => Ok(None),
            Err(why) => Err(why.into()),
        }
    }

    /// A plain file, for reading. A pipe in its place does not make us wait.
    pub(super) fn read(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File::from(rustix::fs::openat(&self.0, name, flags, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a plain file")) }
    }

    /// A new file; what stands there already is an error.
    pub(super) fn make(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&self.0, name, flags, Mode::from_raw_mode(mode))?))
    }

    pub(super) fn read_link(&self, name: &OsStr) -> io::Result<Vec<u8>> {
        Ok(rustix::fs::readlinkat(&self.0, name, Vec::new())?.into_bytes())
    }

    pub(super) fn link(&self, name: &OsStr, target: &[u8]) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(OsStr::from_bytes(target), &self.0, name)?)
    }

    pub(super) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?)
    }

    pub(super) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.0, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(why) => Err(why.into()),
        }
    }

    /// Removes a directory that nothing is in.
    pub(super) fn remove_directory(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// The mode of a file or directory at that name, which is not a link.
    pub(super) fn set_mode(&self, name: &OsStr, mode: u32) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        match rustix::fs::openat(&self.0, name, flags, Mode::empty()) {
            Ok(file) => Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?),
            // It cannot be opened by its present mode: by name, then, which follows no link here either.
            Err(Errno::ACCESS) if self.stands(name)? != EntryKind::Link => {
                Ok(rustix::fs::chmodat(&self.0, name, Mode::from_raw_mode(mode), AtFlags::empty())?)
            }
            Err(why) => Err(why.into()),
        }
    }
}

fn split(path: &Path) -> io::Result<(&Path, &OsStr)> {
    match (path.parent(), path.components().next_back()) {
        (Some(before), Some(Component::Normal(name))) => Ok((before, name)),
        _ => Err(leads_out()),
    }
}

fn leads_out() -> io::Error {
    io::Error::other("the path leads out of its directory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_link_and_no_dots_lead_out() {
        let here = tempfile::tempdir().unwrap();
        let out = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(out.path(), here.path().join("link")).unwrap();
        let inside = DirectoryHandle::open(here.path()).unwrap();
        for path in ["link/a", "../a", "a/../../b", "/etc/a"] {
            assert!(inside.make_parent(Path::new(path)).is_err(), "{path}");
        }
        let (parent, name) = inside.make_parent(Path::new("a/b/c")).unwrap();
        parent.make(name, 0o600).unwrap();
        assert!(here.path().join("a/b/c").is_file());
        assert!(inside.read(OsStr::new("link")).is_err());
        assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 0);
    }
}

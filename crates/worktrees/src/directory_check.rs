//! The check that a session can act in a directory, made where the session is made.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Why a session cannot act there. Each says what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DirectoryError {
    #[error("{0} is not an absolute path")]
    Relative(PathBuf),
    #[error("{0} does not exist")]
    Missing(PathBuf),
    #[error("{0} is not a directory")]
    NotADirectory(PathBuf),
    #[error("{0} is not text: agents' own records could not name it")]
    NotText(PathBuf),
    #[error("{path} cannot be entered: {why}")]
    Closed { path: PathBuf, why: String },
}

/// The directory's one true name: absolute, without links or dots.
pub(crate) fn check_directory(directory: &Path) -> Result<String, DirectoryError> {
    let named = || directory.to_path_buf();
    if !directory.is_absolute() {
        return Err(DirectoryError::Relative(named()));
    }
    let canonical = directory.canonicalize().map_err(|why| match why.kind() {
        io::ErrorKind::NotFound => DirectoryError::Missing(named()),
        io::ErrorKind::NotADirectory => DirectoryError::NotADirectory(named()),
        _ => DirectoryError::Closed { path: named(), why: why.to_string() },
    })?;
    if !canonical.is_dir() {
        return Err(DirectoryError::NotADirectory(named()));
    }
    // Reading it proves the search right on the way there, which agents need at the least.
    std::fs::read_dir(&canonical)
        .map_err(|why| DirectoryError::Closed { path: named(), why: why.to_string() })?;
    canonical.into_os_string().into_string().map_err(|_| DirectoryError::NotText(named()))
}

/// Why a directory under a root, which has its true name, is none; found without leaving the root. Nothing if a link leads out
/// of it, or if it is one.
pub(crate) fn why_not_beneath(root: &Path, directory: &Path) -> Option<DirectoryError> {
    let named = || directory.to_path_buf();
    let within = directory.strip_prefix(root).ok().filter(|within| !within.as_os_str().is_empty())?;
    let held = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::openat(CWD, root, held | OFlags::NOFOLLOW, Mode::empty()).ok()?;
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let found = rustix::fs::openat2(&root, within, held, Mode::empty(), beneath);
    let closed = |why: Errno| DirectoryError::Closed { path: named(), why: io::Error::from(why).to_string() };
    match found {
        Ok(found) => {
            let look = OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::openat(&found, ".", look, Mode::empty()).err().map(closed)
        }
        Err(Errno::NOENT) => Some(DirectoryError::Missing(named())),
        Err(Errno::NOTDIR) => Some(DirectoryError::NotADirectory(named())),
        Err(why @ Errno::ACCESS) => Some(closed(why)),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_outside_of_a_root_is_not_told_through_a_link() {
        let here = tempfile::tempdir().unwrap();
        let here = here.path().canonicalize().unwrap();
        let root = here.join("root");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::create_dir(here.join("outside")).unwrap();
        std::fs::write(here.join("outside/file"), "").unwrap();
        for (name, target) in
            [("a", "outside"), ("b", "outside/file"), ("c", "outside/none"), ("d", "root/none")]
        {
            std::os::unix::fs::symlink(here.join(target), root.join(name)).unwrap();
        }
        std::os::unix::fs::symlink("sub", root.join("near")).unwrap();
        for name in ["a", "b", "c", "d", "a/none", "a/file/x", "near", "sub"] {
            assert_eq!(why_not_beneath(&root, &root.join(name)), None, "{name}");
        }
        for name in ["none", "near/none"] {
            let why = why_not_beneath(&root, &root.join(name));
            assert_eq!(why, Some(DirectoryError::Missing(root.join(name))), "{name}");
        }
        std::fs::write(root.join("file"), "").unwrap();
        let why = why_not_beneath(&root, &root.join("file"));
        assert_eq!(why, Some(DirectoryError::NotADirectory(root.join("file"))));
    }

    #[test]
    fn a_directory_has_one_name() {
        let here = tempfile::tempdir().unwrap();
        let link = here.path().join("link");
        std::os::unix::fs::symlink(here.path(), &link).unwrap();
        let name = check_directory(here.path()).unwrap();
        assert_eq!(check_directory(&link).unwrap(), name);
        assert_eq!(check_directory(&link.join("./link")).unwrap(), name);
    }

    #[test]
    fn what_is_no_ground_says_why() {
        let here = tempfile::tempdir().unwrap();
        let file = here.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(matches!(check_directory(Path::new("here")), Err(DirectoryError::Relative(_))));
        assert!(matches!(check_directory(&here.path().join("nowhere")), Err(DirectoryError::Missing(_))));
        assert!(matches!(check_directory(&file), Err(DirectoryError::NotADirectory(_))));
        assert!(matches!(check_directory(&file.join("x")), Err(DirectoryError::NotADirectory(_))));
    }
}

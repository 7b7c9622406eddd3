//! The check that a session can act in a directory, made where the session is made.

use std::io;
use std::path::{Path, PathBuf};

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

#[cfg(test)]
mod tests {
    use super::*;

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

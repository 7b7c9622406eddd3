//! The path of a program that is named as in a shell.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The directories in which programs are looked for if nobody says where.
pub const PATH_FALLBACK: &str = "/usr/local/bin:/usr/bin:/bin";

/// The program as a path, if it is there and may be started: at the path that is named, or in the first directory that has it.
pub fn find_program(named: &Path, search_path: &OsStr) -> Option<PathBuf> {
    if named.components().count() > 1 {
        return Some(named.to_path_buf()).filter(|path| is_program(path));
    }
    std::env::split_paths(search_path).map(|directory| directory.join(named)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| about.is_file() && about.mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_what_is_named_or_the_first_of_its_name() {
        let search = OsStr::new("/nowhere:/usr/bin:/bin");
        let found = find_program(Path::new("sh"), search).unwrap();
        assert!(["/usr/bin/sh", "/bin/sh"].map(PathBuf::from).contains(&found), "{found:?}");
        assert_eq!(find_program(&found, OsStr::new("")), Some(found.clone()));
        for other in ["no-such-program-of-anybody", "/etc/passwd", "/usr/bin/"] {
            assert_eq!(find_program(Path::new(other), search), None, "{other}");
        }
    }
}

//! The check that a session's directory still is the one that somebody was allowed to choose.
//!
//! It had one true name then. Agents can put a link in its place, or in the place of one above it, and we can follow links to
//! where they cannot. So everything of ours that touches a session's directory asks here first, and uses the name it is given.

use std::io;
use std::path::{Component, Path, PathBuf};

use engine::NoGround;

/// Where sessions may stand on this machine.
#[derive(Debug, Clone)]
pub(crate) struct SessionDirectories {
    /// The data directory as we were told of it.
    data: PathBuf,
    /// Its true name.
    data_true: PathBuf,
}

impl SessionDirectories {
    /// Around a data directory, which is there.
    pub(crate) fn of(data: &Path) -> Self {
        let data_true = data.canonicalize().unwrap_or_else(|_| data.to_path_buf());
        Self { data: data.to_path_buf(), data_true }
    }

    /// Where sessions have directories of their own.
    pub(crate) fn work(&self) -> PathBuf {
        self.data.join("work")
    }

    /// Its true name.
    pub(crate) fn work_true(&self) -> PathBuf {
        self.data_true.join("work")
    }

    /// True if it is in the data directory, of which agents see only what is theirs.
    pub(crate) fn is_ours(&self, true_name: &Path) -> bool {
        true_name.starts_with(&self.data_true)
    }

    /// A session's own directory is made when it is first needed.
    pub(crate) fn is_own(&self, directory: &Path) -> bool {
        directory.parent() == Some(&self.work())
    }

    /// Holds the directory to its name. What is given back is where to work, and can be asked again afterwards.
    pub(crate) fn hold(&self, directory: &str) -> Result<HeldDirectory<'_>, NoGround> {
        let path = self.true_name(directory)?;
        Ok(HeldDirectory { directories: self, directory: directory.to_owned(), path })
    }

    fn true_name(&self, directory: &str) -> Result<PathBuf, NoGround> {
        let path = Path::new(directory);
        // Nobody but us can put a link above the data directory's own files.
        let wanted = match path.strip_prefix(&self.data) {
            Ok(within) => self.data_true.join(within),
            Err(_) => path.to_path_buf(),
        };
        match path.canonicalize() {
            Ok(there) if there != wanted => Err(elsewhere(directory)),
            Ok(there) if self.is_ours(&there) && !self.is_a_sessions(&there) => Err(elsewhere(directory)),
            Ok(there) if there.is_dir() => Ok(there),
            Ok(_) => Err(gone(directory)),
            Err(why) if why.kind() == io::ErrorKind::NotFound && self.is_own(path) => {
                if path.is_symlink() {
                    Err(elsewhere(directory))
                } else {
                    Ok(wanted)
                }
            }
            Err(_) => Err(gone(directory)),
        }
    }

    /// The part of the data directory that sessions act in: directories of their own, and worktrees with what is below them.
    fn is_a_sessions(&self, true_name: &Path) -> bool {
        let Ok(within) = true_name.strip_prefix(&self.data_true) else { return false };
        let names: Vec<Component<'_>> = within.components().take(3).collect();
        match names.as_slice() {
            [place, _] => [Path::new("work"), Path::new("worktrees")].contains(&Path::new(place)),
            [place, _, _] => Path::new(place) == Path::new("worktrees"),
            _ => false,
        }
    }
}

/// A directory that was what it is called a moment ago.
#[derive(Debug)]
pub(crate) struct HeldDirectory<'a> {
    directories: &'a SessionDirectories,
    directory: String,
    path: PathBuf,
}

impl HeldDirectory<'_> {
    /// Its true name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The finding, if the directory still is what it is called. Otherwise it may have been found elsewhere.
    pub(crate) fn recheck<T>(&self, found: T) -> Result<T, NoGround> {
        self.directories.true_name(&self.directory)?;
        Ok(found)
    }
}

fn gone(directory: &str) -> NoGround {
    NoGround::Gone(format!(
        "{directory} is not there any more: put it back, or say where it is now with `homing scope relink DIR`"
    ))
}

/// Where it leads is not said: nobody was allowed to know.
fn elsewhere(directory: &str) -> NoGround {
    NoGround::Elsewhere(format!(
        "{directory} leads elsewhere by now: put it back, or say where it is now with `homing scope relink DIR`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    struct Place {
        root: tempfile::TempDir,
        directories: SessionDirectories,
    }

    fn place() -> Place {
        let root = tempfile::tempdir().unwrap();
        for path in
            ["true/work/ses_1", "true/worktrees/one/sub", "true/worktrees/two", "true/git", "repo/sub"]
        {
            fs::create_dir_all(root.path().join(path)).unwrap();
        }
        // The data directory is named by a link, as some machines do with all of their disks.
        symlink(root.path().join("true"), root.path().join("data")).unwrap();
        let directories = SessionDirectories::of(&root.path().join("data"));
        Place { root, directories }
    }

    impl Place {
        fn at(&self, path: &str) -> PathBuf {
            self.root.path().canonicalize().unwrap().join(path)
        }

        fn look(&self, path: &str) -> &'static str {
            match self.directories.hold(self.at(path).to_str().unwrap()) {
                Ok(_) => "fine",
                Err(NoGround::Gone(_)) => "gone",
                Err(NoGround::Elsewhere(_)) => "elsewhere",
            }
        }

        fn swap(&self, path: &str, target: &str) {
            fs::remove_dir_all(self.at(path)).unwrap();
            symlink(self.at(target), self.at(path)).unwrap();
        }
    }

    #[test]
    fn what_is_what_it_is_called_is_firm_ground() {
        let place = place();
        for path in ["repo", "repo/sub", "data/work/ses_1", "true/worktrees/one", "true/worktrees/one/sub"] {
            assert_eq!(place.look(path), "fine", "{path}");
        }
        assert_eq!(place.look("data/work/ses_2"), "fine", "it is made when it is needed");
        assert_eq!(place.look("repo/none"), "gone");
        let own = place.at("data/work/ses_1");
        let held = place.directories.hold(own.to_str().unwrap()).unwrap();
        assert_eq!(held.path(), place.at("true/work/ses_1"), "work is done under the true name");
    }

    #[test]
    fn a_link_in_the_place_of_a_directory_is_not_followed() {
        let place = place();
        let path = place.at("repo/sub");
        let held = place.directories.hold(path.to_str().unwrap()).unwrap();
        assert_eq!(held.recheck(1), Ok(1));
        place.swap("repo/sub", "true");
        assert!(
            held.recheck(1).unwrap_err().to_string().contains("leads elsewhere"),
            "it was swapped meanwhile"
        );
        place.swap("data/work/ses_1", "repo");
        place.swap("true/worktrees/one/sub", "true/worktrees/two");
        symlink(place.at("nothing"), place.at("data/work/ses_2")).unwrap();
        for path in
            ["repo/sub", "repo/sub/git", "data/work/ses_1", "data/work/ses_2", "true/worktrees/one/sub"]
        {
            assert_eq!(place.look(path), "elsewhere", "{path}");
        }
        place.swap("true/worktrees/one", "true/worktrees/two");
        assert_eq!(place.look("true/worktrees/one"), "elsewhere");
    }

    #[test]
    fn of_the_data_directory_only_what_sessions_act_in_is_ground() {
        let place = place();
        fs::create_dir_all(place.at("true/work/ses_1/deep")).unwrap();
        for path in ["true", "true/git", "true/work", "true/worktrees", "true/work/ses_1/deep", "data"] {
            assert_eq!(place.look(path), "elsewhere", "{path}");
        }
    }
}

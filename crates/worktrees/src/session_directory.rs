//! The check that a session's directory still is the one that somebody was allowed to choose.
//!
//! It had one true name then. Agents can put a link in its place, or in the place of one above it, and we can follow links to
//! where they cannot. So everything of ours that touches a session's directory asks here first. No link is followed on the way,
//! not even to find out where it leads: what is found is held by its descriptor, which opens nothing.

use std::io;
use std::path::{Component, Path, PathBuf};

use engine::NoGround;
use kernel::GroundPath;
use processes::wall::worktree_root;
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Holds a directory without a right to look into it.
const HELD: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Holds a thing without opening it, whatever it is.
const NAMED: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

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

    /// True if its name says that it is in the data directory. Nobody looks.
    pub(crate) fn is_named_ours(&self, directory: &Path) -> bool {
        directory.starts_with(&self.data) || self.is_ours(directory)
    }

    /// A session's own directory is made when it is first needed.
    pub(crate) fn is_own(&self, directory: &GroundPath) -> bool {
        path_of(directory).parent() == Some(&self.work())
    }

    /// Holds the directory to its name. What is given back is where to work, and can be asked again afterwards.
    pub(crate) fn hold(&self, directory: &GroundPath) -> Result<HeldDirectory<'_>, NoGround> {
        let path = self.true_name(directory).ok_or_else(|| elsewhere(directory))?;
        let (directories, directory) = (self, directory.clone());
        let held = directories.open(&directory, &path)?;
        Ok(HeldDirectory { directories, directory, path, held })
    }

    /// The directory's own descriptor; none if it is a session's own and is still to be made.
    fn open(&self, directory: &GroundPath, path: &Path) -> Result<Option<OwnedFd>, NoGround> {
        match open_plainly(path, HELD) {
            Ok(held) => Ok(Some(held)),
            Err(Errno::NOENT) if self.is_own(directory) => Ok(None),
            Err(Errno::LOOP) => Err(elsewhere(directory)),
            Err(_) => Err(gone(directory)),
        }
    }

    /// The one name that it may have, if sessions may stand there at all. Nobody looks at anything.
    fn true_name(&self, directory: &GroundPath) -> Option<PathBuf> {
        let path = path_of(directory);
        // Nobody but us can put a link above the data directory's own files.
        let wanted = match path.strip_prefix(&self.data) {
            Ok(within) => self.data_true.join(within),
            Err(_) => path.to_path_buf(),
        };
        let is_plain =
            wanted.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        let is_barred = self.is_ours(&wanted) && !self.is_a_sessions(&wanted);
        (is_plain && wanted.is_absolute() && !is_barred).then_some(wanted)
    }

    /// The part of the data directory that sessions act in: directories of their own, and worktrees with what is below them.
    fn is_a_sessions(&self, true_name: &Path) -> bool {
        let is_own = true_name.parent() == Some(&self.work_true());
        is_own || worktree_root(&self.data_true, true_name).is_some()
    }

    /// True if nothing above a directory looks like a repository: then nobody has to be asked. Only names are looked up.
    pub(crate) fn is_untracked(&self, directory: &GroundPath) -> bool {
        let Some(path) = self.true_name(directory) else { return false };
        let ceiling = self.work_true();
        let mut above = path.ancestors().take_while(|above| *above != ceiling);
        above.all(|above| matches!(open_plainly(&above.join(".git"), NAMED), Err(Errno::NOENT)))
    }

    /// Makes a session's own directory, for nobody but us; one that is there is fine.
    pub(crate) fn make_own(&self, directory: &GroundPath) -> Result<(), io::Error> {
        let Some(name) = path_of(directory).file_name() else { return Ok(()) };
        let private = Mode::from_raw_mode(0o700);
        let data = open_plainly(&self.data_true, HELD)?;
        there_or_made(rustix::fs::mkdirat(&data, "work", private))?;
        let work = rustix::fs::openat(&data, "work", HELD | OFlags::NOFOLLOW, Mode::empty())?;
        there_or_made(rustix::fs::mkdirat(&work, name, private))
    }
}

fn path_of(directory: &GroundPath) -> &Path {
    Path::new(directory.for_holding())
}

/// Finds what is called so, if no link is on the way or at its end.
fn open_plainly(path: &Path, how: OFlags) -> Result<OwnedFd, Errno> {
    match rustix::fs::openat2(CWD, path, how, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // The kernel is too old, or somebody keeps the call from us.
        Err(Errno::NOSYS | Errno::PERM) => walk_plainly(path, how),
        found => found,
    }
}

/// The same, name by name.
fn walk_plainly(path: &Path, how: OFlags) -> Result<OwnedFd, Errno> {
    let mut at = rustix::fs::openat(CWD, "/", HELD, Mode::empty())?;
    let names = path.components().filter(|part| *part != Component::RootDir);
    let mut kind = FileType::Directory;
    for name in names {
        at = rustix::fs::openat(&at, name.as_os_str(), NAMED, Mode::empty())?;
        kind = FileType::from_raw_mode(rustix::fs::fstat(&at)?.st_mode);
        if kind == FileType::Symlink {
            return Err(Errno::LOOP);
        }
    }
    let is_fit = kind == FileType::Directory || !how.contains(OFlags::DIRECTORY);
    if is_fit { Ok(at) } else { Err(Errno::NOTDIR) }
}

fn there_or_made(made: Result<(), Errno>) -> Result<(), io::Error> {
    match made {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(why) => Err(why.into()),
    }
}

/// A directory that was what it is called a moment ago.
#[derive(Debug)]
pub(crate) struct HeldDirectory<'a> {
    directories: &'a SessionDirectories,
    directory: GroundPath,
    path: PathBuf,
    held: Option<OwnedFd>,
}

impl HeldDirectory<'_> {
    /// Its true name, for a ground worker, which is on that ground. The server never opens it.
    pub(crate) fn path_behind_wall(&self) -> &Path {
        &self.path
    }

    /// Its true name, to be said on.
    pub(crate) fn true_name(&self) -> GroundPath {
        self.path.to_str().map_or_else(|| self.directory.clone(), GroundPath::from)
    }

    /// The finding, if the directory still is the very one that was held. Otherwise it may have been found elsewhere.
    pub(crate) fn recheck<T>(&self, found: T) -> Result<T, NoGround> {
        let now = self.directories.open(&self.directory, &self.path)?;
        match (&self.held, &now) {
            (Some(held), Some(now)) if !is_same(held, now) => Err(elsewhere(&self.directory)),
            (Some(_), None) => Err(gone(&self.directory)),
            _ => Ok(found),
        }
    }
}

fn is_same(one: &OwnedFd, other: &OwnedFd) -> bool {
    let of = |held| rustix::fs::fstat(held).map(|about| (about.st_dev, about.st_ino));
    matches!((of(one), of(other)), (Ok(one), Ok(other)) if one == other)
}

fn gone(directory: &GroundPath) -> NoGround {
    let directory = directory.for_readers();
    NoGround::Gone(format!(
        "{directory} is not there any more: put it back (a worktree with `homing worktree restore NAME`), or say where it is now \
         with `homing scope relink DIR`"
    ))
}

/// Where it leads is not said: nobody was allowed to know.
fn elsewhere(directory: &GroundPath) -> NoGround {
    let directory = directory.for_readers();
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
        fn ground(&self, path: &str) -> GroundPath {
            self.at(path).to_str().unwrap().into()
        }

        fn at(&self, path: &str) -> PathBuf {
            self.root.path().canonicalize().unwrap().join(path)
        }

        fn look(&self, path: &str) -> &'static str {
            match self.directories.hold(&self.ground(path)) {
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
        let held = place.directories.hold(&place.ground("data/work/ses_1")).unwrap();
        assert_eq!(held.path_behind_wall(), place.at("true/work/ses_1"), "work is done under the true name");
    }

    #[test]
    fn a_link_in_the_place_of_a_directory_is_not_followed() {
        let place = place();
        let held = place.directories.hold(&place.ground("repo/sub")).unwrap();
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
    fn where_a_link_leads_is_not_found_out() {
        let place = place();
        fs::write(place.at("true/token"), "").unwrap();
        for target in ["true/token", "true", "true/none"] {
            let _ = fs::remove_file(place.at("repo/link"));
            symlink(place.at(target), place.at("repo/link")).unwrap();
            for path in ["repo/link", "repo/link/deeper"] {
                assert_eq!(place.look(path), "elsewhere", "{path} to {target}");
            }
            assert!(!place.directories.is_untracked(&place.ground("repo/link")));
        }
    }

    #[test]
    fn another_directory_of_the_same_name_is_another_one() {
        let place = place();
        let path = place.at("repo/sub");
        let held = place.directories.hold(&place.ground("repo/sub")).unwrap();
        fs::rename(&path, place.at("repo/old")).unwrap();
        assert!(held.recheck(1).unwrap_err().to_string().contains("not there"));
        fs::create_dir(&path).unwrap();
        assert!(held.recheck(1).unwrap_err().to_string().contains("leads elsewhere"));
    }

    #[test]
    fn an_old_kernel_finds_the_same() {
        let place = place();
        fs::write(place.at("repo/file"), "").unwrap();
        symlink(place.at("repo"), place.at("link")).unwrap();
        for path in ["repo", "repo/sub", "repo/file", "repo/file/x", "repo/none", "link", "link/sub"] {
            let found =
                |way: fn(&Path, OFlags) -> Result<OwnedFd, Errno>| way(&place.at(path), HELD).map(drop);
            assert_eq!(found(walk_plainly), found(open_plainly), "{path}");
            let is_none = |found: Result<OwnedFd, Errno>| matches!(found, Err(Errno::NOENT));
            let named = (walk_plainly(&place.at(path), NAMED), open_plainly(&place.at(path), NAMED));
            assert_eq!(is_none(named.0), is_none(named.1), "{path}");
        }
    }

    #[test]
    fn a_repository_is_noticed_by_its_name() {
        let place = place();
        let is_untracked = |path: &str| place.directories.is_untracked(&place.ground(path));
        assert!(is_untracked("repo/sub"));
        fs::write(place.at("repo/.git"), "").unwrap();
        assert!(!is_untracked("repo/sub"));
        assert!(is_untracked("data/work/ses_1"));
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

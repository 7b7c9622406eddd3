//! The list of what is there behind a wall that lists: by descriptor, as what is hidden is (`held`).
//!
//! The server holds what is the same for all sessions (`ListedPath`): the system (`system`), programs with what belongs to them
//! (`tools`, `named_in`), homes, and what `[wall]` allows. What is a session's own is added for each start. Nothing here is ever
//! read; links are followed when something is first held, by the server at its start, and never again; those in homes not even
//! then, if they lead out.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::held::{self, HeldFile};

/// The layout of a wall: what an agent sees besides what is its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WallLayout {
    /// A list for a team; for one who is alone everything but what is hidden.
    #[default]
    Auto,
    /// Everything that is listed, and nothing else.
    List,
    /// Everything but what is hidden.
    Hide,
}

/// The system's own directories, without which no program runs. Those that are links stay links.
const SYSTEM: [&str; 12] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/snap", "/sys"];
/// The parts of `/run` and `/var` that programs need: names of machines, certificates, drivers. Nothing that starts programs.
const SYSTEM_PARTS: [&str; 7] = [
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/nscd",
    "/run/current-system",
    "/run/opengl-driver",
    "/var/lib/ca-certificates",
    "/var/cache/fontconfig",
];
/// Links that programs know, besides those in `/`.
const SYSTEM_LINKS: [&str; 2] = ["/var/run", "/var/lock"];
/// The file that says who knows the names of machines. Often a link to where the network is set up.
const RESOLVER: &str = "/etc/resolv.conf";
/// The directories beside `bin` that belong to its programs.
const BESIDE_BIN: [&str; 5] = ["lib", "lib32", "lib64", "libexec", "include"];
/// Links that are followed to a program before it is given up.
const LINKS_MAX: usize = 40;

/// Something that is there for agents.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListedPath {
    pub(crate) held: HeldFile,
    pub(crate) access: ListedAccess,
}

/// The use that an agent may make of something, as far as its user may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListedAccess {
    /// It may be changed.
    Write,
    /// It may only be read, and run.
    Read,
}

impl ListedPath {
    /// Holds what has this name now, links followed. None if there is nothing, or it is `/`, which would be no list.
    pub fn of(path: impl AsRef<Path>, access: ListedAccess) -> Option<Self> {
        let held = HeldFile::open(path.as_ref()).ok()?;
        held.name.parent()?;
        Some(Self { held, access })
    }

    /// Holds what has this name now, if no link leads there.
    pub(super) fn strictly(path: &Path, access: ListedAccess) -> io::Result<Self> {
        Ok(Self { held: HeldFile::open_strictly(path)?, access })
    }

    pub(crate) fn name(&self) -> &Path {
        &self.held.name
    }

    /// The same thing as this process sees it now. One that is gone may have been made again, as a new version of a program is:
    /// then it is what has its name, and no link leads to it.
    pub(super) fn find(&self) -> io::Result<Option<OwnedFd>> {
        if self.held.is_gone() {
            return Ok(held::open_strictly(self.name()).ok());
        }
        Ok(self.held.find()?.map(|(_, found)| found))
    }
}

/// A link at a place where there is nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListedLink {
    pub(crate) path: PathBuf,
    pub(crate) target: PathBuf,
}

/// Everything that is listed for all sessions, held.
#[derive(Debug, Clone, Default)]
pub struct ListedPaths {
    pub(crate) paths: Vec<ListedPath>,
    pub(crate) links: Vec<ListedLink>,
    /// The homes that agents may have, each listed for those who have it.
    pub(crate) homes: Vec<ListedPath>,
}

impl ListedPaths {
    /// The system, as it is on this machine.
    pub fn system() -> Self {
        let mut all = Self::default();
        let top = std::fs::read_dir("/").into_iter().flatten().flatten().map(|entry| entry.path());
        for path in top.chain(SYSTEM_LINKS.map(PathBuf::from)) {
            all.links.extend(link_at(&path));
        }
        for path in SYSTEM.into_iter().chain(SYSTEM_PARTS).chain([RESOLVER]) {
            all.add(path, ListedAccess::Read);
        }
        all
    }

    /// True if nothing is listed for anybody.
    pub(super) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Adds something that is held already, if it is there.
    pub fn add_held(&mut self, held: Option<ListedPath>) {
        self.paths.extend(held);
    }

    /// Adds what has this name, if there is something.
    /// Not if a link in a home leads there: agents may have made it before this server was started.
    pub fn add(&mut self, path: impl AsRef<Path>, access: ListedAccess) {
        let path = path.as_ref();
        match ListedPath::of(path, access) {
            Some(listed) if self.link_out_of_home(path).is_none() => {
                self.add_links(path);
                self.paths.push(listed);
            }
            Some(_) | None => {}
        }
    }

    /// Adds the links on the way to something, so that its name leads there behind the wall, too.
    pub fn add_links(&mut self, path: &Path) {
        for link in links_to(path) {
            if !self.links.contains(&link) {
                self.links.push(link);
            }
        }
    }

    /// A link on the way to something that lies in a home where agents write, if that leads out of the home, and not to something
    /// that is listed anyway. Homes and the system are added first.
    pub fn link_out_of_home(&self, path: &Path) -> Option<PathBuf> {
        let target = super::true_name(path);
        links_to(path).into_iter().map(|link| link.path).find(|link| self.leads_out(link, &target))
    }

    fn leads_out(&self, link: &Path, target: &Path) -> bool {
        let is_out = |home: &ListedPath| link.starts_with(home.name()) && !target.starts_with(home.name());
        self.homes.iter().any(is_out) && !is_inside(target, ListedAccess::Read, &self.paths)
    }

    /// Holds a home, for those whose it is.
    pub fn add_home(&mut self, home: impl AsRef<Path>) {
        self.add_links(home.as_ref());
        self.homes.extend(ListedPath::of(home, ListedAccess::Write));
    }

    /// Holds something in a home that is there for some agents. If it is to be a directory and there is nothing, an empty one is made:
    /// what they put there stays. Nothing that a link leads to: agents may have made that.
    pub fn in_home(home: &Path, place: &str, access: ListedAccess) -> Option<ListedPath> {
        let path = super::true_name(home).join(place.trim_end_matches('/'));
        if place.ends_with('/') && path.symlink_metadata().is_err() {
            // Where we may not make it, there is none.
            let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
        }
        ListedPath::strictly(&path, access).ok().filter(|found| found.name() == path)
    }

    /// Adds a program with the directories in which it, and each link that leads to it, lies, and what belongs to it there.
    pub fn add_program(&mut self, program: &Path, homes: &[PathBuf]) {
        let mut here = program.to_path_buf();
        for _ in 0..LINKS_MAX {
            self.add(&here, ListedAccess::Read);
            self.add_directory_of_programs(&above(&here), homes);
            let Ok(target) = std::fs::read_link(&here) else { break };
            let next = above(&here).join(target);
            if self.leads_out(&place_of(&here), &place_of(&next)) {
                return;
            }
            here = next;
        }
        // A package of npm's has others beside it that it needs.
        let package = here.canonicalize().unwrap_or(here);
        let modules = package.ancestors().filter(|above| above.ends_with("node_modules")).last();
        modules.into_iter().for_each(|modules| self.add_unless_home(modules, homes));
    }

    /// Adds the directories of a `PATH`.
    pub fn add_search_path(&mut self, path: &str, homes: &[PathBuf]) {
        for directory in std::env::split_paths(path).filter(|directory| directory.is_absolute()) {
            self.add_directory_of_programs(&directory, homes);
        }
    }

    /// Adds what a variable of an agent leads to: certificates, toolchains. Lists have colons between their parts.
    pub fn add_named(&mut self, value: &str, access: ListedAccess, homes: &[PathBuf]) {
        for path in value.split(':').map(Path::new).filter(|path| path.is_absolute()) {
            if !is_around_home(path, homes) {
                self.add(path, access);
            }
        }
    }

    fn add_directory_of_programs(&mut self, directory: &Path, homes: &[PathBuf]) {
        self.add_unless_home(directory, homes);
        let is_bin = directory.ends_with("bin") || directory.ends_with("sbin");
        for name in BESIDE_BIN.iter().filter(|_| is_bin) {
            self.add_unless_home(&directory.with_file_name(name), homes);
        }
    }

    /// A home, and what is above one, is more than a directory of programs.
    fn add_unless_home(&mut self, path: &Path, homes: &[PathBuf]) {
        if !is_around_home(path, homes) {
            self.add(path, ListedAccess::Read);
        }
    }
}

/// The names of a path, the last one first.
fn names_of(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    let mut names: Vec<OsString> = names.collect();
    names.reverse();
    names
}

fn above(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("/")).to_path_buf()
}

/// A path of which nothing but the last name may be a link.
fn place_of(path: &Path) -> PathBuf {
    let above = super::true_name(&above(path));
    path.file_name().map(|name| above.join(name)).unwrap_or(above)
}

/// The links on the way to something, in the order in which they are followed, each under the one true name that it has itself.
fn links_to(path: &Path) -> Vec<ListedLink> {
    let (mut here, mut found) = (PathBuf::from("/"), Vec::new());
    let mut left: Vec<OsString> = names_of(path);
    while let Some(name) = left.pop() {
        if name == ".." {
            here.pop();
            continue;
        }
        here.push(name);
        let Some(link) = link_at(&here).filter(|_| found.len() < LINKS_MAX) else { continue };
        left.extend(names_of(&link.target));
        here = if link.target.is_absolute() { PathBuf::from("/") } else { above(&here) };
        found.push(link);
    }
    found
}

fn link_at(path: &Path) -> Option<ListedLink> {
    let target = std::fs::read_link(path).ok()?;
    Some(ListedLink { path: path.to_path_buf(), target })
}

fn is_around_home(path: &Path, homes: &[PathBuf]) -> bool {
    let name = super::true_name(path);
    homes.iter().any(|home| super::true_name(home).starts_with(&name))
}

/// Of these, those that are not in another one of them already, to be used in the same way. What may only be read stays so inside of
/// what may be changed, so it is listed besides: a program that whoever runs the server starts as well lies in a home.
pub(super) fn outermost(mut all: Vec<ListedPath>) -> Vec<ListedPath> {
    all.sort_by_key(|listed| (listed.name().components().count(), listed.access));
    let mut found: Vec<ListedPath> = Vec::new();
    for listed in all {
        let around = innermost_around(listed.name(), &found);
        let is_there = |other: &ListedPath| other.access == listed.access || other.name() == listed.name();
        if !around.is_some_and(is_there) {
            found.push(listed);
        }
    }
    found
}

/// The same with each directory between something that may be changed and something in it that may not: as mounts of their own they
/// keep their names, or an agent would put another directory in the place of one.
pub(super) fn pinned(mut all: Vec<ListedPath>) -> Vec<ListedPath> {
    for part in read_inside(&all) {
        let Some(around) = innermost_around(&above(&part), &all).cloned() else { continue };
        let between = part.ancestors().skip(1).take_while(|above| *above != around.name());
        for above in between {
            if all.iter().any(|listed| listed.name() == above) {
                continue;
            }
            // One that is gone, or leads elsewhere by now, has nothing in it that would be found.
            all.extend(ListedPath::strictly(above, ListedAccess::Write));
        }
    }
    all
}

/// The names of what may only be read and lies in something that may be changed.
pub(super) fn read_inside(all: &[ListedPath]) -> Vec<PathBuf> {
    let reads = all.iter().filter(|listed| listed.access == ListedAccess::Read);
    let is_in_one = |listed: &&ListedPath| {
        let around = innermost_around(&above(listed.name()), all);
        around.is_some_and(|around| around.access == ListedAccess::Write)
    };
    reads.filter(is_in_one).map(|listed| listed.name().to_path_buf()).collect()
}

/// True if that name is below one of these, of which one may make as much use.
pub(super) fn is_inside(name: &Path, access: ListedAccess, all: &[ListedPath]) -> bool {
    innermost_around(name, all).is_some_and(|innermost| innermost.access <= access)
}

/// The innermost of these that has that name, or has it in it.
fn innermost_around<'a>(name: &Path, all: &'a [ListedPath]) -> Option<&'a ListedPath> {
    let around = all.iter().filter(|other| name.starts_with(other.name()));
    around.max_by_key(|other| other.name().components().count())
}

/// The root of the working tree around a directory, by names alone: the next directory above with a `.git` in it that is a
/// directory. Not a home, or what is above one: nobody means all of that.
pub fn tree_around(directory: &Path, homes: &[PathBuf]) -> Option<PathBuf> {
    let is_root = |above: &&Path| {
        above.join(".git").symlink_metadata().is_ok_and(|found| found.is_dir()) && above.parent().is_some()
    };
    let root = directory.ancestors().find(is_root)?;
    (root == directory || !is_around_home(root, homes)).then(|| root.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[ListedPath]) -> Vec<(PathBuf, ListedAccess)> {
        all.iter().map(|listed| (listed.name().to_path_buf(), listed.access)).collect()
    }

    struct Place {
        root: PathBuf,
        _held: tempfile::TempDir,
    }

    impl Place {
        fn with(directories: &[&str]) -> Self {
            let held = tempfile::tempdir().unwrap();
            let root = held.path().canonicalize().unwrap();
            for directory in directories {
                std::fs::create_dir_all(root.join(directory)).unwrap();
            }
            Self { root, _held: held }
        }

        fn at(&self, path: &str) -> PathBuf {
            self.root.join(path)
        }
    }

    #[test]
    fn what_is_in_another_is_listed_once_and_twice_if_it_may_be_used_otherwise() {
        use ListedAccess::{Read, Write};
        let place = Place::with(&["a/b/c", "d/e"]);
        let listed = |path: &str, access| ListedPath::of(place.at(path), access).unwrap();
        let all = vec![
            listed("a/b/c", Read),
            listed("a/b", Write),
            listed("a", Read),
            listed("d/e", Read),
            listed("d", Write),
            listed("d", Read),
        ];
        let expected = [("d", Write), ("a", Read), ("a/b", Write), ("d/e", Read), ("a/b/c", Read)];
        assert_eq!(names(&outermost(all)), expected.map(|(path, may)| (place.at(path), may)));
    }

    #[test]
    fn directories_above_what_may_only_be_read_keep_their_names() {
        use ListedAccess::{Read, Write};
        let place = Place::with(&["home/.local/share/bin", "home/bin", "system/bin"]);
        let listed = |path: &str, access| ListedPath::of(place.at(path), access).unwrap();
        let all = vec![
            listed("home", Write),
            listed("home/.local/share/bin", Read),
            listed("home/bin", Read),
            listed("system", Read),
            listed("system/bin", Read),
        ];
        let found = names(&pinned(outermost(all)));
        let pins: Vec<_> =
            found.iter().filter(|(_, access)| *access == Write).map(|(name, _)| name).collect();
        assert_eq!(pins, [&place.at("home"), &place.at("home/.local/share"), &place.at("home/.local")]);
        assert_eq!(found.len(), 6, "{found:?}");
    }

    #[test]
    fn a_program_brings_what_belongs_to_it_and_no_home() {
        let place = Place::with(&[
            "home/.local/bin",
            "home/.local/share",
            "node/bin",
            "node/lib/node_modules/agent/dist",
            "home/bin",
            "home/lib",
        ]);
        let program = place.at("node/lib/node_modules/agent/dist/cli.js");
        std::fs::write(&program, "").unwrap();
        std::os::unix::fs::symlink(&program, place.at("node/bin/agent")).unwrap();
        std::os::unix::fs::symlink(place.at("node/bin/agent"), place.at("home/.local/bin/agent")).unwrap();
        let homes = [place.at("home")];
        let mut all = ListedPaths::default();
        all.add_program(&place.at("home/.local/bin/agent"), &homes);
        let found: Vec<PathBuf> =
            outermost(all.paths).iter().map(|listed| listed.name().to_path_buf()).collect();
        let expected = ["node/bin", "node/lib", "home/.local/bin"].map(|path| place.at(path));
        assert_eq!(found, expected);
        let mut all = ListedPaths::default();
        all.add_search_path(&format!("{0}/home:{0}:bin:/nowhere", place.root.display()), &homes);
        assert_eq!(names(&all.paths), [], "neither a home nor what is above it");
        all.add_named(&place.at("home").display().to_string(), ListedAccess::Write, &homes);
        assert_eq!(names(&all.paths), []);
        assert!(ListedPath::of("/", ListedAccess::Read).is_none());
    }

    #[test]
    fn a_tree_is_found_by_its_root_and_a_home_is_none() {
        let place = Place::with(&["home/repo/.git", "home/repo/a/b", "home/.git", "home/plain", "linked"]);
        std::fs::write(place.at("linked/.git"), "gitdir: /elsewhere").unwrap();
        let homes = [place.at("home")];
        let around = |path: &str| tree_around(&place.at(path), &homes);
        assert_eq!(around("home/repo/a/b"), Some(place.at("home/repo")));
        assert_eq!(around("home/repo"), Some(place.at("home/repo")));
        assert_eq!(around("home"), Some(place.at("home")), "whoever chose it has it anyway");
        assert_eq!(around("home/plain"), None);
        assert_eq!(around("linked"), None, "what a file says is not believed");
    }

    /// Made by an agent in the person's home, before the server was started again.
    #[test]
    fn a_link_in_a_home_leads_no_list_out_of_it() {
        let place = Place::with(&["home/bin", "home/.local", "home/real", "secret/bin", "system/bin"]);
        for file in ["secret/bin/tool", "system/bin/tool"] {
            std::fs::write(place.at(file), "").unwrap();
        }
        let link =
            |target: &str, path: &str| std::os::unix::fs::symlink(place.at(target), place.at(path)).unwrap();
        link("secret", "home/.local/bin");
        link("secret/bin/tool", "home/bin/tool");
        link("system/bin/tool", "home/bin/fine");
        link("home/real", "home/inside");
        let mut all = ListedPaths::default();
        all.add_home(place.at("home"));
        all.add(place.at("system"), ListedAccess::Read);
        let homes = [place.at("home")];
        all.add_search_path(&place.at("home/.local/bin").display().to_string(), &homes);
        all.add_named(&place.at("home/.local/bin/bin").display().to_string(), ListedAccess::Read, &homes);
        for name in ["tool", "fine"] {
            all.add_program(&place.at("home/bin").join(name), &homes);
        }
        all.add(place.at("home/inside"), ListedAccess::Read);
        assert_eq!(all.link_out_of_home(&place.at("home/.local/bin/bin")), Some(place.at("home/.local/bin")));
        let mut found: Vec<PathBuf> =
            outermost(all.paths).iter().map(|listed| listed.name().to_path_buf()).collect();
        found.sort();
        assert_eq!(found, ["home/bin", "home/real", "system"].map(|path| place.at(path)));
    }

    #[test]
    fn the_links_on_the_way_to_something_come_along() {
        let place = Place::with(&["disk/home/ana"]);
        std::os::unix::fs::symlink("disk/home", place.at("home")).unwrap();
        std::os::unix::fs::symlink(place.at("home/../home/ana"), place.at("own")).unwrap();
        let mut all = ListedPaths::default();
        all.add_home(place.at("own"));
        assert_eq!(names(&all.homes), [(place.at("disk/home/ana"), ListedAccess::Write)]);
        let links: Vec<PathBuf> = all.links.into_iter().map(|link| link.path).collect();
        assert_eq!(links, [place.at("own"), place.at("home")]);
    }

    #[test]
    fn what_was_made_again_is_found_by_its_name_and_not_through_a_link() {
        let place = Place::with(&["tool", "secret"]);
        let listed = ListedPath::of(place.at("tool"), ListedAccess::Read).unwrap();
        std::fs::remove_dir(place.at("tool")).unwrap();
        assert!(listed.find().unwrap().is_none());
        std::os::unix::fs::symlink(place.at("secret"), place.at("tool")).unwrap();
        assert!(listed.find().unwrap().is_none());
        std::fs::remove_file(place.at("tool")).unwrap();
        std::fs::create_dir(place.at("tool")).unwrap();
        assert!(listed.find().unwrap().is_some());
    }
}

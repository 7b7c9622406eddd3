//! The part of the wall that Landlock makes.
//!
//! In every case: the agent cannot signal, trace or look into a process outside of its own domain, nor connect to an
//! abstract socket made outside. Where mounts cannot be made, also what is hidden: Landlock only knows what is allowed, so
//! everything beside the way to something hidden is. The price is that directories on that way can neither be listed nor
//! added to.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use super::listed::{self, ListedAccess, ListedPath};

/// The version of Landlock that we know. Older kernels do what they can of it.
const KNOWN: ABI = ABI::V6;

/// The first version that bounds signals and abstract sockets.
pub(super) const BOUNDS_SIGNALS: i64 = 6;

/// Places that are there for every agent, where nobody can make it ones of its own.
const ALWAYS: [&str; 4] = ["/dev", "/proc", "/tmp", "/var/tmp"];

/// The kernel's own version of it, if it has any.
pub(super) fn version() -> Option<i64> {
    const ASK_FOR_VERSION: u32 = 1;
    // SAFETY: asks for a number; there is nothing that it could read.
    #[allow(unsafe_code)]
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, ASK_FOR_VERSION)
    };
    (version > 0).then_some(version)
}

/// Bounds signals, sockets and tracing for good. Answers whether the kernel has Landlock at all.
pub(super) fn bound() -> io::Result<bool> {
    restrict(|| Ruleset::default().scope(Scope::from_all(KNOWN))?.create())
}

/// As `bound`, and leaves of all files only those that are neither hidden nor below something hidden.
pub(super) fn hide(hide: &[PathBuf], keep: &[PathBuf]) -> io::Result<bool> {
    let mut open = BTreeSet::new();
    Walk { hide, keep, open: &mut open }.visit(Path::new("/"), true);
    restrict(|| {
        let all = AccessFs::from_all(KNOWN);
        let mut rules = Ruleset::default().handle_access(all)?.scope(Scope::from_all(KNOWN))?.create()?;
        for path in &open {
            // What has gone meanwhile needs no rule.
            if let Ok(place) = PathFd::new(path) {
                rules = rules.add_rule(PathBeneath::new(place, rights(path, all)))?;
            }
        }
        Ok(rules)
    })
}

/// As `bound`, and leaves of all files only those that are listed and neither hidden nor below something hidden. Landlock keeps
/// nobody from asking whether there is something of a name.
pub(super) fn list(list: &[ListedPath], hide: &[PathBuf], keep: &[PathBuf]) -> io::Result<bool> {
    let open = parts_of(list, hide, keep);
    restrict(|| {
        let all = AccessFs::from_all(KNOWN);
        let mut rules = Ruleset::default().handle_access(all)?.scope(Scope::from_all(KNOWN))?.create()?;
        for (path, access) in &open {
            if let Ok(place) = PathFd::new(path) {
                let most = match access {
                    ListedAccess::Read => AccessFs::from_read(KNOWN),
                    ListedAccess::Write => all,
                };
                rules = rules.add_rule(PathBeneath::new(place, rights(path, most)))?;
            }
        }
        Ok(rules)
    })
}

/// The largest parts of what is listed that have nothing hidden in them, and the use that may be made of each.
fn parts_of(list: &[ListedPath], hide: &[PathBuf], keep: &[PathBuf]) -> BTreeMap<PathBuf, ListedAccess> {
    let mut open = BTreeMap::new();
    let mut add = |path: &Path, access: ListedAccess, hide: &[PathBuf]| {
        let mut parts = BTreeSet::new();
        Walk { hide, keep, open: &mut parts }.visit(path, !hide.iter().any(|hidden| hidden == path));
        for part in parts {
            let known = open.entry(part).or_insert(access);
            *known = access.min(*known);
        }
    };
    // A rule holds for everything below: what may only be read is left out of what may be changed, and with it the right to add
    // something to the directories above.
    let read = listed::read_inside(list);
    let unchanged: Vec<PathBuf> = hide.iter().chain(&read).cloned().collect();
    for listed in list {
        add(listed.name(), ListedAccess::Read, hide);
        if listed.access == ListedAccess::Write {
            add(listed.name(), ListedAccess::Write, &unchanged);
        }
    }
    for path in ALWAYS.iter().map(Path::new).chain(keep.iter().map(PathBuf::as_path)) {
        add(path, ListedAccess::Write, hide);
    }
    open
}

fn restrict(rules: impl FnOnce() -> Result<RulesetCreated, RulesetError>) -> io::Result<bool> {
    let status = rules().and_then(RulesetCreated::restrict_self).map_err(io::Error::other)?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// Everything but making devices, which nobody needs; for a file, what can be done with a file.
fn rights(path: &Path, all: BitFlags<AccessFs>) -> BitFlags<AccessFs> {
    let all = all & !(AccessFs::MakeBlock | AccessFs::MakeChar);
    if path.is_dir() { all } else { all & AccessFs::from_file(KNOWN) }
}

/// Finds the largest parts of the file system that have nothing hidden in them.
struct Walk<'a> {
    hide: &'a [PathBuf],
    keep: &'a [PathBuf],
    open: &'a mut BTreeSet<PathBuf>,
}

impl Walk<'_> {
    fn visit(&mut self, path: &Path, is_open: bool) {
        let mut below =
            self.hide.iter().chain(self.keep).filter(|place| place.starts_with(path) && *place != path);
        let deeper: Vec<PathBuf> = below.by_ref().cloned().collect();
        if deeper.is_empty() {
            if is_open {
                self.open.insert(path.to_path_buf());
            }
            return;
        }
        for child in self.children(path, is_open, &deeper) {
            let is_open = match () {
                () if self.keep.contains(&child) => true,
                () if self.hide.contains(&child) => false,
                () => is_open,
            };
            self.visit(&child, is_open);
        }
    }

    /// The entries of a directory; of one that is closed, only the ways to what is kept. A link is nothing by itself: where it
    /// leads to is visited, or hidden.
    fn children(&self, path: &Path, is_open: bool, deeper: &[PathBuf]) -> BTreeSet<PathBuf> {
        if is_open {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            let is_link = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_symlink());
            return entries.filter(|entry| !is_link(entry)).map(|entry| entry.path()).collect();
        }
        let next = |place: &PathBuf| Some(path.join(place.strip_prefix(path).ok()?.components().next()?));
        deeper.iter().filter_map(next).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_beside_the_way_to_something_hidden_is_open() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for path in ["a/secret/own", "a/secret/others", "a/beside", "b/c"] {
            std::fs::create_dir_all(root.join(path)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("a/secret"), root.join("link")).unwrap();
        let (hide, keep) = ([root.join("a/secret")], [root.join("a/secret/own")]);
        let mut open = BTreeSet::new();
        Walk { hide: &hide, keep: &keep, open: &mut open }.visit(&root, true);
        let expected = ["a/beside", "a/secret/own", "b"].map(|path| root.join(path));
        assert_eq!(open, BTreeSet::from(expected));
    }

    #[test]
    fn what_may_only_be_read_stays_so_inside_of_what_may_be_changed() {
        use ListedAccess::{Read, Write};
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for path in ["home/.local/bin", "home/.local/share", "home/work"] {
            std::fs::create_dir_all(root.join(path)).unwrap();
        }
        let listed = |path: &str, access| ListedPath::of(root.join(path), access).unwrap();
        let open = parts_of(&[listed("home", Write), listed("home/.local/bin", Read)], &[], &[]);
        let may = |path: &str| open.get(&root.join(path)).copied();
        assert_eq!((may("home"), may("home/.local/bin"), may("home/.local")), (Some(Read), Some(Read), None));
        assert_eq!((may("home/work"), may("home/.local/share")), (Some(Write), Some(Write)));
    }
}

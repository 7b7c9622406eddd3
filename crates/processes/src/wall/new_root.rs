//! The part of a wall that lists: a root of the agent's own, in which is what is listed and nothing else.
//!
//! It is made of the view in which everything hidden is covered already (`mounts`), so a cover inside of something listed comes
//! along with it. Each part is found by descriptor, copied as a mount, and put at its name into an empty file system, which
//! then takes the place of the old root; that is let go, with everything that was not listed.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, UnmountFlags};
use serde::{Deserialize, Serialize};

use super::enforce::until;
use super::listed::{self, ListedAccess, ListedLink, ListedPath};
use super::mounts::{CoverError, DIRECTORY, KeptCover, clone_of, file_system, put, set_read_only};

/// The list of one start, as it travels to the supervisor.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct SessionList {
    pub(crate) paths: Vec<ListedPath>,
    pub(crate) links: Vec<ListedLink>,
    /// A home in memory that goes with the agent, in the place of one of which only parts are listed.
    #[serde(default)]
    pub(crate) home: Option<PathBuf>,
}

impl SessionList {
    /// The place of the home in memory; none if the whole of what is there is listed to be changed, or by its name.
    fn home_place(&self) -> Option<&Path> {
        let home = self.home.as_deref()?;
        let has_all = |listed: &ListedPath| {
            home == listed.name() || listed.access == ListedAccess::Write && home.starts_with(listed.name())
        };
        (!self.paths.iter().any(has_all)).then_some(home)
    }
}

/// The devices that every program may use.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// The links in `/dev` that programs know.
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
/// Directories for what does not stay: an agent's own, in memory, gone with its processes.
pub(super) const SCRATCH: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// The most that one of them takes, of the machine's memory.
const SCRATCH_SIZE: &str = "25%";
/// The longest that we look for something that is only to be read, and without which an agent is started. Something may have been
/// mounted over it since the server's start.
const READ_WAIT: Duration = Duration::from_millis(50);
/// Where the new root lies until it is the root. Nothing is looked up there meanwhile.
const STAGE: &str = "/proc";

/// Makes the root of what is listed, and of the covers that something is kept in. Everything is as the process sees it now.
pub(super) fn enter(list: &SessionList, kept: &[KeptCover], deadline: Instant) -> Result<(), CoverError> {
    let mut parts = Vec::new();
    for listed in &list.paths {
        parts.extend(RootPart::listed(listed, deadline)?);
    }
    for cover in kept.iter().filter(|cover| !listed::is_inside(&cover.name, ListedAccess::Write, &list.paths))
    {
        parts.push(RootPart::directory(&cover.name, clone_of(&cover.cover, Path::new(""))?));
    }
    parts.push(RootPart::directory("/proc", clone_of(CWD, Path::new("/proc"))?));
    let is_there = |path: &Path| list.paths.iter().any(|listed| path.starts_with(listed.name()));
    if !is_there(Path::new("/dev")) {
        parts.extend(devices()?);
    }
    if let Some(home) = list.home_place() {
        parts.push(RootPart::directory(home, scratch("home", "700")?));
    }
    for path in SCRATCH.map(Path::new).into_iter().filter(|path| !is_there(path)) {
        parts.extend(frames_in(path, &parts)?);
        parts.push(RootPart::directory(path, scratch("scratch", "1777")?));
    }
    parts.sort_by_key(|part| part.name.components().count());
    let root = Root::staged()?;
    for link in &list.links {
        root.link(&link.path, &link.target);
    }
    let home = list.home_place();
    for part in &parts {
        match (root.place(part), part.access) {
            (Ok(place), _) => {
                put(&part.mount, &place)?;
                if home == Some(&part.name) {
                    ways_in(&part.name, &parts).iter().try_for_each(|way| root.pin(way))?;
                }
            }
            // Something is in its place, or it lies in something that is not there.
            (Err(_), ListedAccess::Read) => {}
            (Err(_), ListedAccess::Write) => return Err(CoverError::Moving(part.name.clone())),
        }
    }
    for (name, target) in DEVICE_LINKS.iter().filter(|_| !is_there(Path::new("/dev"))) {
        root.link(&Path::new("/dev").join(name), Path::new(target));
    }
    for part in parts.iter().filter(|part| part.is_frame) {
        set_read_only(&part.mount, Path::new(""), false)?;
    }
    Ok(root.become_root()?)
}

/// Something that is there, as a mount that is nowhere yet.
struct RootPart {
    name: PathBuf,
    mount: OwnedFd,
    is_directory: bool,
    access: ListedAccess,
    /// Nothing is in it but links, and what else is put there or is on the way to it.
    is_frame: bool,
}

impl RootPart {
    fn directory(name: impl Into<PathBuf>, mount: OwnedFd) -> Self {
        let access = ListedAccess::Write;
        Self { name: name.into(), mount, is_directory: true, access, is_frame: false }
    }

    /// Nothing if it is not there any more and is nothing that has to be.
    fn listed(listed: &ListedPath, deadline: Instant) -> Result<Option<Self>, CoverError> {
        let mut found = Ok(None);
        let mut look = || {
            found = listed.find();
            !matches!(found, Ok(None)) || listed.held.is_gone()
        };
        let patience = match listed.access {
            ListedAccess::Read => deadline.min(Instant::now() + READ_WAIT),
            ListedAccess::Write => deadline,
        };
        let is_found = until(patience, &mut look);
        let Some(place) = found? else {
            return match listed.access {
                ListedAccess::Read => Ok(None),
                ListedAccess::Write if is_found => Ok(None),
                ListedAccess::Write => Err(CoverError::Moving(listed.name().to_path_buf())),
            };
        };
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&place).map_err(io::Error::from)?.st_mode);
        let mount = clone_of(&place, Path::new(""))?;
        if listed.access == ListedAccess::Read {
            set_read_only(&mount, Path::new(""), true)?;
        }
        let (name, is_directory) = (listed.name().to_path_buf(), kind == FileType::Directory);
        Ok(Some(Self { name, mount, is_directory, access: listed.access, is_frame: false }))
    }
}

/// The directories in a home in memory that are on the way to something else, the outer ones first.
fn ways_in(home: &Path, parts: &[RootPart]) -> BTreeSet<PathBuf> {
    let inside = || parts.iter().map(|part| part.name.as_path()).filter(|name| *name != home);
    let inside = || inside().filter(|name| name.starts_with(home));
    let between = inside().flat_map(|name| name.ancestors().skip(1).take_while(|above| *above != home));
    between.filter(|way| !inside().any(|name| way.starts_with(name))).map(Path::to_path_buf).collect()
}

/// The directories in a place for what does not stay that are on the way to something else: each a mount of its own, or whoever may
/// write to the place could rename them.
fn frames_in(place: &Path, parts: &[RootPart]) -> io::Result<Vec<RootPart>> {
    let on_the_way = parts.iter().filter_map(|part| {
        let name = place.join(part.name.strip_prefix(place).ok()?.iter().next()?);
        (name != part.name).then_some(name)
    });
    let is_listed = |name: &PathBuf| parts.iter().any(|part| part.name == *name);
    let names: BTreeSet<PathBuf> = on_the_way.filter(|name| !is_listed(name)).collect();
    names
        .into_iter()
        .map(|name| Ok(RootPart { is_frame: true, ..RootPart::directory(name, small("way")?) }))
        .collect()
}

/// `/dev` with what every program may use, and terminals of its own.
fn devices() -> io::Result<Vec<RootPart>> {
    let mut parts = vec![RootPart { is_frame: true, ..RootPart::directory("/dev", small("dev")?) }];
    for name in DEVICES {
        let name = Path::new("/dev").join(name);
        // A container may not have all of them.
        if let Ok(mount) = clone_of(CWD, &name) {
            let access = ListedAccess::Read;
            parts.push(RootPart { name, mount, is_directory: false, access, is_frame: false });
        }
    }
    let options = [("ptmxmode", "666"), ("mode", "620")];
    let terminals = file_system("devpts", &options, MountAttrFlags::MOUNT_ATTR_NOEXEC, true);
    let terminals = terminals.or_else(|_| clone_of(CWD, Path::new("/dev/pts")));
    parts.extend(terminals.ok().map(|mount| RootPart::directory("/dev/pts", mount)));
    Ok(parts)
}

fn small(source: &str) -> io::Result<OwnedFd> {
    let options = [("source", source), ("mode", "755"), ("size", "1m")];
    file_system("tmpfs", &options, MountAttrFlags::MOUNT_ATTR_NOEXEC, false)
}

fn scratch(source: &str, mode: &str) -> io::Result<OwnedFd> {
    let options = [("source", source), ("mode", mode), ("size", SCRATCH_SIZE)];
    file_system("tmpfs", &options, MountAttrFlags::empty(), false)
}

/// The new root while it is being filled.
struct Root(OwnedFd);

impl Root {
    /// An empty one, which lies where nobody looks.
    fn staged() -> io::Result<Self> {
        let root = small("root")?;
        put(&root, &rustix::fs::open(STAGE, DIRECTORY, Mode::empty())?)?;
        Ok(Self(root))
    }

    /// Makes a link, unless something is there or on the way. It is one more name for something, and no program needs it to start.
    fn link(&self, path: &Path, target: &Path) {
        if let Ok((above, name)) = self.above(path) {
            let _ = rustix::fs::symlinkat(target, &above, name);
        }
    }

    /// Makes a directory on the way to something, as a mount of its own, so that it keeps its name. Files can be made in it.
    fn pin(&self, path: &Path) -> io::Result<()> {
        let (above, name) = self.above(path)?;
        let place = step(&above, name, path)?;
        put(&clone_of(&place, Path::new(""))?, &place)
    }

    /// The place for a part. What it is put on is made if it is not there.
    fn place(&self, part: &RootPart) -> io::Result<OwnedFd> {
        let (above, name) = self.above(&part.name)?;
        if part.is_directory {
            return step(&above, name, &part.name);
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&above, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => {
                let empty = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                rustix::fs::openat(&above, name, empty, Mode::RUSR)?;
                Ok(rustix::fs::openat(&above, name, flags, Mode::empty())?)
            }
            found => Ok(found?),
        }
    }

    /// The directory above a path, made if it is not there, and the path's last name.
    fn above<'a>(&self, path: &'a Path) -> io::Result<(OwnedFd, &'a Path)> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut here = rustix::fs::openat(&self.0, ".", DIRECTORY, Mode::empty())?;
        let mut whole = PathBuf::from("/");
        for part in path.parent().into_iter().flat_map(Path::iter).skip(1) {
            whole.push(part);
            here = step(&here, Path::new(part), &whole)?;
        }
        Ok((here, Path::new(name)))
    }

    /// Takes the place of the root of this process, and lets go of that.
    fn become_root(&self) -> io::Result<()> {
        set_read_only(&self.0, Path::new(""), false)?;
        rustix::process::fchdir(&self.0)?;
        // The old root lies over the new one then, until it is let go.
        rustix::process::pivot_root(".", ".")?;
        rustix::mount::unmount(".", UnmountFlags::DETACH)?;
        Ok(rustix::process::chdir("/")?)
    }
}

/// The directory of that name, made if it is not there: with the owner and the mode that it has in the old root, by its whole
/// name, so that nobody gets through a directory who was kept out there.
fn step(above: &OwnedFd, name: &Path, whole: &Path) -> io::Result<OwnedFd> {
    match rustix::fs::openat(above, name, DIRECTORY, Mode::empty()) {
        Err(Errno::NOENT) => {}
        found => return Ok(found?),
    }
    rustix::fs::mkdirat(above, name, Mode::from_raw_mode(0o755))?;
    if let Ok(found) = rustix::fs::statat(CWD, whole, AtFlags::SYMLINK_NOFOLLOW)
        && FileType::from_raw_mode(found.st_mode) == FileType::Directory
    {
        // In a namespace of users there is nobody else to whom it could be given, nor anybody to keep out.
        let owner = (Some(Uid::from_raw(found.st_uid)), Some(Gid::from_raw(found.st_gid)));
        let _ = rustix::fs::chownat(above, name, owner.0, owner.1, AtFlags::SYMLINK_NOFOLLOW);
        let mode = Mode::from_raw_mode(found.st_mode & 0o777);
        rustix::fs::chmodat(above, name, mode, AtFlags::empty())?;
    }
    Ok(rustix::fs::openat(above, name, DIRECTORY, Mode::empty())?)
}

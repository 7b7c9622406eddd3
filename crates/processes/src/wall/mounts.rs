//! The part of the wall that mounts make: in a mount namespace of the agent's own, an empty file system lies over each
//! hidden directory, what is kept is put back into it, and directories above it cannot be renamed.
//!
//! Everything else stays as it is, files that come later too. A process without rights over the namespace cannot take a
//! cover away, and one that makes a namespace of its own gets the covers locked.

use std::collections::BTreeSet;
use std::ffi::{CString, OsStr};
use std::fs::DirEntry;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
};
use rustix::process::DumpableBehavior;
use rustix::thread::UnshareFlags;
use serde::{Deserialize, Serialize};

use super::enforce::{Separation, until};
use super::held::HeldFile;

/// A directory that is looked at by nobody but us, and not behind a link.
pub(super) const DIRECTORY: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// The files that rule a group of processes. An agent of the server's user could end the server there.
const GROUPS: &str = "/sys/fs/cgroup";
/// Settings by which root makes the kernel start programs, outside of any wall.
const SETTINGS: [&str; 3] = ["/proc/sys", "/proc/sysrq-trigger", "/sys"];

/// Where the kernel shows processes.
const PROCESSES: &str = "/proc";
/// The number of the last process that was made in our namespace of them.
const LAST_NUMBER: &str = "/proc/sys/kernel/ns_last_pid";

/// A mount namespace of our own; and one of what processes share, with a view of processes, if we are the first process
/// of a namespace of those. As root just so, else together with a user namespace in which we are who we were: `us` are our user
/// and our group. It is ours already where we are the first process.
pub(super) fn separate(separation: Separation, us: Option<(u32, u32)>) -> io::Result<()> {
    let is_first = separation == Separation::Processes;
    let others = match (is_first, us) {
        (true, _) => UnshareFlags::NEWIPC,
        (false, Some(_)) => UnshareFlags::NEWUSER,
        (false, None) => UnshareFlags::empty(),
    };
    if is_first {
        become_who_we_were(us)?;
    }
    // SAFETY: the table of descriptors stays shared with nobody but ourselves; we are alone in this process.
    #[allow(unsafe_code)]
    unsafe {
        rustix::thread::unshare_unsafe(UnshareFlags::NEWNS | others)?;
    }
    if !is_first {
        become_who_we_were(us)?;
    }
    // What is mounted outside later comes in; nothing goes out.
    rustix::mount::mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    if is_first {
        take_a_number();
        let processes = file_system("proc", &[], MountAttrFlags::MOUNT_ATTR_NOEXEC, false)?;
        put(&processes, &rustix::fs::open(PROCESSES, DIRECTORY, Mode::empty())?)?;
    }
    Ok(())
}

/// Says who we are in a new user namespace, in which we are nobody yet.
fn become_who_we_were(us: Option<(u32, u32)>) -> io::Result<()> {
    let Some((uid, gid)) = us else { return Ok(()) };
    // Our copy of the supervisor is closed to its own user as that is, and so would its files in /proc be.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    // The kernel wants this first: nobody may shed a group that keeps them out of something.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

/// Gives the next process of our namespace, which is the agent, the number that we have outside. All agents would have the
/// number 2 otherwise, and so would the names that they make of it, in directories that they share.
fn take_a_number() {
    let outside = std::fs::read_link("/proc/self").ok();
    let number = outside.as_ref().and_then(|name| name.to_str()?.parse::<u32>().ok());
    if let Some(number) = number.filter(|number| *number > 2) {
        // A kernel that cannot counts from 2.
        let _ = std::fs::write(LAST_NUMBER, (number - 1).to_string());
    }
}

/// Something hidden, and the paths inside of it that stay.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct HiddenFile {
    pub(super) held: HeldFile,
    pub(super) keep: Vec<PathBuf>,
}

/// Why nothing is covered.
#[derive(Debug)]
pub(super) enum CoverError {
    /// The kernel does not let us make mounts.
    Cannot(io::Error),
    /// Somebody renames it all the time.
    Moving(PathBuf),
}

impl From<io::Error> for CoverError {
    fn from(why: io::Error) -> Self {
        Self::Cannot(why)
    }
}

/// Covers what is hidden, puts back what is kept, and pins the directories above. All by descriptor: a name may lead
/// elsewhere from one moment to the next.
/// Answers the covers in which something is kept.
pub(super) fn cover(
    hidden: &[HiddenFile],
    agent: u32,
    deadline: Instant,
) -> Result<Vec<KeptCover>, CoverError> {
    let mut found = Vec::new();
    for hidden in hidden.iter().filter(|hidden| !hidden.held.is_gone()) {
        found.extend(find(hidden, deadline)?);
    }
    // The innermost first: what is kept of something is put back with whatever is covered inside of it.
    found.sort_by_key(|found| std::cmp::Reverse(found.name.components().count()));
    let (mut covers, mut kept) = (Covers::default(), Vec::new());
    for found in &found {
        match found.cover() {
            Ok(cover) => {
                covers.add(&cover)?;
                if !found.keep.is_empty() {
                    kept.push(KeptCover { name: found.hidden.held.name.clone(), cover });
                }
            }
            // Removed at this very moment, and not for want of mounts.
            Err(why) if why.kind() == io::ErrorKind::NotFound => {
                return Err(CoverError::Moving(found.name.clone()));
            }
            Err(why) => return Err(why.into()),
        }
    }
    for found in &found {
        let mut is_shut = || {
            found.hidden.held.is_gone() || matches!(pin_above(&found.hidden.held, agent, &covers), Ok(true))
        };
        if !until(deadline, &mut is_shut) {
            return Err(CoverError::Moving(found.name.clone()));
        }
    }
    Ok(kept)
}

/// The cover of something hidden in which something is kept.
pub(super) struct KeptCover {
    pub(super) name: PathBuf,
    pub(super) cover: OwnedFd,
}

/// Something hidden as it is in the agent's own namespace, not covered yet.
struct Found<'a> {
    hidden: &'a HiddenFile,
    name: PathBuf,
    place: OwnedFd,
    /// Each directory inside of it that stays, by its path from there.
    keep: Vec<(&'a Path, OwnedFd)>,
}

/// Nothing if it has gone meanwhile.
fn find(hidden: &HiddenFile, deadline: Instant) -> Result<Option<Found<'_>>, CoverError> {
    let mut found = Ok(None);
    let mut look = || {
        found = hidden.held.find();
        !matches!(found, Ok(None)) || hidden.held.is_gone()
    };
    if !until(deadline, &mut look) {
        return Err(CoverError::Moving(hidden.held.name.clone()));
    }
    let Some((name, place)) = found? else { return Ok(None) };
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let open = |kept: &Path| rustix::fs::openat2(&place, kept, DIRECTORY, Mode::empty(), beneath).ok();
    // What is not there cannot be kept.
    let keep = hidden.keep.iter().filter_map(|kept| Some((kept.as_path(), open(kept)?))).collect();
    Ok(Some(Found { hidden, name, place, keep }))
}

impl Found<'_> {
    /// Covers it. Answers the cover.
    fn cover(&self) -> io::Result<OwnedFd> {
        if FileType::from_raw_mode(rustix::fs::fstat(&self.place)?.st_mode) != FileType::Directory {
            let nothing = clone_of(CWD, Path::new("/dev/null"))?;
            put(&nothing, &self.place)?;
            return Ok(nothing);
        }
        let cover = empty_directory()?;
        // As it is now: with what was covered inside of it.
        let kept: Vec<_> = self
            .keep
            .iter()
            .map(|(path, place)| Ok((path, clone_of(place, Path::new(""))?)))
            .collect::<io::Result<_>>()?;
        put(&cover, &self.place)?;
        for (path, mount) in kept {
            // Inside of something that was put back it is there already.
            let is_inside = |(other, _): &(&Path, OwnedFd)| path.starts_with(other) && other != path;
            if !self.keep.iter().any(is_inside) {
                put(&mount, &make_way(&cover, path)?)?;
            }
        }
        set_read_only(&cover, Path::new(""), false)?;
        Ok(cover)
    }
}

/// An empty file system that is nowhere yet.
fn empty_directory() -> io::Result<OwnedFd> {
    let options = [("source", "hidden"), ("mode", "755"), ("size", "64k")];
    file_system("tmpfs", &options, MountAttrFlags::MOUNT_ATTR_NOEXEC, false)
}

/// A new file system that is nowhere yet, in which nothing gives anybody rights. Devices are only in one that is made of them.
pub(super) fn file_system(
    kind: &str,
    options: &[(&str, &str)],
    besides: MountAttrFlags,
    is_of_devices: bool,
) -> io::Result<OwnedFd> {
    let made = rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        rustix::mount::fsconfig_set_string(made.as_fd(), *key, *value)?;
    }
    rustix::mount::fsconfig_create(made.as_fd())?;
    let no_devices = if is_of_devices { MountAttrFlags::empty() } else { MountAttrFlags::MOUNT_ATTR_NODEV };
    let bare = MountAttrFlags::MOUNT_ATTR_NOSUID | no_devices | besides;
    Ok(rustix::mount::fsmount(made.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, bare)?)
}

/// Makes the directories of a path inside of a cover.
fn make_way(cover: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    let mut here = rustix::fs::openat(cover, ".", DIRECTORY, Mode::empty())?;
    for name in path {
        match rustix::fs::mkdirat(&here, name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(why) => return Err(why.into()),
        }
        here = rustix::fs::openat(&here, name, DIRECTORY, Mode::empty())?;
    }
    Ok(here)
}

/// The mounts over what is hidden: file systems of ours, and the file that has nothing in it.
#[derive(Default)]
struct Covers {
    devices: BTreeSet<u64>,
    nothing: Option<(u64, u64)>,
}

impl Covers {
    fn add(&mut self, cover: &OwnedFd) -> io::Result<()> {
        let found = rustix::fs::fstat(cover)?;
        if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
            self.devices.insert(found.st_dev);
        } else {
            self.nothing = Some((found.st_dev, found.st_ino));
        }
        Ok(())
    }

    fn has(&self, place: &OwnedFd) -> bool {
        rustix::fs::fstat(place).is_ok_and(|found| {
            self.devices.contains(&found.st_dev) || self.nothing == Some((found.st_dev, found.st_ino))
        })
    }
}

/// Goes down to something that is covered, and puts each directory on the way that the agent could rename onto itself: the
/// kernel renames nothing that something is mounted on. Answers whether the way ended at a cover.
///
/// Such a directory is a mount of its own, so a file cannot be renamed across its edge, only copied. The covers came
/// first: they are on what is below, and copied along.
fn pin_above(held: &HeldFile, agent: u32, covers: &Covers) -> io::Result<bool> {
    let name = held.name_now()?;
    let steps: Vec<&OsStr> = name.iter().skip(1).collect();
    let Some((last, above)) = steps.split_last() else { return Ok(false) };
    let mut here = rustix::fs::open("/", DIRECTORY, Mode::empty())?;
    for step in above {
        let next = match rustix::fs::openat(&here, *step, DIRECTORY, Mode::empty()) {
            // Nothing of ours leads further down.
            Err(Errno::NOENT) if covers.has(&here) => return Ok(true),
            next => next?,
        };
        let is_pinned = covers.has(&next) || !may_be_renamed(&here, &next, agent)?;
        here = if is_pinned { next } else { pin(next)? };
    }
    match rustix::fs::openat(&here, *last, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT) => Ok(covers.has(&here)),
        found => Ok(covers.has(&found?)),
    }
}

/// True if the agent's user could give a directory another name: not of one that something is mounted on, nor of a
/// stranger's one among strangers.
fn may_be_renamed(above: &OwnedFd, directory: &OwnedFd, agent: u32) -> io::Result<bool> {
    let mask = StatxFlags::BASIC_STATS;
    let here = rustix::fs::statx(directory, "", AtFlags::EMPTY_PATH, mask)?;
    if here.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
        return Ok(false);
    }
    let above = rustix::fs::fstat(above)?;
    let others_may = above.st_mode & 0o022 != 0;
    let only_owners_may = above.st_mode & libc::S_ISVTX != 0;
    Ok(agent == 0 || above.st_uid == agent || others_may && (!only_owners_may || here.stx_uid == agent))
}

fn pin(directory: OwnedFd) -> io::Result<OwnedFd> {
    let mount = clone_of(&directory, Path::new(""))?;
    put(&mount, &directory)?;
    Ok(mount)
}

/// A mount of that file or directory with everything below, not yet anywhere.
pub(super) fn clone_of(at: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    Ok(rustix::mount::open_tree(at, path, flags)?)
}

/// Mounts it there.
pub(super) fn put(mount: &OwnedFd, place: &OwnedFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(rustix::mount::move_mount(mount, "", place, "", flags)?)
}

/// Takes the levers away by which processes are ruled from a distance. An older kernel cannot; the proof tells.
pub(super) fn fix(is_root: bool) {
    let _ = set_read_only(CWD, Path::new(GROUPS), true);
    if is_root {
        for path in SETTINGS.map(Path::new) {
            // Not everything is a mount already.
            let again = |_| {
                let place = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
                set_read_only(pin(place)?, Path::new(""), true)
            };
            let _ = set_read_only(CWD, path, true).or_else(again);
        }
    }
}

/// Makes what is mounted there read-only; with everything below, if asked.
pub(super) fn set_read_only(at: impl AsFd, path: &Path, recursively: bool) -> io::Result<()> {
    #[repr(C)]
    struct Attributes {
        set: u64,
        clear: u64,
        propagation: u64,
        users: u64,
    }
    let path = CString::new(path.as_os_str().as_encoded_bytes())?;
    let wanted = Attributes {
        set: u64::from(MountAttrFlags::MOUNT_ATTR_RDONLY.bits()),
        clear: 0,
        propagation: 0,
        users: 0,
    };
    let flags = libc::AT_EMPTY_PATH | if recursively { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: reads a text that ends with NUL and a structure of the length it is told.
    #[allow(unsafe_code)]
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            at.as_fd().as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const wanted,
            size_of::<Attributes>(),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The disks themselves, which root could read past every cover.
pub(super) fn disks() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    // The list itself says what each is, so that nobody has to ask for a hundred of them one by one.
    let is_disk = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_block_device());
    entries.filter(is_disk).map(|entry| entry.path()).collect()
}

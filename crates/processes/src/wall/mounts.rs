//! The part of the wall that mounts make: in a mount namespace of the agent's own, an empty file system lies over each
//! hidden directory, and what is kept is put back into it.
//!
//! Everything else stays as it is, files that come later too. A process without rights over the namespace cannot take a
//! cover away, and one that makes a namespace of its own gets the covers locked. The one place with unsafe code beside
//! `spawn` and `probe`.

use std::ffi::CString;
use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
};
use rustix::process::DumpableBehavior;
use rustix::thread::UnshareFlags;

use super::is_hidden;

/// The files that rule a group of processes. An agent of the server's user could end the server there.
const GROUPS: &str = "/sys/fs/cgroup";
/// Settings by which root makes the kernel start programs, outside of any wall.
const SETTINGS: [&str; 3] = ["/proc/sys", "/proc/sysrq-trigger", "/sys"];

/// A mount namespace of our own: as root just so, else together with a user namespace in which we are who we were.
pub(super) fn separate(with_users: bool) -> io::Result<()> {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let users = if with_users { UnshareFlags::NEWUSER } else { UnshareFlags::empty() };
    // SAFETY: the table of descriptors stays shared with nobody but ourselves; we are alone in this process.
    #[allow(unsafe_code)]
    unsafe {
        rustix::thread::unshare_unsafe(UnshareFlags::NEWNS | users)?;
    }
    if with_users {
        // Our copy of the supervisor is closed to its own user as that is, and so would its files in /proc be.
        rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        // The kernel wants this first: nobody may shed a group that keeps them out of something.
        std::fs::write("/proc/self/setgroups", "deny")?;
        std::fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
        std::fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    }
    // What is mounted outside later comes in; nothing goes out.
    rustix::mount::mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    Ok(())
}

/// Covers what is hidden and puts back what is kept. All paths are canonical and there.
pub(super) fn cover(hide: &[PathBuf], keep: &[PathBuf]) -> io::Result<()> {
    // Held before they are covered.
    let mut kept = Vec::new();
    for path in keep {
        kept.push((path, hold(path)?));
    }
    let mut outside_in: Vec<&PathBuf> = hide.iter().collect();
    outside_in.sort_by_key(|path| path.components().count());
    let mut covered: Vec<PathBuf> = Vec::new();
    for path in outside_in {
        if is_hidden(path, &covered, keep) {
            continue;
        }
        covered.push(path.clone());
        if path.is_dir() {
            let inside = |(kept, _): &&(&PathBuf, OwnedFd)| innermost(kept, hide) == Some(path);
            cover_directory(path, kept.iter().filter(inside))?;
        } else {
            put(&hold(Path::new("/dev/null"))?, path)?;
        }
    }
    Ok(())
}

/// The innermost of these around a path.
fn innermost<'a>(path: &Path, places: &'a [PathBuf]) -> Option<&'a PathBuf> {
    places.iter().filter(|place| path.starts_with(place)).max_by_key(|place| place.components().count())
}

fn cover_directory<'a>(
    path: &Path,
    kept: impl Iterator<Item = &'a (&'a PathBuf, OwnedFd)>,
) -> io::Result<()> {
    let empty = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in [("source", "hidden"), ("mode", "755"), ("size", "64k")] {
        rustix::mount::fsconfig_set_string(empty.as_fd(), key, value)?;
    }
    rustix::mount::fsconfig_create(empty.as_fd())?;
    let bare = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let cover = rustix::mount::fsmount(empty.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, bare)?;
    put(&cover, path)?;
    for (kept, held) in kept {
        DirBuilder::new().recursive(true).mode(0o755).create(kept)?;
        put(held, kept)?;
    }
    set_read_only(path, false)
}

/// A mount of that file or directory with everything below, not yet anywhere.
fn hold(path: &Path) -> io::Result<OwnedFd> {
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::AT_RECURSIVE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    Ok(rustix::mount::open_tree(CWD, path, flags)?)
}

fn put(mount: &OwnedFd, path: &Path) -> io::Result<()> {
    Ok(rustix::mount::move_mount(mount, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// Takes the levers away by which processes are ruled from a distance. An older kernel cannot; the proof tells.
pub(super) fn fix(is_root: bool) {
    let _ = set_read_only(Path::new(GROUPS), true);
    if is_root {
        for path in SETTINGS.map(Path::new) {
            // Not everything is a mount already.
            let again =
                |_| hold(path).and_then(|held| put(&held, path)).and_then(|()| set_read_only(path, true));
            let _ = set_read_only(path, true).or_else(again);
        }
    }
}

/// Makes what is mounted there read-only; with everything below, if asked.
fn set_read_only(path: &Path, recursively: bool) -> io::Result<()> {
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
    let flags = if recursively { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: reads a text that ends with NUL and a structure of the length it is told.
    #[allow(unsafe_code)]
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            CWD.as_raw_fd(),
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
    let is_disk = |path: &PathBuf| {
        let kind = path.symlink_metadata().map(|found| found.mode() & libc::S_IFMT);
        kind.is_ok_and(|kind| kind == libc::S_IFBLK)
    };
    entries.map(|entry| entry.path()).filter(is_disk).collect()
}

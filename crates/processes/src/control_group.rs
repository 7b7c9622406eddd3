//! A control group (v2) of its own for an attempt, where one can be made: the kernel then ends the whole tree at once.
//!
//! Everything here may fail, and then `reaper` finds the processes by their parents and their mark instead.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::supervisor::frame::{ResourceLimit, ResourceLimits};

/// The threads a process may have on average before the kernel lets the tree have no more: it counts threads, and
/// we count processes. Only what grows faster than we look ever comes so far.
const THREADS_PER_PROCESS: u64 = 32;
/// By this attribute a service manager says that a group is in the hands of whoever runs in it.
const DELEGATED: &str = "user.delegate";

/// The control group of one attempt.
#[derive(Debug, Clone)]
pub(crate) struct ControlGroup {
    path: PathBuf,
}

impl ControlGroup {
    /// Makes it where trees have their groups. `None` where we may not, or where there is no such thing.
    pub(crate) fn make(name: &str) -> Option<Self> {
        let path = place()?.join(name);
        match std::fs::create_dir(&path) {
            Ok(()) => {}
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
            Err(_) => return None,
        }
        Self::at(path)
    }

    /// The one that should be where trees have their groups, if it is there.
    pub(crate) fn find(name: &str) -> Option<Self> {
        Self::at(place()?.join(name))
    }

    /// The one at that place, if it is there.
    pub(crate) fn at(path: PathBuf) -> Option<Self> {
        path.join("cgroup.procs").exists().then_some(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The group as a place for a process to be born in.
    pub(crate) fn directory(&self) -> Option<File> {
        File::open(&self.path).ok()
    }

    /// Where a process writes `0` to move itself in.
    pub(crate) fn entrance(&self) -> Option<File> {
        File::options().write(true).open(self.path.join("cgroup.procs")).ok()
    }

    /// Lets the kernel keep the tree within its limits. Answers those that it does not keep, which are ours to see to: it
    /// only bounds groups below one that has no processes of its own and whose owner lets us. Processes are always ours,
    /// because the kernel refuses to make more and lets the agent go on; its bound is for what is faster than we look.
    pub(crate) fn keep_within(&self, limits: ResourceLimits) -> ResourceLimits {
        let above = self.path.parent().unwrap_or(&self.path);
        for controller in ["+memory", "+pids"] {
            put(&above.join("cgroup.subtree_control"), controller);
        }
        if let Some(processes_max) = limits.processes_max {
            put(&self.path.join("pids.max"), &(u64::from(processes_max) * THREADS_PER_PROCESS).to_string());
        }
        let bounds = |bytes_max: &u64| put(&self.path.join("memory.max"), &bytes_max.to_string());
        let memory_bytes_max = limits.memory_bytes_max.filter(|bytes_max| !bounds(bytes_max));
        if limits.memory_bytes_max.is_some() && memory_bytes_max.is_none() {
            // No way out through the swap, and no half of a tree that goes on.
            put(&self.path.join("memory.swap.max"), "0");
            put(&self.path.join("memory.oom.group"), "1");
        }
        ResourceLimits { memory_bytes_max, ..limits }
    }

    /// The limit for which the kernel has ended something in it, if it has.
    pub(crate) fn exceeded(&self) -> Option<ResourceLimit> {
        let seen = std::fs::read_to_string(self.path.join("memory.events")).unwrap_or_default();
        let kills = seen.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse::<u64>().ok());
        kills.is_some_and(|kills| kills > 0).then_some(ResourceLimit::Memory)
    }

    /// Ends everything in it and below it. Older kernels cannot; the reaper does it then.
    pub(crate) fn kill(&self) {
        put(&self.path.join("cgroup.kill"), "1");
    }

    /// Everything alive in it and below it.
    pub(crate) fn members(&self) -> Vec<i32> {
        let mut members = Vec::new();
        self.visit(&self.path, &mut |group| {
            let text = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
            members.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()));
        });
        members
    }

    /// Takes it away, with whatever groups the agent made below it. Works only when nothing lives in it.
    pub(crate) fn remove(&self) {
        self.visit(&self.path, &mut |group| {
            let _ = std::fs::remove_dir(group);
        });
    }

    /// The groups below first.
    fn visit(&self, group: &Path, see: &mut dyn FnMut(&Path)) {
        for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.visit(&entry.path(), see);
            }
        }
        see(group);
    }
}

/// Writes into a file that the kernel has put there; whether there is one and it took this.
fn put(file: &Path, text: &str) -> bool {
    let open = File::options().write(true).open(file);
    open.is_ok_and(|mut file| file.write_all(text.as_bytes()).is_ok())
}

/// Where trees have their groups: below our own, or beside it if a service manager put us into a part of what it gave us
/// (systemd's `DelegateSubgroup=`). Only then can the kernel keep limits, because a group with processes in it may not
/// bound those below.
fn place() -> Option<PathBuf> {
    let own = own_group()?;
    match own.parent() {
        Some(above) if is_delegated(above) => Some(above.to_path_buf()),
        _ => Some(own),
    }
}

fn is_delegated(group: &Path) -> bool {
    let mut value = [0; 1];
    rustix::fs::getxattr(group, DELEGATED, &mut value) == Ok(1) && value == *b"1"
}

fn own_group() -> Option<PathBuf> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let (root, mount) = mounts.lines().find_map(unified_mount)?;
    // What is mounted may be a part of the hierarchy; our group is named from the hierarchy's top.
    let below = own.strip_prefix(root.trim_end_matches('/'))?;
    Some(Path::new(mount).join(below.trim_start_matches('/')))
}

/// The root and the place of a mount of the unified hierarchy.
fn unified_mount(line: &str) -> Option<(&str, &str)> {
    let (place, kind) = line.split_once(" - ")?;
    let mut fields = place.split(' ').skip(3);
    let (root, mount) = (fields.next()?, fields.next()?);
    kind.starts_with("cgroup2 ").then_some((root, mount))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that looks like a group of a kernel which keeps limits.
    fn group_with(files: &[&str]) -> (tempfile::TempDir, ControlGroup) {
        let above = tempfile::tempdir().unwrap();
        let path = above.path().join("homing-x");
        std::fs::create_dir(&path).unwrap();
        for file in files.iter().chain(&["cgroup.procs"]) {
            std::fs::write(path.join(file), "").unwrap();
        }
        (above, ControlGroup::at(path).unwrap())
    }

    const LIMITS: ResourceLimits = ResourceLimits {
        memory_bytes_max: Some(4_000_000),
        processes_max: Some(100),
        written_bytes_max: None,
    };

    #[test]
    fn a_limit_that_the_kernel_keeps_is_not_ours() {
        let (above, group) = group_with(&["memory.max", "memory.swap.max", "memory.oom.group", "pids.max"]);
        std::fs::write(above.path().join("cgroup.subtree_control"), "").unwrap();
        assert_eq!(group.keep_within(LIMITS), ResourceLimits { memory_bytes_max: None, ..LIMITS });
        let read = |file| std::fs::read_to_string(group.path().join(file)).unwrap();
        assert_eq!([read("memory.max"), read("memory.swap.max")], ["4000000", "0"]);
        assert_eq!([read("memory.oom.group"), read("pids.max")], ["1", "3200"]);
    }

    #[test]
    fn a_limit_that_the_kernel_does_not_keep_is_ours() {
        let (_above, group) = group_with(&[]);
        assert_eq!(group.keep_within(LIMITS), LIMITS);
        assert!(!group.path().join("memory.max").exists(), "only the kernel makes these files");
        assert_eq!(group.keep_within(ResourceLimits::default()), ResourceLimits::default());
    }

    #[test]
    fn a_kill_by_the_kernel_is_seen_and_mere_pressure_is_not() {
        let (_above, group) = group_with(&[]);
        assert_eq!(group.exceeded(), None);
        for (kills, seen) in [(0, None), (2, Some(ResourceLimit::Memory))] {
            let events = format!("low 0\nhigh 3\nmax 51\noom 4\noom_kill {kills}\noom_group_kill 1\n");
            std::fs::write(group.path().join("memory.events"), events).unwrap();
            assert_eq!(group.exceeded(), seen);
        }
    }

    #[test]
    fn the_unified_hierarchy_is_found_among_mounts() {
        let line = "40 33 0:35 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw";
        assert_eq!(unified_mount(line), Some(("/", "/sys/fs/cgroup/unified")));
        assert_eq!(unified_mount("40 33 0:35 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu"), None);
    }
}

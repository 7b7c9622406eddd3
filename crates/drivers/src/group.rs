//! A control group (v2) of its own for an attempt, where one can be made: the kernel then ends the whole tree at once.
//!
//! Everything here may fail, and then `hunt` finds the processes by their parents and their mark instead.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The control group of one attempt.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    path: PathBuf,
}

impl Group {
    /// Makes it below our own group. `None` where we may not, or where there is no such thing.
    pub(crate) fn make(name: &str) -> Option<Self> {
        let path = own_group()?.join(name);
        match std::fs::create_dir(&path) {
            Ok(()) => {}
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
            Err(_) => return None,
        }
        Self::at(path)
    }

    /// The one that should be below our own group, if it is there.
    pub(crate) fn find(name: &str) -> Option<Self> {
        Self::at(own_group()?.join(name))
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

    /// Ends everything in it and below it. Older kernels cannot; the hunt does it then.
    pub(crate) fn kill(&self) {
        let _ = std::fs::write(self.path.join("cgroup.kill"), "1");
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

    #[test]
    fn the_unified_hierarchy_is_found_among_mounts() {
        let line = "40 33 0:35 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw";
        assert_eq!(unified_mount(line), Some(("/", "/sys/fs/cgroup/unified")));
        assert_eq!(unified_mount("40 33 0:35 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu"), None);
    }
}

//! A tree's own view of its processes, where it has a PID namespace: by it we see at once that nothing is there but the agent's own.
//!
//! Nothing leaves such a namespace, so all that the tree has is in it, and a look costs as much as the tree has processes. Found from
//! outside (`reaper`), it costs as much as they have threads, and agents have many: that is done where something else is there, because
//! people are told its number as it is outside.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{CWD, Dir, Mode, OFlags};

use crate::reaper::Process;

/// Where a process sees those of its namespace.
const PROCESSES: &str = "/proc";
/// The number of the first process inside, which is ours.
const FIRST: i32 = 1;

/// The view of whoever asks, to be sent to the supervisor.
pub(super) fn view() -> io::Result<OwnedFd> {
    let directory = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(CWD, PROCESSES, directory, Mode::empty())?)
}

pub(super) struct InsideView {
    processes: OwnedFd,
    /// The agent's own, by their numbers inside. None until they are known.
    own: BTreeSet<Process>,
}

/// The agent's processes, and nothing else is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OwnAlone {
    /// Their number, without the first process.
    pub(super) processes: u32,
    /// When the newest of all was started, in the kernel's ticks.
    pub(super) newest: u64,
}

impl InsideView {
    pub(super) fn new(processes: OwnedFd) -> Self {
        Self { processes, own: BTreeSet::new() }
    }

    /// The agent's own processes are those that are there now, if they are known to be nothing else: as many as were just found from
    /// outside, all of them the agent's own, and the very same when they are looked for again. If not, something was just born or has gone:
    /// agents begin with others that are soon over. Then it is asked again another time.
    pub(super) fn learn_own(&mut self, found: &BTreeSet<Process>, again: impl FnOnce() -> BTreeSet<Process>) {
        if !self.own.is_empty() {
            return;
        }
        if let Some(now) = self.now().ok().filter(|now| now.len() == found.len())
            && again() == *found
        {
            self.own = now;
        }
    }

    /// The agent's own processes, if nothing else is there and all could be looked at.
    pub(super) fn own_alone(&self) -> Option<OwnAlone> {
        let now = self.now().ok().filter(|now| !now.is_empty() && now.is_subset(&self.own))?;
        let agents = now.iter().filter(|process| process.pid != FIRST).count();
        let newest = now.iter().map(|process| process.started).max()?;
        Some(OwnAlone { processes: u32::try_from(agents).unwrap_or(u32::MAX), newest })
    }

    fn now(&self) -> io::Result<BTreeSet<Process>> {
        let mut found = BTreeSet::new();
        for entry in Dir::read_from(&self.processes)? {
            let Some(pid) = number(entry?.file_name()) else { continue };
            found.extend(Process::alive_in(self.processes.as_fd(), pid)?);
        }
        Ok(found)
    }
}

fn number(name: &CStr) -> Option<i32> {
    name.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    /// The view of this machine, in which many come and go: only what belongs to a test counts.
    fn seen_with(own: &[&Child]) -> InsideView {
        let mut seen = InsideView::new(view().unwrap());
        seen.own = own.iter().filter_map(|child| Process::now(child.id().cast_signed())).collect();
        seen
    }

    fn nap() -> Child {
        Command::new("sleep").arg("1000").spawn().unwrap()
    }

    #[test]
    fn whoever_lives_is_seen_and_whoever_has_ended_is_not() {
        let (mut lives, mut ends) = (nap(), nap());
        let seen = seen_with(&[&lives, &ends]);
        let is_there = |now: &BTreeSet<Process>, child: &Child| {
            now.iter().any(|process| process.pid == child.id().cast_signed())
        };
        ends.kill().unwrap();
        let id = rustix::process::Pid::from_raw(ends.id().cast_signed()).unwrap();
        let ended = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(id), ended).unwrap();
        let now = seen.now().unwrap();
        assert!(is_there(&now, &lives), "it has not ended");
        assert!(!is_there(&now, &ends), "it has ended, though nobody has reaped it");
        for child in [&mut lives, &mut ends] {
            let _ = child.kill();
            child.wait().unwrap();
        }
    }

    #[test]
    fn where_others_are_there_nothing_is_said_of_the_own() {
        let mut lives = nap();
        let seen = seen_with(&[&lives]);
        assert_eq!(seen.own_alone(), None, "we are there, too");
        lives.kill().unwrap();
        lives.wait().unwrap();
    }

    /// A directory that looks like the view of a tree with these processes.
    fn put(place: &tempfile::TempDir, pids: &[i32]) {
        for entry in std::fs::read_dir(place.path()).unwrap() {
            std::fs::remove_dir_all(entry.unwrap().path()).unwrap();
        }
        let mine = std::fs::read_to_string("/proc/self/stat").unwrap();
        let (_, rest) = mine.split_once(' ').unwrap();
        for pid in pids {
            std::fs::create_dir(place.path().join(pid.to_string())).unwrap();
            std::fs::write(place.path().join(format!("{pid}/stat")), format!("{pid} {rest}")).unwrap();
        }
    }

    #[test]
    fn what_could_not_be_told_when_the_agent_was_ready_is_learned_later() {
        let place = tempfile::tempdir().unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut seen = InsideView::new(rustix::fs::openat(CWD, place.path(), flags, Mode::empty()).unwrap());
        let outside = |pids: &[i32]| -> BTreeSet<Process> {
            pids.iter().map(|pid| Process { pid: *pid, started: 1 }).collect()
        };
        // One was there when they were looked for from outside, and has gone.
        put(&place, &[1, 7]);
        let found = outside(&[100, 107, 108]);
        seen.learn_own(&found, || found.clone());
        assert_eq!(seen.own_alone(), None, "not as many");
        // As many, but one has gone and another has come meanwhile.
        let found = outside(&[100, 107]);
        seen.learn_own(&found, || outside(&[100, 109]));
        assert_eq!(seen.own_alone(), None, "not the same");
        seen.learn_own(&found, || found.clone());
        assert_eq!(seen.own_alone().map(|own| own.processes), Some(1));
        // Once it is known nothing is added.
        put(&place, &[1, 7, 8]);
        let found = outside(&[100, 107, 108]);
        seen.learn_own(&found, || found.clone());
        assert_eq!(seen.own_alone(), None, "8 is none of the agent's own");
    }
}

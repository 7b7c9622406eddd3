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
    /// The agent's own, by their numbers inside. None until they were counted.
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

    /// The agent's own processes are those that are there now, as many as were found from outside a moment ago. If there are others,
    /// something was just born or has gone, or this does not show everything: then nothing is ever seen by it.
    pub(super) fn remember_own(&mut self, found: usize) {
        self.own = self.now().ok().filter(|now| now.len() == found).unwrap_or_default();
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
        let mut seen = seen_with(&[&lives]);
        assert_eq!(seen.own_alone(), None, "we are there, too");
        seen.remember_own(0);
        assert!(seen.own.is_empty(), "as many as were not found from outside");
        lives.kill().unwrap();
        lives.wait().unwrap();
    }
}

//! Finds every process of an attempt and ends it, until none is found.
//!
//! A process belongs to a tree if it descends from the supervisor (which is a subreaper, so whoever loses its parent
//! becomes the supervisor's child), if it is in the tree's control group, or if its environment has the tree's mark.
//! Each way alone has a gap; a process has to slip through all three. Where they have a PID namespace of their own there is no
//! gap: the kernel ends them with the first process in it. Who comes from outside, after the supervisor's
//! own sudden end, has the supervisor's last list of them in place of the first. Numbers are used again by the kernel, so a process
//! is its number and its start time, and signals go through a descriptor that was opened before the time was compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kernel::TreeName;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, WaitStatus};

use crate::control_group::ControlGroup;
use crate::supervisor::frame::ResourceLimit;

/// The variable that marks every process of a tree with the tree's name.
pub(crate) const TREE_VARIABLE: &str = "HOMING_TREE";
/// The variable that says whose tree it is: where its lock lies. A copy of a data directory has the same names in it.
pub(crate) const TREE_HOME_VARIABLE: &str = "HOMING_TREE_HOME";
/// The looks in a row that must find nothing. One could miss a child that was born behind its back.
const CLEAN_LOOKS: u32 = 2;
/// The pause between two looks while killed processes are still going away.
const LOOK_PAUSE: Duration = Duration::from_millis(5);

/// The length of what the kernel says of a process in one line, and in one read if there is room for it. Fifty numbers, each of at most twenty
/// digits, and a name of at most 64 bytes.
const STAT_BYTES_MAX: usize = 2_048;

/// The most looks at a process in the midst of an exec. It takes far less than this many pauses, even on a busy
/// machine.
pub(crate) const EXEC_LOOKS_MAX: u32 = 100;
/// The pause between two such looks.
pub(crate) const EXEC_PAUSE: Duration = Duration::from_millis(1);

/// The mark on the processes of one tree.
#[derive(Debug, Clone)]
pub(crate) struct TreeMark {
    name: String,
    home: PathBuf,
}

impl TreeMark {
    /// The mark of a tree whose lock lies in that directory.
    pub(crate) fn new(tree: &str, locks: &Path) -> Self {
        let home = locks.canonicalize().unwrap_or_else(|_| locks.to_path_buf());
        Self { name: tree.to_owned(), home }
    }

    /// The mark as variables.
    pub(crate) fn variables(&self) -> [(String, String); 2] {
        let home = self.home.to_string_lossy().into_owned();
        [(TREE_VARIABLE.to_owned(), self.name.clone()), (TREE_HOME_VARIABLE.to_owned(), home)]
    }

    /// The tree's name among all control groups of the machine.
    pub(crate) fn group_name(&self) -> String {
        // FNV-1a, because the next version of us must find what this one made.
        let hash = self.home.as_os_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        format!("homing-{hash:016x}-{}", self.name)
    }

    fn is_on(&self, pid: i32) -> bool {
        let environment = environment_of(pid);
        let wanted = self.variables().map(|(name, value)| format!("{name}={value}").into_bytes());
        wanted.iter().all(|wanted| environment.split(|byte| *byte == 0).any(|variable| variable == wanted))
    }
}

/// A process's environment; empty if it has none or is gone, or is not ours to read: our agents run as us. In the midst of
/// an exec the kernel shows none, though there is one, so then we look again.
fn environment_of(pid: i32) -> Vec<u8> {
    for _ in 0..EXEC_LOOKS_MAX {
        let environment = std::fs::read(format!("/proc/{pid}/environ"));
        match environment {
            Ok(bytes) if bytes.is_empty() && ProcStat::read(pid).is_some_and(|stat| stat.is_in_exec()) => {
                std::thread::sleep(EXEC_PAUSE);
            }
            Ok(bytes) => return bytes,
            Err(_) => break,
        }
    }
    Vec::new()
}

/// True if a process is in the midst of an exec: for a moment the kernel shows neither its environment nor its arguments.
pub(crate) fn is_in_exec(pid: i32) -> bool {
    ProcStat::read(pid).is_some_and(|stat| stat.is_in_exec())
}

/// The number of processes that carry a tree's mark. For tests and `doctor`.
pub fn count_marked(tree: &TreeName, locks: &Path) -> usize {
    let mark = TreeMark::new(tree.as_str(), locks);
    processes().keys().filter(|pid| mark.is_on(**pid)).count()
}

/// One process, for as long as the machine is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) started: u64,
}

impl Process {
    /// The one that has this number now.
    pub(crate) fn now(pid: i32) -> Option<Self> {
        Some(Self { pid, started: ProcStat::read(pid)?.started })
    }

    /// The one that has this number in a view of processes; none if it has ended or gone.
    pub(crate) fn alive_in(view: BorrowedFd<'_>, pid: i32) -> io::Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(view, format!("{pid}/stat"), flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT | Errno::SRCH) => return Ok(None),
            Err(why) => return Err(why.into()),
        };
        let stat = match ProcStat::read_from(file) {
            Ok(stat) => stat,
            // It went between the two.
            Err(why) if why.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => return Ok(None),
            Err(why) => return Err(why),
        };
        Ok((!stat.has_ended()).then_some(Self { pid, started: stat.started }))
    }

    pub(crate) fn kill(self) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        let Ok(descriptor) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { return };
        if Self::now(self.pid) == Some(self) {
            let _ = rustix::process::pidfd_send_signal(&descriptor, Signal::KILL);
        }
    }
}

/// The outcome of a search for processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReapOutcome {
    pub(crate) killed: u32,
    pub(crate) gone: bool,
}

/// A reaper for the processes of one tree.
pub(crate) struct ProcessReaper {
    mark: TreeMark,
    groups: Vec<ControlGroup>,
    /// Processes that somebody who saw them says are of this tree.
    known: Vec<Process>,
    /// The subreaper that all of them descend from, if that is us.
    root: Option<i32>,
    /// The first process of their PID namespace, if they have one of their own: with it the kernel ends all of them. It is
    /// ours, so it counts as none of the agent's.
    pub(crate) first: Option<Process>,
    killed: BTreeSet<Process>,
    /// The ends of children that were ours to reap.
    reaped: Vec<(i32, WaitStatus)>,
}

impl ProcessReaper {
    /// By a stranger: whatever is in these groups, carries the mark, or is one of these or descends from one.
    pub(crate) fn from_outside(mark: TreeMark, groups: Vec<ControlGroup>, known: Vec<Process>) -> Self {
        Self { mark, groups, known, root: None, first: None, killed: BTreeSet::new(), reaped: Vec::new() }
    }

    /// By the tree's own subreaper, this process.
    pub(crate) fn from_above(mark: TreeMark, group: Option<ControlGroup>) -> Self {
        let root = Some(rustix::process::getpid().as_raw_nonzero().get());
        Self { root, ..Self::from_outside(mark, group.into_iter().collect(), Vec::new()) }
    }

    /// Kills what it finds until it finds nothing, or until the time is over.
    pub(crate) fn until_gone(&mut self, deadline: Instant) -> ReapOutcome {
        if self.root.is_some() {
            // Whoever has ended before was not ended by us.
            self.reap();
        }
        if let Some(first) = self.first {
            self.end_with(first, deadline);
        }
        let mut clean_looks = 0;
        while clean_looks < CLEAN_LOOKS {
            let known = self.killed.len();
            let found = self.look_and_kill();
            clean_looks = if found { 0 } else { clean_looks + 1 };
            if found && Instant::now() >= deadline {
                return self.outcome(false);
            }
            // Where somebody new was met, more may be born while we rest.
            if found && self.killed.len() == known {
                std::thread::sleep(LOOK_PAUSE);
            }
        }
        for group in &self.groups {
            group.remove();
        }
        self.outcome(true)
    }

    /// The processes there are now: all that descend from us, and all in the group. Costs as much as the tree is large,
    /// however many processes the machine has.
    pub(crate) fn family(&self) -> BTreeSet<Process> {
        let mut found = BTreeSet::new();
        let mut todo: Vec<i32> = self.root.into_iter().flat_map(children_of).collect();
        todo.extend(self.groups.iter().flat_map(ControlGroup::members));
        while let Some(pid) = todo.pop() {
            // Most are met twice: as somebody's child, and in the group.
            if found.range(Process { pid, started: 0 }..=Process { pid, started: u64::MAX }).next().is_some()
            {
                continue;
            }
            let Some(stat) = ProcStat::read(pid) else { continue };
            // One that has ended and was not reaped yet is no longer there, and has no children.
            if !stat.has_ended() && found.insert(Process { pid, started: stat.started }) {
                todo.extend(children_of(pid));
            }
        }
        found
    }

    /// The number of those that are the agent's.
    pub(crate) fn own(&self, family: &BTreeSet<Process>) -> usize {
        family.len() - usize::from(self.first.is_some_and(|first| family.contains(&first)))
    }

    /// The subreaper that all of them descend from, if that is us.
    pub(crate) fn root(&self) -> Option<i32> {
        self.root
    }

    /// Ends the first process of the namespace, and with it everything inside, which is counted before.
    fn end_with(&mut self, first: Process, deadline: Instant) {
        let family = self.family();
        self.killed.extend(family.into_iter().filter(|process| *process != first));
        let Some(pid) = Pid::from_raw(first.pid) else { return };
        let Ok(descriptor) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { return };
        first.kill();
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        // It has ended when everything inside has. If that takes too long, the looks that follow say so.
        let _ = rustix::event::poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&left));
    }

    /// The limit for which the kernel has ended something of the tree, if it has.
    pub(crate) fn exceeded(&self) -> Option<ResourceLimit> {
        self.groups.iter().find_map(ControlGroup::exceeded)
    }

    /// Takes note of children that have ended. Answers whether there are children left at all; without any, nothing
    /// descends from us, whatever a list of processes says.
    pub(crate) fn reap(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => self.reaped.push((pid.as_raw_nonzero().get(), status)),
                Ok(None) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// The end of that child, if it has ended.
    pub(crate) fn status_of(&self, pid: i32) -> Option<WaitStatus> {
        self.reaped.iter().find(|(reaped, _)| *reaped == pid).map(|(_, status)| *status)
    }

    /// Forgets the ends of children that nobody will ask for, so that a long turn stays small.
    pub(crate) fn forget_all_but(&mut self, pid: i32) {
        self.reaped.retain(|(reaped, _)| *reaped == pid);
    }

    fn look_and_kill(&mut self) -> bool {
        let found = self.look();
        for group in &self.groups {
            group.kill();
        }
        for process in &found {
            process.kill();
            if self.first != Some(*process) {
                self.killed.insert(*process);
            }
        }
        let has_children = self.root.is_some() && self.reap_killed();
        has_children || !found.is_empty()
    }

    /// Reaps, and counts whom the group's end has met before any look had: a child that was born behind our back.
    fn reap_killed(&mut self) -> bool {
        let known = self.reaped.len();
        let has_children = self.reap();
        let was_killed = |status: &WaitStatus| status.terminating_signal() == Some(Signal::KILL.as_raw());
        for (pid, _) in self.reaped[known..].iter().filter(|(_, status)| was_killed(status)) {
            let is_first = self.first.is_some_and(|first| first.pid == *pid);
            if !is_first && !self.killed.iter().any(|process| process.pid == *pid) {
                // Its start time is gone with it; nobody else has its number while it waits to be reaped.
                self.killed.insert(Process { pid: *pid, started: 0 });
            }
        }
        has_children
    }

    fn look(&self) -> Vec<Process> {
        let all = processes();
        let mut ours = self.root.map(|root| descendants(&all, root)).unwrap_or_default();
        ours.extend(self.groups.iter().flat_map(ControlGroup::members));
        ours.extend(all.keys().filter(|pid| self.mark.is_on(**pid)));
        for known in &self.known {
            if all.get(&known.pid).is_some_and(|stat| stat.started == known.started) {
                ours.insert(known.pid);
                ours.extend(descendants(&all, known.pid));
            }
        }
        ours.remove(&rustix::process::getpid().as_raw_nonzero().get());
        // What has ended and only waits to be reaped was not killed by us and cannot be.
        let alive = |stat: &&ProcStat| !stat.has_ended();
        let process = |pid| Some(Process { pid, started: all.get(&pid).filter(alive)?.started });
        ours.into_iter().filter_map(process).collect()
    }

    fn outcome(&self, gone: bool) -> ReapOutcome {
        ReapOutcome { killed: u32::try_from(self.killed.len()).unwrap_or(u32::MAX), gone }
    }
}

#[derive(Debug, Clone, Copy)]
struct ProcStat {
    state: u8,
    parent: i32,
    is_kernels: bool,
    started: u64,
    environment_end: u64,
}

impl ProcStat {
    /// The kernel's flag for threads of its own.
    const KERNEL_THREAD: u64 = 0x0020_0000;

    fn read(pid: i32) -> Option<Self> {
        Self::read_from(File::open(format!("/proc/{pid}/stat")).ok()?).ok()
    }

    fn read_from(mut file: File) -> io::Result<Self> {
        let mut line = [0; STAT_BYTES_MAX];
        let length = file.read(&mut line)?;
        Self::parse(&line[..length]).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// The name in brackets is the process's own choice and may have brackets in it: what counts begins after the last.
    fn parse(text: &[u8]) -> Option<Self> {
        let name_end = text.iter().rposition(|byte| *byte == b')')?;
        let mut fields = std::str::from_utf8(&text[name_end + 1..]).ok()?.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let parent = fields.next()?.parse().ok()?;
        let flags: u64 = fields.nth(4)?.parse().ok()?;
        let started = fields.nth(12)?.parse().ok()?;
        // Not shown by old kernels; then nothing is ever in the midst of an exec.
        let environment_end = fields.nth(28).and_then(|field| field.parse().ok()).unwrap_or(u64::MAX);
        let is_kernels = flags & Self::KERNEL_THREAD != 0;
        Some(Self { state, parent, is_kernels, started, environment_end })
    }

    fn has_ended(&self) -> bool {
        self.state == b'Z' || self.state == b'X'
    }

    /// True if it has no environment yet. One that is merely empty has an end, too.
    fn is_in_exec(&self) -> bool {
        self.environment_end == 0 && !self.is_kernels && !self.has_ended()
    }
}

fn processes() -> BTreeMap<i32, ProcStat> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(|pid| Some((pid, ProcStat::read(pid)?))).collect()
}

/// The children of a process, whichever of its threads has made them.
pub(crate) fn children_of(pid: i32) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| read_at_once(&thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// A file of the kernel's that is mostly empty, without asking for its length first: it has none.
fn read_at_once(path: &Path) -> io::Result<String> {
    let (mut file, mut text, mut piece) = (File::open(path)?, Vec::new(), [0; 1_024]);
    loop {
        match file.read(&mut piece)? {
            0 => return String::from_utf8(text).map_err(io::Error::other),
            length => text.extend_from_slice(&piece[..length]),
        }
    }
}

fn descendants(all: &BTreeMap<i32, ProcStat>, root: i32) -> BTreeSet<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (pid, stat) in all {
        children.entry(stat.parent).or_default().push(*pid);
    }
    let (mut found, mut todo) = (BTreeSet::new(), vec![root]);
    while let Some(parent) = todo.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            found.insert(child);
            todo.push(child);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_call_itself_anything() {
        let text = b"42 (a) R 1 (b) S 7 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9911 1 2 3";
        let stat = ProcStat::parse(text).unwrap();
        assert_eq!((stat.state, stat.parent, stat.started), (b'S', 7, 9911));
        assert!(ProcStat::parse(b"42 (a) S 7").is_none());
        assert!(ProcStat::parse(b"").is_none());
    }

    #[test]
    fn one_read_has_all_that_the_kernel_says_of_a_process() {
        let me = std::process::id().cast_signed();
        let whole = std::fs::read(format!("/proc/{me}/stat")).unwrap();
        assert!(whole.len() < STAT_BYTES_MAX, "{}", whole.len());
        let (read, whole) = (ProcStat::read(me).unwrap(), ProcStat::parse(&whole).unwrap());
        assert_eq!((read.parent, read.started), (whole.parent, whole.started));
        assert_eq!(read.environment_end, whole.environment_end, "the last field that counts");
    }

    #[test]
    fn descendants_are_found_over_generations() {
        let stat =
            |parent| ProcStat { state: b'S', parent, is_kernels: false, started: 1, environment_end: 1 };
        let all = BTreeMap::from([(1, stat(0)), (2, stat(1)), (3, stat(2)), (4, stat(3)), (5, stat(1))]);
        assert_eq!(descendants(&all, 2), BTreeSet::from([3, 4]));
    }

    #[test]
    fn a_process_has_an_environment_unless_it_is_the_kernels() {
        let me = ProcStat::read(std::process::id() as i32).unwrap();
        assert!(!me.is_in_exec() && !me.is_kernels && me.environment_end > 0);
        let mut nap = std::process::Command::new("sleep").arg("1000").env_clear().spawn().unwrap();
        assert!(environment_of(nap.id() as i32).is_empty());
        assert!(!ProcStat::read(nap.id() as i32).unwrap().is_in_exec(), "it has one, and it is empty");
        nap.kill().unwrap();
        nap.wait().unwrap();
    }

    #[test]
    fn a_process_is_more_than_its_number() {
        let me = Process::now(std::process::id() as i32).unwrap();
        Process { started: me.started + 1, ..me }.kill();
        assert_eq!(Process::now(me.pid), Some(me), "we still live");
    }
}

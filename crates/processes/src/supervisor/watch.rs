//! Looks at the tree now and then: writes down what is in it, and says when it takes more than it may.
//!
//! The record is for whoever ends the tree after the supervisor's own sudden death: a process that has shed
//! its mark and lost its parents can be found by nothing else. Memory is measured only where the kernel does not keep the
//! limit. What is written is counted in `written`. A look costs as much as the tree is large, well below a millisecond for an agent.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::frame::{ResourceLimit, ResourceLimits};
use super::written::WrittenCount;
use crate::lock::{LockHolder, TreeLock};
use crate::reaper::{Process, ProcessReaper};

/// The time between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The time between two looks where memory is ours to measure: it can grow fast.
const MEASURE_EVERY: Duration = Duration::from_millis(250);
/// The time between two looks where writing is bounded. A fast disk takes some hundred megabytes meanwhile.
const WRITTEN_EVERY: Duration = Duration::from_millis(100);

pub(super) struct LimitWatch {
    /// The limits that are ours to keep.
    limits: ResourceLimits,
    holder: LockHolder,
    seen: BTreeSet<Process>,
    written: WrittenCount,
    next: Instant,
}

impl LimitWatch {
    /// The first look is due at once: what a start brings up is written down early.
    pub(super) fn new(limits: ResourceLimits, holder: LockHolder) -> Self {
        let (seen, written) = (BTreeSet::new(), WrittenCount::default());
        Self { limits, holder, seen, written, next: Instant::now() }
    }

    /// The time until the next look.
    pub(super) fn wait(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Looks, if it is time to. Answers the limit that the tree is beyond.
    pub(super) fn look(&mut self, reaper: &ProcessReaper, lock: &mut TreeLock) -> Option<ResourceLimit> {
        if !self.wait().is_zero() {
            return None;
        }
        let every = match self.limits {
            ResourceLimits { written_bytes_max: Some(_), .. } => WRITTEN_EVERY,
            ResourceLimits { memory_bytes_max: Some(_), .. } => MEASURE_EVERY,
            _ => LOOK_EVERY,
        };
        self.next = Instant::now() + every;
        let family = reaper.family();
        let limit = self.exceeded(&family, reaper.own(&family), reaper.root());
        if family != self.seen {
            self.holder.seen = family.iter().map(|process| (process.pid, process.started)).collect();
            // A list that cannot be written is one of several ways to find them.
            let _ = lock.sign(&mut self.holder);
            self.seen = family;
        }
        limit
    }

    fn exceeded(
        &mut self,
        family: &BTreeSet<Process>,
        processes: usize,
        root: Option<i32>,
    ) -> Option<ResourceLimit> {
        let ResourceLimits { memory_bytes_max, processes_max, written_bytes_max } = self.limits;
        if processes_max.is_some_and(|processes_max| processes > processes_max as usize) {
            return Some(ResourceLimit::Processes);
        }
        if written_bytes_max.is_some_and(|bytes_max| self.written.look(family.iter(), root) > bytes_max) {
            return Some(ResourceLimit::Written);
        }
        let bytes_max = memory_bytes_max?;
        // Pages that several of them share count for each here, so this is only a hint; the exact sum costs more.
        let at_most: u64 = family.iter().map(|process| resident_bytes(process.pid)).sum();
        let is_over = at_most > bytes_max
            && family.iter().map(|process| proportional_bytes(process.pid)).sum::<u64>() > bytes_max;
        is_over.then_some(ResourceLimit::Memory)
    }
}

fn resident_bytes(pid: i32) -> u64 {
    bytes_in(&format!("/proc/{pid}/status"), "VmRSS:").unwrap_or(0)
}

/// Its share of the pages it has. Where we may not ask, all of them.
fn proportional_bytes(pid: i32) -> u64 {
    bytes_in(&format!("/proc/{pid}/smaps_rollup"), "Pss:").unwrap_or_else(|| resident_bytes(pid))
}

/// A figure that stands in kilobytes behind its name.
fn bytes_in(file: &str, name: &str) -> Option<u64> {
    Some(figure_in(file, name)? * 1024)
}

/// The figure behind its name in a file of the kernel's; none if it cannot be read.
pub(super) fn figure_in(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let figure = text.lines().find_map(|line| line.strip_prefix(name))?;
    figure.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_share_of_what_it_holds() {
        let me = std::process::id().cast_signed();
        let (all, share) = (resident_bytes(me), proportional_bytes(me));
        assert!(share > 0 && share <= all, "{share} of {all}");
        assert_eq!((resident_bytes(-1), proportional_bytes(-1)), (0, 0));
    }

    #[test]
    fn each_limit_is_kept_and_none_is_none() {
        let me = BTreeSet::from([Process::now(std::process::id().cast_signed()).unwrap()]);
        let holder = LockHolder { pid: 1, started: 1, group: None, seen: Vec::new() };
        let exceeded = |memory_bytes_max, processes_max| {
            let limits = ResourceLimits { memory_bytes_max, processes_max, written_bytes_max: None };
            LimitWatch::new(limits, holder.clone()).exceeded(&me, 1, None)
        };
        assert_eq!(exceeded(None, None), None);
        assert_eq!(exceeded(Some(u64::MAX), Some(1)), None);
        assert_eq!(exceeded(Some(4_096), None), Some(ResourceLimit::Memory));
        assert_eq!(exceeded(None, Some(0)), Some(ResourceLimit::Processes));
    }
}

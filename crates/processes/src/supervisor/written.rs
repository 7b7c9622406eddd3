//! The bytes that a tree has written, to files and to each other, as the kernel counts them for each process.
//!
//! The kernel adds what a process had written to its parent's when that has waited for it. Nobody's parent but the tree's own reaper waits
//! for one that has lost its parent, and of that nobody may read: what such a one had written when it was last seen is kept here. So
//! what is missed is what an orphan writes between the last look and its end.

use std::collections::{BTreeMap, BTreeSet};

use super::watch::figure_in;
use crate::reaper::{Process, children_of};

#[derive(Debug, Default)]
pub(super) struct WrittenCount {
    /// The bytes of orphans that are gone.
    gone: u64,
    /// Those of the ones that are there.
    orphans: BTreeMap<Process, u64>,
}

impl WrittenCount {
    /// The bytes of all that are there and of all that were. `reapers` wait for whoever has lost its parent.
    pub(super) fn look(&mut self, family: &BTreeSet<Process>, reapers: impl Iterator<Item = i32>) -> u64 {
        let orphans: BTreeSet<i32> = reapers.flat_map(children_of).collect();
        let before = std::mem::take(&mut self.orphans);
        let mut bytes = 0;
        for process in family {
            let known = before.get(process).copied().unwrap_or(0);
            // One that has just ended, or lets nobody read of it, has what it had.
            let written = figure_in(&format!("/proc/{}/io", process.pid), "wchar:").unwrap_or(0).max(known);
            bytes += written;
            if orphans.contains(&process.pid) {
                self.orphans.insert(*process, written);
            }
        }
        self.gone += before
            .iter()
            .filter(|(process, _)| !family.contains(process))
            .map(|(_, bytes)| bytes)
            .sum::<u64>();
        bytes + self.gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{Command, Stdio};

    #[test]
    fn what_a_process_and_its_ended_children_wrote_counts_and_what_an_orphan_wrote_stays() {
        let place = tempfile::tempdir().unwrap();
        let mut writer = Command::new("sh")
            .args([
                "-c",
                "head -c 3000000 /dev/zero > one; head -c 4000000 /dev/zero > two; echo; exec sleep 1000",
            ])
            .current_dir(place.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        writer.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let family = BTreeSet::from([Process::now(writer.id().cast_signed()).unwrap()]);
        let me = || std::iter::once(std::process::id().cast_signed());
        let mut count = WrittenCount::default();
        let there = count.look(&family, me());
        assert!((7_000_000..7_100_000).contains(&there), "{there}");
        writer.kill().unwrap();
        writer.wait().unwrap();
        // Its parent is one of which nobody may read.
        assert_eq!(count.look(&BTreeSet::new(), me()), there);
        assert_eq!(count.look(&BTreeSet::new(), me()), there, "once");
    }
}

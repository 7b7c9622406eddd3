//! The bytes that a tree has written, to files and to each other, as the kernel counts them for each process.
//!
//! The kernel adds what a process had written to its parent's when that has waited for it. Not every parent waits: one may go first, one
//! may never ask, and of the tree's own reaper, which waits for all others, nobody may read. So what each had written is kept here, and
//! what of it has not come to whoever is above it when it is gone stays counted. What is missed is what such a one writes between
//! the last look and its end.

use std::collections::BTreeMap;

use super::watch::figure_in;
use crate::reaper::{Process, children_of};

#[derive(Debug, Default)]
pub(super) struct WrittenCount {
    /// The bytes of those who are gone, and for whom nobody has waited.
    gone: u64,
    /// Those who were there at the last look, also if they had ended.
    seen: BTreeMap<Process, SeenWriter>,
}

#[derive(Debug)]
struct SeenWriter {
    bytes: u64,
    /// None: the tree's reaper.
    parent: Option<Process>,
}

impl WrittenCount {
    /// The bytes of all that are there and of all that were. `family` are those that run; `root` is who waits for whoever has lost its
    /// parent, and is none of them.
    pub(super) fn look<'a>(
        &mut self,
        family: impl Iterator<Item = &'a Process> + Clone,
        root: Option<i32>,
    ) -> u64 {
        let before = std::mem::take(&mut self.seen);
        let parents = family.clone().map(|parent| (parent.pid, Some(*parent)));
        for (pid, parent) in root.map(|root| (root, None)).into_iter().chain(parents) {
            for child in children_of(pid).into_iter().filter_map(Process::now) {
                self.note(child, parent, &before);
            }
        }
        // Some have come by other ways than from those above them.
        for process in family {
            if !self.seen.contains_key(process) {
                self.note(*process, None, &before);
            }
        }
        self.gone += self.owed(&before);
        self.seen.values().map(|writer| writer.bytes).sum::<u64>() + self.gone
    }

    fn note(&mut self, process: Process, parent: Option<Process>, before: &BTreeMap<Process, SeenWriter>) {
        let known = before.get(&process).map_or(0, |writer| writer.bytes);
        // One that lets nobody read of it has what it had.
        let bytes = figure_in(&format!("/proc/{}/io", process.pid), "wchar:").unwrap_or(0).max(known);
        self.seen.insert(process, SeenWriter { bytes, parent });
    }

    /// The bytes of those who are gone that have come to nobody above them.
    fn owed(&self, before: &BTreeMap<Process, SeenWriter>) -> u64 {
        let mut lost: BTreeMap<Option<Process>, u64> = BTreeMap::new();
        for (_, writer) in before.iter().filter(|(process, _)| !self.seen.contains_key(process)) {
            let mut above = writer.parent;
            while let Some(gone) = above.filter(|above| !self.seen.contains_key(above)) {
                above = before.get(&gone).and_then(|gone| gone.parent);
            }
            *lost.entry(above).or_default() += writer.bytes;
        }
        let came_to = |heir: Option<Process>| {
            let bytes = |of: &BTreeMap<Process, SeenWriter>| heir.and_then(|heir| Some(of.get(&heir)?.bytes));
            bytes(&self.seen).unwrap_or(0) - bytes(before).unwrap_or(0)
        };
        lost.into_iter().map(|(heir, bytes)| bytes.saturating_sub(came_to(heir))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::process::{Child, Command, Stdio};

    /// A shell that does this in a directory of its own, and says so when it is done.
    fn shell(place: &tempfile::TempDir, lines: &str) -> Child {
        let mut shell = Command::new("sh");
        shell.args(["-c", lines]).current_dir(place.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        shell.spawn().unwrap()
    }

    fn until_it_says_so(shell: &mut Child) {
        shell.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    }

    fn process(shell: &Child) -> Process {
        Process::now(shell.id().cast_signed()).unwrap()
    }

    fn end(mut shell: Child) {
        shell.kill().unwrap();
        shell.wait().unwrap();
    }

    #[test]
    fn what_a_process_and_its_ended_children_wrote_counts_and_what_an_orphan_wrote_stays() {
        let place = tempfile::tempdir().unwrap();
        let lines = "head -c 3000000 /dev/zero > one; head -c 4000000 /dev/zero > two; echo; exec sleep 1000";
        let mut writer = shell(&place, lines);
        until_it_says_so(&mut writer);
        let mut count = WrittenCount::default();
        let there = count.look([process(&writer)].iter(), None);
        assert!((7_000_000..7_100_000).contains(&there), "{there}");
        end(writer);
        // Its parent is one of which nobody may read.
        assert_eq!(count.look([].iter(), None), there);
        assert_eq!(count.look([].iter(), None), there, "once");
    }

    #[test]
    fn what_one_wrote_counts_whose_parent_never_waits_for_it() {
        let place = tempfile::tempdir().unwrap();
        // The second program knows nothing of the first, which is over when it has closed our pipe.
        let lines = "head -c 5000000 /dev/zero 3>&1 > one & exec sleep 1000 > /dev/null";
        let mut parent = shell(&place, lines);
        parent.stdout.as_mut().unwrap().read_to_end(&mut Vec::new()).unwrap();
        let mut count = WrittenCount::default();
        let there = count.look([process(&parent)].iter(), None);
        assert!((5_000_000..5_100_000).contains(&there), "{there}");
        // Both go at once.
        end(parent);
        assert_eq!(count.look([].iter(), None), there);
    }

    #[test]
    fn what_one_wrote_for_whom_its_parent_has_waited_counts_once() {
        let place = tempfile::tempdir().unwrap();
        let lines = "sh -c 'head -c 5000000 /dev/zero > one; echo; read word; true'; echo; exec sleep 1000";
        let mut parent = shell(&place, lines);
        let family = [process(&parent)];
        until_it_says_so(&mut parent);
        let mut count = WrittenCount::default();
        for _ in 0..2 {
            let there = count.look(family.iter(), None);
            assert!((5_000_000..5_100_000).contains(&there), "{there}");
        }
        parent.stdin.as_mut().unwrap().write_all(b"on\n").unwrap();
        until_it_says_so(&mut parent);
        let there = count.look(family.iter(), None);
        assert!((5_000_000..5_100_000).contains(&there), "{there}");
        end(parent);
    }
}

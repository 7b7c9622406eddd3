//! The mouth through which work on the ground says how far it is: phases and counts, never a word of git's.
//!
//! Only the last word is kept: whoever carries it on decides how often. Work that nobody listens to says it all the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use engine::{WorkPhase, WorkProgress};
use tokio::sync::watch;

/// Git's own words before a count of files that it writes, in the language that we have it speak.
const COUNTED: &str = "Updating files:";

/// Where work says how far it is. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct ProgressSender {
    said: Arc<watch::Sender<Option<WorkProgress>>>,
    /// The bytes of the runs of git that are over, in this phase.
    bytes_before: Arc<AtomicU64>,
}

impl ProgressSender {
    /// One, and its last word.
    pub(crate) fn new() -> (Self, watch::Receiver<Option<WorkProgress>>) {
        let (said, heard) = watch::channel(None);
        (Self { said: Arc::new(said), bytes_before: Arc::default() }, heard)
    }

    /// Begins a phase. One that goes on goes on counting.
    pub(super) fn phase(&self, phase: WorkPhase) {
        let is_new = self.said.borrow().is_none_or(|said| said.phase != phase);
        if is_new {
            self.bytes_before.store(0, Relaxed);
            self.said.send_replace(Some(WorkProgress::at(phase)));
        }
    }

    /// So many files are done, of so many.
    pub(super) fn files(&self, done: u64, total: Option<u64>) {
        self.change(|said| said.files = Some((done, total)));
    }

    /// The run of git that is under way goes on, and has moved so many bytes.
    pub(super) fn moved(&self, bytes: u64) {
        let bytes = self.bytes_before.load(Relaxed).saturating_add(bytes);
        self.change(|said| said.bytes = said.bytes.max(bytes));
    }

    /// Nothing is counted, and it goes on.
    pub(super) fn goes_on(&self) {
        self.change(|_| {});
    }

    /// A run of git is over.
    pub(super) fn run_over(&self) {
        let bytes = self.said.borrow().map_or(0, |said| said.bytes);
        self.bytes_before.store(bytes, Relaxed);
    }

    /// Whoever listens hears of it, also if the numbers are the same: it goes on.
    fn change(&self, change: impl FnOnce(&mut WorkProgress)) {
        self.said.send_modify(|said| change(said.get_or_insert(WorkProgress::at(WorkPhase::Looking))));
    }
}

impl Default for ProgressSender {
    fn default() -> Self {
        Self::new().0
    }
}

/// The count in a line of git's about its progress: `Updating files:  50% (2/4)`. Nothing but the two numbers is taken from it.
pub(super) fn counted(line: &[u8]) -> Option<(u64, u64)> {
    let line = std::str::from_utf8(line).ok()?;
    let (_, count) = line.trim().strip_prefix(COUNTED)?.split_once('(')?;
    let (done, total) = count.split_once(')')?.0.split_once('/')?;
    Some((done.parse().ok()?, total.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_two_numbers_and_nothing_else() {
        assert_eq!(counted(b"Updating files:  50% (2/4)"), Some((2, 4)));
        assert_eq!(counted(b"Updating files: 100% (4/4), done."), Some((4, 4)));
        for other in ["", "Updating files", "Updating files: 1% (x/4)", "error: (1/2)", "Updating files: (1)"]
        {
            assert_eq!(counted(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_phase_counts_the_bytes_of_all_its_runs_and_the_next_begins_anew() {
        let (sender, heard) = ProgressSender::new();
        let last = || heard.borrow().unwrap();
        sender.phase(WorkPhase::Snapshot);
        sender.moved(10);
        sender.run_over();
        sender.phase(WorkPhase::Snapshot);
        sender.moved(5);
        assert_eq!((last().phase, last().bytes, last().files), (WorkPhase::Snapshot, 15, None));
        sender.phase(WorkPhase::Removing);
        sender.files(3, None);
        assert_eq!((last().phase, last().bytes, last().files), (WorkPhase::Removing, 0, Some((3, None))));
    }

    /// A git that takes its time where files are written, and goes on all the while.
    const SLOW: &str = "#!/bin/sh\ncase \"$*\" in *read-tree*) for _ in 1 2 3 4 5 6; do sleep 0.3; done ;; esac\nexec git \"$@\"\n";

    #[tokio::test]
    async fn work_that_goes_on_is_not_ended_by_the_bound_of_looks_and_says_how_far_it_is() {
        use crate::git::{EnterRequest, Git, GitDirectories, GitError, GitLimits};
        use std::os::unix::fs::PermissionsExt;
        use std::time::Duration;
        let place = tempfile::tempdir().unwrap();
        let (home, slow) = (place.path().join("home"), place.path().join("slow-git"));
        std::fs::write(&slow, SLOW).unwrap();
        std::fs::set_permissions(&slow, std::fs::Permissions::from_mode(0o755)).unwrap();
        let make = "git init -q \"$0\" && cd \"$0\" && echo one > a && git add a && \
                    git -c user.name=a -c user.email=a@b commit -qm one";
        let made = std::process::Command::new("sh").args(["-c", make]).arg(&home).status();
        assert!(made.unwrap().success());
        let home = home.canonicalize().unwrap();
        let [worktrees, work, own] = ["worktrees", "work", "own"].map(|name| place.path().join(name));
        let limits = GitLimits { time_max: Duration::from_secs(1), ..GitLimits::default() };
        let git = Git::new(&slow, GitDirectories { worktrees, work, own }, limits).unwrap();
        let enter = || EnterRequest {
            repository: &home,
            name: "blue".parse().unwrap(),
            base: None,
            branch: None,
            is_new: true,
            session: None,
        };
        assert!(matches!(git.enter(enter()).await, Err(GitError::Slow { .. })));
        let (progress, mut heard) = ProgressSender::new();
        let git = git.for_work(progress);
        let (mut work, mut words) = (std::pin::pin!(git.enter(enter())), 0);
        let entered = loop {
            tokio::select! {
                entered = &mut work => break entered.unwrap(),
                Ok(()) = heard.changed() => words += 1,
            }
        };
        assert!(entered.root.join("a").is_file());
        let last = heard.borrow().unwrap();
        assert_eq!(last.phase, WorkPhase::CheckingOut);
        assert!(words > 2 && last.bytes > 0, "{words} words, the last of them {last:?}");
    }
}

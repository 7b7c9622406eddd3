//! The processes that a turn leaves running: the policy, the words for people, and the note of them that outlives the server.
//!
//! A note is a small file beside the tree's lock. It is there for as long as something runs in the background of a session, turn or
//! no turn, and goes when somebody was told that it has ended. Whoever starts a process and finds one tells it then: the server
//! has gone in between, and with it everything that it had started.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use agent::{Background, BackgroundProcess, TreeName};
use processes::ProcessList;

/// The longest note. A list has its own bounds; this is some times as much.
const NOTE_BYTES_MAX: u64 = 64 * 1024;

/// The fate of what an agent's turn leaves running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BackgroundPolicy {
    /// It is ended with the turn.
    #[default]
    Ended,
    /// It stays for as long as the agent's own process is kept.
    Kept,
}

/// The reason for which something that ran in the background was ended without anybody asking for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackgroundEnd {
    /// Nobody has come for the session for as long as its process is kept.
    Rested,
    /// There are too many sessions with a process.
    Crowded,
    /// The next turn wants another process: another sender's sign-in, another mode, or one that answers.
    OtherProcess,
    /// The agent's own process has gone, or did something that nobody had asked it for.
    AgentGone,
    /// The leftovers of an attempt had to be ended.
    Leftovers,
}

impl BackgroundEnd {
    /// The words for people.
    pub(crate) fn words(self, ended: &ProcessList) -> String {
        let why = match self {
            Self::Rested => "nobody has said anything to this session for a while",
            Self::Crowded => "other sessions have come since, and only so many processes are kept",
            Self::OtherProcess => "the next turn needs another process of the agent",
            Self::AgentGone => "the agent's own process has gone, or had begun something by itself",
            Self::Leftovers => "the session starts anew",
        };
        format!("what ran in the background was ended, because {why}: {}", background(ended).words())
    }
}

/// The list of a supervisor, for people.
pub(crate) fn background(list: &ProcessList) -> Background {
    let process =
        |it: &processes::ListedProcess| BackgroundProcess { age_ms: it.age_ms, command: it.command.clone() };
    Background { processes: list.processes, oldest: list.oldest.iter().map(process).collect() }
}

/// The notes of what runs, one for each tree.
#[derive(Debug)]
pub(crate) struct BackgroundNotes {
    directory: PathBuf,
}

impl BackgroundNotes {
    pub(crate) fn new(locks: &Path) -> Self {
        Self { directory: locks.to_path_buf() }
    }

    /// Notes what runs in the background of a tree; nothing removes the note.
    pub(crate) fn write(&self, tree: &TreeName, list: &ProcessList) {
        if list.is_empty() {
            return self.remove(tree);
        }
        let text = serde_json::to_vec(list).expect("plain structures can be written");
        // A note that is torn or missing costs a sentence in the log, and nothing else.
        if let Err(why) = std::fs::write(self.path(tree), text) {
            tracing::debug!(%tree, %why, "what runs in the background could not be noted");
        }
    }

    pub(crate) fn remove(&self, tree: &TreeName) {
        match std::fs::remove_file(self.path(tree)) {
            Err(why) if why.kind() != ErrorKind::NotFound => {
                tracing::debug!(%tree, %why, "a note could not be removed");
            }
            _ => {}
        }
    }

    /// The background of a tree of which nobody was told that it has ended.
    pub(crate) fn read(&self, tree: &TreeName) -> Option<ProcessList> {
        let mut text = Vec::new();
        let file = File::open(self.path(tree)).ok()?;
        file.take(NOTE_BYTES_MAX).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }

    fn path(&self, tree: &TreeName) -> PathBuf {
        self.directory.join(format!("{tree}.background"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_there_while_something_runs_and_a_torn_one_is_none() {
        let place = tempfile::tempdir().unwrap();
        let notes = BackgroundNotes::new(place.path());
        let tree = TreeName::of(kernel::SessionId::from_bits(7));
        let list = ProcessList { processes: 2, newest: 9, oldest: Vec::new() };
        assert_eq!(notes.read(&tree), None);
        notes.write(&tree, &list);
        assert_eq!(notes.read(&tree), Some(list));
        std::fs::write(notes.path(&tree), b"{\"processes\":").unwrap();
        assert_eq!(notes.read(&tree), None);
        notes.write(&tree, &ProcessList::default());
        notes.remove(&tree);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
}

//! Progress of what is done outside between turns, for people who wait: what, in which phase, how far, since when.
//!
//! It is no fact and nobody decides by it: it is told to whoever watches, the last word of each session can be read, and when the
//! work is over, or whoever did it has died, it is gone. What came of the work is in the log and in its verdict.

use crate::cluster::Happened;
use crate::engine_ports::EnginePorts;
use bytes::Bytes;
use kernel::{Chore, MergeHow, Moment, SessionId, What};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The phases of work on a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkPhase {
    /// It has begun, and nothing was heard of it yet.
    Begun,
    /// Somebody else works on the same tree or repository.
    Waiting,
    /// It is looked what is to be done.
    Looking,
    /// The tree is being remembered.
    Snapshot,
    /// Copies are being made of what was remembered, or of files that git does not track.
    Copying,
    /// Files are being written.
    CheckingOut,
    /// Files are being removed.
    Removing,
    /// The agent's setup script runs.
    Setup,
    /// The agent's teardown script runs.
    Teardown,
}

impl WorkPhase {
    /// Its word, which is stable.
    pub fn word(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Waiting => "waiting",
            Self::Looking => "looking",
            Self::Snapshot => "snapshot",
            Self::Copying => "copying",
            Self::CheckingOut => "checking_out",
            Self::Removing => "removing",
            Self::Setup => "setup",
            Self::Teardown => "teardown",
        }
    }
}

/// The progress of one piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkProgress {
    /// The phase that it is in.
    pub phase: WorkPhase,
    /// The files that are done in this phase, and all of them if they can be counted.
    pub files: Option<(u64, Option<u64>)>,
    /// The bytes that were read and written in this phase, as far as they are seen; of a script, those that it has printed.
    pub bytes: u64,
}

impl WorkProgress {
    /// The beginning of a phase.
    pub fn at(phase: WorkPhase) -> Self {
        Self { phase, files: None, bytes: 0 }
    }
}

/// The work that goes on for a session, and how far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionProgress {
    /// The verb: `enter`, `undo`, `redo`, `remove`, `restore`, `merge` or `apply`.
    pub verb: &'static str,
    /// The name of the worktree, or the number of the turn.
    pub subject: String,
    /// When it was begun, by whoever does it now.
    pub since: Moment,
    /// The phase, and the part of it that is over.
    pub progress: WorkProgress,
}

/// The same on its way to watchers; none if the work is over.
#[derive(Debug)]
pub struct ProgressUpdate {
    /// The progress.
    pub progress: Option<SessionProgress>,
    /// Its form on a wire, made by the first who needs it.
    pub frame: OnceLock<Bytes>,
}

/// The mouth of one piece of work. When it goes, everybody is told that the work is over.
pub(crate) struct ProgressTeller {
    ports: Arc<EnginePorts>,
    session: SessionId,
    told: SessionProgress,
}

impl ProgressTeller {
    pub(crate) fn of_errand(ports: &Arc<EnginePorts>, session: SessionId, what: &What) -> Self {
        let (verb, subject) = match what {
            What::Enter(wanted) => ("enter", wanted.name.clone()),
            What::Undo { turn, .. } => ("undo", turn.to_string()),
            What::Redo { turn } => ("redo", turn.to_string()),
        };
        Self::begin(ports, session, verb, subject)
    }

    pub(crate) fn of_chore(ports: &Arc<EnginePorts>, session: SessionId, chore: &Chore) -> Self {
        let verb = match chore {
            Chore::Remove { .. } => "remove",
            Chore::Restore { .. } => "restore",
            Chore::Merge { how: MergeHow::Merge, .. } => "merge",
            Chore::Merge { how: MergeHow::Apply, .. } => "apply",
            Chore::EndBackground => "stop_background",
        };
        Self::begin(ports, session, verb, chore.name().to_owned())
    }

    fn begin(ports: &Arc<EnginePorts>, session: SessionId, verb: &'static str, subject: String) -> Self {
        let progress = WorkProgress::at(WorkPhase::Begun);
        let told = SessionProgress { verb, subject, since: ports.now(), progress };
        let teller = Self { ports: ports.clone(), session, told };
        teller.say();
        teller
    }

    pub(crate) fn tell(&mut self, progress: WorkProgress) {
        if self.told.progress != progress {
            self.told.progress = progress;
            self.say();
        }
    }

    fn say(&self) {
        self.ports.cluster.tell(Happened::Progress(self.session, Some(self.told.clone())));
    }
}

impl Drop for ProgressTeller {
    fn drop(&mut self) {
        self.ports.cluster.tell(Happened::Progress(self.session, None));
    }
}

impl fmt::Debug for ProgressTeller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgressTeller").field("told", &self.told).finish_non_exhaustive()
    }
}

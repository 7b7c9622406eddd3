//! Observations while a story went on: by the people, by the watchers, and at the store's own door.
//!
//! Only what somebody outside the engine could have seen stands here. `check` compares it with what is stored in the
//! end and with the agents' own record; what can only be judged in the moment is judged by `ledger` and `leash`, which
//! write `BrokenLaw` here at once.

use crate::ground::JumpyClock;
use crate::rulebook::Rulebook;
use engine::{Accepted, Export, Granted, ReceiptState, StoredFact, WayInError};
use kernel::{
    Epoch, Errand, ErrandKind, Fence, MessageId, Native, Number, PersonId, Request, RequestId, SessionId, To,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A law that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenLaw {
    /// The law.
    pub law: &'static str,
    /// The sign of it.
    pub how: String,
}

impl fmt::Display for BrokenLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.law, self.how)
    }
}

/// Everything that was seen.
#[derive(Debug)]
pub(crate) struct Notes {
    pub(crate) clock: Arc<JumpyClock>,
    seen: Mutex<Observed>,
    /// True if the story is told, too.
    tells: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Observed {
    /// Sessions of which a worktree is being removed.
    pub(crate) removing: BTreeSet<SessionId>,
    /// Rings for a session's keeper that got lost: each is made up for by the next look of the timer.
    pub(crate) lost_rings: BTreeMap<SessionId, u64>,
    /// The words of people, by code word.
    pub(crate) said: Vec<SaidMessage>,
    /// Messages in the order in which the store took them.
    pub(crate) accepted: Vec<(SessionId, MessageId)>,
    /// Requests in the order in which the store took them.
    pub(crate) requests: BTreeMap<RequestId, Request>,
    /// Requests besides messages, and their answers.
    pub(crate) asked: Vec<(Request, Result<Granted, WayInError>)>,
    /// Receipts as people saw them, each in the order in which they looked.
    pub(crate) receipts: Vec<(PersonId, MessageId, ReceiptState)>,
    /// Every start of an agent.
    pub(crate) launches: Vec<Launched>,
    /// Messages whose words an agent really got, and by which attempt: at its beginning, or (`true`) into its turn.
    pub(crate) given: Vec<(SessionId, MessageId, Fence, bool)>,
    /// The agent that has made each conversation, and where.
    pub(crate) natives: BTreeMap<Native, (String, String)>,
    /// Lookups that somebody was told to be stale.
    pub(crate) stale_looks: Vec<(SessionId, Errand, ErrandKind)>,
    /// The rules that stood at each time, and the questions of agents.
    pub(crate) rulebook: Rulebook,
    /// Conversations that somebody wanted to take over.
    pub(crate) imports: Vec<Brought>,
    /// The stream of each watcher.
    pub(crate) watched: Vec<Watched>,
    /// Laws that were seen not to hold.
    pub(crate) broken: Vec<BrokenLaw>,
    /// The number of daemons that were replaced while they still ran.
    pub(crate) takeovers: u32,
    /// The story, in words.
    pub(crate) story: Vec<String>,
}

/// The start of an agent.
#[derive(Debug, Clone)]
pub(crate) struct Launched {
    pub(crate) agent: String,
    pub(crate) session: SessionId,
    pub(crate) fence: Fence,
    pub(crate) directory: String,
    pub(crate) model: Option<String>,
    pub(crate) mode: Option<String>,
    pub(crate) native: Option<Native>,
    pub(crate) is_fork: bool,
}

/// One thing that somebody said, as often as it was delivered.
#[derive(Debug)]
pub(crate) struct SaidMessage {
    pub(crate) by: PersonId,
    pub(crate) to: To,
    pub(crate) text: String,
    /// The epoch of the scope that they saw, if they said so.
    pub(crate) under: Option<Epoch>,
    /// True if they said that nobody attends it.
    pub(crate) unattended: bool,
    pub(crate) answers: Vec<Result<Accepted, WayInError>>,
    /// Refusals that somebody got who had a receipt before they asked.
    pub(crate) forgotten: Vec<WayInError>,
    /// Other words that somebody wanted in their place.
    pub(crate) edits: Vec<String>,
    /// True if some delivery got no answer at all: then it may or may not have been taken.
    pub(crate) unanswered: bool,
}

/// A conversation that somebody wanted to take over, as often as it was asked for.
#[derive(Debug)]
pub(crate) struct Brought {
    pub(crate) by: PersonId,
    pub(crate) export: Export,
    pub(crate) answers: Vec<Result<SessionId, WayInError>>,
    /// True if somebody got no clear answer.
    pub(crate) unanswered: bool,
}

/// The stream of a watcher.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) session: SessionId,
    pub(crate) from: Number,
    pub(crate) facts: Vec<StoredFact>,
    /// Words ahead of the log: turn, part, offset, text.
    pub(crate) live: Vec<(u32, u32, u64, String)>,
}

impl Notes {
    pub(crate) fn new(clock: Arc<JumpyClock>, tells: bool) -> Self {
        Self { clock, seen: Mutex::default(), tells }
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Observed> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn broken(&self, law: &'static str, how: impl fmt::Display) {
        self.tell(|| format!("BROKEN {law}: {how}"));
        self.seen().broken.push(BrokenLaw { law, how: how.to_string() });
    }

    pub(crate) fn tell(&self, words: impl FnOnce() -> String) {
        if self.tells {
            let line = format!("{:>8} ms  {}", self.clock.elapsed_ms(), words());
            self.seen().story.push(line);
        }
    }
}

/// The code word in what was said: `w17` of `w17 …`.
pub(crate) fn code_of(text: &str) -> Option<usize> {
    let word = text.split_whitespace().next()?;
    word.strip_prefix('w')?.split('.').next()?.parse().ok()
}

/// An id without the zeros in front, for stories.
pub(crate) fn short(id: impl fmt::Display) -> String {
    let id = id.to_string();
    match id.split_once('_') {
        Some((prefix, digits)) => format!("{prefix}_{}", digits.trim_start_matches('0')),
        None => id,
    }
}

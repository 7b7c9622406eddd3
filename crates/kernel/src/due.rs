//! What ought to be going on outside, computed from the state alone.
//!
//! The minute after a crash runs the same lines as any other minute: whoever keeps the session asks `due` and makes the
//! outside match. `condense` writes an idle session as the few facts that make it, for a checkpoint that may be thrown
//! away at any time.

use crate::session::*;
use crate::{Address, ApprovalId, EndWhy, Fence, MessageId, Moment, Native, PersonId, Term};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// What ought to be going on outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due {
    /// Nothing.
    Nothing,
    /// An attempt of an earlier term may have left processes behind: see that they are gone, then report it lost.
    Bury(Fence),
    /// One process of the agent works on one message.
    Run(Run),
}

/// One attempt, as it ought to be now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Which attempt.
    pub fence: Fence,
    /// What it works on.
    pub message: MessageId,
    /// Who said that.
    pub by: PersonId,
    /// The conversation to resume; none means that a new one is made.
    pub resume: Option<Native>,
    /// How far it should be.
    pub step: Step,
    /// What was answered to its questions.
    pub answers: Vec<(ApprovalId, Answer)>,
}

/// How far an attempt should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The process is there; nothing of the message has left us.
    Start,
    /// The message is with the agent.
    Work,
    /// The process is going away.
    Stop,
}

/// A named thing that only so many sessions may hold at once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim(pub String);

impl Claim {
    /// One of the places for awake sessions that a person has.
    pub fn slot(person: PersonId) -> Self {
        Self(format!("slot:{person}"))
    }

    /// One of the places for awake sessions that an org has.
    pub fn org_slot(org: crate::OrgId) -> Self {
        Self(format!("slot:{org}"))
    }
}

impl Session {
    /// What ought to be going on outside, as the keeper of this term sees it?
    pub fn due(&self, term: Term) -> Due {
        let Work::Busy(running) = &self.work else { return Due::Nothing };
        let (fence, step) = match running.stage {
            Stage::Resting { .. } => return Due::Nothing,
            Stage::Starting { fence, .. } => (fence, Step::Start),
            Stage::Working { fence, .. } => (fence, Step::Work),
            Stage::Stopping { fence, .. } => (fence, Step::Stop),
        };
        if fence.term != term {
            return Due::Bury(fence);
        }
        let resume = self.native.as_ref().filter(|known| known.epoch == self.epoch);
        Due::Run(Run {
            fence,
            message: running.message,
            by: running.by,
            resume: resume.map(|known| known.native.clone()),
            step,
            answers: running.asks.iter().filter_map(answered).collect(),
        })
    }

    /// The claims this session holds while it is as it is.
    pub fn claims(&self) -> Vec<Claim> {
        match &self.work {
            Work::Idle => Vec::new(),
            Work::Busy(running) => alloc::vec![Claim::slot(running.by)],
        }
    }

    /// The earliest moment at which something is due by itself, as the keeper of this term sees it.
    pub fn wake_at(&self, term: Term) -> Option<Moment> {
        let holds = self.queue.iter().filter_map(|waiting| waiting.hold.map(|(_, until)| until));
        // A slot is waited for only while there is something to start in it.
        let crowded = self.crowded.filter(|_| self.has_startable());
        holds.chain(crowded).chain(self.turn_deadlines(term)).min()
    }

    /// An attempt of an earlier term has none any more: it is buried as soon as it is seen.
    fn turn_deadlines(&self, term: Term) -> Vec<Moment> {
        let Work::Busy(running) = &self.work else { return Vec::new() };
        let asks = running.asks.iter().filter_map(|ask| match ask {
            Ask::Open { until, .. } => Some(*until),
            Ask::Answered { .. } | Ask::Lapsed { .. } => None,
        });
        match running.stage {
            Stage::Resting { again_at, .. } => alloc::vec![again_at],
            Stage::Starting { fence, until } | Stage::Working { fence, until } if fence.term == term => {
                asks.chain([until]).collect()
            }
            Stage::Starting { .. } | Stage::Working { .. } | Stage::Stopping { .. } => Vec::new(),
        }
    }

    /// Whether a turn runs, or waits only for its turn. A session that waits for a moment or a person is dormant.
    pub fn is_awake(&self) -> bool {
        self.running().is_some() || (matches!(self.life, Life::Open(_)) && self.has_startable())
    }

    fn has_startable(&self) -> bool {
        self.queue.iter().any(|waiting| waiting.hold.is_none())
    }

    /// Why it ended, if it has.
    pub fn ended(&self) -> Option<EndWhy> {
        match self.life {
            Life::Ended(why) => Some(why),
            Life::Unopened | Life::Open(_) | Life::Ending(_) => None,
        }
    }

    /// Whether the keeper has opened it.
    pub fn is_opened(&self) -> bool {
        !matches!(self.life, Life::Unopened)
    }

    /// Where and how it acts; none before it was opened and after it ended.
    pub fn scope(&self) -> Option<&Scope> {
        match &self.life {
            Life::Open(scope) | Life::Ending(scope) => Some(scope),
            Life::Unopened | Life::Ended(_) => None,
        }
    }

    /// The scope's epoch.
    pub fn epoch(&self) -> crate::Epoch {
        self.epoch
    }

    /// The waiting messages, in the order in which they will run.
    pub fn queue(&self) -> &[Waiting] {
        &self.queue
    }

    /// The turn under way.
    pub fn running(&self) -> Option<&Running> {
        match &self.work {
            Work::Idle => None,
            Work::Busy(running) => Some(running),
        }
    }

    /// The few facts that make an idle session what it is; none while a turn is under way.
    pub fn condense(&self) -> Option<Vec<Fact>> {
        if self.running().is_some() {
            return None;
        }
        let mut facts = Vec::new();
        match &self.life {
            Life::Unopened => {}
            Life::Open(scope) | Life::Ending(scope) => facts.push(Fact::Opened { scope: scope.clone() }),
            Life::Ended(why) => facts.push(Fact::Ended { why: *why }),
        }
        facts.extend(
            self.native
                .iter()
                .map(|known| Fact::Confirmed { native: known.native.clone(), epoch: known.epoch }),
        );
        for waiting in &self.queue {
            facts.extend(waiting.condense());
        }
        facts.extend(self.crowded.map(|until| Fact::Crowded { until }));
        // An answer is what proves a name, so a name without proof is followed by none.
        let proven = self.native.as_ref().is_none_or(|known| known.proven);
        let outcome = if proven { Outcome::Answered } else { Outcome::Interrupted };
        facts.push(Fact::TurnEnded { turn: self.last_turn, outcome });
        facts.extend(self.stale.iter().map(|(fence, kind)| Fact::Stale { fence: *fence, kind: *kind }));
        Some(facts)
    }
}

impl Waiting {
    fn condense(&self) -> Vec<Fact> {
        let message = self.message;
        let mut facts = alloc::vec![Fact::Queued { message, by: self.by }];
        if self.revision > 0 {
            facts.push(Fact::Edited { message, revision: self.revision });
        }
        facts.extend(self.hold.map(|(why, expires)| Fact::Held { message, why, expires }));
        facts
    }
}

fn answered(ask: &Ask) -> Option<(ApprovalId, Answer)> {
    match ask {
        Ask::Open { .. } | Ask::Lapsed { .. } => None,
        Ask::Answered { approval, answer } => Some((*approval, *answer)),
    }
}

/// Where replies to a message go besides the log; fixed when the message is accepted.
pub fn needs_delivery(reply: &Address) -> bool {
    match reply {
        Address::Slack { .. } => true,
        // These read the log themselves.
        Address::Web { .. }
        | Address::Cli { .. }
        | Address::Api { .. }
        | Address::Acp { .. }
        | Address::Mcp { .. }
        | Address::Schedule { .. }
        | Address::Firing { .. } => false,
    }
}

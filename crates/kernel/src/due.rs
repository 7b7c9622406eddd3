//! Everything that ought to be going on outside, computed from the state alone.
//!
//! The minute after a crash runs the same lines as any other minute: whoever keeps the session asks `due` and makes the
//! outside match. `condense` writes an idle session as the few facts that make it, for a checkpoint that may be thrown
//! away at any time.

use crate::approval::{Answer, TurnApproval};
use crate::scope::{Away, Errand, Origin, Pending, Scope, UndoFiles, What};
use crate::session::*;
use crate::{ApprovalId, EndWhy, Epoch, Fence, GroundPath, MessageId, Moment, Native, PersonId, Term, Turn};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The work that ought to be going on outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due {
    /// Nothing.
    Nothing,
    /// An attempt of an earlier term may have left processes behind: see that they are gone, then report it lost.
    EndLeftovers(Fence),
    /// One process of the agent works on one message.
    Run(Run),
    /// Something else is done outside. Doing it twice is doing it once.
    Errand(Away),
}

/// One attempt, as it ought to be now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The fence of the attempt.
    pub fence: Fence,
    /// The message it works on.
    pub message: MessageId,
    /// The person who said that.
    pub by: PersonId,
    /// The conversation of the agent that it goes on with.
    pub begin: Begin,
    /// The step it should have come to.
    pub step: Step,
    /// The answers to its questions.
    pub answers: Vec<(ApprovalId, Answer)>,
    /// Messages that were said into it while it ran, in order.
    pub steered: Vec<MessageId>,
}

/// The conversation of the agent that an attempt goes on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begin {
    /// A new one, and nothing was said before.
    New,
    /// The one that it confirmed here.
    Resume(Native),
    /// The one that it confirmed in an earlier scope: its memory has to follow.
    Follow(Native),
    /// A new one, in which what was said before is told again.
    Retell,
    /// A new one with the memory of another session's, as it was after that turn.
    Fork(Origin),
}

/// The step an attempt should have come to.
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

    /// The directory that a turn works in: nobody else's works there meanwhile.
    pub fn directory(path: &GroundPath) -> Self {
        Self(format!("dir:{}", path.for_readers()))
    }

    /// One of the places for awake sessions that an org has.
    pub fn org_slot(org: crate::OrgId) -> Self {
        Self(format!("slot:{org}"))
    }
}

impl Session {
    /// The work that ought to be going on outside, as the keeper of this term sees it.
    pub fn due(&self, term: Term) -> Due {
        let running = match &self.work {
            Work::Idle => return Due::Nothing,
            Work::Away(away) => return Due::Errand(away.clone()),
            Work::Busy(running) => running,
        };
        let (fence, step) = match running.stage {
            Stage::Resting { .. } => return Due::Nothing,
            Stage::Starting { fence, .. } => (fence, Step::Start),
            Stage::Working { fence, .. } => (fence, Step::Work),
            Stage::Stopping { fence, .. } => (fence, Step::Stop),
        };
        if fence.term != term {
            return Due::EndLeftovers(fence);
        }
        Due::Run(Run {
            fence,
            message: running.message,
            by: running.by,
            begin: self.begin(),
            step,
            answers: running.approvals.iter().filter_map(answered).collect(),
            steered: running.steered.iter().map(|steered| steered.message).collect(),
        })
    }

    fn begin(&self) -> Begin {
        match (&self.native, self.origin) {
            (Some(known), _) if known.epoch == self.epoch => Begin::Resume(known.native.clone()),
            (Some(known), _) => Begin::Follow(known.native.clone()),
            (None, Some(origin)) => Begin::Fork(origin),
            (None, None) if self.untold => Begin::Retell,
            (None, None) => Begin::New,
        }
    }

    /// The claims this session holds while it is as it is.
    pub fn claims(&self) -> Vec<Claim> {
        let directory = self.scope().map(|scope| Claim::directory(&scope.directory));
        match &self.work {
            Work::Busy(running) => [Claim::slot(running.by)].into_iter().chain(directory).collect(),
            Work::Away(Away { what: What::Undo { .. } | What::Redo { .. }, .. }) => {
                directory.into_iter().collect()
            }
            // A worktree is made beside the directory, not in it.
            Work::Away(Away { what: What::Enter(_), .. }) | Work::Idle => Vec::new(),
        }
    }

    /// The earliest moment at which something is due by itself, as the keeper of this term sees it.
    pub fn wake_at(&self, term: Term) -> Option<Moment> {
        // A slot is waited for only while there is something to start in it, and nothing else under way.
        let crowded = self.crowded.filter(|_| matches!(self.work, Work::Idle) && self.has_startable());
        self.wake_without_start(term).into_iter().chain(crowded).min()
    }

    /// The same while nothing is to be started. A moment at which one would be tried is none to wake at: it would pass, and
    /// the session be woken again at once, and again.
    pub fn wake_without_start(&self, term: Term) -> Option<Moment> {
        let holds = self.queue.iter().filter_map(|waiting| waiting.hold.map(|(_, until)| until));
        holds.chain(self.turn_deadlines(term)).min()
    }

    /// An attempt of an earlier term has none any more: what is left of it is ended as soon as it is seen.
    fn turn_deadlines(&self, term: Term) -> Vec<Moment> {
        let Work::Busy(running) = &self.work else { return Vec::new() };
        let asks = running.approvals.iter().filter_map(|ask| match ask {
            TurnApproval::Open { until, .. } => Some(*until),
            TurnApproval::Answered { .. } | TurnApproval::Lapsed { .. } => None,
        });
        match running.stage {
            Stage::Resting { again_at, .. } => alloc::vec![again_at],
            Stage::Starting { fence, until } | Stage::Working { fence, until } if fence.term == term => {
                asks.chain([until]).collect()
            }
            Stage::Starting { .. } | Stage::Working { .. } | Stage::Stopping { .. } => Vec::new(),
        }
    }

    /// True if a turn runs, or waits only for its turn. A session that waits for a moment or a person is dormant.
    pub fn is_awake(&self) -> bool {
        !matches!(self.work, Work::Idle) || (matches!(self.life, Life::Open(_)) && self.has_startable())
    }

    fn has_startable(&self) -> bool {
        self.first_startable().is_some()
    }

    /// Why it ended, if it has.
    pub fn ended(&self) -> Option<EndWhy> {
        match self.life {
            Life::Ended(why) => Some(why),
            Life::Unopened | Life::Open(_) | Life::Ending(_) => None,
        }
    }

    /// True if the keeper has opened it.
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
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The waiting messages, in the order in which they will run.
    pub fn queue(&self) -> &[Waiting] {
        &self.queue
    }

    /// The agent's own name for this conversation, if it has confirmed one.
    pub fn known(&self) -> Option<&Known> {
        self.native.as_ref()
    }

    /// The moment at which a slot is asked for again at the latest, if the last answer was that there is none.
    pub fn crowded_until(&self) -> Option<Moment> {
        self.crowded
    }

    /// The turn under way.
    pub fn running(&self) -> Option<&Running> {
        match &self.work {
            Work::Idle | Work::Away(_) => None,
            Work::Busy(running) => Some(running),
        }
    }

    /// The few facts that make an idle session what it is; none while a turn is under way.
    pub fn condense(&self) -> Option<Vec<Fact>> {
        if !matches!(self.work, Work::Idle) {
            return None;
        }
        let mut facts = self.condense_scope();
        if let Life::Ended(why) = self.life {
            facts.push(Fact::Ended { why });
        }
        facts.extend(self.condense_errands());
        for waiting in &self.queue {
            facts.extend(waiting.condense());
        }
        facts.extend(self.pending.iter().map(Pending::condense));
        facts.extend(self.learned.iter().map(|(kind, epoch)| Fact::Learned { kind: *kind, epoch: *epoch }));
        facts.extend(self.crowded.map(|until| Fact::Crowded { until }));
        facts.extend(self.stale.iter().map(|(fence, kind)| Fact::Stale { fence: *fence, kind: *kind }));
        facts.extend(
            self.stale_errands
                .iter()
                .map(|(errand, kind)| Fact::StaleErrand { errand: *errand, kind: *kind }),
        );
        Some(facts)
    }

    /// Where it is, what the agent calls the conversation, where it was confirmed, and whether what was said before is still
    /// to be told: then another agent was there first, which has no name here. An answer is what proves a name.
    fn condense_scope(&self) -> Vec<Fact> {
        let nowhere = Scope::nowhere();
        let scope = match &self.life {
            Life::Unopened => return Vec::new(),
            Life::Open(scope) | Life::Ending(scope) => scope,
            Life::Ended(_) => &nowhere,
        };
        let moved = |epoch| Fact::ScopeChanged { epoch, scope: scope.clone() };
        let over = |outcome| Fact::TurnEnded { turn: self.last_turn, outcome };
        // A name that has followed from elsewhere was known there before.
        let followed = self.native.as_ref().filter(|known| self.untold && !known.proven);
        let other = self.untold && followed.is_none();
        let first = if other { Scope { agent: String::new(), ..scope.clone() } } else { scope.clone() };
        let named_in = self.native.as_ref().map_or(self.epoch, |known| known.epoch);
        let mut facts = alloc::vec![Fact::Opened { scope: first, origin: self.origin, enter: None }];
        facts.extend((self.last_turn > Turn(0)).then(|| over(Outcome::Interrupted)));
        facts.extend(followed.map(|known| confirmed(&known.native, Epoch(0))));
        facts.extend((self.untold || named_in > Epoch(0)).then(|| moved(named_in)));
        if let Some(Known { native, epoch, proven, told: _ }) = &self.native {
            facts.push(confirmed(native, *epoch));
            facts.extend(proven.then(|| over(Outcome::Answered)));
        }
        facts.extend((self.epoch != named_in).then(|| moved(self.epoch)));
        facts
    }

    /// The number of the last errand is enough: no later one may have it, too.
    fn condense_errands(&self) -> Vec<Fact> {
        if self.last_errand == 0 {
            return Vec::new();
        }
        let errand = Errand { epoch: self.epoch, number: self.last_errand };
        let what = What::Undo { turn: Turn(0), files: UndoFiles::Certain };
        alloc::vec![Fact::ErrandStarted { errand, what, by: PersonId::ENGINE }, Fact::ErrandFailed { errand },]
    }
}

impl Pending {
    fn condense(&self) -> Fact {
        Fact::ChangeAsked { change: self.change.clone(), after: self.after, by: self.by }
    }
}

impl Waiting {
    fn condense(&self) -> Vec<Fact> {
        let message = self.message;
        let mut facts =
            alloc::vec![Fact::Queued { message, by: self.by, delivery: self.delivery, epoch: self.epoch }];
        if self.revision > 0 {
            facts.push(Fact::Edited { message, revision: self.revision });
        }
        facts.extend(self.hold.map(|(why, expires)| Fact::Held { message, why, expires }));
        facts
    }
}

fn confirmed(native: &Native, epoch: Epoch) -> Fact {
    Fact::Confirmed { native: native.clone(), epoch }
}

fn answered(ask: &TurnApproval) -> Option<(ApprovalId, Answer)> {
    match ask {
        TurnApproval::Open { .. } | TurnApproval::Lapsed { .. } => None,
        TurnApproval::Answered { approval, answer } => Some((*approval, answer.clone())),
    }
}

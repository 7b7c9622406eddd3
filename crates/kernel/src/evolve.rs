//! Folds a fact into a session. It cannot refuse: the fact has happened.

use crate::approval::TurnApproval;
use crate::decide::STALE_MAX;
use crate::scope::{Away, Pending, STALE_ERRANDS_MAX, Scope};
use crate::session::*;
use crate::{Attempt, Epoch, Failure, MessageId, Moment, Turn};
use alloc::vec::Vec;

impl Session {
    /// The session after this fact.
    pub fn evolve(&mut self, fact: &Fact) {
        match fact {
            Fact::Opened { scope, origin, enter } => {
                self.life = Life::Open(scope.clone());
                self.origin = *origin;
                self.pending = enter.clone().map(Pending::from_start);
            }
            Fact::Queued { message, by, delivery, epoch } => {
                let (message, by, delivery, epoch) = (*message, *by, *delivery, *epoch);
                self.queue.push(Waiting { message, by, delivery, epoch, revision: 0, hold: None });
            }
            Fact::Edited { message, revision } => self.tend(*message, |w| w.revision = *revision),
            Fact::Held { message, why, expires } => self.tend(*message, |w| w.hold = Some((*why, *expires))),
            Fact::Released { message, epoch } => self.tend(*message, |w| {
                w.hold = None;
                w.epoch = *epoch;
            }),
            Fact::Steered { message, turn } => self.take_into_turn(*turn, *message),
            Fact::Missed { message } => self.miss(*message),
            Fact::Withdrawn { message, .. } | Fact::MessageRefused { message, .. } => self.drop(*message),
            Fact::Reordered { order } => self.arrange(order),
            Fact::Crowded { until } => self.crowded = Some(*until),
            Fact::TurnStarted { turn, message } => self.start(*turn, *message),
            Fact::AttemptStarted { fence, until } => {
                self.stage(fence.turn, Stage::Starting { fence: *fence, until: *until });
            }
            Fact::Confirmed { native, epoch } => {
                let is_new = self.native.as_ref().is_none_or(|known| known.native != *native);
                let told = is_new && (self.untold || self.origin.is_some());
                let (native, epoch) = (native.clone(), *epoch);
                self.native = Some(Known { native, epoch, proven: false, told });
            }
            Fact::ChangeAsked { change, after, by } => {
                self.pending =
                    Some(Pending { change: change.clone(), after: *after, by: *by, from_start: false });
            }
            Fact::ScopeKept { .. } => self.pending = None,
            Fact::ScopeChanged { epoch, scope } => self.move_to(*epoch, scope),
            Fact::ErrandStarted { errand, what, by } => {
                self.work = Work::Away(Away { errand: *errand, what: what.clone(), by: *by });
                self.last_errand = self.last_errand.max(errand.number);
            }
            Fact::ErrandFailed { .. } | Fact::Undone { .. } | Fact::Redone { .. } => self.come_back(),
            Fact::Learned { kind, epoch } => {
                self.learned.retain(|(known, _)| known != kind);
                self.learned.push((*kind, *epoch));
            }
            Fact::StaleErrand { errand, kind } => {
                if self.stale_errands.len() >= STALE_ERRANDS_MAX {
                    self.stale_errands.remove(0);
                }
                self.stale_errands.push((*errand, *kind));
                self.stale_errands.sort_unstable();
            }
            Fact::Handed { turn, .. } => self.hand(*turn),
            Fact::AttemptFailed { turn, attempt, failure, again_at } => {
                self.stage(*turn, Stage::Resting { tried: *attempt, again_at: *again_at });
                self.learn(Outcome::Failed(*failure));
            }
            Fact::Asked { approval, until, terms, .. } => {
                self.ask(TurnApproval::Open { approval: *approval, until: *until, form: terms.form });
            }
            Fact::Answered { approval, answer, .. } => {
                self.ask(TurnApproval::Answered { approval: *approval, answer: answer.clone() });
            }
            Fact::Lapsed { approval } => self.ask(TurnApproval::Lapsed { approval: *approval }),
            Fact::StopAsked { turn, why } => self.stop_stage(*turn, *why),
            Fact::TurnEnded { turn, outcome } => {
                self.learn(*outcome);
                self.work = Work::Idle;
                self.last_turn = self.last_turn.max(*turn);
            }
            Fact::EndAsked { .. } => {
                if let Life::Open(scope) = &self.life {
                    self.life = Life::Ending(scope.clone());
                }
            }
            Fact::Ended { why } => {
                self.life = Life::Ended(*why);
                self.crowded = None;
                self.pending = None;
                self.origin = None;
                self.untold = false;
                self.learned.clear();
            }
            Fact::Stale { fence, kind } => {
                if self.stale.len() >= STALE_MAX {
                    self.stale.remove(0);
                }
                self.stale.push((*fence, *kind));
                self.stale.sort_unstable();
            }
        }
    }

    fn tend(&mut self, message: MessageId, change: impl FnOnce(&mut Waiting)) {
        if let Some(waiting) = self.queue.iter_mut().find(|waiting| waiting.message == message) {
            change(waiting);
        }
    }

    fn drop(&mut self, message: MessageId) {
        self.queue.retain(|waiting| waiting.message != message);
    }

    fn arrange(&mut self, order: &[MessageId]) {
        let place = |waiting: &Waiting| order.iter().position(|message| *message == waiting.message);
        self.queue.sort_by_key(place);
    }

    fn start(&mut self, turn: Turn, message: MessageId) {
        let Some(at) = self.queue.iter().position(|waiting| waiting.message == message) else { return };
        let by = self.queue.remove(at).by;
        let stage = Stage::Resting { tried: Attempt(0), again_at: Moment(0) };
        let (approvals, steered, missed) = (Vec::new(), Vec::new(), Vec::new());
        self.work = Work::Busy(Running { turn, message, by, stage, approvals, steered, missed });
        self.last_turn = turn;
        self.crowded = None;
    }

    fn take_into_turn(&mut self, turn: Turn, message: MessageId) {
        let at = self.queue.iter().position(|waiting| waiting.message == message);
        let waiting = at.map(|at| self.queue.remove(at));
        if let (Some(running), Some(waiting)) = (self.turn_mut(turn), waiting) {
            running.steered.push(waiting);
        }
    }

    fn miss(&mut self, message: MessageId) {
        let Work::Busy(running) = &mut self.work else { return };
        if let Some(at) = running.steered.iter().position(|steered| steered.message == message) {
            let waiting = running.steered.remove(at);
            running.missed.push(message);
            self.queue.insert(0, waiting);
        }
    }

    /// Another agent knows nothing of what was said to the one before, and the same one may know nothing of it here: only an
    /// answer shows that its memory has followed.
    fn move_to(&mut self, epoch: Epoch, scope: &Scope) {
        self.come_back();
        self.pending = None;
        self.epoch = epoch;
        let (Life::Open(now) | Life::Ending(now)) = &mut self.life else { return };
        let other = now.agent != scope.agent;
        self.untold |= self.native.is_some() || (other && self.last_turn > Turn(0));
        self.native = self.native.take().filter(|_| !other);
        *now = scope.clone();
    }

    fn come_back(&mut self) {
        if let Work::Away(_) = self.work {
            self.work = Work::Idle;
        }
    }

    /// The lesson of an end about the conversation: an answer proves it, what is gone has no name any more and is told
    /// again if anything in it was answered, and what was to be told what was said before has to be told it again.
    fn learn(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Answered => {
                // It has been told, and has answered; but a name from elsewhere proves nothing here.
                let moved = self.native.as_ref().is_some_and(|known| known.epoch != self.epoch);
                for known in self.native.iter_mut().filter(|_| !moved) {
                    (known.proven, known.told) = (true, false);
                }
                self.untold &= moved;
                self.origin = None;
            }
            Outcome::Failed(Failure::Gone) => {
                self.untold |= self.native.take().is_some_and(|known| known.proven);
            }
            Outcome::Failed(Failure::Busy | Failure::Transient | Failure::Refused)
            | Outcome::Stopped
            | Outcome::Interrupted
            | Outcome::TimedOut => self.native = self.native.take().filter(|known| !known.told),
        }
    }

    fn turn_mut(&mut self, turn: Turn) -> Option<&mut Running> {
        match &mut self.work {
            Work::Busy(running) if running.turn == turn => Some(running),
            Work::Busy(_) | Work::Idle | Work::Away(_) => None,
        }
    }

    fn stage(&mut self, turn: Turn, stage: Stage) {
        if let Some(running) = self.turn_mut(turn) {
            running.stage = stage;
        }
    }

    fn hand(&mut self, turn: Turn) {
        if let Some(running) = self.turn_mut(turn)
            && let Stage::Starting { fence, until } = running.stage
        {
            running.stage = Stage::Working { fence, until };
        }
    }

    fn stop_stage(&mut self, turn: Turn, why: StopWhy) {
        if let Some(running) = self.turn_mut(turn)
            && let Some(fence) = running.stage.fence()
        {
            let handed = matches!(running.stage, Stage::Working { .. });
            running.stage = Stage::Stopping { fence, why, handed };
        }
    }

    fn ask(&mut self, ask: TurnApproval) {
        let Work::Busy(running) = &mut self.work else { return };
        running.approvals.retain(|known| known.approval() != ask.approval());
        running.approvals.push(ask);
    }
}

impl TurnApproval {
    /// The question's id.
    pub fn approval(&self) -> crate::ApprovalId {
        match self {
            Self::Open { approval, .. } | Self::Answered { approval, .. } | Self::Lapsed { approval } => {
                *approval
            }
        }
    }
}

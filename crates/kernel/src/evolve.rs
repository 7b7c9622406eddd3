//! Folds a fact into a session. It cannot refuse: the fact has happened.

use crate::decide::STALE_MAX;
use crate::session::*;
use crate::{Attempt, Failure, MessageId, Moment, Turn};
use alloc::vec::Vec;

impl Session {
    /// What the session is after this fact.
    pub fn evolve(&mut self, fact: &Fact) {
        match fact {
            Fact::Opened { scope } => self.life = Life::Open(scope.clone()),
            Fact::Queued { message, by } => {
                self.queue.push(Waiting { message: *message, by: *by, revision: 0, hold: None });
            }
            Fact::Edited { message, revision } => self.tend(*message, |w| w.revision = *revision),
            Fact::Held { message, why, expires } => self.tend(*message, |w| w.hold = Some((*why, *expires))),
            Fact::Released { message } => self.tend(*message, |w| w.hold = None),
            Fact::Withdrawn { message, .. } | Fact::MessageRefused { message, .. } => self.drop(*message),
            Fact::Reordered { order } => self.arrange(order),
            Fact::Crowded { until } => self.crowded = Some(*until),
            Fact::TurnStarted { turn, message } => self.start(*turn, *message),
            Fact::AttemptStarted { fence, until } => {
                self.stage(fence.turn, Stage::Starting { fence: *fence, until: *until });
            }
            Fact::Confirmed { native, epoch } => {
                self.native = Some(Known { native: native.clone(), epoch: *epoch, proven: false });
            }
            Fact::Handed { turn, .. } => self.hand(*turn),
            Fact::AttemptFailed { turn, attempt, failure, again_at } => {
                self.stage(*turn, Stage::Resting { tried: *attempt, again_at: *again_at });
                self.learn(Outcome::Failed(*failure));
            }
            Fact::Asked { approval, until, .. } => {
                self.ask(Ask::Open { approval: *approval, until: *until });
            }
            Fact::Answered { approval, answer, .. } => {
                self.ask(Ask::Answered { approval: *approval, answer: *answer });
            }
            Fact::Lapsed { approval } => self.ask(Ask::Lapsed { approval: *approval }),
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
        self.work = Work::Busy(Running { turn, message, by, stage, asks: Vec::new() });
        self.last_turn = turn;
        self.crowded = None;
    }

    /// What an end says about the conversation: an answer proves it, and what is gone has no name any more.
    fn learn(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Answered => {
                let known = self.native.as_mut().filter(|known| known.epoch == self.epoch);
                known.into_iter().for_each(|known| known.proven = true);
            }
            Outcome::Failed(Failure::Gone) => self.native = None,
            Outcome::Failed(Failure::Busy | Failure::Transient | Failure::Refused)
            | Outcome::Stopped
            | Outcome::Interrupted
            | Outcome::TimedOut => {}
        }
    }

    fn turn_mut(&mut self, turn: Turn) -> Option<&mut Running> {
        match &mut self.work {
            Work::Busy(running) if running.turn == turn => Some(running),
            Work::Busy(_) | Work::Idle => None,
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

    fn ask(&mut self, ask: Ask) {
        let Work::Busy(running) = &mut self.work else { return };
        running.asks.retain(|known| known.approval() != ask.approval());
        running.asks.push(ask);
    }
}

impl Ask {
    /// The question's id.
    pub fn approval(&self) -> crate::ApprovalId {
        match self {
            Self::Open { approval, .. } | Self::Answered { approval, .. } | Self::Lapsed { approval } => {
                *approval
            }
        }
    }
}

//! The judgement of a command: facts, or a refusal. Changes nothing.
//!
//! Every rule about *whether* something may happen in a session stands here, once (changes of scope: `scope`; who may at all:
//! `access` and `people`). `next_turn` is the only place where waiting
//! becomes running, `turn_over` the only place where a turn ends, `over` the only place where a session does.

use crate::approval::{Answer, Answerer, TurnApproval};
use crate::request::Request;
use crate::scope::{Change, Origin, Scope, What};
use crate::session::*;
use crate::worktree::NewWorktree;
use crate::{ApprovalId, Attempt, EndWhy, Epoch, Failure, Fence, MessageId, Moment, Native, PersonId, Turn};
use alloc::vec;
use alloc::vec::Vec;

/// Stale reports remembered, so that each is recorded once. Older ones are not recorded at all.
pub(crate) const STALE_MAX: usize = 32;

type Facts = Vec<Fact>;

impl Session {
    /// The facts that follow from this command now, or its refusal.
    pub fn decide(&self, command: Command, given: &Given) -> Result<Facts, Refusal> {
        let mut facts = self.judge_command(command, given)?;
        let changes = self.pending.is_some()
            || facts.iter().any(|fact| matches!(fact, Fact::ChangeAsked { .. } | Fact::Opened { .. }));
        let starts = given.slot != Slot::Unasked && self.may_start_after(&facts);
        if changes || starts {
            let mut after = self.clone();
            facts.iter().for_each(|fact| after.evolve(fact));
            // A change of scope goes before what waits, and never into a turn.
            let changed = after.next_change(given);
            changed.iter().for_each(|fact| after.evolve(fact));
            facts.extend(changed);
            if starts {
                facts.extend(after.next_turn(given)); // The only place where waiting becomes running.
            }
        }
        Ok(facts)
    }

    fn judge_command(&self, command: Command, given: &Given) -> Result<Facts, Refusal> {
        match command {
            Command::Open { scope, origin, enter } => self.open(scope, origin, enter),
            Command::Say { message, by, delivery, under } => self.say(message, by, delivery, under, given),
            Command::Request { request, by, written_for } => self.grant(request, by, written_for, given),
            Command::Answer { approval, answer, by } => self.answer_ask(approval, answer, by),
            Command::Return { errand, came } => Ok(self.returned(errand, came, given)),
            Command::Wake => Ok(self.wake(given)),
            Command::Revoke { message } => self.revoke(message, given),
            Command::HandOver { to } => Ok(self.hand_over(to, given)),
            Command::Report { fence, report } => Ok(self.report(fence, report, given)),
        }
    }

    fn grant(
        &self,
        request: Request,
        by: PersonId,
        written_for: Option<Scope>,
        given: &Given,
    ) -> Result<Facts, Refusal> {
        match request {
            Request::Edit { message, revision } => self.edit(message, revision),
            Request::Withdraw { message } => {
                self.waiting(message)?;
                Ok(vec![Fact::Withdrawn { message, by }])
            }
            Request::Hold { message } => self.hold(message, given),
            Request::Release { message, there: false } => self.release(message),
            Request::Release { message, there: true } => self.release_there(message, written_for, by),
            Request::Steer { message } => self.say_waiting_into_turn(message, given),
            Request::Interrupt { message } => self.interrupt_with_waiting(message, by, given),
            Request::Reorder { order, session: _ } => self.reorder(order),
            Request::Stop { message } => Ok(self.stop(message, by, given)),
            // What is remembered becomes a rule of the org, which is none of the session's business.
            Request::Answer { approval, answer, remember: _ } => {
                self.answer_ask(approval, answer, Answerer::Person(by))
            }
            Request::ChangeScope { change, now, session: _ } => self.change(change, now, by),
            Request::KeepScope { session: _ } => self.keep_scope(by),
            Request::Undo { turn, under, files, session: _ } => {
                self.put_back(What::Undo { turn, files }, turn, under, by, given)
            }
            Request::Redo { turn, under, session: _ } => {
                self.put_back(What::Redo { turn }, turn, under, by, given)
            }
            Request::Chore { chore, session: _ } => self.holds_still_for(&chore).map(|()| vec![]),
            Request::End { session: _ } => self.end(by, given),
        }
    }

    fn open(
        &self,
        scope: Scope,
        origin: Option<Origin>,
        enter: Option<NewWorktree>,
    ) -> Result<Facts, Refusal> {
        match self.life {
            Life::Unopened => Ok(vec![Fact::Opened { scope, origin, enter }]),
            Life::Open(_) | Life::Ending(_) | Life::Ended(_) => Err(Refusal::AlreadyOpen),
        }
    }

    /// A message that was accepted always reaches a final state, so this never refuses without a fact.
    fn say(
        &self,
        message: MessageId,
        by: PersonId,
        delivery: Delivery,
        under: Option<Epoch>,
        given: &Given,
    ) -> Result<Facts, Refusal> {
        match self.life {
            Life::Unopened => Err(Refusal::NotOpen),
            Life::Open(_) => {
                let epoch = under.unwrap_or(self.epoch);
                let mut facts = vec![Fact::Queued { message, by, delivery, epoch }];
                match (epoch == self.epoch, delivery) {
                    (false, _) => facts.push(held(message, HoldWhy::OtherScope, given)),
                    (true, Delivery::Queue) => {}
                    (true, Delivery::Interrupt) => facts.extend(self.interrupt(message, by, given)),
                    (true, Delivery::Steer) => facts.extend(self.say_into_turn(message, given)),
                }
                Ok(facts)
            }
            Life::Ending(_) | Life::Ended(_) => {
                Ok(vec![Fact::MessageRefused { message, why: RefusedWhy::SessionEnded }])
            }
        }
    }

    /// It comes before all that waits, and what runs makes room.
    fn interrupt(&self, message: MessageId, by: PersonId, given: &Given) -> Facts {
        let mut facts = vec![];
        if self.queue.first().is_some_and(|first| first.message != message) {
            let others = self.queue.iter().map(|waiting| waiting.message).filter(|other| *other != message);
            facts.push(Fact::Reordered { order: [message].into_iter().chain(others).collect() });
        }
        if let Work::Busy(running) = &self.work {
            facts.extend(self.stop_turn(running, StopWhy::Asked(by), given));
        }
        facts
    }

    /// Words can be added only while the agent works on the turn, and only if it listens.
    fn say_into_turn(&self, message: MessageId, given: &Given) -> Facts {
        match &self.work {
            Work::Busy(Running { stage: Stage::Working { fence, .. }, turn, .. })
                if given.can_steer && fence.term == given.term =>
            {
                vec![Fact::Steered { message, turn: *turn }]
            }
            Work::Busy(_) | Work::Idle | Work::Away(_) => vec![],
        }
    }

    /// Says a waiting message into the turn under way. One that has missed this turn once is not said into it again: whoever runs the turn
    /// knows it as said.
    fn say_waiting_into_turn(&self, message: MessageId, given: &Given) -> Result<Facts, Refusal> {
        let mut facts = self.let_go_here(message)?;
        let said = self.say_into_turn(message, given);
        let has_missed = self.running().is_some_and(|running| running.missed.contains(&message));
        if said.is_empty() || has_missed {
            return Err(Refusal::NotListening);
        }
        facts.extend(said);
        Ok(facts)
    }

    fn interrupt_with_waiting(
        &self,
        message: MessageId,
        by: PersonId,
        given: &Given,
    ) -> Result<Facts, Refusal> {
        let mut facts = self.let_go_here(message)?;
        facts.extend(self.interrupt(message, by, given));
        Ok(facts)
    }

    /// Lets go of a waiting message that is to be heard at once; but where it belongs has to be said first, if it was written for
    /// another scope.
    fn let_go_here(&self, message: MessageId) -> Result<Facts, Refusal> {
        self.takes_changes()?;
        match self.waiting(message)?.epoch == self.epoch {
            true => self.release(message),
            false => Err(Refusal::OtherScope),
        }
    }

    fn edit(&self, message: MessageId, revision: u32) -> Result<Facts, Refusal> {
        let waiting = self.waiting(message)?;
        if waiting.revision != revision {
            return Err(Refusal::Changed);
        }
        Ok(vec![Fact::Edited { message, revision: revision + 1 }])
    }

    /// The right to say it is gone: it is not started, nor tried again, and what runs is stopped.
    fn revoke(&self, message: MessageId, given: &Given) -> Result<Facts, Refusal> {
        match &self.work {
            Work::Busy(running) if running.message == message => match running.stage {
                Stage::Resting { .. } => {
                    Ok(self.turn_over(running, Outcome::Failed(Failure::Refused), None, given))
                }
                Stage::Starting { .. } | Stage::Working { .. } | Stage::Stopping { .. } => {
                    Ok(self.stop_turn(running, StopWhy::Revoked, given))
                }
            },
            // What was said into a turn cannot be taken out of it again.
            Work::Busy(running) if running.steered.iter().any(|steered| steered.message == message) => {
                Ok(self.stop_turn(running, StopWhy::Revoked, given))
            }
            Work::Busy(_) | Work::Idle | Work::Away(_) => {
                self.waiting(message)?;
                Ok(vec![Fact::MessageRefused { message, why: RefusedWhy::NotAllowed }])
            }
        }
    }

    /// Nothing that was said to somebody else's agent reaches the new owner's: what waits is refused, a change of scope that
    /// waits is given up, what runs is stopped.
    fn hand_over(&self, to: PersonId, given: &Given) -> Facts {
        let why = RefusedWhy::HandedOver;
        let waiting = self.queue.iter().map(|waiting| waiting.message);
        let mut facts: Facts = waiting.map(|message| Fact::MessageRefused { message, why }).collect();
        facts.extend(self.keep_scope(to).unwrap_or_default());
        let mut after = self.clone();
        facts.iter().for_each(|fact| after.evolve(fact));
        if let Work::Busy(running) = &after.work {
            facts.extend(after.stop_turn(running, StopWhy::HandedOver, given));
        }
        facts
    }

    fn hold(&self, message: MessageId, given: &Given) -> Result<Facts, Refusal> {
        match self.waiting(message)?.hold {
            Some(_) => Ok(vec![]),
            None => Ok(vec![held(message, HoldWhy::Asked, given)]),
        }
    }

    fn release(&self, message: MessageId) -> Result<Facts, Refusal> {
        match self.waiting(message)?.hold {
            None => Ok(vec![]),
            Some(_) => Ok(vec![Fact::Released { message, epoch: self.epoch }]),
        }
    }

    /// The session goes back with it, unless it is there.
    fn release_there(
        &self,
        message: MessageId,
        written_for: Option<Scope>,
        by: PersonId,
    ) -> Result<Facts, Refusal> {
        let waiting = self.waiting(message)?;
        if waiting.hold.is_none() || waiting.epoch == self.epoch {
            return self.release(message);
        }
        match written_for {
            Some(scope) if Some(&scope) == self.scope() => self.release(message),
            Some(scope) => self.change(Change::Back { scope, message }, false, by),
            None => Err(Refusal::Changed), // Nobody knows where that was.
        }
    }

    fn reorder(&self, order: Vec<MessageId>) -> Result<Facts, Refusal> {
        self.takes_changes()?;
        let mut wanted = order.clone();
        let mut there: Vec<_> = self.queue.iter().map(|waiting| waiting.message).collect();
        wanted.sort_unstable();
        there.sort_unstable();
        if wanted == there { Ok(vec![Fact::Reordered { order }]) } else { Err(Refusal::Changed) }
    }

    /// Stopping names a message, never "whatever runs now": what has ended stays as it is, what comes next goes on.
    fn stop(&self, message: MessageId, by: PersonId, given: &Given) -> Facts {
        if self.waiting(message).is_ok() {
            return vec![Fact::Withdrawn { message, by }];
        }
        match &self.work {
            Work::Busy(running) if running.message == message => {
                self.stop_turn(running, StopWhy::Asked(by), given)
            }
            Work::Busy(running) if running.steered.iter().any(|steered| steered.message == message) => {
                self.stop_turn(running, StopWhy::Asked(by), given)
            }
            // Stopping what has already ended is what the person wanted.
            Work::Busy(_) | Work::Idle | Work::Away(_) => vec![],
        }
    }

    fn stop_turn(&self, running: &Running, why: StopWhy, given: &Given) -> Facts {
        match running.stage {
            Stage::Resting { .. } => self.turn_over(running, stopped_as(why), None, given),
            Stage::Starting { .. } | Stage::Working { .. } => {
                vec![Fact::StopAsked { turn: running.turn, why }]
            }
            Stage::Stopping { .. } => vec![],
        }
    }

    fn end(&self, by: PersonId, given: &Given) -> Result<Facts, Refusal> {
        match (&self.life, &self.work) {
            (Life::Unopened, _) => Err(Refusal::NotOpen),
            (Life::Ending(_) | Life::Ended(_), _) => Ok(vec![]),
            (Life::Open(_), Work::Idle) => Ok(self.over(EndWhy::Asked)),
            // What is under way outside comes back first.
            (Life::Open(_), Work::Away(_)) => Ok(vec![Fact::EndAsked { by }]),
            (Life::Open(scope), Work::Busy(running)) => {
                let mut facts = vec![Fact::EndAsked { by }];
                let ending = Self { life: Life::Ending(scope.clone()), ..self.clone() };
                facts.extend(ending.stop_turn(running, StopWhy::Ending, given));
                Ok(facts)
            }
        }
    }

    /// Everything whose time has come. Waking too early, twice or for nothing is harmless.
    fn wake(&self, given: &Given) -> Facts {
        let expired = self.queue.iter().filter(|w| w.hold.is_some_and(|(_, until)| until <= given.now));
        let mut facts: Facts =
            expired.map(|w| Fact::MessageRefused { message: w.message, why: RefusedWhy::Expired }).collect();
        if let Work::Busy(running) = &self.work {
            facts.extend(self.wake_turn(running, given));
        }
        facts
    }

    fn wake_turn(&self, running: &Running, given: &Given) -> Facts {
        match running.stage {
            Stage::Resting { tried, again_at } if again_at <= given.now => {
                vec![self.attempt(running.turn, tried.next(), given)]
            }
            Stage::Starting { fence, until } | Stage::Working { fence, until }
                if fence.term == given.term =>
            {
                match until <= given.now {
                    true => vec![Fact::StopAsked { turn: running.turn, why: StopWhy::TimeLimit }],
                    false => running.late_asks(given.now),
                }
            }
            // An attempt of an earlier term has no deadlines: if we were away for long, that was our time, not its.
            Stage::Starting { .. }
            | Stage::Working { .. }
            | Stage::Resting { .. }
            | Stage::Stopping { .. } => {
                vec![]
            }
        }
    }

    /// Only the attempt that runs is heard, and of an earlier keeper's only that nothing of it is left. Anything else is
    /// recorded once and changes nothing.
    fn report(&self, fence: Fence, report: Report, given: &Given) -> Facts {
        let ours = fence.term == given.term || report == Report::Lost;
        match &self.work {
            Work::Busy(running) if ours && running.stage.fence() == Some(fence) => match report {
                Report::Ready { native } => self.ready(running, native),
                Report::Asked { approval, terms } => match running.stage {
                    Stage::Working { .. } if !running.has_asked(approval) => {
                        let until = given.now.after_ms(given.policy.ask_ms_max);
                        vec![Fact::Asked { approval, turn: running.turn, until, terms }]
                    }
                    // Asked before: a question that was answered never changes again.
                    Stage::Working { .. } => vec![],
                    Stage::Resting { .. } | Stage::Starting { .. } | Stage::Stopping { .. } => vec![],
                },
                // Open or not is all that counts: an answer that came first stays.
                Report::Withdrawn { approval } => running.open(approval).filter_map(lapsed).collect(),
                Report::Missed { message } => self.missed(running, message),
                Report::Finished { native } => self.finished(running, native, given),
                Report::Failed(failure) => self.failed(running, failure, given),
                Report::Stopped | Report::Lost => self.lost(running, given),
            },
            Work::Busy(_) | Work::Idle | Work::Away(_) => self.stale(fence, report.kind()),
        }
    }

    /// Is this the attempt that runs, so that its words belong into the log?
    pub fn hears(&self, fence: Fence) -> bool {
        matches!(&self.work, Work::Busy(running) if running.stage.fence() == Some(fence))
    }

    /// Records, once, that a report of this kind came from an attempt that no longer counts.
    pub fn stale(&self, fence: Fence, kind: ReportKind) -> Facts {
        let known = self.stale.contains(&(fence, kind));
        // What is older than everything we remember may have been recorded before; once is the promise.
        let forgotten =
            self.stale.len() >= STALE_MAX && self.stale.first().is_some_and(|oldest| (fence, kind) < *oldest);
        if known || forgotten { vec![] } else { vec![Fact::Stale { fence, kind }] }
    }

    fn ready(&self, running: &Running, native: Option<Native>) -> Facts {
        let Stage::Starting { fence, .. } = running.stage else {
            return vec![]; // Handed before, or being stopped: it must not be handed over (again).
        };
        // Recorded at once the first time: if we die after this, the next turn must find the conversation. Later a
        // different name counts only when the turn it came with has succeeded.
        let known = self.native.as_ref().is_some_and(|known| known.epoch == self.epoch);
        let mut facts: Facts = native
            .filter(|_| !known)
            .map(|native| Fact::Confirmed { native, epoch: self.epoch })
            .into_iter()
            .collect();
        facts.push(Fact::Handed { turn: running.turn, attempt: fence.attempt });
        facts
    }

    /// Whoever said it is better served by a turn of its own than by silence. But what somebody has stopped is not begun
    /// again by itself: then it ends with its turn.
    fn missed(&self, running: &Running, message: MessageId) -> Facts {
        let steered = running.steered.iter().any(|steered| steered.message == message);
        let stopped = match running.stage {
            Stage::Stopping { why, .. } => why != StopWhy::TimeLimit,
            Stage::Resting { .. } | Stage::Starting { .. } | Stage::Working { .. } => false,
        };
        match &self.life {
            Life::Open(_) if steered && !stopped => {
                [Fact::Missed { message }].into_iter().chain(self.after_missed(running, message)).collect()
            }
            Life::Open(_) | Life::Unopened | Life::Ending(_) | Life::Ended(_) => vec![],
        }
    }

    /// Of several that did not get there, the one that was said first still comes first.
    fn after_missed(&self, running: &Running, message: MessageId) -> Option<Fact> {
        let mut order: Vec<_> = self.queue.iter().map(|waiting| waiting.message).collect();
        let before = order.iter().take_while(|waiting| running.missed.contains(waiting)).count();
        order.insert(before, message);
        (before > 0).then_some(Fact::Reordered { order })
    }

    fn finished(&self, running: &Running, native: Option<Native>, given: &Given) -> Facts {
        if let Stage::Starting { .. } | Stage::Stopping { handed: false, .. } = running.stage {
            // It cannot have finished what it was never given.
            return self.failed(running, Failure::Transient, given);
        }
        let known = self.native.as_ref();
        let confirmed = native
            .filter(|native| known.is_none_or(|known| known.native != *native || known.epoch != self.epoch));
        let mut facts: Facts =
            confirmed.into_iter().map(|native| Fact::Confirmed { native, epoch: self.epoch }).collect();
        facts.extend(self.turn_over(running, Outcome::Answered, None, given));
        facts
    }

    fn failed(&self, running: &Running, failure: Failure, given: &Given) -> Facts {
        if let (Stage::Starting { fence, .. }, Failure::Gone) = (running.stage, failure)
            && self.has_moved()
        {
            // The agent does not know it here; that says nothing of where it was. It is told again in a new one.
            return self.failed_before_handed(running, fence, failure, given);
        }
        let failure = match failure {
            Failure::Gone if !self.may_be_gone() => Failure::Transient,
            other => other,
        };
        match (running.stage, failure) {
            (Stage::Stopping { why, .. }, _) => self.turn_over(running, stopped_as(why), None, given),
            // Nothing that anybody was answered is lost with it, or it can be told again: the next attempt begins a new
            // conversation.
            (Stage::Starting { fence, .. }, Failure::Gone) if given.forgets || !self.is_proven() => {
                self.failed_before_handed(running, fence, failure, given)
            }
            // What was handed over is not run again by itself; the next turn begins a new conversation.
            (_, Failure::Gone) if given.forgets => {
                self.turn_over(running, Outcome::Failed(failure), None, given)
            }
            (Stage::Starting { fence, .. }, Failure::Transient | Failure::Busy) => {
                self.failed_before_handed(running, fence, failure, given)
            }
            (_, Failure::Gone) => {
                self.turn_over(running, Outcome::Failed(failure), Some(EndWhy::Gone), given)
            }
            (_, Failure::Transient | Failure::Busy | Failure::Refused) => {
                self.turn_over(running, Outcome::Failed(failure), None, given)
            }
        }
    }

    /// It cannot have acted, so it may be tried again; a bounded number of times.
    fn failed_before_handed(
        &self,
        running: &Running,
        fence: Fence,
        failure: Failure,
        given: &Given,
    ) -> Facts {
        if fence.attempt.0 < given.policy.attempts_max {
            vec![self.again(running.turn, fence.attempt, failure, given)]
        } else {
            self.turn_over(running, Outcome::Failed(failure), None, given)
        }
    }

    /// The attempt's processes are gone and nobody knows how it would have ended.
    fn lost(&self, running: &Running, given: &Given) -> Facts {
        match running.stage {
            Stage::Stopping { why, .. } => self.turn_over(running, stopped_as(why), None, given),
            Stage::Working { .. } => self.turn_over(running, Outcome::Interrupted, None, given),
            Stage::Starting { .. } | Stage::Resting { .. } => self.failed(running, Failure::Transient, given),
        }
    }

    /// Gone counts only for a name that the agent itself had confirmed under this epoch.
    fn may_be_gone(&self) -> bool {
        self.native.as_ref().is_some_and(|known| known.epoch == self.epoch)
    }

    /// True if the conversation was last confirmed in an earlier scope.
    fn has_moved(&self) -> bool {
        self.native.as_ref().is_some_and(|known| known.epoch != self.epoch)
    }

    fn is_proven(&self) -> bool {
        self.native.as_ref().is_some_and(|known| known.proven)
    }

    fn turn_over(&self, running: &Running, outcome: Outcome, ends: Option<EndWhy>, given: &Given) -> Facts {
        let mut facts: Facts = running.approvals.iter().filter_map(lapsed).collect();
        facts.push(Fact::TurnEnded { turn: running.turn, outcome });
        match (&self.life, ends) {
            (_, Some(why)) => facts.extend(self.over(why)),
            (Life::Ending(_), None) => facts.extend(self.over(EndWhy::Asked)),
            (Life::Open(_), None) => facts.extend(self.held_after(outcome, given)),
            (Life::Unopened | Life::Ended(_), None) => {}
        }
        facts
    }

    /// The fate of waiting messages after a turn: only a failure makes them wait for somebody to look.
    fn held_after(&self, outcome: Outcome, given: &Given) -> Facts {
        match (outcome, given.policy.after_failure) {
            (Outcome::Failed(_) | Outcome::TimedOut, AfterFailure::Hold) => {
                self.all_held(HoldWhy::AfterFailure, given)
            }
            (Outcome::Failed(_) | Outcome::TimedOut, AfterFailure::GoOn)
            | (Outcome::Answered | Outcome::Stopped | Outcome::Interrupted, _) => vec![],
        }
    }

    /// Everything that could be started waits for a person.
    pub(crate) fn all_held(&self, why: HoldWhy, given: &Given) -> Facts {
        let startable = self.queue.iter().filter(|waiting| waiting.is_startable());
        startable.map(|waiting| held(waiting.message, why, given)).collect()
    }

    /// The end, and the refusal of everything that waits, are one append.
    pub(crate) fn over(&self, why: EndWhy) -> Facts {
        let refused = |waiting: &Waiting| Fact::MessageRefused {
            message: waiting.message,
            why: RefusedWhy::SessionEnded,
        };
        self.queue.iter().map(refused).chain([Fact::Ended { why }]).collect()
    }

    fn may_start_after(&self, facts: &[Fact]) -> bool {
        let ends = |fact: &Fact| {
            matches!(
                fact,
                Fact::TurnEnded { .. }
                    | Fact::ScopeChanged { .. }
                    | Fact::ErrandFailed { .. }
                    | Fact::Undone { .. }
                    | Fact::Redone { .. }
            )
        };
        matches!(self.work, Work::Idle) || facts.iter().any(ends)
    }

    fn next_turn(&self, given: &Given) -> Facts {
        let next = self.queue.iter().find(|waiting| waiting.is_startable());
        let (Life::Open(_), Work::Idle, Some(next)) = (&self.life, &self.work, next) else {
            return vec![];
        };
        match (given.slot, self.crowded) {
            (Slot::Free, _) => {
                let turn = self.last_turn.next();
                let started = Fact::TurnStarted { turn, message: next.message };
                vec![started, self.attempt(turn, Attempt(1), given)]
            }
            (Slot::Unasked, _) => vec![],
            (Slot::Taken, Some(until)) if until > given.now => vec![],
            (Slot::Taken, _) => vec![Fact::Crowded { until: given.now.after_ms(given.policy.crowded_ms) }],
        }
    }

    fn attempt(&self, turn: Turn, attempt: Attempt, given: &Given) -> Fact {
        let fence = Fence { term: given.term, epoch: self.epoch, turn, attempt };
        Fact::AttemptStarted { fence, until: given.now.after_ms(given.policy.turn_ms_max) }
    }

    fn again(&self, turn: Turn, attempt: Attempt, failure: Failure, given: &Given) -> Fact {
        let doublings = u32::from(attempt.0.saturating_sub(1)).min(16) * 2;
        let wait_ms = given.policy.backoff_ms.saturating_mul(1 << doublings).min(given.policy.backoff_ms_max);
        Fact::AttemptFailed { turn, attempt, failure, again_at: given.now.after_ms(wait_ms) }
    }

    pub(crate) fn takes_changes(&self) -> Result<(), Refusal> {
        match self.life {
            Life::Unopened => Err(Refusal::NotOpen),
            Life::Open(_) => Ok(()),
            Life::Ending(_) | Life::Ended(_) => Err(Refusal::Ended),
        }
    }

    fn waiting(&self, message: MessageId) -> Result<&Waiting, Refusal> {
        self.queue.iter().find(|waiting| waiting.message == message).ok_or(Refusal::TooLate)
    }

    /// A person's or a rule's answer to a question of the agent: the first that fits counts.
    fn answer_ask(&self, approval: ApprovalId, answer: Answer, by: Answerer) -> Result<Facts, Refusal> {
        let Work::Busy(running) = &self.work else { return Err(Refusal::TooLate) };
        match running.open(approval).next() {
            Some(TurnApproval::Open { form, .. }) if form.takes(&answer) => {}
            Some(TurnApproval::Open { .. }) => return Err(Refusal::Unfit),
            Some(TurnApproval::Answered { .. } | TurnApproval::Lapsed { .. }) | None => {
                return Err(Refusal::TooLate);
            }
        }
        match by {
            // Silence is an answer only when the time for it is over, and only `wake` knows when that is.
            Answerer::Nobody => Ok(vec![]),
            Answerer::Person(_) | Answerer::Rule(_) | Answerer::Policy => {
                Ok(vec![Fact::Answered { approval, answer, by }])
            }
        }
    }
}

impl Running {
    fn has_asked(&self, approval: ApprovalId) -> bool {
        self.approvals.iter().any(|ask| ask.approval() == approval)
    }

    /// The question of this name, while nobody has answered it.
    fn open(&self, wanted: ApprovalId) -> impl Iterator<Item = &TurnApproval> {
        self.approvals
            .iter()
            .filter(move |ask| matches!(ask, TurnApproval::Open { approval, .. } if *approval == wanted))
    }

    fn late_asks(&self, now: Moment) -> Facts {
        let late = self.approvals.iter().filter_map(|ask| match ask {
            TurnApproval::Open { approval, until, .. } if *until <= now => Some(*approval),
            TurnApproval::Open { .. } | TurnApproval::Answered { .. } | TurnApproval::Lapsed { .. } => None,
        });
        late.map(|approval| Fact::Answered { approval, answer: Answer::No, by: Answerer::Nobody }).collect()
    }
}

pub(crate) fn held(message: MessageId, why: HoldWhy, given: &Given) -> Fact {
    Fact::Held { message, why, expires: given.now.after_ms(given.policy.hold_ms_max) }
}

fn lapsed(ask: &TurnApproval) -> Option<Fact> {
    match ask {
        TurnApproval::Open { approval, .. } => Some(Fact::Lapsed { approval: *approval }),
        TurnApproval::Answered { .. } | TurnApproval::Lapsed { .. } => None,
    }
}

fn stopped_as(why: StopWhy) -> Outcome {
    match why {
        StopWhy::Asked(_) | StopWhy::Ending | StopWhy::Revoked | StopWhy::HandedOver => Outcome::Stopped,
        StopWhy::TimeLimit => Outcome::TimedOut,
    }
}

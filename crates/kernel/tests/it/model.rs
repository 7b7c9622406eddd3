//! The laws once more, as plain bookkeeping.
//!
//! A list of messages, each with a state, and at most one turn. Nothing is derived from facts and nothing is pure:
//! events change the books, the way one would explain the laws at a table. It says nothing about facts, only about what
//! people and runners can see, so it may agree with the kernel only by saying the same thing in another way.

use crate::ledger::{Question, Receipt};
use crate::story::{Happening, POLICY};
use homing_kernel::{
    AfterFailure, Answer, ApprovalId, Attempt, Command, EndWhy, Epoch, Failure, Fence, MessageId, Moment,
    Native, Outcome, Policy, Refusal, Report, Slot, StopWhy, Term, Turn,
};
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
pub(crate) struct Model {
    /// Every message there ever was, and where it stands.
    pub(crate) messages: BTreeMap<MessageId, Receipt>,
    /// Every question there ever was, and where it stands.
    pub(crate) questions: BTreeMap<ApprovalId, Question>,
    /// The message of each turn, in order.
    pub(crate) turns: Vec<MessageId>,
    /// Why it ended, once it has.
    pub(crate) ended: Option<EndWhy>,
    ending: bool,
    line: Vec<MessageId>,
    kept_until: BTreeMap<MessageId, Moment>,
    revisions: BTreeMap<MessageId, u32>,
    now: Option<Now>,
    name: Option<(Native, Epoch)>,
    /// Whether that conversation has ever answered anything.
    answered: bool,
    asked_for_slot: Option<Moment>,
    clock: Moment,
    term: Term,
    slot: Slot,
    policy: Policy,
}

/// The turn under way.
#[derive(Debug, Clone)]
struct Now {
    message: MessageId,
    attempt: Attempt,
    process: Process,
}

#[derive(Debug, Clone)]
enum Process {
    /// There is none until then.
    None { until: Moment },
    /// There may be one, started under this term.
    Some { term: Term, until: Moment, handed: bool, stop: Option<StopWhy> },
}

impl Model {
    /// An open session under the first term.
    pub(crate) fn open() -> Self {
        Self {
            messages: BTreeMap::new(),
            questions: BTreeMap::new(),
            turns: vec![],
            ended: None,
            ending: false,
            line: vec![],
            kept_until: BTreeMap::new(),
            revisions: BTreeMap::new(),
            now: None,
            name: None,
            answered: false,
            asked_for_slot: None,
            clock: Moment(0),
            term: Term(1),
            slot: Slot::Free,
            policy: POLICY,
        }
    }

    /// What runs now.
    pub(crate) fn running(&self) -> Option<MessageId> {
        self.now.as_ref().map(|now| now.message)
    }

    /// The agent's own name, to resume under.
    pub(crate) fn name(&self) -> Option<&Native> {
        self.name.as_ref().map(|(name, _)| name)
    }

    /// The moment at which something happens by itself.
    pub(crate) fn alarm(&self) -> Option<Moment> {
        let mut alarms: Vec<Moment> = self.kept_until.values().copied().collect();
        if self.now.is_none() && self.next().is_some() {
            alarms.extend(self.asked_for_slot);
        }
        match self.now.as_ref().map(|now| &now.process) {
            Some(Process::None { until }) => alarms.push(*until),
            // An earlier keeper's process is buried at once; it has no time left to count.
            Some(Process::Some { term, until, stop: None, .. }) if *term == self.term => {
                alarms.push(*until);
                alarms.extend(self.questions.values().filter_map(|question| match question {
                    Question::Open { until } => Some(*until),
                    Question::Answered(_) | Question::Lapsed => None,
                }));
            }
            Some(Process::Some { .. }) | None => {}
        }
        alarms.into_iter().min()
    }

    /// Lets an event happen.
    pub(crate) fn happen(&mut self, event: &Happening) -> Result<(), Refusal> {
        match event {
            Happening::Tell { command, now } => {
                self.clock = *now;
                self.command(command)?;
                self.start_next();
            }
            Happening::Crash => self.term = self.term.next(),
            Happening::Slot(slot) => self.slot = *slot,
            Happening::AfterFailure(policy) => self.policy.after_failure = *policy,
            Happening::Confirmed { native, epoch } => self.named(native.clone(), *epoch),
        }
        Ok(())
    }

    fn command(&mut self, command: &Command) -> Result<(), Refusal> {
        let over = self.ending || self.ended.is_some();
        match command {
            Command::Open { .. } => return Err(Refusal::AlreadyOpen),
            Command::Say { message, .. } if over => {
                self.messages.insert(*message, Receipt::Refused);
            }
            Command::Say { message, .. } => {
                self.messages.insert(*message, Receipt::Waiting);
                self.line.push(*message);
            }
            Command::Edit { message, revision } => {
                self.must_wait(message)?;
                let seen = self.revisions.entry(*message).or_default();
                if seen != revision {
                    return Err(Refusal::Changed);
                }
                *seen += 1;
            }
            Command::Withdraw { message, .. } => {
                self.must_wait(message)?;
                self.leave(*message, Receipt::Withdrawn);
            }
            Command::Revoke { message } if self.running() == Some(*message) => match &self.now {
                Some(Now { process: Process::None { .. }, .. }) => {
                    self.over(Outcome::Failed(Failure::Refused));
                }
                _ => self.stop(StopWhy::Revoked),
            },
            Command::Revoke { message } => {
                self.must_wait(message)?;
                self.leave(*message, Receipt::Refused);
            }
            Command::Hold { message } => {
                self.must_wait(message)?;
                self.hold(*message);
            }
            Command::Release { message } => {
                self.must_wait(message)?;
                self.kept_until.remove(message);
                self.messages.insert(*message, Receipt::Waiting);
            }
            Command::Reorder { .. } if over => return Err(Refusal::Ended),
            Command::Reorder { order } => {
                let complete = self.line.iter().all(|message| order.contains(message));
                if !complete || order.len() != self.line.len() {
                    return Err(Refusal::Changed);
                }
                self.line = order.clone();
            }
            Command::Stop { message, by } => {
                if self.must_wait(message).is_ok() {
                    self.leave(*message, Receipt::Withdrawn);
                } else if self.running() == Some(*message) {
                    self.stop(StopWhy::Asked(*by));
                }
            }
            Command::Answer { approval, answer, .. } => match self.questions.get_mut(approval) {
                Some(question @ Question::Open { .. }) => *question = Question::Answered(*answer),
                _ => return Err(Refusal::TooLate),
            },
            Command::End { .. } if over => {}
            Command::End { .. } if self.now.is_some() => {
                self.ending = true;
                self.stop(StopWhy::Ending);
            }
            Command::End { .. } => self.end(EndWhy::Asked),
            Command::Wake => self.wake(),
            Command::Report { fence, report } => self.report(fence, report),
        }
        Ok(())
    }

    fn wake(&mut self) {
        let expired: Vec<_> =
            self.kept_until.iter().filter(|(_, until)| **until <= self.clock).map(|(m, _)| *m).collect();
        expired.into_iter().for_each(|message| self.leave(message, Receipt::Refused));
        let Some(now) = &mut self.now else { return };
        match &mut now.process {
            Process::None { until } if *until <= self.clock => {
                now.attempt = now.attempt.next();
                now.process = new_process(self.term, self.clock, &self.policy);
            }
            Process::Some { term, .. } if *term != self.term => {}
            Process::Some { until, stop: stop @ None, .. } if *until <= self.clock => {
                *stop = Some(StopWhy::TimeLimit);
            }
            Process::Some { stop: None, .. } => {
                for question in self.questions.values_mut() {
                    if matches!(question, Question::Open { until } if *until <= self.clock) {
                        *question = Question::Answered(Answer::No);
                    }
                }
            }
            Process::None { .. } | Process::Some { .. } => {}
        }
    }

    fn report(&mut self, fence: &Fence, report: &Report) {
        let turn = Turn(self.turns.len() as u32);
        let Some(Now { attempt, process: Process::Some { term, handed, stop, .. }, .. }) = &mut self.now
        else {
            return;
        };
        let epoch = Epoch(0);
        if *fence != (Fence { term: *term, epoch, turn, attempt: *attempt }) {
            return;
        }
        // An earlier keeper's attempt can only be buried.
        if *term != self.term && *report != Report::Lost {
            return;
        }
        match report {
            Report::Ready { native } => {
                if !*handed && stop.is_none() {
                    *handed = true;
                    if let (None, Some(native)) = (&self.name, native) {
                        self.named(native.clone(), epoch);
                    }
                }
            }
            Report::Asked { approval } => {
                if *handed && stop.is_none() && !self.questions.contains_key(approval) {
                    let until = self.clock.after_ms(self.policy.ask_ms_max);
                    self.questions.insert(*approval, Question::Open { until });
                }
            }
            Report::Withdrawn { approval } => {
                if let Some(question @ Question::Open { .. }) = self.questions.get_mut(approval) {
                    *question = Question::Lapsed;
                }
            }
            Report::Finished { native } if *handed => {
                if let Some(native) = native {
                    self.named(native.clone(), epoch);
                }
                self.answered = self.name.is_some();
                self.over(Outcome::Answered);
            }
            Report::Finished { .. } => self.fail(Failure::Transient),
            Report::Failed(failure) => self.fail(*failure),
            Report::Stopped | Report::Lost if *handed && stop.is_none() => self.over(Outcome::Interrupted),
            Report::Stopped | Report::Lost => self.fail(Failure::Transient),
        }
    }

    /// The process is gone, and it was not for having finished.
    fn fail(&mut self, failure: Failure) {
        let Some(now) = &mut self.now else { return };
        let Process::Some { handed, stop, .. } = &now.process else { return };
        let confirmed = matches!(&self.name, Some((_, Epoch(0))));
        let failure = if failure == Failure::Gone && !confirmed { Failure::Transient } else { failure };
        if failure == Failure::Gone && stop.is_none() {
            // Whatever comes next is another conversation.
            self.name = None;
        }
        if let Some(why) = stop {
            let outcome = stopped(*why);
            self.over(outcome);
        } else if failure == Failure::Gone && (*handed || self.answered) {
            self.over(Outcome::Failed(Failure::Gone));
            self.end(EndWhy::Gone);
        } else if !handed && failure != Failure::Refused && now.attempt.0 < self.policy.attempts_max {
            // 10, 40, 160 …, but never more than the most.
            let mut rest_ms = self.policy.backoff_ms;
            (1..now.attempt.0).for_each(|_| rest_ms *= 4);
            let until = self.clock.after_ms(rest_ms.min(self.policy.backoff_ms_max));
            now.process = Process::None { until };
        } else {
            self.over(Outcome::Failed(failure));
        }
    }

    /// A new name has not answered yet, and neither has the same one when it is given anew.
    fn named(&mut self, native: Native, epoch: Epoch) {
        self.name = Some((native, epoch));
        self.answered = false;
    }

    fn stop(&mut self, why: StopWhy) {
        let Some(now) = &mut self.now else { return };
        match &mut now.process {
            Process::None { .. } => self.over(stopped(why)),
            Process::Some { stop, .. } => {
                stop.get_or_insert(why);
            }
        }
    }

    fn over(&mut self, outcome: Outcome) {
        let Some(now) = self.now.take() else { return };
        self.messages.insert(now.message, Receipt::Over(outcome));
        for question in self.questions.values_mut() {
            if matches!(question, Question::Open { .. }) {
                *question = Question::Lapsed;
            }
        }
        if self.ending {
            self.end(EndWhy::Asked);
        }
        // A failure makes what waits wait for somebody to look; being stopped or interrupted does not.
        let failed = matches!(outcome, Outcome::Failed(_) | Outcome::TimedOut);
        if failed && self.policy.after_failure == AfterFailure::Hold {
            self.line.clone().into_iter().for_each(|message| self.hold(message));
        }
    }

    fn end(&mut self, why: EndWhy) {
        self.ending = false;
        self.ended = Some(why);
        for message in std::mem::take(&mut self.line) {
            self.leave(message, Receipt::Refused);
        }
    }

    fn next(&self) -> Option<MessageId> {
        self.line.iter().copied().find(|message| !self.kept_until.contains_key(message))
    }

    fn start_next(&mut self) {
        let (None, None, Some(message)) = (&self.now, self.ended, self.next()) else { return };
        match self.slot {
            Slot::Free => {}
            Slot::Unasked => return,
            Slot::Taken => {
                if self.asked_for_slot.is_none_or(|until| until <= self.clock) {
                    self.asked_for_slot = Some(self.clock.after_ms(self.policy.crowded_ms));
                }
                return;
            }
        }
        self.asked_for_slot = None;
        self.leave(message, Receipt::Running);
        self.turns.push(message);
        let process = new_process(self.term, self.clock, &self.policy);
        self.now = Some(Now { message, attempt: Attempt(1), process });
    }

    fn must_wait(&self, message: &MessageId) -> Result<(), Refusal> {
        if self.line.contains(message) { Ok(()) } else { Err(Refusal::TooLate) }
    }

    fn hold(&mut self, message: MessageId) {
        let until = self.clock.after_ms(self.policy.hold_ms_max);
        self.kept_until.entry(message).or_insert(until);
        self.messages.insert(message, Receipt::Held);
    }

    fn leave(&mut self, message: MessageId, to: Receipt) {
        self.line.retain(|waiting| *waiting != message);
        self.kept_until.remove(&message);
        self.messages.insert(message, to);
    }
}

fn new_process(term: Term, clock: Moment, policy: &Policy) -> Process {
    Process::Some { term, until: clock.after_ms(policy.turn_ms_max), handed: false, stop: None }
}

fn stopped(why: StopWhy) -> Outcome {
    match why {
        StopWhy::Asked(_) | StopWhy::Ending | StopWhy::Revoked => Outcome::Stopped,
        StopWhy::TimeLimit => Outcome::TimedOut,
    }
}

//! The laws once more, as plain bookkeeping.
//!
//! A list of messages, each with a state, and at most one turn. Nothing is derived from facts and nothing is pure:
//! events change the books, the way one would explain the laws at a table. It says nothing about facts, only about what
//! people and runners can see, so it may agree with the kernel only by saying the same thing in another way.

use crate::ledger::{Question, Receipt};
use crate::story::{Happening, POLICY, scope};
use homing_kernel::*;
use std::collections::{BTreeMap, BTreeSet};

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
    /// True if that conversation has ever answered anything.
    answered: bool,
    /// True if something was said that the agent of now may not know of.
    behind: bool,
    /// True if it is being told that in the turn of now, in a conversation that was begun for it.
    catching_up: bool,
    /// Where it acts.
    pub(crate) here: Scope,
    pub(crate) epoch: Epoch,
    /// For which epoch each message was written.
    written: BTreeMap<MessageId, Epoch>,
    /// The change that waits, and for which message.
    wanted: Option<(Change, Option<MessageId>)>,
    /// The errand under way outside, with its number.
    away: Option<(u32, What)>,
    outings: u32,
    /// Errands that came back too late, as far as one remembers, and as often as that was written down.
    late: BTreeSet<(Errand, ErrandKind)>,
    pub(crate) late_count: usize,
    listens: bool,
    /// True if the agent loses its conversations by itself.
    forgets: bool,
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
    /// Messages that were said into it.
    also: Vec<MessageId>,
    /// Those of them that came back.
    back: Vec<MessageId>,
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
            behind: false,
            catching_up: false,
            here: scope(),
            epoch: Epoch(0),
            written: BTreeMap::new(),
            wanted: None,
            away: None,
            outings: 0,
            late: BTreeSet::new(),
            late_count: 0,
            listens: true,
            forgets: false,
            asked_for_slot: None,
            clock: Moment(0),
            term: Term(1),
            slot: Slot::Free,
            policy: POLICY,
        }
    }

    /// The message that runs now.
    pub(crate) fn running(&self) -> Option<MessageId> {
        self.now.as_ref().map(|now| now.message)
    }

    /// The agent's own name, to resume under.
    pub(crate) fn name(&self) -> Option<&Native> {
        self.name.as_ref().map(|(name, _)| name)
    }

    /// Everything that was said into the turn under way.
    pub(crate) fn also(&self) -> Vec<MessageId> {
        self.now.as_ref().map(|now| now.also.clone()).unwrap_or_default()
    }

    /// The way an attempt would begin.
    pub(crate) fn begin(&self) -> Begin {
        match &self.name {
            Some((name, epoch)) if *epoch == self.epoch => Begin::Resume(name.clone()),
            Some((name, _)) => Begin::Follow(name.clone()),
            None if self.behind => Begin::Retell,
            None => Begin::New,
        }
    }

    /// The change that waits.
    pub(crate) fn wanted(&self) -> Option<&Change> {
        self.wanted.as_ref().map(|(change, _)| change)
    }

    /// The errand under way outside.
    pub(crate) fn away(&self) -> Option<(u32, &What)> {
        self.away.as_ref().map(|(number, what)| (*number, what))
    }

    /// The moment at which something happens by itself.
    pub(crate) fn alarm(&self) -> Option<Moment> {
        let mut alarms: Vec<Moment> = self.kept_until.values().copied().collect();
        if self.is_idle() && self.next().is_some() {
            alarms.extend(self.asked_for_slot);
        }
        match self.now.as_ref().map(|now| &now.process) {
            Some(Process::None { until }) => alarms.push(*until),
            // An earlier keeper's process is buried at once; it has no time left to count.
            Some(Process::Some { term, until, stop: None, .. }) if *term == self.term => {
                alarms.push(*until);
                alarms.extend(self.questions.values().filter_map(|question| match question {
                    Question::Open { until, .. } => Some(*until),
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
                // Whoever wants another scope comes before whoever waits for a turn.
                self.change_scope();
                self.start_next();
            }
            Happening::Crash => self.term = self.term.next(),
            Happening::Slot(slot) => self.slot = *slot,
            Happening::AfterFailure(policy) => self.policy.after_failure = *policy,
            Happening::Listens(listens) => self.listens = *listens,
            Happening::Forgets(forgets) => self.forgets = *forgets,
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
            Command::Say { message, by, delivery, under } => {
                self.messages.insert(*message, Receipt::Waiting);
                self.line.push(*message);
                self.written.insert(*message, under.unwrap_or(self.epoch));
                if self.written[message] != self.epoch {
                    self.hold(*message, HoldWhy::OtherScope);
                } else if *delivery == Delivery::Interrupt {
                    self.line.rotate_right(1);
                    self.stop(StopWhy::Asked(*by));
                } else if *delivery == Delivery::Steer && self.can_be_spoken_to() {
                    self.leave(*message, Receipt::Running);
                    self.now.as_mut().expect("it was spoken to").also.push(*message);
                }
            }
            Command::Request { request, by, written_for } => {
                self.request(request, *by, written_for.as_ref())?;
            }
            Command::Revoke { message } if self.running() == Some(*message) => match &self.now {
                Some(Now { process: Process::None { .. }, .. }) => {
                    self.over(Outcome::Failed(Failure::Refused));
                }
                _ => self.stop(StopWhy::Revoked),
            },
            Command::Revoke { message } if self.also().contains(message) => self.stop(StopWhy::Revoked),
            Command::Revoke { message } => {
                self.must_wait(message)?;
                self.leave(*message, Receipt::Refused);
            }
            Command::HandOver { .. } => {
                for message in self.line.clone() {
                    self.leave(message, Receipt::Refused);
                }
                let begun = matches!(&self.away, Some((_, What::Enter(_))));
                if !begun {
                    self.wanted = None;
                }
                self.stop(StopWhy::HandedOver);
            }
            Command::Answer { approval, answer, by } => self.answer(approval, answer, *by)?,
            Command::Return { errand, came } => self.come_back(*errand, came),
            Command::Wake => self.wake(),
            Command::Report { fence, report } => self.report(fence, report),
        }
        Ok(())
    }

    fn request(
        &mut self,
        request: &Request,
        by: PersonId,
        written_for: Option<&Scope>,
    ) -> Result<(), Refusal> {
        let over = self.ending || self.ended.is_some();
        match request {
            Request::Edit { message, revision } => {
                self.must_wait(message)?;
                let seen = self.revisions.entry(*message).or_default();
                if seen != revision {
                    return Err(Refusal::Changed);
                }
                *seen += 1;
            }
            Request::Withdraw { message } => {
                self.must_wait(message)?;
                self.leave(*message, Receipt::Withdrawn);
            }
            Request::Hold { message } => {
                self.must_wait(message)?;
                self.hold(*message, HoldWhy::Asked);
            }
            Request::Release { message, there } => {
                self.must_wait(message)?;
                let elsewhere = written_for.filter(|scope| *there && **scope != self.here);
                let elsewhere = elsewhere.filter(|_| self.written[message] != self.epoch);
                match elsewhere.filter(|_| self.kept_until.contains_key(message)) {
                    Some(there) => {
                        let change = Change::Back { scope: there.clone(), message: *message };
                        self.want(&change, false)?;
                    }
                    None => self.release(*message),
                }
            }
            Request::Steer { .. } | Request::Interrupt { .. } | Request::Reorder { .. } if over => {
                return Err(Refusal::Ended);
            }
            Request::Steer { message } => {
                self.must_wait_here(message)?;
                if !self.can_be_spoken_to() || self.now.as_ref().is_some_and(|now| now.back.contains(message))
                {
                    return Err(Refusal::NotListening);
                }
                self.release(*message);
                self.leave(*message, Receipt::Running);
                self.now.as_mut().expect("it was spoken to").also.push(*message);
            }
            Request::Interrupt { message } => {
                self.must_wait_here(message)?;
                self.release(*message);
                self.line.retain(|waiting| waiting != message);
                self.line.insert(0, *message);
                self.stop(StopWhy::Asked(by));
            }
            Request::Reorder { order, .. } => {
                let complete = self.line.iter().all(|message| order.contains(message));
                if !complete || order.len() != self.line.len() {
                    return Err(Refusal::Changed);
                }
                self.line = order.clone();
            }
            Request::Stop { message } => {
                if self.must_wait(message).is_ok() {
                    self.leave(*message, Receipt::Withdrawn);
                } else if self.running() == Some(*message) || self.also().contains(message) {
                    self.stop(StopWhy::Asked(by));
                }
            }
            Request::Answer { approval, answer, .. } => {
                self.answer(approval, answer, Answerer::Person(by))?;
            }
            Request::ChangeScope { .. } | Request::Undo { .. } | Request::Redo { .. } if over => {
                return Err(Refusal::Ended);
            }
            Request::ChangeScope { change, now, .. } => self.want(change, *now)?,
            Request::KeepScope { .. } => {
                let begun = matches!(&self.away, Some((_, What::Enter(_))));
                if begun || self.wanted.take().is_none() {
                    return Err(Refusal::TooLate);
                }
            }
            Request::Undo { turn, under, files, .. } => {
                self.put_back(*turn, *under, What::Undo { turn: *turn, files: files.clone() })?;
            }
            Request::Redo { turn, under, .. } => {
                self.put_back(*turn, *under, What::Redo { turn: *turn })?;
            }
            Request::Chore { chore, .. } => self.holds_still_for(chore)?,
            Request::End { .. } if over => {}
            Request::End { .. } if !self.is_idle() => {
                self.ending = true;
                self.stop(StopWhy::Ending);
            }
            Request::End { .. } => self.end(EndWhy::Asked),
        }
        Ok(())
    }

    fn answer(&mut self, approval: &ApprovalId, answer: &Answer, by: Answerer) -> Result<(), Refusal> {
        match self.questions.get_mut(approval) {
            Some(Question::Open { asks, .. }) if !fits(*asks, answer) => return Err(Refusal::Unfit),
            Some(Question::Open { .. }) if by == Answerer::Nobody => {}
            Some(question @ Question::Open { .. }) => *question = Question::Answered(answer.clone()),
            _ => return Err(Refusal::TooLate),
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
                    if matches!(question, Question::Open { until, .. } if *until <= self.clock) {
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
        let epoch = self.epoch;
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
                    let known = self.name.as_ref().is_some_and(|(_, named_in)| *named_in == epoch);
                    if let (false, Some(native)) = (known, native) {
                        self.named(native.clone(), epoch);
                    }
                }
            }
            Report::Asked { approval, terms } => {
                if *handed && stop.is_none() && !self.questions.contains_key(approval) {
                    let until = self.clock.after_ms(self.policy.ask_ms_max);
                    self.questions.insert(*approval, Question::Open { until, asks: terms.form });
                }
            }
            Report::Withdrawn { approval } => {
                if let Some(question @ Question::Open { .. }) = self.questions.get_mut(approval) {
                    *question = Question::Lapsed;
                }
            }
            Report::Missed { message } => {
                let stopped = stop.is_some_and(|why| why != StopWhy::TimeLimit);
                if !stopped && !self.ending && self.also().contains(message) {
                    let now = self.now.as_mut().expect("it runs");
                    now.also.retain(|also| also != message);
                    // Before all others, but after those that came back before it.
                    let others = self.line.iter().position(|waiting| !now.back.contains(waiting));
                    self.line.insert(others.unwrap_or(self.line.len()), *message);
                    now.back.push(*message);
                    self.messages.insert(*message, Receipt::Waiting);
                }
            }
            Report::Finished { native } if *handed => {
                if let Some(native) = native {
                    self.named(native.clone(), epoch);
                }
                // Only a name that was given here has shown here that it remembers.
                if self.name.as_ref().is_none_or(|(_, named_in)| *named_in == epoch) {
                    self.answered = self.name.is_some();
                    self.behind = false;
                }
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
        let confirmed = self.name.as_ref().is_some_and(|(_, named_in)| *named_in == self.epoch);
        // Where it never was it cannot be gone; but before it was handed anything it may begin anew.
        let moved = self.name.is_some() && !confirmed && !*handed && stop.is_none();
        let failure =
            if failure == Failure::Gone && !confirmed && !moved { Failure::Transient } else { failure };
        if failure == Failure::Gone && stop.is_none() {
            // Whatever comes next is another conversation, and knows nothing of what was answered in this one.
            self.behind |= self.answered;
            self.name = None;
        }
        if let Some(why) = stop {
            let outcome = stopped(*why);
            self.over(outcome);
        } else if failure == Failure::Gone && confirmed && !self.forgets && (*handed || self.answered) {
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
        self.catching_up = self.behind && self.name() != Some(&native);
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
        // Whether it has taken in what it was told nobody knows: it is told again, and not under this name.
        if std::mem::take(&mut self.catching_up) && outcome != Outcome::Answered {
            self.name = None;
        }
        for message in now.also.into_iter().chain([now.message]) {
            self.messages.insert(message, Receipt::Over(outcome));
        }
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
            self.line.clone().into_iter().for_each(|message| self.hold(message, HoldWhy::AfterFailure));
        }
    }

    fn end(&mut self, why: EndWhy) {
        self.ending = false;
        self.ended = Some(why);
        self.wanted = None;
        for message in std::mem::take(&mut self.line) {
            self.leave(message, Receipt::Refused);
        }
    }

    fn next(&self) -> Option<MessageId> {
        self.line.iter().copied().find(|message| !self.kept_until.contains_key(message))
    }

    fn start_next(&mut self) {
        let (true, None, Some(message)) = (self.is_idle(), self.ended, self.next()) else { return };
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
        self.now = Some(Now { message, attempt: Attempt(1), process, also: vec![], back: vec![] });
    }

    fn is_idle(&self) -> bool {
        self.now.is_none() && self.away.is_none()
    }

    fn holds_still_for(&self, chore: &Chore) -> Result<(), Refusal> {
        match (chore, &self.here.worktree) {
            _ if !self.is_idle() => Err(Refusal::Busy),
            _ if self.wanted.is_some() => Err(Refusal::Changing),
            (Chore::Remove { name, .. }, Some(here)) if *name == here.name && self.ended.is_none() => {
                Err(Refusal::InWorktree)
            }
            (
                Chore::Remove { .. } | Chore::Restore { .. } | Chore::Merge { .. } | Chore::EndBackground,
                _,
            ) => Ok(()),
        }
    }

    fn can_be_spoken_to(&self) -> bool {
        let process = self.now.as_ref().map(|now| &now.process);
        let at_work = |process: &Process| matches!(process, Process::Some { term, handed: true, stop: None, .. } if *term == self.term);
        self.listens && process.is_some_and(at_work)
    }

    fn release(&mut self, message: MessageId) {
        if self.kept_until.remove(&message).is_some() {
            self.written.insert(message, self.epoch);
        }
        self.messages.insert(message, Receipt::Waiting);
    }

    /// Somebody wants another scope.
    fn want(&mut self, change: &Change, now: bool) -> Result<(), Refusal> {
        if self.ending || self.ended.is_some() {
            return Err(Refusal::Ended);
        }
        if self.wanted.is_some() {
            return Err(Refusal::Changing);
        }
        match (change, &self.here.worktree) {
            (Change::Enter(_), Some(_)) => return Err(Refusal::InWorktree),
            (Change::Exit, None) => return Err(Refusal::NotInWorktree),
            _ => {}
        }
        let first = self.next().filter(|_| self.is_idle());
        if now && (first.is_some() || !self.is_idle()) {
            return Err(Refusal::Busy);
        }
        if self.there(change).as_ref() != Some(&self.here) {
            self.wanted = Some((change.clone(), first));
        }
        Ok(())
    }

    /// Where a change leads; nobody knows where a worktree will be.
    fn there(&self, change: &Change) -> Option<Scope> {
        let mut there = self.here.clone();
        let put = |setting: &Setting, name: &mut Option<String>| match setting {
            Setting::Keep => {}
            Setting::Default => *name = None,
            Setting::To(other) => *name = Some(other.clone()),
        };
        match change {
            Change::Enter(_) => return None,
            Change::Exit => there.directory = there.worktree.take()?.home,
            Change::Set { agent, model, mode } => {
                if let Some(agent) = agent.as_ref().filter(|agent| **agent != there.agent) {
                    there.agent = agent.clone();
                    (there.model, there.mode) = (None, None);
                }
                put(model, &mut there.model);
                put(mode, &mut there.mode);
            }
            Change::Relink { directory } => {
                there.directory = directory.clone();
                there.worktree = None;
            }
            Change::Back { scope, .. } => there = scope.clone(),
        }
        Some(there)
    }

    fn change_scope(&mut self) {
        if !self.is_idle() || self.ended.is_some() {
            return;
        }
        let Some((change, first)) = self.wanted.clone() else { return };
        if first.is_some_and(|first| self.line.contains(&first) && !self.kept_until.contains_key(&first)) {
            return;
        }
        match (&change, self.there(&change)) {
            (Change::Enter(worktree), _) => {
                self.outings += 1;
                self.away = Some((self.outings, What::Enter(worktree.clone())));
            }
            (_, None) => self.wanted = None,
            (Change::Back { message, .. }, Some(there)) => {
                self.wanted = None;
                if self.kept_until.contains_key(message) {
                    self.act_in(there);
                    self.release(*message);
                }
            }
            (_, Some(there)) => self.act_in(there),
        }
    }

    fn act_in(&mut self, there: Scope) {
        self.wanted = None;
        let another = there.agent != self.here.agent;
        if self.name.is_some() || (another && !self.turns.is_empty()) {
            self.behind = true;
        }
        if another {
            self.name = None;
        }
        self.here = there;
        self.epoch = self.epoch.next();
        for message in self.line.clone() {
            self.hold(message, HoldWhy::OtherScope);
        }
    }

    fn put_back(&mut self, turn: Turn, under: Option<Epoch>, what: What) -> Result<(), Refusal> {
        if turn == Turn(0) || turn.0 as usize > self.turns.len() {
            return Err(Refusal::NoSuchTurn);
        }
        if under != Some(self.epoch) {
            return Err(Refusal::OtherScope);
        }
        if !self.is_idle() || self.wanted.is_some() || self.next().is_some() || self.slot == Slot::Taken {
            return Err(Refusal::Busy);
        }
        self.outings += 1;
        self.away = Some((self.outings, what));
        Ok(())
    }

    fn come_back(&mut self, errand: Errand, came: &Return) {
        let (kind, looked) = match came {
            Return::Entered { .. } => (ErrandKind::Enter, false),
            Return::Undone => (ErrandKind::Undo, false),
            Return::Redone => (ErrandKind::Redo, false),
            Return::Failed(kind) => (*kind, !is_exclusive(*kind)),
            Return::Seen(kind) => (*kind, true),
        };
        let away = match &self.away {
            Some((number, What::Enter(_))) => Some((*number, ErrandKind::Enter)),
            Some((number, What::Undo { .. })) => Some((*number, ErrandKind::Undo)),
            Some((number, What::Redo { .. })) => Some((*number, ErrandKind::Redo)),
            None => None,
        };
        let mine = errand.epoch == self.epoch && away == Some((errand.number, kind));
        match came {
            // Whoever asked has it; nothing of it matters here.
            _ if looked && errand.epoch == self.epoch && !is_exclusive(kind) => return,
            Return::Seen(_) => return self.too_late(errand, kind),
            _ if !mine => return self.too_late(errand, kind),
            Return::Entered { directory, home, branch } if !self.ending => {
                let Some((_, What::Enter(worktree))) = self.away.take() else { return };
                let worktree = Worktree { name: worktree.name, home: home.clone(), branch: branch.clone() };
                let there = Scope { directory: directory.clone(), ..self.here.clone() };
                self.act_in(Scope { worktree: Some(worktree), ..there });
            }
            Return::Entered { .. } | Return::Undone | Return::Redone => self.away = None,
            Return::Failed(_) => {
                self.away = None;
                if kind == ErrandKind::Enter {
                    self.wanted = None;
                    // Whoever spoke since then counted on being there.
                    self.line
                        .clone()
                        .into_iter()
                        .for_each(|message| self.hold(message, HoldWhy::AfterFailure));
                }
            }
        }
        if self.ending {
            self.end(EndWhy::Asked);
        }
    }

    /// Written down once, as long as one remembers what was.
    fn too_late(&mut self, errand: Errand, kind: ErrandKind) {
        let what = (errand, kind);
        let full = self.late.len() >= 32;
        let older = self.late.first().is_some_and(|oldest| what < *oldest);
        if self.late.contains(&what) || (full && older) {
            return;
        }
        if full {
            self.late.pop_first();
        }
        self.late.insert(what);
        self.late_count += 1;
    }

    fn must_wait(&self, message: &MessageId) -> Result<(), Refusal> {
        if self.line.contains(message) { Ok(()) } else { Err(Refusal::TooLate) }
    }

    fn must_wait_here(&self, message: &MessageId) -> Result<(), Refusal> {
        self.must_wait(message)?;
        if self.written[message] == self.epoch { Ok(()) } else { Err(Refusal::OtherScope) }
    }

    /// A message that is held already stays so, and for what it was.
    fn hold(&mut self, message: MessageId, why: HoldWhy) {
        if self.kept_until.contains_key(&message) {
            return;
        }
        self.kept_until.insert(message, self.clock.after_ms(self.policy.hold_ms_max));
        self.messages.insert(message, Receipt::Held(why));
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
        StopWhy::Asked(_) | StopWhy::Ending | StopWhy::Revoked | StopWhy::HandedOver => Outcome::Stopped,
        StopWhy::TimeLimit => Outcome::TimedOut,
    }
}

/// A no is an answer to everything; what else is one depends on what was asked.
fn fits(asks: ApprovalForm, answer: &Answer) -> bool {
    match answer {
        Answer::No => true,
        Answer::Yes => asks == ApprovalForm::Permission,
        Answer::Chose(option) => matches!(asks, ApprovalForm::Choice { options } if *option < options),
        Answer::Said(_) => asks != ApprovalForm::Permission,
    }
}

fn is_exclusive(kind: ErrandKind) -> bool {
    matches!(kind, ErrandKind::Enter | ErrandKind::Undo | ErrandKind::Redo)
}

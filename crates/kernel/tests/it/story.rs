//! The language of stories, and the small world in which they happen.
//!
//! A story is a line of wishes, reports and accidents with semicolons between them. `World` tells each of them to a
//! session the way a keeper would, keeps the log, and asks the ledger after every step whether a promise was broken.
//! Messages, people, approvals, turns are numbered from 1; `1.2` is the second attempt of turn 1; time is in
//! milliseconds and begins at 0. An errand is `EPOCH.NUMBER`. Only this file knows how the kernel is called; `words` says
//! what came of a step.

use crate::ledger::Ledger;
use crate::words::{due_in_words, table, told_in_words};
use homing_kernel::*;

/// Something that happens in a story.
#[allow(clippy::large_enum_variant)] // Stories are short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Somebody wishes something.
    Wish(Command),
    /// The next message is said so, under the epoch of now or under this one.
    SayNext { delivery: Delivery, under: Option<Epoch> },
    /// The last words said into the turn did not get there.
    MissLast,
    /// The last question of the agent is answered so.
    AnswerLast { answer: Answer, by: Answerer },
    /// A held message is sent where it was written for.
    SendThere(MessageId),
    /// Everything this turn has changed is to be put back, in the epoch in which it ran.
    UndoTurn(Turn),
    /// Something that was asked of the outside comes back.
    Return { from: Which, came: Return },
    /// All waiting messages are put back to front.
    BackToFront,
    /// The agent asks something new.
    AskNext(ApprovalForm),
    /// The agent asks what it asked last, once more; something new if it has not asked yet.
    AskAgain,
    /// The agent takes back what it asked last; something it never asked if it has not asked yet.
    TakeBack,
    /// Whatever runs now is stopped, by the name of its message.
    StopRunning,
    /// A runner reports.
    Report { of: Of, report: Report },
    /// Time passes, so much or until something is due, and the timer calls.
    Wake { after_ms: Option<u64> },
    /// The keeper dies; the next one reads the log and has a higher term.
    Crash,
    /// From now on the store has a slot, or has none, or is not asked.
    Slot(Slot),
    /// From now on this is the policy.
    AfterFailure(AfterFailure),
    /// From now on the agent takes words while it works, or does not.
    Listens(bool),
    /// From now on the agent loses its conversations by itself, or does not.
    Forgets(bool),
}

/// The errand that comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// The one that was started last, whether it is still under way or not.
    Latest,
    /// A look under the epoch of now.
    Here,
    /// This one.
    Errand(Errand),
}

/// The attempt that a report is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// The one that was started last, whether it still runs or not.
    Latest,
    /// This one, under the term in which it was started.
    Attempt { turn: Turn, attempt: Attempt },
    /// This one, under a term in which it was not started.
    Term { turn: Turn, attempt: Attempt, term: Term },
}

/// A step with everything filled in that depends on what happened before.
#[allow(clippy::large_enum_variant)] // There is one at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Happening {
    Tell { command: Command, now: Moment },
    Crash,
    Slot(Slot),
    AfterFailure(AfterFailure),
    Listens(bool),
    Forgets(bool),
}

/// The outcome of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    Facts(Vec<Fact>),
    Refused(Refusal),
}

/// Short enough that every limit is reached in a short story, and no two of them alike.
pub(crate) const POLICY: Policy = Policy {
    attempts_max: 3,
    backoff_ms: 10,
    backoff_ms_max: 30,
    turn_ms_max: 1_000,
    hold_ms_max: 5_000,
    ask_ms_max: 200,
    crowded_ms: 50,
    after_failure: AfterFailure::Hold,
    unattended: Unattended::Deny,
};

/// A log longer than this is replayed only now and then.
const REPLAYED_ALWAYS_MAX: usize = 64;

/// One session, its log, and everything around it that a rule may depend on.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) session: Session,
    pub(crate) ledger: Ledger,
    pub(crate) given: Given,
    log: Vec<Fact>,
}

impl World {
    /// A session that nobody has opened yet.
    pub(crate) fn unopened() -> Self {
        let (now, term, policy, slot) = (Moment(0), Term(1), POLICY, Slot::Free);
        let given = Given { now, term, policy, slot, can_steer: true, forgets: false };
        Self { session: Session::default(), ledger: Ledger::default(), given, log: vec![] }
    }

    /// A session that takes messages.
    pub(crate) fn open() -> Self {
        let mut world = Self::unopened();
        world.tell(&step("open")).expect("opening keeps every promise");
        world
    }

    /// A session to which this has happened.
    pub(crate) fn after(story: &str) -> Self {
        let mut world = begin(story);
        for step in steps(story) {
            world.tell(&step).expect("the beginning of a story keeps every promise");
        }
        world
    }

    /// Lets a step happen; an error is a broken promise.
    pub(crate) fn tell(&mut self, step: &Step) -> Result<Told, String> {
        let event = self.event(step);
        self.happen(event)
    }

    /// The meaning of this step here and now.
    pub(crate) fn event(&self, step: &Step) -> Happening {
        let tell = |command| Happening::Tell { command, now: self.given.now };
        match step {
            Step::Wish(command) => tell(command.clone()),
            Step::SayNext { delivery, under } => {
                let (message, delivery, under) = (self.ledger.next_message(), *delivery, *under);
                tell(Command::Say { message, by: person(1), delivery, under })
            }
            Step::MissLast => {
                let last = self.session.running().and_then(|running| running.messages().skip(1).last());
                let message = last.unwrap_or(self.ledger.next_message());
                tell(Command::Report { fence: self.fence(Of::Latest), report: Report::Missed { message } })
            }
            Step::AnswerLast { answer, by } => {
                let last = self.session.running().and_then(|running| running.approvals.last());
                let approval = last.map_or(self.ledger.next_approval(), |ask| ask.approval());
                tell(answers(approval, answer.clone(), *by))
            }
            Step::SendThere(message) => {
                let written_for = self.ledger.scope_for(*message).cloned();
                let request = Request::Release { message: *message, there: written_for.is_some() };
                tell(Command::Request { request, by: person(1), written_for })
            }
            Step::UndoTurn(turn) => {
                let of = self.ledger.started(*turn, Attempt(1)).map_or(Epoch(0), |fence| fence.epoch);
                tell(undo(*turn, of))
            }
            Step::Return { from, came } => {
                tell(Command::Return { errand: self.errand(*from), came: came.clone() })
            }
            Step::BackToFront => {
                let order = self.session.queue().iter().rev().map(|waiting| waiting.message).collect();
                tell(Request::Reorder { session: session(), order }.by(person(1)))
            }
            Step::StopRunning => {
                let nobody = MessageId::from_bits(0);
                let message = self.session.running().map_or(nobody, |running| running.message);
                tell(Request::Stop { message }.by(person(1)))
            }
            Step::AskNext(asks) => tell(self.asks(self.ledger.next_approval(), *asks)),
            Step::AskAgain => {
                let last = self.session.running().and_then(|running| running.approvals.last());
                let approval = last.map_or(self.ledger.next_approval(), |ask| ask.approval());
                tell(self.asks(approval, ApprovalForm::Permission))
            }
            Step::TakeBack => {
                let last = self.session.running().and_then(|running| running.approvals.last());
                let approval = last.map_or(self.ledger.next_approval(), |ask| ask.approval());
                let report = Report::Withdrawn { approval };
                tell(Command::Report { fence: self.fence(Of::Latest), report })
            }
            Step::Report { of, report } => {
                tell(Command::Report { fence: self.fence(*of), report: report.clone() })
            }
            Step::Wake { after_ms } => {
                let now = self.given.now;
                let due = self.session.wake_at(self.given.term).map_or(now, |at| at.max(now));
                Happening::Tell { command: Command::Wake, now: after_ms.map_or(due, |ms| now.after_ms(ms)) }
            }
            Step::Crash => Happening::Crash,
            Step::Slot(slot) => Happening::Slot(*slot),
            Step::AfterFailure(policy) => Happening::AfterFailure(*policy),
            Step::Listens(listens) => Happening::Listens(*listens),
            Step::Forgets(forgets) => Happening::Forgets(*forgets),
        }
    }

    fn errand(&self, from: Which) -> Errand {
        match from {
            Which::Latest => self.ledger.latest_errand(),
            Which::Here => Errand { epoch: self.session.epoch(), number: 0 },
            Which::Errand(errand) => errand,
        }
    }

    fn asks(&self, approval: ApprovalId, asks: ApprovalForm) -> Command {
        let terms = ApprovalTerms { form: asks, only: None };
        Command::Report { fence: self.fence(Of::Latest), report: Report::Asked { approval, terms } }
    }

    fn fence(&self, of: Of) -> Fence {
        let (term, epoch) = (self.given.term, self.session.epoch());
        let never = |turn, attempt| Fence { term, epoch, turn, attempt };
        match of {
            Of::Latest => self.ledger.latest().unwrap_or(never(Turn(0), Attempt(0))),
            Of::Attempt { turn, attempt } => {
                self.ledger.started(turn, attempt).unwrap_or(never(turn, attempt))
            }
            Of::Term { turn, attempt, term } => Fence { term, ..never(turn, attempt) },
        }
    }

    /// Lets an event happen; an error is a broken promise.
    pub(crate) fn happen(&mut self, event: Happening) -> Result<Told, String> {
        let crashed = event == Happening::Crash;
        let told = match event {
            Happening::Tell { command, now } => {
                self.given.now = now;
                self.command(command)?
            }
            Happening::Crash => {
                self.session = replay(&self.log);
                self.given.term = self.given.term.next();
                Told::Facts(vec![])
            }
            Happening::Slot(slot) => {
                self.given.slot = slot;
                Told::Facts(vec![])
            }
            Happening::AfterFailure(policy) => {
                self.given.policy.after_failure = policy;
                Told::Facts(vec![])
            }
            Happening::Listens(listens) => {
                self.given.can_steer = listens;
                Told::Facts(vec![])
            }
            Happening::Forgets(forgets) => {
                self.given.forgets = forgets;
                Told::Facts(vec![])
            }
        };
        let changed = matches!(&told, Told::Facts(facts) if !facts.is_empty());
        if changed || crashed {
            let asked = !crashed && self.given.slot != Slot::Unasked;
            self.ledger.agrees(&self.session, self.given.term, asked)?;
            self.log_agrees()?;
        }
        Ok(told)
    }

    fn command(&mut self, command: Command) -> Result<Told, String> {
        match self.session.decide(command.clone(), &self.given) {
            Ok(facts) => {
                self.ledger.see(&command, &facts, &self.given)?;
                self.append(facts.clone());
                let again = self.session.wake_at(self.given.term).is_some_and(|at| at <= self.given.now);
                // Where no slot is asked for, whoever waits for one goes on waiting; somebody asks before the end.
                if command == Command::Wake && again && self.given.slot != Slot::Unasked {
                    return Err("the timer was called and would have to be called again at once".into());
                }
                Ok(Told::Facts(facts))
            }
            Err(refusal) => {
                self.ledger.see_refused(&command, refusal)?;
                Ok(Told::Refused(refusal))
            }
        }
    }

    fn append(&mut self, facts: Vec<Fact>) {
        facts.iter().for_each(|fact| self.session.evolve(fact));
        self.log.extend(facts);
    }

    /// The log is the session, and so is the checkpoint of an idle one.
    fn log_agrees(&self) -> Result<(), String> {
        let replayed = self.log.len() <= REPLAYED_ALWAYS_MAX || self.log.len().is_multiple_of(16);
        if replayed && replay(&self.log) != self.session {
            return Err("the log, read again, makes another session".into());
        }
        let idle = self.session.running().is_none() && self.session.away().is_none();
        match self.session.condense() {
            Some(_) if !idle => Err("a session with something under way was condensed".into()),
            Some(facts) if replay(&facts) != self.session => {
                Err(format!("condensed, the session is another: {facts:?}"))
            }
            None if idle => Err("an idle session cannot be condensed".into()),
            Some(_) | None => Ok(()),
        }
    }
}

/// A session made of these facts.
pub(crate) fn replay(facts: &[Fact]) -> Session {
    let mut session = Session::default();
    facts.iter().for_each(|fact| session.evolve(fact));
    session
}

/// Tells a story to an open session: a line for each step with what happened and what is due then. A story that has
/// `open` in it begins before that.
pub(crate) fn tell(story: &str) -> String {
    let mut world = begin(story);
    let mut rows = vec![];
    for text in texts(story) {
        let told = world
            .tell(&step(text))
            .unwrap_or_else(|broken| panic!("at `{text}`, {broken}\n{}", table(&rows)));
        rows.push([text.to_string(), told_in_words(&told), due_in_words(&world)]);
    }
    table(&rows)
}

/// Before it is opened, if the story tells of that.
fn begin(story: &str) -> World {
    let begins = |text: &str| text == "open" || text.starts_with("open ");
    if texts(story).any(begins) { World::unopened() } else { World::open() }
}

fn texts(story: &str) -> impl Iterator<Item = &str> {
    story.split(';').map(str::trim).filter(|text| !text.is_empty())
}

/// The steps of a story.
pub(crate) fn steps(story: &str) -> Vec<Step> {
    texts(story).map(step).collect()
}

fn chore(chore: Chore) -> Step {
    Step::Wish(Request::Chore { session: session(), chore }.by(person(1)))
}

/// One step, in words.
pub(crate) fn step(text: &str) -> Step {
    let words: Vec<&str> = text.split_whitespace().collect();
    let by = person(1);
    match words[..] {
        ["open"] => Step::Wish(Command::Open { scope: scope(), origin: None, enter: None }),
        ["open", "into", name] => {
            Step::Wish(Command::Open { scope: scope(), origin: None, enter: Some(worktree(name)) })
        }
        ["open", "as", "a", "fork"] => {
            let origin = Origin { session: SessionId::from_bits(9), turn: Turn(4) };
            Step::Wish(Command::Open { scope: scope(), origin: Some(origin), enter: None })
        }
        [word @ ("say" | "interrupt" | "steer")] => Step::SayNext { delivery: delivery(word), under: None },
        [word @ ("say" | "interrupt" | "steer"), "under", epoch] => {
            Step::SayNext { delivery: delivery(word), under: Some(Epoch(number(epoch) as u32)) }
        }
        [word @ ("say" | "interrupt" | "steer"), m] => {
            let delivery = delivery(word);
            Step::Wish(Command::Say { message: message(m), by, delivery, under: None })
        }
        ["say", m, "by", p] => {
            let (by, delivery) = (person(number(p)), Delivery::Queue);
            Step::Wish(Command::Say { message: message(m), by, delivery, under: None })
        }
        [ref change @ .., "now"] => change_step(wanted(change), true),
        ["enter" | "exit" | "set" | "relink", ..] => change_step(wanted(&words), false),
        ["keep"] => Step::Wish(Request::KeepScope { session: session() }.by(by)),
        ["remove", name] => chore(Chore::Remove { name: name.into(), teardown: true }),
        ["end", "background"] => chore(Chore::EndBackground),
        ["restore", name] => chore(Chore::Restore { name: name.into(), reference: "refs/kept".into() }),
        ["undo", turn] => Step::UndoTurn(Turn(number(turn) as u32)),
        ["undo", turn, "of", "epoch", epoch] => {
            let (turn, of) = (Turn(number(turn) as u32), Epoch(number(epoch) as u32));
            Step::Wish(undo(turn, of))
        }
        ["redo", turn, "of", "epoch", epoch] => {
            let (turn, of) = (Turn(number(turn) as u32), Epoch(number(epoch) as u32));
            Step::Wish(Request::Redo { session: session(), turn, under: Some(of) }.by(by))
        }
        ["entered" | "undone" | "redone", ..] | ["in", "vain", ..] | ["saw", ..] => returned(&words, text),
        ["edit", m, "seen", revision] => {
            let request = Request::Edit { message: message(m), revision: number(revision) as u32 };
            Step::Wish(request.by(by))
        }
        ["withdraw", m] => Step::Wish(Request::Withdraw { message: message(m) }.by(by)),
        ["hold", m] => Step::Wish(Request::Hold { message: message(m) }.by(by)),
        ["release", m] => Step::Wish(Request::Release { message: message(m), there: false }.by(by)),
        ["release", m, "there"] => Step::SendThere(message(m)),
        ["put", m, "in"] => Step::Wish(Request::Steer { message: message(m) }.by(by)),
        ["put", m, "first"] => Step::Wish(Request::Interrupt { message: message(m) }.by(by)),
        ["reorder", "back", "to", "front"] => Step::BackToFront,
        ["reorder", ref order @ ..] => {
            let order = order.iter().map(|m| message(m)).collect();
            Step::Wish(Request::Reorder { session: session(), order }.by(by))
        }
        ["stop"] => Step::StopRunning,
        ["stop", m] => Step::Wish(Request::Stop { message: message(m) }.by(by)),
        ["answer", a, ref answer @ .., "by", "rule", rule] => {
            answer_step(a, answer, Answerer::Rule(RuleId::from_bits(number(rule))))
        }
        ["answer", a, ref answer @ .., "by", "policy"] => answer_step(a, answer, Answerer::Policy),
        ["answer", a, ref answer @ .., "by", "nobody"] => answer_step(a, answer, Answerer::Nobody),
        ["answer", a, ref answer @ ..] => answer_step(a, answer, Answerer::Person(by)),
        ["missed"] => Step::MissLast,
        ["the", "agent", "listens"] => Step::Listens(true),
        ["the", "agent", "is", "deaf"] => Step::Listens(false),
        ["the", "agent", "forgets"] => Step::Forgets(true),
        ["the", "agent", "remembers"] => Step::Forgets(false),
        ["end"] => Step::Wish(Request::End { session: session() }.by(by)),
        ["revoke", m] => Step::Wish(Command::Revoke { message: message(m) }),
        ["hand", "over"] => Step::Wish(Command::HandOver { to: by }),
        ["wake"] => Step::Wake { after_ms: None },
        ["wake", after] => {
            let ms = after.strip_prefix('+').unwrap_or_else(|| panic!("wake +MS, not {after}"));
            Step::Wake { after_ms: Some(number(ms) as u64) }
        }
        ["asks"] => Step::AskNext(ApprovalForm::Permission),
        ["offers", options] => Step::AskNext(ApprovalForm::Choice { options: number(options) as u16 }),
        ["wonders"] => Step::AskNext(ApprovalForm::Words),
        ["asks", "again"] => Step::AskAgain,
        ["takes", "back"] => Step::TakeBack,
        ["crash"] => Step::Crash,
        ["no", "slot"] => Step::Slot(Slot::Taken),
        ["a", "slot"] => Step::Slot(Slot::Free),
        ["slot", "unasked"] => Step::Slot(Slot::Unasked),
        ["policy", "go", "on"] => Step::AfterFailure(AfterFailure::GoOn),
        ["policy", "hold"] => Step::AfterFailure(AfterFailure::Hold),
        [ref words @ .., "of", which] => Step::Report { of: attempt(which), report: report(words, text) },
        [ref words @ .., "of", which, "term", term] => {
            let Of::Attempt { turn, attempt } = attempt(which) else { unreachable!("attempt names one") };
            Step::Report {
                of: Of::Term { turn, attempt, term: Term(number(term) as u64) },
                report: report(words, text),
            }
        }
        ref words => Step::Report { of: Of::Latest, report: report(words, text) },
    }
}

fn report(words: &[&str], text: &str) -> Report {
    match words {
        ["ready"] => Report::Ready { native: None },
        ["ready", "as", native] => Report::Ready { native: Some(Native::new(*native)) },
        ["missed", m] => Report::Missed { message: message(m) },
        ["asks", a] => Report::Asked { approval: approval(a), terms: ApprovalTerms::default() },
        ["takes", "back", a] => Report::Withdrawn { approval: approval(a) },
        ["finished"] => Report::Finished { native: None },
        ["finished", "as", native] => Report::Finished { native: Some(Native::new(*native)) },
        ["failed", "gone"] => Report::Failed(Failure::Gone),
        ["failed", "busy"] => Report::Failed(Failure::Busy),
        ["failed", "transient"] => Report::Failed(Failure::Transient),
        ["failed", "refused"] => Report::Failed(Failure::Refused),
        ["stopped"] => Report::Stopped,
        ["lost"] => Report::Lost,
        _ => panic!("`{text}` means nothing in a story"),
    }
}

fn attempt(text: &str) -> Of {
    let (turn, attempt) = text.split_once('.').unwrap_or_else(|| panic!("TURN.ATTEMPT, not {text}"));
    Of::Attempt { turn: Turn(number(turn) as u32), attempt: Attempt(number(attempt) as u16) }
}

fn number(text: &str) -> u128 {
    text.parse().unwrap_or_else(|_| panic!("{text} is no number"))
}

fn message(text: &str) -> MessageId {
    MessageId::from_bits(number(text))
}

fn approval(text: &str) -> ApprovalId {
    ApprovalId::from_bits(number(text))
}

pub(crate) fn person(bits: u128) -> PersonId {
    PersonId::from_bits(bits)
}

/// Where every story begins.
pub(crate) fn scope() -> Scope {
    let (directory, agent) = ("/srv/shop".into(), "scripted".into());
    Scope { directory, agent, model: None, mode: None, worktree: None }
}

/// The session of every story.
pub(crate) fn session() -> SessionId {
    SessionId::from_bits(1)
}

fn undo(turn: Turn, of: Epoch) -> Command {
    Request::Undo { session: session(), turn, under: Some(of), files: UndoFiles::All }.by(person(1))
}

fn change_step(change: Change, now: bool) -> Step {
    Step::Wish(Request::ChangeScope { session: session(), change, now }.by(person(1)))
}

/// A person asks for it; a rule or a policy does not.
fn answers(approval: ApprovalId, answer: Answer, by: Answerer) -> Command {
    match by {
        Answerer::Person(by) => Request::Answer { approval, answer, remember: None }.by(by),
        Answerer::Rule(_) | Answerer::Policy | Answerer::Nobody => Command::Answer { approval, answer, by },
    }
}

fn answer_step(approval_or_last: &str, answer: &[&str], by: Answerer) -> Step {
    let answer = answered(answer);
    match approval_or_last {
        "last" => Step::AnswerLast { answer, by },
        number => Step::Wish(answers(approval(number), answer, by)),
    }
}

fn delivery(word: &str) -> Delivery {
    match word {
        "say" => Delivery::Queue,
        "interrupt" => Delivery::Interrupt,
        "steer" => Delivery::Steer,
        other => panic!("{other} is no way to say something"),
    }
}

fn answered(words: &[&str]) -> Answer {
    match words {
        ["yes"] => Answer::Yes,
        ["no"] => Answer::No,
        ["chose", option] => Answer::Chose(number(option) as u16),
        ["said", words @ ..] => Answer::Said(words.join(" ")),
        other => panic!("{other:?} is no answer"),
    }
}

fn wanted(words: &[&str]) -> Change {
    let setting = |name: &str| match name {
        "default" => Setting::Default,
        name => Setting::To(name.into()),
    };
    let (keep, agent) = (Setting::Keep, None);
    match words {
        ["enter"] => Change::Enter(worktree("w1")),
        ["enter", name] => Change::Enter(worktree(name)),
        ["exit"] => Change::Exit,
        ["set", "agent", agent] => {
            Change::Set { agent: Some((*agent).into()), model: Setting::Keep, mode: Setting::Keep }
        }
        ["set", "model", name] => Change::Set { agent, model: setting(name), mode: keep },
        ["set", "mode", name] => Change::Set { agent, model: keep, mode: setting(name) },
        ["relink", directory] => Change::Relink { directory: (*directory).into() },
        ["back", m] => Change::Back { scope: scope(), message: message(m) },
        other => panic!("{other:?} is no change of scope"),
    }
}

fn worktree(name: &str) -> NewWorktree {
    NewWorktree { name: name.into(), base: None, branch: None }
}

fn returned(words: &[&str], text: &str) -> Step {
    let errand = |text: &str| {
        let (epoch, number_in) = text.split_once('.').unwrap_or_else(|| panic!("EPOCH.NUMBER, not {text}"));
        Which::Errand(Errand { epoch: Epoch(number(epoch) as u32), number: number(number_in) as u32 })
    };
    let (words, from) = match words {
        [words @ .., "of", which] => (words, Some(errand(which))),
        [words @ .., "under", epoch] => {
            let epoch = Epoch(number(epoch) as u32);
            (words, Some(Which::Errand(Errand { epoch, number: 0 })))
        }
        words => (words, None),
    };
    let (came, usual) = match words {
        ["entered"] => {
            let (directory, home) = ("/srv/w1".into(), "/srv/shop".into());
            (Return::Entered { directory, home, branch: Some("w1".into()) }, Which::Latest)
        }
        ["undone"] => (Return::Undone, Which::Latest),
        ["redone"] => (Return::Redone, Which::Latest),
        ["saw", kind] => (Return::Seen(looked(kind)), Which::Here),
        ["in", "vain", kind @ ("enter" | "undo" | "redo")] => (Return::Failed(looked(kind)), Which::Latest),
        ["in", "vain", kind] => (Return::Failed(looked(kind)), Which::Here),
        _ => panic!("`{text}` means nothing in a story"),
    };
    Step::Return { from: from.unwrap_or(usual), came }
}

fn looked(word: &str) -> ErrandKind {
    let named = |kind: &ErrandKind| format!("{kind:?}").to_lowercase() == word;
    ErrandKind::ALL.into_iter().find(named).unwrap_or_else(|| panic!("{word} is no errand"))
}

//! The language of stories, and the small world in which they happen.
//!
//! A story is a line of wishes, reports and accidents with semicolons between them. `World` tells each of them to a
//! session the way a keeper would, keeps the log, and asks the ledger after every step whether a promise was broken.
//! Messages, people, approvals, turns are numbered from 1; `1.2` is the second attempt of turn 1; time is in
//! milliseconds and begins at 0. Only this file knows how the kernel is called.

use crate::ledger::Ledger;
use homing_kernel::*;
use std::fmt::Write;

/// Something that happens in a story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Somebody wishes something.
    Wish(Command),
    /// The next message is said.
    SayNext,
    /// All waiting messages are put back to front.
    BackToFront,
    /// The agent asks something new.
    AskNext,
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
    /// A fact from another time: the agent's name was confirmed under this epoch.
    Confirmed { native: Native, epoch: Epoch },
}

/// Which attempt a report is of.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Happening {
    Tell { command: Command, now: Moment },
    Crash,
    Slot(Slot),
    AfterFailure(AfterFailure),
    Confirmed { native: Native, epoch: Epoch },
}

/// What came of a step.
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
        let given = Given { now: Moment(0), term: Term(1), policy: POLICY, slot: Slot::Free };
        Self { session: Session::default(), ledger: Ledger::default(), given, log: vec![] }
    }

    /// A session that takes messages.
    pub(crate) fn open() -> Self {
        let mut world = Self::unopened();
        world.tell(&Step::Wish(Command::Open { scope: scope() })).expect("opening keeps every promise");
        world
    }

    /// A session to which this has happened.
    pub(crate) fn after(story: &str) -> Self {
        let mut world = Self::open();
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

    /// What this step means here and now.
    pub(crate) fn event(&self, step: &Step) -> Happening {
        let tell = |command| Happening::Tell { command, now: self.given.now };
        match step {
            Step::Wish(command) => tell(command.clone()),
            Step::SayNext => tell(Command::Say { message: self.ledger.next_message(), by: person(1) }),
            Step::BackToFront => {
                let order = self.session.queue().iter().rev().map(|waiting| waiting.message).collect();
                tell(Command::Reorder { order })
            }
            Step::StopRunning => {
                let nobody = MessageId::from_bits(0);
                let message = self.session.running().map_or(nobody, |running| running.message);
                tell(Command::Stop { message, by: person(1) })
            }
            Step::AskNext => tell(self.asks(self.ledger.next_approval())),
            Step::AskAgain => {
                let last = self.session.running().and_then(|running| running.asks.last());
                tell(self.asks(last.map_or(self.ledger.next_approval(), |ask| ask.approval())))
            }
            Step::TakeBack => {
                let last = self.session.running().and_then(|running| running.asks.last());
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
            Step::Confirmed { native, epoch } => {
                Happening::Confirmed { native: native.clone(), epoch: *epoch }
            }
        }
    }

    fn asks(&self, approval: ApprovalId) -> Command {
        Command::Report { fence: self.fence(Of::Latest), report: Report::Asked { approval } }
    }

    fn fence(&self, of: Of) -> Fence {
        let never = |turn, attempt| Fence { term: self.given.term, epoch: Epoch(0), turn, attempt };
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
            Happening::Confirmed { native, epoch } => {
                let fact = Fact::Confirmed { native, epoch };
                self.ledger.believe(&fact);
                self.append(vec![fact.clone()]);
                Told::Facts(vec![fact])
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
        let idle = self.session.running().is_none();
        match self.session.condense() {
            Some(_) if !idle => Err("a session with a turn under way was condensed".into()),
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
    let mut world = if texts(story).any(|text| text == "open") { World::unopened() } else { World::open() };
    let mut rows = vec![];
    for text in texts(story) {
        let told = world
            .tell(&step(text))
            .unwrap_or_else(|broken| panic!("at `{text}`, {broken}\n{}", table(&rows)));
        rows.push([text.to_string(), told_in_words(&told), due_in_words(&world)]);
    }
    table(&rows)
}

fn table(rows: &[[String; 3]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1)];
    let mut text = String::new();
    for [step, facts, due] in rows {
        writeln!(text, "{step:<0$}   {facts:<1$}   {due}", widths[0], widths[1]).expect("a string takes it");
    }
    text
}

fn texts(story: &str) -> impl Iterator<Item = &str> {
    story.split(';').map(str::trim).filter(|text| !text.is_empty())
}

/// The steps of a story.
pub(crate) fn steps(story: &str) -> Vec<Step> {
    texts(story).map(step).collect()
}

/// One step, in words.
pub(crate) fn step(text: &str) -> Step {
    let words: Vec<&str> = text.split_whitespace().collect();
    let by = person(1);
    match words[..] {
        ["open"] => Step::Wish(Command::Open { scope: scope() }),
        ["say"] => Step::SayNext,
        ["say", m] => Step::Wish(Command::Say { message: message(m), by }),
        ["say", m, "by", p] => Step::Wish(Command::Say { message: message(m), by: person(number(p)) }),
        ["edit", m, "seen", revision] => {
            Step::Wish(Command::Edit { message: message(m), revision: number(revision) as u32 })
        }
        ["withdraw", m] => Step::Wish(Command::Withdraw { message: message(m), by }),
        ["hold", m] => Step::Wish(Command::Hold { message: message(m) }),
        ["release", m] => Step::Wish(Command::Release { message: message(m) }),
        ["reorder", "back", "to", "front"] => Step::BackToFront,
        ["reorder", ref order @ ..] => {
            Step::Wish(Command::Reorder { order: order.iter().map(|m| message(m)).collect() })
        }
        ["stop"] => Step::StopRunning,
        ["stop", m] => Step::Wish(Command::Stop { message: message(m), by }),
        ["answer", a, yes_or_no] => {
            let answer = match yes_or_no {
                "yes" => Answer::Yes,
                "no" => Answer::No,
                other => panic!("{other} is no answer"),
            };
            Step::Wish(Command::Answer { approval: approval(a), answer, by })
        }
        ["end"] => Step::Wish(Command::End { by }),
        ["revoke", m] => Step::Wish(Command::Revoke { message: message(m) }),
        ["wake"] => Step::Wake { after_ms: None },
        ["wake", after] => {
            let ms = after.strip_prefix('+').unwrap_or_else(|| panic!("wake +MS, not {after}"));
            Step::Wake { after_ms: Some(number(ms) as u64) }
        }
        ["asks"] => Step::AskNext,
        ["asks", "again"] => Step::AskAgain,
        ["takes", "back"] => Step::TakeBack,
        ["crash"] => Step::Crash,
        ["no", "slot"] => Step::Slot(Slot::Taken),
        ["a", "slot"] => Step::Slot(Slot::Free),
        ["slot", "unasked"] => Step::Slot(Slot::Unasked),
        ["policy", "go", "on"] => Step::AfterFailure(AfterFailure::GoOn),
        ["policy", "hold"] => Step::AfterFailure(AfterFailure::Hold),
        ["known", native, "under", "epoch", epoch] => {
            Step::Confirmed { native: Native::new(native), epoch: Epoch(number(epoch) as u32) }
        }
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
        ["asks", a] => Report::Asked { approval: approval(a) },
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

fn scope() -> Scope {
    Scope { directory: "/srv/shop".into(), agent: "scripted".into(), model: None, mode: None }
}

fn told_in_words(told: &Told) -> String {
    match told {
        Told::Facts(facts) => facts.iter().map(fact_in_words).collect::<Vec<_>>().join(", "),
        Told::Refused(refusal) => {
            let why = match refusal {
                Refusal::TooLate => "too late",
                Refusal::Changed => "changed in between",
                Refusal::Ended => "the session has ended",
                Refusal::AlreadyOpen => "already open",
                Refusal::NotOpen => "not open",
            };
            format!("no: {why}")
        }
    }
}

fn fact_in_words(fact: &Fact) -> String {
    let m = |message: &MessageId| format!("m{}", message.bits());
    let a = |approval: &ApprovalId| format!("a{}", approval.bits());
    match fact {
        Fact::Opened { .. } => "opened".into(),
        Fact::Queued { message, .. } => format!("queued {}", m(message)),
        Fact::Edited { message, revision } => format!("edited {} to revision {revision}", m(message)),
        Fact::Withdrawn { message, .. } => format!("withdrawn {}", m(message)),
        Fact::Held { message, why, expires } => {
            let why = match why {
                HoldWhy::Asked => "asked",
                HoldWhy::AfterFailure => "after failure",
            };
            format!("held {} ({why}, until {})", m(message), expires.0)
        }
        Fact::Released { message } => format!("released {}", m(message)),
        Fact::Reordered { order } => {
            format!("reordered {}", order.iter().map(m).collect::<Vec<_>>().join(" "))
        }
        Fact::MessageRefused { message, why } => {
            let why = match why {
                RefusedWhy::SessionEnded => "session ended",
                RefusedWhy::Expired => "expired",
                RefusedWhy::NotAllowed => "not allowed",
            };
            format!("refused {} ({why})", m(message))
        }
        Fact::Crowded { until } => format!("crowded until {}", until.0),
        Fact::TurnStarted { turn, message } => format!("turn {turn} of {}", m(message)),
        Fact::AttemptStarted { fence, .. } => format!("attempt {}", fence_in_words(fence)),
        Fact::Confirmed { native, .. } => format!("confirmed {}", native.id),
        Fact::Handed { turn, attempt } => format!("handed {turn}.{attempt}"),
        Fact::AttemptFailed { turn, attempt, failure, again_at } => {
            format!("attempt {turn}.{attempt} {}, again at {}", failure_in_words(*failure), again_at.0)
        }
        Fact::Asked { approval, until, .. } => format!("asked {} until {}", a(approval), until.0),
        Fact::Answered { approval, answer, by } => {
            let by = if by.is_some() { "" } else { " (nobody answered)" };
            format!("answered {} {}{by}", a(approval), answer_in_words(*answer))
        }
        Fact::Lapsed { approval } => format!("lapsed {}", a(approval)),
        Fact::StopAsked { turn, why } => {
            let why = match why {
                StopWhy::Asked(_) => "asked",
                StopWhy::TimeLimit => "time limit",
                StopWhy::Ending => "session is ending",
                StopWhy::Revoked => "revoked",
            };
            format!("stop turn {turn} ({why})")
        }
        Fact::TurnEnded { turn, outcome } => {
            let outcome = match outcome {
                Outcome::Answered => "answered",
                Outcome::Stopped => "stopped",
                Outcome::Interrupted => "interrupted",
                Outcome::Failed(failure) => failure_in_words(*failure),
                Outcome::TimedOut => "timed out",
            };
            format!("turn {turn} {outcome}")
        }
        Fact::EndAsked { .. } => "to end".into(),
        Fact::Ended { why: EndWhy::Asked } => "ended (asked)".into(),
        Fact::Ended { why: EndWhy::Gone } => "ended (gone)".into(),
        Fact::Stale { fence, kind } => {
            format!("stale {} of {}", format!("{kind:?}").to_lowercase(), fence_in_words(fence))
        }
    }
}

fn failure_in_words(failure: Failure) -> &'static str {
    match failure {
        Failure::Gone => "failed (gone)",
        Failure::Busy => "failed (busy)",
        Failure::Transient => "failed (transient)",
        Failure::Refused => "failed (refused)",
    }
}

fn answer_in_words(answer: Answer) -> &'static str {
    match answer {
        Answer::Yes => "yes",
        Answer::No => "no",
    }
}

fn fence_in_words(fence: &Fence) -> String {
    let term = if fence.term == Term(1) { String::new() } else { format!(" term {}", fence.term) };
    format!("{}.{}{term}", fence.turn, fence.attempt)
}

fn due_in_words(world: &World) -> String {
    match (world.session.due(world.given.term), world.session.wake_at(world.given.term)) {
        (Due::Nothing, None) => "nothing".into(),
        (Due::Nothing, Some(at)) => format!("nothing until {}", at.0),
        (Due::Bury(fence), _) => format!("bury {}", fence_in_words(&fence)),
        (Due::Run(run), _) => {
            let step = match run.step {
                homing_kernel::Step::Start => "start",
                homing_kernel::Step::Work => "work",
                homing_kernel::Step::Stop => "stop",
            };
            let resume = run.resume.map(|native| format!(" as {}", native.id)).unwrap_or_default();
            let answers = run
                .answers
                .iter()
                .map(|(approval, answer)| format!(" a{}: {}", approval.bits(), answer_in_words(*answer)));
            let answers = answers.collect::<String>();
            format!("{step} {} m{}{resume}{answers}", fence_in_words(&run.fence), run.message.bits())
        }
    }
}

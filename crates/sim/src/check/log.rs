//! One session's log, read by rules of its own.
//!
//! It folds the facts again, with a queue and a turn as plain as can be, and says which fact could not have followed
//! from the ones before. What it understood (`LogSummary`) is compared elsewhere with what agents and people know.

mod scope;

use super::Findings;
use crate::notes::short;
use kernel::*;
use std::collections::{BTreeMap, BTreeSet};
use store::{Cause, ReceiptState, StoredEntry, StoredFact};

/// The content of a log.
#[derive(Debug, Default)]
pub(super) struct LogSummary {
    /// The end of each message.
    pub(super) finals: BTreeMap<MessageId, ReceiptState>,
    /// Messages in the order in which they were first mentioned.
    pub(super) order: Vec<MessageId>,
    /// Every turn, in order.
    pub(super) turns: Vec<TurnSummary>,
    /// The agent's names for the conversation, in the order of their confirmation.
    pub(super) confirmed: Vec<Native>,
    /// The one of them under which something was answered last.
    pub(super) proven: Option<Native>,
    pub(super) ended: Option<EndWhy>,
    /// Where and how it acted, by epoch.
    pub(super) scopes: Vec<Scope>,
    pub(super) origin: Option<Origin>,
    /// The epoch for which each message was written, as it was first queued.
    pub(super) written_for: BTreeMap<MessageId, Epoch>,
    /// The change of scope that still waits.
    pub(super) pending: Option<Change>,
    /// Turns that somebody wanted undone, and whether they were.
    pub(super) undone: BTreeMap<Turn, bool>,
    /// Messages that were on their way into a turn and came too late for it: they wait as before.
    pub(super) missed: BTreeSet<MessageId>,
    /// Errands that came back for another scope.
    pub(super) stale_errands: BTreeSet<(Errand, ErrandKind)>,
    /// Messages that were held because they were written for another scope.
    pub(super) held_for_scope: usize,
    pub(super) errands: u64,
}

/// The content of a log about a turn.
#[derive(Debug)]
pub(super) struct TurnSummary {
    pub(super) turn: Turn,
    pub(super) message: MessageId,
    /// Every attempt.
    pub(super) attempts: Vec<Fence>,
    pub(super) handed: Option<Fence>,
    /// The questions of the agent, and the answers it got.
    pub(super) asks: BTreeMap<ApprovalId, QuestionState>,
    /// Messages that were said into it and got there, as far as the log knows.
    pub(super) steered: Vec<MessageId>,
    /// The scope in which it runs.
    pub(super) epoch: Epoch,
    pub(super) stop: Option<StopWhy>,
    /// True if an attempt was under way when the turn ended.
    pub(super) trying: bool,
    pub(super) outcome: Option<Outcome>,
}

impl TurnSummary {
    /// It did not run here: no keeper has had the session then.
    pub(super) fn is_past(&self) -> bool {
        self.attempts.last().is_some_and(|fence| fence.term == Term(0))
    }
}

/// Where a question stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum QuestionState {
    Open,
    Answered(Answer),
    Lapsed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Unopened,
    Open,
    Ending,
    Ended,
}

struct LogReader<'a> {
    session: SessionId,
    requests: &'a BTreeMap<RequestId, Request>,
    policy: &'a Policy,
    findings: &'a mut Findings,
    life: Life,
    queue: Vec<Waits>,
    /// The knowledge about a change of scope on its way.
    moving: scope::Moving,
    is_busy: bool,
    term: Term,
    stale: BTreeSet<(Fence, ReportKind)>,
    name: Name,
    /// True if the last turn lost a conversation without which the session cannot be.
    bereft: bool,
    told: LogSummary,
}

/// A message that waits.
#[derive(Debug, Clone, Copy)]
struct Waits {
    message: MessageId,
    held: bool,
    /// The number of times it was edited.
    revision: u32,
    /// The scope that it was written for.
    epoch: Epoch,
    delivery: Delivery,
}

/// The agent's name for the conversation, by the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Unknown,
    Confirmed,
    /// It was confirmed in an earlier scope.
    Moved,
    /// A turn was answered under it.
    Proven,
}

/// Reads a log from its beginning.
pub(super) fn read(
    session: SessionId,
    facts: &[StoredFact],
    requests: &BTreeMap<RequestId, Request>,
    policy: &Policy,
    findings: &mut Findings,
) -> LogSummary {
    let mut reader = LogReader {
        session,
        requests,
        policy,
        findings,
        life: Life::Unopened,
        queue: Vec::new(),
        moving: scope::Moving::default(),
        is_busy: false,
        term: Term(0),
        stale: BTreeSet::new(),
        name: Name::Unknown,
        bereft: false,
        told: LogSummary::default(),
    };
    for (at, stored) in facts.iter().enumerate() {
        let number = stored.number;
        reader.must(number.0 == at as u64 + 1, "facts are numbered without a gap", &number);
        match &stored.entry {
            StoredEntry::Rule(fact) => reader.rule(fact, stored.cause),
            StoredEntry::Story { turn, .. } => {
                let running = reader.running(*turn).is_some() || reader.tells_of_errand(*turn);
                reader.must(running, "a finished turn never changes", &(number, turn));
            }
        }
    }
    reader.told
}

impl LogReader<'_> {
    fn must(&mut self, holds: bool, law: &'static str, about: &dyn std::fmt::Debug) {
        let session = self.session;
        self.findings.must(holds, law, || format!("{}: {about:?}", short(session)));
    }

    fn running(&mut self, turn: Turn) -> Option<&mut TurnSummary> {
        let is_busy = self.is_busy;
        self.told.turns.last_mut().filter(|told| is_busy && told.turn == turn)
    }

    fn rule(&mut self, fact: &Fact, cause: Cause) {
        let late =
            matches!(fact, Fact::Stale { .. } | Fact::StaleErrand { .. } | Fact::MessageRefused { .. });
        self.must(self.life != Life::Ended || late, "an ended session never changes", fact);
        self.must(
            (self.life == Life::Unopened) == matches!(fact, Fact::Opened { .. }),
            "the first fact is Opened, and no other",
            fact,
        );
        self.must(self.follows(fact, cause), "what is done is what was asked for", &(fact, cause));
        match fact {
            Fact::Opened { scope, origin, enter } => {
                self.life = Life::Open;
                self.open(scope, *origin, enter.as_ref());
            }
            Fact::EndAsked { .. } => self.life = Life::Ending,
            Fact::Ended { why } => self.end(*why, fact),
            Fact::Stale { fence, kind } => {
                let new = self.stale.insert((*fence, *kind));
                self.must(new, "a stale report is recorded once", fact);
            }
            Fact::Queued { .. }
            | Fact::Edited { .. }
            | Fact::Withdrawn { .. }
            | Fact::Held { .. }
            | Fact::Released { .. }
            | Fact::Reordered { .. }
            | Fact::Steered { .. }
            | Fact::Missed { .. }
            | Fact::MessageRefused { .. } => self.queueing(fact),
            Fact::Crowded { .. } => self.must(!self.is_busy, "one turn at a time", fact),
            Fact::TurnStarted { turn, message } => self.start(*turn, *message, fact),
            Fact::Confirmed { native, epoch } => {
                self.must(self.is_busy, "an agent is heard only in a turn", fact);
                self.must(*epoch == self.epoch(), "a name is confirmed in the scope of now", fact);
                self.told.confirmed.push(native.clone());
                self.name = Name::Confirmed;
            }
            Fact::AttemptFailed { failure: Failure::Gone, .. } => {
                let unproven = matches!(self.name, Name::Confirmed | Name::Moved);
                self.must(unproven, "only a conversation that was never proven is begun anew", fact);
                self.name = Name::Unknown;
                self.attempt(fact);
            }
            Fact::AttemptStarted { .. } | Fact::Handed { .. } | Fact::AttemptFailed { .. } => {
                self.attempt(fact)
            }
            Fact::Asked { .. } | Fact::Answered { .. } | Fact::Lapsed { .. } => self.asking(fact),
            Fact::StopAsked { turn, why } => {
                let why = *why;
                let stopped = self.running(*turn).map(|told| told.stop.replace(why));
                self.must(stopped.is_some(), "stopping a turn never touches another", fact);
                self.must(
                    self.may_interrupt(cause) || self.is_elsewhere(),
                    "only what is to interrupt a turn stops it",
                    fact,
                );
            }
            Fact::TurnEnded { turn, outcome } => self.turn_over(*turn, *outcome, fact),
            Fact::ChangeAsked { .. }
            | Fact::ScopeKept { .. }
            | Fact::ScopeChanged { .. }
            | Fact::ErrandStarted { .. }
            | Fact::ErrandFailed { .. }
            | Fact::Undone { .. }
            | Fact::Redone { .. }
            | Fact::Learned { .. }
            | Fact::StaleErrand { .. } => self.scope_fact(fact),
        }
    }

    /// True if a fact that followed from a request is about what the request named.
    fn follows(&self, fact: &Fact, cause: Cause) -> bool {
        let (Cause::Request(request), true) = (cause, self.is_named(fact)) else { return true };
        let running = self.told.turns.last().map(|told| told.message);
        match (self.requests.get(&request), fact) {
            (Some(Request::End { .. }), _) => true,
            (Some(Request::Interrupt { .. }), Fact::StopAsked { .. } | Fact::TurnEnded { .. }) => true,
            // Whatever makes room for a change of scope brings this along.
            (Some(_), Fact::Held { why: HoldWhy::OtherScope, .. }) => true,
            (Some(_), Fact::Released { message, .. }) if self.moving.has_released(*message) => true,
            (Some(Request::Stop { message }), Fact::StopAsked { .. } | Fact::TurnEnded { .. }) => {
                let steered = self.told.turns.last().is_some_and(|told| told.steered.contains(message));
                running == Some(*message) || steered
            }
            (
                Some(Request::Stop { message: m } | Request::Withdraw { message: m }),
                Fact::Withdrawn { message, .. },
            )
            | (Some(Request::Edit { message: m, .. }), Fact::Edited { message, .. })
            | (Some(Request::Hold { message: m }), Fact::Held { message, .. })
            | (
                Some(
                    Request::Release { message: m, .. }
                    | Request::Steer { message: m }
                    | Request::Interrupt { message: m },
                ),
                Fact::Released { message, .. },
            ) => m == message,
            _ => false,
        }
    }

    fn is_named(&self, fact: &Fact) -> bool {
        matches!(
            fact,
            Fact::StopAsked { .. }
                | Fact::TurnEnded { .. }
                | Fact::Withdrawn { .. }
                | Fact::Edited { .. }
                | Fact::Held { .. }
                | Fact::Released { .. }
        )
    }

    fn queueing(&mut self, fact: &Fact) {
        match fact {
            Fact::Queued { message, epoch, delivery, .. } => {
                self.must(self.life == Life::Open, "only an open session takes messages", fact);
                self.first_mention(*message, fact);
                self.told.written_for.insert(*message, *epoch);
                let (message, epoch, delivery) = (*message, *epoch, *delivery);
                self.queue.push(Waits { message, held: false, revision: 0, epoch, delivery });
            }
            Fact::Steered { message, turn } => self.steer(*message, *turn, fact),
            Fact::Missed { message } => {
                self.told.missed.insert(*message);
                self.miss(*message, fact);
            }
            Fact::Reordered { order } => {
                let place = |waits: &Waits| order.iter().position(|m| *m == waits.message);
                let complete =
                    order.len() == self.queue.len() && self.queue.iter().all(|w| place(w).is_some());
                self.must(complete, "a new order names each waiting message once", fact);
                self.queue.sort_by_key(place);
            }
            Fact::MessageRefused { message, .. } => {
                if !self.waits(*message) {
                    let over = matches!(self.life, Life::Ending | Life::Ended);
                    self.must(over, "only an ended session refuses what never waited", fact);
                    self.first_mention(*message, fact);
                }
                self.leave(*message, ReceiptState::Refused, fact);
            }
            Fact::Withdrawn { message, .. } => {
                let waits = self.waits(*message);
                self.must(waits, "only what waits can be taken back", fact);
                self.leave(*message, ReceiptState::Withdrawn, fact);
            }
            Fact::Edited { message, .. } | Fact::Held { message, .. } | Fact::Released { message, .. } => {
                let along = self.moving.takes_along;
                let waiting = self.queue.iter_mut().find(|waits| waits.message == *message);
                let fits = waiting.is_some_and(|waits| tend(fact, waits, along));
                self.must(fits, "only what waits can be changed", fact);
                self.note_hold(fact);
            }
            _ => {}
        }
    }

    fn waits(&self, message: MessageId) -> bool {
        self.queue.iter().any(|waits| waits.message == message)
    }

    fn first_mention(&mut self, message: MessageId, fact: &Fact) {
        let new = !self.told.order.contains(&message);
        self.must(new, "a message exists exactly once", fact);
        self.told.order.push(message);
    }

    fn leave(&mut self, message: MessageId, state: ReceiptState, fact: &Fact) {
        self.queue.retain(|waits| waits.message != message);
        let before = self.told.finals.insert(message, state);
        self.must(before.is_none(), "a final state never changes", fact);
    }

    fn start(&mut self, turn: Turn, message: MessageId, fact: &Fact) {
        self.must(!self.bereft, "a session ends with its conversation", fact);
        self.must(self.life == Life::Open, "only an open session starts turns", fact);
        self.must(!self.is_busy, "one turn at a time", fact);
        let last = self.told.turns.last().map_or(0, |told| told.turn.0);
        self.must(turn.0 == last + 1, "turns are numbered without a gap", fact);
        let first = self.queue.iter().find(|waits| !waits.held).copied();
        let is_first = first.is_some_and(|first| first.message == message);
        self.must(is_first, "order of acceptance is order of turns", fact);
        self.may_act(first.map(|first| first.epoch), fact);
        self.queue.retain(|waits| waits.message != message);
        let epoch = self.epoch();
        self.is_busy = true;
        self.told.turns.push(TurnSummary {
            turn,
            message,
            attempts: Vec::new(),
            handed: None,
            asks: BTreeMap::new(),
            steered: Vec::new(),
            epoch,
            stop: None,
            trying: false,
            outcome: None,
        });
    }

    fn attempt(&mut self, fact: &Fact) {
        let (attempts_max, term) = (usize::from(self.policy.attempts_max), self.term);
        let told = match fact {
            Fact::AttemptStarted { fence, .. } => self.running(fence.turn),
            Fact::Handed { turn, .. } | Fact::AttemptFailed { turn, .. } => self.running(*turn),
            _ => None,
        };
        let Some(told) = told else {
            return self.must(false, "an attempt belongs to the running turn", fact);
        };
        let (unhanded, turn_epoch) = (told.handed.is_none(), told.epoch);
        let tried = told.attempts.last().copied();
        let (fits, law) = match fact {
            Fact::AttemptStarted { fence, .. } => {
                let next = !told.trying && usize::from(fence.attempt.0) == told.attempts.len() + 1;
                told.attempts.push(*fence);
                told.trying = true;
                let within = told.attempts.len() <= attempts_max && fence.term >= term;
                let within = within && fence.epoch == turn_epoch;
                self.term = fence.term;
                (next && within, "attempts are bounded, one after the other")
            }
            Fact::Handed { attempt, .. } => {
                told.handed = tried;
                let this = told.trying && tried.is_some_and(|fence| fence.attempt == *attempt);
                (this && told.stop.is_none(), "what is handed over goes to the attempt that runs")
            }
            _ => {
                told.trying = false;
                (true, "")
            }
        };
        self.must(unhanded, "nothing handed over is run again", fact);
        self.must(fits, law, fact);
    }

    fn asking(&mut self, fact: &Fact) {
        let is_busy = self.is_busy;
        let told = self.told.turns.last_mut().filter(|told| is_busy && told.handed.is_some());
        let fits = told.is_some_and(|told| match fact {
            Fact::Asked { approval, .. } => told.asks.insert(*approval, QuestionState::Open).is_none(),
            Fact::Answered { approval, answer, .. } => {
                told.asks.insert(*approval, QuestionState::Answered(answer.clone()))
                    == Some(QuestionState::Open)
            }
            Fact::Lapsed { approval } => {
                told.asks.insert(*approval, QuestionState::Lapsed) == Some(QuestionState::Open)
            }
            _ => false,
        });
        self.must(fits, "an answered or lapsed question never changes", fact);
    }

    fn turn_over(&mut self, turn: Turn, outcome: Outcome, fact: &Fact) {
        let Some(told) = self.running(turn) else {
            return self.must(false, "a finished turn never changes", fact);
        };
        told.outcome = Some(outcome);
        let (message, handed, stop) = (told.message, told.handed.is_some(), told.stop);
        let steered = told.steered.clone();
        let open = told.asks.values().any(|asked| *asked == QuestionState::Open);
        self.is_busy = false;
        match outcome {
            Outcome::Answered if self.name == Name::Confirmed => {
                self.name = Name::Proven;
                self.told.proven = self.told.confirmed.last().cloned();
            }
            Outcome::Failed(Failure::Gone) => {
                self.must(self.name != Name::Unknown, "Gone counts only for a confirmed conversation", fact);
                self.bereft = handed || self.name == Name::Proven;
                self.name = Name::Unknown;
            }
            _ => {}
        }
        self.must(!open, "questions lapse with their turn", fact);
        let fits = match outcome {
            Outcome::Answered | Outcome::Interrupted => handed,
            Outcome::TimedOut => stop == Some(StopWhy::TimeLimit),
            Outcome::Stopped | Outcome::Failed(_) => true,
        };
        self.must(fits, "an outcome has its reason", fact);
        let state = match outcome {
            Outcome::Answered => ReceiptState::Answered,
            Outcome::Stopped => ReceiptState::Stopped,
            Outcome::Interrupted | Outcome::Failed(_) | Outcome::TimedOut => ReceiptState::Failed,
        };
        self.leave(message, state, fact);
        steered.into_iter().for_each(|message| self.leave(message, state, fact));
    }

    fn end(&mut self, why: EndWhy, fact: &Fact) {
        let at_rest = self.queue.is_empty() && !self.is_busy && self.moving.away.is_none();
        self.must(at_rest, "an end leaves nothing waiting", fact);
        let fits = self.bereft == (why == EndWhy::Gone);
        self.must(fits, "Gone ends a session only with a proven conversation, or at work", fact);
        self.life = Life::Ended;
        self.moving.pending = None;
        self.told.pending = None;
        self.told.ended = Some(why);
    }
}

/// True if this can happen to it. Whatever waits for a session that goes into a worktree first is taken along, held or
/// not.
fn tend(fact: &Fact, waits: &mut Waits, along: bool) -> bool {
    match fact {
        Fact::Edited { revision, .. } => {
            waits.revision += 1;
            waits.revision == *revision
        }
        Fact::Held { .. } => !std::mem::replace(&mut waits.held, true),
        Fact::Released { epoch, .. } => {
            waits.epoch = *epoch;
            std::mem::replace(&mut waits.held, false) || along
        }
        _ => false,
    }
}

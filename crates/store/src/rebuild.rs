//! The projections of one session, made from its log and nothing else.
//!
//! `Projection` is what `project`'s changes come to when they are applied one after the other. The memory store keeps
//! one per session; a backend with tables of its own is compared with one that was made anew from its log.

use crate::project::{Change, project};
use crate::record::approval_told;
use crate::{
    ApprovalState, Day, LastTurn, LastWords, ReceiptState, StoredEntry, StoredFact, UsageKey, UsageSum,
};
use bytes::Bytes;
use kernel::{ApprovalId, ApprovalTerms, EndWhy, Epoch, Fact, MessageId, Moment, Number, Scope, Turn};
use std::collections::BTreeMap;

/// The sum of the rule facts of one session, for lists and receipts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Projection {
    /// Where each message stands that the keeper has seen.
    pub receipts: BTreeMap<MessageId, Standing>,
    /// The messages that wait or are held, in the order in which they will run.
    pub queue: Vec<MessageId>,
    /// The agent's questions.
    pub approvals: BTreeMap<ApprovalId, ApprovalStanding>,
    /// Why the session ended, if it has.
    pub ended: Option<EndWhy>,
    /// Where and how it acts, under each epoch until now.
    pub scopes: BTreeMap<Epoch, Scope>,
    /// When the agent last finished a turn.
    pub turn_over_at: Option<Moment>,
    /// The last turn that is over.
    pub last: Option<LastTurn>,
    /// The usage of its turns.
    pub usage: BTreeMap<UsageKey, UsageSum>,
    /// The agent's last words so far.
    words: LastWords,
    /// The words of approvals that have not been asked yet: their words come before them.
    told: BTreeMap<ApprovalId, Bytes>,
}

/// Where a message stands, as far as the log says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Its state.
    pub state: ReceiptState,
    /// A stable word for why.
    pub why: Option<&'static str>,
    /// The number of times its words were replaced.
    pub revision: u32,
    /// The epoch of the scope that it was written for; none until the keeper has seen it.
    pub epoch: Option<Epoch>,
    /// Its turn, once it has begun.
    pub turn: Option<Turn>,
    /// The number of the fact that started the turn.
    pub first: Option<Number>,
    /// The number of the fact that ended it.
    pub last: Option<Number>,
    /// When its state last changed.
    pub changed_at: Moment,
}

impl Standing {
    /// A message that was accepted and that no fact is about yet.
    pub fn accepted(at: Moment) -> Self {
        Self {
            state: ReceiptState::Waiting,
            why: None,
            revision: 0,
            epoch: None,
            turn: None,
            first: None,
            last: None,
            changed_at: at,
        }
    }
}

/// Where an approval stands, as far as the log says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalStanding {
    /// The turn that asks.
    pub turn: Turn,
    /// Where it stands.
    pub state: ApprovalState,
    /// When it was asked.
    pub asked_at: Moment,
    /// When it becomes a no.
    pub until: Moment,
    /// The terms by which its answers are judged.
    pub terms: ApprovalTerms,
    /// Its words.
    pub words: Option<Bytes>,
    /// When it was answered, or lapsed.
    pub settled_at: Option<Moment>,
}

/// The projections of the session whose whole log this is.
pub fn rebuild<'a>(log: impl IntoIterator<Item = &'a StoredFact>) -> Projection {
    let mut projection = Projection::default();
    for stored in log {
        match &stored.entry {
            StoredEntry::Rule(fact) => projection.fold(stored.number, stored.at, fact),
            StoredEntry::Story { turn, kind, body: Some(body) } => {
                projection.hear(stored.at, *turn, kind, body)
            }
            StoredEntry::Story { body: None, .. } => {}
        }
    }
    projection
}

impl Projection {
    /// The number of questions that are open.
    pub fn questions(&self) -> u32 {
        let open = |standing: &&ApprovalStanding| standing.state == ApprovalState::Open;
        self.approvals.values().filter(open).count() as u32
    }

    /// Takes note of a story fact, which may have the words of an approval, the agent's, or what it has used.
    pub fn hear(&mut self, at: Moment, turn: Turn, kind: &str, body: &Bytes) {
        self.words.hear(turn, kind, body);
        if let Some(told) = UsageSum::told(kind, body) {
            let key = self.usage_key(at, turn);
            let sum = self.usage.entry(key).or_default();
            *sum = sum.and(told);
        }
        if let Some(approval) = approval_told(kind, body) {
            self.told.insert(approval, body.clone());
        }
    }

    fn usage_key(&self, at: Moment, turn: Turn) -> UsageKey {
        let began = self.receipts.iter().filter(|(_, standing)| standing.turn == Some(turn));
        let message = began.min_by_key(|(_, standing)| standing.first).map(|(message, _)| *message);
        let agent = self.scopes.values().next_back().map(|scope| scope.agent.clone()).unwrap_or_default();
        UsageKey { day: Day::of(at), agent, message }
    }

    /// Applies one rule fact.
    pub fn fold(&mut self, number: Number, at: Moment, fact: &Fact) {
        for change in project(fact) {
            self.change(number, at, change);
        }
    }

    fn change(&mut self, number: Number, at: Moment, change: Change) {
        match change {
            Change::Receipt { message, state, why } => {
                self.stand(message, state, why, at);
            }
            Change::Waits { message, epoch } => {
                self.stand(message, ReceiptState::Waiting, None, at).epoch = Some(epoch);
            }
            Change::Revision { message, revision } => {
                self.receipts.entry(message).or_insert(Standing::accepted(at)).revision = revision;
            }
            Change::Order(order) => {
                self.queue.sort_by_key(|message| order.iter().position(|named| named == message));
            }
            Change::Began { message, turn } => {
                let standing = self.receipts.entry(message).or_insert(Standing::accepted(at));
                (standing.turn, standing.first) = (Some(turn), Some(number));
            }
            Change::Stopping { turn, why } => {
                let stopping = self.receipts.values_mut().filter(|standing| standing.turn == Some(turn));
                stopping.for_each(|standing| standing.why = Some(why));
            }
            Change::TurnOver { turn, outcome, state, why } => {
                let over = self.receipts.values_mut().filter(|standing| standing.turn == Some(turn));
                for standing in over {
                    let stays = if state == ReceiptState::Stopped { standing.why } else { None };
                    (standing.state, standing.why) = (state, why.or(stays));
                    (standing.last, standing.changed_at) = (Some(number), at);
                }
                self.turn_over_at = self.turn_over_at.max(Some(at));
                self.last = Some(LastTurn { outcome, number, at, words: self.words.of(turn) });
            }
            Change::Asked { approval, turn, until, terms } => {
                let (state, words, settled_at) = (ApprovalState::Open, self.told.remove(&approval), None);
                let standing =
                    ApprovalStanding { turn, state, asked_at: at, until, terms, words, settled_at };
                self.approvals.insert(approval, standing);
            }
            Change::Answered { approval, answer, by } => {
                self.settle(approval, ApprovalState::Answered { answer, by }, at);
            }
            Change::Lapsed { approval } => self.settle(approval, ApprovalState::Lapsed, at),
            Change::Missed { message } => {
                let standing = self.receipts.entry(message).or_insert(Standing::accepted(at));
                (standing.turn, standing.first) = (None, None);
                self.queue.retain(|waiting| *waiting != message);
                self.queue.insert(0, message);
            }
            Change::Scope { scope, epoch } => drop(self.scopes.insert(epoch, scope)),
            Change::Ended(why) => self.ended = Some(why),
        }
    }

    fn stand(
        &mut self,
        message: MessageId,
        state: ReceiptState,
        why: Option<&'static str>,
        at: Moment,
    ) -> &mut Standing {
        self.place(message, state);
        let standing = self.receipts.entry(message).or_insert(Standing::accepted(at));
        (standing.state, standing.why, standing.changed_at) = (state, why, at);
        standing
    }

    /// A message gets its place when it is first seen, keeps it while it waits or is held, and leaves it for good.
    fn place(&mut self, message: MessageId, state: ReceiptState) {
        let placed = self.queue.contains(&message);
        match state {
            ReceiptState::Waiting | ReceiptState::Held if placed => {}
            ReceiptState::Waiting | ReceiptState::Held => self.queue.push(message),
            ReceiptState::Running
            | ReceiptState::Answered
            | ReceiptState::Failed
            | ReceiptState::Stopped
            | ReceiptState::Withdrawn
            | ReceiptState::Refused => self.queue.retain(|waiting| *waiting != message),
        }
    }

    fn settle(&mut self, approval: ApprovalId, state: ApprovalState, at: Moment) {
        if let Some(standing) = self.approvals.get_mut(&approval) {
            standing.state = state;
            standing.settled_at = Some(at);
        }
    }
}

//! The stored form of rule facts, and of a checkpoint, which is a few of them under a version number.

use super::approval::{AnswerRecord, TermsRecord};
use super::scope::{
    ChangeRecord, ErrandRecord, KeptRecord, NewWorktreeRecord, OriginRecord, ScopeRecord, WhatRecord,
};
use super::{Text, Unreadable, Word, decode, encode};
use kernel::{
    Answerer, ApprovalId, Attempt, Delivery, EndWhy, Epoch, ErrandKind, Fact, Failure, Fence, HoldWhy,
    MessageId, Moment, Native, Outcome, PersonId, RefusedWhy, ReportKind, RuleId, Scope, StopWhy, Term, Turn,
};
use serde::{Deserialize, Serialize};

/// Grows when `evolve` begins to read old facts differently. A checkpoint of another version is made anew from the log.
const CHECKPOINT_VERSION: u32 = 2;

/// The stored form of a rule fact: compact JSON.
pub fn encode_fact(fact: &Fact) -> Vec<u8> {
    encode(&FactRecord::from(fact))
}

/// A rule fact as it was stored. If this fails, this version must not keep the session.
pub fn decode_fact(bytes: &[u8]) -> Result<Fact, Unreadable> {
    decode::<FactRecord>("rule fact", bytes).map(Fact::from)
}

/// The stored form of a checkpoint.
pub fn encode_checkpoint(facts: &[Fact]) -> Vec<u8> {
    encode(&CheckpointRecord {
        version: CHECKPOINT_VERSION,
        facts: facts.iter().map(FactRecord::from).collect(),
    })
}

/// A checkpoint's facts. If this fails, the caller ignores the checkpoint and reads the log: nothing is lost.
pub fn decode_checkpoint(bytes: &[u8]) -> Result<Vec<Fact>, Unreadable> {
    let record = decode::<CheckpointRecord>("checkpoint", bytes)?;
    if record.version != CHECKPOINT_VERSION {
        return Err(Unreadable { what: "checkpoint", why: format!("version {}", record.version) });
    }
    Ok(record.facts.into_iter().map(Fact::from).collect())
}

/// The stored form of a scope.
pub fn encode_scope(scope: &Scope) -> Vec<u8> {
    encode(&ScopeRecord::from(scope))
}

/// A scope as it was stored.
pub fn decode_scope(bytes: &[u8]) -> Result<Scope, Unreadable> {
    decode::<ScopeRecord>("scope", bytes).map(Scope::from)
}

#[derive(Serialize, Deserialize)]
struct CheckpointRecord {
    version: u32,
    facts: Vec<FactRecord>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FenceRecord {
    term: u64,
    epoch: u32,
    turn: u32,
    attempt: u16,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum StopRecord {
    Asked { by: Text<PersonId> },
    TimeLimit {},
    Ending {},
    Revoked {},
    HandedOver {},
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum OutcomeRecord {
    Answered {},
    Stopped {},
    Interrupted {},
    Failed { failure: Word<Failure> },
    TimedOut {},
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum FactRecord {
    Opened {
        scope: ScopeRecord,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<OriginRecord>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        enter: Option<NewWorktreeRecord>,
    },
    Queued {
        message: Text<MessageId>,
        by: Text<PersonId>,
        #[serde(default, skip_serializing_if = "is_default")]
        delivery: Word<Delivery>,
        #[serde(default, skip_serializing_if = "is_default")]
        epoch: u32,
    },
    Edited {
        message: Text<MessageId>,
        revision: u32,
    },
    Withdrawn {
        message: Text<MessageId>,
        by: Text<PersonId>,
    },
    Held {
        message: Text<MessageId>,
        why: Word<HoldWhy>,
        expires: u64,
    },
    Released {
        message: Text<MessageId>,
        #[serde(default, skip_serializing_if = "is_default")]
        epoch: u32,
    },
    Steered {
        message: Text<MessageId>,
        turn: u32,
    },
    Missed {
        message: Text<MessageId>,
    },
    Reordered {
        order: Vec<Text<MessageId>>,
    },
    MessageRefused {
        message: Text<MessageId>,
        why: Word<RefusedWhy>,
    },
    Crowded {
        until: u64,
    },
    TurnStarted {
        turn: u32,
        message: Text<MessageId>,
    },
    AttemptStarted {
        fence: FenceRecord,
        until: u64,
    },
    Confirmed {
        native: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        place: String,
        epoch: u32,
    },
    Handed {
        turn: u32,
        attempt: u16,
    },
    AttemptFailed {
        turn: u32,
        attempt: u16,
        failure: Word<Failure>,
        again_at: u64,
    },
    Asked {
        approval: Text<ApprovalId>,
        turn: u32,
        until: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        posed: Option<TermsRecord>,
    },
    Answered {
        approval: Text<ApprovalId>,
        answer: AnswerRecord,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Text<PersonId>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<Text<RuleId>>,
        #[serde(default, skip_serializing_if = "is_default")]
        policy: bool,
    },
    Lapsed {
        approval: Text<ApprovalId>,
    },
    StopAsked {
        turn: u32,
        why: StopRecord,
    },
    TurnEnded {
        turn: u32,
        outcome: OutcomeRecord,
    },
    EndAsked {
        by: Text<PersonId>,
    },
    Ended {
        why: Word<EndWhy>,
    },
    Stale {
        fence: FenceRecord,
        kind: Word<ReportKind>,
    },
    ChangeAsked {
        change: ChangeRecord,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Text<MessageId>>,
        by: Text<PersonId>,
    },
    ScopeKept {
        why: KeptRecord,
    },
    ScopeChanged {
        epoch: u32,
        scope: ScopeRecord,
    },
    ErrandStarted {
        errand: ErrandRecord,
        what: WhatRecord,
        by: Text<PersonId>,
    },
    ErrandFailed {
        errand: ErrandRecord,
    },
    Undone {
        turn: u32,
    },
    Redone {
        turn: u32,
    },
    Learned {
        kind: Word<ErrandKind>,
        epoch: u32,
    },
    StaleErrand {
        errand: ErrandRecord,
        kind: Word<ErrandKind>,
    },
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl From<&Fact> for FactRecord {
    fn from(fact: &Fact) -> Self {
        match fact {
            Fact::Opened { scope, origin, enter } => Self::Opened {
                scope: scope.into(),
                origin: origin.map(OriginRecord::from),
                enter: enter.as_ref().map(NewWorktreeRecord::from),
            },
            Fact::Queued { message, by, delivery, epoch } => Self::Queued {
                message: Text(*message),
                by: Text(*by),
                delivery: Word(*delivery),
                epoch: epoch.0,
            },
            Fact::Edited { message, revision } => {
                Self::Edited { message: Text(*message), revision: *revision }
            }
            Fact::Withdrawn { message, by } => Self::Withdrawn { message: Text(*message), by: Text(*by) },
            Fact::Held { message, why, expires } => {
                Self::Held { message: Text(*message), why: Word(*why), expires: expires.0 }
            }
            Fact::Released { message, epoch } => Self::Released { message: Text(*message), epoch: epoch.0 },
            Fact::Steered { message, turn } => Self::Steered { message: Text(*message), turn: turn.0 },
            Fact::Missed { message } => Self::Missed { message: Text(*message) },
            Fact::Reordered { order } => Self::Reordered { order: order.iter().copied().map(Text).collect() },
            Fact::MessageRefused { message, why } => {
                Self::MessageRefused { message: Text(*message), why: Word(*why) }
            }
            Fact::Crowded { until } => Self::Crowded { until: until.0 },
            Fact::TurnStarted { turn, message } => {
                Self::TurnStarted { turn: turn.0, message: Text(*message) }
            }
            Fact::AttemptStarted { fence, until } => {
                Self::AttemptStarted { fence: (*fence).into(), until: until.0 }
            }
            Fact::Confirmed { native, epoch } => {
                Self::Confirmed { native: native.id.clone(), place: native.place.clone(), epoch: epoch.0 }
            }
            Fact::Handed { turn, attempt } => Self::Handed { turn: turn.0, attempt: attempt.0 },
            Fact::AttemptFailed { turn, attempt, failure, again_at } => Self::AttemptFailed {
                turn: turn.0,
                attempt: attempt.0,
                failure: Word(*failure),
                again_at: again_at.0,
            },
            Fact::Asked { approval, turn, until, terms } => Self::Asked {
                approval: Text(*approval),
                turn: turn.0,
                until: until.0,
                posed: TermsRecord::of(terms),
            },
            Fact::Answered { approval, answer, by } => {
                let (person, rule, policy) = match by {
                    Answerer::Person(person) => (Some(Text(*person)), None, false),
                    Answerer::Rule(rule) => (None, Some(Text(*rule)), false),
                    Answerer::Policy => (None, None, true),
                    Answerer::Nobody => (None, None, false),
                };
                Self::Answered { approval: Text(*approval), answer: answer.into(), by: person, rule, policy }
            }
            Fact::Lapsed { approval } => Self::Lapsed { approval: Text(*approval) },
            Fact::StopAsked { turn, why } => Self::StopAsked { turn: turn.0, why: (*why).into() },
            Fact::TurnEnded { turn, outcome } => Self::TurnEnded { turn: turn.0, outcome: (*outcome).into() },
            Fact::EndAsked { by } => Self::EndAsked { by: Text(*by) },
            Fact::Ended { why } => Self::Ended { why: Word(*why) },
            Fact::Stale { fence, kind } => Self::Stale { fence: (*fence).into(), kind: Word(*kind) },
            Fact::ChangeAsked { change, after, by } => {
                Self::ChangeAsked { change: change.into(), after: after.map(Text), by: Text(*by) }
            }
            Fact::ScopeKept { why } => Self::ScopeKept { why: (*why).into() },
            Fact::ScopeChanged { epoch, scope } => Self::ScopeChanged { epoch: epoch.0, scope: scope.into() },
            Fact::ErrandStarted { errand, what, by } => {
                Self::ErrandStarted { errand: (*errand).into(), what: what.into(), by: Text(*by) }
            }
            Fact::ErrandFailed { errand } => Self::ErrandFailed { errand: (*errand).into() },
            Fact::Undone { turn } => Self::Undone { turn: turn.0 },
            Fact::Redone { turn } => Self::Redone { turn: turn.0 },
            Fact::Learned { kind, epoch } => Self::Learned { kind: Word(*kind), epoch: epoch.0 },
            Fact::StaleErrand { errand, kind } => {
                Self::StaleErrand { errand: (*errand).into(), kind: Word(*kind) }
            }
        }
    }
}

impl From<FactRecord> for Fact {
    fn from(record: FactRecord) -> Self {
        use FactRecord as R;
        match record {
            R::Opened { scope, origin, enter } => Self::Opened {
                scope: scope.into(),
                origin: origin.map(kernel::Origin::from),
                enter: enter.map(kernel::NewWorktree::from),
            },
            R::Queued { message, by, delivery, epoch } => {
                let (delivery, epoch) = (delivery.0, Epoch(epoch));
                Self::Queued { message: message.0, by: by.0, delivery, epoch }
            }
            R::Edited { message, revision } => Self::Edited { message: message.0, revision },
            R::Withdrawn { message, by } => Self::Withdrawn { message: message.0, by: by.0 },
            R::Held { message, why, expires } => {
                Self::Held { message: message.0, why: why.0, expires: Moment(expires) }
            }
            R::Released { message, epoch } => Self::Released { message: message.0, epoch: Epoch(epoch) },
            R::Steered { message, turn } => Self::Steered { message: message.0, turn: Turn(turn) },
            R::Missed { message } => Self::Missed { message: message.0 },
            R::Reordered { order } => Self::Reordered { order: order.into_iter().map(|m| m.0).collect() },
            R::MessageRefused { message, why } => Self::MessageRefused { message: message.0, why: why.0 },
            R::Crowded { until } => Self::Crowded { until: Moment(until) },
            R::TurnStarted { turn, message } => Self::TurnStarted { turn: Turn(turn), message: message.0 },
            R::AttemptStarted { fence, until } => {
                Self::AttemptStarted { fence: fence.into(), until: Moment(until) }
            }
            R::Confirmed { native, place, epoch } => {
                Self::Confirmed { native: Native::new(native).at(place), epoch: Epoch(epoch) }
            }
            R::Handed { turn, attempt } => Self::Handed { turn: Turn(turn), attempt: Attempt(attempt) },
            R::AttemptFailed { turn, attempt, failure, again_at } => Self::AttemptFailed {
                turn: Turn(turn),
                attempt: Attempt(attempt),
                failure: failure.0,
                again_at: Moment(again_at),
            },
            R::Asked { approval, turn, until, posed } => Self::Asked {
                approval: approval.0,
                turn: Turn(turn),
                until: Moment(until),
                terms: posed.map(kernel::ApprovalTerms::from).unwrap_or_default(),
            },
            R::Answered { approval, answer, by, rule, policy } => {
                let by = match (by, rule, policy) {
                    (Some(person), _, _) => Answerer::Person(person.0),
                    (None, Some(rule), _) => Answerer::Rule(rule.0),
                    (None, None, true) => Answerer::Policy,
                    (None, None, false) => Answerer::Nobody,
                };
                Self::Answered { approval: approval.0, answer: answer.into(), by }
            }
            R::Lapsed { approval } => Self::Lapsed { approval: approval.0 },
            R::StopAsked { turn, why } => Self::StopAsked { turn: Turn(turn), why: why.into() },
            R::TurnEnded { turn, outcome } => Self::TurnEnded { turn: Turn(turn), outcome: outcome.into() },
            R::EndAsked { by } => Self::EndAsked { by: by.0 },
            R::Ended { why } => Self::Ended { why: why.0 },
            R::Stale { fence, kind } => Self::Stale { fence: fence.into(), kind: kind.0 },
            R::ChangeAsked { change, after, by } => {
                Self::ChangeAsked { change: change.into(), after: after.map(|m| m.0), by: by.0 }
            }
            R::ScopeKept { why } => Self::ScopeKept { why: why.into() },
            R::ScopeChanged { epoch, scope } => {
                Self::ScopeChanged { epoch: Epoch(epoch), scope: scope.into() }
            }
            R::ErrandStarted { errand, what, by } => {
                Self::ErrandStarted { errand: errand.into(), what: what.into(), by: by.0 }
            }
            R::ErrandFailed { errand } => Self::ErrandFailed { errand: errand.into() },
            R::Undone { turn } => Self::Undone { turn: Turn(turn) },
            R::Redone { turn } => Self::Redone { turn: Turn(turn) },
            R::Learned { kind, epoch } => Self::Learned { kind: kind.0, epoch: Epoch(epoch) },
            R::StaleErrand { errand, kind } => Self::StaleErrand { errand: errand.into(), kind: kind.0 },
        }
    }
}

impl From<Fence> for FenceRecord {
    fn from(fence: Fence) -> Self {
        let Fence { term, epoch, turn, attempt } = fence;
        Self { term: term.0, epoch: epoch.0, turn: turn.0, attempt: attempt.0 }
    }
}

impl From<FenceRecord> for Fence {
    fn from(record: FenceRecord) -> Self {
        let FenceRecord { term, epoch, turn, attempt } = record;
        Self { term: Term(term), epoch: Epoch(epoch), turn: Turn(turn), attempt: Attempt(attempt) }
    }
}

impl From<StopWhy> for StopRecord {
    fn from(why: StopWhy) -> Self {
        match why {
            StopWhy::Asked(by) => Self::Asked { by: Text(by) },
            StopWhy::TimeLimit => Self::TimeLimit {},
            StopWhy::Ending => Self::Ending {},
            StopWhy::Revoked => Self::Revoked {},
            StopWhy::HandedOver => Self::HandedOver {},
        }
    }
}

impl From<StopRecord> for StopWhy {
    fn from(record: StopRecord) -> Self {
        match record {
            StopRecord::Asked { by } => Self::Asked(by.0),
            StopRecord::TimeLimit {} => Self::TimeLimit,
            StopRecord::Ending {} => Self::Ending,
            StopRecord::Revoked {} => Self::Revoked,
            StopRecord::HandedOver {} => Self::HandedOver,
        }
    }
}

impl From<Outcome> for OutcomeRecord {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Answered => Self::Answered {},
            Outcome::Stopped => Self::Stopped {},
            Outcome::Interrupted => Self::Interrupted {},
            Outcome::Failed(failure) => Self::Failed { failure: Word(failure) },
            Outcome::TimedOut => Self::TimedOut {},
        }
    }
}

impl From<OutcomeRecord> for Outcome {
    fn from(record: OutcomeRecord) -> Self {
        match record {
            OutcomeRecord::Answered {} => Self::Answered,
            OutcomeRecord::Stopped {} => Self::Stopped,
            OutcomeRecord::Interrupted {} => Self::Interrupted,
            OutcomeRecord::Failed { failure } => Self::Failed(failure.0),
            OutcomeRecord::TimedOut {} => Self::TimedOut,
        }
    }
}

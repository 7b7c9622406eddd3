//! Projections: the rows that rule facts become, from which lists and receipts are read.
//!
//! Every backend applies these changes in the transaction of the append, and a test folds the whole log through
//! `project` again and compares. So a projection can always be thrown away, and no backend has an opinion of its own.

use crate::ReceiptState;
use kernel::{
    Answer, Answerer, ApprovalId, ApprovalTerms, EndWhy, Epoch, Fact, Failure, HoldWhy, MessageId, Moment,
    Outcome, RefusedWhy, Scope, StopWhy, Turn,
};

/// One change of a projection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The message stands so now. Its place in the queue is the order of these changes, unless `Order` says otherwise.
    Receipt { message: MessageId, state: ReceiptState, why: Option<&'static str> },
    /// The message's words were replaced: this is its revision now.
    Revision { message: MessageId, revision: u32 },
    /// The waiting messages stand in this order now.
    Order(Vec<MessageId>),
    /// The message's turn began with this fact.
    Began { message: MessageId, turn: Turn },
    /// The turn is being stopped although nobody asked for that: its messages say why from here on, and still do if that is how
    /// the turn ends.
    Stopping { turn: Turn, why: &'static str },
    /// The turn ended with this fact, and its message stands so. Stopped without a word for why, it keeps the word it has.
    TurnOver { turn: Turn, outcome: Outcome, state: ReceiptState, why: Option<&'static str> },
    /// The agent asks.
    Asked { approval: ApprovalId, turn: Turn, until: Moment, terms: ApprovalTerms },
    /// The question was answered.
    Answered { approval: ApprovalId, answer: Answer, by: Answerer },
    /// Nobody can answer the question any more.
    Lapsed { approval: ApprovalId },
    /// The message waits for its turn; it was written for the scope of this epoch, or is to be started in it.
    Waits { message: MessageId, epoch: Epoch },
    /// The message did not get into its turn: it waits before all others, and has none.
    Missed { message: MessageId },
    /// The session acts there and so now.
    Scope { scope: Scope, epoch: Epoch },
    /// The session is over: its bindings and claims go.
    Ended(EndWhy),
}

/// The changes of this fact in the projections.
pub fn project(fact: &Fact) -> Vec<Change> {
    use ReceiptState::*;
    let receipt = |message: &MessageId, state, why| vec![Change::Receipt { message: *message, state, why }];
    match fact {
        Fact::Queued { message, epoch, .. } | Fact::Released { message, epoch } => {
            vec![Change::Waits { message: *message, epoch: *epoch }]
        }
        Fact::Steered { message, turn } => vec![
            Change::Receipt { message: *message, state: Running, why: None },
            Change::Began { message: *message, turn: *turn },
        ],
        Fact::Missed { message } => vec![
            Change::Receipt { message: *message, state: Waiting, why: None },
            Change::Missed { message: *message },
        ],
        Fact::ScopeChanged { epoch, scope } => {
            vec![Change::Scope { scope: scope.clone(), epoch: *epoch }]
        }
        Fact::Held { message, why, .. } => receipt(message, Held, Some(hold_word(*why))),
        Fact::Withdrawn { message, .. } => receipt(message, Withdrawn, None),
        Fact::MessageRefused { message, why } => receipt(message, Refused, Some(refused_word(*why))),
        Fact::Edited { message, revision } => {
            vec![Change::Revision { message: *message, revision: *revision }]
        }
        Fact::Reordered { order } => vec![Change::Order(order.clone())],
        Fact::TurnStarted { turn, message } => vec![
            Change::Receipt { message: *message, state: Running, why: None },
            Change::Began { message: *message, turn: *turn },
        ],
        Fact::TurnEnded { turn, outcome } => {
            let (state, why) = outcome_words(*outcome);
            vec![Change::TurnOver { turn: *turn, outcome: *outcome, state, why }]
        }
        Fact::Asked { approval, turn, until, terms } => {
            vec![Change::Asked { approval: *approval, turn: *turn, until: *until, terms: *terms }]
        }
        Fact::Answered { approval, answer, by } => {
            vec![Change::Answered { approval: *approval, answer: answer.clone(), by: *by }]
        }
        Fact::Lapsed { approval } => vec![Change::Lapsed { approval: *approval }],
        Fact::Ended { why } => vec![Change::Ended(*why)],
        Fact::StopAsked { turn, why: StopWhy::Revoked } => {
            vec![Change::Stopping { turn: *turn, why: REVOKED }]
        }
        Fact::StopAsked { turn, why: StopWhy::HandedOver } => {
            vec![Change::Stopping { turn: *turn, why: HANDED_OVER }]
        }
        Fact::Opened { scope, .. } => vec![Change::Scope { scope: scope.clone(), epoch: Epoch(0) }],
        Fact::Crowded { .. }
        | Fact::AttemptStarted { .. }
        | Fact::Confirmed { .. }
        | Fact::Handed { .. }
        | Fact::AttemptFailed { .. }
        | Fact::StopAsked { .. }
        | Fact::EndAsked { .. }
        | Fact::Stale { .. }
        | Fact::ChangeAsked { .. }
        | Fact::ScopeKept { .. }
        | Fact::ErrandStarted { .. }
        | Fact::ErrandFailed { .. }
        | Fact::Undone { .. }
        | Fact::Redone { .. }
        | Fact::Learned { .. }
        | Fact::StaleErrand { .. } => vec![],
    }
}

/// Every word that `why` can be, so that a backend can give back the very same one.
pub const WHY_WORDS: [&str; 14] = [
    "asked",
    "after_failure",
    "other_scope",
    "session_ended",
    "expired",
    "not_allowed",
    "interrupted",
    "time_limit",
    "gone",
    "busy",
    "transient",
    "refused",
    REVOKED,
    HANDED_OVER,
];

/// Why a turn was stopped whose sender may no longer say what they said.
pub const REVOKED: &str = "revoked";

/// Why a message was refused that waited when its session became somebody else's, or stopped if it ran.
pub const HANDED_OVER: &str = "handed_over";

fn hold_word(why: HoldWhy) -> &'static str {
    match why {
        HoldWhy::Asked => "asked",
        HoldWhy::AfterFailure => "after_failure",
        HoldWhy::OtherScope => "other_scope",
    }
}

fn refused_word(why: RefusedWhy) -> &'static str {
    match why {
        RefusedWhy::SessionEnded => "session_ended",
        RefusedWhy::Expired => "expired",
        RefusedWhy::NotAllowed => "not_allowed",
        RefusedWhy::HandedOver => HANDED_OVER,
    }
}

fn outcome_words(outcome: Outcome) -> (ReceiptState, Option<&'static str>) {
    match outcome {
        Outcome::Answered => (ReceiptState::Answered, None),
        Outcome::Stopped => (ReceiptState::Stopped, None),
        Outcome::Interrupted => (ReceiptState::Failed, Some("interrupted")),
        Outcome::TimedOut => (ReceiptState::Failed, Some("time_limit")),
        Outcome::Failed(failure) => (ReceiptState::Failed, Some(failure_word(failure))),
    }
}

/// The stable word for a failure.
pub fn failure_word(failure: Failure) -> &'static str {
    match failure {
        Failure::Gone => "gone",
        Failure::Busy => "busy",
        Failure::Transient => "transient",
        Failure::Refused => "refused",
    }
}

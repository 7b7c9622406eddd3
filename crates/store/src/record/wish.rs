//! The stored form of a wish that waits in the inbox.

use super::scope::{ChangeRecord, ScopeRecord};
use super::{AnswerRecord, Text, Unreadable, decode, encode};
use crate::{RememberedRule, Wish};
use bytes::Bytes;
use kernel::{ApprovalId, Epoch, MessageId, RuleId, Scope, SessionId, Turn};
use serde::{Deserialize, Serialize};

/// The stored form of a wish. An edit's words are not in it: they are a body, kept apart under the request's id.
pub fn encode_wish(wish: &Wish) -> Vec<u8> {
    encode(&WishRecord::from(wish))
}

/// A wish as the inbox gives it to the keeper: an edit comes without its words, which the keeper has no use for.
pub fn decode_wish(bytes: &[u8]) -> Result<Wish, Unreadable> {
    decode::<WishRecord>("wish", bytes).map(Wish::from)
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum WishRecord {
    Edit {
        message: Text<MessageId>,
        revision: u32,
    },
    Withdraw {
        message: Text<MessageId>,
    },
    Hold {
        message: Text<MessageId>,
    },
    Release {
        message: Text<MessageId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        back_in: Option<ScopeRecord>,
    },
    Reorder {
        order: Vec<Text<MessageId>>,
    },
    Stop {
        message: Text<MessageId>,
    },
    Answer {
        approval: Text<ApprovalId>,
        answer: AnswerRecord,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<RememberedRecord>,
    },
    Change {
        change: ChangeRecord,
        now: bool,
    },
    KeepScope {},
    Undo {
        turn: u32,
        of: u32,
    },
    End {},
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RememberedRecord {
    rule: Text<RuleId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    tool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<Text<SessionId>>,
}

impl From<&RememberedRule> for RememberedRecord {
    fn from(rule: &RememberedRule) -> Self {
        let RememberedRule { rule, agent, tool, directory, session } = rule.clone();
        Self { rule: Text(rule), agent, tool, directory, session: session.map(Text) }
    }
}

impl From<RememberedRecord> for RememberedRule {
    fn from(record: RememberedRecord) -> Self {
        let RememberedRecord { rule, agent, tool, directory, session } = record;
        Self { rule: rule.0, agent, tool, directory, session: session.map(|session| session.0) }
    }
}

impl From<&Wish> for WishRecord {
    fn from(wish: &Wish) -> Self {
        match wish {
            Wish::Edit { message, revision, words: _ } => {
                Self::Edit { message: Text(*message), revision: *revision }
            }
            Wish::Withdraw { message } => Self::Withdraw { message: Text(*message) },
            Wish::Hold { message } => Self::Hold { message: Text(*message) },
            Wish::Release { message, back_in } => {
                Self::Release { message: Text(*message), back_in: back_in.as_ref().map(ScopeRecord::from) }
            }
            Wish::Reorder { order } => Self::Reorder { order: order.iter().copied().map(Text).collect() },
            Wish::Stop { message } => Self::Stop { message: Text(*message) },
            Wish::Answer { approval, answer, rule } => Self::Answer {
                approval: Text(*approval),
                answer: answer.into(),
                rule: rule.as_ref().map(RememberedRecord::from),
            },
            Wish::Change { change, now } => Self::Change { change: change.into(), now: *now },
            Wish::KeepScope => Self::KeepScope {},
            Wish::Undo { turn, of } => Self::Undo { turn: turn.0, of: of.0 },
            Wish::End => Self::End {},
        }
    }
}

impl From<WishRecord> for Wish {
    fn from(record: WishRecord) -> Self {
        match record {
            WishRecord::Edit { message, revision } => {
                Self::Edit { message: message.0, revision, words: Bytes::new() }
            }
            WishRecord::Withdraw { message } => Self::Withdraw { message: message.0 },
            WishRecord::Hold { message } => Self::Hold { message: message.0 },
            WishRecord::Release { message, back_in } => {
                Self::Release { message: message.0, back_in: back_in.map(Scope::from) }
            }
            WishRecord::Reorder { order } => {
                Self::Reorder { order: order.into_iter().map(|m| m.0).collect() }
            }
            WishRecord::Stop { message } => Self::Stop { message: message.0 },
            WishRecord::Answer { approval, answer, rule } => Self::Answer {
                approval: approval.0,
                answer: answer.into(),
                rule: rule.map(RememberedRule::from),
            },
            WishRecord::Change { change, now } => Self::Change { change: change.into(), now },
            WishRecord::KeepScope {} => Self::KeepScope,
            WishRecord::Undo { turn, of } => Self::Undo { turn: Turn(turn), of: Epoch(of) },
            WishRecord::End {} => Self::End,
        }
    }
}

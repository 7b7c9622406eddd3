//! The stored form of a wish that waits in the inbox.

use super::{Text, Unreadable, Word, decode, encode};
use crate::Wish;
use bytes::Bytes;
use kernel::{Answer, ApprovalId, MessageId};
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
    Edit { message: Text<MessageId>, revision: u32 },
    Withdraw { message: Text<MessageId> },
    Hold { message: Text<MessageId> },
    Release { message: Text<MessageId> },
    Reorder { order: Vec<Text<MessageId>> },
    Stop { message: Text<MessageId> },
    Answer { approval: Text<ApprovalId>, answer: Word<Answer> },
    End {},
}

impl From<&Wish> for WishRecord {
    fn from(wish: &Wish) -> Self {
        match wish {
            Wish::Edit { message, revision, words: _ } => {
                Self::Edit { message: Text(*message), revision: *revision }
            }
            Wish::Withdraw { message } => Self::Withdraw { message: Text(*message) },
            Wish::Hold { message } => Self::Hold { message: Text(*message) },
            Wish::Release { message } => Self::Release { message: Text(*message) },
            Wish::Reorder { order } => Self::Reorder { order: order.iter().copied().map(Text).collect() },
            Wish::Stop { message } => Self::Stop { message: Text(*message) },
            Wish::Answer { approval, answer } => {
                Self::Answer { approval: Text(*approval), answer: Word(*answer) }
            }
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
            WishRecord::Release { message } => Self::Release { message: message.0 },
            WishRecord::Reorder { order } => {
                Self::Reorder { order: order.into_iter().map(|m| m.0).collect() }
            }
            WishRecord::Stop { message } => Self::Stop { message: message.0 },
            WishRecord::Answer { approval, answer } => {
                Self::Answer { approval: approval.0, answer: answer.0 }
            }
            WishRecord::End {} => Self::End,
        }
    }
}

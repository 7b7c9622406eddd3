//! The stored form of everything the kernel reads back: rule facts, checkpoints, scopes, requests, and small words.
//!
//! What is written here outlives this version: a form is only ever added to, never changed. The kernel's types have no
//! serialization of their own, so each form is written down in `fact` and `request` and converted by exhaustive matches: a
//! new fact does not compile until somebody has decided how it is stored. Reading is strict. A rule fact, or a field
//! of one, that this version does not know would change what follows from the log, so it is `Unreadable`, and the
//! session is not kept by this version.

mod approval;
mod fact;
mod request;
mod scope;
mod words;

pub use approval::{
    TextTold, approval_told, decode_answer, decode_terms, encode_answer, encode_terms, text_told, title_told,
};
pub use fact::{decode_checkpoint, decode_fact, decode_scope, encode_checkpoint, encode_fact, encode_scope};
pub use request::{decode_request, encode_request, request_key_word, request_word};
pub use scope::{decode_worktree, encode_worktree};
pub use words::{
    answerer_parse, answerer_text, cause_parse, cause_text, delivery_parse, delivery_word, end_parse,
    end_word, errand_parse, errand_word, failure_parse, grant_parse, grant_word, hold_parse, hold_word,
    outcome_parse, outcome_word, outgoing_kind_parse, outgoing_kind_text, outgoing_state_parse,
    outgoing_state_word, purpose_parse, purpose_word, refusal_parse, refusal_word, refused_parse,
    refused_word, report_parse, report_word, right_parse, right_word, role_parse, role_word, said_text,
    state_parse, state_word, title_by_parse, title_by_word, verdict_parse, verdict_text, why_parse,
};

use crate::StoreError;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt::Display;
use std::str::FromStr;
use words::Worded;

/// Stored bytes that this version does not understand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a stored {what} is not known to this version: {why}")]
pub struct Unreadable {
    /// The thing it should have been.
    pub what: &'static str,
    /// The reader's complaint.
    pub why: String,
}

impl From<Unreadable> for StoreError {
    fn from(unreadable: Unreadable) -> Self {
        Self::Damaged(unreadable.to_string())
    }
}

fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("stored forms have no maps with odd keys and no failing parts")
}

fn decode<'a, T: Deserialize<'a>>(what: &'static str, bytes: &'a [u8]) -> Result<T, Unreadable> {
    serde_json::from_slice(bytes).map_err(|error| Unreadable { what, why: error.to_string() })
}

/// An id, stored in its only spelling.
struct Text<T>(T);

impl<T: Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
        text.parse().map(Self).map_err(de::Error::custom)
    }
}

/// One of a few stable words.
#[derive(Default, PartialEq)]
struct Word<T>(T);

impl<T: Worded> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.0.word())
    }
}

impl<'de, T: Worded> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
        T::parse(&text).map(Self).ok_or_else(|| de::Error::custom(format_args!("unknown word `{text}`")))
    }
}

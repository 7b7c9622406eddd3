//! The room that words take on the disk: messages, answers, what tools print. Whatever is in a session counts for its owner.
//!
//! The count stands in the rows of session and owner, and changes in the transaction that writes or forgets the words. So
//! it costs whoever brings a message no question of its own, and what is handed over is counted where it went.

use crate::log::{Append, Appending, NewFact};
use crate::way_in::Rejection;

/// The bytes of rows that go along with words: the message or fact itself, its keys, its trace in the audit. Else very short
/// messages would be as good as free.
pub const WORDS_ROW_BYTES: u64 = 512;

/// The room that one person's words take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskUse {
    /// Bytes of words in their sessions, with the rows that go along.
    pub words_bytes: u64,
}

/// The room that everybody's words take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskTotals {
    /// Of all.
    pub words_bytes: u64,
    /// Of the person who has the most.
    pub words_bytes_top: u64,
}

/// The room that these words take, with the row that goes along.
pub fn words_bytes(words: &[u8]) -> u64 {
    words.len() as u64 + WORDS_ROW_BYTES
}

/// Judges if there is room for more words of somebody who has so many already.
pub fn words_fit(used: u64, more: u64, limit: u64) -> Result<(), Rejection> {
    match used.saturating_add(more) > limit {
        true => Err(Rejection::TooManyWords { used, limit }),
        false => Ok(()),
    }
}

impl Append {
    /// The room that its story takes.
    pub fn words_bytes(&self) -> u64 {
        self.facts.iter().map(NewFact::words_bytes).sum()
    }

    /// The refusal of an append that tells more than its session's owner has room for.
    pub fn over_words(&self, used: u64) -> Option<Appending> {
        let limit = self.words_bytes_max?;
        words_fit(used, self.words_bytes(), limit).is_err().then_some(Appending::TooManyWords { used })
    }
}

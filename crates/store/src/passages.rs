//! Passages: what was said in a turn that is over, as it is searched. A message is one, and so is each run of the agent's words.

use crate::keywords::Wanted;
use crate::record;
use crate::rows::Seer;
use kernel::{Moment, Number, SessionId, Turn};

/// The part of a passage that can be found. The rest is in the log.
pub const PASSAGE_BYTES_MAX: usize = 64 * 1024;
/// Passages of one turn that can be found.
pub const PASSAGES_MAX: usize = 256;

/// The two sorts of passages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassageKind {
    /// A message, as somebody said it.
    Said,
    /// Words of the agent.
    Text,
}

/// Something that was said in a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// Its sort.
    pub kind: PassageKind,
    /// The number of the fact that it begins with: of a message, the one that took it into its turn.
    pub first: Number,
    /// The number of the fact that it ends with.
    pub last: Number,
    /// When it was said.
    pub at: Moment,
    /// The words.
    pub words: String,
}

impl Passage {
    /// A message that was said, whose words are stored so.
    pub fn said(first: Number, at: Moment, stored: &[u8]) -> Option<Self> {
        let mut words = record::said_text(stored)?;
        words.truncate(words.floor_char_boundary(PASSAGE_BYTES_MAX));
        Some(Self { kind: PassageKind::Said, first, last: first, at, words })
    }
}

/// Puts the words of an agent together that its story tells piece by piece.
#[derive(Debug, Default)]
pub struct Telling {
    passages: Vec<Passage>,
    /// The run that is growing, and where its next piece begins.
    next: Option<(u32, u64)>,
}

impl Telling {
    /// Takes note of a piece: a story fact of the kind `text`.
    pub fn hear(&mut self, number: Number, at: Moment, body: &[u8]) {
        let Some(told) = record::text_told("text", body) else { return };
        let goes_on = self.next == Some((told.part, told.offset));
        self.next = Some((told.part, told.offset + told.text.len() as u64));
        if !goes_on && self.passages.len() < PASSAGES_MAX {
            let (kind, words) = (PassageKind::Text, String::new());
            self.passages.push(Passage { kind, first: number, last: number, at, words });
        }
        let Some(passage) = self.passages.last_mut() else { return };
        let room = PASSAGE_BYTES_MAX.saturating_sub(passage.words.len());
        let piece = &told.text[..told.text.floor_char_boundary(room)];
        if !piece.is_empty() {
            passage.words.push_str(piece);
            passage.last = number;
        }
    }

    /// The passages, in their order.
    pub fn passages(self) -> Vec<Passage> {
        self.passages
    }
}

/// A search of what was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassagesQuery {
    pub by: Seer,
    pub wanted: Wanted,
    /// Only in this session.
    pub session: Option<SessionId>,
    /// Only what could be found before the passage at this place.
    pub before: Option<u64>,
    pub limit: usize,
}

/// A passage that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPassage {
    /// Its place among all passages; later ones have higher places.
    pub place: u64,
    pub session: SessionId,
    pub turn: Turn,
    pub passage: Passage,
}

//! The last turn of a session, for lists: how it ended, and how the agent's last words in it begin.
//!
//! Words come piece by piece, so what is kept of them is folded like anything else: `LastWords` hears each story fact, and
//! `LastTurn` is what stands when the turn is over. Every store folds by these two.

use crate::record;
use kernel::{Moment, Number, Outcome, Turn};

/// The part of an agent's last words that a list shows: as much as fits into two lines.
pub const LAST_WORDS_BYTES_MAX: usize = 200;

/// The last turn of a session that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastTurn {
    /// The outcome.
    pub outcome: Outcome,
    /// The number of the fact that ended it.
    pub number: Number,
    /// When it ended.
    pub at: Moment,
    /// The beginning of the agent's last words in it; none if it said nothing.
    pub words: Option<String>,
}

/// The beginning of the last run of words that an agent has said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastWords {
    /// The turn they were said in.
    pub turn: Turn,
    /// The run, as the agent's words count them.
    pub part: u32,
    /// As much of it as is shown.
    pub text: String,
}

impl LastWords {
    /// Takes note of a story fact. True if that makes a difference: words of which enough is known make none.
    pub fn hear(&mut self, turn: Turn, kind: &str, body: &[u8]) -> bool {
        let Some(told) = record::text_told(kind, body) else { return false };
        let is_next = told.offset as usize == self.text.len() && (turn, told.part) == (self.turn, self.part);
        // What does not go on where we are has to begin something: of words whose beginning nobody has, nothing is shown.
        if told.offset == 0 {
            (self.turn, self.part) = (turn, told.part);
            self.text.clear();
        } else if !is_next || self.text.len() >= LAST_WORDS_BYTES_MAX {
            return false;
        }
        let room = LAST_WORDS_BYTES_MAX - self.text.len();
        self.text.push_str(&told.text[..told.text.floor_char_boundary(room)]);
        true
    }

    /// The words of this turn, if any were said in it.
    pub fn of(&self, turn: Turn) -> Option<String> {
        (self.turn == turn && !self.text.is_empty()).then(|| self.text.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(part: u32, offset: usize, text: &str) -> Vec<u8> {
        format!(r#"{{"v":1,"turn":1,"type":"text","part":{part},"offset":{offset},"text":"{text}"}}"#)
            .into_bytes()
    }

    #[test]
    fn the_last_run_of_words_is_shown_from_its_beginning() {
        let mut words = LastWords::default();
        assert!(words.hear(Turn(1), "text", &text(0, 0, "let me ")));
        assert!(words.hear(Turn(1), "text", &text(0, 7, "look")));
        assert!(!words.hear(Turn(1), "reasoning", &text(1, 0, "hm")), "thoughts are no words");
        assert_eq!(words.of(Turn(1)).as_deref(), Some("let me look"));
        assert!(words.hear(Turn(1), "text", &text(2, 0, "done")));
        assert_eq!(words.of(Turn(1)).as_deref(), Some("done"));
        assert_eq!(words.of(Turn(2)), None);
    }

    #[test]
    fn no_more_is_kept_than_is_shown_and_no_character_is_cut() {
        let mut words = LastWords::default();
        let umlauts = "\u{fc}".repeat(150);
        assert!(words.hear(Turn(1), "text", &text(0, 0, &format!("a{umlauts}"))));
        assert_eq!(words.text.len(), 199);
        assert!(!words.hear(Turn(1), "text", &text(0, 301, "more")), "the rest is not the beginning");
        assert_eq!(words.text.len(), 199);
    }

    #[test]
    fn words_whose_beginning_nobody_has_are_not_shown() {
        let mut words = LastWords::default();
        assert!(!words.hear(Turn(4), "text", &text(3, 900, "and so on")));
        assert_eq!(words.of(Turn(4)), None);
    }
}

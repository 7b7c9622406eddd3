//! Bytes that a program prints, as plain text: whole characters, no escape sequences, no other control characters. Pure.
//!
//! Works on any cut of the bytes, and holds no more than an unfinished character.

/// The longest escape sequence that is left out: a sequence that does not end must not swallow the answer.
const SEQUENCE_CHARACTERS_MAX: usize = 64;
/// The same for strings (titles, links), which are longer.
const STRING_CHARACTERS_MAX: usize = 4 * 1024;

#[derive(Debug, Default)]
pub(super) struct PlainTextReader {
    /// The beginning of a character.
    partial: Vec<u8>,
    escape: Escape,
    /// A carriage return came last: with a line feed it is one line's end, alone it is one, too.
    has_returned: bool,
}

/// Where in an escape sequence we are, and how long it is already.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    /// After ESC.
    Begun,
    /// After `ESC [`, until a letter.
    Sequence(usize),
    /// After `ESC ]` and the like, until BEL or `ESC \`.
    String(usize),
    /// ESC within such a string.
    StringEnds,
}

impl PlainTextReader {
    /// The text in these bytes and what was held of those before.
    pub(super) fn read(&mut self, bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len());
        let held = std::mem::take(&mut self.partial);
        let joined = [held.as_slice(), bytes].concat();
        let mut rest = joined.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    self.put_all(valid, &mut text);
                    return text;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    self.put_all(std::str::from_utf8(valid).unwrap_or_default(), &mut text);
                    let Some(wrong) = error.error_len() else {
                        self.partial = after.to_vec();
                        return text;
                    };
                    self.put(char::REPLACEMENT_CHARACTER, &mut text);
                    rest = &after[wrong..];
                }
            }
        }
    }

    /// The rest, when nothing more comes.
    pub(super) fn rest(&mut self) -> String {
        let mut text = String::new();
        if !std::mem::take(&mut self.partial).is_empty() {
            self.put(char::REPLACEMENT_CHARACTER, &mut text);
        }
        if std::mem::take(&mut self.has_returned) {
            text.push('\n');
        }
        text
    }

    fn put_all(&mut self, valid: &str, text: &mut String) {
        let mut rest = valid;
        while let Some(character) = rest.chars().next() {
            // Most of what programs print is plain, and is taken in one go.
            let plain = match (self.escape, self.has_returned) {
                (Escape::None, false) => rest.find(char::is_control).unwrap_or(rest.len()),
                _ => 0,
            };
            text.push_str(&rest[..plain]);
            rest = &rest[plain..];
            if plain == 0 {
                self.put(character, text);
                rest = &rest[character.len_utf8()..];
            }
        }
    }

    fn put(&mut self, character: char, text: &mut String) {
        self.escape = match (self.escape, character) {
            (Escape::None, _) => return self.put_plain(character, text),
            (Escape::Begun, '[') => Escape::Sequence(0),
            (Escape::Begun, ']' | 'P' | 'X' | '^' | '_') => Escape::String(0),
            // One that chooses a set of characters has one more to come.
            (Escape::Begun, '(' | ')' | '*' | '+' | '#' | '%' | ' ') => Escape::Begun,
            (Escape::Begun, _) => Escape::None,
            (Escape::Sequence(_), '\u{1b}') => Escape::Begun,
            (Escape::Sequence(_), '\u{40}'..='\u{7e}') => Escape::None,
            (Escape::Sequence(length), _) if length < SEQUENCE_CHARACTERS_MAX => Escape::Sequence(length + 1),
            (Escape::String(_), '\u{7}' | '\u{9c}') => Escape::None,
            (Escape::String(_), '\u{1b}') => Escape::StringEnds,
            (Escape::String(length), _) if length < STRING_CHARACTERS_MAX => Escape::String(length + 1),
            (Escape::StringEnds, _) => Escape::None,
            (Escape::Sequence(_) | Escape::String(_), _) => Escape::None,
        };
    }

    fn put_plain(&mut self, character: char, text: &mut String) {
        let had_returned = std::mem::take(&mut self.has_returned);
        match character {
            '\n' => return text.push('\n'),
            '\r' => {
                self.has_returned = true;
                if had_returned {
                    text.push('\n');
                }
                return;
            }
            _ if had_returned => text.push('\n'),
            _ => {}
        }
        match character {
            '\u{1b}' => self.escape = Escape::Begun,
            '\u{9b}' => self.escape = Escape::Sequence(0),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => self.escape = Escape::String(0),
            '\t' => text.push('\t'),
            control if control.is_control() => {}
            character => text.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever way the bytes are cut.
    fn plain(bytes: &[u8]) -> String {
        let whole = {
            let mut plain = PlainTextReader::default();
            plain.read(bytes) + &plain.rest()
        };
        for size in 1..bytes.len().min(8) {
            let mut plain = PlainTextReader::default();
            let cut: String = bytes.chunks(size).map(|piece| plain.read(piece)).collect();
            assert_eq!(cut + &plain.rest(), whole, "in pieces of {size}");
        }
        whole
    }

    #[test]
    fn colours_titles_and_links_are_left_out() {
        assert_eq!(plain(b"\x1b[1;31mred\x1b[0m and \x1b[38;5;12mblue\x1b[K\n"), "red and blue\n");
        assert_eq!(plain(b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\"), "alink");
        assert_eq!(plain(b"\x1b(B\x1b=\x1bPq#0\x1b\\x\x08\x00y\x7f"), "xy");
        assert_eq!(plain("\u{9b}31mred".as_bytes()), "red");
    }

    #[test]
    fn what_is_no_text_is_made_harmless_and_what_is_stays() {
        assert_eq!(plain("grün 猫\n\n  x\ty".as_bytes()), "grün 猫\n\n  x\ty");
        assert_eq!(plain(b"a\xffb\xc3"), "a\u{fffd}b\u{fffd}");
        assert_eq!(plain(b"a\r\nb\rc\r"), "a\nb\nc\n");
    }

    #[test]
    fn a_sequence_without_an_end_does_not_swallow_the_answer() {
        let endless = format!("\u{1b}]0;{}END", "x".repeat(2 * STRING_CHARACTERS_MAX));
        assert!(plain(endless.as_bytes()).ends_with("xEND"));
        let endless = format!("\u{1b}[{}END", "1".repeat(2 * SEQUENCE_CHARACTERS_MAX));
        assert!(plain(endless.as_bytes()).ends_with("1END"));
    }

    #[test]
    fn nothing_is_held_but_an_unfinished_character() {
        let mut plain = PlainTextReader::default();
        let flood = vec![0xf0; 1_000_000];
        assert_eq!(plain.read(&flood).chars().count() + plain.partial.len(), 1_000_000);
        assert!(plain.partial.len() < 4);
    }
}

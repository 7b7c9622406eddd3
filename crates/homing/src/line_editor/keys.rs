//! Keys out of the bytes that a terminal sends. Pure: bytes in, keys out, and what is not whole yet waits here.

/// The most that one paste may bring. More than any message may have; what is beyond is dropped.
const PASTE_BYTES_MAX: usize = 4 << 20;
/// The longest escape sequence that is waited for. No key has one that long.
const SEQUENCE_BYTES_MAX: usize = 32;

const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";
const ESCAPE: u8 = 0x1b;

/// A key, by what it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    /// Text that was pasted, with its line ends.
    Paste(String),
    Enter,
    /// A line's end within the message.
    NewLine,
    Backspace,
    Delete,
    Left,
    Right,
    WordLeft,
    WordRight,
    Up,
    Down,
    LineStart,
    LineEnd,
    CutWord,
    CutToStart,
    CutToEnd,
    PutBack,
    Complete,
    Search,
    Unfold,
    Redraw,
    Suspend,
    Interrupt,
    /// Ctrl-D: the end, or the character under the cursor.
    End,
    Escape,
}

/// Bytes that have come and are not a whole key yet.
#[derive(Debug, Default)]
pub(super) struct KeyReader {
    waiting: Vec<u8>,
    /// The text of a paste that has not ended.
    pasted: Option<Vec<u8>>,
}

impl KeyReader {
    /// The keys that these bytes complete.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.waiting.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while !self.waiting.is_empty() {
            if self.pasted.is_some() {
                match self.rest_of_paste() {
                    Some(text) => keys.push(Key::Paste(text)),
                    None => break,
                }
                continue;
            }
            let Some((used, key)) = first_key(&self.waiting) else { break };
            if self.waiting.starts_with(PASTE_BEGINS) {
                self.pasted = Some(Vec::new());
            }
            self.waiting.drain(..used);
            keys.extend(key);
        }
        unmarked_paste(keys)
    }

    /// True if the next byte may complete a key. A lone escape is one if nothing follows soon.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty() && self.pasted.is_none()
    }

    /// Nothing has followed: what waits is what it is.
    pub(super) fn give_up(&mut self) -> Option<Key> {
        let waiting = std::mem::take(&mut self.waiting);
        (waiting == [ESCAPE]).then_some(Key::Escape)
    }

    fn rest_of_paste(&mut self) -> Option<String> {
        let pasted = self.pasted.as_mut()?;
        let end = self.waiting.windows(PASTE_ENDS.len()).position(|window| window == PASTE_ENDS);
        // The last bytes may be the beginning of the end.
        let upto = end.unwrap_or(self.waiting.len().saturating_sub(PASTE_ENDS.len() - 1));
        let room = PASTE_BYTES_MAX.saturating_sub(pasted.len());
        pasted.extend_from_slice(&self.waiting[..upto.min(room)]);
        self.waiting.drain(..upto + end.map_or(0, |_| PASTE_ENDS.len()));
        end?;
        self.pasted.take().map(|bytes| plain_lines(&String::from_utf8_lossy(&bytes)))
    }
}

/// A line's end that has more text right behind it was pasted, in a terminal that does not mark what is pasted.
fn unmarked_paste(keys: Vec<Key>) -> Vec<Key> {
    let last_text = keys.iter().rposition(|key| matches!(key, Key::Char(_)));
    let is_inside = |at: usize| last_text.is_some_and(|last| at < last);
    let has_only_text =
        keys.iter().all(|key| matches!(key, Key::Char(_) | Key::Enter | Key::NewLine | Key::Complete));
    if !has_only_text {
        return keys;
    }
    let key = |(at, key): (usize, Key)| match key {
        Key::Enter if is_inside(at) => Key::NewLine,
        Key::Complete if is_inside(at) => Key::Char('\t'),
        key => key,
    };
    keys.into_iter().enumerate().map(key).collect()
}

/// Text with one kind of line end, and with nothing that would command a terminal.
fn plain_lines(text: &str) -> String {
    crate::screen::tame(&text.replace("\r\n", "\n").replace('\r', "\n"))
}

/// The first key of these bytes and its length; none if it is not whole. Something unknown is no key.
fn first_key(bytes: &[u8]) -> Option<(usize, Option<Key>)> {
    match bytes[0] {
        ESCAPE => escape(bytes),
        b @ (0..=0x1f | 0x7f) => Some((1, control(b))),
        _ => character(bytes),
    }
}

fn control(byte: u8) -> Option<Key> {
    Some(match byte {
        b'\r' => Key::Enter,
        b'\n' => Key::NewLine,
        b'\t' => Key::Complete,
        0x7f | 0x08 => Key::Backspace,
        byte => match byte + 0x60 {
            b'a' => Key::LineStart,
            b'b' => Key::Left,
            b'c' => Key::Interrupt,
            b'd' => Key::End,
            b'e' => Key::LineEnd,
            b'f' => Key::Right,
            b'g' => Key::Escape,
            b'k' => Key::CutToEnd,
            b'l' => Key::Redraw,
            b'n' => Key::Down,
            b'o' => Key::Unfold,
            b'p' => Key::Up,
            b'r' => Key::Search,
            b'u' => Key::CutToStart,
            b'w' => Key::CutWord,
            b'y' => Key::PutBack,
            b'z' => Key::Suspend,
            _ => return None,
        },
    })
}

fn character(bytes: &[u8]) -> Option<(usize, Option<Key>)> {
    let length = match bytes[0] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    };
    let whole = bytes.get(..length)?;
    let text = std::str::from_utf8(whole).ok().and_then(|text| text.chars().next());
    Some(match text {
        Some(c) => (length, Some(Key::Char(c)).filter(|_| !c.is_control())),
        None => (1, None),
    })
}

/// A key that begins with an escape: a sequence, or another key with Alt.
fn escape(bytes: &[u8]) -> Option<(usize, Option<Key>)> {
    match *bytes.get(1)? {
        b'[' => sequence(bytes),
        b'O' => Some((3, named(*bytes.get(2)?, &[]))),
        b'\r' | b'\n' => Some((2, Some(Key::NewLine))),
        0x7f | 0x08 => Some((2, Some(Key::CutWord))),
        b'b' => Some((2, Some(Key::WordLeft))),
        b'f' => Some((2, Some(Key::WordRight))),
        ESCAPE => Some((1, Some(Key::Escape))),
        _ => Some((2, None)),
    }
}

fn sequence(bytes: &[u8]) -> Option<(usize, Option<Key>)> {
    let end = bytes.iter().skip(2).position(|byte| (0x40..=0x7e).contains(byte)).map(|at| at + 2);
    let Some(end) = end else {
        return (bytes.len() > SEQUENCE_BYTES_MAX).then_some((bytes.len(), None));
    };
    let numbers: Vec<u32> = bytes[2..end]
        .split(|byte| *byte == b';')
        .map(|digits| std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0))
        .collect();
    Some((end + 1, named(bytes[end], &numbers)))
}

/// The key of a sequence, by its last byte and its numbers. The second number says which of Shift, Alt and Ctrl was held.
fn named(last: u8, numbers: &[u32]) -> Option<Key> {
    let is_held = numbers.get(1).is_some_and(|held| *held > 2);
    Some(match (last, numbers.first().copied().unwrap_or(0)) {
        (b'A', _) => Key::Up,
        (b'B', _) => Key::Down,
        (b'C', _) if is_held => Key::WordRight,
        (b'D', _) if is_held => Key::WordLeft,
        (b'C', _) => Key::Right,
        (b'D', _) => Key::Left,
        (b'H', _) | (b'~', 1 | 7) => Key::LineStart,
        (b'F', _) | (b'~', 4 | 8) => Key::LineEnd,
        (b'~', 3) => Key::Delete,
        // Enter with Shift, Alt or Ctrl, in terminals that tell.
        (b'u', 13) | (b'~', 27) => Key::NewLine,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        KeyReader::default().read(bytes)
    }

    #[test]
    fn a_key_may_come_in_pieces() {
        let mut reader = KeyReader::default();
        assert_eq!(reader.read(b"\x1b["), []);
        assert!(reader.is_waiting());
        assert_eq!(reader.read(b"A"), [Key::Up]);
        assert_eq!(reader.read(&"ä".as_bytes()[..1]), []);
        assert_eq!(reader.read(&"ä".as_bytes()[1..]), [Key::Char('ä')]);
        assert_eq!(reader.read(b"\x1b"), []);
        assert_eq!(reader.give_up(), Some(Key::Escape));
        assert!(!reader.is_waiting());
    }

    #[test]
    fn what_is_pasted_is_one_key_whatever_is_in_it() {
        let pasted = Key::Paste("one\n\ttwo [31m\n".to_owned());
        assert_eq!(keys(b"\x1b[200~one\r\n\ttwo\x1b[31m\r\x1b[201~"), std::slice::from_ref(&pasted));
        let mut reader = KeyReader::default();
        let pieces: Vec<Key> = b"\x1b[200~one\r\n\ttwo\x1b[31m\r\x1b[201~x"
            .iter()
            .flat_map(|byte| reader.read(std::slice::from_ref(byte)))
            .collect();
        assert_eq!(pieces, [pasted, Key::Char('x')]);
    }

    #[test]
    fn lines_that_come_at_once_stay_together() {
        let typed = keys(b"a\rb\r");
        assert_eq!(typed, [Key::Char('a'), Key::NewLine, Key::Char('b'), Key::Enter]);
        assert_eq!(keys(b"\x1b\r"), [Key::NewLine], "Alt-Enter");
        assert_eq!(keys(b"\n"), [Key::NewLine], "Ctrl-J");
    }

    #[test]
    fn what_nobody_knows_is_no_key_and_harms_none() {
        assert_eq!(keys(b"\x1b[99;99Xa\xff\x1c"), [Key::Char('a')]);
        assert_eq!(keys(b"\x1b[1;5C\x1b[1;5Dx"), [Key::WordRight, Key::WordLeft, Key::Char('x')]);
    }
}

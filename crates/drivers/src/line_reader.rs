//! Cuts what an agent prints into lines, and never holds more than one line and its bound.

/// The longest line of an agent. Of what is longer only the beginning is kept.
pub(crate) const LINE_BYTES_MAX: usize = 1024 * 1024;
/// The part that is kept of a line that is too long: enough to see what it was about.
pub(crate) const HEAD_BYTES_MAX: usize = 4 * 1024;

/// A line of an agent, made harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    Whole(String),
    /// The beginning of a line of more than `LINE_BYTES_MAX` bytes.
    TooLong(String),
}

#[derive(Debug, Default)]
pub(crate) struct LineReader {
    partial: Vec<u8>,
    is_too_long: bool,
}

impl LineReader {
    /// The lines that end in these bytes.
    pub(crate) fn cut(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut parts = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            self.add(part);
            if parts.peek().is_some() {
                lines.extend(self.rest());
            }
        }
        lines
    }

    /// The bytes that have come since the last end of a line. Empty lines say nothing.
    pub(crate) fn rest(&mut self) -> Option<Line> {
        let partial = std::mem::take(&mut self.partial);
        let text = String::from_utf8_lossy(&partial);
        if std::mem::take(&mut self.is_too_long) {
            return Some(Line::TooLong(text.into_owned()));
        }
        (!text.trim().is_empty()).then(|| Line::Whole(text.into_owned()))
    }

    fn add(&mut self, part: &[u8]) {
        if self.is_too_long {
            return;
        }
        self.partial.extend_from_slice(&part[..part.len().min(LINE_BYTES_MAX + 1)]);
        if self.partial.len() > LINE_BYTES_MAX {
            self.is_too_long = true;
            self.partial.truncate(HEAD_BYTES_MAX);
            self.partial.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Line {
        Line::Whole(text.to_owned())
    }

    #[test]
    fn lines_are_whole_however_they_are_cut() {
        let mut lines = LineReader::default();
        let seen: Vec<Line> = b"one\n\ntwo\xff\nthr".chunks(1).flat_map(|bytes| lines.cut(bytes)).collect();
        assert_eq!(seen, [whole("one"), whole("two\u{fffd}")]);
        assert_eq!(lines.rest(), Some(whole("thr")));
        assert_eq!(lines.rest(), None);
    }

    #[test]
    fn an_endless_line_takes_no_room_and_the_next_one_is_read() {
        let mut lines = LineReader::default();
        for _ in 0..100 {
            assert!(lines.cut(&[b'x'; 64 * 1024]).is_empty());
            assert!(lines.partial.capacity() <= 2 * LINE_BYTES_MAX);
        }
        let head = "x".repeat(HEAD_BYTES_MAX);
        assert_eq!(lines.cut(b"\nnext\n"), [Line::TooLong(head), whole("next")]);
    }
}

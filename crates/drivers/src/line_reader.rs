//! Cuts what an agent prints into lines, and never holds more than one line and its bound.

/// The longest line of an agent. Of what is longer only the beginning and the end are kept.
pub(crate) const LINE_BYTES_MAX: usize = 1024 * 1024;
/// The beginning that is kept of a line that is too long: enough to see what it was about.
pub(crate) const HEAD_BYTES_MAX: usize = 4 * 1024;
/// The end that is kept of it: enough for what an agent says after a long text.
pub(crate) const TAIL_BYTES_MAX: usize = 4 * 1024;

/// A line of an agent, made harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    Whole(String),
    /// The beginning and the end of a line of more than `LINE_BYTES_MAX` bytes.
    TooLong {
        head: String,
        tail: String,
    },
}

#[derive(Debug, Default)]
pub(crate) struct LineReader {
    partial: Vec<u8>,
    /// The last bytes of a line that is too long, of which `partial` is the beginning.
    tail: Option<Vec<u8>>,
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
        if let Some(tail) = self.tail.take() {
            let tail = String::from_utf8_lossy(&tail).into_owned();
            return Some(Line::TooLong { head: text.into_owned(), tail });
        }
        (!text.trim().is_empty()).then(|| Line::Whole(text.into_owned()))
    }

    fn add(&mut self, part: &[u8]) {
        if let Some(tail) = &mut self.tail {
            return keep_last(tail, part);
        }
        let (now, later) = part.split_at(part.len().min(LINE_BYTES_MAX + 1));
        self.partial.extend_from_slice(now);
        if self.partial.len() > LINE_BYTES_MAX {
            let mut tail = self.partial.split_off(self.partial.len() - TAIL_BYTES_MAX);
            keep_last(&mut tail, later);
            self.tail = Some(tail);
            self.partial.truncate(HEAD_BYTES_MAX);
            self.partial.shrink_to_fit();
        }
    }
}

/// Adds bytes to the end of a line, and lets go of what stands too far before it.
fn keep_last(tail: &mut Vec<u8>, more: &[u8]) {
    let more = &more[more.len().saturating_sub(TAIL_BYTES_MAX)..];
    let over = (tail.len() + more.len()).saturating_sub(TAIL_BYTES_MAX);
    tail.drain(..over);
    tail.extend_from_slice(more);
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
        let too_long = |end: &str| {
            let tail = format!("{}{end}", "x".repeat(TAIL_BYTES_MAX - end.len()));
            Line::TooLong { head: "x".repeat(HEAD_BYTES_MAX), tail }
        };
        assert_eq!(lines.cut(b"end\nnext\n"), [too_long("end"), whole("next")]);
        // The same where all of it comes at once.
        let line = format!("{}the end\n", "x".repeat(3 * LINE_BYTES_MAX));
        assert_eq!(lines.cut(line.as_bytes()), [too_long("the end")]);
    }
}

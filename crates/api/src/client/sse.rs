//! Reads server-sent events out of the bytes of a stream, however they are cut.

/// The longest line of an event that we take; the server's are far shorter.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// One event: what stood in its fields.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) lines: String,
}

/// A line was longer than `LINE_BYTES_MAX`, or not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotAStream;

/// The event that is under way, as far as it has been read.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    line: Vec<u8>,
    frame: Frame,
}

impl Reader {
    /// Takes more bytes, and gives the events that they complete.
    pub(crate) fn read(&mut self, mut bytes: &[u8]) -> Result<Vec<Frame>, NotAStream> {
        let mut frames = Vec::new();
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            let line = std::mem::take(&mut self.line);
            let line = std::str::from_utf8(&line).map_err(|_| NotAStream)?;
            frames.extend(self.take_line(line.strip_suffix('\r').unwrap_or(line)));
        }
        self.line.extend_from_slice(bytes);
        if self.line.len() + self.frame.lines.len() > LINE_BYTES_MAX {
            return Err(NotAStream);
        }
        Ok(frames)
    }

    fn take_line(&mut self, line: &str) -> Option<Frame> {
        if line.is_empty() {
            let frame = std::mem::take(&mut self.frame);
            return (!frame.lines.is_empty()).then_some(frame);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.frame.id = Some(value.to_owned()),
            "event" => self.frame.name = Some(value.to_owned()),
            "data" => {
                if !self.frame.lines.is_empty() {
                    self.frame.lines.push('\n');
                }
                self.frame.lines.push_str(value);
            }
            // A comment keeps the connection alive; `retry` is for browsers.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_however_they_are_cut() {
        let text = b": hello\nretry: 5\n\nid: 1\ndata: {\"a\":\ndata: 1}\n\nevent: live\r\ndata: x\r\n\r\n";
        for cut in 0..text.len() {
            let mut reader = Reader::default();
            let mut frames = reader.read(&text[..cut]).unwrap();
            frames.extend(reader.read(&text[cut..]).unwrap());
            let first = Frame { id: Some("1".into()), name: None, lines: "{\"a\":\n1}".into() };
            let second = Frame { id: None, name: Some("live".into()), lines: "x".into() };
            assert_eq!(frames, [first, second], "cut at {cut}");
        }
    }

    #[test]
    fn a_line_without_end_is_not_a_stream() {
        let mut reader = Reader::default();
        let chunk = vec![b'x'; 1024 * 1024];
        let ended = (0..10).any(|_| reader.read(&chunk) == Err(NotAStream));
        assert!(ended);
    }
}

//! The tool calls of a talk: one line each, and the whole of it for whoever asks.

use std::collections::VecDeque;

use crate::screen::{cut, tame};

/// Tool calls that can still be unfolded.
const CALLS_MAX: usize = 200;
/// The most of an input or a result that is kept to be unfolded; the log has all that there is.
const KEPT_BYTES_MAX: usize = 64 << 10;
/// Characters of one call's line.
const LINE_MAX: usize = 100;

/// The tool calls that were shown, each under its number.
#[derive(Debug, Default)]
pub(crate) struct ToolCalls {
    calls: VecDeque<ShownToolCall>,
    count: usize,
}

#[derive(Debug)]
struct ShownToolCall {
    number: usize,
    /// The agent's own name for it.
    call: String,
    tool: String,
    input: String,
    output: Option<String>,
}

impl ToolCalls {
    /// A call begins. Answers its line, which is not longer than this.
    pub(crate) fn begin(&mut self, call: &str, tool: &str, input: &str, room: usize) -> String {
        self.count += 1;
        if self.calls.len() == CALLS_MAX {
            self.calls.pop_front();
        }
        let (number, tool, input) = (self.count, cut(tool, LINE_MAX), kept(input));
        let line = cut(&format!("· {number} {tool}: {}", input.trim()), room.min(LINE_MAX));
        self.calls.push_back(ShownToolCall { number, call: call.to_owned(), tool, input, output: None });
        line
    }

    /// A call is over. Answers a line if it has failed.
    pub(crate) fn end(&mut self, call: &str, output: &str, failed: bool) -> Option<String> {
        let known = self.calls.iter_mut().rev().find(|known| known.call == call)?;
        known.output = Some(kept(output));
        failed.then(|| format!("· {} {} failed", known.number, known.tool))
    }

    /// The whole of a call: the one of this number, or the last.
    pub(crate) fn unfold(&self, number: Option<usize>) -> Option<String> {
        let call = match number {
            Some(number) => self.calls.iter().find(|call| call.number == number),
            None => self.calls.back(),
        }?;
        let output = match &call.output {
            None => "(no result yet)",
            Some(output) if output.trim().is_empty() => "(an empty result)",
            Some(output) => output.trim_end(),
        };
        let ShownToolCall { number, tool, input, .. } = call;
        Some(format!("· {number} {tool}\n{}\n{output}", indented(input.trim_end())))
    }
}

fn kept(text: &str) -> String {
    let end = text.floor_char_boundary(KEPT_BYTES_MAX.min(text.len()));
    tame(&text[..end])
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_one_line_that_unfolds() {
        let mut calls = ToolCalls::default();
        assert_eq!(calls.begin("a", "shell", "ls\nls -la \x1b[31m", 40), "· 1 shell: ls ls -la  [31m");
        assert_eq!(calls.begin("b", "read", "a very long path", 20), "· 2 read: a very lo…");
        assert_eq!(calls.end("a", "one\ntwo\n", false), None);
        assert_eq!(calls.end("b", "", true).unwrap(), "· 2 read failed");
        assert_eq!(calls.unfold(Some(1)).unwrap(), "· 1 shell\n  ls\n  ls -la  [31m\none\ntwo");
        assert_eq!(calls.unfold(None).unwrap(), "· 2 read\n  a very long path\n(an empty result)");
        assert_eq!(calls.unfold(Some(9)), None);
    }
}

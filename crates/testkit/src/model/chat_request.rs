//! The content of a request, whichever protocol it came in.
//!
//! The protocols' files make a [`ChatRequest`] from JSON; `brain` reads nothing else. Agents wrap what a person said in
//! text of their own (`<environment_context>…`, `<system-reminder>…`); [`spoken`] takes that off again.

use serde_json::Value;

/// One request.
#[derive(Debug, Default, Clone)]
pub(super) struct ChatRequest {
    pub(super) model: String,
    pub(super) streamed: bool,
    /// The agent's word to the model about its part.
    pub(super) system: String,
    pub(super) said: Vec<ChatMessage>,
    pub(super) tools: Vec<OfferedTool>,
    /// The length of the whole request; tokens are guessed from it.
    pub(super) bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChatMessage {
    Person(String),
    Model,
    /// A tool's result.
    Tool(String),
}

/// A tool the agent offers.
#[derive(Debug, Clone)]
pub(super) struct OfferedTool {
    pub(super) name: String,
    /// JSON Schema of its arguments; `null` for a tool that takes plain text.
    pub(super) schema: Value,
}

impl ChatRequest {
    /// Adds what a person said, unless nothing remains of it.
    pub(super) fn person(&mut self, texts: &[&str]) {
        let text = spoken(&texts.join("\n"));
        if !text.is_empty() {
            self.said.push(ChatMessage::Person(text));
        }
    }

    pub(super) fn people(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.said.iter().filter_map(|said| match said {
            ChatMessage::Person(text) => Some(text.as_str()),
            ChatMessage::Model | ChatMessage::Tool(_) => None,
        })
    }

    pub(super) fn last_text(&self) -> &str {
        self.people().next_back().unwrap_or_default()
    }
}

/// Text or blocks of text, as most protocols allow both.
pub(super) fn texts(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text],
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        _ => Vec::new(),
    }
}

pub(super) fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The words of a person: without blocks in tags that begin at the start of a line, and without an agent's own remarks.
fn spoken(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(length) = wrapped(rest) {
            rest = &rest[length..];
            continue;
        }
        let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let (line, next) = rest.split_at(end);
        if !is_remark(line.trim()) {
            kept += line;
        }
        rest = next;
    }
    kept.trim().to_owned()
}

/// The length of the block in tags at the start of this text, if there is a whole one.
fn wrapped(text: &str) -> Option<usize> {
    let inside = text.trim_start().strip_prefix('<')?;
    let name_end = inside.find(|letter: char| !(letter.is_ascii_alphanumeric() || "_-".contains(letter)))?;
    let name = &inside[..name_end];
    if name.is_empty() {
        return None;
    }
    let closing = format!("</{name}>");
    Some(text.find(&closing)? + closing.len())
}

/// Lines an agent puts into a person's mouth after an interrupt.
fn is_remark(line: &str) -> bool {
    line.starts_with("[Request interrupted by user") && line.ends_with(']')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_wraps_around_a_message_is_taken_off() {
        let check = |text: &str, want: &str| assert_eq!(spoken(text), want, "{text:?}");
        check("hello", "hello");
        check("a < b\nand <c>", "a < b\nand <c>");
        check("<environment_context>\n  <cwd>/srv</cwd>\n</environment_context>", "");
        check("<system-reminder>\nx\n</system-reminder>\n\nhello\nthere", "hello\nthere");
        check("hello\n<info-msg>\nit is noon\n</info-msg>", "hello");
        check("[Request interrupted by user for tool use]\ngo on", "go on");
        check("<unclosed> hello", "<unclosed> hello");
    }
}

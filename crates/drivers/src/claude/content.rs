//! The content of a turn of claude's: words, thoughts, tools. Pure.
//!
//! Words come twice, in pieces while they are made and whole afterwards; whichever comes first is told, the other is not.
//! Words of a helper of claude within a tool are that tool's progress, and no part of the answer.

use std::collections::BTreeMap;

use agent::{
    AgentEvent, CHOICES_MAX, DETAIL_BYTES_MAX, FileChangeKind, NATIVE_BYTES_MAX, PlanStep, Progress, bounded,
    pieces,
};
use serde_json::Value;

use super::usage;
use crate::agent_protocol::ProtocolOutput;

/// The longest name of a tool.
const NAME_BYTES_MAX: usize = 256;
/// The longest step of a plan.
const STEP_BYTES_MAX: usize = 1024;
/// The longest path of a file.
const PATH_BYTES_MAX: usize = 4 * 1024;
/// Tool calls that are remembered until their result comes. Of more at once, those beyond change no file in our eyes.
const CALLS_MAX: usize = 1_000;
/// Its tools that change a file, and where they say which.
const EDITORS: [(&str, &str); 4] = [
    ("Edit", "file_path"),
    ("Write", "file_path"),
    ("MultiEdit", "file_path"),
    ("NotebookEdit", "notebook_path"),
];

/// The state of the present turn.
#[derive(Debug, Default)]
pub(super) struct Content {
    streamed: Streamed,
    has_said_words: bool,
    /// Files that calls will have changed if they succeed.
    edits: BTreeMap<String, String>,
    /// Tokens in the model's window after its last message.
    tokens: Option<u64>,
}

/// The pieces of one message.
#[derive(Debug, Default)]
struct Streamed {
    message: String,
    has_thoughts: bool,
    /// The last block of words.
    words: Option<u64>,
}

impl Content {
    /// Tokens in the model's window, if claude has said so.
    pub(super) fn tokens(&self) -> Option<u64> {
        self.tokens
    }

    /// The answer, for turns in which nothing else has brought it: claude's own commands.
    pub(super) fn answer(&mut self, text: &str, out: &mut ProtocolOutput) {
        if !self.has_said_words {
            self.words(text, out);
        }
    }

    /// A piece of a message.
    pub(super) fn stream(&mut self, said: &Value, out: &mut ProtocolOutput) {
        if !said["parent_tool_use_id"].is_null() {
            return; // Its words come whole as well.
        }
        let event = &said["event"];
        match event["type"].as_str() {
            Some("message_start") => {
                let message = bounded(text_of(&event["message"]["id"]), NAME_BYTES_MAX);
                self.streamed = Streamed { message, ..Streamed::default() };
                self.weigh(&event["message"]["usage"]);
            }
            Some("content_block_delta") => self.delta(event, out),
            Some("message_delta") => {
                let written = event["usage"]["output_tokens"].as_u64().unwrap_or(0);
                self.tokens = self.tokens.map(|tokens| tokens.saturating_add(written));
            }
            Some("message_stop") => self.abandon(&said["abandoned_blocks"], out),
            _ => {}
        }
    }

    fn delta(&mut self, event: &Value, out: &mut ProtocolOutput) {
        let delta = &event["delta"];
        match delta["type"].as_str() {
            Some("text_delta") => {
                self.streamed.words = Some(event["index"].as_u64().unwrap_or(0));
                self.words(text_of(&delta["text"]), out);
            }
            Some("thinking_delta") => {
                self.streamed.has_thoughts = true;
                thoughts(text_of(&delta["thinking"]), out);
            }
            _ => {}
        }
    }

    /// The line to the model server was cut: what was said of these blocks will be said again, or never.
    fn abandon(&mut self, blocks: &Value, out: &mut ProtocolOutput) {
        let from = blocks["from_block_index"].as_u64();
        if from.zip(self.streamed.words).is_some_and(|(from, words)| words >= from) {
            let text = "the line to the model server broke; the words before this are no part of the answer";
            out.event(AgentEvent::Notice { text: text.to_owned() });
        }
    }

    /// A message as a whole.
    pub(super) fn assistant(&mut self, said: &Value, out: &mut ProtocolOutput) {
        let message = &said["message"];
        let parent = said["parent_tool_use_id"].as_str();
        let is_streamed =
            text_of(&message["id"]) == self.streamed.message && !self.streamed.message.is_empty();
        for block in message["content"].as_array().into_iter().flatten() {
            match (block["type"].as_str(), parent) {
                (Some("text"), Some(parent)) => progress(parent, text_of(&block["text"]), out),
                (Some("text"), None) if is_streamed && self.streamed.words.is_some() => {}
                (Some("text"), None) => self.words(text_of(&block["text"]), out),
                (Some("thinking"), None) if !(is_streamed && self.streamed.has_thoughts) => {
                    thoughts(text_of(&block["thinking"]), out);
                }
                (Some("thinking" | "redacted_thinking"), _) => {}
                (Some("tool_use" | "server_tool_use" | "mcp_tool_use"), _) => self.call(block, out),
                (Some(kind), _) if kind.ends_with("tool_result") => self.result(block, &Value::Null, out),
                _ => other(block, out),
            }
        }
    }

    /// The results of tools. Other words in the person's name are claude's own notes to itself.
    pub(super) fn user(&mut self, said: &Value, out: &mut ProtocolOutput) {
        let blocks = said["message"]["content"].as_array();
        for block in blocks.into_iter().flatten() {
            match block["type"].as_str() {
                Some("tool_result") => self.result(block, &said["tool_use_result"], out),
                Some("text") if text_of(&block["text"]).starts_with("[Request interrupted by user") => {}
                _ => other(block, out),
            }
        }
    }

    fn words(&mut self, text: &str, out: &mut ProtocolOutput) {
        for piece in pieces(text) {
            self.has_said_words = true;
            out.event(AgentEvent::Text { text: piece.to_owned() });
        }
    }

    fn call(&mut self, block: &Value, out: &mut ProtocolOutput) {
        let Some(call) = id(&block["id"]) else { return other(block, out) };
        let (tool, input) = (text_of(&block["name"]), &block["input"]);
        let editor = EDITORS.iter().find(|(name, _)| *name == tool);
        if let Some(path) = editor.and_then(|(_, field)| input[*field].as_str())
            && self.edits.len() < CALLS_MAX
        {
            self.edits.insert(call.to_owned(), bounded(path, PATH_BYTES_MAX));
        }
        out.event(AgentEvent::ToolCall {
            call: call.to_owned(),
            tool: bounded(tool, NAME_BYTES_MAX),
            input: bounded(&input.to_string(), DETAIL_BYTES_MAX),
        });
        if tool == "TodoWrite"
            && let Some(todos) = input["todos"].as_array()
        {
            out.event(AgentEvent::Plan { steps: todos.iter().take(CHOICES_MAX).map(step).collect() });
        }
    }

    fn result(&mut self, block: &Value, more: &Value, out: &mut ProtocolOutput) {
        let Some(call) = id(&block["tool_use_id"]) else { return other(block, out) };
        let failed = block["is_error"].as_bool().unwrap_or(false);
        let output = bounded(&output(&block["content"]), DETAIL_BYTES_MAX);
        out.event(AgentEvent::ToolResult { call: call.to_owned(), output, failed });
        if let Some(path) = self.edits.remove(call)
            && !failed
        {
            let change =
                if more["type"] == "create" { FileChangeKind::Added } else { FileChangeKind::Edited };
            out.event(AgentEvent::FileChanged { path, change });
        }
    }

    fn weigh(&mut self, usage: &Value) {
        self.tokens = usage.is_object().then(|| usage::read(usage));
    }
}

fn thoughts(text: &str, out: &mut ProtocolOutput) {
    for piece in pieces(text) {
        out.event(AgentEvent::Reasoning { text: piece.to_owned() });
    }
}

fn progress(parent: &str, text: &str, out: &mut ProtocolOutput) {
    if parent.len() <= NATIVE_BYTES_MAX && !text.is_empty() {
        let output = bounded(text, DETAIL_BYTES_MAX);
        out.event(AgentEvent::ToolProgress { call: parent.to_owned(), output });
    }
}

fn step(todo: &Value) -> PlanStep {
    let progress = match todo["status"].as_str() {
        Some("completed") => Progress::Done,
        Some("in_progress") => Progress::Active,
        _ => Progress::Waiting,
    };
    PlanStep { text: bounded(text_of(&todo["content"]), STEP_BYTES_MAX), progress }
}

/// The output of a tool: a text, or parts of which some may be text.
fn output(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let part = |part: &Value| match part["text"].as_str() {
                Some(text) => text.to_owned(),
                None => format!("[{}]", part["type"].as_str().unwrap_or("something")),
            };
            parts.iter().map(part).collect::<Vec<_>>().join("\n")
        }
        Value::Null => String::new(),
        content => content.to_string(),
    }
}

/// An id is never cut: half of one is another.
fn id(value: &Value) -> Option<&str> {
    value.as_str().filter(|id| !id.is_empty() && id.len() <= NATIVE_BYTES_MAX)
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Something we do not understand, kept for the record.
pub(super) fn other(said: &Value, out: &mut ProtocolOutput) {
    out.event(AgentEvent::Other { raw: bounded(&said.to_string(), DETAIL_BYTES_MAX) });
}

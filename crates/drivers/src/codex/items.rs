//! The items of a turn of codex's (words, commands, changes of files, tools) as events. Pure, and nothing
//! is remembered but which items are open.

use std::collections::BTreeMap;

use agent::{
    AgentEvent, CHOICES_MAX, DETAIL_BYTES_MAX, FileChangeKind, PlanStep, Progress, TEXT_BYTES_MAX, bounded,
    pieces,
};
use serde_json::Value;

/// The most items that are remembered as open. Codex has a few; more are not remembered, and cost nothing but a
/// repetition.
const OPEN_MAX: usize = 1_000;

/// The items of one turn.
#[derive(Debug, Default)]
pub(super) struct Items {
    open: BTreeMap<String, Open>,
    /// Something other than words has begun, or something has been completed.
    pub(super) has_acted: bool,
    /// The last thing said was words of the answer.
    is_in_text: bool,
}

/// An item that has begun.
#[derive(Debug, Default)]
struct Open {
    /// Some of its words have been said.
    is_said: bool,
    /// The subject of it, for the question whether it may.
    about: String,
}

impl Items {
    /// The subject of an open item.
    pub(super) fn about(&self, id: &str) -> &str {
        self.open.get(id).map_or("", |open| &open.about)
    }

    pub(super) fn started(&mut self, item: &Value) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        match item["type"].as_str().unwrap_or_default() {
            "agentMessage" | "plan" => events.extend(self.gap()),
            "userMessage" | "reasoning" => {}
            _ => self.has_acted = true,
        }
        let mut open = Open::default();
        if let Some((tool, input)) = tool(item) {
            open.about.clone_from(&input);
            events.push(self.call(item, tool, input));
        }
        if self.open.len() < OPEN_MAX {
            self.open.insert(id(item), open);
        }
        events
    }

    pub(super) fn completed(&mut self, item: &Value) -> Vec<AgentEvent> {
        let open = self.open.remove(&id(item));
        let is_said = open.as_ref().is_some_and(|open| open.is_said);
        match item["type"].as_str().unwrap_or_default() {
            // Our own words, and what a hook said to the model.
            "userMessage" | "hookPrompt" => return Vec::new(),
            "agentMessage" | "plan" => {
                self.has_acted = true;
                return if is_said { Vec::new() } else { self.text(text_of(item, "text")) };
            }
            "reasoning" => {
                self.has_acted = true;
                return if is_said { Vec::new() } else { self.reasoning(&thoughts(item)) };
            }
            "contextCompaction" => {
                self.has_acted = true;
                let text = "codex has summed up the conversation so far, to make room".to_owned();
                return vec![self.other_than_text(AgentEvent::Notice { text })];
            }
            _ => self.has_acted = true,
        }
        let Some((tool, input)) = tool(item) else {
            let raw = bounded(&item.to_string(), DETAIL_BYTES_MAX);
            return vec![self.other_than_text(AgentEvent::Other { raw })];
        };
        let mut events = Vec::new();
        if open.is_none() {
            events.push(self.call(item, tool, input));
        }
        let (output, failed) = result(item);
        if !failed {
            events.extend(changes(item));
        }
        events.push(AgentEvent::ToolResult { call: id(item), output, failed });
        events
    }

    /// More words of the answer.
    pub(super) fn said(&mut self, item: &str, delta: &str) -> Vec<AgentEvent> {
        self.mark_said(item);
        self.text(delta)
    }

    /// More of what it thinks.
    pub(super) fn thought(&mut self, item: &str, delta: &str) -> Vec<AgentEvent> {
        self.mark_said(item);
        self.reasoning(delta)
    }

    /// More of what a tool prints.
    pub(super) fn printed(&mut self, item: &str, delta: &str) -> Vec<AgentEvent> {
        self.is_in_text = false;
        let piece =
            |output: &str| AgentEvent::ToolProgress { call: item.to_owned(), output: output.to_owned() };
        pieces(delta).map(piece).collect()
    }

    fn mark_said(&mut self, item: &str) {
        if let Some(open) = self.open.get_mut(item) {
            open.is_said = true;
        } else if self.open.len() < OPEN_MAX {
            self.open.insert(item.to_owned(), Open { is_said: true, about: String::new() });
        }
    }

    /// The event, which ends the words before it.
    pub(super) fn other_than_text(&mut self, event: AgentEvent) -> AgentEvent {
        self.is_in_text = false;
        event
    }

    fn call(&mut self, item: &Value, tool: String, input: String) -> AgentEvent {
        self.other_than_text(AgentEvent::ToolCall { call: id(item), tool, input })
    }

    /// Two messages in a row are two paragraphs.
    fn gap(&self) -> Option<AgentEvent> {
        self.is_in_text.then(|| AgentEvent::Text { text: "\n\n".to_owned() })
    }

    fn text(&mut self, text: &str) -> Vec<AgentEvent> {
        self.is_in_text |= !text.is_empty();
        pieces(text).map(|piece| AgentEvent::Text { text: piece.to_owned() }).collect()
    }

    fn reasoning(&mut self, text: &str) -> Vec<AgentEvent> {
        self.is_in_text = false;
        pieces(text).map(|piece| AgentEvent::Reasoning { text: piece.to_owned() }).collect()
    }
}

/// The steps of `turn/plan/updated`.
pub(super) fn plan(params: &Value) -> AgentEvent {
    let step = |step: &Value| PlanStep {
        text: bounded(text_of(step, "step"), TEXT_BYTES_MAX / 16),
        progress: match text_of(step, "status") {
            "inProgress" => Progress::Active,
            "completed" => Progress::Done,
            _ => Progress::Waiting,
        },
    };
    let steps = params["plan"].as_array().map(Vec::as_slice).unwrap_or_default();
    AgentEvent::Plan { steps: steps.iter().take(CHOICES_MAX).map(step).collect() }
}

/// A text in an object; empty if there is none.
pub(super) fn text_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn id(item: &Value) -> String {
    text_of(item, "id").to_owned()
}

/// The name of an item as a tool, and its input; `None` if it is none.
fn tool(item: &Value) -> Option<(String, String)> {
    let (tool, input) = match text_of(item, "type") {
        "commandExecution" => ("shell".to_owned(), text_of(item, "command").to_owned()),
        "fileChange" => ("apply_patch".to_owned(), patch(item)),
        "mcpToolCall" => {
            let tool = format!("{}/{}", text_of(item, "server"), text_of(item, "tool"));
            (tool, item["arguments"].to_string())
        }
        "dynamicToolCall" => (text_of(item, "tool").to_owned(), item["arguments"].to_string()),
        "collabAgentToolCall" => {
            (format!("agent/{}", text_of(item, "tool")), text_of(item, "prompt").to_owned())
        }
        "webSearch" => ("web_search".to_owned(), text_of(item, "query").to_owned()),
        "imageView" => ("view_image".to_owned(), text_of(item, "path").to_owned()),
        "imageGeneration" => ("image_generation".to_owned(), text_of(item, "revisedPrompt").to_owned()),
        _ => return None,
    };
    Some((bounded(&tool, DETAIL_BYTES_MAX), bounded(&input, DETAIL_BYTES_MAX)))
}

/// The outcome of a tool, and whether it failed.
fn result(item: &Value) -> (String, bool) {
    let status = text_of(item, "status");
    let has_bad_exit = item["exitCode"].as_i64().is_some_and(|code| code != 0);
    let failed = matches!(status, "failed" | "declined") || has_bad_exit || item["success"] == false;
    let error = text_of(&item["error"], "message");
    let output = match text_of(item, "type") {
        _ if !error.is_empty() => error.to_owned(),
        "commandExecution" => text_of(item, "aggregatedOutput").to_owned(),
        "mcpToolCall" => contents(&item["result"]["content"]),
        "dynamicToolCall" => contents(&item["contentItems"]),
        "imageGeneration" => text_of(item, "savedPath").to_owned(),
        _ => String::new(),
    };
    let output = if output.is_empty() && failed { status.to_owned() } else { output };
    (bounded(&output, DETAIL_BYTES_MAX), failed)
}

/// The texts of a tool's answer, and for what is no text what it is.
fn contents(content: &Value) -> String {
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let words = |part: &Value| {
        part["text"].as_str().map_or_else(|| format!("({})", text_of(part, "type")), str::to_owned)
    };
    parts.iter().take(CHOICES_MAX).map(words).collect::<Vec<_>>().join("\n")
}

/// The thoughts of it, as a whole.
fn thoughts(item: &Value) -> String {
    let texts = |key: &str| -> Vec<&str> {
        item[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let summary = texts("summary");
    if summary.is_empty() { texts("content").join("\n\n") } else { summary.join("\n\n") }
}

/// A change of files, for people.
fn patch(item: &Value) -> String {
    let mut text = String::new();
    for change in item["changes"].as_array().into_iter().flatten().take(CHOICES_MAX) {
        let kind = text_of(&change["kind"], "type");
        text += &format!("{kind} {}\n{}\n", text_of(change, "path"), text_of(change, "diff").trim_end());
        if text.len() > DETAIL_BYTES_MAX {
            break;
        }
    }
    text
}

/// The files an item says it has changed.
fn changes(item: &Value) -> Vec<AgentEvent> {
    let mut events = Vec::new();
    let changes = item["changes"].as_array().map(Vec::as_slice).unwrap_or_default();
    for change in changes.iter().take(CHOICES_MAX) {
        let changed = |path: &str, change: FileChangeKind| AgentEvent::FileChanged {
            path: bounded(path, DETAIL_BYTES_MAX),
            change,
        };
        let (kind, path) = (&change["kind"], text_of(change, "path"));
        match (text_of(kind, "type"), kind["move_path"].as_str()) {
            ("add", _) => events.push(changed(path, FileChangeKind::Added)),
            ("delete", _) => events.push(changed(path, FileChangeKind::Removed)),
            (_, Some(moved)) => {
                events.push(changed(path, FileChangeKind::Removed));
                events.push(changed(moved, FileChangeKind::Added));
            }
            (_, None) => events.push(changed(path, FileChangeKind::Edited)),
        }
    }
    events
}

//! The updates of an agent (`session/update`), as `AgentEvent`s. Pure.
//!
//! A `TurnStory` remembers what the updates of one process are about: the tools that run, what was spent, what the agent has
//! said about itself. Updates that belong to no turn of ours, such as the history that `session/load` repeats, change
//! only what is known about the agent.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent::{
    About, AgentEvent, CHOICES_MAX, DETAIL_BYTES_MAX, FileChangeKind, NATIVE_BYTES_MAX, PlanStep, Progress,
    Usage, bounded, pieces,
};
use serde_json::Value;

use super::choices::{Choices, choices};
use super::quirks::{Behaviour, Meaning, UsageFigures};
use crate::agent_protocol::ProtocolOutput;
use crate::plans::{other_mode, plan_in};

/// The longest name of a tool.
const NAME_BYTES_MAX: usize = 256;
/// The name of a tool of which the agent says neither name nor kind; ACP's word for it.
const OTHER_TOOL: &str = "other";
/// Where agents put the name of a tool, beside the place that their entry names.
const TOOL_NAMES: [&str; 3] = ["/_meta/toolName", "/_meta/claudeCode/toolName", "/name"];
/// The longest step of a plan.
const STEP_BYTES_MAX: usize = 1_024;
/// The longest path of a file. The system has none that are longer.
const PATH_BYTES_MAX: usize = 4 * 1024;
/// The most tools of one turn that are told apart. What comes after them is kept raw.
const TOOLS_MAX: usize = 1_000;
/// The most files that one use of a tool may say it changed.
const FILES_MAX: usize = 100;

#[derive(Debug)]
pub(super) struct TurnStory {
    behaviour: Arc<Behaviour>,
    pub(super) choices: Choices,
    /// The mode in which turns begin.
    pub(super) chosen_mode: String,
    about: About,
    /// The last description of the agent.
    told: About,
    /// Its last title for the conversation.
    title: String,
    tools: BTreeMap<String, Tool>,
    window: Option<(u64, u64)>,
    /// In millionths of a dollar, since the process came up.
    cost_micros: Option<u64>,
    /// The sums of the prompts before, where that is what the agent says.
    sums: (u64, u64, u64),
    /// The meaning of the last piece of text, if it is one that means a failure.
    failing: Option<(Meaning, String)>,
    /// It has said something in this turn since it last used a tool.
    pub(super) has_spoken: bool,
}

/// A tool that is used.
#[derive(Debug, Default)]
struct Tool {
    name: String,
    title: String,
    input: String,
    kind: String,
    output: String,
    files: Vec<(String, FileChangeKind)>,
    stage: ToolStage,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ToolStage {
    /// Nothing was said of it: its input may still be coming.
    #[default]
    Unsaid,
    Running,
    Done,
}

impl TurnStory {
    pub(super) fn new(behaviour: Arc<Behaviour>) -> Self {
        Self {
            behaviour,
            choices: Choices::default(),
            chosen_mode: String::new(),
            about: About::default(),
            told: About::default(),
            title: String::new(),
            tools: BTreeMap::new(),
            window: None,
            cost_micros: None,
            sums: (0, 0, 0),
            failing: None,
            has_spoken: false,
        }
    }

    pub(super) fn set_version(&mut self, version: &str) {
        self.about.version = bounded(version, NAME_BYTES_MAX);
    }

    pub(super) fn set_directory(&mut self, directory: &str) {
        self.about.directory = bounded(directory, PATH_BYTES_MAX);
    }

    /// Says what is known about the agent, whether or not it was said before.
    pub(super) fn tell_about(&mut self, out: &mut ProtocolOutput) {
        self.told = self.about();
        out.event(AgentEvent::About(Box::new(self.told.clone())));
    }

    pub(super) fn begin_turn(&mut self) {
        self.tools.clear();
        self.failing = None;
        self.has_spoken = false;
    }

    /// An update. While no turn runs, nothing of it is part of an answer.
    pub(super) fn update(&mut self, update: &Value, is_turn: bool, out: &mut ProtocolOutput) {
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "available_commands_update" => {
                let listed = update["availableCommands"].as_array().map_or(&[][..], Vec::as_slice);
                self.about.commands = choices(listed.iter(), "name");
            }
            "current_mode_update" => {
                let now = bounded(update["currentModeId"].as_str().unwrap_or_default(), NATIVE_BYTES_MAX);
                if is_turn && now != self.choices.mode.current {
                    out.event(other_mode(&now, &self.chosen_mode));
                }
                self.choices.mode.current = now;
            }
            "config_option_update" => self.choices.read(update),
            "usage_update" => return self.figures(update, is_turn, out),
            "session_info_update" => return self.name_it(update, is_turn, out),
            // What we have said ourselves.
            "user_message_chunk" => return,
            _ if is_turn => return self.tell(update, out),
            _ => return,
        }
        // Before it is ready, all of it is told at once.
        if self.told != About::default() && self.about() != self.told {
            self.tell_about(out);
        }
    }

    /// Its own title for the conversation; told when it is another one.
    fn name_it(&mut self, update: &Value, is_turn: bool, out: &mut ProtocolOutput) {
        let title =
            update["title"].as_str().map(|title| bounded(title, DETAIL_BYTES_MAX)).unwrap_or_default();
        if is_turn && !title.is_empty() && title != self.title {
            self.title.clone_from(&title);
            out.event(AgentEvent::Titled { title });
        }
    }

    fn about(&self) -> About {
        let Choices { mode, model } = &self.choices;
        About {
            mode: mode.current.clone(),
            modes: mode.all.clone(),
            model: model.current.clone(),
            models: model.all.clone(),
            ..self.about.clone()
        }
    }

    fn tell(&mut self, update: &Value, out: &mut ProtocolOutput) {
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "agent_message_chunk" => match update["content"]["text"].as_str() {
                Some(text) => {
                    self.text(text, out);
                    // Some say with the last piece of an answer what that answer cost.
                    self.spent(&update["_meta"]["usage"], out);
                }
                None => out.event(other(update)),
            },
            "agent_thought_chunk" => match update["content"]["text"].as_str() {
                Some(text) => reasoning(text, out),
                None => out.event(other(update)),
            },
            "tool_call" | "tool_call_update" => self.tool(update, out),
            "plan" => out.event(AgentEvent::Plan { steps: steps(&update["entries"]) }),
            "notice" => match [&update["message"], &update["text"]].into_iter().find_map(Value::as_str) {
                Some(text) => out.event(AgentEvent::Notice { text: bounded(text, DETAIL_BYTES_MAX) }),
                None => out.event(other(update)),
            },
            _ => out.event(other(update)),
        }
    }

    fn text(&mut self, text: &str, out: &mut ProtocolOutput) {
        for piece in pieces(text) {
            out.event(AgentEvent::Text { text: piece.to_owned() });
        }
        if !text.trim().is_empty() {
            self.has_spoken = true;
            let meaning = self.behaviour.failure(text);
            self.failing = meaning.map(|meaning| (meaning, bounded(text.trim(), DETAIL_BYTES_MAX)));
        }
    }

    /// A call of a tool that a question is about. Answers its name, its kind and what it is given. Rules compare the name, so it
    /// is never the title, which has the command or the file in it: where the agent names no tool, its kind stands for it.
    pub(super) fn asked_about(&mut self, call: &Value, out: &mut ProtocolOutput) -> (String, String, String) {
        let (name, title) = (self.name_of(call), call["title"].as_str().unwrap_or_default());
        // A plan is read before somebody says yes to it, so it is shown as it was written.
        let shown = || output_of(call).filter(|_| call["kind"] == "switch_mode");
        let plan = plan_in(&call["rawInput"]).or_else(shown);
        let input = plan.or_else(|| input_of(call)).unwrap_or_else(|| bounded(title, DETAIL_BYTES_MAX));
        if call["toolCallId"].is_string() {
            self.tool(call, out);
        }
        let known = call["toolCallId"].as_str().and_then(|id| self.tools.get(id));
        let (known_name, kind, known_input) = match known {
            Some(tool) => (tool.name.clone(), tool.kind.clone(), tool.input.clone()),
            None => (
                String::new(),
                bounded(call["kind"].as_str().unwrap_or_default(), NAME_BYTES_MAX),
                String::new(),
            ),
        };
        let named = [name.unwrap_or_default(), known_name, kind.clone(), OTHER_TOOL.to_owned()];
        let tool = named.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
        let is_silent = ["", OTHER_TOOL].contains(&kind.as_str());
        let kind = self.behaviour.tool_kinds.get(&tool).filter(|_| is_silent).cloned().unwrap_or(kind);
        (tool, kind, if input.is_empty() { known_input } else { input })
    }

    fn tool(&mut self, update: &Value, out: &mut ProtocolOutput) {
        let Some(call) = update["toolCallId"].as_str().filter(|id| id.len() <= NATIVE_BYTES_MAX) else {
            return out.event(other(update));
        };
        if !self.tools.contains_key(call) && self.tools.len() >= TOOLS_MAX {
            return out.event(other(update));
        }
        self.failing = None;
        self.has_spoken = false;
        let name = self.name_of(update);
        let tool = self.tools.entry(call.to_owned()).or_default();
        if tool.stage == ToolStage::Done {
            return;
        }
        tool.learn(update, name);
        let status = update["status"].as_str().unwrap_or_default();
        let is_over = matches!(status, "completed" | "failed");
        if !tool.input.is_empty() || is_over || status == "in_progress" {
            tool.say_call(call, out);
        }
        if let Some(more) = update.pointer("/_meta/terminal_output_delta/data").and_then(Value::as_str) {
            tool.say_more(call, more, out);
        }
        let output = output_of(update);
        if is_over {
            tool.say_result(call, output, status == "failed", out);
        } else if let Some(output) = output.filter(|_| tool.stage == ToolStage::Running) {
            tool.say_progress(call, &output, out);
        }
    }

    fn name_of(&self, update: &Value) -> Option<String> {
        let places = [self.behaviour.tool_name.as_str()].into_iter().chain(TOOL_NAMES);
        let name = places.filter_map(|place| update.pointer(place)).find_map(Value::as_str)?;
        Some(bounded(name, NAME_BYTES_MAX))
    }

    fn figures(&mut self, update: &Value, is_turn: bool, out: &mut ProtocolOutput) {
        let window = update["used"].as_u64().zip(update["size"].as_u64()).filter(|(_, size)| *size > 0);
        let is_dollars = update["cost"]["currency"].as_str().is_none_or(|currency| currency == "USD");
        let cost = update["cost"]["amount"].as_f64().filter(|_| is_dollars).and_then(micros);
        let before = self.cost_micros.unwrap_or(0);
        let spent = cost.map(|cost| if cost >= before { cost - before } else { cost });
        let is_news = window != self.window || spent.is_some_and(|spent| spent > 0);
        self.window = window.or(self.window);
        self.cost_micros = cost.or(self.cost_micros);
        if is_turn && is_news {
            let cost_micros = spent.filter(|spent| *spent > 0);
            out.event(AgentEvent::Usage(Usage { cost_micros, window: self.window, ..Usage::default() }));
        }
    }

    /// The figures in the answer to a prompt.
    pub(super) fn spent(&mut self, usage: &Value, out: &mut ProtocolOutput) {
        let number = |key: &str| usage[key].as_u64().unwrap_or(0);
        let (mut input, mut output) = (number("inputTokens"), number("outputTokens"));
        if input == 0 && output == 0 {
            (input, output) = (number("input_tokens"), number("output_tokens"));
        }
        let cached_read = number("cachedReadTokens");
        let (cached, thought) =
            (cached_read.saturating_add(number("cachedWriteTokens")), number("thoughtTokens"));
        // Some count what came from a cache, or was thought, among the others; the total tells.
        let mut beside = number("totalTokens").saturating_sub(input).saturating_sub(output);
        if beside >= cached {
            input = input.saturating_add(cached);
            beside -= cached;
        }
        if beside >= thought {
            output = output.saturating_add(thought);
        }
        let figures = (input, output, cached_read);
        let (input_tokens, output_tokens, cached_tokens) = match self.behaviour.usage {
            UsageFigures::Turn => figures,
            UsageFigures::Sum => {
                let before = std::mem::replace(&mut self.sums, figures);
                let since = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
                (since(figures.0, before.0), since(figures.1, before.1), since(figures.2, before.2))
            }
            UsageFigures::Nothing => return,
        };
        if input_tokens > 0 || output_tokens > 0 {
            let window = self.window;
            out.event(AgentEvent::Usage(Usage {
                input_tokens,
                output_tokens,
                cached_tokens,
                cost_micros: None,
                window,
            }));
        }
    }

    /// The turn is over: what was said of no tool is said now. Answers the failure in its last words, if there is one.
    pub(super) fn end_turn(&mut self, out: &mut ProtocolOutput) -> Option<(Meaning, String)> {
        for (call, tool) in &mut self.tools {
            if tool.stage == ToolStage::Unsaid {
                tool.say_call(call, out);
            }
        }
        self.tools.clear();
        self.failing.take()
    }
}

impl Tool {
    fn learn(&mut self, update: &Value, name: Option<String>) {
        if let Some(name) = name {
            self.name = name;
        }
        let text = |key: &str| update[key].as_str().map(|text| bounded(text, NAME_BYTES_MAX));
        if let Some(title) = text("title") {
            self.title = title;
        }
        if let Some(kind) = text("kind") {
            self.kind = kind;
        }
        if self.stage == ToolStage::Unsaid
            && let Some(input) = input_of(update)
        {
            self.input = input;
        }
        self.learn_files(update);
    }

    fn learn_files(&mut self, update: &Value) {
        let contents = update["content"].as_array().map_or(&[][..], Vec::as_slice);
        let diffs = contents.iter().filter(|it| it["type"] == "diff").filter_map(|it| {
            let change = if self.kind == "delete" {
                FileChangeKind::Removed
            } else if it["oldText"].is_null() {
                FileChangeKind::Added
            } else {
                FileChangeKind::Edited
            };
            Some((path_of(it)?, change))
        });
        let diffs: Vec<(String, FileChangeKind)> = diffs.take(FILES_MAX).collect();
        if !diffs.is_empty() {
            self.files = diffs;
            return;
        }
        let change = match self.kind.as_str() {
            "edit" => FileChangeKind::Edited,
            "delete" => FileChangeKind::Removed,
            _ => return,
        };
        let places = update["locations"].as_array().map_or(&[][..], Vec::as_slice);
        let places: Vec<(String, FileChangeKind)> =
            places.iter().filter_map(path_of).map(|path| (path, change)).take(FILES_MAX).collect();
        // A diff says more than a place.
        if self.files.is_empty() {
            self.files = places;
        }
    }

    fn name(&self) -> &str {
        let named = [&self.name, &self.title, &self.kind].into_iter().find(|name| !name.is_empty());
        named.map_or("a tool", String::as_str)
    }

    fn say_call(&mut self, call: &str, out: &mut ProtocolOutput) {
        if self.stage != ToolStage::Unsaid {
            return;
        }
        self.stage = ToolStage::Running;
        let input = if self.input.is_empty() { self.title.clone() } else { self.input.clone() };
        out.event(AgentEvent::ToolCall { call: call.to_owned(), tool: self.name().to_owned(), input });
    }

    /// An agent says the whole output each time; people want what is new.
    fn say_progress(&mut self, call: &str, output: &str, out: &mut ProtocolOutput) {
        if output == self.output {
            return;
        }
        let fresh = output.strip_prefix(&self.output).unwrap_or(output).to_owned();
        self.output = output.to_owned();
        out.event(AgentEvent::ToolProgress { call: call.to_owned(), output: fresh });
    }

    /// The output of a terminal since the last time.
    fn say_more(&mut self, call: &str, more: &str, out: &mut ProtocolOutput) {
        self.output = bounded(&format!("{}{more}", self.output), DETAIL_BYTES_MAX);
        let output = bounded(more, DETAIL_BYTES_MAX);
        out.event(AgentEvent::ToolProgress { call: call.to_owned(), output });
    }

    fn say_result(&mut self, call: &str, output: Option<String>, failed: bool, out: &mut ProtocolOutput) {
        self.stage = ToolStage::Done;
        let output = output.unwrap_or_else(|| std::mem::take(&mut self.output));
        out.event(AgentEvent::ToolResult { call: call.to_owned(), output, failed });
        for (path, change) in std::mem::take(&mut self.files) {
            if !failed {
                out.event(AgentEvent::FileChanged { path, change });
            }
        }
    }
}

/// The input of a tool, as text. An empty object is what agents say while the model still writes it.
fn input_of(update: &Value) -> Option<String> {
    match &update["rawInput"] {
        Value::Null => None,
        Value::Object(fields) if fields.is_empty() => None,
        Value::String(text) => Some(bounded(text, DETAIL_BYTES_MAX)),
        other => Some(bounded(&other.to_string(), DETAIL_BYTES_MAX)),
    }
}

/// The output of a tool: its own words before the agent's form of them.
fn output_of(update: &Value) -> Option<String> {
    if let Some(text) = update["rawOutput"].as_str() {
        return Some(bounded(text, DETAIL_BYTES_MAX));
    }
    let contents = update["content"].as_array().map_or(&[][..], Vec::as_slice);
    let texts: Vec<&str> = contents.iter().filter_map(|it| it["content"]["text"].as_str()).collect();
    if !texts.is_empty() {
        return Some(bounded(&texts.join("\n"), DETAIL_BYTES_MAX));
    }
    let raw = &update["rawOutput"];
    (!raw.is_null()).then(|| bounded(&raw.to_string(), DETAIL_BYTES_MAX))
}

fn path_of(it: &Value) -> Option<String> {
    it["path"].as_str().filter(|path| !path.is_empty() && path.len() <= PATH_BYTES_MAX).map(str::to_owned)
}

fn reasoning(text: &str, out: &mut ProtocolOutput) {
    for piece in pieces(text) {
        out.event(AgentEvent::Reasoning { text: piece.to_owned() });
    }
}

fn steps(entries: &Value) -> Vec<PlanStep> {
    let entries = entries.as_array().map_or(&[][..], Vec::as_slice);
    let step = |entry: &Value| PlanStep {
        text: bounded(entry["content"].as_str().unwrap_or_default(), STEP_BYTES_MAX),
        progress: match entry["status"].as_str() {
            Some("completed") => Progress::Done,
            Some("in_progress") => Progress::Active,
            _ => Progress::Waiting,
        },
    };
    entries.iter().take(CHOICES_MAX).map(step).collect()
}

pub(super) fn other(value: &Value) -> AgentEvent {
    AgentEvent::Other { raw: bounded(&value.to_string(), DETAIL_BYTES_MAX) }
}

/// Dollars in millionths; nothing for what is no amount of money.
fn micros(dollars: f64) -> Option<u64> {
    let micros = (dollars * 1_000_000.0).round();
    // Below 2^53, where every whole number is one.
    (micros.is_finite() && (0.0..9e15).contains(&micros)).then_some(micros as u64)
}

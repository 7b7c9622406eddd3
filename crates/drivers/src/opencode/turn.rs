//! One turn as opencode tells it: which messages answer ours, which of their words were said already, and how it ended.
//! Pure.
//!
//! A turn is told twice, by events while it goes on and by the list of its messages at the end. Both come through
//! `take`, which says only what was not said yet; so nothing is doubled, and nothing is lost with a lost event.

use std::collections::{BTreeMap, BTreeSet};

use agent::{
    About, AgentEvent, DETAIL_BYTES_MAX, FileChangeKind, PlanStep, Progress, TEXT_BYTES_MAX, Trouble, Usage,
    bounded, pieces,
};
use serde_json::Value;

use crate::agent_protocol::ProtocolOutput;

/// The longest name, key or path in an event.
pub(super) const NAME_BYTES_MAX: usize = 256;
const PATH_BYTES_MAX: usize = 4 * 1024;
/// The most parts, messages and files of one turn that we can tell apart. A turn with more is stopped.
const PARTS_MAX: usize = 50_000;
/// The times a turn says that something goes slowly or is tried again.
const NOTICES_MAX: u32 = 20;
/// The part of one tool's output that is shown while it runs. All that opencode keeps of it comes with the result.
const PROGRESS_BYTES_MAX: usize = 64 * 1024;

/// The facts that are known beyond one turn.
#[derive(Debug, Default)]
pub(super) struct KnownFacts {
    pub(super) about: About,
    /// The tokens that a model's window holds, by `provider/model`.
    pub(super) windows: BTreeMap<String, u64>,
    /// The sessions that opencode made below ours, for parts of the work.
    pub(super) children: BTreeSet<String>,
}

pub(super) struct Turn {
    session: String,
    /// Our message, and the messages that opencode itself put in after it to go on.
    message: String,
    words: String,
    parents: BTreeSet<String>,
    /// Messages that were put in after ours, by whomever.
    later: BTreeSet<String>,
    /// When opencode wrote our message down, by its own clock.
    created: Option<u64>,
    /// The messages that answer, and the model of each.
    answers: BTreeMap<String, String>,
    parts: BTreeMap<String, MessagePart>,
    /// Files that were changed by nobody we know yet.
    changed: BTreeSet<String>,
    notices: u32,
    said_bytes: u64,
    said_bytes_max: u64,
    /// Some events were missed.
    pub(super) is_torn: bool,
    /// A tool was refused, after which a turn may end with its call.
    pub(super) is_refused: bool,
    /// We asked for the end.
    pub(super) is_aborted: bool,
    /// Its last complaint.
    pub(super) complaint: String,
    /// The number of times it has begun to try again, and its word about that.
    pub(super) tries: u64,
    pub(super) tried_in_vain: String,
}

/// The words of a part.
#[derive(Debug, Default)]
struct MessagePart {
    kind: Kind,
    said: String,
    /// Something of it was missed, so that only the whole of it can be trusted.
    is_torn: bool,
    is_called: bool,
    is_settled: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    Text,
    Reasoning,
    #[default]
    Other,
}

/// The end of a turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TurnOutcome {
    Finished { reason: String },
    Interrupted,
    Failed(Trouble),
}

impl Turn {
    pub(super) fn new(session: &str, message: &str, words: &str, said_bytes_max: u64) -> Self {
        Self {
            session: session.to_owned(),
            message: message.to_owned(),
            words: words.to_owned(),
            later: BTreeSet::new(),
            parents: BTreeSet::from([message.to_owned()]),
            created: None,
            answers: BTreeMap::new(),
            parts: BTreeMap::new(),
            changed: BTreeSet::new(),
            notices: 0,
            said_bytes: 0,
            said_bytes_max,
            is_torn: false,
            is_refused: false,
            is_aborted: false,
            complaint: String::new(),
            tries: 0,
            tried_in_vain: String::new(),
        }
    }

    /// An event of the stream, but for questions. Those of other sessions say nothing but what they cost.
    pub(super) fn event(&mut self, event: &Value, known: &mut KnownFacts, out: &mut ProtocolOutput) {
        let said = &event["properties"];
        let kind = text(event, "/type");
        let is_ours = text(said, "/sessionID") == self.session;
        match kind {
            "file.edited" => self.file(text(said, "/file")),
            "message.part.updated" => self.part(&said["part"], known, out),
            _ if !is_ours => {}
            "message.updated" => self.message(&said["info"], known, out),
            "message.part.delta" => self.delta(said, out),
            "todo.updated" => out.event(AgentEvent::Plan { steps: steps(&said["todos"]) }),
            "session.status" => self.status(&said["status"], out),
            "session.error" => self.complaint = complaint(&said["error"]),
            "session.compacted" => {
                self.notice("opencode shortened its memory of this conversation to make room", out)
            }
            _ if is_idle_talk(kind) => {}
            _ => out.event(AgentEvent::Other { raw: bounded(&event.to_string(), DETAIL_BYTES_MAX) }),
        }
    }

    /// Some events were missed: what is half told has to be told whole.
    pub(super) fn be_torn(&mut self) {
        self.is_torn = true;
        for part in self.parts.values_mut() {
            part.is_torn = true;
        }
    }

    /// The messages of the session as they are at the end; says what was not said yet.
    pub(super) fn messages(&mut self, messages: &Value, known: &mut KnownFacts, out: &mut ProtocolOutput) {
        let mut is_ours = false;
        for message in messages.as_array().into_iter().flatten() {
            let (info, parts) = (&message["info"], &message["parts"]);
            let id = text(info, "/id");
            is_ours |= id == self.message;
            match text(info, "/role") {
                "user" if is_ours => {
                    self.later.insert(id.to_owned());
                    parts.as_array().into_iter().flatten().for_each(|part| self.adopt(id, part));
                }
                "assistant" => self.whole(info, parts, known, out),
                _ => {}
            }
        }
    }

    /// A message and all of its parts.
    pub(super) fn whole(
        &mut self,
        info: &Value,
        parts: &Value,
        known: &mut KnownFacts,
        out: &mut ProtocolOutput,
    ) {
        self.message(info, known, out);
        let id = text(info, "/id");
        if !self.answers.contains_key(id) {
            return;
        }
        for part in parts.as_array().into_iter().flatten() {
            self.take(id, part, known, out);
        }
    }

    /// The events that are left for the end: files that were changed by something other than a tool of ours.
    pub(super) fn rest(&mut self, out: &mut ProtocolOutput) {
        for path in std::mem::take(&mut self.changed) {
            out.event(AgentEvent::FileChanged { path, change: FileChangeKind::Edited });
        }
    }

    /// True if this answers our message.
    pub(super) fn is_answer(&self, info: &Value) -> bool {
        self.parents.contains(text(info, "/parentID"))
    }

    /// The end of the turn, by the message that opencode answered with.
    pub(super) fn verdict(&self, info: &Value, parts: &Value) -> TurnOutcome {
        let (error, finish) = (&info["error"], text(info, "/finish"));
        let has_parts = parts.as_array().is_some_and(|parts| !parts.is_empty());
        if !error.is_null() {
            let is_abort = text(error, "/name") == "MessageAbortedError";
            return if is_abort && self.is_aborted {
                TurnOutcome::Interrupted
            } else {
                TurnOutcome::Failed(trouble(error))
            };
        }
        match finish {
            // `length`: the model's answer was as long as it may be.
            "stop" | "length" => TurnOutcome::Finished { reason: finish.to_owned() },
            "tool-calls" if self.is_refused && !self.is_aborted => {
                TurnOutcome::Finished { reason: finish.to_owned() }
            }
            // Stopped while it waited to try again, it says nothing at all.
            _ if self.is_aborted || (finish.is_empty() && !has_parts) => TurnOutcome::Interrupted,
            _ => {
                let finish = bounded(finish, NAME_BYTES_MAX);
                TurnOutcome::Failed(Trouble::transient(format!(
                    "opencode stopped with {finish:?} before the turn was done"
                )))
            }
        }
    }

    fn message(&mut self, info: &Value, known: &mut KnownFacts, out: &mut ProtocolOutput) {
        let id = text(info, "/id");
        if self.later.len() + self.answers.len() > PARTS_MAX {
            return self.flood(out);
        }
        match text(info, "/role") {
            "user" => {
                let created = info.pointer("/time/created").and_then(Value::as_u64);
                if id == self.message {
                    self.created = created;
                } else if self.created.is_some() && created >= self.created {
                    self.later.insert(id.to_owned());
                }
            }
            // What it writes to shorten its own memory is no answer.
            "assistant" if info["summary"] == true || text(info, "/mode") == "compaction" => {}
            "assistant" if self.is_answer(info) && !self.answers.contains_key(id) => {
                let model = format!("{}/{}", text(info, "/providerID"), text(info, "/modelID"));
                be_about(info, &model, known, out);
                self.answers.insert(id.to_owned(), model);
            }
            _ => {}
        }
    }

    fn part(&mut self, part: &Value, known: &KnownFacts, out: &mut ProtocolOutput) {
        let (session, message) = (text(part, "/sessionID"), text(part, "/messageID"));
        if session == self.session && self.answers.contains_key(message) {
            self.take(message, part, known, out);
        } else if session == self.session {
            self.adopt(message, part);
        } else if known.children.contains(session) && text(part, "/type") == "step-finish" {
            self.step(part, None, out);
        }
    }

    /// A later message belongs to our turn if opencode put it in itself, to go on after it made room in its memory: then
    /// it is marked so, or says our own words again.
    fn adopt(&mut self, message: &str, part: &Value) {
        let is_own = part["synthetic"] == true || text(part, "/type") == "compaction";
        if self.later.contains(message) && (is_own || text(part, "/text") == self.words) {
            self.parents.insert(message.to_owned());
        }
    }

    /// A part of an answer as a whole; says what was not said of it yet.
    fn take(&mut self, message: &str, part: &Value, known: &KnownFacts, out: &mut ProtocolOutput) {
        if self.parts.len() >= PARTS_MAX {
            return self.flood(out);
        }
        match text(part, "/type") {
            "text" if part["synthetic"] == true || part["ignored"] == true => {}
            "text" => self.words(part, Kind::Text, out),
            "reasoning" => self.words(part, Kind::Reasoning, out),
            "tool" => self.tool(part, out),
            "step-finish" => {
                let model = self.answers.get(message);
                let window = model.and_then(|model| known.windows.get(model)).copied();
                self.step(part, window, out);
            }
            "step-start" | "snapshot" | "patch" | "agent" | "file" | "subtask" | "compaction" | "retry" => {}
            _ => {
                let seen = self.parts.entry(text(part, "/id").to_owned()).or_default();
                if !std::mem::replace(&mut seen.is_settled, true) {
                    out.event(AgentEvent::Other { raw: bounded(&part.to_string(), DETAIL_BYTES_MAX) });
                }
            }
        }
    }

    fn words(&mut self, part: &Value, kind: Kind, out: &mut ProtocolOutput) {
        let whole = text(part, "/text");
        let seen = self.parts.entry(text(part, "/id").to_owned()).or_default();
        seen.kind = kind;
        seen.is_torn = false;
        // At the end opencode may trim a text, or let a plugin change it; what was said stays said.
        let Some(rest) = whole.strip_prefix(seen.said.as_str()) else { return };
        seen.said.push_str(rest);
        self.say(kind, rest, out);
    }

    fn delta(&mut self, said: &Value, out: &mut ProtocolOutput) {
        let delta = text(said, "/delta");
        let is_text = text(said, "/field") == "text";
        match self.parts.get_mut(text(said, "/partID")) {
            Some(part) if is_text && !part.is_torn && part.kind != Kind::Other => {
                part.said.push_str(delta);
                let kind = part.kind;
                self.say(kind, delta, out);
            }
            // Of a part we do not know; the whole of it comes later.
            _ => {}
        }
    }

    fn say(&mut self, kind: Kind, words: &str, out: &mut ProtocolOutput) {
        self.said_bytes += words.len() as u64;
        if self.said_bytes > self.said_bytes_max {
            return self.flood(out);
        }
        for piece in pieces(words) {
            let text = piece.to_owned();
            out.event(match kind {
                Kind::Reasoning => AgentEvent::Reasoning { text },
                Kind::Text | Kind::Other => AgentEvent::Text { text },
            });
        }
    }

    fn flood(&self, out: &mut ProtocolOutput) {
        let trouble =
            "the agent said more in one turn than it may; if that is as it should be, raise output_max";
        out.event(AgentEvent::Failed(Trouble::transient(trouble)));
    }

    fn tool(&mut self, part: &Value, out: &mut ProtocolOutput) {
        let state = &part["state"];
        let status = text(state, "/status");
        let call = bounded(text(part, "/callID"), NAME_BYTES_MAX);
        let tool = text(part, "/tool");
        let seen = self.parts.entry(text(part, "/id").to_owned()).or_default();
        // While it is pending its input is not known.
        if seen.is_settled || status == "pending" {
            return;
        }
        if !std::mem::replace(&mut seen.is_called, true) {
            let input = bounded(&state["input"].to_string(), DETAIL_BYTES_MAX);
            let tool = bounded(tool, NAME_BYTES_MAX);
            out.event(AgentEvent::ToolCall { call: call.clone(), tool, input });
        }
        match status {
            "running" => progress(seen, call, text(state, "/metadata/output"), out),
            "completed" | "error" => {
                seen.is_settled = true;
                let exit = state.pointer("/metadata/exit").and_then(Value::as_i64);
                let failed = status == "error" || exit.is_some_and(|code| code != 0);
                let output = text(state, if status == "error" { "/error" } else { "/output" });
                let output = bounded(output, DETAIL_BYTES_MAX);
                out.event(AgentEvent::ToolResult { call, output, failed });
                if status == "completed" {
                    self.files(tool, state, out);
                }
            }
            _ => {}
        }
    }

    /// The files that a tool says it changed.
    fn files(&mut self, tool: &str, state: &Value, out: &mut ProtocolOutput) {
        let (metadata, input) = (&state["metadata"], &state["input"]);
        let changes = match tool {
            "write" => {
                let change =
                    if metadata["exists"] == false { FileChangeKind::Added } else { FileChangeKind::Edited };
                vec![(text(metadata, "/filepath"), change)]
            }
            "edit" => vec![(text(input, "/filePath"), FileChangeKind::Edited)],
            _ => patched(&metadata["files"]),
        };
        for (path, change) in changes {
            let path = bounded(path, PATH_BYTES_MAX);
            self.changed.remove(&path);
            if !path.is_empty() {
                out.event(AgentEvent::FileChanged { path, change });
            }
        }
    }

    /// Opencode says that a file was changed, but not by whom. The tool that did it says so in a moment.
    fn file(&mut self, path: &str) {
        if self.changed.len() < PARTS_MAX && !path.is_empty() {
            self.changed.insert(bounded(path, PATH_BYTES_MAX));
        }
    }

    fn step(&mut self, part: &Value, window: Option<u64>, out: &mut ProtocolOutput) {
        let seen = self.parts.entry(text(part, "/id").to_owned()).or_default();
        if !std::mem::replace(&mut seen.is_settled, true) {
            out.event(AgentEvent::Usage(usage(part, window)));
        }
    }

    fn status(&mut self, status: &Value, out: &mut ProtocolOutput) {
        if text(status, "/type") == "retry" {
            let (attempt, words) = (&status["attempt"], bounded(text(status, "/message"), DETAIL_BYTES_MAX));
            self.tries = attempt.as_u64().unwrap_or(self.tries + 1);
            self.notice(&format!("opencode tries again by itself (try {attempt}): {words}"), out);
            self.tried_in_vain = words;
        }
    }

    fn notice(&mut self, words: &str, out: &mut ProtocolOutput) {
        self.notices += 1;
        if self.notices <= NOTICES_MAX {
            out.event(AgentEvent::Notice { text: bounded(words, TEXT_BYTES_MAX) });
        }
    }
}

/// The output of a tool since the last time. Opencode repeats all of it, or the end of it when it is long.
fn progress(seen: &mut MessagePart, call: String, whole: &str, out: &mut ProtocolOutput) {
    let rest = whole.strip_prefix(seen.said.as_str()).unwrap_or_default();
    if !rest.is_empty() && seen.said.len() < PROGRESS_BYTES_MAX {
        out.event(AgentEvent::ToolProgress { call, output: bounded(rest, DETAIL_BYTES_MAX) });
        seen.said.push_str(rest);
    }
}

fn patched(files: &Value) -> Vec<(&str, FileChangeKind)> {
    let change = |file: &Value| match text(file, "/type") {
        "add" => FileChangeKind::Added,
        "delete" => FileChangeKind::Removed,
        _ => FileChangeKind::Edited,
    };
    files.as_array().into_iter().flatten().map(|file| (text(file, "/filePath"), change(file))).collect()
}

fn usage(part: &Value, window: Option<u64>) -> Usage {
    let tokens = |of: &str| part["tokens"].pointer(of).and_then(Value::as_f64).unwrap_or(0.0).max(0.0) as u64;
    let (read, write) = (tokens("/cache/read"), tokens("/cache/write"));
    // Opencode counts what came from a cache, and what was thought, apart.
    let input_tokens = tokens("/input").saturating_add(read).saturating_add(write);
    let output_tokens = tokens("/output").saturating_add(tokens("/reasoning"));
    let cost = part["cost"].as_f64().filter(|cost| *cost >= 0.0);
    Usage {
        input_tokens,
        output_tokens,
        cached_tokens: read,
        cost_micros: cost.map(|dollars| (dollars * 1e6).round() as u64),
        window: window.map(|most| (input_tokens.saturating_add(output_tokens), most)),
    }
}

/// The model, the mode and the directory that an answer says it is made with.
fn be_about(info: &Value, model: &str, known: &mut KnownFacts, out: &mut ProtocolOutput) {
    let about = About {
        model: bounded(model, NAME_BYTES_MAX),
        mode: bounded(text(info, "/agent"), NAME_BYTES_MAX),
        directory: bounded(text(info, "/path/cwd"), PATH_BYTES_MAX),
        ..known.about.clone()
    };
    if about != known.about {
        known.about = about.clone();
        out.event(AgentEvent::About(Box::new(about)));
    }
}

fn steps(todos: &Value) -> Vec<PlanStep> {
    let step = |todo: &Value| {
        let progress = match text(todo, "/status") {
            "in_progress" => Progress::Active,
            "completed" => Progress::Done,
            "cancelled" => return None,
            _ => Progress::Waiting,
        };
        Some(PlanStep { text: bounded(text(todo, "/content"), NAME_BYTES_MAX * 4), progress })
    };
    todos.as_array().into_iter().flatten().filter_map(step).take(agent::CHOICES_MAX).collect()
}

/// Events that say nothing we need: states that come with others, and the second protocol, which tells everything again.
fn is_idle_talk(kind: &str) -> bool {
    const KINDS: [&str; 7] = [
        "session.created",
        "session.updated",
        "session.diff",
        "session.idle",
        "message.removed",
        "message.part.removed",
        "command.executed",
    ];
    let prefixes = ["session.next.", "permission.", "question.", "file.watcher.", "lsp.", "server."];
    KINDS.contains(&kind) || prefixes.iter().any(|prefix| kind.starts_with(prefix))
}

/// An error of opencode's, in its words.
pub(super) fn complaint(error: &Value) -> String {
    let words = text(error, "/data/message");
    bounded(if words.is_empty() { text(error, "/name") } else { words }, DETAIL_BYTES_MAX)
}

/// The remedy where it has no sign-in.
pub(super) const SIGN_IN: &str = "Run `opencode auth login`, or set the provider's key";

/// The remedy for an error of a message.
fn trouble(error: &Value) -> Trouble {
    let words = complaint(error);
    let status = error.pointer("/data/statusCode").and_then(Value::as_u64);
    match (text(error, "/name"), status) {
        ("ProviderAuthError", _) | (_, Some(401 | 403)) => Trouble::refused(format!(
            "the model's server does not take opencode's sign-in: {words}. {SIGN_IN}"
        )),
        (_, Some(402)) => Trouble::refused(format!("the model's server wants to be paid: {words}")),
        ("ContextOverflowError" | "ContentFilterError", _) => Trouble::refused(words),
        ("UnknownError", _) => by_words(words),
        _ => Trouble::transient(words),
    }
}

/// The remedy for an error that has nothing but words.
pub(super) fn by_words(words: String) -> Trouble {
    let is_unknown = |what: &str| words.starts_with(&format!("{what} not found"));
    if ["Model", "Agent", "Command"].iter().any(|what| is_unknown(what)) {
        Trouble::refused(words)
    } else {
        Trouble::transient(words)
    }
}

/// The text at that place; empty where there is none.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

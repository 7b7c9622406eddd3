//! The talk with codex's app server: JSON-RPC in lines, without the word `jsonrpc`.
//!
//! `initialize` and `initialized`; the key, if there is one; whether it is signed in; then `thread/start` or
//! `thread/resume`, which is decided by the launch alone. A new conversation gets a name, because only then does codex
//! write it down: one that it has not written down would be unknown to the next process, as if it were gone. Then each
//! message is a `turn/start`, and only `turn/completed` ends a turn. Requests that we make once have names as ids, the
//! others numbers.

use std::collections::BTreeMap;

use agent::{
    About, AgentEvent, AttachmentKind, CHOICES_MAX, Choice, DETAIL_BYTES_MAX, Form, Launch, Message,
    NATIVE_BYTES_MAX, QuestionAnswer, Steered, TEXT_BYTES_MAX, Trouble, Usage, bounded,
};
use kernel::Native;
use serde_json::{Value, json};

use super::items::{Items, plan, text_of};
use super::mode::{MODE_KEYS, Mode, REVIEWER};
use super::trouble::{Refusal, SIGN_IN, is_unknown, of_turn, refusal, words_of};
use crate::agent_protocol::{AgentProtocol, ProtocolOutput};
use crate::attached::{as_url, blocks};
use crate::running_agent::gone_if_here;

/// Notifications that codex need not send us, because they change nothing for us or are said again elsewhere: each line wakes the
/// supervisor and us, and one of them repeats the whole difference of a turn with every change. Those that come all the same, because a
/// version does not know that word for them, are passed over in silence.
const CHATTER: [&str; 40] = [
    "account/gatewayOAuth/changed",
    "account/login/completed",
    "account/rateLimits/updated",
    "account/updated",
    "app/list/updated",
    "autoApprovalReview/strictReviewRequired",
    "fs/changed",
    "hook/completed",
    "hook/started",
    "item/autoApprovalReview/completed",
    "item/autoApprovalReview/started",
    "item/commandExecution/terminalInteraction",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "item/reasoning/summaryPartAdded",
    "model/safetyBuffering/updated",
    "model/verification",
    "modelProvider/authRecoveryCompleted",
    "modelProvider/authRecoveryStarted",
    "project/changed",
    "remoteControl/status/changed",
    "skills/changed",
    "thread/archived",
    "thread/attachment/updated",
    "thread/closed",
    "thread/compacted",
    "thread/environment/connected",
    "thread/environment/disconnected",
    "thread/goal/cleared",
    "thread/goal/updated",
    "thread/name/updated",
    "thread/prediction/updated",
    "thread/project/updated",
    "thread/queue/changed",
    "thread/readState/changed",
    "thread/settings/updated",
    "thread/started",
    "thread/status/changed",
    "turn/diff/updated",
    "turn/moderationMetadata",
];

/// The most conversations whose use is counted: ours, and those of the agents it starts.
const COUNTED_MAX: usize = 100;
/// The most questions that can be open.
const QUESTIONS_MAX: usize = 100;

/// JSON-RPC's number for a method that is not there.
const NO_METHOD: i64 = -32601;

/// The setting of one process, known before the first word.
pub(super) struct ProcessSetting {
    pub(super) launch: Launch,
    /// Where the conversation's id means something.
    pub(super) place: String,
    pub(super) mode: Mode,
    pub(super) bypasses: bool,
    pub(super) key: Option<String>,
}

/// The purpose of a request, which its answer needs.
#[derive(Debug)]
enum RequestPurpose {
    Initialize,
    Key,
    Account,
    Thread,
    Name,
    Models,
    Turn,
    Steer,
    Interrupt,
    /// To learn whether codex really does not know the conversation; it said so in these words.
    Known(String),
    /// The end of the turn, when codex said so in a line too long to be read.
    Ending,
}

/// A question of codex that waits for a person.
#[derive(Debug)]
struct OpenQuestion {
    id: Value,
    yes: Value,
    no: Value,
}

/// A turn that runs.
#[derive(Debug, Default)]
struct Turn {
    /// Codex's id of it; empty until it is known.
    id: String,
    is_interrupting: bool,
    /// The words to be added to it, as soon as its id is known.
    added: Option<Message>,
    items: Items,
}

/// Tokens of a conversation since it began.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    input: u64,
    output: u64,
    cached: u64,
}

pub(super) struct CodexProtocol {
    beginning: ProcessSetting,
    numbers: u64,
    waiting: BTreeMap<String, RequestPurpose>,
    /// The conversation, once codex has confirmed it.
    thread: String,
    about: About,
    turn: Option<Turn>,
    questions: BTreeMap<String, OpenQuestion>,
    totals: BTreeMap<String, Totals>,
}

impl CodexProtocol {
    pub(super) fn new(beginning: ProcessSetting) -> Self {
        let modes = Mode::choices(beginning.bypasses);
        Self {
            about: About { mode: beginning.mode.name().to_owned(), modes, ..About::default() },
            beginning,
            numbers: 0,
            waiting: BTreeMap::new(),
            thread: String::new(),
            turn: None,
            questions: BTreeMap::new(),
            totals: BTreeMap::new(),
        }
    }

    fn native(&self) -> Native {
        Native::new(self.thread.clone()).at(self.beginning.place.clone())
    }

    /// Asks with the next number.
    fn ask(&mut self, method: &str, params: Value, waiting: RequestPurpose, out: &mut ProtocolOutput) {
        self.numbers += 1;
        self.ask_as(json!(self.numbers), method, params, waiting, out);
    }

    fn ask_as(
        &mut self,
        id: Value,
        method: &str,
        params: Value,
        waiting: RequestPurpose,
        out: &mut ProtocolOutput,
    ) {
        self.waiting.insert(id.to_string(), waiting);
        out.send_line(&json!({"id": id, "method": method, "params": params}));
    }

    fn fail(&mut self, trouble: Trouble, out: &mut ProtocolOutput) {
        self.turn = None;
        out.event(AgentEvent::Failed(trouble));
    }

    fn ask_for_account(&mut self, out: &mut ProtocolOutput) {
        let params = json!({"refreshToken": false});
        self.ask_as(json!("account"), "account/read", params, RequestPurpose::Account, out);
    }

    /// The conversation the launch wants, or another one that begins like it, or a new one if it names none.
    fn ask_for_thread(&mut self, out: &mut ProtocolOutput) {
        let ProcessSetting { launch, mode, .. } = &self.beginning;
        let mut params = json!({
            "cwd": launch.directory.for_launch(),
            "approvalPolicy": mode.approval(),
            "approvalsReviewer": REVIEWER,
            "sandbox": mode.sandbox(),
        });
        if let Some(model) = &launch.model {
            params["model"] = json!(model);
        }
        let method = match &launch.native {
            None => "thread/start",
            Some(native) => {
                params["threadId"] = json!(native.id);
                // Its history is of no use to us, and would be one line.
                params["excludeTurns"] = json!(true);
                if launch.fork { "thread/fork" } else { "thread/resume" }
            }
        };
        self.ask(method, params, RequestPurpose::Thread, out);
    }

    fn answered(&mut self, waiting: RequestPurpose, answer: &Value, out: &mut ProtocolOutput) {
        let (result, error) = (&answer["result"], answer.get("error"));
        match (waiting, error) {
            (RequestPurpose::Initialize, None) => {
                out.send_line(&json!({"method": "initialized"}));
                match self.beginning.key.clone() {
                    None => self.ask_for_account(out),
                    Some(key) => {
                        let params = json!({"type": "apiKey", "apiKey": key});
                        self.ask_as(json!("key"), "account/login/start", params, RequestPurpose::Key, out);
                    }
                }
            }
            (RequestPurpose::Initialize, Some(error)) => self.fail(Trouble::transient(words_of(error)), out),
            (RequestPurpose::Key, None) => self.ask_for_account(out),
            (RequestPurpose::Key, Some(error)) => {
                let words = words_of(error);
                self.fail(Trouble::refused(format!("codex does not take the key: {words}; {SIGN_IN}")), out);
            }
            (RequestPurpose::Account, None)
                if result["requiresOpenaiAuth"] == true && result["account"].is_null() =>
            {
                self.fail(Trouble::refused(format!("codex is not signed in; {SIGN_IN}")), out);
            }
            // If it cannot tell, a turn will.
            (RequestPurpose::Account, _) => self.ask_for_thread(out),
            (RequestPurpose::Thread, None) => self.opened(result, out),
            (RequestPurpose::Thread | RequestPurpose::Turn, Some(error)) => self.refused(error, out),
            (RequestPurpose::Name, _) => out.event(AgentEvent::Ready { native: Some(self.native()) }),
            (RequestPurpose::Models, None) => self.has_models(result, out),
            (RequestPurpose::Turn, None) => self.has_begun(text_of(&result["turn"], "id"), out),
            (RequestPurpose::Steer, None) => out.steered(Steered::Taken),
            // It says why in words of its own: mostly that the turn is over. Nothing of it was taken.
            (RequestPurpose::Steer, Some(_)) => out.steered(Steered::TooLate),
            (RequestPurpose::Known(words), known) => self.is_known(words, known, out),
            (RequestPurpose::Ending, None) => self.ending_is(&result["data"][0], out),
            (RequestPurpose::Ending, Some(error)) => self.fail(Trouble::transient(words_of(error)), out),
            (RequestPurpose::Models | RequestPurpose::Interrupt, _) => {}
        }
    }

    /// The conversation is open, if it is the one that was wanted, and as it was wanted.
    fn opened(&mut self, result: &Value, out: &mut ProtocolOutput) {
        let thread = text_of(&result["thread"], "id");
        if thread.is_empty() || thread.len() > NATIVE_BYTES_MAX {
            return self.fail(Trouble::transient("codex does not say which conversation it opened"), out);
        }
        let Launch { native, fork, model, .. } = &self.beginning.launch;
        let (native, is_fork) = (native.as_ref().map(|native| native.id.as_str()), *fork);
        if native.is_some_and(|native| (native == thread) == is_fork) {
            return self
                .fail(Trouble::transient("codex opened another conversation than was asked for"), out);
        }
        let (is_new, chosen) = (native.is_none(), model.clone());
        self.thread = thread.to_owned();
        if is_new {
            self.totals.insert(self.thread.clone(), Totals::default());
        }
        self.about.version = bounded(text_of(&result["thread"], "cliVersion"), 100);
        self.about.directory = bounded(text_of(result, "cwd"), DETAIL_BYTES_MAX);
        self.about.model = bounded(text_of(result, "model"), 200);
        // What it was is what it may do: its administrator may have forbidden what we asked for.
        if let Some(seen) = other_mode(self.beginning.mode, result) {
            let wanted = self.beginning.mode.name();
            let trouble = format!(
                "codex does not work in mode {wanted}: it says {seen}, in which it acts without asking as far as anybody knows; \
                 choose another mode, or set `bypass = true`"
            );
            return self.fail(Trouble::refused(trouble), out);
        }
        // A line that is too long to be read does not say; then each turn names the model as well.
        if let Some(chosen) =
            chosen.filter(|chosen| !["", chosen.as_str()].contains(&self.about.model.as_str()))
        {
            return self.fail(Trouble::other_model(&chosen, &self.about.model), out);
        }
        out.about(Some(&self.about));
        if is_new || is_fork {
            let name = format!("Homing {}", self.beginning.launch.session);
            let params = json!({"threadId": self.thread, "name": name});
            self.ask_as(json!("name"), "thread/name/set", params, RequestPurpose::Name, out);
        } else {
            out.event(AgentEvent::Ready { native: Some(self.native()) });
        }
        self.ask_as(json!("models"), "model/list", json!({}), RequestPurpose::Models, out);
    }

    fn refused(&mut self, error: &Value, out: &mut ProtocolOutput) {
        match refusal(error) {
            Refusal::Else(trouble) => self.fail(trouble, out),
            Refusal::Unknown(words) => {
                let native = self.beginning.launch.native.as_ref();
                let thread = native.map_or_else(|| self.thread.clone(), |native| native.id.clone());
                // Not `thread/read`: that one knows conversations by name whose words are gone.
                let params = json!({"threadId": thread, "limit": 1, "itemsView": "notLoaded"});
                self.ask_as(json!("known"), "thread/turns/list", params, RequestPurpose::Known(words), out);
            }
        }
    }

    /// Codex was asked again whether it knows the conversation.
    fn is_known(&mut self, words: String, error: Option<&Value>, out: &mut ProtocolOutput) {
        let again = error.map(words_of);
        let trouble = match again {
            Some(again) if is_unknown(&again) => {
                gone_if_here(&self.beginning.launch, &self.beginning.place, words)
            }
            Some(again) => Trouble::transient(format!("{words}; asked again: {again}")),
            None => Trouble::transient(format!("codex knows the conversation, but: {words}")),
        };
        self.fail(trouble, out);
    }

    fn has_models(&mut self, result: &Value, out: &mut ProtocolOutput) {
        let choice = |model: &Value| Choice {
            name: bounded(text_of(model, "model"), 200),
            description: bounded(text_of(model, "description"), 500),
        };
        let models = result["data"].as_array().map(Vec::as_slice).unwrap_or_default();
        let shown = models.iter().filter(|model| model["hidden"] != true);
        self.about.models = shown.take(CHOICES_MAX).map(choice).collect();
        out.event(AgentEvent::About(Box::new(self.about.clone())));
    }

    fn has_begun(&mut self, id: &str, out: &mut ProtocolOutput) {
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.id.is_empty()) else { return };
        turn.id = id.to_owned();
        if let Some(added) = turn.added.take() {
            self.steer(&added, out);
        }
    }

    /// True if something said of that conversation and turn is about the turn that runs.
    fn is_ours(&self, thread: &str, turn: &str) -> bool {
        let is_turn = |running: &Turn| running.id.is_empty() || running.id == turn;
        thread == self.thread && self.turn.as_ref().is_some_and(is_turn)
    }

    /// Notes the end of the turn that runs, as far as that can be read.
    fn ending_is(&mut self, turn: &Value, out: &mut ProtocolOutput) {
        let Some(running) = self.turn.take() else { return };
        for question in std::mem::take(&mut self.questions).into_keys() {
            out.event(AgentEvent::Withdrawn { question });
        }
        match text_of(turn, "status") {
            "completed" => {
                let reason = "completed".to_owned();
                out.event(AgentEvent::Finished { native: Some(self.native()), reason });
            }
            "failed" => self.fail(of_turn(&turn["error"]), out),
            "interrupted" => {
                if !running.is_interrupting {
                    let text = "codex interrupted the turn, and nobody here had asked for that".to_owned();
                    out.event(AgentEvent::Notice { text });
                }
                out.interrupted();
            }
            status => {
                let status = bounded(status, 100);
                self.fail(Trouble::transient(format!("codex ended the turn as {status:?}")), out);
            }
        }
    }

    fn told(&mut self, method: &str, params: &Value, out: &mut ProtocolOutput) {
        let (thread, turn) = (text_of(params, "threadId"), text_of(params, "turnId"));
        match method {
            "turn/started" if thread == self.thread => self.has_begun(text_of(&params["turn"], "id"), out),
            "turn/completed" => {
                if self.is_ours(thread, text_of(&params["turn"], "id")) {
                    self.ending_is(&params["turn"], out);
                }
            }
            "thread/tokenUsage/updated" => self.has_used(params, out),
            "serverRequest/resolved" => {
                let question = params["requestId"].to_string();
                if self.questions.remove(&question).is_some() {
                    out.event(AgentEvent::Withdrawn { question });
                }
            }
            "warning" => self.warned(text_of(params, "message"), "", out),
            "guardianWarning" => self.notice(text_of(params, "message"), "", out),
            "configWarning" | "deprecationNotice" => {
                self.warned(text_of(params, "summary"), text_of(params, "details"), out);
            }
            "error" if params["willRetry"] == true || self.turn.is_none() => {
                let error = &params["error"];
                self.notice(text_of(error, "message"), text_of(error, "additionalDetails"), out);
            }
            // `turn/completed` says it again.
            "error" => {}
            "mcpServer/startupStatus/updated" => {
                if text_of(params, "status") == "failed" {
                    let words = format!("tool server {} did not start", text_of(params, "name"));
                    self.notice(&words, text_of(params, "error"), out);
                }
            }
            "model/rerouted" => {
                let words = format!("codex went on with model {}", text_of(params, "toModel"));
                self.notice(&words, "", out);
            }
            _ if method.starts_with("item/") || method == "turn/plan/updated" => {
                if self.is_ours(thread, turn) {
                    self.does(method, params, out);
                }
            }
            _ if CHATTER.contains(&method) => {}
            _ => {
                let raw = json!({"method": method, "params": params}).to_string();
                out.event(AgentEvent::Other { raw: bounded(&raw, DETAIL_BYTES_MAX) });
            }
        }
    }

    /// Its doings in the turn that runs.
    fn does(&mut self, method: &str, params: &Value, out: &mut ProtocolOutput) {
        let Some(Turn { items, .. }) = &mut self.turn else { return };
        let (item, delta) = (text_of(params, "itemId"), text_of(params, "delta"));
        let events = match method {
            "item/started" => items.started(&params["item"]),
            "item/completed" => items.completed(&params["item"]),
            "item/agentMessage/delta" | "item/plan/delta" => items.said(item, delta),
            "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta" => items.thought(item, delta),
            "item/commandExecution/outputDelta" => items.printed(item, delta),
            "item/mcpToolCall/progress" => items.printed(item, text_of(params, "message")),
            "turn/plan/updated" => vec![items.other_than_text(plan(params))],
            _ if CHATTER.contains(&method) => Vec::new(),
            _ => {
                let raw = json!({"method": method, "params": params}).to_string();
                vec![AgentEvent::Other { raw: bounded(&raw, DETAIL_BYTES_MAX) }]
            }
        };
        events.into_iter().for_each(|event| out.event(event));
    }

    fn notice(&mut self, words: &str, more: &str, out: &mut ProtocolOutput) {
        self.beside_text(AgentEvent::Notice { text: joined(words, more) }, out);
    }

    /// Codex warns of its model and of its settings in each turn.
    fn warned(&mut self, words: &str, more: &str, out: &mut ProtocolOutput) {
        self.beside_text(AgentEvent::Warned { text: joined(words, more) }, out);
    }

    fn beside_text(&mut self, event: AgentEvent, out: &mut ProtocolOutput) {
        out.event(match &mut self.turn {
            Some(turn) => turn.items.other_than_text(event),
            None => event,
        });
    }

    /// Codex says sums over the conversation; we want what came since the last time. After a `thread/resume` the sum
    /// until then is not known, and codex repeats the last figures when an answer was cut: then only what follows
    /// something done can be new.
    fn has_used(&mut self, params: &Value, out: &mut ProtocolOutput) {
        let (thread, usage) = (text_of(params, "threadId"), &params["tokenUsage"]);
        let is_now =
            self.turn.is_some() && (thread != self.thread || self.is_ours(thread, text_of(params, "turnId")));
        let totals = totals(&usage["total"]);
        let before = self.totals.get(thread).copied();
        if before.is_some() || self.totals.len() < COUNTED_MAX {
            self.totals.insert(thread.to_owned(), totals);
        }
        let Some(turn) = self.turn.as_ref().filter(|_| is_now) else { return };
        let used = match before {
            // Sums never shrink, unless codex began to count anew.
            Some(before) if before.input <= totals.input && before.output <= totals.output => Totals {
                input: totals.input - before.input,
                output: totals.output - before.output,
                cached: totals.cached.saturating_sub(before.cached),
            },
            None if thread == self.thread && !turn.items.has_acted => return,
            _ => self::totals(&usage["last"]),
        };
        if used.input == 0 && used.output == 0 {
            return;
        }
        let window = usage["last"]["totalTokens"].as_u64().zip(usage["modelContextWindow"].as_u64());
        out.event(AgentEvent::Usage(Usage {
            input_tokens: used.input,
            output_tokens: used.output,
            cached_tokens: used.cached,
            cost_micros: None,
            window: window.filter(|_| thread == self.thread),
        }));
    }

    /// Codex asks something. What nobody can answer is answered at once, so that it never waits in vain.
    fn asked(&mut self, method: &str, id: &Value, params: &Value, out: &mut ProtocolOutput) {
        let asked = if self.turn.is_some() && self.questions.len() < QUESTIONS_MAX {
            self.question(method, params)
        } else {
            None
        };
        let Some((tool, detail, yes, no)) = asked else {
            let message = format!("nobody here can answer {}", bounded(method, 100));
            self.notice(&format!("codex asked something: {message}"), &words_in(params), out);
            return out.send_line(&json!({"id": id, "error": {"code": NO_METHOD, "message": message}}));
        };
        let question = id.to_string();
        self.questions.insert(question.clone(), OpenQuestion { id: id.clone(), yes, no });
        let (detail, form) = (bounded(&detail, DETAIL_BYTES_MAX), Form::Permission);
        let event = AgentEvent::Asked { question, tool, kind: String::new(), detail, form };
        out.event(match &mut self.turn {
            Some(turn) => turn.items.other_than_text(event),
            None => event,
        });
    }

    /// The question that a person can allow or refuse: the tool, what it is about, and what to answer. None of these answers has room
    /// for a reason.
    fn question(&self, method: &str, params: &Value) -> Option<(String, String, Value, Value)> {
        let decision = |word: &str| json!({"decision": word});
        let item = self.turn.as_ref().map_or("", |turn| turn.items.about(text_of(params, "itemId")));
        let reason = text_of(params, "reason");
        match method {
            "item/commandExecution/requestApproval" => {
                let command = Some(text_of(params, "command")).filter(|command| !command.is_empty());
                let host = text_of(&params["networkApprovalContext"], "host");
                let host = if host.is_empty() { String::new() } else { format!("reaches {host}") };
                let detail = lines(&[command.unwrap_or(item), &host, reason]);
                Some(("shell".to_owned(), detail, decision("accept"), decision("decline")))
            }
            "item/fileChange/requestApproval" => {
                let root = text_of(params, "grantRoot");
                let root = if root.is_empty() { String::new() } else { format!("may write below {root}") };
                let detail = lines(&[item, &root, reason]);
                Some(("apply_patch".to_owned(), detail, decision("accept"), decision("decline")))
            }
            "item/permissions/requestApproval" => {
                let wanted = &params["permissions"];
                let detail = lines(&[&wanted.to_string(), reason]);
                let yes = json!({"permissions": wanted, "scope": "turn"});
                Some(("permissions".to_owned(), detail, yes, json!({"permissions": {}, "scope": "turn"})))
            }
            // A form that wants something filled in cannot be answered with yes or no.
            "mcpServer/elicitation/request" if !wants_words(&params["requestedSchema"]) => {
                let detail = lines(&[text_of(params, "message"), text_of(params, "url")]);
                let tool = bounded(text_of(params, "serverName"), DETAIL_BYTES_MAX);
                let yes = json!({"action": "accept", "content": {}});
                Some((tool, detail, yes, json!({"action": "decline", "content": null})))
            }
            _ => None,
        }
    }
}

impl AgentProtocol for CodexProtocol {
    fn open(&mut self, out: &mut ProtocolOutput) {
        let params = json!({
            "clientInfo": {"name": "homing", "title": "Homing", "version": env!("CARGO_PKG_VERSION")},
            "capabilities": {"optOutNotificationMethods": &CHATTER[..]},
        });
        self.ask("initialize", params, RequestPurpose::Initialize, out);
    }

    fn read(&mut self, line: &str, out: &mut ProtocolOutput) {
        let other = || AgentEvent::Other { raw: bounded(line, DETAIL_BYTES_MAX) };
        let Ok(value) = serde_json::from_str::<Value>(line) else { return out.event(other()) };
        match (value["method"].as_str(), value.get("id")) {
            (Some(method), Some(id)) => self.asked(method, id, &value["params"], out),
            (Some(method), None) => self.told(method, &value["params"], out),
            (None, Some(id)) => {
                if let Some(waiting) = self.waiting.remove(&id.to_string()) {
                    self.answered(waiting, &value, out);
                }
            }
            (None, None) => out.event(other()),
        }
    }

    /// Two lines have to be understood however long they are: that a conversation is open, for codex shows the whole of
    /// the first message with it, and that a turn is over, for codex repeats the answer.
    fn read_ends(&mut self, head: &str, tail: &str, out: &mut ProtocolOutput) {
        let answer = format!("{{\"id\":{},\"result\":{{\"thread\":{{\"id\":\"", self.numbers);
        if let Some(rest) = head.strip_prefix(&answer) {
            let is_awaited = self.waiting.remove(&self.numbers.to_string());
            let Some(RequestPurpose::Thread) = is_awaited else { return };
            let thread = rest.split('"').next().unwrap_or_default();
            let directory = json_text_after(rest, "\"cwd\":").unwrap_or_default();
            let mut opened = json!({"thread": {"id": thread}, "cwd": directory});
            // What it may do stands after the first message, which is what makes the line so long.
            for key in MODE_KEYS {
                opened[key] = json_after(tail, &format!("\"{key}\":")).unwrap_or_default();
            }
            return self.opened(&opened, out);
        }
        let about = |key: &str| json_text_after(head, key).unwrap_or_default();
        if head.starts_with("{\"method\":\"turn/completed\"") {
            if self.is_ours(&about("\"threadId\":"), &about("\"turn\":{\"id\":")) {
                let params = json!({"threadId": self.thread, "limit": 1, "itemsView": "notLoaded"});
                self.ask_as(json!("ending"), "thread/turns/list", params, RequestPurpose::Ending, out);
            }
            return;
        }
        // Our own message comes back, and words that came in pieces are said again as a whole.
        let is_repetition = ["userMessage", "agentMessage"].contains(&about("\"item\":{\"type\":").as_str());
        if !is_repetition {
            let what = bounded(&about("\"method\":"), 100);
            self.notice(&format!("codex printed a line that is too long to be read ({what})"), "", out);
        }
    }

    /// It has no form for documents.
    fn takes(&self, kind: AttachmentKind) -> bool {
        kind == AttachmentKind::Image
    }

    fn hand(&mut self, message: &Message, out: &mut ProtocolOutput) {
        self.turn = Some(Turn::default());
        let input = blocks(message, |attached| json!({"type": "image", "url": as_url(attached)}));
        let mut params = json!({"threadId": self.thread, "input": input});
        if let Some(model) = &self.beginning.launch.model {
            params["model"] = json!(model);
        }
        self.ask("turn/start", params, RequestPurpose::Turn, out);
    }

    /// Codex wants to know which turn is meant, and refuses another.
    fn steer(&mut self, message: &Message, out: &mut ProtocolOutput) {
        let Some(turn) = &mut self.turn else { return out.steered(Steered::TooLate) };
        if turn.id.is_empty() {
            turn.added = Some(message.clone());
            return;
        }
        let input = blocks(message, |attached| json!({"type": "image", "url": as_url(attached)}));
        let params = json!({"threadId": self.thread, "input": input, "expectedTurnId": turn.id});
        self.ask("turn/steer", params, RequestPurpose::Steer, out);
    }

    fn answer(&mut self, question: &str, answer: &QuestionAnswer, out: &mut ProtocolOutput) {
        let Some(OpenQuestion { id, yes, no }) = self.questions.remove(question) else { return };
        let result = match answer {
            QuestionAnswer::Allow => yes,
            _ => no,
        };
        out.send_line(&json!({"id": id, "result": result}));
    }

    /// Codex takes an empty id for the turn that is just beginning.
    fn interrupt(&mut self, out: &mut ProtocolOutput) {
        let Some(turn) = &mut self.turn else { return };
        turn.is_interrupting = true;
        let params = json!({"threadId": self.thread, "turnId": turn.id});
        self.ask("turn/interrupt", params, RequestPurpose::Interrupt, out);
    }

    fn again(&mut self, launch: &Launch, out: &mut ProtocolOutput) {
        self.beginning.launch = launch.clone();
        self.turn = None;
        self.questions.clear();
        out.about(Some(&self.about));
        out.event(AgentEvent::Ready { native: Some(self.native()) });
    }
}

/// The mode it says it is in, if that is not the one.
fn other_mode(wanted: Mode, opened: &Value) -> Option<String> {
    match Mode::seen(opened) {
        Ok(seen) if seen == wanted => None,
        Ok(seen) => Some(seen.name().to_owned()),
        Err(other) => Some(other.to_string()),
    }
}

fn totals(figures: &Value) -> Totals {
    let figure = |key: &str| figures[key].as_u64().unwrap_or_default();
    Totals {
        input: figure("inputTokens"),
        output: figure("outputTokens"),
        cached: figure("cachedInputTokens"),
    }
}

/// Those that say something, a line each.
fn lines(texts: &[&str]) -> String {
    texts.iter().filter(|text| !text.is_empty()).copied().collect::<Vec<_>>().join("\n")
}

/// True if a form has fields.
fn wants_words(form: &Value) -> bool {
    form["properties"].as_object().is_some_and(|fields| !fields.is_empty())
}

fn joined(words: &str, more: &str) -> String {
    let text = if more.is_empty() { words.to_owned() } else { format!("{words}: {more}") };
    bounded(&text, TEXT_BYTES_MAX)
}

/// The subject of a question that we cannot pass on.
fn words_in(params: &Value) -> String {
    let questions = params["questions"].as_array().into_iter().flatten().take(CHOICES_MAX);
    let asked: Vec<&str> = questions.map(|question| text_of(question, "question")).collect();
    bounded(&lines(&[text_of(params, "message"), &asked.join("\n")]), DETAIL_BYTES_MAX)
}

/// The first text after these characters, in the beginning of a line that cannot be read as a whole.
fn json_text_after(head: &str, key: &str) -> Option<String> {
    let (_, rest) = head.split_once(key)?;
    serde_json::Deserializer::from_str(rest).into_iter::<String>().next()?.ok()
}

/// The value after the last of these characters, in the end of a line that cannot be read as a whole. In a text they would not
/// be the same, because its quotes are escaped.
fn json_after(tail: &str, key: &str) -> Option<Value> {
    let (_, rest) = tail.rsplit_once(key)?;
    serde_json::Deserializer::from_str(rest).into_iter::<Value>().next()?.ok()
}

#[cfg(test)]
#[path = "replay.rs"]
mod replay;

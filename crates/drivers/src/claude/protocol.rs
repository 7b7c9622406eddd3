//! The talk with claude: one JSON object per line, both ways. Pure.
//!
//! We say `initialize` first, ask which model it uses if one was chosen, and are ready when that is answered; an id that
//! claude does not know it complains about before that. A message has a UUID, made of its id: claude passes over one it
//! has seen, so a repeat cannot act twice. The turn is over with the `result` that names our message, and with those of
//! what was added to it meanwhile: claude takes that into the turn between two tools, or else does it afterwards with a
//! `result` of its own. `command_lifecycle` says when claude begins with it and stands in for a `result` that was too long
//! to be read; versions that do not say it are understood as well.

use std::collections::BTreeMap;

use agent::{
    About, AgentEvent, Attachment, AttachmentKind, CHOICES_MAX, Choice, DETAIL_BYTES_MAX, Form, Launch,
    Message, NATIVE_BYTES_MAX, QuestionAnswer, Steered, Trouble, bounded,
};
use kernel::{MessageId, Native};
use serde_json::{Value, json};
use uuid::Uuid;

use super::content::{Content, other};
use super::trouble;
use super::usage::Costs;
use crate::agent_protocol::{AgentProtocol, ProtocolOutput};
use crate::attached::{blocks, in_base64};
use crate::plans::{other_mode, plan_in};
use crate::survey::{SurveyAnswers, SurveyPart, Surveys};

/// Names of our own requests.
const INITIALIZE: &str = "homing-initialize";
const INTERRUPT: &str = "homing-interrupt";
const SETTINGS: &str = "homing-settings";
const KNOCK: &str = "homing-knock";
/// The longest name or description of something that can be chosen.
const NAME_BYTES_MAX: usize = 256;
/// Questions that may be open at once. More are answered for nobody.
const QUESTIONS_MAX: usize = 20;

/// The tool by which it asks a person something.
const ASKS: &str = "AskUserQuestion";
/// Names of models that mean whatever claude thinks best.
const ANY_MODEL: [&str; 3] = ["default", "best", "opusplan"];

/// Lines that say only that something goes on. Nothing in them is for people, and some come many times a second.
const CHATTER: [&str; 5] =
    ["keep_alive", "tool_progress", "tool_use_summary", "prompt_suggestion", "transcript_mirror"];
/// The kind of a background task that is a command.
const COMMAND_TASK: &str = "local_bash";
/// Background tasks that are named in a notice.
const TASKS_SHOWN: usize = 10;
/// The same, of type `system`: steps of tasks and hooks whose outcome is told otherwise, and states of its own screen.
const SYSTEM_CHATTER: [&str; 12] = [
    "hook_progress",
    "hook_response",
    "hook_started",
    "session_state_changed",
    "session_title_changed",
    "stop_hook_summary",
    "task_progress",
    "task_started",
    "task_updated",
    "thinking_tokens",
    "turn_duration",
    "turn_starting",
];
/// The fields in which lines of type `system` have words for people.
const WORDS_FOR_PEOPLE: [&str; 4] = ["message", "content", "text", "summary"];

/// The conversation that a process was started for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Conversation {
    /// One that we name and claude makes.
    New(Uuid),
    /// One that claude has.
    Known(Uuid),
    /// One that we name and claude makes, with everything in it that another one has.
    Fork { of: Uuid, id: Uuid },
}

pub(super) struct ClaudeProtocol {
    launch: Launch,
    place: String,
    /// The conversation's id: ours at first, then whatever claude says.
    id: String,
    phase: Phase,
    about: About,
    content: Content,
    costs: Costs,
    /// The questions that claude waits for, by its own key, with the input of the tool it asks for.
    questions: BTreeMap<String, Value>,
    surveys: Surveys,
    /// The models that their names stand for.
    models: BTreeMap<String, String>,
    /// It has told us how a message fares, so it always will.
    tells_lifecycle: bool,
    has_answered: bool,
    rest: IdleState,
}

enum Phase {
    /// It has not answered `initialize`, or has not said which model it uses.
    Opening,
    /// It waits for a message.
    Waiting,
    Working(Turn),
}

struct Turn {
    /// Our message, as claude knows it.
    uuid: String,
    /// The words that were added to it and are not done yet.
    added: Vec<String>,
    /// The words that were added last, if claude has not yet said that it has it.
    unheard: Option<String>,
    /// Its own `result`, which waits for those.
    is_answered: bool,
    /// Claude says that it has begun with it.
    has_begun: bool,
    is_interrupted: bool,
    /// The kind of failure its last message was, if it was one.
    error: Option<String>,
}

/// Why a process that waits would not do the same as a new one.
#[derive(Default)]
struct IdleState {
    /// True if commands that go on in the background are kept with the process.
    keeps_commands: bool,
    /// Tasks that go on in the background. Each would make it begin a turn of its own.
    tasks: Vec<BackgroundTask>,
    /// The mode it was started in, and whether it has left that.
    mode: Option<String>,
    has_other_mode: bool,
    /// It does something although nobody has said anything.
    is_restless: bool,
}

/// A task that goes on in the background.
struct BackgroundTask {
    name: String,
    /// True if it is a command, and not a helper: a helper works on, whether or not anybody has said anything.
    is_command: bool,
}

impl ClaudeProtocol {
    pub(super) fn new(launch: Launch, place: String, conversation: Conversation, modes: Vec<Choice>) -> Self {
        let (Conversation::New(id) | Conversation::Known(id) | Conversation::Fork { id, .. }) = &conversation;
        Self {
            id: id.to_string(),
            launch,
            place,
            phase: Phase::Opening,
            about: About { modes, ..About::default() },
            content: Content::default(),
            costs: Costs::new(matches!(conversation, Conversation::New(_))),
            questions: BTreeMap::new(),
            surveys: Surveys::default(),
            models: BTreeMap::new(),
            tells_lifecycle: false,
            has_answered: true,
            rest: IdleState::default(),
        }
    }

    /// With commands that go on in the background kept with the process, or not.
    pub(super) fn keeping_commands(mut self, keeps_commands: bool) -> Self {
        self.rest.keeps_commands = keeps_commands;
        self
    }

    fn native(&self) -> Native {
        Native::new(self.id.clone()).at(self.place.clone())
    }

    /// True if what it says now is about our message. Before it begins with ours it may finish something of its own.
    fn is_ours(&self) -> bool {
        match &self.phase {
            Phase::Opening => true,
            Phase::Waiting => false,
            Phase::Working(turn) => turn.has_begun || !self.tells_lifecycle,
        }
    }

    fn answered(&mut self, response: &Value, out: &mut ProtocolOutput) {
        match (response["request_id"].as_str(), &self.phase) {
            (Some(INITIALIZE), Phase::Opening) if response["subtype"] == "success" => {
                self.opened(&response["response"], out);
            }
            (Some(INITIALIZE), Phase::Opening) => {
                let words = response["error"].as_str().unwrap_or("without a reason");
                out.event(AgentEvent::Failed(Trouble::refused(format!(
                    "claude does not let itself be driven, is it a version we know? ({words})"
                ))));
            }
            (Some(SETTINGS), Phase::Opening) => self.uses(&response["response"]["applied"]["model"], out),
            (Some(INITIALIZE | INTERRUPT | SETTINGS), _) => {}
            // A yes or a no, it is there.
            (Some(KNOCK), _) => self.has_answered = true,
            _ => other(response, out),
        }
    }

    fn opened(&mut self, said: &Value, out: &mut ProtocolOutput) {
        let models = said["models"].as_array();
        let stands_for = |it: &Value| Some((it["value"].as_str()?.to_owned(), name(&it["resolvedModel"])));
        self.models = models.into_iter().flatten().filter_map(stands_for).take(CHOICES_MAX).collect();
        let described = |it: &Value| choice(&it["value"], &it["description"]);
        self.about.models = models.into_iter().flatten().filter_map(described).take(CHOICES_MAX).collect();
        let commands = said["commands"].as_array();
        let described = |it: &Value| choice(&it["name"], &it["description"]);
        self.about.commands =
            commands.into_iter().flatten().filter_map(described).take(CHOICES_MAX).collect();
        self.about.version = name(&said["claude_code_version"]);
        self.heard_mode(&said["current_permission_mode"]);
        if let Some(trouble) = self.acts_unasked() {
            return out.event(AgentEvent::Failed(trouble));
        }
        match &self.launch.model {
            Some(_) => request(SETTINGS, "get_settings", out),
            None => self.be_ready(out),
        }
    }

    /// The refusal where it does not say that it came up in a mode that it may have: settings of its own may name one.
    fn acts_unasked(&self) -> Option<Trouble> {
        let mode = self.about.mode.as_str();
        let is_offered = |mode: &str| self.about.modes.iter().any(|it| it.name == mode);
        let asks = super::MODES.iter().any(|(name, asks, _)| *name == mode && *asks);
        if asks || is_offered(mode) || is_offered(super::BYPASS) {
            return None;
        }
        Some(Trouble::refused(format!(
            "claude says that it came up in the mode {mode:?}, in which it acts without asking as far as anybody knows, and this agent \
             is not set up for that; set `bypass = true` for it, or take that mode out of claude's own settings (permissions.defaultMode)"
        )))
    }

    /// Notes the model it is going to use. Versions that do not say so beforehand say it when a turn begins.
    fn uses(&mut self, model: &Value, out: &mut ProtocolOutput) {
        self.about.model = name(model);
        match self.other_model() {
            Some(trouble) => out.event(AgentEvent::Failed(trouble)),
            None => self.be_ready(out),
        }
    }

    fn be_ready(&mut self, out: &mut ProtocolOutput) {
        self.phase = Phase::Waiting;
        out.about(Some(&self.about));
        out.event(AgentEvent::Ready { native: Some(self.native()) });
    }

    /// It says that it uses another model than was chosen.
    fn other_model(&self) -> Option<Trouble> {
        let (chosen, used) = (self.launch.model.as_deref()?, self.about.model.as_str());
        let is_one = used.is_empty() || is_model(chosen, used) || self.stands_for(chosen, used);
        (!is_one).then(|| Trouble::other_model(chosen, used))
    }

    fn stands_for(&self, chosen: &str, used: &str) -> bool {
        self.models.get(chosen).is_some_and(|model| !model.is_empty() && is_model(model, used))
    }

    /// The description it gives of itself when it begins a turn.
    fn init(&mut self, said: &Value, out: &mut ProtocolOutput) {
        self.heard_id(&said["session_id"], out);
        let before = self.about.clone();
        self.about.version = name(&said["claude_code_version"]);
        self.about.model = name(&said["model"]);
        // Never cut: it is compared with where it should be.
        self.about.directory = said["cwd"].as_str().unwrap_or_default().to_owned();
        self.heard_mode(&said["permissionMode"]);
        if before != self.about {
            out.about(Some(&self.about));
        }
        if let Some(trouble) = self.other_model() {
            self.phase = Phase::Waiting;
            self.rest.is_restless = true;
            out.event(AgentEvent::Failed(trouble));
        }
    }

    fn heard_mode(&mut self, mode: &Value) {
        if !mode.is_string() {
            return;
        }
        self.about.mode = name(mode);
        let first = self.rest.mode.get_or_insert_with(|| self.about.mode.clone());
        self.rest.has_other_mode = *first != self.about.mode;
    }

    /// The conversation's id is read again each turn: claude's own commands may begin a new one.
    fn heard_id(&mut self, id: &Value, out: &mut ProtocolOutput) {
        let Some(id) = id.as_str().filter(|id| Uuid::try_parse(id).is_ok()) else { return };
        if id != self.id {
            self.id = id.to_owned();
            out.event(AgentEvent::Native(self.native()));
        }
    }

    fn system(&mut self, said: &Value, out: &mut ProtocolOutput) {
        let notice = |text: String, out: &mut ProtocolOutput| {
            out.event(AgentEvent::Notice { text: bounded(&text, DETAIL_BYTES_MAX) });
        };
        match said["subtype"].as_str().unwrap_or_default() {
            "init" => self.init(said, out),
            "status" => {
                let before = self.about.mode.clone();
                self.heard_mode(&said["permissionMode"]);
                if !before.is_empty() && before != self.about.mode {
                    out.event(other_mode(&self.about.mode, self.rest.mode.as_deref().unwrap_or_default()));
                }
            }
            "background_tasks_changed" => {
                let tasks = said["tasks"].as_array().map_or(&[][..], Vec::as_slice);
                let task = |task: &Value| BackgroundTask {
                    name: name(&task["description"]),
                    is_command: task["task_type"] == COMMAND_TASK,
                };
                self.rest.tasks = tasks.iter().map(task).collect();
            }
            "api_retry" => notice(retry(said), out),
            "compact_boundary" => {
                notice(
                    "claude has summed up the conversation to make room in the model's window".to_owned(),
                    out,
                );
            }
            subtype if SYSTEM_CHATTER.contains(&subtype) => {}
            subtype => match WORDS_FOR_PEOPLE.iter().find_map(|field| said[*field].as_str()) {
                Some(words) => notice(format!("{}: {words}", bounded(subtype, NAME_BYTES_MAX)), out),
                None => other(said, out),
            },
        }
    }

    fn assistant(&mut self, said: &Value, out: &mut ProtocolOutput) {
        // What it says about a failure comes again with the `result`, and is no answer.
        let error = said["error"].as_str();
        if let (Some(error), Phase::Working(turn)) = (error, &mut self.phase) {
            turn.error = Some(bounded(error, NAME_BYTES_MAX));
            return;
        }
        self.content.assistant(said, out);
    }

    /// Claude wants something of us and waits. Nothing may be left without an answer.
    fn requested(&mut self, said: &Value, out: &mut ProtocolOutput) {
        let Some(id) = said["request_id"].as_str().filter(|id| id.len() <= NATIVE_BYTES_MAX) else {
            return other(said, out);
        };
        let request = &said["request"];
        if request["subtype"] != "can_use_tool" || !self.is_ours() || self.questions.len() >= QUESTIONS_MAX {
            let response = json!({"subtype": "error", "request_id": id, "error": "nobody here can do that"});
            out.send_line(&json!({"type": "control_response", "response": response}));
            return other(said, out);
        }
        let (tool, input) = (&request["tool_name"], &request["input"]);
        if *tool == ASKS && self.survey(id, input, out) {
            return;
        }
        self.questions.insert(id.to_owned(), input.clone());
        out.event(AgentEvent::Asked {
            question: id.to_owned(),
            tool: name(tool),
            kind: String::new(),
            // A person reads it before they say yes.
            detail: plan_in(input).unwrap_or_else(|| bounded(&input.to_string(), DETAIL_BYTES_MAX)),
            form: Form::Permission,
        });
    }

    /// Asks a person what claude wants to know.
    fn survey(&mut self, id: &str, input: &Value, out: &mut ProtocolOutput) -> bool {
        let questions = input["questions"].as_array().into_iter().flatten();
        let parts = questions.map(|it| SurveyPart::read(&it["question"], &it["options"])).collect();
        self.surveys.ask(id, ASKS, json!({"id": id, "input": input}), parts, out)
    }

    fn withdrawn(&mut self, said: &Value, out: &mut ProtocolOutput) {
        let id = said["request_id"].as_str().unwrap_or_default();
        self.surveys.withdraw(id, out);
        if self.questions.remove(id).is_some() {
            out.event(AgentEvent::Withdrawn { question: id.to_owned() });
        }
    }

    /// The fate of one message.
    fn lifecycle(&mut self, said: &Value, out: &mut ProtocolOutput) {
        self.tells_lifecycle = true;
        let Phase::Working(turn) = &mut self.phase else { return };
        if said["command_uuid"] != turn.uuid.as_str() {
            return self.lifecycle_of_added(said, out);
        }
        match said["state"].as_str() {
            Some("started") => {
                turn.has_begun = true;
                if turn.is_interrupted {
                    turn.interrupt(out); // The first one came before there was anything to interrupt.
                }
            }
            // The `result` comes first. If it has not, it was too long, or there is none.
            Some("completed") if turn.is_answered => {}
            Some("completed") if turn.has_begun => self.is_answered(None, String::new(), out),
            Some("completed") => {
                let words = "claude has had this message before, and passes it over";
                self.finish(Some(Trouble::refused(words)), String::new(), out);
            }
            Some("cancelled") => {
                let words = "claude has dropped the message without a word";
                self.finish(Some(Trouble::transient(words)), String::new(), out);
            }
            _ => {}
        }
    }

    /// The fate of something that was added to the turn. Whatever is about neither is the end of an earlier one.
    fn lifecycle_of_added(&mut self, said: &Value, out: &mut ProtocolOutput) {
        let Phase::Working(turn) = &mut self.phase else { return };
        let Some(at) = turn.added.iter().position(|uuid| said["command_uuid"] == uuid.as_str()) else {
            return;
        };
        match said["state"].as_str() {
            Some("queued" | "started") => {
                if turn.unheard.take_if(|uuid| *uuid == turn.added[at]).is_some() {
                    out.steered(Steered::Taken);
                }
                if turn.is_answered && said["state"] == "started" {
                    // Its words stand apart from those of the message before.
                    out.event(AgentEvent::Text { text: "\n\n".to_owned() });
                }
            }
            Some("completed" | "cancelled") => {
                let uuid = turn.added.remove(at);
                if turn.unheard.take_if(|unheard| *unheard == uuid).is_some() {
                    out.steered(Steered::TooLate);
                }
                if turn.is_answered {
                    self.is_answered(None, String::new(), out);
                }
            }
            _ => {}
        }
    }

    /// Our message, or something that was added to it, is done. The turn is over when all of it is.
    fn is_answered(&mut self, trouble: Option<Trouble>, reason: String, out: &mut ProtocolOutput) {
        let Phase::Working(turn) = &mut self.phase else { return };
        turn.is_answered = true;
        if trouble.is_some() || turn.is_interrupted || turn.added.is_empty() {
            self.finish(trouble, reason, out);
        }
    }

    fn result(&mut self, said: &Value, out: &mut ProtocolOutput) {
        let trouble = |error: Option<&str>| trouble::of_result(said, error, &self.launch, &self.place);
        let is_error = said["is_error"].as_bool().unwrap_or(true);
        match &self.phase {
            // Before it is ready there is nothing it could have done.
            Phase::Opening if is_error => out.event(AgentEvent::Failed(trouble(None))),
            Phase::Working(turn) if self.is_about(turn, said) => {
                let trouble = is_error.then(|| trouble(turn.error.as_deref()));
                self.heard_id(&said["session_id"], out);
                if !is_error {
                    self.content.answer(said["result"].as_str().unwrap_or_default(), out);
                }
                let usage = self.costs.add(said, &self.about.model, self.content.tokens());
                out_usage(usage, out);
                let reason = said["stop_reason"].as_str().or(said["terminal_reason"].as_str());
                let reason = bounded(reason.unwrap_or_default(), NAME_BYTES_MAX);
                self.forget_added(said);
                // What was added may have an answer of its own.
                self.content = Content::default();
                self.is_answered(trouble, reason, out);
            }
            Phase::Working(_) => {
                let text = "claude has finished something of its own before this message".to_owned();
                out.event(AgentEvent::Notice { text });
            }
            Phase::Opening => other(said, out),
            Phase::Waiting => {}
        }
    }

    fn is_about(&self, turn: &Turn, said: &Value) -> bool {
        let named = said["user_message_uuids"].as_array().map_or(&[][..], Vec::as_slice);
        match (named, said["user_message_uuid"].as_str()) {
            ([], None) => turn.has_begun || !self.tells_lifecycle,
            ([], Some(one)) => turn.has(one),
            (named, _) => named.iter().filter_map(Value::as_str).any(|uuid| turn.has(uuid)),
        }
    }

    /// The words that were added and are done with this result.
    fn forget_added(&mut self, said: &Value) {
        let Phase::Working(turn) = &mut self.phase else { return };
        let named = said["user_message_uuids"].as_array().map_or(&[][..], Vec::as_slice);
        turn.added.retain(|uuid| {
            said["user_message_uuid"] != uuid.as_str() && !named.iter().any(|it| *it == uuid.as_str())
        });
    }

    /// The turn is over: well, or with that trouble, or because we wanted it so.
    fn finish(&mut self, trouble: Option<Trouble>, reason: String, out: &mut ProtocolOutput) {
        for question in std::mem::take(&mut self.questions).into_keys() {
            out.event(AgentEvent::Withdrawn { question });
        }
        self.surveys.withdraw_all(out);
        if trouble.is_none() {
            self.tell_tasks(out);
        }
        let turn = std::mem::replace(&mut self.phase, Phase::Waiting);
        match trouble {
            Some(_) if matches!(turn, Phase::Working(Turn { is_interrupted: true, .. })) => out.interrupted(),
            Some(trouble) => out.event(AgentEvent::Failed(trouble)),
            None => out.event(AgentEvent::Finished { native: Some(self.native()), reason }),
        }
    }
}

impl IdleState {
    /// True if nothing in the background keeps the process from being kept.
    fn may_stay(&self) -> bool {
        self.tasks.iter().all(|task| self.keeps_commands && task.is_command)
    }
}

impl ClaudeProtocol {
    /// It works on something that nobody has asked it for. Where a command that was kept has ended, it is about to tell the model,
    /// and is interrupted before that answers: it finds the news in the next turn. One that goes on all the same is not kept.
    fn heard_idle(&mut self, kind: &str, said: &Value, out: &mut ProtocolOutput) {
        let begins = said["subtype"] == "init";
        if begins && self.rest.keeps_commands {
            request(INTERRUPT, "interrupt", out);
        } else if self.rest.keeps_commands {
            self.rest.is_restless |= kind == "assistant";
        } else {
            self.rest.is_restless |= begins || matches!(kind, "assistant" | "stream_event");
        }
    }

    /// Names what it has left running: that is ended with the turn, and with the process.
    fn tell_tasks(&self, out: &mut ProtocolOutput) {
        let IdleState { tasks, .. } = &self.rest;
        if self.rest.may_stay() {
            return;
        }
        let shown: Vec<&str> = tasks.iter().take(TASKS_SHOWN).map(|task| task.name.as_str()).collect();
        let more = match tasks.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let text = format!(
            "the turn is over, and what claude had left running in the background is ended with it: {}{more}",
            shown.join("; ")
        );
        out.event(AgentEvent::Notice { text: bounded(&text, DETAIL_BYTES_MAX) });
    }
}

impl AgentProtocol for ClaudeProtocol {
    fn open(&mut self, out: &mut ProtocolOutput) {
        request(INITIALIZE, "initialize", out);
    }

    fn read(&mut self, line: &str, out: &mut ProtocolOutput) {
        let Ok(said @ Value::Object(_)) = serde_json::from_str::<Value>(line) else {
            return out.event(AgentEvent::Other { raw: bounded(line, DETAIL_BYTES_MAX) });
        };
        let kind = said["type"].as_str().unwrap_or_default();
        match kind {
            "control_response" => return self.answered(&said["response"], out),
            "control_request" => return self.requested(&said, out),
            "control_cancel_request" => return self.withdrawn(&said, out),
            "command_lifecycle" => return self.lifecycle(&said, out),
            "result" => return self.result(&said, out),
            kind if CHATTER.contains(&kind) => return,
            _ => {}
        }
        if !self.is_ours() {
            // Some lines come at any time and mean nothing; these mean that it works on something.
            if matches!(self.phase, Phase::Waiting) {
                self.heard_idle(kind, &said, out);
            }
            if said["subtype"] == "background_tasks_changed" {
                self.system(&said, out);
            }
            return;
        }
        match kind {
            "system" => self.system(&said, out),
            "stream_event" => self.content.stream(&said, out),
            "assistant" => self.assistant(&said, out),
            "user" => self.content.user(&said, out),
            "rate_limit_event" => rate_limit(&said["rate_limit_info"], out),
            "conversation_reset" => {
                let text =
                    "claude has begun a new conversation, and remembers nothing of the old one".to_owned();
                out.event(AgentEvent::Notice { text });
            }
            _ => other(&said, out),
        }
    }

    fn takes(&self, kind: AttachmentKind) -> bool {
        kind != AttachmentKind::Other
    }

    fn hand(&mut self, message: &Message, out: &mut ProtocolOutput) {
        let uuid = say(message, out);
        self.content = Content::default();
        self.phase = Phase::Working(Turn::new(uuid));
    }

    /// It is taken for sure: if claude does not do it within the turn, it does it next, and the turn lasts until then.
    fn steer(&mut self, message: &Message, out: &mut ProtocolOutput) {
        match &mut self.phase {
            // A version that does not say how a message fares would leave us in the dark.
            Phase::Working(turn) if self.tells_lifecycle && !turn.is_interrupted => {
                let uuid = say(message, out);
                turn.added.push(uuid.clone());
                turn.unheard = Some(uuid);
            }
            _ => out.steered(Steered::TooLate),
        }
    }

    fn answer(&mut self, question: &str, answer: &QuestionAnswer, out: &mut ProtocolOutput) {
        if self.surveys.has(question) {
            if let Some(SurveyAnswers { about, answers }) = self.surveys.answer(question, answer) {
                let id = about["id"].as_str().unwrap_or_default();
                respond(id, &told(&about["input"], answers), out);
            }
            return;
        }
        let Some(input) = self.questions.remove(question) else { return };
        let answer = match answer {
            QuestionAnswer::Allow => json!({"behavior": "allow", "updatedInput": input}),
            QuestionAnswer::Deny { reason } if !reason.is_empty() => {
                json!({"behavior": "deny", "message": reason})
            }
            _ => json!({"behavior": "deny", "message": "denied"}),
        };
        respond(question, &answer, out);
    }

    fn interrupt(&mut self, out: &mut ProtocolOutput) {
        // One that works on nothing does not answer; it goes when it gets a signal.
        if let Phase::Working(turn) = &mut self.phase {
            turn.is_interrupted = true;
            turn.interrupt(out);
        }
    }

    fn gone(&mut self, complaint: &str) -> Option<Trouble> {
        trouble::of_complaint(complaint, &self.launch, &self.place)
    }

    fn may_be_kept(&self) -> bool {
        let IdleState { has_other_mode, is_restless, .. } = &self.rest;
        matches!(self.phase, Phase::Waiting) && self.rest.may_stay() && !has_other_mode && !is_restless
    }

    fn knock(&mut self, out: &mut ProtocolOutput) {
        self.has_answered = false;
        request(KNOCK, "mcp_status", out);
    }

    fn has_answered(&self) -> bool {
        self.has_answered
    }

    fn again(&mut self, launch: &Launch, out: &mut ProtocolOutput) {
        self.launch = launch.clone();
        out.about(Some(&self.about));
        out.event(AgentEvent::Ready { native: Some(self.native()) });
    }
}

impl Turn {
    fn new(uuid: String) -> Self {
        Self {
            uuid,
            added: Vec::new(),
            unheard: None,
            is_answered: false,
            has_begun: false,
            is_interrupted: false,
            error: None,
        }
    }

    /// Stops it, and whatever was added to it and has not begun.
    fn interrupt(&self, out: &mut ProtocolOutput) {
        let mut request = json!({"subtype": "interrupt"});
        if !self.added.is_empty() {
            request["cancel_queued"] = json!(true);
        }
        out.send_line(&json!({"type": "control_request", "request_id": INTERRUPT, "request": request}));
    }

    /// True if it is about that message, or that message was added to it.
    fn has(&self, uuid: &str) -> bool {
        self.uuid == uuid || self.added.iter().any(|added| added == uuid)
    }
}

/// Says a message; answers how claude knows it.
fn say(message: &Message, out: &mut ProtocolOutput) -> String {
    let uuid = uuid_of(message.id).to_string();
    let content = blocks(message, block);
    let said = json!({"role": "user", "content": content});
    out.send_line(&json!({"type": "user", "message": said, "uuid": uuid}));
    uuid
}

/// An image or a document as the model server takes it.
fn block(attached: &Attachment) -> Value {
    let source = json!({"type": "base64", "media_type": attached.media_type, "data": in_base64(attached)});
    match attached.kind {
        AttachmentKind::Image => json!({"type": "image", "source": source}),
        AttachmentKind::Pdf | AttachmentKind::Other => {
            json!({"type": "document", "source": source, "title": attached.name})
        }
    }
}

fn respond(id: &str, answer: &Value, out: &mut ProtocolOutput) {
    let response = json!({"subtype": "success", "request_id": id, "response": answer});
    out.send_line(&json!({"type": "control_response", "response": response}));
}

/// The answers to what claude asked, by its own words for each question.
fn told(input: &Value, answers: Vec<Option<String>>) -> Value {
    let questions = input["questions"].as_array().into_iter().flatten();
    let said: serde_json::Map<String, Value> = questions
        .zip(answers)
        .filter_map(|(it, answer)| Some((it["question"].as_str()?.to_owned(), json!(answer?))))
        .collect();
    if said.is_empty() {
        return json!({"behavior": "deny", "message": "nobody wants to answer that"});
    }
    let mut input = input.clone();
    input["answers"] = Value::Object(said);
    json!({"behavior": "allow", "updatedInput": input})
}

/// True if that is the model which was chosen. People say `sonnet`, and claude says the whole name.
fn is_model(chosen: &str, used: &str) -> bool {
    let base = |name: &str| name.trim_end_matches("[1m]").to_ascii_lowercase();
    let (short, whole) = (base(chosen), base(used));
    let is_alias = !short.contains(|letter: char| !letter.is_ascii_alphabetic());
    whole == short || ANY_MODEL.contains(&chosen) || (is_alias && whole.split('-').any(|part| part == short))
}

/// A message's id as claude wants it. The same each time.
fn uuid_of(message: MessageId) -> Uuid {
    uuid::Builder::from_random_bytes(message.bits().to_be_bytes()).into_uuid()
}

fn request(id: &str, subtype: &str, out: &mut ProtocolOutput) {
    let request = json!({ "subtype": subtype });
    out.send_line(&json!({"type": "control_request", "request_id": id, "request": request}));
}

fn out_usage(usage: Option<agent::Usage>, out: &mut ProtocolOutput) {
    if let Some(usage) = usage {
        out.event(AgentEvent::Usage(usage));
    }
}

fn retry(said: &Value) -> String {
    let why = match (said["error_status"].as_u64(), said["error"].as_str().unwrap_or("unknown")) {
        (Some(status), error) => format!("{status}, {}", bounded(error, NAME_BYTES_MAX)),
        (None, error) => format!("no answer, {}", bounded(error, NAME_BYTES_MAX)),
    };
    let number = |name: &str| said[name].as_u64().unwrap_or(0);
    let (attempt, most, wait_ms) = (number("attempt"), number("max_retries"), number("retry_delay_ms"));
    format!("the model server failed ({why}); claude tries again in {wait_ms} ms, {attempt} of {most}")
}

/// The used part of a limit is worth a word only when it matters.
fn rate_limit(said: &Value, out: &mut ProtocolOutput) {
    let status = said["status"].as_str().unwrap_or("unknown");
    if status != "allowed" {
        let kind = said["rateLimitType"].as_str().unwrap_or("unknown");
        let text = format!("rate limit of the account ({kind}): {status}");
        out.event(AgentEvent::Notice { text: bounded(&text, NAME_BYTES_MAX) });
    }
}

fn choice(value: &Value, description: &Value) -> Option<Choice> {
    // What is chosen is said back to claude as it stands, so it is never cut.
    let name = value.as_str().filter(|name| !name.is_empty() && name.len() <= NAME_BYTES_MAX)?.to_owned();
    let description = bounded(description.as_str().unwrap_or_default(), NAME_BYTES_MAX);
    Some(Choice { name, description })
}

fn name(value: &Value) -> String {
    bounded(value.as_str().unwrap_or_default(), NAME_BYTES_MAX)
}

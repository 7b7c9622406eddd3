//! The talk with opencode: what is asked of its server, in which order, and what its answers mean. Pure.
//!
//! The process prints where its server listens; everything else goes over the second line, in `SideOrder`s and what is
//! `SideReport`. First the server proves by the password that it is ours, then the conversation is made or asked for while
//! the lists of models, modes and commands are fetched, then it is `Ready`. A turn is one request that is answered
//! when the turn is over; after it the turn's messages are read once more, so that what the stream of events did not
//! tell, or not yet, is not lost. Nothing an answer contains is ever kept raw: some contain keys.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use agent::{
    AgentEvent, Attachment, AttachmentKind, CHOICES_MAX, Choice, DETAIL_BYTES_MAX, Form, Launch, Message,
    QuestionAnswer, Trouble, bounded,
};
use kernel::Native;
use serde_json::{Value, json};

use super::ids::is_id;
use super::permissions::acts_unasked;
use super::repository;
use super::side_channel::{HttpMethod, SideOrder, SideReport};
use super::turn::{KnownFacts, NAME_BYTES_MAX, SIGN_IN, Turn, TurnOutcome, by_words, complaint, text};
use crate::agent_protocol::{AgentProtocol, ProtocolOutput};
use crate::attached::{as_url, blocks};
use crate::running_agent::gone_if_here;
use crate::survey::{SurveyAnswers, SurveyPart, Surveys};

/// The words that the process prints before its server's address.
const LISTENING: &str = "opencode server listening on http://";
/// The messages of a turn that are read again at its end. A turn with more of them had its events.
const MESSAGES_MAX: u32 = 100;
/// The longest that a request may take, but for the turn itself; and one whose answer we can do without. A process that
/// has just started needs its time, which the turn would need as well.
const WAIT_MS_MAX: u64 = 60_000;
const LIST_WAIT_MS_MAX: u64 = 30_000;
/// The most questions, sub-sessions and models we can tell apart.
const KNOWN_MAX: usize = 10_000;

/// The setting of one process.
pub(super) struct ProcessSetting {
    pub(super) launch: Launch,
    /// Where the conversation's id means something.
    pub(super) place: String,
    /// The scope's directory without links in its path, which is how opencode calls it.
    pub(super) directory: String,
    /// The conversation; ours to choose if the launch has none.
    pub(super) session: String,
    /// Makes ids for messages.
    pub(super) mint: Box<dyn FnMut() -> String + Send>,
    /// The most that may be said in one turn.
    pub(super) said_bytes_max: u64,
    /// The times opencode may try again in a row. It would never end by itself.
    pub(super) tries_max: u64,
    /// It may act without asking.
    pub(super) bypasses: bool,
}

pub(super) struct OpenCodeProtocol {
    setting: ProcessSetting,
    phase: Phase,
    numbers: u64,
    /// The requests that were asked and are not answered yet.
    asked: BTreeMap<u64, RequestPurpose>,
    known: KnownFacts,
    is_listening: bool,
    /// Questions that opencode asked and nobody answered yet.
    questions: BTreeSet<String>,
    /// The questions of it that want more than a yes or a no.
    surveys: Surveys,
    /// The answers we gave.
    replied: BTreeSet<String>,
    /// It has listed its models, be it none.
    has_listed_models: bool,
    /// The refusal where its own rules do not show that it asks.
    unasked: Option<Trouble>,
}

enum Phase {
    /// Its address is not known.
    Starting,
    /// It is being asked what there is. The conversation may have to be moved here, once.
    Opening { is_moved: bool },
    /// It waits for us.
    Idle,
    /// It works on our message.
    Working(Turn),
    /// It tried again too often and was told to stop; what it is waiting for.
    GivenUp { words: String },
    /// It has answered; its messages are read once more.
    Settling(Turn, Result<Value, Trouble>),
    /// Nothing more can be had from it.
    Over,
}

/// The purpose of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RequestPurpose {
    Health,
    Session,
    Fork,
    Move,
    Models,
    Modes,
    Commands,
    Turn,
    Confirm,
    Messages,
    Questions,
    Surveys,
    Reply { question: String },
    Nothing,
}

impl RequestPurpose {
    fn wait_ms_max(&self) -> Option<u64> {
        match self {
            Self::Turn => None,
            Self::Models | Self::Modes | Self::Commands | Self::Messages => Some(LIST_WAIT_MS_MAX),
            _ => Some(WAIT_MS_MAX),
        }
    }
}

/// The answer to a request.
type Answered = Result<(u16, Value), String>;

impl OpenCodeProtocol {
    pub(super) fn new(setting: ProcessSetting) -> Self {
        Self {
            setting,
            phase: Phase::Starting,
            numbers: 0,
            asked: BTreeMap::new(),
            known: KnownFacts::default(),
            is_listening: false,
            questions: BTreeSet::new(),
            surveys: Surveys::default(),
            replied: BTreeSet::new(),
            has_listed_models: false,
            unasked: None,
        }
    }

    fn get(&mut self, want: RequestPurpose, path: &str, out: &mut ProtocolOutput) {
        self.request(want, HttpMethod::Get, path, None, out);
    }

    fn post(&mut self, want: RequestPurpose, path: &str, body: Value, out: &mut ProtocolOutput) {
        self.request(want, HttpMethod::Post, path, Some(body), out);
    }

    fn request(
        &mut self,
        want: RequestPurpose,
        method: HttpMethod,
        path: &str,
        body: Option<Value>,
        out: &mut ProtocolOutput,
    ) {
        self.numbers += 1;
        let (number, path) = (self.numbers, path.to_owned());
        let wait_ms_max = want.wait_ms_max();
        self.asked.insert(number, want);
        order(&SideOrder::Request { number, method, path, body, wait_ms_max }, out);
    }

    fn session_path(&self) -> String {
        format!("/session/{}", self.setting.session)
    }

    fn fail(&mut self, trouble: Trouble, out: &mut ProtocolOutput) {
        self.phase = Phase::Over;
        out.event(AgentEvent::Failed(trouble));
    }

    /// The process says where its server is.
    fn meet(&mut self, address: &str, out: &mut ProtocolOutput) {
        match address.trim().trim_end_matches('/').parse::<SocketAddr>() {
            Ok(address) if address.ip().is_loopback() => {
                self.phase = Phase::Opening { is_moved: false };
                order(&SideOrder::Server { address }, out);
                self.get(RequestPurpose::Health, "/global/health", out);
            }
            _ => self.fail(Trouble::transient("opencode's server listens elsewhere than it was told"), out),
        }
    }

    fn answered(&mut self, want: RequestPurpose, answered: Answered, out: &mut ProtocolOutput) {
        match want {
            RequestPurpose::Health => self.healthy(answered, out),
            RequestPurpose::Session => self.found(answered, out),
            RequestPurpose::Fork => self.forked(answered, out),
            RequestPurpose::Move => self.moved(answered, out),
            RequestPurpose::Models => self.list_models(&listed(answered)),
            RequestPurpose::Modes => self.list_modes(&listed(answered)),
            RequestPurpose::Commands => self.known.about.commands = choices(&listed(answered), |_| true),
            RequestPurpose::Turn => self.worked(answered, out),
            RequestPurpose::Confirm => self.confirmed(answered, out),
            RequestPurpose::Messages => self.settle(&listed(answered), out),
            RequestPurpose::Questions => self.hear_questions(&listed(answered), out),
            RequestPurpose::Surveys => self.hear_surveys(&listed(answered), out),
            RequestPurpose::Reply { question } => self.heard_reply(&question, &answered, out),
            RequestPurpose::Nothing => {}
        }
        self.be_ready(out);
    }

    /// Whoever takes our password is the server we started; another one may have been at that port before.
    fn healthy(&mut self, answered: Answered, out: &mut ProtocolOutput) {
        match answered {
            Ok((200, body)) => {
                self.known.about.version = bounded(text(&body, "/version"), NAME_BYTES_MAX);
                order(&SideOrder::Listen, out);
                self.open_session(out);
                self.get(RequestPurpose::Models, "/config/providers", out);
                self.get(RequestPurpose::Modes, "/agent", out);
                self.get(RequestPurpose::Commands, "/command", out);
            }
            Ok((401 | 403, _)) => {
                let trouble = "the server at opencode's address is not the one we started";
                self.fail(Trouble::transient(trouble), out);
            }
            Ok((status, _)) => {
                self.fail(Trouble::transient(format!("opencode's server is not well ({status})")), out);
            }
            Err(why) => self.fail(Trouble::transient(why), out),
        }
    }

    /// Makes the conversation, or asks for it: as our own record says, never by guessing.
    fn open_session(&mut self, out: &mut ProtocolOutput) {
        if self.setting.launch.native.is_some() {
            return if self.setting.launch.fork { self.fork_session(out) } else { self.ask_session(out) };
        }
        let ProcessSetting { session, directory, .. } = &self.setting;
        let body = json!({"id": session, "location": {"directory": directory}});
        self.post(RequestPurpose::Session, "/api/session", body, out);
    }

    fn ask_session(&mut self, out: &mut ProtocolOutput) {
        if self.has_id(out) {
            self.get(RequestPurpose::Session, &self.session_path(), out);
        }
    }

    /// Has opencode make another conversation with everything in it that this one has.
    fn fork_session(&mut self, out: &mut ProtocolOutput) {
        if self.has_id(out) {
            self.post(RequestPurpose::Fork, &format!("{}/fork", self.session_path()), json!({}), out);
        }
    }

    /// Opencode takes what is no id of its own for an error inside it, so that is never asked.
    fn has_id(&mut self, out: &mut ProtocolOutput) -> bool {
        let is_id = is_id("ses", &self.setting.session);
        if !is_id {
            let id = bounded(&self.setting.session, NAME_BYTES_MAX);
            let trouble = format!("{id:?} is not how opencode calls a conversation; start a new session");
            self.fail(Trouble::refused(trouble), out);
        }
        is_id
    }

    /// The other conversation is there: from now on it is the one.
    fn forked(&mut self, answered: Answered, out: &mut ProtocolOutput) {
        match &answered {
            Ok((200, body))
                if is_id("ses", text(body, "/id")) && text(body, "/id") != self.setting.session =>
            {
                self.setting.session = text(body, "/id").to_owned();
                self.ask_session(out);
            }
            Ok((200, _)) => {
                let trouble = "opencode did not say how it calls the conversation that it has forked";
                self.fail(Trouble::transient(trouble), out);
            }
            // It says the same when it is asked for a conversation it does not know.
            _ => self.found(answered, out),
        }
    }

    fn found(&mut self, answered: Answered, out: &mut ProtocolOutput) {
        let body = match answered {
            Ok((200, body)) => body,
            Ok((404, body)) if is_unknown_session(&body) => {
                let ProcessSetting { launch, place, .. } = &self.setting;
                let trouble = gone_if_here(launch, place, complaint(&body));
                return self.fail(trouble, out);
            }
            Ok((status, body)) => {
                let words = format!(
                    "opencode does not say where the conversation is ({status}): {}",
                    complaint(&body)
                );
                return self.fail(Trouble::transient(words), out);
            }
            Err(why) => return self.fail(Trouble::transient(why), out),
        };
        // One way to ask wraps its answer, the other does not.
        let session = if body["data"].is_object() { &body["data"] } else { &body };
        if text(session, "/id") != self.setting.session {
            return self.fail(Trouble::transient("opencode answered for another conversation"), out);
        }
        let directory = [text(session, "/directory"), text(session, "/location/directory")].concat();
        self.arrive(&directory, session, out);
    }

    /// The conversation is there. Opencode works in the conversation's own directory, wherever its server was started.
    fn arrive(&mut self, directory: &str, session: &Value, out: &mut ProtocolOutput) {
        let Phase::Opening { is_moved } = self.phase else { return };
        if directory == self.setting.directory {
            let launch = &self.setting.launch;
            let model = [text(session, "/model/providerID"), text(session, "/model/id")].join("/");
            let model = Some(model).filter(|model| model.len() > 1);
            let mode = Some(text(session, "/agent").to_owned()).filter(|mode| !mode.is_empty());
            let about = &mut self.known.about;
            about.directory = directory.to_owned();
            // What it says of no model or mode is what it said before.
            about.model = launch.model.clone().or(model).unwrap_or_else(|| std::mem::take(&mut about.model));
            about.mode = launch.mode.clone().or(mode).unwrap_or_else(|| std::mem::take(&mut about.mode));
        } else if is_moved {
            self.refuse_move(directory, "it stayed where it was", out);
        } else {
            self.phase = Phase::Opening { is_moved: true };
            let destination = json!({"directory": self.setting.directory});
            let body = json!({"sessionID": self.setting.session, "destination": destination});
            self.post(RequestPurpose::Move, "/experimental/control-plane/move-session", body, out);
        }
    }

    fn moved(&mut self, answered: Answered, out: &mut ProtocolOutput) {
        match answered {
            Ok((200..300, _)) => self.ask_session(out),
            Ok((_, body)) => self.refuse_move("another directory", &complaint(&body), out),
            Err(why) => self.fail(Trouble::transient(why), out),
        }
    }

    fn refuse_move(&mut self, from: &str, why: &str, out: &mut ProtocolOutput) {
        let from = bounded(from, DETAIL_BYTES_MAX);
        let words = format!(
            "opencode works in {from} for this conversation, and does not move it to {}: {why}. Go back to the \
             directory, or start a new session",
            self.setting.directory
        );
        self.fail(Trouble::refused(words), out);
    }

    fn list_models(&mut self, body: &Value) {
        self.has_listed_models = body["providers"].is_array();
        let mut models = Vec::new();
        let mut providers: Vec<&Value> = body["providers"].as_array().into_iter().flatten().collect();
        // One that has hundreds would crowd the others out.
        providers.sort_by_key(|provider| provider["models"].as_object().map_or(0, serde_json::Map::len));
        for provider in providers {
            for (id, model) in provider["models"].as_object().into_iter().flatten() {
                let name = format!("{}/{id}", text(provider, "/id"));
                if name.len() > NAME_BYTES_MAX || self.known.windows.len() >= KNOWN_MAX {
                    continue;
                }
                let window = model.pointer("/limit/context").and_then(Value::as_u64).unwrap_or(0);
                self.known.windows.insert(name.clone(), window);
                models.push(Choice { name, description: bounded(text(model, "/name"), NAME_BYTES_MAX) });
            }
        }
        models.truncate(CHOICES_MAX);
        self.known.about.models = models;
    }

    /// Agents are opencode's modes. Those that only other agents may use, and those for its own chores, are none.
    fn list_modes(&mut self, body: &Value) {
        self.known.about.modes =
            choices(body, |mode| text(mode, "/mode") != "subagent" && mode["hidden"] != true);
        self.unasked = if self.setting.bypasses { None } else { acts_unasked(body) };
    }

    /// Ready when everything is known that a turn needs.
    fn be_ready(&mut self, out: &mut ProtocolOutput) {
        if !matches!(self.phase, Phase::Opening { .. }) || !self.asked.is_empty() || !self.is_listening {
            return;
        }
        if let Some(trouble) = self.unwilling() {
            return self.fail(trouble, out);
        }
        self.phase = Phase::Idle;
        out.event(AgentEvent::About(Box::new(self.known.about.clone())));
        out.event(AgentEvent::Ready { native: Some(self.native()) });
    }

    /// The trouble of a scope that wants something there is not. Handed a model it does not know, opencode writes the message down
    /// all the same, and every later one fails with it.
    fn unwilling(&self) -> Option<Trouble> {
        let Launch { model, mode, .. } = &self.setting.launch;
        let windows = &self.known.windows;
        if self.has_listed_models && windows.is_empty() {
            // All it would say is that its server had an unexpected error.
            return Some(Trouble::refused(format!(
                "opencode has no model, because nobody has set up a provider for it. {SIGN_IN}"
            )));
        }
        if let Some(model) = model
            && windows.is_empty()
        {
            return Some(Trouble::transient(format!(
                "opencode did not list its models, so nobody knows whether it would use {model}"
            )));
        }
        if let Some(model) = model
            && (split_model(model).is_none() || !windows.contains_key(model))
        {
            let some: Vec<&str> = windows.keys().map(String::as_str).take(10).collect();
            return Some(Trouble::refused(format!(
                "opencode has no model {model:?}; it takes provider/model, such as {}",
                some.join(", ")
            )));
        }
        let modes = &self.known.about.modes;
        if let Some(mode) = mode
            && !modes.is_empty()
            && !modes.iter().any(|choice| choice.name == *mode)
        {
            let all: Vec<&str> = modes.iter().map(|choice| choice.name.as_str()).collect();
            return Some(Trouble::refused(format!(
                "opencode has no mode {mode:?}; it has {}",
                all.join(", ")
            )));
        }
        self.unasked.clone()
    }

    fn native(&self) -> Native {
        Native::new(self.setting.session.clone()).at(self.setting.place.clone())
    }

    /// The request that is the turn was answered.
    fn worked(&mut self, answered: Answered, out: &mut ProtocolOutput) {
        let turn = match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Working(turn) => turn,
            Phase::GivenUp { words } => {
                let tries = self.setting.tries_max;
                let trouble = format!("opencode tried {tries} times more, in vain: {words}");
                return self.fail(Trouble::transient(trouble), out);
            }
            phase => {
                self.phase = phase;
                return;
            }
        };
        let outcome = match answered {
            Ok((200, body)) if body["info"].is_object() => Ok(body),
            // It was there when we began. Only the answer to a question proves that it is not.
            Ok((404, _)) => {
                self.phase = Phase::Working(turn);
                return self.get(RequestPurpose::Confirm, &self.session_path(), out);
            }
            Ok((_, body)) => Err(by_words(complaint(&body))),
            Err(why) => return self.fail(Trouble::transient(why), out),
        };
        self.phase = Phase::Settling(turn, outcome);
        let path = format!("{}/message?limit={MESSAGES_MAX}", self.session_path());
        self.get(RequestPurpose::Messages, &path, out);
    }

    fn confirmed(&mut self, answered: Answered, out: &mut ProtocolOutput) {
        let ProcessSetting { launch, place, .. } = &self.setting;
        let trouble = match answered {
            Ok((404, body)) if is_unknown_session(&body) => gone_if_here(launch, place, complaint(&body)),
            _ => Trouble::transient("opencode did not take the message"),
        };
        self.fail(trouble, out);
    }

    /// Says what was not said yet, and how the turn ended.
    fn settle(&mut self, messages: &Value, out: &mut ProtocolOutput) {
        let Phase::Settling(mut turn, outcome) = std::mem::replace(&mut self.phase, Phase::Over) else {
            return;
        };
        turn.messages(messages, &mut self.known, out);
        if messages.is_null() && turn.is_torn {
            let text =
                "some of what opencode said in this turn was missed, and could not be read again".to_owned();
            out.event(AgentEvent::Notice { text });
        }
        let body = match outcome {
            Ok(body) => body,
            Err(_) if turn.is_aborted => return out.interrupted(),
            Err(_) if !turn.complaint.is_empty() => {
                return self.fail(by_words(std::mem::take(&mut turn.complaint)), out);
            }
            Err(trouble) => return self.fail(trouble, out),
        };
        if !turn.is_answer(&body["info"]) {
            return self.fail(Trouble::transient("opencode answered another message than ours"), out);
        }
        turn.whole(&body["info"], &body["parts"], &mut self.known, out);
        turn.rest(out);
        match turn.verdict(&body["info"], &body["parts"]) {
            TurnOutcome::Finished { reason } => {
                self.phase = Phase::Idle;
                self.questions.clear();
                self.surveys.withdraw_all(out);
                out.event(AgentEvent::Finished { native: Some(self.native()), reason });
            }
            TurnOutcome::Interrupted => out.interrupted(),
            TurnOutcome::Failed(trouble) => self.fail(trouble, out),
        }
    }

    fn hear(&mut self, event: &Value, out: &mut ProtocolOutput) {
        let said = &event["properties"];
        match text(event, "/type") {
            "server.connected" => self.connected(out),
            "session.created" => self.meet_child(&said["info"]),
            "permission.asked" => self.hear_question(said, out),
            "permission.replied" => self.hear_reply(said, out),
            "question.asked" => self.hear_survey(said, out),
            "question.replied" | "question.rejected" => self.surveys.withdraw(text(said, "/requestID"), out),
            _ => {
                if let Phase::Working(turn) | Phase::Settling(turn, _) = &mut self.phase {
                    turn.event(event, &mut self.known, out);
                }
                self.give_up(out);
            }
        }
    }

    /// Asks it to stop when it has tried again often enough: the model may be away for hours.
    fn give_up(&mut self, out: &mut ProtocolOutput) {
        let Phase::Working(turn) = &mut self.phase else { return };
        if turn.tries <= self.setting.tries_max || turn.is_aborted {
            return;
        }
        self.phase = Phase::GivenUp { words: std::mem::take(&mut turn.tried_in_vain) };
        self.post(RequestPurpose::Nothing, &format!("{}/abort", self.session_path()), json!({}), out);
    }

    /// The stream of events has begun, or has begun again; then something may have been missed.
    fn connected(&mut self, out: &mut ProtocolOutput) {
        if std::mem::replace(&mut self.is_listening, true) {
            self.miss(out);
        }
        self.be_ready(out);
    }

    fn miss(&mut self, out: &mut ProtocolOutput) {
        if let Phase::Working(turn) | Phase::Settling(turn, _) = &mut self.phase {
            turn.be_torn();
            self.get(RequestPurpose::Questions, "/permission", out);
            self.get(RequestPurpose::Surveys, "/question", out);
        }
    }

    fn meet_child(&mut self, info: &Value) {
        let (id, parent) = (text(info, "/id"), text(info, "/parentID"));
        let is_below = parent == self.setting.session || self.known.children.contains(parent);
        if is_below && is_id("ses", id) && self.known.children.len() < KNOWN_MAX {
            self.known.children.insert(id.to_owned());
        }
    }

    fn hear_questions(&mut self, body: &Value, out: &mut ProtocolOutput) {
        for question in body.as_array().into_iter().flatten() {
            self.hear_question(question, out);
        }
    }

    /// A question, of our session or of one below it: whoever asks, the turn waits for the answer.
    fn hear_question(&mut self, asked: &Value, out: &mut ProtocolOutput) {
        let id = text(asked, "/id");
        let is_working = matches!(self.phase, Phase::Working(_));
        let is_new = !self.questions.contains(id) && !self.replied.contains(id);
        if !is_working || !is_new || !is_id("per", id) || self.questions.len() >= KNOWN_MAX {
            return;
        }
        self.questions.insert(id.to_owned());
        let tool = bounded(text(asked, "/permission"), NAME_BYTES_MAX);
        let detail = bounded(&detail(asked), DETAIL_BYTES_MAX);
        out.event(AgentEvent::Asked {
            question: id.to_owned(),
            tool,
            kind: String::new(),
            detail,
            form: Form::Permission,
        });
    }

    /// A question was answered: by us, or by opencode itself because another one was refused.
    fn hear_reply(&mut self, said: &Value, out: &mut ProtocolOutput) {
        let id = text(said, "/requestID");
        if let Phase::Working(turn) = &mut self.phase {
            turn.is_refused |= text(said, "/reply") == "reject";
        }
        self.withdraw(id, out);
    }

    fn withdraw(&mut self, id: &str, out: &mut ProtocolOutput) {
        if self.questions.remove(id) {
            out.event(AgentEvent::Withdrawn { question: id.to_owned() });
        }
    }

    fn heard_reply(&mut self, question: &str, answered: &Answered, out: &mut ProtocolOutput) {
        match answered {
            // It no longer asks, which is fine.
            Ok((200 | 404, _)) => {}
            Ok((status, _)) => self.lose_reply(question, &status.to_string(), out),
            Err(why) => self.lose_reply(question, why, out),
        }
    }

    fn lose_reply(&mut self, question: &str, why: &str, out: &mut ProtocolOutput) {
        // Without the answer the turn would wait for ever.
        if matches!(self.phase, Phase::Working(_)) {
            let trouble = format!("opencode did not take the answer to {question}: {why}");
            self.fail(Trouble::transient(trouble), out);
        }
    }

    fn hear_surveys(&mut self, body: &Value, out: &mut ProtocolOutput) {
        for asked in body.as_array().into_iter().flatten() {
            self.hear_survey(asked, out);
        }
    }

    /// It wants to know something that has options, or words for an answer.
    fn hear_survey(&mut self, asked: &Value, out: &mut ProtocolOutput) {
        let id = text(asked, "/id");
        if !matches!(self.phase, Phase::Working(_)) || !is_id("que", id) || self.replied.contains(id) {
            return;
        }
        let questions = asked["questions"].as_array().into_iter().flatten();
        let parts = questions.map(|it| SurveyPart::read(&it["question"], &it["options"])).collect();
        let is_known = self.surveys.has(&format!("{id}/0"));
        if !is_known && !self.surveys.ask(id, "question", json!(id), parts, out) {
            self.post(RequestPurpose::Nothing, &format!("/question/{id}/reject"), json!({}), out);
        }
    }

    fn answer_survey(&mut self, question: &str, answer: &QuestionAnswer, out: &mut ProtocolOutput) {
        let Some(SurveyAnswers { about, answers }) = self.surveys.answer(question, answer) else { return };
        let id = about.as_str().unwrap_or_default().to_owned();
        self.replied.insert(id.clone());
        // What nobody would say is empty. To reject it would be the end of the turn.
        let answers: Vec<Vec<String>> = answers.into_iter().map(|it| it.into_iter().collect()).collect();
        let path = format!("/question/{id}/reply");
        let body = json!({"answers": answers});
        self.post(RequestPurpose::Reply { question: id }, &path, body, out);
    }

    fn be_deaf(&mut self, why: &str, out: &mut ProtocolOutput) {
        self.is_listening = false;
        match self.phase {
            // Its questions would not be heard.
            Phase::Opening { .. } | Phase::Working(_) => {
                self.fail(Trouble::transient(format!("opencode cannot be heard: {why}")), out);
            }
            Phase::Starting | Phase::Idle | Phase::Settling(..) | Phase::GivenUp { .. } | Phase::Over => {}
        }
    }

    /// The request that hands a message over: a command of opencode's own, or words.
    fn words(&self, id: &str, message: &Message) -> (String, Value) {
        let Launch { model, mode, .. } = &self.setting.launch;
        let (path, mut body) = match self.command(&message.text) {
            Some((command, arguments)) => {
                let mut named = json!({"messageID": id, "command": command, "arguments": arguments});
                if !message.attachments.is_empty() {
                    named["parts"] = message.attachments.iter().map(file).collect();
                }
                ("command", named)
            }
            None => ("message", json!({"messageID": id, "parts": blocks(message, file)})),
        };
        if let Some((provider, id)) = model.as_deref().and_then(split_model) {
            let named = json!({"providerID": provider, "modelID": id});
            body["model"] = if path == "command" { json!(model) } else { named };
        }
        if let Some(mode) = mode {
            body["agent"] = json!(mode);
        }
        (format!("{}/{path}", self.session_path()), body)
    }

    fn command<'a>(&self, words: &'a str) -> Option<(&'a str, &'a str)> {
        let line = words.strip_prefix('/')?;
        let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let is_command = self.known.about.commands.iter().any(|command| command.name == name);
        is_command.then(|| (name, arguments.trim()))
    }
}

impl AgentProtocol for OpenCodeProtocol {
    fn open(&mut self, out: &mut ProtocolOutput) {
        // It reads none.
        out.close_input();
    }

    fn gone(&mut self, complaint: &str) -> Option<Trouble> {
        repository::refusal(complaint).filter(|_| matches!(self.phase, Phase::Starting))
    }

    fn read(&mut self, line: &str, out: &mut ProtocolOutput) {
        match line.strip_prefix(LISTENING) {
            Some(address) if matches!(self.phase, Phase::Starting) => self.meet(address, out),
            _ => out.event(AgentEvent::Other { raw: bounded(line, DETAIL_BYTES_MAX) }),
        }
    }

    fn read_side(&mut self, line: &str, out: &mut ProtocolOutput) {
        match serde_json::from_str::<SideReport<Value>>(line) {
            Ok(SideReport::Answer { number, status, body }) => {
                if let Some(want) = self.asked.remove(&number) {
                    self.answered(want, Ok((status, body)), out);
                }
            }
            Ok(SideReport::Unanswered { number, why }) => {
                if let Some(want) = self.asked.remove(&number) {
                    self.answered(want, Err(why), out);
                }
            }
            Ok(SideReport::Event { event }) => self.hear(&event, out),
            Ok(SideReport::Gap) => self.miss(out),
            Ok(SideReport::Deaf { why }) => self.be_deaf(&why, out),
            Err(_) => self.miss(out),
        }
    }

    fn takes(&self, kind: AttachmentKind) -> bool {
        kind != AttachmentKind::Other
    }

    fn hand(&mut self, message: &Message, out: &mut ProtocolOutput) {
        let id = (self.setting.mint)();
        let ProcessSetting { session, said_bytes_max, .. } = &self.setting;
        self.phase = Phase::Working(Turn::new(session, &id, &message.text, *said_bytes_max));
        let (path, body) = self.words(&id, message);
        self.post(RequestPurpose::Turn, &path, body, out);
    }

    fn answer(&mut self, question: &str, answer: &QuestionAnswer, out: &mut ProtocolOutput) {
        if self.surveys.has(question) {
            return self.answer_survey(question, answer, out);
        }
        if !self.questions.remove(question) {
            return;
        }
        self.replied.insert(question.to_owned());
        let body = match answer {
            QuestionAnswer::Allow => json!({"reply": "once"}),
            refusal => {
                if let Phase::Working(turn) = &mut self.phase {
                    turn.is_refused = true;
                }
                // With a reason the model is told, and goes on; without one the turn ends.
                match refusal {
                    QuestionAnswer::Deny { reason } if !reason.trim().is_empty() => {
                        json!({"reply": "reject", "message": reason.trim()})
                    }
                    _ => json!({"reply": "reject"}),
                }
            }
        };
        let want = RequestPurpose::Reply { question: question.to_owned() };
        self.post(want, &format!("/permission/{question}/reply"), body, out);
    }

    fn interrupt(&mut self, out: &mut ProtocolOutput) {
        match &mut self.phase {
            Phase::Working(turn) => turn.is_aborted = true,
            // It has just ended by itself, which stopping it again does not change.
            Phase::Settling(..) | Phase::GivenUp { .. } => {}
            _ => return,
        }
        self.post(RequestPurpose::Nothing, &format!("{}/abort", self.session_path()), json!({}), out);
    }

    fn again(&mut self, launch: &Launch, out: &mut ProtocolOutput) {
        if !matches!(self.phase, Phase::Idle) || !self.is_listening {
            return self.fail(Trouble::transient("opencode was not idle, or could not be heard"), out);
        }
        self.setting.launch = launch.clone();
        self.replied.clear();
        self.phase = Phase::Opening { is_moved: false };
        self.ask_session(out);
    }

    fn leaves_on_eof(&self) -> bool {
        false
    }
}

/// An image or a document as opencode takes it.
fn file(attached: &Attachment) -> Value {
    let mut part = json!({"type": "file", "mime": attached.media_type, "url": as_url(attached)});
    if !attached.name.is_empty() {
        part["filename"] = json!(attached.name);
    }
    part
}

fn order(order: &SideOrder, out: &mut ProtocolOutput) {
    out.send_line(&serde_json::to_value(order).expect("plain structures can be written"));
}

/// The answer to a question that may also go unanswered: then the list is empty.
fn listed(answered: Answered) -> Value {
    answered.ok().filter(|(status, _)| *status == 200).map_or(Value::Null, |(_, body)| body)
}

fn choices(body: &Value, is_choice: impl Fn(&Value) -> bool) -> Vec<Choice> {
    let choice = |value: &Value| {
        let name = text(value, "/name");
        let is_fine = !name.is_empty() && name.len() <= NAME_BYTES_MAX && is_choice(value);
        let description = bounded(text(value, "/description"), NAME_BYTES_MAX);
        is_fine.then(|| Choice { name: name.to_owned(), description })
    };
    body.as_array().into_iter().flatten().filter_map(choice).take(CHOICES_MAX).collect()
}

/// The subject of a question, as people need it: the command, the change, or whatever opencode says.
fn detail(asked: &Value) -> String {
    let metadata = &asked["metadata"];
    let (command, file, diff) =
        (text(metadata, "/command"), text(metadata, "/filepath"), text(metadata, "/diff"));
    if !command.is_empty() {
        command.to_owned()
    } else if !diff.is_empty() {
        format!("{file}\n{diff}")
    } else if metadata.as_object().is_some_and(|metadata| !metadata.is_empty()) {
        metadata.to_string()
    } else {
        let patterns = asked["patterns"].as_array().into_iter().flatten().filter_map(Value::as_str);
        patterns.collect::<Vec<_>>().join("\n")
    }
}

/// The model's name in its two halves. The second may have more slashes in it.
fn split_model(model: &str) -> Option<(&str, &str)> {
    model.split_once('/').filter(|(provider, id)| !provider.is_empty() && !id.is_empty())
}

fn is_unknown_session(body: &Value) -> bool {
    text(body, "/name") == "NotFoundError" && text(body, "/data/message").starts_with("Session not found")
}

#[cfg(test)]
mod tests;

//! The talk with an agent that speaks ACP: what is asked in which order, what its answers mean, and its questions.
//! Pure.
//!
//! The order: `initialize`, then `session/new`, `session/fork`, `session/resume` or `session/load` as the launch says and
//! nothing else, then mode and model where they have to be set, then ready. A turn is one `session/prompt`, and it is over
//! with the answer to that one request. What is in between comes as updates, which `story` reads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use agent::{
    AgentEvent, Attachment, AttachmentKind, DETAIL_BYTES_MAX, Form, Launch, Message, NATIVE_BYTES_MAX,
    QuestionAnswer, Trouble, bounded,
};
use kernel::{Failure, Native};
use serde_json::{Value, json};

use super::quirks::{Behaviour, Confirm, ErrorPhase, Meaning, Resume};
use super::story::{TurnStory, other};
use super::wire::{self, RpcError, RpcMessage};
use crate::agent_protocol::{AgentProtocol, ProtocolOutput};
use crate::attached::{blocks, in_base64};
use crate::line_reader::LINE_BYTES_MAX;
use crate::running_agent::gone_if_here;

/// The most questions that are open at once. What is asked beyond them is answered with `cancelled`.
const QUESTIONS_MAX: usize = 100;
/// The most pages of an agent's list of conversations that are read in search of one.
const PAGES_MAX: u32 = 50;
/// The words for people where a conversation is not gone on with in a new process, because the agent would lose it.
const BEGUN_ANEW: &str =
    "this agent loses a conversation that it goes on with in a new process, so it begins a new one";
/// The longest word for why a turn ended.
const REASON_BYTES_MAX: usize = 100;

/// The setting of one process, beyond the agent's behaviour.
pub(super) struct ProcessSetting {
    /// The conversation and where it is; nothing when the agent is only looked at.
    pub(super) launch: Option<Launch>,
    /// Where the conversation's id means something.
    pub(super) place: String,
    /// It may act without asking.
    pub(super) bypasses: bool,
}

pub(super) struct AcpProtocol {
    behaviour: Arc<Behaviour>,
    wanted: ProcessSetting,
    story: TurnStory,
    stage: ConnectionStage,
    /// The number of our next request, and the one that is not answered yet.
    next_id: u64,
    waiting: Option<(u64, RequestPurpose)>,
    /// The abilities that the agent says it has.
    can: Value,
    session: String,
    /// Its questions, by our key: its own id, and the options it gave.
    questions: BTreeMap<String, OpenQuestion>,
    /// Something was not allowed in this turn.
    has_denied: bool,
}

#[derive(Debug)]
struct OpenQuestion {
    id: Value,
    options: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionStage {
    Opening,
    Idle,
    Turn { is_stopping: bool },
    Over,
}

/// The purpose of our request.
#[derive(Debug, Clone, PartialEq)]
enum RequestPurpose {
    Initialize,
    New,
    /// To go on with a conversation.
    Open,
    /// To go on with it under another id.
    Fork,
    /// To be in this mode.
    Mode {
        wanted: String,
    },
    Model,
    /// In which directory the agent says that a conversation is.
    Where {
        pages: u32,
    },
    Prompt,
    /// To learn whether it lists a conversation that it says it does not know.
    Confirm {
        wrong: RpcError,
        pages: u32,
    },
    /// To learn whether it still does not know it.
    Again {
        wrong: RpcError,
    },
}

impl AcpProtocol {
    pub(super) fn new(behaviour: Arc<Behaviour>, wanted: ProcessSetting) -> Self {
        Self {
            story: TurnStory::new(behaviour.clone()),
            behaviour,
            wanted,
            stage: ConnectionStage::Opening,
            next_id: 1,
            waiting: None,
            can: Value::Null,
            session: String::new(),
            questions: BTreeMap::new(),
            has_denied: false,
        }
    }

    fn ask(&mut self, ask: RequestPurpose, method: &str, params: &Value, out: &mut ProtocolOutput) {
        wire::request(out, self.next_id, method, params);
        self.waiting = Some((self.next_id, ask));
        self.next_id += 1;
    }

    fn answered(&mut self, ask: RequestPurpose, result: &Value, out: &mut ProtocolOutput) {
        match ask {
            RequestPurpose::Initialize => self.initialized(result, out),
            RequestPurpose::New | RequestPurpose::Open | RequestPurpose::Fork => {
                self.opened(ask, result, out)
            }
            RequestPurpose::Mode { wanted } => {
                self.story.choices.read(result);
                self.has_mode(&wanted, out);
            }
            RequestPurpose::Model => {
                self.story.choices.read(result);
                self.has_model(out);
            }
            RequestPurpose::Where { pages } => self.seen_where(result, pages, out),
            RequestPurpose::Prompt => self.prompted(result, out),
            RequestPurpose::Confirm { wrong, pages } => self.listed(wrong, result, pages, out),
            RequestPurpose::Again { wrong } => {
                let words = wrong.words();
                self.fail(
                    Trouble::transient(format!("the agent knew this conversation after all: {words}")),
                    out,
                );
            }
        }
    }

    fn initialized(&mut self, result: &Value, out: &mut ProtocolOutput) {
        let version = result["protocolVersion"].as_u64().unwrap_or(0);
        if version != wire::VERSION {
            let trouble =
                format!("the agent speaks version {version} of ACP, and we speak {}", wire::VERSION);
            return self.fail(Trouble::refused(trouble), out);
        }
        self.can = result["agentCapabilities"].clone();
        self.story.set_version(result["agentInfo"]["version"].as_str().unwrap_or_default());
        let Some(launch) = &self.wanted.launch else {
            self.story.tell_about(out);
            return out.event(AgentEvent::Ready { native: None });
        };
        let cwd = launch.directory.for_launch();
        let Some(native) = &launch.native else {
            return self.ask(
                RequestPurpose::New,
                "session/new",
                &json!({ "cwd": cwd, "mcpServers": [] }),
                out,
            );
        };
        if native.id.is_empty() {
            // Some agents take no id for the wish to begin anew.
            let trouble = gone_if_here(launch, &self.wanted.place, "an empty id names no conversation");
            return self.fail(trouble, out);
        }
        self.session = native.id.clone();
        if self.session.is_empty() {
            // Agents take no id for none, and make a new conversation.
            let wrong =
                RpcError { code: 0, message: "a conversation without an id".to_owned(), data: Value::Null };
            return self.fail(self.lost(&wrong), out);
        }
        if launch.fork { self.fork(out) } else { self.go_on_with(RequestPurpose::Open, out) }
    }

    /// Asks for another conversation that begins like the one the launch names.
    fn fork(&mut self, out: &mut ProtocolOutput) {
        if !self.has("fork") {
            let trouble =
                "this agent cannot go on with a conversation under a second id; start a new session";
            return self.fail(Trouble::refused(trouble), out);
        }
        let params = self.conversation();
        self.ask(RequestPurpose::Fork, "session/fork", &params, out);
    }

    /// Asks for the conversation that the launch names.
    fn go_on_with(&mut self, ask: RequestPurpose, out: &mut ProtocolOutput) {
        let has_resume = self.has("resume");
        let method = match self.behaviour.resume {
            Resume::Resume => "session/resume",
            Resume::Auto if has_resume => "session/resume",
            Resume::Load => "session/load",
            Resume::Never => return self.fail(Trouble::new(Failure::Gone, BEGUN_ANEW), out),
            Resume::Auto if self.can["loadSession"] == true => "session/load",
            Resume::Auto => {
                let trouble =
                    "this agent cannot go on with a conversation in a new process; start a new session";
                return self.fail(Trouble::refused(trouble), out);
            }
        };
        let params = self.conversation();
        self.ask(ask, method, &params, out);
    }

    /// The conversation that the launch names, and where it is to go on.
    fn conversation(&self) -> Value {
        let cwd = self.wanted.launch.as_ref().map(|launch| launch.directory.for_launch());
        json!({ "sessionId": self.session, "cwd": cwd, "mcpServers": [] })
    }

    fn has(&self, capability: &str) -> bool {
        // An empty object says yes.
        self.can["sessionCapabilities"][capability].is_object()
    }

    fn opened(&mut self, ask: RequestPurpose, result: &Value, out: &mut ProtocolOutput) {
        match result["sessionId"].as_str() {
            Some(id) if ask == RequestPurpose::Open && id != self.session => {
                // Nothing stands in for the conversation that was named.
                let trouble = format!("the agent opened another conversation than {:?}", self.session);
                return self.fail(Trouble::refused(trouble), out);
            }
            Some(id) if ask == RequestPurpose::Fork && id == self.session => {
                let trouble = "the agent did not go on under a second id; start a new session";
                return self.fail(Trouble::refused(trouble), out);
            }
            Some(id) if !id.is_empty() && id.len() <= NATIVE_BYTES_MAX => self.session = id.to_owned(),
            None if ask == RequestPurpose::Open => {}
            _ => return self.fail(Trouble::transient("the agent named its conversation by no id"), out),
        }
        self.story.choices.read(result);
        self.set_mode(out);
    }

    /// Sees to it that the agent asks before it acts, unless it need not.
    fn set_mode(&mut self, out: &mut ProtocolOutput) {
        let is_bypass = |mode: &String| self.behaviour.bypass_modes.contains(mode);
        let setting = &self.story.choices.mode;
        let is_there = |mode: &String| setting.has(mode) || setting.current == *mode;
        let mode = match self.chosen_mode() {
            Some(mode) if is_bypass(&mode) && !self.wanted.bypasses => {
                let trouble = format!(
                    "in mode {mode:?} this agent acts without asking, which its configuration does not allow"
                );
                return self.fail(Trouble::refused(trouble), out);
            }
            Some(mode) if is_there(&mode) && !self.wanted.bypasses && !self.behaviour.asks_in(&mode) => {
                return self.fail(self.unproven(&mode), out);
            }
            Some(mode) => Some(mode),
            None if self.wanted.bypasses => {
                self.behaviour.bypass_modes.iter().find(|mode| setting.has(mode)).cloned()
            }
            // It has no modes; then it asks as the protocol says.
            None if setting.all.is_empty() => None,
            None if setting.has(&self.behaviour.asking_mode) => Some(self.behaviour.asking_mode.clone()),
            None => return self.fail(self.unproven(&setting.current), out),
        };
        let asked = mode.map_or(Ok(None), |mode| setting.choose("mode", &mode, &self.session));
        match asked {
            Ok(Some((method, params))) => {
                // What it is told is what it is in, unless it says otherwise.
                let chosen = params["modeId"].as_str().or(params["value"].as_str()).unwrap_or_default();
                let wanted = chosen.to_owned();
                self.story.choices.mode.current.clone_from(&wanted);
                self.ask(RequestPurpose::Mode { wanted }, method, &params, out);
            }
            Ok(None) => self.set_model(out),
            Err(trouble) => self.fail(trouble, out),
        }
    }

    /// The mode that a turn begins in: that of the session, or else the one in which the agent came up.
    fn chosen_mode(&self) -> Option<String> {
        let named = self.wanted.launch.as_ref().and_then(|launch| launch.mode.clone());
        named.or_else(|| Some(self.story.chosen_mode.clone()).filter(|mode| !mode.is_empty()))
    }

    /// It was told in which mode to be, and may have said that it is in another.
    fn has_mode(&mut self, wanted: &str, out: &mut ProtocolOutput) {
        let current = self.story.choices.mode.current.clone();
        let is_named = self.wanted.launch.as_ref().is_some_and(|launch| launch.mode.is_some());
        if current == wanted || (self.wanted.bypasses && !is_named) {
            return self.set_model(out);
        }
        if !self.behaviour.asks_in(&current) && !self.wanted.bypasses {
            return self.fail(self.unproven(&current), out);
        }
        let trouble = format!(
            "this agent says that it is in mode {current:?}, and not in {wanted:?}; choose another mode"
        );
        self.fail(Trouble::refused(trouble), out);
    }

    /// The refusal where nothing shows that the agent asks in that mode.
    fn unproven(&self, mode: &str) -> Trouble {
        Trouble::refused(format!(
            "in mode {mode:?} this agent acts without asking, as far as anybody knows, which its configuration does not allow; \
             set `quirks.asking_mode` to the mode in which it asks (it has {}), or `bypass = true`",
            self.story.choices.mode.names()
        ))
    }

    fn set_model(&mut self, out: &mut ProtocolOutput) {
        let setting = &self.story.choices.model;
        let wanted = self.wanted.launch.as_ref().and_then(|launch| launch.model.as_deref());
        let wanted = wanted.map(|model| setting.plain(model).to_owned());
        let asked = wanted.as_ref().map_or(Ok(None), |model| setting.choose("model", model, &self.session));
        match asked {
            Ok(Some((method, params))) => {
                self.story.choices.model.current = wanted.unwrap_or_default();
                self.ask(RequestPurpose::Model, method, &params, out);
            }
            Ok(None) => self.see_where(out),
            Err(trouble) => self.fail(trouble, out),
        }
    }

    /// It was told which model to use, and may have said that it uses another.
    fn has_model(&mut self, out: &mut ProtocolOutput) {
        let setting = &self.story.choices.model;
        let chosen =
            self.wanted.launch.as_ref().and_then(|launch| launch.model.as_deref()).unwrap_or_default();
        let (chosen, used) = (setting.plain(chosen), &setting.current);
        if *used != chosen {
            let trouble = Trouble::other_model(chosen, used);
            return self.fail(trouble, out);
        }
        self.see_where(out);
    }

    /// A conversation that was made elsewhere may still be there: some agents go on in the old directory without a word.
    fn see_where(&mut self, out: &mut ProtocolOutput) {
        let native = self.wanted.launch.as_ref().and_then(|launch| launch.native.as_ref());
        let is_fork = self.wanted.launch.as_ref().is_some_and(|launch| launch.fork);
        let has_moved =
            !is_fork && native.is_some_and(|it| !it.place.is_empty() && it.place != self.wanted.place);
        if has_moved && self.behaviour.lists_where_it_is && self.has("list") {
            return self.ask(RequestPurpose::Where { pages: 1 }, "session/list", &json!({}), out);
        }
        self.be_ready(out);
    }

    fn seen_where(&mut self, result: &Value, pages: u32, out: &mut ProtocolOutput) {
        match (listed(result, &self.session), next_page(result, pages)) {
            (Some(found), _) => {
                self.story.set_directory(found["cwd"].as_str().unwrap_or_default());
                self.story.tell_about(out);
                self.be_ready(out);
            }
            (None, Some(params)) => {
                self.ask(RequestPurpose::Where { pages: pages + 1 }, "session/list", &params, out)
            }
            (None, None) => self.be_ready(out),
        }
    }

    fn be_ready(&mut self, out: &mut ProtocolOutput) {
        self.stage = ConnectionStage::Idle;
        self.story.chosen_mode.clone_from(&self.story.choices.mode.current);
        self.story.tell_about(out);
        out.event(AgentEvent::Ready { native: Some(self.native()) });
    }

    fn native(&self) -> Native {
        Native::new(self.session.clone()).at(self.wanted.place.clone())
    }

    /// The answer to our prompt: the turn is over.
    fn prompted(&mut self, result: &Value, out: &mut ProtocolOutput) {
        let is_stopping = self.stage == ConnectionStage::Turn { is_stopping: true };
        let failure = self.story.end_turn(out);
        self.take_questions_back(out);
        self.stage = ConnectionStage::Idle;
        let reason = result["stopReason"].as_str().unwrap_or_default();
        if is_stopping && self.behaviour.cancelled_as.iter().any(|it| it == reason) {
            return out.interrupted();
        }
        if let Some((meaning, words)) = failure.filter(|_| reason == "end_turn") {
            return self.fail(self.trouble(meaning, &words), out);
        }
        if reason == "end_turn"
            && self.behaviour.ends_with_words
            && !self.story.has_spoken
            && !self.has_denied
        {
            let trouble =
                "the agent ended the turn without a word, which is all it says when its model fails";
            return self.fail(Trouble::transient(trouble), out);
        }
        match reason {
            // A no ends the turns of some.
            "cancelled" if self.has_denied => self.finish(result, reason, out),
            "cancelled" => self.fail(Trouble::transient("the agent cancelled the turn by itself"), out),
            "" => self.fail(Trouble::transient("the agent ended the turn without saying why"), out),
            reason => self.finish(result, reason, out),
        }
    }

    fn finish(&mut self, result: &Value, reason: &str, out: &mut ProtocolOutput) {
        let usage = [&result["usage"], &result["_meta"]["quota"]["token_count"]];
        self.story.spent(usage.into_iter().find(|it| it.is_object()).unwrap_or(&Value::Null), out);
        let reason = bounded(reason, REASON_BYTES_MAX);
        out.event(AgentEvent::Finished { native: Some(self.native()), reason });
    }

    fn went_wrong(&mut self, ask: RequestPurpose, wrong: RpcError, out: &mut ProtocolOutput) {
        if self.stage == (ConnectionStage::Turn { is_stopping: true }) {
            // Some say so by an error when they are stopped.
            self.stage = ConnectionStage::Idle;
            return out.interrupted();
        }
        match ask {
            RequestPurpose::Confirm { wrong: first, .. } => return self.confirm_again(first, &wrong, out),
            RequestPurpose::Again { wrong: first }
                if self.meaning(ErrorPhase::Open, &wrong) == Meaning::Unknown =>
            {
                return self.fail(self.lost(&first), out);
            }
            // Where it is cannot be seen; it runs in the right directory all the same.
            RequestPurpose::Where { .. } => return self.be_ready(out),
            _ => {}
        }
        let on = if ask == RequestPurpose::Prompt { ErrorPhase::Prompt } else { ErrorPhase::Open };
        match self.meaning(on, &wrong) {
            Meaning::Unknown
                if matches!(ask, RequestPurpose::Open | RequestPurpose::Fork | RequestPurpose::Prompt) =>
            {
                self.confirm(wrong, out)
            }
            Meaning::Unknown => self.fail(Trouble::transient(wrong.words()), out),
            meaning => self.fail(self.trouble(meaning, &wrong.words()), out),
        }
    }

    fn meaning(&self, on: ErrorPhase, wrong: &RpcError) -> Meaning {
        self.behaviour.meaning(on, wrong.code, &wrong.message, &wrong.data)
    }

    /// It says that it does not know the conversation. That ends a session, so it is asked once more, in another way if it
    /// has one.
    fn confirm(&mut self, wrong: RpcError, out: &mut ProtocolOutput) {
        if self.behaviour.confirm == Confirm::List && self.has("list") {
            return self.ask(RequestPurpose::Confirm { wrong, pages: 1 }, "session/list", &json!({}), out);
        }
        self.go_on_with(RequestPurpose::Again { wrong }, out);
    }

    fn confirm_again(&mut self, first: RpcError, list: &RpcError, out: &mut ProtocolOutput) {
        const NO_SUCH_METHOD: i64 = -32601;
        if list.code == NO_SUCH_METHOD {
            return self.go_on_with(RequestPurpose::Again { wrong: first }, out);
        }
        let trouble = format!("{}; and it cannot list what it knows: {}", first.words(), list.words());
        self.fail(Trouble::transient(trouble), out);
    }

    fn listed(&mut self, wrong: RpcError, result: &Value, pages: u32, out: &mut ProtocolOutput) {
        if listed(result, &self.session).is_some() {
            let words = wrong.words();
            return self
                .fail(Trouble::transient(format!("{words}; yet the agent lists this conversation")), out);
        }
        match next_page(result, pages) {
            Some(params) => {
                self.ask(RequestPurpose::Confirm { wrong, pages: pages + 1 }, "session/list", &params, out)
            }
            // A list without an end proves nothing.
            None if result["nextCursor"].is_string() => self.go_on_with(RequestPurpose::Again { wrong }, out),
            None => self.fail(self.lost(&wrong), out),
        }
    }

    fn lost(&self, wrong: &RpcError) -> Trouble {
        match &self.wanted.launch {
            Some(launch) => gone_if_here(launch, &self.wanted.place, wrong.words()),
            None => Trouble::transient(wrong.words()),
        }
    }

    fn trouble(&self, meaning: Meaning, words: &str) -> Trouble {
        match meaning {
            Meaning::Auth => Trouble::refused(format!("{words}\nTo sign in: {}", self.behaviour.sign_in)),
            Meaning::Busy => Trouble::new(Failure::Busy, words),
            Meaning::Refused => Trouble::refused(words),
            Meaning::Unknown | Meaning::Transient => Trouble::transient(words),
        }
    }

    fn fail(&mut self, trouble: Trouble, out: &mut ProtocolOutput) {
        self.stage = ConnectionStage::Over;
        out.event(AgentEvent::Failed(trouble));
    }

    fn requested(&mut self, id: Value, method: &str, params: &Value, out: &mut ProtocolOutput) {
        if method != "session/request_permission" {
            wire::refuse(out, &id, method);
            if self.behaviour.own_requests.iter().any(|it| it == method) {
                return;
            }
            return out.event(other(&json!({ "id": id, "method": method, "params": params })));
        }
        let is_ours = params["sessionId"].as_str() == Some(&self.session);
        let is_turn = self.stage == ConnectionStage::Turn { is_stopping: false };
        let key = id.to_string();
        if !is_ours || !is_turn || self.questions.len() >= QUESTIONS_MAX || key.len() > NATIVE_BYTES_MAX {
            return wire::answer(out, &id, &cancelled());
        }
        let (tool, kind, detail) = self.story.asked_about(&params["toolCall"], out);
        let options = params["options"].as_array().map_or(&[][..], Vec::as_slice);
        let option =
            |it: &Value| Some((it["kind"].as_str()?.to_owned(), it["optionId"].as_str()?.to_owned()));
        let question = OpenQuestion { id, options: options.iter().filter_map(option).collect() };
        if self.wanted.bypasses {
            return wire::answer(out, &question.id, &question.outcome(&["allow_once", "allow_always"]));
        }
        self.questions.insert(key.clone(), question);
        out.event(AgentEvent::Asked { question: key, tool, kind, detail, form: Form::Permission });
    }

    fn notified(&mut self, method: &str, params: &Value, out: &mut ProtocolOutput) {
        let is_turn = matches!(self.stage, ConnectionStage::Turn { .. });
        match method {
            "session/update"
                if params["sessionId"].as_str() == Some(&self.session) || self.session.is_empty() =>
            {
                self.story.update(&params["update"], is_turn, out);
            }
            "$/cancel_request" => {
                let key = params["requestId"].to_string();
                if let Some(question) = self.questions.remove(&key) {
                    wire::take_back(out, &question.id);
                    out.event(AgentEvent::Withdrawn { question: key });
                }
            }
            // By which account it is signed in: no part of any turn, and it says so before each session.
            "_auth/status_update" => {}
            _ if is_turn => out.event(other(&json!({ "method": method, "params": params }))),
            _ => {}
        }
    }

    /// The turn is over, so nobody waits for an answer any more.
    fn take_questions_back(&mut self, out: &mut ProtocolOutput) {
        for question in std::mem::take(&mut self.questions).into_keys() {
            out.event(AgentEvent::Withdrawn { question });
        }
    }
}

impl AgentProtocol for AcpProtocol {
    fn open(&mut self, out: &mut ProtocolOutput) {
        let goes_on = self.wanted.launch.as_ref().is_some_and(|launch| launch.native.is_some());
        if goes_on && self.behaviour.resume == Resume::Never {
            return self.fail(Trouble::new(Failure::Gone, BEGUN_ANEW), out);
        }
        let params = json!({
            "protocolVersion": wire::VERSION,
            "clientCapabilities": { "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false },
            "clientInfo": { "name": "homing", "title": "Homing", "version": env!("CARGO_PKG_VERSION") },
        });
        self.ask(RequestPurpose::Initialize, "initialize", &params, out);
    }

    fn read(&mut self, line: &str, out: &mut ProtocolOutput) {
        match wire::read(line) {
            Some(RpcMessage::Answer { id, answer }) => {
                match self.waiting.take_if(|(waiting, _)| *waiting == id) {
                    Some((_, ask)) => match answer {
                        Ok(result) => self.answered(ask, &result, out),
                        Err(wrong) => self.went_wrong(ask, wrong, out),
                    },
                    None => out.event(AgentEvent::Other { raw: bounded(line, DETAIL_BYTES_MAX) }),
                }
            }
            Some(RpcMessage::Request { id, method, params }) => self.requested(id, &method, &params, out),
            Some(RpcMessage::Notification { method, params }) => self.notified(&method, &params, out),
            None => out.event(AgentEvent::Other { raw: bounded(line, DETAIL_BYTES_MAX) }),
        }
    }

    /// An update can be left out. An answer or a question cannot: somebody would wait for ever.
    fn read_ends(&mut self, head: &str, _tail: &str, out: &mut ProtocolOutput) {
        let words = format!("the agent printed a line of more than {LINE_BYTES_MAX} bytes");
        if head.contains("\"session/update\"") {
            // What was said before is repeated when a conversation is loaded, images and all: nothing of it is news.
            if !matches!(self.stage, ConnectionStage::Turn { .. }) {
                return;
            }
            return out.event(AgentEvent::Notice { text: format!("{words}; it was left out") });
        }
        self.fail(Trouble::transient(format!("{words}, and it may have been an answer")), out);
    }

    /// Its own word counts. Files that are no text have a form, and agents leave them out without a word.
    fn takes(&self, kind: AttachmentKind) -> bool {
        let says_so = self.can["promptCapabilities"]["image"] == true;
        says_so && kind == AttachmentKind::Image && self.behaviour.abilities().images
    }

    fn hand(&mut self, message: &Message, out: &mut ProtocolOutput) {
        if self.stage != ConnectionStage::Idle {
            return;
        }
        self.stage = ConnectionStage::Turn { is_stopping: false };
        self.has_denied = false;
        self.story.begin_turn();
        let image = |attached: &Attachment| json!({ "type": "image", "mimeType": attached.media_type, "data": in_base64(attached) });
        let words = blocks(message, image);
        let params = json!({ "sessionId": self.session, "prompt": words });
        self.ask(RequestPurpose::Prompt, "session/prompt", &params, out);
    }

    fn answer(&mut self, question: &str, answer: &QuestionAnswer, out: &mut ProtocolOutput) {
        let Some(question) = self.questions.remove(question) else { return };
        self.has_denied |= *answer != QuestionAnswer::Allow;
        let kinds: &[&str] = match answer {
            QuestionAnswer::Allow => &["allow_once"],
            _ if self.behaviour.goes_on_when_cancelled => &["reject_once"],
            _ => &["reject_once", "reject_always"],
        };
        let outcome = question.outcome(kinds);
        if outcome == cancelled() && *answer == QuestionAnswer::Allow {
            let text = "the agent has no way to be allowed this once, so it was not allowed".to_owned();
            out.event(AgentEvent::Notice { text });
        }
        wire::answer(out, &question.id, &outcome);
    }

    /// First that the turn is to stop, then the questions: an agent that hears `cancelled` alone may go on.
    fn interrupt(&mut self, out: &mut ProtocolOutput) {
        let ConnectionStage::Turn { is_stopping } = &mut self.stage else { return };
        *is_stopping = true;
        wire::notify(out, "session/cancel", &json!({ "sessionId": self.session }));
        for (key, question) in std::mem::take(&mut self.questions) {
            wire::answer(out, &question.id, &cancelled());
            out.event(AgentEvent::Withdrawn { question: key });
        }
    }

    fn again(&mut self, launch: &Launch, out: &mut ProtocolOutput) {
        self.wanted.launch = Some(launch.clone());
        let chosen = self.chosen_mode();
        if chosen.is_none_or(|mode| mode == self.story.choices.mode.current) {
            return self.be_ready(out);
        }
        // The turn before has left the mode, by a plan that was approved or by itself.
        self.stage = ConnectionStage::Opening;
        self.set_mode(out);
    }

    fn settles_within(&self) -> Duration {
        Duration::from_millis(self.behaviour.settles_ms)
    }

    fn leaves_on_eof(&self) -> bool {
        self.behaviour.leaves_on_eof
    }
}

impl OpenQuestion {
    /// The first of these kinds that it offers; its own ids are its own affair.
    fn outcome(&self, kinds: &[&str]) -> Value {
        let option = |kind: &&str| self.options.iter().find(|(it, _)| it == kind);
        match kinds.iter().find_map(option) {
            Some((_, id)) => json!({ "outcome": { "outcome": "selected", "optionId": id } }),
            None => cancelled(),
        }
    }
}

fn cancelled() -> Value {
    json!({ "outcome": { "outcome": "cancelled" } })
}

/// The entry of a page of an agent's list of a conversation.
fn listed<'a>(page: &'a Value, session: &str) -> Option<&'a Value> {
    page["sessions"].as_array()?.iter().find(|it| it["sessionId"] == session)
}

/// The request for the page after this one, if there is one and we have not read enough.
fn next_page(page: &Value, pages: u32) -> Option<Value> {
    let cursor = page["nextCursor"].as_str().filter(|_| pages < PAGES_MAX)?;
    Some(json!({ "cursor": cursor }))
}

#[cfg(test)]
mod tests;

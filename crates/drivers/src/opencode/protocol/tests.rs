//! The protocol with what a real opencode said. A recording is played back: what we said then is said again by the protocol,
//! and what opencode answered is told to it.

use std::collections::VecDeque;
use std::path::Path;

use agent::Usage;
use kernel::{Attempt, Epoch, Fence, MessageId, SessionId, Term};

use super::*;

const SESSION: &str = "ses_00000000000000000000000001";
const PLACE: &str = "opencode:/srv/home:/srv/project";

/// A protocol and what it said.
struct Talk {
    protocol: OpenCodeProtocol,
    said: Vec<AgentEvent>,
    /// Requests that are not answered yet: turns, and all others.
    turns: VecDeque<u64>,
    others: VecDeque<(u64, String)>,
    is_interrupted: bool,
    /// The report to it when it reads the messages once more.
    list: Value,
}

fn launch(native: Option<Native>) -> Launch {
    let fence = Fence { term: Term(1), epoch: Epoch(1), turn: kernel::Turn(1), attempt: Attempt(1) };
    let session = SessionId::from_bits(1);
    Launch { native, ..Launch::new(session, fence, MessageId::from_bits(2), "/srv/project") }
}

impl Talk {
    fn new(launch: Launch, messages: &[&str]) -> Self {
        let mut messages: VecDeque<String> = messages.iter().map(|id| format!("msg_{id:0>26}")).collect();
        let setting = ProcessSetting {
            session: launch.native.as_ref().map_or(SESSION, |native| &native.id).to_owned(),
            launch,
            place: PLACE.to_owned(),
            directory: "/srv/project".to_owned(),
            mint: Box::new(move || messages.pop_front().expect("no more messages")),
            said_bytes_max: 1024 * 1024,
            tries_max: 8,
            bypasses: false,
        };
        let mut talk = Self {
            protocol: OpenCodeProtocol::new(setting),
            said: Vec::new(),
            turns: VecDeque::new(),
            others: VecDeque::new(),
            is_interrupted: false,
            list: json!([]),
        };
        talk.speak(|protocol, out| protocol.open(out));
        talk
    }

    /// One that is ready for a message in a conversation there was before.
    fn ready(messages: &[&str]) -> Self {
        let mut talk = Self::new(launch(Some(Native::new(SESSION).at(PLACE))), messages);
        talk.be_opened(json!({"id": SESSION, "directory": "/srv/project"}));
        let native = Native::new(SESSION).at(PLACE);
        assert_eq!(talk.said.last(), Some(&AgentEvent::Ready { native: Some(native) }));
        talk.said.clear();
        talk
    }

    fn be_opened(&mut self, session: Value) {
        let stub = json!({"id": "stub", "options": {"apiKey": "sk-secret"}, "models": {"stub-1":
            {"name": "Stub 1", "limit": {"context": 200_000}}}});
        self.be_opened_with(session, json!([stub]));
    }

    fn be_opened_with(&mut self, session: Value, providers: Value) {
        self.print("opencode server listening on http://127.0.0.1:4096");
        assert_eq!(self.reply(200, json!({"healthy": true, "version": "1.18.33"})), "/global/health");
        self.hear(json!({"type": "server.connected", "properties": {}}));
        self.reply(200, session);
        assert_eq!(self.reply(200, json!({"providers": providers})), "/config/providers");
        let asks = json!([{"permission": "*", "pattern": "*", "action": "ask"}]);
        let modes = json!([{"name": "build", "mode": "primary", "permission": asks},
            {"name": "general", "mode": "subagent", "permission": asks},
            {"name": "title", "mode": "primary", "hidden": true, "permission": asks}]);
        assert_eq!(self.reply(200, modes), "/agent");
        assert_eq!(self.reply(200, json!([{"name": "init", "description": "set up"}])), "/command");
    }

    fn speak(&mut self, speak: impl FnOnce(&mut OpenCodeProtocol, &mut ProtocolOutput)) {
        let mut out = ProtocolOutput::default();
        speak(&mut self.protocol, &mut out);
        let (events, lines, is_interrupted) = out.take();
        self.said.extend(events);
        self.is_interrupted |= is_interrupted;
        let mut lists = Vec::new();
        for line in lines.lines() {
            if let SideOrder::Request { number, path, wait_ms_max, .. } = serde_json::from_str(line).unwrap()
            {
                match path {
                    _ if wait_ms_max.is_none() => self.turns.push_back(number),
                    path if path.contains("/message?limit=") => lists.push(number),
                    path => self.others.push_back((number, path)),
                }
            }
        }
        for number in lists {
            let status = if self.list.is_null() { 500 } else { 200 };
            self.tell(&SideReport::Answer { number, status, body: self.list.clone() });
        }
    }

    fn print(&mut self, line: &str) {
        self.speak(|protocol, out| protocol.read(line, out));
    }

    fn tell(&mut self, told: &SideReport<Value>) {
        let line = serde_json::to_string(told).unwrap();
        self.speak(|protocol, out| protocol.read_side(&line, out));
    }

    fn hear(&mut self, event: Value) {
        self.tell(&SideReport::Event { event });
    }

    /// Answers the oldest request that is not a turn; which it was.
    fn reply(&mut self, status: u16, body: Value) -> String {
        let (number, path) = self.others.pop_front().expect("something was asked");
        self.tell(&SideReport::Answer { number, status, body });
        path
    }

    fn hand(&mut self, text: &str) {
        let message = Message::new(MessageId::from_bits(2), text.to_owned());
        self.speak(|protocol, out| protocol.hand(&message, out));
    }

    fn end_turn(&mut self, status: u16, body: Value) {
        // Somebody else's turn may be in a recording, too.
        if let Some(number) = self.turns.pop_front() {
            self.tell(&SideReport::Answer { number, status, body });
        }
    }

    /// Plays a recording back, with its events or without them.
    fn play(&mut self, story: &str, has_events: bool) {
        for line in lines(story) {
            if line["us"].is_object() {
                self.play_us(&line["us"]);
            } else if line["agent"].is_object() {
                self.play_answer(&line["agent"]);
            } else if line["event"].is_object() && (has_events || is_question(&line["event"])) {
                self.hear(line["event"].clone());
            }
        }
    }

    fn play_us(&mut self, us: &Value) {
        let path = text(us, "/path");
        if path.ends_with("/message") && !self.turns.is_empty() {
            // Somebody else's message, while ours is worked on.
        } else if path.ends_with("/message") {
            // The next turn begins in the same process.
            if !self.said.is_empty() && self.turns.is_empty() && matches!(self.protocol.phase, Phase::Idle) {
                let launch = self.protocol.setting.launch.clone();
                self.speak(|protocol, out| protocol.again(&launch, out));
                self.reply(200, json!({"id": SESSION, "directory": "/srv/project"}));
            }
            self.hand(text(us, "/body/parts/0/text"));
        } else if path.ends_with("/abort") {
            self.speak(AgentProtocol::interrupt);
        } else if let Some(question) =
            path.strip_prefix("/permission/").and_then(|path| path.strip_suffix("/reply"))
        {
            let refusal = QuestionAnswer::Deny { reason: String::new() };
            let answer = if text(us, "/body/reply") == "once" { QuestionAnswer::Allow } else { refusal };
            self.speak(|protocol, out| protocol.answer(question, &answer, out));
        }
    }

    fn play_answer(&mut self, answer: &Value) {
        let (status, body) = (answer["status"].as_u64().unwrap() as u16, answer["body"].clone());
        if body["info"].is_object() || (status != 200 && !self.turns.is_empty()) {
            self.end_turn(status, body);
        } else if !self.others.is_empty() {
            self.reply(status, body);
        }
    }

    /// The events, a line for each thing, words joined.
    fn story(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        for event in &self.said {
            let line = tell(event);
            match (lines.last_mut(), line.strip_prefix("text ")) {
                (Some(last), Some(more)) if last.starts_with("text ") => last.push_str(more),
                _ => lines.push(line),
            }
        }
        lines.join("\n")
    }
}

fn tell(event: &AgentEvent) -> String {
    match event {
        AgentEvent::Ready { .. } => "ready".to_owned(),
        AgentEvent::Text { text } => format!("text {text}"),
        AgentEvent::ToolCall { tool, input, .. } => format!("call {tool} {input}"),
        AgentEvent::ToolProgress { output, .. } => format!("progress {output:?}"),
        AgentEvent::ToolResult { output, failed, .. } => format!("result {output:?} failed={failed}"),
        AgentEvent::Asked { question, tool, detail, .. } => format!("asked {question} {tool} {detail}"),
        AgentEvent::Usage(Usage { input_tokens, output_tokens, cost_micros, window, .. }) => {
            format!("usage {input_tokens} {output_tokens} {cost_micros:?} {window:?}")
        }
        AgentEvent::About(about) => format!("about {} {} {}", about.model, about.mode, about.directory),
        AgentEvent::Finished { reason, .. } => format!("finished {reason}"),
        AgentEvent::Failed(trouble) => format!("failed {trouble}"),
        other => format!("{other:?}"),
    }
}

fn lines(story: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testdata/opencode/{story}.jsonl"));
    let lines = std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn is_question(event: &Value) -> bool {
    text(event, "/type").starts_with("permission.")
}

/// The messages of a recording as they would be listed at its end.
fn list_of(story: &str) -> Value {
    let mut messages: Vec<(String, Value, BTreeMap<String, Value>)> = Vec::new();
    for line in lines(story) {
        let said = &line["event"]["properties"];
        let (info, part) = (&said["info"], &said["part"]);
        match text(&line["event"], "/type") {
            "message.updated" => {
                let id = text(info, "/id").to_owned();
                match messages.iter_mut().find(|(known, ..)| *known == id) {
                    Some(message) => message.1 = info.clone(),
                    None => messages.push((id, info.clone(), BTreeMap::new())),
                }
            }
            "message.part.updated" => {
                let message = text(part, "/messageID");
                if let Some(message) = messages.iter_mut().find(|(known, ..)| known == message) {
                    message.2.insert(text(part, "/id").to_owned(), part.clone());
                }
            }
            _ => {}
        }
    }
    let list = messages
        .into_iter()
        .map(|(_, info, parts)| json!({"info": info, "parts": parts.into_values().collect::<Vec<_>>()}));
    list.collect()
}

#[track_caller]
fn check(story: &str, messages: &[&str], wanted: &str) -> Talk {
    let mut talk = Talk::ready(messages);
    talk.play(story, true);
    assert_eq!(talk.story(), wanted, "{story}");
    talk
}

/// The same without one event, but with the list of messages at the end.
#[track_caller]
fn check_unheard(story: &str, message: &str, wanted: &str) -> Talk {
    let mut talk = Talk::ready(&[message]);
    talk.list = list_of(story);
    talk.play(story, false);
    assert_eq!(talk.story(), wanted, "{story}");
    talk
}

fn assistant(id: &str, more: Value) -> Value {
    let mut info = json!({"id": id, "parentID": "msg_00000000000000000000000001", "role": "assistant", "sessionID": SESSION});
    info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"type": "message.updated", "properties": {"sessionID": SESSION, "info": info}})
}

fn part(message: &str, id: &str, session: &str, more: Value) -> Value {
    let mut part = json!({"id": id, "messageID": message, "sessionID": session});
    part.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"type": "message.part.updated", "properties": {"sessionID": session, "part": part}})
}

fn delta(words: &str) -> Value {
    json!({"type": "message.part.delta", "properties": {"sessionID": SESSION, "messageID": "msg_2", "partID": "prt_1",
        "field": "text", "delta": words}})
}

fn finished(parts: Value) -> Value {
    json!({"info": {"id": "msg_2", "parentID": "msg_00000000000000000000000001", "role": "assistant", "finish": "stop"},
        "parts": parts})
}

#[test]
fn two_turns_in_one_process_each_say_their_own_words() {
    check(
        "turns",
        &["1", "3"],
        "about stub/stub-1 build /srv/project\n\
         text ECHO: keep CODE:maple [turn=1]\n\
         usage 8052 8 Some(8068) Some((8060, 200000))\n\
         finished stop\n\
         about stub/stub-1 build /srv/project\n\
         ready\n\
         text RECALL: maple [turn=2]\n\
         usage 8077 6 Some(8089) Some((8083, 200000))\n\
         finished stop",
    );
}

#[test]
fn a_conversation_goes_on_in_another_process_heard_or_unheard() {
    let wanted = "about stub/stub-1 build /srv/project\n\
                  text RECALL: maple [turn=15]\n\
                  usage 8562 6 Some(8574) Some((8568, 200000))\n\
                  finished stop";
    check("resume", &["1"], wanted);
    check_unheard("resume", "1", wanted);
}

#[test]
fn a_tool_is_allowed_and_another_refused() {
    check(
        "tool",
        &["1", "4"],
        "about stub/stub-1 build /srv/project\n\
         call bash {\"command\":\"echo hi-$((40+2)) > made.txt; cat made.txt\"}\n\
         asked per_00000000000000000000000001 bash echo hi-$((40+2)) > made.txt; cat made.txt\n\
         progress \"hi-42\\n\"\n\
         result \"hi-42\\n\" failed=false\n\
         usage 8111 16 Some(8143) Some((8127, 200000))\n\
         text TOOL SAID: hi-42\n\
         usage 8179 5 Some(8189) Some((8184, 200000))\n\
         finished stop\n\
         about stub/stub-1 build /srv/project\n\
         ready\n\
         asked per_00000000000000000000000002 bash echo hi-$((40+2)) > made.txt; cat made.txt\n\
         call bash {\"command\":\"echo hi-$((40+2)) > made.txt; cat made.txt\"}\n\
         result \"The user rejected permission to use this specific tool call.\" failed=true\n\
         usage 8212 16 Some(8244) Some((8228, 200000))\n\
         finished tool-calls",
    );
}

#[test]
fn an_interrupted_turn_is_neither_success_nor_failure() {
    let words = check("interrupt", &["1"], "about stub/stub-1 build /srv/project\ntext chunk 1 ");
    let asking = check(
        "interrupt-asking",
        &["3"],
        "about stub/stub-1 build /srv/project\n\
         asked per_00000000000000000000000001 bash touch a; sleep 30\n\
         call bash {\"command\":\"touch a; sleep 30\"}\n\
         result \"Tool execution aborted\" failed=true",
    );
    let waiting = check(
        "retrying",
        &["1"],
        "about stub/stub-1 build /srv/project\n\
         Notice { text: \"opencode tries again by itself (try 1): stub error 500\" }",
    );
    let mut cut = Talk::ready(&["1"]);
    cut.play("cut", true);
    assert!([words, asking, waiting, cut].iter().all(|talk| talk.is_interrupted));
}

#[test]
fn an_opencode_that_tries_again_for_ever_is_stopped_and_has_failed() {
    let mut talk = Talk::ready(&["1"]);
    talk.hand("x");
    let mut retry = |attempt: u64| {
        let status = json!({"type": "retry", "attempt": attempt, "message": "stub error 529"});
        let said = json!({"sessionID": talk.protocol.setting.session, "status": status});
        talk.hear(json!({"type": "session.status", "properties": said}));
        matches!(talk.protocol.phase, Phase::GivenUp { .. })
    };
    assert!(!(1..=8).any(&mut retry), "it may");
    assert!(retry(9));
    let info = json!({"id": "msg_2", "parentID": "msg_00000000000000000000000001", "role": "assistant"});
    talk.end_turn(200, json!({"info": info, "parts": []}));
    assert!(!talk.is_interrupted);
    assert!(talk.story().contains("tried 8 times more, in vain: stub error 529"), "{}", talk.story());
}

#[test]
fn an_answer_without_any_word_is_no_success_even_if_nobody_asked_for_the_end() {
    let mut talk = Talk::ready(&["1"]);
    talk.hand("x");
    let info = json!({"id": "msg_2", "parentID": "msg_00000000000000000000000001", "role": "assistant"});
    talk.end_turn(200, json!({"info": info, "parts": []}));
    assert!(talk.is_interrupted);
    let mut talk = Talk::ready(&["1"]);
    talk.hand("x");
    talk.end_turn(200, json!({"info": info, "parts": [{"type": "text", "text": "half", "id": "prt_1"}]}));
    assert!(talk.story().contains("failed"), "{}", talk.story());
}

#[test]
fn failures_are_told_apart_by_what_can_be_done() {
    check(
        "unauthorized",
        &["1"],
        "about stub/stub-1 build /srv/project\n\
         failed the model's server does not take opencode's sign-in: stub error 401. Run `opencode auth login`, or set \
         the provider's key (refused)",
    );
    check("unknown", &["1"], "failed Session not found: ses_00000000000000000000000001 (gone)");
    let tried = "Notice { text: \"opencode tries again by itself (try 1): stub error 529\" }";
    check(
        "overloaded",
        &["1"],
        &format!(
            "about stub/stub-1 build /srv/project\n{tried}\ntext ECHO: ERR:529:1 [turn=11]\n\
             usage 8469 7 Some(8483) Some((8476, 200000))\nfinished stop"
        ),
    );
    let limited = check_unheard(
        "rate-limited",
        "1",
        "about stub/stub-1 build /srv/project\ntext ECHO: ERR:429:2 [turn=9]\n\
         usage 8436 7 Some(8450) Some((8443, 200000))\nfinished stop",
    );
    assert!(!limited.is_interrupted);
}

#[test]
fn the_answer_to_somebody_elses_message_is_not_ours() {
    check(
        "queued",
        &["1"],
        "about stub/stub-1 build /srv/project\n\
         text chunk 1 chunk 2 chunk 3 chunk 4 chunk 5 chunk 6 chunk 7 chunk 8 chunk 9 chunk 10 \n\
         usage 8502 21 Some(8544) Some((8523, 200000))\n\
         failed opencode answered another message than ours (transient)",
    );
}

#[test]
fn a_new_conversation_gets_our_own_id() {
    let mut talk = Talk::new(launch(None), &[]);
    let made = lines("chosen-id").into_iter().find(|line| line["agent"].is_object()).unwrap();
    talk.be_opened(made["agent"]["body"].clone());
    assert_eq!(talk.story(), "about   /srv/project\nready");
    let Some(AgentEvent::About(about)) = talk.said.first() else { panic!() };
    let names = |choices: &[Choice]| choices.iter().map(|choice| choice.name.clone()).collect::<Vec<_>>();
    assert_eq!(about.version, "1.18.33");
    assert_eq!(
        [names(&about.models), names(&about.modes), names(&about.commands)],
        [["stub/stub-1"], ["build"], ["init"]]
    );
    assert!(!format!("{:?}", talk.said).contains("sk-secret"), "keys are nobody's business");
}

#[test]
fn gone_is_only_what_opencode_says_here() {
    let unknown = json!({"name": "NotFoundError", "data": {"message": "Session not found: ses_1"}});
    let opened = |native: Native, status, body: &Value| {
        let mut talk = Talk::new(launch(Some(native)), &[]);
        talk.print("opencode server listening on http://127.0.0.1:4096");
        talk.reply(200, json!({"version": "1"}));
        talk.reply(status, body.clone());
        talk.story()
    };
    let here = Native::new("ses_1").at(PLACE);
    assert!(opened(here.clone(), 404, &unknown).ends_with("(gone)"));
    assert!(opened(Native::new("ses_1").at("elsewhere"), 404, &unknown).ends_with("(refused)"));
    assert!(opened(here.clone(), 404, &json!(null)).ends_with("(transient)"));
    assert!(opened(here, 500, &unknown).ends_with("(transient)"));
    let mut talk = Talk::new(launch(Some(Native::new("nonsense").at(PLACE))), &[]);
    talk.print("opencode server listening on http://127.0.0.1:4096");
    talk.reply(200, json!({"version": "1"}));
    assert!(talk.story().ends_with("start a new session (refused)"), "{}", talk.story());
    assert!(!talk.others.iter().any(|(_, path)| path.contains("nonsense")));
}

#[test]
fn a_server_that_does_not_know_the_password_or_listens_elsewhere_is_not_ours() {
    let mut talk = Talk::new(launch(None), &[]);
    talk.print("opencode server listening on http://127.0.0.1:4096");
    talk.reply(401, json!(null));
    assert_eq!(talk.story(), "failed the server at opencode's address is not the one we started (transient)");
    for address in ["0.0.0.0:4096", "192.0.2.1:80", "example.org:80", ""] {
        let mut talk = Talk::new(launch(None), &[]);
        talk.print(&format!("opencode server listening on http://{address}"));
        assert!(talk.story().starts_with("failed") && talk.others.is_empty(), "{address}");
    }
}

#[test]
fn a_conversation_is_moved_to_the_sessions_directory_or_the_turn_is_refused() {
    let elsewhere = json!({"id": SESSION, "directory": "/srv/old"});
    let begin = || {
        let mut talk = Talk::new(launch(Some(Native::new(SESSION).at("opencode:/srv/home:/srv/old"))), &[]);
        talk.be_opened(elsewhere.clone());
        assert_eq!(talk.story(), "");
        talk
    };
    let mut moved = begin();
    assert_eq!(moved.reply(204, json!(null)), "/experimental/control-plane/move-session");
    moved.reply(200, json!({"id": SESSION, "directory": "/srv/project"}));
    assert_eq!(moved.story(), "about   /srv/project\nready");
    let mut refused = begin();
    refused.reply(400, json!({"name": "MoveSessionError", "data": {"message": "another project"}}));
    assert!(refused.story().contains("another project") && refused.story().ends_with("(refused)"));
    // A server that does not know the way answers with its web page.
    let mut stayed = begin();
    stayed.reply(200, json!(null));
    stayed.reply(200, elsewhere.clone());
    assert!(stayed.story().contains("/srv/old") && stayed.story().ends_with("(refused)"));
}

#[test]
fn what_there_is_not_is_refused_before_a_word_is_handed() {
    for (model, mode) in [(Some("stub/none"), None), (Some("stub-1"), None), (None, Some("general"))] {
        let native = Some(Native::new(SESSION).at(PLACE));
        let (model, mode) = (model.map(str::to_owned), mode.map(str::to_owned));
        let mut talk = Talk::new(Launch { model, mode, ..launch(native) }, &[]);
        talk.be_opened(json!({"id": SESSION, "directory": "/srv/project"}));
        assert!(talk.story().ends_with("(refused)"), "{}", talk.story());
    }
}

#[test]
fn an_opencode_without_a_provider_is_refused_with_how_to_get_one() {
    for providers in [json!([]), json!([{"id": "p", "models": {}}])] {
        let mut talk = Talk::new(launch(Some(Native::new(SESSION).at(PLACE))), &[]);
        talk.be_opened_with(json!({"id": SESSION, "directory": "/srv/project"}), providers);
        let told = talk.story();
        assert!(told.contains("opencode auth login") && told.ends_with("(refused)"), "{told}");
    }
}

#[test]
fn a_command_is_sent_as_one_and_other_slashes_are_words() {
    let asked = |words: &str| {
        let mut talk = Talk::ready(&["1"]);
        talk.protocol.setting.launch.model = Some("stub/a/b".to_owned());
        talk.protocol.setting.launch.mode = Some("build".to_owned());
        talk.protocol.words("msg_1", &Message::new(MessageId::from_bits(2), words))
    };
    let body = json!({"messageID": "msg_1", "command": "init", "arguments": "a b", "model": "stub/a/b", "agent": "build"});
    assert_eq!(asked("/init  a b"), (format!("/session/{SESSION}/command"), body));
    let (path, body) = asked("/tmp is full");
    assert!(path.ends_with("/message"));
    assert_eq!(body["model"], json!({"providerID": "stub", "modelID": "a/b"}));
}

#[test]
fn words_that_were_missed_are_said_once_and_whole() {
    let mut talk = Talk::ready(&["1"]);
    talk.hand("x");
    talk.hear(assistant("msg_2", json!({})));
    talk.hear(part("msg_2", "prt_1", SESSION, json!({"type": "text", "text": ""})));
    talk.hear(delta("one "));
    // The line breaks: "two " is lost.
    talk.hear(json!({"type": "server.connected", "properties": {}}));
    talk.hear(delta("three "));
    let question = json!([{"id": "per_1", "sessionID": "ses_9", "permission": "bash", "patterns": ["ls"], "metadata": {}}]);
    let notice = "Notice { text: \"some of what opencode said in this turn was missed, and could not be read again\" }";
    assert_eq!(talk.reply(200, question), "/permission");
    let whole = json!({"type": "text", "text": "one two three four", "id": "prt_1"});
    // And the messages cannot be read again either.
    talk.list = Value::Null;
    talk.end_turn(200, finished(json!([whole])));
    assert_eq!(
        talk.story().lines().skip(1).collect::<Vec<_>>(),
        ["text one ", "asked per_1 bash ls", notice, "text two three four", "finished stop"]
    );
}

#[test]
fn a_child_session_says_nothing_but_asks_and_costs() {
    let mut talk = Talk::ready(&["1"]);
    talk.hand("x");
    talk.hear(json!({"type": "session.created", "properties": {"sessionID": "ses_9", "info": {"id": "ses_9",
        "parentID": SESSION}}}));
    talk.hear(part("msg_9", "prt_9", "ses_9", json!({"type": "text", "text": "inside"})));
    talk.hear(
        json!({"type": "todo.updated", "properties": {"sessionID": "ses_9", "todos": [{"content": "a"}]}}),
    );
    talk.hear(json!({"type": "permission.asked", "properties": {"id": "per_9", "sessionID": "ses_9",
        "permission": "bash", "patterns": ["ls"], "metadata": {"command": "ls"}}}));
    talk.hear(part(
        "msg_9",
        "prt_8",
        "ses_9",
        json!({"type": "step-finish", "tokens": {"input": 5, "output": 2,
        "reasoning": 1, "cache": {"read": 3, "write": 1}}, "cost": 0.5}),
    ));
    assert_eq!(talk.story(), "asked per_9 bash ls\nusage 9 3 Some(500000) None");
    // Another question was refused, and with it this one.
    talk.hear(
        json!({"type": "permission.replied", "properties": {"sessionID": "ses_9", "requestID": "per_9",
        "reply": "reject"}}),
    );
    assert_eq!(talk.said.last(), Some(&AgentEvent::Withdrawn { question: "per_9".to_owned() }));
}

#[test]
fn plans_and_files_are_told_once() {
    let mut talk = Talk::ready(&["1"]);
    talk.hand("x");
    talk.hear(assistant("msg_2", json!({})));
    talk.hear(json!({"type": "todo.updated", "properties": {"sessionID": SESSION, "todos": [
        {"content": "a", "status": "completed"}, {"content": "b", "status": "cancelled"}, {"content": "c"}]}}));
    talk.hear(json!({"type": "file.edited", "properties": {"file": "/srv/project/a"}}));
    talk.hear(json!({"type": "file.edited", "properties": {"file": "/srv/project/b"}}));
    let state = json!({"status": "completed", "input": {"filePath": "/srv/project/a"}, "output": "done",
        "metadata": {"filepath": "/srv/project/a", "exists": false}});
    let written = json!({"type": "tool", "tool": "write", "callID": "call_1", "state": state, "id": "prt_1"});
    talk.hear(part("msg_2", "prt_1", SESSION, written.clone()));
    talk.end_turn(200, finished(json!([written])));
    let files: Vec<_> =
        talk.said.iter().filter(|event| matches!(event, AgentEvent::FileChanged { .. })).collect();
    let file = |path: &str, change| AgentEvent::FileChanged { path: path.to_owned(), change };
    let wanted = [
        file("/srv/project/a", agent::FileChangeKind::Added),
        file("/srv/project/b", agent::FileChangeKind::Edited),
    ];
    assert_eq!(files, wanted.iter().collect::<Vec<_>>());
    let Some(AgentEvent::Plan { steps }) = talk.said.get(1) else { panic!("{}", talk.story()) };
    assert_eq!(steps.iter().map(|step| step.text.as_str()).collect::<Vec<_>>(), ["a", "c"]);
}

#[test]
fn a_turn_goes_on_after_opencode_made_room_in_its_memory() {
    let mut talk = Talk::ready(&["1"]);
    talk.hand("x");
    let user = |id: &str, created: u64| {
        let info = json!({"id": id, "role": "user", "sessionID": SESSION, "time": {"created": created}});
        json!({"type": "message.updated", "properties": {"sessionID": SESSION, "info": info}})
    };
    talk.hear(user("msg_00000000000000000000000001", 5));
    talk.hear(user("msg_old", 4));
    talk.hear(part("msg_old", "prt_0", SESSION, json!({"type": "text", "text": "x"})));
    talk.hear(user("msg_room", 6));
    talk.hear(part("msg_room", "prt_1", SESSION, json!({"type": "compaction", "auto": true})));
    talk.hear(assistant("msg_sum", json!({"parentID": "msg_room", "summary": true})));
    talk.hear(part("msg_sum", "prt_2", SESSION, json!({"type": "text", "text": "a summary"})));
    talk.hear(user("msg_on", 7));
    talk.hear(part("msg_on", "prt_3", SESSION, json!({"type": "text", "text": "go on", "synthetic": true})));
    let info = json!({"id": "msg_2", "parentID": "msg_on", "role": "assistant", "finish": "stop"});
    let said = json!([{"type": "text", "text": "done", "id": "prt_4"}]);
    talk.end_turn(200, json!({"info": info, "parts": said}));
    assert_eq!(talk.story().lines().skip(1).collect::<Vec<_>>(), ["text done", "finished stop"]);
}

#[test]
fn whatever_is_said_nothing_panics_and_nothing_grows() {
    let mut talk = Talk::ready(&["1"]);
    // What the process prints cannot pass for an answer of its server.
    talk.print(r#"{"event":{"event":{"type":"permission.asked","properties":{"id":"per_1"}}}}"#);
    assert!(matches!(talk.said.last(), Some(AgentEvent::Other { .. })));
    talk.hand("x");
    for line in
        ["", "{", "null", "[]", r#"{"answer":{}}"#, r#"{"event":{"event":null}}"#, r#"{"deaf":{}}"#, "gap\0"]
    {
        talk.speak(|protocol, out| protocol.read_side(line, out));
    }
    for kind in
        ["message.updated", "message.part.updated", "message.part.delta", "session.status", "question.asked"]
    {
        for body in
            [json!(null), json!([]), json!({"sessionID": SESSION}), json!({"sessionID": SESSION, "part": 5})]
        {
            talk.hear(json!({"type": kind, "properties": body}));
        }
    }
    talk.hear(json!({"type": "dance", "properties": {"sessionID": SESSION, "words": "x".repeat(100_000)}}));
    let Some(AgentEvent::Other { raw }) = talk.said.last() else { panic!("{:?}", talk.said.last()) };
    assert!(raw.len() <= DETAIL_BYTES_MAX);
    talk.hear(assistant("msg_2", json!({})));
    talk.hear(part("msg_2", "prt_1", SESSION, json!({"type": "text", "text": "x".repeat(2 * 1024 * 1024)})));
    assert!(talk.story().contains("failed the agent said more in one turn than it may"));
}

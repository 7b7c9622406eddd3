//! Recordings of codex, read again: every line of the recordings is read, what we make of it is compared with what is
//! written down beside it (`STORY.events`), and what we say with what was said to codex then.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kernel::{Attempt, Epoch, Failure, Fence, MessageId, SessionId, Term};

use super::*;

const STORIES: [&str; 14] = [
    "approval",
    "busy",
    "cut",
    "interrupt",
    "interrupt-asking",
    "overloaded",
    "rate-limited",
    "refused",
    "resume",
    "steer",
    "tool",
    "turns",
    "unauthorized",
    "unknown",
];

/// A story being told again.
struct Replay {
    protocol: CodexProtocol,
    /// The words that we said and the story has not said yet.
    ours: Vec<Value>,
    /// The ids we gave to the requests of the story.
    ids: BTreeMap<String, Value>,
    events: Vec<String>,
}

impl Replay {
    fn new(native: Option<&str>) -> Self {
        let fence = Fence { term: Term(1), epoch: Epoch(1), turn: kernel::Turn(1), attempt: Attempt(1) };
        let mut launch = Launch::new(SessionId::from_bits(1), fence, MessageId::from_bits(1), "/srv/project");
        launch.native = native.map(|id| Native::new(id).at("codex:/srv/home/.codex"));
        let place = "codex:/srv/home/.codex".to_owned();
        let beginning = ProcessSetting { launch, place, mode: Mode::Auto, bypasses: false, key: None };
        let mut replay = Self {
            protocol: CodexProtocol::new(beginning),
            ours: Vec::new(),
            ids: BTreeMap::new(),
            events: Vec::new(),
        };
        replay.with(|protocol, out| protocol.open(out));
        replay
    }

    /// Does something and takes what came of it. Requests with names are not in the stories: they are answered here.
    fn with(&mut self, act: impl FnOnce(&mut CodexProtocol, &mut ProtocolOutput)) {
        let mut out = ProtocolOutput::default();
        act(&mut self.protocol, &mut out);
        let mut unanswered = self.take(&mut out);
        while let Some(name) = unanswered.pop() {
            self.protocol.read(&answer_to(&name).to_string(), &mut out);
            unanswered.extend(self.take(&mut out));
        }
    }

    /// Takes what was said, and answers the names of the requests that have one.
    fn take(&mut self, out: &mut ProtocolOutput) -> Vec<String> {
        let (events, said, is_interrupted) = out.take();
        self.events.extend(events.iter().map(|event| format!("{event:?}")));
        if is_interrupted {
            self.events.push("(interrupted)".to_owned());
        }
        let said = said.lines().map(|line| serde_json::from_str::<Value>(line).expect("we say JSON"));
        let (named, ours): (Vec<Value>, Vec<Value>) = said.partition(|line| line["id"].is_string());
        self.ours.extend(ours);
        named.iter().rev().map(|line| text_of(line, "id").to_owned()).collect()
    }

    /// The story says something to codex: we do what makes us say so, and have to say the same.
    fn us(&mut self, line: &Value) {
        let method = text_of(line, "method");
        // Nobody adds words to a turn that runs.
        if method == "turn/steer" || (method == "turn/start" && self.protocol.turn.is_some()) {
            return;
        }
        match (line["method"].as_str(), line["result"]["decision"].as_str()) {
            (Some("turn/start"), _) => {
                let text = text_of(&line["params"]["input"][0], "text").to_owned();
                self.with(|protocol, out| protocol.hand(&Message::new(MessageId::from_bits(1), text), out));
            }
            (Some("turn/interrupt"), _) => self.with(|protocol, out| protocol.interrupt(out)),
            (_, Some(decision)) => {
                let answer = match decision {
                    "accept" => QuestionAnswer::Allow,
                    _ => QuestionAnswer::Deny { reason: "no".to_owned() },
                };
                let question = line["id"].to_string();
                self.with(|protocol, out| protocol.answer(&question, &answer, out));
            }
            _ => {}
        }
        assert!(!self.ours.is_empty(), "we say nothing, but: {line}");
        let ours = self.ours.remove(0);
        self.ids.insert(line["id"].to_string(), ours["id"].clone());
        assert_same(line, &ours);
    }

    fn agent(&mut self, line: &Value) {
        let mut line = line.clone();
        if line.get("method").is_none() {
            let Some(id) = self.ids.get(&line["id"].to_string()) else { return };
            line["id"] = id.clone();
        }
        self.with(|protocol, out| protocol.read(&line.to_string(), out));
    }
}

fn answer_to(name: &str) -> Value {
    match name {
        "account" => json!({"id": name, "result": {"account": null, "requiresOpenaiAuth": false}}),
        "models" => json!({"id": name, "result": {"data": [
            {"model": "m1", "description": "one", "hidden": false}, {"model": "m2", "hidden": true},
        ]}}),
        "known" => json!({"id": name, "error": {"code": -32600, "message": "thread not loaded: X"}}),
        _ => json!({"id": name, "result": {}}),
    }
}

/// We say what was said then; to be opened, a conversation needs more today.
fn assert_same(then: &Value, now: &Value) {
    let method = text_of(then, "method");
    assert_eq!(method, text_of(now, "method"));
    if method == "initialize" {
        return assert_eq!(then["params"]["clientInfo"]["name"], now["params"]["clientInfo"]["name"]);
    }
    // Whoever says no is not asked whether everything is to end.
    if then["result"]["decision"] == "cancel" {
        return assert_eq!(now["result"]["decision"], "decline");
    }
    assert_eq!(then["result"], now["result"]);
    let Some(params) = then["params"].as_object() else {
        return assert!(now.get("params").is_none());
    };
    for (key, value) in params {
        assert_eq!(value, &now["params"][key], "{key} of {method}");
    }
    let opens = ["thread/start", "thread/resume"].contains(&method);
    assert_eq!(now["params"].get("approvalsReviewer").is_some(), opens, "{now}");
    let more = now["params"].as_object().map_or(0, serde_json::Map::len) - params.len();
    assert!(more == usize::from(opens) || method == "thread/resume", "{now}");
}

fn testdata(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/codex").join(file)
}

fn story(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(testdata(&format!("{name}.jsonl"))).expect("the story is there");
    text.lines().map(|line| serde_json::from_str(line).expect("a story is JSON")).collect()
}

fn told_again(name: &str) -> Vec<String> {
    let story = story(name);
    let opening = story.iter().find_map(|line| line["us"]["params"]["threadId"].as_str());
    let is_new = story.iter().any(|line| line["us"]["method"] == "thread/start");
    let mut replay = Replay::new(opening.filter(|_| !is_new));
    for line in &story {
        // What was tried after that is nothing we would do.
        if replay.events.last().is_some_and(|event| event.starts_with("Failed")) {
            break;
        }
        if let Some(us) = line.get("us") {
            replay.us(us);
        } else if let Some(agent) = line.get("agent") {
            replay.agent(agent);
        }
    }
    assert!(replay.ours.is_empty(), "nobody said then: {:?}", replay.ours);
    replay.events
}

#[test]
fn every_recorded_line_is_understood_as_it_is_written_down() {
    for name in STORIES {
        let told = told_again(name).join("\n") + "\n";
        let file = testdata(&format!("{name}.events"));
        if std::env::var_os("HOMING_WRITE_EVENTS").is_some() {
            std::fs::write(&file, &told).expect("it can be written");
        }
        let known = std::fs::read_to_string(&file).unwrap_or_default();
        for (at, (now, then)) in told.lines().zip(known.lines()).enumerate() {
            assert_eq!(now, then, "{name}, event {}", at + 1);
        }
        assert_eq!(told.lines().count(), known.lines().count(), "{name} has more or fewer events");
    }
}

/// A conversation that is open and works on something.
fn busy() -> Replay {
    let mut replay = Replay::new(None);
    for line in &story("turns") {
        if let Some(us) = line.get("us") {
            replay.us(us);
            if us["method"] == "turn/start" {
                break;
            }
        } else if let Some(agent) = line.get("agent") {
            replay.agent(agent);
        }
    }
    replay.events.clear();
    replay
}

fn read(replay: &mut Replay, line: &Value) -> (Vec<AgentEvent>, String) {
    let mut out = ProtocolOutput::default();
    replay.protocol.read(&line.to_string(), &mut out);
    let (events, said, _) = out.take();
    (events, said)
}

#[test]
fn nothing_codex_could_say_is_too_much() {
    let mut replay = busy();
    for name in STORIES {
        for line in story(name) {
            let line = line["agent"].to_string();
            for at in (0..line.len()).step_by(41).filter(|at| line.is_char_boundary(*at)) {
                let mut out = ProtocolOutput::default();
                replay.protocol.read(&line[..at], &mut out);
                replay.protocol.read_ends(&line[..at], &line[at..], &mut out);
                let nonsense = line.replacen(['{', '['], "7", 1).replace("\"id\"", "\"method\"");
                replay.protocol.read(&nonsense, &mut out);
            }
        }
    }
}

#[test]
fn a_question_nobody_can_answer_is_answered_at_once() {
    let mut replay = busy();
    for method in ["item/tool/requestUserInput", "account/chatgptAuthTokens/refresh", "new/thing"] {
        let (events, said) = read(&mut replay, &json!({"id": "x", "method": method, "params": {}}));
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!((&said["id"], &said["error"]["code"]), (&json!("x"), &json!(NO_METHOD)));
        assert!(matches!(&events[..], [AgentEvent::Notice { .. }]), "{events:?}");
    }
}

#[test]
fn a_question_between_turns_is_answered_with_an_error() {
    let mut replay = busy();
    replay.protocol.turn = None;
    let line = json!({"id": 0, "method": "item/fileChange/requestApproval", "params": {"itemId": "i"}});
    assert!(read(&mut replay, &line).1.contains("error"));
}

#[test]
fn permissions_are_granted_for_the_turn_or_not_at_all() {
    let wanted = json!({"network": {"enabled": true}, "fileSystem": null});
    let line = json!({"id": 4, "method": "item/permissions/requestApproval",
        "params": {"itemId": "i", "permissions": wanted, "reason": "to look"}});
    for (answer, granted) in
        [(QuestionAnswer::Allow, wanted.clone()), (QuestionAnswer::Deny { reason: String::new() }, json!({}))]
    {
        let mut replay = busy();
        let (events, _) = read(&mut replay, &line);
        assert!(matches!(&events[..], [AgentEvent::Asked { question, detail, .. }]
            if question == "4" && detail.ends_with("to look")));
        let mut out = ProtocolOutput::default();
        replay.protocol.answer("4", &answer, &mut out);
        replay.protocol.answer("4", &answer, &mut out);
        let said: Value = serde_json::from_str(&out.take().1).unwrap();
        assert_eq!(said, json!({"id": 4, "result": {"permissions": granted, "scope": "turn"}}));
    }
}

#[test]
fn a_form_to_fill_in_is_no_question_of_yes_and_no() {
    let mut replay = busy();
    let form = |fields: Value| {
        json!({"id": 1, "method": "mcpServer/elicitation/request", "params":
        {"serverName": "s", "message": "may I?", "mode": "form", "requestedSchema": {"properties": fields}}})
    };
    let (events, said) = read(&mut replay, &form(json!({"name": {"type": "string"}})));
    assert!(said.contains("error") && matches!(&events[..], [AgentEvent::Notice { .. }]));
    let (events, said) = read(&mut replay, &form(json!({})));
    assert!(said.is_empty() && matches!(&events[..], [AgentEvent::Asked { tool, .. }] if tool == "s"));
}

/// One that is about to hear whether the conversation it goes on with is open.
fn resuming(native: &str) -> Replay {
    let mut replay = Replay::new(Some(native));
    for line in story("resume").iter().take_while(|line| line["us"]["method"] != "thread/resume") {
        match line.get("us") {
            Some(us) => replay.us(us),
            None => replay.agent(&line["agent"]),
        }
    }
    replay.events.clear();
    replay
}

/// The beginning of the line by which codex says that it is.
fn opened_head(id: u64, thread: &str) -> String {
    format!(
        r#"{{"id":{id},"result":{{"thread":{{"id":"{thread}","environments":[{{"environmentId":"local","cwd":"/srv/pro\u006aect"}}],"preview":"{}"#,
        "x".repeat(3_000)
    )
}

#[test]
fn a_codex_that_does_not_say_what_it_may_do_acts_without_asking() {
    let native = "00000000-0000-7000-8000-000000000002";
    let says = r#"","turns":[]},"approvalPolicy":"on-request","approvalsReviewer":"user","sandbox":{"type":"workspaceWrite"}}}"#;
    let quoted =
        r#"\"approvalPolicy\":\"on-request\",\"sandbox\":{\"type\":\"workspaceWrite\"}"},"model":"m"}}"#;
    let never = says.replace("on-request", "never");
    let reviewed = says.replace("\"user\"", "\"auto_review\"");
    for tail in ["", quoted, &says.replace("sandbox", "box"), &never, &reviewed, &says[..says.len() - 30]] {
        let mut replay = resuming(native);
        replay.with(|protocol, out| protocol.read_ends(&opened_head(2, native), tail, out));
        let last = replay.events.last().expect("it has said something");
        assert!(last.starts_with("Failed") && last.contains("acts without asking"), "{tail}: {last}");
        assert!(last.contains("Refused") && last.contains("bypass = true"), "{tail}: {last}");
    }
    // A line that can be read, and does not say it.
    let mut replay = resuming(native);
    replay.agent(&json!({"id": 2, "result": {"thread": {"id": native}, "cwd": "/srv/project"}}));
    assert!(replay.events.iter().all(|event| !event.starts_with("Ready")), "{:?}", replay.events);
}

#[test]
fn a_conversation_that_answers_in_an_endless_line_is_opened_all_the_same() {
    let native = "00000000-0000-7000-8000-000000000002";
    let mut replay = resuming(native);
    let of = opened_head;
    let tail = r#"xxx","turns":[]},"model":"m","approvalPolicy":"on-request","approvalsReviewer":"user","sandbox":{"type":"workspaceWrite"}}}"#;
    replay.with(|protocol, out| protocol.read_ends(&of(9, native), tail, out));
    assert!(replay.events.iter().all(|event| event.starts_with("Notice")), "{:?}", replay.events);
    replay.events.clear();
    replay.with(|protocol, out| protocol.read_ends(&of(2, native), tail, out));
    assert!(replay.events[0].contains("directory: \"/srv/project\""), "{:?}", replay.events);
    assert!(
        replay.events[1].starts_with("Ready") && replay.events[1].contains(native),
        "{:?}",
        replay.events
    );
}

#[test]
fn a_turn_that_ends_in_an_endless_line_ends_as_codex_says_when_asked() {
    for (status, last) in [("completed", "Finished"), ("failed", "Failed")] {
        let mut replay = busy();
        let (thread, turn) = (replay.protocol.thread.clone(), "t1");
        let began = json!({"method": "turn/started", "params": {"threadId": thread, "turn": {"id": turn}}});
        read(&mut replay, &began);
        let head = |turn: &str| {
            format!(
                r#"{{"method":"turn/completed","params":{{"threadId":"{thread}","turn":{{"id":"{turn}","items":[{{"#
            )
        };
        let mut out = ProtocolOutput::default();
        replay.protocol.read_ends(&head("t0"), "", &mut out);
        assert_eq!(out.take(), (Vec::new(), String::new(), false));
        replay.protocol.read_ends(&head(turn), "", &mut out);
        let said: Value = serde_json::from_str(&out.take().1).unwrap();
        assert_eq!(said["method"], "thread/turns/list");
        let answer = json!({"id": said["id"], "result": {"data": [{"id": turn, "status": status}]}});
        let (events, _) = read(&mut replay, &answer);
        assert!(format!("{events:?}").contains(last), "{events:?}");
    }
}

#[test]
fn a_conversation_is_gone_only_if_codex_says_so_twice() {
    let native = "00000000-0000-7000-8000-000000000001";
    let known = [
        (json!({"error": {"message": "thread not loaded: X"}}), Failure::Gone),
        (json!({"error": {"message": "invalid lineage: missing source rollout"}}), Failure::Gone),
        (json!({"error": {"message": "database is locked"}}), Failure::Transient),
        (json!({"result": {"thread": {}}}), Failure::Transient),
    ];
    for (answer, failure) in known {
        let mut replay = Replay::new(Some(native));
        replay.protocol.waiting.insert("2".to_owned(), RequestPurpose::Thread);
        let error = json!({"id": 2, "error": {"message": "no rollout found for thread id X"}});
        let (events, said) = read(&mut replay, &error);
        assert!(events.is_empty() && said.contains("thread/turns/list") && said.contains(native), "{said}");
        let mut answer = answer;
        answer["id"] = json!("known");
        let (events, _) = read(&mut replay, &answer);
        assert!(
            matches!(&events[..], [AgentEvent::Failed(trouble)] if trouble.failure == failure),
            "{events:?}"
        );
    }
}

#[test]
fn another_conversation_or_a_freer_mode_than_was_asked_for_is_not_used() {
    let native = "00000000-0000-7000-8000-000000000001";
    let sandbox = |kind: &str| json!({"type": kind});
    let opened = [
        (
            json!({"thread": {"id": native}, "approvalPolicy": "on-request", "sandbox": sandbox("workspaceWrite")}),
            true,
        ),
        (json!({"thread": {"id": "another"}}), false),
        (
            json!({"thread": {"id": native}, "approvalPolicy": "never", "sandbox": sandbox("dangerFullAccess")}),
            false,
        ),
        (json!({}), false),
    ];
    for (result, is_used) in opened {
        let mut replay = Replay::new(Some(native));
        replay.protocol.waiting.insert("2".to_owned(), RequestPurpose::Thread);
        let (events, _) = read(&mut replay, &json!({"id": 2, "result": result}));
        let is_ready = events.iter().any(|event| matches!(event, AgentEvent::Ready { .. }));
        assert_eq!(is_ready, is_used, "{events:?}");
        assert_eq!(events.iter().any(AgentEvent::is_last), !is_used, "{events:?}");
    }
}

#[test]
fn whoever_is_not_signed_in_is_told_before_anything_is_handed_over() {
    let mut replay = Replay::new(None);
    replay.protocol.waiting.insert("\"account\"".to_owned(), RequestPurpose::Account);
    let answer = json!({"id": "account", "result": {"account": null, "requiresOpenaiAuth": true}});
    let (events, said) = read(&mut replay, &answer);
    assert!(said.is_empty());
    assert!(
        matches!(&events[..], [AgentEvent::Failed(trouble)]
        if trouble.failure == Failure::Refused && trouble.detail.contains("codex login")),
        "{events:?}"
    );
}

#[test]
fn what_another_conversation_says_is_not_the_answer() {
    let mut replay = busy();
    for method in ["item/agentMessage/delta", "turn/completed", "turn/plan/updated"] {
        let params =
            json!({"threadId": "another", "turn": {"id": "t", "status": "completed"}, "delta": "no"});
        let (events, _) = read(&mut replay, &json!({"method": method, "params": params}));
        assert_eq!(events, [], "{method}");
    }
}

#[test]
fn files_tools_thoughts_and_plans_are_told() {
    let mut replay = busy();
    let thread = replay.protocol.thread.clone();
    let mut tell = |method: &str, mut params: Value| {
        params["threadId"] = json!(thread);
        read(&mut replay, &json!({"method": method, "params": params})).0
    };
    let item = json!({"type": "fileChange", "id": "c", "status": "completed", "changes": [
        {"path": "/a", "kind": {"type": "add"}, "diff": "x"},
        {"path": "/b", "kind": {"type": "update", "move_path": "/c"}, "diff": ""},
        {"path": "/d", "kind": {"type": "update", "move_path": null}, "diff": ""},
        {"path": "/e", "kind": {"type": "delete"}, "diff": ""},
    ]});
    let events = tell("item/completed", json!({"item": item}));
    let changed: Vec<String> = events
        .iter()
        .filter(|e| matches!(e, AgentEvent::FileChanged { .. }))
        .map(|e| format!("{e:?}"))
        .collect();
    assert_eq!(changed.len(), 5, "{changed:?}");
    assert!(changed[1].contains("/b") && changed[1].contains("Removed") && changed[2].contains("/c"));

    let item = json!({"type": "mcpToolCall", "id": "m", "server": "s", "tool": "t", "arguments": {"a": 1},
        "status": "failed", "error": {"message": "no"}});
    let events = tell("item/completed", json!({"item": item}));
    assert!(
        matches!(&events[..], [AgentEvent::ToolCall { tool, .. }, AgentEvent::ToolResult { output, failed: true, .. }]
        if tool == "s/t" && output == "no"),
        "{events:?}"
    );

    let events = tell(
        "turn/plan/updated",
        json!({"plan": [{"step": "one", "status": "inProgress"}, {"step": "two"}]}),
    );
    assert!(format!("{events:?}").contains("Active"), "{events:?}");

    let said = tell("item/reasoning/summaryTextDelta", json!({"itemId": "r", "delta": "hm"}));
    assert!(matches!(&said[..], [AgentEvent::Reasoning { text }] if text == "hm"));
    let whole = json!({"type": "reasoning", "id": "r", "summary": ["hm"]});
    assert_eq!(tell("item/completed", json!({"item": whole})), []);
    let whole = json!({"type": "reasoning", "id": "r2", "summary": [], "content": ["so", "so"]});
    assert!(
        matches!(&tell("item/completed", json!({"item": whole}))[..], [AgentEvent::Reasoning { text }] if text == "so\n\nso")
    );
    let whole = json!({"type": "agentMessage", "id": "a", "text": "all at once"});
    assert!(matches!(&tell("item/completed", json!({"item": whole}))[..], [AgentEvent::Text { .. }]));
    let new = json!({"type": "newThing", "id": "n"});
    assert!(matches!(&tell("item/completed", json!({"item": new}))[..], [AgentEvent::Other { .. }]));
}

#[test]
fn a_bare_codex_is_measured_in_the_words_that_this_one_is_spoken_to_in() {
    let written = include_str!("../../testdata/kept/codex.json");
    let session = SessionId::from_bits(1).to_string();
    let here = [("DIRECTORY", "/srv/project"), ("CONVERSATION", "thread-1"), ("WORDS", "hello")];
    let here = here.into_iter().chain([("VERSION", env!("CARGO_PKG_VERSION")), ("SESSION", &session)]);
    let written = here.fold(written.to_owned(), |text, (name, value)| text.replace(name, value));
    let written: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(written["args"], json!(super::super::args(false)));

    // One request that waits for its answer after the other.
    let mut replay = Replay::new(None);
    let mut said = vec![replay.ours.remove(0)];
    let thread = json!({
        "thread": {"id": "thread-1"}, "approvalPolicy": "on-request", "approvalsReviewer": "user",
        "sandbox": {"type": "workspaceWrite"},
    });
    let account = answer_to("account");
    let answers = [
        &json!({"id": 1, "result": {}}),
        &account,
        &json!({"id": 2, "result": thread}),
        &json!({"id": "name", "result": {}}),
    ];
    for answer in answers {
        let (_, lines) = read(&mut replay, answer);
        said.extend(lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    }
    assert_eq!(written["opening"], json!(said));
    let mut out = ProtocolOutput::default();
    replay.protocol.hand(&Message::new(MessageId::from_bits(1), "hello".to_owned()), &mut out);
    let mut message: Value = serde_json::from_str(&out.take().1).unwrap();
    message["id"] = json!("NUMBER");
    assert_eq!(written["message"], message);
}

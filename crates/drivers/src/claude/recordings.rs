//! The protocol against what the real claude said. A story is told line by line: `>` is what we write and must be what was
//! written then, the rest are the events.

use std::fmt::Write;

use agent::{AgentEvent, Launch, Message, QuestionAnswer};
use expect_test::{Expect, expect};
use kernel::{Attempt, Epoch, Failure, Fence, MessageId, Native, SessionId, Term, Turn};
use serde_json::{Value, json};
use uuid::Uuid;

use super::protocol::{ClaudeProtocol, Conversation};
use crate::agent_protocol::{AgentProtocol, ProtocolOutput};

/// The conversation's id in most recordings.
const ID: &str = "00000000-0000-4000-8000-000000000003";

fn launch() -> Launch {
    let fence = Fence { term: Term(1), epoch: Epoch(1), turn: Turn(1), attempt: Attempt(1) };
    Launch::new(SessionId::from_bits(7), fence, MessageId::from_bits(1), "/srv/project")
}

fn protocol(conversation: Conversation) -> ClaudeProtocol {
    let id = match &conversation {
        Conversation::New(_) => None,
        Conversation::Known(id) | Conversation::Fork { of: id, .. } => {
            Some(Native::new(id.to_string()).at("here"))
        }
    };
    ClaudeProtocol::new(Launch { native: id, ..launch() }, "here".to_owned(), conversation, Vec::new())
}

fn id(text: &str) -> Uuid {
    Uuid::try_parse(text).unwrap()
}

/// A protocol that is ready, without what it said until then.
fn ready() -> ClaudeProtocol {
    ready_in("default")
}

fn ready_in(mode: &str) -> ClaudeProtocol {
    let mut protocol = protocol(Conversation::New(id(ID)));
    let said = json!({"current_permission_mode": mode});
    let answer = json!({"subtype": "success", "request_id": "homing-initialize", "response": said});
    protocol.read(
        &json!({"type": "control_response", "response": answer}).to_string(),
        &mut ProtocolOutput::default(),
    );
    protocol
}

fn lines(story: &str) -> Vec<Value> {
    let path = format!("{}/testdata/claude/{story}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{path}: {why}"));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[track_caller]
fn check(story: &str, protocol: ClaudeProtocol, want: Expect) {
    want.assert_eq(&tell(&lines(story), protocol));
}

fn tell(lines: &[Value], mut protocol: ClaudeProtocol) -> String {
    let mut told = String::new();
    let mut is_over = false;
    for line in lines {
        let mut out = ProtocolOutput::default();
        if let Some(us) = line.get("us") {
            if is_over {
                protocol.again(&launch(), &mut out);
                is_over = false;
            }
            say(us, &mut protocol, &mut out);
        } else if let Some(agent) = line.get("agent") {
            let line = agent.to_string().replace("init-1", "homing-initialize");
            protocol.read(
                &line.replace("int-1", "homing-interrupt").replace("int-2", "homing-interrupt"),
                &mut out,
            );
        } else if let Some(complaint) = line.get("stderr") {
            let trouble = protocol.gone(complaint.as_str().unwrap());
            out.event(AgentEvent::Notice { text: format!("if it goes now: {trouble:?}") });
        }
        let (events, bytes, is_interrupted) = out.take();
        check_written(&bytes, line);
        for event in events {
            is_over |= event.is_last();
            writeln!(told, "{}", short(&event)).unwrap();
        }
        if is_interrupted {
            is_over = true;
            told.push_str("interrupted\n");
        }
    }
    writeln!(told, "may be kept: {}", protocol.may_be_kept()).unwrap();
    told
}

/// Says to the agent what was said to it then.
fn say(us: &Value, protocol: &mut ClaudeProtocol, out: &mut ProtocolOutput) {
    match us["type"].as_str().unwrap() {
        "user" => {
            let text = us["message"]["content"][0]["text"].as_str().unwrap().to_owned();
            let message = MessageId::from_bits(id(us["uuid"].as_str().unwrap()).as_u128());
            protocol.hand(&Message::new(message, text), out);
        }
        "control_response" => {
            let response = &us["response"];
            let answer = match response["response"]["message"].as_str() {
                Some(reason) => QuestionAnswer::Deny { reason: reason.to_owned() },
                None => QuestionAnswer::Allow,
            };
            protocol.answer(response["request_id"].as_str().unwrap(), &answer, out);
        }
        "control_request" if us["request"]["subtype"] == "interrupt" => protocol.interrupt(out),
        "control_request" => protocol.open(out),
        other => panic!("{other}"),
    }
}

/// The lines we write are what was written then; how we call our own requests may differ.
fn check_written(bytes: &str, line: &Value) {
    let mut written: Vec<Value> = bytes.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut want: Vec<Value> = line.get("us").cloned().into_iter().collect();
    for said in written.iter_mut().chain(&mut want) {
        if said["type"] == "control_request" {
            said["request_id"] = "ours".into();
        }
    }
    assert_eq!(written, want);
}

fn short(event: &AgentEvent) -> String {
    let text = match event {
        AgentEvent::Ready { native } => format!("ready {}", native.as_ref().unwrap().id),
        AgentEvent::Text { text } => format!("text {text:?}"),
        AgentEvent::About(about) => {
            let names =
                |of: &[agent::Choice]| of.iter().map(|it| it.name.clone()).collect::<Vec<_>>().join(",");
            format!(
                "about {} {} {} {} models={} commands={}",
                about.version,
                about.directory,
                about.model,
                about.mode,
                names(&about.models),
                names(&about.commands)
            )
        }
        AgentEvent::Finished { native, reason } => {
            format!("finished {} {reason}", native.as_ref().unwrap().id)
        }
        AgentEvent::Notice { text } => format!("notice {text}"),
        event => format!("{event:?}"),
    };
    text.replace(ID, "ID")
}

#[test]
fn it_is_ready_when_it_has_said_what_it_can_do() {
    check(
        "initialize",
        protocol(Conversation::New(id(ID))),
        expect![[r#"
            about 2.1.325   default models=default,opus,fable commands=deep-research,dataviz,update-config
            ready ID
            may be kept: true
        "#]],
    );
}

#[test]
fn two_turns_in_one_process() {
    check(
        "turns",
        ready(),
        expect![[r#"
            about 2.1.325 /srv/project claude-opus-5-5 default models= commands=
            text "ECHO: keep CODE"
            text ":maple [turn=1]"
            Usage(Usage { input_tokens: 12734, output_tokens: 8, cached_tokens: 0, cost_micros: Some(51096), window: Some((12742, 1000000)) })
            finished ID end_turn
            about 2.1.325 /srv/project claude-opus-5-5 default models= commands=
            ready ID
            text "RECALL: map"
            text "le [turn=2]"
            Usage(Usage { input_tokens: 12765, output_tokens: 6, cached_tokens: 0, cost_micros: Some(51180), window: Some((12771, 1000000)) })
            finished ID end_turn
            may be kept: true
        "#]],
    );
}

#[test]
fn a_turn_of_a_resumed_conversation() {
    check(
        "resume",
        ready(),
        expect![[r#"
        about 2.1.325 /srv/project claude-opus-5-5 default models= commands=
        text "RECALL: map"
        text "le [turn=3]"
        Usage(Usage { input_tokens: 12801, output_tokens: 6, cached_tokens: 0, cost_micros: Some(51324), window: Some((12807, 1000000)) })
        finished ID end_turn
        may be kept: true
    "#]],
    );
}

#[test]
fn a_tool_is_allowed_and_then_refused() {
    check(
        "tool",
        ready(),
        expect![[r#"
            about 2.1.325 /srv/project claude-opus-5-5 default models= commands=
            ToolCall { call: "toolu_stub0003", tool: "Bash", input: "{\"command\":\"echo hi-$((40+2)) > made.txt; cat made.txt\"}" }
            Asked { question: "00000000-0000-4000-8000-00000000000e", tool: "Bash", kind: "", detail: "{\"command\":\"echo hi-$((40+2)) > made.txt; cat made.txt\"}", form: Permission }
            ToolResult { call: "toolu_stub0003", output: "hi-42", failed: false }
            text "TOOL SAI"
            text "D: hi-42"
            Usage(Usage { input_tokens: 25766, output_tokens: 21, cached_tokens: 0, cost_micros: Some(103484), window: Some((12924, 1000000)) })
            finished ID end_turn
            about 2.1.325 /srv/project claude-opus-5-5 default models= commands=
            ready ID
            ToolCall { call: "toolu_stub0005", tool: "Bash", input: "{\"command\":\"echo hi-$((40+2)) > made.txt; cat made.txt\"}" }
            Asked { question: "00000000-0000-4000-8000-000000000027", tool: "Bash", kind: "", detail: "{\"command\":\"echo hi-$((40+2)) > made.txt; cat made.txt\"}", form: Permission }
            ToolResult { call: "toolu_stub0005", output: "not today", failed: true }
            text "TOOL SAID:"
            text " not today"
            Usage(Usage { input_tokens: 26000, output_tokens: 22, cached_tokens: 0, cost_micros: Some(104440), window: Some((13042, 1000000)) })
            finished ID end_turn
            may be kept: true
        "#]],
    );
}

#[test]
fn a_turn_is_interrupted_in_the_middle_of_words() {
    check(
        "interrupt",
        ready(),
        expect![[r#"
            about 2.1.325 /srv/project claude-opus-5-5 default models= commands=
            text "chunk 1 "
            interrupted
            about 2.1.325 /srv/project claude-opus-5-5 default models= commands=
            ready ID
            text "RECALL: map"
            text "le [turn=7]"
            Usage(Usage { input_tokens: 13119, output_tokens: 6, cached_tokens: 0, cost_micros: Some(52596), window: Some((13125, 1000000)) })
            finished ID end_turn
            may be kept: true
        "#]],
    );
}

#[test]
fn a_turn_is_interrupted_while_it_asks() {
    check(
        "interrupt-asking",
        ready(),
        expect![[r#"
            about 2.1.325 /srv/project claude-opus-5-5 default models= commands=
            ToolCall { call: "toolu_stub0009", tool: "Bash", input: "{\"command\":\"touch a; sleep 30\"}" }
            Asked { question: "00000000-0000-4000-8000-00000000000d", tool: "Bash", kind: "", detail: "{\"command\":\"touch a; sleep 30\"}", form: Permission }
            Withdrawn { question: "00000000-0000-4000-8000-00000000000d" }
            ToolResult { call: "toolu_stub0009", output: "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed.", failed: true }
            Usage(Usage { input_tokens: 13159, output_tokens: 9, cached_tokens: 0, cost_micros: Some(52816), window: Some((13168, 1000000)) })
            interrupted
            may be kept: true
        "#]],
    );
}

#[test]
fn who_is_not_signed_in_is_refused() {
    check(
        "unauthorized",
        ready(),
        expect![[r#"
        about 2.1.325 /srv/project claude-opus-5-5 default models= commands=
        notice the model server failed (401, authentication_failed); claude tries again in 604 ms, 1 of 1
        Failed(Trouble { failure: Refused, detail: "claude is not signed in, or may not do this: Failed to authenticate. API Error: 401 stub error 401; sign in with `claude` and then /login, or set ANTHROPIC_API_KEY" })
        may be kept: true
    "#]],
    );
}

#[test]
fn a_busy_server_passes() {
    check(
        "rate-limited",
        ready(),
        expect![[r#"
        about 2.1.325 /srv/project claude-opus-5-5 default models= commands=
        notice the model server failed (429, rate_limit); claude tries again in 1000 ms, 1 of 1
        Failed(Trouble { failure: Transient, detail: "API Error: Request rejected (429) · stub error 429" })
        may be kept: true
    "#]],
    );
    check(
        "overloaded",
        ready(),
        expect![[r#"
        about 2.1.325 /srv/project claude-opus-5-5 default models= commands=
        notice the model server failed (529, overloaded); claude tries again in 602 ms, 1 of 1
        Failed(Trouble { failure: Transient, detail: "API Error: 529 stub error 529. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:4000)." })
        may be kept: true
    "#]],
    );
}

#[test]
fn no_server_and_a_line_that_breaks_pass() {
    check(
        "refused",
        ready(),
        expect![[r#"
        about 2.1.325 /srv/project claude-opus-5-5 default models= commands=
        notice the model server failed (no answer, unknown); claude tries again in 544 ms, 1 of 1
        Failed(Trouble { failure: Transient, detail: "API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)" })
        may be kept: true
    "#]],
    );
    check(
        "cut",
        ready(),
        expect![[r#"
            about 2.1.325 /srv/project claude-opus-5-5 default models= commands=
            notice the model server failed (no answer, unknown); claude tries again in 623 ms, 1 of 1
            text "ECHO: DRO"
            notice the line to the model server broke; the words before this are no part of the answer
            Usage(Usage { input_tokens: 13366, output_tokens: 1, cached_tokens: 0, cost_micros: Some(53484), window: Some((13366, 1000000)) })
            Failed(Trouble { failure: Transient, detail: "API Error: Connection to the API was lost (ECONNRESET). This is usually temporary — try again." })
            may be kept: true
        "#]],
    );
}

#[test]
fn an_unknown_conversation_is_gone_before_it_is_ready() {
    // We ask first and hand over later; claude complains without being asked.
    let lines: Vec<Value> = lines("unknown").into_iter().filter(|line| line.get("us").is_none()).collect();
    let id = id("00000000-0000-4000-8000-000000000002");
    let here = tell(&lines, protocol(Conversation::Known(id)));
    expect![[r#"
        notice if it goes now: Some(Trouble { failure: Gone, detail: "No conversation found with session ID: 00000000-0000-4000-8000-000000000002" })
        Failed(Trouble { failure: Gone, detail: "No conversation found with session ID: 00000000-0000-4000-8000-000000000002" })
        may be kept: false
    "#]].assert_eq(&here);
}

#[test]
fn an_id_that_is_taken_is_busy() {
    let lines: Vec<Value> = lines("exists").into_iter().filter(|line| line.get("us").is_none()).collect();
    expect![[r#"
        notice if it goes now: Some(Trouble { failure: Busy, detail: "Error: Session ID 00000000-0000-4000-8000-000000000002 is already in use." })
        may be kept: false
    "#]].assert_eq(&tell(&lines, protocol(Conversation::New(id(ID)))));
}

#[test]
fn what_it_says_to_an_earlier_message_is_not_ours() {
    // The first message was somebody else's, say a turn that claude began by itself.
    let mut lines = lines("queued");
    let first = lines.iter().position(|line| line.get("us").is_some()).unwrap();
    lines.remove(first);
    let second = lines.iter().position(|line| line.get("us").is_some()).unwrap();
    let said = lines.remove(second);
    lines.insert(0, said);
    expect![[r#"
        notice claude has finished something of its own before this message
        about 2.1.325 /srv/project claude-opus-5-5 default models= commands=
        text "ECHO: secon"
        text "d [turn=11]"
        Usage(Usage { input_tokens: 13470, output_tokens: 6, cached_tokens: 0, cost_micros: Some(54000), window: Some((13476, 1000000)) })
        finished ID end_turn
        about 2.1.325 /srv/project claude-opus-5-5 default models= commands=
        ready ID
        may be kept: false
    "#]].assert_eq(&tell(&lines, ready()));
}

/// The events that a protocol makes of these lines, one after the other.
fn read(protocol: &mut ClaudeProtocol, lines: &[Value]) -> (Vec<AgentEvent>, String) {
    let mut out = ProtocolOutput::default();
    for line in lines {
        protocol.read(&line.to_string(), &mut out);
    }
    let (events, bytes, _) = out.take();
    (events, bytes)
}

/// A protocol whose message claude has begun with.
fn working() -> ClaudeProtocol {
    working_in("default")
}

fn working_in(mode: &str) -> ClaudeProtocol {
    let mut protocol = ready_in(mode);
    protocol.hand(&Message::new(MessageId::from_bits(1), "hello".to_owned()), &mut ProtocolOutput::default());
    read(&mut protocol, &[lifecycle("queued"), lifecycle("started")]);
    protocol
}

fn lifecycle(state: &str) -> Value {
    json!({"type": "command_lifecycle", "command_uuid": "00000000-0000-4000-8000-000000000001", "state": state})
}

fn assistant(parent: Value, block: Value) -> Value {
    let message = json!({"id": "m", "content": [block]});
    json!({"type": "assistant", "parent_tool_use_id": parent, "message": message})
}

fn result() -> Value {
    json!({"type": "result", "is_error": false, "stop_reason": "end_turn", "session_id": ID, "result": "done"})
}

fn tool_result(call: &str, failed: bool, more: Value) -> Value {
    let block = json!({"type": "tool_result", "tool_use_id": call, "is_error": failed, "content": [{"type": "text", "text": "ok"}]});
    json!({"type": "user", "message": {"content": [block]}, "tool_use_result": more})
}

#[test]
fn words_that_come_only_whole_are_told_and_those_of_helpers_are_no_answer() {
    let mut protocol = working();
    let lines = [
        assistant(Value::Null, json!({"type": "thinking", "thinking": "hm"})),
        assistant("call".into(), json!({"type": "text", "text": "from a helper"})),
        assistant(Value::Null, json!({"type": "text", "text": "whole"})),
        result(),
    ];
    let told: Vec<String> = read(&mut protocol, &lines).0.iter().map(short).collect();
    let want = [
        r#"Reasoning { text: "hm" }"#,
        r#"ToolProgress { call: "call", output: "from a helper" }"#,
        r#"text "whole""#,
        "finished ID end_turn",
    ];
    assert_eq!(told, want);
}

#[test]
fn an_answer_that_only_the_result_has_is_told() {
    let told: Vec<String> = read(&mut working(), &[result()]).0.iter().map(short).collect();
    assert_eq!(told, [r#"text "done""#, "finished ID end_turn"]);
}

#[test]
fn plans_and_changed_files_are_told() {
    let todos = json!([{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"}]);
    let edit = |id: &str, tool: &str| {
        assistant(
            Value::Null,
            json!({"type": "tool_use", "id": id, "name": tool, "input": {"file_path": "/srv/a"}}),
        )
    };
    let lines = [
        assistant(
            Value::Null,
            json!({"type": "tool_use", "id": "t", "name": "TodoWrite", "input": {"todos": todos}}),
        ),
        edit("w", "Write"),
        tool_result("w", false, json!({"type": "create"})),
        edit("e", "Edit"),
        tool_result("e", false, json!({})),
        edit("f", "Edit"),
        tool_result("f", true, json!({})),
    ];
    let events = read(&mut working(), &lines).0;
    let told: Vec<String> =
        events.iter().filter(|event| !matches!(event, AgentEvent::ToolCall { .. })).map(short).collect();
    let want = [
        r#"Plan { steps: [PlanStep { text: "a", progress: Done }, PlanStep { text: "b", progress: Active }] }"#,
        r#"ToolResult { call: "w", output: "ok", failed: false }"#,
        r#"FileChanged { path: "/srv/a", change: Added }"#,
        r#"ToolResult { call: "e", output: "ok", failed: false }"#,
        r#"FileChanged { path: "/srv/a", change: Edited }"#,
        r#"ToolResult { call: "f", output: "ok", failed: true }"#,
    ];
    assert_eq!(told, want);
}

#[test]
fn no_request_is_left_without_an_answer() {
    let request = |subtype: &str| json!({"type": "control_request", "request_id": "r", "request": {"subtype": subtype}});
    for mut protocol in [protocol(Conversation::New(id(ID))), ready(), working()] {
        let (_, bytes) = read(&mut protocol, &[request("hook_callback")]);
        let answer: Value = serde_json::from_str(&bytes).unwrap();
        assert_eq!(
            (&answer["response"]["subtype"], &answer["response"]["request_id"]),
            (&"error".into(), &"r".into())
        );
    }
    // A tool that nobody's turn asks for is not allowed by anybody.
    let (events, bytes) = read(&mut ready(), &[request("can_use_tool")]);
    assert!(bytes.contains("error") && !events.iter().any(|event| matches!(event, AgentEvent::Asked { .. })));
}

#[test]
fn a_question_that_is_open_at_the_end_is_withdrawn_and_takes_no_answer() {
    let mut protocol = working();
    let request = json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": {}});
    let asked = json!({"type": "control_request", "request_id": "q", "request": request});
    let events = read(&mut protocol, &[asked, result()]).0;
    assert!(events.contains(&AgentEvent::Withdrawn { question: "q".to_owned() }));
    let mut out = ProtocolOutput::default();
    protocol.answer("q", &QuestionAnswer::Allow, &mut out);
    assert_eq!(out.take().1, "");
}

#[test]
fn a_result_that_was_too_long_does_not_keep_the_turn_open() {
    let mut protocol = working();
    let mut out = ProtocolOutput::default();
    protocol.read_ends(r#"{"duration_api_ms":1,"#, "", &mut out);
    protocol.read(&lifecycle("completed").to_string(), &mut out);
    let told: Vec<String> = out.take().0.iter().map(short).collect();
    assert_eq!(told[1..], ["finished ID "]);
    assert!(protocol.may_be_kept());
}

#[test]
fn a_message_that_claude_has_had_before_is_not_waited_for() {
    let mut protocol = ready();
    protocol.hand(&Message::new(MessageId::from_bits(1), "hello".to_owned()), &mut ProtocolOutput::default());
    let events = read(&mut protocol, &[lifecycle("completed")]).0;
    assert!(matches!(&events[..], [AgentEvent::Failed(trouble)] if trouble.failure == Failure::Refused));
}

#[test]
fn a_message_that_is_interrupted_before_it_begins_is_interrupted_when_it_does() {
    let mut protocol = ready();
    let mut out = ProtocolOutput::default();
    protocol.hand(&Message::new(MessageId::from_bits(1), "hello".to_owned()), &mut out);
    protocol.interrupt(&mut out);
    out.take();
    let (_, bytes) = read(&mut protocol, &[lifecycle("queued"), lifecycle("started")]);
    assert!(bytes.contains("interrupt"), "{bytes}");
}

#[test]
fn a_conversation_that_changes_its_id_is_known_by_the_new_one() {
    let new = "11111111-1111-4111-8111-111111111111";
    let init = json!({"type": "system", "subtype": "init", "session_id": new, "cwd": "/srv/project"});
    let mut result = result();
    result["session_id"] = new.into();
    let events = read(&mut working(), &[init, result]).0;
    let native = Native::new(new).at("here");
    assert!(events.contains(&AgentEvent::Native(native.clone())));
    assert!(
        matches!(events.last(), Some(AgentEvent::Finished { native: Some(last), .. }) if *last == native)
    );
}

#[test]
fn a_process_that_would_act_by_itself_or_otherwise_is_not_kept() {
    let system = |subtype: &str, field: &str, value: Value| json!({"type": "system", "subtype": subtype, field: value});
    let after = |before: &[Value], later: &[Value]| {
        let mut protocol = working();
        read(&mut protocol, before);
        read(&mut protocol, &[result()]);
        read(&mut protocol, later);
        protocol.may_be_kept()
    };
    let tasks = |tasks: Value| system("background_tasks_changed", "tasks", tasks);
    assert!(after(&[], &[lifecycle("completed")]));
    assert!(after(&[tasks(json!([{}])), tasks(json!([]))], &[]));
    assert!(!after(&[tasks(json!([{}]))], &[]));
    assert!(!after(&[system("status", "permissionMode", "plan".into())], &[]));
    assert!(!after(&[], &[system("init", "session_id", ID.into())]));
    assert!(!after(&[], &[tasks(json!([{}]))]));
}

#[test]
fn a_mode_of_its_own_settings_in_which_it_acts_without_asking_is_refused() {
    let opened_in = |said: Value| {
        let mut protocol = protocol(Conversation::New(id(ID)));
        let answer = json!({"subtype": "success", "request_id": "homing-initialize", "response": said});
        let mut out = ProtocolOutput::default();
        protocol.read(&json!({"type": "control_response", "response": answer}).to_string(), &mut out);
        out.take().0
    };
    let in_mode = |mode: &str| json!({"current_permission_mode": mode});
    // One that does not say is in none.
    let silent = [json!({}), json!({"current_permission_mode": null})];
    for mode in ["bypassPermissions", "auto", "someNewMode", ""].map(in_mode).into_iter().chain(silent) {
        let events = opened_in(mode.clone());
        let Some(AgentEvent::Failed(trouble)) = events.last() else { panic!("{mode}: {events:?}") };
        assert_eq!(trouble.failure, Failure::Refused, "{mode}");
        assert!(
            trouble.detail.contains("without asking") && trouble.detail.contains("bypass = true"),
            "{trouble}"
        );
    }
    assert!(matches!(opened_in(in_mode("default")).last(), Some(AgentEvent::Ready { .. })));
}

#[test]
fn nothing_it_prints_makes_us_panic_or_grow() {
    let long = "é".repeat(20_000);
    let odd =
        ["", "{", "[]", "null", "{}", r#"{"type":7}"#, r#"{"type":"result"}"#, r#"{"type":"system"}"#, &long];
    let mut lines: Vec<String> = odd.map(str::to_owned).to_vec();
    for kind in [
        "system",
        "assistant",
        "user",
        "result",
        "stream_event",
        "control_request",
        "control_response",
        "new",
    ] {
        for value in
            [json!(null), json!(long), json!([long, 1]), json!({"type": long, "content": [{"type": long}]})]
        {
            let fields =
                ["subtype", "message", "event", "request_id", "request", "response", "errors", "session_id"];
            for field in fields {
                lines.push(json!({"type": kind, field: value, "is_error": true}).to_string());
            }
        }
    }
    for mut protocol in [protocol(Conversation::New(id(ID))), ready(), working()] {
        for line in &lines {
            let mut out = ProtocolOutput::default();
            protocol.read(line, &mut out);
            for event in out.take().0 {
                assert!(format!("{event:?}").len() < 4 * agent::TEXT_BYTES_MAX, "{line:.200}");
            }
        }
    }
}

#[test]
fn a_plan_is_shown_as_it_was_written_and_the_mode_after_it_is_told() {
    let mut protocol = working_in("plan");
    let status = |mode: &str| json!({"type": "system", "subtype": "status", "permissionMode": mode});
    let plan = "# Plan\n\n1. read\n2. write";
    let request = json!({"subtype": "can_use_tool", "tool_name": "ExitPlanMode", "input": {"plan": plan}});
    let asked = json!({"type": "control_request", "request_id": "q", "request": request});
    let events = read(&mut protocol, &[asked]).0;
    assert!(
        matches!(&events[..], [AgentEvent::Asked { tool, detail, .. }] if tool == "ExitPlanMode" && detail == plan),
        "{events:?}"
    );
    let mut out = ProtocolOutput::default();
    protocol.answer("q", &QuestionAnswer::Allow, &mut out);
    let sent: Value = serde_json::from_str(out.take().1.trim()).unwrap();
    assert_eq!(sent["response"]["response"]["updatedInput"]["plan"], plan);
    let events = read(&mut protocol, &[status("default")]).0;
    let [AgentEvent::Notice { text }] = &events[..] else { panic!("{events:?}") };
    assert!(text.contains("in the mode default") && text.contains("begins in plan again"), "{text}");
    // It is not kept in that mode, so the next turn is in the one that was chosen.
    read(&mut protocol, &[result()]);
    assert!(!protocol.may_be_kept());
}

#[test]
fn what_claude_leaves_running_is_named_when_the_turn_is_over() {
    let mut protocol = working();
    let tasks = json!({"type": "system", "subtype": "background_tasks_changed",
        "tasks": [{"task_id": "b1", "task_type": "local_bash", "description": "npm run dev"}]});
    let events = read(&mut protocol, &[tasks, result(), lifecycle("completed")]).0;
    let told = events.iter().position(|event| {
        matches!(event, AgentEvent::Notice { text } if text.contains("npm run dev") && text.contains("ended"))
    });
    let finished = events.iter().position(|event| matches!(event, AgentEvent::Finished { .. }));
    assert!(told.is_some() && told < finished, "{events:?}");
}

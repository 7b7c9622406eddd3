//! The protocol hears what real agents said (`testdata`), and what no agent should say.

mod modes;
mod newcomers;

use agent::{Progress, Usage};
use kernel::{Attempt, Epoch, Fence, MessageId, SessionId, Term, Turn};

use super::*;
use crate::acp::quirks::Quirks;
use modes::in_mode;

const UUID: &str = "00000000-0000-4000-8000-000000000001";

/// A conversation with one agent, in the words of its recordings.
struct Talk {
    protocol: AcpProtocol,
    out: ProtocolOutput,
    events: Vec<AgentEvent>,
    sent: Vec<Value>,
    is_interrupted: bool,
}

fn launch(native: Option<&str>) -> Launch {
    let fence = Fence { term: Term(1), epoch: Epoch(1), turn: Turn(1), attempt: Attempt(1) };
    let launch = Launch::new(SessionId::from_bits(1), fence, MessageId::from_bits(1), "/srv/project");
    Launch { native: native.map(Native::new), ..launch }
}

impl Talk {
    fn new(quirks: &str, launch: Launch) -> Self {
        Self::with(toml::from_str(quirks).unwrap(), launch, false)
    }

    fn with(quirks: Quirks, launch: Launch, bypasses: bool) -> Self {
        let wanted = ProcessSetting { launch: Some(launch), place: "here".to_owned(), bypasses };
        let protocol = AcpProtocol::new(Arc::new(quirks.behaviour()), wanted);
        let (events, sent) = (Vec::new(), Vec::new());
        Self { protocol, out: ProtocolOutput::default(), events, sent, is_interrupted: false }
    }

    /// One that is ready, in the middle of a recording.
    fn ready(agent: &str, session: &str, next_id: u64) -> Self {
        let mut talk = Self::with(Quirks::of(agent).unwrap(), launch(None), false);
        talk.protocol.session = session.to_owned();
        talk.protocol.next_id = next_id;
        talk.protocol.stage = ConnectionStage::Idle;
        talk
    }

    fn does(&mut self, what: impl FnOnce(&mut AcpProtocol, &mut ProtocolOutput)) {
        what(&mut self.protocol, &mut self.out);
        let (events, bytes, is_interrupted) = self.out.take();
        self.events.extend(events);
        self.sent.extend(bytes.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
        self.is_interrupted |= is_interrupted;
    }

    fn hears(&mut self, said: &Value) {
        self.does(|protocol, out| protocol.read(&said.to_string(), out));
    }

    /// Plays a recording: says what we said then, and hears what the agent said.
    fn play(&mut self, story: &str) -> &mut Self {
        for line in recorded(story) {
            if let Some(us) = line.get("us") {
                self.say(us);
            }
            if let Some(said) = line.get("agent") {
                self.hears(said);
            }
        }
        self
    }

    /// Does what we did in the recording; whether it is said in the same words is checked.
    fn say(&mut self, us: &Value) {
        let before = self.sent.len();
        match us["method"].as_str() {
            Some("initialize") => self.does(|protocol, out| protocol.open(out)),
            // What opens a session follows by itself.
            Some("session/new" | "session/load" | "session/resume") => return,
            Some("session/prompt") => {
                let text = us["params"]["prompt"][0]["text"].as_str().unwrap().to_owned();
                // A second prompt in a turn is not ours to make.
                if self.protocol.stage != ConnectionStage::Idle {
                    return;
                }
                self.does(|protocol, out| protocol.hand(&Message::new(MessageId::from_bits(1), text), out));
            }
            Some("session/cancel") => self.does(|protocol, out| protocol.interrupt(out)),
            Some(other) => panic!("{other}?"),
            None => {
                let answer = match us["result"]["outcome"]["optionId"].as_str() {
                    Some(id) if id.starts_with("allow") => QuestionAnswer::Allow,
                    Some(_) => QuestionAnswer::Deny { reason: String::new() },
                    // Said with the cancel before it.
                    None => return assert!(self.sent.contains(us), "{us}"),
                };
                self.does(|protocol, out| protocol.answer(&us["id"].to_string(), &answer, out));
            }
        }
        let said = &self.sent[before];
        assert_eq!(
            (&said["method"], &said["id"], &said["result"]),
            (&us["method"], &us["id"], &us["result"])
        );
        if us["method"] == "session/prompt" {
            assert_eq!(said["params"], us["params"]);
        }
    }

    fn text(&self) -> String {
        let texts = self.events.iter().filter_map(|event| match event {
            AgentEvent::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    fn failed(&self) -> &Trouble {
        match self.events.last() {
            Some(AgentEvent::Failed(trouble)) => trouble,
            other => panic!("it did not fail: {other:?}"),
        }
    }

    fn finished(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, AgentEvent::Finished { .. })).count()
    }

    fn methods(&self) -> Vec<&str> {
        self.sent.iter().filter_map(|sent| sent["method"].as_str()).collect()
    }

    fn usage(&self) -> Usage {
        let mut sum = Usage::default();
        for event in &self.events {
            if let AgentEvent::Usage(usage) = event {
                sum.input_tokens += usage.input_tokens;
                sum.output_tokens += usage.output_tokens;
                sum.cost_micros =
                    sum.cost_micros.or(Some(0)).map(|cost| cost + usage.cost_micros.unwrap_or(0));
                sum.window = usage.window.or(sum.window);
            }
        }
        sum
    }

    /// Nothing was left over that somebody should have understood.
    fn understood(&self) {
        let others = self.events.iter().filter(|event| matches!(event, AgentEvent::Other { .. }));
        assert_eq!(others.collect::<Vec<_>>(), Vec::<&AgentEvent>::new());
    }
}

fn recorded(story: &str) -> Vec<Value> {
    let path = format!("{}/testdata/{story}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn two_turns_of_claude_are_two_turns() {
    let mut talk = Talk::new("base = 'claude-agent-acp'", launch(None));
    talk.play("claude-agent-acp/turns").understood();
    assert_eq!(talk.methods(), ["initialize", "session/new", "session/prompt", "session/prompt"]);
    assert_eq!(talk.events[1], AgentEvent::Ready { native: Some(Native::new(UUID).at("here")) });
    let AgentEvent::About(about) = &talk.events[0] else { panic!("{:?}", talk.events[0]) };
    assert_eq!(
        (about.version.as_str(), about.mode.as_str(), about.model.as_str()),
        ("0.99.1", "default", "default")
    );
    assert!(about.models.iter().any(|model| model.name == "opus") && about.modes.len() == 4);
    assert_eq!(talk.text(), "ECHO: keep CODE:maple [turn=1]RECALL: maple [turn=2]");
    assert_eq!(talk.finished(), 2);
    let Some(AgentEvent::Finished { native, reason }) = talk.events.last() else { panic!() };
    assert_eq!((native.as_ref().unwrap().id.as_str(), reason.as_str()), (UUID, "end_turn"));
    // The two sums of money are differences: 51116 and 98272 - 51116.
    let usage = talk.usage();
    assert_eq!((usage.input_tokens, usage.output_tokens), (11_702 + 11_759, 8 + 6));
    assert_eq!((usage.cost_micros, usage.window), (Some(98_272), Some((11_765, 1_000_000))));
    let commands = talk
        .events
        .iter()
        .filter(|event| matches!(event, AgentEvent::About(about) if !about.commands.is_empty()));
    assert_eq!(commands.count(), 1, "what is said twice is told once");
}

#[test]
fn two_turns_of_goose_are_two_turns() {
    let mut talk = Talk::new("base = 'goose'", launch(None));
    talk.play("goose/turns").understood();
    assert_eq!(talk.text(), "ECHO: keep CODE:maple [turn=1]RECALL: maple [turn=2]");
    assert_eq!(talk.finished(), 2);
    assert_eq!((talk.usage().input_tokens, talk.usage().window), (3_897 + 3_931, Some((3_937, 128_000))));
}

#[test]
fn history_that_is_repeated_is_no_answer() {
    for (agent, session) in [("claude-agent-acp", UUID), ("goose", "20261115_1")] {
        let mut talk = Talk::new(&format!("base = '{agent}'\nresume = 'load'"), launch(Some(session)));
        talk.play(&format!("{agent}/load")).understood();
        assert_eq!(talk.methods(), ["initialize", "session/load", "session/prompt"]);
        assert_eq!(talk.text(), "RECALL: maple [turn=3]", "{agent}");
        let ready = talk.events.iter().position(|event| matches!(event, AgentEvent::Ready { .. }));
        assert_eq!((ready, talk.finished()), (Some(1), 1), "only what it is comes before");
    }
}

#[test]
fn a_silent_resume_is_preferred_where_there_is_one() {
    let mut talk = Talk::new("base = 'claude-agent-acp'", launch(Some(UUID)));
    talk.play("claude-agent-acp/turns");
    assert_eq!(talk.methods()[1], "session/resume");
    assert_eq!(talk.sent[1]["params"], json!({"sessionId": UUID, "cwd": "/srv/project", "mcpServers": []}));
}

#[test]
fn tools_are_called_asked_about_and_answered() {
    for (agent, session, id, tool) in
        [("claude-agent-acp", UUID, 5, "Bash"), ("goose", "20261115_1", 4, "shell")]
    {
        let mut talk = Talk::ready(agent, session, id);
        talk.play(&format!("{agent}/tool")).understood();
        assert_eq!(talk.finished(), 2);
        let calls: Vec<_> =
            talk.events.iter().filter(|event| matches!(event, AgentEvent::ToolCall { .. })).collect();
        assert_eq!(calls.len(), 2, "{calls:?}");
        assert!(
            matches!(calls[0], AgentEvent::ToolCall { tool: it, input, .. } if it == tool && input.contains("echo hi-")),
            "{calls:?}"
        );
        let asked = talk.events.iter().filter(
            |event| matches!(event, AgentEvent::Asked { tool: it, kind, detail, .. } if it == tool && kind == "execute" && detail.contains("made.txt")),
        );
        assert_eq!(asked.count(), 2, "{agent}");
        let results: Vec<_> = talk
            .events
            .iter()
            .filter_map(|event| match event {
                AgentEvent::ToolResult { output, failed, .. } => Some((output.as_str(), *failed)),
                _ => None,
            })
            .collect();
        assert_eq!(results[0], ("hi-42", false));
        assert!(
            results[1].1 && results[1].0.contains("refused permission") | results[1].0.contains("declined")
        );
        assert!(talk.text().starts_with("TOOL SAID: hi-42TOOL SAID: "));
    }
}

#[test]
fn a_turn_we_stop_is_neither_success_nor_failure() {
    for (story, agent, session, id) in [
        ("claude-agent-acp/interrupt", "claude-agent-acp", UUID, 8),
        ("claude-agent-acp/interrupt-asking", "claude-agent-acp", UUID, 10),
        // In the middle of words it says `end_turn`, while it asks `cancelled`.
        ("goose/interrupt", "goose", "20261115_1", 7),
        ("goose/interrupt-asking", "goose", "20261115_1", 9),
    ] {
        let mut talk = Talk::ready(agent, session, id);
        for line in recorded(story) {
            if talk.is_interrupted {
                break;
            }
            if let Some(us) = line.get("us") {
                talk.say(us);
            }
            if let Some(said) = line.get("agent") {
                talk.hears(said);
            }
        }
        assert!(talk.is_interrupted, "{story}");
        assert!(!talk.events.iter().any(AgentEvent::is_last), "{story}");
        if story.ends_with("asking") {
            let cancel = talk.sent.iter().position(|sent| sent["method"] == "session/cancel").unwrap();
            assert_eq!(talk.sent[cancel + 1]["result"], cancelled(), "first the turn, then the question");
            assert!(talk.events.iter().any(|event| matches!(event, AgentEvent::Withdrawn { .. })));
        }
    }
}

#[test]
fn a_turn_that_ended_before_our_stop_has_finished() {
    let mut talk = Talk::ready("claude-agent-acp", UUID, 8);
    talk.does(|protocol, out| protocol.hand(&Message::new(MessageId::from_bits(1), "x".to_owned()), out));
    talk.does(|protocol, out| protocol.interrupt(out));
    talk.hears(&json!({"id": 8, "result": {"stopReason": "end_turn"}}));
    assert_eq!((talk.finished(), talk.is_interrupted), (1, false));
}

#[test]
fn a_turn_the_agent_cancels_by_itself_has_failed() {
    let mut talk = Talk::ready("gemini", "s", 3);
    talk.does(|protocol, out| protocol.hand(&Message::new(MessageId::from_bits(1), "x".to_owned()), out));
    talk.hears(&json!({"id": 3, "result": {"stopReason": "cancelled"}}));
    assert_eq!(talk.failed().failure, Failure::Transient);
}

#[test]
fn only_the_answer_to_our_prompt_ends_the_turn() {
    for (agent, session) in [("claude-agent-acp", UUID), ("goose", "20261115_1")] {
        let mut talk = Talk::ready(agent, session, 5);
        talk.play(&format!("{agent}/queued"));
        assert_eq!(talk.finished(), 1, "{agent}");
        let end = talk.events.iter().position(AgentEvent::is_last).unwrap();
        let said = talk.events[..end]
            .iter()
            .filter(|event| matches!(event, AgentEvent::Text { text } if text == "chunk 10 "));
        assert_eq!(said.count(), 1, "{agent}: not before its last word");
    }
}

#[test]
fn what_goes_wrong_with_the_model_keeps_its_kind() {
    for (agent, session) in [("claude-agent-acp", UUID), ("goose", "20261115_1")] {
        for (story, failure, words) in [
            ("unauthorized", Failure::Refused, "sign in"),
            ("rate-limited", Failure::Transient, "429"),
            ("overloaded", Failure::Transient, "529"),
            ("refused", Failure::Transient, "onne"),
            ("cut", Failure::Transient, "error"),
        ] {
            let mut talk = Talk::ready(agent, session, 3);
            talk.play(&format!("{agent}/{story}")).understood();
            assert_eq!(talk.failed().failure, failure, "{agent}/{story}");
            assert!(talk.failed().detail.contains(words), "{}", talk.failed());
        }
    }
}

#[test]
fn an_unknown_conversation_is_gone_when_the_agent_does_not_list_it_either() {
    for (agent, id) in [("claude-agent-acp", UUID), ("goose", "20200101_99")] {
        let opened = |page: Value| {
            let mut talk = Talk::new(&format!("base = '{agent}'"), launch(Some(id)));
            let lines = recorded(&format!("{agent}/unknown"));
            for said in lines.iter().filter_map(|line| line.get("agent")).take_while(|said| said["id"] != 3) {
                if talk.sent.is_empty() {
                    talk.does(|protocol, out| protocol.open(out));
                }
                talk.hears(said);
            }
            assert_eq!(talk.methods().last(), Some(&"session/list"), "{agent}");
            assert!(!talk.events.iter().any(AgentEvent::is_last));
            talk.hears(&json!({"id": 3, "result": page}));
            talk
        };
        assert_eq!(opened(json!({"sessions": [{"sessionId": "else"}]})).failed().failure, Failure::Gone);
        let listed = opened(json!({"sessions": [{"sessionId": id, "cwd": "/srv/project"}]}));
        assert_eq!(listed.failed().failure, Failure::Transient);
        let mut paged = opened(json!({"sessions": [], "nextCursor": "2"}));
        assert_eq!(paged.sent.last().unwrap()["params"], json!({"cursor": "2"}));
        paged.hears(&json!({"id": 4, "result": {"sessions": []}}));
        assert_eq!(paged.failed().failure, Failure::Gone);
    }
}

#[test]
fn an_unknown_conversation_elsewhere_is_refused() {
    let moved = Launch { native: Some(Native::new(UUID).at("elsewhere")), ..launch(None) };
    let mut talk = Talk::with(Quirks::default(), moved, false);
    open(&mut talk, json!({"loadSession": true}));
    talk.hears(&json!({"id": 2, "error": {"code": -32002, "message": "Resource not found"}}));
    // Without a list it is asked once more.
    assert_eq!(talk.methods(), ["initialize", "session/load", "session/load"]);
    talk.hears(&json!({"id": 3, "error": {"code": -32002, "message": "Resource not found"}}));
    assert_eq!(talk.failed().failure, Failure::Refused);
    assert!(talk.failed().detail.contains("elsewhere"));
}

#[test]
fn an_agent_that_loses_what_it_loads_is_never_asked_to() {
    let mut talk = Talk::new("base = 'gemini'", launch(Some("g-1")));
    talk.does(|protocol, out| protocol.open(out));
    assert_eq!(talk.failed().failure, Failure::Gone);
    assert!(talk.failed().detail.contains("begins a new one"), "{}", talk.failed());
    assert_eq!(talk.methods(), [] as [&str; 0]);
    let mut fresh = Talk::new("base = 'gemini'", launch(None));
    fresh.does(|protocol, out| protocol.open(out));
    assert_eq!(fresh.methods(), ["initialize"]);
}

#[test]
fn a_conversation_that_is_known_the_second_time_is_not_gone() {
    let mut talk = Talk::new("", launch(Some("x")));
    open(&mut talk, json!({"loadSession": true}));
    talk.hears(&json!({"id": 2, "error": {"code": -32002, "message": "Resource not found"}}));
    talk.hears(&json!({"id": 3, "result": null}));
    assert_eq!(talk.failed().failure, Failure::Transient);
}

#[test]
fn nothing_stands_in_for_the_conversation_that_was_named() {
    let mut talk = Talk::new("", launch(Some("mine")));
    open(&mut talk, json!({"loadSession": true}));
    talk.hears(&json!({"id": 2, "result": {"sessionId": "another"}}));
    assert_eq!(talk.failed().failure, Failure::Refused);
    let mut none = Talk::new("", launch(Some("")));
    open(&mut none, json!({"loadSession": true}));
    assert_eq!((none.failed().failure, none.methods()), (Failure::Gone, vec!["initialize"]));
}

#[test]
fn where_unknown_cannot_be_told_from_anything_else_it_is_transient() {
    let mut talk = Talk::new("base = 'opencode'", launch(Some("ses_x")));
    open(&mut talk, json!({"loadSession": true, "sessionCapabilities": {"list": {}, "resume": {}}}));
    talk.hears(&json!({"id": 2, "error": {"code": -32603, "message": "OpenCode service failure", "data": {"service": "session"}}}));
    assert_eq!(talk.failed().failure, Failure::Transient);
}

#[test]
fn a_conversation_that_was_moved_is_looked_for_where_the_agent_has_it() {
    let moved = Launch { native: Some(Native::new("s").at("elsewhere")), ..launch(None) };
    let mut talk = Talk::with(Quirks::default(), moved, false);
    open(&mut talk, json!({"loadSession": true, "sessionCapabilities": {"list": {}}}));
    talk.hears(&json!({"id": 2, "result": {}}));
    talk.hears(&json!({"id": 3, "result": {"sessions": [{"sessionId": "s", "cwd": "/srv/old"}]}}));
    // Whoever runs the protocol refuses a directory that is not the session's.
    assert!(matches!(&talk.events[0], AgentEvent::About(about) if about.directory == "/srv/old"));
}

#[test]
fn model_and_mode_are_set_before_it_is_ready_or_refused_with_what_there_is() {
    let choosing = |model: &str, mode: &str| {
        let wanted = Launch { model: Some(model.to_owned()), mode: Some(mode.to_owned()), ..launch(None) };
        let mut talk = Talk::with(Quirks::of("goose").unwrap(), wanted, false);
        open(&mut talk, json!({"loadSession": true}));
        talk.hears(&json!({"id": 2, "result": {"sessionId": "s",
            "modes": {"currentModeId": "approve", "availableModes": [{"id": "approve"}, {"id": "chat"}, {"id": "auto"}]},
            "models": {"currentModelId": "a", "availableModels": [{"modelId": "a"}, {"modelId": "b"}]}}}));
        talk
    };
    let mut talk = choosing("b", "chat");
    assert_eq!(talk.methods().last(), Some(&"session/set_mode"));
    talk.hears(&json!({"id": 3, "result": {}}));
    assert_eq!(talk.sent.last().unwrap()["params"], json!({"sessionId": "s", "modelId": "b"}));
    assert!(talk.events.is_empty(), "not ready yet");
    talk.hears(&json!({"id": 4, "result": null}));
    assert!(
        matches!(&talk.events[0], AgentEvent::About(about) if about.model == "b" && about.mode == "chat")
    );
    assert!(matches!(talk.events[1], AgentEvent::Ready { .. }));
    let refused = choosing("c", "approve");
    assert_eq!(refused.failed().failure, Failure::Refused);
    assert!(refused.failed().detail.contains("a, b"));
    assert!(choosing("a", "auto").failed().detail.contains("without asking"));
}

#[test]
fn a_question_names_the_tool_or_its_kind_and_never_the_command() {
    for (call, tool, kind) in [
        (
            json!({"title": "rm -rf /", "kind": "execute", "_meta": {"toolName": "run_shell_command"}}),
            "run_shell_command",
            "execute",
        ),
        (json!({"title": "echo hi > made", "kind": "execute"}), "execute", "execute"),
        (json!({"title": "Bash"}), "other", ""),
    ] {
        let mut talk = in_mode("base = 'qwen'", false, "default", &["default"]);
        talk.does(|protocol, out| {
            protocol.hand(&Message::new(MessageId::from_bits(1), "go".to_owned()), out)
        });
        let mut call = call;
        call["toolCallId"] = json!("c-1");
        talk.hears(&json!({"id": 9, "method": "session/request_permission", "params": {"sessionId": "s", "toolCall": call,
            "options": [{"optionId": "y", "kind": "allow_once"}]}}));
        let asked = talk.events.iter().find_map(|event| match event {
            AgentEvent::Asked { tool, kind, .. } => Some((tool.as_str(), kind.as_str())),
            _ => None,
        });
        assert_eq!(asked, Some((tool, kind)));
    }
}

#[test]
fn an_answer_is_chosen_by_its_kind_and_never_reaches_further() {
    let answered = |kinds: &[&str], answer: QuestionAnswer| {
        let mut talk = asking(kinds);
        talk.does(|protocol, out| protocol.answer("7", &answer, out));
        let said = talk.sent.last().unwrap()["result"]["outcome"].clone();
        talk.does(|protocol, out| protocol.answer("7", &answer, out));
        assert_eq!(talk.sent.iter().filter(|sent| sent["id"] == 7).count(), 1, "answered once");
        said.get("optionId").and_then(Value::as_str).unwrap_or("cancelled").to_owned()
    };
    let deny = || QuestionAnswer::Deny { reason: "no".to_owned() };
    assert_eq!(answered(&["allow_always", "allow_once"], QuestionAnswer::Allow), "id-allow_once");
    assert_eq!(answered(&["allow_always", "reject_once"], QuestionAnswer::Allow), "cancelled");
    assert_eq!(answered(&["reject_always", "reject_once"], deny()), "id-reject_once");
    assert_eq!(answered(&["reject_always"], deny()), "cancelled");
}

#[test]
fn a_question_that_is_taken_back_takes_no_answer() {
    let mut talk = asking(&["allow_once"]);
    talk.hears(&json!({"method": "$/cancel_request", "params": {"requestId": 7}}));
    assert_eq!(talk.events.last(), Some(&AgentEvent::Withdrawn { question: "7".to_owned() }));
    let said = talk.sent.len();
    talk.does(|protocol, out| protocol.answer("7", &QuestionAnswer::Allow, out));
    assert_eq!(talk.sent.len(), said);
}

#[test]
fn questions_of_other_sessions_and_unknown_requests_are_answered_at_once() {
    let mut talk = asking(&["allow_once"]);
    let mut other = question(8, &["allow_once"]);
    other["params"]["sessionId"] = json!("else");
    talk.hears(&other);
    assert_eq!(talk.sent.last(), Some(&json!({"jsonrpc": "2.0", "id": 8, "result": cancelled()})));
    talk.hears(&json!({"id": 9, "method": "fs/read_text_file", "params": {"path": "/etc/passwd"}}));
    assert_eq!(talk.sent.last().unwrap()["error"]["code"], -32601);
    assert!(matches!(talk.events.last(), Some(AgentEvent::Other { .. })));
}

#[test]
fn a_tool_that_edits_says_which_files() {
    let mut talk = Talk::ready("default", "s", 3);
    talk.does(|protocol, out| protocol.hand(&Message::new(MessageId::from_bits(1), "x".to_owned()), out));
    talk.hears(&update(json!({"sessionUpdate": "tool_call", "toolCallId": "a", "title": "Write", "kind": "edit", "rawInput": {"p": 1}})));
    talk.hears(&update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "a", "content": [
        {"type": "diff", "path": "/p/new", "oldText": null, "newText": "x"}, {"type": "diff", "path": "/p/old", "oldText": "y", "newText": "x"}]})));
    talk.hears(&update(
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "a", "status": "completed"}),
    ));
    talk.hears(&update(json!({"sessionUpdate": "tool_call", "toolCallId": "b", "kind": "delete", "status": "completed", "locations": [{"path": "/p/old"}]})));
    talk.hears(&update(json!({"sessionUpdate": "tool_call", "toolCallId": "c", "kind": "edit", "status": "failed", "locations": [{"path": "/p/no"}]})));
    let changed = talk.events.iter().filter_map(|event| match event {
        AgentEvent::FileChanged { path, change } => Some((path.as_str(), *change)),
        _ => None,
    });
    let changed: Vec<_> = changed.collect();
    use agent::FileChangeKind::{Added, Edited, Removed};
    assert_eq!(changed, [("/p/new", Added), ("/p/old", Edited), ("/p/old", Removed)]);
}

#[test]
fn plans_thoughts_and_progress_have_their_own_words() {
    let mut talk = Talk::ready("default", "s", 3);
    talk.does(|protocol, out| protocol.hand(&Message::new(MessageId::from_bits(1), "x".to_owned()), out));
    talk.hears(&update(
        json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}}),
    ));
    talk.hears(&update(
        json!({"sessionUpdate": "plan", "entries": [{"content": "one", "status": "in_progress"}]}),
    ));
    talk.hears(&update(
        json!({"sessionUpdate": "tool_call", "toolCallId": "a", "title": "run", "status": "in_progress"}),
    ));
    for text in ["1", "12", "12"] {
        talk.hears(&update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "a",
            "content": [{"type": "content", "content": {"type": "text", "text": text}}]})));
    }
    let step = agent::PlanStep { text: "one".to_owned(), progress: Progress::Active };
    let progress =
        |output: &str| AgentEvent::ToolProgress { call: "a".to_owned(), output: output.to_owned() };
    let call = AgentEvent::ToolCall { call: "a".to_owned(), tool: "run".to_owned(), input: "run".to_owned() };
    let wanted = [
        AgentEvent::Reasoning { text: "hm".to_owned() },
        AgentEvent::Plan { steps: vec![step] },
        call,
        progress("1"),
        progress("2"),
    ];
    assert_eq!(talk.events, wanted);
}

#[test]
fn words_in_the_middle_of_an_answer_are_no_failure() {
    let mut talk = Talk::ready("goose", "s", 3);
    talk.does(|protocol, out| protocol.hand(&Message::new(MessageId::from_bits(1), "x".to_owned()), out));
    let failure = "Ran into this error: Rate limit exceeded: x.\n\nPlease retry if you think this is a transient or recoverable error.";
    for text in [failure, "\n", "That is what it says."] {
        talk.hears(&update(
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}),
        ));
    }
    talk.hears(&json!({"id": 3, "result": {"stopReason": "end_turn"}}));
    assert_eq!(talk.finished(), 1);
}

#[test]
fn hostile_lines_are_kept_bounded_and_never_end_a_turn() {
    let mut talk = Talk::ready("default", "s", 3);
    talk.does(|protocol, out| protocol.hand(&Message::new(MessageId::from_bits(1), "x".to_owned()), out));
    let (long, some) = ("x".repeat(100_000), "y".repeat(2_000));
    for line in [
        "not json".to_owned(),
        "[".repeat(50_000),
        json!({"id": 4, "result": {"stopReason": "end_turn"}}).to_string(),
        json!({"id": "3", "result": {"stopReason": "end_turn"}}).to_string(),
        update(json!({"sessionUpdate": long})).to_string(),
        update(json!({"sessionUpdate": "tool_call", "toolCallId": long})).to_string(),
        update(json!({"sessionUpdate": "tool_call", "toolCallId": "a", "title": long, "name": long, "rawInput": long, "status": "completed", "rawOutput": long})).to_string(),
        update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": long}})).to_string(),
        update(json!({"sessionUpdate": "agent_message_chunk", "content": [1]})).to_string(),
        update(json!({"sessionUpdate": "plan", "entries": vec![json!({"content": some}); 500]})).to_string(),
        update(json!({"sessionUpdate": "usage_update", "used": -1, "size": 1e300, "cost": {"amount": 1e300}})).to_string(),
        update(json!({"sessionUpdate": "available_commands_update", "availableCommands": vec![json!({"name": some}); 500]})).to_string(),
        update(Value::Null).to_string(),
        json!({"method": "session/update"}).to_string(),
        json!({"id": {"a": [1]}, "method": "session/request_permission"}).to_string(),
        json!({"id": long, "method": "session/request_permission", "params": {"sessionId": "s"}}).to_string(),
    ] {
        talk.does(|protocol, out| protocol.read(&line, out));
    }
    assert!(!talk.events.iter().any(AgentEvent::is_last));
    for event in &talk.events {
        let size = format!("{event:?}").len();
        assert!(size <= 400_000, "{size}");
    }
    assert_eq!(talk.text(), long);
    let head = r#"{"jsonrpc":"2.0","method":"session/update","params":{"#;
    talk.does(|protocol, out| protocol.read_ends(head, "", out));
    assert!(matches!(talk.events.last(), Some(AgentEvent::Notice { .. })));
    talk.does(|protocol, out| protocol.read_ends(r#"{"jsonrpc":"2.0","id":3,"result":"#, "", out));
    assert_eq!(talk.failed().failure, Failure::Transient);
}

#[test]
fn another_version_of_the_protocol_is_refused() {
    let mut talk = Talk::new("", launch(None));
    talk.does(|protocol, out| protocol.open(out));
    talk.hears(&json!({"id": 1, "result": {"protocolVersion": 2}}));
    assert_eq!(talk.failed().failure, Failure::Refused);
}

fn open(talk: &mut Talk, can: Value) {
    talk.does(|protocol, out| protocol.open(out));
    talk.hears(&json!({"id": 1, "result": {"protocolVersion": 1, "agentCapabilities": can}}));
}

/// A turn in which the agent asks, under the id 7.
fn asking(kinds: &[&str]) -> Talk {
    let mut talk = Talk::ready("default", "s", 3);
    talk.does(|protocol, out| protocol.hand(&Message::new(MessageId::from_bits(1), "x".to_owned()), out));
    talk.hears(&question(7, kinds));
    assert!(matches!(talk.events.last(), Some(AgentEvent::Asked { question, .. }) if question == "7"));
    talk
}

#[test]
fn a_plan_is_shown_and_the_mode_that_was_chosen_holds_again_in_the_next_turn() {
    let wanted = Launch { mode: Some("plan".to_owned()), ..launch(None) };
    let mut talk = Talk::with(Quirks::of("claude-agent-acp").unwrap(), wanted.clone(), false);
    open(&mut talk, json!({"loadSession": true}));
    talk.hears(&json!({"id": 2, "result": {"sessionId": "s", "modes": {"currentModeId": "plan",
        "availableModes": [{"id": "default"}, {"id": "plan"}]}}}));
    talk.does(|protocol, out| protocol.hand(&Message::new(MessageId::from_bits(1), "x".to_owned()), out));
    let mut asks = question(7, &["allow_always", "allow_once", "reject_once"]);
    asks["params"]["toolCall"]["kind"] = json!("switch_mode");
    asks["params"]["toolCall"]["rawInput"] = json!({"plan": "1. read"});
    talk.hears(&asks);
    let shown = |event: &AgentEvent| matches!(event, AgentEvent::Asked { detail, .. } if detail == "1. read");
    assert!(talk.events.iter().any(shown), "{:?}", talk.events);
    talk.does(|protocol, out| protocol.answer("7", &QuestionAnswer::Allow, out));
    talk.hears(&update(json!({"sessionUpdate": "current_mode_update", "currentModeId": "default"})));
    let told = |event: &AgentEvent| matches!(event, AgentEvent::Notice { text } if text.contains("begins in plan again"));
    assert!(talk.events.iter().any(told), "{:?}", talk.events);
    let prompt =
        talk.sent.iter().rev().find(|sent| sent["method"] == "session/prompt").unwrap()["id"].clone();
    talk.hears(&json!({"id": prompt, "result": {"stopReason": "end_turn"}}));
    // The same process takes the next turn, and is put back first.
    talk.does(|protocol, out| protocol.again(&wanted, out));
    let sent = talk.sent.last().unwrap().clone();
    assert_eq!((&sent["method"], &sent["params"]["modeId"]), (&"session/set_mode".into(), &"plan".into()));
    let before = talk.events.len();
    talk.hears(&json!({"id": sent["id"], "result": {}}));
    assert!(talk.events[before..].iter().any(|event| matches!(event, AgentEvent::Ready { .. })));
}

fn question(id: u64, kinds: &[&str]) -> Value {
    let options: Vec<Value> =
        kinds.iter().map(|kind| json!({"optionId": format!("id-{kind}"), "kind": kind})).collect();
    let params =
        json!({"sessionId": "s", "toolCall": {"toolCallId": "t", "title": "run"}, "options": options});
    json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params})
}

fn update(update: Value) -> Value {
    json!({"method": "session/update", "params": {"sessionId": "s", "update": update}})
}

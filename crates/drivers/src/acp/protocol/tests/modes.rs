//! The mode that an agent is in: the one in which it asks, or the one that is named, and nothing without a proof.

use super::*;

/// A new session of an agent that comes up in this mode, and has these.
pub(super) fn in_mode(quirks: &str, bypasses: bool, current: &str, all: &[&str]) -> Talk {
    opened_in_mode(quirks, launch(None), bypasses, current, all)
}

/// The same where the session has that mode.
fn in_named_mode(quirks: &str, bypasses: bool, named: &str, current: &str, all: &[&str]) -> Talk {
    let wanted = Launch { mode: Some(named.to_owned()), ..launch(None) };
    opened_in_mode(quirks, wanted, bypasses, current, all)
}

fn opened_in_mode(quirks: &str, wanted: Launch, bypasses: bool, current: &str, all: &[&str]) -> Talk {
    let mut talk = Talk::with(toml::from_str(quirks).unwrap(), wanted, bypasses);
    open(&mut talk, json!({"loadSession": true}));
    let all: Vec<Value> = all.iter().map(|id| json!({"id": id})).collect();
    talk.hears(&json!({"id": 2, "result": {"sessionId": "s", "modes": {"currentModeId": current, "availableModes": all}}}));
    talk
}

#[test]
fn an_agent_of_which_nothing_shows_that_it_asks_acts_without_asking_and_is_refused() {
    let qwen = ["plan", "default", "auto-edit", "auto", "yolo"];
    let mut talk = in_mode("base = 'qwen'", false, "auto", &qwen);
    assert_eq!(talk.sent.last().unwrap()["params"], json!({"sessionId": "s", "modeId": "default"}));
    talk.hears(&json!({"id": 3, "result": {}}));
    assert!(matches!(talk.events.last(), Some(AgentEvent::Ready { .. })));
    // It says that it stays where it is.
    let mut stubborn = in_mode("base = 'qwen'", false, "auto", &qwen);
    stubborn.hears(&json!({"method": "session/update", "params": {"sessionId": "s",
        "update": {"sessionUpdate": "current_mode_update", "currentModeId": "auto"}}}));
    stubborn.hears(&json!({"id": 3, "result": {}}));
    assert_eq!(stubborn.failed().failure, Failure::Refused);
    assert!(stubborn.failed().detail.contains("acts without asking"), "{}", stubborn.failed());
    assert!(stubborn.failed().detail.contains("bypass = true"), "{}", stubborn.failed());
    // Nobody has said which of its modes asks.
    let unknown = in_mode("", false, "code", &["code", "architect"]);
    assert!(unknown.failed().detail.contains("asking_mode"), "{}", unknown.failed());
    assert!(unknown.failed().detail.contains("(it has code, architect)"), "{}", unknown.failed());
    let named = in_mode("asking_mode = 'code'", false, "code", &["code", "architect"]);
    assert!(matches!(named.events.last(), Some(AgentEvent::Ready { .. })));
    let bypassing = in_mode("", true, "code", &["code", "architect"]);
    assert!(matches!(bypassing.events.last(), Some(AgentEvent::Ready { .. })));
}

/// The answer to the wish for a mode, after which the agent says that it is in this one.
fn says_it_is_in(talk: &mut Talk, mode: &str) {
    let asked = talk.sent.last().unwrap().clone();
    assert_eq!(asked["method"], "session/set_mode", "{asked}");
    talk.hears(&update(json!({"sessionUpdate": "current_mode_update", "currentModeId": mode})));
    talk.hears(&json!({"id": asked["id"], "result": {}}));
}

#[test]
fn a_mode_that_is_named_is_taken_only_where_it_is_known_to_ask() {
    let is_ready = |talk: &Talk| matches!(talk.events.last(), Some(AgentEvent::Ready { .. }));
    for (quirks, named, all) in [
        // Nobody knows the agent, or nobody knows this mode of it.
        ("", "code", &["code", "ask"][..]),
        ("asking_mode = 'ask'", "code", &["ask", "code"]),
        ("asking_mode = 'ask'", "odd", &["ask"]),
        // It judges by itself.
        ("base = 'claude-agent-acp'", "auto", &["default", "auto"]),
        ("base = 'goose'", "smart_approve", &["approve", "smart_approve"]),
        ("base = 'qwen'", "auto-edit", &["default", "auto-edit"]),
        // Its modes do not say whether it asks.
        ("base = 'opencode'", "build", &["build", "plan"]),
    ] {
        for current in [all[0], named] {
            let talk = in_named_mode(quirks, false, named, current, all);
            assert_eq!(talk.failed().failure, Failure::Refused, "{quirks}, {named}");
            if all.contains(&named) || current == named {
                let words = &talk.failed().detail;
                assert!(words.contains("acts without asking"), "{quirks}, {named}: {words}");
            }
            assert!(!talk.methods().contains(&"session/set_mode"), "{quirks}, {named}: it is not even tried");
        }
    }
    assert!(is_ready(&in_named_mode("asking_mode = 'ask'", false, "ask", "ask", &["ask", "code"])));
    assert!(is_ready(&in_named_mode("base = 'qwen'", false, "plan", "plan", &["default", "plan"])));
    assert!(is_ready(&in_named_mode("", true, "code", "code", &["code", "ask"])));
    assert!(
        in_mode("base = 'opencode'", false, "build", &["build"]).failed().detail.contains("without asking")
    );
}

#[test]
fn a_mode_that_is_named_has_to_be_the_one_that_the_agent_is_in() {
    let qwen = ["plan", "default", "auto"];
    for (says, words) in
        [("auto", "acts without asking"), ("default", "is in mode \"default\", and not in \"plan\"")]
    {
        let mut talk = in_named_mode("base = 'qwen'", false, "plan", "default", &qwen);
        says_it_is_in(&mut talk, says);
        assert_eq!(talk.failed().failure, Failure::Refused, "{says}");
        assert!(talk.failed().detail.contains(words), "{says}: {}", talk.failed());
    }
    let mut bypassing = in_named_mode("base = 'qwen'", true, "plan", "default", &qwen);
    says_it_is_in(&mut bypassing, "auto");
    assert!(bypassing.failed().detail.contains("and not in \"plan\""), "{}", bypassing.failed());
    let mut there = in_named_mode("base = 'qwen'", false, "plan", "default", &qwen);
    says_it_is_in(&mut there, "plan");
    assert!(matches!(there.events.last(), Some(AgentEvent::Ready { .. })));
}

#[test]
fn it_asks_unless_its_configuration_lets_it_not() {
    let opened = |bypasses: bool, current: &str| {
        let mut talk = Talk::with(Quirks::of("goose").unwrap(), launch(None), bypasses);
        open(&mut talk, json!({"loadSession": true}));
        talk.hears(&json!({"id": 2, "result": {"sessionId": "s", "modes": {"currentModeId": current,
            "availableModes": [{"id": "approve"}, {"id": "auto"}]}}}));
        talk
    };
    let mode = |talk: &Talk| talk.sent.last().unwrap()["params"]["modeId"].as_str().map(str::to_owned);
    assert_eq!(mode(&opened(false, "auto")).as_deref(), Some("approve"));
    assert_eq!(mode(&opened(true, "approve")).as_deref(), Some("auto"));
    assert!(matches!(opened(false, "approve").events[1], AgentEvent::Ready { .. }));
    let mut talk = opened(true, "auto");
    talk.does(|protocol, out| protocol.hand(&Message::new(MessageId::from_bits(1), "x".to_owned()), out));
    talk.hears(&question(7, &["allow_once", "reject_once"]));
    assert_eq!(talk.sent.last().unwrap()["result"]["outcome"]["optionId"], "id-allow_once");
    assert!(!talk.events.iter().any(|event| matches!(event, AgentEvent::Asked { .. })));
}

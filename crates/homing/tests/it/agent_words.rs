//! Words that an agent cannot take, or says too often, or not at all: what people are told then.

use serde_json::Value;

use crate::{homing, setup, text};

/// The notices of a session.
fn notices(homing: &testkit::Homing, session: &str) -> Vec<String> {
    let log = homing.run(&["log", session, "--json"]);
    let facts = log.expect(0).lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let notices = facts.filter(|fact| fact["type"] == "notice");
    notices.map(|fact| fact["text"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn an_agent_that_is_silent_for_too_long_fails_for_that_and_the_key_is_named() {
    let homing = setup().config("[agents.scripted]\nlimits.silence_max = \"400ms\"\n").start();
    let failed = homing.run(&["send", "-f", "!hang"]);
    failed.expect(1);
    assert!(failed.err.contains("said and did nothing for 400ms"), "{}", failed.err);
    assert!(failed.err.contains("agents.scripted.limits.silence_max"), "{}", failed.err);
    // Who says something now and then takes as long as it takes.
    homing.run(&["send", "-f", "!say 12 10"]).expect(0);
}

#[test]
fn a_warning_that_is_repeated_is_told_once_in_a_session() {
    let homing = homing();
    let first = homing.run(&["send", "-f", "--json", "!warn 5 mind the step\n!warn 2 and the door"]);
    let receipt: Value = serde_json::from_str(crate::last_line(first.expect(0))).unwrap();
    let session = text(&receipt, "session");
    assert_eq!(notices(&homing, &session), ["mind the step", "and the door"]);
    homing.run(&["send", "-f", "!warn 3 mind the step\n!warn 1 and the lift"]).expect(0);
    assert_eq!(notices(&homing, &session), ["mind the step", "and the door", "and the lift"]);
    let other = homing.run(&["send", "-f", "--json", "--new", "!warn 2 mind the step"]);
    let receipt: Value = serde_json::from_str(crate::last_line(other.expect(0))).unwrap();
    assert_eq!(notices(&homing, &text(&receipt, "session")), ["mind the step"]);
}

#[test]
fn an_unknown_command_is_refused_with_near_ones_and_a_space_makes_it_words() {
    let homing = homing();
    assert_eq!(homing.run(&["send", "-f", "/shout hello"]).expect(0), "command shout: hello\n");
    let refused = homing.run(&["send", "-f", "/shuot hello"]);
    refused.expect(1);
    assert!(refused.err.contains("no command /shuot") && refused.err.contains("/shout"), "{}", refused.err);
    assert!(refused.err.contains("begin with a space"), "{}", refused.err);
    // It was told nothing of that, so this is the second message that it knows.
    assert_eq!(homing.run(&["send", "-f", " /shuot hello"]).expect(0), "#2 /shuot hello\n");
    assert_eq!(homing.run(&["send", "-f", "/etc/hosts is a path"]).expect(0), "#3 /etc/hosts is a path\n");
    // The same as the first words of a session.
    let first = homing.run(&["send", "-f", "--new", "/whispr"]);
    first.expect(1);
    assert!(first.err.contains("/whisper"), "{}", first.err);
}

#[test]
fn a_model_that_nobody_offers_is_refused_when_it_is_set() {
    let homing = homing();
    // The agent lists its models when it first runs.
    homing.run(&["send", "-f", "hello"]).expect(0);
    let set = homing.run(&["scope", "set", "--model", "lage"]);
    set.expect(1);
    assert!(set.err.contains("offers no model called \"lage\"") && set.err.contains("large"), "{}", set.err);
    let made = homing.run(&["send", "--new", "--model", "nonsense", "hello"]);
    made.expect(1);
    assert!(made.err.contains("small, large"), "{}", made.err);
    let to = serde_json::json!({"new": {"model": "nonsense"}});
    let refused = homing.http().post("/api/v1/messages", &serde_json::json!({"to": to, "text": "hello"}));
    assert_eq!(refused.expect(409)["code"], "unknown_model");
    homing.run(&["scope", "set", "--model", "large"]).expect(0);
    assert_eq!(homing.run(&["send", "-f", "hello"]).expect(0), "#2 hello\n");
}

#[test]
fn a_steer_that_cannot_be_is_said_at_once() {
    let homing = setup()
        .config(
            "[agents.slow]\nkind = \"command\"\nprogram = \"/bin/sh\"\n\
             args = [\"-c\", \"cat; while [ ! -e \\\"$HOME/go\\\" ]; do sleep 0.05; done\"]\n",
        )
        .start();
    let first = homing.run(&["send", "--json", "--new", "--agent", "slow", "hello"]).json(0);
    let session = text(&first, "session");
    let steered = homing.run(&["send", "--session", &session, "--steer", "more"]);
    let id = steered.expect(0).trim().to_owned();
    assert!(steered.err.contains("slow takes no words while it works"), "{}", steered.err);
    // Its keeper finds that out, too, a moment after it was accepted.
    let receipt = testkit::eventually("the receipt says so", || {
        let receipt = homing.http().get(&format!("/api/v1/messages/{id}")).expect(200);
        receipt.get("hint").is_some().then_some(receipt)
    });
    assert_eq!((&receipt["state"], &receipt["delivery"]), (&"waiting".into(), &"steer".into()), "{receipt}");
    assert!(text(&receipt, "hint").contains("could not be said into the turn"), "{receipt}");
    std::fs::write(homing.home().join("go"), "").unwrap();
    assert_eq!(homing.http().until_final(&id)["state"], "answered");
}

#[test]
fn words_for_a_turn_that_is_not_there_are_said_to_have_one_of_their_own() {
    let homing = homing();
    homing.run(&["send", "-f", "hello"]).expect(0);
    let alone = homing.run(&["send", "-f", "--steer", "more"]);
    assert_eq!(alone.expect(0), "#2 more\n");
    assert!(alone.err.contains("it has one of its own"), "{}", alone.err);
}

#[test]
fn a_program_that_is_run_for_each_message_is_called_so_and_needs_no_version() {
    let config = "[agents.plain]\nkind = \"command\"\nprogram = \"/bin/cat\"\n";
    let homing = setup().config(config).start();
    let listed = homing.run(&["agents"]);
    assert!(listed.expect(0).contains("a program, run for each message"), "{}", listed.out);
    assert!(!listed.err.contains("bypass"), "nobody has set that: {}", listed.err);
    let shown = homing.run(&["agents", "show", "plain"]);
    assert!(shown.expect(0).contains("a program that is run for each message"), "{}", shown.out);
    assert!(!shown.out.contains("bypass") && !shown.out.contains("unknown"), "{}", shown.out);
    let page = homing.run(&["agents", "--json"]).json(0);
    let plain = page["items"].as_array().unwrap().iter().find(|agent| agent["name"] == "plain").unwrap();
    assert_eq!((&plain["here"], plain.get("version")), (&true.into(), None), "{plain}");
    assert_eq!(homing.run(&["send", "-f", "--agent", "plain", "hello"]).expect(0).trim(), "hello");
}

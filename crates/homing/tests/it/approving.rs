//! Questions and rules at the command line, with the real server: every form of answer, being too late, and a kill while a
//! question is open.

use serde_json::Value;
use testkit::{Homing, eventually};

fn homing() -> Homing {
    Homing::start(env!("CARGO_BIN_EXE_homing"))
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("{name} in {value}")).to_owned()
}

/// The open question about this tool.
fn question(homing: &Homing, tool: &str) -> String {
    let about = |item: &&Value| item["tool"] == tool;
    eventually("the agent asks", || {
        let page = homing.run(&["approve", "--json"]).json(0);
        page["items"].as_array().unwrap().iter().find(about).map(|item| text(item, "id"))
    })
}

#[test]
fn a_question_is_shown_and_answered_in_its_form() {
    let homing = homing();
    let said = homing.send("api:approving/forms", "!ask shell\n!choose paint | red | blue\n!askwords name");
    let shell = question(&homing, "shell");
    assert!(homing.run(&["approve", &shell]).expect(0).contains("open"));
    homing.run(&["approve", &shell, "--choose", "0"]).expect(1);
    homing.run(&["approve", &shell, "--yes", "--no"]).expect(2);
    homing.run(&["approve", &shell, "--yes"]).expect(0);
    let late = homing.run(&["approve", "no", &shell]);
    assert_eq!(late.code, Some(1));
    assert!(late.err.contains("answered before"), "{late:?}");
    let paint = question(&homing, "paint");
    let shown = homing.run(&["approve", &paint]).expect(0).to_owned();
    assert!(shown.contains("0  red") && shown.contains("1  blue"), "{shown}");
    homing.run(&["approve", &paint, "--choose", "1"]).expect(0);
    homing.run(&["approve", &question(&homing, "name"), "--say", "Bob"]).expect(0);
    let answer = text(&homing.http().until_final(&text(&said, "id")), "answer");
    assert!(
        answer.contains("shell: allowed") && answer.contains("blue") && answer.contains("Bob"),
        "{answer}"
    );
}

#[test]
fn rules_are_added_listed_obeyed_and_removed() {
    let homing = homing();
    let add = ["approve", "rules", "add", "--tool", "shell", "--agent", "scripted", "--deny", "--json"];
    let rule = homing.run(&add).json(0);
    let id = text(&rule, "id");
    let listed = homing.run(&["approve", "rules", "--json"]).json(0);
    assert_eq!(listed["items"], serde_json::json!([rule]));
    let shown = homing.run(&["approve", "rules"]).expect(0).to_owned();
    assert!(shown.contains("deny") && shown.contains("shell") && shown.contains("scripted"), "{shown}");
    let answer = homing.converse("api:approving/rules", "!ask shell");
    assert!(answer.contains("shell: denied"), "{answer}");
    let watched = homing.run(&["send", "--follow", "!ask shell"]);
    assert!(watched.expect(0).contains("shell: denied"), "{watched:?}");
    assert!(watched.err.contains(&format!("answered by rule {id}: no")), "{}", watched.err);
    let alone = homing.run(&["send", "--follow", "--unattended", "!ask paint"]);
    assert!(alone.expect(0).contains("paint: denied"), "{alone:?}");
    assert!(alone.err.contains("nobody attends: no"), "{}", alone.err);
    for told in [&watched.err, &alone.err] {
        assert!(!told.contains("answer with"), "nobody is asked what is answered already: {told}");
    }
    homing.run(&["approve", "rules", "remove", &id]).expect(0);
    homing.run(&["approve", "rules", "remove", &id]).expect(3);
    homing.run(&["approve", "rules", "add", "--tool", "shell"]).expect(2);
    let said = homing.send("api:approving/rules", "!ask shell\n!ask shell");
    let open = question(&homing, "shell");
    homing.run(&["approve", &open, "--yes", "--remember", "session"]).expect(0);
    let answer = text(&homing.http().until_final(&text(&said, "id")), "answer");
    assert_eq!(answer.matches("shell: allowed").count(), 2, "{answer}");
    assert!(homing.run(&["approve", "rules"]).expect(0).contains(&text(&said, "session")));
}

#[test]
fn a_rule_can_be_made_until_a_moment_and_says_so() {
    let homing = homing();
    let add = |until: &str| {
        homing.run(&["approve", "rules", "add", "--tool", "shell", "--deny", "--json", "--until", until])
    };
    let moment = "2199-12-24T18:00:00Z";
    let (for_a_while, till_then) = (add("90d").json(0), add(moment).json(0));
    assert_eq!(till_then["until"].as_str().map(|until| &until[..19]), Some(&moment[..19]), "{till_then}");
    let listed = homing.run(&["approve", "rules", "--json"]).json(0);
    let untils: Vec<_> = listed["items"].as_array().unwrap().iter().map(|rule| &rule["until"]).collect();
    assert!(untils.contains(&&for_a_while["until"]) && untils.contains(&&till_then["until"]), "{listed}");
    let shown = homing.run(&["approve", "rules"]);
    assert!(shown.expect(0).contains("UNTIL") && shown.out.contains("2199-12-2"), "{}", shown.out);
    for rule in [for_a_while, till_then] {
        homing.run(&["approve", "rules", "remove", &text(&rule, "id")]).expect(0);
    }
    // What would never count is not made, and what is no time is told with what would be.
    let past = homing.run(&["approve", "rules", "add", "--tool", "shell", "--deny", "--until", "2020-01-01"]);
    past.expect(1);
    assert!(past.err.contains("past"), "{}", past.err);
    let odd = homing.run(&["approve", "rules", "add", "--tool", "shell", "--deny", "--until", "soon"]);
    odd.expect(2);
    assert!(odd.err.contains("hint: write 12h"), "{}", odd.err);
    assert_eq!(homing.run(&["approve", "rules", "--json"]).json(0)["items"], serde_json::json!([]));
}

#[test]
fn what_is_sent_unattended_never_waits_for_a_person() {
    let homing = homing();
    let receipt = homing.run(&["send", "--new", "--unattended", "--json", "!ask shell"]).json(0);
    let answered = homing.http().until_final(&text(&receipt, "id"));
    assert!(text(&answered, "answer").contains("shell: denied"), "{answered}");
}

#[test]
fn a_question_that_a_kill_cut_short_lapses_and_whoever_answers_is_told_how_to_go_on() {
    let mut homing = homing();
    let said = homing.send("api:approving/kill", "!ask shell");
    let open = question(&homing, "shell");
    homing.kill9();
    homing.restart();
    let receipt = homing.http().until_final(&text(&said, "id"));
    assert_eq!((text(&receipt, "state"), text(&receipt, "why")), ("failed".into(), "interrupted".into()));
    let shown = homing.run(&["approve", &open, "--json"]).json(0);
    assert_eq!((text(&shown, "state"), text(&shown, "tool")), ("lapsed".into(), "shell".into()));
    let late = homing.run(&["approve", &open, "--yes"]);
    assert_eq!(late.code, Some(1));
    let session = text(&said, "session");
    assert!(late.err.contains("homing send") && late.err.contains(&session), "{late:?}");
    // As the hint says: the same session goes on.
    let go_on = ["send", "--session", &session, "--json", "Go on. What you asked for is allowed once."];
    let receipt = homing.run(&go_on).json(0);
    assert_eq!(text(&homing.http().until_final(&text(&receipt, "id")), "state"), "answered");
}

//! Questions of real agents: answered yes, no, too late and never, and what becomes of one when the server dies.

use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::RealAgent;

use super::{Acts, TURN_WAIT, Trial, each_agent, until};
use crate::text;

each_agent! {
    a_question_is_answered_by_a_person_or_by_time
    a_question_lapses_with_its_turn_when_the_server_dies
    a_rule_by_tool_answers_and_nobody_is_asked
}

fn a_question_is_answered_by_a_person_or_by_time(agent: RealAgent) {
    let trial = Trial::with(
        agent,
        Acts::AfterAsking,
        "[policy]\nask_max = \"3s\"\nafter_failure = \"go_on\"\n",
        None,
    );
    let (yes, message) = ask(&trial, "yes");
    let approval = open(&trial);
    trial.homing.run(&["approve", "yes", &approval]).expect(0);
    settle(&trial, &message);
    assert!(yes.exists(), "it was allowed");
    let late = trial.homing.run(&["approve", "no", &approval]);
    assert_ne!(late.code, Some(0), "{late:?}");

    let (no, message) = ask(&trial, "no");
    let approval = open(&trial);
    trial.homing.run(&["approve", "no", &approval]).expect(0);
    settle(&trial, &message);
    assert!(!no.exists(), "it was not allowed");

    let (never, message) = ask(&trial, "never");
    open(&trial);
    settle(&trial, &message);
    assert!(!never.exists(), "nobody allowed it");
    assert!(trial.answer("one", "hello").starts_with("ECHO: hello [turn="));
}

fn a_question_lapses_with_its_turn_when_the_server_dies(agent: RealAgent) {
    let mut trial = Trial::new(agent, Acts::AfterAsking);
    let (file, message) = ask(&trial, "lapsed");
    let approval = open(&trial);
    trial.homing.kill9();
    trial.homing.until_nothing_is_left();
    trial.homing.restart();
    let receipt = settle(&trial, &message);
    assert_eq!(
        (text(&receipt, "state").as_str(), text(&receipt, "why").as_str()),
        ("failed", "interrupted"),
        "{receipt}"
    );
    let answered =
        trial.homing.http().post(&format!("/api/v1/approvals/{approval}"), &json!({ "answer": "yes" }));
    assert_eq!(answered.status, 409, "{}", answered.text());
    assert!(answered.text().contains("lapsed"), "{}", answered.text());
    assert!(!file.exists(), "nothing goes on by itself");
    assert!(trial.answer("one", "go on").starts_with("ECHO: go on [turn="), "a new message does");
}

/// By ACP's kind for agents that speak it, whatever each of them calls its tool; else by the tool's name.
fn a_rule_by_tool_answers_and_nobody_is_asked(agent: RealAgent) {
    let trial = Trial::new(agent, Acts::AfterAsking);
    let rule = |tool: &str, effect: &str| {
        let add = ["approve", "rules", "add", "--tool", tool, effect, "--json"];
        text(&trial.homing.run(&add).json(0), "id")
    };
    // A rule about something else answers nothing.
    rule("read", "--allow");
    let (tool, other) = match agent {
        RealAgent::Claude => ("Bash", "Write"),
        RealAgent::Codex => ("shell", "apply_patch"),
        RealAgent::OpenCode => ("bash", "edit"),
        _ => ("execute", "edit"),
    };
    rule(other, "--allow");
    let (left, message) = ask(&trial, "left");
    trial.homing.run(&["approve", "no", &open(&trial)]).expect(0);
    let session = text(&settle(&trial, &message), "session");
    assert!(!left.exists() && trial.facts_of(&session, "asked").len() == 1, "it was left to a person");

    let allows = rule(tool, "--allow");
    let (file, message) = ask(&trial, "ruled");
    assert_eq!(settle(&trial, &message)["state"], "answered");
    assert!(file.exists(), "it was allowed");
    let answered = trial.facts_of(&session, "answered");
    assert_eq!(answered.len(), 2, "{answered:?}");
    assert_eq!(answered[1]["by"], allows.as_str(), "{answered:?}");

    let forbids = rule(tool, "--deny");
    let (never, message) = ask(&trial, "never");
    settle(&trial, &message);
    assert!(!never.exists(), "it was not allowed");
    assert_eq!(trial.facts_of(&session, "answered")[2]["by"], forbids.as_str());
}

/// Lets the agent want to write a file, about which it has to ask. Answers the file and the message.
fn ask(trial: &Trial, name: &str) -> (PathBuf, String) {
    let file = trial.stage.directory().join(name);
    let command = format!("touch {}", file.display());
    let words = match trial.stage.agent {
        // It asks only for what its sandbox would not let through.
        RealAgent::Codex | RealAgent::CodexAcp => {
            let wanted = json!({ "cmd": command, "sandbox_permissions": "require_escalated", "justification": "to see" });
            format!("TOOL:raw:exec_command:{wanted}")
        }
        _ => format!("TOOL:bash:{command}"),
    };
    (file, text(&trial.begin("one", &words), "id"))
}

/// The question that is open.
fn open(trial: &Trial) -> String {
    let question = until("the agent asks", || {
        let page = trial.homing.http().get("/api/v1/approvals").expect(200);
        page["items"].as_array().expect("a page has items").first().cloned()
    });
    text(&question, "id")
}

fn settle(trial: &Trial, message: &str) -> Value {
    trial.homing.http().until_final_within(message, TURN_WAIT)
}

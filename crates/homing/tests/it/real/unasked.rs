//! Settings by which an agent would act without asking: nothing is said to it. Those that a repository brings along are not read
//! unless it need not ask; the driver's own tests show that.

use std::fs;

use testkit::RealAgent;

use super::{Acts, TURN_WAIT, Trial, answer_of};
use crate::text;

/// Files in a home, each of which lets opencode run commands without a question: a rule for the agent that is used, one for
/// everything behind ours, and an agent that the tool `task` may start.
const LENIENT: [(&str, &str); 3] = [
    (".opencode/opencode.json", r#"{"agent": {"build": {"permission": {"bash": "allow"}}}}"#),
    (".opencode/opencode.json", r#"{"permission": {"bash": "deny", "*": "allow"}}"#),
    (".opencode/agent/quick.md", "---\nmode: primary\npermission:\n  bash: allow\n---\nBe quick.\n"),
];

#[test]
fn a_person_who_lets_opencode_act_without_asking_is_refused() {
    let mut trial = Trial::new(RealAgent::OpenCode, Acts::AfterAsking);
    let made = trial.stage.directory().join("made");
    let go_on = |trial: &mut Trial| {
        assert!(trial.homing.terminate().success());
        trial.homing.restart();
    };
    for (file, settings) in LENIENT {
        let file = trial.stage.home().join(file);
        fs::create_dir_all(file.parent().expect("it is below the directory")).expect("it can be made");
        fs::write(&file, settings).expect("it can be written");
        let receipt = trial.say("one", &format!("TOOL:bash:touch {}", made.display()));
        assert_eq!(text(&receipt, "why"), "refused", "{settings}: {receipt}");
        let told = trial.facts(&text(&receipt, "session"));
        let why = told.iter().map(ToString::to_string).collect::<String>();
        assert!(why.contains("acts without asking") && why.contains("bypass = true"), "{settings}: {why}");
        assert_eq!(trial.stage.model.turns(), [], "{settings}: nothing was said to it");
        fs::remove_file(&file).expect("it is there");
        go_on(&mut trial);
    }
    assert!(!made.exists());
    assert_eq!(answer_of(&trial.say("one", "hello")), "ECHO: hello [turn=1]");
}

/// Whoever says `bypass` means it.
#[test]
fn a_repository_that_lets_opencode_act_is_used_where_it_need_not_ask() {
    let trial = Trial::new(RealAgent::OpenCode, Acts::AtOnce);
    let directory = trial.stage.directory();
    let (file, settings) = LENIENT[2];
    fs::create_dir_all(directory.join(".opencode/agent")).expect("it can be made");
    fs::write(directory.join(file), settings).expect("it can be written");
    // The tool takes any of its agents by name, one that is not meant for it too.
    let task = r#"{"description":"d","subagent_type":"quick","prompt":"TOOL:bash:touch made; echo made"}"#;
    answer_of(&trial.say("one", &format!("TOOL:raw:task:{task}")));
    assert!(directory.join("made").exists());
}

/// Its mode `plan` lets the tool `task` start an agent that is in no such mode; that one does not change files either.
#[test]
fn in_its_mode_plan_no_agent_of_opencode_changes_files() {
    let trial = Trial::new(RealAgent::OpenCode, Acts::AfterAsking);
    let made = trial.stage.directory().join("made");
    let write = format!("TOOL:write:{}:words", made.display());
    let task = serde_json::json!({ "description": "d", "subagent_type": "build", "prompt": write });
    let mut to = trial.to("one", &trial.stage.directory());
    to["if_new"]["mode"] = "plan".into();
    for words in [write, format!("TOOL:raw:task:{task}")] {
        let receipt = trial.homing.http().send(&to, &words);
        let receipt = trial.homing.http().until_final_within(&text(&receipt, "id"), TURN_WAIT);
        assert_eq!(receipt["state"], "answered", "{words}: {receipt}");
        assert_eq!(
            trial.facts_of(&text(&receipt, "session"), "asked").len(),
            0,
            "{words}: it is not even asked"
        );
        assert!(!made.exists(), "{words}: {receipt}");
    }
}

//! The misdeeds of a model server and of a person with a broom: nothing of it is taken for a death but a death, and
//! nothing is run twice.

use testkit::RealAgent;

use super::{Acts, Trial, answer_of, each_agent};
use crate::text;

each_agent! {
    a_fault_of_the_model_server_changes_nothing_and_is_never_run_again
    a_conversation_deleted_under_us_is_gone_and_told
}

fn a_fault_of_the_model_server_changes_nothing_and_is_never_run_again(agent: RealAgent) {
    let trial = Trial::new(agent, Acts::AfterAsking);
    let first = trial.say("one", "CODE:apple");
    let session = text(&first, "session");
    for (fault, failures) in faults(agent) {
        trial.stage.model.forget();
        let receipt = trial.say("one", fault);
        assert_eq!(receipt["state"], "failed", "{fault}: {receipt}");
        assert_eq!(text(&receipt, "session"), session, "{fault}: never another session");
        let failure = text(&receipt, "why");
        assert!(failures.contains(&failure.as_str()), "{fault}: {receipt}");
        let handed = trial.facts_of(&session, "handed");
        let turns = trial.facts_of(&session, "turn_started");
        assert_eq!(handed.len(), turns.len(), "{fault}: each turn was handed over once");
    }
    trial.assert_recalls("one", "apple");
    assert_eq!(trial.facts_of(&session, "ended").len(), 0);
}

/// The faults that an agent is tried with, for the table.
pub(super) fn faults_of(agent: RealAgent) -> String {
    let names = faults(agent).into_iter().map(|(fault, _)| match fault {
        "DROP" => "cut",
        status => status.trim_start_matches("ERR:"),
    });
    names.collect::<Vec<_>>().join(", ")
}

/// Faults, and what they may be called.
fn faults(agent: RealAgent) -> Vec<(&'static str, &'static [&'static str])> {
    let mut faults: Vec<(&str, &[&str])> = vec![("ERR:401", &["refused"])];
    let others: &[&str] = match agent {
        // It tries these again by itself for longer than a test may take.
        RealAgent::OpenCode => &[],
        // It tries 529 seven times, and asks for the rest of what was cut.
        RealAgent::Qwen => &["ERR:429"],
        // It takes half an answer for a whole one.
        RealAgent::Kimi => &["ERR:429", "ERR:529"],
        _ => &["ERR:429", "ERR:529", "DROP"],
    };
    faults.extend(others.iter().map(|fault| (*fault, &["transient"] as &[&str])));
    faults
}

fn a_conversation_deleted_under_us_is_gone_and_told(agent: RealAgent) {
    let mut trial = Trial::new(agent, Acts::AfterAsking);
    let first = trial.say("one", "CODE:apple");
    answer_of(&first);
    let session = text(&first, "session");
    let native = trial.native(&session);
    // The process that was kept still knows it; the next one does not.
    assert!(trial.homing.terminate().success());
    trial.stage.lose(&native);
    trial.homing.restart();
    let receipt = trial.say("one", "RECALL");
    if agent.forgets() {
        // It is told again what was said, as after any restart.
        assert!(answer_of(&receipt).starts_with("RECALL: apple"), "{receipt}");
        assert_eq!(text(&receipt, "session"), session);
        return;
    }
    assert_eq!(
        (text(&receipt, "state").as_str(), text(&receipt, "why").as_str()),
        ("failed", "gone"),
        "{receipt}"
    );
    assert_eq!(text(&receipt, "session"), session);
    let ended = trial.homing.http().get(&format!("/api/v1/sessions/{session}")).expect(200);
    assert_eq!((ended["state"].as_str(), ended["why"].as_str()), (Some("ended"), Some("gone")), "{ended}");
    let next = trial.say("one", "CODE:pear");
    assert_eq!(answer_of(&next), "ECHO: CODE:pear [turn=1]");
    assert_ne!(text(&next, "session"), session, "a new one, which was told");
}

//! The misdeeds of a model server and of a person with a broom: nothing of it is taken for a death but a death, and
//! nothing is run twice.

use std::time::Duration;

use testkit::RealAgent;

use super::{Acts, Trial, answer_of, each_agent};
use crate::text;

each_agent! {
    a_fault_of_the_model_server_changes_nothing_and_is_never_run_again
    a_model_that_never_answers_ends_the_turn_and_the_session_remembers
    a_conversation_deleted_under_us_is_gone_and_told
}

/// The longest that a fault may take: Qwen asks seven times before it gives up, which takes more than a minute.
const FAULT_WAIT: Duration = Duration::from_secs(300);

fn a_fault_of_the_model_server_changes_nothing_and_is_never_run_again(agent: RealAgent) {
    // OpenCode would try again for three minutes.
    let more = format!("[agents.{}.limits]\ntries_max = 1\n", agent.name());
    let trial = Trial::with(agent, Acts::AfterAsking, &more, None);
    let first = trial.say("one", "CODE:apple");
    let session = text(&first, "session");
    for (fault, wanted) in faults(agent) {
        trial.stage.model.forget();
        let receipt = trial.say_within(FAULT_WAIT, "one", fault);
        assert_eq!(text(&receipt, "session"), session, "{fault}: never another session");
        let became = receipt["why"].as_str().unwrap_or_else(|| receipt["state"].as_str().unwrap_or_default());
        assert_eq!(became, wanted, "{fault}: {receipt}");
        let handed = trial.facts_of(&session, "handed");
        let turns = trial.facts_of(&session, "turn_started");
        assert_eq!(handed.len(), turns.len(), "{fault}: each turn was handed over once");
    }
    trial.assert_recalls("one", "apple");
    assert_eq!(trial.facts_of(&session, "ended").len(), 0);
}

/// The faults that an agent is tried with, for the table.
pub(super) fn faults_of(agent: RealAgent) -> String {
    let names = faults(agent).map(|(fault, became)| match (fault, became) {
        ("DROP", "answered") => "cut (answered)",
        ("DROP", _) => "cut",
        (status, _) => status.trim_start_matches("ERR:"),
    });
    names.join(", ")
}

/// Faults, and what becomes of the turn.
fn faults(agent: RealAgent) -> [(&'static str, &'static str); 4] {
    let cut = match agent {
        // Qwen asks its model for the rest, and Kimi takes half an answer for a whole one.
        RealAgent::Qwen | RealAgent::Kimi => "answered",
        _ => "transient",
    };
    [("ERR:401", "refused"), ("ERR:429", "transient"), ("ERR:529", "transient"), ("DROP", cut)]
}

/// The silence after which a turn is given up here. An agent that is slow to begin with is not silent for so long.
const SILENCE: &str = "20s";

fn a_model_that_never_answers_ends_the_turn_and_the_session_remembers(agent: RealAgent) {
    let more = format!("[agents.{}.limits]\nsilence_max = {SILENCE:?}\n", agent.name());
    let trial = Trial::with(agent, Acts::AfterAsking, &more, None);
    let session = text(&trial.say("one", "CODE:apple"), "session");
    let receipt = trial.say("one", "SLEEP:3600");
    assert_eq!((&receipt["state"], &receipt["why"]), (&"failed".into(), &"transient".into()), "{receipt}");
    let told = trial.facts(&session);
    assert!(told.iter().any(|fact| fact.to_string().contains("limits.silence_max")), "{told:#?}");
    trial.assert_recalls("one", "apple");
    let handed = trial.facts_of(&session, "handed");
    assert_eq!(handed.len(), trial.facts_of(&session, "turn_started").len(), "nothing was run again");
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

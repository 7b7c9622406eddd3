//! Agents that lose their own conversations: every message is answered, and what was said is remembered or told again.

use serde_json::Value;
use testkit::RealAgent;

use super::{Acts, Trial, answer_of};
use crate::text;

/// Messages of the conversation. After some of them the server is restarted, others are stopped.
const MESSAGES: usize = 20;

/// The server is ended and started again.
const RESTARTS_AFTER: [usize; 5] = [2, 3, 8, 9, 15];
/// The server is killed and started again.
const KILLS_AFTER: [usize; 2] = [5, 12];
/// A turn is stopped while words come.
const STOPS_AFTER: [usize; 2] = [7, 17];

/// Gemini loses a conversation that it loads, at once or the second time. So it is begun anew and told again, and the story
/// says so each time; in between it remembers by itself.
#[test]
fn gemini_answers_twenty_messages_over_restarts_kills_and_stops_and_knows_every_word() {
    let mut trial = Trial::new(RealAgent::Gemini, Acts::AfterAsking);
    let mut session = String::new();
    for number in 1..=MESSAGES {
        let receipt = trial.say("one", &format!("CODE:word{number}"));
        let answer = answer_of(&receipt);
        assert!(answer.starts_with(&format!("ECHO: CODE:word{number} ")), "{answer}");
        session = text(&receipt, "session");
        if RESTARTS_AFTER.contains(&number) {
            assert!(trial.homing.terminate().success());
            trial.homing.restart();
        }
        if KILLS_AFTER.contains(&number) {
            trial.homing.kill9();
            trial.homing.restart();
        }
        if STOPS_AFTER.contains(&number) {
            stop_one(&trial, &session);
        }
    }
    let receipt = trial.say("one", "RECALL");
    assert_eq!(text(&receipt, "session"), session, "one session from the first message to the last");
    let known = answer_of(&receipt);
    for number in 1..=MESSAGES {
        assert!(known.contains(&format!("word{number}")), "word{number} in {known}");
    }
    let told = told_again(&trial, &session);
    let restarts = RESTARTS_AFTER.len() + KILLS_AFTER.len();
    assert!(told >= restarts, "each restart is said: {told} notices, {restarts} restarts");
}

/// The moment of a kill is in a turn, which ends as interrupted; the next one knows what was said before.
#[test]
fn gemini_knows_what_was_said_before_a_turn_in_which_everything_died() {
    let mut trial = Trial::new(RealAgent::Gemini, Acts::AfterAsking);
    let session = text(&trial.say("one", "CODE:apple"), "session");
    let receipt = trial.begin("one", "CHUNKS:600:100");
    super::until("it speaks", || {
        trial.facts_of(&session, "text").last().filter(|fact| fact.to_string().contains("chunk")).map(|_| ())
    });
    trial.homing.kill9();
    trial.homing.restart();
    let ended = trial.homing.http().until_final_within(&text(&receipt, "id"), super::TURN_WAIT);
    assert_eq!(ended["why"], "interrupted", "{ended}");
    let known = trial.answer("one", "RECALL");
    assert!(known.contains("RECALL: apple"), "{known}");
    assert_eq!(told_again(&trial, &session), 1);
}

/// Stops a turn of its own in the midst of words.
fn stop_one(trial: &Trial, session: &str) {
    let http = trial.homing.http();
    let before = trial.facts_of(session, "text").len();
    let receipt = trial.begin("one", "CHUNKS:600:100");
    let id = text(&receipt, "id");
    super::until("it speaks", || (trial.facts_of(session, "text").len() > before).then_some(()));
    http.post(&format!("/api/v1/messages/{id}/stop"), &serde_json::json!({})).expect(200);
    let ended = http.until_final_within(&id, super::TURN_WAIT);
    assert_eq!(ended["state"], "stopped", "{ended}");
}

/// The notices that the conversation was told again.
fn told_again(trial: &Trial, session: &str) -> usize {
    let memory = trial.facts_of(session, "memory");
    memory.iter().filter(|fact: &&Value| fact["way"] == "told_again").count()
}

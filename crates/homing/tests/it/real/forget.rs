//! Agents that lose their own conversations: every message is answered, and what was said is remembered or told again.

use serde_json::Value;
use testkit::{Leftover, RealAgent};

use super::{Acts, Trial, answer_of};
use crate::text;

/// Messages of the conversation. After some of them the server is restarted, others are stopped or followed by a pause.
const MESSAGES: usize = 20;

/// The server is ended and started again.
const RESTARTS_AFTER: [usize; 5] = [2, 3, 8, 9, 15];
/// The server is killed and started again.
const KILLS_AFTER: [usize; 2] = [5, 12];
/// A turn is stopped while words come.
const STOPS_AFTER: [usize; 2] = [7, 17];
/// Nothing is said until the agent's idle process has gone.
const PAUSES_AFTER: [usize; 3] = [4, 11, 18];

/// Gemini loses a conversation that it loads, at once or the second time. So it is begun anew and told again, once, and the story
/// says so; in between it remembers by itself, and nothing is told.
#[test]
fn gemini_answers_twenty_messages_over_restarts_kills_stops_and_pauses_and_knows_every_word() {
    let pause = "[agents.gemini.keep]\nidle_max = \"1s\"\n";
    let mut trial = Trial::with(RealAgent::Gemini, Acts::AfterAsking, pause, None);
    let (mut session, mut told, mut begun_anew, mut gone_on) = (String::new(), 0, true, 0);
    for number in 1..=MESSAGES {
        let receipt = trial.say("one", &format!("CODE:word{number}"));
        let answer = answer_of(&receipt);
        let begins = format!("ECHO: CODE:word{number} [turn=");
        let turn = answer.strip_prefix(&begins).unwrap_or_else(|| panic!("{answer}"));
        session = text(&receipt, "session");
        // What the model is shown as the first thing that was said is a conversation that has just begun.
        let is_first = turn == "1]";
        assert!(is_first || !begun_anew, "message {number} is said to a new process: {answer}");
        gone_on += usize::from(!is_first);
        told += usize::from(is_first && number > 1);
        assert_eq!(
            told_again(&trial, &session),
            told,
            "message {number}: told once if it is anew, else not at all"
        );
        assert_eq!(said_why(&trial, &session), told, "message {number}: and each time it is said why");
        begun_anew = disturb(&mut trial, &session, number);
    }
    assert!(gone_on > 0, "where nothing has happened it goes on by itself");
    let receipt = trial.say("one", "RECALL");
    assert_eq!(text(&receipt, "session"), session, "one session from the first message to the last");
    let known = answer_of(&receipt);
    for number in 1..=MESSAGES {
        assert!(known.contains(&format!("word{number}")), "word{number} in {known}");
    }
    let disturbed = RESTARTS_AFTER.len() + KILLS_AFTER.len() + STOPS_AFTER.len() + PAUSES_AFTER.len();
    assert!(told >= disturbed, "{told} times told, {disturbed} times disturbed");
}

/// Does what is to happen after that message. True if the next one is said to a new process.
fn disturb(trial: &mut Trial, session: &str, number: usize) -> bool {
    if RESTARTS_AFTER.contains(&number) {
        assert!(trial.homing.terminate().success());
        trial.homing.restart();
    } else if KILLS_AFTER.contains(&number) {
        trial.homing.kill9();
        trial.homing.restart();
    } else if STOPS_AFTER.contains(&number) {
        stop_one(trial, session);
    } else if PAUSES_AFTER.contains(&number) {
        let is_it = |process: &Leftover| process.arguments.contains("gemini");
        super::until("its idle process has gone", || {
            (!trial.homing.leftovers().iter().any(is_it)).then_some(())
        });
    } else {
        return false;
    }
    true
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
    assert_eq!((told_again(&trial, &session), said_why(&trial, &session)), (1, 1));
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

/// The notices that say why.
fn said_why(trial: &Trial, session: &str) -> usize {
    let notices = trial.facts_of(session, "notice");
    notices.iter().filter(|fact| text(fact, "text").contains("so it begins a new one")).count()
}

//! The things people do with a session of a real agent beside talking: look at what a turn changed and undo it, see what it cost, go on
//! in a fork, add words to a turn that runs, and have it make room for others.

use serde_json::{Value, json};
use testkit::RealAgent;

use super::{Acts, TURN_WAIT, Trial, answer_of, each_agent, until};
use crate::{text, yard};

each_agent! {
    what_a_turn_changed_is_shown_and_undone_and_the_session_goes_on
    a_fork_knows_what_was_said_and_figures_are_shown
    words_in_between_are_heard_and_an_interrupt_comes_first
    a_chosen_model_is_the_one_that_is_used_and_what_it_took_is_shown
}

fn what_a_turn_changed_is_shown_and_undone_and_the_session_goes_on(agent: RealAgent) {
    let trial = Trial::new(agent, Acts::AtOnce);
    let place = trial.stage.directory();
    yard::repository(&place);
    let session = text(&trial.say("one", "CODE:apple"), "session");
    let file = place.join("new.txt");
    answer_of(&trial.say("one", &format!("TOOL:write:{}:something new", file.display())));
    assert_eq!(std::fs::read_to_string(&file).expect("it was written").trim_end(), "something new");
    let homing = &trial.homing;
    let changed = homing.run(&["diff", &session, "2"]);
    assert!(
        changed.expect(0).contains("+something new") && changed.out.contains("new.txt"),
        "{}",
        changed.out
    );
    homing.run(&["undo", &session, "2", "--all"]).expect(0);
    assert!(!file.exists(), "it is as it was before the turn");
    assert_eq!(yard::git(&place, &["status", "--porcelain"]), "");
    trial.assert_recalls("one", "apple");
}

fn a_fork_knows_what_was_said_and_figures_are_shown(agent: RealAgent) {
    let trial = Trial::new(agent, Acts::AfterAsking);
    let session = text(&trial.say("one", "CODE:apple"), "session");
    let says_costs = abilities(&trial)["usage"] == true;
    let shown = trial.homing.run(&["show", &session]);
    assert_eq!(shown.expect(0).contains("tokens"), says_costs, "{}", shown.out);

    let fork = text(&trial.homing.run(&["fork", &session, "--json"]).json(0), "id");
    assert_ne!(fork, session);
    let known = said_to(&trial, &fork, "RECALL");
    assert!(known.starts_with("RECALL: apple"), "{known}");
    said_to(&trial, &fork, "CODE:pear");
    let known = trial.answer("one", "RECALL");
    assert!(
        known.starts_with("RECALL: apple") && !known.contains("pear"),
        "the first stays as it was: {known}"
    );
}

fn a_chosen_model_is_the_one_that_is_used_and_what_it_took_is_shown(agent: RealAgent) {
    let trial = Trial::new(agent, Acts::AfterAsking);
    let session = text(&trial.say("one", "CODE:apple"), "session");
    let listed = listed(&trial)["models"].clone();
    let mut names = listed.as_array().expect("a list").iter().filter_map(|model| model["name"].as_str());
    let chosen = names.rfind(|name| *name != "default").expect("it lists its models").to_owned();
    trial.homing.run(&["scope", "set", "--session", &session, "--model", &chosen]).expect(0);
    trial.stage.model.forget();
    // The memory of some does not follow a change of scope, so that it is told again, and may have the word twice.
    let known = trial.answer("one", "RECALL");
    assert!(known.starts_with("RECALL: apple"), "{known}");
    let turns = trial.stage.model.turns();
    let used =
        turns.iter().find(|asked| asked.last_text.contains("RECALL")).expect("it was asked").model.clone();
    // Some say beside the name by which way it is reached, or stand for a longer one.
    let is_named = chosen.split(['|', '(', ')']).any(|part| part == used);
    let is_it = is_named || chosen.ends_with(&used) || used.contains(chosen.trim_end_matches("[1m]"));
    assert!(is_it, "{used} in place of {chosen}");
    let shown = trial.homing.run(&["show", &session]);
    assert!(shown.expect(0).contains(&chosen), "{}", shown.out);
    let says_costs = abilities(&trial)["usage"] == true;
    assert_eq!(shown.out.contains("tokens"), says_costs, "{}", shown.out);
    let unknown = trial.homing.run(&["scope", "set", "--session", &session, "--model", "no such model"]);
    // Where full names are sent as they stand, a list is none.
    assert!(unknown.code != Some(0) || matches!(agent, RealAgent::Codex), "{unknown:?}");
}

/// Agents that take no words in a turn hear them in the next.
fn words_in_between_are_heard_and_an_interrupt_comes_first(agent: RealAgent) {
    let trial = Trial::new(agent, Acts::AfterAsking);
    let session = text(&trial.say("one", "CODE:apple"), "session");
    let send = |how: &str, words: &str| {
        text(&trial.homing.run(&["send", "--session", &session, how, "--json", words]).json(0), "id")
    };
    let settled = |id: &str| trial.homing.http().until_final_within(id, TURN_WAIT);

    let running = speaking(&trial, &session, "CHUNKS:60:100");
    let between = send("--steer", "CODE:pear");
    assert_eq!(settled(&running)["state"], "answered");
    assert_eq!(settled(&between)["state"], "answered");
    let known = trial.answer("one", "RECALL");
    assert!(known.contains("apple") && known.contains("pear"), "{known}");

    let running = speaking(&trial, &session, "CHUNKS:1200:100");
    let first = send("--interrupt", "hello");
    assert!(answer_of(&settled(&first)).starts_with("ECHO: hello [turn="));
    assert_eq!(settled(&running)["state"], "stopped");
}

/// Begins a turn and answers its message when it has begun to speak.
fn speaking(trial: &Trial, session: &str, words: &str) -> String {
    let before = trial.facts_of(session, "text").len();
    let receipt = trial.begin("one", words);
    until("it speaks", || (trial.facts_of(session, "text").len() > before).then_some(()));
    text(&receipt, "id")
}

fn said_to(trial: &Trial, session: &str, words: &str) -> String {
    let http = trial.homing.http();
    let receipt = http.send(&json!({ "session": session }), words);
    answer_of(&http.until_final_within(&text(&receipt, "id"), TURN_WAIT))
}

/// The abilities that the server lists for the agent.
fn abilities(trial: &Trial) -> Value {
    listed(trial)["abilities"].clone()
}

/// The agent as the server lists it.
fn listed(trial: &Trial) -> Value {
    let page = trial.homing.http().get("/api/v1/agents").expect(200);
    let agents = page["items"].as_array().expect("a page has items");
    let name = trial.stage.agent.name();
    let found = agents.iter().find(|agent| agent["name"] == name).expect("it is configured");
    found.clone()
}

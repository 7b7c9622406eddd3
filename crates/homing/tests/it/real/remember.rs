//! Memory: each conversation has its own words, over restarts, in one directory and in two.

use std::path::Path;

use serde_json::json;
use testkit::RealAgent;

use super::{Acts, TURN_WAIT, Trial, answer_of, each_agent};
use crate::text;

/// Turns of each conversation.
const TURNS: usize = 10;

each_agent! {
    conversations_remember_their_own_words_and_no_others_over_a_restart
    two_messages_at_once_are_two_turns_in_order_in_one_process
    each_task_has_its_own_session_and_a_named_one_is_used
}

fn conversations_remember_their_own_words_and_no_others_over_a_restart(agent: RealAgent) {
    let mut trial = Trial::new(agent, Acts::AfterAsking);
    let (here, there) = (trial.stage.directory(), trial.stage.another_directory("elsewhere"));
    // Two in one directory, and one in another.
    let conversations = [("apple", &here), ("pear", &here), ("plum", &there)];
    for turn in 1..=TURNS {
        for (name, directory) in conversations {
            let words = format!("CODE:{name}{turn}");
            let answer = answer_of(&trial.say_in(name, directory, &words));
            // An agent that forgets begins to count anew when it is told again.
            let number = if agent.forgets() { String::new() } else { format!("{turn}]") };
            assert!(answer.starts_with(&format!("ECHO: {words} [turn={number}")), "{answer}");
        }
        if turn == TURNS / 2 {
            assert!(trial.homing.terminate().success());
            assert_eq!(trial.homing.leftovers(), []);
            trial.homing.restart();
        }
    }
    for (name, directory) in conversations {
        let own: Vec<String> = (1..=TURNS).map(|turn| format!("{name}{turn}")).collect();
        let answer = answer_of(&trial.say_in(name, directory, "RECALL"));
        if agent.forgets() {
            assert_eq!(recalled(&answer), own, "{answer}");
        } else {
            assert_eq!(answer, format!("RECALL: {} [turn={}]", own.join(", "), TURNS + 1));
        }
    }
}

/// The words that were recalled, each once, in the order of their numbers: what is told again has the agent's own words in it, too.
fn recalled(answer: &str) -> Vec<String> {
    let (_, words) = answer.split_once("RECALL: ").unwrap_or_else(|| panic!("no recall in {answer:?}"));
    let words = words.split_once(" [turn=").map_or(words, |(words, _)| words);
    let mut words: Vec<String> = words.split(", ").map(str::to_owned).collect();
    words.sort_by_key(|word| (word.len(), word.clone()));
    words.dedup();
    words
}

fn two_messages_at_once_are_two_turns_in_order_in_one_process(agent: RealAgent) {
    let trial = Trial::new(agent, Acts::AfterAsking);
    let (http, to) = (trial.homing.http(), trial.to("one", &trial.stage.directory()));
    let send = |words: &'static str| {
        let (http, to) = (http.clone(), to.clone());
        std::thread::spawn(move || {
            let receipt = http.send(&to, words);
            (words, http.until_final_within(receipt["id"].as_str().expect("an id"), TURN_WAIT))
        })
    };
    let both = [send("first"), send("second")].map(|sent| sent.join().expect("both are answered"));
    let session = text(&both[0].1, "session");
    for (words, receipt) in &both {
        assert_eq!(text(receipt, "session"), session);
        let answer = answer_of(receipt);
        assert!(
            answer.starts_with(&format!("ECHO: {words} [turn=")),
            "{answer} is not the answer to {words}"
        );
    }
    let turns = trial.facts(&session);
    let order: Vec<&str> = turns
        .iter()
        .filter_map(|fact| fact["type"].as_str())
        .filter(|kind| kind.starts_with("turn_"))
        .collect();
    assert_eq!(order, ["turn_started", "turn_ended", "turn_started", "turn_ended"], "one after the other");
    assert!(supervisors(&trial) <= 1, "one process for one session");
}

fn each_task_has_its_own_session_and_a_named_one_is_used(agent: RealAgent) {
    let trial = Trial::new(agent, Acts::AfterAsking);
    let http = trial.homing.http();
    let made = json!({ "new": { "agent": agent.name(), "directory": trial.stage.directory() } });
    let task = |words: &str| {
        let receipt = http.send(&made, words);
        http.until_final_within(&text(&receipt, "id"), TURN_WAIT)
    };
    let (first, second) = (task("CODE:one"), task("CODE:two"));
    assert_ne!(text(&first, "session"), text(&second, "session"));
    let named = json!({ "session": first["session"] });
    let receipt = http.send(&named, "RECALL");
    let receipt = http.until_final_within(&text(&receipt, "id"), TURN_WAIT);
    assert_eq!(text(&receipt, "session"), text(&first, "session"));
    let answer = answer_of(&receipt);
    assert!(answer.starts_with("RECALL: one") && !answer.contains("two"), "{answer}");
}

fn supervisors(trial: &Trial) -> usize {
    trial.homing.leftovers().iter().filter(|process| process.arguments.contains(" supervise")).count()
}

/// The record is there before the agent is: a server that dies between the two finds it again and does what was asked, once.
#[test]
fn a_message_is_found_and_answered_once_when_we_die_before_the_agent_starts() {
    let place = tempfile::tempdir().expect("a directory");
    let (slow, up, go) = (place.path().join("slow"), place.path().join("up"), place.path().join("go"));
    let script = format!(
        "#!/bin/sh\ntouch {}\nwhile ! test -e {}; do sleep 0.05; done\nexec \"$@\"\n",
        up.display(),
        go.display()
    );
    write_program(&slow, &script);
    let mut trial = Trial::with(RealAgent::Claude, Acts::AfterAsking, "", Some(&slow));
    let receipt = trial.begin("one", "CODE:apple");
    testkit::eventually("the agent's program was started", || up.exists().then_some(()));
    trial.homing.kill9();
    std::fs::write(&go, "").expect("a file can be made");
    trial.homing.restart();
    let receipt = trial.homing.http().until_final_within(&text(&receipt, "id"), TURN_WAIT);
    assert_eq!(answer_of(&receipt), "ECHO: CODE:apple [turn=1]");
    let asked = trial.stage.model.turns();
    assert_eq!(asked.iter().filter(|asked| asked.last_text.contains("CODE:apple")).count(), 1, "{asked:#?}");
}

fn write_program(path: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, script).expect("a file can be written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
}

//! Every message finds its own session: many conversations, shuffled, over restarts, proved from the agents' own memory.
//!
//! `HOMING_CONVERSATIONS` says how many (40 by default, 200 in `cargo xtask nightly`).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use testkit::{Homing, Http, Setup};

use crate::count;

const MESSAGES: usize = 20;
/// Each worker has its share of the conversations.
const WORKERS: usize = 8;
/// All conversations have a turn in each round, so the last one waits for all the others.
const ROUND_MAX: Duration = Duration::from_secs(180);

#[test]
fn two_terminals_and_http_interleaved_fifty_rounds_never_hear_a_word_of_each_other() {
    let homing = Homing::start(env!("CARGO_BIN_EXE_homing"));
    let places: Vec<PathBuf> = ["apples", "pears"].map(|name| homing.root().join(name)).into();
    places.iter().for_each(|place| std::fs::create_dir(place).unwrap());
    for round in 1..=50 {
        for place in &places {
            let fruit = place.file_name().unwrap().to_str().unwrap();
            let spoken = homing.run_in(place, &["send", "--follow", &format!("{fruit}{round}")]);
            assert_eq!(spoken.expect(0).trim(), format!("#{round} {fruit}{round}"));
        }
        assert_eq!(
            homing.converse("api:test/plums", &format!("plums{round}")).trim(),
            format!("#{round} plums{round}")
        );
    }
    for place in &places {
        let fruit = place.file_name().unwrap().to_str().unwrap();
        let recalled = homing.run_in(place, &["send", "--follow", "!recall"]).expect(0).to_owned();
        remembers_only(&recalled, fruit, 50, &["apples", "pears", "plums"]);
    }
    remembers_only(&homing.converse("api:test/plums", "!recall"), "plums", 50, &["apples", "pears", "plums"]);
}

#[test]
fn a_burst_of_words_arrives_whole_and_in_order() {
    let homing = Homing::start(env!("CARGO_BIN_EXE_homing"));
    let answer = homing.converse("api:test/burst", "!say 20000 10000000");
    let words: Vec<&str> = answer.split_whitespace().skip(1).collect();
    let expected: Vec<String> = (1..=20_000).map(|number| format!("word{number}")).collect();
    assert!(words == expected, "{} of 20000 words, the first wrong one is {:?}", words.len(), {
        words.iter().zip(&expected).find(|(word, expected)| *word != *expected)
    });
}

fn remembers_only(recalled: &str, fruit: &str, rounds: usize, all: &[&str]) {
    for other in all.iter().filter(|other| **other != fruit) {
        assert!(!recalled.contains(other), "{fruit} heard of {other}:\n{recalled}");
    }
    for round in 1..=rounds {
        assert!(recalled.contains(&format!("{fruit}{round}")), "{fruit} forgot {round}:\n{recalled}");
    }
}

#[test]
fn conversations_of_twenty_messages_shuffled_over_restarts_are_never_misrouted() {
    let config = "[limits]\nawake_max = 16\n";
    let mut homing = Setup::new(env!("CARGO_BIN_EXE_homing")).config(config).start();
    let mut sessions = BTreeMap::new();
    for round in 0..MESSAGES {
        if round % 7 == 6 {
            assert!(homing.terminate().success());
            homing.restart();
        }
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let http = homing.http();
                std::thread::spawn(move || one_round(&http, worker, round))
            })
            .collect();
        for (conversation, session) in workers.into_iter().flat_map(|worker| worker.join().unwrap()) {
            let known = sessions.entry(conversation).or_insert_with(|| session.clone());
            assert_eq!(*known, session, "a conversation stays in its session");
        }
    }
    assert_eq!(sessions.len(), conversations());
    let workers: Vec<_> = (0..WORKERS)
        .map(|worker| {
            let http = homing.http();
            std::thread::spawn(move || {
                shuffled(worker, 99).into_iter().for_each(|number| recalls_its_own(&http, number));
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
}

fn conversations() -> usize {
    count("HOMING_CONVERSATIONS", 40) as usize
}

/// Everybody's next word, in an order that is different each round; all are sent before anybody is waited for.
fn one_round(http: &Http, worker: usize, round: usize) -> Vec<(usize, String)> {
    let sent: Vec<_> = shuffled(worker, round)
        .into_iter()
        .map(|number| {
            let receipt = http.send(&json!({"conversation": address(number)}), &word(number, round));
            let text = |name: &str| receipt[name].as_str().unwrap().to_owned();
            (number, text("id"), text("session"))
        })
        .collect();
    sent.into_iter()
        .map(|(number, message, session)| {
            let receipt = http.until_final_within(&message, ROUND_MAX);
            let expected = format!("#{} {}", round + 1, word(number, round));
            assert_eq!(receipt["answer"].as_str().unwrap().trim(), expected, "{receipt}");
            (number, session)
        })
        .collect()
}

fn recalls_its_own(http: &Http, number: usize) {
    let recalled = http.converse(&json!({"conversation": address(number)}), "!recall");
    let words: Vec<&str> = recalled
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| word.starts_with("code"))
        .collect();
    let expected: Vec<String> = (0..MESSAGES).map(|round| word(number, round)).collect();
    assert_eq!(words, expected, "what conversation {number} remembers");
}

fn address(number: usize) -> String {
    format!("api:test/conversation{number}")
}

fn word(number: usize, round: usize) -> String {
    format!("code{number}x{round}")
}

/// This worker's conversations, in an order that depends on the round.
fn shuffled(worker: usize, round: usize) -> Vec<usize> {
    let mut mine: Vec<usize> = (0..conversations()).filter(|number| number % WORKERS == worker).collect();
    mine.sort_by_key(|number| (number + 1).wrapping_mul(2_654_435_761 + round * 40_503) % 10_007);
    mine
}

//! Every story of up to six steps over a written alphabet, from a few beginnings.
//!
//! After each step the ledger is asked whether a promise was broken. Two stories that lead to the same session, the same
//! books and the same moment have the same future, so it is told once. A broken promise is printed with the shortest
//! story that leads to it, to be pasted into `stories`.

use crate::story::{Step, World, step};
use std::collections::HashSet;
use std::fmt::{self, Write};
use std::hash::{DefaultHasher, Hash, Hasher};

const STEPS_MAX: usize = 6;

/// A fourth message teaches nothing that three do not.
const MESSAGES_MAX: usize = 3;

/// Agents, keepers and clocks.
const FAULTS: &[&str] = &[
    "say",
    "stop 1",
    "stop",
    "ready as n1",
    "finished as n2",
    "finished of 1.1",
    "lost",
    "lost of 1.1",
    "failed transient",
    "failed gone",
    "wake",
    "wake +100000",
    "crash",
    "revoke 1",
    "end",
];

/// People and places.
const WISHES: &[&str] = &[
    "say",
    "hold 2",
    "release 2",
    "withdraw 2",
    "stop 1",
    "reorder back to front",
    "revoke 1",
    "no slot",
    "a slot",
    "slot unasked",
    "ready",
    "finished",
    "failed refused",
    "wake",
    "end",
];

/// Questions.
const QUESTIONS: &[&str] = &[
    "ready",
    "asks",
    "asks again",
    "takes back",
    "takes back 1",
    "answer 1 yes",
    "answer 1 no",
    "answer 2 yes",
    "finished",
    "stop",
    "lost",
    "wake",
    "wake +150",
    "crash",
    "revoke 1",
    "end",
];

#[test]
fn every_short_story_of_faults_keeps_every_promise() {
    check("", FAULTS);
}

#[test]
fn every_short_story_of_faults_around_two_messages_keeps_every_promise() {
    check("say; say; ready as n1", FAULTS);
}

#[test]
fn every_short_story_of_faults_around_a_name_without_proof_keeps_every_promise() {
    check("say; ready as n1; lost; say", FAULTS);
}

#[test]
fn every_short_story_of_faults_around_a_rest_keeps_every_promise() {
    check("say; say; failed transient; wake; failed busy; wake", FAULTS);
}

#[test]
fn every_short_story_of_wishes_keeps_every_promise() {
    check("", WISHES);
}

#[test]
fn every_short_story_of_wishes_around_a_queue_keeps_every_promise() {
    check("say; say; say", WISHES);
}

#[test]
fn every_short_story_of_questions_keeps_every_promise() {
    check("say; say; ready", QUESTIONS);
}

fn check(beginning: &str, alphabet: &[&str]) {
    let alphabet: Vec<(&str, Step)> = alphabet.iter().map(|text| (*text, step(text))).collect();
    let mut seen = HashSet::new();
    let mut stories = vec![(World::after(beginning), vec![])];
    for length in 1..=STEPS_MAX {
        let mut longer = vec![];
        for (world, story) in &stories {
            for (text, step) in &alphabet {
                if *step == Step::SayNext && world.ledger.messages.len() >= MESSAGES_MAX {
                    continue;
                }
                let mut next = world.clone();
                let mut story = story.clone();
                story.push(*text);
                if let Err(broken) = next.tell(step) {
                    panic!("{broken}\nin the story `{beginning}; {}`", story.join("; "));
                }
                // Nothing comes after the last step, so nobody asks where it led.
                if length < STEPS_MAX && seen.insert(place(&next)) {
                    longer.push((next, story));
                }
            }
        }
        stories = longer;
    }
    assert!(seen.len() > 1_000, "only {} places: the alphabet says too little", seen.len());
}

/// Where a story has come to, as far as its future depends on it. The log does not matter: it makes the session.
fn place(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    write!(Hashed(&mut hasher), "{:?} {:?}", world.session, world.given).expect("a hasher takes anything");
    world.ledger.hash(&mut hasher);
    hasher.finish()
}

/// A session has no hash of its own, but prints all of itself.
struct Hashed<'a>(&'a mut DefaultHasher);

impl fmt::Write for Hashed<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

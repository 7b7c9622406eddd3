//! Every story of five or six steps over a written alphabet, from a few beginnings.
//!
//! After each step the ledger is asked whether a promise was broken. Two stories that lead to the same session, the same
//! books and the same moment have the same future, so it is told once. A broken promise is printed with the shortest
//! story that leads to it, to be pasted into `stories`.

use crate::story::{Step, Told, World, step};
use homing_kernel::{Epoch, ErrandKind, Fact};
use std::collections::HashSet;
use std::fmt::{self, Write};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A wide alphabet is told in shorter stories: it takes as long.
const STEPS_MAX: usize = 6;
const STEPS_MAX_OF_MANY: usize = 5;
const MANY: usize = 17;

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
    "hand over",
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
    "answer 2 yes by rule 1",
    "answer 1 yes by policy",
    "answer 1 no by nobody",
    "finished",
    "stop",
    "lost",
    "wake",
    "wake +150",
    "crash",
    "revoke 1",
    "end",
];

/// Other places, and what waits meanwhile.
const PLACES: &[&str] = &[
    "say",
    "say under 0",
    "set model b",
    "set model default",
    "set agent b",
    "relink /srv/b now",
    "keep",
    "hand over",
    "ready as n1",
    "finished",
    "failed gone",
    "hold 2",
    "release 2",
    "release 2 there",
    "withdraw 2",
    "no slot",
    "a slot",
    "crash",
    "wake",
    "end",
];

/// Errands that are asked of the outside.
const ERRANDS: &[&str] = &[
    "say",
    "enter",
    "exit",
    "undo 1",
    "set model b",
    "entered",
    "entered of 0.1",
    "undone",
    "redo 1 of epoch 0",
    "redone",
    "in vain enter",
    "in vain undo",
    "saw commands under 0",
    "saw diff under 1",
    "ready",
    "finished",
    "keep",
    "no slot",
    "wake",
    "crash",
    "end",
];

/// Words into a turn and before all others.
const DELIVERIES: &[&str] = &[
    "say",
    "steer",
    "interrupt",
    "put 2 in",
    "put 2 first",
    "steer under 1",
    "the agent is deaf",
    "missed 2",
    "missed 3",
    "ready",
    "finished",
    "failed transient",
    "stop 1",
    "stop 2",
    "revoke 2",
    "set model b",
    "lost",
    "wake",
    "crash",
    "end",
];

#[test]
fn every_short_story_of_places_keeps_every_promise() {
    check("", PLACES);
}

#[test]
fn every_short_story_of_places_around_a_queue_keeps_every_promise() {
    check("say; ready as n1; finished; no slot; say; say", PLACES);
}

#[test]
fn every_short_story_of_places_around_a_turn_keeps_every_promise() {
    check("say; say; ready as n1; set model b", PLACES);
}

#[test]
fn every_short_story_of_errands_keeps_every_promise() {
    check("say; ready as n1; finished", ERRANDS);
}

#[test]
fn every_short_story_of_errands_around_a_worktree_keeps_every_promise() {
    check("say; ready; finished; enter; entered", ERRANDS);
}

#[test]
fn every_short_story_of_errands_in_a_session_made_for_a_worktree_keeps_every_promise() {
    check("open into w1", ERRANDS);
}

#[test]
fn every_short_story_of_deliveries_keeps_every_promise() {
    check("say; ready", DELIVERIES);
}

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
    let steps_max = if alphabet.len() < MANY { STEPS_MAX } else { STEPS_MAX_OF_MANY };
    for length in 1..=steps_max {
        let mut longer = vec![];
        for (world, story) in &stories {
            for (text, step) in &alphabet {
                if matches!(step, Step::SayNext { .. }) && world.ledger.messages.len() >= MESSAGES_MAX {
                    continue;
                }
                let mut next = world.clone();
                let mut story = story.clone();
                story.push(*text);
                if let Err(broken) = next.tell(step) {
                    panic!("{broken}\nin the story `{beginning}; {}`", story.join("; "));
                }
                // Nothing comes after the last step, so nobody asks where it led.
                if length < steps_max && seen.insert(place(&next)) {
                    longer.push((next, story));
                }
            }
        }
        stories = longer;
    }
    assert!(seen.len() > 1_000, "only {} places: the alphabet says too little", seen.len());
}

/// Diff, commands, models and an undo are asked for under A. The undo is done twice, because the first keeper was thought
/// dead; so one of its returns is always too late. Whatever the order of the returns and of going to B and back to A:
/// what comes under another epoch is recorded once and changes nothing, and nothing that came in time is recorded so.
#[test]
fn what_was_asked_for_under_one_scope_is_never_applied_under_another_in_any_order() {
    let returns = ["saw diff under 0", "saw commands under 0", "saw models under 0", "undone of 0.1"];
    let moves = ["set model b", "set model default", "in vain undo of 0.1"];
    let mut orders = vec![vec![]];
    for next in returns.into_iter().chain(moves) {
        orders = orders
            .iter()
            .flat_map(|order: &Vec<&str>| (0..=order.len()).map(move |at| inserted(order, at, next)))
            .collect();
    }
    let (mut late, mut revived) = (0, 0);
    let beginning = World::after("say; ready; finished; undo 1");
    for order in &orders {
        let mut world = beginning.clone();
        for text in order.iter().chain(order) {
            let (epoch, away) = (world.session.epoch(), world.session.away().is_some());
            let recorded = world.ledger.stale_errands.len();
            let told = world.tell(&step(text)).unwrap_or_else(|broken| panic!("{broken}\nin {order:?}"));
            let comes_back = text.contains("under 0") || text.contains("of 0.1");
            if !comes_back {
                continue;
            }
            let in_time = epoch == Epoch(0) && (away || text.contains("under 0"));
            let stale = world.ledger.stale_errands.len() > recorded;
            assert!(!(in_time && stale), "`{text}` came in time in {order:?}");
            if !in_time {
                let Told::Facts(facts) = told else { panic!("`{text}` was refused in {order:?}") };
                let only = facts.iter().all(|fact| matches!(fact, Fact::StaleErrand { .. }));
                assert!(only && facts.len() <= 1, "`{text}` was applied in {order:?}: {facts:?}");
                late += 1;
                revived += usize::from(epoch == Epoch(2));
            }
        }
        assert!(!world.session.has_learned(ErrandKind::Commands), "B and A again know no commands");
    }
    assert_eq!(orders.len(), 5_040);
    assert!(late > 10_000 && revived > 10_000, "{late} came too late, {revived} of them in A again");
}

fn inserted<'a>(order: &[&'a str], at: usize, next: &'a str) -> Vec<&'a str> {
    let mut longer = order.to_vec();
    longer.insert(at, next);
    longer
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

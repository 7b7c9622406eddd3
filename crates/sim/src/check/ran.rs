//! The turns that really ran, by the agents' own record, against the logs.

use super::log::{QuestionState, TurnSummary};
use super::scoped::{codes_in, own_words};
use super::{Findings, Scene};
use crate::leash::TAKEN_BACK;
use crate::notes::{code_of, short};
use agent::{Did, Noted};
use kernel::{Answer, Failure, Fence, MessageId, Native, Outcome, SessionId};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(scene: &Scene<'_>, findings: &mut Findings) {
    one_at_a_time(scene, findings);
    at_most_once(scene, findings);
    outcomes_are_the_agents(scene, findings);
    memories_are_their_own(scene, findings);
    memories_last(scene, findings);
    let alive = scene.town.house.alive();
    findings.must(alive.is_empty(), "no agent outlives its attempt", || format!("{alive:?}"));
}

fn one_at_a_time(scene: &Scene<'_>, findings: &mut Findings) {
    let mut alive: BTreeMap<SessionId, BTreeSet<(Fence, bool)>> = BTreeMap::new();
    for noted in &scene.noted {
        let others = alive.entry(noted.session).or_default();
        match noted.did {
            Did::Up => {
                // A replaced daemon may be late with a start that was given up meanwhile. It must not get the words.
                let fits = others.is_empty() || scene.seen.takeovers > 0;
                findings.must(fits, "one attempt at a time", || format!("{noted:?} beside {others:?}"));
                others.insert((noted.fence, false));
            }
            Did::Handed => {
                let alone = others.iter().all(|(fence, has_words)| *fence == noted.fence || !has_words);
                findings.must(alone, "one attempt at a time", || format!("{noted:?} beside {others:?}"));
                others.remove(&(noted.fence, false));
                others.insert((noted.fence, true));
            }
            Did::Acted => {}
            Did::Finished | Did::Failed(_) | Did::Crashed | Did::Killed => {
                others.retain(|(fence, _)| *fence != noted.fence);
            }
        }
    }
}

fn at_most_once(scene: &Scene<'_>, findings: &mut Findings) {
    let mut acted: BTreeMap<MessageId, Fence> = BTreeMap::new();
    for noted in scene.noted.iter().filter(|noted| noted.did == Did::Acted) {
        let before = acted.insert(noted.message, noted.fence);
        findings.must(before.is_none(), "a message is acted on at most once", || format!("{noted:?}"));
        let turns = scene.told.get(&noted.session).map(|told| told.turns.as_slice()).unwrap_or_default();
        let known = turns.iter().any(|t| t.message == noted.message && t.handed == Some(noted.fence));
        findings.must(known, "what was acted on was handed over", || format!("{noted:?}"));
    }
}

/// A turn has come to what its own attempt has come to, and no other.
fn outcomes_are_the_agents(scene: &Scene<'_>, findings: &mut Findings) {
    let mut ends: BTreeMap<(SessionId, Fence), Did> = BTreeMap::new();
    let is_end = |noted: &&Noted| !matches!(noted.did, Did::Up | Did::Handed | Did::Acted);
    for noted in scene.noted.iter().filter(is_end) {
        ends.insert((noted.session, noted.fence), noted.did);
    }
    for (session, told) in &scene.told {
        for turn in told.turns.iter().filter(|turn| !turn.is_past()) {
            let end = turn.attempts.last().and_then(|fence| ends.get(&(*session, *fence)));
            let fits = match turn.outcome {
                Some(Outcome::Answered) => end == Some(&Did::Finished),
                // Between two attempts its sender lost the right to say it.
                Some(Outcome::Failed(Failure::Refused)) if !turn.trying => true,
                Some(Outcome::Failed(Failure::Transient)) => end != Some(&Did::Finished),
                Some(Outcome::Failed(failure)) => end == Some(&Did::Failed(failure)),
                Some(Outcome::Stopped | Outcome::Interrupted | Outcome::TimedOut) | None => true,
            };
            let how = || format!("{} {:?}, but the agent: {end:?}", short(session), turn);
            findings.must(fits, "a turn has come to what its own attempt has", how);
        }
    }
}

/// No word of one session in the memory of another.
fn memories_are_their_own(scene: &Scene<'_>, findings: &mut Findings) {
    let mut homes: BTreeMap<&Native, SessionId> = BTreeMap::new();
    // A fork begins under its origin's name, and gets one of its own before it does anything.
    let ran = scene.noted.iter().filter_map(|noted| Some((noted.native.as_ref()?, noted.session)));
    let ran = ran.filter(|(native, session)| !scene.is_borrowed(native, *session));
    let told = scene.told.iter().flat_map(|(id, told)| told.confirmed.iter().map(|native| (native, *id)));
    for (native, session) in ran.chain(told) {
        let home = *homes.entry(native).or_insert(session);
        let how = || format!("{native:?} in {session} and {home}");
        findings.must(home == session, "a conversation belongs to one session", how);
    }
    // A fork that the agent has made, and that was given up before anything was said in it, is nobody's memory.
    let said_in = |native: &Native| {
        scene.told.values().any(|told| told.confirmed.contains(native))
            || scene.noted.iter().any(|noted| {
                noted.native.as_ref() == Some(native) && matches!(noted.did, Did::Handed | Did::Acted)
            })
    };
    for (native, session) in homes {
        let Some(memory) = scene.town.house.memory(native).filter(|_| said_in(native)) else { continue };
        for text in &memory.messages {
            let own = codes_in(text).all(|code| scene.is_at_home(code, session));
            let how = || format!("{text:?} in the memory of {}", short(session));
            findings.must(own, "no word of one session in another", how);
            // What was said into a turn stands behind what it began with.
            let now = own_words(text);
            let words = scene.views.values().any(|(_, words)| now.starts_with(words.as_str()));
            findings.must(words, "the agent hears what is stored", || format!("{text:?}"));
        }
    }
}

/// Every answer is remembered, in order, as long as the conversation exists.
fn memories_last(scene: &Scene<'_>, findings: &mut Findings) {
    for (session, told) in &scene.told {
        let Some(memory) = told.proven.as_ref().and_then(|native| scene.town.house.memory(native)) else {
            continue;
        };
        let all = memory.messages.join("\n");
        // What does not fit is left out of what is told again.
        let is_cut = all.contains("left out)");
        let mut remembered = codes_in(&all);
        for turn in told.turns.iter().filter(|turn| turn.outcome == Some(Outcome::Answered)) {
            let Some((view, words)) = scene.views.get(&turn.message) else { continue };
            let found = is_cut || remembered.any(|code| Some(code) == code_of(words));
            let how = || format!("{} has forgotten {words:?} or its place", short(session));
            findings.must(found, "a session remembers what it answered", how);
            let answer = view.answer.as_deref().unwrap_or_default();
            if !turn.is_past() {
                answers_fit(answer, turn, findings);
            }
        }
    }
}

/// The answers to the agent's questions are those of the log. One that it took back it answered for itself; an
/// answer of a person's may still have come first in the log.
fn answers_fit(answer: &str, turn: &TurnSummary, findings: &mut Findings) {
    let (mut allowed, mut denied, mut lapsed) = (0, 0, 0);
    for asked in turn.asks.values() {
        match asked {
            QuestionState::Answered(Answer::No) => denied += 1,
            QuestionState::Answered(_) => allowed += 1,
            QuestionState::Lapsed => lapsed += 1,
            QuestionState::Open => {}
        }
    }
    // Not what was told again of an earlier turn.
    let said = |words: &str| own_words(answer).lines().filter(|line| line.starts_with(words)).count();
    let back = said(&format!("shell: denied: {TAKEN_BACK}"));
    let (yes, no) = (said("shell: allowed"), said("shell: denied") - back);
    // What it asks while it is being stopped is asked of nobody.
    let all = yes + no + back == allowed + denied + lapsed || turn.stop.is_some();
    let fits = yes <= allowed && no <= denied && lapsed <= back && all;
    let how = || format!("{allowed} allowed, {denied} denied and {lapsed} taken back, but: {answer:?}");
    findings.must(fits, "an answer reaches the question", how);
}

//! What really ran, by the agents' own record, against the logs.

use super::log::Asked;
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
                // A replaced daemon may be late with a start that was buried meanwhile. It must not get the words.
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
        for turn in &told.turns {
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
    let ran = scene.noted.iter().filter_map(|noted| Some((noted.native.as_ref()?, noted.session)));
    let told = scene.told.iter().flat_map(|(id, told)| told.confirmed.iter().map(|native| (native, *id)));
    for (native, session) in ran.chain(told) {
        let home = *homes.entry(native).or_insert(session);
        let how = || format!("{native:?} in {session} and {home}");
        findings.must(home == session, "a conversation belongs to one session", how);
    }
    for (native, session) in homes {
        let Some(memory) = scene.town.house.memory(native) else { continue };
        for text in &memory.messages {
            let own = code_of(text).and_then(|code| scene.session_of(code)) == Some(session);
            let how = || format!("{text:?} in the memory of {}", short(session));
            findings.must(own, "no word of one session in another", how);
            let words = scene.views.values().any(|(_, words)| words == text);
            findings.must(words, "the agent hears what is stored", || format!("{text:?}"));
        }
    }
}

/// What was answered is remembered, in order, as long as the conversation exists.
fn memories_last(scene: &Scene<'_>, findings: &mut Findings) {
    for (session, told) in &scene.told {
        let Some(memory) = told.confirmed.last().and_then(|native| scene.town.house.memory(native)) else {
            continue;
        };
        let mut remembered = memory.messages.iter();
        for turn in told.turns.iter().filter(|turn| turn.outcome == Some(Outcome::Answered)) {
            let Some((view, words)) = scene.views.get(&turn.message) else { continue };
            let found = remembered.any(|text| text == words);
            let how = || format!("{} has forgotten {words:?} or its place", short(session));
            findings.must(found, "a session remembers what it answered", how);
            let answer = view.answer.as_deref().unwrap_or_default();
            answers_fit(answer, turn.asks.values(), findings);
        }
    }
}

/// What the agent was told to its questions is what the log says. One that it took back it answered for itself; an
/// answer of a person's may still have come first in the log.
fn answers_fit<'a>(answer: &str, asks: impl Iterator<Item = &'a Asked>, findings: &mut Findings) {
    let (mut allowed, mut denied, mut lapsed) = (0, 0, 0);
    for asked in asks {
        match asked {
            Asked::Answered(Answer::Yes | Answer::Chose(_) | Answer::Said(_)) => allowed += 1,
            Asked::Answered(Answer::No) => denied += 1,
            Asked::Lapsed => lapsed += 1,
            Asked::Open => {}
        }
    }
    let said = |words| answer.matches(words).count();
    let back = said(TAKEN_BACK);
    let (yes, no) = (said("shell: allowed"), said("shell: denied") - back);
    let fits =
        yes <= allowed && no <= denied && lapsed <= back && yes + no + back == allowed + denied + lapsed;
    let how = || format!("{allowed} allowed, {denied} denied and {lapsed} taken back, but: {answer:?}");
    findings.must(fits, "an answer reaches the question", how);
}

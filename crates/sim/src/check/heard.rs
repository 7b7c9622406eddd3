//! The answers that people got, against what became of it.

use super::scoped::{codes_in, own_words};
use super::{Findings, Scene};
use crate::notes::{SaidMessage, code_of, short};
use engine::{Accepted, Granted, ReceiptState, UnavailableError};
use kernel::{Address, MessageId, PersonId, Request, SessionId, To};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(scene: &Scene<'_>, findings: &mut Findings) {
    for (code, said) in scene.seen.said.iter().enumerate() {
        exactly_once(scene, code, said, findings);
    }
    for (message, (view, words)) in &scene.views {
        if scene.is_past(*message) {
            continue;
        }
        words_are_the_senders(scene, *message, words, view.row.revision, findings);
        if view.row.state == ReceiptState::Answered {
            answers_are_their_own(scene, view, words, findings);
        }
        let final_in_the_end = view.row.state.is_final() || !scene.is_quiet;
        let how = || format!("{} is {:?}", short(message), view.row.state);
        findings.must(final_in_the_end, "every message reaches a final state", how);
    }
    routes_are_exact(scene, findings);
    receipts_move_forward(scene, findings);
    verdicts_are_kept(scene, findings);
}

/// An acknowledged message exists exactly once; a refused one does not exist.
fn exactly_once(scene: &Scene<'_>, code: usize, said: &SaidMessage, findings: &mut Findings) {
    let stored: Vec<MessageId> = scene
        .views
        .iter()
        .filter(|(message, (_, words))| code_of(words) == Some(code) && !scene.is_past(**message))
        .map(|(message, _)| *message)
        .collect();
    let acknowledged: Vec<&Accepted> =
        said.answers.iter().filter_map(|answer| answer.as_ref().ok()).collect();
    findings.must(stored.len() <= 1, "a message exists exactly once", || format!("w{code} is {stored:?}"));
    for accepted in &acknowledged {
        let kept = stored.contains(&accepted.message);
        findings.must(kept, "an acknowledged message exists", || format!("w{code} {accepted:?}"));
        let row = scene.store.receipts.get(&accepted.message);
        let fits = row.is_none_or(|row| row.session == accepted.session && row.by == said.by);
        findings.must(fits, "a receipt names the message's own session", || format!("w{code} {accepted:?}"));
        let same = acknowledged[0] == *accepted;
        findings.must(same, "the same key gets the same receipt", || format!("w{code} {acknowledged:?}"));
    }
    let kept = said.forgotten.is_empty();
    findings.must(kept, "a receipt is given again, whatever is full by now", || {
        format!("w{code} {:?}", said.forgotten)
    });
    let unclear = said.unanswered || said.answers.contains(&Err(UnavailableError::Unclear.into()));
    let unexpected = !stored.is_empty() && acknowledged.is_empty() && !unclear;
    findings.must(!unexpected, "what was refused changes nothing", || format!("w{code} {:?}", said.answers));
}

fn words_are_the_senders(
    scene: &Scene<'_>,
    message: MessageId,
    words: &str,
    revision: u32,
    findings: &mut Findings,
) {
    let fits = scene.said(message).is_some_and(|said| match revision {
        0 => said.text == words,
        _ => said.edits.iter().any(|edit| edit == words),
    });
    findings.must(fits, "words are the sender's", || format!("{} says {words:?}", short(message)));
}

/// An answer is about the message that asked, and knows nothing of other sessions.
fn answers_are_their_own(
    scene: &Scene<'_>,
    view: &engine::ReceiptView,
    words: &str,
    findings: &mut Findings,
) {
    let answer = view.answer.as_deref().unwrap_or_default();
    // What was said into a turn of another message is answered by a line of its own, wherever it got there.
    let given = scene.seen.given.iter().find(|(_, message, ..)| *message == view.row.message);
    let own = match (given, own_words(answer)) {
        (Some((.., true)), _) => answer
            .lines()
            .filter_map(|line| code_of(line.strip_prefix('+')?))
            .any(|c| Some(c) == code_of(words)),
        (None, _) => true,
        (Some(_), now) if now.len() < answer.len() => code_of(now) == code_of(words),
        (Some(_), _) => {
            let heading = answer.lines().find(|line| line.starts_with('#')).unwrap_or_default();
            heading.split_once(' ').and_then(|(_, said)| code_of(said)) == code_of(words)
        }
    };
    findings.must(own, "each answer belongs to the message that asked", || format!("{words:?}: {answer:?}"));
    for code in codes_in(answer) {
        let home = scene.is_at_home(code, view.row.session);
        let how = || format!("w{code} is recalled in {}", short(view.row.session));
        findings.must(home, "no word of one session in another", how);
    }
}

fn routes_are_exact(scene: &Scene<'_>, findings: &mut Findings) {
    let mut made: BTreeMap<&Address, BTreeSet<SessionId>> = BTreeMap::new();
    let mut makers: BTreeMap<SessionId, MessageId> = BTreeMap::new();
    let mut left: BTreeSet<SessionId> = BTreeSet::new();
    for (message, row) in scene.store.receipts.iter().filter(|(_, row)| row.created) {
        let other = makers.insert(row.session, *message);
        findings.must(other.is_none(), "a session is made once", || format!("{message} and {other:?}"));
        if let Some(To::Conversation(address) | To::NewIn(address)) =
            scene.said(*message).map(|said| &said.to)
        {
            made.entry(address).or_default().insert(row.session);
        }
        // Whoever takes a conversation over is its last one, until it ends or is taken over from.
        left.extend(row.previous.filter(|before| before.ended.is_none()).map(|before| before.session));
    }
    for (message, row) in &scene.store.receipts {
        let Some(said) = scene.said(*message) else { continue };
        let fits = match &said.to {
            To::Session(session) => row.session == *session && !row.created,
            To::New | To::NewIn(_) => row.created,
            To::Conversation(address) => made.get(address).is_some_and(|own| own.contains(&row.session)),
        };
        findings.must(fits, "every message finds its own session", || format!("{:?}: {row:?}", said.to));
    }
    for (address, sessions) in made {
        let is_open = |session: &&SessionId| scene.told.get(session).is_some_and(|told| told.ended.is_none());
        let open: Vec<_> =
            sessions.iter().filter(is_open).filter(|session| !left.contains(session)).collect();
        let mut rows = scene.store.bindings.iter();
        let bound = rows.find(|(_, row)| row.address == *address).map(|(_, row)| &row.session);
        let fits = open.len() <= 1 && bound == open.first().copied();
        let how = || format!("{address} is bound to {bound:?}, open are {open:?}");
        findings.must(fits, "a conversation has one open session", how);
    }
}

/// Each observer sees a receipt move forward, and a final one never change.
fn receipts_move_forward(scene: &Scene<'_>, findings: &mut Findings) {
    let mut last: BTreeMap<(PersonId, MessageId), ReceiptState> = BTreeMap::new();
    // What was to go into a running turn, and came too late for it, waits again.
    let has_missed = |message: &MessageId| scene.told.values().any(|told| told.missed.contains(message));
    for (person, message, state) in &scene.seen.receipts {
        if let Some(before) = last.insert((*person, *message), *state) {
            let fits = match before {
                ReceiptState::Waiting | ReceiptState::Held => true,
                ReceiptState::Running => {
                    !matches!(state, ReceiptState::Waiting | ReceiptState::Held) || has_missed(message)
                }
                over => over == *state,
            };
            let how = || format!("{} was {before:?}, then {state:?}", short(message));
            findings.must(fits, "receipts only move forward", how);
        }
    }
    for ((_, message), state) in last.iter().filter(|(_, state)| state.is_final()) {
        let now = scene.store.receipts.get(message).map(|row| row.state);
        let how = || format!("{} was {state:?}, then {now:?}", short(message));
        findings.must(now == Some(*state), "a final state never changes", how);
    }
}

/// Everything that the keeper granted is so.
fn verdicts_are_kept(scene: &Scene<'_>, findings: &mut Findings) {
    for (request, _) in scene.seen.asked.iter().filter(|(_, answer)| *answer == Ok(Granted::Done)) {
        let row = |message| scene.store.receipts.get(message);
        let fits = match request {
            Request::Withdraw { message } => row(message).is_some_and(|r| r.state == ReceiptState::Withdrawn),
            Request::Edit { message, revision, .. } => row(message).is_some_and(|r| r.revision > *revision),
            Request::End { session } => scene.told.get(session).is_some_and(|told| told.ended.is_some()),
            Request::Stop { message } => row(message).is_some_and(|r| r.state.is_final()),
            Request::Hold { .. }
            | Request::Release { .. }
            | Request::Steer { .. }
            | Request::Interrupt { .. }
            | Request::Reorder { .. }
            | Request::Answer { .. }
            | Request::ChangeScope { .. }
            | Request::KeepScope { .. }
            | Request::Chore { .. }
            | Request::Undo { .. }
            | Request::Redo { .. } => true,
        };
        findings.must(fits || !scene.is_quiet, "what was granted is done", || format!("{request:?}"));
    }
}

//! Conversations that came from another org: whole or not there, once, and in nobody's way.

use super::log::TurnSummary;
use super::{Findings, Scene};
use crate::notes::{Brought, short};
use engine::{Export, MessagePart, PastTurn, StoredEntry, WayInError};
use kernel::{Failure, MessageId, Outcome, PersonId, SessionId};
use std::collections::BTreeMap;

pub(super) fn check(scene: &Scene<'_>, findings: &mut Findings) {
    let mut there: BTreeMap<(PersonId, SessionId), SessionId> = BTreeMap::new();
    for (session, row) in &scene.store.sessions {
        let Some(import) = &row.import else { continue };
        let before = there.insert((row.owner, import.id), *session);
        let how = || format!("{} and {before:?} of {}", short(session), short(import.id));
        findings.must(before.is_none(), "an import is there once", how);
        let mut wished = scene.seen.imports.iter();
        let wished = wished.any(|brought| {
            let acknowledged = brought.answers.contains(&Ok(*session));
            (brought.by, brought.export.session) == (row.owner, import.id)
                && (acknowledged || brought.unanswered)
                && is_whole(scene, *session, &brought.export)
        });
        findings.must(wished, "an import is whole or not there", || short(session));
    }
    for brought in &scene.seen.imports {
        acknowledged_is_there(scene, brought, findings);
    }
    everybody_is_of_the_org(scene, findings);
}

fn acknowledged_is_there(scene: &Scene<'_>, brought: &Brought, findings: &mut Findings) {
    let org = scene.org_of(brought.by);
    for answer in &brought.answers {
        let Err(WayInError::AlreadyImported { session }) = answer else { continue };
        let own = scene.store.sessions.get(session).map(|row| row.org) == org;
        findings.must(own, "nobody notices what another org has", || format!("{answer:?}"));
    }
    let made: Vec<SessionId> = brought.answers.iter().filter_map(|answer| answer.clone().ok()).collect();
    for session in &made {
        let row = scene.store.sessions.get(session);
        let kept = row.is_some_and(|row| {
            let named = row.import.as_ref().is_some_and(|import| import.id == brought.export.session);
            named && row.owner == brought.by && Some(row.org) == org
        });
        findings.must(kept, "an acknowledged import is there", || format!("{} {row:?}", short(session)));
        let how = || format!("{made:?} for {}", short(brought.export.session));
        findings.must(made[0] == *session, "the same key gets the same answer", how);
    }
}

/// Nobody of another org ever said something in a session.
fn everybody_is_of_the_org(scene: &Scene<'_>, findings: &mut Findings) {
    for (message, row) in &scene.store.receipts {
        let org = scene.store.sessions.get(&row.session).map(|row| row.org);
        let how = || format!("{} of {} in {}", short(message), short(row.by), short(row.session));
        findings.must(scene.org_of(row.by) == org, "who speaks in a session is of its org", how);
    }
}

/// Every turn of the file is there, as it was: its words, what there was to see, what came of it.
fn is_whole(scene: &Scene<'_>, session: SessionId, export: &Export) -> bool {
    let Some(told) = scene.told.get(&session) else { return false };
    let (past, since): (Vec<_>, Vec<_>) = told.turns.iter().partition(|turn| turn.is_past());
    past.len() == export.turns.len()
        && past.iter().zip(&export.turns).all(|(turn, there)| is_same(scene, session, turn, there))
        && since.iter().all(|turn| turn.turn.0 as usize > past.len())
        // It left the place that means nothing here.
        && told.scopes.len() >= 2
}

fn is_same(scene: &Scene<'_>, session: SessionId, turn: &TurnSummary, there: &PastTurn) -> bool {
    let outcome = match there.outcome {
        Outcome::Failed(Failure::Gone) => Outcome::Failed(Failure::Transient),
        other => other,
    };
    let said = [turn.message].into_iter().chain(turn.steered.iter().copied());
    let words = |message: MessageId| scene.views.get(&message).map(|(_, words)| words.clone());
    let here: Vec<_> = said.map(words).collect();
    let text = |MessagePart::Text { text }: &MessagePart| text.clone();
    let file: Vec<_> = there
        .said
        .iter()
        .map(|said| Some(said.parts.iter().map(text).collect::<Vec<_>>().join("\n")))
        .collect();
    let facts = scene.store.facts.get(&session).into_iter().flatten();
    let shown: Vec<&str> = facts
        .filter_map(|fact| match &fact.entry {
            StoredEntry::Story { turn: own, kind, .. } if *own == turn.turn && kind != "imported" => {
                Some(kind.as_str())
            }
            StoredEntry::Story { .. } | StoredEntry::Rule(_) => None,
        })
        .collect();
    let kinds: Vec<&str> = there.story.iter().map(|story| story.kind.as_str()).collect();
    turn.outcome == Some(outcome) && here == file && shown == kinds
}

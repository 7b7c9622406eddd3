//! The store in the end: projections, claims, bindings, outbox, audit, and the order of acceptance.

use super::{Findings, Scene};
use crate::notes::short;
use kernel::{Address, Fact, MessageId, Outcome};
use std::collections::BTreeMap;
use store::{Outgoing, OutgoingKind, StoredEntry, rebuild};

pub(super) fn check(scene: &Scene<'_>, findings: &mut Findings) {
    nothing_is_left(scene, findings);
    projections_are_the_logs(scene, findings);
    bindings_are_unique(scene, findings);
    acceptance_is_order(scene, findings);
    replies_are_posted_once(scene, findings);
    audit_has_one_entry_each(scene, findings);
}

fn nothing_is_left(scene: &Scene<'_>, findings: &mut Findings) {
    let store = &scene.store;
    findings.must(scene.is_quiet, "everything comes to rest", || {
        let inbox: BTreeMap<_, _> = store.inbox.iter().filter(|(_, rows)| !rows.is_empty()).collect();
        let outbox: Vec<_> = store.outbox.iter().filter(|row| row.blocks()).collect();
        format!("inbox {inbox:?}, wakes {:?}, claims {:?}, outbox {outbox:?}", store.wakes, store.claims)
    });
    if scene.is_quiet {
        let claims = &store.claims;
        findings.must(claims.is_empty(), "claims are free in the end", || format!("{claims:?}"));
        let awake = store.sessions.values().find(|row| row.awake || row.pending > 0);
        findings.must(awake.is_none(), "sessions are dormant in the end", || format!("{awake:?}"));
    }
}

fn projections_are_the_logs(scene: &Scene<'_>, findings: &mut Findings) {
    for (session, facts) in &scene.store.facts {
        let made = rebuild(facts);
        let row = &scene.store.sessions[session];
        let how = || format!("{} {:?} and {:?}", short(session), row.ended, made.ended);
        findings.must(row.ended == made.ended, "projections can be made again from the log", how);
        let told = &scene.told[session];
        findings.must(made.ended == told.ended, "lists say what the log says", || short(session));
        let same = (&row.last, row.questions) == (&made.last, made.questions());
        let how = || format!("{} {:?} {} and {:?}", short(session), row.last, row.questions, made.last);
        findings.must(same, "projections can be made again from the log", how);
        for (message, standing) in &made.receipts {
            let row = scene.store.receipts.get(message);
            let same = row.is_some_and(|row| {
                (row.session, row.state, row.why, row.revision)
                    == (*session, standing.state, standing.why, standing.revision)
                    && (row.turn, row.first, row.last) == (standing.turn, standing.first, standing.last)
            });
            let how = || format!("{row:?} and {standing:?}");
            findings.must(same, "projections can be made again from the log", how);
            let told = told.finals.get(message).copied();
            let agree = told.is_none_or(|told| told == standing.state);
            findings.must(agree, "receipts say what the log says", || format!("{told:?} and {standing:?}"));
        }
    }
}

fn bindings_are_unique(scene: &Scene<'_>, findings: &mut Findings) {
    let mut bound: BTreeMap<&Address, _> = BTreeMap::new();
    for (_, row) in &scene.store.bindings {
        let other = bound.insert(&row.address, row.session);
        findings.must(other.is_none(), "one open binding per conversation", || format!("{row:?}"));
        let open = scene.told.get(&row.session).is_some_and(|told| told.ended.is_none());
        findings.must(open, "an ended session is bound to nothing", || format!("{row:?}"));
    }
}

/// The keeper sees messages in the order in which the store took them.
fn acceptance_is_order(scene: &Scene<'_>, findings: &mut Findings) {
    for (session, told) in &scene.told {
        let accepted: Vec<MessageId> =
            scene.seen.accepted.iter().filter(|(s, _)| s == session).map(|(_, message)| *message).collect();
        let here = told.order.iter().filter(|message| !scene.is_past(**message)).copied();
        let here: Vec<MessageId> = here.collect();
        let fits = if scene.is_quiet { accepted == here } else { accepted.starts_with(&here) };
        let how = || format!("{} took {accepted:?} and queued {:?}", short(session), told.order);
        findings.must(fits, "order of acceptance is order of turns", how);
    }
}

/// One reply per final message, and one per question that somebody is asked, to the address that was fixed when it was accepted.
fn replies_are_posted_once(scene: &Scene<'_>, findings: &mut Findings) {
    let mut expected: Vec<(MessageId, OutgoingKind)> = Vec::new();
    for (session, facts) in &scene.store.facts {
        let told = &scene.told[session];
        expected.extend(told.finals.keys().map(|message| (*message, OutgoingKind::Final)));
        let mut running = None;
        for stored in facts {
            match &stored.entry {
                StoredEntry::Rule(Fact::TurnStarted { message, .. }) => running = Some(*message),
                StoredEntry::Rule(Fact::Asked { approval, .. }) if !scene.is_answered_at_once(*approval) => {
                    expected.extend(running.map(|message| (message, OutgoingKind::Question(*approval))));
                }
                StoredEntry::Rule(_) | StoredEntry::Story { .. } => {}
            }
        }
    }
    let reply = |message: &MessageId| scene.store.receipts.get(message).and_then(|row| row.reply.clone());
    expected.retain(|(message, _)| reply(message).is_some());
    let mut posted: Vec<_> = scene.store.outbox.iter().map(|out| (out.message, out.kind)).collect();
    expected.sort();
    posted.sort();
    let how = || format!("posted {posted:?}, expected {expected:?}");
    findings.must(posted == expected, "each reply is posted once", how);
    let astray = |out: &&Outgoing| reply(&out.message).as_ref() != Some(&out.to);
    let astray = scene.store.outbox.iter().find(astray);
    findings.must(astray.is_none(), "a reply goes where the message said", || format!("{astray:?}"));
}

fn audit_has_one_entry_each(scene: &Scene<'_>, findings: &mut Findings) {
    let done =
        |verb: &str| scene.store.audit.iter().filter(|row| row.refused.is_none() && row.verb == verb).count();
    let (said, messages) = (done("say"), scene.store.receipts.len() - scene.past.len());
    findings.must(said == messages, "one audit entry per command", || format!("{said} for {messages}"));
    let turns = scene.told.values().flat_map(|told| &told.turns).filter(|turn| !turn.is_past());
    let lost = turns.filter(|turn| turn.outcome == Some(Outcome::Interrupted)).count();
    let noted = done("interrupt");
    let how = || format!("{noted} for {lost} interrupted turns");
    findings.must(noted == lost, "what the engine does by itself is in the audit", how);
    let unsealed = scene.store.audit.iter().find(|row| row.sealed.is_none());
    let whole = unsealed.is_none() || !scene.is_quiet;
    findings.must(whole, "the audit is sealed in the end", || format!("{unsealed:?}"));
}

//! The stream of each watcher, against the log.

use super::{Findings, Scene};
use crate::notes::{Watched, short};
use std::collections::BTreeMap;
use store::{StoredEntry, StoredFact};

pub(super) fn check(scene: &Scene<'_>, findings: &mut Findings) {
    for watched in &scene.seen.watched {
        let log = scene.store.facts.get(&watched.session).map(Vec::as_slice).unwrap_or_default();
        each_fact_once(watched, log, scene.is_quiet, findings);
        live_words_come_again(watched, log, findings);
    }
}

fn each_fact_once(watched: &Watched, log: &[StoredFact], is_quiet: bool, findings: &mut Findings) {
    let session = short(watched.session);
    for (at, fact) in watched.facts.iter().enumerate() {
        let next = fact.number.0 == watched.from.0 + at as u64 + 1;
        let how = || format!("{session} fact {} in place {at} after {}", fact.number, watched.from);
        findings.must(next, "watchers are told each fact once, in order", how);
        let stored = log.get(fact.number.0 as usize - 1) == Some(fact);
        findings.must(stored, "watchers are told what is stored", || format!("{session} {fact:?}"));
    }
    let told = watched.facts.last().map_or(watched.from, |fact| fact.number).0;
    let missed = is_quiet && told < log.len() as u64;
    findings.must(!missed, "watchers are told everything", || format!("{session} {told} of {}", log.len()));
}

/// Words ahead of the log come again as a fact, with the same part and offset; unless they were lost with their turn.
fn live_words_come_again(watched: &Watched, log: &[StoredFact], findings: &mut Findings) {
    if watched.live.is_empty() {
        return;
    }
    let mut parts: BTreeMap<(u32, u32), String> = BTreeMap::new();
    for stored in log {
        if let StoredEntry::Story { turn, kind, body: Some(body) } = &stored.entry
            && kind == "text"
            && let Some((part, text)) = words_of(body)
        {
            parts.entry((turn.0, part)).or_default().push_str(&text);
        }
    }
    for (turn, part, offset, text) in &watched.live {
        let Some(written) = parts.get(&(*turn, *part)) else { continue };
        let Some(there) = written.as_bytes().get(*offset as usize..) else { continue };
        let same = there.iter().zip(text.as_bytes()).all(|(written, live)| written == live);
        let how = || format!("{} turn {turn} part {part} at {offset}: {text:?}", short(watched.session));
        findings.must(same, "live words are those of the log", how);
    }
}

/// The part and the text of a stored `text`. The scripted agent's words need no unescaping but of line ends.
fn words_of(body: &[u8]) -> Option<(u32, String)> {
    let body = std::str::from_utf8(body).ok()?;
    let (_, part) = body.split_once("\"part\":")?;
    let (part, _) = part.split_once(',')?;
    let (_, text) = body.split_once("\"text\":\"")?;
    let text = text.strip_suffix("\"}")?;
    Some((part.parse().ok()?, text.replace("\\\\n", "\u{0}").replace("\\n", "\n").replace('\u{0}', "\\n")))
}

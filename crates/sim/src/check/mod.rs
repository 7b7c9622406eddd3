//! The laws, checked when a story is over.
//!
//! Written from the laws, not from the code: `log` folds each session's facts by rules of its own, `ran` reads the
//! agents' own record, `scoped` where they ran and how the ground is, `ruled` what became of
//! their questions, `brought` what came from
//! elsewhere, `heard` what people were answered, `watched` what
//! watchers were told, `kept` what the store holds in the end, `delivered` what a service got.

mod brought;
mod delivered;
mod heard;
mod kept;
mod log;
mod ran;
mod ruled;
mod scoped;
mod watched;

use crate::doors::ChatPost;
use crate::notes::{BrokenLaw, Observed, SaidMessage, code_of};
use crate::story::{Figures, SeedVerdict};
use crate::town::Town;
use agent::{Did, Noted};
use engine::{Engine, ReceiptView};
use kernel::{Answerer, MessageId, PersonId, Principal, SessionId};
use log::LogSummary;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use store::{OutgoingState, Snapshot};

/// Everything the checks look at.
pub(crate) struct Scene<'a> {
    town: &'a Town,
    seen: &'a Observed,
    store: Snapshot,
    noted: Vec<Noted>,
    /// The content of each session's log.
    told: BTreeMap<SessionId, LogSummary>,
    /// Each message as its session's owner sees it.
    views: BTreeMap<MessageId, (ReceiptView, String)>,
    /// Messages that were said elsewhere, and came here with an import.
    past: BTreeSet<MessageId>,
    is_quiet: bool,
}

/// The laws that were found broken.
#[derive(Debug, Default)]
pub(crate) struct Findings(Vec<BrokenLaw>);

impl Findings {
    /// This must hold; if not, `how` says how that shows.
    fn must<W: fmt::Display>(&mut self, holds: bool, law: &'static str, how: impl FnOnce() -> W) {
        if !holds {
            self.0.push(BrokenLaw { law, how: how().to_string() });
        }
    }
}

pub(crate) async fn all(seed: u64, town: &Town, engine: &Engine, is_quiet: bool) -> SeedVerdict {
    let store = town.store().snapshot();
    let views = views(town, engine, &store).await;
    let chain = engine.people().verify_audit(&town.people[0]).await;
    let seen = std::mem::take(&mut *town.notes.seen());
    let mut findings = Findings(seen.broken.clone());
    let whole = chain.as_ref().is_ok_and(|verified| verified.broken.is_none());
    findings.must(whole, "the audit's chain is whole", || format!("{chain:?}"));
    let mut told = BTreeMap::new();
    for (session, facts) in &store.facts {
        told.insert(*session, log::read(*session, facts, &seen.requests, &town.policy, &mut findings));
    }
    let past = told.values().flat_map(|told: &LogSummary| &told.turns).filter(|turn| turn.is_past());
    let past = past.flat_map(|turn| turn.steered.iter().copied().chain([turn.message])).collect();
    let scene = Scene { past, town, seen: &seen, store, noted: town.house.noted(), told, views, is_quiet };
    brought::check(&scene, &mut findings);
    kept::check(&scene, &mut findings);
    delivered::check(&scene, &mut findings);
    ran::check(&scene, &mut findings);
    scoped::check(&scene, &mut findings);
    ruled::check(&scene, &mut findings);
    heard::check(&scene, &mut findings);
    watched::check(&scene, &mut findings);
    let (hash, figures) = (scene.hash(), scene.figures());
    SeedVerdict { seed, broken: findings.0, hash, figures, story: seen.story }
}

/// Asks the last daemon, as anybody could, for every receipt and every message.
async fn views(town: &Town, engine: &Engine, store: &Snapshot) -> BTreeMap<MessageId, (ReceiptView, String)> {
    let mut views = BTreeMap::new();
    for (message, row) in &store.receipts {
        let Some(owner) = store.sessions.get(&row.session).and_then(|row| town.principal(row.owner)) else {
            continue;
        };
        match (engine.views().receipt(owner, *message).await, engine.views().words(owner, *message).await) {
            (Ok(view), Ok(words)) => drop(views.insert(*message, (view, words))),
            (view, _) => town.notes.broken("receipts can be read", format!("{message}: {view:?}")),
        }
    }
    views
}

impl Town {
    fn principal(&self, person: PersonId) -> Option<&Principal> {
        self.people.iter().chain(&self.neighbours).find(|principal| principal.person == person)
    }
}

impl Scene<'_> {
    /// The words with this code and the session in which they are, as the store has it.
    fn message_of(&self, code: usize) -> Option<(MessageId, SessionId)> {
        let mut views = self.views.iter();
        let found =
            views.find(|(message, (_, words))| code_of(words) == Some(code) && !self.is_past(**message));
        found.map(|(message, (view, _))| (*message, view.row.session))
    }

    /// True if it was said elsewhere, and came here with an import.
    fn is_past(&self, message: MessageId) -> bool {
        self.past.contains(&message)
    }

    /// The words of somebody that became this message.
    fn said(&self, message: MessageId) -> Option<&SaidMessage> {
        if self.is_past(message) {
            return None;
        }
        let (_, words) = self.views.get(&message)?;
        self.seen.said.get(code_of(words)?)
    }

    fn sum(&self, of: impl Fn(&LogSummary) -> u64) -> u64 {
        self.told.values().map(of).sum()
    }

    fn answered(&self, by: impl Fn(Answerer) -> bool) -> u64 {
        let answers = self.seen.rulebook.questions.iter().filter_map(|question| question.at_once.as_ref());
        answers.filter(|(_, answerer)| by(*answerer)).count() as u64
    }

    fn figures(&self) -> Figures {
        Figures {
            messages: self.store.receipts.len() as u64,
            sessions: self.store.sessions.len() as u64,
            facts: self.store.facts.values().map(|facts| facts.len() as u64).sum(),
            attempts: self.noted.iter().filter(|noted| noted.did == Did::Up).count() as u64,
            starts: self.town.starts(),
            takeovers: u64::from(self.seen.takeovers),
            moves: self.sum(|told| told.scopes.len().saturating_sub(1) as u64),
            errands: self.sum(|told| told.errands),
            forks: self.sum(|told| u64::from(told.origin.is_some())),
            steered: self.sum(|told| told.turns.iter().map(|turn| turn.steered.len() as u64).sum()),
            held: self.sum(|told| told.held_for_scope as u64),
            stale: self.sum(|told| told.stale_errands.len() as u64),
            questions: self.seen.rulebook.questions.len() as u64,
            ruled: self.answered(|by| matches!(by, Answerer::Rule(_))),
            imports: self.store.sessions.values().filter(|row| row.import.is_some()).count() as u64,
            unattended: self.answered(|by| by == Answerer::Policy),
            delivered: self.posts().len() as u64,
            unsure: self.store.outbox.iter().filter(|row| row.state == OutgoingState::Unknown).count() as u64,
        }
    }

    fn posts(&self) -> Vec<ChatPost> {
        self.town.chat.as_ref().map(|chat| chat.posts()).unwrap_or_default()
    }

    /// FNV-1a over everything that happened.
    fn hash(&self) -> u64 {
        use fmt::Write;
        let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
        let said: Vec<_> = self.seen.said.iter().map(|said| &said.answers).collect();
        let written = write!(hash, "{:?} {:?} {said:?}", self.store.facts, self.noted);
        let written = written.and_then(|()| write!(hash, "{:?}", self.seen.receipts));
        written.and_then(|()| write!(hash, "{:?}", self.posts())).expect("hashing cannot fail");
        hash.0
    }
}

struct Fnv(u64);

impl fmt::Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}

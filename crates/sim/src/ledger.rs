//! Judges each append in the moment in which it is written: what the log alone cannot show later.
//!
//! That the log has no gap and no older keeper writes to it, that an attempt which is over has no process left, that no
//! attempt starts for somebody who was shut out before, and that no more sessions of one person, or of all of them, are
//! awake than may be. Written from the laws; it knows nothing of the store's rows.

use crate::notes::{Notes, short};
use crate::town::org_of;
use agent::{Did, House, Noted};
use engine::{Clock, Limits};
use kernel::{Fact, Fence, Grant, Grantee, MessageId, Number, OrgId, PersonId, SessionId, Term};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use store::{Append, Entry, PeopleChange, Resource};

#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) notes: Arc<Notes>,
    house: Arc<House>,
    awake_max: usize,
    org_awake_max: usize,
    pages: Mutex<BTreeMap<SessionId, SessionPage>>,
}

/// The knowledge of the ledger about one session.
#[derive(Debug, Default)]
struct SessionPage {
    term: Term,
    at: Number,
    senders: BTreeMap<MessageId, PersonId>,
    awake: Option<PersonId>,
    fence: Option<Fence>,
    /// Those from whom something was taken back and who were given nothing since.
    shut_out: BTreeSet<PersonId>,
}

impl Ledger {
    pub(crate) fn new(notes: Arc<Notes>, house: Arc<House>, limits: &Limits) -> Self {
        let (awake_max, org_awake_max) = (limits.awake_max as usize, limits.org_awake_max as usize);
        Self { notes, house, awake_max, org_awake_max, pages: Mutex::default() }
    }

    /// This is so from now on.
    pub(crate) fn changed(&self, change: &PeopleChange) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        match change {
            PeopleChange::TakeBack { on: Resource::Session(session), to: Grantee::Person(person) } => {
                self.notes.tell(|| format!("{person} may do nothing any more in {session}"));
                pages.entry(*session).or_default().shut_out.insert(*person);
            }
            PeopleChange::Give { on: Resource::Session(session), to: Grantee::Person(person), grant } => {
                self.notes.tell(|| format!("{person} may {grant:?} in {session}"));
                let shut_out = &mut pages.entry(*session).or_default().shut_out;
                if *grant >= Grant::Prompt {
                    shut_out.remove(person)
                } else {
                    shut_out.insert(*person)
                };
            }
            _ => {}
        }
    }

    /// A session is there, with so many facts of its past.
    pub(crate) fn brought(&self, session: SessionId, facts: usize) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.entry(session).or_default().at = Number(facts as u64);
    }

    /// These facts are in the log now.
    pub(crate) fn written(&self, append: &Append, at: Number) {
        let session = append.session;
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let page = pages.entry(session).or_default();
        if append.term < page.term {
            self.notes.broken("no older keeper writes", format!("{} after {}", append.term, page.term));
        }
        if append.after != page.at || at.0 != page.at.0 + append.facts.len() as u64 {
            self.notes.broken("facts are numbered without a gap", format!("{session} at {at}"));
        }
        (page.term, page.at) = (append.term, at);
        for new in &append.facts {
            self.tell(append, &new.entry);
            if let Entry::Rule(fact) = &new.entry {
                self.note(session, page, fact);
            }
        }
        let (now, elapsed_ms) = (self.notes.clock.now(), self.notes.clock.elapsed_ms());
        self.notes.seen().rulebook.write(append, now, elapsed_ms);
        let mut awake: BTreeMap<PersonId, usize> = BTreeMap::new();
        pages
            .values()
            .filter_map(|page| page.awake)
            .for_each(|person| *awake.entry(person).or_default() += 1);
        for (person, count) in awake.iter().filter(|(_, count)| **count > self.awake_max) {
            let how = format!("{count} sessions of {person} are awake, {} may be", self.awake_max);
            self.notes.broken("claims keep their limit", how);
        }
        let mut in_org: BTreeMap<OrgId, usize> = BTreeMap::new();
        awake.iter().for_each(|(person, count)| *in_org.entry(org_of(*person)).or_default() += count);
        for all in in_org.into_values().filter(|all| *all > self.org_awake_max) {
            let how = format!("{all} sessions of the org are awake, {} may be", self.org_awake_max);
            self.notes.broken("claims keep their limit", how);
        }
    }

    fn note(&self, session: SessionId, page: &mut SessionPage, fact: &Fact) {
        match fact {
            Fact::Queued { message, by, .. } => drop(page.senders.insert(*message, *by)),
            Fact::TurnStarted { message, .. } => page.awake = page.senders.get(message).copied(),
            Fact::AttemptStarted { fence, .. } => {
                page.fence = Some(*fence);
                if let Some(person) = page.awake.filter(|person| page.shut_out.contains(person)) {
                    let how = format!("{session} {fence} for {person}");
                    self.notes.broken("nothing starts for somebody who was shut out", how);
                }
            }
            Fact::AttemptFailed { .. } => self.is_gone(session, page.fence.take(), fact),
            Fact::TurnEnded { .. } => {
                page.awake = None;
                self.is_gone(session, page.fence.take(), fact);
            }
            _ => {}
        }
    }

    fn is_gone(&self, session: SessionId, fence: Option<Fence>, fact: &Fact) {
        let Some(fence) = fence else { return };
        if self.house.runs(session, fence) && !self.is_late(session, fence) {
            let how = format!("{session} {fence} still runs at {fact:?}");
            self.notes.broken("what is over has no process left", how);
        }
    }

    /// A replaced daemon may be late with a start that was given up meanwhile. It never gets the words.
    fn is_late(&self, session: SessionId, fence: Fence) -> bool {
        let has_words =
            |noted: &Noted| noted.did == Did::Handed && (noted.session, noted.fence) == (session, fence);
        self.notes.seen().takeovers > 0 && !self.house.noted().iter().any(has_words)
    }

    fn tell(&self, append: &Append, entry: &Entry) {
        self.notes.tell(|| {
            let said = match entry {
                Entry::Rule(fact) => format!("{fact:?}"),
                Entry::Story { kind, body, .. } => format!("{kind} {}", String::from_utf8_lossy(body)),
            };
            format!("      {} term {:x}: {}", short(append.session), append.term.0, shorten(&said))
        });
    }
}

/// Ids without the zeros in front, wherever they stand.
fn shorten(said: &str) -> String {
    let mut words = String::new();
    for (at, piece) in said.split("_0").enumerate() {
        match at {
            0 => words.push_str(piece),
            _ => {
                words.push('_');
                words.push_str(piece.trim_start_matches('0'));
            }
        }
    }
    words
}

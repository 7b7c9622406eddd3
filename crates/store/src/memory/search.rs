//! Search in the memory store: a plain list of passages, each with its keywords.

use super::contents::Contents;
use crate::*;
use kernel::{Number, SessionId, Turn};
use std::collections::BTreeSet;

/// A passage that can be found.
pub(super) struct KeptPassage {
    session: SessionId,
    turn: Turn,
    passage: Passage,
    keywords: BTreeSet<String>,
}

impl Contents {
    /// Makes turns that are over findable, and says whether there are more.
    pub(super) fn index_passages(&mut self, turns_max: usize) -> bool {
        for _ in 0..turns_max {
            let Some((session, turn, over)) = self.turns_over.pop_front() else { break };
            for passage in self.passages_of(session, turn, over) {
                let keywords = keywords(&passage.words).into_iter().map(|keyword| keyword.text).collect();
                self.passages.push(KeptPassage { session, turn, passage, keywords });
            }
        }
        !self.turns_over.is_empty()
    }

    fn passages_of(&self, session: SessionId, turn: Turn, over: Number) -> Vec<Passage> {
        let Some(kept) = self.sessions.get(&session) else { return Vec::new() };
        let mut passages = Vec::new();
        for message in &kept.messages {
            let Some(standing) = kept.projection.receipts.get(message) else { continue };
            let said = self.messages.get(message).filter(|_| standing.turn == Some(turn));
            passages.extend(said.and_then(|said| {
                Passage::said(standing.first.unwrap_or(over), said.accepted.at, &said.words)
            }));
        }
        let mut telling = Telling::default();
        for stored in kept.facts.iter().take(over.0 as usize) {
            if let StoredEntry::Story { turn: of, kind, body: Some(body) } = &stored.entry
                && *of == turn
                && kind == "text"
            {
                telling.hear(stored.number, stored.at, body);
            }
        }
        passages.extend(telling.passages());
        passages
    }

    pub(super) fn search(&self, query: &PassagesQuery) -> Vec<FoundPassage> {
        let places = self.passages.iter().enumerate().rev().map(|(at, kept)| (at as u64 + 1, kept));
        let earlier = places.filter(|(place, _)| query.before.is_none_or(|before| *place < before));
        let fits = earlier.filter(|(_, kept)| {
            let is_seen = || self.sessions.get(&kept.session).is_some_and(|kept| query.by.sees(&kept.record));
            query.session.is_none_or(|session| session == kept.session)
                && query.wanted.is_in(&kept.keywords)
                && is_seen()
        });
        let found = |(place, kept): (u64, &KeptPassage)| FoundPassage {
            place,
            session: kept.session,
            turn: kept.turn,
            passage: kept.passage.clone(),
        };
        fits.take(query.limit).map(found).collect()
    }
}

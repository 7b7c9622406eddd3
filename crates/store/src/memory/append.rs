//! The keeper's side of the memory store: what happened, what is due, what is on its way out.

use super::contents::{Contents, Edit, Kept, Titled};
use crate::*;
use kernel::{Act, Claim, Fact, MessageId, Moment, Number, SessionId, Turn};
use std::collections::BTreeSet;

impl Contents {
    pub(super) fn append(&mut self, append: Append) -> Result<Appending, StoreError> {
        let Some(kept) = self.sessions.get(&append.session) else {
            return Err(StoreError::Damaged(format!("there is no session {}", append.session)));
        };
        if let Some(refused) = self.refuses(kept, &append) {
            self.gauges.fenced += u64::from(matches!(refused, Appending::Fenced));
            self.gauges.moved += u64::from(matches!(refused, Appending::Moved { .. }));
            return Ok(refused);
        }
        Ok(Appending::Done(self.write(append)?))
    }

    fn refuses(&self, kept: &Kept, append: &Append) -> Option<Appending> {
        if append.term < kept.term {
            return Some(Appending::Fenced);
        }
        if append.after != kept.at() {
            return Some(Appending::Moved { actual: kept.at() });
        }
        let ends = append.facts.iter().any(|new| matches!(new.entry, Entry::Rule(Fact::Ended { .. })));
        let seen = |number| append.drained.contains(number) || append.staying.contains(number);
        let undrained = || !kept.inbox.keys().all(seen);
        if ends && undrained() {
            return Some(Appending::Undrained);
        }
        if let Some((message, sender)) = append.starts
            && !self.does(kept, sender, Act::Say)
        {
            return Some(Appending::Revoked(message));
        }
        let full = append.claims.iter().find(|(claim, max)| self.is_full(claim, *max, append.session));
        let full = full.map(|(claim, _)| Appending::Claimed(claim.clone()));
        let used = || self.disk_use(kept.record.org, kept.record.owner).words_bytes;
        full.or_else(|| append.over_words(used()))
    }

    /// A claim that the session holds stays its own, even if fewer may hold it than did before.
    fn is_full(&self, claim: &Claim, max: u32, session: SessionId) -> bool {
        let Some(holders) = self.claims.get(claim) else { return max == 0 };
        !holders.contains(&session) && holders.len() >= max as usize
    }

    fn write(&mut self, append: Append) -> Result<Number, StoreError> {
        let session = append.session;
        self.own_acts(&append);
        self.add_rules(&append)?;
        if let Some(token) = append.token {
            change::add_token(self, token)?;
        }
        let place = (!append.facts.is_empty()).then(|| self.next_place());
        let Some(kept) = self.sessions.get_mut(&session) else { return Ok(append.after) };
        kept.term = append.term;
        kept.place = place.unwrap_or(kept.place);
        kept.wake_at = append.wake_at;
        kept.awake = append.awake;
        append.drained.iter().for_each(|number| drop(kept.inbox.remove(number)));
        let (org, posted_at) = (kept.record.org, append.facts.last().map_or(Moment(0), |fact| fact.at));
        let over = turns_over(session, kept.at(), &append.facts);
        append.facts.into_iter().for_each(|new| kept.write(new));
        self.turns_over.extend(over);
        let Some(kept) = self.sessions.get_mut(&session) else { return Ok(append.after) };
        let (at, open) = (kept.at(), kept.is_open());
        let claims = append.claims.into_iter().map(|(claim, _)| claim);
        // Whoever is over holds nothing, whatever it says.
        self.hold(session, if open { claims.collect() } else { BTreeSet::new() });
        if !open {
            self.unbind(session);
            self.people.rules.retain(|(_, rule)| rule.session != Some(session));
        }
        for (request, verdict) in append.verdicts {
            self.judge(request, verdict);
        }
        for reply in append.replies {
            self.post(org, session, reply, posted_at);
        }
        self.committed();
        Ok(at)
    }

    fn add_rules(&mut self, append: &Append) -> Result<(), StoreError> {
        let Some(org) = self.sessions.get(&append.session).map(|kept| kept.record.org) else { return Ok(()) };
        for rule in &append.rules {
            for write in kernel::people::rule_writes(org, rule.clone(), rule.since) {
                self.write_people(write)?;
            }
        }
        Ok(())
    }

    fn hold(&mut self, session: SessionId, claims: BTreeSet<Claim>) {
        for holders in self.claims.values_mut() {
            holders.remove(&session);
        }
        for claim in claims {
            self.claims.entry(claim).or_default().insert(session);
        }
        self.claims.retain(|_, holders| !holders.is_empty());
    }

    fn unbind(&mut self, session: SessionId) {
        let mine = self.bound.iter().filter(|(_, binding)| binding.session == session);
        let mine: Vec<_> = mine.map(|(place, _)| place.clone()).collect();
        for place in mine {
            self.bound.remove(&place);
            self.bound_before.entry(place).or_default().push(session);
        }
    }

    fn judge(&mut self, request: kernel::RequestId, verdict: Verdict) {
        let is_done = verdict == Verdict::Done;
        self.verdicts.insert(request, verdict);
        let Some(Edit { message, mut words, attachments, opening }) = self.edits.remove(&request) else {
            return;
        };
        let Some(said) = self.messages.get_mut(&message) else { return };
        let replaces = attachments.is_some();
        let mut less = attachments.unwrap_or_default();
        if is_done {
            std::mem::swap(&mut said.words, &mut words);
        }
        if is_done && replaces {
            std::mem::swap(&mut said.attachments, &mut less);
        }
        // The old words go, or the new ones that were refused.
        let session = said.accepted.session;
        if let Some(kept) = self.sessions.get_mut(&session).filter(|_| is_done)
            && kept.title.as_ref().is_some_and(|titled| titled.of == Some(message))
        {
            kept.title = opening.map(|title| Titled { title, by: TitleBy::Words, of: Some(message) });
        }
        self.count_words(session, 0, words_bytes(&words) + attached_bytes(&less));
    }

    pub(super) fn load(&self, session: SessionId) -> Option<Loaded> {
        let kept = self.sessions.get(&session)?;
        let (from, mut facts) = kept.checkpoint.clone().unwrap_or_default();
        let later = kept.facts.iter().skip(from.0 as usize).filter_map(|stored| match &stored.entry {
            StoredEntry::Rule(fact) => Some(fact.clone()),
            StoredEntry::Story { .. } => None,
        });
        let before = facts.len();
        facts.extend(later);
        Some(Loaded {
            org: kept.record.org,
            owner: kept.record.owner,
            scope: kept.scope.clone(),
            origin: kept.origin,
            enter: kept.enter.clone(),
            at: kept.at(),
            term: kept.term,
            since_checkpoint: facts.len() - before,
            facts,
        })
    }

    pub(super) fn inbox(&self, session: SessionId, limit: usize) -> Vec<InboxRow> {
        let kept = self.sessions.get(&session);
        kept.into_iter().flat_map(|kept| kept.inbox.values()).take(limit).cloned().collect()
    }

    pub(super) fn checkpoint(&mut self, session: SessionId, at: Number, facts: Vec<Fact>) {
        let Some(kept) = self.sessions.get_mut(&session) else { return };
        let newer = kept.checkpoint.as_ref().is_none_or(|(known, _)| *known < at);
        // A checkpoint of what is not in the log would be believed instead of the log.
        if newer && at <= kept.at() {
            kept.checkpoint = Some((at, facts));
            self.committed();
        }
    }

    /// The wakes, the earliest first.
    pub(super) fn wakes(&self) -> impl Iterator<Item = (Moment, SessionId)> {
        let each = self.sessions.iter().filter_map(|(session, kept)| Some((kept.wake_at?, *session)));
        each.collect::<BTreeSet<_>>().into_iter()
    }

    pub(super) fn wake(&mut self, now: Moment, limit: usize) -> Vec<SessionId> {
        let due = self.wakes().take_while(|(at, _)| *at <= now).take(limit);
        let due: Vec<_> = due.map(|(_, session)| session).collect();
        for session in &due {
            if let Some(kept) = self.sessions.get_mut(session) {
                kept.wake_at = None; // The inbox has it now; the keeper's next append says when again.
            }
            self.put_into_inbox(*session, now, InboxItem::Wake);
        }
        if !due.is_empty() {
            self.committed();
        }
        due
    }

    pub(super) fn unfinished(&self, after: Option<SessionId>, limit: usize) -> Vec<SessionId> {
        let busy = |kept: &Kept| kept.awake || !kept.inbox.is_empty();
        let later = self.sessions.iter().filter(|(session, _)| after.is_none_or(|after| **session > after));
        later.filter(|(_, kept)| busy(kept)).map(|(session, _)| *session).take(limit).collect()
    }

    /// Messages of the session that are held.
    pub(super) fn held(&self, kept: &Kept) -> u32 {
        let is_held = |message: &&MessageId| {
            kept.projection.receipts.get(message).is_some_and(|standing| standing.state == ReceiptState::Held)
        };
        kept.messages.iter().filter(is_held).count() as u32
    }

    /// Messages of the session that are not final.
    pub(super) fn pending(&self, session: SessionId) -> u32 {
        let Some(kept) = self.sessions.get(&session) else { return 0 };
        let unfinished = |message: &&MessageId| {
            !kept.projection.receipts.get(message).is_some_and(|standing| standing.state.is_final())
        };
        kept.messages.iter().filter(unfinished).count() as u32
    }
}

impl Kept {
    pub(super) fn write(&mut self, new: NewFact) {
        let NewFact { at, cause, entry } = new;
        let number = self.at().next();
        let entry = match entry {
            Entry::Rule(fact) => {
                self.projection.fold(number, at, &fact);
                self.touched_at = self.touched_at.max(self.projection.turn_over_at.unwrap_or_default());
                self.follow(&fact);
                StoredEntry::Rule(fact)
            }
            Entry::Story { turn, kind, body } => {
                self.words_bytes += words_bytes(&body);
                self.projection.hear(at, turn, &kind, &body);
                self.hear_title(&kind, &body);
                StoredEntry::Story { turn, kind, body: Some(body) }
            }
        };
        self.facts.push(StoredFact { number, at, cause, entry });
    }

    /// An agent's title takes the place of any but a person's.
    fn hear_title(&mut self, kind: &str, body: &[u8]) {
        let is_given = self.title.as_ref().is_some_and(|titled| titled.by == TitleBy::Person);
        if let Some(title) = record::title_told(kind, body).filter(|_| !is_given) {
            self.title = Some(Titled { title, by: TitleBy::Agent, of: None });
        }
    }

    /// The list shows where it acts now; and who may use another agent is another question.
    fn follow(&mut self, fact: &Fact) {
        let Fact::ScopeChanged { scope, .. } = fact else { return };
        if scope.agent != self.record.agent {
            self.record.agent.clone_from(&scope.agent);
            self.record.revision += 1;
        }
        self.scope = scope.clone();
    }
}

/// The turns that are over with these facts, which come after this number.
pub(super) fn turns_over(
    session: SessionId,
    after: Number,
    facts: &[NewFact],
) -> Vec<(SessionId, Turn, Number)> {
    let numbered = (after.0 + 1..).map(Number).zip(facts);
    let over = numbered.filter_map(|(number, new)| match &new.entry {
        Entry::Rule(Fact::TurnEnded { turn, .. }) => Some((session, *turn, number)),
        Entry::Rule(_) | Entry::Story { .. } => None,
    });
    over.collect()
}

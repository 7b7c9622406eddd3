//! The planted bugs that are lies of the store.

use super::{Weather, lock};
use crate::bug::Bug;
use crate::doors::SCHEMES;
use kernel::*;
use std::sync::Arc;
use store::*;

/// So much later somebody looks who has forgotten a deadline.
const FORGOTTEN_MS: u64 = 600_000;

/// The call to pass on, or the lie that is answered in its place.
type PassedOrLie<T, A> = Result<Result<T, A>, StoreError>;

impl Weather {
    pub(super) async fn lie_about_message(
        &self,
        by: Arc<Principal>,
        mut new: NewMessage,
    ) -> PassedOrLie<(Arc<Principal>, NewMessage), store::WriteOutcome<Accepted, Rejection>> {
        self.lie_about_schemes(&mut new.schemes);
        if self.sky.lies(Bug::NoDedupe, 1_000) {
            new.key = None;
        } else if self.sky.lies(Bug::KeyAfterLimits, 1_000) {
            if let Some(why) = self.limits_first(&by, &new).await? {
                return Ok(Err(store::WriteOutcome::Refused(why)));
            }
        } else if self.sky.lies(Bug::AckBeforeDurable, 100) {
            if let Some(accepted) = self.unkept(&by, &new).await? {
                return Ok(Err(store::WriteOutcome::Done(accepted)));
            }
        } else if self.sky.lies(Bug::EpochIgnored, 1_000) {
            new.under = None;
        } else if self.sky.lies(Bug::ImportsMixed, 1_000) {
            if let Some((owner, session)) = self.origin_of(&by, &new).await? {
                new.to = To::Session(session);
                return Ok(Ok((Arc::new(owner), new)));
            }
        } else if self.sky.lies(Bug::Misrouted, 300)
            && let Some(session) = self.other_session(&by, &new).await?
        {
            new.to = To::Session(session);
        }
        Ok(Ok((by, new)))
    }

    /// Whatever comes in, it came by all doors.
    pub(super) fn lie_about_schemes(&self, schemes: &mut &'static [Scheme]) {
        if self.sky.lies(Bug::ForeignSchemeBound, 1_000) {
            *schemes = SCHEMES;
        }
    }

    pub(super) async fn take_replies(&self, take: TakeOutgoing) -> Result<TakenOutgoing, StoreError> {
        let mut taken = self.inner.outbox_take(take.clone()).await?;
        match self.sky.bug {
            // Nobody asks whether it has arrived.
            Some(Bug::SentAgain) => taken.send.append(&mut taken.read_back),
            Some(Bug::OutboxSwapped) => self.let_overtake(&mut taken, take).await?,
            _ => {}
        }
        Ok(taken)
    }

    /// The first that was taken lets the next one to its address go before it, if there is one.
    async fn let_overtake(&self, taken: &mut TakenOutgoing, take: TakeOutgoing) -> Result<(), StoreError> {
        let Some(first) = taken.send.first().cloned() else { return Ok(()) };
        let outbox = self.inner.snapshot().outbox;
        let waits = |row: &&Outgoing| row.state == OutgoingState::Waiting && row.to == first.to;
        if outbox.iter().find(waits).is_none_or(|next| next.due.is_some_and(|due| due > take.now)) {
            return Ok(());
        }
        let left = Became::Unknown { reason: "overtaken".to_owned(), read_back: None };
        self.inner.outbox_settle(first.outgoing, first.tries, left, take.now).await?;
        let under_way = take.under_way.iter().copied().chain(taken.send.iter().map(|row| row.outgoing));
        let now = take.now;
        let more = self.inner.outbox_take(TakeOutgoing { under_way: under_way.collect(), ..take }).await?;
        let again = Became::Again { due: now, reason: None };
        self.inner.outbox_settle(first.outgoing, first.tries, again, now).await?;
        taken.send.remove(0);
        taken.send.extend(more.send);
        taken.read_back.extend(more.read_back);
        Ok(())
    }

    /// The word of the limits on a message before anybody has looked whether it is there already.
    async fn limits_first(&self, by: &Principal, new: &NewMessage) -> Result<Option<Rejection>, StoreError> {
        let Found::Open(session) =
            self.inner.find(Seer::of(by), space_of(by, new), new.to.clone()).await?.found
        else {
            return Ok(None);
        };
        let row = self.inner.session(session).await?;
        let full = row.is_some_and(|(_, row)| row.pending >= new.pending_max);
        Ok(full.then_some(Rejection::QueueFull { limit: new.pending_max }))
    }

    /// An answer is remembered for good, whoever gave it: nobody asks whether they may make rules.
    pub(super) fn lie_about_request(&self, by: Arc<Principal>, new: &mut NewRequest) -> Arc<Principal> {
        let Request::Answer { approval, answer: Answer::Yes | Answer::No, .. } = &new.request else {
            return by;
        };
        if !self.sky.lies(Bug::RulesByAnybody, 1_000) {
            return by;
        }
        let (tool, agent, directory, session) = ("shell".to_owned(), None, None, None);
        let own = RuleId::from_bits(approval.bits());
        new.resolved.rule = Some(RememberedRule { rule: own, agent, tool, directory, session });
        Arc::new(Principal { role: Role::Owner, rights: Rights::ALL, bound: None, ..(*by).clone() })
    }

    /// Of an import only what was before its last turn is written.
    pub(super) fn lie_about_past(&self, new: &mut Create) {
        let starts = |fact: &NewFact| matches!(fact.entry, Entry::Rule(Fact::TurnStarted { .. }));
        let Some(past) = new.past.as_mut().filter(|_| self.sky.lies(Bug::ImportCut, 1_000)) else { return };
        if let Some(cut) = past.facts.iter().rposition(starts) {
            past.facts.truncate(cut);
        }
    }

    /// Where an id is looked for in all orgs, whoever had it first has it.
    /// Nobody looks into an inbox while a worktree of its session is removed.
    pub(super) async fn inbox_or_later(
        &self,
        session: SessionId,
        limit: usize,
    ) -> Result<Vec<InboxRow>, StoreError> {
        while self.sky.lies(Bug::ChoreBeforeStop, 1_000) && self.sky.notes.seen().removing.contains(&session)
        {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }
        self.inner.inbox(session, limit).await
    }

    /// Nobody looks for what a lost ring was about.
    pub(super) async fn unfinished_or_none(
        &self,
        after: Option<SessionId>,
        limit: usize,
    ) -> Result<Vec<SessionId>, StoreError> {
        if self.sky.lies(Bug::RingLost, 1_000) {
            return Ok(Vec::new());
        }
        self.inner.unfinished(after, limit).await
    }

    pub(super) async fn named_or_others(&self, by: Seer, id: SessionId) -> Result<Vec<Named>, StoreError> {
        let org = by.org;
        let named = self.inner.named(by, id).await?;
        let first = self.inner.session(id).await?.filter(|_| self.sky.lies(Bug::NamesShared, 500));
        let Some((record, _)) = first else { return Ok(named) };
        let grants = vec![(Grantee::Org, Grant::Manage)];
        Ok(vec![Named { record: Record { org, grants, ..record }, imported_by: None }])
    }

    /// The words of an import are said in the session that it was made from, by whoever owns that.
    async fn origin_of(
        &self,
        by: &Principal,
        new: &NewMessage,
    ) -> Result<Option<(Principal, SessionId)>, StoreError> {
        let To::Session(session) = new.to else { return Ok(None) };
        let row = self.inner.session(session).await?.and_then(|(_, row)| row.import);
        let Some(import) = row else { return Ok(None) };
        let Some((record, row)) = self.inner.session(import.id).await? else { return Ok(None) };
        // Whoever that is by now is for the store to read.
        let (credential, standing) = (None, u64::MAX);
        let owner = Principal { org: record.org, person: record.owner, credential, standing, ..by.clone() };
        Ok(row.ended.is_none().then_some((owner, import.id)))
    }

    async fn other_session(&self, by: &Principal, new: &NewMessage) -> Result<Option<SessionId>, StoreError> {
        let own = match self.inner.find(Seer::of(by), space_of(by, new), new.to.clone()).await?.found {
            Found::Open(session) => Some(session),
            Found::Ended(..) | Found::Nothing => None,
        };
        let (seer, filter) = (Seer::of(by), store::SessionFilter::default());
        let query = SessionsQuery { by: seer, which: Which::Open, filter, after: None, limit: 10 };
        let rows = self.inner.sessions(query).await?;
        let other = rows.into_iter().find(|row| Some(row.session) != own && row.owner == by.person);
        Ok(other.map(|row| row.session))
    }

    /// The receipt of a message that nobody keeps; none if it would not have been taken now.
    async fn unkept(&self, by: &Principal, new: &NewMessage) -> Result<Option<Accepted>, StoreError> {
        let session =
            match (self.inner.find(Seer::of(by), space_of(by, new), new.to.clone()).await?.found, &new.fresh)
            {
                (Found::Open(session), _) => Some((session, false)),
                (_, Some(fresh)) => Some((fresh.session, true)),
                (_, None) => None,
            };
        let (message, if_new_ignored, previous, at) = (new.message, false, None, new.trail.at);
        Ok(session.map(|(session, created)| Accepted {
            message,
            session,
            created,
            previous,
            if_new_ignored,
            at,
        }))
    }

    pub(super) async fn lie_about_facts(&self, mut append: Append) -> PassedOrLie<Append, Appending> {
        let at = Number(append.after.0 + append.facts.len() as u64);
        match self.sky.bug {
            Some(Bug::NoFence) => {
                if let Some(loaded) = self.inner.load(append.session).await? {
                    append.term = append.term.max(loaded.term);
                    append.after = loaded.at;
                }
            }
            Some(Bug::InboxKept) if self.sky.lies(Bug::InboxKept, 200) => append.drained.clear(),
            Some(Bug::EvolveBeforeDurable) if self.sky.lies(Bug::EvolveBeforeDurable, 60) => {
                return Ok(Err(Appending::Done(at)));
            }
            Some(Bug::HandedUnwritten) => append.facts.iter_mut().for_each(unwrite_handed),
            Some(Bug::HoldsUnwritten) => append.facts.iter_mut().for_each(unwrite_hold),
            Some(Bug::StaleErrandApplied) => append.facts.iter_mut().for_each(apply_stale),
            Some(Bug::DirectoriesIgnored) => append.claims.retain(|(claim, _)| !claim.0.starts_with("dir:")),
            Some(Bug::ClaimsIgnored) => append.claims.iter_mut().for_each(|(_, max)| *max = u32::MAX),
            Some(Bug::WakesLost) => append.wake_at = None,
            Some(Bug::RulesWidened) => append.rules.iter_mut().for_each(|rule| rule.session = None),
            Some(Bug::AnsweredAgain) => self.answer_again(&mut append),
            Some(Bug::QuestionsUnbounded) if self.has_question(&append) => {
                append.wake_at = append.wake_at.map(|at| at.after_ms(FORGOTTEN_MS));
            }
            Some(Bug::RepliesTwice) => append.replies.extend(append.replies.clone()),
            _ => {}
        }
        Ok(Ok(append))
    }

    /// A story of the same turn makes room for the answer to a question that has one.
    fn answer_again(&self, append: &mut Append) {
        let seen = self.sky.notes.seen();
        let mut asked = seen.rulebook.questions.iter().rev();
        let Some(question) = asked.find(|question| question.session == append.session) else { return };
        let Some((answer, by)) = question.at_once.clone().or_else(|| question.later.clone()) else { return };
        let is_room = |new: &&mut NewFact| matches!(new.entry, Entry::Story { turn, .. } if turn == question.fence.turn);
        let other = if answer == Answer::Yes { Answer::No } else { Answer::Yes };
        if let Some(new) = append.facts.iter_mut().find(is_room) {
            new.entry = Entry::Rule(Fact::Answered { approval: question.approval, answer: other, by });
        }
    }

    /// True if a question is open, or comes with this.
    fn has_question(&self, append: &Append) -> bool {
        let is_asked = |new: &NewFact| matches!(new.entry, Entry::Rule(Fact::Asked { .. }));
        let seen = self.sky.notes.seen();
        let mut asked = seen.rulebook.questions.iter().filter(|question| question.session == append.session);
        append.facts.iter().any(is_asked) || asked.any(|question| question.settled_ms.is_none())
    }

    pub(super) async fn rules_or_others(&self, org: OrgId) -> Result<Vec<RuleRow>, StoreError> {
        let mut rules = self.inner.rules(org).await?;
        match self.sky.bug {
            Some(Bug::RulesOutlived) => {
                let seen = self.sky.notes.seen();
                let gone = seen.rulebook.rules.iter().filter(|rule| rule.org == org && rule.until.is_some());
                rules.extend(gone.map(|standing| standing.row.clone()));
            }
            Some(Bug::DenialsUnread) => rules.retain(|rule| rule.effect != RuleEffect::Deny),
            _ => {}
        }
        Ok(rules)
    }

    pub(super) async fn page(
        &self,
        session: SessionId,
        after: Number,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<StoredFact>, StoreError> {
        let mut page = self.inner.facts(session, after, limit, bytes).await?;
        if page.len() > 2 && self.sky.lies(Bug::FactsSkipped, 300) {
            page.remove(page.len() / 2);
        }
        Ok(page)
    }

    pub(super) fn old_receipt(
        &self,
        now: Option<(Record, ReceiptRow)>,
    ) -> Result<Option<(Record, ReceiptRow)>, StoreError> {
        let Some(mut now) = now else { return Ok(None) };
        now.1.unattended &= self.sky.bug != Some(Bug::UnattendedForgotten);
        let first = lock(&self.old).entry(now.1.message).or_insert(now.clone()).clone();
        // Under a clear sky it has caught up, or no message would ever be final.
        let lies = !self.sky.is_clear() && self.sky.lies(Bug::OldReceipts, 300);
        Ok(Some(if lies { first } else { now }))
    }
}

/// The number stays taken, by a story that says nothing.
fn unwrite_handed(fact: &mut NewFact) {
    if let Entry::Rule(Fact::Handed { turn, .. }) = fact.entry {
        fact.entry = nothing(turn);
    }
}

fn unwrite_hold(fact: &mut NewFact) {
    if let Entry::Rule(Fact::Held { why: HoldWhy::OtherScope, .. }) = fact.entry {
        fact.entry = nothing(Turn(0));
    }
}

fn apply_stale(fact: &mut NewFact) {
    if let Entry::Rule(Fact::StaleErrand { errand, kind }) = fact.entry {
        fact.entry = Entry::Rule(Fact::Learned { kind, epoch: errand.epoch });
    }
}

fn nothing(turn: Turn) -> Entry {
    Entry::Story { turn, kind: "notice".to_owned(), body: bytes::Bytes::from_static(b"{}") }
}

/// Whose own address a message goes to.
fn space_of(by: &Principal, new: &NewMessage) -> Option<kernel::PersonId> {
    let (To::Conversation(address) | To::NewIn(address)) = &new.to else { return None };
    kernel::address_space(by, kernel::DoorAddress { address, schemes: new.schemes })
}

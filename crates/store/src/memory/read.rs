//! The readers' side of the memory store. Whoever may not see a session does not find it in any list.

use super::contents::{Contents, Kept, Place};
use crate::*;
use kernel::{Address, ApprovalId, Claim, MessageId, Number, OrgId, PersonId, Record, SessionId, Turn};
use std::cmp::Reverse;

impl Contents {
    pub(super) fn session(&self, session: SessionId) -> Option<(Record, SessionRow)> {
        let kept = self.sessions.get(&session)?;
        Some((kept.record.clone(), self.row(kept)))
    }

    pub(super) fn session_seen(&self, by: &Seer, session: SessionId) -> Option<(Record, SessionRow)> {
        let kept = self.sessions.get(&session).filter(|kept| by.sees(&kept.record))?;
        Some((kept.record.clone(), self.row_for(by, kept)))
    }

    pub(super) fn whereabouts(&self, by: &Seer, thing: Thing) -> Option<Whereabouts> {
        let (record, is_seen) = match thing {
            Thing::Session(session) => (self.session(session)?.0, self.session_seen(by, session).is_some()),
            Thing::Message(message) => {
                (self.receipt_and_record(message)?.0, self.receipt_seen(by, message).is_some())
            }
            Thing::Approval(approval) => {
                (self.approval(approval)?.0, self.approval_seen(by, approval).is_some())
            }
        };
        (record.org == by.org).then_some(Whereabouts { session: record.session, is_seen })
    }

    pub(super) fn sessions(&self, query: &SessionsQuery) -> Vec<SessionRow> {
        let place = |kept: &Kept| Reverse((kept.touched_at, kept.record.session));
        let later = |kept: &&Kept| query.after.is_none_or(|after| place(kept) > Reverse(after));
        let mut rows: Vec<_> = self.seen(&query.by).filter(later).collect();
        rows.sort_by_key(|kept| place(kept));
        let rows = rows.into_iter().map(|kept| self.row_for(&query.by, kept));
        let rows = rows.filter(|row| query.shows(row));
        rows.take(query.limit).collect()
    }

    pub(super) fn session_counts(&self, by: &Seer) -> SessionCounts {
        let mut counts = SessionCounts::default();
        let open = self.seen(by).filter(|kept| kept.is_open() && !kept.archived);
        open.for_each(|kept| counts.count(&self.row_for(by, kept).attention()));
        counts
    }

    pub(super) fn sessions_named(&self, by: &Seer, name: &TypedName, limit: usize) -> Vec<SessionRow> {
        let mut rows: Vec<_> =
            self.seen(by).map(|kept| self.row_for(by, kept)).filter(|row| name.names(row)).collect();
        rows.sort_by_key(|row| Reverse((row.touched_at, row.session)));
        rows.truncate(limit);
        rows
    }

    pub(super) fn row(&self, kept: &Kept) -> SessionRow {
        SessionRow {
            session: kept.record.session,
            org: kept.record.org,
            owner: kept.record.owner,
            title: kept.title.as_ref().map(|titled| titled.title.clone()),
            title_by: kept.title.as_ref().map(|titled| titled.by),
            scope: kept.scope.clone(),
            epoch: kept.projection.scopes.keys().next_back().copied().unwrap_or_default(),
            origin: kept.origin,
            import: kept.import.as_ref().map(|(import, _)| import.clone()),
            ended: kept.projection.ended,
            archived: kept.archived,
            awake: kept.awake,
            pending: self.pending(kept.record.session),
            held: self.held(kept),
            questions: kept.projection.questions(),
            last: kept.projection.last.clone(),
            at: kept.at(),
            made_at: kept.made_at,
            touched_at: kept.touched_at,
            may: None,
            marks: Marks::default(),
        }
    }

    /// The row as whoever may see it gets it.
    fn row_for(&self, by: &Seer, kept: &Kept) -> SessionRow {
        let marks = self.marks_of(by.org, by.person, kept.record.session);
        SessionRow { may: by.grant_on(&kept.record), marks, ..self.row(kept) }
    }

    pub(super) fn facts(
        &self,
        session: SessionId,
        after: Number,
        limit: usize,
        bytes: usize,
    ) -> Vec<StoredFact> {
        let Some(kept) = self.sessions.get(&session) else { return Vec::new() };
        up_to(kept.facts.iter().skip(after.0 as usize).take(limit), bytes)
    }

    pub(super) fn facts_before(
        &self,
        session: SessionId,
        before: Number,
        limit: usize,
        bytes: usize,
    ) -> Vec<StoredFact> {
        let Some(kept) = self.sessions.get(&session) else { return Vec::new() };
        let earlier = kept.facts.iter().rev().skip_while(|stored| stored.number >= before);
        let mut page = up_to(earlier.take(limit), bytes);
        page.reverse();
        page
    }

    pub(super) fn turns(
        &self,
        session: SessionId,
        before: Option<Turn>,
        limit: usize,
        bytes: usize,
    ) -> Vec<TurnRow> {
        let Some(kept) = self.sessions.get(&session) else { return Vec::new() };
        let turns: std::collections::BTreeSet<_> =
            kept.projection.receipts.values().filter_map(|standing| standing.turn).collect();
        let earlier = turns.into_iter().rev().filter(|turn| before.is_none_or(|before| *turn < before));
        let row = |turn| {
            let receipt = self.turn(session, turn)?;
            let first = receipt.first?.0 as usize;
            let began_at = kept.facts.get(first.checked_sub(1)?)?.at;
            let message = QueuedRow { attachments: Vec::new(), ..self.message_shown(kept, receipt, bytes) };
            Some(TurnRow { message, began_at })
        };
        earlier.filter_map(row).take(limit).collect()
    }

    pub(super) fn messages_shown(
        &self,
        session: SessionId,
        messages: &[MessageId],
        bytes: usize,
    ) -> Vec<QueuedRow> {
        let Some(kept) = self.sessions.get(&session) else { return Vec::new() };
        let receipts = messages.iter().filter_map(|message| self.receipt(*message));
        let ours = receipts.filter(|receipt| receipt.session == session);
        ours.map(|receipt| self.message_shown(kept, receipt, bytes)).collect()
    }

    pub(super) fn story(&self, session: SessionId, of: Turn, wanted: &str, bytes: usize) -> Vec<StoredFact> {
        let Some(kept) = self.sessions.get(&session) else { return Vec::new() };
        let told = kept.facts.iter().filter(|stored| match &stored.entry {
            StoredEntry::Story { turn, kind, .. } => *turn == of && kind == wanted,
            StoredEntry::Rule(_) => false,
        });
        up_to(told, bytes)
    }

    pub(super) fn stories(&self, session: SessionId, wanted: &str, bytes: usize) -> Vec<StoredFact> {
        let Some(kept) = self.sessions.get(&session) else { return Vec::new() };
        let told = kept.facts.iter().rev().filter(|stored| match &stored.entry {
            StoredEntry::Story { kind, .. } => kind == wanted,
            StoredEntry::Rule(_) => false,
        });
        up_to(told, bytes)
    }

    pub(super) fn receipt(&self, message: MessageId) -> Option<ReceiptRow> {
        let said = self.messages.get(&message)?;
        let Accepted { message, session, created, previous, if_new_ignored, at } = said.accepted.clone();
        let standing = self.sessions.get(&session)?.standing(message, at);
        let Standing { state, why, revision, epoch, turn, first, last, changed_at } = standing;
        Some(ReceiptRow {
            message,
            session,
            by: said.by,
            state,
            why,
            revision,
            delivery: said.delivery,
            epoch,
            turn,
            first,
            last,
            reply: said.reply.clone(),
            created,
            previous,
            if_new_ignored,
            unattended: said.unattended,
            door: said.door.map(str::to_owned),
            accepted_at: at,
            changed_at,
        })
    }

    pub(super) fn receipt_and_record(&self, message: MessageId) -> Option<(Record, ReceiptRow)> {
        let row = self.receipt(message)?;
        Some((self.sessions.get(&row.session)?.record.clone(), row))
    }

    pub(super) fn receipt_seen(&self, by: &Seer, message: MessageId) -> Option<(Record, ReceiptRow)> {
        let seen = |record: &Record, row: &ReceiptRow| by.sees(record) || by.lost(record, row.by, row.why);
        self.receipt_and_record(message).filter(|(record, row)| seen(record, row))
    }

    /// Of the messages of a turn, what was steered into it began later.
    pub(super) fn turn(&self, session: SessionId, turn: Turn) -> Option<ReceiptRow> {
        let kept = self.sessions.get(&session)?;
        let ours = kept.projection.receipts.iter().filter(|(_, standing)| standing.turn == Some(turn));
        let (message, _) = ours.min_by_key(|(_, standing)| standing.first)?;
        self.receipt(*message)
    }

    pub(super) fn last_turn(&self, session: SessionId) -> Option<ReceiptRow> {
        let kept = self.sessions.get(&session)?;
        let over = kept.projection.receipts.values().filter(|standing| standing.last.is_some());
        self.turn(session, over.filter_map(|standing| standing.turn).max()?)
    }

    pub(super) fn scope(&self, session: SessionId, epoch: kernel::Epoch) -> Option<kernel::Scope> {
        self.sessions.get(&session)?.projection.scopes.get(&epoch).cloned()
    }

    /// The message that runs, then the queue, then what the keeper has not seen yet.
    pub(super) fn queue(&self, session: SessionId) -> Vec<ReceiptRow> {
        let Some(kept) = self.sessions.get(&session) else { return Vec::new() };
        let seen = &kept.projection.receipts;
        let mut running: Vec<_> =
            seen.iter().filter(|(_, standing)| standing.state == ReceiptState::Running).collect();
        // What was said into a turn comes after what it began with.
        running.sort_by_key(|(_, standing)| standing.first);
        let unseen = kept.messages.iter().filter(|message| !seen.contains_key(message));
        let running = running.into_iter().map(|(message, _)| message);
        let order = running.chain(&kept.projection.queue).chain(unseen);
        order.filter_map(|message| self.receipt(*message)).collect()
    }

    pub(super) fn queue_shown(&self, session: SessionId, bytes: usize) -> Vec<QueuedRow> {
        let Some(kept) = self.sessions.get(&session) else { return Vec::new() };
        let shown = |receipt| self.message_shown(kept, receipt, bytes);
        self.queue(session).into_iter().map(shown).collect()
    }

    fn message_shown(&self, kept: &Kept, receipt: ReceiptRow, bytes: usize) -> QueuedRow {
        let sender = self.people.of(kept.record.org, receipt.by).map(|person| person.row.handle.clone());
        let words = self.messages.get(&receipt.message).map(|said| said.words.clone());
        let attachments = self.attachments(receipt.message);
        QueuedRow { receipt, sender, words: words.filter(|words| words.len() <= bytes), attachments }
    }

    pub(super) fn attachments(&self, message: kernel::MessageId) -> Vec<bytes::Bytes> {
        let attached = self.messages.get(&message).map_or(&[][..], |said| &said.attachments);
        attached.iter().map(|attached| attached.about.clone()).collect()
    }

    pub(super) fn bindings(&self, by: &Seer, after: Option<&Address>, limit: usize) -> Vec<BindingRow> {
        let after = after.map(Address::to_string);
        // What others have for themselves is none of theirs, whatever session it is bound to.
        let theirs = |whose: &Option<PersonId>| whose.is_none_or(|whose| whose == by.person);
        let ours = self.bound.iter().filter(|((org, _, whose), _)| *org == by.org && theirs(whose));
        let later = ours.filter(|((_, address, _), _)| after.as_ref().is_none_or(|after| address > after));
        let sees = |session| self.sessions.get(session).is_some_and(|kept| by.sees(&kept.record));
        let seen = later.filter(|(_, row)| sees(&row.session));
        let with_past = |(place, row): (&Place, &BindingRow)| BindingRow {
            before: self.previous_seen(by, place),
            ..row.clone()
        };
        seen.take(limit).map(with_past).collect()
    }

    pub(super) fn approval(&self, approval: ApprovalId) -> Option<(Record, ApprovalRow)> {
        let asked = |kept: &&Kept| kept.projection.approvals.contains_key(&approval);
        let kept = self.sessions.values().find(asked)?;
        Some((kept.record.clone(), kept.approval(approval)?))
    }

    pub(super) fn approval_seen(&self, by: &Seer, approval: ApprovalId) -> Option<(Record, ApprovalRow)> {
        self.approval(approval).filter(|(record, _)| by.sees(record))
    }

    pub(super) fn approvals(&self, query: &ApprovalsQuery) -> Vec<ApprovalRow> {
        let asked = self.seen(&query.by).flat_map(|kept| {
            kept.projection.approvals.keys().filter_map(|approval| kept.approval(*approval))
        });
        query.page(asked.filter(|row| query.shows(row)).collect())
    }

    pub(super) fn usage(&self, query: &UsageQuery) -> Vec<UsageRow> {
        let days = query.from..=query.to;
        let amounts = self.seen(&query.by).flat_map(|kept| {
            let of_days = kept.projection.usage.iter().filter(|(key, _)| days.contains(&key.day));
            of_days.map(|(key, sum)| {
                let by = key.message.and_then(|message| Some(self.messages.get(&message)?.by));
                let handle = by.and_then(|by| Some(self.people.of(kept.record.org, by)?.row.handle.clone()));
                UsageRow { day: key.day, agent: key.agent.clone(), by, handle, sum: *sum }
            })
        });
        UsageRow::added_up(amounts)
    }

    pub(super) fn holder(&self, claim: &Claim) -> Option<(SessionId, OrgId)> {
        let session = self.claims.get(claim)?.first()?;
        Some((*session, self.sessions.get(session)?.record.org))
    }

    pub(super) fn worktrees_in_use(&self) -> Vec<WorktreeRow> {
        let open = self.sessions.values().filter(|kept| kept.is_open());
        let within = |kept: &Kept| {
            let Record { org, session, .. } = kept.record;
            WorktreeRow::of(org, session, &kept.scope)
        };
        open.filter_map(within).collect()
    }

    pub(super) fn heads(&self, by: &Seer, after: u64, limit: usize) -> Vec<Head> {
        let head = |kept: &Kept| Head { place: kept.place, session: kept.record.session, number: kept.at() };
        let mut heads: Vec<_> = self.seen(by).map(head).filter(|head| head.place > after).collect();
        heads.sort_by_key(|head| head.place);
        heads.truncate(limit);
        heads
    }

    pub(super) fn row_changes(&self, by: &Seer, after: u64, limit: usize) -> Vec<RowChange> {
        let mut changes: Vec<RowChange> = self.heads(by, after, limit).into_iter().map(Into::into).collect();
        let own =
            self.row_changes.iter().filter(|((person, _), place)| *person == by.person && **place > after);
        // A credential that is for one session only ends with the right to it.
        for ((_, session), place) in own.filter(|_| by.bound.is_none()) {
            let is_seen = self.sessions.get(session).is_some_and(|kept| by.sees(&kept.record));
            let row = if is_seen { ChangedRow::Other } else { ChangedRow::Gone };
            changes.push(RowChange { place: *place, session: *session, row });
        }
        changes.sort_by_key(|change| change.place);
        changes.truncate(limit);
        changes
    }

    fn seen<'a>(&'a self, by: &'a Seer) -> impl Iterator<Item = &'a Kept> {
        self.sessions.values().filter(move |kept| by.sees(&kept.record))
    }
}

impl Kept {
    fn approval(&self, approval: ApprovalId) -> Option<ApprovalRow> {
        let asked = self.projection.approvals.get(&approval)?.clone();
        let ApprovalStanding { turn, state, asked_at, until, terms, words, settled_at } = asked;
        let session = self.record.session;
        Some(ApprovalRow { approval, session, turn, state, asked_at, until, terms, words, settled_at })
    }
}

/// As many as fit, but at least one: a fact that is larger than the page must not stop its reader for ever.
fn up_to<'a>(facts: impl Iterator<Item = &'a StoredFact>, bytes: usize) -> Vec<StoredFact> {
    let mut page = Vec::new();
    let mut filled = 0;
    for stored in facts {
        filled += weight(stored);
        if filled > bytes && !page.is_empty() {
            break;
        }
        page.push(stored.clone());
    }
    page
}

fn weight(stored: &StoredFact) -> usize {
    match &stored.entry {
        StoredEntry::Rule(fact) => record::encode_fact(fact).len(),
        StoredEntry::Story { body, .. } => body.as_ref().map_or(0, |body| body.len()),
    }
}

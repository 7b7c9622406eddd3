//! The plan of one step of a keeper, before it is written.
//!
//! A plan is made from the state and the news alone; if the store refuses it, it is thrown away and made again. The
//! keeper's state changes only when the plan is durable.

use super::chores::{CHORES_MAX, ChoreOver, ChoreSlot};
use super::{Confirmation, Keeper, Stop, cause_of_item, finished_between};
use crate::WallProver;
use crate::story::Story;
use crate::turn::Runner;
use kernel::{
    Answer, Answerer, ApprovalTerms, Chore, Claim, Command, Effect, Errand, Fact, Failure, Fence, Given,
    HoldWhy, KeptWhy, MessageId, Moment, Number, Outcome, PersonId, Refusal, RefusedWhy, Report, ReportKind,
    Request, RequestId, Return, Session, SessionId, Slot, StopWhy, Turn, TurnApproval,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use store::{
    Append, Cause, Entry, InboxItem, InboxRow, NewFact, NewOutgoing, OutgoingKind, RememberedRule, Resolved,
    RuleEffect, RuleRow, StoredEntry, StoredFact, Verdict,
};

/// Messages that are named when they end because their session is somebody else's. The log names all of them.
const NAMED_MAX: usize = 20;

/// The news that a step is made from.
#[derive(Debug, Default)]
pub(super) struct StepInput {
    pub(super) rows: Vec<InboxRow>,
    pub(super) stories: Vec<Entry>,
    pub(super) approvals: Vec<NewApproval>,
    pub(super) reports: Vec<(Fence, Report)>,
    pub(super) stale: Vec<(Fence, ReportKind)>,
    /// The errands that have come back.
    pub(super) returns: Vec<(Errand, Return)>,
    /// Results of looks: whoever looked wants to hear whether they still count.
    pub(super) confirmations: Vec<Confirmation>,
    /// The words for people if a turn has to wait for what others have.
    pub(super) crowded_by: Option<String>,
    /// Messages whose senders lost the right to say them.
    pub(super) revoked: Vec<MessageId>,
    /// Chores of whoever lost the right to have them done.
    pub(super) denied_chores: Vec<RequestId>,
    /// The chore that was under way.
    pub(super) chore_over: Option<ChoreOver>,
}

/// A chore in the inbox: its row, and what is asked.
#[derive(Debug, Clone)]
pub(super) struct ChoreRow {
    pub(super) number: u64,
    pub(super) id: RequestId,
    pub(super) chore: Chore,
}

/// An approval that the agent asks for, and what rules and policy say to it.
#[derive(Debug)]
pub(super) struct NewApproval {
    pub(super) fence: Fence,
    pub(super) approval: kernel::ApprovalId,
    pub(super) terms: ApprovalTerms,
    /// Its words.
    pub(super) story: Entry,
    /// The answer without asking anybody.
    pub(super) answer: Option<(Answer, Answerer)>,
}

/// The writes of a step.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) facts: Vec<NewFact>,
    pub(super) after: Session,
    pub(super) wake_at: Option<Moment>,
    drained: Vec<u64>,
    staying: Vec<u64>,
    /// The chore that begins when this is so.
    pub(super) begins: Option<ChoreRow>,
    pub(super) verdicts: Vec<(RequestId, Verdict)>,
    /// Messages that reach a final state.
    pub(super) finals: BTreeSet<MessageId>,
    asked: Vec<kernel::ApprovalId>,
    starts: Option<(MessageId, PersonId)>,
    rules: Vec<RuleRow>,
    /// The acts that nobody asked us for.
    pub(super) own_acts: Vec<(&'static str, Option<MessageId>)>,
    /// Of what somebody looked up, in order: whether it counts.
    fresh: Vec<bool>,
    /// The person whose session it is from here on.
    pub(super) owner: Option<PersonId>,
}

impl StepInput {
    /// Tells those who looked something up whether it counts.
    pub(super) fn answer_confirmations(&mut self, plan: &Plan) {
        for (confirmation, fresh) in self.confirmations.drain(..).zip(&plan.fresh) {
            confirmation.answer(*fresh);
        }
    }
}

impl Plan {
    /// The attempt that starts when this is so, and whose message it is for.
    pub(super) fn started_attempt(&self) -> Option<(Fence, PersonId)> {
        let (_, by) = self.starts?;
        let fence = self.facts.iter().rev().filter_map(rule).find_map(|fact| match fact {
            Fact::AttemptStarted { fence, .. } => Some(*fence),
            _ => None,
        });
        Some((fence?, by))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.facts.is_empty() && self.drained.is_empty()
    }
}

impl Keeper {
    pub(super) fn plan(&self, news: &StepInput, slot: Slot) -> Plan {
        let mut plan = Planning::new(self, slot, news.crowded_by.clone());
        plan.chore_slot = self.chore_slot(news);
        if !self.state.is_opened() {
            plan.tell(
                Command::Open { scope: self.scope.clone(), origin: self.origin, enter: self.enter.clone() },
                Cause::Keeper,
            );
        }
        // A revoked message is known already, or comes with these rows: the other telling finds nothing to do.
        plan.revoke(&news.revoked);
        if let Some(over) = &news.chore_over {
            plan.chore_over(over);
        }
        for row in &news.rows {
            plan.row(row, &news.denied_chores);
        }
        plan.revoke(&news.revoked);
        for story in &news.stories {
            plan.facts.push(NewFact { at: plan.given.now, cause: Cause::Runner, entry: story.clone() });
        }
        for (fence, kind) in &news.stale {
            let facts = plan.after.stale(*fence, *kind);
            plan.take(facts, Cause::Runner);
        }
        // What an attempt lists, it lists before it ends; said after its end, it might be of a scope that is no more.
        for (errand, came) in &news.returns {
            plan.tell(Command::Return { errand: *errand, came: came.clone() }, Cause::Runner);
        }
        for approval in &news.approvals {
            plan.approval(approval);
        }
        for (fence, report) in &news.reports {
            if is_last(report) {
                plan.miss(self.outside.attempt().map(|attempt| &attempt.runner), *fence);
            }
            plan.tell(Command::Report { fence: *fence, report: report.clone() }, Cause::Runner);
        }
        for confirmation in &news.confirmations {
            let (errand, came) = (confirmation.errand, confirmation.came.clone());
            plan.fresh.push(errand.epoch == plan.after.epoch());
            plan.tell(Command::Return { errand, came }, Cause::Runner);
        }
        plan.settle(slot, &self.state)
    }

    /// The plan as the store wants it.
    pub(super) async fn append_of(&self, plan: &Plan) -> Result<Append, Stop> {
        let claims = self.limited_claims(plan).await?;
        Ok(Append {
            session: self.session,
            term: self.term,
            after: self.at,
            facts: plan.facts.clone(),
            drained: plan.drained.clone(),
            staying: plan.staying.clone(),
            verdicts: plan.verdicts.clone(),
            claims,
            starts: plan.starts,
            replies: self.replies(plan).await?,
            wake_at: plan.wake_at,
            awake: plan.after.is_awake(),
            rules: plan.rules.clone(),
            own_acts: plan.own_acts.clone(),
            words_bytes_max: self.words_bytes_max(),
            token: None,
        })
    }

    /// The room for what an agent says. Whatever else is told is short, and is needed to understand what happened.
    fn words_bytes_max(&self) -> Option<u64> {
        let is_heard = self.outside.attempt().is_some_and(|attempt| attempt.cut_off_why().is_none());
        is_heard.then(|| self.engine.limits().words_bytes_per_person_max)
    }

    /// The claims that the session holds after this, with how many may hold each. One that it holds already stays its own,
    /// so that the org is asked only when a turn starts.
    async fn limited_claims(&self, plan: &Plan) -> Result<Vec<(Claim, u32)>, Stop> {
        let limits = self.engine.limits();
        let org_awake_max = match plan.starts {
            Some(_) => self.engine.rights_cache().settings_of(self.org).await?.awake_max,
            None => None,
        };
        let org_awake_max = org_awake_max.map_or(limits.org_awake_max, |max| max.min(limits.org_awake_max));
        let org = Claim::org_slot(self.org);
        let directory = plan.after.scope().map(|scope| Claim::directory(&scope.directory));
        let max = |claim: &Claim| match claim {
            claim if *claim == org => org_awake_max,
            claim if Some(claim) == directory.as_ref() => 1,
            _ => limits.awake_max,
        };
        Ok(self.claims(&plan.after).into_iter().map(|claim| (claim.clone(), max(&claim))).collect())
    }

    /// The reply address was fixed when the message was accepted; it is read from there and nowhere else.
    async fn replies(&self, plan: &Plan) -> Result<Vec<NewOutgoing>, Stop> {
        let mut replies = Vec::new();
        let running = plan.after.running().map(|running| running.message);
        let questions =
            plan.asked.iter().filter_map(|approval| Some((running?, OutgoingKind::Question(*approval))));
        let finals = plan.finals.iter().map(|message| (*message, OutgoingKind::Final));
        for (message, kind) in finals.chain(questions).collect::<Vec<_>>() {
            let receipt = self.engine.store().receipt(message).await?;
            if let Some(to) = receipt.and_then(|(_, row)| row.reply) {
                replies.push(NewOutgoing { to, message, kind });
            }
        }
        Ok(replies)
    }
}

struct Planning {
    session: SessionId,
    given: Given,
    facts: Vec<NewFact>,
    after: Session,
    /// Messages that were not known before.
    said: Vec<MessageId>,
    drained: Vec<u64>,
    staying: Vec<u64>,
    chore_slot: ChoreSlot,
    begins: Option<ChoreRow>,
    verdicts: Vec<(RequestId, Verdict)>,
    rules: Vec<RuleRow>,
    own_acts: Vec<(&'static str, Option<MessageId>)>,
    fresh: Vec<bool>,
    owner: Option<PersonId>,
    /// Whoever says what may run here, and the owner of the session before this.
    wall: Arc<dyn WallProver>,
    former_owner: PersonId,
    /// True if what is wanted is held by others, as far as the store has said.
    is_taken: bool,
    crowded_by: Option<String>,
}

impl Planning {
    fn new(keeper: &Keeper, slot: Slot, crowded_by: Option<String>) -> Self {
        let abilities = keeper.agent().map(|agent| agent.abilities()).unwrap_or_default();
        // Everything is decided first; whether a turn may start is asked once, at the end.
        let given = Given {
            now: keeper.engine.now(),
            term: keeper.term,
            policy: keeper.engine.policy_with(&keeper.scope.agent),
            slot: Slot::Unasked,
            can_steer: abilities.steer,
            forgets: abilities.forgets,
        };
        Self {
            session: keeper.session,
            given,
            facts: Vec::new(),
            after: keeper.state.clone(),
            said: Vec::new(),
            drained: Vec::new(),
            staying: Vec::new(),
            chore_slot: ChoreSlot::Taken,
            begins: None,
            verdicts: Vec::new(),
            rules: Vec::new(),
            own_acts: Vec::new(),
            fresh: Vec::new(),
            owner: None,
            wall: keeper.engine.people().wall.clone(),
            former_owner: keeper.owner,
            is_taken: slot == Slot::Taken,
            crowded_by,
        }
    }

    fn row(&mut self, row: &InboxRow, denied_chores: &[RequestId]) {
        if let InboxItem::Request { id, by, request: Request::Chore { chore, .. }, .. } = &row.item {
            let asked = ChoreRow { number: row.number, id: *id, chore: chore.clone() };
            return self.chore(asked, *by, denied_chores.contains(id));
        }
        self.drained.push(row.number);
        let cause = cause_of_item(&row.item);
        match &row.item {
            InboxItem::Say { message, by, delivery, under } => {
                self.said.push(*message);
                let (message, by, delivery, under) = (*message, *by, *delivery, *under);
                // What may not run here is not said into what runs: it waits for a turn of its own, which is refused.
                let given = self.given_for_words_of(by);
                self.tell_given(Command::Say { message, by, delivery, under }, cause, &given);
            }
            InboxItem::Wake => self.tell(Command::Wake, cause),
            // What follows from it is in the news: the messages that may no longer be said.
            InboxItem::Recheck { .. } => {}
            InboxItem::HandOver { to } => self.hand_over(*to, cause),
            InboxItem::Request { id, by, request, resolved } => {
                let given = self.given_for(request);
                let (request, written_for) = (request.clone(), resolved.written_for.clone());
                let rule = rule_with(&request, resolved, *by, self.given.now);
                let refused = runs_something(&request).then(|| self.refusal(*by)).flatten();
                let command = Command::Request { request, by: *by, written_for };
                let verdict = match (refused, self.after.decide(command, &given)) {
                    (Some(why), _) => Verdict::Failed { why },
                    (None, Ok(facts)) => {
                        self.take(facts, cause);
                        self.rules.extend(rule);
                        Verdict::Done
                    }
                    (None, Err(refusal)) => Verdict::Refused(refusal),
                };
                self.verdicts.push((*id, verdict));
            }
        }
    }

    /// A chore begins if nothing is in the way, and its row stays until it is over. What waits for its turn does not count: it
    /// goes on waiting. While another one is under way it is not judged at all.
    fn chore(&mut self, asked: ChoreRow, by: PersonId, is_denied: bool) {
        if self.drained.contains(&asked.number) {
            return; // It is the one that is over.
        }
        let is_full = self.staying.len() >= CHORES_MAX;
        if self.chore_slot == ChoreSlot::Taken && !is_full {
            return self.staying.push(asked.number);
        }
        if let Some(why) = self.refusal(by) {
            self.drained.push(asked.number);
            return self.verdicts.push((asked.id, Verdict::Failed { why }));
        }
        let (session, chore) = (self.session, asked.chore.clone());
        let judged = match self.after.decide(Request::Chore { session, chore }.by(by), &self.given) {
            _ if is_full => Err(Refusal::Busy),
            Ok(_) if is_denied => Err(Refusal::NotAllowed),
            judged => judged,
        };
        match judged {
            Ok(_) => {
                self.staying.push(asked.number);
                self.chore_slot = ChoreSlot::Taken;
                self.begins = Some(asked);
            }
            Err(refusal) => {
                self.drained.push(asked.number);
                self.verdicts.push((asked.id, Verdict::Refused(refusal)));
            }
        }
    }

    fn chore_over(&mut self, over: &ChoreOver) {
        self.drained.push(over.row.number);
        self.verdicts.push((over.row.id, over.verdict.clone()));
    }

    /// Its words come before the fact it is asked with, so that whoever follows knows the words when it is open.
    fn approval(&mut self, new: &NewApproval) {
        let NewApproval { fence, approval, terms, story, answer } = new;
        self.facts.push(NewFact { at: self.given.now, cause: Cause::Runner, entry: story.clone() });
        let report = Report::Asked { approval: *approval, terms: *terms };
        self.tell(Command::Report { fence: *fence, report }, Cause::Runner);
        if let Some((answer, by)) = answer.clone() {
            self.tell(Command::Answer { approval: *approval, answer, by }, Cause::Keeper);
        }
    }

    /// An undo is done in a directory that another session may work in; everything else has time until the end.
    fn given_for(&self, request: &Request) -> Given {
        match request {
            Request::Undo { .. } | Request::Redo { .. } if self.is_taken => {
                Given { slot: Slot::Taken, ..self.given }
            }
            Request::Steer { message } => {
                let waiting = self.after.queue().iter().find(|waiting| waiting.message == *message);
                waiting.map_or(self.given, |waiting| self.given_for_words_of(waiting.by))
            }
            _ => self.given,
        }
    }

    /// The words of somebody for whom nothing may run here are not said into what does.
    fn given_for_words_of(&self, by: PersonId) -> Given {
        Given { can_steer: self.given.can_steer && self.refusal(by).is_none(), ..self.given }
    }

    fn revoke(&mut self, messages: &[MessageId]) {
        for message in messages {
            let before = self.facts.len();
            self.tell(Command::Revoke { message: *message }, Cause::Keeper);
            if self.facts.len() > before {
                self.own_acts.push(("revoke", Some(*message)));
            }
        }
    }

    /// The session is somebody else's: all that was said to it until here ends, and is named with whose it was.
    fn hand_over(&mut self, to: PersonId, cause: Cause) {
        self.owner = Some(to);
        let waiting = self.after.queue().iter().map(|waiting| (waiting.message, waiting.by));
        let waiting: Vec<_> = waiting.collect();
        self.tell(Command::HandOver { to }, cause);
        let text = handed_over_text(to, &waiting);
        let (at, entry) = (self.given.now, Story::Notice { text: &text }.entry(Turn(0)));
        self.facts.push(NewFact { at, cause, entry });
        self.own_acts.extend(waiting.into_iter().map(|(message, _)| ("end_with_hand_over", Some(message))));
    }

    /// A message that was to be said into a turn that is over, and has not left us, waits for a turn of its own.
    fn miss(&mut self, runner: Option<&Runner>, fence: Fence) {
        let Some(runner) = runner.filter(|runner| runner.fence == fence) else { return };
        let steered = self.after.running().into_iter().flat_map(|running| &running.steered);
        let kept_back = steered.map(|steered| steered.message).filter(|message| runner.kept_back(*message));
        for message in kept_back.collect::<Vec<_>>() {
            self.tell(Command::Report { fence, report: Report::Missed { message } }, Cause::Runner);
        }
    }

    /// Why nothing that this person wants may run here.
    fn refusal(&self, by: PersonId) -> Option<String> {
        let is_ours = by == PersonId::ENGINE;
        (!is_ours).then(|| self.wall.refusal(self.owner.unwrap_or(self.former_owner), by)).flatten()
    }

    fn tell(&mut self, command: Command, cause: Cause) {
        let given = self.given;
        self.tell_given(command, cause, &given);
    }

    fn tell_given(&mut self, command: Command, cause: Cause, given: &Given) {
        match self.after.decide(command, given) {
            Ok(facts) => self.take(facts, cause),
            Err(refusal) => tracing::debug!(?refusal, "nothing follows from this"),
        }
    }

    fn take(&mut self, facts: Vec<Fact>, cause: Cause) {
        let at = self.given.now;
        for fact in facts {
            self.own_acts.extend(own_act(&fact, &self.after));
            self.after.evolve(&fact);
            let says = begins_anew(&fact).or_else(|| self.waits_for(&fact));
            self.facts.push(NewFact { at, cause, entry: Entry::Rule(fact) });
            self.facts.extend(says.map(|entry| NewFact { at, cause, entry }));
        }
    }

    /// The words for people when a turn has to wait for what others have.
    fn waits_for(&self, fact: &Fact) -> Option<Entry> {
        let (Fact::Crowded { .. }, Some(text)) = (fact, &self.crowded_by) else { return None };
        Some(Story::Notice { text }.entry(Turn(0)))
    }

    fn settle(mut self, slot: Slot, before: &Session) -> Plan {
        // No turn starts beside a chore.
        self.given.slot = if self.begins.is_some() { Slot::Unasked } else { slot };
        self.tell(Command::Wake, Cause::Keeper);
        let rules = || self.facts.iter().filter_map(rule);
        let starts = rules().any(|fact| matches!(fact, Fact::AttemptStarted { .. }));
        let starts = self.after.running().filter(|_| starts).map(|running| (running.message, running.by));
        // What was answered at once asks nobody.
        let open = |wanted: &kernel::ApprovalId| {
            let running = self.after.running().into_iter();
            let mut approvals = running.flat_map(|running| &running.approvals);
            approvals.any(|one| matches!(one, TurnApproval::Open { approval, .. } if approval == wanted))
        };
        let asked = rules().filter_map(|fact| match fact {
            Fact::Asked { approval, .. } => Some(*approval),
            _ => None,
        });
        let asked = asked.filter(open).collect();
        // A long queue is looked through only when something can have left it.
        let only_grows = rules().all(|fact| matches!(fact, Fact::Queued { .. }));
        let finals = if only_grows {
            BTreeSet::new()
        } else {
            let known = unfinished(before).into_iter().chain(self.said).collect();
            finished_between(&known, &self.after)
        };
        // What waits for a chore is looked at when that is over.
        let wake_at = match self.given.slot {
            Slot::Unasked => self.after.wake_without_start(self.given.term),
            Slot::Free | Slot::Taken => self.after.wake_at(self.given.term),
        };
        Plan {
            facts: self.facts,
            after: self.after,
            wake_at,
            drained: self.drained,
            staying: self.staying,
            begins: self.begins,
            verdicts: self.verdicts,
            finals,
            asked,
            starts,
            rules: self.rules,
            own_acts: self.own_acts,
            fresh: self.fresh,
            owner: self.owner,
        }
    }
}

/// True if something runs because of it, or an agent acts on its words: on the session's ground, as its user.
fn runs_something(request: &Request) -> bool {
    match request {
        Request::ChangeScope { .. } | Request::Undo { .. } | Request::Redo { .. } | Request::Chore { .. } => {
            true
        }
        Request::Answer { answer, .. } => *answer != Answer::No,
        Request::Edit { .. }
        | Request::Withdraw { .. }
        | Request::Hold { .. }
        | Request::Release { .. }
        | Request::Steer { .. }
        | Request::Interrupt { .. }
        | Request::Reorder { .. }
        | Request::Stop { .. }
        | Request::KeepScope { .. }
        | Request::End { .. } => false,
    }
}

/// The messages of a session that are not final.
pub(super) fn unfinished(state: &Session) -> BTreeSet<MessageId> {
    let running = state.running().into_iter();
    let running = running.flat_map(|running| running.messages());
    state.queue().iter().map(|waiting| waiting.message).chain(running).collect()
}

/// The messages of this person that are not final.
pub(super) fn said_by(state: &Session, rows: &[InboxRow], person: PersonId) -> Vec<MessageId> {
    let running = state.running().into_iter().flat_map(|running| running.said_by(person));
    let waiting = state.queue().iter().filter(|waiting| waiting.by == person).map(|waiting| waiting.message);
    let said = rows.iter().filter_map(|row| match row.item {
        InboxItem::Say { message, by, .. } if by == person => Some(message),
        InboxItem::Say { .. }
        | InboxItem::Request { .. }
        | InboxItem::Wake
        | InboxItem::Recheck { .. }
        | InboxItem::HandOver { .. } => None,
    });
    waiting.chain(running).chain(said).collect()
}

/// The part of this that nobody asked for: it is in the audit as the engine's own. `before` is the session as it was.
fn own_act(fact: &Fact, before: &Session) -> Option<(&'static str, Option<MessageId>)> {
    let running = before.running().map(|running| running.message);
    match fact {
        Fact::TurnEnded { outcome: Outcome::Interrupted, .. } => Some(("interrupt", running)),
        Fact::StopAsked { why: StopWhy::TimeLimit, .. } => Some(("time_limit", running)),
        Fact::Answered { by: Answerer::Nobody, .. } => Some(("answer_for_nobody", running)),
        Fact::Answered { by: Answerer::Rule(_), .. } => Some(("answer_by_rule", running)),
        Fact::Answered { by: Answerer::Policy, .. } => Some(("answer_by_policy", running)),
        Fact::MessageRefused { message, why: RefusedWhy::Expired } => Some(("expire", Some(*message))),
        Fact::Ended { why: kernel::EndWhy::Gone } => Some(("end_as_gone", running)),
        Fact::Held { message, why: HoldWhy::OtherScope, .. } => {
            Some(("hold_for_other_scope", Some(*message)))
        }
        Fact::ScopeKept { why: KeptWhy::Failed | KeptWhy::Moot } => Some(("keep_scope", None)),
        // What was revoked is told where it is; the rest was asked for by somebody, or done by the agent.
        _ => None,
    }
}

/// A fact as it can be read back once it is durable.
pub(super) fn stored(number: Number, fact: NewFact) -> StoredFact {
    let entry = match fact.entry {
        Entry::Rule(fact) => StoredEntry::Rule(fact),
        Entry::Story { turn, kind, body } => StoredEntry::Story { turn, kind, body: Some(body) },
    };
    StoredFact { number, at: fact.at, cause: fact.cause, entry }
}

/// True if an attempt is over with this.
pub(super) fn is_last(report: &Report) -> bool {
    match report {
        Report::Finished { .. } | Report::Failed(_) | Report::Stopped | Report::Lost => true,
        Report::Ready { .. } | Report::Asked { .. } | Report::Withdrawn { .. } | Report::Missed { .. } => {
            false
        }
    }
}

/// The words for people when the next attempt begins a new conversation: the agent will not know what was said before.
fn begins_anew(fact: &Fact) -> Option<Entry> {
    let Fact::AttemptFailed { turn, failure: Failure::Gone, .. } = fact else { return None };
    let text = "the agent had not kept the interrupted conversation; it starts anew";
    Some(Story::Notice { text }.entry(*turn))
}

/// The words for people when a session has got another owner.
fn handed_over_text(to: PersonId, waiting: &[(MessageId, PersonId)]) -> String {
    let named = waiting.iter().take(NAMED_MAX).map(|(message, by)| format!("{message} of {by}"));
    let named = named.collect::<Vec<_>>().join(", ");
    match waiting.len() {
        0 => format!("this session is {to}'s from here on"),
        ended if ended > NAMED_MAX => {
            let more = ended - NAMED_MAX;
            format!("this session is {to}'s from here on; what waited has ended: {named}, and {more} more")
        }
        _ => format!("this session is {to}'s from here on; what waited has ended: {named}"),
    }
}

fn rule(fact: &NewFact) -> Option<&Fact> {
    match &fact.entry {
        Entry::Rule(fact) => Some(fact),
        Entry::Story { .. } => None,
    }
}

/// The rule that comes with an answer.
fn rule_with(request: &Request, resolved: &Resolved, by: PersonId, since: Moment) -> Option<RuleRow> {
    let (Request::Answer { answer, .. }, Some(remembered)) = (request, &resolved.rule) else { return None };
    let effect = match answer.as_rule()? {
        Effect::Allow => RuleEffect::Allow,
        Effect::Deny => RuleEffect::Deny,
        Effect::Ask { who } => RuleEffect::Ask(who),
    };
    let RememberedRule { rule, agent, tool, directory, session } = remembered.clone();
    Some(RuleRow { rule, by, since, agent, tool: Some(tool), directory, session, effect, until: None })
}

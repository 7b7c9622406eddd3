//! The one loop that may write a session's log.
//!
//! A keeper reads the log once, then lives in a loop: `drain` the inbox, `hear` what goes on outside, let the kernel
//! decide, append, and make the outside match `due`. Starting after a crash is the same loop; there is no recovery
//! code. On an error a keeper dies, and the next one reads the log. When nothing is under way it goes, and the session
//! costs rows and no memory. `Keepers` sees to it that there is one at a time on this node.

mod attempt;
mod call_back;
mod chores;
mod events;
mod memory;
mod outside;
mod plan;
mod questions;
mod registry;

use crate::Engine;
use crate::background;
use crate::cluster::Happened;
use crate::errand::ErrandOutput;
use crate::errors::too_many_words;
use crate::roster::ToldHashes;
use crate::story::Story;
use crate::turn::RunnerOutput;
use agent::Agent;
use call_back::TurnCredential;
use chores::ChoreSlot;
use kernel::{
    Claim, Failure, GroundPath, MessageId, Number, PersonId, Report, Session, SessionId, Slot, Term, Turn,
};
use outside::{Outside, OutsideOutput};
use plan::{ChoreRow, Plan, StepInput};
pub(crate) use registry::{Confirmation, Keepers, Keepership};
use std::collections::BTreeSet;
use store::{Append, Appending, Cause, Entry, InboxItem, StoreError};
use tokio::time::{Duration, Instant};

/// Inbox rows taken at once.
const DRAIN_MAX: usize = 256;
/// Things a runner says that are written in one append.
const HEAR_MAX: usize = 32;
/// Times one step is decided again because the store saw something else than we did.
const ADVANCE_MAX: usize = 64;
/// Rule facts after which a dormant session gets a new checkpoint.
const CHECKPOINT_FACTS: usize = 128;
/// The first wait after an error, and the longest.
const AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// The longest that a dead keeper's runner may take to end, on top of the agent's own grace.
const PART_MAX: Duration = Duration::from_secs(5);

/// The longest that a kept process that nobody needs any more may take to go.
const RELEASE_MAX: Duration = Duration::from_secs(30);

/// The reasons for which what ran in the background was ended.
const SESSION_ENDED: &str = "with the session";
const OTHER_SCOPE: &str = "because the session acts elsewhere or otherwise now";
const OTHER_OWNER: &str = "because the session is somebody else's now";

/// Why a keeper stops before its session rests.
#[derive(Debug)]
enum Stop {
    /// Another keeper has the session.
    Fenced,
    /// Our state is not what is stored: read the log again.
    Moved,
    /// The store failed.
    Store(StoreError),
    /// The node goes down, and everything has been written.
    Closed,
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

struct Keeper {
    engine: Engine,
    session: SessionId,
    org: kernel::OrgId,
    /// The owner, as far as the inbox was read: whatever starts runs as their user, behind their wall.
    owner: PersonId,
    /// Where and how the session acts; what it was made with, until its first fact is written.
    scope: kernel::Scope,
    origin: Option<kernel::Origin>,
    enter: Option<kernel::NewWorktree>,
    term: Term,
    at: Number,
    state: Session,
    /// Rule facts since the last checkpoint.
    rules: usize,
    phase: Phase,
    inbox: InboxRead,
    outside: Outside,
    /// The agents that may keep a process for this session which it goes on with no more, and why: the one that it had in the
    /// scope before, and the one that it had for its owner before.
    former_agents: Vec<(std::sync::Arc<dyn Agent>, &'static str)>,
    /// The credential of the attempt whose start was written last, until it is started.
    credential: Option<TurnCredential>,
    /// The next attempt was announced already.
    is_expected: bool,
    /// The directory that was seen not to be under version control.
    untracked: Option<GroundPath>,
    /// The last story of how it was started and of the agent's word about itself.
    told: ToldHashes,
}

/// The phase of the keeper's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Until its session rests: whatever is due is done.
    Keeping,
    /// The node goes down: what goes on outside is ended, and nothing is begun.
    Closing,
}

/// When the inbox is read next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InboxRead {
    Now,
    /// Then at the latest: something is in it that can wait a little.
    At(Instant),
    /// When somebody rings.
    WhenRung,
}

impl InboxRead {
    fn moment(self) -> Option<Instant> {
        match self {
            Self::At(moment) => Some(moment),
            Self::Now | Self::WhenRung => None,
        }
    }
}

/// Keeps one session until it rests, another keeper has it, or the node goes down.
pub(crate) async fn keep(engine: Engine, keepership: Keepership) {
    let (mut wait, longest) = AGAIN;
    loop {
        let stop = match Keeper::open(&engine, keepership.session()).await {
            Ok(Some(mut keeper)) => match keeper.live(&keepership).await {
                Ok(()) => return,
                Err(stop) => {
                    keeper.part().await;
                    stop
                }
            },
            Ok(None) => return,
            Err(error) => Stop::Store(error),
        };
        match stop {
            Stop::Fenced | Stop::Closed => return keepership.leave(),
            Stop::Moved => engine.cluster().tell(Happened::Unclear(keepership.session())),
            Stop::Store(StoreError::Damaged(cause)) => {
                tracing::error!(session = %keepership.session(), cause, "this session cannot be kept");
                return keepership.leave();
            }
            Stop::Store(error) => {
                tracing::warn!(session = %keepership.session(), %error, "keeping again in a moment");
                if let StoreError::Unknown(_) = error {
                    // It may be written, with what we did by ourselves.
                    engine.audited();
                    engine.cluster().tell(Happened::Unclear(keepership.session()));
                }
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(longest);
            }
        }
    }
}

impl Keeper {
    async fn open(engine: &Engine, session: SessionId) -> Result<Option<Self>, StoreError> {
        let Some(loaded) = engine.store().load(session).await? else { return Ok(None) };
        let mut state = Session::default();
        loaded.facts.iter().for_each(|fact| state.evolve(fact));
        Ok(Some(Self {
            engine: engine.clone(),
            session,
            org: loaded.org,
            owner: loaded.owner,
            scope: state.scope().cloned().unwrap_or(loaded.scope),
            origin: loaded.origin,
            enter: loaded.enter,
            term: engine.cluster().next_term(session),
            at: loaded.at,
            state,
            rules: loaded.since_checkpoint,
            phase: Phase::Keeping,
            inbox: InboxRead::Now,
            outside: Outside::Nothing,
            former_agents: Vec::new(),
            credential: None,
            is_expected: false,
            untracked: None,
            told: engine.roster().told(session),
        }))
    }

    async fn live(&mut self, keepership: &Keepership) -> Result<(), Stop> {
        self.is_expected = keepership.was_expected();
        loop {
            while self.inbox == InboxRead::Now {
                keepership.inbox_is_read();
                self.inbox = self.drain().await?;
            }
            self.match_outside().await?;
            if self.phase == Phase::Closing {
                self.end_outside().await;
            }
            match (&self.outside, self.phase) {
                (Outside::Attempt(_) | Outside::Errand(_) | Outside::Chore(_), _) => {
                    self.wait(keepership).await?
                }
                (Outside::Nothing, Phase::Closing) => return Err(Stop::Closed),
                (Outside::Nothing, Phase::Keeping) if keepership.rest() => {
                    self.rest().await;
                    return Ok(());
                }
                // Somebody rang while we wanted to rest.
                (Outside::Nothing, Phase::Keeping) => self.inbox = InboxRead::Now,
            }
        }
    }

    async fn wait(&mut self, keepership: &Keepership) -> Result<(), Stop> {
        let cut_at = self.outside.attempt().and_then(|attempt| attempt.cut_at(self.engine.words_wait()));
        tokio::select! {
            biased;
            output = self.outside.next() => self.hear(output).await?,
            () = until(cut_at) => self.write_words().await?,
            () = keepership.rung() => self.inbox = InboxRead::Now,
            () = keepership.rung_soon(), if self.inbox == InboxRead::WhenRung => {}
            () = until(self.inbox.moment()) => {}
            () = keepership.closing(), if self.phase == Phase::Keeping => {}
        }
        // An agent that never stops talking must not keep us from hearing anybody else.
        if keepership.was_rung() {
            self.inbox = InboxRead::Now;
        }
        if keepership.is_rung_soon() {
            let now = Instant::now();
            self.inbox = match self.inbox {
                InboxRead::WhenRung => InboxRead::At(self.engine.keepers().round_end(now)),
                InboxRead::At(moment) if moment <= now => InboxRead::Now,
                soon => soon,
            };
        }
        if keepership.is_closing() {
            self.phase = Phase::Closing;
        }
        Ok(())
    }

    /// Turns everything in the inbox into facts. The queue is state, never the inbox.
    async fn drain(&mut self) -> Result<InboxRead, Stop> {
        let confirmations = self.engine.keepers().confirmations(self.session);
        let notices = self.engine.keepers().notices(self.session);
        let stories = notices.iter().map(|text| Story::Notice { text }.entry(Turn(0))).collect();
        let mut news = StepInput { confirmations, stories, ..StepInput::default() };
        self.read_inbox(&mut news, DRAIN_MAX).await?;
        let next = if news.rows.len() == DRAIN_MAX { InboxRead::Now } else { InboxRead::WhenRung };
        self.advance(news).await?;
        self.engine.keepers().notices_are_written(self.session, notices.len());
        Ok(next)
    }

    /// The rows of the inbox; and of whoever may do something else than before, what they may no longer say.
    async fn read_inbox(&self, news: &mut StepInput, limit: usize) -> Result<(), Stop> {
        news.rows = self.engine.store().inbox(self.session, limit).await?;
        let people: BTreeSet<PersonId> = news.rows.iter().filter_map(|row| rechecked(&row.item)).collect();
        for person in people {
            if !self.engine.store().may_say(self.session, person).await? {
                let said = plan::said_by(&self.state, &news.rows, person);
                news.revoked.extend(said);
            }
        }
        news.revoked.sort_unstable();
        news.revoked.dedup();
        news.denied_chores = self.denied_chores(news).await?;
        Ok(())
    }

    async fn hear(&mut self, output: OutsideOutput) -> Result<(), Stop> {
        match output {
            // A runner never goes without a report; if it does, it panicked, and the next keeper ends what is left of it.
            OutsideOutput::Attempt(output) => self.hear_attempt(output.ok_or(Stop::Moved)?).await,
            OutsideOutput::Errand(output) => self.hear_errand(output).await,
        }
    }

    /// Takes what the runner says, and whatever else it has said already. With its end comes what is in the inbox: it was said
    /// while the turn ran, in the scope of then, although it may have waited for company.
    async fn hear_attempt(&mut self, first: RunnerOutput) -> Result<(), Stop> {
        let mut news = StepInput::default();
        self.take_in(first, &mut news).await?;
        // What comes after a report depends on what is decided about it.
        for _ in 1..HEAR_MAX {
            if !news.reports.is_empty() || !news.approvals.is_empty() {
                break;
            }
            let Some(attempt) = self.outside.attempt_mut() else { break };
            let Ok(output) = attempt.runner.output.try_recv() else { break };
            self.take_in(output, &mut news).await?;
        }
        if news.reports.iter().any(|(_, report)| plan::is_last(report)) {
            self.read_inbox(&mut news, DRAIN_MAX).await?;
        }
        self.advance(news).await
    }

    /// Takes the output of an errand or a chore, and its end.
    async fn hear_errand(&mut self, output: ErrandOutput) -> Result<(), Stop> {
        let mut news = StepInput::default();
        match output {
            ErrandOutput::Story(story) => news.stories.push(*story),
            ErrandOutput::Progress(progress) => {
                self.outside.tell(progress);
                return Ok(());
            }
            ErrandOutput::Chored(came) => return self.end_chore(*came).await,
            ErrandOutput::Back { errand, came } => {
                self.outside = Outside::Nothing;
                news.returns.push((errand, came));
                self.read_inbox(&mut news, DRAIN_MAX).await?;
            }
        }
        self.advance(news).await
    }

    async fn write_words(&mut self) -> Result<(), Stop> {
        let Some(attempt) = self.outside.attempt_mut() else { return Ok(()) };
        let stories = attempt.unwritten();
        self.advance(StepInput { stories, ..StepInput::default() }).await
    }

    /// Decides, writes, and only then believes. The store may have seen more than we did: then it is decided again.
    async fn advance(&mut self, mut news: StepInput) -> Result<(), Stop> {
        // Nothing begins beside a chore, nor when the node goes down.
        let mut slot = match self.chore_slot(&news) {
            ChoreSlot::Taken => Slot::Unasked,
            ChoreSlot::Free => Slot::Free,
        };
        let (mut limit, mut tries, mut waits) = (DRAIN_MAX, 0, BTreeSet::new());
        // A message whose sender may not say it any more takes a try of its own: however many wait, each goes once.
        while tries < ADVANCE_MAX + news.revoked.len() {
            tries += 1;
            let mut plan = self.plan(&news, slot);
            let begins = plan.begins.take();
            if plan.is_empty() {
                news.answer_confirmations(&plan);
                return self.follow_up(begins).await;
            }
            let credential = self.credential_for(&plan);
            let token = credential.as_ref().map(|credential| credential.row.clone());
            let append = Append { token, ..self.append_of(&plan).await? };
            let replies = append.replies.len();
            if plan.started_attempt().is_some() && !std::mem::take(&mut self.is_expected) {
                // While it is written that the attempt begins, whoever is kept for it shows that it is there.
                self.agent().inspect(|agent| agent.expect(self.session));
            }
            match self.append(append).await? {
                Appending::Done(at) => {
                    self.credential = credential.or(self.credential.take());
                    if replies > 0 {
                        self.engine.ports().outbox_bell.ring();
                    }
                    news.answer_confirmations(&plan);
                    self.believe(plan, at);
                    if news.chore_over.is_some() {
                        self.outside = Outside::Nothing;
                    }
                    return self.follow_up(begins).await;
                }
                Appending::Fenced => return Err(Stop::Fenced),
                Appending::Moved { .. } => return Err(Stop::Moved),
                Appending::Undrained => {
                    limit *= 4;
                    self.read_inbox(&mut news, limit).await?;
                }
                // Say that we wait, then ask once more: what becomes free from now on is offered to us, and what became
                // free before is seen.
                Appending::Claimed(claim) if waits.insert(claim.clone()) => {
                    self.engine.cluster().wait_for(claim, self.session);
                }
                Appending::Claimed(claim) => {
                    news.crowded_by = self.holder_of(&claim).await?;
                    slot = Slot::Taken;
                }
                Appending::Revoked(message) if news.revoked.contains(&message) => {}
                Appending::Revoked(message) => news.revoked.push(message),
                Appending::TooManyWords { used } => self.cut_off(&mut news, used),
            }
        }
        Err(Stop::Moved)
    }

    /// The owner of the session has no room left for what the agent says: none of it is written down from here on, and the
    /// turn fails with the reason.
    fn cut_off(&mut self, news: &mut StepInput, used: u64) {
        let why = too_many_words(used, self.engine.limits().words_bytes_per_person_max);
        news.stories.clear();
        let Some(attempt) = self.outside.attempt_mut() else { return };
        attempt.cut_off(why.clone());
        let Some((fence, last)) = news.reports.iter_mut().find(|(_, report)| plan::is_last(report)) else {
            return; // Its runner is told, and reports that.
        };
        // An answer of which a part is missing is none.
        if let Report::Finished { .. } = last {
            *last = Report::Failed(Failure::Refused);
        }
        news.stories.push(Story::Notice { text: &why }.entry(fence.turn));
    }

    /// While nothing can be written, a turn that runs is not given up: the agent waits with us. Nor is a chore.
    async fn append(&self, append: Append) -> Result<Appending, Stop> {
        let (mut wait, longest) = AGAIN;
        loop {
            let error = match self.engine.store().append(append.clone()).await {
                Ok(appending) => return Ok(appending),
                Err(error) => error,
            };
            match error {
                StoreError::Full | StoreError::Unavailable(_) if self.waits_to_write() => {
                    tracing::warn!(session = %self.session, %error, "writing again in a moment");
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(longest);
                }
                error => return Err(Stop::Store(error)),
            }
        }
    }

    fn waits_to_write(&self) -> bool {
        // What a chore has come to is not done once more because it could not be written down.
        let goes_on = matches!(self.outside, Outside::Attempt(_) | Outside::Chore(_));
        self.phase == Phase::Keeping && goes_on
    }

    async fn follow_up(&mut self, begins: Option<ChoreRow>) -> Result<(), Stop> {
        match begins {
            Some(chore) => self.begin_chore(chore).await,
            None => Ok(()),
        }
    }

    /// It is durable: now it is so, and everybody may hear it.
    fn believe(&mut self, plan: Plan, at: Number) {
        let (engine, first) = (self.engine.clone(), self.at);
        let cluster = engine.cluster();
        self.at = at;
        let (had, has) = (self.claims(&self.state), self.claims(&plan.after));
        if has.iter().any(|claim| !had.contains(claim)) {
            cluster.served(self.session);
        }
        self.rules += plan.facts.iter().filter(|fact| matches!(fact.entry, Entry::Rule(_))).count();
        self.state = plan.after;
        if let Some(owner) = plan.owner {
            self.owner = owner;
            // A process that was kept runs as somebody else's user.
            self.former_agents.extend(self.agent().map(|agent| (agent, OTHER_OWNER)));
        }
        self.follow_scope();
        let stored = plan.facts.into_iter().enumerate();
        let stored = stored.map(|(index, fact)| plan::stored(Number(first.0 + 1 + index as u64), fact));
        cluster.tell(Happened::Facts(self.session, stored.collect()));
        if !plan.finals.is_empty() {
            cluster.tell(Happened::Final(plan.finals));
        }
        if !plan.verdicts.is_empty() {
            cluster.tell(Happened::Verdicts(plan.verdicts));
        }
        if !plan.own_acts.is_empty() {
            self.engine.audited();
        }
        if let Some(moment) = plan.wake_at {
            self.engine.timer().expect(moment);
        }
        for claim in had.iter().filter(|claim| !has.contains(claim)) {
            cluster.freed(claim);
        }
    }

    fn follow_scope(&mut self) {
        let Some(scope) = self.state.scope().filter(|scope| **scope != self.scope).cloned() else { return };
        // A process that was kept is in the scope of then, and so is what runs in its background.
        self.former_agents.extend(self.agent().map(|agent| (agent, OTHER_SCOPE)));
        self.scope = scope;
    }

    /// The claims that the session holds while it is as it is: its sender's, its org's, and its directory's. The one that it
    /// has for itself, too: its forks work there where there is no tree to make them one from.
    fn claims(&self, state: &Session) -> Vec<Claim> {
        let mut claims = state.claims();
        if self.engine.limits().shared_directories
            && let Some(scope) = state.scope()
        {
            claims.retain(|claim| *claim != Claim::directory(&scope.directory));
        }
        if state.running().is_some() {
            claims.push(Claim::org_slot(self.org));
        }
        claims
    }

    fn agent(&self) -> Option<std::sync::Arc<dyn Agent>> {
        self.engine.agents_by_name().get(&self.scope.agent).cloned()
    }

    /// Waits until nothing goes on outside, so that nothing of it comes up after the next keeper has looked.
    async fn part(&mut self) {
        match std::mem::replace(&mut self.outside, Outside::Nothing) {
            Outside::Nothing => {}
            Outside::Errand(errand) => errand.part().await,
            Outside::Chore(chore) => chore.part().await,
            Outside::Attempt(attempt) => {
                let grace = Duration::from_millis(self.engine.limits().stop_grace_ms);
                if tokio::time::timeout(grace + PART_MAX, attempt.runner.part()).await.is_err() {
                    tracing::warn!(session = %self.session, "a runner does not end; the next keeper ends what is left of it");
                }
            }
        }
    }

    async fn rest(&mut self) {
        self.engine.cluster().pass_on(self.session);
        self.release_kept().await;
        if self.state.ended().is_some() {
            self.engine.roster().forget_told(self.session);
            self.release().await;
        } else {
            self.engine.roster().remember_told(self.session, self.told.clone());
        }
        if self.rules < CHECKPOINT_FACTS {
            return;
        }
        if let Some(facts) = self.state.condense()
            && let Err(error) = self.engine.store().checkpoint(self.session, self.at, facts).await
        {
            tracing::debug!(session = %self.session, %error, "no checkpoint this time");
        }
    }

    /// Nothing runs in a session that has ended: a process that was kept for its next turn goes.
    async fn release(&self) {
        if let Some(agent) = self.agent() {
            self.release_from(&*agent, SESSION_ENDED).await;
        }
    }

    /// Lets go of what was kept for another scope's or another owner's next turn.
    async fn release_kept(&mut self) {
        for (agent, why) in std::mem::take(&mut self.former_agents) {
            self.release_from(&*agent, why).await;
        }
    }

    async fn release_from(&self, agent: &dyn Agent, why: &'static str) {
        match tokio::time::timeout(RELEASE_MAX, agent.release(self.session)).await {
            Ok(ended) if ended.is_empty() => {}
            Ok(ended) => self.engine.tell_notice(self.session, background::ended_words(&ended, why)),
            Err(_) => {
                tracing::warn!(session = %self.session, agent = agent.name(), "a process that is kept does not go");
            }
        }
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// The messages that were unfinished in one state and are not in another.
fn finished_between(known: &BTreeSet<MessageId>, after: &Session) -> BTreeSet<MessageId> {
    let still = plan::unfinished(after);
    known.difference(&still).copied().collect()
}

/// The cause that is written with the facts that an inbox row leads to.
fn cause_of_item(item: &InboxItem) -> Cause {
    match item {
        InboxItem::Say { message, .. } => Cause::Message(*message),
        InboxItem::Request { id, .. } => Cause::Request(*id),
        InboxItem::Wake => Cause::Timer,
        InboxItem::Recheck { .. } | InboxItem::HandOver { .. } => Cause::Keeper,
    }
}

/// The person whose rights have changed.
fn rechecked(item: &InboxItem) -> Option<PersonId> {
    match item {
        InboxItem::Recheck { person } => Some(*person),
        InboxItem::Say { .. } | InboxItem::Request { .. } | InboxItem::Wake | InboxItem::HandOver { .. } => {
            None
        }
    }
}

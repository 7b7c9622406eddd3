//! The one loop that may write a session's log.
//!
//! A keeper reads the log once, then lives in a loop: `drain` the inbox, `hear` what the agent says, let the kernel
//! decide, append, and make the outside match `due`. Starting after a crash is the same loop; there is no recovery
//! code. On an error a keeper dies, and the next one reads the log. When nothing is under way it goes, and the session
//! costs rows and no memory. `Keepers` sees to it that there is one at a time on this node.

mod calling;
mod chores;
mod hear;
mod judge;
mod memory;
mod outside;
mod plan;
mod registry;

use crate::Engine;
use crate::errand::{Outing, Word};
use crate::roster::Told;
use crate::story::{Progress, Words};
use crate::turn::{Heard, Runner};
use agent::Agent;
use kernel::{Claim, MessageId, Number, PersonId, Session, SessionId, Slot, Term};
pub(crate) use memory::Forking;
use plan::{News, Plan};
use registry::Place;
pub(crate) use registry::{Brought, Keepers};
use std::collections::BTreeSet;
use store::{Append, Appending, Cause, Entry, InboxItem, StoreError};
use tokio::time::{Duration, Instant};

/// Inbox rows taken at once.
const DRAIN_MAX: usize = 256;
/// Things a runner said that are written in one append.
const HEAR_MAX: usize = 32;
/// Times one step is decided again because the store saw something else than we did.
const ADVANCE_MAX: usize = 64;
/// Rule facts after which a dormant session gets a new checkpoint.
const CHECKPOINT_FACTS: usize = 128;
/// The first wait after an error, and the longest.
const AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// How long messages that only queue may stay in the inbox of a session whose turn is under way. They are as safe there;
/// whatever cannot wait (a stop, an edit) takes them along at once.
const SOON: Duration = Duration::from_millis(50);
/// How long a dead keeper's runner may take to end, on top of the agent's own grace.
const PART_MAX: Duration = Duration::from_secs(5);

/// How long a kept process that nobody needs any more may take to go.
const RELEASE_MAX: Duration = Duration::from_secs(30);

/// Why a keeper stops before its session rests.
#[derive(Debug)]
enum Stop {
    /// Another keeper has the session.
    Fenced,
    /// What we know is not what is stored: read the log again.
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
    /// Where and how the session acts; what it was made with, until its first fact is written.
    scope: kernel::Scope,
    origin: Option<kernel::Origin>,
    enter: Option<kernel::NewWorktree>,
    term: Term,
    at: Number,
    state: Session,
    /// Rule facts since the last checkpoint.
    rules: usize,
    runner: Option<Runner>,
    outing: Option<Outing>,
    /// The agent that was there before another one, until what it keeps for this session is gone.
    before: Option<std::sync::Arc<dyn Agent>>,
    /// The run of words that grows, and when its first unwritten word was heard.
    words: Option<Words>,
    unwritten_since: Option<Instant>,
    parts: u32,
    /// What tools print while they run.
    progress: Progress,
    /// How the attempt was started, until the first thing is heard of it.
    preface: Vec<Entry>,
    /// What was said before, for an agent that does not know it, until it is handed over.
    preamble: Option<String>,
    /// The directory that was seen not to be under version control.
    untracked: Option<String>,
    /// The attempt's credential for calling back, while it is being written down.
    credential: Option<calling::Written>,
    /// What was told last of how it was started and what the agent says of itself.
    told: Told,
    /// Whether somebody has called since the inbox was last looked at.
    called: bool,
    /// When to look because of what can wait a little.
    look_at: Option<Instant>,
    closing: bool,
}

/// Keeps one session until it rests, another keeper has it, or the node goes down.
pub(crate) async fn keep(engine: Engine, place: Place) {
    let (mut wait, longest) = AGAIN;
    loop {
        let stop = match Keeper::open(&engine, place.session()).await {
            Ok(Some(mut keeper)) => match keeper.live(&place).await {
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
            Stop::Fenced | Stop::Closed => return place.leave(),
            Stop::Moved => engine.fanout().cut(place.session()),
            Stop::Store(StoreError::Damaged(cause)) => {
                tracing::error!(session = %place.session(), cause, "this session cannot be kept");
                return place.leave();
            }
            Stop::Store(error) => {
                tracing::warn!(session = %place.session(), %error, "keeping again in a moment");
                if let StoreError::Unknown(_) = error {
                    // It may be written, with what we did by ourselves.
                    engine.audited();
                    engine.fanout().cut(place.session());
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
            scope: state.scope().cloned().unwrap_or(loaded.scope),
            origin: loaded.origin,
            enter: loaded.enter,
            term: engine.keepers().lease().next(),
            at: loaded.at,
            state,
            rules: loaded.since_checkpoint,
            runner: None,
            outing: None,
            before: None,
            words: None,
            unwritten_since: None,
            parts: 0,
            progress: Progress::default(),
            preface: Vec::new(),
            preamble: None,
            untracked: None,
            credential: None,
            told: engine.roster().told(session),
            called: true,
            look_at: None,
            closing: false,
        }))
    }

    async fn live(&mut self, place: &Place) -> Result<(), Stop> {
        loop {
            while self.called {
                place.hush();
                self.look_at = None;
                self.called = self.drain().await?;
            }
            self.do_chores(place).await?;
            self.match_outside().await?;
            if self.closing {
                self.runner.iter_mut().for_each(Runner::stop);
                self.leave_errand().await;
            }
            if self.runner.is_some() || self.outing.is_some() {
                self.wait(place).await?;
            } else if self.closing {
                return Err(Stop::Closed);
            } else if place.rest() {
                self.rest().await;
                return Ok(());
            } else {
                self.called = true; // Somebody called while we wanted to rest.
            }
        }
    }

    async fn wait(&mut self, place: &Place) -> Result<(), Stop> {
        let (runner, outing) = (&mut self.runner, &mut self.outing);
        let cut_at = self.unwritten_since.map(|since| since + self.engine.words_wait());
        let cut_at = cut_at.into_iter().chain(self.progress.cut_at()).min();
        tokio::select! {
            biased;
            heard = heard_of(runner) => self.hear(heard).await?,
            word = word_from(outing) => self.hear_errand(word).await?,
            () = until(cut_at) => self.write_words().await?,
            () = place.called() => self.called = true,
            () = place.whispered(), if self.look_at.is_none() => {}
            () = until(self.look_at) => {}
            () = place.closing(), if !self.closing => {}
        }
        // An agent that never stops talking must not keep us from hearing anybody else.
        self.called |= place.was_called();
        if place.is_whispered() {
            let now = Instant::now();
            self.called |= *self.look_at.get_or_insert(now + SOON) <= now;
        }
        self.closing |= place.is_closing();
        Ok(())
    }

    /// Turns everything in the inbox into facts. The queue is state, never the inbox.
    async fn drain(&mut self) -> Result<bool, Stop> {
        let brought = self.engine.keepers().brought(self.session);
        let mut news = News { brought, ..News::default() };
        self.read_inbox(&mut news, DRAIN_MAX).await?;
        let more = news.rows.len() == DRAIN_MAX;
        self.advance(news).await?;
        Ok(more)
    }

    /// What is in the inbox; and of whoever may do something else than before, what they may no longer say.
    async fn read_inbox(&self, news: &mut News, limit: usize) -> Result<(), Stop> {
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
        Ok(())
    }

    /// Takes what the runner said, and whatever else it has said already.
    async fn hear(&mut self, first: Option<Heard>) -> Result<(), Stop> {
        // A runner never goes without a report; if it does, it panicked, and the next keeper buries it.
        let first = first.ok_or(Stop::Moved)?;
        let mut news = News::default();
        self.take_in(first, &mut news).await?;
        // What comes after a report depends on what is decided about it.
        for _ in 1..HEAR_MAX {
            if !news.reports.is_empty() || !news.questions.is_empty() {
                break;
            }
            let Some(Ok(heard)) = self.runner.as_mut().map(|runner| runner.heard.try_recv()) else { break };
            self.take_in(heard, &mut news).await?;
        }
        self.advance(news).await
    }

    /// What an errand prints, and how it went.
    async fn hear_errand(&mut self, word: Word) -> Result<(), Stop> {
        let mut news = News::default();
        match word {
            Word::Story(story) => news.stories.push(*story),
            Word::Back { errand, came } => {
                self.outing = None;
                news.returns.push((errand, came));
            }
        }
        self.advance(news).await
    }

    /// The node goes down: the next keeper does it again.
    async fn leave_errand(&mut self) {
        if let Some(outing) = self.outing.take() {
            outing.part().await;
        }
    }

    async fn write_words(&mut self) -> Result<(), Stop> {
        let news = self.unwritten();
        self.advance(news).await
    }

    /// Decides, writes, and only then believes. The store may have seen more than we did: then it is decided again.
    async fn advance(&mut self, mut news: News) -> Result<(), Stop> {
        let mut slot = if self.closing { Slot::Unasked } else { Slot::Free };
        let (mut limit, mut tries, mut waits) = (DRAIN_MAX, 0, BTreeSet::new());
        // A message whose sender may not say it any more takes a try of its own: however many wait, each goes once.
        while tries < ADVANCE_MAX + news.revoked.len() {
            tries += 1;
            let plan = self.plan(&news, slot);
            if plan.is_empty() {
                news.tell_fresh(&plan);
                return Ok(());
            }
            let append = self.append_of(&plan).await?;
            match self.append(append).await? {
                Appending::Done(at) => {
                    news.tell_fresh(&plan);
                    self.believe(plan, at);
                    return Ok(());
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
                    self.engine.wait_for(claim, self.session);
                }
                Appending::Claimed(claim) => {
                    news.crowded_by = self.holder_of(&claim).await?;
                    slot = Slot::Taken;
                }
                Appending::Revoked(message) if news.revoked.contains(&message) => {}
                Appending::Revoked(message) => news.revoked.push(message),
            }
        }
        Err(Stop::Moved)
    }

    /// While nothing can be written, a turn that runs is not given up: the agent waits with us.
    async fn append(&self, append: Append) -> Result<Appending, Stop> {
        let (mut wait, longest) = AGAIN;
        loop {
            let error = match self.engine.store().append(append.clone()).await {
                Ok(appending) => return Ok(appending),
                Err(error) => error,
            };
            match error {
                StoreError::Full | StoreError::Unavailable(_) if self.runner.is_some() && !self.closing => {
                    tracing::warn!(session = %self.session, %error, "writing again in a moment");
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(longest);
                }
                error => return Err(Stop::Store(error)),
            }
        }
    }

    /// It is durable: now it is so, and everybody may hear it.
    fn believe(&mut self, plan: Plan, at: Number) {
        let first = self.at;
        self.at = at;
        let (had, has) = (self.claims(&self.state), self.claims(&plan.after));
        if has.iter().any(|claim| !had.contains(claim)) {
            self.engine.keepers().served(self.session);
        }
        self.rules += plan.facts.iter().filter(|fact| matches!(fact.entry, Entry::Rule(_))).count();
        self.state = plan.after;
        self.follow_scope();
        let stored = plan.facts.into_iter().enumerate();
        let stored = stored.map(|(index, fact)| plan::stored(Number(first.0 + 1 + index as u64), fact));
        self.engine.fanout().tell_facts(self.session, stored);
        self.engine.fanout().tell_final(&plan.finals);
        self.engine.fanout().tell_verdicts(&plan.verdicts);
        if !plan.own_acts.is_empty() {
            self.engine.audited();
        }
        if let Some(moment) = self.state.wake_at(self.term) {
            self.engine.timer().expect(moment);
        }
        for claim in had.iter().filter(|claim| !has.contains(claim)) {
            self.engine.wake_crowded(claim);
        }
    }

    fn follow_scope(&mut self) {
        let Some(scope) = self.state.scope().filter(|scope| **scope != self.scope).cloned() else { return };
        if scope.agent != self.scope.agent {
            self.before = self.before.take().or_else(|| self.agent());
        }
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

    /// Waits for its runner to end, so that nothing of it comes up after the next keeper has looked.
    async fn part(&mut self) {
        self.leave_errand().await;
        if let Some(runner) = self.runner.take() {
            let grace = Duration::from_millis(self.engine.limits().stop_grace_ms);
            if tokio::time::timeout(grace + PART_MAX, runner.part()).await.is_err() {
                tracing::warn!(session = %self.session, "a runner does not end; the next keeper buries it");
            }
        }
    }

    async fn rest(&mut self) {
        self.engine.pass_on(self.session);
        self.release_before().await;
        if self.state.ended().is_some() {
            self.engine.roster().forget_told(self.session);
            self.release().await;
        } else {
            self.engine.roster().remember_told(self.session, self.told);
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
            self.release_from(&*agent).await;
        }
    }

    /// The agent that was there before has nothing to keep for this session.
    async fn release_before(&mut self) {
        if let Some(agent) = self.before.take() {
            self.release_from(&*agent).await;
        }
    }

    async fn release_from(&self, agent: &dyn Agent) {
        if tokio::time::timeout(RELEASE_MAX, agent.release(self.session)).await.is_err() {
            tracing::warn!(session = %self.session, agent = agent.name(), "a process that is kept does not go");
        }
    }
}

async fn heard_of(runner: &mut Option<Runner>) -> Option<Heard> {
    match runner {
        Some(runner) => runner.heard.recv().await,
        None => std::future::pending().await,
    }
}

async fn word_from(outing: &mut Option<Outing>) -> Word {
    match outing {
        Some(outing) => outing.next().await,
        None => std::future::pending().await,
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

/// For messages of facts: what they followed from.
fn cause_of_item(item: &InboxItem) -> Cause {
    match item {
        InboxItem::Say { message, .. } => Cause::Message(*message),
        InboxItem::Request { id, .. } => Cause::Request(*id),
        InboxItem::Wake => Cause::Timer,
        InboxItem::Recheck { .. } => Cause::Keeper,
    }
}

/// Who may do something else than before.
fn rechecked(item: &InboxItem) -> Option<PersonId> {
    match item {
        InboxItem::Recheck { person } => Some(*person),
        InboxItem::Say { .. } | InboxItem::Request { .. } | InboxItem::Wake => None,
    }
}

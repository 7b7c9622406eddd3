//! The in-process agent as a daemon meets it: slow to start, hard to end, and watched.
//!
//! It judges law 13 in the moment: no start before `AttemptStarted` is durable, no word handed over before `Handed` is, none
//! said into a turn before `Steered` is; and no agent is given a conversation of another's. Some planted bugs are lies
//! told here.

use crate::bug::Bug;
use crate::dice::Dice;
use crate::forecast::SteerOdds;
use crate::grove::Grove;
use crate::notes::Launched;
use crate::weather::Sky;
use agent::{
    Abilities, Agent, AgentEvent, Did, EndedLeftovers, House, InProcess, Launch, MemoryMove, Message, Noted,
    Presence, QuestionAnswer, Reply, Running, Setup, Steered, TreeEnd, TreeName, Trouble,
};
use engine::Clock;
use kernel::{Fact, Failure, Fence, MessageId, Native, SessionId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::{Log, MemoryStore};

/// The agent's word about a question that it took back.
pub(crate) const TAKEN_BACK: &str = "never mind";

/// The longest that words for a running turn are on their way.
const STEER_MS_MAX: u64 = 800;

/// The kind of agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentKind {
    /// It forks, takes words while it works, and remembers wherever it is.
    Able,
    /// It does none of that.
    Plain,
}

/// An agent of all daemons of a story.
pub(crate) struct Leash {
    kind: AgentKind,
    inner: InProcess,
    house: Arc<House>,
    seen: Arc<Witness>,
}

/// Looks at the store behind the weather's back.
struct Witness {
    sky: Arc<Sky>,
    store: MemoryStore,
    grove: Arc<Grove>,
    steering: SteerOdds,
    dice: Mutex<Dice>,
    /// The end of the last attempt of a session, for a planted bug.
    ended: Mutex<BTreeMap<SessionId, Option<Native>>>,
}

impl Leash {
    pub(crate) fn new(
        kind: AgentKind,
        house: Arc<House>,
        store: MemoryStore,
        grove: Arc<Grove>,
        sky: Arc<Sky>,
        steering: Option<(SteerOdds, Dice)>,
    ) -> Self {
        let (steering, dice) = steering.unwrap_or_else(|| (SteerOdds::default(), Dice::new(0)));
        let (dice, ended) = (Mutex::new(dice), Mutex::default());
        Self {
            kind,
            inner: InProcess::new(house.clone()),
            house,
            seen: Arc::new(Witness { sky, store, grove, steering, dice, ended }),
        }
    }

    /// Its memory of the conversation does not always come along into another directory.
    fn leaves_behind(&self, launch: &Launch) {
        let Some(native) = launch.native.as_ref().filter(|_| !launch.fork) else { return };
        let made = self.seen.sky.notes.seen().natives.get(native).cloned();
        let moved = made.is_some_and(|(_, directory)| launch.directory != *directory.as_str());
        if moved && self.seen.strikes(|odds| odds.left_behind) {
            self.seen.sky.notes.tell(|| format!("      agent: has left {} behind", native.id));
            self.house.lose(native);
        }
    }

    /// No agent is given what another one calls a conversation, nor one that cannot follow.
    fn may_resume(&self, launch: &Launch) {
        let Some(native) = &launch.native else { return };
        let notes = &self.seen.sky.notes;
        let made = notes.seen().natives.get(native).cloned();
        let directory = launch.directory.for_readers();
        let fits = made.as_ref().is_some_and(|(agent, made_in)| {
            agent == self.name() && (self.kind == AgentKind::Able || *made_in == directory)
        });
        if !fits {
            let how = format!("{} in {directory} is given {} of {made:?}", self.name(), native.id);
            notes.broken("an agent is given its own conversations", how);
        }
    }

    /// The launch that is really started: a planted bug may have another place or another model.
    fn misled(&self, mut launch: Launch) -> Launch {
        let sky = &self.seen.sky;
        if sky.lies(Bug::EnteredUnwritten, 500) {
            let grown = self.seen.grove.grown();
            let made = grown.worktrees.iter().filter(|((session, _), _)| *session == launch.session);
            made.for_each(|(_, directory)| launch.directory = directory.as_str().into());
        }
        if sky.lies(Bug::ModelForgotten, 500) {
            launch.model = None;
        }
        launch
    }

    fn note(&self, launch: &Launch) {
        self.seen.sky.notes.seen().launches.push(Launched {
            agent: self.name().to_owned(),
            session: launch.session,
            fence: launch.fence,
            directory: launch.directory.for_readers().to_owned(),
            model: launch.model.clone(),
            mode: launch.mode.clone(),
            native: launch.native.clone(),
            is_fork: launch.fork,
        });
    }

    /// Some agents write a new conversation down only a while after its first message: killed before, they lost it.
    fn forgets(&self, native: &Native) {
        let finished = |noted: &Noted| noted.did == Did::Finished && noted.native.as_ref() == Some(native);
        let sky = &self.seen.sky;
        if !self.house.noted().iter().any(finished) && sky.strikes(|odds| odds.unkept) {
            sky.notes.tell(|| format!("      agent: has not kept {}", native.id));
            self.house.lose(native);
        }
    }
}

impl Witness {
    /// The durable facts of the session's last attempt: its start, and what came after.
    async fn attempt(&self, session: SessionId, fence: Fence) -> Option<Vec<Fact>> {
        let facts = self.store.load(session).await.ok()??.facts;
        let started = |fact: &Fact| matches!(fact, Fact::AttemptStarted { fence: f, .. } if *f == fence);
        let at = facts.iter().position(started)?;
        Some(facts[at..].to_vec())
    }

    async fn may_start(&self, session: SessionId, fence: Fence) {
        self.sky.notes.tell(|| format!("      agent: start {fence}"));
        if self.attempt(session, fence).await.is_none() {
            self.sky.notes.broken("AttemptStarted is durable before the start", format!("{session} {fence}"));
        }
    }

    async fn may_hand(&self, session: SessionId, fence: Fence) {
        self.sky.notes.tell(|| format!("      agent: hand {fence}"));
        let handed = |fact: &Fact| matches!(fact, Fact::Handed { turn, attempt } if *turn == fence.turn && *attempt == fence.attempt);
        if !self.attempt(session, fence).await.is_some_and(|facts| facts.iter().any(handed)) {
            self.sky.notes.broken("Handed is durable before the words leave", format!("{session} {fence}"));
        }
    }

    async fn may_steer(&self, session: SessionId, fence: Fence, message: MessageId) {
        self.sky.notes.tell(|| format!("      agent: {message} into {fence}"));
        let steered = |fact: &Fact| matches!(fact, Fact::Steered { message: m, turn } if *m == message && *turn == fence.turn);
        if !self.attempt(session, fence).await.is_some_and(|facts| facts.iter().any(steered)) {
            self.sky.notes.broken("Steered is durable before the words leave", format!("{session} {fence}"));
        }
    }

    fn strikes(&self, odds: impl Fn(&SteerOdds) -> u64) -> bool {
        let odds = odds(&self.steering);
        odds > 0 && !self.sky.is_clear() && self.roll(|dice| dice.chance(odds))
    }

    fn roll<T>(&self, roll: impl FnOnce(&mut Dice) -> T) -> T {
        roll(&mut self.dice.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn late_end(&self, session: SessionId) -> Option<AgentEvent> {
        if !self.sky.lies(Bug::StaleApplied, 500) {
            return None;
        }
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.remove(&session).map(|native| AgentEvent::Finished { native, reason: String::new() })
    }

    fn hears(&self, session: SessionId, event: AgentEvent) -> AgentEvent {
        match event {
            AgentEvent::Finished { native, reason } => {
                let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
                ended.insert(session, native.clone());
                AgentEvent::Finished { native, reason }
            }
            AgentEvent::Failed(trouble) if self.sky.lies(Bug::GoneForTransient, 1_000) => {
                AgentEvent::Failed(Trouble { failure: Failure::Gone, ..trouble })
            }
            other => other,
        }
    }
}

impl Agent for Leash {
    fn name(&self) -> &str {
        match self.kind {
            AgentKind::Able => self.inner.name(),
            AgentKind::Plain => "plain",
        }
    }

    fn abilities(&self) -> Abilities {
        let all = self.inner.abilities();
        match self.kind {
            AgentKind::Able => all,
            AgentKind::Plain => Abilities { fork: false, steer: false, memory: MemoryMove::Replay, ..all },
        }
    }

    fn look(&self) -> Reply<'_, Presence> {
        self.inner.look()
    }

    fn setup(&self) -> Setup {
        self.inner.setup()
    }

    fn start(&self, launch: Launch) -> Reply<'_, Result<Box<dyn Running>, Trouble>> {
        Box::pin(async move {
            if self.seen.sky.strikes(|odds| odds.slow_agent) {
                self.seen.sky.dawdle().await;
            }
            let (session, fence) = (launch.session, launch.fence);
            self.seen.may_start(session, fence).await;
            launch.native.iter().for_each(|native| self.forgets(native));
            self.leaves_behind(&launch);
            self.may_resume(&launch);
            let launch = self.misled(launch);
            self.note(&launch);
            let (agent, directory) = (self.name().to_owned(), launch.directory.for_readers().to_owned());
            let inner = self.inner.start(launch).await?;
            let seen = self.seen.clone();
            let (has_words, regrets) = (false, None);
            let running = OnLeash { inner, seen, agent, directory, session, fence, has_words, regrets };
            Ok(Box::new(running) as Box<dyn Running>)
        })
    }

    fn end_leftovers(&self, tree: TreeName) -> Reply<'_, Result<EndedLeftovers, Trouble>> {
        Box::pin(async move {
            let sky = &self.seen.sky;
            if sky.strikes(|odds| odds.slow_agent) {
                sky.dawdle().await;
            }
            if sky.strikes(|odds| odds.ending_fails) {
                return Err(Trouble::transient("it cannot be seen yet"));
            }
            sky.notes.tell(|| format!("      agent: bury {tree}"));
            if sky.lies(Bug::LeaveLeftovers, 1_000) {
                return Ok(EndedLeftovers { killed: 0 });
            }
            self.inner.end_leftovers(tree).await
        })
    }
}

struct OnLeash {
    inner: Box<dyn Running>,
    seen: Arc<Witness>,
    agent: String,
    directory: String,
    session: SessionId,
    fence: Fence,
    has_words: bool,
    /// A question that it will take back, and answer for itself.
    regrets: Option<String>,
}

impl OnLeash {
    /// Notes whose conversation it is.
    fn note_native(&self, event: &AgentEvent) {
        if let AgentEvent::Ready { native: Some(native) }
        | AgentEvent::Finished { native: Some(native), .. } = event
        {
            let made = (self.agent.clone(), self.directory.clone());
            self.seen.sky.notes.seen().natives.entry(native.clone()).or_insert(made);
        }
    }

    fn note_asked(&self, event: &AgentEvent) {
        let AgentEvent::Asked { tool, .. } = event else { return };
        let notes = &self.seen.sky.notes;
        let (now, elapsed_ms) = (notes.clock.now(), notes.clock.elapsed_ms());
        let book = &mut notes.seen().rulebook;
        let at = book.at(now, elapsed_ms);
        book.hear(self.session, self.fence, tool, at);
    }

    fn note_given(&self, message: MessageId, into_turn: bool) {
        self.seen.sky.notes.seen().given.push((self.session, message, self.fence, into_turn));
    }

    /// The agent changes its mind about what it asked, after a while; for itself it takes that as a no.
    async fn take_back(&mut self) -> Option<AgentEvent> {
        self.regrets.as_ref()?;
        // Whoever stops waiting meanwhile asks again: nothing is given away before the end.
        self.seen.sky.dawdle().await;
        let question = self.regrets.take()?;
        let reason = TAKEN_BACK.to_owned();
        let _ = self.inner.answer(&question, QuestionAnswer::Deny { reason }).await;
        self.seen.sky.notes.tell(|| format!("      agent: takes back {question}"));
        Some(AgentEvent::Withdrawn { question })
    }
}

impl Running for OnLeash {
    fn next(&mut self) -> Reply<'_, AgentEvent> {
        Box::pin(async move {
            if self.has_words
                && let Some(late) = self.seen.late_end(self.session)
            {
                return late;
            }
            if let Some(back) = self.take_back().await {
                return back;
            }
            let event = self.inner.next().await;
            self.note_native(&event);
            self.note_asked(&event);
            if let AgentEvent::Asked { question, .. } = &event
                && self.seen.sky.strikes(|odds| odds.takes_back)
            {
                self.regrets = Some(question.clone());
            }
            self.seen.hears(self.session, event)
        })
    }

    fn hand(&mut self, message: Message) -> Reply<'_, Result<(), Trouble>> {
        Box::pin(async move {
            self.seen.may_hand(self.session, self.fence).await;
            self.has_words = true;
            self.note_given(message.id, false);
            self.seen.grove.work(&self.directory, self.session, self.fence);
            self.inner.hand(message).await
        })
    }

    fn steer(&mut self, message: Message) -> Reply<'_, Result<Steered, Trouble>> {
        Box::pin(async move {
            let id = message.id;
            self.seen.may_steer(self.session, self.fence, id).await;
            if self.seen.strikes(|odds| odds.slow) {
                let ms = self.seen.roll(|dice| dice.between(1, STEER_MS_MAX));
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
            if self.seen.strikes(|odds| odds.missed) {
                return Ok(Steered::TooLate);
            }
            let steered = self.inner.steer(message).await;
            if let Ok(Steered::Taken) = steered {
                self.note_given(id, true);
            }
            if self.seen.strikes(|odds| odds.unclear) {
                return Err(Trouble::transient("the answer got lost"));
            }
            if self.seen.sky.lies(Bug::SteeredTwice, 1_000) {
                return Ok(Steered::TooLate);
            }
            steered
        })
    }

    fn answer(&mut self, question: &str, answer: QuestionAnswer) -> Reply<'_, Result<(), Trouble>> {
        self.inner.answer(question, answer)
    }

    fn stop(&mut self, grace_ms: u64) -> Reply<'_, TreeEnd> {
        self.inner.stop(grace_ms)
    }
}

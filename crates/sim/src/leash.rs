//! The in-process agent as a daemon meets it: slow to start, hard to bury, and watched.
//!
//! It judges law 13 in the moment: no start before `AttemptStarted` is durable, no word handed over before `Handed` is.
//! Some planted bugs are lies told here.

use crate::bug::Bug;
use crate::weather::Sky;
use agent::{
    Abilities, Agent, AgentEvent, Answer, Buried, Did, Found, House, InProcess, Launch, Message, Noted,
    Reply, Running, Setup, TreeName, Trouble, Verified,
};
use kernel::{Fact, Failure, Fence, Native, SessionId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use store::{MemoryStore, Store};

/// What an agent says of a question that it took back.
pub(crate) const TAKEN_BACK: &str = "never mind";

/// The agent of all daemons of a story.
pub(crate) struct Leash {
    inner: InProcess,
    house: Arc<House>,
    seen: Arc<Witness>,
}

/// Looks at the store behind the weather's back.
struct Witness {
    sky: Arc<Sky>,
    store: MemoryStore,
    /// How the last attempt of a session ended, for a planted bug.
    ended: Mutex<BTreeMap<SessionId, Option<Native>>>,
}

impl Leash {
    pub(crate) fn new(house: Arc<House>, store: MemoryStore, sky: Arc<Sky>) -> Self {
        Self {
            inner: InProcess::new(house.clone()),
            house,
            seen: Arc::new(Witness { sky, store, ended: Mutex::default() }),
        }
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
        self.inner.name()
    }

    fn abilities(&self) -> Abilities {
        self.inner.abilities()
    }

    fn look(&self) -> Reply<'_, Found> {
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
            let inner = self.inner.start(launch).await?;
            let seen = self.seen.clone();
            Ok(Box::new(OnLeash { inner, seen, session, fence, has_words: false, regrets: None })
                as Box<dyn Running>)
        })
    }

    fn bury(&self, tree: TreeName) -> Reply<'_, Result<Buried, Trouble>> {
        Box::pin(async move {
            let sky = &self.seen.sky;
            if sky.strikes(|odds| odds.slow_agent) {
                sky.dawdle().await;
            }
            if sky.strikes(|odds| odds.bury_fails) {
                return Err(Trouble::transient("it cannot be seen yet"));
            }
            sky.notes.tell(|| format!("      agent: bury {tree}"));
            if sky.lies(Bug::BuryNothing, 1_000) {
                return Ok(Buried { killed: 0 });
            }
            self.inner.bury(tree).await
        })
    }
}

struct OnLeash {
    inner: Box<dyn Running>,
    seen: Arc<Witness>,
    session: SessionId,
    fence: Fence,
    has_words: bool,
    /// A question that it will take back, and answer for itself.
    regrets: Option<String>,
}

impl OnLeash {
    /// The agent changes its mind about what it asked, after a while; for itself it takes that as a no.
    async fn take_back(&mut self) -> Option<AgentEvent> {
        self.regrets.as_ref()?;
        // Whoever stops waiting meanwhile asks again: nothing is given away before the end.
        self.seen.sky.dawdle().await;
        let question = self.regrets.take()?;
        let reason = TAKEN_BACK.to_owned();
        let _ = self.inner.answer(&question, Answer::Deny { reason }).await;
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
            self.inner.hand(message).await
        })
    }

    fn answer(&mut self, question: &str, answer: Answer) -> Reply<'_, Result<(), Trouble>> {
        self.inner.answer(question, answer)
    }

    fn stop(&mut self, grace_ms: u64) -> Reply<'_, Verified> {
        self.inner.stop(grace_ms)
    }
}

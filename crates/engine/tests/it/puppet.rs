//! An agent that says what a test wrote down, in each of its turns, and notes what was done with it.

use agent::{
    Abilities, About, Agent, AgentEvent, Answer, Buried, Choice, Found, Launch, Message, Reply, Running,
    Setup, Steered, TreeName, Trouble, Verified,
};
use kernel::{Native, SessionId};
use std::collections::VecDeque;
use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

const GONE: Verified = Verified { killed: 0, gone: true };

/// The agent. Copies share their notes.
#[derive(Clone, Default)]
pub(crate) struct Puppet {
    pub(crate) says: Vec<AgentEvent>,
    pub(crate) setup: Setup,
    pub(crate) abilities: Abilities,
    /// What it calls a new conversation.
    pub(crate) native: Option<Native>,
    /// How long after it is ready it lists a command; none if it never does.
    pub(crate) lists_ms: Option<u64>,
    /// What it says to words that are added to its turn.
    pub(crate) steers: Option<Result<Steered, Trouble>>,
    /// How long asking for its version takes.
    pub(crate) look_ms: u64,
    pub(crate) notes: Arc<Notes>,
}

/// What was done with it.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) looks: AtomicUsize,
    pub(crate) launches: Mutex<Vec<Launch>>,
    /// What it was handed, and when.
    pub(crate) handed: Mutex<Vec<(String, Instant)>>,
    /// What was added to its turns.
    pub(crate) steered: Mutex<Vec<String>>,
    pub(crate) answers: Mutex<Vec<(String, Answer)>>,
    pub(crate) released: Mutex<Vec<SessionId>>,
    pub(crate) closed: AtomicUsize,
}

impl Agent for Puppet {
    fn name(&self) -> &str {
        "puppet"
    }

    fn abilities(&self) -> Abilities {
        self.abilities
    }

    fn look(&self) -> Reply<'_, Found> {
        Box::pin(async {
            let looks = self.notes.looks.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(self.look_ms)).await;
            Found::Here { version: format!("1.{looks}") }
        })
    }

    fn setup(&self) -> Setup {
        self.setup.clone()
    }

    fn start(&self, launch: Launch) -> Reply<'_, Result<Box<dyn Running>, Trouble>> {
        let native = launch.native.clone().or_else(|| self.native.clone());
        self.notes.launches.lock().unwrap().push(launch);
        let events = VecDeque::from([AgentEvent::Ready { native }]);
        let lists_at = self.lists_ms.map(|ms| Instant::now() + Duration::from_millis(ms));
        let (says, steers, notes) = (self.says.clone(), self.steers.clone(), self.notes.clone());
        let turn = Turn { events, lists_at, says, steers, notes };
        Box::pin(ready(Ok(Box::new(turn) as Box<dyn Running>)))
    }

    fn bury(&self, _: TreeName) -> Reply<'_, Result<Buried, Trouble>> {
        Box::pin(ready(Ok(Buried { killed: 0 })))
    }

    fn release(&self, session: SessionId) -> Reply<'_, ()> {
        self.notes.released.lock().unwrap().push(session);
        Box::pin(ready(()))
    }

    fn close(&self) -> Reply<'_, ()> {
        self.notes.closed.fetch_add(1, Ordering::Relaxed);
        Box::pin(ready(()))
    }
}

struct Turn {
    events: VecDeque<AgentEvent>,
    lists_at: Option<Instant>,
    says: Vec<AgentEvent>,
    steers: Option<Result<Steered, Trouble>>,
    notes: Arc<Notes>,
}

impl Running for Turn {
    fn next(&mut self) -> Reply<'_, AgentEvent> {
        if let Some(event) = self.events.pop_front() {
            return Box::pin(ready(event));
        }
        Box::pin(async {
            let Some(lists_at) = self.lists_at else { return std::future::pending().await };
            tokio::time::sleep_until(lists_at).await;
            self.lists_at = None;
            let command = Choice { name: "review".to_owned(), description: String::new() };
            AgentEvent::About(Box::new(About { commands: vec![command], ..About::default() }))
        })
    }

    fn hand(&mut self, message: Message) -> Reply<'_, Result<(), Trouble>> {
        self.notes.handed.lock().unwrap().push((message.text, Instant::now()));
        self.events.extend(self.says.drain(..));
        Box::pin(ready(Ok(())))
    }

    fn steer(&mut self, message: Message) -> Reply<'_, Result<Steered, Trouble>> {
        self.notes.steered.lock().unwrap().push(message.text);
        match self.steers.clone() {
            Some(said) => Box::pin(ready(said)),
            None => Box::pin(std::future::pending()),
        }
    }

    fn answer(&mut self, question: &str, answer: Answer) -> Reply<'_, Result<(), Trouble>> {
        self.notes.answers.lock().unwrap().push((question.to_owned(), answer));
        Box::pin(ready(Ok(())))
    }

    fn stop(&mut self, _: u64) -> Reply<'_, Verified> {
        self.events.push_back(AgentEvent::Died { detail: "stopped".to_owned(), verified: GONE });
        Box::pin(ready(GONE))
    }
}

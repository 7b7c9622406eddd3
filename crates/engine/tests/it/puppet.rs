//! An agent that says what a test wrote down, in each of its turns, and notes what was done with it.

use agent::{
    Abilities, Agent, AgentEvent, Answer, Buried, Found, Launch, Message, Reply, Running, Setup, TreeName,
    Trouble, Verified,
};
use kernel::SessionId;
use std::collections::VecDeque;
use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const GONE: Verified = Verified { killed: 0, gone: true };

/// The agent. Copies share their notes.
#[derive(Clone, Default)]
pub(crate) struct Puppet {
    pub(crate) says: Vec<AgentEvent>,
    pub(crate) setup: Setup,
    /// How long asking for its version takes.
    pub(crate) look_ms: u64,
    pub(crate) notes: Arc<Notes>,
}

/// What was done with it.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) looks: AtomicUsize,
    pub(crate) launches: Mutex<Vec<Launch>>,
    pub(crate) answers: Mutex<Vec<(String, Answer)>>,
    pub(crate) released: Mutex<Vec<SessionId>>,
    pub(crate) closed: AtomicUsize,
}

impl Agent for Puppet {
    fn name(&self) -> &str {
        "puppet"
    }

    fn abilities(&self) -> Abilities {
        Abilities::default()
    }

    fn look(&self) -> Reply<'_, Found> {
        Box::pin(async {
            let looks = self.notes.looks.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(std::time::Duration::from_millis(self.look_ms)).await;
            Found::Here { version: format!("1.{looks}") }
        })
    }

    fn setup(&self) -> Setup {
        self.setup.clone()
    }

    fn start(&self, launch: Launch) -> Reply<'_, Result<Box<dyn Running>, Trouble>> {
        self.notes.launches.lock().unwrap().push(launch);
        let events = VecDeque::from([AgentEvent::Ready { native: None }]);
        let turn = Turn { events, says: self.says.clone(), notes: self.notes.clone() };
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
    says: Vec<AgentEvent>,
    notes: Arc<Notes>,
}

impl Running for Turn {
    fn next(&mut self) -> Reply<'_, AgentEvent> {
        match self.events.pop_front() {
            Some(event) => Box::pin(ready(event)),
            None => Box::pin(std::future::pending()),
        }
    }

    fn hand(&mut self, _: Message) -> Reply<'_, Result<(), Trouble>> {
        self.events.extend(self.says.drain(..));
        Box::pin(ready(Ok(())))
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

//! An agent that says what a test wrote down, in each of its turns, and notes what was done with it.

use agent::{
    Abilities, About, Agent, AgentEvent, Attachment, Background, Choice, EndedLeftovers, Launch, Message,
    Presence, QuestionAnswer, Reply, Running, Setup, Steered, TreeEnd, TreeName, Trouble,
};
use kernel::{Native, SessionId};
use std::collections::VecDeque;
use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

const GONE: TreeEnd = TreeEnd { killed: 0, gone: true };

/// The agent. Copies share their notes.
#[derive(Clone, Default)]
pub(crate) struct Puppet {
    pub(crate) says: Vec<AgentEvent>,
    pub(crate) setup: Setup,
    pub(crate) abilities: Abilities,
    /// Its name for a new conversation.
    pub(crate) native: Option<Native>,
    /// The time after it is ready at which it lists a command; none if it never does.
    pub(crate) lists_ms: Option<u64>,
    /// Its answer to words that are added to its turn.
    pub(crate) steers: Option<Result<Steered, Trouble>>,
    /// True if it no longer knows any conversation that it is to go on with.
    pub(crate) loses: bool,
    /// The words with which its next turns fail as it may pass, one each.
    pub(crate) fails: Arc<Mutex<VecDeque<&'static str>>>,
    /// The time that asking for its version takes.
    pub(crate) look_ms: u64,
    pub(crate) notes: Arc<Notes>,
}

/// The notes of what was done with it.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) looks: AtomicUsize,
    pub(crate) launches: Mutex<Vec<Launch>>,
    /// The words it was handed, and when.
    pub(crate) handed: Mutex<Vec<(String, Instant)>>,
    /// The attachments that it was handed with them.
    pub(crate) attached: Mutex<Vec<Vec<Attachment>>>,
    /// The words that were added to its turns.
    pub(crate) steered: Mutex<Vec<String>>,
    pub(crate) answers: Mutex<Vec<(String, QuestionAnswer)>>,
    pub(crate) released: Mutex<Vec<SessionId>>,
    /// The sessions whose attempt was announced, and how many had been started by then.
    pub(crate) expected: Mutex<Vec<(SessionId, usize)>>,
    pub(crate) closed: AtomicUsize,
}

impl Agent for Puppet {
    fn name(&self) -> &str {
        "puppet"
    }

    fn abilities(&self) -> Abilities {
        self.abilities
    }

    fn look(&self) -> Reply<'_, Presence> {
        Box::pin(async {
            let looks = self.notes.looks.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(self.look_ms)).await;
            Presence::Here { version: format!("1.{looks}") }
        })
    }

    fn setup(&self) -> Setup {
        self.setup.clone()
    }

    fn start(&self, launch: Launch) -> Reply<'_, Result<Box<dyn Running>, Trouble>> {
        let is_lost = self.loses && launch.native.is_some();
        let native = launch.native.clone().or_else(|| self.native.clone());
        self.notes.launches.lock().unwrap().push(launch);
        let lost = || AgentEvent::Failed(Trouble::new(kernel::Failure::Gone, "it is lost"));
        let events = VecDeque::from([if is_lost { lost() } else { AgentEvent::Ready { native } }]);
        let lists_at = self.lists_ms.map(|ms| Instant::now() + Duration::from_millis(ms));
        let (mut says, steers, notes) = (self.says.clone(), self.steers.clone(), self.notes.clone());
        if let Some(words) = self.fails.lock().unwrap().pop_front() {
            says = vec![AgentEvent::Failed(Trouble::transient(words))];
        }
        let turn = Turn { events, lists_at, says, steers, notes };
        Box::pin(ready(Ok(Box::new(turn) as Box<dyn Running>)))
    }

    fn end_leftovers(&self, _: TreeName) -> Reply<'_, Result<EndedLeftovers, Trouble>> {
        Box::pin(ready(Ok(EndedLeftovers { killed: 0 })))
    }

    fn expect(&self, session: SessionId) {
        let started = self.notes.launches.lock().unwrap().len();
        self.notes.expected.lock().unwrap().push((session, started));
    }

    fn release(&self, session: SessionId) -> Reply<'_, Background> {
        self.notes.released.lock().unwrap().push(session);
        Box::pin(ready(Background::default()))
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
        self.notes.attached.lock().unwrap().push(message.attachments);
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

    fn answer(&mut self, question: &str, answer: QuestionAnswer) -> Reply<'_, Result<(), Trouble>> {
        self.notes.answers.lock().unwrap().push((question.to_owned(), answer));
        Box::pin(ready(Ok(())))
    }

    fn stop(&mut self, _: u64) -> Reply<'_, TreeEnd> {
        self.events.push_back(AgentEvent::Died { detail: "stopped".to_owned(), verified: GONE });
        Box::pin(ready(GONE))
    }
}

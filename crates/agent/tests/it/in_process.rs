//! The in-process agent on trial.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use homing_agent::conformance::Candidate;
use homing_agent::{
    Agent, AgentEvent, Did, House, HouseConfig, InProcess, Launch, Message, Running, TreeName,
};
use kernel::{Attempt, Epoch, Fence, MessageId, SessionId, Term, Turn};

homing_agent::conformance!(OnTrial::new(0));

#[tokio::test(start_paused = true)]
async fn the_house_knows_what_really_ran() {
    let trial = OnTrial::new(0);
    let mut running = trial.begin(1).await;
    say(&mut running, "hello").await;
    while !running.next().await.is_last() {}
    let did: Vec<Did> = trial.house.noted().into_iter().map(|noted| noted.did).collect();
    assert_eq!(did, [Did::Up, Did::Handed, Did::Acted, Did::Finished]);
    assert!(trial.house.alive().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_attempt_outlives_its_daemon_until_it_is_buried() {
    let trial = OnTrial::new(5_000);
    let mut running = trial.begin(1).await;
    say(&mut running, "!sleep 1000\n!say 100 1").await;
    while !matches!(running.next().await, AgentEvent::Text { .. }) {}
    drop(running);
    tokio::time::sleep(std::time::Duration::from_millis(2_000)).await;
    let [tree] = trial.house.alive().try_into().expect("it lingers");
    assert_eq!(trial.agent.bury(tree).await.expect("it can be buried").killed, 1);
    assert!(trial.house.alive().is_empty());
    assert_eq!(trial.house.noted().last().map(|noted| noted.did), Some(Did::Killed));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_without_a_daemon_ends_by_itself() {
    let trial = OnTrial::new(5_000);
    let mut running = trial.begin(1).await;
    say(&mut running, "!hang").await;
    while !matches!(running.next().await, AgentEvent::Text { .. }) {}
    drop(running);
    tokio::time::sleep(std::time::Duration::from_millis(5_001)).await;
    assert!(trial.house.alive().is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_seed_gives_one_story() {
    let mut stories = Vec::new();
    for _ in 0..2 {
        let trial = OnTrial::new(0);
        for turn in 1..4 {
            let mut running = trial.begin(turn).await;
            say(&mut running, "hello\n!say 5 3").await;
            while !running.next().await.is_last() {}
        }
        stories.push(trial.house.noted());
    }
    assert_eq!(stories[0], stories[1]);
}

struct OnTrial {
    house: Arc<House>,
    agent: InProcess,
    sessions: AtomicU64,
}

impl OnTrial {
    fn new(linger_ms: u64) -> Self {
        let house = House::new(HouseConfig { seed: 7, linger_ms });
        Self { agent: InProcess::new(house.clone()), house, sessions: AtomicU64::new(0) }
    }

    async fn begin(&self, turn: u32) -> Box<dyn Running> {
        let fence = Fence { term: Term(1), epoch: Epoch(1), turn: Turn(turn), attempt: Attempt(1) };
        let launch = Launch::new(self.session(), fence, MessageId::from_bits(1), self.directory());
        let mut running = self.agent.start(launch).await.expect("it can be started");
        assert!(matches!(running.next().await, AgentEvent::Ready { .. }));
        running
    }
}

async fn say(running: &mut Box<dyn Running>, text: &str) {
    let message = Message { id: MessageId::from_bits(1), text: text.to_owned() };
    running.hand(message).await.expect("it waits for this");
}

impl Candidate for OnTrial {
    fn agent(&self) -> &dyn Agent {
        &self.agent
    }

    fn directory(&self) -> PathBuf {
        PathBuf::from("/in/process")
    }

    fn session(&self) -> SessionId {
        SessionId::from_bits(u128::from(self.sessions.fetch_add(1, Ordering::Relaxed)))
    }

    fn left(&self, tree: &TreeName) -> usize {
        self.house.alive().iter().filter(|alive| *alive == tree).count()
    }
}

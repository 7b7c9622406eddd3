//! The in-process agent on trial.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use homing_agent::conformance::{
    Blow, Candidate, Cannot, Dialect, ScriptedDialect, StoryResult, Weather, Wish,
};
use homing_agent::{
    Agent, AgentEvent, Did, House, HouseConfig, InProcess, Launch, Message, Running, TreeName,
};
use kernel::{Attempt, Epoch, Fence, GroundPath, MessageId, Native, SessionId, Term, Turn};

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
    assert_eq!(trial.agent.end_leftovers(tree).await.expect("what is left can be ended").killed, 1);
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

/// Thousands of things at a rate take as long as they should: roundings do not add up.
#[tokio::test(start_paused = true)]
async fn a_rate_is_kept_over_time() {
    let trial = OnTrial::new(0);
    let mut running = trial.begin(1).await;
    let from = tokio::time::Instant::now();
    say(&mut running, "!rate 300\n!repeat 3001 !tool build | step {n} | done").await;
    let (mut called, mut ended) = (0, 0);
    loop {
        match running.next().await {
            AgentEvent::ToolCall { input, .. } => {
                called += 1;
                assert_eq!(input, format!("step {called}"));
            }
            AgentEvent::ToolResult { .. } => ended += 1,
            event if event.is_last() => break,
            _ => {}
        }
    }
    // Two things each, and the first of them at once.
    let expected_ms = 6_001 * 1_000 / 300;
    assert_eq!((called, ended, from.elapsed().as_millis()), (3_001, 3_001, expected_ms));
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

#[tokio::test(start_paused = true)]
async fn a_house_may_be_slow_to_list_and_wilful_about_models() {
    let config = HouseConfig { seed: 7, commands_ms: 500, fallback: Some("large"), ..HouseConfig::default() };
    let trial = OnTrial::in_house(config);
    let mut running = trial.agent.start(trial.launch(1)).await.expect("it can be started");
    assert!(matches!(running.next().await, AgentEvent::About(about) if about.commands.is_empty()));
    assert!(matches!(running.next().await, AgentEvent::Ready { .. }));
    assert!(matches!(running.next().await, AgentEvent::About(about) if about.commands.len() == 2));
    say(&mut running, "/whisper hello").await;
    assert_eq!(running.next().await, AgentEvent::Text { text: "command whisper: hello".to_owned() });
    let chosen = Launch { model: Some("small".to_owned()), ..trial.launch(1) };
    let mut running = trial.agent.start(chosen).await.expect("it can be started");
    assert!(
        matches!(running.next().await, AgentEvent::Failed(trouble) if trouble.detail.contains("large, not small"))
    );
}

struct OnTrial {
    house: Arc<House>,
    agent: InProcess,
    sessions: AtomicU64,
}

impl OnTrial {
    fn new(linger_ms: u64) -> Self {
        Self::in_house(HouseConfig { seed: 7, linger_ms, ..HouseConfig::default() })
    }

    fn in_house(config: HouseConfig) -> Self {
        let house = House::new(config);
        Self { agent: InProcess::new(house.clone()), house, sessions: AtomicU64::new(0) }
    }

    fn launch(&self, turn: u32) -> Launch {
        let fence = Fence { term: Term(1), epoch: Epoch(1), turn: Turn(turn), attempt: Attempt(1) };
        Launch::new(self.session(), fence, MessageId::from_bits(1), self.directory())
    }

    async fn begin(&self, turn: u32) -> Box<dyn Running> {
        let mut running = self.agent.start(self.launch(turn)).await.expect("it can be started");
        while !matches!(running.next().await, AgentEvent::Ready { .. }) {}
        running
    }
}

async fn say(running: &mut Box<dyn Running>, text: &str) {
    let message = Message::new(MessageId::from_bits(1), text);
    running.hand(message).await.expect("it waits for this");
}

impl Candidate for OnTrial {
    fn agent(&self) -> &dyn Agent {
        &self.agent
    }

    fn directory(&self) -> GroundPath {
        GroundPath::from("/in/process")
    }

    fn elsewhere(&self) -> GroundPath {
        GroundPath::from("/in/another/process")
    }

    fn session(&self) -> SessionId {
        SessionId::from_bits(u128::from(self.sessions.fetch_add(1, Ordering::Relaxed)))
    }

    fn left(&self, tree: &TreeName) -> usize {
        self.house.alive().iter().filter(|alive| *alive == tree).count()
    }

    fn children(&self, _tree: &TreeName) -> usize {
        0
    }

    fn dialect(&self) -> &dyn Dialect {
        self
    }

    fn storm(&self, weather: Weather, wishes: &[Wish<'_>]) -> Result<String, Cannot> {
        ScriptedDialect::storm(weather, wishes)
    }

    fn lose(&self, native: &Native) -> Result<(), Cannot> {
        self.house.lose(native);
        Ok(())
    }

    fn tear(&self, _native: &Native) -> Result<(), Cannot> {
        Err(Cannot::because("it writes nothing down"))
    }

    fn strike(&self, _tree: &TreeName, _blow: Blow) -> Result<(), Cannot> {
        // It does it to itself.
        Ok(())
    }

    fn told(&self, story: &'static str, told: StoryResult) {
        assert!(self.house.alive().is_empty());
        let cannot = told.err().map(|Cannot(why)| why);
        assert_eq!(
            cannot.as_deref(),
            INAPPLICABLE.iter().find(|(name, _)| *name == story).map(|(_, why)| *why)
        );
    }
}

/// The stories that need what this agent has not got.
const INAPPLICABLE: &[(&str, &str)] = &[
    ("a_kept_process_answers_like_a_new_one", "no process is kept"),
    ("an_unknown_conversation_of_another_place_is_not_gone", "its ids hold everywhere"),
    ("a_torn_record_is_not_gone", "it writes nothing down"),
    ("a_file_is_written_only_after_a_yes", "it writes files without asking"),
    ("what_a_turn_leaves_running_is_gone_with_it", "it has no processes"),
    ("what_a_turn_started_is_gone_after_a_stop", "it has no processes"),
    ("what_a_turn_started_is_gone_after_a_kill", "it has no processes"),
];

impl Dialect for OnTrial {
    fn phrase(&self, wishes: &[Wish<'_>]) -> Result<String, Cannot> {
        if wishes.iter().any(|wish| matches!(wish, Wish::Children(_) | Wish::ChildrenAndDawdle(_))) {
            return Err(Cannot::because("it has no processes"));
        }
        ScriptedDialect.phrase(wishes)
    }

    fn answer(&self, wishes: &[Wish<'_>], number: u32) -> String {
        ScriptedDialect.answer(wishes, number)
    }

    fn recalled(&self, answer: &str) -> Vec<String> {
        ScriptedDialect.recalled(answer)
    }

    fn was_done(&self, answer: &str) -> bool {
        ScriptedDialect.was_done(answer)
    }
}

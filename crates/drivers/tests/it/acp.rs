//! The particulars of agents that speak ACP, with the real programs: a well-behaved one and a badly behaved one.

use std::path::PathBuf;
use std::time::Duration;

use agent::{Agent, AgentEvent, Launch, Message, Presence, QuestionAnswer, Running, TreeName};
use homing_drivers::ProgramConfig;
use homing_drivers::acp::{Acp, AcpConfig, Quirks};
use kernel::{Failure, MessageId, Native, SessionId};
use processes::count_marked;
use testkit::{AgentFixture, RealAgent};

use crate::bench::{be_ready, fence, ground, holder_at};
use crate::real::program_config;

/// The longest that one thing may take: these programs need seconds to come up, and more on a busy machine.
const WAIT: Duration = Duration::from_secs(90);

/// Each story, told by both agents.
macro_rules! both {
    ($($story:ident),* $(,)?) => {
        mod claude_agent_acp {
            $(#[tokio::test] async fn $story() { super::$story(super::Play::new(super::RealAgent::ClaudeAgentAcp)).await; })*
        }
        mod goose {
            $(#[tokio::test] async fn $story() { super::$story(super::Play::new(super::RealAgent::Goose)).await; })*
        }
    };
}

both!(
    turns_share_a_process_and_what_was_said,
    a_new_process_goes_on_without_repeating_anything,
    a_conversation_it_does_not_know_is_gone,
    a_conversation_that_was_lost_is_gone_and_a_bad_model_never_is,
    a_turn_is_stopped_and_the_next_one_remembers,
    a_question_is_answered_yes_no_and_not_at_all,
    it_goes_on_in_another_directory,
    it_says_its_version_and_refuses_an_unknown_model,
);

async fn turns_share_a_process_and_what_was_said(play: Play) {
    let launch = play.launch(1, None);
    let first = play.turn(&launch, "keep CODE:maple").await;
    assert_eq!((first.text.as_str(), first.reason()), ("ECHO: keep CODE:maple [turn=1]", Some("end_turn")));
    // A turn that takes a while: claude-agent-acp asks itself who is signed in while a turn runs, in a process more.
    let long = play.turn(&play.launch(1, first.native.clone()), "SLEEP:4").await;
    assert_eq!(long.reason(), Some("end_turn"));
    let supervisor = play.supervisor();
    let mut running = play.begin(&play.launch(1, first.native.clone()), "RECALL").await;
    assert!(supervisor.is_some() && play.supervisor() == supervisor, "one process for both");
    let second = Ended::of(to_the_end(&mut running).await);
    assert_eq!((second.text.as_str(), &second.native), ("RECALL: maple [turn=3]", &first.native));
    let tokens = |ended: &Ended| {
        let usage =
            |event: &AgentEvent| if let AgentEvent::Usage(usage) = event { usage.input_tokens } else { 0 };
        ended.events.iter().map(usage).sum::<u64>()
    };
    assert!(tokens(&first) > 0 && tokens(&second) > 0 && tokens(&second) < 2 * tokens(&first), "no sums");
    play.agent.release(SessionId::from_bits(1)).await;
    play.nothing_left(1);
}

async fn a_new_process_goes_on_without_repeating_anything(play: Play) {
    let first = play.turn(&play.launch(1, None), "keep CODE:maple").await;
    play.agent.release(SessionId::from_bits(1)).await;
    let second = play.turn(&play.launch(1, first.native.clone()), "RECALL").await;
    assert_eq!((second.text.as_str(), &second.native), ("RECALL: maple [turn=2]", &first.native));
    // Another session in the same home and directory knows nothing of it.
    let other = play.turn(&play.launch(2, None), "RECALL").await;
    assert!(!other.text.contains("maple") && other.native != first.native, "{}", other.text);
    play.agent.close().await;
    play.nothing_left(1);
    play.nothing_left(2);
}

async fn a_conversation_it_does_not_know_is_gone(play: Play) {
    for id in ["00000000-dead-4000-8000-000000000000", "../../etc/passwd", "20200101_99", ""] {
        let ended = play.turn(&play.launch(1, Some(Native::new(id))), "hello").await;
        assert_eq!(ended.failure(), Some(Failure::Gone), "{id}: {:?}", ended.events.last());
        assert_eq!(ended.text, "");
        play.nothing_left(1);
    }
    assert_eq!(play.stage.model.turns(), [], "nobody was asked anything");
}

async fn a_conversation_that_was_lost_is_gone_and_a_bad_model_never_is(play: Play) {
    let first = play.turn(&play.launch(1, None), "keep CODE:maple").await;
    let go_on = || play.launch(1, first.native.clone());
    for (text, failure) in [
        ("ERR:401", Failure::Refused),
        ("ERR:429", Failure::Transient),
        ("ERR:529", Failure::Transient),
        ("DROP", Failure::Transient),
    ] {
        let ended = play.turn(&go_on(), text).await;
        assert_eq!(ended.failure(), Some(failure), "{text}: {:?}", ended.events.last());
        play.nothing_left(1);
    }
    play.stage.model.refuse();
    let refused = play.turn(&go_on(), "hello").await;
    assert_eq!(refused.failure(), Some(Failure::Transient), "{:?}", refused.events.last());
    play.stage.model.listen();
    let after = play.turn(&go_on(), "RECALL").await;
    assert!(after.text.contains("RECALL: maple"), "{}", after.text);
    play.agent.close().await;
    play.stage.lose(&first.native.as_ref().unwrap().id);
    let lost = play.turn(&go_on(), "RECALL").await;
    assert_eq!(lost.failure(), Some(Failure::Gone), "{:?}", lost.events.last());
}

async fn a_turn_is_stopped_and_the_next_one_remembers(play: Play) {
    let first = play.turn(&play.launch(1, None), "keep CODE:maple").await;
    let launch = play.launch(1, first.native.clone());
    let mut running = play.begin(&launch, "CHUNKS:300:100").await;
    let mut said = String::new();
    while !said.contains("chunk 2") {
        said.push_str(&text_of(&next(&mut running).await));
    }
    let verified = tokio::time::timeout(WAIT, running.stop(5_000)).await.unwrap();
    assert!(verified.gone);
    play.nothing_left(1);
    let last = to_the_end(&mut running).await.pop();
    assert!(matches!(last, Some(AgentEvent::Died { .. })), "neither finished nor failed: {last:?}");
    let after = play.turn(&launch, "RECALL").await;
    assert!(after.text.contains("RECALL: maple"), "{}", after.text);
    play.agent.close().await;
}

async fn a_question_is_answered_yes_no_and_not_at_all(play: Play) {
    let launch = play.launch(1, None);
    let file = |name: &str| play.stage.directory().join(name);
    let mut running = play.begin(&launch, "TOOL:bash:echo yes > allowed; cat allowed").await;
    let question = asked(&mut running).await;
    assert!(!file("allowed").exists());
    running.answer(&question, QuestionAnswer::Allow).await.unwrap();
    let allowed = Ended::of(to_the_end(&mut running).await);
    assert_eq!((allowed.text.as_str(), allowed.reason()), ("TOOL SAID: yes", Some("end_turn")));
    let has = |what: fn(&AgentEvent) -> bool| allowed.events.iter().any(what);
    assert!(has(
        |it| matches!(it, AgentEvent::ToolResult { output, failed: false, .. } if output.contains("yes"))
    ));
    let launch = play.launch(1, allowed.native.clone());
    let mut running = play.begin(&launch, "TOOL:bash:touch denied").await;
    let question = asked(&mut running).await;
    running.answer(&question, QuestionAnswer::Deny { reason: String::new() }).await.unwrap();
    running.answer(&question, QuestionAnswer::Allow).await.unwrap();
    let denied = Ended::of(to_the_end(&mut running).await);
    assert_eq!(denied.reason(), Some("end_turn"), "it goes on without the tool");
    let mut running = play.begin(&launch, "TOOL:bash:touch never").await;
    asked(&mut running).await;
    assert!(running.stop(5_000).await.gone);
    let last = to_the_end(&mut running).await.pop();
    assert!(matches!(last, Some(AgentEvent::Died { .. })), "{last:?}");
    assert!(file("allowed").exists() && !file("denied").exists() && !file("never").exists());
    play.nothing_left(1);
}

async fn it_goes_on_in_another_directory(play: Play) {
    let first = play.turn(&play.launch(1, None), "keep CODE:maple").await;
    let elsewhere = play.stage.another_directory("elsewhere");
    let launch = Launch { directory: ground(&elsewhere), ..play.launch(1, first.native.clone()) };
    let mut running = play.begin(&launch, "TOOL:bash:pwd > here; cat here").await;
    let question = asked(&mut running).await;
    running.answer(&question, QuestionAnswer::Allow).await.unwrap();
    let moved = Ended::of(to_the_end(&mut running).await);
    assert_eq!(moved.text, format!("TOOL SAID: {}", elsewhere.display()));
    assert!(elsewhere.join("here").exists());
    let place = |native: &Option<Native>| native.as_ref().unwrap().place.clone();
    assert_ne!(place(&moved.native), place(&first.native));
    play.agent.close().await;
}

async fn it_says_its_version_and_refuses_an_unknown_model(play: Play) {
    // First, in a home that nobody has looked at: goose makes its tables there at its first start, and a look by the
    // protocol may end it in the midst of that.
    let launch = Launch { model: Some("no-such".to_owned()), ..play.launch(1, None) };
    let refused = play.turn(&launch, "hello").await;
    let Some(AgentEvent::Failed(trouble)) = refused.events.last() else { panic!("{:?}", refused.events) };
    assert_eq!(trouble.failure, Failure::Refused, "{trouble}");
    assert!(trouble.detail.contains("there is no model \"no-such\"; there is "), "{trouble}");
    play.nothing_left(1);
    let Presence::Here { version } = play.agent.look().await else { panic!("it is here") };
    let wanted = if play.stage.agent == RealAgent::Goose { "1.34.0" } else { "0.99.1" };
    assert_eq!(version, wanted);
    let asked = Acp::new(AcpConfig {
        quirks: Quirks { version_args: Some(Vec::new()), ..play.quirks() },
        program: play.program(),
    });
    // By the protocol, too, as far as it says so.
    let by_protocol = if play.stage.agent == RealAgent::Goose { "" } else { wanted };
    assert_eq!(asked.look().await, Presence::Here { version: by_protocol.to_owned() });
}

/// Goose names conversations by a date and a counter: in another home the same name is somebody else's.
#[tokio::test]
async fn an_id_of_another_home_is_refused_where_ids_are_no_ones_own() {
    let play = Play::new(RealAgent::Goose);
    let native = Native::new("20261115_1").at("goose:/another/home:/srv/project");
    let trouble = play.agent.start(play.launch(1, Some(native))).await.err().unwrap();
    assert_eq!(trouble.failure, Failure::Refused);
}

/// An agent that nobody has heard of needs its program and, if it has modes, to be told which of them asks: without that it is
/// refused before anything is said to it, and the refusal names the modes.
#[tokio::test]
async fn an_unknown_agent_needs_its_command_line_and_the_mode_in_which_it_asks() {
    let stage = AgentFixture::new(RealAgent::ClaudeAgentAcp);
    let config = |quirks| AcpConfig {
        program: ProgramConfig { name: "mine".to_owned(), kept_max: 0, ..program_config(&stage) },
        quirks,
    };
    let untold = Acp::new(config(Quirks::default()));
    let told = Acp::new(config(Quirks { asking_mode: Some("default".to_owned()), ..Quirks::default() }));
    let mut play = Play { stage, agent: untold };
    let refused = play.turn(&play.launch(1, None), "keep CODE:maple").await;
    let Some(AgentEvent::Failed(trouble)) = refused.events.last() else { panic!("{:?}", refused.events) };
    assert_eq!(trouble.failure, Failure::Refused, "{trouble}");
    assert!(trouble.detail.contains("quirks.asking_mode") && trouble.detail.contains("default"), "{trouble}");
    play.nothing_left(1);

    play.agent = told;
    let first = play.turn(&play.launch(1, None), "keep CODE:maple").await;
    assert_eq!(first.reason(), Some("end_turn"), "{:?}", first.events.last());
    play.nothing_left(1);
    let second = play.turn(&play.launch(1, first.native.clone()), "RECALL").await;
    assert_eq!(second.text, "RECALL: maple [turn=2]");
    play.nothing_left(1);
}

/// A real agent, its stage, and our driver of it.
struct Play {
    stage: AgentFixture,
    agent: Acp,
}

impl Play {
    fn new(agent: RealAgent) -> Self {
        let stage = AgentFixture::new(agent);
        let quirks = Quirks::of(agent.name()).unwrap();
        let agent = Acp::new(AcpConfig { program: program_config(&stage), quirks });
        Self { stage, agent }
    }

    fn quirks(&self) -> Quirks {
        Quirks::of(self.stage.agent.name()).unwrap()
    }

    fn program(&self) -> ProgramConfig {
        program_config(&self.stage)
    }

    fn launch(&self, session: u128, native: Option<Native>) -> Launch {
        let message = MessageId::from_bits(session);
        Launch {
            native,
            ..Launch::new(SessionId::from_bits(session), fence(), message, ground(self.stage.directory()))
        }
    }

    /// An attempt that was handed these words.
    async fn begin(&self, launch: &Launch, text: &str) -> Box<dyn Running> {
        let mut running = self.agent.start(launch.clone()).await.unwrap();
        be_ready(&mut *running).await;
        running.hand(Message::new(launch.message, text.to_owned())).await.unwrap();
        running
    }

    /// A whole turn; one that fails before it is ready is a turn, too.
    async fn turn(&self, launch: &Launch, text: &str) -> Ended {
        let mut running = self.agent.start(launch.clone()).await.unwrap();
        let mut events = Vec::new();
        loop {
            let event = next(&mut running).await;
            if let AgentEvent::Ready { .. } = event {
                running.hand(Message::new(launch.message, text.to_owned())).await.unwrap();
            }
            let is_last = event.is_last();
            events.push(event);
            if is_last {
                return Ended::of(events);
            }
        }
    }

    fn locks(&self) -> PathBuf {
        self.stage.locks()
    }

    /// The process that looks after session 1, if there is one.
    fn supervisor(&self) -> Option<i64> {
        let tree = TreeName::of(SessionId::from_bits(1));
        holder_at(&self.locks().join(format!("{tree}.lock")))?["pid"].as_i64()
    }

    #[track_caller]
    fn nothing_left(&self, session: u128) {
        let tree = TreeName::of(SessionId::from_bits(session));
        assert_eq!(count_marked(&tree, &self.locks()), 0);
        assert!(!self.locks().join(format!("{tree}.lock")).exists());
    }
}

/// A turn that is over.
struct Ended {
    events: Vec<AgentEvent>,
    text: String,
    native: Option<Native>,
}

impl Ended {
    fn of(events: Vec<AgentEvent>) -> Self {
        let text = events.iter().map(text_of).collect();
        let native = events.iter().rev().find_map(|event| match event {
            AgentEvent::Ready { native } | AgentEvent::Finished { native, .. } => native.clone(),
            _ => None,
        });
        Self { events, text, native }
    }

    fn failure(&self) -> Option<Failure> {
        match self.events.last() {
            Some(AgentEvent::Failed(trouble)) => Some(trouble.failure),
            _ => None,
        }
    }

    fn reason(&self) -> Option<&str> {
        match self.events.last() {
            Some(AgentEvent::Finished { reason, .. }) => Some(reason),
            _ => None,
        }
    }
}

fn text_of(event: &AgentEvent) -> String {
    if let AgentEvent::Text { text } = event { text.clone() } else { String::new() }
}

async fn next(running: &mut Box<dyn Running>) -> AgentEvent {
    tokio::time::timeout(WAIT, running.next()).await.expect("it takes too long")
}

async fn asked(running: &mut Box<dyn Running>) -> String {
    loop {
        match next(running).await {
            AgentEvent::Asked { question, .. } => return question,
            event => assert!(!event.is_last(), "ended with {event:?} without asking"),
        }
    }
}

async fn to_the_end(running: &mut Box<dyn Running>) -> Vec<AgentEvent> {
    let mut events = Vec::new();
    while !events.last().is_some_and(AgentEvent::is_last) {
        events.push(next(running).await);
    }
    events
}

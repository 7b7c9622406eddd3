//! The particulars of claude, with the real program: one process for many turns, and what ends it.

use std::time::Duration;

use agent::{Agent, AgentEvent, Launch, Message, Presence, QuestionAnswer, Running, SignIn, Trouble};
use homing_drivers::claude::Claude;
use homing_drivers::{BackgroundPolicy, ProgramConfig};
use kernel::{Failure, MessageId, Native, SessionId};
use processes::count_marked;
use rustix::process::Signal;
use testkit::{AgentFixture, RealAgent, StubModel};

use crate::bench::{count_commands, fence, ground, holder_at, lines_heard, overheard, signal};
use crate::real::program_config;

/// The longest that one thing may take. The machine may be busy, and claude takes seconds to start then.
const WAIT: Duration = Duration::from_secs(60);
/// The polite part of a stop.
const GRACE_MS: u64 = 10_000;

/// Claude on its stage, in one session.
struct Scene {
    stage: AgentFixture,
    claude: Claude,
    session: SessionId,
    messages: std::cell::Cell<u128>,
}

impl Scene {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut ProgramConfig)) -> Self {
        let stage = AgentFixture::new(RealAgent::Claude);
        let mut config = program_config(&stage);
        change(&mut config);
        let session = SessionId::from_bits(uuid::Uuid::new_v4().as_u128() >> 1);
        Self { claude: Claude::new(config), stage, session, messages: std::cell::Cell::new(session.bits()) }
    }

    fn model(&self) -> &StubModel {
        &self.stage.model
    }

    /// The next attempt of the session.
    fn launch(&self, native: Option<&Native>) -> Launch {
        self.messages.set(self.messages.get() + 1);
        let message = MessageId::from_bits(self.messages.get());
        let launch = Launch::new(self.session, fence(), message, ground(self.stage.directory()));
        Launch { native: native.cloned(), ..launch }
    }

    async fn begin(&self, launch: &Launch) -> Attempt {
        let running = within(self.claude.start(launch.clone())).await.unwrap();
        let mut attempt = Attempt { running, events: Vec::new(), launch: launch.clone() };
        attempt.until(|event| matches!(event, AgentEvent::Ready { .. })).await;
        attempt
    }

    async fn said(&self, launch: &Launch, text: &str) -> Attempt {
        let mut attempt = self.begin(launch).await;
        attempt.hand(text).await;
        attempt
    }

    /// A whole turn.
    async fn turn(&self, native: Option<&Native>, text: &str) -> Attempt {
        let mut attempt = self.said(&self.launch(native), text).await;
        attempt.hear_out().await;
        attempt
    }

    /// The process of the session, if there is one.
    fn pid(&self) -> Option<i32> {
        let lock = self.stage.locks().join(format!("{}.lock", agent::TreeName::of(self.session)));
        testkit::agent_below(holder_at(&lock)?["pid"].as_u64()?.try_into().ok()?)?.try_into().ok()
    }

    fn left(&self) -> usize {
        count_marked(&agent::TreeName::of(self.session), &self.stage.locks())
    }

    async fn until_gone(&self) {
        let looks = async {
            while self.left() > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        within(looks).await;
    }
}

/// One attempt and everything it has said.
struct Attempt {
    running: Box<dyn Running>,
    events: Vec<AgentEvent>,
    launch: Launch,
}

impl Attempt {
    async fn hand(&mut self, text: &str) {
        let message = Message::new(self.launch.message, text.to_owned());
        within(self.running.hand(message)).await.unwrap();
    }

    async fn until(&mut self, found: impl Fn(&AgentEvent) -> bool) -> AgentEvent {
        loop {
            let event = within(self.running.next()).await;
            self.events.push(event.clone());
            if found(&event) {
                return event;
            }
            assert!(!event.is_last(), "{:#?}", self.events);
        }
    }

    async fn hear_out(&mut self) -> AgentEvent {
        self.until(AgentEvent::is_last).await
    }

    async fn asked(&mut self) -> String {
        match self.until(|event| matches!(event, AgentEvent::Asked { .. })).await {
            AgentEvent::Asked { question, .. } => question,
            event => panic!("{event:?}"),
        }
    }

    fn text(&self) -> String {
        let words = |event: &AgentEvent| match event {
            AgentEvent::Text { text } => Some(text.clone()),
            _ => None,
        };
        self.events.iter().filter_map(words).collect()
    }

    #[track_caller]
    fn native(&self) -> Native {
        match self.events.last() {
            Some(AgentEvent::Finished { native: Some(native), .. }) => native.clone(),
            _ => panic!("{:#?}", self.events),
        }
    }

    fn ready_native(&self) -> Option<Native> {
        self.events.iter().find_map(|event| match event {
            AgentEvent::Ready { native } => native.clone(),
            _ => None,
        })
    }

    #[track_caller]
    fn failure(&self) -> &Trouble {
        match self.events.last() {
            Some(AgentEvent::Failed(trouble)) => trouble,
            _ => panic!("{:#?}", self.events),
        }
    }

    fn has(&self, found: impl Fn(&AgentEvent) -> bool) -> bool {
        self.events.iter().any(found)
    }
}

async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(WAIT, what).await.expect("it takes too long")
}

#[tokio::test]
async fn two_turns_are_one_process_and_remember() {
    let scene = Scene::new();
    let first = scene.turn(None, "keep CODE:maple").await;
    assert_eq!(first.text(), "ECHO: keep CODE:maple [turn=1]");
    assert_eq!(first.ready_native(), Some(first.native()), "the id we chose is the one it goes by");
    let pid = scene.pid().expect("it is kept");
    let second = scene.turn(Some(&first.native()), "RECALL").await;
    assert_eq!(second.text(), "RECALL: maple [turn=2]");
    assert_eq!((scene.pid(), second.native()), (Some(pid), first.native()));
    let cost = |attempt: &Attempt| {
        attempt.events.iter().find_map(|event| match event {
            AgentEvent::Usage(usage) => usage.cost_micros.zip(usage.window),
            _ => None,
        })
    };
    let ((one, _), (two, window)) = (cost(&first).unwrap(), cost(&second).unwrap());
    assert!(two < one * 3 / 2, "what it costs is told for each turn: {one}, {two}");
    assert!(window.0 > 0 && window.1 > window.0);
    within(scene.claude.close()).await;
    assert_eq!(scene.left(), 0);
}

#[tokio::test]
async fn it_says_what_it_is_and_what_can_be_chosen() {
    let scene = Scene::new();
    assert!(
        matches!(within(scene.claude.look()).await, Presence::Here { version } if version.starts_with("2."))
    );
    assert!(matches!(scene.claude.sign_in(), SignIn::Here { .. }));
    let turn = scene.turn(None, "hello").await;
    let about = turn.events.iter().rev().find_map(|event| match event {
        AgentEvent::About(about) => Some(about.clone()),
        _ => None,
    });
    let about = about.unwrap();
    assert_eq!(about.directory, scene.stage.directory().to_str().unwrap());
    assert!(
        about.version.starts_with("2.") && !about.model.is_empty() && about.mode == "default",
        "{about:?}"
    );
    assert!(!about.models.is_empty() && !about.commands.is_empty() && !about.modes.is_empty());
    within(scene.claude.close()).await;
}

#[tokio::test]
async fn a_new_process_goes_on_with_the_conversation_elsewhere_too() {
    let scene = Scene::with(|config| config.kept_max = 0);
    let first = scene.turn(None, "keep CODE:maple").await;
    assert_eq!(scene.left(), 0, "nothing is kept where nothing is to be kept");
    let second = scene.turn(Some(&first.native()), "RECALL").await;
    assert_eq!(second.text(), "RECALL: maple [turn=2]");
    let directory = scene.stage.another_directory("elsewhere");
    let launch = Launch { directory: ground(&directory), ..scene.launch(Some(&second.native())) };
    let mut third = scene.said(&launch, "RECALL").await;
    third.hear_out().await;
    assert_eq!(third.text(), "RECALL: maple [turn=3]");
    let launch = Launch { directory: ground(&directory), ..scene.launch(Some(&third.native())) };
    let mut fourth = scene.said(&launch, "TOOL:bash:pwd").await;
    fourth.hear_out().await;
    assert_eq!(fourth.text(), format!("TOOL SAID: {}", directory.display()));
}

#[tokio::test]
async fn a_conversation_it_does_not_know_is_gone_before_it_is_ready() {
    let scene = Scene::new();
    let here = scene.turn(None, "hello").await.native();
    within(scene.claude.release(scene.session)).await;
    scene.stage.lose(&here.id);
    let mut running = within(scene.claude.start(scene.launch(Some(&here)))).await.unwrap();
    let event = within(running.next()).await;
    assert!(matches!(&event, AgentEvent::Failed(Trouble { failure: Failure::Gone, .. })), "{event:?}");
    // Where it was made elsewhere, nothing is proved.
    let elsewhere = Native::new(here.id.clone()).at("claude:/another/home:/another/directory");
    let mut running = within(scene.claude.start(scene.launch(Some(&elsewhere)))).await.unwrap();
    let event = within(running.next()).await;
    assert!(matches!(&event, AgentEvent::Failed(Trouble { failure: Failure::Refused, .. })), "{event:?}");
    let no_id = Native::new("../../etc/passwd");
    let refused = within(scene.claude.start(scene.launch(Some(&no_id)))).await.err().unwrap();
    assert_eq!(refused.failure, Failure::Gone);
    assert_eq!(scene.left(), 0);
}

#[tokio::test]
async fn failures_of_the_model_server_are_told_apart() {
    let scene = Scene::new();
    let first = scene.turn(None, "keep CODE:maple").await.native();
    for (status, failure) in [(401, Failure::Refused), (529, Failure::Transient), (429, Failure::Transient)] {
        let failed = scene.turn(Some(&first), &format!("ERR:{status}")).await;
        assert_eq!(failed.failure().failure, failure, "{status}: {:?}", failed.failure());
        assert!(
            failed.has(
                |event| matches!(event, AgentEvent::Notice { text } if text.contains(&status.to_string()))
            )
        );
        assert_eq!((failed.text().as_str(), scene.left()), ("", 0), "{status}");
    }
    scene.model().refuse();
    let failed = scene.turn(Some(&first), "hello").await;
    assert_eq!(failed.failure().failure, Failure::Transient, "{:?}", failed.failure());
    scene.model().listen();
    let last = scene.turn(Some(&first), "RECALL").await;
    assert!(last.text().starts_with("RECALL: maple"), "{}", last.text());
    within(scene.claude.close()).await;
}

#[tokio::test]
async fn whoever_is_not_signed_in_is_told_how() {
    let scene = Scene::with(|config| config.env.retain(|(name, _)| name != "ANTHROPIC_API_KEY"));
    assert!(matches!(scene.claude.sign_in(), SignIn::Missing { .. }));
    let failed = scene.turn(None, "hello").await;
    let Trouble { failure, detail } = failed.failure();
    assert_eq!(*failure, Failure::Refused);
    assert!(detail.contains("/login"), "{detail}");
}

#[tokio::test]
async fn questions_are_allowed_denied_and_withdrawn() {
    let scene = Scene::new();
    let file = scene.stage.directory().join("made");
    let command = "TOOL:bash:touch made; echo did";
    let mut attempt = scene.said(&scene.launch(None), command).await;
    let question = attempt.asked().await;
    let denied = QuestionAnswer::Deny { reason: "not today".to_owned() };
    within(attempt.running.answer("no such question", QuestionAnswer::Allow)).await.unwrap();
    within(attempt.running.answer(&question, denied)).await.unwrap();
    attempt.hear_out().await;
    assert_eq!((attempt.text().as_str(), file.exists()), ("TOOL SAID: not today", false));

    let mut attempt = scene.said(&scene.launch(Some(&attempt.native())), command).await;
    let question = attempt.asked().await;
    within(attempt.running.answer(&question, QuestionAnswer::Allow)).await.unwrap();
    attempt.hear_out().await;
    assert_eq!((attempt.text().as_str(), file.exists()), ("TOOL SAID: did", true));

    let native = attempt.native();
    let mut attempt = scene.said(&scene.launch(Some(&native)), "TOOL:bash:touch more").await;
    let question = attempt.asked().await;
    let verified = within(attempt.running.stop(GRACE_MS)).await;
    assert!(verified.gone);
    attempt.hear_out().await;
    assert!(attempt.has(|event| *event == AgentEvent::Withdrawn { question: question.clone() }));
    assert_eq!(scene.left(), 0);
}

#[tokio::test]
async fn a_changed_file_is_told() {
    let scene = Scene::new();
    let path = scene.stage.directory().join("made");
    let mut attempt = scene.said(&scene.launch(None), &format!("TOOL:write:{}:words", path.display())).await;
    let question = attempt.asked().await;
    within(attempt.running.answer(&question, QuestionAnswer::Allow)).await.unwrap();
    attempt.hear_out().await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "words");
    let change = agent::FileChangeKind::Added;
    let changed = AgentEvent::FileChanged { path: path.to_str().unwrap().to_owned(), change };
    assert!(attempt.has(|event| *event == changed), "{:#?}", attempt.events);
    within(scene.claude.close()).await;
}

#[tokio::test]
async fn a_stopped_turn_leaves_nothing_and_is_remembered() {
    let scene = Scene::new();
    let mut attempt = scene.said(&scene.launch(None), "keep CODE:maple\nCHUNKS:1000:20").await;
    attempt.until(|event| matches!(event, AgentEvent::Text { .. })).await;
    let verified = within(attempt.running.stop(GRACE_MS)).await;
    assert!(verified.gone && verified.killed == 0, "it goes by itself: {verified:?}");
    assert_eq!(scene.left(), 0);
    assert!(matches!(attempt.hear_out().await, AgentEvent::Died { .. }));
    let native = attempt.ready_native().unwrap();
    let next = scene.turn(Some(&native), "RECALL").await;
    assert!(next.text().starts_with("RECALL: maple"), "{}", next.text());
    within(scene.claude.close()).await;
}

#[tokio::test]
async fn a_first_message_that_is_stopped_at_once_does_not_lose_the_conversation() {
    let scene = Scene::new();
    let mut attempt = scene.said(&scene.launch(None), "keep CODE:maple").await;
    assert!(within(attempt.running.stop(GRACE_MS)).await.gone);
    let next = scene.turn(attempt.ready_native().as_ref(), "RECALL").await;
    assert!(next.text().starts_with("RECALL: maple"), "{}", next.text());
    within(scene.claude.close()).await;
}

/// Each thing that it is asked beside the message is time that a turn takes.
#[tokio::test]
async fn a_turn_in_a_kept_process_is_one_question_whether_it_is_there_and_the_message() {
    let place = tempfile::tempdir().unwrap();
    let mut heard = None;
    let scene = Scene::with(|config| {
        let (program, lines) = overheard(&config.program, place.path());
        config.program = program;
        heard = Some(lines);
    });
    let heard = heard.unwrap();
    let native = scene.turn(None, "one").await.native();
    let mut told = lines_heard(&heard).len();
    for is_expected in [true, false] {
        if is_expected {
            scene.claude.expect(scene.session);
        }
        let turn = scene.turn(Some(&native), "two").await;
        assert!(turn.text().contains("two"), "{}", turn.text());
        let lines = lines_heard(&heard);
        let kinds: Vec<_> = lines[told..].iter().map(|line| line["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["control_request", "user"], "expected: {is_expected}");
        told = lines.len();
    }
    within(scene.claude.close()).await;
}

#[tokio::test]
async fn a_process_that_was_killed_while_it_waited_is_replaced_unseen() {
    let scene = Scene::new();
    let first = scene.turn(None, "keep CODE:maple").await.native();
    let pid = scene.pid().expect("it is kept");
    signal(pid, Signal::KILL);
    // At once, and again when everybody has noticed.
    let second = scene.turn(Some(&first), "RECALL").await;
    assert_eq!(second.text(), "RECALL: maple [turn=2]");
    let another = scene.pid().expect("it is kept");
    assert_ne!(another, pid);
    signal(another, Signal::KILL);
    scene.until_gone().await;
    assert_eq!(scene.turn(Some(&first), "RECALL").await.text(), "RECALL: maple [turn=3]");
    within(scene.claude.close()).await;
    assert_eq!(scene.left(), 0);
}

#[tokio::test]
async fn another_model_or_mode_is_another_process() {
    let scene = Scene::new();
    let native = scene.turn(None, "keep CODE:maple").await.native();
    let first = scene.pid().expect("it is kept");
    let launch = Launch { model: Some("sonnet".to_owned()), ..scene.launch(Some(&native)) };
    let mut attempt = scene.said(&launch, "RECALL").await;
    attempt.hear_out().await;
    assert_eq!(attempt.text(), "RECALL: maple [turn=2]");
    assert!(scene.model().turns().last().unwrap().model.contains("sonnet"));
    let second = scene.pid().expect("it is kept");
    let mode = Some("plan".to_owned());
    let launch = Launch { mode, ..Launch { model: launch.model, ..scene.launch(Some(&native)) } };
    let mut attempt = scene.said(&launch, "RECALL").await;
    attempt.hear_out().await;
    assert!(attempt.has(|event| matches!(event, AgentEvent::About(about) if about.mode == "plan")));
    let third = scene.pid().expect("it is kept");
    assert!(first != second && second != third && scene.left() == 1);
    within(scene.claude.close()).await;
    assert_eq!(scene.left(), 0);
}

/// Where claude tells its model to write the plan down; it shows that file, and not what the model hands to the tool.
fn plan_file(told: &str) -> std::path::PathBuf {
    let at = told.find(".claude/plans/").expect("it names a file for plans");
    let is_before = |letter: char| letter.is_whitespace() || letter == '"' || letter == '`';
    let from = told[..at].rfind(is_before).expect("it is named in a sentence") + 1;
    let end = told[at..].find(".md").expect("it is Markdown") + ".md".len();
    std::path::PathBuf::from(&told[from..at + end])
}

#[tokio::test]
async fn a_plan_is_shown_in_the_question_and_a_yes_is_for_this_turn_only() {
    let scene = Scene::new();
    let mode = || Some("plan".to_owned());
    let begin = Launch { mode: mode(), ..scene.launch(None) };
    let mut attempt = scene.said(&begin, "hello").await;
    attempt.hear_out().await;
    let native = attempt.native();
    let file = plan_file(&scene.model().turns().last().unwrap().body.to_string());
    let plan = "# Plan\n\n1. read\n2. write";
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, plan).unwrap();
    let launch = Launch { mode: mode(), ..scene.launch(Some(&native)) };
    let mut attempt = scene.said(&launch, "TOOL:raw:ExitPlanMode:{}").await;
    let asked = attempt.until(|event| matches!(event, AgentEvent::Asked { .. })).await;
    let AgentEvent::Asked { question, tool, detail, .. } = asked else { panic!("{asked:?}") };
    assert_eq!((tool.as_str(), detail.as_str()), ("ExitPlanMode", plan));
    within(attempt.running.answer(&question, QuestionAnswer::Allow)).await.unwrap();
    attempt.hear_out().await;
    let native = attempt.native();
    assert!(attempt.text().contains("TOOL SAID"), "it goes on: {:#?}", attempt.events);
    let is_told = |event: &AgentEvent| matches!(event, AgentEvent::Notice { text } if text.contains("begins in plan again"));
    assert!(attempt.has(is_told), "{:#?}", attempt.events);

    let next = Launch { mode: mode(), ..scene.launch(Some(&native)) };
    let mut attempt = scene.said(&next, "hello").await;
    attempt.hear_out().await;
    let is_plan = |event: &AgentEvent| matches!(event, AgentEvent::About(about) if about.mode == "plan");
    assert!(attempt.has(is_plan), "{:#?}", attempt.events);
    within(scene.claude.close()).await;
    assert_eq!(scene.left(), 0);
}

#[tokio::test]
async fn what_a_tool_leaves_running_does_not_outlive_the_turn() {
    let scene = Scene::with(|config| config.bypasses = true);
    let native = scene.turn(None, "keep CODE:maple").await.native();
    let pid = scene.pid().expect("it is kept");
    for (seconds, command) in [
        ("4191.5", r#"TOOL:raw:Bash:{"command":"setsid sleep 4191.5 >/dev/null 2>&1 & echo did"}"#),
        ("4192.5", r#"TOOL:raw:Bash:{"command":"sleep 4192.5","run_in_background":true}"#),
    ] {
        let mut attempt = scene.turn(Some(&native), command).await;
        assert_eq!(attempt.native(), native);
        assert_eq!(count_commands(&format!("sleep {seconds}")), 0, "{:#?}", attempt.events);
        assert_ne!(scene.pid(), Some(pid), "what it had started goes with it");
        within(attempt.running.stop(0)).await;
    }
    assert!(scene.turn(Some(&native), "RECALL").await.text().starts_with("RECALL: maple"));
    within(scene.claude.close()).await;
    assert_eq!(scene.left(), 0);
}

/// A command in the background goes on; when one ends, claude would begin a turn by itself, and is kept from it.
#[tokio::test]
async fn a_command_in_the_background_goes_on_where_that_is_kept() {
    let scene = Scene::with(|config| (config.bypasses, config.background) = (true, BackgroundPolicy::Kept));
    let started = |command: &str| {
        let arguments = serde_json::json!({"command": command, "run_in_background": true});
        format!("TOOL:raw:Bash:{arguments}")
    };
    let lasting = "while :; do echo tick >> ticks; sleep 0.21937; done";
    let first = scene.turn(None, &started(lasting)).await;
    let (native, pid) = (first.native(), scene.pid().expect("it is kept"));
    let goes_on = |event: &AgentEvent| matches!(event, AgentEvent::Notice { text } if text.starts_with("goes on in the background: "));
    assert!(first.has(goes_on), "{:#?}", first.events);
    assert!(!scene.claude.background(scene.session).await.is_empty());

    let second = scene.turn(Some(&native), &started("sleep 2.61937")).await;
    assert_eq!((second.native(), scene.pid()), (native.clone(), Some(pid)));
    let asked = scene.model().asked().len();
    within(async {
        while count_commands("sleep 2.61937") > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    // It has something to say about that, and is interrupted; the process and the other command stay. What is said to it in the
    // midst of that it takes into a turn of its own, so this waits until it has asked the model, if it comes so far.
    let asks = async {
        while scene.model().asked().len() == asked {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(5), asks).await;
    within(async {
        while scene.claude.background(scene.session).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let third = scene.turn(Some(&native), "TOOL:bash:head -1 ticks").await;
    assert_eq!((third.native(), scene.pid()), (native.clone(), Some(pid)), "{:#?}", third.events);
    assert!(third.text().contains("TOOL SAID: tick"), "{:#?}", third.events);
    // At most one request for the turn of its own, which was cut, and two for ours.
    assert!(scene.model().asked().len() <= asked + 3, "{:#?}", scene.model().asked());
    let ticks = || std::fs::read_to_string(scene.stage.directory().join("ticks")).unwrap_or_default().len();
    let before = ticks();
    within(async {
        while ticks() == before {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;

    let ended = scene.claude.release(scene.session).await;
    assert!(ended.words().contains("echo tick"), "{}", ended.words());
    assert_eq!((scene.left(), count_commands("0.21937")), (0, 0));
    within(scene.claude.close()).await;
}

#[tokio::test]
async fn too_many_waiting_processes_and_one_that_waits_too_long_are_ended() {
    let scene = Scene::with(|config| config.kept_max = 1);
    let native = scene.turn(None, "keep CODE:maple").await.native();
    assert_eq!(scene.left(), 1);
    let other = Launch { session: SessionId::from_bits(scene.session.bits() ^ 1), ..scene.launch(None) };
    let other = Launch { tree: agent::TreeName::of(other.session), ..other };
    scene.said(&other, "hello").await.hear_out().await;
    // Its process is just being ended. Nobody who comes now is told that it is busy.
    assert_eq!(scene.turn(Some(&native), "RECALL").await.text(), "RECALL: maple [turn=2]");
    within(scene.claude.close()).await;
    assert_eq!(scene.left() + count_marked(&other.tree, &scene.stage.locks()), 0);

    let hasty = Scene::with(|config| config.idle_max = Duration::from_millis(1));
    let native = hasty.turn(None, "keep CODE:maple").await.native();
    assert_eq!(hasty.turn(Some(&native), "RECALL").await.text(), "RECALL: maple [turn=2]");
    hasty.until_gone().await;
}

#[tokio::test]
async fn an_answer_that_is_longer_than_a_line_may_be_ends_and_says_that_it_was() {
    let scene = Scene::new();
    let turn = scene.turn(None, "WORDS:170000").await;
    assert!(matches!(turn.events.last(), Some(AgentEvent::Finished { .. })), "{:#?}", turn.events);
    assert!(turn.has(|event| matches!(event, AgentEvent::Notice { text } if text.contains("left out"))));
    assert_eq!(scene.turn(Some(&turn.native()), "hello").await.text(), "ECHO: hello [turn=2]");
    within(scene.claude.close()).await;
}

/// One that is there and does not answer.
#[tokio::test]
async fn a_process_that_hangs_while_it_waits_is_replaced_unseen() {
    let scene = Scene::new();
    let first = scene.turn(None, "keep CODE:maple").await.native();
    let pid = scene.pid().expect("it is kept");
    signal(pid, Signal::STOP);
    assert_eq!(scene.turn(Some(&first), "RECALL").await.text(), "RECALL: maple [turn=2]");
    assert_ne!(scene.pid(), Some(pid));
    within(scene.claude.close()).await;
    assert_eq!(scene.left(), 0);
}

#[tokio::test]
async fn without_leave_to_bypass_a_mode_that_does_is_refused() {
    let scene = Scene::new();
    let launch = Launch { mode: Some("bypassPermissions".to_owned()), ..scene.launch(None) };
    let refused = within(scene.claude.start(launch)).await.err().unwrap();
    assert_eq!((refused.failure, scene.left()), (Failure::Refused, 0));
}

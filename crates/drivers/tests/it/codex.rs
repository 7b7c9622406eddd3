//! The real codex: what is particular to it. What it has in common with the others is in `real`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use agent::{About, Account, Agent, AgentEvent, Launch, Message, QuestionAnswer, Running, Trouble, Usage};
use homing_drivers::codex::Codex;
use homing_drivers::{BackgroundPolicy, ProgramConfig};
use kernel::{Failure, MessageId, Native, PersonId, SessionId};
use processes::count_marked;
use testkit::{AgentFixture, RealAgent};

use crate::bench::{count_commands, fence, ground, lines_heard, overheard};
use crate::real::program_config;

/// The longest that one turn may take here. Codex needs a tenth of a second.
const TURN_WAIT: Duration = Duration::from_secs(60);

/// The outcome of a turn.
#[derive(Debug, Default)]
struct Told {
    events: Vec<AgentEvent>,
    text: String,
    native: Option<Native>,
}

impl Told {
    #[track_caller]
    fn trouble(&self) -> &Trouble {
        match self.events.last() {
            Some(AgentEvent::Failed(trouble)) => trouble,
            _ => panic!("it did not fail: {:#?}", self.events),
        }
    }

    fn usage(&self) -> Vec<Usage> {
        let usage = |event: &AgentEvent| match event {
            AgentEvent::Usage(usage) => Some(*usage),
            _ => None,
        };
        self.events.iter().filter_map(usage).collect()
    }

    fn about(&self) -> &About {
        fn about(event: &AgentEvent) -> Option<&About> {
            if let AgentEvent::About(about) = event { Some(about) } else { None }
        }
        self.events.iter().rev().find_map(about).expect("it says something about itself")
    }
}

struct Bench {
    stage: AgentFixture,
    codex: Codex,
    session: SessionId,
}

impl Bench {
    fn new() -> Self {
        Self::with(|config| config)
    }

    fn with(change: impl FnOnce(ProgramConfig) -> ProgramConfig) -> Self {
        let stage = AgentFixture::new(RealAgent::Codex);
        let codex = Codex::new(change(program_config(&stage)));
        Self { stage, codex, session: some_session() }
    }

    /// Without a kept process each turn is one of its own.
    fn without_keeping() -> Self {
        Self::with(|config| ProgramConfig { kept_max: 0, ..config })
    }

    fn launch(&self, native: Option<&Native>) -> Launch {
        let launch =
            Launch::new(self.session, fence(), MessageId::from_bits(1), ground(self.stage.directory()));
        Launch { native: native.cloned(), ..launch }
    }

    async fn turn(&self, native: Option<&Native>, text: &str) -> Told {
        self.turn_of(self.launch(native), text).await
    }

    async fn turn_of(&self, launch: Launch, text: &str) -> Told {
        let mut told = Told::default();
        let mut running = match self.codex.start(launch).await {
            Ok(running) => running,
            Err(trouble) => {
                told.events.push(AgentEvent::Failed(trouble));
                return told;
            }
        };
        listen(&mut running, text, &mut told, |_| false).await;
        told
    }

    /// A turn that was handed over and has said something we wait for.
    async fn turn_until(
        &self,
        native: Option<&Native>,
        text: &str,
        until: impl Fn(&AgentEvent) -> bool,
    ) -> (Box<dyn Running>, Told) {
        let (mut running, mut told) = (self.codex.start(self.launch(native)).await.unwrap(), Told::default());
        listen(&mut running, text, &mut told, until).await;
        (running, told)
    }

    fn left(&self) -> usize {
        count_marked(&agent::TreeName::of(self.session), &self.stage.locks())
    }
}

/// Hands over the words when it is ready, and listens to the end or until something was said.
async fn listen(
    running: &mut Box<dyn Running>,
    text: &str,
    told: &mut Told,
    until: impl Fn(&AgentEvent) -> bool,
) {
    let listening = async {
        loop {
            let event = running.next().await;
            told.events.push(event.clone());
            match &event {
                AgentEvent::Ready { native } => {
                    told.native.clone_from(native);
                    let message = Message::new(MessageId::from_bits(1), text.to_owned());
                    running.hand(message).await.unwrap();
                }
                AgentEvent::Text { text } => told.text += text,
                AgentEvent::Finished { native, .. } => told.native.clone_from(native),
                _ => {}
            }
            if event.is_last() || until(&event) {
                return;
            }
        }
    };
    if tokio::time::timeout(TURN_WAIT, listening).await.is_err() {
        panic!("no end after {:#?}", told.events);
    }
}

fn some_session() -> SessionId {
    let mut bytes = [0; 16];
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom").unwrap(), &mut bytes).unwrap();
    SessionId::from_bits(u128::from_le_bytes(bytes) >> 1)
}

/// A command that codex has to ask for.
fn asking(command: &str) -> String {
    let arguments = serde_json::json!({
        "cmd": command, "sandbox_permissions": "require_escalated", "justification": "may I?",
    });
    format!("TOOL:raw:exec_command:{arguments}")
}

/// It ended its turn and left, rather than being killed. What it had started for itself, such as a look at the shell's
/// settings, may have had to be.
fn went_by_itself(told: &Told) -> bool {
    matches!(told.events.last(), Some(AgentEvent::Died { detail, .. }) if detail.contains("exit code 0"))
}

/// The ids of the app servers of that home.
fn app_servers(home: &Path) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut found = Vec::new();
    for process in processes {
        let read = |file: &str| std::fs::read(process.path().join(file)).unwrap_or_default();
        let is_ours = String::from_utf8_lossy(&read("environ")).contains(&format!("HOME={}", home.display()));
        let name = read("comm");
        if is_ours && name.starts_with(b"codex") {
            found.extend(process.file_name().to_str().and_then(|pid| pid.parse::<u32>().ok()));
        }
    }
    found
}

/// Each thing that it is asked beside the message is time that a turn takes.
#[tokio::test]
async fn a_turn_in_a_kept_process_is_the_message_and_nothing_else() {
    let place = tempfile::tempdir().unwrap();
    let mut heard = None;
    let bench = Bench::with(|config| {
        let (program, lines) = overheard(&config.program, place.path());
        heard = Some(lines);
        ProgramConfig { program, ..config }
    });
    let heard = heard.unwrap();
    let first = bench.turn(None, "one").await;
    let told = lines_heard(&heard).len();
    bench.codex.expect(bench.session);
    let second = bench.turn(first.native.as_ref(), "two").await;
    assert!(second.text.contains("two"), "{}", second.text);
    let lines = lines_heard(&heard);
    let methods: Vec<_> = lines[told..].iter().map(|line| line["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["turn/start"]);
    bench.codex.close().await;
}

#[tokio::test]
async fn two_turns_in_one_process_remember_and_are_counted_apart() {
    let bench = Bench::new();
    let first = bench.turn(None, "keep CODE:maple").await;
    let native = first.native.clone().expect("codex says which conversation it is");
    let kept = app_servers(&bench.stage.home());
    assert_eq!(kept.len(), 1, "{first:#?}");
    let second = bench.turn(Some(&native), "RECALL").await;
    assert_eq!(second.text, "RECALL: maple [turn=2]");
    assert_eq!(second.native.as_ref(), Some(&native));
    assert_eq!(app_servers(&bench.stage.home()), kept, "it is the same process");
    // Codex says sums; a sum would be twice as much the second time.
    let (first, second) = (first.usage(), second.usage());
    assert_eq!((first.len(), second.len()), (1, 1));
    assert!(second[0].input_tokens < first[0].input_tokens * 3 / 2, "{first:?} {second:?}");
    assert!(first[0].window.is_some_and(|(used, fit)| used > 0 && fit > used));
    bench.codex.close().await;
    assert_eq!(bench.left(), 0);
}

#[tokio::test]
async fn it_says_what_it_is_and_where() {
    let bench = Bench::without_keeping();
    let told = bench.turn(None, "hello").await;
    let about = told.about();
    assert_eq!(Path::new(&about.directory), bench.stage.directory());
    assert_eq!((about.model.as_str(), about.mode.as_str()), ("stub-1", "auto"));
    assert!(!about.models.is_empty() && about.version.starts_with("0."), "{about:?}");
    assert_eq!(about.modes.iter().map(|mode| mode.name.as_str()).collect::<Vec<_>>(), ["read-only", "auto"]);
    assert!(
        matches!(bench.codex.look().await, agent::Presence::Here { version } if version == about.version)
    );
    let launch = Launch { model: Some("another-1".to_owned()), ..bench.launch(None) };
    assert_eq!(bench.turn_of(launch, "hello").await.about().model, "another-1");
    assert_eq!(bench.stage.model.turns().last().unwrap().model, "another-1");
}

#[tokio::test]
async fn another_process_goes_on_with_it_also_in_another_directory() {
    let bench = Bench::without_keeping();
    let native = bench.turn(None, "keep CODE:birch").await.native.unwrap();
    let told = bench.turn(Some(&native), "RECALL").await;
    assert_eq!(told.text, "RECALL: birch [turn=2]");
    let usage = told.usage();
    assert!(usage.len() == 1 && usage[0].input_tokens > 0, "{usage:?}");

    let directory = bench.stage.another_directory("elsewhere");
    let launch = |native: &Native| Launch { directory: ground(&directory), ..bench.launch(Some(native)) };
    let told = bench.turn_of(launch(&native), "TOOL:bash:pwd").await;
    assert_eq!(told.text, format!("TOOL SAID: {}", directory.display()));
    assert_eq!(Path::new(&told.about().directory), directory);
    assert_eq!(told.native.as_ref(), Some(&native));
    assert_eq!(bench.turn_of(launch(&native), "RECALL").await.text, "RECALL: birch [turn=4]");
}

#[tokio::test]
async fn a_long_history_and_a_long_first_message_can_be_gone_on_with() {
    let bench = Bench::without_keeping();
    // Codex shows the first message with the conversation; as JSON it is more than a line may have.
    let native = bench.turn(None, &format!("{}\nhello", "\"".repeat(600_000))).await.native.unwrap();
    // That is more than the model can take, so that codex sums it up for the model; what it wrote down stays.
    assert_eq!(bench.turn(Some(&native), "keep CODE:oak").await.native.as_ref(), Some(&native));
    let written = std::fs::metadata(&bench.stage.files_of(&native.id)[0]).unwrap().len();
    assert!(written > 1_200_000, "{written}");
    let told = bench.turn(Some(&native), "RECALL").await;
    assert!(told.text.starts_with("RECALL: oak"), "{:?}: {:?}", told.text, told.events.last());
    let is_about = |event: &AgentEvent| matches!(event, AgentEvent::About(about) if Path::new(&about.directory) == bench.stage.directory());
    assert!(told.events.iter().any(is_about));
}

#[tokio::test]
async fn an_answer_longer_than_a_line_may_be_ends_its_turn() {
    let bench = Bench::new();
    // Codex gets it in two pieces, and repeats it as a whole at the end.
    let told = bench.turn(None, &"\"".repeat(600_000)).await;
    assert!(matches!(told.events.last(), Some(AgentEvent::Finished { .. })), "{:?}", told.events.last());
    assert!(told.text.len() > 600_000, "{}", told.text.len());
    bench.codex.close().await;
}

#[tokio::test]
async fn a_conversation_codex_does_not_know_is_gone() {
    let bench = Bench::without_keeping();
    let native = bench.turn(None, "hello").await.native.unwrap();
    bench.stage.lose(&native.id);
    let told = bench.turn(Some(&native), "hello").await;
    assert_eq!(told.trouble().failure, Failure::Gone, "{}", told.trouble());
    // Made in another home, it may still be there.
    let elsewhere = Native::new(native.id.clone()).at("codex:/another/home/.codex");
    assert_eq!(bench.turn(Some(&elsewhere), "hello").await.trouble().failure, Failure::Refused);
    let before = bench.stage.model.asked().len();
    let nonsense = Native { id: "nonsense".to_owned(), ..native };
    assert_eq!(bench.turn(Some(&nonsense), "hello").await.trouble().failure, Failure::Gone);
    assert_eq!(bench.stage.model.asked().len(), before);
}

/// Codex writes a conversation down with its first turn; a process that dies before must not make it unknown.
#[tokio::test]
async fn a_conversation_that_was_never_handed_anything_is_there_the_next_time() {
    let bench = Bench::without_keeping();
    let mut running = bench.codex.start(bench.launch(None)).await.unwrap();
    let native = loop {
        match running.next().await {
            AgentEvent::Ready { native } => break native.unwrap(),
            event => assert!(!event.is_last(), "{event:?}"),
        }
    };
    assert!(running.stop(0).await.gone);
    let told = bench.turn(Some(&native), "hello").await;
    assert_eq!(told.text, "ECHO: hello [turn=1]", "{:?}", told.events.last());
    assert_eq!(told.native, Some(native));
}

#[tokio::test]
async fn a_conversation_that_another_process_has_open_is_busy() {
    let bench = Bench::new();
    let native = bench.turn(None, "keep CODE:elm").await.native.unwrap();
    // The first session's process is kept, and holds it; another session of the same home wants it.
    let launch =
        Launch::new(some_session(), fence(), MessageId::from_bits(2), ground(bench.stage.directory()));
    let launch = Launch { native: Some(native.clone()), ..launch };
    let told = bench.turn_of(launch.clone(), "RECALL").await;
    assert_eq!(told.trouble().failure, Failure::Busy, "{:?}", told.events.last());
    bench.codex.release(bench.session).await;
    assert_eq!(bench.turn_of(launch, "RECALL").await.text, "RECALL: elm [turn=2]");
    bench.codex.close().await;
}

#[tokio::test]
async fn failures_of_the_model_are_told_apart_and_the_next_turn_works() {
    let bench = Bench::new();
    let native = bench.turn(None, "keep CODE:fir").await.native.unwrap();
    for (text, failure) in [
        ("ERR:401", Failure::Refused),
        ("ERR:429", Failure::Transient),
        ("ERR:529", Failure::Transient),
        ("DROP", Failure::Transient),
    ] {
        let told = bench.turn(Some(&native), text).await;
        assert_eq!(told.trouble().failure, failure, "{text}: {}", told.trouble());
        assert_eq!(told.trouble().detail.contains("codex login"), text == "ERR:401", "{}", told.trouble());
        assert!(told.usage().is_empty(), "{text}: {:?}", told.usage());
        assert_eq!(bench.left(), 0, "{text}");
    }
    bench.stage.model.refuse();
    let told = bench.turn(Some(&native), "hello").await;
    assert_eq!(told.trouble().failure, Failure::Transient, "{}", told.trouble());
    bench.stage.model.listen();
    assert!(bench.turn(Some(&native), "RECALL").await.text.starts_with("RECALL: fir"));
    bench.codex.close().await;
}

#[tokio::test]
async fn what_it_asks_for_is_done_or_not_as_the_person_says() {
    let bench = Bench::new();
    let mut native = None;
    let reason = "not now".to_owned();
    for (answer, is_done) in [(QuestionAnswer::Allow, true), (QuestionAnswer::Deny { reason }, false)] {
        let file = bench.stage.directory().join(format!("made-{is_done}"));
        let text = asking(&format!("echo yes > {}", file.display()));
        let is_asked = |event: &AgentEvent| matches!(event, AgentEvent::Asked { .. });
        let (mut running, mut told) = bench.turn_until(native.as_ref(), &text, is_asked).await;
        let Some(AgentEvent::Asked { question, tool, detail, .. }) = told.events.last().cloned() else {
            panic!("it did not ask: {:#?}", told.events)
        };
        assert_eq!(tool, "shell");
        assert!(detail.contains("echo yes") && detail.contains("may I?"), "{detail}");
        assert!(!file.exists());
        running.answer(&question, answer).await.unwrap();
        listen(&mut running, "", &mut told, |_| false).await;
        assert!(matches!(told.events.last(), Some(AgentEvent::Finished { .. })), "{:#?}", told.events);
        assert!(!told.events.iter().any(|event| matches!(event, AgentEvent::Withdrawn { .. })));
        assert_eq!(file.exists(), is_done);
        native = told.native;
    }
    bench.codex.close().await;
}

#[tokio::test]
async fn a_change_of_files_is_asked_for_and_told() {
    let bench = Bench::without_keeping();
    let patch = "*** Begin Patch\n*** Add File: made.txt\n+hello\n*** End Patch\n";
    let arguments = serde_json::json!({"cmd": format!("apply_patch <<'EOF'\n{patch}EOF\n")});
    let launch = Launch { mode: Some("read-only".to_owned()), ..bench.launch(None) };
    let mut running = bench.codex.start(launch).await.unwrap();
    let mut told = Told::default();
    let text = format!("TOOL:raw:exec_command:{arguments}");
    listen(&mut running, &text, &mut told, |event| matches!(event, AgentEvent::Asked { .. })).await;
    let Some(AgentEvent::Asked { question, tool, detail, .. }) = told.events.last().cloned() else {
        panic!("it did not ask: {:#?}", told.events)
    };
    assert_eq!(tool, "apply_patch");
    assert!(detail.contains("made.txt") && detail.contains("hello"), "{detail}");
    assert_eq!(told.about().mode, "read-only");
    running.answer(&question, QuestionAnswer::Allow).await.unwrap();
    listen(&mut running, "", &mut told, |_| false).await;
    let path = bench.stage.directory().join("made.txt");
    let changed =
        AgentEvent::FileChanged { path: path.display().to_string(), change: agent::FileChangeKind::Added };
    assert!(told.events.contains(&changed), "{:#?}", told.events);
    assert_eq!(std::fs::read_to_string(path).unwrap(), "hello\n");
}

#[tokio::test]
async fn a_turn_that_is_stopped_takes_back_its_question_and_is_remembered() {
    let bench = Bench::new();
    let native = bench.turn(None, "keep CODE:ash").await.native.unwrap();
    let is_asked = |event: &AgentEvent| matches!(event, AgentEvent::Asked { .. });
    let (mut running, mut told) = bench.turn_until(Some(&native), &asking("sleep 1000"), is_asked).await;
    assert!(running.stop(10_000).await.gone);
    listen(&mut running, "", &mut told, |_| false).await;
    assert!(went_by_itself(&told), "{:?}", told.events.last());
    assert!(
        told.events.iter().any(|event| matches!(event, AgentEvent::Withdrawn { .. })),
        "{:#?}",
        told.events
    );
    assert_eq!(bench.left(), 0);

    // In the middle of a tool, and in the middle of words.
    let is_running = |event: &AgentEvent| matches!(event, AgentEvent::ToolCall { .. });
    let (mut running, _) = bench.turn_until(Some(&native), "TOOL:bash:sleep 1000", is_running).await;
    assert!(running.stop(10_000).await.gone);
    assert_eq!(bench.left(), 0);
    let is_talking = |event: &AgentEvent| matches!(event, AgentEvent::Text { .. });
    let (mut running, mut told) = bench.turn_until(Some(&native), "CHUNKS:100:100", is_talking).await;
    assert!(running.stop(10_000).await.gone);
    listen(&mut running, "", &mut told, |_| false).await;
    assert!(matches!(told.events.last(), Some(AgentEvent::Died { .. })), "{:?}", told.events.last());
    assert_eq!(bench.left(), 0);
    assert!(bench.turn(Some(&native), "RECALL").await.text.starts_with("RECALL: ash"));
    bench.codex.close().await;
}

/// The turn has no id yet when it is stopped.
#[tokio::test]
async fn a_turn_that_has_hardly_begun_can_be_stopped_politely() {
    let bench = Bench::without_keeping();
    let (mut running, mut told) =
        bench.turn_until(None, "SLEEP:30", |event| matches!(event, AgentEvent::Ready { .. })).await;
    assert!(running.stop(10_000).await.gone);
    listen(&mut running, "", &mut told, |_| false).await;
    assert!(went_by_itself(&told), "{:?}", told.events.last());
    let native = told.native.unwrap();
    assert!(bench.turn(Some(&native), "hello").await.text.starts_with("ECHO: hello"));
}

#[tokio::test]
async fn what_a_turn_leaves_running_is_ended_with_it() {
    let bench = Bench::new();
    let told = bench.turn(None, "TOOL:bash:setsid sleep 1000 >/dev/null 2>&1 & echo left").await;
    assert!(matches!(told.events.last(), Some(AgentEvent::Finished { .. })), "{:?}", told.events.last());
    let left = app_servers(&bench.stage.home()).len();
    assert_eq!(bench.left(), left, "{:#?}", told.events);
    bench.codex.close().await;
    assert_eq!(bench.left(), 0);
}

#[tokio::test]
async fn nobody_acts_without_asking_unless_that_is_allowed() {
    let bench = Bench::without_keeping();
    let full = |bench: &Bench| Launch { mode: Some("full-access".to_owned()), ..bench.launch(None) };
    assert_eq!(bench.turn_of(full(&bench), "hello").await.trouble().failure, Failure::Refused);
    assert!(bench.stage.model.asked().is_empty());
    let bench = Bench::with(|config| ProgramConfig { bypasses: true, kept_max: 0, ..config });
    let outside = bench.stage.another_directory("outside").join("made");
    let told = bench.turn_of(full(&bench), &format!("TOOL:bash:echo yes > {}", outside.display())).await;
    assert!(outside.exists(), "{:#?}", told.events);
    assert_eq!(told.about().mode, "full-access");
    assert!(!told.events.iter().any(|event| matches!(event, AgentEvent::Asked { .. })));
}

/// A running session of codex's own tool goes on, and takes input in the next turn.
#[tokio::test]
async fn a_running_session_goes_on_where_that_is_kept() {
    let bench =
        Bench::with(|config| ProgramConfig { bypasses: true, background: BackgroundPolicy::Kept, ..config });
    let full =
        |native: Option<&Native>| Launch { mode: Some("full-access".to_owned()), ..bench.launch(native) };
    let command = "read word; echo heard $word; sleep 4311.5";
    let arguments = serde_json::json!({"cmd": command, "yield_time_ms": 300, "tty": true});
    let first = bench.turn_of(full(None), &format!("TOOL:raw:exec_command:{arguments}")).await;
    let goes_on = |event: &AgentEvent| matches!(event, AgentEvent::Notice { text } if text.starts_with("goes on in the background: "));
    assert!(first.events.iter().any(goes_on), "{:#?}", first.events);
    assert!(!bench.codex.background(bench.session).await.is_empty());

    // The model is told the session's number in what the tool said.
    let said = bench.stage.model.turns().last().expect("it was asked").body.to_string();
    let number = said
        .split("session ID ")
        .nth(1)
        .and_then(|rest| rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse::<u64>().ok());
    let number = number.unwrap_or_else(|| panic!("no session in {said}"));
    let input = serde_json::json!({"session_id": number, "chars": "owl\n", "yield_time_ms": 500});
    let second = bench.turn_of(full(first.native.as_ref()), &format!("TOOL:raw:write_stdin:{input}")).await;
    // What the tool printed goes to the model; the terminal's echo comes before it.
    let told = bench.stage.model.turns().last().expect("it was asked").body.to_string();
    assert!(told.contains("heard owl"), "{:#?}", second.events);
    assert!(count_commands("sleep 4311.5") > 0, "it goes on");

    assert!(!bench.codex.release(bench.session).await.is_empty());
    assert_eq!((bench.left(), count_commands("sleep 4311.5")), (0, 0));
}

/// The settings of somebody who talks to codex's own model server.
fn use_its_own_server(stage: &AgentFixture) -> PathBuf {
    let home = stage.home().join(".codex");
    let settings = format!(
        "openai_base_url = \"{}\"\nmodel = \"gpt-5\"\n[features]\nplugins = false\napps = false\n",
        stage.model.url_v1()
    );
    std::fs::write(home.join("config.toml"), settings).unwrap();
    home
}

#[tokio::test]
async fn whoever_is_not_signed_in_is_told_how_and_a_key_of_their_own_is_enough() {
    let bench = Bench::without_keeping();
    let home = use_its_own_server(&bench.stage);
    let told = bench.turn(None, "hello").await;
    assert_eq!(told.trouble().failure, Failure::Refused);
    assert!(told.trouble().detail.contains("codex login"), "{}", told.trouble());
    assert!(matches!(bench.codex.sign_in(), agent::SignIn::Missing { .. }));

    let secrets = vec![("OPENAI_API_KEY".to_owned(), "sk-of-a-person".to_owned())];
    let account = Account::Person { person: PersonId::from_bits(1), secrets };
    let launch = Launch { account, ..bench.launch(None) };
    let mut running = bench.codex.start(launch).await.unwrap();
    let mut seen = Vec::new();
    loop {
        let event = running.next().await;
        seen.push(event.clone());
        if event.is_last() || matches!(event, AgentEvent::Ready { .. }) {
            break;
        }
    }
    assert!(matches!(seen.last(), Some(AgentEvent::Ready { .. })), "{seen:#?}");
    // The key is in no file and on no command line.
    for pid in app_servers(&bench.stage.home()) {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        assert!(!String::from_utf8_lossy(&line).contains("sk-of-a-person"));
    }
    assert!(running.stop(0).await.gone);
    assert!(!home.join("auth.json").exists());
}

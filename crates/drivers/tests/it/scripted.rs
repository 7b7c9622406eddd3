//! The scripted agent as a process survives every driver's stories, says what it did, and gets nothing of ours.

use std::time::Duration;

use agent::{
    About, Agent, AgentEvent, FileChangeKind, Launch, Message, PlanStep, Progress, QuestionAnswer, Steered,
};
use homing_drivers::ScriptedConfig;
use kernel::Failure;

use crate::bench::{Bench, WAIT, be_ready, to_the_end};

agent::conformance!(Bench::new());

/// The same stories, in processes that stay.
mod kept {
    use homing_drivers::ScriptedConfig;

    use crate::bench::Bench;

    agent::conformance!(Bench::with(|config| ScriptedConfig { kept_max: 4, ..config }));
}

#[tokio::test]
async fn it_writes_down_what_really_ran() {
    let bench = Bench::new();
    let launch = bench.launch();
    let mut running = bench.attempt(&launch, "hello", "#1 hello").await;
    to_the_end(&mut *running).await;
    let log = bench.log();
    let events: Vec<&str> = log.iter().map(|entry| entry["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["up", "start", "end"]);
    for entry in &log {
        assert_eq!(entry["session"], launch.session.to_string());
        assert_eq!(entry["message"], launch.message.to_string());
        assert_eq!((&entry["turn"], &entry["attempt"]), (&1.into(), &1.into()));
        assert!(entry["pid"].as_i64().unwrap() > 1 && entry["time_ms"].as_i64().unwrap() > 0);
    }
    assert_eq!(log[2]["outcome"], "finished");
}

#[tokio::test]
async fn a_command_runs_in_the_directory_and_its_output_is_kept() {
    let bench = Bench::new();
    std::fs::write(bench.place.path().join("seen"), "yes").unwrap();
    let mut running = bench.agent.start(bench.launch()).await.unwrap();
    be_ready(&mut *running).await;
    let message = agent::Message::new(bench.launch().message, "!run cat seen; echo no >&2; exit 3");
    running.hand(message).await.unwrap();
    let (events, _) = to_the_end(&mut *running).await;
    assert!(events.iter().any(|event| matches!(event, AgentEvent::ToolCall { tool, .. } if tool == "shell")));
    let result = events.iter().find(|event| matches!(event, AgentEvent::ToolResult { .. }));
    assert!(
        matches!(result, Some(AgentEvent::ToolResult { output, failed: true, .. }) if output == "yesno\n")
    );
    assert!(events.iter().any(|event| matches!(event, AgentEvent::Text { text } if text == "\nyesno")));
}

/// The things that agents show beside their answers, as it was told to show them, and files as they then are.
#[tokio::test]
async fn tools_reasoning_plans_and_files_are_shown() {
    let bench = Bench::new();
    let launch = bench.launch();
    let told = "!tool build | all | one\\n | two\n!tool-fails test | all | no\n!think first this\n\
                !plan x look | > mend | test\n!edit new/a.txt | words\\n\n!edit new/a.txt | others\n!remove seen\n!remove seen";
    let seen = bench.place.path().join("seen");
    std::fs::write(&seen, "yes").unwrap();
    let mut running = bench.attempt(&launch, told, "#1").await;
    let (events, text) = to_the_end(&mut *running).await;
    let call = |call: &str, tool: &str| AgentEvent::ToolCall {
        call: call.to_owned(),
        tool: tool.to_owned(),
        input: "all".to_owned(),
    };
    let printed =
        |output: &str| AgentEvent::ToolProgress { call: "tool1".to_owned(), output: output.to_owned() };
    let result = |call: &str, output: &str, failed| AgentEvent::ToolResult {
        call: call.to_owned(),
        output: output.to_owned(),
        failed,
    };
    let step = |text: &str, progress| PlanStep { text: text.to_owned(), progress };
    let changed = |path: &str, change| AgentEvent::FileChanged { path: path.to_owned(), change };
    let expected = [
        call("tool1", "build"),
        printed("one\n"),
        printed("two"),
        result("tool1", "one\ntwo", false),
        call("tool2", "test"),
        result("tool2", "no", true),
        AgentEvent::Reasoning { text: "first this".to_owned() },
        AgentEvent::Plan {
            steps: vec![
                step("look", Progress::Done),
                step("mend", Progress::Active),
                step("test", Progress::Waiting),
            ],
        },
        changed("new/a.txt", FileChangeKind::Added),
        changed("new/a.txt", FileChangeKind::Edited),
        changed("seen", FileChangeKind::Removed),
    ];
    let is_shown = |event: &&AgentEvent| expected.contains(event);
    assert_eq!(events.iter().filter(is_shown).cloned().collect::<Vec<_>>(), expected);
    assert!(text.starts_with("\nseen: No such file"), "what cannot be done is said: {text:?}");
    assert_eq!(std::fs::read_to_string(bench.place.path().join("new/a.txt")).unwrap(), "others");
    assert!(!seen.exists());
}

#[tokio::test]
async fn nothing_of_our_environment_reaches_it() {
    // Every test process has this one, set by cargo.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let bench = Bench::new();
    let mut running = bench.attempt(&bench.launch(), "!run env", "#1").await;
    let (_, text) = to_the_end(&mut *running).await;
    let allowed = ["PATH", "HOME", "PWD", "SHLVL", "_", "OLDPWD"];
    for line in text.lines().filter(|line| line.contains('=')) {
        let name = line.split('=').next().unwrap();
        assert!(name.starts_with("HOMING_") || allowed.contains(&name), "{line}");
    }
    assert!(text.contains("HOMING_TREE="));
}

#[tokio::test]
async fn what_cannot_be_started_is_refused() {
    let bench = Bench::new();
    let nowhere = agent::Launch { directory: "/nowhere/at/all".into(), ..bench.launch() };
    let trouble = bench.agent.start(nowhere).await.err().unwrap();
    assert_eq!(trouble.failure, Failure::Refused, "{trouble}");
    let missing = Bench::with(|config| ScriptedConfig { exe: "/nowhere/homing".into(), ..config });
    assert!(missing.agent.start(missing.launch()).await.is_err());
    assert!(matches!(missing.agent.look().await, agent::Presence::Missing { .. }));
}

/// An agent that says more than anybody reads waits; nothing fills up.
#[tokio::test]
async fn a_flood_that_nobody_reads_takes_no_room() {
    let bench = Bench::new();
    let launch = bench.launch();
    let mut running = bench.attempt(&launch, "!flood 200000000", "#1").await;
    let supervisor = bench.supervisor_of(&launch.tree);
    // Longer than the flood would take if somebody buffered it.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(resident_kb(supervisor) < 8_000, "{} kB", resident_kb(supervisor));
    assert!(running.stop(0).await.gone);
    bench.nothing_left_within(&launch.tree, WAIT).await;
}

#[tokio::test]
async fn a_question_nobody_answers_can_be_stopped() {
    let bench = Bench::new();
    let launch = bench.launch();
    let mut running = bench.attempt(&launch, "!ask Shell", "#1").await;
    while !matches!(running.next().await, AgentEvent::Asked { .. }) {}
    assert!(running.stop(1_000).await.gone);
    assert!(running.answer("q1", QuestionAnswer::Allow).await.is_ok() || running.stop(0).await.gone);
}

/// A command that is said before it was listed is taken for words; afterwards it is one.
#[tokio::test]
async fn commands_are_listed_late_when_it_is_told_so() {
    let bench = with_switch("HOMING_SCRIPTED_COMMANDS_MS", "300");
    let launch = bench.launch();
    let mut running = bench.agent.start(launch.clone()).await.unwrap();
    assert!(about(&running.next().await).commands.is_empty());
    assert!(matches!(running.next().await, AgentEvent::Ready { .. }));
    let listed = tokio::time::timeout(WAIT, running.next()).await.unwrap();
    assert_eq!(about(&listed).commands.len(), 2);
    running.hand(message(&launch, "/shout hello")).await.unwrap();
    assert_eq!(to_the_end(&mut *running).await.1, "command shout: hello");

    let slow = with_switch("HOMING_SCRIPTED_COMMANDS_MS", "60000");
    assert_eq!(slow.turn(&slow.launch(), "/shout hello").await.text, "#1 /shout hello");
    let quick = Bench::new();
    assert_eq!(quick.turn(&quick.launch(), "/shout hello").await.text, "command shout: hello");
}

/// Nothing was handed to the wrong model: it is never ready.
#[tokio::test]
async fn another_model_than_was_chosen_is_refused() {
    let bench = with_switch("HOMING_SCRIPTED_FALLBACK", "large");
    let chosen = |model: &str| Launch { model: Some(model.to_owned()), ..bench.launch() };
    let mut running = bench.agent.start(chosen("small")).await.unwrap();
    let last = running.next().await;
    let AgentEvent::Failed(trouble) = &last else { panic!("{last:?}") };
    assert_eq!(trouble.failure, Failure::Refused);
    assert!(trouble.detail.contains("large, not small"), "{trouble}");
    assert!(bench.log().iter().all(|entry| entry["event"] == "up"));
    // Who chose none, or the one it uses, has nothing against it.
    assert!(bench.turn(&chosen("large"), "hello").await.native().is_some());
    assert!(bench.turn(&bench.launch(), "hello").await.native().is_some());
}

#[tokio::test]
async fn a_slow_model_makes_it_ready_late() {
    let bench = with_switch("HOMING_SCRIPTED_MODELS_MS", "300");
    let began = std::time::Instant::now();
    let mut running = bench.agent.start(bench.launch()).await.unwrap();
    assert_eq!(about(&running.next().await).model, "small");
    assert!(began.elapsed() >= Duration::from_millis(300));
    running.stop(0).await;
}

/// Also while it hangs, deaf to everything polite.
#[tokio::test]
async fn words_are_taken_while_it_speaks_and_while_it_hangs() {
    let bench = Bench::new();
    let launch = bench.launch();
    let mut running = bench.attempt(&launch, "!say 40 20", "word1").await;
    assert_eq!(running.steer(message(&launch, "more")).await, Ok(Steered::Taken));
    let (_, text) = to_the_end(&mut *running).await;
    assert!(text.contains("\n+more\n word"), "{text:?}");

    let launch = bench.launch();
    let mut running = bench.attempt(&launch, "!hang", "hanging").await;
    assert_eq!(running.steer(message(&launch, "more")).await, Ok(Steered::Taken));
    let heard = tokio::time::timeout(WAIT, running.next()).await.unwrap();
    assert_eq!(heard, AgentEvent::Text { text: "\n+more\n".to_owned() });
    let verified = running.stop(200).await;
    assert!(verified.gone && verified.killed > 0, "{verified:?}");
}

fn with_switch(name: &str, value: &str) -> Bench {
    let switches = vec![(name.to_owned(), value.to_owned())];
    Bench::with(|config| ScriptedConfig { switches, ..config })
}

fn message(launch: &Launch, text: &str) -> Message {
    Message::new(launch.message, text.to_owned())
}

#[track_caller]
fn about(event: &AgentEvent) -> &About {
    match event {
        AgentEvent::About(about) => about,
        other => panic!("{other:?}"),
    }
}

fn resident_kb(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn the_largest_message_reaches_the_process_whole() {
    let bench = Bench::new();
    let launch = bench.launch();
    let mut running = bench.agent.start(launch.clone()).await.unwrap();
    be_ready(&mut *running).await;
    // Each byte of these words is written as six.
    let mut message = agent::Message::new(launch.message, "\u{1}".repeat(agent::MESSAGE_BYTES_MAX));
    let content: Vec<u8> = (0..agent::ATTACHED_BYTES_MAX).map(|at| (at % 251) as u8).collect();
    let (name, media_type) = ("large.bin".to_owned(), "application/x-large".to_owned());
    let kind = agent::AttachmentKind::Other;
    message.attachments = vec![agent::Attachment { kind, name, media_type, content: content.into() }];
    running.hand(message).await.unwrap();
    let (events, text) = to_the_end(&mut *running).await;
    assert!(matches!(events.last(), Some(AgentEvent::Finished { .. })), "{:?}", events.last());
    let got = format!("got file application/x-large {} bytes sha256 ", agent::ATTACHED_BYTES_MAX);
    let hash = text.split_once(&got).map(|(_, rest)| rest.split(' ').next().unwrap_or_default().to_owned());
    assert_eq!(hash.as_deref(), Some(LARGE), "{}", &text[text.len().saturating_sub(300)..]);
}

/// The SHA-256 of what is handed over there, as another program has worked it out.
const LARGE: &str = "16b632f11cf950dda67dc4c184a3f9e0aa1ffa4c18927bb8977e7da97ca25bca";

//! Any program as an agent, with programs that every machine has.

use std::path::PathBuf;
use std::time::Duration;

use agent::{Agent, AgentEvent, Launch, Message, Presence, Running, TreeName};
use homing_drivers::command::{CommandAgent, CommandConfig, JsonForm, MessageChannel, OutputForm};
use homing_drivers::{ProgramConfig, TurnLimits};
use kernel::{Failure, MessageId, Native, SessionId};
use processes::count_marked;
use tempfile::TempDir;

use crate::bench::{WAIT, far_side, fence, ground};

#[tokio::test]
async fn the_message_goes_in_and_the_answer_comes_out() {
    let play = Play::new("cat", &[]);
    let words = "# a list\n\n- ä\n- 猫\n\n  indented, and no end of line";
    let ended = play.turn(&play.launch(None), words).await;
    assert_eq!(ended.text, words);
    assert!(
        matches!(&ended.last, AgentEvent::Finished { native: Some(_), reason } if reason == "exit code 0")
    );
    play.nothing_left();
}

/// The end of the input comes after the whole message, however long it is.
#[tokio::test]
async fn the_longest_message_arrives_whole_and_one_more_byte_is_refused() {
    let play = Play::new("wc", &["-c"]);
    let ended = play.turn(&play.launch(None), &"x".repeat(agent::MESSAGE_BYTES_MAX)).await;
    assert_eq!(ended.text.trim(), agent::MESSAGE_BYTES_MAX.to_string());
    let mut running = play.begin(&play.launch(None)).await;
    let text = "x".repeat(agent::MESSAGE_BYTES_MAX + 1);
    let refused = running.hand(Message::new(MessageId::from_bits(1), text)).await.unwrap_err();
    assert_eq!(refused.failure, Failure::Refused);
}

/// A program that does not wait for its input must not act before there is a message for it.
#[tokio::test]
async fn nothing_runs_before_the_message_is_handed_over() {
    let play = Play::new("sh", &["-c", "touch ran; echo done"]);
    let launch = play.launch(None);
    let mut running = play.begin(&launch).await;
    assert_eq!(count_marked(&launch.tree, &play.locks()), 0);
    assert!(running.stop(0).await.gone && !play.directory().join("ran").exists());
    assert!(matches!(running.next().await, AgentEvent::Died { .. }));
    assert_eq!(play.turn(&launch, "now").await.text, "done\n");
    assert!(play.directory().join("ran").exists());
}

#[tokio::test]
async fn words_come_as_they_are_printed() {
    let play = Play::new("sh", &["-c", "printf one; read line < gate; printf two"]);
    std::process::Command::new("mkfifo").arg(play.directory().join("gate")).status().unwrap();
    let launch = play.launch(None);
    let mut running = play.begin(&launch).await;
    running.hand(Message::new(launch.message, String::new())).await.unwrap();
    assert_eq!(next(&mut running).await, AgentEvent::Text { text: "one".to_owned() });
    let gate = play.directory().join("gate");
    tokio::task::spawn_blocking(move || std::fs::write(gate, "go\n").unwrap()).await.unwrap();
    assert_eq!(next(&mut running).await, AgentEvent::Text { text: "two".to_owned() });
    assert!(matches!(next(&mut running).await, AgentEvent::Finished { .. }));
}

#[tokio::test]
async fn the_exit_code_says_how_it_ended() {
    let play =
        Play::with("sh", &["-c", "echo out; printf 'no \\033[31mgood\\033[0m' >&2; exit $(cat)"], |config| {
            CommandConfig { refused_codes: vec![3], gone_codes: vec![4], busy_codes: vec![5], ..config }
        });
    for (code, failure) in [
        (1, Failure::Transient),
        (3, Failure::Refused),
        (4, Failure::Gone),
        (5, Failure::Busy),
        (255, Failure::Transient),
    ] {
        let ended = play.turn(&play.launch(Some(Native::new("known"))), &code.to_string()).await;
        let AgentEvent::Failed(trouble) = &ended.last else { panic!("{:?}", ended.last) };
        assert_eq!((trouble.failure, ended.text.as_str()), (failure, "out\n"), "{code}");
        assert_eq!(trouble.detail, format!("exit code {code}\nno good"));
        play.nothing_left();
    }
    // A conversation of another place may be there still.
    let moved = play.turn(&play.launch(Some(Native::new("known").at("elsewhere"))), "4").await;
    assert!(matches!(moved.last, AgentEvent::Failed(trouble) if trouble.failure == Failure::Refused));
}

#[tokio::test]
async fn a_program_that_is_killed_has_no_last_word() {
    let play = Play::new("sh", &["-c", "echo out; kill -9 $$"]);
    let ended = play.turn(&play.launch(None), "").await;
    assert!(
        matches!(&ended.last, AgentEvent::Died { detail, verified } if detail.contains("signal 9") && verified.gone)
    );
    assert_eq!(ended.text, "out\n");
}

#[tokio::test]
async fn a_stop_is_no_success_even_if_the_program_says_so() {
    let play = Play::new(
        "sh",
        &["-c", "trap 'exit 0' INT; (trap '' INT TERM; exec setsid sleep 1000) & echo up; wait; wait"],
    );
    let launch = play.launch(None);
    let mut running = play.begin(&launch).await;
    running.hand(Message::new(launch.message, String::new())).await.unwrap();
    assert_eq!(next(&mut running).await, AgentEvent::Text { text: "up\n".to_owned() });
    assert!(running.stop(2_000).await.gone);
    play.nothing_left();
    assert!(matches!(next(&mut running).await, AgentEvent::Died { .. }));
}

#[tokio::test]
async fn what_it_leaves_behind_is_ended_and_told() {
    let play = Play::new("sh", &["-c", "setsid sleep 1000 > /dev/null 2>&1 & echo done"]);
    let ended = play.turn(&play.launch(None), "").await;
    assert!(matches!(ended.last, AgentEvent::Finished { .. }));
    assert!(
        ended
            .events
            .iter()
            .any(|event| matches!(event, AgentEvent::Notice { text } if text.contains("left behind")))
    );
    play.nothing_left();
}

#[tokio::test]
async fn colours_and_what_is_no_text_are_made_harmless() {
    let play = Play::new(
        "sh",
        &["-c", "printf '\\033[1;31mred\\033[0m \\377\\376 \\033]0;title\\007ok\\r\\n'; printf '\\303'"],
    );
    let ended = play.turn(&play.launch(None), "").await;
    assert_eq!(ended.text, "red \u{fffd}\u{fffd} ok\n\u{fffd}");
}

#[tokio::test]
async fn a_line_of_fifty_megabytes_arrives_whole() {
    let play = Play::new("sh", &["-c", "head -c 50000000 /dev/zero | tr '\\0' x"]);
    let launch = play.launch(None);
    let mut running = play.begin(&launch).await;
    running.hand(Message::new(launch.message, String::new())).await.unwrap();
    let mut bytes = 0;
    loop {
        match next(&mut running).await {
            AgentEvent::Text { text } => {
                assert!(text.len() <= agent::TEXT_BYTES_MAX);
                bytes += text.len();
            }
            event => break assert!(matches!(event, AgentEvent::Finished { .. }), "{event:?}"),
        }
    }
    assert_eq!(bytes, 50_000_000);
}

#[tokio::test]
async fn a_flood_ends_with_a_clear_word() {
    let play = Play::with("sh", &["-c", "yes"], |mut config| {
        config.program.limits = TurnLimits { output_bytes_max: 1_000_000, ..TurnLimits::default() };
        config
    });
    let ended = play.turn(&play.launch(None), "").await;
    assert!(
        matches!(&ended.last, AgentEvent::Failed(trouble) if trouble.detail.contains("1.0 MB")),
        "{:?}",
        ended.last
    );
    assert!(ended.text.len() < 3_000_000);
    play.nothing_left();
}

#[tokio::test]
async fn a_message_may_be_the_last_argument() {
    let argument = |args: &[&str]| {
        Play::with("printf", args, |config| CommandConfig { hands: MessageChannel::Argument, ..config })
    };
    let play = argument(&["<%s>"]);
    assert_eq!(play.turn(&play.launch(None), "two words; $(id)").await.text, "<two words; $(id)>");
    for wrong in ["-v", "a\0b", &"x".repeat(200_000)] {
        let launch = play.launch(None);
        let mut running = play.begin(&launch).await;
        let refused = running.hand(Message::new(launch.message, wrong.to_owned())).await.unwrap_err();
        assert_eq!(refused.failure, Failure::Refused);
        play.nothing_left();
    }
    let play = argument(&["--"]);
    assert_eq!(play.turn(&play.launch(None), "-not an option").await.text, "-not an option");
}

#[tokio::test]
async fn a_conversation_keeps_its_name_and_what_is_filled_in() {
    let script = "echo \"$*|$HOMING_NATIVE|$HOMING_NEW|$HOMING_TURN|$HOMING_SESSION\"";
    let play = Play::with("sh", &["-c", script, "me"], |config| CommandConfig {
        new_args: vec!["new".to_owned(), "{native}".to_owned()],
        resume_args: vec!["go-on".to_owned(), "{native}".to_owned(), "{directory}".to_owned()],
        model_args: vec!["model={model}".to_owned()],
        remembers: true,
        ..config
    });
    let launch = play.launch(None);
    let first = play.turn(&launch, "").await;
    let native = first.native.clone().unwrap();
    let (id, session) = (&native.id, launch.session);
    assert_eq!(first.text, format!("new {id}|{id}|1|1|{session}\n"));
    let again = Launch { model: Some("big".to_owned()), ..play.launch(Some(native.clone())) };
    let second = play.turn(&again, "").await;
    let directory = play.directory();
    assert_eq!(second.text, format!("go-on {id} {} model=big|{id}|0|1|{session}\n", directory.display()));
    assert_eq!(second.native, Some(native));
    let other = play.turn(&play.launch(None), "").await;
    assert_ne!(other.native, first.native);
    assert!(play.agent.abilities().resume && play.agent.abilities().chosen_id);
    for wrong in ["--evil", ""] {
        let launch = Launch { model: Some(wrong.to_owned()), ..play.launch(None) };
        assert_eq!(play.agent.start(launch).await.err().unwrap().failure, Failure::Refused);
        // Nor is it a conversation.
        let gone = play.turn(&play.launch(Some(Native::new(wrong))), "").await;
        assert!(matches!(gone.last, AgentEvent::Failed(trouble) if trouble.failure == Failure::Gone));
    }
}

#[tokio::test]
async fn lines_of_json_say_words_names_figures_and_errors() {
    let script = r#"
        echo '{"kind":"start","id":"conv-7"}'
        echo '{"message":{"text":"hel"}}'
        echo 'not json'
        echo '{"message":{"text":"lo"},"tokens":{"in":12,"out":3}}'
        echo '{"unknown":true}'
        if [ "$(cat)" = fail ]; then echo '{"error":{"why":"no luck"}}'; fi
    "#;
    let play = Play::with("sh", &["-c", script], |config| {
        let at = |pointer: &str| Some(pointer.to_owned());
        let form = JsonForm {
            text: at("/message/text"),
            session: at("/id"),
            error: at("/error/why"),
            input_tokens: at("/tokens/in"),
            output_tokens: at("/tokens/out"),
        };
        CommandConfig { says: OutputForm::Json(form), remembers: true, ..config }
    });
    let ended = play.turn(&play.launch(None), "go").await;
    assert_eq!(ended.text, "hello");
    assert!(
        matches!(&ended.last, AgentEvent::Finished { native: Some(native), .. } if native.id == "conv-7")
    );
    let has = |what: fn(&AgentEvent) -> bool| ended.events.iter().filter(|event| what(event)).count();
    assert_eq!(
        has(
            |it| matches!(it, AgentEvent::Usage(usage) if usage.input_tokens == 12 && usage.output_tokens == 3)
        ),
        1
    );
    assert_eq!(has(|it| matches!(it, AgentEvent::Other { .. })), 2);
    assert_eq!(has(|it| matches!(it, AgentEvent::Native(native) if native.id == "conv-7")), 1);
    let failed = play.turn(&play.launch(None), "fail").await;
    assert!(
        matches!(&failed.last, AgentEvent::Failed(trouble) if trouble.detail == "no luck"),
        "{:?}",
        failed.last
    );
}

/// Whoever brings a key of their own gets no other key of the house beside it: the program might prefer that one.
#[tokio::test]
async fn a_person_brings_their_own_sign_in_and_gets_none_of_the_house() {
    let play = Play::with("env", &[], |mut config| {
        config.secrets = vec!["A_KEY".to_owned(), "A_TOKEN".to_owned()];
        config
            .program
            .env
            .extend([("A_KEY".to_owned(), "house".to_owned()), ("OTHER".to_owned(), "kept".to_owned())]);
        config
    });
    let house = play.turn(&play.launch(None), "").await;
    assert!(house.text.contains("A_KEY=house\n"), "{}", house.text);
    let secrets = vec![("A_TOKEN".to_owned(), "mine".to_owned())];
    let account = agent::Account::Person { person: kernel::PersonId::from_bits(1), secrets };
    let mine = play.turn(&Launch { account, ..play.launch(None) }, "").await;
    assert!(mine.text.contains("A_TOKEN=mine\n") && mine.text.contains("OTHER=kept\n"), "{}", mine.text);
    assert!(!mine.text.contains("house"), "{}", mine.text);
}

#[tokio::test]
async fn what_is_missing_is_said_before_anything_is_handed_over() {
    let play = Play::new("no-such-program-anywhere", &[]);
    assert!(matches!(play.agent.look().await, Presence::Missing { .. }));
    assert_eq!(play.agent.start(play.launch(None)).await.err().unwrap().failure, Failure::Refused);
    let play = Play::with("sh", &[], |config| CommandConfig {
        version_args: vec!["-c".into(), "echo mine 1.2.3".into()],
        ..config
    });
    assert_eq!(play.agent.look().await, Presence::Here { version: "1.2.3".to_owned() });
    let nowhere = Launch { directory: "/nowhere/at/all".into(), ..play.launch(None) };
    assert_eq!(play.agent.start(nowhere).await.err().unwrap().failure, Failure::Refused);
}

#[tokio::test]
async fn a_turn_has_a_bound_of_time() {
    let play = Play::with("sleep", &["1000"], |mut config| {
        config.program.limits = TurnLimits { turn_max: Duration::from_millis(300), ..TurnLimits::default() };
        config
    });
    let ended = play.turn(&play.launch(None), "").await;
    assert!(matches!(ended.last, AgentEvent::Failed(trouble) if trouble.failure == Failure::Transient));
    play.nothing_left();
}

/// A program, a place for it, and our driver.
struct Play {
    place: TempDir,
    agent: CommandAgent,
}

struct Ended {
    events: Vec<AgentEvent>,
    text: String,
    native: Option<Native>,
    last: AgentEvent,
}

impl Play {
    fn new(program: &str, args: &[&str]) -> Self {
        Self::with(program, args, |config| config)
    }

    fn with(program: &str, args: &[&str], change: impl FnOnce(CommandConfig) -> CommandConfig) -> Self {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().join("home").to_str().unwrap().to_owned();
        let mut config = ProgramConfig::new("mine", far_side(), place.path().join("locks"), program, home);
        config.args = args.iter().map(|&arg| arg.to_owned()).collect();
        std::fs::create_dir(place.path().join("project")).unwrap();
        let agent = CommandAgent::new(change(CommandConfig::new(config)));
        Self { place, agent }
    }

    fn directory(&self) -> PathBuf {
        self.place.path().canonicalize().unwrap().join("project")
    }

    fn locks(&self) -> PathBuf {
        self.place.path().join("locks")
    }

    fn launch(&self, native: Option<Native>) -> Launch {
        let launch =
            Launch::new(SessionId::from_bits(7), fence(), MessageId::from_bits(1), ground(self.directory()));
        Launch { native, ..launch }
    }

    async fn begin(&self, launch: &Launch) -> Box<dyn Running> {
        let mut running = self.agent.start(launch.clone()).await.unwrap();
        assert!(matches!(next(&mut running).await, AgentEvent::Ready { .. }));
        running
    }

    /// A whole turn; one that fails before it is ready is a turn, too.
    async fn turn(&self, launch: &Launch, text: &str) -> Ended {
        let mut running = self.agent.start(launch.clone()).await.unwrap();
        let (mut events, mut said, mut native) = (Vec::new(), String::new(), None);
        loop {
            let event = next(&mut running).await;
            match &event {
                AgentEvent::Ready { native: named } => {
                    native.clone_from(named);
                    running.hand(Message::new(launch.message, text.to_owned())).await.unwrap();
                }
                AgentEvent::Text { text } => said.push_str(text),
                last if last.is_last() => return Ended { events, text: said, native, last: event },
                _ => {}
            }
            events.push(event);
        }
    }

    #[track_caller]
    fn nothing_left(&self) {
        let tree = TreeName::of(SessionId::from_bits(7));
        assert_eq!(count_marked(&tree, &self.locks()), 0);
        assert!(!self.locks().join(format!("{tree}.lock")).exists());
    }
}

async fn next(running: &mut Box<dyn Running>) -> AgentEvent {
    tokio::time::timeout(WAIT, running.next()).await.expect("it takes too long")
}

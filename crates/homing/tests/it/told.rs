//! Honest words: what people are told while they wait, when the server goes, and when a start fails.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testkit::{Homing, eventually};

use crate::yard::{Gate, Yard};
use crate::{homing, text};

/// The time in which a server that went away has to be noticed.
const NOTICED_MAX: Duration = Duration::from_secs(2);
/// The longest that a line may take on a busy machine.
const LINE_MAX: Duration = Duration::from_secs(60);

/// A command that runs on, and what it prints. Ended when it is dropped.
struct Watching {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
}

impl Watching {
    fn start(homing: &Homing, arguments: &[&str]) -> Self {
        let mut command = homing.command();
        command.args(arguments).stdin(Stdio::null());
        Self::of(command)
    }

    fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, err) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
        Self { child, out, err }
    }

    /// Waits for a line on standard error that has this in it, and answers it.
    #[track_caller]
    fn until_says(&self, words: &str) -> String {
        until(&self.err, words)
    }

    /// Its exit code, and what else it said.
    fn end(&mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        (code, self.err.iter().collect::<Vec<_>>().join("\n"))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (tell, heard) = channel();
    std::thread::spawn(move || {
        BufReader::new(from).lines().map_while(Result::ok).try_for_each(|line| tell.send(line))
    });
    heard
}

#[track_caller]
fn until(heard: &Receiver<String>, words: &str) -> String {
    let mut seen = Vec::new();
    loop {
        match heard.recv_timeout(LINE_MAX) {
            Ok(line) if line.contains(words) => return line,
            Ok(line) => seen.push(line),
            Err(why) => panic!("{why}: no {words:?} in {seen:#?}"),
        }
    }
}

/// Waits until the agent has what was said.
fn until_running(homing: &Homing) {
    // An agent that is up has not been handed anything yet: a kill would only make another attempt.
    eventually("the turn runs", || homing.agent_log().iter().any(|line| line.event == "start").then_some(()));
}

#[test]
fn a_server_that_goes_away_is_noticed_within_two_seconds_said_and_resumed_from() {
    let mut homing = homing();
    let mut watching = Watching::start(&homing, &["send", "-f", "!sleep 600000"]);
    until_running(&homing);
    homing.kill9();
    let killed = Instant::now();
    let said = watching.until_says("the server went away");
    assert!(killed.elapsed() < NOTICED_MAX, "{:?}", killed.elapsed());
    assert!(said.contains("is safe"), "{said}");
    homing.restart();
    watching.until_says("the server is back");
    let (code, said) = watching.end();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("interrupted"), "the end of the turn is told: {said}");
}

#[test]
fn whoever_leaves_while_the_server_is_away_is_not_told_that_the_turn_goes_on() {
    let mut homing = homing();
    let mut watching = Watching::start(&homing, &["send", "-f", "!sleep 600000"]);
    until_running(&homing);
    homing.kill9();
    let said = watching.until_says("the server went away");
    assert!(!said.contains("os error"), "{said}");
    let pid = Pid::from_raw(watching.child.id().cast_signed()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let (code, said) = watching.end();
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("left while the server is away") && !said.contains("goes on"), "{said}");
    assert!(said.contains("`homing show msg_"), "{said}");
}

#[test]
fn a_log_that_is_followed_goes_on_after_a_restart_without_a_gap_or_a_repeat() {
    let mut homing = homing();
    homing.run(&["send", "-f", "one"]).expect(0);
    let watching = Watching::start(&homing, &["log", "-f", "--json"]);
    let mut numbers = Vec::new();
    let mut until_turn_ends = |turn: u64| {
        loop {
            let line = watching.out.recv_timeout(LINE_MAX).expect("a fact");
            let fact: Value = serde_json::from_str(&line).unwrap();
            numbers.push(fact["number"].as_u64().unwrap());
            if fact["type"] == "turn_ended" && fact["turn"] == turn {
                return numbers.clone();
            }
        }
    };
    until_turn_ends(1);
    homing.kill9();
    watching.until_says("the server went away");
    homing.restart();
    homing.run(&["send", "-f", "two"]).expect(0);
    let numbers = until_turn_ends(2);
    watching.until_says("the server is back");
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
}

#[test]
fn a_start_that_found_its_port_taken_is_no_missing_key_and_doctor_says_the_same() {
    let mut homing = homing();
    homing.terminate();
    std::fs::remove_dir_all(homing.data()).unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = homing.run(&["up", "--no-browser", "--listen", &address]);
    refused.expect(2);
    let words = format!("cannot listen on {address}");
    assert!(refused.err.contains(&words) && refused.err.contains("hint:"), "{}", refused.err);
    let found = homing.run(&["doctor", "--json", "--listen", &address]).json(1);
    assert_eq!(check(&found, "key")["state"], "ok", "{found}");
    let network = check(&found, "network");
    assert_eq!(network["state"], "fail", "{network}");
    assert!(text(&network, "detail").contains(&words), "{network}");
    drop(taken);
    homing.restart();
    assert!(!homing.server_log().contains("NEW KEY"), "{}", homing.server_log());
}

/// The finding of one check.
fn check(found: &Value, name: &str) -> Value {
    let checks = found["checks"].as_array().unwrap();
    checks.iter().find(|check| check["check"] == name).unwrap_or_else(|| panic!("no {name}: {found}")).clone()
}

/// Runs a command with nothing in its environment that comes before the configuration.
fn run_as_written(homing: &Homing, arguments: &[&str]) -> testkit::CommandOutput {
    let mut command = homing.command();
    command.args(arguments).env_remove("HOMING_ROOTS").env_remove("HOMING_DEFAULT_AGENT");
    command.stdin(Stdio::null()).output().unwrap().into()
}

#[test]
fn doctor_fails_wherever_a_start_does() {
    let homing = homing();
    let config = homing.root().join("wrong.toml");
    let data = homing.root().join("another");
    let (config, data) = (config.to_str().unwrap(), data.to_str().unwrap());
    for (wrong, words) in [
        ("log = \"a=b=c\"", "is not a filter for the log"),
        ("roots = [\"relative\"]", "relative cannot be a root"),
        ("roots = [\"/nowhere/at/all\"]", "/nowhere/at/all cannot be a root"),
        ("default_agent = \"nobody\"", "there is no agent called \"nobody\""),
        ("listen = \"nonsense\"", "cannot listen on nonsense"),
        ("listen = 5", "invalid type"),
    ] {
        std::fs::write(config, wrong).unwrap();
        let listen = if wrong.starts_with("listen") { &[][..] } else { &["--listen", "127.0.0.1:0"][..] };
        let up = run_as_written(
            &homing,
            &[&["--data", data, "up", "--no-browser", "--config", config], listen].concat(),
        );
        up.expect(2);
        assert!(up.err.contains(words) && up.err.contains("hint:"), "{wrong}: {}", up.err);
        let doctor = run_as_written(&homing, &["--data", data, "doctor", "--config", config]);
        assert!(doctor.expect(1).contains(words), "{wrong}: {}", doctor.out);
    }
    // No directory can be made there, not even by root.
    let up = homing.run(&["--data", "/proc/homing", "up", "--no-browser", "--listen", "127.0.0.1:0"]);
    up.expect(1);
    let doctor = homing.run(&["--data", "/proc/homing", "doctor", "--json"]).json(1);
    assert_eq!(check(&doctor, "directory")["state"], "fail", "{doctor}");
}

#[test]
fn a_command_that_there_is_not_leads_to_the_one_that_was_meant() {
    let homing = homing();
    for (typed, meant, never) in [
        (&["lgo"][..], "`homing log`", "login"),
        (&["sned", "hello"], "`homing send`", "`homing end`"),
        (&["sessions"], "`homing ls`", "restore"),
        (&["history"], "`homing log`", "restore"),
        (&["worktree", "lst"], "`homing worktree ls`", "`homing ls`"),
    ] {
        let said = homing.run(typed);
        said.expect(2);
        assert!(said.err.contains(meant) && !said.err.contains(never), "{typed:?}: {}", said.err);
    }
}

/// The first screen of `up` on a terminal, in an environment with this variable.
fn first_screen(homing: &Homing, name: &str, value: &str) -> String {
    let data = homing.root().join(format!("screen-{name}"));
    let up = format!("{} --data {} up --no-browser --listen 127.0.0.1:0", crate::EXE, data.display());
    let mut command = Command::new("script");
    command.args(["-qec", &up, "/dev/null"]).stdin(Stdio::null());
    command.env("HOME", homing.home()).env("HOMING_DEFAULT_AGENT", "scripted").env("TERM", "xterm");
    command.env_remove("NO_COLOR").env(name, value);
    let mut watching = Watching::of(command);
    let mut screen = Vec::new();
    loop {
        screen.push(watching.out.recv_timeout(LINE_MAX).expect("a first screen"));
        if screen.last().is_some_and(|line| line.contains("Ctrl-C stops the server")) {
            break;
        }
    }
    let holder: Value = serde_json::from_slice(&std::fs::read(data.join("lock")).unwrap()).unwrap();
    let pid =
        rustix::process::Pid::from_raw(i32::try_from(holder["pid"].as_i64().unwrap()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    watching.child.wait().unwrap();
    screen.join("\n")
}

#[test]
fn the_first_screen_shows_no_escape_codes_as_text_and_none_at_all_without_colours() {
    let homing = homing();
    let colourful = first_screen(&homing, "LANG", "C.UTF-8");
    assert!(colourful.contains("\u{1b}[1mHoming is up"), "{colourful}");
    let shown = colourful.replace("\u{1b}[", "");
    assert!(!shown.contains("[3") && !shown.contains("[0m"), "{colourful}");
    let plain = first_screen(&homing, "NO_COLOR", "1");
    assert!(plain.contains("Homing is up") && !plain.contains('\u{1b}'), "{plain}");
}

#[test]
fn whoever_waits_for_a_directory_is_told_for_whom_in_the_same_words_everywhere() {
    let homing = homing();
    let first = homing.run(&["send", "--new", "--json", "!sleep 600000"]).json(0);
    until_running(&homing);
    let mut watching = Watching::start(&homing, &["send", "--new", "-f", "hello"]);
    let place = homing.place().canonicalize().unwrap();
    let words =
        format!("{} works in {}; goes on when that turn is over", text(&first, "session"), place.display());
    assert_eq!(watching.until_says("waits:"), format!("waits: {words}"));
    let other = crate::sessions(&homing, &[]).into_iter().find(|other| other["id"] != first["session"]);
    let session = text(&other.unwrap(), "id");
    let later = homing.run(&["send", "--session", &session, "--json", "later"]).json(0);
    let queue = homing.run(&["queue", &session]);
    assert!(queue.expect(0).contains(&words), "{}", queue.out);
    let queued = homing.run(&["queue", &session, "--json"]).json(0);
    let message = text(&queued["items"][0], "id");
    for what in [&session, &message] {
        let shown = homing.run(&["show", what]);
        assert!(shown.expect(0).contains(&words), "{}", shown.out);
    }
    let listed = homing.run(&["ls"]);
    assert!(listed.expect(0).contains("waiting 2") && !listed.out.contains("running +"), "{}", listed.out);
    assert!(listed.err.contains(&format!("{session} waits: {words}")), "{}", listed.err);
    let behind = homing.run(&["show", &text(&later, "id")]);
    assert!(behind.expect(0).contains(&format!("waiting: behind {message}")), "{}", behind.out);
    homing.run(&["stop", &text(&first, "id")]).expect(0);
    assert_eq!(watching.out.recv_timeout(LINE_MAX).unwrap(), "#1 hello");
    assert_eq!(watching.end().0, Some(0));
}

#[test]
fn whoever_waits_for_an_agent_that_starts_is_told_in_the_same_words_everywhere() {
    let place = tempfile::tempdir().unwrap();
    let pipe = place.path().join("lists");
    let homing = crate::setup().variable("HOMING_SCRIPTED_LISTS_AT", pipe.to_str().unwrap()).start();
    let mut gate = Gate::at(&pipe);
    let mut watching = Watching::start(&homing, &["send", "-f", "hello"]);
    let words = "scripted is being started";
    assert_eq!(watching.until_says("waits:"), format!("waits: {words}"));
    let session = text(&crate::sessions(&homing, &[])[0], "id");
    let message = text(&homing.run(&["queue", "--json"]).json(0)["items"][0], "id");
    for command in [&["queue"][..], &["show", &session], &["show", &message]] {
        let shown = homing.run(command);
        assert!(shown.expect(0).contains(words), "{command:?}: {}", shown.out);
    }
    let listed = homing.run(&["ls"]);
    listed.expect(0);
    assert!(listed.err.contains(&format!("{session} waits: {words}")), "{}", listed.err);
    gate.open();
    assert_eq!(watching.out.recv_timeout(LINE_MAX).unwrap(), "#1 hello");
    assert_eq!(watching.end().0, Some(0));
}

#[test]
fn whoever_waits_for_a_slot_or_an_answer_is_told_so_and_for_whom_in_the_same_words_everywhere() {
    let homing = crate::setup().config("[limits]\nawake_max = 1\n").start();
    let first = homing.run(&["send", "--json", "!ask shell"]).json(0);
    let session = text(&first, "session");
    eventually("the agent asks", || {
        homing.run(&["show", &session]).expect(0).contains("the agent asks something").then_some(())
    });
    assert!(homing.run(&["ls"]).expect(0).contains("asks"));
    let elsewhere = homing.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let mut sending = homing.command();
    sending.args(["send", "-f", "hello"]).stdin(Stdio::null()).current_dir(&elsewhere);
    let mut watching = Watching::of(sending);
    let words = format!(
        "its sender has as many turns under way as may be at once (1), among them {session}; goes on when one is over"
    );
    assert_eq!(watching.until_says("waits:"), format!("waits: {words}"));
    let other = crate::sessions(&homing, &[]).into_iter().find(|other| text(other, "id") != session);
    let waiting = text(&other.unwrap(), "id");
    let message = text(&homing.run(&["queue", &waiting, "--json"]).json(0)["items"][0], "id");
    for command in [&["queue", &waiting][..], &["show", &waiting], &["show", &message]] {
        let shown = homing.run(command);
        assert!(shown.expect(0).contains(&words), "{command:?}: {}", shown.out);
    }
    let listed = homing.run(&["ls"]);
    listed.expect(0);
    assert!(listed.err.contains(&format!("{waiting} waits: {words}")), "{}", listed.err);
    homing.run(&["stop", &text(&first, "id")]).expect(0);
    assert_eq!(watching.out.recv_timeout(LINE_MAX).unwrap(), "#1 hello");
    assert_eq!(watching.end().0, Some(0));
}

#[test]
fn a_log_has_what_people_said_and_a_conversation_can_be_read_and_taken_along() {
    let homing = homing();
    homing.run(&["send", "-f", "first words"]).expect(0);
    homing.run(&["send", "-f", "second words\n!fail after"]).expect(1);
    let waiting = homing.run(&["send", "--json", "third words\n!sleep 600000"]).json(0);
    let log = homing.run(&["log"]);
    assert!(
        log.expect(0).contains("says: first words") && log.out.contains("says: second words"),
        "{}",
        log.out
    );
    let talk = homing.run(&["log", "--talk"]);
    let said = talk.expect(0);
    let place = |words: &str| said.find(words).unwrap_or_else(|| panic!("no {words:?} in {said}"));
    assert!(place("  first words") < place("  #1 first words") && place("  #1") < place("  second words"));
    assert!(place("turn 2 failed") < place("  third words"), "what is not over comes last: {said}");
    let page = homing.run(&["export", "--markdown"]);
    assert!(page.expect(0).starts_with("# ") && page.out.contains("\n> first words\n"), "{}", page.out);
    assert!(page.out.contains("**scripted**") && !page.out.contains("third words"), "{}", page.out);
    let file = homing.root().join("talk.md");
    homing.run(&["export", "--markdown", "-o", file.to_str().unwrap()]).expect(0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), page.out);
    homing.run(&["stop", &text(&waiting, "id")]).expect(0);
}

/// The output of a command on a terminal.
fn on_terminal(homing: &Homing, line: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new("script");
    command.args(["-qec", &format!("{} {line}", crate::EXE), "/dev/null"]).stdin(Stdio::null());
    command.env("HOMING_DATA", homing.data()).env("HOME", homing.home()).env("TERM", "xterm");
    command.env("XDG_CONFIG_HOME", homing.root().join("config")).env_remove("NO_COLOR").env_remove("LESS");
    command.envs(variables.iter().copied()).current_dir(homing.place());
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn a_diff_is_of_a_turn_or_of_all_coloured_and_paged_on_a_terminal_and_plain_on_a_pipe() {
    let yard = Yard::new();
    yard.ask("!run printf 'one\\n2\\n' > kept.txt");
    yard.ask("!run printf 'one\\n3\\n' > kept.txt; echo new > new.txt");
    let one = yard.homing.run(&["diff", "2"]);
    assert!(one.expect(0).contains("+2\n") && !one.out.contains("new.txt"), "{}", one.out);
    let all = yard.homing.run(&["diff", "--all"]);
    assert!(all.expect(0).contains("+3\n") && all.out.contains("new.txt"), "{}", all.out);
    assert!(!all.out.contains("+2\n"), "what came of both turns, not each: {}", all.out);
    assert!(all.err.contains("turns 1 to 3") && !all.out.contains('\x1b'), "{all:?}");
    assert_eq!(yard.homing.run(&["diff", "--all", "--stat"]).expect(0).lines().count(), 3);

    let paged = on_terminal(&yard.homing, "diff --all", &[("PAGER", "sed s/^/paged:/")]);
    assert!(paged.contains("paged:\x1b[32m+3\x1b[0m"), "{paged:?}");
    let plain = on_terminal(&yard.homing, "diff --all", &[("PAGER", "cat"), ("NO_COLOR", "1")]);
    assert!(plain.contains("\n+3") && !plain.contains('\x1b'), "{plain:?}");
    let without = on_terminal(&yard.homing, "diff --all", &[("PAGER", "no-such-pager-here")]);
    assert!(without.contains("\x1b[32m+3"), "it is shown all the same: {without:?}");

    // In a worktree it is what happened there.
    yard.homing.run(&["scope", "enter", "shed"]).expect(0);
    yard.ask("!run echo inside > shed.txt");
    let inside = yard.homing.run(&["diff", "--all"]);
    assert!(inside.expect(0).contains("shed.txt") && !inside.out.contains("new.txt"), "{}", inside.out);
    assert!(inside.err.contains("turns 4 to 4"), "{}", inside.err);
}

#[test]
fn show_has_the_model_the_agents_own_id_and_what_it_used() {
    let homing = homing();
    let session = text(&homing.run(&["send", "--json", "hello"]).json(0), "session");
    homing.run(&["send", "-f", "again"]).expect(0);
    let shown = homing.run(&["show", &session, "--json"]).json(0);
    let word = &shown["own_word"];
    let native = text(word, "native");
    assert_eq!(text(word, "model"), "small", "{shown}");
    let usage = |turn: u64| -> u64 {
        let log = homing.run(&["log", &session, "--json"]);
        let facts = log.expect(0).lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let told = facts.filter(|fact| fact["type"] == "usage" && fact["turn"] == turn);
        told.map(|fact| fact["output_tokens"].as_u64().unwrap()).sum()
    };
    let both = usage(1) + usage(2);
    assert!(usage(1) > 0 && usage(2) > 0, "the scripted agent counts");
    assert_eq!(word["usage"]["output_tokens"], both, "{shown}");
    let people = homing.run(&["show", &session]);
    for part in [&native, "small (the agent's own word)", &format!("{both} out")] {
        assert!(people.expect(0).contains(part), "no {part} in {}", people.out);
    }
}

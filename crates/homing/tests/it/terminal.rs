//! At a terminal: what somebody types, and what they see. A real pseudo-terminal, the real binary, the real server.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use testkit::{Homing, Terminal, TerminalSize};

use crate::yard::Gate;
use crate::{homing, sessions, setup, text};

const USUAL: TerminalSize = TerminalSize { columns: 80, rows: 24 };
const UP: &str = "\x1b[A";
const DOWN: &str = "\x1b[B";
const LEFT: &str = "\x1b[D";
const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const CTRL_J: &str = "\n";
const CTRL_O: &str = "\x0f";
const CTRL_R: &str = "\x12";

/// Somebody who begins a chat, in the place of the tests.
#[track_caller]
fn chat(homing: &Homing, size: TerminalSize) -> Terminal {
    chat_with(homing, size, &[])
}

#[track_caller]
fn chat_with(homing: &Homing, size: TerminalSize, variables: &[(&str, &str)]) -> Terminal {
    let mut command = homing.command();
    command.arg("chat").envs(variables.iter().copied()).env("XDG_STATE_HOME", homing.root().join("state"));
    let terminal = Terminal::start(command, size);
    terminal.until_last(">");
    terminal
}

/// The numbers of the messages that the agent has acted on, as the session's log has them.
fn messages(homing: &Homing) -> Vec<String> {
    let session = text(&sessions(homing, &[])[0], "id");
    let recalled = homing.run(&["log", &session, "--json"]);
    let lines =
        recalled.expect(0).lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines.filter(|fact| fact["type"] == "turn_started").map(|fact| text(&fact, "message")).collect()
}

#[test]
fn a_chat_has_a_line_that_is_edited_and_remembered() {
    let homing = homing();
    let mut terminal = chat(&homing, USUAL);
    terminal.press("hello word");
    terminal.until_last("> hello word");
    terminal.press(&format!("{LEFT}l\r"));
    terminal.until("#1 hello world");
    terminal.until_last(">");
    terminal.press(UP);
    terminal.until_last("> hello world");
    terminal.press(DOWN);
    terminal.until_last(">");
    terminal.press("second\r");
    terminal.until("#2 second");
    terminal.press(&format!("{CTRL_R}wor"));
    terminal.until_last("search \"wor\": hello world");
    terminal.press("\r");
    terminal.until("#3 hello world");
    terminal.press(CTRL_D);
    assert!(terminal.until_ended().success());
    // The next chat knows it, and nobody else can read it.
    let history = homing.root().join("state/homing/history");
    assert_eq!(fs::metadata(&history).unwrap().permissions().mode() & 0o777, 0o600);
    let mut terminal = chat(&homing, USUAL);
    terminal.press(&format!("{UP}{UP}"));
    terminal.until_last("> second");
    terminal.press(CTRL_C);
    terminal.until_last(">");
    terminal.press(CTRL_D);
    assert!(terminal.until_ended().success());
}

#[test]
fn lines_that_are_pasted_or_typed_with_ctrl_j_are_one_message() {
    let homing = homing();
    let mut terminal = chat(&homing, USUAL);
    terminal.press("\x1b[200~one\r\ntwo\rthree\x1b[201~");
    terminal.until_lines("what was pasted waits", |lines| lines.iter().any(|line| line == "  three"));
    assert_eq!(sessions(&homing, &[]).len(), 0, "nothing is said before Enter");
    terminal.press("\r");
    let lines = terminal.until("#1 one");
    assert!(
        lines.iter().any(|line| line == "> one") && lines.iter().any(|line| line == "  two"),
        "{lines:#?}"
    );
    terminal.until_last(">");
    terminal.press(&format!("four{CTRL_J}five"));
    terminal.until_last("  five");
    terminal.press("\r");
    terminal.until("#2 four");
    assert_eq!(messages(&homing).len(), 2);
}

#[test]
fn the_prompt_stays_below_the_stream_and_no_word_is_lost_or_doubled() {
    let homing = homing();
    let mut terminal = chat(&homing, USUAL);
    terminal.press("!say 200 100\r");
    terminal.until("word20");
    for letter in ["t", "y", "p", "e", "d"] {
        terminal.press(letter);
    }
    terminal.until_last("> typed");
    terminal.until("word60");
    assert_eq!(terminal.rows().last().map(String::as_str), Some("> typed"));
    assert_eq!(terminal.cursor().1, "> typed".len());
    let lines = terminal.until("word200");
    let words: Vec<String> = (1..=200).map(|n| format!("word{n}")).collect();
    assert!(lines.contains(&words.join(" ")), "one line, as it was said: {lines:#?}");
    assert_eq!(lines.iter().filter(|line| line.contains("word100")).count(), 1);
    assert_eq!(terminal.rows().last().map(String::as_str), Some("> typed"));
    // What is said while a turn runs waits for its turn, and is answered.
    terminal.press("\r");
    terminal.until("#2 typed");
}

#[test]
fn a_question_is_answered_with_a_key_in_place() {
    let homing = homing();
    let mut terminal = chat(&homing, USUAL);
    terminal.press("!ask shell\r");
    terminal.until("the agent asks: may I use shell?");
    terminal.until_last("y/n>");
    // A command of ours is no answer, and the question stays.
    terminal.press("/queue\r");
    terminal.until("!ask shell");
    terminal.until_last("y/n>");
    until_keys_answer();
    terminal.press("y");
    terminal.until("shell: allowed");
    terminal.until_last(">");
    terminal.press("!choose paint | red | blue\r");
    terminal.until("  1  blue");
    until_keys_answer();
    terminal.press("1");
    terminal.until("paint: chose blue");
    terminal.press("!askwords mail\r");
    terminal.until_last("words or n>");
    terminal.press("dear all\r");
    terminal.until("mail: told dear all");
    terminal.until_last(">");
}

/// The words of a turn are seen before it is over.
fn until_nothing_runs(homing: &Homing) {
    testkit::eventually("the turn is over", || {
        sessions(homing, &[]).iter().all(|session| session["awake"] == false).then_some(())
    });
}

/// A question is on the screen for a moment before a key can be its answer: there is nothing to see that could be awaited.
fn until_keys_answer() {
    std::thread::sleep(std::time::Duration::from_millis(500));
}

#[test]
fn a_key_that_comes_with_the_question_is_not_its_answer() {
    let homing = homing();
    let mut terminal = chat(&homing, USUAL);
    terminal.press("!ask shell\r");
    terminal.until_lines("the question", |lines| lines.iter().any(|line| line.contains("may I use shell?")));
    terminal.press("y");
    terminal.until_last("y/n> y");
    terminal.press("\r");
    terminal.until("shell: allowed");
}

#[test]
fn a_question_that_somebody_else_answers_is_asked_no_more() {
    let homing = homing();
    let mut terminal = chat(&homing, USUAL);
    terminal.press("!ask shell\r");
    terminal.until_last("y/n>");
    let page = homing.run(&["approve", "--json"]).json(0);
    homing.run(&["approve", "no", &text(&page["items"][0], "id")]).expect(0);
    terminal.until("answered elsewhere: no");
    terminal.until("shell: denied");
    terminal.until_last(">");
}

#[test]
fn send_answers_questions_in_place_at_a_terminal() {
    let homing = homing();
    let mut command = homing.command();
    command.args(["send", "-f", "!ask shell\nafter"]);
    let mut terminal = Terminal::start(command, USUAL);
    terminal.until_last("y/n>");
    until_keys_answer();
    terminal.press("n");
    let lines = terminal.until("shell: denied");
    assert!(terminal.until_ended().success());
    assert!(lines.iter().any(|line| line.contains("may I use shell?")), "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("elsewhere")), "{lines:#?}");
    assert!(!terminal.lines().iter().any(|line| line.contains("y/n")), "{:#?}", terminal.lines());
}

#[test]
fn ctrl_c_clears_then_warns_then_stops_and_ctrl_d_leaves() {
    let homing = homing();
    let mut terminal = chat(&homing, USUAL);
    terminal.press(CTRL_C);
    terminal.until("Ctrl-C again or Ctrl-D leaves");
    terminal.press("!hang\r");
    terminal.until("hanging");
    terminal.press("some words");
    terminal.until_last("> some words");
    terminal.press(CTRL_C);
    terminal.until_last(">");
    terminal.press(CTRL_C);
    terminal.until("Ctrl-C again stops this turn");
    terminal.press(CTRL_C);
    terminal.until("stopped: ");
    terminal.until_last(">");
    terminal.press("!hang\r");
    terminal.until_lines("it hangs again", |lines| {
        lines.iter().filter(|line| line.contains("hanging")).count() == 2
    });
    terminal.press(CTRL_D);
    terminal.until("the turn goes on; stop it with `homing stop");
    assert!(terminal.until_ended().success());
    testkit::eventually("the terminal is given back", || {
        terminal.raw().contains("\x1b[?2004l").then_some(())
    });
    homing.run(&["stop"]).expect(0);
}

#[test]
fn what_an_agent_says_cannot_command_the_terminal_and_is_shown_as_it_means() {
    let homing = homing();
    let mut terminal = chat(&homing, USUAL);
    let run =
        r"!run printf '# Title\n**bold** and `code`\n- item\n```\nlet x;\n```\na\033]0;pwn\007b\033[2Jc\n'";
    terminal.press(&format!("{run}\r"));
    let lines = terminal.until("a ]0;pwn b [2Jc");
    assert!(
        lines.iter().any(|line| line == "Title") && lines.iter().any(|line| line == "bold and code"),
        "{lines:#?}"
    );
    assert!(lines.iter().any(|line| line == "• item"), "{lines:#?}");
    let raw = terminal.raw();
    assert!(raw.contains("\x1b[1mbold\x1b[0m") && raw.contains("\x1b[36mcode\x1b[0m"), "{raw:?}");
    assert!(!raw.contains("\x1b]0;") && !raw.contains("\x1b[2J"), "{raw:?}");
}

#[test]
fn without_colours_nothing_is_styled_and_markdown_stays_as_it_is() {
    let homing = homing();
    let mut terminal = chat_with(&homing, USUAL, &[("NO_COLOR", "1")]);
    terminal.press("say **bold**\r");
    terminal.until("#1 say **bold**");
    terminal.until_last(">");
    let raw = terminal.raw();
    let styles = raw.match_indices("\x1b[").filter(|(at, _)| {
        raw[at + 2..].trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
    });
    assert_eq!(styles.count(), 0, "{raw:?}");
}

#[test]
fn a_tool_call_is_one_line_that_unfolds() {
    let homing = homing();
    let mut terminal = chat(&homing, USUAL);
    terminal.press(
        "!run echo first; echo $((20 + 22)) of the lines of output that nobody has asked for so far\r",
    );
    let lines = terminal.until("42 of the lines");
    terminal.until_last(">");
    let call = lines.iter().filter(|line| line.starts_with("· 1 shell: echo first")).collect::<Vec<_>>();
    assert!(call.len() == 1 && call[0].chars().count() < 80, "{lines:#?}");
    terminal.press(CTRL_O);
    terminal.until_lines("the whole call", |lines| lines.iter().any(|line| line == "· 1 shell"));
    terminal.press("/unfold 9\r");
    terminal.until("there is no such tool call");
}

#[test]
fn our_commands_win_and_two_slashes_reach_the_agents() {
    let homing = homing();
    let mut terminal = chat(&homing, USUAL);
    terminal.press("/help\r");
    terminal.until("/undo");
    terminal.press("hello\r");
    terminal.until("#1 hello");
    terminal.until_last(">");
    terminal.press("/hlep\r");
    terminal.until("did you mean /help?");
    terminal.press("//shout loud\r");
    terminal.until("command shout: loud");
    terminal.until_last(">");
    terminal.press("/whisper low\r");
    terminal.until("command whisper: low");
    terminal.until_last(">");
    terminal.press(" /whisper as words\r");
    terminal.until("#4 /whisper as words");
    terminal.until_last(">");
    terminal.press("/frobnicate\r");
    terminal.until("/frobnicate is no command");
    terminal.press("/whi\t");
    terminal.until_last("> /whisper");
    terminal.press(CTRL_C);
    terminal.press("/model \t");
    terminal.until("/model small  /model large");
    terminal.press("large\r");
    terminal.until("model: large from the next turn on");
    terminal.press("/sessions\r");
    terminal.until("SESSION");
    terminal.press("/queue\r");
    terminal.until("> /queue");
    terminal.until_last(">");
    terminal.press("/new\r");
    terminal.until("the next message opens a new session");
    terminal.press("anew\r");
    terminal.until("#1 anew");
    assert_eq!(sessions(&homing, &[]).len(), 2);
    until_nothing_runs(&homing);
    terminal.press("/stop\r");
    terminal.until("nothing runs");
    terminal.press("/quit\r");
    assert!(terminal.until_ended().success());
}

#[test]
fn a_model_that_is_chosen_in_a_chat_is_the_one_that_is_talked_to() {
    let homing = homing();
    let mut command = homing.command();
    command.args(["chat", "--model", "small"]).env("XDG_STATE_HOME", homing.root().join("state"));
    let mut terminal = Terminal::start(command, USUAL);
    terminal.until_last(">");
    terminal.press("one\r");
    terminal.until("#1 one");
    until_nothing_runs(&homing);
    terminal.press("/model large\r");
    terminal.until("model: large from the next turn on");
    terminal.press("two\r");
    terminal.until("#2 two");
}

#[test]
fn a_narrow_terminal_and_one_that_changes_its_size_show_all_of_it() {
    let homing = homing();
    let mut terminal = chat(&homing, TerminalSize { columns: 40, rows: 10 });
    let long = "a line that is longer than forty columns, and then some more";
    terminal.press(long);
    terminal
        .until_lines("two rows", |_| terminal.rows().last().is_some_and(|row| row.ends_with("some more")));
    terminal.resize(TerminalSize { columns: 24, rows: 10 });
    terminal.until_lines("three rows", |_| {
        let rows = terminal.rows();
        rows.iter().filter(|row| row.starts_with("> a line")).count() == 1
            && rows.iter().all(|row| row.chars().count() <= 24)
            && rows.len() >= 3
    });
    terminal.resize(TerminalSize { columns: 80, rows: 24 });
    terminal.until_last(&format!("> {long}"));
    assert_eq!(
        terminal.lines().iter().filter(|line| line.starts_with("> a line")).count(),
        1,
        "{:#?}",
        terminal.lines()
    );
    terminal.press("\r");
    terminal.until(&format!("#1 {long}"));
    terminal.until_last(">");
}

#[test]
fn somebody_who_looks_elsewhere_is_told_unless_they_do_not_want_it() {
    let homing = setup().config("[terminal]\nnotify_after = \"0ms\"\n").start();
    let mut terminal = chat(&homing, USUAL);
    terminal.press("!ask shell\r");
    terminal.until_last("y/n>");
    assert!(
        terminal.raw().contains("\x1b]9;Homing: the agent asks: may I use shell?\x07"),
        "{:?}",
        terminal.raw()
    );
    until_keys_answer();
    terminal.press("y");
    terminal.until("shell: allowed");
    terminal.until_last(">");
    testkit::eventually("the end is told", || {
        terminal.raw().contains("\x1b]9;Homing: the turn is over: answered\x07").then_some(())
    });
    drop(terminal);
    fs::write(homing.data().join("homing.toml"), "[terminal]\nnotify = false\nnotify_after = \"0ms\"\n")
        .unwrap();
    let mut terminal = chat(&homing, USUAL);
    terminal.press("hello\r");
    terminal.until("#2 hello");
    terminal.until_last(">");
    assert!(!terminal.raw().contains("\x1b]9;"), "{:?}", terminal.raw());
}

#[test]
fn an_agent_that_takes_long_to_start_is_told_of_until_it_is_there() {
    let place = tempfile::tempdir().unwrap();
    let pipe = place.path().join("lists");
    let homing = setup().variable("HOMING_SCRIPTED_LISTS_AT", pipe.to_str().unwrap()).start();
    let mut gate = Gate::at(&pipe);
    let mut terminal = chat(&homing, USUAL);
    terminal.press("hello\r");
    terminal.until("waits: scripted is being started …");
    gate.open();
    let lines = terminal.until("#1 hello");
    assert!(!lines.iter().any(|line| line.contains("being started")), "{lines:#?}");
}

#[test]
fn a_desktop_is_told_too_by_chat_and_by_send() {
    let homing = setup().config("[terminal]\nnotify_after = \"0ms\"\n").start();
    let (bin, told) = (homing.root().join("bin"), homing.root().join("told"));
    fs::create_dir(&bin).unwrap();
    let program = bin.join("notify-send");
    fs::write(&program, format!("#!/bin/sh\nprintf '%s|' \"$@\" >> '{0}'\necho >> '{0}'\n", told.display()))
        .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let until_told = |words: &str| {
        testkit::eventually("the desktop is told", || {
            fs::read_to_string(&told).unwrap_or_default().lines().any(|line| line == words).then_some(())
        });
    };
    // A terminal of the tests has no desktop: `env` gives the command one.
    let start = |display: &str, arguments: &[&str]| {
        let ours = homing.command();
        let mut command = std::process::Command::new("env");
        command.arg(format!("DISPLAY={display}")).arg(ours.get_program()).args(arguments);
        command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("PATH", &path);
        command.env("XDG_STATE_HOME", homing.root().join("state")).current_dir(homing.place());
        Terminal::start(command, USUAL)
    };
    let mut terminal = start(":7", &["chat"]);
    terminal.until_last(">");
    terminal.press("!ask shell\r");
    terminal.until_last("y/n>");
    until_told("--app-name=Homing|Homing|the agent asks: may I use shell?|");
    until_keys_answer();
    terminal.press("y");
    terminal.until("shell: allowed");
    until_told("--app-name=Homing|Homing|the turn is over: answered|");
    terminal.press("/quit\r");
    assert!(terminal.until_ended().success());

    fs::remove_file(&told).unwrap();
    assert!(!start(":7", &["send", "-f", "!fail after"]).until_ended().success());
    until_told("--app-name=Homing|Homing|the turn is over: failed|");
    // Where there is no desktop, nobody asks for one.
    fs::remove_file(&told).unwrap();
    assert!(start("", &["send", "-f", "hello"]).until_ended().success());
    assert!(!told.exists());
}

#[test]
fn a_chat_shows_and_undoes_what_a_turn_changed_and_stops_one() {
    let homing = homing();
    let made = std::process::Command::new("git").args(["init", "-q"]).current_dir(homing.place()).status();
    assert!(made.unwrap().success());
    let list = homing.place().join("list.txt");
    let mut terminal = chat(&homing, USUAL);
    terminal.press("/undo\r");
    terminal.until("there is no session yet");
    terminal.press("!run echo bread > list.txt\r");
    terminal.until("· 1 shell");
    until_nothing_runs(&homing);
    terminal.press("/diff\r");
    terminal.until("+bread");
    terminal.until_last(">");
    terminal.press("/diff 1 --stat\r");
    terminal.until_lines("the files alone", |lines| {
        lines.iter().any(|line| line.starts_with("added") && line.ends_with("list.txt"))
    });
    terminal.press("/undo\r");
    terminal.until("/diff 1 shows it, /undo 1 undoes it");
    // The scripted agent never says which files it changes, and the hint is what can be typed here.
    terminal.press("/undo 1\r");
    let told = terminal.until("/undo 1 --all");
    assert!(list.exists() && !told.iter().any(|line| line.contains("homing undo")), "{told:#?}");
    terminal.press("/undo 1 --all\r");
    terminal.until("turn 1 undone");
    assert!(!list.exists());
    terminal.press("!hang\r");
    terminal.until("hanging");
    terminal.press("/stop\r");
    terminal.until("stopped: ");
    terminal.until_last(">");
    terminal.press("and on\r");
    terminal.until_lines("it goes on", |lines| {
        lines.iter().any(|line| line.starts_with('#') && line.ends_with("and on"))
    });
    terminal.press("/quit\r");
    assert!(terminal.until_ended().success());
}

#[test]
fn an_undo_that_is_not_meant_changes_nothing_and_says_so_once() {
    let homing = homing();
    let made = std::process::Command::new("git").args(["init", "-q"]).current_dir(homing.place()).status();
    assert!(made.unwrap().success());
    homing.run(&["send", "-f", "!run echo bread > list.txt"]).expect(0);
    for answer in ["n\r", "\r"] {
        let mut command = homing.command();
        command.args(["undo", "1"]);
        let mut terminal = Terminal::start(command, USUAL);
        terminal.until_last("undo them all the same? [y/N]");
        terminal.press(answer);
        assert_eq!(terminal.until_ended().code(), Some(1));
        let lines = terminal.until("error: nothing was changed");
        assert_eq!(lines.iter().filter(|line| line.contains("list.txt")).count(), 1, "{lines:#?}");
    }
    assert!(homing.place().join("list.txt").exists());
}

#[test]
fn a_list_that_is_too_wide_for_the_terminal_loses_nothing() {
    let homing = homing();
    for columns in [80, 40] {
        let mut command = homing.command();
        command.arg("agents").env("PATH", "/nowhere");
        let mut terminal = Terminal::start(command, TerminalSize { columns, rows: 100 });
        assert!(terminal.until_ended().success());
        let lines = terminal.until("qwen");
        let shown = lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains("get it with: npm install -g @qwen-code/qwen-code"), "{lines:#?}");
        assert!(terminal.all_rows().iter().all(|row| row.chars().count() <= columns.into()), "{lines:#?}");
        assert!(!shown.contains('…'), "nothing is cut: {lines:#?}");
    }
}

//! The first hour as a terminal shows it, in docs/recordings: played with the real binary in a real terminal, and compared with what
//! is committed. `UPDATE_EXPECT=1` writes it.
//!
//! There are two files of each: an asciicast, with every byte that was sent and when, and the rows that somebody sees after each step. The
//! rows are compared with those of this run; the asciicast has to show these rows when it is played. What differs from run to run (ids,
//! ports, links, directories) is replaced by marks of the same length.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{ShownPiece, TerminalSize, replayed};

use crate::shell::{NewMachine, Shell};

const USUAL: TerminalSize = TerminalSize { columns: 80, rows: 24 };
const NARROW: TerminalSize = TerminalSize { columns: 40, rows: 24 };
const UP: &str = "\x1b[A";
const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
/// The sequences that a terminal sends before and after something that is pasted.
const PASTE: (&str, &str) = ("\x1b[200~", "\x1b[201~");

/// The ends of ids, in the order in which sessions were made.
const ID_ENDS: [&str; 6] = ["k3f9qa", "p7wm2c", "x4tz8n", "d2vy6h", "m9rb5e", "t6gs3j"];
/// The beginning of every id.
const ID_BEGINS: &str = "01m7q8h4cceyfa78p6vp";
/// The digits of an id.
const ID_DIGITS: usize = 26;
/// The digits of a link that signs somebody in.
const LINK_DIGITS: usize = 43;
const PORT: &str = "47470";

#[test]
fn the_first_hour_at_eighty_columns() {
    play("first-hour-80", USUAL, &[], by_hand);
}

#[test]
fn the_first_hour_at_forty_columns() {
    play("first-hour-40", NARROW, &[], by_hand);
}

#[test]
fn the_first_hour_without_colours() {
    let cast = play("first-hour-no-color", USUAL, &[("NO_COLOR", "1")], by_hand);
    let styles = cast.match_indices("\x1b[").filter(|(at, _)| {
        cast[at + 2..].trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
    });
    assert_eq!(styles.count(), 0, "nothing is styled");
}

#[test]
fn the_first_hour_through_a_pipe() {
    let cast = play("first-hour-piped", USUAL, &[], piped);
    assert!(!cast.contains("\x1b["), "a pipe gets no sequence of a terminal: {cast:?}");
}

/// The story, typed by hand.
fn by_hand(story: &mut Played, machine: &NewMachine) {
    story.step("install, and the first answer", |shell| {
        shell.run("install -D homing/target/release/homing ~/.local/bin/homing");
        shell.enter("homing send -f hello");
        shell.terminal.until_last("Start one in the background now? [Y/n]");
        shell.terminal.press("\r");
        shell.until_prompt();
    });
    story.step("a follow-up", |shell| shell.run("homing send -f '!recall'"));
    story.step("a question, answered in place", |shell| {
        shell.enter("homing send -f '!ask shell'");
        shell.terminal.until_last("y/n>");
        until_keys_answer();
        shell.terminal.press("y");
        shell.until_prompt();
    });
    story.step("another directory is another conversation", |shell| {
        shell.run("mkdir shop && cd shop && git init -q");
        shell.run("homing send -f hello");
    });
    story.step("what a turn changed, and back", |shell| {
        shell.run("homing send -f '!run echo bread > list.txt'");
        shell.run("homing diff");
        shell.enter("homing undo 2");
        shell.terminal.until_last("undo them all the same? [y/N]");
        shell.terminal.press("y\r");
        shell.until_prompt();
        shell.run("ls");
        shell.run("homing redo");
    });
    story.step("a new session, and the one before", |shell| {
        shell.run("homing send --new -f 'start over'");
        shell.run("homing send -s - -f 'are you there?'");
    });
    story.step("names", |shell| {
        shell.run("homing ls");
        shell.run("homing rename @2 fruit");
        shell.run("homing send -s fruit -f 'the one with a name'");
        shell.run("homing ls --text fruit");
        shell.run("homing show nobody");
    });
    story.step("a chat: history, and what is pasted is one message", |shell| {
        shell.enter("homing chat -s fruit");
        shell.terminal.until_last(">");
        shell.terminal.press("two pears\r");
        shell.terminal.until("two pears");
        until_answered(shell, "two pears");
        machine.until_quiet();
        shell.terminal.press(UP);
        shell.terminal.until_last("> two pears");
        shell.terminal.press(CTRL_C);
        shell.terminal.until_last(">");
        shell.terminal.press(&format!("{}bread{}{}", PASTE.0, "\rmilk", PASTE.1));
        shell.terminal.until_last("  milk");
        shell.terminal.press("\r");
        until_answered(shell, "bread");
        machine.until_quiet();
        shell.terminal.press("/help\r");
        shell.terminal.until("Ctrl-C: clears the line");
        shell.terminal.until_last(">");
        shell.terminal.press(CTRL_D);
        shell.until_prompt();
    });
}

/// The story as another program gets it.
fn piped(story: &mut Played, _: &NewMachine) {
    story.step("install, and the first answer", |shell| {
        shell.run("install -D homing/target/release/homing ~/.local/bin/homing");
        shell.run("homing up --background 2>&1 | cat");
        shell.run("homing send -f hello 2>&1 | cat");
    });
    story.step("what a turn changed", |shell| {
        shell.run("mkdir shop && cd shop && git init -q");
        shell.run("homing send -f '!run echo bread > list.txt' 2>&1 | cat");
        shell.run("homing diff 2>&1 | cat");
        shell.run("homing undo 1 --all 2>&1 | cat");
    });
    story.step("what a program reads, and what is for people", |shell| {
        shell.run("homing ls | cat");
        shell.run("echo 'hello again' | homing send -f - 2>/dev/null | cat");
        shell.run("homing show nobody 2>&1 | cat");
    });
}

/// A question is on the screen for a moment before a key can be its answer: there is nothing to see that could be awaited.
fn until_keys_answer() {
    std::thread::sleep(Duration::from_millis(500));
}

/// Waits until a chat has answered this: `#3 words`.
#[track_caller]
fn until_answered(shell: &Shell, words: &str) {
    let is_answer = |line: &String| line.starts_with('#') && line.ends_with(words);
    shell.terminal.until_lines("the answer", |lines| lines.iter().any(is_answer));
    shell.terminal.until_last(">");
}

/// A story that is being played.
struct Played {
    shell: Shell,
    /// The title of each step, and how much was shown when it was over.
    steps: Vec<(&'static str, usize)>,
}

impl Played {
    #[track_caller]
    fn step(&mut self, title: &'static str, play: impl FnOnce(&mut Shell)) {
        play(&mut self.shell);
        let shown = self.shell.terminal.recorded().iter().map(|piece| piece.bytes.len()).sum();
        self.steps.push((title, shown));
    }
}

/// Plays a story, compares it with the committed one, and answers everything that was sent.
fn play(
    name: &str,
    size: TerminalSize,
    variables: &[(&str, &str)],
    story: impl FnOnce(&mut Played, &NewMachine),
) -> String {
    let machine = NewMachine::new();
    let shell = machine.shell(&machine.home(), size, variables);
    let mut played = Played { shell, steps: Vec::new() };
    story(&mut played, &machine);
    let pieces = played.shell.terminal.recorded();
    let sessions = machine.sessions();
    let sent: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes.clone()).collect();
    let sent = String::from_utf8(sent).expect("everything is text");
    let marked = with_marks(&sent, &machine, &sessions);
    assert_eq!(marked.len(), sent.len(), "marks take the room of what they replace");
    let recording = Recording { size, steps: played.steps, sent: marked };
    let (cast, rows) = (file(name, "cast"), file(name, "txt"));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::create_dir_all(cast.parent().unwrap()).unwrap();
        fs::write(&cast, recording.asciicast(&pieces)).unwrap();
        fs::write(&rows, recording.rows()).unwrap();
    }
    let committed = fs::read_to_string(&rows).unwrap_or_default();
    assert!(
        unhurried(&recording.rows()) == unhurried(&committed),
        "docs/recordings/{name}.txt is not what is shown now; if that is right, run this test with UPDATE_EXPECT=1:\n{}",
        recording.rows()
    );
    let replayed = Recording::read(&fs::read_to_string(&cast).unwrap_or_default());
    assert!(
        unhurried(&replayed.rows()) == unhurried(&committed),
        "docs/recordings/{name}.cast shows something else than {name}.txt when it is played:\n{}",
        replayed.rows()
    );
    recording.sent
}

fn file(name: &str, kind: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/recordings/{name}.{kind}"))
}

/// Everything that was sent, and where the steps end in it.
struct Recording {
    size: TerminalSize,
    steps: Vec<(&'static str, usize)>,
    sent: String,
}

impl Recording {
    /// The rows that each step has added.
    fn rows(&self) -> String {
        let (mut page, mut before) = (String::new(), 0);
        for (title, end) in &self.steps {
            let rows = replayed(self.size, &self.sent.as_bytes()[..*end]);
            // The last row is the prompt, which the next step goes on from.
            let end = rows.len().saturating_sub(1);
            let added: String = rows[before..end].iter().map(|row| format!("{row}\n")).collect();
            page.push_str(&format!("--- {title}\n\n{added}\n"));
            before = end;
        }
        page.trim_end().to_owned() + "\n"
    }

    /// An asciicast (version 2): a header, then each piece with its time, and a marker at the end of each step.
    fn asciicast(&self, pieces: &[ShownPiece]) -> String {
        let head = json!({ "version": 2, "width": self.size.columns, "height": self.size.rows, "title": "Homing: the first hour" });
        let (mut lines, mut begin, mut end) = (vec![head], 0, 0);
        let mut steps = self.steps.iter().peekable();
        for piece in pieces {
            end += piece.bytes.len();
            let at = piece.at.as_millis() as f64 / 1e3;
            // A character that came in two pieces is in the second one.
            if self.sent.is_char_boundary(end) {
                lines.push(json!([at, "o", &self.sent[begin..end]]));
                begin = end;
            }
            while steps.next_if(|(_, over)| *over <= end).is_some() {
                lines.push(json!([at, "m", ""]));
            }
        }
        let titles = self.steps.iter().map(|(title, _)| *title);
        let mut titles = titles.collect::<Vec<_>>().into_iter();
        let name = |mut line: Value| {
            if line[1] == "m" {
                line[2] = titles.next().unwrap_or_default().into();
            }
            format!("{line}\n")
        };
        lines.into_iter().map(name).collect()
    }

    /// The recording of an asciicast.
    fn read(cast: &str) -> Self {
        let mut lines = cast.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
        let head = lines.next().expect("there is a recording");
        let number = |name: &str| u16::try_from(head[name].as_u64().expect("a size")).expect("a size");
        let size = TerminalSize { columns: number("width"), rows: number("height") };
        let (mut sent, mut steps) = (String::new(), Vec::new());
        for line in lines {
            let text = line[2].as_str().expect("text").to_owned();
            match line[1].as_str() {
                Some("o") => sent.push_str(&text),
                Some("m") => steps.push((&*text.leak(), sent.len())),
                other => panic!("{other:?} in an asciicast of ours"),
            }
        }
        Self { size, steps, sent }
    }
}

/// The same with marks for what differs from run to run. Each has the length of what it replaces.
fn with_marks(sent: &str, machine: &NewMachine, sessions: &[String]) -> String {
    let home = machine.home().display().to_string();
    let mut sent = sent.replace(&home, &home_mark(&home)).replace(&machine.port(), PORT);
    for (id, end) in sessions.iter().zip(ID_ENDS) {
        let digits = &id[id.len() - ID_DIGITS..];
        sent = sent.replace(digits, &format!("{ID_BEGINS}{end}"));
        sent = sent.replace(&digits[ID_DIGITS - end.len()..], end);
    }
    mark_links(&sent)
}

/// `/tmp/homing-test-000000/ana`
fn home_mark(home: &str) -> String {
    let (before, random) = home.rsplit_once("homing-test-").expect("a directory of the tests");
    let digits = random.find('/').expect("a directory in it");
    format!("{before}homing-test-{}{}", "0".repeat(digits), &random[digits..])
}

fn mark_links(sent: &str) -> String {
    let mut pieces = sent.split("/in/");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |done, piece| {
        let secret = "0".repeat(LINK_DIGITS);
        format!("{done}/in/{secret}{}", &piece[LINK_DIGITS..])
    })
}

/// The same whatever the machine's pace: how long ago something was, how wide that makes a column, how long its agent took to start, and whether an empty line of the
/// agent's came before or after what its tool did.
fn unhurried(rows: &str) -> String {
    let rows = (1..=9)
        .fold(rows.to_owned(), |rows, minutes| rows.replace(&format!("{minutes} min ago"), "just now"));
    let words = rows.lines().map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "));
    words
        .filter(|row| !row.is_empty() && row != "waits: scripted is being started")
        .collect::<Vec<_>>()
        .join("\n")
}

//! The documents, which have to be true. The guide's blocks that are marked `console` are typed in their order into real shells, and what
//! is shown has to be what the guide says; every other command that a document names has to be there, with its options.
//!
//! `UPDATE_EXPECT=1` writes what is shown into the guide. A line `…` stands for any lines, once in what a command shows. Ids, links, times and sizes may differ, but an
//! id has to be the same wherever the guide has the same, and what is typed has the ids of this run. An answer stands behind its question
//! (`[Y/n] y`) or on a line of its own (`> y`); links and passwords are typed where they are asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use testkit::{TerminalSize, eventually};

use crate::EXE;
use crate::shell::{NewMachine, PROMPT, Shell};

const SIZE: TerminalSize = TerminalSize { columns: 80, rows: 50 };
/// The home and the port in the guide.
const HOME: &str = "/home/ana";
const PORT: &str = "4747";
/// Characters that ids are made of.
const ID_CHARACTERS: &str = "0123456789abcdefghjkmnpqrstvwxyz";
/// The digits of an id, and of a part of one: as people are shown it, and in the name of a directory.
const ID_DIGITS: (usize, [usize; 2]) = (26, [6, 12]);
/// The word for lines that the guide leaves out.
const LEFT_OUT: &str = "\0";
const CTRL_D: &str = "\x04";
const PASSWORD: &str = "correct horse battery staple";

#[test]
fn the_guide_shows_what_is_shown() {
    let path = document("docs/guide.md");
    let guide = fs::read_to_string(&path).unwrap();
    let mut told = GuideRun::new();
    let mut page = String::new();
    let mut wrong = Vec::new();
    for piece in pieces(&guide) {
        match piece {
            Piece::Prose(text) => page.push_str(text),
            Piece::Typed { person, command, shown } => {
                let now = told.run(person, command, &shown);
                page.push_str(&format!("{person}$ {command}\n"));
                if told.is_like(&shown, &now) {
                    shown.iter().for_each(|line| page.push_str(&format!("{line}\n")));
                } else {
                    let now = told.with_guides_ids(&now);
                    wrong.push(format!("{person}$ {command}\n{}", now.join("\n")));
                    now.iter().for_each(|line| page.push_str(&format!("{line}\n")));
                }
            }
        }
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, page).unwrap();
        return;
    }
    assert!(
        wrong.is_empty(),
        "docs/guide.md shows something else; if this is right, run the test with UPDATE_EXPECT=1:\n{}",
        wrong.join("\n\n")
    );
}

#[test]
fn every_command_that_a_document_names_is_there_with_its_options() {
    let mut helps = BTreeMap::new();
    let mut missing = BTreeSet::new();
    let documents = fs::read_dir(document("docs")).unwrap().map(|entry| entry.unwrap().path());
    let documents = documents.filter(|path| path.extension().is_some_and(|kind| kind == "md"));
    let mut count = 0;
    for path in documents.chain([document("README.md")]) {
        for command in commands(&fs::read_to_string(&path).unwrap()) {
            count += 1;
            if let Some(why) = what_is_missing(&command, &mut helps) {
                missing.insert(format!("{}: `{command}`: {why}", path.file_name().unwrap().display()));
            }
        }
    }
    assert!(count > 100, "only {count} commands were found");
    assert!(missing.is_empty(), "{missing:#?}");
}

fn document(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// A part of the guide.
enum Piece<'a> {
    Prose(&'a str),
    /// A command, who types it, and what the guide says is shown.
    Typed {
        person: &'a str,
        command: &'a str,
        shown: Vec<&'a str>,
    },
}

fn pieces(guide: &str) -> Vec<Piece<'_>> {
    let (mut pieces, mut in_block) = (Vec::new(), false);
    for line in guide.split_inclusive('\n') {
        let text = line.trim_end_matches('\n');
        if text.starts_with("```") {
            in_block = text == "```console";
            pieces.push(Piece::Prose(line));
        } else if !in_block {
            pieces.push(Piece::Prose(line));
        } else if let Some((person, command)) = text.split_once("$ ").filter(|(who, _)| is_person(who)) {
            pieces.push(Piece::Typed { person, command, shown: Vec::new() });
        } else {
            match pieces.last_mut() {
                Some(Piece::Typed { shown, .. }) => shown.push(text),
                _ => panic!("a block of the guide begins with something else than a command: {text:?}"),
            }
        }
    }
    pieces
}

fn is_person(who: &str) -> bool {
    matches!(who, "" | "ana" | "bob" | "ci")
}

/// The people of the guide at their shells.
struct GuideRun {
    machine: NewMachine,
    shells: BTreeMap<String, Shell>,
    /// The id of this run for each that the guide has.
    ids: BTreeMap<String, String>,
    /// The last link and the last token that somebody was shown.
    link: String,
    token: String,
}

impl GuideRun {
    fn new() -> Self {
        let machine = NewMachine::new();
        machine.install();
        // Whether a wall can be had is not what the guide is about.
        let config = machine.home().join(".config/homing");
        fs::create_dir_all(&config).unwrap();
        fs::write(config.join("config.toml"), "trust_everyone = true\n").unwrap();
        let (shells, ids) = (BTreeMap::new(), BTreeMap::new());
        Self { machine, shells, ids, link: String::new(), token: String::new() }
    }

    /// Gives somebody a shell, if they have none yet.
    fn sit_down(&mut self, person: &str) {
        let url = format!("http://127.0.0.1:{}", self.machine.port());
        let token = self.token.clone();
        let machine = &self.machine;
        self.shells.entry(person.to_owned()).or_insert_with(|| {
            let home = machine.home().with_file_name(person);
            fs::create_dir_all(&home).unwrap();
            let program = [("HOMING_URL", url.as_str()), ("HOMING_TOKEN", token.as_str())];
            machine.shell(&home, SIZE, if person == "ci" { &program } else { &[] })
        });
    }

    /// Types a command and answers what it shows, with the guide's names for what is the machine's.
    #[track_caller]
    fn run(&mut self, person: &str, command: &str, shown: &[&str]) -> Vec<String> {
        let command = command.replace(HOME, &self.machine.home().display().to_string());
        let us = owner();
        // As a word of its own: the home has that name, too.
        let named = command.split(' ').map(|word| if word == "ana" { us.as_str() } else { word });
        let command = named.collect::<Vec<_>>().join(" ");
        let typed =
            self.ids.iter().fold(command.to_owned(), |typed, (guides, ours)| typed.replace(guides, ours));
        let (link, mut answers) = (self.link.clone(), answers(shown).into_iter());
        let person = if person.is_empty() { "ana" } else { person };
        self.sit_down(person);
        let (shell, machine) = (self.shells.get_mut(person).expect("it was made"), &self.machine);
        let before = shell.terminal.lines().len();
        shell.enter(&typed);
        let mut asked = 0;
        eventually(&format!("`{typed}` is over"), || {
            let lines = shell.terminal.lines();
            let last = lines.last().map(|line| line.trim_end().to_owned()).unwrap_or_default();
            if last == PROMPT {
                return Some(());
            }
            let hidden = lines
                .iter()
                .rev()
                .find(|line| !line.is_empty())
                .filter(|line| line.ends_with("which is not shown:"));
            let questions = lines.iter().filter(|line| line.ends_with("which is not shown:")).count();
            if let Some(hidden) = hidden.filter(|_| last.is_empty() && questions > asked) {
                asked = questions;
                let secret = if hidden.contains("link") { link.as_str() } else { PASSWORD };
                shell.terminal.press(&format!("{secret}\r"));
            } else if last.ends_with("[Y/n]") || last.ends_with("[y/N]") {
                let answer = answers.next().unwrap_or_default();
                shell.terminal.press(&format!("{answer}\r"));
                shell.terminal.until_lines("the answer is taken", |lines| {
                    lines.last().is_none_or(|now| now.trim_end() != last)
                });
            } else if last == ">" {
                match answers.next() {
                    Some(words) => say_in_chat(&words, shell, machine),
                    None => shell.terminal.press(CTRL_D),
                }
            } else if last == "y/n>" {
                // A question is on the screen for a moment before a key can be its answer.
                std::thread::sleep(Duration::from_millis(500));
                shell.terminal.press(&answers.next().unwrap_or_default());
                shell
                    .terminal
                    .until_lines("the answer is taken", |lines| lines.last().is_none_or(|now| now != "y/n>"));
            }
            None
        });
        let lines = shell.terminal.lines();
        let lines: Vec<String> = lines[before..lines.len() - 1].to_vec();
        self.learn(&lines);
        let names = [
            (self.machine.home().display().to_string(), HOME),
            (format!("127.0.0.1:{}", self.machine.port()), &format!("127.0.0.1:{PORT}")),
        ];
        let named = |line: &String| {
            names.iter().fold(line.clone(), |line, (ours, guides)| line.replace(ours, guides))
        };
        lines.iter().map(named).map(|line| with_owner(&line, &us)).collect()
    }

    /// The same with the guide's ids where it has any.
    fn with_guides_ids(&self, now: &[String]) -> Vec<String> {
        let guides = |line: &String| {
            self.ids.iter().fold(line.clone(), |line, (guides, ours)| line.replace(ours, guides))
        };
        now.iter().map(guides).collect()
    }

    /// Keeps what somebody would copy: a link, a token.
    fn learn(&mut self, lines: &[String]) {
        for word in lines.iter().flat_map(|line| line.split_whitespace()) {
            if word.contains("/in/") {
                self.link = word.to_owned();
            }
            if word.starts_with("hmg_") {
                self.token = word.to_owned();
            }
        }
    }

    /// True if this is what the guide shows, but for what may differ, and for where lines break: a directory may be longer than the
    /// guide's. Learns which id is which.
    fn is_like(&mut self, shown: &[&str], now: &[String]) -> bool {
        let shown_words = |line: &&str| if *line == "…" { vec![LEFT_OUT.to_owned()] } else { words(line) };
        let shown: Vec<String> = shown.iter().flat_map(shown_words).collect();
        let now: Vec<String> = now.iter().flat_map(|line| words(line)).collect();
        let left_out = shown.iter().position(|word| word == LEFT_OUT);
        let (before, after) = match left_out {
            None if shown.len() == now.len() => (shown.len(), 0),
            Some(at) if shown.len() <= now.len() + 1 => (at, shown.len() - at - 1),
            _ => return false,
        };
        let ends = shown.iter().rev().zip(now.iter().rev()).take(after);
        let pairs = shown.iter().zip(&now).take(before).chain(ends);
        pairs.into_iter().all(|(shown, now)| self.is_like_word(shown, now))
    }

    fn is_like_word(&mut self, shown: &str, now: &str) -> bool {
        if shown == now {
            return true;
        }
        // A word of six letters is none: the ids of the guide have a digit.
        let is_guides = is_id(shown) && shown.contains(|c: char| c.is_ascii_digit());
        if !(is_guides && is_id(now) && shown.len() == now.len()) {
            return false;
        }
        // A short id is the end of a whole one.
        let known = self.ids.iter().find(|(guides, _)| guides.ends_with(shown));
        match known.map(|(_, ours)| ours.ends_with(now)) {
            Some(is_same) => is_same,
            None => {
                self.ids.insert(shown.to_owned(), now.to_owned());
                true
            }
        }
    }
}

/// Says something in a chat, and waits until the turn is over.
#[track_caller]
fn say_in_chat(words: &str, shell: &mut Shell, machine: &NewMachine) {
    let answers = |lines: &[String]| lines.iter().filter(|line| line.starts_with('#')).count();
    let before = answers(&shell.terminal.lines());
    shell.terminal.press(&format!("{words}\r"));
    shell.terminal.until_lines("an answer", |lines| answers(lines) > before);
    machine.until_quiet();
    shell.terminal.until_last(">");
}

/// The answers that stand in what the guide shows.
fn answers(shown: &[&str]) -> Vec<String> {
    let after = |line: &str, mark: &str| line.split_once(mark).map(|(_, answer)| answer.trim().to_owned());
    let answer = |line: &&str| {
        after(line, "[Y/n]")
            .or_else(|| after(line, "[y/N]"))
            .or_else(|| line.strip_prefix("> ").map(str::to_owned))
    };
    shown.iter().filter_map(answer).collect()
}

/// The words of a line and the marks between them, with one word for whatever may differ from run to run.
fn words(line: &str) -> Vec<String> {
    let line = (1..=9).fold(line.to_owned(), |line, n| line.replace(&format!("{n} min ago"), "just now"));
    let line = line.replace(": scripted is being started", "");
    let mut words = Vec::new();
    for word in line.split_whitespace() {
        let all = |is: fn(&u8) -> bool| word.bytes().all(|byte| is(&byte));
        let has = |c: char| word.contains(c);
        if let Some((link, _)) = word.split_once("/in/") {
            words.push(format!("{link}/in/LINK"));
        } else if word.starts_with("homing/") && word.contains('-') {
            // A branch, which a narrow list cuts.
            words.push(word.split('-').next().unwrap_or_default().to_owned());
        } else if word.starts_with("hmg_") {
            words.push("TOKEN".to_owned());
        } else if word.len() == 64 && all(u8::is_ascii_hexdigit) {
            words.push("SEAL".to_owned());
        } else if all(|byte| byte.is_ascii_digit() || b"-:,;".contains(byte)) && (has(':') || has('-')) {
            words.push("WHEN".to_owned());
        } else {
            let is_mark = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
            words.extend(word.split_inclusive(is_mark).flat_map(|piece| {
                let text = piece.trim_end_matches(is_mark);
                [text.to_owned(), piece[text.len()..].to_owned()]
            }));
        }
    }
    words.retain(|word| !word.is_empty());
    // Processes, and how much room something takes.
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    for at in 0..words.len() {
        let is_size = words.get(at + 1).is_some_and(|unit| matches!(unit.as_str(), "B" | "KiB" | "MiB"));
        if is_number(&words[at]) && (words[at].len() > 3 || is_size) {
            words[at] = "NUMBER".to_owned();
        }
    }
    words
}

fn is_id(word: &str) -> bool {
    let digits = word.split_once('_').map_or(word, |(_, digits)| digits);
    let is_whole = word.len() == ID_DIGITS.0 + 4 && digits.len() == ID_DIGITS.0;
    (is_whole || ID_DIGITS.1.contains(&word.len())) && digits.chars().all(|c| ID_CHARACTERS.contains(c))
}

/// The person whose server it is: called like the user who runs the tests.
fn owner() -> String {
    let named = std::process::Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(named.stdout).unwrap().trim().to_owned()
}

/// A line in which this person is Ana.
fn with_owner(line: &str, owner: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut done = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(owner) {
        let (before, after) = (&rest[..at], &rest[at + owner.len()..]);
        let is_whole = !before.ends_with(is_word) && !after.starts_with(is_word);
        done.push_str(before);
        done.push_str(if is_whole { "ana" } else { owner });
        rest = after;
    }
    done + rest
}

/// The commands of ours that a document names: in its blocks, and in its sentences between backticks.
fn commands(document: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut block: Option<String> = None;
    let mut prose = String::new();
    for line in document.lines() {
        match (line.strip_prefix("```"), &block) {
            (Some(_), Some(_)) => block = None,
            (Some(kind), None) => block = Some(kind.to_owned()),
            (None, Some(kind)) if matches!(kind.as_str(), "sh" | "text" | "console") => {
                let typed =
                    line.split_once("$ ").filter(|(who, _)| is_person(who)).map_or(line, |(_, typed)| typed);
                if typed.starts_with("homing ") {
                    commands.push(typed.split("  #").next().unwrap_or(typed).trim().to_owned());
                }
            }
            (None, Some(_)) => {}
            (None, None) => prose.push_str(&format!("{line} ")),
        }
    }
    let spans = prose.split('`').skip(1).step_by(2);
    commands.extend(spans.filter(|span| span.starts_with("homing ")).map(str::to_owned));
    commands
}

/// The part of a command that the command line does not know.
fn what_is_missing(command: &str, helps: &mut BTreeMap<String, Option<String>>) -> Option<String> {
    let mut help_of = |words: &str| {
        let help = helps.entry(words.to_owned()).or_insert_with(|| {
            let run = std::process::Command::new(EXE).args(words.split(' ')).arg("--help").output().unwrap();
            run.status.success().then(|| String::from_utf8(run.stdout).unwrap())
        });
        help.clone()
    };
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    let is_word =
        |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-');
    let verb = words.first().filter(|word| is_word(word))?;
    if *verb == "help" {
        return None;
    }
    let Some(help) = help_of(verb) else { return Some(format!("there is no `homing {verb}`")) };
    let (mut help, mut verb) = (help, (*verb).to_owned());
    // A session may stand before what is to be done with it.
    let verbs = words.iter().skip(1).filter(|word| !word.starts_with('@'));
    for word in verbs.take_while(|word| is_word(word)) {
        let listed = help.split_once("Commands:").map_or("", |(_, listed)| listed);
        let mut listed = listed.split("Options:").next().unwrap_or_default().lines();
        if !listed.any(|line| line.split_whitespace().next() == Some(word)) {
            break;
        }
        verb = format!("{verb} {word}");
        help = help_of(&verb)?;
    }
    let options = words.iter().skip(1).filter(|word| word.starts_with("--") && word.len() > 2);
    for option in options {
        let name =
            option.trim_end_matches(['`', ',', '.', ';', '\'', '"']).split('=').next().unwrap_or_default();
        if !help.split(|c: char| c.is_whitespace() || "[=,`".contains(c)).any(|word| word == name) {
            return Some(format!("it has no {name}"));
        }
    }
    None
}

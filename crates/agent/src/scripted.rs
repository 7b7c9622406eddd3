//! The brain of the scripted agent: what it remembers, and what it does with a message.
//!
//! It does nothing itself. `Memory::wake` says whether a conversation can be started, `Script` turns a message into
//! steps, and a body carries them out: a process in `drivers`, a task in `in_process`. So both behave alike.
//!
//! The answer is `#N TEXT`, N being the number of messages it remembers with this one and TEXT the message without its
//! directives. Lines that begin with `!` are directives, done in their order; what they print stands on lines of its
//! own after that. A message with `!fail before`, `!busy`, `!refuse` or `!gone` is not acted on: it is not remembered
//! and not counted, and the answer has no `#N`. Directives that show something beside the answer, tools and the like, are in `story`.
//!
//! It has two commands, `/shout` and `/whisper`: a message that begins with one is answered `command NAME: TEXT` in
//! place of `#N TEXT`, once it has listed them; before that it takes such a message for words, as agents do. It has two
//! models, `small` and `large`. Words that are added to a turn are answered with a line `+TEXT` and remembered with the
//! message. It takes images and files of all kinds, and says of each on a line of its own what it was handed: `got KIND MEDIA-TYPE BYTES
//! bytes sha256 HASH NAME`.

mod story;

use std::collections::VecDeque;

use kernel::Failure;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    Abilities, About, AgentEvent, Attachment, AttachmentKind, CHOICES_MAX, Choice, FilesTaken, Form,
    MemoryMove, QuestionAnswer, Trouble,
};
use story::StoryDirective;

/// The longest `!sleep`, so that a typing error does not outlive its author: one day.
const SLEEP_MS_MAX: u64 = 86_400_000;
/// The most words of one `!say`.
const WORDS_MAX: u64 = 1_000_000;
/// The most bytes of one `!flood`: 1 GiB.
const FLOOD_BYTES_MAX: u64 = 1 << 30;
/// The bytes of a flood that are said at once.
const FLOOD_PIECE_BYTES: u64 = 4_096;
/// The most children of one `!fork-bomb`; enough to be a nuisance, not enough to hurt a small machine.
const FORKS_MAX: u64 = 256;
/// The most times of one `!warn`.
const WARNINGS_MAX: u64 = 1_000;
/// The most times of one `!repeat`: more than an hour of 200 a second.
const REPEATS_MAX: u64 = 1_000_000;
/// The highest `!rate`. More is as fast as it can.
const RATE_MAX: u64 = 1_000_000;
/// The most starts that can be made to fail ahead.
const STARTS_MAX: u64 = 1_000;

/// Its commands, and what they say they do.
const COMMANDS: [(&str, &str); 2] = [("shout", "says it loudly"), ("whisper", "says it softly")];
/// Its models. The first is used when nobody chooses.
const MODELS: [(&str, &str); 2] = [("small", "quick"), ("large", "slow")];

/// The word that is said when a `!hang` is in force.
pub const HANGING: &str = "hanging";

/// The agent's memory of one conversation; kept by the body under the conversation's native id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Every message acted on, oldest first.
    pub messages: Vec<String>,
    /// The number of starts from now on that fail as Transient.
    #[serde(default)]
    pub starts_failing: u32,
    /// The number of starts from now on that fail as Busy.
    #[serde(default)]
    pub starts_busy: u32,
}

impl Memory {
    /// Begins an attempt on this conversation. The body keeps the memory afterwards, whatever the answer.
    pub fn wake(&mut self) -> Result<(), Trouble> {
        if self.starts_failing > 0 {
            self.starts_failing -= 1;
            return Err(Trouble::transient("told to fail this start"));
        }
        if self.starts_busy > 0 {
            self.starts_busy -= 1;
            return Err(Trouble::new(Failure::Busy, "told to be busy at this start"));
        }
        Ok(())
    }

    /// Adds words to the message that is being acted on.
    pub fn add(&mut self, text: &str) {
        match self.messages.last_mut() {
            Some(message) => *message = format!("{message}\n{text}"),
            None => self.messages.push(text.to_owned()),
        }
    }
}

/// Its abilities, in a process of its own or in ours.
pub fn abilities() -> Abilities {
    Abilities {
        resume: true,
        fork: true,
        steer: true,
        asks: true,
        usage: true,
        commands: true,
        models: true,
        images: true,
        files: FilesTaken::Any,
        memory: MemoryMove::Resume,
        ..Abilities::default()
    }
}

/// The model in use when this one is wanted.
pub fn model(wanted: Option<&str>) -> Result<&'static str, Trouble> {
    let Some(wanted) = wanted else { return Ok(MODELS[0].0) };
    let known = MODELS.iter().find(|(name, _)| *name == wanted);
    known.map(|(name, _)| *name).ok_or_else(|| {
        let all = MODELS.map(|(name, _)| name).join(", ");
        Trouble::refused(format!("the scripted agent has no model {wanted:?}; it has {all}"))
    })
}

/// Its word about itself when it uses that model; its commands only once they are there.
pub fn about(model: &str, has_commands: bool) -> About {
    let commands = if has_commands { choices(&COMMANDS) } else { Vec::new() };
    let version = env!("CARGO_PKG_VERSION").to_owned();
    About { version, model: model.to_owned(), models: choices(&MODELS), commands, ..About::default() }
}

fn choices(of: &[(&str, &str)]) -> Vec<Choice> {
    let choice =
        |(name, words): &(&str, &str)| Choice { name: (*name).to_owned(), description: (*words).to_owned() };
    of.iter().map(choice).collect()
}

/// One thing for the body to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptStep {
    /// Go on under a new native id. The old one keeps what it knew.
    NewId,
    /// Add the message to the memory and keep it.
    Remember,
    /// Say these words.
    Say(String),
    /// Warn people of something that is no part of the answer.
    Warn { text: String },
    /// Show this, which is no part of the answer: a tool, reasoning, a plan.
    Show(AgentEvent),
    /// Write this into the file of the scope's directory, or remove it, and show that.
    Change { path: String, content: Option<String> },
    /// Do nothing for so long.
    Sleep { ms: u64 },
    /// Take the time from here.
    StartPace,
    /// Do nothing until so long after the last `StartPace`.
    KeepPace { ms: u64 },
    /// Ask about the tool, wait, and say `answered` as a line.
    Ask { tool: String, form: Form },
    /// Run it in the scope's directory and say its output as a line.
    Run { command: String },
    /// Start so many double-forked children that ignore SIGTERM, and say so as a line.
    ForkBomb { count: u64 },
    /// Say the directory as a line.
    Directory,
    /// Let later starts of this conversation fail, and keep that.
    FailStarts { failure: Failure, count: u32 },
    /// Delete the memory.
    Forget,
    /// End with this failure.
    Fail(Trouble),
    /// Go away without a word.
    Crash,
    /// Say `HANGING` as a line, then never do anything again and take no notice of polite signals.
    Hang,
}

/// The steps for one message. When there are none left, the turn has finished.
#[derive(Debug)]
pub struct Script {
    todo: VecDeque<Todo>,
    stream: Option<Stream>,
    pace: Option<Pace>,
    /// Tools that were used.
    calls: u64,
    has_spoken: bool,
    /// The last thing said has ended its line.
    is_at_line: bool,
}

impl Script {
    /// The script of this message, given what is remembered from before, and whether it has listed its commands.
    pub fn new(memory: &Memory, text: &str, attachments: &[Attachment], has_commands: bool) -> Self {
        let (directives, rest): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with('!'));
        let directives: Vec<Directive> = directives.into_iter().map(Directive::parse).collect();
        let mut todo = VecDeque::new();
        if !directives.iter().any(Directive::prevents_acting) {
            if directives.contains(&Directive::NewId) {
                todo.push_back(Todo::Step(ScriptStep::NewId));
            }
            todo.push_back(Todo::Step(ScriptStep::Remember));
            let words = rest.join("\n");
            let heading = match command(&words).filter(|_| has_commands) {
                Some((name, words)) => format!("command {name}: {words}"),
                None => format!("#{} {}", memory.messages.len() + 1, words.trim()),
            };
            todo.push_back(Todo::Line(heading.trim_end().to_owned()));
            todo.extend(attachments.iter().map(|attached| Todo::Line(got(attached))));
        }
        for directive in directives {
            directive.plan(memory, &mut todo);
        }
        Self { todo, stream: None, pace: None, calls: 0, has_spoken: false, is_at_line: true }
    }

    /// Puts the steps of what comes next first, if it is something that is done several times or shows a tool.
    fn unfold(&mut self) {
        while let Some(Todo::Repeat { .. } | Todo::Story(_)) = self.todo.front() {
            match self.todo.pop_front() {
                Some(Todo::Repeat { round, count, line }) if round <= count => {
                    let now = Directive::parse(&line.replace("{n}", &round.to_string()));
                    self.todo.push_front(Todo::Repeat { round: round + 1, count, line });
                    let mut steps = VecDeque::new();
                    now.plan(&Memory::default(), &mut steps);
                    steps.into_iter().rev().for_each(|step| self.todo.push_front(step));
                }
                Some(Todo::Story(shown)) => {
                    self.calls += 1;
                    let steps = shown.steps(self.calls).into_iter().rev();
                    steps.for_each(|step| self.todo.push_front(Todo::Step(step)));
                }
                _ => {}
            }
        }
    }

    /// The wait before what comes next, if there is a pace to keep.
    fn wait(&mut self) -> Option<ScriptStep> {
        let is_paced = self.todo.front().is_some_and(Todo::is_paced);
        self.pace.as_mut().filter(|_| is_paced)?.wait()
    }

    /// The output of a directive, set off from what was said before.
    pub fn line(&mut self, text: &str) -> String {
        let is_new = std::mem::replace(&mut self.is_at_line, false);
        let before = if self.has_spoken && !is_new { "\n" } else { "" };
        self.has_spoken = true;
        format!("{before}{text}")
    }

    /// The answer to words that were added to the turn: a line of its own, whatever it comes between.
    pub fn aside(&mut self, text: &str) -> String {
        let line = self.line(&format!("+{}\n", text.trim()));
        self.is_at_line = true;
        line
    }
}

impl Iterator for Script {
    type Item = ScriptStep;

    fn next(&mut self) -> Option<ScriptStep> {
        if let Some(step) = self.stream.as_mut().and_then(Stream::next) {
            self.is_at_line &= !matches!(step, ScriptStep::Say(_));
            return Some(step);
        }
        self.stream = None;
        self.unfold();
        if let Some(wait) = self.wait() {
            return Some(wait);
        }
        Some(match self.todo.pop_front()? {
            Todo::Step(step) => step,
            Todo::Rate { per_second } => {
                self.pace = (per_second > 0).then_some(Pace { per_second, shown: 0, has_waited: false });
                ScriptStep::StartPace
            }
            Todo::Repeat { .. } | Todo::Story(_) => unreachable!("they are unfolded"),
            Todo::Line(text) => ScriptStep::Say(self.line(&text)),
            Todo::Stream(stream) => {
                self.stream = Some(stream);
                ScriptStep::Say(self.line(""))
            }
        })
    }
}

/// The things that were handed over, as they can be compared.
fn got(attached: &Attachment) -> String {
    let kind = match attached.kind {
        AttachmentKind::Image => "image",
        AttachmentKind::Pdf => "pdf",
        AttachmentKind::Other => "file",
    };
    let hash: String = Sha256::digest(&attached.content).iter().map(|byte| format!("{byte:02x}")).collect();
    let Attachment { name, media_type, content, .. } = attached;
    format!("got {kind} {media_type} {} bytes sha256 {hash} {name}", content.len()).trim_end().to_owned()
}

/// The words that are added to a turn, and what goes along with them.
pub fn added(text: &str, attachments: &[Attachment]) -> String {
    let lines = [text.trim().to_owned()].into_iter().chain(attachments.iter().map(got));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The question of the body, in words.
pub fn question(tool: &str, form: &Form) -> String {
    match form {
        Form::Permission => format!("may I use {tool}?"),
        Form::Choice { .. } => format!("which one for {tool}?"),
        Form::Words => format!("what shall I say to {tool}?"),
    }
}

/// The body's words after an `Ask` was answered.
pub fn answered(tool: &str, form: &Form, answer: &QuestionAnswer) -> String {
    match (form, answer) {
        (Form::Permission, QuestionAnswer::Allow) => format!("{tool}: allowed"),
        (Form::Choice { options }, QuestionAnswer::Chose(at)) if *at < options.len() => {
            format!("{tool}: chose {}", options[*at].name)
        }
        (Form::Choice { .. } | Form::Words, QuestionAnswer::Said(words)) => format!("{tool}: told {words}"),
        (_, QuestionAnswer::Deny { reason }) if !reason.is_empty() => format!("{tool}: denied: {reason}"),
        // What does not fit the question is a no.
        _ => format!("{tool}: denied"),
    }
}

/// The command that a message begins with, and the rest of it.
fn command(words: &str) -> Option<(&'static str, &str)> {
    let line = words.strip_prefix('/')?;
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let known = COMMANDS.iter().find(|(known, _)| *known == name);
    known.map(|(known, _)| (*known, rest.trim()))
}

/// A byte of a flood, by its place. The period is prime, so that a piece that is missing or doubled shows.
pub fn flood_byte(at: u64) -> u8 {
    const LETTERS: &[u8; 61] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXY";
    LETTERS[(at % 61) as usize]
}

#[derive(Debug)]
enum Todo {
    Step(ScriptStep),
    Line(String),
    Stream(Stream),
    Story(StoryDirective),
    Repeat { round: u64, count: u64, line: String },
    Rate { per_second: u64 },
}

impl Todo {
    /// True if people see it, so that a pace is kept with it.
    fn is_paced(&self) -> bool {
        let is_shown = |step: &ScriptStep| {
            matches!(step, ScriptStep::Show(_) | ScriptStep::Change { .. } | ScriptStep::Warn { .. })
        };
        matches!(self, Self::Line(_)) || matches!(self, Self::Step(step) if is_shown(step))
    }
}

/// So many things a second from some moment on, however long each of them takes.
#[derive(Debug)]
struct Pace {
    per_second: u64,
    /// Those that have been let through.
    shown: u64,
    has_waited: bool,
}

impl Pace {
    /// The wait before one more, unless it was waited for.
    fn wait(&mut self) -> Option<ScriptStep> {
        if self.shown > 0 && !self.has_waited {
            self.has_waited = true;
            return Some(ScriptStep::KeepPace { ms: self.shown * 1_000 / self.per_second });
        }
        (self.shown, self.has_waited) = (self.shown + 1, false);
        None
    }
}

/// Steps that are made one by one, because all of them at once would not fit.
#[derive(Debug)]
enum Stream {
    Words { said: u64, count: u64, per_second: u64, slept: bool },
    Flood { said: u64, bytes: u64 },
}

impl Stream {
    fn next(&mut self) -> Option<ScriptStep> {
        match self {
            Self::Words { said, count, .. } if said == count => None,
            Self::Words { said, per_second, slept, .. } if *said > 0 && *per_second > 0 && !*slept => {
                *slept = true;
                // The difference of the two moments, so that rounding does not add up.
                Some(ScriptStep::Sleep {
                    ms: (*said * 1_000) / *per_second - ((*said - 1) * 1_000) / *per_second,
                })
            }
            Self::Words { said, slept, .. } => {
                (*said, *slept) = (*said + 1, false);
                let space = if *said > 1 { " " } else { "" };
                Some(ScriptStep::Say(format!("{space}word{said}")))
            }
            Self::Flood { said, bytes } if said == bytes => None,
            Self::Flood { said, bytes } => {
                let end = (*said + FLOOD_PIECE_BYTES).min(*bytes);
                let piece = (*said..end).map(|at| char::from(flood_byte(at))).collect();
                *said = end;
                Some(ScriptStep::Say(piece))
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Directive {
    Recall,
    Sleep { ms: u64 },
    Say { count: u64, per_second: u64 },
    Warn { count: u64, text: String },
    FailBefore,
    FailAfter,
    FailStarts { failure: Failure, count: u32 },
    Gone,
    Busy,
    Refuse,
    Crash,
    Hang,
    Flood { bytes: u64 },
    NewId,
    Ask { tool: String, form: Form },
    Run { command: String },
    ForkBomb { count: u64 },
    Directory,
    Story(StoryDirective),
    Repeat { count: u64, line: String },
    Rate { per_second: u64 },
    Unknown { line: String },
}

impl Directive {
    fn parse(line: &str) -> Self {
        Self::understand(line).unwrap_or_else(|| Self::Unknown { line: line.to_owned() })
    }

    fn understand(line: &str) -> Option<Self> {
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let words: Vec<&str> = rest.split_whitespace().collect();
        let number = |at: usize, max: u64| words.get(at)?.parse().ok().filter(|n: &u64| *n <= max);
        let starts = |at| number(at, STARTS_MAX).and_then(|n| u32::try_from(n).ok());
        let directive = match (name, words.as_slice()) {
            ("!recall", []) => Self::Recall,
            ("!sleep", [_]) => Self::Sleep { ms: number(0, SLEEP_MS_MAX)? },
            ("!say", [_, _]) => Self::Say { count: number(0, WORDS_MAX)?, per_second: number(1, u64::MAX)? },
            ("!warn", [_, _, ..]) => {
                let text = rest.trim().split_once(char::is_whitespace)?.1.trim().to_owned();
                Self::Warn { count: number(0, WARNINGS_MAX)?, text }
            }
            ("!fail", ["before"]) => Self::FailBefore,
            ("!fail", ["after"]) => Self::FailAfter,
            ("!fail", ["start", _]) => Self::FailStarts { failure: Failure::Transient, count: starts(1)? },
            ("!busy", ["start", _]) => Self::FailStarts { failure: Failure::Busy, count: starts(1)? },
            ("!gone", []) => Self::Gone,
            ("!busy", []) => Self::Busy,
            ("!refuse", []) => Self::Refuse,
            ("!crash", []) => Self::Crash,
            ("!hang", []) => Self::Hang,
            ("!flood", [_]) => Self::Flood { bytes: number(0, FLOOD_BYTES_MAX)? },
            ("!newid", []) => Self::NewId,
            ("!ask", [tool]) => Self::Ask { tool: (*tool).to_owned(), form: Form::Permission },
            ("!askwords", [tool]) => Self::Ask { tool: (*tool).to_owned(), form: Form::Words },
            ("!choose", [_, ..]) => Self::choose(rest)?,
            ("!run", [_, ..]) => Self::Run { command: rest.trim().to_owned() },
            ("!fork-bomb", [_]) => Self::ForkBomb { count: number(0, FORKS_MAX)? },
            ("!pwd", []) => Self::Directory,
            ("!rate", [_]) => Self::Rate { per_second: number(0, RATE_MAX)? },
            ("!repeat", [_, _, ..]) => {
                let line = rest.trim().split_once(char::is_whitespace)?.1.trim().to_owned();
                let is_shown = matches!(Self::understand(&line)?, Self::Story(_) | Self::Warn { .. });
                is_shown.then_some(Self::Repeat { count: number(0, REPEATS_MAX)?, line })?
            }
            _ => Self::Story(StoryDirective::understand(name, rest.trim())?),
        };
        Some(directive)
    }

    /// `TOOL | a | b | c`
    fn choose(rest: &str) -> Option<Self> {
        let (tool, options) = rest.split_once('|')?;
        let choice = |name: &str| Choice { name: name.trim().to_owned(), description: String::new() };
        let options: Vec<Choice> = options.split('|').take(CHOICES_MAX).map(choice).collect();
        let is_fine = options.iter().all(|option| !option.name.is_empty());
        is_fine.then(|| Self::Ask { tool: tool.trim().to_owned(), form: Form::Choice { options } })
    }

    fn prevents_acting(&self) -> bool {
        matches!(self, Self::FailBefore | Self::Busy | Self::Refuse | Self::Gone)
    }

    fn plan(self, memory: &Memory, todo: &mut VecDeque<Todo>) {
        let step = match self {
            Self::Recall => {
                todo.extend(memory.messages.iter().map(|message| Todo::Line(message.replace('\n', "\\n"))));
                return;
            }
            Self::Say { count, per_second } => {
                return todo.push_back(Todo::Stream(Stream::Words {
                    said: 0,
                    count,
                    per_second,
                    slept: false,
                }));
            }
            Self::Flood { bytes } => return todo.push_back(Todo::Stream(Stream::Flood { said: 0, bytes })),
            Self::Unknown { line } => {
                return todo.push_back(Todo::Line(format!("unknown directive: {line}")));
            }
            Self::Warn { count, text } => {
                let warning = || Todo::Step(ScriptStep::Warn { text: text.clone() });
                return todo.extend((0..count).map(|_| warning()));
            }
            Self::Story(shown) => return todo.push_back(Todo::Story(shown)),
            Self::Repeat { count, line } => return todo.push_back(Todo::Repeat { round: 1, count, line }),
            Self::Rate { per_second } => return todo.push_back(Todo::Rate { per_second }),
            Self::NewId => return, // Done before the message was remembered.
            Self::FailStarts { failure, count } => {
                todo.push_back(Todo::Step(ScriptStep::FailStarts { failure, count }));
                return todo.push_back(Todo::Line(format!("the next {count} starts will fail")));
            }
            Self::Gone => {
                todo.push_back(Todo::Step(ScriptStep::Forget));
                ScriptStep::Fail(Trouble::new(
                    Failure::Gone,
                    "told to be gone: this conversation no longer exists",
                ))
            }
            Self::FailBefore => ScriptStep::Fail(Trouble::transient("told to fail before acting")),
            Self::FailAfter => ScriptStep::Fail(Trouble::transient("told to fail after acting")),
            Self::Busy => ScriptStep::Fail(Trouble::new(Failure::Busy, "told to be busy")),
            Self::Refuse => ScriptStep::Fail(Trouble::refused("told to refuse")),
            Self::Sleep { ms } => ScriptStep::Sleep { ms },
            Self::Ask { tool, form } => ScriptStep::Ask { tool, form },
            Self::Run { command } => ScriptStep::Run { command },
            Self::ForkBomb { count } => ScriptStep::ForkBomb { count },
            Self::Directory => ScriptStep::Directory,
            Self::Crash => ScriptStep::Crash,
            Self::Hang => ScriptStep::Hang,
        };
        todo.push_back(Todo::Step(step));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything said for a message by an agent that remembers `before`, and the other steps in braces.
    fn check(before: &[&str], text: &str, expected: &str) {
        let messages = before.iter().map(|m| (*m).to_owned()).collect();
        let memory = Memory { messages, ..Memory::default() };
        let seen: String = Script::new(&memory, text, &[], true)
            .map(|step| match step {
                ScriptStep::Say(words) => words,
                ScriptStep::Fail(trouble) => format!("{{{trouble}}}"),
                other => format!("{{{other:?}}}"),
            })
            .collect();
        assert_eq!(seen, expected, "for {text:?}");
    }

    #[test]
    fn it_counts_and_repeats() {
        check(&[], "hello", "{Remember}#1 hello");
        check(&["a", "b"], "hello\nthere\n", "{Remember}#3 hello\nthere");
        check(&[], "", "{Remember}#1");
    }

    #[test]
    fn directives_print_after_the_answer() {
        check(&["a", "b\nc"], "x\n!recall", "{Remember}#3 x\na\nb\\nc");
        check(&[], "!sleep 5\nx\n!pwd", "{Remember}#1 x{Sleep { ms: 5 }}{Directory}");
        check(&[], "!say 3 4", "{Remember}#1\nword1{Sleep { ms: 250 }} word2{Sleep { ms: 250 }} word3");
        check(&[], "!say 2 0", "{Remember}#1\nword1 word2");
        check(&[], "!flood 3", "{Remember}#1\n012");
        check(&[], "!warn 1 take care", "{Remember}#1{Warn { text: \"take care\" }}");
        check(&["a"], "x\n!newid", "{NewId}{Remember}#2 x");
        check(
            &[],
            "!fail start 2",
            "{Remember}#1{FailStarts { failure: Transient, count: 2 }}\nthe next 2 starts will fail",
        );
    }

    /// The things shown beside the answer, each on a line, and the waits between them.
    fn shown(text: &str) -> Vec<String> {
        let steps = Script::new(&Memory::default(), text, &[], true);
        steps
            .filter_map(|step| match step {
                ScriptStep::Show(event) => Some(format!("{event:?}")),
                ScriptStep::Warn { text } => Some(text),
                ScriptStep::Change { path, content } => Some(format!("{path}: {content:?}")),
                ScriptStep::StartPace => Some("from here".to_owned()),
                ScriptStep::KeepPace { ms } => Some(format!("at {ms}")),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn a_rate_is_kept_from_where_it_was_set() {
        check(&[], "!rate 4\n!pwd", "{Remember}#1{StartPace}{Directory}");
        let seen =
            shown("!warn 1 early\n!rate 4\n!warn 3 slow\n!rate 1000\n!warn 2 quick\n!rate 0\n!warn 2 free");
        let expected = [
            "early",
            "from here",
            "slow",
            "at 250",
            "slow",
            "at 500",
            "slow",
            "from here",
            "quick",
            "at 1",
            "quick",
            "from here",
            "free",
            "free",
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn what_is_repeated_knows_its_number() {
        assert_eq!(
            shown("!repeat 3 !edit {n}.txt | line {n}"),
            ["1.txt: Some(\"line 1\")", "2.txt: Some(\"line 2\")", "3.txt: Some(\"line 3\")",]
        );
        assert_eq!(shown("!rate 200\n!repeat 2 !warn 1 w{n}"), ["from here", "w1", "at 5", "w2"]);
        // Tools are told apart by the number of the call, however they come about.
        let calls = shown("!tool a | b\n!repeat 2 !tool c | d");
        let has = |at: usize, call: &str| calls[at].contains(&format!("call: \"{call}\""));
        assert!(calls.len() == 6 && has(0, "tool1") && has(1, "tool1") && has(2, "tool2") && has(5, "tool3"));
        check(&[], "!repeat 2 !hang", "{Remember}#1\nunknown directive: !repeat 2 !hang");
        check(
            &[],
            "!repeat 2 !repeat 2 !think x",
            "{Remember}#1\nunknown directive: !repeat 2 !repeat 2 !think x",
        );
        // As many as it may be are made one by one.
        let mut many = Script::new(&Memory::default(), "!repeat 1000000 !think x", &[], true);
        assert_eq!(many.by_ref().take(100).count(), 100);
        assert!(many.todo.len() < 10);
    }

    #[test]
    fn what_is_not_acted_on_is_not_remembered() {
        check(&[], "x\n!fail before", "{told to fail before acting (transient)}");
        check(&[], "x\n!fail after", "{Remember}#1 x{told to fail after acting (transient)}");
        check(
            &[],
            "!sleep 1\n!gone",
            "{Sleep { ms: 1 }}{Forget}{told to be gone: this conversation no longer exists (gone)}",
        );
    }

    #[test]
    fn a_command_is_one_only_when_it_was_listed() {
        check(&[], "/shout hello\n!pwd", "{Remember}command shout: hello{Directory}");
        check(&[], "/dance", "{Remember}#1 /dance");
        check(&[], "say /shout", "{Remember}#1 say /shout");
        let early: Vec<ScriptStep> = Script::new(&Memory::default(), "/shout hello", &[], false).collect();
        assert_eq!(early, [ScriptStep::Remember, ScriptStep::Say("#1 /shout hello".to_owned())]);
    }

    #[test]
    fn an_answer_that_does_not_fit_is_a_no() {
        let options = choices(&[("red", ""), ("blue", "")]);
        let asked = Directive::parse("!choose paint | red |blue");
        assert_eq!(asked, Directive::Ask { tool: "paint".to_owned(), form: Form::Choice { options } });
        let Directive::Ask { form, .. } = asked else { panic!() };
        let said = |form: &Form, answer: QuestionAnswer| answered("it", form, &answer);
        assert_eq!(said(&form, QuestionAnswer::Chose(1)), "it: chose blue");
        assert_eq!(said(&form, QuestionAnswer::Said("green".to_owned())), "it: told green");
        assert_eq!(said(&Form::Words, QuestionAnswer::Said("green".to_owned())), "it: told green");
        for (form, answer) in [
            (&form, QuestionAnswer::Chose(2)),
            (&form, QuestionAnswer::Allow),
            (&Form::Words, QuestionAnswer::Chose(0)),
            (&Form::Words, QuestionAnswer::Allow),
            (&Form::Permission, QuestionAnswer::Said("yes".to_owned())),
            (&Form::Permission, QuestionAnswer::Chose(0)),
        ] {
            assert_eq!(said(form, answer), "it: denied");
        }
        assert!(matches!(Directive::parse("!choose paint | "), Directive::Unknown { .. }));
    }

    #[test]
    fn what_is_added_has_a_line_of_its_own() {
        let mut script = Script::new(&Memory::default(), "x\n!say 2 1000\n!pwd", &[], true);
        let mut text = String::new();
        while let Some(step) = script.next() {
            match step {
                ScriptStep::Say(words) => text += &words,
                ScriptStep::Directory => text += &script.line("/here"),
                _ => text += &script.aside("more "),
            }
        }
        assert_eq!(text, "+more\n#1 x\nword1\n+more\n word2\n/here");
        let mut memory = Memory { messages: vec!["x".to_owned()], ..Memory::default() };
        memory.add("more");
        assert_eq!(memory.messages, ["x\nmore"]);
    }

    #[test]
    fn an_unknown_model_is_refused() {
        assert_eq!(model(None).unwrap(), "small");
        assert_eq!(model(Some("large")).unwrap(), "large");
        let refused = model(Some("huge")).unwrap_err();
        assert!(refused.failure == Failure::Refused && refused.detail.contains("small, large"), "{refused}");
    }

    #[test]
    fn an_unknown_directive_is_answered() {
        check(&[], "!dance", "{Remember}#1\nunknown directive: !dance");
        check(&[], "!sleep long", "{Remember}#1\nunknown directive: !sleep long");
        check(&[], "!fork-bomb 100000", "{Remember}#1\nunknown directive: !fork-bomb 100000");
    }

    #[test]
    fn a_flood_is_complete_and_comes_in_pieces() {
        let said: Vec<String> = Script::new(&Memory::default(), "!flood 10000", &[], true)
            .filter_map(|step| if let ScriptStep::Say(words) = step { Some(words) } else { None })
            .collect();
        assert!(said.iter().all(|piece| piece.len() as u64 <= FLOOD_PIECE_BYTES));
        let all: String = said.concat();
        let flood = all.strip_prefix("#1\n").expect("the answer comes first").as_bytes();
        assert!(flood.iter().enumerate().all(|(at, byte)| *byte == flood_byte(at as u64)));
        assert_eq!(flood.len(), 10_000);
    }

    #[test]
    fn told_starts_fail_and_then_no_more() {
        let mut memory = Memory { starts_failing: 1, starts_busy: 1, ..Memory::default() };
        assert_eq!(memory.wake().map_err(|t| t.failure), Err(Failure::Transient));
        assert_eq!(memory.wake().map_err(|t| t.failure), Err(Failure::Busy));
        assert_eq!(memory.wake(), Ok(()));
    }

    #[test]
    fn it_says_what_it_was_handed() {
        let (name, media_type) = ("a.png".to_owned(), "image/png".to_owned());
        let attached =
            Attachment { kind: AttachmentKind::Image, name, media_type, content: (&b"abc"[..]).into() };
        let said: String = Script::new(&Memory::default(), "look", &[attached], true)
            .filter_map(|step| if let ScriptStep::Say(words) = step { Some(words) } else { None })
            .collect();
        let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(said, format!("#1 look\ngot image image/png 3 bytes sha256 {hash} a.png"));
    }
}

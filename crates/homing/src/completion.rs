//! Completion in a shell: what may come next on the line that somebody types.
//!
//! Whenever they press TAB, the script of their shell (`shells`) asks `homing __complete`. What a line may consist of, clap knows, and
//! walks; what an argument names stands with the argument ([`Completes`]), and is asked of the server (`candidates`). A completion
//! changes nothing, starts nothing, asks nobody anything and says no word but candidates: where there is no server, or it does not let us in
//! or is slow, there are those that need none. `bash_line` is how bash takes a line apart.

mod bash_line;
mod candidates;
mod shells;

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use clap::builder::ArgExt;
use clap::{Arg, ValueHint};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, ValueCompleter, complete};

use crate::cli;
use candidates::OfferedName;
use shells::Asked;
pub(crate) use shells::script;

/// The longest that a completion waits for the server: somebody who pressed TAB sits there, and their shell does nothing else.
const ANSWER_MAX: Duration = Duration::from_millis(500);

/// The things that an argument names. They are candidates for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completes {
    /// Sessions that take messages.
    OpenSessions,
    /// Sessions, those that have ended, too.
    Sessions,
    /// Open sessions, and messages that wait or run in this directory's.
    OpenSessionsAndMessages,
    /// The same, with sessions that have ended.
    SessionsAndMessages,
    /// Sessions and agents: what something can be given on.
    SessionsAndAgents,
    /// Messages that wait or run in this directory's session.
    Messages,
    /// Open questions.
    Approvals,
    /// Worktrees that are there.
    Worktrees,
    /// Those of the session that is meant.
    OwnWorktrees,
    /// Worktrees that can be had back.
    RemovedWorktrees,
    Agents,
    /// Models of the agent that is meant.
    Models,
    /// Its modes.
    Modes,
}

impl ArgExt for Completes {}

/// Files or directories, which a shell completes better than we could.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Paths {
    Files,
    Directories,
}

/// Everything that a shell is told.
#[derive(Debug, Default)]
struct Suggested {
    candidates: Vec<OfferedName>,
    /// The shell is to complete these itself.
    paths: Option<Paths>,
}

/// Tells a shell the candidates for the line that it names. Whatever is wrong, there are none.
pub(crate) fn run() -> ExitCode {
    if let Some(asked) = Asked::read(std::env::args_os().skip(2).collect()) {
        let suggested = suggest(asked.words());
        let _ = asked.tell(&suggested, &mut std::io::stdout().lock());
    }
    ExitCode::SUCCESS
}

/// The candidates for the last of these words.
fn suggest(words: &[String]) -> Suggested {
    let (Some(typed), Some(last)) = (words.last(), words.len().checked_sub(1)) else {
        return Suggested::default();
    };
    let paths = Arc::new(OnceLock::new());
    let line = Arc::new(ShellLine { words: words.to_vec(), until: Instant::now() + ANSWER_MAX });
    let mut command = with_completers(cli::command(), &line, &paths);
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    let found = complete(&mut command, words, last, None).unwrap_or_default();
    // Options are told to whoever begins to type one.
    let is_told = |value: &str| !typed.is_empty() || !value.starts_with('-');
    let candidates = found.iter().filter_map(|found| {
        let help = found.get_help().map(ToString::to_string).unwrap_or_default();
        let value = found.get_value().to_str().filter(|value| is_told(value))?;
        let words = help.lines().next().unwrap_or_default().to_owned();
        Some(OfferedName { value: value.to_owned(), words })
    });
    Suggested { candidates: candidates.collect(), paths: paths.get().copied() }
}

/// The same command, whose arguments know their candidates.
fn with_completers(
    command: clap::Command,
    line: &Arc<ShellLine>,
    paths: &Arc<OnceLock<Paths>>,
) -> clap::Command {
    let wants = |wanted| ArgValueCompleter::new(PathsOf { wanted, paths: Arc::clone(paths) });
    let name = command.get_name().to_owned();
    let names = |arg: &Arg, what| {
        let is_several =
            arg.is_positional() && arg.get_num_args().is_some_and(|count| count.max_values() > 1);
        let right_after = is_several.then(|| name.clone());
        ArgValueCompleter::new(NamesOf { what, line: Arc::clone(line), right_after })
    };
    let with_completer = |arg: Arg| match (arg.get::<Completes>().copied(), arg.get_value_hint()) {
        (Some(what), _) => {
            let completer = names(&arg, what);
            arg.add(completer)
        }
        (None, ValueHint::AnyPath | ValueHint::FilePath) => arg.add(wants(Paths::Files)),
        (None, ValueHint::DirPath) => arg.add(wants(Paths::Directories)),
        (None, _) => arg,
    };
    command.mut_args(with_completer).mut_subcommands(|command| with_completers(command, line, paths))
}

/// A line up to the cursor, as words; the last is being typed.
#[derive(Debug)]
struct ShellLine {
    words: Vec<String>,
    /// The end of all waiting.
    until: Instant,
}

impl ShellLine {
    /// The value of an option, if the line has it.
    fn option(&self, long: &str, short: Option<&str>) -> Option<&str> {
        let before = &self.words[..self.words.len() - 1];
        let mut words = before.iter().take_while(|word| *word != "--").map(String::as_str);
        let mut found = None;
        while let Some(word) = words.next() {
            let joined = word.strip_prefix(long).and_then(|rest| rest.strip_prefix('='));
            if joined.is_some() {
                found = joined;
            } else if word == long || Some(word) == short {
                found = words.next();
            }
        }
        found
    }

    /// True if nothing but options stands between this word and the cursor.
    fn is_right_after(&self, word: &str) -> bool {
        let before = self.words[..self.words.len() - 1].iter();
        before.rev().find(|before| !before.starts_with('-')).is_some_and(|before| before == word)
    }

    /// True if one of the words before is this.
    fn has(&self, word: &str) -> bool {
        self.words[..self.words.len() - 1].iter().any(|typed| typed == word)
    }
}

/// The candidates of an argument that names something.
struct NamesOf {
    what: Completes,
    line: Arc<ShellLine>,
    /// Where an argument takes several values, only the first is a name, a turn or a title follows: the one after this word.
    right_after: Option<String>,
}

impl ValueCompleter for NamesOf {
    fn complete(&self, typed: &OsStr) -> Vec<CompletionCandidate> {
        let is_first = self.right_after.as_deref().is_none_or(|command| self.line.is_right_after(command));
        let typed = typed.to_str().filter(|typed| is_first && !is_option(typed)).map(str::to_owned);
        let Some(typed) = typed else { return Vec::new() };
        let (what, line, until) = (self.what, Arc::clone(&self.line), self.line.until);
        let told = within(until, move || candidates::ask(what, &typed, &line)).unwrap_or_default();
        told.into_iter()
            .map(|told| CompletionCandidate::new(told.value).help(Some(told.words.into())))
            .collect()
    }
}

/// The candidates of an argument that is a path: the shell's own.
struct PathsOf {
    wanted: Paths,
    paths: Arc<OnceLock<Paths>>,
}

impl ValueCompleter for PathsOf {
    fn complete(&self, typed: &OsStr) -> Vec<CompletionCandidate> {
        if !typed.to_str().is_some_and(is_option) {
            let _ = self.paths.set(self.wanted);
        }
        Vec::new()
    }
}

/// True if an option was begun: what stands there is no name and no path.
fn is_option(typed: &str) -> bool {
    typed.starts_with('-')
}

/// The outcome of this, if it is there in time. Nothing in it can hold us up: what is late is left behind, and ends with this process.
fn within<T: Send + 'static>(until: Instant, ask: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (tell, told) = mpsc::sync_channel(1);
    thread::Builder::new().spawn(move || tell.send(ask())).ok()?;
    told.recv_timeout(until.saturating_duration_since(Instant::now())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str]) -> ShellLine {
        ShellLine { words: words.iter().map(|&word| word.to_owned()).collect(), until: Instant::now() }
    }

    #[test]
    fn an_option_is_what_the_line_says_before_the_cursor() {
        let typed = line(&["homing", "send", "-s", "one", "--agent=two", "--model", ""]);
        assert_eq!(typed.option("--session", Some("-s")), Some("one"));
        assert_eq!(typed.option("--agent", None), Some("two"));
        assert_eq!(typed.option("--model", None), None);
        assert_eq!(line(&["homing", "send", "--", "--agent", "x", ""]).option("--agent", None), None);
    }

    #[test]
    fn what_is_late_is_left_behind() {
        let (hold, held) = mpsc::channel::<()>();
        let began = Instant::now();
        assert_eq!(within(began + Duration::from_millis(20), move || held.recv().is_ok()), None);
        assert_eq!(within(Instant::now() + Duration::from_secs(60), || 1), Some(1));
        drop(hold);
    }

    /// Every argument below this command, with the way to it.
    fn arguments(command: &clap::Command, way: &str, all: &mut Vec<(String, Arg)>) {
        all.extend(command.get_arguments().map(|arg| (format!("{way} {}", arg.get_id()), arg.clone())));
        for below in command.get_subcommands() {
            arguments(below, &format!("{way} {}", below.get_name()), all);
        }
    }

    #[test]
    fn whatever_is_called_like_a_thing_that_has_names_has_candidates() {
        let mut all = Vec::new();
        arguments(&cli::command(), "homing", &mut all);
        // An offered session is not seen before it is accepted.
        let without = ["homing grant accept session", "homing grant decline session"];
        for (way, arg) in &all {
            let named = ["session", "message", "approval", "agent", "model", "mode", "before"];
            let is_named = named.contains(&arg.get_id().as_str()) && !without.contains(&way.as_str());
            assert!(!is_named || arg.get::<Completes>().is_some(), "{way} has no candidates");
        }
        let with = all.iter().filter(|(_, arg)| arg.get::<Completes>().is_some()).count();
        assert!(with > 40, "{with}");
    }

    #[test]
    fn paths_are_left_to_the_shell() {
        let paths = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            suggest(&words).paths
        };
        assert_eq!(paths(&["homing", "--data", ""]), Some(Paths::Directories));
        assert_eq!(paths(&["homing", "send", "--attach=x"]), Some(Paths::Files));
        assert_eq!(paths(&["homing", "import", ""]), Some(Paths::Files));
        assert_eq!(paths(&["homing", "import", "--"]), None);
        assert_eq!(paths(&["homing", "ls", ""]), None);
    }

    #[test]
    fn commands_and_values_need_no_server_and_options_are_told_when_asked_for() {
        let values = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            suggest(&words).candidates.into_iter().map(|candidate| candidate.value).collect::<Vec<_>>()
        };
        assert_eq!(values(&["homing", "sco"]), ["scope"]);
        assert_eq!(values(&["homing", "ls", "--state", "r"]), ["running"]);
        assert!(values(&["homing", "scope", ""]).contains(&"enter".to_owned()));
        assert!(!values(&["homing", ""]).iter().any(|value| value.starts_with('-')));
        assert!(!line(&["homing", "rename", "one", ""]).is_right_after("rename"));
        assert!(line(&["homing", "diff", "--stat", ""]).is_right_after("diff"));
        assert!(values(&["homing", "send", "--fo"]).contains(&"--follow".to_owned()));
        assert!(!values(&["homing", ""]).iter().any(|value| value.starts_with('_')), "ours is hidden");
        assert!(
            values(&["homing", "import", "--ag"]).contains(&"--agent".to_owned()),
            "a path stands there, too"
        );
    }
}

//! Commands that somebody may have meant by a word that is none: another word for the same thing, or a slip of the fingers.
//!
//! Of slips only the nearest count, so that nobody is sent to `end` who wanted to `send`. What else may be wrong with a command line
//! is for `usage`.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::exit::{CliError, Exit};
use crate::screen::tame_name;

/// The most that are offered: more would have to be read.
const OFFERED_MAX: usize = 3;

/// Words of other programs, and what they are called here.
const OTHER_WORDS: [(&[&str], &str); 17] = [
    (&["session", "sessions", "list", "status", "ps", "top"], "ls"),
    (&["find", "search", "grep"], "ls --text WORDS"),
    (&["hist", "history", "transcript", "cat", "print"], "log"),
    (&["tail", "watch", "follow", "attach"], "log -f"),
    (&["messages", "message", "pending", "waiting"], "queue"),
    (&["run", "say", "ask", "prompt", "exec", "tell"], "send"),
    (&["new", "create"], "send --new"),
    (&["start", "server", "daemon", "init"], "up"),
    (&["kill", "cancel", "abort", "interrupt"], "stop"),
    (&["close", "delete", "rm", "remove", "exit", "quit", "archive"], "end"),
    (&["resume", "continue", "talk", "shell", "repl"], "chat"),
    (&["model", "models", "mode"], "scope set"),
    (&["revert", "rollback", "reset"], "undo"),
    (&["info", "inspect", "get", "describe", "usage", "cost"], "show"),
    (&["people", "person", "member", "members", "invite"], "user"),
    (&["question", "questions", "allow", "answer", "permissions", "yes"], "approve"),
    (&["check", "health", "diagnose", "version-check"], "doctor"),
];

/// The error for a command that there is not; none if something else is wrong.
pub(crate) fn unknown(error: &clap::Error, typed: &[String], top: &clap::Command) -> Option<CliError> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let (path, commands) = commands_at(typed, Some(word), top);
    let is_top = path.len() == 1;
    let near = near(word, &commands, is_top);
    let path = path.join(" ");
    let offered: Vec<String> = near.iter().map(|command| format!("`{path} {command}`")).collect();
    let all = format!("`{path} --help` lists what there is");
    let hint = match (offered.is_empty(), is_top) {
        (false, _) => format!("did you mean {}? {all}", offered.join(" or ")),
        // Whoever wanted to say something has said it as they would to somebody.
        (true, true) => format!("`homing send -f \"…\"` says something to an agent; {all}"),
        (true, false) => format!("behind `{path}` comes {}; {all}", either(&commands)),
    };
    Some(CliError::new(Exit::Usage, format!("there is no command `{path} {}`", tame_name(word))).hint(hint))
}

fn either(commands: &[String]) -> String {
    let mut named: Vec<&str> = commands.iter().map(String::as_str).filter(|name| *name != "help").collect();
    let last = named.pop().unwrap_or_default();
    if named.is_empty() { last.to_owned() } else { format!("{} or {last}", named.join(", ")) }
}

/// The error where a session may stand before a verb: a word that is no session may have been meant as a verb.
pub(crate) fn or_a_verb(command: &str, word: Option<&str>, error: anyhow::Error) -> anyhow::Error {
    let Some(meant) = word.and_then(|word| verb_near(command, word)) else { return error };
    match error.downcast::<CliError>() {
        Ok(error) if error.exit == Exit::NotFound => error.hint(format!("did you mean {meant}?")).into(),
        Ok(error) => error.into(),
        Err(error) => error,
    }
}

/// The verbs of a command that may have been meant by this word.
pub(crate) fn verb_near(command: &str, word: &str) -> Option<String> {
    let top = crate::cli::command();
    let verbs = top.find_subcommand(command)?.get_subcommands().map(|verb| verb.get_name().to_owned());
    let near = near(word, &verbs.collect::<Vec<_>>(), false);
    let offered: Vec<String> = near.iter().map(|verb| format!("`homing {command} {verb}`")).collect();
    (!offered.is_empty()).then(|| offered.join(" or "))
}

/// The commands among which this word was to be one, and how one got there; without a word, as far as one got.
pub(crate) fn commands_at(
    typed: &[String],
    word: Option<&str>,
    top: &clap::Command,
) -> (Vec<String>, Vec<String>) {
    let (mut path, mut here) = (vec![top.get_name().to_owned()], top);
    for typed in typed.iter().take_while(|typed| Some(typed.as_str()) != word) {
        if let Some(next) = here.find_subcommand(typed) {
            path.push(next.get_name().to_owned());
            here = next;
        }
    }
    let shown = here.get_subcommands().filter(|command| !command.is_hide_set());
    (path, shown.map(|command| command.get_name().to_owned()).collect())
}

/// The commands that may have been meant, the likeliest first.
fn near(word: &str, commands: &[String], is_top: bool) -> Vec<String> {
    let word = word.to_lowercase();
    let other = OTHER_WORDS.iter().find(|(words, _)| is_top && words.contains(&&*word));
    if let Some((_, command)) = other {
        return vec![(*command).to_owned()];
    }
    let slips_max = if word.chars().count() <= 3 { 1 } else { 2 };
    let slips = commands.iter().map(|command| (slips_between(&word, command), command));
    let slips: Vec<(usize, &String)> = slips.filter(|(slips, _)| *slips <= slips_max).collect();
    let least = slips.iter().map(|(slips, _)| *slips).min();
    let nearest = slips.iter().filter(|(slips, _)| Some(*slips) == least).map(|(_, command)| *command);
    let begun = commands.iter().filter(|command| word.len() > 1 && command.starts_with(&word));
    let mut near: Vec<String> = Vec::new();
    for command in nearest.chain(begun) {
        if !near.contains(command) && near.len() < OFFERED_MAX {
            near.push(command.clone());
        }
    }
    near
}

/// The slips of the fingers between two words: a letter more, less or another, or two in the wrong order.
pub(crate) fn slips_between(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let differs = usize::from(one[i - 1] != other[j - 1]);
            let mut least = (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + differs);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

/// Checks that each of these words is none of ours, and leads to a command that there is.
#[cfg(test)]
pub(crate) fn check_other_words(top: &clap::Command) {
    for (words, leads) in OTHER_WORDS {
        for word in words {
            assert!(top.find_subcommand(word).is_none(), "{word} is a command itself");
        }
        let command = leads.split(' ').next().unwrap_or_default();
        assert!(top.find_subcommand(command).is_some(), "{leads}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(word: &str) -> String {
        let commands = ["up", "serve", "send", "chat", "ls", "show", "log", "stop", "end", "export", "undo"];
        let more = ["agents", "login", "logout", "grant", "org", "user", "worktree", "completions"];
        let commands: Vec<String> = commands.iter().chain(&more).map(|&name| name.to_owned()).collect();
        near(word, &commands, true).join(" ")
    }

    #[test]
    fn a_slip_of_the_fingers_leads_to_what_was_meant_and_to_nothing_else() {
        for (typed, meant) in [
            ("lgo", "log"),
            ("logs", "log"),
            ("sned", "send"),
            ("serv", "serve"),
            ("agent", "agents"),
            ("worktrees", "worktree"),
            ("comp", "completions"),
            ("logn", "log login"),
            ("ECHO", ""),
            ("frobnicate", ""),
        ] {
            assert_eq!(offered(typed), meant, "{typed}");
        }
    }

    #[test]
    fn another_word_for_it_leads_there() {
        for (typed, meant) in [
            ("sessions", "ls"),
            ("history", "log"),
            ("run", "send"),
            ("kill", "stop"),
            ("new", "send --new"),
            ("find", "ls --text WORDS"),
        ] {
            assert_eq!(offered(typed), meant, "{typed}");
        }
    }
}

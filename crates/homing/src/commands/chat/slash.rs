//! Lines that begin with a slash: our commands, and the agent's. Pure.
//!
//! Ours win. `//NAME` is the agent's, whatever ours are called; a space in front makes it words. A path is no command.

use crate::near_commands::slips_between;

/// Our commands, with what they do.
pub(super) const OURS: [(&str, &str); 12] = [
    ("help", "list the commands"),
    ("quit", "leave; a turn under way goes on"),
    ("attach", "send a file along with the next message: /attach FILE"),
    ("queue", "what waits in this session"),
    ("stop", "stop the turn under way"),
    ("diff", "what a turn changed: /diff [TURN] [--stat]"),
    ("undo", "put back what a turn has changed: /undo TURN [--all]"),
    ("model", "the agent's models, or another one: /model [NAME]"),
    ("new", "begin another session with the next message"),
    ("sessions", "list your sessions"),
    ("unfold", "the whole of a tool call: /unfold [N], or Ctrl-O for the last one"),
    ("agent", "list the agent's own commands"),
];

/// The most names that are suggested.
const NEAR_MAX: usize = 3;
/// The most slips within which a name is near.
const NEAR_SLIPS_MAX: usize = 2;

/// A line that somebody has typed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChatLine<'a> {
    /// Words for the agent; they may be a command of its own that was named with two slashes.
    Words(&'a str),
    /// One of our commands, and the rest of the line.
    Ours(&'static str, &'a str),
    /// A name that is none of ours.
    Named(&'a str),
}

impl<'a> ChatLine<'a> {
    pub(super) fn read(line: &'a str) -> Self {
        let Some(named) = line.strip_prefix('/') else { return Self::Words(line) };
        let (name, rest) = named.split_once(char::is_whitespace).unwrap_or((named, ""));
        if let Some(theirs) = name.strip_prefix('/').filter(|name| is_name(name)) {
            return Self::Words(&named[named.len() - theirs.len() - 1 - (named.len() - name.len())..]);
        }
        match OURS.iter().find(|(ours, _)| *ours == name) {
            Some((ours, _)) => Self::Ours(ours, rest.trim()),
            None if is_name(name) => Self::Named(name),
            None => Self::Words(line),
        }
    }
}

/// A hint in which commands of a shell are those of a chat, where there is one that does the same.
pub(super) fn in_chat(hint: &str) -> String {
    let mut parts = hint.split('`');
    let mut told = parts.next().unwrap_or_default().to_owned();
    // Commands are every other part; the last of an odd number is none.
    for (at, part) in parts.enumerate() {
        let ours = (at % 2 == 0).then(|| ours_for(part)).flatten();
        told.push('`');
        told.push_str(&ours.unwrap_or_else(|| part.to_owned()));
    }
    told
}

/// Our command for a command of a shell, if it can do all of it.
fn ours_for(command: &str) -> Option<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let is_turn = |word: &str| word == "TURN" || word.parse::<u32>().is_ok();
    match words.as_slice() {
        ["homing", "diff", rest @ ..] if rest.iter().all(|word| is_turn(word) || *word == "--stat") => {
            Some(["/diff"].iter().chain(rest).copied().collect::<Vec<_>>().join(" "))
        }
        ["homing", "undo", turn, rest @ ..] if is_turn(turn) && rest.iter().all(|word| *word == "--all") => {
            Some(["/undo", turn].iter().chain(rest).copied().collect::<Vec<_>>().join(" "))
        }
        ["homing", "scope", "set", "--model", name] => Some(format!("/model {name}")),
        ["homing", "queue"] => Some("/queue".to_owned()),
        ["homing", "stop"] => Some("/stop".to_owned()),
        ["homing", "ls"] => Some("/sessions".to_owned()),
        ["homing", "send", "--new"] | ["homing", "send", "--new", "\"…\""] => Some("/new".to_owned()),
        _ => None,
    }
}

fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
    !name.is_empty() && name.chars().all(is_plain)
}

/// The names that are like this one, the nearest first.
pub(super) fn near<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let begins = |other: &str| other.starts_with(name) || name.starts_with(other);
    let mut near: Vec<(usize, &str)> = names
        .map(|other| (if begins(other) { 1 } else { slips_between(name, other) }, other))
        .filter(|(slips, other)| *slips <= NEAR_SLIPS_MAX && *slips < other.chars().count())
        .collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(NEAR_MAX).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_win_two_slashes_are_the_agents_and_a_space_makes_words() {
        assert_eq!(ChatLine::read("/diff 3 --stat"), ChatLine::Ours("diff", "3 --stat"));
        assert_eq!(ChatLine::read("//diff 3"), ChatLine::Words("/diff 3"));
        assert_eq!(ChatLine::read("//init"), ChatLine::Words("/init"));
        assert_eq!(ChatLine::read(" /diff"), ChatLine::Words(" /diff"));
        assert_eq!(ChatLine::read("/shout loud"), ChatLine::Named("shout"));
        for words in ["hello", "/etc/passwd is gone", "/", "// a comment", "1/2"] {
            assert_eq!(ChatLine::read(words), ChatLine::Words(words));
        }
    }

    #[test]
    fn a_hint_names_what_can_be_typed_here() {
        for (hint, told) in [
            ("wait, or stop it with `homing stop`", "wait, or stop it with `/stop`"),
            (
                "`homing diff 3` shows it, `homing undo 3 --all` undoes it",
                "`/diff 3` shows it, `/undo 3 --all` undoes it",
            ),
            ("`homing scope set --model NAME`", "`/model NAME`"),
            ("begin another with `homing send --new \"…\"`", "begin another with `/new`"),
            // What there is no command for stays what it is.
            ("`homing undo 3 --dry-run`, `--only FILE`", "`homing undo 3 --dry-run`, `--only FILE`"),
            ("`homing stop ID` and `homing diff --all", "`homing stop ID` and `homing diff --all"),
            ("no command", "no command"),
        ] {
            assert_eq!(in_chat(hint), told);
        }
    }

    #[test]
    fn a_name_has_near_ones() {
        let names = || OURS.iter().map(|(name, _)| *name).chain(["shout"]);
        assert_eq!(near("hlep", names()), ["help"]);
        assert_eq!(near("sto", names()), ["stop"]);
        assert_eq!(near("shot", names()), ["shout", "stop"]);
        assert_eq!(near("frobnicate", names()), Vec::<&str>::new());
    }
}

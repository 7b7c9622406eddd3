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
    fn a_name_has_near_ones() {
        let names = || OURS.iter().map(|(name, _)| *name).chain(["shout"]);
        assert_eq!(near("hlep", names()), ["help"]);
        assert_eq!(near("sto", names()), ["stop"]);
        assert_eq!(near("shot", names()), ["shout", "stop"]);
        assert_eq!(near("frobnicate", names()), Vec::<&str>::new());
    }
}

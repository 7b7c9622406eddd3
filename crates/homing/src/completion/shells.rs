//! Shells: the script that each of them reads when it starts, how it asks, and how it is told.
//!
//! The first line of an answer says who completes: we (`words`), or the shell itself (`files`, `dirs`). Then comes a line for each
//! candidate. No script evaluates any of it: bash gets words that are quoted already, zsh and fish quote what they insert.

use std::ffi::OsString;
use std::io::{self, Write};

use clap_complete::Shell;

use super::bash_line::BashLine;
use super::candidates::OfferedName;
use super::{Paths, Suggested};
use crate::screen::{cut, padded, width};

/// The gap between a candidate and its words.
const GAP: &str = "  ";
/// The widest column of candidates; longer ones push their words to the right.
const COLUMN_MAX: usize = 30;
/// The width of a terminal that does not say.
const WIDTH_DEFAULT: usize = 80;

/// The script for a shell that can ask us; others have none.
pub(crate) fn script(shell: Shell) -> Option<&'static str> {
    match shell {
        Shell::Bash => Some(include_str!("homing.bash")),
        Shell::Zsh => Some(include_str!("homing.zsh")),
        Shell::Fish => Some(include_str!("homing.fish")),
        _ => None,
    }
}

/// A shell that asks about a line.
#[derive(Debug)]
pub(super) enum Asked {
    Bash {
        line: BashLine,
        /// The end of the line that bash will replace.
        replaced: String,
        /// True if candidates are shown and not put in.
        is_listing: bool,
        width: usize,
    },
    Zsh {
        words: Vec<String>,
        width: usize,
    },
    Fish {
        words: Vec<String>,
    },
}

impl Asked {
    /// Reads how a script of ours asks.
    pub(super) fn read(arguments: Vec<OsString>) -> Option<Self> {
        let arguments: Option<Vec<String>> =
            arguments.into_iter().map(|argument| argument.into_string().ok()).collect();
        let mut arguments = arguments?.into_iter();
        let shell = arguments.next()?;
        let width =
            |columns: String| columns.parse().ok().filter(|width| *width > 0).unwrap_or(WIDTH_DEFAULT);
        Some(match shell.as_str() {
            "bash" => {
                let (kind, columns) = (arguments.next()?, arguments.next()?);
                let (line, replaced) = (BashLine::read(&arguments.next()?), arguments.next()?);
                Self::Bash { line, replaced, is_listing: is_listing(&kind), width: width(columns) }
            }
            "zsh" => Self::Zsh { width: width(arguments.next()?), words: arguments.collect() },
            "fish" => Self::Fish { words: without_quotes(arguments.collect()) },
            _ => return None,
        })
    }

    /// The words up to the cursor, the last of which is being typed.
    pub(super) fn words(&self) -> &[String] {
        match self {
            Self::Bash { line, .. } => &line.words,
            Self::Zsh { words, .. } | Self::Fish { words } => words,
        }
    }

    /// Tells the shell.
    pub(super) fn tell(&self, suggested: &Suggested, out: &mut impl Write) -> io::Result<()> {
        let is_redirected = matches!(self, Self::Bash { line, .. } if line.is_redirected());
        let paths = if is_redirected { Some(Paths::Files) } else { suggested.paths };
        let who = match paths {
            Some(Paths::Files) => "files",
            Some(Paths::Directories) => "dirs",
            None => "words",
        };
        writeln!(out, "{who}")?;
        if paths.is_none() {
            self.lines(&suggested.candidates).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
        out.flush()
    }

    fn lines(&self, candidates: &[OfferedName]) -> Vec<String> {
        match self {
            Self::Bash { line, replaced, is_listing, width } => {
                let put_in = |candidate: &OfferedName| {
                    let value = line.put_in(replaced, &candidate.value)?;
                    Some(OfferedName { value, words: candidate.words.clone() })
                };
                let put_in: Vec<OfferedName> = candidates.iter().filter_map(put_in).collect();
                // The only one is put in, whatever bash says that it will do.
                match *is_listing && put_in.len() > 1 {
                    true => beside(&put_in, "(", ")", *width),
                    false => put_in.into_iter().map(|candidate| candidate.value).collect(),
                }
            }
            Self::Zsh { width, .. } => {
                let shown = beside(candidates, "-- ", "", *width);
                let line =
                    |(candidate, shown): (&OfferedName, String)| format!("{}	{shown}", candidate.value);
                candidates.iter().zip(shown).map(line).collect()
            }
            Self::Fish { .. } => {
                candidates.iter().map(|OfferedName { value, words }| format!("{value}\t{words}")).collect()
            }
        }
    }
}

/// Candidates with their words beside them, in two columns.
fn beside(candidates: &[OfferedName], before: &str, after: &str, columns: usize) -> Vec<String> {
    let widths = candidates.iter().map(|candidate| width(&candidate.value));
    let column = widths.max().unwrap_or(0).min(COLUMN_MAX);
    let line = |OfferedName { value, words }: &OfferedName| {
        if words.is_empty() {
            return value.clone();
        }
        let head = format!("{}{before}", padded(value, column) + GAP);
        let room = columns.saturating_sub(width(&head) + after.len() + 1);
        if room < GAP.len() { value.clone() } else { format!("{head}{}{after}", cut(words, room)) }
    };
    candidates.iter().map(line).collect()
}

/// True if bash shows candidates, by its `COMP_TYPE`: `?` lists them; `!` and `@` put in no more than how all of them begin.
fn is_listing(kind: &str) -> bool {
    matches!(kind, "63" | "33" | "64")
}

/// The words of fish, which leaves the quotes of the one that is being typed.
fn without_quotes(mut words: Vec<String>) -> Vec<String> {
    if let Some(last) = words.pop() {
        // One word, whatever is in it: blanks that are left in it are quoted.
        words.push(BashLine::read(&last).words.join(" "));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(arguments: &[&str], candidates: &[(&str, &str)]) -> String {
        let asked = Asked::read(arguments.iter().map(OsString::from).collect()).unwrap();
        let candidates = candidates
            .iter()
            .map(|(value, words)| OfferedName { value: (*value).into(), words: (*words).into() })
            .collect();
        let mut out = Vec::new();
        asked.tell(&Suggested { candidates, paths: None }, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    const TWO: [(&str, &str); 2] = [("k3f9qa", "100% of the shop"), ("the shop", "")];

    #[test]
    fn bash_is_told_words_when_it_puts_in_and_what_they_are_when_it_lists() {
        let bash = |kind| told(&["bash", kind, "80", "homing show ", ""], &TWO);
        assert_eq!(bash("9"), "words\nk3f9qa\nthe\\ shop\n");
        assert_eq!(bash("63"), "words\nk3f9qa     (100% of the shop)\nthe\\ shop\n");
        assert_eq!(bash("37"), bash("9"), "whoever goes through a menu gets what is shown");
        let one = told(&["bash", "63", "80", "homing show k", "k"], &TWO[..1]);
        assert_eq!(one, "words\nk3f9qa\n", "the only one is put in");
        let narrow = told(&["bash", "63", "20", "homing show ", ""], &TWO);
        assert!(narrow.lines().all(|line| line.chars().count() < 20), "{narrow}");
    }

    #[test]
    fn zsh_and_fish_are_told_both_and_no_styles() {
        let zsh = told(&["zsh", "80", "homing", "show", ""], &TWO);
        assert_eq!(zsh, "words\nk3f9qa\tk3f9qa    -- 100% of the shop\nthe shop\tthe shop\n");
        let fish = told(&["fish", "homing", "show", ""], &TWO);
        assert_eq!(fish, "words\nk3f9qa\t100% of the shop\nthe shop\t\n");
    }

    #[test]
    fn paths_are_the_shells_own() {
        assert_eq!(told(&["bash", "9", "80", "homing export > a", "a"], &TWO), "files\n");
    }

    #[test]
    fn who_asks_otherwise_gets_no_answer() {
        for wrong in [&[][..], &["tcsh"], &["bash"], &["bash", "9", "80"], &["zsh"]] {
            assert!(Asked::read(wrong.iter().map(OsString::from).collect()).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn fish_leaves_quotes_in_the_last_word() {
        let words = |last: &str| without_quotes(vec!["homing".into(), last.into()]).pop().unwrap();
        assert_eq!(words("'the sh"), "the sh");
        assert_eq!(words(r"the\ sh"), "the sh");
        assert_eq!(words(""), "");
    }
}

//! Output for people and programs: data to standard output, words to standard error, colours only where somebody looks.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;
use unicode_width::UnicodeWidthChar;

use crate::exit::{CliError, without_os_error};
use crate::names::with_short_ids;
use crate::prompt_area::PromptArea;
use crate::wrap::{hang_of, wrap};

/// The width of a terminal that does not say.
const WIDTH_DEFAULT: usize = 100;

/// Where a command prints.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    /// True if programs read: one JSON document per line, the API's own objects.
    pub(crate) json: bool,
    /// True if standard output is a terminal.
    pub(crate) out_is_terminal: bool,
    /// True if standard error is a terminal.
    pub(crate) err_is_terminal: bool,
    colours: bool,
    /// The rows above which everything is printed, where somebody types below.
    above: Option<&'static PromptArea>,
}

/// The style of a text.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TextStyle {
    Dim,
    Bold,
    Good,
    Doubtful,
    Bad,
    Place,
}

impl TextStyle {
    fn code(self) -> &'static str {
        match self {
            Self::Dim => "2",
            Self::Bold => "1",
            Self::Good => "32",
            Self::Doubtful => "33",
            Self::Bad => "31",
            Self::Place => "36",
        }
    }
}

impl Screen {
    pub(crate) fn new(json: bool) -> Self {
        // https://no-color.org: set and not empty.
        let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let (out_is_terminal, err_is_terminal) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        Self { json, out_is_terminal, err_is_terminal, colours, above: None }
    }

    /// The same screen, but everything is printed above a prompt. The area is there until the process ends.
    pub(crate) fn with_area(self) -> (Self, &'static PromptArea) {
        let area: &'static PromptArea = Box::leak(Box::new(PromptArea::new(self.err_has_colours())));
        (Self { above: Some(area), ..self }, area)
    }

    /// True if somebody types below what is printed: nothing else may read the keyboard or take the whole screen.
    pub(crate) fn has_prompt(&self) -> bool {
        self.above.is_some()
    }

    /// One line of data.
    pub(crate) fn line(&self, text: impl AsRef<str>) -> io::Result<()> {
        match self.above {
            Some(area) => area.write_lines(text.as_ref()),
            None => writeln!(io::stdout().lock(), "{}", text.as_ref()),
        }
    }

    /// Data as it comes, without a line's end.
    pub(crate) fn piece(&self, text: &str) -> io::Result<()> {
        if let Some(area) = self.above {
            return area.write(text);
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }

    /// One object of the API, on one line.
    pub(crate) fn object(&self, object: &impl Serialize) -> io::Result<()> {
        self.line(serde_json::to_string(object)?)
    }

    /// Words for a person. Whether anybody reads them is not our concern.
    pub(crate) fn say(&self, text: impl AsRef<str>) {
        let text = if self.err_is_terminal {
            Cow::from(wrap(text.as_ref(), terminal_width(), 0))
        } else {
            Cow::from(text.as_ref())
        };
        if let Some(area) = self.above {
            let _ = area.write_lines(&text);
            return;
        }
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// Words as lines of data, where further rows begin below the words that stand beside a margin of this width.
    pub(crate) fn hanging(&self, margin: usize, text: &str) -> io::Result<()> {
        if !self.out_is_terminal {
            return self.line(text);
        }
        let columns = terminal_width();
        self.line(wrap(text, columns, hang_of(margin, columns)))
    }

    /// A question on a line that the answer goes on.
    pub(crate) fn ask(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        let _ = write!(stderr, "{text} ").and_then(|()| stderr.flush());
    }

    /// Words about what is going on, which are worth nothing later: only for somebody who looks on.
    pub(crate) fn progress(&self, text: impl AsRef<str>) {
        if self.err_is_terminal {
            self.say(self.err(TextStyle::Dim, text.as_ref()));
        }
    }

    /// A line that is replaced by whatever comes next.
    pub(crate) fn passing(&self, text: &str) {
        if let Some(area) = self.above {
            let _ = area.pass(Some(text));
            return;
        }
        if self.err_is_terminal && self.colours {
            let _ = write!(io::stderr().lock(), "\r\x1b[K{}", self.err(TextStyle::Dim, text));
        }
    }

    /// Takes the passing line away.
    pub(crate) fn clear_passing(&self) {
        if let Some(area) = self.above {
            let _ = area.pass(None);
            return;
        }
        if self.err_is_terminal && self.colours {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }

    /// A trouble, with its hint.
    pub(crate) fn cli_error(&self, error: &CliError) {
        if self.json {
            let _ = self.object(&error.json());
        }
        let shown = |words: &str| {
            let words = without_os_error(words);
            if self.err_is_terminal { with_short_ids(&words) } else { words }
        };
        self.say(format!("{} {}", self.err(TextStyle::Bad, "error:"), shown(&error.what)));
        if let Some(hint) = &error.hint {
            self.say(format!("{} {}", self.err(TextStyle::Good, "hint:"), shown(hint)));
        }
    }

    /// A text in its style, for standard output.
    pub(crate) fn out<'a>(&self, style: TextStyle, text: &'a str) -> Cow<'a, str> {
        self.styled(self.out_is_terminal, style, text)
    }

    /// A text in its style, for standard error.
    pub(crate) fn err<'a>(&self, style: TextStyle, text: &'a str) -> Cow<'a, str> {
        self.styled(self.err_is_terminal, style, text)
    }

    fn styled<'a>(&self, terminal: bool, style: TextStyle, text: &'a str) -> Cow<'a, str> {
        if terminal && self.colours && !text.is_empty() {
            format!("\x1b[{}m{text}\x1b[0m", style.code()).into()
        } else {
            text.into()
        }
    }

    /// True if standard output may have styles.
    pub(crate) fn out_has_colours(&self) -> bool {
        self.out_is_terminal && self.colours
    }

    /// True if log lines may have colours.
    pub(crate) fn err_has_colours(&self) -> bool {
        self.err_is_terminal && self.colours
    }

    /// Rows under a head, in columns. Where they do not fit the terminal, the last column has its words on several rows; if there is no
    /// room for that either, each row is a list of its own.
    pub(crate) fn table(&self, head: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
        let room = if self.out_is_terminal { terminal_width() } else { usize::MAX };
        if let Some((head, lines)) = lay_out(head, rows, room).split_first() {
            self.line(self.out(TextStyle::Dim, head))?;
            return lines.iter().try_for_each(|line| self.line(line));
        }
        rows.iter().enumerate().try_for_each(|(at, row)| {
            if at > 0 {
                self.line("")?;
            }
            let told = head.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
            self.pairs(&told.map(|(&head, cell)| (head, cell.clone())).collect::<Vec<_>>())
        })
    }

    /// Names and values, one below the other.
    pub(crate) fn pairs(&self, pairs: &[(&str, String)]) -> io::Result<()> {
        let margin = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        pairs.iter().try_for_each(|(name, value)| {
            let name = format!("{name:<margin$}");
            self.hanging(margin + 2, &format!("{}  {}", self.out(TextStyle::Dim, &name), tame(value)))
        })
    }
}

/// The least room in which the last column of a table has its words.
const LAST_COLUMN_MIN: usize = 20;

/// The lines of a table of at most this width, its head first; none if there is no room for it.
fn lay_out(head: &[&str], rows: &[Vec<String>], room: usize) -> Vec<String> {
    let natural = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell));
        cells.chain([head[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(natural).collect();
    let before: usize = widths.iter().rev().skip(1).map(|width| width + 2).sum();
    let last = widths.last().copied().unwrap_or(0);
    if room != usize::MAX && before + last.min(LAST_COLUMN_MIN) > room {
        return Vec::new();
    }
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| padded(&tame_name(cell), *width));
        let line = padded.collect::<Vec<_>>().join("  ");
        if room == usize::MAX { line.trim_end().to_owned() } else { wrap(line.trim_end(), room, before) }
    };
    let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    std::iter::once(line(&head)).chain(rows.iter().map(|row| line(row))).collect()
}

/// The number of characters that fit on a line of the terminal.
pub(crate) fn terminal_width() -> usize {
    let size =
        rustix::termios::tcgetwinsize(io::stdout()).or_else(|_| rustix::termios::tcgetwinsize(io::stderr()));
    size.ok().map(|size| usize::from(size.ws_col)).filter(|width| *width > 0).unwrap_or(WIDTH_DEFAULT)
}

/// The columns that a text takes on a line of a terminal. Where others write, a character may take two.
pub(crate) fn width(text: &str) -> usize {
    // What would command the terminal is shown as a blank.
    text.chars().map(|c| if c.is_control() { 1 } else { c.width().unwrap_or(0) }).sum()
}

/// A text with blanks behind it, up to this width.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// A text on one line that is not wider than this; what is missing is hinted at.
pub(crate) fn cut(text: &str, room: usize) -> String {
    let line = |c: char| if c.is_control() { ' ' } else { c };
    if width(text) <= room {
        return text.chars().map(line).collect();
    }
    let mut left = room.saturating_sub(1);
    let fits = |c: &char| {
        let takes = c.width().unwrap_or(0);
        let fits = takes <= left;
        left = left.saturating_sub(takes);
        fits
    };
    text.chars().map(line).take_while(fits).chain(['…']).collect()
}

/// A text of somebody else's for a terminal: its lines stay lines, and what would command the terminal becomes blank.
pub(crate) fn tame(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { ' ' } else { c }).collect()
}

/// The same on one line, for names.
pub(crate) fn tame_name(name: &str) -> String {
    cut(name, usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        assert_eq!(cut("one\ntwo", 10), "one two");
        assert_eq!(cut("äöüäöü", 4), "äöü…");
        assert_eq!(cut("日本語の", 8), "日本語の");
        assert_eq!(cut("日本語の", 6), "日本…", "a character that takes two columns is whole or not there");
        assert_eq!((width("日本"), width("e\u{301}"), padded("日", 4).as_str()), (4, 1, "日  "));
    }

    #[test]
    fn a_table_that_is_too_wide_has_its_last_words_on_several_rows() {
        let rows = [vec!["goose".to_owned(), "there is no `goose` on PATH; get it elsewhere".to_owned()]];
        let lines = lay_out(&["AGENT", "WHY"], &rows, 30);
        assert_eq!(lines, ["AGENT  WHY", "goose  there is no `goose` on\n       PATH; get it elsewhere"]);
        assert!(lay_out(&["AGENT", "WHY"], &rows, 20).is_empty(), "there is no room for it");
        assert!(lay_out(&["AGENT", "WHY"], &rows, usize::MAX)[1].ends_with("get it elsewhere"));
    }

    #[test]
    fn nobodys_words_command_the_terminal() {
        assert_eq!(tame("one\x1b]0;pwn\x07\n\ttwo\u{9b}3"), "one ]0;pwn \n\ttwo 3");
        assert_eq!(tame_name("n\x1b[31m\nx"), "n [31m x");
    }
}

//! Output for people and programs: data to standard output, words to standard error, colours only where somebody looks.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;
use unicode_width::UnicodeWidthChar;

use crate::exit::CliError;
use crate::prompt_area::PromptArea;

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
        if let Some(area) = self.above {
            let _ = area.write_lines(text.as_ref());
            return;
        }
        let _ = writeln!(io::stderr().lock(), "{}", text.as_ref());
    }

    /// Words for a person, on a terminal broken where words end: for what is read below a list.
    pub(crate) fn say_words(&self, text: &str) {
        match self.err_is_terminal {
            true => self.say(wrapped(text, terminal_width())),
            false => self.say(text),
        }
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
        self.say(format!("{} {}", self.err(TextStyle::Bad, "error:"), error.what));
        if let Some(hint) = &error.hint {
            self.say(format!("{} {hint}", self.err(TextStyle::Good, "hint:")));
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

    /// Rows under a head, in columns; cut to the width of the terminal, whole for a pipe.
    pub(crate) fn table(&self, head: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
        let widest = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell));
            cells.chain([head[column].len()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..head.len()).map(widest).collect();
        let room = if self.out_is_terminal { terminal_width() } else { usize::MAX };
        let line = |cells: &[String]| {
            let padded = cells.iter().zip(&widths).map(|(cell, width)| padded(cell, *width));
            cut(padded.collect::<Vec<_>>().join("  ").trim_end(), room)
        };
        let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
        self.line(self.out(TextStyle::Dim, &line(&head)))?;
        rows.iter().try_for_each(|row| self.line(line(row)))
    }

    /// Names and values, one below the other.
    pub(crate) fn pairs(&self, pairs: &[(&str, String)]) -> io::Result<()> {
        let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        pairs.iter().try_for_each(|(name, value)| {
            let name = format!("{name:<width$}");
            self.line(format!("{}  {}", self.out(TextStyle::Dim, &name), tame(value)))
        })
    }
}

/// The number of characters that fit on a line of the terminal.
pub(crate) fn terminal_width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    size.map(|size| usize::from(size.ws_col)).filter(|width| *width > 0).unwrap_or(WIDTH_DEFAULT)
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

/// Words on lines that are not wider than this, broken where words end; those after the first are set in.
pub(crate) fn wrapped(text: &str, room: usize) -> String {
    const INDENT: &str = "  ";
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split_whitespace() {
        let is_first = line.trim_start().is_empty();
        if !is_first && width(&line) + 1 + width(word) > room {
            lines.push(std::mem::replace(&mut line, INDENT.to_owned()));
        } else if !is_first {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines.join("\n")
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
    fn words_are_broken_between_words_and_set_in() {
        assert_eq!(wrapped("one two three", 80), "one two three");
        assert_eq!(wrapped("one two three", 8), "one two\n  three");
        assert_eq!(wrapped("/a/very/long/path and more", 8), "/a/very/long/path\n  and\n  more");
        assert_eq!(wrapped("", 8), "");
    }

    #[test]
    fn nobodys_words_command_the_terminal() {
        assert_eq!(tame("one\x1b]0;pwn\x07\n\ttwo\u{9b}3"), "one ]0;pwn \n\ttwo 3");
        assert_eq!(tame_name("n\x1b[31m\nx"), "n [31m x");
    }
}

//! The last rows of the terminal: the line of the stream that has not ended, and below it the prompt with what is being
//! typed. Whatever is written goes above the prompt, as soon as it comes.
//!
//! Everything that a chat shows goes through here, so that there is one who knows where the cursor is. A write takes the
//! rows away, prints what is complete, and draws the rows again, in one write to the terminal. `row` measures and breaks
//! lines.

mod row;

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) use row::{active_style, width};
use row::{split, typed_rows};

/// The size of a terminal that does not say: columns and rows.
const SIZE_DEFAULT: (usize, usize) = (80, 24);
/// The narrowest that is drawn for. Below that nothing can be read anyway.
const COLUMNS_MIN: usize = 8;
/// Rows that what is typed may take, even in a low terminal.
const TYPED_ROWS_MIN: usize = 2;

const STYLE_OFF: &str = "\x1b[0m";
const DIM: &str = "\x1b[2m";

/// The last rows of a terminal.
#[derive(Debug)]
pub(crate) struct PromptArea {
    rows: Mutex<AreaRows>,
    /// True if styles may be used.
    has_styles: bool,
}

/// The prompt, with what is being typed.
#[derive(Debug, Clone, Default)]
pub(crate) struct TypedLine {
    pub(crate) prompt: String,
    pub(crate) text: String,
    /// A byte of the text.
    pub(crate) cursor: usize,
}

#[derive(Debug, Default)]
struct AreaRows {
    /// The line of the stream that has not ended, as far as it is on its last row.
    open: String,
    /// Words that go as soon as there are others.
    passing: Option<String>,
    typed: Option<TypedLine>,
    /// The widths of the rows that are on the screen now.
    drawn: Vec<usize>,
    /// Where the cursor is among them: row and column.
    cursor: (usize, usize),
}

impl PromptArea {
    pub(crate) fn new(has_styles: bool) -> Self {
        Self { rows: Mutex::default(), has_styles }
    }

    /// Writes more of the stream. It may end in the middle of a line, and goes on there.
    pub(crate) fn write(&self, text: &str) -> io::Result<()> {
        self.change(|rows, out, size| {
            rows.passing = None;
            rows.append(text, size.0, out);
        })
    }

    /// Writes lines of their own.
    pub(crate) fn write_lines(&self, text: &str) -> io::Result<()> {
        self.change(|rows, out, size| {
            rows.passing = None;
            rows.end_line(size.0, out);
            rows.append(text, size.0, out);
            rows.end_line(size.0, out);
        })
    }

    /// Shows words until there are others.
    pub(crate) fn pass(&self, words: Option<&str>) -> io::Result<()> {
        self.change(|rows, _, _| rows.passing = words.map(str::to_owned))
    }

    /// Shows a prompt and what is typed; or none any more.
    pub(crate) fn show(&self, typed: Option<TypedLine>) -> io::Result<()> {
        self.change(|rows, _, _| rows.typed = typed)
    }

    /// Draws it anew: the terminal has another size, or was cleared.
    pub(crate) fn redraw(&self) -> io::Result<()> {
        self.change(|_, _, _| {})
    }

    /// An empty screen, with the prompt at its top.
    pub(crate) fn clear_screen(&self) -> io::Result<()> {
        self.change(|_, out, _| out.push_str("\x1b[H\x1b[2J"))
    }

    /// Takes the rows away, does it, and draws them again.
    fn change(&self, doing: impl FnOnce(&mut AreaRows, &mut String, (usize, usize))) -> io::Result<()> {
        let mut rows = self.rows();
        let (mut out, size) = (String::new(), terminal_size());
        rows.erase(size.0, &mut out);
        doing(&mut rows, &mut out, size);
        rows.draw(size, self.has_styles, &mut out);
        let mut stdout = io::stdout().lock();
        stdout.write_all(out.as_bytes())?;
        stdout.flush()
    }

    fn rows(&self) -> MutexGuard<'_, AreaRows> {
        // Whoever panicked with it has drawn half a row; the next drawing mends that.
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AreaRows {
    /// More of the stream: lines that end are printed, and of the last one the rows that are full.
    fn append(&mut self, text: &str, columns: usize, out: &mut String) {
        for piece in text.split_inclusive('\n') {
            self.open.push_str(piece.trim_end_matches('\n'));
            while width(&self.open) > columns {
                let (row, rest) = split(&self.open, columns);
                out.push_str(row);
                // The terminal breaks the line by itself, so that it stays one when somebody copies it.
                self.open = format!("{}{rest}", active_style(row));
            }
            if piece.ends_with('\n') {
                self.print_open(out);
            }
        }
    }

    fn end_line(&mut self, columns: usize, out: &mut String) {
        if !self.open.is_empty() {
            self.append("\n", columns, out);
        }
    }

    fn print_open(&mut self, out: &mut String) {
        let line = std::mem::take(&mut self.open);
        out.push_str(&line);
        if line.contains('\x1b') {
            out.push_str(STYLE_OFF);
        }
        out.push_str("\r\n");
    }

    /// Takes away what is drawn. In a terminal that has become narrower each row takes as many as it needs there.
    fn erase(&mut self, columns: usize, out: &mut String) {
        if self.drawn.is_empty() {
            return;
        }
        let above: usize = self.drawn[..self.cursor.0].iter().map(|row| row.div_ceil(columns).max(1)).sum();
        let within = self.cursor.1.min(self.drawn[self.cursor.0]).saturating_sub(1) / columns;
        out.push('\r');
        if above + within > 0 {
            out.push_str(&format!("\x1b[{}A", above + within));
        }
        out.push_str("\x1b[J");
        self.drawn.clear();
    }

    fn draw(&mut self, (columns, height): (usize, usize), has_styles: bool, out: &mut String) {
        let mut rows: Vec<String> = Vec::new();
        if !self.open.is_empty() {
            let off = if self.open.contains('\x1b') { STYLE_OFF } else { "" };
            rows.push(format!("{}{off}", self.open));
        }
        if let Some(passing) = &self.passing {
            let words = crate::screen::cut(passing, columns - 1);
            rows.push(if has_styles { format!("{DIM}{words}{STYLE_OFF}") } else { words });
        }
        self.cursor = match rows.last() {
            Some(last) => (rows.len() - 1, width(last)),
            None => (0, 0),
        };
        if let Some(typed) = &self.typed {
            let room = (height / 2).max(TYPED_ROWS_MIN);
            // The last column stays free: a cursor behind it is at a place that terminals do not agree about.
            let (lines, cursor) = typed_rows(typed, columns - 1, room);
            self.cursor = (rows.len() + cursor.0, cursor.1);
            rows.extend(lines);
        }
        self.drawn = rows.iter().map(|row| width(row)).collect();
        if rows.is_empty() {
            return;
        }
        out.push_str(&rows.join("\r\n"));
        let below = rows.len() - 1 - self.cursor.0;
        if self.typed.is_some() {
            out.push('\r');
            if below > 0 {
                out.push_str(&format!("\x1b[{below}A"));
            }
            if self.cursor.1 > 0 {
                out.push_str(&format!("\x1b[{}C", self.cursor.1));
            }
        }
    }
}

/// Columns and rows of the terminal.
fn terminal_size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    let size = size.map(|size| (usize::from(size.ws_col), usize::from(size.ws_row)));
    let (columns, rows) = size.filter(|(columns, rows)| *columns > 0 && *rows > 0).unwrap_or(SIZE_DEFAULT);
    (columns.max(COLUMNS_MIN), rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_has_not_ended_is_drawn_again_and_printed_once() {
        let (mut rows, mut out) = (AreaRows::default(), String::new());
        rows.append("one", 10, &mut out);
        rows.append(" two\nthree", 10, &mut out);
        assert_eq!((out.as_str(), rows.open.as_str()), ("one two\r\n", "three"));
        rows.draw((10, 20), true, &mut out);
        assert_eq!(rows.cursor, (0, 5));
        out.clear();
        rows.erase(10, &mut out);
        assert_eq!(out, "\r\x1b[J");
    }

    #[test]
    fn a_long_line_is_left_to_the_terminal_row_by_row() {
        let (mut rows, mut out) = (AreaRows::default(), String::new());
        rows.append("\x1b[1mabcdefghij", 4, &mut out);
        assert_eq!((out.as_str(), rows.open.as_str()), ("\x1b[1mabcd\x1b[1mefgh", "\x1b[1mij"));
    }

    #[test]
    fn rows_that_a_narrower_terminal_breaks_are_all_taken_away() {
        let (mut rows, mut out) = (AreaRows::default(), String::new());
        rows.typed = Some(TypedLine { prompt: "> ".into(), text: "0123456789".into(), cursor: 10 });
        rows.append("words", 40, &mut out);
        rows.draw((40, 20), false, &mut out);
        out.clear();
        rows.erase(6, &mut out);
        assert_eq!(out, "\r\x1b[2A\x1b[J", "the words, and the first of two rows of what is typed");
    }
}

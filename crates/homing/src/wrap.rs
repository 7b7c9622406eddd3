//! Words on rows: where a line of ours breaks, so that no word is cut in two. Pure.
//!
//! The words of an agent are not broken here: the terminal does that, so that it stays one line when somebody copies it.

use crate::prompt_area::{active_style, width};

/// The narrowest that the words beside a margin may be. Where there is less, they go below it.
const BESIDE_MIN: usize = 24;
/// The margin of words that go below.
const BELOW: usize = 4;
/// The narrowest row; in a terminal that is narrower nothing can be read anyway.
const ROW_MIN: usize = 5;

/// Breaks each line of a text at its spaces, so that its rows take at most so many columns. Rows after the first begin with `hang`
/// blanks, or as the line does. Code between backticks stays on one row if it fits on one; what is wider than a row is left to the
/// terminal.
pub(crate) fn wrap(text: &str, columns: usize, hang: usize) -> String {
    text.split('\n').map(|line| wrap_line(line, columns, hang)).collect::<Vec<_>>().join("\n")
}

/// The blanks before rows that go on beside a margin of this width: as many, unless that leaves too little room.
pub(crate) fn hang_of(margin: usize, columns: usize) -> usize {
    if columns >= margin + BESIDE_MIN { margin } else { BELOW.min(columns / 4) }
}

fn wrap_line(line: &str, columns: usize, hang: usize) -> String {
    if width(line) <= columns {
        return line.to_owned();
    }
    let indent = line.len() - line.trim_start_matches(' ').len();
    let margin = " ".repeat(hang.max(indent).min(columns.saturating_sub(ROW_MIN)));
    let (mut done, mut row) = (String::new(), line[..indent].to_owned());
    let (mut gap, mut is_empty) = (0, true);
    for word in words(&line[indent..], columns.saturating_sub(margin.len())) {
        if word.is_empty() {
            gap += 1;
            continue;
        }
        if !is_empty && width(&row) + gap + width(word) > columns {
            let style = active_style(&row);
            let off = if style.is_empty() { "" } else { "\x1b[0m" };
            done.push_str(&format!("{row}{off}\n"));
            row = format!("{margin}{style}");
        } else {
            row.push_str(&" ".repeat(gap));
        }
        row.push_str(word);
        (gap, is_empty) = (1, false);
    }
    done + &row
}

/// The words of a line; an empty one stands for one more blank. Code that fits on a row is one word.
fn words(line: &str, columns: usize) -> Vec<&str> {
    let (mut words, mut begin) = (Vec::new(), 0);
    let mut code_until = 0;
    for (at, c) in line.char_indices() {
        match c {
            '`' if at >= code_until => {
                let end = line[at + 1..].find('`').map_or(at, |length| at + 1 + length);
                if width(&line[at..=end]) <= columns {
                    code_until = end + 1;
                }
            }
            ' ' if at >= code_until => {
                words.push(&line[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    words.push(&line[begin..]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_not_cut_and_commands_stay_on_one_row() {
        let text = "hint: `homing ls --all` lists those there are, ended ones too";
        assert_eq!(wrap(text, 30, 0), "hint: `homing ls --all` lists\nthose there are, ended ones\ntoo");
        assert_eq!(wrap(text, 20, 0), "hint:\n`homing ls --all`\nlists those there\nare, ended ones too");
        assert_eq!(wrap("short", 20, 4), "short");
    }

    #[test]
    fn rows_that_go_on_hang_and_gaps_stay() {
        assert_eq!(wrap("ready  yes or no", 12, 7), "ready  yes\n       or no");
        assert_eq!(wrap("  1  one two three", 10, 0), "  1  one\n  two\n  three");
        assert_eq!((hang_of(18, 80), hang_of(18, 40)), (18, 4));
    }

    #[test]
    fn what_is_wider_than_a_row_is_left_to_the_terminal() {
        assert_eq!(
            wrap("at http://127.0.0.1:4747/in/abc now", 12, 0),
            "at\nhttp://127.0.0.1:4747/in/abc\nnow"
        );
    }

    #[test]
    fn a_style_goes_on_in_the_next_row() {
        assert_eq!(wrap("\x1b[2mone two\x1b[0m", 4, 0), "\x1b[2mone\x1b[0m\n\x1b[2mtwo\x1b[0m");
    }
}

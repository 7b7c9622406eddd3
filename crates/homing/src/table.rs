//! Rows in columns that fit a terminal: what can be shortened is, and what matters least is left out. A pipe gets all of it.

use std::io;

use crate::screen::{Screen, TextStyle, cut, padded, terminal_width, width};

/// The gap between two columns.
const GAP: usize = 2;

/// One column of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    head: &'static str,
    shrinks: Shrinks,
    /// The order in which columns are left out where there is no room; 0 stays.
    goes: u8,
}

/// The end at which a column gets narrower.
#[derive(Debug, Clone, Copy)]
enum Shrinks {
    Never,
    /// Its beginning goes, down to this width.
    Left(usize),
    /// Its end goes, down to this width.
    Right(usize),
}

impl Column {
    /// A column that is as wide as its widest cell, and stays.
    pub(crate) const fn new(head: &'static str) -> Self {
        Self { head, shrinks: Shrinks::Never, goes: 0 }
    }

    /// One that is shortened at its beginning, as directories are: `…/shop/api`.
    pub(crate) const fn left(self, width_min: usize) -> Self {
        Self { shrinks: Shrinks::Left(width_min), ..self }
    }

    /// One that is cut at its end.
    pub(crate) const fn right(self, width_min: usize) -> Self {
        Self { shrinks: Shrinks::Right(width_min), ..self }
    }

    /// One that is left out where there is no room; the lowest number goes first.
    pub(crate) const fn goes(self, order: u8) -> Self {
        Self { goes: order, ..self }
    }

    fn width_min(&self, natural: usize) -> usize {
        match self.shrinks {
            Shrinks::Never => natural,
            Shrinks::Left(min) | Shrinks::Right(min) => natural.min(min.max(self.head.len())),
        }
    }

    fn fit(&self, cell: &str, width: usize) -> String {
        match self.shrinks {
            Shrinks::Left(_) => cut_left(cell, width),
            Shrinks::Right(_) | Shrinks::Never => cut(cell, width),
        }
    }
}

/// Prints rows under their heads.
pub(crate) fn print(screen: Screen, columns: &[Column], rows: &[Vec<String>]) -> io::Result<()> {
    let room = if screen.out_is_terminal { terminal_width() } else { usize::MAX };
    let mut lines = lay_out(columns, rows, room).into_iter();
    if let Some(head) = lines.next() {
        screen.line(screen.out(TextStyle::Dim, &head))?;
    }
    lines.try_for_each(|line| screen.line(line))
}

/// The head and the rows as lines of at most this width.
fn lay_out(columns: &[Column], rows: &[Vec<String>], room: usize) -> Vec<String> {
    let natural: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| {
            let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| width(cell));
            cells.chain([column.head.len()]).max().unwrap_or(0)
        })
        .collect();
    // A column that has nothing to say is none.
    let is_told = |at: &usize| {
        columns[*at].goes == 0 || rows.iter().any(|row| row.get(*at).is_some_and(|cell| !cell.is_empty()))
    };
    let mut shown: Vec<usize> = (0..columns.len()).filter(is_told).collect();
    let total = |widths: &dyn Fn(usize) -> usize, shown: &[usize]| {
        shown.iter().map(|at| widths(*at)).sum::<usize>() + GAP * shown.len().saturating_sub(1)
    };
    let least = |at: usize| columns[at].width_min(natural[at]);
    while total(&least, &shown) > room {
        let next =
            shown.iter().copied().filter(|at| columns[*at].goes > 0).min_by_key(|at| columns[*at].goes);
        let Some(next) = next else { break };
        shown.retain(|at| *at != next);
    }
    let mut widths = natural.clone();
    let mut over = total(&|at| natural[at], &shown).saturating_sub(room);
    while over > 0 {
        // The widest gives first, so that no column is cut while another one sprawls.
        let give = shown.iter().copied().filter(|at| widths[*at] > least(*at)).max_by_key(|at| widths[*at]);
        let Some(give) = give else { break };
        widths[give] -= 1;
        over -= 1;
    }
    let line = |cells: &[String]| {
        let padded = shown.iter().map(|at| {
            let (cell, width) = (cells.get(*at).map_or("", String::as_str), widths[*at]);
            padded(&columns[*at].fit(cell, width), width)
        });
        cut(padded.collect::<Vec<_>>().join("  ").trim_end(), room)
    };
    let head: Vec<String> = columns.iter().map(|column| column.head.to_owned()).collect();
    std::iter::once(line(&head)).chain(rows.iter().map(|row| line(row))).collect()
}

/// A path without its beginning, at the mark of a directory where there is one.
fn cut_left(text: &str, room: usize) -> String {
    if width(text) <= room {
        return cut(text, room);
    }
    let ends = text.char_indices().map(|(at, _)| &text[at..]);
    let kept = ends.into_iter().find(|end| width(end) < room).unwrap_or_default();
    let kept = match kept.find('/') {
        Some(at) if at + 1 < kept.len() => &kept[at..],
        _ => kept,
    };
    cut(&format!("…{kept}"), room)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<Column> {
        vec![
            Column::new("SESSION"),
            Column::new("LAST").goes(2),
            Column::new("DIRECTORY").left(12).goes(1),
            Column::new("TITLE").right(10),
        ]
    }

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        vec![
            row(["k3f9qa", "2 min ago", "/home/somebody/work/shop/api", "mend the login page of the shop"]),
            row(["00aa11", "now", "/srv", "tests"]),
            row([
                "日本11",
                "now",
                "/srv/日本語の名前の長いディレクトリ/店",
                "日本語のタイトルはとても長いので",
            ]),
        ]
    }

    #[test]
    fn a_list_fits_eighty_columns_and_forty() {
        for room in [80, 60, 40] {
            let lines = lay_out(&columns(), &rows(), room);
            assert!(lines.iter().all(|line| width(line) <= room), "{room}: {lines:#?}");
            assert!(lines[1].starts_with("k3f9qa") && lines[1].contains("mend the"), "{lines:#?}");
        }
        assert!(lay_out(&columns(), &rows(), 60)[1].contains("…/"), "directories lose their beginning");
        let narrow = lay_out(&columns(), &rows(), 40);
        assert!(!narrow[0].contains("DIRECTORY") && narrow[0].contains("TITLE"), "{narrow:#?}");
    }

    #[test]
    fn columns_stand_below_each_other_whatever_is_written_in_them() {
        let lines = lay_out(&columns(), &rows(), 80);
        let begins = |line: &str| line.find("now").map(|at| width(&line[..at]));
        assert_eq!(begins(&lines[2]), begins(&lines[3]), "{lines:#?}");
    }

    #[test]
    fn a_pipe_gets_all_of_it() {
        let lines = lay_out(&columns(), &rows(), usize::MAX);
        assert!(lines[1].contains("/home/somebody/work/shop/api") && lines[1].ends_with("of the shop"));
    }

    #[test]
    fn a_directory_is_cut_at_its_beginning() {
        assert_eq!(cut_left("/home/somebody/shop/api", 12), "…/shop/api");
        assert_eq!(cut_left("/srv", 12), "/srv");
        assert_eq!(cut_left("/srv/日本語の名前/店", 6), "…/店");
        assert_eq!(cut_left("/a-very-long-name-of-a-directory", 10), "…directory");
    }
}

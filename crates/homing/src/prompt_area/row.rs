//! Rows of a terminal: how wide a text is, and where it breaks. Pure. Styles take no room; they are the only sequences in
//! here, because whatever others say was tamed before.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::TypedLine;

/// Columns that a tab takes in what is typed.
const TAB: &str = "    ";

/// A part of a text that cannot be broken: a character as people see it, or a style.
enum RowPiece<'a> {
    Style(&'a str),
    Cluster(&'a str),
}

impl RowPiece<'_> {
    fn width(&self) -> usize {
        match self {
            Self::Style(_) => 0,
            Self::Cluster("\t") => TAB.len(),
            Self::Cluster(cluster) => cluster.width(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Style(text) | Self::Cluster(text) => text.len(),
        }
    }
}

fn pieces(text: &str) -> impl Iterator<Item = RowPiece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.starts_with("\x1b[")
            && let Some(end) = rest.find('m')
        {
            let (style, after) = rest.split_at(end + 1);
            rest = after;
            return Some(RowPiece::Style(style));
        }
        let cluster = rest.graphemes(true).next()?;
        rest = &rest[cluster.len()..];
        Some(RowPiece::Cluster(cluster))
    })
}

/// The columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    pieces(text).map(|piece| piece.width()).sum()
}

/// The part of a text that fits into so many columns, and the rest.
pub(super) fn split(text: &str, columns: usize) -> (&str, &str) {
    let (mut at, mut used) = (0, 0);
    for piece in pieces(text) {
        used += piece.width();
        if used > columns && at > 0 {
            break;
        }
        at += piece.len();
    }
    text.split_at(at)
}

/// The styles that are still on at the end of a text.
pub(crate) fn active_style(text: &str) -> String {
    pieces(text).fold(String::new(), |mut on, piece| {
        match piece {
            RowPiece::Style("\x1b[0m" | "\x1b[m") => on.clear(),
            RowPiece::Style(style) => on.push_str(style),
            RowPiece::Cluster(_) => {}
        }
        on
    })
}

/// The prompt and the text in rows of so many columns, and the row and column of the cursor. If they are more than the
/// room has, those around the cursor.
pub(super) fn typed_rows(typed: &TypedLine, columns: usize, room: usize) -> (Vec<String>, (usize, usize)) {
    let indent = width(&typed.prompt).min(columns / 2);
    let (mut rows, mut row, mut used) = (Vec::new(), typed.prompt.clone(), width(&typed.prompt));
    let (mut at, mut cursor) = (0, None);
    for cluster in typed.text.graphemes(true) {
        let piece = RowPiece::Cluster(cluster);
        if used + piece.width() > columns && !cluster.starts_with('\n') {
            rows.push(std::mem::replace(&mut row, " ".repeat(indent)));
            used = indent;
        }
        if at == typed.cursor {
            cursor = Some((rows.len(), used));
        }
        at += cluster.len();
        match cluster {
            "\n" | "\r\n" => {
                rows.push(std::mem::replace(&mut row, " ".repeat(indent)));
                used = indent;
            }
            "\t" => {
                row.push_str(TAB);
                used += TAB.len();
            }
            cluster => {
                row.push_str(cluster);
                used += cluster.width();
            }
        }
    }
    let (line, column) = cursor.unwrap_or((rows.len(), used));
    rows.push(row);
    let first = (line + 1).saturating_sub(room).min(rows.len().saturating_sub(room));
    let shown = rows.into_iter().skip(first).take(room).collect();
    (shown, (line - first, column))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_take_no_room_and_wide_characters_two_columns() {
        assert_eq!(width("\x1b[1mäé\x1b[0m語"), 4);
        assert_eq!(split("a\x1b[1m語語", 4), ("a\x1b[1m語", "語"));
        assert_eq!(active_style("\x1b[1ma\x1b[0mb\x1b[36mc"), "\x1b[36m");
    }

    #[test]
    fn what_is_typed_breaks_below_its_prompt() {
        let typed = |text: &str, cursor| TypedLine { prompt: "> ".into(), text: text.into(), cursor };
        let (rows, cursor) = typed_rows(&typed("abcdef", 6), 5, 9);
        assert_eq!((rows, cursor), (vec!["> abc".to_owned(), "  def".to_owned()], (1, 5)));
        let (rows, cursor) = typed_rows(&typed("a\nb", 1), 5, 9);
        assert_eq!((rows, cursor), (vec!["> a".to_owned(), "  b".to_owned()], (0, 3)));
    }

    #[test]
    fn of_a_long_text_the_rows_around_the_cursor_are_seen() {
        let text = "1\n2\n3\n4\n5";
        let typed = |cursor| TypedLine { prompt: "> ".into(), text: text.into(), cursor };
        assert_eq!(typed_rows(&typed(text.len()), 9, 2), (vec!["  4".into(), "  5".into()], (1, 3)));
        assert_eq!(typed_rows(&typed(0), 9, 2), (vec!["> 1".into(), "  2".into()], (0, 2)));
    }
}

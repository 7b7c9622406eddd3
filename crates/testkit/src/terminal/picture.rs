//! The screen of a terminal: as much of one as our commands use. What it does not know it counts, so that a test can say
//! that nothing strange was sent. Every character is one column wide.

/// Rows of cells, the newest last; those that have scrolled away stay.
#[derive(Debug)]
pub(super) struct Picture {
    columns: usize,
    height: usize,
    rows: Vec<Row>,
    /// The row at the top of the screen.
    top: usize,
    /// The cursor; its column is that of the whole width if the next character begins a row.
    row: usize,
    column: usize,
    /// Bytes that are not a whole character or sequence yet.
    waiting: Vec<u8>,
    raw: Vec<u8>,
}

#[derive(Debug, Default, Clone)]
struct Row {
    cells: Vec<char>,
    /// The terminal broke the line: it goes on in the next row.
    goes_on: bool,
}

impl Picture {
    pub(super) fn new(columns: usize, height: usize) -> Self {
        let (rows, waiting, raw) = (vec![Row::default()], Vec::new(), Vec::new());
        Self { columns, height, rows, top: 0, row: 0, column: 0, waiting, raw }
    }

    pub(super) fn draw(&mut self, bytes: &[u8]) {
        self.raw.extend_from_slice(bytes);
        self.waiting.extend_from_slice(bytes);
        let waiting = std::mem::take(&mut self.waiting);
        let text = match std::str::from_utf8(&waiting) {
            Ok(text) => text.to_owned(),
            Err(cut) => String::from_utf8_lossy(&waiting[..cut.valid_up_to()]).into_owned(),
        };
        let mut rest = text.as_str();
        while let Some(c) = rest.chars().next() {
            let Some(used) = self.step(c, rest) else { break };
            rest = &rest[used..];
        }
        let used = text.len() - rest.len();
        self.waiting = waiting[used..].to_vec();
    }

    /// The bytes that were used; none if more has to come.
    fn step(&mut self, c: char, rest: &str) -> Option<usize> {
        match c {
            '\x1b' => return self.sequence(rest),
            '\r' => self.column = 0,
            '\n' => self.down(),
            '\x07' => {}
            '\x08' => self.column = self.column.saturating_sub(1),
            c => self.put(c),
        }
        Some(c.len_utf8())
    }

    fn sequence(&mut self, rest: &str) -> Option<usize> {
        match rest.as_bytes().get(1)? {
            b'[' => {
                let end = rest.bytes().skip(2).position(|byte| (0x40..=0x7e).contains(&byte))? + 2;
                self.command(&rest[2..end], rest.as_bytes()[end]);
                Some(end + 1)
            }
            b']' => Some(rest.find('\x07')? + 1),
            // The choice of a set of characters.
            b'(' | b')' => (rest.len() > 2).then_some(3),
            _ => Some(2),
        }
    }

    fn command(&mut self, numbers: &str, last: u8) {
        let number = numbers.parse::<usize>().unwrap_or(0);
        match last {
            b'A' => self.row = self.row.saturating_sub(number.max(1)).max(self.top),
            b'B' => self.row = (self.row + number.max(1)).min(self.top + self.height - 1),
            b'C' => self.column = (self.column + number.max(1)).min(self.columns - 1),
            b'D' => self.column = self.column.saturating_sub(number.max(1)),
            b'H' => (self.row, self.column) = (self.top, 0),
            b'J' if number == 0 => {
                self.cut();
                self.rows.truncate(self.row + 1);
            }
            b'J' => {
                self.rows.truncate(self.top);
                self.grow();
            }
            b'K' => self.cut(),
            _ => {}
        }
        self.grow();
    }

    fn cut(&mut self) {
        self.grow();
        self.rows[self.row].cells.truncate(self.column);
        self.rows[self.row].goes_on = false;
    }

    fn grow(&mut self) {
        if self.rows.len() <= self.row {
            self.rows.resize(self.row + 1, Row::default());
        }
    }

    fn down(&mut self) {
        self.row += 1;
        self.grow();
        self.top = self.top.max((self.row + 1).saturating_sub(self.height));
    }

    fn put(&mut self, c: char) {
        if self.column >= self.columns {
            self.rows[self.row].goes_on = true;
            self.down();
            self.column = 0;
        }
        let cells = &mut self.rows[self.row].cells;
        if cells.len() <= self.column {
            cells.resize(self.column + 1, ' ');
        }
        cells[self.column] = c;
        self.column += 1;
    }

    /// Breaks every line anew, as most terminals do.
    pub(super) fn resize(&mut self, columns: usize, height: usize) {
        let (mut rows, mut cursor) = (Vec::new(), (0, 0));
        let mut line: Vec<char> = Vec::new();
        let mut place = None;
        for (at, row) in std::mem::take(&mut self.rows).into_iter().enumerate() {
            if at == self.row {
                place = Some(line.len() + self.column.min(self.columns));
            }
            line.extend(row.cells);
            if row.goes_on {
                continue;
            }
            let line = std::mem::take(&mut line);
            if let Some(place) = place.take() {
                cursor = (
                    rows.len() + place.saturating_sub(1) / columns,
                    place - place.saturating_sub(1) / columns * columns,
                );
            }
            let pieces = line.chunks(columns).map(<[char]>::to_vec).collect::<Vec<_>>();
            let count = pieces.len();
            let row = |(at, cells)| Row { cells, goes_on: at + 1 < count };
            match count {
                0 => rows.push(Row::default()),
                _ => rows.extend(pieces.into_iter().enumerate().map(row)),
            }
        }
        (self.rows, self.columns, self.height) = (rows, columns, height);
        (self.row, self.column) = cursor;
        self.grow();
        self.top = (self.row + 1).max(self.rows.len()).saturating_sub(height);
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let (mut lines, mut line) = (Vec::new(), String::new());
        for row in &self.rows {
            line.extend(&row.cells);
            if !row.goes_on {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
            }
        }
        lines
    }

    /// Every row as it is on the screen, or was before it scrolled away; a line that the terminal broke is several.
    pub(super) fn all_rows(&self) -> Vec<String> {
        self.rows.iter().map(|row| row.cells.iter().collect::<String>().trim_end().to_owned()).collect()
    }

    pub(super) fn rows(&self) -> Vec<String> {
        let seen = self.rows.iter().skip(self.top);
        let mut rows: Vec<String> =
            seen.map(|row| row.cells.iter().collect::<String>().trim_end().to_owned()).collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    pub(super) fn cursor(&self) -> (usize, usize) {
        (self.row - self.top, self.column)
    }

    pub(super) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.raw).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_breaks_scrolls_and_is_one_again() {
        let mut picture = Picture::new(4, 2);
        picture.draw(b"abcdef\r\nx\r\n\x1b[1Ay\x1b[0m");
        assert_eq!(picture.lines(), ["abcdef", "y", ""]);
        assert_eq!(picture.rows(), ["y"]);
        picture.resize(8, 2);
        assert_eq!(picture.lines(), ["abcdef", "y", ""]);
        picture.draw(b"\r\x1b[J\xc3");
        picture.draw(b"\xa4");
        assert_eq!(picture.lines(), ["abcdef", "\u{e4}"]);
    }
}

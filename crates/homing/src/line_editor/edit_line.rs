//! The line that is being typed, and what each key does to it. Pure: it knows no terminal.

use unicode_segmentation::UnicodeSegmentation;

use super::history::History;
use super::keys::Key;

/// The consequence of a key, for whoever reads the line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Edited {
    /// It may look otherwise.
    Shown,
    /// It is said. The line is empty again.
    Said(String),
    /// Tab, and several words fit: these.
    Several(Vec<String>),
    Interrupt,
    Leave,
    Unfold,
    Redraw,
    Suspend,
}

/// A line with a cursor.
#[derive(Debug, Default)]
pub(super) struct EditLine {
    text: String,
    /// A byte of the text, between two characters.
    cursor: usize,
    /// The text that was cut last.
    cut: String,
    history: History,
    /// Where in the history we are, and what was being typed before.
    place: Option<(usize, String)>,
    search: Option<HistorySearch>,
    /// The lines that Tab completes to.
    completions: Vec<String>,
}

/// A search backwards through the history.
#[derive(Debug, Default)]
struct HistorySearch {
    wanted: String,
    /// The entry that was found.
    found: Option<usize>,
}

impl EditLine {
    pub(super) fn new(history: History) -> Self {
        Self { history, ..Self::default() }
    }

    pub(super) fn complete_with(&mut self, completions: Vec<String>) {
        self.completions = completions;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.search.is_none()
    }

    /// The text as it is to be seen, with its cursor, and what is searched for, if something is.
    pub(super) fn look(&self) -> (&str, usize, Option<&str>) {
        match &self.search {
            None => (&self.text, self.cursor, None),
            Some(search) => {
                let found = search.found.map_or("", |at| self.history.entries[at].as_str());
                (found, found.len(), Some(&search.wanted))
            }
        }
    }

    /// Does what the key is for.
    pub(super) fn press(&mut self, key: Key) -> Edited {
        if self.search.is_some() {
            return self.press_in_search(key);
        }
        match key {
            Key::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            Key::Paste(text) => self.insert(&text),
            Key::NewLine => self.insert("\n"),
            Key::Enter if self.text.ends_with('\\') && self.cursor == self.text.len() => {
                self.text.pop();
                self.cursor -= 1;
                self.insert("\n");
            }
            Key::Enter => return self.say(),
            Key::Backspace => self.remove(self.before(), self.cursor),
            Key::Delete => self.remove(self.cursor, self.after()),
            Key::Left => self.cursor = self.before(),
            Key::Right => self.cursor = self.after(),
            Key::WordLeft => self.cursor = self.word_before(),
            Key::WordRight => self.cursor = self.word_after(),
            Key::Up => self.up(),
            Key::Down => self.down(),
            Key::LineStart => self.cursor = self.line_start(),
            Key::LineEnd => self.cursor = self.line_end(),
            Key::CutWord => self.cut(self.word_before(), self.cursor),
            Key::CutToStart => self.cut(self.line_start(), self.cursor),
            Key::CutToEnd => self.cut(self.cursor, self.line_end()),
            Key::PutBack => self.insert(&self.cut.clone()),
            Key::Complete => return self.complete(),
            Key::Search => self.search = Some(HistorySearch::default()),
            Key::Unfold => return Edited::Unfold,
            Key::Redraw => return Edited::Redraw,
            Key::Suspend => return Edited::Suspend,
            Key::Interrupt if self.text.is_empty() => return Edited::Interrupt,
            Key::Interrupt => {
                self.cursor = self.text.len();
                self.cut(0, self.text.len());
                self.place = None;
            }
            Key::End if self.text.is_empty() => return Edited::Leave,
            Key::End => self.remove(self.cursor, self.after()),
            Key::Escape => {}
        }
        Edited::Shown
    }

    fn say(&mut self) -> Edited {
        self.place = None;
        self.cursor = 0;
        let text = std::mem::take(&mut self.text);
        if text.trim().is_empty() {
            return Edited::Shown;
        }
        self.history.add(&text);
        Edited::Said(text)
    }

    fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    fn remove(&mut self, from: usize, to: usize) {
        self.text.drain(from..to);
        self.cursor = from;
    }

    fn cut(&mut self, from: usize, to: usize) {
        if from < to {
            self.cut = self.text[from..to].to_owned();
            self.remove(from, to);
        }
    }

    fn before(&self) -> usize {
        let last = self.text[..self.cursor].graphemes(true).next_back();
        self.cursor - last.map_or(0, str::len)
    }

    fn after(&self) -> usize {
        self.cursor + self.text[self.cursor..].graphemes(true).next().map_or(0, str::len)
    }

    fn word_before(&self) -> usize {
        let before = self.text[..self.cursor].trim_end();
        before.rfind(char::is_whitespace).map_or(0, |at| at + 1)
    }

    fn word_after(&self) -> usize {
        let rest = &self.text[self.cursor..];
        let word = rest.trim_start();
        let length = word.find(char::is_whitespace).unwrap_or(word.len());
        self.cursor + (rest.len() - word.len()) + length
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    /// The place in the line that begins at `start` as far from its start as the cursor is from its own.
    fn same_column(&self, start: usize) -> usize {
        let column = self.text[self.line_start()..self.cursor].graphemes(true).count();
        let line = self.text[start..].split('\n').next().unwrap_or_default();
        start + line.graphemes(true).take(column).map(str::len).sum::<usize>()
    }

    /// The line above, or the message that was said before.
    fn up(&mut self) {
        match self.line_start() {
            0 => self.older(),
            start => {
                let above = self.text[..start - 1].rfind('\n').map_or(0, |at| at + 1);
                self.cursor = self.same_column(above);
            }
        }
    }

    fn down(&mut self) {
        match self.line_end() {
            end if end == self.text.len() => self.newer(),
            end => self.cursor = self.same_column(end + 1),
        }
    }

    fn older(&mut self) {
        let at = self.place.as_ref().map_or(self.history.entries.len(), |(at, _)| *at);
        let Some(older) = at.checked_sub(1) else { return };
        let typed = self.place.take().map_or_else(|| self.text.clone(), |(_, typed)| typed);
        self.replace(self.history.entries[older].clone());
        self.place = Some((older, typed));
    }

    fn newer(&mut self) {
        let Some((at, typed)) = self.place.take() else { return };
        match self.history.entries.get(at + 1).cloned() {
            Some(newer) => {
                self.replace(newer);
                self.place = Some((at + 1, typed));
            }
            None => self.replace(typed),
        }
    }

    fn replace(&mut self, text: String) {
        self.cursor = text.len();
        self.text = text;
    }

    /// As much as all lines that fit have in common; if that is there already, they are shown.
    fn complete(&mut self) -> Edited {
        let typed = &self.text[..self.cursor];
        if typed.is_empty() || self.cursor != self.text.len() {
            return Edited::Shown;
        }
        let fit: Vec<String> =
            self.completions.iter().filter(|line| line.starts_with(typed)).cloned().collect();
        match fit.as_slice() {
            [] => Edited::Shown,
            [only] => {
                self.replace(format!("{only} "));
                Edited::Shown
            }
            [first, rest @ ..] => {
                let common = rest.iter().fold(first.as_str(), |common, line| in_common(common, line));
                if common.len() == typed.len() {
                    return Edited::Several(fit);
                }
                self.replace(common.to_owned());
                Edited::Shown
            }
        }
    }

    fn press_in_search(&mut self, key: Key) -> Edited {
        let Some(search) = &mut self.search else { return Edited::Shown };
        match key {
            Key::Char(c) => {
                search.wanted.push(c);
                self.seek(self.history.entries.len());
            }
            Key::Backspace => {
                search.wanted.pop();
                self.seek(self.history.entries.len());
            }
            Key::Search => {
                let before = search.found.unwrap_or(self.history.entries.len());
                self.seek(before);
            }
            Key::Interrupt | Key::Escape => self.search = None,
            key => {
                let found = search.found.map(|at| self.history.entries[at].clone());
                self.search = None;
                if let Some(found) = found {
                    self.replace(found);
                }
                return if key == Key::Enter { self.say() } else { Edited::Shown };
            }
        }
        Edited::Shown
    }

    /// The newest entry before that one with the wanted words; where there is none, what was found stays.
    fn seek(&mut self, before: usize) {
        let Some(search) = &mut self.search else { return };
        let has = |at: &usize| self.history.entries[*at].contains(&search.wanted);
        let found = (0..before).rev().find(has).filter(|_| !search.wanted.is_empty());
        search.found = found.or(search.found.filter(has));
    }
}

fn in_common<'a>(one: &'a str, other: &str) -> &'a str {
    let same = one.char_indices().zip(other.chars()).find(|((_, a), b)| a != b);
    let length = same.map_or(one.len().min(other.len()), |((at, _), _)| at);
    &one[..length]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types these, one after the other, and answers the line with `|` where the cursor is.
    #[track_caller]
    fn check(line: &mut EditLine, keys: &[Key], expected: &str) {
        for key in keys {
            line.press(key.clone());
        }
        let (text, cursor, _) = line.look();
        assert_eq!(format!("{}|{}", &text[..cursor], &text[cursor..]), expected);
    }

    fn typed(text: &str) -> Vec<Key> {
        text.chars().map(Key::Char).collect()
    }

    fn line(entries: &[&str]) -> EditLine {
        let mut history = History::default();
        entries.iter().for_each(|entry| history.add(entry));
        EditLine::new(history)
    }

    #[test]
    fn a_line_is_edited_by_whole_characters_and_words() {
        let mut line = line(&[]);
        check(&mut line, &typed("one twoé"), "one twoé|");
        check(&mut line, &[Key::Backspace, Key::WordLeft], "one |two");
        check(&mut line, &[Key::CutWord], "|two");
        check(&mut line, &[Key::LineEnd, Key::PutBack], "twoone |");
        check(
            &mut line,
            &[Key::CutToStart, Key::Char('👩'), Key::Char('\u{200d}'), Key::Char('👩')],
            "👩\u{200d}👩|",
        );
        check(&mut line, &[Key::Left, Key::Delete], "|");
    }

    #[test]
    fn arrows_go_through_lines_first_and_then_through_history() {
        let mut line = line(&["first", "second\nline"]);
        check(&mut line, &typed("draft"), "draft|");
        check(&mut line, &[Key::Up], "second\nline|");
        check(&mut line, &[Key::Up], "seco|nd\nline");
        check(&mut line, &[Key::Up], "first|");
        check(&mut line, &[Key::Up], "first|");
        check(&mut line, &[Key::Down, Key::Down], "draft|");
    }

    #[test]
    fn enter_says_it_and_a_backslash_goes_on() {
        let mut line = line(&[]);
        check(&mut line, &typed("one\\"), "one\\|");
        check(&mut line, &[Key::Enter, Key::Char('x')], "one\nx|");
        assert_eq!(line.press(Key::Enter), Edited::Said("one\nx".to_owned()));
        check(&mut line, &[Key::Up], "one\nx|");
        check(&mut line, &[Key::Interrupt], "|");
        assert_eq!(line.press(Key::Enter), Edited::Shown, "nothing is nothing");
        assert_eq!(line.press(Key::Interrupt), Edited::Interrupt);
        assert_eq!(line.press(Key::End), Edited::Leave);
    }

    #[test]
    fn tab_completes_what_all_have_in_common_and_then_shows_them() {
        let mut line = line(&[]);
        line.complete_with(["/stop", "/status", "/diff"].map(str::to_owned).to_vec());
        check(&mut line, &[Key::Char('/'), Key::Char('s'), Key::Complete], "/st|");
        assert_eq!(line.press(Key::Complete), Edited::Several(vec!["/stop".into(), "/status".into()]));
        check(&mut line, &[Key::Char('o'), Key::Complete], "/stop |");
    }

    #[test]
    fn what_was_said_before_is_found_by_a_part_of_it() {
        let mut line = line(&["mend the test", "look at it", "mend the docs"]);
        check(&mut line, &[Key::Search, Key::Char('e'), Key::Char('n')], "mend the docs|");
        check(&mut line, &[Key::Search], "mend the test|");
        check(&mut line, &[Key::LineEnd, Key::Backspace], "mend the tes|");
        check(&mut line, &[Key::Search, Key::Char('l'), Key::Escape], "mend the tes|");
    }
}

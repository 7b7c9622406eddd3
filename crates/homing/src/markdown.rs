//! Markdown as it streams in, for a terminal: headings, lists, quotes, bold words and code are shown as such.
//!
//! Words go out as they come; only what cannot be judged yet waits: the beginning of a line, and a mark until its other
//! half. What never gets its other half is shown as it was written, so nothing of an answer is lost. The text was tamed
//! before: the only sequences that come out are the styles from here.

/// The longest text between two marks. What is longer is no emphasis.
const MARKED_BYTES_MAX: usize = 400;
/// The longest beginning of a line that is waited for to judge it: spaces, a mark, a space.
const BEGINNING_BYTES_MAX: usize = 16;

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const CODE: &str = "\x1b[36m";
const OFF: &str = "\x1b[0m";

/// A text that is shown while it is written.
#[derive(Debug, Default)]
pub(crate) struct MarkdownStream {
    /// The text that has come and is not shown yet.
    waiting: String,
    place: LinePlace,
    /// The fence that ends the block of code we are in.
    fence: Option<String>,
}

/// Where in a line we are.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum LinePlace {
    /// Its kind is not known yet.
    #[default]
    Beginning,
    Words,
    /// A heading, or a line of code: one style up to its end.
    Styled,
}

/// The kind of a line, by how it begins.
enum LineKind {
    /// Not enough of it is there.
    Unknown,
    Words,
    Heading {
        marks: usize,
    },
    /// A list or a quote: these bytes are shown as that.
    Replaced {
        length: usize,
        by: String,
    },
    Fence,
}

impl MarkdownStream {
    /// The part that can be shown of this and of what waited.
    pub(crate) fn write(&mut self, text: &str) -> String {
        self.waiting.push_str(text);
        let mut out = String::new();
        while self.step(&mut out, false) {}
        out
    }

    /// The rest that still waits. The next text begins a line.
    pub(crate) fn end(&mut self) -> String {
        let mut out = String::new();
        while self.step(&mut out, true) {}
        if self.place == LinePlace::Styled {
            out.push_str(OFF);
        }
        self.place = LinePlace::Beginning;
        out
    }

    /// True if something was taken from what waits.
    fn step(&mut self, out: &mut String, is_end: bool) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        match (self.place, self.fence.is_some()) {
            (LinePlace::Beginning, true) => self.begin_code_line(out, is_end),
            (LinePlace::Beginning, false) => self.begin_line(out, is_end),
            (LinePlace::Styled, _) => self.styled(out),
            (LinePlace::Words, _) => self.words(out, is_end),
        }
    }

    /// Takes so many bytes.
    fn take(&mut self, length: usize) -> String {
        let rest = self.waiting.split_off(length);
        std::mem::replace(&mut self.waiting, rest)
    }

    fn begin_code_line(&mut self, out: &mut String, is_end: bool) -> bool {
        let Some(fence) = &self.fence else { return false };
        let line = self.waiting.split('\n').next().unwrap_or_default();
        let may_be_fence =
            line.trim().chars().all(|c| fence.starts_with(c)) && line.len() <= BEGINNING_BYTES_MAX;
        let is_whole = self.waiting.contains('\n') || is_end;
        if may_be_fence && !is_whole {
            return false;
        }
        let is_fence = may_be_fence && line.trim().len() >= fence.len();
        if is_fence {
            self.fence = None;
        }
        out.push_str(if is_fence { DIM } else { CODE });
        self.place = LinePlace::Styled;
        true
    }

    fn begin_line(&mut self, out: &mut String, is_end: bool) -> bool {
        match line_kind(&self.waiting, is_end) {
            LineKind::Unknown => return false,
            LineKind::Words => self.place = LinePlace::Words,
            LineKind::Heading { marks } => {
                self.take(marks);
                out.push_str(BOLD);
                self.place = LinePlace::Styled;
            }
            LineKind::Replaced { length, by } => {
                self.take(length);
                out.push_str(&by);
                self.place = LinePlace::Words;
            }
            LineKind::Fence => {
                let line = self.waiting.trim_start();
                let mark = line.chars().next().unwrap_or('`');
                self.fence = Some(line.chars().take_while(|c| *c == mark).collect());
                out.push_str(DIM);
                self.place = LinePlace::Styled;
            }
        }
        true
    }

    /// The rest of a line that has one style.
    fn styled(&mut self, out: &mut String) -> bool {
        match self.waiting.find('\n') {
            Some(end) => {
                let line = self.take(end + 1);
                out.push_str(&line[..end]);
                out.push_str(OFF);
                out.push('\n');
                self.place = LinePlace::Beginning;
            }
            None => out.push_str(&std::mem::take(&mut self.waiting)),
        }
        true
    }

    /// Words up to the next mark, or what is between two marks.
    fn words(&mut self, out: &mut String, is_end: bool) -> bool {
        let at = self.waiting.find(['\n', '`', '*']).unwrap_or(self.waiting.len());
        if at > 0 {
            let plain = self.take(at);
            out.push_str(&plain);
            return true;
        }
        if self.waiting.starts_with('\n') {
            self.take(1);
            out.push('\n');
            self.place = LinePlace::Beginning;
            return true;
        }
        let c = self.waiting.chars().next().unwrap_or_default();
        let mark: String = self.waiting.chars().take_while(|next| *next == c).collect();
        match marked(&self.waiting, &mark, is_end) {
            Marked::Unknown => return false,
            Marked::Not => {
                let plain = self.take(mark.len());
                out.push_str(&plain);
            }
            Marked::Whole(inside) => {
                let whole = self.take(2 * mark.len() + inside);
                let inside = &whole[mark.len()..mark.len() + inside];
                out.push_str(if c == '`' { CODE } else { BOLD });
                out.push_str(inside);
                out.push_str(OFF);
            }
        }
        true
    }
}

/// Text between two marks.
enum Marked {
    /// Its end may still come.
    Unknown,
    /// It is none.
    Not,
    /// So many bytes are inside.
    Whole(usize),
}

fn marked(text: &str, mark: &str, is_end: bool) -> Marked {
    let is_code = mark.starts_with('`');
    let inside = &text[mark.len()..];
    // More of the mark may come.
    if inside.is_empty() && !is_end {
        return Marked::Unknown;
    }
    let begins = inside.chars().next().is_some_and(|c| is_code || !c.is_whitespace());
    if (!is_code && mark != "**") || !begins {
        return Marked::Not;
    }
    let line = inside.split('\n').next().unwrap_or_default();
    let closes = |at: &usize| {
        let before = line[..*at].chars().next_back();
        let after = line[at + mark.len()..].chars().next();
        let touches = |c: Option<char>| c.is_some_and(|c| mark.starts_with(c));
        !touches(before) && !touches(after) && (is_code || before.is_some_and(|c| !c.is_whitespace()))
    };
    let end = line.match_indices(mark).map(|(at, _)| at).find(|at| *at > 0 && closes(at));
    match end {
        // Whether the mark is longer is known only when something follows it.
        Some(at) if line.len() == at + mark.len() && line.len() == inside.len() && !is_end && is_code => {
            Marked::Unknown
        }
        Some(at) => Marked::Whole(at),
        None if is_end || line.len() < inside.len() || line.len() > MARKED_BYTES_MAX => Marked::Not,
        None => Marked::Unknown,
    }
}

fn line_kind(text: &str, is_end: bool) -> LineKind {
    let line = text.split('\n').next().unwrap_or_default();
    let is_whole = is_end || line.len() < text.len();
    let indent = line.len() - line.trim_start_matches(' ').len();
    let rest = &line[indent..];
    let first = rest.chars().next();
    let run = |c: char| rest.chars().take_while(|next| *next == c).count();
    let is_open = !is_whole && line.len() < BEGINNING_BYTES_MAX;
    match first {
        None if is_open => LineKind::Unknown,
        Some('`' | '~') if run('`').max(run('~')) >= 3 => LineKind::Fence,
        Some(c @ ('`' | '~')) if is_open && run(c) == rest.len() => LineKind::Unknown,
        Some('#') if indent == 0 => match run('#') {
            marks if marks == rest.len() && is_open => LineKind::Unknown,
            marks if marks <= 6 && rest[marks..].starts_with(' ') => LineKind::Heading { marks: marks + 1 },
            _ => LineKind::Words,
        },
        Some('-' | '*' | '+') if rest.len() == 1 && is_open => LineKind::Unknown,
        Some('-' | '*' | '+') if rest[1..].starts_with(' ') => {
            LineKind::Replaced { length: indent + 2, by: format!("{}• ", " ".repeat(indent)) }
        }
        Some('>') if rest.len() == 1 && is_open => LineKind::Unknown,
        Some('>') if rest[1..].starts_with(' ') => {
            LineKind::Replaced { length: indent + 2, by: format!("{}{DIM}│{OFF} ", " ".repeat(indent)) }
        }
        _ => LineKind::Words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same, whether it comes at once or byte by byte; styles are written as letters in brackets.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let letters = |out: String| {
            [(BOLD, "[b]"), (DIM, "[d]"), (CODE, "[c]"), (OFF, "[/]")]
                .iter()
                .fold(out, |out, (style, letter)| out.replace(style, letter))
        };
        let mut whole = MarkdownStream::default();
        let at_once = letters(whole.write(text) + &whole.end());
        let mut stream = MarkdownStream::default();
        let pieces: String = text.chars().map(|c| stream.write(&c.to_string())).collect();
        assert_eq!(at_once, expected, "at once");
        assert_eq!(letters(pieces + &stream.end()), expected, "byte by byte");
    }

    #[test]
    fn markdown_is_shown_as_what_it_means() {
        check("# Title\nwords\n", "[b]Title[/]\nwords\n");
        check("say **bold words** and `code`.", "say [b]bold words[/] and [c]code[/].");
        check("- one\n  * two\n1. three\n", "• one\n  • two\n1. three\n");
        check("> said\n", "[d]│[/] said\n");
        check("``a ` b`` c", "[c]a ` b[/] c");
    }

    #[test]
    fn code_is_shown_as_it_is() {
        check(
            "```rust\nlet **a** = `x`;\n# no title\n```\nafter **b**\n",
            "[d]```rust[/]\n[c]let **a** = `x`;[/]\n[c]# no title[/]\n[d]```[/]\nafter [b]b[/]\n",
        );
        check("~~~\n```\n~~~\n", "[d]~~~[/]\n[c]```[/]\n[d]~~~[/]\n");
    }

    #[test]
    fn what_only_looks_like_a_mark_is_shown_as_it_was_written() {
        for text in [
            "2 * 3 ** 4 * 5",
            "a ** b ** c",
            "an `open mark\nand on",
            "**open\nline**",
            "#hash -x --- *",
            "**",
            "`",
            "-",
            "***",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn words_do_not_wait() {
        let mut stream = MarkdownStream::default();
        assert_eq!(stream.write("Hello wor"), "Hello wor");
        assert_eq!(stream.write("ld, **this"), "ld, ");
        assert_eq!(stream.write("** is"), format!("{BOLD}this{OFF} is"));
    }
}

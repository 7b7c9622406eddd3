//! A line of bash up to the cursor: its words without their quotes, and what has to be put in for a word that goes on.
//!
//! Bash hands us the line as it was typed, and tells what of it will be replaced: less than a word where quotes, `=` or `:` stand in it.
//! So it is taken apart here, and whatever is put in is quoted here. What we do not understand has no candidates.

/// A line as words, and the last of them as it was typed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BashLine {
    pub(super) words: Vec<String>,
    raw: String,
}

/// The quotes that are open where a word goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quote {
    None,
    Single,
    Double,
}

impl BashLine {
    /// Takes a line apart.
    pub(super) fn read(line: &str) -> Self {
        let mut words = Vec::new();
        let mut rest = line.trim_start_matches(is_blank);
        loop {
            let end = word_end(rest);
            words.push(unquoted(&rest[..end]).0);
            let after = rest[end..].trim_start_matches(is_blank);
            if end == rest.len() {
                return Self { words, raw: rest.to_owned() };
            }
            rest = after;
        }
    }

    /// True if the last word is what something is read from or written to.
    pub(super) fn is_redirected(&self) -> bool {
        let before = self.words.len().checked_sub(2).map(|at| self.words[at].as_str());
        let leads = |word: &str| word.ends_with(['<', '>']);
        before.is_some_and(leads) || self.raw.starts_with(['<', '>'])
    }

    /// The text that takes the place of what bash will replace, so that the last word becomes this one.
    pub(super) fn put_in(&self, replaced: &str, word: &str) -> Option<String> {
        let (kept, quote) = unquoted(self.raw.strip_suffix(replaced)?);
        quoted(word.strip_prefix(kept.as_str())?, quote)
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n')
}

/// The length of the first word.
fn word_end(text: &str) -> usize {
    let (mut quote, mut is_escaped) = (Quote::None, false);
    for (at, c) in text.char_indices() {
        let was_escaped = std::mem::take(&mut is_escaped);
        match (quote, c) {
            _ if was_escaped => {}
            (Quote::None | Quote::Double, '\\') => is_escaped = true,
            (Quote::None, '\'') => quote = Quote::Single,
            (Quote::None, '"') => quote = Quote::Double,
            (Quote::Single, '\'') | (Quote::Double, '"') => quote = Quote::None,
            (Quote::None, c) if is_blank(c) => return at,
            _ => {}
        }
    }
    text.len()
}

/// A word without its quotes, and the one that is still open.
fn unquoted(raw: &str) -> (String, Quote) {
    let (mut text, mut quote) = (String::new(), Quote::None);
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Quote::None, '\\') => text.extend(chars.next()),
            (Quote::Double, '\\') => match chars.next() {
                Some(c @ ('$' | '`' | '"' | '\\')) => text.push(c),
                other => text.extend(std::iter::once('\\').chain(other)),
            },
            (Quote::None, '\'') => quote = Quote::Single,
            (Quote::None, '"') => quote = Quote::Double,
            (Quote::Single, '\'') | (Quote::Double, '"') => quote = Quote::None,
            (_, c) => text.push(c),
        }
    }
    (text, quote)
}

/// A text that bash takes as it is, where this quote is open; none if there is no such text.
fn quoted(text: &str, quote: Quote) -> Option<String> {
    let is_plain = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "_./:=@%+,-".contains(c);
    match quote {
        Quote::None => {
            let escaped = text.chars().flat_map(|c| (!is_plain(c)).then_some('\\').into_iter().chain([c]));
            Some(escaped.collect())
        }
        Quote::Single => Some(text.replace('\'', r"'\''")),
        // A history is expanded within these quotes, and cannot be escaped there without a trace.
        Quote::Double if text.contains('!') => None,
        Quote::Double => {
            let escaped = text
                .chars()
                .flat_map(|c| matches!(c, '"' | '$' | '`' | '\\').then_some('\\').into_iter().chain([c]));
            Some(escaped.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        BashLine::read(line).words
    }

    #[test]
    fn a_line_is_taken_apart_as_bash_does() {
        assert_eq!(words("homing show "), ["homing", "show", ""]);
        assert_eq!(words("homing  show ab"), ["homing", "show", "ab"]);
        assert_eq!(words(r"homing show fix\ th"), ["homing", "show", "fix th"]);
        assert_eq!(words("homing show \"fix \\\"th"), ["homing", "show", "fix \"th"]);
        assert_eq!(words("homing show 'it'\\''s a"), ["homing", "show", "it's a"]);
        assert_eq!(words("homing --model=gpt:5"), ["homing", "--model=gpt:5"]);
        assert_eq!(words(""), [""]);
        assert_eq!(words("homing show \\"), ["homing", "show", ""]);
    }

    #[test]
    fn what_is_put_in_becomes_the_word_and_nothing_else() {
        let put = |line: &str, replaced: &str, word: &str| BashLine::read(line).put_in(replaced, word);
        assert_eq!(put("homing show ", "", "the shop"), Some(r"the\ shop".into()));
        assert_eq!(put(r"homing show the\ s", r"the\ s", "the $(x)"), Some(r"the\ \$\(x\)".into()));
        assert_eq!(put("homing show 'the s", "the s", "the $(x)"), Some("the $(x)".into()));
        assert_eq!(put("homing show 'the s", "the s", "the s'x"), Some(r"the s'\''x".into()));
        assert_eq!(put("homing show \"the s", "the s", "the shop"), Some("the shop".into()));
        let double = |word: &str| put("homing show \"the s", "the s", word);
        assert_eq!(double("the s$x`y`\"\\"), Some(r#"the s\$x\`y\`\"\\"#.into()));
        assert_eq!(double("the s!x"), None);
        // Bash replaces only what is behind the colon.
        assert_eq!(put("homing --model=gpt:5", "5", "--model=gpt:5-mini"), Some("5-mini".into()));
        assert_eq!(put("homing --model=gpt:5", "5", "--model=other"), None);
        assert_eq!(put("homing show ab", "something else", "abc"), None);
    }

    #[test]
    fn files_are_meant_behind_a_redirection() {
        for line in ["homing export > ab", "homing export >ab", "homing import < ", "homing log 2> "] {
            assert!(BashLine::read(line).is_redirected(), "{line}");
        }
        assert!(!BashLine::read("homing export ab").is_redirected());
    }

    /// Every text of these characters, quoted, is that text again.
    #[test]
    fn whatever_is_quoted_is_the_same_without_quotes() {
        for text in ["a b", "$(x)`y`", "'\"\\", "*?[]{}~!#&;|<>()", "ä\u{3000}日"] {
            assert_eq!(unquoted(&quoted(text, Quote::None).unwrap()), (text.to_owned(), Quote::None));
            for (open, quote) in [("'", Quote::Single), ("\"", Quote::Double)] {
                if let Some(quoted) = quoted(text, quote) {
                    assert_eq!(unquoted(&format!("{open}{quoted}")), (text.to_owned(), quote));
                }
            }
        }
    }
}

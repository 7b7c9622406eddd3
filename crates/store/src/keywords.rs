//! Keywords: the pieces that words are searched by, made in this one place, so that every store finds the same.
//!
//! Words are lower-cased and split wherever a character is neither letter nor digit. Chinese, Japanese and Korean are written without
//! gaps: of these each two characters that stand together are a keyword. What is searched for is taken apart in the same way; its last
//! keyword may go on.

use std::collections::BTreeSet;
use std::ops::Range;

/// The longest keyword. What is longer is no word, and nobody types it.
pub const KEYWORD_BYTES_MAX: usize = 64;
/// Keywords of one passage: more than that say nothing new.
pub const KEYWORDS_MAX: usize = 20_000;
/// Keywords of one search; what somebody types beyond is not looked for.
pub const WANTED_MAX: usize = 16;

/// The part of a passage that is shown around the place of a match, and how much of it stands before.
const EXCERPT_BYTES_MAX: usize = 240;
const EXCERPT_BYTES_BEFORE: usize = 80;

/// A keyword, and the part of the words that it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keyword {
    /// The keyword.
    pub text: String,
    /// Its place, in bytes.
    pub at: Range<usize>,
}

/// The keywords of a passage, in their order.
pub fn keywords(words: &str) -> Vec<Keyword> {
    let mut found = Vec::new();
    for run in runs(words) {
        match run.is_dense {
            true => pairs(words, &run, true, &mut found),
            false => found.extend(plain(words, &run)),
        }
        if found.len() >= KEYWORDS_MAX {
            break;
        }
    }
    found.truncate(KEYWORDS_MAX);
    found
}

/// The keywords that somebody searches for. All of them have to be there; the last one may be the beginning of a longer one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    whole: Vec<String>,
    last: String,
}

impl Wanted {
    /// The keywords of what was typed; none if it has none.
    pub fn new(typed: &str) -> Option<Self> {
        let mut found = Vec::new();
        for run in runs(typed) {
            match run.is_dense {
                true => pairs(typed, &run, false, &mut found),
                false => found.extend(plain(typed, &run)),
            }
        }
        let mut whole: Vec<_> = found.into_iter().map(|keyword| keyword.text).collect();
        whole.truncate(WANTED_MAX);
        let last = whole.pop()?;
        Some(Self { whole, last })
    }

    /// The keywords that have to be there as they are.
    pub fn whole(&self) -> &[String] {
        &self.whole
    }

    /// The beginning of another one.
    pub fn last(&self) -> &str {
        &self.last
    }

    /// True if a passage with these keywords is one that is searched for.
    pub fn is_in(&self, keywords: &BTreeSet<String>) -> bool {
        let begins =
            keywords.range(self.last.clone()..).next().is_some_and(|word| word.starts_with(&self.last));
        begins && self.whole.iter().all(|word| keywords.contains(word))
    }

    /// The part of these words that is shown for it, and the place of the first match in that part; none if nothing fits.
    pub fn excerpt(&self, words: &str) -> Option<(String, Range<usize>)> {
        let is_one =
            |word: &str| word.starts_with(&self.last) || self.whole.iter().any(|whole| whole == word);
        let found = keywords(words).into_iter().find(|keyword| is_one(&keyword.text))?.at;
        let from = words.floor_char_boundary(found.start.saturating_sub(EXCERPT_BYTES_BEFORE));
        let to = words.floor_char_boundary((from + EXCERPT_BYTES_MAX).max(found.end).min(words.len()));
        Some((words[from..to].to_owned(), found.start - from..found.end - from))
    }
}

/// Characters that stand together and are of one sort.
struct Letters {
    at: Range<usize>,
    /// True if they are of a script without gaps.
    is_dense: bool,
}

fn runs(words: &str) -> impl Iterator<Item = Letters> {
    let mut rest = words.char_indices().peekable();
    std::iter::from_fn(move || {
        while rest.next_if(|(_, c)| !c.is_alphanumeric()).is_some() {}
        let (start, first) = rest.next()?;
        let (mut end, is_dense) = (start + first.len_utf8(), is_dense(first));
        while let Some((at, c)) = rest.next_if(|(_, c)| c.is_alphanumeric() && self::is_dense(*c) == is_dense)
        {
            end = at + c.len_utf8();
        }
        Some(Letters { at: start..end, is_dense })
    })
}

fn plain(words: &str, run: &Letters) -> Option<Keyword> {
    let text = lower(&words[run.at.clone()]);
    (text.len() <= KEYWORD_BYTES_MAX).then(|| Keyword { text, at: run.at.clone() })
}

/// Each two characters. The last one stands alone, too, where it is to be found as the beginning of something.
fn pairs(words: &str, run: &Letters, and_last: bool, found: &mut Vec<Keyword>) {
    let part = &words[run.at.clone()];
    let starts: Vec<_> = part.char_indices().map(|(at, c)| (at, at + c.len_utf8())).collect();
    let of = |from: usize, to: usize| Keyword {
        text: lower(&part[from..to]),
        at: run.at.start + from..run.at.start + to,
    };
    found.extend(starts.windows(2).map(|pair| of(pair[0].0, pair[1].1)));
    if let Some((from, to)) = starts.last().filter(|_| and_last || starts.len() == 1) {
        found.push(of(*from, *to));
    }
}

fn lower(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).filter(|c| c.is_alphanumeric()).collect()
}

/// Han, the two Japanese syllabaries, and Korean syllables.
fn is_dense(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2fa1f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(words: &str) -> Vec<String> {
        keywords(words).into_iter().map(|keyword| keyword.text).collect()
    }

    fn found(typed: &str, words: &str) -> bool {
        Wanted::new(typed).unwrap().is_in(&texts(words).into_iter().collect())
    }

    #[test]
    fn words_are_split_where_no_letter_and_no_digit_stands() {
        assert_eq!(
            texts("Don't fix `src/main.rs`: 3 Fehler"),
            ["don", "t", "fix", "src", "main", "rs", "3", "fehler"]
        );
        assert_eq!(texts("\u{c4}RGER stra\u{df}e \u{130}x"), ["\u{e4}rger", "stra\u{df}e", "ix"]);
        assert_eq!(texts("  \u{1f600} -- "), [""; 0]);
        assert_eq!(texts(&"x".repeat(KEYWORD_BYTES_MAX + 1)), [""; 0], "that is no word");
    }

    #[test]
    fn scripts_without_gaps_are_split_into_pairs() {
        assert_eq!(
            texts("\u{6771}\u{4eac}\u{90fd}ab"),
            ["\u{6771}\u{4eac}", "\u{4eac}\u{90fd}", "\u{90fd}", "ab"]
        );
        assert!(found("\u{6771}\u{4eac}", "\u{6771}\u{4eac}\u{90fd}"));
        assert!(found("\u{90fd}", "\u{6771}\u{4eac}\u{90fd}"), "the last one is found alone");
        assert!(found("\u{4eac}", "\u{6771}\u{4eac}\u{90fd}"), "and any as the beginning of a pair");
        assert!(!found("\u{6771}\u{90fd}", "\u{6771}\u{4eac}\u{90fd}"));
    }

    #[test]
    fn all_words_have_to_be_there_and_the_last_may_go_on() {
        assert!(found("fix MAIN", "main is to be fix"));
        assert!(found("be fi", "to be fixed"));
        assert!(!found("fi be", "to be fixed"), "only the last one goes on");
        assert!(!found("fix gone", "fix"));
        assert_eq!(Wanted::new(" .,- "), None);
        assert!(found(&format!("{}gone", "a ".repeat(WANTED_MAX)), "a"), "the rest is not looked for");
    }

    #[test]
    fn an_excerpt_shows_the_place_of_the_match_and_cuts_no_character() {
        let words = format!("{} needle {}", "\u{e4}".repeat(100), "\u{f6}".repeat(200));
        let (excerpt, at) = Wanted::new("NEED").unwrap().excerpt(&words).unwrap();
        assert_eq!(&excerpt[at], "needle");
        assert!(
            excerpt.len() <= EXCERPT_BYTES_MAX
                && excerpt.starts_with('\u{e4}')
                && excerpt.ends_with('\u{f6}')
        );
        assert_eq!(Wanted::new("thread").unwrap().excerpt(&words), None);
    }
}

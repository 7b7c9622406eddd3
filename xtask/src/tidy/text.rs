//! Single lines: the opening `//!`, the first word of a doc comment, paths of somebody's machine, silent `#[ignore]`, work
//! left for later.
//!
//! The words looked for are put together from pieces here, so that this file can be looked at like any other.

use super::Violation;
use crate::repository::Repository;

pub(super) fn files_say_what_they_own(house: &Repository) -> Vec<Violation> {
    let silent = house.sources().filter(|(_, text)| !has_opening(text));
    let found = silent.map(|(path, _)| {
        Violation::new(
            path,
            1,
            "the file does not begin with `//!`",
            "say first what it owns and what it will never do",
        )
    });
    found.collect()
}

fn has_opening(text: &str) -> bool {
    let first = text.lines().next().unwrap_or("");
    first.strip_prefix("//!").is_some_and(|said| !said.trim().is_empty())
}

/// First words that put off what a doc comment is about. `True if …` says it of a flag, a noun of everything else.
const PUT_OFF: &[&str] = &["What", "Who", "Whether", "How", "Which"];

pub(super) fn doc_comments_open_with_the_thing(house: &Repository) -> Vec<Violation> {
    let mut findings = Vec::new();
    for (path, text) in house.sources() {
        let marks = std::iter::once(None).chain(text.lines().map(doc_mark));
        for (at, (line, before)) in text.lines().zip(marks).enumerate() {
            let Some(mark) = doc_mark(line).filter(|mark| Some(*mark) != before) else { continue };
            let said = line.trim_start()[mark.len()..].trim_start();
            let Some(word) = PUT_OFF.iter().find(|word| begins_with_word(said, word)) else { continue };
            findings.push(Violation::new(
                path,
                at + 1,
                format!("a doc comment opens with `{word}`"),
                "open with the thing itself: a noun, or `True if` for a flag",
            ));
        }
    }
    findings
}

/// The mark of a line of documentation. Four slashes are a ruler and no documentation.
fn doc_mark(line: &str) -> Option<&'static str> {
    let line = line.trim_start();
    let is_doc = |mark: &&&str| line.starts_with(**mark) && !line.starts_with("////");
    ["///", "//!"].iter().find(is_doc).copied()
}

fn begins_with_word(said: &str, word: &str) -> bool {
    said.strip_prefix(word).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// Folders that exist on one developer's machine and on no other.
const MACHINE_FOLDERS: &[&str] = &[concat!("/wo", "rk/"), concat!("/fa", "rm/"), concat!("/ro", "ot/")];

pub(super) fn paths_are_of_no_machine(house: &Repository) -> Vec<Violation> {
    each_line(house, |line| {
        let folder = MACHINE_FOLDERS.iter().find(|folder| begins_a_path(line, folder))?;
        Some((
            format!("a path of one machine: `{folder}`"),
            "use a path from the root, a temporary one, or `/srv/…` in examples",
        ))
    })
}

/// True if the folder stands at the start of a path. In the middle of one it means nothing bad.
fn begins_a_path(line: &str, folder: &str) -> bool {
    let continues = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '/' | '-');
    line.match_indices(folder).any(|(at, _)| !line[..at].ends_with(continues))
}

pub(super) fn ignored_tests_say_why(house: &Repository) -> Vec<Violation> {
    let silent = [concat!("#[ig", "nore]"), concat!(", ig", "nore)]")];
    let mut findings = each_line(house, |line| {
        let code = code_of(line);
        let found = silent.iter().any(|mark| code.contains(mark));
        found.then(|| {
            ("a test is ignored without a reason".into(), "write `#[ignore = \"why, and who runs it\"]`")
        })
    });
    findings.retain(|finding| finding.path.ends_with(".rs"));
    findings
}

const LATER: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

pub(super) fn nothing_is_left_for_later(house: &Repository) -> Vec<Violation> {
    each_line(house, |line| {
        let word = LATER.iter().find(|word| has_word(line, word))?;
        Some((format!("{word} stands here"), "do it now, or file it and remove the mark"))
    })
}

fn has_word(line: &str, word: &str) -> bool {
    let in_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(in_word) && !line[at + word.len()..].starts_with(in_word))
}

/// Text that others wrote or a program made. It is kept as it is.
const NOT_OURS: &[&str] = &["Cargo.lock", "LICENSE-", "ui/dist/", "ui/package-lock.json", "/testdata/"];

fn each_line(house: &Repository, look: impl Fn(&str) -> Option<(String, &'static str)>) -> Vec<Violation> {
    let mut findings = Vec::new();
    let ours = house.texts().filter(|(path, _)| !NOT_OURS.iter().any(|part| path.contains(part)));
    for (path, text) in ours {
        for (at, line) in text.lines().enumerate() {
            findings.extend(look(line).map(|(what, remedy)| Violation::new(path, at + 1, what, remedy)));
        }
    }
    findings
}

/// A line of Rust without its comment. A `//` in a string ends it too early, which hides a little and accuses nobody.
pub(super) fn code_of(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::say;

    #[test]
    fn a_file_without_its_opening_line_is_found() {
        for text in ["", "use std::fmt;\n", "// A comment.\n", "//!\n", "\n//! Too late.\n"] {
            let said = say(files_say_what_they_own, &Repository::in_order().file("a.rs", text));
            assert_eq!(said, "a.rs:1: the file does not begin with `//!`\n", "{text:?}");
        }
        assert_eq!(say(files_say_what_they_own, &Repository::in_order().file("a.rs", "//! This.\n")), "");
        assert_eq!(say(files_say_what_they_own, &Repository::in_order().file("a.toml", "a = 1\n")), "");
    }

    #[test]
    fn a_doc_comment_that_opens_with_a_question_word_is_found_once() {
        let check =
            |text: &str| say(doc_comments_open_with_the_thing, &Repository::in_order().file("a.rs", text));
        for word in PUT_OFF {
            for mark in ["//!", "///", "    ///"] {
                let found = format!("a.rs:1: a doc comment opens with `{word}`\n");
                assert_eq!(check(&format!("{mark} {word} it is.\n")), found, "{mark}");
                assert_eq!(check(&format!("{mark} {word}.\n{mark} {word} else.\n")), found, "{mark}");
            }
            for fine in ["/// That.\n/// {} it is.\n", "// {} it is.\n", "//// {} it is.\n", "/// {}ever.\n"]
            {
                assert_eq!(check(&fine.replace("{}", word)), "", "{fine}");
            }
        }
        assert_eq!(check("//! This.\n\n/// How?\nfn a() {}\n"), "a.rs:3: a doc comment opens with `How`\n");
    }

    #[test]
    fn a_path_of_one_machine_is_found() {
        let check = |line: &str| say(paths_are_of_no_machine, &Repository::in_order().file("a.md", line));
        for folder in MACHINE_FOLDERS {
            let found = format!("a.md:1: a path of one machine: `{folder}`\n");
            assert_eq!(check(&format!("{folder}a\n")), found);
            assert_eq!(check(&format!("see \"{folder}a\"\n")), found);
            assert_eq!(check(&format!("see my{folder}a and ..{folder}a\n")), "");
            assert_eq!(check(&format!("see {}\n", folder.trim_end_matches('/'))), "");
        }
    }

    #[test]
    fn an_ignored_test_without_a_reason_is_found() {
        let source = [
            concat!("#[ig", "nore]"),
            "#[ignore = \"slow\"]",
            concat!("#[cfg_attr(miri, ig", "nore)]"),
            concat!("// #[ig", "nore]"),
        ];
        let said = say(ignored_tests_say_why, &Repository::in_order().file("a.rs", &source.join("\n")));
        assert_eq!(
            said,
            "a.rs:1: a test is ignored without a reason\na.rs:3: a test is ignored without a reason\n"
        );
    }

    #[test]
    fn work_left_for_later_is_found_in_any_file() {
        for word in LATER {
            let text = format!("a{word} {word}S {word}{word}\n# {word}: this\n");
            let said = say(nothing_is_left_for_later, &Repository::in_order().file("a.toml", &text));
            assert_eq!(said, format!("a.toml:2: {word} stands here\n"));
        }
    }

    #[test]
    fn text_of_others_is_kept_as_it_is() {
        let text = format!("{}a {}\n", MACHINE_FOLDERS[0], LATER[0]);
        let house =
            Repository::in_order().file("crates/drivers/testdata/a.txt", &text).file("LICENSE-APACHE", &text);
        assert_eq!(say(nothing_is_left_for_later, &house) + &say(paths_are_of_no_machine, &house), "");
    }
}

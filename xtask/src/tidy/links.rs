//! Links between our documents: each one leads to a file that is there, and each test that a promise names is one.

use super::Violation;
use crate::repository::Repository;

pub(super) fn links_lead_somewhere(house: &Repository) -> Vec<Violation> {
    let documents = house.texts().filter(|(path, _)| path.ends_with(".md"));
    let lines = documents
        .flat_map(|(path, text)| text.lines().enumerate().map(move |(at, line)| (path, at + 1, line)));
    let links = lines.flat_map(|(path, line, text)| targets(text).map(move |target| (path, line, target)));
    let dead = links.filter(|(path, _, target)| !is_there(house, path, target));
    let found = dead.map(|(path, line, target)| {
        Violation::new(
            path,
            line,
            format!("the link to `{target}` leads nowhere"),
            "write where the file is from here",
        )
    });
    found.collect()
}

/// The pages whose tables name the tests that show a promise.
const PROMISES: [&str; 2] = ["docs/security.md", "docs/reliability.md"];
/// Words of a name that is a test's, and not a setting's or a field's.
const TEST_WORDS_MIN: usize = 5;

pub(super) fn tests_that_promises_name_are_there(house: &Repository) -> Vec<Violation> {
    let pages = PROMISES.iter().map(|path| (*path, house.text(path)));
    let lines =
        pages.flat_map(|(path, text)| text.lines().enumerate().map(move |(at, line)| (path, at + 1, line)));
    let rows = lines.filter(|(_, _, line)| line.starts_with('|'));
    let named = rows.flat_map(|(path, line, text)| tests(text).map(move |test| (path, line, test)));
    let missing = named.filter(|(_, _, test)| {
        let start = format!("fn {test}");
        !house.sources().any(|(_, text)| text.contains(&start))
    });
    let found = missing.map(|(path, line, test)| {
        Violation::new(
            path,
            line,
            format!("there is no test `{test}`"),
            "name the test that shows the promise, or write it",
        )
    });
    found.collect()
}

/// The tests that a row names.
fn tests(row: &str) -> impl Iterator<Item = &str> {
    let quoted = row.split('`').skip(1).step_by(2);
    let is_word = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
    quoted.filter(move |name| name.chars().all(is_word) && name.split('_').count() >= TEST_WORDS_MIN)
}

/// Where a line's links lead, other sites and places on the same page left out.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let ends = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let paths = ends.map(|(target, _)| target.split('#').next().unwrap_or(target));
    paths.filter(|path| !path.is_empty() && !path.contains(':'))
}

fn is_there(house: &Repository, from: &str, target: &str) -> bool {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    let path = parts.join("/");
    let folder = format!("{path}/");
    house.files.contains_key(&path) || house.files.keys().any(|file| file.starts_with(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::say;

    fn check(text: &str) -> String {
        say(links_lead_somewhere, &Repository::in_order().file("docs/a.md", text).file("docs/deep/b.md", ""))
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        assert_eq!(
            check("see [b](b.md) and [c](deep/b.md)\n"),
            "docs/a.md:1: the link to `b.md` leads nowhere\n"
        );
    }

    #[test]
    fn links_to_files_folders_places_and_sites_are_fine() {
        assert_eq!(
            check(
                "[1](deep/b.md#top) [2](deep/) [3](../GLOSSARY.md) [4](#here) [5](https://example.org/x)\n"
            ),
            ""
        );
    }

    #[test]
    fn a_promise_names_tests_that_are_there() {
        let house = Repository::in_order()
            .file(
                "docs/security.md",
                "| a stranger | a promise | `what_is_there_is_a_test`, `what_went_is_no_more_there` |\n",
            )
            .file("crates/kernel/tests/it/a.rs", "//! Promises.\nfn what_is_there_is_a_test() {}\n");
        assert_eq!(
            say(tests_that_promises_name_are_there, &house),
            "docs/security.md:1: there is no test `what_went_is_no_more_there`\n"
        );
    }
}

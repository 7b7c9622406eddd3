//! Links between our documents: each one leads to a file that is there.

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
}

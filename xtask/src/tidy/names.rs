//! The glossary against the types: nothing is called by a word we avoid.
//!
//! GLOSSARY.md has a block fenced as `forbidden-types`, one name a line and after it what to say instead. A name with a
//! star in front stands for all names with that ending. Only definitions are looked at (`struct`, `enum`, `union`,
//! `trait`, `type`): what another library calls its things is not ours to choose, nor are associated types of its traits.
//!
//! A name that is defined in more than two rooms means three things, or one thing three times. The block fenced as
//! `types-of-many-rooms` has those that may, each with the reason. Tests and examples may call their things as they like.

use std::collections::BTreeMap;

use super::Violation;
use super::text::code_of;
use crate::repository::Repository;

const GLOSSARY: &str = "GLOSSARY.md";
const FENCE: &str = "```forbidden-types";
const MANY_ROOMS_FENCE: &str = "```types-of-many-rooms";

pub(super) fn types_are_called_by_their_words(house: &Repository) -> Vec<Violation> {
    let avoided = read_list(house.text(GLOSSARY));
    if avoided.is_empty() {
        let remedy = format!("list the names in a block that begins with {FENCE}");
        return vec![Violation::new(GLOSSARY, 1, "there is no list of forbidden type names", remedy)];
    }
    let lines = house
        .sources()
        .flat_map(|(path, text)| text.lines().enumerate().map(move |(at, line)| (path, at + 1, line)));
    let named = lines.filter_map(|(path, line, text)| {
        let name = defined_type(text)?;
        let word = avoided.iter().find(|word| word.matches(name))?;
        let what = format!("a type is called `{name}`");
        Some(Violation::new(path, line, what, format!("{GLOSSARY} says instead: {}", word.instead)))
    });
    named.collect()
}

/// The kernel's form and one other: what is stored, what is sent, or what a double of it is.
const ROOMS_MAX: usize = 2;

pub(super) fn a_type_name_is_of_two_rooms_at_most(house: &Repository) -> Vec<Violation> {
    let mut places: BTreeMap<&str, BTreeMap<&str, (&str, usize)>> = BTreeMap::new();
    for (path, text) in house.sources() {
        let Some(room) = house.rooms.iter().find(|room| is_product(path, &room.dir)) else { continue };
        // Tests stand at the end of a file.
        let lines = text.lines().take_while(|line| line.trim_end() != "#[cfg(test)]");
        for (at, name) in lines.enumerate().filter_map(|(at, line)| Some((at, defined_type(line)?))) {
            places.entry(name).or_default().entry(&room.dir).or_insert((path, at + 1));
        }
    }
    let allowed = read_block(house.text(GLOSSARY), MANY_ROOMS_FENCE);
    let too_many = places.iter().filter(|(name, rooms)| {
        rooms.len() > ROOMS_MAX && !allowed.iter().any(|(allowed, _)| allowed == *name)
    });
    let found = too_many.map(|(name, rooms)| {
        let (path, line) = rooms.values().next().expect("it is defined somewhere");
        let dirs: Vec<&str> = rooms.keys().map(|dir| dir.trim_start_matches("crates/")).collect();
        let what = format!("`{name}` is a type of {} rooms: {}", dirs.len(), dirs.join(", "));
        Violation::new(
            path,
            *line,
            what,
            "say in the name which one each is, or use one in place of the others",
        )
    });
    found.collect()
}

/// True if a file is part of what a room builds, not of its tests or examples.
fn is_product(path: &str, room: &str) -> bool {
    let inside = path.strip_prefix(room).and_then(|rest| rest.strip_prefix("/src/"));
    inside.is_some_and(|inside| !inside.split(['/', '.']).any(|part| part == "tests"))
}

struct Avoided<'a> {
    name: &'a str,
    instead: &'a str,
}

impl Avoided<'_> {
    fn matches(&self, name: &str) -> bool {
        match self.name.strip_prefix('*') {
            Some(ending) => name.ends_with(ending),
            None => name == self.name,
        }
    }
}

fn read_list(glossary: &str) -> Vec<Avoided<'_>> {
    read_block(glossary, FENCE).into_iter().map(|(name, instead)| Avoided { name, instead }).collect()
}

/// The lines of a fenced block: a name each, and what is said about it.
fn read_block<'a>(glossary: &'a str, fence: &str) -> Vec<(&'a str, &'a str)> {
    let block = glossary.lines().skip_while(|line| line.trim() != fence).skip(1);
    let lines = block.take_while(|line| line.trim() != "```").filter(|line| !line.trim().is_empty());
    let words =
        lines.map(|line| line.trim().split_once(' ').unwrap_or((line.trim(), "a word of the glossary")));
    words.map(|(name, said)| (name, said.trim())).collect()
}

/// The name a line defines as a type, if it defines one.
fn defined_type(line: &str) -> Option<&str> {
    let mut words = code_of(line).split_whitespace().skip_while(|word| is_before_keyword(word));
    let keyword = words.next()?;
    // An indented `type` without `pub` belongs to a trait, and most often to somebody else's.
    let may_be_associated =
        keyword == "type" && line.starts_with(char::is_whitespace) && !line.contains("pub");
    if !matches!(keyword, "struct" | "enum" | "union" | "trait" | "type") || may_be_associated {
        return None;
    }
    let name = words.next()?;
    let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(name.len());
    // In a macro the name is somebody else's to say.
    (end > 0).then_some(&name[..end])
}

fn is_before_keyword(word: &str) -> bool {
    matches!(word, "unsafe" | "auto" | "in") || word.starts_with("pub") || word.starts_with("crate::")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::say;

    fn check(source: &str) -> String {
        say(types_are_called_by_their_words, &Repository::in_order().file("a.rs", source))
    }

    #[test]
    fn a_forbidden_name_is_found_however_it_is_defined() {
        for keyword in [
            "struct",
            "pub enum",
            "pub(crate) trait",
            "pub unsafe trait",
            "    pub type",
            "pub(in crate::a) union",
        ] {
            assert_eq!(
                check(&format!("{keyword} Job<T> {{\n")),
                "a.rs:1: a type is called `Job`\n",
                "{keyword}"
            );
        }
    }

    #[test]
    fn an_ending_is_found_and_a_longer_word_is_not() {
        assert_eq!(check("struct SessionManager;\n"), "a.rs:1: a type is called `SessionManager`\n");
        assert_eq!(check("struct Jobless;\nstruct Managerial;\nstruct SomeJob;\n"), "");
    }

    #[test]
    fn only_definitions_are_looked_at() {
        let used = "use other::Job;\nlet a: Job = Job::new();\n// struct Job\nimpl Other for Thing {\n    type Job = u8;\n}\n";
        assert_eq!(check(used), "");
    }

    #[test]
    fn the_finding_says_which_word_to_use() {
        let house = Repository::in_order().file("a.rs", "struct Job;\n");
        let remedy = &types_are_called_by_their_words(&house)[0].remedy;
        assert_eq!(remedy, "GLOSSARY.md says instead: turn");
    }

    /// A type of that name in the kernel, the engine and in one more file.
    fn thrice(path: &str, text: &str) -> Repository {
        Repository::in_order()
            .file("crates/kernel/src/a.rs", "pub struct Pear;\n")
            .file("crates/engine/src/a.rs", "//! A.\nenum Pear {\n")
            .file(path, text)
    }

    #[test]
    fn a_name_that_a_third_room_takes_is_found_once() {
        let house = thrice("crates/server/src/a.rs", "struct Pear;\nstruct Pear;\n");
        let said = say(a_type_name_is_of_two_rooms_at_most, &house);
        assert_eq!(said, "crates/engine/src/a.rs:2: `Pear` is a type of 3 rooms: engine, kernel, server\n");
    }

    #[test]
    fn two_rooms_and_tests_may_share_a_name() {
        for (path, text) in [
            ("crates/engine/src/b.rs", "struct Pear;\n"),
            ("crates/server/tests/it/a.rs", "struct Pear;\n"),
            ("crates/server/src/a/tests.rs", "struct Pear;\n"),
            ("crates/server/src/a.rs", "#[cfg(test)]\nmod tests {\n    struct Pear;\n}\n"),
        ] {
            assert_eq!(say(a_type_name_is_of_two_rooms_at_most, &thrice(path, text)), "", "{path}");
        }
    }

    #[test]
    fn a_name_that_the_glossary_lets_into_many_rooms_is_no_finding() {
        let words = "```types-of-many-rooms\nPear   one fruit\n```\n";
        let house = thrice("crates/server/src/a.rs", "struct Pear;\n").file(GLOSSARY, words);
        assert_eq!(say(a_type_name_is_of_two_rooms_at_most, &house), "");
    }

    #[test]
    fn a_glossary_without_its_list_is_found() {
        let house = Repository::in_order().file(GLOSSARY, "words\n");
        let said = say(types_are_called_by_their_words, &house);
        assert_eq!(said, "GLOSSARY.md:1: there is no list of forbidden type names\n");
    }
}

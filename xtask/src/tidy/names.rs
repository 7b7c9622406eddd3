//! The glossary against the types: nothing is called by a word we avoid.
//!
//! GLOSSARY.md has a block fenced as `forbidden-types`, one name a line and after it what to say instead. A name with a
//! star in front stands for all names with that ending. Only definitions are looked at (`struct`, `enum`, `union`,
//! `trait`, `type`): what another library calls its things is not ours to choose, nor are associated types of its traits.

use super::Finding;
use super::text::code_of;
use crate::house::House;

const GLOSSARY: &str = "GLOSSARY.md";
const FENCE: &str = "```forbidden-types";

pub(super) fn types_are_called_by_their_words(house: &House) -> Vec<Finding> {
    let avoided = read_list(house.text(GLOSSARY));
    if avoided.is_empty() {
        let remedy = format!("list the names in a block that begins with {FENCE}");
        return vec![Finding::new(GLOSSARY, 1, "there is no list of forbidden type names", remedy)];
    }
    let lines = house
        .sources()
        .flat_map(|(path, text)| text.lines().enumerate().map(move |(at, line)| (path, at + 1, line)));
    let named = lines.filter_map(|(path, line, text)| {
        let name = defined_type(text)?;
        let word = avoided.iter().find(|word| word.matches(name))?;
        let what = format!("a type is called `{name}`");
        Some(Finding::new(path, line, what, format!("{GLOSSARY} says instead: {}", word.instead)))
    });
    named.collect()
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
    let block = glossary.lines().skip_while(|line| line.trim() != FENCE).skip(1);
    let lines = block.take_while(|line| line.trim() != "```").filter(|line| !line.trim().is_empty());
    let words =
        lines.map(|line| line.trim().split_once(' ').unwrap_or((line.trim(), "a word of the glossary")));
    words.map(|(name, instead)| Avoided { name, instead: instead.trim() }).collect()
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
    Some(&name[..end])
}

fn is_before_keyword(word: &str) -> bool {
    matches!(word, "unsafe" | "auto" | "in") || word.starts_with("pub") || word.starts_with("crate::")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::say;

    fn check(source: &str) -> String {
        say(types_are_called_by_their_words, &House::in_order().file("a.rs", source))
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
        let house = House::in_order().file("a.rs", "struct Job;\n");
        let remedy = &types_are_called_by_their_words(&house)[0].remedy;
        assert_eq!(remedy, "GLOSSARY.md says instead: turn");
    }

    #[test]
    fn a_glossary_without_its_list_is_found() {
        let house = House::in_order().file(GLOSSARY, "words\n");
        let said = say(types_are_called_by_their_words, &house);
        assert_eq!(said, "GLOSSARY.md:1: there is no list of forbidden type names\n");
    }
}

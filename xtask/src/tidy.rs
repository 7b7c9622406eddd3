//! Says what is out of place in the house: arrows between rooms, names, opening lines, marks left behind.
//!
//! The rules are in `rooms` (the table in ARCHITECTURE.md against the workspace), `absences` (what some rooms must not
//! have), `openers` (who may open files), `ground` (who may take a ground path's text), `names` (the list in GLOSSARY.md against the types), `text` (single lines),
//! `links` (between documents) and `dist` (the browser app against its sources). A rule is a pure function from a [`Repository`] to findings, so its tests need no disk.
//! Nothing here changes a file.

mod absences;
mod dist;
mod ground;
mod links;
mod names;
mod openers;
mod rooms;
mod text;

use std::fmt;
use std::path::Path;

use anyhow::{Result, bail};

use crate::repository::Repository;

/// Check names, arrows and opening lines; prints file:line and what to do
///
/// The allowed arrows are the table in ARCHITECTURE.md, the forbidden type names the list in GLOSSARY.md.
#[derive(clap::Args)]
pub(crate) struct TidyArgs {}

pub(crate) fn tidy(_: &TidyArgs, root: &Path) -> Result<()> {
    let house = Repository::read(root)?;
    let findings = look(&house);
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("tidy: {} rooms and {} files are in order", house.rooms.len(), house.files.len());
        return Ok(());
    }
    bail!("tidy: {} thing(s) out of place, listed above", findings.len());
}

/// Every rule. A rule that is not in this list does not exist.
const RULES: &[fn(&Repository) -> Vec<Violation>] = &[
    rooms::every_room_is_on_the_map,
    rooms::arrows_follow_the_map,
    absences::the_kernel_stands_alone,
    absences::ports_name_nothing_behind_them,
    absences::runners_read_no_store,
    absences::what_is_done_is_a_row,
    absences::no_room_for_leftovers,
    names::types_are_called_by_their_words,
    names::a_type_name_is_of_two_rooms_at_most,
    openers::only_listed_files_open_others,
    ground::only_listed_files_take_a_ground_path,
    text::files_say_what_they_own,
    text::doc_comments_open_with_the_thing,
    text::paths_are_of_no_machine,
    text::ignored_tests_say_why,
    text::nothing_is_left_for_later,
    links::links_lead_somewhere,
    links::tests_that_promises_name_are_there,
    dist::the_browser_app_is_of_its_sources,
];

fn look(house: &Repository) -> Vec<Violation> {
    let mut findings: Vec<Violation> = RULES.iter().flat_map(|rule| rule(house)).collect();
    findings.sort();
    findings
}

/// One thing out of place: where, what, and what its reader can do.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Violation {
    path: String,
    line: usize,
    what: String,
    remedy: String,
}

impl Violation {
    fn new(path: &str, line: usize, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { path: path.into(), line, what: what.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.path, self.line, self.what, self.remedy)
    }
}

/// For the rules' tests: what a rule says of a house, one finding a line.
#[cfg(test)]
fn say(rule: fn(&Repository) -> Vec<Violation>, house: &Repository) -> String {
    rule(house)
        .iter()
        .map(|finding| format!("{}:{}: {}\n", finding.path, finding.line, finding.what))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::By;

    #[test]
    fn a_house_in_order_has_no_findings() {
        assert_eq!(look(&Repository::in_order()), []);
    }

    #[test]
    fn every_rule_is_looked_at() {
        let house = Repository::in_order()
            .room_using("crates/attic", &[])
            .room_using("crates/kernel", &[("crates/engine", By::Product)])
            .room_using("crates/engine", &[("rusqlite", By::Product)])
            .file("src/utils.rs", concat!("struct Job;\n#[ig", "nore]\n// TO", "DO: /ro", "ot/a\n"))
            .file("crates/engine/src/turn.rs", "struct Pear;\nself.store().read();\n")
            .file("crates/kernel/src/pear.rs", "struct Pear;\n")
            .file("crates/server/src/pear.rs", "struct Pear;\n")
            .file("crates/server/src/opens.rs", "fs::read(path);\n")
            .file("src/who.rs", "/// Who.\n")
            .file("ui/package.json", "{}\n")
            .file("docs/a.md", "[b](b.md)\n");
        let said: String = look(&house).iter().map(Violation::to_string).collect();
        for word in [
            "not in the table",
            "may not use",
            "the kernel depends",
            "behind a port",
            "module is called",
            "a runner has",
            "a type of 3 rooms",
            "opens something",
            "of other sources",
        ] {
            assert!(said.contains(word), "{word}");
        }
        for word in [
            "type is called",
            "not begin with",
            "opens with",
            "one machine",
            "without a reason",
            "stands here",
            "nowhere",
        ] {
            assert!(said.contains(word), "{word}");
        }
    }

    #[test]
    fn this_repository_is_looked_at_as_it_is() {
        let house = Repository::read(&crate::root()).unwrap();
        assert!(house.rooms.iter().any(|room| room.dir == "xtask"));
        assert!(house.files.contains_key("xtask/src/tidy.rs"));
    }

    #[test]
    fn a_finding_says_where_what_and_what_to_do() {
        let finding = Violation::new("a.rs", 3, "it is odd", "make it even");
        assert_eq!(finding.to_string(), "a.rs:3: it is odd; make it even");
    }
}

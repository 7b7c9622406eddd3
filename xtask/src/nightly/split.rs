//! The split of the tests of the whole product between two parts of the night: `ground` runs those of agents and repositories that are
//! hostile, with the program as people get it, and `tests` all others, with its debug assertions on. Both ask here, so that nothing is in
//! neither.
//!
//! What is quicker in a release, or compiled away there, is another program to whoever attacks it, and answers its `/healthz` in
//! another time. Kills and cuts stay in `tests`: what is left between two states is what an assertion finds.

use crate::counts::{COUNTS, Count};

/// The files of the hostile tests in crates/homing/tests/it.
const HOSTILE: [&str; 14] = [
    "attacks",
    "bounded",
    "flood",
    "ground",
    "hostile",
    "liars",
    "listed",
    "looks",
    "remembered",
    "shapes",
    "swapped",
    "tidied",
    "tries",
    "wall",
];

/// The counts that these read.
const HOSTILE_COUNTS: [&str; 7] = [
    "HOMING_FLOOD",
    "HOMING_SHAPES",
    "HOMING_SHAPE_FILES",
    "HOMING_LIARS",
    "HOMING_LIARS_LISTED",
    "HOMING_DOCTOR_TRIES",
    "HOMING_TIDIED_TURNS",
];
/// Those of them that other tests read, too.
const SHARED_COUNTS: [&str; 1] = ["HOMING_TIDIED_TURNS"];

/// The hostile tests, in the test runner's words.
pub(super) fn ground() -> String {
    format!("package(homing) and binary(it) and test(/^({})::/)", HOSTILE.join("|"))
}

/// All others.
pub(super) fn tests() -> String {
    format!("not ({})", ground())
}

/// The counts that a part reads.
pub(super) fn counts(part: &str) -> impl Iterator<Item = &'static Count> {
    let is_read = move |count: &&Count| {
        let is_hostile = HOSTILE_COUNTS.contains(&count.variable);
        match part {
            "browser" => count.is_browser(),
            "ground" => is_hostile,
            "tests" => !count.is_browser() && (!is_hostile || SHARED_COUNTS.contains(&count.variable)),
            _ => false,
        }
    };
    COUNTS.iter().filter(is_read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::Repository;

    /// The words between two others.
    fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
        text.split_once(begin)?.1.split_once(end).map(|(words, _)| words)
    }

    /// The names in a filter, and whether it takes what they name or everything else.
    fn names(filter: &str) -> (Vec<&str>, bool) {
        let takes = !filter.starts_with("not (package(homing) and binary(it) and ");
        (between(filter, "test(/^(", ")::/)").unwrap().split('|').collect(), takes)
    }

    #[test]
    fn each_file_of_tests_is_in_exactly_one_part_of_the_night() {
        let main = std::fs::read_to_string(crate::root().join("crates/homing/tests/it/main.rs")).unwrap();
        let modules: Vec<&str> =
            main.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')).collect();
        assert!(modules.len() > HOSTILE.len(), "{modules:?}");
        let filters = [super::ground(), super::tests()];
        for module in &modules {
            let parts = filters.iter().map(|filter| names(filter));
            let runs = parts.filter(|(names, takes)| names.contains(module) == *takes).count();
            assert_eq!(runs, 1, "{module}");
        }
        // Whoever gives such a file another name would have it run with the debug program.
        for part in HOSTILE {
            assert!(modules.contains(&part), "there is no {part}");
        }
    }

    #[test]
    fn each_count_is_said_of_the_parts_that_read_it() {
        let house = Repository::read(&crate::root()).unwrap();
        for count in COUNTS.iter().filter(|count| !count.is_browser()) {
            let asked = format!("(\"{}\"", count.variable);
            let is_hostile = |path: &str| {
                let file = path.strip_prefix("crates/homing/tests/it/");
                file.is_some_and(|file| HOSTILE.contains(&file.trim_end_matches(".rs")))
            };
            let readers = || {
                let tests = house.texts().filter(|(path, _)| path.contains("/tests/"));
                tests.filter(|(_, text)| text.contains(&asked)).map(|(path, _)| path)
            };
            for (part, is_its) in [("ground", true), ("tests", false)] {
                let is_read = readers().any(|path| is_hostile(path) == is_its);
                let is_said = super::counts(part).any(|one| one.variable == count.variable);
                assert_eq!(is_said, is_read, "{part}: {}", count.variable);
            }
        }
    }
}

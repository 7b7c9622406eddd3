//! The counts of everything: the one place that says how many seeds, kills, rounds and requests each test command
//! makes.
//!
//! A [`Count`] is read by a test from its variable. Without the variable the test takes the number of `cargo xtask test`;
//! that both say the same is checked below, so that a test that is run by hand does what the command does.

/// The command that asks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    Quick,
    Test,
    Nightly,
}

/// The number of times one test does what it does.
pub(crate) struct Count {
    pub(crate) what: &'static str,
    pub(crate) variable: &'static str,
    pub(crate) quick: u64,
    pub(crate) test: u64,
    pub(crate) nightly: u64,
}

pub(crate) const COUNTS: &[Count] = &[
    Count {
        what: "seeds of the simulation",
        variable: "HOMING_SIM_SEEDS",
        quick: 50,
        test: 400,
        nightly: 800,
    },
    Count {
        what: "random stories of the kernel",
        variable: "HOMING_STORIES",
        quick: 300,
        test: 300,
        nightly: 3_000,
    },
    Count {
        what: "power cuts of the store",
        variable: "HOMING_POWER_SEEDS",
        quick: 40,
        test: 40,
        nightly: 200,
    },
    Count { what: "kills of the server", variable: "HOMING_KILLS", quick: 10, test: 10, nightly: 30 },
    Count {
        what: "conversations at once",
        variable: "HOMING_CONVERSATIONS",
        quick: 40,
        test: 40,
        nightly: 200,
    },
    Count { what: "lives of worktrees", variable: "HOMING_CYCLES", quick: 100, test: 100, nightly: 300 },
    Count {
        what: "turns beside a person who tidies up",
        variable: "HOMING_TIDIED_TURNS",
        quick: 8,
        test: 8,
        nightly: 200,
    },
    Count {
        what: "bytes of a flood",
        variable: "HOMING_FLOOD",
        quick: 20_000_000,
        test: 20_000_000,
        nightly: 200_000_000,
    },
    Count {
        what: "starts of a wall under which directories are exchanged",
        variable: "HOMING_EXCHANGES",
        quick: 100,
        test: 100,
        nightly: 1_000,
    },
    Count { what: "shapes of repositories", variable: "HOMING_SHAPES", quick: 12, test: 12, nightly: 60 },
    Count {
        what: "files of the largest of these shapes",
        variable: "HOMING_SHAPE_FILES",
        quick: 1_000,
        test: 1_000,
        nightly: 100_000,
    },
    Count { what: "repositories that lie", variable: "HOMING_LIARS", quick: 16, test: 16, nightly: 272 },
    Count {
        what: "of them behind a team's wall",
        variable: "HOMING_LIARS_LISTED",
        quick: 6,
        test: 6,
        nightly: 272,
    },
    Count {
        what: "tries of each attack on the wall, in each layout",
        variable: "HOMING_PROBES",
        quick: 5,
        test: 5,
        nightly: 1_000,
    },
    Count {
        what: "tries of each attack on the walls of servers as they are configured",
        variable: "HOMING_DOCTOR_TRIES",
        quick: 20,
        test: 20,
        nightly: 1_000,
    },
    // Where it is set, every run of git is cut in both ways.
    Count {
        what: "moments of a change at which the server ends",
        variable: "HOMING_CUTS",
        quick: 10,
        test: 10,
        nightly: 30,
    },
    Count {
        what: "facts of a conversation in which nothing moves",
        variable: "HOMING_BROWSER_FACTS",
        quick: 2_000,
        test: 2_000,
        nightly: 10_000,
    },
    Count {
        what: "questions that three doors answer at once",
        variable: "HOMING_BROWSER_QUESTIONS",
        quick: 3,
        test: 3,
        nightly: 50,
    },
    Count {
        what: "kills, cuts and frozen tabs in a browser",
        variable: "HOMING_BROWSER_CUTS",
        quick: 12,
        test: 12,
        nightly: 100,
    },
];

/// Seeds of the simulation as `cargo xtask nightly` runs it, optimised.
pub(crate) const NIGHTLY_SEEDS: u64 = 20_000;
/// Kills of the server in its soak.
pub(crate) const NIGHTLY_KILLS: u32 = 300;
/// The fewest points at which something is ended while it changes a repository, or would.
pub(crate) const NIGHTLY_KILL_POINTS_MIN: u64 = 300;
/// Deaths in the midst of turns.
pub(crate) const NIGHTLY_ORPHAN_ROUNDS: u32 = 100;
/// The number of times each figure is measured.
pub(crate) const NIGHTLY_BENCH_ROUNDS: usize = 5;

/// The requests of the HTTP fuzz, shared by its two lanes so that both take about the same time.
pub(crate) struct Requests {
    pub(crate) lanes: [Lane; 2],
    /// Fewer in all would not be what was promised.
    pub(crate) min: u64,
}

/// The work of one schemathesis: systematic requests at the edges of each schema, random ones, or both.
pub(crate) struct Lane {
    pub(crate) name: &'static str,
    pub(crate) phases: &'static str,
    /// Random requests per operation.
    pub(crate) each: u32,
    /// The operations that are its own; none of these words means all of them.
    pub(crate) operations: &'static [&'static str],
}

const HALF_OF_THE_OPERATIONS: &str = "^/api/v1/(sessions|messages)";

/// Each edge once, by the lane that has the operation, and a few random requests.
pub(crate) const TEST_REQUESTS: Requests = Requests {
    lanes: [
        Lane {
            name: "sessions",
            phases: "coverage,fuzzing",
            each: 6,
            operations: &["--include-path-regex", HALF_OF_THE_OPERATIONS],
        },
        Lane {
            name: "others",
            phases: "coverage,fuzzing",
            each: 6,
            operations: &["--exclude-path-regex", HALF_OF_THE_OPERATIONS],
        },
    ],
    min: 3_000,
};

/// The edges take as long as 3,000 random requests: together some 11,500.
pub(crate) const NIGHTLY_REQUESTS: Requests = Requests {
    lanes: [
        Lane { name: "edges", phases: "coverage,fuzzing", each: 22, operations: &[] },
        Lane { name: "random", phases: "fuzzing", each: 85, operations: &[] },
    ],
    min: 10_000,
};

/// The environment of tests: only what they would not do by themselves.
pub(crate) fn variables(scale: Scale) -> impl Iterator<Item = (&'static str, String)> {
    let other = COUNTS.iter().filter(move |count| count.at(scale) != count.test);
    other.map(move |count| (count.variable, count.at(scale).to_string()))
}

impl Count {
    pub(crate) fn at(&self, scale: Scale) -> u64 {
        match scale {
            Scale::Quick => self.quick,
            Scale::Test => self.test,
            Scale::Nightly => self.nightly,
        }
    }

    /// True if a test of `ui/browser` reads it.
    pub(crate) fn is_browser(&self) -> bool {
        self.variable.starts_with("HOMING_BROWSER_")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::Repository;

    #[test]
    fn a_test_that_is_run_by_hand_does_as_much_as_in_the_test_command() {
        let house = Repository::read(&crate::root()).unwrap();
        let is_test =
            |path: &str| path.contains("/tests/") && path.ends_with(".rs") || path.starts_with("ui/browser/");
        let tests: Vec<&str> =
            house.texts().filter(|(path, _)| is_test(path)).map(|(_, text)| text).collect();
        for count in COUNTS {
            let by_hand = format!("(\"{}\", {})", count.variable, count.test);
            let plain = |text: &str| text.replace('_', "").replace('\'', "\"");
            let said = |text: &&str| plain(text).contains(&plain(&by_hand));
            assert!(tests.iter().any(said), "no test says {by_hand}");
        }
    }

    #[test]
    fn the_night_has_as_many_shapes_of_repositories_as_there_are() {
        let tests = std::fs::read_to_string(crate::root().join("crates/homing/tests/it/shapes.rs")).unwrap();
        let (_, shapes) = tests.split_once("\nconst SHAPES: ").unwrap();
        let (shapes, _) = shapes.split_once("\n];").unwrap();
        let makers = ["    shape(", "    refused(", "    within("];
        let is_shape = |line: &&str| makers.iter().any(|maker| line.starts_with(maker));
        let shapes = shapes.lines().filter(is_shape).count() as u64;
        let count = COUNTS.iter().find(|count| count.variable == "HOMING_SHAPES").unwrap();
        assert_eq!(count.nightly, shapes);
        let page = std::fs::read_to_string(crate::root().join("docs/decisions/0017-three-test-commands.md"));
        assert!(page.unwrap().contains(&format!("| {shapes}, 100,000 files |")));
    }

    #[test]
    fn the_night_never_does_less_than_the_day() {
        for count in COUNTS {
            assert!(count.quick <= count.test && count.test <= count.nightly, "{}", count.what);
        }
    }
}

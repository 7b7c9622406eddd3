//! The one test command: fetches what it needs, then goes through [`STEPS`] and stops at the first that fails.
//!
//! A step is a name and a function. To add one, write the function and put it in the table; cheap steps come first, so
//! that a missing comma is known before anything is built.

mod examples;
mod fuzz;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::house::House;
use crate::tidy::TidyArgs;
use crate::{tidy, tools};

/// Run every check and every test, in the order that fails soonest
///
/// Formatting, tidy, clippy, cargo deny, all tests, doc tests, ten thousand requests
/// made from the contract, then the real agents with a model that is none. Fetches
/// the programs it needs on the first run: 1.8 GB, most of it agents.
#[derive(clap::Args)]
pub(crate) struct TestArgs {
    /// Run only these steps, in the order of the list (names as in the closing table)
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

/// What runs, in this order.
const STEPS: &[Step] = &[
    Step { name: "fmt", run: fmt },
    Step { name: "tidy", run: look },
    Step { name: "clippy", run: clippy },
    Step { name: "deny", run: deny },
    Step { name: "tests", run: tests },
    Step { name: "doc tests", run: doc_tests },
    Step { name: "http fuzz", run: http_fuzz },
    Step { name: "agents", run: agents },
];

struct Step {
    name: &'static str,
    run: fn(&Path) -> Result<Tally>,
}

/// How many tests a step ran. Most steps run none.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Tally {
    passed: usize,
    failed: usize,
    /// Those of the passed that failed the first time.
    tried_again: Vec<String>,
}

pub(crate) fn test(args: &TestArgs, root: &Path) -> Result<()> {
    let steps = chosen(&args.only)?;
    let mut report = Report::default();
    for step in steps {
        println!("\n── {} ──", step.name);
        let began = Instant::now();
        let ended = (step.run)(root);
        if !report.note(step, began.elapsed(), ended) {
            break;
        }
    }
    print!("{}", report.print());
    match report.failure {
        // Everything is said already; the exit code is for programs.
        Some(_) => std::process::exit(1),
        None => Ok(()),
    }
}

fn chosen(only: &[String]) -> Result<Vec<&'static Step>> {
    if let Some(unknown) = only.iter().find(|name| STEPS.iter().all(|step| step.name != name.as_str())) {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        bail!("there is no step called {unknown}; the steps are: {}", names.join(", "));
    }
    Ok(STEPS.iter().filter(|step| only.is_empty() || only.iter().any(|name| name == step.name)).collect())
}

/// What has happened so far, for the closing table.
#[derive(Default)]
struct Report {
    rows: Vec<(&'static str, Duration)>,
    tally: Tally,
    failure: Option<String>,
}

impl Report {
    /// Takes note of a step that has ended, and says whether to go on.
    fn note(&mut self, step: &Step, took: Duration, ended: Result<Tally>) -> bool {
        self.rows.push((step.name, took));
        match ended {
            Ok(tally) => {
                self.tally.passed += tally.passed;
                self.tally.failed += tally.failed;
                self.tally.tried_again.extend(tally.tried_again);
                if tally.failed > 0 {
                    self.failure = Some(format!("{}: {} of its tests failed", step.name, tally.failed));
                }
            }
            Err(error) => self.failure = Some(format!("{}: {error:#}", step.name)),
        }
        self.failure.is_none()
    }

    fn print(&self) -> String {
        let mut lines = String::from("\n");
        for (at, (name, took)) in self.rows.iter().enumerate() {
            let last = at + 1 == self.rows.len();
            let verdict = if last && self.failure.is_some() { "FAILED" } else { "ok" };
            lines += &format!("{name:<12} {:>7.1} s  {verdict}\n", took.as_secs_f64());
        }
        let total: Duration = self.rows.iter().map(|(_, took)| *took).sum();
        lines += &format!("{:<12} {:>7.1} s\n\n", "together", total.as_secs_f64());
        for name in &self.tally.tried_again {
            lines += &format!("passed only when tried again: {name}: look into it\n");
        }
        match self.tally.tried_again.len() {
            0 => {}
            number => lines += &format!("PASSED ONLY WHEN TRIED AGAIN: {number} of the tests\n\n"),
        }
        if let Some(failure) = &self.failure {
            lines += &format!("failed at {failure}\n");
        }
        // The plain last line is what programs read, so it counts a failed step that is not a test, too.
        let failed = if self.failure.is_some() { self.tally.failed.max(1) } else { 0 };
        lines + &format!("{} passed, {failed} failed\n", self.tally.passed)
    }
}

fn fmt(root: &Path) -> Result<Tally> {
    tools::component("rustfmt", "rustfmt")?;
    tools::run(tools::cargo().args(["fmt", "--all", "--check"]).current_dir(root))
        .context("run `cargo fmt --all`")?;
    Ok(Tally::default())
}

fn look(root: &Path) -> Result<Tally> {
    tidy::tidy(&TidyArgs {}, root)?;
    Ok(Tally::default())
}

fn clippy(root: &Path) -> Result<Tally> {
    tools::component("cargo-clippy", "clippy")?;
    tools::c_compiler()?;
    let arguments = ["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"];
    tools::run(tools::cargo().args(arguments).current_dir(root))?;
    Ok(Tally::default())
}

fn deny(root: &Path) -> Result<Tally> {
    // Not `advisories`: they are a git repository to fetch, and this command must say the same on any day, offline too.
    let arguments = ["--locked", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"];
    tools::run(Command::new(tools::deny()?).args(arguments).current_dir(root))
        .context("deny.toml says what is allowed and why")?;
    Ok(Tally::default())
}

fn tests(root: &Path) -> Result<Tally> {
    let provider = tools::provider()?;
    nextest(root, "all", &["--workspace"], &[(tools::PROVIDER_VARIABLE, &provider)])
}

/// The real agents, each in the version we know. One that cannot be had fails the step: what was not run was not tested.
fn agents(root: &Path) -> Result<Tally> {
    let agents = tools::agents()?;
    nextest(root, "agents", &["--workspace"], &agents.variables())
}

/// Runs the tests that a profile of `.config/nextest.toml` chooses, and counts them by the report it writes.
fn nextest(root: &Path, profile: &str, what: &[&str], variables: &[(&str, &Path)]) -> Result<Tally> {
    let report = target(root).join("nextest").join(profile).join("junit.xml");
    // A report of an earlier run must not be taken for this one's.
    if report.exists() {
        std::fs::remove_file(&report)?;
    }
    let mut nextest = Command::new(tools::nextest()?);
    nextest.args(["nextest", "run", "--locked", "--profile", profile]).args(what).current_dir(root);
    nextest.args(more_tries(std::env::var_os("CI").as_deref()));
    let ended = tools::run(nextest.envs(variables.iter().copied()));
    let Ok(written) = std::fs::read_to_string(&report) else {
        return Err(ended
            .err()
            .unwrap_or_else(|| anyhow::anyhow!("the runner left no report at {}", report.display())));
    };
    let tally = count(&written).context("the runner's report has no counts")?;
    // Failed tests are in the tally. Any other bad end is its own failure.
    match ended {
        Err(error) if tally.failed == 0 => Err(error),
        _ => Ok(tally),
    }
}

/// On somebody else's machine, where there is noise, a test may fail once. Here it may not.
fn more_tries(ci: Option<&OsStr>) -> &'static [&'static str] {
    match ci {
        Some(said) if !said.is_empty() && said != "false" => &["--retries", "1"],
        _ => &[],
    }
}

fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), |dir| root.join(dir))
}

/// Reads the totals in the first tag of a JUnit report, and which tests passed only the second time.
fn count(report: &str) -> Option<Tally> {
    let (_, rest) = report.split_once("<testsuites ")?;
    let tag = rest.split_once('>')?.0;
    let number = |name: &str| -> Option<usize> {
        let (_, value) = tag.split_once(&format!("{name}=\""))?;
        value.split_once('"')?.0.parse().ok()
    };
    let failed = number("failures")? + number("errors")?;
    Some(Tally { passed: number("tests")?.checked_sub(failed)?, failed, tried_again: tried_again(rest) })
}

/// The tests in a JUnit report with a `flakyFailure`: a failure that a later try has made good.
fn tried_again(report: &str) -> Vec<String> {
    let cases = report.split("<testcase ").skip(1).filter(|case| case.contains("<flakyFailure"));
    let attribute = |case: &str, name: &str| -> Option<String> {
        let tag = format!(" {}", case.split_once('>')?.0);
        let (_, value) = tag.split_once(&format!(" {name}=\""))?;
        Some(value.split_once('"')?.0.to_owned())
    };
    let named = |case: &str| {
        let test = attribute(case, "name").unwrap_or_default();
        // The binary in which it is.
        attribute(case, "classname").map_or(test.clone(), |of| format!("{of} {test}"))
    };
    cases.map(named).collect()
}

/// `cargo test --doc` links a program per example, so it is called only for rooms that have any.
fn doc_tests(root: &Path) -> Result<Tally> {
    let house = House::read(root)?;
    let packages = examples::packages_with_examples(&house);
    if packages.is_empty() {
        println!("no room has an example in its documentation");
        return Ok(Tally::default());
    }
    let mut cargo = tools::cargo();
    cargo.args(["test", "--locked", "--doc"]).current_dir(root);
    for package in packages {
        cargo.args(["--package", package]);
    }
    tools::run(&mut cargo)?;
    Ok(Tally::default())
}

fn http_fuzz(root: &Path) -> Result<Tally> {
    fuzz::http_fuzz(root, &target(root))?;
    Ok(Tally::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Step = Step { name: "tests", run: look };

    fn report(ended: Result<Tally>) -> String {
        let mut report = Report::default();
        report.note(&STEP, Duration::from_millis(1500), ended);
        report.print()
    }

    #[test]
    fn the_last_line_counts_the_tests() {
        let said = report(Ok(Tally { passed: 7, ..Tally::default() }));
        assert_eq!(said, "\ntests            1.5 s  ok\ntogether         1.5 s\n\n7 passed, 0 failed\n");
    }

    #[test]
    fn failed_tests_fail_the_command() {
        let mut report = Report::default();
        assert!(!report.note(&STEP, Duration::ZERO, Ok(Tally { passed: 7, failed: 2, ..Tally::default() })));
        assert!(report.print().ends_with("failed at tests: 2 of its tests failed\n7 passed, 2 failed\n"));
    }

    #[test]
    fn a_step_that_fails_is_named_and_counted() {
        let said = report(Err(anyhow::anyhow!("no disk")));
        assert!(said.contains("tests            1.5 s  FAILED\n"), "{said}");
        assert!(said.ends_with("failed at tests: no disk\n0 passed, 1 failed\n"), "{said}");
    }

    #[test]
    fn a_report_is_counted() {
        let report = r#"<?xml version="1.0"?><testsuites name="all" tests="9" failures="1" errors="2" uuid="x" time="1"><testsuite tests="3" failures="0"/>"#;
        assert_eq!(count(report), Some(Tally { passed: 6, failed: 3, ..Tally::default() }));
        assert_eq!(count("<testsuites tests=\"x\">"), None);
    }

    #[test]
    fn what_passed_only_the_second_time_is_counted_once_and_told() {
        let written = r#"<testsuites name="all" tests="3" failures="0" errors="0">
            <testsuite name="a::it" tests="3"><testcase name="calm" classname="a::it" time="1"></testcase>
            <testcase name="git::odd" classname="a::it" time="1"><flakyFailure message="no &lt;flakyFailure&gt;"/></testcase>
            <testcase name="calm too" classname="a::it"><system-out>&lt;flakyFailure</system-out></testcase>"#;
        let tally = count(written).unwrap();
        assert_eq!(tally, Tally { passed: 3, failed: 0, tried_again: vec!["a::it git::odd".into()] });
        let said = report(Ok(tally));
        assert!(said.contains("passed only when tried again: a::it git::odd: look into it\n"), "{said}");
        assert!(said.contains("PASSED ONLY WHEN TRIED AGAIN: 1 of"), "{said}");
        assert!(said.ends_with("3 passed, 0 failed\n"), "{said}");
    }

    #[test]
    fn a_test_gets_a_second_try_only_where_there_is_noise() {
        assert_eq!(more_tries(Some(OsStr::new("true"))), ["--retries", "1"]);
        for calm in [None, Some(OsStr::new("")), Some(OsStr::new("false"))] {
            assert!(more_tries(calm).is_empty());
        }
    }

    #[test]
    fn an_unknown_step_is_refused_with_the_names_of_the_known() {
        let error = chosen(&["speling".into()]).err().unwrap().to_string();
        assert!(error.contains("speling") && error.contains("clippy"), "{error}");
        assert_eq!(
            chosen(&["deny".into(), "fmt".into()]).unwrap().iter().map(|step| step.name).collect::<Vec<_>>(),
            ["fmt", "deny"]
        );
    }
}

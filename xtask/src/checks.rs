//! The checks that the test commands are made of, each a function that a table of steps can name.
//!
//! Nothing is compiled twice: [`build`] lets clippy's compiler make the very programs that are then run. It lints a
//! workspace package while it compiles it, where `cargo clippy` would look at everything and throw the result away. So
//! whatever runs after it here (`nextest`, the documentation's examples, the fuzz) asks cargo for the same thing, with
//! [`tools::linting_cargo`]; a plain `cargo test` has artifacts of its own.

mod browser;
mod examples;
mod fuzz;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::counts::{self, Scale};
use crate::repository::Repository;
use crate::steps::Tally;
use crate::tidy::TidyArgs;
use crate::{tidy, tools};

pub(crate) use browser::{browser, report as browser_report};

pub(crate) fn fmt(root: &Path) -> Result<Tally> {
    tools::component("rustfmt", "rustfmt")?;
    tools::run(tools::cargo().args(["fmt", "--all", "--check"]).current_dir(root))
        .context("run `cargo fmt --all`")?;
    Ok(Tally::default())
}

pub(crate) fn look(root: &Path) -> Result<Tally> {
    tidy::tidy(&TidyArgs {}, root)?;
    Ok(Tally::default())
}

pub(crate) fn deny(root: &Path) -> Result<Tally> {
    // Not `advisories`: they are a git repository to fetch, and this command must say the same on any day, offline too.
    let arguments = ["--locked", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"];
    tools::run(Command::new(tools::deny()?).args(arguments).current_dir(root))
        .context("deny.toml says what is allowed and why")?;
    Ok(Tally::default())
}

/// Everything that is tested, built and linted at once.
pub(crate) fn build(root: &Path) -> Result<Tally> {
    tools::c_compiler()?;
    let arguments = ["test", "--locked", "--workspace", "--no-run", "--quiet"];
    tools::run(tools::linting_cargo()?.args(arguments).current_dir(root))?;
    Ok(Tally::default())
}

/// Every test but those of real agents, or those of them that the test runner is told besides.
pub(crate) fn tests(root: &Path, scale: Scale, which: &[&str]) -> Result<Tally> {
    let provider = tools::provider()?;
    tools::shells()?;
    tools::sandbox()?;
    let mut nextest = nextest(root, "all")?;
    nextest.arg("--workspace").args(which).env(tools::PROVIDER_VARIABLE, &provider);
    nextest.envs(counts::variables(scale));
    counted(root, "all", nextest)
}

/// The stories of real agents that a profile of `.config/nextest.toml` chooses, each agent in the version we know. One that
/// cannot be had fails the step: what was not run was not tested.
pub(crate) fn agents(root: &Path, profile: &str) -> Result<Tally> {
    let agents = tools::agents()?;
    let mut nextest = nextest(root, profile)?;
    nextest.arg("--workspace").envs(agents.variables());
    counted(root, profile, nextest)
}

/// The test runner, about to run what a profile chooses.
pub(crate) fn nextest(root: &Path, profile: &str) -> Result<Command> {
    let mut nextest = Command::new(tools::nextest()?);
    nextest.args(["nextest", "run", "--locked", "--profile", profile]).current_dir(root);
    nextest.args(more_tries(std::env::var_os("CI").as_deref()));
    tools::lint(&mut nextest)?;
    Ok(nextest)
}

/// Runs it, and counts the tests by the report it writes.
pub(crate) fn counted(root: &Path, profile: &str, nextest: Command) -> Result<Tally> {
    counted_in(&report(root, profile), nextest)
}

/// Runs something that writes such a report.
fn counted_in(report: &Path, mut runner: Command) -> Result<Tally> {
    // A report of an earlier run must not be taken for this one's.
    if report.exists() {
        std::fs::remove_file(report)?;
    }
    let ended = tools::run(&mut runner);
    let Ok(written) = std::fs::read_to_string(report) else {
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

/// The report of a run of the test runner.
pub(crate) fn report(root: &Path, profile: &str) -> PathBuf {
    target(root).join("nextest").join(profile).join("junit.xml")
}

/// On somebody else's machine, where there is noise, a test may fail once. Here it may not.
fn more_tries(ci: Option<&OsStr>) -> &'static [&'static str] {
    match ci {
        Some(said) if !said.is_empty() && said != "false" => &["--retries", "1"],
        _ => &[],
    }
}

pub(crate) fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), |dir| root.join(dir))
}

/// Reads the totals in the first tag of a JUnit report, which tests failed, and which passed only the second time.
fn count(report: &str) -> Option<Tally> {
    let (_, rest) = report.split_once("<testsuites ")?;
    let tag = rest.split_once('>')?.0;
    let number = |name: &str| -> Option<usize> {
        let (_, value) = tag.split_once(&format!("{name}=\""))?;
        value.split_once('"')?.0.parse().ok()
    };
    let failed = number("failures")? + number("errors")?;
    Some(Tally {
        passed: number("tests")?.checked_sub(failed)?,
        failed,
        broken: named_in(rest, &["<failure", "<error"]),
        // A failure that a later try has made good.
        tried_again: named_in(rest, &["<flakyFailure"]),
        said: String::new(),
    })
}

/// The tests in a JUnit report that have one of these tags.
fn named_in(report: &str, tags: &[&str]) -> Vec<String> {
    let has_one = |case: &&str| tags.iter().any(|tag| case.contains(tag));
    let cases = report.split("<testcase ").skip(1).filter(has_one);
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
pub(crate) fn doc_tests(root: &Path) -> Result<Tally> {
    let house = Repository::read(root)?;
    let packages = examples::packages_with_examples(&house);
    if packages.is_empty() {
        println!("no room has an example in its documentation");
        return Ok(Tally::default());
    }
    let mut cargo = tools::linting_cargo()?;
    cargo.args(["test", "--locked", "--doc"]).current_dir(root);
    for package in packages {
        cargo.args(["--package", package]);
    }
    tools::run(&mut cargo)?;
    Ok(Tally::default())
}

/// Requests made from the contract, against the program as it was built for the tests.
pub(crate) fn http_fuzz(root: &Path, requests: &counts::Requests) -> Result<Tally> {
    build(root)?;
    let said = fuzz::http_fuzz(root, &target(root), requests)?;
    Ok(Tally { said, ..Tally::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_counted() {
        let report = r#"<?xml version="1.0"?><testsuites name="all" tests="9" failures="1" errors="2" uuid="x" time="1"><testsuite tests="3" failures="0"/>"#;
        assert_eq!(count(report), Some(Tally { passed: 6, failed: 3, ..Tally::default() }));
        assert_eq!(count("<testsuites tests=\"x\">"), None);
    }

    #[test]
    fn what_failed_and_what_passed_only_the_second_time_is_named() {
        let written = r#"<testsuites name="all" tests="4" failures="1" errors="0">
            <testsuite name="a::it" tests="4"><testcase name="calm" classname="a::it" time="1"></testcase>
            <testcase name="git::odd" classname="a::it" time="1"><flakyFailure message="no &lt;flakyFailure&gt;"/></testcase>
            <testcase name="git::bad" classname="a::it" time="1"><failure message="no"/></testcase>
            <testcase name="calm too" classname="a::it"><system-out>&lt;flakyFailure &lt;failure</system-out></testcase>"#;
        let tally = count(written).unwrap();
        assert_eq!((tally.passed, tally.failed), (3, 1));
        assert_eq!(
            (tally.broken, tally.tried_again),
            (vec!["a::it git::bad".into()], vec!["a::it git::odd".into()])
        );
    }

    #[test]
    fn a_test_gets_a_second_try_only_where_there_is_noise() {
        assert_eq!(more_tries(Some(OsStr::new("true"))), ["--retries", "1"]);
        for calm in [None, Some(OsStr::new("")), Some(OsStr::new("false"))] {
            assert!(more_tries(calm).is_empty());
        }
    }
}

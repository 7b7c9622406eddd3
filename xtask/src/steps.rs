//! The steps of a test command: in order, with a table of times and one plain line at the end.
//!
//! A [`CheckStep`] is a name and a function; `quick`, `test` and `nightly` each have a table of them. What a step
//! counted is its [`Tally`], what happened so far a [`Report`]. Nothing here knows what a check does.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

pub(crate) struct CheckStep {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Path) -> Result<Tally>,
}

/// The tests that a step ran, and what is to be said about them. Most steps run none.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    /// Those that failed, by name.
    pub(crate) broken: Vec<String>,
    /// Those of the passed that failed the first time.
    pub(crate) tried_again: Vec<String>,
    /// Its findings, in a few words, for the page of the nightly run.
    pub(crate) said: String,
}

/// The steps with these names, in the order of the table; all of them, if none is named.
pub(crate) fn chosen(steps: &'static [CheckStep], only: &[String]) -> Result<Vec<&'static CheckStep>> {
    if let Some(unknown) = only.iter().find(|name| steps.iter().all(|step| step.name != name.as_str())) {
        let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
        bail!("there is no step called {unknown}; the steps are: {}", names.join(", "));
    }
    Ok(steps.iter().filter(|step| only.is_empty() || only.iter().any(|name| name == step.name)).collect())
}

/// Goes through the steps up to the first that fails, and ends the program with its exit code.
pub(crate) fn until_one_fails(steps: &[&CheckStep], root: &Path) -> Result<()> {
    let mut report = Report::default();
    for step in steps {
        if !report.take(step, root) {
            break;
        }
    }
    finish(&report)
}

/// Prints the closing table. Everything is said in it; the exit code is for programs.
pub(crate) fn finish(report: &Report) -> Result<()> {
    print!("{}", report.print());
    match report.failed() {
        true => std::process::exit(1),
        false => Ok(()),
    }
}

/// A step that has ended.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) took: Duration,
    pub(crate) tally: Tally,
    /// Why it failed, if it did.
    pub(crate) failure: Option<String>,
}

/// The report so far.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
}

impl Report {
    /// Runs a step, and says whether it held.
    pub(crate) fn take(&mut self, step: &CheckStep, root: &Path) -> bool {
        println!("\n── {} ──", step.name);
        let began = Instant::now();
        let ended = (step.run)(root);
        self.note(step.name, began.elapsed(), ended)
    }

    fn note(&mut self, name: &'static str, took: Duration, ended: Result<Tally>) -> bool {
        let (tally, failure) = match ended {
            Ok(tally) if tally.failed > 0 => {
                let failure = format!("{} of its tests failed", tally.failed);
                (tally, Some(failure))
            }
            Ok(tally) => (tally, None),
            Err(error) => (Tally::default(), Some(format!("{error:#}"))),
        };
        let held = failure.is_none();
        self.rows.push(Row { name, took, tally, failure });
        held
    }

    pub(crate) fn failed(&self) -> bool {
        self.rows.iter().any(|row| row.failure.is_some())
    }

    /// The plain last line is what programs read, so it counts a failed step that is not a test, too.
    pub(crate) fn last_line(&self) -> String {
        let passed: usize = self.rows.iter().map(|row| row.tally.passed).sum();
        let failed = |row: &Row| if row.failure.is_some() { row.tally.failed.max(1) } else { 0 };
        format!("{passed} passed, {} failed", self.rows.iter().map(failed).sum::<usize>())
    }

    fn print(&self) -> String {
        let mut lines = String::from("\n");
        for row in &self.rows {
            let verdict = if row.failure.is_some() { "FAILED" } else { "ok" };
            lines += &format!("{:<12} {:>7.1} s  {verdict}\n", row.name, row.took.as_secs_f64());
        }
        let total: Duration = self.rows.iter().map(|row| row.took).sum();
        lines += &format!("{:<12} {:>7.1} s\n\n", "together", total.as_secs_f64());
        let again: Vec<&String> = self.rows.iter().flat_map(|row| &row.tally.tried_again).collect();
        for name in &again {
            lines += &format!("passed only when tried again: {name}: look into it\n");
        }
        match again.len() {
            0 => {}
            number => lines += &format!("PASSED ONLY WHEN TRIED AGAIN: {number} of the tests\n\n"),
        }
        for row in &self.rows {
            if let Some(failure) = &row.failure {
                lines += &format!("failed at {}: {failure}\n", row.name);
            }
        }
        lines + &self.last_line() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(ended: Result<Tally>) -> Report {
        let mut report = Report::default();
        report.note("tests", Duration::from_millis(1500), ended);
        report
    }

    #[test]
    fn the_last_line_counts_the_tests() {
        let said = report(Ok(Tally { passed: 7, ..Tally::default() })).print();
        assert_eq!(said, "\ntests            1.5 s  ok\ntogether         1.5 s\n\n7 passed, 0 failed\n");
    }

    #[test]
    fn failed_tests_fail_the_command() {
        let report = report(Ok(Tally { passed: 7, failed: 2, ..Tally::default() }));
        assert!(report.failed());
        assert!(report.print().ends_with("failed at tests: 2 of its tests failed\n7 passed, 2 failed\n"));
    }

    #[test]
    fn a_step_that_fails_is_named_and_counted() {
        let said = report(Err(anyhow::anyhow!("no disk"))).print();
        assert!(said.contains("tests            1.5 s  FAILED\n"), "{said}");
        assert!(said.ends_with("failed at tests: no disk\n0 passed, 1 failed\n"), "{said}");
    }

    #[test]
    fn all_failures_are_told_by_who_goes_on_after_one() {
        let mut report = report(Err(anyhow::anyhow!("no disk")));
        assert!(report.note("agents", Duration::ZERO, Ok(Tally { passed: 3, ..Tally::default() })));
        assert!(!report.note("bench", Duration::ZERO, Err(anyhow::anyhow!("too busy"))));
        let said = report.print();
        assert!(said.contains("failed at tests: no disk\nfailed at bench: too busy\n"), "{said}");
        assert!(said.ends_with("\n3 passed, 2 failed\n"), "{said}");
    }

    #[test]
    fn what_passed_only_when_tried_again_is_told() {
        let tally = Tally { passed: 3, tried_again: vec!["a::it git::odd".into()], ..Tally::default() };
        let said = report(Ok(tally)).print();
        assert!(said.contains("passed only when tried again: a::it git::odd: look into it\n"), "{said}");
        assert!(said.contains("PASSED ONLY WHEN TRIED AGAIN: 1 of"), "{said}");
        assert!(said.ends_with("3 passed, 0 failed\n"), "{said}");
    }

    #[test]
    fn an_unknown_step_is_refused_with_the_names_of_the_known() {
        static STEPS: [CheckStep; 2] = [
            CheckStep { name: "fmt", run: |_| Ok(Tally::default()) },
            CheckStep { name: "clippy", run: |_| Ok(Tally::default()) },
        ];
        let error = chosen(&STEPS, &["speling".into()]).err().unwrap().to_string();
        assert!(error.contains("speling") && error.contains("clippy"), "{error}");
        let names =
            |only: &[String]| chosen(&STEPS, only).unwrap().iter().map(|step| step.name).collect::<Vec<_>>();
        assert_eq!(names(&["clippy".into(), "fmt".into()]), ["fmt", "clippy"]);
        assert_eq!(names(&[]), ["fmt", "clippy"]);
    }
}

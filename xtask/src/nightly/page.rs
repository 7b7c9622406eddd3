//! docs/nightly.md: a line for each part, with the time and the commit of its last run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{PARTS, how_much};
use crate::bench::figure::machine;
use crate::steps::{Report, Row};

/// When this run began, and on what.
pub(super) struct Run {
    date: String,
    commit: String,
}

impl Run {
    pub(super) fn now(root: &Path) -> Result<Self> {
        let date = printed(Command::new("date").args(["-u", "+%Y-%m-%d %H:%M"]))?;
        Ok(Self { date, commit: commit(root)? })
    }
}

/// The state of the checkout: its commit, and whether something is changed.
pub(crate) fn commit(root: &Path) -> Result<String> {
    let git = |arguments: &[&str]| printed(Command::new("git").args(arguments).current_dir(root));
    let commit = git(&["rev-parse", "--short=10", "HEAD"])?;
    // The page itself, and that of the bench, are written while we run.
    let changed = git(&["status", "--porcelain", "--", ".", ":!docs/nightly.md", ":!docs/performance.md"])?;
    Ok(if changed.is_empty() { commit } else { format!("{commit} and changes") })
}

fn printed(command: &mut Command) -> Result<String> {
    let output =
        command.output().with_context(|| format!("{:?} could not be started", command.get_program()))?;
    ensure!(output.status.success(), "{:?} ended with {}", command.get_program(), output.status);
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

fn path(root: &Path) -> PathBuf {
    root.join("docs/nightly.md")
}

pub(super) fn read(root: &Path) -> String {
    fs::read_to_string(path(root)).unwrap_or_default()
}

pub(super) fn write(root: &Path, run: &Run, report: &Report) -> Result<()> {
    Ok(fs::write(path(root), print(run, report, &read(root)))?)
}

const HEAD: &str =
    "| Part | How much | Took | | What it said | When (UTC) | Commit |\n|---|---|---|---|---|---|---|\n";

/// The page after this run; parts that did not run keep the line they had.
fn print(run: &Run, report: &Report, before: &str) -> String {
    let lines = PARTS.iter().map(|part| match report.rows.iter().find(|row| row.name == part.name) {
        Some(row) => line(run, row),
        None => kept(part.name, before),
    });
    let table: String = lines.collect();
    format!(
        "# Nightly\n\nWritten by `cargo xtask nightly`: every count in full, each part with its last run. Which check is where, and \
         what it costs:\n[decision 0017](decisions/0017-three-test-commands.md).\n\nThe last run began on {} (UTC), with commit \
         {}, on {}: {}.\n\n{HEAD}{table}",
        run.date,
        run.commit,
        machine(),
        report.last_line(),
    )
}

fn line(run: &Run, row: &Row) -> String {
    let verdict = if row.failure.is_some() { "**FAILED**" } else { "ok" };
    let cells = [
        row.name.to_owned(),
        how_much(row.name),
        took(row.took),
        verdict.into(),
        said(row),
        run.date.clone(),
        run.commit.clone(),
    ];
    format!("| {} |\n", cells.map(|cell| in_a_cell(&cell)).join(" | "))
}

fn kept(part: &str, before: &str) -> String {
    let begin = format!("| {part} |");
    match before.lines().find(|line| line.starts_with(&begin)) {
        Some(line) => format!("{line}\n"),
        None => format!("| {part} | {} | | never run | | | |\n", how_much(part)),
    }
}

fn said(row: &Row) -> String {
    let tally = &row.tally;
    let mut said = Vec::new();
    if tally.passed + tally.failed > 0 {
        said.push(format!("{} passed, {} failed", tally.passed, tally.failed));
    }
    said.extend((!tally.said.is_empty()).then(|| tally.said.clone()));
    match (&row.failure, tally.broken.is_empty()) {
        (Some(_), false) => said.push(format!("failed: {}", tally.broken.join(", "))),
        (Some(failure), true) => said.push(failure.clone()),
        (None, _) => {}
    }
    if !tally.tried_again.is_empty() {
        said.push(format!("passed only when tried again: {}", tally.tried_again.join(", ")));
    }
    said.join("; ")
}

/// Longer than this nobody reads in a table, and everything was printed.
const CELL_MAX: usize = 600;

fn in_a_cell(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "/");
    match one_line.chars().count() > CELL_MAX {
        true => one_line.chars().take(CELL_MAX).chain(['…']).collect(),
        false => one_line,
    }
}

fn took(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds => format!("{} min", (seconds + 30) / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::Tally;

    fn run() -> Run {
        Run { date: "2030-01-02 03:04".into(), commit: "0123456789".into() }
    }

    fn row(name: &'static str, tally: Tally, failure: Option<&str>) -> Row {
        Row { name, took: Duration::from_secs(90), tally, failure: failure.map(str::to_owned) }
    }

    #[test]
    fn a_failed_part_is_told_with_its_tests_and_the_others_keep_their_lines() {
        let first =
            Report { rows: vec![row("sim", Tally { said: "20 seeds".into(), ..Tally::default() }, None)] };
        let page = print(&run(), &first, "");
        assert!(
            page.contains("| sim | 20,000 seeds, and every planted bug | 90 s | ok | 20 seeds | 2030"),
            "{page}"
        );
        assert!(page.contains("| agents | ") && page.contains("| never run |"), "{page}");
        let tally = Tally { passed: 3, failed: 1, broken: vec!["a::it b".into()], ..Tally::default() };
        let later = Run { date: "2030-01-03 03:04".into(), commit: "9876543210".into() };
        let second = Report { rows: vec![row("tests", tally, Some("1 of its tests failed"))] };
        let page = print(&later, &second, &page);
        assert!(page.contains("| **FAILED** | 3 passed, 1 failed; failed: a::it b | 2030-01-03"), "{page}");
        assert!(page.contains("| 20 seeds | 2030-01-02 03:04 | 0123456789 |\n"), "{page}");
        assert!(
            page.contains("with commit 9876543210") && page.contains(": 3 passed, 1 failed.\n"),
            "{page}"
        );
    }

    #[test]
    fn a_long_failure_stays_one_cell() {
        let failed = row("bench", Tally::default(), Some(&format!("a\n| b {}", "c".repeat(1_000))));
        let line = line(&run(), &failed);
        assert_eq!(line.matches('|').count(), 8, "{line}");
        assert!(line.chars().count() < 800 && line.contains("a / b ccc"), "{line}");
    }

    #[test]
    fn every_part_has_a_line_once() {
        let page = print(&run(), &Report { rows: Vec::new() }, "");
        for part in PARTS {
            assert_eq!(page.matches(&format!("| {} |", part.name)).count(), 1, "{}", part.name);
        }
    }
}

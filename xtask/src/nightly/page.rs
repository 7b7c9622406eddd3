//! docs/nightly.md: a line for each part, with the time and the commit of its last run, and below the table a list for each that has
//! more to say than a line holds.

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
    let lists = PARTS.iter().map(|part| match report.rows.iter().find(|row| row.name == part.name) {
        Some(row) => list(row),
        None => kept_list(part.name, before),
    });
    let lists: String = lists.collect();
    format!(
        "# Nightly\n\nWritten by `cargo xtask nightly`: every count in full, each part with its last run. Which check is where, and \
         what it costs:\n[decision 0017](decisions/0017-three-test-commands.md).\n\nThe last run began on {} (UTC), with commit \
         {}, on {}: {}.\n\n{HEAD}{table}{lists}",
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
        in_short(row),
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

/// Longer than this nobody reads in a table.
const CELL_MAX: usize = 240;
/// The most that one line of a list has, and a list has lines. Everything was printed.
const LINE_MAX: usize = 2_000;
const LINES_MAX: usize = 100;

/// All that a part said, one after another.
fn said(row: &Row) -> Vec<String> {
    let tally = &row.tally;
    let mut said = Vec::new();
    if tally.passed + tally.failed > 0 {
        said.push(format!("{} passed, {} failed", tally.passed, tally.failed));
    }
    match (&row.failure, tally.broken.is_empty()) {
        (Some(_), false) => said.push(format!("failed: {}", tally.broken.join(", "))),
        (Some(failure), true) => said.push(failure.clone()),
        (None, _) => {}
    }
    if !tally.tried_again.is_empty() {
        said.push(format!("passed only when tried again: {}", tally.tried_again.join(", ")));
    }
    said.extend(tally.said.split("; ").filter(|words| !words.is_empty()).map(str::to_owned));
    said
}

/// All of it, or what came of the tests, and where the rest is.
fn in_short(row: &Row) -> String {
    let said = said(row);
    let whole = said.join("; ");
    if whole.chars().count() <= CELL_MAX {
        return whole;
    }
    let first = said.first().filter(|first| first.chars().count() <= CELL_MAX);
    let below = format!("[below](#{})", row.name.replace(' ', "-"));
    first.into_iter().cloned().chain([below]).collect::<Vec<_>>().join("; ")
}

fn title(part: &str) -> String {
    format!("\n## {part}\n\n")
}

/// The list of a part that said too much for its line in the table.
fn list(row: &Row) -> String {
    let said = said(row);
    if said.join("; ").chars().count() <= CELL_MAX {
        return String::new();
    }
    let more = said.len().saturating_sub(LINES_MAX);
    let lines = said.iter().take(LINES_MAX).map(|words| format!("- {}\n", in_a_line(words)));
    let lines: String = lines.collect();
    let more = if more > 0 { format!("- and {more} more\n") } else { String::new() };
    format!("{}{lines}{more}", title(row.name))
}

/// The list of a part that did not run this time.
fn kept_list(part: &str, before: &str) -> String {
    let title = title(part);
    let Some((_, list)) = before.split_once(&title) else { return String::new() };
    let list = list.split_once("\n## ").map_or(list, |(list, _)| list);
    format!("{title}{}\n", list.trim_end())
}

fn in_a_line(text: &str) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match one_line.chars().count() > LINE_MAX {
        true => one_line.chars().take(LINE_MAX).chain(['…']).collect(),
        false => one_line,
    }
}

fn in_a_cell(text: &str) -> String {
    in_a_line(text).replace('|', "/")
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
    fn a_long_failure_stays_one_cell_and_is_told_below() {
        let failed = row("bench", Tally::default(), Some(&format!("a\n| b {}", "c".repeat(1_000))));
        let line = line(&run(), &failed);
        assert_eq!(line.matches('|').count(), 8, "{line}");
        assert!(line.chars().count() < 400 && line.contains("| [below](#bench) |"), "{line}");
        let page = print(&run(), &Report { rows: vec![failed] }, "");
        assert!(page.ends_with(&format!("\n\n## bench\n\n- a | b {}\n", "c".repeat(1_000))), "{page}");
    }

    #[test]
    fn no_figure_is_lost_and_a_list_is_kept_until_its_part_runs_again() {
        let figures: Vec<String> = (0..60).map(|number| format!("figure {number} is so long")).collect();
        let tally = Tally { passed: 3, said: figures.join("; "), ..Tally::default() };
        let first = Report { rows: vec![row("ground", tally.clone(), None), row("tests", tally, None)] };
        let page = print(&run(), &first, "");
        assert!(page.contains("| ok | 3 passed, 0 failed; [below](#ground) |"), "{page}");
        for figure in &figures {
            assert_eq!(page.matches(&format!("- {figure}\n")).count(), 2, "{figure}: {page}");
        }
        let short = Tally { passed: 4, said: "one figure".into(), ..Tally::default() };
        let second = print(&run(), &Report { rows: vec![row("tests", short, None)] }, &page);
        assert!(
            second.contains("4 passed, 0 failed; one figure |") && !second.contains("## tests"),
            "{second}"
        );
        let list = |page: &str| page.split_once("\n## ground\n").map(|(_, list)| list.trim_end().to_owned());
        assert_eq!(list(&second), list(&page));
        assert!(list(&second).is_some_and(|list| list.ends_with(&figures[59])), "{second}");
        // It does not grow with each night.
        assert_eq!(print(&run(), &Report { rows: Vec::new() }, &second).matches("## ground").count(), 1);
    }

    #[test]
    fn a_list_is_bounded_and_says_how_much_is_missing() {
        let figures = (0..LINES_MAX + 7).map(|number| format!("{number} {}", "x".repeat(3 * LINE_MAX)));
        let tally = Tally { said: figures.collect::<Vec<_>>().join("; "), ..Tally::default() };
        let list = list(&row("ground", tally, None));
        assert!(list.ends_with("\n- and 7 more\n"), "{list}");
        assert!(list.chars().count() < (LINES_MAX + 3) * (LINE_MAX + 8));
    }

    #[test]
    fn every_part_has_a_line_once() {
        let page = print(&run(), &Report { rows: Vec::new() }, "");
        for part in PARTS {
            assert_eq!(page.matches(&format!("| {} |", part.name)).count(), 1, "{}", part.name);
        }
    }
}

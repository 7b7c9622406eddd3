//! Figures: medians, how they are written, the table, and the page it goes into.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

/// One line of the table.
pub(crate) struct Figure {
    what: String,
    ours: String,
    limit: String,
    ratio: String,
    aim: Option<Aim>,
}

struct Aim {
    words: String,
    met: bool,
}

impl Figure {
    pub(crate) fn new(what: impl Into<String>, ours: impl Into<String>) -> Self {
        let none = String::new;
        Self { what: what.into(), ours: ours.into(), limit: none(), ratio: none(), aim: None }
    }

    /// Beside this limit, of which ours is so many times as much.
    pub(crate) fn beside(mut self, limit: impl Into<String>, ratio: f64) -> Self {
        self.limit = limit.into();
        self.ratio = if ratio.is_finite() { format!("{ratio:.2} ×") } else { String::new() };
        self
    }

    pub(crate) fn aim(mut self, words: impl Into<String>, met: bool) -> Self {
        self.aim = Some(Aim { words: words.into(), met });
        self
    }

    /// Itself in a few words, if it misses its aim.
    pub(crate) fn missed(&self) -> Option<String> {
        let aim = self.aim.as_ref().filter(|aim| !aim.met)?;
        let than = if self.ratio.is_empty() { &self.ours } else { &self.ratio };
        Some(format!("{}: {than}, not {}", self.what, aim.words))
    }

    fn cells(&self, name: &str) -> [String; 7] {
        let (aim, met) = match &self.aim {
            Some(aim) => (aim.words.clone(), if aim.met { "met" } else { "**missed**" }),
            None => (String::new(), ""),
        };
        let own = |text: &String| text.clone();
        [
            name.to_owned(),
            own(&self.what),
            own(&self.ours),
            own(&self.limit),
            own(&self.ratio),
            aim,
            met.to_owned(),
        ]
    }
}

const HEAD: [&str; 7] = ["", "figure", "ours", "limit or peer", "ratio", "aim", ""];

/// The table as Markdown, with columns as wide as they need to be.
pub(crate) fn print(table: &[(&str, Figure)]) -> String {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(table.iter().map(|(name, figure)| figure.cells(name)));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    let line = |row: &[String; 7]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!(" {cell:<width$} |"));
        format!("|{}\n", cells.collect::<String>())
    };
    let rule = format!("|{}\n", widths.map(|width| format!("{}|", "-".repeat(width + 2))).concat());
    let mut lines = rows.iter().map(line);
    lines.next().expect("the head") + &rule + &lines.collect::<String>()
}

/// The lines between which the page has its figures; all else in it is written by people.
const MARKS: (&str, &str) = ("<!-- figures: written by `cargo xtask bench` -->\n", "<!-- end of figures -->");

pub(crate) fn write_page(root: &Path, table: &[(&str, Figure)], rounds: usize, busy: f64) -> Result<()> {
    let path = root.join("docs/performance.md");
    let page = fs::read_to_string(&path)?;
    let others = format!("others used {:.0} % of it when the run began", busy * 100.0);
    let of = crate::nightly::page::commit(root)?;
    let figures =
        format!("Medians of {rounds} rounds on {}, of commit {of}; {others}.\n\n{}", machine(), print(table));
    fs::write(&path, replace(&page, &figures).context("docs/performance.md has lost its marks")?)?;
    Ok(())
}

fn replace(page: &str, figures: &str) -> Option<String> {
    let (before, rest) = page.split_once(MARKS.0)?;
    let (_, after) = rest.split_once(MARKS.1)?;
    Some(format!("{before}{}\n{figures}\n{}{after}", MARKS.0, MARKS.1))
}

/// The machine, without its name.
pub(crate) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let virtual_one = fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains(" hypervisor"));
    format!("a {cores}-core {}machine", if virtual_one { "virtual " } else { "" })
}

/// Measurements by name, one per round.
#[derive(Default)]
pub(crate) struct Rounds(Vec<(String, Vec<f64>)>);

impl Rounds {
    pub(crate) fn note(&mut self, name: impl Into<String>, value: f64) {
        let name = name.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => self.0.push((name, vec![value])),
        }
    }

    /// Takes members of a JSON object, each under `PREFIX.MEMBER`.
    pub(crate) fn note_all(&mut self, prefix: &str, from: &Value, members: &[&str]) -> Result<()> {
        for member in members {
            let value = from[member].as_f64().with_context(|| format!("{prefix} has no {member}: {from}"))?;
            self.note(format!("{prefix}.{member}"), value);
        }
        Ok(())
    }

    /// The middle one.
    pub(crate) fn median(&self, name: &str) -> f64 {
        let (_, values) =
            self.0.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no {name}"));
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }
}

/// Microseconds, for people.
pub(crate) fn time(us: f64) -> String {
    match us {
        us if us < 1_000.0 => format!("{us:.0} µs"),
        us if us < 10_000.0 => format!("{:.2} ms", us / 1e3),
        us => format!("{:.1} ms", us / 1e3),
    }
}

pub(crate) fn both(p50: f64, p99: f64) -> String {
    format!("{} / {}", time(p50), time(p99))
}

pub(crate) fn rate(per_second: f64) -> String {
    format!("{}/s", count(per_second))
}

/// A whole number with its thousands set apart.
pub(crate) fn count(number: f64) -> String {
    let digits = format!("{number:.0}");
    let groups = digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).expect("digits"));
    groups.collect::<Vec<_>>().join(",")
}

pub(crate) fn megabytes(bytes: f64) -> String {
    format!("{:.1} MB", bytes / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        let mut rounds = Rounds::default();
        for value in [5.0, 1.0, 9.0] {
            rounds.note("a", value);
        }
        assert_eq!(rounds.median("a"), 5.0);
    }

    #[test]
    fn figures_are_written_for_people() {
        assert_eq!([time(12.4), time(1_234.0), time(45_678.0)], ["12 µs", "1.23 ms", "45.7 ms"]);
        assert_eq!([rate(7.2), rate(1_234.0), rate(1_234_567.0)], ["7/s", "1,234/s", "1,234,567/s"]);
    }

    #[test]
    fn a_page_keeps_what_people_wrote() {
        let page = format!("# Title\n{}old\n{}\nwhy\n", MARKS.0, MARKS.1);
        let written = replace(&page, "new").unwrap();
        assert!(written.starts_with("# Title\n") && written.ends_with("\nwhy\n"), "{written}");
        assert!(written.contains("new") && !written.contains("old"), "{written}");
        assert_eq!(replace(&written, "new"), Some(written));
        assert_eq!(replace("no marks", "new"), None);
    }

    #[test]
    fn a_missed_aim_stands_out() {
        let figure = Figure::new("accepts", "10/s").beside("30/s", 1.0 / 3.0).aim("≥ 0.50 ×", false);
        assert_eq!(figure.missed().as_deref(), Some("accepts: 0.33 ×, not ≥ 0.50 ×"));
        let table = print(&[("accepts", figure)]);
        assert!(table.ends_with("| 30/s          | 0.33 × | ≥ 0.50 × | **missed** |\n"), "{table}");
    }
}

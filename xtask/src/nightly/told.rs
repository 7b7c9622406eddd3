//! The figures that tests say of themselves: lines of their output that begin with a mark, as the test runner's report has them.
//!
//! A line `counted: kill points of undo: 23` is added up with all others of its kind, and named by its operation; any other one is
//! said as it is.

use std::path::Path;

use anyhow::{Context, Result};

/// A line of a test's output that is for the page begins so.
const MARK: &str = "counted: ";
/// A figure begins so if it is the number of points at which an operation was ended.
const KILL_POINTS: &str = "kill points of ";

/// The figures of one run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ToldFigures {
    /// Operations, and at how many points each was ended, in the order of their names.
    points: Vec<(String, u64)>,
    others: Vec<String>,
}

/// The figures in a report.
pub(super) fn read(report: &Path) -> Result<ToldFigures> {
    let written = std::fs::read_to_string(report).with_context(|| report.display().to_string())?;
    Ok(ToldFigures::of(&written))
}

impl ToldFigures {
    fn of(report: &str) -> Self {
        let mut figures = Self::default();
        let said = report.lines().filter_map(|line| line.split_once(MARK));
        for words in said.map(|(_, words)| plain(words)) {
            match words.strip_prefix(KILL_POINTS).and_then(|words| words.rsplit_once(": ")) {
                Some((operation, count)) => {
                    figures.points.push((operation.to_owned(), count.trim().parse().unwrap_or(0)));
                }
                None => figures.others.push(words),
            }
        }
        figures.points.sort();
        figures.others.sort();
        figures
    }

    /// The points of all operations together.
    pub(super) fn kill_points(&self) -> u64 {
        self.points.iter().map(|(_, count)| count).sum()
    }

    /// All of them, in a line.
    pub(super) fn words(&self) -> String {
        let each: Vec<_> = self.points.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let points = format!("{} kill points ({})", self.kill_points(), each.join(", "));
        let points = (!each.is_empty()).then_some(points);
        points.into_iter().chain(self.others.iter().cloned()).collect::<Vec<_>>().join("; ")
    }
}

/// The text as it was before it stood in a report.
fn plain(words: &str) -> String {
    let words = words.split_once("</system-out>").map_or(words, |(words, _)| words);
    let words = words.trim_end().trim_end_matches("]]>");
    words
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_added_up_and_everything_else_is_said_as_it_is() {
        let report = "<system-out>running 1 test\ncounted: kill points of undo: 23\nnot counted\n\
                      counted: kill points of enter, at moments: 7\ncounted: the server&apos;s p99 &lt; 5 ms</system-out>\n";
        let told = ToldFigures::of(report);
        assert_eq!(told.kill_points(), 30);
        assert_eq!(told.words(), "30 kill points (enter, at moments 7, undo 23); the server's p99 < 5 ms");
        assert_eq!(ToldFigures::of("counted: p99 1 ms\ncounted: 2 kB\n").words(), "2 kB; p99 1 ms");
    }
}

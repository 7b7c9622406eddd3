//! A table of docs/agents.md that tests make: a column for each agent, a row for each thing that was seen.
//!
//! Each test knows its own cells and compares them with what is written. With `UPDATE_EXPECT=1` it writes them instead;
//! a file lock sees to it that tests that run at the same time do not write over each other.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::RealAgent;

/// The text of a cell that nobody has filled.
const NOTHING: &str = "?";

/// One of the tables, between two lines of the page.
#[derive(Debug, Clone)]
pub struct AgentsTable {
    /// The line before it.
    pub begin: &'static str,
    /// The line after it.
    pub end: &'static str,
    /// Its rows, in order.
    pub rows: Vec<String>,
}

/// Cells by row and agent.
type Cells = BTreeMap<(String, &'static str), String>;

impl AgentsTable {
    /// Compares what was seen of that agent with the table, or writes it there.
    #[track_caller]
    pub fn check(&self, agent: RealAgent, seen: &[(String, String)]) {
        if std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1") {
            return self.write(agent, seen);
        }
        let cells = self.cells(&read());
        for (row, seen) in seen {
            let written = cells.get(&(row.clone(), agent.name())).map_or(NOTHING, String::as_str);
            assert_eq!(
                written,
                seen,
                "docs/agents.md says otherwise of {} under {row:?}; if it is right as it is, run `UPDATE_EXPECT=1 cargo xtask \
                 nightly --only agents` and look at the difference",
                agent.name()
            );
        }
    }

    /// Panics unless the page has every row in its order, and something in each cell.
    #[track_caller]
    pub fn assert_complete(&self) {
        let text = read();
        let cells = self.cells(&text);
        assert!(text.contains(&self.print(&cells)), "rows are missing, superfluous or in another order");
        let empty: Vec<_> =
            cells.iter().filter(|(_, cell)| *cell == NOTHING).map(|(place, _)| place).collect();
        assert!(empty.is_empty(), "nobody has seen these: {empty:?}");
    }

    fn write(&self, agent: RealAgent, seen: &[(String, String)]) {
        let lock = File::create(std::env::temp_dir().join("homing-agents-table.lock")).expect("a lock file");
        lock.lock().expect("the lock can be had");
        let text = read();
        let mut cells = self.cells(&text);
        for (row, seen) in seen {
            cells.insert((row.clone(), agent.name()), seen.replace('|', "/"));
        }
        let (before, rest) = text.split_once(self.begin).expect("the page has a place for the table");
        let (_, after) = rest.split_once(self.end).expect("the table has an end");
        let whole = format!("{before}{}\n\n{}\n{}{after}", self.begin, self.print(&cells), self.end);
        let new = page().with_extension("new");
        fs::write(&new, whole).expect("the page can be written");
        fs::rename(new, page()).expect("the page can be replaced");
    }

    fn print(&self, cells: &Cells) -> String {
        let names = RealAgent::ALL.map(RealAgent::name);
        let mut table = format!("| | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
        for row in &self.rows {
            let cell = |name| cells.get(&(row.clone(), name)).map_or(NOTHING, String::as_str);
            table += &format!("| {row} | {} |\n", names.map(cell).join(" | "));
        }
        table
    }

    fn cells(&self, text: &str) -> Cells {
        let mut cells = Cells::new();
        let table = text.split_once(self.begin).and_then(|(_, rest)| rest.split_once(self.end));
        let table = table.map_or("", |(table, _)| table);
        for line in table.lines().filter(|line| line.starts_with("| ")).skip(1) {
            let mut parts = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned());
            let row = parts.next().unwrap_or_default();
            for (agent, cell) in RealAgent::ALL.into_iter().zip(parts) {
                cells.insert((row.clone(), agent.name()), cell);
            }
        }
        cells
    }
}

/// The name that a table has for a story.
pub fn row_of(story: &str) -> String {
    story.replace('_', " ")
}

fn read() -> String {
    fs::read_to_string(page()).expect("there is the page")
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/agents.md")
}

//! The table of docs/agents.md that the stories make: a column for each agent, a row for each fact and each story.
//!
//! Each test knows its own cells and compares them with what is written. With `UPDATE_EXPECT=1` it writes them instead;
//! a file lock sees to it that tests that run at the same time do not write over each other.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use agent::conformance::{FACTS, STORIES};
use testkit::RealAgent;

const BEGIN: &str =
    "<!-- What the tests saw; `UPDATE_EXPECT=1 cargo xtask nightly --only agents` writes it. -->";
const END: &str = "<!-- End of what the tests saw. -->";
/// The text of a cell that nobody has filled.
const NOTHING: &str = "?";

/// Cells by row and agent.
type Cells = BTreeMap<(String, &'static str), String>;

/// Compares what was seen of that agent with the table, or writes it there.
pub(crate) fn check(agent: RealAgent, seen: &[(String, String)]) {
    if std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1") {
        return write(agent, seen);
    }
    let cells = cells(&read());
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

/// The table's name for a story.
pub(crate) fn row_of(story: &str) -> String {
    story.replace('_', " ")
}

fn rows() -> Vec<String> {
    let facts = FACTS.iter().map(|(fact, _)| (*fact).to_owned());
    let known = ["version", "abilities", "when its input ends"].map(str::to_owned);
    known.into_iter().chain(facts).chain(STORIES.iter().map(|story| row_of(story))).collect()
}

fn write(agent: RealAgent, seen: &[(String, String)]) {
    let lock = File::create(std::env::temp_dir().join("homing-agents-table.lock")).unwrap();
    lock.lock().unwrap();
    let text = read();
    let mut cells = cells(&text);
    for (row, seen) in seen {
        cells.insert((row.clone(), agent.name()), seen.replace('|', "/"));
    }
    let (before, rest) = text.split_once(BEGIN).expect("the page has a place for the table");
    let (_, after) = rest.split_once(END).expect("the table has an end");
    let whole = format!("{before}{BEGIN}\n\n{}\n{END}{after}", print(&cells));
    let new = page().with_extension("new");
    fs::write(&new, whole).unwrap();
    fs::rename(new, page()).unwrap();
}

fn print(cells: &Cells) -> String {
    let names = RealAgent::ALL.map(RealAgent::name);
    let mut table = format!("| | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
    for row in rows() {
        let cell = |name| cells.get(&(row.clone(), name)).map_or(NOTHING, String::as_str);
        table += &format!("| {row} | {} |\n", names.map(cell).join(" | "));
    }
    table
}

fn cells(text: &str) -> Cells {
    let mut cells = Cells::new();
    let table =
        text.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END)).map_or("", |(table, _)| table);
    for line in table.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let mut parts = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned());
        let row = parts.next().unwrap_or_default();
        for (agent, cell) in RealAgent::ALL.into_iter().zip(parts) {
            cells.insert((row.clone(), agent.name()), cell);
        }
    }
    cells
}

fn read() -> String {
    fs::read_to_string(page()).unwrap()
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/agents.md")
}

#[test]
fn the_table_has_every_row_and_no_empty_cell() {
    let text = read();
    let cells = cells(&text);
    assert!(text.contains(&print(&cells)), "rows are missing, superfluous or in another order");
    let empty: Vec<_> = cells.iter().filter(|(_, cell)| *cell == NOTHING).map(|(place, _)| place).collect();
    assert!(empty.is_empty(), "nobody has seen these: {empty:?}");
}

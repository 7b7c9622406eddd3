//! The table of docs/agents.md that the drivers' stories make: a row for each fact and each story.

use agent::conformance::{FACTS, STORIES};
use testkit::{AgentsTable, RealAgent};

pub(crate) use testkit::row_of;

/// The things that go along with a message.
const ATTACHED: [&str; 2] = ["an image", "a PDF file"];

/// Compares what was seen of that agent with the table, or writes it there.
pub(crate) fn check(agent: RealAgent, seen: &[(String, String)]) {
    table().check(agent, seen);
}

/// The table's row for what becomes of such a thing that goes along with a message.
pub(crate) fn goes_along(what: &str) -> String {
    format!("{what} goes along")
}

fn table() -> AgentsTable {
    let facts = FACTS.iter().map(|(fact, _)| (*fact).to_owned());
    let known = ["version", "abilities", "when its input ends"].map(str::to_owned);
    let attached = ATTACHED.map(goes_along);
    AgentsTable {
        begin: "<!-- What the tests saw; `UPDATE_EXPECT=1 cargo xtask nightly --only agents` writes it. -->",
        end: "<!-- End of what the tests saw. -->",
        rows: known
            .into_iter()
            .chain(attached)
            .chain(facts)
            .chain(STORIES.iter().map(|story| row_of(story)))
            .collect(),
    }
}

#[test]
fn the_table_has_every_row_and_no_empty_cell() {
    table().assert_complete();
}

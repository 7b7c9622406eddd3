//! The table of docs/agents.md that the drivers' stories make: a row for each fact and each story.

use agent::conformance::{FACTS, STORIES};
use testkit::{AgentsTable, RealAgent};

pub(crate) use testkit::row_of;

/// Compares what was seen of that agent with the table, or writes it there.
pub(crate) fn check(agent: RealAgent, seen: &[(String, String)]) {
    table().check(agent, seen);
}

fn table() -> AgentsTable {
    let facts = FACTS.iter().map(|(fact, _)| (*fact).to_owned());
    let known = ["version", "abilities", "when its input ends"].map(str::to_owned);
    AgentsTable {
        begin: "<!-- What the tests saw; `UPDATE_EXPECT=1 cargo xtask nightly --only agents` writes it. -->",
        end: "<!-- End of what the tests saw. -->",
        rows: known.into_iter().chain(facts).chain(STORIES.iter().map(|story| row_of(story))).collect(),
    }
}

#[test]
fn the_table_has_every_row_and_no_empty_cell() {
    table().assert_complete();
}

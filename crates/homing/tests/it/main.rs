//! The whole product from outside: the real binary, real SQLite, real processes, ports and directories of its own.
//!
//! `agents` is which agents there are, `versions` how old they may be, `agent_words` what they cannot take, `talking` what people do, `meant` which session they mean, `told` what they are told, `terminal` what they see while they do, `recording` a newcomer's first hour as it looks, `guide` whether docs/guide.md is true (both in a `shell`), `stopping` how turns and sessions end, `background` what turns leave running, `serving` how
//! servers come and go, `running` how they do without a terminal, `network` how they are reached from elsewhere, `names` what one can type for a session, `completing` what a shell offers for it, `people` a team's story, `caring` what keeps a machine
//! well, `bounded` what one person may take of it, `scope` and `scope_kill` where sessions act (in the `yard` of a real repository), `hostile` and `flood` what bad input may do, `attacks` where secrets are looked for, `swapped` where links may not lead us, `ground` and `liars` what a repository may not bring about, `audited` whether the record of it
//! all can be trusted, `kill` and `orphans` what is left when something dies, `wall` what agents cannot reach, `tries` how often that is tried, `listed` what a team's agents see, `looks` what their programs get that are asked for their version, `worktrees` what becomes of theirs,
//! `imported` how conversations move between servers, `before` what a database of an earlier version answers. Nothing here
//! knows a type of ours; the kit in `testkit` starts, asks and cleans up.

mod agent_words;
mod agents;
mod approving;
mod attacks;
mod audited;
mod background;
mod before;
mod bounded;
mod caring;
mod completing;
mod cut_points;
mod failing;
mod flood;
mod ground;
mod guide;
mod hostile;
mod imported;
mod kill;
mod liars;
mod listed;
mod looks;
mod meant;
mod mistyped;
mod names;
mod network;
mod orphans;
mod outbox;
mod people;
mod real;
mod recording;
mod remembered;
mod routing;
mod running;
mod scope;
mod scope_kill;
mod serving;
mod shapes;
mod shell;
mod signing_in;
mod stopping;
mod swapped;
mod talking;
mod terminal;
mod tidied;
mod told;
mod tries;
mod versions;
mod wall;
mod worktrees;
mod yard;

use serde_json::Value;
use testkit::{Homing, Setup};

/// The binary under test.
const EXE: &str = env!("CARGO_BIN_EXE_homing");

fn homing() -> Homing {
    Homing::start(EXE)
}

fn setup() -> Setup {
    Setup::new(EXE)
}

/// The number of times a test does something: as the environment says, or so often. `xtask/src/counts.rs` has all of
/// them.
fn count(name: &str, or: u64) -> u64 {
    std::env::var(name).map_or(or, |value| value.parse().expect("a number"))
}

/// Says a figure that the page of the nightly run has: it reads the lines that begin so.
fn counted(words: impl std::fmt::Display) {
    println!("counted: {words}");
}

/// The sessions that a list shows.
#[track_caller]
fn sessions(homing: &Homing, arguments: &[&str]) -> Vec<Value> {
    let page = homing.run(&[&["ls", "--json"], arguments].concat()).json(0);
    page["items"].as_array().expect("a page has items").clone()
}

/// A text in an object.
#[track_caller]
fn text(object: &Value, name: &str) -> String {
    object[name].as_str().unwrap_or_else(|| panic!("no {name} in {object}")).to_owned()
}

/// The last line of what was printed.
fn last_line(printed: &str) -> &str {
    printed.lines().last().unwrap_or_default()
}

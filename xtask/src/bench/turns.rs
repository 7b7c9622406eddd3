//! Our share in a turn of an agent that is up: from the receipt to the words on its input, and from its first word to a
//! reader.

use anyhow::{Context, Result};

use super::figure::{Figure, Rounds, both};
use super::place::Bench;

const COUNT: &str = "100";
/// The most that we may add on either way.
const ADDED_US_MAX: f64 = 5_000.0;

pub(crate) fn take(bench: &Bench) -> Result<Vec<Figure>> {
    let agent = bench.example("clock-agent");
    let program = agent.get_program().to_str().context("a path that is text")?;
    let config = format!("log = \"warn\"\n[agents.clock]\nkind = \"acp\"\nprogram = {program:?}\n");
    let server = bench.serve("turns", &config)?;
    let mut rounds = Rounds::default();
    for _ in 0..bench.rounds {
        let took = bench.load(&server, "turns", &[("agent", "clock"), ("count", COUNT)])?;
        rounds.note_all("there", &took["there"], &["p50_us", "p99_us"])?;
        rounds.note_all("back", &took["back"], &["p50_us", "p99_us"])?;
    }
    let figure = |what: &str, name: &str| {
        let (p50, p99) = (rounds.median(&format!("{name}.p50_us")), rounds.median(&format!("{name}.p99_us")));
        Figure::new(format!("{what}, p50 / p99"), both(p50, p99)).aim("≤ 5 ms", p50 <= ADDED_US_MAX)
    };
    Ok(vec![
        figure("message accepted → on the input of an agent that is up", "there"),
        figure("agent's first word → at a reader", "back"),
    ])
}

//! A turn of a real agent that is kept between turns: through us, beside the same program with nothing in between.

use anyhow::{Context, Result};

use super::figure::{Figure, Rounds, time};
use super::place::Bench;
use crate::tools;

const COUNT: &str = "20";
/// The most that a turn through us may take of a bare one.
const RATIO_MAX: f64 = 1.15;

pub(crate) fn take(bench: &Bench) -> Result<Vec<Figure>> {
    tools::agents()?;
    let exe = bench.homing();
    let exe = exe.to_str().context("a path that is text")?;
    ["claude", "codex"].into_iter().map(|agent| figure(bench, agent, exe)).collect()
}

fn figure(bench: &Bench, agent: &str, exe: &str) -> Result<Figure> {
    let mut rounds = Rounds::default();
    for _ in 0..bench.rounds {
        rounds.note_all(agent, &bench.ask_example("kept", &[agent, exe, COUNT])?, &["ours_us", "bare_us"])?;
    }
    let (ours, bare) =
        (rounds.median(&format!("{agent}.ours_us")), rounds.median(&format!("{agent}.bare_us")));
    Ok(Figure::new(format!("a turn of {agent} that is kept, with a model that answers at once"), time(ours))
        .beside(format!("bare {}", time(bare)), ours / bare)
        .aim("≤ 1.15 ×", ours / bare <= RATIO_MAX))
}

//! A turn of a real agent that is kept between turns: through us, beside the same program with nothing in between.

use anyhow::{Context, Result};

use super::figure::{Figure, Rounds, time};
use super::place::Bench;
use crate::tools;

const COUNT: &str = "20";
/// The median and the quarters of each side, as the example names them.
const SIDES: [(&str, &str, &str); 2] =
    [("ours_us", "ours_p25_us", "ours_p75_us"), ("bare_us", "bare_p25_us", "bare_p75_us")];
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
    let place = bench.fresh("kept")?;
    let place = place.to_str().context("a path that is text")?;
    for _ in 0..bench.rounds {
        let taken = bench.ask_example("kept", &[agent, exe, COUNT, place])?;
        rounds.note_all(agent, &taken, &SIDES.map(|(key, ..)| key))?;
        rounds.note_all(agent, &taken, &SIDES.map(|(_, p25, _)| p25))?;
        rounds.note_all(agent, &taken, &SIDES.map(|(.., p75)| p75))?;
    }
    let median = |key: &str| rounds.median(&format!("{agent}.{key}"));
    let [ours, bare] = SIDES.map(|(key, ..)| median(key));
    let [ours_words, bare_words] = SIDES.map(|(key, p25, p75)| {
        format!("{} ({} to {})", time(median(key)), time(median(p25)), time(median(p75)))
    });
    Ok(Figure::new(format!("a turn of {agent} that is kept, with a model that answers at once"), ours_words)
        .beside(format!("bare {bare_words}"), ours / bare)
        .aim("≤ 1.15 ×", ours / bare <= RATIO_MAX))
}

//! From the start of the process until it is ready, with nothing to look after and with a hundred thousand sessions.

use anyhow::Result;

use super::figure::{Figure, Rounds, time};
use super::lists::{LONG, MANY};
use super::place::Bench;

const START_US_MAX: f64 = 250_000.0;

pub(crate) fn take(bench: &Bench) -> Result<Vec<Figure>> {
    let empty = bench.fresh("empty")?;
    let filled = bench.filled(MANY, &LONG)?.data;
    let mut rounds = Rounds::default();
    for _ in 0..bench.rounds {
        let fresh = bench.fresh("first")?;
        for (name, data) in [("first", &fresh), ("none", &empty), ("many", &filled)] {
            let server = bench.serve_in(data)?;
            rounds.note(name, server.took.as_secs_f64() * 1e6);
            server.stop()?;
        }
    }
    let [first, none, many] = ["first", "none", "many"].map(|name| rounds.median(name));
    Ok(vec![
        Figure::new("first start in an empty directory", time(first)),
        Figure::new("cold start, 0 sessions", time(none)),
        Figure::new("cold start, 100,000 sessions", time(many))
            .beside("with 0", many / none)
            .aim("< 250 ms", many < START_US_MAX),
    ])
}

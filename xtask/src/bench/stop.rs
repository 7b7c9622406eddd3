//! From a stop until everything was seen gone, for an agent whose tools have left it and are deaf; and what its supervisor
//! costs meanwhile.

use anyhow::{Context, Result};

use super::figure::{Figure, both, megabytes};
use super::place::Bench;

const STOPS: &str = "50";
const CHILDREN: &str = "20";
const GONE_US_MAX: f64 = 2_000_000.0;
const SUPERVISOR_BYTES_MAX: f64 = 3e6;

pub(crate) fn take(bench: &Bench) -> Result<Vec<Figure>> {
    let (exe, dir) = (bench.homing(), bench.fresh("stop")?);
    let (exe, dir) =
        (exe.to_str().context("a path that is text")?, dir.to_str().context("a path that is text")?);
    // A supervisor has the server's program, whose pages they share. Without a server they would all count as its own.
    let server = bench.serve("beside", "log = \"warn\"\n")?;
    let took = bench.ask_example("stop", &[exe, dir, STOPS, CHILDREN])?;
    server.stop()?;
    let number = |name: &str| took[name].as_f64().with_context(|| format!("no {name} in {took}"));
    let (median, longest, supervisor) =
        (number("median_us")?, number("longest_us")?, number("supervisor_bytes")?);
    let what = format!(
        "stop → seen gone, {CHILDREN} deaf children in sessions of their own, median / longest of {STOPS}"
    );
    Ok(vec![
        Figure::new(what, both(median, longest)).aim("< 2 s", longest < GONE_US_MAX),
        Figure::new("memory of a supervisor, beside its server", megabytes(supervisor))
            .aim("< 3 MB", supervisor < SUPERVISOR_BYTES_MAX),
    ])
}

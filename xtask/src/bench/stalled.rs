//! The memory that the server keeps for a thousand readers that never read, while a lot passes them.

use anyhow::Result;

use super::figure::{Figure, Rounds, megabytes};
use super::place::Bench;

/// At most as much may be kept.
const GROWTH_BYTES_MAX: f64 = 16e6;

/// One turn says all of it.
const CONFIG: &str = "log = \"warn\"\n[agents.scripted]\nlimits.output_max = \"8GiB\"\n";

pub(crate) fn take(bench: &Bench) -> Result<Vec<Figure>> {
    let bytes: u64 = if bench.long { 1 << 30 } else { 64 << 20 };
    let rounds_max = if bench.long { 1 } else { 3 };
    let mut rounds = Rounds::default();
    for _ in 0..bench.rounds.min(rounds_max) {
        let server = bench.serve("stalled", CONFIG)?;
        let took = bench.load(&server, "stall", &[("readers", "1000"), ("bytes", &bytes.to_string())])?;
        let grown = |when: &str| {
            took[when].as_f64().unwrap_or(f64::NAN) - took["before"].as_f64().unwrap_or(f64::NAN)
        };
        rounds.note("peak", grown("peak"));
        rounds.note("after", grown("after"));
        rounds.note_all("stall", &took, &["before", "bytes_per_second"])?;
    }
    let (peak, after) = (rounds.median("peak"), rounds.median("after"));
    let words = format!("growth while {} MB pass 1,000 stalled readers, peak / after", bytes >> 20);
    Ok(vec![
        Figure::new(words, format!("{} / {}", megabytes(peak), megabytes(after)))
            .aim("< 16 MB", peak < GROWTH_BYTES_MAX),
        Figure::new("memory with 1,000 readers connected", megabytes(rounds.median("stall.before"))),
        Figure::new(
            "facts written meanwhile",
            format!("{}/s", megabytes(rounds.median("stall.bytes_per_second"))),
        ),
    ])
}

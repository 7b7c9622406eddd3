//! Memory of the server (PSS): doing nothing, after some traffic, and with ten thousand sessions that rest.

use std::time::Duration;

use anyhow::Result;

use super::figure::{Figure, Rounds, megabytes};
use super::place::{Bench, BenchServer};

const IDLE_BYTES_MAX: f64 = 20e6;
const DORMANT_BYTES_MAX: f64 = 20e6;
const DORMANT: &str = "10000";
/// The time for which a server is left alone before its memory counts.
const SETTLE: Duration = Duration::from_millis(1_500);

pub(crate) fn take(bench: &Bench) -> Result<Vec<Figure>> {
    let mut rounds = Rounds::default();
    // Memory hardly varies, and making ten thousand sessions takes a while.
    for _ in 0..bench.rounds.min(3) {
        let server = bench.serve("memory", "log = \"warn\"\n")?;
        rounds.note("idle", settled(&server)?);
        bench.load(&server, "talk", &[("sessions", "16"), ("rounds", "5")])?;
        let talked = settled(&server)?;
        rounds.note("talked", talked);
        server.stop()?;

        let server = bench.serve("dormant", "log = \"warn\"\n")?;
        let before = settled(&server)?;
        let more = || {
            bench.load(&server, "make", &[("count", DORMANT)])?;
            bench.load(&server, "gets", &[("path", "/api/v1/sessions?limit=50"), ("count", "50")])?;
            settled(&server)
        };
        let first = more()?;
        rounds.note("dormant", first - before);
        rounds.note("with", first);
        rounds.note("more", more()? - first);
        server.stop()?;
    }
    let [idle, talked, dormant, with, more] =
        ["idle", "talked", "dormant", "with", "more"].map(|name| rounds.median(name));
    Ok(vec![
        Figure::new("memory, idle", megabytes(idle)).aim("< 20 MB", idle < IDLE_BYTES_MAX),
        Figure::new("memory, after 80 answered messages in 16 sessions", megabytes(talked)),
        Figure::new("added by making 10,000 sessions that rest", megabytes(dormant))
            .aim("< 20 MB", dormant < DORMANT_BYTES_MAX),
        Figure::new("memory, with these 10,000 sessions", megabytes(with)),
        Figure::new("added by making another 10,000", megabytes(more)),
    ])
}

fn settled(server: &BenchServer) -> Result<f64> {
    std::thread::sleep(SETTLE);
    server.pss_bytes()
}

//! Durable accepts over HTTP, beside plain SQLite with the same rows and a handler with nothing behind it.
//!
//! Messages go to sessions whose turn takes an hour, so they only queue. Each round has a new server: a queue that grew
//! over five rounds would measure something else.

use anyhow::{Context, Result};

use super::figure::{Figure, Rounds, both, rate};
use super::place::{Bench, BenchServer};

const CONNECTIONS: [&str; 3] = ["1", "16", "64"];
const SESSIONS: &str = "64";
/// The length of each measurement.
const MS: &str = "1000";
/// Enough awake sessions for the bench; all other limits as they are.
const CONFIG: &str = "log = \"warn\"\n[limits]\nawake_max = 64\n";
const MEMBERS: [&str; 3] = ["per_second", "p50_us", "p99_us"];

pub(crate) fn take(bench: &Bench) -> Result<Vec<Figure>> {
    let bare = bench.serve_bare()?;
    let strangers = vec!["ses_01m7e0j47g00000000000001yg"; 64].join(",");
    let mut rounds = Rounds::default();
    for _ in 0..bench.rounds {
        for connections in CONNECTIONS {
            let dir = bench.fresh("raw")?;
            let dir = dir.to_str().context("a path that is text")?;
            let raw = bench.ask_example("raw", &[dir, connections, MS])?;
            rounds.note_all(&format!("raw {connections}"), &raw, &MEMBERS)?;
        }
        measure(bench, &bare, &strangers, "bare", &mut rounds)?;
        let ours = bench.serve("accepts", CONFIG)?;
        let made = bench.load(&ours, "make", &[("count", SESSIONS), ("text", "!sleep 3500000")])?;
        let sessions: Vec<&str> =
            made["sessions"].as_array().into_iter().flatten().filter_map(|id| id.as_str()).collect();
        measure(bench, &ours, &sessions.join(","), "ours", &mut rounds)?;
    }
    Ok(CONNECTIONS.iter().flat_map(|connections| figures(connections, &rounds)).collect())
}

fn measure(
    bench: &Bench,
    server: &BenchServer,
    sessions: &str,
    name: &str,
    rounds: &mut Rounds,
) -> Result<()> {
    for connections in CONNECTIONS {
        let asked = [("connections", connections), ("ms", MS), ("sessions", sessions)];
        let took = bench.load(server, "accepts", &asked)?;
        rounds.note_all(&format!("{name} {connections}"), &took, &MEMBERS)?;
    }
    Ok(())
}

fn figures(connections: &str, rounds: &Rounds) -> [Figure; 3] {
    let median = |who: &str, member: &str| rounds.median(&format!("{who} {connections}.{member}"));
    let on = match connections {
        "1" => "1 connection".to_owned(),
        many => format!("{many} connections"),
    };
    let [ours, raw, bare] = ["ours", "raw", "bare"].map(|who| median(who, "per_second"));
    let share = ours / raw;
    let mut accepts =
        Figure::new(format!("durable accepts, {on}"), rate(ours)).beside(format!("raw {}", rate(raw)), share);
    accepts = match connections {
        "1" => accepts.aim("≥ 0.50 × raw", share >= 0.5),
        "64" => accepts.aim("≥ 0.55 × raw", share >= 0.55),
        _ => accepts,
    };
    let [ours_p50, raw_p50, bare_p50] = ["ours", "raw", "bare"].map(|who| median(who, "p50_us"));
    let [ours_p99, raw_p99, bare_p99] = ["ours", "raw", "bare"].map(|who| median(who, "p99_us"));
    let times = ours_p99 / (raw_p99 + bare_p99);
    let mut latency = Figure::new(format!("accept p50 / p99, {on}"), both(ours_p50, ours_p99))
        .beside(format!("raw + bare {}", both(raw_p50 + bare_p50, raw_p99 + bare_p99)), times);
    if connections == "16" {
        latency = latency.aim("p99 ≤ 5 × (raw + bare)", times <= 5.0);
    }
    let handler = Figure::new(format!("of the bare handler, {on}"), rate(ours))
        .beside(format!("bare {}", rate(bare)), ours / bare);
    [accepts, latency, handler]
}

//! Everybody else, while one stranger and one member take whatever they can get.

use anyhow::Result;

use super::figure::{Figure, Rounds, both};
use super::place::Bench;

const COUNT: &str = "2000";
const CONFIG: &str = "log = \"error\"\ntrust_everyone = true\n[limits]\npending_max = 100000\n";
/// Others may wait so many times as long.
const RATIO_MAX: f64 = 2.0;

pub(crate) fn take(bench: &Bench) -> Result<Vec<Figure>> {
    let mut rounds = Rounds::default();
    for _ in 0..bench.rounds {
        let server = bench.serve("crowd", CONFIG)?;
        let took = bench.load(&server, "crowd", &[("count", COUNT)])?;
        for when in ["quiet", "crowded", "after"] {
            for what in ["lists", "says"] {
                rounds.note_all(&format!("{when}.{what}"), &took[when][what], &["p50_us", "p99_us"])?;
            }
        }
        for when in ["quiet", "crowded"] {
            rounds.note_all(when, &took[when], &["server_cpu", "own_cpu"])?;
        }
        rounds.note_all("held", &took, &["idle", "streams", "looks", "bodies"])?;
    }
    let held = ["idle", "streams", "looks", "bodies"].map(|name| rounds.median(&format!("held.{name}")));
    let [idle, streams, looks, bodies] = held;
    let words = format!("{idle} idle connections, {streams} streams, {looks} looks, {bodies} bodies");
    let figure = |what: &str, name: &str| {
        let of = |when: &str, part: &str| rounds.median(&format!("{when}.{name}.{part}"));
        let ratio = of("crowded", "p99_us") / of("quiet", "p99_us");
        let after = both(of("after", "p50_us"), of("after", "p99_us"));
        Figure::new(
            format!("{what} beside two who hold all they can, p50 / p99 (after: {after})"),
            both(of("crowded", "p50_us"), of("crowded", "p99_us")),
        )
        .beside(format!("quiet {}", both(of("quiet", "p50_us"), of("quiet", "p99_us"))), ratio)
        .aim("p99 ≤ 2 × of quiet", ratio <= RATIO_MAX)
    };
    Ok(vec![
        figure("another's list of 50 sessions", "lists"),
        figure("another's message", "says"),
        Figure::new(
            "processor of the server / of the load generator meanwhile",
            format!(
                "{:.2} / {:.2} cores",
                rounds.median("crowded.server_cpu"),
                rounds.median("crowded.own_cpu")
            ),
        )
        .beside(
            format!("quiet {:.2} / {:.2}", rounds.median("quiet.server_cpu"), rounds.median("quiet.own_cpu")),
            rounds.median("crowded.server_cpu") / rounds.median("quiet.server_cpu"),
        ),
        Figure::new("held of 8,192 connections, 4,096 streams, 64 looks and 128 bodies", words),
    ])
}

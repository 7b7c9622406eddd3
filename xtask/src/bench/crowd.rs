//! Everybody else, while one stranger and one member take whatever they can get.
//!
//! Quiet and crowded phases come by turns within one server's life, and the percentiles are of all phases of a kind together. What two
//! halves of the quiet ones differ by stands beside them: a ratio that is not larger than that says nothing.

use anyhow::Result;

use super::figure::{Figure, Rounds, both, time};
use super::place::Bench;

/// Requests of each kind in each of the seven phases of a round.
const COUNT: &str = "3000";
const CONFIG: &str = "log = \"error\"\ntrust_everyone = true\n[limits]\npending_max = 100000\n";
/// Others may wait so many times as long.
const RATIO_MAX: f64 = 2.0;

pub(crate) fn take(bench: &Bench) -> Result<Vec<Figure>> {
    let mut rounds = Rounds::default();
    for _ in 0..bench.rounds {
        let server = bench.serve("crowd", CONFIG)?;
        let took = bench.load(&server, "crowd", &[("count", COUNT)])?;
        for when in ["quiet", "odd", "even", "crowded"] {
            for what in ["lists", "says"] {
                rounds.note_all(&format!("{when}.{what}"), &took[when][what], &["p50_us", "p99_us"])?;
            }
        }
        for when in ["quiet", "crowded"] {
            rounds.note_all(when, &took[when], &["server_cpu", "own_cpu"])?;
        }
        for what in ["lists", "says"] {
            let of = |when: &str| took[when][what]["p99_us"].as_f64().unwrap_or(f64::NAN);
            rounds.note(format!("ratio.{what}"), of("crowded") / of("quiet"));
            rounds.note(format!("noise.{what}"), of("odd").max(of("even")) / of("odd").min(of("even")));
        }
        rounds.note_all("held", &took, &["idle", "streams", "looks", "bodies"])?;
    }
    let held = ["idle", "streams", "looks", "bodies"].map(|name| rounds.median(&format!("held.{name}")));
    let [idle, streams, looks, bodies] = held;
    let words = format!("{idle} idle connections, {streams} streams, {looks} looks, {bodies} bodies");
    let figure = |what: &str, name: &str| {
        let of = |when: &str, part: &str| rounds.median(&format!("{when}.{name}.{part}"));
        let (ratio, noise) =
            (rounds.median(&format!("ratio.{name}")), rounds.median(&format!("noise.{name}")));
        let half = |when: &str| time(of(when, "p99_us"));
        Figure::new(
            format!("{what} beside two who hold all they can, p50 / p99"),
            both(of("crowded", "p50_us"), of("crowded", "p99_us")),
        )
        .beside(
            format!(
                "quiet {} (its halves: {} and {}, {noise:.2} ×)",
                both(of("quiet", "p50_us"), of("quiet", "p99_us")),
                half("odd"),
                half("even")
            ),
            ratio,
        )
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

//! A page of a hundred facts: of a short log, and at the start, in the middle and at the end of a long one.

use anyhow::{Context, Result, ensure};

use super::figure::{Figure, Rounds, both};
use super::lists::{LONG, MANY};
use super::place::Bench;

const COUNT: &str = "300";

pub(crate) fn take(bench: &Bench) -> Result<Vec<Figure>> {
    let filled = bench.filled(MANY, &LONG)?;
    let [short, long] = &filled.long[..] else { anyhow::bail!("the long sessions are missing") };
    let server = bench.serve_in(&filled.data)?;
    let places = [
        ("of a log of 100", short, 0),
        ("of 100,000, at the start", long, 0),
        ("of 100,000, in the middle", long, 50_000),
        ("of 100,000, at the end", long, 99_900),
    ];
    let mut rounds = Rounds::default();
    for _ in 0..bench.rounds {
        for (name, session, after) in places {
            let path = format!("/api/v1/sessions/{session}/facts?limit=100&after={after}");
            let took = bench.load(&server, "gets", &[("path", &path), ("count", COUNT)])?;
            ensure!(took["items"].as_u64() >= Some(99), "a page {name} has {} items", took["items"]);
            rounds.note_all(name, &took, &["p50_us", "p99_us"])?;
        }
    }
    server.stop().context("after paging")?;
    let short = rounds.median("of a log of 100.p50_us");
    let figures = places.map(|(name, _, _)| {
        let (p50, p99) = (rounds.median(&format!("{name}.p50_us")), rounds.median(&format!("{name}.p99_us")));
        let figure = Figure::new(format!("100 facts {name}, p50 / p99"), both(p50, p99));
        if name.contains("100,000") {
            figure.beside("of 100", p50 / short).aim("≤ 2 × of 100", p50 / short <= 2.0)
        } else {
            figure
        }
    });
    Ok(figures.into())
}

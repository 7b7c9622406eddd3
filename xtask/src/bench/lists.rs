//! The first page of sessions, of few and of many.

use anyhow::{Context, Result, ensure};

use super::figure::{Figure, Rounds, both, count};
use super::place::Bench;

/// The sessions with many facts are for `pages`, which uses the same directory.
pub(super) const LONG: [usize; 2] = [100, 100_000];
pub(super) const MANY: usize = 100_000;
const COUNT: &str = "300";

pub(crate) fn take(bench: &Bench) -> Result<Vec<Figure>> {
    let sizes = [100, 10_000, MANY];
    let mut servers = Vec::new();
    for size in sizes {
        let filled = bench.filled(size, if size == MANY { &LONG } else { &[] })?;
        servers.push((size, bench.serve_in(&filled.data)?));
    }
    let mut rounds = Rounds::default();
    for _ in 0..bench.rounds {
        for (size, server) in &servers {
            let took =
                bench.load(server, "gets", &[("path", "/api/v1/sessions?limit=50"), ("count", COUNT)])?;
            ensure!(took["items"] == 50, "a page of {size} sessions has {} of 50 items", took["items"]);
            rounds.note_all(&size.to_string(), &took, &["p50_us", "p99_us"])?;
        }
    }
    let few = rounds.median("100.p50_us");
    let figures = sizes.map(|size| {
        let (p50, p99) = (rounds.median(&format!("{size}.p50_us")), rounds.median(&format!("{size}.p99_us")));
        let figure =
            Figure::new(format!("list 50 of {} sessions, p50 / p99", count(size as f64)), both(p50, p99));
        if size == 100 {
            figure
        } else {
            figure.beside("of 100", p50 / few).aim("≤ 2 × of 100", p50 / few <= 2.0)
        }
    });
    for (_, server) in servers {
        server.stop().context("after listing")?;
    }
    Ok(figures.into())
}

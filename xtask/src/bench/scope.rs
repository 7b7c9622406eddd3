//! The cost of a scope: entering a worktree beside `git worktree add`, snapshots before and after a turn, its diff, and
//! to say how ready a session is.

use anyhow::{Context, Result};

use super::figure::{Figure, Rounds, time};
use super::place::Bench;

const FILES: [&str; 2] = ["1000", "10000"];
/// The most that entering may take, as a multiple of what git itself takes.
const ENTER_RATIO_MAX: f64 = 1.3;
/// A diff costs what changed; ten times the files may add this much at most.
const DIFF_RATIO_MAX: f64 = 1.5;
const READINESS_US_MAX: f64 = 100.0;
/// A number of its own, so that nobody else's sessions are taken for these.
const SESSIONS: usize = 101;
const MEMBERS: [&str; 8] = [
    "enter_us",
    "raw_us",
    "idle_1_us",
    "snapshot_1_us",
    "diff_1_us",
    "idle_100_us",
    "snapshot_100_us",
    "diff_100_us",
];

pub(crate) fn take(bench: &Bench) -> Result<Vec<Figure>> {
    let mut rounds = Rounds::default();
    // One run each: it takes its own medians, and making a repository takes long.
    for files in FILES {
        let dir = bench.fresh("scope")?;
        let dir = dir.to_str().context("a path that is text")?;
        rounds.note_all(files, &bench.ask_example("scope", &[dir, files])?, &MEMBERS)?;
    }
    let of = |files: &str, member: &str| rounds.median(&format!("{files}.{member}"));
    let [small, large] = FILES;
    let (enter, raw) = (of(large, "enter_us"), of(large, "raw_us"));
    let mut figures = vec![
        Figure::new("entering a worktree, 10,000 files", time(enter))
            .beside(format!("git worktree add {}", time(raw)), enter / raw)
            .aim("≤ 1.30 ×", enter / raw <= ENTER_RATIO_MAX),
        Figure::new("snapshot, nothing changed, 1,000 files", time(of(small, "idle_1_us"))),
        Figure::new("snapshot, nothing changed, 10,000 files", time(of(large, "idle_1_us"))),
    ];
    for changed in ["1", "100"] {
        let member = |what: &str| format!("{what}_{changed}_us");
        let snapshot = of(large, &member("snapshot"));
        let (diff, fewer) = (of(large, &member("diff")), of(small, &member("diff")));
        figures.extend([
            Figure::new(format!("snapshot after a turn, {changed} of 10,000 files"), time(snapshot)),
            Figure::new(format!("diff of a turn, {changed} of 10,000 files"), time(diff))
                .beside(format!("of 1,000 {}", time(fewer)), diff / fewer)
                .aim("≤ 1.50 ×", diff / fewer <= DIFF_RATIO_MAX),
        ]);
    }
    figures.push(readiness(bench)?);
    Ok(figures)
}

/// The time to say how ready a session is, beyond finding and telling the session itself.
fn readiness(bench: &Bench) -> Result<Figure> {
    let filled = bench.filled(SESSIONS, &[100])?;
    let session = filled.long.first().context("the session is missing")?;
    let server = bench.serve_in(&filled.data)?;
    let mut rounds = Rounds::default();
    for _ in 0..bench.rounds {
        for (name, path) in [("plain", ""), ("ready", "/readiness")] {
            let path = format!("/api/v1/sessions/{session}{path}");
            let took = bench.load(&server, "gets", &[("path", &path), ("count", "300")])?;
            rounds.note_all(name, &took, &["p50_us"])?;
        }
    }
    server.stop().context("after asking how ready it is")?;
    let (plain, ready) = (rounds.median("plain.p50_us"), rounds.median("ready.p50_us"));
    let more = (ready - plain).max(0.0);
    Ok(Figure::new("readiness, beyond reading the session", time(more))
        .beside(format!("reading it {}", time(plain)), ready / plain)
        .aim("< 100 µs", more < READINESS_US_MAX))
}

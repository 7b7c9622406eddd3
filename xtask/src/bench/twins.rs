//! The time of a no: for what is hidden from somebody beside what never was.

use anyhow::Result;

use super::figure::{Figure, Rounds, both};
use super::place::Bench;

const PAIRS: &str = "10000";
const VERBS: [&str; 32] = [
    "session",
    "facts",
    "preview_undo",
    "queue",
    "readiness",
    "files",
    "grants",
    "export",
    "worktrees",
    "changes",
    "file_changes",
    "worktree_changes",
    "worktree_file_changes",
    "approval",
    "receipt",
    "say",
    "stop",
    "change_message",
    "withdraw",
    "answer",
    "offer",
    "end",
    "accept_offer",
    "undo",
    "redo",
    "fork",
    "scope",
    "merge",
    "apply",
    "remove",
    "restore",
    "stop_background",
];
/// Anybody may be let in: who is asked about shares nothing with them anyway.
const CONFIG: &str = "log = \"warn\"\ntrust_everyone = true\n";
/// The difference of two medians that nobody can tell from noise, beside what two things that never were differ by.
const APART: f64 = 0.03;

pub(crate) fn take(bench: &Bench) -> Result<Vec<Figure>> {
    let mut rounds = Rounds::default();
    // Ten thousand pairs are their own rounds.
    let server = bench.serve("twins", CONFIG)?;
    let took = bench.load(&server, "twins", &[("pairs", PAIRS)])?;
    for verb in VERBS {
        for which in ["hidden", "absent", "one", "another"] {
            rounds.note_all(&format!("{verb}.{which}"), &took[verb][which], &["p50_us", "p99_us"])?;
        }
    }
    server.stop()?;
    Ok(VERBS.map(|verb| figure(verb, &rounds)).into())
}

fn figure(verb: &str, rounds: &Rounds) -> Figure {
    let of = |which: &str, part: &str| rounds.median(&format!("{verb}.{which}.{part}"));
    let ratio = of("hidden", "p50_us") / of("absent", "p50_us");
    let noise = (of("one", "p50_us") / of("another", "p50_us") - 1.0).abs();
    let tail = of("hidden", "p99_us") / of("absent", "p99_us");
    Figure::new(
        format!("{verb} of what is hidden, p50 / p99 (p99 {tail:.2} × of absent)"),
        both(of("hidden", "p50_us"), of("hidden", "p99_us")),
    )
    .beside(format!("absent {}", both(of("absent", "p50_us"), of("absent", "p99_us"))), ratio)
    .aim("1.00 × within noise", (ratio - 1.0).abs() <= APART + noise)
}

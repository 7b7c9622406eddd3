//! The rule's share in an accept: what was given on the session, and the rule itself.

use anyhow::{Context, Result};

use super::figure::{Figure, Rounds, time};
use super::place::Bench;

/// Messages of each kind, per round: the medians of two times that differ by little need many.
const COUNT: &str = "1500";
/// The most that asking may add.
const ADDED_US_MAX: f64 = 50.0;
const MEMBERS: [&str; 6] = ["asked_us", "found_us", "alone_us", "added_us", "rule_us", "credential_us"];

pub(crate) fn take(bench: &Bench) -> Result<Vec<Figure>> {
    let mut rounds = Rounds::default();
    for _ in 0..bench.rounds {
        let dir = bench.fresh("people")?;
        let dir = dir.to_str().context("a path that is text")?;
        rounds.note_all("people", &bench.ask_example("people", &[dir, COUNT])?, &MEMBERS)?;
    }
    let [asked, found, alone, added, rule, credential] =
        MEMBERS.map(|member| rounds.median(&format!("people.{member}")));
    Ok(vec![
        Figure::new("accept in a shared session, authorized", time(asked))
            .beside(format!("found only {}", time(found)), asked / found),
        Figure::new("authorization adds to it", time(added)).aim("< 50 µs", added < ADDED_US_MAX),
        Figure::new("finding the session and authorizing add", time(asked - alone))
            .beside(format!("accept alone {}", time(alone)), asked / alone),
        Figure::new("the rule alone", format!("{rule:.1} µs")),
        Figure::new("whose a credential is, asked at most twice a second", time(credential)),
    ])
}

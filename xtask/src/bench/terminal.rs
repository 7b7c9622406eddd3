//! Commands that people type all day, from the start of the process to its end, on a server with ten thousand sessions.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::figure::{Figure, Rounds, time};
use super::place::Bench;

const SESSIONS: usize = 10_000;
const COUNT: usize = 20;
/// The longest that somebody does not notice.
const NOTICED_US: f64 = 50_000.0;

pub(crate) fn take(bench: &Bench) -> Result<Vec<Figure>> {
    let data = bench.filled(SESSIONS, &[])?.data;
    let server = bench.serve_in(&data)?;
    let listed = run(bench, &data, &["ls", "-n", "1", "--json"])?.1;
    let listed: Value = serde_json::from_slice(&listed)?;
    let session = listed["items"][0]["id"].as_str().context("a session has an id")?.to_owned();
    let complete = |typed| vec!["__complete", "fish", "homing", "show", typed];
    let commands: [(&str, Vec<&str>); 4] = [
        ("`homing ls`", vec!["ls"]),
        ("`homing show`", vec!["show", &session]),
        ("`homing show` and TAB", complete("")),
        ("`homing show zz` and TAB", complete("zz")),
    ];
    let mut rounds = Rounds::default();
    for _ in 0..bench.rounds {
        for (name, arguments) in &commands {
            let mut took = Vec::new();
            for _ in 0..COUNT {
                took.push(run(bench, &data, arguments)?.0);
            }
            took.sort_by(f64::total_cmp);
            rounds.note(*name, took[COUNT / 2]);
        }
    }
    server.stop().context("after the commands")?;
    let figure = |(name, _): &(&str, Vec<&str>)| {
        let us = rounds.median(name);
        Figure::new(format!("{name}, of 10,000 sessions, the whole command"), time(us))
            .aim("≤ 50 ms", us <= NOTICED_US)
    };
    Ok(commands.iter().map(figure).collect())
}

/// Runs a command of ours, and answers how long that took, in microseconds, and what it printed.
fn run(bench: &Bench, data: &Path, arguments: &[&str]) -> Result<(f64, Vec<u8>)> {
    let mut command = Command::new(bench.homing());
    command.env_remove("HOMING_URL").env_remove("HOMING_TOKEN").env("HOMING_DATA", data);
    let began = Instant::now();
    let output = command.args(arguments).stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    let took = began.elapsed().as_secs_f64() * 1e6;
    ensure!(output.status.success(), "{arguments:?} ended with {}", output.status);
    Ok((took, output.stdout))
}

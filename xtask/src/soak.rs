//! The tests that take longer than anybody wants to wait for each change: the kill test, many times over.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use clap::Args;

/// Kill the server under load, again and again, and check every promise
///
/// The same test as in the test command, with more kills and the release profile. Prints the seed; `--seed` repeats a run.
#[derive(Args)]
pub(crate) struct SoakArgs {
    /// How often the server is killed
    #[arg(long, default_value_t = 300)]
    kills: u32,
    /// Where the dice begin
    #[arg(long)]
    seed: Option<u64>,
}

pub(crate) fn soak(args: &SoakArgs, root: &Path) -> anyhow::Result<()> {
    let mut command = Command::new("cargo");
    command.args(["nextest", "run", "--release", "--package", "homing", "--profile", "soak", "--no-capture"]);
    command.arg("kill_9_under_16_writers").current_dir(root).env("HOMING_KILLS", args.kills.to_string());
    if let Some(seed) = args.seed {
        command.env("HOMING_SEED", seed.to_string());
    }
    let status = command.status().context("cargo nextest cannot be run")?;
    ensure!(status.success(), "a promise was broken; the seed above repeats it");
    Ok(())
}

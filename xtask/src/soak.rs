//! The tests that take longer than anybody wants to wait for each change: the kill test, many times over.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use clap::Args;

use crate::tools;

/// Kill the server under load, again and again, and check every promise
///
/// The same test as in the test command, with more kills and the release profile. Prints the seed; `--seed` repeats a run.
#[derive(Args)]
pub(crate) struct SoakArgs {
    /// Number of times the server is killed
    #[arg(long, default_value_t = 300)]
    pub(crate) kills: u32,
    /// Where the dice begin
    #[arg(long)]
    pub(crate) seed: Option<u64>,
}

/// Runs it, and answers what it printed.
pub(crate) fn soak(args: &SoakArgs, root: &Path) -> Result<String> {
    let mut command = Command::new(tools::nextest()?);
    command.args(["nextest", "run", "--locked", "--release", "--package", "homing", "--profile", "soak"]);
    command.args(["--no-capture", "kill_9_under_16_writers"]).current_dir(root);
    command.env("HOMING_KILLS", args.kills.to_string());
    if let Some(seed) = args.seed {
        command.env("HOMING_SEED", seed.to_string());
    }
    let (ended, printed) = tools::run_aloud(&mut command)?;
    ensure!(ended.success(), "a promise was broken; the seed above repeats it");
    Ok(printed)
}

//! The test that lets every part of a running turn die, many times over.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use clap::Args;

use crate::tools;

/// Kill the agent, its supervisor and the server in the midst of turns, and look for orphans
///
/// The same test as in the test command, with more rounds. Each round lets an agent's tools leave it, then kills or stops
/// one part, waits until nothing is left, and asks the session what it remembers. Prints a table; anything left fails.
#[derive(Args)]
pub(crate) struct OrphansArgs {
    /// Number of rounds; the five deaths take turns
    #[arg(long, default_value_t = 100)]
    pub(crate) rounds: u32,
    /// The agent that is made to run careless tools
    #[arg(long, default_value = "scripted")]
    pub(crate) agent: String,
    /// Test the program as it is built for tests, not for release
    #[arg(long)]
    pub(crate) debug: bool,
}

/// Runs it, and answers what it printed.
pub(crate) fn orphans(args: &OrphansArgs, root: &Path) -> Result<String> {
    let mut command = Command::new(tools::nextest()?);
    command.args(["nextest", "run", "--locked", "--package", "homing", "--profile", "soak", "--no-capture"]);
    if !args.debug {
        command.arg("--release");
    }
    command.arg("every_part_may_die").current_dir(root);
    command.env("HOMING_ROUNDS", args.rounds.to_string()).env("HOMING_AGENT", &args.agent);
    let (ended, printed) = tools::run_aloud(&mut command)?;
    ensure!(
        ended.success(),
        "something was left, or a turn was not settled; the last round above says which"
    );
    Ok(printed)
}

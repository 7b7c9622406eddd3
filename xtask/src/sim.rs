//! Runs the simulation over many seeds, optimized, and shows that it finds the bugs that are planted for it.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::tools;

/// Run the whole daemon in bad weather, from 10,000 seeds
///
/// Prints the first seed that breaks a law with its story, then each planted bug with the seed that finds it. One seed is
/// one story, on every machine.
#[derive(clap::Args)]
pub(crate) struct SimArgs {
    /// Number of seeds
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Only this seed
    #[arg(long)]
    seed: Option<u64>,
    /// Plant this bug
    #[arg(long)]
    bug: Option<String>,
    /// Tell the story of the one seed line by line
    #[arg(short, requires = "seed")]
    verbose: bool,
}

impl SimArgs {
    /// The first seeds, without a bug.
    pub(crate) fn of(seeds: u64) -> Self {
        Self { seeds, from: 0, seed: None, bug: None, verbose: false }
    }
}

/// Runs it, and answers what it printed.
pub(crate) fn sim(args: &SimArgs, root: &Path) -> Result<String> {
    let mut cargo = tools::cargo();
    cargo
        .args(["run", "--quiet", "--release", "--locked", "--package", "homing-sim", "--"])
        .current_dir(root);
    cargo.args(["--seeds", &args.seeds.to_string(), "--from", &args.from.to_string()]);
    if let Some(seed) = args.seed {
        cargo.args(["--seed", &seed.to_string()]);
    }
    if let Some(bug) = &args.bug {
        cargo.args(["--bug", bug]);
    }
    if args.verbose {
        cargo.arg("-v");
    }
    let (ended, printed) = tools::run_aloud(&mut cargo)?;
    // It has said everything itself.
    ensure!(ended.success(), "the simulation found something, listed above");
    Ok(printed)
}

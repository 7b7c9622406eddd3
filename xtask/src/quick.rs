//! The test command for between two edits: the rules, and whatever of them needs no process, no network and no agent.

use std::path::Path;

use anyhow::Result;

use crate::checks;
use crate::counts::{self, Scale};
use crate::steps::{self, CheckStep, Tally};

/// Run what can be known in a few minutes
///
/// Formatting, tidy, clippy, the tests of kernel, store and engine, those of the drivers' readers, and the simulation from
/// 50 seeds. Whatever it builds `cargo xtask test` need not build again.
#[derive(clap::Args)]
pub(crate) struct QuickArgs {
    /// Run only these steps, in the order of the list (names as in the closing table)
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

const STEPS: &[CheckStep] = &[
    CheckStep { name: "fmt", run: checks::fmt },
    CheckStep { name: "tidy", run: checks::look },
    CheckStep { name: "build", run: checks::build },
    CheckStep { name: "tests", run: tests },
];

pub(crate) fn quick(args: &QuickArgs, root: &Path) -> Result<()> {
    steps::until_one_fails(&steps::chosen(STEPS, &args.only)?, root)
}

fn tests(root: &Path) -> Result<Tally> {
    let mut nextest = checks::nextest(root, "quick")?;
    nextest.arg("--workspace").envs(counts::variables(Scale::Quick));
    checks::counted(root, "quick", nextest)
}

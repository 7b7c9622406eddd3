//! The one test command: everything a change must not break. Continuous integration calls it and nothing else.
//!
//! Cheap steps come first, so that a missing comma is known before anything is built. What takes longer than that is
//! worth for each change is in `nightly`, what is worth waiting for between two edits in `quick`; where each check went,
//! and what it costs, is in docs/decisions/0017-three-test-commands.md.

use std::path::Path;

use anyhow::Result;

use crate::checks;
use crate::counts::{Scale, TEST_REQUESTS};
use crate::steps::{self, CheckStep};
use crate::ui;

/// Run everything that a change must not break, in the order that fails soonest
///
/// Formatting, tidy, cargo deny, the browser app, one build that is also clippy's look, all tests, doc tests, requests made from the
/// contract, the app in a real browser, then the main stories of the real agents with a model that is none. Fetches the programs it needs on the first
/// run: 3.4 GB, most of it agents.
#[derive(clap::Args)]
pub(crate) struct TestArgs {
    /// Run only these steps, in the order of the list (names as in the closing table)
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

/// The steps, in this order.
const STEPS: &[CheckStep] = &[
    CheckStep { name: "fmt", run: checks::fmt },
    CheckStep { name: "tidy", run: checks::look },
    CheckStep { name: "deny", run: checks::deny },
    CheckStep { name: "ui", run: ui::check },
    CheckStep { name: "build", run: checks::build },
    CheckStep { name: "tests", run: |root| checks::tests(root, Scale::Test, &[]) },
    CheckStep { name: "doc tests", run: checks::doc_tests },
    CheckStep { name: "http fuzz", run: |root| checks::http_fuzz(root, &TEST_REQUESTS) },
    CheckStep { name: "browser", run: |root| checks::browser(root, Scale::Test) },
    CheckStep { name: "agents", run: |root| checks::agents(root, "agents") },
];

pub(crate) fn test(args: &TestArgs, root: &Path) -> Result<()> {
    steps::until_one_fails(&steps::chosen(STEPS, &args.only)?, root)
}

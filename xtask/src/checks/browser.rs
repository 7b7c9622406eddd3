//! The browser app in a real browser, against the program as it was built for the tests: `ui/browser`.
//!
//! Everything that is asked of pages is there. Here the browser is found, the packages of the lock are fetched, and the report is
//! counted. What people may want to look at stays in `target/browser`: the report, the last picture of each test that failed, pictures of the screens.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{build, counted_in, target};
use crate::counts::{Scale, variables};
use crate::steps::Tally;
use crate::{tools, ui};

/// The tests of `ui/browser`.
pub(crate) fn browser(root: &Path, scale: Scale) -> Result<Tally> {
    let chromium = tools::chromium()?;
    build(root)?;
    let app = root.join("ui");
    ui::fetch_packages(&app)?;
    let target = std::path::absolute(target(root))?;
    let left = target.join("browser");
    if left.exists() {
        std::fs::remove_dir_all(&left).with_context(|| left.display().to_string())?;
    }
    let mut playwright = Command::new("npm");
    playwright.args(["run", "--silent", "browser"]).current_dir(app).envs(variables(scale));
    playwright.env("HOMING_PROGRAM", target.join("debug/homing")).env("HOMING_CHROMIUM", chromium);
    playwright.env("HOMING_BROWSER_LEFT", &left);
    counted_in(&report(root), playwright)
}

/// The report of its last run.
pub(crate) fn report(root: &Path) -> PathBuf {
    target(root).join("browser/junit.xml")
}

//! Packages from npm, each in one exact version, without running any script of theirs.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::fetch;

/// A package and its exact version.
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
}

impl Package {
    pub(super) fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into() }
    }

    /// That what lies there is this version.
    pub(super) fn check(&self, home: &Path) -> Result<()> {
        #[derive(Deserialize)]
        struct Manifest {
            version: String,
        }
        let path = home.join("node_modules").join(&self.name).join("package.json");
        let text = std::fs::read(&path).with_context(|| format!("could not read {}", path.display()))?;
        let manifest: Manifest = serde_json::from_slice(&text).with_context(|| path.display().to_string())?;
        ensure!(
            manifest.version == self.version,
            "{} is {}, not {}",
            self.name,
            manifest.version,
            self.version
        );
        Ok(())
    }
}

/// Puts packages into `HOME/node_modules`.
pub(super) fn install(home: &Path, packages: &[Package]) -> Result<()> {
    // npm looks upwards for a project, and must find this one.
    std::fs::write(home.join("package.json"), "{\"private\": true}\n")?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--save-exact", "--loglevel=error"]);
    npm.args(packages.iter().map(|package| format!("{}@{}", package.name, package.version)));
    fetch(npm.current_dir(home))
}

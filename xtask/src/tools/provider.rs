//! The identity provider that sign-in is tested with: which version of it, and where npm has put it.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::npm::{self, Package};
use super::{cache, once, write_down};

/// The variable that tells tests where its packages are.
pub(crate) const VARIABLE: &str = "HOMING_TEST_OIDC_PROVIDER";

/// Fetches the provider if it is not there yet (5 MB), and says in which `node_modules` it is.
pub(crate) fn provider() -> Result<PathBuf> {
    // The second is what the first signs with; the tests forge tokens with it.
    let packages = [Package::new("oidc-provider", "9.13.3"), Package::new("jose", "6.2.17")];
    let cache = cache()?;
    let home = cache.join(format!("oidc-provider-{}", packages[0].version));
    let remedy = || format!("remove {} and try again with npm on the PATH", home.display());
    once(&home, || npm::install(&home, &packages)).with_context(remedy)?;
    packages.iter().try_for_each(|package| package.check(&home)).with_context(remedy)?;
    let modules = home.join("node_modules");
    write_down(&cache, "provider.env", &format!("{VARIABLE}={}\n", modules.display()))?;
    Ok(modules)
}

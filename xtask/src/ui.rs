//! The browser app: builds `ui/dist`, tries it while one writes it, and checks that what is committed is what its sources make.
//!
//! `ui/dist` is committed, so that `cargo` alone builds the whole product; only this chore and the step of the same name need Node.
//! Beside what vite builds, `ui/dist/sources.sha256` says of which sources it was built: `tidy` compares it without Node.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

use crate::repository::Repository;
use crate::steps::Tally;
use crate::{checks, tools};

/// Where the hash of the sources stands.
pub(crate) const STAMP: &str = "ui/dist/sources.sha256";
/// Below this, what is built; it is no source.
const DIST: &str = "ui/dist/";
/// Below this, what is tried in a browser; nothing is built of it.
const BROWSER: &str = "ui/browser/";
/// The types that are made of the OpenAPI document.
const TYPES: &str = "src/api/schema.d.ts";

/// Build the browser app, or try it while you write it
///
/// Fetches the packages of its lock, makes the types of docs/openapi.json, checks types, runs its tests and writes ui/dist, which is
/// committed. Needs Node 20.19 or later.
#[derive(clap::Args)]
pub(crate) struct UiArgs {
    /// Serve it with hot reload, in front of a server that runs, until you stop it
    #[arg(long)]
    dev: bool,
    /// The server that `--dev` passes requests on to
    #[arg(long, default_value = "http://127.0.0.1:4747", value_name = "URL")]
    server: String,
}

pub(crate) fn ui(args: &UiArgs, root: &Path) -> Result<()> {
    let ui = root.join("ui");
    fetch_packages(&ui)?;
    if args.dev {
        return tools::run(npm(&ui).args(["run", "dev"]).env("HOMING_URL", &args.server));
    }
    tools::run(npm(&ui).args(["run", "types"]))?;
    try_out(&ui)?;
    tools::run(npm(&ui).args(["run", "build"]))?;
    tools::run(npm(&ui).args(["run", "size"]))?;
    let hash = sources_hash(&Repository::read(root)?);
    std::fs::write(root.join(STAMP), format!("{hash}\n")).context("the hash of the sources")?;
    println!("ui/dist is built of its sources; commit both");
    Ok(())
}

/// The app passes its own checks, and what is committed is what its sources make, byte for byte.
pub(crate) fn check(root: &Path) -> Result<Tally> {
    let ui = root.join("ui");
    fetch_packages(&ui)?;
    let made = checks::target(root).join("ui");
    std::fs::create_dir_all(&made)?;
    same_types(&ui, &made.join("schema.d.ts"))?;
    try_out(&ui)?;
    let dist = made.join("dist");
    let build = ["exec", "--", "vite", "build", "--emptyOutDir", "--outDir"];
    tools::run(npm(&ui).args(build).arg(&dist))?;
    let (mut committed, fresh) = (files(&ui.join("dist"))?, files(&dist)?);
    committed.remove(Path::new("sources.sha256"));
    same_files(&committed, &fresh)?;
    tools::run(npm(&ui).args(["run", "size"]))?;
    Ok(Tally { said: format!("{} files of ui/dist", fresh.len()), ..Tally::default() })
}

fn npm(ui: &Path) -> Command {
    let mut npm = Command::new("npm");
    npm.current_dir(ui);
    npm
}

/// Exactly what the lock names; no package runs anything while it is installed.
pub(crate) fn fetch_packages(ui: &Path) -> Result<()> {
    let quiet = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    tools::run(npm(ui).args(quiet)).context("the browser app needs Node 20.19 or later with npm")
}

/// Types and tests.
fn try_out(ui: &Path) -> Result<()> {
    tools::run(npm(ui).args(["run", "check"]))?;
    tools::run(npm(ui).args(["run", "test"]))
}

fn same_types(ui: &Path, made: &Path) -> Result<()> {
    let command = ["exec", "--", "openapi-typescript", "../docs/openapi.json", "-o"];
    tools::run(npm(ui).args(command).arg(made))?;
    let is_same = std::fs::read(ui.join(TYPES))? == std::fs::read(made)?;
    ensure!(is_same, "ui/{TYPES} is not of this docs/openapi.json; run `cargo xtask ui`");
    Ok(())
}

fn same_files(committed: &BTreeMap<PathBuf, Vec<u8>>, fresh: &BTreeMap<PathBuf, Vec<u8>>) -> Result<()> {
    let all = committed.keys().chain(fresh.keys());
    let mut others: Vec<_> = all.filter(|name| committed.get(*name) != fresh.get(*name)).collect();
    others.sort();
    others.dedup();
    if others.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = others.into_iter().map(|name| name.display().to_string()).collect();
    bail!("ui/dist is not what its sources make: {}; run `cargo xtask ui`, and commit it", names.join(", "))
}

/// Every file below a directory, by its path from there.
fn files(dir: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let (mut found, mut left) = (BTreeMap::new(), vec![dir.to_owned()]);
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(&next).with_context(|| next.display().to_string())? {
            let path = entry?.path();
            match path.is_dir() {
                true => left.push(path),
                false => {
                    let bytes = std::fs::read(&path)?;
                    found.insert(path.strip_prefix(dir).expect("it is below").to_owned(), bytes);
                }
            }
        }
    }
    Ok(found)
}

/// The hash of everything that `ui/dist` is built of: names and bytes, in the order of the names.
pub(crate) fn sources_hash(house: &Repository) -> String {
    let texts = house.texts().map(|(path, text)| (path, text.as_bytes()));
    let others = house.others.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice()));
    let sources: BTreeMap<_, _> = texts.chain(others).filter(|(path, _)| is_source(path)).collect();
    let mut hash = Sha256::new();
    for (path, bytes) in sources {
        hash.update(Sha256::digest(path));
        hash.update(Sha256::digest(bytes));
    }
    hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn is_source(path: &str) -> bool {
    path.starts_with("ui/")
        && !path.starts_with(DIST)
        && !path.starts_with(BROWSER)
        && !path.ends_with(".md")
        && !path.ends_with(".test.ts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_of_what_is_built_and_of_nothing_else() {
        let house = || Repository::in_order().file("ui/src/app.ts", "app").file("ui/index.html", "<html>");
        let hash = sources_hash(&house());
        assert_eq!(hash.len(), 64);
        for (path, text) in [
            ("ui/dist/app.js", "built"),
            ("ui/README.md", "words"),
            ("ui/src/model/fold.test.ts", "a test"),
            ("ui/browser/first_run.spec.ts", "a test"),
            ("src/app.ts", "elsewhere"),
        ] {
            assert_eq!(sources_hash(&house().file(path, text)), hash, "{path}");
        }
        for (path, text) in
            [("ui/src/app.ts", "app!"), ("ui/src/more.ts", ""), ("ui/package-lock.json", "{}")]
        {
            assert_ne!(sources_hash(&house().file(path, text)), hash, "{path}");
        }
        let mut house = house();
        house.others.insert("ui/public/icon.png".into(), vec![0xff]);
        assert_ne!(sources_hash(&house), hash, "pictures count, too");
    }

    #[test]
    fn whatever_is_otherwise_in_a_fresh_build_is_named() {
        let files = |names: &[(&str, &str)]| -> BTreeMap<PathBuf, Vec<u8>> {
            names.iter().map(|(name, text)| (PathBuf::from(name), text.as_bytes().to_vec())).collect()
        };
        let committed = files(&[("app.js", "1"), ("old.js", "1"), ("same.js", "1")]);
        assert!(same_files(&committed, &committed).is_ok());
        let fresh = files(&[("app.js", "2"), ("new.js", "1"), ("same.js", "1")]);
        let told = same_files(&committed, &fresh).unwrap_err().to_string();
        assert!(told.contains("app.js, new.js, old.js;"), "{told}");
    }
}

//! The house as chores see it: the text files git knows or would take, and the rooms cargo knows.
//!
//! Only this file reads the disk for that; a test makes its own [`Repository`] from a few strings.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

pub(crate) struct Repository {
    /// Text by path from the root, with forward slashes. Files that are not UTF-8 are not here.
    pub(crate) files: BTreeMap<String, String>,
    /// Files below `ui/` that are not text: pictures.
    pub(crate) others: BTreeMap<String, Vec<u8>>,
    pub(crate) rooms: Vec<Room>,
}

/// A package of the workspace.
pub(crate) struct Room {
    /// From the root, for instance `crates/kernel`. This is the room's name in ARCHITECTURE.md.
    pub(crate) dir: String,
    /// The name cargo knows it by, for instance `homing-kernel`.
    pub(crate) package: String,
    pub(crate) uses: Vec<Use>,
}

/// One line of a room's dependency tables.
pub(crate) struct Use {
    pub(crate) package: String,
    /// Set when the package is a room of this house.
    pub(crate) room: Option<String>,
    pub(crate) by: By,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// `[dependencies]` and `[build-dependencies]`: part of what we ship.
    Product,
    /// `[dev-dependencies]`.
    Tests,
}

impl Repository {
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let (files, others) = read_files(root)?;
        Ok(Self { files, others, rooms: read_rooms(root)? })
    }

    pub(crate) fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts().filter(|(path, _)| path.ends_with(".rs"))
    }

    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    pub(crate) fn text(&self, path: &str) -> &str {
        self.files.get(path).map_or("", String::as_str)
    }

    pub(crate) fn room(&self, dir: &str) -> Option<&Room> {
        self.rooms.iter().find(|room| room.dir == dir)
    }
}

impl Room {
    pub(crate) fn manifest(&self) -> String {
        format!("{}/Cargo.toml", self.dir)
    }
}

/// Files by path, as text or as bytes.
type FilesOf<T> = BTreeMap<String, T>;

fn read_files(root: &Path) -> Result<(FilesOf<String>, FilesOf<Vec<u8>>)> {
    // Files not yet added count too: chores are run before the commit.
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("the list of files is git's, and git could not be run")?;
    ensure!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let names = String::from_utf8(listed.stdout).context("a file name is not UTF-8")?;
    let (mut files, mut others) = (BTreeMap::new(), BTreeMap::new());
    for name in names.split_terminator('\0') {
        // A file that is listed and gone was deleted and not committed yet; there is nothing to read in it.
        let Ok(bytes) = std::fs::read(root.join(name)) else { continue };
        match String::from_utf8(bytes) {
            Ok(text) => drop(files.insert(name.to_string(), text)),
            Err(error) if name.starts_with("ui/") => {
                drop(others.insert(name.to_string(), error.into_bytes()))
            }
            Err(_) => {}
        }
    }
    Ok((files, others))
}

fn read_rooms(root: &Path) -> Result<Vec<Room>> {
    let printed = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()
        .context("the list of rooms is cargo's, and cargo could not be run")?;
    ensure!(printed.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&printed.stderr));
    let metadata: Metadata = serde_json::from_slice(&printed.stdout).context("cargo metadata")?;
    Ok(metadata.packages.into_iter().map(|package| package.room(root)).collect())
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
    path: Option<String>,
}

impl Package {
    fn room(self, root: &Path) -> Room {
        let dir = Path::new(&self.manifest_path).parent().expect("a manifest is in a directory");
        Room {
            dir: inside(root, dir),
            package: self.name,
            uses: self.dependencies.into_iter().map(|dependency| dependency.read(root)).collect(),
        }
    }
}

impl Dependency {
    fn read(self, root: &Path) -> Use {
        Use {
            package: self.name,
            room: self.path.map(|path| inside(root, Path::new(&path))),
            by: if self.kind.as_deref() == Some("dev") { By::Tests } else { By::Product },
        }
    }
}

fn inside(root: &Path, dir: &Path) -> String {
    dir.strip_prefix(root).unwrap_or(dir).to_string_lossy().replace('\\', "/")
}

/// Houses for the rules' tests.
#[cfg(test)]
impl Repository {
    /// A house of three rooms with nothing out of place.
    pub(crate) fn in_order() -> Self {
        let map = "| Room | In one sentence | May use |\n|---|---|---|\n\
                   | `crates/kernel` | Rules. | – |\n\
                   | `crates/engine` | Carries. | kernel |\n\
                   | `crates/server` | Speaks. | engine |\n\
                   | `crates/testkit` | Tests. | – |\n";
        let words = "```forbidden-types\nJob        turn\n*Manager   the noun\n```\n";
        Self { files: BTreeMap::new(), others: BTreeMap::new(), rooms: Vec::new() }
            .file("ARCHITECTURE.md", map)
            .file("GLOSSARY.md", words)
            .file("crates/kernel/src/lib.rs", "//! Rules.\n#![no_std]\n")
            .file("crates/engine/src/lib.rs", "//! Carries.\n")
            .room_using("crates/kernel", &[])
            .room_using("crates/engine", &[("crates/kernel", By::Product)])
            .room_using("crates/server", &[("crates/engine", By::Product)])
            .room_using("crates/testkit", &[])
    }

    pub(crate) fn file(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.into(), text.into());
        self
    }

    /// Adds a room, or replaces it. A name with a slash is a room of the house, any other a package from outside.
    pub(crate) fn room_using(mut self, dir: &str, uses: &[(&str, By)]) -> Self {
        self.rooms.retain(|room| room.dir != dir);
        let uses = uses.iter().map(|&(name, by)| Use {
            package: name.into(),
            room: name.contains('/').then(|| name.into()),
            by,
        });
        self.rooms.push(Room { dir: dir.into(), package: dir.replace('/', "-"), uses: uses.collect() });
        self
    }
}

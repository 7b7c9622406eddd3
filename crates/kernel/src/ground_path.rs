//! The path of something on an agent's ground: a session's directory, a worktree, a repository.
//!
//! Agents can put anything there at any time. So nobody opens such a path who has not been let: it is no `Path`, does not become
//! one by itself, and `tidy` lists who may take the text out (`GROUND_TAKERS` in `xtask/src/tidy/ground.rs`), for which use.

use crate::is_under;
use alloc::borrow::ToOwned;
use alloc::string::String;

/// The absolute path of something on an agent's ground. It can be compared and said on, and not opened:
///
/// ```compile_fail,E0277
/// let directory = homing_kernel::GroundPath::from("/srv/shop");
/// let _ = std::fs::read(directory);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroundPath(String);

impl GroundPath {
    /// The path of nothing: where an ended session is.
    pub const fn nowhere() -> Self {
        Self(String::new())
    }

    /// Its text for whoever reads it: people, the wire, and what is stored.
    pub fn for_readers(&self) -> &str {
        &self.0
    }

    /// Its text for a process that is started on that ground, behind its wall: a ground worker, an agent, their supervisor.
    pub fn for_launch(&self) -> &str {
        &self.0
    }

    /// Its text for whoever holds it by a descriptor, without following links and without opening it.
    pub fn for_holding(&self) -> &str {
        &self.0
    }

    /// True if it is a directory or below it, by its name alone.
    pub fn is_under(&self, root: &str) -> bool {
        is_under(&self.0, root)
    }
}

impl From<String> for GroundPath {
    fn from(path: String) -> Self {
        Self(path)
    }
}

impl From<&str> for GroundPath {
    fn from(path: &str) -> Self {
        Self(path.to_owned())
    }
}

impl PartialEq<str> for GroundPath {
    fn eq(&self, path: &str) -> bool {
        self.0 == path
    }
}

impl PartialEq<&str> for GroundPath {
    fn eq(&self, path: &&str) -> bool {
        self.0 == *path
    }
}

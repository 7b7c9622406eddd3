//! The name of a session's process tree, fixed before the tree exists.

use alloc::string::{String, ToString};
use core::fmt;

use crate::id::SessionId;

/// The name of everything that runs for a session: its lock file, its control group and the mark in its environment. Made of
/// the session alone, so that two processes for one session cannot exist whoever starts them, a process that is kept
/// between turns stays the session's, and a keeper that starts after a crash finds it without having been told. Only
/// letters, digits and `_`: safe as a file name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeName(String);

impl TreeName {
    /// The tree of that session.
    pub fn of(session: SessionId) -> Self {
        Self(session.to_string())
    }

    /// The tree of whatever of ours works on that session's ground, beside the session's own.
    pub fn of_ground(session: SessionId) -> Self {
        Self(session.to_string() + "_ground")
    }

    /// The name, as it stands in file names.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TreeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

//! The name of an attempt's process tree, fixed before the tree exists.

use std::fmt;

use kernel::{Fence, SessionId};

/// Names everything an attempt starts: its lock file, its control group and the mark in its environment. Made of the
/// session and the fence alone, so that a keeper that starts after a crash finds it without having been told. Only
/// letters, digits, `_` and `-`: safe as a file name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeName(String);

impl TreeName {
    /// The tree of that attempt.
    pub fn of(session: SessionId, fence: Fence) -> Self {
        let Fence { term, epoch, turn, attempt } = fence;
        Self(format!("{session}-{term}-{epoch}-{turn}-{attempt}"))
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

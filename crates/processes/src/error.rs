//! The error of whoever starts or ends processes, by what can be done about it.

use std::fmt;

/// Nothing was started or ended. The words are for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProcessError {
    /// Somebody else has the tree: later, by itself.
    #[error("{0}")]
    Busy(String),
    /// A person has to change something first: the program, the directory, the wall.
    #[error("{0}")]
    Refused(String),
    /// It may work the next time.
    #[error("{0}")]
    Failed(String),
}

impl ProcessError {
    pub(crate) fn refused(words: impl fmt::Display) -> Self {
        Self::Refused(words.to_string())
    }

    pub(crate) fn failed(words: impl fmt::Display) -> Self {
        Self::Failed(words.to_string())
    }
}

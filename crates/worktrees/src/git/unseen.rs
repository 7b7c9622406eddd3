//! The parts of a working tree that a snapshot did not look at, each with the reason: they stand in the snapshot's own commit, and a
//! diff says them.
//!
//! Ignored files are not among them: nobody looks at those, and nobody counts them. A diff says so where nothing else has changed.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Git;
use super::error::GitError;
use super::repository::Repository;
use super::snapshot::Snapshot;

/// Parts that are written down; the rest is only counted.
const PARTS_MAX: usize = 100;

/// Why something was not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum UnseenReason {
    /// A file that git does not track, larger than is kept.
    Large,
    /// It cannot be read.
    Closed,
    /// A repository of its own, which is no submodule.
    Nested,
    /// A submodule: its commit is in the snapshot, and what is not committed in it is not.
    Submodule,
}

/// A part of a working tree that a snapshot did not look at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UnseenPart {
    pub reason: UnseenReason,
    /// From the root of the working tree, for people: what is not UTF-8 is shown as such.
    pub path: String,
}

impl UnseenReason {
    const fn word(self) -> &'static str {
        match self {
            Self::Large => "large",
            Self::Closed => "closed",
            Self::Nested => "nested",
            Self::Submodule => "submodule",
        }
    }

    fn of(word: &str) -> Option<Self> {
        [Self::Large, Self::Closed, Self::Nested, Self::Submodule]
            .into_iter()
            .find(|each| each.word() == word)
    }
}

impl UnseenPart {
    pub(super) fn new(reason: UnseenReason, path: &[u8]) -> Self {
        let path = String::from_utf8_lossy(path.strip_suffix(b"/").unwrap_or(path));
        // It becomes one line.
        Self { reason, path: path.replace(char::is_control, "\u{fffd}") }
    }

    /// In a snapshot's header.
    pub(super) fn line(&self) -> String {
        format!("{} {}", self.reason.word(), self.path)
    }

    pub(super) fn read(line: &str) -> Option<Self> {
        let (word, path) = line.split_once(' ')?;
        Some(Self { reason: UnseenReason::of(word)?, path: path.to_owned() })
    }

    /// For people.
    pub(super) fn words(&self, large_bytes: u64) -> String {
        let path = &self.path;
        match self.reason {
            UnseenReason::Large => {
                format!(
                    "{path} was not looked at: it is not tracked, and larger than {} MiB",
                    large_bytes >> 20
                )
            }
            UnseenReason::Closed => format!("{path} was not looked at: it cannot be read"),
            UnseenReason::Nested => format!("{path} was not looked at: it is a repository of its own"),
            UnseenReason::Submodule => {
                format!("{path} is a submodule: only its commit was looked at, not what is in it")
            }
        }
    }
}

/// The first of them, in their order.
pub(super) fn bounded(parts: BTreeSet<UnseenPart>) -> Vec<UnseenPart> {
    parts.into_iter().take(PARTS_MAX).collect()
}

impl Git {
    /// Sentences about what two snapshots did not look at, or what may become of them.
    pub async fn unseen(&self, from: &Snapshot, to: &Snapshot) -> Result<Vec<String>, GitError> {
        let shadow = self.shadow(&Repository::at_common(&from.repository)?)?;
        let told = tokio::try_join!(self.told(&shadow, &from.commit), self.told(&shadow, &to.commit))?;
        let parts: BTreeSet<UnseenPart> = told.0.unseen.into_iter().chain(told.1.unseen).collect();
        let mut said: Vec<String> =
            parts.iter().map(|part| part.words(self.bounds.untracked_bytes_max)).collect();
        if parts.len() >= PARTS_MAX {
            said.push("there is more that was not looked at".to_owned());
        }
        if shadow.store.is_beyond() {
            said.push(format!(
                "this can be shown and undone only as long as the repository has what it was: copies of its snapshots \
                 would take more than {} MiB",
                self.bounds.store_bytes_max >> 20
            ));
        }
        Ok(said)
    }
}

//! The changes of a turn in its directory.
//!
//! The tree is remembered before the words leave us and after the processes are gone. Git's troubles never fail a turn: a
//! notice says what could not be seen.

use crate::{OwnedSession, TreeChanges, Trees, TreesError};
use kernel::{GroundPath, Turn};
use std::sync::Arc;
use std::time::Duration;

/// The longest that a look at a tree may take before the turn goes on without it.
const LOOK_MAX: Duration = Duration::from_secs(120);

/// The snapshots of one directory before and after one turn.
#[derive(Debug, Clone)]
pub(crate) struct TurnSnapshots {
    trees: Arc<dyn Trees>,
    of: OwnedSession,
    turn: Turn,
    directory: GroundPath,
}

/// The state before the turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TreeBefore {
    /// The tree was seen; what changes can be told.
    Tree,
    /// No tree under version control.
    NoTree,
    /// It could not be seen.
    Unseen(String),
}

impl TurnSnapshots {
    pub(crate) fn new(trees: &Arc<dyn Trees>, of: OwnedSession, turn: Turn, directory: &GroundPath) -> Self {
        Self { trees: trees.clone(), of, turn, directory: directory.clone() }
    }

    pub(crate) async fn before(self) -> TreeBefore {
        match in_time(self.trees.remember_before(self.of.clone(), &self.directory, self.turn)).await {
            Ok(true) => TreeBefore::Tree,
            Ok(false) => TreeBefore::NoTree,
            Err(why) => {
                TreeBefore::Unseen(format!("what this turn changes cannot be shown or undone: {why}"))
            }
        }
    }

    /// Its changes; none if there is nothing to compare. `edits` are the files of which the agent has said that it changed them.
    pub(crate) async fn after(self, edits: Option<Vec<String>>) -> Result<Option<TreeChanges>, String> {
        let unseen = |why: TreesError| format!("what this turn has changed could not be seen: {why}");
        let changes = self.trees.remember_after(self.of.clone(), &self.directory, self.turn, edits);
        in_time(changes).await.map_err(unseen)
    }

    /// Words about older turns of the session that cannot be undone any more, said once.
    pub(crate) fn gone(&self) -> Option<String> {
        self.trees.gone(self.of.session)
    }
}

async fn in_time<T>(work: impl Future<Output = Result<T, TreesError>>) -> Result<T, TreesError> {
    match tokio::time::timeout(LOOK_MAX, work).await {
        Ok(done) => done,
        Err(_) => Err(TreesError::Failed(format!("git took longer than {} seconds", LOOK_MAX.as_secs()))),
    }
}

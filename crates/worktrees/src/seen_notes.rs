//! Notes of what worktrees looked like when a worker last looked at them: lists show these, and start nothing.
//!
//! A worker writes them beside its own records; the server reads them, and trusts neither their size nor their kind.

use std::path::{Path, PathBuf};

use engine::TreeSeen;
use kernel::SessionId;

use crate::git::{WorktreeName, make_private, read_own, write_note};
use crate::worker::SeenForm;

/// The notes in one part of the data directory.
#[derive(Debug, Clone)]
pub(crate) struct SeenNotes(PathBuf);

impl SeenNotes {
    /// Those beside git's own files at this place.
    pub(crate) fn at(own: &Path) -> Self {
        Self(own.join("seen"))
    }

    fn path(&self, name: &WorktreeName) -> PathBuf {
        self.0.join(format!("{name}.json"))
    }

    /// Notes it. What cannot be noted is looked at by whoever asks.
    pub(crate) fn write(&self, name: &WorktreeName, seen: &TreeSeen) {
        let text = serde_json::to_vec(&SeenForm::from(seen.clone())).unwrap_or_default();
        let _ = make_private(&self.0).and_then(|()| write_note(&self.path(name), &text));
    }

    pub(crate) fn forget(&self, name: &WorktreeName) {
        let _ = std::fs::remove_file(self.path(name)); // A note of a worktree that is not there is shown to nobody.
    }

    /// The note of one worktree.
    pub(crate) fn read(&self, session: SessionId, name: &WorktreeName) -> Option<TreeSeen> {
        let text = read_own(&self.path(name)).ok()?;
        let form: SeenForm = serde_json::from_slice(&text).ok()?;
        Some(form.tree(session))
    }
}

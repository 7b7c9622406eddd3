//! Taking an undo back: the files that it changed become what they were just before it.
//!
//! It is an undo in the other direction, from what the undo has made to the safety snapshot that it took first, and is refused
//! for the same reasons. The undos of a working tree are noted beside its shadow, the last one last.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use kernel::SessionId;
use serde::{Deserialize, Serialize};

use super::Git;
use super::error::{GitError, UndoError};
use super::file_modes::FileModes;
use super::names::{SnapshotName, is_object_id};
use super::note::{NotedPath, SnapshotNote};
use super::repository::Repository;
use super::shadow::{ShadowRepository, write_whole};
use super::snapshot::Snapshot;
use super::undo::{PutBack, Reversal, Undone};

/// Where the undos of a working tree are noted.
const UNDONE: &str = "undone.json";
/// Undos that are noted. Older ones cannot be taken back any more.
const UNDONE_MAX: usize = 100;

/// An undo that has changed files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UndoneNote {
    session: String,
    turn: u64,
    /// The trees before and after the turn.
    before: String,
    after: String,
    /// The files that were meant, if not all.
    only: Option<BTreeSet<NotedPath>>,
    /// The modes that files have got by it.
    #[serde(default)]
    modes: BTreeMap<NotedPath, u32>,
    /// Everything as it was just before the undo.
    safety: Snapshot,
    is_taken_back: bool,
}

impl UndoneNote {
    pub(super) fn of(name: &SnapshotName, wanted: &Reversal, done: &PutBack) -> Self {
        Self {
            session: name.session.to_string(),
            turn: name.turn,
            before: wanted.before.clone(),
            after: wanted.after.clone(),
            only: wanted.only.clone(),
            modes: done.modes.clone(),
            safety: done.safety.clone(),
            is_taken_back: false,
        }
    }
}

impl Git {
    /// Takes back the last undo of a turn in this working tree. Asked again it answers that there is nothing left to do.
    ///
    /// `guard` is asked last, as for an undo; `safety` names the snapshot that is taken first.
    pub async fn redo(
        &self,
        directory: &Path,
        session: SessionId,
        safety: &SnapshotName,
        guard: impl Fn() -> bool + Send,
    ) -> Result<Undone, UndoError> {
        let repository = Repository::must_be_around(directory)?;
        let _held = self.hold(&repository.top, &repository.common).await?;
        let shadow = self.shadow_held(&repository)?;
        let mut noted = undone_notes(&shadow);
        let is_it = |note: &&mut UndoneNote| note.session == session.to_string() && note.turn == safety.turn;
        let Some(last) = noted.iter_mut().rev().find(is_it) else { return Err(UndoError::NotUndone) };
        let moves = Vec::new();
        if last.is_taken_back {
            return Ok(Undone { files: Vec::new(), safety: last.safety.clone(), moves });
        }
        let wanted = self.reversal_of(&repository, &shadow, last).await?;
        let done = self.put_back(&repository, &shadow, &wanted, safety, None, guard).await?;
        last.is_taken_back = true;
        write_notes(&shadow, &noted)?;
        self.step()?;
        self.end_journal(&shadow)?;
        Ok(Undone { files: done.files, safety: done.safety, moves })
    }

    /// From what an undo has made to what there was before it.
    async fn reversal_of(
        &self,
        repository: &Repository,
        shadow: &ShadowRepository,
        undone: &UndoneNote,
    ) -> Result<Reversal, GitError> {
        // Notes come back from storage: what is handed to git is checked again.
        if ![&undone.before, &undone.after].into_iter().all(|tree| is_object_id(tree)) {
            return Err(GitError::NoSuchSnapshot(undone.safety.reference.clone()));
        }
        let safety = self.snapshot_at(repository, &undone.safety.reference).await?;
        if safety.commit != undone.safety.commit {
            return Err(GitError::NoSuchSnapshot(safety.reference));
        }
        let mut turn = self.steps(shadow, &undone.before, &undone.after).await?;
        turn.retain(|path, _| {
            undone.only.as_ref().is_none_or(|only| only.contains(&NotedPath(path.clone())))
        });
        let index = shadow.raw.join("index.redo");
        let _ = fs::remove_file(&index);
        self.raw(shadow, "read-tree").words([&safety.tree]).index(&index).out().await?;
        let after = self.with_entries(shadow, &index, &turn).await?;
        let told = self.told(shadow, &safety.commit).await?;
        let modes_before = SnapshotNote::read(told.note.as_deref()).modes;
        let modes_after = Some(FileModes::listed(undone.modes.clone()));
        Ok(Reversal { before: safety.tree, after, modes_before, modes_after, only: None })
    }

    /// Notes an undo. One that is gone on with is noted once.
    pub(super) fn note_undone(&self, shadow: &ShadowRepository, undone: UndoneNote) -> Result<(), GitError> {
        let mut noted = undone_notes(shadow);
        if noted.iter().any(|note| note.safety == undone.safety) {
            return Ok(());
        }
        noted.push(undone);
        let old = noted.len().saturating_sub(UNDONE_MAX);
        noted.drain(..old);
        write_notes(shadow, &noted)?;
        self.step()
    }
}

fn undone_notes(shadow: &ShadowRepository) -> Vec<UndoneNote> {
    let text = fs::read(shadow.dir.join(UNDONE)).ok();
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

fn write_notes(shadow: &ShadowRepository, noted: &[UndoneNote]) -> Result<(), GitError> {
    write_whole(&shadow.dir.join(UNDONE), &serde_json::to_vec(noted).unwrap_or_default())
}

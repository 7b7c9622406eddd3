//! Notes of what worktrees looked like when a worker last looked at them: lists show these, and start nothing.
//!
//! A worker writes them beside its own records; the server reads them, and trusts neither their size nor their kind.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use engine::TreeSeen;
use kernel::SessionId;
use rustix::fs::OFlags;

use crate::git::{WorktreeName, write_note};
use crate::worker::SeenForm;

/// A longer note is none of ours.
const NOTE_BYTES_MAX: u64 = 64 * 1024;

/// The notes in one part of the data directory.
#[derive(Debug)]
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
        let _ = std::fs::create_dir_all(&self.0).map(|()| write_note(&self.path(name), &text));
    }

    pub(crate) fn forget(&self, name: &WorktreeName) {
        let _ = std::fs::remove_file(self.path(name)); // A note of a worktree that is not there is shown to nobody.
    }

    /// The note of one worktree.
    pub(crate) fn read(&self, session: SessionId, name: &WorktreeName) -> Option<TreeSeen> {
        let text = read_small(&self.path(name)).ok()?;
        let form: SeenForm = serde_json::from_slice(&text).ok()?;
        Some(form.tree(session))
    }

    /// All notes of these worktrees, by whose they are and what they are called.
    pub(crate) fn of(
        &self,
        names: impl IntoIterator<Item = (WorktreeName, Option<SessionId>)>,
    ) -> BTreeMap<(SessionId, String), TreeSeen> {
        let notes = names.into_iter().filter_map(|(name, session)| {
            let session = session?;
            let own = name.own(session)?.to_owned();
            Some(((session, own), self.read(session, &name)?))
        });
        notes.collect()
    }
}

/// A small plain file. Neither a link nor a pipe in its place leads us anywhere.
fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let file = std::fs::File::options().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = Vec::new();
    file.take(NOTE_BYTES_MAX).read_to_end(&mut text)?;
    Ok(text)
}

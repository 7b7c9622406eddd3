//! The paths that a look has named, sorted by how they stand in the working tree.

use std::collections::BTreeSet;
use std::path::Path;

use super::directory_handle::{DirectoryHandle, EntryKind};
use super::error::GitError;
use super::repository::bytes_path;
use super::unseen::{UnseenPart, UnseenReason};

/// Paths by what is to be done with them, each ended by a zero.
pub(super) struct SortedPaths {
    pub(super) gone: Vec<u8>,
    pub(super) there: Vec<u8>,
    /// Repositories within this one, each by itself.
    pub(super) nested: Vec<Vec<u8>>,
    pub(super) unseen: Vec<UnseenPart>,
}

/// Git would stop at the first path it cannot add: what is neither a file nor a link is gone, and so is what stands behind
/// a link; what cannot be read stays as it was.
pub(super) fn sort(
    top: &Path,
    tracked: BTreeSet<Vec<u8>>,
    untracked: BTreeSet<Vec<u8>>,
    untracked_bytes_max: u64,
) -> Result<SortedPaths, GitError> {
    let inside = DirectoryHandle::open(top).map_err(GitError::disk(top))?;
    let mut sorted =
        SortedPaths { gone: Vec::new(), there: Vec::new(), nested: Vec::new(), unseen: Vec::new() };
    let tracked = tracked.into_iter().map(|path| (path, u64::MAX));
    let untracked = untracked.into_iter().map(|path| (path, untracked_bytes_max));
    for (mut path, bytes_max) in tracked.chain(untracked) {
        let stands = how_it_stands(&inside, &bytes_path(&path), bytes_max);
        if let Err(reason) = stands {
            sorted.unseen.push(UnseenPart::new(reason, &path));
        }
        path.push(0);
        match stands {
            Ok(EntryKind::File | EntryKind::Link) => sorted.there.extend(path),
            Ok(EntryKind::Directory) => sorted.nested.push(path),
            Ok(EntryKind::Other | EntryKind::Nothing) => sorted.gone.extend(path),
            Err(_) => {}
        }
    }
    Ok(sorted)
}

/// An error: it is there, and is left as it was.
fn how_it_stands(inside: &DirectoryHandle, path: &Path, bytes_max: u64) -> Result<EntryKind, UnseenReason> {
    let Ok((parent, name)) = inside.parent(path) else { return Ok(EntryKind::Nothing) };
    let stands = parent.stands(name).unwrap_or(EntryKind::Nothing);
    match stands {
        EntryKind::File => match parent.read(name).and_then(|file| file.metadata()) {
            Ok(about) if about.len() > bytes_max => Err(UnseenReason::Large),
            Ok(_) => Ok(EntryKind::File),
            Err(_) => Err(UnseenReason::Closed),
        },
        // A directory where a file was; what is in it has paths of its own.
        EntryKind::Directory
            if inside
                .parent(&path.join(".git"))
                .is_ok_and(|(at, name)| at.stands(name).ok() == Some(EntryKind::Nothing)) =>
        {
            Ok(EntryKind::Nothing)
        }
        stands => Ok(stands),
    }
}

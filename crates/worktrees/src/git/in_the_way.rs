//! Things that stand where a file is to be written, and that no tree of ours has: git does not see them, or is told to ignore them.
//!
//! Git takes what is ignored for something that it may write over, and stops in the midst at what it does not know (a pipe, say). Neither
//! is for us: whatever stands there is somebody's, and is in no snapshot.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::FileType;

use super::blocking;
use super::diff::TreeEntry;
use super::directory_handle::{DirectoryHandle, EntryKind};
use super::error::GitError;
use super::objects::blob_id;
use super::repository::Repository;
use super::snapshot::path_of;

/// Entries of a directory where a file is to be, and of those in it, that are looked at. With more it is in the way.
const ENTRIES_MAX: usize = 100_000;
/// A file is compared with what is to be there up to this size.
const COMPARED_BYTES_MAX: u64 = 256 * 1024 * 1024;
const LINK: &str = "120000";

/// The thing that stands at the place of a file that is to come.
enum Occupant {
    /// Nothing, or what the trees have: git moves it.
    Nothing,
    /// A file or a link that no tree has.
    Hidden,
    /// Something in which such a thing is, or which is none of these.
    InTheWay,
}

/// Those of these files that cannot come because something stands there that no tree has. What is already as it is to be is not in the
/// way. `is_seen` says if a path is in the tree of now.
pub(super) async fn hidden_in_the_way<'a>(
    repository: &Repository,
    coming: impl Iterator<Item = (&'a Vec<u8>, &'a TreeEntry)>,
    is_seen: impl Fn(&[u8]) -> bool,
) -> Result<BTreeSet<Vec<u8>>, GitError> {
    let inside = DirectoryHandle::open(&repository.top).map_err(GitError::disk(&repository.top))?;
    let (mut found, mut hidden) = (BTreeSet::new(), Vec::<(Vec<u8>, TreeEntry)>::new());
    for (path, wanted) in coming {
        match standing(&inside, path, &is_seen) {
            Occupant::Nothing => {}
            Occupant::Hidden => hidden.push((path.clone(), wanted.clone())),
            Occupant::InTheWay => drop(found.insert(path.clone())),
        }
    }
    // Compared by their ids: a turn may have had whole directories ignored, and a run of git for each file would take minutes.
    let others = blocking(move || {
        hidden.retain(|(path, wanted)| !is_as_wanted(&inside, &path_of(path), wanted));
        Ok(hidden)
    });
    found.extend(others.await?.into_iter().map(|(path, _)| path));
    Ok(found)
}

fn standing(inside: &DirectoryHandle, path: &[u8], is_seen: &impl Fn(&[u8]) -> bool) -> Occupant {
    let mut above = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at]);
    if above.any(is_seen) {
        return Occupant::Nothing;
    }
    let whole = path_of(path);
    let (parent, name) = match inside.parent(&whole) {
        Ok(found) => found,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Occupant::Nothing,
        // Something else than a directory is on the way.
        Err(_) => return Occupant::InTheWay,
    };
    match parent.stands(name) {
        Ok(EntryKind::Nothing) => Occupant::Nothing,
        Ok(EntryKind::File | EntryKind::Link) if is_seen(path) => Occupant::Nothing,
        Ok(EntryKind::File | EntryKind::Link) => Occupant::Hidden,
        Ok(EntryKind::Directory) if holds_only_seen(&parent, name, path, is_seen) => Occupant::Nothing,
        Ok(EntryKind::Directory | EntryKind::Other) | Err(_) => Occupant::InTheWay,
    }
}

/// True if there is nothing in a directory but what the trees have, and further directories like it.
fn holds_only_seen(
    parent: &DirectoryHandle,
    name: &OsStr,
    path: &[u8],
    is_seen: &impl Fn(&[u8]) -> bool,
) -> bool {
    let Ok(first) = parent.below(name) else { return false };
    let (mut left, mut entries) = (vec![(first, path.to_vec())], 0);
    while let Some((directory, path)) = left.pop() {
        let Ok(names) = directory.names() else { return false };
        for entry in names {
            let Ok(entry) = entry else { return false };
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            entries += 1;
            let below = [&path, b"/".as_slice(), name].concat();
            let name = OsStr::from_bytes(name);
            let is_directory = match directory.stat(name) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode) == FileType::Directory,
                Err(_) => return false,
            };
            match directory.below(name) {
                Ok(further) if is_directory => left.push((further, below)),
                _ if !is_directory && is_seen(&below) => {}
                _ => return false,
            }
            if entries > ENTRIES_MAX {
                return false;
            }
        }
    }
    true
}

/// True if a file has the bytes of that entry, or a link leads where it does.
fn is_as_wanted(inside: &DirectoryHandle, path: &Path, wanted: &TreeEntry) -> bool {
    id_of(inside, path, wanted).is_ok_and(|id| id.as_ref() == Some(&wanted.id))
}

/// The id of what stands there, as git would name it; none if it is the other one of file and link, or too large to be compared.
fn id_of(inside: &DirectoryHandle, path: &Path, like: &TreeEntry) -> io::Result<Option<String>> {
    let (parent, name) = inside.parent(path)?;
    match parent.stands(name)? {
        EntryKind::Link if like.mode == LINK => {
            let target = parent.read_link(name)?;
            blob_id(&mut target.as_slice(), target.len() as u64, &like.id)
        }
        EntryKind::File if like.mode != LINK => {
            let mut file = parent.read(name)?;
            let bytes = file.metadata()?.len();
            if bytes <= COMPARED_BYTES_MAX { blob_id(&mut file, bytes, &like.id) } else { Ok(None) }
        }
        _ => Ok(None),
    }
}

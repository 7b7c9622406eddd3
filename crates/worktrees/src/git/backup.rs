//! The copies of snapshot stores that go with a backup, and putting them back.
//!
//! A store is held while it is copied, so nothing in it is packed anew or deleted meanwhile. Snapshots may be added: refs are
//! copied first, so whatever one of them names is there when objects are copied. Putting back adds what is missing and takes
//! nothing away: objects are named by what they are, and a snapshot that is there already is as good or newer. Links are
//! never followed, nor copied.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, lchown, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::copy::COPIED;
use super::error::GitError;
use super::{Git, blocking, make_private};

/// The parts of a store in the order in which they are copied. The list of what is whole comes first of all: it must not name more than
/// there is.
const PARTS: &[&str] = &[COPIED, "taken-over", "gone", "refs", "shallow", "config", "HEAD", "objects", "of"];
/// The records of removed worktrees, without which nobody knows what their snapshots are.
const REMOVED: &str = "removed";

impl Git {
    /// Copies every store, and the records of removed worktrees, into a new directory. Gives the number of stores.
    pub async fn back_up(&self, to: &Path) -> Result<usize, GitError> {
        let stores = self.stores();
        if stores.is_empty() {
            return Ok(0);
        }
        make_private(&to.join("snapshots"))?;
        give_to_owner(to, &self.places.own)?;
        for store in &stores {
            let _held = self.hold(&store.dir.join(COPIED), &store.dir).await?;
            let name = store.dir.file_name().unwrap_or_default();
            let (from, to) = (store.dir.clone(), to.join("snapshots").join(name));
            blocking(move || copy_parts(&from, &to)).await?;
        }
        let (from, to) = (self.places.own.join(REMOVED), to.join(REMOVED));
        blocking(move || copy_missing(&from, &to)).await?;
        Ok(stores.len())
    }

    /// Adds what is missing here of what was copied there. Gives the number of stores.
    pub fn restore_backup(&self, from: &Path) -> Result<usize, GitError> {
        let mut count = 0;
        for entry in fs::read_dir(from.join("snapshots")).into_iter().flatten().flatten() {
            let to = self.stores_dir().join(entry.file_name());
            // One that is there knows itself what of it is whole. What is added is looked through after the next turn.
            copy_parts(&entry.path(), &to)?;
            let link = to.join("repository");
            match symlink(&to, &link) {
                Err(why) if why.kind() != ErrorKind::AlreadyExists => return Err(GitError::disk(&link)(why)),
                _ => lchown_like(&link, &fs::symlink_metadata(&to).map_err(GitError::disk(&to))?),
            }
            count += 1;
        }
        copy_missing(&from.join(REMOVED), &self.places.own.join(REMOVED))?;
        for place in fs::read_dir(&self.places.own).into_iter().flatten().flatten() {
            give_to_owner(&place.path(), &self.places.own)?;
        }
        Ok(count)
    }
}

fn copy_parts(from: &Path, to: &Path) -> Result<(), GitError> {
    let about = fs::symlink_metadata(from).map_err(GitError::disk(from))?;
    make_private(to)?;
    lchown_like(to, &about);
    PARTS.iter().try_for_each(|part| copy_missing(&from.join(part), &to.join(part)))
}

/// Copies a file, or a directory with everything in it, as far as it is not there yet. What is gone was never there.
fn copy_missing(from: &Path, to: &Path) -> Result<(), GitError> {
    let about = match fs::symlink_metadata(from) {
        Ok(about) => about,
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(GitError::disk(from)(why)),
    };
    if about.is_file() {
        return match to.symlink_metadata() {
            Ok(_) => Ok(()),
            Err(_) => copy_file(from, to, &about).map_err(GitError::disk(to)),
        };
    }
    if !about.is_dir() {
        return Ok(());
    }
    make_private(to)?;
    lchown_like(to, &about);
    for entry in fs::read_dir(from).map_err(GitError::disk(from))? {
        let entry = entry.map_err(GitError::disk(from))?;
        let name = entry.file_name();
        // Somebody is writing it, or was killed while they did.
        if is_unfinished(&name.to_string_lossy()) {
            continue;
        }
        copy_missing(&entry.path(), &to.join(name))?;
    }
    Ok(())
}

fn is_unfinished(name: &str) -> bool {
    name.starts_with("tmp_") || name.ends_with(".new") || name.ends_with(".lock")
}

/// With its owner and its time, there whole or not at all, and on the disk.
fn copy_file(from: &Path, to: &Path, about: &Metadata) -> io::Result<()> {
    let nofollow = OFlags::NOFOLLOW.bits().cast_signed();
    let mut source = match File::options().read(true).custom_flags(nofollow).open(from) {
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(()),
        source => source?,
    };
    let beside = PathBuf::from(format!("{}.copy.new", to.display()));
    let _ = fs::remove_file(&beside); // Somebody was killed while they wrote it.
    let mut target = File::options().write(true).create_new(true).mode(about.mode() & 0o700).open(&beside)?;
    io::copy(&mut source, &mut target)?;
    lchown_like(&beside, about);
    target.set_modified(about.modified()?)?;
    target.sync_all()?;
    fs::rename(&beside, to)
}

/// Gives it to whom that belongs to. Only root can; everybody else has one owner for all.
fn lchown_like(path: &Path, about: &Metadata) {
    let _ = lchown(path, Some(about.uid()), Some(about.gid()));
}

fn give_to_owner(path: &Path, of: &Path) -> Result<(), GitError> {
    lchown_like(path, &fs::symlink_metadata(of).map_err(GitError::disk(of))?);
    Ok(())
}

//! The store of a repository's snapshots: a bare repository of ours, one for each repository and operating system's user.
//!
//! It lies in our part of the data directory, where no agent comes. A raw shadow (`shadow`) has its objects and refs here, so
//! whatever a snapshot adds is written here, and the person's own objects are only read, as an alternate that git is told of
//! by its environment. Refs are one file each: this room alone writes them, and git reads them like any others.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::error::GitError;
use super::names::{HIDDEN, check_hidden, is_object_id};
use super::repository::{Repository, bytes_path, open_plain, read_own};
use super::run::GitCall;
use super::shadow::{config_of, key, remove_tree, write_note, write_whole};
use super::{Git, make_private};

/// A larger list of where history is cut off is not read further.
const SHALLOW_BYTES_MAX: u64 = 1024 * 1024;
/// Hidden refs have a session, a turn and a moment.
const REFERENCE_DEPTH: usize = 3;

/// The store of one repository's snapshots.
#[derive(Debug, Clone)]
pub(super) struct SnapshotStore {
    pub(super) dir: PathBuf,
    /// The common directory of the repository that it is of.
    pub(super) common: PathBuf,
}

/// A hidden ref and its commit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HiddenReference {
    pub(super) name: String,
    pub(super) commit: String,
}

impl Git {
    /// The store of a repository, made if it is missing.
    pub(super) fn store(&self, of: &Repository) -> Result<SnapshotStore, GitError> {
        let dir = self.stores_dir().join(store_name(of));
        let about = [of.common.as_os_str().as_bytes(), b"\0", of.format.as_bytes()].concat();
        match fs::read(dir.join("of")) {
            Ok(found) if found == about => {}
            Ok(_) => {
                return Err(GitError::strange(&of.top, "its snapshots are kept under a name that is taken"));
            }
            Err(_) => make_store(&dir, of, &about)?,
        }
        let store = SnapshotStore { dir, common: of.common.clone() };
        store.note_shallow()?;
        Ok(store)
    }

    /// Every store of ours with the repository that it is of; that one may be gone.
    pub(super) fn stores(&self) -> Vec<SnapshotStore> {
        let entries = fs::read_dir(self.stores_dir()).into_iter().flatten().flatten();
        let store = |dir: PathBuf| {
            let about = fs::read(dir.join("of")).ok()?;
            let common = bytes_path(about.split(|byte| *byte == 0).next()?);
            Some(SnapshotStore { dir, common })
        };
        let mut found: Vec<_> = entries.filter_map(|entry| store(entry.path())).collect();
        found.sort_by(|one, other| one.dir.cmp(&other.dir));
        found
    }

    pub(super) fn stores_dir(&self) -> PathBuf {
        self.places.own.join("snapshots")
    }

    /// Git in the store, with nothing but what is here.
    pub(super) fn alone(&self, store: &SnapshotStore, command: &str) -> GitCall {
        self.runner.call(&store.dir, command)
    }

    /// Git in the store, with the person's objects beside it.
    pub(super) fn beside(&self, store: &SnapshotStore, command: &str) -> GitCall {
        self.alone(store, command).alternate(&store.common.join("objects"))
    }
}

impl SnapshotStore {
    /// The commit of a hidden ref.
    pub(super) fn read(&self, reference: &str) -> Option<String> {
        check_hidden(reference).ok()?;
        let text = fs::read_to_string(self.dir.join(reference)).ok()?;
        let commit = text.trim_end();
        is_object_id(commit).then(|| commit.to_owned())
    }

    /// Points a hidden ref at a commit.
    pub(super) fn point(&self, reference: &str, commit: &str, is_durable: bool) -> Result<(), GitError> {
        check_hidden(reference)?;
        let path = self.dir.join(reference);
        let parent = path.parent().unwrap_or(&self.dir);
        let is_new = !parent.is_dir();
        make_private(parent)?;
        let text = format!("{commit}\n");
        if !is_durable {
            return write_note(&path, text.as_bytes());
        }
        write_whole(&path, text.as_bytes())?;
        let above = parent.ancestors().take(if is_new { REFERENCE_DEPTH + 1 } else { 1 });
        above.into_iter().try_for_each(sync_directory)
    }

    /// Deletes a hidden ref if it still is that commit, and directories that nothing is in any more.
    pub(super) fn unpoint(&self, reference: &HiddenReference) -> Result<(), GitError> {
        if self.read(&reference.name).as_ref() != Some(&reference.commit) {
            return Ok(());
        }
        let path = self.dir.join(&reference.name);
        match fs::remove_file(&path) {
            Err(why) if why.kind() != ErrorKind::NotFound => return Err(GitError::disk(&path)(why)),
            _ => {}
        }
        for above in path.ancestors().skip(1).take(REFERENCE_DEPTH - 1) {
            let _ = fs::remove_dir(above); // One that is not empty stays.
        }
        Ok(())
    }

    /// All hidden refs, or those whose names begin so: `refs/homing/` or a directory below it.
    pub(super) fn references(&self, below: &str) -> Vec<HiddenReference> {
        let mut found = Vec::new();
        let mut left = vec![self.dir.join(below)];
        while let Some(path) = left.pop() {
            for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
                let path = entry.path();
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    left.push(path);
                } else if let Some(name) = path.strip_prefix(&self.dir).ok().and_then(Path::to_str)
                    && let Some(commit) = self.read(name)
                {
                    found.push(HiddenReference { name: name.to_owned(), commit });
                }
            }
        }
        found.sort();
        found
    }

    /// When it was pointed at what it is.
    pub(super) fn written(&self, reference: &HiddenReference) -> Option<SystemTime> {
        fs::symlink_metadata(self.dir.join(&reference.name)).ok()?.modified().ok()
    }

    /// As if it had been pointed at then.
    pub(super) fn set_written(&self, reference: &HiddenReference, at: SystemTime) -> Result<(), GitError> {
        let path = self.dir.join(&reference.name);
        let set = fs::File::options().append(true).open(&path).and_then(|file| file.set_modified(at));
        set.map_err(GitError::disk(&path))
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<HiddenReference> {
        self.references(HIDDEN)
    }

    /// Remembers where the person's history is cut off. What was once cut off there stays so here: nothing beyond it is ours.
    fn note_shallow(&self) -> Result<(), GitError> {
        let (theirs, ours) = (self.common.join("shallow"), self.dir.join("shallow"));
        let Ok(file) = open_plain(&theirs) else { return Ok(()) };
        let known = ids_in(fs::File::open(&ours).ok());
        let now = ids_in(Some(file));
        if now.is_subset(&known) {
            return Ok(());
        }
        let lines: String = known.union(&now).flat_map(|id| [id.as_str(), "\n"]).collect();
        write_whole(&ours, lines.as_bytes())
    }
}

/// The stores in a place, with the common directory of the repository that each is of.
pub(crate) fn stores_in(own: &Path) -> Vec<(PathBuf, PathBuf)> {
    let entries = fs::read_dir(own.join("snapshots")).into_iter().flatten().flatten();
    let store = |entry: fs::DirEntry| {
        let about = read_own(&entry.path().join("of")).ok()?;
        Some((entry.path(), bytes_path(about.split(|byte| *byte == 0).next()?)))
    };
    entries.filter_map(store).collect()
}

/// One repository has one format at a time.
fn store_name(of: &Repository) -> String {
    match of.format {
        "sha1" => key(&of.common),
        format => format!("{}-{format}", key(&of.common)),
    }
}

/// Makes it beside and moves it to its place: whoever looks sees all or nothing.
fn make_store(dir: &Path, of: &Repository, about: &[u8]) -> Result<(), GitError> {
    let beside = dir.with_extension(uuid::Uuid::now_v7().simple().to_string());
    for part in ["objects/info", "objects/pack", "refs/homing"] {
        make_private(&beside.join(part))?;
    }
    let config = config_of(of, true);
    for (file, text) in [("config", config.as_bytes()), ("HEAD", b"ref: refs/heads/none\n")] {
        let path = beside.join(file);
        fs::write(&path, text).map_err(GitError::disk(&path))?;
    }
    let link = beside.join("repository");
    symlink(dir, &link).map_err(GitError::disk(&link))?;
    write_whole(&beside.join("of"), about)?;
    if fs::rename(&beside, dir).is_ok() {
        return sync_directory(dir.parent().unwrap_or(dir));
    }
    // Somebody was quicker.
    remove_tree(&beside)
}

/// Waits until the names in a directory are on the disk.
pub(super) fn sync_directory(directory: &Path) -> Result<(), GitError> {
    fs::File::open(directory).and_then(|file| file.sync_all()).map_err(GitError::disk(directory))
}

/// The lines of a file that are ids of objects.
pub(super) fn ids_in(file: Option<fs::File>) -> BTreeSet<String> {
    let mut text = Vec::new();
    let read: io::Result<usize> = match file {
        Some(file) => file.take(SHALLOW_BYTES_MAX).read_to_end(&mut text),
        None => Ok(0),
    };
    match read {
        Ok(_) => {
            String::from_utf8_lossy(&text).lines().filter(|id| is_object_id(id)).map(str::to_owned).collect()
        }
        Err(_) => BTreeSet::new(),
    }
}

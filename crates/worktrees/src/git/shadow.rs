//! The git directory of ours in which git runs instead of the repository's own.
//!
//! Its configuration is ours. So git works with the repository's history without ever reading its configuration: there is no
//! hook, no filter, no monitor it could start, and nobody can slip one in between a look and a run. There are two of them for
//! each working tree. In the *plain* one objects and refs are links to the repository's, and files are converted as its
//! attributes say (ends of lines, encodings). In the *raw* one they are links to those of our snapshots (`store`), with the
//! repository's objects as an alternate, and nothing is converted: snapshots are of bytes. The raw one also keeps the index of
//! the last snapshot, so that the next one reads only what has changed.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, fchown, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use engine::WorkPhase;

use super::error::GitError;
use super::names::is_object_id;
use super::repository::Repository;
use super::run::GitCall;
use super::store::SnapshotStore;
use super::{Git, make_private};

/// The pause between two tries for a lock. Operations take longer than that.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The ending of the names of files that are being written.
pub(super) const UNFINISHED: &str = "new";

/// The layout of links and files in them. Those of another one are made anew.
const LAYOUT: &[u8] = b"\0layout 2";

/// The beginning of the names of the shared parts of split indexes.
const SHARED_INDEX: &str = "sharedindex.";

/// Attributes that would change bytes, taken back for every path. Git reads this file last, so nothing overrides it.
const RAW_ATTRIBUTES: &str = "* -text !eol -ident -filter !working-tree-encoding\n";

/// Both git directories of ours for one working tree.
#[derive(Debug, Clone)]
pub(super) struct ShadowRepository {
    pub(super) dir: PathBuf,
    pub(super) plain: PathBuf,
    pub(super) raw: PathBuf,
    /// Where its snapshots are.
    pub(super) store: SnapshotStore,
}

/// A lock, free again when dropped.
#[derive(Debug)]
pub(super) struct HeldLock(#[expect(dead_code, reason = "held, not read")] File);

impl Git {
    /// Makes sure that the git directories for this working tree are there and lead where they should.
    pub(super) fn shadow(&self, of: &Repository) -> Result<ShadowRepository, GitError> {
        let (dir, store) = (self.shadow_dir(&of.top), self.store(of)?);
        let shadow = ShadowRepository { plain: dir.join("plain"), raw: dir.join("raw"), dir, store };
        let mut about = Vec::new();
        for path in [&of.top, &of.common] {
            about.extend_from_slice(path.as_os_str().as_bytes());
            about.push(0);
        }
        about.extend_from_slice(of.format.as_bytes());
        about.extend_from_slice(LAYOUT);
        let about_path = shadow.dir.join("of");
        if fs::read(&about_path).ok().as_deref() != Some(&about) {
            make_both(&shadow, of, &about)?;
        }
        let head = head_for(of);
        for git_dir in [&shadow.plain, &shadow.raw] {
            let path = git_dir.join("HEAD");
            if fs::read(&path).ok().as_deref() != Some(&head) {
                write_whole(&path, &head)?;
            }
        }
        Ok(shadow)
    }

    pub(super) fn shadow_dir(&self, top: &Path) -> PathBuf {
        self.places.own.join("shadows").join(key(top))
    }

    pub(super) fn plain(&self, shadow: &ShadowRepository, command: &str) -> GitCall {
        self.runner.call(&shadow.plain, command)
    }

    /// With the person's objects beside ours.
    pub(super) fn raw(&self, shadow: &ShadowRepository, command: &str) -> GitCall {
        self.raw_alone(shadow, command).alternate(&shadow.store.common.join("objects"))
    }

    /// As `plain`, but what is written goes into our store: the person's repository gets nothing by it.
    pub(super) fn stored(&self, shadow: &ShadowRepository, command: &str) -> GitCall {
        let (ours, theirs) = (shadow.store.dir.join("objects"), shadow.store.common.join("objects"));
        self.plain(shadow, command).objects(&ours).alternate(&theirs)
    }

    /// With nothing but our own objects: what is written is written here, whether or not the person has it, too.
    pub(super) fn raw_alone(&self, shadow: &ShadowRepository, command: &str) -> GitCall {
        self.runner.call(&shadow.raw, command)
    }

    /// A lock that somebody else makes (whoever runs a backup, say) is theirs whose part of the data directory it is in.
    fn lock_file(&self, what: &Path) -> Result<(PathBuf, File), GitError> {
        let locks = self.places.own.join("locks");
        let path = locks.join(key(what));
        let open = || {
            let file = File::options().create(true).append(true).open(&path)?;
            let (owner, about) = (fs::metadata(&locks)?, file.metadata()?);
            if owner.uid() != about.uid() {
                fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
            }
            Ok(file)
        };
        let file = open().map_err(GitError::disk(&path))?;
        Ok((path, file))
    }

    /// The lock of something in our own part of the data directory, if nobody has it.
    pub(super) fn try_hold(&self, what: &Path) -> Result<Option<HeldLock>, GitError> {
        let (path, file) = self.lock_file(what)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(HeldLock(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(why)) => Err(GitError::disk(&path)(why)),
        }
    }

    /// Waits until nobody else works on it, and until no git lives in its repository that an earlier server has left
    /// behind. Take a repository's common directory before a working tree of it.
    pub(super) async fn hold(&self, what: &Path, common: &Path) -> Result<HeldLock, GitError> {
        let (path, file) = self.lock_file(what)?;
        let (until, mut has_waited) = (Instant::now() + self.bounds.wait_max, false);
        loop {
            match file.try_lock() {
                Ok(()) if !self.runner.runs.is_one_left(common)? => {
                    if has_waited {
                        self.phase(WorkPhase::Looking);
                    }
                    // Whoever had to wait looks again what they are about to touch.
                    for path in [what, common] {
                        still_there(path)?;
                    }
                    return Ok(HeldLock(file));
                }
                Ok(()) | Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    has_waited = true;
                    self.phase(WorkPhase::Waiting);
                    // The bound on silence is not for those who wait: this wait has its own.
                    self.runner.progress.goes_on();
                    tokio::time::sleep(LOOK_AGAIN).await
                }
                Ok(()) | Err(TryLockError::WouldBlock) => return Err(GitError::Busy(what.to_path_buf())),
                Err(TryLockError::Error(why)) => return Err(GitError::disk(&path)(why)),
            }
        }
    }
}

/// A name that is not there yet, or not any more, leads nowhere.
fn still_there(path: &Path) -> Result<(), GitError> {
    match path.canonicalize() {
        Ok(there) if there != path => Err(GitError::LeadsElsewhere(path.to_path_buf())),
        _ => Ok(()),
    }
}

/// Makes them beside and moves them to their place: whoever looks sees all or nothing.
fn make_both(shadow: &ShadowRepository, of: &Repository, about: &[u8]) -> Result<(), GitError> {
    let dir = &shadow.dir;
    let beside = dir.with_extension(uuid::Uuid::now_v7().simple().to_string());
    make_one(&beside.join("plain"), of, &of.common)?;
    make_one(&beside.join("raw"), of, &shadow.store.dir)?;
    let (attributes, of_whom) = (beside.join("raw/info/attributes"), beside.join("of"));
    fs::write(&attributes, RAW_ATTRIBUTES).map_err(GitError::disk(&attributes))?;
    fs::write(&of_whom, about).map_err(GitError::disk(&of_whom))?;
    if fs::rename(&beside, dir).is_ok() {
        return Ok(());
    }
    // Somebody was quicker, or it is about something that is not there any more.
    if fs::read(dir.join("of")).ok().as_deref() != Some(about) {
        remove_tree(dir)?;
        return fs::rename(&beside, dir).map_err(GitError::disk(dir));
    }
    remove_tree(&beside)
}

fn make_one(git_dir: &Path, of: &Repository, of_objects: &Path) -> Result<(), GitError> {
    make_private(&git_dir.join("info"))?;
    let path = git_dir.join("config");
    fs::write(&path, config_of(of, false)).map_err(GitError::disk(&path))?;
    let parts = ["objects", "refs", "packed-refs", "shallow"].map(|part| (part, of_objects.join(part)));
    let more = [("info/exclude", of.common.join("info/exclude")), ("repository", of.common.clone())];
    for (part, target) in parts.into_iter().chain(more) {
        let path = git_dir.join(part);
        symlink(target, &path).map_err(GitError::disk(&path))?;
    }
    Ok(())
}

/// The configuration of a git directory of ours, for the ids that the repository has.
pub(super) fn config_of(of: &Repository, is_bare: bool) -> String {
    let version = if of.format == "sha1" { "0" } else { "1" };
    let mut config = format!("[core]\n\trepositoryformatversion = {version}\n\tbare = {is_bare}\n");
    if of.format != "sha1" {
        config.push_str(&format!("[extensions]\n\tobjectFormat = {}\n", of.format));
    }
    config
}

/// HEAD, if git can make sense of it. Otherwise a branch that nobody has.
fn head_for(of: &Repository) -> Vec<u8> {
    let head = of.head().unwrap_or_default();
    let is_good = head.starts_with(b"ref: refs/") || std::str::from_utf8(&head).is_ok_and(is_object_id);
    let mut head = if is_good { head } else { b"ref: refs/heads/none".to_vec() };
    head.push(b'\n');
    head
}

/// A name for what belongs to a path: its hash (FNV-1a, 128 bits). Who finds a second path for one gains nothing: what is
/// kept under it says which path it is for.
pub(super) fn key(path: &Path) -> String {
    let fold = |hash: u128, byte: &u8| {
        (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    };
    let hash = path.as_os_str().as_bytes().iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, fold);
    format!("{hash:032x}")
}

/// Writes a file so that it is there whole or not at all, and on the disk.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), GitError> {
    write_beside(path, bytes, true)
}

/// Writes a file so that it is there whole or not at all. It only saves time, so it need not survive a power cut.
pub(crate) fn write_note(path: &Path, bytes: &[u8]) -> Result<(), GitError> {
    write_beside(path, bytes, false)
}

/// Whoever looks at a working tree does not hold it, so two may write the same file at once: each writes one of its own
/// beside it, and the last one stays.
fn write_beside(path: &Path, bytes: &[u8], is_durable: bool) -> Result<(), GitError> {
    let beside = path.with_extension(format!("{}.{UNFINISHED}", uuid::Uuid::now_v7().simple()));
    let write = || {
        let mut file = File::create(&beside)?;
        file.write_all(bytes)?;
        if is_durable {
            file.sync_all()?;
        }
        fs::rename(&beside, path)?;
        match path.parent().filter(|_| is_durable) {
            Some(parent) => File::open(parent)?.sync_all(),
            None => Ok(()),
        }
    };
    let wrote: io::Result<()> = write();
    if wrote.is_err() {
        let _ = fs::remove_file(&beside); // If it stays, it goes with what is left of the killed.
    }
    wrote.map_err(GitError::disk(path))
}

/// Copies an index with the time at which it was written. Git looks into files that are as young as their index, and takes the
/// others for what their times and sizes say: with a copy that is younger than the index it is of, a file that was changed in
/// the index's own second, to the same size, would be one of the others.
pub(super) fn copy_index(from: &Path, to: &Path) -> Result<(), GitError> {
    let copy = || {
        let mut source = File::open(from)?;
        let mut target = File::create(to)?;
        io::copy(&mut source, &mut target)?;
        target.set_modified(source.metadata()?.modified()?)
    };
    copy().map_err(GitError::disk(to))
}

/// Copies the person's index, with the part of it that git may keep in a file beside it (a split index).
pub(super) fn copy_whole_index(
    of: &Repository,
    shadow: &ShadowRepository,
    to: &Path,
) -> Result<(), GitError> {
    for entry in fs::read_dir(&of.git_dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if !name.to_string_lossy().starts_with(SHARED_INDEX) {
            continue;
        }
        for git_dir in [&shadow.plain, &shadow.raw] {
            // Named by what is in it: it never changes.
            if !git_dir.join(&name).exists() && entry.file_type().is_ok_and(|kind| kind.is_file()) {
                copy_index(&entry.path(), &git_dir.join(&name))?;
            }
        }
    }
    copy_index(&of.git_dir.join("index"), to)
}

/// Removes a directory of ours with everything in it; it need not be there. Links in it are removed, not followed.
pub(super) fn remove_tree(path: &Path) -> Result<(), GitError> {
    for is_again in [false, true] {
        match fs::remove_dir_all(path) {
            Ok(()) => return Ok(()),
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(why) if is_again => return Err(GitError::disk(path)(why)),
            // Directories that were closed by their mode are opened, once.
            Err(_) => open_directories(path),
        }
    }
    Ok(())
}

fn open_directories(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let is_directory = |path: &Path| fs::symlink_metadata(path).is_ok_and(|about| about.is_dir());
    if !is_directory(path) {
        return;
    }
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        open_directories(&entry.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_writes_at_the_same_time_writes_a_whole_file_each() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("HEAD");
        let words = |writer: u8| vec![b'a' + writer; 64 * 1024 * (1 + usize::from(writer))];
        let write = |writer: u8| (0..20).for_each(|_| write_whole(&path, &words(writer)).unwrap());
        std::thread::scope(|scope| {
            let writers = [0, 1, 2, 3].map(|writer| scope.spawn(move || write(writer)));
            while writers.iter().any(|writer| !writer.is_finished()) {
                let Ok(found) = fs::read(&path) else { continue };
                assert!((0..4).any(|writer| found == words(writer)), "{} bytes, mixed", found.len());
            }
        });
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_closed_directory_can_be_removed() {
        use std::os::unix::fs::PermissionsExt;
        let here = tempfile::tempdir().unwrap();
        let root = here.path().join("root");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/c"), "").unwrap();
        fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o000)).unwrap();
        remove_tree(&root).unwrap();
        assert!(!root.exists());
        remove_tree(&root).unwrap();
    }
}

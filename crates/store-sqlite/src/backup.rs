//! Carries a store elsewhere and back.
//!
//! A backup is taken beside a running server: one read transaction, so it is the file as it was at one moment. It is
//! written under another name, checked from end to end, and only then gets its own. A restore works the same way in
//! the other direction and keeps what it replaces; at every moment the directory has one whole database.

use crate::files::{DATABASE, Files, Rig, with_end};
use crate::lock::{Holder, Lock, NotLocked};
use crate::open::{
    OpenError, check_format, check_header, check_pages, make_file, make_private, refuse_network, settle_as,
    sync_parent,
};
use kernel::Moment;
use rusqlite::{Connection, OpenFlags, params};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a copy was not made, by what can be done about it. Nothing that was there is changed.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// Name another directory or file.
    #[error("{} is not there", .0.display())]
    NotThere(PathBuf),
    /// Name another file, or move this one away.
    #[error("{} is there already and is not overwritten", .0.display())]
    Exists(PathBuf),
    /// The database to be copied, or the directory it is to go to, cannot be used.
    #[error(transparent)]
    Unusable(#[from] OpenError),
}

impl From<io::Error> for CopyError {
    fn from(error: io::Error) -> Self {
        Self::Unusable(error.into())
    }
}

impl From<rusqlite::Error> for CopyError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Unusable(error.into())
    }
}

impl From<NotLocked> for CopyError {
    fn from(not: NotLocked) -> Self {
        Self::Unusable(not.into())
    }
}

/// The result of a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Where the database that was there is now.
    pub kept: Option<PathBuf>,
}

/// The wait for a file lock; servers hold theirs for moments.
const BUSY_WAIT: Duration = Duration::from_secs(10);

/// Writes the store in this directory, as it is at one moment, into a file of its own. A server may be running.
pub fn backup(dir: &Path, to: &Path) -> Result<(), CopyError> {
    let from = dir.join(DATABASE);
    if !from.exists() {
        return Err(CopyError::NotThere(from));
    }
    if to.symlink_metadata().is_ok() {
        return Err(CopyError::Exists(to.to_owned()));
    }
    check_header(&from)?;
    let part = with_end(to, ".part");
    let written = write_backup(&from, &part).and_then(|()| appear(&part, to));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

fn write_backup(from: &Path, part: &Path) -> Result<(), CopyError> {
    remove(part)?;
    // Made by us, so that nobody else can read it even for a moment; SQLite fills an empty file.
    make_file(part)?;
    let db = open_to_read(from)?;
    check_format(&db)?;
    let name = part.to_str().ok_or_else(|| io::Error::other("the file's name is not UTF-8"))?;
    db.execute("VACUUM INTO ?1", params![name])?;
    check_whole(part)?;
    Ok(File::open(part)?.sync_all()?)
}

/// Gives the file its name, unless somebody else has it by now.
fn appear(part: &Path, to: &Path) -> Result<(), CopyError> {
    match renameat_with(CWD, part, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => {}
        Err(rustix::io::Errno::EXIST) => return Err(CopyError::Exists(to.to_owned())),
        // Not every file system can; we have looked before.
        Err(_) => fs::rename(part, to)?,
    }
    Ok(sync_parent(to)?)
}

/// Puts a backup in the place of the store in this directory. No server may be running there.
pub fn restore(file: &Path, dir: &Path, now: Moment) -> Result<Restored, CopyError> {
    if !file.exists() {
        return Err(CopyError::NotThere(file.to_owned()));
    }
    check_header(file)?;
    check_format(&open_to_read(file)?)?;
    make_private(dir)?;
    refuse_network(dir)?;
    let lock = Lock::take(dir)?;
    let pid = std::process::id();
    lock.sign(&Holder { node: None, host: "a restore".into(), pid, since: now, url: None })?;

    let files = Files::new(dir, Rig::default());
    let part = with_end(&files.database, ".part");
    let restored = write_part(file, &part, &files).and_then(|()| replace(&part, &files, now));
    if restored.is_err() {
        let _ = remove(&part);
    }
    restored
}

/// A checked copy of the backup, beside the database that it will replace.
fn write_part(file: &Path, part: &Path, files: &Files) -> Result<(), CopyError> {
    remove(part)?;
    let mut to = make_file(part)?;
    io::copy(&mut File::open(file)?, &mut to)?;
    check_whole(part)?;
    let db = Connection::open_with_flags(part, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // Whatever it was before, it is one file when it gets its name.
    db.pragma_update(None, "journal_mode", "DELETE")?;
    // Terms go on growing: whatever still runs from the time that is given up must find itself stale.
    db.execute(
        "INSERT INTO node_starts (start, node, host, pid, since)
         SELECT ?1, zeroblob(16), 'restore', 0, 0 WHERE ?1 > (SELECT coalesce(max(start), 0) FROM node_starts)",
        [last_start(&files.database).unwrap_or(0)],
    )?;
    db.close().map_err(|(_, error)| error)?;
    Ok(to.sync_all()?)
}

/// The number of times a server has started on this file; none if nobody can say.
fn last_start(database: &Path) -> Option<i64> {
    let db = database.exists().then(|| open_to_read(database))?.ok()?;
    db.query_row("SELECT max(start) FROM node_starts", [], |row| row.get(0)).ok()?
}

/// From here on there is the old database or the new one, never neither. The old one keeps a second name.
fn replace(part: &Path, files: &Files, now: Moment) -> Result<Restored, CopyError> {
    let [log, index] = files.companions();
    let mut kept = None;
    if files.database.exists() {
        fold_log(files);
        let second = with_end(&files.database, &format!(".before-{}", now.0));
        keep_as(&files.database, &second)?;
        // A log that could not be folded in (the database may be damaged: that is why we are here) goes along.
        if log.exists() {
            keep_as(&log, &with_end(&second, "-wal"))?;
        }
        sync_parent(&second)?;
        kept = Some(second);
    }
    remove(&log)?;
    remove(&index)?;
    settle_as(part, &files.database)?;
    Ok(Restored { kept })
}

/// Brings everything from the log into the file, so that the file alone is the whole old store.
fn fold_log(files: &Files) {
    let folded = files.connect_to_write().and_then(|db| {
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        db.close().map_err(|(_, error)| error)
    });
    if let Err(error) = folded {
        tracing::warn!(%error, "the write-ahead log of the replaced database is kept as it is");
    }
}

fn keep_as(path: &Path, second: &Path) -> Result<(), CopyError> {
    if second.exists() {
        return Err(CopyError::Exists(second.to_owned()));
    }
    if fs::hard_link(path, second).is_err() {
        let mut to = make_file(second)?;
        io::copy(&mut File::open(path)?, &mut to)?;
        to.sync_all()?;
    }
    Ok(())
}

fn open_to_read(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(BUSY_WAIT)?;
    Ok(db)
}

/// Every page, every index, every row.
fn check_whole(path: &Path) -> Result<(), OpenError> {
    check_header(path)?;
    let db = open_to_read(path)?;
    check_format(&db)?;
    check_pages(&db, "integrity_check(1)")
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

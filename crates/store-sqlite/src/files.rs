//! The files of one store, and how connections to them are made.

use crate::wal_buffer;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// The database's name in its directory.
pub(crate) const DATABASE: &str = "homing.db";

/// Only a backup taken by another process can make us wait for a file lock, and only for moments.
const BUSY_WAIT: Duration = Duration::from_secs(5);
/// Every statement that we have is prepared once per connection.
const STATEMENTS: usize = 128;

/// The changes that fault tests make to a store. The default changes nothing.
#[doc(hidden)]
#[derive(Debug, Clone, Default)]
pub struct Rig {
    /// The SQLite file layer to use instead of the usual one.
    pub vfs: Option<&'static str>,
    /// Said to each writing connection after everything else.
    pub pragmas: &'static str,
    /// After how many frames the write-ahead log is copied; it begins anew after four times as many.
    pub copy_frames: Option<i64>,
}

/// Where the store is.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) database: PathBuf,
    pub(crate) rig: Rig,
    /// The number of frames in the write-ahead log.
    pub(crate) frames: Arc<AtomicI64>,
}

impl Files {
    pub(crate) fn new(dir: &Path, rig: Rig) -> Self {
        Self { database: dir.join(DATABASE), rig, frames: Arc::default() }
    }

    /// The write-ahead log and its index, beside the database.
    pub(crate) fn companions(&self) -> [PathBuf; 2] {
        ["-wal", "-shm"].map(|end| with_end(&self.database, end))
    }

    /// A connection that may write. It never waits for the log to be copied into the file, and a commit is on the
    /// disk when it answers.
    pub(crate) fn connect_to_write(&self) -> rusqlite::Result<Connection> {
        let layer = wal_buffer::layer_over(self.rig.vfs).or(self.rig.vfs);
        let mut db = self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE, layer)?;
        // Only FULL syncs the log at each commit, which is when `wal_buffer` writes it.
        db.execute_batch(
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             PRAGMA wal_autocheckpoint = 0;
             PRAGMA journal_size_limit = 67108864;
             PRAGMA cache_size = -4096;
             PRAGMA cache_spill = OFF;
             PRAGMA temp_store = MEMORY;
             PRAGMA trusted_schema = OFF;",
        )?;
        let frames = self.frames.clone();
        db.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, now| {
            frames.store(i64::from(now), Ordering::Relaxed);
            Ok(())
        }))?;
        db.execute_batch(self.rig.pragmas)?;
        Ok(db)
    }

    /// A connection that cannot write.
    pub(crate) fn connect_to_read(&self) -> rusqlite::Result<Connection> {
        let db = self.connect(OpenFlags::SQLITE_OPEN_READ_ONLY, self.rig.vfs)?;
        db.execute_batch(
            "PRAGMA cache_size = -1024; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;",
        )?;
        Ok(db)
    }

    /// A connection by way of a file layer, or of SQLite's own.
    fn connect(&self, flags: OpenFlags, layer: Option<&'static str>) -> rusqlite::Result<Connection> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = match layer {
            Some(layer) => Connection::open_with_flags_and_vfs(&self.database, flags, layer)?,
            None => Connection::open_with_flags(&self.database, flags)?,
        };
        db.busy_timeout(BUSY_WAIT)?;
        plan_once(&db)?;
        db.set_prepared_statement_cache_capacity(STATEMENTS);
        Ok(db)
    }
}

/// Lets a plan depend on a statement's text alone. Otherwise SQLite compares bound values with the conditions of partial
/// indexes, and parses and plans a statement anew each time that another value is bound.
pub(crate) fn plan_once(db: &Connection) -> rusqlite::Result<()> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

/// A path with something added to its last part.
pub(crate) fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

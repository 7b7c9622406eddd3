//! Opening a store: take the directory or say who has it, look at the file without touching it, and only then open it.
//!
//! A fresh file is made under another name and renamed when it is whole. So a database is either absent or complete, and
//! one that is there but cannot be read is damaged: it is reported and left as it is.

use crate::error::SqliteError;
use crate::files::{DATABASE, Files, Rig, with_end};
use crate::lock::{Holder, Lock, NotLocked};
use crate::migrations::{APPLICATION, NEWEST, migrate};
use crate::tx::SqliteTx;
use kernel::{Moment, NodeId, Term};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::NodeRow;

/// A file of up to so many pages (4 MiB) is checked from end to end when it is opened: that takes milliseconds. A larger
/// one is checked where every start reads it; damage elsewhere is found, and said, when it is read.
const CHECKED_PAGES_MAX: u64 = 1_024;

/// Every way in which others than its owner may use a directory.
const OTHERS: u32 = 0o077;
/// The names of what may be in a data directory before its first start, besides the beginning of a database.
const BEFORE_FIRST: [&str; 5] = ["homing.toml", "key", "token", "lock", "lost+found"];

/// Facts that a store needs to know of the process that opens it.
#[derive(Debug, Clone)]
pub struct Options {
    /// The running copy's name, minted by whoever starts.
    pub node: NodeId,
    /// The machine's name, for people.
    pub host: String,
    /// Now.
    pub now: Moment,
    #[doc(hidden)]
    pub rig: Rig,
}

impl Options {
    /// The usual store.
    pub fn new(node: NodeId, host: impl Into<String>, now: Moment) -> Self {
        Self { node, host: host.into(), now, rig: Rig::default() }
    }
}

/// Why a store cannot be opened, by what can be done about it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another server has the directory. Use it, or stop it first.
    #[error("{}", held(.0))]
    Held(Holder),
    /// The file was written by a newer version. Use that one. Nothing was changed.
    #[error(
        "the database has format {found}, and this version knows formats up to {known}: use a newer version of homing"
    )]
    Newer {
        /// The file's format.
        found: u32,
        /// The newest one this version knows.
        known: u32,
    },
    /// The file cannot be read. Restore a backup. Nothing was changed.
    #[error("the database is damaged, and nothing in it was changed: {0}")]
    Damaged(String),
    /// File locks and write-ahead logs cannot be trusted there. Use a local disk.
    #[error("{} is on a network file system ({kind}): put the data directory on a local disk", .dir.display())]
    NetworkFileSystem {
        /// The directory.
        dir: PathBuf,
        /// The kind of file system it is on.
        kind: &'static str,
    },
    /// Others can read what is in the directory, and it is not ours to close. Close it, or use another one.
    #[error("other users of this machine can read {}, and {why}", .dir.display())]
    Exposed {
        /// The directory.
        dir: PathBuf,
        /// The reason why we do not close it.
        why: &'static str,
    },
    /// The operating system did not let us.
    #[error("the data directory cannot be used: {0}")]
    Io(#[from] io::Error),
}

fn held(holder: &Holder) -> String {
    let who = holder.node.map_or_else(|| "another server".to_owned(), |node| node.to_string());
    let at = holder.url.as_ref().map(|url| format!(" at {url}")).unwrap_or_default();
    format!(
        "the data directory is in use by {who} (process {} on {}{at}) since {}",
        holder.pid,
        holder.host,
        date(holder.since)
    )
}

/// A moment as people write it, in UTC. Days are counted from 1 March 0000, so that a leap day comes last in its year.
fn date(moment: Moment) -> String {
    let seconds = moment.0 / 1_000;
    let (days, time) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = (era * 400 + year + month / 10, (month + 2) % 12 + 1);
    let (hours, minutes, seconds) = (time / 3_600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02} UTC")
}

impl From<NotLocked> for OpenError {
    fn from(not: NotLocked) -> Self {
        match not {
            NotLocked::Held(holder) => Self::Held(holder),
            NotLocked::Io(error) => Self::Io(error),
        }
    }
}

impl From<SqliteError> for OpenError {
    fn from(error: SqliteError) -> Self {
        match error.unchanged() {
            store::StoreError::Damaged(what) => Self::Damaged(what),
            other => Self::Io(io::Error::other(other.to_string())),
        }
    }
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        SqliteError::from(error).into()
    }
}

/// A directory that is ours, and what was found in it.
pub(crate) struct Opened {
    pub(crate) lock: Lock,
    pub(crate) files: Arc<Files>,
    pub(crate) tx: SqliteTx,
    pub(crate) node: NodeRow,
}

/// Takes the directory and opens what is in it.
pub(crate) fn open(dir: &Path, options: &Options) -> Result<Opened, OpenError> {
    make_private(dir)?;
    refuse_network(dir)?;
    let lock = Lock::take(dir)?;
    let mut node = NodeRow {
        node: options.node,
        term: Term(0),
        host: options.host.clone(),
        pid: std::process::id(),
        since: options.now,
        url: None,
    };
    lock.sign(&holder(&node))?;

    let files = Files::new(dir, options.rig.clone());
    let gone = match look(&files)? {
        Some(version) => version,
        None => {
            create(dir)?;
            NEWEST
        }
    };
    let mut db = files.connect_to_write()?;
    migrate(&mut db, gone)?;
    let mut tx = SqliteTx::new(db, Arc::default())?;
    node.term = tx.start_node(&node)?;
    Ok(Opened { lock, files: Arc::new(files), tx, node })
}

/// The content of the lock file about a node.
pub(crate) fn holder(node: &NodeRow) -> Holder {
    Holder {
        node: Some(node.node),
        host: node.host.clone(),
        pid: node.pid,
        since: node.since,
        url: node.url.clone(),
    }
}

/// Looks whether a start could take the directory, if it is there: the same looks, and nothing is changed.
pub fn look_at_directory(dir: &Path) -> Result<(), OpenError> {
    match fs::metadata(dir) {
        Ok(found) => refuse_exposed(dir, &found)?,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(why.into()),
    }
    refuse_network(dir)
}

/// Makes the directory if there is none, readable by nobody else. One that others can read is closed, or refused.
pub(crate) fn make_private(dir: &Path) -> Result<(), OpenError> {
    let found = match fs::metadata(dir) {
        Ok(found) => found,
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            return Ok(DirBuilder::new().recursive(true).mode(0o700).create(dir)?);
        }
        Err(why) => return Err(why.into()),
    };
    refuse_exposed(dir, &found)?;
    if found.mode() & OTHERS == 0 {
        return Ok(());
    }
    let why = "the system does not let us close it";
    fs::set_permissions(dir, Permissions::from_mode(0o700))
        .map_err(|_| OpenError::Exposed { dir: dir.to_owned(), why })?;
    tracing::warn!(dir = %dir.display(), "other users could read the data directory: it is closed to them now (mode 0700)");
    Ok(())
}

/// Refuses a directory that others can read and that is not ours to close.
fn refuse_exposed(dir: &Path, found: &fs::Metadata) -> Result<(), OpenError> {
    let exposed = |why| OpenError::Exposed { dir: dir.to_owned(), why };
    if found.mode() & OTHERS == 0 {
        return Ok(());
    }
    // Whoever owns it could open it again at any time, even if we are root and can close it now.
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(exposed("it belongs to another user, who could open it again"));
    }
    if !is_ours(dir)? {
        return Err(exposed("it holds other things, which are not ours to close"));
    }
    Ok(())
}

/// True if nothing is there that others may need: somebody's home, or the one place for everybody's files, would be of no use
/// to them any more.
fn is_ours(dir: &Path) -> io::Result<bool> {
    if dir.join(DATABASE).exists() {
        return Ok(true);
    }
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with(DATABASE) && !BEFORE_FIRST.contains(&&*name) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Looks at the file without changing it or anything beside it. None if there is none; else the steps it has gone.
pub(crate) fn look(files: &Files) -> Result<Option<u32>, OpenError> {
    let [log, index] = files.companions();
    let log_bytes = fs::metadata(&log).map_or(0, |log| log.len());
    if !files.database.exists() {
        if log_bytes > 0 {
            return Err(OpenError::Damaged(format!("{} is there without its database", log.display())));
        }
        return Ok(None);
    }
    check_header(&files.database)?;
    let ours = [log, index].map(|path| (path.exists(), path));
    let version = check_inside(files, log_bytes > 0);
    for (_, path) in ours.iter().filter(|(was_there, _)| !was_there) {
        // SQLite made it to read with. It holds nothing.
        let _ = fs::remove_file(path);
    }
    version.map(Some)
}

/// The check without SQLite: whether this is a database at all.
pub(crate) fn check_header(path: &Path) -> Result<(), OpenError> {
    let mut header = Vec::with_capacity(100);
    File::open(path)?.take(100).read_to_end(&mut header)?;
    if header.len() < 100 || !header.starts_with(b"SQLite format 3\0") {
        return Err(OpenError::Damaged(format!("{} is not a database", path.display())));
    }
    Ok(())
}

fn check_inside(files: &Files, has_log: bool) -> Result<u32, OpenError> {
    let db = Connection::open_with_flags(
        &files.database,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let found = check_format(&db)?;
    let number = |name: &str| db.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
    let (pages, page_bytes) = (u64::from(number("page_count")?), u64::from(number("page_size")?));
    let there = fs::metadata(&files.database)?.len() / page_bytes.max(1);
    // With a log, the missing pages may be in it; SQLite looks.
    if !has_log && there < pages {
        return Err(OpenError::Damaged(format!("{there} of {pages} pages are there")));
    }
    check_pages(&db, if pages <= CHECKED_PAGES_MAX { "quick_check(1)" } else { "quick_check('counters')" })?;
    Ok(found)
}

/// Checks that the file is ours, and counts the steps it has gone.
pub(crate) fn check_format(db: &Connection) -> Result<u32, OpenError> {
    let number = |name: &str| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    if number("application_id")? != i64::from(APPLICATION) {
        return Err(OpenError::Damaged("the file belongs to another program".into()));
    }
    let found = u32::try_from(number("user_version")?).unwrap_or(u32::MAX);
    if found > NEWEST {
        return Err(OpenError::Newer { found, known: NEWEST });
    }
    Ok(found)
}

/// Lets SQLite look at the pages.
pub(crate) fn check_pages(db: &Connection, check: &str) -> Result<(), OpenError> {
    let verdict: String = db.query_row(&format!("PRAGMA {check}"), [], |row| row.get(0))?;
    if verdict == "ok" { Ok(()) } else { Err(OpenError::Damaged(verdict)) }
}

/// Makes a whole, empty database under another name and lets it appear in one step.
fn create(dir: &Path) -> Result<(), OpenError> {
    let (fresh, path) = (dir.join(format!("{DATABASE}.new")), dir.join(DATABASE));
    for end in ["", "-journal", "-wal", "-shm"] {
        match fs::remove_file(with_end(&fresh, end)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    make_file(&fresh)?;
    let mut db = Connection::open(&fresh)?;
    migrate(&mut db, 0)?;
    db.close().map_err(|(_, error)| error)?;
    settle_as(&fresh, &path)?;
    Ok(())
}

/// Makes an empty file that only its owner may read; refuses one that is there.
pub(crate) fn make_file(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Lets a complete file appear under its name, so that a power cut leaves the one before or this one.
pub(crate) fn settle_as(from: &Path, to: &Path) -> io::Result<()> {
    File::open(from)?.sync_all()?;
    fs::rename(from, to)?;
    sync_parent(to)
}

/// Makes what was renamed or made in a file's directory safe from a power cut.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(dir)?.sync_all()
}

#[cfg(target_os = "linux")]
pub(crate) fn refuse_network(dir: &Path) -> Result<(), OpenError> {
    let kind = match rustix::fs::statfs(dir).map_err(io::Error::from)?.f_type as u32 {
        0x0000_6969 => "NFS",
        0x0000_517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB",
        0x6573_5546 => "FUSE",
        0x0102_1997 => "9P",
        0x00c3_6400 => "Ceph",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x7375_7245 => "Coda",
        0x0000_564c => "NCP",
        0x0bd0_0bd0 => "Lustre",
        0x4750_4653 => "GPFS",
        0x0116_1970 => "GFS2",
        0x7461_636f => "OCFS2",
        0x786f_4256 => "VirtualBox shared folder",
        0xaad7_aaea => "PanFS",
        _ => return Ok(()),
    };
    Err(OpenError::NetworkFileSystem { dir: dir.to_owned(), kind })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn refuse_network(_: &Path) -> Result<(), OpenError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right() {
        assert_eq!(date(Moment(0)), "1970-01-01 00:00:00 UTC");
        assert_eq!(date(Moment(951_782_400_000)), "2000-02-29 00:00:00 UTC");
        assert_eq!(date(Moment(1_735_689_599_999)), "2024-12-31 23:59:59 UTC");
        assert_eq!(date(Moment(4_107_542_400_000)), "2100-03-01 00:00:00 UTC");
    }
}

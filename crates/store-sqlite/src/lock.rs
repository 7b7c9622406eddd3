//! PersonRef has the directory: an OS lock on `DIR/lock`, held for the life of the store.
//!
//! The lock is the kernel's, not the file's: it goes with its process, however that ends, and what the file says is only
//! for whoever finds the door closed. There is no pid to be guessed about and nothing that expires.

use kernel::{Moment, NodeId};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The time for which a start waits for a server that is just going. A second start must be refused within a second.
const LOCK_WAIT: Duration = Duration::from_millis(400);
/// The pause between two looks.
const LOCK_LOOK: Duration = Duration::from_millis(20);

/// PersonRef holds a directory, as the holder wrote it down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The running copy; none if it could not write that down.
    pub node: Option<NodeId>,
    /// Its machine.
    pub host: String,
    /// Its process.
    pub pid: u32,
    /// Since when.
    pub since: Moment,
    /// Where it can be reached.
    pub url: Option<String>,
}

/// The lock, for as long as this exists.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

/// Why there is no lock.
#[derive(Debug)]
pub(crate) enum NotLocked {
    Held(Holder),
    Io(io::Error),
}

impl From<io::Error> for NotLocked {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

#[derive(Serialize, Deserialize)]
struct HolderRecord {
    node: Option<String>,
    host: String,
    pid: u32,
    since: u64,
    url: Option<String>,
}

impl Lock {
    /// Takes the lock, or says who has it.
    pub(crate) fn take(dir: &Path) -> Result<Self, NotLocked> {
        let path = path(dir);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|error| named(error, &path))?;
        let began = Instant::now();
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { file }),
                Err(rustix::io::Errno::WOULDBLOCK) if began.elapsed() < LOCK_WAIT => {
                    std::thread::sleep(LOCK_LOOK);
                }
                Err(rustix::io::Errno::WOULDBLOCK) => return Err(NotLocked::Held(read(&file))),
                Err(errno) => return Err(named(errno.into(), &path).into()),
            }
        }
    }

    /// Writes down who we are, for whoever comes second.
    pub(crate) fn sign(&self, holder: &Holder) -> io::Result<()> {
        let record = HolderRecord {
            node: holder.node.map(|node| node.to_string()),
            host: holder.host.clone(),
            pid: holder.pid,
            since: holder.since.0,
            url: holder.url.clone(),
        };
        let mut text = serde_json::to_vec(&record).map_err(io::Error::other)?;
        text.push(b'\n');
        self.file.write_all_at(&text, 0)?;
        self.file.set_len(text.len() as u64)
    }
}

/// The server that has a directory, if one does. A look never keeps a start waiting for long: it lets go at once.
pub fn holder(dir: &Path) -> io::Result<Option<Holder>> {
    let path = path(dir);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(named(error, &path)),
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(None),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(Some(read(&file))),
        Err(errno) => Err(named(errno.into(), &path)),
    }
}

fn path(dir: &Path) -> PathBuf {
    dir.join("lock")
}

fn named(error: io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The words of the holder. If it has not come to it yet, we know only that there is one.
fn read(file: &File) -> Holder {
    let nobody = Holder { node: None, host: "unknown".into(), pid: 0, since: Moment(0), url: None };
    let mut text = [0u8; 4_096];
    let Ok(read) = file.read_at(&mut text, 0) else { return nobody };
    let Ok(record) = serde_json::from_slice::<HolderRecord>(&text[..read]) else { return nobody };
    Holder {
        node: record.node.and_then(|node| node.parse().ok()),
        host: record.host,
        pid: record.pid,
        since: Moment(record.since),
        url: record.url,
    }
}

//! The log of a server that runs in the background: a file in its data directory that takes the place of standard output and
//! standard error.
//!
//! It has a bound: when it is full, and at each start, what is there becomes `server.log.1`, and what was that is gone. Until the
//! file is opened, which only whoever holds the directory does, lines go to whoever has started us.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tracing_subscriber::fmt::MakeWriter;

/// The most that one file takes. With the one before it that is twice as much: weeks of a busy server.
const LOG_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The name of the log in a data directory.
const NAME: &str = "server.log";

/// The log. Clones write to the same file.
#[derive(Debug, Clone)]
pub(crate) struct LogFile(Arc<Mutex<LogState>>);

#[derive(Debug)]
enum LogState {
    /// Lines go to standard error as it is.
    Before,
    /// Standard error is the file.
    Open { path: PathBuf, written: u64 },
}

impl LogFile {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(LogState::Before)))
    }

    /// Where the log of a directory is.
    pub(crate) fn path(data: &Path) -> PathBuf {
        data.join(NAME)
    }

    /// From now on standard error is a fresh log in that directory. Standard output is still what it was.
    pub(crate) fn open(&self, data: &Path) -> io::Result<PathBuf> {
        let path = Self::path(data);
        rustix::stdio::dup2_stderr(&fresh(&path)?)?;
        *self.state() = LogState::Open { path: path.clone(), written: 0 };
        Ok(path)
    }

    /// From now on standard output is the same.
    pub(crate) fn take_output(&self) -> io::Result<()> {
        Ok(rustix::stdio::dup2_stdout(rustix::stdio::stderr())?)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, LogState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A new file of that name; the one before is kept beside it.
fn fresh(path: &Path) -> io::Result<File> {
    match fs::rename(path, path.with_extension("log.1")) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
        _ => {}
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.state();
        if let LogState::Open { path, written } = &mut *state {
            if *written > LOG_BYTES_MAX {
                // A log that cannot be turned over goes on as it is: losing lines would be worse.
                if let Ok(file) = fresh(path) {
                    rustix::stdio::dup2_stderr(&file)?;
                    rustix::stdio::dup2_stdout(&file)?;
                }
                *written = 0;
            }
            *written += bytes.len() as u64;
        }
        io::stderr().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

impl<'a> MakeWriter<'a> for LogFile {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_keeps_the_one_before_it_and_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = LogFile::path(dir.path());
        for line in ["first", "second", "third"] {
            writeln!(fresh(&path).unwrap(), "{line}").unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "third\n");
        assert_eq!(fs::read_to_string(dir.path().join("server.log.1")).unwrap(), "second\n");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}

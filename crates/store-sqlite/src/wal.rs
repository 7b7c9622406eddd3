//! Keeps the write-ahead log short without letting anybody wait for it.
//!
//! A thread with a connection of its own copies frames from the log into the file while the writer goes on. That alone
//! never reaches the end of a log that keeps growing; so when the log is long, the writer copies the little that is left
//! between two groups, and its next commit begins the log anew.

use crate::files::Files;
use rusqlite::Connection;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// New frames after which the thread copies: 4 MiB.
const COPY_FRAMES: i64 = 1_024;
/// The writer sees to it that the log begins anew when it has this many times as many: 16 MiB. A start after a crash
/// reads that much.
const RESTART_FACTOR: i64 = 4;
const STACK_BYTES: usize = 512 << 10;

/// The thread that copies, and what the writer remembers of it.
pub(crate) struct Wal {
    files: Arc<Files>,
    nudge: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    copy_frames: i64,
    copy_at: i64,
    restart_at: i64,
}

impl Wal {
    pub(crate) fn start(files: Arc<Files>) -> std::io::Result<Self> {
        // One nudge may wait: a second one would ask for the same.
        let (nudge, nudges) = sync_channel(1);
        let its_files = files.clone();
        let thread = std::thread::Builder::new()
            .name("homing-copy".into())
            .stack_size(STACK_BYTES)
            .spawn(move || copy_when_nudged(&its_files, &nudges))?;
        let copy_frames = files.rig.copy_frames.unwrap_or(COPY_FRAMES);
        let (copy_at, restart_at) = (copy_frames, copy_frames * RESTART_FACTOR);
        Ok(Self { files, nudge: Some(nudge), thread: Some(thread), copy_frames, copy_at, restart_at })
    }

    /// Called between two groups, with the writer's connection.
    pub(crate) fn tend(&mut self, db: &Connection) {
        if self.nudge_if_long() {
            // While somebody reads an old state the log cannot begin anew: ask again later, not after each commit.
            self.restart_at = self.frames() + self.copy_frames;
            copy(db);
        }
    }

    /// Has the thread copy, if it is time for that. True if that is not enough any more: then `tend` has to be called.
    pub(crate) fn nudge_if_long(&mut self) -> bool {
        let frames = self.frames();
        if frames < self.copy_at - self.copy_frames {
            // The log began anew.
            (self.copy_at, self.restart_at) = (self.copy_frames, self.copy_frames * RESTART_FACTOR);
        }
        if frames >= self.restart_at {
            return true;
        }
        if frames >= self.copy_at {
            self.copy_at = frames + self.copy_frames;
            let _ = self.nudge.as_ref().map(|nudge| nudge.try_send(()));
        }
        false
    }

    fn frames(&self) -> i64 {
        self.files.frames.load(Ordering::Relaxed)
    }
}

impl Drop for Wal {
    fn drop(&mut self) {
        self.nudge = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn copy_when_nudged(files: &Files, nudges: &Receiver<()>) {
    let mut connection = None;
    while nudges.recv().is_ok() {
        if connection.is_none() {
            connection = files.connect_to_write().ok();
        }
        if let Some(db) = &connection
            && !copy(db)
        {
            connection = None;
        }
    }
}

/// Copies what can be copied without waiting for anybody. A failure costs nothing but the length of the log.
fn copy(db: &Connection) -> bool {
    match db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())) {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(%error, "the write-ahead log could not be copied into the database");
            false
        }
    }
}

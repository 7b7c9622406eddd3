//! A few threads that read, each with a connection that cannot write.
//!
//! A question is one read transaction, so everything it sees belongs to one moment; a change that was acknowledged
//! before the question was put is always part of it.

use crate::error::SqliteError;
use crate::files::Files;
use rusqlite::Connection;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use store::StoreError;
use tokio::sync::{Semaphore, oneshot};

/// Questions are short and mostly answered from memory; two threads keep one slow page from holding up the rest.
const READERS: usize = 2;
/// Questions that may wait; whoever brings more waits until there is room.
const WAITING_MAX: usize = 256;
const STACK_BYTES: usize = 1 << 20;

type ReadTask = Box<dyn FnOnce(&mut SqliteTx) + Send>;

pub(crate) struct Reader {
    counter: Arc<Counter>,
    threads: Vec<JoinHandle<()>>,
}

/// Where questions wait. One that arrives wakes one thread, and nobody else.
struct Counter {
    room: Semaphore,
    line: Mutex<ReadQueue>,
    arrived: Condvar,
}

#[derive(Default)]
struct ReadQueue {
    waiting: VecDeque<ReadTask>,
    closed: bool,
}

/// A connection that is replaced when it has seen an error of the disk.
struct SqliteTx {
    files: Arc<Files>,
    db: Option<Connection>,
}

impl Reader {
    pub(crate) fn start(files: &Arc<Files>) -> std::io::Result<Self> {
        let (room, line) = (Semaphore::new(WAITING_MAX), Mutex::default());
        let counter = Arc::new(Counter { room, line, arrived: Condvar::new() });
        let threads = (0..READERS).map(|number| {
            let (counter, mut tx) = (counter.clone(), SqliteTx { files: files.clone(), db: None });
            std::thread::Builder::new().name(format!("homing-read-{number}")).stack_size(STACK_BYTES).spawn(
                move || {
                    while let Some(question) = counter.next() {
                        question(&mut tx)
                    }
                },
            )
        });
        let threads = threads.collect::<Result<_, _>>()?;
        Ok(Self { counter, threads })
    }

    /// Answers a question from one moment of the file.
    pub(crate) async fn ask<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, SqliteError> + Send + 'static,
    {
        let closed = || StoreError::Unavailable("the store is closed".into());
        let (waits, answer) = oneshot::channel();
        let question = Box::new(move |tx: &mut SqliteTx| {
            let _ = waits.send(tx.answer(work).map_err(|error| error.unchanged()));
        });
        self.counter.put(question).await;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.counter.line().closed = true;
        self.counter.arrived.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Counter {
    async fn put(&self, question: ReadTask) {
        // Never closed: whoever asks holds the reader, and it goes with the last of them.
        if let Ok(place) = self.room.acquire().await {
            place.forget();
        }
        self.line().waiting.push_back(question);
        self.arrived.notify_one();
    }

    /// The next question, once there is one. None when there will be no more.
    fn next(&self) -> Option<ReadTask> {
        let mut line = self.line();
        loop {
            if let Some(question) = line.waiting.pop_front() {
                self.room.add_permits(1);
                return Some(question);
            }
            if line.closed {
                return None;
            }
            line = self.arrived.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn line(&self) -> MutexGuard<'_, ReadQueue> {
        // Nobody panics while holding it; it holds only who waits.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SqliteTx {
    fn answer<T>(
        &mut self,
        work: impl FnOnce(&Connection) -> Result<T, SqliteError>,
    ) -> Result<T, SqliteError> {
        let db = match self.db.take() {
            Some(db) => db,
            None => self.files.connect_to_read()?,
        };
        let answer = in_one_moment(&db, work);
        if !answer.as_ref().is_err_and(SqliteError::taints_connection) {
            self.db = Some(db);
        }
        answer
    }
}

fn in_one_moment<T>(
    db: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, SqliteError>,
) -> Result<T, SqliteError> {
    db.prepare_cached("BEGIN")?.execute([])?;
    let answer = work(db);
    // Nothing was written; this only lets the moment go.
    let ended = db.prepare_cached("COMMIT")?.execute([]);
    let answer = answer?;
    ended?;
    Ok(answer)
}

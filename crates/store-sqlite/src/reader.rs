//! A few threads that read, each with a connection that cannot write, and one such connection for short questions while nobody waits.
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
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, oneshot};

/// Questions are short and mostly answered from memory; two threads keep one slow page from holding up the rest.
const READERS: usize = 2;
/// Questions that may wait; whoever brings more waits until there is room.
const WAITING_MAX: usize = 256;
const STACK_BYTES: usize = 1 << 20;

type ReadTask = Box<dyn FnOnce(&mut SqliteTx) + Send>;

pub(crate) struct Reader {
    counter: Arc<Counter>,
    /// The connection of whoever asks while nobody waits; none while somebody has it.
    in_place: Mutex<Option<SqliteTx>>,
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
        let in_place = Mutex::new(Some(SqliteTx { files: files.clone(), db: None }));
        Ok(Self { counter, in_place, threads })
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

    /// The same for a question that takes no longer than waking a thread does, and being woken by it: it is answered where it is put
    /// while nobody waits. Its thread is not given up for that (`block_in_place`): each time, that would wake or start another one, and
    /// what tens of threads have allocated stays with them.
    pub(crate) async fn ask_here<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, SqliteError> + Send + 'static,
    {
        let Some(mut tx) = self.connection_if_quiet() else { return self.ask(work).await };
        let answer = tx.answer(work);
        *self.in_place() = Some(tx);
        answer.map_err(|error| error.unchanged())
    }

    /// The connection of whoever asks, if nobody waits for a thread and this thread may be held up for a moment, because its runtime has
    /// others for whatever else there is to do. There is one, so at most one of them is held up.
    fn connection_if_quiet(&self) -> Option<SqliteTx> {
        let runtime = Handle::try_current().ok()?;
        if runtime.runtime_flavor() != RuntimeFlavor::MultiThread || !self.counter.line().waiting.is_empty() {
            return None;
        }
        self.in_place().take()
    }

    fn in_place(&self) -> MutexGuard<'_, Option<SqliteTx>> {
        // Nobody panics while holding it.
        self.in_place.lock().unwrap_or_else(PoisonError::into_inner)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Rig;
    use std::collections::HashSet;
    use std::time::Duration;

    fn reader() -> (tempfile::TempDir, Arc<Reader>) {
        let place = tempfile::tempdir().unwrap();
        let files = Arc::new(Files::new(place.path(), Rig::default()));
        Connection::open(&files.database).unwrap().execute_batch("CREATE TABLE t (n)").unwrap();
        (place, Arc::new(Reader::start(&files).unwrap()))
    }

    /// The name of the thread that answers.
    async fn answered_by(reader: &Reader) -> String {
        let name = reader.ask_here(|db| {
            db.query_row("SELECT 1", [], |_| Ok(()))?;
            Ok(std::thread::current().name().unwrap_or_default().to_owned())
        });
        name.await.unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn whoever_asks_alone_is_answered_where_they_are_and_others_by_threads() {
        let (_place, reader) = reader();
        assert!(!answered_by(&reader).await.starts_with("homing-read"));
        let (begun, begins) = std::sync::mpsc::channel();
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let slow = reader.clone();
        let slow = tokio::spawn(async move {
            let waits = slow.ask_here(move |_| {
                begun.send(()).unwrap();
                Ok(ends.recv_timeout(Duration::from_secs(60)).is_ok())
            });
            waits.await.unwrap()
        });
        tokio::task::block_in_place(|| begins.recv_timeout(Duration::from_secs(60))).unwrap();
        assert!(answered_by(&reader).await.starts_with("homing-read"), "somebody has the connection");
        end.send(()).unwrap();
        assert!(slow.await.unwrap());
        assert!(!answered_by(&reader).await.starts_with("homing-read"), "they have given it back");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_long_question_is_answered_by_a_thread() {
        let (_place, reader) = reader();
        let name = reader.ask(|_| Ok(std::thread::current().name().unwrap_or_default().to_owned()));
        assert!(name.await.unwrap().starts_with("homing-read"));
    }

    /// Each thread that was ever started keeps what it has allocated.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_crowd_of_short_questions_starts_no_thread() {
        let (_place, reader) = reader();
        let crowd = (0..32).map(|_| {
            let reader = reader.clone();
            tokio::spawn(async move {
                let mut ran_on = HashSet::new();
                for _ in 0..100 {
                    answered_by(&reader).await;
                    ran_on.insert(std::thread::current().id());
                }
                ran_on
            })
        });
        let mut ran_on = HashSet::new();
        for one in crowd.collect::<Vec<_>>() {
            ran_on.extend(one.await.unwrap());
        }
        assert!(ran_on.len() <= 2, "{} threads of a runtime of two", ran_on.len());
    }

    #[tokio::test]
    async fn a_runtime_of_one_thread_is_never_held_up() {
        let (_place, reader) = reader();
        assert!(answered_by(&reader).await.starts_with("homing-read"));
    }
}

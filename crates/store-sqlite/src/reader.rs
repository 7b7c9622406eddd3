//! A few threads that read, each with a connection that cannot write.
//!
//! A question is one read transaction, so everything it sees belongs to one moment; a change that was acknowledged
//! before the question was put is always part of it.

use crate::files::Files;
use crate::trouble::Trouble;
use rusqlite::Connection;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use store::StoreError;
use tokio::sync::{mpsc, oneshot};

/// Questions are short and mostly answered from memory; two threads keep one slow page from holding up the rest.
const READERS: usize = 2;
/// Questions that may wait; whoever brings more waits until there is room.
const WAITING_MAX: usize = 256;
const STACK_BYTES: usize = 1 << 20;

type Question = Box<dyn FnOnce(&mut Desk) + Send>;

pub(crate) struct Reader {
    queue: Option<mpsc::Sender<Question>>,
    threads: Vec<JoinHandle<()>>,
}

/// A connection that is replaced when it has seen an error of the disk.
struct Desk {
    files: Arc<Files>,
    db: Option<Connection>,
}

impl Reader {
    pub(crate) fn start(files: &Arc<Files>) -> std::io::Result<Self> {
        let (queue, waiting) = mpsc::channel::<Question>(WAITING_MAX);
        let waiting = Arc::new(Mutex::new(waiting));
        let threads = (0..READERS).map(|number| {
            let (waiting, mut desk) = (waiting.clone(), Desk { files: files.clone(), db: None });
            std::thread::Builder::new().name(format!("homing-read-{number}")).stack_size(STACK_BYTES).spawn(
                move || {
                    while let Some(question) = next(&waiting) {
                        question(&mut desk)
                    }
                },
            )
        });
        Ok(Self { queue: Some(queue), threads: threads.collect::<Result<_, _>>()? })
    }

    /// Answers a question from one moment of the file.
    pub(crate) async fn ask<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Trouble> + Send + 'static,
    {
        let closed = || StoreError::Unavailable("the store is closed".into());
        let (waits, answer) = oneshot::channel();
        let question = Box::new(move |desk: &mut Desk| {
            let _ = waits.send(desk.answer(work).map_err(|trouble| trouble.unchanged()));
        });
        let queue = self.queue.as_ref().ok_or_else(closed)?;
        queue.send(question).await.map_err(|_| closed())?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.queue = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The thread that holds the lock waits for the next question, the others wait for the lock.
fn next(waiting: &Mutex<mpsc::Receiver<Question>>) -> Option<Question> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv()
}

impl Desk {
    fn answer<T>(&mut self, work: impl FnOnce(&Connection) -> Result<T, Trouble>) -> Result<T, Trouble> {
        let db = match self.db.take() {
            Some(db) => db,
            None => self.files.connect_to_read()?,
        };
        let answer = in_one_moment(&db, work);
        if !answer.as_ref().is_err_and(Trouble::taints_connection) {
            self.db = Some(db);
        }
        answer
    }
}

fn in_one_moment<T>(
    db: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    db.prepare_cached("BEGIN")?.execute([])?;
    let answer = work(db);
    // Nothing was written; this only lets the moment go.
    let ended = db.prepare_cached("COMMIT")?.execute([]);
    let answer = answer?;
    ended?;
    Ok(answer)
}

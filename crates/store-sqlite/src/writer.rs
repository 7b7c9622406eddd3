//! The one thread that writes.
//!
//! Changes wait in a bounded queue. The thread takes what is there into one transaction, commits once (one fsync for all of
//! them), and only then answers. A change decides before it writes, so it hardly ever fails; if one does, the whole group
//! is run again, each under a savepoint of its own so that it takes nobody along. A commit that ends in an error is neither
//! a yes nor a no: everybody in it hears *unknown*, the connection is replaced, and a commit of our own settles what the file
//! holds before the next change is looked at.

use crate::error::SqliteError;
use crate::files::Files;
use crate::tx::SqliteTx;
use crate::wal::Wal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use store::StoreError;
use tokio::sync::{mpsc, oneshot};

/// Changes that may wait; whoever brings more waits until there is room.
const WAITING_MAX: usize = 1_024;
/// Changes in one commit. More would make the first one wait longer than its share of the fsync is worth.
const GROUP_MAX: usize = 512;
/// Words in one commit, about: a group's pages are kept in memory until it is over.
const GROUP_BYTES_MAX: usize = 4 << 20;
/// The stack that the thread needs: SQLite is modest, and so is our JSON.
const STACK_BYTES: usize = 1 << 20;

/// The way to the thread.
pub(crate) struct Writer {
    queue: Option<mpsc::Sender<Item>>,
    thread: Option<JoinHandle<()>>,
    tally: Arc<Tally>,
}

/// Figures about the thread's work.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) commits: AtomicU64,
    pub(crate) changes: AtomicU64,
    pub(crate) fenced: AtomicU64,
    pub(crate) moved: AtomicU64,
}

struct Item {
    bytes: usize,
    work: Box<dyn Work>,
}

/// A change and whoever waits for its answer.
trait Work: Send {
    fn run(&mut self, tx: &mut SqliteTx) -> Result<(), SqliteError>;
    fn answer(self: Box<Self>, failed: Option<StoreError>);
}

struct QueuedWrite<F, T> {
    work: F,
    made: Option<T>,
    waits: oneshot::Sender<Result<T, StoreError>>,
}

impl<F, T> Work for QueuedWrite<F, T>
where
    F: FnMut(&mut SqliteTx) -> Result<T, SqliteError> + Send,
    T: Send,
{
    fn run(&mut self, tx: &mut SqliteTx) -> Result<(), SqliteError> {
        self.made = Some((self.work)(tx)?);
        Ok(())
    }

    fn answer(self: Box<Self>, failed: Option<StoreError>) {
        let answer = match failed {
            Some(error) => Err(error),
            None => Ok(self.made.expect("a change that did not fail was run")),
        };
        // Whoever asked may be gone; the change stands all the same.
        let _ = self.waits.send(answer);
    }
}

impl Writer {
    /// Starts the thread with the connection that it shall own.
    pub(crate) fn start(files: Arc<Files>, tx: SqliteTx) -> std::io::Result<Self> {
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        let tally = tx.tally();
        let wal = Wal::start(files.clone())?;
        let room = WriterThread { files, waiting, tx: Some(tx), tally: tally.clone(), wal };
        let thread = std::thread::Builder::new().name("homing-write".into()).stack_size(STACK_BYTES).spawn(
            move || {
                let _end = EndWithUs;
                room.work();
            },
        )?;
        Ok(Self { queue: Some(queue), thread: Some(thread), tally })
    }

    /// Makes a change durable, then answers. `bytes` is about what it adds to the file. The change may be run more than once;
    /// what all runs but the last did is undone.
    pub(crate) async fn change<T, F>(&self, bytes: usize, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut SqliteTx) -> Result<T, SqliteError> + Send + 'static,
    {
        let (waits, answer) = oneshot::channel();
        let work = Box::new(QueuedWrite { work, made: None, waits });
        let queue = self.queue.as_ref().ok_or_else(closed)?;
        queue.send(Item { bytes, work }).await.map_err(|_| closed())?;
        // The thread went away with the change in its hands: only the file knows.
        answer.await.unwrap_or_else(|_| Err(StoreError::Unknown("the writer stopped".into())))
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Ends the process if the thread panics. One that can never write again must not look alive: whoever watches over it
/// starts another, which reads what is durable.
struct EndWithUs;

impl Drop for EndWithUs {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!("the thread that writes has panicked; the process ends");
            std::process::abort();
        }
    }
}

/// Everything that the thread owns.
struct WriterThread {
    files: Arc<Files>,
    waiting: mpsc::Receiver<Item>,
    /// None after a commit of unknown outcome, until a new connection has settled it.
    tx: Option<SqliteTx>,
    tally: Arc<Tally>,
    wal: Wal,
}

impl WriterThread {
    fn work(mut self) {
        while let Some(first) = self.waiting.blocking_recv() {
            let group = self.gather(first);
            self.commit(group);
            if let Some(tx) = &self.tx {
                self.wal.tend(tx.db());
            }
        }
    }

    fn gather(&mut self, first: Item) -> Vec<Box<dyn Work>> {
        let mut bytes = first.bytes;
        let mut group = vec![first.work];
        while group.len() < GROUP_MAX && bytes < GROUP_BYTES_MAX {
            let Ok(item) = self.waiting.try_recv() else { break };
            bytes += item.bytes;
            group.push(item.work);
        }
        group
    }

    fn commit(&mut self, mut group: Vec<Box<dyn Work>>) {
        let outcome = match self.tx() {
            Ok(tx) => transact(tx, &mut group),
            Err(error) => Err(error.unchanged()),
        };
        match outcome {
            Ok(outcomes) => {
                let changed =
                    outcomes.iter().filter(|outcome| matches!(outcome, Ran::Changed)).count() as u64;
                self.tally.commits.fetch_add(u64::from(changed > 0), Ordering::Relaxed);
                self.tally.changes.fetch_add(changed, Ordering::Relaxed);
                group.into_iter().zip(outcomes).for_each(|(work, outcome)| work.answer(outcome.failed()));
            }
            Err(error) => {
                if !matches!(error, StoreError::Full) {
                    tracing::error!(%error, changes = group.len(), "a commit failed");
                    self.replace();
                }
                group.into_iter().for_each(|work| work.answer(Some(error.clone())));
            }
        }
    }

    /// The transaction, with a new connection if the last one was given up.
    fn tx(&mut self) -> Result<&mut SqliteTx, SqliteError> {
        if self.tx.is_none() {
            let mut tx = SqliteTx::new(self.files.connect_to_write()?, self.tally.clone())?;
            tx.settle()?;
            self.tx = Some(tx);
        }
        Ok(self.tx.as_mut().expect("it was just put there"))
    }

    /// Gives the connection up and tries to have a new one at once, so that *unknown* can be looked up.
    fn replace(&mut self) {
        self.tx = None;
        if let Err(error) = self.tx() {
            tracing::error!(error = %error.unchanged(), "the store cannot be written to for now");
        }
    }
}

/// The outcome of one change in a group that was committed.
enum Ran {
    Changed,
    /// It only looked, and answers with what it saw.
    Unchanged,
    Failed(StoreError),
}

impl Ran {
    fn failed(self) -> Option<StoreError> {
        match self {
            Self::Changed | Self::Unchanged => None,
            Self::Failed(error) => Some(error),
        }
    }
}

/// Runs a group in one transaction. If the whole group failed, nothing of it is there, unless the error is *unknown*.
fn transact(tx: &mut SqliteTx, group: &mut [Box<dyn Work>]) -> Result<Vec<Ran>, StoreError> {
    let outcomes = match run_all(tx, group, together) {
        Ok(outcomes) => outcomes,
        // SQLite itself rolled everything back (a full disk, an I/O error): it would do so again.
        Err((error, true)) => return Err(error.unchanged()),
        Err((_, false)) => run_all(tx, group, apart).map_err(|(error, _)| error.unchanged())?,
    };
    if let Err(error) = tx.write_counters() {
        tx.roll_back();
        return Err(error.unchanged());
    }
    if let Err(error) = tx.commit() {
        tx.roll_back();
        return Err(error.of_commit());
    }
    Ok(outcomes)
}

/// Runs each change of a group in a new transaction. With an error there is none any more; it says, too, whether that was
/// SQLite's own doing.
fn run_all(
    tx: &mut SqliteTx,
    group: &mut [Box<dyn Work>],
    run: fn(&mut SqliteTx, &mut dyn Work) -> Result<Ran, SqliteError>,
) -> Result<Vec<Ran>, (SqliteError, bool)> {
    tx.begin().map_err(|error| (error, true))?;
    let mut outcomes = Vec::with_capacity(group.len());
    for work in group.iter_mut() {
        match run(tx, work.as_mut()) {
            Ok(outcome) => outcomes.push(outcome),
            Err(error) => {
                let is_gone = tx.db().is_autocommit();
                tx.roll_back();
                return Err((error, is_gone));
            }
        }
    }
    Ok(outcomes)
}

/// Runs one change in the transaction of all: its failure is everybody's.
fn together(tx: &mut SqliteTx, work: &mut dyn Work) -> Result<Ran, SqliteError> {
    let before = tx.db().total_changes();
    work.run(tx)?;
    Ok(if tx.db().total_changes() > before { Ran::Changed } else { Ran::Unchanged })
}

/// Runs one change so that its failure is its own. An error here is everybody's: the transaction is gone.
fn apart(tx: &mut SqliteTx, work: &mut dyn Work) -> Result<Ran, SqliteError> {
    tx.set_apart()?;
    match together(tx, work) {
        Ok(ran) => {
            tx.keep()?;
            Ok(ran)
        }
        Err(error) if tx.db().is_autocommit() => Err(error),
        Err(error) => {
            tx.take_back()?;
            Ok(Ran::Failed(error.unchanged()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::{Options, open};
    use kernel::{Moment, NodeId};
    use std::os::unix::process::ExitStatusExt;

    /// Set in the process that is to end.
    const DOOMED: &str = "HOMING_TEST_DOOMED_IN";

    #[test]
    fn a_process_whose_writer_panics_ends() {
        if let Some(dir) = std::env::var_os(DOOMED) {
            let opened = open(dir.as_ref(), &Options::new(NodeId::from_bits(1), "here", Moment(1))).unwrap();
            let writer = Writer::start(opened.files, opened.tx).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let _ = runtime.block_on(writer.change::<(), _>(0, |_| panic!("as a mistake would")));
            // Waits for the thread: from here on only it could have ended us.
            drop(writer);
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let name = "writer::tests::a_process_whose_writer_panics_ends";
        let mut doomed = std::process::Command::new(std::env::current_exe().unwrap());
        let ended = doomed.args(["--exact", name]).env(DOOMED, dir.path()).output().unwrap();
        let abort = rustix::process::Signal::ABORT.as_raw();
        assert_eq!(ended.status.signal(), Some(abort), "{ended:?}");
    }
}

//! The one connection that writes, and the thread that it mostly belongs to.
//!
//! Changes wait in a bounded queue. The thread takes what is there into one transaction, commits once (one fsync for all of
//! them), and only then answers. Whoever comes while nobody writes, nobody waits and nobody else came lately takes the
//! connection and commits by themselves: waking the thread and being woken by it would take them as long as a third of the commit.
//! While the disk is quick they do not give their thread of the runtime up for that either: another one would be woken to go on in its
//! place, and whatever follows the commit would be another's again. The thread that writes watches over them meanwhile: if a disk stalls, it
//! has the runtime go on without the one that is held up.
//!
//! A change decides before it writes, so it hardly ever fails; if one does, the whole group
//! is run again, each under a savepoint of its own so that it takes nobody along. A commit that ends in an error is neither
//! a yes nor a no: everybody in it hears *unknown*, the connection is replaced, and a commit of our own settles what the file
//! holds before the next change is looked at.

use crate::error::SqliteError;
use crate::files::Files;
use crate::tx::SqliteTx;
use crate::wal::Wal;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use store::StoreError;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, oneshot};

/// Changes that may wait; whoever brings more waits until there is room.
const WAITING_MAX: usize = 1_024;
/// Changes in one commit. More would make the first one wait longer than its share of the fsync is worth.
const GROUP_MAX: usize = 512;
/// Words in one commit, about: a group's pages are kept in memory until it is over.
const GROUP_BYTES_MAX: usize = 4 << 20;
/// A disk that committed last within this time is taken to do so again: giving a thread of the runtime up, and taking up elsewhere what
/// comes after, costs about as much.
const QUICK_MAX: Duration = Duration::from_millis(1);
/// The longest that a thread of the runtime is held up before the others are told to do without it. Far longer than a commit of a quick
/// disk, far shorter than anybody's patience: a supervisor's is seconds.
const HELD_UP_MAX: Duration = Duration::from_millis(50);
/// The stack that the thread needs: SQLite is modest, and so is our JSON.
const STACK_BYTES: usize = 1 << 20;

/// The way to the connection.
pub(crate) struct Writer {
    queue: Arc<WriteQueue>,
    thread: Option<JoinHandle<()>>,
    tally: Arc<Tally>,
}

/// Figures about what was written.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) commits: AtomicU64,
    pub(crate) changes: AtomicU64,
    pub(crate) fenced: AtomicU64,
    pub(crate) moved: AtomicU64,
}

/// Where changes wait, and where the connection is while nobody writes.
struct WriteQueue {
    room: Semaphore,
    state: Mutex<WriteQueueState>,
    arrived: Condvar,
}

struct WriteQueueState {
    waiting: VecDeque<Item>,
    /// None while somebody has it and writes.
    connection: Option<Box<WriteConnection>>,
    /// True if the last group had more than one change: others come at the same time, and share a commit if they wait.
    is_crowded: bool,
    /// True if the write-ahead log has become long, and the thread is to see to it.
    is_log_long: bool,
    /// True if the last change that came alone was committed within `QUICK_MAX`.
    is_quick: bool,
    /// The commit for which a thread of the runtime is held up.
    held_up: Option<HeldUp>,
    watch: Watch,
    closed: bool,
}

/// A thread of a runtime that commits.
struct HeldUp {
    since: Instant,
    runtime: Handle,
}

/// The state of our thread's watch over those that commit by themselves. It wakes `HELD_UP_MAX` after the first of them, and sleeps once
/// nobody came since: a server at rest costs nothing, and one at work a look now and then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watch {
    /// Until it is woken.
    Asleep,
    /// Until the next look; nobody has come since the last one.
    Quiet,
    /// The same, and somebody has come.
    Busy,
}

/// Whoever has the connection, and how they commit.
struct Alone {
    connection: Box<WriteConnection>,
    /// True if the thread stays with whoever brings the change.
    is_held_up: bool,
}

struct Item {
    bytes: usize,
    work: Box<dyn Work>,
}

/// The changes that share a commit.
type WriteGroup = Vec<Box<dyn Work>>;

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
    /// Starts the thread, with the connection that everything is written through.
    pub(crate) fn start(files: Arc<Files>, tx: SqliteTx) -> std::io::Result<Self> {
        let tally = tx.tally();
        let wal = Wal::start(files.clone())?;
        let connection = Box::new(WriteConnection { files, tx: Some(tx), tally: tally.clone(), wal });
        let state = WriteQueueState {
            waiting: VecDeque::new(),
            connection: Some(connection),
            is_crowded: false,
            is_log_long: false,
            is_quick: false,
            held_up: None,
            watch: Watch::Asleep,
            closed: false,
        };
        let queue = Arc::new(WriteQueue {
            room: Semaphore::new(WAITING_MAX),
            state: Mutex::new(state),
            arrived: Condvar::new(),
        });
        let its_queue = queue.clone();
        let thread = std::thread::Builder::new()
            .name("homing-write".into())
            .stack_size(STACK_BYTES)
            .spawn(move || its_queue.work())?;
        Ok(Self { queue, thread: Some(thread), tally })
    }

    /// Makes a change durable, then answers. `bytes` is about what it adds to the file. The change may be run more than once;
    /// what all runs but the last did is undone.
    pub(crate) async fn change<T, F>(&self, bytes: usize, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut SqliteTx) -> Result<T, SqliteError> + Send + 'static,
    {
        let (waits, answer) = oneshot::channel();
        let item = Item { bytes, work: Box::new(QueuedWrite { work, made: None, waits }) };
        if self.queue.is_quick_and_quiet() {
            // Nobody else could take over what this thread was just asked to do next, such as to tell an agent something.
            tokio::task::yield_now().await;
        }
        match self.queue.connection_if_quiet() {
            Some(alone) if alone.is_held_up => self.queue.commit_alone(alone.connection, item),
            Some(alone) => tokio::task::block_in_place(|| self.queue.commit_alone(alone.connection, item)),
            None => self.queue.put(item).await,
        }
        // The thread went away with the change in its hands: only the file knows.
        answer.await.unwrap_or_else(|_| Err(StoreError::Unknown("the writer stopped".into())))
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.state().closed = true;
        self.queue.arrived.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl WriteQueueState {
    /// True if nobody waits, nobody else came lately, and the thread is not needed.
    fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && !self.is_crowded && !self.is_log_long
    }
}

impl WriteQueue {
    /// The connection, if whoever asks may write by themselves: nobody else does or wants to, and this thread may be held up,
    /// because its runtime has others for whatever else there is to do.
    fn connection_if_quiet(&self) -> Option<Alone> {
        let runtime = Handle::try_current().ok()?;
        if runtime.runtime_flavor() != RuntimeFlavor::MultiThread {
            return None;
        }
        let mut state = self.state();
        let connection = if state.is_quiet() { state.connection.take()? } else { return None };
        // A runtime of one thread has nobody to go on without it.
        let is_held_up = state.is_quick && runtime.metrics().num_workers() > 1;
        if is_held_up {
            state.held_up = Some(HeldUp { since: Instant::now(), runtime });
            if state.watch == Watch::Asleep {
                self.arrived.notify_one();
            }
            state.watch = Watch::Busy;
        }
        Some(Alone { connection, is_held_up })
    }

    /// True if a change that comes now would be committed where it is brought, by a thread that is held up for it.
    fn is_quick_and_quiet(&self) -> bool {
        let state = self.state();
        state.is_quick && state.connection.is_some() && state.is_quiet()
    }

    /// Commits one change on the thread of whoever brings it. What came meanwhile is for the thread.
    fn commit_alone(&self, mut connection: Box<WriteConnection>, item: Item) {
        let _end = EndWithUs;
        let began = Instant::now();
        let written = connection.commit(vec![item.work]);
        let is_quick = began.elapsed() <= QUICK_MAX;
        let is_log_long = connection.wal.nudge_if_long();
        let mut state = self.state();
        state.held_up = None;
        // A look says nothing of the disk.
        state.is_quick = if written == Written::Nothing { state.is_quick } else { is_quick };
        state.connection = Some(connection);
        state.is_log_long = is_log_long;
        if is_log_long || !state.waiting.is_empty() {
            self.arrived.notify_one();
        }
    }

    async fn put(&self, item: Item) {
        // Never closed: whoever asks holds the writer, and it goes with the last of them.
        if let Ok(place) = self.room.acquire().await {
            place.forget();
        }
        let mut state = self.state();
        state.waiting.push_back(item);
        // Whoever has the connection looks here again when they put it back.
        if state.connection.is_some() {
            self.arrived.notify_one();
        }
    }

    /// The thread: takes what waits and writes it, until there will be no more.
    fn work(&self) {
        let _end = EndWithUs;
        while let Some((mut connection, group)) = self.next() {
            let is_crowded = group.len() > 1;
            connection.commit(group);
            connection.tend();
            let mut state = self.state();
            state.connection = Some(connection);
            state.is_crowded = is_crowded;
            state.is_log_long = false;
        }
    }

    /// The connection, and the changes that share the next commit. None when there will be no more.
    fn next(&self) -> Option<(Box<WriteConnection>, WriteGroup)> {
        let mut state = self.state();
        loop {
            let is_needed = !state.waiting.is_empty() || state.is_log_long;
            match state.connection.take() {
                Some(connection) if is_needed => return Some((connection, self.gather(&mut state))),
                // The connection goes with us.
                Some(_) if state.closed => return None,
                connection => state.connection = connection,
            }
            state = self.wait(state);
        }
    }

    /// Waits until there is something to do, or until it is time to look after whoever commits by themselves.
    fn wait<'a>(&self, mut state: MutexGuard<'a, WriteQueueState>) -> MutexGuard<'a, WriteQueueState> {
        if state.watch == Watch::Asleep {
            return self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let waited = self.arrived.wait_timeout(state, HELD_UP_MAX);
        (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let is_stalled = |held_up: &HeldUp| held_up.since.elapsed() >= HELD_UP_MAX;
        if let Some(held_up) = state.held_up.take_if(|held_up| is_stalled(held_up)) {
            // Wakes another of its threads, which from then on hears whatever happens.
            drop(held_up.runtime.spawn(async {}));
        }
        state.watch = match state.watch {
            Watch::Busy => Watch::Quiet,
            Watch::Quiet if state.held_up.is_none() => Watch::Asleep,
            watch => watch,
        };
        state
    }

    fn gather(&self, state: &mut WriteQueueState) -> WriteGroup {
        let (mut bytes, mut group) = (0, Vec::new());
        while group.len() < GROUP_MAX
            && bytes < GROUP_BYTES_MAX
            && let Some(item) = state.waiting.pop_front()
        {
            bytes += item.bytes;
            group.push(item.work);
        }
        self.room.add_permits(group.len());
        group
    }

    fn state(&self) -> MutexGuard<'_, WriteQueueState> {
        // Nobody panics while holding it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the process if whoever writes panics. One that can never write again must not look alive: whoever watches over it
/// starts another, which reads what is durable.
struct EndWithUs;

impl Drop for EndWithUs {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!("a thread that writes has panicked; the process ends");
            std::process::abort();
        }
    }
}

/// Everything that whoever writes needs.
struct WriteConnection {
    files: Arc<Files>,
    /// None after a commit of unknown outcome, until a new connection has settled it.
    tx: Option<SqliteTx>,
    tally: Arc<Tally>,
    wal: Wal,
}

impl WriteConnection {
    /// Looks after the write-ahead log.
    fn tend(&mut self) {
        if let Some(tx) = &self.tx {
            self.wal.tend(tx.db());
        }
    }

    fn commit(&mut self, mut group: WriteGroup) -> Written {
        if group.is_empty() {
            return Written::Nothing;
        }
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
                if changed > 0 { Written::Something } else { Written::Nothing }
            }
            Err(error) => {
                if !matches!(error, StoreError::Full) {
                    tracing::error!(%error, changes = group.len(), "a commit failed");
                    self.replace();
                }
                group.into_iter().for_each(|work| work.answer(Some(error.clone())));
                Written::Something
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

/// The work that a commit gave the disk, however it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Something,
    Nothing,
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
        ends_by_itself("writer::tests::a_process_whose_writer_panics_ends", || {
            tokio::runtime::Builder::new_current_thread()
        });
    }

    #[test]
    fn a_process_ends_whose_change_panics_where_it_is_brought() {
        ends_by_itself("writer::tests::a_process_ends_whose_change_panics_where_it_is_brought", || {
            tokio::runtime::Builder::new_multi_thread()
        });
    }

    fn write(tx: &mut SqliteTx) -> Result<(), SqliteError> {
        tx.db().execute_batch("UPDATE counters SET inbox = inbox")?;
        Ok(())
    }

    /// Commits until it is known that the disk is quick.
    async fn until_quick(writer: &Writer) {
        while !writer.queue.state().is_quick {
            writer.change(0, write).await.unwrap();
        }
    }

    /// The thread that commits may be the one that hears of everything else.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_commit_that_stalls_holds_up_nobody_else() {
        let dir = tempfile::tempdir().unwrap();
        let opened = open(dir.path(), &Options::new(NodeId::from_bits(1), "here", Moment(1))).unwrap();
        let writer = Arc::new(Writer::start(opened.files, opened.tx).unwrap());
        // Which of the threads it is differs from time to time.
        for _ in 0..16 {
            until_quick(&writer).await;
            let (begun, begins) = oneshot::channel();
            let (end, ends) = std::sync::mpsc::channel::<()>();
            let (stalls, mut begun) = (writer.clone(), Some(begun));
            let stalled = tokio::spawn(async move {
                // Brought by the clock, it is on the thread that heard it, and nobody else was woken.
                tokio::time::sleep(Duration::from_millis(1)).await;
                let change = stalls.change(0, move |_| {
                    let _ = begun
                        .take()
                        .map(|begun| begun.send(std::thread::current().name().map(str::to_owned)));
                    Ok(ends.recv_timeout(Duration::from_secs(60)).is_ok())
                });
                change.await.unwrap()
            });
            assert_ne!(
                begins.await.unwrap().as_deref(),
                Some("homing-write"),
                "it is committed where it is brought"
            );
            tokio::time::sleep(Duration::from_millis(1)).await;
            end.send(()).unwrap();
            assert!(stalled.await.unwrap(), "the clock went on");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_slow_disk_is_not_waited_for_by_a_thread_that_others_need() {
        let dir = tempfile::tempdir().unwrap();
        let opened = open(dir.path(), &Options::new(NodeId::from_bits(1), "here", Moment(1))).unwrap();
        let writer = Writer::start(opened.files, opened.tx).unwrap();
        until_quick(&writer).await;
        let slow = |tx: &mut SqliteTx| {
            std::thread::sleep(QUICK_MAX * 2);
            write(tx)
        };
        let look = |_: &mut SqliteTx| {
            std::thread::sleep(QUICK_MAX * 2);
            Ok(())
        };
        writer.change(0, look).await.unwrap();
        assert!(writer.queue.state().is_quick, "nothing was written");
        writer.change(0, slow).await.unwrap();
        assert!(!writer.queue.state().is_quick);
    }

    fn ends_by_itself(name: &str, runtime: fn() -> tokio::runtime::Builder) {
        if let Some(dir) = std::env::var_os(DOOMED) {
            let opened = open(dir.as_ref(), &Options::new(NodeId::from_bits(1), "here", Moment(1))).unwrap();
            let writer = Writer::start(opened.files, opened.tx).unwrap();
            let runtime = runtime().build().unwrap();
            let _ = runtime.block_on(writer.change::<(), _>(0, |_| panic!("as a mistake would")));
            // Waits for the thread: from here on only it could have ended us.
            drop(writer);
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let mut doomed = std::process::Command::new(std::env::current_exe().unwrap());
        let ended = doomed.args(["--exact", name]).env(DOOMED, dir.path()).output().unwrap();
        let abort = rustix::process::Signal::ABORT.as_raw();
        assert_eq!(ended.status.signal(), Some(abort), "{ended:?}");
    }
}

//! The server's side of ground workers: one for each session that needs one, started when it is first asked, and ended when
//! it has rested.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::{OwnedSession, TreesError, WorkProgress};
use kernel::{GroundPath, SessionId};
use processes::SpareSupervisor;
use processes::wall::Wall;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::protocol::{GroundAnswer, GroundCall};
use super::written::WrittenBounds;
use crate::repositories::WorktreeRecords;
use crate::session_directory::SessionDirectories;

mod line;
mod trees;

/// Workers that rest at the same time, beyond which the one that has rested longest goes.
const RESTING_MAX: usize = 8;
/// The longest that nothing may be heard of a call: all that a look may take, for it says nothing until it is over. Git has a bound of
/// its own for looks, which is shorter.
const SILENCE_MAX: Duration = Duration::from_secs(330);
/// The longest that a call may take that changes something and says how far it is. Whoever still goes on then goes nowhere.
const WORK_TIME_MAX: Duration = Duration::from_secs(6 * 60 * 60);
/// Workers that are tried for one call. One that was ended from outside says nothing about the next; one that the call itself ends
/// would end for ever.
const CALL_TRIES_MAX: usize = 2;
/// Calls that wait for one worker.
const CALLS_WAITING_MAX: usize = 16;

/// Why somebody has to wait.
const CROWDED: &str = "too much is asked of this session's directory at once; ask again";

/// The things that the workers of a server are made of.
#[derive(Debug, Clone)]
pub struct WorkerSetup {
    /// The program that has `supervise` and `ground`: our own.
    pub exe: PathBuf,
    /// The data directory.
    pub data: PathBuf,
    /// The directory of the locks.
    pub locks: PathBuf,
    /// The wall that sessions get.
    pub wall: Arc<Wall>,
    /// The spare that becomes a worker's supervisor, if one waits.
    pub spare: Option<SpareSupervisor>,
    /// The bytes that one call may write, with everything that is started for it.
    pub written_bytes_max: u64,
    /// The disk that the snapshots of one repository may take.
    pub store_bytes_max: u64,
    /// Workers at once for the sessions of one person; further ones wait until one of them has gone.
    pub each_max: usize,
}

/// The workers of this server; the engine's port `Trees`. Cheap to clone.
#[derive(Debug, Clone)]
pub struct GroundWorkers(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    setup: WorkerSetup,
    records: WorktreeRecords,
    directories: SessionDirectories,
    running: Mutex<RunningWorkers>,
    /// Where something is being copied after a turn, and whether there is more by now.
    copying: Mutex<BTreeMap<(SessionId, GroundPath), bool>>,
    /// The last word about the work of each session of which somebody listens or something is under way.
    progress: Mutex<BTreeMap<SessionId, watch::Sender<Option<WorkProgress>>>>,
    snapshots: SnapshotNews,
}

/// The news of snapshots between two calls.
#[derive(Debug, Default)]
struct SnapshotNews {
    /// Rung when something was copied.
    grown: Notify,
    /// Words for sessions, to be said once.
    gone: Mutex<BTreeMap<SessionId, String>>,
    /// Those of whom no more are taken, and why, by the person's id.
    full: Mutex<BTreeMap<String, String>>,
}

/// The workers that there are, and the tasks that carry their calls.
#[derive(Debug, Default)]
struct RunningWorkers {
    by_key: BTreeMap<WorkerKey, RunningWorker>,
    /// The places of each person of whom one is there.
    places: BTreeMap<String, Arc<Semaphore>>,
    tasks: JoinSet<()>,
    /// The server ends: no other one is started.
    is_closed: bool,
}

/// The things that a worker's wall depends on: of a session that was handed over the worker is another one, and where the wall lists
/// what is there, so is one that works elsewhere.
type WorkerKey = (SessionId, String, bool, WorkerGrounds);

/// The directories that a worker sees besides those of its session, and what it does not see of its user's.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct WorkerGrounds {
    seen: BTreeSet<PathBuf>,
    /// The stores of repositories that it has nothing to do with.
    hidden: BTreeSet<PathBuf>,
}

#[derive(Debug)]
struct RunningWorker {
    calls: mpsc::Sender<Calling>,
    /// Since when it has had nothing to do.
    rests_since: Option<Instant>,
}

/// A call on its way to a worker.
#[derive(Debug)]
struct Calling {
    call: GroundCall,
    bounds: WrittenBounds,
    /// Closed when nobody waits any more.
    waits: oneshot::Sender<Result<GroundAnswer, TreesError>>,
    /// The last word of how far it is.
    heard: watch::Sender<Option<WorkProgress>>,
}

impl GroundWorkers {
    /// None is started before it is needed.
    pub fn new(setup: WorkerSetup) -> Self {
        let (records, directories) = (WorktreeRecords::of(&setup.data), SessionDirectories::of(&setup.data));
        let (running, copying, progress) = (Mutex::default(), Mutex::default(), Mutex::default());
        let snapshots = SnapshotNews::default();
        Self(Arc::new(Shared { setup, records, directories, running, copying, progress, snapshots }))
    }

    /// Has it done on the ground of that session. What a worker had begun that was ended meanwhile is gone on with by the next one:
    /// nothing stays between because nobody asks again.
    async fn call(&self, of: OwnedSession, call: GroundCall) -> Result<GroundAnswer, TreesError> {
        let bytes_max = self.0.setup.written_bytes_max;
        let bounds = WrittenBounds { bytes_max, tree_bytes_left: of.tree_bytes_left };
        let (session, key) = (of.session, self.0.key(of, &call)?);
        let heard = self.0.progress_of(session);
        for _ in 0..CALL_TRIES_MAX {
            if let Some(answer) = self.call_one(&key, call.clone(), bounds, &heard).await {
                return answer;
            }
        }
        Err(ended())
    }

    /// The answer of one worker; none if it has ended before it gave one.
    async fn call_one(
        &self,
        key: &WorkerKey,
        call: GroundCall,
        bounds: WrittenBounds,
        heard: &watch::Sender<Option<WorkProgress>>,
    ) -> Option<Result<GroundAnswer, TreesError>> {
        let (waits, answer) = oneshot::channel();
        // A look says nothing, and is not kept alive by work that goes on beside it.
        let progress = if call.is_work() { heard.subscribe() } else { watch::channel(None).1 };
        let mut calling = Calling { call, bounds, waits, heard: heard.clone() };
        loop {
            let worker = match self.0.worker(key.clone()) {
                Ok(worker) => worker,
                Err(why) => return Some(Err(why)),
            };
            match worker.try_send(calling) {
                Ok(()) => break,
                // It has just gone to rest for good: the next one is started.
                Err(TrySendError::Closed(again)) => calling = again,
                Err(TrySendError::Full(_)) => return Some(Err(TreesError::Busy(CROWDED.to_owned()))),
            }
        }
        answer_of(answer, progress).await
    }
}

/// The answer, as long as something is heard of it; none if the worker has ended before it gave one.
async fn answer_of(
    mut answer: oneshot::Receiver<Result<GroundAnswer, TreesError>>,
    mut progress: watch::Receiver<Option<WorkProgress>>,
) -> Option<Result<GroundAnswer, TreesError>> {
    let until = Instant::now() + WORK_TIME_MAX;
    let failed = |words| Some(Err(TreesError::Failed(words)));
    loop {
        let silence = Instant::now() + SILENCE_MAX;
        tokio::select! {
            biased;
            answer = &mut answer => return answer.ok(),
            Ok(()) = progress.changed() => {}
            () = tokio::time::sleep_until(silence.min(until)) => {
                return if silence < until {
                    failed(format!("nothing was heard of it for {} seconds", SILENCE_MAX.as_secs()))
                } else {
                    failed(format!("it took longer than {} hours", WORK_TIME_MAX.as_secs() / 3_600))
                };
            }
        }
    }
}

fn ended() -> TreesError {
    TreesError::Failed("what looks at this session's directory has ended; ask again".to_owned())
}

/// A worker answered something else than what it was asked. It is our own program, so it is broken.
fn odd() -> TreesError {
    TreesError::Failed(
        "what looks at this session's directory gave another answer than was asked for".to_owned(),
    )
}

impl Shared {
    fn running(&self) -> MutexGuard<'_, RunningWorkers> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn copying(&self) -> MutexGuard<'_, BTreeMap<(SessionId, GroundPath), bool>> {
        self.copying.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the work of a session says how far it is. Those that nobody holds any more are forgotten.
    fn progress_of(&self, session: SessionId) -> watch::Sender<Option<WorkProgress>> {
        let mut known = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|other, sender| {
            *other == session || sender.receiver_count() > 0 || sender.sender_count() > 1
        });
        known.entry(session).or_default().clone()
    }

    /// The worker that such a call needs.
    fn key(&self, of: OwnedSession, call: &GroundCall) -> Result<WorkerKey, TreesError> {
        let wall = &self.setup.wall;
        let besides = call.besides(of.session, &self.records);
        if !wall.lists(of.walled) {
            let grounds = WorkerGrounds { seen: besides, hidden: BTreeSet::new() };
            return Ok((of.session, of.whose, of.walled, grounds));
        }
        // Nothing is listed that the directory leads to by now.
        call.directory().map(|directory| self.directories.hold(directory)).transpose()?;
        let mut seen = call.grounds(of.session, &self.records, &wall.homes());
        seen.extend(besides);
        let own = self.directories.work_true().join(of.session.to_string());
        let is_there = |common: &Path| {
            common.starts_with(&own)
                || seen.iter().any(|ground| common.starts_with(ground))
                || wall.lists_for_all(common)
        };
        let hidden = match call {
            // Of no session: they are about the stores themselves.
            GroundCall::Sweep { .. } | GroundCall::Share { .. } => BTreeSet::new(),
            _ => self.records.stores_besides(is_there),
        };
        Ok((of.session, of.whose, of.walled, WorkerGrounds { seen, hidden }))
    }

    /// True if something has come since it was last asked; otherwise nobody copies there any more.
    fn is_to_be_copied(&self, key: &(SessionId, GroundPath)) -> bool {
        let mut copying = self.copying();
        let is_more = copying.get_mut(key).is_some_and(std::mem::take);
        if !is_more {
            copying.remove(key);
        }
        is_more
    }

    /// The way to the worker of a session; it is started if there is none.
    fn worker(self: &Arc<Self>, key: WorkerKey) -> Result<mpsc::Sender<Calling>, TreesError> {
        let mut running = self.running();
        if running.is_closed {
            return Err(TreesError::Busy("this server is ending; ask the next one".to_owned()));
        }
        if let Some(worker) = running.by_key.get_mut(&key).filter(|worker| !worker.calls.is_closed()) {
            worker.rests_since = None;
            return Ok(worker.calls.clone());
        }
        // Another one of the same session goes when it has done what it was asked: there is one at a time, by its lock.
        running.by_key.retain(|other, _| other.0 != key.0);
        let place = running.place_of(&key.1, self.setup.each_max);
        let (calls, waiting) = mpsc::channel(CALLS_WAITING_MAX);
        running.by_key.insert(key.clone(), RunningWorker { calls: calls.clone(), rests_since: None });
        while running.tasks.try_join_next().is_some() {}
        running.tasks.spawn(line::run_worker(self.setup.clone(), Arc::downgrade(self), key, waiting, place));
        Ok(calls)
    }

    /// Lets go of all of them; each ends when it has nothing under way any more.
    fn close(&self) -> JoinSet<()> {
        let mut running = self.running();
        running.is_closed = true;
        running.by_key.clear();
        std::mem::take(&mut running.tasks)
    }

    /// A worker has nothing to do. Who has rested longest goes if there are too many.
    fn rests(&self, key: &WorkerKey) {
        let running = &mut self.running().by_key;
        if let Some(worker) = running.get_mut(key) {
            worker.rests_since = Some(Instant::now());
        }
        let resting = running.iter().filter_map(|(key, worker)| Some((worker.rests_since?, key.clone())));
        let mut resting: Vec<_> = resting.collect();
        resting.sort();
        for (_, key) in resting.iter().rev().skip(RESTING_MAX) {
            running.remove(key);
        }
    }

    /// Whoever comes from now on gets another one.
    fn forget(&self, key: &WorkerKey, of: &mpsc::Receiver<Calling>) {
        let running = &mut self.running().by_key;
        if of.is_closed() && running.get(key).is_some_and(|worker| worker.calls.is_closed()) {
            running.remove(key);
        }
    }
}

impl RunningWorkers {
    /// The places of a person. If all are taken, the one that has rested longest goes.
    fn place_of(&mut self, whose: &str, each_max: usize) -> Arc<Semaphore> {
        // Whoever has none any more is forgotten.
        self.places.retain(|_, places| Arc::strong_count(places) > 1);
        let places = self.places.entry(whose.to_owned());
        let places = places.or_insert_with(|| Arc::new(Semaphore::new(each_max))).clone();
        if places.available_permits() == 0 {
            let own = self.by_key.iter().filter(|(key, _)| key.1 == whose);
            let resting = own.filter_map(|(key, worker)| Some((worker.rests_since?, key.clone())));
            if let Some((_, key)) = resting.min() {
                self.by_key.remove(&key);
            }
        }
        places
    }
}

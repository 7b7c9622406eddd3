//! The server's side of ground workers: one for each session that needs one, started when it is first asked, and ended when
//! it has rested.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use engine::{
    EnteredTree, MergedTree, OwnedSession, RemovedTree, SeenTrees, Side, SnapshotShare, SnapshotStoreSeen,
    TreeChanges, TreeFiles, TreeReply, TreeSeen, Trees, TreesError, UndoPreview, UndoneTurn, WorkProgress,
};
use kernel::{GroundPath, MergeHow, Moment, NewWorktree, SessionId, TreeName, Turn, UndoFiles};
use processes::wall::{GroundParts, GroundPlaces, SessionWall, Wall, WalledSession};
use processes::{ProcessError, ProcessTree, ResourceLimit, SpareSupervisor, TreeEvent, TreeExit, TreePlan};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::protocol::{
    ANSWER_BYTES_MAX, GroundAnswer, GroundCall, PathForm, REQUEST_BYTES_MAX, ShareStep, WorkerPlaces,
    WorkerReply, WorkerRequest, one_line,
};
use super::written::WrittenBounds;
use crate::repositories::WorktreeRecords;
use crate::session_directory::SessionDirectories;
use crate::session_trees::{UNTRACKED, snapshot_stores, worktree_names, worktrees_removed, worktrees_seen};

/// The time for which a worker that has nothing to do is kept for the next call.
const REST: Duration = Duration::from_secs(10);
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
/// The longest that a worker may take to say that it has given a call up. Then it is ended.
const GIVE_UP_WAIT: Duration = Duration::from_secs(5);
/// The longest that the tree of the session's last worker may take to be gone.
const BUSY_WAIT: Duration = Duration::from_secs(10);
const BUSY_PAUSE: Duration = Duration::from_millis(20);
/// Calls that wait for one worker.
const CALLS_WAITING_MAX: usize = 16;
/// The memory of a worker with everything that it has started.
const MEMORY_BYTES_MAX: u64 = 1 << 30;
/// Processes of a worker: a few gits, each with its helpers.
const PROCESSES_MAX: u32 = 64;

/// The pause between the end of a turn and what is done about it with nobody waiting. Whoever goes on speaking at once finds the
/// processors free, and turns that follow each other closely share a copy.
const COPY_PAUSE: Duration = Duration::from_secs(1);

/// Sessions of one person whose snapshots are looked at in one store: as many as one request can name.
const SHARE_SESSIONS_MAX: usize = 4_000;

/// The variables of the server that a worker gets. Its own ignore file counts where it works as the server's user.
const ENVIRONMENT: &[&str] = &["PATH", "HOME", "XDG_CONFIG_HOME"];

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
        running.tasks.spawn(run_worker(self.setup.clone(), Arc::downgrade(self), key, waiting, place));
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

/// Starts a worker when there is a place for it, hands it calls, and ends it when it has rested or nobody can ask it any more.
async fn run_worker(
    setup: WorkerSetup,
    shared: Weak<Shared>,
    key: WorkerKey,
    mut waiting: mpsc::Receiver<Calling>,
    places: Arc<Semaphore>,
) {
    // Nobody closes it.
    let _place = places.acquire().await;
    if waiting.is_closed() && waiting.is_empty() {
        return;
    }
    match start(&setup, &key).await {
        Ok(tree) => {
            let mut line = Line::new(tree, key.0);
            line.carry(&shared, &key, &mut waiting).await;
            waiting.close();
            line.end().await;
        }
        Err(why) => {
            waiting.close();
            let why = start_error(why);
            while let Some(calling) = waiting.recv().await {
                let _ = calling.waits.send(Err(why.clone()));
            }
        }
    }
    // Whoever came while it was ending asks the next one.
    while waiting.recv().await.is_some() {}
    if let Some(shared) = shared.upgrade() {
        shared.forget(&key, &waiting);
    }
}

fn start_error(why: ProcessError) -> TreesError {
    match why {
        ProcessError::Busy(_) => {
            TreesError::Busy("what was done in this session's directory before has not ended yet".to_owned())
        }
        ProcessError::Refused(words) => TreesError::Refused(words),
        ProcessError::Failed(words) => TreesError::Failed(words),
    }
}

async fn start(setup: &WorkerSetup, key: &WorkerKey) -> Result<ProcessTree, ProcessError> {
    let (session, whose, must) = (key.0, key.1.as_str(), key.2);
    let (places, wall) = wall_of(setup, session, whose, must, &key.3)?;
    let name = TreeName::of_ground(session);
    let argv = vec![setup.exe.to_string_lossy().into_owned(), "ground".to_owned()];
    let plan = TreePlan {
        env: ENVIRONMENT
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)))
            .collect(),
        memory_bytes_max: Some(MEMORY_BYTES_MAX),
        processes_max: Some(PROCESSES_MAX),
        wall,
        spare: setup.spare.clone(),
        ..TreePlan::new(setup.exe.clone(), setup.locks.clone(), name, argv, &*places.own.to_string_lossy())
    };
    let until = Instant::now() + BUSY_WAIT;
    let tree = loop {
        match ProcessTree::start(&plan).await {
            // The one before is on its way out, or that of a server that was killed.
            Err(ProcessError::Busy(_)) if Instant::now() < until => tokio::time::sleep(BUSY_PAUSE).await,
            started => break started?,
        }
    };
    tree.input(&line_of(&places)).await?;
    Ok(tree)
}

/// The wall around a worker, and where behind it its own files are. Makes them, owned by whom it runs as.
fn wall_of(
    setup: &WorkerSetup,
    session: SessionId,
    whose: &str,
    must: bool,
    grounds: &WorkerGrounds,
) -> Result<(WorkerPlaces, SessionWall), ProcessError> {
    let data = setup
        .data
        .canonicalize()
        .map_err(|why| ProcessError::Failed(format!("the data directory: {why}")))?;
    let worktrees = GroundPath::from(&*data.join("worktrees").to_string_lossy());
    let of = WalledSession { session, whose, directory: &worktrees, must };
    let WorkerGrounds { seen, hidden } = grounds;
    let (besides, grounds): (Vec<_>, Vec<_>) = seen.iter().cloned().partition(|path| path.starts_with(&data));
    let hidden: Vec<PathBuf> = hidden.iter().cloned().collect();
    let parts = GroundParts { grounds: &grounds, besides: &besides, hidden: &hidden };
    let (GroundPlaces { own, worktrees }, wall) = setup.wall.around_ground(&of, &setup.locks, &parts)?;
    Ok((WorkerPlaces { data, own, worktrees }, wall))
}

fn line_of(words: &impl serde::Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(words).unwrap_or_default();
    line.push(b'\n');
    line
}

/// The line to one worker, and the calls that are under way in it.
struct Line {
    tree: ProcessTree,
    session: SessionId,
    number: u64,
    under_way: BTreeMap<u64, UnderWay>,
    heard: Vec<u8>,
    exit: Option<TreeExit>,
    is_lost: bool,
}

#[derive(Debug)]
enum UnderWay {
    Waited {
        waits: oneshot::Sender<Result<GroundAnswer, TreesError>>,
        heard: watch::Sender<Option<WorkProgress>>,
    },
    /// Nobody waits any more; by then the worker has to have said that it knows.
    GivenUp { until: Instant },
}

impl Line {
    fn new(tree: ProcessTree, session: SessionId) -> Self {
        let (under_way, heard) = (BTreeMap::new(), Vec::new());
        Self { tree, session, number: 0, under_way, heard, exit: None, is_lost: false }
    }

    /// Until it has rested, or is gone, or nobody can ask it any more.
    async fn carry(&mut self, shared: &Weak<Shared>, key: &WorkerKey, waiting: &mut mpsc::Receiver<Calling>) {
        let (mut rests_until, mut is_open) = (Instant::now() + REST, true);
        loop {
            let (is_idle, overdue) = (self.under_way.is_empty(), self.overdue());
            tokio::select! {
                biased;
                event = self.tree.next() => if !self.hear(event) {
                    return;
                },
                calling = waiting.recv(), if is_open => match calling {
                    Some(calling) => if !self.hand(calling).await {
                        return;
                    },
                    // Nobody else comes.
                    None if is_idle || is_closed(shared) => return,
                    None => is_open = false,
                },
                () = give_ups(&mut self.under_way), if !is_idle => self.give_up().await,
                () = tokio::time::sleep_until(overdue), if !is_idle => return,
                // Whoever was quicker is still served.
                () = tokio::time::sleep_until(rests_until), if is_idle && !waiting.is_closed() => waiting.close(),
            }
            if self.under_way.is_empty() && !is_open {
                return;
            }
            if self.under_way.is_empty() && !is_idle {
                rests_until = Instant::now() + REST;
                shared.upgrade().inspect(|shared| shared.rests(key));
            }
        }
    }

    /// Hands a call to the worker. False if that is no use any more.
    async fn hand(&mut self, calling: Calling) -> bool {
        let Calling { call, bounds, waits, heard } = calling;
        self.number += 1;
        let (number, session) = (self.number, self.session.to_string());
        let line = line_of(&WorkerRequest::Call { number, session, call, bounds });
        if line.len() > REQUEST_BYTES_MAX {
            let _ = waits.send(Err(TreesError::Refused("that is too long".to_owned())));
            return true;
        }
        self.under_way.insert(number, UnderWay::Waited { waits, heard });
        self.tree.input(&line).await.is_ok()
    }

    /// False if the worker is gone, or says what it never should.
    fn hear(&mut self, event: TreeEvent) -> bool {
        match event {
            TreeEvent::Output(bytes) => {
                self.heard.extend_from_slice(&bytes);
                while let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = self.heard.drain(..=end).collect();
                    match serde_json::from_slice::<WorkerReply>(&line) {
                        Ok(WorkerReply::Answer { number, answer }) => {
                            if let Some(UnderWay::Waited { waits, .. }) = self.under_way.remove(&number) {
                                let _ = waits.send(answer.map_err(Into::into));
                            }
                        }
                        Ok(WorkerReply::Progress { number, progress }) => {
                            if let Some(UnderWay::Waited { heard, .. }) = self.under_way.get(&number) {
                                heard.send_replace(Some(progress.into()));
                            }
                        }
                        Err(_) => return false,
                    }
                }
                self.heard.len() <= ANSWER_BYTES_MAX
            }
            // Git's own words, and what a repository made it say: nobody's to read.
            TreeEvent::Errors(_) | TreeEvent::Counted(_) => true,
            TreeEvent::Exited(exit) => {
                self.exit = Some(exit);
                false
            }
            TreeEvent::Lost => {
                self.is_lost = true;
                false
            }
        }
    }

    /// Tells the worker of those for whom nobody waits.
    async fn give_up(&mut self) {
        let until = Instant::now() + GIVE_UP_WAIT;
        let mut gone = Vec::new();
        for (number, call) in &mut self.under_way {
            if matches!(call, UnderWay::Waited { waits, .. } if waits.is_closed()) {
                *call = UnderWay::GivenUp { until };
                gone.push(*number);
            }
        }
        for number in gone {
            // One that does not take it is overdue soon.
            let _ = self.tree.input(&line_of(&WorkerRequest::GiveUp { number })).await;
        }
    }

    /// When the first of those that were given up has to be over.
    fn overdue(&self) -> Instant {
        let given_up = self.under_way.values().filter_map(|call| match call {
            UnderWay::Waited { .. } => None,
            UnderWay::GivenUp { until } => Some(*until),
        });
        given_up.min().unwrap_or_else(|| Instant::now() + SILENCE_MAX)
    }

    /// Ends the worker. Whoever still waits is told why, or asks the next one.
    async fn end(mut self) {
        let why = self.why();
        for (_, call) in std::mem::take(&mut self.under_way) {
            if let (UnderWay::Waited { waits, .. }, Some(why)) = (call, &why) {
                let _ = waits.send(Err(why.clone()));
            }
        }
        if self.exit.is_none() && !self.is_lost {
            self.tree.kill();
            // Its lock says when it is gone: whoever starts the next one waits for that.
            while !matches!(self.tree.next().await, TreeEvent::Exited(_) | TreeEvent::Lost) {}
        }
    }

    /// The reason for which the next worker would end as well.
    fn why(&self) -> Option<TreesError> {
        let words = match self.exit.and_then(|exit| exit.limit)? {
            ResourceLimit::Memory => format!(
                "looking at this directory takes more than {} MB of memory: something in it, or in its repository, is \
                 larger than it should be",
                MEMORY_BYTES_MAX >> 20
            ),
            ResourceLimit::Processes => "looking at this directory takes too many processes".to_owned(),
        };
        Some(TreesError::Refused(words))
    }
}

/// True if the server ends. Whatever is under way may be cut short anywhere, and is gone on with by the next one.
fn is_closed(shared: &Weak<Shared>) -> bool {
    shared.upgrade().is_none_or(|shared| shared.running().is_closed)
}

/// Until nobody waits for one of them any more.
async fn give_ups(under_way: &mut BTreeMap<u64, UnderWay>) {
    std::future::poll_fn(|context| {
        let mut is_one = false;
        for call in under_way.values_mut() {
            if let UnderWay::Waited { waits, .. } = call {
                is_one |= waits.poll_closed(context).is_ready();
            }
        }
        if is_one { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

impl GroundWorkers {
    fn is_untracked(&self, directory: &GroundPath) -> bool {
        self.0.directories.is_untracked(directory)
    }

    /// Has what the session's snapshots reach copied, a little later. Neither the turn that has ended nor the next one waits for
    /// it; what does not succeed, or has not begun when the server ends, is done after the next turn.
    fn copy_later(&self, of: OwnedSession, directory: GroundPath) {
        // While one copies, whatever comes is one more round for it.
        if self.0.copying().insert((of.session, directory.clone()), true).is_some() {
            return;
        }
        let workers = self.clone();
        tokio::spawn(async move {
            let key = (of.session, directory.clone());
            loop {
                tokio::time::sleep(COPY_PAUSE).await;
                if !workers.0.is_to_be_copied(&key) {
                    return;
                }
                let call = GroundCall::Copy { directory: PathForm(directory.clone()) };
                let _ = workers.call(of.clone(), call).await;
                workers.0.snapshots.grown.notify_one();
            }
        });
    }

    /// Asks what the snapshots of some sessions take in a store, after one step.
    async fn share_of(
        &self,
        store: SnapshotStoreSeen,
        sessions: Vec<SessionId>,
        step: ShareStep,
    ) -> Result<SnapshotShare, TreesError> {
        let of = OwnedSession {
            session: SessionId::from_bits(0),
            whose: store.whose,
            walled: false,
            tree_bytes_left: None,
        };
        let sessions =
            sessions.into_iter().take(SHARE_SESSIONS_MAX).map(|session| session.to_string()).collect();
        match self.call(of, GroundCall::Share { store: store.key, sessions, step }).await? {
            GroundAnswer::Share { bytes, oldest_ms } => {
                Ok(SnapshotShare { bytes, oldest: oldest_ms.map(Moment) })
            }
            _ => Err(odd()),
        }
    }
}

impl SnapshotNews {
    fn gone(&self) -> MutexGuard<'_, BTreeMap<SessionId, String>> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn full(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.full.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trees for GroundWorkers {
    fn enter(
        &self,
        of: OwnedSession,
        directory: GroundPath,
        new: NewWorktree,
    ) -> TreeReply<'_, Result<EnteredTree, TreesError>> {
        Box::pin(async move {
            entered(
                self.call(of, GroundCall::Enter { directory: PathForm(directory), new: new.into() }).await?,
            )
        })
    }

    fn remember(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        turn: Turn,
        side: Side,
        edits: Option<Vec<String>>,
    ) -> TreeReply<'_, Result<bool, TreesError>> {
        let (directory, turn, is_after) = (directory.clone(), turn.0, side == Side::After);
        Box::pin(async move {
            if self.is_untracked(&directory) {
                return Ok(false);
            }
            let full = self.0.snapshots.full().get(&of.whose).cloned();
            if let Some(why) = full.filter(|_| !is_after) {
                return Err(TreesError::Refused(why));
            }
            let call = GroundCall::Remember { directory: PathForm(directory.clone()), turn, is_after, edits };
            match self.call(of.clone(), call).await? {
                GroundAnswer::Remembered { is_tracked, gone } => {
                    if let Some(words) = gone {
                        self.0.snapshots.gone().insert(of.session, one_line(&words));
                    }
                    if is_after && is_tracked {
                        self.copy_later(of, directory);
                    }
                    Ok(is_tracked)
                }
                _ => Err(odd()),
            }
        })
    }

    fn changes(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        turn: Turn,
    ) -> TreeReply<'_, Result<Option<TreeChanges>, TreesError>> {
        let (directory, turn) = (directory.clone(), turn.0);
        Box::pin(async move {
            if self.is_untracked(&directory) {
                return Ok(None);
            }
            match self.call(of, GroundCall::Changes { directory: PathForm(directory), turn }).await? {
                GroundAnswer::Changes { changes } => Ok(changes.map(Into::into)),
                _ => Err(odd()),
            }
        })
    }

    fn preview_undo(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        turn: Turn,
    ) -> TreeReply<'_, Result<UndoPreview, TreesError>> {
        let (directory, turn) = (directory.clone(), turn.0);
        Box::pin(async move {
            if self.is_untracked(&directory) {
                return Err(TreesError::Refused(UNTRACKED.to_owned()));
            }
            match self.call(of, GroundCall::PreviewUndo { directory: PathForm(directory), turn }).await? {
                GroundAnswer::UndoPreview { preview } => Ok(preview.into()),
                _ => Err(odd()),
            }
        })
    }

    fn undo(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        turn: Turn,
        files: UndoFiles,
    ) -> TreeReply<'_, Result<UndoneTurn, TreesError>> {
        let (directory, turn, files) = (PathForm(directory.clone()), turn.0, files.into());
        Box::pin(async move { undone(self.call(of, GroundCall::Undo { directory, turn, files }).await?) })
    }

    fn redo(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        turn: Turn,
    ) -> TreeReply<'_, Result<UndoneTurn, TreesError>> {
        let (directory, turn) = (PathForm(directory.clone()), turn.0);
        Box::pin(async move { undone(self.call(of, GroundCall::Redo { directory, turn }).await?) })
    }

    fn fork(
        &self,
        of: OwnedSession,
        directory: GroundPath,
        new: NewWorktree,
        origin: SessionId,
        turn: Turn,
    ) -> TreeReply<'_, Result<EnteredTree, TreesError>> {
        let (directory, new) = (PathForm(directory), new.into());
        let (origin, turn) = (origin.to_string(), turn.0);
        Box::pin(
            async move { entered(self.call(of, GroundCall::Fork { directory, new, origin, turn }).await?) },
        )
    }

    fn names(&self) -> TreeReply<'_, Result<Vec<(SessionId, String)>, TreesError>> {
        Box::pin(async move { worktree_names(&self.0.setup.data) })
    }

    fn seen(&self) -> TreeReply<'_, Result<SeenTrees, TreesError>> {
        Box::pin(async move { worktrees_seen(&self.0.setup.data) })
    }

    fn look(&self, of: OwnedSession, name: &str) -> TreeReply<'_, Result<Option<TreeSeen>, TreesError>> {
        let name = name.to_owned();
        Box::pin(async move {
            let session = of.session;
            match self.call(of, GroundCall::Look { name }).await? {
                GroundAnswer::Seen { seen } => Ok(seen.map(|seen| seen.tree(session))),
                _ => Err(odd()),
            }
        })
    }

    fn removed(&self) -> TreeReply<'_, Result<Vec<RemovedTree>, TreesError>> {
        Box::pin(async move { worktrees_removed(&self.0.setup.data) })
    }

    fn remove(&self, of: OwnedSession, name: &str) -> TreeReply<'_, Result<RemovedTree, TreesError>> {
        let name = name.to_owned();
        Box::pin(async move {
            match self.call(of, GroundCall::Remove { name }).await? {
                GroundAnswer::Removed { removed } => removed.tree().ok_or_else(odd),
                _ => Err(odd()),
            }
        })
    }

    fn restore(
        &self,
        of: OwnedSession,
        removed: RemovedTree,
    ) -> TreeReply<'_, Result<EnteredTree, TreesError>> {
        let removed = removed.into();
        Box::pin(async move { entered(self.call(of, GroundCall::Restore { removed }).await?) })
    }

    fn merge(
        &self,
        of: OwnedSession,
        name: &str,
        how: MergeHow,
        dry_run: bool,
    ) -> TreeReply<'_, Result<MergedTree, TreesError>> {
        let (name, is_apply) = (name.to_owned(), how == MergeHow::Apply);
        Box::pin(async move { merged(self.call(of, GroundCall::Merge { name, is_apply, dry_run }).await?) })
    }

    fn sweep(&self, age: Duration) -> TreeReply<'_, Result<usize, TreesError>> {
        Box::pin(async move {
            let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
            let mut swept = 0;
            for whose in self.0.setup.wall.os_users() {
                // Of no session: it sees none's directories but the repositories that lie open.
                let of = OwnedSession {
                    session: SessionId::from_bits(0),
                    whose,
                    walled: false,
                    tree_bytes_left: None,
                };
                match self.call(of, GroundCall::Sweep { age_ms }).await? {
                    GroundAnswer::Swept { count } => swept += count,
                    _ => return Err(odd()),
                }
            }
            Ok(swept)
        })
    }

    fn take_over(&self, of: OwnedSession, directory: &GroundPath) -> TreeReply<'_, Result<bool, TreesError>> {
        let directory = directory.clone();
        Box::pin(async move {
            if self.is_untracked(&directory) || self.0.records.was_taken_over(of.session, &directory) {
                return Ok(false);
            }
            match self.call(of, GroundCall::TakeOver { directory: PathForm(directory) }).await? {
                GroundAnswer::Copied => Ok(true),
                _ => Err(odd()),
            }
        })
    }

    fn gone(&self, session: SessionId) -> Option<String> {
        self.0.snapshots.gone().remove(&session)
    }

    fn grown(&self) -> TreeReply<'_, ()> {
        Box::pin(self.0.snapshots.grown.notified())
    }

    fn snapshot_stores(&self) -> TreeReply<'_, Result<Vec<SnapshotStoreSeen>, TreesError>> {
        Box::pin(async move {
            let wall = &self.0.setup.wall;
            snapshot_stores(&self.0.setup.data, |place| {
                wall.whose_user(place.file_name().unwrap_or_default())
            })
        })
    }

    fn snapshot_share(
        &self,
        store: SnapshotStoreSeen,
        sessions: Vec<SessionId>,
    ) -> TreeReply<'_, Result<SnapshotShare, TreesError>> {
        Box::pin(self.share_of(store, sessions, ShareStep::Look))
    }

    fn let_snapshots_go(
        &self,
        store: SnapshotStoreSeen,
        sessions: Vec<SessionId>,
    ) -> TreeReply<'_, Result<SnapshotShare, TreesError>> {
        Box::pin(self.share_of(store, sessions, ShareStep::LetGo))
    }

    fn compact_snapshots(&self, store: SnapshotStoreSeen) -> TreeReply<'_, Result<(), TreesError>> {
        Box::pin(async move { self.share_of(store, Vec::new(), ShareStep::Compact).await.map(drop) })
    }

    fn set_full(&self, full: BTreeMap<String, String>) {
        *self.0.snapshots.full() = full;
    }

    fn files(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        count_max: usize,
    ) -> TreeReply<'_, Result<TreeFiles, TreesError>> {
        let directory = PathForm(directory.clone());
        Box::pin(async move {
            match self.call(of, GroundCall::Files { directory, count_max }).await? {
                GroundAnswer::Files { paths, is_cut } => Ok(TreeFiles { paths, is_cut }),
                _ => Err(odd()),
            }
        })
    }

    fn progress(&self, session: SessionId) -> watch::Receiver<Option<WorkProgress>> {
        self.0.progress_of(session).subscribe()
    }

    fn workers(&self) -> usize {
        self.0.running().by_key.len()
    }

    fn close(&self) -> TreeReply<'_, ()> {
        Box::pin(async move {
            self.0.close().join_all().await;
        })
    }
}

fn merged(answer: GroundAnswer) -> Result<MergedTree, TreesError> {
    match answer {
        GroundAnswer::Merged { merged } => Ok(merged.into()),
        _ => Err(odd()),
    }
}

fn undone(answer: GroundAnswer) -> Result<UndoneTurn, TreesError> {
    match answer {
        GroundAnswer::Undone { files, moves } => {
            Ok(UndoneTurn { files, moves: moves.into_iter().map(Into::into).collect() })
        }
        _ => Err(odd()),
    }
}

fn entered(answer: GroundAnswer) -> Result<EnteredTree, TreesError> {
    match answer {
        GroundAnswer::Entered { name, directory, branch, notices } => {
            let notices = notices.iter().map(|words| one_line(words)).collect();
            Ok(EnteredTree { name, directory: directory.0, branch, notices })
        }
        _ => Err(odd()),
    }
}

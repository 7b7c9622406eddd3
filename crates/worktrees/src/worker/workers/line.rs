//! The line to one worker: its start behind its wall, the calls that are under way in it, and its end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use engine::{TreesError, WorkProgress};
use kernel::{GroundPath, SessionId, TreeName};
use processes::wall::{GroundParts, GroundPlaces, SessionWall, WalledSession};
use processes::{ProcessError, ProcessTree, ResourceLimit, TreeEvent, TreeExit, TreePlan};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::Instant;

use super::super::protocol::{
    ANSWER_BYTES_MAX, GroundAnswer, REQUEST_BYTES_MAX, WorkerPlaces, WorkerReply, WorkerRequest,
};
use super::{Calling, SILENCE_MAX, Shared, WorkerGrounds, WorkerKey, WorkerSetup};

/// The time for which a worker that has nothing to do is kept for the next call.
const REST: Duration = Duration::from_secs(10);
/// The longest that a worker may take to say that it has given a call up. Then it is ended.
const GIVE_UP_WAIT: Duration = Duration::from_secs(5);
/// The longest that the tree of the session's last worker may take to be gone.
const BUSY_WAIT: Duration = Duration::from_secs(10);
const BUSY_PAUSE: Duration = Duration::from_millis(20);
/// The memory of a worker with everything that it has started.
const MEMORY_BYTES_MAX: u64 = 1 << 30;
/// Processes of a worker: a few gits, each with its helpers.
const PROCESSES_MAX: u32 = 64;
/// Open files of each of them, as an agent has. The server itself may have as many as the system allows.
const FILES_MAX: u64 = 65_536;
/// The variables of the server that a worker gets. Its own ignore file counts where it works as the server's user.
const ENVIRONMENT: &[&str] = &["PATH", "HOME", "XDG_CONFIG_HOME"];

/// Starts a worker when there is a place for it, hands it calls, and ends it when it has rested or nobody can ask it any more.
pub(super) async fn run_worker(
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
        files_max: Some(FILES_MAX),
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
    Ok((WorkerPlaces { data, own, worktrees, store_bytes_max: setup.store_bytes_max }, wall))
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
            TreeEvent::Errors(_) | TreeEvent::Counted(_) | TreeEvent::Listed(_) => true,
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
            // It counts that itself.
            ResourceLimit::Written => "looking at this directory writes too much".to_owned(),
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

//! The daemon's end of a supervisor: starts one, beats, hands words over, hears what comes back.
//!
//! The beating is done by a task of its own, so that a daemon that is busy with something else is not taken for dead.
//! Dropping a `ProcessTree` closes the line, and the supervisor ends everything.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kernel::{GroundPath, TreeName};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStdout};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::MissedTickBehavior;

use crate::error::ProcessError;
use crate::passing::Parcel;
use crate::process_list::ProcessList;
use crate::spare::{Refill, SpareSupervisor, SupervisorProcess};
use crate::supervisor::frame::{
    Counted, Exited, FRAME_BYTES_MAX, FrameKind, FrameReader, Listed, NotAFrame, PIECE_BYTES_MAX,
    RefusalKind, Refused, ResourceLimit, ResourceLimits, Start, Started, put, put_json,
};
use crate::wall::{Separation, SessionWall};

/// The time between two signs of life of ours.
const BEAT: Duration = Duration::from_millis(500);
/// The time for which a supervisor waits for that. Ten beats: a daemon that misses all of them is not merely busy.
pub const SILENCE_MS_MAX: u64 = 5_000;
/// The longest that a supervisor may take to start an agent before we take it for lost.
const START_WAIT: Duration = Duration::from_secs(10);
/// The longest that a supervisor may take to take words. It takes them at once, whatever the agent does.
pub const INPUT_WAIT: Duration = Duration::from_secs(10);
/// Frames that wait to be written, orders and words apart: an order is never lost because words fill the line. Words are cut into at most 128 of them, and the writer takes them as they come.
const FRAMES_WAITING_MAX: usize = 16;
/// The bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;

/// The program that is to be started, and under which name.
#[derive(Debug, Clone)]
pub struct TreePlan {
    /// The program that has `supervise`: our own.
    pub supervisor: PathBuf,
    /// The directory of the locks; it has to exist.
    pub locks: PathBuf,
    /// The tree's name.
    pub tree: TreeName,
    /// The agent's program and its arguments.
    pub argv: Vec<String>,
    /// The agent's whole environment. Nothing of ours is added but the tree's mark.
    pub env: Vec<(String, String)>,
    /// Where the agent runs.
    pub directory: GroundPath,
    /// The longest that we may be silent before the supervisor ends everything.
    pub silence_ms_max: u64,
    /// True if the tree gets a control group of its own, where one can be made. Without, it is found by other ways.
    pub group: bool,
    /// The most open files of each of the agent's processes, if not ours.
    pub files_max: Option<u64>,
    /// True if the agent finds its input closed from the beginning, because it would wait for the end of it.
    pub closes_input: bool,
    /// The most memory of the whole tree, if bounded. The kernel keeps it where the tree has a control group that can; else
    /// the supervisor measures, four times a second.
    pub memory_bytes_max: Option<u64>,
    /// The most processes of the whole tree, if bounded. The supervisor counts them once a second.
    pub processes_max: Option<u32>,
    /// The most bytes that the whole tree may write, to files and to each other, if bounded. The supervisor looks ten times a second.
    pub written_bytes_max: Option<u64>,
    /// The wall around the agent.
    pub wall: SessionWall,
    /// The spare that becomes its supervisor, if one waits.
    pub spare: Option<SpareSupervisor>,
}

impl TreePlan {
    /// A plan with the usual limits and an empty environment.
    pub fn new(
        supervisor: PathBuf,
        locks: PathBuf,
        tree: TreeName,
        argv: Vec<String>,
        directory: impl Into<GroundPath>,
    ) -> Self {
        Self {
            supervisor,
            locks,
            tree,
            argv,
            env: Vec::new(),
            directory: directory.into(),
            silence_ms_max: SILENCE_MS_MAX,
            group: true,
            files_max: None,
            closes_input: false,
            memory_bytes_max: None,
            processes_max: None,
            written_bytes_max: None,
            wall: SessionWall::default(),
            spare: None,
        }
    }

    fn start(&self) -> Start {
        Start {
            tree: self.tree.to_string(),
            locks: self.locks.clone(),
            argv: self.argv.clone(),
            env: self.env.clone(),
            directory: self.directory.for_launch().into(),
            silence_ms_max: self.silence_ms_max,
            group: self.group,
            files_max: self.files_max,
            closes_input: self.closes_input,
            limits: ResourceLimits {
                memory_bytes_max: self.memory_bytes_max,
                processes_max: self.processes_max,
                written_bytes_max: self.written_bytes_max,
            },
            wall: self.wall.clone(),
        }
    }
}

/// Something that comes from an agent's processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeEvent {
    /// Something it printed.
    Output(Vec<u8>),
    /// Something it complained about.
    Errors(Vec<u8>),
    /// It has ended, and so has everything it had started.
    Exited(TreeExit),
    /// The processes that the tree has now.
    Counted(ProcessCount),
    /// The processes that the tree has now beside the agent's own.
    Listed(ProcessList),
    /// The supervisor is gone without a word. What became of the tree is unknown until somebody ends it (`end_tree`).
    Lost,
}

/// The processes of a tree at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessCount {
    /// Their number.
    pub processes: u32,
    /// When the newest of them was started, in the kernel's ticks: a later count with something newer has something
    /// that was not there, even if something else has gone meanwhile.
    pub newest: u64,
}

/// The end of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeExit {
    /// The agent's exit code, if it had one.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// The number of processes that had to be killed.
    pub killed: u32,
    /// True if everything was seen gone.
    pub gone: bool,
    /// The limit that the tree was ended for, if it was.
    pub limit: Option<ResourceLimit>,
}

impl TreeExit {
    /// In words, for people.
    pub fn words(&self) -> String {
        match (self.code, self.signal) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "an unknown end".to_owned(),
        }
    }
}

/// One supervised process tree.
#[derive(Debug)]
pub struct ProcessTree {
    pid: i32,
    separation: Option<Separation>,
    orders: mpsc::Sender<Vec<u8>>,
    words: mpsc::Sender<Vec<u8>>,
    beats: AbortHandle,
    from: ChildStdout,
    frames: FrameReader,
    supervisor: Child,
    /// True once the program was given words.
    has_words: AtomicBool,
    /// Has the next spare made: once the program has answered, or is over.
    refill: Option<Refill>,
}

impl ProcessTree {
    /// Takes the spare supervisor or starts one, and returns when that has started the agent.
    pub async fn start(plan: &TreePlan) -> Result<Self, ProcessError> {
        let mut first = Vec::new();
        put_json(&mut first, FrameKind::Start, &plan.start());
        if first.len() > FRAME_BYTES_MAX {
            return Err(ProcessError::refused("the agent's arguments and environment are too long"));
        }
        let refill = plan.spare.clone().map(Refill);
        let process = match plan.spare.as_ref().and_then(SpareSupervisor::take) {
            Some(spare) => spare,
            None => SupervisorProcess::start(&plan.supervisor)?,
        };
        let started = Self::launch(process, &first, plan);
        let mut tree = tokio::time::timeout(START_WAIT, started)
            .await
            .map_err(|_| ProcessError::failed("the supervisor did not start"))??;
        tree.refill = refill;
        Ok(tree)
    }

    /// Tells a supervisor what to start. Dropped before it is done, it closes the line, and the supervisor ends everything.
    async fn launch(process: SupervisorProcess, first: &[u8], plan: &TreePlan) -> Result<Self, ProcessError> {
        let SupervisorProcess { to, from, child: supervisor } = process;
        send(&to, first, &plan.wall.descriptors()).await.map_err(|why| {
            ProcessError::failed(format!("the supervisor went away before it started anything: {why}"))
        })?;
        let (orders, ordered) = mpsc::channel(FRAMES_WAITING_MAX);
        let (words, waiting) = mpsc::channel(FRAMES_WAITING_MAX);
        let beats = tokio::spawn(write(to, ordered, waiting)).abort_handle();
        let mut tree = Self {
            pid: 0,
            separation: None,
            orders,
            words,
            beats,
            from,
            frames: FrameReader::default(),
            supervisor,
            has_words: AtomicBool::new(false),
            refill: None,
        };
        tree.wait_for_start(&plan.directory).await?;
        Ok(tree)
    }

    /// The agent's process, or the first process of its PID namespace if it has one.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The namespaces that the agent has, as its supervisor says.
    pub(crate) fn separation(&self) -> Option<Separation> {
        self.separation
    }

    /// The supervisor's process, while it is there.
    pub(crate) fn supervisor(&self) -> Option<i32> {
        self.supervisor.id()?.try_into().ok()
    }

    /// The next event. Cancel-safe. `Exited` or `Lost` is the last.
    pub async fn next(&mut self) -> TreeEvent {
        loop {
            match self.frame().await {
                Some((FrameKind::Output, bytes)) => {
                    if self.has_words.load(Ordering::Relaxed) {
                        self.refill = None;
                    }
                    return TreeEvent::Output(bytes);
                }
                Some((FrameKind::Errors, bytes)) => return TreeEvent::Errors(bytes),
                Some((FrameKind::Exited, body)) => {
                    let Ok(exited) = serde_json::from_slice::<Exited>(&body) else { return TreeEvent::Lost };
                    let Exited { code, signal, killed, gone, limit } = exited;
                    return TreeEvent::Exited(TreeExit { code, signal, killed, gone, limit });
                }
                Some((FrameKind::Counted, body)) => {
                    let Ok(counted) = serde_json::from_slice::<Counted>(&body) else {
                        return TreeEvent::Lost;
                    };
                    let Counted { processes, newest } = counted;
                    return TreeEvent::Counted(ProcessCount { processes, newest });
                }
                Some((FrameKind::Listed, body)) => {
                    let Ok(listed) = serde_json::from_slice::<Listed>(&body) else { return TreeEvent::Lost };
                    return TreeEvent::Listed(ProcessList::from(listed));
                }
                Some(_) => {}
                None => return TreeEvent::Lost,
            }
        }
    }

    /// Words for the agent. Returns when they are on their way.
    pub async fn input(&self, bytes: &[u8]) -> Result<(), ProcessError> {
        let gone = |_| ProcessError::failed("the agent's supervisor does not take words");
        self.has_words.store(true, Ordering::Relaxed);
        for piece in bytes.chunks(PIECE_BYTES_MAX) {
            self.words.send_timeout(frame_of(FrameKind::Input, piece), INPUT_WAIT).await.map_err(gone)?;
        }
        Ok(())
    }

    /// No more words, after those that were handed over.
    pub async fn end_input(&self) -> Result<(), ProcessError> {
        let gone = |_| ProcessError::failed("the agent's supervisor does not take words");
        self.words.send_timeout(frame_of(FrameKind::CloseInput, &[]), INPUT_WAIT).await.map_err(gone)
    }

    /// No more words, whatever still waits.
    pub fn close_input(&self) {
        self.order(FrameKind::CloseInput);
    }

    /// Asks how many processes there are; `Counted` answers. Those of the first time are the agent's own.
    pub fn count(&self) {
        self.order(FrameKind::Count);
    }

    /// Asks which processes there are beside the agent's own; `Listed` answers.
    pub fn list(&self) {
        self.order(FrameKind::List);
    }

    /// Asks the agent to stop.
    pub fn interrupt(&self) {
        self.order(FrameKind::Interrupt);
    }

    /// Ends the whole tree; `Exited` says when that is done.
    pub fn kill(&self) {
        self.order(FrameKind::Kill);
    }

    /// A supervisor that has stopped taking orders is found out by whoever waits for `Exited`.
    fn order(&self, kind: FrameKind) {
        let _ = self.orders.try_send(frame_of(kind, &[]));
    }

    async fn wait_for_start(&mut self, directory: &GroundPath) -> Result<(), ProcessError> {
        match self.frame().await {
            Some((FrameKind::Started, body)) => {
                let started: Started = serde_json::from_slice(&body).map_err(ProcessError::failed)?;
                (self.pid, self.separation) = (started.pid, started.separation);
                // Refused before the agent has heard a word; dropping the line ends it.
                started.directory.map_or(Ok(()), |there| be_in(directory, Path::new(&there)))
            }
            Some((FrameKind::Refused, body)) => {
                let refused: Refused = serde_json::from_slice(&body).map_err(ProcessError::failed)?;
                Err(match refused.why {
                    RefusalKind::Locked => ProcessError::Busy(refused.detail),
                    RefusalKind::Wrong => ProcessError::Refused(refused.detail),
                    RefusalKind::Failed => ProcessError::Failed(refused.detail),
                })
            }
            _ => Err(ProcessError::failed("the supervisor went away before it started anything")),
        }
    }

    /// The next frame, or nothing when there will be none.
    async fn frame(&mut self) -> Option<(FrameKind, Vec<u8>)> {
        loop {
            match self.frames.next() {
                Ok(Some(frame)) => return Some(frame),
                Ok(None) => {}
                Err(NotAFrame) => return None,
            }
            let bytes = self.frames.bytes();
            bytes.reserve(READ_BYTES);
            match self.from.read_buf(bytes).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        // It may be in the middle of a write that a stopped supervisor never takes; the line has to close all the same.
        self.beats.abort();
    }
}

/// Makes sure that the agent is where it should be. What was a link to a directory a moment ago may lead elsewhere now.
fn be_in(directory: &GroundPath, there: &Path) -> Result<(), ProcessError> {
    let directory = Path::new(directory.for_holding());
    let should = directory.canonicalize().unwrap_or_else(|_| directory.to_path_buf());
    if should == there {
        return Ok(());
    }
    let (it, we) = (there.display(), should.display());
    Err(ProcessError::refused(format!(
        "the agent was started in {it}, but this session's directory is {we}; nothing was said to it"
    )))
}

fn frame_of(kind: FrameKind, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len() + 8);
    put(&mut bytes, kind, body);
    bytes
}

/// Sends the first frame, and what is held for the wall beside it.
async fn send(to: &UnixStream, bytes: &[u8], held: &[Arc<OwnedFd>]) -> std::io::Result<()> {
    let held: Vec<BorrowedFd<'_>> = held.iter().map(|held| held.as_fd()).collect();
    let mut parcel = Parcel::new(bytes, &held);
    while !parcel.is_sent() {
        to.writable().await?;
        match to.try_io(Interest::WRITABLE, || parcel.send_some(to)) {
            Err(why) if why.kind() == std::io::ErrorKind::WouldBlock => {}
            sent => sent?,
        }
    }
    Ok(())
}

/// Writes orders as they come, and a beat when there are none. Ends, and closes the line, when nobody gives orders any more.
async fn write(mut to: UnixStream, mut orders: mpsc::Receiver<Vec<u8>>, mut words: mpsc::Receiver<Vec<u8>>) {
    let beat = frame_of(FrameKind::Beat, &[]);
    let mut ticks = tokio::time::interval(BEAT);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let written = tokio::select! {
            biased;
            // An order does not wait behind words: a long message must not keep a kill from being heard.
            order = orders.recv() => match order {
                Some(order) => to.write_all(&order).await,
                None => return,
            },
            Some(word) = words.recv() => to.write_all(&word).await,
            _ = ticks.tick() => to.write_all(&beat).await,
        };
        if written.is_err() {
            return;
        }
    }
}

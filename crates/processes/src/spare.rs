//! The spare: a supervisor that was started before anybody needs it, so that a start costs neither the loading of a program nor, where
//! the wall has them, the making of namespaces.
//!
//! There is at most one for each server. It knows of no session, holds no lock, nothing of what is hidden and nothing of anybody's, and
//! becomes the supervisor of the first tree that is started; the next one is made when that tree's program has answered for the
//! first time, so that it is in nobody's way. It ends when its line closes: with the server, however that ends.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::Notify;

use crate::error::ProcessError;
use crate::supervisor::frame::{FrameKind, put};
use crate::wall::WallKind;

/// The longest that a spare may take to go when its line is closed, before we go on without having seen it.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// A supervisor's process with our ends of its lines, before it is told what to start.
#[derive(Debug)]
pub(crate) struct SupervisorProcess {
    pub(crate) to: UnixStream,
    pub(crate) from: ChildStdout,
    /// Kept so that tokio reaps it. It is never killed from here: it has to outlive us to do its work.
    pub(crate) child: Child,
}

impl SupervisorProcess {
    /// Starts one. Nothing is inherited but its lines, so the server need not be copied for it.
    pub(crate) fn start(program: &Path) -> Result<Self, ProcessError> {
        Self::start_with(program, &[])
    }

    /// Starts one, with these few bytes on its line.
    fn start_with(program: &Path, told: &[u8]) -> Result<Self, ProcessError> {
        let failed =
            |why: std::io::Error| ProcessError::failed(format!("the supervisor did not start: {why}"));
        let (ours, its) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .map_err(|why| failed(why.into()))?;
        let mut ours = std::os::unix::net::UnixStream::from(ours);
        ours.set_nonblocking(true).map_err(failed)?;
        ours.write_all(told).map_err(failed)?;
        let to = UnixStream::from_std(ours).map_err(failed)?;
        let mut command = Command::new(program);
        command.arg("supervise").env_clear().current_dir("/");
        command.stdin(Stdio::from(its)).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(failed)?;
        let from = child.stdout.take().ok_or_else(|| failed(std::io::ErrorKind::BrokenPipe.into()))?;
        Ok(Self { to, from, child })
    }

    /// True if it has not ended.
    fn is_there(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

/// The spare of a server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SpareSupervisor(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    program: PathBuf,
    prepares: bool,
    state: Mutex<SpareState>,
    /// Told when one that was coming is there, or cannot be made.
    is_made: Notify,
}

#[derive(Debug)]
enum SpareState {
    /// There is none.
    None,
    /// One is being made.
    Coming,
    /// One waits.
    Ready(Box<SupervisorProcess>),
    /// The server ends: no other one is made.
    Closed,
}

impl SpareSupervisor {
    /// Of a program that has `supervise`, for walls of that kind. None is started before `fill`.
    pub fn new(program: impl Into<PathBuf>, kind: WallKind) -> Self {
        let prepares = match kind {
            WallKind::Auto | WallKind::Mounts => true,
            WallKind::Landlock | WallKind::Off => false,
        };
        let (program, state) = (program.into(), Mutex::new(SpareState::None));
        Self(Arc::new(Shared { program, prepares, state, is_made: Notify::new() }))
    }

    /// Has one made, if there is none. Returns at once. One that cannot be made is not missed: starts take longer then.
    pub fn fill(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let mut state = self.state();
        if let SpareState::None = *state {
            *state = SpareState::Coming;
            let spare = self.clone();
            // Starting a process takes some hundred microseconds in which others want to be heard.
            drop(runtime.spawn_blocking(move || spare.make()));
        }
    }

    /// Waits for the one that is being made, if one is. Answers whether one waits.
    pub async fn is_ready(&self) -> bool {
        loop {
            let made = self.0.is_made.notified();
            match &*self.state() {
                SpareState::Ready(_) => return true,
                SpareState::None | SpareState::Closed => return false,
                SpareState::Coming => {}
            }
            made.await;
        }
    }

    /// The process of the spare, while it waits.
    pub fn pid(&self) -> Option<u32> {
        match &*self.state() {
            SpareState::Ready(process) => process.child.id(),
            SpareState::None | SpareState::Coming | SpareState::Closed => None,
        }
    }

    /// Ends it, and returns when it has gone. No other one is made.
    pub async fn close(&self) {
        let state = std::mem::replace(&mut *self.state(), SpareState::Closed);
        if let SpareState::Ready(process) = state {
            let SupervisorProcess { to, from: _, mut child } = *process;
            drop(to);
            let _ = tokio::time::timeout(CLOSE_WAIT, child.wait()).await;
        }
    }

    /// Takes the spare, if one waits that is still there.
    pub(crate) fn take(&self) -> Option<SupervisorProcess> {
        let mut state = self.state();
        if !matches!(*state, SpareState::Ready(_)) {
            return None;
        }
        match std::mem::replace(&mut *state, SpareState::None) {
            SpareState::Ready(mut process) => process.is_there().then_some(*process),
            SpareState::None | SpareState::Coming | SpareState::Closed => None,
        }
    }

    fn make(&self) {
        let mut told = Vec::new();
        if self.0.prepares {
            put(&mut told, FrameKind::Prepare, &[]);
        }
        let made = SupervisorProcess::start_with(&self.0.program, &told);
        let mut state = self.state();
        // One that comes too late goes with its line.
        if let SpareState::Coming = *state {
            *state = made.map_or(SpareState::None, |process| SpareState::Ready(Box::new(process)));
        }
        drop(state);
        self.0.is_made.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, SpareState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has the next spare made when it is dropped.
#[derive(Debug)]
pub(crate) struct Refill(pub(crate) SpareSupervisor);

impl Drop for Refill {
    fn drop(&mut self) {
        self.0.fill();
    }
}

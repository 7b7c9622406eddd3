//! The small process between the daemon and one running agent: as long as it lives it can end the whole tree, and when
//! the daemon goes away, it does.
//!
//! `homing supervise` runs this before there is any runtime: one thread, one `poll`, a few buffers. It waits for a `Start`, and may
//! be told before to make ready what every start needs (`prepared`). Then it takes the tree's lock, starts the agent, carries
//! bytes to and fro, and ends the tree when the agent's own process ends, when the tree takes more than it may, when the
//! daemon says so, closes the line or is silent for too long. It answers `Exited` when it has seen everything gone and freed
//! the lock. It never reads what the agent says. Behind a wall with a PID namespace its child is the first process in
//! there (`init`), which is no part of what the agent has started.

pub(crate) mod frame;
mod init;
mod inside;
mod prepared;
mod relay;
mod spawn;
mod watch;
mod written;

use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::DumpableBehavior;

use crate::control_group::ControlGroup;
use crate::lock::{LockHolder, TreeLock};
use crate::passing;
use crate::reaper::{Process, ProcessReaper, ReapOutcome, TreeMark};
use crate::wall::PreparedWall;
use frame::{Exited, FrameKind, FrameReader, NotAFrame, RefusalKind, Refused, Start, Started, put_json};
use init::AgentEnd;
use prepared::{Preparation, PreparedFirst};
use relay::{EndReason, Relay};
use spawn::Spawned;
use watch::LimitWatch;

/// The longest that a tree may take to end after its processes were killed. Then the daemon hears that it has not, and
/// we go on.
const KILL_WAIT: Duration = Duration::from_millis(1_500);
/// The pause before we try again to end what could not be ended, for as long as it takes: the lock says that it is not
/// over.
const STUBBORN_PAUSE: Duration = Duration::from_secs(1);

/// `homing supervise`. Call it before anything that starts a thread.
pub fn supervise() -> ExitCode {
    match Supervisor::begin() {
        Ok(Some(supervisor)) => supervisor.run(),
        // The daemon has heard why, or is not there.
        Ok(None) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("supervisor: {why}");
            ExitCode::FAILURE
        }
    }
}

/// The parts of a start that are no words: what was sent along with it, and what was prepared before.
struct StartParts {
    sent: Vec<OwnedFd>,
    prepared: Option<PreparedFirst>,
}

struct Supervisor {
    lock: TreeLock,
    reaper: ProcessReaper,
    relay: Relay,
    watch: LimitWatch,
}

impl Supervisor {
    fn begin() -> io::Result<Option<Self>> {
        // Out of the daemon's terminal: its Ctrl-C is not ours. Fails if we lead a group already, which is as good.
        let _ = rustix::process::setsid();
        spawn::be_deaf();
        // Nobody of our own user looks into us, or at what we hold open.
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        let mut control = FrameReader::default();
        let (mut sent, mut preparation) = (Vec::new(), Preparation::default());
        let Some(start) = read_start(&mut control, &mut sent, &mut preparation)? else { return Ok(None) };
        if daemon_is_gone()? {
            return Ok(None);
        }
        match Self::launch(&start, StartParts { sent, prepared: preparation.take() }, control) {
            Ok(supervisor) => Ok(Some(supervisor)),
            Err(refused) => {
                let mut out = Vec::new();
                put_json(&mut out, FrameKind::Refused, &refused);
                relay::write_all(&out)?;
                Ok(None)
            }
        }
    }

    fn launch(start: &Start, parts: StartParts, control: FrameReader) -> Result<Self, Refused> {
        let mark = TreeMark::new(&start.tree, &start.locks);
        let path = start.locks.join(format!("{}.lock", start.tree));
        let mut lock = match TreeLock::try_take(&path) {
            Ok(Some(lock)) => lock,
            Ok(None) => {
                return Err(refused(RefusalKind::Locked, format!("{} is already running", start.tree)));
            }
            Err(why) => return Err(refused(RefusalKind::Failed, format!("{}: {why}", path.display()))),
        };
        let group = start.group.then(|| ControlGroup::make(&mark.group_name())).flatten();
        let limits = group.as_ref().map_or(start.limits, |group| group.keep_within(start.limits));
        let launched = Self::spawn(start, parts, &mark, group.as_ref(), &mut lock).and_then(
            |(mut child, agent, holder)| {
                let separation = Some(child.separation);
                let started = Started { pid: agent.pid, directory: child.directory.take(), separation };
                let first = child.end.is_some().then_some(agent);
                let relay = Relay::new(child, control, start);
                let mut relay = relay.map_err(|why| refused(RefusalKind::Failed, why.to_string()))?;
                relay.tell(FrameKind::Started, &started);
                Ok((relay, first, LimitWatch::new(limits, holder)))
            },
        );
        let mut reaper = ProcessReaper::from_above(mark, group);
        match launched {
            Ok((relay, first, watch)) => {
                reaper.first = first;
                Ok(Self { lock, reaper, relay, watch })
            }
            Err(refused) => {
                reaper.until_gone(Instant::now() + KILL_WAIT);
                free(&mut Some(lock));
                Err(refused)
            }
        }
    }

    fn spawn(
        start: &Start,
        parts: StartParts,
        mark: &TreeMark,
        group: Option<&ControlGroup>,
        lock: &mut TreeLock,
    ) -> Result<(Spawned, Process, LockHolder), Refused> {
        let failed = |why: io::Error| refused(RefusalKind::Failed, why.to_string());
        let me = Process::now(process_id(std::process::id()))
            .ok_or_else(|| failed(io::Error::other("no /proc")))?;
        let group_path = group.map(|group| group.path().to_path_buf());
        let mut holder = LockHolder { pid: me.pid, started: me.started, group: group_path, seen: Vec::new() };
        lock.sign(&mut holder).map_err(failed)?;
        if !start.directory.is_dir() {
            return Err(refused(
                RefusalKind::Wrong,
                format!("{} is not a directory", start.directory.display()),
            ));
        }
        let StartParts { sent, prepared } = parts;
        let wall = PreparedWall::new(&start.wall, sent)
            .map_err(|why| refused(RefusalKind::Failed, why.to_string()))?;
        let child = spawn::spawn(start, mark, group, wall, prepared).map_err(|why| {
            let wrong =
                [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied, io::ErrorKind::InvalidInput];
            let kind = if wrong.contains(&why.kind()) { RefusalKind::Wrong } else { RefusalKind::Failed };
            refused(kind, format!("{}: {why}", start.argv.first().map_or("", String::as_str)))
        })?;
        let pid = child.pid.as_raw_nonzero().get();
        // It cannot have been reaped yet, so the number is still its own.
        let agent =
            Process::now(pid).ok_or_else(|| failed(io::Error::other("the agent has no /proc entry")))?;
        Ok((child, agent, holder))
    }

    fn run(mut self) -> ExitCode {
        let end = self.relay.until_the_end(&mut self.reaper, &mut self.watch, &mut self.lock);
        // Asked while the group is there.
        let limit = if let EndReason::Over(limit) = end { Some(limit) } else { self.reaper.exceeded() };
        let mut outcome = self.reaper.until_gone(Instant::now() + KILL_WAIT);
        let mut lock = Some(self.lock);
        if outcome.gone {
            free(&mut lock);
        }
        if end != EndReason::Alone {
            let ReapOutcome { killed, gone } = outcome;
            let AgentEnd { code, signal } = self.relay.agent_end(&self.reaper).unwrap_or_default();
            let exited = Exited { code, signal, killed, gone, limit };
            // A daemon that went away meanwhile will end what it finds: nothing.
            let _ = self.relay.farewell(&exited);
        }
        while !outcome.gone {
            std::thread::sleep(STUBBORN_PAUSE);
            outcome = self.reaper.until_gone(Instant::now() + KILL_WAIT);
        }
        free(&mut lock);
        ExitCode::SUCCESS
    }
}

/// Waits for the start, and for what is sent along with it. Nothing if the daemon goes away before it has said what it wants; until
/// then there is nothing here that could outlive it.
fn read_start(
    control: &mut FrameReader,
    sent: &mut Vec<OwnedFd>,
    preparation: &mut Preparation,
) -> io::Result<Option<Start>> {
    let stdin = io::stdin();
    loop {
        match control.next().map_err(|NotAFrame| io::Error::from(io::ErrorKind::InvalidData))? {
            Some((FrameKind::Start, body)) => return Ok(Some(serde_json::from_slice(&body)?)),
            Some((FrameKind::Prepare, _)) => preparation.begin(),
            Some(_) => return Err(io::ErrorKind::InvalidData.into()),
            None => {
                preparation.wait_for(&stdin)?;
                match passing::receive_some(&stdin, control.bytes(), sent) {
                    Ok(0) => return Ok(None),
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(why) => return Err(why.into()),
                }
            }
        }
    }
}

/// True if the line was closed behind the start: then there is nobody to start anything for.
fn daemon_is_gone() -> io::Result<bool> {
    let stdin = io::stdin();
    let mut ready = [PollFd::new(&stdin, PollFlags::empty())];
    rustix::event::poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
    Ok(ready[0].revents().contains(PollFlags::HUP))
}

fn free(lock: &mut Option<TreeLock>) {
    if let Some(lock) = lock.take() {
        // A lock file that stays is a file nobody holds; the next one takes it.
        let _ = lock.remove();
    }
}

fn refused(why: RefusalKind, detail: String) -> Refused {
    Refused { why, detail }
}

fn process_id(id: u32) -> i32 {
    i32::try_from(id).unwrap_or(i32::MAX)
}

fn timespec(duration: Duration) -> Timespec {
    Timespec::try_from(duration).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 })
}

//! Carries bytes between the daemon and the agent until one of them ends.
//!
//! The daemon's line is always read, so that a kill is never stuck behind words the agent does not take. The agent is
//! read only while the daemon reads, so a flood waits in the agent and not in our memory.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, Signal};
use serde::Serialize;

use super::frame::{
    Counted, Exited, FrameKind, FrameReader, NotAFrame, PIECE_BYTES_MAX, ResourceLimit, Start, put, put_json,
};
use super::init::AgentEnd;
use super::inside::{InsideView, OwnAlone};
use super::spawn::Spawned;
use super::timespec;
use super::watch::LimitWatch;
use crate::lock::TreeLock;
use crate::process_list;
use crate::reaper::{Process, ProcessReaper};

/// Bytes for the daemon that it has not taken. Above this we no longer read the agent.
const OUTGOING_BYTES_MAX: usize = 128 * 1024;
/// Words for the agent that it has not taken: the longest message as its driver may write it, each byte escaped, with the largest
/// images in base64. A daemon that sends more has lost its mind.
const INPUT_WAITING_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The number of naps in the longest silence. We look at the clock after each: if one took longer, we were not running.
const NAPS: u32 = 10;
/// The bytes that are read at once.
const READ_BYTES: usize = 16 * 1024;

/// Why the tree is to be ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndReason {
    /// The agent's own process has ended.
    Exited,
    /// The tree takes more than it may.
    Over(ResourceLimit),
    /// The daemon says so.
    Told,
    /// The daemon is gone, silent or out of its mind.
    Alone,
}

/// The outcome of reading once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PipeRead {
    Some,
    Nothing,
    Eof,
}

pub(super) struct Relay {
    control: FrameReader,
    outgoing: Vec<u8>,
    input: Vec<u8>,
    input_closes: bool,
    /// The daemon wants to know how many processes there are.
    wants_count: bool,
    /// The daemon wants to know which processes there are beside the agent's own.
    wants_list: bool,
    /// The agent's own processes: those that were there when they were first counted.
    own: BTreeSet<Process>,
    /// The tree's own view of its processes, if it has one.
    inside: Option<InsideView>,
    /// Our child: the agent, or the first process of its namespace, which hands signals on to it.
    child: (OwnedFd, i32),
    /// The line on which the first process says how the agent ended.
    end_line: Option<OwnedFd>,
    end: Option<AgentEnd>,
    agent_in: Option<OwnedFd>,
    agent_out: Option<OwnedFd>,
    agent_err: Option<OwnedFd>,
    silence_max: Duration,
    heard: Instant,
    /// When we last looked at the clock.
    looked: Instant,
}

impl Relay {
    pub(super) fn new(spawned: Spawned, control: FrameReader, start: &Start) -> io::Result<Self> {
        let Spawned { pid, end: end_line, inside, stdin, stdout, stderr, .. } = spawned;
        let child = (rustix::process::pidfd_open(pid, PidfdFlags::empty())?, pid.as_raw_nonzero().get());
        let (agent_in, agent_out, agent_err) = (Some(stdin), Some(stdout), Some(stderr));
        for pipe in [&agent_in, &agent_out, &agent_err, &end_line].into_iter().flatten() {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        // Each end of a pipe has its own mode: the daemon's ends stay as they are.
        rustix::io::ioctl_fionbio(io::stdin(), true)?;
        rustix::io::ioctl_fionbio(io::stdout(), true)?;
        let (outgoing, input, input_closes) = (Vec::new(), Vec::new(), start.closes_input);
        let now = Instant::now();
        Ok(Self {
            control,
            outgoing,
            input,
            input_closes,
            wants_count: false,
            wants_list: false,
            own: BTreeSet::new(),
            inside: inside.map(InsideView::new),
            child,
            end_line,
            end: None,
            agent_in,
            agent_out,
            agent_err,
            silence_max: Duration::from_millis(start.silence_ms_max),
            heard: now,
            looked: now,
        })
    }

    pub(super) fn tell(&mut self, kind: FrameKind, body: &impl Serialize) {
        put_json(&mut self.outgoing, kind, body);
    }

    /// Carries bytes until there is a reason to end the tree.
    pub(super) fn until_the_end(
        &mut self,
        reaper: &mut ProcessReaper,
        watch: &mut LimitWatch,
        lock: &mut TreeLock,
    ) -> EndReason {
        loop {
            match self.listen(watch.wait()) {
                Ok(None) => {}
                Ok(Some(end)) => return end,
                // Without a working line to the daemon we are alone.
                Err(_) => return EndReason::Alone,
            }
            // Before the agent gets the words that came behind the question: what it starts for them is not meant.
            self.answer_counts(reaper);
            if self.carry().is_err() {
                return EndReason::Alone;
            }
            reaper.reap();
            if self.agent_end(reaper).is_some() {
                return EndReason::Exited;
            }
            reaper.forget_all_but(self.child.1);
            if let Some(limit) = watch.look(reaper, lock) {
                return EndReason::Over(limit);
            }
        }
    }

    /// Counts and lists, as far as the daemon has asked for it.
    fn answer_counts(&mut self, reaper: &ProcessReaper) {
        if std::mem::take(&mut self.wants_count) {
            let counted = match self.own_alone() {
                Some(OwnAlone { processes, newest }) => Counted { processes, newest },
                None => self.count(reaper),
            };
            self.tell(FrameKind::Counted, &counted);
        }
        if std::mem::take(&mut self.wants_list) {
            let others = match self.own_alone() {
                Some(_) => Vec::new(),
                None => {
                    let family = reaper.family();
                    self.learn_own(&family, reaper);
                    family.difference(&self.own).copied().collect()
                }
            };
            self.tell(FrameKind::Listed, &process_list::list(others));
        }
    }

    fn own_alone(&self) -> Option<OwnAlone> {
        self.inside.as_ref().and_then(InsideView::own_alone)
    }

    /// Counts the whole tree. Those that are there the first time are the agent's own.
    fn count(&mut self, reaper: &ProcessReaper) -> Counted {
        let family = reaper.family();
        let processes = u32::try_from(reaper.own(&family)).unwrap_or(u32::MAX);
        let newest = family.iter().map(|process| process.started).max().unwrap_or(0);
        if self.own.is_empty() {
            self.own.clone_from(&family);
        }
        self.learn_own(&family, reaper);
        Counted { processes, newest }
    }

    /// Lets the view from inside learn which are the agent's own, if nothing else is there.
    fn learn_own(&mut self, family: &BTreeSet<Process>, reaper: &ProcessReaper) {
        if let Some(inside) = &mut self.inside
            && family.is_subset(&self.own)
        {
            inside.learn_own(family, || reaper.family());
        }
    }

    /// The agent's end, if it has ended: as its first process says, or as the end of our child.
    pub(super) fn agent_end(&mut self, reaper: &ProcessReaper) -> Option<AgentEnd> {
        let mut line = Vec::new();
        if let Some(pipe) = &self.end_line
            && !matches!(read_some(pipe, &mut line), Ok(PipeRead::Nothing))
        {
            // It says one thing, once, in one write.
            self.end_line = None;
            self.end = serde_json::from_slice(&line).ok();
        }
        self.end.or_else(|| reaper.status_of(self.child.1).map(AgentEnd::from))
    }

    /// Sends what the agent had still said, and how it ended. Everything is dead, so what is in the pipes is all. This
    /// takes as long as the daemon takes to listen: it may be busy, and how a turn ended is worth waiting for.
    pub(super) fn farewell(&mut self, exited: &Exited) -> io::Result<()> {
        while self.agent_out.is_some() || self.agent_err.is_some() {
            self.flush()?;
            self.take_output(true)?;
            self.take_errors(true)?;
        }
        self.tell(FrameKind::Exited, exited);
        self.flush()
    }

    /// Waits until something happens, and does what the daemon says.
    fn listen(&mut self, wait_max: Duration) -> io::Result<Option<EndReason>> {
        if self.silence() >= self.silence_max {
            return Ok(Some(EndReason::Alone));
        }
        self.wait(wait_max)?;
        match read_some(io::stdin(), self.control.bytes())? {
            PipeRead::Eof => return Ok(Some(EndReason::Alone)),
            PipeRead::Some | PipeRead::Nothing => {}
        }
        self.obey()
    }

    /// Gives the agent its words and the daemon the agent's.
    fn carry(&mut self) -> io::Result<()> {
        self.give_input();
        if self.outgoing.len() < OUTGOING_BYTES_MAX {
            self.take_output(false)?;
            self.take_errors(false)?;
        }
        write_some(io::stdout(), &mut self.outgoing)
    }

    /// The time the daemon has been silent while we were there to listen. When the whole machine was frozen it could
    /// not say anything either, and may be woken after us.
    fn silence(&mut self) -> Duration {
        let now = Instant::now();
        let absent = (now - self.looked).saturating_sub(self.nap());
        self.looked = now;
        self.heard = now.min(self.heard + absent);
        now - self.heard
    }

    fn nap(&self) -> Duration {
        self.silence_max / NAPS
    }

    /// Sleeps until somebody has something to say or to take, but not for long.
    fn wait(&self, wait_max: Duration) -> io::Result<()> {
        let (stdin, stdout) = (io::stdin(), io::stdout());
        let has_room = self.outgoing.len() < OUTGOING_BYTES_MAX;
        let mut ready = vec![
            PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.child.0.as_fd(), PollFlags::IN),
        ];
        ready.extend(self.end_line.iter().map(|line| PollFd::new(line, PollFlags::IN)));
        if !self.outgoing.is_empty() {
            ready.push(PollFd::from_borrowed_fd(stdout.as_fd(), PollFlags::OUT));
        }
        if !self.input.is_empty() {
            ready.extend(self.agent_in.iter().map(|pipe| PollFd::new(pipe, PollFlags::OUT)));
        }
        if has_room {
            let pipes = self.agent_out.iter().chain(&self.agent_err);
            ready.extend(pipes.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        }
        poll(&mut ready, self.nap().min(wait_max))
    }

    fn obey(&mut self) -> io::Result<Option<EndReason>> {
        let invalid = |NotAFrame| io::Error::from(io::ErrorKind::InvalidData);
        while let Some((kind, body)) = self.control.next().map_err(invalid)? {
            self.heard = Instant::now();
            match kind {
                FrameKind::Input => self.input.extend_from_slice(&body),
                FrameKind::CloseInput => self.input_closes = true,
                FrameKind::Beat => {}
                FrameKind::Interrupt => {
                    let _ = rustix::process::pidfd_send_signal(&self.child.0, Signal::INT);
                }
                FrameKind::Count => self.wants_count = true,
                FrameKind::List => self.wants_list = true,
                FrameKind::Kill => return Ok(Some(EndReason::Told)),
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
            if self.input.len() > INPUT_WAITING_BYTES_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        Ok(None)
    }

    fn give_input(&mut self) {
        if let Some(pipe) = &self.agent_in
            && write_some(pipe, &mut self.input).is_err()
        {
            // It does not listen any more. That is its business; whether it has ended is asked elsewhere.
            self.agent_in = None;
        }
        if self.agent_in.is_none() {
            self.input.clear();
        } else if self.input_closes && self.input.is_empty() {
            self.agent_in = None;
        }
    }

    fn take_output(&mut self, is_last: bool) -> io::Result<()> {
        take(&mut self.agent_out, FrameKind::Output, &mut self.outgoing, is_last)
    }

    fn take_errors(&mut self, is_last: bool) -> io::Result<()> {
        take(&mut self.agent_err, FrameKind::Errors, &mut self.outgoing, is_last)
    }

    fn flush(&mut self) -> io::Result<()> {
        let (stdin, stdout) = (io::stdin(), io::stdout());
        loop {
            write_some(&stdout, &mut self.outgoing)?;
            if self.outgoing.is_empty() {
                return Ok(());
            }
            // Whatever it says now, the tree has ended; that it says something means that it is still there.
            match read_some(&stdin, self.control.bytes())? {
                PipeRead::Eof => return Err(io::ErrorKind::BrokenPipe.into()),
                PipeRead::Some => {
                    self.control.bytes().clear();
                    self.heard = Instant::now();
                }
                PipeRead::Nothing if self.silence() >= self.silence_max => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                PipeRead::Nothing => {}
            }
            let mut ready = [PollFd::new(&stdout, PollFlags::OUT), PollFd::new(&stdin, PollFlags::IN)];
            poll(&mut ready, self.nap())?;
        }
    }
}

fn poll(ready: &mut [PollFd<'_>], wait_max: Duration) -> io::Result<()> {
    match rustix::event::poll(ready, Some(&timespec(wait_max))) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(why) => Err(why.into()),
    }
}

/// Reads once from one of the agent's pipes into a frame. When nobody is left to write, nothing to read is the end.
fn take(
    pipe: &mut Option<OwnedFd>,
    kind: FrameKind,
    outgoing: &mut Vec<u8>,
    is_last: bool,
) -> io::Result<()> {
    let Some(open) = pipe else { return Ok(()) };
    let mut bytes = Vec::with_capacity(READ_BYTES);
    let read = read_some(open, &mut bytes)?;
    if !bytes.is_empty() {
        debug_assert!(bytes.len() <= PIECE_BYTES_MAX);
        put(outgoing, kind, &bytes);
    }
    if read == PipeRead::Eof || (is_last && read == PipeRead::Nothing) {
        *pipe = None;
    }
    Ok(())
}

/// Reads what is there, once.
pub(super) fn read_some(from: impl AsFd, into: &mut Vec<u8>) -> io::Result<PipeRead> {
    let mut bytes = [0; READ_BYTES];
    match rustix::io::read(from, &mut bytes) {
        Ok(0) => Ok(PipeRead::Eof),
        Ok(count) => {
            into.extend_from_slice(&bytes[..count]);
            Ok(PipeRead::Some)
        }
        Err(Errno::AGAIN | Errno::INTR) => Ok(PipeRead::Nothing),
        Err(why) => Err(why.into()),
    }
}

/// Writes what fits, once.
fn write_some(to: impl AsFd, from: &mut Vec<u8>) -> io::Result<()> {
    if from.is_empty() {
        return Ok(());
    }
    match rustix::io::write(to, from) {
        Ok(count) => {
            from.drain(..count);
            Ok(())
        }
        Err(Errno::AGAIN | Errno::INTR) => Ok(()),
        Err(why) => Err(why.into()),
    }
}

/// Writes everything to a daemon that is known to wait for it.
pub(super) fn write_all(bytes: &[u8]) -> io::Result<()> {
    use std::io::Write;
    let mut stdout = io::stdout();
    stdout.write_all(bytes)?;
    stdout.flush()
}

//! Starts the agent so that it cannot outlive its supervisor by accident, and keeps the supervisor alive meanwhile.
//!
//! The supervisor forks a copy of itself (`born`), the copy raises the wall around itself and becomes the agent
//! (`Birth::become_agent`), and says on a line of its own how far it came. Where the wall has a PID namespace, the copy is the
//! first process in it (`init`) and the agent its child; a spare has such a copy beforehand (`prepared`), which is sent what another one
//! knows by being a copy. What the kernel does not let us have is tried again with less, as far as the wall allows.

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::pipe::PipeFlags;
use rustix::process::{DumpableBehavior, Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions};
use serde::{Deserialize, Serialize};

use super::frame::Start;
use super::prepared::PreparedFirst;
use super::{init, inside};
use crate::control_group::ControlGroup;
use crate::passing::{self, Parcel};
use crate::reaper::TreeMark;
use crate::wall::{PreparedWall, Separation, Unenforced};

/// The longest that is read of what a birth says: a directory, and a reason.
const BIRTH_BYTES_MAX: usize = 64 * 1024;

/// The polite signals. A service manager sends them to everything at once; a supervisor has its work still before it.
pub(super) const POLITE: [libc::c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// Takes no notice of polite signals from now on. What ends a supervisor is its daemon's end.
pub(super) fn be_deaf() {
    set_polite(libc::SIG_IGN);
}

pub(super) fn set_polite(disposition: libc::sighandler_t) {
    for signal in POLITE {
        // SAFETY: neither ignoring a signal nor its default has a handler that could run our code.
        #[allow(unsafe_code)]
        unsafe {
            libc::signal(signal, disposition);
        }
    }
}

/// The agent's process, and our ends of its lines.
pub(super) struct Spawned {
    /// Our child: the first process of the tree's PID namespace, else the agent itself.
    pub(super) pid: Pid,
    /// By this the first process says how the agent ended, if there is one.
    pub(super) end: Option<OwnedFd>,
    pub(super) separation: Separation,
    /// The tree's own view of its processes, if it has a PID namespace.
    pub(super) inside: Option<OwnedFd>,
    /// Where the agent runs, as the kernel says.
    pub(super) directory: Option<String>,
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// Starts the agent behind its wall, in a session and, where there is one, a control group of its own; in a first process that was
/// prepared for that, if there is one that will do.
pub(super) fn spawn(
    start: &Start,
    mark: &TreeMark,
    group: Option<&ControlGroup>,
    wall: PreparedWall,
    prepared: Option<PreparedFirst>,
) -> io::Result<Spawned> {
    let order = BirthOrder::new(start, mark, wall);
    if let Some(prepared) = prepared.filter(|prepared| prepared.will_do(&order.wall)) {
        match spawn_in(prepared, &order, group) {
            Ok(spawned) => return Ok(spawned),
            // It was ended, or may not enter the group: then as if there were none. There has been no agent.
            Err(NotBorn::Cannot(_) | NotBorn::Silent) => {}
            Err(NotBorn::Failed(why)) => return Err(why),
        }
    }
    let mut lacks = io::Error::from(io::ErrorKind::Unsupported);
    for separation in order.wall.separations() {
        match spawn_behind(&order, group, *separation) {
            Ok(spawned) => return Ok(spawned),
            Err(NotBorn::Cannot(why)) => lacks = why,
            Err(NotBorn::Failed(why)) => return Err(why),
            Err(NotBorn::Silent) => return Err(io::Error::other("it was ended before it became the agent")),
        }
    }
    Err(order.wall.cannot(&lacks))
}

/// Why there is no agent.
enum NotBorn {
    /// The kernel does not let us have these namespaces; fewer may do.
    Cannot(io::Error),
    Failed(io::Error),
    /// Our copy ended before it had said anything.
    Silent,
}

impl From<io::Error> for NotBorn {
    fn from(why: io::Error) -> Self {
        Self::Failed(why)
    }
}

impl From<rustix::io::Errno> for NotBorn {
    fn from(why: rustix::io::Errno) -> Self {
        Self::Failed(why.into())
    }
}

/// Everything that our copy has to know to become the agent.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct BirthOrder {
    wall: PreparedWall,
    argv: Vec<String>,
    env: Vec<(String, String)>,
    directory: PathBuf,
    files_max: Option<u64>,
}

impl BirthOrder {
    fn new(start: &Start, mark: &TreeMark, wall: PreparedWall) -> Self {
        let env = start.env.iter().cloned().chain(mark.variables()).collect();
        let Start { argv, directory, files_max, .. } = start.clone();
        Self { wall, argv, env, directory, files_max }
    }

    fn command(&self) -> io::Result<Command> {
        let (program, arguments) = self.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(self.env.iter().map(|(name, value)| (name, value)));
        Ok(command)
    }

    /// No core dumps of agents: they hold whole conversations. And no more files than the daemon says.
    fn limit(&self) -> io::Result<()> {
        rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
        if let Some(files_max) = self.files_max {
            // Nobody can raise what the system allows us.
            let most = rustix::process::getrlimit(Resource::Nofile).maximum;
            let files_max = most.map_or(files_max, |most| most.min(files_max));
            let files = Rlimit { current: Some(files_max), maximum: Some(files_max) };
            rustix::process::setrlimit(Resource::Nofile, files)?;
        }
        Ok(())
    }
}

/// The ends of the agent's lines that our copy has, and those on which it says how far it came and how the agent ended.
struct BirthLines {
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
    says: OwnedFd,
    ends: OwnedFd,
}

/// The other ends, which are ours.
struct OurLines {
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
    heard: OwnedFd,
    end: OwnedFd,
}

fn lines() -> io::Result<(BirthLines, OurLines)> {
    let [(its_in, stdin), (stdout, its_out), (stderr, its_err)] = [pipe()?, pipe()?, pipe()?];
    let (heard, says) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let (end, ends) = pipe()?;
    let its = BirthLines { stdin: its_in, stdout: its_out, stderr: its_err, says, ends };
    Ok((its, OurLines { stdin, stdout, stderr, heard, end }))
}

impl OurLines {
    /// The agent, once our copy has become it.
    fn spawned(self, pid: Pid, separation: Separation) -> Result<Spawned, NotBorn> {
        let Self { stdin, stdout, stderr, heard, end } = self;
        let (directory, inside) = hear(&heard).inspect_err(|_| bury(pid))?;
        let end = (separation == Separation::Processes).then_some(end);
        Ok(Spawned { pid, end, separation, inside, directory, stdin, stdout, stderr })
    }
}

/// Has a first process that was prepared do it.
fn spawn_in(
    prepared: PreparedFirst,
    order: &BirthOrder,
    group: Option<&ControlGroup>,
) -> Result<Spawned, NotBorn> {
    let (its, ours) = lines()?;
    let group = group.map(|group| group.directory().ok_or(io::ErrorKind::NotFound)).transpose();
    let group = group.map_err(|why| NotBorn::Cannot(why.into()))?;
    let held = order.wall.descriptors();
    let BirthLines { stdin, stdout, stderr, says, ends } = &its;
    let own = [stdin, stdout, stderr, says, ends].into_iter().map(AsFd::as_fd);
    let all = own.chain(group.as_ref().map(AsFd::as_fd)).chain(held.iter().map(|held| held.as_fd()));
    let sent = SentOrder { order, has_group: group.is_some() };
    let sent = serde_json::to_vec(&sent).map_err(io::Error::from)?;
    let pid = prepared.send(&sent, &all.collect::<Vec<BorrowedFd<'_>>>()).map_err(NotBorn::Cannot)?;
    drop(its);
    ours.spawned(pid, Separation::Processes)
}

/// An order as it travels to a first process that was prepared. Beside it are the ends of the lines, the group if there is one, and
/// what is held for the wall.
#[derive(Debug, Serialize)]
struct SentOrder<'a> {
    order: &'a BirthOrder,
    has_group: bool,
}

#[derive(Debug, Deserialize)]
struct ReceivedOrder {
    order: BirthOrder,
    has_group: bool,
}

/// Becomes the agent as an order says that was received with these descriptors, in a first process that was prepared.
pub(super) fn obey(order: &[u8], sent: Vec<OwnedFd>, supervisor: OwnedFd) -> io::Result<Infallible> {
    let ReceivedOrder { mut order, has_group } = serde_json::from_slice(order)?;
    let mut sent = sent.into_iter();
    let mut next = || sent.next().ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof));
    let (stdin, stdout, stderr, says, ends) = (next()?, next()?, next()?, next()?, next()?);
    let lines = BirthLines { stdin, stdout, stderr, says, ends };
    let group = if has_group { Some(File::from(next()?)) } else { None };
    order.wall.adopt(sent.collect())?;
    let stage = BirthStage::Prepared { group };
    Birth { order: &order, lines, separation: Separation::Processes, stage, supervisor }.go()
}

/// Has a copy of us do it that is made now.
fn spawn_behind(
    order: &BirthOrder,
    group: Option<&ControlGroup>,
    separation: Separation,
) -> Result<Spawned, NotBorn> {
    let (lines, ours) = lines()?;
    let supervisor = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
    let birth = Birth { order, lines, separation, stage: BirthStage::Bare, supervisor };
    let Some(pid) = born(&birth, group)? else { birth.go() };
    drop(birth);
    ours.spawned(pid, separation)
}

/// Ends a child that has not become an agent.
pub(super) fn bury(pid: Pid) {
    let _ = rustix::process::kill_process(pid, Signal::KILL);
    let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
}

/// A line that a birth says. It says no more once it has become the agent.
#[derive(Debug, Serialize, Deserialize)]
enum BirthLine {
    /// The wall stands, and it is there.
    In(Option<String>),
    /// These namespaces are not to be had.
    Cannot(i32, String),
    /// With the kernel's number of the reason, if it has one.
    Failed(Option<i32>, String),
}

/// Hears a birth to its end. Answers where the agent is, and its tree's own view of processes.
fn hear(heard: &OwnedFd) -> Result<(Option<String>, Option<OwnedFd>), NotBorn> {
    let (mut said, mut sent) = (Vec::new(), Vec::new());
    while said.len() < BIRTH_BYTES_MAX {
        match passing::receive_some(heard, &mut said, &mut sent) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            // It ended with something unread of us.
            Err(Errno::CONNRESET) => break,
            Err(why) => return Err(why.into()),
        }
    }
    let mut place = None;
    for line in said.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match serde_json::from_slice(line).map_err(io::Error::from)? {
            BirthLine::In(directory) => place = Some(directory),
            BirthLine::Cannot(number, _) => {
                return Err(NotBorn::Cannot(io::Error::from_raw_os_error(number)));
            }
            BirthLine::Failed(Some(number), _) => {
                return Err(NotBorn::Failed(io::Error::from_raw_os_error(number)));
            }
            BirthLine::Failed(None, why) => {
                return Err(NotBorn::Failed(io::Error::new(io::ErrorKind::PermissionDenied, why)));
            }
        }
    }
    Ok((place.ok_or(NotBorn::Silent)?, sent.into_iter().next()))
}

/// A pipe that no other child of ours inherits: the end to read from and the end to write to.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?)
}

/// The state of our copy when it begins.
enum BirthStage {
    /// It is a copy and nothing else.
    Bare,
    /// It has its namespaces, and is not in the tree's control group, in which the agent is to be born.
    Prepared { group: Option<File> },
}

/// Our copy that is about to be the agent. It has one thread, as the supervisor has, so it may do what any process may: no
/// lock can be held by a thread that does not exist.
struct Birth<'a> {
    order: &'a BirthOrder,
    lines: BirthLines,
    separation: Separation,
    stage: BirthStage,
    supervisor: OwnedFd,
}

impl Birth<'_> {
    /// Becomes the agent, or says why not and ends.
    fn go(self) -> ! {
        let line = match self.become_agent() {
            Ok(never) => match never {},
            Err(NotBorn::Cannot(why)) => {
                BirthLine::Cannot(why.raw_os_error().unwrap_or(libc::EPERM), why.to_string())
            }
            Err(NotBorn::Failed(why)) => BirthLine::Failed(why.raw_os_error(), why.to_string()),
            Err(NotBorn::Silent) => leave(),
        };
        self.say(&line, None);
        leave()
    }

    fn become_agent(&self) -> Result<Infallible, NotBorn> {
        let is_bare = matches!(self.stage, BirthStage::Bare);
        if is_bare {
            // The agent shall hear what we do not, whoever made us deaf.
            set_polite(libc::SIG_DFL);
            rustix::process::setsid()?;
        }
        self.order.limit()?;
        let enforced = self.order.wall.enforce(self.separation, is_bare);
        enforced.map_err(|why| match why {
            Unenforced::Cannot(why) => NotBorn::Cannot(why),
            Unenforced::Refused(why) => NotBorn::Failed(io::Error::other(why)),
        })?;
        // Behind the wall, or there would be a way past it upwards. And what the kernel was asked before we became somebody
        // else it has forgotten.
        rustix::process::chdir(&self.order.directory)?;
        die_with(&self.supervisor)?;
        let here = std::env::current_dir().ok();
        // Without it the supervisor has its other way to look.
        let inside = (self.separation == Separation::Processes).then(inside::view).and_then(Result::ok);
        self.say(&BirthLine::In(here.map(|here| here.to_string_lossy().into_owned())), inside.as_ref());
        if self.separation == Separation::Processes {
            self.become_second()?;
        }
        let BirthLines { stdin, stdout, stderr, .. } = &self.lines;
        let mut command = self.order.command()?;
        command.stdin(stdin.try_clone()?).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
        Err(NotBorn::Failed(command.exec()))
    }

    /// Leaves this process to be the first of its namespace; what goes on here is its child.
    fn become_second(&self) -> Result<(), NotBorn> {
        // What it holds and has seen of the supervisor's is nobody's in there. The agent gets over this by its exec.
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        let forked = match &self.stage {
            BirthStage::Bare | BirthStage::Prepared { group: None } => fork(0, None)?,
            // Where only somebody with more rights may enter the group, the whole tree has to be born there.
            BirthStage::Prepared { group } => fork(0, group.as_ref()).map_err(NotBorn::Cannot)?,
        };
        if let Some(agent) = forked {
            init::run(agent, &self.lines.ends);
        }
        rustix::process::setsid()?;
        Ok(())
    }

    fn say(&self, line: &BirthLine, beside: Option<&OwnedFd>) {
        if let Ok(mut line) = serde_json::to_vec(line) {
            line.push(b'\n');
            let beside: Vec<BorrowedFd<'_>> = beside.map(AsFd::as_fd).into_iter().collect();
            let _ = Parcel::new(&line, &beside).send(&self.lines.says);
        }
    }
}

/// Ends this process without running anything of the supervisor's, whose copy it is.
pub(super) fn leave() -> ! {
    // SAFETY: ends the process, and does nothing else.
    #[allow(unsafe_code)]
    unsafe {
        libc::_exit(1)
    }
}

/// The kernel kills this process when the supervisor dies, even if that was killed itself.
pub(super) fn die_with(supervisor: &OwnedFd) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have died before we asked. In a namespace of processes it has no number, so not by that.
    let mut ready = [PollFd::new(supervisor, PollFlags::IN)];
    match rustix::event::poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? {
        0 => Ok(()),
        _ => Err(io::Error::from_raw_os_error(libc::ESRCH)),
    }
}

/// Makes our copy, in the control group if there is one. None in the copy.
///
/// Born inside the group costs nothing. Where that cannot be, it moves itself: the kernel lets a moving process wait until no
/// processor can be in the midst of anything with groups, often for ten milliseconds and more.
fn born(birth: &Birth<'_>, group: Option<&ControlGroup>) -> Result<Option<Pid>, NotBorn> {
    let flags = birth.order.wall.namespaces(birth.separation);
    let lacks = |why: io::Error| match flags {
        0 => NotBorn::Failed(why),
        _ => NotBorn::Cannot(why),
    };
    if let Some(directory) = group.and_then(ControlGroup::directory)
        && let Ok(born) = fork(flags, Some(&directory))
    {
        return Ok(born);
    }
    let born = fork(flags, None).map_err(lacks)?;
    if born.is_none()
        && let Some(entrance) = group.and_then(ControlGroup::entrance)
    {
        // Where we may not move, the reaper has its other ways.
        let _ = rustix::io::write(&entrance, b"0");
    }
    Ok(born)
}

/// `fork`, with the child in namespaces of its own, and inside the group if there is one. None in the child.
pub(super) fn fork(namespaces: u64, group: Option<&File>) -> io::Result<Option<Pid>> {
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
    // SAFETY: a structure of plain numbers, for which zero means nothing special.
    #[allow(unsafe_code)]
    let mut how: libc::clone_args = unsafe { std::mem::zeroed() };
    how.flags = namespaces;
    how.exit_signal = libc::SIGCHLD as u64;
    if let Some(group) = group {
        how.flags |= CLONE_INTO_CGROUP;
        how.cgroup = group.as_raw_fd() as u64;
    }
    // SAFETY: without CLONE_VM this is a fork: the child has a copy of everything and goes on here with the stack it
    // has. The supervisor has one thread, so no lock can be held by another one that does not exist in the child.
    #[allow(unsafe_code)]
    let mut born = unsafe { libc::syscall(libc::SYS_clone3, &raw mut how, size_of::<libc::clone_args>()) };
    if born == -1 && group.is_none() {
        // Some containers let nobody use the newer call.
        // SAFETY: as above. All the other arguments are for what is not asked for.
        #[allow(unsafe_code)]
        {
            born = unsafe { libc::syscall(libc::SYS_clone, namespaces | how.exit_signal, 0, 0, 0, 0) };
        }
    }
    match born {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        pid => i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .map(Some)
            .ok_or_else(|| io::ErrorKind::Other.into()),
    }
}

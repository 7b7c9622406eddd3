//! Starts the agent so that it cannot outlive its supervisor by accident, and keeps the supervisor alive meanwhile. The one
//! place with unsafe code.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal};

use super::frame::Start;
use crate::control_group::ControlGroup;
use crate::reaper::TreeMark;
use crate::wall::PreparedWall;

/// The longest reason for which an agent is not started.
const COMPLAINT_BYTES_MAX: usize = 1_024;

/// The polite signals. A service manager sends them to everything at once; a supervisor has its work still before it.
const POLITE: [libc::c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// Takes no notice of polite signals from now on. What ends a supervisor is its daemon's end.
pub(super) fn be_deaf() {
    set_polite(libc::SIG_IGN);
}

fn set_polite(disposition: libc::sighandler_t) {
    for signal in POLITE {
        // SAFETY: neither ignoring a signal nor its default has a handler that could run our code.
        #[allow(unsafe_code)]
        unsafe {
            libc::signal(signal, disposition);
        }
    }
}

/// The agent's process, which is our child, and our ends of its lines.
pub(super) struct Spawned {
    pub(super) pid: Pid,
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// Starts the agent behind its wall, in a session and, where there is one, a control group of its own.
pub(super) fn spawn(
    start: &Start,
    mark: &TreeMark,
    group: Option<&ControlGroup>,
    wall: PreparedWall,
) -> io::Result<Spawned> {
    let (program, arguments) =
        start.argv.split_first().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut command = Command::new(program);
    command.args(arguments);
    command.env_clear().envs(start.env.iter().map(|(name, value)| (name, value))).envs(mark.variables());
    let [(its_in, stdin), (stdout, its_out), (stderr, its_err)] = [pipe()?, pipe()?, pipe()?];
    command.stdin(its_in).stdout(its_out).stderr(its_err);
    let supervisor = rustix::process::getpid();
    let directory = start.directory.clone();
    let before_exec = move || {
        // The agent shall hear what we do not, whoever made us deaf.
        set_polite(libc::SIG_DFL);
        rustix::process::setsid()?;
        wall.enforce()?;
        // Behind the wall, or there would be a way past it upwards. And what the kernel was asked before we became somebody
        // else it has forgotten.
        rustix::process::chdir(&directory)?;
        die_with(supervisor)
    };
    // SAFETY: the supervisor has one thread, so its copy between fork and exec may do what any process may: no lock can be
    // held by a thread that does not exist.
    #[allow(unsafe_code)]
    unsafe {
        command.pre_exec(before_exec);
    }
    let born_inside =
        group.and_then(ControlGroup::directory).map(|directory| spawn_into(&mut command, &directory));
    let born = match born_inside {
        Some(Ok(born)) => born,
        Some(Err(NotThere)) | None => spawn_and_move(&mut command, group),
    };
    let pid = born.map_err(|why| complaint(&stderr, why))?;
    Ok(Spawned { pid, stdin, stdout, stderr })
}

/// The words it said before it could become the agent, if it did; else the error as it is.
fn complaint(stderr: &OwnedFd, why: io::Error) -> io::Error {
    let mut said = [0; COMPLAINT_BYTES_MAX];
    let read = rustix::io::ioctl_fionbio(stderr, true).and_then(|()| rustix::io::read(stderr, &mut said));
    match read {
        Ok(length @ 1..) => io::Error::new(
            io::ErrorKind::PermissionDenied,
            String::from_utf8_lossy(&said[..length]).into_owned(),
        ),
        Ok(0) | Err(_) => why,
    }
}

/// A pipe that no other child of ours inherits: the end to read from and the end to write to.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?)
}

/// The agent moves itself into the group before it becomes itself. The kernel lets a moving process wait until no
/// processor can be in the midst of anything with groups, often for ten milliseconds and more.
fn spawn_and_move(command: &mut Command, group: Option<&ControlGroup>) -> io::Result<Pid> {
    if let Some(entrance) = group.and_then(ControlGroup::entrance) {
        let move_in = move || {
            // Where we may not move, the reaper has its two other ways.
            let _ = rustix::io::write(&entrance, b"0");
            Ok(())
        };
        // SAFETY: one system call that allocates nothing, in the only thread there is.
        #[allow(unsafe_code)]
        unsafe {
            command.pre_exec(move_in);
        }
    }
    Ok(Pid::from_child(&command.spawn()?))
}

/// The group cannot be born into here: an older kernel, or one that does not let us.
struct NotThere;

/// The agent is born inside the group, which costs nothing. The inner error is the agent's: it could not be started.
fn spawn_into(command: &mut Command, group: &File) -> Result<io::Result<Pid>, NotThere> {
    let (read, written) = pipe().map_err(|_| NotThere)?;
    match fork_into(group).map_err(|_| NotThere)? {
        None => {
            // Comes back only if it failed. The pipe closes by itself if it did not.
            let why = command.exec().raw_os_error().unwrap_or(libc::EINVAL);
            let _ = rustix::io::write(&written, &why.to_ne_bytes());
            // SAFETY: ends the process without running anything of the supervisor's, whose copy it is.
            #[allow(unsafe_code)]
            unsafe {
                libc::_exit(1)
            }
        }
        Some(pid) => {
            drop(written);
            let mut why = [0; 4];
            if File::from(read).read_exact(&mut why).is_err() {
                return Ok(Ok(pid));
            }
            let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
            Ok(Err(io::Error::from_raw_os_error(i32::from_ne_bytes(why))))
        }
    }
}

/// `fork`, with the child inside the group. None in the child.
fn fork_into(group: &File) -> io::Result<Option<Pid>> {
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
    // SAFETY: a structure of plain numbers, for which zero means nothing special.
    #[allow(unsafe_code)]
    let mut how: libc::clone_args = unsafe { std::mem::zeroed() };
    how.flags = CLONE_INTO_CGROUP;
    how.exit_signal = libc::SIGCHLD as u64;
    how.cgroup = group.as_raw_fd() as u64;
    // SAFETY: without CLONE_VM this is a fork: the child has a copy of everything and goes on here with the stack it
    // has. The supervisor has one thread, so no lock can be held by another one that does not exist in the child.
    #[allow(unsafe_code)]
    let born = unsafe { libc::syscall(libc::SYS_clone3, &raw mut how, size_of::<libc::clone_args>()) };
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

/// The kernel kills this process when the supervisor dies, even if it was killed itself.
fn die_with(supervisor: Pid) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have died before we asked.
    if rustix::process::getppid() == Some(supervisor) {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(rustix::io::Errno::SRCH.raw_os_error()))
    }
}

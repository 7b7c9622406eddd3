//! Starts the agent so that it cannot outlive its supervisor by accident, and keeps the supervisor alive meanwhile. The one
//! place with unsafe code.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal};

use super::frame::Start;
use crate::group::Group;
use crate::hunt::Mark;

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

/// Starts the agent in a session and, where there is one, a control group of its own.
pub(super) fn spawn(start: &Start, mark: &Mark, group: Option<&Group>) -> io::Result<Child> {
    let (program, arguments) =
        start.argv.split_first().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&start.directory);
    command.env_clear().envs(start.env.iter().map(|(name, value)| (name, value))).envs(mark.variables());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let entrance = group.and_then(Group::entrance);
    let supervisor = rustix::process::getpid();
    let before_exec = move || {
        if let Some(entrance) = &entrance {
            // Where we may not move, the hunt has its two other ways.
            let _ = rustix::io::write(entrance, b"0");
        }
        // The agent shall hear what we do not, whoever made us deaf.
        set_polite(libc::SIG_DFL);
        die_with(supervisor)?;
        rustix::process::setsid()?;
        Ok(())
    };
    // SAFETY: between fork and exec this only makes system calls (write, sigaction, prctl, getppid, setsid) and allocates nothing:
    // rustix returns errors as numbers, and an `io::Error` made of one is a number, too. The supervisor has one thread.
    #[allow(unsafe_code)]
    unsafe {
        command.pre_exec(before_exec);
    }
    command.spawn()
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

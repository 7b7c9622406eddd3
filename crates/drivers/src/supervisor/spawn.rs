//! Starts the agent so that it cannot outlive its supervisor by accident. The one place with unsafe code.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal};

use super::frame::Start;
use crate::group::Group;
use crate::hunt::Mark;

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
        die_with(supervisor)?;
        rustix::process::setsid()?;
        Ok(())
    };
    // SAFETY: between fork and exec this only makes system calls (write, prctl, getppid, setsid) and allocates nothing:
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

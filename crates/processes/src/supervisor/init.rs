//! The first process of a tree that has a PID namespace of its own: our own code, behind the agent's wall and with no more
//! rights than the agent.
//!
//! It reaps whoever has lost its parent, hands polite signals from outside on to the agent, and says once how the agent
//! ended. It never ends by itself: the supervisor ends it, or the kernel when the supervisor dies, and with it the kernel ends
//! everything in the namespace. So nothing inside can outlive it, whatever it has shed or whomever it has left.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use serde::{Deserialize, Serialize};

use super::spawn::POLITE;

/// The end of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AgentEnd {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
}

impl From<WaitStatus> for AgentEnd {
    fn from(status: WaitStatus) -> Self {
        Self { code: status.exit_status(), signal: status.terminating_signal() }
    }
}

/// Is the first process, with the agent as its child, for as long as it is let.
pub(super) fn run(agent: Pid, ends: &OwnedFd) -> ! {
    let signals = block();
    // It keeps no directory busy, and holds nothing of what the supervisor has held for the wall. That the line of its birth
    // closes with everything else says that it listens.
    let _ = rustix::process::chdir("/");
    let _ = rustix::thread::set_name(c"homing-init");
    let ends = keep_only(ends);
    let mut agent = Some(agent);
    loop {
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if Some(pid) == agent {
                agent = None;
                say(ends, status.into());
            }
        }
        let signal = wait_for(&signals);
        if let Some((agent, signal)) = agent.zip(signal.filter(|signal| *signal != Signal::CHILD)) {
            let _ = rustix::process::kill_process(agent, signal);
        }
    }
}

/// Blocks what it waits for. Blocked before anybody is told that it is there, so that nothing is missed.
fn block() -> libc::sigset_t {
    // SAFETY: writes into a set of ours, and sets the mask of the only thread.
    #[allow(unsafe_code)]
    unsafe {
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut signals);
        for signal in POLITE.into_iter().chain([libc::SIGCHLD]) {
            libc::sigaddset(&raw mut signals, signal);
        }
        libc::sigprocmask(libc::SIG_BLOCK, &raw const signals, std::ptr::null_mut());
        signals
    }
}

fn wait_for(signals: &libc::sigset_t) -> Option<Signal> {
    // SAFETY: reads a set of ours, and is told nothing besides the number.
    #[allow(unsafe_code)]
    let number = unsafe { libc::sigwaitinfo(signals, std::ptr::null_mut()) };
    Signal::from_named_raw(number)
}

/// Closes every descriptor but one. Answers its new number.
fn keep_only(ends: &OwnedFd) -> i32 {
    // SAFETY: nothing in this process uses a descriptor from here on but the one that is kept.
    #[allow(unsafe_code)]
    unsafe {
        libc::dup2(ends.as_raw_fd(), 0);
        let closed = libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0);
        if closed == -1 {
            for number in 1..libc::sysconf(libc::_SC_OPEN_MAX).clamp(64, 65_536) as i32 {
                libc::close(number);
            }
        }
    }
    0
}

fn say(ends: i32, end: AgentEnd) {
    let line = serde_json::to_vec(&end).unwrap_or_default();
    // SAFETY: writes bytes of ours.
    #[allow(unsafe_code)]
    let _ = unsafe { libc::write(ends, line.as_ptr().cast(), line.len()) };
}

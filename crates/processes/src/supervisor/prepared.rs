//! The first process of a tree before there is a tree: a copy of the spare supervisor in namespaces of its own, which waits to be told
//! what to become.
//!
//! It has everything of a wall that is the same for every session: the namespaces, a `/proc` of its own, and read-only what rules
//! processes and the kernel. Nothing is
//! covered in it yet, so nothing that is renamed or made later can be missed: that is done for each start, by descriptor. It sees what
//! was mounted when it was made. If the supervisor sees anything else by then, it is ended, and another one is made.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType};
use rustix::process::{DumpableBehavior, Pid, PidfdFlags};

use super::spawn::{self, bury, die_with, leave, set_polite};
use super::timespec;
use crate::passing::{self, Parcel};
use crate::wall::{FirstNamespaces, PreparedWall, Separation};

/// The pause before another one is made after something was mounted. Where that happens all the time, starts do without.
const AGAIN_PAUSE: Duration = Duration::from_secs(1);

/// The mounts that this process sees; the kernel says when they change.
const MOUNTS: &str = "/proc/self/mountinfo";

/// A first process that waits. Dropped, it ends.
pub(super) struct PreparedFirst {
    pid: Option<Pid>,
    line: OwnedFd,
    mounts: File,
}

impl PreparedFirst {
    /// Makes one, if the kernel lets us. What does not come up is found out when it is needed.
    fn make() -> io::Result<Self> {
        // Asked before, so that nothing is missed.
        let mounts = File::open(MOUNTS)?;
        let (line, its) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let supervisor = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
        let namespaces = FirstNamespaces::ours();
        match spawn::fork(namespaces.born_in(), None)? {
            Some(pid) => Ok(Self { pid: Some(pid), line, mounts }),
            None => {
                drop((line, mounts));
                // Whoever is told nothing any more ends, and so does who cannot be what it should be.
                let _ = wait_for_order(namespaces, &its, supervisor);
                leave()
            }
        }
    }

    /// True if a tree with that wall can begin with it: it sees the mounts that are there, and is not to be another user, who may
    /// not be let into the tree's control group.
    pub(super) fn will_do(&self, wall: &PreparedWall) -> bool {
        wall.separations().contains(&Separation::Processes)
            && !wall.is_of_another_user()
            && self.sees_all_mounts()
    }

    /// Sends it its order. Answers its process, which is no longer ended with this.
    pub(super) fn send(mut self, order: &[u8], beside: &[BorrowedFd<'_>]) -> io::Result<Pid> {
        Parcel::new(order, beside).send(&self.line)?;
        rustix::net::shutdown(&self.line, Shutdown::Write)?;
        self.pid.take().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sees_all_mounts(&self) -> bool {
        let mut ready = [PollFd::new(&self.mounts, PollFlags::PRI)];
        matches!(rustix::event::poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(0))
    }
}

impl Drop for PreparedFirst {
    fn drop(&mut self) {
        self.pid.into_iter().for_each(bury);
    }
}

/// Is the first process, until it is told what to become.
fn wait_for_order(namespaces: FirstNamespaces, line: &OwnedFd, supervisor: OwnedFd) -> io::Result<()> {
    set_polite(libc::SIG_DFL);
    rustix::process::setsid()?;
    hold_no_lines()?;
    namespaces.enter()?;
    // In a namespace of users it had to be open for a moment.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    die_with(&supervisor)?;
    let _ = rustix::thread::set_name(c"homing-init");
    let (mut order, mut sent) = (Vec::new(), Vec::new());
    loop {
        match passing::receive_some(line, &mut order, &mut sent) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(why) => return Err(why.into()),
        }
    }
    match spawn::obey(&order, sent, supervisor)? {}
}

/// Lets go of the supervisor's lines: it has none of its own yet.
fn hold_no_lines() -> io::Result<()> {
    let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    for number in [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: these three are there in every process, and nobody else in this one thinks of them as its own.
        #[allow(unsafe_code)]
        if unsafe { libc::dup2(nothing.as_raw_fd(), number) } == -1 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// The things that a spare does before it is told what to start.
#[derive(Default)]
pub(super) struct Preparation {
    first: Option<PreparedFirst>,
    /// When another one may be made.
    next: Option<Instant>,
}

impl Preparation {
    /// Makes a first process, and another one whenever it is no longer of use.
    pub(super) fn begin(&mut self) {
        self.next = None;
        self.first = PreparedFirst::make().ok();
    }

    /// Waits until the daemon says something, and sees meanwhile to it that what was prepared is of use.
    pub(super) fn wait_for(&mut self, line: impl AsFd) -> io::Result<()> {
        loop {
            let mut ready = vec![PollFd::new(&line, PollFlags::IN)];
            ready.extend(self.first.iter().map(|first| PollFd::new(&first.mounts, PollFlags::PRI)));
            let left = self.next.map(|next| timespec(next.saturating_duration_since(Instant::now())));
            match rustix::event::poll(&mut ready, left.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(why) => return Err(why.into()),
            }
            let is_told = !ready[0].revents().is_empty();
            let is_changed = ready.get(1).is_some_and(|mounts| !mounts.revents().is_empty());
            drop(ready);
            if is_changed {
                // Before anything else: the kernel says so once. It would keep busy what was unmounted, too.
                self.first = None;
                self.next = Some(Instant::now() + AGAIN_PAUSE);
            }
            if is_told {
                return Ok(());
            }
            if self.next.is_some_and(|next| next <= Instant::now()) {
                self.begin();
            }
        }
    }

    /// The first process, if there is one.
    pub(super) fn take(self) -> Option<PreparedFirst> {
        self.first
    }
}

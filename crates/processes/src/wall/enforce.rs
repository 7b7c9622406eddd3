//! Builds the wall in the agent's own process, between its birth and its becoming the agent.
//!
//! The supervisor stays outside: it is neither in the agent's namespaces nor in its Landlock domain, so that it sees and
//! ends everything as before.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::thread::{CapabilitySet, CapabilitySets};
use serde::{Deserialize, Serialize};

use super::held::{self, HeldFile, HiddenPath};
use super::mounts::{CoverError, HiddenFile};
use super::{MUST, SessionWall, WallKind, landlock_rules, mounts, new_root, syscalls};

/// The powers of root that an agent keeps which runs as root: those with which packages are installed and servers tried out, and
/// none with which one leaves a wall (mounting, tracing, devices, files by number, modules).
const ROOT_KEEPS: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::SETFCAP)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::SYS_CHROOT)
    .union(CapabilitySet::AUDIT_WRITE);

/// Where root gets programs started by others, outside of the wall. Nobody else does.
const ROOT_STARTERS: [&str; 2] = ["/run/systemd/private", "/run/dbus"];

/// The longest that we wait for somebody to stop renaming what is hidden. Who does that in a loop does it for ever.
const MOVING_WAIT: Duration = Duration::from_secs(2);
/// The pause between two looks meanwhile.
const MOVING_PAUSE: Duration = Duration::from_micros(200);
/// Why nothing is started while names lead elsewhere, and what to do.
const MOVED: &str = "something that is hidden from agents is not found under its own name: a program renames it or a \
                     directory above it again and again, or something was mounted over it. End that, or start the \
                     server again";

/// The wall of one start, with everything looked up.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PreparedWall {
    around: SessionWall,
    hidden: Vec<HiddenFile>,
    /// The agent is going to be root.
    is_root: bool,
    /// The user and the group of the supervisor.
    supervisor: (u32, u32),
}

/// The namespaces of its own that an agent has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Separation {
    /// Of processes, of messages and memory that processes share (IPC), and of mounts.
    Processes,
    /// Of mounts alone.
    Files,
    /// None.
    Nothing,
}

impl Separation {
    /// The parts of a wall that are missing with it, in words; of one that lists, or hides.
    pub(crate) fn lacks(self, lists: bool) -> Option<&'static str> {
        match self {
            Self::Processes => None,
            Self::Nothing if lists => Some(
                "the kernel lets agents have no namespaces (that takes root, or namespaces of users), or [wall] wants none: \
                 agents make no Unix sockets, because whoever can reaches what listens in a hidden place",
            ),
            Self::Files => Some(
                "the kernel lets agents have no namespaces of processes: those outside can be named, and a filter \
                 refuses what could be done with that",
            ),
            Self::Nothing => Some(
                "the kernel lets agents have no namespaces (that takes root, or namespaces of users), or [wall] wants none: \
                 what listens in a hidden place can be reached by whoever knows its name",
            ),
        }
    }
}

/// Why the wall does not stand.
#[derive(Debug)]
pub(crate) enum Unenforced {
    /// The kernel does not let us have these namespaces.
    Cannot(io::Error),
    /// In these words; fewer namespaces would not help.
    Refused(String),
}

/// Why no wall can be made of what there is.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unprepared {
    /// The data directory is not the one that the server was started with.
    #[error(
        "{} is not the directory that the server was started with; put that back, or start the server again",
        .0.display()
    )]
    DataReplaced(PathBuf),
    /// The server's descriptors did not arrive.
    #[error("the wall cannot be made: {0}; start the server again")]
    NotHeld(#[from] io::Error),
}

impl PreparedWall {
    /// Takes the descriptors over that were sent along and looks everything else up, in the supervisor.
    pub(crate) fn new(around: &SessionWall, sent: Vec<OwnedFd>) -> Result<Self, Unprepared> {
        let mut around = around.clone();
        around.adopt(sent)?;
        if around.kind != WallKind::Off
            && let Some(data) = &around.data
            && !until(Instant::now() + MOVING_WAIT, || data.is_in_place())
        {
            return Err(Unprepared::DataReplaced(data.path.clone()));
        }
        let is_root = around.os_user.is_none() && rustix::process::geteuid().is_root();
        let mut names: Vec<PathBuf> = around.hide.iter().map(|hidden| hidden.path.clone()).collect();
        if is_root {
            names.extend(ROOT_STARTERS.map(PathBuf::from));
            names.extend(mounts::disks());
        }
        let hidden = look_up(&around.hide, &names, &around.keep);
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        Ok(Self { around, hidden, is_root, supervisor: (user.as_raw(), group.as_raw()) })
    }

    /// The namespaces to try for, the most of them first. What comes last is what there has to be at least.
    pub(crate) fn separations(&self) -> &'static [Separation] {
        use Separation::{Files, Nothing, Processes};
        match self.around.kind {
            WallKind::Auto => &[Processes, Files, Nothing],
            WallKind::Mounts => &[Processes, Files],
            WallKind::Landlock | WallKind::Off => &[Nothing],
        }
    }

    /// The namespaces that the agent has to be born in; others can be made later.
    pub(crate) fn namespaces(&self, separation: Separation) -> u64 {
        let users = if self.with_users() { libc::CLONE_NEWUSER } else { 0 };
        match separation {
            Separation::Processes => (libc::CLONE_NEWPID | users) as u64,
            Separation::Files | Separation::Nothing => 0,
        }
    }

    /// The error when none of the separations can be had.
    pub(crate) fn cannot(&self, why: &io::Error) -> io::Error {
        let what = "the wall around it cannot be made by mounts, as [wall] wants";
        io::Error::new(io::ErrorKind::PermissionDenied, format!("{what}: {why}"))
    }

    /// The descriptors that a first process has to be sent which is no copy of us, in this order.
    pub(crate) fn descriptors(&self) -> Vec<Arc<OwnedFd>> {
        held::open_files(self.held()).into_values().collect()
    }

    /// Takes them over there.
    pub(crate) fn adopt(&mut self, sent: Vec<OwnedFd>) -> io::Result<()> {
        let sent = held::numbers(self.held()).into_iter().zip(sent.into_iter().map(Arc::new)).collect();
        let hidden = self.hidden.iter_mut().map(|hidden| &mut hidden.held);
        let listed = self.around.list.iter_mut().flat_map(|list| &mut list.paths);
        held::adopt(hidden.chain(listed.map(|listed| &mut listed.held)), &sent)
    }

    /// Everything that covering and listing need to hold.
    fn held(&self) -> impl Iterator<Item = &HeldFile> {
        let listed = self.around.list.iter().flat_map(|list| &list.paths).map(|listed| &listed.held);
        self.hidden.iter().map(|hidden| &hidden.held).chain(listed)
    }

    /// True if the agent runs as somebody else than we do.
    pub(crate) fn is_of_another_user(&self) -> bool {
        self.around.os_user.is_some()
    }

    /// Raises the wall around this process, for good; with namespaces of its own, unless it has them. Only in a process with one
    /// thread, which is about to be the agent.
    pub(crate) fn enforce(&self, separation: Separation, separates: bool) -> Result<(), Unenforced> {
        let kind = self.around.kind;
        if separation != Separation::Nothing {
            let separated = if separates { self.separate(separation) } else { Ok(()) };
            separated.map_err(CoverError::from).and_then(|()| self.cover()).map_err(|why| match why {
                // Not by Landlock either: that goes by names.
                CoverError::Moving(name) => Unenforced::Refused(format!("{MOVED} ({})", name.display())),
                CoverError::Cannot(why) => Unenforced::Cannot(why),
            })?;
        }
        let refused = |why: io::Error| Unenforced::Refused(why.to_string());
        if let Some(os_user) = &self.around.os_user {
            os_user.become_user().map_err(|why| {
                Unenforced::Refused(format!("we cannot become the user {:?}: {why}", os_user.user))
            })?;
        } else if self.is_root && kind != WallKind::Off {
            shed_powers(ROOT_KEEPS).map_err(refused)?;
        } else if separation != Separation::Nothing {
            // Those over the namespace of users, which whoever is going to be the agent loses anyway.
            shed_powers(CapabilitySet::empty()).map_err(refused)?;
        }
        if kind == WallKind::Off {
            return Ok(());
        }
        rustix::thread::set_no_new_privs(true).map_err(|why| refused(why.into()))?;
        syscalls::bound(separation, self.around.has_list());
        let hides = separation == Separation::Nothing;
        let enforced = if hides {
            let names = |hidden: &HiddenFile| [Some(hidden.held.name.clone()), hidden.held.name_now().ok()];
            let hide: Vec<PathBuf> = self.hidden.iter().flat_map(names).flatten().collect();
            match &self.around.list {
                Some(list) => landlock_rules::list(&list.paths, &hide, &self.around.keep),
                None => landlock_rules::hide(&hide, &self.around.keep),
            }
            .map_err(refused)?
        } else {
            landlock_rules::bound().map_err(refused)?
        };
        let stands = !hides || enforced;
        lacks(kind, self.around.must, stands).map_or(Ok(()), |what| Err(Unenforced::Refused(what.to_owned())))
    }

    fn separate(&self, separation: Separation) -> io::Result<()> {
        mounts::separate(separation, self.with_users().then_some(self.supervisor))?;
        mounts::fix(self.is_root);
        Ok(())
    }

    fn cover(&self) -> Result<(), CoverError> {
        let agent = self.around.os_user.as_ref().map_or(self.supervisor.0, |user| user.uid);
        let deadline = Instant::now() + MOVING_WAIT;
        let kept = mounts::cover(&self.hidden, agent, deadline)?;
        match &self.around.list {
            Some(list) => new_root::enter(list, &kept, deadline),
            None => Ok(()),
        }
    }

    /// A namespace of users knows one user only: who is going to be another cannot have one, and root loses the others.
    fn with_users(&self) -> bool {
        self.supervisor.0 != 0 && self.around.os_user.is_none()
    }
}

/// The namespaces of a first process that is prepared for any session that runs as we do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FirstNamespaces {
    /// Our user and our group, if a namespace of users has to be among them.
    us: Option<(u32, u32)>,
}

impl FirstNamespaces {
    /// Asked before it is born: in a new namespace of users it is nobody at first.
    pub(crate) fn ours() -> Self {
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        Self { us: (!user.is_root()).then(|| (user.as_raw(), group.as_raw())) }
    }

    /// Those that it has to be born in.
    pub(crate) fn born_in(self) -> u64 {
        let users = if self.us.is_some() { libc::CLONE_NEWUSER } else { 0 };
        (libc::CLONE_NEWPID | users) as u64
    }

    /// Makes the others, in it, and takes away what no agent of ours has.
    pub(crate) fn enter(self) -> io::Result<()> {
        mounts::separate(Separation::Processes, self.us)?;
        mounts::fix(self.us.is_none());
        Ok(())
    }
}

/// Everything that is hidden: what is held, and what has one of these names now, which may be something else. What is kept
/// belongs to what is held.
fn look_up(hide: &[HiddenPath], names: &[PathBuf], keep: &[PathBuf]) -> Vec<HiddenFile> {
    let held = hide.iter().filter_map(|hidden| hidden.held.clone());
    let named = names.iter().filter_map(|name| HeldFile::open(name).ok());
    let mut all: Vec<HiddenFile> = Vec::new();
    // Who made one of the names a link to / would have everything hidden, which is nothing.
    for held in held.chain(named).filter(|held| held.name.parent().is_some()) {
        if all.iter().any(|known| known.held.is_same(&held)) {
            continue;
        }
        let is_first = !all.iter().any(|known| known.held.name == held.name);
        let inside = |kept: &PathBuf| Some(kept.strip_prefix(&held.name).ok()?.to_path_buf());
        let kept = keep.iter().filter_map(inside).filter(|kept| is_first && !is_empty(kept));
        let keep = kept.collect();
        all.push(HiddenFile { held, keep });
    }
    all
}

fn is_empty(path: &Path) -> bool {
    path.as_os_str().is_empty()
}

/// Looks until it is so, or until the time is over.
pub(super) fn until(deadline: Instant, mut is_so: impl FnMut() -> bool) -> bool {
    loop {
        if is_so() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(MOVING_PAUSE);
    }
}

/// Why the agent is not started, if what should be hidden is not and that matters.
fn lacks(kind: WallKind, must: bool, stands: bool) -> Option<&'static str> {
    match kind {
        _ if stands => None,
        WallKind::Landlock => Some("the wall around it cannot be made by Landlock, as [wall] wants"),
        WallKind::Auto | WallKind::Mounts | WallKind::Off => must.then_some(MUST),
    }
}

/// Leaves of the powers that we have those that an agent may keep. The others are gone at the latest when the process becomes
/// the agent.
fn shed_powers(keeps: CapabilitySet) -> io::Result<()> {
    for power in CapabilitySet::all().iter().filter(|power| !keeps.contains(*power)) {
        if rustix::thread::capability_is_in_bounding_set(power).unwrap_or(false) {
            // Who may not do this is no whole root; the proof tells what is left.
            let _ = rustix::thread::remove_capability_from_bounding_set(power);
        }
    }
    let has = rustix::thread::capabilities(None)?;
    let kept = has.permitted & keeps;
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_must_have_a_wall_is_not_started_when_neither_mounts_nor_landlock_make_one() {
        for kind in [WallKind::Auto, WallKind::Mounts, WallKind::Landlock] {
            assert_eq!(lacks(kind, true, true), None, "{kind:?}");
            assert!(lacks(kind, true, false).is_some(), "{kind:?}");
        }
        assert_eq!(lacks(WallKind::Auto, false, false), None, "alone, one may do without");
    }
}

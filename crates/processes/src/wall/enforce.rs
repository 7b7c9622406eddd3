//! Builds the wall in the agent's own process, between its birth and its becoming the agent.
//!
//! The supervisor stays outside: it is neither in the agent's namespaces nor in its Landlock domain, so that it sees and
//! ends everything as before.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::thread::{CapabilitySet, CapabilitySets};

use super::held::{HeldFile, HiddenPath};
use super::mounts::{CoverError, HiddenFile};
use super::{MUST, SessionWall, WallKind, landlock_rules, mounts, syscalls};

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
#[derive(Debug, Clone)]
pub(crate) struct PreparedWall {
    around: SessionWall,
    hidden: Vec<HiddenFile>,
    /// The agent is going to be root.
    is_root: bool,
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
    /// Takes the descriptors over and looks everything else up, in the supervisor.
    pub(crate) fn new(around: &SessionWall) -> Result<Self, Unprepared> {
        let mut around = around.clone();
        around.adopt()?;
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
        Ok(Self { around, hidden, is_root })
    }

    /// Raises the wall around this process, for good. Only in a process with one thread, which is about to be the agent.
    pub(crate) fn enforce(&self) -> io::Result<()> {
        let kind = self.around.kind;
        let covered = match kind {
            WallKind::Auto | WallKind::Mounts => self.cover(),
            WallKind::Landlock | WallKind::Off => Err(CoverError::Cannot(io::ErrorKind::Unsupported.into())),
        };
        match &covered {
            // Not by Landlock either: that goes by names.
            Err(CoverError::Moving(name)) => {
                let what = format!("{MOVED} ({})", name.display());
                return Err(said(&what, &io::ErrorKind::ResourceBusy.into()));
            }
            Err(CoverError::Cannot(why)) if kind == WallKind::Mounts => {
                return Err(said("the wall around it cannot be made by mounts, as [wall] wants", why));
            }
            Err(CoverError::Cannot(_)) | Ok(()) => {}
        }
        let hides = covered.is_err() && kind != WallKind::Off;
        if let Some(os_user) = &self.around.os_user {
            os_user
                .become_user()
                .map_err(|why| said(&format!("we cannot become the user {:?}", os_user.user), &why))?;
        } else if self.is_root && kind != WallKind::Off {
            shed_powers()?;
        }
        if kind == WallKind::Off {
            return Ok(());
        }
        rustix::thread::set_no_new_privs(true)?;
        syscalls::bound();
        let enforced = if hides {
            let names = |hidden: &HiddenFile| [Some(hidden.held.name.clone()), hidden.held.name_now().ok()];
            let hide: Vec<PathBuf> = self.hidden.iter().flat_map(names).flatten().collect();
            landlock_rules::hide(&hide, &self.around.keep)?
        } else {
            landlock_rules::bound()?
        };
        let stands = !hides || enforced;
        match lacks(kind, self.around.must, stands) {
            Some(what) => Err(said(what, &io::ErrorKind::Unsupported.into())),
            None => Ok(()),
        }
    }

    fn cover(&self) -> Result<(), CoverError> {
        // A namespace of users knows one user only: who is going to be another cannot have one, and root loses the others.
        let with_users = !rustix::process::geteuid().is_root() && self.around.os_user.is_none();
        mounts::separate(with_users)?;
        let agent =
            self.around.os_user.as_ref().map_or_else(|| rustix::process::geteuid().as_raw(), |user| user.uid);
        mounts::cover(&self.hidden, agent, Instant::now() + MOVING_WAIT)?;
        mounts::fix(self.is_root);
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

fn said(what: &str, why: &io::Error) -> io::Error {
    // The error crosses a fork as a number. What it means goes by the agent's own line, which the supervisor reads.
    eprint!("{what}: {why}");
    io::Error::from_raw_os_error(why.raw_os_error().unwrap_or(libc::EPERM))
}

/// Leaves of root's powers what an agent may keep. They are gone when the process becomes the agent.
fn shed_powers() -> io::Result<()> {
    for power in CapabilitySet::all().iter().filter(|power| !ROOT_KEEPS.contains(*power)) {
        if rustix::thread::capability_is_in_bounding_set(power).unwrap_or(false) {
            // Who may not do this is no whole root; the proof tells what is left.
            let _ = rustix::thread::remove_capability_from_bounding_set(power);
        }
    }
    let has = rustix::thread::capabilities(None)?;
    let kept = has.permitted & ROOT_KEEPS;
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

//! Builds the wall in the agent's own process, between its birth and its becoming the agent.
//!
//! The supervisor stays outside: it is neither in the agent's namespaces nor in its Landlock domain, so that it sees and
//! ends everything as before.

use std::io;
use std::path::PathBuf;

use rustix::thread::{CapabilitySet, CapabilitySets};

use super::{MUST, SessionWall, WallKind, landlock_rules, mounts};

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

/// The wall of one start, with every path looked up.
#[derive(Debug, Clone)]
pub(crate) struct PreparedWall {
    around: SessionWall,
    hide: Vec<PathBuf>,
    keep: Vec<PathBuf>,
    /// The agent is going to be root.
    is_root: bool,
}

/// The data directory is not the one that the server was started with: put that back, or start the server again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} is not the directory that the server was started with; put that back, or start the server again",
    .0.display()
)]
pub(crate) struct DataReplaced(PathBuf);

impl PreparedWall {
    /// Looks everything up, in the supervisor.
    pub(crate) fn new(around: &SessionWall) -> Result<Self, DataReplaced> {
        if around.kind != WallKind::Off
            && let Some(data) = &around.data
            && !data.is_in_place()
        {
            return Err(DataReplaced(data.path.clone()));
        }
        let there = |paths: &[PathBuf]| -> Vec<PathBuf> {
            let mut all: Vec<_> = paths.iter().filter_map(|path| path.canonicalize().ok()).collect();
            all.sort();
            all.dedup();
            all
        };
        let is_root = around.os_user.is_none() && rustix::process::geteuid().is_root();
        let mut hide = around.hide.clone();
        if is_root {
            hide.extend(ROOT_STARTERS.map(PathBuf::from));
            hide.extend(mounts::disks());
        }
        let (hide, keep) = (there(&hide), there(&around.keep));
        Ok(Self { around: around.clone(), hide, keep, is_root })
    }

    /// Raises the wall around this process, for good. Only in a process with one thread, which is about to be the agent.
    pub(crate) fn enforce(&self) -> io::Result<()> {
        let kind = self.around.kind;
        let covered = match kind {
            WallKind::Auto | WallKind::Mounts => self.cover(),
            WallKind::Landlock | WallKind::Off => Err(io::ErrorKind::Unsupported.into()),
        };
        if let Err(why) = &covered
            && kind == WallKind::Mounts
        {
            return Err(said("the wall around it cannot be made by mounts, as [wall] wants", why));
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
        let enforced =
            if hides { landlock_rules::hide(&self.hide, &self.keep)? } else { landlock_rules::bound()? };
        let stands = !hides || enforced;
        match lacks(kind, self.around.must, stands) {
            Some(what) => Err(said(what, &io::ErrorKind::Unsupported.into())),
            None => Ok(()),
        }
    }

    fn cover(&self) -> io::Result<()> {
        // A namespace of users knows one user only: who is going to be another cannot have one, and root loses the others.
        let with_users = !rustix::process::geteuid().is_root() && self.around.os_user.is_none();
        mounts::separate(with_users)?;
        mounts::cover(&self.hide, &self.keep)?;
        mounts::fix(self.is_root);
        Ok(())
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

//! The engine's port `Ground`: the directories of this machine, as sessions may act in them.

use std::path::Path;

use engine::{Ground, GroundError, NoGround};
use kernel::{GroundPath, SessionId};

use crate::directory_check::{check_directory, why_not_beneath};
use crate::session_directory::SessionDirectories;

/// The directories of this machine. A session that named none gets one of its own in the data directory.
#[derive(Debug)]
pub struct LocalGround {
    directories: SessionDirectories,
}

impl LocalGround {
    /// Around a data directory, which is there.
    pub fn of(data: &Path) -> Self {
        Self { directories: SessionDirectories::of(data) }
    }
}

impl Ground for LocalGround {
    fn check(&self, directory: &str) -> Result<GroundPath, GroundError> {
        let directory =
            check_directory(Path::new(directory)).map_err(|why| GroundError::Unfit(why.to_string()))?;
        match self.directories.is_ours(Path::new(&directory)) {
            true => Err(inside(&directory)),
            false => Ok(directory.into()),
        }
    }

    fn why_not(&self, root: &str, directory: &str) -> Option<GroundError> {
        if self.directories.is_named_ours(Path::new(directory)) {
            return Some(inside(directory));
        }
        let (root, directory) = (Path::new(root), Path::new(directory));
        why_not_beneath(root, directory).map(|why| GroundError::Unfit(why.to_string()))
    }

    fn own(&self, session: SessionId) -> GroundPath {
        GroundPath::from(&*self.directories.work().join(session.to_string()).to_string_lossy())
    }

    fn look(&self, directory: &GroundPath) -> Result<(), NoGround> {
        self.directories.hold(directory).map(drop)
    }

    fn prepare(&self, directory: &GroundPath) -> Result<GroundPath, GroundError> {
        let held = self.directories.hold(directory)?;
        if self.directories.is_own(directory) {
            let made = self.directories.make_own(directory);
            made.map_err(|why| GroundError::Failed(format!("{}: {why}", directory.for_readers())))?;
        }
        Ok(held.recheck(held.true_name())?)
    }
}

fn inside(directory: &str) -> GroundError {
    GroundError::Unfit(format!("{directory} is inside of Homing's own directory, which agents do not see"))
}

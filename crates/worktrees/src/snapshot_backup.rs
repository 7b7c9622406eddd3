//! The snapshots of everybody on this machine, beside a backup of the database: copied into a directory, and put back.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::TreesError;
use kernel::SessionId;

use crate::git::LeftInRepository;
use crate::session_trees::{GitTrees, own_places};

/// The longest that a copy of what a turn reaches may take, which holds a store meanwhile.
const WAIT_MAX: Duration = Duration::from_secs(330);

/// Copies all snapshots below a data directory into a new directory. Gives the number of repositories they are of; with none there
/// is no directory either.
pub async fn back_up_snapshots(data: &Path, to: &Path) -> Result<usize, TreesError> {
    let mut count = 0;
    for place in places(data) {
        let Ok(within) = place.strip_prefix(data) else { continue };
        count += GitTrees::open_waiting(data, &place, WAIT_MAX)?.back_up(&to.join(within)).await?;
    }
    Ok(count)
}

/// Adds to a data directory what is missing there of such a copy. Gives the number of repositories.
pub fn put_back_snapshots(data: &Path, from: &Path) -> Result<usize, TreesError> {
    let mut count = 0;
    for place in places(from) {
        let Ok(within) = place.strip_prefix(from) else { continue };
        count += GitTrees::put_back(data, &data.join(within), &place)?;
    }
    Ok(count)
}

/// Snapshots that are still on refs of people's repositories, because something of them is missing there.
pub fn snapshots_left_behind(data: &Path) -> Result<Vec<LeftInRepository>, TreesError> {
    let mut left = Vec::new();
    for place in places(data) {
        left.extend(GitTrees::open_waiting(data, &place, WAIT_MAX)?.left_behind());
    }
    Ok(left)
}

/// The repositories whose snapshots take more than they may: the oldest have gone, or no more are copied.
pub fn crowded_snapshots(data: &Path) -> Result<CrowdedSnapshots, TreesError> {
    let mut crowded = CrowdedSnapshots::default();
    for place in places(data) {
        let trees = GitTrees::open_waiting(data, &place, WAIT_MAX)?;
        crowded.repositories.extend(trees.crowded());
        crowded.sessions.extend(trees.bounded_sessions());
    }
    Ok(crowded)
}

/// Those of which snapshots went because there were too many.
#[derive(Debug, Default)]
pub struct CrowdedSnapshots {
    /// Repositories that have, or had, more than may be kept of one.
    pub repositories: Vec<PathBuf>,
    /// Sessions whose owner had more than may be kept of a person.
    pub sessions: Vec<SessionId>,
}

/// Those that have snapshots.
fn places(data: &Path) -> Vec<PathBuf> {
    own_places(data)
        .into_iter()
        .filter(|place| fs::symlink_metadata(place.join("snapshots")).is_ok())
        .collect()
}

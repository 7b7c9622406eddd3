//! The directories that sessions act in, for the engine.
//!
//! The engine's port `Trees` is `worker`: everything that touches a session's ground is done by a process behind that
//! session's wall, in which `session_trees` does it by the real git (`git`); what the server reads of its records is `session_trees/recorded`. `session_ground` is the port `Ground`. Both hold a
//! directory to its name first (`session_directory`); `directory_check` looks at one before a session is made in it. `seen_notes`
//! is what lists of worktrees show, and `repositories` what has to be there besides a session's directory.
//! `snapshot_backup` copies snapshots for a backup, and puts them back.

mod directory_check;
pub mod git;
mod repositories;
mod seen_notes;
mod session_directory;
mod session_ground;
mod session_trees;
mod snapshot_backup;
mod worker;

pub use repositories::WorktreeRecords;
pub use session_ground::LocalGround;
pub use snapshot_backup::{
    CrowdedSnapshots, back_up_snapshots, crowded_snapshots, put_back_snapshots, snapshots_left_behind,
};
pub use worker::{GroundWorkers, WorkerSetup, ground_worker};

//! The directories that sessions act in, for the engine.
//!
//! The engine's port `Trees` is `worker`: everything that touches a session's ground is done by a process behind that
//! session's wall, in which `session_trees` does it by the real git (`git`). `session_ground` is the port `Ground`. Both hold a
//! directory to its name first (`session_directory`); `directory_check` looks at one before a session is made in it. `seen_notes`
//! is what lists of worktrees show.

mod directory_check;
pub mod git;
mod seen_notes;
mod session_directory;
mod session_ground;
mod session_trees;
mod worker;

pub use session_ground::LocalGround;
pub use worker::{GroundWorkers, WorkerSetup, ground_worker};

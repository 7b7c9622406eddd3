//! The directories that sessions act in, for the engine.
//!
//! `session_trees` and `session_ground` are the engine's ports `Trees` and `Ground`; both hold a directory to its name first
//! (`session_directory`). Below them: `git` makes worktrees and snapshots by the real git, `directory_check` looks at a directory
//! before a session is made in it.

mod directory_check;
pub mod git;
mod session_directory;
mod session_ground;
mod session_trees;

pub use session_ground::LocalGround;
pub use session_trees::GitTrees;

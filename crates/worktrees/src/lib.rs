//! The directories that sessions act in: worktrees and snapshots by the real git (`git`), and whether a directory can be acted
//! in at all (`directory_check`).

pub mod directory_check;
pub mod git;

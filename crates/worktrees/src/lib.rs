//! The directories that sessions act in: worktrees and snapshots by the real git (`git`), and whether a directory can be acted
//! in at all (`ground`).

pub mod git;
pub mod ground;

//! The far side of a process boundary.
//!
//! Read in this order: `supervisor` (the small process between us and each running agent), `tree` (our end of it),
//! `bury` (how we make sure that nothing of a session is left), `spoken` (an agent that talks in lines, as a
//! `Running`), `keep` (processes that wait for the next turn), `survey` (questions with options), `shell` (what all drivers of real programs share), then a
//! folder per agent: `claude`, `codex`, `opencode`, `acp`, `command`, `scripted`. Below them: `hunt`, `group` and `lock` find, hold and end the
//! processes of an attempt; `wall` is what an agent must not see. `git` makes worktrees and snapshots. `ground` looks at directories before a session is made in one. Nothing here touches a store.

pub mod acp;
mod bury;
pub mod claude;
pub mod codex;
pub mod command;
pub mod git;
pub mod ground;
mod group;
mod hunt;
mod keep;
mod lines;
mod lock;
pub mod opencode;
mod scripted;
mod shell;
mod spoken;
mod supervisor;
mod survey;
mod tree;
pub mod wall;

pub use bury::bury;
pub use hunt::count_marked;
pub use scripted::{Scripted, ScriptedConfig, scripted_agent};
pub use shell::{ShellConfig, TurnLimits};
pub use supervisor::frame::Limit;
pub use supervisor::supervise;
pub use tree::{Count, Exit, Plan, Tree, TreeEvent};

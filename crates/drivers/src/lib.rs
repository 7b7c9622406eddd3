//! The far side of a process boundary.
//!
//! Read in this order: `supervisor` (the small process between us and each running agent), `tree` (our end of it),
//! `bury` (how we make sure that nothing of an attempt is left), `spoken` (an agent that talks in lines, as a
//! `Running`), then a folder per agent: `scripted`. Below them: `hunt`, `group` and `lock` find, hold and end the
//! processes of an attempt. `ground` looks at directories before a session is made in one. Nothing here touches a store.

mod bury;
pub mod ground;
mod group;
mod hunt;
mod lock;
mod scripted;
mod spoken;
mod supervisor;
mod tree;

pub use bury::bury;
pub use hunt::count_marked;
pub use scripted::{Scripted, ScriptedConfig, scripted_agent};
pub use supervisor::supervise;
pub use tree::{Exit, Plan, Tree, TreeEvent};

//! Processes that are started, held and ended as one tree, and the wall around them.
//!
//! Read in this order: `supervisor` (the small process between us and each running agent), `tree` (our end of it), `bury`
//! (how we make sure that nothing of a session is left). Below them: `hunt`, `group` and `lock` find, hold and end the processes
//! of an attempt; `wall` is what an agent must not see. Nothing here knows what the program says.

mod bury;
mod group;
mod hunt;
mod lock;
mod supervisor;
mod tree;
pub mod wall;

pub use bury::bury;
pub use hunt::count_marked;
pub use supervisor::frame::{Limit, PIECE_BYTES_MAX};
pub use supervisor::supervise;
pub use tree::{Count, Exit, INPUT_WAIT, Plan, SILENCE_MS_MAX, Tree, TreeEvent};

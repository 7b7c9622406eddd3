//! Processes that are started, held and ended as one tree, and the wall around them.
//!
//! Read in this order: `supervisor` (the small process between us and each running agent), `tree` (our end of it), `spare` (one that
//! waits ready), `end_tree` (how we make sure that nothing of a session is left). Below them: `reaper`, `control_group` and `lock` find, hold and end the processes
//! of an attempt; `process_list` says for people what runs, `wall` is what an agent must not see, `passing` how descriptors travel. `program_path` finds programs; `start_code` is about our own process alone. Nothing here knows what the program says.

mod control_group;
mod end_tree;
mod error;
mod lock;
mod passing;
mod process_list;
mod program_path;
mod reaper;
mod spare;
mod start_code;
mod supervisor;
mod tree;
pub mod wall;

pub use end_tree::{EndedTree, end_tree};
pub use error::ProcessError;
pub use process_list::{COMMAND_BYTES_MAX, LISTED_MAX, ListedProcess, ProcessList};
pub use program_path::{PATH_FALLBACK, find_program};
pub use reaper::count_marked;
pub use spare::SpareSupervisor;
pub use start_code::release_start_code;
pub use supervisor::frame::{PIECE_BYTES_MAX, ResourceLimit};
pub use supervisor::supervise;
pub use tree::{INPUT_WAIT, ProcessCount, ProcessTree, SILENCE_MS_MAX, TreeEvent, TreeExit, TreePlan};

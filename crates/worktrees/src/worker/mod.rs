//! The ground worker: whatever touches a session's directory or its repository is done by it, and not by the server.
//!
//! A session's directory is its agent's: it may hold links to anywhere, pipes that never end, files of any size, a repository
//! that lies. So the server sets no foot on it. `workers` is the server's side: it starts our own program under a
//! supervisor, behind the session's wall and as the session's user, with bounds on memory, processes and time, asks it by
//! the lines of `protocol`, and ends it when it has rested for a while. `serve` is that program, and `written` its bounds on what a call
//! writes.

mod protocol;
mod serve;
mod workers;
mod written;

pub(crate) use protocol::SeenForm;
pub use serve::ground_worker;
pub use workers::{GroundWorkers, WorkerSetup};

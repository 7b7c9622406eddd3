//! For tests only: the real binary as a test sees it from outside.
//!
//! Read in this order: `homing` (start it, kill it, start it again, run its commands), `http` (ask it, by raw JSON), `sse`
//! (follow it), `terminal` (somebody at a terminal), `agent_log` (what the scripted agent says really ran), `leftovers` (processes that should be gone), `certificate`,
//! `port` (an address that stays its own), `poor_kernel` (one that lacks what walls are made of), `model` (a model server without a model), `stage` (a real agent with a home of its own in front of it), `browser` (as
//! much of one as signing in takes), `provider` (a real identity provider) and `chat` (a chat service that is none).
//! Everything is blocking and uses threads, so that a test is read from top to bottom. Nothing here knows a type of ours:
//! what a test sees is what any program would see. Helpers panic with what they saw; they are for tests alone.

mod agent_fixture;
mod agent_log;
mod agents_table;
mod browser;
mod certificate;
mod chat;
mod homing;
mod http;
mod leftovers;
mod model;
mod poor_kernel;
mod port;
mod provider;
mod sse;
mod terminal;

pub use agent_fixture::{AgentFixture, RealAgent};
pub use agent_log::{AgentLogLine, agent_log};
pub use agents_table::{AgentsTable, row_of};
pub use browser::{Browser, Page};
pub use certificate::{Authority, Signed};
pub use chat::{ChatAnswer, ChatBehaviour, ChatService, Post};
pub use homing::{CommandOutput, Homing, Setup};
pub use http::{Http, HttpAnswer};
pub use leftovers::{Leftover, agent_below, leftovers, number_outside, parent_of, spare_of};
pub use model::{ModelRequest, Protocol, RequestPurpose, StubModel};
pub use poor_kernel::{lose_landlock, lose_namespaces, lose_namespaces_of_processes, lose_walls};
pub use port::Port;
pub use provider::Provider;
pub use sse::{EventStream, StreamEvent};
pub use terminal::{ShownPiece, Terminal, TerminalSize, replayed};

use std::time::{Duration, Instant};

/// The longest that any wait in a test may take before the test fails. Generous: the machine may be busy.
pub const WAIT_MAX: Duration = Duration::from_secs(30);

/// The time between two looks of `eventually`.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// Looks until there is something, or fails the test. For what can only be seen by looking, such as processes.
pub fn eventually<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    eventually_within(WAIT_MAX, what, look)
}

/// The same, for what may take longer.
pub fn eventually_within<T>(wait_max: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(began.elapsed() < wait_max, "waited {wait_max:?} in vain: {what}");
        std::thread::sleep(LOOK_PAUSE);
    }
}

/// Lets this process have as many open files as the system allows: some tests hold thousands of connections.
pub fn allow_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("more files");
}

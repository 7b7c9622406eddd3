//! What the engine needs from the world besides stores and agents: the time, fresh ids, and firm ground.
//!
//! They are ports so that the simulation can run the whole engine from one seed.

use kernel::{Moment, SessionId};
use std::fmt::Debug;

/// What time it is.
pub trait Clock: Debug + Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Moment;
}

/// Where fresh ids come from.
pub trait Mint: Debug + Send + Sync + 'static {
    /// 128 bits that nobody has had before; later ones are greater, so that rows stay in order.
    fn bits(&self) -> u128;
}

/// Where sessions may stand.
pub trait Ground: Debug + Send + Sync + 'static {
    /// The canonical form of a directory that a session is to work in, or why it cannot.
    fn check(&self, directory: &str) -> Result<String, String>;
    /// The name of a directory of its own, for a session that named none.
    fn own(&self, session: SessionId) -> String;
    /// Called before an agent starts there: makes a session's own directory, or says why there is none.
    fn prepare(&self, directory: &str) -> Result<(), String>;
}

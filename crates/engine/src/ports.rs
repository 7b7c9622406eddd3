//! What the engine needs from the world besides stores and agents: the time, fresh ids, firm ground, and a seal.
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

/// Keeps secret what lies in the store. The key lies elsewhere.
pub trait Seal: Debug + Send + Sync + 'static {
    /// Seals it, so that only `open` with the same `about` gives it back; or says why it cannot.
    fn seal(&self, about: &str, plain: &[u8]) -> Result<Vec<u8>, String>;
    /// What was sealed. None if it was sealed with another key or about something else, or is not what was sealed.
    fn open(&self, about: &str, sealed: &[u8]) -> Option<Vec<u8>>;
}

//! What the engine needs from the world besides stores and agents: the time, fresh ids, firm ground, a seal, a way for
//! agents to call back, and the proof of the wall around them.
//!
//! They are ports so that the simulation can run the whole engine from one seed.

use crate::Secret;
use kernel::{Moment, SessionId};
use std::fmt::Debug;
use std::pin::Pin;
use store::ChainKey;

/// What time it is.
pub trait Clock: Debug + Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Moment;
}

/// Where fresh ids and secrets come from.
pub trait Mint: Debug + Send + Sync + 'static {
    /// 128 bits that nobody has had before; later ones are greater, so that rows stay in order.
    fn bits(&self) -> u128;
    /// 32 bytes that nobody can guess.
    fn secret(&self) -> [u8; 32];
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

/// Keeps secret what lies in the store, and makes the seals of the audit. The key lies elsewhere.
pub trait Seal: Debug + Send + Sync + 'static {
    /// Seals it, so that only `open` with the same `about` gives it back; or says why it cannot.
    fn seal(&self, about: &str, plain: &[u8]) -> Result<Vec<u8>, String>;
    /// What was sealed. None if it was sealed with another key or about something else, or is not what was sealed.
    fn open(&self, about: &str, sealed: &[u8]) -> Option<Vec<u8>>;
    /// What the audit is chained with. The same each time, as long as the key is.
    fn chain_key(&self) -> ChainKey;
}

/// How the agent of a session finds us, and the credential of the turn that is under way.
///
/// The credential lies in a file of the session's own: a kept process outlives the turn whose environment it was given.
pub trait CallBack: Debug + Send + Sync + 'static {
    /// Puts the secret in the place of the one before, and says which variables let the agent find it.
    fn open(&self, session: SessionId, secret: &Secret) -> Result<Vec<(String, String)>, String>;
    /// Takes it away. Nothing depends on it: the secret is good only while its turn is under way.
    fn close(&self, session: SessionId);
}

/// Whether agents are kept from what is not theirs: our data, other people's homes and sign-ins.
pub trait Wall: Debug + Send + Sync + 'static {
    /// Tries it out from inside. May take a while.
    fn prove(&self) -> Pin<Box<dyn Future<Output = Proof> + Send + '_>>;
}

/// What came of trying the wall.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proof {
    /// Whether nothing got through.
    pub proved: bool,
    /// What was tried and found, for people.
    pub findings: Vec<String>,
}

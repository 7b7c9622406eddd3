//! Pushes: where somebody wants to be told of what happens while they look elsewhere. Each belongs to the credential that asked
//! for it, and goes with it.

use crate::Trail;
use kernel::{Moment, PersonId, TokenId};
use std::fmt;

/// The pushes that one person may have; with one more, the oldest goes.
pub const PUSHES_MAX: usize = 20;

/// The place of a browser at its push service, and the keys for what only that browser can read.
#[derive(Clone, PartialEq, Eq)]
pub struct PushPlace {
    /// The address at the push service. Whoever knows it and our key can send there.
    pub endpoint: String,
    /// The browser's public key, a point of P-256, not compressed.
    pub p256dh: Vec<u8>,
    /// The secret that the browser shares with us.
    pub auth: Vec<u8>,
}

/// Nothing that lets somebody send there.
impl fmt::Debug for PushPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushPlace").finish_non_exhaustive()
    }
}

/// A place where somebody is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushRow {
    /// The credential that it belongs to.
    pub token: TokenId,
    pub person: PersonId,
    pub place: PushPlace,
    pub since: Moment,
}

/// A wish to be told there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPush {
    pub place: PushPlace,
    /// The trail for the audit entry.
    pub trail: Trail,
}

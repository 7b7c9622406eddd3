//! The marks that a person has put on a session for themselves: how far they have seen it, and whether it is pinned.
//!
//! Nobody else reads them, no keeper hears of them, and they are no act upon the session: there is no fact of them, and no audit
//! entry but of a refusal.

use crate::{Key, Trail};
use kernel::{Number, SessionId};

/// Somebody's own marks on a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marks {
    /// The number of the last fact that they have seen; 0 if none.
    pub seen: Number,
    /// True if they keep it at hand.
    pub pinned: bool,
}

impl Marks {
    /// The marks after a change of them, in a session whose log is so long: what was seen is never unseen, and nobody has seen what
    /// is not there.
    pub fn changed(self, seen: Option<Number>, pinned: Option<bool>, at: Number) -> Self {
        let seen = seen.map_or(self.seen, |seen| self.seen.max(seen.min(at)));
        Self { seen, pinned: pinned.unwrap_or(self.pinned) }
    }
}

/// Changes somebody's own marks on a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The session.
    pub session: SessionId,
    /// The number up to which they have seen it, if that is news.
    pub seen: Option<Number>,
    /// Pinned or not, if anything.
    pub pinned: Option<bool>,
    /// The key that makes a repetition harmless.
    pub key: Option<Key>,
    /// The trail for the audit entry of a refusal.
    pub trail: Trail,
}

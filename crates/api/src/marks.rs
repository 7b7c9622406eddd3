//! Marks: what somebody notes about a session for themselves.

use crate::Invalid;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Your own marks on a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Marks {
    /// The number of the last fact that you have seen; 0 if none.
    pub seen: u64,
    /// True if you keep it at hand.
    pub pinned: bool,
}

/// A change of your own marks on a session: at least one of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MarksChange {
    /// The number of the last fact that you have seen. A lower one than before changes nothing, a higher one than the last fact's counts
    /// as that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<u64>,
    /// Pinned or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
}

impl MarksChange {
    /// Checks that there is something to note, and that it is a number of the form that the contract says.
    pub fn check(&self) -> Result<(), Invalid> {
        if *self == Self::default() {
            return Err(Invalid { field: "seen", reason: "name it, or `pinned`".to_owned() });
        }
        if self.seen.is_some_and(|seen| i64::try_from(seen).is_err()) {
            return Err(Invalid { field: "seen", reason: format!("at most {}", i64::MAX) });
        }
        Ok(())
    }
}

//! The asker, as they are in the transaction that writes.

use crate::Rejection;
use kernel::people::is_fresh;
use kernel::{Moment, Principal};

/// The rows of whoever asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskerRow {
    /// The credential that they came with; none if they came without one, or it is not there any more.
    pub credential: Option<CredentialRow>,
    /// The person's standing; none if they cannot come in: they are disabled, were only heard of, or are nobody.
    pub standing: Option<u64>,
    /// The principal as it is now, with its credential. Read only where the standing is another than the caller's.
    pub principal: Option<Principal>,
}

/// The row that decides whether a credential is good at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CredentialRow {
    /// When it was made.
    pub made_at: Moment,
    /// Until when it is good at most.
    pub expires: Option<Moment>,
    /// For how long it may lie unused.
    pub idle_ms_max: Option<u64>,
    /// When it was last used, as far as that is written down.
    pub last_used: Option<Moment>,
    /// It is for one turn, which is over.
    pub is_over: bool,
}

impl CredentialRow {
    /// True if it is good at this moment.
    pub fn is_good(&self, now: Moment) -> bool {
        let Self { made_at, expires, idle_ms_max, last_used, is_over } = *self;
        !is_over && is_fresh(made_at, expires, idle_ms_max, last_used, now)
    }
}

/// The principal as it is now: the caller's own while the standing is the same, because it grows with each change of
/// anything that a principal says.
pub fn asker<'a>(row: &'a AskerRow, by: &'a Principal, now: Moment) -> Result<&'a Principal, Rejection> {
    // Homing itself is always as it was.
    if by.is_house() {
        return Ok(by);
    }
    if by.credential.is_some() && !row.credential.is_some_and(|credential| credential.is_good(now)) {
        return Err(Rejection::Unauthenticated);
    }
    match row.standing {
        None => Err(Rejection::Unauthenticated),
        Some(standing) if standing == by.standing => Ok(by),
        Some(_) => row.principal.as_ref().ok_or(Rejection::Unauthenticated),
    }
}

//! Sign-ins that somebody has begun at the provider and not finished. Pure: the caller says what time it is.
//!
//! Each is found by its `state`, works once and in the browser that began it only, for ten minutes. There are never more
//! than a fixed number of them; the oldest goes first.

use openidconnect::{Nonce, PkceCodeVerifier};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The longest that somebody may take at the provider.
pub(crate) const PENDING_MAX: Duration = Duration::from_secs(10 * 60);
/// The most that may be under way at once. Each takes a few hundred bytes; who floods us is slowed down by the limiter
/// first.
const PENDING_COUNT_MAX: usize = 1_024;

/// The secrets of a sign-in until the browser comes back.
pub(super) struct PendingSignIn {
    /// The nonce that the token has to name.
    pub(super) nonce: Nonce,
    /// The proof to the provider that the code was meant for us.
    pub(super) verifier: PkceCodeVerifier,
    /// Where the browser was told to come back to.
    pub(super) redirect: String,
}

/// All of them, the oldest first.
#[derive(Default)]
pub(super) struct PendingSignIns(VecDeque<PendingEntry>);

struct PendingEntry {
    state: [u8; 32],
    browser: [u8; 32],
    since: Instant,
    waiting: PendingSignIn,
}

impl PendingSignIns {
    /// Keeps one. `browser` is the secret in that browser's cookie.
    pub(super) fn keep(&mut self, state: &str, browser: &str, waiting: PendingSignIn, now: Instant) {
        self.forget_old(now);
        if self.0.len() >= PENDING_COUNT_MAX {
            self.0.pop_front();
        }
        self.0.push_back(PendingEntry { state: hash(state), browser: hash(browser), since: now, waiting });
    }

    /// Takes one away: whoever comes back has spent it, with the wrong cookie, too. None if it was not begun in that
    /// browser, or not lately.
    pub(super) fn take(&mut self, state: &str, browser: Option<&str>, now: Instant) -> Option<PendingSignIn> {
        self.forget_old(now);
        let state = hash(state);
        let index = self.0.iter().position(|one| one.state == state)?;
        let one = self.0.remove(index)?;
        (browser.map(hash) == Some(one.browser)).then_some(one.waiting)
    }

    fn forget_old(&mut self, now: Instant) {
        while self.0.front().is_some_and(|one| now.duration_since(one.since) >= PENDING_MAX) {
            self.0.pop_front();
        }
    }
}

/// Secrets are compared by their hashes, so that the time it takes tells nothing of them.
fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting() -> PendingSignIn {
        let verifier = PkceCodeVerifier::new("v".repeat(43));
        PendingSignIn { nonce: Nonce::new("n".into()), verifier, redirect: "http://127.0.0.1/back".into() }
    }

    #[test]
    fn a_sign_in_is_finished_once_and_by_the_browser_that_began_it() {
        let (mut pending, now) = (PendingSignIns::default(), Instant::now());
        pending.keep("state", "mine", waiting(), now);
        assert!(pending.take("other", Some("mine"), now).is_none());
        assert!(pending.take("state", Some("mine"), now).is_some());
        assert!(pending.take("state", Some("mine"), now).is_none(), "it is spent");
        for browser in [Some("yours"), Some(""), None] {
            pending.keep("state", "mine", waiting(), now);
            assert!(pending.take("state", browser, now).is_none());
            assert!(pending.take("state", Some("mine"), now).is_none(), "a leaked address is spent");
        }
    }

    #[test]
    fn who_takes_too_long_begins_again() {
        let (mut pending, now) = (PendingSignIns::default(), Instant::now());
        pending.keep("state", "mine", waiting(), now);
        let almost = now + PENDING_MAX - Duration::from_millis(1);
        pending.keep("later", "mine", waiting(), almost);
        assert!(pending.take("state", Some("mine"), now + PENDING_MAX).is_none());
        assert!(pending.take("later", Some("mine"), now + PENDING_MAX).is_some());
    }

    #[test]
    fn there_are_never_more_than_so_many() {
        let (mut pending, now) = (PendingSignIns::default(), Instant::now());
        for number in 0..=PENDING_COUNT_MAX {
            pending.keep(&format!("state {number}"), "mine", waiting(), now);
        }
        assert_eq!(pending.0.len(), PENDING_COUNT_MAX);
        assert!(pending.take("state 0", Some("mine"), now).is_none(), "the oldest went");
        assert!(pending.take("state 1", Some("mine"), now).is_some());
    }
}

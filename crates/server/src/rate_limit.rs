//! Rate limits: a bucket for each who asks, in bounded memory.
//!
//! A bucket is one number, the moment at which it will be full again. Who takes from it moves that moment on; who would
//! move it further ahead than the bucket is deep has to wait.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Buckets that are kept. When there are more, the fuller half is forgotten: those who have asked least.
const BUCKETS_MAX: usize = 16_384;

/// The time after which it is worth asking again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RetryAfter(pub(crate) Duration);

impl RetryAfter {
    /// In whole seconds, as `Retry-After` wants it.
    pub(crate) fn seconds(self) -> u64 {
        self.0.as_secs() + u64::from(self.0.subsec_nanos() > 0)
    }
}

/// A rate limit: buckets of one size, by whom they belong to.
#[derive(Debug)]
pub(crate) struct RateLimiter<K> {
    /// The share that one request takes; nothing at all if there is no limit.
    each: Option<Duration>,
    /// The most that may be taken at once.
    depth: Duration,
    full_at: Mutex<HashMap<K, Instant>>,
}

impl<K: Hash + Eq + Clone> RateLimiter<K> {
    /// `count` in each `span` and, after a rest, `burst` at once. A count of 0 is no limit.
    pub(crate) fn new(count: u32, span: Duration, burst: u32) -> Self {
        let each = (count > 0).then(|| span / count);
        let depth = each.unwrap_or_default().saturating_mul(burst);
        Self { each, depth, full_at: Mutex::default() }
    }

    /// Takes one, or says when there will be one.
    pub(crate) fn take(&self, whose: &K, now: Instant) -> Result<(), RetryAfter> {
        let Some(each) = self.each else { return Ok(()) };
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let before = full_at.get(whose).copied().unwrap_or(now).max(now);
        let after = before + each;
        let deepest = now + self.depth;
        if after > deepest {
            return Err(RetryAfter(after - deepest));
        }
        if full_at.len() >= BUCKETS_MAX && !full_at.contains_key(whose) {
            forget_half(&mut full_at, now);
        }
        full_at.insert(whose.clone(), after);
        Ok(())
    }

    /// Gives one back: it turned out not to count.
    pub(crate) fn give_back(&self, whose: &K) {
        let Some(each) = self.each else { return };
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = full_at.get_mut(whose) {
            *at = at.checked_sub(each).unwrap_or(*at);
        }
    }
}

/// Forgets the full ones and, if that is not enough, those that are fullest. Whoever made room by filling us with names
/// has asked once for each, so the one who asks without end stays.
fn forget_half<K: Hash + Eq + Clone>(full_at: &mut HashMap<K, Instant>, now: Instant) {
    full_at.retain(|_, at| *at > now);
    if full_at.len() < BUCKETS_MAX / 2 {
        return;
    }
    let mut moments: Vec<Instant> = full_at.values().copied().collect();
    let middle = moments.len() / 2;
    let (_, middle, _) = moments.select_nth_unstable(middle);
    let middle = *middle;
    full_at.retain(|_, at| *at > middle);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn after_the_burst_it_goes_at_the_pace() {
        let (limiter, now) = (RateLimiter::new(10, SECOND, 50), Instant::now());
        for _ in 0..50 {
            limiter.take(&1, now).unwrap();
        }
        let RetryAfter(wait) = limiter.take(&1, now).unwrap_err();
        assert_eq!((wait, RetryAfter(wait).seconds()), (SECOND / 10, 1));
        limiter.take(&2, now).expect("another one has their own");
        let later = now + SECOND;
        assert_eq!((0..100).filter(|_| limiter.take(&1, later).is_ok()).count(), 10);
        let rested = later + 60 * SECOND;
        assert_eq!((0..100).filter(|_| limiter.take(&1, rested).is_ok()).count(), 50);
    }

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let (limiter, now) = (RateLimiter::new(1, SECOND, 1), Instant::now());
        limiter.take(&1, now).unwrap();
        assert!(limiter.take(&1, now).is_err());
        limiter.give_back(&1);
        limiter.take(&1, now).unwrap();
    }

    #[test]
    fn no_count_is_no_limit_and_costs_nothing() {
        let (limiter, now) = (RateLimiter::new(0, SECOND, 1), Instant::now());
        assert!((0..1_000).all(|who| limiter.take(&who, now).is_ok() && limiter.take(&who, now).is_ok()));
        assert!(limiter.full_at.lock().unwrap().is_empty());
    }

    #[test]
    fn a_crowd_of_others_does_not_make_us_forget_the_one_who_asks_without_end() {
        let (limiter, now) = (RateLimiter::new(10, SECOND, 50), Instant::now());
        while limiter.take(&usize::MAX, now).is_ok() {}
        for who in 0..3 * BUCKETS_MAX {
            limiter.take(&who, now).unwrap();
        }
        assert!(limiter.full_at.lock().unwrap().len() <= BUCKETS_MAX);
        assert!(limiter.take(&usize::MAX, now).is_err());
    }
}

//! The limit on tries to sign in. Whoever checks a password, a code or a link asks here first.
//!
//! Three bounds, from the sharpest to the mildest: who fails with one name from one address waits longer each time; an
//! address has so many tries in a minute, whatever the names; a name has so many in a minute from all the addresses from
//! which nobody has signed in with it. Nobody can be locked out for ever by somebody else's tries: where they have signed
//! in before, only their own failures count, and elsewhere a try comes free every few seconds.

use crate::rate_limit::{RateLimiter, RetryAfter};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Failures that cost nothing yet: typing is hard.
const FREE_FAILURES: u32 = 3;
/// The wait after the next one; it doubles each time …
const WAIT_FIRST: Duration = Duration::from_secs(1);
/// … up to this.
const WAIT_MAX: Duration = Duration::from_secs(5 * 60);
/// After so long without a failure everything is forgiven.
const FORGIVEN_AFTER: Duration = Duration::from_secs(30 * 60);
/// The time for which an address counts as one from which somebody signs in.
const GOOD_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Names at addresses that are remembered, of each sort.
const REMEMBERED_MAX: usize = 8_192;
/// The tries of a name from everywhere, as a multiple of those from one address.
const NAME_FACTOR: u32 = 3;

/// The limiter, with the tries of the last while.
#[derive(Debug)]
pub(crate) struct SignInLimiter {
    is_limited: bool,
    addresses: RateLimiter<IpAddr>,
    names: RateLimiter<LoginHash>,
    memory: Mutex<SignInHistory>,
}

/// The name that somebody typed, as a hash: of one length, whatever they typed.
type LoginHash = [u8; 16];

#[derive(Debug, Default)]
struct SignInHistory {
    failing: HashMap<(LoginHash, IpAddr), Failures>,
    good: HashMap<(LoginHash, IpAddr), Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

impl SignInLimiter {
    /// So many tries a minute for an address; 0 is no limit at all.
    pub(crate) fn new(per_minute: u32) -> Self {
        let minute = Duration::from_secs(60);
        let for_name = per_minute.saturating_mul(NAME_FACTOR);
        Self {
            is_limited: per_minute > 0,
            addresses: RateLimiter::new(per_minute, minute, per_minute),
            names: RateLimiter::new(for_name, minute, for_name),
            memory: Mutex::default(),
        }
    }

    /// Checks that they may try now. Every try that is let through ends in `failed` or `succeeded`. A link or a code
    /// that names nobody has no login.
    pub(crate) fn check(&self, address: IpAddr, login: Option<&str>) -> Result<(), RetryAfter> {
        self.check_at(address, login, Instant::now())
    }

    /// It was wrong.
    pub(crate) fn failed(&self, address: IpAddr, login: Option<&str>) {
        self.failed_at(address, login, Instant::now());
    }

    /// It was right, so it was no guess: nothing of it counts.
    pub(crate) fn succeeded(&self, address: IpAddr, login: Option<&str>) {
        self.succeeded_at(address, login, Instant::now());
    }

    /// It was refused before anything was compared, so it was no guess; what was wrong before still counts.
    pub(crate) fn given_up(&self, address: IpAddr, login: Option<&str>) {
        self.addresses.give_back(&network_of(address));
        if let Some(login) = login {
            self.names.give_back(&name_of(login));
        }
    }

    fn check_at(&self, address: IpAddr, login: Option<&str>, now: Instant) -> Result<(), RetryAfter> {
        let (address, name) = (network_of(address), login.map(name_of));
        let is_good = match name {
            Some(name) => self.memory().check(&(name, address), now)?,
            None => false,
        };
        self.addresses.take(&address, now)?;
        if let Some(name) = name.filter(|_| !is_good) {
            self.names.take(&name, now).inspect_err(|_| self.addresses.give_back(&address))?;
        }
        Ok(())
    }

    fn failed_at(&self, address: IpAddr, login: Option<&str>, now: Instant) {
        let Some(name) = login.map(name_of).filter(|_| self.is_limited) else { return };
        self.memory().failed((name, network_of(address)), now);
    }

    fn succeeded_at(&self, address: IpAddr, login: Option<&str>, now: Instant) {
        let address = network_of(address);
        self.addresses.give_back(&address);
        let Some(name) = login.map(name_of).filter(|_| self.is_limited) else { return };
        self.names.give_back(&name);
        self.memory().succeeded((name, address), now);
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, SignInHistory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SignInHistory {
    /// True if somebody has signed in like this before; else the wait after the failures since.
    fn check(&self, who: &(LoginHash, IpAddr), now: Instant) -> Result<bool, RetryAfter> {
        if let Some(failing) = self.failing.get(who) {
            let over = failing.last + wait_after(failing.count);
            if over > now {
                return Err(RetryAfter(over - now));
            }
        }
        Ok(self.good.get(who).is_some_and(|since| now.duration_since(*since) < GOOD_MAX))
    }

    fn failed(&mut self, who: (LoginHash, IpAddr), now: Instant) {
        if self.failing.len() >= REMEMBERED_MAX && !self.failing.contains_key(&who) {
            self.failing.retain(|_, failing| now.duration_since(failing.last) < FORGIVEN_AFTER);
            // Those who have failed least; whoever comes with a crowd of addresses has failed once with each.
            forget_half(&mut self.failing, |failing| (failing.count, failing.last));
        }
        let failing = self.failing.entry(who).or_insert(Failures { count: 0, last: now });
        if now.duration_since(failing.last) >= FORGIVEN_AFTER {
            failing.count = 0;
        }
        *failing = Failures { count: failing.count.saturating_add(1), last: now };
    }

    fn succeeded(&mut self, who: (LoginHash, IpAddr), now: Instant) {
        self.failing.remove(&who);
        if self.good.len() >= REMEMBERED_MAX && !self.good.contains_key(&who) {
            forget_half(&mut self.good, |since| *since);
        }
        self.good.insert(who, now);
    }
}

/// Forgets the lower half, if there is still no room.
fn forget_half<V, O: Ord + Copy>(all: &mut HashMap<(LoginHash, IpAddr), V>, order: impl Fn(&V) -> O) {
    if all.len() < REMEMBERED_MAX {
        return;
    }
    let mut orders: Vec<O> = all.values().map(&order).collect();
    let middle = orders.len() / 2;
    let (_, middle, _) = orders.select_nth_unstable(middle);
    let middle = *middle;
    all.retain(|_, value| order(value) > middle);
}

fn wait_after(failures: u32) -> Duration {
    match failures.checked_sub(FREE_FAILURES + 1) {
        None => Duration::ZERO,
        Some(doublings) => WAIT_FIRST.saturating_mul(1 << doublings.min(20)).min(WAIT_MAX),
    }
}

/// The network that counts as one caller: who has one address of the newer protocol usually has a whole /64 of them.
pub(crate) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        address @ IpAddr::V4(_) => address,
    }
}

fn name_of(login: &str) -> LoginHash {
    let hash: [u8; 32] = Sha256::digest(login.trim().to_lowercase().as_bytes()).into();
    let (half, _) = hash.split_at(16);
    half.try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    #[test]
    fn an_address_has_so_many_tries_whatever_the_names() {
        let (limiter, now) = (SignInLimiter::new(10), Instant::now());
        let tries = (0..100).filter(|n| limiter.check_at(address(1), Some(&n.to_string()), now).is_ok());
        assert_eq!(tries.count(), 10);
        let RetryAfter(wait) = limiter.check_at(address(1), None, now).unwrap_err();
        assert_eq!(wait, 6 * SECOND);
        limiter.check_at(address(2), Some("1"), now).expect("another address");
        limiter.check_at(address(1), None, now + wait).expect("it says when");
    }

    #[test]
    fn a_house_with_many_addresses_counts_once() {
        let (limiter, now) = (SignInLimiter::new(10), Instant::now());
        let room = |n: u16| IpAddr::from([0x2001, 0xdb8, 0, 1, 0, 0, 0, n]);
        assert_eq!((0..100).filter(|n| limiter.check_at(room(*n), None, now).is_ok()).count(), 10);
        limiter.check_at([0x2001, 0xdb8, 0, 2, 0, 0, 0, 1].into(), None, now).expect("the next house");
        assert_eq!(network_of("::ffff:192.0.2.1".parse().unwrap()), address(1));
    }

    #[test]
    fn each_failure_with_a_name_costs_more_time_up_to_a_bound() {
        let limiter = SignInLimiter::new(1_000);
        let mut now = Instant::now();
        let mut waits = Vec::new();
        for _ in 0..16 {
            if let Err(RetryAfter(wait)) = limiter.check_at(address(1), Some("ann"), now) {
                waits.push(wait.as_secs());
                now += wait;
                limiter.check_at(address(1), Some(" ANN"), now).expect("it says when");
            }
            limiter.failed_at(address(1), Some("Ann"), now);
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
        limiter.check_at(address(1), Some("bob"), now).expect("another name");
        limiter.check_at(address(2), Some("ann"), now).expect("another address");
        let forgiven = now + FORGIVEN_AFTER;
        limiter.check_at(address(1), Some("ann"), forgiven).unwrap();
        limiter.failed_at(address(1), Some("ann"), forgiven);
        limiter.check_at(address(1), Some("ann"), forgiven).expect("the first failure again");
    }

    #[test]
    fn who_signs_in_has_not_guessed() {
        let (limiter, now) = (SignInLimiter::new(10), Instant::now());
        for _ in 0..3 {
            limiter.failed_at(address(1), Some("ann"), now);
        }
        for _ in 0..100 {
            limiter.check_at(address(1), Some("ann"), now).unwrap();
            limiter.succeeded_at(address(1), Some("ann"), now);
        }
    }

    #[test]
    fn a_crowd_that_guesses_a_name_cannot_lock_its_owner_out() {
        let (limiter, now) = (SignInLimiter::new(10), Instant::now());
        limiter.check_at(address(1), Some("ann"), now).unwrap();
        limiter.succeeded_at(address(1), Some("ann"), now);
        let crowd = |now: Instant| {
            let others = (0..=255).map(|n| IpAddr::from([198, 51, 100, n]));
            others.filter(|other| limiter.check_at(*other, Some("ann"), now).is_ok()).count()
        };
        assert_eq!(crowd(now), 30, "a name has so many tries from everywhere");
        limiter.check_at(address(1), Some("ann"), now).expect("they have signed in here before");
        let RetryAfter(wait) = limiter.check_at(address(9), Some("ann"), now).unwrap_err();
        assert!(wait <= 2 * SECOND, "and anywhere else it is their turn soon: {wait:?}");
        limiter.check_at(address(9), Some("bob"), now).expect("it is about one name");
    }

    #[test]
    fn a_crowd_of_names_does_not_make_us_forget_a_failing_one() {
        let (limiter, now) = (SignInLimiter::new(10), Instant::now());
        for _ in 0..10 {
            limiter.failed_at(address(1), Some("ann"), now);
        }
        for n in 0..3 * REMEMBERED_MAX {
            limiter.failed_at(address(2), Some(&n.to_string()), now);
        }
        assert!(limiter.memory().failing.len() <= REMEMBERED_MAX);
        assert!(limiter.check_at(address(1), Some("ann"), now).is_err());
    }

    #[test]
    fn no_limit_is_none() {
        let (limiter, now) = (SignInLimiter::new(0), Instant::now());
        for _ in 0..100 {
            limiter.check_at(address(1), Some("ann"), now).unwrap();
            limiter.failed_at(address(1), Some("ann"), now);
        }
    }
}

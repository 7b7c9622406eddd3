//! Turns due moments into inbox rows. One per node; a session that only waits for a moment costs a row and no memory.

use crate::Engine;
use kernel::Moment;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// Sessions woken in one transaction.
const WAKE_MAX: usize = 256;
/// The clock may jump: nobody sleeps longer than this without looking at it.
const SLEEP_MAX: Duration = Duration::from_secs(30);
/// After a failure of the store.
const AGAIN: Duration = Duration::from_millis(200);

/// What the timer waits for.
#[derive(Debug)]
pub(crate) struct Timer {
    /// The moment it sleeps until.
    next: AtomicU64,
    earlier: Notify,
}

impl Timer {
    pub(crate) fn new() -> Self {
        Self { next: AtomicU64::new(u64::MAX), earlier: Notify::new() }
    }

    /// Something is due at this moment; the timer must not oversleep it.
    pub(crate) fn expect(&self, moment: Moment) {
        if moment.0 < self.next.load(Ordering::Acquire) {
            self.earlier.notify_one();
        }
    }
}

pub(crate) fn start(engine: &Engine) {
    let timer = engine.clone();
    engine.spawn(async move {
        loop {
            if let Err(error) = round(&timer).await {
                tracing::warn!(%error, "the timer could not look what is due");
                tokio::time::sleep(AGAIN).await;
            }
        }
    });
}

async fn round(engine: &Engine) -> Result<(), store::StoreError> {
    let timer = engine.timer();
    let earlier = timer.earlier.notified();
    // From here on everybody tells us; what was written before, we read.
    timer.next.store(u64::MAX, Ordering::Release);
    let next = engine.store().next_wake().await?.unwrap_or(Moment(u64::MAX));
    timer.next.store(next.0, Ordering::Release);
    let wait = Duration::from_millis(next.0.saturating_sub(engine.now().0)).min(SLEEP_MAX);
    if !wait.is_zero() {
        let _ = tokio::time::timeout(wait, earlier).await;
    }
    let now = engine.now();
    if next <= now {
        for session in engine.store().wake(now, WAKE_MAX).await? {
            engine.keep(session);
        }
    }
    Ok(())
}

//! Turns due moments into inbox rows, and looks for inbox rows that nobody was rung for. One per node; a session that only
//! waits for a moment costs a row and no memory.

use crate::Engine;
use kernel::Moment;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use store::StoreError;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Sessions woken in one transaction.
const WAKE_MAX: usize = 256;
/// The clock may jump: nobody sleeps longer than this without looking at it.
const SLEEP_MAX: Duration = Duration::from_secs(30);
/// The time between two looks for what is in an inbox although nobody was rung for it: a ring may get lost.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// After a failure of the store.
const AGAIN: Duration = Duration::from_millis(200);

/// The wakes that the timer waits for.
#[derive(Debug)]
pub(crate) struct Timer {
    /// The moment it sleeps until.
    next: AtomicU64,
    earlier: Notify,
    /// True if something may have been put into an inbox that nobody was called for.
    unsure: AtomicBool,
}

impl Timer {
    pub(crate) fn new() -> Self {
        Self { next: AtomicU64::new(u64::MAX), earlier: Notify::new(), unsure: AtomicBool::new(false) }
    }

    /// Something is due at this moment; the timer must not oversleep it.
    pub(crate) fn expect(&self, moment: Moment) {
        if moment.0 < self.next.load(Ordering::Acquire) {
            self.earlier.notify_one();
        }
    }

    /// The store did not say whether it put something into an inbox: whatever has something in it is looked at.
    pub(crate) fn unsure(&self) {
        self.unsure.store(true, Ordering::Release);
        self.earlier.notify_one();
    }
}

pub(crate) fn start(engine: &Engine) {
    let timer = engine.clone();
    engine.spawn(async move {
        let mut looked_at = Instant::now();
        loop {
            if let Err(error) = round(&timer, &mut looked_at).await {
                tracing::warn!(%error, "the timer could not look what is due");
                tokio::time::sleep(AGAIN).await;
            }
        }
    });
}

async fn round(engine: &Engine, looked_at: &mut Instant) -> Result<(), StoreError> {
    let timer = engine.timer();
    let earlier = timer.earlier.notified();
    if timer.unsure.swap(false, Ordering::AcqRel) {
        engine.ring_unfinished().await.inspect_err(|_| timer.unsure.store(true, Ordering::Release))?;
    }
    if looked_at.elapsed() >= LOOK_EVERY {
        engine.ring_waiting().await?;
        *looked_at = Instant::now();
    }
    // From here on everybody tells us; what was written before, we read.
    timer.next.store(u64::MAX, Ordering::Release);
    let next = engine.store().next_wake().await?.unwrap_or(Moment(u64::MAX));
    timer.next.store(next.0, Ordering::Release);
    let look_in = LOOK_EVERY.saturating_sub(looked_at.elapsed());
    let wait = Duration::from_millis(next.0.saturating_sub(engine.now().0)).min(SLEEP_MAX).min(look_in);
    if !wait.is_zero() {
        let _ = tokio::time::timeout(wait, earlier).await;
    }
    let now = engine.now();
    if next <= now {
        let woken = engine.store().wake(now, WAKE_MAX).await;
        if let Err(StoreError::Unknown(_)) = woken {
            timer.unsure();
        }
        woken?.into_iter().for_each(|session| engine.keep(session));
    }
    Ok(())
}

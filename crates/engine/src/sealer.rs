//! Chains the audit, a moment after it was written: one of these per node, so that nobody who writes waits for a chain.

use crate::Engine;
use crate::engine_ports::EnginePorts;
use std::time::Duration;
use store::StoreError;
use tokio::sync::Notify;

/// The time for which an entry waits for others, so that a busy second is a few transactions and not thousands.
const GATHER: Duration = Duration::from_millis(500);
/// Nobody sleeps longer than this without looking: another node may have written.
const SLEEP_MAX: Duration = Duration::from_secs(30);
/// After a failure of the store.
const AGAIN: Duration = Duration::from_secs(1);
/// Entries sealed in one transaction.
const SEAL_MAX: usize = 1_000;

/// The handle by which the sealer is told.
#[derive(Debug, Default)]
pub(crate) struct Sealer {
    written: Notify,
}

pub(crate) fn start(engine: &Engine) {
    let sealing = engine.clone();
    engine.spawn(async move {
        loop {
            if let Err(error) = sealing.seal_all().await {
                tracing::warn!(%error, "the audit could not be sealed; again in a moment");
                tokio::time::sleep(AGAIN).await;
                continue;
            }
            let _ = tokio::time::timeout(SLEEP_MAX, sealing.ports().sealer.written.notified()).await;
            tokio::time::sleep(GATHER).await;
        }
    });
}

impl EnginePorts {
    /// Something was written into the audit.
    pub(crate) fn audited(&self) {
        self.sealer.written.notify_one();
    }
}

impl Engine {
    /// Seals whatever is not sealed yet.
    pub(crate) async fn seal_all(&self) -> Result<(), StoreError> {
        while self.store().seal_audit(self.seal().chain_key(), SEAL_MAX).await? == SEAL_MAX {}
        Ok(())
    }
}

//! Makes what was said findable, a moment after it was written: one of these per node, so that no append waits for it.

use crate::Engine;
use std::time::Duration;
use store::StoreError;

/// The time for which a change waits for others: nobody searches for what was said this second.
const GATHER: Duration = Duration::from_secs(1);
/// After a failure of the store.
const AGAIN: Duration = Duration::from_secs(5);
/// Turns that are made findable in one transaction: few, so that whoever brings a message meanwhile waits for no longer than for another
/// one's append.
const TURNS_MAX: usize = 8;
/// The pause after each, in which others come first.
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) fn start(engine: &Engine) {
    let indexing = engine.clone();
    let mut changes = engine.cluster().changes();
    engine.spawn(async move {
        loop {
            // Seen before it is read: a change in between wakes us again.
            changes.mark_unchanged();
            if let Err(error) = indexing.index_all().await {
                tracing::warn!(%error, "what was said could not be made findable; again in a moment");
                tokio::time::sleep(AGAIN).await;
                continue;
            }
            if changes.changed().await.is_err() {
                return;
            }
            tokio::time::sleep(GATHER).await;
        }
    });
}

impl Engine {
    /// Makes whatever is over findable. A file from before there was a search is gone through once, from its beginning.
    async fn index_all(&self) -> Result<(), StoreError> {
        while self.store().index_passages(TURNS_MAX).await? {
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }
}

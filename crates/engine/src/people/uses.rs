//! Whose a credential is, and when it was last used. Written down now and then: it may be late, and may be lost.

use crate::{People, PeopleError};
use kernel::{Moment, Principal, TokenId};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::StoreError;

/// The time between two writes of uses.
const WRITE_EVERY: Duration = Duration::from_secs(20);

/// Uses that are not written down yet.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    last: Mutex<BTreeMap<TokenId, Moment>>,
    /// When a browser gets its next secret, as far as we have looked.
    pub(super) renewals: Mutex<BTreeMap<TokenId, Moment>>,
}

impl Uses {
    fn last(&self) -> MutexGuard<'_, BTreeMap<TokenId, Moment>> {
        // Nobody panics while holding it.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn write_uses_down(people: &People) {
    let noting = people.clone();
    people.ports.tasks.spawn(async move {
        loop {
            tokio::time::sleep(WRITE_EVERY).await;
            if let Err(error) = noting.note_uses().await {
                tracing::debug!(%error, "when credentials were last used is not written down this time");
            }
        }
    });
}

impl People {
    /// Whose credential is this? `hash` is the SHA-256 of the secret.
    pub async fn principal(&self, hash: [u8; 32]) -> Result<Option<Principal>, PeopleError> {
        let now = self.ports.now();
        let found = self.ports.store.token(hash, now).await?;
        if let Some(credential) = found.as_ref().and_then(|by| by.credential) {
            self.uses.last().insert(credential, now);
        }
        Ok(found)
    }

    pub(crate) async fn note_uses(&self) -> Result<(), StoreError> {
        let used: Vec<_> = std::mem::take(&mut *self.uses.last()).into_iter().collect();
        if used.is_empty() {
            return Ok(());
        }
        self.ports.store.touch_tokens(used).await
    }
}

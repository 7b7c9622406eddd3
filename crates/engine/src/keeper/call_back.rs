//! Calling back: a credential of its own, for one session and one turn, in the name of whoever said the message.
//!
//! It is written down while the agent starts, so that no turn waits for it, and looked after before the words are handed
//! over. A turn that cannot have one goes on without: its agent cannot call back.

use super::Keeper;
use agent::Launch;
use kernel::{PersonId, Right, Rights, TokenId};
use std::time::Duration;
use store::{Purpose, StoreError, TokenRow};
use tokio::sync::oneshot;

/// The longest that it is kept after its turn's time; it is good for nothing once the turn is over.
const MS_MORE: u64 = 60 * 60 * 1_000;
/// Times it is tried to write it down, and the wait between two.
const TRIES: (u32, Duration) = (3, Duration::from_millis(100));

/// Hears when it is written down.
pub(super) type Written = oneshot::Receiver<Result<(), StoreError>>;

impl Keeper {
    /// Opens the way back for an attempt; none if there is none.
    pub(super) fn let_call_back(&self, launch: &mut Launch, by: PersonId) -> Option<Written> {
        let door = self.engine.call_back()?;
        let (secret, now) = (self.engine.ports().mint_credential(Purpose::Turn), self.engine.now());
        match door.open(self.session, &secret) {
            Ok(variables) => launch.variables = variables,
            Err(why) => {
                tracing::warn!(session = %self.session, %why, "the agent cannot call back in this turn");
                return None;
            }
        }
        let token = TokenId::from_bits(self.engine.ports().mint_bits());
        let lasts_ms = self.engine.policy().turn_ms_max.saturating_add(MS_MORE);
        let row = TokenRow {
            rights: Rights::NONE.with(Right::Read).with(Right::Prompt),
            bound: Some((self.session, launch.fence.turn)),
            expires: Some(now.after_ms(lasts_ms)),
            ..TokenRow::full(token, secret.hash(), by, Purpose::Turn, now)
        };
        let (tell, told) = oneshot::channel();
        let engine = self.engine.clone();
        self.engine.spawn(async move {
            let (most, wait) = TRIES;
            let mut written = engine.store().add_token(row.clone()).await;
            for _ in 1..most {
                if written.is_ok() {
                    break;
                }
                tokio::time::sleep(wait).await;
                written = engine.store().add_token(row.clone()).await;
            }
            let _ = tell.send(written); // A keeper that has gone does not want to know.
        });
        Some(told)
    }
}

/// Waits until it is written down, if there is one.
pub(super) async fn is_good(written: Option<Written>) {
    let Some(written) = written else { return };
    if let Ok(Err(error)) = written.await {
        tracing::warn!(%error, "the agent cannot call back in this turn");
    }
}

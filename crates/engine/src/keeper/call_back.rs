//! Calling back: a credential of its own, for one session and one turn, in the name of whoever said the message.
//!
//! It is minted with the plan that starts the attempt and written with it, so it is good before the agent can know of it, and costs no
//! commit of its own. A turn whose agent cannot be told of it goes on without: that agent cannot call back.

use super::Keeper;
use super::plan::Plan;
use crate::Secret;
use agent::Launch;
use kernel::{Fence, Right, Rights, TokenId};
use store::{Purpose, TokenRow};

/// The longest that it is kept after its turn's time; it is good for nothing once the turn is over.
const MS_MORE: u64 = 60 * 60 * 1_000;

/// The credential of one attempt.
pub(super) struct TurnCredential {
    fence: Fence,
    secret: Secret,
    /// The row that is written with the attempt's start.
    pub(super) row: TokenRow,
}

impl Keeper {
    /// A credential for the attempt that a plan starts; none if it starts none, or if nobody can call back here.
    pub(super) fn credential_for(&self, plan: &Plan) -> Option<TurnCredential> {
        let (fence, by) = plan.started_attempt().filter(|_| self.engine.call_back().is_some())?;
        let (secret, now) = (self.engine.ports().mint_credential(Purpose::Turn), self.engine.now());
        let token = TokenId::from_bits(self.engine.ports().mint_bits());
        let lasts_ms = self.engine.policy().turn_ms_max.saturating_add(MS_MORE);
        let row = TokenRow {
            rights: Rights::NONE.with(Right::Read).with(Right::Prompt),
            bound: Some((self.session, fence.turn)),
            expires: Some(now.after_ms(lasts_ms)),
            ..TokenRow::full(token, secret.hash(), by, Purpose::Turn, now)
        };
        Some(TurnCredential { fence, secret, row })
    }

    /// Opens the way back for an attempt whose credential is written.
    pub(super) fn let_call_back(&mut self, launch: &mut Launch) {
        let Some(door) = self.engine.call_back() else { return };
        let Some(TurnCredential { secret, .. }) =
            self.credential.take().filter(|it| it.fence == launch.fence)
        else {
            return;
        };
        match door.open(self.session, &secret) {
            Ok(variables) => launch.variables = variables,
            Err(why) => {
                tracing::warn!(session = %self.session, %why, "the agent cannot call back in this turn");
            }
        }
    }
}

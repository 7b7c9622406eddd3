//! What people see of the outbox, and what they do about replies that do not go out by themselves.
//!
//! For admins: the rows say where a reply goes and why it does not, and nothing of what it says.

use crate::intake::{Declined, check_trace, made};
use crate::{Engine, Refused, Trace};
use kernel::{OrgAct, Principal};
use std::sync::Arc;
use store::{Hand, Outgoing, OutgoingState, SettleByHand};

impl Engine {
    /// A page of the org's replies in this state, or in any, oldest first, after this one.
    pub async fn outbox(
        &self,
        by: &Principal,
        state: Option<OutgoingState>,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Outgoing>, Refused> {
        self.may(by, OrgAct::Rules)?;
        Ok(self.store().outbox_list(by.org, state, after, limit).await?)
    }

    /// Settles a reply that does not go out by itself: it is sent again, also if it may have been sent before, or it is not
    /// sent any more.
    pub async fn settle_outgoing(
        &self,
        by: &Principal,
        outgoing: u64,
        hand: Hand,
        trace: Trace,
    ) -> Result<(), Refused> {
        let verb = match hand {
            Hand::Retry => "retry_reply",
            Hand::Drop => "drop_reply",
        };
        let result = self.settle_outgoing_now(by, outgoing, hand, verb, &trace).await;
        self.note_refusal(by, verb, &trace, Some(outgoing.to_string()), result).await
    }

    async fn settle_outgoing_now(
        &self,
        by: &Principal,
        outgoing: u64,
        hand: Hand,
        verb: &'static str,
        trace: &Trace,
    ) -> Result<(), Declined> {
        check_trace(trace)?;
        let (here, key) = (self.store().node().node, self.key(verb, trace, &outgoing));
        let new = SettleByHand { outgoing, hand, here, key, trail: self.trail(verb, trace) };
        let outcome = self.store().outbox_by_hand(Arc::new(by.clone()), new).await?;
        self.audited();
        self.outbox_bell().ring();
        made(outcome).map(|_| ())
    }
}

//! The outbox as people see it, and what they do about replies that do not go out by themselves.
//!
//! For admins: the rows say where a reply goes and why it does not, and nothing of what it says.

use crate::intake::{Declined, check_trace, made};
use crate::people::may;
use crate::{Trace, ViewError, Views, WayIn, WayInError};
use kernel::{OrgAct, Principal};
use std::sync::Arc;
use store::{Hand, Outgoing, OutgoingState, SettleByHand};

impl Views {
    /// A page of the org's replies in this state, or in any, oldest first, after this one.
    pub async fn outbox(
        &self,
        by: &Principal,
        state: Option<OutgoingState>,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Outgoing>, ViewError> {
        may(by, OrgAct::Rules)?;
        Ok(self.ports.store.outbox_list(by.org, state, after, limit).await?)
    }
}

impl WayIn {
    /// Settles a reply that does not go out by itself: it is sent again, also if it may have been sent before, or it is not
    /// sent any more.
    pub async fn settle_outgoing(
        &self,
        by: &Principal,
        outgoing: u64,
        hand: Hand,
        trace: Trace,
    ) -> Result<(), WayInError> {
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
        let (here, key) = (self.ports.store.node().node, self.ports.key(verb, trace, &outgoing));
        let new = SettleByHand { outgoing, hand, here, key, trail: self.ports.trail(verb, trace) };
        let outcome = self.ports.store.outbox_by_hand(Arc::new(by.clone()), new).await;
        // Also if nobody knows what became of it: then it may be in the audit.
        self.ports.audited();
        self.ports.outbox_bell.ring();
        made(outcome?).map(|_| ())
    }
}

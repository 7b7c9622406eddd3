//! Somebody's own marks on a session. No keeper hears of them.

use super::{Declined, check_trace, made};
use crate::cluster::Happened;
use crate::{AccessError, Trace, WayIn, WayInError};
use kernel::{Act, Number, Principal, SessionId, authorize_right};
use std::sync::Arc;
use store::{Mark, Marks, WriteOutcome};

impl WayIn {
    /// Notes how far somebody has seen a session, and whether it is pinned; says how their marks are then.
    pub async fn mark(
        &self,
        by: &Principal,
        session: SessionId,
        seen: Option<Number>,
        pinned: Option<bool>,
        trace: Trace,
    ) -> Result<Marks, WayInError> {
        let result = self.mark_now(by, session, seen, pinned, &trace).await;
        self.note_refusal(by, "mark", &trace, Some(session.to_string()), result).await
    }

    async fn mark_now(
        &self,
        by: &Principal,
        session: SessionId,
        seen: Option<Number>,
        pinned: Option<bool>,
        trace: &Trace,
    ) -> Result<Marks, Declined> {
        check_trace(trace)?;
        authorize_right(by, Act::Read).map_err(|denied| AccessError::denied(denied, "session"))?;
        let key = self.ports.key("mark", trace, &(session.to_string(), seen.map(|seen| seen.0), pinned));
        let trail = self.ports.trail("mark", trace);
        let outcome =
            self.ports.store.mark(Arc::new(by.clone()), Mark { session, seen, pinned, key, trail }).await;
        // Their other lists show it, too. If they hang up before this, the next change of anything brings it.
        self.ports.cluster.tell(Happened::Row(session));
        if !matches!(outcome, Ok(WriteOutcome::Done(_) | WriteOutcome::Repeated(_))) {
            // A refusal is in the audit, and may be if nobody knows.
            self.ports.audited();
        }
        made(outcome?).map(|(marks, _)| marks)
    }
}

//! The only way to the store's `change`. The rules are `kernel::people`'s, asked inside the transaction; here a wish gets its
//! key and its trail, and whoever watches hears of it.

use crate::intake::check_trace;
use crate::{AccessError, ConflictError, People, PeopleError, Trace};
use kernel::people::may_ask;
use kernel::{OrgAct, Principal, authorize_org};
use serde::Serialize;
use store::{NewChange, PeopleChange, StoreError, WriteOutcome};

/// The outcome of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Changed {
    Now,
    /// It was done before, under the same key.
    Before,
}

impl Changed {
    /// For changes that show a secret: it is shown once.
    pub(super) fn only_now(self) -> Result<(), PeopleError> {
        match self {
            Self::Now => Ok(()),
            Self::Before => Err(PeopleError::ShownOnce),
        }
    }
}

impl People {
    /// Changes who may do what; a refusal is in the audit when this answers. `body` is what makes two wishes the same: no
    /// secrets.
    pub(super) async fn change(
        &self,
        by: &Principal,
        change: PeopleChange,
        body: impl Serialize,
        trace: &Trace,
    ) -> Result<Changed, PeopleError> {
        let verb = change.verb();
        self.note_refusal(by, verb, trace, None, check_trace(trace)).await?;
        let (key, trail) = (self.ports.key(verb, trace, &body), self.ports.trail(verb, trace));
        let new = NewChange { change, key, trail };
        let (ports, by) = (self.ports.clone(), by.clone());
        // Whoever hangs up does not keep others from hearing of it.
        let outcome = self.ports.uncancelled(async move {
            let outcome = ports.store.change(by, new).await;
            if let Ok(WriteOutcome::Done(())) | Err(StoreError::Unknown(_)) = outcome {
                ports.rights_changed();
            }
            ports.audited();
            outcome
        });
        match outcome.await? {
            WriteOutcome::Done(()) => Ok(Changed::Now),
            WriteOutcome::Repeated(()) => Ok(Changed::Before),
            WriteOutcome::Conflict => Err(ConflictError::KeyReused.into()),
            WriteOutcome::Refused(why) => Err(why.into()),
        }
    }

    /// One audit entry per refusal: whatever reaches the store writes its own, this is for the rest.
    pub(crate) async fn note_refusal<T>(
        &self,
        by: &Principal,
        verb: &'static str,
        trace: &Trace,
        subject: Option<String>,
        result: Result<T, impl Into<PeopleError>>,
    ) -> Result<T, PeopleError> {
        let refused = match result {
            Ok(done) => return Ok(done),
            Err(refused) => refused.into(),
        };
        self.ports.note((by.org, by.person), verb, trace, subject, &refused).await;
        Err(refused)
    }

    /// Checks that they could make such a change at all: for whoever has to do something costly before it.
    pub(super) fn may_ask(&self, by: &Principal, change: &PeopleChange) -> Result<(), PeopleError> {
        may_ask(by, change).map_err(PeopleError::from)
    }
}

/// Checks that they may do this with their org.
pub(crate) fn may(by: &Principal, act: OrgAct) -> Result<(), AccessError> {
    authorize_org(by, act, ()).map(drop).map_err(|denied| AccessError::denied(denied, "org"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::{Denied, EndWhy, Grant, Right, Role, SessionId};
    use store::PeopleRefusal;

    #[test]
    fn a_refusal_is_called_the_same_in_the_audit_and_on_the_wire() {
        let denied = [
            Denied::Needs(Grant::Manage),
            Denied::NeedsRight(Right::Admin),
            Denied::NeedsRole(Role::Owner),
            Denied::BoundElsewhere,
        ];
        let all = [
            PeopleRefusal::Unauthenticated,
            PeopleRefusal::NotFound("person"),
            PeopleRefusal::Taken("handle"),
            PeopleRefusal::LastOwner,
            PeopleRefusal::CannotOwn,
            PeopleRefusal::OwnsAlready,
            PeopleRefusal::OfferedAlready,
            PeopleRefusal::TooManyOpen { limit: 1 },
            PeopleRefusal::TooManyWords { used: 1, limit: 1 },
            PeopleRefusal::NeedsSignIn,
            PeopleRefusal::NotWalled,
            PeopleRefusal::OneClient,
            PeopleRefusal::OtherClient,
            PeopleRefusal::NotTheirPassword,
            PeopleRefusal::Changed,
            PeopleRefusal::Ended(SessionId::from_bits(1), EndWhy::Asked),
            PeopleRefusal::Over,
            PeopleRefusal::TooManyRules,
        ];
        for why in denied.map(PeopleRefusal::Denied).into_iter().chain(all) {
            assert_eq!(PeopleError::from(why).code(), why.code(), "{why:?}");
        }
    }
}

//! The only way to the store's `change`. The rules are `kernel::people`'s, asked inside the transaction; here a wish gets its
//! key and its trail, and whoever watches hears of it.

use crate::intake::check_trace;
use crate::{Engine, Refused, Trace};
use kernel::people::{RULES_MAX, may_ask};
use kernel::{OrgAct, Principal, authorize_rule};
use serde::Serialize;
use store::{NewChange, Outcome, PeopleChange, PeopleRefusal, StoreError};

/// What came of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Changed {
    Now,
    /// It was done before, under the same key.
    Before,
}

impl Changed {
    /// For changes that show a secret: it is shown once.
    pub(super) fn only_now(self) -> Result<(), Refused> {
        match self {
            Self::Now => Ok(()),
            Self::Before => Err(Refused::ShownOnce),
        }
    }
}

impl Engine {
    /// Changes who may do what; a refusal is in the audit when this answers. `body` is what makes two wishes the same: no
    /// secrets.
    pub(super) async fn change(
        &self,
        by: &Principal,
        change: PeopleChange,
        body: impl Serialize,
        trace: &Trace,
    ) -> Result<Changed, Refused> {
        let verb = change.verb();
        self.note_refusal(by, verb, trace, None, check_trace(trace)).await?;
        let (key, trail) = (self.key(verb, trace, &body), self.trail(verb, trace));
        let new = NewChange { change, key, trail };
        let (engine, by) = (self.clone(), by.clone());
        // Whoever hangs up does not keep others from hearing of it.
        let outcome = self.surely(async move {
            let outcome = engine.store().change(by, new).await;
            if let Ok(Outcome::Done(())) | Err(StoreError::Unknown(_)) = outcome {
                engine.rights_changed();
            }
            engine.audited();
            Ok(outcome?)
        });
        match outcome.await? {
            Outcome::Done(()) => Ok(Changed::Now),
            Outcome::Repeated(()) => Ok(Changed::Before),
            Outcome::Conflict => Err(Refused::KeyReused),
            Outcome::Refused(why) => Err(why.into()),
        }
    }

    /// Whether they could make such a change at all: for whoever has to do something costly before it.
    pub(super) fn may_ask(&self, by: &Principal, change: &PeopleChange) -> Result<(), Refused> {
        may_ask(by, change).map_err(Refused::from)
    }

    /// Whether they may do this with their org.
    pub(crate) fn may(&self, by: &Principal, act: OrgAct) -> Result<(), Refused> {
        authorize_rule(by, act, ()).map(drop).map_err(|denied| Refused::denied(denied, "org"))
    }
}

impl From<PeopleRefusal> for Refused {
    fn from(why: PeopleRefusal) -> Self {
        let invalid = |field, reason: &str| Self::Invalid { field, reason: reason.to_owned() };
        match why {
            PeopleRefusal::Unauthenticated => Self::Unauthenticated,
            PeopleRefusal::Denied(denied) => Self::denied(denied, "org"),
            PeopleRefusal::NotFound(what) => Self::NotFound { what },
            PeopleRefusal::Taken(what) => Self::Taken { what },
            PeopleRefusal::LastOwner => Self::LastOwner,
            PeopleRefusal::CannotOwn => Self::CannotOwn,
            // Whoever proved that it is not knows what was found.
            PeopleRefusal::NotWalled => Self::WallNotProved { findings: Vec::new() },
            PeopleRefusal::OneClient => {
                invalid("client", "this credential is for one client name: use one that is for all")
            }
            PeopleRefusal::OtherClient => {
                invalid("client", "must be the one of the credential that makes it")
            }
            PeopleRefusal::NotTheirPassword => {
                invalid("password", "only they can set it: remove it, and make them a link")
            }
            PeopleRefusal::Changed => Self::Changed,
            PeopleRefusal::Ended(session, why) => Self::SessionEnded { session, why },
            PeopleRefusal::Over => invalid("until", "lies in the past"),
            PeopleRefusal::TooManyRules => Self::TooManyRules { limit: RULES_MAX as usize },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::{Denied, EndWhy, Grant, Right, Role, SessionId};

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
            assert_eq!(Refused::from(why).code(), why.code(), "{why:?}");
        }
    }
}

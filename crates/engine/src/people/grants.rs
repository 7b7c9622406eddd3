//! Grants on sessions and agents; and handing sessions over: an offer, and what is said to it.

use super::change::may;
use crate::{AccessError, ConflictError, People, PeopleError, Trace};
use kernel::{Act, Grant, Grantee, OrgAct, PersonId, Principal, SessionId, authorize, authorize_right};
use store::{GrantRow, HeirLimits, OfferRow, PeopleChange, Resource, SessionRow, grantee_text};

impl People {
    /// The grants on it. Of a session whoever manages it sees that, of an agent an admin.
    pub async fn grants(&self, by: &Principal, on: Resource) -> Result<Vec<GrantRow>, PeopleError> {
        let denied = |denied| AccessError::denied(denied, "session");
        match &on {
            Resource::Session(session) => {
                authorize_right(by, Act::Manage).map_err(denied)?;
                let record = self.ports.record_seen(by, *session).await?;
                let record = record.ok_or(AccessError::NotFound { what: "session" })?;
                authorize(by, Act::Manage, &record, ()).map_err(denied)?;
            }
            Resource::Agent(agent) => {
                may(by, OrgAct::Rules)?;
                self.known_agent(by, agent)?;
            }
        }
        Ok(self.ports.store.grants(by.org, on).await?)
    }

    /// Gives it, in place of whatever they were given on it before.
    pub async fn give(
        &self,
        by: &Principal,
        on: Resource,
        to: Grantee,
        grant: Grant,
        trace: Trace,
    ) -> Result<(), PeopleError> {
        if let Resource::Agent(agent) = &on {
            let may = may(by, OrgAct::Rules).map_err(PeopleError::from);
            let known = may.and_then(|()| self.known_agent(by, agent));
            self.note_refusal(by, "give", &trace, Some(agent.clone()), known).await?;
        }
        let body = (resource_text(&on), grantee_text(to), format!("{grant:?}"));
        self.change(by, PeopleChange::Give { on, to, grant }, body, &trace).await.map(drop)
    }

    /// Takes back what they were given on it.
    pub async fn take_back(
        &self,
        by: &Principal,
        on: Resource,
        to: Grantee,
        trace: Trace,
    ) -> Result<(), PeopleError> {
        let body = (resource_text(&on), grantee_text(to));
        self.change(by, PeopleChange::TakeBack { on, to }, body, &trace).await.map(drop)
    }

    /// Offers a session to somebody. Nothing changes until they say yes.
    pub async fn hand_over(
        &self,
        by: &Principal,
        session: SessionId,
        to: PersonId,
        trace: Trace,
    ) -> Result<(), PeopleError> {
        let body = (session.to_string(), to.to_string());
        self.change(by, PeopleChange::HandOver { session, to }, body, &trace).await.map(drop)
    }

    /// Offers every open session of somebody to another; those of somebody who is disabled are the other's at once.
    pub async fn hand_over_all(
        &self,
        by: &Principal,
        from: PersonId,
        to: PersonId,
        trace: Trace,
    ) -> Result<(), PeopleError> {
        let body = (from.to_string(), to.to_string());
        self.change(by, PeopleChange::HandOverAll { from, to }, body, &trace).await.map(drop)
    }

    /// The offers to the caller and those of their own sessions that stand, with the session as it is.
    pub async fn offers(&self, by: &Principal) -> Result<Vec<(OfferRow, SessionRow)>, PeopleError> {
        may(by, OrgAct::SeePeople)?;
        let mut standing = Vec::new();
        for offer in self.ports.store.offers(by.org, by.person).await? {
            let session = self.ports.store.session(offer.session).await?.map(|(_, row)| row);
            let stands = |row: &SessionRow| offer.stands(row.ended, self.ports.now());
            standing.extend(session.filter(stands).map(|row| (offer, row)));
        }
        Ok(standing)
    }

    /// The caller's yes to an offer.
    pub async fn accept_offer(
        &self,
        by: &Principal,
        session: SessionId,
        trace: Trace,
    ) -> Result<(), PeopleError> {
        let within = HeirLimits {
            own_directory: self.ground.own(session),
            open_max: self.ports.limits.open_max,
            words_bytes_max: self.ports.limits.words_bytes_per_person_max,
        };
        self.answer_offer(by, PeopleChange::AcceptOffer { session, within }, session, trace).await
    }

    /// The caller's no to an offer.
    pub async fn decline_offer(
        &self,
        by: &Principal,
        session: SessionId,
        trace: Trace,
    ) -> Result<(), PeopleError> {
        self.answer_offer(by, PeopleChange::DeclineOffer { session }, session, trace).await
    }

    /// Takes an offer back, as whoever manages the session.
    pub async fn take_offer_back(
        &self,
        by: &Principal,
        session: SessionId,
        trace: Trace,
    ) -> Result<(), PeopleError> {
        self.answer_offer(by, PeopleChange::TakeOfferBack { session }, session, trace).await
    }

    async fn answer_offer(
        &self,
        by: &Principal,
        change: PeopleChange,
        session: SessionId,
        trace: Trace,
    ) -> Result<(), PeopleError> {
        self.change(by, change, session.to_string(), &trace).await.map(drop)
    }

    /// A grant on an agent that is not there would count when one of that name comes.
    fn known_agent(&self, by: &Principal, agent: &str) -> Result<(), PeopleError> {
        if self.roster.agents().contains_key(agent) {
            return Ok(());
        }
        Err(ConflictError::UnknownAgent { name: agent.to_owned(), known: self.roster.seen_by(by) }.into())
    }
}

fn resource_text(on: &Resource) -> String {
    match on {
        Resource::Session(session) => session.to_string(),
        Resource::Agent(agent) => format!("agent {agent}"),
    }
}

//! Grants on sessions and agents; and handing sessions over.

use super::change::may;
use crate::{AccessError, ConflictError, People, PeopleError, Trace};
use kernel::{Act, Grant, Grantee, OrgAct, PersonId, Principal, SessionId, authorize, authorize_right};
use store::{GrantRow, PeopleChange, Resource, grantee_text};

impl People {
    /// The grants on it. Of a session whoever manages it sees that, of an agent an admin.
    pub async fn grants(&self, by: &Principal, on: Resource) -> Result<Vec<GrantRow>, PeopleError> {
        let denied = |denied| AccessError::denied(denied, "session");
        match &on {
            Resource::Session(session) => {
                authorize_right(by, Act::Manage).map_err(denied)?;
                let record = self.ports.record(*session).await?;
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

    /// Gives a session another owner.
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

    /// Gives every session of somebody who is leaving another owner.
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

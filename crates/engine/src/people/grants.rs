//! What is given on sessions and agents, and to whom; and handing sessions over.

use crate::{Engine, Refused, Trace};
use kernel::{Act, Grant, Grantee, OrgAct, PersonId, Principal, SessionId, authorize, authorize_right};
use store::{GrantRow, PeopleChange, Resource, grantee_text};

impl Engine {
    /// What was given on it. Of a session whoever manages it sees that, of an agent an admin.
    pub async fn grants(&self, by: &Principal, on: Resource) -> Result<Vec<GrantRow>, Refused> {
        let denied = |denied| Refused::denied(denied, "session");
        match &on {
            Resource::Session(session) => {
                authorize_right(by, Act::Rule).map_err(denied)?;
                let record = self.record(*session).await?;
                authorize(by, Act::Rule, &record, ()).map_err(denied)?;
            }
            Resource::Agent(agent) => {
                self.may(by, OrgAct::Rules)?;
                self.known_agent(by, agent)?;
            }
        }
        Ok(self.store().grants(by.org, on).await?)
    }

    /// Gives it, in place of whatever they were given on it before.
    pub async fn give(
        &self,
        by: &Principal,
        on: Resource,
        to: Grantee,
        grant: Grant,
        trace: Trace,
    ) -> Result<(), Refused> {
        if let Resource::Agent(agent) = &on {
            let known = self.may(by, OrgAct::Rules).and_then(|()| self.known_agent(by, agent));
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
    ) -> Result<(), Refused> {
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
    ) -> Result<(), Refused> {
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
    ) -> Result<(), Refused> {
        let body = (from.to_string(), to.to_string());
        self.change(by, PeopleChange::HandOverAll { from, to }, body, &trace).await.map(drop)
    }

    /// What is given on an agent that is not there would count when one of that name comes.
    fn known_agent(&self, by: &Principal, agent: &str) -> Result<(), Refused> {
        if self.agents_by_name().contains_key(agent) {
            return Ok(());
        }
        Err(Refused::UnknownAgent { name: agent.to_owned(), known: self.agents_seen_by(by) })
    }
}

fn resource_text(on: &Resource) -> String {
    match on {
        Resource::Session(session) => session.to_string(),
        Resource::Agent(agent) => format!("agent {agent}"),
    }
}

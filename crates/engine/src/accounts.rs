//! People's own sign-ins for agents: given once, kept sealed, and handed to the agent in their own turns only.
//!
//! Nobody can read one back, whoever gave it included: what is shown is which variables there are, and since when. A
//! sign-in that cannot be opened is a refusal, and never silently the house's.

use crate::intake::check_trace;
use crate::people::may;
use crate::{AccessError, InvalidError, People, PeopleError, Trace, UnavailableError};
use agent::{Account, Agent};
use kernel::{Moment, OrgAct, OrgId, PersonId, Principal, agent_grant_of};
use std::collections::BTreeMap;
use store::{NewAccount, StoreError};

/// A variable of a sign-in may hold so much: a key, a token, or a small file of them.
pub const SECRET_BYTES_MAX: usize = 16 * 1024;

/// A sign-in that somebody gave, as far as it can be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountView {
    /// The variables that are in it.
    pub names: Vec<String>,
    /// When it was given.
    pub since: Moment,
}

/// Why a turn cannot have its sender's sign-in.
#[derive(Debug)]
pub(crate) enum NoAccount {
    /// The store failed.
    Store(StoreError),
    /// A person has to do something first.
    Unusable(String),
}

impl People {
    /// Keeps somebody's own sign-in for an agent, in place of whatever they gave before.
    pub async fn set_account(
        &self,
        by: &Principal,
        agent: &str,
        secrets: BTreeMap<String, String>,
        trace: Trace,
    ) -> Result<AccountView, PeopleError> {
        let result = self.set_account_now(by, agent, secrets, &trace).await;
        self.note_refusal(by, "set_account", &trace, Some(agent.to_owned()), result).await
    }

    async fn set_account_now(
        &self,
        by: &Principal,
        agent: &str,
        secrets: BTreeMap<String, String>,
        trace: &Trace,
    ) -> Result<AccountView, PeopleError> {
        may(by, OrgAct::Myself)?;
        check_trace(trace)?;
        self.check_secrets(by, agent, &secrets)?;
        let names: Vec<String> = secrets.keys().cloned().collect();
        let plain = serde_json::to_vec(&secrets).expect("a map of texts is plain data");
        let sealed = self.seal.seal(&about(by.org, by.person, agent), &plain);
        let sealed = sealed.map_err(|why| UnavailableError::Unavailable(why.to_string()))?.into();
        let trail = self.ports.trail("set_account", trace);
        let view = AccountView { names: names.clone(), since: trail.at };
        let account = NewAccount { agent: agent.to_owned(), names, sealed, trail };
        self.ports.store.set_account(by.clone(), account).await?;
        self.ports.audited();
        Ok(view)
    }

    fn check_secrets(
        &self,
        by: &Principal,
        agent: &str,
        secrets: &BTreeMap<String, String>,
    ) -> Result<(), PeopleError> {
        let found = self.roster.agents().get(agent).filter(|_| agent_grant_of(by, agent).is_some());
        let found = found.ok_or(AccessError::NotFound { what: "agent" })?;
        let invalid = |reason: String| Err(InvalidError { field: "secrets", reason }.into());
        let known = found.setup().secrets;
        if known.is_empty() {
            return invalid(format!("{agent} takes no sign-in of a person's own"));
        }
        if secrets.is_empty() {
            return invalid(format!("name at least one of: {}", known.join(", ")));
        }
        if let Some(name) = secrets.keys().find(|name| !known.contains(name)) {
            return invalid(format!("{agent} does not take {name:?}; use: {}", known.join(", ")));
        }
        let is_bad =
            |value: &String| value.is_empty() || value.len() > SECRET_BYTES_MAX || value.contains('\0');
        match secrets.iter().find(|(_, value)| is_bad(value)) {
            Some((name, _)) => {
                invalid(format!("{name}: must have 1 to {SECRET_BYTES_MAX} bytes, and no NUL"))
            }
            None => Ok(()),
        }
    }

    /// Forgets it. Forgetting what is not there is fine, also for an agent that is no longer configured.
    pub async fn remove_account(&self, by: &Principal, agent: &str, trace: Trace) -> Result<(), PeopleError> {
        let may = may(by, OrgAct::Myself).map_err(PeopleError::from);
        let checked = may.and_then(|()| Ok(check_trace(&trace)?));
        self.note_refusal(by, "remove_account", &trace, Some(agent.to_owned()), checked).await?;
        let trail = self.ports.trail("remove_account", &trace);
        self.ports.store.remove_account(by.clone(), agent.to_owned(), trail).await?;
        self.ports.audited();
        Ok(())
    }

    /// The sign-in that somebody gave for their own turns with an agent.
    pub async fn account(&self, by: &Principal, agent: &str) -> Result<Option<AccountView>, PeopleError> {
        crate::view::may_read(by, "agent")?;
        if by.bound.is_some() {
            return Err(AccessError::BoundElsewhere.into());
        }
        let row = self.ports.store.account(by.org, by.person, agent.to_owned()).await?;
        let there = self.roster.agents().contains_key(agent) && agent_grant_of(by, agent).is_some();
        if row.is_none() && !there {
            return Err(AccessError::NotFound { what: "agent" }.into());
        }
        Ok(row.map(|row| AccountView { names: row.names, since: row.since }))
    }

    /// The sign-in for a turn of this person's message.
    pub(crate) async fn account_of(
        &self,
        org: OrgId,
        person: PersonId,
        agent: &dyn Agent,
    ) -> Result<Account, NoAccount> {
        let known = agent.setup().secrets;
        if known.is_empty() {
            return Ok(Account::House);
        }
        let row = self.ports.store.account(org, person, agent.name().to_owned()).await;
        let Some(row) = row.map_err(NoAccount::Store)? else { return Ok(Account::House) };
        let name = agent.name();
        let again = format!("give it again (`homing agents account set {name}`), or remove it");
        let unusable = |why: &str| NoAccount::Unusable(format!("your own sign-in for {name} {why}: {again}"));
        let opened = self.seal.open(&about(org, person, name), &row.sealed);
        let secrets =
            opened.and_then(|plain| serde_json::from_slice::<BTreeMap<String, String>>(&plain).ok());
        let secrets = secrets.ok_or_else(|| unusable("cannot be opened with this server's key"))?;
        if secrets.keys().any(|name| !known.contains(name)) {
            return Err(unusable("has variables that it does not take any more"));
        }
        Ok(Account::Person { person, secrets: secrets.into_iter().collect() })
    }
}

/// Whose it is and for what. Sealed along, so that one row cannot stand in for another.
fn about(org: OrgId, person: PersonId, agent: &str) -> String {
    format!("account\n{org}\n{person}\n{agent}")
}

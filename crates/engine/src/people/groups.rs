//! Groups: people who are given things together.

use super::change::may;
use super::check_name;
use crate::{AccessError, People, PeopleError, Trace};
use kernel::{GroupId, OrgAct, PersonId, Principal};
use store::{GroupRow, PeopleChange};

impl People {
    /// The org's groups, with who is in them.
    pub async fn groups(&self, by: &Principal) -> Result<Vec<GroupRow>, PeopleError> {
        may(by, OrgAct::SeePeople)?;
        Ok(self.ports.store.groups(by.org).await?)
    }

    /// Makes one that nobody is in yet.
    pub async fn make_group(
        &self,
        by: &Principal,
        name: String,
        trace: Trace,
    ) -> Result<GroupRow, PeopleError> {
        let checked = check_name("name", &name);
        self.note_refusal(by, "make_group", &trace, None, checked).await?;
        let group = GroupId::from_bits(self.ports.mint_bits());
        let change = PeopleChange::MakeGroup { group, name: name.clone() };
        self.change(by, change, &name, &trace).await?;
        // A repetition made no other: the name is one of its kind.
        let made = self.ports.store.groups(by.org).await?.into_iter().find(|row| row.name == name);
        made.ok_or(AccessError::NotFound { what: "group" }.into())
    }

    /// Whatever it was given is given to nobody by it any more.
    pub async fn remove_group(
        &self,
        by: &Principal,
        group: GroupId,
        trace: Trace,
    ) -> Result<(), PeopleError> {
        self.change(by, PeopleChange::RemoveGroup { group }, group.to_string(), &trace).await.map(drop)
    }

    /// Lets somebody be in it.
    pub async fn join(
        &self,
        by: &Principal,
        group: GroupId,
        person: PersonId,
        trace: Trace,
    ) -> Result<(), PeopleError> {
        let body = (group.to_string(), person.to_string());
        self.change(by, PeopleChange::Join { group, person }, body, &trace).await.map(drop)
    }

    /// Lets them be in it no more.
    pub async fn leave(
        &self,
        by: &Principal,
        group: GroupId,
        person: PersonId,
        trace: Trace,
    ) -> Result<(), PeopleError> {
        let body = (group.to_string(), person.to_string());
        self.change(by, PeopleChange::Leave { group, person }, body, &trace).await.map(drop)
    }
}

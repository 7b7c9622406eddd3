//! Looking up a person or group: by handle, e-mail address or name, as people say it, or by id.

use anyhow::Result;
use api::{Grantee, Group, PeopleQuery, Person};

use crate::exit::{CliError, Exit};
use crate::remote::{OrCliError, Remote};

/// The person of this handle, e-mail address or id.
pub(crate) async fn person(named: &str, remote: &Remote) -> Result<Person> {
    if named.starts_with("usr_") {
        return remote.client.person(named).await.or_cli_error();
    }
    let query = PeopleQuery { named: Some(named.to_owned()), ..PeopleQuery::default() };
    let found = remote.client.people(&query).await.or_cli_error()?.items.into_iter().next();
    found.ok_or_else(|| {
        CliError::new(Exit::NotFound, format!("nobody in your org is called {named:?}"))
            .hint("`homing user ls` lists everybody; use a handle, an e-mail address or an id")
            .into()
    })
}

/// The id of the person of this handle, e-mail address or id.
pub(crate) async fn person_id(named: &str, remote: &Remote) -> Result<String> {
    if named.starts_with("usr_") {
        return Ok(named.to_owned());
    }
    Ok(person(named, remote).await?.id)
}

/// The group of this name or id.
pub(crate) async fn group(named: &str, remote: &Remote) -> Result<Group> {
    let groups = remote.client.groups().await.or_cli_error()?.items;
    let found = groups.into_iter().find(|group| group.id == named || group.name == named);
    found.ok_or_else(|| {
        CliError::new(Exit::NotFound, format!("there is no group called {named:?}"))
            .hint("`homing group ls` lists them")
            .into()
    })
}

/// To whom something is given: `org`, `group:NAME` or a group's id, or a person.
pub(crate) async fn grantee(named: &str, remote: &Remote) -> Result<Grantee> {
    if named == "org" {
        return Ok(Grantee::org());
    }
    if named.starts_with("grp_") {
        return Ok(Grantee::group(named));
    }
    if let Some(name) = named.strip_prefix("group:") {
        return Ok(Grantee::group(group(name, remote).await?.id));
    }
    let name = named.strip_prefix("user:").unwrap_or(named);
    Ok(Grantee::user(person_id(name, remote).await?))
}

/// The names of everybody and of every group, for lists.
pub(crate) struct GranteeNames {
    people: Vec<Person>,
    groups: Vec<Group>,
}

impl GranteeNames {
    /// Asks for all of them.
    pub(crate) async fn load(remote: &Remote) -> Result<Self> {
        Ok(Self {
            people: everybody(remote).await?,
            groups: remote.client.groups().await.or_cli_error()?.items,
        })
    }

    /// As a person would write it.
    pub(crate) fn of(&self, grantee: &Grantee) -> String {
        match grantee {
            Grantee::User(to) => {
                let person = self.people.iter().find(|person| person.id == to.user);
                person.map_or(&to.user, |person| &person.handle).clone()
            }
            Grantee::Group(to) => {
                let group = self.groups.iter().find(|group| group.id == to.group);
                group.map_or(to.group.clone(), |group| format!("group:{}", group.name))
            }
            Grantee::Org(_) => "org".to_owned(),
        }
    }
}

/// Everybody in the org, in order of their handles.
pub(crate) async fn everybody(remote: &Remote) -> Result<Vec<Person>> {
    let limit = u32::try_from(api::LIMIT_MAX).ok();
    let (mut cursor, mut people) = (None, Vec::new());
    loop {
        let page = remote.client.people(&PeopleQuery { named: None, limit, cursor }).await.or_cli_error()?;
        people.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            return Ok(people);
        }
    }
}

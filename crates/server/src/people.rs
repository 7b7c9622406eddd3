//! From rows of people, grants and credentials to the wire, and back.

use crate::door::SharedDoor;
use crate::extract::{Caller, id};
use crate::problem::ApiResult;
use crate::wire::at;
use api::{Grantee, Link, Person, Who};
use engine::{PersonRow, Secret};
use kernel::{Moment, PersonId, Principal};

pub(crate) fn role_form(role: kernel::Role) -> api::Role {
    match role {
        kernel::Role::Viewer => api::Role::Viewer,
        kernel::Role::Member => api::Role::Member,
        kernel::Role::Admin => api::Role::Admin,
        kernel::Role::Owner => api::Role::Owner,
    }
}

pub(crate) fn role_of(role: api::Role) -> kernel::Role {
    match role {
        api::Role::Viewer => kernel::Role::Viewer,
        api::Role::Member => kernel::Role::Member,
        api::Role::Admin => kernel::Role::Admin,
        api::Role::Owner => kernel::Role::Owner,
    }
}

pub(crate) fn right_form(right: kernel::Right) -> api::Right {
    match right {
        kernel::Right::Read => api::Right::Read,
        kernel::Right::Prompt => api::Right::Prompt,
        kernel::Right::Approve => api::Right::Approve,
        kernel::Right::Manage => api::Right::Manage,
        kernel::Right::Admin => api::Right::Admin,
    }
}

pub(crate) fn right_of(right: api::Right) -> kernel::Right {
    match right {
        api::Right::Read => kernel::Right::Read,
        api::Right::Prompt => kernel::Right::Prompt,
        api::Right::Approve => kernel::Right::Approve,
        api::Right::Manage => kernel::Right::Manage,
        api::Right::Admin => kernel::Right::Admin,
    }
}

pub(crate) fn grant_form(grant: kernel::Grant) -> api::Grant {
    match grant {
        kernel::Grant::View => api::Grant::View,
        kernel::Grant::Prompt => api::Grant::Prompt,
        kernel::Grant::Manage => api::Grant::Manage,
    }
}

pub(crate) fn grant_of(grant: api::Grant) -> kernel::Grant {
    match grant {
        api::Grant::View => kernel::Grant::View,
        api::Grant::Prompt => kernel::Grant::Prompt,
        api::Grant::Manage => kernel::Grant::Manage,
    }
}

pub(crate) fn grantee_form(to: kernel::Grantee) -> Grantee {
    match to {
        kernel::Grantee::Person(person) => Grantee::user(person.to_string()),
        kernel::Grantee::Group(group) => Grantee::group(group.to_string()),
        kernel::Grantee::Org => Grantee::org(),
    }
}

pub(crate) fn grantee_of(to: &Grantee) -> ApiResult<kernel::Grantee> {
    Ok(match to {
        Grantee::User(to) => kernel::Grantee::Person(id("user", &to.user)?),
        Grantee::Group(to) => kernel::Grantee::Group(id("group", &to.group)?),
        Grantee::Org(_) => kernel::Grantee::Org,
    })
}

/// Somebody, as far as the engine shows them. Whatever it hides is left out, and not said to be so.
pub(crate) fn person_form(by: &Principal, row: PersonRow) -> Person {
    let all = by.role >= kernel::Role::Admin || by.person == row.person;
    Person {
        id: row.person.to_string(),
        handle: row.handle,
        name: row.name,
        email: row.email,
        role: role_form(row.role),
        host: all.then_some(row.is_host),
        has_password: all.then_some(row.has_password),
        disabled_at: row.disabled_at.map(at),
        made_at: at(row.made_at),
    }
}

/// The way in that this secret is.
pub(crate) fn link_form(person: PersonId, secret: &Secret, expires: Moment) -> Link {
    let path = format!("/in/{}", secret.reveal()).into();
    Link { user: person.to_string(), path, expires: at(expires) }
}

/// Somebody with their handle, as far as there is one.
pub(crate) async fn who(door: &SharedDoor, caller: &Caller, person: PersonId) -> ApiResult<Who> {
    let handle = door.engine.people().handle_of(&caller.by, person).await?;
    Ok(Who { id: person.to_string(), handle })
}

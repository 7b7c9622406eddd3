//! People: who is asking, who else is there, and what they are in their org.

use crate::bounds::*;
use crate::check::{handle, invalid, is_longer, mail, plain_line};
use crate::{At, Invalid, Secret};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A person in few words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Who {
    /// The person.
    pub id: String,
    /// The name that stands in this person's addresses; none if the person is not of your org any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
}

/// The role of a person in their org. Each may do what the ones before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads what was shared with them, and nothing more, whatever they were granted.
    Viewer,
    /// Makes sessions, and shares them.
    Member,
    /// Looks after people, groups, agents, directories and the audit. Reads nobody's sessions by that.
    Admin,
    /// An admin whom admins cannot touch.
    Owner,
}

/// One thing that a credential may be good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// Read.
    Read,
    /// Make sessions, say things, take them back, stop them.
    Prompt,
    /// Answer agents' questions.
    Approve,
    /// Change sessions: end, order, title, share, hand over; tend others' messages.
    Manage,
    /// Change the org, its people and their credentials.
    Admin,
}

/// Whose credential this is, and what it is good for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    /// The person.
    pub person: String,
    /// The org the credential belongs to.
    pub org: String,
    /// The name that stands in this person's addresses: `web:HANDLE/…`, `cli:HOST/HANDLE/…`.
    pub handle: String,
    /// The name of the org.
    pub org_name: String,
    /// The name of this person, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Their e-mail address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Their role in the org.
    pub role: Role,
    /// True if this is the person whose machine it is: they may make orgs.
    pub host: bool,
    /// True if they can sign in with a password.
    pub has_password: bool,
    /// The groups that they are in.
    pub groups: Vec<String>,
    /// The directories under which they may let a session work.
    pub roots: Vec<String>,
    /// The rights of this credential: never more than the person may do.
    pub rights: Vec<Right>,
    /// The one session and turn that this credential is for, if it is for one only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// The room that their sessions take on the server's disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskUse>,
}

/// The room that somebody's sessions take, and the bounds on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiskUse {
    /// Bytes of what was said and printed, with the rows that go along.
    pub words_bytes: u64,
    /// The most that there may be: `limits.words_bytes_per_person_max`.
    pub words_bytes_max: u64,
    /// Bytes of the worktrees of their sessions, as they were last seen.
    pub worktree_bytes: u64,
    /// With so many there are no more: `limits.worktree_bytes_per_person_max`.
    pub worktree_bytes_max: u64,
    /// Bytes of the snapshots of turns in their sessions, as they were last counted.
    pub snapshot_bytes: u64,
    /// Beyond so many the oldest of them go: `limits.snapshot_bytes_per_person_max`.
    pub snapshot_bytes_max: u64,
}

/// The one turn that a credential is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Bound {
    /// The session.
    pub session: String,
    /// Its turn.
    pub turn: u32,
}

/// A change of yourself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MyChange {
    /// Another name: at most 200 characters, without control characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*[^\\s\\u0000-\\u001f\\u007f-\\u009f][^\\u0000-\\u001f\\u007f-\\u009f]*$"
    )]
    pub name: Option<String>,
}

impl MyChange {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        plain_line("name", self.name.as_deref(), NAME_LENGTH_MAX)
    }
}

/// Another password. Every other browser and command line of yours is signed out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPassword {
    /// The one you have; leave it out if you have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Password, max_length = 1_024)]
    pub current: Option<Secret>,
    /// The one you want: 8 to 1,024 characters, and neither your handle nor your e-mail address.
    #[schema(value_type = String, format = Password, min_length = 8, max_length = 1_024)]
    pub new: Secret,
}

impl NewPassword {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        let length = self.new.reveal().chars().count();
        if !(PASSWORD_LENGTH_MIN..=PASSWORD_LENGTH_MAX).contains(&length) {
            let reason = format!("must have {PASSWORD_LENGTH_MIN} to {PASSWORD_LENGTH_MAX} characters");
            return invalid("new", reason);
        }
        match &self.current {
            Some(current) if is_longer(current.reveal(), PASSWORD_LENGTH_MAX) => {
                invalid("current", format!("more than {PASSWORD_LENGTH_MAX} characters"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Somebody. Admins see all of it, and you see all of yourself; of others there is no address and no sign-in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Person {
    /// Their id. Never changes.
    pub id: String,
    /// The name that stands in their addresses. Never changes.
    pub handle: String,
    /// Their name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Their e-mail address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Their role in the org.
    pub role: Role,
    /// True if this is the person whose machine it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<bool>,
    /// True if they can sign in with a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_password: Option<bool>,
    /// When they were shut out, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled_at: Option<At>,
    /// When they were let in.
    pub made_at: At,
}

/// The choice of people.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PeopleQuery {
    /// Only whoever has this handle or e-mail address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 254)]
    pub named: Option<String>,
    /// The most items on the page; 50 if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<u32>,
    /// Where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 4_100)]
    pub cursor: Option<String>,
}

impl PeopleQuery {
    /// Checks that every field is as the schema says; the server reads the page itself.
    pub fn check(&self) -> Result<(), Invalid> {
        match &self.named {
            Some(named) if is_longer(named, MAIL_LENGTH_MAX) => {
                invalid("named", format!("more than {MAIL_LENGTH_MAX} characters"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Somebody to be let in. They get a link by which they come in, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPerson {
    /// The name that will stand in their addresses. One of its kind in the org; it never changes.
    #[schema(max_length = 64, pattern = "^[a-z0-9][a-z0-9._-]*$")]
    pub handle: String,
    /// Their name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*[^\\s\\u0000-\\u001f\\u007f-\\u009f][^\\u0000-\\u001f\\u007f-\\u009f]*$"
    )]
    pub name: Option<String>,
    /// Their e-mail address. One of its kind in the org; capitals do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(
        max_length = 254,
        pattern = "^[^@\\s\\u0000-\\u001f\\u007f-\\u009f]+@[^@\\s\\u0000-\\u001f\\u007f-\\u009f]+$"
    )]
    pub email: Option<String>,
    /// Their role; a member if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
}

impl NewPerson {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        handle("handle", &self.handle)?;
        plain_line("name", self.name.as_deref(), NAME_LENGTH_MAX)?;
        mail(self.email.as_deref())
    }
}

/// A change of somebody. Whatever is left out stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PersonChange {
    /// Their name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*[^\\s\\u0000-\\u001f\\u007f-\\u009f][^\\u0000-\\u001f\\u007f-\\u009f]*$"
    )]
    pub name: Option<String>,
    /// Their e-mail address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(
        max_length = 254,
        pattern = "^[^@\\s\\u0000-\\u001f\\u007f-\\u009f]+@[^@\\s\\u0000-\\u001f\\u007f-\\u009f]+$"
    )]
    pub email: Option<String>,
    /// Their role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
}

impl PersonChange {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        plain_line("name", self.name.as_deref(), NAME_LENGTH_MAX)?;
        mail(self.email.as_deref())
    }
}

/// Somebody new, and how they come in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AddedPerson {
    /// The person.
    pub user: Person,
    /// The way in.
    pub link: Link,
}

/// A link that lets one person in, once. Shown this one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Link {
    /// The person whom it lets in.
    pub user: String,
    /// A path on this server; open it in a browser, or give it to `homing login --link`. Whoever has it is that person.
    #[schema(value_type = String, format = Password)]
    pub path: Secret,
    /// Until when it works.
    pub expires: At,
}

/// To whom something is handed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HandOver {
    /// The person.
    #[schema(pattern = "^usr_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    pub to: String,
}

/// It is so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Done {
    /// The id of the thing it was done to.
    pub id: String,
}

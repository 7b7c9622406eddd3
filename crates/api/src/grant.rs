//! Grants: on a session, on an agent; and the directories that people may choose.

use crate::check::directory;
use crate::object::object;
use crate::{At, Invalid, Who};
use serde::{Deserialize, Deserializer, Serialize, de};
use utoipa::openapi::Schema;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::{IntoParams, ToSchema};

/// The things a person may do with a session or an agent. Each includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// Read it.
    View,
    /// Say something to it: a shell as the agent's user.
    Prompt,
    /// End it, reorder it, share it, hand it on.
    Manage,
}

/// To whom something is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Grantee {
    /// One person.
    User(ToUser),
    /// Everybody who is in a group.
    Group(ToGroup),
    /// Everybody in the org.
    Org(ToOrg),
}

/// One person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToUser {
    /// The person.
    #[schema(pattern = "^usr_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    pub user: String,
}

/// Everybody who is in a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToGroup {
    /// The group.
    #[schema(pattern = "^grp_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    pub group: String,
}

/// Everybody in the org.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToOrg {
    /// Say `true`.
    #[schema(schema_with = only_true)]
    pub org: bool,
}

fn only_true() -> Schema {
    let flag = ObjectBuilder::new().schema_type(Type::Boolean).enum_values(Some([true]));
    flag.description(Some("Everybody in the org; it is `true` or not there.")).into()
}

impl Grantee {
    /// One person.
    pub fn user(user: impl Into<String>) -> Self {
        Self::User(ToUser { user: user.into() })
    }

    /// Everybody who is in a group.
    pub fn group(group: impl Into<String>) -> Self {
        Self::Group(ToGroup { group: group.into() })
    }

    /// Everybody in the org.
    pub fn org() -> Self {
        Self::Org(ToOrg { org: true })
    }

    fn of(user: Option<String>, group: Option<String>, org: Option<bool>) -> Option<Self> {
        match (user, group, org) {
            (Some(user), None, None) => Some(Self::user(user)),
            (None, Some(group), None) => Some(Self::group(group)),
            (None, None, Some(true)) => Some(Self::org()),
            _ => None,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GranteeFields {
    user: Option<String>,
    group: Option<String>,
    org: Option<bool>,
}

const ONE_OF: &str = "name exactly one of `user`, `group` and `org` (which is `true`)";

impl<'de> Deserialize<'de> for Grantee {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let GranteeFields { user, group, org } = object(deserializer)?;
        Self::of(user, group, org).ok_or_else(|| de::Error::custom(ONE_OF))
    }
}

/// An offer of a session: it is the other's when they accept it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Offer {
    /// The session.
    pub session: String,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// The agent that it talks to.
    pub agent: String,
    /// The directory that it acts in.
    pub directory: String,
    /// The person who owns it.
    pub from: Who,
    /// The person who is to own it.
    pub to: Who,
    /// Since when it is offered.
    pub since: At,
    /// It has lapsed then.
    pub until: At,
}

/// From whom something is taken back. Exactly one of the three.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct GranteeQuery {
    /// One person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(pattern = "^usr_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    pub user: Option<String>,
    /// Everybody who is in this group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(pattern = "^grp_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    pub group: Option<String>,
    /// Everybody in the org; say `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(schema_with = only_true)]
    pub org: Option<bool>,
}

impl GranteeQuery {
    /// The one that is named.
    pub fn grantee(self) -> Result<Grantee, Invalid> {
        let Self { user, group, org } = self;
        Grantee::of(user, group, org).ok_or(Invalid { field: "user", reason: ONE_OF.to_owned() })
    }
}

impl From<Grantee> for GranteeQuery {
    fn from(to: Grantee) -> Self {
        match to {
            Grantee::User(to) => Self { user: Some(to.user), ..Self::default() },
            Grantee::Group(to) => Self { group: Some(to.group), ..Self::default() },
            Grantee::Org(to) => Self { org: Some(to.org), ..Self::default() },
        }
    }
}

/// A grant to somebody, in place of what they were given on it before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewGrant {
    /// To whom.
    pub to: Grantee,
    /// The grant.
    pub grant: Grant,
}

/// From whom something was taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TakenBack {
    /// From whom.
    pub from: Grantee,
}

/// A grant that somebody has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Granted {
    /// To whom.
    pub to: Grantee,
    /// The grant.
    pub grant: Grant,
    /// The person who gave it.
    pub by: Who,
    /// Since when.
    pub since: At,
}

/// A directory that may be chosen for a session, with everything under it, and by whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Root {
    /// The directory, absolute. It is kept as the place that it leads to.
    #[schema(max_length = 4_095, pattern = "^/[^\\u0000]*$")]
    pub directory: String,
    /// Those who may choose it.
    pub to: Grantee,
}

impl Root {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        directory(&self.directory)
    }
}

/// A directory that may not be chosen any more. Exactly one of `user`, `group` and `org`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RootQuery {
    /// The directory, as the list has it.
    #[param(max_length = 4_095, pattern = "^/[^\\u0000]*$")]
    pub directory: String,
    /// By this person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(pattern = "^usr_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    pub user: Option<String>,
    /// By everybody who is in this group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(pattern = "^grp_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    pub group: Option<String>,
    /// By everybody in the org; say `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(schema_with = only_true)]
    pub org: Option<bool>,
}

impl RootQuery {
    /// The one that is named.
    pub fn root(self) -> Result<Root, Invalid> {
        let Self { directory, user, group, org } = self;
        let root = Root { directory, to: GranteeQuery { user, group, org }.grantee()? };
        root.check().map(|()| root)
    }
}

impl From<Root> for RootQuery {
    fn from(Root { directory, to }: Root) -> Self {
        let GranteeQuery { user, group, org } = to.into();
        Self { directory, user, group, org }
    }
}

//! Orgs: people, sessions and agents that belong together, and what an org decides for itself.

use crate::bounds::*;
use crate::check::{handle, invalid, mail, plain_line};
use crate::object::Whole;
use crate::{At, Grant, Invalid, Link};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

/// An org.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Org {
    /// Its id. Never changes.
    pub id: String,
    /// Its name. One of its kind on a machine.
    pub name: String,
    /// Its own settings.
    pub settings: OrgSettings,
    /// The number of its people who can come in.
    pub people: u32,
    /// When it was made.
    pub made_at: At,
}

/// The settings of an org.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrgSettings {
    /// The grant of everybody in the org on a session that is made from now on; none keeps it to its maker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_new: Option<Grant>,
    /// The most sessions the org may have open, if less than the machine allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_max: Option<u32>,
    /// In how many of them a turn may be under way, if less than the machine allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awake_max: Option<u32>,
}

/// A change of an org's settings. Whatever is left out stays as it is; `null` is as if it had never been said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OrgChange {
    /// The grant of everybody in the org on a session that is made from now on; `null` keeps it to its maker.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "said")]
    #[schema(value_type = Option<Grant>)]
    pub share_new: Option<Option<Grant>>,
    /// The most sessions the org may have open; `null` is as many as the machine allows.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "said_count")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 2_147_483_647)]
    pub open_max: Option<Option<u32>>,
    /// In how many of them a turn may be under way; `null` is as many as the machine allows.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "said_count")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 2_147_483_647)]
    pub awake_max: Option<Option<u32>>,
}

/// Tells `null` from nothing.
fn said<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(deserializer).map(Some)
}

fn said_count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<u32>>, D::Error> {
    Option::<Whole>::deserialize(deserializer).map(|count| Some(count.map(|Whole(count)| count)))
}

impl OrgChange {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        for (field, count) in [("open_max", self.open_max), ("awake_max", self.awake_max)] {
            if count.flatten().is_some_and(|count| !(1..=WHOLE_MAX).contains(&count)) {
                return invalid(field, format!("must be 1 to {WHOLE_MAX}"));
            }
        }
        Ok(())
    }
}

/// Another org on this machine, and who will own it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewOrg {
    /// Its name. One of its kind on a machine.
    #[schema(max_length = 64, pattern = "^[a-z0-9][a-z0-9._-]*$")]
    pub name: String,
    /// Its owner. They get a link by which they come in, once.
    pub owner: NewOwner,
}

/// The owner of a new org.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewOwner {
    /// The name that will stand in their addresses; it never changes.
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
    /// Their e-mail address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(
        max_length = 254,
        pattern = "^[^@\\s\\u0000-\\u001f\\u007f-\\u009f]+@[^@\\s\\u0000-\\u001f\\u007f-\\u009f]+$"
    )]
    pub email: Option<String>,
}

impl NewOrg {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        handle("name", &self.name)?;
        handle("owner.handle", &self.owner.handle)?;
        plain_line("owner.name", self.owner.name.as_deref(), NAME_LENGTH_MAX)?;
        mail(self.owner.email.as_deref())
    }
}

/// An org that was made, and how its owner comes in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MadeOrg {
    /// The org.
    pub org: Org,
    /// The way in.
    pub link: Link,
}

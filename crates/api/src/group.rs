//! Groups: people who are given things together.

use crate::check::word;
use crate::{Invalid, Who};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Group {
    /// Its id. Never changes.
    pub id: String,
    /// Its name. One of its kind in the org.
    pub name: String,
    /// The people in it.
    pub people: Vec<Who>,
}

/// A group to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewGroup {
    /// Its name. One of its kind in the org.
    #[schema(max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    pub name: String,
}

impl NewGroup {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        word("name", &self.name)
    }
}

/// Somebody's being in a group, or no longer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Membership {
    /// The group.
    pub group: String,
    /// The person.
    pub user: String,
}

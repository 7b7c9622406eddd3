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
    /// What it is called. One of its kind in the org.
    pub name: String,
    /// Who is in it.
    pub people: Vec<Who>,
}

/// A group to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewGroup {
    /// What it is called. One of its kind in the org.
    #[schema(max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    pub name: String,
}

impl NewGroup {
    /// Whether every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        word("name", &self.name)
    }
}

/// Who is in which group, or is no longer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Membership {
    /// The group.
    pub group: String,
    /// The person.
    pub user: String,
}

//! Agents that are configured.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An agent that is configured, and whether it is here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Agent {
    /// What sessions call it.
    pub name: String,
    /// Whether it is used where none is named.
    pub default: bool,
    /// Whether it could be started now.
    pub here: bool,
    /// Its version, if it is here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What is missing and how to get it, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// What it can do.
    pub abilities: Abilities,
}

/// What an agent can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Abilities {
    /// A conversation can be gone on with in a new process.
    pub resume: bool,
    /// A conversation can be continued under a second id.
    pub fork: bool,
    /// Words can be added to a turn while it runs.
    pub steer: bool,
    /// It asks before it acts.
    pub asks: bool,
    /// It says what a turn cost.
    pub usage: bool,
}

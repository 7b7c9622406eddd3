//! Which conversation belongs to which session.

use crate::At;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A conversation and the open session that it is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Binding {
    /// The conversation.
    pub address: String,
    /// The session.
    pub session: String,
    /// Since when.
    pub since: At,
}

/// Lets a conversation belong to another open session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// The conversation.
    #[schema(
        max_length = 9_300,
        pattern = "^(slack|web|cli|schedule|api|acp|mcp):([A-Za-z0-9._~-]|%[0-9A-F]{2})+(/([A-Za-z0-9._~-]|%[0-9A-F]{2})+){0,2}$"
    )]
    pub address: String,
    /// The session it shall belong to.
    #[schema(pattern = "^ses_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    pub session: String,
}

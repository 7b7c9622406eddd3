//! Bindings: the session that a conversation belongs to.

use crate::{Address, At, Previous};
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
    /// The session that it was bound to before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub before: Option<Previous>,
}

/// Lets a conversation belong to another open session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// The conversation.
    #[schema(value_type = Address)]
    pub address: String,
    /// The session it shall belong to.
    #[schema(pattern = "^ses_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    pub session: String,
}

//! Replies on their way out through a door, as admins see them.

use crate::At;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Where a reply stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutgoingState {
    /// It is sent when it is due, and when those before it to the same address are out of the way.
    Waiting,
    /// It is being sent.
    Sending,
    /// The service has it.
    Sent,
    /// It may have been sent.
    Unknown,
    /// It is not sent by itself any more.
    Parked,
}

/// A reply on its way out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Outgoing {
    /// Its number.
    pub id: u64,
    /// The session.
    pub session: String,
    /// The message that it replies to.
    pub message: String,
    /// The question that it asks; none if it is the end of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// Where it goes.
    pub to: String,
    /// Where it stands.
    pub state: OutgoingState,
    /// Since when.
    pub since: At,
    /// The number of times it was sent or read back.
    pub tries: u32,
    /// When it is looked at again by itself; none if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<At>,
    /// The service's own id of it, once it has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_id: Option<String>,
    /// Why it was not sent, or why nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The choice of replies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct OutboxQuery {
    /// Only those that stand so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub state: Option<OutgoingState>,
    /// The most items on the page; 50 if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<u32>,
    /// Where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 4_100)]
    pub cursor: Option<String>,
}

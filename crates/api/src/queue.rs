//! The messages of a session that are not final, in the order in which they run.

use crate::{At, Attached, Delivery, ReceiptState, Waiting, Who};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The queue of a session, and the message that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Queue {
    /// The one that runs first, then those that wait, in order.
    pub items: Vec<Queued>,
}

/// A message that is not final.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Queued {
    /// The message.
    pub id: String,
    /// Where it stands: waiting, held or running.
    pub state: ReceiptState,
    /// Why it is held, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Why it is not being worked on, if it waits for something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// The person who said it.
    pub by: String,
    /// The same, with their handle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said_by: Option<Who>,
    /// The number of times its words were replaced; say this when you change them.
    pub revision: u32,
    /// The delivery that its sender wanted.
    pub delivery: Delivery,
    /// The epoch of the scope that it was written for, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u32>,
    /// Its words, or how they begin if there are more than 4 KiB; the message itself has all of them (`words=true`).
    pub text: String,
    /// The images and files that go along with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attached>,
    /// When it was accepted.
    pub accepted_at: At,
}

/// Another order of the waiting messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Every waiting message once, in the order in which they shall run.
    #[schema(max_items = 1_000, value_type = Vec<MessageName>)]
    pub order: Vec<String>,
}

/// The id of a message.
#[derive(ToSchema)]
#[schema(value_type = String, pattern = "^msg_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
#[allow(dead_code)]
pub(crate) struct MessageName(String);

//! The turns of a session, as a list.

use crate::{At, Outcome, Who};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The choice of turns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TurnsQuery {
    /// Only turns with a lower number; the newest if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 0, maximum = 4_294_967_295_u64)]
    pub before: Option<u32>,
    /// The most turns on the page; 50 if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<u32>,
}

/// A page of a session's turns, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Turns {
    /// The turns.
    pub items: Vec<TurnSummary>,
    /// Give this as `before` to get the next page; none on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u32>,
}

/// A turn in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TurnSummary {
    /// Its number.
    pub turn: u32,
    /// The message that it began with.
    pub message: String,
    /// The person who said that.
    pub by: Who,
    /// The door by which it came in: `cli`, `browser` or `http`; none if that is not known. There may be more one day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub door: Option<String>,
    /// When it began.
    pub at: At,
    /// When it ended; none while it is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<At>,
    /// Its outcome, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The number of the fact that started it.
    pub first: u64,
    /// The number of the fact that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
    /// The beginning of the message's words.
    pub words: String,
    /// True if there are more of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

//! Pages: every list is one, and says how to go on.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    /// Its items, in the list's own order.
    pub items: Vec<T>,
    /// Give this as `cursor` to get the next page; none on the last one. It means nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The choice of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// The most items on the page; 50 if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<u32>,
    /// Where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 4_100)]
    pub cursor: Option<String>,
}

/// The choice of facts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FactsQuery {
    /// Only facts with a higher number; 0, the place before the first fact, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 0, maximum = 9_007_199_254_740_991_u64)]
    pub after: Option<u64>,
    /// Instead, the facts before this number: a page of the newest of them, in ascending order. Not of a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 0, maximum = 9_007_199_254_740_991_u64)]
    pub before: Option<u64>,
    /// The most facts on a page; a stream has no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<u32>,
    /// True if a stream also tells how ready the session is, at first and whenever that changes: events named
    /// `readiness`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness: Option<bool>,
    /// True if a page also has the words of the messages that its facts name. Not of a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<bool>,
}

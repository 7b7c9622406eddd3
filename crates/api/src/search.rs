//! Search: what was said, and where.

use crate::check::invalid;
use crate::{At, Invalid};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The longest text that is searched for.
const QUERY_LENGTH_MAX: usize = 200;

/// A search, and a page of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SearchQuery {
    /// The words; of more than 16 the rest is not looked for.
    #[param(min_length = 1, max_length = 200)]
    pub q: String,
    /// Only in this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(pattern = "^ses_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    pub session: Option<String>,
    /// The most items on the page, 50 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<u32>,
    /// Where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 4_100)]
    pub cursor: Option<String>,
}

impl SearchQuery {
    /// Checks that its words are as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        let length = self.q.chars().count();
        if length == 0 || length > QUERY_LENGTH_MAX {
            return invalid("q", format!("must have 1 to {QUERY_LENGTH_MAX} characters"));
        }
        Ok(())
    }
}

/// Something that was said, and found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Hit {
    /// In which session.
    pub session: String,
    /// In which of its turns.
    pub turn: u32,
    /// The number of the fact that it begins with: of a message, the one that took it into its turn.
    pub number: u64,
    /// When it was said.
    pub at: At,
    /// By whom it was said.
    pub kind: HitKind,
    /// A part of the words, at most 240 bytes, with the first place that fits in it.
    pub words: String,
    /// Where that place begins in them, in bytes.
    pub from: u32,
    /// Where it ends.
    pub to: u32,
}

/// The two sorts of words that are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HitKind {
    /// A message.
    Said,
    /// Words of the agent.
    Text,
}

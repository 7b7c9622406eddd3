//! Running copies of Homing.

use crate::At;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One running copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    /// Its id.
    pub id: String,
    /// Under which term it works; grows with each start.
    pub term: u64,
    /// The machine it runs on.
    pub host: String,
    /// Its process there.
    pub pid: u32,
    /// Since when it runs.
    pub since: At,
    /// Where it can be reached, once it has said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

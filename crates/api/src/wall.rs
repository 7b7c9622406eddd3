//! The wall around the data: what an agent can reach of what is not its own, as somebody saw who tried.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What was seen from inside an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Wall {
    /// Whether everything that was tried was in vain, as it should be.
    pub proved: bool,
    /// The server was started with `trust_everyone`: people are let in without the proof.
    pub trusts_everyone: bool,
    /// What was tried and found, in words.
    pub findings: Vec<String>,
}

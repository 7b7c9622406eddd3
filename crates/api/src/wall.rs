//! The wall around the data: what an agent can reach of what is not its own, as somebody saw who tried.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The wall, as it was seen from inside an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Wall {
    /// True if everything that was tried was in vain, as it should be.
    pub proved: bool,
    /// The server was started with `trust_everyone`: people are let in without the proof.
    pub trusts_everyone: bool,
    /// The attempts and what they found, in words.
    pub findings: Vec<String>,
}

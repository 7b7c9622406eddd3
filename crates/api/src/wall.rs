//! The wall around the data: what an agent can reach of what is not its own, as somebody saw who tried.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What was seen from inside an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Wall {
    /// Whether everything that was tried was in vain, as it should be.
    pub proved: bool,
    /// The server was started with `trust_everyone`: people may be added without the proof.
    pub trusts_everyone: bool,
    /// What was tried, one after the other.
    pub checks: Vec<WallCheck>,
}

/// One thing that was tried from inside an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WallCheck {
    /// What was tried.
    pub what: String,
    /// Whether the wall held.
    pub held: bool,
    /// What was seen, in words.
    pub words: String,
}

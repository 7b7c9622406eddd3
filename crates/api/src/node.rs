//! Running copies of Homing, and the program that answers.

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

/// The program that answers, and what it sees of its machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunningProgram {
    /// Its version.
    pub version: String,
    /// The build: two programs of one version and different builds are not the same program. Empty if it cannot be told.
    pub build: String,
    /// The file that it was started from.
    pub program: String,
    /// True if that file is another one by now, or none: an upgrade that a restart would bring into force.
    pub replaced: bool,
    /// Its process.
    pub pid: u32,
    /// The `PATH` by which it looks for agents, unless an agent's table has another.
    pub path: String,
}

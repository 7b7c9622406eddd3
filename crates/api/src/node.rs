//! Running copies of Homing, the program that answers, and how its machine is.

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

/// The findings about the machine, as `homing doctor` makes them where the server runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DoctorFindings {
    /// The worst of them.
    pub state: FindingState,
    /// All of them, in the order in which they were made.
    pub checks: Vec<DoctorFinding>,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DoctorFinding {
    /// The part of the machine that was looked at, or an agent's name. Several findings may be about one.
    pub check: String,
    /// The state it is in.
    pub state: FindingState,
    /// The same in words.
    pub detail: String,
    /// The thing to do about it, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// The state of a part of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingState {
    /// As it should be.
    Ok,
    /// Somebody should look at it.
    Warn,
    /// Something does not work.
    Fail,
}

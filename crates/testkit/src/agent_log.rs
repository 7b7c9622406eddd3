//! The turns that really ran, by the scripted agent's own account: the file that `HOMING_SCRIPTED_LOG` names, one line
//! per moment.

use std::path::Path;

use serde::Deserialize;

/// One moment in an agent's life: `up` (it came up), `start` (it begins to act on a message), `end` (it is done).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[allow(missing_docs)]
pub struct AgentLogLine {
    pub event: String,
    pub session: String,
    pub turn: Option<u64>,
    pub attempt: Option<u64>,
    pub term: Option<u64>,
    pub epoch: Option<u64>,
    pub message: String,
    pub pid: u32,
    pub time_ms: u64,
    pub native: String,
    pub outcome: String,
}

/// Every line of the file, in order; none if the file is not there. A torn line fails the test: lines are written whole.
pub fn agent_log(path: &Path) -> Vec<AgentLogLine> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(why) => panic!("{}: {why}", path.display()),
    };
    let read = |line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{line}: {why}"));
    text.lines().map(read).collect()
}

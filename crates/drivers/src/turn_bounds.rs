//! The limits of a turn, and the words with which one that takes more ends.
//!
//! Each limit has a key in the configuration, and the words name it. Who counts and who ends is `running_agent`.

use std::time::Duration;

use agent::{AgentEvent, Trouble};
use processes::ResourceLimit;

/// The limits of a turn, and of whom. Each of these has a key in the configuration, which is named when it was too little.
#[derive(Debug, Clone)]
pub(crate) struct TurnBounds {
    /// The name that people have for the agent.
    pub(crate) name: String,
    /// From the start of the process until it is ready for the message.
    pub(crate) start_max: Duration,
    /// From the message to the last word.
    pub(crate) turn_max: Duration,
    /// From one event to the next while a turn runs and nobody is asked, if bounded.
    pub(crate) silence_max: Option<Duration>,
    /// Bytes on both outputs together, in one turn.
    pub(crate) output_bytes_max: u64,
    /// Memory of the whole tree.
    pub(crate) memory_bytes_max: Option<u64>,
    /// Processes of the whole tree.
    pub(crate) processes_max: Option<u32>,
    /// Bytes that the whole tree may write.
    pub(crate) written_bytes_max: Option<u64>,
}

impl TurnBounds {
    /// It took too much; a person may let it have more.
    pub(crate) fn exceeded(&self, what: impl std::fmt::Display, key: &str) -> AgentEvent {
        self.exceeded_in("limits", what, key)
    }

    fn exceeded_in(&self, table: &str, what: impl std::fmt::Display, key: &str) -> AgentEvent {
        let trouble = format!("{what}; if that is as it should be, raise agents.{}.{table}.{key}", self.name);
        AgentEvent::Failed(Trouble::transient(trouble))
    }

    /// It was not ready in time.
    pub(crate) fn late_start(&self) -> AgentEvent {
        self.exceeded(format!("the agent was not ready within {:?}", self.start_max), "start_max")
    }

    /// It was not done in time.
    pub(crate) fn late_turn(&self) -> AgentEvent {
        self.exceeded(format!("the turn took more than {:?}", self.turn_max), "turn_max")
    }

    /// Nothing was heard of it for too long.
    pub(crate) fn silent(&self) -> AgentEvent {
        let silence_max = self.silence_max.unwrap_or_default();
        self.exceeded(format!("the agent said and did nothing for {silence_max:?}"), "silence_max")
    }

    pub(crate) fn exceeded_by_tree(&self, limit: ResourceLimit) -> AgentEvent {
        match limit {
            ResourceLimit::Memory => {
                let most = amount(self.memory_bytes_max.unwrap_or_default());
                self.exceeded(format!("the agent's processes used more than {most} of memory"), "memory_max")
            }
            ResourceLimit::Processes => {
                let most = self.processes_max.unwrap_or_default();
                self.exceeded(format!("the agent had more than {most} processes"), "processes_max")
            }
            // No agent has this one.
            ResourceLimit::Written => {
                let most = amount(self.written_bytes_max.unwrap_or_default());
                let what = format!("the script and what it started wrote more than {most}");
                self.exceeded_in("worktree", what, "scripts_written_max")
            }
        }
    }
}

/// Bytes, for people.
pub(crate) fn amount(bytes: u64) -> String {
    match bytes {
        1_000_000_000.. => format!("{:.1} GB", bytes as f64 / 1e9),
        1_000_000.. => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{bytes} bytes"),
    }
}

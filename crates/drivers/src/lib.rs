//! The agents we drive: a folder for each, with a pure reader of its output and a thin shell around its process.
//!
//! Read in this order: `agent_protocol` (what one agent says and hears), `running_agent` (an agent that talks in lines, as a `Running`), `turn_bounds` (its limits), `kept_processes` (processes that wait for the next turn), `background` (what turns leave running),
//! `survey` (questions with options), `plans` (plans that are asked about), `program` (the program of an agent: how it is found and started), `program_look` (how it is asked for its version), then a folder per agent: `claude`,
//! `codex`, `opencode`, `acp`, `command`, `scripted`. `line_reader` cuts what they print. Nothing here touches a store.

pub mod acp;
mod agent_protocol;
mod attached;
mod background;
pub mod claude;
pub mod codex;
pub mod command;
mod kept_processes;
mod line_reader;
pub mod opencode;
mod plans;
mod program;
mod program_look;
mod running_agent;
mod scripted;
mod survey;
mod turn_bounds;

pub use background::BackgroundPolicy;
pub use program::{ProgramConfig, TurnLimits};
pub use scripted::{Scripted, ScriptedConfig, scripted_agent};

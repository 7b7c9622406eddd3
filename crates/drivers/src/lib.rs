//! The agents we drive: a folder for each, with a pure reader of its output and a thin shell around its process.
//!
//! Read in this order: `spoken` (an agent that talks in lines, as a `Running`), `keep` (processes that wait for the next turn),
//! `survey` (questions with options), `shell` (what all drivers of real programs share), then a folder per agent: `claude`,
//! `codex`, `opencode`, `acp`, `command`, `scripted`. `lines` cuts what they print. Nothing here touches a store.

pub mod acp;
pub mod claude;
pub mod codex;
pub mod command;
mod keep;
mod lines;
pub mod opencode;
mod scripted;
mod shell;
mod spoken;
mod survey;

pub use scripted::{Scripted, ScriptedConfig, scripted_agent};
pub use shell::{ShellConfig, TurnLimits};

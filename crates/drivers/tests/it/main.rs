//! The far side with real processes: every driver's stories, and that nothing is ever left behind.

mod acp;
mod background;
mod bench;
mod claude;
mod codex;
mod command;
mod flood;
mod keeping;
mod limits;
mod opencode;
mod orphans;
mod real;
mod scripted;
mod wall;

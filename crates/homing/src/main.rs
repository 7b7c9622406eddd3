//! Homing: every message finds its own session. One binary: the server, its commands, and the far side of its agents.
//!
//! Read in this order: `cli` (what a person can type), `commands` (a file each), and what they share: `data_dir`,
//! `credentials` (what a sign-in leaves), `remote` (finding and asking the server), `target` (which session is meant),
//! `people_lookup` (which person or group), `follow` (watching a turn), `progress_line` (watching work that takes long), `terminal_prompt` and `keyboard` (what is typed),
//! `describe` (facts for people), `screen` and `exit`. The server's side is `wiring`, with `config`, `roster` (the agents),
//! `wall` (what they must not see), `call_back`, `seal` and `system` (clock, ids, and who we are).

mod call_back;
mod cli;
mod commands;
mod config;
mod credentials;
mod data_dir;
mod describe;
mod exit;
mod follow;
mod keyboard;
mod people_lookup;
mod progress_line;
mod remote;
mod roster;
mod screen;
mod seal;
mod system;
mod target;
mod terminal_prompt;
mod time;
mod wall;
mod wiring;

use std::process::ExitCode;

fn main() -> ExitCode {
    // The far side of the process boundary must not have threads, so it comes before everything else.
    match std::env::args_os().nth(1).as_deref().and_then(|name| name.to_str()) {
        Some("supervise") => processes::supervise(),
        Some("scripted-agent") => drivers::scripted_agent(),
        Some("probe-wall") => processes::wall::probe_wall(),
        Some("ground") => worktrees::ground_worker(),
        _ => cli::run(),
    }
}

//! Homing: every message finds its own session. One binary: the server, its commands, and the far side of its agents.
//!
//! Read in this order: `cli` (what a person can type; `usage` what is wrong with it, `near_commands` what they may have meant), `commands` (a file each), and what they share: `data_dir`,
//! `credentials` (what a sign-in leaves), `remote` (finding and asking the server), `target` (which session is meant),
//! `people_lookup` (which person or group), `follow` and `tool_calls` (watching a turn), `progress_line` (watching work that takes long), `terminal_prompt`, `keyboard`
//! and `line_editor` (what is typed), `describe` (facts for people), `transcript` (conversations for people), `screen`, `pager`, `prompt_area` and `markdown` (what
//! is shown), `notify` and `exit`. `completion` is what a shell is told when somebody presses TAB. `background` (with `log_file`) starts and stops a server that has no terminal. The server's side is `wiring`, with `config`, `roster` (the agents),
//! `wall` (what they must not see), `call_back`, `seal`, `own_doctor` and `system` (clock, ids, and who we are).

mod answering;
mod attached;
mod background;
mod call_back;
mod cli;
mod commands;
mod completion;
mod config;
mod credentials;
mod data_dir;
mod describe;
mod exit;
mod follow;
mod here;
mod keyboard;
mod line_editor;
mod log_file;
mod markdown;
mod names;
mod near_commands;
mod notify;
mod own_doctor;
mod pager;
mod people_lookup;
mod progress_line;
mod prompt_area;
mod remote;
mod roster;
mod screen;
mod seal;
mod system;
mod table;
mod target;
mod terminal_lists;
mod terminal_prompt;
mod time;
mod tool_calls;
mod transcript;
mod usage;
mod wall;
mod wiring;
mod wrap;

use std::process::ExitCode;

fn main() -> ExitCode {
    // The far side of the process boundary must not have threads, so it comes before everything else.
    match std::env::args_os().nth(1).as_deref().and_then(|name| name.to_str()) {
        Some("supervise") => processes::supervise(),
        Some("scripted-agent") => drivers::scripted_agent(),
        Some("probe-wall") => processes::wall::probe_wall(),
        Some("ground") => worktrees::ground_worker(),
        Some("__complete") => completion::run(),
        _ => cli::run(),
    }
}

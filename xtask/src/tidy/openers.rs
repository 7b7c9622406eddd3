//! The list of who may open files in the rooms of the server: whoever is not on it asks a session's ground worker.
//!
//! Law 18: the server does not set foot on an agent's ground. A path that an agent can change is only held there
//! (`crates/worktrees/src/session_directory.rs`). What is listed opens what is Homing's own or its person's.

use super::Violation;
use super::text::code_of;
use crate::repository::Repository;

/// Rooms whose code runs in the server.
const SERVER_ROOMS: &[&str] = &[
    "crates/api/src/",
    "crates/agent/src/",
    "crates/drivers/src/",
    "crates/engine/src/",
    "crates/homing/src/",
    "crates/server/src/",
    "crates/store/src/",
    "crates/worktrees/src/",
];

/// Files, or directories of them, and what they open.
const OPENERS: &[(&str, &str)] = &[
    ("crates/api/src/tls.rs", "the certificates that a person names to the client"),
    (
        "crates/drivers/src/acp/sign_in.rs",
        "looks if a sign-in is there, and in a file of settings of the agent's home",
    ),
    ("crates/drivers/src/background.rs", "its notes, beside the locks"),
    ("crates/drivers/src/claude/mod.rs", "looks if a sign-in is there"),
    ("crates/drivers/src/claude/recordings.rs", "stories of tests"),
    ("crates/drivers/src/codex/mod.rs", "looks if a sign-in is there"),
    ("crates/drivers/src/codex/replay.rs", "stories of tests"),
    ("crates/drivers/src/command/mod.rs", "random numbers; looks if a directory that is held is one"),
    ("crates/drivers/src/opencode/ids.rs", "random numbers"),
    ("crates/drivers/src/opencode/mod.rs", "looks if a sign-in is there"),
    (
        "crates/drivers/src/program.rs",
        "programs, locks and homes, and the bounded beginning of an agent's settings",
    ),
    ("crates/drivers/src/scripted/mod.rs", "looks if its program is there"),
    ("crates/drivers/src/scripted/process.rs", "the scripted agent itself, behind its wall"),
    ("crates/homing/src/attached.rs", "what the person at the terminal sends along"),
    ("crates/homing/src/background.rs", "our own program, which is the server"),
    ("crates/homing/src/call_back.rs", "the file of a turn's credential"),
    ("crates/homing/src/commands/", "what the person at the terminal names, and the data directory"),
    ("crates/homing/src/config/", "the configuration"),
    ("crates/homing/src/credentials.rs", "the client's own credentials"),
    ("crates/homing/src/data_dir.rs", "the data directory"),
    ("crates/homing/src/here.rs", "looks for the repository around the person at the terminal"),
    ("crates/homing/src/own_doctor.rs", "our own program, which is the doctor"),
    ("crates/homing/src/line_editor/history.rs", "what the person at the terminal has typed"),
    ("crates/homing/src/log_file.rs", "the log in the data directory"),
    ("crates/homing/src/notify.rs", "the desktop of the person at the terminal"),
    ("crates/homing/src/pager.rs", "the pager of the person at the terminal"),
    ("crates/homing/src/terminal_lists.rs", "the lists that a terminal was shown last"),
    ("crates/homing/src/remote.rs", "the client's own token"),
    ("crates/homing/src/roster/", "looks if programs and sign-ins are there"),
    ("crates/homing/src/seal.rs", "the key in the data directory"),
    ("crates/homing/src/system.rs", "the list of users, and our own program"),
    ("crates/homing/src/wall", "the names of what the wall lists and hides, when the server starts"),
    ("crates/homing/src/wiring.rs", "the data directory, and the roots of the configuration"),
    ("crates/server/src/metrics.rs", "what the kernel knows of this process"),
    ("crates/server/src/nodes.rs", "looks if our own program was replaced"),
    ("crates/server/src/tls.rs", "the server's certificate and key"),
    ("crates/worktrees/src/directory_check.rs", "looks if a directory that somebody chooses is one, once"),
    ("crates/worktrees/src/git/", "the worker's side"),
    ("crates/worktrees/src/repositories.rs", "the name of the data directory"),
    ("crates/worktrees/src/seen_notes.rs", "our own notes"),
    ("crates/worktrees/src/session_directory.rs", "holds directories, and makes those of sessions"),
    ("crates/worktrees/src/session_trees.rs", "the worker's side"),
    ("crates/worktrees/src/session_trees/recorded.rs", "names in our own records"),
    ("crates/worktrees/src/snapshot_backup.rs", "our own snapshots"),
    ("crates/worktrees/src/worker/serve.rs", "the worker's side"),
    (
        "crates/worktrees/src/worker/written.rs",
        "the worker's side: what the kernel has counted for its processes",
    ),
    ("crates/worktrees/src/worker/workers/line.rs", "the name of the data directory"),
];

/// Ways to open, look at or run something by its path.
const WAYS: &[&str] = &[
    "fs::",
    "File::",
    "OpenOptions",
    "DirBuilder",
    "Command::new",
    "canonicalize(",
    ".metadata(",
    ".symlink_metadata(",
    ".exists()",
    ".try_exists(",
    ".is_dir()",
    ".is_file()",
    ".is_symlink()",
    ".read_dir(",
    ".read_link(",
    "openat",
];

pub(super) fn only_listed_files_open_others(house: &Repository) -> Vec<Violation> {
    let mut idle: Vec<&str> = OPENERS.iter().map(|(path, _)| *path).collect();
    idle.retain(|path| house.sources().any(|(source, _)| source.starts_with(path)));
    let mut findings = Vec::new();
    for (path, text) in house.sources().filter(|(path, _)| is_of_server(path)) {
        let Some((line, way)) = first_way_in(text) else { continue };
        match OPENERS.iter().find(|(listed, _)| path.starts_with(listed)) {
            Some((listed, _)) => idle.retain(|path| path != listed),
            None => findings.push(Violation::new(
                path,
                line,
                format!("the server opens something here: `{way}`"),
                "let the session's ground worker do it; of Homing's own files, name this one in OPENERS",
            )),
        }
    }
    let idle = idle.into_iter().map(|path| {
        Violation::new(path, 1, "it is among OPENERS, and opens nothing", "take it from the list")
    });
    findings.extend(idle);
    findings
}

fn is_of_server(path: &str) -> bool {
    SERVER_ROOMS.iter().any(|room| path.starts_with(room)) && !path.ends_with("tests.rs")
}

/// The first line that opens something, and how. Tests, which stand at the end, are not read.
fn first_way_in(text: &str) -> Option<(usize, &'static str)> {
    let product = text.lines().enumerate().take_while(|(_, line)| line.trim_end() != "mod tests {");
    let mut lines = product.filter(|(_, line)| !line.starts_with("use "));
    lines.find_map(|(at, line)| {
        let way = WAYS.iter().copied().find(|way| code_of(line).contains(way))?;
        Some((at + 1, way))
    })
}

#[cfg(test)]
mod tests {
    use super::super::say;
    use super::*;

    #[test]
    fn whoever_opens_is_on_the_list() {
        let house = Repository::in_order()
            .file("crates/engine/src/turn.rs", "use std::fs;\n// fs::read\nlet a = fs::read(path);\n")
            .file("crates/server/src/pear.rs", "mod tests {\n    fs::read(path);\n")
            .file("crates/homing/src/seal.rs", "let a = path.exists();\n")
            .file("crates/sim/src/pear.rs", "fs::read(path);\n");
        let said = say(only_listed_files_open_others, &house);
        assert_eq!(said, "crates/engine/src/turn.rs:3: the server opens something here: `fs::`\n");
    }

    #[test]
    fn whoever_opens_nothing_any_more_goes_from_the_list() {
        let house = Repository::in_order().file("crates/homing/src/seal.rs", "let a = 1;\n");
        let said = say(only_listed_files_open_others, &house);
        assert_eq!(said, "crates/homing/src/seal.rs:1: it is among OPENERS, and opens nothing\n");
    }
}

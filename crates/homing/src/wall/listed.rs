//! The list of what is there for all agents, as the configuration has it: held once, when the server starts.

use std::path::{Path, PathBuf};

use processes::wall::{ListedAccess, ListedPaths};

use super::path_of;
use crate::config::Config;
use crate::config::agents::{AgentTable, Enabled, Home};
use crate::exit::{CliError, Exit};
use crate::roster::{self, HOME_BOUND};
use crate::system;

/// The variable that says where the scripted agent keeps its log.
const AGENT_LOG: &str = "HOMING_SCRIPTED_LOG";

/// The system, the programs of the agents, the homes that they may have, and what `[wall]` allows. `homes` are those of people who
/// have a user of their own.
pub(super) fn of(config: &Config, data: &Path, homes: Vec<PathBuf>) -> Result<ListedPaths, CliError> {
    super::home_places::check(config)?;
    let mut all = ListedPaths::system();
    homes.iter().for_each(|home| all.add_home(home));
    let agents = config.agents.iter().filter(|(_, table)| table.enabled != Enabled::No);
    for (name, table) in agents.clone().filter(|(_, table)| table.home != Home::Session) {
        all.add_home(roster::home(name, &table.home, data));
    }
    for (key, paths, access) in [
        ("allow", &config.wall.allow, ListedAccess::Write),
        ("allow_read", &config.wall.allow_read, ListedAccess::Read),
    ] {
        for path in paths {
            let path = path_of(key, path)?;
            if let Some(link) = all.link_out_of_home(&path) {
                return Err(leads_out(key, &path, &link));
            }
            all.add(path, access);
        }
    }
    // Whatever is around one of these is listed by nobody's name but its own.
    let around: Vec<PathBuf> = homes.into_iter().chain([system::home(), data.to_path_buf()]).collect();
    if let Ok(exe) = system::exe().and_then(|exe| exe.canonicalize()) {
        all.add(exe, ListedAccess::Read);
    }
    if let Ok(path) = std::env::var("PATH") {
        all.add_search_path(&path, &around);
    }
    for (name, table) in agents {
        add_agent(&mut all, name, table, &around);
    }
    super::home_places::add_for_all(&mut all);
    add_log(&mut all);
    Ok(all)
}

/// Agents write in that home: where a link in it leads is theirs to say, and not what was meant by its name.
fn leads_out(key: &str, path: &Path, link: &Path) -> CliError {
    let what = format!("wall.{key}: {} is a link on the way to {}", link.display(), path.display());
    let hint = "agents may have made it; write where it leads to, if that is what you mean";
    CliError::new(Exit::Usage, what).hint(hint)
}

fn add_agent(all: &mut ListedPaths, name: &str, table: &AgentTable, around: &[PathBuf]) {
    // One that leads nowhere stops the start elsewhere, with its name.
    let env = roster::environment(table).unwrap_or_default();
    let program = if table.program.is_empty() { name } else { &table.program };
    for (name, value) in &env {
        match name.as_str() {
            "PATH" => {
                all.add_search_path(value, around);
                let places = std::env::split_paths(value).map(|place| place.join(program));
                places.filter(|path| path.is_file()).take(1).for_each(|path| all.add_program(&path, around));
            }
            // It has a place of its own for what does not stay, and places of its own in those (`home_places`).
            "TMPDIR" | "XDG_CONFIG_HOME" | "XDG_DATA_HOME" | "XDG_STATE_HOME" | "XDG_CACHE_HOME" => {}
            name if HOME_BOUND.contains(&name) => all.add_named(value, ListedAccess::Write, around),
            _ => all.add_named(value, ListedAccess::Read, around),
        }
    }
    if Path::new(program).is_absolute() {
        all.add_program(Path::new(program), around);
    }
}

/// The scripted agent adds to its log, which has to be there for that.
fn add_log(all: &mut ListedPaths) {
    let Some(log) = std::env::var_os(AGENT_LOG).map(PathBuf::from) else { return };
    if std::fs::OpenOptions::new().create(true).append(true).open(&log).is_ok() {
        all.add(log, ListedAccess::Write);
    }
}

//! The parts of a person's home that are there behind a wall that lists: what an agent keeps there, and what says who somebody is to git.

use std::path::{Path, PathBuf};

use processes::wall::{ListedAccess, ListedPath, ListedPaths};

use super::{WallFor, walls};
use crate::config::agents::{AgentTable, Enabled, Home};
use crate::config::{Config, WallLayoutBy};
use crate::exit::{CliError, Exit};
use crate::{roster, system};

/// The variables that say where something is instead of there.
const ELSEWHERE: [(&str, &str); 4] = [
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
    ("XDG_CACHE_HOME", ".cache"),
];
/// Everybody's, to be read: who makes commits, and what git ignores. Never where git keeps credentials.
const FOR_ALL: [&str; 6] = [
    ".gitconfig",
    ".gitignore",
    ".gitignore_global",
    ".config/git/config",
    ".config/git/ignore",
    ".config/git/attributes",
];

/// The places of one agent, held. Those that are missing are made where they are to be directories and it is going to need them.
pub(super) fn home_places(config: &Config, name: &str, table: &AgentTable) -> Vec<ListedPath> {
    let lists = walls(config).contains(&WallFor::Team) && config.wall.layout != WallLayoutBy::Hide;
    if table.enabled == Enabled::No || table.home != Home::Person || !lists {
        return Vec::new();
    }
    let env = roster::environment(table).unwrap_or_default();
    let is_here = roster::has_program(name, table, &env);
    let held = |place: &String| {
        let (home, place) = place_in(place, |name| variable(&env, name));
        let place = if is_here { &place } else { place.trim_end_matches('/') };
        ListedPaths::in_home(&home, place, ListedAccess::Write)
    };
    table.home_places.iter().filter_map(held).collect()
}

/// Adds the places that are there for all agents and workers.
pub(super) fn add_for_all(all: &mut ListedPaths) {
    for place in FOR_ALL {
        let (home, place) = place_in(place, |name| std::env::var(name).ok());
        all.add_held(ListedPaths::in_home(&home, &place, ListedAccess::Read));
    }
}

/// Paths of an agent's own are below its home and do not lead out of it.
pub(super) fn check(config: &Config) -> Result<(), CliError> {
    for (name, table) in &config.agents {
        for place in &table.home_places {
            let path = Path::new(place);
            let is_plain = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
            if !is_plain || place.is_empty() {
                let what = format!("agents.{name}.home_places: {place:?} is no path below a home");
                return Err(
                    CliError::new(Exit::Usage, what).hint("write paths such as \".agent/\", without ~ or ..")
                );
            }
        }
    }
    Ok(())
}

fn variable(env: &[(String, String)], name: &str) -> Option<String> {
    env.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
}

/// The directory in which a place is looked for, and its path from there.
fn place_in(place: &str, variable: impl Fn(&str) -> Option<String>) -> (PathBuf, String) {
    for (name, usual) in ELSEWHERE {
        let inside = place.strip_prefix(usual).and_then(|rest| rest.strip_prefix('/'));
        let there = variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        if let (Some(inside), Some(there)) = (inside, there) {
            return (there, inside.to_owned());
        }
    }
    (system::home(), place.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_where_the_variables_say() {
        let in_place = |place: &str| {
            let (home, place) =
                place_in(place, |name| (name == "XDG_CONFIG_HOME").then(|| "/etc/own".to_owned()));
            home.join(place)
        };
        assert_eq!(in_place(".config/goose/"), Path::new("/etc/own/goose/"));
        for place in [".configured/x", ".local/share/goose/", ".claude.json"] {
            assert_eq!(in_place(place), system::home().join(place));
        }
    }
}

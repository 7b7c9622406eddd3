//! The list of who may take the text out of a ground path, and for what.
//!
//! A `GroundPath` (`crates/kernel/src/ground_path.rs`) is no path that anybody could open. Whoever says it to people or stores it,
//! hands it to a process behind a wall, or holds it by a descriptor, takes its text, by a function that says which of these it is for.

use super::Violation;
use super::text::code_of;
use crate::repository::Repository;

/// The text for people, the wire and what is stored. Whoever is among them opens nothing (`OPENERS`), or says here what.
const FOR_READERS: Taking = Taking { way: ".for_readers(", takers: READERS };
/// The text for a process on that ground.
const FOR_LAUNCH: Taking = Taking { way: ".for_launch(", takers: LAUNCHERS };
/// The text for whoever holds it.
const FOR_HOLDING: Taking = Taking { way: ".for_holding(", takers: HOLDERS };
/// The true name of what is held, behind the wall.
const BEHIND_WALL: Taking = Taking { way: ".path_behind_wall(", takers: GROUND_WORKER };

/// A way to take the text, and the files that may.
struct Taking {
    way: &'static str,
    takers: &'static [(&'static str, &'static str)],
}

const READERS: &[(&str, &str)] = &[
    ("crates/agent/src/", "the scripted agent says where it is"),
    ("crates/drivers/src/command/mod.rs", "an error's words"),
    ("crates/drivers/src/running_agent.rs", "an error's words; compared with what the agent says"),
    ("crates/engine/src/errand.rs", "a notice's words"),
    ("crates/engine/src/intake/scope.rs", "a person's choice, before it is one"),
    ("crates/engine/src/keeper/outside.rs", "a notice's words, and the story of a start"),
    ("crates/engine/src/people/", "the name of a root or of a rule's directory, which is a person's choice"),
    ("crates/engine/src/snapshot_room.rs", "the log of what has gone"),
    ("crates/engine/src/story.rs", "the story of a question"),
    ("crates/engine/src/wait.rs", "the reason for a wait, on the wire"),
    ("crates/engine/src/merged_tree.rs", "the stored answer to a merge"),
    ("crates/kernel/src/due.rs", "the name of a claim"),
    ("crates/server/src/grants.rs", "the wire"),
    ("crates/server/src/sessions.rs", "the wire"),
    ("crates/server/src/wire/scope.rs", "the wire"),
    ("crates/server/src/worktrees.rs", "the wire"),
    ("crates/sim/src/", "nothing of it is on a disk"),
    ("crates/store/src/record/scope.rs", "what is stored"),
    ("crates/worktrees/src/session_directory.rs", "an error's words"),
    ("crates/worktrees/src/session_ground.rs", "an error's words"),
];

const LAUNCHERS: &[(&str, &str)] = &[
    ("crates/drivers/src/acp/protocol.rs", "the agent is told where it is"),
    ("crates/drivers/src/codex/protocol.rs", "the agent is told where it is"),
    ("crates/drivers/src/command/mod.rs", "the arguments of the agent"),
    ("crates/drivers/src/opencode/mod.rs", "the agent is told where it is"),
    ("crates/drivers/src/program.rs", "the place of a conversation"),
    ("crates/processes/src/tree.rs", "the supervisor is told where the agent runs"),
    ("crates/worktrees/src/session_trees.rs", "the worker's side"),
    ("crates/worktrees/src/worker/protocol.rs", "the worker is told where it works"),
];

const HOLDERS: &[(&str, &str)] = &[
    ("crates/drivers/src/command/mod.rs", "looks if a directory that is held is one"),
    ("crates/processes/src/tree.rs", "compares its true name with where the agent is"),
    ("crates/processes/src/wall/mod.rs", "the wall holds what it lists"),
    ("crates/worktrees/src/repositories.rs", "looks up names of directories above it"),
    ("crates/worktrees/src/session_directory.rs", "holds directories"),
];

const GROUND_WORKER: &[(&str, &str)] = &[("crates/worktrees/src/session_trees.rs", "the worker's side")];

pub(super) fn only_listed_files_take_a_ground_path(house: &Repository) -> Vec<Violation> {
    [FOR_READERS, FOR_LAUNCH, FOR_HOLDING, BEHIND_WALL].iter().flat_map(|taking| taking.look(house)).collect()
}

impl Taking {
    fn look(&self, house: &Repository) -> Vec<Violation> {
        let is_there = |taker: &&str| house.sources().any(|(source, _)| source.starts_with(taker));
        let mut idle: Vec<&str> = self.takers.iter().map(|(taker, _)| *taker).filter(is_there).collect();
        let mut findings = Vec::new();
        for (path, text) in house.sources().filter(|(path, _)| is_product(path)) {
            let Some(line) = first_line_with(self.way, text) else { continue };
            match self.takers.iter().find(|(taker, _)| path.starts_with(taker)) {
                Some((taker, _)) => idle.retain(|other| other != taker),
                None => findings.push(Violation::new(
                    path,
                    line,
                    format!("the text of a ground path is taken here: `{}`", self.way),
                    "hand the GroundPath on; or name this file, and what for, in xtask/src/tidy/ground.rs",
                )),
            }
        }
        let idle = idle.into_iter().map(|path| {
            let what = format!("it may take a ground path by `{}`, and does not", self.way);
            Violation::new(path, 1, what, "take it from the list in xtask/src/tidy/ground.rs")
        });
        findings.extend(idle);
        findings
    }
}

fn is_product(path: &str) -> bool {
    path.starts_with("crates/") && path.contains("/src/") && !path.ends_with("tests.rs")
}

/// Tests, which stand at the end, are not read.
fn first_line_with(way: &str, text: &str) -> Option<usize> {
    let product = text.lines().enumerate().take_while(|(_, line)| line.trim_end() != "mod tests {");
    product.into_iter().find(|(_, line)| code_of(line).contains(way)).map(|(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use super::super::say;
    use super::*;

    #[test]
    fn whoever_takes_a_ground_path_is_on_the_list() {
        let house = Repository::in_order()
            .file("crates/engine/src/turn.rs", "// a.for_launch()\nlet a = path.for_launch();\n")
            .file("crates/engine/tests/it/pear.rs", "path.for_launch();\n")
            .file("crates/server/src/pear.rs", "mod tests {\n    path.for_holding();\n")
            .file("crates/server/src/grants.rs", "let a = path.for_readers();\n");
        let said = say(only_listed_files_take_a_ground_path, &house);
        assert_eq!(
            said,
            "crates/engine/src/turn.rs:2: the text of a ground path is taken here: `.for_launch(`\n"
        );
    }

    #[test]
    fn whoever_takes_none_any_more_goes_from_the_list() {
        let house = Repository::in_order().file("crates/server/src/grants.rs", "let a = 1;\n");
        let said = say(only_listed_files_take_a_ground_path, &house);
        assert_eq!(
            said,
            "crates/server/src/grants.rs:1: it may take a ground path by `.for_readers(`, and does not\n"
        );
    }
}

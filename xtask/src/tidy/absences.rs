//! Absences: anything under the kernel, anything foreign behind a port, a room for leftovers.
//!
//! ARCHITECTURE.md lists these absences for people; this file is the part of that list a program can check.

use super::Violation;
use super::text::code_of;
use crate::repository::{By, Repository};

const KERNEL: &str = "crates/kernel";

pub(super) fn the_kernel_stands_alone(house: &Repository) -> Vec<Violation> {
    let Some(kernel) = house.room(KERNEL) else { return Vec::new() };
    let lib = format!("{KERNEL}/src/lib.rs");
    let mut findings = Vec::new();
    for used in kernel.uses.iter().filter(|used| used.by == By::Product) {
        let what = format!("the kernel depends on `{}`", used.package);
        findings.push(Violation::new(
            &kernel.manifest(),
            1,
            what,
            "give it to the kernel as a value, from outside",
        ));
    }
    if !house.text(&lib).lines().any(|line| line.trim() == "#![no_std]") {
        let remedy = "put the line `#![no_std]` below its opening comment, without conditions";
        findings.push(Violation::new(&lib, 1, "the kernel is not `#![no_std]`", remedy));
    }
    findings.extend(std_let_in_again(house));
    findings
}

/// `extern crate std` undoes `no_std`; only tests may have it.
fn std_let_in_again(house: &Repository) -> impl Iterator<Item = Violation> {
    let sources = house.sources().filter(|(path, _)| path.starts_with("crates/kernel/src/"));
    sources.flat_map(|(path, text)| {
        let mut before = "";
        text.lines().enumerate().filter_map(move |(at, line)| {
            let for_tests = std::mem::replace(&mut before, line).trim() == "#[cfg(test)]";
            (line.trim().starts_with("extern crate std") && !for_tests).then(|| {
                Violation::new(
                    path,
                    at + 1,
                    "the kernel lets `std` in",
                    "put `#[cfg(test)]` on the line above, or go without",
                )
            })
        })
    })
}

/// Rooms that speak to a database, to HTTP or to an agent only through a port.
const PORT_SIDE: &[&str] = &["crates/engine", "crates/store", "crates/agent"];

/// Packages that would let one of them in. A name ending in `*` stands for all that begin so.
const FOREIGN_PACKAGES: &[&str] = &[
    "rusqlite",
    "libsqlite3-sys",
    "sqlx*",
    "postgres*",
    "tokio-postgres*",
    "deadpool*",
    "diesel*",
    "sea-orm*",
    "redb",
    "axum*",
    "hyper*",
    "http",
    "http-body*",
    "reqwest",
    "tower-http",
    "tonic",
    "utoipa*",
    "tokio-tungstenite",
    "agent-client-protocol*",
    "rmcp",
    "slack-morphism",
];

/// Words for them that the engine's own code must not contain. Comments may.
const FOREIGN_WORDS: &[&str] =
    &["sqlite", "rusqlite", "postgres", "axum", "hyper", "reqwest", "claude", "codex", "opencode", "gemini"];

pub(super) fn ports_name_nothing_behind_them(house: &Repository) -> Vec<Violation> {
    let rooms = house.rooms.iter().filter(|room| PORT_SIDE.contains(&room.dir.as_str()));
    let packages = rooms.flat_map(|room| {
        room.uses.iter().filter(|used| used.by == By::Product && is_foreign(&used.package)).map(|used| {
            let what = format!("`{}` names what should be behind a port: `{}`", room.dir, used.package);
            Violation::new(&room.manifest(), 1, what, "use it in a room that implements the port")
        })
    });
    let engine = house.sources().filter(|(path, _)| path.starts_with("crates/engine/src/"));
    let words = engine.flat_map(|(path, text)| {
        text.lines().enumerate().filter_map(move |(at, line)| {
            let word = foreign_word(code_of(line))?;
            let what = format!("the engine names `{word}`");
            Some(Violation::new(path, at + 1, what, "ask the port for what differs, as a value"))
        })
    });
    packages.chain(words).collect()
}

fn is_foreign(package: &str) -> bool {
    FOREIGN_PACKAGES.iter().any(|known| match known.strip_suffix('*') {
        Some(start) => package.starts_with(start),
        None => package == *known,
    })
}

fn foreign_word(code: &str) -> Option<String> {
    let mut words = code.split(|letter: char| !letter.is_ascii_alphanumeric()).map(str::to_ascii_lowercase);
    words.find(|word| FOREIGN_WORDS.contains(&word.as_str()))
}

/// The files that do the work outside for a keeper: turns, errands, looks. A keeper gives them what they need and
/// writes down what they bring back; one that read the store could act on what no keeper has decided.
const RUNNERS: &[&str] = &[
    "crates/engine/src/turn",
    "crates/engine/src/errand",
    "crates/engine/src/look",
    "crates/engine/src/runner",
];

/// Where the ports of the store are.
const STORE_PORTS: &str = "crates/store/src/ports.rs";

pub(super) fn runners_read_no_store(house: &Repository) -> Vec<Violation> {
    let ports: Vec<&str> = house.text(STORE_PORTS).lines().filter_map(port_in).chain(["Store"]).collect();
    let runners = house.sources().filter(|(path, _)| RUNNERS.iter().any(|start| path.starts_with(start)));
    let found = runners.flat_map(|(path, text)| {
        let ports = &ports;
        text.lines().enumerate().filter_map(move |(at, line)| {
            let code = code_of(line);
            let named = ports.iter().copied().find(|port| names_port(code, port));
            let asked = [".store()", ".store."].into_iter().find(|way| code.contains(way));
            let what = format!("a runner has the store: `{}`", named.or(asked)?);
            Some(Violation::new(
                path,
                at + 1,
                what,
                "let its keeper, or whoever calls it, give it what it needs",
            ))
        })
    });
    found.collect()
}

/// The files that cross nodes as calls: hints, and looks that die with their caller.
const CALLS: &[&str] = &["crates/engine/src/cluster", "crates/engine/src/node.rs"];
/// Things a call must not have: something to be done, or somebody's right to it. Both are rows.
const ROWS_ONLY: &[&str] = &["Chore", "Request", "Principal"];
/// The type that makes a row of a wish, and the places where that is done.
const WISH: &str = "NewRequest";
const WAY_IN: &str = "crates/engine/src/intake";

pub(super) fn what_is_done_is_a_row(house: &Repository) -> Vec<Violation> {
    let engine = house.sources().filter(|(path, _)| path.starts_with("crates/engine/src/"));
    let found = engine.flat_map(|(path, text)| {
        let is_call = CALLS.iter().any(|start| path.starts_with(start));
        text.lines().enumerate().filter_map(move |(at, line)| {
            let code = code_of(line);
            let named = |word: &str| {
                code.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|name| name == word)
            };
            let row = ROWS_ONLY.iter().find(|word| is_call && named(word));
            if let Some(row) = row {
                let what = format!("a call between nodes has a `{row}`");
                return Some(Violation::new(
                    path,
                    at + 1,
                    what,
                    "ask for it by the way in: its row is not lost",
                ));
            }
            (named(WISH) && !path.starts_with(WAY_IN)).then(|| {
                let what = format!("a `{WISH}` beside the way in");
                Violation::new(path, at + 1, what, "let `intake` make it")
            })
        })
    });
    found.collect()
}

/// The name in `pub trait NAME {`.
fn port_in(line: &str) -> Option<&str> {
    line.trim().strip_prefix("pub trait ")?.split([' ', ':', '<', '{']).next()
}

/// True if code names this port as a type of the store's, or as something that stands behind `dyn` or `impl`.
fn names_port(code: &str, port: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_');
    // A handle of the engine's may be called like the port that it reads.
    if code.trim() == format!("impl {port} {{") {
        return false;
    }
    ["store::", "dyn ", "impl "].iter().any(|before| {
        let name = format!("{before}{port}");
        code.match_indices(&name).any(|(at, _)| ends(&code[at + name.len()..]))
    }) || (code.contains("use store::{")
        && code.split(|letter: char| !letter.is_alphanumeric()).any(|word| word == port))
}

/// Names that say nothing about what is inside, so everything ends up there.
const LEFTOVERS: &[&str] = &["common", "util", "utils", "helpers", "types", "core", "services", "misc"];

pub(super) fn no_room_for_leftovers(house: &Repository) -> Vec<Violation> {
    let rooms = house.rooms.iter().filter_map(|room| {
        let name = leftover_in(&room.dir)?;
        Some(Violation::new(
            &room.manifest(),
            1,
            format!("a room is called `{name}`"),
            "name it after what it owns",
        ))
    });
    let files = house.sources().filter_map(|(path, _)| {
        let name = leftover_in(path.strip_suffix(".rs")?)?;
        Some(Violation::new(path, 1, format!("a module is called `{name}`"), "name it after what it owns"))
    });
    let inline = house.sources().flat_map(|(path, text)| {
        text.lines().enumerate().filter_map(move |(at, line)| {
            let name = inline_module(line).filter(|name| LEFTOVERS.contains(name))?;
            Some(Violation::new(
                path,
                at + 1,
                format!("a module is called `{name}`"),
                "name it after what it owns",
            ))
        })
    });
    rooms.chain(files).chain(inline).collect()
}

fn leftover_in(path: &str) -> Option<&str> {
    path.split('/').find(|part| LEFTOVERS.contains(part))
}

/// The name in `mod NAME {`. A `mod NAME;` has a file, which is found by its path.
fn inline_module(line: &str) -> Option<&str> {
    let (before, after) = code_of(line).split_once("mod ")?;
    let visibility = before.trim();
    let is_module = visibility.is_empty() || visibility.starts_with("pub");
    after.trim_end().strip_suffix('{').map(str::trim_end).filter(|_| is_module)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::say;

    #[test]
    fn a_runner_that_has_the_store_is_found_however_it_does() {
        let ports = "    pub trait Views {\n    pub trait Log: Send {\n";
        let house = |path: &str, code: &str| {
            Repository::in_order().file(STORE_PORTS, ports).file(path, &format!("{code}\n"))
        };
        for code in [
            "use store::Views;",
            "use store::{Entry, Log};",
            "fn run(store: &dyn Store) {",
            "a: impl Log,",
            "self.store().read()",
            "self.engine.store.read()",
        ] {
            let said = say(runners_read_no_store, &house("crates/engine/src/turn/gate.rs", code));
            assert!(
                said.starts_with("crates/engine/src/turn/gate.rs:1: a runner has the store: `"),
                "{code}: {said}"
            );
            assert_eq!(say(runners_read_no_store, &house("crates/engine/src/keeper.rs", code)), "", "{code}");
        }
        for code in [
            "use store::{Entry, LogPage};",
            "use store::Entry;",
            "// the store's Log",
            "let log = Log::new();",
            "impl Views {",
        ] {
            assert_eq!(say(runners_read_no_store, &house("crates/engine/src/look.rs", code)), "", "{code}");
        }
    }

    #[test]
    fn a_chore_that_is_a_call_and_a_wish_beside_the_way_in_are_found() {
        let house = |path: &str, code: &str| Repository::in_order().file(path, &format!("{code}\n"));
        let said = |path: &str, code: &str| say(what_is_done_is_a_row, &house(path, code));
        for path in [
            "crates/engine/src/cluster.rs",
            "crates/engine/src/cluster/local.rs",
            "crates/engine/src/node.rs",
        ] {
            for code in
                ["fn chore(&self, chore: Chore);", "by: Arc<Principal>,", "use kernel::{Request, Turn};"]
            {
                assert!(said(path, code).contains("a call between nodes has a `"), "{path}: {code}");
                assert_eq!(said("crates/engine/src/worktrees.rs", code), "", "{code}");
            }
            assert_eq!(said(path, "fn await_verdict(&self, request: RequestId);"), "", "{path}");
        }
        let made = "let new = NewRequest { id };";
        assert_eq!(
            said("crates/engine/src/worktrees.rs", made),
            "crates/engine/src/worktrees.rs:1: a `NewRequest` beside the way in\n"
        );
        assert_eq!(said("crates/engine/src/intake/scope.rs", made), "");
        assert_eq!(said("crates/engine/src/look.rs", "// a NewRequest"), "");
    }

    #[test]
    fn a_kernel_that_depends_on_something_is_found() {
        let house =
            Repository::in_order().room_using(KERNEL, &[("serde", By::Product), ("proptest", By::Tests)]);
        assert_eq!(
            say(the_kernel_stands_alone, &house),
            "crates/kernel/Cargo.toml:1: the kernel depends on `serde`\n"
        );
    }

    #[test]
    fn a_kernel_with_std_is_found() {
        let house = Repository::in_order()
            .file("crates/kernel/src/lib.rs", "//! Rules.\n#![cfg_attr(not(test), no_std)]\n");
        assert_eq!(
            say(the_kernel_stands_alone, &house),
            "crates/kernel/src/lib.rs:1: the kernel is not `#![no_std]`\n"
        );
    }

    #[test]
    fn a_kernel_that_lets_std_in_by_the_back_door_is_found() {
        let source = "//! Rules.\n#[cfg(test)]\nextern crate std;\nextern crate std as other;\n";
        let house = Repository::in_order().file("crates/kernel/src/queue.rs", source);
        assert_eq!(
            say(the_kernel_stands_alone, &house),
            "crates/kernel/src/queue.rs:4: the kernel lets `std` in\n"
        );
    }

    #[test]
    fn an_engine_that_depends_on_a_database_or_http_is_found() {
        for package in ["rusqlite", "axum-extra", "agent-client-protocol-schema"] {
            let house = Repository::in_order().room_using("crates/engine", &[(package, By::Product)]);
            let what = format!(
                "crates/engine/Cargo.toml:1: `crates/engine` names what should be behind a port: `{package}`\n"
            );
            assert_eq!(say(ports_name_nothing_behind_them, &house), what);
        }
    }

    #[test]
    fn an_engine_that_names_an_agent_in_its_code_is_found() {
        let source = "//! Not for claude.\nfn claude_code() {} // codex\nlet path = \"gemini\";\n// sqlite\nlet hyperlink = 1;\n";
        let house = Repository::in_order().file("crates/engine/src/turn.rs", source);
        let said = say(ports_name_nothing_behind_them, &house);
        assert_eq!(
            said,
            "crates/engine/src/turn.rs:2: the engine names `claude`\ncrates/engine/src/turn.rs:3: the engine names `gemini`\n"
        );
    }

    #[test]
    fn leftovers_are_found_as_rooms_as_files_and_inline() {
        let house = Repository::in_order()
            .room_using("crates/common", &[])
            .file("crates/server/tests/utils/mod.rs", "//! Things.\n")
            .file("crates/server/src/lib.rs", "//! Speaks.\npub(crate) mod types {\n}\nuse core::fmt;\n");
        let said = say(no_room_for_leftovers, &house);
        assert_eq!(
            said,
            "crates/common/Cargo.toml:1: a room is called `common`\n\
             crates/server/tests/utils/mod.rs:1: a module is called `utils`\n\
             crates/server/src/lib.rs:2: a module is called `types`\n"
        );
    }
}

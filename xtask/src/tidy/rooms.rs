//! The map against the house: every room is in the table of ARCHITECTURE.md, and every arrow between rooms is allowed
//! there.
//!
//! The table's rows are `` | `crates/kernel` | one sentence | store, kernel | ``; the last column holds short names of
//! rooms or a dash. `[dependencies]` and `[build-dependencies]` may use exactly those. `[dev-dependencies]` may also use
//! testkit, what stands below a room that may be used (whoever tests the server needs the memory store and the scripted
//! agent), and what stands beside that on nothing else (the real store).

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use crate::repository::{By, Repository, Room, Use};

const MAP: &str = "ARCHITECTURE.md";

/// Any room's tests may use it, and nothing else may.
const TEST_ROOM: &str = "testkit";

pub(super) fn every_room_is_on_the_map(house: &Repository) -> Vec<Violation> {
    let map = Map::read(house.text(MAP));
    if map.rows.is_empty() {
        let remedy = "begin a table of rooms with the line `| Room | In one sentence | May use |`";
        return vec![Violation::new(MAP, 1, "there is no table of rooms", remedy)];
    }
    let missing = house.rooms.iter().filter(|room| !map.rows.contains_key(&room.dir)).map(|room| {
        let what = format!("room `{}` is not in the table of {MAP}", room.dir);
        Violation::new(
            &room.manifest(),
            1,
            what,
            "add its row: what it is in one sentence, and what it may use",
        )
    });
    let absent = map.rows.iter().filter(|(dir, _)| house.room(dir).is_none()).map(|(dir, row)| {
        let what = format!("room `{dir}` is in the table and not in the workspace");
        Violation::new(MAP, row.line, what, "remove the row until the room exists")
    });
    let unknown = map.rows.values().flat_map(|row| {
        row.uses.iter().filter(|name| map.dir_of(name).is_none()).map(|name| {
            let what = format!("`{name}` in \"May use\" is no room of the table");
            Violation::new(
                MAP,
                row.line,
                what,
                "use the short names of rooms, separated by commas, or a dash",
            )
        })
    });
    missing.chain(absent).chain(unknown).collect()
}

pub(super) fn arrows_follow_the_map(house: &Repository) -> Vec<Violation> {
    let map = Map::read(house.text(MAP));
    let mut findings = Vec::new();
    for room in &house.rooms {
        for used in &room.uses {
            let Some(target) = &used.room else { continue };
            if !map.allows(&room.dir, target, used.by) {
                findings.push(wrong_arrow(house, room, used, target));
            }
        }
    }
    findings
}

fn wrong_arrow(house: &Repository, room: &Room, used: &Use, target: &str) -> Violation {
    let manifest = room.manifest();
    let line = line_naming(house.text(&manifest), short(target));
    let (table, remedy) = match used.by {
        By::Product => ("[dependencies]", "move the code to a room that may, or change the map and say why"),
        By::Tests => (
            "[dev-dependencies]",
            "tests may use testkit, what is below the rooms their room may use, and what stands on nothing else",
        ),
    };
    Violation::new(&manifest, line, format!("`{}` may not use `{target}` in {table}", room.dir), remedy)
}

fn line_naming(text: &str, name: &str) -> usize {
    let named = |line: &str| line.split(['.', '=', ' ']).next() == Some(name);
    text.lines().position(named).map_or(1, |at| at + 1)
}

/// The table of rooms, by directory.
struct Map {
    rows: BTreeMap<String, Row>,
}

struct Row {
    line: usize,
    uses: Vec<String>,
}

impl Map {
    fn read(text: &str) -> Self {
        let lines = text.lines().enumerate().skip_while(|(_, line)| !is_head(line));
        let rows = lines.take_while(|(_, line)| line.starts_with('|')).skip(2);
        Self { rows: rows.filter_map(|(at, line)| read_row(at + 1, line)).collect() }
    }

    fn allows(&self, from: &str, to: &str, by: By) -> bool {
        match by {
            By::Product => self.directly(from).any(|dir| dir == to),
            By::Tests => {
                let below = self.below(from);
                let beside =
                    self.directly(to).next().is_some() && self.directly(to).all(|dir| below.contains(dir));
                short(to) == TEST_ROOM || below.contains(to) || beside
            }
        }
    }

    fn directly<'a>(&'a self, from: &str) -> impl Iterator<Item = &'a str> {
        self.rows.get(from).into_iter().flat_map(|row| &row.uses).filter_map(|name| self.dir_of(name))
    }

    fn below<'a>(&'a self, from: &str) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        let mut ahead: Vec<&str> = self.directly(from).collect();
        while let Some(dir) = ahead.pop() {
            if found.insert(dir) {
                ahead.extend(self.directly(dir));
            }
        }
        found
    }

    fn dir_of(&self, name: &str) -> Option<&str> {
        self.rows.keys().map(String::as_str).find(|dir| short(dir) == name)
    }
}

fn is_head(line: &str) -> bool {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    cells.first() == Some(&"Room") && cells.last() == Some(&"May use")
}

fn read_row(line: usize, text: &str) -> Option<(String, Row)> {
    let cells: Vec<&str> = text.trim_matches('|').split('|').map(str::trim).collect();
    let dir = cells.first()?.trim_matches('`').to_string();
    let names = cells.last()?.split(',').map(|name| name.trim().trim_matches('`'));
    let uses = names.filter(|name| !matches!(*name, "" | "–" | "-")).map(str::to_string).collect();
    Some((dir, Row { line, uses }))
}

/// `crates/store-sqlite` is called `store-sqlite` in the table and in manifests.
fn short(dir: &str) -> &str {
    dir.rsplit('/').next().unwrap_or(dir)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::say;

    #[test]
    fn a_room_that_is_not_on_the_map_is_found() {
        let house = Repository::in_order().room_using("crates/attic", &[]);
        let said = say(every_room_is_on_the_map, &house);
        assert_eq!(
            said,
            "crates/attic/Cargo.toml:1: room `crates/attic` is not in the table of ARCHITECTURE.md\n"
        );
    }

    #[test]
    fn a_room_that_is_only_on_the_map_is_found() {
        let mut house = Repository::in_order();
        house.rooms.retain(|room| room.dir != "crates/server");
        let said = say(every_room_is_on_the_map, &house);
        assert_eq!(
            said,
            "ARCHITECTURE.md:5: room `crates/server` is in the table and not in the workspace\n"
        );
    }

    #[test]
    fn a_map_that_names_no_room_is_found() {
        let map = Repository::in_order().text(MAP).replace("| kernel |", "| kernel and friends |");
        let said = say(every_room_is_on_the_map, &Repository::in_order().file(MAP, &map));
        assert_eq!(said, "ARCHITECTURE.md:4: `kernel and friends` in \"May use\" is no room of the table\n");
    }

    #[test]
    fn a_missing_map_is_found() {
        let said = say(every_room_is_on_the_map, &Repository::in_order().file(MAP, "no table"));
        assert_eq!(said, "ARCHITECTURE.md:1: there is no table of rooms\n");
    }

    #[test]
    fn an_arrow_against_the_map_is_found_where_it_stands() {
        let house = Repository::in_order()
            .room_using("crates/kernel", &[("crates/engine", By::Product)])
            .file("crates/kernel/Cargo.toml", "[dependencies]\nengine.workspace = true\n");
        let said = say(arrows_follow_the_map, &house);
        assert_eq!(
            said,
            "crates/kernel/Cargo.toml:2: `crates/kernel` may not use `crates/engine` in [dependencies]\n"
        );
    }

    #[test]
    fn the_product_may_not_reach_past_its_neighbour_but_its_tests_may() {
        let by = |by| Repository::in_order().room_using("crates/server", &[("crates/kernel", by)]);
        assert!(say(arrows_follow_the_map, &by(By::Product)).contains("may not use `crates/kernel`"));
        assert_eq!(say(arrows_follow_the_map, &by(By::Tests)), "");
    }

    #[test]
    fn tests_may_not_use_what_stands_above_them() {
        let house = Repository::in_order().room_using("crates/engine", &[("crates/server", By::Tests)]);
        assert!(
            say(arrows_follow_the_map, &house).contains("may not use `crates/server` in [dev-dependencies]")
        );
    }

    #[test]
    fn testkit_is_for_tests_only() {
        let by = |by| Repository::in_order().room_using("crates/kernel", &[("crates/testkit", by)]);
        assert_eq!(say(arrows_follow_the_map, &by(By::Tests)), "");
        assert!(say(arrows_follow_the_map, &by(By::Product)).contains("may not use `crates/testkit`"));
    }
}

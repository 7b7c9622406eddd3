//! Looks at agents' programs: whoever can write such a program gets nothing by it that an agent has not got.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::json;
use testkit::{Homing, Setup};

use crate::setup;

/// The name of what such a program makes wherever it can.
const MARK: &str = "homing-looked-at";

/// A server, and a program in its home that an agent could have written. It tries for what is the server's whenever it is asked for
/// its version, and tells it in the version.
struct Looked {
    homing: Homing,
    program: PathBuf,
    escaped: PathBuf,
}

impl Looked {
    fn of(setup: Setup, wall: &str) -> Self {
        let mut homing = setup.start();
        homing.terminate();
        let bin = homing.home().canonicalize().unwrap().join(".local/bin");
        fs::create_dir_all(&bin).unwrap();
        let (program, escaped) = (bin.join("tiny"), homing.place().join("escaped"));
        let config = format!(
            "{wall}\n[agents.tiny]\nenabled = true\nkind = \"acp\"\nprogram = {program:?}\nquirks = {{ version_args = [\"--version\"] }}\n"
        );
        fs::write(homing.data().join("homing.toml"), config).unwrap();
        let looked = Self { homing, program, escaped };
        looked.write("1");
        looked.homing.give_away();
        let mut looked = looked;
        looked.homing.restart();
        looked
    }

    /// Another version of it, which is looked at anew.
    fn write(&self, major: &str) {
        let data = self.homing.data();
        let (data, escaped) = (data.display(), self.escaped.display());
        let script = format!(
            "#!/bin/sh\nexec 2>/dev/null\nread=$(cat {data}/token {data}/key {data}/homing.db | wc -c)\n\
             echo $read > {escaped}\nwritten=$([ -e {escaped} ] && echo 1 || echo 0)\n\
             touch $0.x $HOME/{MARK} /usr/{MARK}; tmp=$(echo x > /tmp/{MARK} && cat /tmp/{MARK})\n\
             own=$(touch $HOME/own && echo 1)\nseen=$(ls /proc | grep -c '^[0-9]')\n\
             echo \"tiny {major}.$read.$written.$tmp.$own.$([ $seen -lt 9 ] && echo few)\"\n"
        );
        let fresh = self.program.with_extension("new");
        fs::write(&fresh, script).unwrap();
        fs::set_permissions(&fresh, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(fresh, &self.program).unwrap();
    }

    /// The version by which it tells what it got.
    fn version(&self) -> String {
        let agents = self.homing.http().get("/api/v1/agents").expect(200);
        let tiny = agents["items"].as_array().unwrap().iter().find(|agent| agent["name"] == "tiny");
        let tiny = tiny.unwrap_or_else(|| panic!("no tiny in {agents}")).to_string();
        let version = tiny.split("\"version\":\"").nth(1).unwrap_or_else(|| panic!("{tiny}"));
        version.split('"').next().unwrap().to_owned()
    }

    fn nothing_is_left_of_it(&self) {
        assert!(!self.escaped.exists());
        let home = fs::read_dir(self.homing.home()).unwrap().flatten().map(|entry| entry.file_name());
        let made: Vec<_> = home.filter(|name| name == MARK || name == "own").collect();
        assert!(made.is_empty() && !self.program.with_extension("x").exists(), "{made:?}");
        assert!(!Path::new("/usr").join(MARK).exists() && !Path::new("/tmp").join(MARK).exists());
    }
}

#[test]
fn a_program_that_is_asked_for_its_version_gets_nothing_of_the_servers() {
    let layouts = ["", "[wall]\nlayout = \"list\"", "[wall]\nlayout = \"hide\""];
    for (setup, wall) in layouts.into_iter().flat_map(|wall| [(setup(), wall), (setup().ordinary(), wall)]) {
        let looked = Looked::of(setup, wall);
        assert_eq!(looked.version(), "1.0.0.x.1.few", "{wall:?}");
        looked.nothing_is_left_of_it();
        // What doctor asks, it asks in the same way; and for a team nothing is otherwise.
        let said = looked.homing.run(&["doctor"]);
        assert!(said.out.contains("1.0.0.x.1.few"), "{}{}", said.out, said.err);
        looked.homing.run(&["user", "add", "bob"]).expect(0);
        looked.write("2");
        looked.homing.give_away();
        let said = looked.homing.run(&["agents"]);
        looked.nothing_is_left_of_it();
        assert_eq!(said.code, Some(0), "{}", said.err);
        looked.homing.until_nothing_is_left();
    }
}

/// Its session's directory is the home in which the programs lie that whoever runs the server starts, too.
#[test]
fn a_teams_agent_cannot_change_the_programs_that_others_start() {
    for setup in [setup(), setup().ordinary()] {
        let looked = Looked::of(setup, "");
        let Looked { homing, program, .. } = &looked;
        homing.run(&["user", "add", "bob"]).expect(0);
        let before = fs::read_to_string(program).unwrap();
        for way in [
            "echo bad > .local/bin/tiny",
            "echo bad > .local/bin/new",
            "rm -rf .local/bin/tiny",
            "mv .local .moved; mkdir -p .local/bin; echo bad > .local/bin/tiny",
            "unshare -Urm sh -c 'umount -l .local/bin; umount -l .local; echo bad > .local/bin/tiny'",
            "unshare -Urm sh -c 'mount -o remount,bind,rw .local/bin; echo bad > .local/bin/tiny'",
        ] {
            let to = json!({ "new": { "directory": homing.home().canonicalize().unwrap() } });
            let said =
                homing.http().converse(&to, &format!("!run {way}; echo x > mine; cat mine; echo over"));
            assert!(said.contains("x\nover"), "{way}: {said}");
            assert_eq!(fs::read_to_string(program).unwrap(), before, "{way}: {said}");
            assert!(!program.with_file_name("new").exists(), "{way}: {said}");
        }
    }
}

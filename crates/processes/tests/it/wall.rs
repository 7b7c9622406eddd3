//! The wall around an agent, tried from inside by the probe: each way it can be made, and as whoever we may be.
//!
//! These need a kernel with Landlock that bounds signals (6.12), and either root or namespaces of users.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::bench::supervising;

/// A user that every machine has, and nothing belongs to.
const NOBODY: u32 = 65_534;

fn are_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A data directory with secrets in it, below a directory that anybody may enter.
struct Home {
    place: TempDir,
}

impl Home {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let data = place.path().join("data");
        std::fs::create_dir(&data).unwrap();
        std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o700)).unwrap();
        for name in ["token", "key", "homing.db"] {
            std::fs::write(data.join(name), "a secret").unwrap();
            std::fs::set_permissions(data.join(name), std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        Self { place }
    }

    fn data(&self) -> PathBuf {
        self.place.path().canonicalize().unwrap().join("data")
    }

    /// The program that supervises, where everybody may start it. Put there once: a supervisor may outlive a proof for a moment,
    /// and a program that runs cannot be written.
    fn exe(&self) -> PathBuf {
        let exe = self.place.path().join("supervising");
        if !exe.exists() {
            std::fs::copy(supervising(), &exe).unwrap();
        }
        exe
    }

    /// Everything of the data directory given to somebody.
    fn chown(&self, uid: u32) {
        let chown = |path: &Path| std::os::unix::fs::chown(path, Some(uid), Some(uid)).unwrap();
        chown(&self.data());
        std::fs::read_dir(self.data()).unwrap().for_each(|entry| chown(&entry.unwrap().path()));
    }

    /// The output of the proof of such a wall.
    fn prove(&self, kind: &str, user: Option<u32>) -> Output {
        let mut command = Command::new(self.exe());
        command.args(["prove", self.data().to_str().unwrap(), kind]);
        if let Some(uid) = user {
            command.uid(uid).gid(uid);
        }
        command.output().unwrap()
    }
}

#[track_caller]
fn assert_proved(output: &Output) {
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && !said.contains("OPEN"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(said.lines().count() > 15, "it has tried little: {said}");
}

#[test]
fn no_way_leads_out_past_mounts() {
    assert_proved(&Home::new().prove("mounts", None));
}

#[test]
fn no_way_leads_out_past_landlock() {
    assert_proved(&Home::new().prove("landlock", None));
}

#[test]
fn no_way_leads_out_for_an_ordinary_user() {
    let home = Home::new();
    let user = are_root().then_some(NOBODY);
    if let Some(uid) = user {
        home.chown(uid);
    }
    for kind in ["auto", "mounts", "landlock"] {
        assert_proved(&home.prove(kind, user));
    }
}

#[test]
fn where_there_is_no_wall_the_probe_finds_everything() {
    let home = Home::new();
    let output = home.prove("off", None);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "{said}");
    for what in [
        "read what is the server's alone: OPEN",
        "list the data directory: OPEN",
        "read another session's files: OPEN",
        "write into the data directory: OPEN",
        "get there by links and by /proc: OPEN",
        "look into the server: OPEN",
        "signal the server or the supervisor: OPEN",
        "reach an abstract socket of the server's: OPEN",
    ] {
        assert!(said.contains(what), "not {what:?} in {said}");
    }
    // And it leaves nothing behind.
    let mut left: Vec<_> =
        std::fs::read_dir(home.data()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["attempts", "homing.db", "key", "token", "work"]);
    assert_eq!(std::fs::read_dir(home.data().join("work")).unwrap().count(), 0);
}

#[test]
fn a_second_name_of_a_secret_is_found() {
    let home = Home::new();
    std::fs::hard_link(home.data().join("token"), home.place.path().join("copy")).unwrap();
    let output = home.prove("auto", None);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && said.contains("token has another name"), "{said}");
}

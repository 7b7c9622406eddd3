//! Care for a machine: backups, doctor, and a command line that explains itself.

use serde_json::Value;

use crate::{homing, sessions, text};

#[test]
fn a_backup_beside_a_running_server_comes_back_whole() {
    let mut homing = homing();
    homing.run(&["send", "-f", "before"]).expect(0);
    let file = homing.root().join("copy.db");
    let file = file.to_str().unwrap();
    homing.run(&["backup", file]).expect(0);
    homing.run(&["backup", file]).expect(1);
    homing.run(&["send", "-f", "--new", "after"]).expect(0);
    assert_eq!(sessions(&homing, &[]).len(), 2);
    let in_use = homing.run(&["restore", file]);
    in_use.expect(5);
    assert!(in_use.err.contains(&format!("process {}", homing.pid())), "{}", in_use.err);
    homing.terminate();
    let restored = homing.run(&["restore", "--json", file]).json(0);
    assert!(std::path::Path::new(&text(&restored, "kept")).exists());
    homing.restart();
    assert_eq!(sessions(&homing, &[]).len(), 1);
    assert_eq!(homing.run(&["send", "-f", "again"]).expect(0), "#2 again\n");
    homing.run(&["restore", "/nowhere.db"]).expect(3);
}

/// A server whose doctor does not look, once it has gone, if the usual port is free: somebody at this machine may have it.
fn at_no_usual_port() -> testkit::Homing {
    crate::setup().variable("HOMING_LISTEN", "127.0.0.1:0").start()
}

#[test]
fn doctor_finds_nothing_wrong_and_leaves_nothing_behind() {
    let mut homing = at_no_usual_port();
    homing.run(&["send", "-f", "hello"]).expect(0);
    let found = homing.run(&["doctor", "--json"]).json(0);
    let wrong: Vec<&Value> =
        found["checks"].as_array().unwrap().iter().filter(|check| check["state"] == "fail").collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(homing.run(&["doctor"]).expect(0).contains("one scripted turn was run"));
    // The server tells the machine's person the same, by what it sees itself.
    let theirs = homing.http().get("/api/v1/doctor").expect(200);
    let checks = |of: &Value| {
        let all = of["checks"].as_array().unwrap().iter();
        all.map(|check| check["check"].as_str().unwrap().to_owned())
            .collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!((checks(&theirs), &theirs["state"]), (checks(&found), &found["state"]), "{theirs:#}");
    homing.terminate();
    homing.run(&["doctor"]).expect(0);
}

#[test]
fn doctor_says_what_to_do() {
    use std::os::unix::fs::PermissionsExt;
    let mut homing = homing();
    homing.terminate();
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(homing.data().join("token"), open).unwrap();
    std::fs::write(homing.data().join("homing.db"), "not a database").unwrap();
    let found = homing.run(&["doctor"]);
    let said = found.expect(1);
    assert!(said.contains("chmod 600") && said.contains("homing restore"), "{said}");
}

#[test]
fn a_key_that_is_missing_or_another_is_told_loudly() {
    let mut homing = at_no_usual_port();
    homing.run(&["send", "-f", "hello"]).expect(0);
    homing.terminate();
    let key_check = |homing: &testkit::Homing, code: i32| {
        let found = homing.run(&["doctor", "--json"]).json(code);
        let checks = found["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["check"] == "key").unwrap()
    };
    assert_eq!(text(&key_check(&homing, 0), "state"), "ok");
    assert!(!homing.server_log().contains("NEW KEY"), "the first start is no news");
    let key = homing.data().join("key");
    let kept = homing.root().join("kept.key");
    std::fs::rename(&key, &kept).unwrap();
    let missing = key_check(&homing, 1);
    assert_eq!(text(&missing, "state"), "fail", "{missing}");
    assert!(!key.exists(), "doctor changes nothing");
    homing.restart();
    assert!(homing.server_log().contains("a NEW KEY was made"), "{}", homing.server_log());
    let another = key_check(&homing, 0);
    assert_eq!(text(&another, "state"), "warn", "{another}");
    assert!(text(&another, "detail").contains("ANOTHER key"), "{another}");
    // The old one put back is fine again.
    homing.terminate();
    std::fs::rename(&kept, &key).unwrap();
    assert_eq!(text(&key_check(&homing, 0), "state"), "ok");
    homing.restart();
}

#[test]
fn the_command_line_explains_itself() {
    let homing = homing();
    let help = homing.run(&["--help"]);
    assert!(help.expect(0).contains("Exit codes:"), "{}", help.out);
    // The far side is not for people.
    assert!(!help.out.contains("supervise") && !help.out.contains("scripted-agent"), "{}", help.out);
    homing.run(&["frobnicate"]).expect(2);
    homing.run(&[]).expect(2);
    assert!(homing.run(&["config"]).expect(0).contains("listen = \"127.0.0.1:4747\""));
    // Nobody looks on, so there are no colours.
    assert!(!homing.run(&["ls"]).err.contains('\x1b'));
}

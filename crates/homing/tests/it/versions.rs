//! Versions of agents' programs that nobody has tried: they are named, an old one that fails is refused with how to update it, and
//! a new one is only noted. The programs are small shell scripts.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use testkit::Homing;

use crate::setup;

/// The command that gets the agent which these programs pretend to be.
const UPDATE: &str = "npm install -g @google/gemini-cli";

/// A server whose Gemini says this version, and then does this when it is to speak ACP.
fn server(version: &str, then: &str) -> (tempfile::TempDir, Homing) {
    let place = tempfile::Builder::new().prefix("homing-versions-").tempdir().unwrap();
    let program = place.path().join("gemini");
    let script =
        format!("#!/bin/sh\ncase \" $* \" in *\" --version \"*) echo {version}; exit ;; esac\n{then}\n");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let config = format!("[agents.gemini]\nprogram = {program:?}\nhome = {:?}\n", place.path());
    let homing = setup().variable("GEMINI_API_KEY", "k").config(&config).start();
    (place, homing)
}

fn tried(homing: &Homing) -> Value {
    let page = homing.run(&["agents", "--json"]).json(0);
    let agents = page["items"].as_array().unwrap().clone();
    agents.into_iter().find(|agent| agent["name"] == "gemini").unwrap()["tried"].clone()
}

#[test]
fn an_old_program_that_does_not_start_is_refused_with_how_to_update_it() {
    let (_place, homing) = server("0.1.0", "echo 'Unknown argument: acp' >&2; exit 1");
    let said = homing.run(&["send", "-f", "--agent", "gemini", "hello"]);
    said.expect(1);
    for words in ["refused", "0.1.0", "oldest that was tried", UPDATE] {
        assert!(said.err.contains(words), "no {words:?} in {}", said.err);
    }
}

#[test]
fn a_program_of_a_tried_version_that_does_not_start_is_not_called_old() {
    let (_place, homing) = server("0.61.0", "echo 'no room' >&2; exit 1");
    let said = homing.run(&["send", "-f", "--agent", "gemini", "hello"]);
    said.expect(1);
    assert!(!said.err.contains("that was tried") && !said.err.contains(UPDATE), "{}", said.err);
}

#[test]
fn an_old_program_is_named_wherever_agents_are() {
    let (_place, homing) = server("0.1.0", "exec cat");
    let known = tried(&homing);
    assert_eq!(
        (&known["age"], &known["newest"], &known["update"]),
        (&"older".into(), &"0.61.0".into(), &UPDATE.into())
    );
    for command in [&["agents"][..], &["agents", "show", "gemini"], &["doctor"]] {
        let said = homing.run(command);
        let said = format!("{}{}", said.out, said.err);
        assert!(
            said.contains("0.1.0") && said.contains(UPDATE) && said.to_lowercase().contains("older"),
            "{said}"
        );
    }
}

#[test]
fn a_new_program_is_only_noted() {
    let (_place, homing) = server("99.0.0", "exec cat");
    assert_eq!(tried(&homing)["age"], "newer");
    let listed = homing.run(&["agents"]);
    listed.expect(0);
    assert!(listed.err.contains("99.0.0 is newer than 0.61.0"), "{}", listed.err);
    let doctor = homing.run(&["doctor"]);
    let line = doctor.out.lines().find(|line| line.contains("99.0.0 is newer")).unwrap_or_default();
    assert!(line.contains("ok") && !line.contains("npm"), "{}", doctor.out);
}

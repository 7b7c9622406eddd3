//! A conversation that goes from one server to another: `homing export | homing import`, and both have the same id.

use crate::{homing, sessions, text};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

#[test]
fn a_conversation_goes_to_another_server_and_both_keep_its_id_apart() {
    let (there, mut here) = (homing(), homing());
    assert_eq!(there.run(&["send", "--follow", "hello"]).expect(0).trim(), "#1 hello");
    let id = text(&sessions(&there, &[])[0], "id");
    let file = here.root().join("talk.jsonl");
    let named = file.to_str().unwrap();
    there.run(&["export", &id, "-o", named]).expect(0);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let written = std::fs::read_to_string(&file).unwrap();
    let printed = there.run(&["export"]).expect(0).to_owned();
    let after_header = |file: &str| file.split_once('\n').unwrap().1.to_owned();
    assert_eq!(after_header(&printed), after_header(&written), "this directory's, to standard output");
    let header = there.run(&["export", "--json", "-o", named]).json(0);
    assert_eq!(text(&header, "session"), id);

    let made = text(&here.run_with(&["import", "-", "--title", "brought", "--json"], &printed).json(0), "id");
    assert_ne!(made, id);
    here.restart(); // By a kill -9.
    let shown = here.run(&["show", &id, "--json"]).json(0);
    assert_eq!([text(&shown, "id"), text(&shown, "imported_as")], [made.clone(), id.clone()]);
    assert_eq!(text(&shown, "title"), "brought");
    assert!(here.run(&["show", &id]).expect(0).contains(&format!("as {id}, from ")));
    assert!(here.run(&["log", &id]).expect(0).contains("imported from"));
    let again = here.run(&["import", named]);
    assert!(again.code != Some(0) && again.err.contains(&made), "{again:?}");
    let broken = here.run_with(&["import", "-"], &written[..written.len() - 5]);
    assert!(broken.code != Some(0) && broken.err.contains("line 3"), "{broken:?}");

    // Here it is told; there it remembers; neither hears of the other.
    let told = here.run(&["send", "--session", &id, "--follow", "and here?"]).expect(0).to_owned();
    assert!(told.starts_with("#1 ") && told.contains("> hello") && told.contains("and here?"), "{told}");
    let kept = there.run(&["send", "--session", &id, "--follow", "and there?"]).expect(0).to_owned();
    assert_eq!(kept.trim(), "#2 and there?");
    assert!(!there.run(&["log", &id]).expect(0).contains("and here?"));
    assert!(!here.run(&["log", &id]).expect(0).contains("and there?"));
    here.run(&["end", &id]).expect(0);
    assert_eq!(text(&there.run(&["show", &id, "--json"]).json(0), "state"), "open");

    // What the command line keeps for itself knows no session, so none of it can be taken for another's.
    for server in [&here, &there] {
        for dir in [server.home(), server.place(), server.root().join("config")] {
            nothing_names(&dir, &[&id, &made]);
        }
    }
}

#[track_caller]
fn nothing_names(dir: &Path, ids: &[&str]) {
    for entry in std::fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        assert!(ids.iter().all(|id| !path.to_string_lossy().contains(id)), "{}", path.display());
        if path.is_dir() {
            nothing_names(&path, ids);
        } else {
            let read = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            assert!(ids.iter().all(|id| !read.contains(id)), "{} names a session", path.display());
        }
    }
}

//! Memory of turns, on the binary: where it is, who sees it, what becomes of it beside a person's own git, and with
//! backups.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use testkit::eventually;

use crate::text;
use crate::yard::{Yard, everything, git, until};

/// The one store of snapshots that there is.
pub(crate) fn store(yard: &Yard) -> PathBuf {
    let stores = fs::read_dir(yard.homing.data().join("git/snapshots")).unwrap();
    let mut stores: Vec<PathBuf> = stores.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(stores.len(), 1, "{stores:?}");
    stores.remove(0)
}

fn references(yard: &Yard) -> BTreeSet<String> {
    let store = store(yard);
    let list = git(&store, &["for-each-ref", "--format=%(objectname)"]);
    list.lines().map(str::to_owned).collect()
}

/// Waits until everything that is remembered is copied.
#[track_caller]
fn until_copied(yard: &Yard) {
    eventually("it is copied", || {
        let copied = fs::read_to_string(store(yard).join("copied")).unwrap_or_default();
        let copied: BTreeSet<String> = copied.lines().map(str::to_owned).collect();
        (references(yard) == copied).then_some(())
    });
}

fn changes(yard: &Yard, turn: u64) -> Value {
    yard.homing.http().get(&format!("/api/v1/sessions/{}/changes?turn={turn}", yard.session)).expect(200)
}

fn turn_of(yard: &Yard) -> u64 {
    let facts = yard.facts();
    let ended = facts.iter().rfind(|fact| fact["type"] == "turn_ended").expect("a turn is over");
    ended["turn"].as_u64().unwrap()
}

#[test]
fn what_is_remembered_is_nobodys_to_publish_to_see_or_to_prune() {
    let yard = Yard::new();
    let objects = everything(&yard.place.join(".git"));
    yard.ask("!run echo changed > kept.txt; echo made > made.txt");
    let turn = turn_of(&yard);
    until_copied(&yard);
    assert_eq!(everything(&yard.place.join(".git")), objects, "nothing of ours is in the repository");

    let mirror = yard.homing.root().join("mirror.git");
    git(yard.homing.root(), &["init", "-q", "--bare", mirror.to_str().unwrap()]);
    yard.git(&["push", "-q", "--mirror", mirror.to_str().unwrap()]);
    assert_eq!(git(&mirror, &["for-each-ref", "--format=%(refname)"]), "refs/heads/main");

    let said = yard.ask(&format!("!run ls {}; echo over", store(&yard).display()));
    assert!(said.contains("over") && !said.contains("objects"), "{said}");

    // The person takes all of it back, for good.
    yard.git(&["checkout", "-q", "--orphan", "other"]);
    yard.git(&["rm", "-rfq", "."]);
    yard.git(&["branch", "-D", "main"]);
    yard.git(&["reflog", "expire", "--expire=now", "--all"]);
    yard.git(&["gc", "-q", "--prune=now"]);
    git(&store(&yard), &["rev-list", "--objects", "--all", "--quiet"]);
    let fork = yard.homing.run(&["fork", &yard.session, "--at", &turn.to_string(), "--json"]).json(0);
    let id = text(&fork, "id");
    let fork = until(&yard.homing, &id, |session| session["epoch"].as_u64() == Some(1));
    let root = PathBuf::from(text(&fork, "directory"));
    assert_eq!(fs::read_to_string(root.join("kept.txt")).unwrap(), "changed\n");
    assert_eq!(git(&root, &["log", "--format=%s"]), "first", "it is brought back");
}

#[test]
fn a_backup_has_what_is_remembered_of_turns_and_gives_it_back() {
    let mut yard = Yard::new();
    yard.ask("!run echo changed > kept.txt; echo made > made.txt");
    let turn = turn_of(&yard);
    until_copied(&yard);
    let before = changes(&yard, turn);
    assert_eq!(before["files"].as_array().unwrap().len(), 2, "{before}");
    let file = yard.homing.root().join("copy.db");
    let said = yard.homing.run(&["backup", "--json", file.to_str().unwrap()]).json(0);
    let copy = said["snapshots"].as_str().expect("they are in it").to_owned();
    assert_eq!(said["repositories"], 1);
    assert!(Path::new(&copy).join("git/snapshots").is_dir());
    yard.homing.run(&["backup", file.to_str().unwrap()]).expect(1);

    yard.homing.terminate();
    for place in ["snapshots", "shadows"] {
        fs::remove_dir_all(yard.homing.data().join("git").join(place)).unwrap();
    }
    let said = yard.homing.run(&["restore", "--json", file.to_str().unwrap()]).json(0);
    assert_eq!(said["repositories"], 1, "{said}");
    yard.homing.restart();
    assert_eq!(changes(&yard, turn), before);
    yard.homing
        .http()
        .post(&format!("/api/v1/sessions/{}/undo", yard.session), &json!({ "turn": turn, "all": true }))
        .expect(200);
    eventually("it is undone", || (yard.count("undone") == 1).then_some(()));
    assert_eq!(yard.read("kept.txt"), "one\ntwo\n");
    assert!(!yard.place.join("made.txt").exists());
}

#[test]
fn a_backup_beside_turns_has_whole_snapshots_only() {
    let yard = Yard::new();
    let file = |number: usize| yard.homing.root().join(format!("copy-{number}.db"));
    std::thread::scope(|scope| {
        let turns = scope.spawn(|| {
            for turn in 0..6 {
                yard.ask(&format!("!run echo {turn} > kept.txt"));
            }
        });
        for number in 0..6 {
            yard.homing.run(&["backup", file(number).to_str().unwrap()]).expect(0);
        }
        turns.join().unwrap();
    });
    for number in 0..6 {
        let stores = PathBuf::from(format!("{}.snapshots/git/snapshots", file(number).display()));
        for store in fs::read_dir(stores).unwrap() {
            let store = store.unwrap().path();
            // What is not copied yet is still the person's.
            let alternate = store.join("objects/info/alternates");
            fs::create_dir_all(alternate.parent().unwrap()).unwrap();
            fs::write(&alternate, format!("{}\n", yard.place.join(".git/objects").display())).unwrap();
            git(&store, &["rev-list", "--objects", "--all", "--quiet"]);
        }
    }
}

#[test]
fn doctor_names_what_older_versions_left_and_cannot_be_taken_over() {
    let yard = Yard::new();
    yard.ask("!run echo changed > kept.txt");
    until_copied(&yard);
    let note = store(&yard).join("taken-over").join(&yard.session);
    assert_eq!(fs::read_to_string(&note).unwrap(), "", "there was nothing to take over");
    let reference = format!("refs/homing/{}/1/before", yard.session);
    fs::write(&note, &reference).unwrap();
    let found = yard.homing.run(&["doctor", "--json"]).json(0);
    let checks = found["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["check"] == "snapshots").unwrap();
    assert_eq!(check["state"], "warn", "{check}");
    assert!(check["detail"].as_str().unwrap().contains(&reference), "{check}");
}

#[test]
fn sessions_in_which_nothing_happens_have_theirs_taken_over_and_those_nobody_knows_are_named() {
    let yard = Yard::of(crate::setup().config("[worktrees]\nevery = \"1s\"\n"));
    yard.ask("!run echo changed > kept.txt");
    until_copied(&yard);
    let (ours, before) = (store(&yard), references(&yard));
    // As older versions have left it: on refs of the repository, and nothing else of ours.
    yard.git(&["fetch", "-q", ours.to_str().unwrap(), "refs/homing/*:refs/homing/*"]);
    let mut unknown = yard.session.clone();
    let last = if unknown.pop() == Some('0') { '1' } else { '0' };
    unknown.push(last);
    yard.git(&["update-ref", &format!("refs/homing/{unknown}/1/before"), "HEAD"]);
    fs::rename(yard.homing.data().join("git/shadows"), yard.homing.root().join("shadows")).unwrap();
    fs::rename(&ours, yard.homing.root().join("store")).unwrap();
    let left =
        |session: &str| yard.git(&["for-each-ref", "--format=%(refname)", &format!("refs/homing/{session}")]);
    eventually("they are taken over", || left(&yard.session).is_empty().then_some(()));
    assert_eq!(references(&yard), before);
    assert!(!left(&unknown).is_empty(), "whose they are, nobody knows");
    eventually("doctor names them", || {
        let found = yard.homing.run(&["doctor", "--json"]).json(0);
        let checks = found["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["check"] == "snapshots").unwrap();
        check["detail"].as_str().unwrap().contains(&unknown).then_some(())
    });
}

#[test]
fn where_a_repository_has_too_many_the_oldest_go_and_the_session_and_doctor_say_so() {
    let bounds = "[limits]\nsnapshot_bytes_per_repository_max = \"1MiB\"\n[worktrees]\nevery = \"500ms\"\n";
    let yard = Yard::of(crate::setup().config(bounds));
    let turns: Vec<u64> = (0..3)
        .map(|_| {
            yard.ask("!run head -c 600000 /dev/urandom > kept.txt");
            turn_of(&yard)
        })
        .collect();
    let doctor = || {
        let found = yard.homing.run(&["doctor", "--json"]).json(0);
        let checks = found["checks"].as_array().unwrap();
        checks.iter().find(|check| check["check"] == "snapshot room").unwrap().clone()
    };
    let kept = store(&yard).join("refs/homing").join(&yard.session);
    let before = |turn: u64| kept.join(turn.to_string()).join("before");
    // None of the last day goes, however much there is.
    assert!(before(turns[0]).exists());
    let now = SystemTime::now();
    for (days, turn) in (3..).zip(turns.iter().rev()) {
        for reference in fs::read_dir(kept.join(turn.to_string())).unwrap() {
            let file = fs::File::options().append(true).open(reference.unwrap().path()).unwrap();
            file.set_modified(now - Duration::from_secs(days * 24 * 3_600)).unwrap();
        }
    }
    eventually("the oldest go", || (!before(turns[0]).exists()).then_some(()));
    assert_eq!(doctor()["state"], "warn");
    assert!(text(&doctor(), "detail").contains(&yard.place_text()), "{}", doctor());

    yard.ask("one more");
    let told = || {
        let facts = yard.facts();
        let notices = facts.iter().filter(|fact| fact["type"] == "notice").map(Value::to_string);
        notices.filter(|words| words.contains("cannot be undone any more")).collect::<Vec<_>>()
    };
    assert_eq!(told().len(), 1, "{:?}", yard.facts());
    assert!(told()[0].contains("limits.snapshot_bytes_per_repository_max"), "{:?}", told());
    yard.ask("and one more");
    assert_eq!(told().len(), 1, "it is told once");
    let gone = yard.homing.run(&["undo", &yard.session, &turns[0].to_string()]);
    assert_ne!(gone.code, Some(0));
    assert!(gone.err.contains("took more than 1 MiB"), "{}", gone.err);
    // Whoever cannot have a tree of its own must not come to work in somebody else's.
    let path = format!("/api/v1/sessions/{}/fork", yard.session);
    let refused = yard.homing.http().post(&path, &json!({ "at": turns[0] }));
    assert_eq!(refused.expect(409)["code"], "tree_forgotten");
}

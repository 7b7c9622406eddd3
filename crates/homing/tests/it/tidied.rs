//! Turns in a repository in which somebody tidies up all the time, by the real binary: what is remembered of each turn stays whole,
//! and nothing of ours is in their references.
//!
//! The same beside the library alone, which copies at once, is in the room of worktrees.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use testkit::eventually;

use crate::remembered::store;
use crate::yard::Yard;
use crate::{count, counted};

/// Git with the agent as its author.
const AGENT: &str = "git -c user.name=agent -c user.email=agent@example.org";

/// The steps of a turn in the repository, besides the files that it changes. Whoever tidies up may hold a lock just then.
const MOVES: [&str; 5] = [
    "true",
    "GIT add . && GIT commit -q -m work || true",
    "GIT commit -q -a --amend -m amended || true",
    "! GIT stash push -q -u || until GIT stash pop -q; do sleep 0.02; done",
    "GIT add . && GIT reset -q || true",
];

#[test]
fn no_turn_is_forgotten_beside_a_person_who_tidies_up_all_the_time() {
    let turns = count("HOMING_TIDIED_TURNS", 8);
    let yard = Yard::new();
    let mirror = yard.homing.root().join("mirror.git");
    tried(&yard.place, &["init", "-q", "--bare", mirror.to_str().unwrap()]);
    let is_over = Arc::new(AtomicBool::new(false));
    let tidying = std::thread::spawn({
        let (place, mirror, is_over) = (yard.place.clone(), mirror.clone(), is_over.clone());
        move || {
            let mirror = mirror.to_str().unwrap();
            let mut rounds = 0;
            while !is_over.load(Ordering::SeqCst) {
                tried(&place, &["gc", "--quiet", "--prune=now"]);
                tried(&place, &["push", "-q", "--mirror", mirror]);
                tried(&place, &["fetch", "-q", mirror]);
                tried(&place, &["repack", "-q", "-a", "-d"]);
                rounds += 1;
            }
            rounds
        }
    });
    for turn in 1..=turns {
        let step = MOVES[usize::try_from(turn).unwrap() % MOVES.len()].replace("GIT", AGENT);
        yard.ask(&format!("!run echo turn {turn} > kept.txt; echo new {turn} > new{turn}.txt; {step}"));
    }
    is_over.store(true, Ordering::SeqCst);
    counted(format_args!(
        "{turns} turns of a server beside {} rounds of tidying up",
        tidying.join().unwrap()
    ));
    // A second after a turn the rest of it is copied; until then it is the person's own objects that keep it.
    eventually("all of it is copied", || {
        let mut look = Command::new("git");
        look.env("GIT_DIR", store(&yard)).args(["rev-list", "--objects", "--quiet", "--all"]);
        look.output().expect("there is git").status.success().then_some(())
    });
    tried(&yard.place, &["reflog", "expire", "--expire=now", "--all"]);
    tried(&yard.place, &["gc", "--quiet", "--prune=now"]);
    // The first thing that was said is turn 1, and changed nothing.
    for turn in 2..=turns + 1 {
        let path = format!("/api/v1/sessions/{}/changes?turn={turn}&since={turn}", yard.session);
        let changes = yard.homing.http().get(&path).expect(200);
        let has = |name: &str| changes["files"].as_array().unwrap().iter().any(|file| file["path"] == name);
        assert!(changes["known"] == true && has("kept.txt"), "{turn}: {changes}");
        assert!(has(&format!("new{}.txt", turn - 1)), "{turn}: {changes}");
        let path = format!("/api/v1/sessions/{}/undo?turn={turn}", yard.session);
        let preview = yard.homing.http().get(&path).expect(200);
        assert!(preview["files"].as_array().is_some_and(|files| !files.is_empty()), "{turn}: {preview}");
    }
    let last: Value = json!({ "turn": turns + 1, "all": true });
    let undo = format!("/api/v1/sessions/{}/undo", yard.session);
    yard.homing.http().post(&undo, &last).expect(200);
    for place in [&yard.place, &mirror] {
        assert_eq!(crate::yard::git(place, &["for-each-ref", "--format=%(refname)", "refs/homing"]), "");
    }
}

/// Git as somebody runs it who does not mind if it fails, because somebody else holds a lock.
fn tried(place: &Path, words: &[&str]) {
    let mut git = Command::new("git");
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let _ = git.current_dir(place).args(words).output().expect("there is git");
}

//! A session's directory that an agent has replaced by a link: nothing of the server follows it.
//!
//! One session of the `yard` swaps the directory of another one. Where the link leads must be, byte for byte, as it was.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::{HttpAnswer, eventually};

use crate::text;
use crate::yard::{Yard, git, repository};

/// In the directories that the links lead to. It must not come back.
const CANARY: &str = "canary-4c81d0";

/// A yard with a second session in a directory below the repository.
struct Lure {
    yard: Yard,
    /// The second session.
    session: String,
    /// Its directory.
    place: PathBuf,
    /// A repository that nobody in the yard works in.
    foreign: PathBuf,
}

impl Lure {
    #[track_caller]
    fn new() -> Self {
        let yard = Yard::new();
        yard.ask("!run mkdir lure");
        let (place, foreign) = (yard.place.join("lure"), yard.homing.root().join("foreign"));
        repository(&foreign);
        fs::write(foreign.join(format!("{CANARY}.ignored")), CANARY).unwrap();
        git(&foreign, &["branch", CANARY]);
        let said = yard.homing.http().send(&json!({ "new": { "directory": place } }), "hello");
        yard.homing.http().until_final(&text(&said, "id"));
        Self { session: text(&said, "session"), yard, place, foreign }
    }

    /// The first session's agent puts a link in the place of the second one's directory.
    #[track_caller]
    fn swap(&self, target: &Path) {
        self.yard.ask(&format!("!run rm -rf lure && ln -s '{}' lure", target.display()));
        assert_eq!(fs::read_link(&self.place).unwrap(), target);
    }

    /// Puts the directory back.
    fn mend(&self) {
        fs::remove_file(&self.place).unwrap();
        fs::create_dir(&self.place).unwrap();
    }

    fn get(&self, what: &str) -> HttpAnswer {
        self.yard.homing.http().get(&format!("/api/v1/sessions/{}/{what}", self.session))
    }

    fn post(&self, what: &str, body: &Value) -> HttpAnswer {
        self.yard.homing.http().post(&format!("/api/v1/sessions/{}/{what}", self.session), body)
    }

    #[track_caller]
    fn ask(&self, words: &str) {
        self.yard.homing.http().converse(&json!({ "session": self.session }), words);
    }

    /// The turn that was begun last.
    #[track_caller]
    fn last_turn(&self) -> u64 {
        let facts = crate::kill::facts(&self.yard.homing.http(), &self.session);
        facts.iter().rev().find(|fact| fact["type"] == "turn_started").unwrap()["turn"].as_u64().unwrap()
    }

    /// Waits until people are told this and why, so many times.
    #[track_caller]
    fn is_told(&self, what: &str, times: usize) {
        let told: Vec<String> = eventually("a notice", || {
            let facts = crate::kill::facts(&self.yard.homing.http(), &self.session);
            let texts = facts.iter().filter_map(|fact| fact["text"].as_str());
            let told: Vec<_> = texts.filter(|text| text.contains(what)).map(str::to_owned).collect();
            (told.len() == times).then_some(told)
        });
        let says_why =
            |text: &String| text.contains("leads elsewhere by now") && text.contains("scope relink");
        assert!(told.iter().all(says_why), "{told:?}");
    }

    /// Waits until so many errands have failed.
    #[track_caller]
    fn has_failed(&self, times: usize) {
        eventually("it has failed", || {
            let facts = crate::kill::facts(&self.yard.homing.http(), &self.session);
            let failed = facts.iter().filter(|fact| fact["type"] == "errand_failed").count();
            (failed == times).then_some(())
        });
    }

    #[track_caller]
    fn stays_where_it_was(&self) {
        let path = format!("/api/v1/sessions/{}", self.session);
        let now = self.yard.homing.http().get(&path).expect(200);
        assert_eq!(
            (now["epoch"].as_u64(), now["directory"].as_str()),
            (Some(0), self.place.to_str()),
            "{now}"
        );
    }
}

/// Everything below a directory, git's own included.
fn all_of(place: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for path in fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_symlink() {
            all.insert(path.clone(), fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes());
        } else if path.is_dir() {
            all.insert(path.clone(), Vec::new());
            all.extend(all_of(&path));
        } else {
            all.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    all
}

fn names_in(place: &Path) -> Vec<PathBuf> {
    fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[track_caller]
fn is_blocked(ready: &Value) {
    let parts = ready["parts"].as_array().unwrap();
    let part = parts.iter().find(|part| part["name"] == "directory").unwrap();
    assert_eq!(
        (ready["state"].as_str(), part["state"].as_str()),
        (Some("blocked"), Some("blocked")),
        "{ready}"
    );
    assert_eq!(part["why"], "elsewhere", "{part}");
    assert!(text(part, "remedy").contains("scope relink"), "{part}");
}

#[track_caller]
fn is_refused(answered: &HttpAnswer) {
    let problem = answered.expect(409);
    assert_eq!(problem["code"], "bad_directory", "{problem}");
    assert!(problem.to_string().contains("leads elsewhere by now"), "{problem}");
}

#[test]
fn the_files_behind_a_swapped_directory_are_not_listed_and_it_is_not_ready() {
    let lure = Lure::new();
    let plain = lure.yard.homing.root().join("plain");
    fs::create_dir(&plain).unwrap();
    fs::write(plain.join(CANARY), "").unwrap();
    for target in
        [lure.yard.homing.data(), lure.yard.homing.data().join("worktrees"), lure.foreign.clone(), plain]
    {
        lure.swap(&target);
        let listed = lure.get("files");
        assert!(!listed.text().contains(CANARY) && !listed.text().contains("homing.db"), "{}", listed.text());
        is_refused(&listed);
        is_blocked(&lure.get("readiness").expect(200));
    }
    lure.mend();
    fs::write(lure.place.join("mine"), "").unwrap();
    assert!(lure.get("files").expect(200).to_string().contains("mine"));
    assert_eq!(lure.get("readiness").expect(200)["state"], "ready");
}

#[test]
fn no_worktree_is_made_of_what_a_swapped_directory_leads_to() {
    let lure = Lure::new();
    // Somebody else's worktree, with what nobody tracks.
    lure.yard.homing.run(&["scope", "enter", "shed"]).expect(0);
    let shed = PathBuf::from(text(&lure.yard.now(), "directory"));
    lure.yard.homing.run(&["scope", "exit"]).expect(0);
    fs::write(shed.join(".worktreeinclude"), "*.ignored\n").unwrap();
    fs::write(shed.join("secret.ignored"), CANARY).unwrap();
    let worktrees = lure.yard.homing.data().join("worktrees/of");
    let trees = || names_in(&worktrees).into_iter().flat_map(|of| names_in(&of)).collect::<Vec<_>>();
    let (here, branches) = (trees(), lure.yard.git(&["branch", "-a"]));
    for (times, name, target) in [(1, "loot", &lure.foreign), (2, "booty", &shed)] {
        let before = all_of(target);
        lure.swap(target);
        lure.post("scope", &json!({ "enter": { "name": name } }));
        lure.is_told("could not be entered", times);
        lure.has_failed(times);
        lure.stays_where_it_was();
        assert_eq!(all_of(target), before, "{}", target.display());
        assert_eq!((trees(), lure.yard.git(&["branch", "-a"])), (here.clone(), branches.clone()));
        lure.mend();
    }
    lure.post("scope", &json!({ "enter": { "name": "own" } })).expect(200);
    eventually("it is in a worktree", || (trees().len() > here.len()).then_some(()));
}

#[test]
fn a_fork_is_not_made_where_a_swapped_directory_leads_to() {
    let lure = Lure::new();
    lure.ask("!run echo one > ../one.txt");
    let before = all_of(&lure.foreign);
    let sessions = crate::sessions(&lure.yard.homing, &["--all"]).len();
    lure.swap(&lure.foreign);
    let answered = lure.post("fork", &json!({}));
    assert!(answered.status >= 400, "{} {}", answered.status, answered.text());
    assert!(!answered.text().contains(CANARY), "{}", answered.text());
    assert_eq!(crate::sessions(&lure.yard.homing, &["--all"]).len(), sessions);
    assert_eq!(all_of(&lure.foreign), before);
    let worktrees = lure.yard.homing.data().join("worktrees/of");
    assert!(!worktrees.exists() || names_in(&worktrees).iter().all(|of| names_in(of).is_empty()));
}

#[test]
fn an_undo_does_not_write_where_a_swapped_directory_leads_to() {
    let lure = Lure::new();
    // Somebody else's worktree of the same repository, in which the same was done.
    lure.yard.homing.run(&["scope", "enter", "shed"]).expect(0);
    let shed = PathBuf::from(text(&lure.yard.now(), "directory"));
    lure.yard.homing.run(&["scope", "exit"]).expect(0);
    lure.ask("!run echo changed > ../kept.txt");
    let turn = lure.last_turn();
    fs::write(shed.join("kept.txt"), "changed\n").unwrap();
    let before = all_of(&shed);
    lure.swap(&shed);
    let refs = lure.yard.git(&["for-each-ref"]);
    lure.post("undo", &json!({ "turn": turn, "all": true }));
    lure.is_told("could not be undone", 1);
    lure.has_failed(1);
    assert_eq!(all_of(&shed), before);
    assert_eq!(lure.yard.read("kept.txt"), "changed\n");
    assert_eq!(lure.yard.git(&["for-each-ref"]), refs, "nothing was remembered of it either");
    // It is what it is called again: now it is undone, here and not there.
    lure.mend();
    lure.post("undo", &json!({ "turn": turn, "all": true }));
    eventually("it is undone", || {
        let facts = crate::kill::facts(&lure.yard.homing.http(), &lure.session);
        facts.iter().any(|fact| fact["type"] == "undone").then_some(())
    });
    assert_eq!(lure.yard.read("kept.txt"), "one\ntwo\n");
    assert_eq!(all_of(&shed), before);
}

#[test]
fn what_a_turn_changed_is_not_looked_for_where_its_directory_leads_to_by_now() {
    let lure = Lure::new();
    let mut gate = lure.yard.gate("gate");
    let before = all_of(&lure.foreign);
    let http = lure.yard.homing.http();
    let said = http.send(&json!({ "session": lure.session }), &format!("!run {}", gate.wait()));
    eventually("it is handed over", || {
        let facts = crate::kill::facts(&http, &lure.session);
        let handed = facts.iter().filter(|fact| fact["type"] == "handed").count();
        (handed == 2).then_some(())
    });
    let turn = lure.last_turn();
    fs::remove_dir(&lure.place).unwrap();
    symlink(&lure.foreign, &lure.place).unwrap();
    gate.open();
    http.until_final(&text(&said, "id"));
    lure.is_told("has changed could not be seen", 1);
    assert_eq!(all_of(&lure.foreign), before, "nothing was written there");
    let changes = lure.get(&format!("changes?turn={turn}")).expect(200);
    assert!(changes["known"] == false && !changes.to_string().contains(CANARY), "{changes}");
}

#[test]
fn a_sessions_own_directory_and_its_worktree_count_only_while_they_are_that() {
    let yard = Yard::new();
    let http = yard.homing.http();
    let foreign = yard.homing.root().join("foreign");
    repository(&foreign);
    let said = yard.homing.send("api:swapped/own", "hello");
    http.until_final(&text(&said, "id"));
    yard.homing.run(&["scope", "enter", "shed"]).expect(0);
    for session in [text(&said, "session"), yard.session.clone()] {
        let look = |what: &str| http.get(&format!("/api/v1/sessions/{session}/{what}"));
        let place =
            PathBuf::from(text(&http.get(&format!("/api/v1/sessions/{session}")).expect(200), "directory"));
        assert!(place.starts_with(yard.homing.data().canonicalize().unwrap()), "{}", place.display());
        look("files").expect(200);
        assert_eq!(look("readiness").expect(200)["state"], "ready");
        let aside = place.with_extension("aside");
        fs::rename(&place, &aside).unwrap();
        symlink(&foreign, &place).unwrap();
        is_refused(&look("files"));
        is_blocked(&look("readiness").expect(200));
        let receipt = http.send(&json!({ "session": session }), "!run touch here");
        assert_eq!(http.until_final(&text(&receipt, "id"))["state"], "failed");
        assert!(!foreign.join("here").exists());
        fs::remove_file(&place).unwrap();
        fs::rename(&aside, &place).unwrap();
        look("files").expect(200);
    }
}

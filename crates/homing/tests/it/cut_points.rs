//! `kill -9` at every run of git of what `scope_kill` does not have: a redo, a merge, an apply, the take-over of snapshots that older
//! versions left in a repository, and the ground worker instead of the server. It is as before or as after, never between, and nothing
//! is lost.
//!
//! The test command takes some of the runs, by turns; `HOMING_CUTS` takes each in both ways. Each says at how many points it was
//! ended; the page of the nightly run has the sum.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{HttpAnswer, eventually, eventually_within};

use crate::scope_kill::{kill_points_of, points};
use crate::text;
use crate::yard::{Cut, Orphan, Yard, everything, git};

/// Runs of git between two that the test command ends something at: of what has some twenty, and of what has some eighty.
const STRIDE: usize = 11;
const LONG_STRIDE: usize = 40;

/// Longer than the lock of a git that was killed stands in the way of the next one.
const LOCK_TIME_MAX: Duration = Duration::from_secs(120);

/// The runs of git at which something is ended.
fn some_points(stride: usize) -> impl Iterator<Item = (usize, Orphan)> {
    let is_thorough = std::env::var_os("HOMING_CUTS").is_some();
    points().filter(move |(run, _)| is_thorough || run % stride == 1)
}

impl Yard {
    /// Asks for something under a key of its own, and answers if somebody answered.
    fn wish(&self, path: &str, key: &str, body: &Value) -> Option<HttpAnswer> {
        let path = format!("/api/v1/sessions/{}/{path}", self.session);
        self.homing.http().ask("POST", &path, &[("Idempotency-Key", key)], Some(body)).ok()
    }

    /// Nothing is left that would keep somebody from going on.
    #[track_caller]
    fn has_no_lock(&self) {
        for lock in ["index.lock", "HEAD.lock", "refs/heads/main.lock", "packed-refs.lock"] {
            assert!(!self.place.join(".git").join(lock).exists(), "{lock} is left");
        }
        self.git(&["fsck", "--no-dangling"]);
    }

    /// Turn, undone; the picture of the tree before and after the turn.
    #[track_caller]
    fn undone_turn(&self, number: usize) -> u64 {
        let work = format!("!run echo {number} > kept.txt; mkdir -p deep; echo {number} > deep/{number}.txt");
        let message = self.say(&work);
        self.homing.http().until_final(&message);
        let turn = self.each_turn_ran_in_its_scope().ran[&message].turn;
        let undone = self.count("undone");
        let wish = json!({ "turn": turn, "all": true });
        self.wish("undo", &format!("undo-{turn}"), &wish).expect("a server").expect(200);
        eventually("it is undone", || (self.count("undone") > undone).then_some(()));
        turn
    }
}

#[test]
fn taking_an_undo_back_goes_on_from_every_run_of_git() {
    let cut = Cut::new();
    let mut yard = Yard::of(cut.setup());
    let mut cuts = 0;
    for (number, point) in some_points(STRIDE).enumerate() {
        let turn = yard.undone_turn(number);
        // Not the turn's: it is nobody's to touch.
        yard.write("own.txt", &format!("own {turn}"));
        let (before, seen) = (yard.count("redone"), yard.now()["number"].clone());
        let (key, wish) = (format!("redo-{turn}"), json!({ "turn": turn }));
        cut.arm(point.0, point.1, yard.homing.pid());
        let was_granted = yard.wish("redo", &key, &wish).is_some_and(|answered| answered.status < 300);
        let log = format!("/api/v1/sessions/{}/facts?after={seen}&limit=500", yard.session);
        let is_done = |yard: &Yard| {
            let answered = yard.homing.http().ask("GET", &log, &[], None);
            answered.is_ok_and(|answered| answered.text().contains("\"redone\""))
        };
        let was_cut = yard.begin_and_wait(&cut, is_done);
        if !was_granted {
            assert!(was_cut, "run {point:?}");
            yard.wish("redo", &key, &wish).expect("a server").expect(200);
        }
        eventually("it is taken back", || (yard.count("redone") > before).then_some(()));
        assert_eq!((yard.count("redone"), yard.count("errand_failed")), (before + 1, 0), "once");
        assert_eq!(yard.read("kept.txt"), format!("{number}\n"), "{point:?}");
        assert_eq!(yard.read(&format!("deep/{number}.txt")), format!("{number}\n"), "{point:?}");
        assert_eq!(yard.read("own.txt"), format!("own {turn}"));
        yard.has_no_lock();
        yard.git(&["add", "-A"]);
        yard.git(&["commit", "-q", "--allow-empty", "-m", "kept"]);
        if !was_cut {
            break;
        }
        cuts += 1;
    }
    kill_points_of("redo", cuts);
}

/// Brings work back, ended at every run of git. `work` makes some, `check` looks at where it comes to; the work is named by a number.
fn brought_back(verb: &str, work: impl Fn(&Path, usize), check: impl Fn(&Yard, usize)) {
    let cut = Cut::new();
    let mut yard = Yard::of(cut.setup());
    yard.homing.run(&["scope", "enter", "shed"]).expect(0);
    let shed = PathBuf::from(text(&yard.now(), "directory"));
    yard.homing.run(&["scope", "exit"]).expect(0);
    // The person's own, on the way.
    yard.write("own.txt", "own");
    let mut cuts = 0;
    for (number, point) in some_points(LONG_STRIDE).enumerate() {
        work(&shed, number);
        let there = everything(&shed);
        cut.arm(point.0, point.1, yard.homing.pid());
        let (path, key) = (format!("worktrees/shed/{verb}"), format!("{verb}-{number}"));
        let answered = yard.wish(&path, &key, &json!({}));
        let was_cut = yard.begin_and_wait(&cut, |_| answered.is_some());
        // Whoever got no answer asks again, and finds it done or has it done.
        yard.wish(&path, &key, &json!({})).expect("a server").expect(200);
        check(&yard, number);
        assert_eq!(everything(&shed), there, "{point:?}: the worktree stays");
        assert_eq!(yard.read("own.txt"), "own");
        yard.has_no_lock();
        if !was_cut {
            break;
        }
        cuts += 1;
    }
    kill_points_of(verb, cuts);
}

#[test]
fn a_merge_goes_on_from_every_run_of_git() {
    let work = |shed: &Path, number: usize| {
        fs::write(shed.join(format!("{number}.txt")), "work\n").unwrap();
        fs::write(shed.join("kept.txt"), format!("{number}\n")).unwrap();
        git(shed, &["add", "-A"]);
        git(shed, &["commit", "-q", "-m", &format!("work {number}")]);
    };
    brought_back("merge", work, |yard, number| {
        assert_eq!(yard.git(&["log", "-1", "--format=%s"]), format!("work {number}"));
        assert_eq!(yard.git(&["status", "--porcelain"]), "?? own.txt");
        assert_eq!(yard.read("kept.txt"), format!("{number}\n"));
        assert_eq!(yard.read(&format!("{number}.txt")), "work\n");
    });
}

#[test]
fn an_apply_goes_on_from_every_run_of_git() {
    let work = |shed: &Path, number: usize| {
        for entry in fs::read_dir(shed).unwrap().map(Result::unwrap) {
            if entry.file_name().to_string_lossy().starts_with("new") {
                fs::remove_file(entry.path()).unwrap();
            }
        }
        fs::write(shed.join(format!("new{number}.txt")), "work\n").unwrap();
        fs::write(shed.join("kept.txt"), format!("one\ntwo\n{number}\n")).unwrap();
    };
    brought_back("apply", work, |yard, number| {
        assert_eq!(
            yard.git(&["status", "--porcelain"]),
            format!(" M kept.txt\n?? new{number}.txt\n?? own.txt")
        );
        assert_eq!(yard.read("kept.txt"), format!("one\ntwo\n{number}\n"));
        assert_eq!(yard.read(&format!("new{number}.txt")), "work\n");
        // For the next one it is as it was.
        yard.git(&["checkout", "-q", "--", "kept.txt"]);
        fs::remove_file(yard.place.join(format!("new{number}.txt"))).unwrap();
    });
}

impl Yard {
    /// The store of the repository's snapshots.
    fn store(&self) -> PathBuf {
        let stores = fs::read_dir(self.homing.data().join("git/snapshots")).into_iter().flatten().flatten();
        stores.map(|entry| entry.path()).next().unwrap_or_default()
    }

    /// The hidden refs of a session in a repository.
    fn hidden_refs(&self, place: &Path) -> Vec<String> {
        let below = format!("refs/homing/{}", self.session);
        let said = git(place, &["for-each-ref", "--format=%(refname) %(objectname)", &below]);
        said.lines().map(str::to_owned).collect()
    }

    /// Puts the session's snapshots where older versions kept them: on refs of the repository itself.
    fn age(&self) -> Vec<String> {
        let store = self.store();
        self.git(&["fetch", "-q", store.to_str().unwrap(), "refs/homing/*:refs/homing/*"]);
        for place in ["snapshots", "shadows"] {
            fs::remove_dir_all(self.homing.data().join("git").join(place)).unwrap();
        }
        self.hidden_refs(&self.place)
    }
}

#[test]
fn snapshots_of_older_versions_are_in_one_place_or_in_both_from_every_run_of_git() {
    let cut = Cut::new();
    let mut yard = Yard::of(cut.setup());
    let message = yard.say("!run echo changed > kept.txt; echo made > made.txt");
    yard.homing.http().until_final(&message);
    let turn = yard.each_turn_ran_in_its_scope().ran[&message].turn;
    // A diff is in the log; what an undo would do is asked of the snapshots.
    let path = format!("/api/v1/sessions/{}/undo?turn={turn}", yard.session);
    let preview = yard.homing.http().get(&path).expect(200);
    let mut cuts = 0;
    for point in some_points(STRIDE) {
        // What is copied after a turn is copied by now, and nobody holds anything.
        eventually("it is whole", || {
            let whole = std::process::Command::new("git")
                .env("GIT_DIR", yard.store())
                .args(["rev-list", "--objects", "--quiet", "--all"])
                .output();
            whole.is_ok_and(|out| out.status.success()).then_some(())
        });
        yard.homing.kill9();
        yard.homing.until_nothing_is_left();
        let old = yard.age();
        assert!(old.len() >= 4, "{old:?}");
        yard.homing.restart();
        cut.arm(point.0, point.1, yard.homing.pid());
        let answered = yard.homing.http().ask("GET", &path, &[], None).ok();
        let was_cut = yard.begin_and_wait(&cut, |_| answered.is_some());
        let (here, store) = (yard.hidden_refs(&yard.place), yard.store());
        let taken = if store.as_os_str().is_empty() { Vec::new() } else { yard.hidden_refs(&store) };
        let is_lost = |one: &&String| !here.contains(one) && !taken.contains(one);
        assert_eq!(old.iter().filter(is_lost).collect::<Vec<_>>(), [""; 0], "{point:?}");
        // A git that was killed while it deleted them may have left the lock of all refs, which we take for ours after a minute;
        // until then they are in both places.
        eventually_within(LOCK_TIME_MAX, "nothing of ours is in the repository", || {
            let again = yard.homing.http().get(&path).expect(200);
            assert_eq!(again, preview, "{point:?}");
            yard.hidden_refs(&yard.place).is_empty().then_some(())
        });
        yard.git(&["gc", "--quiet", "--prune=now"]);
        assert_eq!(yard.homing.http().get(&path).expect(200), preview, "{point:?}");
        if !was_cut {
            break;
        }
        cuts += 1;
    }
    kill_points_of("take-over of old refs", cuts);
}

/// The ground workers below a server. Their own numbers are others where they are.
pub(crate) fn workers_of(server: u32) -> BTreeSet<u32> {
    let parent = |pid: u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    let is_below =
        |pid: u32| std::iter::successors(Some(pid), |pid| parent(*pid)).any(|above| above == server);
    let is_worker = |pid: u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).nth(1) == Some(b"ground")
    };
    let all = fs::read_dir("/proc").unwrap().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    // Below it another one is called so for a moment, which is about to be git.
    let is_first = |pid: u32| is_worker(pid) && !parent(pid).is_some_and(is_worker);
    all.filter(|pid| is_first(*pid) && is_below(*pid)).collect()
}

fn worker_of(server: u32) -> Option<u32> {
    workers_of(server).last().copied()
}

fn end_worker(server: u32) {
    let worker = eventually("there is a worker", || worker_of(server)).to_string();
    assert!(std::process::Command::new("kill").args(["-9", &worker]).status().unwrap().success());
}

#[test]
fn what_a_worker_had_begun_that_is_killed_is_gone_on_with_by_the_next_one() {
    let cut = Cut::new();
    let yard = Yard::of(cut.setup());
    let server = yard.homing.pid();
    let mut cuts = [0; 3];
    for (number, point) in some_points(STRIDE).enumerate() {
        let message = yard.say(&format!("!run echo {number} > kept.txt; echo made > made.txt"));
        yard.homing.http().until_final(&message);
        let turn = yard.each_turn_ran_in_its_scope().ran[&message].turn;
        yard.write("own.txt", &format!("own {turn}"));
        let mut was_cut = Vec::new();
        for (verb, fact) in [("undo", "undone"), ("redo", "redone"), ("undo", "undone")] {
            let before = yard.count(fact);
            cut.arm_with(point.0, point.1, move || end_worker(server));
            let wish =
                if verb == "undo" { json!({ "turn": turn, "all": true }) } else { json!({ "turn": turn }) };
            let path = format!("/api/v1/sessions/{}/{verb}", yard.session);
            yard.homing.http().post(&path, &wish).expect(200);
            eventually("it is done", || (yard.count(fact) > before).then_some(()));
            was_cut.push(cut.disarm());
            assert_eq!(yard.count("errand_failed"), 0, "{verb} at {point:?}");
            let kept = if verb == "undo" { "one\ntwo\n".to_owned() } else { format!("{number}\n") };
            assert_eq!((yard.read("kept.txt"), yard.place.join("made.txt").exists()), (kept, verb == "redo"));
            assert_eq!(yard.read("own.txt"), format!("own {turn}"));
        }
        cut.arm_with(point.0, point.1, move || end_worker(server));
        let entered = yard.homing.run(&["scope", "enter", &format!("w{number}")]);
        entered.expect(0);
        let enter_cut = cut.disarm();
        let shed = text(&yard.now(), "directory");
        assert_eq!(git(shed.as_ref(), &["status", "--porcelain"]), "");
        yard.homing.run(&["scope", "exit"]).expect(0);
        yard.has_no_lock();
        cuts[0] += was_cut.iter().step_by(2).filter(|cut| **cut).count();
        cuts[1] += usize::from(was_cut[1]);
        cuts[2] += usize::from(enter_cut);
        if !enter_cut && !was_cut.contains(&true) {
            break;
        }
    }
    for (operation, cuts) in ["undo", "redo", "enter"].into_iter().zip(cuts) {
        kill_points_of(&format!("the worker while it does: {operation}"), cuts);
    }
}

/// Work brought back by a merge and by an apply, and a worktree that goes and comes again, while the worker is killed at runs of git.
#[test]
fn a_worker_that_is_killed_leaves_no_worktree_half_way() {
    let cut = Cut::new();
    let yard = Yard::of(cut.setup());
    let server = yard.homing.pid();
    yard.homing.run(&["scope", "enter", "shed"]).expect(0);
    let shed = PathBuf::from(text(&yard.now(), "directory"));
    yard.homing.run(&["scope", "exit"]).expect(0);
    yard.write("own.txt", "own");
    let mut cuts = [0; 4];
    for (number, point) in some_points(LONG_STRIDE).enumerate() {
        let ask = |method: &str, verb: &str| {
            cut.arm_with(point.0, point.1, move || end_worker(server));
            let path = format!("/api/v1/sessions/{}/worktrees/shed{verb}", yard.session);
            let key = format!("{method}{verb}-{number}");
            let body = (method == "POST").then(|| json!({}));
            eventually("there is a verdict", || {
                let headers = [("Idempotency-Key", key.as_str())];
                let answered = yard.homing.http().must(method, &path, &headers, body.as_ref());
                assert!(answered.status < 300, "{method} {verb} at {point:?}: {}", answered.text());
                (answered.status == 200).then_some(())
            });
            usize::from(cut.disarm())
        };
        let (merged, applied) = (format!("merged{number}.txt"), format!("applied{number}.txt"));
        fs::write(shed.join(&merged), "merged").unwrap();
        git(&shed, &["add", "."]);
        git(&shed, &["commit", "-q", "-m", "work"]);
        let mut was_cut = vec![ask("POST", "/merge")];
        assert_eq!((yard.read(&merged), yard.read("own.txt")), ("merged".into(), "own".into()), "{point:?}");
        fs::write(shed.join(&applied), "applied").unwrap();
        let left = everything(&shed);
        was_cut.push(ask("POST", "/apply"));
        assert_eq!(
            (yard.read(&applied), yard.read("own.txt")),
            ("applied".into(), "own".into()),
            "{point:?}"
        );
        was_cut.push(ask("DELETE", ""));
        assert!(!shed.exists(), "{point:?}");
        was_cut.push(ask("POST", "/restore"));
        assert_eq!(everything(&shed), left, "{point:?}");
        yard.has_no_lock();
        // The next merge wants a place in which nothing is changed.
        yard.git(&["reset", "-q"]);
        fs::remove_file(yard.place.join(&applied)).unwrap();
        fs::remove_file(shed.join(&applied)).unwrap();
        for (all, cut) in cuts.iter_mut().zip(&was_cut) {
            *all += cut;
        }
        if !was_cut.contains(&1) {
            break;
        }
    }
    for (operation, cuts) in ["merge", "apply", "worktree rm", "worktree restore"].into_iter().zip(cuts) {
        kill_points_of(&format!("the worker while it does: {operation}"), cuts);
    }
}

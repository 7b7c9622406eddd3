//! `kill -9` while a scope changes, a turn is undone, a session forked, a question answered: it is as before or as after,
//! never between, and the next server goes on where the log says.
//!
//! What takes git is cut at every run of git; by turns the run never begins, or goes on beside the next server. What takes
//! nothing outside is cut at many moments. `HOMING_CUTS` says at how many, and cuts every run of git both ways.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Homing, eventually};

use crate::yard::{Cut, FIRST, Orphan, Yard, everything, git, last, until};
use crate::{EXE, count, counted, sessions, text};

/// More runs of git than any operation has.
pub(crate) const RUNS_MAX: usize = 160;

/// Every run of git, for as long as an operation has more of them.
pub(crate) fn points() -> impl Iterator<Item = (usize, Orphan)> {
    let is_thorough = std::env::var_os("HOMING_CUTS").is_some();
    let ways = move |run: usize| match (is_thorough, run % 2) {
        (true, _) => vec![Orphan::Never, Orphan::GoesOn],
        (false, 0) => vec![Orphan::Never],
        (false, _) => vec![Orphan::GoesOn],
    };
    (1..RUNS_MAX).flat_map(move |run| ways(run).into_iter().map(move |orphan| (run, orphan)))
}

/// The times after a request is sent at which the server is ended: from at once to when it is answered.
fn moments() -> impl Iterator<Item = Duration> {
    (0..count("HOMING_CUTS", 10)).map(|cut| Duration::from_micros(cut * 900))
}

/// Says at how many points an operation was ended. An operation that has hardly any was not done; where it is not cut at every
/// run of git, one will do.
pub(crate) fn kill_points_of(operation: &str, cuts: usize) {
    counted(format_args!("kill points of {operation}: {cuts}"));
    let least = if std::env::var_os("HOMING_CUTS").is_some() { 3 } else { 1 };
    assert!((least..2 * RUNS_MAX).contains(&cuts), "{operation} was cut at {cuts} runs of git");
}

impl Yard {
    /// Waits until something has happened or was cut; answers whether it was, with a new server in place.
    #[track_caller]
    pub(crate) fn begin_and_wait(&mut self, cut: &Cut, done: impl Fn(&Self) -> bool) -> bool {
        eventually("it is done or cut", || (cut.is_reached() || done(self)).then_some(()));
        let was_cut = cut.disarm();
        if was_cut {
            self.homing.restart();
        }
        was_cut
    }

    /// Asks for something and ends the server a moment later; a new one is in place afterwards. Answers whether somebody
    /// was told that it is accepted.
    #[track_caller]
    fn cut_after(&mut self, moment: Duration, method: &'static str, path: &str, body: &Value) -> bool {
        let (http, path, body) = (self.homing.http(), path.to_owned(), body.clone());
        let asking = std::thread::spawn(move || {
            let answered = http.ask(method, &path, &[], Some(&body));
            answered.is_ok_and(|answered| answered.status < 300)
        });
        let until = Instant::now() + moment;
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        self.homing.restart();
        asking.join().expect("asking")
    }

    fn scope_path(&self) -> String {
        format!("/api/v1/sessions/{}/scope", self.session)
    }

    /// The scope is one of the log's, whole: what the list shows, what the log says and where turns run are the same.
    #[track_caller]
    fn is_whole(&self) -> (u64, String) {
        // What goes on meanwhile must not come between the two looks.
        let (session, facts) = eventually("nothing happens between two looks", || {
            let (session, facts) = (self.now(), self.facts());
            (self.now() == session).then_some((session, facts))
        });
        let said = |fact: &&Value| fact["type"] == "scope_changed" || fact["type"] == "opened";
        let scope = facts.iter().rfind(said).expect("a log begins with a scope");
        for part in ["directory", "agent", "model", "mode", "worktree"] {
            assert_eq!(session[part], scope[part], "{part} of {session} is not that of {scope}");
        }
        assert_eq!(session["epoch"].as_u64(), Some(scope["epoch"].as_u64().unwrap_or(FIRST)));
        (session["epoch"].as_u64().unwrap(), text(&session, "directory"))
    }

    /// The next turn runs where the log says, and nothing of before runs beside it.
    #[track_caller]
    pub(crate) fn goes_on_in(&self, directory: &str) {
        assert_eq!(self.works_in(), directory);
        assert_eq!(self.is_whole().1, directory);
        self.homing.until_nothing_is_left();
    }
}

/// A worktree that is as its base is, known to git, and not half of one.
#[track_caller]
fn is_sound(yard: &Yard, directory: &str) {
    let directory = Path::new(directory);
    assert_eq!(git(directory, &["status", "--porcelain"]), "");
    assert_eq!(fs::read_to_string(directory.join("kept.txt")).unwrap(), "one\ntwo\n");
    assert_eq!(git(directory, &["rev-parse", "HEAD"]), yard.git(&["rev-parse", "main"]));
    assert!(yard.git(&["worktree", "list"]).contains(directory.to_str().unwrap()));
    git(directory, &["fsck", "--no-dangling"]);
}

#[test]
fn entering_a_worktree_goes_on_from_every_run_of_git() {
    let cut = Cut::new();
    let mut yard = Yard::of(cut.setup());
    let home = yard.place_text();
    let mut cuts = 0;
    for (number, point) in points().enumerate() {
        let epoch = yard.now()["epoch"].as_u64().unwrap();
        let (path, key) = (format!("/api/v1/sessions/{}/scope", yard.session), format!("enter-{number}"));
        let wish = json!({"enter": {"name": format!("w{number}")}});
        let enter = |homing: &Homing| {
            let headers = [("Idempotency-Key", key.as_str())];
            homing.http().ask("POST", &path, &headers, Some(&wish)).ok().map(|answered| answered.expect(200))
        };
        cut.arm(point.0, point.1, yard.homing.pid());
        enter(&yard.homing);
        let there = |yard: &Yard| {
            let answered =
                yard.homing.http().ask("GET", &format!("/api/v1/sessions/{}", yard.session), &[], None);
            answered.is_ok_and(|answered| answered.json()["epoch"].as_u64() == Some(epoch + 1))
        };
        let was_cut = yard.begin_and_wait(&cut, there);
        // Git may run, and the server end, before the answer is out: whoever got none asks again with the same key.
        enter(&yard.homing).expect("a server");
        let (now, directory) = yard.is_whole();
        assert!(
            now == epoch && directory == home || now == epoch + 1 && directory != home,
            "{now} {directory}"
        );
        let directory = text(&yard.until_epoch(epoch + 1), "directory");
        is_sound(&yard, &directory);
        yard.goes_on_in(&directory);
        assert_eq!(yard.facts().iter().filter(|fact| fact["type"] == "errand_failed").count(), 0);
        // What is done there survives whatever comes.
        fs::write(Path::new(&directory).join("work.txt"), "work").unwrap();
        yard.homing.run(&["scope", "exit"]).expect(0);
        assert_eq!(fs::read_to_string(Path::new(&directory).join("work.txt")).unwrap(), "work");
        if !was_cut {
            break;
        }
        cuts += 1;
    }
    kill_points_of("enter", cuts);
    assert_eq!(yard.git(&["worktree", "list"]).lines().count(), cuts + 2);
    assert_eq!(yard.git(&["status", "--porcelain"]), "");
    yard.each_turn_ran_in_its_scope();
}

#[test]
fn entering_a_worktree_goes_on_from_many_moments() {
    let mut yard = Yard::new();
    let (home, path) = (yard.place_text(), yard.scope_path());
    for (number, moment) in moments().enumerate() {
        let epoch = yard.now()["epoch"].as_u64().unwrap();
        let wanted = json!({"enter": {"name": format!("w{number}"), "base": "main"}});
        // It takes longer than other changes, so the moments are further apart.
        let accepted = yard.cut_after(moment * 5, "POST", &path, &wanted);
        if accepted {
            yard.until_epoch(epoch + 1);
        }
        let settled = yard.until(|session| session["awake"] == false);
        let (now, directory) = yard.is_whole();
        assert_eq!(now, settled["epoch"].as_u64().unwrap());
        if now == epoch {
            assert!(!accepted && directory == home, "{directory}");
        } else {
            is_sound(&yard, &directory);
        }
        yard.goes_on_in(&directory);
        if now != epoch {
            yard.homing.run(&["scope", "exit"]).expect(0);
        }
    }
    assert_eq!(yard.count("errand_failed"), 0);
    counted(format_args!("kill points of enter, at moments: {}", moments().count()));
    yard.each_turn_ran_in_its_scope();
}

#[test]
fn a_worktree_that_was_being_set_up_is_set_up_by_the_next_server() {
    let place = tempfile::tempdir().unwrap();
    let mut gate = crate::yard::Gate::at(&place.path().join("gate"));
    let began = place.path().join("began");
    let config = format!(
        "[agents.scripted.worktree]\nsetup = \"\"\"\nset -e\necho began >> {}\n{}\necho ready > ready.ignored\n\"\"\"\n",
        began.display(),
        gate.wait()
    );
    let mut yard = Yard::of(testkit::Setup::new(EXE).config(&config));
    let home = yard.place_text();
    yard.change(&json!({"enter": {"name": "shed"}}));
    for time in 1..=3 {
        eventually("it is being set up", || {
            let lines = fs::read_to_string(&began).unwrap_or_default().lines().count();
            (lines >= time).then_some(())
        });
        assert_eq!(yard.is_whole(), (FIRST, home.clone()), "it is not entered before it is set up");
        yard.homing.kill9();
        yard.homing.until_nothing_is_left();
        if time < 3 {
            yard.homing.restart();
        }
    }
    gate.open();
    yard.homing.restart();
    let shed = text(&yard.until_epoch(1), "directory");
    assert_eq!(fs::read_to_string(Path::new(&shed).join("ready.ignored")).unwrap(), "ready\n");
    is_sound(&yard, &shed);
    yard.goes_on_in(&shed);
    assert_eq!(yard.count("scope_changed"), 1);
}

#[test]
fn a_change_that_takes_nothing_outside_has_happened_or_not() {
    let mut yard = Yard::new();
    let moved = yard.homing.root().canonicalize().unwrap().join("moved");
    fs::create_dir(&moved).unwrap();
    let (home, moved) = (yard.place_text(), moved.to_str().unwrap().to_owned());
    let (mut happened, mut asked, path) = (0, 0, yard.scope_path());
    for moment in moments() {
        for field in ["model", "model", "directory", "directory"] {
            let before = yard.now();
            // What is so already is accepted as well, and changes nothing: each wish is for the other one of two.
            let wanted = match field {
                "model" if before["model"] == "large" => json!({"set": {"model": ""}}),
                "model" => json!({"set": {"model": "large"}}),
                _ if before["directory"] == moved.as_str() => json!({"relink": home}),
                _ => json!({"relink": moved}),
            };
            let accepted = yard.cut_after(moment, "POST", &path, &wanted);
            // What was accepted is done, if not by the server that said so, then by the next.
            let is_so = |session: &Value| session[field] != before[field];
            let after = if accepted {
                yard.until(is_so)
            } else {
                // It may be durable although nobody was told: then it comes before what is said now.
                yard.ask("and now?");
                yard.now()
            };
            let epochs = after["epoch"].as_u64().unwrap() - before["epoch"].as_u64().unwrap();
            assert_eq!(epochs, u64::from(is_so(&after)), "{before} became {after}");
            (happened, asked) = (happened + epochs, asked + 1);
            yard.is_whole();
        }
    }
    println!("{happened} of {asked} changes came before the end");
    counted(format_args!("kill points of set and relink: {asked}"));
    assert!(happened > 0, "nothing ever happened");
    let directory = text(&yard.now(), "directory");
    yard.goes_on_in(&directory);
    yard.each_turn_ran_in_its_scope();
}

#[test]
fn leaving_a_worktree_has_happened_or_not_and_the_worktree_stays() {
    let mut yard = Yard::new();
    let (home, path) = (yard.place_text(), yard.scope_path());
    yard.homing.run(&["scope", "enter", "shed"]).expect(0);
    let shed = text(&yard.now(), "directory");
    fs::write(Path::new(&shed).join("work.txt"), "work").unwrap();
    for moment in moments() {
        let accepted = yard.cut_after(moment, "POST", &path, &json!({"exit": true}));
        if accepted {
            yard.until(|session| session["worktree"].is_null());
        }
        let (_, directory) = yard.is_whole();
        assert!(directory == home || directory == shed && !accepted, "{directory}");
        yard.goes_on_in(&directory);
        assert_eq!(fs::read_to_string(Path::new(&shed).join("work.txt")).unwrap(), "work");
        if directory == home {
            yard.homing.run(&["scope", "enter", "shed"]).expect(0);
        }
    }
    counted(format_args!("kill points of exit: {}", moments().count()));
    yard.each_turn_ran_in_its_scope();
}

#[test]
fn a_change_that_waits_for_a_turn_happens_although_the_turn_is_interrupted() {
    let mut yard = Yard::new();
    let gate = yard.gate("gate");
    let running = yard.say(&format!("!run {}", gate.wait()));
    yard.until_handed(&running);
    let waiting = yard.say("waiting\n!run pwd");
    yard.change(&json!({"enter": {"name": "shed"}}));
    yard.homing.kill9();
    yard.homing.restart();
    let shed = text(&yard.until_epoch(1), "directory");
    assert_eq!(yard.homing.http().until_final(&running)["why"], "interrupted");
    let receipt = yard.receipt(&waiting);
    assert_eq!(receipt["state"], "held", "{receipt}");
    yard.homing.run(&["queue", "release", "--there", &waiting]).expect(0);
    let answer = text(&yard.homing.http().until_final(&waiting), "answer");
    assert_eq!(last(&answer), yard.place_text());
    is_sound(&yard, &shed);
    yard.each_turn_ran_in_its_scope();
}

#[test]
fn an_undo_goes_on_from_every_run_of_git() {
    let cut = Cut::new();
    let mut yard = Yard::of(cut.setup());
    let home = yard.place_text();
    let mut cuts = 0;
    for point in points() {
        let message =
            yard.say("!run echo changed > kept.txt; mkdir -p deep; echo made > deep/made.txt; rm .gitignore");
        yard.homing.http().until_final(&message);
        let turn = yard.each_turn_ran_in_its_scope().ran[&message].turn;
        // Not the turn's: it is nobody's to touch.
        yard.write("own.txt", &format!("own {turn}"));
        let (before, seen) = (yard.count("undone"), yard.now()["number"].clone());
        cut.arm(point.0, point.1, yard.homing.pid());
        let path = format!("/api/v1/sessions/{}/undo", yard.session);
        let (key, wish) = (format!("undo-{turn}"), json!({ "turn": turn, "all": true }));
        let ask = |yard: &Yard| {
            let key = [("Idempotency-Key", key.as_str())];
            let answered = yard.homing.http().ask("POST", &path, &key, Some(&wish));
            answered.is_ok_and(|answered| answered.status < 300)
        };
        let was_granted = ask(&yard);
        let log = format!("/api/v1/sessions/{}/facts?after={seen}&limit=500", yard.session);
        let undone = |yard: &Yard| {
            let answered = yard.homing.http().ask("GET", &log, &[], None);
            answered.is_ok_and(|answered| answered.text().contains("\"undone\""))
        };
        let was_cut = yard.begin_and_wait(&cut, undone);
        // It was cut while it was looked whether it can be done: nobody was promised anything.
        assert!(was_granted || was_cut && ask(&yard), "run {point:?}");
        eventually("it is undone", || (yard.count("undone") > before).then_some(()));
        assert_eq!(yard.count("undone"), before + 1, "once");
        assert_eq!(yard.count("errand_failed"), 0);
        let told = || yard.facts().into_iter().rev().take(20).collect::<Vec<_>>();
        let status = || yard.git(&["status", "--porcelain"]);
        assert_eq!(yard.read("kept.txt"), "one\ntwo\n", "{point:?}, {was_cut}, {}: {:?}", status(), told());
        assert_eq!(yard.read("own.txt"), format!("own {turn}"));
        assert_eq!(yard.git(&["status", "--porcelain"]), "?? own.txt");
        yard.goes_on_in(&home);
        if !was_cut {
            break;
        }
        cuts += 1;
    }
    kill_points_of("undo", cuts);
    yard.git(&["fsck", "--no-dangling"]);
    yard.each_turn_ran_in_its_scope();
}

#[test]
fn a_git_that_hangs_is_gone_with_its_server_and_the_next_one_goes_on() {
    let cut = Cut::new();
    let mut yard = Yard::of(cut.setup());
    let gate = yard.gate("gate");
    let message = yard.say("!run echo changed > kept.txt");
    yard.homing.http().until_final(&message);
    let turn = yard.each_turn_ran_in_its_scope().ran[&message].turn;
    cut.hold("read-tree", &gate);
    let path = format!("/api/v1/sessions/{}/undo", yard.session);
    yard.homing.http().post(&path, &json!({ "turn": turn, "all": true })).expect(200);
    eventually("git hangs", || (cut.waiting() == 1).then_some(()));
    cut.hold_no_more();
    // Nobody ever opens the gate.
    yard.homing.restart();
    eventually("it is undone", || (yard.count("undone") == 1).then_some(()));
    assert_eq!((yard.count("errand_failed"), yard.read("kept.txt").as_str()), (0, "one\ntwo\n"));
    assert_eq!(fs::read_dir(yard.homing.data().join("git/runs")).unwrap().count(), 0);
    yard.goes_on_in(&yard.place_text());
}

#[test]
fn a_fork_is_made_once_from_every_run_of_git() {
    let cut = Cut::new();
    let mut yard = Yard::of(cut.setup());
    yard.ask("!run echo changed > kept.txt; echo made > made.txt");
    let after = yard.git(&["status", "--porcelain"]);
    let path = format!("/api/v1/sessions/{}/fork", yard.session);
    let mut cuts = 0;
    for (number, point) in points().enumerate() {
        let (key, before) = (format!("fork-{number}"), sessions(&yard.homing, &[]).len());
        cut.arm(point.0, point.1, yard.homing.pid());
        let post = |homing: &Homing| {
            let headers = [("Idempotency-Key", key.as_str())];
            homing
                .http()
                .ask("POST", &path, &headers, Some(&json!({"at": 2})))
                .ok()
                .map(|made| made.expect(201))
        };
        let made = post(&yard.homing);
        let is_there = |yard: &Yard| {
            let Some(made) = &made else { return false };
            let answered =
                yard.homing.http().ask("GET", &format!("/api/v1/sessions/{}", text(made, "id")), &[], None);
            answered.is_ok_and(|answered| answered.json()["epoch"] == 1)
        };
        let was_cut = yard.begin_and_wait(&cut, is_there);
        // Whoever got no answer asks again with the same key, and so has one fork, not two.
        let again = post(&yard.homing).expect("a server");
        assert!(made.is_none_or(|made| made["id"] == again["id"]));
        let fork = text(&again, "id");
        let there = until(&yard.homing, &fork, |session| session["epoch"] == 1 && session["awake"] == false);
        let directory = text(&there, "directory");
        assert_eq!(fs::read_to_string(format!("{directory}/kept.txt")).unwrap(), "changed\n");
        assert_eq!(git(directory.as_ref(), &["status", "--porcelain"]), after);
        assert_eq!(sessions(&yard.homing, &[]).len(), before + 1);
        let said = yard.homing.http().converse(&json!({ "session": fork }), "!recall\n!run pwd");
        assert!(said.contains("hello") && last(&said) == directory, "{said}");
        yard.homing.until_nothing_is_left();
        if !was_cut {
            break;
        }
        cuts += 1;
    }
    kill_points_of("fork", cuts);
    assert_eq!(yard.works_in(), yard.place_text());
    yard.each_turn_ran_in_its_scope();
}

#[test]
fn a_turn_that_is_cut_at_any_run_of_git_has_ended_and_says_what_it_changed() {
    let cut = Cut::new();
    let mut yard = Yard::of(cut.setup());
    let mut cuts = 0;
    for point in points() {
        cut.arm(point.0, point.1, yard.homing.pid());
        // Another change each time, with a new file beside an ignored one: git is not run for a tree that is as before.
        let message =
            yard.say(&format!("!run echo {cuts} > kept.txt; echo {cuts} > new.{cuts}; echo > seen.ignored"));
        let path = format!("/api/v1/messages/{message}");
        let is_over = |yard: &Yard| {
            let answered = yard.homing.http().ask("GET", &path, &[], None);
            answered.is_ok_and(|answered| {
                ["answered", "failed"].contains(&answered.json()["state"].as_str().unwrap_or(""))
            })
        };
        let was_cut = yard.begin_and_wait(&cut, is_over);
        let receipt = yard.homing.http().until_final(&message);
        assert!(receipt["state"] == "answered" || receipt["why"] == "interrupted", "{receipt}");
        // Git runs beside turns, too: what the turn before has made is copied.
        let turn = yard.each_turn_that_began_ran_in_its_scope().ran[&message].turn;
        let changes =
            yard.homing.http().get(&format!("/api/v1/sessions/{}/changes?turn={turn}", yard.session));
        let changes = changes.expect(200);
        assert_eq!(changes["known"], true, "{receipt} {changes}");
        if receipt["state"] == "answered" {
            assert_eq!(yard.read("kept.txt"), format!("{cuts}\n"));
        }
        yard.homing.until_nothing_is_left();
        if !was_cut {
            break;
        }
        cuts += 1;
    }
    kill_points_of("turn and snapshot", cuts);
    yard.git(&["fsck", "--no-dangling"]);
}

#[test]
fn an_answer_to_a_question_counts_once_or_the_question_lapses_with_its_turn() {
    let mut yard = Yard::new();
    let mut answered = 0;
    for moment in moments() {
        let message = yard.say("!ask shell\n!run echo acted >> acted.ignored");
        let approval = eventually("it asks", || {
            let page = yard.homing.http().get("/api/v1/approvals").expect(200);
            page["items"].as_array().unwrap().first().map(|first| text(first, "id"))
        });
        let before = yard.read_or_empty("acted.ignored").lines().count();
        let accepted = yard.cut_after(
            moment,
            "POST",
            &format!("/api/v1/approvals/{approval}"),
            &json!({"answer": "yes"}),
        );
        let receipt = yard.homing.http().until_final(&message);
        let facts = yard.facts();
        let of = |kind: &str| {
            facts.iter().filter(|fact| fact["type"] == kind && fact["approval"] == approval.as_str()).count()
        };
        let (yes, lapsed) = (of("answered"), of("lapsed"));
        assert_eq!(yes + lapsed, 1, "{receipt}: {yes} answers, lapsed {lapsed} times");
        assert!(!accepted || yes == 1, "an answer that was accepted is the answer");
        let acted = yard.read_or_empty("acted.ignored").lines().count() - before;
        assert!(acted <= yes, "it acted {acted} times on {yes} answers");
        assert!(receipt["state"] == "answered" || receipt["why"] == "interrupted", "{receipt}");
        answered += yes;
        yard.homing.until_nothing_is_left();
    }
    println!("{answered} answers came before the end");
    assert_eq!(yard.works_in(), yard.place_text());
}

impl Yard {
    fn read_or_empty(&self, file: &str) -> String {
        fs::read_to_string(self.place.join(file)).unwrap_or_default()
    }
}

#[test]
fn a_worktree_is_removed_and_restored_from_every_run_of_git_and_no_byte_is_lost() {
    let cut = Cut::new();
    let mut yard = Yard::of(cut.setup());
    yard.homing.run(&["scope", "enter", "shed"]).expect(0);
    let directory = text(&yard.now(), "directory");
    let shed = Path::new(&directory).to_owned();
    fs::write(shed.join("kept.txt"), "changed").unwrap();
    fs::write(shed.join("new.txt"), "new").unwrap();
    fs::write(shed.join("x.ignored"), "ignored").unwrap();
    yard.homing.run(&["scope", "exit"]).expect(0);
    let all = everything(&shed);
    let (mut removals, mut restores) = (0, 0);
    for point in points() {
        let removal_cut = yard.cut_worktree(&cut, point, "DELETE", "");
        // It is whole, or can be had back. The next server goes on with it by itself: whoever asks again finds it done.
        yard.worktree("DELETE", "").expect("a server").expect(200);
        assert!(!shed.exists());
        let restore_cut = yard.cut_worktree(&cut, point, "POST", "/restore");
        // So with a restore: it is done again by whoever asks, or was done by the next server a moment before.
        if !yard.has_worktree() {
            let again = yard.worktree("POST", "/restore").expect("a server");
            assert!(again.status == 200 || again.json()["code"] == "taken", "{}", again.text());
        }
        assert!(shed.exists(), "{point:?}: cut {removal_cut} {restore_cut}");
        assert_eq!(everything(&shed), all);
        assert_eq!(git(&shed, &["branch", "--show-current"]), yard.branch_of_shed());
        yard.homing.until_nothing_is_left();
        removals += usize::from(removal_cut);
        restores += usize::from(restore_cut);
        if !removal_cut && !restore_cut {
            break;
        }
    }
    kill_points_of("worktree rm", removals);
    kill_points_of("worktree restore", restores);
    yard.homing.run(&["scope", "enter", "shed"]).expect(0);
    yard.goes_on_in(&directory);
    yard.git(&["fsck", "--no-dangling"]);
}

impl Yard {
    /// The answer to a question about the worktree, if there was an answer.
    fn worktree(&self, method: &str, verb: &str) -> Option<testkit::HttpAnswer> {
        let path = format!("/api/v1/sessions/{}/worktrees/shed{verb}", self.session);
        let body = (method == "POST").then(|| json!({}));
        self.homing.http().ask(method, &path, &[], body.as_ref()).ok()
    }

    /// Asks it with a cut at that run of git; answers whether it was cut, with a new server in place.
    #[track_caller]
    fn cut_worktree(&mut self, cut: &Cut, point: (usize, Orphan), method: &str, verb: &str) -> bool {
        cut.arm(point.0, point.1, self.homing.pid());
        let answered = self.worktree(method, verb);
        let was_cut = self.begin_and_wait(cut, |_| answered.is_some());
        if !was_cut {
            answered.expect("an answer").expect(200);
        }
        was_cut
    }

    /// True if the list has it, whole.
    #[track_caller]
    fn has_worktree(&self) -> bool {
        let list = self.homing.http().get(&format!("/api/v1/worktrees?session={}", self.session)).expect(200);
        let items = list["items"].as_array().unwrap();
        let is_there = items.iter().any(|item| item["name"] == "shed" && item["missing"] == false);
        let removed = list["removed"].as_array().unwrap();
        assert!(is_there || !items.is_empty() || !removed.is_empty(), "nobody knows of it any more: {list}");
        is_there
    }

    #[track_caller]
    fn branch_of_shed(&self) -> String {
        let list = self.homing.http().get(&format!("/api/v1/worktrees?session={}", self.session)).expect(200);
        text(&list["items"][0], "branch")
    }
}

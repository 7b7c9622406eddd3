//! Where and how sessions act: the long story through worktrees and back, and what people type on the way.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use testkit::{Setup, eventually};

use crate::yard::{BACKLOG_MAX, Cut, FIRST, Gate, Yard, git, last, repository, until};
use crate::{EXE, text};

/// Turns that are said at once.
const BATCH: usize = 50;

impl Yard {
    /// So many turns, each of which says where it ran.
    #[track_caller]
    fn batch(&self, turns: usize) {
        let said: Vec<String> = (0..turns).map(|turn| self.say(&format!("turn {turn}\n!run pwd"))).collect();
        for message in said {
            let receipt = self.homing.http().until_final_within(&message, BACKLOG_MAX);
            assert_eq!(receipt["state"], "answered", "{receipt}");
        }
    }

    #[track_caller]
    fn settled(&self, message: &str) -> Value {
        let receipt = self.homing.http().until_final(message);
        assert_eq!(receipt["state"], "answered", "{receipt}");
        receipt
    }

    /// Where a message's turn ran, by what its tool printed.
    #[track_caller]
    fn ran_in(&self, message: &str) -> String {
        last(&text(&self.settled(message), "answer"))
    }
}

#[test]
fn over_200_turns_each_one_runs_where_its_scope_is_and_nothing_is_sent_twice() {
    let yard = Yard::new();
    let home = yard.place_text();
    for _ in 0..2 {
        yard.batch(BATCH);
    }
    // Three follow-ups for here, while a turn runs; then a worktree is asked for.
    let mut gate = yard.gate("gate");
    let running = yard.say(&format!("busy\n!run {} && pwd", gate.wait()));
    yard.until_handed(&running);
    let [here, nowhere, there] =
        ["here", "nowhere", "there"].map(|word| yard.say(&format!("{word}\n!run pwd")));
    yard.change(&json!({"enter": {"name": "shed"}}));
    let late = yard.say("late\n!run pwd");
    assert_eq!(yard.now()["epoch"], FIRST, "a turn runs, so nothing has changed");
    gate.open();
    let shed = text(&yard.until_epoch(1), "directory");
    assert_ne!(shed, home);
    assert_eq!(yard.ran_in(&running), home);
    for message in [&here, &nowhere, &there, &late] {
        yard.is_held(message);
    }
    let after = ["a", "b", "c"].map(|word| yard.say(&format!("{word}\n!run pwd")));
    assert_eq!(after.map(|message| yard.ran_in(&message)), [&shed; 3].map(String::clone));

    // Each of the held ones goes where somebody says.
    yard.homing.run(&["queue", "withdraw", &nowhere]).expect(0);
    yard.homing.run(&["queue", "release", "--here", &here]).expect(0);
    assert_eq!(yard.ran_in(&here), shed);
    yard.homing.run(&["queue", "release", "--there", &there]).expect(0);
    assert_eq!(yard.ran_in(&there), home);
    let back = yard.now();
    assert_eq!((back["epoch"].as_u64(), &back["worktree"]), (Some(2), &Value::Null), "{back}");
    yard.is_held(&late);

    // The same worktree again, by its name; then out of it for good.
    yard.homing.run(&["scope", "enter", "shed"]).expect(0);
    assert_eq!(text(&yard.now(), "directory"), shed);
    for _ in 0..2 {
        yard.batch(BATCH);
    }
    yard.homing.run(&["queue", "release", "--here", &late]).expect(0);
    assert_eq!(yard.ran_in(&late), shed);
    yard.homing.run(&["scope", "exit"]).expect(0);
    assert_eq!(yard.works_in(), home);

    let told = yard.each_turn_ran_in_its_scope();
    let directories: Vec<&String> = told.directories.values().collect();
    assert_eq!(directories, [&home, &shed, &home, &shed, &home]);
    let epochs = [&here, &there, &late].map(|message| told.ran[message].epoch);
    assert_eq!(epochs, [1, 2, 3]);
    assert!(!told.ran.contains_key(&nowhere), "what was withdrawn has no turn");
    assert!(told.ran.len() > 4 * BATCH, "{}", told.ran.len());
    assert_eq!(yard.count("handed"), told.ran.len(), "each turn's words were handed over once");
}

#[test]
fn what_was_next_when_a_change_was_asked_still_runs_in_the_old_scope() {
    let yard = Yard::new();
    let home = yard.place_text();
    // Somebody else works here, so what is said waits although nothing of ours runs.
    let mut gate = yard.gate("gate");
    let other = yard.homing.run(&["send", "--aside", "--json", &format!("!run {}", gate.wait())]).json(0);
    let other_session = text(&other, "session");
    eventually("it works there", || {
        let facts = crate::kill::facts(&yard.homing.http(), &other_session);
        facts.iter().any(|fact| fact["type"] == "handed").then_some(())
    });
    let next = yard.say("next\n!run pwd");
    yard.until(|session| session["waiting"]["session"] == other_session.as_str());
    let later = yard.say("later\n!run pwd");
    yard.change(&json!({"enter": {"name": "shed"}}));
    let shown = yard.homing.run(&["show", &yard.session]);
    assert!(shown.expect(0).contains(&other_session), "who is in the way has a name: {}", shown.out);
    gate.open();
    assert_eq!(yard.ran_in(&next), home);
    let shed = text(&yard.until_epoch(1), "directory");
    yard.is_held(&later);
    let asked = yard.homing.run(&["queue", "release", &later]);
    asked.expect(2);
    assert!(asked.err.contains("--here") && asked.err.contains("--there"), "{}", asked.err);
    yard.is_held(&later);
    yard.homing.run(&["queue", "release", "--here", &later]).expect(0);
    assert_eq!(yard.ran_in(&later), shed);
    yard.each_turn_ran_in_its_scope();
}

#[test]
fn a_worktree_is_entered_changed_shown_undone_and_left() {
    let yard = Yard::new();
    let run = |words: &[&str]| yard.homing.run(words);
    let entered = run(&["scope", "enter", "shed"]);
    let shed = text(&yard.now(), "directory");
    assert!(entered.expect(0).contains(&shed) && entered.out.contains("shed (from"), "{}", entered.out);
    assert_eq!(yard.works_in(), shed);
    let unchanged = run(&["diff"]);
    assert_eq!(unchanged.expect(0), "");
    assert!(unchanged.err.contains("changed no file"), "{}", unchanged.err);

    let turn = turn_of(&yard, "!run printf 'one\\n2\\n' > kept.txt; echo new > new.txt; rm -f gone");
    let changed = run(&["diff", &turn]);
    assert!(changed.expect(0).contains("+2\n") && changed.out.contains("new.txt"), "{}", changed.out);
    let last = run(&["diff"]);
    assert_eq!(last.expect(0), changed.out, "the last turn, if none is named");
    assert!(last.err.contains(&format!("turn {turn}")), "{}", last.err);
    let which = run(&["undo"]);
    which.expect(2);
    assert!(which.err.contains(&format!("homing undo {turn}")), "{}", which.err);
    let stat = run(&["diff", "--stat", &turn]);
    assert_eq!(stat.expect(0).lines().count(), 3, "{}", stat.out);
    let json = run(&["diff", "--json", &turn]).json(0);
    let files: Vec<&Value> = json["files"].as_array().unwrap().iter().map(|file| &file["path"]).collect();
    assert_eq!((&json["known"], files), (&true.into(), vec![&json!("kept.txt"), &json!("new.txt")]));

    // It can be asked what would happen, and nothing does.
    let dry = run(&["undo", &turn, "--dry-run"]);
    let told: Vec<Vec<&str>> = dry.expect(0).lines().map(|line| line.split("  ").collect()).collect();
    assert_eq!(told.len(), 3, "{}", dry.out);
    assert!(dry.out.contains("is restored") && dry.out.contains("is removed"), "{}", dry.out);
    assert!(dry.err.contains("nothing was changed"), "{}", dry.err);
    let dry = run(&["undo", &turn, "--dry-run", "--json"]).json(0);
    let kinds: Vec<&Value> = dry["files"].as_array().unwrap().iter().map(|file| &file["kind"]).collect();
    assert_eq!((&dry["possible"], kinds), (&true.into(), vec![&json!("restored"), &json!("removed")]));
    assert_eq!(fs::read_to_string(Path::new(&shed).join("new.txt")).unwrap(), "new\n");

    // A turn is put back, or nothing is.
    let second = turn_of(&yard, "!run echo three >> kept.txt");
    let refused = run(&["undo", &turn]);
    refused.expect(1);
    assert!(
        refused.err.contains("kept.txt") && refused.err.contains("hint: nothing was changed"),
        "{}",
        refused.err
    );
    let dry = run(&["undo", &turn, "--dry-run"]);
    assert!(dry.expect(0).contains("changed since") && dry.err.contains("would not be undone"), "{dry:?}");
    let problem = run(&["undo", &turn, "--json"]).json(1);
    assert_eq!((&problem["code"], &problem["status"]), (&json!("touched_since"), &json!(409)));
    assert_eq!(problem["touched"], json!({"files": ["kept.txt"], "more": 0}));
    let log = run(&["log"]);
    assert!(!log.expect(0).contains("could not be undone"), "it was refused, not tried: {}", log.out);
    run(&["undo", &second, "--all"]).expect(0);
    // Whoever does it by hand is somebody, too.
    let new = Path::new(&shed).join("new.txt");
    fs::write(&new, "mine\n").unwrap();
    assert_eq!(run(&["undo", &turn, "--json"]).json(1)["touched"], json!({"files": ["new.txt"], "more": 0}));
    assert_eq!(fs::read_to_string(&new).unwrap(), "mine\n");
    fs::write(&new, "new\n").unwrap();
    let undone = run(&["undo", &turn, "--all"]);
    assert!(undone.expect(0).contains("2 files"), "{}", undone.out);
    assert_eq!(git(shed.as_ref(), &["status", "--porcelain"]), "");
    assert_eq!(run(&["undo", "99"]).code, Some(3));

    // A fork has a worktree of its own, with the tree as it was, and remembers.
    let forked = run(&["fork", "--at", &turn]);
    let fork = forked.expect(0).trim().to_owned();
    let there = until(&yard.homing, &fork, |session| session["epoch"] == 1 && session["awake"] == false);
    let place = text(&there, "directory");
    assert!(place != shed && fs::read_to_string(format!("{place}/new.txt")).unwrap() == "new\n");
    let said = run(&["send", "--follow", "--session", &fork, "!recall"]);
    assert!(said.expect(0).contains("hello"), "{}", said.out);
    let shown = run(&["show", &fork]);
    assert!(shown.expect(0).contains(&format!("of {} after turn {turn}", yard.session)), "{}", shown.out);

    let left = run(&["scope", "exit", "--json"]).json(0);
    assert_eq!(text(&left, "directory"), yard.place_text());
    let nothing = run(&["scope", "exit"]);
    nothing.expect(1);
    assert!(nothing.err.contains("hint:"), "{}", nothing.err);
    assert_eq!(run(&["scope", "exit", "--json"]).json(1)["code"], "not_in_worktree");
    // The worktree stays as it is.
    assert_eq!(git(shed.as_ref(), &["status", "--porcelain"]), "");
}

#[test]
fn an_undo_asks_for_what_may_be_somebody_elses_and_is_taken_back() {
    let yard = Yard::new();
    let run = |words: &[&str]| yard.homing.run(words);
    let place = yard.place.clone();
    let secret = place.join("secret");
    fs::write(&secret, "mine\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let mode = || fs::metadata(&secret).unwrap().permissions().mode() & 0o777;
    let old = git(&place, &["rev-parse", "HEAD"]);
    let turn = turn_of(
        &yard,
        "!run rm secret; umask 022; echo theirs > secret; echo more >> kept.txt; \
         git -c user.name=a -c user.email=a@b commit -q -a -m done",
    );
    assert_eq!(mode(), 0o644);
    // The scripted agent does not say which files it changes, so nobody can tell.
    let asked = run(&["undo", &turn]);
    asked.expect(1);
    assert!(asked.err.contains("kept.txt") && asked.err.contains("--all"), "{}", asked.err);
    let problem = run(&["undo", &turn, "--json"]).json(1);
    assert_eq!((&problem["code"], &problem["unsure"]["more"]), (&json!("unsure_changes"), &json!(0)));
    assert_eq!(problem["unsure"]["files"], json!(["kept.txt", "secret"]));
    assert_eq!(fs::read_to_string(&secret).unwrap(), "theirs\n", "nothing was changed");

    let diff = run(&["diff", &turn]);
    let back = format!("git reset --soft {}", &old[..12]);
    assert!(diff.expect(0).contains("+more") && diff.err.contains(&back), "{diff:?}");
    let undone = run(&["undo", &turn, "--only", "secret"]);
    assert!(undone.expect(0).contains("1 file") && undone.out.contains(&back), "{}", undone.out);
    assert_eq!((fs::read_to_string(&secret).unwrap().as_str(), mode()), ("mine\n", 0o600));
    assert!(fs::read_to_string(place.join("kept.txt")).unwrap().contains("more"));

    let redone = run(&["redo"]);
    assert!(redone.expect(0).contains("taken back"), "{}", redone.out);
    assert_eq!((fs::read_to_string(&secret).unwrap().as_str(), mode()), ("theirs\n", 0o644));
    assert_eq!(run(&["redo"]).code, Some(3), "there is no other one");
    run(&["undo", &turn, "--all"]).expect(0);
    assert_eq!((fs::read_to_string(&secret).unwrap().as_str(), mode()), ("mine\n", 0o600));
    fs::write(&secret, "later\n").unwrap();
    let refused = run(&["redo", &turn]);
    refused.expect(1);
    assert!(refused.err.contains("secret") && refused.err.contains("nothing was changed"), "{}", refused.err);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "later\n");
}

/// The number of the turn that did this.
#[track_caller]
fn turn_of(yard: &Yard, words: &str) -> String {
    let message = yard.say(words);
    yard.settled(&message);
    yard.each_turn_ran_in_its_scope().ran[&message].turn.to_string()
}

#[test]
fn what_cannot_be_entered_changes_nothing_and_says_why() {
    let yard = Yard::new();
    let run = |words: &[&str]| yard.homing.run(words);
    let unknown = run(&["scope", "enter", "shed", "--base", "nowhere"]);
    unknown.expect(1);
    assert!(unknown.err.contains("nowhere") && unknown.err.contains("stays as it"), "{}", unknown.err);
    for name in ["../up", "-x", "A", "a b", ""] {
        let refused = run(&["scope", "enter", "--", name]);
        assert!(matches!(refused.code, Some(1 | 2)), "{name}: {refused:?}");
        assert!(refused.err.contains("name"), "{name}: {}", refused.err);
    }
    let session = yard.now();
    assert_eq!((session["epoch"].as_u64(), text(&session, "directory")), (Some(FIRST), yard.place_text()));
    assert_eq!(yard.works_in(), yard.place_text());

    // Outside of a repository there is nothing to enter, to show or to undo, and it is said so.
    let plain = yard.homing.root().join("plain");
    fs::create_dir(&plain).unwrap();
    let elsewhere = |words: &[&str]| yard.homing.run_in(&plain, words);
    elsewhere(&["send", "-f", "!run echo x > x"]).expect(0);
    let refused = elsewhere(&["scope", "enter", "shed"]);
    refused.expect(1);
    assert!(refused.err.contains("git") || refused.err.contains("repository"), "{}", refused.err);
    for verb in ["diff", "undo"] {
        let refused = elsewhere(&[verb, "1"]);
        refused.expect(1);
        assert!(refused.err.contains("version control"), "{verb}: {}", refused.err);
    }
    for more in [&[][..], &["--json"]] {
        let forked = elsewhere(&[&["fork"], more].concat());
        forked.expect(0);
        assert!(forked.err.contains("which both share: it is not under version control"), "{}", forked.err);
    }
    let dry = elsewhere(&["undo", "1", "--dry-run"]);
    assert_eq!(dry.expect(0), "");
    assert!(dry.err.contains("version control"), "{}", dry.err);
}

#[test]
fn a_change_waits_for_the_turn_unless_it_has_to_be_now_and_can_be_given_up() {
    let yard = Yard::new();
    let run = |words: &[&str]| yard.homing.run(words);
    let mut gate = yard.gate("gate");
    let running = yard.say(&format!("!run {}", gate.wait()));
    yard.until_handed(&running);
    let refused = run(&["scope", "set", "--model", "large", "--now"]);
    refused.expect(1);
    assert!(refused.err.contains("hint:"), "{}", refused.err);
    assert_eq!(run(&["scope", "exit", "--now", "--json"]).json(1)["code"], "not_in_worktree");
    assert_eq!(run(&["undo", "1", "--json"]).json(1)["code"], "busy");
    yard.change(&json!({"set": {"model": "large"}}));
    let shown = run(&["show"]);
    assert!(shown.expect(0).contains("homing scope keep"), "{}", shown.out);
    assert_eq!(run(&["scope", "exit", "--json"]).json(1)["code"], "scope_changing");
    run(&["scope", "keep"]).expect(0);
    gate.open();
    yard.settled(&running);
    assert_eq!(yard.now()["epoch"], FIRST);
    let set = run(&["scope", "set", "--model", "large"]);
    assert!(set.expect(0).contains("large"), "{}", set.out);
    run(&["scope", "set", "--model", "large"]).expect(0);
    assert_eq!(yard.now()["epoch"], 1, "what is so already is no change");
    run(&["scope", "set"]).expect(2);
    let unknown = run(&["scope", "set", "--agent", "nobody"]);
    assert!(unknown.code == Some(1) && unknown.err.contains("homing agents"), "{}", unknown.err);
}

#[test]
fn a_missing_directory_is_seen_with_its_reason_and_nothing_runs_elsewhere() {
    let yard = Yard::new();
    let run = |words: &[&str]| yard.homing.run_in(yard.homing.root(), words);
    let (home, moved) = (yard.place_text(), yard.homing.root().canonicalize().unwrap().join("moved"));
    fs::rename(&home, &moved).unwrap();
    let shown = run(&["show", &yard.session]);
    assert!(
        shown.expect(0).contains("missing") && shown.out.contains("homing scope relink"),
        "{}",
        shown.out
    );
    let ready = yard.homing.http().get(&format!("/api/v1/sessions/{}/readiness", yard.session)).expect(200);
    assert_eq!(ready["state"], "blocked");
    // Whoever says something all the same is told; nothing ran, here or at home.
    let said = run(&["send", "--follow", "--session", &yard.session, "!run pwd > ran; pwd"]);
    said.expect(1);
    assert!(said.err.contains(&home) && said.err.contains("homing scope relink"), "{}", said.err);
    for place in [moved.as_path(), &yard.homing.home(), yard.homing.root()] {
        assert!(!place.join("ran").exists(), "it ran in {}", place.display());
    }
    assert!(!fs::exists(&home).unwrap(), "nobody makes a directory that a person has moved");

    let nowhere = run(&["scope", "relink", "--session", &yard.session, "nowhere"]);
    nowhere.expect(1);
    assert!(nowhere.err.contains("nowhere") && nowhere.err.contains("hint:"), "{}", nowhere.err);
    run(&["scope", "relink", "--session", &yard.session, "moved"]).expect(0);
    let ready = run(&["show", &yard.session]);
    assert!(!ready.expect(0).contains("missing"), "{}", ready.out);
    assert_eq!(yard.works_in(), moved.to_str().unwrap());
}

#[test]
fn a_second_session_in_a_directory_waits_and_is_told_for_whom() {
    let yard = Yard::new();
    let mut gate = yard.gate("gate");
    let running = yard.say(&format!("!run {}", gate.wait()));
    yard.until_handed(&running);
    let second = yard.homing.run(&["send", "--aside", "--json", "!run pwd"]).json(0);
    let session = text(&second, "session");
    let shown = eventually("it waits", || {
        let shown = yard.homing.run(&["show", &session]);
        Some(shown.expect(0).to_owned()).filter(|shown| shown.contains(&yard.session))
    });
    assert!(shown.contains("waiting"), "{shown}");
    let ready = yard.homing.http().get(&format!("/api/v1/sessions/{session}/readiness")).expect(200);
    assert_eq!(ready["state"], "waiting", "{ready}");
    gate.open();
    yard.settled(&running);
    let answer = text(&yard.settled(&text(&second, "id")), "answer");
    assert_eq!(last(&answer), yard.place_text());
    // Unless they may share.
    let shared = Yard::of(Setup::new(EXE).config("directories = \"shared\"\n"));
    let gate = shared.gate("gate");
    shared.until_handed(&shared.say(&format!("!run {}", gate.wait())));
    let beside = shared.homing.run(&["send", "--aside", "--follow", "!run pwd"]);
    assert_eq!(last(beside.expect(0)), shared.place_text());
}

#[test]
fn words_go_into_a_turn_or_stop_it_first() {
    let yard = Yard::new();
    let run = |words: &[&str]| yard.homing.run(words);
    let running = yard.say("!ask shell");
    yard.until_handed(&running);
    let steered = run(&["send", "--steer", "--json", "more"]).json(0);
    let approval = eventually("it asks", || {
        let page = run(&["approve", "--json"]).json(0);
        page["items"].as_array().unwrap().first().map(|first| text(first, "id"))
    });
    eventually("the words are there", || {
        let into = |fact: &Value| fact["type"] == "steered" && fact["message"] == steered["id"];
        yard.facts().iter().any(into).then_some(())
    });
    run(&["approve", "yes", &approval]).expect(0);
    let answer = text(&yard.settled(&running), "answer");
    assert!(answer.contains("+more") && answer.contains("shell: allowed"), "{answer}");
    assert_eq!(yard.settled(&text(&steered, "id"))["state"], "answered");

    // Whoever stays is shown the rest of that turn, and goes when it is over.
    let mut gate = yard.gate("gate");
    let running = yard.say(&format!("!run {}", gate.wait()));
    yard.until_handed(&running);
    let number = yard.facts().len();
    let staying = std::thread::scope(|scope| {
        let staying = scope.spawn(|| run(&["send", "--steer", "--follow", "and stay"]));
        eventually("the words are there", || {
            let into = |fact: &Value| fact["type"] == "steered";
            yard.facts()[number..].iter().any(into).then_some(())
        });
        gate.open();
        staying.join().unwrap()
    });
    assert!(staying.expect(0).contains("+and stay"), "{staying:?}");
    assert_eq!(staying.err.matches("goes into turn ").count(), 1, "{}", staying.err);

    // Without a turn under way it waits like any other, and says so.
    let alone = run(&["send", "--steer", "--follow", "alone"]);
    assert!(alone.expect(0).contains("alone"), "{}", alone.out);

    let hanging = yard.say("!hang");
    yard.until_handed(&hanging);
    let waiting = yard.say("waiting");
    let first = run(&["send", "--interrupt", "--follow", "first"]);
    assert!(first.expect(0).contains("first"), "{}", first.out);
    assert_eq!(yard.homing.http().until_final(&hanging)["state"], "stopped");
    yard.settled(&waiting);
    let told = yard.each_turn_ran_in_its_scope();
    assert!(told.ran[&waiting].turn > told.ran[&hanging].turn + 1, "{told:?}");
    run(&["send", "--steer", "--interrupt", "both"]).expect(2);
}

#[test]
fn a_session_that_begins_in_a_worktree_says_nothing_before_it_is_there() {
    let yard = Yard::new();
    let other = yard.homing.root().join("other");
    repository(&other);
    let said = yard.homing.run_in(&other, &["send", "--new", "--follow", "--worktree", "!run pwd"]);
    let ran = last(said.expect(0));
    assert!(ran.contains("worktrees"), "{ran}");
    assert_eq!(git(&other, &["status", "--porcelain"]), "");
    assert_eq!(git(&other, &["worktree", "list"]).lines().count(), 2);
}

#[test]
fn whoever_waits_for_a_change_is_told_when_the_session_ends_first() {
    let yard = Yard::new();
    let gate = yard.gate("gate");
    let running = yard.say(&format!("!run {}", gate.wait()));
    yard.until_handed(&running);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| yard.homing.run(&["scope", "enter", "shed"]));
        eventually("it is asked for", || (yard.count("change_asked") == 1).then_some(()));
        yard.homing.run(&["end", &yard.session]).expect(0);
        let told = waits.join().unwrap();
        assert!(told.code != Some(0) && told.err.contains("has ended"), "{:?} {}", told.code, told.err);
    });
}

#[test]
fn what_is_held_is_listed_with_its_reason_and_what_to_do() {
    let yard = Yard::new();
    let mut gate = yard.gate("gate");
    let running = yard.say(&format!("!run {}", gate.wait()));
    yard.until_handed(&running);
    let held = yard.say("later");
    yard.change(&json!({"set": {"model": "large"}}));
    gate.open();
    yard.until_epoch(1);
    yard.is_held(&held);
    let listed = yard.homing.run(&["queue"]);
    assert!(listed.expect(0).contains("written for another scope"), "{}", listed.out);
    let shown = yard.homing.run(&["show"]);
    assert!(shown.expect(0).contains("--here") && shown.out.contains("--there"), "{}", shown.out);
    let receipt = yard.homing.run(&["show", &held]);
    assert!(receipt.expect(0).contains("homing queue release"), "{}", receipt.out);
    let released = yard.homing.run(&["queue", "release", "--there", "--json", &held]).json(0);
    assert_eq!(released["id"], held.as_str());
    assert_eq!(yard.settled(&held)["state"], "answered");
    assert_eq!(yard.now()["model"], Value::Null, "it went where it was written for");
    let again = yard.homing.run(&["queue", "release", "--here", &held]);
    again.expect(1);
    assert!(again.err.contains("hint:"), "{}", again.err);
}

#[test]
fn what_was_looked_up_in_another_scope_reaches_nobody_and_is_recorded_once() {
    let slow = Cut::new();
    let yard = Yard::of(slow.setup());
    let path = format!("/api/v1/sessions/{}/files", yard.session);
    let look = || {
        let (http, path) = (yard.homing.http(), path.clone());
        std::thread::spawn(move || http.get(&path))
    };
    // Elsewhere, and elsewhere and back: what was asked before belongs to neither.
    for (round, models) in [vec!["large"], vec!["", "large"]].into_iter().enumerate() {
        let epoch = yard.now()["epoch"].as_u64().unwrap();
        let mut gate = yard.gate(&format!("gate{round}"));
        slow.hold("ls-files", &gate);
        let late = [look(), look()];
        eventually("both are being looked up", || (slow.waiting() == 2).then_some(()));
        for model in &models {
            yard.homing.run(&["scope", "set", "--model", model]).expect(0);
        }
        slow.hold_no_more();
        for _ in &late {
            gate.open();
        }
        for late in late {
            assert_eq!(text(&late.join().unwrap().expect(409), "code"), "stale");
        }
        let facts = yard.facts();
        let is_ours = |fact: &&Value| fact["type"] == "stale_errand" && fact["epoch"].as_u64() == Some(epoch);
        let stale: Vec<&Value> = facts.iter().filter(is_ours).map(|fact| &fact["kind"]).collect();
        assert_eq!(stale, ["files"], "recorded once");
        assert_eq!(yard.now()["epoch"].as_u64(), Some(epoch + models.len() as u64));
        let files = look().join().unwrap().expect(200);
        assert_eq!(files["items"], json!([".gitignore", "kept.txt"]));
    }
    assert_eq!(yard.works_in(), yard.place_text());
}

#[test]
fn the_files_of_a_directory_that_is_not_there_are_none_or_refused_with_what_to_do() {
    let yard = Yard::new();
    let http = yard.homing.http();
    let fresh = text(&http.must("POST", "/api/v1/sessions", &[], Some(&json!({}))).expect(201), "id");
    let files = http.get(&format!("/api/v1/sessions/{fresh}/files")).expect(200);
    assert_eq!(files["items"], json!([]), "its own directory is made when it is first needed");

    std::fs::rename(&yard.place, yard.place.with_extension("moved")).unwrap();
    let no = http.get(&format!("/api/v1/sessions/{}/files", yard.session)).expect(409);
    assert_eq!(no["code"], "bad_directory");
    assert!(text(&no, "detail").contains("homing scope relink"), "{no}");
}

#[test]
fn lists_that_an_agent_gives_too_late_reach_nobody_who_asked_in_another_scope() {
    let place = tempfile::tempdir().unwrap();
    let pipe = place.path().join("lists");
    let setup = Setup::new(EXE).variable("HOMING_SCRIPTED_LISTS_AT", pipe.to_str().unwrap());
    let yard = Yard::of(setup.config("[limits]\ncommands_wait = \"10m\"\n"));
    let look = |what: &str| {
        let (http, path) = (yard.homing.http(), format!("/api/v1/sessions/{}/{what}", yard.session));
        std::thread::spawn(move || http.get(&path))
    };
    let both = ["commands", "models"];
    for changes in [vec!["large"], vec!["large", "small"]] {
        // Whoever asks in a scope whose agent has not listed anything yet waits for it; two of each.
        yard.homing.run(&["scope", "set", "--model", "small"]).expect(0);
        let epoch = yard.now()["epoch"].as_u64().unwrap();
        let mut gate = Gate::at(&pipe);
        let never = yard.say("never handed over");
        eventually("its agent is being started", || {
            let started = |fact: &Value| {
                fact["type"] == "attempt_started" && fact["fence"]["epoch"].as_u64() == Some(epoch)
            };
            yard.facts().iter().any(started).then_some(())
        });
        let late: Vec<_> = both.iter().chain(&both).map(|what| look(what)).collect();
        eventually("all of them wait", || {
            let figures = yard.homing.http().get("/metrics").text();
            figures.contains("homing_lists_awaited 4\n").then_some(())
        });
        // Elsewhere, or elsewhere and back, before the agent has said anything; then it lists, there.
        yard.homing.run(&["stop"]).expect(0);
        assert_eq!(yard.homing.http().until_final(&never)["state"], "stopped");
        for model in &changes {
            yard.homing.run(&["scope", "set", "--model", model]).expect(0);
        }
        let next = yard.say("next");
        gate.open();
        yard.settled(&next);
        for late in late {
            assert_eq!(text(&late.join().unwrap().expect(409), "code"), "stale");
        }
        let facts = yard.facts();
        let is_ours = |fact: &&Value| fact["type"] == "stale_errand" && fact["epoch"].as_u64() == Some(epoch);
        let mut stale: Vec<String> = facts.iter().filter(is_ours).map(|fact| text(fact, "kind")).collect();
        stale.sort();
        assert_eq!(stale, both, "each is recorded once");
        let learned = |fact: &&Value| fact["type"] == "learned" && fact["epoch"].as_u64() == Some(epoch);
        assert_eq!(facts.iter().filter(learned).count(), 0, "nothing was learned of a scope that is over");
        // What was listed in the scope of now is there at once.
        fs::remove_file(&pipe).unwrap();
        for what in both {
            let listed = look(what).join().unwrap().expect(200);
            assert_eq!(listed["items"].as_array().unwrap().len(), 2, "{listed}");
        }
    }
}

#[test]
fn an_undo_and_what_a_turn_changed_belong_to_the_scope_they_began_in() {
    let slow = Cut::new();
    let yard = Yard::of(slow.setup());
    let undo_under = |turn: &str, under: Option<u64>| {
        let body = json!({ "turn": turn.parse::<u64>().unwrap(), "under": under, "all": true });
        yard.homing.http().post(&format!("/api/v1/sessions/{}/undo", yard.session), &body)
    };
    let undo = |turn: &str| undo_under(turn, None);
    let changes = |turn: &str| {
        let path = format!("/api/v1/sessions/{}/changes?turn={turn}", yard.session);
        yard.homing.http().get(&path).expect(200)
    };
    // What a turn changed is looked at late, and a change of scope waits for it.
    let mut gate = yard.gate("after");
    let mut before = yard.gate("before");
    let message = yard.say(&format!("!run echo three >> kept.txt; {}", before.wait()));
    yard.until_handed(&message);
    slow.hold("diff-tree", &gate);
    yard.change(&json!({"set": {"model": "large"}}));
    before.open();
    eventually("git is asked what has changed", || (slow.waiting() > 0).then_some(()));
    assert_eq!(yard.now()["epoch"], FIRST, "nothing changes under it");
    slow.hold_no_more();
    for _ in 0..slow.waiting() {
        gate.open();
    }
    yard.until_epoch(1);
    let turn = yard.each_turn_ran_in_its_scope().ran[&message].turn.to_string();
    let seen = changes(&turn);
    assert_eq!((&seen["known"], &seen["files"][0]["path"]), (&true.into(), &"kept.txt".into()), "{seen}");

    // It stays what that turn has changed, wherever the session goes. Whoever has seen another scope undoes nothing, though
    // the session is back in the same.
    for model in ["", "large", ""] {
        let epoch = yard.now()["epoch"].as_u64();
        yard.homing.run(&["scope", "set", "--model", model]).expect(0);
        assert_eq!(changes(&turn), seen);
        assert_eq!(text(&undo_under(&turn, epoch).expect(409), "code"), "other_scope");
        assert!(yard.read("kept.txt").ends_with("three\n"));
    }
    // Elsewhere it cannot be undone; back where it was done it can, whatever has happened to the scope meanwhile.
    yard.homing.run(&["scope", "enter", "blue"]).expect(0);
    assert_eq!(text(&undo(&turn).expect(409), "code"), "other_scope");
    yard.homing.run(&["scope", "exit"]).expect(0);
    yard.homing.run(&["undo", &turn, "--all"]).expect(0);
    assert!(!yard.read("kept.txt").contains("three"));
    let turn = turn_of(&yard, "!run echo three >> kept.txt");
    assert!(yard.read("kept.txt").ends_with("three\n"), "turn {turn}");

    // An undo that takes long ends in the scope it began in; a change waits for it.
    let second = turn_of(&yard, "!run echo four >> kept.txt");
    let epoch = yard.now()["epoch"].as_u64().unwrap();
    slow.hold("read-tree", &gate);
    undo(&second).expect(200);
    eventually("git is at it", || (slow.waiting() > 0).then_some(()));
    yard.change(&json!({"set": {"model": "large"}}));
    assert_eq!(yard.now()["epoch"].as_u64(), Some(epoch));
    slow.hold_no_more();
    for _ in 0..slow.waiting() {
        gate.open();
    }
    yard.until_epoch(epoch + 1);
    let facts = yard.facts();
    let at = |kind: &str| facts.iter().rposition(|fact| fact["type"] == kind);
    assert!(at("undone").is_some() && at("undone") < at("scope_changed"), "{facts:?}");
    assert!(yard.read("kept.txt").ends_with("three\n"), "and is done once");
    assert_eq!(yard.count("undone"), 2);
}

#[test]
fn what_waits_behind_a_failure_is_held_unless_the_agents_table_says_otherwise() {
    let state_behind = |config: &str| {
        let yard = Yard::of(Setup::new(EXE).config(config));
        let mut gate = yard.gate("gate");
        let failing = yard.say(&format!("busy\n!run {}\n!refuse", gate.wait()));
        yard.until_handed(&failing);
        let next = yard.say("next");
        // What is said after a failure waits behind nothing.
        eventually("it waits behind the turn", || {
            let is_next = |fact: &Value| fact["type"] == "queued" && fact["message"] == next.as_str();
            yard.facts().iter().any(is_next).then_some(())
        });
        let waiting = format!("/api/v1/messages/{next}");
        gate.open();
        assert_eq!(yard.homing.http().until_final(&failing)["state"], "failed");
        eventually("it is held or answered", || {
            let state = text(&yard.homing.http().get(&waiting).expect(200), "state");
            Some(state).filter(|state| state == "held" || state == "answered")
        })
    };
    assert_eq!(state_behind(""), "held");
    assert_eq!(state_behind("[agents.scripted]\nafter_failure = \"go_on\"\n"), "answered");
    let otherwise = "[agents.scripted]\nafter_failure = \"hold\"\n[policy]\nafter_failure = \"go_on\"\n";
    assert_eq!(state_behind(otherwise), "held");
}

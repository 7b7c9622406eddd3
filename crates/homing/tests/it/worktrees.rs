//! A worktree's whole life with the real git and a real `sh`: set up, worked in behind the wall, left, removed with
//! everything that was never committed, and had back.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use testkit::{Setup, eventually};

use crate::text;
use crate::yard::{Yard, git};

const SCRIPTS: &str = "[agents.scripted.worktree]\n\
    setup = \"echo set up in $(basename $PWD); echo made > made.ignored\"\n\
    teardown = \"echo torn down; rm -f made.ignored\"\n";

/// Everything below a directory but git's own file: what it is, its mode, and its bytes or where it leads.
fn everything(root: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut left = vec![root.to_path_buf()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).unwrap().map(Result::unwrap) {
            let (path, about) = (entry.path(), entry.metadata().unwrap());
            let bytes = match (about.is_dir(), about.is_symlink()) {
                (true, _) => Vec::new(),
                (_, true) => fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(),
                _ if path == root.join(".git") => Vec::new(),
                _ => fs::read(&path).unwrap(),
            };
            found.insert(path.strip_prefix(root).unwrap().to_owned(), (about.permissions().mode(), bytes));
            if about.is_dir() {
                left.push(path);
            }
        }
    }
    found
}

fn make_a_mess(root: &Path) {
    fs::write(root.join("kept.txt"), "one\nchanged\n").unwrap();
    fs::write(root.join("staged"), "staged").unwrap();
    git(root, &["add", "staged"]);
    fs::create_dir_all(root.join("new \u{fc}/deep/empty")).unwrap();
    fs::write(root.join("new \u{fc}/deep/-file"), [0, 159, 146, 150]).unwrap();
    fs::write(root.join("build.ignored"), "built").unwrap();
    fs::write(root.join("run"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(root.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("/etc/hostname", root.join("link")).unwrap();
    fs::write(root.join("committed"), "committed").unwrap();
    git(root, &["add", "committed"]);
    git(root, &["commit", "-q", "-m", "never pushed", "committed"]);
}

fn scripts_said(yard: &Yard) -> Vec<(String, String)> {
    let facts = yard.facts();
    let scripts = facts.iter().filter(|fact| fact["type"] == "script");
    scripts.map(|fact| (text(fact, "stage"), text(fact, "output"))).collect()
}

#[test]
fn a_worktree_is_set_up_worked_in_removed_and_had_back_to_the_last_byte() {
    let yard = Yard::of(Setup::new(crate::EXE).config(SCRIPTS));
    yard.homing.run(&["scope", "enter", "blue"]).expect(0);
    let root = PathBuf::from(text(&yard.now(), "directory"));
    let named = root.file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(scripts_said(&yard), [("setup".to_owned(), format!("set up in {named}\n"))]);
    // Behind the wall the agent has its own worktree, git included, and nothing beside it.
    let data = yard.homing.data();
    let said = yard.ask(&format!(
        "!run cat made.ignored; git log -1 --format=%s; ls {}; cat {}/token; echo over",
        data.join("worktrees").display(),
        data.display()
    ));
    assert!(said.contains("made") && said.contains("first") && said.contains("over"), "{said}");
    let token = fs::read_to_string(data.join("token")).unwrap();
    assert!(!said.contains(token.trim()), "{said}");
    make_a_mess(&root);
    let http = yard.homing.http();
    let at = format!("/api/v1/sessions/{}/worktrees/blue", yard.session);
    let no = http.must("DELETE", &at, &[], None);
    assert_eq!(no.expect(409)["code"], "in_worktree");
    let files = yard.homing.run(&["scope", "files"]);
    assert!(
        files.expect(0).contains("new \u{fc}/deep/-file") && !files.out.contains("ignored"),
        "{}",
        files.out
    );

    yard.homing.run(&["scope", "exit"]).expect(0);
    let listed = yard.homing.run(&["worktree", "ls", "--look", "--json"]).json(0);
    let tree = &listed["items"][0];
    assert_eq!((&tree["name"], &tree["in_use"], &tree["ahead"]), (&"blue".into(), &false.into(), &1.into()));
    assert!(tree["dirty"].as_u64().unwrap() >= 4 && tree["bytes"].as_u64().unwrap() > 0, "{tree}");
    let nothing = yard.homing.run(&["worktree", "gc", "--dry-run", "--json"]).json(0);
    assert_eq!(nothing["items"], json!([]), "it was used just now");

    let mut before = everything(&root);
    before.remove(Path::new("made.ignored")); // The teardown takes it away.
    let removed = yard.homing.run(&["worktree", "rm", "blue", "--json"]).json(0);
    assert!(!root.exists());
    assert_eq!(scripts_said(&yard)[1], ("teardown".to_owned(), "torn down\n".to_owned()));
    let told: Vec<Value> = yard.facts().into_iter().filter(|fact| fact["type"] == "worktree").collect();
    assert_eq!((&told[0]["change"], &told[0]["reference"]), (&"removed".into(), &removed["reference"]));
    let store = fs::read_dir(yard.homing.data().join("git/snapshots")).unwrap().next().unwrap().unwrap();
    git(&store.path(), &["rev-parse", "--verify", &text(&removed, "reference")]);
    assert_eq!(git(&yard.place, &["for-each-ref", "refs/homing"]), "");
    let log = yard.homing.run(&["log"]);
    assert!(log.expect(0).contains("worktree blue was removed"), "{}", log.out);

    let restored = yard.homing.run(&["worktree", "restore", "blue", "--json"]).json(0);
    assert_eq!(text(&restored, "directory"), root.to_str().unwrap());
    assert_eq!(everything(&root), before);
    assert_eq!(git(&root, &["diff", "--cached", "--name-only"]), "staged");
    assert_eq!(git(&root, &["log", "-1", "--format=%s"]), "never pushed");
    yard.homing.run(&["scope", "enter", "blue"]).expect(0);
    assert!(yard.ask("!run cat kept.txt").contains("changed"), "and the session works in it again");
}

#[test]
fn a_worktree_deleted_by_hand_is_entered_removed_and_had_back() {
    let yard = Yard::new();
    yard.homing.run(&["scope", "enter", "blue"]).expect(0);
    let root = PathBuf::from(text(&yard.now(), "directory"));
    yard.ask("!run echo changed > kept.txt; echo new > new.txt; git add new.txt; chmod 600 new.txt");
    let before = everything(&root);
    let is_whole = || {
        assert_eq!(everything(&root), before);
        assert_eq!(git(&root, &["diff", "--cached", "--name-only"]), "new.txt");
    };
    // While its session is in it, nothing is begun there; it is had back without ever having been removed.
    fs::remove_dir_all(&root).unwrap();
    let refused = yard.homing.http().until_final(&yard.say("!run pwd"));
    assert!(text(&refused, "notice").contains("homing worktree restore NAME"), "{refused}");
    let restored = yard.homing.run(&["worktree", "restore", "blue", "--json"]).json(0);
    assert_eq!(
        (text(&restored, "directory"), &restored["missing"]),
        (root.display().to_string(), &json!(false))
    );
    is_whole();
    let log = yard.homing.run(&["log"]);
    assert!(log.expect(0).contains("worktree blue had been deleted, and was made again"), "{}", log.out);
    assert!(log.out.contains("as it was when it was last recorded"), "{}", log.out);
    assert!(yard.ask("!run cat kept.txt").contains("changed"), "the session works in it again");

    // Deleted with git's own files for it and its branch, it is entered again.
    yard.homing.run(&["scope", "exit"]).expect(0);
    let branch = git(&root, &["branch", "--show-current"]);
    fs::remove_dir_all(&root).unwrap();
    git(&yard.place, &["worktree", "unlock", root.to_str().unwrap()]);
    git(&yard.place, &["worktree", "prune"]);
    git(&yard.place, &["branch", "-q", "-D", &branch]);
    yard.homing.run(&["scope", "enter", "blue"]).expect(0);
    is_whole();
    assert_eq!(git(&root, &["branch", "--show-current"]), branch);

    // Removed after it was deleted, it is kept whole.
    yard.homing.run(&["scope", "exit"]).expect(0);
    fs::remove_dir_all(&root).unwrap();
    yard.homing.run(&["worktree", "rm", "blue"]).expect(0);
    assert!(!root.exists());
    yard.homing.run(&["worktree", "restore", "blue"]).expect(0);
    is_whole();
}

#[test]
fn the_work_of_a_worktree_is_merged_or_applied_or_everything_stays_as_it_was() {
    let yard = Yard::new();
    let run = |words: &[&str]| yard.homing.run(&[&["worktree"], words].concat());
    yard.homing.run(&["scope", "enter", "blue"]).expect(0);
    yard.ask("!run echo changed > kept.txt; echo new > new.txt");
    // Not committed: a merge says so, and an apply takes it along.
    let refused = run(&["merge", "blue"]);
    refused.expect(1);
    assert!(refused.err.contains("new.txt") && refused.err.contains("apply"), "{}", refused.err);
    let http = yard.homing.http();
    let at = format!("/api/v1/sessions/{}/worktrees/blue", yard.session);
    let problem = http.post(&format!("{at}/merge"), &json!({})).expect(409);
    assert_eq!(
        (&problem["code"], &problem["in_the_way"]["files"]),
        (&json!("uncommitted"), &json!(["kept.txt", "new.txt"]))
    );
    let dry = run(&["apply", "blue", "--dry-run"]);
    assert_eq!(dry.expect(0), "kept.txt\nnew.txt\n");
    assert!(!yard.place.join("new.txt").exists(), "only looked at");
    let (head, kept) =
        (git(&yard.place, &["rev-parse", "HEAD"]), fs::read(yard.place.join("kept.txt")).unwrap());
    let applied = run(&["apply", "blue", "--json"]).json(0);
    assert_eq!(
        (&applied["files"], text(&applied, "into")),
        (&json!(["kept.txt", "new.txt"]), yard.place_text())
    );
    assert_eq!(git(&yard.place, &["status", "--porcelain"]), " M kept.txt\n?? new.txt");
    assert_eq!(git(&yard.place, &["rev-parse", "HEAD"]), head);
    let told: Vec<Value> = yard.facts().into_iter().filter(|fact| fact["type"] == "worktree").collect();
    assert_eq!(told[0]["change"], "applied");
    assert!(text(&told[0], "reference").starts_with("refs/homing/"), "{told:?}");

    // The words of the answer take it back, and lose nothing.
    let taken_back = Command::new("sh").args(["-c", &text(&applied, "take_back")]).status();
    assert!(taken_back.unwrap().success(), "{applied}");
    assert_eq!(git(&yard.place, &["status", "--porcelain"]), "");
    assert_eq!(
        (fs::read(yard.place.join("kept.txt")).unwrap(), yard.place.join("new.txt").exists()),
        (kept, false)
    );
    git(&yard.place, &["stash", "pop", "-q"]);
    assert_eq!(git(&yard.place, &["status", "--porcelain"]), " M kept.txt\n?? new.txt");

    // Committed there: what is changed here is in the way, and then it is merged.
    yard.ask("!run git add -A; git -c user.name=a -c user.email=a@b commit -q -m work");
    fs::write(yard.place.join("kept.txt"), "mine").unwrap();
    let problem = http.post(&format!("{at}/merge"), &json!({})).expect(409);
    assert_eq!(problem["code"], "target_changed", "{problem}");
    git(&yard.place, &["checkout", "-q", "--", "."]);
    fs::remove_file(yard.place.join("new.txt")).unwrap();
    let merged = run(&["merge", "blue"]);
    assert_eq!(merged.expect(0), "kept.txt\nnew.txt\n");
    assert!(merged.err.contains(&format!("reset --keep {head}")), "{}", merged.err);
    assert_eq!(git(&yard.place, &["status", "--porcelain"]), "");
    assert_eq!(git(&yard.place, &["log", "-1", "--format=%s"]), "work");
    let again = run(&["merge", "blue"]);
    assert_eq!(again.expect(0), "");
    assert!(again.err.contains("has everything of blue"), "{}", again.err);

    // Changed on both sides.
    fs::write(yard.place.join("kept.txt"), "here").unwrap();
    git(&yard.place, &["commit", "-q", "-a", "-m", "here"]);
    yard.ask("!run echo there > kept.txt");
    for verb in ["apply", "merge"] {
        let (before, expected) =
            (everything(&yard.place), if verb == "apply" { "merge_conflicts" } else { "uncommitted" });
        let problem = http.post(&format!("{at}/{verb}"), &json!({})).expect(409);
        assert_eq!(
            (&problem["code"], &problem["in_the_way"]["files"]),
            (&json!(expected), &json!(["kept.txt"]))
        );
        assert_eq!(everything(&yard.place), before);
    }
    assert_eq!(
        http.post(&format!("{}/none/merge", at.trim_end_matches("/blue")), &json!({})).expect(404)["code"],
        "not_found"
    );
}

/// The list of everything starts nothing: it shows what was recorded after a turn or a look, and says when that was.
#[test]
fn a_list_shows_what_was_last_recorded_and_that_of_one_session_what_is_there() {
    let yard = Yard::new();
    yard.homing.run(&["scope", "enter", "blue"]).expect(0);
    let root = PathBuf::from(text(&yard.now(), "directory"));
    yard.ask("!run echo one > one.txt");
    let http = yard.homing.http();
    let list = |which: &str| http.get(&format!("/api/v1/worktrees{which}")).expect(200)["items"][0].clone();
    let recorded = eventually("it is recorded", || Some(list("")).filter(|tree| tree["dirty"] == 1));
    fs::write(root.join("two.txt"), "by hand").unwrap();
    assert_eq!(list(""), recorded, "nobody looks");
    let now = list(&format!("?session={}", yard.session));
    assert_eq!(now["dirty"], 2, "{now}");
    assert_eq!(list(""), now, "whoever looks records it");
    fs::rename(&root, root.with_extension("away")).unwrap();
    assert_eq!(list("")["missing"], true, "its name is not there any more");
    fs::rename(root.with_extension("away"), &root).unwrap();
}

#[test]
fn what_was_written_for_a_worktree_that_is_gone_stays_held_until_it_is_back() {
    let yard = Yard::new();
    yard.homing.run(&["scope", "enter", "shed"]).expect(0);
    let shed = text(&yard.now(), "directory");
    let mut gate = yard.gate("gate");
    let running = yard.say(&format!("busy\n!run {}", gate.wait()));
    yard.until_handed(&running);
    let there = yard.say("there\n!run pwd");
    yard.change(&json!({"exit": true}));
    gate.open();
    yard.until_epoch(2);
    yard.is_held(&there);
    yard.homing.run(&["worktree", "rm", "shed"]).expect(0);

    let refused = yard.homing.run(&["queue", "release", "--there", &there]);
    assert_ne!(refused.code, Some(0), "{}", refused.err);
    assert!(refused.err.contains("homing worktree restore shed"), "{}", refused.err);
    yard.is_held(&there);
    assert_eq!(yard.now()["epoch"], 2, "the session is where it was");

    yard.homing.run(&["worktree", "restore", "shed"]).expect(0);
    yard.homing.run(&["queue", "release", "--there", &there]).expect(0);
    assert!(text(&yard.homing.http().until_final(&there), "answer").contains(&shed));
    assert_eq!(text(&yard.now(), "directory"), shed);
}

#[test]
fn what_takes_too_much_room_is_collected_and_a_dry_run_says_so_first() {
    let yard = Yard::of(Setup::new(crate::EXE).config("[worktrees]\ndisk_max = \"1B\"\nevery = \"0s\"\n"));
    yard.homing.run(&["scope", "enter", "blue"]).expect(0);
    let root = PathBuf::from(text(&yard.now(), "directory"));
    fs::write(root.join("work"), "never committed").unwrap();
    let due = |dry: &[&str]| yard.homing.run(&[&["worktree", "gc", "--json"], dry].concat()).json(0);
    assert_eq!(due(&[])["items"], json!([]), "somebody is in it");
    yard.homing.run(&["end", &yard.session]).expect(0);
    let dry = due(&["--dry-run"]);
    assert_eq!((&dry["items"][0]["name"], &dry["items"][0]["why"]), (&"blue".into(), &"disk".into()));
    assert!(root.join("work").exists(), "nothing went");
    let gone = due(&[]);
    assert!(gone["items"][0]["reference"].as_str().unwrap().starts_with("refs/homing/"), "{gone}");
    assert!(!root.exists());
    yard.homing.run(&["worktree", "restore", "blue"]).expect(0);
    assert_eq!(fs::read_to_string(root.join("work")).unwrap(), "never committed");
}

#[test]
fn a_fork_has_a_worktree_of_its_own_with_the_tree_as_it_was_after_that_turn() {
    let yard = Yard::new();
    yard.ask("!run echo after-two > kept.txt; echo new > untracked");
    let turn = yard.facts().iter().filter(|fact| fact["type"] == "turn_ended").count();
    yard.ask("!run echo after-three > kept.txt; rm untracked");
    let at = turn.to_string();
    let made = yard.homing.run(&["fork", &yard.session, "--at", &at, "--json"]).json(0);
    let fork = text(&made, "id");
    let now = crate::yard::until(&yard.homing, &fork, |session| session["epoch"].as_u64() == Some(1));
    let root = PathBuf::from(text(&now, "directory"));
    assert_ne!(root, yard.place);
    assert_eq!(fs::read_to_string(root.join("kept.txt")).unwrap(), "after-two\n");
    assert_eq!(fs::read_to_string(root.join("untracked")).unwrap(), "new\n");
    // On a branch of its own, at the commit of then, with nothing committed.
    let branch = git(&root, &["branch", "--show-current"]);
    assert!(branch.starts_with("homing/"), "{branch}");
    assert_eq!(git(&root, &["rev-parse", "HEAD"]), git(&yard.place, &["rev-parse", "main"]));
    assert_eq!(fs::read_to_string(yard.place.join("kept.txt")).unwrap(), "after-three\n");
    let said = yard.homing.http().converse(&json!({ "session": fork }), "!run cat kept.txt; pwd");
    assert!(said.contains("after-two") && said.contains(root.to_str().unwrap()), "{said}");
}

/// A teardown that takes as long as it likes holds a removal: nobody's request waits for it, and the same key is told its end, also by
/// the server after the one that was killed.
#[test]
fn a_removal_that_takes_long_goes_on_without_requests_and_over_a_kill_and_its_key_has_the_end() {
    let config = "[limits]\nverdict_wait = \"200ms\"\n[agents.scripted.worktree]\n\
        teardown = \"echo at it; until [ -e open ]; do sleep 0.05; done\"\n";
    let mut yard = Yard::of(Setup::new(crate::EXE).config(config));
    yard.homing.run(&["scope", "enter", "blue"]).expect(0);
    let root = PathBuf::from(text(&yard.now(), "directory"));
    yard.homing.run(&["scope", "exit"]).expect(0);
    let at = format!("/api/v1/sessions/{}/worktrees/blue", yard.session);
    let remove =
        |yard: &Yard, key: &str| yard.homing.http().must("DELETE", &at, &[("Idempotency-Key", key)], None);
    let shown = |yard: &Yard| {
        let session = remove(yard, "one").expect(202);
        assert_eq!(text(&session, "id"), yard.session);
        session["progress"].clone()
    };
    let is_at_it = |yard: &Yard| {
        let progress =
            eventually("it runs", || Some(shown(yard)).filter(|shown| shown["phase"] == "teardown"));
        assert_eq!((&progress["verb"], &progress["subject"]), (&json!("remove"), &json!("blue")));
    };
    is_at_it(&yard);
    // A stop does not wait behind it.
    let said = yard.say("hello");
    let stopped = yard.homing.http().post(&format!("/api/v1/messages/{said}/stop"), &json!({}));
    assert_eq!(stopped.expect(200)["state"], "withdrawn");
    assert_eq!(remove(&yard, "one").expect(202)["progress"]["phase"], "teardown");
    let watching = |yard: &Yard| {
        let mut command = yard.homing.command();
        command.args(["worktree", "rm", "blue", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    // Whoever has asked and presses Ctrl-C has only stopped watching.
    let left = watching(&yard);
    let asked = || yard.homing.run(&["audit", "--jsonl"]).expect(0).matches("\"remove_worktree\"").count();
    eventually("it has asked", || (asked() == 2).then_some(()));
    let pid = rustix::process::Pid::from_raw(i32::try_from(left.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let left = left.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&left.stderr);
    assert!(left.status.code() == Some(130) && said.contains("it goes on without you"), "{left:?}");
    yard.homing.kill9();
    yard.homing.restart();
    is_at_it(&yard);
    let watching = watching(&yard);
    fs::write(root.join("open"), "").unwrap();
    let watched = watching.wait_with_output().unwrap();
    let removed = remove(&yard, "one").expect(200);
    assert!(watched.status.success() && watched.stderr.is_empty(), "nothing but the end: {watched:?}");
    let told: Value = serde_json::from_slice(&watched.stdout).unwrap();
    assert_eq!((&told["reference"], root.exists()), (&removed["reference"], false));
    assert_eq!(remove(&yard, "two").expect(200)["reference"], removed["reference"]);
    assert_eq!(yard.now().get("progress"), None, "nothing goes on any more");
}

/// A server whose git writes no tree of files until a file `open` is there, in a place that has to be kept.
fn with_slow_git(config: &str) -> (Yard, tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let (open, slow) = (place.path().join("open"), place.path().join("git"));
    let path = std::env::var("PATH").unwrap();
    let script = format!(
        "#!/bin/sh\nPATH='{path}'\ncase \"$*\" in *read-tree*) until [ -e '{}' ]; do sleep 0.05; done ;; esac\n\
         exec git \"$@\"\n",
        open.display()
    );
    fs::write(&slow, script).unwrap();
    fs::set_permissions(&slow, fs::Permissions::from_mode(0o755)).unwrap();
    let setup = Setup::new(crate::EXE).config(config);
    let setup = setup.variable("PATH", &format!("{}:{path}", place.path().display()));
    (Yard::of(setup), place, open)
}

/// From git through the worker, the keeper and the cluster to whoever looks or watches.
#[test]
fn whoever_looks_sees_how_far_an_entering_is_while_git_writes_the_files() {
    let (yard, _place, open) = with_slow_git("");
    yard.change(&json!({"enter": {"name": "blue"}}));
    let shown = yard.until(|session| session["progress"]["phase"] == "checking_out")["progress"].clone();
    assert_eq!((&shown["verb"], &shown["subject"]), (&json!("enter"), &json!("blue")));
    // It goes on, and so do the words.
    yard.until(|session| session["progress"]["bytes"].as_u64() > shown["bytes"].as_u64());
    fs::write(&open, "").unwrap();
    assert_eq!(yard.until_epoch(1).get("progress"), None);
}

/// Nobody's request waits for it, and the same key is told how far it is, and its end.
#[test]
fn whoever_looks_sees_how_far_a_restoring_is_and_its_key_has_the_end() {
    let (yard, _place, open) = with_slow_git("[limits]\nverdict_wait = \"200ms\"\n");
    fs::write(&open, "").unwrap();
    yard.homing.run(&["scope", "enter", "blue"]).expect(0);
    let root = PathBuf::from(text(&yard.now(), "directory"));
    fs::write(root.join("work"), "never committed").unwrap();
    yard.homing.run(&["scope", "exit"]).expect(0);
    yard.homing.run(&["worktree", "rm", "blue"]).expect(0);
    assert!(!root.exists());
    fs::remove_file(&open).unwrap();
    let at = format!("/api/v1/sessions/{}/worktrees/blue/restore", yard.session);
    let restore = || yard.homing.http().must("POST", &at, &[("Idempotency-Key", "one")], Some(&json!({})));
    let session = restore().expect(202);
    assert_eq!(text(&session, "id"), yard.session);
    let shown = yard.until(|session| session["progress"]["phase"] == "checking_out")["progress"].clone();
    assert_eq!((&shown["verb"], &shown["subject"]), (&json!("restore"), &json!("blue")));
    assert_eq!(restore().expect(202)["progress"]["verb"], "restore");
    fs::write(&open, "").unwrap();
    eventually("it is restored", || (restore().status == 200).then_some(()));
    assert_eq!(fs::read_to_string(root.join("work")).unwrap(), "never committed");
    assert_eq!(yard.now().get("progress"), None, "nothing goes on any more");
}

#[test]
fn a_worktree_that_takes_more_than_is_left_is_not_made_and_leaves_nothing() {
    let limits = "[limits]\nworktree_bytes_per_person_max = \"16MiB\"\n";
    let yard = Yard::of(Setup::new(crate::EXE).config(limits));
    let mut large = fs::File::create(yard.place.join("large")).unwrap();
    // Of zeros git makes a hole, which takes no room.
    io::copy(&mut io::repeat(b'x').take(256 << 20), &mut large).unwrap();
    yard.git(&["add", "large"]);
    yard.git(&["commit", "-q", "-m", "large"]);
    let branches = yard.git(&["branch", "-a"]);
    yard.change(&json!({ "enter": { "name": "blue" } }));
    eventually("it is told", || {
        let facts = yard.facts();
        let mut told = facts.iter().filter(|fact| fact["type"] == "notice").map(|fact| text(fact, "text"));
        told.any(|text| text.contains("limits.worktree_bytes_per_person_max")).then_some(())
    });
    assert_eq!(yard.git(&["branch", "-a"]), branches);
    assert!(
        !yard.place.join(".git/worktrees").exists()
            || names_below(&yard.place.join(".git/worktrees")).is_empty()
    );
    let of = yard.homing.data().join("worktrees/of");
    let left: Vec<_> = names_below(&of).into_iter().flat_map(|session| names_below(&session)).collect();
    assert!(left.iter().all(|path| path.ends_with(".trash") && names_below(path).is_empty()), "{left:?}");
    // With less in it, it can be made, under the same name.
    yard.git(&["rm", "-q", "large"]);
    yard.git(&["commit", "-q", "-m", "small"]);
    yard.homing.run(&["scope", "enter", "blue"]).expect(0);
}

/// Asks to enter a worktree whose setup is refused, and answers why, once nothing of it is left.
#[track_caller]
fn setup_refused(yard: &Yard, name: &str) -> String {
    let home = yard.place_text();
    let entered = yard.homing.run(&["scope", "enter", name]);
    assert_ne!(entered.code, Some(0), "{}", entered.out);
    assert_eq!(text(&yard.now(), "directory"), home, "it was not entered");
    let told = yard
        .facts()
        .into_iter()
        .rev()
        .find(|fact| fact["type"] == "notice" && text(fact, "text").contains("because its setup failed"));
    yard.homing.until_nothing_is_left();
    text(&told.expect("it is told"), "text")
}

#[test]
fn a_setup_that_writes_too_much_is_ended_and_names_the_bound() {
    // By a process that the script has left alone.
    let config = "[agents.scripted.worktree]\nscripts_written_max = \"32MiB\"\n\
        setup = \"(setsid head -c 1G /dev/zero > big.ignored &); echo began; sleep 1000\"\n";
    let yard = Yard::of(Setup::new(crate::EXE).config(config));
    let why = setup_refused(&yard, "blue");
    assert!(why.contains("wrote more than 33.6 MB"), "{why}");
    assert!(why.contains("raise agents.scripted.worktree.scripts_written_max"), "{why}");
}

#[test]
fn a_setup_that_fills_the_room_of_its_person_is_ended_and_names_the_bound() {
    let slowly = "for each in 1 2 3 4; do head -c 16M /dev/urandom > $each.ignored; done; sleep 1000";
    let at_once = "head -c 64M /dev/urandom > all.ignored";
    for script in [slowly, at_once] {
        let config = format!(
            "[limits]\nworktree_bytes_per_person_max = \"32MiB\"\n[agents.scripted.worktree]\nsetup = \"{script}\"\n"
        );
        let yard = Yard::of(Setup::new(crate::EXE).config(&config));
        let why = setup_refused(&yard, "blue");
        assert!(why.contains("limits.worktree_bytes_per_person_max"), "{why}");
        // It counts: no further one is made until this one goes.
        let full = yard.homing.run(&["scope", "enter", "green"]);
        assert!(
            full.code != Some(0) && full.err.contains("limits.worktree_bytes_per_person_max"),
            "{}",
            full.err
        );
        yard.homing.run(&["worktree", "rm", "blue"]).expect(0);
    }
}

#[test]
fn a_teardown_that_writes_too_much_is_ended_and_the_worktree_stays() {
    let rooms = [
        (
            "limits.worktree_bytes_per_person_max",
            "for each in 1 2 3 4; do head -c 16M /dev/urandom > $each.ignored; done; sleep 1000",
        ),
        ("agents.scripted.worktree.scripts_written_max", "head -c 1G /dev/zero > /dev/null; sleep 1000"),
    ];
    for (bound, teardown) in rooms {
        let config = format!(
            "[limits]\nworktree_bytes_per_person_max = \"32MiB\"\n[agents.scripted.worktree]\n\
             scripts_written_max = \"200MiB\"\nteardown = \"{teardown}\"\n"
        );
        let yard = Yard::of(Setup::new(crate::EXE).config(&config));
        yard.homing.run(&["scope", "enter", "blue"]).expect(0);
        let root = PathBuf::from(text(&yard.now(), "directory"));
        yard.homing.run(&["scope", "exit"]).expect(0);
        let refused = yard.homing.run(&["worktree", "rm", "blue"]);
        assert!(refused.code != Some(0) && refused.err.contains(bound), "{}", refused.err);
        assert!(root.exists(), "it is as the script left it");
        yard.homing.until_nothing_is_left();
        yard.homing.run(&["worktree", "rm", "blue", "--skip-teardown"]).expect(0);
        assert!(!root.exists());
    }
}

#[test]
fn a_worktree_is_entered_and_left_as_ever_by_scripts_within_their_bounds() {
    let config = "[limits]\nworktree_bytes_per_person_max = \"32MiB\"\n[agents.scripted.worktree]\n\
        scripts_written_max = \"32MiB\"\nsetup = \"head -c 8M /dev/urandom > some.ignored\"\n\
        teardown = \"head -c 8M /dev/urandom > more.ignored\"\n";
    let yard = Yard::of(Setup::new(crate::EXE).config(config));
    for _ in 0..2 {
        yard.homing.run(&["scope", "enter", "blue"]).expect(0);
        yard.homing.run(&["scope", "exit"]).expect(0);
    }
    yard.homing.run(&["worktree", "rm", "blue"]).expect(0);
}

fn names_below(place: &Path) -> Vec<PathBuf> {
    fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[test]
fn whoever_follows_is_told_why_a_worktree_could_not_be_made() {
    let homing = crate::homing();
    let none = homing.run(&["worktree", "ls"]);
    assert_eq!(none.expect(0), "");
    assert!(none.err.contains("there are no worktrees"), "{}", none.err);
    let made = std::process::Command::new("git").args(["init", "-q"]).current_dir(homing.place()).status();
    assert!(made.unwrap().success());
    let held = homing.run(&["send", "--new", "--worktree=fix", "-f", "hello"]);
    held.expect(1);
    for words in [
        "this repository has no commit yet",
        "`git commit`",
        " enter fix` tries it again",
        "held (what came before it failed)",
        "hint:",
    ] {
        assert!(held.err.contains(words), "{words}: {}", held.err);
    }
}

#[test]
fn whoever_enters_a_worktree_is_told_which_files_are_only_pointers_of_lfs() {
    let yard = Yard::new();
    yard.write("large.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n");
    yard.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    yard.git(&["-c", "filter.lfs.clean=cat", "add", "."]);
    yard.git(&["-c", "filter.lfs.clean=cat", "commit", "-q", "-m", "large"]);
    yard.homing.run(&["scope", "enter", "shed"]).expect(0);
    let told = eventually("it is told", || {
        let facts = yard.facts();
        let notice = facts.iter().filter(|fact| fact["type"] == "notice").map(|fact| text(fact, "text"));
        notice.into_iter().find(|words| words.contains("LFS"))
    });
    assert!(told.contains("large.bin") && told.contains("git lfs pull"), "{told}");
}

/// Long patches are cut; that of one file is had whole, of a turn and of a worktree since it was made, also once its session has left it.
#[test]
fn changes_of_one_file_and_of_a_worktree_since_its_base_are_told_whole() {
    let yard = Yard::new();
    yard.homing.run(&["scope", "enter", "blue"]).expect(0);
    let base = git(&yard.place, &["rev-parse", "HEAD"]);
    yard.ask("!run seq 300000 > long.txt; echo other > other.txt");
    yard.ask("!run git add -A; git commit -q -m work; echo changed > kept.txt");
    let http = yard.homing.http();
    let at = format!("/api/v1/sessions/{}", yard.session);
    let turn =
        yard.facts().iter().rfind(|fact| fact["type"] == "turn_ended").unwrap()["turn"].as_u64().unwrap() - 1;
    let whole = |path: &str, query: &str| {
        let (mut patch, mut pieces, mut from) = (String::new(), 0, 0);
        loop {
            let told = http.get(&format!("{path}?{query}&path=long.txt&from={from}")).expect(200);
            assert_eq!(
                (&told["known"], &told["file"]["path"], &told["file"]["plus"]),
                (&json!(true), &json!("long.txt"), &json!(300_000))
            );
            patch += told["patch"].as_str().unwrap();
            pieces += 1;
            match told["next"].as_u64() {
                Some(next) => from = next,
                None => return (patch, pieces),
            }
        }
    };
    let cut = http.get(&format!("{at}/changes?turn={turn}")).expect(200);
    assert_eq!(cut["cut"], true);
    let (patch, pieces) = whole(&format!("{at}/changes/file"), &format!("turn={turn}"));
    assert!(
        pieces > 5 && patch.ends_with("\n+299999\n+300000\n") && !patch.contains("other.txt"),
        "{pieces}"
    );
    assert_eq!(patch.matches("\n+").count(), 300_001, "with the line of its name");
    let nothing = http.get(&format!("{at}/changes/file?turn={turn}&path=kept.txt")).expect(200);
    assert_eq!(nothing, json!({"known": true, "patch": ""}));

    yard.homing.run(&["scope", "exit"]).expect(0);
    let tree = format!("{at}/worktrees/blue/changes");
    let since = http.get(&tree).expect(200);
    let names: Vec<&str> =
        since["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!((names, &since["base"]), (vec!["kept.txt", "long.txt", "other.txt"], &json!(base)));
    assert_eq!(whole(&format!("{tree}/file"), "").0, patch, "committed or not");
    let left = yard.homing.run(&["diff", "--worktree", "blue"]);
    assert!(left.expect(0).contains("+changed") && left.err.contains("since it was made"), "{left:?}");
    let elsewhere = http.get(&format!("{at}/changes/file?turn=99&path=long.txt")).expect(200);
    assert_eq!(elsewhere, json!({"known": false, "patch": ""}), "of that turn nobody can tell");
    http.get(&format!("{at}/worktrees/red/changes")).expect(404);
}

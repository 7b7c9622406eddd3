//! The session that a command means: a new one that takes the directory's conversation over, one aside, the repository's, and
//! that of the worktree one stands in.

use std::fs;
use std::path::{Path, PathBuf};

use crate::yard::{Yard, repository};
use crate::{homing, setup, text};
use serde_json::Value;
use testkit::{CommandOutput, Homing};

fn session(sent: &CommandOutput) -> String {
    text(&sent.json(0), "session")
}

fn say(homing: &Homing, at: &Path, more: &[&str]) -> String {
    session(&homing.run_in(at, &[&["send", "--json"], more, &["hello"][..]].concat()))
}

#[test]
fn a_new_session_is_the_directorys_from_then_on_and_says_how_to_go_back() {
    let homing = homing();
    let here = homing.place();
    let first = say(&homing, &here, &[]);
    let explained = homing.run(&["route", "explain", "--new"]);
    let explained = explained.expect(0).to_owned();
    assert!(explained.contains(&first) && explained.contains("homing bindings move"), "{explained}");

    let taken = homing.run(&["send", "--new", "hello"]);
    taken.expect(0);
    assert!(taken.err.contains("goes on") && taken.err.contains(&first), "{}", taken.err);
    let second = say(&homing, &here, &[]);
    assert_ne!(second, first, "the next message knows of it");
    assert!(taken.err.contains(&second), "{}", taken.err);
    assert_eq!(text(&homing.run(&["show", &first, "--json"]).json(0), "state"), "open");
    let listed = homing.run(&["bindings", "--json"]).json(0);
    assert_eq!(text(&listed["before"], "session"), first, "{listed}");

    // The command that was said leads back.
    let back = taken.err.split("back to it: homing ").nth(1).unwrap().split(')').next().unwrap();
    homing.run(&back.split(' ').collect::<Vec<_>>()).expect(0);
    assert_eq!(say(&homing, &here, &[]), first);
}

#[test]
fn aside_and_in_a_worktree_of_its_own_a_new_session_takes_nothing_over() {
    let yard = Yard::new();
    let aside = yard.homing.run(&["send", "--aside", "--json", "hello"]);
    assert_ne!(session(&aside), yard.session);
    let in_tree = yard.homing.run(&["send", "--new", "--worktree", "--json", "hello"]);
    assert_ne!(session(&in_tree), yard.session);
    assert_eq!(say(&yard.homing, &yard.place, &[]), yard.session);
    yard.homing.run(&["send", "--aside", "--session", &yard.session, "hello"]).expect(2);
}

#[test]
fn a_new_session_elsewhere_takes_over_the_conversation_of_where_it_works() {
    let homing = homing();
    let there = homing.root().join("there");
    fs::create_dir(&there).unwrap();
    let first = say(&homing, &homing.place(), &[]);
    let other = say(&homing, &homing.place(), &["--new", "--directory", there.to_str().unwrap()]);
    assert_eq!(say(&homing, &there, &[]), other);
    assert_eq!(say(&homing, &homing.place(), &[]), first);
}

#[test]
fn another_agent_or_model_than_the_sessions_is_refused_and_names_both_ways_out() {
    let homing = setup().config("[agents.second]\nkind = \"scripted\"\n").start();
    let first = say(&homing, &homing.place(), &["--agent", "scripted"]);
    for other in [["--agent", "second"], ["--model", "fast"]] {
        let refused = homing.run(&["send", other[0], other[1], "hello"]);
        refused.expect(1);
        let told = &refused.err;
        assert!(told.contains(&first) && told.contains("`scripted`"), "{told}");
        assert!(told.contains("homing scope set") && told.contains("--new"), "{told}");
        let problem = homing.run(&["send", "--json", other[0], other[1], "hello"]).json(1);
        assert_eq!(problem["code"], "other_agent");
    }
    assert_eq!(say(&homing, &homing.place(), &["--agent", "scripted"]), first, "what it is may be said");
    let second = say(&homing, &homing.place(), &["--new", "--agent", "second"]);
    assert_eq!(say(&homing, &homing.place(), &["--agent", "second"]), second);
}

#[test]
fn after_an_end_the_same_agent_goes_on_or_it_is_asked_which() {
    let mut homing = setup().config("[agents.second]\nkind = \"scripted\"\n").start();
    let here = homing.place();
    let agent_of =
        |homing: &Homing, session: &str| text(&homing.run(&["show", session, "--json"]).json(0), "agent");
    let first = say(&homing, &here, &["--agent", "second"]);
    homing.run(&["end", &first]).expect(0);
    let next = say(&homing, &here, &[]);
    assert_eq!(agent_of(&homing, &next), "second");
    homing.run(&["end", &next]).expect(0);

    fs::write(homing.data().join("homing.toml"), "").unwrap();
    homing.terminate();
    homing.restart();
    let refused = homing.run(&["send", "hello"]);
    refused.expect(1);
    assert!(refused.err.contains("`second`") && refused.err.contains("--agent"), "{}", refused.err);
    let named = say(&homing, &here, &["--agent", "scripted"]);
    assert_eq!(agent_of(&homing, &named), "scripted");
}

#[test]
fn after_an_agent_has_lost_its_conversation_the_same_agent_goes_on_in_a_new_session() {
    let homing = setup().config("[agents.second]\nkind = \"scripted\"\n").start();
    let here = homing.place();
    let first = say(&homing, &here, &["--agent", "second"]);
    homing.run(&["send", "-f", "!gone"]).expect(1);
    assert_eq!(text(&homing.run(&["show", &first, "--json"]).json(0), "state"), "ended");
    let next = homing.run(&["send", "-f", "again"]);
    assert!(next.expect(0).contains("#1 again"), "{}", next.out);
    assert!(next.err.contains(&format!("{first} has ended, the agent says that it is gone")), "{}", next.err);
    let now = homing.run(&["show", "--json"]).json(0);
    assert_eq!(text(&now, "agent"), "second");
    assert_ne!(text(&now, "id"), first);
}

#[test]
fn a_subdirectory_of_a_repository_shares_its_conversation_unless_it_has_its_own() {
    let yard = Yard::new();
    let (deep, other) = (yard.place.join("a/b"), yard.place.join("c"));
    fs::create_dir_all(&deep).unwrap();
    fs::create_dir(&other).unwrap();
    assert_eq!(say(&yard.homing, &deep, &[]), yard.session);
    assert_eq!(text(&yard.homing.run_in(&deep, &["show", "--json"]).json(0), "id"), yard.session);
    // A new one in the midst of it is the repository's, and works at its top.
    let taken = say(&yard.homing, &deep, &["--new"]);
    assert_eq!(say(&yard.homing, &yard.place, &[]), taken);
    let shown = yard.homing.run(&["show", &taken, "--json"]).json(0);
    assert_eq!(text(&shown, "directory"), yard.place_text());
    // One that is made for the directory itself is its own.
    let own = say(&yard.homing, &other, &["--new", "--directory", "."]);
    assert_eq!(say(&yard.homing, &other, &[]), own);
    assert_eq!((say(&yard.homing, &deep, &[]), say(&yard.homing, &yard.place, &[])), (taken.clone(), taken));
}

#[test]
fn each_directory_of_a_repository_is_a_conversation_where_that_is_configured_or_it_is_ones_home() {
    let yard = Yard::of(setup().config("conversations = \"directory\"\n"));
    let deep = yard.place.join("deep");
    fs::create_dir(&deep).unwrap();
    assert_ne!(say(&yard.homing, &deep, &[]), yard.session);

    let homing = homing();
    let home = homing.home().canonicalize().unwrap();
    repository(&home);
    let deep = home.join("deep");
    fs::create_dir(&deep).unwrap();
    let in_home = say(&homing, &home, &[]);
    assert_ne!(say(&homing, &deep, &[]), in_home);
}

#[test]
fn in_a_sessions_worktree_commands_go_to_that_session() {
    let yard = Yard::new();
    let sent = yard.homing.run(&["send", "--new", "--worktree=fix", "--json", "hello"]).json(0);
    let session = text(&sent, "session");
    yard.homing.http().until_final(&text(&sent, "id"));
    let shown = yard.homing.run(&["show", &session, "--json"]).json(0);
    let tree = text(&shown, "directory");
    assert_ne!(tree, yard.place_text());
    let deep = Path::new(&tree).join("deep");
    fs::create_dir(&deep).unwrap();
    for at in [Path::new(&tree), &deep] {
        assert_eq!(say(&yard.homing, at, &[]), session);
        assert_eq!(text(&yard.homing.run_in(at, &["show", "--json"]).json(0), "id"), session);
    }
    assert_eq!(say(&yard.homing, &yard.place, &[]), yard.session, "the repository's is what it was");
}

/// A session in a worktree of its own, and where that is.
fn in_a_worktree(yard: &Yard) -> (String, PathBuf) {
    let sent = yard.homing.run(&["send", "--new", "--worktree=fix", "--json", "hello"]).json(0);
    yard.homing.http().until_final(&text(&sent, "id"));
    let session = text(&sent, "session");
    let shown = yard.homing.run(&["show", &session, "--json"]).json(0);
    (session, PathBuf::from(text(&shown, "directory")))
}

#[test]
fn in_a_sessions_worktree_another_agent_or_model_is_refused_as_anywhere() {
    let yard = Yard::of(setup().config("[agents.second]\nkind = \"scripted\"\n"));
    let (session, tree) = in_a_worktree(&yard);
    let turns = || yard.homing.run(&["show", &session, "--json"]).json(0)["number"].clone();
    let before = turns();
    for other in [["--agent", "second"], ["--model", "fast"]] {
        let refused = yard.homing.run_in(&tree, &["send", other[0], other[1], "hello"]);
        refused.expect(1);
        let told = &refused.err;
        assert!(told.contains(&session) && told.contains("`scripted`"), "{told}");
        assert!(told.contains("homing scope set") && told.contains("--new"), "{told}");
        let problem = yard.homing.run_in(&tree, &["send", "--json", other[0], other[1], "hello"]).json(1);
        assert_eq!(problem["code"], "other_agent");
        let talk = yard.homing.run_in(&tree, &["chat", other[0], other[1]]);
        talk.expect(1);
        assert!(talk.err.contains("`scripted`") && talk.err.contains("homing scope set"), "{}", talk.err);
        let explained = yard.homing.run_in(&tree, &["route", "explain", other[0], other[1]]);
        assert!(
            explained.expect(1).contains("other_agent") && explained.out.contains("--new"),
            "{explained:?}"
        );
    }
    assert_eq!(turns(), before, "nothing was said to it");
    assert_eq!(say(&yard.homing, &tree, &["--agent", "scripted"]), session, "what it is may be said");
    yard.homing.run_in(&tree, &["route", "explain", "--agent", "scripted"]).expect(0);
}

#[test]
fn in_a_sessions_worktree_options_for_a_new_session_are_ignored_and_it_is_said_which() {
    let yard = Yard::new();
    let (session, tree) = in_a_worktree(&yard);
    let options = ["--mode=plan", "--directory=..", "--title=other", "--worktree=more", "--branch=mine"];
    let named = ["--mode", "--directory", "--title", "--worktree", "--branch"];
    let sent = yard.homing.run_in(&tree, &[&["send", "--json", "hello"], &options[..]].concat());
    let receipt = sent.json(0);
    assert_eq!((text(&receipt, "session"), &receipt["if_new_ignored"]), (session, &Value::Bool(true)));
    let said = format!("ignored: {} are for new sessions", named.join(", "));
    assert!(sent.err.contains(&said) && sent.err.contains("worktree of one"), "{}", sent.err);
    // Only what was named, and nothing where nothing was.
    let one = yard.homing.run_in(&tree, &["send", "--title", "other", "hello"]);
    one.expect(0);
    assert!(one.err.contains("ignored: --title is for") && !one.err.contains("--mode"), "{}", one.err);
    let none = yard.homing.run_in(&tree, &["send", "--json", "hello"]);
    assert!(none.json(0).get("if_new_ignored").is_none() && !none.err.contains("ignored"), "{none:?}");
    let talk = yard.homing.run_in(&tree, &["chat", "--mode", "plan"]);
    talk.expect(0);
    assert!(talk.err.contains("ignored: --mode is for new sessions"), "{}", talk.err);
    // Elsewhere it is the server that says so, of the same options.
    let here = yard.homing.run(&["send", "--title", "other", "hello"]);
    here.expect(0);
    assert!(here.err.contains("ignored: --title is for") && here.err.contains("--new"), "{}", here.err);
}

#[test]
fn outside_the_roots_the_command_that_lets_one_in_is_told() {
    let homing = setup().variable("HOMING_ROOTS", "").start();
    let outside = homing.root().join("out side").canonicalize().unwrap_or(homing.root().join("out side"));
    fs::create_dir(&outside).unwrap();
    let outside = outside.canonicalize().unwrap();
    let command = format!("homing roots add '{}'", outside.display());
    let refused = homing.run_in(&outside, &["send", "hello"]);
    refused.expect(1);
    assert!(refused.err.contains(&command), "{}", refused.err);
    let explained = homing.run_in(&outside, &["route", "explain"]);
    assert!(explained.expect(1).contains(&command), "{}", explained.out);
    homing.run(&["roots", "add", outside.to_str().unwrap()]).expect(0);
    homing.run_in(&outside, &["route", "explain"]).expect(0);
    homing.run_in(&outside, &["send", "hello"]).expect(0);
}

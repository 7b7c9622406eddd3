//! Commands that people type in their first hours and that are not quite right, or come at the wrong moment: what they are told, and that
//! nothing else is done. Each of these was seen to puzzle somebody who had only the guide.

use std::fs;

use serde_json::json;
use testkit::{Homing, Terminal, TerminalSize, eventually};

use crate::names::terminal;
use crate::people::{Person, add, url_of};
use crate::yard::Yard;
use crate::{homing, sessions, setup, text};

const USUAL: TerminalSize = TerminalSize { columns: 80, rows: 24 };
const CTRL_C: &str = "\x03";

/// The words of a refusal, which says all of these and nothing that only a program can use.
#[track_caller]
fn refused(homing: &Homing, arguments: &[&str], code: i32, says: &[&str]) {
    let refused = homing.run(arguments);
    assert_eq!(refused.code, Some(code), "{arguments:?}: {}", refused.err);
    for words in says {
        assert!(refused.err.contains(words), "{words:?} in {}", refused.err);
    }
    assert!(!refused.err.contains("os error"), "{}", refused.err);
}

#[test]
fn the_name_of_a_session_is_not_said_to_another_one() {
    let homing = homing();
    refused(
        &homing,
        &["send", "@2", "and more"],
        2,
        &["nothing was said", "`homing send -s @2 'and more'`", "`homing send '@2 and more'`"],
    );
    refused(&homing, &["send", "-", "hello"], 2, &["nothing was said", "`homing send -s - hello`"]);
    assert_eq!(sessions(&homing, &[]).len(), 0, "nothing was said to anybody");
    // Words that are alone, or that follow a session's name, are words.
    homing.run(&["send", "-f", "@2 and more"]).expect(0);
    let id = text(&sessions(&homing, &[])[0], "id");
    assert!(homing.run(&["send", "-f", "-s", &id, "@2", "more"]).expect(0).contains("#2 @2 more"));
}

#[test]
fn whoever_says_nothing_is_told_so_before_a_server_is_started_for_it() {
    let homing = homing();
    let mut command = homing.command();
    command.arg("send").env("HOMING_DATA", homing.root().join("none"));
    let mut terminal = Terminal::start(command, USUAL);
    assert_eq!(terminal.until_ended().code(), Some(2));
    let lines = terminal.lines().join("\n");
    assert!(lines.contains("there is nothing to say") && !lines.contains("Start one"), "{lines}");
}

#[test]
fn a_command_that_is_none_leads_to_saying_something_or_to_what_comes_behind_it() {
    let homing = homing();
    refused(&homing, &["what is this?"], 2, &["no command `homing what is this?`", "`homing send -f \"…\"`"]);
    refused(&homing, &["search", "till"], 2, &["`homing ls --text WORDS`"]);
    refused(&homing, &["grant", "till", "bob", "view"], 2, &["behind `homing grant` comes ls, give, take,"]);
    refused(&homing, &["bindings", "move", "-", "."], 2, &["`homing bindings move . -`"]);
    let object = homing.run(&["ls", "--json", "till"]).json(2);
    assert_eq!(
        (object["code"].as_str(), object["title"].as_str()),
        (Some("usage"), Some("`homing ls` does not take `till`"))
    );
}

#[test]
fn a_question_that_is_left_open_says_how_it_is_answered() {
    let homing = homing();
    let mut command = homing.command();
    command.args(["send", "-f", "!ask shell"]);
    let mut asked = Terminal::start(command, USUAL);
    asked.until_last("y/n>");
    asked.press(CTRL_C);
    asked.until("the turn waits for an answer");
    assert_eq!(asked.until_ended().code(), Some(130));
    let lines = asked.lines().join("\n");
    assert!(lines.contains("answer with `homing approve ") && lines.contains(" --yes`, or --no"), "{lines}");
    // Whoever looks at it, too.
    let shown = terminal(&homing, 80, "homing approve; homing approve @1");
    assert!(
        shown.contains("open; without an answer by") && shown.contains("answer with `homing approve "),
        "{shown}"
    );
    // Whoever comes too late hears who was first, and what they said.
    let question = text(&homing.run(&["approve", "--json"]).json(0)["items"][0], "id");
    homing.run(&["approve", "yes", &question]).expect(0);
    refused(&homing, &["approve", "no", &question], 1, &["the answer was yes, by ", " at ", "and stands"]);
}

#[test]
fn a_rule_goes_by_its_line_and_by_a_piece_of_its_id() {
    let homing = homing();
    for tool in ["shell", "paint"] {
        homing.run(&["approve", "rules", "add", "--tool", tool, "--deny"]).expect(0);
    }
    let ids = homing.run(&["approve", "rules", "--json"]).json(0);
    let ids: Vec<String> = ids["items"].as_array().unwrap().iter().map(|rule| text(rule, "id")).collect();
    let shown = terminal(&homing, 80, "homing approve rules; homing approve rules remove @2");
    assert!(shown.contains("@1  ") && shown.contains("counts no more") && !shown.contains("rul_"), "{shown}");
    let left = homing.run(&["approve", "rules", "--json"]).json(0);
    let left = text(&left["items"][0], "id");
    assert!(ids.contains(&left));
    homing.run(&["approve", "rules", "remove", &left[left.len() - 8..]]).expect(0);
    assert_eq!(homing.run(&["approve", "rules", "--json"]).json(0)["items"], json!([]));
    refused(&homing, &["approve", "rules", "remove", "zzzzzz"], 3, &["no rule goes by the name"]);
}

#[test]
fn what_runs_or_is_over_is_too_late_to_change_and_says_what_can_be_done() {
    let homing = homing();
    let running = text(&homing.run(&["send", "--json", "!sleep 600000"]).json(0), "id");
    let state = |id: &str| text(&homing.run(&["show", id, "--json"]).json(0), "state");
    eventually("it runs", || (state(&running) == "running").then_some(()));
    let stop = format!("`homing stop {running}`");
    refused(&homing, &["queue", "withdraw", &running], 1, &["runs, and the agent has its words", &stop]);
    refused(&homing, &["queue", "edit", &running, "other"], 1, &["runs, and the agent has its words", &stop]);
    let waits = text(&homing.run(&["send", "--json", "next"]).json(0), "id");
    homing.run(&["queue", "withdraw", &waits]).expect(0);
    refused(
        &homing,
        &["queue", "hold", &waits],
        1,
        &["is withdrawn already", &format!("`homing show {waits}`")],
    );
}

#[test]
fn what_was_held_by_hand_is_released_where_the_session_still_is() {
    let homing = homing();
    let running = text(&homing.run(&["send", "--json", "!sleep 600000"]).json(0), "id");
    let held = text(&homing.run(&["send", "--json", "later"]).json(0), "id");
    homing.run(&["queue", "hold", &held]).expect(0);
    homing.run(&["stop", &running]).expect(0);
    let listed = homing.run(&["ls"]);
    let id = text(&sessions(&homing, &[])[0], "id");
    assert!(listed.expect(0).contains("held 1"), "{}", listed.out);
    assert!(listed.err.contains(&format!("1 message is held: `homing queue {id}`")), "{}", listed.err);
    homing.run(&["queue", "release", &held]).expect(0);
    assert_eq!(homing.http().until_final(&held)["state"], "answered");
    // Where the scope is another one by now, somebody has to say.
    let running = text(&homing.run(&["send", "--json", "!sleep 600000"]).json(0), "id");
    let held = text(&homing.run(&["send", "--json", "later"]).json(0), "id");
    homing.run(&["queue", "hold", &held]).expect(0);
    homing.run(&["stop", &running]).expect(0);
    homing.run(&["scope", "set", "--model", "large"]).expect(0);
    refused(&homing, &["queue", "release", &held], 2, &["to be started?", "--here"]);
}

#[test]
fn a_turn_that_is_named_before_its_session_says_the_order() {
    let homing = homing();
    for command in ["diff", "undo"] {
        refused(
            &homing,
            &[command, "10", "fruit"],
            2,
            &["the session comes first, then the turn", "`fruit 10`"],
        );
    }
    refused(&homing, &["undo", "one", "two"], 2, &["is no turn"]);
}

#[test]
fn a_worktree_that_is_in_use_or_was_removed_says_so_and_what_to_do() {
    let yard = Yard::new();
    yard.homing.run(&["scope", "enter", "blue"]).expect(0);
    let elsewhere = yard.homing.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let refused = yard.homing.run_in(&elsewhere, &["worktree", "rm", "blue"]);
    refused.expect(1);
    let exit = format!("homing scope {} exit", yard.session);
    assert!(refused.err.contains("blue is in use") && refused.err.contains(&exit), "{}", refused.err);
    yard.homing.run_in(&elsewhere, &exit.split(' ').skip(1).collect::<Vec<_>>()).expect(0);
    yard.homing.run_in(&elsewhere, &["worktree", "rm", "blue"]).expect(0);
    for verb in ["apply", "merge"] {
        let gone = yard.homing.run_in(&elsewhere, &["worktree", verb, "blue"]);
        gone.expect(3);
        assert!(gone.err.contains("`homing worktree restore blue`"), "{}", gone.err);
    }
}

#[test]
fn an_agent_that_is_not_here_is_named_with_what_to_do_and_the_next_one_is_told_of_one_turn() {
    let homing = setup().variable("PATH", "/usr/bin:/bin").start();
    let failed = homing.run(&["send", "--agent", "claude", "-f", "hello"]);
    failed.expect(1);
    assert!(failed.err.contains("the notice says why; mend that, then say it again"), "{}", failed.err);
    let shown = homing.run(&["show"]);
    assert!(shown.expect(0).contains("`homing agents` says what is wrong with it"), "{}", shown.out);
    homing.run(&["scope", "set", "--agent", "scripted"]).expect(0);
    let told = homing.run(&["send", "-f", "again"]);
    told.expect(0);
    assert!(told.err.contains("was told again: 1 turn\n"), "{}", told.err);
}

#[test]
fn a_link_that_is_not_good_is_not_about_passwords() {
    let homing = setup().argument("--trust-everyone").start();
    let link = add(&homing, &["bob"]);
    let bob = Person::new(&homing, "bob");
    let wrong = bob.type_in(&homing, &["login", "--link"], &format!("{}x\n", link.trim()));
    wrong.expect(4);
    assert!(
        wrong.err.contains("this link lets nobody in") && !wrong.err.contains("password"),
        "{}",
        wrong.err
    );
    let nowhere = bob.type_in(&homing, &["login"], "");
    nowhere.expect(2);
    assert!(nowhere.err.contains("`homing login --link`"), "{}", nowhere.err);
    assert!(bob.type_in(&homing, &["login", "--link"], &link).expect(0).contains(&url_of(&homing)));
}

#[test]
fn files_that_are_not_there_are_named_without_a_number_of_the_system() {
    let homing = homing();
    refused(
        &homing,
        &["send", "--attach", "notes.txt", "look"],
        2,
        &["there is no file notes.txt; nothing was sent", "hint:"],
    );
    homing.run(&["send", "-f", "hello"]).expect(0);
    refused(
        &homing,
        &["export", "-o", "nowhere/talk.md", "--markdown"],
        1,
        &["nowhere/talk.md cannot be written: No such file"],
    );
}

#[test]
fn a_narrow_terminal_breaks_words_of_ours_between_words() {
    let homing = homing();
    let shown = terminal(&homing, 40, "homing service remove; homing sned; homing send x --folow");
    let is_whole = |line: &&str| line.chars().count() <= 40 || !line.contains(' ');
    assert!(shown.lines().all(|line| is_whole(&line)), "{shown}");
    assert!(shown.contains("`--follow`"), "{shown}");
}

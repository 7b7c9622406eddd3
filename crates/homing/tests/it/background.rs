//! The background of sessions, where it is kept: shown, and ended with a notice in every way there is.

use std::fs;

use serde_json::{Value, json};
use testkit::{Homing, Setup, eventually};

use crate::people::{Person, add};
use crate::yard::Yard;
use crate::{EXE, homing, text};

/// A server whose scripted agent keeps what its turns leave running, for so long.
fn keeping(idle_max: &str) -> Setup {
    let config = format!("[agents.scripted]\nbackground = \"kept\"\nkeep.idle_max = \"{idle_max}\"\n");
    Setup::new(EXE).config(&config)
}

/// Words that make the agent leave a process running, and how that one is called. Each test has its own.
fn leaving(seconds: &str) -> (String, String) {
    (format!("!run sleep {seconds} >/dev/null 2>&1 &"), format!("sleep {seconds}"))
}

/// The number of processes with this command line.
fn running(command: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| String::from_utf8_lossy(line).trim_end_matches('\0').replace('\0', " ") == command)
        .count()
}

/// Waits for a notice with all of these words.
#[track_caller]
fn until_told(homing: &Homing, session: &str, words: &[&str]) {
    eventually(&format!("a notice says {words:?}"), || told(homing, session, words).then_some(()));
}

#[track_caller]
fn told(homing: &Homing, session: &str, words: &[&str]) -> bool {
    let facts = crate::kill::facts(&homing.http(), session);
    let says =
        |fact: &Value| words.iter().all(|word| fact["text"].as_str().is_some_and(|text| text.contains(word)));
    facts.iter().any(|fact| fact["type"] == "notice" && says(fact))
}

fn background(homing: &Homing, session: &str) -> Value {
    homing.http().get(&format!("/api/v1/sessions/{session}")).expect(200)["background"].clone()
}

/// A session that has left this running.
#[track_caller]
fn left(homing: &Homing, words: &str, command: &str) -> String {
    let said = homing.run(&["send", "--json", words]).json(0);
    assert_eq!(homing.http().until_final(&text(&said, "id"))["state"], "answered");
    assert_eq!(running(command), 1, "it goes on");
    text(&said, "session")
}

#[test]
fn it_is_shown_goes_on_in_the_next_turn_and_is_ended_on_request() {
    let homing = keeping("5m").start();
    let (words, command) = leaving("4401.5");
    let session = left(&homing, &words, &command);
    assert!(told(&homing, &session, &["goes on in the background", &command]));
    let shown = homing.run(&["show", &session]);
    assert!(shown.expect(0).contains(&format!("{command} (started just now)")), "{}", shown.out);
    let seen = background(&homing, &session);
    assert_eq!((&seen["processes"], &seen["oldest"][0]["command"]), (&json!(1), &json!(command)), "{seen}");

    let (second, busy) = (homing.run(&["send", "--json", "!sleep 60000"]).json(0), ["stop", "--background"]);
    eventually("it runs", || {
        let state = homing.run(&["show", &text(&second, "id"), "--json"]).json(0)["state"].clone();
        (state == "running").then_some(())
    });
    assert_eq!(background(&homing, &session)["processes"], 1, "it goes on beside a turn");
    let refused = homing.run(&[&busy[..], &["--json"]].concat());
    assert_eq!(refused.json(1)["code"], "busy", "{refused:?}");
    assert_eq!(running(&command), 1);
    homing.run(&["stop"]).expect(0);
    until_told(&homing, &session, &["was ended with the agent's process", &command]);
    assert_eq!((running(&command), background(&homing, &session)), (0, Value::Null));

    left(&homing, &words, &command);
    let message = text(&homing.run(&["send", "--json", "four"]).json(0), "id");
    assert_eq!(text(&homing.http().until_final(&message), "answer"), "#4 four");
    assert_eq!(running(&command), 1, "the turn after it did not end it");
    homing.run(&["stop", "--background", &message]).expect(2);
    let stopped = homing.run(&["stop", "--background"]);
    assert_eq!(stopped.expect(0).trim(), command);
    assert!(stopped.err.contains("1 process ended, nothing is left"), "{}", stopped.err);
    assert_eq!(running(&command), 0);
    assert!(told(&homing, &session, &["was ended as somebody asked", &command]));
    let again = homing.run(&["stop", "--background", &session, "--json"]).json(0);
    assert_eq!(again, json!({"ended": 0, "commands": [], "gone": true}));
    let next = text(&homing.run(&["send", "--json", "five"]).json(0), "id");
    assert_eq!(text(&homing.http().until_final(&next), "answer"), "#5 five", "the conversation goes on");
    assert!(homing.run(&["audit", "--json"]).expect(0).contains("stop_background"));
}

/// A repetition under the same key has the answer of the first.
#[test]
fn asking_again_under_the_same_key_ends_nothing_new() {
    let homing = keeping("5m").start();
    let (words, command) = leaving("4402.5");
    let session = left(&homing, &words, &command);
    let path = format!("/api/v1/sessions/{session}/stop-background");
    let ask = || homing.http().post_as("one-key", &path, &Value::Null).expect(200);
    let first = ask();
    assert_eq!((&first["ended"], &first["commands"][0]), (&json!(1), &json!(command)), "{first}");
    left(&homing, &words, &command);
    assert_eq!(ask(), first);
    assert_eq!(running(&command), 1, "it is another one");
    homing.run(&["end", &session]).expect(0);
    let refused = homing.http().post(&path, &Value::Null).expect(409);
    assert_eq!(refused["code"], "session_ended");
}

#[test]
fn it_ends_when_the_session_rests() {
    let homing = keeping("1s").start();
    let policy = homing.run(&["agents", "show", "scripted"]);
    assert!(policy.expect(0).contains("goes on while the agent's process is kept"), "{}", policy.out);
    let (words, command) = leaving("4403.5");
    let session = left(&homing, &words, &command);
    until_told(&homing, &session, &["nobody has said anything to this session", &command]);
    assert_eq!((running(&command), background(&homing, &session)), (0, Value::Null));
    homing.until_nothing_is_left();
}

#[test]
fn it_ends_before_an_undo_and_before_that_is_taken_back() {
    let yard = Yard::of(keeping("5m"));
    let (words, command) = leaving("4404.5");
    let turn = |words: &str| {
        let message = yard.say(words);
        let receipt = yard.homing.http().until_final(&message);
        assert_eq!(receipt["state"], "answered", "{receipt}");
        receipt["turn"].to_string()
    };
    let changed = turn(&format!("!run echo two > new.txt\n{words}"));
    assert_eq!(running(&command), 1);
    yard.homing.run(&["undo", &changed, "--all"]).expect(0);
    until_told(&yard.homing, &yard.session, &["was ended before the undo:", &command]);
    assert!(running(&command) == 0 && !yard.place.join("new.txt").exists());
    turn(&words);
    assert_eq!(running(&command), 1);
    yard.homing.run(&["redo", &changed]).expect(0);
    until_told(&yard.homing, &yard.session, &["was ended before the undo was taken back", &command]);
    assert!(running(&command) == 0 && yard.place.join("new.txt").exists());
}

#[test]
fn it_ends_with_every_change_of_scope() {
    let yard = Yard::of(keeping("5m"));
    let elsewhere = yard.homing.root().join("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    let elsewhere = elsewhere.canonicalize().unwrap();
    let changes: [(&str, &[&str], &str); 4] = [
        ("4405.1", &["scope", "enter", "shed"], "before the worktree was entered"),
        ("4405.2", &["scope", "exit"], "acts elsewhere or otherwise now"),
        ("4405.3", &["scope", "set", "--model", "small"], "acts elsewhere or otherwise now"),
        ("4405.4", &["scope", "relink", elsewhere.to_str().unwrap()], "acts elsewhere or otherwise now"),
    ];
    for (seconds, change, why) in changes {
        let (words, command) = leaving(seconds);
        yard.ask(&words);
        assert_eq!(running(&command), 1, "before {change:?}");
        yard.homing.run(&[change, &["-s", &yard.session]].concat()).expect(0);
        until_told(&yard.homing, &yard.session, &[why, &command]);
        assert_eq!(running(&command), 0, "after {change:?}");
    }
}

#[test]
fn it_ends_when_the_session_is_somebody_elses_and_when_it_ends() {
    let homing = keeping("5m").argument("--trust-everyone").start();
    let bob = Person::new(&homing, "bob");
    bob.type_in(&homing, &["login", "--link"], &add(&homing, &["bob"])).expect(0);
    let (words, command) = leaving("4406.5");
    let session = left(&homing, &words, &command);
    homing.run(&["grant", "hand-over", &session, "bob"]).expect(0);
    assert_eq!(running(&command), 1, "an offer changes nothing");
    homing.run(&["roots", "add", homing.place().to_str().unwrap(), "--to", "bob"]).expect(0);
    bob.run(&homing, &["grant", "accept", &session]).expect(0);
    eventually("it ends", || (running(&command) == 0).then_some(()));
    eventually("the new owner is told", || {
        let log = bob.run(&homing, &["log", &session]);
        (log.out.contains("because the session is somebody else's now") && log.out.contains(&command))
            .then_some(())
    });

    let (words, command) = leaving("4407.5");
    let session = left(&homing, &words, &command);
    homing.run(&["end", &session]).expect(0);
    until_told(&homing, &session, &["was ended with the session", &command]);
    assert_eq!(running(&command), 0);
}

/// Nobody is left to tell it then, so the next turn does.
#[test]
fn it_ends_with_the_server_however_that_goes_and_the_next_turn_says_so() {
    let mut homing = keeping("5m").start();
    for seconds in ["4408.1", "4408.2"] {
        let (words, command) = leaving(seconds);
        let session = left(&homing, &words, &command);
        match seconds {
            "4408.1" => homing.kill9(),
            _ => assert!(homing.terminate().success()),
        }
        homing.until_nothing_is_left();
        assert_eq!(running(&command), 0);
        homing.restart();
        assert_eq!(background(&homing, &session), Value::Null);
        let next = text(&homing.run(&["send", "--json", "again"]).json(0), "id");
        assert_eq!(homing.http().until_final(&next)["state"], "answered");
        assert!(told(&homing, &session, &["the server had gone in between", &command]));
    }
}

#[test]
fn a_list_is_bounded_and_the_rest_is_counted() {
    let homing = keeping("5m").start();
    let said = homing.run(&["send", "--json", "!fork-bomb 30"]).json(0);
    homing.http().until_final(&text(&said, "id"));
    let session = text(&said, "session");
    let seen = background(&homing, &session);
    assert_eq!((seen["processes"].as_u64(), seen["oldest"].as_array().map(Vec::len)), (Some(30), Some(20)));
    let shown = homing.run(&["show"]);
    assert!(shown.expect(0).contains("and 10 processes more"), "{}", shown.out);
    let stopped = homing.run(&["stop", "--background"]);
    assert!(stopped.err.contains("30 processes ended, nothing is left"), "{}", stopped.err);
    homing.until_nothing_is_left();
}

/// The default: with the turn, with a notice.
#[test]
fn where_nobody_has_said_otherwise_it_is_ended_with_the_turn_and_told() {
    let homing = homing();
    let (words, command) = leaving("4409.5");
    let said = homing.run(&["send", "--json", &words]).json(0);
    homing.http().until_final(&text(&said, "id"));
    let session = text(&said, "session");
    assert_eq!(running(&command), 0);
    until_told(&homing, &session, &["that the agent had left behind"]);
    assert_eq!(background(&homing, &session), Value::Null);
    let nothing = homing.run(&["stop", "--background"]);
    assert!(
        nothing.expect(0).is_empty() && nothing.err.contains("nothing runs in the background"),
        "{nothing:?}"
    );
}

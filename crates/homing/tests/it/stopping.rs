//! Stops of turns, queues that are kept, and ends of sessions.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use testkit::{CommandOutput, Homing};

use crate::{homing, last_line, text};

/// Waits until a message runs.
#[track_caller]
fn until_running(homing: &Homing, receipt: &Value) {
    let path = format!("/api/v1/sessions/{}/facts", text(receipt, "session"));
    let id = text(receipt, "id");
    let mut turn = None;
    homing.http().follow(&path, None).unwrap().until(|heard| {
        if heard.json["type"] == "turn_started" && heard.json["message"] == id.as_str() {
            turn = heard.json["turn"].as_u64();
        }
        heard.json["type"] == "handed" && turn.is_some() && heard.json["turn"].as_u64() == turn
    });
}

#[test]
fn stopping_twice_is_fine_and_touches_nothing_else() {
    let homing = homing();
    let first = homing.run(&["send", "--json", "!fork-bomb 3\n!hang"]).json(0);
    let second = homing.run(&["send", "--json", "next"]).json(0);
    until_running(&homing, &first);
    let stopped = homing.run(&["stop", &text(&first, "session")]);
    assert!(stopped.expect(0).starts_with(&text(&first, "id")), "{}", stopped.out);
    assert!(stopped.err.contains("nothing is left"), "{}", stopped.err);
    let again = homing.run(&["stop", "--json", &text(&first, "id")]).json(0);
    assert_eq!(again["state"], "stopped");
    let next = homing.http().until_final(&text(&second, "id"));
    assert_eq!(next["state"], "answered", "{next}");
    // Nothing runs now: that is fine, too.
    homing.run(&["stop"]).expect(0);
    let still = homing.run(&["show", &text(&second, "id"), "--json"]).json(0);
    assert_eq!(still["state"], "answered");
    homing.until_nothing_is_left();
}

#[test]
fn what_waits_can_be_listed_changed_held_and_taken_back() {
    let homing = homing();
    let running = homing.run(&["send", "--json", "!hang"]).json(0);
    until_running(&homing, &running);
    let waiting: Vec<String> = ["a", "b", "c"]
        .iter()
        .map(|word| text(&homing.run(&["send", "--json", word]).json(0), "id"))
        .collect();
    let [a, b, c] = [0, 1, 2].map(|at| waiting[at].as_str());
    let order = |homing: &Homing| -> Vec<String> {
        let queue = homing.run(&["queue", "--json"]).json(0);
        queue["items"].as_array().unwrap().iter().map(|item| text(item, "text")).collect()
    };
    assert_eq!(order(&homing), ["!hang", "a", "b", "c"]);
    homing.run(&["queue", "move", c, "--first"]).expect(0);
    homing.run(&["queue", "move", a]).expect(0);
    assert_eq!(order(&homing), ["!hang", "c", "b", "a"]);
    homing.run(&["queue", "move", a, "--before", b]).expect(0);
    homing.run(&["queue", "edit", b, "other", "words"]).expect(0);
    assert_eq!(order(&homing), ["!hang", "c", "a", "other words"]);
    assert_eq!(homing.run(&["queue", "edit", b, "--revision", "0", "late"]).code, Some(1));
    homing.run(&["queue", "--json", "hold", c]).expect(0);
    homing.run(&["queue", &text(&running, "session"), "hold", c]).expect(2);
    assert!(homing.run(&["queue"]).expect(0).contains("held (on request)"));
    homing.run(&["queue", "withdraw", a]).expect(0);
    homing.run(&["stop"]).expect(0);
    assert_eq!(text(&homing.http().until_final(b), "answer"), "#2 other words");
    homing.run(&["queue", "release", "--here", c]).expect(0);
    assert_eq!(text(&homing.http().until_final(c), "answer"), "#3 c");
    assert_eq!(homing.run(&["show", a, "--json"]).json(0)["state"], "withdrawn");
    homing.run(&["queue", "withdraw", b]).expect(1);
}

#[test]
fn what_waits_can_be_heard_at_once() {
    let homing = homing();
    let running = homing.run(&["send", "--json", "!hang"]).json(0);
    until_running(&homing, &running);
    let [a, b, c] = ["a", "b", "c"].map(|word| text(&homing.run(&["send", "--json", word]).json(0), "id"));
    assert!(homing.run(&["queue", "steer", &b]).expect(0).contains("running"));
    assert_eq!(homing.run(&["show", &b, "--json"]).json(0)["turn"], 1);
    homing.run(&["queue", "steer", &b]).expect(1);
    homing.run(&["queue", "interrupt", &c]).expect(0);
    let [a, b, c] = [a, b, c].map(|id| homing.http().until_final(&id));
    assert_eq!((&b["state"], &b["answer"]), (&json!("stopped"), &json!("#1\nhanging\n+b\n")));
    assert_eq!((text(&c, "answer"), text(&a, "answer")), ("#2 c".to_owned(), "#3 a".to_owned()));
}

#[test]
fn ending_refuses_what_waits_and_stops_what_runs() {
    let homing = homing();
    let running = homing.run(&["send", "--json", "!hang"]).json(0);
    let waiting = homing.run(&["send", "--json", "never"]).json(0);
    until_running(&homing, &running);
    homing.run(&["end"]).expect(0);
    let refused = homing.http().until_final(&text(&waiting, "id"));
    assert_eq!(
        (&refused["state"], &refused["why"]),
        (&json!("refused"), &json!("session_ended")),
        "{refused}"
    );
    assert_eq!(homing.http().until_final(&text(&running, "id"))["state"], "stopped");
    assert!(homing.agent_log().iter().all(|ran| ran.message != text(&waiting, "id")));
    homing.until_nothing_is_left();
}

/// A `send --follow` that has joined its session.
fn following(homing: &Homing, words: &str) -> (Child, BufReader<std::process::ChildStderr>) {
    let mut command = homing.command();
    command.args(["send", "--follow", "--json", words]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut joined = String::new();
    errors.read_line(&mut joined).unwrap();
    assert!(joined.starts_with("ses_"), "{joined}");
    // Its turn is on its way to us: from here on Ctrl-C is heard.
    let stdout = child.stdout.as_mut().unwrap();
    let mut first = [0; 1];
    std::io::Read::read_exact(stdout, &mut first).unwrap();
    (child, errors)
}

fn interrupt(child: &Child) {
    let pid = Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, Signal::INT).unwrap();
}

fn end_of(child: Child, mut errors: BufReader<std::process::ChildStderr>) -> CommandOutput {
    let mut err = String::new();
    std::io::Read::read_to_string(&mut errors, &mut err).unwrap();
    let mut spoken: CommandOutput = child.wait_with_output().unwrap().into();
    spoken.err = err;
    spoken
}

#[test]
fn one_interrupt_detaches_and_the_turn_goes_on() {
    let homing = homing();
    // The turn waits for us, so it is not over before we have left it.
    let (child, errors) = following(&homing, "!run while ! test -e go; do sleep 0.05; done");
    interrupt(&child);
    let left = end_of(child, errors);
    assert_eq!(left.code, Some(130), "{left:?}");
    let id = last_line(&left.err).rsplit(' ').next().unwrap().trim_matches('`').to_owned();
    assert!(last_line(&left.err).contains("homing stop msg_"), "{}", left.err);
    std::fs::write(homing.place().join("go"), "").unwrap();
    assert_eq!(homing.http().until_final(&id)["state"], "answered");
}

#[test]
fn two_interrupts_stop_the_turn() {
    let homing = homing();
    let (child, mut errors) = following(&homing, "!hang");
    interrupt(&child);
    let mut detached = String::new();
    errors.read_line(&mut detached).unwrap();
    assert!(detached.contains("detached"), "{detached}");
    interrupt(&child);
    let stopped = end_of(child, errors);
    assert_eq!(stopped.code, Some(1), "{stopped:?}");
    let receipt: Value = serde_json::from_str(last_line(&stopped.out)).unwrap();
    assert_eq!(receipt["state"], "stopped");
    homing.until_nothing_is_left();
}

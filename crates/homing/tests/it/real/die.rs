//! Deaths in the middle of a turn: the agent, its supervisor, the server; and a server that stands still. Afterwards
//! the turn is settled, nothing is left although the agent's tool did all it could to stay, and the session still
//! remembers.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testkit::{Leftover, RealAgent, eventually, parent_of};

use super::{Acts, TURN_WAIT, Trial, each_agent};
use crate::text;

/// The leavings of an agent's tool, if it can: a child in a session of its own, without a parent, that ignores SIGTERM.
const NASTY: &str =
    "(setsid sh -c 'trap \"\" TERM HUP INT; sleep 300; sleep 300' >/dev/null 2>&1 &); sleep 300";
/// The longest that anything may still be there after it was noticed that somebody died.
const GONE_WAIT: Duration = Duration::from_secs(2);
/// The time for which a supervisor waits for a server that says nothing.
const SILENCE: Duration = Duration::from_secs(5);

each_agent! {
    whoever_is_killed_the_turn_is_settled_and_the_session_remembers
    a_stop_leaves_nothing_and_the_session_remembers
}

fn whoever_is_killed_the_turn_is_settled_and_the_session_remembers(agent: RealAgent) {
    let mut trial = Trial::new(agent, Acts::AtOnce);
    assert_eq!(trial.answer("one", "CODE:apple"), "ECHO: CODE:apple [turn=1]");

    let receipt = trial.begin_command("one", NASTY);
    assert!(trial.homing.terminate().success());
    gone_within(&trial, GONE_WAIT);
    trial.homing.restart();
    settled(&trial, &receipt, &["failed", "stopped"]);

    let receipt = trial.begin_command("one", NASTY);
    kill(the_agent(&trial).pid);
    settled(&trial, &receipt, &["failed"]);
    gone_within(&trial, GONE_WAIT);

    let receipt = trial.begin_command("one", NASTY);
    kill(the_supervisor(&trial).pid);
    settled(&trial, &receipt, &["failed"]);
    gone_within(&trial, GONE_WAIT);

    let receipt = trial.begin_command("one", NASTY);
    trial.homing.kill9();
    gone_within(&trial, GONE_WAIT);
    trial.homing.restart();
    settled(&trial, &receipt, &["failed"]);

    let receipt = trial.begin_command("one", NASTY);
    trial.homing.signal(Signal::STOP);
    gone_within(&trial, SILENCE + GONE_WAIT);
    trial.homing.signal(Signal::CONT);
    settled(&trial, &receipt, &["failed"]);

    trial.assert_recalls("one", "apple");
}

fn a_stop_leaves_nothing_and_the_session_remembers(agent: RealAgent) {
    let trial = Trial::new(agent, Acts::AtOnce);
    assert_eq!(trial.answer("one", "CODE:pear"), "ECHO: CODE:pear [turn=1]");
    let receipt = trial.begin_command("one", NASTY);
    let message = text(&receipt, "id");
    trial.homing.run(&["stop", &message]).expect(0);
    settled(&trial, &receipt, &["stopped"]);
    gone_within(&trial, GONE_WAIT);
    let stopped = trial.facts_of(&text(&receipt, "session"), "stopped");
    assert!(stopped.iter().any(|fact| fact["gone"] == true), "what was verified is a fact: {stopped:?}");
    trial.assert_recalls("one", "pear");
}

/// The message has come to one of these. A failed turn holds what follows, so whoever reads it lets it go on.
#[track_caller]
fn settled(trial: &Trial, receipt: &Value, states: &[&str]) {
    let receipt = trial.homing.http().until_final_within(&text(receipt, "id"), TURN_WAIT);
    let state = text(&receipt, "state");
    assert!(states.contains(&state.as_str()), "{receipt}");
}

/// All processes of the agent go by themselves; how long they take is printed.
#[track_caller]
fn gone_within(trial: &Trial, wait: Duration) {
    let began = Instant::now();
    eventually("everything is gone", || trial.homing.leftovers().is_empty().then_some(()));
    // The bound is ours, for a machine that does nothing else; here agents come up beside us.
    println!("it took {:?} of {wait:?} until nothing was left", began.elapsed());
}

fn the_supervisor(trial: &Trial) -> Leftover {
    eventually("there is a supervisor", || {
        trial.homing.leftovers().into_iter().find(|process| process.arguments.ends_with(" supervise"))
    })
}

/// The supervisor's child, or that of the first process of its namespace, which is nobody's leftover.
fn the_agent(trial: &Trial) -> Leftover {
    let supervisor = the_supervisor(trial).pid;
    let is_below = |process: &Leftover| {
        let above = parent_of(process.pid);
        [above, above.and_then(parent_of)].contains(&Some(supervisor))
    };
    eventually("there is an agent", || trial.homing.leftovers().into_iter().find(is_below))
}

fn kill(pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a process has a number");
    kill_process(pid, Signal::KILL).expect("it is there and ours");
}

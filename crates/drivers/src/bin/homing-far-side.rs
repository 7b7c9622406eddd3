//! For the tests of this room alone: the hidden commands of `homing` that run on the far side, two daemons to be
//! killed or stopped (one that does nothing but hold one attempt, and one that keeps an idle process), and one that proves
//! a wall.

use std::process::ExitCode;
use std::sync::Arc;

use agent::{Agent, AgentEvent, Launch, Message};
use homing_drivers::wall::{DataPlace, Proving, Wall, prove_wall};
use homing_drivers::{Scripted, ScriptedConfig};
use kernel::{Fence, MessageId, SessionId};

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("supervise") => homing_drivers::supervise(),
        Some("scripted-agent") => homing_drivers::scripted_agent(),
        Some("probe-wall") => homing_drivers::wall::probe_wall(),
        Some("prove") => prove(),
        Some("daemon") => daemon(),
        Some("keeper") => keeper(),
        _ => ExitCode::FAILURE,
    }
}

/// `daemon PLACE SILENCE_MS SESSION TEXT`: runs one attempt and prints what the agent says.
#[tokio::main(flavor = "current_thread")]
async fn daemon() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let [place, silence_ms, session, text] = &arguments[..] else { return ExitCode::FAILURE };
    let agent = Scripted::new(config(place, silence_ms));
    let session: SessionId = session.parse().expect("a session");
    let id = MessageId::from_bits(1);
    let mut running = agent.start(Launch::new(session, fence(), id, place)).await.expect("it can be started");
    loop {
        match running.next().await {
            AgentEvent::Ready { .. } => {
                running.hand(Message { id, text: text.clone() }).await.expect("it waits for this");
            }
            AgentEvent::Text { text } => println!("{}", text.trim()),
            event if event.is_last() => return ExitCode::SUCCESS,
            _ => {}
        }
    }
}

/// `keeper PLACE SILENCE_MS SESSION TEXT`: runs one turn to its end, keeps the process, says `idle` and waits for ever.
#[tokio::main(flavor = "current_thread")]
async fn keeper() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let [place, silence_ms, session, text] = &arguments[..] else { return ExitCode::FAILURE };
    let agent = Scripted::new(ScriptedConfig { kept_max: 1, ..config(place, silence_ms) });
    let session: SessionId = session.parse().expect("a session");
    let id = MessageId::from_bits(1);
    let mut running = agent.start(Launch::new(session, fence(), id, place)).await.expect("it can be started");
    loop {
        match running.next().await {
            AgentEvent::Ready { .. } => {
                running.hand(Message { id, text: text.clone() }).await.expect("it waits for this");
            }
            event if event.is_last() => break,
            _ => {}
        }
    }
    println!("idle");
    std::future::pending().await
}

/// `prove PLACE KIND`: proves a wall of that kind around the data directory PLACE, and says what was tried.
#[tokio::main(flavor = "current_thread")]
async fn prove() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let [place, kind] = &arguments[..] else { return ExitCode::FAILURE };
    let data = DataPlace::of(place.as_ref()).expect("a directory");
    let kind = serde_json::from_value(serde_json::Value::String(kind.clone())).expect("a kind of wall");
    let proving = Proving {
        exe: std::env::current_exe().expect("we were started from somewhere"),
        locks: format!("{place}/attempts").into(),
        wall: Arc::new(Wall { kind, data: Some(data), ..Wall::default() }),
        server: std::process::id().cast_signed(),
    };
    let proof = prove_wall(&proving).await;
    for words in proof.words() {
        println!("{words}");
    }
    if proof.proved { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn config(place: &str, silence_ms: &str) -> ScriptedConfig {
    let exe = std::env::current_exe().expect("we were started from somewhere");
    let config = ScriptedConfig::new(exe, format!("{place}/home"), format!("{place}/locks"));
    let silence_ms_max = silence_ms.parse().expect("a number of milliseconds");
    ScriptedConfig { silence_ms_max, ..config }
}

/// The fence every test uses.
fn fence() -> Fence {
    Fence {
        term: kernel::Term(1),
        epoch: kernel::Epoch(1),
        turn: kernel::Turn(1),
        attempt: kernel::Attempt(1),
    }
}

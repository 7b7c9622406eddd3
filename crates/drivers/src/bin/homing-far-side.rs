//! For the tests of this room alone: the hidden commands of `homing` that run on the far side, and two daemons to be
//! killed or stopped: one that does nothing but hold one attempt, and one that keeps an idle process.

use std::process::ExitCode;

use agent::{Agent, AgentEvent, Launch, Message};
use homing_drivers::{Scripted, ScriptedConfig};
use kernel::{Fence, MessageId, SessionId};

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("supervise") => processes::supervise(),
        Some("scripted-agent") => homing_drivers::scripted_agent(),
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
    let mut running =
        agent.start(Launch::new(session, fence(), id, place.as_str())).await.expect("it can be started");
    loop {
        match running.next().await {
            AgentEvent::Ready { .. } => {
                running.hand(Message::new(id, text.clone())).await.expect("it waits for this");
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
    let mut running =
        agent.start(Launch::new(session, fence(), id, place.as_str())).await.expect("it can be started");
    loop {
        match running.next().await {
            AgentEvent::Ready { .. } => {
                running.hand(Message::new(id, text.clone())).await.expect("it waits for this");
            }
            event if event.is_last() => break,
            _ => {}
        }
    }
    println!("idle");
    std::future::pending().await
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

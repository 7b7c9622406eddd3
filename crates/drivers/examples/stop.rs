//! The cost of a stop, for the bench: from the order until every process was seen gone.
//!
//! `stop EXE DIR COUNT CHILDREN` lets the scripted agent start CHILDREN that leave it, each in a session of its own and deaf
//! to polite signals, and hang; then it stops the attempt without grace. COUNT times. Prints the median and the longest in
//! microseconds and the memory of a supervisor (its proportional set size) in bytes, as JSON. EXE is a `homing`.

use agent::{Agent, AgentEvent, Launch, Message, TreeName};
use homing_drivers::{Scripted, ScriptedConfig};
use kernel::{Attempt, Epoch, Fence, MessageId, SessionId, Term, Turn};
use processes::count_marked;
use std::path::Path;
use std::time::Instant;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [exe, dir, count, children] = &arguments[..] else { panic!("usage: stop EXE DIR COUNT CHILDREN") };
    let dir = std::path::absolute(dir).expect("a path");
    let (home, locks) = (dir.join("home"), dir.join("locks"));
    std::fs::create_dir_all(&dir).expect("a directory");
    let agent = Scripted::new(ScriptedConfig::new(exe, home, &locks));
    let (mut took, mut bytes) = (Vec::new(), 0);
    for number in 0..count.parse().expect("a number of stops") {
        let session = SessionId::from_bits(number + 1);
        let (us, supervisor) = stop(&agent, &dir, session, children).await;
        assert_eq!(count_marked(&TreeName::of(session), &locks), 0, "it was not true");
        took.push(us);
        bytes = bytes.max(supervisor);
    }
    took.sort_unstable();
    let (median, longest) = (took[took.len() / 2], took[took.len() - 1]);
    println!(r#"{{"median_us":{median},"longest_us":{longest},"supervisor_bytes":{bytes}}}"#);
}

/// Microseconds from the stop until everything was gone, and the bytes its supervisor had before.
async fn stop(agent: &Scripted, dir: &Path, session: SessionId, children: &str) -> (u128, u64) {
    let fence = Fence { term: Term(1), epoch: Epoch(1), turn: Turn(1), attempt: Attempt(1) };
    let id = MessageId::from_bits(1);
    let launch = Launch::new(session, fence, id, &*dir.to_string_lossy());
    let lock = dir.join("locks").join(format!("{}.lock", launch.tree));
    let mut running = agent.start(launch).await.expect("it can be started");
    loop {
        match running.next().await {
            AgentEvent::Ready { .. } => {
                let text = format!("!fork-bomb {children}\n!hang");
                running.hand(Message::new(id, text)).await.expect("it waits for this");
            }
            AgentEvent::Text { text } if text.contains("hanging") => break,
            event => assert!(!event.is_last(), "{event:?}"),
        }
    }
    let bytes = supervisor_bytes(&lock);
    let began = Instant::now();
    let verified = running.stop(0).await;
    let us = began.elapsed().as_micros();
    assert!(verified.gone, "{verified:?}");
    (us, bytes)
}

fn supervisor_bytes(lock: &Path) -> u64 {
    let holder: serde_json::Value = loop {
        // It may be in the midst of being written.
        if let Ok(holder) = serde_json::from_slice(&std::fs::read(lock).expect("a lock")) {
            break holder;
        }
    };
    let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", holder["pid"])).expect("it is there");
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).expect("a size");
    line.split_whitespace().next().and_then(|kilobytes| kilobytes.parse::<u64>().ok()).expect("a number")
        * 1024
}

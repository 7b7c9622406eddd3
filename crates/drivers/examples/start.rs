//! The cost of an agent's start without us, for the bench: how long until it is ready, and until its first word.
//!
//! `start EXE DIR COUNT` starts the scripted agent COUNT times as a plain process, COUNT times under a supervisor that waits for it,
//! as a server has one, and COUNT times under one that is started for it, in turns, and prints the medians in microseconds as JSON. EXE is
//! a `homing`.

use agent::{Agent, AgentEvent, Launch, Message};
use homing_drivers::{Scripted, ScriptedConfig};
use kernel::{Attempt, Epoch, Fence, MessageId, SessionId, Term, Turn};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use processes::SpareSupervisor;
use processes::wall::WallKind;

/// The time that a spare has to load before it is needed. It says nothing that one could wait for.
const SPARE_PAUSE: Duration = Duration::from_millis(20);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [exe, dir, count] = &arguments[..] else { panic!("usage: start EXE DIR COUNT") };
    let dir = std::path::absolute(dir).expect("a path");
    let (dir, count) = (dir.as_path(), count.parse().expect("a number of starts"));
    std::fs::create_dir_all(dir).expect("a directory");
    let config = ScriptedConfig::new(exe, dir.join("home"), dir.join("locks"));
    let spare = SpareSupervisor::new(exe, WallKind::Auto);
    let cold_agent = Scripted::new(config.clone());
    let agent = Scripted::new(ScriptedConfig { spare: Some(spare.clone()), ..config });
    let (mut alone, mut supervised, mut cold) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..count {
        alone.push(start_alone(Path::new(exe), &dir.join("home")));
        cold.push(start_supervised(&cold_agent, dir, number).await);
        // Between two starts of a server's there is time for it.
        spare.fill();
        assert!(spare.is_ready().await, "one can be made");
        tokio::time::sleep(SPARE_PAUSE).await;
        supervised.push(start_supervised(&agent, dir, number).await);
    }
    spare.close().await;
    let (alone, supervised, cold) = (medians(alone), medians(supervised), medians(cold));
    println!(r#"{{"alone":{alone},"supervised":{supervised},"cold":{cold}}}"#);
}

/// Microseconds until it was ready, and until its first word.
type Took = (u128, u128);

fn start_alone(exe: &Path, home: &Path) -> Took {
    let began = Instant::now();
    let mut child = Command::new(exe)
        .arg("scripted-agent")
        .arg(home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it can be started");
    let mut said = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    // What it says of itself comes before.
    while !line.contains("\"ready\"") {
        line.clear();
        assert!(said.read_line(&mut line).expect("a line") > 0, "it ended before it was ready");
    }
    let ready = began.elapsed().as_micros();
    let mut hears = child.stdin.take().expect("it is piped");
    hears.write_all(b"{\"type\":\"message\",\"id\":\"msg_1\",\"text\":\"hello\"}\n").expect("it listens");
    line.clear();
    said.read_line(&mut line).expect("a line");
    assert!(line.contains("#1 hello"), "{line}");
    let word = began.elapsed().as_micros();
    child.wait().expect("it is our child");
    (ready, word)
}

async fn start_supervised(agent: &Scripted, dir: &Path, number: u128) -> Took {
    let fence = Fence { term: Term(1), epoch: Epoch(1), turn: Turn(1), attempt: Attempt(1) };
    let id = MessageId::from_bits(1);
    let launch = Launch::new(SessionId::from_bits(number + 1), fence, id, &*dir.to_string_lossy());
    let began = Instant::now();
    let mut running = agent.start(launch).await.expect("it can be started");
    let (mut ready, mut word) = (0, 0);
    loop {
        match running.next().await {
            AgentEvent::Ready { .. } => {
                ready = began.elapsed().as_micros();
                running.hand(Message::new(id, "hello".to_owned())).await.expect("it waits for this");
            }
            AgentEvent::Text { .. } if word == 0 => word = began.elapsed().as_micros(),
            event if event.is_last() => return (ready, word),
            _ => {}
        }
    }
}

fn medians(took: Vec<Took>) -> String {
    let (mut ready, mut word): (Vec<u128>, Vec<u128>) = took.into_iter().unzip();
    ready.sort_unstable();
    word.sort_unstable();
    format!(r#"{{"ready_us":{},"word_us":{}}}"#, ready[ready.len() / 2], word[word.len() / 2])
}

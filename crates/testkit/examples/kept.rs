//! A turn of a real agent that is kept between turns, through us and without us: `kept AGENT HOMING COUNT PLACE`, for `claude` and `codex`.
//!
//! One stub model answers both, in turns, each as often first as the other, so that whatever else the machine does meets both. The bare
//! one is the agent's own program, started as its driver starts it, spoken to in the words that its driver uses (`testdata/kept` of the
//! drivers, which are held to them), and kept, with nothing in between: from the message on its input to the end of the turn on its
//! output. Ours is from the request to the final receipt, over a connection that is kept as the pipes are. Before each of them both rest,
//! because an agent goes on for a moment after the end of its turn (it tidies its memory, and writes files), and that is no work of the
//! other one's turn. The server's database lies below PLACE; the agents' home and directories lie where codex trusts a home, and in no
//! repository. Prints one JSON object.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use homing_testkit::{AgentFixture, Http, RealAgent, Setup};
use serde_json::{Value, json};

/// Turns before anything counts: they start the processes.
const WARM: usize = 3;
/// The rest before each turn: several times as long as an agent is seen to go on after the last one.
const REST: Duration = Duration::from_millis(60);
/// The longest that a turn may take before something is wrong.
const TURN_WAIT: Duration = Duration::from_secs(60);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut next = |what: &str| arguments.next().unwrap_or_else(|| panic!("{what} is missing"));
    let agent = match next("the agent").as_str() {
        "claude" => RealAgent::Claude,
        "codex" => RealAgent::Codex,
        other => panic!("nobody has measured {other}"),
    };
    let exe = next("the binary");
    let count: usize = next("the count").parse().expect("a number");
    let place = next("a directory");
    let stage = AgentFixture::new(agent);
    let around = stage.directory().parent().expect("it lies somewhere").display().to_string();
    let setup = Setup::new(exe).made_in(place).config(&configuration(&stage));
    let homing = setup.variable("HOMING_ROOTS", &around).start();
    let to = json!({
        "conversation": "api:bench/kept",
        "if_new": { "agent": agent.name(), "directory": stage.another_directory("ours") },
    });
    let mut client = Client::connect(&homing.http());
    let mut bare = Bare::start(&stage);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for number in 0..WARM + count {
        let words = format!("message {number}");
        let mut without = || {
            std::thread::sleep(REST);
            let began = Instant::now();
            bare.turn(number, &words);
            began.elapsed()
        };
        let mut with = || {
            std::thread::sleep(REST);
            let began = Instant::now();
            let receipt = client.turn(&to, &words);
            let took = began.elapsed();
            assert_eq!(receipt["state"], "answered", "{receipt}");
            took
        };
        let (through_us, alone) = if number % 2 == 0 {
            let alone = without();
            (with(), alone)
        } else {
            let through_us = with();
            (through_us, without())
        };
        if number >= WARM {
            ours.push(through_us);
            theirs.push(alone);
        }
    }
    ours.sort_unstable();
    theirs.sort_unstable();
    let quarters = |times: &[Duration]| [1, 2, 3].map(|quarter| micros(times[times.len() * quarter / 4]));
    let ([ours_25, ours, ours_75], [bare_25, bare, bare_75]) = (quarters(&ours), quarters(&theirs));
    let printed = json!({
        "ours_us": ours, "ours_p25_us": ours_25, "ours_p75_us": ours_75,
        "bare_us": bare, "bare_p25_us": bare_25, "bare_p75_us": bare_75,
    });
    println!("{printed}");
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn configuration(stage: &AgentFixture) -> String {
    let name = stage.agent.name();
    let env: Vec<String> = stage.env().iter().map(|(name, value)| format!("{name} = {value:?}")).collect();
    format!(
        "log = \"warn\"\ndefault_agent = {name:?}\n[agents.{name}]\nkind = {name:?}\nprogram = {:?}\nhome = {:?}\n[agents.{name}.env]\n{}\n",
        stage.program(),
        stage.home(),
        env.join("\n"),
    )
}

/// A client that keeps its connection.
struct Client {
    http: Http,
    line: BufReader<TcpStream>,
}

impl Client {
    fn connect(http: &Http) -> Self {
        let line = TcpStream::connect(&http.host).expect("the server is there");
        line.set_nodelay(true).expect("a socket");
        line.set_read_timeout(Some(TURN_WAIT)).expect("a socket");
        Self { http: http.clone(), line: BufReader::new(line) }
    }

    /// Says something, and answers the receipt once it is final.
    fn turn(&mut self, to: &Value, words: &str) -> Value {
        let began = Instant::now();
        let mut receipt =
            self.ask("POST", "/api/v1/messages", &json!({ "to": to, "text": words }).to_string());
        while ["waiting", "running"].contains(&receipt["state"].as_str().expect("a state")) {
            assert!(began.elapsed() < TURN_WAIT, "not final in time: {receipt}");
            let path = format!("/api/v1/messages/{}?wait=10", receipt["id"].as_str().expect("an id"));
            receipt = self.ask("GET", &path, "");
        }
        receipt
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> Value {
        let Http { host, token } = &self.http;
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n");
        let kind = format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
        self.line.get_mut().write_all([head, kind, body.to_owned()].concat().as_bytes()).expect("it listens");
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.line.read_line(&mut line).expect("it answers");
            let (name, value) = line.trim_end().split_once(':').unwrap_or((line.trim_end(), ""));
            match name.to_ascii_lowercase().as_str() {
                "" => break,
                "content-length" => length = value.trim().parse().expect("a length"),
                _ => {}
            }
        }
        let mut answer = vec![0; length];
        self.line.read_exact(&mut answer).expect("the whole answer");
        serde_json::from_slice(&answer).expect("the server speaks JSON")
    }
}

/// The words that a driver starts its agent with and speaks to it in.
fn words_to(agent: RealAgent) -> Value {
    let text = match agent {
        RealAgent::Codex => include_str!("../../drivers/testdata/kept/codex.json"),
        _ => include_str!("../../drivers/testdata/kept/claude.json"),
    };
    serde_json::from_str(text).expect("it is JSON")
}

/// The agent's own program, kept.
struct Bare {
    agent: RealAgent,
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    words: Value,
    /// Its id of the conversation.
    conversation: String,
}

impl Bare {
    fn start(stage: &AgentFixture) -> Self {
        let words = words_to(stage.agent);
        // Codex gives one of its own.
        let conversation = "5f0c3a52-6f0e-4b6e-9d58-0c7a52d1c7be".to_owned();
        let args = words["args"].as_array().expect("arguments").iter();
        let args = args.map(|word| word.as_str().expect("text").replace("CONVERSATION", &conversation));
        let directory = stage.another_directory("bare");
        // In a session of its own, as under a supervisor: Linux shares a busy processor out by sessions.
        let mut command = Command::new("setsid");
        command
            .arg(stage.program())
            .args(args)
            .current_dir(&directory)
            .env_clear()
            .envs(stage.env())
            .env("HOME", stage.home());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).stderr(Stdio::null());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the agent starts");
        let input = child.stdin.take().expect("it is piped");
        let output = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let opening = words["opening"].as_array().expect("words").clone();
        let mut bare = Self { agent: stage.agent, child, input, output, words, conversation };
        for line in opening {
            bare.tell(&line, &[("DIRECTORY", &directory.display().to_string())]);
            if line["type"] == "control_request" {
                bare.until(|said| said["type"] == "control_response");
            } else if let Some(id) = line.get("id") {
                let answer = bare.until(|said| said["id"] == *id && said["method"].is_null());
                assert!(answer.get("error").is_none(), "{line}: {answer}");
                if let Some(thread) = answer["result"]["thread"]["id"].as_str() {
                    bare.conversation = thread.to_owned();
                }
            }
        }
        bare
    }

    fn turn(&mut self, number: usize, words: &str) {
        let id = format!("00000000-0000-4000-8000-{number:012x}");
        let line = self.words["message"].clone();
        self.tell(&line, &[("WORDS", words), ("MESSAGE", &id), ("NUMBER", &id)]);
        match self.agent {
            RealAgent::Codex => {
                let end = self.until(|said| said["method"] == "turn/completed");
                assert_eq!(end["params"]["turn"]["status"], "completed", "{end}");
            }
            _ => drop(self.until(|said| said["type"] == "result")),
        }
    }

    /// Says it with these in the places of their names, in one write, as a driver would.
    fn tell(&mut self, line: &Value, of: &[(&str, &str)]) {
        let known = [("CONVERSATION", self.conversation.as_str()), ("SESSION", "bare"), ("VERSION", "1")];
        let put = |line: String, (name, value): &(&str, &str)| line.replace(name, value);
        let line = known.iter().chain(of).fold(line.to_string(), put);
        self.input.write_all(format!("{line}\n").as_bytes()).expect("the agent reads");
    }

    fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.output.next().expect("the agent goes on").expect("the agent writes");
            let line: Value = serde_json::from_str(&line).unwrap_or_default();
            if is_it(&line) {
                return line;
            }
        }
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

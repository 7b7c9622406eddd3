//! The HTTP fuzz: thousands of requests made from the contract, good ones and bad ones, against the real binary.
//!
//! Two lanes at once, each a server in a directory of its own and a schemathesis that asks it one thing at a time. What
//! is asked and checked is in `xtask/fuzz`: answers keep to the contract, and a refusal leaves every table but the audit
//! as it was. Here it is seen that the servers neither panic nor fall silent, and that they go in order when told to.
//!
//! The same seed makes the same requests but for the ids in them, which servers mint anew; `HOMING_FUZZ_SEED` takes
//! another one.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::counts::{Lane, Requests};
use crate::tools;

/// The longest that a lane may take: a few minutes on two idle cores, many times that beside other work.
const LANE_MAX: Duration = Duration::from_secs(30 * 60);
/// Fewer than one in so many may be refused for want of a credential: only tries to sign in are.
const STRANGERS_SHARE: u64 = 10;
/// The longest that a server may take to go.
const GO_MAX: Duration = Duration::from_secs(30);
/// The pause between two looks whether a process has ended.
const LOOK_PAUSE: Duration = Duration::from_millis(50);
const SEED: u64 = 4_747;
/// One place for a running turn, which a question of an agent holds: what the requests add waits, so that no agent
/// writes while a request is being judged, and none asks again before the lane is over.
const CONFIG: &str = "[limits]\nrequests_per_second = 0\nstrangers_per_second = 0\nsign_ins_per_minute = 0\nawake_max = 1\nwords_wait = \"1ms\"\n\n[policy]\ncrowded_wait = \"1h\"\n";

/// Asks the program that the tests were built with, and answers how often what was seen.
pub(super) fn http_fuzz(root: &Path, target: &Path, requests: &Requests) -> Result<String> {
    let place = target.join("http-fuzz");
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    let seed = match std::env::var("HOMING_FUZZ_SEED") {
        Ok(seed) => seed.parse().context("HOMING_FUZZ_SEED is a number")?,
        Err(_) => SEED,
    };
    let fuzz = &Fuzz {
        homing: target.join("debug/homing"),
        schemathesis: tools::schemathesis()?,
        rules: root.join("xtask/fuzz"),
        place,
    };
    let asked: Vec<Result<Counts>> = std::thread::scope(|scope| {
        let run = |(lane, seed)| scope.spawn(move || fuzz.run(lane, seed));
        let lanes: Vec<_> = requests.lanes.iter().zip(seed..).map(run).collect();
        lanes.into_iter().map(|lane| lane.join().expect("a lane does not panic")).collect()
    });
    let counts = sum(asked.into_iter().collect::<Result<_>>()?);
    let made = counts.get("requests").copied().unwrap_or(0);
    let said = format!("seed {seed}: {made} requests; {}", told(&counts));
    println!("{said}");
    let min = requests.min;
    ensure!(made >= min, "that is less than {min}: raise the numbers of requests in xtask/src/counts.rs");
    // A server that no longer knows our credential refuses everything, and keeps every promise by that.
    let unknown = counts.get("status 401").copied().unwrap_or(0);
    ensure!(
        unknown * STRANGERS_SHARE < made,
        "{unknown} of them were asked by nobody: a request has ended our credential"
    );
    Ok(said)
}

/// The counts of what was seen.
type Counts = BTreeMap<String, u64>;

fn sum(lanes: Vec<Counts>) -> Counts {
    let mut all = Counts::new();
    for (name, count) in lanes.into_iter().flatten() {
        *all.entry(name).or_default() += count;
    }
    all
}

/// The statuses in a line. The operations are for whoever opens the report.
fn told(counts: &Counts) -> String {
    let shown = counts.iter().filter(|(name, _)| !name.starts_with("operation") && *name != "requests");
    shown.map(|(name, count)| format!("{name}: {count}")).collect::<Vec<_>>().join(", ")
}

struct Fuzz {
    homing: PathBuf,
    schemathesis: PathBuf,
    rules: PathBuf,
    place: PathBuf,
}

impl Fuzz {
    fn run(&self, lane: &Lane, seed: u64) -> Result<Counts> {
        let place = self.place.join(lane.name);
        fs::create_dir_all(place.join("data"))?;
        make_repository(&place)?;
        let mut server = FuzzServer::start(&self.homing, &place)?;
        let asked = self.ask(lane, seed, &server, &place).with_context(|| format!("the lane {}", lane.name));
        let log = || fs::read_to_string(place.join("server.log")).unwrap_or_default();
        let counts = asked.with_context(|| format!("the end of the server's log:\n{}", last(&log(), 20)))?;
        ensure!(server.answers()?, "the server has fallen silent:\n{}", last(&log(), 20));
        let status = server.go()?;
        ensure!(status.success(), "told to go, the server ended with {status}:\n{}", last(&log(), 20));
        let panics: Vec<String> = log().lines().filter(|line| line.contains("panic")).map(cut).collect();
        ensure!(panics.is_empty(), "the server has panicked:\n{}", panics.join("\n"));
        Ok(counts)
    }

    fn ask(&self, lane: &Lane, seed: u64, server: &FuzzServer, place: &Path) -> Result<Counts> {
        let (report, said) = (place.join("report.json"), place.join("schemathesis.log"));
        let mut command = Command::new(&self.schemathesis);
        command.arg("--config-file").arg(self.rules.join("schemathesis.toml")).arg("run");
        command.arg(format!("{}/api/v1/openapi.json", server.url));
        command.arg("--header").arg(format!("Authorization: Bearer {}", server.token));
        command.args(["--no-color", "--phases", lane.phases, "--max-examples", &lane.each.to_string()]);
        command.args(lane.operations);
        command.args(["--seed", &seed.to_string()]);
        command.env("SCHEMATHESIS_HOOKS", self.rules.join("hooks.py")).env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("HOMING_FUZZ_DATA", place.join("data")).env("HOMING_FUZZ_REPORT", &report);
        let out = fs::File::create(&said)?;
        let errors = out.try_clone()?;
        command.current_dir(place).stdin(Stdio::null()).stdout(out).stderr(errors);
        let mut child = command.spawn().context("schemathesis does not start")?;
        let ended = wait(&mut child, LANE_MAX)?;
        let said = fs::read_to_string(&said)?;
        match ended {
            Some(status) if status.success() => {}
            Some(status) => bail!("schemathesis (seed {seed}) ended with {status}:\n{}", last(&said, 150)),
            None => bail!("schemathesis (seed {seed}) did not end in {LANE_MAX:?}:\n{}", last(&said, 20)),
        }
        serde_json::from_str(&fs::read_to_string(report)?).context("the hooks' report")
    }
}

/// Sessions may go into worktrees: of a repository of the lane's own, in which everything is ignored but one file.
fn make_repository(place: &Path) -> Result<()> {
    fs::write(place.join(".gitignore"), "*\n")?;
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=fuzz", "-c", "user.email=fuzz@localhost", "-c", "commit.gpgsign=false"]);
        tools::run(git.args(arguments).current_dir(place).env("GIT_CONFIG_GLOBAL", "/dev/null"))
    };
    git(&["init", "--quiet"])?;
    git(&["add", "--force", ".gitignore"])?;
    git(&["commit", "--quiet", "--message", "ground"])
}

/// The last lines of a text, none of them endless: requests at the edges are long.
fn last(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    all[all.len().saturating_sub(lines)..].iter().copied().map(cut).collect::<Vec<_>>().join("\n")
}

fn cut(line: &str) -> String {
    line.chars().take(400).collect()
}

fn wait(child: &mut Child, longest: Duration) -> Result<Option<ExitStatus>> {
    let began = Instant::now();
    while began.elapsed() < longest {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(LOOK_PAUSE);
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

/// The server of a lane. It is ended when this is dropped.
struct FuzzServer {
    child: Child,
    url: String,
    token: String,
}

impl FuzzServer {
    fn start(homing: &Path, place: &Path) -> Result<Self> {
        let data = place.join("data");
        fs::write(data.join("homing.toml"), CONFIG)?;
        let mut command = Command::new(homing);
        for name in ["HOMING_URL", "HOMING_TOKEN", "HOMING_LISTEN", "HOMING_LOG", "RUST_LOG"] {
            command.env_remove(name);
        }
        command.env("HOMING_DEFAULT_AGENT", "scripted");
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&data).current_dir(place);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(place.join("server.log"))?);
        let mut child = command.spawn().context("the server does not start")?;
        let mut url = String::new();
        // It prints its address once it can be asked, or ends.
        BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut url)?;
        let mut server = Self { child, url: url.trim().to_owned(), token: String::new() };
        ensure!(server.url.starts_with("http://"), "the server printed {url:?} and no address");
        server.token = fs::read_to_string(data.join("token"))?.trim().to_owned();
        Ok(server)
    }

    /// True if it can still be asked something that needs the store.
    fn answers(&self) -> Result<bool> {
        let host = self.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(host)?;
        stream.set_read_timeout(Some(GO_MAX))?;
        write!(
            stream,
            "GET /readyz HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\n\r\n",
            self.token
        )?;
        let mut head = [0; 12];
        stream.read_exact(&mut head)?;
        Ok(&head == b"HTTP/1.1 200")
    }

    /// Tells it to go, as a service manager would.
    fn go(&mut self) -> Result<ExitStatus> {
        tools::run(Command::new("kill").args(["-TERM", &self.child.id().to_string()]))?;
        wait(&mut self.child, GO_MAX)?
            .with_context(|| format!("told to go, the server was there for {GO_MAX:?}"))
    }
}

impl Drop for FuzzServer {
    fn drop(&mut self) {
        // If it has gone already, nothing is left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_added_up_and_told_without_their_operations() {
        let lane = |requests| {
            Counts::from([("requests".into(), requests), ("status 200".into(), 3), ("operation x".into(), 1)])
        };
        let counts = sum(vec![lane(4), lane(5)]);
        assert_eq!(counts["requests"], 9);
        assert_eq!(told(&counts), "status 200: 6");
    }

    #[test]
    fn only_the_last_lines_are_shown_and_none_is_endless() {
        let text = format!("a\n\nb\n{}\n", "c".repeat(1_000));
        assert_eq!(last(&text, 2), format!("b\n{}", "c".repeat(400)));
    }
}

//! Where the bench happens: the programs it builds, a directory on the disk of the checkout, and servers in it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::tools;

/// The longest that a server may take to come or go before something is wrong.
const SERVER_WAIT: Duration = Duration::from_secs(20);

/// Builds everything that is measured or measures.
pub(crate) fn build(root: &Path) -> Result<()> {
    let examples = [
        ("homing-testkit", "load"),
        ("homing-testkit", "clock-agent"),
        ("homing-testkit", "kept"),
        ("homing-server", "bare"),
        ("homing-drivers", "start"),
        ("homing-drivers", "stop"),
        ("homing-worktrees", "scope"),
        ("homing-store-sqlite", "raw"),
        ("homing-store-sqlite", "fill"),
        ("homing-store-sqlite", "people"),
    ];
    let mut cargo = tools::cargo();
    cargo.current_dir(root).args([
        "build",
        "--release",
        "--locked",
        "--package",
        "homing",
        "--bin",
        "homing",
    ]);
    for (package, example) in examples {
        cargo.args(["--package", package, "--example", example]);
    }
    tools::run(&mut cargo)
}

fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), |dir| root.join(dir))
}

/// The share of the machine that others use while we do nothing.
pub(crate) fn busy_share() -> Result<f64> {
    let before = processor_time()?;
    std::thread::sleep(Duration::from_secs(1));
    let after = processor_time()?;
    let (idle, all) = (after.0 - before.0, after.1 - before.1);
    Ok(1.0 - idle / all.max(1.0))
}

/// Idle time and all time of all processors since the machine was started, in the kernel's ticks.
fn processor_time() -> Result<(f64, f64)> {
    let text = fs::read_to_string("/proc/stat")?;
    let fields = text.lines().next().unwrap_or_default().split_whitespace().skip(1);
    let ticks: Vec<f64> = fields.map(str::parse).collect::<Result<_, _>>()?;
    ensure!(ticks.len() > 4, "/proc/stat is not as we know it");
    Ok((ticks[3] + ticks[4], ticks.iter().sum()))
}

/// The programs, the directory, and how thoroughly to measure. The directory goes when this does.
pub(crate) struct Bench {
    programs: PathBuf,
    place: PathBuf,
    pub(crate) rounds: usize,
    pub(crate) long: bool,
}

impl Bench {
    pub(crate) fn prepare(root: &Path, rounds: usize, long: bool) -> Result<Self> {
        let target = target(root);
        // Below the target directory: /tmp is often memory, where a durable write costs nothing.
        let place = target.join("bench").join(std::process::id().to_string());
        fs::create_dir_all(&place)?;
        Ok(Self { programs: target.join("release"), place, rounds, long })
    }

    /// A directory of this name, empty.
    pub(crate) fn fresh(&self, name: &str) -> Result<PathBuf> {
        let dir = self.place.join(name);
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
        fs::create_dir_all(&dir)?;
        // A server refuses a directory with things in it that others can read.
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o700))?;
        Ok(dir)
    }

    /// The binary.
    pub(crate) fn homing(&self) -> PathBuf {
        self.programs.join("homing")
    }

    pub(crate) fn example(&self, name: &str) -> Command {
        Command::new(self.programs.join("examples").join(name))
    }

    /// Runs an example that prints one JSON object.
    pub(crate) fn ask_example(&self, name: &str, arguments: &[&str]) -> Result<Value> {
        printed(self.example(name).args(arguments))
    }

    /// A data directory with so many sessions, and one session for each number of facts; made once per run.
    pub(crate) fn filled(&self, sessions: usize, facts: &[usize]) -> Result<Filled> {
        let data = self.place.join(format!("filled-{sessions}"));
        let about = self.place.join(format!("filled-{sessions}.json"));
        if !about.exists() {
            let mut fill = self.example("fill");
            fill.arg(&data).arg(sessions.to_string()).args(facts.iter().map(usize::to_string));
            fs::write(&about, printed(&mut fill)?.to_string())?;
        }
        let about: Value = serde_json::from_str(&fs::read_to_string(about)?)?;
        let long = about["long"].as_array().into_iter().flatten();
        Ok(Filled { data, long: long.filter_map(Value::as_str).map(str::to_owned).collect() })
    }

    /// Starts a server in a fresh directory.
    pub(crate) fn serve(&self, name: &str, config: &str) -> Result<BenchServer> {
        let data = self.fresh(name)?;
        fs::write(data.join("homing.toml"), config)?;
        self.serve_in(&data)
    }

    /// Starts a server on a data directory, and answers when it is ready.
    pub(crate) fn serve_in(&self, data: &Path) -> Result<BenchServer> {
        let config = data.join("homing.toml");
        let text = if config.exists() { fs::read_to_string(&config)? } else { String::new() };
        fs::write(config, without_pace(&text))?;
        let mut command = Command::new(self.homing());
        for name in
            ["HOMING_URL", "HOMING_TOKEN", "HOMING_LISTEN", "HOMING_LOG", "RUST_LOG", "HOMING_SCRIPTED_LOG"]
        {
            command.env_remove(name);
        }
        command.env("HOMING_DATA", data).env("XDG_CONFIG_HOME", data).env("HOMING_DEFAULT_AGENT", "scripted");
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        BenchServer::start(command, Some(data))
    }

    /// Starts the bare handler.
    pub(crate) fn serve_bare(&self) -> Result<BenchServer> {
        BenchServer::start(self.example("bare"), None)
    }

    /// Lets the load generator measure something.
    pub(crate) fn load(&self, server: &BenchServer, what: &str, asked: &[(&str, &str)]) -> Result<Value> {
        let mut load = self.example("load");
        load.arg(what).arg(format!("host={}", server.host)).arg(format!("token={}", server.token));
        load.arg(format!("pid={}", server.pid()));
        printed(load.args(asked.iter().map(|(name, value)| format!("{name}={value}"))))
            .with_context(|| format!("{what} {asked:?}; the server's log: {}", server.log()))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // What cannot be removed is below target, where nobody minds.
        let _ = fs::remove_dir_all(&self.place);
    }
}

/// A data directory that was filled.
pub(crate) struct Filled {
    pub(crate) data: PathBuf,
    /// The sessions with many facts.
    pub(crate) long: Vec<String>,
}

/// A bench asks faster than anybody else, and how fast somebody may ask is not what it measures.
fn without_pace(config: &str) -> String {
    const PACE: &str = "[limits]\nrequests_per_second = 0\n";
    match config.split_once("[limits]\n") {
        Some(_) if config.contains(PACE) => config.to_owned(),
        Some((before, after)) => format!("{before}{PACE}{after}"),
        None => format!("{config}\n{PACE}"),
    }
}

fn printed(command: &mut Command) -> Result<Value> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "{:?} ended with {}", command.get_program(), output.status);
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// A server that runs. It is ended when this is dropped.
pub(crate) struct BenchServer {
    child: Child,
    host: String,
    token: String,
    log: Option<PathBuf>,
    /// From the start of the process until it said that it was ready.
    pub(crate) took: Duration,
}

impl BenchServer {
    fn start(mut command: Command, data: Option<&Path>) -> Result<Self> {
        let log = data.map(|data| data.join("bench.log"));
        let errors = match &log {
            Some(log) => fs::File::options().create(true).append(true).open(log)?.into(),
            None => Stdio::inherit(),
        };
        let began = Instant::now();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors).spawn()?;
        let mut url = String::new();
        BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut url)?;
        let host = url.trim().trim_start_matches("http://").to_owned();
        let mut server = Self { child, host, token: "none".to_owned(), log, took: Duration::ZERO };
        if let Some(data) = data {
            ensure!(!server.host.is_empty(), "the server did not come: {}", server.log());
            server.token = fs::read_to_string(data.join("token"))?.trim().to_owned();
            server.wait_until_ready(began)?;
        }
        server.took = began.elapsed();
        Ok(server)
    }

    fn wait_until_ready(&mut self, began: Instant) -> Result<()> {
        while self.status("/readyz").ok() != Some(200) {
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended with {status}: {}", self.log());
            }
            ensure!(began.elapsed() < SERVER_WAIT, "the server is not ready: {}", self.log());
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }

    /// The status of a GET.
    fn status(&self, path: &str) -> Result<u16> {
        let mut stream = TcpStream::connect(&self.host)?;
        let Self { host, token, .. } = self;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n")?;
        let mut head = [0; 12];
        stream.read_exact(&mut head)?;
        Ok(std::str::from_utf8(&head[9..])?.parse()?)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The memory that is its own, in bytes: its proportional set size.
    pub(crate) fn pss_bytes(&self) -> Result<f64> {
        let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.pid()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).context("no PSS")?;
        let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kilobytes * 1024.0)
    }

    fn log(&self) -> String {
        let text = self.log.as_ref().and_then(|log| fs::read_to_string(log).ok()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(10)..].join("\n")
    }

    /// Asks it to go, and waits until it has.
    pub(crate) fn stop(mut self) -> Result<()> {
        tools::run(Command::new("kill").args(["-TERM", &self.pid().to_string()]))?;
        let began = Instant::now();
        while self.child.try_wait()?.is_none() {
            ensure!(began.elapsed() < SERVER_WAIT, "the server does not go: {}", self.log());
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}

impl Drop for BenchServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

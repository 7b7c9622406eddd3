//! The server under test: the real binary in a directory of its own, with everything cleaned up in the end.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::JoinHandle;

use serde_json::Value;

use crate::leftovers::{Leftover, leftovers};
use crate::{AgentLogLine, Http, Port, agent_log, eventually};

/// The settings that a server is started with.
#[derive(Debug, Clone)]
pub struct Setup {
    exe: PathBuf,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    config: Option<String>,
    is_ordinary: bool,
    /// Where its directory is made.
    made_in: PathBuf,
}

/// The user and group that nobody has, and everybody knows.
const NOBODY: u32 = 65_534;

impl Setup {
    /// `exe` is the binary: `env!("CARGO_BIN_EXE_homing")`, or another build of it.
    pub fn new(exe: impl Into<PathBuf>) -> Self {
        Self {
            exe: exe.into(),
            arguments: Vec::new(),
            variables: Vec::new(),
            config: None,
            is_ordinary: false,
            made_in: std::env::temp_dir(),
        }
    }

    /// Where homes of real agents may be.
    #[must_use]
    pub fn for_real_agents(mut self) -> Self {
        self.made_in = crate::agent_fixture::not_tmp();
        self
    }

    /// With its directory below this one.
    #[must_use]
    pub fn made_in(mut self, place: impl Into<PathBuf>) -> Self {
        self.made_in = place.into();
        self
    }

    /// With one more argument for `serve`.
    #[must_use]
    pub fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// With one more variable in its environment.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With this as `homing.toml` in its data directory.
    #[must_use]
    pub fn config(mut self, toml: &str) -> Self {
        self.config = Some(toml.to_owned());
        self
    }

    /// As a user with no rights of their own, if the test is root; otherwise the test's user is one.
    #[must_use]
    pub fn ordinary(mut self) -> Self {
        self.is_ordinary = rustix::process::geteuid().is_root();
        self
    }

    /// Starts it in a fresh directory.
    #[track_caller]
    pub fn start(self) -> Homing {
        let root =
            tempfile::Builder::new().prefix("homing-test-").tempdir_in(&self.made_in).expect("a directory");
        let (port, http) = (Port::reserve(), Http::new("", ""));
        let mut homing = Homing { setup: self, root, port, child: None, drains: Vec::new(), http };
        fs::create_dir_all(homing.place()).expect("a directory to stand in");
        fs::create_dir_all(homing.home()).expect("a home");
        if let Some(config) = homing.setup.config.clone() {
            fs::create_dir_all(homing.data()).expect("a data directory");
            fs::write(homing.data().join("homing.toml"), config).expect("a config file");
        }
        if homing.setup.is_ordinary {
            // Where the binary is need not be open to everybody.
            let exe = homing.root().join("homing");
            fs::copy(&homing.setup.exe, &exe).expect("a copy of the binary");
            homing.setup.exe = exe;
        }
        homing.restart();
        homing
    }
}

/// A server, its directory, and whatever is to be asked of them. Everything is ended and removed when it is dropped.
#[derive(Debug)]
pub struct Homing {
    setup: Setup,
    root: tempfile::TempDir,
    /// Its own over all its starts: other tests take any port they get.
    port: Port,
    child: Option<Child>,
    drains: Vec<JoinHandle<()>>,
    http: Http,
}

/// The output of a command, and its end.
#[derive(Debug, Clone)]
pub struct CommandOutput {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl CommandOutput {
    /// Standard output, if it ended with this code; else the test fails and shows everything.
    #[track_caller]
    pub fn expect(&self, code: i32) -> &str {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        &self.out
    }

    /// Standard output as JSON, if it ended with this code.
    #[track_caller]
    pub fn json(&self, code: i32) -> Value {
        serde_json::from_str(self.expect(code)).unwrap_or_else(|why| panic!("{why}: {}", self.out))
    }
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

impl Homing {
    /// The usual server in a fresh directory.
    #[track_caller]
    pub fn start(exe: impl Into<PathBuf>) -> Self {
        Setup::new(exe).start()
    }

    /// Starts it, always in the same directory and on the same port. Answers once it can be asked.
    #[track_caller]
    pub fn restart(&mut self) {
        self.kill9();
        self.give_away();
        let mut command = self.command();
        command.args(["serve", "--listen", &self.port.address().to_string()]).args(&self.setup.arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary can be started");
        let mut printed = BufReader::new(child.stdout.take().expect("it is piped"));
        let log = fs::File::options().create(true).append(true).open(self.log_path()).expect("a log file");
        let errors = BufReader::new(child.stderr.take().expect("it is piped"));
        self.drains = vec![std::thread::spawn(move || drain(errors, log))];
        self.child = Some(child);
        let mut url = String::new();
        let read = printed.read_line(&mut url);
        assert!(
            read.is_ok() && (url.starts_with("http://") || url.starts_with("https://")),
            "no address in {url:?}; its log:\n{}",
            self.server_log()
        );
        self.drains.push(std::thread::spawn(move || drain(printed, std::io::sink())));
        let token = fs::read_to_string(self.data().join("token")).expect("a server has a token");
        self.http = Http::new(&url, &token);
    }

    /// Ends it as a power cut would. Its agents go by themselves; `until_nothing_is_left` waits for that.
    pub fn kill9(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        for drain in self.drains.drain(..) {
            let _ = drain.join();
        }
    }

    /// Asks it to go (SIGTERM), and answers how it went.
    #[track_caller]
    pub fn terminate(&mut self) -> ExitStatus {
        let pid = self.pid();
        self.signal(rustix::process::Signal::TERM);
        let child = self.child.as_mut().expect("it runs");
        let status =
            eventually(&format!("process {pid} goes"), || child.try_wait().expect("it is our child"));
        self.kill9();
        status
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid().cast_signed()).expect("a process has a number");
        rustix::process::kill_process(pid, signal).expect("it is our child");
    }

    /// Its process.
    #[track_caller]
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// A client of it, with the token of the machine's person.
    pub fn http(&self) -> Http {
        self.http.clone()
    }

    /// Says something to a conversation, and answers the receipt.
    #[track_caller]
    pub fn send(&self, conversation: &str, text: &str) -> Value {
        self.http.send(&serde_json::json!({ "conversation": conversation }), text)
    }

    /// Says something to a conversation, waits, and answers what the agent said.
    #[track_caller]
    pub fn converse(&self, conversation: &str, text: &str) -> String {
        self.http.converse(&serde_json::json!({ "conversation": conversation }), text)
    }

    /// Its data directory.
    pub fn data(&self) -> PathBuf {
        self.root.path().join("data")
    }

    /// Everything of this test: the data directory, the logs, and room for more.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// The directory in which its commands are run, unless a test says otherwise.
    pub fn place(&self) -> PathBuf {
        self.root.path().join("place")
    }

    /// The home of the person who runs it, and of whatever agents use it.
    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// Gives everything below its directory to the user that it runs as, if that is another one. What the test makes later is the
    /// test's until then.
    pub fn give_away(&self) {
        if self.setup.is_ordinary {
            let owner = format!("{NOBODY}:{NOBODY}");
            let given = Command::new("chown").args(["-R", "-h", &owner]).arg(self.root()).status();
            assert!(given.expect("there is chown").success(), "it can be given away");
        }
    }

    /// The binary with nothing of the environment that could point it elsewhere.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.setup.exe);
        if self.setup.is_ordinary {
            command.uid(NOBODY).gid(NOBODY);
        }
        for name in [
            "HOMING_URL",
            "HOMING_TOKEN",
            "HOMING_TOKEN_FILE",
            "HOMING_CA",
            "HOMING_LISTEN",
            "HOMING_LOG",
            "RUST_LOG",
            "NO_COLOR",
        ] {
            command.env_remove(name);
        }
        command.env("HOMING_DATA", self.data()).env("XDG_CONFIG_HOME", self.root.path().join("config"));
        command.env("HOMING_SCRIPTED_LOG", self.agent_log_path());
        // Tests let sessions work anywhere below their own directory.
        command.env("HOMING_ROOTS", self.root());
        // Nobody's real agent, and nobody's sign-in, unless a test says so.
        command.env("HOMING_DEFAULT_AGENT", "scripted").env("HOME", self.home());
        command.envs(self.setup.variables.iter().map(|(name, value)| (name, value)));
        command.current_dir(self.place());
        command
    }

    /// Runs a command of it to its end.
    pub fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.run_in(&self.place(), arguments)
    }

    /// Runs a command of it in a directory.
    pub fn run_in(&self, directory: &Path, arguments: &[&str]) -> CommandOutput {
        let mut command = self.command();
        command.args(arguments).current_dir(directory).stdin(Stdio::null());
        command.output().expect("the binary can be run").into()
    }

    /// Runs a command of it with something to read.
    pub fn run_with(&self, arguments: &[&str], read: &str) -> CommandOutput {
        let mut command = self.command();
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary can be run");
        let mut stdin = child.stdin.take().expect("it is piped");
        // A command that does not read to the end is no failure of the test.
        let _ = stdin.write_all(read.as_bytes());
        drop(stdin);
        child.wait_with_output().expect("it ends").into()
    }

    /// The turns that really ran, by the scripted agent's own account.
    pub fn agent_log(&self) -> Vec<AgentLogLine> {
        agent_log(&self.agent_log_path())
    }

    fn agent_log_path(&self) -> PathBuf {
        self.root.path().join("agent.log")
    }

    /// The server's log so far, over all its starts.
    pub fn server_log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    fn log_path(&self) -> PathBuf {
        self.root.path().join("server.log")
    }

    /// Processes that have to do with this directory, other than the server itself and the workers that rest while it is there.
    pub fn leftovers(&self) -> Vec<Leftover> {
        let server: Vec<u32> = self.child.iter().map(Child::id).collect();
        let mut found = leftovers(&self.data(), &server);
        found.retain(|process| server.is_empty() || !process.is_workers);
        found
    }

    /// Waits until no process but the server is left.
    #[track_caller]
    pub fn until_nothing_is_left(&self) {
        let mut last = Vec::new();
        eventually("nothing is left", || {
            last = self.leftovers();
            last.is_empty().then_some(())
        });
    }
}

impl Drop for Homing {
    fn drop(&mut self) {
        self.kill9();
        if std::thread::panicking() {
            eprintln!("the server's log:\n{}", self.server_log());
            return;
        }
        // Supervisors end their trees when the server is gone; the directory is theirs until then.
        self.until_nothing_is_left();
    }
}

/// Copies what a process prints, so that it never waits for us. Ends with the process.
fn drain(from: impl BufRead, mut to: impl Write) {
    for line in from.lines() {
        let Ok(line) = line else { return };
        let _ = writeln!(to, "{line}");
    }
}

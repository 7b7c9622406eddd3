//! A place for one test: a directory, a driver, and eyes for what is left of its processes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agent::conformance::Candidate;
use agent::{Agent, AgentEvent, Launch, Message, Running, TreeName};
use homing_drivers::{Scripted, ScriptedConfig, count_marked};
use kernel::{Fence, MessageId, SessionId};
use tempfile::TempDir;

/// How long a test waits for one thing.
pub(crate) const WAIT: Duration = Duration::from_secs(20);

pub(crate) struct Bench {
    pub(crate) place: TempDir,
    pub(crate) agent: Scripted,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(|config| config)
    }

    /// With the driver set up otherwise.
    pub(crate) fn with(change: impl FnOnce(ScriptedConfig) -> ScriptedConfig) -> Self {
        let place = tempfile::tempdir().unwrap();
        let (home, locks) = (place.path().join("home"), place.path().join("locks"));
        std::fs::create_dir_all(&locks).unwrap();
        let log = Some(place.path().join("log"));
        let config = ScriptedConfig { log, ..ScriptedConfig::new(far_side(), home, locks) };
        Self { agent: Scripted::new(change(config)), place }
    }

    pub(crate) fn locks(&self) -> PathBuf {
        self.place.path().join("locks")
    }

    pub(crate) fn launch(&self) -> Launch {
        Launch::new(self.session(), fence(), MessageId::from_bits(1), self.directory())
    }

    /// An attempt that was handed these words and has said `until`.
    pub(crate) async fn attempt(&self, launch: &Launch, text: &str, until: &str) -> Box<dyn Running> {
        let mut running = self.agent.start(launch.clone()).await.unwrap();
        assert!(matches!(running.next().await, AgentEvent::Ready { .. }));
        running.hand(Message { id: launch.message, text: text.to_owned() }).await.unwrap();
        let mut said = String::new();
        while !said.contains(until) {
            match running.next().await {
                AgentEvent::Text { text } => said.push_str(&text),
                event => assert!(!event.is_last(), "{event:?} after {said:?}"),
            }
        }
        running
    }

    /// What the lock file says of the supervisor.
    pub(crate) fn supervisor_of(&self, tree: &TreeName) -> i32 {
        let text = std::fs::read_to_string(self.locks().join(format!("{tree}.lock"))).unwrap();
        let holder: serde_json::Value = serde_json::from_str(&text).unwrap();
        holder["pid"].as_i64().unwrap() as i32
    }

    /// What the agent wrote about itself.
    pub(crate) fn log(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.place.path().join("log")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits until nothing is left, and fails if that takes too long.
    pub(crate) async fn nothing_left_within(&self, tree: &TreeName, wait: Duration) {
        let deadline = Instant::now() + wait;
        while self.left(tree) > 0 || self.locks().join(format!("{tree}.lock")).exists() {
            assert!(Instant::now() < deadline, "{} processes left of {tree}", self.left(tree));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Candidate for Bench {
    fn agent(&self) -> &dyn Agent {
        &self.agent
    }

    fn directory(&self) -> PathBuf {
        self.place.path().canonicalize().unwrap()
    }

    fn session(&self) -> SessionId {
        let mut bytes = [0; 16];
        std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom").unwrap(), &mut bytes).unwrap();
        SessionId::from_bits(u128::from_le_bytes(bytes) >> 1)
    }

    fn left(&self, tree: &TreeName) -> usize {
        count_marked(tree, &self.locks())
    }
}

pub(crate) fn far_side() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_homing-far-side"))
}

pub(crate) fn fence() -> Fence {
    Fence {
        term: kernel::Term(1),
        epoch: kernel::Epoch(1),
        turn: kernel::Turn(1),
        attempt: kernel::Attempt(1),
    }
}

pub(crate) fn signal(pid: i32, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// How many processes have these words in their command line.
pub(crate) fn count_commands(words: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).replace('\0', " ").contains(words)).count()
}

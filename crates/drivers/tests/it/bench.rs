//! A place for one test: a directory, a driver, and eyes for what is left of its processes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agent::conformance::{Blow, Candidate, Cannot, Dialect, ScriptedDialect, StoryResult, Weather, Wish};
use agent::{Agent, AgentEvent, Launch, Message, Running, TreeName};
use homing_drivers::{Scripted, ScriptedConfig};
use kernel::{Failure, Fence, GroundPath, MessageId, Native, SessionId};
use processes::wall::WallKind;
use processes::{SpareSupervisor, count_marked};
use rustix::process::Signal;
use tempfile::TempDir;

/// The longest that a test waits for one thing.
pub(crate) const WAIT: Duration = Duration::from_secs(20);

pub(crate) struct Bench {
    pub(crate) place: TempDir,
    pub(crate) agent: Scripted,
    /// True if its agents have namespaces of processes.
    pub(crate) has_namespace: bool,
    spare: Option<SpareSupervisor>,
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
        let config = change(config);
        let has_namespace = matches!(config.wall.kind, WallKind::Auto | WallKind::Mounts);
        let spare = config.spare.clone();
        Self { agent: Scripted::new(config), place, has_namespace, spare }
    }

    /// With a spare supervisor, as a server has one.
    pub(crate) fn with_spare() -> Self {
        let spare = SpareSupervisor::new(far_side(), WallKind::Auto);
        Self::with(|config| ScriptedConfig { spare: Some(spare), ..config })
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.place.path().canonicalize().unwrap()
    }

    pub(crate) fn locks(&self) -> PathBuf {
        self.place.path().join("locks")
    }

    pub(crate) fn launch(&self) -> Launch {
        Launch::new(self.session(), fence(), MessageId::from_bits(1), ground(self.directory()))
    }

    /// An attempt that was handed these words and has said `until`.
    pub(crate) async fn attempt(&self, launch: &Launch, text: &str, until: &str) -> Box<dyn Running> {
        if let Some(spare) = &self.spare {
            spare.fill();
            assert!(spare.is_ready().await);
        }
        let mut running = self.agent.start(launch.clone()).await.unwrap();
        be_ready(&mut *running).await;
        running.hand(Message::new(launch.message, text.to_owned())).await.unwrap();
        let mut said = String::new();
        while !said.contains(until) {
            match running.next().await {
                AgentEvent::Text { text } => said.push_str(&text),
                event => assert!(!event.is_last(), "{event:?} after {said:?}"),
            }
            // Only the end counts, however much it says.
            said.drain(..said.floor_char_boundary(said.len().saturating_sub(1_000)));
        }
        running
    }

    /// A whole turn with these words.
    pub(crate) async fn turn(&self, launch: &Launch, text: &str) -> Turned {
        let mut running = self.agent.start(launch.clone()).await.unwrap();
        be_ready(&mut *running).await;
        running.hand(Message::new(launch.message, text.to_owned())).await.unwrap();
        let (events, text) = to_the_end(&mut *running).await;
        Turned { events, text, pid: self.agent_pid(launch) }
    }

    /// The process in which the session's agent last acted.
    pub(crate) fn agent_pid(&self, launch: &Launch) -> i32 {
        let session = launch.session.to_string();
        let mut log = self.log().into_iter().rev();
        let entry = log.find(|entry| entry["session"] == session.as_str() && entry["event"] == "start");
        entry.unwrap()["pid"].as_i64().unwrap() as i32
    }

    /// Our number of the tree's agent, which calls itself by that one.
    pub(crate) fn number_outside(&self, tree: &TreeName, own: u32) -> Option<i32> {
        let supervisor = holder_at(&self.locks().join(format!("{tree}.lock")))?["pid"].as_u64()?;
        testkit::number_outside(supervisor.try_into().ok()?, own)?.try_into().ok()
    }

    /// The supervisor, by the lock file.
    pub(crate) fn supervisor_of(&self, tree: &TreeName) -> i32 {
        self.holder_of(tree)["pid"].as_i64().unwrap() as i32
    }

    /// The record of a supervisor in its lock file.
    pub(crate) fn holder_of(&self, tree: &TreeName) -> serde_json::Value {
        holder_at(&self.locks().join(format!("{tree}.lock"))).unwrap()
    }

    fn memory_of(&self, native: &Native) -> PathBuf {
        self.place.path().join("home/memory").join(format!("{}.json", native.id))
    }

    /// The agent's log of itself.
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

    fn directory(&self) -> GroundPath {
        ground(self.directory())
    }

    fn elsewhere(&self) -> GroundPath {
        let there = self.directory().join("elsewhere");
        std::fs::create_dir_all(&there).unwrap();
        ground(there)
    }

    fn session(&self) -> SessionId {
        let mut bytes = [0; 16];
        std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom").unwrap(), &mut bytes).unwrap();
        SessionId::from_bits(u128::from_le_bytes(bytes) >> 1)
    }

    fn left(&self, tree: &TreeName) -> usize {
        count_marked(tree, &self.locks())
    }

    fn children(&self, tree: &TreeName) -> usize {
        count_children(tree)
    }

    fn dialect(&self) -> &dyn Dialect {
        &ScriptedDialect
    }

    fn storm(&self, weather: Weather, wishes: &[Wish<'_>]) -> Result<String, Cannot> {
        ScriptedDialect::storm(weather, wishes)
    }

    fn lose(&self, native: &Native) -> Result<(), Cannot> {
        std::fs::remove_file(self.memory_of(native)).unwrap();
        Ok(())
    }

    fn tear(&self, native: &Native) -> Result<(), Cannot> {
        let memory = std::fs::OpenOptions::new().write(true).open(self.memory_of(native)).unwrap();
        memory.set_len(memory.metadata().unwrap().len() - 3).unwrap();
        Ok(())
    }

    fn strike(&self, tree: &TreeName, blow: Blow) -> Result<(), Cannot> {
        let of_tree = |entry: &&serde_json::Value| entry["session"] == tree.as_str();
        let own = self.log().iter().rfind(of_tree).map(|entry| entry["pid"].as_u64().unwrap() as u32);
        let blow = if blow == Blow::Kill { Signal::KILL } else { Signal::STOP };
        // It may have done it to itself already.
        if let Some(pid) = self.number_outside(tree, own.unwrap()) {
            let _ = rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), blow);
        }
        Ok(())
    }

    fn told(&self, story: &'static str, told: StoryResult) {
        let why_not = match story {
            "a_kept_process_answers_like_a_new_one" if !self.agent.setup().is_kept => {
                Some("no process is kept")
            }
            "an_unknown_conversation_of_another_place_is_not_gone" => Some("its ids hold everywhere"),
            "a_file_is_written_only_after_a_yes" => Some("it writes files without asking"),
            _ => None,
        };
        assert_eq!(told.err().map(|Cannot(why)| why).as_deref(), why_not);
    }
}

/// The outcome of a turn.
pub(crate) struct Turned {
    pub(crate) events: Vec<AgentEvent>,
    pub(crate) text: String,
    /// The process it was in.
    pub(crate) pid: i32,
}

impl Turned {
    /// The conversation's id, if it finished.
    pub(crate) fn native(&self) -> Option<Native> {
        match self.last() {
            AgentEvent::Finished { native, .. } => native.clone(),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn last(&self) -> &AgentEvent {
        self.events.last().unwrap()
    }

    /// The words of the failure it ended with, which is Transient.
    pub(crate) fn failure(&self) -> &str {
        match self.last() {
            AgentEvent::Failed(trouble) if trouble.failure == Failure::Transient => &trouble.detail,
            other => panic!("{other:?}"),
        }
    }
}

/// Hears what it says of itself, until it is ready.
pub(crate) async fn be_ready(running: &mut dyn Running) {
    loop {
        match tokio::time::timeout(WAIT, running.next()).await.unwrap() {
            AgentEvent::Ready { .. } => return,
            event => assert!(matches!(event, AgentEvent::About(_)), "{event:?}"),
        }
    }
}

/// Everything it says until its last word.
pub(crate) async fn to_the_end(running: &mut dyn Running) -> (Vec<AgentEvent>, String) {
    let (mut events, mut said) = (Vec::new(), String::new());
    while !events.last().is_some_and(AgentEvent::is_last) {
        let event = tokio::time::timeout(WAIT, running.next()).await.unwrap();
        if let AgentEvent::Text { text } = &event {
            said.push_str(text);
        }
        events.push(event);
    }
    (events, said)
}

/// Looks until it is so, and fails if that takes too long.
pub(crate) async fn until(what: &str, wait: Duration, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + wait;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited {wait:?} in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The record in a lock file, if there is one. While it is written, what is left of the record before stands behind the new one.
pub(crate) fn holder_at(lock: &Path) -> Option<serde_json::Value> {
    let text = std::fs::read_to_string(lock).ok()?;
    serde_json::Deserializer::from_str(&text).into_iter().next()?.ok()
}

/// True if a process is there and has not ended.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

pub(crate) fn far_side() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_homing-far-side"))
}

/// Where an attempt is to act.
pub(crate) fn ground(path: impl AsRef<Path>) -> GroundPath {
    path.as_ref().to_str().unwrap().into()
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

/// The number of processes of that tree that are children that a turn was told to leave behind.
pub(crate) fn count_children(tree: &TreeName) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let is_child = |process: &std::fs::DirEntry| {
        let read = |what| std::fs::read(process.path().join(what)).unwrap_or_default();
        let is_marked = || String::from_utf8_lossy(&read("environ")).contains(tree.as_str());
        read("cmdline") == b"sleep\x00100000\0" && is_marked()
    };
    processes.filter(is_child).count()
}

/// The number of processes that have these words in their command line.
pub(crate) fn count_commands(words: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).replace('\0', " ").contains(words)).count()
}

/// A program that writes down what it is told and hands it on to another one; and where it writes.
pub(crate) fn overheard(program: &str, place: &Path) -> (String, PathBuf) {
    let (script, heard) = (place.join("overheard"), place.join("heard"));
    let text = format!("#!/bin/sh\ntee -a '{}' | '{program}' \"$@\"\n", heard.display());
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    (script.to_str().unwrap().to_owned(), heard)
}

/// The lines that such a program was told.
pub(crate) fn lines_heard(heard: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(heard).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

//! The scripted agent as a real process: the driver here, how its lines are read in `tongue`, the process itself in
//! `process`. Its brain is in the `agent` room, shared with the in-process one.

mod process;
mod tongue;

use std::path::PathBuf;
use std::time::Duration;

use agent::{Abilities, Agent, Buried, Found, Launch, Reply, Running, Setup, TreeName, Trouble};

use crate::bury::bury;
use crate::spoken::{Bounds, Parts, Spoken};
use crate::tree::{Plan, SILENCE_MS_MAX, Tree};
pub use process::scripted_agent;
use tongue::ScriptedTongue;

/// The variable that names the file in which the agent says what really ran.
const LOG_VARIABLE: &str = "HOMING_SCRIPTED_LOG";

/// It is ours and does as it is told, also when that takes long: its turns are bounded by whoever runs it.
const BOUNDS: Bounds = Bounds {
    start_max: Duration::from_secs(60),
    turn_max: Duration::from_secs(7 * 24 * 60 * 60),
    output_bytes_max: u64::MAX,
};

/// Where the scripted agent is and keeps its things.
#[derive(Debug, Clone)]
pub struct ScriptedConfig {
    /// The program that has `supervise` and `scripted-agent`: our own.
    pub exe: PathBuf,
    /// The agent's home, where its memory is. Made when needed.
    pub home: PathBuf,
    /// The directory of the locks. Made when needed.
    pub locks: PathBuf,
    /// The file in which it says what really ran.
    pub log: Option<PathBuf>,
    /// How long the daemon may be silent before a supervisor ends its tree.
    pub silence_ms_max: u64,
    /// Whether trees get a control group, where one can be made.
    pub group: bool,
}

impl ScriptedConfig {
    /// The usual limits, and the log that our own environment names, if it does.
    pub fn new(exe: impl Into<PathBuf>, home: impl Into<PathBuf>, locks: impl Into<PathBuf>) -> Self {
        let log = std::env::var_os(LOG_VARIABLE).map(PathBuf::from);
        let (exe, home, locks) = (exe.into(), home.into(), locks.into());
        Self { exe, home, locks, log, silence_ms_max: SILENCE_MS_MAX, group: true }
    }
}

/// The scripted agent, a process per turn.
#[derive(Debug, Clone)]
pub struct Scripted {
    config: ScriptedConfig,
}

impl Scripted {
    /// The agent, set up so. Relative paths are taken from where we are now: the agent will be elsewhere.
    pub fn new(config: ScriptedConfig) -> Self {
        let here = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let ScriptedConfig { exe, home, locks, log, .. } = config;
        let (exe, home, locks, log) = (here(exe), here(home), here(locks), log.map(here));
        Self { config: ScriptedConfig { exe, home, locks, log, ..config } }
    }

    fn plan(&self, launch: &Launch) -> Plan {
        let ScriptedConfig { exe, home, locks, log, silence_ms_max, group } = &self.config;
        let mut argv = vec![words(exe), "scripted-agent".to_owned(), words(home)];
        argv.extend(launch.native.iter().map(|native| native.id.clone()));
        let fence = launch.fence;
        let mut env = vec![
            (
                "PATH".to_owned(),
                std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ),
            ("HOME".to_owned(), words(home)),
            ("HOMING_SESSION".to_owned(), launch.session.to_string()),
            ("HOMING_MESSAGE".to_owned(), launch.message.to_string()),
            ("HOMING_TERM".to_owned(), fence.term.to_string()),
            ("HOMING_EPOCH".to_owned(), fence.epoch.to_string()),
            ("HOMING_TURN".to_owned(), fence.turn.to_string()),
            ("HOMING_ATTEMPT".to_owned(), fence.attempt.to_string()),
        ];
        env.extend(log.iter().map(|log| (LOG_VARIABLE.to_owned(), words(log))));
        let plan = Plan::new(exe.clone(), locks.clone(), launch.tree.clone(), argv, launch.directory.clone());
        Plan { env, silence_ms_max: *silence_ms_max, group: *group, ..plan }
    }
}

impl Agent for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn abilities(&self) -> Abilities {
        Abilities { resume: true, asks: true, usage: true, ..Abilities::default() }
    }

    fn look(&self) -> Reply<'_, Found> {
        Box::pin(async move {
            if self.config.exe.exists() {
                Found::Here { version: env!("CARGO_PKG_VERSION").to_owned() }
            } else {
                Found::Missing { what: format!("{} does not exist", self.config.exe.display()) }
            }
        })
    }

    fn setup(&self) -> Setup {
        let (program, home) = (words(&self.config.exe), words(&self.config.home));
        Setup { kind: "scripted", program, home, ..Setup::default() }
    }

    fn start(&self, launch: Launch) -> Reply<'_, Result<Box<dyn Running>, Trouble>> {
        Box::pin(async move {
            for directory in [&self.config.home, &self.config.locks] {
                let failed = |why| Trouble::transient(format!("{}: {why}", directory.display()));
                std::fs::create_dir_all(directory).map_err(failed)?;
            }
            let tree = Tree::start(&self.plan(&launch)).await?;
            let parts = Parts::new(ScriptedTongue, tree, None);
            let locks = self.config.locks.clone();
            Ok(Box::new(Spoken::new(parts, launch, locks, None, BOUNDS)) as Box<dyn Running>)
        })
    }

    fn bury(&self, tree: TreeName) -> Reply<'_, Result<Buried, Trouble>> {
        Box::pin(async move {
            let failed = |why| Trouble::transient(format!("{}: {why}", self.config.locks.display()));
            std::fs::create_dir_all(&self.config.locks).map_err(failed)?;
            bury(self.config.locks.clone(), tree).await
        })
    }
}

/// A path as an argument. Homing's own directories are text, because they come from its config.
fn words(path: &std::path::Path) -> String {
    path.to_string_lossy().into_owned()
}

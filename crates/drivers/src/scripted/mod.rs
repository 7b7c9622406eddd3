//! The scripted agent as a real process: the driver here, how its lines are read in `protocol`, the process itself in
//! `process`. Its brain is in the `agent` room, shared with the in-process one.

mod process;
mod protocol;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent::{
    Abilities, Agent, Background, EndedLeftovers, Launch, Presence, Reply, Running, SessionNotices, Setup,
    TreeName, Trouble,
};
use kernel::SessionId;
use processes::wall::Wall;
use processes::{SILENCE_MS_MAX, SpareSupervisor};

use crate::background::BackgroundPolicy;
use crate::program::{AgentProgram, ProgramConfig, TurnLimits};
pub use process::scripted_agent;
use protocol::ScriptedProtocol;

/// The variable that names the file in which the agent says what really ran.
const LOG_VARIABLE: &str = "HOMING_SCRIPTED_LOG";
/// The variable by which it is told to stay for the next message.
const STAYS_VARIABLE: &str = "HOMING_SCRIPTED_STAYS";
/// The variable that names the model it is to use.
const MODEL_VARIABLE: &str = "HOMING_SCRIPTED_MODEL";
/// The variable by which it uses that model whatever was chosen.
const FALLBACK_VARIABLE: &str = "HOMING_SCRIPTED_FALLBACK";
/// The variables by which it takes so many milliseconds until it says which model it uses, and after that until it
/// lists its commands.
const MODELS_VARIABLE: &str = "HOMING_SCRIPTED_MODELS_MS";
const COMMANDS_VARIABLE: &str = "HOMING_SCRIPTED_COMMANDS_MS";
/// The variable that names a pipe. While there is one, it reads a line from it before it lists anything and is ready.
const LISTS_VARIABLE: &str = "HOMING_SCRIPTED_LISTS_AT";
/// The argument after an id that makes it go on under another one.
const FORK: &str = "fork";
/// It is ours and does as it is told, also when that takes long: its turns are bounded by whoever runs it.
const TURN_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Where the scripted agent is and keeps its things.
#[derive(Debug, Clone)]
pub struct ScriptedConfig {
    /// The program that has `supervise` and `scripted-agent`: our own.
    pub exe: PathBuf,
    /// The agent's home, where its memory is. Made when needed. `{session}` in it stands for the session's id.
    pub home: PathBuf,
    /// The directory of the locks. Made when needed.
    pub locks: PathBuf,
    /// The file in which it says what really ran.
    pub log: Option<PathBuf>,
    /// Variables of its own that make it slow or wilful: `HOMING_SCRIPTED_FALLBACK`, `HOMING_SCRIPTED_MODELS_MS`,
    /// `HOMING_SCRIPTED_COMMANDS_MS` and `HOMING_SCRIPTED_LISTS_AT`, as our own environment has them.
    pub switches: Vec<(String, String)>,
    /// The longest that the daemon may be silent before a supervisor ends its tree.
    pub silence_ms_max: u64,
    /// True if trees get a control group, where one can be made.
    pub group: bool,
    /// The limits of a turn. It may talk for a week and print as much as it likes, unless somebody says otherwise.
    pub limits: TurnLimits,
    /// The most processes that are kept between turns; 0, the default, keeps none.
    pub kept_max: usize,
    /// The longest that a process is kept.
    pub idle_max: Duration,
    /// The fate of what a turn leaves running.
    pub background: BackgroundPolicy,
    /// The wall around it.
    pub wall: Arc<Wall>,
    /// The spare that becomes its supervisor, if one waits.
    pub spare: Option<SpareSupervisor>,
}

impl ScriptedConfig {
    /// The usual limits, and the log that our own environment names, if it does.
    pub fn new(exe: impl Into<PathBuf>, home: impl Into<PathBuf>, locks: impl Into<PathBuf>) -> Self {
        let limits = TurnLimits {
            turn_max: TURN_MAX,
            silence_max: None,
            output_bytes_max: u64::MAX,
            ..TurnLimits::default()
        };
        Self {
            exe: exe.into(),
            home: home.into(),
            locks: locks.into(),
            log: std::env::var_os(LOG_VARIABLE).map(PathBuf::from),
            switches: [FALLBACK_VARIABLE, MODELS_VARIABLE, COMMANDS_VARIABLE, LISTS_VARIABLE]
                .into_iter()
                .filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)))
                .collect(),
            silence_ms_max: SILENCE_MS_MAX,
            group: true,
            limits,
            kept_max: 0,
            idle_max: Duration::from_secs(5 * 60),
            background: BackgroundPolicy::Ended,
            wall: Arc::default(),
            spare: None,
        }
    }
}

/// The scripted agent: a process per turn, or one that stays.
pub struct Scripted {
    program: AgentProgram<ScriptedProtocol>,
    home: String,
    log: Option<PathBuf>,
    switches: Vec<(String, String)>,
}

impl Scripted {
    /// The agent, set up so. Relative paths are taken from where we are now: the agent will be elsewhere.
    pub fn new(config: ScriptedConfig) -> Self {
        let here = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let ScriptedConfig { exe, home, locks, log, switches, kept_max, idle_max, wall, .. } = config;
        let ScriptedConfig { silence_ms_max, group, limits, background, spare, .. } = config;
        let (exe, home) = (here(exe), words(&here(home)));
        let program = ProgramConfig::new("scripted", exe.clone(), here(locks), words(&exe), home.clone());
        let program = ProgramConfig {
            silence_ms_max,
            group,
            limits,
            kept_max,
            idle_max,
            background,
            wall,
            spare,
            ..program
        };
        Self { program: AgentProgram::new(program), home, log: log.map(here), switches }
    }

    fn arguments(&self, launch: &Launch) -> Vec<String> {
        let mut arguments = vec!["scripted-agent".to_owned(), self.program.home(launch)];
        arguments.extend(launch.native.iter().map(|native| native.id.clone()));
        if launch.fork && launch.native.is_some() {
            arguments.push(FORK.to_owned());
        }
        arguments
    }

    fn variables(&self, launch: &Launch) -> Vec<(String, String)> {
        let fence = launch.fence;
        let mut env = vec![
            ("HOMING_SESSION".to_owned(), launch.session.to_string()),
            ("HOMING_MESSAGE".to_owned(), launch.message.to_string()),
            ("HOMING_TERM".to_owned(), fence.term.to_string()),
            ("HOMING_EPOCH".to_owned(), fence.epoch.to_string()),
            ("HOMING_TURN".to_owned(), fence.turn.to_string()),
            ("HOMING_ATTEMPT".to_owned(), fence.attempt.to_string()),
        ];
        env.extend(self.log.iter().map(|log| (LOG_VARIABLE.to_owned(), words(log))));
        env.extend(launch.model.iter().map(|model| (MODEL_VARIABLE.to_owned(), model.clone())));
        env.extend(self.switches.iter().cloned());
        if self.program.config.kept_max > 0 {
            env.push((STAYS_VARIABLE.to_owned(), "1".to_owned()));
        }
        env
    }
}

impl Agent for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn abilities(&self) -> Abilities {
        agent::scripted::abilities()
    }

    fn look(&self) -> Reply<'_, Presence> {
        Box::pin(async move {
            let exe = &self.program.config.exe;
            if exe.exists() {
                Presence::Here { version: env!("CARGO_PKG_VERSION").to_owned() }
            } else {
                Presence::Missing { what: format!("{} does not exist", exe.display()) }
            }
        })
    }

    fn setup(&self) -> Setup {
        let is_kept = self.program.config.kept_max > 0;
        let (program, home) = (words(&self.program.config.exe), self.home.clone());
        let keeps_background = self.program.config.background == BackgroundPolicy::Kept;
        Setup { kind: "scripted", program, home, is_kept, keeps_background, ..Setup::default() }
    }

    fn start(&self, launch: Launch) -> Reply<'_, Result<Box<dyn Running>, Trouble>> {
        Box::pin(async move {
            let (arguments, variables) = (self.arguments(&launch), self.variables(&launch));
            let protocol = ScriptedProtocol::new(&launch);
            self.program.start(launch, arguments, variables, || (protocol, None)).await
        })
    }

    fn end_leftovers(&self, tree: TreeName) -> Reply<'_, Result<EndedLeftovers, Trouble>> {
        Box::pin(self.program.end_leftovers(tree))
    }

    fn expect(&self, session: SessionId) {
        self.program.expect(session);
    }

    fn release(&self, session: SessionId) -> Reply<'_, Background> {
        Box::pin(self.program.release(TreeName::of(session)))
    }

    fn background(&self, session: SessionId) -> Reply<'_, Background> {
        Box::pin(self.program.background(TreeName::of(session)))
    }

    fn tell_notices_to(&self, notices: SessionNotices) {
        self.program.tell_notices_to(notices);
    }

    fn close(&self) -> Reply<'_, ()> {
        Box::pin(self.program.close())
    }
}

/// A path as an argument. Homing's own directories are text, because they come from its config.
fn words(path: &std::path::Path) -> String {
    path.to_string_lossy().into_owned()
}

//! The program of an agent, the same for all drivers of real ones: how the program is found, which environment, home and limits it gets, how
//! it is started under a supervisor, and how its process is kept between turns.
//!
//! A driver brings the arguments, the variables of its own and a `AgentProtocol`; everything else is here, so that a new
//! driver has nothing to forget.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent::{
    Account, Background, EndedLeftovers, Launch, Presence, Running, SessionNotices, TreeName, Trouble,
};
use kernel::{Failure, SessionId};
use processes::wall::{Wall, WalledSession};
use processes::{
    EndedTree, PATH_FALLBACK, ProcessError, ProcessTree, SILENCE_MS_MAX, SpareSupervisor, TreePlan, end_tree,
    find_program,
};

use crate::agent_protocol::AgentProtocol;
use crate::background::{BackgroundPolicy, background};
use crate::kept_processes::{KeptConfig, KeptProcesses};
use crate::program_look;
use crate::running_agent::{AgentProcess, RunningAgent, SideChannel};
use crate::turn_bounds::TurnBounds;

/// The longest version we show.
const VERSION_BYTES_MAX: usize = 100;
/// The part of an agent's own settings that is looked at.
const SETTINGS_BYTES_MAX: u64 = 1 << 20;

/// The settings of one agent's program.
#[derive(Debug, Clone)]
pub struct ProgramConfig {
    /// The name that people have for the agent.
    pub name: String,
    /// The program that has `supervise`: our own.
    pub exe: PathBuf,
    /// The directory of the locks. Made when needed.
    pub locks: PathBuf,
    /// The agent's program: a path, or a name that is looked for in the environment's `PATH`.
    pub program: String,
    /// Arguments that come before the driver's own.
    pub args: Vec<String>,
    /// The agent's whole environment but for what the driver adds. Nothing is inherited.
    pub env: Vec<(String, String)>,
    /// The home it gets as `HOME`. `{session}` in it stands for the session's id: then each session has its own.
    pub home: String,
    /// It may act without asking.
    pub bypasses: bool,
    /// The most processes that are kept between turns; 0 keeps none.
    pub kept_max: usize,
    /// The longest that a process is kept.
    pub idle_max: Duration,
    /// The fate of what a turn leaves running. Where no process is kept, nothing else is.
    pub background: BackgroundPolicy,
    /// The limits of a turn.
    pub limits: TurnLimits,
    /// The longest that the daemon may be silent before a supervisor ends its tree.
    pub silence_ms_max: u64,
    /// True if trees get a control group, where one can be made.
    pub group: bool,
    /// The wall around it.
    pub wall: Arc<Wall>,
    /// The spare that becomes its supervisor, if one waits.
    pub spare: Option<SpareSupervisor>,
}

/// The limits of one agent. Each has its key below `agents.NAME.limits` in the configuration.
#[derive(Debug, Clone, Copy)]
pub struct TurnLimits {
    /// From the start of the process until it is ready.
    pub start_max: Duration,
    /// From the message to the last word.
    pub turn_max: Duration,
    /// From one sign of life to the next while a turn runs and nobody is asked, if bounded. A tool that runs for long may be
    /// all that goes on, so the default is generous.
    pub silence_max: Option<Duration>,
    /// Bytes that it may print in one turn.
    pub output_bytes_max: u64,
    /// Memory of the whole tree, tools included, if bounded. Not bounded by default: a build that an agent runs may need as
    /// much as the machine has, and only who owns the machine knows how much to spare.
    pub memory_bytes_max: Option<u64>,
    /// Processes of the whole tree, if bounded. The default is far above any build, and far below a fork bomb.
    pub processes_max: Option<u32>,
    /// Bytes that the whole tree may write, to files and to each other, if bounded. Agents are not: what they write is measured where it
    /// is. Scripts in worktrees are (`agents.NAME.worktree.scripts_written_max`).
    pub written_bytes_max: Option<u64>,
    /// Open files of each of its processes, if bounded by other than what we have. We need more than any program should: what holds
    /// many of them slows the whole machine.
    pub files_max: Option<u64>,
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self {
            start_max: Duration::from_secs(60),
            turn_max: Duration::from_secs(60 * 60),
            silence_max: Some(Duration::from_secs(30 * 60)),
            output_bytes_max: 64 * 1024 * 1024,
            memory_bytes_max: None,
            processes_max: Some(2_000),
            written_bytes_max: None,
            files_max: Some(65_536),
        }
    }
}

impl ProgramConfig {
    /// The usual limits, with nothing in the environment but where programs are.
    pub fn new(
        name: impl Into<String>,
        exe: impl Into<PathBuf>,
        locks: impl Into<PathBuf>,
        program: impl Into<String>,
        home: impl Into<String>,
    ) -> Self {
        let path = std::env::var("PATH").unwrap_or_else(|_| PATH_FALLBACK.to_owned());
        Self {
            name: name.into(),
            exe: exe.into(),
            locks: locks.into(),
            program: program.into(),
            args: Vec::new(),
            env: vec![("PATH".to_owned(), path)],
            home: home.into(),
            bypasses: false,
            kept_max: 4,
            idle_max: Duration::from_secs(5 * 60),
            background: BackgroundPolicy::Ended,
            limits: TurnLimits::default(),
            silence_ms_max: SILENCE_MS_MAX,
            group: true,
            wall: Arc::default(),
            spare: None,
        }
    }
}

/// One agent's program, ready to be started.
pub(crate) struct AgentProgram<T: AgentProtocol> {
    pub(crate) config: ProgramConfig,
    keep: Option<Arc<KeptProcesses<T>>>,
    /// The variables that hold a sign-in.
    secrets: Vec<String>,
    /// The command that is given the program and its arguments as its own last ones; empty where nothing comes before it.
    before: Vec<String>,
}

impl<T: AgentProtocol> AgentProgram<T> {
    pub(crate) fn new(config: ProgramConfig) -> Self {
        let here = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let config = ProgramConfig { exe: here(&config.exe), locks: here(&config.locks), ..config };
        let ProgramConfig { kept_max, idle_max, background, .. } = config;
        let kept = KeptConfig { kept_max, idle_max, background };
        let keep = (kept_max > 0).then(|| KeptProcesses::new(kept, config.locks.clone()));
        Self { config, keep, secrets: Vec::new(), before: Vec::new() }
    }

    /// A command that is started in the program's place, and goes on as the program.
    pub(crate) fn behind(self, before: Vec<String>) -> Self {
        Self { before, ..self }
    }

    /// The variables that hold a sign-in. Whoever brings one of their own does not get any of the house's beside it: the
    /// agent might prefer that.
    pub(crate) fn with_secrets(self, secrets: impl IntoIterator<Item = impl ToString>) -> Self {
        Self { secrets: secrets.into_iter().map(|name| name.to_string()).collect(), ..self }
    }

    /// The home of that session's agent.
    pub(crate) fn home(&self, launch: &Launch) -> String {
        let home = self.config.home.replace("{session}", &launch.session.to_string());
        self.config.wall.home(&walled(launch), home)
    }

    /// Where a conversation's native id means something: agent, home and directory.
    pub(crate) fn place(&self, launch: &Launch) -> String {
        format!("{}:{}:{}", self.config.name, self.home(launch), launch.directory.for_launch())
    }

    /// The program as a path, if it is there and may be started.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        let path = self.config.env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_str());
        find_program(Path::new(&self.config.program), OsStr::new(path.unwrap_or(PATH_FALLBACK)))
    }

    /// The program, if it is there, and what it says when asked for its version with these arguments.
    pub(crate) async fn look(&self, version_args: &[&str]) -> Presence {
        let Some(program) = self.path() else {
            return Presence::Missing { what: format!("there is no program {:?}", self.config.program) };
        };
        match program_look::ask(&self.config, &program, version_args).await {
            // Who does not tell may do all else as it should.
            Ok(said) => Presence::Here { version: version_in(&said).unwrap_or_default() },
            Err(why) => Presence::Missing { what: format!("{}: {why}", program.display()) },
        }
    }

    /// Goes on in the process that is kept for this session, or starts one with these arguments, variables and words.
    /// `begin` is asked for the protocol, and for the second line if the agent needs one, only in the latter case.
    pub(crate) async fn start(
        &self,
        launch: Launch,
        args: Vec<String>,
        env: Vec<(String, String)>,
        begin: impl FnOnce() -> (T, Option<SideChannel>),
    ) -> Result<Box<dyn Running>, Trouble> {
        let kept = match &self.keep {
            Some(keep) => keep.take(&launch).await,
            None => None,
        };
        let (locks, keep) = (self.config.locks.clone(), self.keep.clone());
        if let Some(parts) = kept {
            return Ok(Box::new(RunningAgent::new(parts, launch, locks, keep, self.bounds())));
        }
        let lost = self.end_lost_background(&launch.tree).await?;
        let tree = ProcessTree::start(&self.plan(&launch, args, env)?).await.map_err(trouble)?;
        let (protocol, side) = begin();
        let parts = AgentProcess::new(protocol, tree, side);
        let mut running = RunningAgent::new(parts, launch, locks, keep, self.bounds());
        if let Some(lost) = lost {
            running.tell_lost(&lost);
        }
        Ok(Box::new(running))
    }

    /// The background of this tree when the server went: it is seen gone before anything starts.
    async fn end_lost_background(&self, tree: &TreeName) -> Result<Option<Background>, Trouble> {
        let Some(lost) = self.keep.as_ref().and_then(|keep| keep.notes.read(tree)) else { return Ok(None) };
        end_tree(self.config.locks.clone(), tree.clone()).await.map_err(trouble)?;
        Ok(Some(background(&lost)))
    }

    pub(crate) async fn end_leftovers(&self, tree: TreeName) -> Result<EndedLeftovers, Trouble> {
        if let Some(keep) = &self.keep {
            keep.release_leftovers(&tree).await;
        }
        make_directory(&self.config.locks)?;
        let EndedTree { killed } = end_tree(self.config.locks.clone(), tree).await.map_err(trouble)?;
        Ok(EndedLeftovers { killed })
    }

    /// An attempt is about to begin: the process that is kept for it may show meanwhile that it is there.
    pub(crate) fn expect(&self, session: SessionId) {
        if let Some(keep) = &self.keep {
            keep.expect(&TreeName::of(session));
        }
    }

    pub(crate) async fn release(&self, tree: TreeName) -> Background {
        match &self.keep {
            Some(keep) => background(&keep.release(&tree).await),
            None => Background::default(),
        }
    }

    pub(crate) async fn background(&self, tree: TreeName) -> Background {
        match &self.keep {
            Some(keep) if keep.policy() == BackgroundPolicy::Kept => {
                background(&keep.background(&tree).await)
            }
            Some(_) | None => Background::default(),
        }
    }

    pub(crate) fn tell_notices_to(&self, notices: SessionNotices) {
        if let Some(keep) = &self.keep {
            keep.tell_notices_to(notices);
        }
    }

    pub(crate) async fn close(&self) {
        if let Some(keep) = &self.keep {
            keep.close().await;
        }
    }

    fn bounds(&self) -> TurnBounds {
        let TurnLimits {
            start_max,
            turn_max,
            silence_max,
            output_bytes_max,
            memory_bytes_max,
            processes_max,
            written_bytes_max,
            files_max: _,
        } = self.config.limits;
        let name = self.config.name.clone();
        TurnBounds {
            name,
            start_max,
            turn_max,
            silence_max,
            output_bytes_max,
            memory_bytes_max,
            processes_max,
            written_bytes_max,
        }
    }

    fn plan(
        &self,
        launch: &Launch,
        args: Vec<String>,
        own: Vec<(String, String)>,
    ) -> Result<TreePlan, Trouble> {
        let program = self.path().ok_or_else(|| {
            Trouble::refused(format!(
                "there is no program {:?}; install it, or set its path",
                self.config.program
            ))
        })?;
        let home = if launch.looks { program_look::home(&self.config).to_owned() } else { self.home(launch) };
        make_directory(&self.config.locks)?;
        if !launch.looks {
            make_directory(Path::new(&home))?;
        }
        let mut argv = self.before.clone();
        argv.push(program.to_string_lossy().into_owned());
        argv.extend(self.config.args.iter().cloned().chain(args));
        let mut env = self.config.env.clone();
        self.config.wall.set_user_variables(&walled(launch), &mut env);
        env.push(("HOME".to_owned(), home.clone()));
        env.extend(own);
        env.extend(launch.variables.iter().cloned());
        if let Account::Person { secrets, .. } = &launch.account {
            let brings = |name: &str| secrets.iter().any(|(secret, _)| secret == name);
            let brings_own = self.secrets.iter().any(|name| brings(name));
            let is_secret = |name: &str| self.secrets.iter().any(|secret| secret == name);
            env.retain(|(name, _)| !(brings(name) || brings_own && is_secret(name)));
            env.extend(secrets.iter().cloned());
        }
        let ProgramConfig { exe, locks, wall, .. } = &self.config;
        if launch.looks || wall.lists(launch.walled) {
            // It has one of its own, under the usual name.
            env.retain(|(name, _)| name != "TMPDIR");
        }
        let home = Path::new(&home);
        let wall = match launch.looks {
            true => wall.around_look(&program, home, locks),
            false => wall.around(&walled(launch), home, locks),
        };
        let wall = wall.map_err(trouble)?;
        let plan =
            TreePlan::new(exe.clone(), locks.clone(), launch.tree.clone(), argv, launch.directory.clone());
        let ProgramConfig { silence_ms_max, group, .. } = self.config;
        let TurnLimits { memory_bytes_max, processes_max, written_bytes_max, files_max, .. } =
            self.config.limits;
        let spare = self.config.spare.clone();
        let plan = TreePlan { env, silence_ms_max, group, files_max, wall, spare, ..plan };
        Ok(TreePlan { memory_bytes_max, processes_max, written_bytes_max, ..plan })
    }
}

/// A failure of processes as a failure of the agent: the remedies are the same.
pub(crate) fn trouble(why: ProcessError) -> Trouble {
    match why {
        ProcessError::Busy(words) => Trouble::new(Failure::Busy, words),
        ProcessError::Refused(words) => Trouble::refused(words),
        ProcessError::Failed(words) => Trouble::transient(words),
    }
}

/// The session of a launch, as its wall needs to know it.
fn walled(launch: &Launch) -> WalledSession<'_> {
    let Launch { session, whose, directory, walled, .. } = launch;
    WalledSession { session: *session, whose, directory, must: *walled }
}

pub(crate) fn make_directory(path: &Path) -> Result<(), Trouble> {
    std::fs::create_dir_all(path).map_err(|why| Trouble::transient(format!("{}: {why}", path.display())))
}

/// The beginning of an agent's own settings, which it may have made anything of: a pipe, or as large as the disk.
pub(crate) fn settings_in(path: &Path) -> String {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = std::fs::OpenOptions::new().read(true).custom_flags(nonblocking).open(path);
    let file = file.ok().filter(|file| file.metadata().is_ok_and(|about| about.is_file()));
    let mut bytes = Vec::new();
    let read = file.map(|file| file.take(SETTINGS_BYTES_MAX).read_to_end(&mut bytes));
    let _ = read; // What could be read is looked at.
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The first word that looks like a version in what a program says.
fn version_in(text: &str) -> Option<String> {
    let is_version = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, '/' | ',' | '(' | ')'));
    words
        .map(|word| word.trim_start_matches('v'))
        .find(is_version)
        .map(|word| agent::bounded(word, VERSION_BYTES_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_none_are_empty() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("config.toml");
        assert_eq!(settings_in(&path), "");
        std::fs::write(&path, "model_provider = 1").unwrap();
        assert_eq!(settings_in(&path), "model_provider = 1");
        // Sparse, and larger than any memory.
        std::fs::File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(settings_in(&path).len() as u64, SETTINGS_BYTES_MAX);
        std::fs::remove_file(&path).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert_eq!(settings_in(&path), "", "nobody waits for whoever may write there");
    }

    #[test]
    fn versions_are_found_in_what_programs_say() {
        assert_eq!(version_in("codex-cli 0.166.0\n").as_deref(), Some("0.166.0"));
        assert_eq!(version_in("2.1.325 (Claude Code)").as_deref(), Some("2.1.325"));
        assert_eq!(version_in(" v22.1.0").as_deref(), Some("22.1.0"));
        assert_eq!(version_in("hello 5 you"), None);
    }
}

//! The agents of this server: made from their tables, with the environment, home and limits that they get.
//!
//! Making them is cheap: programs are looked for on `PATH` and sign-ins by their files, but nothing is started. What costs
//! time, asking each program for its version, happens when somebody wants to know. `configured` is one agent with what
//! the configuration adds to its driver, `dated` an attempt of a program that may be too old, `sign_in` the look for credentials.

mod configured;
mod dated;
mod sign_in;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agent::{Agent, Presence, SignIn};
use anyhow::{Context, Result};
use drivers::acp::{Acp, AcpConfig};
use drivers::claude::Claude;
use drivers::codex::Codex;
use drivers::command::{CommandAgent, CommandConfig};
use drivers::opencode::OpenCode;
use drivers::{BackgroundPolicy, ProgramConfig, Scripted, ScriptedConfig, TurnLimits};
use processes::SpareSupervisor;
use processes::wall::{Unmapped, Wall};
use tokio::task::JoinSet;

use crate::config::agents::{AfterItsFailure, AgentTable, Enabled, Home, Kind, WorktreeTable};
use crate::config::{AUTO, Config, reference};
use crate::exit::{CliError, Exit};
use crate::{system, wall};
pub(crate) use configured::{ConfiguredAgent, has_program};

/// Variables that say where things are in a home. With another home they would lead back to the first.
pub(crate) const HOME_BOUND: [&str; 6] = [
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "CODEX_HOME",
    "CLAUDE_CONFIG_DIR",
];

/// Every agent that is not switched off.
#[derive(Debug)]
pub(crate) struct Roster {
    agents: Vec<Arc<ConfiguredAgent>>,
    default: String,
}

impl Roster {
    /// The agents of a configuration, with their things below a data directory, and started by that spare.
    pub(crate) fn make(
        config: &Config,
        data: &Path,
        unmapped: Unmapped,
        spare: Option<&SpareSupervisor>,
    ) -> Result<Self> {
        let wall = wall::around(config, data, unmapped)?;
        let mut agents = Vec::new();
        for (name, table) in config.agents.iter().filter(|(_, table)| table.enabled != Enabled::No) {
            let wall = wall::of_agent(&wall, config, name, table);
            let made = make(name, table, data, &wall, spare).with_context(|| format!("agents.{name}"))?;
            agents.push(Arc::new(made));
        }
        let default = default_of(config, &agents)?;
        Ok(Self { agents, default })
    }

    /// The agent of a new session for which none is named.
    pub(crate) fn default_agent(&self) -> &str {
        &self.default
    }

    pub(crate) fn all(&self) -> &[Arc<ConfiguredAgent>] {
        &self.agents
    }

    pub(crate) fn find(&self, name: &str) -> Result<&Arc<ConfiguredAgent>, CliError> {
        self.agents.iter().find(|agent| agent.name() == name).ok_or_else(|| unknown(name, &self.agents))
    }

    /// Scripts in worktrees, by the name of the agent.
    pub(crate) fn scripts(&self) -> BTreeMap<String, engine::Scripts> {
        self.agents.iter().map(|agent| (agent.name().to_owned(), agent.scripts().clone())).collect()
    }

    /// The fate of waiting messages after a failed turn, for agents of which something else is said than of all.
    pub(crate) fn after_failure(&self) -> BTreeMap<String, kernel::AfterFailure> {
        let said = |agent: &Arc<ConfiguredAgent>| match agent.table().after_failure {
            AfterItsFailure::Policy => None,
            AfterItsFailure::Hold => Some((agent.name().to_owned(), kernel::AfterFailure::Hold)),
            AfterItsFailure::GoOn => Some((agent.name().to_owned(), kernel::AfterFailure::GoOn)),
        };
        self.agents.iter().filter_map(said).collect()
    }

    /// As the engine wants them.
    pub(crate) fn ports(&self) -> Vec<Arc<dyn Agent>> {
        self.agents.iter().map(|agent| agent.clone() as Arc<dyn Agent>).collect()
    }

    /// The agents that act without asking.
    pub(crate) fn bypassing(&self) -> Vec<&str> {
        self.agents.iter().filter(|agent| agent.table().bypass).map(|agent| agent.name()).collect()
    }

    /// The agents that were found, on one line. Asks every program for its version, all at once, which takes a second
    /// or two.
    pub(crate) async fn found(&self) -> String {
        let mut looks = JoinSet::new();
        let programs = self.agents.iter().filter(|agent| agent.is_real() && agent.has_program());
        for (place, agent) in programs.cloned().enumerate() {
            looks.spawn(async move { (place, in_words(&agent).await) });
        }
        let mut found = looks.join_all().await;
        found.sort();
        let words: Vec<String> = found.into_iter().map(|(_, words)| words).collect();
        let default = &self.default;
        match words.is_empty() {
            true => format!(
                "found no agents on PATH; new sessions use {default}. `homing agents` says how to get one"
            ),
            false => format!("found: {}; new sessions use {default}", words.join(" · ")),
        }
    }
}

async fn in_words(agent: &ConfiguredAgent) -> String {
    let version = match agent.look().await {
        Presence::Here { version } => version,
        Presence::Missing { what } => return format!("{} ({what})", agent.name()),
    };
    let signed_in = match agent.sign_in() {
        SignIn::Here { .. } => " (signed in)".to_owned(),
        SignIn::Missing { how } => format!(" (not signed in: {how})"),
        SignIn::Unknown => " (sign-in unknown: `default_agent` or `--agent` names it)".to_owned(),
    };
    let version = if version.is_empty() { version } else { format!(" {version}") };
    format!("{}{version}{signed_in}", agent.name())
}

/// The agent that is named, or the first in order that is here and looks signed in, or the one that is built in. Where nobody can
/// see whether somebody has signed in, nobody has: some programs send the first message to a model that nobody chose.
fn default_of(config: &Config, agents: &[Arc<ConfiguredAgent>]) -> Result<String, CliError> {
    let named = &config.default_agent;
    if named != AUTO {
        let is_there = agents.iter().any(|agent| agent.name() == named);
        return if is_there { Ok(named.clone()) } else { Err(unknown(named, agents)) };
    }
    let find = |name: &String| agents.iter().find(|agent| agent.name() == name);
    let is_ready =
        |agent: &&Arc<ConfiguredAgent>| agent.has_program() && matches!(agent.sign_in(), SignIn::Here { .. });
    let ready = config.default_order.iter().filter_map(find).find(is_ready);
    let built_in = || agents.iter().find(|agent| !agent.is_real());
    let chosen = ready.or_else(built_in).map(|agent| agent.name().to_owned());
    chosen.ok_or_else(|| {
        CliError::new(Exit::Usage, "there is no agent for new sessions")
            .hint("install one and sign in, or leave the scripted agent switched on")
    })
}

fn unknown(name: &str, agents: &[Arc<ConfiguredAgent>]) -> CliError {
    let known: Vec<&str> = agents.iter().map(|agent| agent.name()).collect();
    CliError::new(Exit::Usage, format!("there is no agent called {name:?}"))
        .hint(format!("`default_agent` is \"auto\" or one of: {}", known.join(", ")))
}

/// The scripted agent, which keeps its things below a data directory that is not hidden from it.
pub(crate) fn scripted(name: &str, data: &Path) -> Result<Scripted> {
    Ok(Scripted::new(scripted_config(name, data, &Arc::default())?))
}

fn scripted_config(name: &str, data: &Path, wall: &Arc<Wall>) -> Result<ScriptedConfig> {
    let exe = system::exe().context("our own program cannot be found")?;
    // What it remembers of one session is not for another.
    let home = data.join("agents").join(name).join("{session}");
    Ok(ScriptedConfig { wall: wall.clone(), ..ScriptedConfig::new(exe, home, data.join("attempts")) })
}

fn make(
    name: &str,
    table: &AgentTable,
    data: &Path,
    wall: &Arc<Wall>,
    spare: Option<&SpareSupervisor>,
) -> Result<ConfiguredAgent> {
    let spare = spare.cloned();
    let config = ProgramConfig { wall: wall.clone(), spare, ..program_config(name, table, data)? };
    let kind = table.kind.context("it needs a `kind`")?;
    let driver: Arc<dyn Agent> = match kind {
        Kind::Claude => Arc::new(Claude::new(config.clone())),
        Kind::Codex => Arc::new(Codex::new(config.clone())),
        Kind::Opencode => Arc::new(OpenCode::new(config.clone()).with_tries_max(table.limits.tries_max)),
        Kind::Acp => {
            let quirks = table.quirks.clone().unwrap_or_default();
            Arc::new(Acp::new(AcpConfig { program: config.clone(), quirks }))
        }
        Kind::Command => {
            let command = table.command.clone().unwrap_or_default();
            Arc::new(CommandAgent::new(command.for_driver(config.clone())))
        }
        Kind::Scripted => {
            let scripted = scripted_config(name, data, wall)?;
            let ProgramConfig { limits, spare, idle_max, background, .. } = config.clone();
            // It has a process for each turn, unless it is to leave something running.
            let kept_max = if background == BackgroundPolicy::Kept { config.kept_max } else { 0 };
            let kept = ScriptedConfig { kept_max, idle_max, background, ..scripted };
            Arc::new(Scripted::new(ScriptedConfig { limits, spare, ..kept }))
        }
    };
    Ok(ConfiguredAgent::new(name, table, &config, driver).with_scripts(scripts(table, &config)))
}

/// Scripts in the agent's worktrees: a shell where the agent itself would be, which is told nothing.
fn scripts(table: &AgentTable, config: &ProgramConfig) -> engine::Scripts {
    let wait = Duration::from_millis(table.worktree.scripts_wait.0);
    let written_bytes_max = Some(table.worktree.scripts_written_max.0).filter(|bytes| *bytes > 0);
    let script = |lines: &String| -> Option<Arc<dyn Agent>> {
        let args = vec!["-c".to_owned(), format!("exec 2>&1\n{lines}")];
        let limits = TurnLimits { turn_max: wait, silence_max: None, written_bytes_max, ..config.limits };
        let (program, kept_max) = ("sh".into(), 0);
        let config = ProgramConfig { program, args, kept_max, limits, ..config.clone() };
        let runs = !lines.trim().is_empty();
        runs.then(|| Arc::new(CommandAgent::new(CommandConfig::new(config))) as Arc<dyn Agent>)
    };
    let WorktreeTable { setup, teardown, .. } = &table.worktree;
    engine::Scripts { setup: script(setup), teardown: script(teardown), wait }
}

fn program_config(name: &str, table: &AgentTable, data: &Path) -> Result<ProgramConfig> {
    let exe = system::exe().context("our own program cannot be found")?;
    let program = if table.program.is_empty() { name } else { &table.program };
    let home = home(name, &table.home, data);
    let usual = ProgramConfig::new(name, exe, data.join("attempts"), program, home);
    let limits = &table.limits;
    Ok(ProgramConfig {
        args: table.args.clone(),
        env: environment(table)?,
        bypasses: table.bypass,
        kept_max: table.keep.kept_max,
        idle_max: Duration::from_millis(table.keep.idle_max.0),
        background: table.background.into(),
        limits: TurnLimits {
            start_max: Duration::from_millis(limits.start_max.0),
            turn_max: Duration::from_millis(limits.turn_max.0),
            silence_max: Some(Duration::from_millis(limits.silence_max.0)).filter(|span| !span.is_zero()),
            output_bytes_max: limits.output_max.0,
            memory_bytes_max: Some(limits.memory_max.0).filter(|bytes| *bytes > 0),
            processes_max: Some(limits.processes_max).filter(|count| *count > 0),
            written_bytes_max: None,
            files_max: Some(u64::from(limits.files_max)).filter(|count| *count > 0),
        },
        ..usual
    })
}

pub(crate) fn home(name: &str, home: &Home, data: &Path) -> String {
    let path = match home {
        Home::Person => system::home(),
        Home::Session => data.join("agents").join(name).join("{session}"),
        Home::Path(path) => reference::in_home(&path.to_string_lossy()),
    };
    path.to_string_lossy().into_owned()
}

/// Everything the agent gets from us but `HOME`: what is passed on, then what its table says.
pub(crate) fn environment(table: &AgentTable) -> Result<Vec<(String, String)>> {
    let is_person = table.home == Home::Person;
    let bound = HOME_BOUND.into_iter().map(str::to_owned).filter(|_| is_person);
    let mut names: Vec<String> = table.pass_env.iter().chain(&table.sign_in.variables).cloned().collect();
    names.retain(|name| is_person || !HOME_BOUND.contains(&name.as_str()));
    names.extend(bound);
    names.sort();
    names.dedup();
    let mut all: Vec<(String, String)> =
        names.into_iter().filter_map(|name| std::env::var(&name).ok().map(|value| (name, value))).collect();
    for (name, value) in &table.env {
        let value = reference::resolve(value).map_err(anyhow::Error::msg).with_context(|| name.clone())?;
        all.retain(|(known, _)| known != name);
        all.push((name.clone(), value));
    }
    if !all.iter().any(|(name, _)| name == "PATH") {
        all.push(("PATH".to_owned(), processes::PATH_FALLBACK.to_owned()));
    }
    Ok(all)
}

//! The configuration: one TOML file over `default.toml`, which is built in and is the documentation.
//!
//! A file is read twice: alone, so that a wrong key or value is told with its line, then laid over the defaults, so that
//! every value comes from the one or the other. Nothing here has a default of its own; a test holds `default.toml` to
//! these types, to the engine's limits and to the kernel's policy. `agents` is how agents are written, `oidc` how an
//! identity provider is, `push` how people are told on their devices, `reference` what stands for a secret, `schema` the same types for editors, `terminal` what
//! commands at a terminal read, `units` durations and
//! sizes.

pub(crate) mod agents;
mod oidc;
mod push;
pub(crate) mod reference;
pub(crate) mod schema;
pub(crate) mod terminal;
pub(crate) mod units;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table};
use utoipa::ToSchema;

use crate::exit::{CliError, Exit};
use agents::{AgentTable, Enabled};
use oidc::OidcTable;
use push::PushTable;
use units::{Size, Span};

/// Every key with its default and what it means.
pub(crate) const DEFAULT: &str = include_str!("../../default.toml");

/// The default agent that is none: the first of `default_order` that is here and looks signed in.
pub(crate) const AUTO: &str = "auto";

/// The settings of the server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// The file that this was read from, if there is one.
    #[serde(skip)]
    pub(crate) file: Option<PathBuf>,
    /// Where the server listens.
    pub(crate) listen: String,
    /// Names by which requests may call this server, besides the address it listens on.
    pub(crate) allowed_hosts: Vec<String>,
    /// True if a proxy in front encrypts for us.
    pub(crate) behind_proxy: bool,
    /// Addresses and networks of proxies whose word on where a request comes from is taken.
    trusted_proxies: Vec<String>,
    /// The agent of a new session for which none is named, or `auto`.
    pub(crate) default_agent: String,
    /// The order in which `auto` looks for an agent.
    pub(crate) default_order: Vec<String>,
    /// Directories that the machine's person may choose for sessions, besides those they have.
    pub(crate) roots: Vec<String>,
    /// True if people are let in although nothing keeps their agents apart.
    pub(crate) trust_everyone: bool,
    /// The rule for turns of several sessions in one directory.
    directories: Directories,
    /// Whose conversation a subdirectory of a repository has, in the terminals of whoever reads this file.
    conversations: Conversations,
    /// The filter of the server's log on standard error.
    pub(crate) log: String,
    pub(crate) tls: TlsTable,
    limits: Limits,
    policy: Policy,
    /// The fate of worktrees that nobody is in.
    worktrees: WorktreesTable,
    /// The settings of chats and of turns that are followed.
    terminal: terminal::TerminalTable,
    /// The identity provider at which people may sign in.
    oidc: OidcTable,
    /// The settings of telling people on their devices.
    push: PushTable,
    /// The things that agents must not see.
    pub(crate) wall: WallTable,
    /// The settings of every agent unless its own table says otherwise.
    every_agent: AgentTable,
    /// The agents, by name.
    pub(crate) agents: BTreeMap<String, AgentTable>,
}

/// The server's certificate and its key. Both, or none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TlsTable {
    /// The file with the certificate and those that lead to its authority.
    pub(crate) certificate: String,
    /// The file with its private key.
    pub(crate) key: String,
}

impl TlsTable {
    /// The files, if there are any.
    pub(crate) fn files(&self) -> Option<server::TlsFiles> {
        let Self { certificate, key } = self;
        let files = || server::TlsFiles {
            certificate: reference::in_home(certificate),
            key: reference::in_home(key),
        };
        (!certificate.is_empty()).then(files)
    }

    fn check(&self) -> Result<(), String> {
        if self.certificate.is_empty() != self.key.is_empty() {
            return Err("tls: it takes both, `certificate` and `key`".to_owned());
        }
        let relative = [&self.certificate, &self.key]
            .into_iter()
            .find(|path| !path.is_empty() && !reference::in_home(path).is_absolute());
        match relative {
            Some(path) => Err(format!("tls: {path:?} is no path from / or ~/")),
            None => Ok(()),
        }
    }
}

/// The bounds of everything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
struct Limits {
    requests_per_second: u32,
    strangers_per_second: u32,
    sign_ins_per_minute: u32,
    connections_max: u32,
    connections_strangers_max: u32,
    connections_per_address_max: u32,
    connections_per_person_max: u32,
    streams_max: u32,
    streams_per_person_max: u32,
    looks_max: u32,
    looks_per_person_max: u32,
    body_bytes_max: Size,
    body_bytes_per_person_max: Size,
    workers_per_person_max: u32,
    worker_written_bytes_max: Size,
    words_bytes_per_person_max: Size,
    worktree_bytes_per_person_max: Size,
    snapshot_bytes_per_person_max: Size,
    snapshot_bytes_per_repository_max: Size,
    open_max: u32,
    org_open_max: u32,
    awake_max: u32,
    org_awake_max: u32,
    pending_max: u32,
    verdict_wait: Span,
    stop_grace: Span,
    words_wait: Span,
    words_bytes_max: usize,
    commands_wait: Span,
}

/// The fate of worktrees that nobody is in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
struct WorktreesTable {
    keep: Span,
    disk_max: Size,
    snapshots: Span,
    every: Span,
}

/// The rule for turns of several sessions in one directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Directories {
    #[default]
    Exclusive,
    Shared,
}

/// Whose conversation a subdirectory of a repository has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Conversations {
    #[default]
    Repository,
    Directory,
}

/// Promises to sessions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
struct Policy {
    attempts_max: u16,
    backoff: Span,
    backoff_max: Span,
    turn_max: Span,
    hold_max: Span,
    ask_max: Span,
    crowded_wait: Span,
    after_failure: AfterFailure,
    unattended: Unattended,
}

/// The things that agents must not see, and as whom they run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WallTable {
    /// The kind of wall.
    pub(crate) kind: WallBy,
    /// The layout of it: what an agent sees besides its own.
    pub(crate) layout: WallLayoutBy,
    /// Paths that are there for all agents where the layout is a list.
    pub(crate) allow: Vec<String>,
    /// Paths that are there, and can only be read.
    pub(crate) allow_read: Vec<String>,
    /// Paths that are hidden besides the data directory.
    pub(crate) hide: Vec<String>,
    /// The operating system's user that somebody's sessions run as, by the person's id.
    pub(crate) people: BTreeMap<String, String>,
}

/// The kind of wall.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WallBy {
    #[default]
    Auto,
    Mounts,
    Landlock,
    Off,
}

/// The layout of a wall.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WallLayoutBy {
    #[default]
    Auto,
    List,
    Hide,
}

/// The fate of an agent's question when nobody attends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Unattended {
    #[default]
    Deny,
    Ask,
}

/// The fate of waiting messages after a failed turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum AfterFailure {
    #[default]
    Hold,
    GoOn,
}

impl Config {
    /// The configuration in force, and the file it comes from, if there is one.
    pub(crate) fn load(named: Option<&Path>, data: &Path) -> Result<(Self, Option<PathBuf>)> {
        let (file, text) = match find(named, data)? {
            Some((path, text)) => (Some(path), text),
            None => (None, String::new()),
        };
        let wrong = |why: String| {
            let path = file.as_deref().unwrap_or(Path::new("default.toml"));
            CliError::new(Exit::Usage, format!("{}: {}", path.display(), why.trim_end()))
                .hint("`homing config` prints every key with its default and what it means")
        };
        let mut config = Self::read(&text).map_err(wrong)?;
        config.check_references(&text).map_err(wrong)?;
        let variable = |name| std::env::var(name).ok();
        if let Some(listen) = variable("HOMING_LISTEN") {
            config.listen = listen;
        }
        if let Some(agent) = variable("HOMING_DEFAULT_AGENT") {
            config.default_agent = agent;
        }
        if let Some(roots) = variable("HOMING_ROOTS") {
            let named = roots.split(':').filter(|root| !root.is_empty()).map(str::to_owned);
            config.roots.extend(named);
        }
        config.file = file.clone();
        Ok((config, file))
    }

    /// Whose conversation a subdirectory of a repository has. Whoever only asks a server reads nothing else of the file: it may
    /// name what only the server has.
    pub(crate) fn conversations(data: &Path) -> Result<Conversations> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct OnlyThis {
            conversations: Conversations,
        }
        let Some((path, text)) = find(None, data)? else { return Ok(Conversations::default()) };
        let read = toml::from_str(&text).map(|OnlyThis { conversations }| conversations);
        read.map_err(|why| {
            CliError::new(Exit::Usage, format!("{}: {}", path.display(), why.to_string().trim_end()))
                .hint("`homing config` prints every key with its default and what it means")
                .into()
        })
    }

    /// A file's text over the defaults. An error names the line.
    fn read(text: &str) -> Result<Self, String> {
        // What is read here is thrown away: only what is wrong with it counts.
        let alone: Self = toml::from_str(text).map_err(|why| why.to_string())?;
        drop(alone);
        let parse = |text: &str| toml::from_str::<Table>(text).map_err(|why| why.to_string());
        let mut all = parse(DEFAULT)?;
        lay_over(&mut all, parse(text)?);
        spread_every_agent(&mut all);
        let config: Self = all.try_into().map_err(|why: toml::de::Error| why.to_string())?;
        config.check()?;
        config.check_agents(text)?;
        Ok(config)
    }

    /// Checks of agents that the types cannot make.
    fn check_agents(&self, text: &str) -> Result<(), String> {
        for (name, agent) in &self.agents {
            let wrong = |key: &str, why: &str| {
                let path = ["agents", name, key];
                Err(format!("{}agents.{name}{}: {why}", line_of(text, &path), dotted(key)))
            };
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
            let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
            if !begins_well || name.len() > api::AGENT_LENGTH_MAX || !name.chars().all(is_plain) {
                return wrong(
                    "",
                    "a name begins with a letter or digit, and goes on with those, dots, dashes and underscores",
                );
            }
            if name == AUTO {
                return wrong("", "`auto` is not a name: `default_agent` uses it");
            }
            if agent.kind.is_none() {
                return wrong("", "it needs a `kind`: claude, codex, opencode, acp, command or scripted");
            }
            if agent.quirks.is_some() && agent.kind != Some(agents::Kind::Acp) {
                return wrong("quirks", "only agents of kind \"acp\" have quirks");
            }
            if agent.command.is_some() && agent.kind != Some(agents::Kind::Command) {
                return wrong("command", "only agents of kind \"command\" have this");
            }
            let keeps_background = agent.background == agents::BackgroundWord::Kept;
            if keeps_background && agent.kind == Some(agents::Kind::Command) {
                return wrong(
                    "background",
                    "the process of a \"command\" is one turn's, so nothing of it is kept",
                );
            }
            if keeps_background && agent.keep.kept_max == 0 {
                return wrong("background", "it is kept with the agent's process: `keep.kept_max` is 0");
            }
            if agent.limits.turn_max.0 == 0 || agent.limits.start_max.0 == 0 || agent.limits.output_max.0 == 0
            {
                return wrong(
                    "limits",
                    "start_max, turn_max and output_max are not 0: nothing could ever be done",
                );
            }
        }
        Ok(())
    }

    /// That every reference of an agent that is not switched off leads to something.
    fn check_references(&self, text: &str) -> Result<(), String> {
        let there = self.agents.iter().filter(|(_, agent)| agent.enabled != Enabled::No);
        for (name, agent) in there {
            for (variable, value) in &agent.env {
                reference::resolve(value).map_err(|why| {
                    let line = line_of(text, &["agents", name, "env", variable]);
                    format!("{line}agents.{name}.env.{variable}: {why}")
                })?;
            }
        }
        self.push.pushes(text, [0; 32])?;
        self.oidc.provider(text).map(drop)
    }

    fn check(&self) -> Result<(), String> {
        let (limits, policy) = (&self.limits, &self.policy);
        let counts = [
            ("limits.connections_max", u64::from(limits.connections_max)),
            ("limits.streams_max", u64::from(limits.streams_max)),
            ("limits.looks_max", u64::from(limits.looks_max)),
            ("limits.body_bytes_max", limits.body_bytes_max.0),
            ("limits.workers_per_person_max", u64::from(limits.workers_per_person_max)),
            ("limits.open_max", u64::from(limits.open_max)),
            ("limits.org_open_max", u64::from(limits.org_open_max)),
            ("limits.awake_max", u64::from(limits.awake_max)),
            ("limits.org_awake_max", u64::from(limits.org_awake_max)),
            ("limits.pending_max", u64::from(limits.pending_max)),
            ("limits.words_bytes_max", limits.words_bytes_max as u64),
            ("policy.attempts_max", u64::from(policy.attempts_max)),
            ("policy.turn_max", policy.turn_max.0),
        ];
        if let Some((key, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(format!("{key} is 0: nothing could ever be done"));
        }
        self.tls.check()?;
        self.proxies().map(drop)
    }

    fn proxies(&self) -> Result<Vec<server::Network>, String> {
        let proxies = self.trusted_proxies.iter().map(|proxy| proxy.parse());
        proxies.collect::<Result<_, String>>().map_err(|why| format!("trusted_proxies: {why}"))
    }

    /// The settings of the door, but for the certificate.
    pub(crate) fn door(&self, owner: kernel::Principal) -> server::ServerConfig {
        server::ServerConfig {
            allowed_hosts: self.allowed_hosts.clone(),
            // They and the provider were checked when the file was read.
            trusted_proxies: self.proxies().unwrap_or_default(),
            requests_per_second: self.limits.requests_per_second,
            strangers_per_second: self.limits.strangers_per_second,
            sign_ins_per_minute: self.limits.sign_ins_per_minute,
            connections_max: self.limits.connections_max as usize,
            connections_strangers_max: self.limits.connections_strangers_max as usize,
            connections_per_address_max: self.limits.connections_per_address_max as usize,
            connections_per_person_max: self.limits.connections_per_person_max as usize,
            streams_max: self.limits.streams_max as usize,
            streams_per_person_max: self.limits.streams_per_person_max as usize,
            looks_max: self.limits.looks_max as usize,
            looks_per_person_max: self.limits.looks_per_person_max as usize,
            body_bytes_max: usize::try_from(self.limits.body_bytes_max.0).unwrap_or(usize::MAX),
            body_bytes_per_person_max: usize::try_from(self.limits.body_bytes_per_person_max.0)
                .unwrap_or(usize::MAX),
            oidc: self.oidc().unwrap_or_default(),
            ..server::ServerConfig::new(&self.listen, owner)
        }
    }

    /// The bytes that one call to a ground worker may write.
    pub(crate) fn worker_written_bytes_max(&self) -> u64 {
        bound(self.limits.worker_written_bytes_max)
    }

    /// The bytes that the snapshots of one repository may take.
    pub(crate) fn snapshot_bytes_per_repository_max(&self) -> u64 {
        bound(self.limits.snapshot_bytes_per_repository_max)
    }

    /// Processes at once that look at the directories of one person's sessions.
    pub(crate) fn workers_per_person_max(&self) -> usize {
        self.limits.workers_per_person_max as usize
    }

    /// True if every client would look as if it were the proxy: they would share one limit, and the audit could not
    /// tell them apart.
    pub(crate) fn hides_clients(&self) -> bool {
        self.behind_proxy && self.trusted_proxies.is_empty()
    }

    /// The bounds of everything.
    pub(crate) fn limits(&self) -> engine::Limits {
        let Limits { open_max, org_open_max, awake_max, org_awake_max, .. } = self.limits;
        let Limits { pending_max, words_bytes_max, .. } = self.limits;
        engine::Limits {
            open_max,
            org_open_max,
            awake_max,
            org_awake_max,
            pending_max,
            words_bytes_per_person_max: bound(self.limits.words_bytes_per_person_max),
            worktree_bytes_per_person_max: bound(self.limits.worktree_bytes_per_person_max),
            snapshot_bytes_per_person_max: bound(self.limits.snapshot_bytes_per_person_max),
            verdict_wait: Duration::from_millis(self.limits.verdict_wait.0),
            stop_grace_ms: self.limits.stop_grace.0,
            words_ms_max: self.limits.words_wait.0,
            words_bytes_max,
            commands_wait: Duration::from_millis(self.limits.commands_wait.0),
            shared_directories: self.directories == Directories::Shared,
            worktrees: engine::Collecting {
                keep: Duration::from_millis(self.worktrees.keep.0),
                disk_bytes_max: self.worktrees.disk_max.0,
                snapshots: Duration::from_millis(self.worktrees.snapshots.0),
                every: Duration::from_millis(self.worktrees.every.0),
            },
        }
    }

    /// The identity provider at which people may sign in, if there is one.
    pub(crate) fn oidc(&self) -> Result<Option<server::OidcConfig>, String> {
        self.oidc.provider("")
    }

    /// The settings of telling people on their devices, with a key of this seed; none if nobody is. It was checked when the file was read.
    pub(crate) fn pushes(&self, seed: [u8; 32]) -> Option<server::PushConfig> {
        self.push.pushes("", seed).unwrap_or_default()
    }

    /// Promises to sessions.
    pub(crate) fn policy(&self) -> kernel::Policy {
        let policy = &self.policy;
        kernel::Policy {
            attempts_max: policy.attempts_max,
            backoff_ms: policy.backoff.0,
            backoff_ms_max: policy.backoff_max.0,
            turn_ms_max: policy.turn_max.0,
            hold_ms_max: policy.hold_max.0,
            ask_ms_max: policy.ask_max.0,
            crowded_ms: policy.crowded_wait.0,
            after_failure: match policy.after_failure {
                AfterFailure::Hold => kernel::AfterFailure::Hold,
                AfterFailure::GoOn => kernel::AfterFailure::GoOn,
            },
            unattended: match policy.unattended {
                Unattended::Deny => kernel::Unattended::Deny,
                Unattended::Ask => kernel::Unattended::Ask,
            },
        }
    }
}

/// The file to read: the one that is named, or the first that is there.
/// A bound on bytes, of which 0 is none.
fn bound(size: Size) -> u64 {
    if size.0 == 0 { u64::MAX } else { size.0 }
}

fn find(named: Option<&Path>, data: &Path) -> Result<Option<(PathBuf, String)>> {
    if let Some(path) = named {
        let text = std::fs::read_to_string(path).map_err(|why| {
            CliError::new(Exit::Usage, format!("{}: {why}", path.display()))
                .hint("`--config` names a file that is there; leave it out to do without")
        })?;
        return Ok(Some((path.to_owned(), text)));
    }
    for path in [Some(data.join("homing.toml")), in_home()].into_iter().flatten() {
        match std::fs::read_to_string(&path) {
            Ok(text) => return Ok(Some((path, text))),
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => {}
            // A file that is there and cannot be read is not the same as none.
            Err(why) => return Err(why).with_context(|| path.display().to_string()),
        }
    }
    Ok(None)
}

fn in_home() -> Option<PathBuf> {
    Some(user_directory()?.join("config.toml"))
}

/// Where whoever runs us has their own configuration: `$XDG_CONFIG_HOME/homing`, or `~/.config/homing`.
pub(crate) fn user_directory() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = named("XDG_CONFIG_HOME").or_else(|| Some(named("HOME")?.join(".config")))?;
    Some(base.join("homing"))
}

/// Lays each agent's own table over what every agent gets. Lists replace each other, but for `pass_env`: whoever names a
/// variable for one agent does not want it to lose the others.
fn spread_every_agent(all: &mut Table) {
    let every = all.get("every_agent").and_then(|every| every.as_table()).cloned().unwrap_or_default();
    let Some(agents) = all.get_mut("agents").and_then(|agents| agents.as_table_mut()) else { return };
    for agent in agents.iter_mut().filter_map(|(_, agent)| agent.as_table_mut()) {
        let own = std::mem::replace(agent, every.clone());
        let names = |table: &Table| table.get("pass_env").and_then(|names| names.as_array()).cloned();
        let passed: Vec<_> = [names(&every), names(&own)].into_iter().flatten().flatten().collect();
        lay_over(agent, own);
        agent.insert("pass_env".to_owned(), toml::Value::Array(passed));
    }
}

fn dotted(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!(".{key}") }
}

/// Where a key stands in a file, as the beginning of an error; nothing if it is not there.
fn line_of(text: &str, path: &[&str]) -> String {
    fn offset(table: &DeTable<'_>, path: &[&str]) -> Option<usize> {
        let (name, rest) = path.split_first()?;
        let (key, value) = table.iter().find(|(key, _)| key.get_ref().as_ref() == *name)?;
        let deeper = match value.get_ref() {
            DeValue::Table(table) => offset(table, rest),
            _ => None,
        };
        Some(deeper.unwrap_or(key.span().start))
    }
    let offset = DeTable::parse(text).ok().and_then(|table: Spanned<_>| offset(table.get_ref(), path));
    let line = |offset: usize| format!("line {}: ", text[..offset].matches('\n').count() + 1);
    offset.map(line).unwrap_or_default()
}

fn lay_over(base: &mut Table, over: Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(toml::Value::Table(base)), toml::Value::Table(over)) => lay_over(base, over),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::agents::Kind;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_defaults_are_those_of_the_engine_and_the_kernel() {
        let config = Config::read("").unwrap();
        assert_eq!(config.limits(), engine::Limits::default());
        assert_eq!(config.policy(), kernel::Policy::default());
        let (org, person) = (kernel::OrgId::from_bits(1), kernel::PersonId::from_bits(1));
        let owner = kernel::Principal::member(org, person, "ada");
        let usual = server::ServerConfig::new("127.0.0.1:4747", owner.clone());
        assert_eq!(format!("{:?}", config.door(owner)), format!("{usual:?}"));
    }

    #[test]
    fn a_certificate_needs_its_key_and_a_proxy_an_address() {
        let wrong = |text: &str| Config::read(text).unwrap_err();
        assert!(wrong("tls.certificate = \"/a.pem\"\n").contains("both"));
        assert!(wrong("tls.certificate = \"/a.pem\"\ntls.key = \"b.pem\"\n").contains("b.pem"));
        assert!(wrong("trusted_proxies = [\"10.0.0.0/8\", \"proxy\"]\n").contains("\"proxy\""));
        let config = Config::read("tls.certificate = \"/a.pem\"\ntls.key = \"~/b.pem\"\n").unwrap();
        let files = config.tls.files().unwrap();
        assert!(files.key.is_absolute() && files.key.ends_with("b.pem"));
        assert_eq!(Config::read("").unwrap().tls.files(), None);
        let hides = |text: &str| Config::read(text).unwrap().hides_clients();
        assert!(hides("behind_proxy = true\n") && !hides(""));
        assert!(!hides("behind_proxy = true\ntrusted_proxies = [\"127.0.0.1\"]\n"));
    }

    /// The names of all values below a table.
    fn keys(table: &Table) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        for (key, value) in table {
            match value {
                // What has its own documentation, and a map from names that people choose, is one key.
                toml::Value::Table(table) if key != "env" && key != "quirks" => {
                    all.extend(keys(table).into_iter().map(|below| format!("{key}.{below}")))
                }
                _ => drop(all.insert(key.clone())),
            }
        }
        all
    }

    #[test]
    fn default_toml_has_every_key_and_no_other() {
        let mut written: Table = toml::from_str(DEFAULT).unwrap();
        let mut known = Table::try_from(Config::default()).unwrap();
        let agents = written.remove("agents").unwrap();
        let every = written.remove("every_agent").unwrap();
        for name in ["agents", "every_agent"] {
            known.remove(name);
        }
        assert_eq!(keys(&written), keys(&known));
        // What an agent may be told stands in `every_agent`, or where it means something: with an agent of that kind.
        let mut written = keys(every.as_table().unwrap());
        for agent in agents.as_table().unwrap().values() {
            written.extend(keys(agent.as_table().unwrap()));
        }
        assert_eq!(written, keys(&Table::try_from(AgentTable::with_every_key()).unwrap()));
    }

    #[test]
    fn every_agent_has_what_all_of_them_need() {
        let every = toml::from_str::<Config>(DEFAULT).unwrap().every_agent;
        let limits = drivers::TurnLimits::default();
        let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap();
        assert_eq!(
            (every.limits.start_max.0, every.limits.turn_max.0, every.limits.output_max.0),
            (ms(limits.start_max), ms(limits.turn_max), limits.output_bytes_max)
        );
        let processes_max = limits.processes_max.unwrap();
        assert_eq!((every.limits.memory_max.0, every.limits.processes_max), (0, processes_max));
        assert_eq!(Some(every.limits.silence_max.0), limits.silence_max.map(ms));
        assert_eq!(every.limits.tries_max, drivers::opencode::TRIES_MAX);
        assert!(!every.bypass, "an agent asks unless somebody says otherwise");
    }

    #[test]
    fn an_agent_is_its_table_over_every_agent_and_the_defaults() {
        let config = Config::read(
            "[every_agent]\npass_env = [\"A\"]\nkeep.idle_max = \"1m\"\n\
             [agents.claude]\npass_env = [\"B\"]\nlimits.memory_max = \"2GiB\"\n\
             [agents.mine]\nkind = \"acp\"\nprogram = \"mine\"\n",
        )
        .unwrap();
        let claude = &config.agents["claude"];
        assert_eq!((claude.keep.idle_max.0, claude.limits.memory_max.0), (60_000, 2 << 30));
        assert_eq!((claude.program.as_str(), claude.pass_env[0].as_str()), ("claude", "A"));
        assert!(claude.pass_env.iter().any(|name| name == "B"));
        assert_eq!(
            (config.agents["mine"].keep.idle_max.0, config.agents["mine"].kind),
            (60_000, Some(Kind::Acp))
        );
    }

    #[test]
    fn a_wrong_agent_is_told_with_its_line() {
        let wrong = |text: &str| Config::read(text).unwrap_err();
        let kind = wrong("\n[agents.mine]\nprogram = \"mine\"\n");
        assert!(kind.contains("line 2") && kind.contains("agents.mine") && kind.contains("`kind`"), "{kind}");
        let name = wrong("[agents.\"a b\"]\nkind = \"acp\"\n");
        assert!(name.contains("line 1") && name.contains("letter or digit"), "{name}");
        let limits = wrong("[agents.claude]\nmodel = \"x\"\nlimits.turn_max = \"0s\"\n");
        assert!(limits.contains("line 3") && limits.contains("turn_max"), "{limits}");
        for (text, part) in [
            ("kind = \"nobody\"", "nobody"),
            ("enabled = \"maybe\"", "auto"),
            ("home = \"here\"", "person"),
            ("limits.memory_max = \"2 MB\"", "MiB"),
            ("programm = \"x\"", "programm"),
            ("keep.kept_max = -1", "-1"),
            ("background = \"sometimes\"", "sometimes"),
            ("background = \"kept\"\nkeep.kept_max = 0", "kept with the agent's process"),
            ("background = \"kept\"\nkind = \"command\"", "one turn's"),
            ("quirks = \"nobody\"", "nobody"),
            ("quirks.base = \"nobody\"", "nobody"),
            ("quirks.resum = \"load\"", "resum"),
        ] {
            let why = wrong(&format!("[agents.claude]\n{text}\n"));
            assert!(why.contains("line 2") && why.contains(part), "{why}");
        }
    }

    #[test]
    fn a_reference_that_leads_nowhere_is_told_with_its_line() {
        let text = "[agents.claude]\nbypass = false\nenv.KEY = \"env:HOMING_NO_SUCH_VARIABLE\"\n";
        let why = Config::read(text).unwrap().check_references(text).unwrap_err();
        assert!(why.contains("line 3") && why.contains("agents.claude.env.KEY"), "{why}");
        assert!(why.contains("HOMING_NO_SUCH_VARIABLE"), "{why}");
        let off = format!("{text}enabled = false\n");
        assert_eq!(Config::read(&off).unwrap().check_references(&off), Ok(()));
    }

    #[test]
    fn what_a_file_leaves_out_stays_as_it_is() {
        let config = Config::read("[policy]\nturn_max = \"3m\"\n").unwrap();
        assert_eq!(config.policy(), kernel::Policy { turn_ms_max: 180_000, ..kernel::Policy::default() });
        assert_eq!(config.listen, "127.0.0.1:4747");
    }

    #[test]
    fn a_wrong_file_is_told_with_its_line() {
        let wrong = |text: &str| Config::read(text).unwrap_err();
        let key = wrong("log = \"info\"\nlisen = \"127.0.0.1:1\"\n");
        assert!(key.contains("line 2") && key.contains("lisen") && key.contains("`listen`"), "{key}");
        let span = wrong("[policy]\n\nturn_max = \"a while\"\n");
        assert!(span.contains("line 3") && span.contains("not a duration"), "{span}");
        assert!(wrong("[limits]\nawake_max = -1\n").contains("line 2"));
        assert!(wrong("[policy]\nattempts_max = 0\n").contains("policy.attempts_max"));
    }
}

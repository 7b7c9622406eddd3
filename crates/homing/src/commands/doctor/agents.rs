//! The findings of `doctor` about agents: program, version, home, sign-in, bounds, and on request whether a turn works.

use std::path::Path;
use std::time::Duration;

use agent::{Agent, AgentEvent, Launch, Message, Presence, SignIn, TriedVersions, VersionAge};
use anyhow::Result;
use kernel::{Attempt, Epoch, Fence, MessageId, SessionId, Term, Turn};
use processes::wall::Unmapped;
use tokio::task::JoinSet;

use super::{Finding, ScratchDir};
use crate::config::Config;
use crate::config::agents::{BackgroundWord, Enabled, Home, Kind};
use crate::roster::{ConfiguredAgent, Roster};

/// The message of a turn; short, because it may cost money.
const QUESTION: &str = "Answer with the word hello and nothing else.";
/// The longest that such a turn may take.
const TURN_WAIT: Duration = Duration::from_secs(180);

/// The part of an answer that is shown.
const ANSWER_LENGTH_MAX: usize = 60;

/// The agents to look at, and whether turns are run.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgentChoice<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) turns: bool,
}

/// An agent as this shell sees it.
#[derive(Debug)]
pub(super) struct ShellAgent {
    pub(super) name: String,
    /// None if it is not here.
    pub(super) version: Option<String>,
    pub(super) sign_in: SignIn,
}

impl ShellAgent {
    fn of((_, agent, found): &AgentLook) -> Self {
        let version = match found {
            Presence::Here { version } => Some(version.clone()),
            Presence::Missing { .. } => None,
        };
        Self { name: agent.name().to_owned(), version, sign_in: agent.sign_in() }
    }
}

/// A finding for each agent that is here, or should be, or was asked for by name; and what was seen of each.
pub(super) async fn look(
    wanted: AgentChoice<'_>,
    config: &Config,
    scratch: &ScratchDir,
) -> (Vec<Finding>, Vec<ShellAgent>) {
    let wrong = |error: anyhow::Error| {
        let remedy = "mend the configuration; `homing config` explains it";
        (vec![Finding::fail("agents", format!("{error:#}"), remedy)], Vec::new())
    };
    // Beside the directories of the turns: agents do not see it.
    let data = scratch.dir.join("data");
    let make = |()| Roster::make(config, &data, Unmapped::Anybody, None);
    let made = std::fs::create_dir_all(&data).map_err(Into::into).and_then(make);
    let roster = match made {
        Ok(roster) => roster,
        Err(error) => return wrong(error),
    };
    let agents = match wanted.name {
        Some(name) => match roster.find(name) {
            Ok(agent) => vec![agent.clone()],
            Err(error) => return wrong(error.into()),
        },
        None => roster.all().iter().filter(|agent| agent.is_real()).cloned().collect(),
    };
    let mut looks = JoinSet::new();
    for (place, agent) in agents.into_iter().enumerate() {
        looks.spawn(async move {
            let found = agent.look().await;
            (place, agent, found)
        });
    }
    let mut looked = looks.join_all().await;
    looked.sort_by_key(|(place, ..)| *place);
    let seen = looked.iter().map(ShellAgent::of).collect();
    let mut findings = vec![summary(&roster, &looked)];
    for (_, agent, found) in looked {
        findings.extend(one(&agent, found, wanted, scratch).await);
    }
    (findings, seen)
}

type AgentLook = (usize, std::sync::Arc<ConfiguredAgent>, Presence);

fn summary(roster: &Roster, looked: &[AgentLook]) -> Finding {
    let is_here = |(_, _, found): &&AgentLook| matches!(found, Presence::Here { .. });
    let here = looked.iter().filter(is_here).count();
    let default = roster.default_agent();
    Finding::ok("agents", format!("{here} of {} are here; new sessions use {default}", looked.len()))
}

async fn one(
    agent: &ConfiguredAgent,
    found: Presence,
    wanted: AgentChoice<'_>,
    scratch: &ScratchDir,
) -> Vec<Finding> {
    let name = agent.name();
    let asked_for = wanted.name.is_some();
    let version = match found {
        Presence::Here { version } => version,
        // Whoever asks for one agent, or wants it for sure, is told; the others are just not installed.
        Presence::Missing { what } if asked_for || agent.table().enabled == Enabled::Yes => {
            return vec![Finding::fail(name, what, "install it, or correct `program` in its table")];
        }
        Presence::Missing { what } if agent.has_program() => {
            return vec![Finding::warn(name, what, "it is on PATH but does not say its version")];
        }
        Presence::Missing { .. } => return Vec::new(),
    };
    let mut findings = vec![set_up(agent, &version)];
    findings.extend(age_finding(agent, &version));
    if agent.table().kind == Some(Kind::Command) {
        findings
            .push(Finding::ok(name, "a program that is run for each message; it asks nobody before it acts"));
    } else if agent.table().bypass {
        let remedy = format!("remove `bypass = true` from [agents.{name}] unless you mean it");
        findings.push(Finding::warn(name, "it acts WITHOUT ASKING", remedy));
    }
    findings.extend(home_finding(agent));
    if asked_for {
        findings.push(Finding::ok(name, bounds(agent)));
    }
    if wanted.turns || asked_for {
        findings.push(turn(agent, scratch).await);
    }
    findings
}

/// The finding about a version that nobody has tried.
fn age_finding(agent: &ConfiguredAgent, version: &str) -> Option<Finding> {
    let (name, tried) = (agent.name(), agent.setup().tried?);
    let TriedVersions { oldest, newest, update } = &tried;
    match tried.age(version) {
        VersionAge::Older => {
            let found = format!("{version} is older than {oldest}, the oldest that was tried");
            Some(Finding::warn(name, found, format!("update it: {update}")))
        }
        VersionAge::Newer => {
            Some(Finding::ok(name, format!("{version} is newer than {newest}, the newest that was tried")))
        }
        VersionAge::Tried | VersionAge::Unknown => None,
    }
}

fn set_up(agent: &ConfiguredAgent, version: &str) -> Finding {
    let home = match agent.table().home {
        Home::Session => "a home per session".to_owned(),
        _ => format!("home {}", agent.home()),
    };
    let version = if version.is_empty() { "does not tell its version" } else { version };
    let (name, found) = (agent.name(), format!("{version}, {home}"));
    match agent.sign_in() {
        SignIn::Here { by } => Finding::ok(name, format!("{found}, signed in by {by}")),
        SignIn::Unknown => {
            Finding::ok(name, format!("{found}; only a turn can tell whether it is signed in"))
        }
        SignIn::Missing { how } => Finding::warn(name, format!("{found}, not signed in"), how),
    }
}

fn home_finding(agent: &ConfiguredAgent) -> Option<Finding> {
    let home = Path::new(agent.home());
    // Homes of sessions are made when needed, below the data directory, which has its own check.
    if agent.table().home == Home::Session || rustix::fs::access(home, rustix::fs::Access::WRITE_OK).is_ok() {
        return None;
    }
    let remedy = "make it, or give it to the user who runs the server";
    Some(Finding::fail(agent.name(), format!("its home {} cannot be written to", home.display()), remedy))
}

/// The bounds in force.
fn bounds(agent: &ConfiguredAgent) -> String {
    let table = agent.table();
    let (limits, keep) = (&table.limits, &table.keep);
    let count = |count: u64, unit: &str| match count {
        0 => "no bound".to_owned(),
        _ => format!("{count}{unit}"),
    };
    format!(
        "at most {} s to start, {} s a turn, {} without a sign of life, {} MiB printed, memory {}, processes {}; {} kept for {} s, what turns leave running is {}",
        limits.start_max.0 / 1_000,
        limits.turn_max.0 / 1_000,
        count(limits.silence_max.0 / 1_000, " s"),
        limits.output_max.0 >> 20,
        count(limits.memory_max.0 >> 20, " MiB"),
        count(u64::from(limits.processes_max), ""),
        keep.kept_max,
        keep.idle_max.0 / 1_000,
        match table.background {
            BackgroundWord::Ended => "ended",
            BackgroundWord::Kept => "kept with them",
        },
    )
}

/// One real turn in a directory of its own.
async fn turn(agent: &ConfiguredAgent, scratch: &ScratchDir) -> Finding {
    let name = agent.name();
    let work = scratch.dir.join(format!("work-{name}"));
    if let Err(why) = std::fs::create_dir_all(&work) {
        return Finding::fail(name, format!("{}: {why}", work.display()), "look at the temporary directory");
    }
    let remedy = "try a turn with the agent's own program; when that works, ask `homing doctor` again";
    match one_turn(agent, &work, QUESTION, TURN_WAIT).await {
        Ok(answer) => {
            let answer = crate::screen::cut(answer.trim(), ANSWER_LENGTH_MAX);
            Finding::ok(name, format!("a turn works; asked for hello it said: {answer}"))
        }
        Err(error) => Finding::fail(name, format!("a turn fails: {error:#}"), remedy),
    }
}

/// Runs one turn and answers with what was said. Whatever it was, nothing of it runs any more.
pub(super) async fn one_turn(agent: &dyn Agent, work: &Path, text: &str, wait: Duration) -> Result<String> {
    let fence = Fence { term: Term(1), epoch: Epoch(1), turn: Turn(1), attempt: Attempt(1) };
    let (session, id) = (SessionId::from_bits(uuid::Uuid::now_v7().as_u128()), MessageId::from_bits(1));
    let launch = Launch::new(session, fence, id, &*work.to_string_lossy());
    let tree = launch.tree.clone();
    let said = tokio::time::timeout(wait, converse(agent, launch, Message::new(id, text.to_owned()))).await;
    agent.end_leftovers(tree).await?;
    said.map_err(|_| anyhow::anyhow!("no answer within {} s", wait.as_secs()))?
}

async fn converse(agent: &dyn Agent, launch: Launch, message: Message) -> Result<String> {
    let mut running = agent.start(launch).await?;
    let mut answer = String::new();
    loop {
        match running.next().await {
            AgentEvent::Ready { .. } => running.hand(message.clone()).await?,
            AgentEvent::Text { text } => answer += &text,
            AgentEvent::Asked { question, .. } => {
                let no = agent::QuestionAnswer::Deny { reason: "this is only a try".to_owned() };
                running.answer(&question, no).await?;
            }
            AgentEvent::Finished { .. } => return Ok(answer),
            AgentEvent::Failed(error) => return Err(error.into()),
            AgentEvent::Died { detail, .. } => anyhow::bail!("the agent died: {detail}"),
            _ => {}
        }
    }
}

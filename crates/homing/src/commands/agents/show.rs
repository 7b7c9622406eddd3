//! `homing agents show`: one agent, how it is set up, and what can be chosen.

use anyhow::Result;
use api::{Agent, Choice, MemoryMove, SignIn, TriedVersions, VersionAge};

use super::{abilities, is_program};
use crate::completion::Completes;
use crate::exit::{CliError, Exit};
use crate::remote::{OrCliError, Remote};
use crate::screen::{Screen, TextStyle};

/// Show one agent: its set-up, and the models, modes and commands it last listed
#[derive(clap::Args)]
pub(crate) struct ShowArgs {
    /// The agent
    #[arg(add = Completes::Agents)]
    name: String,
}

pub(crate) async fn show(args: &ShowArgs, remote: &Remote) -> Result<Exit> {
    let page = remote.client.agents().await.or_cli_error()?;
    let found = page.items.iter().find(|agent| agent.name == args.name);
    let agent = found.ok_or_else(|| {
        CliError::new(Exit::NotFound, format!("there is no agent called {:?}", args.name))
            .hint("`homing agents` lists the agents there are")
    })?;
    if remote.screen.json {
        remote.screen.object(agent)?;
    } else {
        tell(agent, remote.screen)?;
    }
    Ok(Exit::Done)
}

fn tell(agent: &Agent, screen: Screen) -> Result<()> {
    let kind = match is_program(agent) {
        true => format!("{}: a program that is run for each message, and prints the answer", agent.kind),
        false => agent.kind.clone(),
    };
    let mut pairs = vec![("agent", agent.name.clone()), ("kind", kind)];
    pairs.extend(agent.version.clone().map(|version| ("version", version)));
    pairs.extend(agent.tried.as_ref().map(|tried| ("tried", versions(tried, screen))));
    pairs.extend(agent.missing.clone().map(|missing| ("missing", missing)));
    pairs.push(("signed in", signed_in(&agent.sign_in)));
    if !agent.program.is_empty() {
        pairs.push(("program", agent.program.clone()));
    }
    pairs.push(("home", agent.home.clone()));
    pairs.push(("asks", asks(agent, screen)));
    pairs.push(("kept", if agent.kept { "its process stays between turns" } else { "no" }.to_owned()));
    pairs.push(("background", background(agent)));
    pairs.push(("can", abilities(&agent.abilities).join(", ")));
    pairs.push(("memory", memory(agent.abilities.memory).to_owned()));
    if !agent.secrets.is_empty() {
        pairs.push(("own sign-in", agent.secrets.join(", ")));
    }
    screen.pairs(&pairs)?;
    for (name, choices) in [("models", &agent.models), ("modes", &agent.modes), ("commands", &agent.commands)]
    {
        list(name, choices, screen)?;
    }
    Ok(())
}

fn signed_in(sign_in: &SignIn) -> String {
    match sign_in {
        SignIn::Unknown => "only a turn can tell".to_owned(),
        SignIn::Here { by } => format!("it looks so, by {by}"),
        SignIn::Missing { how } => format!("no: {how}"),
    }
}

/// The versions that were tried, and what this one is beside them.
fn versions(tried: &TriedVersions, screen: Screen) -> String {
    let TriedVersions { oldest, newest, age, update } = tried;
    let all = if oldest == newest { newest.clone() } else { format!("{oldest} to {newest}") };
    match age {
        VersionAge::Older => {
            let words = format!("{all}; this one is OLDER, update it: {update}");
            screen.out(TextStyle::Bad, &words).into_owned()
        }
        VersionAge::Newer => format!("{all}; this one is newer"),
        VersionAge::Tried | VersionAge::Unknown => all,
    }
}

fn asks(agent: &Agent, screen: Screen) -> String {
    match (agent.bypasses, agent.abilities.asks) {
        (true, false) if is_program(agent) => "nobody: it acts as soon as it is run".to_owned(),
        (true, _) => screen.out(TextStyle::Bad, "NO: `bypass = true` in its configuration").into_owned(),
        (false, true) => "before it acts".to_owned(),
        (false, false) => "never: it has no way to".to_owned(),
    }
}

/// The policy for what a turn leaves running.
fn background(agent: &Agent) -> String {
    match agent.keeps_background {
        true => {
            "what a turn leaves running goes on while the agent's process is kept; `homing show` lists it"
                .to_owned()
        }
        false => "what a turn leaves running is ended with the turn".to_owned(),
    }
}

fn memory(memory: MemoryMove) -> &'static str {
    match memory {
        MemoryMove::Resume => "follows to another directory",
        MemoryMove::Carry => "is carried to another directory",
        MemoryMove::Replay => "does not follow to another directory",
    }
}

fn list(name: &str, choices: &[Choice], screen: Screen) -> Result<()> {
    if choices.is_empty() {
        return Ok(());
    }
    screen.line(format!("\n{}", screen.out(TextStyle::Dim, name)))?;
    let rows =
        choices.iter().map(|choice| (choice.name.as_str(), choice.description.clone())).collect::<Vec<_>>();
    Ok(screen.pairs(&rows)?)
}

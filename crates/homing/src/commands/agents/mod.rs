//! `homing agents`: the agents there are, what is missing, and how to get it.

mod account;
mod show;

use anyhow::Result;
use api::{Abilities, Agent, FilesTaken, SignIn, TriedVersions, VersionAge};

use crate::exit::Exit;
use crate::remote::{OrCliError, Remote};

/// List the agents: whether they are here and signed in, and what they can do
#[derive(clap::Args)]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    command: Option<AgentsCommand>,
}

#[derive(clap::Subcommand)]
enum AgentsCommand {
    Show(show::ShowArgs),
    Account(account::AccountArgs),
}

pub(crate) async fn agents(args: &AgentsArgs, remote: &Remote) -> Result<Exit> {
    match &args.command {
        None => list(remote).await,
        Some(AgentsCommand::Show(args)) => show::show(args, remote).await,
        Some(AgentsCommand::Account(args)) => account::account(args, remote).await,
    }
}

async fn list(remote: &Remote) -> Result<Exit> {
    let page = remote.client.agents().await.or_cli_error()?;
    if remote.screen.json {
        remote.screen.object(&page)?;
        return Ok(Exit::Done);
    }
    // Those that can be used first, then those that could be.
    let (here, missing): (Vec<&Agent>, Vec<&Agent>) = page.items.iter().partition(|agent| agent.here);
    let rows: Vec<Vec<String>> = here.iter().map(|agent| row(agent)).collect();
    remote.screen.table(&["AGENT", "KIND", "VERSION", "SIGNED IN", "KEPT", "CAN"], &rows)?;
    for agent in here.iter().filter(|agent| agent.bypasses) {
        remote.screen.say(match is_program(agent) {
            true => format!(
                "{} is a program that is run for each message: it asks nobody before it acts",
                agent.name
            ),
            false => format!("{} acts WITHOUT ASKING: `bypass = true` in its configuration", agent.name),
        });
    }
    for words in here.iter().filter_map(|agent| about_version(agent)) {
        remote.screen.say(words);
    }
    if !missing.is_empty() {
        remote.screen.line("")?;
        let rows: Vec<Vec<String>> = missing.iter().map(|agent| absent(agent)).collect();
        remote.screen.table(&["NOT HERE", "KIND", "WHY, AND HOW TO GET IT"], &rows)?;
    }
    Ok(Exit::Done)
}

fn row(agent: &Agent) -> Vec<String> {
    let default = if agent.default { " (default)" } else { "" };
    let mut can = abilities(&agent.abilities).join(", ");
    if is_program(agent) {
        can = ["a program, run for each message", can.as_str()].join(", ").trim_end_matches(", ").to_owned();
    } else if agent.bypasses {
        can = format!("ACTS WITHOUT ASKING; {can}");
    }
    vec![
        format!("{}{default}", agent.name),
        agent.kind.clone(),
        agent.version.clone().unwrap_or_default(),
        signed_in(&agent.sign_in),
        if agent.kept { "yes" } else { "" }.to_owned(),
        can,
    ]
}

/// The words about a version that nobody has tried.
fn about_version(agent: &Agent) -> Option<String> {
    let (name, version) = (&agent.name, agent.version.as_ref()?);
    let TriedVersions { oldest, newest, age, update } = agent.tried.as_ref()?;
    match age {
        VersionAge::Older => Some(format!(
            "{name} {version} is older than {oldest}, the oldest that was tried; update it: {update}"
        )),
        VersionAge::Newer => {
            Some(format!("{name} {version} is newer than {newest}, the newest that was tried"))
        }
        VersionAge::Tried | VersionAge::Unknown => None,
    }
}

/// True if it is any program, which is given a message and prints the answer: an agent only in how it is used.
fn is_program(agent: &Agent) -> bool {
    agent.kind == "command"
}

fn absent(agent: &Agent) -> Vec<String> {
    vec![agent.name.clone(), agent.kind.clone(), agent.missing.clone().unwrap_or_default()]
}

/// Its sign-in as far as it can be seen, and the remedy if it has none.
fn signed_in(sign_in: &SignIn) -> String {
    match sign_in {
        SignIn::Unknown => String::new(),
        SignIn::Here { .. } => "yes".to_owned(),
        SignIn::Missing { how } => format!("no: {how}"),
    }
}

fn abilities(can: &Abilities) -> Vec<&'static str> {
    let all = [
        ("resume", can.resume),
        ("fork", can.fork),
        ("steer", can.steer),
        ("ask", can.asks),
        ("usage", can.usage),
        ("commands", can.commands),
        ("models", can.models),
        ("modes", can.modes),
        ("images", can.images),
        ("PDF files", can.files == FilesTaken::Pdf),
        ("all files", can.files == FilesTaken::Any),
    ];
    all.into_iter().filter(|(_, can)| *can).map(|(name, _)| name).collect()
}

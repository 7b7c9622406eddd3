//! `homing agents`: the agents there are.

use anyhow::Result;
use api::Agent;

use crate::exit::Exit;
use crate::remote::{Remote, Told};

/// List the agents, and whether they are here
#[derive(clap::Args)]
pub(crate) struct AgentsArgs {}

pub(crate) async fn agents(_: &AgentsArgs, remote: &Remote) -> Result<Exit> {
    let page = remote.client.agents().await.told()?;
    if remote.screen.json {
        remote.screen.object(&page)?;
        return Ok(Exit::Done);
    }
    let rows: Vec<Vec<String>> = page.items.iter().map(row).collect();
    remote.screen.table(&["AGENT", "DEFAULT", "HERE", "CAN"], &rows)?;
    Ok(Exit::Done)
}

fn row(agent: &Agent) -> Vec<String> {
    let can = &agent.abilities;
    let abilities = [
        ("resume", can.resume),
        ("fork", can.fork),
        ("steer", can.steer),
        ("ask", can.asks),
        ("usage", can.usage),
    ];
    let abilities: Vec<&str> = abilities.into_iter().filter(|(_, can)| *can).map(|(name, _)| name).collect();
    let here = agent.version.clone().or_else(|| agent.missing.clone()).unwrap_or_default();
    let here = if agent.here { here } else { format!("no: {here}") };
    vec![agent.name.clone(), if agent.default { "yes" } else { "" }.to_owned(), here, abilities.join(", ")]
}

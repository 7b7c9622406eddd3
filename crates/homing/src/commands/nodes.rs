//! `homing nodes`: the running copies of the server.

use anyhow::Result;

use crate::exit::Exit;
use crate::remote::{OrCliError, Remote};
use crate::time;

/// List the running copies of the server
#[derive(clap::Args)]
pub(crate) struct NodesArgs {}

pub(crate) async fn nodes(_: &NodesArgs, remote: &Remote) -> Result<Exit> {
    let page = remote.client.nodes().await.or_cli_error()?;
    if remote.screen.json {
        remote.screen.object(&page)?;
        return Ok(Exit::Done);
    }
    let rows: Vec<Vec<String>> = page
        .items
        .into_iter()
        .map(|node| {
            let (term, pid) = (node.term.to_string(), node.pid.to_string());
            vec![node.id, node.host, pid, term, time::full(node.since), node.url.unwrap_or_default()]
        })
        .collect();
    remote.screen.table(&["NODE", "HOST", "PROCESS", "TERM", "SINCE", "URL"], &rows)?;
    Ok(Exit::Done)
}

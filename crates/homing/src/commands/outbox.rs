//! `homing outbox`: replies that leave by a door, and what to do about those that do not.

use anyhow::Result;
use api::{LIMIT_MAX, OutboxQuery, Outgoing, OutgoingState};

use crate::exit::Exit;
use crate::remote::{OrCliError, Remote};
use crate::{system, time};

/// List replies that leave by a door, send one again, or send one no more
///
/// For admins. What is `unknown` may have been sent: the service's own pages say whether it has it.
#[derive(clap::Args)]
pub(crate) struct OutboxArgs {
    #[command(subcommand)]
    verb: Option<OutboxVerb>,
}

#[derive(clap::Subcommand)]
enum OutboxVerb {
    /// List those that were not sent
    Ls {
        /// Those that were sent, too
        #[arg(long)]
        all: bool,
    },
    /// Send one again that is unknown or parked
    Retry { id: u64 },
    /// Send one no more
    Drop { id: u64 },
}

pub(crate) async fn outbox(args: OutboxArgs, remote: &Remote) -> Result<Exit> {
    match args.verb.unwrap_or(OutboxVerb::Ls { all: false }) {
        OutboxVerb::Ls { all } => list(all, remote).await?,
        OutboxVerb::Retry { id } => {
            let done = remote.client.retry_reply(id).await.or_cli_error()?;
            remote.done(&done, format!("{id} is sent again"))?;
        }
        OutboxVerb::Drop { id } => {
            let done = remote.client.drop_reply(id).await.or_cli_error()?;
            remote.done(&done, format!("{id} is not sent any more"))?;
        }
    }
    Ok(Exit::Done)
}

async fn list(all: bool, remote: &Remote) -> Result<()> {
    let limit = u32::try_from(LIMIT_MAX).ok();
    let (mut cursor, mut rows) = (None, Vec::new());
    loop {
        let page = remote.client.outbox(&OutboxQuery { state: None, limit, cursor }).await.or_cli_error()?;
        for reply in page.items.iter().filter(|reply| all || reply.state != OutgoingState::Sent) {
            if remote.screen.json {
                remote.screen.object(reply)?;
            }
            rows.push(row_of(reply));
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    if remote.screen.json {
        return Ok(());
    }
    if rows.is_empty() {
        remote.screen.say("nothing waits to be sent");
        return Ok(());
    }
    Ok(remote.screen.table(&["ID", "STATE", "SINCE", "TRIES", "TO", "MESSAGE", "WHY"], &rows)?)
}

fn row_of(reply: &Outgoing) -> Vec<String> {
    let state = match reply.state {
        OutgoingState::Waiting => "waiting",
        OutgoingState::Sending => "sending",
        OutgoingState::Sent => "sent",
        OutgoingState::Unknown => "unknown (may have been sent)",
        OutgoingState::Parked => "parked",
    };
    vec![
        reply.id.to_string(),
        state.to_owned(),
        time::ago(reply.since, system::now()),
        reply.tries.to_string(),
        reply.to.clone(),
        reply.message.clone(),
        reply.reason.clone().unwrap_or_default(),
    ]
}

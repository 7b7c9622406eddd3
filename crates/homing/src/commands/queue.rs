//! `homing queue`: what waits in a session, and what can be done about it.

use anyhow::Result;
use api::client::ChangeOutcome;
use api::{EditText, Hold, MessageChange, MessageQuery, Order, Queue, Queued, Receipt, ReceiptState};

use crate::exit::{CliError, Exit};
use crate::remote::{OrCliError, Remote};
use crate::screen::cut;
use crate::target::session_or_here;
use crate::{describe, system, time};

/// The length of a message's words that a list shows.
const WORDS_SHOWN: usize = 60;

/// List what waits in a session, or change it
///
/// What the agent already has cannot be taken back, only stopped (`homing stop`).
#[derive(clap::Args)]
#[command(subcommand_precedence_over_arg = true)]
pub(crate) struct QueueArgs {
    /// The session [default: this directory's]
    session: Option<String>,
    #[command(subcommand)]
    verb: Option<QueueVerb>,
}

#[derive(clap::Subcommand)]
enum QueueVerb {
    /// Put a waiting message elsewhere in the queue
    Move {
        message: String,
        /// Before this one
        #[arg(long, value_name = "MESSAGE", group = "place")]
        before: Option<String>,
        /// Before all others
        #[arg(long, group = "place")]
        first: bool,
        /// Behind all others (the default)
        #[arg(long, group = "place")]
        last: bool,
    },
    /// Put other words in a waiting message
    Edit {
        message: String,
        #[arg(required = true)]
        text: Vec<String>,
        /// The revision you saw; refused if it is another one by now [default: the present one]
        #[arg(long)]
        revision: Option<u32>,
    },
    /// Keep a waiting message from being started
    Hold { message: String },
    /// Let a held message be started, here or where it was written for
    Release {
        message: String,
        /// In the scope of now
        #[arg(long, group = "where")]
        here: bool,
        /// In the scope that it was written for; the session goes back there first
        #[arg(long, group = "where")]
        there: bool,
    },
    /// Take a waiting message back
    Withdraw { message: String },
}

pub(crate) async fn queue(args: QueueArgs, remote: &Remote) -> Result<Exit> {
    if let (Some(session), Some(_)) = (&args.session, &args.verb) {
        return Err(CliError::new(
            Exit::Usage,
            format!("a message is in one queue; {session} is one word too many"),
        )
        .hint("for instance `homing queue hold MESSAGE`")
        .into());
    }
    let client = &remote.client;
    let held = |held, there| MessageChange::Hold(Hold { held, there });
    let verdict = match args.verb {
        None => return list(args.session.as_deref(), remote).await,
        Some(QueueVerb::Move { message, before, first, last: _ }) => {
            return put(&message, before.as_deref(), first, remote).await;
        }
        Some(QueueVerb::Edit { message, text, revision }) => {
            let revision = match revision {
                Some(revision) => revision,
                None => client.receipt(&message, &MessageQuery::default()).await.or_cli_error()?.revision,
            };
            let change = MessageChange::Text(EditText { text: text.join(" "), revision });
            client.change_message(&message, &change).await.or_cli_error()?
        }
        Some(QueueVerb::Hold { message }) => {
            client.change_message(&message, &held(true, None)).await.or_cli_error()?
        }
        Some(QueueVerb::Release { message, here: false, there: false }) => {
            return Err(CliError::new(Exit::Usage, format!("where is {message} to be started?"))
                .hint("--here starts it where the session is now, --there takes the session back to where it was written for")
                .into());
        }
        Some(QueueVerb::Release { message, here: _, there }) => {
            client.change_message(&message, &held(false, Some(there))).await.or_cli_error()?
        }
        Some(QueueVerb::Withdraw { message }) => client.withdraw(&message).await.or_cli_error()?,
    };
    tell(verdict, remote)
}

async fn list(session: Option<&str>, remote: &Remote) -> Result<Exit> {
    let session = session_or_here(session, remote).await?;
    let queue = remote.client.queue(&session).await.or_cli_error()?;
    show(&queue, remote)?;
    Ok(Exit::Done)
}

/// Another order, made from the one that is there now. If somebody changes it meanwhile, the server says so.
async fn put(message: &str, before: Option<&str>, first: bool, remote: &Remote) -> Result<Exit> {
    let session = remote.client.receipt(message, &MessageQuery::default()).await.or_cli_error()?.session;
    let queue = remote.client.queue(&session).await.or_cli_error()?;
    let waiting = queue.items.iter().filter(|item| item.state != ReceiptState::Running);
    let mut order: Vec<String> = waiting.map(|item| item.id.clone()).collect();
    let not_waiting = |id: &str| {
        CliError::new(Exit::Failed, format!("{id} does not wait in {session}"))
            .hint(format!("`homing queue {session}` lists what does"))
    };
    let from = order.iter().position(|id| id == message).ok_or_else(|| not_waiting(message))?;
    let moved = order.remove(from);
    let to = match before {
        Some(before) => order.iter().position(|id| id == before).ok_or_else(|| not_waiting(before))?,
        None if first => 0,
        None => order.len(),
    };
    order.insert(to, moved);
    let verdict = remote.client.reorder(&session, &Order { order }).await.or_cli_error()?;
    show(&verdict.into_inner(), remote)?;
    Ok(Exit::Done)
}

fn show(queue: &Queue, remote: &Remote) -> Result<()> {
    if remote.screen.json {
        return Ok(remote.screen.object(queue)?);
    }
    if queue.items.is_empty() {
        remote.screen.say("nothing waits or runs there");
        return Ok(());
    }
    let row = |item: &Queued| {
        let why = item.why.as_ref().map(|why| format!(" ({})", describe::plain(why))).unwrap_or_default();
        let state = format!("{}{why}", describe::state(item.state));
        vec![item.id.clone(), state, time::ago(item.accepted_at, system::now()), cut(&item.text, WORDS_SHOWN)]
    };
    let rows: Vec<Vec<String>> = queue.items.iter().map(row).collect();
    Ok(remote.screen.table(&["MESSAGE", "STATE", "SINCE", "WORDS"], &rows)?)
}

fn tell(verdict: ChangeOutcome<Receipt>, remote: &Remote) -> Result<Exit> {
    let pending = matches!(verdict, ChangeOutcome::Pending(_));
    let receipt = verdict.into_inner();
    if remote.screen.json {
        remote.screen.object(&receipt)?;
    } else {
        remote.screen.line(format!("{} {}", receipt.id, describe::standing(&receipt)))?;
    }
    if pending {
        remote.screen.say("not decided yet; `homing show` says later");
        return Ok(Exit::Later);
    }
    Ok(Exit::Done)
}

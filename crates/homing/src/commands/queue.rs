//! `homing queue`: what waits in a session, and what can be done about it.

use anyhow::Result;
use api::client::{ChangeOutcome, ClientError};
use api::{
    Code, DeliverNow, DeliveryNow, EditText, Hold, MessageChange, MessageQuery, Order, Queue, Queued,
    Receipt, ReceiptState,
};

use crate::completion::Completes;
use crate::exit::{CliError, Exit};
use crate::names::{self, Kind};
use crate::near_commands::or_a_verb;
use crate::remote::{OrCliError, Remote};
use crate::screen::cut;
use crate::table::{self, Column};
use crate::target::session_or_here;
use crate::{describe, system, time};

/// The length of a message's words that a list shows.
const WORDS_SHOWN: usize = 60;

const COLUMNS: [Column; 5] = [
    Column::new("").goes(4),
    Column::new("MESSAGE"),
    Column::new("STATE").right(12).goes(3),
    Column::new("SINCE").goes(1),
    Column::new("WORDS").right(12),
];

/// List what waits in a session, or change it
///
/// What the agent already has cannot be taken back, only stopped (`homing stop`).
#[derive(clap::Args)]
#[command(subcommand_precedence_over_arg = true)]
pub(crate) struct QueueArgs {
    /// The session [default: this directory's]
    #[arg(add = Completes::OpenSessions)]
    session: Option<String>,
    #[command(subcommand)]
    verb: Option<QueueVerb>,
}

#[derive(clap::Subcommand)]
enum QueueVerb {
    /// Put a waiting message elsewhere in the queue
    Move {
        #[arg(add = Completes::Messages)]
        message: String,
        /// Before this one
        #[arg(long, value_name = "MESSAGE", group = "place", add = Completes::Messages)]
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
        #[arg(add = Completes::Messages)]
        message: String,
        #[arg(required = true)]
        text: Vec<String>,
        /// The revision you saw; refused if it is another one by now [default: the present one]
        #[arg(long)]
        revision: Option<u32>,
    },
    /// Keep a waiting message from being started
    Hold {
        #[arg(add = Completes::Messages)]
        message: String,
    },
    /// Let a held message be started, here or where it was written for
    Release {
        #[arg(add = Completes::Messages)]
        message: String,
        /// In the scope of now; the default where the message was held by hand and the scope is still the same
        #[arg(long, group = "where")]
        here: bool,
        /// In the scope that it was written for; the session goes back there first
        #[arg(long, group = "where")]
        there: bool,
    },
    /// Say a waiting message into the turn under way
    Steer {
        #[arg(add = Completes::Messages)]
        message: String,
    },
    /// Stop the turn under way and start a waiting message before all others
    Interrupt {
        #[arg(add = Completes::Messages)]
        message: String,
    },
    /// Take a waiting message back
    Withdraw {
        #[arg(add = Completes::Messages)]
        message: String,
    },
}

impl QueueVerb {
    /// The same with the whole ids of the messages that are meant.
    async fn resolved(self, remote: &Remote) -> Result<Self> {
        let whole = async |typed: String| names::message(&typed, remote).await;
        Ok(match self {
            Self::Move { message, before, first, last } => {
                let before = match before {
                    Some(before) => Some(whole(before).await?),
                    None => None,
                };
                Self::Move { message: whole(message).await?, before, first, last }
            }
            Self::Edit { message, text, revision } => {
                Self::Edit { message: whole(message).await?, text, revision }
            }
            Self::Hold { message } => Self::Hold { message: whole(message).await? },
            Self::Release { message, here, there } => {
                Self::Release { message: whole(message).await?, here, there }
            }
            Self::Steer { message } => Self::Steer { message: whole(message).await? },
            Self::Interrupt { message } => Self::Interrupt { message: whole(message).await? },
            Self::Withdraw { message } => Self::Withdraw { message: whole(message).await? },
        })
    }
}

pub(crate) async fn queue(args: QueueArgs, remote: &Remote) -> Result<Exit> {
    if let (Some(session), Some(_)) = (&args.session, &args.verb) {
        return Err(CliError::new(
            Exit::Usage,
            format!("a message is in one queue; {session} is one word too many"),
        )
        .hint("leave it out: `homing queue hold MESSAGE`, for instance")
        .into());
    }
    let client = &remote.client;
    let verb = match args.verb {
        Some(verb) => Some(verb.resolved(remote).await?),
        None => None,
    };
    let held = |held, there| MessageChange::Hold(Hold { held, there });
    let now = |delivery| MessageChange::Deliver(DeliverNow { delivery });
    let verdict = match verb {
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
            decided(client.change_message(&message, &change).await, &message, remote).await?
        }
        Some(QueueVerb::Hold { message }) => {
            decided(client.change_message(&message, &held(true, None)).await, &message, remote).await?
        }
        Some(QueueVerb::Release { message, here: false, there: false })
            if !is_where_it_belongs(&message, remote).await? =>
        {
            return Err(CliError::new(Exit::Usage, format!("where is {message} to be started?"))
                .hint("--here starts it where the session is now, --there takes the session back to where it was written for")
                .into());
        }
        Some(QueueVerb::Release { message, here: _, there }) => {
            decided(client.change_message(&message, &held(false, Some(there))).await, &message, remote)
                .await?
        }
        Some(QueueVerb::Withdraw { message }) => {
            decided(client.withdraw(&message).await, &message, remote).await?
        }
        Some(QueueVerb::Steer { message }) => {
            client.change_message(&message, &now(DeliveryNow::Steer)).await.or_cli_error()?
        }
        Some(QueueVerb::Interrupt { message }) => {
            client.change_message(&message, &now(DeliveryNow::Interrupt)).await.or_cli_error()?
        }
    };
    tell(verdict, remote)
}

/// True if somebody has kept it back and the session is still where it was written for: there is nothing to say about where.
async fn is_where_it_belongs(message: &str, remote: &Remote) -> Result<bool> {
    let receipt = remote.client.receipt(message, &MessageQuery::default()).await.or_cli_error()?;
    if receipt.why.as_deref() != Some("asked") {
        return Ok(false);
    }
    let now = remote.client.session(&receipt.session).await.or_cli_error()?;
    Ok(receipt.epoch == Some(now.epoch))
}

/// The verdict on a change. Of a message that has gone on it is told how far.
async fn decided(
    answer: Result<ChangeOutcome<Receipt>, ClientError>,
    message: &str,
    remote: &Remote,
) -> Result<ChangeOutcome<Receipt>> {
    let error = match answer {
        Ok(outcome) => return Ok(outcome),
        Err(refused) => CliError::from(refused),
    };
    if !error.is(Code::TooLate) {
        return Err(error.into());
    }
    let now = remote.client.receipt(message, &MessageQuery::default()).await.or_cli_error()?;
    let (what, hint) = match now.state {
        ReceiptState::Running => (
            format!("too late: {message} runs, and the agent has its words"),
            format!("`homing stop {message}` stops it"),
        ),
        state => (
            format!("too late: {message} is {} already", describe::state(state)),
            format!("`homing show {message}` shows it; `homing queue` lists what waits"),
        ),
    };
    Err(error.saying(what).hint(hint).into())
}

pub(super) async fn list(session: Option<&str>, remote: &Remote) -> Result<Exit> {
    let named = session_or_here(session, remote).await;
    let session = named.map_err(|error| or_a_verb("queue", session, error))?;
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
        remote.screen.say("nothing waits or runs in this session");
        return Ok(());
    }
    let ids = queue.items.iter().map(|item| item.id.clone()).collect::<Vec<_>>();
    let row = |(item, (mark, id)): (&Queued, (String, String))| {
        let since = time::ago(item.accepted_at, system::now());
        // The ids in it are those of this very list.
        let stands = describe::queued(item);
        let stands = if remote.screen.out_is_terminal { names::with_short_ids(&stands) } else { stands };
        let words = describe::with_attached(&item.text, &item.attachments);
        vec![mark, id, stands, since, cut(&words, WORDS_SHOWN)]
    };
    let shown = names::shown(Kind::Message, &ids, remote);
    let rows: Vec<Vec<String>> = queue.items.iter().zip(shown).map(row).collect();
    Ok(table::print(remote.screen, &COLUMNS, &rows)?)
}

fn tell(verdict: ChangeOutcome<Receipt>, remote: &Remote) -> Result<Exit> {
    let pending = matches!(verdict, ChangeOutcome::Pending(_));
    let receipt = verdict.into_inner();
    if remote.screen.json {
        remote.screen.object(&receipt)?;
    } else {
        let words = format!("{} {}", receipt.id, describe::standing(&receipt));
        remote.screen.line(names::printed(&words, remote))?;
    }
    if pending {
        let words = format!("not decided yet; `homing show {}` says what came of it", receipt.id);
        remote.screen.say(names::said(&words, remote));
        return Ok(Exit::Later);
    }
    Ok(Exit::Done)
}

//! `homing stop`: stop one turn, or what turns have left running, and say what was verified.

use anyhow::Result;
use api::client::{ChangeKey, ChoreAnswer};
use api::{FactsQuery, MessageQuery, Receipt, ReceiptState, Story, What};

use crate::completion::Completes;
use crate::describe;
use crate::exit::{CliError, Exit};
use crate::names::{self, SessionOrMessage, session_or_message};
use crate::remote::{OrCliError, Remote};
use crate::screen::{TextStyle, tame_name};
use crate::target::session_or_here;

/// The longest that a stop is waited for; an agent has a few seconds to go by itself.
const STOP_WAIT_S: u64 = 30;
/// Facts at the end of a turn among which its stop is looked for.
const LAST_FACTS: u64 = 20;

/// Stop one turn
///
/// Names a message, and stops its turn or takes it back if it still waits; or a session, and stops what runs there now.
/// Without an argument it is the session of this directory. Stopping what is over is fine and changes nothing. With --background
/// it ends what the session's turns have left running, where its agent's configuration keeps that.
#[derive(clap::Args)]
pub(crate) struct StopArgs {
    /// A message or a session [default: this directory's session]
    #[arg(add = Completes::OpenSessionsAndMessages)]
    what: Option<String>,
    /// End what runs in the background of the session, which no turn runs in
    #[arg(long)]
    background: bool,
}

pub(crate) async fn stop(args: &StopArgs, remote: &Remote) -> Result<Exit> {
    let what = match args.what.as_deref() {
        Some(typed) => session_or_message(typed, remote).await?,
        None => SessionOrMessage::Session(session_or_here(None, remote).await?),
    };
    if args.background {
        return match what {
            SessionOrMessage::Session(session) => stop_background(remote, &session).await,
            SessionOrMessage::Message(message) => Err(CliError::new(
                Exit::Usage,
                format!("{message} is a message; what runs in the background is a session's"),
            )
            .hint("`homing stop --background SESSION` ends that; `homing show` lists it")
            .into()),
        };
    }
    let message = match what {
        SessionOrMessage::Message(message) => message,
        SessionOrMessage::Session(session) => {
            let Some(message) = running_in(remote, &session).await? else {
                let words = format!("nothing runs in {session}; `homing queue {session}` lists what waits");
                remote.screen.say(names::said(&words, remote));
                return Ok(Exit::Done);
            };
            message
        }
    };
    let stopped = stop_message(remote, &message).await?;
    if remote.screen.json {
        remote.screen.object(&stopped.receipt)?;
    } else {
        let state = describe::state(stopped.receipt.state);
        let id = names::printed(&stopped.receipt.id, remote);
        remote.screen.line(format!("{id} {}", remote.screen.out(TextStyle::Bold, state)))?;
        remote.screen.say(stopped.words());
    }
    Ok(if stopped.receipt.state.is_final() { Exit::Done } else { Exit::Later })
}

/// Ends what runs in the background of a session, and says what was verified.
async fn stop_background(remote: &Remote, session: &str) -> Result<Exit> {
    let stopped = match remote.client.stop_background(&ChangeKey::new(), session).await.or_cli_error()? {
        ChoreAnswer::Over(stopped) => stopped,
        ChoreAnswer::GoesOn(_) => {
            let words = format!("asked; it goes on. `homing show {session}` says what still runs");
            remote.screen.say(names::said(&words, remote));
            return Ok(Exit::Later);
        }
    };
    if remote.screen.json {
        remote.screen.object(&stopped)?;
        return Ok(Exit::Done);
    }
    for command in &stopped.commands {
        remote.screen.line(tame_name(command))?;
    }
    remote.screen.say(match stopped.ended {
        0 => names::said(&format!("nothing runs in the background of {session}"), remote),
        ended => format!("stopped: {}", describe::verified(ended, stopped.gone)),
    });
    Ok(Exit::Done)
}

/// The message whose turn runs now. From here on it is that one, whatever runs by the time the stop arrives.
pub(super) async fn running_in(remote: &Remote, session: &str) -> Result<Option<String>> {
    let queue = remote.client.queue(session).await.or_cli_error()?;
    Ok(queue.items.into_iter().find(|item| item.state == ReceiptState::Running).map(|item| item.id))
}

/// The outcome of a stop.
pub(crate) struct Stopped {
    pub(crate) receipt: Receipt,
    verified: Option<(u32, bool)>,
}

impl Stopped {
    pub(crate) fn words(&self) -> String {
        match (self.receipt.state, self.verified) {
            (ReceiptState::Stopped, Some((killed, gone))) => {
                format!("stopped: {}", describe::verified(killed, gone))
            }
            (ReceiptState::Stopped, None) => "stopped".to_owned(),
            (state, _) if state.is_final() => format!("it was {} already", describe::state(state)),
            (state, _) => format!("asked to stop; it is still {}", describe::state(state)),
        }
    }
}

/// Stops a message's turn and waits until it is over.
pub(crate) async fn stop_message(remote: &Remote, message: &str) -> Result<Stopped> {
    let now = remote.client.stop(message).await.or_cli_error()?.into_inner();
    let receipt = if now.state.is_final() {
        now
    } else {
        let query = MessageQuery { wait: Some(STOP_WAIT_S), words: None };
        remote.client.receipt(message, &query).await.or_cli_error()?
    };
    let verified = seen_gone(remote, &receipt).await?;
    Ok(Stopped { receipt, verified })
}

/// The runner's view of the end of the agent's processes.
async fn seen_gone(remote: &Remote, receipt: &Receipt) -> Result<Option<(u32, bool)>> {
    let (Some(turn), Some(last)) = (receipt.turn, receipt.last) else { return Ok(None) };
    let query = FactsQuery { after: Some(last.saturating_sub(LAST_FACTS)), ..FactsQuery::default() };
    let facts = remote.client.facts(&receipt.session, &query).await.or_cli_error()?;
    Ok(facts.items.iter().find_map(|fact| match &fact.what {
        What::Story(told) if told.turn == turn => match told.story {
            Story::Stopped { killed, gone } => Some((killed, gone)),
            _ => None,
        },
        _ => None,
    }))
}

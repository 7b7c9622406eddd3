//! `homing end`: end a session.

use std::time::Duration;

use anyhow::Result;
use api::client::FollowItem;
use api::{Fact, RuleFact, Session, SessionState, What};

use crate::completion::Completes;
use crate::exit::Exit;
use crate::remote::{OrCliError, Remote};
use crate::target::session_or_here;
use crate::{describe, names};

/// The longest that an end is waited for; a running agent has a few seconds to go by itself.
const END_WAIT: Duration = Duration::from_secs(30);

/// End a session
///
/// It takes no more messages and stays readable; what still waits in it is refused and says how to go on. The next
/// message from the same conversation opens a new session. Ending twice is fine.
#[derive(clap::Args)]
pub(crate) struct EndArgs {
    /// The session [default: this directory's]
    #[arg(add = Completes::OpenSessions)]
    session: Option<String>,
}

pub(crate) async fn end(args: &EndArgs, remote: &Remote) -> Result<Exit> {
    let session = session_or_here(args.session.as_deref(), remote).await?;
    let asked = remote.client.end(&session).await.or_cli_error()?.into_inner();
    let ended = tokio::time::timeout(END_WAIT, until_ended(asked, remote)).await;
    let session = match ended {
        Ok(ended) => ended?,
        Err(_) => remote.client.session(&session).await.or_cli_error()?,
    };
    if remote.screen.json {
        remote.screen.object(&session)?;
    } else {
        let id = names::shown_id(&session.id, remote);
        remote.screen.line(format!("{id} {}", describe::doing(&session)))?;
    }
    if session.state == SessionState::Ended {
        return Ok(Exit::Done);
    }
    remote.screen.say("it ends as soon as its turn is over; `homing stop` ends the turn now");
    Ok(Exit::Later)
}

/// A running turn is stopped first; the end follows it in the log.
async fn until_ended(asked: Session, remote: &Remote) -> Result<Session> {
    if asked.state == SessionState::Ended {
        return Ok(asked);
    }
    let mut facts = remote.client.follow(&asked.id, asked.number.saturating_sub(1));
    loop {
        if let FollowItem::Fact(Fact { what: What::Rule(RuleFact::Ended { .. }), .. }) =
            facts.next().await.or_cli_error()?
        {
            return remote.client.session(&asked.id).await.or_cli_error();
        }
    }
}

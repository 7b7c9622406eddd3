//! `homing undo`: put back what a turn has changed.

use anyhow::Result;
use api::client::FollowItem;
use api::{RuleFact, What};
use std::time::Duration;

use crate::commands::diff::{last_turn, no_turn};
use crate::describe;
use crate::exit::{CliError, Exit};
use crate::remote::{OrCliError, Remote};
use crate::target::session_or_here;

/// The longest that it is waited for.
const UNDO_WAIT: Duration = Duration::from_secs(120);

/// Put back what a turn has changed
///
/// The files that the turn changed become what they were before it. If something has touched them since, nothing is
/// changed, and you are told which. A copy of how the tree is now is kept first.
#[derive(clap::Args)]
pub(crate) struct UndoArgs {
    /// The turn, as `homing log` numbers it
    turn: Option<u32>,
    /// The session [default: this directory's]
    #[arg(long, short)]
    session: Option<String>,
}

pub(crate) async fn undo(args: &UndoArgs, remote: &Remote) -> Result<Exit> {
    let session = session_or_here(args.session.as_deref(), remote).await?;
    let Some(turn) = args.turn else {
        let last = last_turn(&session, remote).await?.ok_or_else(no_turn)?;
        return Err(CliError::new(Exit::Usage, "which turn is to be undone?")
            .hint(format!(
                "the last one is {last}: `homing diff {last}` shows it, `homing undo {last}` undoes it"
            ))
            .into());
    };
    let before = remote.client.session(&session).await.or_cli_error()?.number;
    remote.client.undo(&session, turn).await.or_cli_error()?;
    match tokio::time::timeout(UNDO_WAIT, until_undone(&session, before, remote)).await {
        Ok(undone) => undone,
        Err(_) => {
            remote.screen.say("it takes long; `homing log -f` tells when it is done");
            Ok(Exit::Later)
        }
    }
}

async fn until_undone(session: &str, after: u64, remote: &Remote) -> Result<Exit> {
    let mut facts = remote.client.follow(session, after);
    let mut notice = String::new();
    loop {
        let FollowItem::Fact(fact) = facts.next().await.or_cli_error()? else { continue };
        match &fact.what {
            What::Rule(RuleFact::Undone { .. }) => {
                if remote.screen.json {
                    remote.screen.object(&fact)?;
                } else {
                    remote.screen.line(notice)?;
                }
                return Ok(Exit::Done);
            }
            What::Rule(RuleFact::ErrandFailed { .. }) => {
                return Err(CliError::new(Exit::Failed, notice)
                    .hint("nothing was changed; `homing log` numbers the turns, `homing diff TURN` shows one")
                    .into());
            }
            What::Story(story) => notice = describe::story(&story.story),
            What::Rule(_) | What::Other(_) => {}
        }
    }
}

//! `homing redo`: take an undo back.

use anyhow::Result;
use api::{RuleFact, What};
use std::collections::BTreeSet;

use crate::commands::diff::last_fact;
use crate::commands::undo::watch_back;
use crate::exit::{CliError, Exit};
use crate::remote::{OrCliError, Remote};
use crate::target::TurnArgs;

/// Take an undo back
///
/// The files that the last undo of the turn has changed become what they were just before it. If something has touched them
/// since, nothing is changed, and you are told which. The same turn can be undone again.
#[derive(clap::Args)]
pub(crate) struct RedoArgs {
    #[command(flatten)]
    which: TurnArgs,
}

pub(crate) async fn redo(args: &RedoArgs, remote: &Remote) -> Result<Exit> {
    let (session, turn) = args.which.resolve(remote).await?;
    let turn = match turn {
        Some(turn) => turn,
        None => last_undone(&session, remote).await?.ok_or_else(nothing_undone)?,
    };
    let before = remote.client.session(&session).await.or_cli_error()?.number;
    remote.client.redo(&session, turn).await.or_cli_error()?;
    watch_back(&session, before, remote).await
}

/// The turn that was undone last, of those whose undo was not taken back.
async fn last_undone(session: &str, remote: &Remote) -> Result<Option<u32>> {
    let mut redone = BTreeSet::new();
    let undone = |what: &What| match what {
        What::Rule(RuleFact::Redone { turn }) => {
            redone.insert(*turn);
            None
        }
        // The one that a later redo has taken back.
        What::Rule(RuleFact::Undone { turn }) => (!redone.remove(turn)).then_some(*turn),
        What::Rule(_) | What::Story(_) | What::Other(_) => None,
    };
    last_fact(session, undone, remote).await
}

fn nothing_undone() -> CliError {
    CliError::new(Exit::NotFound, "no undo of this session is left to be taken back")
        .hint("`homing log` numbers the turns, `homing undo TURN` undoes one")
}

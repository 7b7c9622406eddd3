//! `homing fork`: a new session with the conversation of another one up to a turn.

use anyhow::Result;
use api::NewFork;

use crate::exit::Exit;
use crate::remote::{Remote, Told};
use crate::target::session_or_here;

/// Make a fork of a session
///
/// A new session that knows the conversation up to a turn, with a worktree of its own as the tree was after it. The
/// session that it comes from stays as it is.
#[derive(clap::Args)]
pub(crate) struct ForkArgs {
    /// The session [default: this directory's]
    session: Option<String>,
    /// The last turn that both have [default: the last one that is over]
    #[arg(long, value_name = "TURN")]
    at: Option<u32>,
    /// What to call it
    #[arg(long)]
    title: Option<String>,
}

pub(crate) async fn fork(args: ForkArgs, remote: &Remote) -> Result<Exit> {
    let session = session_or_here(args.session.as_deref(), remote).await?;
    let made = remote.client.fork(&session, &NewFork { at: args.at, title: args.title }).await.told()?;
    if remote.screen.json {
        remote.screen.object(&made)?;
    } else {
        remote.screen.line(&made.id)?;
        remote.screen.progress(format!("go on with `homing send --session {} …`", made.id));
    }
    Ok(Exit::Done)
}

//! `homing end`: end a session.

use anyhow::Result;
use api::client::Verdict;

use crate::exit::Exit;
use crate::remote::{Remote, Told};
use crate::target::session_or_here;
use crate::words;

/// End a session
///
/// It takes no more messages and stays readable; what still waits in it is refused and says how to go on. The next
/// message from the same conversation opens a new session. Ending twice is fine.
#[derive(clap::Args)]
pub(crate) struct EndArgs {
    /// The session [default: this directory's]
    session: Option<String>,
}

pub(crate) async fn end(args: &EndArgs, remote: &Remote) -> Result<Exit> {
    let session = session_or_here(args.session.as_deref(), remote).await?;
    let verdict = remote.client.end(&session).await.told()?;
    let pending = matches!(verdict, Verdict::Pending(_));
    let session = verdict.into_inner();
    if remote.screen.json {
        remote.screen.object(&session)?;
    } else {
        remote.screen.line(format!("{} {}", session.id, words::doing(&session)))?;
    }
    if pending || session.awake {
        remote.screen.say("it ends as soon as its turn is over");
    }
    Ok(Exit::Done)
}

//! `homing fork`: a new session with the conversation of another one up to a turn.

use anyhow::Result;
use api::NewFork;

use crate::commands::scope::{CHANGE_WAIT, until_changed};
use crate::completion::Completes;
use crate::exit::Exit;
use crate::names;
use crate::progress_line::{LEFT, Watched, watch};
use crate::remote::{OrCliError, Remote};
use crate::target::session_or_here;

/// Make a fork of a session
///
/// A new session that knows the conversation up to a turn, with a worktree of its own as the tree was after it. The
/// session that it comes from stays as it is. Outside of version control both share the directory, and it is said so. Its id is printed
/// as soon as it is made; then it is waited until its worktree is there.
#[derive(clap::Args)]
pub(crate) struct ForkArgs {
    /// The session [default: this directory's]
    #[arg(add = Completes::Sessions)]
    session: Option<String>,
    /// The last turn that both have [default: the last one that is over]
    #[arg(long, value_name = "TURN")]
    at: Option<u32>,
    /// Its title
    #[arg(long)]
    title: Option<String>,
}

pub(crate) async fn fork(args: ForkArgs, remote: &Remote) -> Result<Exit> {
    let session = session_or_here(args.session.as_deref(), remote).await?;
    let made =
        remote.client.fork(&session, &NewFork { at: args.at, title: args.title }).await.or_cli_error()?;
    if remote.screen.json {
        remote.screen.object(&made)?;
    } else {
        remote.screen.line(names::shown_id(&made.id, remote))?;
    }
    let fork = remote.client.session(&made.id).await.or_cli_error()?;
    let is_shared = match &fork.origin {
        // A worktree of its own is made of the tree that was remembered then.
        Some(origin) => !remote.client.changes(&origin.session, origin.turn).await.or_cli_error()?.known,
        None => false,
    };
    if !is_shared && fork.worktree.is_none() {
        let entered = until_changed(&made.id, 0, remote);
        match watch(&made.id, Some(CHANGE_WAIT), remote, entered).await? {
            Watched::Over(entered) => entered?,
            Watched::NotYet => {}
            Watched::Left => {
                remote.screen.say(LEFT);
                return Ok(Exit::Detached);
            }
        }
    }
    // Also to a script: where two sessions share a directory, whoever made the second one should know.
    say_where(&made.id, is_shared, remote).await?;
    Ok(Exit::Done)
}

/// Of what it is a fork, and where it works, as far as that is known by now.
async fn say_where(fork: &str, is_shared: bool, remote: &Remote) -> Result<()> {
    let made = remote.client.session(fork).await.or_cli_error()?;
    let is_read = remote.screen.err_is_terminal;
    let shown = |id: &str| if is_read { names::short_id(id) } else { id.to_owned() };
    let origin = made.origin;
    let origin =
        origin.map(|origin| format!("a fork of {} after turn {}", shown(&origin.session), origin.turn));
    let place = match made.worktree {
        Some(tree) => format!(", in worktree {} ({})", tree.name, made.directory),
        None if is_shared => {
            format!(", in {}, which both share: it is not under version control", made.directory)
        }
        None => String::new(),
    };
    let origin = origin.unwrap_or_else(|| "a fork".to_owned());
    remote.screen.say(format!("{origin}{place}; `homing send -s {} \"…\"` goes on there", shown(fork)));
    Ok(())
}

//! `homing bindings`: which conversation belongs to which session.

use anyhow::Result;
use api::{LIMIT_MAX, Move, PageQuery};

use crate::completion::Completes;
use crate::exit::{CliError, Exit};
use crate::here::Here;
use crate::remote::{OrCliError, Remote};
use crate::{names, system, time};

/// List which conversation belongs to which session, or move one
#[derive(clap::Args)]
pub(crate) struct BindingsArgs {
    #[command(subcommand)]
    verb: Option<BindingsVerb>,
}

#[derive(clap::Subcommand)]
enum BindingsVerb {
    /// Let a conversation belong to another open session; `homing bindings move . -` gives this directory back to the session that it
    /// had before
    Move {
        /// The conversation, as `homing bindings` lists it; `.` is this directory's
        #[arg(value_name = "CONVERSATION")]
        address: String,
        #[arg(add = Completes::OpenSessions)]
        session: String,
    },
}

pub(crate) async fn bindings(args: BindingsArgs, remote: &Remote) -> Result<Exit> {
    match args.verb {
        None => list(remote).await?,
        Some(BindingsVerb::Move { address, session }) if session == "." => {
            return Err(CliError::new(Exit::Usage, "the conversation comes first, then the session")
                .hint(format!("`homing bindings move . {address}`"))
                .into());
        }
        Some(BindingsVerb::Move { address, session }) => {
            let session = names::session(&session, remote).await?;
            let is_here = address == ".";
            let address = if is_here { Here::find(remote).await?.address } else { address };
            let binding = remote.client.move_binding(&Move { address, session }).await.or_cli_error()?;
            if remote.screen.json {
                remote.screen.object(&binding)?;
            } else {
                let words = match is_here && remote.screen.out_is_terminal {
                    true => format!("{} is this directory's session now", names::short_id(&binding.session)),
                    false => format!("{} {}", binding.address, binding.session),
                };
                remote.screen.line(words)?;
            }
        }
    }
    Ok(Exit::Done)
}

async fn list(remote: &Remote) -> Result<()> {
    let limit = u32::try_from(LIMIT_MAX).ok();
    let (mut cursor, mut rows, mut has_way_back) = (None, Vec::new(), false);
    loop {
        let page = remote.client.bindings(&PageQuery { limit, cursor }).await.or_cli_error()?;
        for binding in &page.items {
            if remote.screen.json {
                remote.screen.object(binding)?;
            }
            has_way_back |= binding.before.as_ref().is_some_and(|before| before.why.is_none());
            let since = time::ago(binding.since, system::now());
            let before = binding.before.as_ref().map(|before| names::shown_id(&before.session, remote));
            let session = names::shown_id(&binding.session, remote);
            rows.push(vec![session, since, before.unwrap_or_default(), binding.address.clone()]);
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
        remote.screen.say("no conversation belongs to a session yet");
        return Ok(());
    }
    remote.screen.table(&["SESSION", "SINCE", "BEFORE", "CONVERSATION"], &rows)?;
    if has_way_back {
        remote.screen.say(
            "`homing bindings move . -` gives this directory back to the session before, `homing bindings move CONVERSATION SESSION` any other",
        );
    }
    Ok(())
}

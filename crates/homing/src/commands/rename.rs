//! `homing rename`: a title for a session.

use anyhow::Result;
use api::SessionChange;

use crate::completion::Completes;
use crate::exit::Exit;
use crate::names;
use crate::remote::{OrCliError, Remote};
use crate::screen::tame_name;
use crate::target::session_or_here;

/// Give a session a title
///
/// Until somebody does, its title is its first words, or what its agent calls it. A session can be named by its title
/// wherever a session is named. An empty title takes it away: the next words that are said become it.
#[derive(clap::Args)]
pub(crate) struct RenameArgs {
    /// The session, then its title; with the title alone it is this directory's session
    #[arg(required = true, num_args = 1..=2, value_names = ["SESSION", "TITLE"], add = Completes::Sessions)]
    words: Vec<String>,
}

pub(crate) async fn rename(args: RenameArgs, remote: &Remote) -> Result<Exit> {
    let mut words = args.words;
    let title = words.pop().unwrap_or_default();
    let session = session_or_here(words.first().map(String::as_str), remote).await?;
    let change = SessionChange { title: Some(title), archived: None };
    let session = remote.client.change_session(&session, &change).await.or_cli_error()?;
    let shown = names::shown_id(&session.id, remote);
    let words = match &session.title {
        Some(title) => format!("{shown} is called {:?}", tame_name(title)),
        None => format!("{shown} has no title"),
    };
    remote.done(&session, words)?;
    Ok(Exit::Done)
}

//! Our own commands in a chat: the same as those that are typed in a shell, for the session that one talks to.

use anyhow::Result;
use api::{Code, ScopeRequest, ScopeSet, ScopeSetting, UndoTurn};
use clap::Parser;

use super::slash::OURS;
use crate::commands::{diff, ls, queue, scope, stop, undo};
use crate::exit::{CliError, Exit};
use crate::remote::{OrCliError, Remote};
use crate::screen::{TextStyle, tame_name};

/// The arguments of a command as a shell would give them.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Words<A: clap::Args> {
    #[command(flatten)]
    args: A,
}

/// The words behind `/diff`.
#[derive(clap::Args)]
struct DiffWords {
    turn: Option<u32>,
    #[arg(long)]
    stat: bool,
}

/// The words behind `/undo`.
#[derive(clap::Args)]
struct UndoWords {
    turn: Option<u32>,
    #[arg(long)]
    all: bool,
}

/// Runs one of ours.
pub(super) async fn run(
    name: &'static str,
    rest: String,
    session: Option<String>,
    remote: &Remote,
) -> Result<Exit> {
    match name {
        "help" => return Ok(help(remote)),
        "sessions" => return ls::ls(&words::<ls::LsArgs>(name, &rest)?, remote).await,
        _ => {}
    }
    let Some(session) = session else {
        return Err(CliError::new(Exit::NotFound, "there is no session yet")
            .hint("the first message opens one")
            .into());
    };
    match name {
        "queue" => queue::list(Some(&session), remote).await,
        "stop" => stop_here(&session, remote).await,
        "diff" => {
            let DiffWords { turn, stat } = words(name, &rest)?;
            diff::show(&session, turn, stat, remote).await
        }
        "undo" => undo_here(&session, words(name, &rest)?, remote).await,
        "model" => model(&session, &rest, remote).await,
        "agent" => scope::choices(&remote.client.commands(&session).await.or_cli_error()?, remote),
        name => Err(CliError::new(Exit::Usage, format!("/{name} does nothing here"))
            .hint("/help lists what does")
            .into()),
    }
}

fn words<A: clap::Args>(name: &str, rest: &str) -> Result<A> {
    let usage = || OURS.iter().find(|(ours, _)| *ours == name).map_or("", |(_, what)| what);
    Words::<A>::try_parse_from(rest.split_whitespace()).map(|words| words.args).map_err(|_| {
        CliError::new(Exit::Usage, format!("/{name} does not take {}", tame_name(rest))).hint(usage()).into()
    })
}

fn help(remote: &Remote) -> Exit {
    for (name, what) in OURS {
        let name = format!("/{name:<9}");
        let line = format!("{} {what}", remote.screen.err(TextStyle::Bold, &name));
        // Whoever has gone reads no help.
        let _ = remote.screen.hanging(name.len() + 1, &line);
    }
    remote.screen.say("//NAME is the agent's own command, a space in front makes it words");
    remote.screen.say("Alt-Enter or Ctrl-J: a new line. Up, Ctrl-R: what you said before. Tab completes");
    remote.screen.say("Ctrl-C: clears the line, else stops the turn. Ctrl-D leaves");
    Exit::Done
}

async fn stop_here(session: &str, remote: &Remote) -> Result<Exit> {
    match stop::running_in(remote, session).await? {
        Some(message) => remote.screen.say(stop::stop_message(remote, &message).await?.words()),
        None => remote.screen.say("nothing runs"),
    }
    Ok(Exit::Done)
}

async fn undo_here(session: &str, words: UndoWords, remote: &Remote) -> Result<Exit> {
    let Some(turn) = words.turn else {
        let last = diff::last_turn(session, remote).await?.ok_or_else(diff::no_turn)?;
        return Err(CliError::new(Exit::Usage, "which turn is to be undone?")
            .hint(format!("the last one is {last}: /diff {last} shows it, /undo {last} undoes it"))
            .into());
    };
    let wish = UndoTurn { turn, under: None, all: words.all, only: None };
    undo::undo_as(session, wish, remote).await.map_err(|error| all_of(turn, error))
}

/// Nobody can be asked on the line that they type on: it has to be said.
fn all_of(turn: u32, error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<CliError>() {
        Ok(error) if error.is(Code::UnsureChanges) => error
            .hint(format!(
                "`/diff {turn}` shows them, `/undo {turn} --all` undoes these, too; nothing was changed"
            ))
            .into(),
        Ok(error) => error.into(),
        Err(error) => error,
    }
}

/// The models there are, or another one from now on.
async fn model(session: &str, name: &str, remote: &Remote) -> Result<Exit> {
    if name.is_empty() {
        let now = remote.client.session(session).await.or_cli_error()?;
        remote
            .screen
            .say(format!("model: {}", now.model.as_deref().map_or("the agent's own".to_owned(), tame_name)));
        return scope::choices(&remote.client.models(session).await.or_cli_error()?, remote);
    }
    let set = ScopeSet { agent: None, model: Some(name.to_owned()), mode: None };
    let exit = scope::settle(session, &ScopeRequest::Set(ScopeSetting { set, now: false }), remote).await?;
    if exit == Exit::Done {
        remote.screen.say(format!("model: {} from the next turn on", tame_name(name)));
    }
    Ok(exit)
}

//! `homing undo`: put back what a turn has changed.

use anyhow::Result;
use api::client::FollowItem;
use api::{Code, RuleFact, UndoFile, UndoTurn, What};
use std::io::IsTerminal;
use std::time::Duration;

use crate::commands::diff::{last_turn, no_turn, say_moves};
use crate::exit::{CliError, Exit};
use crate::progress_line::{LEFT, Watched, watch};
use crate::remote::{OrCliError, Remote};
use crate::screen::tame_name;
use crate::target::TurnArgs;
use crate::{describe, terminal_prompt};

/// The longest that it is waited for while nothing of it goes on.
const UNDO_WAIT: Duration = Duration::from_secs(120);

/// Put back what a turn has changed
///
/// The files that the turn changed become what they were before it. If something has touched them since, nothing is
/// changed, and you are told which. If others changed during the turn than those of which the agent has said that it changed
/// them, you are told which and asked. A copy of how the tree is now is kept first: `homing redo` takes the undo back.
#[derive(clap::Args)]
pub(crate) struct UndoArgs {
    #[command(flatten)]
    which: TurnArgs,
    /// Also files that changed during the turn and of which the agent has not said that it changed them
    #[arg(long)]
    all: bool,
    /// Only this file, whoever has changed it; can be said several times
    #[arg(long, value_name = "FILE", conflicts_with = "all")]
    only: Vec<String>,
    /// Only say what would happen to which file, and what is in the way
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn undo(args: &UndoArgs, remote: &Remote) -> Result<Exit> {
    let (session, turn) = args.which.resolve(remote).await?;
    let Some(turn) = turn else {
        let last = last_turn(&session, remote).await?.ok_or_else(no_turn)?;
        return Err(CliError::new(Exit::Usage, "which turn is to be undone?")
            .hint(format!(
                "the last one is {last}: `homing diff {last}` shows it, `homing undo {last}` undoes it"
            ))
            .into());
    };
    if args.dry_run {
        return preview(&session, turn, remote).await;
    }
    let only = Some(args.only.clone()).filter(|only| !only.is_empty());
    undo_as(&session, UndoTurn { turn, under: None, all: args.all, only }, remote).await
}

/// Undoes it, and waits until the files are put back.
pub(super) async fn undo_as(session: &str, wish: UndoTurn, remote: &Remote) -> Result<Exit> {
    let turn = wish.turn;
    let before = remote.client.session(session).await.or_cli_error()?.number;
    match remote.client.undo(session, &wish).await.or_cli_error() {
        Ok(_) => {}
        Err(refused) => {
            are_meant(turn, refused, remote).await?;
            let all = UndoTurn { all: true, ..wish };
            remote.client.undo(session, &all).await.or_cli_error()?;
        }
    }
    watch_back(session, before, remote).await
}

/// Until the files are put back, or not, however long that takes.
pub(super) async fn watch_back(session: &str, before: u64, remote: &Remote) -> Result<Exit> {
    match watch(session, Some(UNDO_WAIT), remote, until_back(session, before, remote)).await? {
        Watched::Over(undone) => undone,
        Watched::NotYet => {
            remote.screen.say("it takes long; `homing log -f` tells when it is done");
            Ok(Exit::Later)
        }
        Watched::Left => {
            remote.screen.say(LEFT);
            Ok(Exit::Detached)
        }
    }
}

/// Whoever types is asked about files that may be somebody else's; otherwise it has to be said.
async fn are_meant(turn: u32, refused: anyhow::Error, remote: &Remote) -> Result<()> {
    let error = refused.downcast::<CliError>()?;
    if !error.is(Code::UnsureChanges) {
        return Err(error.into());
    }
    let error = error.hint(format!(
        "look at them with `homing undo {turn} --dry-run`; `--all` undoes these, too, `--only FILE` only what you name; nothing was changed"
    ));
    if remote.screen.json || remote.screen.has_prompt() || !std::io::stdin().is_terminal() {
        return Err(error.into());
    }
    remote.screen.say(error.to_string());
    let typed = terminal_prompt::line_or_nothing("undo them all the same? [y/N]", remote.screen).await?;
    match typed.to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(CliError::new(Exit::Failed, "nothing was changed")
            .hint(format!("`homing undo {turn} --only FILE` undoes only what you name"))
            .into()),
    }
}

/// Nothing is changed.
async fn preview(session: &str, turn: u32, remote: &Remote) -> Result<Exit> {
    let seen = remote.client.preview_undo(session, turn).await.or_cli_error()?;
    if remote.screen.json {
        remote.screen.object(&seen)?;
        return Ok(Exit::Done);
    }
    let row = |file: &UndoFile| {
        let kind = match file.kind.as_str() {
            "restored" => "is restored",
            "removed" => "is removed",
            "brought_back" => "is brought back",
            "mode" => "gets its mode back",
            "as_before" => "is as before already",
            other => other,
        };
        let in_the_way = match (seen.touched.contains(&file.path), seen.unsure.contains(&file.path)) {
            (true, _) => "changed since",
            (false, true) => "not certain to be the agent's",
            (false, false) => "",
        };
        vec![tame_name(&file.path), kind.to_owned(), in_the_way.to_owned()]
    };
    if !seen.files.is_empty() {
        let rows: Vec<Vec<String>> = seen.files.iter().map(row).collect();
        remote.screen.table(&["FILE", "WHAT WOULD HAPPEN", "IN THE WAY"], &rows)?;
    }
    if seen.cut {
        remote.screen.say("there are more files");
    }
    say_moves(&seen.moves, remote);
    match &seen.why {
        None if !seen.unsure.is_empty() => remote.screen.say(format!(
            "the agent has not said that it changed all of these: `homing undo {turn} --all` undoes them, `--only FILE` what you name; \
             nothing was changed"
        )),
        Some(why) => {
            remote.screen.say(format!("turn {turn} would not be undone: {why}; nothing was changed"))
        }
        None if seen.files.is_empty() => remote.screen.say(format!("turn {turn} changed no file")),
        None => remote.screen.say(format!("nothing was changed; `homing undo {turn}` does it")),
    }
    Ok(Exit::Done)
}

/// Until the files are put back, or not.
async fn until_back(session: &str, after: u64, remote: &Remote) -> Result<Exit> {
    let mut facts = remote.client.follow(session, after);
    let mut notice = String::new();
    loop {
        let FollowItem::Fact(fact) = facts.next().await.or_cli_error()? else { continue };
        match &fact.what {
            What::Rule(RuleFact::Undone { .. } | RuleFact::Redone { .. }) => {
                remote.screen.clear_passing();
                if remote.screen.json {
                    remote.screen.object(&fact)?;
                } else {
                    remote.screen.hanging(0, &notice)?;
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

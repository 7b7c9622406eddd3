//! `homing diff`: what a turn changed.

use anyhow::Result;
use api::{FactsQuery, LIMIT_MAX, RuleFact, What};

use crate::exit::{CliError, Exit};
use crate::remote::{OrCliError, Remote};
use crate::screen::tame_name;
use crate::target::session_or_here;

/// See what a turn changed
#[derive(clap::Args)]
pub(crate) struct DiffArgs {
    /// The turn, as `homing log` numbers it [default: the last one that is over]
    turn: Option<u32>,
    /// The session [default: this directory's]
    #[arg(long, short)]
    session: Option<String>,
    /// Only the files, with how many lines more and less
    #[arg(long)]
    stat: bool,
}

pub(crate) async fn diff(args: &DiffArgs, remote: &Remote) -> Result<Exit> {
    let session = session_or_here(args.session.as_deref(), remote).await?;
    let turn = match args.turn {
        Some(turn) => turn,
        None => {
            let turn = last_turn(&session, remote).await?.ok_or_else(no_turn)?;
            remote.screen.say(format!("turn {turn}:"));
            turn
        }
    };
    let changes = remote.client.changes(&session, turn).await.or_cli_error()?;
    if remote.screen.json {
        remote.screen.object(&changes)?;
        return Ok(Exit::Done);
    }
    if !changes.known {
        return Err(CliError::new(Exit::Failed, format!("nobody can tell what turn {turn} changed"))
            .hint("its directory is not under version control, or the turn is not over")
            .into());
    }
    for words in &changes.unseen {
        remote.screen.say(words);
    }
    say_moves(&changes.moves, remote);
    if changes.files.is_empty() && changes.patch.is_empty() {
        remote.screen.say(format!("turn {turn} changed no file among those that were looked at"));
        return Ok(Exit::Done);
    }
    if args.stat || changes.patch.is_empty() {
        let count = |lines: Option<u64>| lines.map_or_else(|| "-".to_owned(), |lines| lines.to_string());
        let row = |file: &api::FileChange| {
            vec![
                file.kind.clone(),
                format!("+{}", count(file.plus)),
                format!("-{}", count(file.minus)),
                file.path.clone(),
            ]
        };
        let rows: Vec<Vec<String>> = changes.files.iter().map(row).collect();
        remote.screen.table(&["WHAT", "MORE", "LESS", "FILE"], &rows)?;
    } else {
        remote.screen.line(changes.patch.trim_end_matches('\n'))?;
    }
    if changes.cut {
        remote.screen.say("the rest of the patch is left out: it is long");
    }
    Ok(Exit::Done)
}

/// The moves of the repository itself, which are in no patch and which no undo takes back.
pub(super) fn say_moves(moves: &[api::RepositoryMove], remote: &Remote) {
    for one in moves {
        let (words, command) = (tame_name(&one.words), tame_name(&one.command));
        remote.screen.say(format!("{words}; `{command}` takes it back"));
    }
}

/// The last turn that is over, if there is one.
pub(super) async fn last_turn(session: &str, remote: &Remote) -> Result<Option<u32>> {
    let over = |what: &What| match what {
        What::Rule(RuleFact::TurnEnded { turn, .. }) => Some(*turn),
        What::Rule(_) | What::Story(_) | What::Other(_) => None,
    };
    last_fact(session, over, remote).await
}

/// The word of the last fact that has one.
pub(super) async fn last_fact<T>(
    session: &str,
    mut says: impl FnMut(&What) -> Option<T>,
    remote: &Remote,
) -> Result<Option<T>> {
    let mut end = remote.client.session(session).await.or_cli_error()?.number;
    // From behind: it is among the last facts of nearly every session.
    while end > 0 {
        let after = end.saturating_sub(LIMIT_MAX as u64);
        let limit = u32::try_from(end - after).ok();
        let query = FactsQuery { after: Some(after), limit, readiness: None };
        let page = remote.client.facts(session, &query).await.or_cli_error()?;
        if let Some(said) = page.items.iter().rev().find_map(|fact| says(&fact.what)) {
            return Ok(Some(said));
        }
        end = after;
    }
    Ok(None)
}

/// The error where none is over.
pub(super) fn no_turn() -> CliError {
    CliError::new(Exit::NotFound, "no turn of this session is over yet")
        .hint("`homing log` numbers the turns")
}

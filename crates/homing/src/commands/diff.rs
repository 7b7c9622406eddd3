//! `homing diff`: what a turn changed.

use anyhow::Result;

use crate::exit::{Exit, Trouble};
use crate::remote::{Remote, Told};
use crate::target::session_or_here;

/// See what a turn changed
#[derive(clap::Args)]
pub(crate) struct DiffArgs {
    /// The turn, as `homing log` numbers it
    turn: u32,
    /// The session [default: this directory's]
    #[arg(long, short)]
    session: Option<String>,
    /// Only the files, with how many lines more and less
    #[arg(long)]
    stat: bool,
}

pub(crate) async fn diff(args: &DiffArgs, remote: &Remote) -> Result<Exit> {
    let session = session_or_here(args.session.as_deref(), remote).await?;
    let changes = remote.client.changes(&session, args.turn).await.told()?;
    if remote.screen.json {
        remote.screen.object(&changes)?;
        return Ok(Exit::Done);
    }
    if !changes.known {
        return Err(Trouble::new(Exit::Failed, format!("nobody can tell what turn {} changed", args.turn))
            .hint("its directory is not under version control, or the turn is not over")
            .into());
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

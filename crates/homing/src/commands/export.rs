//! `homing export`: a conversation as a file.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use api::ExportLine;

use crate::data_dir::write_whole;
use crate::exit::{CliError, Exit};
use crate::remote::{OrCliError, Remote};
use crate::target::session_or_here;

/// Take a conversation along as a file
///
/// What was said in turns that are over, by whom, and what came of it: JSON Lines, for `homing import` here or elsewhere.
/// What still waits stays where it is.
#[derive(clap::Args)]
pub(crate) struct ExportArgs {
    /// The session [default: this directory's]
    session: Option<String>,
    /// The file to write, for you alone [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) async fn export(args: &ExportArgs, remote: &Remote) -> Result<Exit> {
    let session = session_or_here(args.session.as_deref(), remote).await?;
    let file = remote.client.export(&session).await.or_cli_error()?;
    let broken = || CliError::new(Exit::Failed, "what the server gave is no export").hint("try again");
    let text = std::str::from_utf8(&file).map_err(|_| broken())?;
    let header = text.lines().next().and_then(|line| serde_json::from_str(line).ok());
    let Some(ExportLine::Header(header)) = header else { return Err(broken().into()) };
    match &args.output {
        Some(path) => {
            write_whole(&std::path::absolute(path)?, text.trim_end())?;
            if remote.screen.json {
                remote.screen.object(&header)?;
            }
        }
        None => std::io::stdout().lock().write_all(&file)?,
    }
    let left = header.left_out;
    let turns = match text.lines().count().saturating_sub(2) {
        1 => "1 turn".to_owned(),
        turns => format!("{turns} turns"),
    };
    match &args.output {
        Some(path) => remote.screen.say(format!("{turns} in {}", path.display())),
        None => remote.screen.progress(format!("{turns} of {}", header.session)),
    }
    for (count, what) in [
        (left.turns, "older turns, for which there was no room"),
        (left.messages, "messages that are not done"),
        (left.questions, "open questions"),
        (left.changes, "changes of scope that have not happened"),
    ] {
        if count > 0 {
            remote.screen.say(format!("left out: {count} {what}"));
        }
    }
    Ok(Exit::Done)
}

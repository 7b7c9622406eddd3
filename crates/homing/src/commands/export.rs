//! `homing export`: a conversation as a file.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;

use crate::completion::Completes;
use crate::data_dir::write_whole;
use crate::exit::{CliError, Exit};
use crate::remote::{OrCliError, Remote};
use crate::target::session_or_here;
use crate::transcript::Transcript;

/// Take a conversation along as a file
///
/// What was said in turns that are over, by whom, and what came of it: JSON Lines, for `homing import` here or elsewhere.
/// What still waits stays where it is. With `--markdown` it is a page to be read, and cannot be imported.
#[derive(clap::Args)]
pub(crate) struct ExportArgs {
    /// The session [default: this directory's]
    #[arg(add = Completes::Sessions)]
    session: Option<String>,
    /// The file to write, for you alone [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// A page of Markdown instead: who said what, with each tool on one line
    #[arg(long)]
    markdown: bool,
}

pub(crate) async fn export(args: &ExportArgs, remote: &Remote) -> Result<Exit> {
    let session = session_or_here(args.session.as_deref(), remote).await?;
    let file = remote.client.export(&session).await.or_cli_error()?;
    let transcript = Transcript::read(&file)?;
    let header = &transcript.header;
    let page = args.markdown.then(|| transcript.markdown().into_bytes());
    let text = page.as_deref().unwrap_or(&file);
    match &args.output {
        Some(path) => {
            let written = write_whole(&std::path::absolute(path)?, String::from_utf8_lossy(text).trim_end());
            written.map_err(|error| {
                let why = error.root_cause().to_string();
                CliError::new(Exit::Failed, format!("{} cannot be written: {why}", path.display()))
                    .hint("name a file in a directory that is there and that you may write to")
            })?;
            if remote.screen.json {
                remote.screen.object(header)?;
            }
        }
        None => std::io::stdout().lock().write_all(text)?,
    }
    let left = header.left_out;
    let turns = match transcript.turns.len() {
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
        (left.attachments, "images and files, for which there was no room"),
    ] {
        if count > 0 {
            remote.screen.say(format!("left out: {count} {what}"));
        }
    }
    Ok(Exit::Done)
}

//! `homing import`: a new session with the conversation of a file.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use api::{Code, IMPORT_BYTES_MAX, ImportQuery};

use crate::completion::Completes;
use crate::exit::{CliError, Exit};
use crate::names;
use crate::remote::{OrCliError, Remote};
use crate::target::path_text;

/// Make a session with the conversation of a file
///
/// The file is one that `homing export` wrote, here or elsewhere. The session is yours alone until you share it; it has an
/// id of its own and answers to the one that it had, too. The agent is told the conversation with the next message.
#[derive(clap::Args)]
pub(crate) struct ImportArgs {
    /// The file; `-` is standard input
    file: PathBuf,
    /// Its title [default: the one it had]
    #[arg(long)]
    title: Option<String>,
    /// The directory it works in [default: one of its own]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    directory: Option<String>,
    /// The agent [default: the default agent]
    #[arg(long, add = Completes::Agents)]
    agent: Option<String>,
}

pub(crate) async fn import(args: ImportArgs, remote: &Remote) -> Result<Exit> {
    let file = read(&args.file)?;
    let directory = match args.directory {
        Some(named) if !remote.is_elsewhere => Some(path_text(&std::path::absolute(named)?)?),
        named => named,
    };
    let query = ImportQuery { agent: args.agent, directory, title: args.title };
    let made = remote.client.import(file, &query).await.or_cli_error().map_err(here_already)?;
    if remote.screen.json {
        remote.screen.object(&made)?;
    } else {
        remote.screen.line(names::shown_id(&made.id, remote))?;
        let words = format!("go on with `homing send --session {} …`", made.id);
        remote.screen.progress(names::said(&words, remote));
    }
    Ok(Exit::Done)
}

/// Whoever has the conversation goes on in it, or wants a second one.
fn here_already(error: anyhow::Error) -> anyhow::Error {
    let hint = |error: &CliError| {
        let session = error.what.split_whitespace().find(|word| word.starts_with("ses_"))?;
        Some(format!(
            "go on there (`homing send --session {session} …`), or make a second one with `homing fork {session}`"
        ))
    };
    match error.downcast::<CliError>() {
        Ok(error) if error.is(Code::AlreadyImported) => match hint(&error) {
            Some(hint) => error.hint(hint).into(),
            None => error.into(),
        },
        Ok(error) => error.into(),
        Err(error) => error,
    }
}

/// A file that is too long is not read to its end.
fn read(path: &Path) -> Result<Vec<u8>> {
    let from: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(std::fs::File::open(path).with_context(|| path.display().to_string())?)
    };
    let mut file = Vec::new();
    from.take(IMPORT_BYTES_MAX as u64 + 1)
        .read_to_end(&mut file)
        .with_context(|| path.display().to_string())?;
    if file.len() > IMPORT_BYTES_MAX {
        let what = format!("{} is longer than {IMPORT_BYTES_MAX} bytes", path.display());
        return Err(CliError::new(Exit::Usage, what)
            .hint("name a file that `homing export -o FILE` wrote")
            .into());
    }
    Ok(file)
}

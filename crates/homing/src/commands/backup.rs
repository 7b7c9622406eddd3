//! `homing backup`: the whole store in one file, while the server runs.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::json;
use store_sqlite::CopyError;

use crate::data_dir::DataDir;
use crate::exit::{CliError, Exit};
use crate::screen::Screen;
use crate::wiring::cannot_open;

/// Copy everything in the data directory's database into one file
///
/// The server may be running: the copy is the database as it was at one moment, checked from end to end.
#[derive(clap::Args)]
pub(crate) struct BackupArgs {
    /// The file to write; it must not be there yet
    file: PathBuf,
}

pub(crate) fn backup(args: &BackupArgs, data_dir: &DataDir, screen: Screen) -> Result<Exit> {
    store_sqlite::backup(&data_dir.path, &args.file).map_err(|error| cannot_copy(error, data_dir))?;
    let bytes = std::fs::metadata(&args.file)?.len();
    if screen.json {
        screen.object(&json!({ "file": args.file, "bytes": bytes }))?;
    } else {
        screen.line(args.file.display().to_string())?;
        screen.say(format!("{bytes} bytes, checked; `homing restore {}` puts it back", args.file.display()));
    }
    Ok(Exit::Done)
}

/// Why a copy was not made.
pub(crate) fn cannot_copy(error: CopyError, data_dir: &DataDir) -> CliError {
    match error {
        CopyError::NotThere(_) => {
            CliError::new(Exit::NotFound, error.to_string()).hint("name another file, or another --data DIR")
        }
        CopyError::Exists(_) => {
            CliError::new(Exit::Failed, error.to_string()).hint("name another file, or move this one away")
        }
        CopyError::Unusable(error) => cannot_open(error, data_dir),
    }
}

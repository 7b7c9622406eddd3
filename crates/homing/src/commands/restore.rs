//! `homing restore`: a backup in the place of the data directory's database, and its snapshots where they are missing.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::json;

use crate::commands::backup::{cannot_copy, snapshots_beside};
use crate::data_dir::DataDir;
use crate::exit::{CliError, Exit};
use crate::screen::Screen;
use crate::system;

/// Put a backup in the place of the database
///
/// Refused while a server has the directory. The database that was there is kept beside it. Of the snapshots in the directory
/// FILE.snapshots those that are missing are added.
#[derive(clap::Args)]
pub(crate) struct RestoreArgs {
    /// The backup
    file: PathBuf,
}

pub(crate) fn restore(args: &RestoreArgs, data_dir: &DataDir, screen: Screen) -> Result<Exit> {
    let restored = store_sqlite::restore(&args.file, &data_dir.path, system::now())
        .map_err(|error| cannot_copy(error, data_dir))?;
    let repositories = match worktrees::put_back_snapshots(&data_dir.path, &snapshots_beside(&args.file)) {
        Ok(repositories) => repositories,
        Err(error) => {
            let why = format!("the database is restored, but not all snapshots are: {error}");
            return Err(CliError::new(Exit::Failed, why)
                .hint("mend what is named, then say it again: what is there now is kept beside it")
                .into());
        }
    };
    if screen.json {
        screen
            .object(&json!({ "data": data_dir.path, "kept": restored.kept, "repositories": repositories }))?;
        return Ok(Exit::Done);
    }
    screen.line(data_dir.path.display().to_string())?;
    match restored.kept {
        Some(kept) => screen.say(format!("restored; what was there before is in {}", kept.display())),
        None => screen.say("restored; there was nothing before"),
    }
    Ok(Exit::Done)
}

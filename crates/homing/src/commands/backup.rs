//! `homing backup`: the whole store in one file, and the snapshots in a directory beside it, while the server runs.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::json;
use store_sqlite::CopyError;

use crate::data_dir::DataDir;
use crate::exit::{CliError, Exit};
use crate::screen::Screen;
use crate::wiring::cannot_open;

/// Copy the data directory's database into a file, and what is remembered of turns beside it
///
/// The server may be running: the copy is the database as it was at one moment, checked from end to end. The snapshots of
/// turns and of removed worktrees are copied into the directory FILE.snapshots, if there are any.
#[derive(clap::Args)]
pub(crate) struct BackupArgs {
    /// The file to write; it must not be there yet
    file: PathBuf,
}

pub(crate) async fn backup(args: &BackupArgs, data_dir: &DataDir, screen: Screen) -> Result<Exit> {
    let snapshots = snapshots_beside(&args.file);
    if snapshots.symlink_metadata().is_ok() {
        return Err(CliError::new(Exit::Failed, format!("{} is there already", snapshots.display()))
            .hint("name another file, or move this directory away")
            .into());
    }
    store_sqlite::backup(&data_dir.path, &args.file).map_err(|error| cannot_copy(error, data_dir))?;
    let bytes = std::fs::metadata(&args.file)?.len();
    // After the database: whatever it says about turns that are over is there by now.
    let repositories =
        worktrees::back_up_snapshots(&data_dir.path, &snapshots).await.map_err(without_snapshots)?;
    let beside = (repositories > 0).then_some(snapshots);
    if screen.json {
        let (file, bytes) = (&args.file, bytes);
        screen.object(
            &json!({ "file": file, "bytes": bytes, "snapshots": beside, "repositories": repositories }),
        )?;
        return Ok(Exit::Done);
    }
    screen.line(args.file.display().to_string())?;
    if let Some(beside) = beside {
        screen.line(beside.display().to_string())?;
    }
    screen.say(format!(
        "{bytes} bytes, checked, and snapshots of {repositories} repositories; `homing restore {}` puts all of it back",
        args.file.display()
    ));
    Ok(Exit::Done)
}

/// The directory that belongs to a backup.
pub(crate) fn snapshots_beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".snapshots");
    PathBuf::from(name)
}

/// The database is copied, and something of the snapshots is not.
fn without_snapshots(error: engine::TreesError) -> CliError {
    CliError::new(Exit::Failed, format!("the database is copied, but not all snapshots are: {error}"))
        .hint("move both copies away, and try again")
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

//! `homing down`: tells the server of this machine to go.

use anyhow::Result;
use serde_json::json;

use crate::background::{self, Stopped};
use crate::data_dir::DataDir;
use crate::exit::Exit;
use crate::screen::Screen;

/// Stop the server of this machine
///
/// It hands everything over, as with Ctrl-C or SIGTERM: running turns are stopped, what waits goes on after the next start, and
/// sessions stay. Answers once it is gone. Said again while it is going, it ends at once.
#[derive(clap::Args)]
pub(crate) struct DownArgs {}

pub(crate) async fn down(DownArgs {}: &DownArgs, data_dir: &DataDir, screen: Screen) -> Result<Exit> {
    let (state, words, exit) = match background::stop(data_dir).await? {
        Stopped::Gone { pid } => {
            ("gone", format!("the server (process {pid}) is down; sessions stay"), Exit::Done)
        }
        Stopped::Going { pid } => (
            "going",
            format!("the server (process {pid}) is still handing over; `homing down` again ends it at once"),
            Exit::Later,
        ),
        Stopped::Nobody => {
            ("none", format!("no server is running for {}", data_dir.path.display()), Exit::Done)
        }
    };
    if screen.json {
        screen.object(&json!({ "state": state, "data": data_dir.path }))?;
    } else {
        screen.line(words)?;
    }
    Ok(exit)
}

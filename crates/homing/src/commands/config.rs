//! `homing config`: the configuration file's documentation, which is also its defaults.

use anyhow::Result;

use crate::config::DEFAULT;
use crate::config::schema::schema;
use crate::exit::Exit;
use crate::screen::Screen;

/// Print the default configuration, which explains every key
///
/// Keep what you want to change in homing.toml in the data directory, or in ~/.config/homing/config.toml.
#[derive(clap::Args)]
pub(crate) struct ConfigArgs {
    /// Print the JSON Schema instead, for editors that know TOML
    #[arg(long)]
    schema: bool,
}

pub(crate) fn config(args: &ConfigArgs, screen: Screen) -> Result<Exit> {
    if args.schema {
        screen.line(serde_json::to_string_pretty(&schema())?)?;
    } else if screen.json {
        screen.object(&toml::from_str::<toml::Table>(DEFAULT)?)?;
    } else {
        screen.piece(DEFAULT)?;
    }
    Ok(Exit::Done)
}

//! `homing completions`: what a shell needs to complete our commands.

use std::io::Write;

use anyhow::Result;
use clap_complete::Shell;

use crate::exit::Exit;

/// Print a completion script for a shell
///
/// For instance `homing completions bash > ~/.local/share/bash-completion/completions/homing`.
#[derive(clap::Args)]
pub(crate) struct CompletionsArgs {
    shell: Shell,
}

pub(crate) fn completions(args: &CompletionsArgs, command: &mut clap::Command) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command, "homing", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(Exit::Done)
}

//! `homing completions`: what a shell needs to complete our commands.

use std::io::Write;

use anyhow::Result;
use clap_complete::Shell;

use crate::completion;
use crate::exit::Exit;

/// Print what goes into a shell's start-up file, so that it completes our commands
///
/// In ~/.bashrc: `source <(homing completions bash)`. In ~/.zshrc, after compinit: `source <(homing completions zsh)`. In
/// ~/.config/fish/config.fish: `homing completions fish | source`. These complete sessions, messages, questions, worktrees, agents and
/// models, too; other shells complete commands and options.
#[derive(clap::Args)]
pub(crate) struct CompletionsArgs {
    shell: Shell,
}

pub(crate) fn completions(args: &CompletionsArgs, command: &mut clap::Command) -> Result<Exit> {
    let mut script = Vec::new();
    match completion::script(args.shell) {
        Some(text) => script.extend_from_slice(text.as_bytes()),
        None => clap_complete::generate(args.shell, command, "homing", &mut script),
    }
    std::io::stdout().write_all(&script)?;
    Ok(Exit::Done)
}

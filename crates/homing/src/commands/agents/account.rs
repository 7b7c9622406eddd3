//! `homing agents account`: your own sign-in for an agent. What it holds is typed or piped in, and never an argument.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};

use anyhow::Result;
use api::{Account, NewAccount};

use crate::completion::Completes;
use crate::exit::{CliError, Exit};
use crate::remote::{OrCliError, Remote};
use crate::screen::Screen;
use crate::{system, terminal_prompt, time};

/// Use your own sign-in for an agent, in turns of your own messages
#[derive(clap::Args)]
pub(crate) struct AccountArgs {
    #[command(subcommand)]
    verb: AccountVerb,
}

#[derive(clap::Subcommand)]
enum AccountVerb {
    /// Give it, in place of what you gave before
    ///
    /// What each variable is to hold is asked for without showing it; from a pipe it is everything there is, or one line
    /// for each variable. It is kept sealed and cannot be read back.
    Set {
        /// The agent
        #[arg(add = Completes::Agents)]
        name: String,
        /// Variables that the agent takes, ANTHROPIC_API_KEY for instance; `homing agents show NAME` lists them
        #[arg(required = true, value_name = "VARIABLE")]
        variables: Vec<String>,
    },
    /// Take it away; your turns use the house's again
    Remove {
        /// The agent
        #[arg(add = Completes::Agents)]
        name: String,
    },
    /// Show which variables you gave, and when
    Show {
        /// The agent
        #[arg(add = Completes::Agents)]
        name: String,
    },
}

pub(crate) async fn account(args: &AccountArgs, remote: &Remote) -> Result<Exit> {
    let account = match &args.verb {
        AccountVerb::Set { name, variables } => {
            let secrets = ask_for(variables, remote.screen).await?;
            remote.client.set_account(name, &NewAccount { secrets }).await.or_cli_error()?
        }
        AccountVerb::Remove { name } => remote.client.remove_account(name).await.or_cli_error()?,
        AccountVerb::Show { name } => remote.client.account(name).await.or_cli_error()?,
    };
    if remote.screen.json {
        remote.screen.object(&account)?;
    } else {
        tell(&account, remote.screen)?;
    }
    Ok(Exit::Done)
}

fn tell(account: &Account, screen: Screen) -> Result<()> {
    let Some(since) = account.since else {
        return Ok(screen.line(format!("{}: your turns use the house's sign-in", account.agent))?);
    };
    let (names, ago) = (account.secrets.join(", "), time::ago(since, system::now()));
    Ok(screen.line(format!("{}: your turns use your own {names}, given {ago}", account.agent))?)
}

async fn ask_for(variables: &[String], screen: Screen) -> Result<BTreeMap<String, String>> {
    if !io::stdin().is_terminal() {
        return piped(variables);
    }
    let mut secrets = BTreeMap::new();
    for name in variables {
        secrets.insert(name.clone(), terminal_prompt::secret(name, screen).await?.into_inner());
    }
    Ok(secrets)
}

fn piped(variables: &[String]) -> Result<BTreeMap<String, String>> {
    let text = terminal_prompt::piped()?;
    if let [name] = variables {
        return Ok(BTreeMap::from([(name.clone(), text)]));
    }
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() != variables.len() {
        let (lines, variables) = (lines.len(), variables.len());
        return Err(CliError::new(Exit::Usage, format!("{variables} variables, but {lines} lines"))
            .hint("pipe one line for each variable, in their order")
            .into());
    }
    Ok(variables.iter().cloned().zip(lines.into_iter().map(str::to_owned)).collect())
}

//! `homing agents account`: your own sign-in for an agent. What it holds is typed or piped in, and never an argument.

use std::collections::BTreeMap;
use std::io::{self, BufRead, IsTerminal, Read};
use std::os::fd::AsFd;

use anyhow::Result;
use api::{Account, NewAccount};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::oneshot;

use crate::exit::{Exit, Trouble};
use crate::keys::Interrupts;
use crate::remote::{Remote, Told};
use crate::screen::Screen;
use crate::{time, world};

/// What is read at the most: more than any variable may hold.
const READ_BYTES_MAX: u64 = 64 * 1024;

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
        name: String,
        /// What the agent takes, ANTHROPIC_API_KEY for instance; `homing agents show NAME` lists them
        #[arg(required = true, value_name = "VARIABLE")]
        variables: Vec<String>,
    },
    /// Take it away; your turns use the house's again
    Remove {
        /// The agent
        name: String,
    },
    /// Show which variables you gave, and when
    Show {
        /// The agent
        name: String,
    },
}

pub(crate) async fn account(args: &AccountArgs, remote: &Remote) -> Result<Exit> {
    let account = match &args.verb {
        AccountVerb::Set { name, variables } => {
            let secrets = ask_for(variables, remote.screen).await?;
            remote.client.set_account(name, &NewAccount { secrets }).await.told()?
        }
        AccountVerb::Remove { name } => remote.client.remove_account(name).await.told()?,
        AccountVerb::Show { name } => remote.client.account(name).await.told()?,
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
    let (names, ago) = (account.secrets.join(", "), time::ago(since, world::now()));
    Ok(screen.line(format!("{}: your turns use your own {names}, given {ago}", account.agent))?)
}

async fn ask_for(variables: &[String], screen: Screen) -> Result<BTreeMap<String, String>> {
    if !io::stdin().is_terminal() {
        return piped(variables);
    }
    let mut interrupts = Interrupts::listen()?;
    let mut secrets = BTreeMap::new();
    for name in variables {
        let hidden = Hidden::begin()?;
        screen.say(format!("{name}, which is not shown:"));
        let typed = tokio::select! {
            typed = typed_line() => typed?,
            () = interrupts.next() => {
                drop(hidden);
                return Err(Trouble::new(Exit::Failed, "nothing was changed").into());
            }
        };
        drop(hidden);
        secrets.insert(name.clone(), typed);
    }
    Ok(secrets)
}

/// A read from a terminal cannot be taken back, so it has a thread of its own, which ends with the process.
async fn typed_line() -> io::Result<String> {
    let (tell, told) = oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().take(READ_BYTES_MAX).read_line(&mut line);
        let _ = tell.send(read.map(|_| line));
    });
    let line = told.await.map_err(io::Error::other)??;
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

fn piped(variables: &[String]) -> Result<BTreeMap<String, String>> {
    let mut text = String::new();
    io::stdin().lock().take(READ_BYTES_MAX).read_to_string(&mut text)?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    if let [name] = variables {
        return Ok(BTreeMap::from([(name.clone(), text.to_owned())]));
    }
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() != variables.len() {
        let (lines, variables) = (lines.len(), variables.len());
        return Err(Trouble::new(Exit::Usage, format!("{variables} variables, but {lines} lines"))
            .hint("pipe one line for each variable, in their order")
            .into());
    }
    Ok(variables.iter().cloned().zip(lines.into_iter().map(str::to_owned)).collect())
}

/// A terminal that does not show what is typed, until this is dropped.
struct Hidden(Termios);

impl Hidden {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin().as_fd())?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin().as_fd(), OptionalActions::Flush, &silent)?;
        Ok(Self(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing back.
        let _ = tcsetattr(io::stdin().as_fd(), OptionalActions::Now, &self.0);
    }
}

//! The session that is meant: decided by what a person names, once, and never by what ran last.

use anyhow::Result;
use api::{Explained, IfNew, OwnWorktree, Receipt, RouteQuery, To};
use kernel::{Address, Part};

use crate::exit::{CliError, Exit};
use crate::remote::{OrCliError, Remote};
use crate::system;

/// To which session.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct TargetArgs {
    /// Exactly this session; refused if there is none or it has ended
    #[arg(long, value_name = "SESSION", group = "target")]
    session: Option<String>,
    /// The session of this conversation, such as api:CLIENT/KEY [default: this directory's]
    #[arg(long, value_name = "ADDRESS", group = "target")]
    conversation: Option<String>,
    /// A new session, always
    #[arg(long, group = "target")]
    new: bool,
}

/// The options of a session, where one is made.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct MakeArgs {
    /// The agent, if a session is made
    #[arg(long, conflicts_with = "session")]
    agent: Option<String>,
    /// The agent's model, if a session is made; `homing agents show AGENT` lists them where it can
    #[arg(long, conflicts_with = "session")]
    model: Option<String>,
    /// The agent's mode, if a session is made
    #[arg(long, conflicts_with = "session")]
    mode: Option<String>,
    /// The directory it works in, if a session is made [default: this one]
    #[arg(long, value_name = "DIR", conflicts_with = "session")]
    directory: Option<String>,
    /// The title, if a session is made
    #[arg(long, conflicts_with = "session")]
    title: Option<String>,
    /// Let it work in a git worktree of its own, if a session is made; named so, or by itself
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "", conflicts_with = "session")]
    worktree: Option<String>,
    /// The revision that the worktree begins with [default: the current one]
    #[arg(long, value_name = "REVISION", requires = "worktree")]
    base: Option<String>,
    /// The worktree's branch [default: one named after it]
    #[arg(long, value_name = "BRANCH", requires = "worktree")]
    branch: Option<String>,
}

impl MakeArgs {
    fn is_empty(&self) -> bool {
        let Self { agent, model, mode, directory, title, worktree, base: _, branch: _ } = self;
        [agent, model, mode, directory, title, worktree].into_iter().all(Option::is_none)
    }

    /// As the server wants it. Without a directory it is the one in which the command is typed; a server elsewhere does not
    /// have that one, and gives the session one of its own.
    fn if_new(&self, remote: &Remote) -> Result<IfNew> {
        let directory = match &self.directory {
            Some(named) if remote.is_elsewhere => Some(named.clone()),
            Some(named) => Some(path_text(&std::path::absolute(named)?)?),
            None if remote.is_elsewhere => None,
            None => Some(here()?),
        };
        let Self { agent, model, mode, title, worktree, base, branch, .. } = self.clone();
        let worktree = worktree.map(|name| {
            let name = Some(name).filter(|name| !name.is_empty());
            OwnWorktree { name, base, branch }
        });
        Ok(IfNew { agent, directory, model, mode, title, worktree })
    }
}

/// A target, as a message and as a question.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) to: To,
    /// True if a person said how a session is to be made.
    made_to_order: bool,
}

impl TargetArgs {
    /// The destination that a message names.
    pub(crate) async fn resolve(&self, make: &MakeArgs, remote: &Remote) -> Result<Target> {
        let to = match (&self.session, self.new) {
            (Some(session), _) => To::session(session),
            (None, true) => To::new_session(make.if_new(remote)?),
            (None, false) => To::conversation(self.address(remote).await?, Some(make.if_new(remote)?)),
        };
        Ok(Target { to, made_to_order: !make.is_empty() })
    }

    /// The query for `route`.
    pub(crate) async fn query(&self, remote: &Remote) -> Result<RouteQuery> {
        Ok(match (&self.session, self.new) {
            (Some(session), _) => RouteQuery { session: Some(session.clone()), ..RouteQuery::default() },
            (None, true) => RouteQuery { new: Some(true), ..RouteQuery::default() },
            (None, false) => {
                RouteQuery { conversation: Some(self.address(remote).await?), ..RouteQuery::default() }
            }
        })
    }

    async fn address(&self, remote: &Remote) -> Result<String> {
        match &self.conversation {
            Some(address) => Ok(address.clone()),
            None => conversation_here(remote).await,
        }
    }
}

impl Target {
    /// Tells which session was joined or made.
    pub(crate) fn announce(&self, receipt: &Receipt, remote: &Remote) {
        let session = &receipt.session;
        remote.screen.say(match (&receipt.previous, receipt.new) {
            (Some(previous), _) => {
                format!(
                    "{session} (new: {} has ended, {})",
                    previous.session,
                    crate::describe::ended(previous.why)
                )
            }
            (None, true) => format!("{session} (new)"),
            (None, false) => format!("{session} (joined)"),
        });
        if receipt.if_new_ignored && self.made_to_order {
            remote
                .screen
                .say("--agent, --model, --mode, --directory, --title, --worktree, --base and --branch are for new sessions; this one was there already");
        }
    }
}

/// The conversation of this directory in this person's terminals.
pub(crate) async fn conversation_here(remote: &Remote) -> Result<String> {
    let me = remote.client.me().await.or_cli_error()?;
    let part = |text: String| {
        Part::new(text).map_err(|why| {
            CliError::new(Exit::Usage, format!("this directory cannot name a conversation: {why}"))
                .hint("name one with --conversation api:CLIENT/KEY")
        })
    };
    let parts = [part(system::host())?, part(me.handle)?, part(here()?)?];
    let address = Address::new("cli", parts).expect("a word and three parts");
    Ok(address.to_string())
}

/// The open session that a command is about: the one that is named, or this directory's.
pub(crate) async fn session_or_here(named: Option<&str>, remote: &Remote) -> Result<String> {
    if let Some(session) = named {
        return Ok(session.to_owned());
    }
    let query = RouteQuery { conversation: Some(conversation_here(remote).await?), ..RouteQuery::default() };
    match remote.client.explain(&query).await.or_cli_error()? {
        Explained::Existing { session, .. } => Ok(session.id),
        Explained::New { .. } | Explained::Refused { .. } => {
            Err(CliError::new(Exit::NotFound, "there is no open session for this directory")
                .hint(
                    "`homing send \"…\"` opens one; `homing ls --all` lists those there are, ended ones too",
                )
                .into())
        }
    }
}

fn here() -> Result<String> {
    path_text(&std::env::current_dir()?)
}

pub(crate) fn path_text(path: &std::path::Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        CliError::new(Exit::Usage, format!("{} is not text", path.display()))
            .hint("use a directory whose name is UTF-8")
            .into()
    })
}

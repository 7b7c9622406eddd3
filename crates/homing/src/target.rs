//! The session that is meant: decided by what a person names, once, and never by what ran last.

use anyhow::Result;
use api::client::ClientError;
use api::{
    Code, Expect, Explained, IfNew, NewMessage, OwnWorktree, Previous, Receipt, RouteQuery, To,
    ToConversation, ToSession,
};

use crate::completion::Completes;
use crate::exit::{CliError, Exit, OTHER_AGENT_HINT};
use crate::here::{self, Here, quoted};
use crate::names;
use crate::remote::{OrCliError, Remote};

/// To which session.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct TargetArgs {
    /// Exactly this session; refused if there is none or it has ended. An id, a piece of one, @LINE of the last `homing ls`, a
    /// title, or - for the one that this directory had before
    #[arg(long, short, value_name = "SESSION", group = "target", add = Completes::OpenSessions)]
    session: Option<String>,
    /// The session of this conversation, such as api:CLIENT/KEY [default: this directory's]
    #[arg(long, value_name = "ADDRESS", group = "target")]
    conversation: Option<String>,
    /// A new session, always; it takes over the conversation of the directory it works in
    #[arg(long, group = "target")]
    new: bool,
    /// A new session beside the one that this directory has, which goes on being this directory's
    #[arg(long, conflicts_with_all = ["session", "conversation"])]
    aside: bool,
}

/// To which session, of a command that takes it as its first word.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct FirstTargetArgs {
    /// The session, as with --session [default: this directory's]
    #[arg(
        value_name = "SESSION",
        conflicts_with_all = ["target", "aside", "agent", "model", "mode", "directory", "title", "worktree"],
        add = Completes::OpenSessions,
    )]
    first: Option<String>,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    make: MakeArgs,
}

impl FirstTargetArgs {
    /// The destination that is named.
    pub(crate) async fn resolve(self, remote: &Remote) -> Result<Target> {
        let session = self.first.or(self.target.session);
        TargetArgs { session, ..self.target }.resolve(&self.make, remote).await
    }
}

/// The options of a session, where one is made.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct MakeArgs {
    /// The agent, if a session is made; refused if there is one with another
    #[arg(long, conflicts_with = "session", add = Completes::Agents)]
    agent: Option<String>,
    /// The agent's model, if a session is made, refused if there is one with another; `homing agents show AGENT` lists them where it can
    #[arg(long, conflicts_with = "session", add = Completes::Models)]
    model: Option<String>,
    /// The agent's mode, if a session is made
    #[arg(long, conflicts_with = "session", add = Completes::Modes)]
    mode: Option<String>,
    /// The directory it works in, if a session is made [default: this one, in a git repository its top]
    #[arg(long, value_name = "DIR", conflicts_with = "session", value_hint = clap::ValueHint::DirPath)]
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
    /// The options that were named and count for a new session only.
    fn for_new(&self) -> Vec<&'static str> {
        let Self { agent: _, model: _, mode, directory, title, worktree, base, branch } = self;
        let named = [
            ("--mode", mode),
            ("--directory", directory),
            ("--title", title),
            ("--worktree", worktree),
            ("--base", base),
            ("--branch", branch),
        ];
        named.into_iter().filter(|(_, value)| value.is_some()).map(|(option, _)| option).collect()
    }

    /// As the server wants it. Without a directory it is that of the conversation; a server elsewhere does not have that one,
    /// and gives the session one of its own.
    fn if_new(&self, usual: &str, remote: &Remote) -> Result<IfNew> {
        let directory = match &self.directory {
            Some(named) if remote.is_elsewhere => Some(named.clone()),
            Some(named) => Some(path_text(&std::path::absolute(named)?)?),
            None if remote.is_elsewhere => None,
            None => Some(usual.to_owned()),
        };
        let Self { agent, model, mode, title, worktree, base, branch, .. } = self.clone();
        let worktree = worktree.map(|name| {
            let name = Some(name).filter(|name| !name.is_empty());
            OwnWorktree { name, base, branch }
        });
        Ok(IfNew { agent, directory, model, mode, title, worktree })
    }

    /// The agent and model that a session has to have that is there already.
    fn expect(&self) -> Option<Expect> {
        let Self { agent, model, .. } = self.clone();
        Some(Expect { agent, model }).filter(|expect| *expect != Expect::default())
    }
}

/// A target, as a message and as a question.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) to: To,
    /// The options for a new session that a person has named.
    for_new: Vec<&'static str>,
    /// True if the directory decided that it is this session, so that those options never reach the server.
    is_worktrees: bool,
    /// True if it is the conversation of the directory in which somebody types.
    is_here: bool,
}

impl TargetArgs {
    /// A new session.
    pub(crate) fn anew() -> Self {
        Self { new: true, ..Self::default() }
    }

    /// True if a session was named, so that nothing else names one.
    pub(crate) fn names_session(&self) -> bool {
        self.session.is_some()
    }

    /// The destination that a message names.
    pub(crate) async fn resolve(&self, make: &MakeArgs, remote: &Remote) -> Result<Target> {
        let is_unnamed = self.session.is_none() && self.conversation.is_none();
        let to = match (&self.session, &self.conversation) {
            (Some(session), _) => To::session(&names::session(session, remote).await?),
            (None, Some(address)) => {
                let usual = path_text(&std::env::current_dir()?)?;
                conversation(address.clone(), make.if_new(&usual, remote)?, make)
            }
            (None, None) => self.resolve_here(make, remote).await?,
        };
        let is_here = is_unnamed && make.directory.is_none();
        let is_worktrees = is_unnamed && matches!(to, To::Session(_));
        Ok(Target { to, for_new: make.for_new(), is_worktrees, is_here })
    }

    async fn resolve_here(&self, make: &MakeArgs, remote: &Remote) -> Result<To> {
        let here = Here::find(remote).await?;
        let if_new = make.if_new(&here.directory, remote)?;
        Ok(match (self.new || self.aside, here.worktree_of) {
            (true, _) if self.aside || make.worktree.is_some() => To::new_session(if_new),
            (true, _) => {
                let named = make.directory.as_deref().filter(|_| !remote.is_elsewhere);
                let address = match named {
                    Some(named) => here::conversation_of(named, remote).await?,
                    None => here.address,
                };
                To::new_in(address, if_new)
            }
            (false, Some(session)) => To::Session(ToSession { session, expect: make.expect() }),
            (false, None) => conversation(here.address, if_new, make),
        })
    }
}

fn conversation(conversation: String, if_new: IfNew, make: &MakeArgs) -> To {
    To::Conversation(ToConversation { conversation, if_new: Some(if_new), expect: make.expect() })
}

impl Target {
    /// The query for `route`.
    pub(crate) fn query(&self) -> RouteQuery {
        let directory = self.directory().map(str::to_owned);
        match self.to.clone() {
            To::Session(ToSession { session, expect }) => {
                let Expect { agent, model } = expect.unwrap_or_default();
                RouteQuery { session: Some(session), agent, model, ..RouteQuery::default() }
            }
            To::Conversation(ToConversation { conversation, expect, .. }) => {
                let Expect { agent, model } = expect.unwrap_or_default();
                let conversation = Some(conversation);
                RouteQuery { conversation, directory, agent, model, ..RouteQuery::default() }
            }
            To::New(to) => {
                let conversation = to.new.conversation;
                RouteQuery { new: Some(true), conversation, directory, ..RouteQuery::default() }
            }
        }
    }

    /// The directory of the session, if one is made.
    fn directory(&self) -> Option<&str> {
        match &self.to {
            To::Session(_) => None,
            To::Conversation(to) => to.if_new.as_ref()?.directory.as_deref(),
            To::New(to) => to.new.directory.as_deref(),
        }
    }

    /// From here on the session may have any agent and model: somebody has chosen another one for it.
    pub(crate) fn expect_any(&mut self) {
        match &mut self.to {
            To::Session(to) => to.expect = None,
            To::Conversation(to) => to.expect = None,
            To::New(_) => {}
        }
    }

    /// Says it. Whoever may not choose the directory is told how they get to.
    pub(crate) async fn say(&self, message: &NewMessage, remote: &Remote) -> Result<Receipt> {
        let refused = match remote.client.say(message).await {
            // The server was not told of them: it is here that they are ignored.
            Ok(receipt) => {
                let is_ignored = self.is_worktrees && !self.for_new.is_empty();
                return Ok(Receipt { if_new_ignored: receipt.if_new_ignored || is_ignored, ..receipt });
            }
            Err(refused) => refused,
        };
        let code = match &refused {
            ClientError::Refused(problem) => Some(problem.code),
            _ => None,
        };
        let error = CliError::from(refused);
        match self.how_to_mend(code, remote).await? {
            Some(hint) => Err(error.hint(hint).into()),
            None => Err(error.into()),
        }
    }

    /// The way out of a refusal, where only we know it.
    pub(crate) async fn how_to_mend(&self, code: Option<Code>, remote: &Remote) -> Result<Option<String>> {
        Ok(match (code, self.directory()) {
            (Some(Code::DirectoryNotYours), Some(directory)) => {
                let me = remote.client.me().await.or_cli_error()?;
                Some(here::how_to_choose(directory, &me))
            }
            (Some(Code::OtherAgent), _) if self.is_worktrees => Some(
                "`homing scope set --agent NAME --model NAME` changes it; `homing send --new --agent NAME …`, typed in the repository itself, makes a new session, and this one goes on".to_owned(),
            ),
            (Some(Code::OtherAgent), _) => Some(OTHER_AGENT_HINT.to_owned()),
            _ => None,
        })
    }

    /// The command that gives a conversation back to the session that had it.
    pub(crate) fn way_back(&self, before: &str) -> Option<String> {
        let To::New(to) = &self.to else { return None };
        let address = to.new.conversation.as_deref()?;
        Some(format!("homing bindings move {} {before}", quoted(address)))
    }

    /// Tells which session was joined or made.
    pub(crate) fn announce(&self, receipt: &Receipt, remote: &Remote) {
        let is_read = remote.screen.err_is_terminal;
        let shown = |id: &str| if is_read { names::short_id(id) } else { id.to_owned() };
        let session = shown(&receipt.session);
        remote.screen.say(match (&receipt.previous, receipt.new) {
            (Some(Previous { session: before, why: Some(why) }), _) => {
                format!("{session} (new: {} has ended, {})", shown(before), crate::describe::ended(*why))
            }
            (Some(Previous { session: before, why: None }), _) => {
                let back = match is_read && self.is_here {
                    true => Some("`homing bindings move . -`".to_owned()),
                    false => self.way_back(before),
                };
                let back = back.map(|back| format!("; back to it: {back}")).unwrap_or_default();
                let before = shown(before);
                format!("{session} (new, and this directory's from now on: {before} goes on{back})")
            }
            (None, true) => format!("{session} (new)"),
            (None, false) => format!("{session} (joined)"),
        });
        if receipt.if_new_ignored {
            self.say_ignored(remote);
        }
    }

    /// Tells which options are ignored, because the session is there already.
    fn say_ignored(&self, remote: &Remote) {
        let are = match self.for_new.len() {
            0 => return,
            1 => "is",
            _ => "are",
        };
        let options = self.for_new.join(", ");
        let why = match self.is_worktrees {
            true => "this is the worktree of one that is there already",
            false => "this one was there already; `--new` makes one",
        };
        remote.screen.say(format!("ignored: {options} {are} for new sessions, and {why}"));
    }

    /// Tells it beforehand, once.
    pub(crate) fn say_ignored_now(&mut self, remote: &Remote) {
        self.say_ignored(remote);
        self.for_new.clear();
    }
}

/// A turn of a session.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct TurnArgs {
    /// The session [default: this directory's], then the turn, as `homing log` numbers it; a number alone is a turn
    #[arg(num_args = 0..=2, value_names = ["SESSION", "TURN"], add = Completes::Sessions)]
    words: Vec<String>,
    /// The session
    #[arg(long, short, hide = true, add = Completes::Sessions)]
    session: Option<String>,
}

impl TurnArgs {
    /// The session, and the turn if one was named.
    pub(crate) async fn resolve(&self, remote: &Remote) -> Result<(String, Option<u32>)> {
        let (session, turn) = self.named()?;
        Ok((session_or_here(session, remote).await?, turn))
    }

    /// The same as they were typed.
    pub(crate) fn named(&self) -> Result<(Option<&str>, Option<u32>)> {
        let turn = self.words.last().and_then(|word| word.parse::<u32>().ok());
        let named = &self.words[..self.words.len() - usize::from(turn.is_some())];
        let session = match (named, &self.session) {
            ([], session) => session.as_deref(),
            ([named], None) => Some(named.as_str()),
            ([turn, session], None) if turn.parse::<u32>().is_ok() => {
                return Err(CliError::new(Exit::Usage, "the session comes first, then the turn")
                    .hint(format!("`{session} {turn}`, in this order"))
                    .into());
            }
            _ => {
                let what = format!("{:?} is no turn", self.words.join(" "));
                return Err(CliError::new(Exit::Usage, what).hint("`homing log` numbers the turns").into());
            }
        };
        Ok((session, turn))
    }
}

/// The open session that a command is about: the one that is named, or this directory's.
pub(crate) async fn session_or_here(named: Option<&str>, remote: &Remote) -> Result<String> {
    if let Some(session) = named {
        return names::session(session, remote).await;
    }
    let here = Here::find(remote).await?;
    if let Some(session) = here.worktree_of {
        return Ok(session);
    }
    let query = RouteQuery { conversation: Some(here.address), ..RouteQuery::default() };
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

pub(crate) fn path_text(path: &std::path::Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        CliError::new(Exit::Usage, format!("the name of {} is not UTF-8, which this needs", path.display()))
            .hint("rename it, or use another directory")
            .into()
    })
}

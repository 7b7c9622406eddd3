//! `homing scope`: where and how a session acts, and what can be changed about it.

use anyhow::Result;
use api::client::{ChangeOutcome, FollowItem};
use api::{
    Choices, Code, EnterWorktree, Fact, FactsQuery, Files, RuleFact, ScopeEnter, ScopeExit, ScopeRelink,
    ScopeRequest, ScopeSet, ScopeSetting, Session, StoryFact, What,
};
use std::time::Duration;

use crate::completion::Completes;
use crate::describe;
use crate::exit::{CliError, Exit};
use crate::near_commands::or_a_verb;
use crate::progress_line::{LEFT, Watched, watch};
use crate::remote::{OrCliError, Remote};
use crate::screen::tame_name;
use crate::target::{path_text, session_or_here};

/// The longest that a change is waited for while nothing of it goes on; later it happens without us.
pub(super) const CHANGE_WAIT: Duration = Duration::from_secs(120);

/// See where and how a session acts, or change it
///
/// A change happens between turns: while one runs, it waits for its end. What waits in the queue then was written for
/// another scope and is held; `homing queue release` says where it belongs.
#[derive(clap::Args)]
#[command(subcommand_precedence_over_arg = true)]
pub(crate) struct ScopeArgs {
    /// The session, before what is to be done [default: this directory's]
    #[arg(value_name = "SESSION", add = Completes::OpenSessions)]
    first: Option<String>,
    /// The session, anywhere
    #[arg(long, short, global = true, add = Completes::OpenSessions)]
    session: Option<String>,
    /// Refuse it if it has to wait for a turn
    #[arg(long, global = true)]
    now: bool,
    #[command(subcommand)]
    verb: Option<ScopeVerb>,
}

#[derive(clap::Subcommand)]
enum ScopeVerb {
    /// Go into a git worktree of this name, made if it is not there
    Enter {
        /// Letters, digits and dashes
        #[arg(add = Completes::OwnWorktrees)]
        name: String,
        /// The revision that it begins with [default: the current one]
        #[arg(long)]
        base: Option<String>,
        /// Its branch [default: one named after it]
        #[arg(long)]
        branch: Option<String>,
    },
    /// Leave the worktree; it stays as it is
    Exit,
    /// Another agent, model or mode; an empty model or mode is the agent's own
    Set {
        #[arg(long, add = Completes::Agents)]
        agent: Option<String>,
        #[arg(long, add = Completes::Models)]
        model: Option<String>,
        #[arg(long, add = Completes::Modes)]
        mode: Option<String>,
    },
    /// Name the directory anew, because it has moved
    Relink {
        #[arg(value_hint = clap::ValueHint::DirPath)]
        directory: String,
    },
    /// Give up a change that has not begun
    Keep,
    /// List the agent's slash commands
    Commands,
    /// List the agent's models
    Models,
    /// List the files of the directory
    Files,
}

pub(crate) async fn scope(args: ScopeArgs, remote: &Remote) -> Result<Exit> {
    let named = match (&args.first, &args.session) {
        (Some(first), Some(session)) => {
            return Err(CliError::new(
                Exit::Usage,
                format!("two sessions were named: {first} and {session}"),
            )
            .hint("leave one of them out")
            .into());
        }
        (first, session) => first.as_deref().or(session.as_deref()),
    };
    let session = session_or_here(named, remote).await;
    let session = session.map_err(|error| or_a_verb("scope", args.first.as_deref(), error))?;
    let now = args.now;
    let request = match args.verb {
        None => return show(&remote.client.session(&session).await.or_cli_error()?, remote),
        Some(ScopeVerb::Keep) => {
            let kept = remote.client.keep_scope(&session).await.or_cli_error().map_err(nothing_waits)?;
            return show(&kept.into_inner(), remote);
        }
        Some(ScopeVerb::Commands) => {
            return choices(&remote.client.commands(&session).await.or_cli_error()?, remote);
        }
        Some(ScopeVerb::Models) => {
            return choices(&remote.client.models(&session).await.or_cli_error()?, remote);
        }
        Some(ScopeVerb::Files) => return files(&remote.client.files(&session).await.or_cli_error()?, remote),
        Some(ScopeVerb::Enter { name, base, branch }) => {
            ScopeRequest::Enter(ScopeEnter { enter: EnterWorktree { name, base, branch }, now })
        }
        Some(ScopeVerb::Exit) => ScopeRequest::Exit(ScopeExit { exit: true, now }),
        Some(ScopeVerb::Set { agent: None, model: None, mode: None }) => {
            return Err(CliError::new(Exit::Usage, "there is nothing to change")
                .hint("name at least one of --agent, --model and --mode")
                .into());
        }
        Some(ScopeVerb::Set { agent, model, mode }) => {
            ScopeRequest::Set(ScopeSetting { set: ScopeSet { agent, model, mode }, now })
        }
        Some(ScopeVerb::Relink { directory }) => {
            let relink = match remote.is_elsewhere {
                true => directory,
                false => path_text(&std::path::absolute(directory)?)?,
            };
            ScopeRequest::Relink(ScopeRelink { relink, now })
        }
    };
    let exit = change(&session, &request, remote).await?;
    if let ScopeRequest::Set(ScopeSetting { set: ScopeSet { agent: Some(agent), .. }, .. }) = &request {
        say_if_absent(agent, remote).await?;
    }
    Ok(exit)
}

/// Whoever chooses an agent whose program is missing is told now, and not by the next turn.
async fn say_if_absent(agent: &str, remote: &Remote) -> Result<()> {
    let agents = remote.client.agents().await.or_cli_error()?;
    let missing =
        agents.items.iter().find(|known| known.name == agent).and_then(|known| known.missing.as_ref());
    if let Some(missing) = missing {
        remote.screen.say(format!("{agent} is not here yet: {}", tame_name(missing)));
    }
    Ok(())
}

/// Changes the scope of a session, waits until it is so, and shows it.
async fn change(session: &str, request: &ScopeRequest, remote: &Remote) -> Result<Exit> {
    match settle(session, request, remote).await? {
        Exit::Done => show(&remote.client.session(session).await.or_cli_error()?, remote),
        exit => Ok(exit),
    }
}

/// Changes the scope of a session, and waits until it is so.
pub(super) async fn settle(session: &str, request: &ScopeRequest, remote: &Remote) -> Result<Exit> {
    let before = remote.client.session(session).await.or_cli_error()?;
    let now = match remote.client.change_scope(session, request).await.or_cli_error().map_err(without_now)? {
        ChangeOutcome::Done(now) => now,
        ChangeOutcome::Pending(_) => {
            remote.screen.say("not decided yet; `homing scope` says later");
            return Ok(Exit::Later);
        }
    };
    match watch(session, Some(CHANGE_WAIT), remote, until_settled(&before, &now, remote)).await? {
        Watched::Over(settled) => settled?,
        Watched::Left => {
            remote.screen.say(LEFT);
            return Ok(Exit::Detached);
        }
        Watched::NotYet => {
            remote
                .screen
                .say("not yet; `homing log -f` tells when it happens, `homing scope keep` gives it up");
            return Ok(Exit::Later);
        }
    }
    Ok(Exit::Done)
}

/// The advice to a change that has to be now.
fn without_now(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<CliError>() {
        Ok(error) if error.is(Code::Busy) => error
            .hint("wait for the end of the turn, or stop it with `homing stop`; without --now a change waits by itself")
            .into(),
        Ok(error) => error.into(),
        Err(error) => error,
    }
}

/// A change that has happened, or never was, cannot be given up.
fn nothing_waits(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<CliError>() {
        Ok(error) if error.is(Code::TooLate) => {
            error.hint("no change waits; `homing scope` shows where the session is").into()
        }
        Ok(error) => error.into(),
        Err(error) => error,
    }
}

/// The log says whether it happened, or why it did not.
async fn until_settled(before: &Session, now: &Session, remote: &Remote) -> Result<()> {
    // What is so already is never asked.
    if !was_asked(before, now, remote).await? {
        return Ok(());
    }
    // What it does by itself, such as making a worktree, is soon over.
    if before.awake && before.pending > 0 {
        remote
            .screen
            .say("waits for the end of the turn; Ctrl-C leaves it waiting, `homing scope keep` gives it up");
    }
    until_changed(&before.id, before.number, remote).await
}

/// Until the scope has changed, or stays as it was.
pub(super) async fn until_changed(session: &str, after: u64, remote: &Remote) -> Result<()> {
    let mut facts = remote.client.follow(session, after);
    let mut notice = String::new();
    loop {
        let FollowItem::Fact(Fact { what, .. }) = facts.next().await.or_cli_error()? else { continue };
        match what {
            What::Rule(RuleFact::ScopeChanged { .. }) => return Ok(()),
            What::Rule(RuleFact::ScopeKept { why, .. }) if why == "asked" => {
                return Err(CliError::new(
                    Exit::Failed,
                    "somebody gave the change up; the scope stays as it was",
                )
                .hint("`homing scope` shows where the session is; ask again if it is still wanted")
                .into());
            }
            What::Rule(RuleFact::ScopeKept { .. }) => {
                return Err(CliError::new(Exit::Failed, format!("the scope stays as it was. {notice}"))
                    .hint("nothing was changed: mend that, then ask again")
                    .into());
            }
            What::Rule(RuleFact::Ended { .. }) => {
                return Err(CliError::new(
                    Exit::Failed,
                    "the session has ended before its scope could change",
                )
                .hint("nothing was changed: begin another session with `homing send --new`")
                .into());
            }
            What::Story(StoryFact { turn: 0, story, .. }) => notice = describe::story(&story),
            What::Story(_) | What::Rule(_) | What::Other(_) => {}
        }
    }
}

async fn was_asked(before: &Session, now: &Session, remote: &Remote) -> Result<bool> {
    let mut after = before.number;
    while after < now.number {
        let query = FactsQuery { after: Some(after), ..FactsQuery::default() };
        let page = remote.client.facts(&before.id, &query).await.or_cli_error()?;
        if page.items.is_empty() {
            break;
        }
        let asks = |fact: &Fact| matches!(fact.what, What::Rule(RuleFact::ChangeAsked { .. }));
        if page.items.iter().any(asks) {
            return Ok(true);
        }
        after = page.next;
    }
    Ok(false)
}

pub(super) fn choices(choices: &Choices, remote: &Remote) -> Result<Exit> {
    if remote.screen.json {
        remote.screen.object(choices)?;
        return Ok(Exit::Done);
    }
    let row = |choice: &api::Choice| vec![choice.name.clone(), choice.description.clone()];
    let rows: Vec<Vec<String>> = choices.items.iter().map(row).collect();
    remote.screen.table(&["NAME", "WHAT IT IS"], &rows)?;
    if !choices.known {
        remote.screen.say("the agent has not said it in this scope yet; it does when a turn starts");
    }
    Ok(Exit::Done)
}

fn files(files: &Files, remote: &Remote) -> Result<Exit> {
    if remote.screen.json {
        remote.screen.object(files)?;
        return Ok(Exit::Done);
    }
    for path in &files.items {
        remote.screen.line(path)?;
    }
    if files.more {
        remote.screen.say("there are more");
    }
    Ok(Exit::Done)
}

fn show(session: &Session, remote: &Remote) -> Result<Exit> {
    if remote.screen.json {
        remote.screen.object(session)?;
        return Ok(Exit::Done);
    }
    let own = "(its own)".to_owned();
    let mut rows = vec![
        vec!["session".to_owned(), session.id.clone()],
        vec!["directory".to_owned(), session.directory.clone()],
        vec!["agent".to_owned(), session.agent.clone()],
        vec!["model".to_owned(), session.model.clone().unwrap_or_else(|| own.clone())],
        vec!["mode".to_owned(), session.mode.clone().unwrap_or(own)],
        vec!["epoch".to_owned(), session.epoch.to_string()],
    ];
    if let Some(worktree) = &session.worktree {
        rows.push(vec!["worktree".to_owned(), format!("{} (from {})", worktree.name, worktree.home)]);
    }
    for row in rows {
        remote.screen.line(format!("{:<10} {}", row[0], row[1]))?;
    }
    Ok(Exit::Done)
}

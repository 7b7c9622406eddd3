//! `homing scope`: where and how a session acts, and what can be changed about it.

use anyhow::Result;
use api::client::Heard;
use api::{
    EnterWorktree, Fact, RuleFact, ScopeEnter, ScopeExit, ScopeRelink, ScopeRequest, ScopeSet, ScopeSetting,
    Session, What,
};
use std::time::Duration;

use crate::exit::{Exit, Trouble};
use crate::remote::{Remote, Told};
use crate::target::{path_text, session_or_here};
use crate::words;

/// The longest that a change is waited for; one that has to wait for a turn happens without us.
const CHANGE_WAIT: Duration = Duration::from_secs(120);

/// See where and how a session acts, or change it
///
/// A change happens between turns: while one runs, it waits for its end. What waits in the queue then was written for
/// another scope and is held; `homing queue release` says where it belongs.
#[derive(clap::Args)]
#[command(subcommand_precedence_over_arg = true)]
pub(crate) struct ScopeArgs {
    /// The session [default: this directory's]
    #[arg(long, short, global = true)]
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
        #[arg(long)]
        agent: Option<String>,
        #[arg(long)]
        model: Option<String>,
        #[arg(long)]
        mode: Option<String>,
    },
    /// Name the directory anew, because it has moved
    Relink { directory: String },
    /// Give up a change that has not begun
    Keep,
}

pub(crate) async fn scope(args: ScopeArgs, remote: &Remote) -> Result<Exit> {
    let session = session_or_here(args.session.as_deref(), remote).await?;
    let now = args.now;
    let request = match args.verb {
        None => return show(&remote.client.session(&session).await.told()?, remote),
        Some(ScopeVerb::Keep) => {
            return show(&remote.client.keep_scope(&session).await.told()?.into_inner(), remote);
        }
        Some(ScopeVerb::Enter { name, base, branch }) => {
            ScopeRequest::Enter(ScopeEnter { enter: EnterWorktree { name, base, branch }, now })
        }
        Some(ScopeVerb::Exit) => ScopeRequest::Exit(ScopeExit { exit: true, now }),
        Some(ScopeVerb::Set { agent: None, model: None, mode: None }) => {
            return Err(Trouble::new(Exit::Usage, "there is nothing to change")
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
    let before = remote.client.session(&session).await.told()?;
    remote.client.change_scope(&session, &request).await.told()?;
    match tokio::time::timeout(CHANGE_WAIT, until_settled(&before, remote)).await {
        Ok(settled) => settled?,
        Err(_) => {
            remote.screen.say("it waits for the turn under way; `homing log -f` tells when it happens");
            return Ok(Exit::Later);
        }
    }
    show(&remote.client.session(&session).await.told()?, remote)
}

/// Whether it happened, or why it did not, is in the log; a turn under way is not waited for.
async fn until_settled(before: &Session, remote: &Remote) -> Result<()> {
    let mut facts = remote.client.follow(&before.id, before.number);
    let mut notice = String::new();
    // What is so already is never asked.
    let now = remote.client.session(&before.id).await.told()?;
    if now.number == before.number {
        return Ok(());
    }
    loop {
        let Heard::Fact(Fact { what, .. }) = facts.next().await.told()? else { continue };
        match what {
            What::Rule(RuleFact::ScopeChanged { .. }) => return Ok(()),
            What::Rule(RuleFact::ScopeKept { .. }) => {
                return Err(Trouble::new(Exit::Failed, format!("the scope stays as it was. {notice}")).into());
            }
            What::Story(story) => notice = words::story(&story.story),
            What::Rule(_) | What::Other(_) => {}
        }
    }
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

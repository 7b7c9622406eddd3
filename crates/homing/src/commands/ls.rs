//! `homing ls`: sessions, the ones with the newest activity first.

use anyhow::Result;
use api::{LIMIT_MAX, Page, Session, SessionsQuery, Which};

use crate::exit::Exit;
use crate::remote::{OrCliError, Remote};
use crate::{describe, system, time};

/// List sessions, the ones with the newest activity first
#[derive(clap::Args)]
pub(crate) struct LsArgs {
    /// Ended and archived ones, too
    #[arg(long, short)]
    all: bool,
    /// Only those that have ended
    #[arg(long, conflicts_with = "all")]
    ended: bool,
    /// The most sessions to show
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

pub(crate) async fn ls(args: &LsArgs, remote: &Remote) -> Result<Exit> {
    let which = match (args.all, args.ended) {
        (true, _) => Which::All,
        (false, true) => Which::Ended,
        (false, false) => Which::Open,
    };
    let page = pages(remote, which, args.limit).await?;
    if remote.screen.json {
        remote.screen.object(&page)?;
        return Ok(Exit::Done);
    }
    if page.items.is_empty() {
        remote.screen.say("there are none; `homing send --follow \"hello\"` starts one");
        return Ok(Exit::Done);
    }
    let rows: Vec<Vec<String>> = page.items.iter().map(row).collect();
    remote.screen.table(&["SESSION", "STATE", "LAST", "AGENT", "DIRECTORY", "TITLE"], &rows)?;
    if page.next.is_some() {
        remote.screen.say(format!("there are more; `--limit {}` shows them", args.limit.saturating_mul(10)));
    }
    Ok(Exit::Done)
}

fn row(session: &Session) -> Vec<String> {
    vec![
        session.id.clone(),
        describe::doing(session),
        time::ago(session.touched_at, system::now()),
        agent(session),
        session.directory.clone(),
        session.title.clone().unwrap_or_default(),
    ]
}

/// The agent, with the model and mode that were chosen.
fn agent(session: &Session) -> String {
    let Session { agent, model, mode, .. } = session;
    let chosen: Vec<&str> = [model, mode].into_iter().flatten().map(String::as_str).collect();
    if chosen.is_empty() { agent.clone() } else { format!("{agent} ({})", chosen.join(", ")) }
}

/// As many pages as it takes, as one.
async fn pages(remote: &Remote, which: Which, limit: u32) -> Result<Page<Session>> {
    let mut all = Page { items: Vec::new(), next: None };
    let page_max = u32::try_from(LIMIT_MAX).unwrap_or(u32::MAX);
    loop {
        let left = limit - u32::try_from(all.items.len()).unwrap_or(limit);
        let query =
            SessionsQuery { which: Some(which), limit: Some(left.min(page_max)), cursor: all.next.take() };
        let page = remote.client.sessions(&query).await.or_cli_error()?;
        all.items.extend(page.items);
        all.next = page.next;
        if all.next.is_none() || all.items.len() >= limit as usize {
            return Ok(all);
        }
    }
}

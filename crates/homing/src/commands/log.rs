//! `homing log`: a session's facts, and what happens next.

use std::collections::BTreeMap;

use anyhow::Result;
use api::client::FollowItem;
use api::{Fact, FactsQuery, LIMIT_MAX, RuleFact, What};

use crate::exit::Exit;
use crate::remote::{OrCliError, Remote};
use crate::screen::{TextStyle, tame};
use crate::target::session_or_here;
use crate::{describe, time};

/// Print a session's facts
///
/// One line per fact: its number, when, and what happened. With `-f` it goes on with what happens next, over restarts of
/// the server, until Ctrl-C.
#[derive(clap::Args)]
pub(crate) struct LogArgs {
    /// The session [default: this directory's]
    session: Option<String>,
    /// Go on with what happens next
    #[arg(long, short)]
    follow: bool,
    /// Only facts with a higher number
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    after: u64,
    /// Only the last so many
    #[arg(long, short = 'n', value_name = "N", conflicts_with = "after")]
    last: Option<u64>,
}

pub(crate) async fn log(args: &LogArgs, remote: &Remote) -> Result<Exit> {
    let session = session_or_here(args.session.as_deref(), remote).await?;
    // Asked first, so that an unknown session is told as such.
    let number = remote.client.session(&session).await.or_cli_error()?.number;
    let after = args.last.map_or(args.after, |last| number.saturating_sub(last));
    if args.follow { follow(&session, after, remote).await } else { print(&session, after, remote).await }
}

async fn print(session: &str, mut after: u64, remote: &Remote) -> Result<Exit> {
    let mut names = HandleCache::default();
    let limit = u32::try_from(LIMIT_MAX).ok();
    loop {
        let page = remote
            .client
            .facts(session, &FactsQuery { after: Some(after), limit, readiness: None })
            .await
            .or_cli_error()?;
        if page.items.is_empty() {
            return Ok(Exit::Done);
        }
        for fact in &page.items {
            show(fact, &mut names, remote).await?;
        }
        after = page.next;
    }
}

async fn follow(session: &str, after: u64, remote: &Remote) -> Result<Exit> {
    let (mut facts, mut names) = (remote.client.follow(session, after), HandleCache::default());
    loop {
        // Live words come again as facts; a log has them once.
        if let FollowItem::Fact(fact) = facts.next().await.or_cli_error()? {
            show(&fact, &mut names, remote).await?;
        }
    }
}

/// The handles of people whose ids were met.
#[derive(Debug, Default)]
struct HandleCache(BTreeMap<String, String>);

impl HandleCache {
    /// The handle of somebody; the id if this credential may not know it.
    async fn of(&mut self, person: &str, remote: &Remote) -> String {
        if let Some(name) = self.0.get(person) {
            return name.clone();
        }
        let found = remote.client.person(person).await;
        let name = found.map_or_else(|_| person.to_owned(), |found| found.handle);
        self.0.insert(person.to_owned(), name.clone());
        name
    }
}

/// With whoever has said it by their name.
async fn named(fact: &Fact, names: &mut HandleCache, remote: &Remote) -> Fact {
    let mut fact = fact.clone();
    if let What::Rule(RuleFact::Queued { by, .. }) = &mut fact.what {
        *by = names.of(by, remote).await;
    }
    fact
}

async fn show(fact: &Fact, names: &mut HandleCache, remote: &Remote) -> Result<()> {
    let screen = remote.screen;
    if screen.json {
        return Ok(screen.object(fact)?);
    }
    let margin = format!("{:>5}  {}", fact.number, time::clock(fact.at));
    let words = tame(&describe::fact(&named(fact, names, remote).await));
    let mut lines = words.trim_end().lines();
    screen.line(format!("{}  {}", screen.out(TextStyle::Dim, &margin), lines.next().unwrap_or_default()))?;
    for line in lines {
        screen.line(format!("{:width$}  {line}", "", width = margin.len()))?;
    }
    Ok(())
}

//! `homing approve`: questions of agents, and answers to them.

use anyhow::Result;
use api::{Answer, Approval, FactsQuery, PageQuery, Story, What};

use crate::exit::Exit;
use crate::remote::{Remote, Told};
use crate::{time, world};

/// Facts at the end of a log among which a question's words are looked for.
const LAST_FACTS: u64 = 500;

/// List the questions of agents, or answer one
#[derive(clap::Args)]
pub(crate) struct ApproveArgs {
    #[command(subcommand)]
    verb: Option<ApproveVerb>,
}

#[derive(clap::Subcommand)]
enum ApproveVerb {
    /// Go ahead
    Yes { approval: String },
    /// Do not
    No { approval: String },
}

pub(crate) async fn approve(args: ApproveArgs, remote: &Remote) -> Result<Exit> {
    let (approval, answer) = match args.verb {
        None => return list(remote).await,
        Some(ApproveVerb::Yes { approval }) => (approval, Answer::Yes),
        Some(ApproveVerb::No { approval }) => (approval, Answer::No),
    };
    let approval = remote.client.answer(&approval, answer.clone()).await.told()?.into_inner();
    if remote.screen.json {
        remote.screen.object(&approval)?;
    } else {
        let answer = if answer == Answer::Yes { "yes" } else { "no" };
        remote.screen.line(format!("{} {answer}", approval.id))?;
    }
    Ok(Exit::Done)
}

async fn list(remote: &Remote) -> Result<Exit> {
    let page = remote.client.approvals(&PageQuery::default()).await.told()?;
    if remote.screen.json {
        remote.screen.object(&page)?;
        return Ok(Exit::Done);
    }
    if page.items.is_empty() {
        remote.screen.say("no agent asks anything");
        return Ok(Exit::Done);
    }
    let mut rows = Vec::new();
    for approval in &page.items {
        let asked = time::ago(approval.asked_at, world::now());
        rows.push(vec![
            approval.id.clone(),
            approval.session.clone(),
            asked,
            question(approval, remote).await?,
        ]);
    }
    remote.screen.table(&["QUESTION", "SESSION", "ASKED", "WORDS"], &rows)?;
    remote.screen.say("answer with `homing approve yes QUESTION`, or no");
    Ok(Exit::Done)
}

/// What is asked, which the log knows.
async fn question(approval: &Approval, remote: &Remote) -> Result<String> {
    let number = remote.client.session(&approval.session).await.told()?.number;
    let query = FactsQuery {
        after: Some(number.saturating_sub(LAST_FACTS)),
        limit: u32::try_from(LAST_FACTS).ok(),
        readiness: None,
    };
    let facts = remote.client.facts(&approval.session, &query).await.told()?;
    let words = facts.items.into_iter().find_map(|fact| match fact.what {
        What::Story(told) => match told.story {
            Story::Question { approval: asked, tool, detail } if asked == approval.id => {
                Some(format!("{tool}: {detail}"))
            }
            _ => None,
        },
        _ => None,
    });
    Ok(words.unwrap_or_default())
}

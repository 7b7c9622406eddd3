//! `homing audit`: who did what, and whether the record of it still holds.

use anyhow::Result;
use api::{At, AuditQuery, Entry, LIMIT_MAX, Page};

use crate::exit::{CliError, Exit};
use crate::names::{self, SessionOrMessage};
use crate::people_lookup::person_id;
use crate::remote::{OrCliError, Remote};
use crate::{system, time};

/// Show who did what, newest first, or verify that nobody has changed the record
#[derive(clap::Args)]
pub(crate) struct AuditArgs {
    /// Go through the whole chain of seals, and name the first entry that is not as it was sealed
    #[arg(long, conflicts_with_all = ["since", "until", "who", "what", "subject", "jsonl"])]
    verify: bool,
    /// Not before: a duration ago such as 2h or 7d, a day, or a moment
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Before: a duration ago, a day, or a moment
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// The person who did it
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// The wish: a word as the list shows it
    #[arg(long, value_name = "WORD")]
    what: Option<String>,
    /// The subject: an id, a name, or @LINE of the last list
    #[arg(long, value_name = "ID")]
    subject: Option<String>,
    /// Every entry, one JSON object per line
    #[arg(long, conflicts_with = "limit")]
    jsonl: bool,
    /// The most entries to show
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

pub(crate) async fn audit(args: AuditArgs, remote: &Remote) -> Result<Exit> {
    if args.verify {
        return verify(remote).await;
    }
    let who = match &args.who {
        Some(name) => Some(person_id(name, remote).await?),
        None => None,
    };
    let subject = match args.subject.as_deref() {
        Some(line) if line == "-" || line.starts_with('@') => Some(subject(line, remote).await?),
        _ => args.subject,
    };
    let query = AuditQuery {
        since: moment(args.since.as_deref())?,
        until: moment(args.until.as_deref())?,
        who,
        what: args.what,
        subject,
        limit: None,
        cursor: None,
    };
    if args.jsonl {
        let mut export = remote.client.export_audit(&query).await.or_cli_error()?;
        while let Some(entry) = export.next().await.or_cli_error()? {
            remote.screen.object(&entry)?;
        }
        return Ok(Exit::Done);
    }
    let page = pages(query, args.limit, remote).await?;
    if remote.screen.json {
        remote.screen.object(&page)?;
        return Ok(Exit::Done);
    }
    let rows: Vec<Vec<String>> = page.items.iter().map(|entry| row(entry, remote)).collect();
    remote.screen.table(&["WHEN", "WHO", "WHAT", "ABOUT", "RESULT", "DOOR", "ADDRESS"], &rows)?;
    if page.next.is_some() {
        remote.screen.say(format!("there are more; `--limit {}` shows them", args.limit.saturating_mul(10)));
    }
    Ok(Exit::Done)
}

/// The session or the message that a line of the last list names, or the session that this directory had before. Whatever else is typed
/// may be the name of anything.
async fn subject(line: &str, remote: &Remote) -> Result<String> {
    Ok(match names::session_or_message(line, remote).await? {
        SessionOrMessage::Session(id) | SessionOrMessage::Message(id) => id,
    })
}

fn row(entry: &Entry, remote: &Remote) -> Vec<String> {
    let named = |who: api::Who| match who.handle {
        Some(handle) => handle,
        // Homing itself, where it acts without being asked.
        None if who.id == kernel::PersonId::ENGINE.to_string() => "(homing)".to_owned(),
        None => who.id,
    };
    let who = entry.by.clone().map_or("nobody".to_owned(), named);
    let about = [&entry.session, &entry.subject].into_iter().flatten().cloned().collect::<Vec<_>>();
    vec![
        time::full(entry.at),
        who,
        entry.what.clone(),
        names::printed(&about.join(" "), remote),
        entry.refused.clone().unwrap_or_else(|| "done".to_owned()),
        entry.door.clone(),
        entry.address.clone().unwrap_or_default(),
    ]
}

async fn pages(mut query: AuditQuery, limit: u32, remote: &Remote) -> Result<Page<Entry>> {
    let mut all = Page { items: Vec::new(), next: None };
    let page_max = u32::try_from(LIMIT_MAX).unwrap_or(u32::MAX);
    loop {
        let left = limit - u32::try_from(all.items.len()).unwrap_or(limit);
        (query.limit, query.cursor) = (Some(left.min(page_max)), all.next.take());
        let page = remote.client.audit(&query).await.or_cli_error()?;
        all.items.extend(page.items);
        all.next = page.next;
        if all.next.is_none() || all.items.len() >= limit as usize {
            return Ok(all);
        }
    }
}

async fn verify(remote: &Remote) -> Result<Exit> {
    let verified = remote.client.verify_audit().await.or_cli_error()?;
    if remote.screen.json {
        remote.screen.object(&verified)?;
    } else if let Some(broken) = &verified.broken {
        let entry = broken.entry.map(|entry| format!(" (entry {entry})")).unwrap_or_default();
        remote.screen.line(format!("broken at number {}{entry}: {}", broken.number, broken.why))?;
    } else {
        let (number, seal) = (verified.head.number, &verified.head.seal);
        remote
            .screen
            .line(format!("the chain holds: {} entries, the last is number {number}", verified.entries))?;
        remote
            .screen
            .say(format!("its seal is {seal}: keep it elsewhere, and nobody can cut the chain unseen"));
    }
    Ok(if verified.ok { Exit::Done } else { Exit::Failed })
}

fn moment(text: Option<&str>) -> Result<Option<At>> {
    let Some(text) = text else { return Ok(None) };
    let at = time::earlier(text, system::now()).ok_or_else(|| {
        CliError::new(Exit::Usage, format!("{text:?} is not a time"))
            .hint("write 2h, 7d, 2026-12-24, or 2026-12-24T18:00:00Z")
    })?;
    Ok(Some(at))
}

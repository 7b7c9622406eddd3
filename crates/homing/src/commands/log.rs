//! `homing log`: a session's facts, and what happens next.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;
use api::client::FollowItem;
use api::{Fact, FactsQuery, LIMIT_MAX, MessageQuery, RuleFact, Story, StoryFact, What};

use crate::completion::Completes;
use crate::exit::Exit;
use crate::remote::{OrCliError, Remote};
use crate::screen::{TextStyle, tame};
use crate::target::session_or_here;
use crate::transcript::Transcript;
use crate::{describe, names, time};

/// Print a session's facts
///
/// One line per fact: its number, when, and what happened; what people said with their words. `--talk` prints the conversation
/// alone, to be read. With `-f` it goes on with what happens next, over restarts of
/// the server, until Ctrl-C.
#[derive(clap::Args)]
pub(crate) struct LogArgs {
    /// The session [default: this directory's]
    #[arg(add = Completes::Sessions)]
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
    /// The conversation alone: who said what and when, with each tool on one line
    #[arg(long, conflicts_with_all = ["follow", "after", "last"])]
    talk: bool,
}

pub(crate) async fn log(args: &LogArgs, remote: &Remote) -> Result<Exit> {
    let session = session_or_here(args.session.as_deref(), remote).await?;
    if args.talk {
        return talk(&session, remote).await;
    }
    // Asked first, so that an unknown session is told as such.
    let number = remote.client.session(&session).await.or_cli_error()?.number;
    let after = args.last.map_or(args.after, |last| number.saturating_sub(last));
    if args.follow { follow(&session, after, remote).await } else { print(&session, after, remote).await }
}

/// The turns that are over, then what runs or waits.
async fn talk(session: &str, remote: &Remote) -> Result<Exit> {
    let export = remote.client.export(session).await.or_cli_error()?;
    if remote.screen.json {
        return Ok(std::io::stdout().lock().write_all(&export).map(|()| Exit::Done)?);
    }
    let transcript = Transcript::read(&export)?;
    transcript.show(remote.screen)?;
    let queue = remote.client.queue(session).await.or_cli_error()?.items;
    for item in &queue {
        let who = item.said_by.as_ref().and_then(|who| who.handle.as_deref()).unwrap_or(&item.by);
        let when = format!("{} ({})", time::full(item.accepted_at), describe::queued(item));
        let (who, when) = (tame(who), remote.screen.out(TextStyle::Dim, &when).into_owned());
        remote.screen.line(format!("{}  {when}", remote.screen.out(TextStyle::Bold, &who)))?;
        let words = describe::with_attached(item.text.trim_end(), &item.attachments);
        let said: String = tame(&words).lines().map(|line| format!("  {line}\n")).collect();
        remote.screen.line(said)?;
    }
    if transcript.turns.is_empty() && queue.is_empty() {
        remote.screen.say("nothing was said in this session yet");
    }
    Ok(Exit::Done)
}

async fn print(session: &str, mut after: u64, remote: &Remote) -> Result<Exit> {
    let mut reader = LogReader::default();
    let limit = u32::try_from(LIMIT_MAX).ok();
    loop {
        let page = remote
            .client
            .facts(session, &FactsQuery { after: Some(after), limit, ..FactsQuery::default() })
            .await
            .or_cli_error()?;
        if page.items.is_empty() {
            return Ok(Exit::Done);
        }
        for fact in &page.items {
            show(fact, &mut reader, remote).await?;
        }
        reader.remember(remote);
        after = page.next;
    }
}

async fn follow(session: &str, after: u64, remote: &Remote) -> Result<Exit> {
    let (mut facts, mut reader) = (remote.client.follow(session, after), LogReader::default());
    loop {
        match facts.next().await.or_cli_error()? {
            FollowItem::Fact(fact) => {
                show(&fact, &mut reader, remote).await?;
                reader.remember(remote);
            }
            FollowItem::Away { reason } => remote.screen.say(tame(&describe::away(&reason))),
            FollowItem::Back => remote.screen.say(describe::BACK),
            // Live words come again as facts; a log has them once.
            FollowItem::Live(_) | FollowItem::Progress(_) => {}
        }
    }
}

/// The names that were met in a log.
#[derive(Debug, Default)]
struct LogReader {
    /// The handles of people.
    handles: BTreeMap<String, String>,
    /// Messages and questions that this terminal was shown by short ids.
    met: Vec<String>,
}

impl LogReader {
    /// The handle of somebody; the id if this credential may not know it.
    async fn of(&mut self, person: &str, remote: &Remote) -> String {
        if let Some(name) = self.handles.get(person) {
            return name.clone();
        }
        let found = remote.client.person(person).await;
        let name = found.map_or_else(|_| person.to_owned(), |found| found.handle);
        self.handles.insert(person.to_owned(), name.clone());
        name
    }

    /// Words of ours; whoever reads them on a terminal gets short ids.
    fn short(&mut self, words: &str, remote: &Remote) -> String {
        if !remote.screen.out_is_terminal {
            return words.to_owned();
        }
        self.met.extend(names::ids_in(words).map(str::to_owned));
        names::with_short_ids(words)
    }

    /// Lets this terminal name what it was shown.
    fn remember(&mut self, remote: &Remote) {
        names::met(std::mem::take(&mut self.met), remote);
    }
}

/// A fact in words; of a message, who said it and what.
async fn told(fact: &Fact, reader: &mut LogReader, remote: &Remote) -> Result<String> {
    let What::Rule(RuleFact::Queued { message, by, .. }) = &fact.what else {
        // What an agent says stays as it is.
        return Ok(match &fact.what {
            What::Rule(_) => reader.short(&describe::fact(fact), remote),
            What::Story(StoryFact { story: Story::Question { approval, .. }, .. }) => {
                describe::fact(fact).replace(approval, &reader.short(approval, remote))
            }
            What::Story(_) | What::Other(_) => describe::fact(fact),
        });
    };
    let query = MessageQuery { words: Some(true), wait: None };
    let receipt = remote.client.receipt(message, &query).await.or_cli_error()?;
    let said = receipt.text.unwrap_or_default();
    let said = describe::with_attached(said.trim_end(), &receipt.attachments);
    let said = if said.is_empty() { "(forgotten)".to_owned() } else { said };
    let message = reader.short(message, remote);
    Ok(format!("{} says: {said}  ({message})", reader.of(by, remote).await))
}

async fn show(fact: &Fact, reader: &mut LogReader, remote: &Remote) -> Result<()> {
    let screen = remote.screen;
    if screen.json {
        return Ok(screen.object(fact)?);
    }
    let margin = format!("{:>5}  {}", fact.number, time::clock(fact.at));
    let words = tame(&told(fact, reader, remote).await?);
    let mut lines = words.trim_end().lines();
    let (width, first) = (margin.len() + 2, lines.next().unwrap_or_default());
    screen.hanging(width, &format!("{}  {first}", screen.out(TextStyle::Dim, &margin)))?;
    for line in lines {
        screen.hanging(width, &format!("{:width$}{line}", ""))?;
    }
    Ok(())
}

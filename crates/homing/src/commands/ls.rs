//! `homing ls`: sessions, the ones with the newest activity first.

use anyhow::Result;
use api::{Doing, LIMIT_MAX, Page, Session, SessionsQuery, Which};

use crate::completion::Completes;
use crate::exit::Exit;
use crate::names::{self, Kind};
use crate::remote::{OrCliError, Remote};
use crate::table::{self, Column};
use crate::target::path_text;
use crate::{describe, here, system, time};

/// List sessions, the ones with the newest activity first
///
/// On a terminal, ids are short, and `@1` is the session of the first line, in any other command. A pipe gets whole ids.
#[derive(clap::Args)]
pub(crate) struct LsArgs {
    /// Ended and archived ones, too
    #[arg(long, short)]
    all: bool,
    /// Only those that have ended
    #[arg(long, conflicts_with = "all")]
    ended: bool,
    /// Only those of this agent
    #[arg(long, add = Completes::Agents)]
    agent: Option<String>,
    /// Only those that work in this directory or below it
    #[arg(long, short, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    directory: Option<String>,
    /// Only those that do this
    #[arg(long, value_enum, conflicts_with = "ended")]
    state: Option<StateArg>,
    /// Only those with these words in their title
    #[arg(long, short, value_name = "WORDS")]
    text: Option<String>,
    /// The most sessions to show
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

/// The work of a session, as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum StateArg {
    /// A turn is under way
    Running,
    /// Messages wait, and no turn is under way
    Waiting,
    /// Neither
    Dormant,
    /// It is over
    Ended,
}

impl LsArgs {
    fn query(&self, remote: &Remote) -> Result<SessionsQuery> {
        let which = match (self.all, self.ended || self.state == Some(StateArg::Ended)) {
            (_, true) => Which::Ended,
            (true, false) => Which::All,
            (false, false) => Which::Open,
        };
        let doing = self.state.and_then(|state| match state {
            StateArg::Running => Some(Doing::Running),
            StateArg::Waiting => Some(Doing::Waiting),
            StateArg::Dormant => Some(Doing::Dormant),
            StateArg::Ended => None,
        });
        let directory = match &self.directory {
            // A server elsewhere knows its own directories.
            Some(named) if remote.is_elsewhere => Some(named.clone()),
            Some(named) => {
                let path = std::path::absolute(named)?;
                Some(path_text(&std::fs::canonicalize(&path).unwrap_or(path))?)
            }
            None => None,
        };
        let (agent, text) = (self.agent.clone(), self.text.clone());
        Ok(SessionsQuery { which: Some(which), agent, directory, doing, text, ..SessionsQuery::default() })
    }

    fn is_narrowed(&self) -> bool {
        let Self { agent, directory, state, text, .. } = self;
        [agent, directory, text].into_iter().any(Option::is_some) || state.is_some()
    }
}

const COLUMNS: [Column; 7] = [
    Column::new("").goes(7),
    Column::new("SESSION"),
    Column::new("STATE").goes(6),
    Column::new("LAST").goes(3),
    Column::new("AGENT").right(8).goes(2),
    Column::new("DIRECTORY").left(14).goes(4),
    Column::new("TITLE").right(14),
];

pub(crate) async fn ls(args: &LsArgs, remote: &Remote) -> Result<Exit> {
    let page = pages(remote, args.query(remote)?, args.limit).await?;
    if remote.screen.json {
        remote.screen.object(&page)?;
        return Ok(Exit::Done);
    }
    if page.items.is_empty() {
        remote.screen.say(match args.is_narrowed() {
            true => "none is like that; `homing ls --all` lists all there are",
            false => "there are none; `homing send --follow \"hello\"` starts one",
        });
        return Ok(Exit::Done);
    }
    let ids = page.items.iter().map(|session| session.id.clone()).collect::<Vec<_>>();
    let shown = names::shown(Kind::Session, &ids, remote);
    let rows: Vec<Vec<String>> =
        page.items.iter().zip(&shown).map(|(session, (mark, id))| row(session, mark, id, remote)).collect();
    table::print(remote.screen, &COLUMNS, &rows)?;
    let waits = page.items.iter().zip(&shown).filter_map(|(session, (_, id))| {
        let waits = session.waiting.as_ref().map(describe::waits);
        Some(format!(
            "{id} {}",
            waits.or_else(|| describe::held(session).map(|held| format!("waits: {held}")))?
        ))
    });
    let waits = waits.collect::<Vec<_>>().join("\n");
    if !waits.is_empty() {
        remote.screen.say(names::printed(&waits, remote));
    }
    if page.next.is_some() {
        remote.screen.say(format!("there are more; `--limit {}` shows them", args.limit.saturating_mul(10)));
    }
    Ok(Exit::Done)
}

fn row(session: &Session, mark: &str, id: &str, remote: &Remote) -> Vec<String> {
    let whole = || session.directory.clone();
    let directory =
        if remote.screen.out_is_terminal { here::with_tilde(&session.directory) } else { whole() };
    vec![
        mark.to_owned(),
        id.to_owned(),
        describe::doing(session),
        time::ago(session.touched_at, system::now()),
        agent(session),
        directory,
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
async fn pages(remote: &Remote, query: SessionsQuery, limit: u32) -> Result<Page<Session>> {
    let mut all = Page { items: Vec::new(), next: None };
    let page_max = u32::try_from(LIMIT_MAX).unwrap_or(u32::MAX);
    loop {
        let left = limit - u32::try_from(all.items.len()).unwrap_or(limit);
        let query =
            SessionsQuery { limit: Some(left.min(page_max)), cursor: all.next.take(), ..query.clone() };
        let page = remote.client.sessions(&query).await.or_cli_error()?;
        all.items.extend(page.items);
        all.next = page.next;
        if all.next.is_none() || all.items.len() >= limit as usize {
            return Ok(all);
        }
    }
}

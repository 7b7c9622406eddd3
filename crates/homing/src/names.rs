//! Names that people type, and what they mean: a whole id, a line of the last list (`@1`), a piece of an id, a title, or `-`.
//!
//! A name means one thing or nothing: if several go by it, they are named and nothing is done. Whole ids go to the server as they
//! are; what is resolved here is looked up among what the caller may see.

use anyhow::Result;
use api::{Explained, PageQuery, RouteQuery, Session, SessionsQuery, Worktrees, WorktreesQuery};
use kernel::{ApprovalId, MessageId, SessionId};
use serde::{Deserialize, Serialize};
use store::TypedName;

use crate::exit::{CliError, Exit};
use crate::here::Here;
use crate::remote::{OrCliError, Remote};
use crate::screen::{cut, tame_name};
use crate::terminal_lists::TerminalLists;

/// The fewest digits of an id that a list shows.
const SHORT_MIN: usize = 6;
/// Candidates that are named when a name is not clear.
const CANDIDATES_MAX: usize = 8;
/// The length of a candidate's title.
const TITLE_SHOWN: usize = 40;

/// A kind of thing that lists show and names mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Session,
    Message,
    Approval,
    Worktree,
}

impl Kind {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Session => ("session", "`homing ls`"),
            Self::Message => ("message", "`homing queue`"),
            Self::Approval => ("question", "`homing approve`"),
            Self::Worktree => ("worktree", "`homing worktree ls`"),
        }
    }
}

/// A session or a message, for the commands that take either.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionOrMessage {
    Session(String),
    Message(String),
}

/// The session that is meant.
pub(crate) async fn session(typed: &str, remote: &Remote) -> Result<String> {
    match typed {
        whole if whole.parse::<SessionId>().is_ok() => Ok(whole.to_owned()),
        "-" => session_before(remote).await,
        line if line.starts_with('@') => at(line, &[Kind::Session], remote).map(|(_, id)| id),
        name => match &sessions(name, remote).await?[..] {
            [one] => Ok(one.id.clone()),
            [] => Err(unknown(Kind::Session, name)),
            several => Err(unclear(Kind::Session, name, several.iter().map(candidate))),
        },
    }
}

/// The message that is meant: by its whole id, or among those that wait or run in this directory's session and those that this
/// terminal was shown.
pub(crate) async fn message(typed: &str, remote: &Remote) -> Result<String> {
    match typed {
        whole if whole.parse::<MessageId>().is_ok() => Ok(whole.to_owned()),
        line if line.starts_with('@') => at(line, &[Kind::Message], remote).map(|(_, id)| id),
        name => one_of(Kind::Message, name, messages(name, remote).await?),
    }
}

/// The session or the message that is meant.
pub(crate) async fn session_or_message(typed: &str, remote: &Remote) -> Result<SessionOrMessage> {
    if typed.starts_with('@') {
        return Ok(match at(typed, &[Kind::Session, Kind::Message], remote)? {
            (Kind::Message, id) => SessionOrMessage::Message(id),
            (_, id) => SessionOrMessage::Session(id),
        });
    }
    let is_whole = typed.parse::<SessionId>().is_ok() || typed == "-";
    if typed.starts_with("msg_") {
        return message(typed, remote).await.map(SessionOrMessage::Message);
    }
    if is_whole || typed.starts_with("ses_") {
        return session(typed, remote).await.map(SessionOrMessage::Session);
    }
    let (sessions, messages) = (sessions(typed, remote).await?, messages(typed, remote).await?);
    match (&sessions[..], &messages[..]) {
        ([one], []) => Ok(SessionOrMessage::Session(one.id.clone())),
        ([], [one]) => Ok(SessionOrMessage::Message(one.clone())),
        ([], []) => Err(unknown(Kind::Session, typed)),
        (several, more) => {
            let all = several.iter().map(candidate).chain(more.iter().cloned());
            Err(unclear(Kind::Session, typed, all))
        }
    }
}

/// The question that is meant: by its whole id, or among the open ones.
pub(crate) async fn approval(typed: &str, remote: &Remote) -> Result<String> {
    match typed {
        whole if whole.parse::<ApprovalId>().is_ok() => Ok(whole.to_owned()),
        line if line.starts_with('@') => at(line, &[Kind::Approval], remote).map(|(_, id)| id),
        name => {
            let open = remote.client.approvals(&PageQuery::default()).await.or_cli_error()?;
            let typed = TypedName::new(ApprovalId::PREFIX, name);
            let fits = open.items.into_iter().map(|asked| asked.id).filter(|id| typed.is_of(id));
            one_of(Kind::Approval, name, fits.collect())
        }
    }
}

/// The worktree that is meant, and its session: by its name, by how it begins if only one does so, or as a line of the last list.
pub(crate) async fn worktree(
    session: Option<String>,
    typed: &str,
    remote: &Remote,
) -> Result<(String, String)> {
    let owned = |(session, name): (&str, &str)| (session.to_owned(), name.to_owned());
    if typed.starts_with('@') {
        let (_, line) = at(typed, &[Kind::Worktree], remote)?;
        return line.split_once('/').map(owned).ok_or_else(|| unknown(Kind::Worktree, typed));
    }
    let known = remote.client.worktrees(&WorktreesQuery { session: session.clone() }).await.or_cli_error()?;
    let all = trees(&known);
    let named: Vec<_> = all.iter().filter(|(_, name)| *name == typed).collect();
    let named = if named.is_empty() {
        all.iter().filter(|(_, name)| name.starts_with(typed)).collect()
    } else {
        named
    };
    match (named[..].len(), session) {
        (1, _) => Ok(owned(*named[0])),
        // The server knows better than a list that may be cut.
        (0, Some(session)) => Ok((session, typed.to_owned())),
        (0, None) => Err(unknown(Kind::Worktree, typed)),
        _ => Err(unclear(
            Kind::Worktree,
            typed,
            named.iter().map(|(session, name)| format!("{name}  of {session}")),
        )),
    }
}

/// Each worktree once, with its session: those that are there, then those that can be had back.
pub(crate) fn trees(known: &Worktrees) -> Vec<(&str, &str)> {
    let here = known.items.iter().map(|tree| (tree.session.as_str(), tree.name.as_str()));
    let gone = known.removed.iter().map(|tree| (tree.session.as_str(), tree.name.as_str()));
    let mut all = Vec::new();
    for tree in here.chain(gone) {
        if !all.contains(&tree) {
            all.push(tree);
        }
    }
    all
}

/// The mark and the name that a list shows for each of these: on a terminal `@1` and a short id, else the whole id.
pub(crate) fn shown(kind: Kind, ids: &[String], remote: &Remote) -> Vec<(String, String)> {
    if !remote.screen.out_is_terminal {
        return ids.iter().map(|id| (String::new(), id.clone())).collect();
    }
    let is_kept = TerminalLists::keep(&remote.url, kind, ids);
    let mark = |at: usize| if is_kept { format!("@{}", at + 1) } else { String::new() };
    let name = |id: &String| if kind == Kind::Worktree { id.clone() } else { short(id, ids) };
    ids.iter().enumerate().map(|(at, id)| (mark(at), name(id))).collect()
}

/// An id as it is shown alone: short on a terminal.
pub(crate) fn shown_id(id: &str, remote: &Remote) -> String {
    if remote.screen.out_is_terminal { short_id(id) } else { id.to_owned() }
}

/// An id as somebody reads it.
pub(crate) fn short_id(id: &str) -> String {
    short(id, &[])
}

/// Words in which whole ids are short ones, for whoever reads them on a terminal.
pub(crate) fn with_short_ids(words: &str) -> String {
    let is_of_id = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let word = |word: &str| {
        let digits = word.trim_end_matches(|c| !is_of_id(c));
        let is_id = digits.parse::<SessionId>().is_ok() || digits.parse::<MessageId>().is_ok();
        if is_id { format!("{}{}", short_id(digits), &word[digits.len()..]) } else { word.to_owned() }
    };
    words.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// The end of an id that no other of these has, and that is no number: where turns stand, a number is one. Ids are made in the
/// order of time: their beginnings are alike.
pub(crate) fn short(id: &str, others: &[String]) -> String {
    let bare = id.split_once('_').map_or(id, |(_, bare)| bare);
    let is_unique = |end: &str| others.iter().all(|other| other == id || !other.ends_with(end));
    let ends = (SHORT_MIN..bare.len()).map(|length| &bare[bare.len() - length..]);
    let is_number = |end: &str| end.bytes().all(|c| c.is_ascii_digit());
    ends.into_iter().find(|end| is_unique(end) && !is_number(end)).unwrap_or(bare).to_owned()
}

/// The route of a message to the conversation of this directory.
async fn explained(here: Here, remote: &Remote) -> Result<Explained> {
    let query = RouteQuery { conversation: Some(here.address), ..RouteQuery::default() };
    remote.client.explain(&query).await.or_cli_error()
}

/// The open session of this directory, if it has one.
pub(crate) async fn session_here(remote: &Remote) -> Result<Option<String>> {
    let here = Here::find(remote).await?;
    if here.worktree_of.is_some() {
        return Ok(here.worktree_of);
    }
    Ok(match explained(here, remote).await? {
        Explained::Existing { session, .. } => Some(session.id),
        Explained::New { .. } | Explained::Refused { .. } => None,
    })
}

/// The session that this directory's conversation had before the one that it has.
async fn session_before(remote: &Remote) -> Result<String> {
    let before = match explained(Here::find(remote).await?, remote).await? {
        Explained::Existing { before, .. } => before,
        Explained::New { previous, .. } => previous,
        Explained::Refused { .. } => None,
    };
    before.map(|before| before.session).ok_or_else(|| {
        CliError::new(Exit::NotFound, "- is the session that this directory had before, and it had none")
            .hint("`homing ls --all --directory .` lists those that work here")
            .into()
    })
}

async fn sessions(name: &str, remote: &Remote) -> Result<Vec<Session>> {
    let query = SessionsQuery { name: Some(name.to_owned()), ..SessionsQuery::default() };
    Ok(remote.client.sessions(&query).await.or_cli_error()?.items)
}

async fn messages(name: &str, remote: &Remote) -> Result<Vec<String>> {
    let typed = TypedName::new(MessageId::PREFIX, name);
    let mut ids = Vec::new();
    // A directory that has no conversation, or none of theirs, has no messages.
    if let Ok(Some(session)) = session_here(remote).await {
        let queue = remote.client.queue(&session).await.or_cli_error()?;
        ids.extend(queue.items.into_iter().map(|item| item.id));
    }
    let lists = TerminalLists::read(&remote.url);
    ids.extend(lists.iter().flat_map(|lists| lists.lines(Kind::Message)).cloned());
    ids.retain(|id| typed.is_of(id));
    ids.sort();
    ids.dedup();
    Ok(ids)
}

/// The thing on a line of the last list of one of these kinds.
fn at(line: &str, kinds: &[Kind], remote: &Remote) -> Result<(Kind, String)> {
    let (what, list) = kinds[0].words();
    let refused = |why: String| CliError::new(Exit::Usage, why).hint(format!("{list} numbers its lines"));
    let Some(number) = line[1..].parse::<usize>().ok().filter(|number| *number > 0) else {
        return Err(refused(format!("{line} is no line of a list: it is @ and a number from 1 on")).into());
    };
    let lists = TerminalLists::read(&remote.url).ok_or_else(|| {
        refused(format!("{line} is a line of a terminal's last list, and this is no terminal"))
    })?;
    let kind = lists
        .last_of(kinds)
        .ok_or_else(|| refused(format!("{line}: no {what} was listed in this terminal yet")))?;
    let (what, list) = kind.words();
    let lines = lists.lines(kind);
    let found = lines.get(number - 1).cloned().ok_or_else(|| {
        let count = match lines.len() {
            1 => "1 line".to_owned(),
            count => format!("{count} lines"),
        };
        let why = format!("{line}: the last list of {list} in this terminal has {count}");
        CliError::new(Exit::NotFound, why).hint(format!("{list} lists every {what} anew"))
    });
    Ok((kind, found?))
}

fn one_of(kind: Kind, name: &str, fits: Vec<String>) -> Result<String> {
    match &fits[..] {
        [one] => Ok(one.clone()),
        [] => Err(unknown(kind, name)),
        several => Err(unclear(kind, name, several.iter().cloned())),
    }
}

fn candidate(session: &Session) -> String {
    let title = session.title.as_deref().map(|title| format!("  {:?}", cut(title, TITLE_SHOWN)));
    format!("{}{}  in {}", session.id, title.unwrap_or_default(), tame_name(&session.directory))
}

fn unknown(kind: Kind, name: &str) -> anyhow::Error {
    let (what, list) = kind.words();
    let name = tame_name(name);
    let hint = match kind {
        Kind::Session if name.len() < store::NAME_DIGITS_MIN => {
            format!("a piece of an id has at least {} characters; {list} lists sessions", store::NAME_DIGITS_MIN)
        }
        Kind::Session => "`homing ls --all` lists sessions; a session is named by its id, the beginning or end of it, @LINE of the last list, - or a title that somebody gave it".to_owned(),
        Kind::Message => format!("{list} lists what waits; a message that is over is named by its whole id (msg_…)"),
        Kind::Approval => format!("{list} lists the open ones; one that is settled is named by its whole id (apr_…)"),
        Kind::Worktree => format!("{list} lists them"),
    };
    CliError::new(Exit::NotFound, format!("no {what} goes by the name {name:?}")).hint(hint).into()
}

fn unclear(kind: Kind, name: &str, candidates: impl Iterator<Item = String>) -> anyhow::Error {
    let (what, _) = kind.words();
    let mut named: Vec<String> = candidates.take(CANDIDATES_MAX + 1).collect();
    let more = named.len() > CANDIDATES_MAX;
    named.truncate(CANDIDATES_MAX);
    let lines: String = named.iter().map(|line| format!("\n  {line}")).collect();
    let more = if more { "\n  and others" } else { "" };
    let what = format!("{:?} could be more than one {what}:{lines}{more}", tame_name(name));
    CliError::new(Exit::Usage, what).hint("nothing was done; type more of the id, or the whole one").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_reads_gets_short_ids() {
        let words = "behind msg_01kaaaaaaaaaaaaaaaaabcdefg; msg_1 is none, ses_01kaaaaaaaaaaaaaaaaa222222";
        assert_eq!(with_short_ids(words), "behind bcdefg; msg_1 is none, a222222");
    }

    #[test]
    fn a_short_id_is_the_end_that_no_other_has() {
        let ids = [
            "ses_01kaaaaaaaaaaaaaaaaabcdefg",
            "ses_01kaaaaaaaaaaaaaaaazbcdefg",
            "ses_01kaaaaaaaaaaaaaaaaa222222",
        ]
        .map(str::to_owned);
        assert_eq!(short(&ids[2], &ids), "a222222", "a number would be a turn");
        assert_eq!(short(&ids[0], &ids), "abcdefg");
        assert_eq!(short(&ids[1], &ids), "zbcdefg");
        assert_eq!(short(&ids[0], &[]), "bcdefg");
    }
}

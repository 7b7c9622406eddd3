//! Names that people type, and what they mean: a whole id, a line of the last list (`@1`), a piece of an id, a title, or `-`.
//!
//! A name means one thing or nothing: if several go by it, they are named and nothing is done. Whole ids go to the server as they
//! are; what is resolved here is looked up among what the caller may see.

use anyhow::Result;
use api::{
    ApprovalsQuery, Explained, FactsQuery, LIMIT_MAX, Offer, RouteQuery, RuleFact, Session, SessionsQuery,
    What, Worktrees, WorktreesQuery,
};
use kernel::{ApprovalId, MessageId, RuleId, SessionId};
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
/// Pages of a log that are searched for a message or a question that is over: some turns at the least, and an answer at once.
const LOGGED_PAGES_MAX: usize = 8;
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
    /// A session that is offered to somebody.
    Offer,
    /// A rule for questions.
    Rule,
}

impl Kind {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Session => ("session", "`homing ls`"),
            Self::Message => ("message", "`homing queue`"),
            Self::Approval => ("question", "`homing approve`"),
            Self::Worktree => ("worktree", "`homing worktree ls`"),
            Self::Offer => ("offered session", "`homing grant offers`"),
            Self::Rule => ("rule", "`homing approve rules`"),
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
            several => Err(unclear(Kind::Session, name, candidates(several, remote).into_iter())),
        },
    }
}

/// The session that is meant, among those that are offered: whoever it is offered to may not see it otherwise.
pub(crate) async fn offer(typed: &str, remote: &Remote) -> Result<String> {
    match typed {
        whole if whole.parse::<SessionId>().is_ok() => Ok(whole.to_owned()),
        line if line.starts_with('@') => at(line, &[Kind::Offer], remote).map(|(_, id)| id),
        name => {
            let offers = remote.client.offers().await.or_cli_error()?.items;
            let typed = TypedName::new(SessionId::PREFIX, name);
            let goes_by = |offer: &Offer| typed.is_of(&offer.session) || offer.title.as_deref() == Some(name);
            let fits = offers.into_iter().filter(goes_by).map(|offer| offer.session);
            one_of(Kind::Offer, name, fits.collect(), remote)
        }
    }
}

/// The message that is meant: by its whole id, or among those that wait or run in this directory's session and those that this
/// terminal was shown.
pub(crate) async fn message(typed: &str, remote: &Remote) -> Result<String> {
    match typed {
        whole if whole.parse::<MessageId>().is_ok() => Ok(whole.to_owned()),
        line if line.starts_with('@') => at(line, &[Kind::Message], remote).map(|(_, id)| id),
        name => one_of(Kind::Message, name, messages(name, remote).await?, remote),
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
            let more = more.iter().map(|id| format!("{}  a message", whole_enough(id, more, remote)));
            let several = candidates(several, remote);
            Err(unclear(Kind::Session, typed, several.into_iter().chain(more)))
        }
    }
}

/// The question that is meant: by its whole id, or among the open ones and those that were shown last.
pub(crate) async fn approval(typed: &str, remote: &Remote) -> Result<String> {
    match typed {
        whole if whole.parse::<ApprovalId>().is_ok() => Ok(whole.to_owned()),
        line if line.starts_with('@') => at(line, &[Kind::Approval], remote).map(|(_, id)| id),
        name => one_of(Kind::Approval, name, approvals(name, remote).await?, remote),
    }
}

/// The rule that is meant.
pub(crate) async fn rule(typed: &str, remote: &Remote) -> Result<String> {
    match typed {
        whole if whole.parse::<RuleId>().is_ok() => Ok(whole.to_owned()),
        line if line.starts_with('@') => at(line, &[Kind::Rule], remote).map(|(_, id)| id),
        name => {
            let typed = TypedName::new(RuleId::PREFIX, name);
            let rules = remote.client.rules().await.or_cli_error()?.items.into_iter().map(|rule| rule.id);
            one_of(Kind::Rule, name, rules.filter(|id| typed.is_of(id)).collect(), remote)
        }
    }
}

/// The worktree that is meant, and its session: by its name, by how it begins or ends if only one does so, or as a line of the last list.
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
        all.iter().filter(|(_, name)| name.starts_with(typed) || name.ends_with(typed)).collect()
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
            named.iter().map(|(session, name)| said(&format!("{name}  of {session}"), remote)),
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

/// Words that go to standard error: whoever reads them on a terminal gets short ids, and this terminal knows them from then on.
pub(crate) fn said(words: &str, remote: &Remote) -> String {
    if remote.screen.err_is_terminal { known(words, remote) } else { words.to_owned() }
}

/// The same of words that go to standard output.
pub(crate) fn printed(words: &str, remote: &Remote) -> String {
    if remote.screen.out_is_terminal { known(words, remote) } else { words.to_owned() }
}

fn known(words: &str, remote: &Remote) -> String {
    met(ids_in(words).map(str::to_owned).collect(), remote);
    with_short_ids(words)
}

/// Lets messages and questions go by pieces of these ids in this terminal, also once they are over.
pub(crate) fn met(mut ids: Vec<String>, remote: &Remote) {
    ids.retain(|id| id.parse::<SessionId>().is_err() && id.parse::<RuleId>().is_err());
    if !ids.is_empty() {
        TerminalLists::meet(&remote.url, &ids);
    }
}

/// Words in which whole ids are short ones, for whoever reads them on a terminal.
pub(crate) fn with_short_ids(words: &str) -> String {
    let mut short = words.to_owned();
    for id in ids_in(words) {
        short = short.replace(id, &short_id(id));
    }
    short
}

/// The whole ids among words.
pub(crate) fn ids_in(words: &str) -> impl Iterator<Item = &str> {
    let is_of_id = |c: char| c.is_ascii_alphanumeric() || c == '_';
    words.split(move |c| !is_of_id(c)).filter(|word| is_id(word))
}

fn is_id(word: &str) -> bool {
    word.parse::<SessionId>().is_ok()
        || word.parse::<MessageId>().is_ok()
        || word.parse::<ApprovalId>().is_ok()
        || word.parse::<RuleId>().is_ok()
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

/// The messages that go by this name: those that wait or run in this directory's session, and those that this terminal was shown;
/// if there is none, those that its log has last.
async fn messages(name: &str, remote: &Remote) -> Result<Vec<String>> {
    let typed = TypedName::new(MessageId::PREFIX, name);
    // A directory that has no conversation, or none of theirs, has no messages.
    let here = session_here(remote).await.ok().flatten();
    let mut ids = Vec::new();
    if let Some(session) = &here {
        let queue = remote.client.queue(session).await.or_cli_error()?;
        ids.extend(queue.items.into_iter().map(|item| item.id));
    }
    ids.extend(shown_here(Kind::Message, remote));
    ids.retain(|id| typed.is_of(id));
    if let (Some(session), []) = (&here, &ids[..]) {
        ids = logged(session, |id| id.parse::<MessageId>().is_ok() && typed.is_of(id), remote).await?;
    }
    Ok(once(ids))
}

/// The questions that go by this name: open ones, those that this terminal was shown, and those that the log here has last.
async fn approvals(name: &str, remote: &Remote) -> Result<Vec<String>> {
    let typed = TypedName::new(ApprovalId::PREFIX, name);
    let open = remote.client.approvals(&ApprovalsQuery::default()).await.or_cli_error()?.items;
    let mut ids: Vec<String> = open.into_iter().map(|asked| asked.id).collect();
    ids.extend(shown_here(Kind::Approval, remote));
    ids.retain(|id| typed.is_of(id));
    if let (Some(session), true) = (session_here(remote).await.ok().flatten(), ids.is_empty()) {
        ids = logged(&session, |id| id.parse::<ApprovalId>().is_ok() && typed.is_of(id), remote).await?;
    }
    Ok(once(ids))
}

/// The messages or questions that this terminal was shown, in lists or otherwise.
fn shown_here(kind: Kind, remote: &Remote) -> Vec<String> {
    let Some(lists) = TerminalLists::read(&remote.url) else { return Vec::new() };
    let is_one = |id: &&String| match kind {
        Kind::Message => id.parse::<MessageId>().is_ok(),
        Kind::Approval => id.parse::<ApprovalId>().is_ok(),
        Kind::Session | Kind::Worktree | Kind::Offer | Kind::Rule => false,
    };
    lists.lines(kind).iter().chain(lists.met()).filter(is_one).cloned().collect()
}

/// The ids that fit among the last facts of a session, of the newest page that has one.
async fn logged(session: &str, fits: impl Fn(&str) -> bool, remote: &Remote) -> Result<Vec<String>> {
    let mut end = remote.client.session(session).await.or_cli_error()?.number;
    for _ in 0..LOGGED_PAGES_MAX {
        let after = end.saturating_sub(LIMIT_MAX as u64);
        let limit = u32::try_from(end - after).ok();
        let query = FactsQuery { after: Some(after), limit, ..FactsQuery::default() };
        let page = remote.client.facts(session, &query).await.or_cli_error()?;
        let rules = page.items.iter().filter_map(|fact| match &fact.what {
            What::Rule(rule) => subject(rule),
            What::Story(_) | What::Other(_) => None,
        });
        let found: Vec<String> = rules.filter(|id| fits(id)).map(str::to_owned).collect();
        if !found.is_empty() || after == 0 {
            return Ok(found);
        }
        end = after;
    }
    Ok(Vec::new())
}

/// The message or the question that a fact is about.
fn subject(rule: &RuleFact) -> Option<&str> {
    match rule {
        RuleFact::Queued { message, .. }
        | RuleFact::TurnStarted { message, .. }
        | RuleFact::Steered { message, .. }
        | RuleFact::Withdrawn { message, .. }
        | RuleFact::MessageRefused { message, .. } => Some(message),
        RuleFact::Asked { approval, .. }
        | RuleFact::Answered { approval, .. }
        | RuleFact::Lapsed { approval } => Some(approval),
        _ => None,
    }
}

fn once(mut ids: Vec<String>) -> Vec<String> {
    ids.sort();
    ids.dedup();
    ids
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

fn one_of(kind: Kind, name: &str, fits: Vec<String>, remote: &Remote) -> Result<String> {
    match &fits[..] {
        [one] => Ok(one.clone()),
        [] => Err(unknown(kind, name)),
        several => Err(unclear(kind, name, several.iter().map(|id| whole_enough(id, several, remote)))),
    }
}

/// Sessions as candidates, each on a line.
fn candidates(several: &[Session], remote: &Remote) -> Vec<String> {
    let ids: Vec<String> = several.iter().map(|session| session.id.clone()).collect();
    let line = |session: &Session| {
        let title = session.title.as_deref().map(|title| format!("  {:?}", cut(title, TITLE_SHOWN)));
        let id = whole_enough(&session.id, &ids, remote);
        format!("{id}{}  in {}", title.unwrap_or_default(), tame_name(&session.directory))
    };
    several.iter().map(line).collect()
}

fn unknown(kind: Kind, name: &str) -> anyhow::Error {
    let (what, list) = kind.words();
    let name = tame_name(name);
    let hint = match kind {
        Kind::Session if name.len() < store::NAME_DIGITS_MIN => {
            format!("a piece of an id has at least {} characters; {list} lists sessions", store::NAME_DIGITS_MIN)
        }
        Kind::Session => "`homing ls --all` lists sessions; a session is named by its id, the beginning or end of it, @LINE of the last list, - or a title that somebody gave it".to_owned(),
        Kind::Message => format!("{list} lists what waits; those that are over go by a piece of their ids in their directory, and where you saw them; others by the whole id (msg_…)"),
        Kind::Approval => format!("{list} lists the open ones; one that is settled goes by a piece of its id where you saw it, else by the whole id (apr_…)"),
        Kind::Worktree | Kind::Offer | Kind::Rule => format!("{list} lists them"),
    };
    CliError::new(Exit::NotFound, format!("no {what} goes by the name {name:?}")).hint(hint).into()
}

/// A candidate's id: whole, or for whoever reads it the end that no other one of them has.
fn whole_enough(id: &str, all: &[String], remote: &Remote) -> String {
    if remote.screen.err_is_terminal { short(id, all) } else { id.to_owned() }
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
        let words = "`homing show msg_01kaaaaaaaaaaaaaaaaabcdefg` (apr_01kaaaaaaaaaaaaaaaaazyxwvt)";
        assert_eq!(with_short_ids(words), "`homing show bcdefg` (zyxwvt)");
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

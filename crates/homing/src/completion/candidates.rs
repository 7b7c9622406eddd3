//! Candidates: what a name that is being typed could become, among what the caller may see, as in the lists of the commands.
//!
//! Titles, models, branches and questions are somebody else's words. What would be put into a line has to be harmless there
//! ([`is_harmless`]); what is only shown cannot command a terminal.

use anyhow::Result;
use api::{
    Agent, Approval, ApprovalsQuery, Choice, Session, SessionsQuery, TitleBy, Which, Worktrees,
    WorktreesQuery,
};
use tokio::runtime;

use super::{Completes, ShellLine};
use crate::commands::approve;
use crate::data_dir::DataDir;
use crate::remote::{OrCliError, Remote};
use crate::screen::{Screen, cut};
use crate::{describe, names, target};

/// Sessions that are looked at for candidates, the newest ones: more nobody reads, and most shells ask before they show a hundred.
const SESSIONS_MAX: u32 = 100;
/// Characters of a candidate. What is longer is not typed by name.
const VALUE_MAX: usize = 200;
/// Characters of the words beside a candidate.
const WORDS_MAX: usize = 60;

/// One thing that may come next on a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OfferedName {
    /// The word.
    pub(super) value: String,
    /// A few words about it; may be empty.
    pub(super) words: String,
}

impl OfferedName {
    /// One with somebody else's words, if it is harmless and goes on as was typed.
    fn theirs(typed: &str, value: &str, words: &str) -> Option<Self> {
        (value.starts_with(typed) && is_harmless(value))
            .then(|| Self { value: value.to_owned(), words: tame(words) })
    }
}

/// True if nothing but a word can come of it, once it is quoted: it is neither an option nor another kind of name (`@1`, `-`), no
/// shell sees a pattern, a home or a history in its beginning, and each of its characters can be seen where it stands.
fn is_harmless(value: &str) -> bool {
    value.chars().next().is_some_and(char::is_alphanumeric)
        && value.chars().count() <= VALUE_MAX
        && value.chars().all(|c| !is_unseen(c))
}

/// Characters that are not seen as such, or turn what is around them.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Somebody else's words, on one line.
fn tame(words: &str) -> String {
    let seen: String = words.chars().map(|c| if is_unseen(c) { ' ' } else { c }).collect();
    cut(seen.split_whitespace().collect::<Vec<_>>().join(" ").as_str(), WORDS_MAX)
}

/// The candidates for what was typed; none if the server cannot be asked.
pub(super) fn ask(what: Completes, typed: &str, line: &ShellLine) -> Vec<OfferedName> {
    let asked = || -> Result<Vec<OfferedName>> {
        let remote = remote(line)?;
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(candidates(what, typed, line, &remote))
    };
    asked().unwrap_or_default()
}

/// The server that the line would go to. One that is not there is known at once, without the client's patience.
fn remote(line: &ShellLine) -> Result<Remote> {
    let path = |option: &str| line.option(option, None).map(Into::into);
    let ca =
        path("--ca").or_else(|| std::env::var_os("HOMING_CA").filter(|ca| !ca.is_empty()).map(Into::into));
    Remote::find(&DataDir::find(path("--data"), ca)?, Screen::new(true))
}

async fn candidates(
    what: Completes,
    typed: &str,
    line: &ShellLine,
    remote: &Remote,
) -> Result<Vec<OfferedName>> {
    Ok(match what {
        Completes::OpenSessions => sessions(Which::Open, typed, remote).await?,
        Completes::Sessions => sessions(Which::All, typed, remote).await?,
        Completes::OpenSessionsAndMessages => with_messages(Which::Open, typed, remote).await?,
        Completes::SessionsAndMessages => with_messages(Which::All, typed, remote).await?,
        Completes::SessionsAndAgents => with_agents(typed, remote).await?,
        Completes::Messages => messages(typed, remote).await?,
        Completes::Approvals => approvals(typed, remote).await?,
        Completes::Worktrees => worktrees(typed, &known_worktrees(line.session(), remote).await?),
        Completes::OwnWorktrees => {
            let session = target::session_or_here(line.session(), remote).await?;
            worktrees(typed, &known_worktrees(Some(&session), remote).await?)
        }
        Completes::RemovedWorktrees => {
            removed_worktrees(typed, &known_worktrees(line.session(), remote).await?)
        }
        Completes::Agents => agents(typed, &remote.client.agents().await.or_cli_error()?.items),
        Completes::Models => choices(typed, agent(line, remote).await?.map(|agent| agent.models)),
        Completes::Modes => choices(typed, agent(line, remote).await?.map(|agent| agent.modes)),
    })
}

impl ShellLine {
    /// The session that an option names.
    fn session(&self) -> Option<&str> {
        self.option("--session", Some("-s"))
    }
}

/// Sessions: by their short ids, or by what was begun to type: a title that a person gave, a whole id.
async fn sessions(which: Which, typed: &str, remote: &Remote) -> Result<Vec<OfferedName>> {
    let limit = Some(SESSIONS_MAX);
    let newest = SessionsQuery { which: Some(which), limit, ..SessionsQuery::default() };
    let named = match typed {
        "" => None,
        // A whole id is as good as its end, and those that are older than what is looked at are found by it.
        id if id.starts_with("ses_") => {
            Some(SessionsQuery { name: Some(id.to_owned()), limit, ..SessionsQuery::default() })
        }
        title => Some(SessionsQuery { text: Some(title.to_owned()), ..newest.clone() }),
    };
    let named = async {
        match named {
            Some(query) => {
                remote.client.sessions(&query).await.map_or_else(|_| Vec::new(), |page| page.items)
            }
            None => Vec::new(),
        }
    };
    let (newest, named) = tokio::join!(remote.client.sessions(&newest), named);
    let newest = newest.or_cli_error()?.items;
    let ids: Vec<String> = newest.iter().map(|session| session.id.clone()).collect();
    let by_id = newest
        .iter()
        .filter_map(|session| OfferedName::theirs(typed, &names::short(&session.id, &ids), &about(session)));
    let by_more = newest.iter().chain(&named).filter(|_| !typed.is_empty()).filter_map(|session| {
        let whole = OfferedName::theirs(typed, &session.id, &about(session));
        whole.or_else(|| OfferedName::theirs(typed, title(session)?, &about_titled(session)))
    });
    Ok(once_each(by_id.chain(by_more)))
}

/// The title of a session, if it is a name of it and looks like no other one's.
fn title(session: &Session) -> Option<&str> {
    let is_name = session.title_by == Some(TitleBy::Person);
    session.title.as_deref().filter(|title| is_name && !title.starts_with("ses_"))
}

fn about(session: &Session) -> String {
    let place = session.directory.as_str();
    let title = session.title.as_deref().filter(|title| !title.is_empty()).unwrap_or(place);
    with_work(session, title)
}

fn about_titled(session: &Session) -> String {
    with_work(session, &format!("{} in {}", session.agent, session.directory))
}

/// These words, after what the session does if it does something.
fn with_work(session: &Session, words: &str) -> String {
    match describe::doing(session).as_str() {
        "dormant" => words.to_owned(),
        doing => format!("{doing}: {words}"),
    }
}

async fn with_messages(which: Which, typed: &str, remote: &Remote) -> Result<Vec<OfferedName>> {
    let (sessions, messages) = tokio::join!(sessions(which, typed, remote), messages(typed, remote));
    Ok(once_each(sessions?.into_iter().chain(messages.unwrap_or_default())))
}

async fn with_agents(typed: &str, remote: &Remote) -> Result<Vec<OfferedName>> {
    let (sessions, known) = tokio::join!(sessions(Which::Open, typed, remote), remote.client.agents());
    Ok(once_each(sessions?.into_iter().chain(agents(typed, &known.or_cli_error()?.items))))
}

async fn messages(typed: &str, remote: &Remote) -> Result<Vec<OfferedName>> {
    let Some(session) = names::session_here(remote).await? else { return Ok(Vec::new()) };
    let queue = remote.client.queue(&session).await.or_cli_error()?.items;
    let ids: Vec<String> = queue.iter().map(|message| message.id.clone()).collect();
    let found = queue.iter().filter_map(|message| {
        let words = format!("{}: {}", describe::state(message.state), message.text);
        by_id(typed, &message.id, &ids, &words)
    });
    Ok(found.collect())
}

async fn approvals(typed: &str, remote: &Remote) -> Result<Vec<OfferedName>> {
    let open: Vec<Approval> = remote.client.approvals(&ApprovalsQuery::default()).await.or_cli_error()?.items;
    let ids: Vec<String> = open.iter().map(|asked| asked.id.clone()).collect();
    Ok(open.iter().filter_map(|asked| by_id(typed, &asked.id, &ids, &approve::question(asked))).collect())
}

/// By its short id, or the whole one if that was begun.
fn by_id(typed: &str, id: &str, ids: &[String], words: &str) -> Option<OfferedName> {
    let short = OfferedName::theirs(typed, &names::short(id, ids), words);
    short.or_else(|| OfferedName::theirs(typed, id, words))
}

/// The worktrees that were last recorded, of one session if one is named. Nothing is looked at for that.
async fn known_worktrees(session: Option<&str>, remote: &Remote) -> Result<Worktrees> {
    let mut known = remote.client.worktrees(&WorktreesQuery::default()).await.or_cli_error()?;
    if let Some(session) = session {
        let session = names::session(session, remote).await?;
        known.items.retain(|tree| tree.session == session);
        known.removed.retain(|tree| tree.session == session);
    }
    Ok(known)
}

fn worktrees(typed: &str, known: &Worktrees) -> Vec<OfferedName> {
    once_each(known.items.iter().filter_map(|tree| {
        let used = if tree.in_use { "in use: " } else { "" };
        OfferedName::theirs(
            typed,
            &tree.name,
            &format!("{used}{}", branch_of(&tree.branch, &tree.repository)),
        )
    }))
}

fn branch_of(branch: &str, repository: &str) -> String {
    let name = repository.trim_end_matches('/').rsplit('/').next().unwrap_or(repository);
    format!("{branch} of {name}")
}

fn removed_worktrees(typed: &str, known: &Worktrees) -> Vec<OfferedName> {
    let missing = known.items.iter().filter(|tree| tree.missing);
    let missing =
        missing.map(|tree| (&tree.name, format!("missing: {}", branch_of(&tree.branch, &tree.repository))));
    let removed = known.removed.iter();
    let removed =
        removed.map(|tree| (&tree.name, format!("removed: {}", branch_of(&tree.branch, &tree.repository))));
    once_each(missing.chain(removed).filter_map(|(name, words)| OfferedName::theirs(typed, name, &words)))
}

fn agents(typed: &str, agents: &[Agent]) -> Vec<OfferedName> {
    let found = agents.iter().filter_map(|agent| {
        let usual = if agent.default { "the default; " } else { "" };
        let here = match (&agent.missing, &agent.version) {
            (Some(_), _) => "not here".to_owned(),
            (None, Some(version)) => format!("{} {version}", agent.kind),
            (None, None) => agent.kind.clone(),
        };
        OfferedName::theirs(typed, &agent.name, &format!("{usual}{here}"))
    });
    found.collect()
}

fn choices(typed: &str, choices: Option<Vec<Choice>>) -> Vec<OfferedName> {
    let choices = choices.unwrap_or_default();
    once_each(
        choices.iter().filter_map(|choice| OfferedName::theirs(typed, &choice.name, &choice.description)),
    )
}

/// The agent whose models are meant: the one that the line names, that of its session or of this directory's, or the default.
async fn agent(line: &ShellLine, remote: &Remote) -> Result<Option<Agent>> {
    let mut all = remote.client.agents().await.or_cli_error()?.items;
    let named = match line.option("--agent", None) {
        Some(named) => Some(named.to_owned()),
        None if line.has("--new") || line.has("--aside") => None,
        None => match target::session_or_here(line.session(), remote).await {
            Ok(session) => Some(remote.client.session(&session).await.or_cli_error()?.agent),
            Err(_) => None,
        },
    };
    let is_meant = |agent: &Agent| named.as_ref().map_or(agent.default, |named| *named == agent.name);
    Ok(all.iter().position(is_meant).map(|at| all.swap_remove(at)))
}

/// Each word once, in this order.
fn once_each(all: impl Iterator<Item = OfferedName>) -> Vec<OfferedName> {
    let mut once: Vec<OfferedName> = Vec::new();
    for candidate in all {
        if !once.iter().any(|other| other.value == candidate.value) {
            once.push(candidate);
        }
    }
    once
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_offered_that_could_be_an_option_another_name_or_unseen() {
        for harmless in ["shop", "the shop", "Ähre", "a$(b)", "it's", "gpt-5:mini", "日本"] {
            assert!(is_harmless(harmless), "{harmless:?}");
        }
        let hostile = [
            "",
            "-",
            "--yes",
            "@1",
            "~root",
            "!!",
            "$(x)",
            "`x`",
            " x",
            "#x",
            "a\nb",
            "a\tb",
            "a\x1b[2J",
            "a\u{9b}2J",
            "a\u{202e}b",
            "a\u{200b}b",
        ];
        for hostile in hostile {
            assert!(!is_harmless(hostile), "{hostile:?}");
        }
        assert!(!is_harmless(&"x".repeat(VALUE_MAX + 1)));
        assert_eq!(OfferedName::theirs("the", "shop", ""), None);
    }

    #[test]
    fn words_beside_a_candidate_are_one_line_that_commands_no_terminal() {
        assert_eq!(tame("a\x1b]0;x\x07\nb\t c\u{202e}d"), "a ]0;x b c d");
        assert_eq!(tame(&"x".repeat(100)).chars().count(), WORDS_MAX);
    }
}

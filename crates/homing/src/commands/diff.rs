//! `homing diff`: what a turn changed, or all of a session's.

use anyhow::Result;
use api::{FactsQuery, LIMIT_MAX, RuleFact, What, WorktreesQuery};

use crate::completion::Completes;
use crate::exit::{CliError, Exit};
use crate::names;
use crate::pager::page;
use crate::remote::{OrCliError, Remote};
use crate::screen::{Screen, TextStyle, tame, tame_name};
use crate::target::TurnArgs;

/// See what a turn changed, or all of them
///
/// Of one turn: the last one, if none is named. With `--all`, what changed from before the session's first turn to after its last,
/// where it works now: in a worktree, since it entered that; `--worktree` names one by name, also one that it has left. On a terminal it is coloured, and shown by `PAGER` (`less`).
#[derive(clap::Args)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    turn: TurnArgs,
    /// Everything since the session's first turn where it works now
    #[arg(long, short)]
    all: bool,
    /// Everything in this worktree since its session entered it, or, if it has left it, since it was made
    #[arg(long, value_name = "NAME", conflicts_with = "all", add = Completes::Worktrees)]
    worktree: Option<String>,
    /// Only the files, with how many lines more and less
    #[arg(long)]
    stat: bool,
}

pub(crate) async fn diff(args: &DiffArgs, remote: &Remote) -> Result<Exit> {
    if let Some(name) = &args.worktree {
        let (session, name) = worktree_of(name, &args.turn, remote).await?;
        let view = DiffView { all: true, stat: args.stat, paged: true };
        let now = remote.client.session(&session).await.or_cli_error()?;
        return match now.worktree.is_some_and(|tree| tree.name == name) {
            true => show_as(&session, None, view, remote).await,
            false => show_left(&session, &name, view, remote).await,
        };
    }
    let (session, turn) = args.turn.resolve(remote).await?;
    if args.all && turn.is_some() {
        let what = "--all is every turn, and one was named";
        return Err(CliError::new(Exit::Usage, what).hint("leave one of them out").into());
    }
    let view = DiffView { all: args.all, stat: args.stat, paged: true };
    show_as(&session, turn, view, remote).await
}

/// The session of a worktree, and the worktree's whole name.
async fn worktree_of(name: &str, which: &TurnArgs, remote: &Remote) -> Result<(String, String)> {
    let (session, turn) = which.named()?;
    if let Some(turn) = turn {
        let what = format!("--worktree is every turn in it, and turn {turn} was named");
        return Err(CliError::new(Exit::Usage, what).hint("leave one of them out").into());
    }
    let session = match session {
        Some(session) => Some(names::session(session, remote).await?),
        None => None,
    };
    names::worktree(session, name, remote).await
}

/// Shows everything of a worktree that its session has left: the snapshots of its turns are looked at where the session works now, so this
/// is what was done in it since it was made, as it is now.
async fn show_left(session: &str, name: &str, view: DiffView, remote: &Remote) -> Result<Exit> {
    let known = remote.client.worktrees(&WorktreesQuery::default()).await.or_cli_error()?;
    if !known.items.iter().any(|tree| tree.session == session && tree.name == name) {
        let what =
            format!("{session} is not in worktree {name} now, so that nobody can tell what changed there");
        let hint = format!(
            "`homing worktree restore {name}` has it back, if it was removed; `homing worktree ls` lists what there is"
        );
        return Err(CliError::new(Exit::Failed, what).hint(hint).into());
    }
    let what = format!("worktree {name} since it was made");
    remote.screen.say(format!("{what}:"));
    let changes = remote.client.worktree_changes(session, name).await.or_cli_error()?;
    if remote.screen.json {
        remote.screen.object(&changes)?;
        return Ok(Exit::Done);
    }
    let api::WorktreeChanges { base: _, files, patch, cut, unseen } = changes;
    print(&what, &DiffShown { files: &files, patch: &patch, unseen: &unseen, cut }, view, remote)
}

/// Shows what a turn of this session changed, or the last one that is over, in the midst of something else.
pub(super) async fn show(session: &str, turn: Option<u32>, stat: bool, remote: &Remote) -> Result<Exit> {
    show_as(session, turn, DiffView { all: false, stat, paged: false }, remote).await
}

/// The form in which changes are shown.
struct DiffView {
    /// True if it is about all turns where the session works now.
    all: bool,
    stat: bool,
    /// True if the person's pager may have the terminal.
    paged: bool,
}

async fn show_as(session: &str, named: Option<u32>, view: DiffView, remote: &Remote) -> Result<Exit> {
    let (since, turn) = match (named, view.all) {
        (Some(turn), _) => (turn, turn),
        (None, true) => turns_here(session, remote).await?.ok_or_else(no_turn)?,
        (None, false) => {
            let turn = last_turn(session, remote).await?.ok_or_else(no_turn)?;
            (turn, turn)
        }
    };
    let what = if view.all { format!("turns {since} to {turn}") } else { format!("turn {turn}") };
    if named.is_none() {
        remote.screen.say(format!("{what}:"));
    }
    let changes = match view.all {
        true => remote.client.changes_since(session, since, turn).await,
        false => remote.client.changes(session, turn).await,
    };
    let changes = changes.or_cli_error()?;
    if remote.screen.json {
        remote.screen.object(&changes)?;
        return Ok(Exit::Done);
    }
    if !changes.known {
        return Err(CliError::new(Exit::Failed, format!("nobody can tell what {what} changed")).hint(
            "the directory is not under version control, the turn is not over, or it is too long ago; `homing log` has what the agent said",
        )
        .into());
    }
    say_moves(&changes.moves, remote);
    let api::Changes { files, patch, unseen, cut, .. } = changes;
    print(&what, &DiffShown { files: &files, patch: &patch, unseen: &unseen, cut }, view, remote)
}

/// Changes, from wherever they are known.
struct DiffShown<'a> {
    files: &'a [api::FileChange],
    patch: &'a str,
    unseen: &'a [String],
    cut: bool,
}

fn print(what: &str, changes: &DiffShown<'_>, view: DiffView, remote: &Remote) -> Result<Exit> {
    for words in changes.unseen {
        remote.screen.say(words);
    }
    if changes.files.is_empty() && changes.patch.is_empty() {
        remote.screen.say(format!("{what} changed no file among those that were looked at"));
        return Ok(Exit::Done);
    }
    if view.stat || changes.patch.is_empty() {
        show_files(changes.files, remote.screen)?;
    } else {
        let patch = coloured(changes.patch.trim_end_matches('\n'), remote.screen);
        match view.paged {
            true => page(&patch, remote.screen)?,
            false => remote.screen.line(patch.trim_end_matches('\n'))?,
        }
    }
    if changes.cut {
        remote.screen.say("the rest of the patch is left out: it is long; `--stat` lists the files");
    }
    Ok(Exit::Done)
}

fn show_files(files: &[api::FileChange], screen: Screen) -> Result<()> {
    let count = |lines: Option<u64>| lines.map_or_else(|| "-".to_owned(), |lines| lines.to_string());
    let row = |file: &api::FileChange| {
        vec![
            file.kind.clone(),
            format!("+{}", count(file.plus)),
            format!("-{}", count(file.minus)),
            file.path.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = files.iter().map(row).collect();
    Ok(screen.table(&["WHAT", "MORE", "LESS", "FILE"], &rows)?)
}

/// A patch for whoever reads it: in colours on a terminal, where nothing in a file may command it; byte for byte on a pipe.
fn coloured(patch: &str, screen: Screen) -> String {
    if !screen.out_is_terminal {
        return format!("{patch}\n");
    }
    let (mut is_header, mut text) = (true, String::new());
    for line in patch.lines() {
        is_header = line.starts_with("diff ") || (is_header && !line.starts_with("@@"));
        let style = match line.bytes().next() {
            _ if is_header => Some(TextStyle::Bold),
            Some(b'@') => Some(TextStyle::Place),
            Some(b'+') => Some(TextStyle::Good),
            Some(b'-') => Some(TextStyle::Bad),
            _ => None,
        };
        let line = if is_header { short_index(&tame(line)) } else { tame(line) };
        text.push_str(&style.map_or_else(|| line.clone().into(), |style| screen.out(style, &line)));
        text.push('\n');
    }
    text
}

/// Digits of a blob's name that a person is shown, as git shows them.
const BLOB_SHOWN: usize = 7;

/// The line of a patch that names blobs, with short names. A patch on a pipe has whole ones, so that git can apply it.
fn short_index(line: &str) -> String {
    let Some((before, after)) = line.strip_prefix("index ").and_then(|names| names.split_once("..")) else {
        return line.to_owned();
    };
    let (after, mode) = after.split_once(' ').map_or((after, ""), |(after, mode)| (after, mode));
    let short = |name: &str| name.chars().take(BLOB_SHOWN).collect::<String>();
    format!("index {}..{} {mode}", short(before), short(after)).trim_end().to_owned()
}

/// The moves of the repository itself, which are in no patch and which no undo takes back.
pub(super) fn say_moves(moves: &[api::RepositoryMove], remote: &Remote) {
    for one in moves {
        let (words, command) = (tame_name(&one.words), tame_name(&one.command));
        remote.screen.say(format!("{words}; `{command}` takes it back"));
    }
}

/// The first turn that ran where the session works now without having left it since, and the last one that is over.
async fn turns_here(session: &str, remote: &Remote) -> Result<Option<(u32, u32)>> {
    let now = remote.client.session(session).await.or_cli_error()?;
    let Some(last) = last_turn(session, remote).await? else { return Ok(None) };
    // Nothing was ever changed: all of them did.
    if now.epoch == 0 {
        return Ok(Some((1, last)));
    }
    let (mut first, mut since) = (last + 1, None);
    let came = last_fact(
        session,
        |what| match what {
            What::Rule(RuleFact::TurnStarted { turn, .. }) => {
                first = *turn;
                None
            }
            What::Rule(RuleFact::ScopeChanged { scope, .. }) if scope.directory == now.directory => {
                since = Some(first);
                None
            }
            What::Rule(RuleFact::ScopeChanged { .. }) => Some(since.unwrap_or(first)),
            What::Rule(RuleFact::Opened { scope, .. }) if scope.directory == now.directory => Some(1),
            What::Rule(RuleFact::Opened { .. }) => Some(since.unwrap_or(first)),
            What::Rule(_) | What::Story(_) | What::Other(_) => None,
        },
        remote,
    )
    .await?;
    Ok(came.filter(|first| *first <= last).map(|first| (first, last)))
}

/// The last turn that is over, if there is one.
pub(super) async fn last_turn(session: &str, remote: &Remote) -> Result<Option<u32>> {
    let over = |what: &What| match what {
        What::Rule(RuleFact::TurnEnded { turn, .. }) => Some(*turn),
        What::Rule(_) | What::Story(_) | What::Other(_) => None,
    };
    last_fact(session, over, remote).await
}

/// The word of the last fact that has one.
pub(super) async fn last_fact<T>(
    session: &str,
    mut says: impl FnMut(&What) -> Option<T>,
    remote: &Remote,
) -> Result<Option<T>> {
    let mut end = remote.client.session(session).await.or_cli_error()?.number;
    // From behind: it is among the last facts of nearly every session.
    while end > 0 {
        let after = end.saturating_sub(LIMIT_MAX as u64);
        let limit = u32::try_from(end - after).ok();
        let query = FactsQuery { after: Some(after), limit, ..FactsQuery::default() };
        let page = remote.client.facts(session, &query).await.or_cli_error()?;
        if let Some(said) = page.items.iter().rev().find_map(|fact| says(&fact.what)) {
            return Ok(Some(said));
        }
        end = after;
    }
    Ok(None)
}

/// The error where none is over.
pub(super) fn no_turn() -> CliError {
    CliError::new(Exit::NotFound, "no turn of this session is over yet")
        .hint("`homing log` numbers the turns")
}

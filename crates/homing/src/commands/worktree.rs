//! `homing worktree`: the worktrees of sessions; remove them safely, have them back, bring their work back.

use std::collections::BTreeSet;

use anyhow::Result;
use api::client::{ChangeKey, ClientError};
use api::{
    Code, CollectWorktrees, MergeWorktree, MergedWorktree, RemoveWorktreeQuery, RestoreWorktree, Worktrees,
    WorktreesQuery,
};

use crate::completion::Completes;
use crate::exit::{CliError, Exit};
use crate::names::{self, Kind};
use crate::progress_line::until_over;
use crate::remote::{OrCliError, Remote};
use crate::table::{self, Column};
use crate::{system, time};

const COLUMNS: [Column; 9] = [
    Column::new("").goes(8),
    Column::new("NAME"),
    Column::new("SESSION").goes(6),
    Column::new("BRANCH").right(12).goes(5),
    Column::new("COMMITS").goes(4),
    Column::new("STATE").goes(7),
    Column::new("SIZE").goes(2),
    Column::new("USED").goes(3),
    Column::new("SEEN").goes(1),
];
const REMOVED_COLUMNS: [Column; 5] = [
    Column::new("").goes(4),
    Column::new("REMOVED"),
    Column::new("SESSION").goes(2),
    Column::new("WHEN").goes(3),
    Column::new("KEPT AS").left(16).goes(1),
];

/// List worktrees, remove them, have them back, or bring their work back
///
/// A worktree belongs to the session that entered it. Whatever is removed is kept first, committed or not, in Homing's own
/// store of snapshots, and can be had back.
#[derive(clap::Args)]
pub(crate) struct WorktreeArgs {
    /// Only this session's [default: all that you may see]
    #[arg(long, short, global = true, add = Completes::Sessions)]
    session: Option<String>,
    #[command(subcommand)]
    verb: Option<WorktreeVerb>,
}

#[derive(clap::Subcommand)]
enum WorktreeVerb {
    /// List them as they were last seen, after a turn or a look, and those that can be had back
    Ls {
        /// Look at each of them now
        #[arg(long)]
        look: bool,
    },
    /// Remove one that its session is not in
    Rm {
        #[arg(add = Completes::Worktrees)]
        name: String,
        /// Leave out the teardown script
        #[arg(long)]
        skip_teardown: bool,
    },
    /// Have one back, as it was when it was removed, or last recorded before somebody deleted it
    Restore {
        #[arg(add = Completes::RemovedWorktrees)]
        name: String,
        /// The reference that keeps it, if it was removed several times [default: the last]
        #[arg(long, value_name = "REF")]
        reference: Option<String>,
    },
    /// Merge its branch into the branch that is checked out where it was made from
    ///
    /// As `git merge` there would do, but without hooks. If files were changed on both sides, are changed there, or are not
    /// committed in the worktree, they are named and nothing is changed.
    Merge {
        #[arg(add = Completes::Worktrees)]
        name: String,
        /// Only say what would come of it
        #[arg(long)]
        dry_run: bool,
    },
    /// Bring everything of it back, committed or not, as uncommitted changes where it was made from
    ///
    /// The branch and what is staged there stay as they are. If files were changed on both sides, or are changed there, they are
    /// named and nothing is changed.
    Apply {
        #[arg(add = Completes::Worktrees)]
        name: String,
        /// Only say what would come of it
        #[arg(long)]
        dry_run: bool,
    },
    /// Remove those that nobody has used for long, or that take too much room
    Gc {
        /// Only say which
        #[arg(long)]
        dry_run: bool,
    },
}

pub(crate) async fn worktree(args: WorktreeArgs, remote: &Remote) -> Result<Exit> {
    let session = match args.session {
        Some(typed) => Some(names::session(&typed, remote).await?),
        None => None,
    };
    match args.verb.unwrap_or(WorktreeVerb::Ls { look: false }) {
        WorktreeVerb::Ls { look } => {
            let mut known = all(session.clone(), remote).await?;
            if look && session.is_none() {
                known.items = look_at(&known, remote).await?;
            }
            list(&known, remote)?;
        }
        WorktreeVerb::Rm { name, skip_teardown } => {
            let (session, name) = names::worktree(session, &name, remote).await?;
            let query = RemoveWorktreeQuery { teardown: skip_teardown.then_some(false) };
            let ask =
                async |key: &ChangeKey| remote.client.remove_worktree(key, &session, &name, query).await;
            let Some(removed) = until_over(&session, remote, ask).await? else { return Ok(Exit::Detached) };
            let removed = removed.or_cli_error().map_err(|error| in_use(error, &session, &name))?;
            let words = format!(
                "{name} is gone; `homing worktree restore {name}` brings it back, from {}",
                removed.reference
            );
            remote.done(&removed, words)?;
        }
        WorktreeVerb::Restore { name, reference } => {
            let (session, name) = names::worktree(session, &name, remote).await?;
            let restore = RestoreWorktree { reference };
            let ask =
                async |key: &ChangeKey| remote.client.restore_worktree(key, &session, &name, &restore).await;
            let Some(restored) = until_over(&session, remote, ask).await? else { return Ok(Exit::Detached) };
            let restored = restored.or_cli_error()?;
            remote.done(&restored, format!("{name} is in {} again", restored.directory))?;
        }
        WorktreeVerb::Merge { name, dry_run } => {
            let (session, name) = names::worktree(session, &name, remote).await?;
            let wish = MergeWorktree { dry_run };
            let ask = async |key: &ChangeKey| remote.client.merge_worktree(key, &session, &name, wish).await;
            let Some(merged) = until_over(&session, remote, ask).await? else { return Ok(Exit::Detached) };
            let merged = named_files(merged, remote).map_err(|error| not_there(error, &name))?;
            say_merged(&merged, dry_run, remote)?;
        }
        WorktreeVerb::Apply { name, dry_run } => {
            let (session, name) = names::worktree(session, &name, remote).await?;
            let wish = MergeWorktree { dry_run };
            let ask = async |key: &ChangeKey| remote.client.apply_worktree(key, &session, &name, wish).await;
            let Some(merged) = until_over(&session, remote, ask).await? else { return Ok(Exit::Detached) };
            let merged = named_files(merged, remote).map_err(|error| not_there(error, &name))?;
            say_merged(&merged, dry_run, remote)?;
        }
        WorktreeVerb::Gc { dry_run } => collect(dry_run, remote).await?,
    }
    Ok(Exit::Done)
}

/// A worktree that its session is in is left by that session, wherever this is typed.
fn in_use(error: anyhow::Error, session: &str, name: &str) -> anyhow::Error {
    match error.downcast::<CliError>() {
        Ok(error) if error.is(Code::InWorktree) => error
            .saying(format!("{name} is in use: {session} works in it"))
            .hint(format!("`homing scope {session} exit` takes the session out of it; then say this again"))
            .into(),
        Ok(error) => error.into(),
        Err(error) => error,
    }
}

/// One that is not there may have been removed.
fn not_there(error: anyhow::Error, name: &str) -> anyhow::Error {
    match error.downcast::<CliError>() {
        Ok(error) if error.is(Code::NotFound) => error
            .saying(format!("{name} is not there"))
            .hint(format!(
                "if it was removed, `homing worktree restore {name}` brings it back; `homing worktree ls` lists both"
            ))
            .into(),
        Ok(error) => error.into(),
        Err(error) => error,
    }
}

/// Whoever is told no is told every file, also those that did not fit into the sentence.
fn named_files(merged: Result<MergedWorktree, ClientError>, remote: &Remote) -> Result<MergedWorktree> {
    if let Err(ClientError::Refused(problem)) = &merged
        && let Some(in_the_way) = &problem.in_the_way
    {
        for file in &in_the_way.files {
            remote.screen.say(file);
        }
    }
    merged.or_cli_error()
}

fn say_merged(merged: &MergedWorktree, dry_run: bool, remote: &Remote) -> Result<()> {
    if remote.screen.json {
        remote.screen.object(merged)?;
    } else {
        for file in &merged.files {
            remote.screen.line(file)?;
        }
    }
    let (name, into) = (&merged.name, &merged.into);
    let place = merged.branch.as_ref().map_or_else(|| into.clone(), |branch| format!("{branch} in {into}"));
    let more = if merged.cut { "more than " } else { "" };
    let words = match (merged.files.len(), dry_run) {
        (0, _) => format!("{place} has everything of {name}"),
        (1, true) => format!("1 file of {place} would change"),
        (1, false) => format!("1 file of {place} has changed by {name}"),
        (files, true) => format!("{more}{files} files of {place} would change"),
        (files, false) => format!("{more}{files} files of {place} have changed by {name}"),
    };
    remote.screen.say(words);
    for part in &merged.left_out {
        remote.screen.say(format!("did not come along: {part}"));
    }
    if let Some(command) = merged.take_back.as_ref().filter(|_| !dry_run) {
        let names = match command.ends_with("=FILES") {
            true => ", with the names of these files in FILES, one to a line",
            false => "",
        };
        remote.screen.say(format!("`{command}` takes it back{names}"));
    }
    Ok(())
}

async fn all(session: Option<String>, remote: &Remote) -> Result<Worktrees> {
    remote.client.worktrees(&WorktreesQuery { session }).await.or_cli_error()
}

/// The same worktrees as they are now. Whoever asks for those of one session has them looked at.
async fn look_at(known: &Worktrees, remote: &Remote) -> Result<Vec<api::Worktree>> {
    let sessions: BTreeSet<&String> = known.items.iter().map(|tree| &tree.session).collect();
    let mut now = Vec::new();
    for session in sessions {
        now.extend(all(Some(session.clone()), remote).await?.items);
    }
    Ok(now)
}

fn list(known: &Worktrees, remote: &Remote) -> Result<()> {
    if remote.screen.json {
        remote.screen.object(known)?;
        return Ok(());
    }
    let now = system::now();
    let lines = names::trees(known).into_iter().map(|(session, name)| format!("{session}/{name}"));
    let lines = lines.collect::<Vec<_>>();
    let marks = names::shown(Kind::Worktree, &lines, remote);
    let mark = |session: &str, name: &str| {
        let line = lines.iter().position(|line| *line == format!("{session}/{name}"));
        line.map(|at| marks[at].0.clone()).unwrap_or_default()
    };
    let row = |tree: &api::Worktree| {
        let state = match (tree.in_use, tree.missing, tree.dirty) {
            (_, true, _) => "missing".to_owned(),
            (true, false, dirty) => format!("in use, {dirty} dirty"),
            (false, false, 0) => "clean".to_owned(),
            (false, false, dirty) => format!("{dirty} dirty"),
        };
        vec![
            mark(&tree.session, &tree.name),
            tree.name.clone(),
            names::shown_id(&tree.session, remote),
            tree.branch.clone(),
            format!("+{} -{}", tree.ahead, tree.behind),
            state,
            size(tree.bytes),
            time::ago(tree.used_at, now),
            time::ago(tree.seen_at, now),
        ]
    };
    if lines.is_empty() {
        remote.screen.say("there are no worktrees; `homing scope enter NAME` takes a session into one");
        return Ok(());
    }
    let rows: Vec<Vec<String>> = known.items.iter().map(row).collect();
    if rows.is_empty() {
        remote.screen.say("there are none; `homing scope enter NAME` makes one");
    } else {
        table::print(remote.screen, &COLUMNS, &rows)?;
    }
    if !known.removed.is_empty() {
        remote.screen.line("")?;
        let row = |tree: &api::RemovedWorktree| {
            let when = time::ago(tree.removed_at, now);
            let mark = mark(&tree.session, &tree.name);
            vec![
                mark,
                tree.name.clone(),
                names::shown_id(&tree.session, remote),
                when,
                tree.reference.clone(),
            ]
        };
        let rows: Vec<Vec<String>> = known.removed.iter().map(row).collect();
        table::print(remote.screen, &REMOVED_COLUMNS, &rows)?;
    }
    if known.more {
        remote.screen.say("there are more; `homing worktree --session SESSION` shows those of one");
    }
    Ok(())
}

async fn collect(dry_run: bool, remote: &Remote) -> Result<()> {
    let collected = remote.client.collect_worktrees(CollectWorktrees { dry_run }).await.or_cli_error()?;
    if remote.screen.json {
        remote.screen.object(&collected)?;
        return Ok(());
    }
    for tree in &collected.items {
        let came = match (&tree.reference, &tree.problem) {
            (Some(reference), _) => format!("removed, kept as {reference}"),
            (None, Some(problem)) => format!("stays: {problem}"),
            (None, None) if dry_run => "would be removed".to_owned(),
            (None, None) => "is being removed".to_owned(),
        };
        let why = if tree.why == "age" { "not used for long" } else { "too much room" };
        remote.screen.line(format!(
            "{} of {} ({}, {why}): {came}",
            tree.name,
            names::shown_id(&tree.session, remote),
            size(tree.bytes)
        ))?;
    }
    if collected.items.is_empty() {
        remote.screen.say("there is nothing to remove");
    }
    Ok(())
}

/// Bytes, for people.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{} KiB", bytes / 1_024),
        1_048_576..1_073_741_824 => format!("{} MiB", bytes / 1_048_576),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}

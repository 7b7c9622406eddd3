//! The worker's own side: reads calls, does them by git, answers.
//!
//! It runs behind a session's wall and as that session's user, below a supervisor that ends it with everything it has
//! started. It trusts the server, and nothing else that it meets.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use engine::{TreeSinceBase, TreesError, WorkProgress};
use kernel::{MergeHow, SessionId, Turn};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, LocalSet};
use tokio::time::Instant;

use super::protocol::{
    GroundAnswer, GroundCall, PROGRESS_EVERY, REQUEST_BYTES_MAX, ShareStep, WorkerPlaces, WorkerReply,
    WorkerRequest,
};
use super::written::WrittenBounds;
use crate::git::{GitLimits, PersonHome, ProgressSender};
use crate::session_trees::GitTrees;

/// Answers that wait to be written.
const ANSWERS_WAITING_MAX: usize = 16;

/// `homing ground`. Ends when the server says nothing more.
pub fn ground_worker() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let served = runtime.and_then(|runtime| LocalSet::new().block_on(&runtime, serve()));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

async fn serve() -> io::Result<()> {
    // The supervisor's lines are pipes.
    let mut from = BufReader::new(pipe::Receiver::from_owned_fd(rustix::io::dup(io::stdin())?)?);
    let mut to = pipe::Sender::from_owned_fd(rustix::io::dup(io::stdout())?)?;
    let Some(line) = read_line(&mut from).await? else { return Ok(()) };
    let places: WorkerPlaces = serde_json::from_slice(&line)?;
    let limits = GitLimits { store_bytes_max: places.store_bytes_max, ..GitLimits::default() };
    let trees = GitTrees::open_among(&places.data, &places.own, &places.worktrees, limits);
    let trees = Rc::new(trees.map(|trees| trees.for_person(person_home())));
    let (say, mut said) = mpsc::channel::<WorkerReply>(ANSWERS_WAITING_MAX);
    let writer = tokio::task::spawn_local(async move {
        while let Some(reply) = said.recv().await {
            let mut line = serde_json::to_vec(&reply)?;
            line.push(b'\n');
            to.write_all(&line).await?;
        }
        io::Result::Ok(())
    });
    let mut under_way: BTreeMap<u64, AbortHandle> = BTreeMap::new();
    while let Some(line) = read_line(&mut from).await? {
        under_way.retain(|_, call| !call.is_finished());
        match serde_json::from_slice(&line)? {
            WorkerRequest::Call { number, session, call, bounds } => {
                let (trees, say) = (trees.clone(), say.clone());
                let task = tokio::task::spawn_local(async move {
                    let worked_in = call.worked_in();
                    let answer = bounded(&trees, &session, call, bounds, number, &say).await;
                    let answer = answer.map_err(Into::into);
                    let _ = say.send(WorkerReply::Answer { number, answer }).await;
                    if let (Ok(trees), Ok(session), Some(directory)) = (&*trees, session.parse(), worked_in) {
                        trees.survey(&directory).await;
                        trees.note_worktree(session, &directory).await;
                    }
                });
                under_way.insert(number, task.abort_handle());
            }
            WorkerRequest::GiveUp { number } => {
                // What it has started goes with it.
                if let Some(call) = under_way.remove(&number) {
                    call.abort();
                }
                let answer = Ok(GroundAnswer::GivenUp);
                let _ = say.send(WorkerReply::Answer { number, answer }).await;
            }
        }
    }
    writer.abort();
    Ok(())
}

/// The home of the user that this runs as: the one that the server names, if it is this user's, or the one in the list of users.
fn person_home() -> Option<PersonHome> {
    let user = rustix::process::getuid().as_raw();
    let is_ours = |home: &PathBuf| std::fs::metadata(home).is_ok_and(|about| about.uid() == user);
    if let Some(home) = std::env::var_os("HOME").map(PathBuf::from).filter(is_ours) {
        let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        return Some(PersonHome { home, config });
    }
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let home = users.lines().find_map(|line| {
        let parts: Vec<&str> = line.split(':').collect();
        (parts.get(2)?.parse() == Ok(user)).then(|| PathBuf::from(parts.get(5).copied().unwrap_or_default()))
    });
    Some(PersonHome { home: home.filter(is_ours)?, config: None })
}

/// The next line, without its end; none at the end of everything.
async fn read_line(from: &mut BufReader<pipe::Receiver>) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let most = u64::try_from(REQUEST_BYTES_MAX).unwrap_or(u64::MAX);
    from.take(most).read_until(b'\n', &mut line).await?;
    match line.pop() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(line)),
        Some(_) => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The answer, unless too much is written for it.
async fn bounded(
    trees: &Result<GitTrees, TreesError>,
    session: &str,
    call: GroundCall,
    bounds: WrittenBounds,
    number: u64,
    say: &mpsc::Sender<WorkerReply>,
) -> Result<GroundAnswer, TreesError> {
    let made = call.makes().zip(session.parse::<SessionId>().ok()).zip(trees.as_ref().ok());
    // One that is there already is only entered.
    let root = made.as_ref().and_then(|((name, session), trees)| trees.root_of(*session, name));
    let root = root.filter(|root| root.symlink_metadata().is_err());
    tokio::select! {
        biased;
        answer = do_call(trees, session, call, number, say) => answer,
        // What git was about to do has ended with the call.
        why = bounds.exceeded(root) => {
            if let Some(((name, session), trees)) = made {
                trees.discard(session, &name).await;
            }
            Err(why)
        }
    }
}

/// Does it; of work that changes something it is told meanwhile how far it is.
async fn do_call(
    trees: &Result<GitTrees, TreesError>,
    session: &str,
    call: GroundCall,
    number: u64,
    say: &mpsc::Sender<WorkerReply>,
) -> Result<GroundAnswer, TreesError> {
    let trees = trees.as_ref().map_err(Clone::clone)?;
    if !call.is_work() {
        return answer(trees, session, call).await;
    }
    let (progress, mut heard) = ProgressSender::new();
    let trees = trees.for_work(progress);
    let (mut work, mut next) = (std::pin::pin!(answer(&trees, session, call)), Instant::now());
    loop {
        tokio::select! {
            biased;
            answer = &mut work => return answer,
            Some(progress) = word_after(&mut heard, next) => {
                next = Instant::now() + PROGRESS_EVERY;
                let progress = progress.into();
                let _ = say.send(WorkerReply::Progress { number, progress }).await;
            }
        }
    }
}

/// The next word about it, not before that moment. Cancel-safe.
async fn word_after(
    heard: &mut watch::Receiver<Option<WorkProgress>>,
    moment: Instant,
) -> Option<WorkProgress> {
    tokio::time::sleep_until(moment).await;
    // Whoever says it lives as long as the work.
    heard.changed().await.ok()?;
    *heard.borrow_and_update()
}

async fn answer(trees: &GitTrees, session: &str, call: GroundCall) -> Result<GroundAnswer, TreesError> {
    let nobody = || TreesError::Failed("that is no session".to_owned());
    let session: SessionId = session.parse().map_err(|_| nobody())?;
    Ok(match call {
        GroundCall::Enter { directory, new } => trees.enter(session, directory.0, new.into()).await?.into(),
        GroundCall::Fork { directory, new, origin, turn } => {
            let origin = origin.parse().map_err(|_| nobody())?;
            trees.fork(session, directory.0, new.into(), origin, Turn(turn)).await?.into()
        }
        GroundCall::RememberBefore { directory, turn } => {
            let is_tracked = trees.remember_before(session, directory.0, Turn(turn)).await?;
            GroundAnswer::RememberedBefore { is_tracked }
        }
        GroundCall::RememberAfter { directory, turn, edits } => {
            let there = directory.0.clone();
            let is_tracked = trees.remember_after(session, there.clone(), Turn(turn), edits).await?;
            let (changes, gone) = match is_tracked {
                true => {
                    let changes = trees.changes(session, there, Turn(turn), Turn(turn)).await?;
                    (changes, trees.tell_gone(session, &directory.0))
                }
                false => (None, None),
            };
            GroundAnswer::RememberedAfter { is_tracked, changes: changes.map(Into::into), gone }
        }
        GroundCall::Copy { directory } => {
            trees.copy(session, directory.0).await?;
            GroundAnswer::Copied
        }
        GroundCall::TakeOver { directory } => {
            trees.take_over(session, directory.0).await?;
            GroundAnswer::Copied
        }
        GroundCall::Changes { directory, first, last } => {
            let changes = trees.changes(session, directory.0, Turn(first), Turn(last)).await?;
            GroundAnswer::Changes { changes: changes.map(Into::into) }
        }
        GroundCall::FileChanges { directory, first, last, place } => {
            let turns = (Turn(first), Turn(last));
            let patch = trees.file_changes(session, directory.0, turns, &place.into()).await?;
            GroundAnswer::FilePatch { patch: patch.map(Into::into) }
        }
        GroundCall::SinceBase { name } => {
            let TreeSinceBase { base, changes } = trees.changes_since_base(session, name).await?;
            GroundAnswer::SinceBase { base, changes: changes.into() }
        }
        GroundCall::FileSinceBase { name, place } => {
            let patch = trees.file_since_base(session, name, &place.into()).await?;
            GroundAnswer::FilePatch { patch: Some(patch.into()) }
        }
        GroundCall::PreviewUndo { directory, turn } => {
            let preview = trees.preview_undo(session, directory.0, Turn(turn)).await?;
            GroundAnswer::UndoPreview { preview: preview.into() }
        }
        GroundCall::Undo { directory, turn, files } => {
            trees.undo(session, directory.0, Turn(turn), &files.into()).await?.into()
        }
        GroundCall::Redo { directory, turn } => trees.redo(session, directory.0, Turn(turn)).await?.into(),
        GroundCall::Look { name } => {
            GroundAnswer::Seen { seen: trees.look(session, name).await?.map(Into::into) }
        }
        GroundCall::Remove { name } => {
            GroundAnswer::Removed { removed: trees.remove(session, name).await?.into() }
        }
        GroundCall::Restore { removed } => {
            let removed = removed.tree().ok_or_else(nobody)?;
            trees.restore(removed).await?.into()
        }
        GroundCall::Merge { name, is_apply, dry_run } => {
            let how = if is_apply { MergeHow::Apply } else { MergeHow::Merge };
            let merged = trees.merge(session, name, how, dry_run).await?.into();
            GroundAnswer::Merged { merged }
        }
        GroundCall::Files { directory, count_max } => trees.files(directory.0, count_max).await?.into(),
        GroundCall::Directories { directory, count_max } => {
            trees.directories(directory.0, count_max).await?.into()
        }
        GroundCall::Sweep { age_ms } => {
            GroundAnswer::Swept { count: trees.sweep(Duration::from_millis(age_ms)).await? }
        }
        GroundCall::Share { store, sessions, step } => {
            let sessions: Vec<SessionId> =
                sessions.iter().filter_map(|session| session.parse().ok()).collect();
            match step {
                ShareStep::Look => trees.share(&store, &sessions).await?.into(),
                ShareStep::LetGo => trees.let_go(&store, &sessions).await?.into(),
                ShareStep::Compact => trees.compact(&store).await?.into(),
            }
        }
    })
}

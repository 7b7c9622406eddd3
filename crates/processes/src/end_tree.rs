//! Makes sure that nothing of an attempt is left: takes its lock, looks for its processes, ends them.
//!
//! For a keeper that does not know what became of an attempt: the daemon died, or its supervisor did. It works without a
//! lock file, too, because an attempt may have died before it made one, or after it was removed.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kernel::TreeName;

use crate::control_group::ControlGroup;
use crate::error::ProcessError;
use crate::lock::{LockHolder, TreeLock};
use crate::reaper::{Process, ProcessReaper, TreeMark};

/// The longest that a supervisor that has lost its daemon may take to end its tree by itself. It promises two seconds.
const LOCK_WAIT: Duration = Duration::from_millis(3_000);
/// The longest that its lock may outlive a supervisor that we killed.
const KILLED_WAIT: Duration = Duration::from_millis(2_000);
/// The longest that the processes may take to go.
const REAP_WAIT: Duration = Duration::from_millis(5_000);
/// The pause before a held lock is tried again.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// A tree that was seen gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedTree {
    /// The processes that had to be killed for that.
    pub killed: u32,
}

/// Ends whatever is left of an attempt whose lock is in that directory. See `Agent::end_leftovers` for what is promised.
pub async fn end_tree(locks: PathBuf, tree: TreeName) -> Result<EndedTree, ProcessError> {
    let ended = tokio::task::spawn_blocking(move || end_tree_now(&locks, &tree)).await;
    ended.unwrap_or_else(|why| Err(ProcessError::failed(why)))
}

fn end_tree_now(locks: &Path, tree: &TreeName) -> Result<EndedTree, ProcessError> {
    let path = TreeLock::path(locks, tree);
    let mut lock = take(&path, tree)?;
    let mark = TreeMark::new(tree.as_str(), locks);
    // Its group was made below the group its supervisor was in, which need not be ours.
    // The agent may be able to write where the lock is, so a record that names another group is none.
    let holder = lock.holder();
    let is_ours = |path: &PathBuf| path.file_name().is_some_and(|name| *name == *mark.group_name());
    let recorded =
        holder.as_ref().and_then(|holder| holder.group.clone()).filter(is_ours).and_then(ControlGroup::at);
    let groups = recorded.into_iter().chain(ControlGroup::find(&mark.group_name())).collect();
    let known = holder.map(known).unwrap_or_default();
    let outcome = ProcessReaper::from_outside(mark, groups, known).until_gone(Instant::now() + REAP_WAIT);
    if !outcome.gone {
        return Err(ProcessError::failed(format!("processes of {tree} cannot be ended")));
    }
    match lock.remove() {
        Err(why) if why.kind() != io::ErrorKind::NotFound => Err(ProcessError::failed(why)),
        _ => Ok(EndedTree { killed: outcome.killed }),
    }
}

/// The processes that a supervisor had seen below it. None of them can be older than it was: such a record is not its own.
fn known(holder: LockHolder) -> Vec<Process> {
    let LockHolder { started: since, seen, .. } = holder;
    let seen = seen.into_iter().map(|(pid, started)| Process { pid, started });
    seen.filter(|process| process.started >= since).collect()
}

/// Waits for the lock; then for the lock of a dead supervisor.
fn take(path: &Path, tree: &TreeName) -> Result<TreeLock, ProcessError> {
    if let Some(lock) = wait_for(path, LOCK_WAIT)? {
        return Ok(lock);
    }
    if let Some(holder) = TreeLock::holder_at(path) {
        // Stopped, or stuck: it does not do what it is there for. The record may be older than its process.
        Process { pid: holder.pid, started: holder.started }.kill();
    }
    let busy = || ProcessError::Busy(format!("the lock of {tree} is held and its holder cannot be ended"));
    wait_for(path, KILLED_WAIT)?.ok_or_else(busy)
}

fn wait_for(path: &Path, wait_max: Duration) -> Result<Option<TreeLock>, ProcessError> {
    let deadline = Instant::now() + wait_max;
    loop {
        let taken = TreeLock::try_take(path)
            .map_err(|why| ProcessError::failed(format!("{}: {why}", path.display())))?;
        if taken.is_some() || Instant::now() >= deadline {
            return Ok(taken);
        }
        std::thread::sleep(LOCK_PAUSE);
    }
}

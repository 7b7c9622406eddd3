//! The engine's port `Trees` as calls to workers.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use engine::{
    EnteredTree, MergedTree, OwnedSession, PatchPlace, RemovedTree, SeenTrees, SnapshotShare,
    SnapshotStoreSeen, TreeChanges, TreeFiles, TreePatch, TreeReply, TreeSeen, TreeSinceBase, Trees,
    TreesError, UndoPreview, UndoneTurn, WorkProgress,
};
use kernel::{GroundPath, MergeHow, Moment, NewWorktree, SessionId, Turn, UndoFiles};
use tokio::sync::watch;

use super::super::protocol::{GroundAnswer, GroundCall, PathForm, ShareStep, one_line};
use super::{GroundWorkers, SnapshotNews, odd};
use crate::session_trees::{UNTRACKED, snapshot_stores, worktree_names, worktrees_removed, worktrees_seen};

/// The pause between the end of a turn and what is done about it with nobody waiting. Whoever goes on speaking at once finds the
/// processors free, and turns that follow each other closely share a copy.
const COPY_PAUSE: Duration = Duration::from_secs(1);
/// Sessions of one person whose snapshots are looked at in one store: as many as one request can name.
const SHARE_SESSIONS_MAX: usize = 4_000;

impl GroundWorkers {
    /// Has what the session's snapshots reach copied, a little later. Neither the turn that has ended nor the next one waits for
    /// it; what does not succeed, or has not begun when the server ends, is done after the next turn.
    fn copy_later(&self, of: OwnedSession, directory: GroundPath) {
        // While one copies, whatever comes is one more round for it.
        if self.0.copying().insert((of.session, directory.clone()), true).is_some() {
            return;
        }
        let workers = self.clone();
        tokio::spawn(async move {
            let key = (of.session, directory.clone());
            loop {
                tokio::time::sleep(COPY_PAUSE).await;
                if !workers.0.is_to_be_copied(&key) {
                    return;
                }
                let call = GroundCall::Copy { directory: PathForm(directory.clone()) };
                let _ = workers.call(of.clone(), call).await;
                workers.0.snapshots.grown.notify_one();
            }
        });
    }

    /// Asks what the snapshots of some sessions take in a store, after one step.
    async fn share_of(
        &self,
        store: SnapshotStoreSeen,
        sessions: Vec<SessionId>,
        step: ShareStep,
        walled: bool,
    ) -> Result<SnapshotShare, TreesError> {
        let of = OwnedSession {
            session: SessionId::from_bits(0),
            whose: store.whose,
            walled,
            tree_bytes_left: None,
        };
        let sessions =
            sessions.into_iter().take(SHARE_SESSIONS_MAX).map(|session| session.to_string()).collect();
        match self.call(of, GroundCall::Share { store: store.key, sessions, step }).await? {
            GroundAnswer::Share { bytes, oldest_ms } => {
                Ok(SnapshotShare { bytes, oldest: oldest_ms.map(Moment) })
            }
            _ => Err(odd()),
        }
    }
}

impl SnapshotNews {
    fn gone(&self) -> MutexGuard<'_, BTreeMap<SessionId, String>> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn full(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.full.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trees for GroundWorkers {
    fn enter(
        &self,
        of: OwnedSession,
        directory: GroundPath,
        new: NewWorktree,
    ) -> TreeReply<'_, Result<EnteredTree, TreesError>> {
        Box::pin(async move {
            entered(
                self.call(of, GroundCall::Enter { directory: PathForm(directory), new: new.into() }).await?,
            )
        })
    }

    fn remember_before(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        turn: Turn,
    ) -> TreeReply<'_, Result<bool, TreesError>> {
        let (directory, turn) = (directory.clone(), turn.0);
        Box::pin(async move {
            if self.is_untracked(&directory) {
                return Ok(false);
            }
            if let Some(why) = self.0.snapshots.full().get(&of.whose).cloned() {
                return Err(TreesError::Refused(why));
            }
            match self.call(of, GroundCall::RememberBefore { directory: PathForm(directory), turn }).await? {
                GroundAnswer::RememberedBefore { is_tracked } => Ok(is_tracked),
                _ => Err(odd()),
            }
        })
    }

    fn remember_after(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        turn: Turn,
        edits: Option<Vec<String>>,
    ) -> TreeReply<'_, Result<Option<TreeChanges>, TreesError>> {
        let (directory, turn) = (directory.clone(), turn.0);
        Box::pin(async move {
            if self.is_untracked(&directory) {
                return Ok(None);
            }
            let call = GroundCall::RememberAfter { directory: PathForm(directory.clone()), turn, edits };
            let answer = self.call(of.clone(), call).await;
            // The tree may be remembered though nobody could tell what has changed: it is copied all the same.
            if !matches!(answer, Ok(GroundAnswer::RememberedAfter { is_tracked: false, .. })) {
                self.copy_later(of.clone(), directory);
            }
            match answer? {
                GroundAnswer::RememberedAfter { changes, gone, .. } => {
                    if let Some(words) = gone {
                        self.0.snapshots.gone().insert(of.session, one_line(&words));
                    }
                    Ok(changes.map(Into::into))
                }
                _ => Err(odd()),
            }
        })
    }

    fn is_untracked(&self, directory: &GroundPath) -> bool {
        self.0.directories.is_untracked(directory)
    }

    fn changes(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        first: Turn,
        last: Turn,
    ) -> TreeReply<'_, Result<Option<TreeChanges>, TreesError>> {
        let (directory, first, last) = (directory.clone(), first.0, last.0);
        Box::pin(async move {
            if self.is_untracked(&directory) {
                return Ok(None);
            }
            match self.call(of, GroundCall::Changes { directory: PathForm(directory), first, last }).await? {
                GroundAnswer::Changes { changes } => Ok(changes.map(Into::into)),
                _ => Err(odd()),
            }
        })
    }

    fn file_changes(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        (first, last): (Turn, Turn),
        place: PatchPlace,
    ) -> TreeReply<'_, Result<Option<TreePatch>, TreesError>> {
        let (directory, first, last) = (directory.clone(), first.0, last.0);
        Box::pin(async move {
            if self.is_untracked(&directory) {
                return Ok(None);
            }
            let (directory, place) = (PathForm(directory), place.into());
            match self.call(of, GroundCall::FileChanges { directory, first, last, place }).await? {
                GroundAnswer::FilePatch { patch } => Ok(patch.map(Into::into)),
                _ => Err(odd()),
            }
        })
    }

    fn changes_since_base(
        &self,
        of: OwnedSession,
        name: &str,
    ) -> TreeReply<'_, Result<TreeSinceBase, TreesError>> {
        let name = name.to_owned();
        Box::pin(async move {
            match self.call(of, GroundCall::SinceBase { name }).await? {
                GroundAnswer::SinceBase { base, changes } => {
                    Ok(TreeSinceBase { base: one_line(&base), changes: changes.into() })
                }
                _ => Err(odd()),
            }
        })
    }

    fn file_since_base(
        &self,
        of: OwnedSession,
        name: &str,
        place: PatchPlace,
    ) -> TreeReply<'_, Result<TreePatch, TreesError>> {
        let (name, place) = (name.to_owned(), place.into());
        Box::pin(async move {
            match self.call(of, GroundCall::FileSinceBase { name, place }).await? {
                GroundAnswer::FilePatch { patch: Some(patch) } => Ok(patch.into()),
                _ => Err(odd()),
            }
        })
    }

    fn preview_undo(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        turn: Turn,
    ) -> TreeReply<'_, Result<UndoPreview, TreesError>> {
        let (directory, turn) = (directory.clone(), turn.0);
        Box::pin(async move {
            if self.is_untracked(&directory) {
                return Err(TreesError::Refused(UNTRACKED.to_owned()));
            }
            match self.call(of, GroundCall::PreviewUndo { directory: PathForm(directory), turn }).await? {
                GroundAnswer::UndoPreview { preview } => Ok(preview.into()),
                _ => Err(odd()),
            }
        })
    }

    fn undo(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        turn: Turn,
        files: UndoFiles,
    ) -> TreeReply<'_, Result<UndoneTurn, TreesError>> {
        let (directory, turn, files) = (PathForm(directory.clone()), turn.0, files.into());
        Box::pin(async move { undone(self.call(of, GroundCall::Undo { directory, turn, files }).await?) })
    }

    fn redo(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        turn: Turn,
    ) -> TreeReply<'_, Result<UndoneTurn, TreesError>> {
        let (directory, turn) = (PathForm(directory.clone()), turn.0);
        Box::pin(async move { undone(self.call(of, GroundCall::Redo { directory, turn }).await?) })
    }

    fn fork(
        &self,
        of: OwnedSession,
        directory: GroundPath,
        new: NewWorktree,
        origin: SessionId,
        turn: Turn,
    ) -> TreeReply<'_, Result<EnteredTree, TreesError>> {
        let (directory, new) = (PathForm(directory), new.into());
        let (origin, turn) = (origin.to_string(), turn.0);
        Box::pin(
            async move { entered(self.call(of, GroundCall::Fork { directory, new, origin, turn }).await?) },
        )
    }

    fn names(&self) -> TreeReply<'_, Result<Vec<(SessionId, String)>, TreesError>> {
        Box::pin(async move { worktree_names(&self.0.setup.data) })
    }

    fn seen(&self) -> TreeReply<'_, Result<SeenTrees, TreesError>> {
        Box::pin(async move { worktrees_seen(&self.0.setup.data) })
    }

    fn look(&self, of: OwnedSession, name: &str) -> TreeReply<'_, Result<Option<TreeSeen>, TreesError>> {
        let name = name.to_owned();
        Box::pin(async move {
            let session = of.session;
            match self.call(of, GroundCall::Look { name }).await? {
                GroundAnswer::Seen { seen } => Ok(seen.map(|seen| seen.tree(session))),
                _ => Err(odd()),
            }
        })
    }

    fn removed(&self) -> TreeReply<'_, Result<Vec<RemovedTree>, TreesError>> {
        Box::pin(async move { worktrees_removed(&self.0.setup.data) })
    }

    fn remove(&self, of: OwnedSession, name: &str) -> TreeReply<'_, Result<RemovedTree, TreesError>> {
        let name = name.to_owned();
        Box::pin(async move {
            match self.call(of, GroundCall::Remove { name }).await? {
                GroundAnswer::Removed { removed } => removed.tree().ok_or_else(odd),
                _ => Err(odd()),
            }
        })
    }

    fn restore(
        &self,
        of: OwnedSession,
        removed: RemovedTree,
    ) -> TreeReply<'_, Result<EnteredTree, TreesError>> {
        let removed = removed.into();
        Box::pin(async move { entered(self.call(of, GroundCall::Restore { removed }).await?) })
    }

    fn merge(
        &self,
        of: OwnedSession,
        name: &str,
        how: MergeHow,
        dry_run: bool,
    ) -> TreeReply<'_, Result<MergedTree, TreesError>> {
        let (name, is_apply) = (name.to_owned(), how == MergeHow::Apply);
        Box::pin(async move { merged(self.call(of, GroundCall::Merge { name, is_apply, dry_run }).await?) })
    }

    fn sweep(&self, age: Duration, walled: bool) -> TreeReply<'_, Result<usize, TreesError>> {
        Box::pin(async move {
            let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
            let mut swept = 0;
            for whose in self.0.setup.wall.os_users() {
                // Of no session: it sees none's directories but the repositories that lie open.
                let of =
                    OwnedSession { session: SessionId::from_bits(0), whose, walled, tree_bytes_left: None };
                match self.call(of, GroundCall::Sweep { age_ms }).await? {
                    GroundAnswer::Swept { count } => swept += count,
                    _ => return Err(odd()),
                }
            }
            Ok(swept)
        })
    }

    fn take_over(&self, of: OwnedSession, directory: &GroundPath) -> TreeReply<'_, Result<bool, TreesError>> {
        let directory = directory.clone();
        Box::pin(async move {
            if self.is_untracked(&directory) || self.0.records.was_taken_over(of.session, &directory) {
                return Ok(false);
            }
            match self.call(of, GroundCall::TakeOver { directory: PathForm(directory) }).await? {
                GroundAnswer::Copied => Ok(true),
                _ => Err(odd()),
            }
        })
    }

    fn gone(&self, session: SessionId) -> Option<String> {
        self.0.snapshots.gone().remove(&session)
    }

    fn grown(&self) -> TreeReply<'_, ()> {
        Box::pin(self.0.snapshots.grown.notified())
    }

    fn snapshot_stores(&self) -> TreeReply<'_, Result<Vec<SnapshotStoreSeen>, TreesError>> {
        Box::pin(async move {
            let wall = &self.0.setup.wall;
            snapshot_stores(&self.0.setup.data, |place| {
                wall.whose_user(place.file_name().unwrap_or_default())
            })
        })
    }

    fn snapshot_share(
        &self,
        store: SnapshotStoreSeen,
        sessions: Vec<SessionId>,
        walled: bool,
    ) -> TreeReply<'_, Result<SnapshotShare, TreesError>> {
        Box::pin(self.share_of(store, sessions, ShareStep::Look, walled))
    }

    fn let_snapshots_go(
        &self,
        store: SnapshotStoreSeen,
        sessions: Vec<SessionId>,
        walled: bool,
    ) -> TreeReply<'_, Result<SnapshotShare, TreesError>> {
        Box::pin(self.share_of(store, sessions, ShareStep::LetGo, walled))
    }

    fn compact_snapshots(
        &self,
        store: SnapshotStoreSeen,
        walled: bool,
    ) -> TreeReply<'_, Result<(), TreesError>> {
        Box::pin(async move { self.share_of(store, Vec::new(), ShareStep::Compact, walled).await.map(drop) })
    }

    fn set_full(&self, full: BTreeMap<String, String>) {
        *self.0.snapshots.full() = full;
    }

    fn files(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        count_max: usize,
    ) -> TreeReply<'_, Result<TreeFiles, TreesError>> {
        let directory = PathForm(directory.clone());
        Box::pin(async move {
            match self.call(of, GroundCall::Files { directory, count_max }).await? {
                GroundAnswer::Files { paths, is_cut } => Ok(TreeFiles { paths, is_cut }),
                _ => Err(odd()),
            }
        })
    }

    fn directories(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        count_max: usize,
    ) -> TreeReply<'_, Result<TreeFiles, TreesError>> {
        let directory = PathForm(directory.clone());
        Box::pin(async move {
            match self.call(of, GroundCall::Directories { directory, count_max }).await? {
                GroundAnswer::Files { paths, is_cut } => Ok(TreeFiles { paths, is_cut }),
                _ => Err(odd()),
            }
        })
    }

    fn progress(&self, session: SessionId) -> watch::Receiver<Option<WorkProgress>> {
        self.0.progress_of(session).subscribe()
    }

    fn workers(&self) -> usize {
        self.0.running().by_key.len()
    }

    fn close(&self) -> TreeReply<'_, ()> {
        Box::pin(async move {
            self.0.close().join_all().await;
        })
    }
}

fn merged(answer: GroundAnswer) -> Result<MergedTree, TreesError> {
    match answer {
        GroundAnswer::Merged { merged } => Ok(merged.into()),
        _ => Err(odd()),
    }
}

fn undone(answer: GroundAnswer) -> Result<UndoneTurn, TreesError> {
    match answer {
        GroundAnswer::Undone { files, moves } => {
            Ok(UndoneTurn { files, moves: moves.into_iter().map(Into::into).collect() })
        }
        _ => Err(odd()),
    }
}

fn entered(answer: GroundAnswer) -> Result<EnteredTree, TreesError> {
    match answer {
        GroundAnswer::Entered { name, directory, branch, notices } => {
            let notices = notices.iter().map(|words| one_line(words)).collect();
            Ok(EnteredTree { name, directory: directory.0, branch, notices })
        }
        _ => Err(odd()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::super::WorkerSetup;
    use super::*;

    /// Workers of a program that is not there.
    fn workers(data: &Path) -> GroundWorkers {
        GroundWorkers::new(WorkerSetup {
            exe: data.join("homing"),
            data: data.to_path_buf(),
            locks: data.join("attempts"),
            wall: Arc::default(),
            spare: None,
            written_bytes_max: 1 << 20,
            store_bytes_max: 1 << 20,
            each_max: 1,
        })
    }

    /// A call of no session, behind the wall or not.
    type Call = fn(&GroundWorkers, SnapshotStoreSeen, bool) -> TreeReply<'_, ()>;

    /// Calls of no session run git in repositories that agents have written, as what is asked of one.
    #[tokio::test]
    async fn what_is_asked_of_no_session_is_behind_the_wall_if_somebody_says_so() {
        let data = tempfile::tempdir().unwrap();
        let store = SnapshotStoreSeen::default;
        for walled in [true, false] {
            let calls: [Call; 4] = [
                |workers, _, walled| {
                    Box::pin(async move { drop(workers.sweep(Duration::ZERO, walled).await) })
                },
                |workers, store, walled| {
                    Box::pin(async move { drop(workers.snapshot_share(store, Vec::new(), walled).await) })
                },
                |workers, store, walled| {
                    Box::pin(async move { drop(workers.let_snapshots_go(store, Vec::new(), walled).await) })
                },
                |workers, store, walled| {
                    Box::pin(async move { drop(workers.compact_snapshots(store, walled).await) })
                },
            ];
            for (number, call) in calls.iter().enumerate() {
                let workers = workers(data.path());
                let mut call = call(&workers, store(), walled);
                // As far as the worker that it asks for.
                assert!(!is_over_at_once(&mut call).await, "call {number}");
                let asked: Vec<_> = workers.0.running().by_key.keys().map(|key| key.2).collect();
                assert_eq!(asked, [walled], "call {number}");
            }
        }
    }

    /// Goes on once, and says whether that was all.
    async fn is_over_at_once(call: &mut TreeReply<'_, ()>) -> bool {
        std::future::poll_fn(|context| std::task::Poll::Ready(call.as_mut().poll(context).is_ready())).await
    }
}

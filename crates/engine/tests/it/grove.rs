//! Working trees of a test: nothing is stored on a disk, everything takes as long as a test says, and each act is noted.

use engine::{
    EnteredTree, MergeObstacle, MergedTree, OwnedSession, RemovedTree, SnapshotShare, SnapshotStoreSeen,
    TreeChange, TreeChanges, TreeFiles, TreeReply, TreeSeen, Trees, TreesError, UndoPreview, UndoStep,
    UndoneTurn, WorkProgress,
};
use kernel::{GroundPath, MergeHow, Moment, NewWorktree, SessionId, Turn, UndoFiles};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// Everything under `/srv` and every worktree is a tree.
#[derive(Debug, Default)]
pub(crate) struct Grove {
    /// The time each act takes.
    pub(crate) act_ms: AtomicU64,
    /// True if nothing can be seen.
    pub(crate) is_blind: AtomicBool,
    /// Files that were touched since, whatever is to be undone.
    pub(crate) trodden: Mutex<Vec<String>>,
    /// Files of which the agent has not said that it changed them.
    pub(crate) unsure: Mutex<Vec<String>>,
    /// When its worktrees were last used.
    pub(crate) used_ms: AtomicU64,
    seen: Mutex<BTreeSet<(SessionId, Turn, bool)>>,
    /// Snapshots: in which store, whose, when they were taken, and what they take.
    pub(crate) snapshots: Mutex<Vec<(&'static str, SessionId, Moment, u64)>>,
    /// Those of whom no more are taken.
    pub(crate) full: Mutex<BTreeMap<String, String>>,
    /// Rung when there are more snapshots.
    pub(crate) grown: Notify,
    /// The calls of no session, and whether each was behind the wall.
    pub(crate) of_none: Mutex<BTreeSet<(&'static str, bool)>>,
    here: Mutex<BTreeSet<(SessionId, String)>>,
    removed: Mutex<Vec<RemovedTree>>,
    notes: Mutex<Vec<String>>,
    /// The word of how far it is, whatever is under way.
    pub(crate) progress: watch::Sender<Option<WorkProgress>>,
}

impl Grove {
    /// The acts, in order. One that was not carried through has no second note.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap().clone()
    }

    async fn act(&self, what: String) {
        self.notes.lock().unwrap().push(format!("begin {what}"));
        tokio::time::sleep(Duration::from_millis(self.act_ms.load(Ordering::Relaxed))).await;
        self.notes.lock().unwrap().push(what);
    }

    fn share(&self, store: &str, sessions: &[SessionId]) -> SnapshotShare {
        let snapshots = self.snapshots.lock().unwrap();
        let own: Vec<_> = snapshots
            .iter()
            .filter(|(key, session, ..)| *key == store && sessions.contains(session))
            .collect();
        let bytes = own.iter().map(|(.., bytes)| bytes).sum();
        SnapshotShare { bytes, oldest: own.iter().map(|(_, _, at, _)| *at).min() }
    }

    fn can_see(&self) -> Result<(), TreesError> {
        if self.is_blind.load(Ordering::Relaxed) { Err(TreesError::Failed("fog".to_owned())) } else { Ok(()) }
    }
}

pub(crate) fn is_tree(directory: &str) -> bool {
    directory.starts_with("/srv") || directory.starts_with("/trees")
}

fn entered(name: String) -> EnteredTree {
    EnteredTree {
        directory: format!("/trees/{name}").into(),
        branch: format!("homing/{name}"),
        name,
        notices: Vec::new(),
    }
}

impl Grove {
    async fn remember(
        &self,
        session: SessionId,
        directory: &str,
        turn: Turn,
        is_after: bool,
        edits: Option<Vec<String>>,
    ) -> Result<bool, TreesError> {
        if !is_tree(directory) {
            self.notes.lock().unwrap().push(format!("no tree in {directory}"));
            return Ok(false);
        }
        let told = edits.filter(|edits| !edits.is_empty()).map(|edits| format!(" edits {}", edits.join(" ")));
        let side = if is_after { "After" } else { "Before" };
        self.act(format!("{side} {turn} in {directory}{}", told.unwrap_or_default())).await;
        self.can_see()?;
        self.seen.lock().unwrap().insert((session, turn, is_after));
        Ok(true)
    }
}

impl Trees for Grove {
    fn enter(
        &self,
        of: OwnedSession,
        directory: GroundPath,
        new: NewWorktree,
    ) -> TreeReply<'_, Result<EnteredTree, TreesError>> {
        let session = of.session;
        Box::pin(async move {
            self.act(format!("enter {} from {}", new.name, directory.for_readers())).await;
            if new.name == "broken" {
                return Err(TreesError::Refused("it is broken".to_owned()));
            }
            self.here.lock().unwrap().insert((session, new.name.clone()));
            Ok(entered(new.name))
        })
    }
    fn remember_before(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        turn: Turn,
    ) -> TreeReply<'_, Result<bool, TreesError>> {
        let directory = directory.for_readers().to_owned();
        Box::pin(async move { self.remember(of.session, &directory, turn, false, None).await })
    }
    fn remember_after(
        &self,
        of: OwnedSession,
        directory: &GroundPath,
        turn: Turn,
        edits: Option<Vec<String>>,
    ) -> TreeReply<'_, Result<Option<TreeChanges>, TreesError>> {
        let directory = directory.clone();
        Box::pin(async move {
            match self.remember(of.session, directory.for_readers(), turn, true, edits).await? {
                true => self.changes(of, &directory, turn, turn).await,
                false => Ok(None),
            }
        })
    }
    fn is_untracked(&self, directory: &GroundPath) -> bool {
        !is_tree(directory.for_readers())
    }
    fn changes(
        &self,
        of: OwnedSession,
        _: &GroundPath,
        first: Turn,
        last: Turn,
    ) -> TreeReply<'_, Result<Option<TreeChanges>, TreesError>> {
        let session = of.session;
        Box::pin(async move {
            self.act(format!("changes {last}")).await;
            self.can_see()?;
            let seen = self.seen.lock().unwrap();
            let both = [(first, false), (last, true)];
            let both = both.iter().all(|(turn, after)| seen.contains(&(session, *turn, *after)));
            let file = TreeChange { path: "a.txt".to_owned(), kind: "edited", plus: Some(1), minus: Some(2) };
            let patch = "x".repeat(100 * 1024);
            let changes = TreeChanges { files: vec![file], patch, ..TreeChanges::default() };
            Ok(both.then_some(changes))
        })
    }
    fn preview_undo(
        &self,
        _: OwnedSession,
        _: &GroundPath,
        turn: Turn,
    ) -> TreeReply<'_, Result<UndoPreview, TreesError>> {
        Box::pin(async move {
            self.act(format!("preview of undo {turn}")).await;
            self.can_see()?;
            let files = vec![UndoStep { path: "a.txt".to_owned(), kind: "restored" }];
            let touched = self.trodden.lock().unwrap().clone();
            let unsure = self.unsure.lock().unwrap().clone();
            Ok(UndoPreview { files, touched, unsure, ..UndoPreview::default() })
        })
    }
    fn redo(
        &self,
        _: OwnedSession,
        _: &GroundPath,
        turn: Turn,
    ) -> TreeReply<'_, Result<UndoneTurn, TreesError>> {
        Box::pin(async move {
            self.act(format!("redo {turn}")).await;
            Ok(UndoneTurn { files: vec!["a.txt".to_owned()], moves: Vec::new() })
        })
    }
    fn undo(
        &self,
        _: OwnedSession,
        _: &GroundPath,
        turn: Turn,
        files: UndoFiles,
    ) -> TreeReply<'_, Result<UndoneTurn, TreesError>> {
        Box::pin(async move {
            let which = match files {
                UndoFiles::Certain => String::new(),
                UndoFiles::All => " all".to_owned(),
                UndoFiles::Only(names) => format!(" only {}", names.join(" ")),
            };
            self.act(format!("undo {turn}{which}")).await;
            let trodden = self.trodden.lock().unwrap().join(", ");
            if !trodden.is_empty() {
                return Err(TreesError::Refused(format!("changed since: {trodden}")));
            }
            Ok(UndoneTurn { files: vec!["a.txt".to_owned()], moves: Vec::new() })
        })
    }
    fn fork(
        &self,
        _: OwnedSession,
        _: GroundPath,
        new: NewWorktree,
        _: SessionId,
        turn: Turn,
    ) -> TreeReply<'_, Result<EnteredTree, TreesError>> {
        Box::pin(async move {
            self.act(format!("fork after {turn}")).await;
            Ok(entered(new.name))
        })
    }
    fn names(&self) -> TreeReply<'_, Result<Vec<(SessionId, String)>, TreesError>> {
        let names = self.here.lock().unwrap().iter().cloned().collect();
        Box::pin(async { Ok(names) })
    }
    fn look(&self, of: OwnedSession, name: &str) -> TreeReply<'_, Result<Option<TreeSeen>, TreesError>> {
        let session = of.session;
        let here = self.here.lock().unwrap().contains(&(session, name.to_owned()));
        let used_at = Moment(self.used_ms.load(Ordering::Relaxed));
        let seen = here.then(|| seen(session, name, used_at));
        Box::pin(async { Ok(seen) })
    }
    fn removed(&self) -> TreeReply<'_, Result<Vec<RemovedTree>, TreesError>> {
        let removed = self.removed.lock().unwrap().iter().rev().cloned().collect();
        Box::pin(async { Ok(removed) })
    }
    fn remove(&self, of: OwnedSession, name: &str) -> TreeReply<'_, Result<RemovedTree, TreesError>> {
        let session = of.session;
        let name = name.to_owned();
        Box::pin(async move {
            self.act(format!("remove {name}")).await;
            self.here.lock().unwrap().remove(&(session, name.clone()));
            let mut removed = self.removed.lock().unwrap();
            let gone = RemovedTree {
                session,
                reference: format!("refs/homing/{name}/{}", removed.len()),
                name,
                repository: "/srv/shop".into(),
                branch: "topic".to_owned(),
                removed_at: Moment(1),
            };
            removed.push(gone.clone());
            Ok(gone)
        })
    }
    fn restore(&self, _: OwnedSession, gone: RemovedTree) -> TreeReply<'_, Result<EnteredTree, TreesError>> {
        Box::pin(async move {
            self.act(format!("restore {}", gone.name)).await;
            self.removed.lock().unwrap().retain(|other| *other != gone);
            self.here.lock().unwrap().insert((gone.session, gone.name.clone()));
            Ok(entered(gone.name))
        })
    }
    fn merge(
        &self,
        _: OwnedSession,
        name: &str,
        how: MergeHow,
        dry_run: bool,
    ) -> TreeReply<'_, Result<MergedTree, TreesError>> {
        let what = format!("{how:?} {name}").to_lowercase();
        let obstacle = (name == "torn").then(|| (MergeObstacle::Conflicts, vec!["a.txt".to_owned()]));
        let (into, files) = ("/srv/shop".to_owned(), vec!["a.txt".to_owned()]);
        let seen = MergedTree { into: into.into(), files, ..MergedTree::default() };
        Box::pin(async move {
            if dry_run {
                return Ok(MergedTree { obstacle, ..seen });
            }
            self.act(what).await;
            Ok(MergedTree { safety: Some("refs/homing/safety".to_owned()), ..seen })
        })
    }
    fn progress(&self, _: SessionId) -> watch::Receiver<Option<WorkProgress>> {
        self.progress.subscribe()
    }
    fn sweep(&self, _: Duration, walled: bool) -> TreeReply<'_, Result<usize, TreesError>> {
        self.of_none.lock().unwrap().insert(("sweep", walled));
        Box::pin(async {
            self.act("sweep".to_owned()).await;
            Ok(0)
        })
    }
    fn grown(&self) -> TreeReply<'_, ()> {
        Box::pin(self.grown.notified())
    }
    fn snapshot_stores(&self) -> TreeReply<'_, Result<Vec<SnapshotStoreSeen>, TreesError>> {
        let mut stores: BTreeMap<&str, SnapshotStoreSeen> = BTreeMap::new();
        for (key, session, _, bytes) in self.snapshots.lock().unwrap().iter() {
            let store = stores.entry(key).or_default();
            store.key = (*key).to_owned();
            store.bytes += bytes;
            if !store.sessions.contains(session) {
                store.sessions.push(*session);
            }
        }
        let stores = stores.into_values().collect();
        Box::pin(async { Ok(stores) })
    }
    fn snapshot_share(
        &self,
        store: SnapshotStoreSeen,
        sessions: Vec<SessionId>,
        walled: bool,
    ) -> TreeReply<'_, Result<SnapshotShare, TreesError>> {
        self.of_none.lock().unwrap().insert(("share", walled));
        let share = self.share(&store.key, &sessions);
        Box::pin(async move { Ok(share) })
    }
    fn let_snapshots_go(
        &self,
        store: SnapshotStoreSeen,
        sessions: Vec<SessionId>,
        walled: bool,
    ) -> TreeReply<'_, Result<SnapshotShare, TreesError>> {
        self.of_none.lock().unwrap().insert(("let go", walled));
        let oldest = self.share(&store.key, &sessions).oldest.unwrap();
        let is_gone = |key: &str, session: &SessionId, at: Moment| {
            key == store.key && sessions.contains(session) && at == oldest
        };
        self.snapshots.lock().unwrap().retain(|(key, session, at, _)| !is_gone(key, session, *at));
        let share = self.share(&store.key, &sessions);
        Box::pin(async move { Ok(share) })
    }
    fn compact_snapshots(&self, _: SnapshotStoreSeen, walled: bool) -> TreeReply<'_, Result<(), TreesError>> {
        self.of_none.lock().unwrap().insert(("compact", walled));
        Box::pin(async { Ok(()) })
    }
    fn set_full(&self, full: BTreeMap<String, String>) {
        *self.full.lock().unwrap() = full;
    }
    fn files(
        &self,
        _: OwnedSession,
        directory: &GroundPath,
        _: usize,
    ) -> TreeReply<'_, Result<TreeFiles, TreesError>> {
        let directory = directory.for_readers();
        let paths = if is_tree(directory) {
            vec![format!("{directory}/a")]
        } else {
            vec!["a.txt".to_owned(), "b/c.txt".to_owned()]
        };
        Box::pin(async { Ok(TreeFiles { paths, is_cut: false }) })
    }
}

fn seen(session: SessionId, name: &str, used_at: Moment) -> TreeSeen {
    TreeSeen {
        session,
        name: name.to_owned(),
        directory: format!("/trees/{name}").into(),
        repository: "/srv/shop".into(),
        branch: "topic".to_owned(),
        ahead: 1,
        behind: 2,
        dirty: 3,
        bytes: 4,
        made_at: Moment(0),
        used_at,
        seen_at: used_at,
        is_missing: false,
        is_deleted: false,
    }
}

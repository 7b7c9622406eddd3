//! Working trees of a test: nothing is stored on a disk, everything takes as long as a test says, and each act is noted.

use engine::{EnteredTree, NewTree, Side, TreeChange, TreeChanges, TreeReply, TreeSeen, Trees, UndoneTurn};
use kernel::{SessionId, Turn};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Everything under `/srv` and every worktree is a tree.
#[derive(Debug, Default)]
pub(crate) struct Grove {
    /// How long each act takes.
    pub(crate) act_ms: AtomicU64,
    /// Whether nothing can be seen.
    pub(crate) is_blind: AtomicBool,
    /// Files that were touched since, whatever is to be undone.
    pub(crate) trodden: Mutex<Vec<String>>,
    seen: Mutex<BTreeSet<(SessionId, Turn, bool)>>,
    notes: Mutex<Vec<String>>,
}

impl Grove {
    /// What was done, in order. What was not carried through has no second note.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap().clone()
    }

    async fn act(&self, what: String) {
        self.notes.lock().unwrap().push(format!("begin {what}"));
        tokio::time::sleep(Duration::from_millis(self.act_ms.load(Ordering::Relaxed))).await;
        self.notes.lock().unwrap().push(what);
    }

    fn can_see(&self) -> Result<(), String> {
        if self.is_blind.load(Ordering::Relaxed) { Err("fog".to_owned()) } else { Ok(()) }
    }
}

pub(crate) fn is_tree(directory: &str) -> bool {
    directory.starts_with("/srv") || directory.starts_with("/trees")
}

fn entered(name: String) -> EnteredTree {
    EnteredTree { directory: format!("/trees/{name}"), branch: format!("homing/{name}"), name }
}

impl Trees for Grove {
    fn enter(&self, _: SessionId, new: NewTree) -> TreeReply<'_, Result<EnteredTree, String>> {
        Box::pin(async move {
            self.act(format!("enter {} from {}", new.name, new.directory)).await;
            if new.name == "broken" { Err("it is broken".to_owned()) } else { Ok(entered(new.name)) }
        })
    }
    fn remember(
        &self,
        directory: &str,
        session: SessionId,
        turn: Turn,
        side: Side,
    ) -> TreeReply<'_, Result<bool, String>> {
        let directory = directory.to_owned();
        Box::pin(async move {
            if !is_tree(&directory) {
                self.notes.lock().unwrap().push(format!("no tree in {directory}"));
                return Ok(false);
            }
            self.act(format!("{side:?} {turn} in {directory}")).await;
            self.can_see()?;
            self.seen.lock().unwrap().insert((session, turn, side == Side::After));
            Ok(true)
        })
    }
    fn changes(
        &self,
        _: &str,
        session: SessionId,
        turn: Turn,
    ) -> TreeReply<'_, Result<Option<TreeChanges>, String>> {
        Box::pin(async move {
            self.act(format!("changes {turn}")).await;
            self.can_see()?;
            let seen = self.seen.lock().unwrap();
            let both = [false, true].iter().all(|after| seen.contains(&(session, turn, *after)));
            let file = TreeChange { path: "a.txt".to_owned(), kind: "edited", plus: Some(1), minus: Some(2) };
            let patch = "x".repeat(100 * 1024);
            Ok(both.then(|| TreeChanges { files: vec![file], patch, is_cut: false }))
        })
    }
    fn undo(&self, _: &str, _: SessionId, turn: Turn) -> TreeReply<'_, Result<UndoneTurn, String>> {
        Box::pin(async move {
            self.act(format!("undo {turn}")).await;
            let trodden = self.trodden.lock().unwrap().join(", ");
            if !trodden.is_empty() {
                return Err(format!("changed since: {trodden}"));
            }
            Ok(UndoneTurn { files: vec!["a.txt".to_owned()] })
        })
    }
    fn fork(
        &self,
        _: SessionId,
        new: NewTree,
        _: SessionId,
        turn: Turn,
    ) -> TreeReply<'_, Result<EnteredTree, String>> {
        Box::pin(async move {
            self.act(format!("fork after {turn}")).await;
            Ok(entered(new.name))
        })
    }
    fn list(&self) -> TreeReply<'_, Result<Vec<TreeSeen>, String>> {
        Box::pin(async { Ok(Vec::new()) })
    }
    fn remove(&self, name: &str) -> TreeReply<'_, Result<String, String>> {
        let name = name.to_owned();
        Box::pin(async { Ok(name) })
    }
    fn restore(&self, removed: &str) -> TreeReply<'_, Result<EnteredTree, String>> {
        let name = removed.to_owned();
        Box::pin(async { Ok(entered(name)) })
    }
    fn collect(&self, _: Vec<String>) -> TreeReply<'_, Result<Vec<String>, String>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

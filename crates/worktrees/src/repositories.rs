//! The directories beside its own that a session's ground is in, where a wall lists what is there: the repository of a worktree, as
//! our own record has it, and the working tree around any other directory.
//!
//! Git's own files in a worktree are the agent's, and not asked. Of directories only names are looked up.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kernel::{GroundPath, SessionId};
use processes::wall::{WorktreeRepositories, own_worktree, tree_around, worktree_root};

use crate::git::{
    RecordedRepository, WorktreeName, recorded_repositories, recorded_repository, stores_in, was_taken_over,
};
use crate::session_trees::own_places;

/// The records of a data directory.
#[derive(Debug, Clone)]
pub struct WorktreeRecords {
    data: PathBuf,
}

impl WorktreeRecords {
    /// Those of the data directory, by its true name.
    pub fn of(data: &Path) -> Self {
        Self { data: data.canonicalize().unwrap_or_else(|_| data.to_path_buf()) }
    }

    /// The directories that whoever works in that one needs besides.
    pub(crate) fn around(&self, directory: &GroundPath, homes: &[PathBuf]) -> BTreeSet<PathBuf> {
        let directory = Path::new(directory.for_holding());
        match worktree_root(&self.data, directory).as_deref().and_then(Path::file_name) {
            Some(name) => self.of_name(Path::new(name)),
            // A session's own is its own.
            None if directory.starts_with(&self.data) => BTreeSet::new(),
            None => {
                BTreeSet::from([tree_around(directory, homes).unwrap_or_else(|| directory.to_path_buf())])
            }
        }
    }

    /// Those of a worktree that a session calls so.
    pub(crate) fn of_worktree(&self, session: SessionId, name: &str) -> BTreeSet<PathBuf> {
        let name = WorktreeName::of(session, name);
        name.map(|name| self.of_name(Path::new(name.as_str()))).unwrap_or_default()
    }

    /// The root of the working tree that a session's worktree was made from.
    pub(crate) fn home_of(&self, session: SessionId, name: &str) -> Option<GroundPath> {
        let name = WorktreeName::of(session, name).ok()?;
        self.record(Path::new(name.as_str()))?.home.to_str().map(GroundPath::from)
    }

    /// The root of the worktree that a directory is in, if it is another session's.
    pub(crate) fn foreign_root(&self, session: SessionId, directory: &GroundPath) -> Option<PathBuf> {
        let root = worktree_root(&self.data, Path::new(directory.for_holding()))?;
        let is_own = own_worktree(session, root.file_name()?.to_str()?).is_some();
        (!is_own).then_some(root)
    }

    /// True if what older versions have left of a session in the repository around a directory was taken over. Only names are looked up,
    /// so of a linked working tree that somebody made by hand this is never known.
    pub(crate) fn was_taken_over(&self, session: SessionId, directory: &GroundPath) -> bool {
        let directory = Path::new(directory.for_holding());
        let common = match worktree_root(&self.data, directory) {
            Some(root) => self.common_of(&root),
            None => tree_around(directory, &[]).map(|tree| tree.join(".git")),
        };
        let places = own_places(&self.data);
        common.is_some_and(|common| places.iter().any(|own| was_taken_over(own, &common, session)))
    }

    /// The stores of snapshots of repositories that are none of these, nor inside of one.
    pub(crate) fn stores_besides(&self, is_there: impl Fn(&Path) -> bool) -> BTreeSet<PathBuf> {
        let all = own_places(&self.data).into_iter().flat_map(|own| stores_in(&own));
        all.filter(|(_, common)| !is_there(common)).map(|(store, _)| store).collect()
    }

    /// Those of all worktrees.
    pub(crate) fn all(&self) -> BTreeSet<PathBuf> {
        let all = own_places(&self.data).into_iter().flat_map(|own| recorded_repositories(&own));
        self.outside(all)
    }

    fn of_name(&self, name: &Path) -> BTreeSet<PathBuf> {
        self.outside(self.record(name))
    }

    fn record(&self, name: &Path) -> Option<RecordedRepository> {
        let name = name.to_str()?.parse().ok()?;
        own_places(&self.data).into_iter().find_map(|own| recorded_repository(&own, &name))
    }

    /// Of these, what is not in the data directory, whose parts a wall keeps by itself.
    fn outside(&self, all: impl IntoIterator<Item = RecordedRepository>) -> BTreeSet<PathBuf> {
        let each = |one: RecordedRepository| match one.common.starts_with(&one.home) {
            true => vec![one.home],
            false => vec![one.home, one.common],
        };
        let outside = |path: &PathBuf| path.is_absolute() && !path.starts_with(&self.data);
        all.into_iter().flat_map(each).filter(outside).collect()
    }
}

impl WorktreeRepositories for WorktreeRecords {
    fn common_of(&self, root: &Path) -> Option<PathBuf> {
        let root = worktree_root(&self.data, root).filter(|known| known == root)?;
        Some(self.record(Path::new(root.file_name()?))?.common)
    }
}

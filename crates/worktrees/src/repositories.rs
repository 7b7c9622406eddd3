//! The directories beside its own that a session's ground is in, where a wall lists what is there: the repository of a worktree, as
//! our own record has it, and the working tree around any other directory.
//!
//! Git's own files in a worktree are the agent's, and not asked. Of directories only names are looked up.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kernel::{GroundPath, SessionId};
use processes::wall::{WorktreeRepositories, tree_around};

use crate::git::{RecordedRepository, WorktreeName, recorded_repositories, recorded_repository};
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
        match directory.strip_prefix(self.data.join("worktrees")) {
            Ok(inside) => inside.iter().next().map(|name| self.of_name(Path::new(name))).unwrap_or_default(),
            // A session's own is its own.
            Err(_) if directory.starts_with(&self.data) => BTreeSet::new(),
            Err(_) => {
                BTreeSet::from([tree_around(directory, homes).unwrap_or_else(|| directory.to_path_buf())])
            }
        }
    }

    /// Those of a worktree that a session calls so.
    pub(crate) fn of_worktree(&self, session: SessionId, name: &str) -> BTreeSet<PathBuf> {
        let name = WorktreeName::of(session, name);
        name.map(|name| self.of_name(Path::new(name.as_str()))).unwrap_or_default()
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
        let inside = root.strip_prefix(self.data.join("worktrees")).ok()?;
        Some(self.record(inside)?.common)
    }
}

//! The room that worktrees take on the disk, for each person: whoever has too much of it makes no more.
//!
//! What a worktree takes was noted when a worker last looked at it, after a turn in it. One that nobody has looked at yet is looked at
//! when it matters, so that many that were just made are not free.

use crate::engine_ports::EnginePorts;
use crate::{ScopeError, TreeSeen, UnavailableError};
use kernel::{OrgId, PersonId, SessionId};

/// A worktree of somebody's, and what is noted of it.
struct OwnTree {
    session: SessionId,
    name: String,
    noted: Option<TreeSeen>,
}

impl EnginePorts {
    /// Looks if somebody may have one more worktree.
    pub(crate) async fn room_for_worktree<E>(&self, org: OrgId, owner: PersonId) -> Result<(), E>
    where
        E: From<ScopeError> + From<UnavailableError>,
    {
        let limit = self.limits.worktree_bytes_per_person_max;
        let mut used: u64 = 0;
        for tree in self.trees_of(org, owner).await? {
            let node = self.cluster.node_of(tree.session);
            let seen = match tree.noted {
                Some(noted) => Some(noted),
                None => {
                    node.worktree(tree.session, tree.name).await.map_err(UnavailableError::Unavailable)?
                }
            };
            used += seen.map_or(0, |seen| seen.bytes);
        }
        if used >= limit { Err(ScopeError::TooManyTreeBytes { used, limit }.into()) } else { Ok(()) }
    }

    /// The room that somebody's worktrees took when they were last looked at.
    pub(crate) async fn tree_bytes_of(&self, org: OrgId, owner: PersonId) -> Result<u64, UnavailableError> {
        let trees = self.trees_of(org, owner).await?;
        Ok(trees.into_iter().filter_map(|tree| tree.noted).map(|seen| seen.bytes).sum())
    }

    /// The room that is left for worktrees of a session's owner; none if there is no bound.
    pub(crate) async fn tree_bytes_left(&self, session: SessionId) -> Result<Option<u64>, UnavailableError> {
        let limit = self.limits.worktree_bytes_per_person_max;
        let Some(record) = self.record(session).await?.filter(|_| limit < u64::MAX) else { return Ok(None) };
        Ok(Some(limit.saturating_sub(self.tree_bytes_of(record.org, record.owner).await?)))
    }

    /// True if a session has a worktree of this name.
    pub(crate) async fn has_worktree(
        &self,
        session: SessionId,
        name: &str,
    ) -> Result<bool, UnavailableError> {
        let node = self.cluster.node_of(session);
        let names = node.worktrees().await.map_err(UnavailableError::Unavailable)?;
        Ok(names.iter().any(|(of, known)| *of == session && known == name))
    }

    async fn trees_of(&self, org: OrgId, owner: PersonId) -> Result<Vec<OwnTree>, UnavailableError> {
        let mut own = Vec::new();
        for node in self.cluster.nodes() {
            let names = node.worktrees().await.map_err(UnavailableError::Unavailable)?;
            if names.is_empty() {
                continue;
            }
            let mut noted = node.worktrees_seen().await.map_err(UnavailableError::Unavailable)?;
            for (session, name) in names {
                let record = self.record(session).await?;
                if record.is_some_and(|record| (record.org, record.owner) == (org, owner)) {
                    let noted = noted.remove(&(session, name.clone()));
                    own.push(OwnTree { session, name, noted });
                }
            }
        }
        Ok(own)
    }
}

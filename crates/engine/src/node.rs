//! This node, as the cluster asks something of it.
//!
//! It holds the engine weakly: a cluster that is still there when the engine has gone finds nobody.

use crate::cluster::{ClusterReply, Node, Ring};
use crate::engine::WeakEngine;
use crate::{
    Engine, MergedTree, OwnedSession, PatchPlace, RemovedTree, SeenTrees, SnapshotStoreSeen, TreeChanges,
    TreeFiles, TreePatch, TreeSeen, TreeSinceBase, Trees, TreesError, UndoPreview,
};
use agent::Background;
use kernel::{Errand, GroundPath, MergeHow, PersonId, Return, SessionId, Turn};
use std::sync::Arc;

/// The reason for whoever asks when the engine has gone.
const GONE: &str = "this node has gone down";

/// This node.
#[derive(Debug)]
pub(crate) struct LocalNode(pub(crate) WeakEngine);

impl LocalNode {
    fn engine(&self) -> Result<Engine, String> {
        self.0.upgrade().ok_or_else(|| GONE.to_owned())
    }

    /// The trees, and whose this session is by now.
    async fn ground_of(&self, session: SessionId) -> Result<(Arc<dyn Trees>, OwnedSession), String> {
        let engine = self.engine()?;
        let of = engine.owned(session).await.map_err(|why| why.to_string())?;
        Ok((engine.runner_ports().trees.clone(), of))
    }
}

impl Node for LocalNode {
    fn rung(&self, session: SessionId, ring: Ring) {
        if let Ok(engine) = self.engine() {
            engine.rung(session, ring);
        }
    }

    fn confirm(&self, session: SessionId, errand: Errand, came: Return) -> ClusterReply<'_, Option<bool>> {
        Box::pin(async move { self.engine().ok()?.confirm(session, errand, came).await.ok() })
    }

    fn background(&self, session: SessionId, agent: String) -> ClusterReply<'_, Background> {
        Box::pin(async move {
            let agent = self.engine().ok().and_then(|engine| engine.agents_by_name().get(&agent).cloned());
            match agent {
                Some(agent) => agent.background(session).await,
                None => Background::default(),
            }
        })
    }

    fn files(
        &self,
        directory: GroundPath,
        session: SessionId,
        count_max: usize,
    ) -> ClusterReply<'_, Result<TreeFiles, String>> {
        Box::pin(async move {
            let (trees, of) = self.ground_of(session).await?;
            Ok(trees.files(of, &directory, count_max).await?)
        })
    }

    fn directories(
        &self,
        directory: GroundPath,
        by: PersonId,
        count_max: usize,
    ) -> ClusterReply<'_, Result<TreeFiles, TreesError>> {
        Box::pin(async move {
            let engine = self.engine().map_err(TreesError::Failed)?;
            let walled = engine.rights_cache().needs_wall().await;
            let walled = walled.map_err(|why| TreesError::Failed(why.to_string()))?;
            // A worker is of a session; this one is of none, and each person's is another one.
            let (session, whose) = (SessionId::from_bits(by.bits()), by.to_string());
            let of = OwnedSession { session, whose, walled, tree_bytes_left: None };
            engine.runner_ports().trees.directories(of, &directory, count_max).await
        })
    }

    fn is_untracked(&self, directory: GroundPath) -> ClusterReply<'_, bool> {
        // Nobody is left to ask when the engine goes; then it is not certain.
        let is_untracked = |engine: Engine| engine.runner_ports().trees.is_untracked(&directory);
        let is_untracked = self.engine().is_ok_and(is_untracked);
        Box::pin(async move { is_untracked })
    }

    fn changes(
        &self,
        directory: GroundPath,
        session: SessionId,
        first: Turn,
        last: Turn,
    ) -> ClusterReply<'_, Result<Option<TreeChanges>, String>> {
        Box::pin(async move {
            let (trees, of) = self.ground_of(session).await?;
            Ok(trees.changes(of, &directory, first, last).await?)
        })
    }

    fn file_changes(
        &self,
        directory: GroundPath,
        session: SessionId,
        turns: (Turn, Turn),
        place: PatchPlace,
    ) -> ClusterReply<'_, Result<Option<TreePatch>, String>> {
        Box::pin(async move {
            let (trees, of) = self.ground_of(session).await?;
            Ok(trees.file_changes(of, &directory, turns, place).await?)
        })
    }

    fn changes_since_base(
        &self,
        session: SessionId,
        name: String,
    ) -> ClusterReply<'_, Result<TreeSinceBase, TreesError>> {
        Box::pin(async move {
            let (trees, of) = self.ground_of(session).await.map_err(TreesError::Failed)?;
            trees.changes_since_base(of, &name).await
        })
    }

    fn file_since_base(
        &self,
        session: SessionId,
        name: String,
        place: PatchPlace,
    ) -> ClusterReply<'_, Result<TreePatch, TreesError>> {
        Box::pin(async move {
            let (trees, of) = self.ground_of(session).await.map_err(TreesError::Failed)?;
            trees.file_since_base(of, &name, place).await
        })
    }

    fn preview_undo(
        &self,
        directory: GroundPath,
        session: SessionId,
        turn: Turn,
    ) -> ClusterReply<'_, Result<UndoPreview, String>> {
        Box::pin(async move {
            let (trees, of) = self.ground_of(session).await?;
            match trees.preview_undo(of, &directory, turn).await {
                Ok(preview) => Ok(preview),
                // No is an answer to whoever asks what would happen.
                Err(TreesError::Refused(why)) => {
                    Ok(UndoPreview { why_not: Some(why), ..UndoPreview::default() })
                }
                Err(why) => Err(why.into()),
            }
        })
    }

    fn worktrees(&self) -> ClusterReply<'_, Result<Vec<(SessionId, String)>, String>> {
        Box::pin(async move { Ok(self.engine()?.runner_ports().trees.names().await?) })
    }

    fn worktrees_seen(&self) -> ClusterReply<'_, Result<SeenTrees, String>> {
        Box::pin(async move { Ok(self.engine()?.runner_ports().trees.seen().await?) })
    }

    fn snapshot_stores(&self) -> ClusterReply<'_, Result<Vec<SnapshotStoreSeen>, String>> {
        Box::pin(async move { Ok(self.engine()?.runner_ports().trees.snapshot_stores().await?) })
    }

    fn worktree(
        &self,
        session: SessionId,
        name: String,
    ) -> ClusterReply<'_, Result<Option<TreeSeen>, String>> {
        Box::pin(async move {
            let (trees, of) = self.ground_of(session).await?;
            Ok(trees.look(of, &name).await?)
        })
    }

    fn preview_merge(
        &self,
        session: SessionId,
        name: String,
        how: MergeHow,
    ) -> ClusterReply<'_, Result<MergedTree, TreesError>> {
        Box::pin(async move {
            let (trees, of) = self.ground_of(session).await.map_err(TreesError::Failed)?;
            trees.merge(of, &name, how, true).await
        })
    }

    fn removed(&self) -> ClusterReply<'_, Result<Vec<RemovedTree>, String>> {
        Box::pin(async move { Ok(self.engine()?.runner_ports().trees.removed().await?) })
    }
}

//! Bringing into the person's repository what something that they asked for needs there, and nothing else: the commits and the
//! staged files of a worktree that is made from a snapshot.
//!
//! Mostly it is all there. What their git has pruned meanwhile comes from our store, in one pack, and is looked through from
//! end to end before anything refers to it.

use super::Git;
use super::error::GitError;
use super::repository::Repository;
use super::shadow::ShadowRepository;

/// Why a worktree cannot be made from a snapshot.
const LOST: &str =
    "what the snapshot was taken on is not in it any more, nor with what we keep of it; run `git fsck` in it";

impl Git {
    /// Makes sure that the repository has what a worktree as in this snapshot needs.
    pub(super) async fn bring_for(&self, to: &Repository, commit: &str) -> Result<(), GitError> {
        let shadow = self.shadow(to)?;
        let told = self.told(&shadow, commit).await?;
        let staged = told.staged.map(|staged| staged.tree().to_owned());
        let wanted: Vec<String> = told.head.into_iter().chain(staged).chain(told.commits).collect();
        self.bring(to, &shadow, &wanted).await
    }

    pub(super) async fn bring(
        &self,
        to: &Repository,
        shadow: &ShadowRepository,
        wanted: &[String],
    ) -> Result<(), GitError> {
        if wanted.is_empty() || self.are_there(shadow, wanted).await? {
            return Ok(());
        }
        let mut asked: String = wanted.iter().flat_map(|id| [id.as_str(), "\n"]).collect();
        let theirs = self.plain(shadow, "for-each-ref").words(["--format=^%(objectname)"]).said().await?;
        asked.push_str(&String::from_utf8_lossy(&theirs.out));
        let pack = self.raw(shadow, "pack-objects").words(["--revs", "--quiet", "--non-empty"]);
        let pack = pack.words(["--window=0", "--threads=1"]).durable(true).say(asked.into_bytes());
        let said = pack.word(to.common.join("objects/pack/pack")).said().await?;
        if said.was_killed() {
            return Err(GitError::Git { command: "git pack-objects".into(), said: said.complaint });
        }
        match self.are_there(shadow, wanted).await? {
            true => Ok(()),
            false => Err(GitError::strange(&to.top, LOST)),
        }
    }

    /// True if the person's repository has these with everything they reach.
    async fn are_there(&self, shadow: &ShadowRepository, wanted: &[String]) -> Result<bool, GitError> {
        let look = || {
            let call = self.plain(shadow, "rev-list").words(["--objects", "--quiet"]);
            wanted.iter().fold(call, |call, id| call.word(id))
        };
        if look().words(["--not", "--all"]).said().await?.code == Some(0) {
            return Ok(true);
        }
        // One of their refs may lead nowhere: that is no reason.
        Ok(look().said().await?.code == Some(0))
    }
}

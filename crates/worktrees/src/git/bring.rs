//! Bringing into the person's repository what something that they asked for needs there, and nothing else: the commits and the
//! staged files of a worktree that is made from a snapshot.
//!
//! Mostly it is all there. What their git has pruned meanwhile comes from our store, in one pack, and is looked through from
//! end to end before anything refers to it.

use std::path::Path;
use std::{fs, io};

use engine::WorkPhase;

use super::Git;
use super::error::GitError;
use super::names::is_object_id;
use super::repository::Repository;
use super::shadow::ShadowRepository;

/// Why a worktree cannot be made from a snapshot.
const LOST: &str =
    "what the snapshot was taken on is not in it any more, nor with what we keep of it; run `git fsck` in it";

/// The beginning of the names of packs that are on their way.
const CARRIED: &str = "carried";

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
        self.carry_over(shadow, asked).await?;
        match self.are_there(shadow, wanted).await? {
            true => Ok(()),
            false => Err(GitError::strange(&to.top, LOST)),
        }
    }

    /// Packs it in our own directory and hands the pack to the person's repository: nothing can be moved from one to the other,
    /// for behind a wall they are mounts of their own, and they may be on different disks. Something that is missing is seen later.
    async fn carry_over(&self, shadow: &ShadowRepository, asked: String) -> Result<(), GitError> {
        self.phase(WorkPhase::Copying);
        let base = shadow.dir.join(CARRIED);
        clear(&shadow.dir);
        let pack = self.raw(shadow, "pack-objects").words(["--revs", "--quiet", "--non-empty"]);
        let pack = pack.words(["--window=0", "--threads=1"]).say(asked.into_bytes()).word(&base);
        let said = pack.said().await?;
        let name = String::from_utf8_lossy(&said.out).trim_end().to_owned();
        if said.code == Some(0) && is_object_id(&name) {
            let path = shadow.dir.join(format!("{CARRIED}-{name}.pack"));
            let mut file = fs::File::open(&path).map_err(GitError::disk(&path))?;
            let write = move |to: &mut dyn io::Write| io::copy(&mut file, to).map(drop);
            self.plain(shadow, "index-pack").words(["--stdin"]).durable(true).write(write).out().await?;
        }
        clear(&shadow.dir);
        Ok(())
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

/// Takes away what was carried, or somebody was carrying when they were killed. The repository is held.
fn clear(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(CARRIED) {
            let _ = fs::remove_file(entry.path()); // What stays goes the next time.
        }
    }
}

//! Bringing a worktree's work back to the working tree that it was made from.
//!
//! A *merge* makes the worktree's branch part of the branch there, as `git merge` would; an *apply* makes everything that was done in
//! the worktree, committed or not, uncommitted changes there. Both are worked out in our own store first (`merge_steps`): conflicts,
//! files there that somebody has changed, and work that is not committed are named, and nothing is changed. Then a journal says what is to
//! become of each file and of the branch, and it is done (`merge_files` writes them): git's own lock of the index is held from before
//! the first file until the index is the new one. Whoever is killed in between leaves the journal, and the next one goes on
//! with it to its end.
//!
//! No hook is run, no filter, and no merge driver: nothing that a repository says is ever executed here.

use std::fs;
use std::path::{Path, PathBuf};

use engine::WorkPhase;
use kernel::MergeHow;

use super::Git;
use super::again::Damage;
use super::error::{GitError, MergeError};
use super::merge_files::{MergeJournal, unlock_index};
use super::names::{SnapshotName, WorktreeName, is_object_id};
use super::record::{RecordState, WorktreeRecord};
use super::repository::Repository;
use super::shadow::{HeldLock, ShadowRepository};
use super::snapshot::path_of;
use super::undo::PathChanges;

/// Work that came back, or would.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The root of the working tree that it came to.
    pub into: PathBuf,
    /// The branch there, without `refs/heads/`.
    pub branch: Option<String>,
    /// The files there that changed by it, from the root; none if it was all there.
    pub files: Vec<PathBuf>,
    /// The branch's commit before and after a merge that moved it.
    pub moved: Option<(String, String)>,
    /// The hidden ref that keeps everything as it was there just before; none if nothing has changed.
    pub safety: Option<String>,
    /// The parts of the work that did not come along, in words.
    pub left_out: Vec<String>,
}

/// The two sides of a merge, held.
pub(super) struct MergeSides {
    pub(super) name: WorktreeName,
    pub(super) home: Repository,
    pub(super) shadow: ShadowRepository,
    made: Repository,
    tree_shadow: ShadowRepository,
    _held: [HeldLock; 3],
}

/// A merge that nothing stands in the way of, before anything is changed.
pub(super) struct MergePlan {
    /// The commit and the branch of the working tree that it comes to.
    pub(super) head: String,
    pub(super) branch: Option<String>,
    /// The commit that the branch becomes.
    pub(super) commit: Option<String>,
    /// The files that are otherwise after it, as they are in commits.
    pub(super) changes: PathChanges,
    /// The tree that the files there are now, byte for byte, and the one that they become.
    pub(super) now: String,
    pub(super) target: String,
    pub(super) left_out: Vec<String>,
}

impl Git {
    /// Brings the work of a worktree back. `safety` names the snapshot that is taken there first. Asked again it goes on where it was
    /// cut short, or finds that all is there.
    pub async fn merge(
        &self,
        name: &WorktreeName,
        how: MergeHow,
        safety: &SnapshotName,
    ) -> Result<Merged, MergeError> {
        let sides = self.merge_sides(name).await?;
        let begun = match MergeJournal::read(&sides.shadow) {
            Some(begun) => {
                let is_it = begun.is_of(name, how);
                Some(self.go_on_merging(&sides, begun, safety).await?).filter(|_| is_it)
            }
            // Somebody was killed before anything was noted.
            None => unlock_index(&sides.home).map(|()| None)?,
        };
        let plan = self.plan_merge(&sides, how).await?;
        if plan.target == plan.now && plan.commit.is_none() {
            return Ok(begun.unwrap_or_else(|| plan.told(&sides, Vec::new())));
        }
        let journal = self.begin_merging(&sides, how, &plan).await?;
        let done = self.go_on_merging(&sides, journal, safety).await?;
        Ok(Merged { left_out: plan.left_out, ..done })
    }

    /// The same without changing anything: what would come back.
    pub async fn preview_merge(&self, name: &WorktreeName, how: MergeHow) -> Result<Merged, MergeError> {
        let sides = self.merge_sides(name).await?;
        if MergeJournal::read(&sides.shadow).is_some() {
            // It is gone on with first.
            return Ok(sides.nothing());
        }
        let plan = self.plan_merge(&sides, how).await?;
        let files = self.steps(&sides.shadow, &plan.now, &plan.target).await?;
        Ok(plan.told(&sides, files.keys().map(|path| path_of(path)).collect()))
    }

    /// Holds both working trees. A worktree that was deleted by hand is made whole first.
    async fn merge_sides(&self, name: &WorktreeName) -> Result<MergeSides, GitError> {
        let none = || GitError::NoSuchWorktree(name.clone());
        let record = self.record(name)?.ok_or_else(none)?;
        self.check_place(name, &record)?;
        let root = self.worktree(name);
        let common = self.hold(&record.common, &record.common).await?;
        let held = self.hold(&root, &record.common).await?;
        let record = self.plan_if_damaged(name, self.record(name)?.ok_or_else(none)?).await?;
        let home = self.home_repository(&record)?;
        match record.state {
            RecordState::Making => self.make(name, record.clone(), &home).await?,
            RecordState::Made => {}
            RecordState::Removing { .. } => return Err(none()),
        }
        let made = Repository::must_be_around(&root)?;
        let is_its_own = made.top == root && made.common == record.common && made.git_dir == record.admin();
        if !is_its_own || self.damage(name, &record) != Damage::None {
            return Err(GitError::InTheWay(root.join(".git")));
        }
        let held_home = self.hold(&home.top, &record.common).await?;
        let (shadow, tree_shadow) = (self.shadow_held(&home)?, self.shadow_held(&made)?);
        let held = [common, held, held_home];
        Ok(MergeSides { name: name.clone(), home, shadow, made, tree_shadow, _held: held })
    }

    fn home_repository(&self, record: &WorktreeRecord) -> Result<Repository, GitError> {
        let home = Repository::must_be_around(&record.home)?;
        if home.top != record.home || home.common != record.common {
            return Err(GitError::LeadsElsewhere(record.home.clone()));
        }
        Ok(home)
    }

    async fn plan_merge(&self, sides: &MergeSides, how: MergeHow) -> Result<MergePlan, MergeError> {
        self.phase(WorkPhase::Looking);
        let MergeSides { home, shadow, made, tree_shadow, .. } = sides;
        if let Some(what) = under_way(home) {
            return Err(MergeError::UnderWay { what, at: home.top.clone() });
        }
        let no_commit = |at: &Path| GitError::strange(at, "it has no commit yet; make one first");
        let head = self.find_one(shadow, "HEAD").await?.ok_or_else(|| no_commit(&home.top))?;
        let tip = self.find_one(tree_shadow, "HEAD").await?.ok_or_else(|| no_commit(&made.top))?;
        let branch = home.branch().filter(|branch| branch.starts_with("refs/heads/"));
        let (mut commit, mut left_out) = (None, Vec::new());
        let tree = match how {
            MergeHow::Merge => {
                let files = self.status(made, tree_shadow).await?;
                if !files.is_empty() {
                    let files = files.into_iter().map(|(_, path)| path_of(&path)).collect();
                    return Err(MergeError::Uncommitted { files });
                }
                let branch = branch.as_deref().ok_or_else(|| MergeError::NoBranch(home.top.clone()))?;
                let (tree, merged) = self.merged_commit(sides, &head, &tip, branch).await?;
                commit = merged;
                tree
            }
            MergeHow::Apply => {
                let (work, unseen) = self.work_of(sides, &tip).await?;
                left_out = unseen;
                self.merged_tree(shadow, &head, &work).await?
            }
        };
        let changes = self.steps(shadow, &head, &tree).await?;
        let now = self.trees(home, shadow, true).await?.tree;
        let target = self.tree_of_files(home, shadow, &tree, &changes).await?;
        let steps = self.steps(shadow, &now, &target).await?;
        self.must_be_free(home, shadow, &changes, &steps).await?;
        Ok(MergePlan { head, branch, commit, changes, now, target, left_out })
    }

    /// The tree that a merge gives, and the commit that the branch becomes; no commit if it has everything already.
    async fn merged_commit(
        &self,
        sides: &MergeSides,
        head: &str,
        tip: &str,
        branch: &str,
    ) -> Result<(String, Option<String>), MergeError> {
        let shadow = &sides.shadow;
        if self.is_ancestor(shadow, tip, head).await? {
            return Ok((format!("{head}^{{tree}}"), None));
        }
        if self.is_ancestor(shadow, head, tip).await? {
            return Ok((format!("{tip}^{{tree}}"), Some(tip.to_owned())));
        }
        let tree = self.merged_tree(shadow, head, tip).await?;
        let from = sides.made.branch();
        let from = from.as_deref().and_then(|from| from.strip_prefix("refs/heads/"));
        let from = from.map_or_else(|| format!("commit '{tip}'"), |from| format!("branch '{from}'"));
        let into = branch.strip_prefix("refs/heads/").unwrap_or(branch);
        let call = self.raw(shadow, "commit-tree").word(&tree).words(["-p", head, "-p", tip]);
        let call = call.identity(self.identity(&sides.home)).durable(true);
        let commit = call.say(format!("Merge {from} into {into}\n").into_bytes()).text().await?;
        Ok((tree, Some(commit)))
    }

    async fn is_ancestor(&self, shadow: &ShadowRepository, one: &str, other: &str) -> Result<bool, GitError> {
        let look = self.raw(shadow, "merge-base").words(["--is-ancestor", one, other]);
        Ok(look.said().await?.code == Some(0))
    }

    /// The tree that two commits give together. It is written into our store, whatever becomes of it.
    async fn merged_tree(
        &self,
        shadow: &ShadowRepository,
        ours: &str,
        theirs: &str,
    ) -> Result<String, MergeError> {
        let call =
            self.stored(shadow, "merge-tree").words(["--write-tree", "-z", "--name-only", "--no-messages"]);
        let said = call.words([ours, theirs]).durable(true).said().await?;
        let mut parts = said.out.split(|byte| *byte == 0).filter(|part| !part.is_empty());
        let tree = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
        match said.code {
            Some(0) if is_object_id(&tree) => Ok(tree),
            Some(1) if is_object_id(&tree) => {
                let mut files: Vec<PathBuf> = parts.map(path_of).collect();
                files.dedup();
                Err(MergeError::Conflicts { files })
            }
            _ if said.complaint.contains("unrelated histories") => {
                let why = "the branch there and the worktree's have no commit in common";
                Err(GitError::strange(&shadow.store.common, why).into())
            }
            _ => Err(GitError::Git { command: "git merge-tree".into(), said: said.complaint }.into()),
        }
    }

    /// Everything that was done in the worktree as one commit in our store, and what could not be taken along.
    async fn work_of(&self, sides: &MergeSides, tip: &str) -> Result<(String, Vec<String>), GitError> {
        let (made, shadow) = (&sides.made, &sides.tree_shadow);
        let seen = self.trees(made, shadow, true).await?;
        let changed = self.steps(shadow, tip, &seen.tree).await?;
        let large = self.bounds.untracked_bytes_max;
        let mut left_out: Vec<String> = seen.unseen.iter().map(|part| part.words(large)).collect();
        let (mut gone, mut there) = (Vec::new(), Vec::new());
        for (path, step) in changed {
            if step.after.is_submodule() || step.before.is_submodule() {
                left_out.push(format!("{}: the commit of a submodule", path_of(&path).display()));
                continue;
            }
            let paths = if step.after.is_there() { &mut there } else { &mut gone };
            paths.extend(path);
            paths.push(0);
        }
        let index = shadow.plain.join("index.work");
        let _ = fs::remove_file(&index);
        self.stored(shadow, "read-tree").words([tip]).index(&index).out().await?;
        let settings = self.carried(made, shadow).await?;
        for (option, paths) in [("--force-remove", gone), ("--add", there)] {
            let add = self.stored(shadow, "update-index").words([option, "--replace", "-z", "--stdin"]);
            let add = add.settings(&settings).work_tree(&made.top).index(&index).say(paths);
            add.durable(true).out().await?;
        }
        let tree = self.stored(shadow, "write-tree").index(&index).durable(true).text().await?;
        let work = self.commit(shadow, &tree, &[tip.to_owned()], "work\n", true)?;
        Ok((work, left_out))
    }
}

impl MergePlan {
    fn told(&self, sides: &MergeSides, files: Vec<PathBuf>) -> Merged {
        let branch = self.branch.as_deref().and_then(super::list::short);
        let moved = self.commit.clone().map(|commit| (self.head.clone(), commit));
        Merged { branch, files, moved, left_out: self.left_out.clone(), ..sides.nothing() }
    }
}

impl MergeSides {
    fn nothing(&self) -> Merged {
        let branch = self.home.branch().as_deref().and_then(super::list::short);
        let (into, files, left_out) = (self.home.top.clone(), Vec::new(), Vec::new());
        Merged { into, branch, files, moved: None, safety: None, left_out }
    }
}

/// The thing that somebody has begun there and not ended.
fn under_way(home: &Repository) -> Option<&'static str> {
    let known = [
        ("MERGE_HEAD", "a merge"),
        ("rebase-merge", "a rebase"),
        ("rebase-apply", "a rebase"),
        ("CHERRY_PICK_HEAD", "a cherry-pick"),
        ("REVERT_HEAD", "a revert"),
    ];
    let is_there = |name: &str| home.git_dir.join(name).symlink_metadata().is_ok();
    known.into_iter().find(|(name, _)| is_there(name)).map(|(_, what)| what)
}

//! A working tree as a commit on a hidden ref of our store (`store`), taken without touching anything of the person's.
//!
//! The commit's tree is every file that is not ignored, byte for byte; its parents are HEAD, what was staged (if that is
//! in neither), and for a removal what a tree cannot hold (`unversioned`). The index we keep in the raw shadow belongs to the last
//! snapshot, so the cost of the next one is a look at each file and reading those that changed. Once all of the last one is in
//! our store (`copy`), the next is written without the person's objects: then its files are whole from the beginning, and so are
//! those of the one after it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use engine::WorkPhase;

use super::error::GitError;
use super::names::{SnapshotName, check_hidden, is_object_id};
use super::objects::{SeenCommit, commit_text, write_commit};
use super::repository::{Repository, bytes_path, read_line, read_own};
use super::run::GitCall;
use super::shadow::{ShadowRepository, copy_index, copy_whole_index, write_note};
use super::snapshot_header::{SnapshotHeader, Staged};
use super::sorted_paths::sort;
use super::store::SnapshotStore;
use super::unseen::{UnseenPart, UnseenReason, bounded};
use super::{Git, blocking, now_ms, own_look};

/// The snapshots of one name that are kept apart; each is from a removal or an undo of the same turn.
const APART_MAX: usize = 10_000;

/// The note of the last snapshot, in the shadow.
const LAST: &str = "last.json";
/// It stands in the shadow while there are names in the working tree that our index does not have.
const OTHERS: &str = "others";

/// A working tree at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The common directory of the repository it is in.
    pub repository: PathBuf,
    /// The hidden ref.
    pub reference: String,
    pub commit: String,
    pub tree: String,
}

/// The additions to a snapshot's commit beside the working tree.
#[derive(Debug, Default)]
pub(super) struct SnapshotExtras {
    /// A commit with what a tree cannot hold.
    pub(super) kept: Option<String>,
    /// Commits that nothing else might hold from now on.
    pub(super) commits: Vec<String>,
    pub(super) is_durable: bool,
    /// The line of a note (`note`).
    pub(super) note: Option<String>,
}

/// The parts of a snapshot's commit.
#[derive(Debug)]
pub(super) struct SnapshotTrees {
    pub(super) tree: String,
    is_here: bool,
    staged: Option<Staged>,
    index: Option<IndexStamp>,
    pub(super) unseen: Vec<UnseenPart>,
    submodules: Vec<UnseenPart>,
    pub(super) head: Option<String>,
    head_tree: Option<String>,
    /// HEAD from outside, as long as its commit is this one.
    head_stamp: Option<HeadStamp>,
    /// Our own index before the look; none if it was made anew.
    pub(super) ours_before: Option<IndexStamp>,
    /// Files that look otherwise from outside than the index had them.
    pub(super) touched: BTreeSet<Vec<u8>>,
}

/// The memory of the last snapshot of a working tree. Only to save time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct LastSnapshot {
    /// As long as this ref is this commit, no object in our index can have been pruned.
    pub(super) reference: String,
    pub(super) commit: String,
    pub(super) tree: String,
    staged: Option<Staged>,
    index: Option<IndexStamp>,
    #[serde(default)]
    submodules: Vec<UnseenPart>,
    /// It was written without the person's objects, so all of its tree is in our store.
    #[serde(default)]
    is_here: bool,
    /// Our own index as it was then. If it looks otherwise, it is ahead of `tree`.
    ours: Option<IndexStamp>,
    /// HEAD as it was then, with its commit and tree: as long as it looks so, git is not asked for them.
    #[serde(default)]
    head_stamp: Option<HeadStamp>,
    #[serde(default)]
    head: Option<String>,
    #[serde(default)]
    head_tree: Option<String>,
}

impl LastSnapshot {
    fn known_head(&self) -> Option<KnownHead> {
        let stamp = Some(self.head_stamp.clone()?);
        Some(KnownHead { stamp, head: self.head.clone(), head_tree: self.head_tree.clone() })
    }

    /// From the shadow of a working tree. Notes come back from storage: what is handed to git is checked again.
    pub(super) fn read(shadow: &Path) -> Option<Self> {
        let last: Self = serde_json::from_slice(&read_own(&shadow.join(LAST)).ok()?).ok()?;
        let is_sound = [&last.head, &last.head_tree].into_iter().flatten().all(|id| is_object_id(id));
        (is_sound && is_object_id(&last.commit) && is_object_id(&last.tree)).then_some(last)
    }
}

/// The working tree as a tree, and what is not in it.
struct AddedFiles {
    tree: String,
    /// Every object of it is in our store.
    is_here: bool,
    unseen: BTreeSet<UnseenPart>,
    /// Files that look otherwise from outside than the index had them, and those that it did not have.
    touched: BTreeSet<Vec<u8>>,
}

/// The working tree and what is staged, as trees.
struct TreesSince {
    added: AddedFiles,
    staged: Option<Staged>,
    index: Option<IndexStamp>,
    submodules: Vec<UnseenPart>,
    ours_before: Option<IndexStamp>,
}

/// HEAD's commit and tree; none if there is none.
#[derive(Debug)]
struct KnownHead {
    stamp: Option<HeadStamp>,
    head: Option<String>,
    head_tree: Option<String>,
}

/// The files that may differ from what our index has, and those that it does not have.
struct LookedAt {
    differing: Vec<u8>,
    others: Vec<u8>,
}

/// A path of an index with its mark: `H` is an ordinary one.
pub(super) struct IndexEntry {
    pub(super) mark: u8,
    is_submodule: bool,
    pub(super) path: Vec<u8>,
}

impl IndexEntry {
    fn submodule(&self) -> Option<UnseenPart> {
        self.is_submodule.then(|| UnseenPart::new(UnseenReason::Submodule, &self.path))
    }
}

/// In which way the objects of a snapshot are written.
#[derive(Debug, Clone, Copy)]
struct HowWritten {
    is_durable: bool,
    /// Into our store, whatever the person has.
    is_alone: bool,
}

/// The look of an index, or of another file that git replaces as a whole, from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IndexStamp {
    mtime: i64,
    mtime_nsec: i64,
    size: u64,
    number: u64,
}

impl IndexStamp {
    pub(super) fn of(index: &Path) -> Option<Self> {
        let about = fs::symlink_metadata(index).ok().filter(fs::Metadata::is_file)?;
        Some(Self {
            mtime: about.mtime(),
            mtime_nsec: about.mtime_nsec(),
            size: about.size(),
            number: about.ino(),
        })
    }
}

/// HEAD as its files have it. If they look the same, it leads to the same commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct HeadStamp {
    /// The line in its file.
    line: String,
    /// The commit in the file of its branch.
    commit: Option<String>,
    /// The file of all branches that have none of their own.
    packed: Option<IndexStamp>,
}

impl HeadStamp {
    /// None if it is not plain: then git has to be asked. Of HEAD's file the copy counts, as for git.
    fn of(repository: &Repository, shadow: &ShadowRepository) -> Option<Self> {
        let line = String::from_utf8(read_line(&shadow.plain.join("HEAD")).ok()?).ok()?;
        if is_object_id(&line) {
            return Some(Self { commit: Some(line.clone()), line, packed: None });
        }
        let branch = line.strip_prefix("ref: refs/heads/")?;
        if branch.split('/').any(|name| matches!(name, "" | "." | "..")) {
            return None;
        }
        let path = repository.common.join("refs/heads").join(branch);
        let commit = match fs::symlink_metadata(&path) {
            Ok(about) if about.is_file() => {
                let id = read_line(&path).ok().and_then(|id| String::from_utf8(id).ok());
                Some(id.filter(|id| is_object_id(id))?)
            }
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => None,
            _ => return None,
        };
        let packed = match commit {
            Some(_) => None,
            None => IndexStamp::of(&repository.common.join("packed-refs")),
        };
        Some(Self { line, commit, packed })
    }

    /// True if that is the commit that it leads to, as far as its own files say.
    fn fits(&self, head: Option<&str>) -> bool {
        self.commit.as_deref().is_none_or(|commit| head == Some(commit))
    }
}

impl Git {
    /// Takes a snapshot of the working tree around a directory. `None`: there is no repository.
    ///
    /// Index, HEAD, branches and files stay as they are, byte for byte. Ignored files and what is inside of nested
    /// repositories are not in it, except before a removal. Files that cannot be read are left out.
    pub async fn snapshot(
        &self,
        directory: &Path,
        name: &SnapshotName,
    ) -> Result<Option<Snapshot>, GitError> {
        let Some(repository) = self.around(directory)? else { return Ok(None) };
        let _held = self.hold(&repository.top, &repository.common).await?;
        let shadow = self.shadow_held(&repository)?;
        self.take(&repository, &shadow, name, SnapshotExtras::default()).await.map(Some)
    }

    /// A snapshot that was taken before.
    pub async fn find(&self, directory: &Path, name: &SnapshotName) -> Result<Option<Snapshot>, GitError> {
        let Some(repository) = self.around(directory)? else { return Ok(None) };
        match self.snapshot_at(&repository, &name.reference()).await {
            Ok(snapshot) => Ok(Some(snapshot)),
            Err(GitError::NoSuchSnapshot(_)) => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// The same, for who asks what a turn has changed that has just ended: one that was made or read here a moment ago is not
    /// looked at again.
    pub async fn find_recent(
        &self,
        directory: &Path,
        name: &SnapshotName,
    ) -> Result<Option<Snapshot>, GitError> {
        let Some(repository) = self.around(directory)? else { return Ok(None) };
        let reference = name.reference();
        let commit = self.store(&repository)?.read(&reference);
        match commit.and_then(|commit| Some((self.recent.find(&commit)?.tree.clone(), commit))) {
            Some((tree, commit)) => {
                Ok(Some(Snapshot { repository: repository.common, reference, commit, tree }))
            }
            None => self.find(directory, name).await,
        }
    }

    pub(super) async fn snapshot_at(
        &self,
        repository: &Repository,
        reference: &str,
    ) -> Result<Snapshot, GitError> {
        check_hidden(reference)?;
        let none = || GitError::NoSuchSnapshot(reference.to_owned());
        let store = self.store(repository)?;
        let commit = store.read(reference).ok_or_else(none)?;
        // The tree of a clean working tree is HEAD's, and only the person's until it is copied.
        let look = self.beside(&store, "rev-parse").words(["--verify", "--quiet", "--end-of-options"]);
        let said = look.word(format!("{commit}^{{tree}}")).said().await?;
        let tree = String::from_utf8_lossy(&said.out).trim_end().to_owned();
        if said.code != Some(0) || !is_object_id(&tree) {
            return Err(none());
        }
        Ok(Snapshot { repository: repository.common.clone(), reference: reference.to_owned(), commit, tree })
    }

    /// Takes it; the working tree is held by the caller.
    pub(super) async fn take(
        &self,
        repository: &Repository,
        shadow: &ShadowRepository,
        name: &SnapshotName,
        beside: SnapshotExtras,
    ) -> Result<Snapshot, GitError> {
        let trees = self.trees(repository, shadow, beside.is_durable).await?;
        self.seal(repository, shadow, name, trees, beside).await
    }

    /// Makes the commit and points the ref at it.
    pub(super) async fn seal(
        &self,
        repository: &Repository,
        shadow: &ShadowRepository,
        name: &SnapshotName,
        trees: SnapshotTrees,
        beside: SnapshotExtras,
    ) -> Result<Snapshot, GitError> {
        let SnapshotTrees { tree, is_here, staged, index, unseen, submodules, head, head_tree, .. } = trees;
        let told = SnapshotHeader {
            head,
            branch: repository.branch(),
            staged,
            kept: beside.kept,
            commits: beside.commits,
            unseen,
            note: beside.note,
        };
        let mut parents: Vec<String> = told.head.iter().cloned().collect();
        if let Some(staged) = &told.staged
            && staged.tree() != tree
            && Some(staged.tree()) != head_tree.as_deref()
        {
            parents.push(self.commit(shadow, staged.tree(), &[], "staged\n", beside.is_durable)?);
        }
        parents.extend(told.kept.iter().cloned());
        parents.extend(told.commits.iter().cloned());
        let commit = self.commit(shadow, &tree, &parents, &told.write(name), beside.is_durable)?;
        self.step()?;
        let reference = self.point(shadow, name, &commit, beside.is_durable).await?;
        self.step()?;
        let last = LastSnapshot {
            reference,
            commit,
            tree,
            staged: told.staged,
            index,
            submodules,
            is_here,
            ours: IndexStamp::of(&shadow.raw.join("index")),
            head_stamp: trees.head_stamp,
            head: told.head,
            head_tree,
        };
        let text = serde_json::to_vec(&last).unwrap_or_default();
        write_note(&shadow.dir.join(LAST), &text)?;
        let LastSnapshot { reference, commit, tree, .. } = last;
        Ok(Snapshot { repository: repository.common.clone(), reference, commit, tree })
    }

    /// The working tree and what is staged, as trees.
    pub(super) async fn trees(
        &self,
        repository: &Repository,
        shadow: &ShadowRepository,
        is_durable: bool,
    ) -> Result<SnapshotTrees, GitError> {
        let last = LastSnapshot::read(&shadow.dir)
            .filter(|last| shadow.store.read(&last.reference).as_ref() == Some(&last.commit));
        let known = last.as_ref().and_then(LastSnapshot::known_head);
        let (found, since) = tokio::try_join!(
            self.head_now(repository, shadow, known),
            self.trees_since(repository, shadow, last, is_durable)
        )?;
        let KnownHead { stamp: head_stamp, head, head_tree } = found;
        let TreesSince { added, staged, index, submodules, ours_before } = since;
        let AddedFiles { tree, is_here, unseen, touched } = added;
        self.step()?;
        let unseen = bounded(unseen.into_iter().chain(submodules.iter().cloned()).collect());
        Ok(SnapshotTrees {
            tree,
            is_here,
            staged,
            index,
            unseen,
            submodules,
            head,
            head_tree,
            head_stamp,
            ours_before,
            touched,
        })
    }

    /// HEAD's commit and tree. Git is not asked if it looks as it did the last time.
    async fn head_now(
        &self,
        repository: &Repository,
        shadow: &ShadowRepository,
        known: Option<KnownHead>,
    ) -> Result<KnownHead, GitError> {
        let stamp = HeadStamp::of(repository, shadow);
        if let Some(known) = known.filter(|known| stamp.is_some() && known.stamp == stamp) {
            return Ok(known);
        }
        let mut found = self.look_up(shadow, &["HEAD".to_owned(), "HEAD^{tree}".to_owned()]).await?;
        let (head_tree, head) = (found.pop().flatten(), found.pop().flatten());
        // Somebody may have moved it meanwhile.
        let is_still = stamp == HeadStamp::of(repository, shadow);
        let stamp = stamp.filter(|stamp| is_still && stamp.fits(head.as_deref()));
        Ok(KnownHead { stamp, head, head_tree })
    }

    async fn trees_since(
        &self,
        repository: &Repository,
        shadow: &ShadowRepository,
        last: Option<LastSnapshot>,
        is_durable: bool,
    ) -> Result<TreesSince, GitError> {
        let real = repository.git_dir.join("index");
        let look = IndexStamp::of(&real);
        let index = shadow.raw.join("index");
        let mut ours_before = IndexStamp::of(&index);
        let known = last.filter(|_| index.exists());
        let is_here = |known: &LastSnapshot| known.is_here || shadow.store.is_copied(&known.commit);
        let how = HowWritten { is_durable, is_alone: known.as_ref().is_some_and(is_here) };
        if let Some(known) = known.as_ref().filter(|known| known.index == look) {
            let tree_before = Some(known.tree.as_str()).filter(|_| known.ours == ours_before);
            if let Some(added) = self.add_all(repository, shadow, BTreeSet::new(), tree_before, how).await? {
                let (staged, submodules) = (known.staged.clone(), known.submodules.clone());
                return Ok(TreesSince { added, staged, index: look, submodules, ours_before });
            }
            // It may have been written to: what differs from it now is not all that has changed.
            ours_before = None;
        }
        let copy = shadow.plain.join("index.copy");
        let _ = fs::remove_file(&copy);
        let has_index = look.is_some() && copy_whole_index(repository, shadow, &copy).is_ok();
        let staged = match has_index {
            true => {
                Some(self.staged(repository, shadow, &copy, is_durable).await.map_err(broken_index(&real))?)
            }
            false => None,
        };
        let entries = if has_index { self.entries(shadow, &copy).await? } else { Vec::new() };
        let submodules = bounded(entries.iter().filter_map(IndexEntry::submodule).collect());
        let done = |added, ours_before| TreesSince { added, staged, index: look, submodules, ours_before };
        let mut paths: BTreeSet<Vec<u8>> = entries.iter().map(|entry| entry.path.clone()).collect();
        if known.is_some() {
            let out = self.raw(shadow, "ls-files").words(["-z"]).index(&index).out().await?;
            for path in out.split(|byte| *byte == 0) {
                paths.remove(path);
            }
            if let Some(added) = self.add_all(repository, shadow, paths.clone(), None, how).await? {
                return Ok(done(added, ours_before));
            }
        }
        // Ours is not there, or of no use: theirs will do, unless it is not about bytes.
        let how = HowWritten { is_durable, is_alone: false };
        let _ = fs::remove_file(&index);
        if has_index && is_about_bytes(repository, &entries) {
            copy_index(&copy, &index)?;
            if let Some(added) = self.add_all(repository, shadow, BTreeSet::new(), None, how).await? {
                return Ok(done(added, None));
            }
            let _ = fs::remove_file(&index);
        }
        paths.extend(entries.into_iter().map(|entry| entry.path));
        match self.add_all(repository, shadow, paths, None, how).await? {
            Some(added) => Ok(done(added, None)),
            None => {
                Err(GitError::strange(&repository.top, "git cannot write the tree; run `git fsck` in it"))
            }
        }
    }

    /// Brings our index up to date with the working tree and writes its tree. `None`: our index is of no use.
    async fn add_all(
        &self,
        repository: &Repository,
        shadow: &ShadowRepository,
        mut paths: BTreeSet<Vec<u8>>,
        tree_before: Option<&str>,
        how: HowWritten,
    ) -> Result<Option<AddedFiles>, GitError> {
        let write = |command| match how.is_alone {
            true => self.raw_alone(shadow, command).durable(how.is_durable),
            false => self.raw(shadow, command).durable(how.is_durable),
        };
        self.phase(WorkPhase::Snapshot);
        let (index, top) = (shadow.raw.join("index"), &repository.top);
        let Some(looked) = self.look_through(repository, shadow, &index).await? else { return Ok(None) };
        let (mut unseen, mut untracked) = (BTreeSet::new(), BTreeSet::new());
        paths.extend(listed(&looked.differing));
        for path in listed(&looked.others) {
            // With a slash at its end it is a repository within this one.
            if path.ends_with(b"/") {
                unseen.insert(UnseenPart::new(UnseenReason::Nested, &path));
            } else if !paths.contains(&path) {
                untracked.insert(path);
            }
        }
        let touched: BTreeSet<Vec<u8>> = paths.union(&untracked).cloned().collect();
        let (root, bytes_max) = (top.clone(), self.bounds.untracked_bytes_max);
        let sorted = blocking(move || sort(&root, paths, untracked, bytes_max)).await?;
        unseen.extend(sorted.unseen);
        let is_same = sorted.gone.is_empty() && sorted.there.is_empty() && sorted.nested.is_empty();
        if let (true, Some(tree)) = (is_same, tree_before) {
            return Ok(Some(AddedFiles { tree: tree.to_owned(), is_here: how.is_alone, unseen, touched }));
        }
        for (option, paths) in [("--force-remove", sorted.gone), ("--remove", sorted.there)] {
            if paths.is_empty() {
                continue;
            }
            // What the person has and no reference reaches (of a stash that was popped, say) goes with their next `gc`.
            let add = self.raw_alone(shadow, "update-index").durable(how.is_durable);
            let add = add.words(["--add", "--replace", option, "-z", "--stdin"]);
            let said = add.work_tree(top).index(&index).say(paths).said().await?;
            if said.code != Some(0) {
                // A file that changed its kind while we looked: once more from the start would see it anew.
                return Err(GitError::Git { command: "git update-index".into(), said: said.complaint });
            }
        }
        for nested in sorted.nested {
            // One without a commit cannot be named by a tree; what is in it is kept when the worktree is removed.
            let add = write("update-index").words(["--add", "--replace", "-z", "--stdin"]);
            add.work_tree(top).index(&index).say(nested).said().await?;
        }
        let said = write("write-tree").work_tree(top).index(&index).said().await?;
        let tree = String::from_utf8_lossy(&said.out).trim_end().to_owned();
        let is_written = said.code == Some(0) && is_object_id(&tree);
        if is_written && !how.is_alone && !is_same {
            // So with directories that only a stash of theirs has had: from here on they are ours, too. Where nothing differs from HEAD,
            // HEAD keeps them until they are copied.
            let own = self.raw_alone(shadow, "write-tree").words(["--missing-ok"]).durable(how.is_durable);
            own.work_tree(top).index(&index).said().await?;
        }
        Ok(is_written.then_some(AddedFiles { tree, is_here: how.is_alone, unseen, touched }))
    }

    /// A look at every file and every directory. `None`: our index is of no use.
    ///
    /// What is plain we see ourselves (`own_look`). Where something is not, one git looks at the files that our index has; it names each
    /// file that looks otherwise from outside, whether or not its bytes are the same. Where there are names that the index does not have,
    /// another one says which of them are ignored; if there were some the last time, it begins at the same time.
    async fn look_through(
        &self,
        repository: &Repository,
        shadow: &ShadowRepository,
        index: &Path,
    ) -> Result<Option<LookedAt>, GitError> {
        let (top, ours, format) = (repository.top.clone(), index.to_path_buf(), repository.format);
        let own = blocking(move || Ok(own_look::look(&top, &ours, format)));
        let note = shadow.dir.join(OTHERS);
        let had_others = note.exists();
        let (own, early) = match had_others {
            true => {
                let (own, early) = tokio::try_join!(own, self.other_files(repository, shadow, index))?;
                (own, Some(early))
            }
            false => (own.await?, None),
        };
        let has_others = own.as_ref().is_none_or(|own| own.has_others);
        if has_others && !had_others {
            write_note(&note, b"")?;
        } else if had_others && !has_others {
            let _ = fs::remove_file(&note); // If it stays, the next look asks git for nothing.
        }
        let (differing, others) = match own {
            Some(own) => {
                (Some(own.differing), self.others_if(has_others, early, (repository, shadow, index)).await?)
            }
            None => tokio::try_join!(
                self.differing_files(repository, shadow, index),
                self.others_if(true, early, (repository, shadow, index))
            )?,
        };
        Ok(differing.zip(others).map(|(differing, others)| LookedAt { differing, others }))
    }

    async fn differing_files(
        &self,
        repository: &Repository,
        shadow: &ShadowRepository,
        index: &Path,
    ) -> Result<Option<Vec<u8>>, GitError> {
        let look = self.raw(shadow, "diff-files").words(["-z", "--name-only", "--ignore-submodules=dirty"]);
        let said = look.work_tree(&repository.top).index(index).said().await?;
        Ok((said.code == Some(0)).then_some(said.out))
    }

    /// The files that our index does not have and nobody ignores. `None`: our index is of no use.
    async fn other_files(
        &self,
        repository: &Repository,
        shadow: &ShadowRepository,
        index: &Path,
    ) -> Result<Option<Vec<u8>>, GitError> {
        let look = self.raw(shadow, "ls-files").words(["-z", "-o", "--exclude-standard"]);
        let look = look.excludes(self.global_ignore()?);
        let said = look.work_tree(&repository.top).index(index).said().await?;
        Ok((said.code == Some(0)).then_some(said.out))
    }

    /// The same where there may be some, unless somebody has looked already.
    async fn others_if(
        &self,
        has_others: bool,
        early: Option<Option<Vec<u8>>>,
        (repository, shadow, index): (&Repository, &ShadowRepository, &Path),
    ) -> Result<Option<Vec<u8>>, GitError> {
        match (has_others, early) {
            (false, _) => Ok(Some(Vec::new())),
            (true, Some(early)) => Ok(early),
            (true, None) => self.other_files(repository, shadow, index).await,
        }
    }

    pub(super) async fn entries(
        &self,
        shadow: &ShadowRepository,
        index: &Path,
    ) -> Result<Vec<IndexEntry>, GitError> {
        let out = self.plain(shadow, "ls-files").words(["-z", "-v", "-s"]).index(index).out().await?;
        let entry = |line: &[u8]| {
            let (about, path) = split_at_byte(line, b'\t');
            let (mark, is_submodule) = (*about.first()?, about.get(2..)?.starts_with(b"160000 "));
            Some(IndexEntry { mark, is_submodule, path: path.to_vec() })
        };
        Ok(out.split(|byte| *byte == 0).filter_map(entry).collect())
    }

    async fn staged(
        &self,
        repository: &Repository,
        shadow: &ShadowRepository,
        index: &Path,
        is_durable: bool,
    ) -> Result<Staged, GitError> {
        // Trees are written into our store; what they name is the person's until it is copied.
        let write = self.raw(shadow, "write-tree").work_tree(&repository.top).index(index);
        let said = write.durable(is_durable).said().await?;
        if said.code == Some(0) {
            return Ok(Staged::Tree(String::from_utf8_lossy(&said.out).trim_end().to_owned()));
        }
        // In the midst of a merge a path has up to three stages: a directory for each.
        let out = self.plain(shadow, "ls-files").words(["-z", "-s"]).index(index).out().await?;
        let mut lines = Vec::new();
        for line in out.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            let (about, path) = split_at_byte(line, b'\t');
            let Some((about, stage)) = about.split_last_chunk::<2>() else { continue };
            lines.extend_from_slice(about);
            lines.extend_from_slice(&[b'\t', stage[1], b'/']);
            lines.extend_from_slice(path);
            lines.push(0);
        }
        let stages = shadow.plain.join("index.stages");
        let _ = fs::remove_file(&stages);
        self.plain(shadow, "update-index")
            .words(["-z", "--index-info"])
            .index(&stages)
            .say(lines)
            .out()
            .await?;
        let write = self.raw(shadow, "write-tree").words(["--missing-ok"]).index(&stages).durable(is_durable);
        Ok(Staged::Stages(write.text().await?))
    }

    /// Writes a commit into our store.
    pub(super) fn commit(
        &self,
        shadow: &ShadowRepository,
        tree: &str,
        parents: &[String],
        message: &str,
        is_durable: bool,
    ) -> Result<String, GitError> {
        let text = commit_text(tree, parents, message, now_ms() / 1_000);
        let commit = write_commit(&shadow.store.dir.join("objects"), &text, tree, is_durable)?;
        self.recent.note(SeenCommit::read(&commit, &text));
        Ok(commit)
    }

    /// Points the hidden ref at a commit, and says which ref that is.
    async fn point(
        &self,
        shadow: &ShadowRepository,
        name: &SnapshotName,
        commit: &str,
        is_durable: bool,
    ) -> Result<String, GitError> {
        let store = &shadow.store;
        if !name.moment.is_kept_apart() {
            store.point(&name.reference(), commit, is_durable)?;
            return Ok(name.reference());
        }
        let _held = self.hold_hidden(store).await?;
        let reference = free_reference(store, name)?;
        store.point(&reference, commit, is_durable)?;
        Ok(reference)
    }

    /// The ids of what these name in the person's repository, in their order.
    pub(super) async fn look_up(
        &self,
        shadow: &ShadowRepository,
        names: &[String],
    ) -> Result<Vec<Option<String>>, GitError> {
        let asked = names.iter().flat_map(|name| [name.as_str(), "\n"]).collect::<String>();
        let look = self.plain(shadow, "cat-file").words(["--batch-check=%(objectname)"]);
        let out = look.say(asked.into_bytes()).text().await?;
        let mut found: Vec<Option<String>> =
            out.lines().map(|line| is_object_id(line).then(|| line.to_owned())).collect();
        found.resize(names.len(), None);
        Ok(found)
    }

    pub(super) async fn find_one(
        &self,
        shadow: &ShadowRepository,
        name: &str,
    ) -> Result<Option<String>, GitError> {
        Ok(self.look_up(shadow, &[name.to_owned()]).await?.pop().flatten())
    }

    /// The header that a snapshot's commit has of itself.
    pub(super) async fn told(
        &self,
        shadow: &ShadowRepository,
        commit: &str,
    ) -> Result<SnapshotHeader, GitError> {
        self.header(self.raw_alone(shadow, "cat-file"), commit).await
    }

    pub(super) async fn header(&self, cat_file: GitCall, commit: &str) -> Result<SnapshotHeader, GitError> {
        if let Some(seen) = self.recent.find(commit) {
            return Ok(seen.header.clone());
        }
        let text = cat_file.words(["commit", commit]).text().await?;
        Ok(self.recent.note(SeenCommit::read(commit, &text)).header.clone())
    }
}

/// A ref for one more snapshot of those that are kept apart. The hidden refs are held by the caller.
fn free_reference(store: &SnapshotStore, name: &SnapshotName) -> Result<String, GitError> {
    let mut names = (1..=APART_MAX).map(|number| name.numbered(number));
    names.find(|name| store.read(name).is_none()).ok_or_else(|| GitError::Git {
        command: "git update-ref".into(),
        said: "too many snapshots of one turn".into(),
    })
}

/// True if an index of theirs says of each file which bytes it has: nothing is converted, nothing is hidden from git.
fn is_about_bytes(repository: &Repository, entries: &[IndexEntry]) -> bool {
    let is_attributes = |path: &[u8]| bytes_path(path).file_name() == Some(OsStr::new(".gitattributes"));
    let config = fs::read(repository.common.join("config")).unwrap_or_default();
    let config = String::from_utf8_lossy(&config).to_lowercase();
    entries.iter().all(|entry| entry.mark == b'H' && !is_attributes(&entry.path))
        && !repository.top.join(".gitattributes").exists()
        && !repository.common.join("info/attributes").exists()
        && !["autocrlf", "eol", "attributesfile", "include"].iter().any(|word| config.contains(word))
}

/// Git's words about an index that it cannot read become what to do about it.
fn broken_index(index: &Path) -> impl FnOnce(GitError) -> GitError + '_ {
    move |why| match why {
        GitError::Git { said, .. } if said.contains("index") => {
            GitError::BrokenIndex { path: index.to_path_buf() }
        }
        why => why,
    }
}

/// The paths of a list in which each ends with a zero.
fn listed(list: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    list.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec)
}

/// The bytes before and after the first such byte.
pub(super) fn split_at_byte(line: &[u8], byte: u8) -> (&[u8], &[u8]) {
    match line.iter().position(|each| *each == byte) {
        Some(at) => (&line[..at], &line[at + 1..]),
        None => (line, &[]),
    }
}

/// A path as git prints it.
pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

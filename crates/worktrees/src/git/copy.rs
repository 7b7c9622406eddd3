//! Copies of what snapshots reach in the person's repository, so that whatever becomes of it there they stay whole.
//!
//! A snapshot is pointed at as soon as what is nowhere else is written to our store (`store`). The rest of it is the person's:
//! their git may prune it once no branch of theirs has it. After a turn it is copied into one pack, the first time with
//! everything, then what the last copy did not have. The list of what is copied is a file in the store; it is written after a
//! check that found nothing missing. Cut short, it is done again. Nobody waits for it but a removal and an undo, which make
//! their own snapshot whole before anything goes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use engine::WorkPhase;

use super::error::GitError;
use super::list::size_of;
use super::shadow::{ShadowRepository, write_note, write_whole};
use super::snapshot::Snapshot;
use super::store::{HiddenReference, SnapshotStore, sync_directory};
use super::{Git, blocking};

/// The list of commits that are here with everything they reach.
pub(super) const COPIED: &str = "copied";
/// The number of copies in a row that did not come to an end.
const TRIES: &str = "copying";
/// After so many tries it is not tried any more until something is expired: it takes more than a worker may have.
const TRIES_MAX: u32 = 3;
/// Written when a copy would be beyond the bound, or was tried too often.
const BEYOND: &str = "beyond";
/// Snapshots whose files are told to git as here already. The next one differs from one of the last ones by little.
const TREES_EXCLUDED: usize = 8;
/// Packs beyond which small ones become one.
const PACKS_MAX: usize = 24;
/// Unfinished files that are older are nobody's any more.
const UNFINISHED_AGE: Duration = Duration::from_secs(3_600);
/// Objects that nothing holds any more stay for so long: somebody may be about to hold them again.
const GRACE: &str = "2.hours.ago";

/// After so many snapshots with only their files here, nobody tries for the history any more.
const FILES_ONLY_MAX: usize = 4;
/// Something may be missing for a moment only, while the person's git packs it elsewhere.
const PACKS_TRIED: usize = 2;
/// The ending of a line about a commit of which only the files are here.
const FILES_ONLY: &str = " files";
/// Why nothing was done after a snapshot.
const INCOMPLETE: &str =
    "something of what is in it now cannot be kept, because git does not have it; run `git fsck` there";

/// The snapshots' commits that are in a store by themselves.
#[derive(Debug, Default)]
pub(super) struct CopiedCommits {
    /// With everything they reach.
    whole: BTreeSet<String>,
    /// With their files, and what was staged and kept; the person's history lacks something.
    files: BTreeSet<String>,
}

impl Git {
    /// Copies what the snapshots of the repository around a directory still have only there.
    pub async fn copy(&self, directory: &Path) -> Result<(), GitError> {
        match self.around(directory)? {
            Some(repository) => self.copy_store(&self.store(&repository)?).await,
            None => Ok(()),
        }
    }

    /// True if what the snapshots of this repository reach would take more than is kept: then it is the person's alone.
    pub fn is_beyond_bound(&self, directory: &Path) -> Result<bool, GitError> {
        let Some(repository) = self.around(directory)? else { return Ok(false) };
        Ok(self.store(&repository)?.is_beyond())
    }

    pub(super) async fn copy_store(&self, store: &SnapshotStore) -> Result<(), GitError> {
        let _held = self.hold(&store.dir.join(COPIED), &store.dir).await?;
        clear_unfinished(&store.dir.join("objects/pack"));
        let copied = store.copied();
        let wanted: Vec<_> = store.all().into_iter().filter(|each| !copied.has(&each.commit)).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        if !self.has_room(store, copied.is_empty()).await? {
            return self.note_size(store).await.map(drop);
        }
        let (tries, count) = (store.dir.join(TRIES), store.tries());
        write_note(&tries, (count + 1).to_string().as_bytes())?;
        self.step()?;
        let commits: Vec<String> = wanted.into_iter().map(|each| each.commit).collect();
        self.copy_commits(store, &commits).await?;
        self.step()?;
        self.alone(store, "prune-packed").words(["--quiet"]).out().await?;
        if count_packs(store) > PACKS_MAX {
            self.alone(store, "repack").words(["--geometric=2", "-d", "-q"]).out().await?;
        }
        self.note_size(store).await?;
        fs::remove_file(&tries).map_err(GitError::disk(&tries))
    }

    /// Makes one snapshot whole, and waits until it is on the disk.
    pub(super) async fn make_whole(
        &self,
        shadow: &ShadowRepository,
        snapshot: &Snapshot,
        head: Option<&str>,
    ) -> Result<(), GitError> {
        self.phase(WorkPhase::Copying);
        let store = &shadow.store;
        // While others are copied this one does not wait for them.
        let _held = self.try_hold(&store.dir.join(COPIED))?;
        let commit = std::slice::from_ref(&snapshot.commit);
        if self.has_room(store, store.copied().is_empty()).await? {
            self.copy_commits(store, commit).await?;
            if !self.has_its_trees(store, &snapshot.commit).await? {
                return Err(GitError::strange(&store.common, INCOMPLETE));
            }
        } else {
            // Their history is too large to be kept twice: as long as they have it, this is whole.
            let head: BTreeSet<String> = head.into_iter().map(str::to_owned).collect();
            self.pack(store, commit, &head).await?;
        }
        let (pack, reference) = (store.dir.join("objects/pack"), store.dir.join(&snapshot.reference));
        blocking(move || {
            let above = reference.ancestors().skip(1).take(4).map(Path::to_path_buf);
            std::iter::once(pack).chain(above).try_for_each(|directory: PathBuf| sync_directory(&directory))
        })
        .await
    }

    /// Copies what these reach, and writes down those that are whole. Where the person's own history lacks something (in a
    /// partial clone, say), their files are copied, and what was staged and kept: that is all that shows or takes back a turn.
    async fn copy_commits(&self, store: &SnapshotStore, commits: &[String]) -> Result<(), GitError> {
        let mut copied = store.copied();
        self.copy_each(store, commits, &mut copied).await?;
        store.write_copied(&copied)
    }

    /// Copies them together or, if something of one is missing, one by one.
    pub(super) async fn copy_each(
        &self,
        store: &SnapshotStore,
        commits: &[String],
        copied: &mut CopiedCommits,
    ) -> Result<(), GitError> {
        let wanted: Vec<String> = commits.iter().filter(|commit| !copied.has(commit)).cloned().collect();
        let has_history = |copied: &CopiedCommits| copied.files.len() < FILES_ONLY_MAX;
        if wanted.is_empty() || has_history(copied) && self.copy_all(store, &wanted, copied).await? {
            return Ok(());
        }
        for commit in &wanted {
            let one = std::slice::from_ref(commit);
            if !has_history(copied) || !self.copy_all(store, one, copied).await? {
                self.copy_files(store, commit, copied).await?;
            }
        }
        Ok(())
    }

    /// Copies what these reach. False if something of it is missing.
    async fn copy_all(
        &self,
        store: &SnapshotStore,
        commits: &[String],
        copied: &mut CopiedCommits,
    ) -> Result<bool, GitError> {
        let is_packed = self.pack(store, commits, &copied.whole).await.is_ok();
        self.step()?;
        let is_whole = is_packed && self.are_here(store, commits, &copied.whole).await?;
        if is_whole {
            copied.whole.extend(commits.iter().cloned());
        }
        Ok(is_whole)
    }

    /// Copies the files of one, what was staged, and what was kept, as far as there is nothing missing.
    async fn copy_files(
        &self,
        store: &SnapshotStore,
        commit: &str,
        copied: &mut CopiedCommits,
    ) -> Result<(), GitError> {
        let Ok(trees) = self.trees_of(store, commit).await else { return Ok(()) };
        let is_packed = self.pack(store, &trees, &BTreeSet::new()).await.is_ok();
        if is_packed && self.are_here(store, &trees, &BTreeSet::new()).await? {
            copied.files.insert(commit.to_owned());
        }
        Ok(())
    }

    /// True if there is room for a copy; notes it if there is none. The first one takes about what the repository takes.
    async fn has_room(&self, store: &SnapshotStore, is_first: bool) -> Result<bool, GitError> {
        let (ours, theirs) = (store.dir.join("objects"), store.common.join("objects"));
        let bytes =
            blocking(move || Ok(size_of(&ours) + if is_first { size_of(&theirs) } else { 0 })).await?;
        let beyond = store.dir.join(BEYOND);
        let has_room = bytes <= self.bounds.store_bytes_max && store.tries() < TRIES_MAX;
        match has_room {
            false => write_note(&beyond, bytes.to_string().as_bytes())?,
            true if beyond.exists() => fs::remove_file(&beyond).map_err(GitError::disk(&beyond))?,
            true => {}
        }
        Ok(has_room)
    }

    /// One pack with what these reach and those commits do not. An error if something is missing.
    async fn pack(
        &self,
        store: &SnapshotStore,
        ids: &[String],
        except: &BTreeSet<String>,
    ) -> Result<(), GitError> {
        let mut wanted: String = ids.iter().flat_map(|id| [id.as_str(), "\n"]).collect();
        wanted.extend(except.iter().flat_map(|commit| ["^", commit.as_str(), "\n"]));
        for reference in store.latest() {
            wanted.push_str(&format!("^{}^{{tree}}\n", reference.commit));
        }
        let mut said = String::new();
        for _ in 0..PACKS_TRIED {
            let pack = self.beside(store, "pack-objects").words(["--revs", "--quiet", "--non-empty"]);
            // Nothing is compressed anew.
            let pack =
                pack.words(["--window=0", "--threads=1"]).durable(true).say(wanted.clone().into_bytes());
            let ended = pack.word(store.dir.join("objects/pack/pack")).said().await?;
            if ended.code == Some(0) {
                return Ok(());
            }
            said = ended.complaint;
        }
        Err(GitError::Git { command: "git pack-objects".into(), said })
    }

    /// True if everything that these reach is in the store, given that all that those reach is.
    async fn are_here(
        &self,
        store: &SnapshotStore,
        ids: &[String],
        except: &BTreeSet<String>,
    ) -> Result<bool, GitError> {
        let mut asked: String = ids.iter().flat_map(|id| [id.as_str(), "\n"]).collect();
        asked.extend(except.iter().flat_map(|id| ["^", id.as_str(), "\n"]));
        let look = self.alone(store, "rev-list").words(["--objects", "--quiet", "--stdin"]);
        let said = look.say(asked.into_bytes()).said().await?;
        Ok(said.code == Some(0))
    }

    /// True if its files are here, and what was staged, and what was kept. The person's history may lack something.
    async fn has_its_trees(&self, store: &SnapshotStore, commit: &str) -> Result<bool, GitError> {
        let trees = self.trees_of(store, commit).await?;
        self.are_here(store, &trees, &BTreeSet::new()).await
    }

    /// A snapshot's files, what was staged, and what was kept.
    async fn trees_of(&self, store: &SnapshotStore, commit: &str) -> Result<Vec<String>, GitError> {
        let told = self.header(self.beside(store, "cat-file"), commit).await?;
        let mut trees = vec![format!("{commit}^{{tree}}")];
        trees.extend(told.staged.iter().map(|staged| staged.tree().to_owned()));
        trees.extend(told.kept.iter().map(|kept| format!("{kept}^{{tree}}")));
        Ok(trees)
    }

    /// Gives back the room of what no ref holds any more.
    pub(super) async fn compact(&self, store: &SnapshotStore) -> Result<(), GitError> {
        let _held = self.hold(&store.dir.join(COPIED), &store.dir).await?;
        let repack = self.beside(store, "repack").words(["-A", "-d", "-l", "-q"]);
        let said = repack.word(format!("--unpack-unreachable={GRACE}")).said().await?;
        if said.code == Some(0) {
            self.beside(store, "prune").word(format!("--expire={GRACE}")).said().await?;
        }
        let _ = fs::remove_file(store.dir.join(TRIES)); // There may be less to copy by now.
        Ok(())
    }
}

impl CopiedCommits {
    pub(super) fn has(&self, commit: &str) -> bool {
        self.whole.contains(commit) || self.files.contains(commit)
    }

    fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.files.is_empty()
    }
}

impl SnapshotStore {
    /// The list of what is here.
    pub(super) fn copied(&self) -> CopiedCommits {
        let text = fs::read_to_string(self.dir.join(COPIED)).unwrap_or_default();
        let mut copied = CopiedCommits::default();
        for line in text.lines() {
            match line.strip_suffix(FILES_ONLY) {
                Some(commit) => copied.files.insert(commit.to_owned()),
                None => copied.whole.insert(line.to_owned()),
            };
        }
        copied
    }

    /// Without those that no ref has any more.
    pub(super) fn write_copied(&self, copied: &CopiedCommits) -> Result<(), GitError> {
        let there: BTreeSet<String> = self.all().into_iter().map(|each| each.commit).collect();
        let of = |commits: &BTreeSet<String>, end: &str| -> String {
            commits.intersection(&there).flat_map(|commit| [commit.as_str(), end, "\n"]).collect()
        };
        let lines = of(&copied.whole, "") + &of(&copied.files, FILES_ONLY);
        write_whole(&self.dir.join(COPIED), lines.as_bytes())
    }

    pub(super) fn is_copied(&self, commit: &str) -> bool {
        self.copied().has(commit)
    }

    /// True if nothing more is copied.
    pub(super) fn is_beyond(&self) -> bool {
        self.dir.join(BEYOND).exists()
    }

    fn tries(&self) -> u32 {
        let text = fs::read_to_string(self.dir.join(TRIES)).unwrap_or_default();
        text.parse().unwrap_or(0)
    }

    /// Of the refs whose files are here, those that were written last.
    fn latest(&self) -> Vec<HiddenReference> {
        let copied = self.copied();
        let there = self.all().into_iter().filter(|each| copied.has(&each.commit));
        let mut there: Vec<_> = there.filter_map(|each| Some((self.written(&each)?, each))).collect();
        there.sort();
        there.into_iter().rev().take(TREES_EXCLUDED).map(|(_, each)| each).collect()
    }
}

fn count_packs(store: &SnapshotStore) -> usize {
    let entries = fs::read_dir(store.dir.join("objects/pack")).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "pack")).count()
}

/// Takes away packs that somebody was writing when they were killed.
fn clear_unfinished(packs: &Path) {
    for entry in fs::read_dir(packs).into_iter().flatten().flatten() {
        let is_unfinished = entry.file_name().to_string_lossy().starts_with("tmp_");
        let changed = entry.metadata().and_then(|about| about.modified()).unwrap_or(SystemTime::now());
        if is_unfinished && changed.elapsed().is_ok_and(|age| age > UNFINISHED_AGE) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

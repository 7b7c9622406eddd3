//! Taking over snapshots that are still on refs of the person's own repository, where older versions kept them.
//!
//! Each session's are taken over when somebody asks for one of them, or after its next turn: copied into our store, found whole,
//! pointed at there, and only then taken off the person's refs, each if it still is what was copied. Killed in between, a
//! snapshot is in both places, and the next time goes on; so it is while somebody's git has a lock in the repository. One that is not whole stays where it is; the list of those is a file in the
//! store, for whoever looks after this machine.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use kernel::SessionId;

use super::copy::COPIED;
use super::error::GitError;
use super::leftovers::remove_lock_of;
use super::names::{HIDDEN, SnapshotName, check_hidden, is_object_id};
use super::repository::{Repository, open_plain};
use super::shadow::{ShadowRepository, key, write_whole};
use super::store::{HiddenReference, SnapshotStore};
use super::{Git, make_private};

/// In a store: a file for each session that was taken over, with the refs that could not be.
const TAKEN_OVER: &str = "taken-over";
/// In a store: the sessions that had something in the repository besides those that were taken over.
const OTHERS: &str = "not-taken-over";
/// Refs that are taken over at once. More are taken over by the next call.
const AT_ONCE_MAX: usize = 2_000;
/// A larger file of packed refs is not read further.
const PACKED_REFS_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A snapshot on a ref of the person's repository, and when it was made.
struct OldSnapshot {
    reference: HiddenReference,
    at: SystemTime,
}

/// The outcome of a take-over.
struct TakeOverDone {
    /// The refs that stay where they are.
    left: Vec<String>,
    /// The others are gone from the repository.
    is_deleted: bool,
}

/// Refs of older versions that are still in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftInRepository {
    /// The repository's common directory.
    pub repository: PathBuf,
    pub references: Vec<String>,
}

impl Git {
    /// Takes over what is still on refs of the repository around a directory, of one session. Done once.
    pub async fn take_over(&self, directory: &Path, session: SessionId) -> Result<(), GitError> {
        let Some(repository) = self.around(directory)? else { return Ok(()) };
        let store = self.store(&repository)?;
        let note = store.dir.join(TAKEN_OVER).join(session.to_string());
        if note.exists() {
            return Ok(());
        }
        let below = format!("{HIDDEN}{session}/");
        let mut left = Vec::new();
        if may_have(&repository, &below) {
            let shadow = self.shadow(&repository)?;
            let old = self.old_snapshots(&shadow, &below).await?;
            let is_all = old.len() <= AT_ONCE_MAX;
            let taken = self.take_over_these(&repository, &shadow, old).await?;
            if !taken.is_deleted {
                return self.note_others(&repository, &store).await;
            }
            if !is_all {
                return Ok(());
            }
            left = taken.left;
        }
        make_private(&store.dir.join(TAKEN_OVER))?;
        write_whole(&note, left.join("\n").as_bytes())?;
        self.note_others(&repository, &store).await
    }

    /// Writes down which sessions have something there that nobody has taken over yet: somebody asks each of them, and those that nobody
    /// knows are named to whoever looks after this machine.
    async fn note_others(&self, repository: &Repository, store: &SnapshotStore) -> Result<(), GitError> {
        let others = match may_have(repository, HIDDEN) {
            true => self.old_snapshots(&self.shadow(repository)?, HIDDEN).await?,
            false => Vec::new(),
        };
        let sessions = others.iter().filter_map(|old| SnapshotName::session_in(&old.reference.name));
        let is_left = |session: &SessionId| !store.dir.join(TAKEN_OVER).join(session.to_string()).exists();
        let names: BTreeSet<String> = sessions.filter(is_left).map(|session| session.to_string()).collect();
        let lines: String = names.iter().flat_map(|name| [name.as_str(), "\n"]).collect();
        write_whole(&store.dir.join(OTHERS), lines.as_bytes())
    }

    async fn old_snapshots(
        &self,
        shadow: &ShadowRepository,
        below: &str,
    ) -> Result<Vec<OldSnapshot>, GitError> {
        let format = "--format=%(committerdate:unix) %(objectname) %(refname)";
        let out = self.plain(shadow, "for-each-ref").words([format, below]).text().await?;
        let read = |line: &str| {
            let (at, rest) = line.split_once(' ')?;
            let (commit, name) = rest.split_once(' ')?;
            let is_ours = is_object_id(commit) && check_hidden(name).is_ok();
            let reference = HiddenReference { name: name.to_owned(), commit: commit.to_owned() };
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(at.parse().unwrap_or(0));
            is_ours.then_some(OldSnapshot { reference, at })
        };
        Ok(out.lines().filter_map(read).collect())
    }

    async fn take_over_these(
        &self,
        repository: &Repository,
        shadow: &ShadowRepository,
        old: Vec<OldSnapshot>,
    ) -> Result<TakeOverDone, GitError> {
        let store = &shadow.store;
        let _held = self.hold(&store.dir.join(COPIED), &store.dir).await?;
        let old: Vec<_> = old.into_iter().take(AT_ONCE_MAX).collect();
        let commits: Vec<String> = old.iter().map(|each| each.reference.commit.clone()).collect();
        self.step()?;
        let mut copied = store.copied();
        self.copy_each(store, &commits, &mut copied).await?;
        self.step()?;
        let (mut taken, mut left) = (Vec::new(), Vec::new());
        for OldSnapshot { reference, at } in old {
            let is_whole = copied.has(&reference.commit);
            let there = store.read(&reference.name);
            if !is_whole || there.is_some_and(|there| there != reference.commit) {
                left.push(reference.name);
                continue;
            }
            store.point(&reference.name, &reference.commit, true)?;
            store.set_written(&reference, at)?;
            taken.push(reference);
        }
        self.step()?;
        // What is pointed at is remembered as whole from here on.
        store.write_copied(&copied)?;
        self.step()?;
        let is_deleted = taken.is_empty() || self.delete_old(repository, &taken).await?;
        Ok(TakeOverDone { left, is_deleted })
    }

    /// Takes refs off the person's repository. False: git cannot just now, because somebody has a lock there. Nobody waits for that:
    /// the snapshots are in our store, and the next call goes on.
    async fn delete_old(&self, repository: &Repository, taken: &[HiddenReference]) -> Result<bool, GitError> {
        let _held = self.hold(&repository.common, &repository.common).await?;
        let mut wishes = String::new();
        for HiddenReference { name, commit } in taken {
            // Only we write refs of these names, one at a time: a lock is of a git of ours that was killed.
            remove_lock_of(&repository.common, name);
            wishes.push_str(&format!("delete {name} {commit}\n"));
        }
        let said = self.delete_references(repository, wishes).await?;
        Ok(said.code == Some(0))
    }

    /// The refs of older versions that are still in people's repositories: those that are not whole, and those of sessions that were
    /// not asked yet or that nobody knows.
    pub fn left_in_repositories(&self) -> Vec<LeftInRepository> {
        let left = |store: SnapshotStore| {
            let notes = fs::read_dir(store.dir.join(TAKEN_OVER)).into_iter().flatten().flatten();
            let texts = notes.filter_map(|note| fs::read_to_string(note.path()).ok());
            let mut references: Vec<String> =
                texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
            let others = fs::read_to_string(store.dir.join(OTHERS)).unwrap_or_default();
            let is_left = |session: &&str| !store.dir.join(TAKEN_OVER).join(session).exists();
            references.extend(others.lines().filter(is_left).map(|session| format!("{HIDDEN}{session}/*")));
            references.sort();
            (!references.is_empty()).then_some(LeftInRepository { repository: store.common, references })
        };
        self.stores().into_iter().filter_map(left).collect()
    }
}

/// True if the snapshots of a session were taken over from a repository, as its store in that place says.
pub(crate) fn was_taken_over(own: &Path, common: &Path, session: SessionId) -> bool {
    let stores =
        [key(common), format!("{}-sha256", key(common))].map(|name| own.join("snapshots").join(name));
    stores.iter().any(|store| store.join(TAKEN_OVER).join(session.to_string()).symlink_metadata().is_ok())
}

/// Older versions may have left something there. Only names are looked at: most repositories have nothing of ours.
fn may_have(repository: &Repository, below: &str) -> bool {
    if repository.common.join(below).symlink_metadata().is_ok() {
        return true;
    }
    let Ok(file) = open_plain(&repository.common.join("packed-refs")) else { return false };
    let mut lines = BufReader::new(file.take(PACKED_REFS_BYTES_MAX)).split(b'\n');
    lines.any(|line| line.is_ok_and(|line| line.windows(below.len()).any(|part| part == below.as_bytes())))
}

//! The room that snapshots take in a store, for those whose they are, and letting the oldest of them go where it is too much.
//!
//! A store is shared by all sessions that work in its repository. It is counted for somebody by what the snapshots of their
//! sessions reach in it, whoever else's reach it, too: nobody takes up another one's room. What has gone is written down in the
//! store, a small file for each session: the next turn of the session says so once, and whoever asks for such a turn is told why
//! it cannot be had any more.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use kernel::SessionId;
use serde::{Deserialize, Serialize};

use super::error::GitError;
use super::list::size_of;
use super::names::{HIDDEN, SnapshotMoment, SnapshotName, check_hidden};
use super::repository::{bytes_path, read_own};
use super::shadow::{write_note, write_whole};
use super::store::{HiddenReference, SnapshotStore};
use super::{Git, blocking, make_private};

/// In a store: the bytes that its objects took when they were last counted.
const SIZE: &str = "size";
/// In a store: a file for each session of which snapshots went before their time.
const GONE: &str = "gone";
/// Snapshots that are younger stay, because their turn may be under way.
const LAST_HOUR: Duration = Duration::from_secs(3_600);
/// The part of somebody's snapshots that goes at once: the oldest of four.
const PART: usize = 4;

/// A store, and whose snapshots are in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreRoom {
    /// The name of its directory.
    pub key: String,
    /// The repository's common directory.
    pub repository: PathBuf,
    /// The bytes that it takes on the disk, as they were last counted.
    pub bytes: u64,
    pub sessions: Vec<SessionId>,
}

/// The part of a store that is some sessions'.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreShare {
    /// The bytes that their snapshots reach in it.
    pub bytes: u64,
    /// When the oldest of those that may go was taken.
    pub oldest: Option<SystemTime>,
}

/// Why snapshots went before their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoneReason {
    /// Those of the repository took more than they may together.
    Repository,
    /// Those of the person took more than theirs may.
    Person,
}

/// The snapshots of a session that went before their time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GoneSnapshots {
    /// The last of their turns.
    turn: u64,
    reason: GoneReason,
    /// True if somebody was told.
    is_told: bool,
}

impl GoneReason {
    /// For people.
    fn words(self, store_bytes_max: u64) -> String {
        match self {
            Self::Repository => {
                format!(
                    "the snapshots of its repository took more than {} MiB (limits.snapshot_bytes_per_repository_max)",
                    store_bytes_max >> 20
                )
            }
            Self::Person => {
                "the snapshots of this session's owner took more than limits.snapshot_bytes_per_person_max \
                             allows"
                    .to_owned()
            }
        }
    }
}

impl Git {
    /// Every store of ours as it was last counted. Only names and small notes are read.
    pub fn store_rooms(&self) -> Vec<StoreRoom> {
        let names = fs::read_dir(self.stores_dir()).into_iter().flatten().flatten();
        let mut rooms: Vec<StoreRoom> =
            names.filter_map(|entry| self.store_room(entry.file_name().into_string().ok()?)).collect();
        rooms.sort_by(|one, other| one.key.cmp(&other.key));
        rooms
    }

    fn store_room(&self, key: String) -> Option<StoreRoom> {
        let store = self.store_called(&key).ok()?;
        let SnapshotStore { dir, common } = &store;
        let noted =
            read_own(&dir.join(SIZE)).ok().and_then(|text| String::from_utf8(text).ok()?.parse().ok());
        let bytes = noted.unwrap_or_else(|| size_of(&dir.join("objects")));
        let names = fs::read_dir(dir.join(HIDDEN)).into_iter().flatten().flatten();
        let sessions = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        Some(StoreRoom { key, repository: common.clone(), bytes, sessions })
    }

    /// The store in a directory of that name.
    fn store_called(&self, key: &str) -> Result<SnapshotStore, GitError> {
        let dir = self.stores_dir().join(key);
        // A name, and no way out of here.
        let is_name =
            !key.is_empty() && key.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'-');
        let about =
            if is_name { read_own(&dir.join("of")) } else { Err(std::io::ErrorKind::InvalidInput.into()) };
        let about = about.map_err(GitError::disk(&dir))?;
        let common = bytes_path(about.split(|byte| *byte == 0).next().unwrap_or_default());
        Ok(SnapshotStore { dir, common })
    }

    /// The room that the snapshots of these sessions take in a store.
    pub async fn share(&self, key: &str, sessions: &[SessionId]) -> Result<StoreShare, GitError> {
        let store = self.store_called(key)?;
        self.share_in(&store, sessions).await
    }

    async fn share_in(&self, store: &SnapshotStore, sessions: &[SessionId]) -> Result<StoreShare, GitError> {
        let own = store.of_sessions(sessions);
        let asked: String = own.iter().flat_map(|each| [each.commit.as_str(), "\n"]).collect();
        // What the person's repository alone has takes no room of ours.
        let count = self.alone(store, "rev-list").words(["--objects", "--missing=allow-any", "--disk-usage"]);
        let bytes = match own.is_empty() {
            true => 0,
            false => {
                count.words(["--stdin"]).say(asked.into_bytes()).text().await?.trim().parse().unwrap_or(0)
            }
        };
        Ok(StoreShare { bytes, oldest: store.may_go(own).first().map(|(written, _)| *written) })
    }

    /// Lets the oldest snapshots of these sessions go, and says what the others take. Nobody else's are touched, nor those of
    /// removed worktrees, which are nowhere else.
    pub async fn let_go(&self, key: &str, sessions: &[SessionId]) -> Result<StoreShare, GitError> {
        let store = self.store_called(key)?;
        {
            let _hidden = self.hold_hidden(&store).await?;
            let old = store.may_go(store.of_sessions(sessions));
            let count = old.len().div_ceil(PART);
            let old: Vec<_> = old.into_iter().take(count).map(|(_, reference)| reference).collect();
            store.note_gone(&old, GoneReason::Person)?;
            self.step()?;
            old.iter().try_for_each(|reference| store.unpoint(reference))?;
        }
        self.step()?;
        self.share_in(&store, sessions).await
    }

    /// Gives back the room of what no ref in a store holds any more.
    pub async fn compact_called(&self, key: &str) -> Result<StoreShare, GitError> {
        let store = self.store_called(key)?;
        self.compact(&store).await?;
        Ok(StoreShare { bytes: self.note_size(&store).await?, oldest: None })
    }

    /// Counts what a store takes, and notes it.
    pub(super) async fn note_size(&self, store: &SnapshotStore) -> Result<u64, GitError> {
        let objects = store.dir.join("objects");
        let bytes = blocking(move || Ok(size_of(&objects))).await?;
        write_note(&store.dir.join(SIZE), bytes.to_string().as_bytes())?;
        Ok(bytes)
    }

    /// Tells of snapshots of a session that went before their time, once.
    pub fn tell_gone(
        &self,
        directory: &std::path::Path,
        session: SessionId,
    ) -> Result<Option<String>, GitError> {
        let Some(repository) = self.around(directory)? else { return Ok(None) };
        let store = self.store(&repository)?;
        let Some(gone) = store.gone(session).filter(|gone| !gone.is_told) else { return Ok(None) };
        let (turn, why) = (gone.turn, gone.reason.words(self.bounds.store_bytes_max));
        store.write_gone(session, &GoneSnapshots { is_told: true, ..gone })?;
        Ok(Some(format!("the turns up to {turn} cannot be undone any more: {why}, and the oldest went")))
    }

    /// Why a turn of a session cannot be had any more, if somebody had to let go of it.
    pub fn why_gone(&self, directory: &std::path::Path, session: SessionId, turn: u64) -> Option<String> {
        let store = self.store(&self.around(directory).ok()??).ok()?;
        let gone = store.gone(session).filter(|gone| turn <= gone.turn)?;
        Some(format!("{}, and the oldest went", gone.reason.words(self.bounds.store_bytes_max)))
    }

    /// The repositories of which snapshots went because they took too much, or of which no more are copied.
    pub fn crowded_stores(&self) -> Vec<PathBuf> {
        let is_crowded = |store: &SnapshotStore| {
            store.is_beyond()
                || store.all_gone().iter().any(|(_, gone)| gone.reason == GoneReason::Repository)
        };
        self.stores().into_iter().filter(is_crowded).map(|store| store.common).collect()
    }

    /// The sessions of which snapshots went because those of their owner took too much.
    pub fn bounded_sessions(&self) -> Vec<SessionId> {
        let gone = self.stores().into_iter().flat_map(|store| store.all_gone());
        let of_person =
            gone.filter(|(_, gone)| gone.reason == GoneReason::Person).map(|(session, _)| session);
        of_person.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

impl SnapshotStore {
    fn of_sessions(&self, sessions: &[SessionId]) -> Vec<HiddenReference> {
        let own: BTreeSet<&SessionId> = sessions.iter().collect();
        own.into_iter().flat_map(|session| self.references(&format!("{HIDDEN}{session}/"))).collect()
    }

    /// Those of them that may go, the oldest first.
    fn may_go(&self, own: Vec<HiddenReference>) -> Vec<(SystemTime, HiddenReference)> {
        let young = SystemTime::now().checked_sub(LAST_HOUR).unwrap_or(SystemTime::UNIX_EPOCH);
        let timed = own.into_iter().filter_map(|each| Some((self.written(&each)?, each)));
        let mut old: Vec<_> =
            timed.filter(|(written, each)| *written <= young && !is_of_removed(&each.name)).collect();
        old.sort();
        old
    }

    /// Writes down that these go, before they do.
    pub(super) fn note_gone(&self, going: &[HiddenReference], reason: GoneReason) -> Result<(), GitError> {
        let mut last: BTreeMap<SessionId, u64> = BTreeMap::new();
        for reference in going {
            let Some((session, turn)) = turn_of(&reference.name) else { continue };
            let known = last.entry(session).or_default();
            *known = turn.max(*known);
        }
        for (session, turn) in last {
            let turn = self.gone(session).map_or(turn, |before| before.turn.max(turn));
            self.write_gone(session, &GoneSnapshots { turn, reason, is_told: false })?;
        }
        Ok(())
    }

    /// Every session of which snapshots went before their time.
    fn all_gone(&self) -> Vec<(SessionId, GoneSnapshots)> {
        let notes = fs::read_dir(self.dir.join(GONE)).into_iter().flatten().flatten();
        let gone = |note: fs::DirEntry| {
            let session = note.file_name().to_str()?.parse().ok()?;
            Some((session, self.gone(session)?))
        };
        notes.filter_map(gone).collect()
    }

    fn gone(&self, session: SessionId) -> Option<GoneSnapshots> {
        serde_json::from_slice(&read_own(&self.dir.join(GONE).join(session.to_string())).ok()?).ok()
    }

    fn write_gone(&self, session: SessionId, gone: &GoneSnapshots) -> Result<(), GitError> {
        let place = self.dir.join(GONE);
        make_private(&place)?;
        let text = serde_json::to_vec(gone).unwrap_or_default();
        write_whole(&place.join(session.to_string()), &text)
    }
}

/// True if it keeps a worktree that was removed.
pub(super) fn is_of_removed(reference: &str) -> bool {
    reference.rsplit('/').next().is_some_and(|last| last.starts_with(SnapshotMoment::Removed.word()))
}

fn turn_of(reference: &str) -> Option<(SessionId, u64)> {
    check_hidden(reference).ok()?;
    let session = SnapshotName::session_in(reference)?;
    let turn = reference.strip_prefix(HIDDEN)?.split('/').nth(1)?.parse().ok()?;
    Some((session, turn))
}

//! The room that snapshots take on the disk, for each person: with too much of it the oldest of theirs go, and nobody else's.
//!
//! Snapshots of one repository are in one store, whoever's sessions work there. A store is counted for somebody by what the
//! snapshots of their sessions reach in it, whoever else's do, too; until that was looked at, by all that it takes, which is never
//! less. It is looked at when it may matter: when everything that somebody has snapshots in takes more than they may have.
//!
//! A turn always runs. Where nothing is left to let go of, the tree is not remembered before it, and a notice says so.

use crate::engine_ports::EnginePorts;
use crate::errors::too_many_snapshot_bytes;
use crate::worktrees::Worktrees;
use crate::{ScopeError, SnapshotShare, SnapshotStoreSeen, TreesError, UnavailableError};
use kernel::{Moment, OrgId, PersonId, SessionId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The time between two looks, however many turns end meanwhile.
const LOOKS_PAUSE: Duration = Duration::from_secs(60);
/// Rounds in which snapshots of one person go in one look. Each takes a quarter of those in one store.
const ROUNDS_MAX: usize = 64;
/// The part of the bound that is left when the oldest have gone, in percent: otherwise some would go after each turn.
const LEFT_PERCENT: u64 = 75;

/// The age at which an owner is asked for again. There may be thousands of sessions, and few are handed over.
const OWNER_AGE_MS: u64 = 10 * 60 * 1_000;

/// A person of an org.
type Owner = (OrgId, PersonId);

/// The findings of the last look at whose what is.
#[derive(Debug, Default)]
pub(crate) struct SnapshotShares {
    /// By the store and the owner.
    shares: Mutex<BTreeMap<(String, String, Owner), KnownShare>>,
    /// The owners of sessions that have snapshots, and when they were asked for.
    owners: Mutex<BTreeMap<SessionId, (Option<Owner>, Moment)>>,
}

#[derive(Debug, Clone, Copy)]
struct KnownShare {
    share: SnapshotShare,
    /// The room that all of the store took then.
    store_bytes: u64,
}

impl SnapshotShares {
    fn known(&self, store: &SnapshotStoreSeen, owner: Owner) -> Option<KnownShare> {
        let all = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&(store.whose.clone(), store.key.clone(), owner)).copied()
    }

    fn know(&self, store: &SnapshotStoreSeen, owner: Owner, share: SnapshotShare) {
        let known = KnownShare { share, store_bytes: store.bytes };
        let mut all = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert((store.whose.clone(), store.key.clone(), owner), known);
    }

    /// The room that is counted for somebody in a store. Whatever was added since somebody looked may be theirs.
    fn counted(&self, store: &SnapshotStoreSeen, owner: Owner) -> u64 {
        let known = self.known(store, owner);
        let since = |known: KnownShare| known.share.bytes + store.bytes.saturating_sub(known.store_bytes);
        known.map_or(store.bytes, |known| since(known).min(store.bytes))
    }

    /// The owner of a session, if that was asked not long ago.
    fn owner(&self, session: SessionId, now: Moment) -> Option<Option<Owner>> {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let (owner, at) = owners.get(&session)?;
        (now.0.saturating_sub(at.0) < OWNER_AGE_MS).then_some(*owner)
    }

    fn know_owner(&self, session: SessionId, owner: Option<Owner>, now: Moment) {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner).insert(session, (owner, now));
    }

    /// Forgets those of stores and sessions that are not there any more.
    fn retain(&self, stores: &[SnapshotStoreSeen]) {
        let sessions: BTreeSet<_> = stores.iter().flat_map(|store| &store.sessions).collect();
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.retain(|session, _| sessions.contains(session));
        let is_there =
            |whose: &str, key: &str| stores.iter().any(|store| store.whose == whose && store.key == key);
        let mut all = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(whose, key, _), _| is_there(whose, key));
    }
}

/// The sessions of one person that have snapshots in a store.
#[derive(Debug)]
struct OwnPart {
    store: SnapshotStoreSeen,
    sessions: Vec<SessionId>,
}

impl EnginePorts {
    /// The room that the snapshots of somebody's sessions take, as it was last counted.
    pub(crate) async fn snapshot_bytes_of(
        &self,
        org: OrgId,
        owner: PersonId,
    ) -> Result<u64, UnavailableError> {
        let stores = self.snapshot_stores().await?;
        let parts = self.parts_of(stores).await?.remove(&(org, owner)).unwrap_or_default();
        Ok(parts.iter().map(|part| self.snapshot_shares.counted(&part.store, (org, owner))).sum())
    }

    /// Looks if more may be kept of somebody: whatever is removed is kept as a snapshot.
    pub(crate) async fn room_for_snapshot<E>(&self, org: OrgId, owner: PersonId) -> Result<(), E>
    where
        E: From<ScopeError> + From<UnavailableError>,
    {
        let limit = self.limits.snapshot_bytes_per_person_max;
        let used = self.snapshot_bytes_of(org, owner).await?;
        if used >= limit { Err(ScopeError::TooManySnapshotBytes { used, limit }.into()) } else { Ok(()) }
    }

    /// Those of all nodes.
    pub(crate) async fn snapshot_stores(&self) -> Result<Vec<SnapshotStoreSeen>, UnavailableError> {
        let mut stores = Vec::new();
        for node in self.cluster.nodes() {
            stores.extend(node.snapshot_stores().await.map_err(UnavailableError::Unavailable)?);
        }
        Ok(stores)
    }

    async fn owner_of(&self, session: SessionId) -> Result<Option<Owner>, UnavailableError> {
        let now = self.now();
        if let Some(owner) = self.snapshot_shares.owner(session, now) {
            return Ok(owner);
        }
        let owner = self.record(session).await?.map(|record| (record.org, record.owner));
        self.snapshot_shares.know_owner(session, owner, now);
        Ok(owner)
    }

    async fn parts_of(
        &self,
        stores: Vec<SnapshotStoreSeen>,
    ) -> Result<BTreeMap<Owner, Vec<OwnPart>>, UnavailableError> {
        let mut parts: BTreeMap<Owner, Vec<OwnPart>> = BTreeMap::new();
        for store in stores {
            let mut owners: BTreeMap<Owner, Vec<SessionId>> = BTreeMap::new();
            for session in &store.sessions {
                // Those of a session that nobody knows any more expire with time, and count for nobody.
                if let Some(owner) = self.owner_of(*session).await? {
                    owners.entry(owner).or_default().push(*session);
                }
            }
            for (owner, sessions) in owners {
                parts.entry(owner).or_default().push(OwnPart { store: store.clone(), sessions });
            }
        }
        Ok(parts)
    }
}

/// Looks after a start, and whenever snapshots have grown, as long as the engine lives.
pub(crate) fn start(worktrees: &Worktrees) {
    let looking = worktrees.clone();
    worktrees.ports.tasks.spawn(async move {
        loop {
            if let Err(error) = looking.bound_snapshots().await {
                tracing::warn!(%error, "the room that snapshots take could not be looked at; later again");
            }
            looking.trees.grown().await;
            tokio::time::sleep(LOOKS_PAUSE).await;
        }
    });
}

impl Worktrees {
    /// The room that all snapshots took when they were last counted.
    pub async fn snapshot_bytes(&self) -> Result<u64, crate::WorktreeError> {
        Ok(self.ports.snapshot_stores().await?.iter().map(|store| store.bytes).sum())
    }

    /// Lets the oldest snapshots of those go who have too many.
    async fn bound_snapshots(&self) -> Result<(), UnavailableError> {
        let limit = self.ports.limits.snapshot_bytes_per_person_max;
        let stores = self.trees.snapshot_stores().await.map_err(unknown)?;
        self.ports.snapshot_shares.retain(&stores);
        let all: u64 = stores.iter().map(|store| store.bytes).sum();
        let mut full = BTreeMap::new();
        // As long as all of them together take no more, nobody does.
        let parts = if all >= limit { self.ports.parts_of(stores).await? } else { BTreeMap::new() };
        for (owner, parts) in parts {
            let on_disk: u64 = parts.iter().map(|part| part.store.bytes).sum();
            if on_disk < limit {
                continue;
            }
            let used = self.bound_one(owner, &parts).await?;
            // What was let go of stays on the disk for a while. It is not to be twice as much as may be.
            if used >= limit || on_disk >= limit.saturating_mul(2) {
                full.insert(owner.1.to_string(), too_many_snapshot_bytes(used.max(on_disk), limit));
            }
        }
        self.trees.set_full(full);
        Ok(())
    }

    /// Lets the oldest snapshots of one person go as long as they take too much. Answers what is left.
    async fn bound_one(&self, owner: Owner, parts: &[OwnPart]) -> Result<u64, UnavailableError> {
        let limit = self.ports.limits.snapshot_bytes_per_person_max;
        let walled = self.way_in.rights_cache.needs_wall().await?;
        let mut shares = Vec::new();
        for part in parts {
            let known = self.ports.snapshot_shares.known(&part.store, owner);
            let known = known.filter(|known| known.store_bytes == part.store.bytes);
            let share = match known {
                Some(known) => known.share,
                None => {
                    let asked = self.trees.snapshot_share(part.store.clone(), part.sessions.clone(), walled);
                    asked.await.map_err(unknown)?
                }
            };
            self.ports.snapshot_shares.know(&part.store, owner, share);
            shares.push(share);
        }
        let used = |shares: &[SnapshotShare]| shares.iter().map(|share| share.bytes).sum::<u64>();
        if used(&shares) < limit {
            return Ok(used(&shares));
        }
        let mut touched = BTreeSet::new();
        for _ in 0..ROUNDS_MAX {
            let oldest = (0..shares.len()).filter(|at| shares[*at].oldest.is_some());
            let Some(at) = oldest.min_by_key(|at| shares[*at].oldest) else { break };
            if used(&shares) < limit / 100 * LEFT_PERCENT {
                break;
            }
            let part = &parts[at];
            let going = self.trees.let_snapshots_go(part.store.clone(), part.sessions.clone(), walled);
            shares[at] = going.await.map_err(unknown)?;
            self.ports.snapshot_shares.know(&part.store, owner, shares[at]);
            touched.insert(at);
        }
        for part in touched.iter().map(|at: &usize| &parts[*at]) {
            let repository = part.store.repository.for_readers();
            tracing::info!(person = %owner.1, repository, "the oldest snapshots have gone");
            self.trees.compact_snapshots(part.store.clone(), walled).await.map_err(unknown)?;
        }
        // What is added from here on is added to what the stores take now.
        let now = self.trees.snapshot_stores().await.map_err(unknown)?;
        let is_of = |store: &&SnapshotStoreSeen, part: &OwnPart| {
            store.whose == part.store.whose && store.key == part.store.key
        };
        for at in touched {
            let store = now.iter().find(|store| is_of(store, &parts[at]));
            store.into_iter().for_each(|store| self.ports.snapshot_shares.know(store, owner, shares[at]));
        }
        Ok(used(&shares))
    }
}

fn unknown(why: TreesError) -> UnavailableError {
    UnavailableError::Unavailable(why.to_string())
}

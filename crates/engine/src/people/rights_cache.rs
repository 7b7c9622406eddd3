//! A cache of what somebody may do, for a moment.
//!
//! Whoever watches for long asks again at every change on this node, and at least every `LOOK_EVERY`, because another node
//! may have made one. A thousand watchers would ask the store the same; so an answer is shared while it is this young.

use crate::engine_ports::EnginePorts;
use crate::view::readable;
use crate::{AccessError, ViewError};
use kernel::{OrgId, PersonId, Principal, Record, SessionId, TokenId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::{OrgSettings, SessionRow, StoreError};
use tokio::time::Instant;

/// The time between two looks of a watcher whether it may still watch. With `YOUNG`, less than a second.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(600);
/// The time for which an answer is shared.
const YOUNG: Duration = Duration::from_millis(300);
/// Answers of each sort; beyond them we begin anew.
const KNOWN_MAX: usize = 4_096;

/// The cache: principals, records and settings, each for a moment, and only while nobody's rights have changed.
#[derive(Debug)]
pub(crate) struct RightsCache {
    ports: Arc<EnginePorts>,
    /// True if people are let in although nothing keeps their agents apart.
    trust_everyone: bool,
    principals: ExpiringMap<TokenId, Option<Principal>>,
    records: ExpiringMap<SessionId, Option<Record>>,
    settings: ExpiringMap<OrgId, OrgSettings>,
    crowded: ExpiringMap<(), bool>,
    /// Handles never change.
    handles: Mutex<BTreeMap<(OrgId, PersonId), String>>,
}

/// Answers of one sort.
#[derive(Debug)]
struct ExpiringMap<K, V>(Mutex<BTreeMap<K, (u64, Instant, V)>>);

impl<K, V> Default for ExpiringMap<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord, V: Clone> ExpiringMap<K, V> {
    fn young(&self, key: &K, rights: u64) -> Option<V> {
        let known = self.known();
        let (since, at, value) = known.get(key)?;
        (*since == rights && at.elapsed() < YOUNG).then(|| value.clone())
    }

    /// `rights` was read before the store was asked: a change in between makes this old at once.
    fn keep(&self, key: K, rights: u64, value: V) {
        let mut known = self.known();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(key, (rights, Instant::now(), value));
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<K, (u64, Instant, V)>> {
        // Nobody panics while holding it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RightsCache {
    pub(crate) fn new(ports: Arc<EnginePorts>, trust_everyone: bool) -> Self {
        let (principals, records, settings) =
            (ExpiringMap::default(), ExpiringMap::default(), ExpiringMap::default());
        let (crowded, handles) = (ExpiringMap::default(), Mutex::default());
        Self { ports, trust_everyone, principals, records, settings, crowded, handles }
    }

    pub(crate) fn trusts_everyone(&self) -> bool {
        self.trust_everyone
    }

    /// The same principal with what they may do now, for whoever has held it for a while; none if their credential is not
    /// good any more.
    pub(crate) async fn refreshed(&self, by: &Principal) -> Result<Option<Principal>, StoreError> {
        let Some(credential) = by.credential else { return Ok(Some(by.clone())) };
        let rights = self.ports.rights_now();
        if let Some(known) = self.principals.young(&credential, rights) {
            return Ok(known);
        }
        let now = self.ports.store.principal(credential, self.ports.now()).await?;
        self.principals.keep(credential, rights, now.clone());
        Ok(now)
    }

    /// True if they may still read this session.
    pub(crate) async fn may_still_read(&self, by: &Principal, session: SessionId) -> Result<(), ViewError> {
        let by = self.refreshed(by).await?.ok_or(AccessError::Unauthenticated)?;
        let rights = self.ports.rights_now();
        let record = match self.records.young(&session, rights) {
            Some(record) => record,
            None => {
                let found: Option<(Record, SessionRow)> = self.ports.store.session(session).await?;
                let record = found.map(|(record, _)| record);
                self.records.keep(session, rights, record.clone());
                record
            }
        };
        let record = record.ok_or(AccessError::NotFound { what: "session" })?;
        Ok(readable(&by, &record, "session")?)
    }

    /// The settings of the org.
    pub(crate) async fn settings_of(&self, org: OrgId) -> Result<OrgSettings, StoreError> {
        let rights = self.ports.rights_now();
        if let Some(settings) = self.settings.young(&org, rights) {
            return Ok(settings);
        }
        let settings = self.ports.store.org(org).await?.map(|row| row.settings).unwrap_or_default();
        self.settings.keep(org, rights, settings);
        Ok(settings)
    }

    /// True if agents are not to be started without a wall: more than one person can come in here, and nobody has said
    /// that all of them are trusted. What was proved when they were let in may not be so any more.
    pub(crate) async fn needs_wall(&self) -> Result<bool, StoreError> {
        if self.trusts_everyone() {
            return Ok(false);
        }
        let rights = self.ports.rights_now();
        if let Some(crowded) = self.crowded.young(&(), rights) {
            return Ok(crowded);
        }
        let people: u32 = self.ports.store.orgs().await?.iter().map(|org| org.people).sum();
        self.crowded.keep((), rights, people > 1);
        Ok(people > 1)
    }

    /// The handle of somebody of the caller's org, for names beside ids. None if there is nobody of this id.
    pub(crate) async fn handle_of(
        &self,
        by: &Principal,
        person: PersonId,
    ) -> Result<Option<String>, StoreError> {
        if person == by.person {
            return Ok(Some(by.handle.clone()));
        }
        self.handle_in(by.org, person).await
    }

    pub(crate) async fn handle_in(&self, org: OrgId, person: PersonId) -> Result<Option<String>, StoreError> {
        let handles = || self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        let known = handles().get(&(org, person)).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let handle = self.ports.store.person(org, person).await?.map(|row| row.handle);
        if let Some(handle) = &handle {
            let mut handles = handles();
            if handles.len() >= KNOWN_MAX {
                handles.clear();
            }
            handles.insert((org, person), handle.clone());
        }
        Ok(handle)
    }
}

//! A cache of what somebody may do, for a moment.
//!
//! Whoever watches for long asks again at every change on this node, and at least every `LOOK_EVERY`, because another node
//! may have made one. A thousand watchers would ask the store the same; so an answer is shared while it is this young.

use crate::{Engine, Refused};
use kernel::{OrgId, PersonId, Principal, Record, SessionId, TokenId};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::{OrgSettings, SessionRow};
use tokio::time::Instant;

/// How often a watcher looks whether it may still watch. With `YOUNG`, less than a second.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(600);
/// How long an answer is shared.
const YOUNG: Duration = Duration::from_millis(300);
/// Answers of each sort; beyond them we begin anew.
const KNOWN_MAX: usize = 4_096;

/// The cache: principals, records and settings, each for a moment, and only while nobody's rights have changed.
#[derive(Debug, Default)]
pub(crate) struct RightsCache {
    principals: Young<TokenId, Option<Principal>>,
    records: Young<SessionId, Option<Record>>,
    settings: Young<OrgId, OrgSettings>,
    crowded: Young<(), bool>,
    /// Handles never change.
    handles: Mutex<BTreeMap<(OrgId, PersonId), String>>,
}

/// Answers of one sort.
#[derive(Debug)]
struct Young<K, V>(Mutex<BTreeMap<K, (u64, Instant, V)>>);

impl<K, V> Default for Young<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord, V: Clone> Young<K, V> {
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

impl Engine {
    /// The same principal with what they may do now: for whoever has held it for a while.
    pub async fn refreshed(&self, by: &Principal) -> Result<Principal, Refused> {
        let Some(credential) = by.credential else { return Ok(by.clone()) };
        let rights = self.rights_now();
        let known = match self.rights_cache().principals.young(&credential, rights) {
            Some(known) => known,
            None => {
                let now = self.store().principal(credential, self.now()).await?;
                self.rights_cache().principals.keep(credential, rights, now.clone());
                now
            }
        };
        known.ok_or(Refused::Unauthenticated)
    }

    /// Whether they may still read this session.
    pub(crate) async fn may_still_read(&self, by: &Principal, session: SessionId) -> Result<(), Refused> {
        let by = self.refreshed(by).await?;
        let rights = self.rights_now();
        let record = match self.rights_cache().records.young(&session, rights) {
            Some(record) => record,
            None => {
                let found: Option<(Record, SessionRow)> = self.store().session(session).await?;
                let record = found.map(|(record, _)| record);
                self.rights_cache().records.keep(session, rights, record.clone());
                record
            }
        };
        let record = record.ok_or(Refused::NotFound { what: "session" })?;
        crate::view::readable(&by, &record, "session")
    }

    /// What the org decides for itself.
    pub(crate) async fn settings_of(&self, org: OrgId) -> Result<OrgSettings, store::StoreError> {
        let rights = self.rights_now();
        if let Some(settings) = self.rights_cache().settings.young(&org, rights) {
            return Ok(settings);
        }
        let settings = self.store().org(org).await?.map(|row| row.settings).unwrap_or_default();
        self.rights_cache().settings.keep(org, rights, settings);
        Ok(settings)
    }

    /// Whether agents are not to be started without a wall: more than one person can come in here, and nobody has said that
    /// all of them are trusted. What was proved when they were let in may not be so any more.
    pub(crate) async fn needs_wall(&self) -> Result<bool, store::StoreError> {
        if self.trusts_everyone() {
            return Ok(false);
        }
        let rights = self.rights_now();
        if let Some(crowded) = self.rights_cache().crowded.young(&(), rights) {
            return Ok(crowded);
        }
        let people: u32 = self.store().orgs().await?.iter().map(|org| org.people).sum();
        self.rights_cache().crowded.keep((), rights, people > 1);
        Ok(people > 1)
    }

    /// How somebody of the caller's org is called, for names beside ids. None if there is nobody of this id.
    pub async fn handle_of(&self, by: &Principal, person: PersonId) -> Result<Option<String>, Refused> {
        if person == by.person {
            return Ok(Some(by.handle.clone()));
        }
        Ok(self.handle_in(by.org, person).await?)
    }

    pub(crate) async fn handle_in(
        &self,
        org: OrgId,
        person: PersonId,
    ) -> Result<Option<String>, store::StoreError> {
        let handles = || self.rights_cache().handles.lock().unwrap_or_else(PoisonError::into_inner);
        let known = handles().get(&(org, person)).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let handle = self.store().person(org, person).await?.map(|row| row.handle);
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

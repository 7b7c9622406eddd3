//! The chain over an org's audit: each entry's seal is made of the one before, so that no entry can be changed, taken out
//! or put in without every seal after it being wrong. The seals are keyed, and the key is not in the database.

use crate::{AuditKeys, AuditRow};
use hmac::{Hmac, KeyInit, Mac};
use kernel::Moment;
use sha2::Sha256;

/// The key that seals are made with. Shown nowhere.
#[derive(Clone)]
pub struct ChainKey(pub [u8; 32]);

impl std::fmt::Debug for ChainKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ChainKey")
    }
}

/// Where a chain ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChainHead {
    /// The number of the last sealed entry; 0 if there is none.
    pub number: u64,
    /// Its seal.
    pub seal: [u8; 32],
}

/// A walk along a chain, from its first entry on, by whoever verifies it.
#[derive(Debug, Default)]
pub struct ChainWalk {
    head: ChainHead,
    /// The latest moment so far.
    latest: Moment,
}

impl ChainWalk {
    /// The last entry that is as it was sealed.
    pub fn head(&self) -> ChainHead {
        self.head
    }

    /// Takes the next entry, with the columns by which it is found; or says what is wrong with it.
    pub fn step(
        &mut self,
        key: &ChainKey,
        row: &AuditRow,
        found_by: Option<&AuditKeys>,
    ) -> Result<(), &'static str> {
        let number = self.head.number + 1;
        let Some((stored, made)) = row.sealed else { return Err("it has no seal") };
        if stored != number {
            return Err("an entry before this one is missing");
        }
        if seal(key, self.head, number, row) != made {
            return Err("it was changed, or sealed with another key");
        }
        let keys = AuditKeys::of(row, self.latest);
        if found_by != Some(&keys) {
            return Err("what it is found by was changed: whoever asks for a part of the audit may miss it");
        }
        *self = Self { head: ChainHead { number, seal: made }, latest: keys.at };
        Ok(())
    }
}

/// The seal of the entry that gets this number after that head. What is sealed is every field, each with its length, so
/// that nothing can be moved from one into the next.
pub fn seal(key: &ChainKey, before: ChainHead, number: u64, row: &AuditRow) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(&key.0).expect("a key of any length will do");
    let mut put = |bytes: &[u8]| {
        mac.update(&(bytes.len() as u64).to_be_bytes());
        mac.update(bytes);
    };
    put(&before.seal);
    put(&number.to_be_bytes());
    put(&row.entry.to_be_bytes());
    put(&row.at.0.to_be_bytes());
    put(row.org.to_string().as_bytes());
    put(row.by.map(|by| by.to_string()).unwrap_or_default().as_bytes());
    put(row.verb.as_bytes());
    put(row.door.as_bytes());
    put(row.address.as_deref().unwrap_or_default().as_bytes());
    put(row.correlation.as_bytes());
    put(row.session.map(|session| session.to_string()).unwrap_or_default().as_bytes());
    put(row.subject.as_deref().unwrap_or_default().as_bytes());
    put(row.refused.as_deref().unwrap_or_default().as_bytes());
    mac.finalize().into_bytes().into()
}

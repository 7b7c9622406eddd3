//! Reading the audit, and proving that nobody has changed it.

use super::change::may;
use crate::{People, PeopleError};
use kernel::{Moment, OrgAct, PersonId, Principal};
use store::chain::ChainWalk;
use store::{AuditQuery, AuditRow, ChainHead};

/// Entries that are verified at once.
const PAGE: usize = 1_000;

/// The choice of entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditWish {
    /// At this moment or later.
    pub since: Option<Moment>,
    /// Before this moment.
    pub until: Option<Moment>,
    pub who: Option<PersonId>,
    /// A verb.
    pub what: Option<String>,
    /// An id or a name of something that it was about.
    pub subject: Option<String>,
    /// Continue before this entry of the page before.
    pub before: Option<u64>,
    pub limit: usize,
}

/// The result of verifying an org's chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainCheck {
    /// The number of entries that are as they were sealed, from the first on.
    pub entries: u64,
    /// The last of them. Kept elsewhere, it proves later that nothing before it was changed.
    pub head: ChainHead,
    /// The first that is not.
    pub broken: Option<Broken>,
}

/// Where a chain breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The number in the chain at which something is wrong.
    pub number: u64,
    /// The entry that was found there.
    pub entry: Option<u64>,
    /// The fault, for people.
    pub why: &'static str,
}

impl People {
    /// A page of the org's audit, newest first.
    pub async fn audit(&self, by: &Principal, wish: AuditWish) -> Result<Vec<AuditRow>, PeopleError> {
        may(by, OrgAct::Audit)?;
        let AuditWish { since, until, who, what, subject, before, limit } = wish;
        let query = AuditQuery { org: by.org, since, until, who, what, subject, before, limit };
        Ok(self.ports.store.audit_page(query).await?)
    }

    /// Makes every seal of the org's chain again and compares, and so with what entries are found by. Whoever changed, took out or put in an entry without the
    /// key cannot have made the seals that follow.
    pub async fn verify_audit(&self, by: &Principal) -> Result<ChainCheck, PeopleError> {
        may(by, OrgAct::Audit)?;
        // What is sealed from here on may be read or not; what was sealed before must be there.
        let end = self.ports.store.chain_head(by.org).await?;
        let (key, mut walk) = (self.seal.chain_key(), ChainWalk::default());
        let mut verified = ChainCheck { entries: 0, head: ChainHead::default(), broken: None };
        loop {
            let page = self.ports.store.sealed(by.org, verified.head.number, PAGE).await?;
            let keys = self.ports.store.sealed_keys(by.org, verified.head.number, PAGE).await?;
            let keys = keys.iter().map(Some).chain(std::iter::repeat(None));
            for (row, found_by) in page.iter().zip(keys) {
                let number = verified.head.number + 1;
                if let Err(why) = walk.step(&key, row, found_by).and_then(|()| is_end(walk.head(), end)) {
                    verified.broken = Some(Broken { number, entry: Some(row.entry), why });
                    return Ok(verified);
                }
                verified.head = walk.head();
                verified.entries += 1;
            }
            if page.len() < PAGE {
                break;
            }
        }
        if verified.head.number < end.number {
            let why = "the chain ends here, and was longer: entries were taken out";
            verified.broken = Some(Broken { number: verified.head.number + 1, entry: None, why });
        }
        Ok(verified)
    }
}

/// Where the chain has ended it ends with the entry that was the last.
fn is_end(head: ChainHead, end: ChainHead) -> Result<(), &'static str> {
    if head.number == end.number && head.seal != end.seal {
        return Err("it is not the entry with which the chain ended");
    }
    Ok(())
}

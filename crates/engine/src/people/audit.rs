//! Reading the audit, and proving that nobody has changed it.

use super::change::may;
use crate::{People, PeopleError};
use kernel::{Moment, OrgAct, PersonId, Principal};
use store::{AuditQuery, AuditRow, ChainHead, ChainKey, chain};

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

    /// Makes every seal of the org's chain again and compares. Whoever changed, took out or put in an entry without the
    /// key cannot have made the seals that follow.
    pub async fn verify_audit(&self, by: &Principal) -> Result<ChainCheck, PeopleError> {
        may(by, OrgAct::Audit)?;
        // What is sealed from here on may be read or not; what was sealed before must be there.
        let end = self.ports.store.chain_head(by.org).await?;
        let key = self.seal.chain_key();
        let mut verified = ChainCheck { entries: 0, head: ChainHead::default(), broken: None };
        loop {
            let page = self.ports.store.sealed(by.org, verified.head.number, PAGE).await?;
            for row in &page {
                verified.broken = compare(&key, &mut verified.head, row, end);
                if verified.broken.is_some() {
                    return Ok(verified);
                }
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

/// True if the row is the next of the chain; then it is the head.
fn compare(key: &ChainKey, head: &mut ChainHead, row: &AuditRow, end: ChainHead) -> Option<Broken> {
    let (number, entry) = (head.number + 1, Some(row.entry));
    let broken = |why| Some(Broken { number, entry, why });
    let Some((stored, seal)) = row.sealed else { return broken("it has no seal") };
    if stored != number {
        return broken("an entry before this one is missing");
    }
    if chain::seal(key, *head, number, row) != seal {
        return broken("it was changed, or sealed with another key");
    }
    if number == end.number && seal != end.seal {
        return broken("it is not the entry with which the chain ended");
    }
    *head = ChainHead { number, seal };
    None
}

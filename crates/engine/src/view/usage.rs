//! Usage, by day, agent and person, in whatever the caller may see.

use crate::{ViewError, Views};
use kernel::Principal;
use store::{Day, Seer, UsageQuery, UsageRow};

impl Views {
    /// The usage of these days, the first day first.
    pub async fn usage(&self, by: &Principal, from: Day, to: Day) -> Result<Vec<UsageRow>, ViewError> {
        super::may_read(by, "session")?;
        Ok(self.ports.store.usage(UsageQuery { by: Seer::of(by), from, to }).await?)
    }

    /// The day that it is.
    pub fn today(&self) -> Day {
        Day::of(self.ports.now())
    }
}

//! The sessions that change, one after the other, without end: as heads only.

use crate::follow_rows::FollowRows;
use crate::{ViewError, Views};
use kernel::Principal;
use store::{ChangedRow, Head, RowChange};

/// The sessions whose log goes on, one after the other, without end.
#[derive(Debug)]
pub struct FollowHeads(FollowRows);

impl Views {
    /// The newest numbers of sessions that changed after a place among all changes, and of those that will.
    pub async fn follow_heads(&self, by: &Principal, after: u64) -> Result<FollowHeads, ViewError> {
        Ok(FollowHeads(self.follow_rows(by, after).await?))
    }
}

impl FollowHeads {
    /// The next one to tell. `None` is the end: they may not know any more, or the node goes down. Cancel-safe.
    pub async fn next(&mut self) -> Option<Head> {
        loop {
            let RowChange { place, session, row } = self.0.next().await?;
            if let ChangedRow::At(number) = row {
                return Some(Head { place, session, number });
            }
        }
    }
}

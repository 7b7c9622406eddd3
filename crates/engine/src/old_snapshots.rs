//! Snapshots that older versions kept on refs of people's own repositories are taken over, also those of sessions in which nothing
//! happens any more.
//!
//! A session whose turn ends, or of which a turn is asked for, has its own taken over then. All others are asked here one after the
//! other, some time after a start and from time to time, the ended ones, too. Where there is nothing to ask, nothing is started: each
//! session is asked once, and its store remembers that.

use crate::worktrees::Worktrees;
use crate::{OwnedSession, UnavailableError};
use std::time::Duration;
use store::{Seer, SessionFilter, SessionRow, SessionsQuery, Which};

/// The time for which a server that has just been started is left alone.
const START_WAIT: Duration = Duration::from_secs(60);
/// The pause after a session that had to be asked, so that whoever works meanwhile comes first.
const ASKED_PAUSE: Duration = Duration::from_millis(500);
/// Rows of one page.
const PAGE: usize = 100;

/// Asks all, as long as the engine lives.
pub(crate) fn start(worktrees: &Worktrees) {
    let every = worktrees.ports.limits.worktrees.every;
    if every.is_zero() {
        return;
    }
    let asking = worktrees.clone();
    worktrees.ports.tasks.spawn(async move {
        tokio::time::sleep(START_WAIT.min(every)).await;
        loop {
            match asking.take_over_all().await {
                Ok(0) => {}
                Ok(sessions) => tracing::info!(sessions, "snapshots of older versions were taken over"),
                Err(error) => tracing::warn!(%error, "sessions could not be listed; later again"),
            }
            tokio::time::sleep(every).await;
        }
    });
}

impl Worktrees {
    /// Answers how many had to be asked.
    async fn take_over_all(&self) -> Result<usize, UnavailableError> {
        let mut asked = 0;
        for org in self.ports.store.orgs().await? {
            let mut after = None;
            loop {
                let people = self.ports.store.people(org.org, after.take(), PAGE).await?;
                let is_last = people.len() < PAGE;
                for person in people {
                    let groups = Vec::new();
                    let by =
                        Seer { org: org.org, person: person.person, role: person.role, groups, bound: None };
                    asked += self.take_over_of(by).await?;
                    after = Some(person.handle);
                }
                if is_last {
                    break;
                }
            }
        }
        Ok(asked)
    }

    /// Those of one person.
    async fn take_over_of(&self, by: Seer) -> Result<usize, UnavailableError> {
        let (mut asked, mut after) = (0, None);
        loop {
            let query = SessionsQuery {
                by: by.clone(),
                which: Which::All,
                filter: SessionFilter::default(),
                after,
                limit: PAGE,
            };
            let rows = self.ports.store.sessions(query).await?;
            let is_last = rows.len() < PAGE;
            for row in rows {
                after = Some((row.touched_at, row.session));
                // Others' that they may see are asked as others'.
                if row.owner == by.person && self.take_over_one(row).await? {
                    asked += 1;
                    tokio::time::sleep(ASKED_PAUSE).await;
                }
            }
            if is_last || self.ports.is_closing() {
                return Ok(asked);
            }
        }
    }

    /// True if it had to be asked.
    async fn take_over_one(&self, row: SessionRow) -> Result<bool, UnavailableError> {
        let walled = self.way_in.rights_cache.needs_wall().await?;
        let of = OwnedSession {
            session: row.session,
            whose: row.owner.to_string(),
            walled,
            tree_bytes_left: None,
        };
        match self.trees.take_over(of, &row.scope.directory).await {
            Ok(was_asked) => Ok(was_asked),
            Err(error) => {
                // Its directory is gone, or somebody is at it: the next time, or when the session is asked.
                tracing::debug!(session = %row.session, %error, "snapshots of older versions stay for now");
                Ok(true)
            }
        }
    }
}

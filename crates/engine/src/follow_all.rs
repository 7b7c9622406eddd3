//! Everything that one browser shows, as one stream: the rows of its lists that change, and what happens in the sessions that it
//! watches.
//!
//! It merges one `FollowRows` and a `ReadyFollow` for each watched session, and remembers nothing that those do not: whoever
//! comes back names the place and the numbers that they have. Each part heeds rights by itself. A session that may not be seen any
//! more is told as gone, and the others go on; a credential that is good for nothing ends everything, and so does a part that
//! lags behind: its reader is too slow, and comes back.

use crate::follow_rows::FollowRows;
use crate::{AccessError, FollowUpdate, InvalidError, ReadyFollow, ViewError, Views};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use kernel::{Number, Principal, SessionId};
use std::collections::{BTreeSet, VecDeque};
use std::pin::Pin;
use std::time::Duration;
use store::{RowChange, SessionRow};
use tokio::time::Instant;

/// Sessions that one stream may watch: as many as anybody has open in tabs and panes, while each costs a look at rights and
/// readiness.
pub const WATCHES_MAX: usize = 32;
/// The time between two reads of changed rows. A row follows a fact, and an agent that talks makes many of them a second.
const ROWS_EVERY: Duration = Duration::from_millis(200);

/// The events for a browser.
#[derive(Debug)]
pub enum BrowserUpdate {
    /// It has begun after this place among all changes: everything that changes from now on is told.
    Began(u64),
    /// A session's row in lists is another one, or new to them. The place is where to go on after it.
    Row(u64, Box<SessionRow>),
    /// A session that they may not see any more, or that they wanted to watch and never could; with the place if that is
    /// where to go on after it.
    Gone(Option<u64>, SessionId),
    /// Something happened in a watched session.
    Watched(SessionId, FollowUpdate),
}

/// A watched session, and what is told next of it.
type Watching = Pin<Box<dyn Future<Output = (SessionId, Box<ReadyFollow>, Option<FollowUpdate>)> + Send>>;

/// Everything that one browser shows, one after the other, without end.
pub struct FollowAll {
    views: Views,
    by: Principal,
    rows: FollowRows,
    /// When changed rows are read again.
    rows_at: Instant,
    /// The change whose row is being looked up.
    changed: Option<RowChange>,
    /// Told before anything else.
    first: VecDeque<BrowserUpdate>,
    watched: FuturesUnordered<Watching>,
    /// The session of which it is being looked up why nothing more comes.
    ended: Option<SessionId>,
}

impl std::fmt::Debug for FollowAll {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FollowAll").field("by", &self.by.person).finish_non_exhaustive()
    }
}

impl Views {
    /// The rows that changed after a place among all changes, or from now on, and each of these sessions after a number; and
    /// everything that is to come.
    pub async fn follow_all(
        &self,
        by: &Principal,
        after: Option<u64>,
        watches: Vec<(SessionId, Number)>,
    ) -> Result<FollowAll, ViewError> {
        check_watches(&watches)?;
        let last = self.ports.store.last_place().await?;
        if after.is_some_and(|after| after > last) {
            // A place of another store, or one that was given up by a restore: silence would look like an answer.
            let reason = "changes have not come so far: begin again without one".to_owned();
            return Err(InvalidError { field: "cursor", reason }.into());
        }
        let place = after.unwrap_or(last);
        let rows = self.follow_rows(by, place).await?;
        let (watched, mut first) = (FuturesUnordered::new(), VecDeque::from([BrowserUpdate::Began(place)]));
        for (session, number) in watches {
            match self.follow(by, session, number).await {
                Ok(follow) => watched.push(next_of(session, Box::new(follow.with_readiness()))),
                Err(ViewError::Access(AccessError::NotFound { .. })) => {
                    first.push_back(BrowserUpdate::Gone(None, session));
                }
                Err(ViewError::Invalid(InvalidError { reason, .. })) => {
                    return Err(bad_watch(format!("{session}: {reason}")).into());
                }
                Err(other) => return Err(other),
            }
        }
        let (views, by, rows_at) = (self.clone(), by.clone(), Instant::now());
        Ok(FollowAll { views, by, rows, rows_at, changed: None, first, watched, ended: None })
    }
}

fn check_watches(watches: &[(SessionId, Number)]) -> Result<(), InvalidError> {
    if watches.len() > WATCHES_MAX {
        return Err(bad_watch(format!("at most {WATCHES_MAX} sessions are watched by one stream")));
    }
    let sessions: BTreeSet<_> = watches.iter().map(|(session, _)| session).collect();
    match sessions.len() == watches.len() {
        true => Ok(()),
        false => Err(bad_watch("names a session twice".to_owned())),
    }
}

fn bad_watch(reason: String) -> InvalidError {
    InvalidError { field: "watch", reason }
}

fn next_of(session: SessionId, mut follow: Box<ReadyFollow>) -> Watching {
    Box::pin(async move {
        let told = follow.next().await;
        (session, follow, told)
    })
}

/// The next thing that is heard for a browser.
enum Next {
    Changed(RowChange),
    Watched(SessionId, Box<ReadyFollow>, Option<FollowUpdate>),
}

impl FollowAll {
    /// The next thing to tell. `None` is the end: the reader lagged behind, their credential is good for nothing any more, or the
    /// node goes down; they may come back with the place and the numbers they have. Cancel-safe.
    pub async fn next(&mut self) -> Option<BrowserUpdate> {
        loop {
            if let Some(update) = self.first.pop_front() {
                return Some(update);
            }
            if let Some(session) = self.ended {
                self.still_in().await?;
                let gone = self.is_gone(session).await?;
                self.ended = None;
                if !gone {
                    return None;
                }
                return Some(BrowserUpdate::Gone(None, session));
            }
            if let Some(change) = self.changed {
                let update = self.row_of(change).await?;
                self.changed = None;
                return Some(update);
            }
            match self.hear().await? {
                Next::Changed(change) => self.changed = Some(change),
                Next::Watched(session, _, None) => self.ended = Some(session),
                Next::Watched(session, follow, Some(update)) => {
                    self.watched.push(next_of(session, follow));
                    return Some(BrowserUpdate::Watched(session, update));
                }
            }
        }
    }

    /// Rows come first: they are paced, so an agent that never stops talking is heard in between, and does not keep rows back.
    async fn hear(&mut self) -> Option<Next> {
        let Self { rows, rows_at, watched, .. } = self;
        let is_begun = !rows.has_more();
        let next = tokio::select! {
            biased;
            change = next_row(rows, *rows_at) => Next::Changed(change?),
            Some((session, follow, told)) = watched.next() => Next::Watched(session, follow, told),
        };
        if is_begun && matches!(next, Next::Changed(_)) {
            *rows_at = Instant::now() + ROWS_EVERY;
        }
        Some(next)
    }

    /// A changed row as it is now, for whoever looks as they are now.
    async fn row_of(&mut self, change: RowChange) -> Option<BrowserUpdate> {
        self.still_in().await?;
        match self.views.session(&self.by, change.session).await {
            Ok(row) => Some(BrowserUpdate::Row(change.place, Box::new(row))),
            // They could see it when it changed, or before.
            Err(ViewError::Access(AccessError::NotFound { .. })) => {
                Some(BrowserUpdate::Gone(Some(change.place), change.session))
            }
            Err(_) => None,
        }
    }

    /// True if they may not see it any more; none if nobody knows.
    async fn is_gone(&mut self, session: SessionId) -> Option<bool> {
        match self.views.session(&self.by, session).await {
            Ok(_) => Some(false),
            Err(ViewError::Access(AccessError::NotFound { .. })) => Some(true),
            Err(_) => None,
        }
    }

    /// Whoever looks, as they are now; none if they cannot come in any more.
    async fn still_in(&mut self) -> Option<()> {
        self.by = self.views.rights_cache.refreshed(&self.by).await.ok()??;
        Some(())
    }

    /// The sessions that were to be watched and cannot be, as long as that was not told.
    pub fn unseen(&self) -> impl Iterator<Item = SessionId> {
        self.first.iter().filter_map(|update| match update {
            BrowserUpdate::Gone(_, session) => Some(*session),
            BrowserUpdate::Began(_) | BrowserUpdate::Row(..) | BrowserUpdate::Watched(..) => None,
        })
    }

    /// Whoever looks, as they were when something was last told of a row.
    pub fn by(&self) -> &Principal {
        &self.by
    }
}

async fn next_row(rows: &mut FollowRows, rows_at: Instant) -> Option<RowChange> {
    if !rows.has_more() {
        tokio::time::sleep_until(rows_at).await;
    }
    rows.next().await
}

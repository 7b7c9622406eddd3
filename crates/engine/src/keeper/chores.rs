//! Chores: what is done with a session's worktrees, or with what runs in its background, while no turn of it runs.
//!
//! A chore is a row in the inbox like any other request, and its row stays until it is over: then its verdict is written
//! together with the story of it. The keeper is the only one who starts turns and errands. While a chore goes on it starts
//! neither, so nobody walks into a worktree that is being removed; but it goes on reading the inbox, so that a stop never
//! waits behind a teardown script. A keeper that dies leaves the row, and the next one begins the chore again.

use super::outside::Outside;
use super::plan::{ChoreRow, StepInput};
use super::{Keeper, Phase, Stop};
use crate::errand::{ChoreDone, ErrandOutput, RunningChore};
use crate::progress::{ProgressTeller, WorkProgress};
use kernel::{PersonId, Request, RequestId};
use store::{InboxItem, Verdict};

/// Chores of one session in its inbox, the one under way among them. Those above are refused as busy; a page of the inbox has
/// room for many more rows, so that whatever else is asked is seen beside them.
pub(super) const CHORES_MAX: usize = 16;
/// The part of the reason for a failure that is told.
const WHY_BYTES_MAX: usize = 4 * 1024;

/// The chore that is under way.
pub(super) struct ChoreUnderWay {
    running: RunningChore,
    row: ChoreRow,
}

impl ChoreUnderWay {
    /// Its next output. Cancel-safe.
    pub(super) async fn next(&mut self) -> ErrandOutput {
        self.running.next().await
    }

    pub(super) fn tell(&mut self, progress: WorkProgress) {
        self.running.tell(progress);
    }

    /// Gives it up, and waits until nothing of it goes on. Its row stays: the next keeper begins it again.
    pub(super) async fn part(self) {
        self.running.part().await;
    }
}

/// A chore that is over.
#[derive(Debug)]
pub(super) struct ChoreOver {
    pub(super) row: ChoreRow,
    pub(super) verdict: Verdict,
}

/// The slot for a chore to begin now, as far as other chores and the node are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChoreSlot {
    Free,
    /// Another is under way or begins, or the node goes down: what is asked for waits where it is.
    Taken,
}

impl Keeper {
    pub(super) fn chore_slot(&self, news: &StepInput) -> ChoreSlot {
        match (self.phase, &self.outside) {
            (Phase::Keeping, Outside::Chore(_)) if news.chore_over.is_some() => ChoreSlot::Free,
            (Phase::Closing, _) | (Phase::Keeping, Outside::Chore(_)) => ChoreSlot::Taken,
            (Phase::Keeping, Outside::Nothing | Outside::Attempt(_) | Outside::Errand(_)) => ChoreSlot::Free,
        }
    }

    /// The chores among these rows that somebody asked for who may not have them done any more. The way in has asked the same,
    /// but a chore may have waited behind another one, or for the server.
    pub(super) async fn denied_chores(&self, news: &StepInput) -> Result<Vec<RequestId>, Stop> {
        let mut denied = Vec::new();
        if self.chore_slot(news) == ChoreSlot::Taken {
            return Ok(denied); // None of them begins now.
        }
        for (id, by) in news.rows.iter().filter_map(|row| asked_chore(&row.item)) {
            let is_ours = by == PersonId::ENGINE;
            if !is_ours && !self.engine.store().may_rule(self.session, by).await? {
                denied.push(id);
            }
        }
        Ok(denied)
    }

    /// Begins it: nothing else of the session goes on.
    pub(super) async fn begin_chore(&mut self, row: ChoreRow) -> Result<(), Stop> {
        self.end_attempt();
        let whom = self.errand_session().await?;
        let teller = ProgressTeller::of_chore(self.engine.ports(), self.session, &row.chore);
        let running = RunningChore::begin(self.engine.runner_ports(), whom, row.chore.clone(), teller);
        self.outside = Outside::Chore(ChoreUnderWay { running, row });
        Ok(())
    }

    /// It is over: its verdict and its story are written, and whatever has waited for it begins.
    pub(super) async fn end_chore(&mut self, came: Result<ChoreDone, String>) -> Result<(), Stop> {
        let Outside::Chore(under_way) = &self.outside else { return Ok(()) };
        let (verdict, story) = match came {
            Ok(ChoreDone { story, told: None }) => (Verdict::Done, story),
            Ok(ChoreDone { story, told: Some(what) }) => (Verdict::Told { what }, story),
            Err(mut why) => {
                why.truncate(why.floor_char_boundary(WHY_BYTES_MAX));
                (Verdict::Failed { why }, None)
            }
        };
        let chore_over = Some(ChoreOver { row: under_way.row.clone(), verdict });
        self.advance(StepInput { stories: story.into_iter().collect(), chore_over, ..StepInput::default() })
            .await?;
        // Other chores may have waited for this one.
        self.inbox = super::InboxRead::Now;
        Ok(())
    }
}

/// The chore that a row asks for, and who asks.
fn asked_chore(item: &InboxItem) -> Option<(RequestId, PersonId)> {
    match item {
        InboxItem::Request { id, by, request: Request::Chore { .. }, .. } => Some((*id, *by)),
        InboxItem::Request { .. }
        | InboxItem::Say { .. }
        | InboxItem::Wake
        | InboxItem::Recheck { .. }
        | InboxItem::HandOver { .. } => None,
    }
}

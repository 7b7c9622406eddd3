//! Chores: what is done with a session's worktrees while no turn of it runs.
//!
//! The keeper is the only one who starts turns and errands. While a chore goes on it starts neither, so nobody walks into a
//! worktree that is being removed; but it goes on reading the inbox, so that a stop never waits behind a teardown script.

use super::outside::Outside;
use super::plan::News;
use super::registry::WantedChore;
use super::{Keeper, Phase, Stop};
use crate::Refused;
use crate::cluster::WantedBy;
use crate::errand::{Chore, Chored, ErrandOutput, RunningChore};
use store::{Entry, Outcome};
use tokio::sync::oneshot;

/// The chore that is under way.
pub(super) struct ChoreUnderWay {
    running: RunningChore,
    /// How the audit calls it, if it is nobody's wish but ours.
    own_act: Option<&'static str>,
    tell: oneshot::Sender<Result<Chored, Refused>>,
}

impl ChoreUnderWay {
    /// What it says next. Cancel-safe.
    pub(super) async fn next(&mut self) -> ErrandOutput {
        self.running.next().await
    }

    /// The node goes down. Cut short it is gone on with by whoever asks again.
    pub(super) async fn cut_short(self) {
        self.running.part().await;
        let _ = self.tell.send(Err(going_down()));
    }

    /// Its keeper dies, and nobody answers.
    pub(super) async fn part(self) {
        self.running.part().await;
    }
}

impl Keeper {
    /// Begins the next chore, if there is one and nothing else goes on; refuses those that are in the way of something.
    pub(super) async fn begin_chore(&mut self) -> Result<(), Stop> {
        while !matches!(self.outside, Outside::Chore(_)) {
            let Some(wanted) = self.engine.keepers().next_chore(self.session) else { return Ok(()) };
            let WantedChore { chore, permit, tell } = wanted;
            let own_act = permit.is_none().then_some(chore.verb());
            if let Err(refused) = self.may_begin(&chore, permit).await? {
                let _ = tell.send(Err(refused)); // Whoever has given up does not want to know.
                continue;
            }
            let whom = self.errand_session().await?;
            let running = RunningChore::begin(self.engine.runner_ports(), whom, chore);
            self.outside = Outside::Chore(ChoreUnderWay { running, own_act, tell });
        }
        Ok(())
    }

    async fn may_begin(&self, chore: &Chore, permit: Option<WantedBy>) -> Result<Result<(), Refused>, Stop> {
        let (Ok(()), Some(WantedBy { by, permit })) = (self.is_still(chore), permit) else {
            return Ok(self.is_still(chore));
        };
        Ok(match self.engine.store().permit(by, permit).await? {
            Outcome::Done(()) | Outcome::Repeated(()) => {
                self.engine.audited();
                Ok(())
            }
            Outcome::Conflict => Err(Refused::KeyReused),
            Outcome::Refused(why) => Err(Refused::rejected(why)),
        })
    }

    /// Whether nothing of the session is in the way.
    fn is_still(&self, chore: &Chore) -> Result<(), Refused> {
        if self.phase == Phase::Closing {
            return Err(going_down());
        }
        let is_busy = self.state.running().is_some() || self.state.away().is_some();
        if is_busy || !matches!(self.outside, Outside::Nothing) {
            return Err(Refused::Busy);
        }
        if self.state.pending().is_some() {
            return Err(Refused::ScopeChanging);
        }
        let inside = self.state.scope().and_then(|scope| scope.worktree.as_ref());
        match chore {
            Chore::Remove { name, .. } if inside.is_some_and(|inside| inside.name == *name) => {
                Err(Refused::InWorktree)
            }
            // Only one that is not there is given back: a session that is in it can go on then.
            Chore::Remove { .. } | Chore::Restore(_) => Ok(()),
        }
    }

    /// Takes what a chore says; and with that it was done, whose doing it was.
    pub(super) fn chore_says(&self, story: &Entry) -> Vec<&'static str> {
        let Outside::Chore(chore) = &self.outside else { return Vec::new() };
        let is_done = matches!(story, Entry::Story { kind, .. } if kind == "worktree");
        chore.own_act.filter(|_| is_done).into_iter().collect()
    }

    /// It is over: whatever has waited for it begins.
    pub(super) async fn end_chore(&mut self, came: Result<Chored, String>) -> Result<(), Stop> {
        if let Outside::Chore(chore) = std::mem::replace(&mut self.outside, Outside::Nothing) {
            let came = came.map_err(|why| Refused::WorktreeTrouble { why });
            let _ = chore.tell.send(came); // Whoever has given up does not want to know.
        }
        self.advance(News::default()).await
    }
}

fn going_down() -> Refused {
    Refused::Unavailable("the server goes down".to_owned())
}

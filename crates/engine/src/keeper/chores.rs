//! What is done with a session's worktrees while nothing else of it goes on.
//!
//! The keeper is the only one who starts turns and errands. While it does a chore it starts nothing, so nobody walks into a
//! worktree that is being removed; whatever is said to the session meanwhile waits in the inbox.

use super::outside::Outside;
use super::plan::News;
use super::registry::{Keepership, Wanted};
use super::{Keeper, Phase, Stop};
use crate::Refused;
use crate::errand::{Chore, Chored, ErrandOutput, ErrandRunner, OUTPUT_AHEAD_MAX};
use kernel::Authorized;
use store::{Entry, Permit, Permitting};
use tokio::sync::mpsc;

impl Keeper {
    pub(super) async fn do_chores(&mut self, keepership: &Keepership) -> Result<(), Stop> {
        for wanted in self.engine.keepers().chores(self.session) {
            let Wanted { chore, permit, tell } = wanted;
            // Nobody's wish is ours.
            let own_act = permit.is_none().then_some(chore.verb());
            let done = match self.may_begin(&chore, permit).await? {
                Ok(()) => self.do_chore(chore, own_act, keepership).await?,
                Err(refused) => Err(refused),
            };
            let _ = tell.send(done); // Whoever has given up does not want to know.
        }
        Ok(())
    }

    async fn may_begin(
        &self,
        chore: &Chore,
        permit: Option<Authorized<Permit>>,
    ) -> Result<Result<(), Refused>, Stop> {
        let (Ok(()), Some(permit)) = (self.is_still(chore), permit) else { return Ok(self.is_still(chore)) };
        Ok(match self.engine.store().permit(permit).await? {
            Permitting::Done => {
                self.engine.audited();
                Ok(())
            }
            Permitting::Moved => Err(Refused::Changed),
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

    async fn do_chore(
        &mut self,
        chore: Chore,
        own_act: Option<&'static str>,
        keepership: &Keepership,
    ) -> Result<Result<Chored, Refused>, Stop> {
        let ports = self.engine.runner_ports().clone();
        let runner = ErrandRunner { ports, whom: self.errand_session().await? };
        let (say, output) = mpsc::channel(OUTPUT_AHEAD_MAX);
        let work = async move {
            let done = runner.do_chore(chore, &say).await;
            drop(say);
            done
        };
        let both = async { tokio::join!(work, self.hear_chore(output, own_act)) };
        tokio::select! {
            biased;
            (done, heard) = both => {
                heard?;
                Ok(done.map_err(|why| Refused::WorktreeTrouble { why }))
            }
            // Cut short it is gone on with by whoever asks again.
            () = keepership.closing() => Ok(Err(going_down())),
        }
    }

    /// Writes down what it says, and with that it was done, whose doing it was.
    async fn hear_chore(
        &mut self,
        mut output: mpsc::Receiver<ErrandOutput>,
        own_act: Option<&'static str>,
    ) -> Result<(), Stop> {
        while let Some(output) = output.recv().await {
            let ErrandOutput::Story(story) = output else { continue };
            let is_done = matches!(&*story, Entry::Story { kind, .. } if kind == "worktree");
            let own_acts = own_act.filter(|_| is_done).into_iter().collect();
            self.advance(News { stories: vec![*story], own_acts, ..News::default() }).await?;
        }
        Ok(())
    }
}

fn going_down() -> Refused {
    Refused::Unavailable("the server goes down".to_owned())
}

//! What is done outside between turns: a worktree is made, a turn is undone.
//!
//! An outing is one errand of one keeper. It touches no store; it brings back a `Return` for the kernel and stories for
//! people. Doing it again after a crash ends the same way, so the next keeper simply does.

use crate::story::Story;
use crate::{Engine, NewTree};
use agent::{Agent, TreeName};
use kernel::{Away, Errand, ErrandKind, Origin, Return, Scope, SessionId, Turn, What};
use std::sync::Arc;
use store::Entry;
use tokio::sync::mpsc;

/// What an errand brought.
#[derive(Debug)]
pub(crate) struct Back {
    pub(crate) errand: Errand,
    pub(crate) came: Return,
    pub(crate) stories: Vec<Entry>,
}

/// A keeper's end of an errand.
#[derive(Debug)]
pub(crate) struct Outing {
    pub(crate) errand: Errand,
    kind: ErrandKind,
    back: mpsc::Receiver<Back>,
}

impl Outing {
    /// Sets out.
    pub(crate) fn begin(
        engine: &Engine,
        session: SessionId,
        scope: &Scope,
        agent: Option<Arc<dyn Agent>>,
        away: &Away,
        fork_of: Option<Origin>,
    ) -> Self {
        let (say, back) = mpsc::channel(1);
        let (doing, scope, away) = (engine.clone(), scope.clone(), away.clone());
        let (errand, kind) = (away.errand, kind_of(&away.what));
        engine.spawn(async move {
            let work = doing.go_out(session, &scope, agent, &away, fork_of);
            // A keeper that does not listen any more has died; the next one does it again.
            let back = tokio::select! {
                biased;
                () = say.closed() => return,
                back = work => back,
            };
            let _ = say.send(back).await;
        });
        Self { errand, kind, back }
    }

    /// What it brought. Cancel-safe.
    pub(crate) async fn back(&mut self) -> Back {
        match self.back.recv().await {
            Some(back) => back,
            None => Back { errand: self.errand, came: Return::Failed(self.kind), stories: Vec::new() },
        }
    }

    /// Gives it up, and waits until nothing of it goes on.
    pub(crate) async fn part(mut self) {
        self.back.close();
        while self.back.recv().await.is_some() {}
    }
}

fn kind_of(what: &What) -> ErrandKind {
    match what {
        What::Enter(_) => ErrandKind::Enter,
        What::Undo { .. } => ErrandKind::Undo,
    }
}

impl Engine {
    async fn go_out(
        &self,
        session: SessionId,
        scope: &Scope,
        agent: Option<Arc<dyn Agent>>,
        away: &Away,
        fork_of: Option<Origin>,
    ) -> Back {
        // A script of an earlier try may still run.
        if let Some(agent) = agent {
            crate::turn::bury(&*agent, &TreeName::of(session)).await;
        }
        let (came, stories) = match &away.what {
            What::Enter(wanted) => self.enter(session, scope, wanted, fork_of).await,
            What::Undo { turn } => self.undo(session, scope, *turn).await,
        };
        Back { errand: away.errand, came, stories }
    }

    async fn enter(
        &self,
        session: SessionId,
        scope: &Scope,
        wanted: &kernel::NewWorktree,
        fork_of: Option<Origin>,
    ) -> (Return, Vec<Entry>) {
        let new = NewTree {
            directory: scope.directory.clone(),
            name: wanted.name.clone(),
            base: wanted.base.clone(),
            branch: wanted.branch.clone(),
        };
        let entered = match fork_of {
            Some(origin) => self.trees().fork(session, new, origin.session, origin.turn).await,
            None => self.trees().enter(session, new).await,
        };
        match entered {
            Ok(entered) => {
                let text = format!("worktree {} on branch {}", wanted.name, entered.branch);
                let stories = vec![Story::Notice { text: &text }.entry(Turn(0))];
                (Return::Entered { directory: entered.directory, home: scope.directory.clone() }, stories)
            }
            Err(why) => failed(ErrandKind::Enter, &format!("the worktree could not be entered: {why}")),
        }
    }

    async fn undo(&self, session: SessionId, scope: &Scope, turn: Turn) -> (Return, Vec<Entry>) {
        match self.trees().undo(&scope.directory, session, turn).await {
            Ok(undone) => {
                let text = format!("turn {turn} undone: {} files are as before", undone.files.len());
                (Return::Undone, vec![Story::Notice { text: &text }.entry(turn)])
            }
            Err(why) => failed(ErrandKind::Undo, &format!("turn {turn} could not be undone: {why}")),
        }
    }
}

fn failed(kind: ErrandKind, text: &str) -> (Return, Vec<Entry>) {
    (Return::Failed(kind), vec![Story::Notice { text }.entry(Turn(0))])
}

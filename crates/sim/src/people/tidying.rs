//! Somebody's doings about worktrees that a session has left: has one removed, and changes their mind about something
//! else of that session meanwhile.
//!
//! It happens under a clear sky, after everybody else's doings, so that nothing but the chore can be in the way of a stop.
//! It has dice of its own, so that everything else of a story stays as it was.

use super::Person;
use crate::doors::SCHEMES;
use engine::{Granted, Trace};
use kernel::{MessageId, Request, SessionId, To};
use std::time::Duration;

/// When everybody else has had their say, whatever the weather was.
const AFTER_THE_STORM: Duration = Duration::from_secs(75);
/// The time a removal has been going on when somebody stops something.
const MEANWHILE: Duration = Duration::from_millis(200);

impl Person {
    /// Tidies up once.
    pub(crate) async fn tidy_up(mut self) {
        tokio::time::sleep(AFTER_THE_STORM).await;
        let Some((session, name)) = self.own_worktree() else { return };
        let daemon = self.town.some_daemon(1).await;
        let (engine, me) = (daemon.engine.clone(), self.me.clone());
        let removal = async move { engine.worktrees().remove(&me, session, &name, true, trace()).await };
        self.errands.spawn(async move {
            let _ = daemon.call(removal).await; // What takes longer goes on without them.
        });
        tokio::time::sleep(MEANWHILE).await;
        self.stop_beside_a_chore(session).await;
        while self.errands.join_next().await.is_some() {}
    }

    fn own_worktree(&mut self) -> Option<(SessionId, String)> {
        let store = self.town.store().snapshot();
        let mine =
            |session: &SessionId| store.sessions.get(session).is_some_and(|row| row.owner == self.me.person);
        let worktrees: Vec<_> = self.town.grove.grown().worktrees.keys().cloned().collect();
        let mine: Vec<_> = worktrees.into_iter().filter(|(session, _)| mine(session)).collect();
        self.dice.pick(&mine).cloned()
    }

    /// Says something and stops it, while the chore goes on: the stop has its verdict at once.
    async fn stop_beside_a_chore(&mut self, session: SessionId) {
        if !self.town.sky.is_clear() || !self.is_removing(session) {
            return;
        }
        let inbound = self.inbound(Some(To::Session(session)));
        let daemon = self.town.some_daemon(1).await;
        self.deliver(inbound).await;
        let Some(message) = self.last_said(session) else { return };
        let (engine, me) = (daemon.engine.clone(), self.me.clone());
        let stop = Request::Stop { message };
        let granted = daemon.call(async move { engine.way_in().ask(&me, stop, trace()).await }).await;
        self.town.notes.tell(|| format!("stopped beside a chore: {granted:?}"));
        if let Some(Ok(Granted::Pending)) = granted
            && self.is_removing(session)
        {
            self.town.notes.broken("a stop never waits behind a chore", format!("{session}"));
        }
    }

    fn is_removing(&self, session: SessionId) -> bool {
        self.town.notes.seen().removing.contains(&session)
    }

    /// The message that was said last, if it was accepted into this session.
    fn last_said(&self, session: SessionId) -> Option<MessageId> {
        let seen = self.town.notes.seen();
        let said = seen.said.iter().rev().find(|said| said.by == self.me.person)?;
        let accepted = said.answers.iter().find_map(|answer| answer.as_ref().ok())?;
        (accepted.session == session).then_some(accepted.message)
    }
}

fn trace() -> Trace {
    Trace { door: "sim", correlation: "sim".to_owned(), address: None, key: None, schemes: SCHEMES }
}

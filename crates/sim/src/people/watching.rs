//! People who watch a session, lose the connection, and come back with the last number they have.

use super::Person;
use crate::dice::Dice;
use crate::notes::Watched;
use crate::town::{Daemon, Town};
use engine::{Follow, SessionUpdate, ViewError};
use kernel::{Number, Principal, SessionId};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

impl Person {
    /// Watches the session that was made for what they said.
    pub(super) fn maybe_watch(&mut self, code: usize) {
        let made = self.town.notes.seen().said[code].answers.iter().find_map(|answer| match answer {
            Ok(accepted) if accepted.created => Some(accepted.session),
            Ok(_) | Err(_) => None,
        });
        let Some(session) = made.filter(|_| self.dice.chance(600)) else { return };
        let watch = WatchedStream {
            town: self.town.clone(),
            me: self.me.clone(),
            session,
            at: self.town.notes.seen().watched.len(),
            dice: self.dice.fork(),
        };
        let from = Number(self.dice.below(3));
        let watched = Watched { session, from, facts: Vec::new(), live: Vec::new() };
        self.town.notes.seen().watched.push(watched);
        self.watches.lock().unwrap_or_else(PoisonError::into_inner).spawn(watch.go());
    }
}

struct WatchedStream {
    town: Arc<Town>,
    me: Principal,
    session: SessionId,
    /// Its place in the notes.
    at: usize,
    dice: Dice,
}

impl WatchedStream {
    async fn go(mut self) {
        loop {
            let daemon = self.town.some_daemon(self.dice.roll()).await;
            let patience = Duration::from_millis(self.dice.between(100, 20_000));
            // Aborted by dropping, so that a watcher that left does not go on writing notes.
            let _ = tokio::time::timeout(patience, self.connect(&daemon)).await;
            tokio::time::sleep(Duration::from_millis(self.dice.between(1, 500))).await;
        }
    }

    async fn connect(&mut self, daemon: &Daemon) -> Option<()> {
        let (engine, me, session) = (daemon.engine.clone(), self.me.clone(), self.session);
        let after = self.after();
        let follow = daemon.call(async move { engine.views().follow(&me, session, after).await }).await?;
        self.listen(follow, daemon).await
    }

    async fn listen(&mut self, follow: Result<Follow, ViewError>, daemon: &Daemon) -> Option<()> {
        let mut follow = follow.ok()?;
        loop {
            let told = tokio::select! {
                biased;
                () = daemon.weather.death() => return None,
                told = follow.next() => told?,
            };
            self.note(told);
            if self.dice.chance(20) {
                tokio::time::sleep(Duration::from_millis(self.dice.below(1_500))).await;
            }
        }
    }

    fn note(&self, told: SessionUpdate) {
        let mut seen = self.town.notes.seen();
        let watched = &mut seen.watched[self.at];
        match told {
            SessionUpdate::Fact(shared) => watched.facts.push(shared.fact.clone()),
            SessionUpdate::Live(live) => {
                watched.live.push((live.turn.0, live.part, live.offset, live.text.clone()));
            }
            // It is no part of a story: nobody decides by it.
            SessionUpdate::Progress(_) => {}
        }
    }

    fn after(&self) -> Number {
        let seen = self.town.notes.seen();
        let watched = &seen.watched[self.at];
        watched.facts.last().map_or(watched.from, |fact| fact.number)
    }
}

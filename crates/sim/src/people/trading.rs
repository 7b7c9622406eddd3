//! People of another org, who take conversations over: they import what somebody has exported, and talk about it under the
//! name that it had there.
//!
//! They have dice and gossip of their own, so that everything else of a story stays as it was.

use super::Person;
use crate::dice::Dice;
use crate::doors::SCHEMES;
use crate::notes::{Brought, short};
use crate::town::Town;
use engine::{CallerKey, Export, IfNew, Made, Trace, UnavailableError, WayInError};
use kernel::{Principal, SessionId, To};
use std::sync::Arc;
use std::time::Duration;
use store::Views;

impl Person {
    /// Lives through the story next door. `abroad` is what people talk about in the town.
    pub(crate) async fn trade(mut self, abroad: Arc<super::Gossip>, trades_max: u64) {
        let mut names: Vec<SessionId> = Vec::new();
        for _ in 0..self.dice.between(2, trades_max) {
            let think_ms = self.dice.weigh(&[(1, 200), (3, 1_500), (2, 4_000)]);
            let think_ms = self.dice.below(think_ms);
            tokio::time::sleep(Duration::from_millis(think_ms)).await;
            let name = self.dice.pick(&names).copied();
            match (self.dice.below(100), name) {
                (0..45, _) | (_, None) => {
                    let known = abroad.heard().sessions.clone();
                    let Some(session) = self.dice.pick(&known).copied() else { continue };
                    self.take_over(session).await;
                    names.push(session);
                }
                (45..85, Some(name)) => self.say_to_name(name).await,
                // Whose id it is, it is not theirs.
                (85..93, Some(name)) => self.say(Some(To::Session(name))).await,
                _ => self.look().await,
            }
        }
        while self.errands.join_next().await.is_some() {}
    }

    /// The export of its owner is imported here, at times by two deliveries of the same wish.
    async fn take_over(&mut self, session: SessionId) {
        let Some(export) = self.export_of(session).await else { return };
        let key = format!("import{}", self.dice.roll());
        let at = {
            let mut seen = self.town.notes.seen();
            let (by, answers, unanswered) = (self.me.person, Vec::new(), false);
            seen.imports.push(Brought { by, export: export.clone(), answers, unanswered });
            seen.imports.len() - 1
        };
        let digest = [self.dice.roll() as u8; 32];
        let mut import = |wait_ms| Import {
            town: self.town.clone(),
            me: self.me.clone(),
            export: export.clone(),
            digest,
            key: key.clone(),
            at,
            wait_ms,
            dice: self.dice.fork(),
        };
        let (first, again) = (import(0), import(500));
        if self.dice.chance(400) {
            self.errands.spawn(async move {
                let _ = again.go().await;
            });
        }
        if let Some(made) = first.go().await {
            self.gossip.heard().sessions.push(made.session);
        }
    }

    async fn export_of(&mut self, session: SessionId) -> Option<Export> {
        let (record, _) = self.town.store().session(session).await.ok()??;
        let owner = self.town.people.iter().find(|person| person.person == record.owner)?.clone();
        let daemon = self.town.some_daemon(self.dice.roll()).await;
        let engine = daemon.engine.clone();
        daemon.call(async move { engine.views().export(&owner, session).await }).await?.ok()
    }

    /// As a door does: first it is asked what is meant.
    async fn say_to_name(&mut self, name: SessionId) {
        let daemon = self.town.some_daemon(self.dice.roll()).await;
        let (engine, me) = (daemon.engine.clone(), self.me.clone());
        let meant = daemon.call(async move { engine.views().meant(&me, name).await }).await;
        let Some(Ok(meant)) = meant else { return };
        self.town.notes.tell(|| format!("{} means {} by {}", self.me.handle, short(meant), short(name)));
        let own = {
            let seen = self.town.notes.seen();
            let mut mine = seen.imports.iter().filter(|b| b.by == self.me.person && b.export.session == name);
            mine.find_map(|brought| brought.answers.iter().find_map(|answer| answer.as_ref().ok()).copied())
        };
        if own.is_some_and(|own| own != meant) {
            let how = format!("{} is {own:?}, but {meant} is meant", short(name));
            self.town.notes.broken("a name means the session that was brought under it", how);
        }
        self.say(Some(To::Session(meant))).await;
    }
}

/// One delivery of an import, until there is an answer.
struct Import {
    town: Arc<Town>,
    me: Principal,
    export: Export,
    digest: [u8; 32],
    key: String,
    /// Its place in the notes.
    at: usize,
    wait_ms: u64,
    dice: Dice,
}

impl Import {
    async fn go(mut self) -> Option<Made> {
        tokio::time::sleep(Duration::from_millis(self.wait_ms)).await;
        let key = Some(CallerKey::Idempotency(self.key.clone()));
        let trace =
            Trace { door: "sim", correlation: "sim".to_owned(), address: None, key, schemes: SCHEMES };
        let mut tries = 0;
        loop {
            let daemon = self.town.some_daemon(self.dice.roll()).await;
            let (engine, me, how) = (daemon.engine.clone(), self.me.clone(), trace.clone());
            let (export, digest) = (self.export.clone(), self.digest);
            let wish =
                async move { engine.way_in().import(&me, export, IfNew::default(), digest, how).await };
            let made = daemon.call(wish).await;
            self.town.notes.tell(|| {
                let (turns, of) = (self.export.turns.len(), short(self.export.session));
                format!("{} imports {turns} turns of {of}: {made:?}", self.me.handle)
            });
            let again = matches!(made, None | Some(Err(WayInError::Unavailable(_))));
            self.note(&made);
            if !again || self.town.is_enough(&mut tries) {
                return made.and_then(Result::ok);
            }
            tokio::time::sleep(Duration::from_millis(self.dice.between(10, 400))).await;
        }
    }

    fn note(&self, made: &Option<Result<Made, WayInError>>) {
        let mut seen = self.town.notes.seen();
        let brought = &mut seen.imports[self.at];
        match made {
            None | Some(Err(WayInError::Unavailable(UnavailableError::Unclear))) => brought.unanswered = true,
            Some(answer) => brought.answers.push(answer.clone().map(|made| made.session)),
        }
    }
}

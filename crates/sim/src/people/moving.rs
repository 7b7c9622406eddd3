//! People's doings about where and how sessions act: change scopes, give changes up, say something for a scope that is
//! no more, release what is held, undo, fork, and look things up that come back late.
//!
//! It has dice of its own, so that everything else of a story stays as it was.

use super::Person;
use crate::doors::SCHEMES;
use crate::notes::short;
use crate::town::Town;
use engine::{CallerKey, Look, Trace, ViewError, WayInError};
use kernel::{
    Change, Epoch, Errand, ErrandKind, GroundPath, NewWorktree, Principal, Request, SessionId, Setting, To,
    Turn, UndoFiles,
};
use std::sync::Arc;
use std::time::Duration;
use store::Views;

/// Directories that everybody may choose. Few, so that people meet there.
const SHARED: [&str; 2] = ["/srv/shop", "/srv/blog"];

/// The longest of somebody's own looks outside.
const LOOK_MS_MAX: u64 = 4_000;

impl Person {
    /// Lives through the story beside oneself, minding only scopes.
    pub(crate) async fn move_about(mut self, moves_max: u64) {
        for _ in 0..self.dice.between(2, moves_max) {
            let think_ms = self.dice.weigh(&[(2, 20), (3, 400), (2, 2_500)]);
            let think_ms = self.dice.below(think_ms);
            tokio::time::sleep(Duration::from_millis(think_ms)).await;
            match (self.dice.below(100), self.some_session()) {
                (0..12, _) | (_, None) => self.say_somewhere().await,
                (12..32, Some(session)) => self.say_so(session).await,
                (32..60, Some(session)) => self.change_scope(session).await,
                (60..64, Some(session)) => self.ask(Request::KeepScope { session }).await,
                (64..76, Some(session)) => self.let_go(session).await,
                (76..82, Some(session)) => self.undo(session).await,
                (82..88, Some(session)) => self.fork(session).await,
                (_, Some(session)) => self.look_up(session),
            }
        }
        while self.errands.join_next().await.is_some() {}
    }

    /// A new session in a directory that others use, too, or with a worktree of its own.
    async fn say_somewhere(&mut self) {
        let mut inbound = self.inbound(Some(To::New));
        inbound.if_new.directory = self.dice.pick(&SHARED).map(|directory| (*directory).to_owned());
        if self.dice.chance(400) {
            inbound.if_new.worktree = Some(NewWorktree::own(None, None, None));
        }
        if self.dice.chance(200) {
            inbound.if_new.agent = Some("plain".to_owned());
        }
        self.deliver(inbound).await;
    }

    /// Something for a session, in some way of delivery, at times for the scope that somebody saw a while ago.
    async fn say_so(&mut self, session: SessionId) {
        let mut inbound = self.inbound(Some(To::Session(session)));
        inbound.delivery = self.dice.weigh(&[
            (2, kernel::Delivery::Queue),
            (2, kernel::Delivery::Interrupt),
            (4, kernel::Delivery::Steer),
        ]);
        if self.dice.chance(350) {
            let epoch = self.town.store().snapshot().sessions.get(&session).map_or(0, |row| row.epoch.0);
            let under = self.dice.weigh(&[(3, epoch), (3, epoch.saturating_sub(1)), (1, 0), (1, epoch + 1)]);
            inbound.under = Some(Epoch(under));
        }
        self.deliver(inbound).await;
    }

    async fn change_scope(&mut self, session: SessionId) {
        let change = self.some_change();
        let now = self.dice.chance(300);
        self.ask(Request::ChangeScope { session, change, now }).await;
        // Something said right after it, by somebody who does not know.
        if self.dice.chance(400) {
            self.say(Some(To::Session(session))).await;
        }
    }

    fn some_change(&mut self) -> Change {
        match self.dice.below(10) {
            0..4 => {
                let name = self.dice.weigh(&[(3, "blue"), (1, "green")]).to_owned();
                let base = self.dice.chance(200).then(|| "main".to_owned());
                Change::Enter(NewWorktree { name, base, branch: None })
            }
            4 | 5 => Change::Exit,
            6 | 7 => {
                let agent = self.dice.weigh(&[(2, None), (2, Some("plain")), (2, Some("scripted"))]);
                let mut setting = |names: &[(u64, Option<&'static str>)]| match self.dice.weigh(names) {
                    Some("") => Setting::Default,
                    Some(name) => Setting::To(name.to_owned()),
                    None => Setting::Keep,
                };
                let model = setting(&[
                    (2, None),
                    (2, Some("large")),
                    (2, Some("small")),
                    (1, Some("")),
                    (1, Some("huge")),
                ]);
                let mode = setting(&[(4, None), (1, Some("careful")), (1, Some(""))]);
                Change::Set { agent: agent.map(str::to_owned), model, mode }
            }
            _ => {
                let directory =
                    self.dice.pick(&SHARED).map_or_else(GroundPath::nowhere, |there| (*there).into());
                Change::Relink { directory }
            }
        }
    }

    /// Lets something that is held be started, here or there, or takes it back.
    async fn let_go(&mut self, session: SessionId) {
        let waiting = self.waiting(session).await;
        let message = self.dice.pick(&waiting).copied();
        let Some(message) = message.or_else(|| self.some_message().map(|known| known.message)) else {
            return;
        };
        let request = match self.dice.below(5) {
            0 | 1 => Request::Release { message, there: false },
            2 | 3 => Request::Release { message, there: true },
            _ => Request::Withdraw { message },
        };
        self.ask(request).await;
    }

    async fn undo(&mut self, session: SessionId) {
        let turn = self.some_turn(session);
        self.ask(Request::Undo { session, turn, under: None, files: UndoFiles::Certain }).await;
    }

    /// Mostly the last one that ran.
    fn some_turn(&mut self, session: SessionId) -> Turn {
        let receipts = self.town.store().snapshot().receipts;
        let turns = receipts.values().filter(|row| row.session == session).filter_map(|row| row.turn);
        let last = turns.map(|turn| turn.0).max().unwrap_or(1);
        Turn(self.dice.weigh(&[(5, last), (2, last.saturating_sub(1)), (1, last + 1)]))
    }

    async fn fork(&mut self, session: SessionId) {
        let at = self.dice.chance(500).then(|| self.some_turn(session));
        let key = Some(CallerKey::Idempotency(format!("fork{}", self.dice.roll())));
        let trace =
            Trace { door: "sim", correlation: "sim".to_owned(), address: None, key, schemes: SCHEMES };
        let mut tries = 0;
        let made = loop {
            let daemon = self.town.some_daemon(self.dice.roll()).await;
            let (engine, me, how) = (daemon.engine.clone(), self.me.clone(), trace.clone());
            let made =
                daemon.call(async move { engine.way_in().fork(&me, session, at, None, how).await }).await;
            self.town.notes.tell(|| format!("fork of {} at {at:?}: {made:?}", short(session)));
            let again = matches!(made, None | Some(Err(WayInError::Unavailable(_))));
            if !again || self.town.is_enough(&mut tries) {
                break made;
            }
            tokio::time::sleep(Duration::from_millis(self.dice.between(10, 400))).await;
        };
        if let Some(Ok(made)) = made {
            self.gossip.heard().sessions.push(made.session);
            if self.dice.chance(700) {
                self.say(Some(To::Session(made.session))).await;
            }
        }
    }

    /// Looks something up. What it finds comes back whenever it does.
    fn look_up(&mut self, session: SessionId) {
        let turn = self.some_turn(session);
        let look = self.dice.weigh(&[
            (1, Look::Commands),
            (1, Look::Models),
            (1, Look::Files),
            (3, Look::Diff { first: turn, last: turn }),
        ]);
        let own = self.dice.weigh(&[
            (1, None),
            (1, Some(ErrandKind::Files)),
            (1, Some(ErrandKind::Diff)),
            (1, Some(ErrandKind::Models)),
        ]);
        let ms = self.dice.below(LOOK_MS_MAX);
        let glance =
            Glance { town: self.town.clone(), me: self.me.clone(), session, roll: self.dice.roll(), ms };
        self.errands.spawn(async move {
            match own {
                Some(kind) => glance.go(kind).await,
                None => glance.ask(look).await,
            }
        });
    }
}

/// One look outside.
struct Glance {
    town: Arc<Town>,
    me: Principal,
    session: SessionId,
    roll: u64,
    ms: u64,
}

impl Glance {
    async fn ask(self, look: Look) {
        let daemon = self.town.some_daemon(self.roll).await;
        let (engine, me, session) = (daemon.engine.clone(), self.me.clone(), self.session);
        let seen = daemon.call(async move { engine.views().look(&me, session, look).await }).await;
        self.town.notes.tell(|| format!("{look:?} in {}: {seen:?}", short(session)));
    }

    /// A look of one's own, of which it is known when it was over.
    async fn go(self, kind: ErrandKind) {
        let daemon = self.town.some_daemon(self.roll).await;
        let (engine, me, session, ms) = (daemon.engine.clone(), self.me.clone(), self.session, self.ms);
        let store = self.town.store();
        let asked = Arc::<std::sync::Mutex<Option<(Errand, bool)>>>::default();
        let over = asked.clone();
        let seen = daemon.call(async move {
            let work = |_, errand: Errand| async move {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                let row = store.session(session).await.ok().flatten().map(|(_, row)| row);
                let still = row.is_some_and(|row| row.epoch == errand.epoch);
                *over.lock().expect("nothing panics while it is held") = Some((errand, still));
                Ok(())
            };
            engine.views().look_with(&me, session, kind, work).await
        });
        let seen = seen.await;
        self.town.notes.tell(|| format!("{kind:?} in {}: {seen:?}", short(session)));
        let asked = *asked.lock().expect("nothing panics while it is held");
        match (seen, asked) {
            (Some(Ok(())), Some((errand, false))) => {
                let how = format!("{kind:?} in {} under {:?}", short(session), errand.epoch);
                self.town.notes.broken("nobody gets what was looked up in another scope", how);
            }
            (Some(Err(ViewError::Stale)), Some((errand, _))) => {
                self.town.notes.seen().stale_looks.push((session, errand, kind));
            }
            _ => {}
        }
    }
}

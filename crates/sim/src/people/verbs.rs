//! Everything people do besides saying something: change their minds, look, answer.

use super::{Known, Person};
use crate::doors::SCHEMES;
use crate::notes::short;
use engine::{CallerKey, ConflictError, Granted, IfNew, MessagePart, ReceiptState, Trace, WayInError};
use kernel::{Answer, Request, SessionId};
use std::time::Duration;

impl Person {
    pub(super) async fn change_something(&mut self) {
        let kind = self.dice.below(32);
        let session = self.some_session();
        let waiting = self.some_waiting(session).await;
        let known = waiting.or_else(|| self.some_message());
        match (kind, known, session) {
            (0..6, Some(known), _) => self.edit(known).await,
            (6..10, Some(Known { message, .. }), _) => self.ask(Request::Withdraw { message }).await,
            (10..14, Some(Known { message, .. }), _) => self.ask(Request::Hold { message }).await,
            (14..18, Some(Known { message, .. }), _) => {
                self.ask(Request::Release { message, there: false }).await
            }
            (18..25, Some(Known { message, .. }), _) => self.stop(message).await,
            (25..28, _, Some(session)) => self.reorder(session).await,
            (28..30, _, Some(session)) => self.ask(Request::End { session }).await,
            (30, ..) => self.make().await,
            (31, Some(Known { message, .. }), _) if self.dice.chance(500) => {
                self.ask(Request::Steer { message }).await;
            }
            (31, Some(Known { message, .. }), _) => self.ask(Request::Interrupt { message }).await,
            _ => {}
        }
    }

    /// Something that waits or is held, if somebody looks.
    async fn some_waiting(&mut self, session: Option<SessionId>) -> Option<Known> {
        let session = session.filter(|_| self.dice.chance(800))?;
        let waiting = self.waiting(session).await;
        let message = *self.dice.pick(&waiting)?;
        self.gossip.heard().messages.iter().find(|known| known.message == message).copied()
    }

    pub(super) async fn waiting(&mut self, session: SessionId) -> Vec<kernel::MessageId> {
        let daemon = self.town.some_daemon(self.dice.roll()).await;
        let (engine, me) = (daemon.engine.clone(), self.me.clone());
        let queue = daemon.call(async move { engine.views().queue(&me, session).await }).await;
        let waits = |state| matches!(state, ReceiptState::Waiting | ReceiptState::Held);
        let rows = queue.and_then(Result::ok).into_iter().flatten().map(|queued| queued.row);
        rows.filter(|row| waits(row.state)).map(|row| row.message).collect()
    }

    /// Mostly something recent, which may still wait.
    pub(super) fn some_message(&mut self) -> Option<Known> {
        let messages = self.gossip.heard().messages.clone();
        let recent = &messages[messages.len().saturating_sub(5)..];
        let from = if self.dice.chance(800) { recent } else { &messages };
        self.dice.pick(from).copied()
    }

    pub(super) fn some_session(&mut self) -> Option<SessionId> {
        let sessions = self.gossip.heard().sessions.clone();
        self.dice.pick(&sessions).copied()
    }

    async fn edit(&mut self, known: Known) {
        let edits = self.town.notes.seen().said[known.code].edits.len();
        let text = format!("w{}.{} {}", known.code, edits + 1, super::words::something(&mut self.dice));
        self.town.notes.seen().said[known.code].edits.push(text.clone());
        let revision = self.dice.weigh(&[(4, 0), (2, 1), (1, 2)]);
        let parts = vec![MessagePart::Text { text }];
        self.ask_with(Request::Edit { message: known.message, revision }, parts).await;
    }

    async fn stop(&mut self, message: kernel::MessageId) {
        self.ask(Request::Stop { message }).await;
        if self.dice.chance(400) {
            self.ask(Request::Stop { message }).await;
        }
    }

    async fn reorder(&mut self, session: SessionId) {
        let mut order = self.waiting(session).await;
        for at in (1..order.len()).rev() {
            order.swap(at, self.dice.below(at as u64 + 1) as usize);
        }
        self.ask(Request::Reorder { session, order }).await;
    }

    /// Asks with a key until there is an answer, and writes it down.
    pub(super) async fn ask(&mut self, request: Request) {
        self.ask_with(request, vec![]).await;
    }

    /// The same, with the words of an edit.
    async fn ask_with(&mut self, request: Request, parts: Vec<MessagePart>) {
        let key = {
            let mut heard = self.gossip.heard();
            heard.verbs += 1;
            format!("verb{}", heard.verbs)
        };
        let (correlation, key) = ("sim".to_owned(), Some(CallerKey::Idempotency(key)));
        let trace = Trace { door: "sim", correlation, address: None, key, schemes: SCHEMES };
        let mut tries = 0;
        while !self.town.is_enough(&mut tries) {
            let daemon = self.town.some_daemon(self.dice.roll()).await;
            let (engine, me) = (daemon.engine.clone(), self.me.clone());
            let (wanted, parts, how) = (request.clone(), parts.clone(), trace.clone());
            let answer = daemon.call(async move {
                match wanted {
                    Request::Edit { message, revision } => {
                        engine.way_in().edit(&me, message, revision, &parts, how).await
                    }
                    other => engine.way_in().ask(&me, other, how).await,
                }
            });
            let answer = answer.await;
            self.town.notes.tell(|| format!("{} {request:?}: {answer:?}", self.me.handle));
            match answer {
                Some(
                    Ok(Granted::Done)
                    | Err(WayInError::Conflict(ConflictError::TooLate | ConflictError::Changed)),
                ) => {}
                // It is in the inbox: there will be a verdict.
                Some(Ok(Granted::Pending)) if self.dice.chance(500) => {}
                None | Some(Ok(Granted::Pending)) | Some(Err(WayInError::Unavailable(_))) => {
                    tokio::time::sleep(Duration::from_millis(self.dice.between(10, 400))).await;
                    continue;
                }
                Some(Err(_)) => {}
            }
            if let Some(answer) = answer {
                self.town.notes.seen().asked.push((request, answer));
            }
            return;
        }
    }

    pub(super) async fn answer_questions(&mut self) {
        let daemon = self.town.some_daemon(self.dice.roll()).await;
        let (engine, me) = (daemon.engine.clone(), self.me.clone());
        let open = daemon.call(async move { engine.views().approvals(&me, 8).await }).await;
        for row in open.and_then(Result::ok).into_iter().flatten() {
            let answer = if self.dice.weigh(&[(1, true), (1, false)]) { Answer::Yes } else { Answer::No };
            self.ask(Request::Answer { approval: row.row.approval, answer, remember: None }).await;
        }
    }

    /// Looks at a receipt, or waits for it.
    pub(super) async fn look(&mut self) {
        let Some(Known { message, .. }) = self.some_message() else { return };
        for _ in 0..self.dice.between(1, 4) {
            let daemon = self.town.some_daemon(self.dice.roll()).await;
            let (engine, me) = (daemon.engine.clone(), self.me.clone());
            let wait = Duration::from_millis(self.dice.below(4_000));
            let receipt = if self.dice.chance(500) {
                daemon.call(async move { engine.views().receipt(&me, message).await }).await
            } else {
                daemon.call(async move { engine.views().receipt_within(&me, message, wait).await }).await
            };
            if let Some(Ok(view)) = receipt {
                self.town.notes.tell(|| format!("{} is {:?}", short(message), view.row.state));
                let seen = (self.me.person, message, view.row.state);
                self.town.notes.seen().receipts.push(seen);
            }
        }
    }

    async fn make(&mut self) {
        let daemon = self.town.some_daemon(self.dice.roll()).await;
        let key = Some(CallerKey::Idempotency(format!("make{}", self.dice.roll())));
        let trace =
            Trace { door: "sim", correlation: "sim".to_owned(), address: None, key, schemes: SCHEMES };
        let (engine, me) = (daemon.engine.clone(), self.me.clone());
        let made =
            daemon.call(async move { engine.way_in().make(&me, IfNew::default(), None, trace).await }).await;
        if let Some(Ok(made)) = made {
            self.gossip.heard().sessions.push(made.session);
        }
    }
}

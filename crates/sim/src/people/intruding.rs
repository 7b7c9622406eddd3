//! Whoever comes by the browser and wants to use the addresses of the chat: talk there, be answered there, bind one, move one.
//!
//! None of it may be granted. It has dice of its own, so that everything else of a story stays as it was.

use super::{Person, slack, words};
use crate::doors::WEB;
use engine::{IfNew, Inbound, MessagePart, Trace, WayInError};
use kernel::To;
use std::time::Duration;

/// A thread that nobody talks in who may.
const PRIVATE: u64 = 9;

impl Person {
    /// Tries so often.
    pub(crate) async fn intrude(mut self, tries: u64) {
        for _ in 0..tries {
            let wait_ms = self.dice.below(4_000);
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            let (how, answer) = match self.dice.below(4) {
                0 => ("talks", self.talk_there().await),
                1 => ("is answered", self.be_answered_there().await),
                2 => ("makes a session", self.bind_there().await),
                _ => ("moves a conversation", self.move_there().await),
            };
            self.town.notes.tell(|| format!("an intruder {how}: {answer:?}"));
            if let Some(Ok(())) = answer {
                self.town.notes.broken("a scheme is used through its own door alone", how.to_owned());
            }
        }
    }

    fn thread(&mut self) -> kernel::Address {
        slack(self.dice.weigh(&[(1, 0), (1, 1), (2, PRIVATE)]))
    }

    async fn talk_there(&mut self) -> Option<Result<(), WayInError>> {
        let inbound = self.by_browser(None);
        let to = To::Conversation(self.thread());
        self.send_once(Inbound { to, reply: None, ..inbound }).await
    }

    async fn be_answered_there(&mut self) -> Option<Result<(), WayInError>> {
        let inbound = self.by_browser(Some(To::New));
        let reply = Some(self.thread());
        self.send_once(Inbound { reply, ..inbound }).await
    }

    async fn bind_there(&mut self) -> Option<Result<(), WayInError>> {
        let (daemon, thread) = (self.town.some_daemon(self.dice.roll()).await, self.thread());
        let (engine, me) = (daemon.engine.clone(), self.me.clone());
        let make = async move { engine.way_in().make(&me, IfNew::default(), Some(thread), trace()).await };
        daemon.call(make).await.map(|made| made.map(drop))
    }

    async fn move_there(&mut self) -> Option<Result<(), WayInError>> {
        let (daemon, thread) = (self.town.some_daemon(self.dice.roll()).await, self.thread());
        let sessions = self.gossip.heard().sessions.clone();
        let session = *self.dice.pick(&sessions)?;
        let (engine, me) = (daemon.engine.clone(), self.me.clone());
        daemon.call(async move { engine.way_in().rebind(&me, thread, session, trace()).await }).await
    }

    async fn send_once(&mut self, inbound: Inbound) -> Option<Result<(), WayInError>> {
        let daemon = self.town.some_daemon(self.dice.roll()).await;
        let engine = daemon.engine.clone();
        daemon.call(async move { engine.way_in().send(inbound).await }).await.map(|sent| sent.map(drop))
    }

    fn by_browser(&mut self, to: Option<To>) -> Inbound {
        let parts = vec![MessagePart::Text { text: words::something(&mut self.dice) }];
        Inbound { parts, trace: trace(), ..self.inbound(to) }
    }
}

fn trace() -> Trace {
    Trace { door: "web", correlation: "sim".to_owned(), address: None, key: None, schemes: WEB }
}

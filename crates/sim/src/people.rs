//! The people of a story: what they say, how often they say it again, what they change their minds about.
//!
//! They behave as real clients do. Who has a key asks with it until there is an answer, of whichever daemon is there;
//! who has none asks again only after being told that nothing happened. They lose patience, and they deliver the same
//! thing at once, later, and after a restart.

mod intruding;
mod moving;
mod ruling;
mod tidying;
mod trading;
mod verbs;
mod watching;
mod words;

use crate::dice::Dice;
use crate::doors::SCHEMES;
use crate::notes::{SaidMessage, short};
use crate::town::Town;
use engine::{CallerKey, IfNew, Inbound, MessagePart, Receipt, Trace, UnavailableError, WayInError};
use kernel::{Address, MessageId, Principal, SessionId, To};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

/// Under a clear sky nobody has to ask more often.
const TRIES_MAX: u32 = 40;

/// The things that everybody knows of: gossip, from which people pick what to talk about.
#[derive(Debug, Default)]
pub(crate) struct Gossip(Mutex<CommonKnowledge>);

#[derive(Debug, Default)]
pub(crate) struct CommonKnowledge {
    pub(crate) messages: Vec<Known>,
    pub(crate) sessions: Vec<SessionId>,
    verbs: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub(crate) message: MessageId,
    pub(crate) code: usize,
}

impl Gossip {
    pub(crate) fn heard(&self) -> MutexGuard<'_, CommonKnowledge> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One person, and what they have going on.
pub(crate) struct Person {
    town: Arc<Town>,
    gossip: Arc<Gossip>,
    me: Principal,
    dice: Dice,
    /// Deliveries and watches that go on by themselves.
    errands: JoinSet<()>,
    watches: Arc<Mutex<JoinSet<()>>>,
}

impl Person {
    pub(crate) fn new(
        town: Arc<Town>,
        gossip: Arc<Gossip>,
        me: Principal,
        dice: Dice,
        watches: Arc<Mutex<JoinSet<()>>>,
    ) -> Self {
        Self { town, gossip, me, dice, errands: JoinSet::new(), watches }
    }

    /// Lives through the story.
    pub(crate) async fn live(mut self) {
        for _ in 0..self.dice.between(4, 14) {
            let think_ms = self.dice.weigh(&[(2, 5), (3, 200), (2, 2_000)]);
            let think_ms = self.dice.below(think_ms);
            tokio::time::sleep(Duration::from_millis(think_ms)).await;
            match self.dice.below(100) {
                0..25 => self.say(None).await,
                25..45 => self.say_much().await,
                45..55 => self.look().await,
                55..62 => self.answer_questions().await,
                _ => self.change_something().await,
            }
        }
        while self.errands.join_next().await.is_some() {}
    }

    /// Several things in a row in one place, so that some of them wait.
    async fn say_much(&mut self) {
        let to = match self.to() {
            To::New => To::Conversation(web(&self.me.handle, 0)),
            to => to,
        };
        for _ in 0..self.dice.between(2, 5) {
            self.say(Some(to.clone())).await;
        }
        for _ in 0..self.dice.between(0, 3) {
            self.change_something().await;
        }
    }

    async fn say(&mut self, to: Option<To>) {
        let inbound = self.inbound(to);
        self.deliver(inbound).await;
    }

    /// Delivers what is said, now and perhaps again.
    async fn deliver(&mut self, mut inbound: Inbound) {
        let code = self.note_said(&inbound);
        let MessagePart::Text { text } = &mut inbound.parts[0];
        *text = format!("w{code} {text}");
        self.town.notes.seen().said[code].text = text.clone();
        let has_key = inbound.trace.key.is_some();
        let delivery = |dice: Dice, wait_ms: u64| MessageSender {
            town: self.town.clone(),
            gossip: self.gossip.clone(),
            inbound: inbound.clone(),
            code,
            dice,
            wait_ms,
            tries: 0,
        };
        let again = if has_key { self.dice.weigh(&[(6, 0), (2, 1), (1, 2)]) } else { 0 };
        let mut later = Vec::new();
        for _ in 0..again {
            // At the same moment, a little later, or when nobody thinks of it any more.
            let longest_ms = self.dice.weigh(&[(2, 1), (2, 500), (1, 20_000)]);
            let wait_ms = self.dice.below(longest_ms);
            later.push(delivery(self.dice.fork(), wait_ms));
        }
        let first = delivery(self.dice.fork(), 0);
        later.into_iter().for_each(|delivery| drop(self.errands.spawn(delivery.go())));
        if self.dice.chance(300) {
            self.errands.spawn(first.go());
        } else {
            first.go().await;
            self.maybe_watch(code);
        }
    }

    fn inbound(&mut self, to: Option<To>) -> Inbound {
        let to = to.unwrap_or_else(|| self.to());
        let parts = vec![MessagePart::Text { text: words::something(&mut self.dice) }];
        let reply = self.dice.chance(300).then(|| slack(self.dice.below(3)));
        let title = self.dice.chance(100).then(|| "a title".to_owned());
        let key = match self.dice.below(10) {
            0..7 => Some(CallerKey::Idempotency(format!("key{}", self.dice.roll()))),
            7 => Some(CallerKey::Delivery(format!("delivery{}", self.dice.roll()))),
            _ => None,
        };
        let trace =
            Trace { door: "sim", correlation: "sim".to_owned(), address: None, key, schemes: SCHEMES };
        Inbound {
            by: self.me.clone(),
            to,
            if_new: IfNew { title, ..IfNew::default() },
            expected: None,
            parts,
            delivery: kernel::Delivery::Queue,
            attachments: Vec::new(),
            unattended: false,
            under: None,
            reply,
            trace,
        }
    }

    fn to(&mut self) -> To {
        let known = self.gossip.heard().sessions.clone();
        match self.dice.below(21) {
            0..10 => To::Conversation(web(&self.me.handle, self.dice.below(2))),
            10..13 => To::Conversation(slack(self.dice.below(2))),
            13..17 | 18 => self.dice.pick(&known).map_or(To::New, |session| To::Session(*session)),
            17 => To::New,
            20 => To::NewIn(web(&self.me.handle, self.dice.below(2))),
            _ => To::Session(SessionId::from_bits(u128::from(self.dice.roll()))),
        }
    }

    fn note_said(&self, inbound: &Inbound) -> usize {
        let said = SaidMessage {
            by: inbound.by.person,
            to: inbound.to.clone(),
            text: String::new(),
            under: inbound.under,
            unattended: inbound.unattended,
            answers: Vec::new(),
            forgotten: Vec::new(),
            edits: Vec::new(),
            unanswered: false,
        };
        let mut seen = self.town.notes.seen();
        seen.said.push(said);
        seen.said.len() - 1
    }
}

/// One delivery of something said, until there is an answer.
struct MessageSender {
    town: Arc<Town>,
    gossip: Arc<Gossip>,
    inbound: Inbound,
    code: usize,
    dice: Dice,
    wait_ms: u64,
    /// The number of tries under a clear sky.
    tries: u32,
}

impl MessageSender {
    async fn go(mut self) {
        tokio::time::sleep(Duration::from_millis(self.wait_ms)).await;
        loop {
            let known = self.town.notes.seen().said[self.code].answers.iter().any(Result::is_ok);
            let answer = self.once().await;
            if known && let Some(Err(refused)) = &answer {
                self.forgotten(refused);
            }
            let again = self.note(answer);
            if !again || self.town.is_enough(&mut self.tries) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(self.dice.between(10, 400))).await;
        }
    }

    async fn once(&mut self) -> Option<Result<Receipt, WayInError>> {
        let daemon = self.town.some_daemon(self.dice.roll()).await;
        let (engine, inbound) = (daemon.engine.clone(), self.inbound.clone());
        let call = async move { engine.way_in().send(inbound).await };
        let patience = Duration::from_millis(self.dice.below(500));
        match self.dice.below(16) {
            // Whoever loses patience goes away; the daemon does not notice and goes on, or drops everything.
            0 => tokio::time::timeout(patience, daemon.call(call)).await.ok().flatten(),
            1 => tokio::time::timeout(patience, daemon.call_while_here(call)).await.ok().flatten(),
            _ => daemon.call(call).await,
        }
    }

    /// Whoever has a receipt gets it again, or no answer for now; nothing else.
    fn forgotten(&self, refused: &WayInError) {
        if !matches!(refused, WayInError::Unavailable(_)) {
            self.town.notes.seen().said[self.code].forgotten.push(refused.clone());
        }
    }

    /// Writes the answer down; says whether to ask again.
    fn note(&self, answer: Option<Result<Receipt, WayInError>>) -> bool {
        self.town.notes.tell(|| match &answer {
            None => format!("w{}: no answer", self.code),
            Some(Ok(receipt)) => {
                let (message, session) = (short(receipt.accepted.message), short(receipt.accepted.session));
                let to = self.inbound.to.clone();
                format!("w{} to {to:?}: {message} in {session}, repeated {}", self.code, receipt.repeated)
            }
            Some(Err(refused)) => format!("w{}: {refused}", self.code),
        });
        let has_key = self.inbound.trace.key.is_some();
        let mut seen = self.town.notes.seen();
        let said = &mut seen.said[self.code];
        let again = match &answer {
            None => has_key,
            Some(Ok(_)) => false,
            Some(Err(WayInError::Unavailable(UnavailableError::Unclear))) => has_key,
            Some(Err(WayInError::Unavailable(_))) => true,
            Some(Err(_)) => false,
        };
        match answer {
            None => said.unanswered = true,
            Some(answer) => {
                if let Ok(receipt) = &answer {
                    self.spread(&receipt.accepted);
                }
                said.answers.push(answer.map(|receipt| receipt.accepted));
            }
        }
        again
    }

    fn spread(&self, accepted: &engine::Accepted) {
        let (message, session) = (accepted.message, accepted.session);
        let mut heard = self.gossip.heard();
        if !heard.messages.iter().any(|known| known.message == message) {
            heard.messages.push(Known { message, code: self.code });
        }
        if !heard.sessions.contains(&session) {
            heard.sessions.push(session);
        }
    }
}

impl Town {
    /// True if somebody has tried often enough to give up; then something is wrong.
    fn is_enough(&self, tries: &mut u32) -> bool {
        *tries += u32::from(self.sky.is_clear());
        if *tries > TRIES_MAX {
            self.notes.broken("whoever asks gets an answer", format!("{tries} tries under a clear sky"));
        }
        *tries > TRIES_MAX
    }
}

fn web(handle: &str, chat: u64) -> Address {
    format!("web:{handle}/chat{chat}").parse().expect("it is canonical")
}

fn slack(thread: u64) -> Address {
    format!("slack:T/C/{thread}").parse().expect("it is canonical")
}

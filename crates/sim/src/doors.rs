//! The ways in of the simulation and the addresses that are theirs, and the chat service to which replies go.
//!
//! `ChatRoom` is the service, one for the whole story: it keeps what it is sent, is slow, down or closed, and loses answers.
//! `ChatDoor` is one daemon's way to it, and the daemon may die before or after a post. Like a real service it knows one
//! login at a time: whoever was replaced can neither post nor ask.

use crate::dice::Dice;
use crate::forecast::DoorOdds;
use crate::notes::{Notes, short};
use crate::weather::{Sky, Weather};
use engine::{Arrived, Delivered, Door, DoorReply, OutgoingReply, ReadBack};
use kernel::{Address, MessageId, Scheme};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The schemes of conversations for people of the simulation: they come by a program that speaks for both ways in.
pub(crate) const SCHEMES: &[Scheme] = &[WEB_SCHEME, CHAT_SCHEME];
/// The schemes for whoever comes by the browser alone.
pub(crate) const WEB: &[Scheme] = &[WEB_SCHEME];
const CHAT: &[Scheme] = &[CHAT_SCHEME];

const WEB_SCHEME: Scheme = Scheme {
    name: "web",
    form: "web:USER/CHAT",
    parts: &[2],
    person: Some(0),
    client: None,
    each_person: false,
};
const CHAT_SCHEME: Scheme = Scheme {
    name: "slack",
    form: "slack:TEAM/CHANNEL/THREAD",
    parts: &[3],
    person: None,
    client: None,
    each_person: false,
};

/// The chat service of a story.
#[derive(Debug)]
pub(crate) struct ChatRoom {
    odds: DoorOdds,
    /// True if it can be asked what it has.
    pub(crate) can_be_asked: bool,
    log: Mutex<ChatLog>,
    sky: Arc<Sky>,
}

#[derive(Debug)]
struct ChatLog {
    posts: Vec<ChatPost>,
    /// The number of the newest login.
    login: u64,
    dice: Dice,
}

/// Something that was posted.
#[derive(Debug, Clone)]
pub(crate) struct ChatPost {
    /// The service's own id of it.
    pub(crate) id: String,
    pub(crate) to: Address,
    pub(crate) outgoing: u64,
    pub(crate) message: MessageId,
}

/// The fate of something that is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Taken,
    AnswerLost,
    NoAnswer,
    Down,
    Closed,
    DiesBefore,
    DiesAfter,
}

impl ChatRoom {
    pub(crate) fn new(odds: DoorOdds, can_be_asked: bool, dice: Dice, sky: Arc<Sky>) -> Arc<Self> {
        let log = Mutex::new(ChatLog { posts: Vec::new(), login: 0, dice });
        Arc::new(Self { odds, can_be_asked, log, sky })
    }

    /// Everything that was posted, in the order in which it came.
    pub(crate) fn posts(&self) -> Vec<ChatPost> {
        self.log().posts.clone()
    }

    fn log(&self) -> MutexGuard<'_, ChatLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notes(&self) -> &Notes {
        &self.sky.notes
    }

    /// Under a clear sky everything arrives, and at once.
    fn fate(&self) -> Fate {
        if self.sky.is_clear() {
            return Fate::Taken;
        }
        let DoorOdds { answer_lost, no_answer, down, closed, dies_before, dies_after, .. } = self.odds;
        let all = answer_lost + no_answer + down + closed + dies_before + dies_after;
        self.log().dice.weigh(&[
            (answer_lost, Fate::AnswerLost),
            (no_answer, Fate::NoAnswer),
            (down, Fate::Down),
            (closed, Fate::Closed),
            (dies_before, Fate::DiesBefore),
            (dies_after, Fate::DiesAfter),
            (1_000_u64.saturating_sub(all), Fate::Taken),
        ])
    }

    async fn dawdle(&self) {
        let ms = {
            let mut log = self.log();
            let is_slow = !self.sky.is_clear() && log.dice.chance(self.odds.slow);
            is_slow.then(|| log.dice.between(1, self.odds.slow_ms_max))
        };
        if let Some(ms) = ms {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
    }
}

/// One daemon's way to the chat service.
pub(crate) struct ChatDoor {
    room: Arc<ChatRoom>,
    weather: Arc<Weather>,
    login: u64,
}

impl ChatDoor {
    /// Signs in; whoever was signed in before is not any more.
    pub(crate) fn open(room: Arc<ChatRoom>, weather: Arc<Weather>) -> Arc<Self> {
        let login = {
            let mut log = room.log();
            log.login += 1;
            log.login
        };
        Arc::new(Self { room, weather, login })
    }

    fn is_signed_in(&self) -> bool {
        self.room.log().login == self.login
    }

    async fn send(&self, reply: OutgoingReply) -> Delivered {
        self.room.dawdle().await;
        let fate = self.room.fate();
        let what = (short(&reply.to), reply.outgoing);
        self.room.notes().tell(|| format!("      reply {} to {}: {fate:?}", what.1, what.0));
        let later = |reason: &str| Delivered::Later { reason: reason.to_owned(), after: None };
        match fate {
            Fate::Down => return later("the service is down"),
            Fate::Closed => return Delivered::Parked { reason: "the thread is closed".to_owned() },
            Fate::DiesBefore => return self.die().await,
            Fate::Taken | Fate::AnswerLost | Fate::NoAnswer | Fate::DiesAfter => {}
        }
        let Some(id) = self.post(&reply) else { return later("signed in elsewhere") };
        self.room.dawdle().await;
        match fate {
            Fate::AnswerLost => Delivered::Unknown { reason: "the connection broke".to_owned() },
            Fate::NoAnswer => std::future::pending().await,
            Fate::DiesAfter => self.die().await,
            Fate::Taken | Fate::Down | Fate::Closed | Fate::DiesBefore => {
                Delivered::Sent { service_id: Some(id) }
            }
        }
    }

    fn post(&self, reply: &OutgoingReply) -> Option<String> {
        if !self.is_signed_in() {
            return None;
        }
        let mut log = self.room.log();
        let id = format!("post{}", log.posts.len());
        let (to, outgoing, message) = (reply.to.clone(), reply.outgoing, reply.message);
        log.posts.push(ChatPost { id: id.clone(), to, outgoing, message });
        Some(id)
    }

    async fn die(&self) -> Delivered {
        self.room.notes().tell(|| "      the daemon dies while it sends".to_owned());
        self.weather.kill();
        std::future::pending().await
    }
}

impl Door for ChatDoor {
    fn name(&self) -> &'static str {
        "chat"
    }

    fn schemes(&self) -> &'static [Scheme] {
        CHAT
    }

    fn deliver(&self, reply: OutgoingReply) -> DoorReply<'_, Delivered> {
        Box::pin(self.send(reply))
    }

    fn read_back(&self) -> Option<&dyn ReadBack> {
        self.room.can_be_asked.then_some(self)
    }
}

impl ReadBack for ChatDoor {
    fn arrived(&self, reply: OutgoingReply) -> DoorReply<'_, Arrived> {
        Box::pin(async move {
            self.room.dawdle().await;
            let not_now = |reason: &str| Arrived::NotNow { reason: reason.to_owned() };
            if self.room.fate() == Fate::Down {
                return not_now("the service is down");
            }
            if !self.is_signed_in() {
                return not_now("signed in elsewhere");
            }
            let log = self.room.log();
            let found = log.posts.iter().find(|post| post.outgoing == reply.outgoing && post.to == reply.to);
            found.map_or(Arrived::No, |post| Arrived::Yes { service_id: Some(post.id.clone()) })
        })
    }
}

impl fmt::Debug for ChatDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChatDoor({})", self.login)
    }
}

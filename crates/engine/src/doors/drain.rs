//! Empties the outbox through one door: take, send or read back, settle; then wait for the next.
//!
//! One loop per door. What it has begun goes on beside it, so that a slow address holds up no other one. A crash between any
//! two steps leaves the row *sending*, and the next start of this node makes it *unknown*.

use super::{Arrived, Delivered, Door, OutgoingReply, ReplyWords};
use crate::approvals::ApprovalWords;
use crate::{Clock, Engine, UnavailableError, Views};
use kernel::Moment;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use store::{Became, Outgoing, OutgoingKind, Store, StoreError, TakeOutgoing};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Replies of one door that are under way at once; each to another address.
const AT_ONCE_MAX: usize = 16;
/// The longest that a door may take for one reply. After that nobody knows.
const DELIVER_MAX: Duration = Duration::from_secs(30);
/// The first wait after a reply that was not sent, or could not be read back; each further one is twice as long …
const BACK_OFF_FIRST: Duration = Duration::from_secs(1);
/// … and never longer than this.
const BACK_OFF_MAX: Duration = Duration::from_secs(10 * 60);
/// The tries of a reply by itself: about a day. After that a person has to say what becomes of it.
pub(super) const TRIES_MAX: u32 = 150;
/// Nobody sleeps longer than this without looking: the clock may jump, and another node may have put something in.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// After a failure of the store.
const AGAIN: Duration = Duration::from_millis(200);
/// The time for which a sent reply is remembered.
const SENT_KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The time between two clearings of what was sent longer ago …
const CLEAR_EVERY: Duration = Duration::from_secs(6 * 60 * 60);
/// … and how many rows in one transaction.
const CLEAR_MAX: usize = 1_000;

/// Rung when something was put into the outbox.
#[derive(Debug, Default)]
pub(crate) struct Bell(Notify);

impl Bell {
    pub(crate) fn ring(&self) {
        self.0.notify_waiters();
    }
}

/// Begins to empty the outbox through every door, and to forget what was sent long ago.
pub(crate) fn start(engine: &Engine, doors: Vec<Arc<dyn Door>>) -> Result<(), UnavailableError> {
    let mut owned = BTreeSet::new();
    for scheme in doors.iter().flat_map(|door| door.schemes()) {
        if !owned.insert(scheme.name) {
            return Err(UnavailableError::Unavailable(format!("two doors own the scheme {}", scheme.name)));
        }
    }
    for door in doors {
        let looped = engine.clone();
        let drain = Drain { store: engine.ports().store.clone(), clock: engine.ports().clock.clone(), door };
        engine.spawn(async move { drain.run(&looped).await });
    }
    let clearing = engine.clone();
    engine.spawn(async move {
        loop {
            clear(&clearing).await;
            tokio::time::sleep(CLEAR_EVERY).await;
        }
    });
    Ok(())
}

async fn clear(engine: &Engine) {
    let before = Moment(engine.now().0.saturating_sub(millis(SENT_KEPT)));
    loop {
        match engine.store().outbox_clear(before, CLEAR_MAX).await {
            Ok(CLEAR_MAX) => {}
            Ok(_) => return,
            Err(error) => return tracing::warn!(%error, "what was sent long ago is forgotten later"),
        }
    }
}

impl Views {
    /// The words of a reply, read when it is sent.
    async fn reply_words(&self, outgoing: &Outgoing) -> Result<ReplyWords, StoreError> {
        match outgoing.kind {
            OutgoingKind::Final => match self.ports.store.receipt(outgoing.message).await? {
                Some((_, row)) => {
                    let [answer] = match row.turn {
                        Some(turn) => self.said(row.session, turn, ["text"]).await?,
                        None => [String::new()],
                    };
                    Ok(ReplyWords::Final { state: row.state, answer })
                }
                None => Ok(ReplyWords::Gone),
            },
            OutgoingKind::Question(approval) => match self.ports.store.approval(approval).await? {
                Some((_, row)) => Ok(ReplyWords::Question { approval, words: ApprovalWords::of(&row) }),
                None => Ok(ReplyWords::Gone),
            },
        }
    }
}

/// The outbox as one door empties it.
#[derive(Clone)]
pub(super) struct Drain {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) door: Arc<dyn Door>,
}

/// Something to do about a reply.
pub(super) enum DoorWork {
    Send(Outgoing),
    ReadBack(Outgoing),
}

impl DoorWork {
    pub(super) fn outgoing(&self) -> &Outgoing {
        match self {
            Self::Send(outgoing) | Self::ReadBack(outgoing) => outgoing,
        }
    }
}

impl Drain {
    async fn run(self, engine: &Engine) {
        let (mut tasks, mut under_way) = (JoinSet::new(), BTreeMap::new());
        loop {
            // Listen first, then look: whatever is put in from here on is heard.
            let mut rung = std::pin::pin!(engine.ports().outbox_bell.0.notified());
            rung.as_mut().enable();
            let wait =
                match self.take(under_way.values().copied(), AT_ONCE_MAX.saturating_sub(tasks.len())).await {
                    Ok((items, next)) => {
                        for item in items {
                            let outgoing = item.outgoing().outgoing;
                            let (drain, engine) = (self.clone(), engine.clone());
                            let task = tasks.spawn(async move { drain.handle(&engine, item).await });
                            under_way.insert(task.id(), outgoing);
                        }
                        self.until(next)
                    }
                    Err(error) => {
                        tracing::warn!(%error, door = self.door.name(), "the outbox could not be read");
                        AGAIN
                    }
                };
            let full = tasks.len() >= AT_ONCE_MAX;
            tokio::select! {
                biased;
                Some(done) = tasks.join_next_with_id() => {
                    let task = done.map_or_else(|panicked| panicked.id(), |(task, ())| task);
                    under_way.remove(&task);
                }
                () = rung.as_mut(), if !full => {}
                () = tokio::time::sleep(wait), if !full => {}
            }
        }
    }

    fn until(&self, next: Option<Moment>) -> Duration {
        let now = self.clock.now();
        let wait = next.map_or(LOOK_EVERY, |next| Duration::from_millis(next.0.saturating_sub(now.0)));
        wait.min(LOOK_EVERY)
    }

    /// The work to be done now, and the time of the next. Whatever is to be sent is durably *sending*.
    pub(super) async fn take(
        &self,
        under_way: impl IntoIterator<Item = u64>,
        limit: usize,
    ) -> Result<(Vec<DoorWork>, Option<Moment>), StoreError> {
        let now = self.clock.now();
        let schemes = self.door.schemes().iter().map(|scheme| scheme.name.to_owned()).collect();
        // Whoever dies while reading back is followed by somebody who does it again.
        let read_back_again = Moment(now.0 + millis(2 * DELIVER_MAX));
        let under_way = under_way.into_iter().collect();
        let take = TakeOutgoing { schemes, under_way, now, read_back_again, limit };
        let taken = self.store.outbox_take(take).await?;
        let send = taken.send.into_iter().map(DoorWork::Send);
        Ok((send.chain(taken.read_back.into_iter().map(DoorWork::ReadBack)).collect(), taken.next))
    }

    async fn handle(&self, engine: &Engine, item: DoorWork) {
        let outgoing = item.outgoing();
        match engine.views().reply_words(outgoing).await {
            Ok(words) => self.handle_with(item, words).await,
            Err(refused) => {
                let due = self.later(outgoing.tries, None);
                let became = match item {
                    DoorWork::Send(_) => Became::Again { due, reason: Some(refused.to_string()) },
                    // It is due again by itself.
                    DoorWork::ReadBack(_) => return,
                };
                self.settle(outgoing, became).await;
            }
        }
    }

    /// Sends or reads back, and writes down what became of it.
    pub(super) async fn handle_with(&self, item: DoorWork, words: ReplyWords) {
        let (outgoing, became) = match item {
            DoorWork::Send(outgoing) => {
                let became = self.send(&outgoing, words).await;
                (outgoing, became)
            }
            DoorWork::ReadBack(outgoing) => {
                let became = self.ask_back(&outgoing, words).await;
                (outgoing, became)
            }
        };
        self.settle(&outgoing, became).await;
    }

    async fn send(&self, outgoing: &Outgoing, words: ReplyWords) -> Became {
        let delivering = self.door.deliver(reply_of(outgoing, words));
        let delivered = tokio::time::timeout(DELIVER_MAX, delivering).await;
        let delivered = delivered.unwrap_or_else(|_| Delivered::Unknown {
            reason: format!("no answer within {} s", DELIVER_MAX.as_secs()),
        });
        match delivered {
            Delivered::Sent { service_id } => Became::Sent { service_id },
            Delivered::Parked { reason } => Became::Parked { reason },
            Delivered::Unknown { reason } => {
                let read_back = self.door.read_back().map(|_| self.later(outgoing.tries, None));
                Became::Unknown { reason, read_back }
            }
            Delivered::Later { reason, .. } if is_last(outgoing.tries) => {
                Became::Parked { reason: format!("tried {} times: {reason}", outgoing.tries) }
            }
            Delivered::Later { reason, after } => {
                Became::Again { due: self.later(outgoing.tries, after), reason: Some(reason) }
            }
        }
    }

    async fn ask_back(&self, outgoing: &Outgoing, words: ReplyWords) -> Became {
        let unknown = || outgoing.reason.clone().unwrap_or_else(|| "it may have been sent".to_owned());
        let Some(service) = self.door.read_back() else {
            return Became::Unknown { reason: unknown(), read_back: None };
        };
        let asking = tokio::time::timeout(DELIVER_MAX, service.arrived(reply_of(outgoing, words)));
        match asking.await {
            Ok(Arrived::Yes { service_id }) => Became::Sent { service_id },
            Ok(Arrived::No) => Became::Again { due: self.clock.now(), reason: None },
            Ok(Arrived::NotNow { .. }) | Err(_) if is_last(outgoing.tries) => {
                Became::Unknown { reason: unknown(), read_back: None }
            }
            Ok(Arrived::NotNow { .. }) | Err(_) => {
                Became::Unknown { reason: unknown(), read_back: Some(self.later(outgoing.tries, None)) }
            }
        }
    }

    /// When it is tried again after so many tries.
    fn later(&self, tries: u32, asked_for: Option<Duration>) -> Moment {
        let doublings = (tries.saturating_sub(1) % TRIES_MAX).min(16);
        let wait = BACK_OFF_FIRST.saturating_mul(1 << doublings).min(BACK_OFF_MAX);
        let wait = asked_for.map_or(wait, |asked| asked.clamp(wait, BACK_OFF_MAX));
        Moment(self.clock.now().0 + millis(wait))
    }

    /// Settles what has become of it, which is known to nobody else: it is written down as soon as that can be done.
    async fn settle(&self, tried: &Outgoing, became: Became) {
        let Outgoing { outgoing, tries, .. } = *tried;
        loop {
            match self.store.outbox_settle(outgoing, tries, became.clone(), self.clock.now()).await {
                Ok(_) => return,
                Err(error) => {
                    tracing::warn!(%error, outgoing, "what became of a reply is not written down yet")
                }
            }
            tokio::time::sleep(AGAIN).await;
        }
    }
}

/// True if it is left to a person after so many tries. Whoever retries it by hand gives it as many again.
fn is_last(tries: u32) -> bool {
    tries.is_multiple_of(TRIES_MAX)
}

fn reply_of(outgoing: &Outgoing, words: ReplyWords) -> OutgoingReply {
    let Outgoing { outgoing, session, to, message, .. } = outgoing.clone();
    OutgoingReply { outgoing, to, session, message, words }
}

fn millis(wait: Duration) -> u64 {
    wait.as_millis() as u64
}

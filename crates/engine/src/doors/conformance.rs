//! The suite every door must pass: what the outbox promises, with a service behind the door that misbehaves.
//!
//! A candidate is a door and the double of its service. Time stands still unless a story moves it, and a crash is a future that
//! is dropped: nothing here sleeps. Use `door_conformance!` in the tests of the door.

use super::drain::Drain;
use super::{Door, ReplyWords};
use crate::Clock;
use kernel::{
    Address, DoorAddress, MessageId, Moment, NodeId, OrgId, PersonId, Principal, Role, SessionId,
    authorize_address,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::{
    Hand, MemoryStore, NewOutgoing, Outbox, Outgoing, OutgoingKind, OutgoingState, ReceiptState,
    SettleByHand, Store, Trail, WriteOutcome,
};

/// A door, and the service behind it as a test has it in hand.
pub trait Candidate: Send + Sync {
    /// The door.
    fn door(&self) -> Arc<dyn Door>;
    /// One of the service's conversations.
    fn address(&self, number: u32) -> Address;
    /// The replies that the service has in a conversation, in the order in which they came: each `OutgoingReply::outgoing`.
    fn arrived(&self, at: &Address) -> Vec<u64>;
    /// The service behaves so from here on.
    fn behave(&self, how: Behaviour);
}

/// The behaviour of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Behaviour {
    /// It takes what it is sent, and says so.
    Well,
    /// It takes what it is sent, and what it says gets lost.
    LosesAnswers,
    /// It takes what it is sent, and says nothing, ever.
    NeverAnswers,
    /// It takes nothing, and cannot be asked.
    Down,
    /// It takes nothing in this conversation, and never will.
    Refuses(Address),
}

/// Makes a test of each story of the suite; `$candidate` is a new candidate each time.
#[macro_export]
macro_rules! door_conformance {
    ($candidate:expr) => {
        $crate::door_conformance! { @tests [$candidate]
            replies_leave_in_order_per_address, what_was_sent_keeps_what_the_service_calls_it,
            a_lost_answer_is_read_back_or_waits_for_a_person, a_crash_after_the_send_does_not_send_twice,
            a_crash_before_the_send_loses_nothing, a_service_that_is_down_gets_everything_later_and_in_order,
            while_nobody_can_be_asked_nothing_is_sent_again, a_parked_reply_holds_nobody_up,
            a_parked_reply_is_retried_or_dropped_by_hand, another_doors_addresses_are_left_alone,
            only_its_own_schemes_can_be_used_through_it }
    };
    (@tests [$candidate:expr] $($story:ident),*) => {
        $(
            #[tokio::test]
            async fn $story() {
                $crate::doors::conformance::$story(&$candidate).await;
            }
        )*
    };
}

/// Longer than any back-off.
const LONG_MS: u64 = 60 * 60 * 1_000;
/// More than any story has.
const ALL: usize = 100;
const ORG: OrgId = OrgId::from_bits(7);

/// Replies leave in the order in which they were posted, in each conversation.
pub async fn replies_leave_in_order_per_address(on: &dyn Candidate) {
    let outbox = OutboxScene::new(on);
    let (a, b) = (on.address(1), on.address(2));
    let posted = [&a, &b, &a, &b, &a].map(|to| outbox.post(to));
    outbox.drain().await;
    assert_eq!(on.arrived(&a), [posted[0], posted[2], posted[4]]);
    assert_eq!(on.arrived(&b), [posted[1], posted[3]]);
    assert!(outbox.rows().await.iter().all(|row| row.state == OutgoingState::Sent));
}

/// The service's own id is kept, if it has one: it must be the same when it is read back.
pub async fn what_was_sent_keeps_what_the_service_calls_it(on: &dyn Candidate) {
    let outbox = OutboxScene::new(on);
    let a = on.address(1);
    let posted = outbox.post(&a);
    outbox.drain().await;
    let row = outbox.row(posted).await;
    assert_eq!((row.state, row.tries, row.due, row.node), (OutgoingState::Sent, 1, None, None));
    if on.door().read_back().is_some() {
        assert!(row.service_id.is_some(), "a service that can be asked has a name for what it has");
    }
}

/// Exactly once where the service can be asked; otherwise it is marked, and only a person sends it again.
pub async fn a_lost_answer_is_read_back_or_waits_for_a_person(on: &dyn Candidate) {
    let outbox = OutboxScene::new(on);
    let a = on.address(1);
    let (first, second) = (outbox.post(&a), outbox.post(&a));
    on.behave(Behaviour::LosesAnswers);
    outbox.drain_one().await;
    let row = outbox.row(first).await;
    assert_eq!((row.state, row.reason.is_some()), (OutgoingState::Unknown, true));
    on.behave(Behaviour::Well);
    outbox.pass(LONG_MS);
    outbox.drain().await;
    let row = outbox.row(first).await;
    if on.door().read_back().is_some() {
        assert_eq!((row.state, row.service_id.is_some()), (OutgoingState::Sent, true));
        assert_eq!(on.arrived(&a), [first, second]);
        return;
    }
    // It may have been sent, and holds nobody up.
    assert_eq!((row.state, row.due), (OutgoingState::Unknown, None));
    assert_eq!(on.arrived(&a), [first, second]);
    outbox.by_hand(first, Hand::Retry).await;
    outbox.drain().await;
    assert_eq!(on.arrived(&a), [first, second, first], "at least once");
}

/// A crash between the send and its answer.
pub async fn a_crash_after_the_send_does_not_send_twice(on: &dyn Candidate) {
    let mut outbox = OutboxScene::new(on);
    let a = on.address(1);
    let (first, second) = (outbox.post(&a), outbox.post(&a));
    on.behave(Behaviour::NeverAnswers);
    tokio::select! {
        biased;
        () = outbox.drain_one() => panic!("it never answers"),
        () = until(|| !on.arrived(&a).is_empty()) => {}
    }
    on.behave(Behaviour::Well);
    outbox.restart();
    assert_eq!(outbox.row(first).await.state, OutgoingState::Unknown);
    outbox.drain().await;
    outbox.pass(LONG_MS);
    outbox.drain().await;
    assert_eq!(on.arrived(&a), [first, second], "nothing is sent twice");
    let state = outbox.row(first).await.state;
    let known = on.door().read_back().is_some();
    assert_eq!(state, if known { OutgoingState::Sent } else { OutgoingState::Unknown });
}

/// A crash between *sending* and the send.
pub async fn a_crash_before_the_send_loses_nothing(on: &dyn Candidate) {
    let mut outbox = OutboxScene::new(on);
    let a = on.address(1);
    let (first, second) = (outbox.post(&a), outbox.post(&a));
    let taken = outbox.drain.take([], ALL).await.expect("the store is well").0;
    assert_eq!(taken.len(), 1, "one at a time to one address");
    drop(taken);
    outbox.restart();
    outbox.drain().await;
    outbox.pass(LONG_MS);
    outbox.drain().await;
    if on.door().read_back().is_some() {
        assert_eq!(on.arrived(&a), [first, second], "the service was asked, and had not got it");
        return;
    }
    assert_eq!(on.arrived(&a), [second]);
    assert_eq!(outbox.row(first).await.state, OutgoingState::Unknown, "it is there for a person to see");
}

/// A reply that was certainly not sent is sent later, and nothing overtakes it.
pub async fn a_service_that_is_down_gets_everything_later_and_in_order(on: &dyn Candidate) {
    let outbox = OutboxScene::new(on);
    let (a, b) = (on.address(1), on.address(2));
    let posted = [&a, &b, &a].map(|to| outbox.post(to));
    on.behave(Behaviour::Down);
    outbox.drain().await;
    let row = outbox.row(posted[0]).await;
    assert_eq!((row.state, row.reason.is_some()), (OutgoingState::Waiting, true));
    assert!(row.due.is_some_and(|due| due > outbox.now()), "with a pause");
    assert_eq!(on.arrived(&a).len() + on.arrived(&b).len(), 0);
    on.behave(Behaviour::Well);
    outbox.pass(LONG_MS);
    outbox.drain().await;
    assert_eq!((on.arrived(&a), on.arrived(&b)), (vec![posted[0], posted[2]], vec![posted[1]]));
}

/// Nothing is concluded from silence.
pub async fn while_nobody_can_be_asked_nothing_is_sent_again(on: &dyn Candidate) {
    let outbox = OutboxScene::new(on);
    let a = on.address(1);
    let first = outbox.post(&a);
    on.behave(Behaviour::LosesAnswers);
    outbox.drain_one().await;
    on.behave(Behaviour::Down);
    for _ in 0..3 {
        outbox.pass(LONG_MS);
        outbox.drain().await;
        assert_eq!(outbox.row(first).await.state, OutgoingState::Unknown);
    }
    on.behave(Behaviour::Well);
    outbox.pass(LONG_MS);
    outbox.drain().await;
    assert_eq!(on.arrived(&a), [first]);
}

/// A conversation that is closed for good says why, and the others go on.
pub async fn a_parked_reply_holds_nobody_up(on: &dyn Candidate) {
    let outbox = OutboxScene::new(on);
    let (a, b) = (on.address(1), on.address(2));
    let (parked, other) = (outbox.post(&a), outbox.post(&b));
    on.behave(Behaviour::Refuses(a.clone()));
    outbox.drain().await;
    let row = outbox.row(parked).await;
    assert_eq!((row.state, row.due, row.reason.is_some()), (OutgoingState::Parked, None, true));
    assert_eq!(on.arrived(&b), [other]);
    on.behave(Behaviour::Well);
    outbox.pass(LONG_MS);
    let next = outbox.post(&a);
    outbox.drain().await;
    assert_eq!(on.arrived(&a), [next], "it does not go by itself, and what comes after it does");
}

/// The way out of *parked*.
pub async fn a_parked_reply_is_retried_or_dropped_by_hand(on: &dyn Candidate) {
    let outbox = OutboxScene::new(on);
    let a = on.address(1);
    let (first, second) = (outbox.post(&a), outbox.post(&a));
    on.behave(Behaviour::Refuses(a.clone()));
    outbox.drain().await;
    on.behave(Behaviour::Well);
    outbox.by_hand(second, Hand::Drop).await;
    outbox.by_hand(first, Hand::Retry).await;
    outbox.drain().await;
    assert_eq!(on.arrived(&a), [first]);
    let rows = outbox.rows().await;
    assert_eq!(
        rows.iter().map(|row| (row.outgoing, row.state)).collect::<Vec<_>>(),
        [(first, OutgoingState::Sent)]
    );
}

/// A door takes what is its own.
pub async fn another_doors_addresses_are_left_alone(on: &dyn Candidate) {
    let outbox = OutboxScene::new(on);
    let foreign: Address = "nobodys-scheme:1/2".parse().expect("it is canonical");
    let (theirs, own) = (outbox.post(&foreign), outbox.post(&on.address(1)));
    outbox.drain().await;
    outbox.pass(LONG_MS);
    outbox.drain().await;
    assert_eq!(
        outbox.row(theirs).await.state,
        OutgoingState::Waiting,
        "closed until a door owns it, and not lost"
    );
    assert_eq!(on.arrived(&on.address(1)), [own]);
}

/// Through the door one can use its own addresses, and no others; through another door one cannot use its own.
pub async fn only_its_own_schemes_can_be_used_through_it(on: &dyn Candidate) {
    let (door, by) = (on.door(), Principal::member(ORG, PersonId::from_bits(1), "ann"));
    let own = on.address(1);
    assert!(door.schemes().iter().any(|scheme| scheme.owns(&own)), "{own} is one of its own");
    for text in ["nobodys-scheme:ann/1", "nobodys-scheme:1"] {
        let address: Address = text.parse().expect("it is canonical");
        let brought = DoorAddress { address: &address, schemes: door.schemes() };
        assert!(authorize_address(&by, brought).is_err(), "{address}");
    }
    let elsewhere = DoorAddress { address: &own, schemes: &[] };
    assert!(authorize_address(&by, elsewhere).is_err(), "{own}");
}

/// The outbox of a store that forgets, and the door.
struct OutboxScene {
    store: MemoryStore,
    clock: Arc<HandClock>,
    drain: Drain,
}

impl OutboxScene {
    fn new(on: &dyn Candidate) -> Self {
        let store = MemoryStore::new(NodeId::from_bits(1));
        let clock = Arc::new(HandClock(AtomicU64::new(1_000_000)));
        let drain = Drain { store: Arc::new(store.clone()), clock: clock.clone(), door: on.door() };
        Self { store, clock, drain }
    }

    /// Another start of the node, as if it had been killed.
    fn restart(&mut self) {
        self.store = self.store.reopen();
        self.drain.store = Arc::new(self.store.clone());
    }

    fn now(&self) -> Moment {
        self.clock.now()
    }

    fn pass(&self, ms: u64) {
        self.clock.0.fetch_add(ms, Ordering::Relaxed);
    }

    fn post(&self, to: &Address) -> u64 {
        let (message, kind) = (MessageId::from_bits(5), OutgoingKind::Final);
        let reply = NewOutgoing { to: to.clone(), message, kind };
        self.store.post(ORG, SessionId::from_bits(3), reply, self.now())
    }

    /// Until there is nothing to do now.
    async fn drain(&self) {
        while self.drain_once(ALL).await > 0 {}
    }

    async fn drain_one(&self) {
        assert_eq!(self.drain_once(1).await, 1);
    }

    async fn drain_once(&self, limit: usize) -> usize {
        let (items, _) = self.drain.take([], limit).await.expect("the store is well");
        let count = items.len();
        for item in items {
            let answer = format!("answer {}", item.outgoing().outgoing);
            self.drain.handle_with(item, ReplyWords::Final { state: ReceiptState::Answered, answer }).await;
        }
        count
    }

    async fn rows(&self) -> Vec<Outgoing> {
        self.store.outbox_list(ORG, None, 0, ALL).await.expect("the store is well")
    }

    async fn row(&self, outgoing: u64) -> Outgoing {
        let rows = self.rows().await;
        rows.into_iter().find(|row| row.outgoing == outgoing).expect("it is there")
    }

    async fn by_hand(&self, outgoing: u64, hand: Hand) {
        let admin = Principal { role: Role::Admin, ..Principal::member(ORG, PersonId::ENGINE, "homing") };
        let (door, correlation) = ("test", "test".to_owned());
        let trail = Trail { verb: "settle", door, correlation, address: None, at: self.now() };
        let here = self.store.node().node;
        let new = SettleByHand { outgoing, hand, here, key: None, trail };
        let settled = self.store.outbox_by_hand(Arc::new(admin), new).await.expect("the store is well");
        assert_eq!(settled, WriteOutcome::Done(()));
    }
}

/// A clock that somebody moves.
#[derive(Debug)]
struct HandClock(AtomicU64);

impl Clock for HandClock {
    fn now(&self) -> Moment {
        Moment(self.0.load(Ordering::Relaxed))
    }
}

/// Lets others go on until it is so.
async fn until(mut so: impl FnMut() -> bool) {
    while !so() {
        tokio::task::yield_now().await;
    }
}

//! Replies leave by doors: the suite on a door to a chat service that is none, and the whole way through the engine.

use crate::world::{World, conversation, trace};
use engine::doors::conformance::{self, Behaviour, Candidate};
use engine::{
    AccessError, Arrived, ConflictError, Delivered, Door, DoorReply, Engine, Hand, Inbound, Outgoing,
    OutgoingReply, OutgoingState, ReadBack, ReplyWords, RouteChoice, Trace,
};
use kernel::{Address, Role, Scheme, To};
use std::sync::Arc;
use std::time::Duration;
use testkit::{ChatAnswer, ChatBehaviour, ChatService};

const SCHEMES: &[Scheme] = &[Scheme {
    name: "chat",
    form: "chat:CHANNEL/THREAD",
    parts: &[2],
    person: None,
    client: None,
    each_person: false,
}];

/// A door to the chat service that is none.
#[derive(Debug)]
struct ChatDoor {
    service: Arc<ChatService>,
    can_be_asked: bool,
}

impl Door for ChatDoor {
    fn name(&self) -> &'static str {
        "chat"
    }

    fn schemes(&self) -> &'static [Scheme] {
        SCHEMES
    }

    fn deliver(&self, reply: OutgoingReply) -> DoorReply<'_, Delivered> {
        Box::pin(async move {
            let text = match &reply.words {
                ReplyWords::Final { answer, .. } => answer.clone(),
                ReplyWords::Question { words, .. } => {
                    words.as_ref().map_or_else(String::new, |words| words.detail.clone())
                }
                ReplyWords::Gone => String::new(),
            };
            match self.service.post(&reply.to.to_string(), &reply.outgoing.to_string(), &text) {
                ChatAnswer::Posted(id) => Delivered::Sent { service_id: Some(id) },
                ChatAnswer::Lost => Delivered::Unknown { reason: "the connection broke".to_owned() },
                ChatAnswer::Never => std::future::pending().await,
                ChatAnswer::Refused(reason) => Delivered::Parked { reason },
                ChatAnswer::Down => Delivered::Later { reason: "cannot be reached".to_owned(), after: None },
            }
        })
    }

    fn read_back(&self) -> Option<&dyn ReadBack> {
        self.can_be_asked.then_some(self)
    }
}

impl ReadBack for ChatDoor {
    fn arrived(&self, reply: OutgoingReply) -> DoorReply<'_, Arrived> {
        let found = self.service.find(&reply.to.to_string(), &reply.outgoing.to_string());
        Box::pin(async move {
            match found {
                Ok(Some(id)) => Arrived::Yes { service_id: Some(id) },
                Ok(None) => Arrived::No,
                Err(reason) => Arrived::NotNow { reason },
            }
        })
    }
}

/// The door with its service in hand.
struct ChatCandidate(Arc<ChatDoor>);

impl ChatCandidate {
    fn new(can_be_asked: bool) -> Self {
        Self(Arc::new(ChatDoor { service: Arc::default(), can_be_asked }))
    }
}

impl Candidate for ChatCandidate {
    fn door(&self) -> Arc<dyn Door> {
        self.0.clone()
    }

    fn address(&self, number: u32) -> Address {
        thread(number)
    }

    fn arrived(&self, at: &Address) -> Vec<u64> {
        let posts = self.0.service.posts(&at.to_string());
        posts.iter().map(|post| post.client_id.parse().unwrap()).collect()
    }

    fn behave(&self, how: Behaviour) {
        self.0.service.behave(match how {
            Behaviour::Well => ChatBehaviour::Well,
            Behaviour::LosesAnswers => ChatBehaviour::LosesAnswers,
            Behaviour::NeverAnswers => ChatBehaviour::NeverAnswers,
            Behaviour::Down => ChatBehaviour::Down,
            Behaviour::Refuses(address) => ChatBehaviour::Refuses { channel: address.to_string() },
        });
    }
}

fn thread(number: u32) -> Address {
    format!("chat:general/{number}").parse().unwrap()
}

mod that_can_be_asked {
    engine::door_conformance!(super::ChatCandidate::new(true));
}

mod that_cannot_be_asked {
    engine::door_conformance!(super::ChatCandidate::new(false));
}

#[tokio::test]
#[should_panic = "assertion"]
async fn the_suite_sees_that_something_is_there_twice() {
    let chat = ChatCandidate::new(true);
    chat.0.service.behave(ChatBehaviour::PostsTwice);
    conformance::replies_leave_in_order_per_address(&chat).await;
}

/// A world with a door to a chat service.
async fn with_chat() -> (World, Arc<ChatService>) {
    let (mut world, chat) = (World::new().await, ChatCandidate::new(true));
    let service = chat.0.service.clone();
    world.doors = vec![chat.door()];
    world.restart().await;
    (world, service)
}

/// A message that comes in through the door.
fn through_door(world: &World, text: &str) -> Inbound {
    let to = To::Conversation(thread(1));
    let trace = Trace { door: "chat", schemes: SCHEMES, ..trace(None) };
    Inbound { reply: Some(thread(1)), trace, ..world.inbound(to, text, None) }
}

/// Replies in this state, as soon as there is one.
async fn in_state(engine: &Engine, world: &World, state: OutgoingState) -> Vec<Outgoing> {
    loop {
        let rows = engine.views().outbox(&world.me, Some(state), 0, 10).await.unwrap();
        if !rows.is_empty() {
            return rows;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_leaves_by_the_door_that_the_message_came_in_by() {
    let (world, service) = with_chat().await;
    world.engine.way_in().send(through_door(&world, "hello")).await.unwrap();
    let sent = in_state(&world.engine, &world, OutgoingState::Sent).await;
    let posts = service.posts("chat:general/1");
    assert_eq!((sent.len(), posts.len()), (1, 1));
    assert_eq!((sent[0].service_id.as_ref(), posts[0].text.as_str()), (Some(&posts[0].id), "#1 hello"));
}

#[tokio::test(start_paused = true)]
async fn a_crash_while_the_service_says_nothing_does_not_send_twice() {
    let (mut world, service) = with_chat().await;
    service.behave(ChatBehaviour::NeverAnswers);
    world.engine.way_in().send(through_door(&world, "hello")).await.unwrap();
    while service.posts("chat:general/1").is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    service.behave(ChatBehaviour::Well);
    world.crash().await;
    let sent = in_state(&world.engine, &world, OutgoingState::Sent).await;
    assert_eq!((sent.len(), service.posts("chat:general/1").len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_scheme_can_be_used_and_bound_through_its_own_door_alone() {
    let (world, _) = with_chat().await;
    let (inside, outside) = (through_door(&world, "x"), world.inbound(conversation("a"), "x", None));
    let session = world.engine.way_in().send(inside.clone()).await.unwrap().accepted.session;
    // Somebody who comes in by another door cannot talk there, be answered there, bind it or ask about it.
    let there = Inbound { trace: trace(None), reply: None, ..inside.clone() };
    assert_eq!(world.engine.way_in().send(there).await.unwrap_err(), AccessError::AddressNotYours.into());
    let answered_there = Inbound { reply: Some(thread(1)), ..outside.clone() };
    assert_eq!(
        world.engine.way_in().send(answered_there).await.unwrap_err(),
        AccessError::AddressNotYours.into()
    );
    let rebound = world.engine.way_in().rebind(&world.me, thread(1), session, trace(None)).await;
    assert_eq!(rebound.unwrap_err(), AccessError::AddressNotYours.into());
    let made = world.engine.way_in().make(&world.me, Default::default(), Some(thread(2)), trace(None)).await;
    assert_eq!(made.unwrap_err(), AccessError::AddressNotYours.into());
    let explained = world
        .engine
        .views()
        .explain(&world.me, To::Conversation(thread(1)), RouteChoice::default(), &trace(None))
        .await;
    assert_eq!(explained.unwrap_err(), AccessError::AddressNotYours.into());
    // And the other way round.
    let elsewhere = Inbound { trace: inside.trace.clone(), ..outside };
    assert_eq!(world.engine.way_in().send(elsewhere).await.unwrap_err(), AccessError::AddressNotYours.into());
    // What is bound is still listed.
    let bound = world.engine.views().bindings(&world.me, None, 10).await.unwrap();
    assert!(bound.iter().any(|row| row.address == thread(1) && row.session == session));
}

#[tokio::test(start_paused = true)]
async fn what_is_parked_is_seen_and_settled_by_admins() {
    let (world, service) = with_chat().await;
    let bob = world.let_in("bob", Role::Member).await;
    service.behave(ChatBehaviour::Refuses { channel: "chat:general/1".to_owned() });
    world.engine.way_in().send(through_door(&world, "hello")).await.unwrap();
    let parked = in_state(&world.engine, &world, OutgoingState::Parked).await.remove(0);
    assert_eq!(parked.reason.as_deref(), Some("the channel is archived"));
    let refused = AccessError::NeedsRole(Role::Admin);
    assert_eq!(world.engine.views().outbox(&bob, None, 0, 10).await.unwrap_err(), refused.into());
    let settle = |by, hand| world.engine.way_in().settle_outgoing(by, parked.outgoing, hand, trace(None));
    assert_eq!(settle(&bob, Hand::Retry).await.unwrap_err(), refused.into());
    service.behave(ChatBehaviour::Well);
    settle(&world.me, Hand::Retry).await.unwrap();
    in_state(&world.engine, &world, OutgoingState::Sent).await;
    assert_eq!(settle(&world.me, Hand::Drop).await.unwrap_err(), ConflictError::TooLate.into());
    assert_eq!(service.posts("chat:general/1").len(), 1);
}

/// Nobody has to start again for it.
#[tokio::test(start_paused = true)]
async fn what_was_taken_and_not_heard_of_is_sent_once() {
    let (world, service) = with_chat().await;
    *world.faults.loses_take.lock().unwrap() = true;
    world.engine.way_in().send(through_door(&world, "hello")).await.unwrap();
    let sent = in_state(&world.engine, &world, OutgoingState::Sent).await;
    assert_eq!((sent.len(), service.posts("chat:general/1").len()), (1, 1));
    assert!(!*world.faults.loses_take.lock().unwrap(), "it was lost");
}

#[tokio::test(start_paused = true)]
async fn what_was_sent_is_forgotten_after_30_days() {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let (world, _) = with_chat().await;
    world.engine.way_in().send(through_door(&world, "hello")).await.unwrap();
    in_state(&world.engine, &world, OutgoingState::Sent).await;
    for (days, left) in [(29, 1), (1, 0)] {
        tokio::time::advance(days * DAY).await;
        // Somebody looks every six hours.
        tokio::time::sleep(DAY / 3).await;
        assert_eq!(world.engine.views().outbox(&world.me, None, 0, 10).await.unwrap().len(), left);
    }
}

#[tokio::test(start_paused = true)]
#[should_panic = "two doors own the scheme chat"]
async fn two_doors_cannot_own_one_scheme() {
    let mut world = World::new().await;
    world.doors = vec![ChatCandidate::new(true).door(), ChatCandidate::new(false).door()];
    world.restart().await;
}

//! Words while a turn runs: into it, instead of it, or after it; never twice, and never lost.

use crate::puppet::Puppet;
use crate::scope::in_directory;
use crate::vocabulary::{of_type, stories};
use crate::world::{World, state_and_why};
use agent::{Abilities, Did, Steered, Trouble};
use engine::{Limits, ReceiptState};
use kernel::{Delivery, Fact, MessageId, Policy, Request, SessionId, To};
use std::sync::Arc;
use std::time::Duration;

use ReceiptState::{Answered, Failed, Stopped};

impl World {
    async fn say_how(&self, session: SessionId, text: &str, delivery: Delivery) -> MessageId {
        let inbound = engine::Inbound { delivery, ..self.inbound(To::Session(session), text, None) };
        self.engine.way_in().send(inbound).await.unwrap().accepted.message
    }

    fn handed(&self, message: MessageId) -> usize {
        let noted = self.house.noted();
        noted.iter().filter(|noted| noted.message == message && noted.did == Did::Handed).count()
    }

    async fn missed(&self, session: SessionId) -> usize {
        self.rules(session).await.iter().filter(|fact| matches!(fact, Fact::Missed { .. })).count()
    }
}

#[tokio::test(start_paused = true)]
async fn words_are_said_into_the_turn_in_order_and_each_once() {
    let world = World::new().await;
    let first = world.say(To::New, "!sleep 5000").await.unwrap().accepted;
    world.house_has_handed(first.message).await;
    let mut added = Vec::new();
    for n in 0..5 {
        added.push(world.say_how(first.session, &format!("also{n}"), Delivery::Steer).await);
    }
    let view = world.settled(first.message).await;
    let lines: Vec<String> = view.answer.unwrap().lines().map(|line| line.trim().to_owned()).collect();
    let said: Vec<&str> = lines.iter().map(String::as_str).filter(|line| line.starts_with('+')).collect();
    assert_eq!(said, ["+also0", "+also1", "+also2", "+also3", "+also4"]);
    for message in added {
        let view = world.settled(message).await;
        assert_eq!(
            (view.row.state, view.row.turn),
            (Answered, Some(kernel::Turn(1))),
            "it is part of the turn"
        );
        assert_eq!(world.handed(message), 0);
    }
    let late = world.say_how(first.session, "later", Delivery::Steer).await;
    let answer = world.settled(late).await.answer.unwrap();
    assert_eq!(answer.trim(), "#2 later", "with no turn under way it is a message like any other");
}

#[tokio::test(start_paused = true)]
async fn an_interruption_stops_the_turn_and_comes_first() {
    let world = World::new().await;
    let first = world.say(To::New, "!hang").await.unwrap().accepted;
    world.house_has_handed(first.message).await;
    let waiting = world.say_how(first.session, "waiting", Delivery::Queue).await;
    let urgent = world.say_how(first.session, "urgent", Delivery::Interrupt).await;
    assert_eq!(world.settled(first.message).await.row.state, Stopped);
    let (urgent, waiting) = (world.settled(urgent).await.row, world.settled(waiting).await.row);
    assert!(urgent.turn < waiting.turn, "{urgent:?} {waiting:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_meant_for_the_turn_does_not_wait_and_what_only_queues_waits_a_little() {
    let world = World::new().await;
    let first = world.say(To::New, "!sleep 5000").await.unwrap().accepted;
    world.house_has_handed(first.message).await;
    let took = async |delivery| {
        let began = tokio::time::Instant::now();
        let said = world.say_how(first.session, "more", delivery).await;
        let is_queued = |fact: &Fact| matches!(fact, Fact::Queued { message, .. } if *message == said);
        world.until_rule(first.session, is_queued).await;
        began.elapsed()
    };
    let (steered, queued) = (took(Delivery::Steer).await, took(Delivery::Queue).await);
    assert!(steered < Duration::from_millis(50), "{steered:?}");
    assert!(queued < Duration::from_secs(1), "{queued:?}");
    assert!(steered < queued, "{steered:?} {queued:?}");
}

async fn into_puppet(steers: Option<Result<Steered, Trouble>>) -> (World, Puppet, SessionId, MessageId) {
    let abilities = Abilities { steer: true, ..Abilities::default() };
    let puppet = Puppet { abilities, steers, ..Puppet::default() };
    let world = World::among(vec![Arc::new(puppet.clone())], Limits::default(), Policy::default()).await;
    let mut inbound = in_directory(&world, "begin", "/elsewhere");
    inbound.if_new.agent = Some("puppet".to_owned());
    let first = world.engine.way_in().send(inbound).await.unwrap().accepted;
    while puppet.notes.handed.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let more = world.say_how(first.session, "more", Delivery::Steer).await;
    while puppet.notes.steered.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    world.until_rule(first.session, |fact| matches!(fact, Fact::Steered { .. })).await;
    (world, puppet, first.session, more)
}

#[tokio::test(start_paused = true)]
async fn words_that_the_agent_did_not_take_get_a_turn_of_their_own() {
    for steers in [Ok(Steered::TooLate), Err(Trouble::refused("too long"))] {
        let (world, puppet, session, more) = into_puppet(Some(steers)).await;
        world.until_rule(session, |fact| matches!(fact, Fact::Missed { .. })).await;
        let row = world.engine.views().receipt(&world.me, more).await.unwrap().row;
        assert_eq!(row.state, ReceiptState::Waiting);
        let first = world.engine.views().queue(&world.me, session).await.unwrap()[0].row.message;
        world.ask(Request::Stop { message: first }).await.unwrap();
        while puppet.notes.handed.lock().unwrap().len() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(puppet.notes.handed.lock().unwrap()[1].0, "more");
        assert_eq!(puppet.notes.steered.lock().unwrap().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn words_of_which_nobody_knows_whether_they_were_taken_are_not_said_again() {
    let (world, puppet, session, more) = into_puppet(Some(Err(Trouble::transient("no word")))).await;
    let first = world.engine.views().queue(&world.me, session).await.unwrap()[0].row.message;
    world.ask(Request::Stop { message: first }).await.unwrap();
    assert_eq!(world.settled(more).await.row.state, Stopped);
    assert_eq!((world.missed(session).await, puppet.notes.handed.lock().unwrap().len()), (0, 1));
    let notices = of_type(&stories(&world, session).await, "notice");
    assert!(notices.iter().any(|story| story["text"].as_str().unwrap().contains("may or may not")));

    let (mut world, puppet, session, more) = into_puppet(None).await;
    world.crash().await;
    assert_eq!(state_and_why(&world.settled(more).await), (Failed, Some("interrupted")));
    assert_eq!((world.missed(session).await, puppet.notes.handed.lock().unwrap().len()), (0, 1));
}

//! The cost of a turn: commits are what it waits for, and each is counted here.

use crate::puppet::Puppet;
use crate::scope::in_directory;
use crate::world::World;
use agent::{AgentEvent, Usage};
use engine::{Limits, ReceiptState, StoredEntry};
use kernel::{Fact, MessageId, Policy, SessionId, To};
use std::sync::Arc;
use std::time::Duration;
use store::Store;

fn finished() -> AgentEvent {
    AgentEvent::Finished { native: None, reason: "completed".to_owned() }
}

fn talkative() -> Vec<AgentEvent> {
    vec![
        AgentEvent::Notice { text: "a warning".to_owned() },
        AgentEvent::Text { text: "the answer".to_owned() },
        AgentEvent::Usage(Usage { input_tokens: 3, ..Usage::default() }),
    ]
}

async fn world_with(puppet: &Puppet) -> World {
    World::among(vec![Arc::new(puppet.clone())], Limits::default(), Policy::default()).await
}

async fn said_to_puppet(world: &World, text: &str) -> (SessionId, MessageId) {
    let mut inbound = in_directory(world, text, "/srv/shop");
    inbound.if_new.agent = Some("puppet".to_owned());
    let made = world.engine.way_in().send(inbound).await.unwrap().accepted;
    (made.session, made.message)
}

/// The entries of the session's log: kinds of stories, and whether a fact of the rules stands between.
fn kinds(world: &World, session: SessionId) -> Vec<String> {
    let facts = world.store.snapshot().facts.remove(&session).unwrap_or_default();
    let kind = |entry: StoredEntry| match entry {
        StoredEntry::Story { kind, .. } => kind,
        StoredEntry::Rule(Fact::Handed { .. }) => "HANDED".to_owned(),
        StoredEntry::Rule(Fact::TurnEnded { .. }) => "ENDED".to_owned(),
        StoredEntry::Rule(_) => "rule".to_owned(),
    };
    facts.into_iter().map(|fact| kind(fact.entry)).filter(|kind| kind != "rule").collect()
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_four_commits_whatever_the_agent_says_about_it() {
    let puppet = Puppet { says: [talkative(), vec![finished()]].concat(), ..Puppet::default() };
    let world = world_with(&puppet).await;
    let (session, first) = said_to_puppet(&world, "one").await;
    assert_eq!(world.settled(first).await.row.state, ReceiptState::Answered);
    let before = world.store.gauges().commits;
    let second = world.talk(To::Session(session), "two").await;
    assert_eq!(second.row.state, ReceiptState::Answered);
    // The message, the attempt's start with its credential, the handing over, and the end with all that was said.
    assert_eq!(world.store.gauges().commits - before, 4);
    let of_second = kinds(&world, session);
    let of_second = of_second.rsplit(|kind| kind == "HANDED").next().unwrap();
    assert_eq!(
        of_second,
        ["notice", "text", "said", "usage", "finished", "changes", "ENDED"],
        "in the order of their saying"
    );
}

#[tokio::test(start_paused = true)]
async fn what_nobody_waits_for_is_written_in_its_time_while_the_turn_goes_on() {
    let puppet = Puppet { says: talkative(), ..Puppet::default() };
    let world = world_with(&puppet).await;
    let (session, message) = said_to_puppet(&world, "one").await;
    let told = async {
        while !kinds(&world, session).contains(&"usage".to_owned()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), told).await.expect("it is written");
    let of_turn = kinds(&world, session);
    let of_turn = of_turn.rsplit(|kind| kind == "HANDED").next().unwrap();
    assert_eq!(of_turn, ["notice", "text", "said", "usage"]);
    let row = world.engine.views().receipt(&world.me, message).await.unwrap().row;
    assert_eq!(row.state, ReceiptState::Running);
}

#[tokio::test(start_paused = true)]
async fn what_was_put_off_stands_before_what_is_written_at_once() {
    let call = AgentEvent::ToolCall { call: "1".to_owned(), tool: "sh".to_owned(), input: "{}".to_owned() };
    let puppet = Puppet { says: [talkative(), vec![call, finished()]].concat(), ..Puppet::default() };
    let world = world_with(&puppet).await;
    let (session, message) = said_to_puppet(&world, "one").await;
    world.settled(message).await;
    let of_turn = kinds(&world, session);
    let of_turn = of_turn.rsplit(|kind| kind == "HANDED").next().unwrap();
    assert_eq!(of_turn, ["notice", "text", "said", "usage", "tool_call", "finished", "changes", "ENDED"]);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_announced_once_and_before_it_starts() {
    let puppet = Puppet { says: vec![finished()], ..Puppet::default() };
    let world = world_with(&puppet).await;
    let (session, first) = said_to_puppet(&world, "one").await;
    world.settled(first).await;
    world.talk(To::Session(session), "two").await;
    assert_eq!(*puppet.notes.expected.lock().unwrap(), [(session, 0), (session, 1)]);
    assert_eq!(puppet.notes.launches.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_whose_message_waited_for_another_is_announced_when_it_begins() {
    let puppet = Puppet { says: vec![finished()], ..Puppet::default() };
    let world = world_with(&puppet).await;
    let (session, first) = said_to_puppet(&world, "one").await;
    let second = world.say(To::Session(session), "two").await.unwrap().accepted.message;
    world.settled(first).await;
    world.settled(second).await;
    assert_eq!(*puppet.notes.expected.lock().unwrap(), [(session, 0), (session, 1)]);
}

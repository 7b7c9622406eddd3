//! Forks that go elsewhere as files: what was said before a fork was made goes along, as far as whoever takes it may have it.

use crate::rounds::{code, settled};
use crate::scope::{arrived, say, shop};
use crate::world::{Somebody, World};
use api::client::Client;
use api::*;
use kernel::Role;

async fn said(client: &Client, session: &str, text: &str) -> Receipt {
    let said = say(client, session, text).await;
    let receipt = settled(client, &said.id).await;
    assert_eq!(receipt.state, ReceiptState::Answered, "{receipt:?}");
    receipt
}

/// A fork after this turn, once it is where it acts.
async fn fork(client: &Client, session: &str, at: u32) -> String {
    let made = client.fork(session, &NewFork { at: Some(at), title: None }).await.unwrap();
    arrived(client, &made.id, 1).await;
    made.id
}

/// The header and the turns of a file.
async fn exported(client: &Client, session: &str) -> (ExportHeader, Vec<ExportTurn>) {
    let file = client.export(session).await.unwrap();
    let mut lines = file.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let ExportLine::Header(header) = serde_json::from_slice(lines.next().unwrap()).unwrap() else {
        panic!("no header")
    };
    let turns = lines.filter_map(|line| match serde_json::from_slice(line).unwrap() {
        ExportLine::Turn(turn) => Some(*turn),
        ExportLine::Header(_) | ExportLine::End(_) => None,
    });
    (*header, turns.collect())
}

/// The number of each turn, and what was said in it.
fn words(turns: &[ExportTurn]) -> Vec<(u32, &str)> {
    turns.iter().map(|turn| (turn.turn, text_of(&turn.said[0]))).collect()
}

fn text_of(said: &ExportWords) -> &str {
    let Part::Text { text } = &said.parts[0] else { panic!("words: {:?}", said.parts) };
    text
}

#[tokio::test]
async fn a_fork_of_a_fork_takes_the_whole_conversation_along_and_nothing_of_what_came_after() {
    let (there, here) = (World::new().await, World::new().await);
    let client = there.client();
    let session = shop(&client, "/srv/shop").await;
    said(&client, &session, "second").await;
    said(&client, &session, "too late").await;
    let first = fork(&client, &session, 2).await;
    // Before anything is said in it, it is what it is a fork of.
    assert_eq!(words(&exported(&client, &first).await.1), [(1, "hello"), (2, "second")]);
    said(&client, &first, "third").await;
    said(&client, &first, "too late as well").await;
    let second = fork(&client, &first, 1).await;
    said(&client, &second, "fourth").await;
    let (header, turns) = exported(&client, &second).await;
    assert_eq!(words(&turns), [(1, "hello"), (2, "second"), (3, "third"), (4, "fourth")]);
    assert_eq!((header.session.as_str(), header.left_out), (second.as_str(), LeftOut::default()));

    // Elsewhere the agent is told all of it with the next message, and a file of that is the same again.
    let file = client.export(&second).await.unwrap();
    let brought = here.client().import(file, &ImportQuery::default()).await.unwrap().id;
    let (_, again) = exported(&here.client(), &brought).await;
    assert_eq!(again, turns);
    let answer = said(&here.client(), &brought, "what was that?").await.answer.unwrap();
    let told = ["> hello", "> second", "> third", "> fourth"].map(|words| answer.find(words));
    assert!(told.iter().all(Option::is_some) && told.is_sorted(), "{answer}");
    assert!(!answer.contains("too late"), "{answer}");
}

/// Bob's fork of a session of ann's after its second turn, in which he has said something.
async fn bobs_fork(world: &World, session: &str) -> (Somebody, String) {
    let (ann, bob) = (world.client(), world.let_in("bob", Role::Member).await);
    let to = Grantee::user(bob.by.person.to_string());
    ann.add_root(&Root { directory: "/srv".into(), to: to.clone() }).await.unwrap();
    let on = format!("sessions/{session}");
    ann.give(&on, &NewGrant { to, grant: Grant::Prompt }).await.unwrap();
    let bobs = world.client_of(&bob.token);
    let forked = fork(&bobs, session, 2).await;
    said(&bobs, &forked, "bob's").await;
    (bob, forked)
}

#[tokio::test]
async fn whoever_may_not_read_the_origin_gets_what_the_agent_of_the_fork_would_tell_them_and_no_more() {
    let world = World::new().await;
    let ann = world.client();
    let session = shop(&ann, "/srv/shop").await;
    said(&ann, &session, "second").await;
    let (bob, forked) = bobs_fork(&world, &session).await;
    let bobs = world.client_of(&bob.token);
    let is_text = |told: &ExportStory| matches!(told.story, Story::Text { .. });
    let all = [(1, "hello"), (2, "second"), (3, "bob's")];

    // Who may read both has all that there was to see.
    let (_, whole) = exported(&bobs, &forked).await;
    assert_eq!(words(&whole), all);
    assert!(!whole[0].story.iter().all(is_text), "{:?}", whole[0].story);

    // When the origin is his no more, the words are: they are told again to the agent that he talks to.
    let on = format!("sessions/{session}");
    ann.take_back(&on, Grantee::user(bob.by.person.to_string())).await.unwrap();
    assert_eq!(code(bobs.export(&session).await.unwrap_err()), Code::NotFound);
    let (header, told) = exported(&bobs, &forked).await;
    assert_eq!((words(&told), header.left_out.turns), (all.to_vec(), 0));
    for (turn, before) in told.iter().zip(&whole).take(2) {
        assert!(!turn.story.is_empty() && turn.story.iter().all(is_text), "{:?}", turn.story);
        assert!(turn.story.iter().all(|told| before.story.contains(told)));
    }
    assert_eq!(told[2], whole[2], "what is his own is whole");

    // Who may only look at the fork sees nothing there of what came before, and gets nothing of it.
    let carol = world.let_in("carol", Role::Member).await;
    let carols = world.client_of(&carol.token);
    assert_eq!(code(carols.export(&forked).await.unwrap_err()), Code::NotFound);
    let to = Grantee::user(carol.by.person.to_string());
    bobs.give(&format!("sessions/{forked}"), &NewGrant { to, grant: Grant::View }).await.unwrap();
    let (header, told) = exported(&carols, &forked).await;
    assert_eq!((words(&told), header.left_out.turns), (vec![(3, "bob's")], 2));
}

//! A conversation's next session: one that takes it over, and one that comes after another.

use crate::vocabulary::{finished, said, speaking, turn, world_of};
use crate::world::{World, address, conversation, trace};
use engine::{Expected, Granted, IfNew, WayInError};
use kernel::{Previous, Request, To};

#[tokio::test(start_paused = true)]
async fn a_new_session_takes_over_its_conversation_and_can_give_it_back() {
    let world = World::new().await;
    let first = world.talk(conversation("a"), "one").await.row.session;
    let taken = world.say(To::NewIn(address("a")), "two").await.unwrap().accepted;
    assert!(taken.created && taken.previous == Some(Previous { session: first, ended: None }));
    assert_eq!(world.talk(conversation("a"), "three").await.row.session, taken.session);
    assert_eq!(world.talk(To::Session(first), "four").await.row.session, first, "it goes on");
    world.engine.way_in().rebind(&world.me, address("a"), first, trace(None)).await.unwrap();
    assert_eq!(world.talk(conversation("a"), "five").await.row.session, first);
}

#[tokio::test(start_paused = true)]
async fn after_the_end_of_a_session_its_conversation_goes_on_with_the_same_agent() {
    let world = world_of(&speaking(vec![finished("done")])).await;
    let first = turn(&world, conversation("a")).await;
    assert_eq!(world.ask(Request::End { session: first }).await, Ok(Granted::Done));
    let scope_of = async |session| world.engine.views().session(&world.me, session).await.unwrap().scope;
    let before = scope_of(first).await;
    assert_eq!((before.agent.as_str(), before.model.as_deref()), ("puppet", Some("m-1")));
    let next = world.say(conversation("a"), "again").await.unwrap().accepted;
    let after = scope_of(next.session).await;
    assert_eq!((&after.agent, &after.model, &after.mode), (&before.agent, &before.model, &before.mode));
    // Whoever says otherwise is heard.
    assert_eq!(world.ask(Request::End { session: next.session }).await, Ok(Granted::Done));
    let mut other = world.inbound(conversation("a"), "and again", None);
    other.if_new = IfNew { model: Some("m-2".to_owned()), ..IfNew::default() };
    let other = world.engine.way_in().send(other).await.unwrap().accepted.session;
    let after = scope_of(other).await;
    assert_eq!((after.agent.as_str(), after.model.as_deref()), ("puppet", Some("m-2")));
    // What is taken over was asked for anew, and has what was asked for.
    let taken = world.say(To::NewIn(address("a")), "new").await.unwrap().accepted.session;
    assert_eq!(scope_of(taken).await.agent, "scripted");
}

#[tokio::test(start_paused = true)]
async fn words_for_another_agent_or_model_are_not_said_to_this_one() {
    let world = world_of(&speaking(vec![finished("done")])).await;
    let session = turn(&world, conversation("a")).await;
    let expecting = |agent: Option<&str>, model: Option<&str>| {
        let expected = Expected { agent: agent.map(str::to_owned), model: model.map(str::to_owned) };
        engine::Inbound { expected: Some(expected), ..said(&world, conversation("a")) }
    };
    for (agent, model) in [(Some("scripted"), None), (None, Some("m-2")), (Some("puppet"), Some("m-2"))] {
        let refused = world.engine.way_in().send(expecting(agent, model)).await.unwrap_err();
        let WayInError::OtherAgent { session: which, agent, model } = &refused else { panic!("{refused:?}") };
        assert_eq!((*which, agent.as_str(), model.as_deref()), (session, "puppet", Some("m-1")));
        assert_eq!(refused.code(), "other_agent");
    }
    let accepted = world.engine.way_in().send(expecting(Some("puppet"), Some("m-1"))).await.unwrap().accepted;
    assert_eq!(accepted.session, session);
}

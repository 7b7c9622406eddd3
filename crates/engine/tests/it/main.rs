//! Stories of the engine: what a person says, and what becomes of it. Paused time, no sleep, no process.

extern crate homing_engine as engine;

mod accounts;
mod approvals;
mod attached;
mod audit;
mod chores;
mod commits;
mod credentials;
mod crowd;
mod disk;
mod doors;
mod errands;
mod grove;
mod imports;
mod memory;
mod people;
mod puppet;
mod scope;
mod steer;
mod taken;
mod tireless;
mod vocabulary;
mod words;
mod worktrees;
mod world;

use engine::{
    AccessError, ConflictError, Granted, IfNew, InvalidError, Limits, ReceiptState, SessionUpdate,
    StoredEntry, ViewError, WayInError,
};
use kernel::{
    Answer, EndWhy, Fact, Failure, Grant, Grantee, Number, Outcome, Policy, Previous, Request, Role,
    SessionId, To,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tireless::Tireless;
use world::{World, address, conversation, state_and_why, trace};

use ReceiptState::{Answered, Failed, Held, Running, Stopped, Waiting, Withdrawn};

#[tokio::test(start_paused = true)]
async fn a_message_makes_the_whole_round() {
    let world = World::new().await;
    let receipt = world.say(To::New, "hello").await.unwrap();
    assert!(receipt.accepted.created);
    let view = world.settled(receipt.accepted.message).await;
    assert_eq!(state_and_why(&view), (Answered, None));
    assert_eq!(view.answer.as_deref().map(str::trim), Some("#1 hello"));
    let names: Vec<String> = world.rules(receipt.accepted.session).await.iter().map(name).collect();
    let expected = [
        "Opened",
        "Queued",
        "TurnStarted",
        "AttemptStarted",
        "Learned",
        "Learned",
        "Confirmed",
        "Handed",
        "TurnEnded",
    ]
    .map(String::from);
    assert_eq!(names, expected);
    assert_eq!(world.engine.kept(), 0, "an idle session is not kept");
}

#[tokio::test(start_paused = true)]
async fn twenty_first_messages_at_once_share_one_session_in_order_of_acceptance() {
    let world = World::new().await;
    let says = (0..20).map(|n| {
        let inbound = world.inbound(conversation("new"), &format!("word{n}"), None);
        let engine = world.engine.clone();
        tokio::spawn(async move { engine.way_in().send(inbound).await.unwrap().accepted })
    });
    let mut accepted = Vec::new();
    for say in says.collect::<Vec<_>>() {
        accepted.push(say.await.unwrap());
    }
    let sessions: BTreeSet<_> = accepted.iter().map(|one| one.session).collect();
    assert_eq!(sessions.len(), 1);
    assert_eq!(accepted.iter().filter(|one| one.created).count(), 1);
    let mut turns = Vec::new();
    for (n, one) in accepted.iter().enumerate() {
        let view = world.settled(one.message).await;
        let turn = view.row.turn.unwrap().0;
        assert_eq!(view.answer.as_deref().map(str::trim), Some(format!("#{turn} word{n}").as_str()));
        turns.push(turn);
    }
    turns.sort_unstable();
    assert_eq!(turns, (1..=20).collect::<Vec<_>>());
    let queued = order(&world.rules(accepted[0].session).await, |fact| match fact {
        Fact::Queued { message, .. } => Some(*message),
        _ => None,
    });
    let started = order(&world.rules(accepted[0].session).await, |fact| match fact {
        Fact::TurnStarted { message, .. } => Some(*message),
        _ => None,
    });
    assert_eq!(queued, started);
}

#[tokio::test(start_paused = true)]
async fn explicit_beats_implicit_and_nothing_takes_the_place_of_what_was_named() {
    let world = World::new().await;
    let unknown = kernel::SessionId::from_bits(999);
    let refused = world.say(To::Session(unknown), "hello").await.unwrap_err();
    assert_eq!(refused, AccessError::NotFound { what: "session" }.into());

    let first = world.talk(conversation("a"), "one").await.row.session;
    assert_ne!(world.talk(To::New, "two").await.row.session, first);
    assert_eq!(world.ask(Request::End { session: first }).await, Ok(Granted::Done));
    let refused = world.say(To::Session(first), "three").await.unwrap_err();
    assert_eq!(refused, ConflictError::SessionEnded { session: first, why: EndWhy::Asked }.into());

    let anew = world.say(conversation("a"), "four").await.unwrap().accepted;
    assert_ne!(anew.session, first);
    assert_eq!(anew.previous, previous(first, EndWhy::Asked));
    assert_eq!(world.settled(anew.message).await.answer.as_deref().map(str::trim), Some("#1 four"));
}

#[tokio::test(start_paused = true)]
async fn what_is_named_for_a_new_session_is_ignored_for_an_existing_one_and_the_receipt_says_so() {
    let world = World::new().await;
    world.talk(conversation("a"), "one").await;
    let mut inbound = world.inbound(conversation("a"), "two", None);
    inbound.if_new = IfNew { directory: Some("/elsewhere".to_owned()), ..IfNew::default() };
    assert!(world.engine.way_in().send(inbound.clone()).await.unwrap().accepted.if_new_ignored);
    inbound.to = To::New;
    inbound.if_new.directory = Some("/gone/away".to_owned());
    assert!(matches!(world.engine.way_in().send(inbound.clone()).await, Err(WayInError::BadDirectory(_))));
    inbound.if_new = IfNew { agent: Some("nobody".to_owned()), ..IfNew::default() };
    assert!(matches!(
        world.engine.way_in().send(inbound).await,
        Err(WayInError::Conflict(ConflictError::UnknownAgent { .. }))
    ));
}

#[tokio::test(start_paused = true)]
async fn the_same_key_gets_the_same_receipt_before_and_after_a_crash_and_another_body_is_a_conflict() {
    let mut world = World::new().await;
    let first = world.engine.way_in().send(world.inbound(To::New, "hello", Some("k"))).await.unwrap();
    let again = world.engine.way_in().send(world.inbound(To::New, "hello", Some("k"))).await.unwrap();
    assert_eq!((again.accepted, again.repeated), (first.accepted.clone(), true));
    world.settled(first.accepted.message).await;
    world.crash().await;
    let again = world.engine.way_in().send(world.inbound(To::New, "hello", Some("k"))).await.unwrap();
    assert_eq!((again.accepted, again.repeated), (first.accepted.clone(), true));
    let other = world.engine.way_in().send(world.inbound(To::New, "other", Some("k"))).await;
    assert_eq!(other.unwrap_err(), ConflictError::KeyReused.into());
    world.ask(Request::End { session: first.accepted.session }).await.unwrap();
    let named = To::Session(first.accepted.session);
    assert!(matches!(
        world.say(named, "late").await,
        Err(WayInError::Conflict(ConflictError::SessionEnded { .. }))
    ));
}

#[tokio::test(start_paused = true)]
async fn a_repeated_key_is_looked_up_even_when_its_session_has_ended() {
    let world = World::new().await;
    let session = world.talk(To::New, "hello").await.row.session;
    let first =
        world.engine.way_in().send(world.inbound(To::Session(session), "again", Some("k"))).await.unwrap();
    world.settled(first.accepted.message).await;
    world.ask(Request::End { session }).await.unwrap();
    let again =
        world.engine.way_in().send(world.inbound(To::Session(session), "again", Some("k"))).await.unwrap();
    assert_eq!(again.accepted, first.accepted);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_key_is_looked_up_even_when_such_a_session_cannot_be_made_any_more() {
    let mut world = World::among(vec![Arc::new(Tireless)], Limits::default(), Policy::default()).await;
    let if_new = IfNew { agent: Some("tireless".to_owned()), ..IfNew::default() };
    let mut said = world.inbound(To::New, "hello", Some("k"));
    said.if_new = if_new.clone();
    let first = world.engine.way_in().send(said.clone()).await.unwrap();
    world.ask(Request::Stop { message: first.accepted.message }).await.unwrap();
    let made = world.engine.way_in().make(&world.me, if_new.clone(), None, trace(Some("k"))).await.unwrap();

    world.others.clear();
    world.restart().await;
    let again = world.engine.way_in().send(said.clone()).await.unwrap();
    assert_eq!((again.accepted, again.repeated), (first.accepted, true));
    let again = world.engine.way_in().make(&world.me, if_new.clone(), None, trace(Some("k"))).await.unwrap();
    assert_eq!((again.session, again.repeated), (made.session, true));
    said.trace = trace(Some("another"));
    assert!(matches!(
        world.engine.way_in().send(said).await,
        Err(WayInError::Conflict(ConflictError::UnknownAgent { .. }))
    ));
    let another = world.engine.way_in().make(&world.me, if_new, None, trace(Some("another"))).await;
    assert!(matches!(another, Err(WayInError::Conflict(ConflictError::UnknownAgent { .. }))));
}

#[tokio::test(start_paused = true)]
async fn stopping_twice_is_fine_and_never_touches_the_next_turn() {
    let world = World::new().await;
    let first = world.say(To::New, "!hang").await.unwrap().accepted;
    let second = world.say(To::Session(first.session), "next").await.unwrap().accepted;
    world.house_has_handed(first.message).await;
    assert_eq!(world.ask(Request::Stop { message: first.message }).await, Ok(Granted::Done));
    assert_eq!(world.ask(Request::Stop { message: first.message }).await, Ok(Granted::Done));
    assert_eq!(world.settled(first.message).await.row.state, Stopped);
    assert_eq!(world.ask(Request::Stop { message: first.message }).await, Ok(Granted::Done));
    assert_eq!(world.settled(second.message).await.row.state, Answered);
    assert!(world.house.alive().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_waiting_message_can_be_edited_held_released_moved_and_taken_back() {
    let world = World::new().await;
    let first = world.say(To::New, "!sleep 60000").await.unwrap().accepted;
    let to = || To::Session(first.session);
    let a = world.say(to(), "a").await.unwrap().accepted.message;
    let b = world.say(to(), "b").await.unwrap().accepted.message;
    let c = world.say(to(), "c").await.unwrap().accepted.message;
    let parts = vec![engine::MessagePart::Text { text: "b2".to_owned() }];
    let edit = |revision| world.engine.way_in().edit(&world.me, b, revision, &parts, trace(None));
    assert_eq!(edit(0).await, Ok(Granted::Done));
    assert_eq!(edit(0).await, Err(ConflictError::Changed.into()));
    assert_eq!(world.ask(Request::Withdraw { message: c }).await, Ok(Granted::Done));
    assert_eq!(world.ask(Request::Withdraw { message: c }).await, Err(ConflictError::TooLate.into()));
    let order = Request::Reorder { session: first.session, order: vec![b, a] };
    assert_eq!(world.ask(order).await, Ok(Granted::Done));
    assert_eq!(world.ask(Request::Hold { message: a }).await, Ok(Granted::Done));
    let queue = world.engine.views().queue(&world.me, first.session).await.unwrap();
    let shown: Vec<_> = queue.iter().map(|one| (one.text.as_str(), one.row.state)).collect();
    assert_eq!(shown, [("!sleep 60000", Running), ("b2", Waiting), ("a", Held)]);
    assert_eq!(world.settled(b).await.answer.as_deref().map(str::trim), Some("#2 b2"));
    assert_eq!(world.ask(Request::Release { message: a, there: false }).await, Ok(Granted::Done));
    assert_eq!(world.settled(a).await.answer.as_deref().map(str::trim), Some("#3 a"));
    assert_eq!(world.settled(c).await.row.state, Withdrawn);
    assert_eq!(edit(1).await, Err(ConflictError::TooLate.into()));
}

#[tokio::test(start_paused = true)]
async fn gone_ends_the_session_refuses_what_waits_and_unbinds() {
    let world = World::new().await;
    let first = world.talk(conversation("a"), "one").await.row.session;
    let gone = world.say(conversation("a"), "!sleep 1000\n!gone").await.unwrap().accepted;
    let waits = world.say(conversation("a"), "two").await.unwrap().accepted;
    assert_eq!(state_and_why(&world.settled(gone.message).await), (Failed, Some("gone")));
    assert_eq!(
        state_and_why(&world.settled(waits.message).await),
        (ReceiptState::Refused, Some("session_ended"))
    );
    let anew = world.say(conversation("a"), "three").await.unwrap().accepted;
    assert_eq!(anew.previous, previous(first, EndWhy::Gone));
    assert!(world.store.snapshot().claims.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_the_agent_had_not_kept_when_it_was_killed_is_begun_anew_once() {
    let mut world = World::new().await;
    let first = world.say(conversation("a"), "!say 400 10").await.unwrap().accepted;
    world.until_said(first.session, "w").await;
    world.crash().await;
    assert_eq!(state_and_why(&world.settled(first.message).await), (Failed, Some("interrupted")));
    world.lose_conversation(first.session).await;
    let view = world.talk(conversation("a"), "two").await;
    assert_eq!((view.row.session, view.row.state), (first.session, Answered));
    let gone = |fact: &&Fact| matches!(fact, Fact::AttemptFailed { failure: Failure::Gone, .. });
    assert_eq!(world.rules(first.session).await.iter().filter(gone).count(), 1);
    let stories = vocabulary::stories(&world, first.session).await;
    let notices = vocabulary::of_type(&stories, "notice");
    assert!(notices.iter().any(|notice| notice["text"].as_str().unwrap().contains("it starts anew")));
    // What was answered once is not replaced by something that knows nothing of it.
    world.lose_conversation(first.session).await;
    let view = world.talk(conversation("a"), "three").await;
    assert_eq!((view.row.session, state_and_why(&view)), (first.session, (Failed, Some("gone"))));
    assert!(matches!(world.rules(first.session).await.last(), Some(Fact::Ended { why: EndWhy::Gone })));
}

#[tokio::test(start_paused = true)]
async fn transient_busy_and_refused_change_nothing_but_the_turn() {
    let world = World::new().await;
    let session = world.talk(conversation("a"), "one").await.row.session;
    for (words, why) in [
        ("!fail after", "transient"),
        ("!fail before", "transient"),
        ("!busy", "busy"),
        ("!refuse", "refused"),
        ("!crash", "transient"),
    ] {
        let view = world.talk(conversation("a"), words).await;
        assert_eq!((view.row.session, state_and_why(&view)), (session, (Failed, Some(why))), "{words}");
        let acted = world
            .house
            .noted()
            .iter()
            .filter(|noted| noted.message == view.row.message && noted.did == agent::Did::Handed)
            .count();
        assert_eq!(acted, 1, "{words} is never run again by itself");
    }
    assert_eq!(world.talk(conversation("a"), "two").await.row.state, Answered);
}

#[tokio::test(start_paused = true)]
async fn a_failure_before_handed_is_tried_again_a_bounded_number_of_times() {
    let world = World::new().await;
    let session = world.talk(To::New, "!fail start 2").await.row.session;
    let view = world.talk(To::Session(session), "hello").await;
    assert_eq!(view.row.state, Answered);
    let failed = |fact: &&Fact| matches!(fact, Fact::AttemptFailed { .. });
    assert_eq!(world.rules(session).await.iter().filter(failed).count(), 2);
    let session = world.talk(To::New, "!fail start 9").await.row.session;
    assert_eq!(state_and_why(&world.talk(To::Session(session), "x").await), (Failed, Some("transient")));
    assert_eq!(world.rules(session).await.iter().filter(failed).count(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_waits_behind_a_failure_is_held_and_expires() {
    let world = World::new().await;
    let first = world.say(To::New, "!sleep 1000\n!refuse").await.unwrap().accepted;
    let waits = world.say(To::Session(first.session), "two").await.unwrap().accepted;
    world.settled(first.message).await;
    let view = world.engine.views().receipt(&world.me, waits.message).await.unwrap();
    assert_eq!(state_and_why(&view), (Held, Some("after_failure")));
    let after = world.talk(To::Session(first.session), "three").await;
    assert_eq!(after.row.state, Answered, "a new word is not held back by an old one");
    tokio::time::advance(Duration::from_millis(world.policy.hold_ms_max)).await;
    assert_eq!(state_and_why(&world.settled(waits.message).await), (ReceiptState::Refused, Some("expired")));
}

#[tokio::test(start_paused = true)]
async fn a_hang_ends_at_its_limit() {
    let world = World::with(Limits::default(), Policy { turn_ms_max: 5_000, ..Policy::default() }).await;
    let view = world.talk(To::New, "!hang").await;
    assert_eq!(state_and_why(&view), (Failed, Some("time_limit")));
    assert!(world.house.alive().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_handed_interrupts_the_turn_keeps_its_words_and_goes_on() {
    let mut world = World::new().await;
    let first = world.say(To::New, "!say 400 10").await.unwrap().accepted;
    let second = world.say(To::Session(first.session), "next").await.unwrap().accepted;
    world.until_said(first.session, "w").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.crash().await;
    let view = world.settled(first.message).await;
    assert_eq!(state_and_why(&view), (Failed, Some("interrupted")));
    assert!(!view.answer.unwrap().is_empty(), "the partial output is kept");
    assert_eq!(world.settled(second.message).await.row.state, Answered);
    let handed = world
        .house
        .noted()
        .iter()
        .filter(|noted| noted.message == first.message && noted.did == agent::Did::Handed)
        .count();
    assert_eq!(handed, 1);
}

#[tokio::test(start_paused = true)]
async fn going_down_hands_everything_over() {
    let mut world = World::new().await;
    let first = world.say(To::New, "!sleep 600000").await.unwrap().accepted;
    let second = world.say(To::Session(first.session), "next").await.unwrap().accepted;
    world.house_has_handed(first.message).await;
    world.restart().await;
    assert_eq!(state_and_why(&world.settled(first.message).await), (Failed, Some("interrupted")));
    assert_eq!(world.settled(second.message).await.row.state, Answered);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_hears_each_fact_once_and_live_words_at_their_place() {
    let world = World::new().await;
    let session = world.talk(To::New, "hello").await.row.session;
    let from = world.engine.views().session(&world.me, session).await.unwrap().at;
    let mut follow = world.engine.views().follow(&world.me, session, from).await.unwrap();
    let first = world.say(To::Session(session), "!say 50 20").await.unwrap().accepted;
    let (mut at, mut live) = (from.0, String::new());
    loop {
        match follow.next().await.expect("the stream goes on") {
            SessionUpdate::Live(words) => {
                assert_eq!(words.offset as usize, live.len());
                live.push_str(&words.text);
            }
            SessionUpdate::Progress(_) => {}
            SessionUpdate::Fact(shared) => {
                assert_eq!(shared.fact.number.0, at + 1);
                at += 1;
                if let engine::StoredEntry::Rule(Fact::TurnEnded { .. }) = shared.fact.entry {
                    break;
                }
            }
        }
    }
    assert_eq!(Some(live), world.settled(first.message).await.answer);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_who_lags_is_cut_off_and_comes_back_without_a_gap() {
    let world = World::new().await;
    let first = world.say(To::New, "hello").await.unwrap().accepted;
    world.settled(first.message).await;
    let mut slow = world.engine.views().follow(&world.me, first.session, Number(0)).await.unwrap();
    let mut at = Number(0);
    while !slow.is_caught_up() {
        let told = tokio::time::timeout(Duration::from_millis(10), slow.next()).await;
        if let Ok(Some(SessionUpdate::Fact(shared))) = told {
            at = shared.fact.number;
        }
    }
    // The first word after catching up is heard live; from then on the watcher is slow.
    world.talk(To::Session(first.session), "a").await;
    if let Some(SessionUpdate::Fact(shared)) = slow.next().await {
        at = shared.fact.number;
    }
    let flood = world.talk(To::Session(first.session), "!flood 8000000").await;
    assert_eq!(flood.row.state, Answered);
    let mut cut = false;
    for _ in 0..10_000 {
        match slow.next().await {
            Some(SessionUpdate::Fact(shared)) => at = shared.fact.number,
            Some(SessionUpdate::Live(_) | SessionUpdate::Progress(_)) => {}
            None => {
                cut = true;
                break;
            }
        }
    }
    assert!(cut, "a slow watcher is not buffered for");
    let last = flood.row.last.unwrap();
    let mut back = world.engine.views().follow(&world.me, first.session, at).await.unwrap();
    while at < last {
        if let SessionUpdate::Fact(shared) = back.next().await.unwrap() {
            assert_eq!(shared.fact.number, at.next());
            at = shared.fact.number;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_so_many_sessions_are_awake_and_everybody_gets_a_turn() {
    let limits = Limits { awake_max: 2, ..Limits::default() };
    let world = World::with(limits, Policy::default()).await;
    let mut accepted = Vec::new();
    for n in 0..12 {
        accepted.push(world.say(To::New, &format!("!sleep 1000\nword{n}")).await.unwrap().accepted);
    }
    for one in &accepted {
        assert_eq!(world.settled(one.message).await.row.state, Answered);
    }
    assert!(world.store.snapshot().claims.is_empty());
}

#[tokio::test(start_paused = true)]
async fn open_sessions_and_unfinished_messages_are_limited() {
    let limits = Limits { open_max: 2, pending_max: 3, ..Limits::default() };
    let world = World::with(limits, Policy::default()).await;
    let first = world.say(To::New, "!hang").await.unwrap().accepted.session;
    world.say(To::New, "b").await.unwrap();
    assert_eq!(world.say(To::New, "c").await.unwrap_err(), WayInError::TooManyOpen { limit: 2 });
    world.say(To::Session(first), "1").await.unwrap();
    world.say(To::Session(first), "2").await.unwrap();
    assert_eq!(world.say(To::Session(first), "3").await.unwrap_err(), WayInError::QueueFull { limit: 3 });
    world.ask(Request::End { session: first }).await.unwrap();
    world.until_ended(first).await;
    world.say(To::New, "c").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_question_is_answered_once_times_out_to_no_and_lapses_with_its_turn() {
    let mut world = World::new().await;
    let first = world.say(To::New, "!ask hammer").await.unwrap().accepted;
    let approval = world.question().await;
    let yes = Request::Answer { approval, answer: Answer::Yes, remember: None };
    assert_eq!(world.ask(yes.clone()).await, Ok(Granted::Done));
    assert!(matches!(world.ask(yes).await, Err(WayInError::AnsweredBefore(_))));
    assert!(world.settled(first.message).await.answer.unwrap().contains("hammer"));
    let late = world.say(To::Session(first.session), "!ask saw").await.unwrap().accepted;
    world.question().await;
    assert_eq!(world.settled(late.message).await.row.state, Answered, "nobody answered: no, and it goes on");
    let lost = world.say(To::Session(first.session), "!ask axe").await.unwrap().accepted;
    let approval = world.question().await;
    world.crash().await;
    assert_eq!(state_and_why(&world.settled(lost.message).await), (Failed, Some("interrupted")));
    let no = Request::Answer { approval, answer: Answer::No, remember: None };
    assert!(matches!(world.ask(no).await, Err(WayInError::Lapsed { interrupted: true, .. })));
    assert!(world.engine.views().approvals(&world.me, 10).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn somebody_elses_address_and_session_do_not_exist() {
    let world = World::new().await;
    let session = world.talk(conversation("a"), "one").await.row.session;
    let foreign = To::Conversation("web:bob/1".parse().unwrap());
    assert_eq!(world.say(foreign, "x").await.unwrap_err(), AccessError::AddressNotYours.into());
    let mut bob = world.inbound(To::Session(session), "x", None);
    bob.by = world.let_in("bob", kernel::Role::Member).await;
    assert_eq!(
        world.engine.way_in().send(bob.clone()).await.unwrap_err(),
        AccessError::NotFound { what: "session" }.into()
    );
    assert_eq!(
        world.engine.views().session(&bob.by, session).await.unwrap_err(),
        AccessError::NotFound { what: "session" }.into()
    );
    assert!(world.engine.views().follow(&bob.by, session, Number(0)).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_conversation_can_be_moved_to_another_open_session() {
    let world = World::new().await;
    world.talk(conversation("a"), "one").await;
    let other = world.talk(To::New, "two").await.row.session;
    world.engine.way_in().rebind(&world.me, address("a"), other, trace(None)).await.unwrap();
    assert_eq!(world.talk(conversation("a"), "three").await.row.session, other);
}

fn previous(session: SessionId, why: EndWhy) -> Option<Previous> {
    Some(Previous { session, ended: Some(why) })
}

/// The agent says the next thing while the keeper writes the last one down: there is always more to hear.
#[tokio::test(start_paused = true)]
async fn an_agent_that_never_stops_talking_can_be_stopped_and_left() {
    let limits = Limits { verdict_wait: Duration::from_secs(1), ..Limits::default() };
    let mut world = World::among(vec![Arc::new(Tireless)], limits, Policy::default()).await;
    world.faults.append_ms.store(20, Ordering::Relaxed);
    let mut inbound = world.inbound(To::New, "go on", None);
    inbound.if_new.agent = Some("tireless".to_owned());
    let first = world.engine.way_in().send(inbound).await.unwrap().accepted;
    world.until_number(first.session, 100).await;
    assert_eq!(world.ask(Request::Stop { message: first.message }).await, Ok(Granted::Done));
    assert_eq!(world.settled(first.message).await.row.state, Stopped);

    let second = world.say(To::Session(first.session), "go on").await.unwrap().accepted;
    let at = world.engine.views().session(&world.me, first.session).await.unwrap().at;
    world.until_number(first.session, at.0 + 100).await;
    let began = tokio::time::Instant::now();
    world.restart().await;
    assert!(began.elapsed() < Duration::from_secs(1), "the next start need not settle it");
    assert_eq!(state_and_why(&world.settled(second.message).await), (Failed, Some("interrupted")));
}

#[tokio::test(start_paused = true)]
async fn whoever_watches_hears_what_was_written_although_the_answer_got_lost() {
    let world = World::new().await;
    let session = world.talk(To::New, "one").await.row.session;
    let mut at = world.engine.views().session(&world.me, session).await.unwrap().at;
    let mut follow = world.engine.views().follow(&world.me, session, at).await.unwrap();
    let nothing = tokio::time::timeout(Duration::from_secs(1), follow.next()).await;
    assert!(nothing.is_err(), "it has read the log to its end");
    *world.faults.loses_end.lock().unwrap() = true;
    world.say(To::Session(session), "two").await.unwrap();
    loop {
        let told = tokio::time::timeout(Duration::from_secs(60), follow.next()).await;
        match told.expect("nobody says that the turn is over") {
            Some(SessionUpdate::Fact(shared)) => {
                assert_eq!(shared.fact.number, at.next());
                at = shared.fact.number;
                if matches!(shared.fact.entry, StoredEntry::Rule(Fact::TurnEnded { .. })) {
                    return;
                }
            }
            Some(SessionUpdate::Live(_) | SessionUpdate::Progress(_)) => {}
            None => follow = world.engine.views().follow(&world.me, session, at).await.unwrap(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_may_say_nothing_any_more_has_all_that_waits_refused_however_much_it_is() {
    let world = World::new().await;
    let bob = world.let_in("bob", Role::Member).await;
    let first = world.say(To::New, "!hang").await.unwrap().accepted;
    world.give(first.session, Grantee::Person(bob.person), Grant::Prompt).await;
    let mut waiting = Vec::new();
    for n in 0..100 {
        let said = world.say_as(&bob, To::Session(first.session), &format!("word{n}")).await;
        waiting.push(said.unwrap().accepted);
    }
    world.house_has_handed(first.message).await;
    world.store.disable(bob.person);
    world.ask(Request::Stop { message: first.message }).await.unwrap();
    for one in waiting {
        let view = world.settled(one.message).await;
        assert_eq!(state_and_why(&view), (ReceiptState::Refused, Some("not_allowed")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_conversations_past_is_nothing_to_whoever_may_not_see_it() {
    let world = World::new().await;
    let session = world.talk(conversation("a"), "one").await.row.session;
    world.ask(Request::End { session }).await.unwrap();
    let bob = world.let_in("bob", Role::Member).await;
    let accepted = world.say_as(&bob, conversation("a"), "two").await.unwrap().accepted;
    assert_eq!((accepted.created, accepted.previous), (true, None));
}

#[tokio::test(start_paused = true)]
async fn a_queue_shows_how_long_messages_begin_and_each_has_all_its_words() {
    let world = World::new().await;
    let first = world.say(To::New, "!hang").await.unwrap().accepted;
    let long = format!("x{}", "é".repeat(100_000));
    let waits = world.say(To::Session(first.session), &long).await.unwrap().accepted;
    let shown = world.engine.views().queue(&world.me, first.session).await.unwrap().pop().unwrap().text;
    assert!(shown.len() <= 4 * 1024 && long.starts_with(&shown), "{} bytes are shown", shown.len());
    assert_eq!(world.engine.views().words(&world.me, waits.message).await.unwrap(), long);
}

#[tokio::test(start_paused = true)]
async fn parts_that_are_too_long_as_one_text_are_refused_at_once() {
    let world = World::new().await;
    let mut inbound = world.inbound(To::New, &"x".repeat(engine::MESSAGE_TEXT_BYTES_MAX / 2), None);
    inbound.parts.push(inbound.parts[0].clone());
    assert!(matches!(
        world.engine.way_in().send(inbound).await,
        Err(WayInError::Invalid(InvalidError { field: "parts", .. }))
    ));
}

#[tokio::test(start_paused = true)]
async fn ending_a_session_with_a_running_turn_stops_it_first() {
    let world = World::new().await;
    let first = world.say(conversation("a"), "!hang").await.unwrap().accepted;
    let waits = world.say(conversation("a"), "two").await.unwrap().accepted;
    world.house_has_handed(first.message).await;
    assert_eq!(world.ask(Request::End { session: first.session }).await, Ok(Granted::Done));
    assert_eq!(world.settled(first.message).await.row.state, Stopped);
    assert_eq!(
        state_and_why(&world.settled(waits.message).await),
        (ReceiptState::Refused, Some("session_ended"))
    );
    let rules = world.rules(first.session).await;
    assert!(matches!(rules.last(), Some(Fact::Ended { why: EndWhy::Asked })));
    assert!(rules.iter().any(|fact| matches!(fact, Fact::TurnEnded { outcome: Outcome::Stopped, .. })));
}

#[tokio::test(start_paused = true)]
async fn a_missing_directory_is_said_and_nothing_runs_elsewhere() {
    let world = World::new().await;
    let mut inbound = world.inbound(To::New, "hello", None);
    inbound.if_new.directory = Some("/lost/place".to_owned());
    let receipt = world.engine.way_in().send(inbound).await.unwrap();
    let view = world.settled(receipt.accepted.message).await;
    assert_eq!(state_and_why(&view), (Failed, Some("refused")));
    assert_eq!(view.notice.as_deref(), Some("it is not there any more"));
    assert!(world.house.noted().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_long_session_wakes_from_its_checkpoint_with_all_it_knew() {
    let mut world = World::new().await;
    let session = world.talk(To::New, "word1").await.row.session;
    for n in 2..=60 {
        world.talk(To::Session(session), &format!("word{n}")).await;
    }
    world.crash().await;
    let view = world.talk(To::Session(session), "last").await;
    assert_eq!(view.answer.as_deref().map(str::trim), Some("#61 last"));
    world.store.drop_checkpoints();
    world.crash().await;
    let view = world.talk(To::Session(session), "really").await;
    assert_eq!(view.answer.as_deref().map(str::trim), Some("#62 really"));
}

impl World {
    pub(crate) async fn house_has_handed(&self, message: kernel::MessageId) {
        while !self
            .house
            .noted()
            .iter()
            .any(|noted| noted.message == message && noted.did == agent::Did::Handed)
        {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    pub(crate) async fn question(&self) -> kernel::ApprovalId {
        loop {
            if let Some(row) = self.engine.views().approvals(&self.me, 10).await.unwrap().first() {
                return row.row.approval;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn until_number(&self, session: kernel::SessionId, number: u64) {
        while self.engine.views().session(&self.me, session).await.unwrap().at.0 < number {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    pub(crate) async fn until_ended(&self, session: kernel::SessionId) {
        while self.engine.views().session(&self.me, session).await.unwrap().ended.is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

fn order<T>(facts: &[Fact], pick: impl Fn(&Fact) -> Option<T>) -> Vec<T> {
    facts.iter().filter_map(pick).collect()
}

fn name(fact: &Fact) -> String {
    format!("{fact:?}").split([' ', '{', '(']).next().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_number_beyond_the_log_is_refused_and_not_answered_with_silence() {
    let world = World::new().await;
    let session = world.talk(To::New, "hello").await.row.session;
    let last = world.engine.views().session(&world.me, session).await.unwrap().at;
    assert!(world.engine.views().follow(&world.me, session, last).await.is_ok());
    let beyond = world.engine.views().follow(&world.me, session, last.next()).await;
    assert!(matches!(beyond, Err(ViewError::Invalid(InvalidError { field: "after", .. }))));
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_becomes_free_while_it_is_being_refused_is_used_at_once() {
    let world = World::with(Limits { awake_max: 1, ..Limits::default() }, Policy::default()).await;
    world.faults.refusal_ms.store(5_000, std::sync::atomic::Ordering::Relaxed);
    let first = world.say(To::New, "!sleep 1000").await.unwrap().accepted;
    world.house_has_handed(first.message).await;
    let began = tokio::time::Instant::now();
    let second = world.say(To::New, "hello").await.unwrap().accepted;
    assert_eq!(world.settled(second.message).await.row.state, Answered);
    assert!(began.elapsed() < Duration::from_secs(60), "it waited for {:?}", began.elapsed());
}

//! The ways an agent comes to know what was said before, what its turn changes, and what its words wait for.

use crate::puppet::Puppet;
use crate::scope::{enter, in_directory, set_agent};
use crate::vocabulary::{of_type, stories};
use crate::world::World;
use agent::{Abilities, AgentEvent, MemoryMove};
use engine::{Limits, LookResult, ReceiptState};
use kernel::{ErrandKind, Fact, Native, Policy, Request, SessionId, To};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

use ReceiptState::{Answered, Failed};

fn puppet() -> Puppet {
    let answer = AgentEvent::Text { text: "the puppet's answer".to_owned() };
    let done = AgentEvent::Finished { native: None, reason: String::new() };
    Puppet { says: vec![answer, done], ..Puppet::default() }
}

async fn world_with(puppet: &Puppet) -> World {
    World::among(vec![Arc::new(puppet.clone())], Limits::default(), Policy::default()).await
}

async fn said_to_puppet(world: &World, text: &str) -> SessionId {
    let mut inbound = in_directory(world, text, "/srv/shop");
    inbound.if_new.agent = Some("puppet".to_owned());
    let made = world.engine.way_in().send(inbound).await.unwrap().accepted;
    assert_eq!(world.settled(made.message).await.row.state, Answered);
    made.session
}

fn last_handed(puppet: &Puppet) -> String {
    puppet.notes.handed.lock().unwrap().last().unwrap().0.clone()
}

#[tokio::test(start_paused = true)]
async fn another_agent_is_told_again_what_was_said_and_the_message_stays_as_it_is() {
    let puppet = puppet();
    let world = world_with(&puppet).await;
    let session = world.talk(To::New, "the first\n!pwd").await.row.session;
    world.talk(To::Session(session), "the second").await;
    world.change(session, set_agent("puppet")).await.unwrap();
    world.arrived(session, 1).await;
    let view = world.talk(To::Session(session), "go on").await;
    let handed = last_handed(&puppet);
    for told in
        ["> ann:\n> the first\n> !pwd\n", "> the agent:\n> #1 the first", "> the second", "#2 the second"]
    {
        assert!(handed.contains(told), "{told:?} in {handed}");
    }
    assert!(handed.ends_with("\n\ngo on"), "{handed}");
    assert_eq!(world.engine.views().words(&world.me, view.row.message).await.unwrap(), "go on");
    let told = of_type(&stories(&world, session).await, "memory");
    assert_eq!((told.len(), &told[0]["way"], &told[0]["turns"]), (1, &"told_again".into(), &2.into()));
}

#[tokio::test(start_paused = true)]
async fn what_an_agent_has_lost_by_itself_is_told_again_in_a_new_conversation_and_said() {
    let (native, abilities) = (Some(Native::new("n-1")), Abilities { forgets: true, ..Abilities::default() });
    let puppet = Puppet { native, abilities, loses: true, ..puppet() };
    let world = world_with(&puppet).await;
    let session = said_to_puppet(&world, "the first").await;
    for said in ["the second", "the third"] {
        let view = world.talk(To::Session(session), said).await;
        assert_eq!(view.row.state, Answered);
        let handed = last_handed(&puppet);
        assert!(handed.contains("> the first") && handed.ends_with(said), "{handed}");
    }
    let stories = stories(&world, session).await;
    let ways: Vec<_> = of_type(&stories, "memory").iter().map(|told| told["way"].clone()).collect();
    assert_eq!(ways, ["told_again", "told_again"]);
    let notices = of_type(&stories, "notice");
    let lost = notices.iter().filter(|told| told["text"] == "it is lost");
    assert_eq!(lost.count(), 2, "why is said, too: {notices:?}");
}

#[tokio::test(start_paused = true)]
async fn the_same_failure_three_times_in_a_row_is_in_the_way_until_something_works() {
    let world = world_with(&puppet()).await;
    let session = world.talk(To::New, "hello").await.row.session;
    let state = async || world.engine.views().readiness(&world.me, session).await.unwrap();
    for (said, seen) in [
        ("!fail after", "ready"),
        ("!fail after", "ready"),
        ("hello", "ready"),
        ("!fail after", "ready"),
        ("!fail after", "ready"),
        ("!fail after", "blocked"),
        ("hello", "ready"),
    ] {
        world.talk(To::Session(session), said).await;
        let ready = state().await;
        assert_eq!(ready.state, seen, "{said}: {ready:?}");
        let why = ready.parts.iter().find_map(|part| part.why.map(|why| why.word()));
        assert_eq!(why, (seen == "blocked").then_some("failing"), "{said}: {ready:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn failures_with_other_words_are_not_the_same_and_other_figures_are_no_other_words() {
    for (words, seen) in [
        (["the line was cut", "nobody answers", "too many requests"], "ready"),
        (["the line was cut", "nobody answers", "the line was cut"], "ready"),
        (
            [
                "request req_01aB failed after 1.5 s",
                "request req_7cD9 failed after 12 s",
                "request req_3 failed after 0 s",
            ],
            "blocked",
        ),
        (
            [
                "request req_01aB failed after 1.5 s",
                "request req_7cD9 failed",
                "request req_3 failed after 0 s",
            ],
            "ready",
        ),
    ] {
        let puppet = Puppet { fails: Arc::new(std::sync::Mutex::new(words.into())), ..puppet() };
        let world = world_with(&puppet).await;
        let mut inbound = in_directory(&world, "hello", "/srv/shop");
        inbound.if_new.agent = Some("puppet".to_owned());
        let made = world.engine.way_in().send(inbound).await.unwrap().accepted;
        assert_eq!(world.settled(made.message).await.row.state, Failed);
        for _ in 1..words.len() {
            assert_eq!(world.talk(To::Session(made.session), "again").await.row.state, Failed);
        }
        let ready = world.engine.views().readiness(&world.me, made.session).await.unwrap();
        assert_eq!(ready.state, seen, "{words:?}: {ready:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_newest_turns_are_told_again_and_the_rest_is_counted() {
    let puppet = puppet();
    let world = world_with(&puppet).await;
    let session = world.talk(To::New, "word0").await.row.session;
    for n in 1..10 {
        world.talk(To::Session(session), &format!("word{n}\n!flood 20000")).await;
    }
    world.change(session, set_agent("puppet")).await.unwrap();
    world.arrived(session, 1).await;
    world.talk(To::Session(session), "go on").await;
    let handed = last_handed(&puppet);
    assert!(handed.len() < 66 * 1024, "{} bytes", handed.len());
    assert!(handed.contains("> word9\n") && !handed.contains("> word2\n"));
    assert!(handed.contains("> (7 earlier turns are left out)"), "{}", &handed[..300]);
}

#[tokio::test(start_paused = true)]
async fn memory_follows_into_another_directory_as_the_agent_is_able_to() {
    for (memory, resumes, way) in [
        (MemoryMove::Resume, true, "follows"),
        (MemoryMove::Carry, true, "follows"),
        (MemoryMove::Replay, false, "told_again"),
    ] {
        let native = Some(Native::new("n-1"));
        let abilities = Abilities { resume: true, memory, ..Abilities::default() };
        let puppet = Puppet { native, abilities, ..puppet() };
        let world = world_with(&puppet).await;
        let session = said_to_puppet(&world, "the first").await;
        world.change(session, enter("blue")).await.unwrap();
        world.arrived(session, 1).await;
        world.talk(To::Session(session), "the second").await;
        let launched = puppet.notes.launches.lock().unwrap().last().unwrap().clone();
        assert_eq!(launched.native.is_some(), resumes, "{memory:?}");
        assert_eq!(launched.directory, "/trees/blue");
        assert_eq!(last_handed(&puppet).contains("> the first"), !resumes, "{memory:?}");
        let told = of_type(&stories(&world, session).await, "memory");
        assert_eq!((told.len(), &told[0]["way"]), (1, &way.into()), "{memory:?}");
        world.talk(To::Session(session), "the third").await;
        assert_eq!(last_handed(&puppet), "the third", "{memory:?}: it knows it from here on");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_nobody_has_given_yet_is_not_known_by_asking_for_it() {
    let abilities = Abilities { commands: true, ..Abilities::default() };
    let puppet = Puppet { abilities, ..puppet() };
    let world = world_with(&puppet).await;
    let session = said_to_puppet(&world, "the first").await;
    for look in [engine::Look::Commands, engine::Look::Models] {
        let seen = world.engine.views().look(&world.me, session, look).await;
        assert!(matches!(seen, Ok(LookResult::Commands(None) | LookResult::Models(None))), "{seen:?}");
    }
    let learned = |fact: &Fact| matches!(fact, Fact::Learned { .. });
    assert!(!world.rules(session).await.iter().any(learned), "a command still waits for the list");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_on_its_way_is_waited_for_and_not_for_ever() {
    let abilities = Abilities { commands: true, models: true, ..Abilities::default() };
    let puppet = Puppet { abilities, lists_ms: Some(3_000), ..Puppet::default() };
    let world = world_with(&puppet).await;
    let mut inbound = in_directory(&world, "go", "/srv/shop");
    inbound.if_new.agent = Some("puppet".to_owned());
    let made = world.engine.way_in().send(inbound).await.unwrap().accepted;
    world.until_rule(made.session, |fact| matches!(fact, Fact::AttemptStarted { .. })).await;
    let look = async |look| {
        let began = Instant::now();
        (world.engine.views().look(&world.me, made.session, look).await.unwrap(), began.elapsed().as_secs())
    };
    let (seen, waited) = look(engine::Look::Commands).await;
    assert!(matches!(&seen, LookResult::Commands(Some(list)) if list[0].name == "review"), "{seen:?}");
    assert!((2..=4).contains(&waited), "{waited}");
    assert_eq!(look(engine::Look::Commands).await, (seen, 0), "then it is there");
    // Another list does not come with it, and the one that has come is not taken for it.
    assert_eq!(look(engine::Look::Models).await, (LookResult::Models(None), 10));
    let learned = world.rules(made.session).await.into_iter().filter_map(|fact| match fact {
        Fact::Learned { kind, .. } => Some(kind),
        _ => None,
    });
    assert_eq!(learned.collect::<Vec<_>>(), [ErrandKind::Commands]);
    // Where nothing is under way there is nothing to wait for.
    world.ask(Request::Stop { message: made.message }).await.unwrap();
    world.settled(made.message).await;
    assert_eq!(look(engine::Look::Models).await, (LookResult::Models(None), 0));
}

#[tokio::test(start_paused = true)]
async fn a_command_is_never_hidden_behind_what_is_told_again() {
    let abilities = Abilities { commands: true, ..Abilities::default() };
    let puppet = Puppet { abilities, lists_ms: Some(0), ..puppet() };
    let world = world_with(&puppet).await;
    let session = world.talk(To::New, "the first").await.row.session;
    world.change(session, set_agent("puppet")).await.unwrap();
    world.arrived(session, 1).await;
    world.talk(To::Session(session), "/review it").await;
    assert_eq!(last_handed(&puppet), "/review it");
    assert_eq!(of_type(&stories(&world, session).await, "memory")[0]["way"], "untold");
}

#[tokio::test(start_paused = true)]
async fn what_may_be_a_command_waits_for_the_agents_list_or_until_its_time_is_over() {
    let abilities = Abilities { commands: true, ..Abilities::default() };
    let late = "did not list its commands in time";
    for (lists_ms, waits, tells) in
        [(Some(3_000), 3_000, false), (None, 10_000, true), (Some(30_000), 10_000, true)]
    {
        let puppet = Puppet { abilities, lists_ms, ..puppet() };
        let world = world_with(&puppet).await;
        let began = Instant::now();
        let session = said_to_puppet(&world, "/review it").await;
        let (text, at) = puppet.notes.handed.lock().unwrap().last().unwrap().clone();
        let waited = at.duration_since(began);
        assert_eq!(text, "/review it");
        assert!(
            waited >= Duration::from_millis(waits) && waited < Duration::from_millis(waits + 500),
            "{lists_ms:?}: {waited:?}"
        );
        let notices = of_type(&stories(&world, session).await, "notice");
        let told = notices.iter().any(|story| story["text"].as_str().unwrap().contains(late));
        assert_eq!(told, tells, "{lists_ms:?}");
        let learned = |fact: &Fact| matches!(fact, Fact::Learned { kind: ErrandKind::Commands, .. });
        let knows = world.rules(session).await.iter().any(learned);
        assert_eq!(knows, lists_ms == Some(3_000));
        let began = Instant::now();
        world.talk(To::Session(session), "plain words").await;
        assert!(began.elapsed() < Duration::from_secs(1), "only what may be a command waits");
        let began = Instant::now();
        world.talk(To::Session(session), "/review it").await;
        assert_eq!(
            began.elapsed() < Duration::from_secs(1),
            knows,
            "the list of this scope is known, or not"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_waits_for_a_list_can_be_stopped() {
    let abilities = Abilities { commands: true, ..Abilities::default() };
    let puppet = Puppet { abilities, ..puppet() };
    let world = world_with(&puppet).await;
    let mut inbound = in_directory(&world, "/review it", "/srv/shop");
    inbound.if_new.agent = Some("puppet".to_owned());
    let message = world.engine.way_in().send(inbound).await.unwrap().accepted.message;
    let began = Instant::now();
    while puppet.notes.launches.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    world.ask(Request::Stop { message }).await.unwrap();
    assert_eq!(world.settled(message).await.row.state, ReceiptState::Stopped);
    assert!(began.elapsed() < Duration::from_secs(5));
    assert!(puppet.notes.handed.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_tree_is_seen_before_the_words_leave_us_and_after_the_agent_has_gone() {
    let puppet = puppet();
    let world = world_with(&puppet).await;
    world.grove.act_ms.store(2_000, Ordering::Relaxed);
    let began = Instant::now();
    let session = said_to_puppet(&world, "hello").await;
    let (_, handed) = puppet.notes.handed.lock().unwrap()[0].clone();
    assert!(handed.duration_since(began) >= Duration::from_secs(2));
    let notes = world.grove.notes();
    let acts: Vec<&str> =
        notes.iter().map(String::as_str).filter(|note| !note.starts_with("begin")).collect();
    assert_eq!(acts, ["Before 1 in /srv/shop", "After 1 in /srv/shop", "changes 1"]);
    let told = of_type(&stories(&world, session).await, "changes");
    let file = serde_json::json!({"path": "a.txt", "kind": "edited", "plus": 1, "minus": 2});
    assert_eq!((told.len(), &told[0]["files"][0], &told[0]["cut"]), (1, &file, &true.into()));
    assert_eq!(told[0]["patch"].as_str().unwrap().len(), 64 * 1024);
    let rules = world.rules(session).await;
    assert!(matches!(rules.last(), Some(Fact::TurnEnded { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_tree_that_cannot_be_seen_fails_no_turn() {
    let puppet = puppet();
    let world = world_with(&puppet).await;
    world.grove.is_blind.store(true, Ordering::Relaxed);
    let session = said_to_puppet(&world, "hello").await;
    let stories = stories(&world, session).await;
    assert!(of_type(&stories, "changes").is_empty());
    let notices = of_type(&stories, "notice");
    assert!(notices.iter().any(|story| story["text"].as_str().unwrap().contains("fog")), "{notices:?}");
}

#[tokio::test(start_paused = true)]
async fn outside_of_version_control_nobody_looks_twice_while_the_session_goes_on() {
    let world = World::new().await;
    let first = world.say(To::New, "!sleep 1000").await.unwrap().accepted;
    let mut last = first.message;
    for _ in 0..5 {
        last = world.say(To::Session(first.session), "hello").await.unwrap().accepted.message;
    }
    assert_eq!(world.settled(last).await.row.state, Answered);
    assert_eq!(world.grove.notes().len(), 1, "{:?}", world.grove.notes());
    assert!(of_type(&stories(&world, first.session).await, "changes").is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_a_turn_changed_that_we_lost_is_seen_when_it_is_buried() {
    let mut world = World::new().await;
    let session = world.shop().await;
    let lost = world.say(To::Session(session), "!hang").await.unwrap().accepted.message;
    world.house_has_handed(lost).await;
    world.crash().await;
    assert_eq!(world.settled(lost).await.row.state, Failed);
    let told = of_type(&stories(&world, session).await, "changes");
    assert_eq!(told.last().unwrap()["turn"], 2);
    let notes = world.grove.notes();
    assert!(notes.contains(&"After 2 in /srv/shop".to_owned()), "{notes:?}");
}

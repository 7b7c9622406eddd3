//! Stories of the audit: that everything is in it once, that it is sealed soon, and that a change shows.

use crate::world::{World, trace};
use engine::{AccessError, AuditWish, Expiry, MakeToken, PersonChange, Resource, RootRow, Thing};
use kernel::{Grant, Grantee, Policy, Request, Right, Rights, Role, SessionId, To};
use std::time::Duration;

fn wish() -> AuditWish {
    AuditWish { limit: 1_000, ..AuditWish::default() }
}

#[tokio::test(start_paused = true)]
async fn every_change_and_every_refusal_is_in_the_audit_once() {
    let world = World::new().await;
    let bob = world.let_in("bob", Role::Member).await;
    let session = world.talk(To::New, "one").await.row.session;
    world.give(session, Grantee::Person(bob.person), Grant::View).await;
    let ended = world.engine.way_in().ask(&bob, Request::End { session }, trace(None)).await;
    assert_eq!(ended, Err(AccessError::Needs(Grant::Manage).into()));
    let never = SessionId::from_bits(77);
    let handed = world.engine.people().hand_over(&bob, never, bob.person, trace(None)).await;
    assert_eq!(handed, Err(AccessError::NotFound { what: "session" }.into()));
    let audit = world.engine.people().audit(&world.me, wish()).await.unwrap();
    let line = |row: &engine::AuditRow| (row.verb.clone(), row.by, row.refused.clone());
    let mut lines: Vec<_> = audit.iter().rev().map(line).collect();
    lines.retain(|(verb, ..)| verb != "make_link");
    let (me, his) = (Some(world.me.person), Some(bob.person));
    let expected = [
        ("add_person", me, None),
        ("sign_in", his, None),
        ("say", me, None),
        ("give", me, None),
        ("end", his, Some("not_allowed")),
        ("hand_over", his, Some("not_found")),
    ];
    let expected = expected.map(|(verb, by, refused)| (verb.to_owned(), by, refused.map(str::to_owned)));
    assert_eq!(lines, expected);
    let mut of_session = wish();
    of_session.subject = Some(session.to_string());
    let of_session = world.engine.people().audit(&world.me, of_session).await.unwrap();
    let verbs: Vec<_> = of_session.iter().map(|row| row.verb.as_str()).collect();
    assert_eq!(verbs, ["end", "give", "say"], "newest first");
    let his = world.engine.people().audit(&bob, wish()).await;
    assert_eq!(his, Err(AccessError::NeedsRole(Role::Admin).into()));
}

#[tokio::test(start_paused = true)]
async fn the_audit_says_how_much_was_given_and_to_whom() {
    let world = World::new().await;
    let (engine, me) = (&world.engine, &world.me);
    let bob = world.let_in("bob", Role::Member).await.person;
    let session = world.talk(To::New, "one").await.row.session;
    world.give(session, Grantee::Person(bob), Grant::Prompt).await;
    let agent = Resource::Agent("scripted".to_owned());
    engine.people().give(me, agent, Grantee::Org, Grant::View, trace(None)).await.unwrap();
    let lower = PersonChange { role: Some(Role::Viewer), ..PersonChange::default() };
    engine.people().change_person(me, bob, lower, trace(None)).await.unwrap();
    let other = PersonChange { name: Some("Bob".to_owned()), ..PersonChange::default() };
    engine.people().change_person(me, bob, other, trace(None)).await.unwrap();
    let root = RootRow { directory: "/srv/shop".to_owned(), to: Grantee::Person(bob) };
    engine.people().add_root(me, root, trace(None)).await.unwrap();
    let rights = Rights::NONE.with(Right::Read).with(Right::Approve);
    let make = MakeToken { name: "ci".to_owned(), rights, expires: Expiry::Usual, client: None };
    let (token, _) = engine.people().make_token(me, make, trace(None)).await.unwrap();
    let audit = engine.people().audit(me, wish()).await.unwrap();
    let said = |verb: &str| {
        let of_verb = audit.iter().rev().filter(|row| row.verb == verb);
        of_verb.map(|row| row.subject.clone().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(said("add_person"), [format!("{bob} member")]);
    assert_eq!(said("give"), [format!("{bob} prompt"), "scripted org view".to_owned()]);
    assert_eq!(said("change_person"), [format!("{bob} viewer"), bob.to_string()]);
    assert_eq!(said("add_root"), [format!("/srv/shop {bob}")]);
    assert_eq!(said("make_token"), [format!("{} read approve", token.token)]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_read_is_in_the_audit_within_a_second_and_once_a_minute() {
    const FLOOD: u64 = 5_000;
    let world = World::new().await;
    let bob = world.let_in("bob", Role::Member).await;
    let session = world.talk(To::New, "one").await.row.session;
    let read = |named| world.engine.views().read_refused(&bob, named, "not_found", &trace(None));
    let reads = async || {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let page =
            world.engine.people().audit(&world.me, AuditWish { what: Some("read".to_owned()), ..wish() });
        page.await.unwrap().into_iter().map(|row| (row.by, row.session, row.refused)).collect::<Vec<_>>()
    };
    let entry = || (Some(bob.person), Some(session), Some("not_found".to_owned()));
    for _ in 0..3 {
        read(Thing::Session(session));
        read(Thing::Session(SessionId::from_bits(77)));
        assert_eq!(reads().await, [entry()]);
    }
    tokio::time::advance(Duration::from_secs(60)).await;
    read(Thing::Session(session));
    assert_eq!(reads().await, [entry(), entry()], "a minute later it is news");
    assert_eq!(world.engine.views().refused_reads_dropped(), 0);
    for number in 0..FLOOD {
        read(Thing::Session(SessionId::from_bits(1 << 90 | u128::from(number))));
    }
    let dropped = world.engine.views().refused_reads_dropped();
    assert!(dropped > 0 && dropped < FLOOD, "{dropped} of {FLOOD}");
    assert_eq!(reads().await.len(), 2, "what nobody made is no news");
    // What waits when the node goes down is not lost.
    tokio::time::advance(Duration::from_secs(60)).await;
    read(Thing::Session(session));
    world.engine.shutdown().await;
    assert_eq!(reads().await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_the_engine_does_by_itself_is_in_the_audit_as_its_own() {
    let policy = Policy { turn_ms_max: 5_000, ask_ms_max: 1_000, hold_ms_max: 1_000, ..Policy::default() };
    let mut world = World::with(engine::Limits::default(), policy).await;
    let late = world.talk(To::New, "!hang").await.row.message;
    let acts = |verb| world.own_acts(verb).into_iter().map(|row| row.subject).collect::<Vec<_>>();
    assert_eq!(acts("time_limit"), [Some(late.to_string())]);
    let asks = world.talk(To::New, "!ask hammer").await.row.message;
    assert_eq!(acts("answer_for_nobody"), [Some(asks.to_string())]);

    let hangs = world.say(To::New, "!hang").await.unwrap().accepted;
    let held = world.say(To::Session(hangs.session), "later").await.unwrap().accepted.message;
    world.house_has_handed(hangs.message).await;
    world.ask(Request::Hold { message: held }).await.unwrap();
    world.settled(held).await;
    assert_eq!(world.own_acts("expire")[0].subject, Some(held.to_string()));

    let lost = world.say(To::New, "!hang").await.unwrap().accepted;
    world.house_has_handed(lost.message).await;
    world.crash().await;
    world.settled(lost.message).await;
    let interrupted = world.own_acts("interrupt");
    assert!(interrupted.iter().any(|row| row.subject == Some(lost.message.to_string())));
    assert!(interrupted.iter().all(|row| row.door == "engine" && row.session.is_some()));
}

#[tokio::test(start_paused = true)]
async fn an_entry_is_sealed_within_a_second_and_the_chain_is_whole() {
    let world = World::new().await;
    let session = world.talk(To::New, "one").await.row.session;
    for n in 0..20 {
        let on = Resource::Session(session);
        let grant = if n % 2 == 0 { Grant::View } else { Grant::Prompt };
        world.engine.people().give(&world.me, on, Grantee::Org, grant, trace(None)).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let audit = world.engine.people().audit(&world.me, wish()).await.unwrap();
    assert!(audit.len() > 20 && audit.iter().all(|row| row.sealed.is_some()));
    let verified = world.engine.people().verify_audit(&world.me).await.unwrap();
    assert_eq!((verified.entries, verified.broken), (audit.len() as u64, None));
    assert_eq!(verified.head.number, audit.len() as u64);
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_was_changed_is_named() {
    let world = World::new().await;
    for n in 0..5 {
        world.talk(To::New, &format!("word{n}")).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let audit = world.engine.people().audit(&world.me, wish()).await.unwrap();
    let row = &audit[2];
    world.store.tamper(row.org, row.entry);
    let verified = world.engine.people().verify_audit(&world.me).await.unwrap();
    let broken = verified.broken.unwrap();
    assert_eq!((broken.number, broken.entry), (row.sealed.unwrap().0, Some(row.entry)));
    assert_eq!(verified.entries, broken.number - 1, "those before it are whole");
}

#[tokio::test(start_paused = true)]
async fn what_was_written_before_a_crash_is_sealed_by_the_next_start() {
    let mut world = World::new().await;
    world.say(To::New, "one").await.unwrap();
    world.crash().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let verified = world.engine.people().verify_audit(&world.me).await.unwrap();
    assert!(verified.entries > 0 && verified.broken.is_none(), "{verified:?}");
}

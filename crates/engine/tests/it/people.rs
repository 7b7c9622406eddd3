//! Stories of several people: what one shares, what another loses, and how soon.

use crate::puppet::Puppet;
use crate::vocabulary::{finished, speaking, turn, world_of};
use crate::world::{World, conversation, state_and_why, trace};
use engine::{
    AccessError, AddPerson, ConflictError, Follow, IfNew, Limits, MakeOrg, OrgSettings, PeopleError,
    PersonChange, ReceiptState, Resource, RootRow, SessionUpdate, WayInError,
};
use kernel::{Fact, Grant, Grantee, Number, Policy, Principal, Request, Right, Role, SessionId, StopWhy, To};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// A second is what a reader has after a right is gone, ten what a turn has.
const SOON: Duration = Duration::from_secs(1);
const STOPPED_WITHIN: Duration = Duration::from_secs(10);

/// A session of mine in which the other may do this.
async fn shared_with(world: &World, other: &Principal, grant: Grant) -> SessionId {
    let session = world.talk(To::New, "one").await.row.session;
    world.give(session, Grantee::Person(other.person), grant).await;
    session
}

/// Reads until nothing more comes; then it waits.
async fn caught_up(follow: &mut Follow) {
    while tokio::time::timeout(Duration::from_millis(100), follow.next()).await.is_ok() {}
}

#[tokio::test(start_paused = true)]
async fn what_a_disabled_person_said_is_refused_if_it_waits_and_stopped_if_it_runs() {
    let world = World::new().await;
    let bob = world.let_in("bob", Role::Member).await;
    let session = shared_with(&world, &bob, Grant::Prompt).await;
    let runs = world.say_as(&bob, To::Session(session), "!hang").await.unwrap().accepted.message;
    let waits = world.say_as(&bob, To::Session(session), "later").await.unwrap().accepted.message;
    let mine = world.say(To::Session(session), "mine").await.unwrap().accepted.message;
    world.house_has_handed(runs).await;

    let since = Instant::now();
    world.engine.people().disable(&world.me, bob.person, trace(None)).await.unwrap();
    let stopped = world.settled(runs).await;
    assert_eq!(stopped.row.state, ReceiptState::Stopped);
    assert!(since.elapsed() < STOPPED_WITHIN, "{:?}", since.elapsed());
    assert_eq!(state_and_why(&world.settled(waits).await), (ReceiptState::Refused, Some("not_allowed")));
    assert_eq!(world.settled(mine).await.row.state, ReceiptState::Answered, "others go on");
    let revoked = Fact::StopAsked { turn: stopped.row.turn.unwrap(), why: StopWhy::Revoked };
    assert!(world.rules(session).await.contains(&revoked));

    let mut own: Vec<_> = world.own_acts("revoke").into_iter().filter_map(|row| row.subject).collect();
    own.sort();
    let mut both = [runs.to_string(), waits.to_string()];
    both.sort();
    assert_eq!(own, both, "each is in the audit once, as the engine's own");
    assert_eq!(
        world.say_as(&bob, To::Session(session), "again").await,
        Err(AccessError::Unauthenticated.into())
    );
    assert_eq!(world.say_as(&bob, To::New, "again").await, Err(AccessError::Unauthenticated.into()));
}

#[tokio::test(start_paused = true)]
async fn a_message_whose_grant_is_taken_back_is_refused_and_one_whose_grant_grows_is_not() {
    let world = World::new().await;
    let bob = world.let_in("bob", Role::Member).await;
    let session = shared_with(&world, &bob, Grant::Prompt).await;
    let hangs = world.say(To::Session(session), "!hang").await.unwrap().accepted.message;
    let waits = world.say_as(&bob, To::Session(session), "later").await.unwrap().accepted.message;
    world.give(session, Grantee::Person(bob.person), Grant::Manage).await;
    let seen = world.engine.views().receipt_within(&world.me, waits, Duration::from_secs(5)).await.unwrap();
    assert_eq!(seen.row.state, ReceiptState::Waiting);
    let (on, to) = (Resource::Session(session), Grantee::Person(bob.person));
    world.engine.people().take_back(&world.me, on, to, trace(None)).await.unwrap();
    assert_eq!(state_and_why(&world.settled(waits).await), (ReceiptState::Refused, Some("not_allowed")));
    assert_eq!(
        world.engine.views().receipt(&world.me, hangs).await.unwrap().row.state,
        ReceiptState::Running
    );
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_within_a_second_of_losing_the_right_to_it() {
    for way in ["grant", "group", "token", "disabled"] {
        let world = World::new().await;
        let bob = world.let_in("bob", Role::Member).await;
        let group =
            world.engine.people().make_group(&world.me, "crew".to_owned(), trace(None)).await.unwrap().group;
        world.engine.people().join(&world.me, group, bob.person, trace(None)).await.unwrap();
        let session = world.talk(To::New, "one").await.row.session;
        let (on, crew) = (Resource::Session(session), Grantee::Group(group));
        world.give(session, crew, Grant::View).await;
        let bob = world.engine.people().refreshed(&bob).await.unwrap();
        let mut follow = world.engine.views().follow(&bob, session, Number(0)).await.unwrap();
        caught_up(&mut follow).await;
        let (engine, me) = (&world.engine, &world.me);
        match way {
            "grant" => engine.people().take_back(me, on, crew, trace(None)).await.unwrap(),
            "group" => engine.people().leave(me, group, bob.person, trace(None)).await.unwrap(),
            "token" => engine.people().revoke_token(me, bob.credential.unwrap(), trace(None)).await.unwrap(),
            _ => engine.people().disable(me, bob.person, trace(None)).await.unwrap(),
        }
        let end = tokio::time::timeout(SOON, follow.next()).await;
        assert!(matches!(end, Ok(None)), "{way}: {end:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_within_a_second_of_what_another_node_has_done() {
    let world = World::new().await;
    let bob = world.let_in("bob", Role::Member).await;
    let session = shared_with(&world, &bob, Grant::View).await;
    let mut follow = world.engine.views().follow(&bob, session, Number(0)).await.unwrap();
    caught_up(&mut follow).await;
    world.store.grant(session, bob.person, None);
    let end = tokio::time::timeout(SOON, follow.next()).await;
    assert!(matches!(end, Ok(None)), "{end:?}");
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_receipt_waits_no_longer_than_they_may_know_it() {
    let world = World::new().await;
    let bob = world.let_in("bob", Role::Member).await;
    let session = shared_with(&world, &bob, Grant::View).await;
    let hangs = world.say(To::Session(session), "!hang").await.unwrap().accepted.message;
    let (engine, by) = (world.engine.clone(), bob.clone());
    let waits = tokio::spawn(async move {
        engine.views().receipt_within(&by, hangs, Duration::from_secs(60)).await.map(|view| view.row.state)
    });
    world.house_has_handed(hangs).await;
    let (on, to) = (Resource::Session(session), Grantee::Person(bob.person));
    world.engine.people().take_back(&world.me, on, to, trace(None)).await.unwrap();
    let answer = tokio::time::timeout(SOON, waits).await.expect("it ends").unwrap();
    assert_eq!(answer, Err(AccessError::NotFound { what: "message" }.into()));
}

#[tokio::test(start_paused = true)]
async fn a_principal_that_has_changed_is_looked_up_again_and_the_wish_goes_on() {
    let world = World::new().await;
    let bob = world.let_in("bob", Role::Member).await;
    let session = shared_with(&world, &bob, Grant::Prompt).await;
    let group =
        world.engine.people().make_group(&world.me, "crew".to_owned(), trace(None)).await.unwrap().group;
    world.engine.people().join(&world.me, group, bob.person, trace(None)).await.unwrap();
    let now = world.engine.people().refreshed(&bob).await.unwrap();
    assert!(now.standing > bob.standing);
    let said = world.say_as(&bob, To::Session(session), "two").await.unwrap().accepted.message;
    assert_eq!(world.settled(said).await.row.state, ReceiptState::Answered);
    world.say_as(&bob, To::New, "three").await.unwrap();
    world.engine.way_in().make(&bob, IfNew::default(), None, trace(None)).await.unwrap();
    let stop = Request::Stop { message: said };
    world.engine.way_in().ask(&bob, stop, trace(None)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_session_handed_over_belongs_to_the_other_and_to_nobody_else() {
    let world = World::new().await;
    let bob = world.let_in("bob", Role::Member).await;
    let session = world.talk(conversation("a"), "one").await.row.session;
    let unseen = Err(AccessError::NotFound { what: "session" }.into());
    world.engine.people().hand_over(&world.me, session, bob.person, trace(None)).await.unwrap();
    assert_eq!(world.engine.views().session(&bob, session).await, unseen, "not before his yes");
    assert_eq!(world.engine.views().session(&world.me, session).await.unwrap().owner, world.me.person);
    let [(offer, row)] = &world.engine.people().offers(&bob).await.unwrap()[..] else { panic!("one") };
    assert_eq!((offer.to, offer.from, row.session), (bob.person, world.me.person, session));
    world.engine.people().accept_offer(&bob, session, trace(None)).await.unwrap();
    assert_eq!(world.engine.people().offers(&bob).await.unwrap(), []);
    assert_eq!(world.engine.views().session(&bob, session).await.unwrap().owner, bob.person);
    assert_eq!(world.engine.views().session(&world.me, session).await, unseen);
    let back = world.engine.people().hand_over(&world.me, session, world.me.person, trace(None)).await;
    assert_eq!(back, Err(AccessError::NotFound { what: "session" }.into()));

    // To take over from somebody who has left is an admin's office, and in the audit.
    let take_over =
        || world.engine.people().hand_over_all(&world.me, bob.person, world.me.person, trace(None));
    take_over().await.unwrap();
    assert_eq!(world.engine.views().session(&world.me, session).await, unseen, "he is there, and is asked");
    world.engine.people().disable(&world.me, bob.person, trace(None)).await.unwrap();
    take_over().await.unwrap();
    assert_eq!(world.engine.views().session(&world.me, session).await.unwrap().owner, world.me.person);
    let carol = world.let_in("carol", Role::Member).await;
    let all = world.engine.people().hand_over_all(&carol, world.me.person, carol.person, trace(None)).await;
    assert_eq!(all, Err(AccessError::NeedsRole(Role::Admin).into()));
}

#[tokio::test(start_paused = true)]
async fn what_waits_and_runs_in_a_session_ends_when_it_is_handed_over_and_its_senders_can_read_that() {
    let world = World::new().await;
    let (bob, carol) = (world.let_in("bob", Role::Member).await, world.let_in("carol", Role::Member).await);
    let session = shared_with(&world, &bob, Grant::Prompt).await;
    world.give(session, Grantee::Person(carol.person), Grant::Prompt).await;
    let runs = world.say_as(&carol, To::Session(session), "!hang").await.unwrap().accepted.message;
    world.house_has_handed(runs).await;
    let waits = [
        world.say(To::Session(session), "mine").await.unwrap().accepted.message,
        world.say_as(&carol, To::Session(session), "hers").await.unwrap().accepted.message,
        world.say_as(&bob, To::Session(session), "his").await.unwrap().accepted.message,
    ];
    world.ask(Request::Hold { message: waits[1] }).await.unwrap();
    world.engine.people().hand_over(&world.me, session, bob.person, trace(None)).await.unwrap();
    let before = world.engine.views().queue(&carol, session).await.unwrap().len();
    assert_eq!(before, 4, "nothing changes before his yes");

    world.engine.people().accept_offer(&bob, session, trace(None)).await.unwrap();
    let settled =
        async |message| world.engine.views().receipt_within(&bob, message, STOPPED_WITHIN).await.unwrap();
    assert_eq!(state_and_why(&settled(runs).await), (ReceiptState::Stopped, Some("handed_over")));
    // Not even what the agent had said to them: the session is somebody else's.
    let hers = world.engine.views().receipt(&carol, runs).await.unwrap();
    assert_eq!(state_and_why(&hers), (ReceiptState::Stopped, Some("handed_over")));
    assert_eq!((hers.answer, hers.notice), (None, None));
    for message in waits {
        assert_eq!(state_and_why(&settled(message).await), (ReceiptState::Refused, Some("handed_over")));
    }
    // Whoever said it reads what became of it, and nothing else of the session.
    for (sender, message) in [(&world.me, waits[0]), (&carol, waits[1])] {
        let own = world.engine.views().receipt(sender, message).await.unwrap();
        assert_eq!(state_and_why(&own), (ReceiptState::Refused, Some("handed_over")));
        let unseen = AccessError::NotFound { what: "message" };
        let others = world.engine.views().receipt(sender, waits[2]).await;
        assert_eq!(others.map(|_| ()), Err(unseen.into()));
        let session = world.engine.views().session(sender, session).await;
        assert_eq!(session, Err(AccessError::NotFound { what: "session" }.into()));
    }
    let mut own: Vec<_> =
        world.own_acts("end_with_hand_over").into_iter().filter_map(|row| row.subject).collect();
    own.sort();
    let mut all = waits.map(|message| message.to_string());
    all.sort();
    assert_eq!(own, all, "each is in the audit once, as the engine's own");
    let said = world.say_as(&bob, To::Session(session), "mine now").await.unwrap().accepted.message;
    assert_eq!(settled(said).await.row.state, ReceiptState::Answered);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_was_kept_for_the_owner_before_is_closed() {
    let puppet = speaking(vec![finished("")]);
    let world = world_of(&puppet).await;
    let bob = world.let_in("bob", Role::Member).await;
    let session = turn(&world, To::New).await;
    world.store.root(bob.org, "/", Grantee::Person(bob.person));
    world.engine.people().hand_over(&world.me, session, bob.person, trace(None)).await.unwrap();
    while world.engine.kept() > 0 {
        tokio::task::yield_now().await;
    }
    assert!(puppet.notes.released.lock().unwrap().is_empty(), "an offer changes nothing");
    world.engine.people().accept_offer(&bob, session, trace(None)).await.unwrap();
    let released = async {
        while puppet.notes.released.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, released).await.expect("its process goes at once");
    assert_eq!(*puppet.notes.released.lock().unwrap(), [session]);
}

#[tokio::test(start_paused = true)]
async fn what_is_said_in_a_shared_session_is_its_senders() {
    let world = World::new().await;
    let bob = world.let_in("bob", Role::Member).await;
    let session = shared_with(&world, &bob, Grant::Prompt).await;
    let his = world.say_as(&bob, To::Session(session), "two").await.unwrap().accepted.message;
    let view = world.settled(his).await;
    assert_eq!((view.row.by, view.sender.as_deref()), (bob.person, Some("bob")));
    assert!(world.rules(session).await.contains(&queued(his, bob.person)));
    let hangs = world.say(To::Session(session), "!hang").await.unwrap().accepted.message;
    let waits = world.say_as(&bob, To::Session(session), "three").await.unwrap().accepted.message;
    let queue = world.engine.views().queue(&bob, session).await.unwrap();
    let senders: Vec<_> = queue.iter().map(|one| (one.row.message, one.sender.as_deref())).collect();
    assert_eq!(senders, [(hangs, Some("ann")), (waits, Some("bob"))]);
    let parts = world.inbound(To::New, "x", None).parts;
    let edited = world.engine.way_in().edit(&world.me, waits, 0, &parts, trace(None)).await;
    assert_eq!(edited, Err(AccessError::NotYourWords.into()), "not even its owner puts words in it");
}

#[tokio::test(start_paused = true)]
async fn a_viewer_reads_whatever_they_were_granted_and_does_nothing() {
    let world = World::new().await;
    let vera = world.let_in("vera", Role::Viewer).await;
    let session = shared_with(&world, &vera, Grant::Manage).await;
    assert!(world.engine.views().session(&vera, session).await.is_ok());
    let said = world.say_as(&vera, To::Session(session), "two").await;
    assert_eq!(said, Err(AccessError::Needs(Grant::Prompt).into()));
    assert_eq!(world.say_as(&vera, To::New, "two").await, Err(AccessError::NeedsRole(Role::Member).into()));
    let ended = world.engine.way_in().ask(&vera, Request::End { session }, trace(None)).await;
    assert_eq!(ended, Err(AccessError::Needs(Grant::Manage).into()));
    let grants = world.engine.people().grants(&vera, Resource::Session(session)).await;
    assert_eq!(grants, Err(AccessError::Needs(Grant::Manage).into()));
}

#[tokio::test(start_paused = true)]
async fn an_agent_on_which_something_is_granted_is_nothing_to_the_others() {
    let world = world_of(&Puppet::default()).await;
    let (bob, carol) = (world.let_in("bob", Role::Member).await, world.let_in("carol", Role::Member).await);
    let names = |views: Vec<engine::AgentView>| views.into_iter().map(|view| view.name).collect::<Vec<_>>();
    assert_eq!(names(world.engine.views().agents(&bob).await.unwrap()), ["puppet", "scripted"]);
    let on = Resource::Agent("scripted".to_owned());
    let carols = world.say_as(&carol, To::New, "!hang").await.unwrap().accepted;
    world.house_has_handed(carols.message).await;
    let to = Grantee::Person(bob.person);
    world.engine.people().give(&world.me, on, to, Grant::Prompt, trace(None)).await.unwrap();

    let stopped = world.engine.views().receipt_within(&carol, carols.message, STOPPED_WITHIN).await.unwrap();
    assert_eq!(stopped.row.state, ReceiptState::Stopped, "what she may use no more stops");
    let carol = world.engine.people().refreshed(&carol).await.unwrap();
    assert_eq!(names(world.engine.views().agents(&carol).await.unwrap()), ["puppet"]);
    let named = |agent: &str| IfNew { agent: Some(agent.to_owned()), ..IfNew::default() };
    let made = world.engine.way_in().make(&carol, named("scripted"), None, trace(None)).await;
    let known = vec!["puppet".to_owned()];
    assert_eq!(
        made,
        Err(ConflictError::UnknownAgent { name: "scripted".to_owned(), known: known.clone() }.into())
    );
    let never = world.engine.way_in().make(&carol, named("nobody"), None, trace(None)).await;
    assert_eq!(never, Err(ConflictError::UnknownAgent { name: "nobody".to_owned(), known }.into()));
    let unnamed = world.engine.way_in().make(&carol, IfNew::default(), None, trace(None)).await;
    assert_eq!(unnamed, Err(AccessError::AgentNotYours.into()), "the default's name is not told");
    let said = world.say_as(&carol, To::Session(carols.session), "again").await;
    assert_eq!(said, Err(AccessError::AgentNotYours.into()));
    world.engine.way_in().make(&bob, named("scripted"), None, trace(None)).await.unwrap();
    let typo = Resource::Agent("scriptet".to_owned());
    let typo = world.engine.people().give(&world.me, typo, Grantee::Org, Grant::View, trace(None)).await;
    assert!(matches!(typo, Err(PeopleError::Conflict(ConflictError::UnknownAgent { .. }))), "{typo:?}");
}

#[tokio::test(start_paused = true)]
async fn only_directories_that_one_was_given_can_be_chosen_and_of_others_nothing_is_said() {
    let world = World::new().await;
    let bob = world.let_in("bob", Role::Member).await;
    let in_dir = |directory: &str| IfNew { directory: Some(directory.to_owned()), ..IfNew::default() };
    let make = async |by: &Principal, directory: &str| {
        world.engine.way_in().make(by, in_dir(directory), None, trace(None)).await.map(|_| ())
    };
    for directory in ["/srv/shop", "/gone/away", "/", "/srv/../etc"] {
        assert_eq!(make(&bob, directory).await, Err(AccessError::DirectoryNotYours.into()), "{directory}");
    }
    let root = RootRow { directory: "/srv/shop".to_owned(), to: Grantee::Person(bob.person) };
    let not_his = world.engine.people().add_root(&bob, root.clone(), trace(None)).await;
    assert_eq!(not_his, Err(AccessError::NeedsRole(Role::Admin).into()));
    world.engine.people().add_root(&world.me, root.clone(), trace(None)).await.unwrap();
    let gone = RootRow { directory: "/gone/for/bob".to_owned(), to: Grantee::Org };
    let gone = world.engine.people().add_root(&world.me, gone, trace(None)).await;
    assert!(matches!(gone, Err(PeopleError::BadDirectory(_))), "{gone:?}");
    let bob = world.engine.people().refreshed(&bob).await.unwrap();
    assert_eq!(make(&bob, "/srv/shop").await, Ok(()));
    assert_eq!(make(&bob, "/srv/shop/window").await, Ok(()));
    assert_eq!(make(&bob, "/srv/shopping").await, Err(AccessError::DirectoryNotYours.into()));
    world.engine.people().remove_root(&world.me, root, trace(None)).await.unwrap();
    assert_eq!(make(&bob, "/srv/shop").await, Err(AccessError::DirectoryNotYours.into()), "looked up again");
    assert!(matches!(make(&world.me, "/gone/away").await, Err(WayInError::BadDirectory(_))));
}

#[tokio::test(start_paused = true)]
async fn an_org_has_so_many_open_sessions_as_it_may_and_its_settings_may_want_fewer() {
    let world = World::with(Limits { org_open_max: 3, ..Limits::default() }, Policy::default()).await;
    let bob = world.let_in("bob", Role::Member).await;
    let make =
        async |by: &Principal| world.engine.way_in().make(by, IfNew::default(), None, trace(None)).await;
    let first = make(&world.me).await.unwrap().session;
    make(&bob).await.unwrap();
    make(&bob).await.unwrap();
    assert_eq!(make(&world.me).await, Err(WayInError::OrgTooManyOpen { limit: 3 }));
    let settings = OrgSettings { open_max: Some(2), ..OrgSettings::default() };
    world.engine.people().settings(&world.me, settings, trace(None)).await.unwrap();
    world.ask(Request::End { session: first }).await.unwrap();
    let said = world.say_as(&bob, To::New, "one").await;
    assert_eq!(said, Err(WayInError::OrgTooManyOpen { limit: 2 }));
    let not_his = world.engine.people().settings(&bob, OrgSettings::default(), trace(None)).await;
    assert_eq!(not_his, Err(AccessError::NeedsRole(Role::Admin).into()));
}

#[tokio::test(start_paused = true)]
async fn an_org_has_so_many_turns_under_way_as_it_may_and_the_next_starts_when_one_ends() {
    let world = World::with(Limits { org_awake_max: 2, ..Limits::default() }, Policy::default()).await;
    let bob = world.let_in("bob", Role::Member).await;
    let first = world.say(To::New, "!hang").await.unwrap().accepted;
    let second = world.say_as(&bob, To::New, "!hang").await.unwrap().accepted;
    world.house_has_handed(first.message).await;
    world.house_has_handed(second.message).await;
    let third = world.say_as(&bob, To::New, "three").await.unwrap().accepted.message;
    let fourth = world.say(To::New, "four").await.unwrap().accepted.message;
    let state = async |by: &Principal, message| {
        let view = world.engine.views().receipt_within(by, message, Duration::from_secs(2)).await.unwrap();
        view.row.state
    };
    assert_eq!(state(&bob, third).await, ReceiptState::Waiting);
    assert_eq!(state(&world.me, fourth).await, ReceiptState::Waiting);
    world.ask(Request::Stop { message: first.message }).await.unwrap();
    assert_eq!(state(&bob, third).await, ReceiptState::Answered);
    assert_eq!(state(&world.me, fourth).await, ReceiptState::Answered);
}

#[tokio::test(start_paused = true)]
async fn nobody_else_is_let_in_while_agents_are_not_walled_off() {
    let world = World::new().await;
    let bob = world.let_in("bob", Role::Member).await;
    world.engine.people().disable(&world.me, bob.person, trace(None)).await.unwrap();
    world.fence.0.store(true, Ordering::Relaxed);
    let hole = PeopleError::WallNotProved { findings: vec!["there is a hole".to_owned()] };
    let add = AddPerson { handle: "carol".to_owned(), name: None, email: None, role: Role::Member };
    let added = world.engine.people().add_person(&world.me, add.clone(), trace(None)).await.map(|_| ());
    assert_eq!(added, Err(hole.clone()));
    let (name, handle) = ("other".to_owned(), "dora".to_owned());
    let other = MakeOrg { name, handle, owner_name: None, email: None };
    let made = world.engine.people().make_org(&world.me, other.clone(), trace(None)).await.map(|_| ());
    assert_eq!(made, Err(hole.clone()));
    assert_eq!(world.engine.people().enable(&world.me, bob.person, trace(None)).await, Err(hole));
    world.fence.0.store(false, Ordering::Relaxed);
    world.engine.people().enable(&world.me, bob.person, trace(None)).await.unwrap();
    world.engine.people().add_person(&world.me, add, trace(None)).await.unwrap();
    world.engine.people().make_org(&world.me, other, trace(None)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn people_see_each_others_names_and_admins_look_after_whoever_is_not_above_them() {
    let world = World::new().await;
    let bob = world.let_in("bob", Role::Member).await;
    let ada = world.let_in("ada", Role::Admin).await;
    let email = PersonChange { email: Some("Bob@Example.org".to_owned()), ..PersonChange::default() };
    let row =
        world.engine.people().change_person(&ada, bob.person, email.clone(), trace(None)).await.unwrap();
    assert_eq!(row.email.as_deref(), Some("bob@example.org"));
    let handles: Vec<_> = world.engine.people().people(&bob, None, 10).await.unwrap();
    assert_eq!(handles.iter().map(|row| row.handle.as_str()).collect::<Vec<_>>(), ["ada", "ann", "bob"]);
    let carol = world.let_in("carol", Role::Member).await;
    assert_eq!(world.engine.people().person(&carol, bob.person).await.unwrap().email, None);
    let by_address = world.engine.people().person_named(&carol, "bob@example.org").await;
    assert_eq!(by_address, Err(AccessError::NotFound { what: "person" }.into()));
    assert_eq!(world.engine.people().person_named(&ada, "bob@example.org").await.unwrap().person, bob.person);

    let role = |role| PersonChange { role: Some(role), ..PersonChange::default() };
    let up = world.engine.people().change_person(&ada, bob.person, role(Role::Owner), trace(None)).await;
    assert_eq!(up, Err(AccessError::NeedsRole(Role::Owner).into()));
    let owner = world.engine.people().disable(&ada, world.me.person, trace(None)).await;
    assert_eq!(owner, Err(AccessError::NeedsRole(Role::Owner).into()));
    let last =
        world.engine.people().change_person(&world.me, world.me.person, role(Role::Admin), trace(None)).await;
    assert_eq!(last, Err(PeopleError::LastOwner));
    let add = AddPerson { handle: "bob".to_owned(), name: None, email: None, role: Role::Member };
    let taken = world.engine.people().add_person(&ada, add, trace(None)).await.map(|_| ());
    assert!(matches!(taken, Err(PeopleError::Taken(_))), "{taken:?}");
    let own = PersonChange { name: Some("Bob".to_owned()), ..PersonChange::default() };
    assert_eq!(
        world
            .engine
            .people()
            .change_person(&bob, bob.person, own, trace(None))
            .await
            .unwrap()
            .name
            .as_deref(),
        Some("Bob")
    );
    let own = world.engine.people().change_person(&bob, bob.person, email, trace(None)).await;
    assert_eq!(own, Err(AccessError::NeedsRole(Role::Admin).into()), "by it one is known");
}

#[tokio::test(start_paused = true)]
async fn an_admin_reads_nobodys_sessions_by_being_one() {
    let world = World::new().await;
    let ada = world.let_in("ada", Role::Admin).await;
    let bob = world.let_in("bob", Role::Member).await;
    let session = world.say_as(&bob, To::New, "one").await.unwrap().accepted.session;
    for by in [&ada, &world.me] {
        assert_eq!(
            world.engine.views().session(by, session).await,
            Err(AccessError::NotFound { what: "session" }.into())
        );
        assert_eq!(
            world.engine.views().sessions(by, engine::Which::All, Default::default(), None, 10).await,
            Ok(Vec::new())
        );
        assert_eq!(world.engine.views().heads(by, 0, 10).await, Ok(Vec::new()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_credential_that_is_not_good_for_something_hears_the_same_whether_it_is_there_or_not() {
    let world = World::new().await;
    let receipt = world.talk(To::New, "one").await.row;
    let mut reads = world.me.clone();
    reads.rights = kernel::Rights::NONE.with(Right::Read);
    let (there, never) = (receipt.message, kernel::MessageId::from_bits(77));
    for message in [there, never] {
        for verb in [Request::Stop { message }, Request::Withdraw { message }, Request::Hold { message }] {
            let asked = world.engine.way_in().ask(&reads, verb, trace(None)).await;
            assert_eq!(asked, Err(AccessError::NeedsRight(Right::Prompt).into()));
        }
    }
    for session in [receipt.session, SessionId::from_bits(77)] {
        let said = world.say_as(&reads, To::Session(session), "two").await;
        assert_eq!(said, Err(AccessError::NeedsRight(Right::Prompt).into()));
        let ended = world.engine.way_in().ask(&reads, Request::End { session }, trace(None)).await;
        assert_eq!(ended, Err(AccessError::NeedsRight(Right::Manage).into()));
    }
    let mut prompts = world.let_in("bob", Role::Member).await;
    prompts.rights = kernel::Rights::NONE.with(Right::Prompt);
    for message in [there, never] {
        let asked = world.engine.way_in().ask(&prompts, Request::Hold { message }, trace(None)).await;
        assert_eq!(asked, Err(AccessError::NotFound { what: "message" }.into()), "not whose it is, either");
        let receipt = world.engine.views().receipt(&prompts, message).await.map(|_| ());
        assert_eq!(receipt, Err(AccessError::NeedsRight(Right::Read).into()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_right_that_somebody_gets_while_they_watch_is_heard_and_ends_nothing() {
    let world = World::new().await;
    let bob = world.let_in("bob", Role::Member).await;
    let session = shared_with(&world, &bob, Grant::View).await;
    let mut follow = world.engine.views().follow(&bob, session, Number(0)).await.unwrap();
    caught_up(&mut follow).await;
    world.give(session, Grantee::Person(bob.person), Grant::Prompt).await;
    let said = world.say_as(&bob, To::Session(session), "two").await.unwrap().accepted.message;
    let queued = queued(said, bob.person);
    let told = tokio::time::timeout(Duration::from_secs(5), async {
        while let Some(told) = follow.next().await {
            if let SessionUpdate::Fact(shared) = told
                && shared.fact.entry == engine::StoredEntry::Rule(queued.clone())
            {
                return true;
            }
        }
        false
    });
    assert_eq!(told.await, Ok(true));
}

fn queued(message: kernel::MessageId, by: kernel::PersonId) -> Fact {
    Fact::Queued { message, by, delivery: kernel::Delivery::Queue, epoch: kernel::Epoch(0) }
}

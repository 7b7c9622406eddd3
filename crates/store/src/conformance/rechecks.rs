//! The fate of what somebody has said already when they may say it no longer: their sessions are told, and nothing of
//! theirs is started.

use super::Fixture;
use super::story::*;
use crate::*;
use kernel::{
    Fact, Grant, Grantee, PersonId, Principal, RefusedWhy, Request, Role, SessionId, StopWhy, To, Turn,
};
use std::collections::BTreeSet;

/// Sessions 1 to 3 are mine and given to everybody in a group, in which my friend is. They have something that waits in
/// 1, something that runs in 2, and something that is over in 3. In 4, which is theirs, they have something that the keeper
/// has not seen yet, and I have not said anything. I have something in all of mine.
async fn busy<F: Fixture>() -> F {
    let on = peopled::<F>().await;
    let store = on.store();
    set(store, PeopleChange::MakeGroup { group: grp(1), name: "ours".into() }).await;
    set(store, PeopleChange::Join { group: grp(1), person: friend().person }).await;
    let by = Principal { groups: vec![grp(1)], ..now(store, &friend()).await };
    for n in 1..=3 {
        open(store, n).await;
        let (session, to) = (Resource::Session(ses(n)), Grantee::Group(grp(1)));
        set(store, PeopleChange::Give { on: session, to, grant: Grant::Prompt }).await;
        say(store, &by, To::Session(ses(n)), line(10 + n)).await;
        write(store, ses(n), vec![theirs(10 + n)]).await;
    }
    write(store, ses(2), vec![started(1, 12), attempt(1)]).await;
    write(store, ses(3), vec![started(1, 13), attempt(1), answered(1)]).await;
    say(store, &by, To::New, line(4)).await;
    assert_eq!(rechecks(store).await, BTreeSet::new());
    on
}

fn theirs(n: u32) -> Fact {
    queued_by(n, friend().person)
}

/// The people to be looked at again, and where.
async fn rechecks(store: &dyn Store) -> BTreeSet<(SessionId, PersonId)> {
    let mut found = BTreeSet::new();
    for n in 1..=5 {
        for row in store.inbox(ses(n), ALL).await.unwrap() {
            if let InboxItem::Recheck { person } = row.item {
                assert!(found.insert((ses(n), person)), "each of them once");
            }
        }
    }
    found
}

fn role(of: &Principal, becomes: Role) -> PeopleChange {
    let (person, role) = (of.person, Some(becomes));
    PeopleChange::ChangePerson { person, name: None, email: None, role }
}

pub async fn those_touched_are_looked_at_again_where_something_of_theirs_is_unfinished<F: Fixture>() {
    let person = friend().person;
    let (group, to) = (grp(1), Grantee::Group(grp(1)));
    let session = |n| Resource::Session(ses(n));
    let agent = || Resource::Agent("scripted".into());
    let everywhere: &[(u32, PersonId)] = &[(1, person), (2, person), (4, person)];
    let mine = me().person;
    let both: &[(u32, PersonId)] = &[(1, person), (1, mine), (2, person), (2, mine), (3, mine), (4, person)];
    let root = |to| RootRow { directory: "/srv/more".into(), to };
    for (change, expected) in [
        (PeopleChange::Disable { person }, everywhere),
        (role(&friend(), Role::Viewer), everywhere),
        (PeopleChange::Leave { group, person }, everywhere),
        (PeopleChange::RemoveGroup { group }, everywhere),
        (PeopleChange::Give { on: agent(), to: Grantee::Person(mine), grant: Grant::Prompt }, both),
        (PeopleChange::AddRoot(root(Grantee::Person(person))), everywhere),
        (PeopleChange::TakeBack { on: session(1), to }, &[(1, person)]),
        (PeopleChange::Give { on: session(2), to, grant: Grant::View }, &[(2, person)]),
        (
            PeopleChange::Give { on: session(1), to: Grantee::Org, grant: Grant::View },
            &[(1, person), (1, mine)],
        ),
        (PeopleChange::TakeBack { on: session(3), to }, &[]),
        (PeopleChange::HandOver { session: ses(1), to: person }, &[]),
        (PeopleChange::HandOverAll { from: person, to: mine }, &[]),
        (PeopleChange::MakeGroup { group: grp(2), name: "others".into() }, &[]),
        (PeopleChange::Settings(OrgSettings::default()), &[]),
        (own_token(2), &[]),
        (PeopleChange::MakeLink { person, link: link(8) }, &[]),
    ] {
        let on = busy::<F>().await;
        let store = on.store();
        set(store, change.clone()).await;
        let expected: BTreeSet<_> = expected.iter().map(|(n, person)| (ses(*n), *person)).collect();
        assert_eq!(rechecks(store).await, expected, "{change:?}");
        let on = on.reopen().await;
        assert_eq!(rechecks(on.store()).await, expected, "{change:?}");
        for (session, _) in &expected {
            assert!(on.store().unfinished(None, ALL).await.unwrap().contains(session));
        }
    }
}

pub async fn a_recheck_is_drained_like_anything_else<F: Fixture>() {
    let on = busy::<F>().await;
    let store = on.store();
    set(store, PeopleChange::Disable { person: friend().person }).await;
    let facts = vec![Fact::MessageRefused { message: msg(11), why: RefusedWhy::NotAllowed }];
    write(store, ses(1), facts).await;
    assert!(!rechecks(store).await.contains(&(ses(1), friend().person)));
    assert_eq!(receipt(store, 11).await.state, ReceiptState::Refused);
    // A session does not end over one that was not.
    let end = with(append_to(store, ses(2)).await, vec![answered(1), ended()]);
    assert_eq!(store.append(end).await.unwrap(), Appending::Undrained);
}

pub async fn a_turn_that_was_stopped_for_a_lost_right_says_so<F: Fixture>() {
    let on = busy::<F>().await;
    let store = on.store();
    let asked = Fact::StopAsked { turn: Turn(1), why: StopWhy::Revoked };
    write(store, ses(2), vec![asked]).await;
    let row = receipt(store, 12).await;
    assert_eq!((row.state, row.why), (ReceiptState::Running, Some("revoked")));
    let stopped = Fact::TurnEnded { turn: Turn(1), outcome: kernel::Outcome::Stopped };
    write(store, ses(2), vec![stopped]).await;
    let on = on.reopen().await;
    let row = receipt(on.store(), 12).await;
    assert_eq!((row.state, row.why), (ReceiptState::Stopped, Some("revoked")));
    assert_eq!(on.store().queue(ses(2)).await.unwrap().len(), 1, "what waits is mine");
    // One that had answered before it could be stopped has answered.
    let store = on.store();
    write(store, ses(1), vec![started(1, 11), Fact::StopAsked { turn: Turn(1), why: StopWhy::Revoked }])
        .await;
    write(store, ses(1), vec![answered(1)]).await;
    let row = receipt(store, 11).await;
    assert_eq!((row.state, row.why), (ReceiptState::Answered, None));
}

/// Each way of losing the right to say what waits already, and of getting it back.
pub async fn nothing_is_started_for_whoever_may_no_longer_say_it<F: Fixture>() {
    let person = friend().person;
    let (group, to) = (grp(1), Grantee::Group(grp(1)));
    let session = || Resource::Session(ses(1));
    let agent = || Resource::Agent("scripted".into());
    let mine = Grantee::Person(me().person);
    let viewer = Principal { role: Role::Viewer, ..friend() };
    let give = |on, to, grant| PeopleChange::Give { on, to, grant };
    for (loss, back) in [
        (PeopleChange::Disable { person }, PeopleChange::Enable { person, walled: true }),
        (role(&friend(), Role::Viewer), role(&viewer, Role::Member)),
        (PeopleChange::Leave { group, person }, PeopleChange::Join { group, person }),
        (PeopleChange::RemoveGroup { group }, give(session(), Grantee::Person(person), Grant::Prompt)),
        (PeopleChange::TakeBack { on: session(), to }, give(session(), Grantee::Org, Grant::Prompt)),
        (give(session(), to, Grant::View), give(session(), to, Grant::Manage)),
        (give(agent(), mine, Grant::Prompt), give(agent(), to, Grant::Prompt)),
        (give(agent(), to, Grant::View), give(agent(), Grantee::Org, Grant::Prompt)),
    ] {
        let on = busy::<F>().await;
        let store = on.store();
        assert!(store.may_say(ses(1), person).await.unwrap());
        set(store, loss.clone()).await;
        assert!(!store.may_say(ses(1), person).await.unwrap(), "{loss:?}");
        assert!(store.may_say(ses(1), me().person).await.unwrap(), "{loss:?}");
        let before = picture(&on).await;
        let start = with(append_to(store, ses(1)).await, vec![started(1, 11), attempt(1)]);
        let start = Append { starts: Some((msg(11), person)), awake: true, ..start };
        assert_eq!(store.append(start.clone()).await.unwrap(), Appending::Revoked(msg(11)), "{loss:?}");
        assert_eq!(picture(&on).await, before);
        let on = on.reopen().await;
        assert!(!on.store().may_say(ses(1), person).await.unwrap(), "{loss:?}");
        set(on.store(), back.clone()).await;
        assert!(on.store().may_say(ses(1), person).await.unwrap(), "{back:?}");
        written(on.store(), Append { term: on.store().node().term, ..start }).await;
    }
}

pub async fn whoever_handed_a_session_over_starts_nothing_in_it<F: Fixture>() {
    let on = busy::<F>().await;
    let store = on.store();
    hand_over(store, ses(1), &me(), &friend()).await;
    assert!(!store.may_say(ses(1), me().person).await.unwrap());
    assert!(store.may_say(ses(1), friend().person).await.unwrap());
    let start = with(append_to(store, ses(1)).await, vec![started(1, 1), attempt(1)]);
    let start = Append { starts: Some((msg(1), me().person)), awake: true, ..start };
    assert_eq!(store.append(start).await.unwrap(), Appending::Revoked(msg(1)));
}

pub async fn nobody_says_anything_where_they_are_not<F: Fixture>() {
    let on = busy::<F>().await;
    let store = on.store();
    for (session, person) in [
        (ses(1), stranger().person),
        (ses(4), me().person),
        (ses(1), PersonId::from_bits(99)),
        (ses(1), PersonId::ENGINE),
        (ses(99), me().person),
    ] {
        assert!(!store.may_say(session, person).await.unwrap(), "{person} in {session}");
    }
}

pub async fn a_disabled_persons_wishes_are_refused<F: Fixture>() {
    let on = busy::<F>().await;
    let store = on.store();
    let by = Principal { groups: vec![grp(1)], ..now(store, &friend()).await };
    let message = aim(&by, To::Session(ses(1)), line(20));
    let first = aim(&by, To::New, line(21));
    let wish = want(1, Request::Withdraw { message: msg(11) });
    set(store, PeopleChange::Disable { person: friend().person }).await;
    let before = picture(&on).await;
    let nobody = || Rejection::Unauthenticated;
    assert_eq!(accept(store, message).await, no(nobody()));
    assert_eq!(accept(store, first).await, no(nobody()));
    assert_eq!(ask_as(store, &by, wish).await, no(nobody()));
    assert_eq!(picture(&on).await, before);
    // Not even if they knew their standing.
    let by = Principal { standing: now(store, &friend()).await.standing, ..by };
    assert_eq!(send(store, &by, To::New, line(21)).await, no(nobody()));
    assert_eq!(picture(&on).await, before);
}

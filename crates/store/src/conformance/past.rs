//! Promises of what a conversation had before: by a move, and by a new session that takes it over.

use super::Fixture;
use super::story::*;
use crate::*;
use kernel::{EndWhy, Epoch, Fact, Found, Previous, Principal, Scope, SessionId, To};

async fn moved(store: &dyn Store, to: SessionId) {
    let (address, trail) = (address("a"), trail("rebind", 3_000));
    let new = Rebind { address, to, key: None, trail, schemes: SCHEMES };
    assert_eq!(store.rebind(arc(&me()), new).await.unwrap(), WriteOutcome::Done(()));
}

/// The session that a conversation had before, as somebody is told it where they ask for its route; a list of bindings says
/// the same.
async fn before(store: &dyn Store, by: &Principal) -> Option<Previous> {
    let found = store.find(Seer::of(by), None, conversation("a")).await.unwrap();
    let rows = store.bindings(Seer::of(by), None, ALL).await.unwrap();
    if let Some(row) = rows.iter().find(|row| row.address == address("a")) {
        assert_eq!(row.before, found.before, "{row:?}");
    }
    found.before
}

pub async fn a_conversation_that_was_moved_knows_the_session_that_it_had<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    say(store, &me(), conversation("a"), line(1)).await;
    assert_eq!(before(store, &me()).await, None);
    for n in [2, 3] {
        open(store, n).await;
    }
    moved(store, ses(2)).await;
    assert_eq!(before(store, &me()).await, Some(still_open(1)));
    moved(store, ses(2)).await;
    assert_eq!(before(store, &me()).await, Some(still_open(1)), "it has it already");
    moved(store, ses(3)).await;
    assert_eq!(before(store, &me()).await, Some(still_open(2)));
    // Back, and back again: each of them is what the other was.
    moved(store, ses(2)).await;
    assert_eq!(before(store, &me()).await, Some(still_open(3)));
    moved(store, ses(3)).await;
    let on = on.reopen().await;
    let store = on.store();
    assert_eq!(before(store, &me()).await, Some(still_open(2)));
    write(store, ses(2), vec![opened(), refused(2), ended()]).await;
    assert_eq!(before(store, &me()).await, Some(Previous { session: ses(2), ended: Some(EndWhy::Asked) }));
    assert_eq!(bound(store, &me(), "a").await, Some(ses(3)));
    // Once it has none, the one that ended last while it had it is what it had before.
    write(store, ses(3), vec![opened(), refused(3), ended()]).await;
    let found = store.find(Seer::of(&me()), None, conversation("a")).await.unwrap();
    assert_eq!(found.found, Found::Ended(ses(3), EndWhy::Asked));
    assert_eq!(before(store, &me()).await.map(|before| before.session), Some(ses(3)));
}

pub async fn a_past_that_somebody_may_not_see_is_none<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    say(store, &me(), conversation("a"), line(1)).await;
    open(store, 2).await;
    moved(store, ses(2)).await;
    share(store, ses(2), &friend(), Some(kernel::Grant::Prompt)).await;
    assert_eq!(before(store, &friend()).await, None, "they see the one that it has, and not the one before");
    share(store, ses(1), &friend(), Some(kernel::Grant::View)).await;
    assert_eq!(before(store, &friend()).await, Some(still_open(1)));
    assert_eq!(before(store, &stranger()).await, None);
}

/// A session that goes on elsewhere does not come back by itself.
pub async fn what_a_conversation_had_before_never_stands_in<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let own = || To::Conversation("own:a".parse().expect("an address"));
    say(store, &me(), own(), line(1)).await;
    say(store, &me(), To::New, line(2)).await;
    let (address, trail) = ("own:a".parse().expect("an address"), trail("rebind", 3_000));
    let new = Rebind { address, to: ses(2), key: None, trail, schemes: SCHEMES };
    assert_eq!(store.rebind(arc(&me()), new).await.unwrap(), WriteOutcome::Done(()));
    hand_over(store, ses(2), &me(), &friend()).await;
    let found = store.find(Seer::of(&me()), Some(me().person), own()).await.unwrap();
    assert_eq!((found.found, found.before), (Found::Nothing, Some(still_open(1))));
    let next = say(store, &me(), own(), line(3)).await;
    assert_eq!((next.session, next.created, next.previous), (ses(3), true, None));
}

fn new_in(key: &str) -> To {
    To::NewIn(address(key))
}

/// One transaction: the session, its binding and the message, and what was there before.
pub async fn a_new_session_takes_a_conversation_over_and_the_one_before_goes_on<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let first = say(store, &me(), new_in("a"), line(1)).await;
    assert_eq!((first.session, first.created, first.previous), (ses(1), true, None), "there was none");
    let taken = say(store, &me(), new_in("a"), line(2).keyed("k", 1)).await;
    assert_eq!((taken.session, taken.created, taken.previous), (ses(2), true, Some(still_open(1))));
    let on = on.reopen().await;
    let store = on.store();
    assert_eq!(receipt(store, 2).await.previous, Some(still_open(1)), "the receipt can be read again");
    let again = send(store, &me(), new_in("a"), line(3).keyed("k", 1)).await;
    assert_eq!(again, WriteOutcome::Repeated(taken), "the same key takes nothing over again");
    assert_eq!(bound(store, &me(), "a").await, Some(ses(2)));
    assert_eq!(before(store, &me()).await, Some(still_open(1)));
    assert_eq!(say(store, &me(), conversation("a"), line(4)).await.session, ses(2));
    assert_eq!(say(store, &me(), To::Session(ses(1)), line(5)).await.session, ses(1), "it goes on");
    // And back.
    moved(store, ses(1)).await;
    assert_eq!(say(store, &me(), conversation("a"), line(6)).await.session, ses(1));
    // What the one that was left does is nothing to the conversation.
    write(store, ses(2), vec![opened(), refused(2), refused(4), ended()]).await;
    assert_eq!(bound(store, &me(), "a").await, Some(ses(1)));
    write(store, ses(1), vec![opened(), refused(1), refused(5), refused(6), ended()]).await;
    let anew = say(store, &me(), new_in("a"), line(7)).await;
    assert_eq!(anew.previous, previous(ses(1), EndWhy::Asked), "after the end there is nothing to take over");
}

/// Whom the address names may, whatever their right on the session before; and they are told nothing of what they may not see.
pub async fn whoever_may_use_an_address_may_take_it_over<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    say(store, &me(), conversation("a"), line(1)).await;
    let theirs = say(store, &friend(), new_in("a"), line(2)).await;
    assert_eq!((theirs.session, theirs.created, theirs.previous), (ses(2), true, None));
    assert_eq!(bound(store, &friend(), "a").await, Some(ses(2)));
    assert_eq!(row(store, ses(1)).await.ended, None, "mine goes on");
    // An address that is not theirs stays whose it is.
    let foreign = To::NewIn("chat:room".parse().expect("an address"));
    let refused = no(Rejection::Denied(kernel::Denied::AddressNotYours));
    assert_eq!(send(store, &friend(), foreign, line(3)).await, refused);
    // What is somebody's own is taken over from nobody else.
    let own = || To::NewIn("own:a".parse().expect("an address"));
    say(store, &me(), own(), line(4)).await;
    let theirs = say(store, &friend(), own(), line(5)).await;
    assert_eq!((theirs.session, theirs.previous), (ses(5), None));
    let mine = say(store, &me(), To::Conversation("own:a".parse().expect("an address")), line(6)).await;
    assert_eq!(mine.session, ses(4));
}

pub async fn takers_of_one_conversation_are_one_after_the_other<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let sends = (1..=4).map(|n| accept(store, aim(&me(), new_in("a"), line(n)))).collect();
    let mut chain = std::collections::BTreeMap::new();
    for outcome in together(sends).await {
        let WriteOutcome::Done(accepted) = outcome else { panic!("{outcome:?}") };
        chain.insert(accepted.previous.map(|before| before.session), accepted.session);
    }
    assert_eq!(chain.len(), 4, "each took it over from another one: {chain:?}");
    let last = chain.values().find(|session| !chain.contains_key(&Some(**session))).copied();
    assert_eq!(bound(store, &me(), "a").await, last);
}

fn expecting(n: u32, agent: Option<&str>, model: Option<&str>) -> IncomingMessage {
    let expected = Expected { agent: agent.map(str::to_owned), model: model.map(str::to_owned) };
    IncomingMessage { expected: Some(expected), ..line(n) }
}

pub async fn a_message_that_expects_another_agent_is_refused<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let agent = scope().agent;
    let send = async |line| send(store, &me(), conversation("a"), line).await;
    let first = send(expecting(1, Some("other"), Some("m"))).await;
    assert!(matches!(first, WriteOutcome::Done(_)), "there is none that could be another: {first:?}");
    let is = |model: Option<&str>| {
        no(Rejection::OtherAgent { session: ses(1), agent: agent.clone(), model: model.map(str::to_owned) })
    };
    assert_eq!(send(expecting(2, Some("other"), None)).await, is(None));
    assert_eq!(send(expecting(3, None, Some("m"))).await, is(None));
    assert!(matches!(send(expecting(4, Some(&agent), None)).await, WriteOutcome::Done(_)));
    // It is the scope of now that counts.
    let changed = Scope { model: Some("m".into()), ..scope() };
    write(store, ses(1), vec![opened(), Fact::ScopeChanged { epoch: Epoch(1), scope: changed }]).await;
    assert!(matches!(send(expecting(5, Some(&agent), Some("m"))).await, WriteOutcome::Done(_)));
    assert_eq!(send(expecting(6, None, Some("n"))).await, is(Some("m")));
    // A session that is named is compared, too.
    let named = async |line| super::story::send(store, &me(), To::Session(ses(1)), line).await;
    assert_eq!(named(expecting(8, Some("other"), None)).await, is(Some("m")));
    assert_eq!(named(expecting(9, None, Some("n"))).await, is(Some("m")));
    assert!(matches!(named(expecting(10, Some(&agent), Some("m"))).await, WriteOutcome::Done(_)));
    let codes: Vec<_> = acted(store).await.into_iter().filter_map(|row| row.refused).collect();
    assert_eq!(codes, ["other_agent"; 5]);
    // Whoever may not see it learns nothing of it.
    let hidden =
        super::story::send(store, &friend(), To::Session(ses(1)), expecting(11, Some("other"), None)).await;
    assert_eq!(hidden, not_found("session"));
    let theirs =
        super::story::send(store, &friend(), conversation("a"), expecting(7, Some("other"), None)).await;
    assert_eq!(theirs, not_found("session"));
}

pub async fn a_session_after_another_one_is_made_like_it<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    say(store, &me(), conversation("a"), line(1)).await;
    let changed =
        Scope { agent: "other".into(), model: Some("m".into()), mode: Some("plan".into()), ..scope() };
    let change = Fact::ScopeChanged { epoch: Epoch(1), scope: changed.clone() };
    write(store, ses(1), vec![opened(), refused(1), change, ended()]).await;
    let looking = |by: &Principal, to| {
        let (by, new) = aim(by, to, line(2));
        (by, NewMessage { fresh: None, ..new })
    };
    let WriteOutcome::Refused(Rejection::WouldBeNew { like, .. }) =
        accept(store, looking(&me(), conversation("a"))).await
    else {
        panic!("it needs a session")
    };
    assert_eq!(like.as_deref(), Some(&Predecessor { session: ses(1), scope: changed }));
    let would_be_new = || no(Rejection::WouldBeNew { by: None, like: None });
    assert_eq!(
        accept(store, looking(&friend(), conversation("a"))).await,
        would_be_new(),
        "they may not see it"
    );
    assert_eq!(
        accept(store, looking(&me(), new_in("a"))).await,
        would_be_new(),
        "a new one is as it is asked for"
    );
    // If it is another one by now, it has to be looked at again.
    let (by, new) = aim(&me(), conversation("a"), line(3));
    let stale = NewMessage { like: Some(ses(9)), ..new };
    let outcome = accept(store, (by, stale)).await;
    assert!(
        matches!(outcome, WriteOutcome::Refused(Rejection::WouldBeNew { like: Some(_), .. })),
        "{outcome:?}"
    );
    let (by, new) = aim(&me(), conversation("a"), line(4));
    let made = accept(store, (by, NewMessage { like: Some(ses(1)), ..new })).await;
    assert!(matches!(made, WriteOutcome::Done(Accepted { created: true, .. })), "{made:?}");
}
